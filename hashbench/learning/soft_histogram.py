"""The differentiable histogram of code distances that MIHash and TALR learn through."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def soft_histogram(codes: Tensor, level_index: Tensor, n_levels: int, n_bins: int) -> Tensor:
    """Count the distances of relaxed codes by interpolation, for each item and level, the item itself left out.

    Relaxed codes (n_items, n_bits) lie in [-1, 1]. ``level_index`` (n_items, n_items), int64, is the position of each
    pair's level, below ``n_levels``. ``n_bins`` intervals lie between the bins' centres; with ``n_bits`` of them, whole
    codes are counted exactly. Returns float64 (n_items, n_levels, n_bins + 1): bin l is centred at distance l * n_bits
    / n_bins, and the bins of an item and level add up to the number of other items at that level, whatever the codes.

    Notes
    -----
    Equations 14 and 15 of [1]_. A pair at distance D = (n_bits - phi_i . phi_j) / 2 lies between the centres of bins k
    and k + 1; the nearer it is to one, the larger the share that bin gets. So a pair adds to two bins of one level
    only, and costs O(1) forward and backward. With g the gradient of the histogram and w = n_bits / n_bins, a pair's
    distance has gradient G = (g[k + 1] - g[k]) / w, and the codes have gradient -(G + G^T) phi / 2.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal, S. Sclaroff, "Hashing as Tie-Aware Learning to Rank", CVPR 2018.
    """
    return _SoftHistogram.apply(codes, level_index, n_levels, n_bins)  # type: ignore[no-any-return, no-untyped-call]


class _SoftHistogram(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, codes: Tensor, level_index: Tensor, n_levels: int, n_bins: int) -> Tensor:
        n_items, n_bits = codes.shape
        position = (n_bits - codes @ codes.T).mul_(0.5 * n_bins / n_bits).clamp_(0, n_bins)  # in bins; rounding clamped
        left = position.to(torch.int32).clamp_(max=n_bins - 1)
        share = (position - left).double().fill_diagonal_(0).flatten()  # of the right bin
        first = torch.arange(0, n_items * n_levels, n_levels, dtype=torch.int32, device=codes.device)
        index = level_index.to(torch.int32, copy=True).add_(first[:, None]).mul_(n_bins + 1).add_(left).flatten()
        flat = torch.zeros(n_items * n_levels * (n_bins + 1), dtype=torch.float64, device=codes.device)
        flat[1:].index_add_(0, index, share)
        share.neg_().add_(1).view(n_items, n_items).fill_diagonal_(0)
        flat.index_add_(0, index, share)
        ctx.save_for_backward(codes, index)
        ctx.width = n_bits / n_bins
        return flat.view(n_items, n_levels, n_bins + 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        codes, index = ctx.saved_tensors
        flat = grad.flatten()
        slope = (flat[1:] - flat[:-1]).index_select(0, index).div_(ctx.width)  # one for each pair
        slope = slope.to(codes.dtype).view(len(codes), len(codes)).fill_diagonal_(0)
        return (slope + slope.T).mul_(-0.5) @ codes, None, None, None

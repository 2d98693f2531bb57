"""Functions shared by the losses on pairs of outputs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def signs(outputs: "Tensor") -> "Tensor":
    """Return 1 where outputs are above 0, else -1; no gradient flows through them."""
    return (outputs.detach() > 0).to(outputs.dtype).mul_(2).sub_(1)


def others(levels: "Tensor") -> "Tensor":
    """Return a mask (n_batch, n_batch) of the pairs of different items: False only on the diagonal."""
    import torch

    return ~torch.eye(len(levels), dtype=torch.bool, device=levels.device)


def mean_over(values: "Tensor", mask: "Tensor") -> "Tensor":
    """Average the values that a mask of their shape selects; 0 if there are none."""
    return (values * mask).sum() / mask.sum().clamp(min=1)

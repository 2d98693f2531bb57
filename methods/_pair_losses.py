"""What the losses on pairs of outputs share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def signs(outputs: "Tensor") -> "Tensor":
    """Give the codes of outputs as numbers, 1 above 0, else -1; no gradient flows through them."""
    return (outputs.detach() > 0).to(outputs.dtype).mul_(2).sub_(1)


def others(levels: "Tensor") -> "Tensor":
    """Mark the pairs of different items of a batch, (n_batch, n_batch): False on the diagonal alone."""
    import torch

    return ~torch.eye(len(levels), dtype=torch.bool, device=levels.device)


def mean_over(values: "Tensor", mask: "Tensor") -> "Tensor":
    """Average the values that a mask of their shape marks; 0 if there are none."""
    return (values * mask).sum() / mask.sum().clamp(min=1)

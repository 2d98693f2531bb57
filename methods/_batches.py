"""What the losses on pairs of outputs share."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def signs(outputs: "Tensor") -> "Tensor":
    """Give the codes of outputs as numbers: 1 above 0, else -1.

    Parameters
    ----------
    outputs : Tensor
        Of any shape.

    Returns
    -------
    Tensor
        Of the same shape; no gradient flows through it.
    """
    return (outputs.detach() > 0).to(outputs.dtype).mul_(2).sub_(1)


def others(levels: "Tensor") -> "Tensor":
    """Mark the pairs of different items of a batch.

    Parameters
    ----------
    levels : Tensor of shape (n_batch, n_batch)
        Levels of the batch to itself.

    Returns
    -------
    Tensor of shape (n_batch, n_batch), bool
        False on the diagonal alone.
    """
    import torch

    return ~torch.eye(len(levels), dtype=torch.bool, device=levels.device)


def mean_over(values: "Tensor", mask: "Tensor") -> "Tensor":
    """Average some values.

    Parameters
    ----------
    values : Tensor
        Of any shape.
    mask : Tensor of the same shape, bool
        Which of them count.

    Returns
    -------
    Tensor
        A scalar; 0 if none counts.
    """
    return (values * mask).sum() / mask.sum().clamp(min=1)

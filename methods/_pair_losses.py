"""Functions shared by the losses on pairs of outputs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

_BLOCK = 1024  # items whose pairs with a batch stay near the processor


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


def logistic_loss(outputs: "Tensor", all_outputs: "Tensor", similar: "Tensor", margin: float = 0.0) -> "Tensor":
    """Sum the negative log-likelihood of the pairs of a batch with all items, in blocks of items.

    With theta half the inner product of outputs (n_batch, n_bits) and ``all_outputs`` (n_items, n_bits), which are held
    constant, a ``similar`` pair costs log(1 + exp(margin - theta)), another one log(1 + exp(margin + theta)).
    """
    import torch

    fixed = outputs.detach()
    total, slope = outputs.new_zeros(()), torch.zeros_like(fixed)
    one = outputs.new_ones(())
    with torch.no_grad():
        for block, are_similar in blocks(all_outputs, similar):
            side = 0.5 - are_similar.to(outputs.dtype)
            x = (fixed @ block.T).mul_(side).add_(margin)
            # As autograd computes it, to the last bit; above 40, it is 1 in float64.
            steepness = torch.ops.aten.softplus_backward(one.expand_as(x), x, 1, 40)
            likelihoods = (steepness - 0.5).abs_().add_(0.5)  # from 1/2 to 1, so that 100 have a product above 0
            total += x.clamp_(min=0).sum() - sum(part.prod(dim=0).log().sum() for part in torch.split(likelihoods, 100))
            slope += steepness.mul_(side) @ block
    return total + ((outputs - fixed) * slope).sum()  # adds 0, and the gradient


def sum_of_similar(similar: "Tensor", values: "Tensor") -> "Tensor":
    """Sum the values (n_items, n) of the items that are ``similar`` (n_rows, n_items), in blocks: (n_rows, n)."""
    import torch

    total = values.new_zeros(len(similar), values.shape[1])
    for rows, their_similar in zip(torch.split(total, _BLOCK), torch.split(similar, _BLOCK), strict=True):
        for block, are_similar in blocks(values, their_similar):
            rows.addmm_(are_similar.to(values.dtype), block)
    return total


def blocks(of_items: "Tensor", of_pairs: "Tensor") -> "Iterator[tuple[Tensor, Tensor]]":
    """Yield blocks of rows of ``of_items``, each with the same columns of ``of_pairs``."""
    places = (slice(start, start + _BLOCK) for start in range(0, len(of_items), _BLOCK))
    return ((of_items[place], of_pairs[:, place]) for place in places)

"""Training items that are held out to choose the epoch: their choice and their score."""

from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import BoolArray
from hashbench.affinity import Affinity
from hashbench.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor


def split(name: str, share: float, n_items: int, affinity: Affinity, generator: Any) -> "tuple[Tensor, Tensor]":
    """Draw the row numbers of the items to hold out and of those to learn from, each ascending."""
    import torch

    n_held = round(share * n_items)
    if not n_held:
        raise Refusal(f"{name} got validation={share} of n_samples={n_items} items, which is none. Raise it or use 0.")
    drawn = torch.randperm(n_items, generator=generator).split_with_sizes([n_held, n_items - n_held])
    held_rows, train_rows = (part.sort().values for part in drawn)
    batches = np.array_split(held_rows.numpy(), -(-n_held // 256))
    if not any(affinity.block(rows, train_rows.numpy()).any() for rows in batches):
        raise Refusal(
            f"{name} cannot choose an epoch: none of {n_held} items held out is relevant to another training "
            "item. Leave validation out."
        )
    return held_rows, train_rows


def score(held_codes: BoolArray, train_codes: BoolArray, affinity: Affinity, criterion: str) -> float:
    """Score held-out items as queries to the others; ``affinity`` is of the former to the latter."""
    from hashbench.scoring.problem import evaluate

    return evaluate(held_codes, train_codes, affinity, [criterion], undefined="paper").summary[criterion].mean

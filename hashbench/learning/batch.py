"""What a loss may look at."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray, IntArray
from hashbench.affinity import Affinity
from hashbench.errors import Refusal

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, eq=False)
class Batch:
    """What a loss may look at.

    Parameters
    ----------
    outputs : Tensor of shape (n_batch, n_bits)
        Outputs of the batch before the sign, float64; the gradient flows through them.
    rows : ndarray of shape (n_batch,), int64
        Which of the ``all_outputs`` they are.
    all_outputs : Tensor of shape (n_items, n_bits)
        The last outputs of every training item, those of this batch included; 0 before an item's
        first visit. No gradient.
    affinity : Affinity
        Of the training items to each other, for ``numbers``.
    numbers : ndarray of shape (n_items,), int64
        Where the affinity has the items of ``all_outputs``.
    epoch, step : int
        Epochs, and batches of all epochs, that went before; those of a head alone (``head_epochs``) do not count.
    given_labels : ndarray of shape (n, ...), optional
        Labels of the items that the affinity is of; see ``labels``.
    given_features : Tensor of shape (n, n_features), optional
        Features of the items that the affinity is of; see ``features``.
    own : nn.Module, optional
        What the loss trains besides the network, as `LearnedHash._begin` gave it.
    """

    outputs: "Tensor"
    rows: IntArray
    all_outputs: "Tensor"
    affinity: Affinity
    numbers: IntArray
    epoch: int = 0
    step: int = 0
    given_labels: AnyArray | None = None
    given_features: "Tensor | None" = None
    own: Any = None

    @cached_property
    def levels(self) -> "Tensor":
        """Levels of the batch to itself, int16 of shape (n_batch, n_batch), self-pairs on the diagonal."""
        return self._levels(self.numbers[self.rows])

    @cached_property
    def all_levels(self) -> "Tensor":
        """Levels of the batch to all training items, int16 of shape (n_batch, n_items), self-pairs included."""
        return self._levels(self.numbers)

    @cached_property
    def labels(self) -> "Tensor":
        """Labels of the batch: int64 of shape (n_batch,), or multi-hot uint8 of shape (n_batch, n_classes)."""
        return self.all_labels[self.rows]

    @cached_property
    def all_labels(self) -> "Tensor":
        """Labels of all training items: int64 of shape (n_items,), or multi-hot uint8 of shape (n_items, n_classes)."""
        import torch

        if self.given_labels is None:
            raise Refusal("this loss learns from labels, and the affinity of the training items comes without any.")
        return torch.from_numpy(np.ascontiguousarray(self.given_labels[self.numbers])).to(self.outputs.device)

    @cached_property
    def features(self) -> "Tensor":
        """What the front end makes of the batch's features before training: float64 (n_batch, n_features)."""
        if self.given_features is None:
            raise Refusal("this loss compares features of training items, and none were given.")
        return self.given_features[self.numbers[self.rows]].to(self.outputs.device)

    def _levels(self, columns: IntArray) -> "Tensor":
        import torch

        block = self.affinity.block(self.numbers[self.rows], columns)
        return torch.from_numpy(block).to(self.outputs.device)

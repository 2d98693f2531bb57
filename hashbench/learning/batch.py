"""The arguments of a loss."""

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
    """The arguments of a loss.

    Parameters
    ----------
    outputs : Tensor of shape (n_batch, n_bits)
        Outputs of the batch before the sign, float64; the gradient flows through them.
    rows : ndarray of shape (n_batch,), int64
        Their row numbers in ``all_outputs``.
    all_outputs : Tensor of shape (n_items, n_bits)
        The last outputs of all training items, including this batch; 0 before the first visit of an item. No gradient.
    affinity : Affinity
        Affinity of the training items to each other, indexed by ``numbers``.
    numbers : ndarray of shape (n_items,), int64
        Position in the affinity of each item of ``all_outputs``.
    epoch : int
        Number of epochs before this one; ``head_epochs`` do not count.
    share : float
        Share of the steps of training before this one, from 0 to below 1; ``head_epochs`` do not count.
    training_labels : ndarray of shape (n, ...), optional
        Labels of all items of the affinity; see ``labels``.
    training_features : Tensor of shape (n, n_features), optional
        Features of all items of the affinity; see ``features``.
    own : nn.Module, optional
        What the loss trains besides the network, as returned by `LearnedHash._begin`.
    views : Tensor of shape (n_views, n_batch, n_bits), optional
        Outputs of each random view of the batch, see `LearnedHash._view`; the first are ``outputs``.

    Examples
    --------
    >>> import torch
    >>> from hashbench import SameLabel
    >>> outputs, rows = torch.zeros(2, 4), np.arange(2)
    >>> Batch(outputs, rows, outputs, SameLabel([0, 1], [0, 1]), rows).levels.tolist()
    [[1, 0], [0, 1]]
    """

    outputs: "Tensor"
    rows: IntArray
    all_outputs: "Tensor"
    affinity: Affinity
    numbers: IntArray
    epoch: int = 0
    share: float = 0.0
    training_labels: AnyArray | None = None
    training_features: "Tensor | None" = None
    own: Any = None
    views: "Tensor | None" = None

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

        if self.training_labels is None:
            raise Refusal("this loss learns from labels, got an affinity of the training items without labels.")
        return torch.from_numpy(np.ascontiguousarray(self.training_labels[self.numbers])).to(self.outputs.device)

    @cached_property
    def features(self) -> "Tensor":
        """Features of the batch after the front end, before training: float64 (n_batch, n_features)."""
        if self.training_features is None:
            raise Refusal("this loss compares features of training items, got none.")
        return self.training_features[self.numbers[self.rows]].to(self.outputs.device)

    def _levels(self, columns: IntArray) -> "Tensor":
        import torch

        block = self.affinity.block(self.numbers[self.rows], columns)
        return torch.from_numpy(block).to(self.outputs.device)

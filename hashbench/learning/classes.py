"""Base classes of methods that learn from classes, or from a target code per class."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from hashbench.errors import HashbenchError, Refusal
from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.learning.loop import Items
from hashbench.learning.targets import KINDS, draw_targets, item_targets
from hashbench.method import Supervision, choice, setting
from hashbench.store.inputs import check_fits

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


def mean_over_labelled(costs: "Tensor", classes: "Tensor") -> "Tensor":
    """Average the costs of items (n_batch,) over those that have a class; 0 if none has.

    The cost of an item without a class is ignored, even if it is not finite, but its gradient has to be finite: divide
    by ``classes.sum(dim=1).clamp(min=1)``, not by the number of an item's classes.

    Examples
    --------
    >>> import torch
    >>> mean_over_labelled(torch.tensor([1.0, 3.0, 9.0]), torch.tensor([[1, 0], [0, 1], [0, 0]]))
    tensor(2.)
    """
    is_labelled = classes.any(dim=1)
    return costs.where(is_labelled, 0).sum() / is_labelled.sum().clamp(min=1)


def shares(classes: "Tensor") -> "Tensor":
    """Divide 1 equally among the classes of each item; ``classes`` (n_batch, n_classes) are 0 and 1."""
    return classes / classes.sum(dim=1, keepdim=True).clamp(min=1)


@dataclass(eq=False, repr=False, kw_only=True)
class ClassHash(LearnedHash):
    """Base of methods that learn from the classes of items, one or several each.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,), int64
        Classes of the training items, ascending; for multi-hot labels all columns, including empty ones.

    Examples
    --------
    >>> class Classifier(ClassHash):
    ...     def _loss(self, batch):
    ...         return (batch.outputs[:, :2] - self._of_classes(batch)).square().mean()
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> Classifier(n_bits=4, epochs=2).fit(X, 3 + np.arange(60) % 2).classes_.tolist()
    [3, 4]
    """

    supervision: ClassVar[Supervision] = "labels"
    group = "class-based"

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module | None":
        labels = items.labels
        if labels is None:
            raise HashbenchError(f"{self.label} learns from classes, got none. Pass labels as y.")
        has_one = labels.ndim == 1
        self.classes_ = np.unique(labels).astype(np.int64) if has_one else np.arange(labels.shape[1])
        n_seen = len(self.classes_) if has_one else int(labels.any(axis=0).sum())
        if n_seen < 2:
            held = "have the same class" if n_seen else "have none"
            raise Refusal(
                f"{self.label} needs items of at least two classes, but all {len(labels)} training items {held}."
            )
        self._check_memory(min(len(labels), self.batch_size), "lower batch_size")
        return None

    def _check_memory(self, n_items: int, advice: str) -> None:
        """Refuse to train if the result of `_of_classes`, and the integers that it is made from, do not fit memory."""
        n_classes = len(self.classes_)
        what = f"{self.label}'s matrix of {n_items:,} items x {n_classes:,} classes"
        check_fits(16 * n_items * n_classes, what, advice)

    def _of_classes(self, batch: Batch, *, whole: bool = False) -> "Tensor":
        """Return the classes of the items of a batch, or of all: (n_batch, n_classes), 0 and 1."""
        import torch

        labels = batch.all_labels if whole else batch.labels
        if whole:
            self._check_memory(len(labels), "train on fewer items, or on fewer classes")
        if labels.ndim == 1:
            classes = torch.from_numpy(self.classes_).to(labels.device)
            labels = torch.nn.functional.one_hot(torch.searchsorted(classes, labels.long()), len(classes))
        return labels.to(batch.outputs.dtype)


@dataclass(eq=False, repr=False, kw_only=True)
class TargetHash(ClassHash):
    """Base of methods that pull the codes of each class to a target that is drawn before training.

    Parameters
    ----------
    targets : {"auto", "hadamard", "max-distance", "balanced", "bernoulli"}
        How targets are drawn: rows of a Hadamard matrix, far from each other, with as many ones as zeros, or at random;
        ``auto`` uses Hadamard rows where they exist, else max-distance.

    Attributes
    ----------
    targets_ : ndarray of shape (n_classes, n_bits), int8
        The target of each class, -1 and +1.
    tie_bits_ : ndarray of shape (n_bits,), int8
        Target bits where the targets of an item's classes tie.

    Examples
    --------
    >>> class Pull(TargetHash):
    ...     def _loss(self, batch):
    ...         return (batch.outputs.tanh() - self._targets_of(batch, self._of_classes(batch))).square().mean()
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> Pull(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).targets_.shape
    (2, 4)
    """

    targets: str = setting("auto", choice(*KINDS))

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        super()._begin(items, generator)
        rng = np.random.default_rng(self.random_state)
        n_classes, on_progress = len(self.classes_), self.session.on_progress
        self.targets_ = draw_targets(n_classes, self.n_bits, self.targets, rng, on_progress)
        self.tie_bits_ = rng.choice(np.array([-1, 1], dtype=np.int8), self.n_bits)
        own = torch.nn.Module()
        own.register_buffer("targets", torch.from_numpy(self.targets_).float())
        own.register_buffer("tie_bits", torch.from_numpy(self.tie_bits_).float())
        return own

    def _targets_of(self, batch: Batch, classes: "Tensor") -> "Tensor":
        """Return the target of each item of a batch, (n_batch, n_bits): the majority of those of its classes."""
        return item_targets(batch.own.targets.to(classes), batch.own.tie_bits.to(classes), classes)

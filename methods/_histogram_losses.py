"""Parameters of methods that learn from histograms of distances, and the histogram of a batch."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import choice, real, setting, whole
from hashbench.methods.hashnet import steepness

if TYPE_CHECKING:
    from torch import Tensor


def default_n_bins(n_bits: int) -> int:
    """Return half the bits, but at least 8 and at most 16 intervals, and no more than there are bits."""
    return min(max(n_bits // 2, 8), 16, n_bits)


@dataclass(eq=False, repr=False, kw_only=True)
class _Ranked(LearnedHash):
    """Base of methods that learn from soft histograms of the distances between relaxed codes."""

    alpha: float = setting(1.0, real(0, closed="neither"), tunable=(0.25, 0.5, 1.0, 2.0, 4.0, 8.0))
    continuation: int = setting(0, whole(0))
    n_bins: int | None = setting(None, whole(0), None)

    group = "list-based"
    version = 3  # continuation by the share of training done

    def _histogram(self, batch: Batch, level_index: "Tensor", n_levels: int) -> "Tensor":
        """Count the distances of the batch's relaxed codes: (n_batch, n_levels, n_bins + 1), float64."""
        import torch

        from hashbench.learning.soft_histogram import soft_histogram

        alpha = self.alpha * steepness(batch.share, 2.0**self.continuation)
        n_bins = default_n_bins(self.n_bits) if self.n_bins is None else self.n_bins or self.n_bits
        return soft_histogram(torch.tanh(alpha * batch.outputs), level_index, n_levels, n_bins)


@dataclass(eq=False, repr=False, kw_only=True)
class _TALR(_Ranked):
    """Base of methods that optimise a relaxed metric, in the form that the authors train or an exact one."""

    relaxation: str = setting("simplified", choice("full", "simplified"))

"""TALR-NDCG: graded gain, expected over orders of tied items, as the objective."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.methods._histogram_losses import _TALR

if TYPE_CHECKING:
    from torch import Tensor


def simplified_dcg(size: "Tensor", gain: "Tensor") -> "Tensor":
    """Compute DCG_s, equation 66 of TALR's supplement: sum_d g_d / log2(C_{d-1} + c_d / 2 + 3/2), never above DCG.

    ``size`` and ``gain`` (n_queries, n_bins) are c and g: items of each tie and the sum of their gains, nearest first;
    soft counts. C is cumulative.
    """
    before = size.cumsum(dim=1) - size
    return (gain / (before + size / 2 + 1.5).log2()).sum(dim=1)


def full_dcg(size: "Tensor", gain: "Tensor") -> "Tensor":
    """Compute the relaxation that equals tie-aware DCG on whole counts: sum_d g_d / c_d * (F(C_d) - F(C_{d-1})).

    F is the cumulative discount, linear between whole numbers. TALR's equation 12 puts ln 2 * li(C + 1) for F(C), with
    the logarithmic integral li; it diverges at the first bin, where C = 0 and li(1) is minus infinity. Arguments are
    those of `simplified_dcg`.
    """
    after = size.cumsum(dim=1)
    before = after - size
    table = _cumulative_discount(int(after[:, -1].max()) + 2, size)

    def interpolated(x: "Tensor") -> "Tensor":
        rank = x.detach().clamp(min=0).long()
        return table[rank] + (x - rank) * (table[rank + 1] - table[rank])

    is_empty = size < 1e-9
    rank = before.detach().clamp(min=0).long()
    mean = (interpolated(after) - interpolated(before)) / size.where(~is_empty, 1.0)
    return (gain * mean.where(~is_empty, table[rank + 1] - table[rank])).sum(dim=1)


def ideal_dcg(counts: "Tensor", gains: "Tensor") -> "Tensor":
    """Compute the DCG of the best order, from ``counts`` (n_queries, n_levels) and ascending ``gains`` (n_levels,)."""
    after = counts.flip(1).cumsum(dim=1).long()  # (n_queries, n_levels), best level first
    table = _cumulative_discount(int(after[:, -1].max()), counts)
    discounts = table[after].diff(dim=1, prepend=table.new_zeros(len(after), 1))
    return discounts @ gains.flip(0)


def _cumulative_discount(n_ranks: int, like: "Tensor") -> "Tensor":
    """Compute F(0) to F(n_ranks): sums of 1 / log2(rank + 1)."""
    import torch

    ranks = torch.arange(1, n_ranks + 1, dtype=like.dtype, device=like.device)
    return torch.cat([like.new_zeros(1), (1 / (ranks + 1).log2()).cumsum(dim=0)])


@dataclass(eq=False, repr=False, kw_only=True)
class TALRNDCG(_TALR):
    """Tie-aware learning to rank for NDCG [1]_.

    Gains are 2^level - 1. All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    learning_rate : float, default=0.3
        Gradients of NDCG are small, hence more than the usual 0.1.
    relaxation : {"simplified", "full"}, default="simplified"
        DCG_s of the supplement, which the authors use, or a form that is exact on whole counts.
    alpha : float, default=1
        Steepness of the tanh that relaxes codes; the authors' gamma is 2 alpha.
    continuation : int, default=0
        How often ``alpha`` doubles during training, along the schedule of `HashNet`.
    n_bins : int, optional
        Intervals of the histogram; 0 for one per bit. By default half the bits, at least 8, at most 16 or the bits.

    Notes
    -----
    Each item of a batch is a query to the others, and left out of the ideal as well. Maximises the mean over
    queries of DCG / ideal DCG, 1 where the ideal is 0. ``presets["paper"]`` has the authors' settings for NUS-WIDE.
    Their released code differs in two ways: its gradient lacks a factor 2 between bins of different distance
    (this one agrees with finite differences), and its ideal DCG counts the query itself.

    On cifar10-gist-unlabelled, where distances define levels, NDCG at 16 bits is no higher than that of itq, which
    learns without labels.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal, S. Sclaroff, "Hashing as Tie-Aware Learning to Rank", CVPR 2018,
       arXiv:1705.08562.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> TALRNDCG(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    learning_rate: float = 0.3

    criterion = "NDCG"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "head": "linear",
            "scaling": "none",
            "epochs": 50,
            "batch_size": 256,
            "learning_rate": 0.01,
            "halve_every": 0,
            "decay_items": None,
            "alpha": 0.5,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.01,
            "n_bins": lambda n_bits: max(n_bits // 2, 1),
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return -self._ndcg(batch).mean()

    def _ndcg(self, batch: Batch) -> "Tensor":
        import torch

        values = torch.as_tensor(batch.affinity.levels, device=batch.outputs.device)
        histogram = self._histogram(batch, torch.bucketize(batch.levels.long(), values), len(values))
        gains = torch.exp2(values.double()) - 1  # (n_levels,)
        gain = torch.einsum("qld,l->qd", histogram, gains)
        ideal = ideal_dcg(histogram.detach().sum(dim=2).round(), gains)
        relaxed = full_dcg if self.relaxation == "full" else simplified_dcg
        has_gain = ideal > 0
        return torch.where(has_gain, relaxed(histogram.sum(dim=1), gain) / ideal.where(has_gain, 1.0), 1.0)

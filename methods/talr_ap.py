"""TALR-AP: average precision, expected over orders of tied items, as the objective."""

from dataclasses import dataclass
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.methods._histogram_losses import _TALR

if TYPE_CHECKING:
    from torch import Tensor


def simplified_ap(size: "Tensor", n_rel: "Tensor") -> "Tensor":
    """Compute AP_s, equation 62 of TALR's supplement: sum_d c+_d / N+ * (C+_{d-1} + C+_d + 1) / (C_{d-1} + C_d + 1).

    ``size`` and ``n_rel`` (n_queries, n_bins) are c and c+: soft counts of items and relevant items in each tie,
    nearest first; C is cumulative. A query without relevant items has 0.
    """
    before, rel_before = size.cumsum(dim=1) - size, n_rel.cumsum(dim=1) - n_rel
    precision = (2 * rel_before + n_rel + 1) / (2 * before + size + 1)
    return (n_rel * precision).sum(dim=1) / _n_relevant(n_rel)


def full_ap(size: "Tensor", n_rel: "Tensor") -> "Tensor":
    """Compute the relaxation that equals tie-aware AP on whole counts, and is finite on all others.

    It is sum_d c+_d / N+ * [(C+_{d-1} + 1) l + (c+_d - 1) k], where l is the mean of 1/rank over a tie's ranks and k =
    (1 - (C + 1) l) / (c - 1), C = C_{d-1}. TALR's equation 11 puts logarithms for l, which has poles at C = 0 and c =
    1; differences of digamma, l = (psi(C + c + 1) - psi(C + 1)) / c, have none. Where c or c - 1 is nearly 0, their
    series are used. Arguments are those of `simplified_ap`.
    """
    from torch.special import digamma, polygamma

    before, rel_before = size.cumsum(dim=1) - size, n_rel.cumsum(dim=1) - n_rel
    is_tiny, is_one = size < 1e-4, (size - 1).abs() < 1e-3
    inverse: Tensor = (digamma(before + size + 1) - digamma(before + 1)) / size.where(~is_tiny, 1.0)
    start, width = before[is_tiny] + 1, size[is_tiny]
    inverse = inverse.masked_scatter(is_tiny, polygamma(1, start) + width * polygamma(2, start) / 2)
    slope: Tensor = (1 - (before + 1) * inverse) / (size - 1).where(~is_one, 1.0)
    start, width = before[is_one], size[is_one]
    terms = [polygamma(n, start + 2) * (width - 1) ** (n - 1) / factorial(n) for n in (1, 2, 3)]
    slope = slope.masked_scatter(is_one, (1 - (start + 1) * sum(terms)) / width)
    return (n_rel * ((rel_before + 1) * inverse + (n_rel - 1) * slope)).sum(dim=1) / _n_relevant(n_rel)


def _n_relevant(n_rel: "Tensor") -> "Tensor":
    total = n_rel.sum(dim=1)
    return total.where(total > 0, 1.0)  # without relevant items the numerator is 0


@dataclass(eq=False, repr=False, kw_only=True)
class TALRAP(_TALR):
    """Tie-aware learning to rank for average precision [1]_.

    Learns from items that are relevant or not: a level above 0 counts as relevant, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    relaxation : {"simplified", "full"}, default="simplified"
        AP_s of the supplement, which the authors use, or a form that is exact on whole counts.
    alpha : float, default=1
        Steepness of the tanh that relaxes codes; the authors' gamma is 2 alpha.
    continuation : int, default=0
        How often ``alpha`` doubles during training, along the schedule of `HashNet`.
    n_bins : int, optional
        Intervals of the histogram; 0 for one per bit. By default half the bits, at least 8, at most 16 or the bits.
    learning_rate : float, default=0.3
        Initial learning rate.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    Each item of a batch is a query to the others; a query without relevant ones counts as 0. Maximises the
    mean over queries. ``presets["paper"]`` has the authors' settings for CIFAR-10, meant for a whole network
    and plain activations. Their released gradient lacks a factor 2 between bins of different distance; this one
    agrees with finite differences, and training differs little.

    On cifar10-gist-unlabelled, where distances define levels, itq has a higher NDCG, though a lower AP.

    References
    ----------
    .. [1] K. He, F. Cakir, S. A. Bargal, S. Sclaroff, "Hashing as Tie-Aware Learning to Rank", CVPR 2018,
       arXiv:1705.08562.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> TALRAP(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    learning_rate: float = 0.3
    weight_decay: float = 2e-3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "scaling": "none",
            "epochs": 50,
            "batch_size": 250,
            "learning_rate": 0.01,
            "halve_every": 0,
            "weight_decay": 5e-4,
            "decay_items": None,
            "alpha": 0.5,
            "head": "linear",
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.1,
            "n_bins": lambda n_bits: n_bits // 2 if n_bits >= 32 else n_bits,
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        histogram = self._histogram(batch, batch.levels > 0, 2)
        relaxed = full_ap if self.relaxation == "full" else simplified_ap
        return -relaxed(histogram.sum(dim=1), histogram[:, 1]).mean()

"""MIHash: mutual information between distances and relevance."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.methods._histogram_losses import _Ranked

if TYPE_CHECKING:
    from torch import Tensor


def mutual_information(histogram: "Tensor") -> "Tensor":
    """Compute H(D) - H(D | C) in bits from counts (n_queries, 2, n_bins + 1) of irrelevant and relevant items.

    If all items are of one kind the result is 0.
    """
    sizes = histogram.sum(dim=2).clamp(min=1e-12)  # (n_queries, 2)
    shares = sizes / sizes.sum(dim=1, keepdim=True)
    conditional = _entropy(histogram / sizes[:, :, None])  # (n_queries, 2)
    marginal = _entropy((histogram / sizes.sum(dim=1)[:, None, None]).sum(dim=1))
    has_both = (sizes > 0.5).all(dim=1)  # of whole counts, up to rounding
    return (marginal - (shares * conditional).sum(dim=1)) * has_both


def _entropy(p: "Tensor") -> "Tensor":
    return -(p * p.clamp(min=1e-12).log2()).sum(dim=-1)  # the gradient at 0 stays finite


@dataclass(eq=False, repr=False, kw_only=True)
class MIHash(_Ranked):
    """Hashing with mutual information [1]_, by batches [2]_.

    Learns from items that are relevant or not: a level above 0 counts as relevant, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    alpha : float, default=2
        Steepness of the tanh that relaxes codes; the authors' gamma (``sigmf``) is 2 alpha.
    continuation : int, default=0
        How often ``alpha`` doubles during training, along the schedule of `HashNet`.
    n_bins : int, optional
        Intervals of the histogram; 0 for one per bit. By default half the bits, at least 8, at most 16 or the
        bits: with more, distances within a batch are mostly noise (measured at 48 bits on batches of 100).

    Notes
    -----
    Each item of a batch is a query to the others. Maximises the mean over queries of
    I = H(p) - pi+ H(p+) - pi- H(p-), with p+ and p- the distances of relevant and irrelevant items as
    soft histograms, and pi their shares. ``presets["paper"]`` has the authors' settings for features.

    On corel5k, whose labels are many and rare, AP and NDCG at 32 to 64 bits are lower than those of all other networks
    that learn from labels, and longer codes do not raise AP. Where distances define levels, itq's NDCG is as high or
    higher, though its AP is lower.

    References
    ----------
    .. [1] F. Cakir, K. He, S. A. Bargal, S. Sclaroff, "MIHash: Online Hashing with Mutual Information",
       ICCV 2017, arXiv:1703.08919.
    .. [2] F. Cakir, K. He, S. A. Bargal, S. Sclaroff, "Hashing with Mutual Information", TPAMI 2019, arXiv:1803.00974.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> MIHash(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    alpha: float = 2.0

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "head": "linear",
            "scaling": "norm",
            "epochs": 100,
            "learning_rate": 0.1,
            "halve_every": 10,
            "decay_items": None,
            "alpha": 20.0,
            "n_bins": 16,
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        histogram = self._histogram(batch, batch.levels > 0, 2)
        return -mutual_information(histogram).mean()

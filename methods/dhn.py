"""DHN: likelihood of pairs under inner products of tanh outputs, which are pulled to -1 and 1."""

from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over, others

if TYPE_CHECKING:
    from torch import Tensor


def dhn_loss(outputs: "Tensor", similar: "Tensor", quantisation: float) -> "Tensor":
    """Compute the mean cross-entropy of the pairs of a batch, plus the weighted mean over items of log cosh(|z| - 1).

    The diagonal of ``similar`` (n_batch, n_batch) is ignored.
    """
    import torch
    from torch.nn.functional import softplus

    codes = torch.tanh(outputs)
    product = codes @ codes.T
    pairs = softplus(torch.where(similar, -product, product))
    gap = 1 - codes.abs()
    log_cosh = gap + softplus(-2 * gap) - log(2)
    return mean_over(pairs, others(similar)) + quantisation * log_cosh.sum(dim=1).mean()


@dataclass(eq=False, repr=False, kw_only=True)
class DHN(LearnedHash):
    """Deep hashing network [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    quantisation : float, default=0.1
        Weight lambda of the quantisation loss.

    Notes
    -----
    With z = tanh(u) and P(s_ij = 1) = sigmoid(z_i . z_j), the loss is the mean over the pairs of a batch of log(1 +
    exp(z_i . z_j)) - s_ij z_i . z_j, plus lambda times the mean over items of ``sum_k log cosh(|z_ik| - 1)``. So is the
    first author's code in Caffe, which adds the pairs of an item with itself; ``presets["paper"]`` has its settings for
    NUS-WIDE. The authors' later code in TensorFlow uses cosines times 10, weights similar pairs up, and leaves the
    quantisation loss out; other codes use z_i . z_j / 2 with cached outputs.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher NDCG; on cifar10-gist-unlabelled only up to 32 bits.

    References
    ----------
    .. [1] H. Zhu, M. Long, J. Wang, Y. Cao, "Deep Hashing Network for Efficient Similarity Retrieval", AAAI 2016.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DHN(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    quantisation: float = setting(0.1, real(0), tunable=(0.001, 0.01, 0.1, 1.0, 10.0))

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 61,
            "batch_size": 64,
            "learning_rate": 2e-4,
            "halve_every": 2,
            "decay_items": None,
            "bias_multiplier": 2.0,
            "pretrained_multiplier": 0.1,
            "head": "linear",
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return dhn_loss(batch.outputs, batch.levels > 0, self.quantisation)

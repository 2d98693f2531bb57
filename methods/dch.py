"""DCH: a Cauchy distribution of pairwise distances, which brings similar items within a few bits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over, others

if TYPE_CHECKING:
    from torch import Tensor

_LEAST = 1e-6  # smallest distance, as a share of the bits: dissimilar pairs at 0 would cost infinity


def dch_loss(outputs: "Tensor", similar: "Tensor", gamma: float, quantisation: float) -> "Tensor":
    """Compute the Cauchy cross-entropy of the pairs of a batch and the Cauchy quantisation loss.

    It is the mean over ``similar`` pairs (n_batch, n_batch), plus the mean over dissimilar ones, plus the weighted mean
    over items; the diagonal is ignored.
    """
    from torch.nn.functional import normalize

    n_bits = outputs.shape[1]
    unit = normalize(outputs)
    distance = (n_bits / 2 * (1 - unit @ unit.T)).clamp(min=_LEAST * n_bits)
    other = others(similar)
    near = mean_over((distance / gamma).log1p(), similar & other)
    far = mean_over((gamma / distance).log1p(), ~similar & other)
    to_corner = n_bits / 2 * (1 - unit.abs().sum(dim=1) / n_bits**0.5)
    loss: Tensor = near + far + quantisation * (to_corner.clamp(min=0) / gamma).log1p().mean()
    return loss


@dataclass(eq=False, repr=False, kw_only=True)
class DCH(LearnedHash):
    """Deep Cauchy hashing [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    gamma : float, default=20
        Scale of the Cauchy distribution, in bits; it suits codes of 16 to 64.
    quantisation : float, default=0.1
        Weight lambda of the quantisation loss.

    Notes
    -----
    With d = n_bits / 2 (1 - cos(u_i, u_j)) a pair is similar with probability gamma / (gamma + d). A similar pair costs
    log(1 + d / gamma), a dissimilar one log(1 + gamma / d). The paper weights similar pairs by the number of all pairs
    over that of similar ones, and dissimilar pairs likewise. Up to a factor the loss is then the mean over similar
    pairs plus the mean over dissimilar ones, as here, plus lambda times the mean of ``log(1 + d(|u_i|, 1) / gamma)``.
    Items without a class are similar to none. Where distances define levels, all pairs beyond the neighbours are
    dissimilar, whatever their distance. The authors' code differs from the paper: it weights only similar pairs, so
    dissimilar ones count by their share of all pairs; d is the squared distance of tanh outputs; and the quantisation
    loss is off. ``presets["paper"]`` has its 2,000 steps on 5,000 items, at a constant rate.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher NDCG, though on cifar10-gist-unlabelled a lower AP. On digits-unlabelled at 64 bits, random
    hyperplanes (lsh) have a higher AP and NDCG.

    References
    ----------
    .. [1] Y. Cao, M. Long, B. Liu, J. Wang, "Deep Cauchy Hashing for Hamming Space Retrieval", CVPR 2018.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DCH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    gamma: float = setting(20.0, real(0, closed="neither"), tunable=(2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0))
    quantisation: float = setting(0.1, real(0))
    learning_rate: float = 0.3

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 50,
            "batch_size": 128,
            "learning_rate": 0.05,
            "halve_every": 0,
            "decay_items": None,
            "bias_multiplier": 2.0,
            "pretrained_multiplier": 0.1,
            "head": "linear",
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return dch_loss(batch.outputs, batch.levels > 0, self.gamma, self.quantisation)

"""HashNet: weighted likelihood of pairs, through a tanh of increasing steepness."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over, others

if TYPE_CHECKING:
    from torch import Tensor


def steepness(share: float, last: float) -> float:
    """Compute sqrt(1 + (last^2 - 1) share): from 1 to ``last``, as the ``share`` of training grows from 0 to 1."""
    return float((1 + (last**2 - 1) * share) ** 0.5)


def hashnet_loss(outputs: "Tensor", similar: "Tensor", beta: float, slope: float) -> "Tensor":
    """Compute the mean negative log-likelihood of the similar pairs of a batch plus that of its dissimilar ones.

    Inner products of relaxed codes are multiplied by ``slope``; the diagonal of ``similar`` is ignored.
    """
    import torch
    from torch.nn.functional import softplus

    codes = torch.tanh(beta * outputs)
    x = slope * codes @ codes.T
    other = others(similar)
    return mean_over(softplus(-x), similar & other) + mean_over(softplus(x), ~similar & other)


@dataclass(eq=False, repr=False, kw_only=True)
class HashNet(LearnedHash):
    """HashNet [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    beta : float, default=1.5
        Steepness of the tanh that relaxes codes at the end of training; it starts at 1.
    slope : float, default=10
        Inner products of relaxed codes are multiplied by ``slope / n_bits``.
    learning_rate : float, default=0.3
        Initial learning rate.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    With g = tanh(beta f) and x_ij = slope / n_bits * g_i . g_j, a similar pair costs log(1 + exp(-x_ij)), a dissimilar
    one log(1 + exp(x_ij)). The paper's weights, which balance the two kinds of pairs, make the loss the sum of their
    means. beta is the root of a number that grows in proportion to the share of training done. In the authors' code it
    is sqrt(1 + 0.005 t) after t steps, in stages of 200, which is too steep for long training. ``presets["paper"]`` has
    its settings for ImageNet, 10,000 steps on 10,000 items, but decays biases too. All pairs of a batch count.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher NDCG, though on cifar10-gist-unlabelled a lower AP.

    References
    ----------
    .. [1] Z. Cao, M. Long, J. Wang, P. S. Yu, "HashNet: Deep Learning to Hash by Continuation", ICCV 2017,
       arXiv:1702.00758.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> HashNet(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    beta: float = setting(1.5, real(1), tunable=(1.0, 1.5, 2.5, 5.0, 10.0))
    slope: float = setting(10.0, real(0, closed="neither"), tunable=(2.5, 5.0, 10.0, 20.0, 40.0))
    learning_rate: float = 0.3
    weight_decay: float = 2e-3

    group = "pair-based"
    version = 3  # beta by the share of training done
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "beta": 51**0.5,
            "epochs": 256,
            "batch_size": 256,
            "learning_rate": 2e-3,
            "halve_every": 51,
            "weight_decay": 5e-4,
            "decay_items": None,
            "bias_multiplier": 2.0,
            "head": "linear",
            "pretrained_multiplier": 0.1,
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        beta = steepness(batch.share, self.beta)
        return hashnet_loss(batch.outputs, batch.levels > 0, beta, self.slope / self.n_bits)

"""DPSH: likelihood of pairs under inner products of outputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._pair_losses import logistic_loss, signs

if TYPE_CHECKING:
    from torch import Tensor


def dpsh_loss(outputs: "Tensor", all_outputs: "Tensor", similar: "Tensor", eta: float) -> "Tensor":
    """Compute the negative log-likelihood of the pairs of a batch with all items, per pair.

    ``all_outputs`` (n_items, n_bits) are the last outputs of all items, held constant; ``similar`` (n_batch, n_items)
    includes self-pairs.
    """
    quantisation = (outputs - signs(outputs)).square().sum()
    return (logistic_loss(outputs, all_outputs, similar) + eta * quantisation) / similar.numel()


@dataclass(eq=False, repr=False, kw_only=True)
class DPSH(LearnedHash):
    """Deep pairwise-supervised hashing [1]_.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    eta : float or None, default=1
        Weight of the distance between outputs and their signs. None for n_items / 500, the authors' 10 for the 5,000
        items of CIFAR-10: the likelihood grows with the items too.
    learning_rate : float, default=0.3
        Initial learning rate; see the base class for its bound.

    Notes
    -----
    With theta_ij = u_i . u_j / 2 and P(s_ij = 1) = sigmoid(theta_ij), equation 6 of [1]_ is sum_ij [log(1 +
    exp(theta_ij)) - s_ij theta_ij] + eta times the sum of ``|u_i - sgn(u_i)|^2``. A step pairs the batch with the last
    outputs of all items, held constant, and divides by the number of pairs; an item that was not visited yet has output
    0, and adds no gradient. ``presets["paper"]`` has the settings of the authors' PyTorch code for CIFAR-10, meant for
    a whole network.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher AP and NDCG.

    References
    ----------
    .. [1] W.-J. Li, S. Wang, W.-C. Kang, "Feature Learning Based Deep Supervised Hashing with
       Pairwise Labels", IJCAI 2016, arXiv:1511.03855.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DPSH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    eta: float | None = setting(1.0, real(0), None, tunable=(0.1, 1.0, None, 30.0, 100.0))
    learning_rate: float = 0.3

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 150,
            "batch_size": 128,
            "learning_rate": 0.05,
            "halve_every": 15,
            "weight_decay": 1e-5,
            "decay_items": None,
            "momentum": 0.0,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "eta": 10.0,
            "head": "linear",
        },
    }

    def _loss(self, batch: Batch) -> "Tensor":
        eta = len(batch.all_outputs) / 500 if self.eta is None else self.eta
        return dpsh_loss(batch.outputs, batch.all_outputs, batch.all_levels > 0, eta)

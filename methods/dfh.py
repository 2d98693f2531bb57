"""DFH: pairs, and codes pushed to the discrete centres of their classes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash, shares
from hashbench.learning.loop import Items
from hashbench.method import real, setting
from hashbench.methods._pair_losses import logistic_loss, signs

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


def dfh_loss(
    outputs: "Tensor", all_outputs: "Tensor", similar: "Tensor", codes: "Tensor", margin: float, eta: float
) -> "Tensor":
    """Compute the mean loss of ``similar`` pairs (n_batch, n_items) and others, and the weighted distance to codes."""
    pairs = logistic_loss(outputs, all_outputs, similar, margin) / similar.numel()
    return pairs + eta * (codes - outputs).square().mean()


def update_centres(centres: "Tensor", codes: "Tensor", weights: "Tensor", separation: float) -> None:
    """Set each discrete centre (n_classes, n_bits) in turn to its best value, the others fixed, in place.

    ``codes`` (n_batch, n_bits) should equal ``weights`` (n_batch, n_classes) times the centres, and ``separation``
    keeps these apart. A class without items in the batch moves away from the others.
    """
    pulls, together = weights.T @ codes, weights.T @ weights
    together = together + separation
    for row in range(len(centres)):
        rest = together[row] @ centres - together[row, row] * centres[row]
        centres[row] = signs(pulls[row] - rest)


@dataclass(eq=False, repr=False, kw_only=True)
class DFH(ClassHash):
    """Deep Fisher hashing [1]_.

    Learns from classes, and from pairs that share one or not.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    margin : float, default=0
        Distance from 0 that inner products should have, on the correct side.
    mu : float, default=1
        Weight of the centres in the target codes of outputs.
    nu : float, default=1
        Weight of the term that keeps centres apart.
    eta : float, default=0.5
        Weight of the distance to the codes.
    learning_rate : float, default=0.1
        Initial learning rate; see the base class for its bound.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    With theta_ij = u_i . u_j / 2, u_j the last output of any item, a similar pair costs log(1 + exp(m - theta)),
    another one log(1 + exp(m + theta)), plus eta times the mean of (B - u)^2, B = sgn(u + mu y M) with an item's share
    y of each class. Each step updates the discrete centres M of classes on the batch, class by class: M_c =
    sgn(y_c^T B - sum over the other classes e of M_e (y_e . y_c + nu)). The authors' code leaves the margin out, and so
    do the defaults; ``presets["paper"]`` has its settings, but halves the rate every 15 epochs, where they divide it by
    ten every 50. Items without a class are similar to none and pulled to their own sign; they do not affect centres.

    References
    ----------
    .. [1] Y. Li, W. Pei, Y. Zha, J. van Gemert, "Push for Quantization: Deep Fisher Hashing", BMVC 2019,
       arXiv:1909.00206.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DFH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    margin: float = setting(0.0, real(0))
    mu: float = setting(1.0, real(0))
    nu: float = setting(1.0, real(0))
    eta: float = setting(0.5, real(0), tunable=(0.02, 0.1, 0.5, 2.0, 10.0))
    weight_decay: float = 2e-3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 150,
            "batch_size": 128,
            "learning_rate": 0.01,
            "halve_every": 15,
            "weight_decay": 5e-4,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "head": "linear",
        },
    }

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        super()._begin(items, generator)
        own = torch.nn.Module()
        own.register_buffer("centres", torch.zeros(len(self.classes_), self.n_bits))
        return own

    def _codes(self, batch: Batch) -> "Tensor":
        centres = batch.own.centres.to(batch.outputs)
        return signs(batch.outputs + self.mu * shares(self._of_classes(batch)) @ centres)

    def _loss(self, batch: Batch) -> "Tensor":
        similar = batch.all_levels > 0
        return dfh_loss(batch.outputs, batch.all_outputs, similar, self._codes(batch), self.margin, self.eta)

    def _end_step(self, batch: Batch) -> None:
        update_centres(batch.own.centres, self._codes(batch), shares(self._of_classes(batch)), self.nu)

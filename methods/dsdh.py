"""DSDH: likelihood of pairs, and discrete codes from which a classifier predicts the labels."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash
from hashbench.learning.loop import Items
from hashbench.method import real, setting, whole
from hashbench.methods._pair_losses import logistic_loss, signs

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


def dsdh_loss(outputs: "Tensor", all_outputs: "Tensor", similar: "Tensor", codes: "Tensor", eta: float) -> "Tensor":
    """Compute the negative log-likelihood of the pairs of a batch with all items and the distance to codes, per pair.

    ``all_outputs`` (n_items, n_bits) are the last outputs of all items, held constant; ``similar`` (n_batch, n_items)
    includes self-pairs; ``codes`` (n_batch, n_bits) are those of the batch.
    """
    likelihood = logistic_loss(outputs, all_outputs, similar)
    return (likelihood + eta * (codes - outputs).square().sum()) / similar.numel()


def ridge(codes: "Tensor", classes: "Tensor", penalty: float) -> "Tensor":
    """Compute the linear classifier (n_bits, n_classes) of codes with least squared error plus penalty."""
    import torch

    gram = codes.T @ codes
    gram.diagonal().add_(penalty)
    weights: Tensor = torch.linalg.solve(gram, codes.T @ classes)
    return weights


def update_codes(codes: "Tensor", outputs: "Tensor", classes: "Tensor", weights: "Tensor", ratio: float) -> None:
    """Set each column of the codes (n_items, n_bits) in turn to its best value, the others fixed, in place.

    The best codes minimise the squared error of the classifier plus ``ratio`` times the squared distance to outputs.
    A bit without preference keeps its value.
    """
    pull = classes @ weights.T + ratio * outputs
    gram = weights @ weights.T
    for bit in range(codes.shape[1]):
        others = gram[:, bit].clone()
        others[bit] = 0
        wanted = pull[:, bit] - codes @ others
        codes[:, bit] = wanted.sign().where(wanted != 0, codes[:, bit])


@dataclass(eq=False, repr=False, kw_only=True)
class DSDH(ClassHash):
    """Deep supervised discrete hashing [1]_.

    Learns from classes, and from pairs that share one or not.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    mu : float, optional
        Weight of the classifier's error in the choice of codes. By default eta times ``n_bits``; much smaller ones
        leave all codes at the signs of outputs.
    nu : float, default=0.1
        Weight of the classifier's squared weights.
    eta : float, optional
        Weight of the distance between outputs and codes. By default n_items / 100: the likelihood grows with the items
        too.
    dcc_iter : int, default=10
        Updates of classifier and codes at the end of each epoch.
    learning_rate : float, default=0.3
        Initial learning rate; see the base class for its bound.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    With theta_ij = u_i . u_j / 2, u_j the last output of any item, the objective is sum_ij [log(1 + exp(theta_ij)) -
    s_ij theta_ij] + mu ``sum_i |y_i - W^T b_i|^2`` + nu ``|W|^2`` + eta ``sum_i |b_i - u_i|^2``, with an item's classes
    y of 0 and 1. Each step takes a gradient by u, divided by the number of pairs. Each epoch ends with updates for all
    items in turn: W = (B B^T + nu / mu I)^-1 B Y^T, then bit by bit B_k = sgn(P_k - B'^T W' w_k) with P = W Y + eta /
    mu U, where w_k is the row of W of that bit and ' leaves it out (discrete cyclic coordinate descent). In the first
    epoch, codes are the signs of outputs. Items without a class are similar to none and pulled to their own sign.

    The authors' code updates W and B on each batch, from the signs of its outputs. With their weights hardly any code
    differs from these (1 in 10,000 bits on CIFAR-10 features). Their gradient counts a pair from both sides, this one
    from one, so ``presets["paper"]`` has half of their weights (mu 1, nu 0.1, eta 55) and twice their rate; it falls
    from 1e-2 to 1e-6 in 150 epochs. Other codes leave out the pull to B, so that no label but s_ij affects outputs.

    References
    ----------
    .. [1] Q. Li, Z. Sun, R. He, T. Tan, "Deep Supervised Discrete Hashing", NIPS 2017, arXiv:1705.10999.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DSDH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    mu: float | None = setting(None, real(0, closed="neither"), None)
    nu: float = setting(0.1, real(0, closed="neither"))
    eta: float | None = setting(None, real(0, closed="neither"), None, tunable=(2.0, 10.0, None, 150.0, 500.0))
    dcc_iter: int = setting(10, whole(1))
    learning_rate: float = 0.3
    weight_decay: float = 2e-3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 150,
            "batch_size": 128,
            "learning_rate": 0.02,
            "halve_every": 11,
            "weight_decay": 2.5e-4,
            "decay_items": None,
            "momentum": 0.0,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "mu": 0.5,
            "nu": 0.05,
            "eta": 27.5,
            "head": "linear",
        },
    }

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        super()._begin(items, generator)
        own = torch.nn.Module()
        own.register_buffer("codes", torch.zeros(len(items.inputs), self.n_bits))
        return own

    def _eta(self, batch: Batch) -> float:
        return len(batch.all_outputs) / 100 if self.eta is None else self.eta

    def _loss(self, batch: Batch) -> "Tensor":
        codes = batch.own.codes[batch.numbers[batch.rows]]
        codes = codes.where(codes != 0, signs(batch.outputs))
        return dsdh_loss(batch.outputs, batch.all_outputs, batch.all_levels > 0, codes, self._eta(batch))

    def _end_epoch(self, batch: Batch) -> None:
        outputs, classes = batch.all_outputs, self._of_classes(batch, whole=True)
        codes, own_signs, has_class = batch.own.codes[batch.numbers], signs(outputs), classes.any(dim=1)
        eta = self._eta(batch)
        mu = eta * self.n_bits if self.mu is None else self.mu
        outputs, classes = outputs[has_class], classes[has_class]
        labelled = codes.where(codes != 0, own_signs)[has_class]
        for _ in range(self.dcc_iter):
            update_codes(labelled, outputs, classes, ridge(labelled, classes, self.nu / mu), eta / mu)
        own_signs[has_class] = labelled
        batch.own.codes[batch.numbers] = own_signs

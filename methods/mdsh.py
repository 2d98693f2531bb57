"""MDSH: well separated targets, and similar items attracted to each other's past outputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import TargetHash, mean_over_labelled
from hashbench.learning.loop import Items
from hashbench.method import real, setting, whole
from hashbench.methods._pair_losses import blocks

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_LEAST_SHARE = 1e-7  # smallest probability of a class, so that logarithms are finite


def mdsh_loss(outputs: "Tensor", targets: "Tensor", classes: "Tensor", quantisation: float) -> "Tensor":
    """Compute the binary cross-entropy of each class and the quantisation term; items without a class do not count."""
    from torch.nn.functional import normalize, softmax

    codes = outputs.tanh()
    logits = outputs.shape[1] ** 0.5 * normalize(codes) @ normalize(targets).T
    share = softmax(logits, dim=1).clamp(_LEAST_SHARE, 1 - _LEAST_SHARE)
    entropy = -(classes * share.log() + (1 - classes) * (-share).log1p()).mean(dim=1)
    return mean_over_labelled(entropy + quantisation * (codes.abs() - 1).square().mean(dim=1), classes)


def attraction(outputs: "Tensor", averages: "Tensor", similar: "Tensor") -> "Tensor":
    """Compute the mean of log(1 + exp((1 - cos(tanh(u_i), a_j)) / 2)) over similar pairs of a batch and averages.

    Averages are held constant, and are taken in blocks.
    """
    import torch
    from torch.nn.functional import normalize, softplus

    directions = normalize(outputs.tanh())
    fixed = directions.detach()
    total, slope = outputs.new_zeros(()), torch.zeros_like(fixed)
    with torch.no_grad():
        for block, are_similar in blocks(normalize(averages), similar):
            x = (fixed @ block.T).mul_(-0.5).add_(0.5)
            chosen = x[are_similar]
            total += softplus(chosen).sum()
            slope -= x.zero_().masked_scatter_(are_similar, chosen.sigmoid() / 2) @ block
    gradient = ((directions - fixed) * slope).sum()  # 0 in value
    return (total + gradient) / similar.sum().clamp(min=1)


@dataclass(eq=False, repr=False, kw_only=True)
class MDSH(TargetHash):
    """Minimal-distance-separated hash centres [1]_.

    Learns from classes. ``targets`` is that of `hashbench.learning.classes.TargetHash`, all other parameters are those
    of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    pair_weight : float, default=1
        Weight beta of the pairs of similar items.
    pairs_after : int, default=9
        Epochs before pairs count; they never do if ``epochs`` is not larger.
    quantisation : float, default=1e-4
        Weight of the quantisation term.

    Notes
    -----
    With t = tanh(u), outputs u normalised over the batch, and p the softmax of sqrt(n_bits) cos(t, h_c), the loss is
    the mean over items and classes of -y log p - (1 - y) log(1 - p), plus beta times the mean over similar pairs of
    log(1 + exp((1 - cos(t_i, a_j)) / 2)), plus ``quantisation`` times the mean of ``(|t| - 1)^2``. The authors' a_j are
    the t of a momentum encoder; here they are running averages of an item's t, 0.9 of the previous average and 0.1 of
    the new t. The authors optimise targets; ``max-distance`` reaches the same least distance.
    They clip gradients at norm 5. This class does not: with the default settings norms stay far below (at most 0.6 on
    digits). ``presets["paper"]`` has their settings, but 100 epochs: they stop by the score of the queries.

    References
    ----------
    .. [1] L. Wang, Y. Pan, C. Liu, H. Lai, J. Yin, Y. Liu, "Deep Hashing with Minimal-Distance-Separated Hash
       Centers", CVPR 2023.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> MDSH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    targets: str = "max-distance"
    pair_weight: float = setting(1.0, real(0), tunable=(0.0, 0.3, 1.0, 3.0, 10.0))
    pairs_after: int = setting(9, whole(0))
    quantisation: float = setting(1e-4, real(0))
    learning_rate: float = 0.3

    version = 3  # similar pairs by tanh outputs
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 100,
            "batch_size": 64,
            "optimizer": "rmsprop",
            "learning_rate": 1e-5,
            "halve_every": 0,
            "weight_decay": 1e-5,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "head": "linear",
        }
    }

    @property
    def _normalises(self) -> bool:
        return True

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        own = super()._begin(items, generator)
        own.register_buffer("averages", torch.randn(len(items.inputs), self.n_bits, generator=generator))
        return own

    def _loss(self, batch: Batch) -> "Tensor":
        classes = self._of_classes(batch)
        loss = mdsh_loss(batch.outputs, batch.own.targets.to(classes), classes, self.quantisation)
        if not self.pair_weight or batch.epoch < self.pairs_after:
            return loss
        averages = batch.own.averages[batch.numbers].to(classes)
        return loss + self.pair_weight * attraction(batch.outputs, averages, batch.all_levels > 0)

    def _end_step(self, batch: Batch) -> None:
        rows = batch.numbers[batch.rows]
        batch.own.averages[rows] = 0.9 * batch.own.averages[rows] + 0.1 * batch.outputs.detach().tanh()

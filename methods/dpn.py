"""DPN: outputs pushed away from zero, to the side of the target of their class."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import TargetHash, mean_over_labelled
from hashbench.learning.targets import least_distance
from hashbench.method import real, setting, whole
from hashbench.methods._pair_losses import signs

if TYPE_CHECKING:
    from torch import Tensor


def dpn_loss(outputs: "Tensor", targets: "Tensor", classes: "Tensor", margin: float) -> "Tensor":
    """Compute the mean over items of max(m - u T, 0), summed over an item's classes and averaged over bits.

    ``targets`` (n_classes, n_bits) are -1 and +1; an item without ``classes`` (n_batch, n_classes) does not count.
    """
    for_one, for_none = (
        classes @ (targets > 0).to(classes),
        classes @ (targets < 0).to(classes),
    )  # numbers of classes, per bit
    costs = for_one * (margin - outputs).clamp(min=0) + for_none * (margin + outputs).clamp(min=0)
    return mean_over_labelled(costs.mean(dim=1), classes)


@dataclass(eq=False, repr=False, kw_only=True)
class DPN(TargetHash):
    """Deep polarized network [1]_.

    Learns from classes; each class of an item pulls it to its target. ``targets`` is that of
    `hashbench.learning.classes.TargetHash`, all other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    margin : float, default=2
        Distance from zero that an output should have.
    adapt_every : int, default=0
        Epochs between updates that set the target of each class to the majority of its codes (DPN-A); 0 for never.
        An update that would make two targets equal is skipped.

    Notes
    -----
    An item of class c costs max(m - u_k T_ck, 0), mean over bits k; the authors take the sum, so
    their rate corresponds to n_bits times as much here. The authors' targets are ``bernoulli``; they report one or two
    hundredths more AP for ``max-distance``. The ternary codes of their tests are left out: bits here have two values.
    ``presets["paper"]`` has the settings of an author's later code, but halves the rate every 30 epochs: to an eighth
    by epoch 100, where the authors divide it by ten once.

    References
    ----------
    .. [1] L. Fan, K. W. Ng, C. Ju, T. Zhang, C. S. Chan, "Deep Polarized Network for Supervised Learning of Accurate
       Binary Hashing Codes", IJCAI 2020.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DPN(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    margin: float = setting(2.0, real(0, closed="neither"), tunable=(0.25, 0.5, 1.0, 2.0, 4.0, 8.0))
    adapt_every: int = setting(0, whole(0))
    learning_rate: float = 0.3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 200,
            "batch_size": 256,
            "learning_rate": lambda n_bits: 1e-4 * n_bits,
            "halve_every": 30,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "head": "linear",
            "targets": "bernoulli",
            "margin": 1.0,
            "weight_decay": lambda n_bits: 5e-4 / n_bits,  # the authors sum over bits
            "decay_items": None,
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return dpn_loss(batch.outputs, batch.own.targets.to(batch.outputs), self._of_classes(batch), self.margin)

    def _end_epoch(self, batch: Batch) -> None:
        if not self.adapt_every or (batch.epoch + 1) % self.adapt_every:
            return
        votes = self._of_classes(batch, whole=True).T @ signs(batch.all_outputs)
        adapted = votes.sign().where(votes != 0, batch.own.targets)
        if least_distance(adapted.cpu().numpy()) > 0:
            batch.own.targets.copy_(adapted)

    def _end(self, own: Any) -> None:
        self.targets_ = own.targets.cpu().numpy().astype("int8")

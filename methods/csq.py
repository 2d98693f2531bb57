"""CSQ: central similarity quantization, codes pulled to the centre of their class."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import TargetHash, mean_over_labelled
from hashbench.method import real, setting

if TYPE_CHECKING:
    from torch import Tensor


def csq_loss(outputs: "Tensor", targets: "Tensor", classes: "Tensor", quantisation: float) -> "Tensor":
    """Compute the central similarity loss with its quantisation term; ``targets`` (n_batch, n_bits) is one per item."""
    from torch.nn.functional import softplus

    central = softplus(-2 * targets * outputs).mean(dim=1)
    apart = (outputs.tanh().abs() - 1).square().mean(dim=1)
    return mean_over_labelled(central + quantisation * apart, classes)


@dataclass(eq=False, repr=False, kw_only=True)
class CSQ(TargetHash):
    """Central similarity quantization [1]_.

    Learns from classes. The target of an item of several classes is the bitwise majority of theirs; ties are broken by
    random bits, the same for all items. ``targets`` is that of `hashbench.learning.classes.TargetHash`, all other
    parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    quantisation : float, default=1e-4
        Weight lambda of the quantisation term.
    learning_rate : float, default=0.3
        Initial learning rate.

    Notes
    -----
    With t = tanh(u) and the target T of an item, the loss is the cross-entropy of (t + 1) / 2 and (T + 1) / 2, mean
    over bits, computed as log(1 + exp(-2 T u)), plus lambda times the mean of ``(|t| - 1)^2``, the quantisation of the
    authors' code. Their pair term has weight 0 in all their commands, and is left out. The authors' targets are the
    first rows of a Hadamard matrix, in which bits repeat; see `hashbench.learning.targets`. ``presets["paper"]`` has
    their settings for AlexNet, but halves the rate every 19 epochs, where they multiply it by 0.7 every 10.

    References
    ----------
    .. [1] L. Yuan, T. Wang, X. Zhang, F. E. H. Tay, Z. Jie, W. Liu, J. Feng, "Central Similarity Quantization for
       Efficient Image and Video Retrieval", CVPR 2020, arXiv:1908.00347.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> CSQ(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    quantisation: float = setting(1e-4, real(0), tunable=(0.0, 1e-4, 1e-3, 1e-2, 0.1, 1.0))
    learning_rate: float = 0.3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 90,
            "batch_size": 64,
            "optimizer": "adam",
            "learning_rate": 1e-4,
            "halve_every": 19,
            "weight_decay": 0.0,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.01,
            "quantisation": 1e-3,
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        classes = self._of_classes(batch)
        return csq_loss(batch.outputs, self._targets_of(batch, classes), classes, self.quantisation)

"""IDHN: pairs by the cosine of their labels, those of partly equal labels by a squared error."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash, mean_over_labelled
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over, others

if TYPE_CHECKING:
    from torch import Tensor


def idhn_loss(outputs: "Tensor", classes: "Tensor", slope: float, gamma: float, quantisation: float) -> "Tensor":
    """Compute the mean loss of the pairs of a batch by the cosines of their ``classes``, plus the quantisation loss.

    ``classes`` (n_batch, n_classes) are 0 and 1; items without a class do not count.
    """
    import torch
    from torch.nn.functional import binary_cross_entropy_with_logits, normalize, softsign

    codes = softsign(outputs)
    n_bits = outputs.shape[1]
    unit, is_labelled = normalize(classes), classes.any(dim=1)
    cosines, product = unit @ unit.T, codes @ codes.T / n_bits
    hard = binary_cross_entropy_with_logits(slope * product, cosines, reduction="none")
    soft = gamma * n_bits * ((1 + product) / 2 - cosines).square()
    pairs = torch.where((cosines < 0.01) | (cosines > 0.99), hard, soft)
    counts = others(classes) & is_labelled & is_labelled[:, None]
    return mean_over(pairs, counts) + quantisation * mean_over_labelled(1 - codes.abs().mean(dim=1), classes)


@dataclass(eq=False, repr=False, kw_only=True)
class IDHN(ClassHash):
    """Improved deep hashing with soft pairwise similarity [1]_, for items of several classes.

    Learns from pairs, by the share of classes that they have in common.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    slope : float, default=10
        In the cross-entropy, inner products of relaxed codes are multiplied by ``slope / n_bits``; the authors take 5.
    gamma : float, default=0.1
        Weight of pairs with some classes in common; without effect if each item has one class.
    quantisation : float, default=0.1
        Weight of the quantisation loss.

    Notes
    -----
    With t = u / (1 + ``|u|``), p = t_i . t_j / n_bits and s the cosine of two rows of labels, a pair of equal labels
    or of none in common costs log(1 + exp(slope p)) - s slope p, any other pair gamma n_bits ((1 + p) / 2 - s)^2. The
    loss is the mean over the pairs of a batch, plus ``quantisation`` times the mean of ``||t| - 1|``. As in the
    authors' code, s below 0.01 or above 0.99 counts as none or all in common. The authors add the pairs of an item
    with itself; they do not count here, and neither do items without a class, whose cosine is not defined. Other codes
    use t_i . t_j / 2 with cached outputs. ``presets["paper"]`` has the authors' settings for MIRFlickr.

    On corel5k, the best ``slope`` depends on the code length. With 40, chosen by trials at 32 bits, AP is 0.25 at 16
    bits and 0.33 at 48; with 10, it is 0.30 and 0.27. The 0.25 is among the lowest of all networks that learn from
    labels.

    References
    ----------
    .. [1] Z. Zhang, Q. Zou, Y. Lin, L. Chen, S. Wang, "Improved Deep Hashing with Soft Pairwise Similarity for
       Multi-Label Image Retrieval", IEEE Transactions on Multimedia, 2020, arXiv:1803.02987.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> IDHN(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    slope: float = setting(10.0, real(0, closed="neither"), tunable=(2.5, 5.0, 10.0, 20.0, 40.0))
    learning_rate: float = 0.3
    gamma: float = setting(0.1, real(0))
    quantisation: float = setting(0.1, real(0))

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 100,
            "batch_size": 128,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "halve_every": 16,
            "weight_decay": 0.0,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "slope": 5.0,
            "head": "linear",
        }
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return idhn_loss(batch.outputs, self._of_classes(batch), self.slope, self.gamma, self.quantisation)

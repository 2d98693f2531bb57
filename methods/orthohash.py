"""OrthoHash: one cosine loss that both classifies by fixed targets and binarises."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import TargetHash, mean_over_labelled, shares
from hashbench.method import choice, real, setting

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_COSINE = 0.99999  # beyond it the gradient of the angle is unbounded


def orthohash_loss(
    outputs: "Tensor", targets: "Tensor", classes: "Tensor", scale: float, margin: float, form: str
) -> "Tensor":
    """Compute the cross-entropy of classes by ``scale`` times cosines to their targets (n_classes, n_bits).

    The margin is subtracted from the cosine of an item's own classes, or added to its angle if ``form`` is "arc".
    """
    from torch.nn.functional import log_softmax, normalize

    cosines = normalize(outputs) @ normalize(targets).T
    if form == "arc":
        angles = cosines.clamp(-_LARGEST_COSINE, _LARGEST_COSINE).arccos()
        logits = scale * (angles + margin * classes).cos()
    else:
        logits = scale * (cosines - margin * classes)
    return mean_over_labelled(-(shares(classes) * log_softmax(logits, dim=1)).sum(dim=1), classes)


@dataclass(eq=False, repr=False, kw_only=True)
class OrthoHash(TargetHash):
    """OrthoHash [1]_.

    Learns from classes. ``targets`` is that of `hashbench.learning.classes.TargetHash`, all other parameters are those
    of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    margin : float, default=0.4
        m, by which the cosine to an item's own class should exceed the others.
    scale : float, optional
        s, factor of cosines; by default sqrt(n_bits), as in the paper.
    form : {"cosine", "arc"}, default="cosine"
        Whether the margin is subtracted from the cosine, or added to the angle.
    batch_norm : bool, default=True
        Whether outputs are normalised over the batch; it becomes part of the last layer when training ends.

    Notes
    -----
    With logits s (cos(v, o_c) - m y_c) the loss is their cross-entropy with an item's classes, several of which share
    it. The nearer v is to a target the nearer it is to a code, so there is no quantisation term. The authors' code has
    s = 8 at any length and ``bernoulli`` targets, as does ``presets["paper"]``, which halves the rate every 24 epochs:
    to an eighth by epoch 80, where the authors divide it by ten once.

    References
    ----------
    .. [1] J. T. Hoe, K. W. Ng, T. Zhang, C. S. Chan, Y.-Z. Song, T. Xiang, "One Loss for All: Deep Hashing with a
       Single Cosine Similarity based Learning Objective", NeurIPS 2021, arXiv:2109.14449.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> OrthoHash(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    margin: float = setting(0.4, real(0), tunable=(0.0, 0.2, 0.4, 0.6, 0.8))
    scale: float | None = setting(None, real(0, closed="neither"), None)
    form: str = setting("cosine", choice("arc", "cosine"))
    batch_norm: bool = setting(True, bool)
    learning_rate: float = 0.3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 100,
            "batch_size": 256,
            "optimizer": "adam",
            "learning_rate": 1e-4,
            "halve_every": 24,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.1,
            "head": "linear",
            "targets": "bernoulli",
            "scale": 8.0,
            "margin": 0.2,
        }
    }

    @property
    def _normalises(self) -> bool:
        return self.batch_norm

    def _loss(self, batch: Batch) -> "Tensor":
        scale = self.n_bits**0.5 if self.scale is None else self.scale
        targets = batch.own.targets.to(batch.outputs)
        return orthohash_loss(batch.outputs, targets, self._of_classes(batch), scale, self.margin, self.form)

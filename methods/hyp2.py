"""HyP2: proxies of classes, and distance between items that share no class."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash
from hashbench.learning.loop import Items
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_LINEAR_CODES = {  # by code length: the largest least distance of a linear code of 2, 4, 8, ..., 256 words
    12: (12, 8, 6, 6, 4, 4, 4, 3),
    16: (16, 10, 8, 8, 8, 6, 6, 5),
    20: (20, 13, 11, 10, 9, 8, 8, 8),
    24: (24, 16, 13, 12, 12, 10, 10, 8),
    32: (32, 21, 18, 16, 16, 16, 14, 13),
    36: (36, 24, 20, 18, 17, 16, 16, 16),
    48: (48, 32, 27, 24, 24, 24, 22, 22),
    64: (64, 42, 36, 33, 32, 32, 32, 29),
    96: (96, 64, 54, 50, 48, 48, 48, 46),
    128: (128, 85, 72, 68, 64, 64, 64, 64),
}


def default_threshold(n_bits: int, n_classes: int) -> float:
    """Return the cosine 1 - 2 d / n_bits of the least distance d of a linear code with as many words as classes.

    Lengths between those of the table use the next shorter one, lengths below 12 use 12; above 256 classes, 256.
    """
    length = max((length for length in _LINEAR_CODES if length <= n_bits), default=min(_LINEAR_CODES))
    distances = _LINEAR_CODES[length]
    return 1 - 2 * distances[min((n_classes - 1).bit_length(), len(distances)) - 1] / length


def hyp2_loss(
    outputs: "Tensor", proxies: "Tensor", classes: "Tensor", threshold: float, pair_weight: float
) -> "Tensor":
    """Compute the hypersphere loss of ``proxies`` (n_classes, n_bits) and of pairs that share no class.

    Cosines above ``threshold`` cost where classes differ. Items without a class do not count; the mean of nothing is 0.
    """
    from torch.nn.functional import normalize

    unit, counts = normalize(outputs), classes.sum(dim=1)
    cosines = unit @ normalize(proxies).T
    is_own = classes > 0
    near = mean_over(1 - cosines, is_own)
    far = mean_over((cosines - threshold).clamp(min=0), ~is_own & (counts > 0)[:, None])
    has_several = counts > 1
    apart = has_several & has_several[:, None] & (classes @ classes.T == 0)
    return near + far + pair_weight * mean_over((unit @ unit.T - threshold).clamp(min=0), apart)


@dataclass(eq=False, repr=False, kw_only=True)
class HyP2(ClassHash):
    """HyP2 loss [1]_, for items of several classes.

    Learns from classes. If each item has one class there are no pairs, only proxies.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    threshold : float, optional
        zeta, the cosine above which items and proxies of other classes cost. By default that of the best linear code
        with as many words as classes.
    pair_weight : float, default=0.5
        Weight beta of the pairs of items, each of several classes, that share none.

    Notes
    -----
    With proxies P, which are trained too, and c = cos(u, P), the loss is the mean of 1 - c over an item's classes, plus
    that of max(c - zeta, 0) over the others, plus beta times that of max(cos(u_i, u_j) - zeta, 0) over pairs. No term
    pulls outputs to -1 and +1. ``presets["paper"]`` has the authors' settings for AlexNet, whose layers learn at half
    the rate of proxies.

    References
    ----------
    .. [1] C. Xu, Z. Chai, Z. Xu, C. Yuan, Y. Fan, J. Wang, "HyP2 Loss: Beyond Hypersphere Metric Space for Multi-label
       Image Retrieval", ACM MM 2022, arXiv:2208.06866.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> HyP2(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    threshold: float | None = setting(None, real(-1, 1), None, tunable=(-0.25, 0.0, None, 0.5))
    pair_weight: float = setting(0.5, real(0))
    learning_rate: float = 0.3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 100,
            "batch_size": 100,
            "learning_rate": 0.02,
            "halve_every": 10,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.5,
            "head": "linear",
        }
    }

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        super()._begin(items, generator)
        own = torch.nn.Module()
        n_classes = len(self.classes_)
        drawn = torch.randn(n_classes, self.n_bits, generator=generator)
        own.proxies = torch.nn.Parameter((2 / n_classes) ** 0.5 * drawn)
        return own

    def _loss(self, batch: Batch) -> "Tensor":
        threshold = default_threshold(self.n_bits, len(self.classes_)) if self.threshold is None else self.threshold
        return hyp2_loss(batch.outputs, batch.own.proxies, self._of_classes(batch), threshold, self.pair_weight)

"""HyP2: proxies of classes, and pairs that share none kept apart."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash
from hashbench.learning.loop import Items
from hashbench.method import real, setting
from hashbench.methods._pair_losses import mean_over

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_LINEAR_CODES = {  # the best least distance of linear codes of a length, for 2, 4, 8, ..., 256 words
    **{12: (12, 8, 6, 6, 4, 4, 4, 3), 16: (16, 10, 8, 8, 8, 6, 6, 5), 20: (20, 13, 11, 10, 9, 8, 8, 8)},
    **{24: (24, 16, 13, 12, 12, 10, 10, 8), 32: (32, 21, 18, 16, 16, 16, 14, 13), 36: (36, 24, 20, 18, 17, 16, 16, 16)},
    **{48: (48, 32, 27, 24, 24, 24, 22, 22), 64: (64, 42, 36, 33, 32, 32, 32, 29)},
    **{96: (96, 64, 54, 50, 48, 48, 48, 46), 128: (128, 85, 72, 68, 64, 64, 64, 64)},
}


def default_threshold(n_bits: int, n_classes: int) -> float:
    """Give the cosine 1 - 2 d / n_bits of codes that differ in d bits, as many as linear codes of all classes can.

    For other lengths than 12, 16, 20, 24, 32, 36, 48, 64, 96 and 128 that of the next shorter one of these, or of 12;
    for more than 256 classes that of 256.
    """
    known = max((length for length in _LINEAR_CODES if length <= n_bits), default=min(_LINEAR_CODES))
    of_words = _LINEAR_CODES[known]
    return 1 - 2 * of_words[min((n_classes - 1).bit_length(), len(of_words)) - 1] / known


def hyp2_loss(
    outputs: "Tensor", proxies: "Tensor", classes: "Tensor", threshold: float, pair_weight: float
) -> "Tensor":
    """Compute the hypersphere loss of proxies and of pairs that share no class.

    Parameters
    ----------
    outputs : Tensor of shape (n_batch, n_bits)
        Outputs of the batch.
    proxies : Tensor of shape (n_classes, n_bits)
        P.
    classes : Tensor of shape (n_batch, n_classes)
        0 and 1; items without any do not count.
    threshold : float
        zeta, the cosine above which what should differ costs.
    pair_weight : float
        Weight of the pairs.

    Returns
    -------
    Tensor
        A scalar; the mean of nothing is 0.
    """
    from torch.nn.functional import normalize

    unit, counts = normalize(outputs), classes.sum(dim=1)
    cosines = unit @ normalize(proxies).T
    mine = classes > 0
    near = mean_over(1 - cosines, mine)
    far = mean_over((cosines - threshold).clamp(min=0), ~mine & (counts > 0)[:, None])
    has_several = counts > 1
    apart = has_several & has_several[:, None] & (classes @ classes.T == 0)
    return near + far + pair_weight * mean_over((unit @ unit.T - threshold).clamp(min=0), apart)


@dataclass(eq=False, repr=False, kw_only=True)
class HyP2(ClassHash):
    """HyP2 loss [1]_, for items of several classes.

    Learns from classes; with one an item there are no pairs, and only proxies are left.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    threshold : float, optional
        zeta, the cosine above which what should differ costs; by default that of the best linear code with as many
        words as there are classes.
    pair_weight : float, default=0.5
        Weight beta of the pairs of items, each of several classes, that share none.
    learning_rate : float, default=0.3
        Of stochastic gradient descent.

    Notes
    -----
    With proxies P, trained along, and c = cos(u, P): the mean of 1 - c over an item's classes, plus that of max(c -
    zeta, 0) over the others, plus beta times that of max(cos(u_i, u_j) - zeta, 0) over pairs. Nothing pulls outputs to
    -1 and +1. ``presets["paper"]`` has the authors' settings for AlexNet, whose layers learn at half the rate of
    proxies.

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

    threshold: float | None = setting(None, real(-1, 1), None, tunable=(-0.25, None, 0.5))
    pair_weight: float = setting(0.5, real(0))
    learning_rate: float = setting(0.3, real(0, closed="neither"), tunable=(0.03, 0.1, 0.3))

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            **{"epochs": 100, "batch_size": 100, "learning_rate": 0.02, "halve_every": 10},
            **{"bias_multiplier": 1.0, "pretrained_multiplier": 0.5, "head": "linear"},
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

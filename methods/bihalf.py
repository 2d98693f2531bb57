"""BiHalf: each bit is 1 for half of a batch, and codes of pairs are as similar as their features."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._straight_through import _Unlabelled, similarity_gap, straight_through

if TYPE_CHECKING:
    from torch import Tensor


def halves(outputs: "Tensor") -> "Tensor":
    """Return +1 for the larger half of each column, the first of equal ones, else -1; no gradient."""
    import torch

    order = outputs.detach().argsort(dim=0, descending=True, stable=True)
    codes = torch.full_like(outputs, -1.0)
    return codes.scatter_(0, order[: len(outputs) // 2], 1.0)


def bihalf_loss(outputs: "Tensor", features: "Tensor", gamma: float) -> "Tensor":
    """Compute the loss whose gradient is that of the bi-half layer; ``gamma`` pulls outputs to their codes."""
    codes = halves(outputs)
    pull = gamma / 2 * (outputs - codes).square().mean()
    return similarity_gap(straight_through(outputs, codes), features) + pull


@dataclass(eq=False, repr=False, kw_only=True)
class BiHalf(_Unlabelled):
    """Bi-half layer [1]_.

    Learns without labels. All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    gamma : float, default=2
        Strength of the pull of outputs to their codes.
    weight_decay : float, default=5e-3
        Weight decay of weights and biases.

    Notes
    -----
    In training a bit is 1 for the half of the batch with the larger outputs, so that it is balanced. The gradient by
    these codes b is passed on to the outputs u, and gamma (u - b) / (n_batch n_bits) added, here as the gradient of
    gamma / 2 times the mean of (u - b)^2. The first half of a batch is paired with its second, and (cos(b_i, b_j) -
    cos(x_i, x_j))^2 is minimised, x the output of the front end before training (centred features). The authors' x are
    features of VGG-16 after a rectifier, whose cosines are all positive. Items are encoded by the sign of u.
    The defaults were chosen by AP of classes; with these, long codes find few nearest neighbours.
    ``presets["neighbours"]`` was chosen by the neighbours of held-out texts. ``presets["paper"]`` has the authors'
    settings for CIFAR-10, but halves the rate every 36 epochs: to an eighth by epoch 120, where the authors divide it
    by ten once.

    References
    ----------
    .. [1] Y. Li, J. van Gemert, "Deep Unsupervised Image Hashing by Maximizing Bit Entropy", AAAI 2021,
       arXiv:2012.12334.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> BiHalf(n_bits=4, epochs=2).fit(X).transform(X).shape
    (60, 4)
    """

    weight_decay: float = 5e-3
    gamma: float = setting(2.0, real(0), tunable=(0.0, 0.6, 2.0, 6.0, 18.0, 54.0))

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "neighbours": {"learning_rate": 0.03, "weight_decay": 5e-4, "decay_items": None, "gamma": 6.0},
        "paper": {
            "epochs": 300,
            "batch_size": 32,
            "learning_rate": 1e-4,
            "halve_every": 36,
            "weight_decay": 5e-4,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "gamma": 6.0,
        },
    }

    def _loss(self, batch: Batch) -> "Tensor":
        return bihalf_loss(batch.outputs, batch.features, self.gamma)

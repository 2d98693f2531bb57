"""GreedyHash: signs in the forward pass, their gradient passed on unchanged."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.learning.classes import ClassHash, mean_over_labelled, shares
from hashbench.learning.loop import Items
from hashbench.method import real, setting
from hashbench.methods._straight_through import cubic, straight_through

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn


def greedyhash_loss(outputs: "Tensor", classifier: "Tensor", classes: "Tensor", alpha: float) -> "Tensor":
    """Compute the cross-entropy of classes predicted from codes, plus the cubic term.

    ``classifier`` (n_classes, n_bits) is W. Several classes of an item share its cross-entropy; items without any do
    not count.
    """
    from torch.nn.functional import log_softmax

    logits = straight_through(outputs) @ classifier.T
    costs = -(shares(classes) * log_softmax(logits, dim=1)).sum(dim=1) + alpha * cubic(outputs)
    return mean_over_labelled(costs, classes)


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyHash(ClassHash):
    """Greedy hash [1]_.

    Learns from classes. All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    alpha : float, default=0.1
        Weight of the term that keeps outputs near -1 and +1.
    learning_rate : float, default=0.1
        Initial learning rate; see the base class for its bound.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    A linear classifier without biases predicts the classes from the codes b = sgn(u), and the gradient of its
    cross-entropy by b is used as that by u. The loss adds alpha times the mean of ||u_k| - 1|^3. The classifier is
    trained with the network and dropped in the end. The authors use alpha 0.1 for CIFAR-10 and 1 for ImageNet; several
    classes of an item, which they do not consider, share the cross-entropy. ``presets["paper"]`` has their settings for
    CIFAR-10, but halves the rate every 9 epochs: to an eighth by epoch 30, where the authors divide it by ten once.

    References
    ----------
    .. [1] S. Su, C. Zhang, K. Han, Y. Tian, "Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN",
       NeurIPS 2018.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> GreedyHash(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    alpha: float = setting(0.1, real(0), tunable=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0))
    weight_decay: float = 2e-3

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 50,
            "batch_size": 32,
            "learning_rate": 1e-3,
            "halve_every": 9,
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
        weights = 2 * torch.rand(len(self.classes_), self.n_bits, generator=generator) - 1
        own.classifier = torch.nn.Parameter(weights / self.n_bits**0.5)
        return own

    def _loss(self, batch: Batch) -> "Tensor":
        return greedyhash_loss(batch.outputs, batch.own.classifier, self._of_classes(batch), self.alpha)

"""GreedyHash: signs in the forward pass, their gradient passed on as it is."""

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
    """Compute the cross-entropy of classes read off the codes, and what keeps outputs near -1 and +1.

    Parameters
    ----------
    outputs : Tensor of shape (n_batch, n_bits)
        Outputs of the batch.
    classifier : Tensor of shape (n_classes, n_bits)
        Weights, W.
    classes : Tensor of shape (n_batch, n_classes)
        0 and 1; several classes of an item share it, items without any do not count.
    alpha : float
        Weight of the cubic term.

    Returns
    -------
    Tensor
        A scalar.
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
    learning_rate : float, default=0.03
        Of stochastic gradient descent; that term grows with the cube, and 0.1 diverged on items of few features.

    Notes
    -----
    A linear classifier without biases reads the classes off the codes b = sgn(u), and the gradient of its cross-entropy
    by b is taken for that by u. Besides, alpha times the mean of ||u_k| - 1|^3. The classifier is trained with the rest
    and dropped in the end. The authors' 0.1 is for CIFAR-10, 1 for ImageNet; several classes of an item, which they do
    not treat, share the cross-entropy. ``presets["paper"]`` has their settings for CIFAR-10, and halves the rate every
    9 epochs, so that at the 30th it has fallen to an eighth, where theirs falls to a tenth at once.
    ``presets["tuned"]`` led on held-out training items in the mean over two datasets; it diverges on well separated
    blobs.

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

    alpha: float = setting(0.1, real(0), tunable=(0.03, 0.1, 0.3))
    learning_rate: float = setting(0.03, real(0, closed="neither"), tunable=(0.01, 0.03, 0.1))

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            **{"epochs": 50, "batch_size": 32, "learning_rate": 1e-3, "halve_every": 9},
            **{"bias_multiplier": 1.0, "pretrained_multiplier": 1.0, "head": "linear"},
        },
        "tuned": {"learning_rate": 0.1, "alpha": 0.3},
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

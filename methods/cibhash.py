"""CIBHash: codes of two random views of an item are alike, and unlike those of other items."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.method import choice, real, setting
from hashbench.methods._pair_losses import signs
from hashbench.methods._straight_through import _Unlabelled, straight_through

if TYPE_CHECKING:
    from torch import Generator, Tensor


def contrast(codes: "Tensor", temperature: float) -> "Tensor":
    """Compute the mean cross entropy of picking the other view of each code by its cosine among all other codes.

    The views of item i are rows i and n + i of ``codes`` (2 n, n_bits).
    """
    import torch
    from torch.nn.functional import cross_entropy, normalize

    unit, rows = normalize(codes), torch.arange(len(codes), device=codes.device)
    is_same = rows[:, None] == rows
    logits = (unit @ unit.T / temperature).masked_fill(is_same, -torch.inf)  # (2 n, 2 n)
    return cross_entropy(logits, rows.roll(len(codes) // 2))


def divergence(outputs: "Tensor", others: "Tensor") -> "Tensor":
    """Compute the mean KL divergence of bits that are 1 with probability sigmoid(outputs) from those of ``others``.

    It is summed over bits. No gradient flows through ``others``.
    """
    from torch.nn.functional import softplus

    others = others.detach()
    by_bit = outputs.sigmoid() * (outputs - others) - softplus(outputs) + softplus(others)
    return by_bit.sum(dim=1).mean()


def cibhash_loss(first: "Tensor", second: "Tensor", temperature: float, kl_weight: float) -> "Tensor":
    """Compute the loss of outputs (n_batch, n_bits) of two views of the same items."""
    import torch

    outputs = torch.cat([first, second])
    codes = straight_through(outputs.sigmoid(), signs(outputs))
    gap = (divergence(first, second) + divergence(second, first)) / 2
    return contrast(codes, temperature) + kl_weight * gap


@dataclass(eq=False, repr=False, kw_only=True)
class CIBHash(_Unlabelled):
    """Contrastive hashing with an information bottleneck [1]_.

    Learns without labels. The head has a hidden layer by default, like the authors'. All other parameters are those of
    `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    temperature : float, default=0.3
        What cosines of codes are divided by.
    kl_weight : float, default=0.001
        Weight of the KL divergence between the two views.
    dropout : float, default=0.7
        Share of the features that each view sets to their mean, at random; ours, not the paper's. With a ``backbone``
        only ``head_epochs`` use it; otherwise views are images changed by ``augmentation``.

    Notes
    -----
    Each step sees two random views of each of n items, with outputs u and v. A bit is 1 with probability p = sigmoid(u)
    and q = sigmoid(v). The codes b = sgn(u) and sgn(v) pass their gradient on to p and q. With s_ij = cos(b_i, b_j) /
    ``temperature`` and i' the other view of i, the mean over all 2 n views of -log(exp(s_ii') / sum_{j != i} exp(s_ij))
    is minimised, plus ``kl_weight`` times the mean over items of (KL(p || q) + KL(q || p)) / 2, summed over bits. In
    each divergence the second distribution has no gradient, as in the authors' code. The paper draws b at random with
    probability p in training. The authors' code takes the sign, as here. It also adds 1e-8 in logarithms, which is not
    needed here.

    The authors' views are crops, mirror images, changes of colour and blur of the image, from which a frozen VGG-16
    computes features. Here images are shifted and mirrored, and features have no views except by ``dropout``. On the
    text embeddings of wordnet-minilm, codes of more than 256 bits find no more neighbours than shorter ones.
    ``presets["paper"]`` has the authors' settings (80 epochs instead of 60 at 16 bits).

    References
    ----------
    .. [1] Z. Qiu, Q. Su, Z. Ou, J. Yu, C. Chen, "Unsupervised Hashing with Contrastive Information Bottleneck",
       IJCAI 2021, arXiv:2105.06138.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> CIBHash(n_bits=4, epochs=2).fit(X).transform(X).shape
    (60, 4)
    """

    temperature: float = setting(0.3, real(0, closed="neither"))
    kl_weight: float = setting(0.001, real(0))
    dropout: float = setting(0.7, real(0, 1, closed="left"), tunable=(0.1, 0.3, 0.5, 0.7, 0.9))
    head: str = setting("mlp", choice("linear", "mlp"))
    augmentation: str = setting("crop", choice("crop", "flip", "none"))

    n_views: ClassVar[int] = 2
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 60,
            "batch_size": 64,
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "halve_every": 0,
            "weight_decay": 0.0,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 0.0,
        }
    }

    def _view(self, features: "Tensor", generator: "Generator") -> "Tensor":
        import torch

        is_kept = torch.rand(features.shape, generator=generator) >= self.dropout
        return features * is_kept / (1 - self.dropout)

    def _loss(self, batch: Batch) -> "Tensor":
        assert batch.views is not None
        first, second = batch.views
        return cibhash_loss(first, second, self.temperature, self.kl_weight)

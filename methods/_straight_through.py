"""Codes with a gradient, and pairs without labels; shared by methods that train through the signs of outputs."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from hashbench.learning.base import LearnedHash
from hashbench.method import Supervision, choice, setting
from hashbench.methods._pair_losses import signs

if TYPE_CHECKING:
    from torch import Tensor


def straight_through(outputs: "Tensor", codes: "Tensor | None" = None) -> "Tensor":
    """Return the codes of outputs, by default their signs, with the gradient of the outputs themselves."""
    return (signs(outputs) if codes is None else codes) + (outputs - outputs.detach())  # the latter is exactly 0


def cubic(outputs: "Tensor") -> "Tensor":
    """Compute the mean of ||u_k| - 1|^3 over the bits of each item: (n_batch,)."""
    return (outputs.abs() - 1).abs().pow(3).mean(dim=1)


def similarity_gap(codes: "Tensor", features: "Tensor") -> "Tensor":
    """Compute the mean of (cos(b_i, b_j) - cos(x_i, x_j))^2 over pairs of the two halves, without an odd last row."""
    from torch.nn.functional import cosine_similarity

    half = len(codes) // 2
    of_codes = cosine_similarity(codes[:half], codes[half : 2 * half])
    of_features = cosine_similarity(features[:half], features[half : 2 * half])
    return (of_codes - of_features).square().sum() / max(half, 1)


@dataclass(eq=False, repr=False, kw_only=True)
class _Unlabelled(LearnedHash):
    """Base of methods that learn without labels; their head is linear by default."""

    head: str = setting("linear", choice("linear", "mlp"))

    supervision: ClassVar[Supervision] = "none"
    group = "unsupervised"

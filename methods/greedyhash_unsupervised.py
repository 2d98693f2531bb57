"""GreedyHash without labels: codes of pairs as similar as their features."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.learning.batch import Batch
from hashbench.method import real, setting
from hashbench.methods._straight_through import _Unlabelled, cubic, similarity_gap, straight_through

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(eq=False, repr=False, kw_only=True)
class GreedyHashUnsupervised(_Unlabelled):
    """Greedy hash without labels [1]_.

    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    alpha : float, default=0.3
        Weight of the term that keeps outputs near -1 and +1.
    learning_rate : float, default=0.3
        Initial learning rate; see the base class for its bound.
    weight_decay : float, default=2e-3
        Weight decay of weights and biases.

    Notes
    -----
    The first half of a batch is paired with its second, and (cos(b_i, b_j) - cos(x_i, x_j))^2 is minimised, b = sgn(u)
    with the gradient of u, x the output of the front end before training (centred features), plus alpha times the mean
    of ||u_k| - 1|^3. The authors' x are features of VGG-16 after a rectifier and not centred; their cosines are all
    positive, unlike those of balanced codes. The defaults were chosen by AP of classes; with these, long codes find few
    nearest neighbours. ``presets["neighbours"]`` was chosen by the neighbours of held-out texts. ``presets["paper"]``
    has the authors' settings, with their constant rate.

    References
    ----------
    .. [1] S. Su, C. Zhang, K. Han, Y. Tian, "Greedy Hash: Towards Fast Optimization for Accurate Hash Coding in CNN",
       NeurIPS 2018.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> GreedyHashUnsupervised(n_bits=4, epochs=2).fit(X).transform(X).shape
    (60, 4)
    """

    learning_rate: float = 0.3
    weight_decay: float = 2e-3
    alpha: float = setting(0.3, real(0), tunable=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0))

    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "neighbours": {"learning_rate": 0.1, "weight_decay": 5e-4, "decay_items": None, "alpha": 0.1},
        "paper": {
            "epochs": 60,
            "batch_size": 32,
            "learning_rate": 1e-4,
            "halve_every": 0,
            "weight_decay": 5e-4,
            "decay_items": None,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "alpha": 0.1,
        },
    }

    def _loss(self, batch: Batch) -> "Tensor":
        gap = similarity_gap(straight_through(batch.outputs), batch.features)
        return gap + self.alpha * cubic(batch.outputs).mean()

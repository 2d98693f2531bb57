"""DSH: contrastive loss on outputs near -1 and 1, and its dispersion objective."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from hashbench.affinity import Hierarchy
from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.method import choice, real, setting
from hashbench.methods._pair_losses import mean_over, others

if TYPE_CHECKING:
    from torch import Tensor

_NET = {
    "head": "linear",
    "batch_size": 200,
    "weight_decay": 4e-3,
    "decay_items": None,
    "bias_multiplier": 2.0,
    "pretrained_multiplier": 1.0,
    "margin": 2.0,
}


def original_loss(outputs: "Tensor", similar: "Tensor", margin: float, alpha: float) -> "Tensor":
    """Compute the loss of DSH: similar items together, others a margin apart.

    The margin is for squared Euclidean distances: on codes, 4 times the Hamming distance. The result is the sum over
    pairs / (n_batch (n_batch - 1)), plus the mean over items of the regulariser; the diagonal of ``similar`` is
    ignored.
    """
    squared_norms = outputs.square().sum(dim=1)
    squared = (squared_norms[:, None] + squared_norms - 2 * outputs @ outputs.T).clamp(min=0)
    pairs = squared.where(similar, (margin - squared).clamp(min=0)) / 2
    return mean_over(pairs, others(similar)) / 2 + alpha * _from_binary(outputs)


def dispersion_loss(
    outputs: "Tensor", levels: "Tensor", margin: float, alpha: float, *, two_levels: bool = False
) -> "Tensor":
    """Compute the dispersion loss of mLGAP, equations 20 and 25: similar items near each other, but not on one code.

    The margin is for sums of absolute differences: on codes, twice the Hamming distance. An item of the same class
    should be b/6 to b/3 away; with ``two_levels`` (level 2 is the same class, level 1 the same superclass), one of the
    same class b/12 to b/6, one of the same superclass (class or not, as printed) b/6 to b/3. Normalised as in
    `original_loss`.
    """
    import torch

    n_bits = outputs.shape[1]
    distance = torch.cdist(outputs, outputs, p=1)

    def zone(lowest: float, highest: float) -> "Tensor":
        return (lowest - distance).clamp(min=0) + (distance - highest).clamp(min=0)

    pairs = zone(n_bits / 6, n_bits / 3).where(levels > 0, (margin - distance).clamp(min=0))
    if two_levels:
        pairs = pairs + zone(n_bits / 12, n_bits / 6).where(levels > 1, 0.0)
    return mean_over(pairs / 2, others(levels)) / 2 + alpha * _from_binary(outputs)


def _from_binary(outputs: "Tensor") -> "Tensor":
    return (outputs.abs() - 1).abs().sum(dim=1).mean()


@dataclass(eq=False, repr=False, kw_only=True)
class DSH(LearnedHash):
    """Deep supervised hashing [1]_, with its original or the dispersion objective [2]_.

    A level above 0 counts as similar, grades are lost; but dispersion separates class and superclass under the
    affinity rule ``hierarchy``. Other parameters: see `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    objective : {"original", "dispersion"}, default="original"
        Whether similar items should share a code or spread over nearby ones.
    margin : float, default=1
        Distance beyond which dissimilar pairs cost nothing, as a multiple of ``n_bits``. The authors' 2 means a Hamming
        distance of n_bits / 2, for dispersion of n_bits.
    alpha : float, default=0.01
        Weight of the distance of outputs from -1 and 1.
    learning_rate : float, default=0.1
        Initial learning rate. The slope of the hinge is about n_bits, so larger steps may diverge.
    weight_decay : float, default=5e-3
        Weight decay of weights and biases.

    Notes
    -----
    A pair costs 1/2 (1 - y) ``|u_i - u_j|^2`` + 1/2 y max(m - ``|u_i - u_j|^2``, 0), y = 1 for dissimilar ones; an item
    ``alpha ||u_i| - 1|_1``. Dispersion uses absolute differences, and similar pairs inside a zone cost nothing. The
    presets ``paper`` and ``dispersion`` are the authors' settings, without the last two drops of DSH's learning rate.

    With ``backbone="dsh-net"`` on the images of CIFAR-10 these two presets are close to the authors' experiments,
    and closer with ``scaling="none"`` and, for ``paper``, ``augmentation="flip"``. What still differs: features are
    centred before the last layer, whose initial weights are normal; biases decay, too; dispersion's learning rate
    is halved every 204 epochs instead of multiplied by 0.6 every 150; and DSH trained longer codes from its 12-bit
    network. After 6 epochs on split 2, at 12 bits and their best rates, held-out AP was .32 and .24 with
    ``scaling="variance"``, .19 and .21 with none.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher NDCG, though often a lower AP.

    References
    ----------
    .. [1] H. Liu, R. Wang, S. Shan, X. Chen, "Deep Supervised Hashing for Fast Image Retrieval", CVPR 2016.
    .. [2] P. L. K. Ding, Y. Li, B. Li, "Mean Local Group Average Precision (mLGAP): A New Performance Metric
       for Hashing-based Retrieval", 2018.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> DSH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    objective: str = setting("original", choice("dispersion", "original"))
    learning_rate: float = 0.1
    weight_decay: float = 5e-3
    margin: float = setting(1.0, real(0, closed="neither"), tunable=(0.25, 0.5, 1.0, 2.0, 3.0, 4.0))
    alpha: float = setting(0.01, real(0))

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {**_NET, "epochs": 280, "learning_rate": 1e-3, "halve_every": 0},
        "dispersion": {**_NET, "objective": "dispersion", "epochs": 750, "learning_rate": 0.01, "halve_every": 204},
    }

    def _loss(self, batch: Batch) -> "Tensor":
        outputs, levels, margin = batch.outputs, batch.levels, self.margin * self.n_bits
        if self.objective == "original":
            return original_loss(outputs, levels > 0, margin, self.alpha)
        return dispersion_loss(outputs, levels, margin, self.alpha, two_levels=isinstance(batch.affinity, Hierarchy))

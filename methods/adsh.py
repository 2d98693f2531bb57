"""ADSH: outputs fitted to free codes of all training items, which are optimised bit by bit."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from hashbench.learning.base import LearnedHash
from hashbench.learning.batch import Batch
from hashbench.learning.loop import Items
from hashbench.method import real, setting, whole
from hashbench.methods._pair_losses import sum_of_similar

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_BLOCK = 1000  # rows of the affinity in memory at once


def adsh_loss(outputs: "Tensor", codes: "Tensor", own_codes: "Tensor", similar: "Tensor", gamma: float) -> "Tensor":
    """Compute sum_ij (t_i . v_j - n_bits S_ij)^2 + gamma sum_i |v_i - t_i|^2 of a batch, by the number of pairs.

    ``codes`` (n_items, n_bits) are V, all 0 before the first update, and ``own_codes`` (n_batch, n_bits) those of the
    batch. S is 1 for ``similar`` pairs (n_batch, n_items), one negative number for others, and sums to 0. The first sum
    is t_i^T V^T V t_i - 2 n_bits t_i . sum_j S_ij v_j, and a constant. Sums of codes are whole numbers, which
    products of float32 hold exactly up to 16 million items.
    """
    relaxed, n_bits = outputs.tanh(), outputs.shape[1]
    n_similar, n_pairs = int(similar.count_nonzero()), similar.numel()
    share = n_similar / max(n_pairs - n_similar, 1)
    exact = codes.float()
    pull = (1 + share) * sum_of_similar(similar, exact).to(codes) - share * codes.sum(dim=0)
    constant = n_similar + share**2 * (n_pairs - n_similar)
    fit = (relaxed @ (exact.T @ exact).to(codes) * relaxed - 2 * n_bits * relaxed * pull).sum() + n_bits**2 * constant
    apart = ((own_codes - relaxed).square() * own_codes.abs()).sum()  # nothing where there is no code yet
    return (fit + gamma * apart) / n_pairs


def best_codes(codes: "Tensor", relaxed: "Tensor", pull: "Tensor", gamma: float) -> None:
    """Set each column of the codes (n_items, n_bits) in turn to its best value, the others fixed, in place.

    ``relaxed`` (n_items, n_bits) is T, ``pull`` (n_items, n_bits) is S^T T. A bit without preference keeps its value.
    """
    n_bits = codes.shape[1]
    linear = -2 * n_bits * pull - 2 * gamma * relaxed
    gram = relaxed.T @ relaxed
    for bit in range(n_bits):
        others = gram[:, bit].clone()
        others[bit] = 0
        wanted = 2 * codes @ others + linear[:, bit]
        codes[:, bit] = (-wanted.sign()).where(wanted != 0, codes[:, bit])


@dataclass(eq=False, repr=False, kw_only=True)
class ADSH(LearnedHash):
    """Asymmetric deep supervised hashing [1]_, with one network for queries and database.

    Learns from pairs that are similar or not: a level above 0 counts as similar, grades are lost.
    All other parameters are those of `hashbench.learning.base.LearnedHash`.

    Parameters
    ----------
    gamma : float, default=800
        Weight of the distance between relaxed and free codes of an item.
    epochs_a_sweep : int, default=3
        Epochs between two updates of the free codes.

    Notes
    -----
    With t = tanh(u) and free codes V of all training items, sum_ij (t_i . v_j - n_bits S_ij)^2 + gamma times
    ``sum_i |v_i - t_i|^2`` is minimised alternately by the network and, bit by bit, by V. S is 1 for similar pairs and
    -r for others, r such that S sums to 0. In the paper each item of the *database* has such a code, computed from the
    labels of the database, so that its AP does not measure what is learned; here V belongs to training items, and
    queries and database are both encoded by the network. The paper learns from 2,000 items drawn for each sweep, this
    class from all. Items without a class are similar to none. Before its first update V is 0, so the first epoch learns
    nothing. The loss grows with the square of the code length, and steps with it: lower ``learning_rate`` where outputs
    saturate, as in long codes of many items.

    Where distances define levels, two neighbours of an item are often not similar. No codes suit all pairs then,
    and itq has a higher AP and NDCG.

    References
    ----------
    .. [1] Q.-Y. Jiang, W.-J. Li, "Asymmetric Deep Supervised Hashing", AAAI 2018, arXiv:1707.08325.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> ADSH(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    gamma: float = setting(800.0, real(0), tunable=(12.5, 50.0, 200.0, 800.0, 3200.0, 12800.0, 51200.0))
    epochs_a_sweep: int = setting(3, whole(1))
    learning_rate: float = 0.003

    group = "pair-based"
    presets: ClassVar[dict[str, dict[str, Any]]] = {
        "paper": {
            "epochs": 150,
            "batch_size": 64,
            "learning_rate": 1e-3,
            "halve_every": 9,
            "decay_items": None,
            "momentum": 0.0,
            "bias_multiplier": 1.0,
            "pretrained_multiplier": 1.0,
            "head": "linear",
            "gamma": 200.0,
        }
    }

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module":
        import torch

        own = torch.nn.Module()
        own.register_buffer("codes", torch.zeros(len(items.inputs), self.n_bits))
        return own

    def _loss(self, batch: Batch) -> "Tensor":
        codes = batch.own.codes[batch.numbers]
        return adsh_loss(batch.outputs, codes, codes[batch.rows], batch.all_levels > 0, self.gamma)

    def _end_epoch(self, batch: Batch) -> None:
        if batch.epoch % self.epochs_a_sweep:
            return
        relaxed, codes = batch.all_outputs.tanh(), batch.own.codes[batch.numbers]
        best_codes(codes, relaxed, _pulls(batch, relaxed), self.gamma)
        batch.own.codes[batch.numbers] = codes


def _pulls(batch: Batch, relaxed: "Tensor") -> "Tensor":
    """Compute S^T T of all items, (n_items, n_bits), in blocks; S as in `adsh_loss`."""
    import torch

    from_similar, n_similar = torch.zeros_like(relaxed), 0
    for rows in np.array_split(np.arange(len(relaxed)), -(-len(relaxed) // _BLOCK)):
        block = batch.affinity.block(batch.numbers[rows], batch.numbers) > 0
        n_similar += int(np.count_nonzero(block))
        from_similar += sum_of_similar(torch.from_numpy(block).T.to(relaxed.device), relaxed[rows])
    share = n_similar / max(len(relaxed) ** 2 - n_similar, 1)
    return (1 + share) * from_similar - share * relaxed.sum(dim=0)

"""The state of training, its checkpoint, and when it cannot recover: collapsed codes, or a loss that is not finite."""

import math
import time
from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hashbench.affinity import Affinity
from hashbench.errors import JobFailure

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

_PATIENCE = 3  # epochs with too few codes before training is stopped; many recover


class Epoch(NamedTuple):
    """Statistics of one epoch."""

    number: int  # from 1
    n_epochs: int
    loss: float  # mean over the batches
    n_distinct: int  # distinct codes of the training items, each as of its last visit
    mean_output: float  # mean absolute output, before the sign
    score: float  # of the held-out items; NaN if there are none

    def __str__(self) -> str:
        held_out = "" if math.isnan(self.score) else f", held out {self.score:.4f}"
        return f"loss {self.loss:.4f}, {self.n_distinct:,} codes, mean |output| {self.mean_output:.2f}{held_out}"


class TrainingState:
    """Network, optimizer with its momentum, generator, last outputs, past epochs and best network.

    ``own`` is the module of the loss. ``seconds_before`` is the training time before the last interruption, and
    ``seconds_spent`` the time that training the head took before.
    """

    def __init__(
        self,
        network: "nn.Module",
        own: "nn.Module | None",
        optimizer: "torch.optim.Optimizer",
        generator: "torch.Generator",
        all_outputs: "Tensor",
        seconds_spent: float = 0.0,
    ) -> None:
        self.network, self.own, self.optimizer, self.generator = network, own, optimizer, generator
        self.all_outputs = all_outputs  # (n_items, n_bits)
        self.start, self.seconds_before = time.perf_counter() - seconds_spent, 0.0
        self.history: list[Epoch] = []
        self.best: dict[str, Tensor] = {}

    def add(self, epoch: Epoch) -> None:
        """Append an epoch, and copy the network if its score is the best so far."""
        if epoch.score > max((past.score for past in self.history), default=-math.inf):
            self.best = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.history.append(epoch)

    def write(self, path: Path, key: str) -> None:
        """Write a checkpoint, whole or not at all; ``key`` identifies what it belongs to."""
        import torch

        from hashbench.store import artifact

        content = {
            "network": self.network.state_dict(),
            "own": {} if self.own is None else self.own.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "generator": self.generator.get_state(),
            "all_outputs": self.all_outputs,
            "history": [tuple(epoch) for epoch in self.history],
            "best": self.best,
            "seconds": self.seconds_before + time.perf_counter() - self.start,
        }
        buffer = BytesIO()
        torch.save(content, buffer)  # not into a file: PyTorch reports a full disk as a failed assertion
        artifact.write(path, "checkpoint", {"key": key}, {"state": np.frombuffer(buffer.getbuffer(), np.uint8)})

    def read(self, path: Path, key: str) -> None:
        """Resume from a checkpoint of this key; raise an error if it is damaged or of other training."""
        import torch

        from hashbench.store import artifact

        def load(found: artifact.Artifact) -> Any:
            saved = BytesIO(found.array("state").data)
            return torch.load(saved, map_location=self.all_outputs.device, weights_only=True)

        content = artifact.read(path, "checkpoint", load, {"key": key})
        if content is None:
            raise JobFailure(
                f"{path} belongs to training with other parameters, items or version. Start again without resuming."
            )
        self.network.load_state_dict(content["network"])
        if self.own is not None:
            self.own.load_state_dict(content["own"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.generator.set_state(content["generator"].cpu())
        self.all_outputs.copy_(content["all_outputs"])
        self.history = [Epoch(*values) for values in content["history"]]
        self.best, self.seconds_before = content["best"], content["seconds"]


class Stopped(Exception):  # its message is completed by the caller, who knows the likely cause
    """Training that cannot recover."""


class StoppedHead(Stopped):
    """Training of only the head, before its network, that cannot recover."""


def stop_if_failed(history: Sequence[Epoch], n_kinds: int, n_bits: int, *, is_over: bool = False) -> None:
    """Raise `Stopped` if training cannot recover.

    Codes of items of ``n_kinds`` kinds, none relevant to another, have collapsed if for three epochs there are codes
    for at most half of the kinds and their number does not grow, or if there is only one at the end.
    """
    last = history[-1]
    when = f"after epoch {last.number}, with mean |output| {last.mean_output:.3g}"
    if not np.isfinite(last.loss):
        raise Stopped(f"{when}: the loss is {last.loss}")
    share = 2 if 2**n_bits >= n_kinds**2 else 4  # with fewer bits kinds share codes even by chance
    n_too_few = max(min(n_kinds, 2**n_bits) // share, 1)
    counts = [epoch.n_distinct for epoch in history[-_PATIENCE:]]
    stays_collapsed = len(counts) == _PATIENCE and max(counts) <= n_too_few and counts[-1] <= counts[0]
    ends_collapsed = is_over and last.n_distinct == 1
    if n_kinds > 1 and n_bits > 1 and (stays_collapsed or ends_collapsed):  # a single bit may be constant
        codes = "1 code" if last.n_distinct == 1 else f"{last.n_distinct} different codes"
        kinds = f"{n_kinds} kinds, none relevant to another"
        raise Stopped(f"{when}: training items of {kinds}, have only {codes}")


def count_kinds(affinity: Affinity) -> int:
    """Count classes, superclasses or label sets that several items share and that are irrelevant to each other."""
    keys = affinity.query_keys()
    first, sizes = np.arange(affinity.n_queries), np.ones(affinity.n_queries, dtype=np.int64)
    if keys is not None:
        _, first, sizes = np.unique(keys, axis=0, return_index=True, return_counts=True)
    n_several = int((sizes > 1).sum())
    candidates = first[np.argsort(-sizes, kind="stable")][: n_several or None]  # the most frequent first
    max_kinds, n_kinds = n_several or 2, 0  # kinds of one item each hardly count
    while len(candidates) and n_kinds < max_kinds:
        is_relevant = affinity.block(candidates[:1], candidates)[0] > 0
        n_kinds += int(is_relevant.any())  # items without labels have no kind
        candidates = candidates[1:][~is_relevant[1:]]
    return n_kinds

"""The state of training, and its checkpoint."""

import math
import time
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hashbench.errors import JobFailure

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


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

"""The state of training, and its checkpoint."""

import math
import time
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench.errors import Damaged, JobFailure
from hashbench.store.files import replacing

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


_DIGEST_BYTES = 32  # of SHA-256, before what PyTorch saves


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

        content = {
            "key": key,
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
        with replacing(path) as part:
            part.write_bytes(b"".join([sha256(buffer.getbuffer()).digest(), buffer.getbuffer()]))

    def read(self, path: Path, key: str) -> None:
        """Resume from a checkpoint of this key; raise an error if it is damaged or of other training."""
        import torch

        stored = path.read_bytes()
        digest, saved = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if sha256(saved).digest() != digest:
            raise Damaged(f"{path} is not a checkpoint, or damaged. Start again without resuming.")
        try:
            content: Any = torch.load(BytesIO(saved), map_location=self.all_outputs.device, weights_only=True)
            stored_key = content["key"]
        except Exception as error:  # PyTorch raises many kinds for other files
            raise Damaged(f"{path} is not a checkpoint. Start again without resuming.") from error
        if stored_key != key:
            raise JobFailure(
                f"{path} belongs to training with other parameters, items or code. Start again without resuming."
            )
        self.network.load_state_dict(content["network"])
        if self.own is not None:
            self.own.load_state_dict(content["own"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.generator.set_state(content["generator"].cpu())
        self.all_outputs.copy_(content["all_outputs"])
        self.history = [Epoch(*values) for values in content["history"]]
        self.best, self.seconds_before = content["best"], content["seconds"]

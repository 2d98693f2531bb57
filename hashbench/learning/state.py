"""All that decides how training goes on, and its file."""

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
    """How training went in one epoch.

    Parameters
    ----------
    number, n_epochs : int
        Which one of how many, from 1.
    loss : float
        Mean over the batches.
    n_distinct : int
        Different codes among the training items, each as of its last visit.
    mean_output : float
        Mean absolute output, before the sign.
    score : float
        Of the held-out items; NaN if none are held out.
    """

    number: int
    n_epochs: int
    loss: float
    n_distinct: int
    mean_output: float
    score: float

    def __str__(self) -> str:
        held_out = "" if math.isnan(self.score) else f", held out {self.score:.4f}"
        return f"loss {self.loss:.4f}, {self.n_distinct:,} codes, mean |output| {self.mean_output:.2f}{held_out}"


class TrainingState:
    """Network, optimizer with its momentum, source of the batches to come, last outputs, epochs so far, best network.

    ``own`` is what the loss trains besides; ``seconds_before`` says how long training had taken before it was
    interrupted, and ``seconds_spent`` were taken by what went before all this.
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
        """Note an epoch, and the network if it scores best so far."""
        if epoch.score > max((past.score for past in self.history), default=-math.inf):
            self.best = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.history.append(epoch)

    def write(self, path: Path, key: str) -> None:
        """Write a checkpoint, whole or not at all; ``key`` says what it belongs to."""
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
        torch.save(content, buffer)  # into a file, a full disk would be told as a failed assertion of PyTorch's
        with replacing(path) as part:
            part.write_bytes(b"".join([sha256(buffer.getbuffer()).digest(), buffer.getbuffer()]))

    def read(self, path: Path, key: str) -> None:
        """Take up training where a checkpoint of this key left it; refuse what is damaged, or of something else."""
        import torch

        stored = path.read_bytes()
        digest, saved = stored[:_DIGEST_BYTES], stored[_DIGEST_BYTES:]
        if sha256(saved).digest() != digest:
            raise Damaged(f"{path} is no checkpoint, or a damaged one. Start afresh, without resuming.")
        try:
            content: Any = torch.load(BytesIO(saved), map_location=self.all_outputs.device, weights_only=True)
            found = content["key"]
        except Exception as error:  # PyTorch raises whatever a foreign place happens to cause
            raise Damaged(f"{path} is no checkpoint. Start afresh, without resuming.") from error
        if found != key:
            raise JobFailure(
                f"{path} was left by training with other parameters, items or code. Start afresh, without resuming."
            )
        self.network.load_state_dict(content["network"])
        if self.own is not None:
            self.own.load_state_dict(content["own"])
        self.optimizer.load_state_dict(content["optimizer"])
        self.generator.set_state(content["generator"].cpu())
        self.all_outputs.copy_(content["all_outputs"])
        self.history = [Epoch(*values) for values in content["history"]]
        self.best, self.seconds_before = content["best"], content["seconds"]

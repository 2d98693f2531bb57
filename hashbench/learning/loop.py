"""The one loop that trains all methods; its whole state is visible here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hashbench._typing import AnyArray, BoolArray
from hashbench.affinity import Affinity
from hashbench.bits import pack
from hashbench.learning.batch import Batch
from hashbench.learning.collapse import Stopped, count_kinds, stop_if_failed
from hashbench.learning.state import Epoch, TrainingState
from hashbench.sources._torch import find_device

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_ENCODED, _ENCODED_IMAGES = 4096, 32  # items that go through the network at a time, without gradients


@dataclass(frozen=True)
class Settings:
    """How to train; the parameters of `hashbench.learning.base.LearnedHash` of these names, and its name."""

    name: str
    n_bits: int
    epochs: int
    batch_size: int
    learning_rate: float
    momentum: float
    halve_every: int
    weight_decay: float
    bias_multiplier: float
    pretrained_multiplier: float
    validation: float
    criterion: str
    device: str
    mixed_precision: bool
    optimizer: str
    head_epochs: int


@dataclass(frozen=True, eq=False)
class Loss:
    """What is minimised, and what goes on beside it.

    ``compute`` gives a scalar for a batch. ``own`` holds parameters of the loss, trained along, and buffers; both are
    in checkpoints, and dropped when training ends. ``end_step`` is called with each batch after its step,
    ``end_epoch`` with the last one of each epoch.
    """

    compute: Callable[[Batch], "Tensor"]
    own: "nn.Module | None" = None
    end_step: Callable[[Batch], None] = lambda batch: None
    end_epoch: Callable[[Batch], None] = lambda batch: None


@dataclass(frozen=True)
class Session:
    """Where training leaves its state, what that belongs to, whether it goes on from there, and whom it tells.

    ``activations`` is the folder where those of frozen layers are kept, in memory if there is none.
    ``seconds_spent`` were taken by what went before, the training of a head alone.
    """

    checkpoint: Path | None = None
    key: str = ""
    resume: bool = False
    activations: Path | None = None
    on_epoch: Callable[[Epoch], None] = lambda epoch: None
    seconds_spent: float = 0.0


@dataclass(frozen=True, eq=False)
class Items:
    """What is learned from: inputs (n_items, ...), affinity (n_items, n_items), and labels if there are any.

    ``features`` (n_items, n_features) are what the front end makes of them before training.
    ``vary`` gives the inputs of some rows as training sees them, drawn by a generator; as they are, if it is None.
    """

    inputs: "Tensor"
    affinity: Affinity
    labels: AnyArray | None = None
    features: "Tensor | None" = None
    vary: "Callable[[Tensor, Generator], Tensor] | None" = None

    def seen(self, rows: "Tensor", generator: "Generator") -> "Tensor":
        """Give the inputs of some rows as training sees them, other ones each time if they are varied."""
        return self.inputs[rows] if self.vary is None else self.vary(rows, generator)


def train(
    network: "nn.Module", items: Items, loss: Loss, settings: Settings, session: Session, generator: "Generator"
) -> TrainingState:
    """Train a network in place; this is the whole of it.

    Parameters
    ----------
    network : nn.Module
        From a batch of inputs to outputs of shape (n_batch, n_bits). Before it encodes it may ``settle`` what it knows
        of all items, which are given to it in batches.
    items : Items
        What it learns from.
    loss : Loss
        What to minimise.
    settings : Settings
        How.
    session : Session
        Checkpoints and progress.
    generator : torch.Generator
        Decides which items are held out, what a batch is made of, and how it varies.

    Returns
    -------
    TrainingState
        With its history.

    Raises
    ------
    Stopped
        If all training items stay in next to no codes for three epochs or end in a single one, or the loss is no
        number.
    HashbenchError
        If the checkpoint to resume from belongs to something else.
    """
    import torch

    from hashbench.learning import networks

    inputs, affinity, n_bits = items.inputs, items.affinity, settings.n_bits
    device = find_device(settings.device)
    network.to(device)
    held, kept = torch.arange(0), torch.arange(len(inputs))
    if settings.validation:
        from hashbench.learning import held_out

        held, kept = held_out.split(settings.name, settings.validation, len(inputs), affinity, generator)
    groups = networks.parameter_groups(network, settings.bias_multiplier, settings.pretrained_multiplier)
    if loss.own is not None and any(True for _ in loss.own.to(device).parameters()):
        groups.append({"params": list(loss.own.parameters()), "multiplier": 1.0})
    optimizer = networks.make_optimizer(
        settings.optimizer, groups, settings.learning_rate, settings.momentum, settings.weight_decay
    )
    all_outputs = torch.zeros(len(kept), n_bits, dtype=torch.float64, device=device)
    state = TrainingState(network, loss.own, optimizer, generator, all_outputs, session.seconds_spent)
    n_kinds = min(count_kinds(affinity), len(kept))
    path, numbers = session.checkpoint, kept.numpy()
    if session.resume and path is not None and path.exists():
        state.read(path, session.key)

    n_batches = -(-len(kept) // settings.batch_size)
    with networks.reproducible(device), torch.enable_grad():
        for epoch in range(len(state.history), settings.epochs):
            halvings = epoch // settings.halve_every if settings.halve_every else 0
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * 0.5**halvings * group["multiplier"]
            total = torch.zeros((), dtype=torch.float64, device=device)
            order = torch.randperm(len(kept), generator=generator)
            network.train()
            for position, rows in enumerate(order.tensor_split(n_batches)):  # sizes differ by one at most
                seen = items.seen(kept[rows], generator).to(device)
                with torch.autocast(device.type, torch.bfloat16, enabled=settings.mixed_precision):
                    outputs = network(seen)
                outputs = outputs.double()
                if not _is_sane(outputs):
                    raise Stopped(f"in epoch {epoch + 1}: outputs are no longer finite")
                all_outputs[rows.to(device)] = outputs.detach()
                step = epoch * n_batches + position
                batch = Batch(
                    *(outputs, rows.numpy(), all_outputs, affinity, numbers, epoch, step),
                    given_labels=items.labels,
                    given_features=items.features,
                    own=loss.own,
                )
                with torch.autocast(device.type, enabled=False):
                    value = loss.compute(batch)
                    optimizer.zero_grad()
                    torch.autograd.backward(value)
                optimizer.step()
                with torch.no_grad():
                    loss.end_step(batch)
                total += value.detach()
            with torch.no_grad():
                loss.end_epoch(batch)

            report = Epoch(
                number=epoch + 1,
                n_epochs=settings.epochs,
                loss=float(total) / n_batches,
                n_distinct=len(np.unique(pack((all_outputs > 0).cpu().numpy()), axis=0)),
                mean_output=float(all_outputs.abs().mean()),
                score=_held_out_score(network, inputs, affinity, held, kept, settings.criterion),
            )
            stop_if_failed([*state.history, report], n_kinds, n_bits)
            state.add(report)
            if path is not None:
                state.write(path, session.key)
            session.on_epoch(report)
        if len(held):
            network.load_state_dict(state.best)
        _settle(network, inputs, kept)
        codes = pack(_bits(network, inputs, kept))  # no longer as of the last visit
    report = state.history[-1]._replace(n_distinct=len(np.unique(codes, axis=0)))
    stop_if_failed([*state.history[:-1], report], n_kinds, n_bits, is_over=True)
    return state


def _held_out_score(
    network: "nn.Module", inputs: "Tensor", affinity: Affinity, held: "Tensor", kept: "Tensor", criterion: str
) -> float:
    """Score the held-out items as queries to the others; NaN if there are none."""
    if not len(held):
        return float("nan")
    from hashbench.learning import held_out

    _settle(network, inputs, kept)
    held_codes, kept_codes = (_bits(network, inputs, rows) for rows in (held, kept))
    return held_out.score(held_codes, kept_codes, affinity.part(held.numpy(), kept.numpy()), criterion)


def _is_sane(outputs: "Tensor") -> bool:
    """Check that training has not diverged: outputs are numbers that float32 could hold."""
    return bool((outputs.abs() <= float(np.finfo(np.float32).max)).all())


def _settle(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> None:
    """Let a network take up what it knows of all items as they are now, if there is any such thing."""
    settle = getattr(network, "settle", None)
    if settle is not None:
        with _encoding(network):
            settle(_batches(network, inputs, rows))


def _bits(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> BoolArray:
    """Encode some items; shape (len(rows), n_bits)."""
    import torch

    with _encoding(network):
        outputs = torch.cat([network(batch) for batch in _batches(network, inputs, rows)])
    if not _is_sane(outputs):
        raise Stopped("with outputs that are not finite")
    return np.asarray((outputs > 0).cpu().numpy())


@contextmanager
def _encoding(network: "nn.Module") -> Iterator[None]:
    """Let nothing be learned, and no digit be spared."""
    import torch

    network.eval()
    with torch.no_grad(), torch.autocast(next(network.parameters()).device.type, enabled=False):
        yield


def _batches(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> "Iterator[Tensor]":
    """Give some items where the network is, a few at a time."""
    import torch

    device, n_at_once = next(network.parameters()).device, _ENCODED if inputs.ndim == 2 else _ENCODED_IMAGES
    return (inputs[few].to(device) for few in torch.split(rows, n_at_once))

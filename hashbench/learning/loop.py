"""The loop that trains all methods; its whole state is visible here."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray, BoolArray, Progress, silent
from hashbench.affinity import Affinity
from hashbench.bits import pack
from hashbench.errors import Refusal
from hashbench.learning.batch import Batch
from hashbench.learning.state import Epoch, Stopped, TrainingState, count_kinds, stop_if_failed
from hashbench.sources._torch import find_device

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

_ENCODED, _ENCODED_IMAGES = 4096, 32  # items per forward pass without gradients
_LONGEST_STEP = 2.0  # at the initial learning rate


@dataclass(frozen=True)
class Settings:
    """The name of a method, and its parameters of `hashbench.learning.base.LearnedHash` that affect training."""

    name: str
    n_bits: int
    epochs: int
    batch_size: int
    learning_rate: float
    momentum: float
    halve_every: int
    weight_decay: float
    decay_items: int | None
    bias_multiplier: float
    pretrained_multiplier: float | None  # None: the backbone learns like the head
    validation: float
    criterion: str
    device: str
    mixed_precision: bool
    optimizer: str
    head_epochs: int
    n_views: int


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss and its callbacks.

    ``compute`` returns a scalar for a batch. ``own`` holds parameters of the loss, trained with the network, and
    buffers; both are in checkpoints, and dropped when training ends. ``end_step`` is called with each batch after its
    step, ``end_epoch`` with the last one of each epoch.
    """

    compute: Callable[[Batch], "Tensor"]
    own: "nn.Module | None" = None
    end_step: Callable[[Batch], None] = lambda batch: None
    end_epoch: Callable[[Batch], None] = lambda batch: None


@dataclass(frozen=True)
class Session:
    """Checkpoint file, its key, whether to resume from it, and the callback after each epoch.

    ``on_progress`` is called in long work before the first epoch. ``activations`` is the folder for activations of
    frozen layers, which stay in memory if it is None. ``seconds_spent`` is the time that training the head took before.
    """

    checkpoint: Path | None = None
    key: str = ""
    resume: bool = False
    activations: Path | None = None
    on_epoch: Callable[[Epoch], None] = lambda epoch: None
    on_progress: Progress = silent
    seconds_spent: float = 0.0


@dataclass(frozen=True, eq=False)
class Items:
    """Training items: inputs (n_items, ...), affinity (n_items, n_items), and labels if there are any.

    ``features`` (n_items, n_features) are the output of the front end before training. ``vary`` returns randomly
    augmented inputs of some rows; if it is None they are used unchanged.

    Examples
    --------
    >>> import torch
    >>> from hashbench import SameLabel
    >>> labels = np.array([3, 4])
    >>> Items(torch.zeros(2, 8), SameLabel(labels, labels), labels).labels.tolist()
    [3, 4]
    """

    inputs: "Tensor"
    affinity: Affinity
    labels: AnyArray | None = None
    features: "Tensor | None" = None
    vary: "Callable[[Tensor, Generator], Tensor] | None" = None

    def seen(self, rows: "Tensor", generator: "Generator") -> "Tensor":
        """Return the inputs of some rows, freshly augmented if ``vary`` is set."""
        return self.inputs[rows] if self.vary is None else self.vary(rows, generator)


def train(
    network: "nn.Module", items: Items, loss: Loss, settings: Settings, session: Session, generator: "Generator"
) -> TrainingState:
    """Train a network in place, from a batch of inputs to outputs (n_batch, n_bits).

    Before it encodes, a network with a method ``settle`` gets all items in batches, to update its statistics. The
    generator draws held-out items, batches and augmentation.

    Raises
    ------
    Stopped
        If codes collapse (see `stop_if_failed`), or outputs or loss are not finite.
    HashbenchError
        If the checkpoint to resume from belongs to other training.
    """
    import torch

    from hashbench.learning import networks

    inputs, affinity, n_bits = items.inputs, items.affinity, settings.n_bits
    device = find_device(settings.device)
    network.to(device)
    held_rows, train_rows = torch.arange(0), torch.arange(len(inputs))
    if settings.validation:
        held_rows, train_rows = _split(settings.name, settings.validation, len(inputs), affinity, generator)
    groups = networks.parameter_groups(network, settings.bias_multiplier, settings.pretrained_multiplier)
    if loss.own is not None and any(True for _ in loss.own.to(device).parameters()):
        groups.append({"params": list(loss.own.parameters()), "multiplier": 1.0})
    weight_decay = settings.weight_decay
    if settings.decay_items is not None:
        weight_decay *= min(1.0, settings.decay_items / len(train_rows))
    optimizer = networks.make_optimizer(
        settings.optimizer, groups, settings.learning_rate, settings.momentum, weight_decay
    )
    all_outputs = torch.zeros(len(train_rows), n_bits, dtype=torch.float64, device=device)
    state = TrainingState(network, loss.own, optimizer, generator, all_outputs, session.seconds_spent)
    n_kinds = min(count_kinds(affinity), len(train_rows))
    path, numbers = session.checkpoint, train_rows.numpy()
    if session.resume and path is not None and path.exists():
        state.read(path, session.key)

    n_batches = -(-len(train_rows) // settings.batch_size)
    with networks.reproducible(device), torch.enable_grad():
        for epoch in range(len(state.history), settings.epochs):
            halvings = epoch // settings.halve_every if settings.halve_every else 0
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * 0.5**halvings * group["multiplier"]
            total = torch.zeros((), dtype=torch.float64, device=device)
            order = torch.randperm(len(train_rows), generator=generator)
            network.train()
            for position, rows in enumerate(order.tensor_split(n_batches)):  # sizes differ by one at most
                seen = torch.cat([items.seen(train_rows[rows], generator) for _ in range(settings.n_views)]).to(device)
                with torch.autocast(device.type, torch.bfloat16, enabled=settings.mixed_precision):
                    outputs = network(seen)
                views = outputs.double().unflatten(0, (settings.n_views, -1))  # (n_views, n_batch, n_bits)
                if not _is_sane(views):
                    raise Stopped(f"in epoch {epoch + 1}: outputs are no longer finite")
                outputs = views[0]
                all_outputs[rows.to(device)] = outputs.detach()
                batch = Batch(
                    outputs=outputs,
                    rows=rows.numpy(),
                    all_outputs=all_outputs,
                    affinity=affinity,
                    numbers=numbers,
                    epoch=epoch,
                    share=(epoch * n_batches + position) / (settings.epochs * n_batches),
                    training_labels=items.labels,
                    training_features=items.features,
                    own=loss.own,
                    views=views,
                )
                with torch.autocast(device.type, enabled=False):
                    value = loss.compute(batch)
                    optimizer.zero_grad()
                    torch.autograd.backward(value)
                    if settings.optimizer == "sgd":  # the others scale gradients by themselves
                        _bound_step(optimizer.param_groups, settings.learning_rate)
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
                score=_held_out_score(network, inputs, affinity, held_rows, train_rows, settings.criterion),
            )
            stop_if_failed([*state.history, report], n_kinds, n_bits)
            state.add(report)
            if path is not None:
                state.write(path, session.key)
            session.on_epoch(report)
        if len(held_rows):
            network.load_state_dict(state.best)
        _settle(network, inputs, train_rows)
        codes = pack(_bits(network, inputs, train_rows))  # of the final network, unlike all_outputs
    report = state.history[-1]._replace(n_distinct=len(np.unique(codes, axis=0)))
    stop_if_failed([*state.history[:-1], report], n_kinds, n_bits, is_over=True)
    return state


def _split(
    name: str, share: float, n_items: int, affinity: Affinity, generator: "Generator"
) -> "tuple[Tensor, Tensor]":
    """Draw the row numbers of the items to hold out and of those to learn from, each ascending."""
    import torch

    n_held = round(share * n_items)
    if not n_held:
        raise Refusal(f"{name} got validation={share} of n_samples={n_items} items, which is none. Raise it or use 0.")
    drawn = torch.randperm(n_items, generator=generator).split_with_sizes([n_held, n_items - n_held])
    held_rows, train_rows = (part.sort().values for part in drawn)
    batches = np.array_split(held_rows.numpy(), -(-n_held // 256))
    if not any(affinity.block(rows, train_rows.numpy()).any() for rows in batches):
        raise Refusal(
            f"{name} cannot choose an epoch: none of {n_held} items held out is relevant to another training "
            "item. Leave validation out."
        )
    return held_rows, train_rows


def _held_out_score(
    network: "nn.Module",
    inputs: "Tensor",
    affinity: Affinity,
    held_rows: "Tensor",
    train_rows: "Tensor",
    criterion: str,
) -> float:
    """Score the held-out items as queries to the others; NaN if there are none."""
    if not len(held_rows):
        return float("nan")
    from hashbench.scoring.problem import evaluate

    _settle(network, inputs, train_rows)
    held_codes, train_codes = _bits(network, inputs, held_rows), _bits(network, inputs, train_rows)
    of_held = affinity.part(held_rows.numpy(), train_rows.numpy())
    return evaluate(held_codes, train_codes, of_held, [criterion], undefined="paper").summary[criterion].mean


def _bound_step(groups: list[dict[str, Any]], learning_rate: float) -> None:
    """Scale gradients down, in place, if a step at the initial rate would be longer than `_LONGEST_STEP`.

    Where most items lie along a few directions, as in iris, the gradients of all items add up, and steps that suit
    other data diverge. What overflows stays, so that training stops.
    """
    import torch

    found = [
        (group["multiplier"], value.grad) for group in groups for value in group["params"] if value.grad is not None
    ]
    length = learning_rate * float(torch.stack([multiplier * gradient.norm() for multiplier, gradient in found]).norm())
    if _LONGEST_STEP < length < float("inf"):
        for _, gradient in found:
            gradient.mul_(_LONGEST_STEP / length)


def _is_sane(outputs: "Tensor") -> bool:
    """Return whether outputs are finite and within the range of float32; if not, training has diverged."""
    return bool((outputs.abs() <= float(np.finfo(np.float32).max)).all())


def _settle(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> None:
    """Update the statistics of a network that has a method ``settle``."""
    settle = getattr(network, "settle", None)
    if settle is not None:
        with _encoding(network):
            settle(_batches(network, inputs, rows))


def _bits(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> BoolArray:
    """Encode some items, (len(rows), n_bits)."""
    import torch

    with _encoding(network):
        outputs = torch.cat([network(batch) for batch in _batches(network, inputs, rows)])
    if not _is_sane(outputs):
        raise Stopped("with outputs that are not finite")
    return np.asarray((outputs > 0).cpu().numpy())


@contextmanager
def _encoding(network: "nn.Module") -> Iterator[None]:
    """Disable dropout, gradients and mixed precision."""
    import torch

    network.eval()
    with torch.no_grad(), torch.autocast(next(network.parameters()).device.type, enabled=False):
        yield


def _batches(network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> "Iterator[Tensor]":
    """Yield inputs of some rows on the network's device, in batches."""
    import torch

    device, n_rows = next(network.parameters()).device, _ENCODED if inputs.ndim == 2 else _ENCODED_IMAGES
    return (inputs[batch].to(device) for batch in torch.split(rows, n_rows))

"""The base of all methods that learn by gradient descent, and the one loop that trains them.

PyTorch is imported when a method is fitted, not before.
"""

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import joblib
import numpy as np
import numpy.typing as npt

from hashbench._torch import find_device
from hashbench._typing import BoolArray, FloatArray, IntArray
from hashbench.affinity import Affinity
from hashbench.bits import pack
from hashbench.errors import HashbenchError, Refusal, TrainingFailure
from hashbench.method import Epoch, HashMethod, choice, real, setting, whole
from hashbench.scoring.evaluation import evaluate, scoring_modules

if TYPE_CHECKING:
    from torch import Tensor, nn

    from hashbench.sources.features.weights import Extractor

_HIDDEN_MEAN = 1 / np.sqrt(2 * np.pi)  # of ReLU under standard normal inputs
_ENCODED, _ENCODED_IMAGES = 4096, 32  # items that go through the network at a time, without gradients
_PATIENCE = 3  # epochs that training may spend with next to no codes; many recover
_OF_IMAGES = ("augmentation", "backbone", "image_size", "pretrained_multiplier", "weights")


@dataclass(frozen=True, eq=False)
class Batch:
    """What a loss may look at.

    Parameters
    ----------
    outputs : Tensor of shape (n_batch, n_bits)
        Outputs of the batch before the sign, float32; the gradient flows through them.
    rows : ndarray of shape (n_batch,), int64
        Which of the ``all_outputs`` they are.
    all_outputs : Tensor of shape (n_items, n_bits)
        The last outputs of every training item, those of this batch included; 0 before an item's
        first visit. No gradient.
    affinity : Affinity
        Of the training items to each other, for ``numbers``.
    numbers : ndarray of shape (n_items,), int64
        Where the affinity has the items of ``all_outputs``.
    epoch, step : int
        Epochs, and batches of all epochs, that went before.
    """

    outputs: "Tensor"
    rows: IntArray
    all_outputs: "Tensor"
    affinity: Affinity
    numbers: IntArray
    epoch: int = 0
    step: int = 0

    @cached_property
    def levels(self) -> "Tensor":
        """Levels of the batch to itself, int16 of shape (n_batch, n_batch), self-pairs on the diagonal."""
        return self._levels(self.numbers[self.rows])

    @cached_property
    def all_levels(self) -> "Tensor":
        """Levels of the batch to all training items, int16 of shape (n_batch, n_items), self-pairs included."""
        return self._levels(self.numbers)

    def _levels(self, columns: IntArray) -> "Tensor":
        import torch

        block = self.affinity.block(self.numbers[self.rows], columns)
        return torch.from_numpy(block).to(self.outputs.device)


@dataclass(eq=False, repr=False)
class LearnedHash(HashMethod):
    """Bits are signs of a network's outputs; the network learns from pairs of training items.

    Items are features, or with a ``backbone`` images (n, height, width, 1 or 3), uint8.

    A subclass is a dataclass that adds its parameters, and gives the loss of a `Batch` in ``_loss``.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    backbone : {None, "alexnet", "vgg-f", "squeezenet", "resnet18"}, default=None
        The pretrained network that images go through; it is trained together with the head.
    weights : str, optional
        File of its weights; by default the official ones, downloaded once.
    image_size : int, default=0
        Width and height in pixels that images are resized to; 0 for what the network was trained on, or
        less for small images (128 for CIFAR's).
    pretrained_multiplier : float, default=0.01
        Of the learning rate of pretrained layers; 0 leaves them as they are.
    augmentation : {"none", "flip", "crop"}, default="none"
        Whether training images are mirrored at random, and also moved by up to an eighth.
    head : {"mlp", "linear"}, default="mlp"
        A hidden layer of rectified units and a linear layer, or the latter alone.
    n_hidden : int, default=1024
        Units of the hidden layer.
    scaling : {"variance", "norm", "none"}, default="variance"
        What becomes of items after the training mean is taken away: norm sqrt(n_features / 2), which
        makes outputs start at variance 1; norm 1; or nothing.
    epochs : int
        Passes over the training items.
    batch_size : int
        The most training items that make a step; sizes of an epoch's batches differ by one at most.
    learning_rate : float, default=0.1
        Of stochastic gradient descent.
    momentum : float, default=0.9
        Its momentum.
    halve_every : int
        Epochs after which the learning rate is halved, again and again; 0 for never.
    weight_decay : float, default=5e-4
        Of weights and biases.
    bias_multiplier : float, default=0.1
        Of the learning rate of biases.
    validation : float, default=0.0
        Share of the training items that is held out; the epoch in which they, as queries to the
        others, score best (``criterion``) is kept. With 0, the last one is.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train; a GPU's results may differ from run to run in the last digits.
    mixed_precision : bool, default=False
        On a GPU, run the network in bfloat16; never the loss.
    random_state : int, default=0
        Seed of initial weights, batches and held-out items.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items, or of the features that the pretrained network gives for them.
    layers_ : list of tuple of ndarray
        Weights (n_in, n_out) and biases (n_out,) of the head's layers.
    network_ : hashbench.learning.image_network.ImageNetwork
        From images to outputs; only with a backbone.
    history_ : list of Epoch
        How training went.
    """

    n_bits: int = 32
    _: KW_ONLY
    backbone: str | None = setting(None, choice("alexnet", "resnet18", "squeezenet", "vgg-f"), None)
    weights: str | None = setting(None, str, None)
    image_size: int = setting(0, whole(0))
    pretrained_multiplier: float = setting(0.01, real(0))
    augmentation: str = setting("none", choice("crop", "flip", "none"))
    head: str = setting("mlp", choice("linear", "mlp"))
    n_hidden: int = setting(1024, whole(1))
    scaling: str = setting("variance", choice("none", "norm", "variance"))
    epochs: int = setting(30, whole(1))
    batch_size: int = setting(100, whole(2))
    learning_rate: float = setting(0.1, real(0, closed="neither"))
    momentum: float = setting(0.9, real(0, 1, closed="left"))
    halve_every: int = setting(10, whole(0))
    weight_decay: float = setting(5e-4, real(0))
    bias_multiplier: float = setting(0.1, real(0))
    validation: float = setting(0.0, real(0, 0.5))
    device: str = setting("auto", choice("auto", "cpu", "cuda"))
    mixed_precision: bool = setting(False, bool)
    random_state: int = 0

    supervision = "affinity"
    criterion: ClassVar[str] = "AP"
    libraries = (*HashMethod.libraries, "torch")

    def _loss(self, batch: Batch) -> "Tensor":
        """Give the loss of a batch, a scalar to be minimised."""
        raise NotImplementedError

    def check_parameters(self) -> None:
        """Refuse parameters out of range, and to start without PyTorch; see `HashMethod.check_parameters`."""
        super().check_parameters()
        useless = [name for name in ("weights", "image_size", "augmentation") if self._is_set(name)]
        if self.backbone is None and useless:
            raise HashbenchError(
                f"{self.label} has no use for {' and '.join(useless)} without a backbone. Add one, such as "
                "backbone=squeezenet, or leave this out."
            )
        if find_spec("torch") is None:
            raise HashbenchError(
                f"{self.label} needs PyTorch, which is not installed: pip install 'hashbench[learned]'."
            )

    @property
    def input_kind(self) -> Literal["features", "images"]:
        """Which part of a dataset is ``X``: images, if there is a backbone for them."""
        return "features" if self.backbone is None else "images"

    def depends_on(self) -> tuple[str, ...]:
        """Name the further modules that codes depend on; see `HashMethod.depends_on`.

        Returns
        -------
        tuple of str
            With a backbone those of images, too; with held-out items those of the metrics.
        """
        images = (
            "hashbench.learning.image_network",
            "hashbench.sources.features.backbones",
            "hashbench.sources.features.weights",
        )
        return (*self.modules, *(images if self.backbone else ()), *(scoring_modules() if self.validation else ()))

    def recorded_params(self) -> dict[str, Any]:
        """Give the parameters that identify codes; see `HashMethod.recorded_params`.

        Returns
        -------
        dict
            Without the device, and without those of images where there is no backbone; weights by the first 8 hex
            digits of their SHA-256.
        """
        params = super().recorded_params()
        del params["device"]
        if self.backbone is None:
            return {key: value for key, value in params.items() if key not in _OF_IMAGES}
        from hashbench.sources.features.weights import weights_digest

        return {**params, "weights": weights_digest(self.backbone, self._weights_path)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "layers_")  # the last thing that a fit gives; a fit cut short has none

    def _checked_items(self, X: npt.ArrayLike, *, reset: bool) -> Any:
        if self.input_kind == "features":
            return super()._checked_items(X, reset=reset)
        images = np.asarray(X)
        if images.ndim != 4 or images.dtype != np.uint8 or images.shape[3] not in (1, 3) or not images.size:
            raise HashbenchError(
                f"{self.label} with a backbone got {images.dtype} items of shape {images.shape}, expected images: "
                "uint8 of shape (n, height, width, 3)."
            )
        colour = images if images.shape[3] == 3 else images.repeat(3, axis=3)
        return np.require(colour, requirements=["C", "W"])  # as PyTorch takes arrays

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(type(self), name))

    def _fit(self, X: npt.NDArray[Any], y: Affinity) -> None:
        import torch

        from hashbench.learning import networks

        for name in ("layers_", "network_"):  # of an earlier fit
            self.__dict__.pop(name, None)
        if (X[0] == X).all():
            raise Refusal(f"{self.label} needs training items that differ, got n_samples={len(X)}, all of them equal.")
        device = find_device(self.device)
        extractor = self._extractor(X)
        with networks.reproducible(device):
            given = X if extractor is None else extractor(X)
        features: FloatArray = np.ascontiguousarray(given, np.float64)  # sums then run in one order
        self.mean_ = features.mean(axis=0)
        inputs = self._front_end(features)
        generator = torch.Generator().manual_seed(self.random_state)
        n_hidden = self.n_hidden if self.head == "mlp" else 0
        head = networks.make_head(inputs.shape[1], self.n_bits, n_hidden, generator)
        if extractor is None:
            self.history_ = train(self, head, torch.from_numpy(inputs).float(), y, generator)
        else:
            from hashbench.learning.image_network import ImageNetwork

            extractor.network.requires_grad_(self.pretrained_multiplier > 0)
            self.network_ = ImageNetwork(extractor, self.mean_, self._norm(inputs.shape[1]), head)
            self.history_ = train(self, self.network_, torch.from_numpy(X), y, generator)
            self.network_.cpu()
        self.layers_ = networks.head_layers(head)

    def _project(self, X: npt.NDArray[Any]) -> FloatArray:
        if self.backbone is not None:
            return self._project_images(X)
        values = self._front_end(X)
        for position, (weights, bias) in enumerate(self.layers_):
            if position:
                values = np.maximum(values, 0) - _HIDDEN_MEAN  # as CentredReLU
            values = values @ weights + bias
        return values

    def _project_images(self, images: npt.NDArray[np.uint8]) -> FloatArray:
        from hashbench.learning import networks
        from hashbench.sources.features.weights import in_batches

        device = find_device(self.device)
        with networks.reproducible(device):
            outputs = in_batches(self.network_.to(device).eval(), images, self.n_bits, device.type)
        self.network_.cpu()
        return outputs.astype(np.float64)

    @property
    def _weights_path(self) -> Path | None:
        return None if self.weights is None else Path(self.weights)

    def _extractor(self, images: npt.NDArray[Any]) -> "Extractor | None":
        """Read the backbone, if there is one."""
        if self.backbone is None:
            return None
        from hashbench.sources.features.backbones import get_backbone
        from hashbench.sources.features.weights import Extractor, find_weights

        path = find_weights(self.backbone, self._weights_path)
        height, width = images.shape[1:3]
        size = self.image_size or get_backbone(self.backbone).usual_size(height if height == width else None)
        return Extractor(self.backbone, path, image_size=size, device=self.device)

    def _front_end(self, X: FloatArray) -> FloatArray:
        centred: FloatArray = X - self.mean_
        norm = self._norm(X.shape[1])
        if norm is None:
            return centred
        norms = np.linalg.norm(centred, axis=1, keepdims=True)
        centred /= np.where(norms > 0, norms, 1)
        return centred * norm

    def _norm(self, n_features: int) -> float | None:
        """Give the norm that the front end brings features to, None for that they have."""
        return {"variance": float(np.sqrt(n_features / 2)), "norm": 1.0, "none": None}[self.scaling]


def train(
    method: LearnedHash, network: "nn.Module", inputs: "Tensor", affinity: Affinity, generator: Any
) -> list[Epoch]:
    """Train a network in place; this is the whole of it.

    Parameters
    ----------
    method : LearnedHash
        Its parameters, its loss, and where checkpoints and progress go.
    network : nn.Module
        From a batch of inputs to outputs of shape (n_batch, n_bits).
    inputs : Tensor of shape (n_items, ...)
        What the network takes; ``inputs[rows]`` gives a batch.
    affinity : Affinity
        Of shape (n_items, n_items).
    generator : torch.Generator
        Decides which items are held out and what a batch is made of.

    Returns
    -------
    list of Epoch
        How it went.

    Raises
    ------
    HashbenchError
        If all training items stay in next to no codes for three epochs or end in a single one, the loss is no
        number, or the checkpoint to resume from belongs to something else.
    """
    import torch

    from hashbench.learning import networks

    device = find_device(method.device)
    if method.mixed_precision and device.type != "cuda":
        raise HashbenchError("mixed_precision needs a CUDA GPU, and training is on the CPU. Leave it out.")
    network.to(device)
    held, kept = _split(method, len(inputs), affinity, generator)
    groups = networks.parameter_groups(network, method.bias_multiplier, method.pretrained_multiplier)
    optimizer = torch.optim.SGD(
        groups, lr=method.learning_rate, momentum=method.momentum, weight_decay=method.weight_decay
    )
    all_outputs = torch.zeros(len(kept), method.n_bits, dtype=torch.float32, device=device)
    state = networks.TrainingState(network, optimizer, generator, all_outputs)
    key = "" if method.checkpoint is None else _key(method, inputs, affinity)
    n_kinds = min(_n_kinds(affinity), len(kept))
    if method.resume and method.checkpoint is not None and method.checkpoint.exists():
        state.read(method.checkpoint, key)
    method.resumed_seconds_ = state.seconds_before

    n_batches = -(-len(kept) // method.batch_size)
    with networks.reproducible(device), torch.enable_grad():
        for epoch in range(len(state.history), method.epochs):
            halvings = epoch // method.halve_every if method.halve_every else 0
            for group in optimizer.param_groups:
                group["lr"] = method.learning_rate * 0.5**halvings * group["multiplier"]
            total = torch.zeros((), dtype=torch.float64, device=device)
            order = torch.randperm(len(kept), generator=generator)
            network.train()
            for position, rows in enumerate(order.tensor_split(n_batches)):  # sizes differ by one at most
                with torch.autocast(device.type, torch.bfloat16, enabled=method.mixed_precision):
                    outputs = network(networks.augmented(inputs[kept[rows]], method.augmentation, generator).to(device))
                outputs = outputs.float()
                if not outputs.isfinite().all():
                    raise _failure(method, f"in epoch {epoch + 1}: outputs are no longer finite")
                all_outputs[rows.to(device)] = outputs.detach()
                step = epoch * n_batches + position
                with torch.autocast(device.type, enabled=False):
                    loss = method._loss(Batch(outputs, rows.numpy(), all_outputs, affinity, kept.numpy(), epoch, step))
                    optimizer.zero_grad()
                    torch.autograd.backward(loss)
                optimizer.step()
                total += loss.detach()

            score = _held_out_score(method, network, inputs, affinity, held, kept)
            report = Epoch(
                number=epoch + 1,
                n_epochs=method.epochs,
                loss=float(total) / n_batches,
                n_distinct=len(np.unique(pack((all_outputs > 0).cpu().numpy()), axis=0)),
                mean_output=float(all_outputs.abs().mean()),
                score=score,
            )
            _stop_if_failed(method, [*state.history, report], n_kinds)
            state.add(report)
            if method.checkpoint is not None:
                state.write(method.checkpoint, key)
            if method.on_epoch is not None:
                method.on_epoch(report)
        if len(held):
            network.load_state_dict(state.best)
        codes = pack(_bits(method, network, inputs, kept))  # no longer as of the last visit
    report = state.history[-1]._replace(n_distinct=len(np.unique(codes, axis=0)))
    _stop_if_failed(method, [*state.history[:-1], report], n_kinds, is_over=True)
    return state.history


def _split(method: LearnedHash, n_items: int, affinity: Affinity, generator: Any) -> "tuple[Tensor, Tensor]":
    """Draw the items that are held out, if any, and those that are learned from; row numbers, ascending."""
    import torch

    if not method.validation:
        return torch.arange(0), torch.arange(n_items)
    n_held = round(method.validation * n_items)
    if not n_held:
        raise Refusal(f"{method.label} got validation={method.validation} of n_samples={n_items} items, which is none.")
    drawn = torch.randperm(n_items, generator=generator).split_with_sizes([n_held, n_items - n_held])
    held, kept = (part.sort().values for part in drawn)
    if not any(affinity.block(rows, kept.numpy()).any() for rows in np.array_split(held.numpy(), -(-n_held // 256))):
        raise Refusal(
            f"{method.label} cannot choose an epoch: none of {n_held} items held out is relevant to another training "
            "item. Leave validation out."
        )
    return held, kept


def _bits(method: LearnedHash, network: "nn.Module", inputs: "Tensor", rows: "Tensor") -> BoolArray:
    """Encode some items; shape (len(rows), n_bits)."""
    import torch

    device, n_at_once = next(network.parameters()).device, _ENCODED if inputs.ndim == 2 else _ENCODED_IMAGES
    network.eval()
    with torch.no_grad(), torch.autocast(device.type, enabled=False):
        outputs = torch.cat([network(inputs[few].to(device)) for few in torch.split(rows, n_at_once)])
    if not outputs.isfinite().all():
        raise _failure(method, "with outputs that are not finite")
    return np.asarray((outputs > 0).cpu().numpy())


def _held_out_score(
    method: LearnedHash, network: "nn.Module", inputs: "Tensor", affinity: Affinity, held: "Tensor", kept: "Tensor"
) -> float:
    """Score the held-out items as queries to the others; NaN if there are none."""
    if not len(held):
        return float("nan")
    held_codes, kept_codes = (_bits(method, network, inputs, rows) for rows in (held, kept))
    part = affinity.part(held.numpy(), kept.numpy())
    scores = evaluate(held_codes, kept_codes, part, [method.criterion], undefined="paper")
    return scores.summary[method.criterion].mean


def _stop_if_failed(method: LearnedHash, history: list[Epoch], n_kinds: int, *, is_over: bool = False) -> None:
    """Raise where training has failed for good."""
    last = history[-1]
    when = f"after epoch {last.number}, with mean |output| {last.mean_output:.3g}"
    if not np.isfinite(last.loss):
        raise _failure(method, f"{when}: the loss is {last.loss}")
    share = 2 if 2**method.n_bits >= n_kinds**2 else 4  # with fewer bits kinds share codes even by chance
    n_too_few = max(min(n_kinds, 2**method.n_bits) // share, 1)
    counts = [epoch.n_distinct for epoch in history[-_PATIENCE:]]
    stays_collapsed = len(counts) == _PATIENCE and max(counts) <= n_too_few and counts[-1] <= counts[0]
    ends_collapsed = is_over and last.n_distinct == 1
    if n_kinds > 1 and method.n_bits > 1 and (stays_collapsed or ends_collapsed):  # one bit may have nothing to tell
        codes = "1 code" if last.n_distinct == 1 else f"{last.n_distinct} different codes"
        kinds = f"{n_kinds} kinds, none relevant to another"
        raise _failure(method, f"{when}: training items of {kinds}, have only {codes}")


def _failure(method: LearnedHash, what: str) -> TrainingFailure:
    """Build the error of a training that cannot recover, with the likely cause."""
    remedies = [f"lower learning_rate (now {method.learning_rate:g})"]
    if method.backbone is not None:
        remedies.append(f"lower pretrained_multiplier (now {method.pretrained_multiplier:g})")
    if method.scaling != "variance":
        remedies.append(f"scale the features (scaling='variance', now {method.scaling!r})")
    return TrainingFailure(
        f"{method.label} stopped {what}. Most likely training starts saturated or its steps are too large: "
        f"{', or '.join(remedies)}."
    )


def _n_kinds(affinity: Affinity) -> int:
    """Count classes, superclasses or sets of labels that several items have and that are irrelevant to each other."""
    keys = affinity.query_keys()
    first, sizes = np.arange(affinity.n_queries), np.ones(affinity.n_queries, dtype=np.int64)
    if keys is not None:
        _, first, sizes = np.unique(keys, axis=0, return_index=True, return_counts=True)
    n_several = int((sizes > 1).sum())
    left = first[np.argsort(-sizes, kind="stable")][: n_several or None]
    most, n_kinds = n_several or 2, 0  # items that are alone are hardly a measure
    while len(left) and n_kinds < most:  # the most frequent first
        is_relevant = affinity.block(left[:1], left)[0] > 0
        n_kinds += int(is_relevant.any())  # items without labels are of no kind
        left = left[1:][~is_relevant[1:]]
    return n_kinds


def _key(method: LearnedHash, inputs: "Tensor", affinity: Affinity) -> str:
    """Digest what a checkpoint belongs to."""
    params = method.recorded_params() | {"n_bits": method.n_bits, "random_state": method.random_state}
    levels = affinity.levels  # some compute them once and keep them, which is no other affinity
    return str(joblib.hash([method.label, method.version, method.made_by, params, inputs.numpy(), levels, affinity]))

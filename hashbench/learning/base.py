"""The base of all methods that learn by gradient descent: their parameters, front end and head.

PyTorch is imported when a method is fitted, not before; the loop that trains is `hashbench.learning.loop.train`.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import joblib
import numpy as np
import numpy.typing as npt

from hashbench._choices import DEVICES
from hashbench._typing import AnyArray, FloatArray
from hashbench.affinity import Affinity, SameLabel, SharedLabels
from hashbench.errors import HashbenchError, Refusal, TrainingFailure, unknown_name
from hashbench.learning.batch import Batch
from hashbench.learning.loop import Items, Loss, Session, Settings, train
from hashbench.learning.state import Stopped, StoppedHead
from hashbench.method import HashMethod, Supervision, choice, real, setting, whole
from hashbench.sources._torch import HOW_TO_INSTALL, find_device
from hashbench.sources.features.backbones import FIRST_LAYER, TRAINABLE, get_backbone

if TYPE_CHECKING:
    from torch import Generator, Tensor, nn

# What tune tries: each method goes from its default up or down.
_RATES = (1e-4, 3e-4, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_DECAYS = (0.0, 2e-5, 5e-5, 2e-4, 5e-4, 2e-3, 5e-3, 2e-2, 5e-2)
HIDDEN_MEAN = 1 / np.sqrt(2 * np.pi)  # of ReLU under standard normal inputs
_NEED_A_BACKBONE = ("weights", "image_size", "train_from", "augmentation", "head_epochs")
_WITHOUT_EFFECT = (*_NEED_A_BACKBONE, "mixed_precision")  # without a backbone
_OF_PRETRAINED = ("weights", "train_from")
_OF_IMAGES = (*_NEED_A_BACKBONE, "backbone", "pretrained_multiplier")


@dataclass(eq=False, repr=False)
class LearnedHash(HashMethod):
    """Bits are signs of a network's outputs; the network learns from pairs of training items.

    Items are features, or with a ``backbone`` images (n, height, width, 1 or 3), uint8.

    A subclass is a dataclass that adds its parameters, and returns the loss of a `Batch` in ``_loss``. It may also set
    fixed targets and return parameters of the loss in ``_begin``, update these in ``_end_step`` and ``_end_epoch``,
    and store some of them in ``_end``. A method that learns without labels sets ``supervision`` to ``"none"``. One that
    compares random views of each item sets ``n_views``, and changes features in ``_view``.

    Where levels are given by distances (GIST features), short codes of these methods rank no better than those of ITQ.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    backbone : {None, "alexnet", "vgg-f", "vgg16", "squeezenet", "resnet18", "dsh-net"}, default=None
        Network for images, trained together with the head. All are pretrained on ImageNet except dsh-net, the small
        network of DSH's authors, which starts from random weights.
    weights : str, optional
        File of its pretrained weights; by default the official ones, which are downloaded once.
    image_size : int, default=0
        Width and height in pixels to resize images to; 0 for the size that the network is meant for, or a smaller one
        for small images (CIFAR: 128, for dsh-net 32).
    pretrained_multiplier : float, default=0.01
        Factor of the learning rate of pretrained layers; 0 freezes them. Layers of dsh-net learn at the head's rates.
    train_from : str, default="conv1"
        First layer of the pretrained network to train, such as fire5 of squeezenet; by default all layers are trained.
        Earlier layers are frozen: their activations are computed once, in float32, and stored as float16.
    augmentation : {"none", "flip", "crop"}, default="none"
        Whether training images are mirrored at random ("flip"), and also shifted by up to an eighth ("crop"). Frozen
        layers run once for an image and its mirror image, and their activations are shifted.
    head_epochs : int, default=0
        Epochs before the others in which only the head is trained, on features of the original images; its rate is
        halved after each third (if ``halve_every`` is not 0). Schedules of a loss start again afterwards.
    head : {"mlp", "linear"}, default="mlp"
        A hidden layer of rectified units and a linear layer, or only the latter.
    n_hidden : int, default=1024
        Units of the hidden layer.
    scaling : {"variance", "norm", "none"}, default="variance"
        Scaling of items after the training mean is subtracted: to norm sqrt(n_features / 2), so that outputs start at
        variance 1; to norm 1; or none.
    epochs : int
        Passes over the training items.
    batch_size : int
        Maximum training items per step; sizes of an epoch's batches differ by at most one. If pretrained layers are
        trained, features are centred by the mean of their batch, for which a few items are too few.
    learning_rate : float, default=0.1
        Initial learning rate. With sgd, gradients are scaled down so that no step at this rate is longer than 2 (before
        momentum and weight decay).
    momentum : float, default=0.9
        Momentum of stochastic gradient descent.
    optimizer : {"sgd", "adam", "rmsprop"}, default="sgd"
        Optimiser; only "sgd" uses ``momentum``.
    halve_every : int
        Halve the learning rate after every so many epochs; 0 for never.
    weight_decay : float, default=5e-4
        Weight decay of weights and biases.
    decay_items : int or None, default=5000
        Number of training items that ``weight_decay`` is meant for. With more, it is multiplied by decay_items /
        n_items; None for never.
    bias_multiplier : float, default=0.1
        Factor of the learning rate of biases.
    validation : float, default=0.0
        Share of the training items to hold out. The epoch in which they score best (``criterion``), as queries to the
        others, is used; with 0, the last epoch.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where to train; results on a GPU may differ between runs in the last digits.
    mixed_precision : bool, default=False
        Train the backbone in bfloat16, which is faster on a GPU, and on a CPU with AMX instructions. Heads and losses
        are always float64.
    random_state : int, default=0
        Seed of initial weights, batches and held-out items.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the training items, or of the features of those not held out from the trained ``backbone``; float64.
    layers_ : list of tuple of ndarray
        Weights (n_in, n_out) and biases (n_out,) of the head's layers.
    network_ : hashbench.learning.image_network.ImageNetwork
        The network from images to outputs; only with a backbone.
    history_ : list of Epoch
        Statistics of each epoch.
    resumed_seconds_ : float
        Training time before the checkpoint that ``fit`` resumed from.
    session : Session
        Checkpoint and progress callback; to be set before ``fit``.
    criterion : str
        Metric of the held-out items.

    Examples
    --------
    >>> class Similar(LearnedHash):
    ...     def _loss(self, batch):
    ...         codes = batch.outputs.tanh()
    ...         return (codes @ codes.T / self.n_bits - batch.levels).square().mean()
    >>> X = np.random.default_rng(0).normal(size=(60, 8))
    >>> Similar(n_bits=4, epochs=2).fit(X, np.arange(60) % 2).transform(X).shape
    (60, 4)
    """

    n_bits: int = 32
    _: KW_ONLY
    backbone: str | None = setting(None, choice(*TRAINABLE), None)
    weights: str | None = setting(None, str, None)
    image_size: int = setting(0, whole(0))
    pretrained_multiplier: float = setting(0.01, real(0))
    train_from: str = setting(FIRST_LAYER, str)
    augmentation: str = setting("none", choice("crop", "flip", "none"))
    head_epochs: int = setting(0, whole(0))
    head: str = setting("mlp", choice("linear", "mlp"))
    n_hidden: int = setting(1024, whole(1))
    scaling: str = setting("variance", choice("none", "norm", "variance"))
    epochs: int = setting(30, whole(1))
    batch_size: int = setting(100, whole(2))
    learning_rate: float = setting(0.1, real(0, closed="neither"), tunable=_RATES)
    momentum: float = setting(0.9, real(0, 1, closed="left"))
    halve_every: int = setting(10, whole(0))
    weight_decay: float = setting(5e-4, real(0), tunable=_DECAYS)
    decay_items: int | None = setting(5000, whole(1), None)
    bias_multiplier: float = setting(0.1, real(0))
    validation: float = setting(0.0, real(0, 0.5))
    device: str = setting("auto", choice(*DEVICES))
    optimizer: str = setting("sgd", choice("adam", "rmsprop", "sgd"))
    mixed_precision: bool = setting(False, bool)
    random_state: int = 0

    supervision: ClassVar[Supervision] = "affinity"
    is_slow = True
    criterion: ClassVar[str] = "AP"
    n_views: ClassVar[int] = 1
    version = 2  # heads and losses in float64
    libraries = (*HashMethod.libraries, "torch")
    session = Session()

    @property
    def _normalises(self) -> bool:
        """Whether outputs are batch-normalised in training, which is folded into the last layer afterwards."""
        return False

    def _loss(self, batch: Batch) -> "Tensor":
        """Return the loss of a batch, a scalar to be minimised."""
        raise NotImplementedError

    def _begin(self, items: Items, generator: "Generator") -> "nn.Module | None":
        """Draw what is fixed, such as ``targets_``, and return a module of what the loss trains and stores, or None.

        The module's parameters and buffers are in ``batch.own`` and in checkpoints, and dropped when training ends.
        """
        return None

    def _view(self, features: "Tensor", generator: "Generator") -> "Tensor":
        """Return a random view of features after the front end, (n_batch, n_features); by default themselves.

        Each step draws ``n_views`` of each item. Views of images are what ``augmentation`` returns.
        """
        return features

    def _end_step(self, batch: Batch) -> None:
        """Update buffers of ``batch.own`` after the step on a batch, without gradients."""

    def _end_epoch(self, batch: Batch) -> None:
        """Update buffers of ``batch.own``, which checkpoints hold, after an epoch; ``batch`` is its last one."""

    def _end(self, own: Any) -> None:
        """Store what encoding or users need of the module that `_begin` returned, when training has ended."""

    def check_parameters(self) -> None:
        """Raise HashbenchError for parameters out of range or without PyTorch; see `HashMethod.check_parameters`."""
        super().check_parameters()
        unused = [name for name in _WITHOUT_EFFECT if self._is_set(name)]
        if self.backbone is None and unused:
            raise HashbenchError(
                f"{self.label} got {' and '.join(unused)}, which has no effect without a backbone. Add one, such as "
                "backbone=squeezenet, or leave it out."
            )
        if self.backbone is not None and self.train_from not in get_backbone(self.backbone).layers:
            raise unknown_name("layer", self.train_from, get_backbone(self.backbone).layers)
        unused = [name for name in _OF_PRETRAINED if self._is_set(name)]
        if unused and not self._is_pretrained:
            raise HashbenchError(
                f"{self.label} got {' and '.join(unused)}, which is for pretrained networks, and {self.backbone} "
                "starts from random weights. Leave it out, or choose another backbone, such as squeezenet."
            )
        if self.validation and self.supervision == "none":
            raise HashbenchError(
                f"{self.label} got validation={self.validation}, but learns without labels, so held-out items have no "
                "score. Leave validation at 0."
            )
        if find_spec("torch") is None:
            raise HashbenchError(f"{self.label} needs PyTorch, which is not installed: {HOW_TO_INSTALL}.")

    @property
    def input_kind(self) -> Literal["features", "images"]:
        """Which part of a dataset is ``X``: images if there is a backbone, else features."""
        return "features" if self.backbone is None else "images"

    def recorded_params(self) -> dict[str, Any]:
        """Return the parameters that identify codes; see `HashMethod.recorded_params`.

        The device is left out, and the parameters of images if there is no backbone. Weights are recorded as the first
        8 hex digits of their SHA-256, or as random if the network has no pretrained ones.
        """
        params = super().recorded_params()
        del params["device"]
        if self.backbone is None:
            return {key: value for key, value in params.items() if key not in _OF_IMAGES}
        if not self._is_pretrained:
            del params["pretrained_multiplier"]
        from hashbench.sources.features.weights import weights_digest

        return {**params, "weights": weights_digest(self.backbone, self._weights_path)}

    def fitted_state(self) -> dict[str, Any]:
        """Return what ``fit`` learned, with all parameters of the network, so that no file of weights is needed."""
        state = super().fitted_state()
        if "network_" in state:
            from hashbench.learning.image_network import network_state

            state["network_"] = network_state(state["network_"])
        return state

    def set_fitted_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `fitted_state` returned; see `HashMethod.set_fitted_state`."""
        super().set_fitted_state({name: value for name, value in state.items() if name != "network_"})
        if self.backbone is not None:
            from torch import Generator

            from hashbench.learning.image_network import restored
            from hashbench.learning.networks import make_head

            n_features = len(self.mean_)
            head = make_head(n_features, self.n_bits, self.n_hidden if self.head == "mlp" else 0, Generator())
            self.network_ = restored(
                state["network_"], self.backbone, self.norm_of_items, head, self.device, self.train_from
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "layers_")  # the last attribute that fit sets

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
        return np.require(colour, requirements=["C", "W"])  # as PyTorch requires

    def _is_set(self, name: str) -> bool:
        return bool(getattr(self, name) != getattr(type(self), name))

    def _fit(self, X: AnyArray, y: Affinity | AnyArray) -> None:
        import torch

        from hashbench.learning import networks

        for name in ("layers_", "network_"):  # from an earlier fit
            self.__dict__.pop(name, None)
        if (X[0] == X).all():
            raise Refusal(f"{self.label} needs training items that differ, got n_samples={len(X)}, all of them equal.")
        features, extractor, folder = X, None, self.session.activations
        generator = torch.Generator().manual_seed(self.random_state)
        if self.backbone is not None:
            from hashbench.learning.image_network import ImageNetwork, read_extractor, seen_in_training

            extractor = read_extractor(
                self.backbone, self._weights_path, X, self.image_size, self.device, self.train_from, generator
            )
            with networks.reproducible(find_device(self.device)):
                inputs = extractor.inputs(X, folder)
                vary = seen_in_training(extractor, X, inputs, self.augmentation, folder)
                features = extractor(inputs)
        features = np.ascontiguousarray(features, np.float64)  # so that sums have one order
        self.mean_ = features.mean(axis=0)
        n_hidden = self.n_hidden if self.head == "mlp" else 0
        head = networks.make_head(features.shape[1], self.n_bits, n_hidden, generator, normalise=self._normalises)
        fronted = torch.from_numpy(self._front_end(features)).double()
        if extractor is None:
            self._train(head, fronted, fronted, None, y, generator)
        else:
            extractor.network.requires_grad_(self.pretrained_multiplier > 0 or not self._is_pretrained)
            self.network_ = ImageNetwork(extractor, self.mean_, self.norm_of_items, head)
            self._train(self.network_, torch.from_numpy(inputs), fronted, vary, y, generator)
            self.mean_ = self.network_.cpu().mean.numpy()
        networks.fold(head)
        self.layers_ = networks.head_layers(head)

    def _train(
        self,
        network: "nn.Module",
        inputs: "Tensor",
        features: "Tensor",
        vary: "Callable[[Tensor, Generator], Tensor] | None",
        y: Affinity | AnyArray,
        generator: "Generator",
    ) -> None:
        """Train a network in place, with the loss and the parameters of this method."""
        affinity: Affinity
        if self.supervision == "none":  # each item is only relevant to itself
            numbers = np.arange(len(inputs))
            affinity, labels = SameLabel(numbers, numbers), None
        elif isinstance(y, Affinity):
            affinity, labels = y, getattr(y, "query_labels", None)
        else:
            affinity, labels = (SameLabel(y, y) if y.ndim == 1 else SharedLabels(y, y)), y

        def view(rows: "Tensor", generator: "Generator") -> "Tensor":
            return self._view(features[rows], generator)

        items = Items(inputs, affinity, labels, features, vary or view)
        own = self._begin(items, generator)
        if own is not None:
            own.double()
        loss = Loss(self._loss, own, self._end_step, self._end_epoch)
        settings = Settings(
            self.label, **{field.name: getattr(self, field.name) for field in fields(Settings) if field.name != "name"}
        )
        if not self._is_pretrained:
            settings = replace(settings, pretrained_multiplier=None)
        session = self.session
        if session.checkpoint is not None:
            session = replace(session, key=self._checkpoint_key(inputs, affinity))
        try:
            if self.head_epochs:
                from hashbench.learning.image_network import train_head

                of_features = replace(items, inputs=features, vary=view)
                session = train_head(network, of_features, loss, settings, session, generator)
            state = train(network, items, loss, settings, session, generator)
        except Stopped as stopped:
            raise self._failure(stopped) from None
        self._end(own)
        self.history_, self.resumed_seconds_ = state.history, state.seconds_before

    def _checkpoint_key(self, inputs: "Tensor", affinity: Affinity) -> str:
        """Return a digest of everything that a checkpoint belongs to."""
        params = self.recorded_params() | {"n_bits": self.n_bits, "random_state": self.random_state}
        levels = affinity.levels  # some affinities cache them, so compute them before hashing
        parts = [self.label, self.version, self.session.key, params, inputs.numpy(), levels, affinity]
        return str(joblib.hash(parts))

    def _failure(self, stopped: Stopped) -> TrainingFailure:
        """Return the error of a training that cannot recover, with the likely cause."""
        remedies = [f"lower learning_rate (now {self.learning_rate:g})"]
        if self.backbone is not None and self._is_pretrained and not isinstance(stopped, StoppedHead):
            remedies.append(f"lower pretrained_multiplier (now {self.pretrained_multiplier:g})")
        if self.scaling != "variance":
            remedies.append(f"scale the features (scaling='variance', now {self.scaling!r})")
        return TrainingFailure(
            f"{self.label} stopped {stopped}. Most likely training starts saturated or its steps are too large: "
            f"{', or '.join(remedies)}."
        )

    def _project(self, X: AnyArray) -> FloatArray:
        if self.backbone is not None:
            from hashbench.learning.image_network import project

            return project(self.network_, X, self.n_bits, self.device, self.session.activations)
        values = self._front_end(X)
        for position, (weights, bias) in enumerate(self.layers_):
            if position:
                values = np.maximum(values, 0) - HIDDEN_MEAN  # as CentredReLU
            values = values @ weights + bias
        return values

    @property
    def _is_pretrained(self) -> bool:
        """Whether the backbone, if there is one, has pretrained weights."""
        return self.backbone is None or get_backbone(self.backbone).is_pretrained

    @property
    def _weights_path(self) -> Path | None:
        return None if self.weights is None else Path(self.weights)

    def _front_end(self, X: FloatArray) -> FloatArray:
        centred: FloatArray = X - self.mean_
        if self.norm_of_items is None:
            return centred
        norms = np.linalg.norm(centred, axis=1, keepdims=True)
        centred /= np.where(norms > 0, norms, 1)
        return centred * self.norm_of_items

    @property
    def norm_of_items(self) -> float | None:
        """The norm of features after the front end, None if unchanged; known once fitted."""
        return {"variance": float(np.sqrt(len(self.mean_) / 2)), "norm": 1.0, "none": None}[self.scaling]

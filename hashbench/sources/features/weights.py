"""Weights of networks: read from files and checked, or drawn at random; applied to images, whole or below a layer."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import numpy as np

from hashbench._parallel import chunks, in_threads
from hashbench._typing import AnyArray, ByteArray, Float32Array, Progress, silent
from hashbench.errors import HashbenchError, one_line
from hashbench.sources._tensors import Tensor, nn, torch
from hashbench.sources._torch import find_device
from hashbench.sources.download import fetch
from hashbench.sources.features.architectures import Network
from hashbench.sources.features.backbones import FIRST_LAYER, Backbone, get_backbone
from hashbench.store.artifact import Blocks, cached_array
from hashbench.store.files import data_dir, locked
from hashbench.store.inputs import check_file, check_fits, reading
from hashbench.store.provenance import DATASET_VERSION

_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of R, G and B in ImageNet, 1 is the brightest pixel
_BATCH = {"cpu": 32, "cuda": 256}  # images that go through the network at a time
_LONGEST_REASON = 400  # characters of PyTorch's list of parameters in an error
BLOCK = 512  # images whose activations are computed together


class Weights(NamedTuple):
    """Parameters by name, float32, and the SHA-256 of their file in hex, empty if they were drawn at random."""

    state: dict[str, Tensor]
    sha256: str


def read_weights(name: str, path: Path) -> Weights:
    """Read the weights of a network, and check that every parameter and buffer is there and nothing else.

    A ``.pth`` or ``.pt`` file holds a state dict of PyTorch, by itself or under the key ``state_dict``, with or without
    the prefix ``module.`` in its names. For ``vgg-f``, the ``.mat`` file of MatConvNet can be read, too, in its old or
    new form. Counters of batches, which old files lack, start at 0.
    """
    formats = {".pth": _read_torch, ".pt": _read_torch} | ({".mat": _read_mat} if name == "vgg-f" else {})
    advice = _advice(name)
    if path.suffix not in formats:
        raise HashbenchError(f"weights of {name} are read from {', '.join(formats)} files, got {path}. {advice}")
    content = _content(name, path)
    try:
        state = formats[path.suffix](content)
    except Exception as error:  # readers meet damaged files with errors of any kind
        raise HashbenchError(
            f"{path} is damaged or not a file of weights ({type(error).__name__} in its {len(content)} bytes). {advice}"
        ) from error
    network = blank(name)
    counters = (key for key in network.state_dict() if key.endswith("num_batches_tracked"))
    state = {key: torch.zeros((), dtype=torch.int64) for key in counters} | state
    try:
        network.load_state_dict(state, assign=True)
    except RuntimeError as error:  # lists all missing, unexpected and misshapen parameters
        raise HashbenchError(
            f"{path} does not hold the weights of {name}: {one_line(error).rstrip('.')[:_LONGEST_REASON]}. {advice}"
        ) from error
    damaged = next((key for key, tensor in state.items() if not tensor.isfinite().all()), None)
    if damaged:
        raise HashbenchError(f"{path} has values of {damaged} that are not finite. {advice}")
    return Weights(state, hashlib.sha256(content).hexdigest())


def find_weights(name: str, path: Path | None = None, on_progress: Progress = silent) -> Path:
    """Return the weights file of a network: the user's, or the official one, downloaded if its checksum is known."""
    backbone = get_backbone(name)
    if path is not None:
        return path
    if backbone.sha256 is None:
        raise HashbenchError(
            f"the weights of {name} have no published checksum, so hashbench does not download them. Fetch "
            f"{backbone.weights_url} and pass the file as --weights FILE, or to a method as --param weights=FILE."
        )
    official = data_dir() / "weights" / backbone.weights_url.rpartition("/")[2]
    return fetch(backbone.weights_url, backbone.sha256, official, on_progress=on_progress)


def drawn_weights(name: str, images: ByteArray, generator: torch.Generator) -> Weights:
    """Return the initial weights of a network without a file of weights, for training on images."""
    network = blank(name).to_empty(device="cpu")
    network.start(images, generator)
    return Weights(network.state_dict(), "")


def weights_digest(name: str, path: Path | None = None) -> str:
    """Return the first 8 hex digits of a weights file's SHA-256, without reading an official file.

    For a network without a file of weights, it is the word random.
    """
    if not get_backbone(name).is_pretrained:
        return "random"
    official = get_backbone(name).sha256
    if path is None and official is not None:
        return official[:8]
    return hashlib.sha256(_content(name, find_weights(name, path))).hexdigest()[:8]


def blank(name: str) -> Network:
    """Build a network without memory for its parameters, to look at names and shapes or to assign weights to."""
    with torch.device("meta"):
        return get_backbone(name).build()


def pretrained(name: str, source: Path | Weights) -> tuple[Network, str]:
    """Build a network with the weights of a file, or with those read before; return it and the file's SHA-256 in hex.

    It is on the CPU and in evaluation mode; all parameters can be trained.
    """
    weights = read_weights(name, source) if isinstance(source, Path) else source
    network = blank(name)
    network.load_state_dict(weights.state, assign=True)
    return network.eval(), weights.sha256


class Extractor:
    """Features of images from a pretrained network, in evaluation mode.

    ``image_size`` is the width and height to which images are resized, in pixels, by default what the network was
    trained on. ``provenance`` says where the features come from, such as ``squeezenet, 128 px, weights 0f3c12ab``.
    """

    def __init__(
        self, name: str, weights: Path | Weights, *, image_size: int | None = None, device: str = "auto"
    ) -> None:
        self.name = name
        backbone = get_backbone(name)
        self.n_features = backbone.n_features
        self.image_size = backbone.input_size if image_size is None else image_size
        self.device = find_device(device).type
        _check_size(name, self.image_size)
        network, sha256 = pretrained(name, weights)
        self.network, self.sha256 = network.to(self.device), sha256
        self.provenance = f"{name}, {self.image_size} px, weights {sha256[:8]}"

    def __call__(self, images: ByteArray) -> Float32Array:
        """Compute the features (n, n_features) of images (n, height, width, 3), RGB.

        An image's features depend on the others in their last digits at most.
        """
        return in_batches(self.forward, images, (self.n_features,), self.device)

    def forward(self, images: Tensor, end: int | None = None) -> Tensor:
        """Compute the features of one batch of images (n, height, width, 3), uint8, or the inputs of layer ``end``.

        They are differentiable with respect to the parameters.
        """
        features: Tensor = self.network(to_input(images, get_backbone(self.name), self.image_size), end=end)
        return features


class FrozenBelow(Extractor):
    """Features from a pretrained network whose layers before ``train_from`` stay frozen.

    They are computed from the inputs of that layer, which `inputs` returns: the images if it is the first layer, else
    activations, channels last, rounded to float16 whether they are cached or not.
    """

    def __init__(
        self,
        name: str,
        weights: Path | Weights,
        *,
        image_size: int,
        device: str = "auto",
        train_from: str = FIRST_LAYER,
    ) -> None:
        super().__init__(name, weights, image_size=image_size, device=device)
        self.train_from, self.n_frozen = train_from, get_backbone(name).layers.index(train_from)

    def forward(self, inputs: Tensor, end: int | None = None) -> Tensor:
        """Compute the features of one batch of inputs; see `Extractor.forward`."""
        if not self.n_frozen:
            return super().forward(inputs, end)
        features: Tensor = self.network(inputs.float().movedim(-1, 1), self.n_frozen, end)
        return features

    def inputs(self, images: ByteArray, folder: Path | None = None) -> AnyArray:
        """Compute the inputs of RGB images (n, height, width, 3); cache them in ``folder`` if given."""
        if not self.n_frozen:
            return images
        shape = (len(images), *self._shape)
        if folder is None:
            check_fits(2 * int(np.prod(shape)), f"what {self.name} gives {self.train_from} for {len(images):,} images")
            values = np.empty(shape, np.float16)
            for number, block in enumerate(self._blocks(images)):
                values[number * BLOCK :][: len(block)] = block
            return values
        key = self._key(images)
        path = folder / f"{self.name}-{self.train_from}-{key}.h5"
        with locked(path):
            return cached_array(path, key, Blocks(shape, np.dtype(np.float16), self._blocks(images)))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """The shape of the activations of one image."""
        image = torch.empty(1, 3, self.image_size, self.image_size, device="meta")
        return tuple(blank(self.name)(image, end=self.n_frozen).movedim(1, -1).shape[1:])

    def _key(self, images: ByteArray) -> str:
        """Compute a digest of everything that affects the activations."""
        network = [self.name, self.sha256, self.train_from, self.image_size, self.device]
        about = [DATASET_VERSION, torch.__version__, *network]
        digest = hashlib.sha256(f"{about} {images.shape}".encode())
        for start in range(0, len(images), BLOCK):
            digest.update(images[start : start + BLOCK].tobytes())
        return digest.hexdigest()[:16]

    def _blocks(self, images: ByteArray) -> Iterator[AnyArray]:
        for start in range(0, len(images), BLOCK):
            block = in_batches(self._below, images[start : start + BLOCK], self._shape, self.device).astype(np.float16)
            if not np.isfinite(block).all():
                raise HashbenchError(
                    f"{self.name} gives {self.train_from} numbers beyond the range of float16. Choose another "
                    f"train_from, such as {FIRST_LAYER}."
                )
            yield block

    def _below(self, images: Tensor) -> Tensor:
        return super().forward(images, self.n_frozen).movedim(1, -1).half()


def to_input(images: AnyArray | Tensor, backbone: Backbone, size: int | None = None) -> Tensor:
    """Convert images (n, height, width, 3), uint8, RGB, to the size and scale that a network was trained on.

    Returns float32 of shape (n, 3, size, size) on the same device, with the channels last in memory, on which
    convolutions are faster. Images are resized bicubically, and smoothed first if they shrink.
    """
    pixels = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
    if pixels.ndim != 4 or pixels.shape[3] != 3 or pixels.dtype != torch.uint8:
        raise HashbenchError(
            f"images are {str(pixels.dtype).removeprefix('torch.')} of shape {tuple(pixels.shape)}, expected uint8 "
            "of shape (n, height, width, 3), red, green and blue from 0 to 255."
        )
    size = size or backbone.input_size
    shrinks = size < max(pixels.shape[1:3])
    resized = nn.functional.interpolate(
        pixels.permute(0, 3, 1, 2).float(), (size, size), mode="bicubic", align_corners=False, antialias=shrinks
    )
    if backbone.centres:
        return resized
    mean, std = (resized.new_tensor(values)[:, None, None] for values in (_MEAN, _STD))  # (3, 1, 1)
    return (resized * (1 / 255) - mean) / std


def in_batches(
    compute: Callable[[Tensor], Tensor], images: AnyArray, shape: tuple[int, ...], device: str
) -> Float32Array:
    """Compute values of many images, or of their activations, as `over_batches` does.

    ``compute`` maps images (n, height, width, n_channels) to values (n, *shape), on the device.
    """

    def compute_batch(batch: slice) -> Tensor:
        return compute(torch.from_numpy(np.array(images[batch])).to(device))

    return over_batches(compute_batch, len(images), shape, device)


def over_batches(compute: Callable[[slice], Tensor], n_items: int, shape: tuple[int, ...], device: str) -> Float32Array:
    """Compute values of many items, batch by batch, without gradients and at full precision.

    ``compute`` maps rows to their values (n, *shape). On a CPU, batches run in parallel, each in one thread, which is
    faster than one batch in all threads and gives the same bytes on any number of threads.
    """
    values = np.empty((n_items, *shape), np.float32)
    batches = chunks(0, n_items, _BATCH[device])
    n_threads = torch.get_num_threads()

    def fill(batch: slice) -> None:
        if device == "cpu":
            torch.set_num_threads(1)  # for this thread, and for those that begin before it is set again
        with torch.inference_mode(), torch.autocast(device, enabled=False):  # settings of this thread
            values[batch] = compute(batch).cpu().numpy()

    try:  # settings of the process
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            for _ in in_threads(fill, batches) if device == "cpu" else map(fill, batches):
                pass
    finally:
        torch.set_num_threads(n_threads)
    return values


def _content(name: str, path: Path) -> bytes:
    try:
        check_file(path)
        with reading(path):
            return path.read_bytes()
    except HashbenchError as error:
        raise HashbenchError(f"{error} {_advice(name)}") from error


def _advice(name: str) -> str:
    return f"Pass a file such as {get_backbone(name).weights_url}."


def _read_torch(content: bytes) -> dict[str, Tensor]:
    """Read a state dict; raise any exception if the content is something else."""
    loaded = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    state: Mapping[str, Tensor] = loaded.get("state_dict", loaded)
    return {
        key.removeprefix("module."): tensor.float() if tensor.is_floating_point() else tensor
        for key, tensor in state.items()
    }


def _read_mat(content: bytes) -> dict[str, Tensor]:
    """Read a SimpleNN network of MatConvNet: filters are (height, width, n_in, n_out), layers fc* see one position."""
    from scipy.io import loadmat

    file = loadmat(BytesIO(content), struct_as_record=False)
    state = {}
    for cell in file["layers"].ravel():
        layer = cell.item()
        if layer.type.item() != "conv":
            continue
        filters, biases = layer.weights.ravel() if hasattr(layer, "weights") else (layer.filters, layer.biases)
        weight = filters.reshape(*filters.shape, *(1,) * (4 - filters.ndim)).transpose(3, 2, 0, 1)
        name = layer.name.item()
        state[f"{name}.weight"] = weight.reshape(len(weight), -1) if name.startswith("fc") else weight
        state[f"{name}.bias"] = biases.ravel()
    normalization = file["meta"].item().normalization if "meta" in file else file["normalization"]
    average = normalization.item().averageImage  # (224, 224, 3), or the mean of each colour in any shape
    if average.size == 3:
        average = np.broadcast_to(average.ravel(), (224, 224, 3))
    state["average_image"] = average.transpose(2, 0, 1)
    return {key: torch.from_numpy(np.array(value, np.float32, order="C")) for key, value in state.items()}


def _check_size(name: str, size: int) -> None:
    """Check that a blank network accepts images of that size."""
    try:
        blank(name)(torch.empty(1, 3, size, size, device="meta"))
    except RuntimeError as error:
        raise HashbenchError(
            f"{name} cannot take images of {size} x {size} pixels. Choose image_size={get_backbone(name).input_size}, "
            "the size it is meant for, or one near it."
        ) from error

"""From images to features, block by block; blocks are cached on disk, so a stopped run continues."""

import hashlib
import shutil
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hashbench._typing import ByteArray, Float32Array
from hashbench.adapter import Options
from hashbench.errors import HashbenchError
from hashbench.sources.features.backbones import BACKBONES, get_backbone
from hashbench.sources.images import Images
from hashbench.store.array_cache import cached_array
from hashbench.store.files import data_dir, locked
from hashbench.store.inputs import check_fits

NETWORKS = tuple(BACKBONES)
KINDS = ("pixels", "gist", *NETWORKS, "images")

_BLOCK = 2000  # images in a cached block; fewer if they are large
_BLOCK_BYTES = 256 << 20
_GIST_SIZE = 128  # pixels, if images differ in size


class Extracted(NamedTuple):
    """Features (n, n_features), or images (n, size, size, 3), and a description of them."""

    features: Float32Array | None
    images: ByteArray | None
    description: str


def extract(kind: str, images: Images, options: Options) -> Extracted:
    """Compute features of images, in their order, or read them from the cache.

    ``kind`` is one of ``KINDS``. Raises `HashbenchError` if weights are missing, or the features would not fit into
    memory.

    Examples
    --------
    >>> from hashbench.sources.images import ImageArrays
    >>> extract("pixels", ImageArrays(np.zeros((2, 8, 8, 3), np.uint8)), Options()).features.shape
    (2, 192)
    """
    if kind in NETWORKS:
        return _by_network(kind, images, options)
    size = options.image_size or images.native_size
    if kind == "gist":
        from hashbench.sources.features import gist

        size = size or _GIST_SIZE
        key = f"{_code_of('gist')} {images.content} {size}"
        features = _in_blocks(gist.gist, gist.N_FEATURES, images, size, "gist", key, options)
        return Extracted(features, None, f"GIST, 512-d, of {size} x {size} pixels")
    if size is None:
        raise HashbenchError(f"images differ in size; give --image-size for features {kind!r}.")
    dtype = np.uint8 if kind == "images" else np.float32
    _check_memory(images, size * size * 3 * np.dtype(dtype).itemsize, f" of {size} x {size} pixels", kind)
    array = np.empty((len(images), size, size, 3), dtype)
    for rows in _blocks(images, size):
        array[rows] = images.read(rows, size)
        options.on_progress("images", rows.stop, len(images))
    description = f"RGB, {size} x {size} pixels"
    if kind == "images":
        return Extracted(None, array, description)
    return Extracted(array.reshape(len(array), -1), None, description)


def _code_of(module: str) -> str:
    """Compute a digest of the code that computes features; a new digest invalidates cached features."""
    from hashbench.store.provenance import code_that_decides

    return code_that_decides(f"hashbench.sources.features.{module}")


def _check_memory(images: Images, n_bytes: int, what: str, kind: str) -> None:
    advice = "choose a smaller --image-size or other --features"
    check_fits(len(images) * n_bytes, f"the array of {kind} of {len(images):,} images{what}", advice)


def _blocks(images: Images, size: int) -> list[slice]:
    from sklearn.utils import gen_batches

    return list(gen_batches(len(images), max(1, min(_BLOCK, _BLOCK_BYTES // (3 * size * size)))))


def _by_network(kind: str, images: Images, options: Options) -> Extracted:
    from hashbench.sources.features import weights

    size = options.image_size or get_backbone(kind).usual_size(images.native_size)
    path = weights.find_weights(kind, options.weights, options.on_progress)
    network = weights.Extractor(kind, path, image_size=size, device=options.device)
    read_size = None if images.native_size else size  # the network itself resizes images of one size
    description = f"{network.provenance}, on {network.device}"  # devices round differently
    key = f"{_code_of('weights')} {description} {images.content}"
    return Extracted(_in_blocks(network, network.n_features, images, read_size, kind, key, options), None, description)


def _in_blocks(
    compute: Callable[[ByteArray], Float32Array],
    n_features: int,
    images: Images,
    size: int | None,
    kind: str,
    key: str,
    options: Options,
) -> Float32Array:
    """Compute features block by block, caching each block."""
    _check_memory(images, 4 * n_features, "", kind)
    path = data_dir() / "features" / f"{kind}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.npy"
    folder = path.with_suffix(".parts")

    def computed(rows: slice) -> Iterator[Float32Array]:
        yield compute(images.read(rows, size))

    def blocks() -> Iterator[Float32Array]:
        for rows in _blocks(images, size or images.native_size or 1):
            part, shape = folder / f"{rows.start}-{rows.stop}.npy", (rows.stop - rows.start, n_features)
            yield cached_array(part, shape, np.float32, computed(rows))
            options.on_progress(f"{kind} features", rows.stop, len(images))

    with locked(path):
        features = cached_array(path, (len(images), n_features), np.float32, blocks())
        shutil.rmtree(folder, ignore_errors=True)
    return features

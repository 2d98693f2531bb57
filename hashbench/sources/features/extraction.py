"""From images or texts to features, block by block; blocks are cached on disk, so a stopped run continues."""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from hashbench._typing import ByteArray, Float32Array
from hashbench.adapter import Options
from hashbench.errors import HashbenchError
from hashbench.sources.features import transformers_models
from hashbench.sources.features.backbones import BACKBONES, get_backbone
from hashbench.sources.images import Images
from hashbench.store.artifact import Blocks, cached_array
from hashbench.store.files import data_dir, locked
from hashbench.store.inputs import check_fits
from hashbench.store.provenance import DATASET_VERSION

NETWORKS = tuple(name for name, backbone in BACKBONES.items() if backbone.is_pretrained)
RECIPE = "recipe"  # key of ``Dataset.about``, in JSON
KINDS = ("pixels", "gist", *NETWORKS, "hf:MODEL", "images")

_BLOCK = 2000  # images in a cached block; fewer if they are large
_MODEL_BLOCK = 512  # items in one of a model of transformers
_BLOCK_BYTES = 256 << 20
_GIST_SIZE = 128  # pixels, if images differ in size


class Extracted(NamedTuple):
    """Features (n, n_features), or images (n, size, size, 3), a description of them, and words after their name.

    ``recipe`` is what they are computed by, apart from devices and versions.
    """

    features: Float32Array | None
    images: ByteArray | None
    description: str
    remark: str = ""  # such as " (CLS)"
    recipe: Mapping[str, Any] = MappingProxyType({})

    @property
    def about(self) -> dict[str, str]:
        """What `Dataset.about` has of them."""
        recipe = {RECIPE: json.dumps({**self.recipe})} if self.recipe else {}
        return {"features": self.description, **recipe}


def extract(kind: str, images: Images, options: Options) -> Extracted:
    """Compute features of images, in their order, or read them from the cache.

    ``kind`` is one of ``KINDS``, with the name of a model in place of MODEL. Raises `HashbenchError` if weights are
    missing, or the features would not fit into memory.

    Examples
    --------
    >>> from hashbench.sources.images import ImageArrays
    >>> extract("pixels", ImageArrays(np.zeros((2, 8, 8, 3), np.uint8)), Options()).features.shape
    (2, 192)
    """
    if kind in NETWORKS:
        return _by_network(kind, images, options)
    if transformers_models.is_model(kind):
        return _by_model(kind, "images", len(images), images.each, images.content, options)
    size = options.image_size or images.native_size
    if kind == "gist":
        from hashbench.sources.features import gist

        size = size or _GIST_SIZE
        key = f"{DATASET_VERSION} gist {images.content} {size}"

        def compute(rows: slice) -> Float32Array:
            return gist.gist(images.read(rows, size))

        features = _in_blocks(compute, gist.N_FEATURES, _blocks(len(images), size), "gist", key, options)
        description = f"GIST, 512-d, of {size} x {size} pixels"
        return Extracted(features, None, description, recipe={"kind": kind, "image_size": size})
    if size is None:
        raise HashbenchError(f"images differ in size; give --image-size for features {kind!r}.")
    dtype = np.uint8 if kind == "images" else np.float32
    n_bytes = size * size * 3 * np.dtype(dtype).itemsize
    _check_memory(len(images), n_bytes, kind, f"images of {size} x {size} pixels")
    array = np.empty((len(images), size, size, 3), dtype)
    for rows in _blocks(len(images), size):
        array[rows] = images.read(rows, size)
        options.on_progress("images", rows.stop, len(images))
    flat = None if kind == "images" else array.reshape(len(array), -1)
    recipe = {"kind": kind, "image_size": size}
    return Extracted(flat, array if flat is None else None, f"RGB, {size} x {size} pixels", recipe=recipe)


def extract_texts(kind: str, texts: Sequence[str], options: Options, *, is_portable: bool = False) -> Extracted:
    """Compute features of texts by a model of transformers, in their order, or read them from the cache.

    Portable features are computed in float64 and rounded to the 11 significant bits of float16, so that machines agree.
    """
    digest = hashlib.sha256()
    for text in texts:
        encoded = text.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    content = digest.hexdigest()[:16]
    return _by_model(kind, "texts", len(texts), lambda rows: texts[rows], content, options, is_portable=is_portable)


def _check_memory(n_items: int, n_bytes: int, kind: str, items: str = "images") -> None:
    advice = "choose a smaller --image-size or other --features"
    check_fits(n_items * n_bytes, f"the array of {kind} of {n_items:,} {items}", advice)


def _blocks(n_items: int, size: int) -> list[slice]:
    from sklearn.utils import gen_batches

    return list(gen_batches(n_items, max(1, min(_BLOCK, _BLOCK_BYTES // (3 * size * size)))))


def _by_network(kind: str, images: Images, options: Options) -> Extracted:
    from hashbench.sources.features import weights

    size = options.image_size or get_backbone(kind).usual_size(images.native_size)
    path = weights.find_weights(kind, options.weights, options.on_progress)
    network = weights.Extractor(kind, path, image_size=size, device=options.device)
    read_size = None if images.native_size else size  # the network itself resizes images of one size
    description = f"{network.provenance}, on {network.device}"  # devices round differently
    key = f"{DATASET_VERSION} weights {description} {images.content}"
    blocks = _blocks(len(images), read_size or images.native_size or 1)

    def compute(rows: slice) -> Float32Array:
        return network(images.read(rows, read_size))

    features = _in_blocks(compute, network.n_features, blocks, kind, key, options)
    recipe = {"kind": kind, "image_size": size, "weights": network.sha256}
    return Extracted(features, None, description, recipe=recipe)


def _by_model(
    kind: str,
    reads: str,
    n_items: int,
    each: Callable[[slice], Iterable[Any]],
    content: str,
    options: Options,
    *,
    is_portable: bool = False,
) -> Extracted:
    """Compute features of images or texts by a model of transformers; ``each`` reads a few of them."""
    from sklearn.utils import gen_batches

    from hashbench.sources.features import weights

    model = transformers_models.Model(
        kind,
        reads,
        folder=options.weights,
        device=options.device,
        in_float64=is_portable,
        on_progress=options.on_progress,
    )
    description = f"{model.provenance}, on {model.device}"
    key = f"{DATASET_VERSION} transformers {reads} {description} {content}"

    def compute(rows: slice) -> Float32Array:
        def compute_batch(batch: slice) -> Any:
            return model.of_batch(list(each(slice(rows.start + batch.start, rows.start + batch.stop))))

        vectors = weights.over_batches(compute_batch, rows.stop - rows.start, (model.n_features,), model.device)
        return vectors.astype(np.float16).astype(np.float32) if is_portable else vectors

    blocks = list(gen_batches(n_items, _MODEL_BLOCK))
    features = _in_blocks(compute, model.n_features, blocks, kind, key, options, reads)
    is_named = transformers_models.parse(kind).pooling is not None
    remark = "" if is_named else f" ({transformers_models.POOLINGS[model.pooling]})"
    return Extracted(features, None, description, remark, model.recipe)


def _in_blocks(
    compute: Callable[[slice], Float32Array],
    n_features: int,
    blocks: list[slice],
    kind: str,
    key: str,
    options: Options,
    items: str = "images",
) -> Float32Array:
    """Compute features of rows block by block, caching each block."""
    n_items = blocks[-1].stop if blocks else 0
    _check_memory(n_items, 4 * n_features, kind, items)
    stem = f"{kind.partition(':')[0]}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"
    path, dtype = data_dir() / "features" / f"{stem}.h5", np.dtype(np.float32)
    folder = path.with_suffix(".parts")

    def parts() -> Iterator[Float32Array]:
        for rows in blocks:
            part, shape = folder / f"{rows.start}-{rows.stop}.h5", (rows.stop - rows.start, n_features)
            yield cached_array(part, key, Blocks(shape, dtype, map(compute, [rows])))  # if it is not cached
            options.on_progress(f"{kind} features", rows.stop, n_items)

    with locked(path):
        features = cached_array(path, key, Blocks((n_items, n_features), dtype, parts()))
        shutil.rmtree(folder, ignore_errors=True)
    return features

"""Encoding new items with a saved model."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from hashbench._typing import AnyArray, BoolArray, Progress, silent
from hashbench._validation import class_labels, real_rows
from hashbench.adapter import Options
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import find_by_content
from hashbench.pipeline.steps import BATCH
from hashbench.registry import features_kind
from hashbench.sources.array_files import read_array, read_features, split_spec
from hashbench.sources.features.extraction import KINDS, RECIPE, extract
from hashbench.sources.features.transformers_models import is_model
from hashbench.sources.formats import LABEL_KEYS
from hashbench.sources.images import ImageFiles, image_files
from hashbench.store.artifact import read_record
from hashbench.store.files import file_behind, replacing
from hashbench.store.hdf5 import Model, read_model
from hashbench.store.inputs import reading

if TYPE_CHECKING:
    from hashbench.method import HashMethod


def encode_items(
    path: Path,
    items: str,
    output: Path,
    *,
    packed: bool = False,
    device: str | None = None,
    on_progress: Progress = silent,
) -> tuple[int, int]:
    """Encode items, ``FILE``, ``FILE:KEY`` or a folder of images, with a saved model; return (n_items, n_bits).

    The array in the ``.npy`` file ``output`` is bool (n, n_bits), or packed uint8 (n, ceil(n_bits / 8)), least
    significant bit first. ``device`` replaces the one that the method learned on.
    """
    model = read_model(path)
    method = model.method
    if device is not None:
        if "device" not in method.get_params(deep=False):
            raise HashbenchError(f"{path} holds {method.label}, which has no device, got {device!r}. Leave it out.")
        method.set_params(device=device)
    output = file_behind(output)
    codes = encoded(method, read_inputs(model, items, on_progress), on_progress)
    with replacing(output) as part, part.open("wb") as file:
        np.save(file, pack(codes) if packed else codes)
    return len(codes), method.n_bits


def read_inputs(model: Model, items: str, on_progress: Progress = silent) -> AnyArray:
    """Read the items that a model encodes: features in float32, as datasets hold them, images or labels.

    Those of a folder of images are computed as the model's dataset was, in the order of the paths.
    """
    method, folder = model.method, split_spec(items)[0]
    with reading(folder):
        is_folder = folder.is_dir()
    if is_folder:
        inputs = _of_folder(model, folder, on_progress)
    elif method.input_kind == "labels":
        return class_labels(read_array(items, LABEL_KEYS), f"labels of {items}").reshape(-1, 1)
    else:
        inputs = read_array(items, ("images",)) if method.input_kind == "images" else read_features(items)
    if method.input_kind == "images":
        return inputs
    features = real_rows(inputs, f"features of {items}", "n_features")
    if features.shape[1] != method.n_features_in_:
        raise HashbenchError(
            f"{items} holds {features.shape[1]} features per item, and the model learned from {method.n_features_in_}. "
            "Give items described by the same features."
        )
    return features


def _of_folder(model: Model, folder: Path, on_progress: Progress) -> AnyArray:
    """Compute the features of the images of a folder, or read the images, as those of the dataset of a model."""
    made, kind = model.made, features_kind(model.made.features)
    learned = f"the model learned from {made.dataset} ({made.features})"
    path = find_by_content(made.dataset_fingerprint) if kind in KINDS or is_model(kind) else None
    attributes = read_record(path) if path else {}
    about, chosen = attributes.get("about", {}), attributes.get("chosen", {})
    if RECIPE not in about:
        raise HashbenchError(
            f"{folder} is a folder, and {learned} with content {made.dataset_fingerprint}, which was not computed from "
            "images, or is not prepared here. Prepare it again, or give a file of such features."
        )
    recipe = json.loads(about[RECIPE])
    options = Options(
        weights=Path(chosen["weights"]) if "weights" in chosen else None,
        image_size=recipe.get("image_size"),
        on_progress=on_progress,
    )
    images = ImageFiles(sorted(image_files(folder)))
    if not images.paths:
        raise HashbenchError(f"there are no images in {folder}, expected those to encode.")
    extracted = extract(kind, images, options)
    if extracted.recipe != recipe:
        raise HashbenchError(
            f"{folder} gives the features {extracted.description!r}, and {learned}: {about['features']!r}. Restore the "
            "weights that these were computed with, or give a file of such features."
        )
    return np.asarray(extracted.images if kind == "images" else extracted.features)


def encoded(method: "HashMethod", items: AnyArray, on_progress: Progress = silent) -> BoolArray:
    """Encode items (n, ...) batch by batch, as a run does; return codes (n, n_bits)."""
    codes = np.empty((len(items), method.n_bits), dtype=bool)
    for rows in gen_batches(len(items), BATCH[method.input_kind]):
        codes[rows] = method.transform(items[rows])
        on_progress("items", rows.stop, len(items))
    return codes

"""Encoding new items with a saved model."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import gen_batches

from hashbench._typing import AnyArray, BoolArray, Progress, silent
from hashbench._validation import class_labels, real_rows
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.pipeline.steps import BATCH
from hashbench.sources.array_files import read_array, read_features
from hashbench.sources.formats import LABEL_KEYS
from hashbench.store.files import file_behind, replacing
from hashbench.store.models import read_model

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
    """Encode items, ``FILE`` or ``FILE:KEY``, with a saved model to an ``.npy`` file; return (n_items, n_bits).

    The array is bool (n, n_bits), or packed uint8 (n, ceil(n_bits / 8)), least significant bit first. ``device``
    replaces the one that the method learned on.
    """
    method = read_model(path).method
    if device is not None:
        if "device" not in method.get_params(deep=False):
            raise HashbenchError(f"{path} holds {method.label}, which has no device, got {device!r}. Leave it out.")
        method.set_params(device=device)
    output = file_behind(output)
    codes = encoded(method, read_inputs(method, items), on_progress)
    with replacing(output) as part, part.open("wb") as file:
        np.save(file, pack(codes) if packed else codes)
    return len(codes), method.n_bits


def read_inputs(method: "HashMethod", items: str) -> AnyArray:
    """Read the items that a fitted method encodes: features in float32, as datasets hold them, images or labels."""
    if method.input_kind == "images":
        return read_array(items, ("images",))
    if method.input_kind == "labels":
        return class_labels(read_array(items, LABEL_KEYS), f"labels of {items}").reshape(-1, 1)
    features = real_rows(read_features(items), f"features of {items}", "n_features")
    if features.shape[1] != method.n_features_in_:
        raise HashbenchError(
            f"{items} holds {features.shape[1]} features per item, and the model learned from {method.n_features_in_}. "
            "Give items described by the same features."
        )
    return features


def encoded(method: "HashMethod", items: AnyArray, on_progress: Progress = silent) -> BoolArray:
    """Encode items (n, ...) batch by batch, as a run does; return codes (n, n_bits)."""
    codes = np.empty((len(items), method.n_bits), dtype=bool)
    for rows in gen_batches(len(items), BATCH[method.input_kind]):
        codes[rows] = method.transform(items[rows])
        on_progress("items", rows.stop, len(items))
    return codes

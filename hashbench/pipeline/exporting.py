"""Saved models, which encode new items; models and codes in other programs' formats, read back and compared."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from hashbench._choices import CODES_TARGETS, MODEL_TARGETS, PRECISIONS
from hashbench._typing import AnyArray, BoolArray, ByteArray, Progress, silent
from hashbench._validation import check_choice, class_labels, real_rows
from hashbench.adapter import Options
from hashbench.bits import n_bytes, pack, unpack
from hashbench.errors import HashbenchError, needing
from hashbench.pipeline.preparation import find_by_content
from hashbench.pipeline.steps import BATCH
from hashbench.registry import features_kind
from hashbench.sources.array_files import read_array, read_features, split_spec
from hashbench.sources.features.extraction import KINDS, RECIPE, extract
from hashbench.sources.features.transformers_models import is_model
from hashbench.sources.formats import LABEL_KEYS
from hashbench.sources.images import ImageFiles, image_files
from hashbench.store import hdf5
from hashbench.store.artifact import read_record
from hashbench.store.files import file_behind, replacing
from hashbench.store.hdf5 import SUFFIX, Model, read_model, read_origin
from hashbench.store.inputs import check_file, reading

if TYPE_CHECKING:
    from hashbench.method import HashMethod


_N_COMPARED = 1000  # items that are encoded to compare
_TEXTS = 65536  # codes that are written as texts at a time


@dataclass(frozen=True)
class Report:
    """How an exported file compares: the number of items, and how many of their bits differ from hashbench's."""

    reader: str  # what read the file, such as faiss 1.15.1
    n_items: int
    n_bits: int
    n_differing: int


def export(
    path: Path,
    target: str,
    output: Path,
    *,
    role: str | None = None,
    precision: str | None = None,
    items: str | None = None,
) -> Report:
    """Write a model, or the codes of a codes file, in another program's format.

    ``role`` is the part of a codes file, by default the database. ``precision`` is of ONNX and npz, by default float64.
    ``items`` are encoded by both programs and compared, by default those of the dataset that the model learned from.
    """
    is_codes = _holds_codes(path)
    targets, what = (CODES_TARGETS, "codes") if is_codes else (MODEL_TARGETS, "a model")
    if target not in targets:
        raise HashbenchError(f"{path} holds {what}, got --to {target}. Expected one of {', '.join(targets)}.")
    check_choice(role, (None, "database", "query"), "role")
    check_choice(precision, (None, *PRECISIONS), "precision")
    unused = {"--precision": precision, "--from": items} if is_codes else {"--role": role}
    if target == "faiss":
        unused["--precision"] = precision
    useless = [option for option, value in unused.items() if value is not None]
    if useless:
        raise HashbenchError(f"{' and '.join(useless)} has no effect on {what} written for {target}; leave it out.")
    output = file_behind(output)
    with needing(f"writing for {target}"):
        if is_codes:
            return _export_codes(path, target, output, role or "database")
        return _export_model(read_model(path), target, output, precision or "float64", items)


def inputs_of(path: Path, items: str | None) -> list[Path]:
    """Return the files that `export` reads: codes or a model, and items, by default those of the model's dataset."""
    if items is not None:
        return [path, split_spec(items)[0]]
    dataset = None if _holds_codes(path) else find_by_content(read_origin(path)[0].dataset_fingerprint)
    return [path, *filter(None, [dataset])]


def _holds_codes(path: Path) -> bool:
    """Return whether a file holds codes, and not a model; refuse one of another kind."""
    check_file(path)
    kind = read_record(path).get("hashbench")
    if kind not in ("codes", "model"):
        raise HashbenchError(
            f"{path} is neither codes nor a model that hashbench kept; export takes the .h5 file of hashbench "
            f"encode, or the {SUFFIX} file of encode --keep-model."
        )
    return bool(kind == "codes")


# ---------------------------------------------------------------- models


def _export_model(model: Model, target: str, output: Path, precision: str, items: str | None) -> Report:
    write, read, package = _MODELS[target]
    method, sample = model.method, _sample(model, items)
    codes = encoded(method, sample)
    with replacing(output) as part:
        write(model, part, precision)
        exported_codes = read(part, sample.astype(precision), method.n_bits)
    return Report(_versioned(package), len(sample), method.n_bits, int((codes != exported_codes).sum()))


def _sample(model: Model, items: str | None) -> AnyArray:
    """Read the first items of a file, or of the dataset that the model learned from."""
    if items is not None:
        return read_inputs(model, items)[:_N_COMPARED]
    path = find_by_content(model.made.dataset_fingerprint)
    if path is None:
        raise HashbenchError(
            f"the model learned from {model.made.dataset} with content {model.made.dataset_fingerprint}, which is not "
            "prepared here. Give items to compare the exported function on: --from FILE."
        )
    dataset = hdf5.read_dataset(path)
    inputs = dataset.images if model.method.input_kind == "images" else dataset.features
    return np.asarray(np.asarray(inputs)[dataset.database[:_N_COMPARED]])


def _planes(model: Model, target: str) -> Any:
    planes = model.method.hyperplanes()
    if planes is None:
        raise HashbenchError(
            f"{model.made.method} with these parameters is not linear, and {target} takes only linear functions. "
            "Export a network to onnx; else read the arrays from the model, an HDF5 file (docs/files.md), or encode "
            "with it (hashbench encode --model) and export the codes."
        )
    return planes


def _write_npz(model: Model, path: Path, precision: str) -> None:
    planes = _planes(model, "npz")
    about = json.dumps({"bit": "(x - origin) @ normals + offsets > 0", "made": model.made.attributes()}, sort_keys=True)
    arrays = {name: value.astype(precision) for name, value in planes._asdict().items()}
    with path.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(about), **arrays)


def _read_npz(path: Path, items: AnyArray, n_bits: int) -> BoolArray:
    with np.load(path, allow_pickle=False) as file:
        return np.asarray((items - file["origin"]) @ file["normals"] + file["offsets"] > 0)


def _write_onnx(model: Model, path: Path, precision: str) -> None:
    from hashbench.pipeline.onnx_graphs import to_onnx

    about = {key: str(value) for key, value in model.made.attributes().items()}
    path.write_bytes(to_onnx(model.method, precision, about))


def _read_onnx(path: Path, items: AnyArray, n_bits: int) -> BoolArray:
    from onnxruntime import InferenceSession

    session = InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["codes"], {"X": items})[0])


def _write_faiss(model: Model, path: Path, precision: str) -> None:
    """Write a linear transform before an IndexLSH that rotates nothing.

    faiss sets a bit where a value is not below its threshold; with the least positive float32 for a threshold that is
    where it is above 0.
    """
    import faiss

    planes, n_bits = _planes(model, "faiss"), model.method.n_bits
    linear = faiss.LinearTransform(len(planes.origin), n_bits, True)
    faiss.copy_array_to_vector(planes.normals.T.astype(np.float32).ravel(), linear.A)
    faiss.copy_array_to_vector((planes.offsets - planes.origin @ planes.normals).astype(np.float32), linear.b)
    linear.is_trained = True
    index = faiss.IndexLSH(n_bits, n_bits, False, True)
    faiss.copy_array_to_vector(np.full(n_bits, np.finfo(np.float32).tiny), index.thresholds)
    index.is_trained = True
    faiss.write_index(faiss.IndexPreTransform(linear, index), str(path))


def _read_faiss(path: Path, items: AnyArray, n_bits: int) -> BoolArray:
    import faiss

    index = faiss.read_index(str(path))
    return unpack(index.sa_encode(np.ascontiguousarray(items, np.float32)), n_bits)


def _versioned(package: str) -> str:
    return package if package == "Python" else f"{package.removesuffix('-cpu')} {version(package)}"


_MODELS: dict[str, tuple[Callable[[Model, Path, str], None], Callable[[Path, AnyArray, int], BoolArray], str]] = {
    "faiss": (_write_faiss, _read_faiss, "faiss-cpu"),
    "npz": (_write_npz, _read_npz, "numpy"),
    "onnx": (_write_onnx, _read_onnx, "onnxruntime"),
}


# ---------------------------------------------------------------- codes


def _export_codes(path: Path, target: str, output: Path, role: str) -> Report:
    write, read, package = _CODES[target]
    with hdf5.open_codes(path) as codes:
        packed, n_bits = np.asarray(getattr(codes, role)[:]), codes.n_bits
    sample = packed[:_N_COMPARED]
    with replacing(output) as part:
        write(packed, n_bits, part)
        exported_codes = read(part, len(sample), n_bits)
    return Report(_versioned(package), len(sample), n_bits, int((unpack(sample, n_bits) != exported_codes).sum()))


def _write_npy(packed: ByteArray, n_bits: int, path: Path) -> None:
    with path.open("wb") as file:
        np.save(file, unpack(packed, n_bits))


def _read_npy(path: Path, n_items: int, n_bits: int) -> BoolArray:
    return np.asarray(np.load(path, mmap_mode="r")[:n_items])


def _write_faiss_codes(packed: ByteArray, n_bits: int, path: Path) -> None:
    import faiss

    index = faiss.IndexBinaryFlat(8 * n_bytes(n_bits))
    index.add(packed)
    faiss.write_index_binary(index, str(path))


def _read_faiss_codes(path: Path, n_items: int, n_bits: int) -> BoolArray:
    import faiss

    index = faiss.read_index_binary(str(path))
    packed = faiss.vector_to_array(index.xb).reshape(index.ntotal, -1)
    return unpack(packed[:n_items], n_bits)


def _write_usearch(packed: ByteArray, n_bits: int, path: Path) -> None:
    from usearch.index import Index

    index = Index(ndim=8 * n_bytes(n_bits), metric="hamming", dtype="b1")
    index.add(np.arange(len(packed)), np.packbits(unpack(packed, n_bits), axis=1))  # most significant bit first
    index.save(str(path))


def _read_usearch(path: Path, n_items: int, n_bits: int) -> BoolArray:
    from usearch.index import Index

    packed = np.asarray(Index.restore(str(path)).get(np.arange(n_items)), dtype=np.uint8).reshape(n_items, -1)
    return np.unpackbits(packed, axis=1, count=n_bits).astype(bool)


def _write_texts(packed: ByteArray, n_bits: int, path: Path, head: str, line: Callable[[int, str], str]) -> None:
    """Write a line per code, made of its number and its bits as 0 and 1, the first bit first."""
    with path.open("w", encoding="ascii", newline="\n") as file:
        file.write(head)
        for start in range(0, len(packed), _TEXTS):
            digits = unpack(packed[start : start + _TEXTS], n_bits).astype(np.uint8) + ord("0")
            texts = digits.view(f"S{n_bits}").ravel()
            file.writelines(line(start + number, text.decode()) for number, text in enumerate(texts))


def _write_pgvector(packed: ByteArray, n_bits: int, path: Path) -> None:
    _write_texts(packed, n_bits, path, "", lambda number, text: f"{number}\t{text}\n")


def _read_pgvector(path: Path, n_items: int, n_bits: int) -> BoolArray:
    lines = path.read_text(encoding="ascii").splitlines()[:n_items]
    return np.asarray(np.array([list(line.partition("\t")[2]) for line in lines]) == "1")


def _write_hex(packed: ByteArray, n_bits: int, path: Path) -> None:
    width = -(-n_bits // 4)
    _write_texts(packed, n_bits, path, "code\n", lambda number, text: f"{int(text, 2):0{width}x}\n")


def _read_hex(path: Path, n_items: int, n_bits: int) -> BoolArray:
    _, *lines = path.read_text(encoding="ascii").splitlines()[: n_items + 1]
    fill = "0" * (2 * n_bytes(n_bits) - -(-n_bits // 4))
    packed = np.frombuffer(bytes.fromhex("".join(fill + line for line in lines)), np.uint8)
    return np.unpackbits(packed.reshape(n_items, -1), axis=1)[:, -n_bits:].astype(bool)


_CODES: dict[str, tuple[Callable[[ByteArray, int, Path], None], Callable[[Path, int, int], BoolArray], str]] = {
    "faiss": (_write_faiss_codes, _read_faiss_codes, "faiss-cpu"),
    "hex": (_write_hex, _read_hex, "Python"),
    "npy": (_write_npy, _read_npy, "numpy"),
    "pgvector": (_write_pgvector, _read_pgvector, "Python"),
    "usearch": (_write_usearch, _read_usearch, "usearch"),
}


# ---------------------------------------------------------------- new items


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

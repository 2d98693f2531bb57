"""HDF5 files of datasets, codes and scores: their layout, and checks on reading."""

import hashlib
import io
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from h5py import h5a

from hashbench._typing import AnyArray, ByteArray
from hashbench._validation import is_sparse
from hashbench.bits import check_n_bits, check_packed, n_bytes
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import Damaged, HashbenchError, one_line
from hashbench.store.files import data_dir, replacing
from hashbench.store.inputs import check_file, check_stored, open_hdf5, whole
from hashbench.store.origin import JobRecord, Origin
from hashbench.store.provenance import REQUIRED, Provenance

SCHEMA_VERSION = 2  # of the first release
_MAPPED = 1 << 20  # bytes
_ALIGNED = 64
_LONGEST = 60_000  # bytes of an attribute; HDF5 itself takes 64 KB
_DATASET_ARRAYS = ("features", "images", "labels", "coarse_labels", "neighbours", "query", "database", "train")


@dataclass(frozen=True, eq=False)
class Codes:
    """Packed codes (n, ceil(n_bits / 8)) of a dataset's queries and database, in its order, and what made them."""

    query: ByteArray
    database: Any  # an array, or an object that can be sliced like one
    made: Provenance
    fit_seconds: float = float("nan")
    encode_seconds: float = float("nan")  # of queries and database
    origin: Origin | None = None  # None if not known, as for users' own codes
    held_out: float | None = None  # score of items that were held out to choose the epoch, as queries to the others
    held_out_metric: str = ""  # of this score

    @property
    def n_bits(self) -> int:
        """Code length in bits."""
        return self.made.n_bits

    def __post_init__(self) -> None:
        check_n_bits(self.n_bits)
        for role in ("query", "database"):
            array = getattr(self, role)
            if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != n_bytes(self.n_bits):
                check_packed(array, self.n_bits, f"{role} codes")

    @property
    def job_record(self) -> JobRecord | None:
        """The record of their job beside results; None if their origin is not known."""
        return JobRecord.of(self.made, self.origin, self.fit_seconds + self.encode_seconds) if self.origin else None

    @cached_property
    def content(self) -> str:
        """The first 16 hex digits of a SHA-256 over the codes and their length."""
        digest = hashlib.sha256(f"{self.n_bits};{self.query.shape};{self.database.shape};".encode())
        for array in (self.query, self.database):
            for start in range(0, len(array), 1 << 20):
                digest.update(np.ascontiguousarray(array[start : start + (1 << 20)]).tobytes())
        return digest.hexdigest()[:16]


@contextmanager
def _writing(path: Path) -> Iterator[h5py.File]:
    """Write an HDF5 file in memory first, since HDF5 may crash on a full disk."""
    buffer = io.BytesIO()
    with h5py.File(buffer, "w", alignment_threshold=_MAPPED, alignment_interval=_ALIGNED) as file:
        file.attrs["schema_version"] = SCHEMA_VERSION
        yield file
    with replacing(path) as part:
        part.write_bytes(buffer.getbuffer())


def _put(file: h5py.File, attributes: Mapping[str, Any]) -> None:
    """Write attributes: texts with a fixed length, very long ones as arrays of bytes."""
    for key, value in attributes.items():
        text = value.encode() if isinstance(value, str) else None
        if text is None:
            file.attrs[key] = value
        elif len(text) < _LONGEST:
            file.attrs[key] = np.array(text, h5py.string_dtype("utf-8", max(len(text), 1)))
        else:
            file[f"texts/{key}"] = np.frombuffer(text, np.uint8)


def write_dataset(dataset: Dataset, path: Path, versions: str = "", choices: Mapping[str, Any] | None = None) -> None:
    """Write a dataset file; ``versions`` are those of the code that prepared it, ``choices`` what the user chose."""
    with _writing(path) as file:
        words = {key: getattr(dataset, key) for key in ("name", "rule", "features_name", "fingerprint")}
        if dataset.part_of:
            words["part_of"] = dataset.part_of
        mappings = {"rule_params": dataset.rule_params, "about": dataset.about, "choices": choices or {}}
        lines = {key: canonical_json(dict(value)) for key, value in mappings.items()}
        _put(file, {"hashbench": "dataset", "versions": versions, **words, **lines})
        for key in _DATASET_ARRAYS:
            if getattr(dataset, key) is not None:
                file[key] = getattr(dataset, key)
        if is_sparse(dataset.matrix):
            matrix = dataset.matrix.tocsr()
            for key in ("data", "indices", "indptr"):
                file[f"matrix/{key}"] = getattr(matrix, key)
            file["matrix"].attrs["shape"] = matrix.shape
        elif dataset.matrix is not None:
            file["matrix"] = np.asarray(dataset.matrix)


def read_dataset(path: Path) -> Dataset:
    """Read a dataset file; refuse one that is truncated, or whose content does not have its fingerprint."""
    with _opened(path, "dataset") as (file, attributes), _parsing(path, "dataset"):
        matrix = file.get("matrix")
        if isinstance(matrix, h5py.Group):
            parts = tuple(whole(matrix, key) for key in ("data", "indices", "indptr"))
            from scipy.sparse import csr_array

            matrix = csr_array(parts, shape=tuple(_fixed(matrix)["shape"]))
        elif matrix is not None:
            matrix = whole(file, "matrix")
        content = {
            **{key: str(attributes[key]) for key in ("name", "rule", "features_name")},
            "part_of": str(attributes.get("part_of", "")),
            **{key: json.loads(attributes[key]) for key in ("rule_params", "about")},
            **{key: _mapped(file, key) if key in file else None for key in _DATASET_ARRAYS},
            "matrix": matrix,
        }
        stored = str(attributes["fingerprint"])
    try:
        dataset = Dataset(**content)
    except HashbenchError as error:
        raise Damaged(f"{path} holds no valid dataset: {error}") from error
    if dataset.fingerprint != stored:
        raise Damaged(
            f"the fingerprint in {path} is {stored}, but its content has {dataset.fingerprint}: it is damaged. "
            "Rebuild it (hashbench prepare --force)."
        )
    return dataset


def _mapped(file: h5py.File, name: str) -> Any:
    """Map a large array of the data folder into memory, which processes share; read any other.

    Files there are replaced, never changed, so a mapped array stays the same. Windows cannot replace a mapped file.
    """
    stored = file[name]
    offset = stored.id.get_offset()
    is_apt = offset is not None and offset % _ALIGNED == 0 and stored.nbytes >= _MAPPED  # sums depend on alignment
    is_ours = Path(os.path.realpath(file.filename)).is_relative_to(os.path.realpath(data_dir()))
    if not (is_apt and is_ours) or sys.platform == "win32":
        return whole(file, name)
    check_stored(stored, f"{name} of {file.filename}")
    with os.fdopen(os.dup(file.id.get_vfd_handle()), "rb") as opened:  # its name may be another file's by now
        return np.asarray(np.memmap(opened, stored.dtype, "c", offset, stored.shape))


def write_codes(codes: Codes, path: Path) -> None:
    """Write a codes file."""
    with _writing(path) as file:
        _put(file, {**codes.made.attributes(), "hashbench": "codes", "content": codes.content})
        _put(file, {key: getattr(codes, key) for key in _TIMES})
        if codes.origin is not None:
            _put(file, {"origin": codes.origin.text()})
        if codes.held_out is not None:
            _put(file, {key: getattr(codes, key) for key in _HELD_OUT})
        file["query/codes"] = codes.query
        file["database/codes"] = codes.database


@contextmanager
def open_codes(path: Path) -> Iterator[Codes]:
    """Open a codes file: queries in memory, the database to be read in slices while it is open."""
    with _opened(path, "codes") as (file, attributes):
        yield _codes_of(file, attributes, path)


@contextmanager
def find_codes(path: Path, made: Provenance) -> Iterator[Codes | None]:
    """Open a codes file as `open_codes` does, if it exists and has this provenance."""
    if not path.exists():
        yield None
        return
    with _opened(path, "codes") as (file, attributes):
        with _parsing(path, "codes"):
            is_same = Provenance.read(attributes).gives_codes_of(made)
        yield _codes_of(file, attributes, path) if is_same else None


def _codes_of(file: h5py.File, attributes: Mapping[str, Any], path: Path) -> Codes:
    """Return the codes of an open file; refuse those that are not what it records."""
    with _parsing(path, "codes"):
        made = Provenance.read(attributes)
        times: dict[str, Any] = {key: float(attributes[key]) for key in _TIMES}
        held_out = {key: kind(attributes[key]) for key, kind in _HELD_OUT.items() if key in attributes}
        query, database = whole(file, "query/codes"), _OnDisk(file["database/codes"], path)
        stored = str(attributes["content"])
        origin = Origin.read(attributes["origin"]) if "origin" in attributes else None
        codes = Codes(query, database, made, **times, origin=origin, **held_out)
    if codes.content != stored:
        raise Damaged(
            f"{path} is damaged: its digest is {stored}, but its codes have {codes.content}. Encode again (--force)."
        )
    check_packed(codes.query, codes.n_bits, f"query codes of {path}")
    return codes


class _OnDisk:
    """A two-dimensional HDF5 dataset that is read slice by slice."""

    def __init__(self, stored: h5py.Dataset, path: Path) -> None:
        check_stored(stored, f"{stored.name} of {path}")
        self.shape, self.dtype, self.ndim = stored.shape, stored.dtype, stored.ndim
        self._stored, self._path = stored, path

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> ByteArray:
        with _parsing(self._path, "codes"):
            return np.asarray(self._stored[rows])


def write_scores(path: Path, scores: Mapping[str, AnyArray], made: Mapping[str, Any]) -> None:
    """Write the scores of every query, by metric; ``made`` is what they were computed from."""
    with _writing(path) as file:
        _put(file, {**made, "hashbench": "scores", "scores_content": _content_of(scores)})
        for name, values in scores.items():
            file[f"scores/{name}"] = values


def read_scores(path: Path, made: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Read what `write_scores` wrote; empty if there is no file, or if it was computed from something else."""
    if not path.exists():
        return {}
    with _opened(path, "scores") as (file, attributes), _parsing(path, "scores"):
        if any(attributes.get(key) != value for key, value in made.items()):
            return {}
        scores = {name: whole(file["scores"], name) for name in file["scores"]}
        is_whole = attributes.get("scores_content") == _content_of(scores)
    if not is_whole:
        raise Damaged(f"{path} is damaged: its scores do not have their digest. Score again (--force).")
    return scores


def _content_of(scores: Mapping[str, AnyArray]) -> str:
    content = hashlib.sha256()
    for name in sorted(scores):
        content.update(f"{name};{scores[name].shape};".encode() + np.ascontiguousarray(scores[name], "<f8").tobytes())
    return content.hexdigest()[:16]


def read_attributes(path: Path) -> dict[str, Any]:
    """Read only the attributes of a hashbench file; none if it is missing or damaged."""
    try:
        with open_hdf5(path) as file:
            return _attributes(file)
    except _UNREADABLE:
        return {}


_TIMES = ("fit_seconds", "encode_seconds")
_HELD_OUT: dict[str, type] = {"held_out": float, "held_out_metric": str}
_REQUIRED = {
    "codes": (*REQUIRED, *_TIMES, "content", "query/codes", "database/codes"),
    "scores": ("scores",),
    "dataset": ("name", "rule", "rule_params", "features_name", "about", "fingerprint", "query", "database", "train"),
}


def _attributes(file: h5py.File) -> dict[str, Any]:
    """Read what `_put` wrote, single values only."""
    attributes = {key: value for key, value in _fixed(file).items() if np.ndim(value) == 0}
    if "hashbench" in attributes:
        texts = file.get("texts", {})
        attributes |= {key: whole(texts, key).tobytes().decode() for key in texts}
    return attributes


def _fixed(holder: h5py.Group) -> dict[str, Any]:
    """Read attributes of fixed length, texts as texts.

    Others are in a heap, in which HDF5 loops forever once it is damaged; hashbench writes none.
    """
    attributes = {}
    for number in range(h5a.get_num_attrs(holder.id)):  # by name each takes twice as long
        attribute = h5a.open(holder.id, index=number)
        if not attribute.dtype.hasobject:
            value = np.empty(attribute.shape, attribute.dtype)
            attribute.read(value)
            single = value[()]
            attributes[attribute.name.decode()] = single.decode() if isinstance(single, bytes) else single
    return attributes


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[tuple[h5py.File, dict[str, Any]]]:
    """Open an HDF5 file of one of hashbench's kinds, and yield it with its attributes.

    A file of another kind or version counts as damaged, too, so that the cache replaces it.
    """
    check_file(path)
    with ExitStack() as stack:
        with _parsing(path, kind):
            file = stack.enter_context(open_hdf5(path))
            attributes = _attributes(file)
            actual_kind = str(attributes.get("hashbench", ""))
            version = int(attributes.get("schema_version", 0))
            lacking = [key for key in _REQUIRED[kind] if key not in attributes and key not in file]
        if actual_kind != kind:
            what = f"a {actual_kind} file" if actual_kind else "an HDF5 file of another program"
            raise Damaged(f"{path} is {what}, expected a {kind} file of hashbench.")
        if version != SCHEMA_VERSION:
            raise Damaged(
                f"{path} has schema version {version}, this hashbench reads {SCHEMA_VERSION}. Upgrade hashbench, or "
                "rebuild the file."
            )
        if lacking:
            raise Damaged(f"{path} lacks {', '.join(lacking)}, which a {kind} file has. Rebuild it.")
        yield file, attributes


@contextmanager
def _parsing(path: Path, kind: str) -> Iterator[None]:
    """Turn any exception of h5py and json on a damaged file into `Damaged`."""
    try:
        yield
    except _UNREADABLE as error:
        if isinstance(error, HashbenchError):
            raise error if isinstance(error, Damaged) else Damaged(f"{error} Rebuild it.") from error
        reason = "it is not HDF5" if "signature" in str(error) else f"it is cut short or damaged ({one_line(error)})"
        raise Damaged(f"cannot read {path} as a {kind} file: {reason}. Rebuild it.") from error


_UNREADABLE = (OSError, RuntimeError, KeyError, TypeError, ValueError, AttributeError)

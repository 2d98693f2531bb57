"""The two HDF5 files, dataset and codes: their layout, checks on reading, and writing whole or not at all."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import platformdirs
import scipy.sparse as sp
from filelock import FileLock

from hashbench.bits import ByteArray, check_n_bits, check_packed, n_bytes
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError

SCHEMA_VERSION = 1


def data_dir() -> Path:
    """Find the folder for datasets, codes and scores.

    Returns
    -------
    Path
        ``$HASHBENCH_DATA``, else the user's cache folder.
    """
    return Path(os.environ.get("HASHBENCH_DATA") or platformdirs.user_cache_path("hashbench"))


@dataclass(frozen=True, eq=False)
class Codes:
    """Codes of a dataset's queries and database by one method, and how they were made.

    Parameters
    ----------
    query, database : ndarray or h5py.Dataset of shape (n, ceil(n_bits / 8)), uint8
        Packed codes in the order of the dataset's ``query`` and ``database``.
    n_bits : int
        Code length in bits.
    method, method_version : str, int
        Who made them.
    params : mapping
        The method's parameters but for ``n_bits`` and ``random_state``.
    seed : int
        The ``random_state``.
    dataset, dataset_fingerprint, features : str
        What they were made from.
    libraries : mapping of str to str
        Versions of the libraries that took part.
    fit_seconds, encode_seconds : float
        Wall-clock time of learning, and of encoding queries and database.
    made_by : str
        Digest of the method's source code.
    """

    query: ByteArray
    database: ByteArray
    n_bits: int
    method: str
    method_version: int
    params: Mapping[str, Any]
    seed: int
    dataset: str
    dataset_fingerprint: str
    features: str
    libraries: Mapping[str, str] = field(default_factory=dict)
    fit_seconds: float = float("nan")
    encode_seconds: float = float("nan")
    made_by: str = ""

    def __post_init__(self) -> None:
        check_n_bits(self.n_bits)
        for role in ("query", "database"):
            array = getattr(self, role)
            if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != n_bytes(self.n_bits):
                check_packed(array, self.n_bits, f"{role} codes")

    @cached_property
    def content(self) -> str:
        """The first 16 hex digits of a SHA-256 over the codes and their length."""
        digest = hashlib.sha256(f"{self.n_bits};{self.query.shape};{self.database.shape};".encode())
        for array in (self.query, self.database):
            for start in range(0, len(array), 1 << 20):
                digest.update(np.ascontiguousarray(array[start : start + (1 << 20)]).tobytes())
        return digest.hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes from making the same file at the same time.

    Parameters
    ----------
    path : Path
        The file to be made; its lock ``.NAME.lock`` lies beside it.

    Yields
    ------
    None
        While the lock is held. The same process may enter again.
    """
    with _holding(path.with_name(f".{path.name}.lock")):
        yield


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing files in a folder.

    Parameters
    ----------
    folder : Path
        Made if need be; its lock is the file ``.lock`` inside. To be held for short.

    Yields
    ------
    None
        While the lock is held. The same process may enter again.
    """
    with _holding(folder / ".lock"):
        yield


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : Path
        The file to be made or replaced.

    Yields
    ------
    Path
        A temporary name beside it to write to. On success it takes the place of ``path``; on an
        error it is removed and ``path`` stays as it was. What a killed process leaves behind is
        overwritten by the next one.

    Raises
    ------
    HashbenchError
        If the file cannot be written: disk full, no permission.
    """
    with locked_folder(path.parent):
        part = path.with_name(f".{path.name}.part")
        try:
            with _spelled_out(path):
                yield part
                with part.open("rb") as written:
                    os.fsync(written.fileno())
                part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, LF) whole or not at all.

    Parameters
    ----------
    path : Path
        The file to be made or replaced; untouched if it holds just this text.
    text : str
        Its content.
    """
    content = text.encode()
    with locked_folder(path.parent):
        if path.is_file() and path.read_bytes() == content:
            return
        with replacing(path) as part:
            part.write_bytes(content)


def write_dataset(dataset: Dataset, path: Path, made_by: str = "") -> None:
    """Write a dataset file.

    Parameters
    ----------
    dataset : Dataset
        What to write.
    path : Path
        The HDF5 file to be made or replaced.
    made_by : str, optional
        Digest of the adapter's source code.
    """
    with replacing(path) as part, h5py.File(part, "w") as file:
        file.attrs["hashbench"] = "dataset"
        file.attrs["schema_version"] = SCHEMA_VERSION
        for key in ("name", "rule", "features_name", "fingerprint"):
            file.attrs[key] = getattr(dataset, key)
        file.attrs["rule_params"] = canonical_json(dict(dataset.rule_params))
        file.attrs["about"] = canonical_json(dict(dataset.about))
        file.attrs["made_by"] = made_by
        for key in ("features", "labels", "query", "database", "train"):
            if getattr(dataset, key) is not None:
                file[key] = getattr(dataset, key)
        if sp.issparse(dataset.matrix):
            matrix = sp.csr_array(dataset.matrix)
            file["matrix/data"], file["matrix/indices"], file["matrix/indptr"] = (
                matrix.data,
                matrix.indices,
                matrix.indptr,
            )
            file["matrix"].attrs["shape"] = matrix.shape
        elif dataset.matrix is not None:
            file["matrix"] = np.asarray(dataset.matrix)


def read_dataset(path: Path) -> Dataset:
    """Read a dataset file and check it.

    Parameters
    ----------
    path : Path
        The HDF5 file.

    Returns
    -------
    Dataset
        Its content.

    Raises
    ------
    HashbenchError
        If the file is missing, no dataset file, cut short, or not what its fingerprint says.
    """
    with _opened(path, "dataset") as file:
        matrix = file.get("matrix")
        if isinstance(matrix, h5py.Group):
            parts = (matrix["data"][:], matrix["indices"][:], matrix["indptr"][:])
            matrix = sp.csr_array(parts, shape=tuple(matrix.attrs["shape"]))
        elif matrix is not None:
            matrix = matrix[:]
        dataset = Dataset(
            name=file.attrs["name"],
            features=file["features"][:],
            query=file["query"][:],
            database=file["database"][:],
            train=file["train"][:],
            rule=file.attrs["rule"],
            rule_params=json.loads(file.attrs["rule_params"]),
            labels=file["labels"][:] if "labels" in file else None,
            matrix=matrix,
            features_name=file.attrs["features_name"],
            about=json.loads(file.attrs["about"]),
        )
        stored = file.attrs["fingerprint"]
    if dataset.fingerprint != stored:
        raise HashbenchError(
            f"{path} says it holds content {stored}, but holds {dataset.fingerprint}: it is damaged. "
            "Make it again (hashbench prepare --force)."
        )
    return dataset


def write_codes(codes: Codes, path: Path) -> None:
    """Write a codes file.

    Parameters
    ----------
    codes : Codes
        What to write.
    path : Path
        The HDF5 file to be made or replaced.
    """
    with replacing(path) as part, h5py.File(part, "w") as file:
        file.attrs["hashbench"] = "codes"
        file.attrs["schema_version"] = SCHEMA_VERSION
        for key in _CODES_ATTRIBUTES:
            value = getattr(codes, key)
            file.attrs[key] = canonical_json(dict(value)) if isinstance(value, Mapping) else value
        file.attrs["content"] = codes.content
        file["query/codes"] = codes.query
        file["database/codes"] = codes.database


@contextmanager
def open_codes(path: Path) -> Iterator[Codes]:
    """Open a codes file for streaming.

    Parameters
    ----------
    path : Path
        The HDF5 file.

    Yields
    ------
    Codes
        Queries in memory, the database still on disk, to be read in slices while the file is open.

    Raises
    ------
    HashbenchError
        If the file is missing, no codes file or cut short.
    """
    with _opened(path, "codes") as file:
        values = {key: file.attrs[key] for key in _CODES_ATTRIBUTES}
        for key in ("params", "libraries"):
            values[key] = json.loads(values[key])
        for key in ("n_bits", "method_version", "seed"):
            values[key] = int(values[key])
        codes = Codes(query=file["query/codes"][:], database=file["database/codes"], **values)
        check_packed(codes.query, codes.n_bits, f"query codes of {path}")
        object.__setattr__(codes, "content", str(file.attrs["content"]))  # known without reading them all
        yield codes


def read_attributes(path: Path) -> dict[str, Any]:
    """Read the attributes of a hashbench file alone.

    Parameters
    ----------
    path : Path
        An HDF5 file.

    Returns
    -------
    dict
        All attributes; empty if the file is missing, damaged or of another schema.
    """
    try:
        with h5py.File(path, "r") as file:
            attributes = dict(file.attrs)
    except OSError:
        return {}
    return attributes if attributes.get("schema_version") == SCHEMA_VERSION else {}


_CODES_ATTRIBUTES = (
    "n_bits",
    "method",
    "method_version",
    "params",
    "seed",
    "dataset",
    "dataset_fingerprint",
    "features",
    "libraries",
    "fit_seconds",
    "encode_seconds",
    "made_by",
)
_REQUIRED = {
    "codes": (*_CODES_ATTRIBUTES, "content", "query/codes", "database/codes"),
    "dataset": (
        *("name", "rule", "rule_params", "features_name", "about", "fingerprint"),
        *("features", "query", "database", "train"),
    ),
}


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[h5py.File]:
    """Open an HDF5 file of one of our kinds; every failure to read it becomes a sentence."""
    if not path.is_file():
        raise HashbenchError(f"there is no file {path}.")
    try:
        with h5py.File(path, "r") as file:
            found = file.attrs.get("hashbench")
            if found != kind:
                what = f"a {found} file" if found else "an HDF5 file of another program"
                raise HashbenchError(f"{path} is {what}, expected a {kind} file of hashbench.")
            version = int(file.attrs.get("schema_version", 0))
            if version > SCHEMA_VERSION:
                raise HashbenchError(
                    f"{path} has schema version {version}, this hashbench reads up to {SCHEMA_VERSION}. Upgrade it."
                )
            lacking = [key for key in _REQUIRED[kind] if key not in file and key not in file.attrs]
            if lacking:
                raise HashbenchError(f"{path} lacks {', '.join(lacking)}: no complete {kind} file. Make it again.")
            yield file
    except OSError as error:
        reason = "it is not HDF5" if "signature" in str(error) else f"it is cut short or damaged ({error})"
        raise HashbenchError(f"cannot read {path} as a {kind} file: {reason}. Make it again.") from error


@contextmanager
def _holding(path: Path) -> Iterator[None]:
    with _spelled_out(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, is_singleton=True)
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _spelled_out(path: Path) -> Iterator[None]:
    """Turn a failure to write into a sentence."""
    try:
        yield
    except OSError as error:
        raise HashbenchError(
            f"cannot write {path}: {error.strerror or error}. What was there is unchanged; "
            "free some space or choose another folder (for the cache: HASHBENCH_DATA)."
        ) from error

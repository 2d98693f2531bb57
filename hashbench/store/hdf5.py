"""Files of datasets and codes."""

import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from hashbench._typing import ByteArray, FloatArray
from hashbench._validation import is_sparse
from hashbench.bits import check_n_bits, check_packed, n_bytes
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.store import artifact
from hashbench.store.artifact import Artifact
from hashbench.store.files import data_dir
from hashbench.store.origin import ORIGIN, Origin
from hashbench.store.provenance import Provenance

_SPLIT = ("query", "database", "train")
_OPTIONAL = ("features", "images", "labels", "coarse_labels", "neighbours")  # arrays of a dataset
_DATASET_FACTS = ("name", "rule", "features_name", "part_of", "rule_params", "about")
_CSR = ("data", "indices", "indptr")
_OUTPUTS = "query/outputs"
_OF_CODES = {"fit_seconds": float, "encode_seconds": float, "held_out": float, "held_out_metric": str}


@dataclass(frozen=True, eq=False)
class Codes:
    """Packed codes (n, ceil(n_bits / 8)) of a dataset's queries and database, in its order, and what made them."""

    query: ByteArray
    database: Any  # an array, or an object that can be sliced like one
    made: Provenance
    fit_seconds: float = float("nan")
    encode_seconds: float = float("nan")  # of queries and database
    origin: Mapping[str, Any] | None = None  # of `origin_here`; None if not known, as for users' own codes
    held_out: float | None = None  # score of items that were held out to choose the epoch, as queries to the others
    held_out_metric: str = ""  # of this score
    query_outputs: FloatArray | None = None  # (n_queries, n_bits), whose signs are the codes; only where asked for

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
    def job_origin(self) -> Origin | None:
        """Their origin as it is written beside results; None if it is not known."""
        return Origin.of(self.made, self.origin, self.fit_seconds + self.encode_seconds) if self.origin else None

    @cached_property
    def content(self) -> str:
        """The first 16 hex digits of a SHA-256 over the codes, their length, and outputs of queries if any."""
        digest = hashlib.sha256(f"{self.n_bits};{self.query.shape};{self.database.shape};".encode())
        for array in (self.query, self.database):
            for start in range(0, len(array), 1 << 20):
                digest.update(np.ascontiguousarray(array[start : start + (1 << 20)]).tobytes())
        if self.query_outputs is not None:
            digest.update(np.ascontiguousarray(self.query_outputs).tobytes())
        return digest.hexdigest()[:16]


def write_dataset(dataset: Dataset, path: Path, origin: Mapping[str, Any] = MappingProxyType({})) -> None:
    """Write a dataset file; ``origin`` is more for its record, about what prepared it."""
    record = {**origin, **{key: getattr(dataset, key) for key in (*_DATASET_FACTS, "fingerprint")}}
    arrays = {key: getattr(dataset, key) for key in (*_SPLIT, *_OPTIONAL) if getattr(dataset, key) is not None}
    if is_sparse(dataset.matrix):
        matrix = dataset.matrix.tocsr()
        record["matrix_shape"] = matrix.shape
        arrays |= {f"matrix/{key}": getattr(matrix, key) for key in _CSR}
    elif dataset.matrix is not None:
        arrays["matrix"] = np.asarray(dataset.matrix)
    artifact.write(path, "dataset", record, arrays)


def read_dataset(path: Path) -> Dataset:
    """Read a dataset file; refuse one that is damaged."""
    dataset: Dataset = artifact.read(path, "dataset", dataset_of)
    return dataset


def dataset_of(found: Artifact) -> Dataset:
    """Return the dataset in an open file; large arrays of files in the data folder are mapped into memory."""
    record = found.record
    is_ours = Path(os.path.realpath(found.path)).is_relative_to(os.path.realpath(data_dir()))
    read = found.mapped if is_ours and sys.platform != "win32" else found.array  # Windows cannot replace a mapped file
    names = [key for key in (*_SPLIT, *_OPTIONAL, "matrix") if key in (*_SPLIT, *record["arrays"])]
    arrays: dict[str, Any] = {"features": None, **{key: read(key) for key in names}}
    if "matrix_shape" in record:
        from scipy.sparse import csr_array

        arrays["matrix"] = csr_array(
            tuple(found.array(f"matrix/{key}") for key in _CSR), shape=tuple(record["matrix_shape"])
        )
    try:
        dataset = Dataset(**{key: record[key] for key in _DATASET_FACTS}, **arrays)
    except HashbenchError as error:
        raise HashbenchError(f"{found.path} holds no valid dataset: {error}") from error
    vars(dataset)["fingerprint"] = str(record["fingerprint"])  # the digest of the file vouches for it
    return dataset


def write_codes(codes: Codes, path: Path) -> None:
    """Write a codes file."""
    record = {**codes.made.attributes(), "content": codes.content}
    values = {key: getattr(codes, key) for key in _OF_CODES}
    record |= {key: value for key, value in values.items() if str(value) not in ("None", "", "nan")}
    if codes.origin is not None:
        record["origin"] = codes.origin
    arrays = {"query/codes": codes.query, "database/codes": codes.database}
    if codes.query_outputs is not None:
        arrays[_OUTPUTS] = codes.query_outputs
    artifact.write(path, "codes", record, arrays)


@contextmanager
def open_codes(path: Path, made: Provenance | None = None) -> Iterator[Any]:
    """Open a codes file: queries in memory, the database to be read in slices while it is open.

    With a provenance, yield None if there is no file of this one.
    """
    with artifact.opened(path, "codes", None if made is None else key_of(made)) as found:
        with artifact.parsing(path, "codes"):
            codes = None if found is None else codes_of(found)
        yield codes


def key_of(made: Provenance) -> artifact.Key:
    """Return a test of the records of codes of this provenance."""
    return lambda record: Provenance.read(record).gives_codes_of(made)


def codes_of(found: Artifact) -> Codes:
    """Return the codes in an open file."""
    record = found.record
    values: dict[str, Any] = {key: kind(record[key]) for key, kind in _OF_CODES.items() if key in record}
    query, database = found.array("query/codes"), found.stored("database/codes")
    outputs = found.array(_OUTPUTS) if _OUTPUTS in record["arrays"] else None
    origin = record.get("origin")
    if origin is not None and {*origin} != {*ORIGIN}:
        raise ValueError(f"its origin has {', '.join(sorted(origin))}, expected {', '.join(sorted(ORIGIN))}")
    codes = Codes(query, database, Provenance.read(record), **values, origin=origin, query_outputs=outputs)
    check_packed(codes.query, codes.n_bits, f"query codes of {found.path}")
    vars(codes)["content"] = str(record["content"])  # the digest of the file vouches for it
    return codes

"""What is in files of datasets, codes and models: their records and arrays.

Models hold what a method learned as plain arrays, whose structure the record describes. Nothing in any file is code.
"""

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray
from hashbench._validation import is_sparse
from hashbench.bits import check_n_bits, check_packed, n_bytes
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, TooLarge, one_line
from hashbench.registry import get_method
from hashbench.store import artifact
from hashbench.store.artifact import Artifact
from hashbench.store.files import data_dir
from hashbench.store.origin import ORIGIN, Origin
from hashbench.store.provenance import CODES_VERSION, Provenance, method_digests

if TYPE_CHECKING:
    from hashbench.method import HashMethod

SUFFIX = ".model.h5"  # of models
_SPLIT = ("query", "database", "train")
_OPTIONAL = ("features", "images", "labels", "coarse_labels", "neighbours")  # arrays of a dataset
_DATASET_FACTS = ("name", "rule", "features_name", "part_of", "rule_params", "about")
_CSR = ("data", "indices", "indptr")
_OUTPUTS = "query/outputs"
_OF_CODES = {"fit_seconds": float, "encode_seconds": float, "held_out": float, "held_out_metric": str}
_PLAIN = (bool, int, float, str, type(None))


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


# ---------------------------------------------------------------- datasets


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
    read = found.mapped if is_ours else found.array
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


# ---------------------------------------------------------------- codes


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


# ---------------------------------------------------------------- models


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted method, and what made it.

    Parameters
    ----------
    method : HashMethod
        Fitted: its ``transform`` encodes new items.
    made : Provenance
        The method's name, version and parameters, the dataset and its fingerprint, the libraries and code.
    """

    method: "HashMethod"
    made: Provenance


def write_model(method: "HashMethod", made: Provenance, path: Path) -> None:
    """Write a fitted method; raises HashbenchError if its state cannot be stored in a file."""
    state, arrays = to_arrays(method)
    record = {"written_by": version("hashbench"), "made": made.attributes()}
    record |= {"parameters": method.get_params(deep=False), "state": state}
    artifact.write(path, "model", record, arrays)


def read_model(path: str | Path) -> Model:
    """Read a fitted method that ``hashbench encode`` or ``run`` wrote with ``--keep-model``.

    Parameters
    ----------
    path : str or Path
        A ``.model.h5`` file.

    Returns
    -------
    Model
        The fitted method as ``method``, and its provenance as ``made``.

    Raises
    ------
    HashbenchError
        If the file is not a model, is damaged, or is of a method that is not installed or of another version.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hashbench.methods.lsh import LSH
    >>> made = Provenance("mine", "features", "lsh", "{}", 8, 0, "0" * 16, 1)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, f"lsh{SUFFIX}")
    ...     write_model(LSH(n_bits=8).fit(np.eye(4)), made, path)
    ...     read_model(path).method.transform(np.eye(4)).shape
    (4, 8)
    """
    path = Path(path)
    made, writer, parameters, state, arrays = artifact.read(path, "model", _parts_of)
    cls = get_method(made.method)
    code = made.method_version, made.codes_version, made.plugin
    here = cls.version, CODES_VERSION, method_digests(made.method, cls)
    if code[:2] == here[:2] and code != here:
        raise HashbenchError(
            f"{path} was fitted by other code of the plug-in {made.method}, which may give other codes. Fit it again "
            "with --keep-model, or restore that code."
        )
    if code != here:
        raise HashbenchError(
            f"{path} was fitted by version {made.method_version} of {made.method} (hashbench {writer}). The method "
            f"here is version {cls.version} or has other code, which may give other codes. Fit it again with "
            "--keep-model, or install that hashbench."
        )
    with artifact.parsing(path, "model"):
        return Model(from_arrays(cls, parameters, state, arrays), made)


def read_origin(path: Path) -> tuple[Provenance, str]:
    """Read what made a model, and the version of hashbench that wrote it, without the method."""
    made, writer, *_ = artifact.read(path, "model", _parts_of)
    return made, writer


def _parts_of(found: Artifact) -> tuple[Provenance, str, dict[str, Any], dict[str, Any], dict[str, AnyArray]]:
    record = found.record
    made, arrays = Provenance.read(record["made"]), {name: found.array(name) for name in record["arrays"]}
    return made, str(record["written_by"]), record["parameters"], record["state"], arrays


def holds_model(path: Path, made: Provenance) -> bool:
    """Return whether a file exists and is a sound model of this provenance."""
    try:
        return path.exists() and read_model(path).made.gives_codes_of(made)
    except TooLarge:
        raise
    except HashbenchError:
        return False


def to_arrays(method: "HashMethod") -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Convert a fitted method to the structure of its state, in JSON, and arrays by name."""
    arrays: dict[str, AnyArray] = {}
    state = {name: _to_json(value, name, arrays, type(method)) for name, value in sorted(method.fitted_state().items())}
    return state, arrays


def from_arrays(
    cls: "type[HashMethod]", parameters: Mapping[str, Any], state: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> "HashMethod":
    """Rebuild a fitted method from its parameters and what `to_arrays` returned."""
    method = cls(**parameters)
    method.set_fitted_state({name: _from_json(value, arrays, cls) for name, value in state.items()})
    return method


def _to_json(value: Any, name: str, arrays: dict[str, AnyArray], cls: type) -> Any:
    """Convert a value called ``name`` to JSON; add its arrays to ``arrays`` under their names."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        is_text = value.dtype.kind in "UO" and all(isinstance(item, str) for item in value.flat)
        if is_text or value.dtype.kind in "biufcS":
            place = f"state/{name.replace('/', ':')}"
            while place in arrays:
                place += "'"
            arrays[place] = np.char.encode(value.astype(str), "utf-8") if is_text else value
            return {"array": place, "text": value.dtype.str} if is_text else {"array": place}

    def converted(parts: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        return {key: _to_json(part, f"{name}.{key}", arrays, cls) for key, part in parts}

    kind = type(value)
    if kind is dict and all(isinstance(key, str) for key in value):
        return {"dict": converted(value.items())}
    if kind in (list, tuple):
        return {kind.__name__: [*converted(enumerate(value)).values()]}
    if is_dataclass(value) or hasattr(value, "_asdict"):
        names = value._fields if hasattr(value, "_fields") else [field.name for field in fields(value)]
        parts = ((key, getattr(value, key)) for key in names)
        return {"class": f"{kind.__module__}:{kind.__qualname__}", "fields": converted(parts)}
    raise HashbenchError(
        f"{cls.__name__} cannot be saved: {name} is {one_line(repr(value)):.60}, expected arrays of numbers or texts, "
        "numbers, strings, lists, dicts with strings as keys, or dataclasses. Convert it in fitted_state and "
        "set_fitted_state."
    )


def _from_json(value: Any, arrays: Mapping[str, AnyArray], cls: type) -> Any:
    """Undo `_to_json`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        array = arrays[value["array"]]
        return np.char.decode(array, "utf-8").astype(value["text"]) if "text" in value else array
    if "class" in value:
        inner = {key: _from_json(part, arrays, cls) for key, part in value["fields"].items()}
        return _class_called(value["class"], cls)(**inner)
    ((kind, content),) = value.items()
    if kind == "dict":
        return {key: _from_json(part, arrays, cls) for key, part in content.items()}
    return {"list": list, "tuple": tuple}[kind](_from_json(part, arrays, cls) for part in content)


def _class_called(name: str, cls: type) -> Any:
    """Return a dataclass or named tuple of hashbench or the method's package; refuse any other, and import nothing."""
    module, _, qualname = name.partition(":")
    record = getattr(sys.modules.get(module), qualname, None)
    is_trusted = module.partition(".")[0] in ("hashbench", cls.__module__.partition(".")[0])
    is_named_tuple = isinstance(record, type) and issubclass(record, tuple) and record is not tuple
    if not is_trusted or not (is_named_tuple or (isinstance(record, type) and is_dataclass(record))):
        raise ValueError(f"it holds a {name!r}, which {cls.__name__} does not use")
    return record

"""Model files: what a method learned, in an .npz of plain arrays, which the array ``about`` describes in JSON.

Nothing in them is code: no pickles are written or read.
"""

import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import Damaged, HashbenchError, one_line
from hashbench.registry import get_method
from hashbench.store import hdf5
from hashbench.store.files import replacing
from hashbench.store.inputs import check_file, check_fits
from hashbench.store.provenance import Provenance

if TYPE_CHECKING:
    from hashbench.method import HashMethod

SUFFIX = ".model.npz"
_FORMAT = 2  # of the first release
_RESERVED = ("about", "content")  # arrays that no method may have
_PLAIN = (bool, int, float, str, type(None))


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
    about = {
        "format": _FORMAT,
        "hashbench": version("hashbench"),
        "made": made.attributes(),
        "parameters": method.get_params(deep=False),
    }
    arrays = to_arrays(method, about)
    arrays["content"] = np.array(_content_of(arrays))
    with replacing(path) as part, part.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)


def read_model(path: str | Path) -> Model:
    """Read a fitted method that ``hashbench encode --keep-model`` wrote.

    Parameters
    ----------
    path : str or Path
        A ``.model.npz`` file.

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
    arrays, made, writer = _read(path)
    cls = get_method(made.method)
    if cls.version != made.method_version:
        raise HashbenchError(
            f"{path} was fitted by version {made.method_version} of {made.method} (hashbench {writer}), "
            f"here is version {cls.version}, which may give other codes. Fit it again with --keep-model, or install "
            "that hashbench."
        )
    with _parsing(path):
        return Model(from_arrays(cls, arrays), made)


def read_origin(path: Path) -> tuple[Provenance, str]:
    """Read what made a model, and the version of hashbench that wrote it, without the method."""
    return _read(path)[1:]


def _read(path: Path) -> tuple[dict[str, AnyArray], Provenance, str]:
    """Read the arrays of a model, what made it and the version of hashbench that wrote it; refuse a damaged one."""
    check_file(path)
    kind = hdf5.read_attributes(path).get("hashbench")
    if kind is not None:
        raise Damaged(
            f"{path} is a {kind} file, expected a fitted method; give the {SUFFIX} of hashbench encode --keep-model."
        )
    with _parsing(path):
        with zipfile.ZipFile(path) as archive:
            check_fits(sum(member.file_size for member in archive.infolist()), str(path))
        with np.load(path, allow_pickle=False) as file:
            about = json.loads(str(file["about"]))
            model_format, writer = int(about["format"]), str(about["hashbench"])
            if model_format != _FORMAT:
                raise HashbenchError(
                    f"{path} is a model of format {model_format}, this hashbench reads {_FORMAT}. Upgrade hashbench, "
                    "or fit it again with --keep-model."
                )
            arrays = {name: file[name] for name in file.files}
        stored, content = str(arrays.pop("content")), _content_of(arrays)
        if stored != content:
            raise Damaged(
                f"{path} is a damaged model: its digest is {stored[:16]}, but its arrays have {content}. Fit it again "
                "with --keep-model."
            )
        return arrays, Provenance.read(about["made"]), writer


def _content_of(arrays: Mapping[str, AnyArray]) -> str:
    """Return 16 hex digits of a SHA-256 over all arrays, ``about`` too: their names, dtypes, shapes and values."""
    content = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        content.update(f"{name};{array.dtype.str};{array.shape};".encode() + np.ascontiguousarray(array).tobytes())
    return content.hexdigest()[:16]


def holds_model(path: Path, made: Provenance) -> bool:
    """Return whether a file exists and is a sound model of this provenance."""
    try:
        return path.exists() and read_model(path).made.gives_codes_of(made)
    except HashbenchError:
        return False


def to_arrays(method: "HashMethod", about: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Convert a fitted method to arrays by name; ``about`` and the structure of its state are the array ``about``."""
    arrays: dict[str, AnyArray] = {}
    state = {name: _to_json(value, name, arrays, type(method)) for name, value in sorted(method.fitted_state().items())}
    if reserved := sorted(arrays.keys() & _RESERVED):
        raise HashbenchError(
            f"{type(method).__name__} cannot be saved: {reserved[0]} is reserved; choose another name."
        )
    return {"about": np.array(json.dumps({**about, "state": state}, sort_keys=True)), **arrays}


def from_arrays(cls: "type[HashMethod]", arrays: Mapping[str, AnyArray]) -> "HashMethod":
    """Rebuild a fitted method from what `to_arrays` returned."""
    about = json.loads(str(arrays["about"]))
    method = cls(**about["parameters"])
    method.set_fitted_state({name: _from_json(value, arrays, cls) for name, value in about["state"].items()})
    return method


def _to_json(value: Any, name: str, arrays: dict[str, AnyArray], cls: type) -> Any:
    """Convert a value called ``name`` to JSON; add its arrays to ``arrays`` under their names."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, np.ndarray):
        is_text = value.dtype == object and all(isinstance(item, str) for item in value.flat)
        if value.dtype.hasobject and not is_text:
            raise HashbenchError(f"{cls.__name__} cannot be saved: {name} is an array of objects, expected numbers.")
        arrays[name] = value.astype(str) if is_text else value
        return {"array": name, "text": True} if is_text else {"array": name}
    parts = _parts(value)
    if parts is None:
        raise HashbenchError(
            f"{cls.__name__} cannot be saved: {name} is a {type(value).__name__}, expected arrays, numbers, strings, "
            "lists, dicts or dataclasses. Convert it in fitted_state and set_fitted_state."
        )
    kind, content = parts
    named = content.items() if isinstance(content, dict) else enumerate(content)
    if kind == "dict" and (other_keys := [key for key in content if not isinstance(key, str)]):
        raise HashbenchError(
            f"{cls.__name__} cannot be saved: {name} is a dict with the key {other_keys[0]!r}, expected strings as "
            "keys. Convert it in fitted_state and set_fitted_state."
        )
    inner = {str(key): _to_json(part, f"{name}.{key}", arrays, cls) for key, part in named}
    if ":" in kind:
        return {"class": kind, "fields": inner}
    return {kind: inner if kind == "dict" else list(inner.values())}


def _parts(value: Any) -> tuple[str, Any] | None:
    """Return the kind of a value that has parts, and the parts; None for any other."""
    cls = type(value)
    name = f"{cls.__module__}:{cls.__qualname__}"
    if is_dataclass(value):
        return name, {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return name, value._asdict()
    return (cls.__name__, value) if cls in (list, tuple, dict) else None


def _from_json(value: Any, arrays: Mapping[str, AnyArray], cls: type) -> Any:
    """Undo `_to_json`."""
    if not isinstance(value, dict):
        return value
    if "array" in value:
        array = arrays[value["array"]]
        return array.astype(object) if value.get("text") else array
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


@contextmanager
def _parsing(path: Path) -> Iterator[None]:
    """Turn any exception on a damaged file into `Damaged`."""
    try:
        yield
    except HashbenchError:
        raise
    except Exception as error:  # readers meet damaged files with errors of any kind
        raise Damaged(
            f"{path} is not a model of hashbench, or is damaged ({one_line(error) or type(error).__name__}). Fit it "
            "again with --keep-model."
        ) from error

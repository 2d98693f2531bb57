"""Model files: what a method learned, as plain arrays, whose structure the record of the file describes.

Nothing in them is code: no pickles are written or read.
"""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError, TooLarge, one_line
from hashbench.registry import get_method
from hashbench.store import artifact
from hashbench.store.artifact import Artifact
from hashbench.store.provenance import CODES_VERSION, Provenance, method_digests

if TYPE_CHECKING:
    from hashbench.method import HashMethod

SUFFIX = ".model.h5"
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
    state, arrays = to_arrays(method)
    record = {"written_by": version("hashbench"), "made": made.attributes()}
    record |= {"parameters": method.get_params(deep=False), "state": state}
    artifact.write(path, "model", record, arrays)


def read_model(path: str | Path) -> Model:
    """Read a fitted method that ``hashbench encode --keep-model`` wrote.

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
    if code != (cls.version, CODES_VERSION, method_digests(made.method, cls)):
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

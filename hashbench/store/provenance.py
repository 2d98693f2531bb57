"""What made a file: one value from which codes, cached scores and rows derive their keys.

Keys rest on declared versions, never on the source of hashbench.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError

# Raise one whenever the same input may give other numbers than before; tests/test_guard.py notices when they move.
DATASET_VERSION = 1  # of what is prepared: features, splits, levels
CODES_VERSION = 1  # of what methods share: inputs, seeds, the training loop; each method has its own ``version``, too
SCORES_VERSION = 1  # of all metrics, with their shuffle deviations


@dataclass(frozen=True)
class Provenance:
    """What made codes: the method with its settings, the dataset and the libraries."""

    dataset: str
    features: str  # name of the dataset's features
    method: str
    params: str  # but for ``n_bits`` and ``random_state``, as canonical JSON
    n_bits: int
    seed: int
    dataset_fingerprint: str  # of its content
    method_version: int
    libraries: str = "{}"  # versions of the packages that take part, by name, as canonical JSON; `digests` of a plug-in
    codes_version: int = CODES_VERSION

    @classmethod
    def read(cls, attributes: Mapping[str, Any]) -> Self:
        """Read it from the attributes of a file, at least its fields; ValueError if one is damaged."""
        fields: dict[str, Any] = {key: kind(attributes[key]) for key, kind in _KINDS.items()}
        for key in ("params", "libraries"):
            if not isinstance(json.loads(fields[key]), dict):
                raise ValueError(f"{key} {fields[key]!r} are not a JSON object")
        for key in ("dataset", "method"):  # they name files
            check_name(fields[key], f"the name of the {key}")
        return cls(**fields)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that record it in a file."""
        return asdict(self)

    def gives_codes_of(self, other: Self) -> bool:
        """Return whether two provenances are of the same codes: of libraries their major versions count."""
        ours, theirs = (
            replace(made, libraries=canonical_json({k: _major(v) for k, v in json.loads(made.libraries).items()}))
            for made in (self, other)
        )
        return ours == theirs

    @property
    def job(self) -> tuple[Any, ...]:
        """The key of its rows without the metric, the same for any versions and content of the dataset."""
        return self.dataset, self.features, self.method, self.params, self.n_bits, self.seed

    @property
    def row(self) -> dict[str, Any]:
        """The fields of its rows that do not depend on the metric."""
        return {key: value for key, value in asdict(self).items() if key not in ("libraries", "codes_version")}

    def of_scores(self, content: str) -> dict[str, Any]:
        """Return the attributes of the scores of codes with this content."""
        return {
            "content": content,
            "dataset_fingerprint": self.dataset_fingerprint,
            "method_version": self.method_version,
            "scores_version": SCORES_VERSION,
        }


_KINDS = {field.name: int if field.type is int else str for field in fields(Provenance)}


def _major(version: str) -> str:
    """Return the part of a library's version that decides bits: the first number, or two if that is 0."""
    first, dot, rest = version.partition(".")
    return f"0.{rest.partition('.')[0]}" if first == "0" and dot else first


@cache
def digests(modules: tuple[str, ...]) -> dict[str, str]:
    """Digest the files of plug-ins, by package: all of the imported modules' own packages, none of hashbench.

    So nobody sees codes of a plug-in that was edited since.
    """
    found = {}
    for name in sorted({module.partition(".")[0] for module in modules} - {"hashbench"}):
        top = sys.modules[name]
        folders = [Path(folder) for folder in getattr(top, "__path__", [])]
        files = [(path.relative_to(folder), path) for folder in folders for path in folder.rglob("*.py")]
        if not folders and top.__file__ is not None:
            files = [(Path(name), Path(top.__file__))]
        content = sha256()
        for place, path in sorted(files):
            content.update(f"{place.as_posix()}\0".encode() + path.read_bytes() + b"\0")
        found[name] = f"sha256:{content.hexdigest()[:16]}"
    return found


@cache
def versions(libraries: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of installed packages, by name."""
    try:
        return {name: version(name) for name in libraries}
    except PackageNotFoundError as error:
        raise HashbenchError(f"package {error.name} is needed here, but is not installed: pip install it.") from error


@cache
def settings_name(params: str) -> str:
    """Return a short name for parameters in canonical JSON: the first 8 hex digits of its SHA-256."""
    return sha256(params.encode()).hexdigest()[:8]


def digest(value: Any) -> str:
    """Return 16 hex digits of the SHA-256 of a JSON value."""
    return sha256(canonical_json(value).encode()).hexdigest()[:16]

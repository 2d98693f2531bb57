"""What made a file: one value from which codes, cached scores and rows derive their keys."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Self

from hashbench._source_code import code_digest, file_of, modules_behind
from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError

# Imports of methods, scorers and adapters that cannot change a number: messages, names, files read and written whole.
_NOT_DECIDING = (
    "hashbench._source_code",
    "hashbench._typing",
    "hashbench.errors",
    "hashbench.registry",
    "hashbench.sources.download",
    "hashbench.store",
)
SCORER = ("hashbench.scoring.evaluator", "hashbench.dataset")  # the latter makes affinities

# Raise one whenever the same input may give other numbers than before; tests/test_guard.py notices when they move.
DATASET_VERSION = 1  # of what is prepared: features, splits, levels
CODES_VERSION = 1  # of what all methods share: inputs, seeds, the training loop; each method has its own ``version``
SCORES_VERSION = 1  # of all metrics, with their shuffle deviations


@dataclass(frozen=True)
class Provenance:
    """What made codes: the method with its settings, the dataset, the libraries and the code."""

    dataset: str
    features: str  # name of the dataset's features
    method: str
    params: str  # but for ``n_bits`` and ``random_state``, as canonical JSON
    n_bits: int
    seed: int
    dataset_fingerprint: str  # of its content
    method_version: int
    libraries: str = "{}"  # versions of the packages that take part, by name, as canonical JSON
    code: str = ""  # digest of the code that decided the codes

    @classmethod
    def read(cls, attributes: Mapping[str, Any]) -> Self:
        """Read it from the attributes of a file, at least `REQUIRED`; ValueError if one is damaged."""
        fields: dict[str, Any] = {key: kind(attributes[key]) for key, kind in _KINDS.items() if key in attributes}
        for key in ("params", "libraries"):
            if not isinstance(json.loads(fields[key]), dict):
                raise ValueError(f"{key} {fields[key]!r} are not a JSON object")
        for key in ("dataset", "method"):  # they name files
            check_name(fields[key], f"the name of the {key}")
        return cls(**fields)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that record it in a file."""
        return asdict(self)

    @property
    def job(self) -> tuple[Any, ...]:
        """The key of its rows without the metric, the same for any code, libraries and content of the dataset."""
        return self.dataset, self.features, self.method, self.params, self.n_bits, self.seed

    @property
    def row(self) -> dict[str, Any]:
        """The fields of its rows that do not depend on the metric."""
        return {key: value for key, value in asdict(self).items() if key not in ("libraries", "code")}

    def of_scores(self, content: str) -> dict[str, Any]:
        """Return the attributes of the scores of codes with this content, made by the scorer as it is."""
        return {
            "content": content,
            "dataset_fingerprint": self.dataset_fingerprint,
            "method_version": self.method_version,
            "code": code_that_decides(*SCORER),
        }


_KINDS = {field.name: int if field.type is int else str for field in fields(Provenance)}
REQUIRED = tuple(key for key in _KINDS if key != "code")  # attributes of a file; those of older versions lack ``code``


@cache
def code_that_decides(*modules: str, leaves_out: tuple[str, ...] = ()) -> str:
    """Return a digest of the code of a method, scorer or adapter: its modules and imports that can change a number."""
    return code_digest(modules, (*_NOT_DECIDING, *leaves_out))


def files_that_decide(modules: Iterable[str], leaves_out: Iterable[str] = ()) -> list[Path]:
    """Return the files whose code `code_that_decides` digests."""
    paths = (file_of(module) for module in modules_behind(modules, (*_NOT_DECIDING, *leaves_out)))
    return [path.resolve() for path in paths if path is not None]


@cache
def versions(libraries: tuple[str, ...]) -> str:
    """Return the versions of installed packages, by name, as canonical JSON."""
    try:
        return canonical_json({name: version(name) for name in libraries})
    except PackageNotFoundError as error:
        raise HashbenchError(f"package {error.name} is needed here, but is not installed: pip install it.") from error


@cache
def settings_name(params: str) -> str:
    """Return a short name for parameters in canonical JSON: the first 8 hex digits of its SHA-256."""
    return sha256(params.encode()).hexdigest()[:8]


def digest(value: Any) -> str:
    """Return 16 hex digits of the SHA-256 of a JSON value."""
    return sha256(canonical_json(value).encode()).hexdigest()[:16]

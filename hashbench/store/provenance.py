"""What made a file: one value from which codes, kept scores and rows derive their keys."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Self

from hashbench._source_code import code_digest, file_of, modules_behind
from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError

# What methods, scorers and adapters import that cannot change a number: words, names, files read and written whole.
_WITHOUT_A_SAY = (
    "hashbench._source_code",
    "hashbench._typing",
    "hashbench.errors",
    "hashbench.registry",
    "hashbench.sources.download",
    "hashbench.store",
)


SCORER = ("hashbench.scoring.evaluator", "hashbench.dataset")  # the latter makes affinities


@dataclass(frozen=True)
class Provenance:
    """Who made codes, from what, and with what.

    Parameters
    ----------
    dataset, features : str
        Names of the dataset and of its features.
    method : str
        The method's name.
    params : str
        Its parameters but for ``n_bits`` and ``random_state``, as canonical JSON.
    n_bits, seed : int
        Code length and random state.
    dataset_fingerprint : str
        Content of the dataset.
    method_version : int
        Version of the method.
    libraries : str
        Versions of the packages that take part, by name, as canonical JSON.
    code : str
        Digest of the code that decided the codes.
    """

    dataset: str
    features: str
    method: str
    params: str
    n_bits: int
    seed: int
    dataset_fingerprint: str
    method_version: int
    libraries: str = "{}"
    code: str = ""

    REQUIRED: ClassVar = (
        *("dataset", "features", "method", "params", "n_bits", "seed"),
        *("dataset_fingerprint", "method_version", "libraries"),
    )

    @classmethod
    def read(cls, attributes: Mapping[str, Any]) -> Self:
        """Take it out of the attributes of a file, which hold what is ``REQUIRED``; ValueError if one is damaged."""
        found: dict[str, Any] = {key: kind(attributes[key]) for key, kind in _KINDS.items() if key in attributes}
        params, versions_then = (json.loads(found[key]) for key in ("params", "libraries"))
        if not isinstance(params, dict) or not isinstance(versions_then, dict):
            raise ValueError(f"params {found['params']!r} or libraries {found['libraries']!r} are no JSON object")
        for key in ("dataset", "method"):  # they name files
            check_name(found[key], f"the name of the {key}")
        return cls(**found)

    def attributes(self) -> dict[str, Any]:
        """Give the attributes by which a file tells it."""
        return asdict(self)

    @property
    def job(self) -> tuple[Any, ...]:
        """The key of its rows without the metric, the same for any code, libraries and content of the dataset."""
        return self.dataset, self.features, self.method, self.params, self.n_bits, self.seed

    @property
    def row(self) -> dict[str, Any]:
        """The fields of its rows that do not depend on the metric."""
        keys = ("dataset", "features", "method", "params", "n_bits", "seed", "dataset_fingerprint", "method_version")
        return {key: getattr(self, key) for key in keys}

    def of_scores(self, content: str) -> dict[str, Any]:
        """Give the attributes of the scores of codes with this content, made by the scorer as it is."""
        return {
            "content": content,
            "dataset_fingerprint": self.dataset_fingerprint,
            "method_version": self.method_version,
            "code": code_that_decides(*SCORER),
        }


_KINDS = {key: int if key in ("n_bits", "seed", "method_version") else str for key in (*Provenance.REQUIRED, "code")}


@cache
def code_that_decides(*modules: str, leaves_out: tuple[str, ...] = ()) -> str:
    """Digest the code of a method, scorer or adapter: its modules and all they import that can change a number."""
    return code_digest(modules, (*_WITHOUT_A_SAY, *leaves_out))


def files_that_decide(modules: Iterable[str], leaves_out: Iterable[str] = ()) -> list[Path]:
    """Give the files whose code `code_that_decides` digests."""
    found = (file_of(module) for module in modules_behind(modules, (*_WITHOUT_A_SAY, *leaves_out)))
    return [path.resolve() for path in found if path is not None]


@cache
def versions(libraries: tuple[str, ...]) -> str:
    """Give the versions of installed packages, by name, as canonical JSON."""
    try:
        return canonical_json({name: version(name) for name in libraries})
    except PackageNotFoundError as error:
        raise HashbenchError(f"package {error.name} is needed here, and not installed: pip install it.") from error


@cache
def settings_name(params: str) -> str:
    """Name parameters, given as canonical JSON, in few letters: the first 8 hex digits of its SHA-256."""
    return sha256(params.encode()).hexdigest()[:8]


def digest(value: Any) -> str:
    """Shorten a value of JSON's types to 16 hex digits."""
    return sha256(canonical_json(value).encode()).hexdigest()[:16]

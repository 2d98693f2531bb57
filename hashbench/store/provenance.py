"""What made a file: one value from which codes, cached scores and rows derive their keys.

Keys rest on declared versions, never on the source of hashbench.
"""

import ast
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from hashbench import registry
from hashbench._validation import check_name
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError

if TYPE_CHECKING:
    from hashbench.method import HashMethod

# Raise one whenever the same input may give other numbers than before; tests/test_guard.py notices when they move.
DATASET_VERSION = 2  # of what is prepared: features, splits, levels
CODES_VERSION = 2  # of what methods share: inputs, seeds, the training loop; each method has its own ``version``, too
SCORES_VERSION = 2  # of all metrics, with their shuffle deviations
_LARGE = 1 << 25  # bytes


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
    def plugin(self) -> dict[str, str]:
        """The `digests` of a plug-in; of hashbench's own methods none."""
        return {name: text for name, text in json.loads(self.libraries).items() if text.startswith("sha256:")}

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


def digests(kind: str, name: str, modules: Iterable[str]) -> dict[str, str]:
    """Digest the files of a plug-in, by top-level module or package, so that nobody sees codes of one edited since.

    They are those of ``modules`` and of what these import from their packages and from what is installed with these,
    and all files beside them that are no Python, such as weights. None are of hashbench.
    """
    modules = [*modules, *registry.entry_modules(kind, name)]
    tops = {module.partition(".")[0] for module in modules} - {"hashbench"}
    if tops:
        tops |= set(registry.installed_with(kind, name))
    files = {top: sorted(_files_of(top)) for top in tops}
    imported = _imported_by(modules, files)
    found = {}
    for top in sorted(tops):
        own = [(place, path) for place, path in files[top] if path.suffix != ".py" or path in imported]
        if files[top] and not any(path in imported or path.suffix != ".py" for _, path in own):
            continue  # of the same distribution, but not imported
        content = sha256()
        for place, path in own:
            size = path.stat().st_size
            held = path.read_bytes() if size < _LARGE else b""  # such as weights, which are told apart by their size
            content.update(f"{place}\0{size}\0".encode() + held)
        found[top] = f"sha256:{content.hexdigest()[:16]}"
    return found


def method_digests(name: str, cls: "type[HashMethod]") -> dict[str, str]:
    """Return the `digests` of a method, those of the modules it names as its own included."""
    return digests("method", name, (*registry.modules_of(cls), *cls.modules))


_HIDING = {  # words in code that may import what its source does not say
    *("importlib", "imp", "runpy", "pkgutil", "zipimport"),
    *("__import__", "import_module", "exec", "eval", "sys.path", "__path__"),
}


def _imported_by(modules: Iterable[str], files: Mapping[str, Sequence[tuple[str, Path]]]) -> set[Path]:
    """Return the Python files, among those of each top-level name, of modules and of what these import, one by another.

    All are taken where that cannot be read from the source.
    """
    homes: dict[str, Path] = {}
    for top, own in files.items():
        for place, path in own:
            if path.suffix == ".py":
                inner = [] if place == top else place.removesuffix(".py").removesuffix("__init__").strip("/").split("/")
                homes[".".join([top, *filter(None, inner)])] = path
    reached, waiting = set[str](), list(modules)
    while waiting:
        parts = waiting.pop().split(".")
        for name in (".".join(parts[:n]) for n in range(1, len(parts) + 1)):  # packages run before what is in them
            if name in reached or name not in homes:
                continue
            reached.add(name)
            package = name if homes[name].name == "__init__.py" else name.rpartition(".")[0]
            found = _imports_of(homes[name].read_bytes(), package)
            if found is None:
                return {*homes.values()}
            stars = tuple(module.removesuffix("*") for module in found if module.endswith(".*"))
            waiting += [*found, *(home for home in homes if stars and home.startswith(stars))]
    return {homes[name] for name in reached}


@lru_cache(maxsize=1 << 12)  # a job asks for its method's digest several times
def _imports_of(source: bytes, package: str) -> tuple[str, ...] | None:
    """Return what a module of a package may import, ``.*`` for all of one; None if its source does not say."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return None
    if any(not _HIDING.isdisjoint(_words_of(node)) for node in nodes):
        return None
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            home = ".".join(filter(None, [base, node.module]))
            found += [home, *(f"{home}.{alias.name}" for alias in node.names)]
    return tuple(found)


def _words_of(node: ast.AST) -> Iterable[str]:
    """Return the names in a node by which other modules can be imported."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        is_path = isinstance(node.value, ast.Name) and (node.value.id, node.attr) == ("sys", "path")
        return [node.attr, *["sys.path"] * is_path]
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        imported = [f"{node.module}.{alias.name}" for alias in node.names]
        return [(node.module or "").partition(".")[0], *imported]
    return []


def _files_of(top: str) -> list[tuple[str, Path]]:
    """List the files of a top-level module or package, with their names in it."""
    spec = getattr(sys.modules.get(top), "__spec__", None) or find_spec(top)
    archive = getattr(getattr(spec, "loader", None), "archive", None)
    if archive is not None:
        return [(top, Path(archive))]
    if spec is None or not spec.submodule_search_locations:
        return [(top, Path(spec.origin))] if spec is not None and spec.origin and Path(spec.origin).is_file() else []
    files = []
    for folder in spec.submodule_search_locations:
        for home, folders, names in os.walk(folder):
            folders[:] = [each for each in folders if each[0] != "." and each != "__pycache__"]
            paths = [Path(home, each) for each in names if each[0] != "."]
            files += [(path.relative_to(folder).as_posix(), path) for path in paths if path.is_file()]
    return files


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

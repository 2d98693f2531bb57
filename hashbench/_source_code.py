"""Imports and digests of the source code of modules, read without importing them.

Importing a method imports scikit-learn, which takes a second; reading its source is enough to list methods, describe
them and skip finished jobs.
"""

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from hashbench.errors import HashbenchError, one_line

PUBLIC: dict[str, tuple[str, ...]] = sys.modules["hashbench"]._NAMES  # by module; an import would count as one of all


@cache
def file_of(module: str) -> Path | None:
    """Find the source file of a module without importing its packages; None if there is none."""
    package, _, stem = module.rpartition(".")
    for folder in _folders_of(package) if package else []:
        for path in (folder / f"{stem}.py", folder / stem / "__init__.py"):
            if path.is_file():
                return path
    if package.count("."):
        return None
    try:
        spec = _spec_below(package, module) if package else find_spec(module)
    except (ImportError, ValueError):
        return None
    path = Path(spec.origin or "") if spec is not None else Path()
    return path if path.suffix == ".py" and path.is_file() else None


def _spec_below(package: str, module: str) -> ModuleSpec | None:
    """Find a module below a top-level package, also where setuptools maps folders, without importing the package."""
    parent = find_spec(package)
    if parent is None or parent.submodule_search_locations is None:
        return None
    specs = (finder.find_spec(module, parent.submodule_search_locations) for finder in sys.meta_path)
    return next(filter(None, specs), None)


def _folders_of(package: str) -> list[Path]:
    if package in sys.modules:
        return [Path(folder) for folder in getattr(sys.modules[package], "__path__", [])]
    path = file_of(package)
    if path is not None:
        return [path.parent] if path.name == "__init__.py" else []
    parent, _, stem = package.rpartition(".")
    if parent:
        return [folder / stem for folder in _folders_of(parent) if (folder / stem).is_dir()]
    with suppress(ImportError, ValueError):
        spec = find_spec(package)  # has folders for a package without __init__.py
        return [Path(folder) for folder in (spec.submodule_search_locations or [] if spec is not None else [])]
    return []


@cache
def tree_of(module: str) -> ast.Module:
    """Parse the source of a module; an empty tree if it has none."""
    path = file_of(module)
    return ast.parse(path.read_bytes(), str(path)) if path is not None else ast.Module([], [])


def _are_together(module: str, other: str) -> bool:
    """Check whether two top-level modules or packages share a folder; in site-packages, also a distribution."""
    places = [
        {path.parent for path in (_folders_of(name) or filter(None, [file_of(name)]))} for name in (module, other)
    ]
    shared = places[0] & places[1]
    is_installed = any(folder.name in ("site-packages", "dist-packages") for folder in shared)
    return bool(shared) and (not is_installed or other in _installed_with(module))


@cache
def _installed_with(module: str) -> frozenset[str]:
    """Return the top-level modules and packages of the same distribution."""
    from importlib.metadata import distributions, packages_distributions

    for distribution in distributions():
        names = (distribution.read_text("top_level.txt") or "").split()
        if module in names:
            return frozenset(names)
    owners = packages_distributions()  # takes a second, as it reads all lists of files
    return frozenset(name for name in owners if {*owners[name]} & {*owners.get(module, ())})


def code_digest(modules: Iterable[str], without: Iterable[str] = ()) -> str:
    """Compute a digest of the code of `modules_behind`, without docstrings, comments and imports for type checkers."""
    digest = hashlib.sha256()
    for module in modules_behind(modules, without):
        digest.update(f"{module}\0{_code_of(module)}\0".encode())
    return digest.hexdigest()[:16]


def modules_behind(modules: Iterable[str], without: Iterable[str] = ()) -> list[str]:
    """Return modules and all they import of hashbench and of their own packages, sorted.

    Modules and packages in ``without`` are left out, with what only they import.
    """
    excluded = tuple(without)
    seen: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        is_excluded = any(module == name or module.startswith(f"{name}.") for name in excluded)
        if module in seen or is_excluded or file_of(module) is None:
            continue
        seen.add(module)
        try:
            todo += imports_of(module)
        except (SyntaxError, ValueError) as error:
            raise HashbenchError(f"{file_of(module)} cannot be read as Python: {one_line(error)}. Fix it.") from error
    return sorted(seen)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules that a module imports, anywhere in it, of hashbench, its own package or one beside it.

    Beside it are packages in the same folder or, in site-packages, of the same distribution. A name imported from
    ``hashbench`` itself stands for the module that defines it.
    """
    own = module.partition(".")[0]
    path = file_of(module)
    package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    imported: set[str] = set()
    for node in _running(tree_of(module)):
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = resolve_name(f"{'.' * node.level}{node.module or ''}", package) if node.level else str(node.module)
            imported.update({parent, *(f"{parent}.{alias.name}" for alias in node.names)})
    if "hashbench" in imported and module != "hashbench":
        named = {name.removeprefix("hashbench.") for name in imported if name.startswith("hashbench.")}
        imported |= {home for home, names in PUBLIC.items() if named & {*names} or not named}
    homes = {"hashbench", own}
    if own != "hashbench":
        homes |= {top for top in {name.partition(".")[0] for name in imported} if _are_together(own, top)}
    followed = {name for name in imported - {"hashbench"} if name.partition(".")[0] in homes and file_of(name)}
    packages = {".".join(name.split(".")[:end]) for name in followed for end in range(2, name.count(".") + 1)}
    return frozenset(followed | packages)


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """Iterate over the statements of a module, at any depth, except those under ``if TYPE_CHECKING``."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for part in ("orelse",) if is_for_types else ("body", "orelse", "finalbody", "handlers", "cases"):
            todo += getattr(node, part, [])


@cache
def _code_of(module: str) -> str:
    """Write the code of a module without docstrings, the same in all versions of Python."""
    return _written(tree_of(module))


def _written(node: Any) -> str:
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and _is_text(node.body[0]):
        parts["body"] = node.body[1:]
    fields = [f"{name}={_written(part)}" for name, part in parts.items() if part is not None and part != []]
    return f"{type(node).__name__}({','.join(fields)})"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def docstrings_of(module: str) -> list[str]:
    """Return the docstrings of a module and of its classes, empty where there is none."""
    tree = tree_of(module)
    holders: list[ast.Module | ast.ClassDef] = [tree]
    holders += [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [ast.get_docstring(holder) or "" for holder in holders]

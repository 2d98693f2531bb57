"""What the source of a module tells without importing it: which modules it imports, and what its classes say.

Importing a method takes scikit-learn along, which takes more than a second; to list and describe methods, and to find
finished work again, reading is enough.
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

from hashbench import _NAMES
from hashbench.errors import HashbenchError, one_line


@cache
def file_of(module: str) -> Path | None:
    """Find the source file of a module, without importing the packages it is in; None if it has none or is none."""
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
    """Find what is mapped into a package at the top, as methods are into hashbench; `find_spec` would import that."""
    above = find_spec(package)
    folders = above.submodule_search_locations if above is not None else None
    if folders is None:
        return None
    return next(filter(None, (finder.find_spec(module, folders) for finder in sys.meta_path)), None)


def _folders_of(package: str) -> list[Path]:
    if package in sys.modules:
        return [Path(folder) for folder in getattr(sys.modules[package], "__path__", [])]
    path = file_of(package)
    if path is not None:
        return [path.parent] if path.name == "__init__.py" else []
    above, _, stem = package.rpartition(".")
    if above:
        return [folder / stem for folder in _folders_of(above) if (folder / stem).is_dir()]
    with suppress(ImportError, ValueError):
        spec = find_spec(package)  # of a package without __init__.py it has folders
        return [Path(folder) for folder in (spec.submodule_search_locations or [] if spec is not None else [])]
    return []


@cache
def tree_of(module: str) -> ast.Module:
    """Parse the source of a module; an empty tree if it has none."""
    path = file_of(module)
    return ast.parse(path.read_bytes(), str(path)) if path is not None else ast.Module([], [])


def _are_together(module: str, other: str) -> bool:
    """Tell whether two modules or packages at the top lie in one folder, or among others', are of one distribution."""
    places = [{path.parent for path in (_folders_of(one) or filter(None, [file_of(one)]))} for one in (module, other)]
    shared = places[0] & places[1]
    is_among_others = any(folder.name in ("site-packages", "dist-packages") for folder in shared)
    return bool(shared) and (not is_among_others or other in _installed_with(module))


@cache
def _installed_with(module: str) -> frozenset[str]:
    """Name the modules and packages at the top that are of the same distribution."""
    from importlib.metadata import distributions, packages_distributions

    for one in distributions():
        names = (one.read_text("top_level.txt") or "").split()
        if module in names:
            return frozenset(names)
    owners = packages_distributions()  # reads all lists of files, in a second
    return frozenset(name for name in owners if {*owners[name]} & {*owners.get(module, ())})


def code_digest(modules: Iterable[str], without: Iterable[str] = ()) -> str:
    """Digest the code of modules and of all they import, as `modules_behind` gives them.

    Docstrings and comments do not count, nor what only type checkers read.
    """
    digest = hashlib.sha256()
    for module in modules_behind(modules, without):
        digest.update(f"{module}\0{_code_of(module)}\0".encode())
    return digest.hexdigest()[:16]


def modules_behind(modules: Iterable[str], without: Iterable[str] = ()) -> list[str]:
    """Name modules and all they import, as far as it is hashbench's or lies beside theirs, sorted.

    ``without`` names modules and packages that are left out, with what they alone import.
    """
    left_out = tuple(without)
    seen: set[str] = set()
    todo = list(modules)
    while todo:
        module = todo.pop()
        is_out = any(module == one or module.startswith(f"{one}.") for one in left_out)
        if module in seen or is_out or file_of(module) is None:
            continue
        seen.add(module)
        try:
            todo += imports_of(module)
        except (SyntaxError, ValueError) as error:
            raise HashbenchError(f"{file_of(module)} cannot be read as Python: {one_line(error)}. Mend it.") from error
    return sorted(seen)


@cache
def imports_of(module: str) -> frozenset[str]:
    """Name the modules that a module imports, anywhere in it, of hashbench, its own package or one beside that.

    Beside it is what lies in the same folder, and if that is where Python installs, what is of the same distribution. A
    name imported from ``hashbench`` itself stands for the module it comes from.
    """
    own = module.partition(".")[0]
    path = file_of(module)
    package = module if path is not None and path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    for node in _running(tree_of(module)):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parent = resolve_name(f"{'.' * node.level}{node.module or ''}", package) if node.level else str(node.module)
            found.update({parent, *(f"{parent}.{alias.name}" for alias in node.names)})
    if "hashbench" in found and module != "hashbench":
        named = {name.removeprefix("hashbench.") for name in found if name.startswith("hashbench.")}
        found |= {home for home, names in _NAMES.items() if named & {*names} or not named}
    homes = {"hashbench", own}
    if own != "hashbench":
        homes |= {top for top in {name.partition(".")[0] for name in found} if _are_together(own, top)}
    there = {name for name in found - {"hashbench"} if name.partition(".")[0] in homes and file_of(name) is not None}
    packages = {".".join(name.split(".")[:end]) for name in there for end in range(2, name.count(".") + 1)}
    return frozenset(there | packages)


def _running(tree: ast.Module) -> Iterator[ast.AST]:
    """Go through the statements of a module, at any depth, without those that stand under ``if TYPE_CHECKING``."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for part in ("orelse",) if is_for_types else ("body", "orelse", "finalbody", "handlers", "cases"):
            todo += getattr(node, part, [])


@cache
def _code_of(module: str) -> str:
    """Write down the code of a module without its docstrings; fields that newer versions of Python add are empty."""
    return _written(tree_of(module))


def _written(node: Any) -> str:
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = {name: getattr(node, name, None) for name in node._fields}
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body and _is_text(node.body[0]):
        parts["body"] = node.body[1:]
    told = [f"{name}={_written(part)}" for name, part in parts.items() if part is not None and part != []]
    return f"{type(node).__name__}({','.join(told)})"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def docstrings_of(module: str) -> list[str]:
    """Give the docstrings of a module and of its classes, as far as they have one."""
    tree = tree_of(module)
    holders: list[ast.Module | ast.ClassDef] = [tree]
    holders += [node for node in tree.body if isinstance(node, ast.ClassDef)]
    return [ast.get_docstring(holder) or "" for holder in holders]

"""Names that a shell completes, read from source code, since importing them would take a second per keystroke."""

import ast
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

from hashbench import _source_code


def methods() -> list[str]:
    """List all methods."""
    from hashbench.registry import method_names

    return method_names()


def datasets() -> list[str]:
    """List the known datasets, and those prepared from the user's own data."""
    from importlib.metadata import entry_points

    from hashbench.store.files import data_dir

    known = [value for tree in _trees("hashbench.datasets") for value in _attributes(tree, "name")]
    known += [point.name for point in entry_points(group="hashbench.datasets")]
    own = [path.stem for path in (data_dir() / "datasets").glob("*.h5")]
    return known + [name for name in own if not name.startswith(tuple(f"{prefix}-" for prefix in known))]


def features() -> list[str]:
    """List the kinds of features that datasets offer."""
    kinds = [value for tree in _trees("hashbench.datasets") for value in _attributes(tree, "features")]
    extraction, backbones = (f"hashbench.sources.features.{name}" for name in ("extraction", "backbones"))
    return kinds + _texts_of(extraction, "KINDS") + _texts_of(backbones, "BACKBONES")


def metrics() -> list[str]:
    """List metrics, with an example of a cutoff; those with a colon are left out, since a shell splits words there."""
    nodes = (node for tree in _trees("hashbench.scoring.metrics") for node in ast.walk(tree))
    patterns = [text for node in nodes if _is_call_of(node, "register") for text in _texts(node.args[0])]
    return [name.replace("@k", "@100").replace("@rN", "@r2") for name in patterns if ":" not in name]


def scripts() -> list[str]:
    """List the scoring scripts that `explain` emulates, and those that sort by NumPy as they run on this machine."""
    tree = _source_code.tree_of("hashbench.reports.explain.evaluators")
    names = []
    for node in ast.walk(tree):
        if _is_call_of(node, "Evaluator"):
            orders = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
            endings = ("", "-here") if orders & {"numpy_scalar", "numpy_partition"} else ("",)
            names += [f"{name}{ending}" for name in _texts(node.args[0]) for ending in endings]
    return names


def figures() -> list[str]:
    """List the figures."""
    return _texts_of("hashbench.reports.plots", "FIGURES")


def tables() -> list[str]:
    """List the tables."""
    return _texts_of("hashbench.reports.tables.layout", "LAYOUTS")


NAMES: dict[str, Callable[[], list[str]]] = {
    function.__name__: function for function in (methods, datasets, features, metrics, scripts, figures, tables)
}


def _trees(package: str) -> Iterator[ast.Module]:
    home = _source_code.file_of(package)
    for path in sorted(home.parent.glob("*.py")) if home else []:
        yield _source_code.tree_of(package if path == home else f"{package}.{path.stem}")


def _is_call_of(node: ast.AST, start: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(start)


def _attributes(tree: ast.Module, name: str) -> Iterator[str]:
    """Yield the strings in an attribute of a module's public classes."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _assigned(node.body, name)


def _texts_of(module: str, name: str) -> list[str]:
    """Return the strings in a module's constant; the keys of a mapping."""
    return list(_assigned(_source_code.tree_of(module).body, name))


def _assigned(body: list[ast.stmt], name: str) -> Iterator[str]:
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            yield from _texts(getattr(node, "value", None))


def _texts(node: Any) -> Iterator[str]:
    """Yield a constant string, those of a list or tuple, or the keys of a mapping."""
    parts = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [node])
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value

"""Plugins by name: the only module that imports methods, datasets and metrics, and only when they are used.

A built-in method has the name of its file. A file of datasets may hold several: they have the names in the lines
``name = "NAME"`` of its classes, which are read as text, so that only the file of a dataset in use is imported.
"""

import inspect
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from hashbench._plugins import same_folder
from hashbench.errors import HashbenchError, needing, one_line, unknown_name
from hashbench.unseen import split_name

if TYPE_CHECKING:
    from hashbench.adapter import DatasetAdapter, Options
    from hashbench.method import HashMethod


_LIBRARIES = ("abc", "builtins", "numpy", "scipy", "sklearn", "torch", "typing")  # recorded by version
_NAME_OF_CLASS = re.compile(r"""^class [^_].*\n(?:(?: .*)?\n)*?    name(?:: .+)? = ["'](.+?)["']""", re.MULTILINE)


def method_names() -> list[str]:
    """List the names of all methods, built-in and third-party, sorted, without importing any.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> "itq" in method_names()
    True
    """
    return sorted({*_module_names("hashbench.methods"), *_entry_points("hashbench.methods")})


def built_in_methods() -> list[str]:
    """List the names of hashbench's own methods, sorted."""
    return sorted(_module_names("hashbench.methods"))


def is_built_in(name: str) -> bool:
    """Return whether a method is one of hashbench, and not claimed by a plug-in too."""
    return name in _module_names("hashbench.methods") and name not in _entry_points("hashbench.methods")


def dataset_names() -> list[str]:
    """List the names of all datasets that can be prepared, sorted, without importing any.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> "digits" in dataset_names()
    True
    """
    return sorted({*_dataset_modules(), *_entry_points("hashbench.datasets")})


def is_dataset(name: str) -> bool:
    """Return whether a dataset can be prepared by its name: one of `dataset_names`, or one with unseen classes."""
    return split_name(name)[0] in dataset_names()


_PLACES = {"method": "methods", "dataset": "datasets", "metric": "hashbench/scoring/metrics"}


def unknown_plugin(kind: str, name: str, choices: Sequence[str]) -> HashbenchError:
    """Return the error for a plug-in that is not known; a file of Python has its own advice."""
    if not name.endswith(".py"):
        return unknown_name(kind, name, choices)
    stem = name.rpartition("/")[2].removesuffix(".py").replace("-", "_")
    return HashbenchError(
        f"{name!r} is a file, expected the name of a {kind}, whose code hashbench then runs. Save it as "
        f"{_PLACES[kind]}/{stem}.py in a clone of hashbench, or as an entry point of a package "
        "(docs/tutorials/plugins.md), and give its name."
    )


def get_method(name: str) -> "type[HashMethod]":
    """Return the class of a method; raise HashbenchError for unknown names and broken plug-ins."""
    if name not in method_names():
        raise unknown_plugin("method", name, method_names())
    with needing(f"method {name!r}"):
        from hashbench.method import PLUGIN_NAMES, HashMethod  # imports scikit-learn, so after the check of the name
    _demand_one("method", name, name in _module_names("hashbench.methods"))
    if name in _module_names("hashbench.methods"):
        with loading("method", name):
            module = import_module(f"hashbench.methods.{name.replace('-', '_')}")
        classes = [cls for cls in _classes(module) if issubclass(cls, HashMethod)]
        if len(classes) != 1:
            raise HashbenchError(f"{module.__file__} must hold one public subclass of HashMethod, not {len(classes)}.")
        return _checked(name, classes[0])
    cls = _load(_entry_points("hashbench.methods")[name][0], "method")
    if not (inspect.isclass(cls) and issubclass(cls, HashMethod)):
        raise HashbenchError(f"method plugin {name!r} is {cls!r}, expected a subclass of hashbench.plugins.HashMethod.")
    PLUGIN_NAMES[cls] = name
    return _checked(name, cls)


def get_dataset(name: str, options: "Options | None" = None) -> "DatasetAdapter":
    """Return an instance of a dataset's adapter; raise HashbenchError for unknown names and broken plug-ins."""
    cls = dataset_class(name)
    try:
        with same_folder():
            return cls(options)
    except HashbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise HashbenchError(
            f"dataset plugin {name!r} cannot be created: {type(error).__name__}: {one_line(error)}. Accept options "
            "in its __init__, or inherit that of hashbench.plugins.DatasetAdapter."
        ) from error


def dataset_class(name: str) -> "type[DatasetAdapter]":
    """Return the class of a dataset's adapter; raise HashbenchError for unknown names and broken plug-ins."""
    from hashbench.adapter import DatasetAdapter

    _demand_one("dataset", name, name in _dataset_modules())
    if name in _dataset_modules():
        with loading("dataset", name):
            module = import_module(_dataset_modules()[name])
        for adapter in _classes(module):
            if issubclass(adapter, DatasetAdapter) and getattr(adapter, "name", None) == name:
                return adapter
        raise HashbenchError(f"{module.__file__} must hold a public subclass of DatasetAdapter with name = {name!r}.")
    if name in _entry_points("hashbench.datasets"):
        cls = _load(_entry_points("hashbench.datasets")[name][0], "dataset")
        if not (inspect.isclass(cls) and issubclass(cls, DatasetAdapter)):
            expected = "a subclass of hashbench.plugins.DatasetAdapter"
            raise HashbenchError(f"dataset plugin {name!r} is {cls!r}, expected {expected}.")
        return cls
    raise unknown_plugin("dataset", name, dataset_names())


def resolve_dataset(spec: str, features: str | None = None) -> tuple[str, str, str]:
    """Return the name, the kind of features and the canonical spelling of ``NAME`` or ``NAME:FEATURES``.

    ``features`` overrides the kind in ``spec``. The default is the adapter's first kind, for a dataset with unseen
    classes that of the dataset it is derived from.
    """
    name, _, kind = spec.partition(":")
    kinds = dataset_class(split_name(name)[0]).features
    kind = features or kind or kinds[0]
    if not offers(kinds, kind):
        raise unknown_name("feature kind", f"{name}:{kind}", kinds, like=kind)
    return name, kind, name if kind == kinds[0] else f"{name}:{kind}"


def offers(kinds: Sequence[str], kind: str) -> bool:
    """Return whether a kind of features is among those of a dataset.

    Examples
    --------
    >>> offers(("pixels", "hf:MODEL"), "hf:facebook/dinov2-small")
    True
    """
    family, colon, _ = kind.partition(":")
    return kind in kinds or (bool(colon) and f"{family}:MODEL" in kinds)


def dataset_spec(name: str, features_name: str) -> str:
    """Return the name of a dataset for users: ``NAME``, or ``NAME:FEATURES`` if its features are not the first kind.

    ``features_name`` is that of a dataset or a row of results, where words such as ``(JPEG)`` may follow the kind.
    """
    kind = features_kind(features_name)
    is_usual = not is_dataset(name) or dataset_class(split_name(name)[0]).features[0] == kind
    return name if is_usual else f"{name}:{kind}"


def features_kind(features_name: str) -> str:
    """Return the kind of features, the first word of their name.

    Examples
    --------
    >>> features_kind("squeezenet (JPEG)")
    'squeezenet'
    """
    return features_name.partition(" ")[0]


def modules_of(cls: type) -> tuple[str, ...]:
    """Return the modules of a class and its bases that belong to plug-ins or hashbench."""
    homes = dict.fromkeys(base.__module__ for base in cls.__mro__)
    return tuple(home for home in homes if home.partition(".")[0] not in _LIBRARIES)


def entry_modules(kind: str, name: str) -> list[str]:
    """List the module that a plug-in is named in, which may make its class elsewhere; none of built-in ones."""
    return [point.module for point in _entry_points(f"hashbench.{kind}s").get(name, [])[:1]]


def installed_with(kind: str, name: str) -> list[str]:
    """List the top-level modules and packages of the distribution that a plug-in comes with."""
    points = _entry_points(f"hashbench.{kind}s").get(name, [])
    distribution = points[0].dist if points else None
    if distribution is None:
        return []
    listed = (distribution.read_text("top_level.txt") or "").split()
    if not listed:
        files = [file for file in distribution.files or [] if file.suffix == ".py" and ".." not in file.parts]
        listed = [file.stem if len(file.parts) == 1 else file.parts[0] for file in files]
    return sorted({each for each in listed if each.isidentifier()})


def dataset_summary(name: str) -> str:
    """Return a line about a dataset, or an error in parentheses."""
    try:
        adapter = get_dataset(name)
    except HashbenchError as error:
        return f"({error})"
    summary = getattr(adapter, "summary", "(without a summary)")
    return f"{summary} [needs {adapter.needs}]" if adapter.needs else summary


@cache
def _module_names(package: str) -> tuple[str, ...]:
    modules = iter_modules(import_module(package).__path__)
    return tuple(module.name.replace("_", "-") for module in modules if not module.name.startswith("_"))


@cache
def _entry_points(group: str) -> dict[str, list[EntryPoint]]:
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, []).append(point)
    return points


def _checked(name: str, cls: "type[HashMethod]") -> "type[HashMethod]":
    """Return a method's class; raise HashbenchError if its class attributes break the contract."""
    from hashbench.method import GROUPS, READS, SUPERVISION

    for attribute, choices in (("supervision", SUPERVISION), ("group", GROUPS), ("reads", READS)):
        if getattr(cls, attribute) not in choices:
            raise HashbenchError(
                f"method {name!r} has {attribute} {getattr(cls, attribute)!r}, expected one of {', '.join(choices)}."
            )
    return cls


def _demand_one(kind: str, name: str, is_built_in: bool) -> None:
    """Raise HashbenchError for a name that several plug-ins claim."""
    points = _entry_points(f"hashbench.{kind}s").get(name, [])
    claims = [f"{point.value} of {point.dist.name if point.dist else 'a package'}" for point in points]
    if is_built_in:
        claims.insert(0, "hashbench itself")
    if len(claims) > 1:
        raise HashbenchError(f"{kind} {name!r} is claimed by {' and by '.join(claims)}. Rename or uninstall one.")


@cache
def _dataset_modules() -> dict[str, str]:
    """Return the module of each built-in dataset; a file that states no name of a dataset stands for its own name."""
    modules: dict[str, str] = {}
    for name in _module_names("hashbench.datasets"):
        module, text = f"hashbench.datasets.{name.replace('-', '_')}", ""
        with suppress(OSError):  # reported when it is imported
            text = Path(str(getattr(find_spec(module), "origin", ""))).read_text("utf-8", "replace")
        modules |= dict.fromkeys(_NAME_OF_CLASS.findall(text) or [name], module)
    return modules


def _classes(module: ModuleType) -> list[type]:
    """Return the public concrete classes that a module defines."""
    return [
        cls
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__ and not name.startswith("_") and not inspect.isabstract(cls)
    ]


@contextmanager
def loading(kind: str, name: str, done: str = "imported", advice: str = "") -> Iterator[None]:
    """Raise HashbenchError with the name of the plug-in if it cannot be imported, or constructed."""
    try:
        with same_folder():
            yield
    except (Exception, SystemExit) as error:
        raise HashbenchError(
            f"{kind} plugin {name!r} cannot be {done}: {type(error).__name__}: {one_line(error)}.{advice}"
        ) from error


def _load(point: EntryPoint, kind: str) -> object:
    from hashbench._validation import check_name

    check_name(point.name, f"the name of {kind} plugin {point.value}")
    with loading(kind, point.name):
        return point.load()


@cache
def import_metrics() -> None:
    """Import the plug-ins of metrics, each once; their functions register themselves."""
    for name, points in _entry_points("hashbench.metrics").items():
        _demand_one("metric", name, is_built_in=False)
        _load(points[0], "metric")

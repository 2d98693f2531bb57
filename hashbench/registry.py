"""Plugins by name: the only place that opens methods, datasets and metrics of others, and only when asked."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING

from hashbench import _source_code
from hashbench.errors import HashbenchError, one_line, unknown_name
from hashbench.unseen import split_name

if TYPE_CHECKING:
    from hashbench.adapter import DatasetAdapter, Options
    from hashbench.method import HashMethod


_NOT_OURS = ("abc", "builtins", "numpy", "scipy", "sklearn", "torch", "typing")  # homes of bases, known by version
_OF_OLD = ("_parameter_constraints", "depends_on", "on_epoch", "made_by")  # what methods once declared


def method_names() -> list[str]:
    """List the names of all methods, built-in and third-party, sorted, without importing any."""
    return sorted({*_module_names("hashbench.methods"), *_entry_points("hashbench.methods")})


def built_in_methods() -> list[str]:
    """List the names of hashbench's own methods, sorted."""
    return sorted(_module_names("hashbench.methods"))


def is_built_in(name: str) -> bool:
    """Tell whether a method is hashbench's own, and claimed by no plug-in."""
    return name in _module_names("hashbench.methods") and name not in _entry_points("hashbench.methods")


def dataset_names() -> list[str]:
    """List the names of all datasets that can be prepared, sorted."""
    return sorted({*_adapters(), *_entry_points("hashbench.datasets")})


def is_dataset(name: str) -> bool:
    """Tell whether a dataset can be prepared by its name: one of `dataset_names`, or with unseen classes made of it."""
    return split_name(name)[0] in dataset_names()


def get_method(name: str) -> "type[HashMethod]":
    """Find a method's class.

    Parameters
    ----------
    name : str
        Such as ``itq``.

    Returns
    -------
    type
        A subclass of `hashbench.method.HashMethod`.

    Raises
    ------
    HashbenchError
        If there is no such method, or its plugin cannot be imported.
    """
    if name not in method_names():
        raise unknown_name("method", name, method_names())
    from hashbench.method import HashMethod  # and scikit-learn, for which a mistyped name need not wait

    _demand_one("method", name, name in _module_names("hashbench.methods"))
    if name in _module_names("hashbench.methods"):
        with _importing("method", name):
            module = import_module(f"hashbench.methods.{name.replace('-', '_')}")
        found = [cls for cls in _classes(module) if issubclass(cls, HashMethod)]
        if len(found) != 1:
            raise HashbenchError(f"{module.__file__} must hold one public subclass of HashMethod, not {len(found)}.")
        return _checked(name, found[0])
    cls = _load(_entry_points("hashbench.methods")[name][0], "method")
    if not (inspect.isclass(cls) and issubclass(cls, HashMethod)):
        raise HashbenchError(f"method plugin {name!r} is {cls!r}, expected a subclass of HashMethod.")
    return _checked(name, cls)


def get_dataset(name: str, options: "Options | None" = None) -> "DatasetAdapter":
    """Find a dataset's adapter.

    Parameters
    ----------
    name : str
        Such as ``digits``.
    options : Options, optional
        What the user chose.

    Returns
    -------
    DatasetAdapter
        An instance, ready to ``prepare``.

    Raises
    ------
    HashbenchError
        If there is no such dataset, or its plugin cannot be imported.
    """
    cls = dataset_class(name)
    try:
        return cls(options)
    except HashbenchError:
        raise
    except (Exception, SystemExit) as error:
        raise HashbenchError(
            f"dataset plugin {name!r} cannot be made of options: {type(error).__name__}: {one_line(error)}. Let its "
            "__init__ take them, or leave that to DatasetAdapter."
        ) from error


def dataset_class(name: str) -> "type[DatasetAdapter]":
    """Find the class of a dataset's adapter by the dataset's name; refuse unknown names and broken plug-ins."""
    from hashbench.adapter import DatasetAdapter

    _demand_one("dataset", name, name in _adapters())
    if name in _adapters():
        if isinstance(found := _adapters()[name], HashbenchError):
            raise found
        return found
    if name in _entry_points("hashbench.datasets"):
        cls = _load(_entry_points("hashbench.datasets")[name][0], "dataset")
        if not (inspect.isclass(cls) and issubclass(cls, DatasetAdapter)):
            raise HashbenchError(f"dataset plugin {name!r} is {cls!r}, expected a subclass of DatasetAdapter.")
        return cls
    raise unknown_name("dataset", name, dataset_names())


def resolve_dataset(spec: str, features: str | None = None) -> tuple[str, str, str]:
    """Tell which dataset ``NAME`` or ``NAME:FEATURES`` means: its name, kind of features, and the one spelling of both.

    ``features`` has the last word on the kind; by default it is the first of the adapter, or of that of the dataset
    that one with unseen classes is made of.
    """
    name, _, kind = spec.partition(":")
    kinds = dataset_class(split_name(name)[0]).features
    kind = features or kind or kinds[0]
    if kind not in kinds:
        raise unknown_name("feature kind", f"{name}:{kind}", kinds, like=kind)
    return name, kind, name if kind == kinds[0] else f"{name}:{kind}"


def dataset_spec(name: str, features_name: str) -> str:
    """Say how users call a dataset with its features: its name, or ``NAME:FEATURES`` if these are not its first.

    ``features_name`` is that of a dataset or a row of results, where words such as ``(JPEG)`` may follow the kind.
    """
    kind = features_kind(features_name)
    is_usual = not is_dataset(name) or dataset_class(split_name(name)[0]).features[0] == kind
    return name if is_usual else f"{name}:{kind}"


def features_kind(features_name: str) -> str:
    """Give what users call a kind of features: the first word of its name.

    Examples
    --------
    >>> features_kind("squeezenet (JPEG)")
    'squeezenet'
    """
    return features_name.partition(" ")[0]


def modules_of(cls: type) -> tuple[str, ...]:
    """Name the modules of a class and its bases, as far as plug-ins or hashbench bring them."""
    homes = dict.fromkeys(base.__module__ for base in cls.__mro__)
    return tuple(home for home in homes if home.partition(".")[0] not in _NOT_OURS)


def method_summary(name: str) -> str:
    """Give the first line of a method's docstring, or why there is none; of a built-in one without importing it."""
    if name in _module_names("hashbench.methods"):
        try:
            docstrings = _source_code.docstrings_of(f"hashbench.methods.{name.replace('-', '_')}")
        except (OSError, SyntaxError, UnicodeDecodeError) as error:
            return f"(cannot be imported: {type(error).__name__}: {one_line(error)})"
    else:
        try:
            cls = get_method(name)
        except HashbenchError as error:
            return f"({error})"
        docstrings = [sys.modules[cls.__module__].__doc__ or "", cls.__doc__ or ""]
    return next((text.strip().partition("\n")[0] for text in docstrings if text.strip()), "")


def dataset_summary(name: str) -> str:
    """Give a line about a dataset, or why there is none."""
    try:
        adapter = get_dataset(name)
    except HashbenchError as error:
        return f"({error})"
    summary = getattr(adapter, "summary", "(without a summary)")
    return f"{summary} [needs {adapter.needs}]" if adapter.needs else summary


@cache
def _module_names(package: str) -> tuple[str, ...]:
    found = iter_modules(import_module(package).__path__)
    return tuple(module.name.replace("_", "-") for module in found if not module.name.startswith("_"))


@cache
def _entry_points(group: str) -> dict[str, list[EntryPoint]]:
    points: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=group):
        points.setdefault(point.name, []).append(point)
    return points


def _checked(name: str, cls: "type[HashMethod]") -> "type[HashMethod]":
    """Refuse a method whose class attributes are none of the contract's."""
    from hashbench.method import GROUPS, READS, SUPERVISION

    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] not in _NOT_OURS]
    old = [key for key in _OF_OLD for base in ours if key in vars(base)]
    if old:
        raise HashbenchError(
            f"method {name!r} declares {old[0]}, which is no longer read. Parameters are fields of a dataclass (see "
            "hashbench.setting), modules that cannot be found by reading are named in `modules`."
        )
    for attribute, choices in (("supervision", SUPERVISION), ("group", GROUPS), ("reads", READS)):
        if getattr(cls, attribute) not in choices:
            raise HashbenchError(
                f"method {name!r} has {attribute} {getattr(cls, attribute)!r}, expected one of {', '.join(choices)}."
            )
    return cls


def _demand_one(kind: str, name: str, is_built_in: bool) -> None:
    """Refuse a name that several plugins claim: no order of theirs should decide."""
    points = _entry_points(f"hashbench.{kind}s").get(name, [])
    claims = [f"{point.value} of {point.dist.name if point.dist else 'a package'}" for point in points]
    if is_built_in:
        claims.insert(0, "hashbench itself")
    if len(claims) > 1:
        raise HashbenchError(f"{kind} {name!r} is claimed by {' and by '.join(claims)}. Rename or uninstall one.")


@cache
def _adapters() -> "dict[str, type[DatasetAdapter] | HashbenchError]":
    """Find the adapters of all our files; of one that cannot be imported the error, by the file's name."""
    from hashbench.adapter import DatasetAdapter

    adapters: dict[str, type[DatasetAdapter] | HashbenchError] = {}
    for stem in _module_names("hashbench.datasets"):
        try:
            with _importing("dataset", stem):
                module = import_module(f"hashbench.datasets.{stem.replace('-', '_')}")
            adapters |= {cls.name: cls for cls in _classes(module) if issubclass(cls, DatasetAdapter)}
        except HashbenchError as error:
            adapters[stem] = error
    return adapters


def _classes(module: ModuleType) -> list[type]:
    """Public concrete classes defined in the module itself."""
    return [
        cls
        for name, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__ and not name.startswith("_") and not inspect.isabstract(cls)
    ]


@contextmanager
def _importing(kind: str, name: str) -> Iterator[None]:
    """Name the plug-in that cannot be imported, whatever it raises."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise HashbenchError(
            f"{kind} plugin {name!r} cannot be imported: {type(error).__name__}: {one_line(error)}."
        ) from error


def _load(point: EntryPoint, kind: str) -> object:
    from hashbench._validation import check_name

    check_name(point.name, f"the name of {kind} plugin {point.value}")
    with _importing(kind, point.name):
        return point.load()


@cache
def import_metrics() -> None:
    """Import the plug-ins of metrics, each once; their functions register themselves."""
    for name, points in _entry_points("hashbench.metrics").items():
        _demand_one("metric", name, is_built_in=False)
        _load(points[0], "metric")

"""A study: all that spans a grid of jobs, as options or a TOML file say it."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.grid import Job, Sweep, grid
from hashbench.store.inputs import check_file, reading


@dataclass(frozen=True)
class Study:
    """What to run: each combination of dataset, method with its parameters, code length and seed is a job.

    Parameters
    ----------
    datasets : tuple of str
        Names or files.
    methods : tuple of (str, mapping)
        Each with parameters of its own; a method may come several times.
    n_bits : tuple of int
        Code lengths.
    seeds : tuple of int
        Random states.
    metrics : tuple of str
        If empty, the default ones.
    params : mapping
        Parameters of all methods, of one as ``METHOD:NAME``; see `hashbench.pipeline.grid.grid`.
    """

    datasets: tuple[str, ...] = ("digits",)
    methods: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    n_bits: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0,)
    metrics: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def changed(self, methods: Sequence[str] = (), params: Mapping[str, Any] | None = None, **others: Any) -> "Study":
        """Give this study with what is said besides in place of what it says itself.

        Methods keep the parameters that it has for them; parameters go before its own of the same name, also before
        those of one method, and its parameters of methods that are not chosen are left out.
        """
        said = params or {}
        kept = {key: value for key, value in self.params.items() if _still_holds(key, said, methods)}
        chosen = [variant for name in dict.fromkeys(methods) for variant in self._variants(name)]
        variants = [
            (name, {key: value for key, value in own.items() if key not in said})
            for name, own in (chosen if methods else self.methods)
        ]
        given = {key: tuple(values) for key, values in others.items() if values}
        return replace(self, methods=tuple(variants), params={**kept, **said}, **given)

    def _variants(self, name: str) -> list[tuple[str, Mapping[str, Any]]]:
        return [variant for variant in self.methods if variant[0] == name] or [(name, {})]

    def jobs(self) -> list[Job]:
        """Span the grid; refuse what cannot be run before any work is done."""
        return grid(self.datasets, self.methods, self.n_bits, self.seeds, self.params)


def _still_holds(key: str, said: Mapping[str, Any], methods: Sequence[str]) -> bool:
    """Tell whether a study's parameter, ``NAME`` or ``METHOD:NAME``, is neither said anew nor of an unchosen method."""
    method, _, name = key.rpartition(":")
    return name not in said and (not methods or method in ("", *methods))


def read_study(path: Path) -> Study:
    """Read a study from a TOML file; refuse what it cannot mean."""
    check_file(path)
    with reading(path, "TOML"):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    for key in content:
        if key not in _KEYS:
            raise HashbenchError(f"{path}: {unknown_name('key', key, _KEYS)}")
    found = {key: _KEYS[key](value, f"{path}: {key}") for key, value in content.items()}
    params = found.pop("params", {})
    for key in _OF_METHODS:
        if key in found and key in params:
            raise HashbenchError(f"{path} gives {key} twice, once in [params]. Leave one out.")
        if key in found:
            params[key] = found.pop(key)
    return Study(**{_FIELDS.get(key, key): value for key, value in found.items()}, params=params)


def _texts(value: Any, what: str) -> tuple[str, ...]:
    return _listed(value, what, str, "texts in quotes")


def _numbers(value: Any, what: str) -> tuple[int, ...]:
    return _listed(value, what, int, "whole numbers")


def _seeds(value: Any, what: str) -> tuple[int, ...]:
    seeds = _numbers(value, what)
    for seed in seeds:
        if not 0 <= seed < 2**32:
            raise HashbenchError(f"{what} are from 0 to {2**32 - 1}, got {seed}.")
    return seeds


def _listed(value: Any, what: str, kind: type, words: str) -> tuple[Any, ...]:
    """Read one value or a list of them, all of a kind."""
    for one in _several(value, what):
        if type(one) is not kind:
            raise HashbenchError(f"{what} must be {words}, got {one!r}.")
    return tuple(_several(value, what))


def _several(value: Any, what: str) -> list[Any]:
    """Read one value or a list of them."""
    if value == []:
        raise HashbenchError(f"{what} is an empty list. Leave it out, or put something into it.")
    return value if isinstance(value, list) else [value]


def _methods(value: Any, what: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Read names, or for each method a table of parameters, or several."""
    if not isinstance(value, dict):
        return tuple((name, {}) for name in _listed(value, what, str, "names in quotes, or a table for each"))
    variants = {name: _several(tables, f"{what}.{name}") for name, tables in value.items()}
    return tuple((name, _params(table, f"{what}.{name}")) for name, tables in variants.items() for table in tables)


def _params(value: Any, what: str) -> dict[str, Any]:
    """Read parameters; a list of values is a sweep."""
    if not isinstance(value, dict):
        raise HashbenchError(f"{what} must be a table of parameters, got {value!r}.")
    return {key: _values(one, f"{what}.{key}") for key, one in value.items()}


def _values(value: Any, what: str) -> Any:
    several = _several(value, what)
    return Sweep(several) if len(several) > 1 else several[0]


_KEYS: dict[str, Callable[[Any, str], Any]] = {
    "datasets": _texts,
    "methods": _methods,
    "bits": _numbers,
    "seeds": _seeds,
    "metrics": _texts,
    "params": _params,
    "preset": _values,
    "validation": _values,
    "device": _values,
}
_FIELDS = {"bits": "n_bits"}
_OF_METHODS = ("preset", "validation", "device")

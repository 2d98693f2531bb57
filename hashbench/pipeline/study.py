"""A study: all that spans a grid of jobs, as options or a TOML file say it."""

import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hashbench.cards import method_card
from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.grid import FOR_SOME, TUNED, Job, Sweep, grid, settings_of, spelled
from hashbench.store.inputs import check_file, reading

DEFAULT_DATASETS = ("digits",)


@dataclass(frozen=True)
class Study:
    """What to run: each combination of dataset, method with its parameters, code length and seed is a job.

    Parameters
    ----------
    datasets : tuple of str
        Names or files; if empty, the default one.
    methods : tuple of (str, mapping)
        Each with parameters of its own; a method may come several times.
    n_bits : tuple of int
        Code lengths.
    seeds : tuple of int
        Random states.
    metrics : tuple of str
        If empty, the default ones.
    params : mapping
        Parameters of all methods that have them, of one as ``METHOD:NAME``; see `hashbench.pipeline.grid.grid`.
    """

    datasets: tuple[str, ...] = ()
    methods: tuple[tuple[str, Mapping[str, Any]], ...] = ()
    n_bits: tuple[int, ...] = ()
    seeds: tuple[int, ...] = (0,)
    metrics: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict)

    def changed(
        self,
        methods: Sequence[str] = (),
        datasets: Sequence[str] = (),
        params: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> "Study":
        """Give this study with what is said besides in place of what it says itself.

        Methods and datasets are picked among its own, where it has some. Methods keep the parameters that it has for
        them; parameters go before its own of the same name, also before those of one method, and its parameters of
        methods that are not picked are left out. A method with other parameters is no longer ``tuned``.
        """
        _refuse_others("method", methods, [name for name, _ in self.methods])
        _refuse_others("dataset", map(spelled, datasets), [*map(spelled, self.datasets)])
        said = params or {}
        kept = {key: value for key, value in self.params.items() if self._still_holds(key, said, methods)}
        variants = [
            (name, {key: value for key, value in own.items() if key not in {*said, *_untuned(name, said)}})
            for name, own in self.methods or [(name, {}) for name in methods]
            if not methods or name in methods
        ]
        given = {key: tuple(values) for key, values in {"datasets": datasets, **others}.items() if values}
        return replace(self, methods=tuple(variants), params={**kept, **said}, **given)

    def _still_holds(self, key: str, said: Mapping[str, Any], methods: Sequence[str]) -> bool:
        """Tell whether a parameter, ``NAME`` or ``METHOD:NAME``, is neither said anew nor of unchosen methods alone."""
        method, _, name = key.rpartition(":")
        if method or not methods:
            return name not in said and (not methods or method in methods)
        owners = {one for one, _ in self.methods if key in settings_of(method_card(one))}
        return name not in said and (not owners or not owners.isdisjoint(methods))

    def jobs(self) -> list[Job]:
        """Span the grid; refuse what cannot be run before any work is done, and warn of seeds that nothing draws by."""
        jobs = grid(self.datasets or DEFAULT_DATASETS, self.methods, self.n_bits, self.seeds, self.params)
        idle = [str(seed) for seed in self.seeds if seed != 0]
        if idle and not any("random_state" in job.card.params for job in jobs):
            names = ", ".join(dict.fromkeys(job.method for job in jobs))
            warnings.warn(f"seed 0 alone is run, not {', '.join(idle)}: nothing is drawn by {names}.", stacklevel=3)
        return jobs


def _untuned(method: str, said: Mapping[str, Any]) -> set[str]:
    """Return the key of tuned settings if parameters of the method are said anew; the device is no setting."""
    names = [key.rpartition(":") for key in said]
    return {TUNED} if any(owner in ("", method) and name != "device" for owner, _, name in names) else set()


def _refuse_others(kind: str, names: Iterable[str], own: Sequence[str]) -> None:
    """Refuse a name that is none of a study's own, if it has any."""
    for name in names:
        if own and name not in own:
            raise HashbenchError(
                f"the study has no {kind} {name!r}, only {', '.join(dict.fromkeys(own))}. Choose among these, or add "
                "it there."
            )


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
    for key in FOR_SOME:
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
    values = nonempty_tuple(value, what)
    for one in values:
        if type(one) is not kind:
            raise HashbenchError(f"{what} must be {words}, got {one!r}.")
    return values


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Give the values of a sequence as a tuple, or one value, such as a text or a table, as a tuple of one."""
    return tuple(value) if np.iterable(value) and not isinstance(value, str | Mapping) else (value,)


def nonempty_tuple(value: Any, what: str) -> tuple[Any, ...]:
    """Give the values of a sequence as a tuple, or one value as a tuple of one; refuse an empty sequence."""
    values = as_tuple(value)
    if not values:
        raise HashbenchError(f"{what} is an empty list. Leave it out, or put something into it.")
    return values


def read_methods(value: Any, what: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Read names, or for each method a table of parameters, or several."""
    if not isinstance(value, Mapping):
        return tuple((name, {}) for name in _listed(value, what, str, "names in quotes, or a table for each"))
    variants = {name: nonempty_tuple(tables, f"{what}.{name}") for name, tables in value.items()}
    return tuple((name, read_params(table, f"{what}.{name}")) for name, tables in variants.items() for table in tables)


def read_params(value: Any, what: str) -> dict[str, Any]:
    """Read parameters; a list of values is a sweep."""
    if not isinstance(value, Mapping):
        raise HashbenchError(f"{what} must be a table of parameters, got {value!r}.")
    return {key: _values(one, f"{what}.{key}") for key, one in value.items()}


def _values(value: Any, what: str) -> Any:
    values = tuple(None if one == "None" else one for one in nonempty_tuple(value, what))  # which TOML has not
    return Sweep(values) if len(values) > 1 else values[0]


_KEYS: dict[str, Callable[[Any, str], Any]] = {
    "datasets": _texts,
    "methods": read_methods,
    "bits": _numbers,
    "seeds": _seeds,
    "metrics": _texts,
    "params": read_params,
    "preset": _values,
    "validation": _values,
    "device": _values,
}
_FIELDS = {"bits": "n_bits"}

"""A study: all that spans a grid of jobs, from options or a TOML file."""

import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from hashbench._validation import as_tuple
from hashbench.adapter import Options, OwnData
from hashbench.cards import method_card
from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.grid import FOR_SOME, TUNED, Job, Sweep, grid, settings_of, spelled
from hashbench.pipeline.preparation import is_current, is_missing
from hashbench.pipeline.recipes import choices_here, read_options
from hashbench.store.inputs import check_file, reading
from hashbench.store.results import find_files, folder_of, read_record
from hashbench.unseen import split_name

DEFAULT_DATASETS = ("digits",)


@dataclass(frozen=True)
class Study:
    """What to run: every combination of dataset, method with its parameters, code length and seed is a job."""

    datasets: tuple[str, ...] = ()  # names or files; if empty, the default one
    methods: tuple[tuple[str, Mapping[str, Any]], ...] = ()  # each with its own parameters; a name may recur
    n_bits: tuple[int, ...] = ()  # code lengths
    seeds: tuple[int, ...] = (0,)
    metrics: tuple[str, ...] = ()  # if empty, the default ones
    params: Mapping[str, Any] = field(default_factory=dict)  # as `hashbench.pipeline.grid.grid` takes them
    own: Mapping[str, tuple[OwnData, Options]] = field(default_factory=dict)  # the user's datasets, to be prepared
    rename: Mapping[str, str] = field(default_factory=dict)  # what `hashbench tables` shows in place of names

    def changed(
        self,
        methods: Sequence[str] = (),
        datasets: Sequence[str] = (),
        params: Mapping[str, Any] | None = None,
        **others: Any,
    ) -> "Study":
        """Return this study with other values.

        Methods and datasets are chosen among those of the study, if it has any. Methods keep the study's parameters
        unless ``params`` has one of the same name; parameters of methods that are not chosen are left out. A method
        with other parameters is no longer ``tuned``.
        """
        _refuse_others("method", methods, [name for name, _ in self.methods])
        _refuse_others("dataset", map(spelled, datasets), [*map(spelled, self.datasets)])
        new = params or {}
        unchanged = {key: value for key, value in self.params.items() if self._still_holds(key, new, methods)}
        variants = [
            (name, {key: value for key, value in own.items() if key not in {*new, *_untuned(name, new)}})
            for name, own in self.methods or [(name, {}) for name in methods]
            if not methods or name in methods
        ]
        changes: dict[str, Any] = {
            key: tuple(values) for key, values in {"datasets": datasets, **others}.items() if values
        }
        return replace(self, methods=tuple(variants), params={**unchanged, **new}, **changes)

    def _still_holds(self, key: str, new: Mapping[str, Any], methods: Sequence[str]) -> bool:
        """Return whether a parameter, ``NAME`` or ``METHOD:NAME``, is neither replaced nor only for other methods."""
        method, _, name = key.rpartition(":")
        if name in new:
            return False
        if not methods:
            return True
        if method:
            return method in methods
        owners = {owner for owner, _ in self.methods if key in settings_of(method_card(owner))}
        return not owners or not owners.isdisjoint(methods)

    def unprepared(self, results: Path | None = None) -> dict[str, tuple[OwnData, Options]]:
        """Return the user's datasets among those of the study, or whose parts are, that are to be prepared, by name.

        They are those of the study that are not current, and missing ones that a folder of ``results`` has a recipe of.
        """
        own = {}
        for name in (spec.partition(":")[0] for spec in self.datasets):
            base, _ = split_name(name)
            if base in self.own:
                if not is_current(*self.own[base]):
                    own[base] = self.own[base]
            elif results is not None and is_missing(base):
                folders = folder_of(results, base), folder_of(results, name)
                recipes = read_record(path for folder in folders for path in find_files(folder)).recipes
                own |= {base: choices_here(base, recipes)} if recipes else {}
        return own

    def jobs(self) -> list[Job]:
        """Return the jobs of the grid; refuse what cannot run before any work is done, and warn of unused seeds."""
        jobs = grid(self.datasets or DEFAULT_DATASETS, self.methods, self.n_bits, self.seeds, self.params)
        idle = [str(seed) for seed in self.seeds if seed != 0]
        if idle and not any("random_state" in job.card.params for job in jobs):
            names = ", ".join(dict.fromkeys(job.method for job in jobs))
            warnings.warn(f"only seed 0 is run, not {', '.join(idle)}: no randomness in {names}.", stacklevel=4)
        return jobs


def _untuned(method: str, new: Mapping[str, Any]) -> set[str]:
    """Return the key of tuned settings if parameters of the method are replaced; device and file are no settings."""
    names = [key.rpartition(":") for key in new]
    is_replaced = any(owner in ("", method) and name not in ("device", "weights") for owner, _, name in names)
    return {TUNED} if is_replaced else set()


def _refuse_others(kind: str, names: Iterable[str], own: Sequence[str]) -> None:
    """Refuse a name that is not among those of a study, if it has any."""
    for name in names:
        if own and name not in own:
            raise HashbenchError(
                f"the study has no {kind} {name!r}, only {', '.join(dict.fromkeys(own))}. Choose among these, or add "
                "it there."
            )


def read_study(path: Path) -> Study:
    """Read a study from a TOML file."""
    check_file(path)
    with reading(path, "TOML"):
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    for key in content:
        if key not in _KEYS:
            raise HashbenchError(f"{path}: {unknown_name('key', key, _KEYS)}")
    fields = {key: _KEYS[key](value, f"{path}: {key}") for key, value in content.items()}
    params = fields.pop("params", {})
    for key in FOR_SOME:
        if key in fields and key in params:
            raise HashbenchError(f"{path} gives {key} twice, once in [params]. Leave one out.")
        if key in fields:
            params[key] = fields.pop(key)
    for key, name in {"bits": "n_bits", "prepare": "own"}.items():
        if key in fields:
            fields[name] = fields.pop(key)
    bases = {split_name(spec.partition(":")[0])[0] for spec in fields.get("datasets", ())}
    for name in fields.get("own", {}):
        if name not in bases:
            raise HashbenchError(f"{path} prepares {name}, which is not among its datasets. Add it to them.")
    return Study(**fields, params=params)


def _seeds(value: Any, what: str) -> tuple[int, ...]:
    seeds = _numbers(value, what)
    for seed in seeds:
        if not 0 <= seed < 2**32:
            raise HashbenchError(f"{what} are from 0 to {2**32 - 1}, got {seed}.")
    return seeds


def _listed(value: Any, what: str, kind: type, expected: str) -> tuple[Any, ...]:
    """Read one value or a list of them, all of one type."""
    values = nonempty_tuple(value, what)
    for item in values:
        if type(item) is not kind:
            raise HashbenchError(f"{what} must be {expected}, got {item!r}.")
    return values


_texts = partial(_listed, kind=str, expected="strings in quotes")
_numbers = partial(_listed, kind=int, expected="whole numbers")


def nonempty_tuple(value: Any, what: str) -> tuple[Any, ...]:
    """Return the values of a sequence, or one value, as `as_tuple` does; refuse an empty sequence."""
    values = as_tuple(value)
    if not values:
        raise HashbenchError(f"{what} is an empty list. Leave it out, or put something into it.")
    return values


def read_methods(value: Any, what: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Read names of methods, or one or several tables of parameters per method."""
    if not isinstance(value, Mapping):
        return tuple((name, {}) for name in _listed(value, what, str, "names in quotes, or a table for each"))
    variants = {name: nonempty_tuple(tables, f"{what}.{name}") for name, tables in value.items()}
    return tuple((name, read_params(table, f"{what}.{name}")) for name, tables in variants.items() for table in tables)


def read_params(value: Any, what: str) -> dict[str, Any]:
    """Read parameters; a list of values is a sweep."""
    if not isinstance(value, Mapping):
        raise HashbenchError(f"{what} must be a table of parameters, got {value!r}.")
    return {key: _values(setting, f"{what}.{key}") for key, setting in value.items()}


def _values(value: Any, what: str) -> Any:
    values = tuple(None if item == "None" else item for item in nonempty_tuple(value, what))  # TOML has no None
    return Sweep(values) if len(values) > 1 else values[0]


def _read_own(value: Any, what: str) -> dict[str, tuple[OwnData, Options]]:
    """Read a table of options of ``hashbench prepare`` for each of the user's datasets."""
    if not isinstance(value, Mapping):
        raise HashbenchError(f"{what} must be a table for each dataset, such as [prepare.mine], got {value!r}.")
    return {name: read_options(name, table, f"{what}.{name}") for name, table in value.items()}


def read_names(value: Any, what: str) -> dict[str, str]:
    """Read a table of texts to show in place of names."""
    if not isinstance(value, Mapping):
        raise HashbenchError(f"{what} must be a table of names, each with the text to show, got {value!r}.")
    for name, text in value.items():
        if not isinstance(text, str):
            raise HashbenchError(f"{what}: the text for {name!r} must be in quotes, got {text!r}.")
        if not text or text != " ".join(text.split()) or not text.isprintable():
            raise HashbenchError(f"{what}: the text for {name!r} must be words with single blanks, got {text!r}.")
    return dict(value)


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
    "prepare": _read_own,
    "rename": read_names,
}

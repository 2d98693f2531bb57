"""What to run: jobs, the grids they span, and the methods they name."""

import ast
import inspect
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hashbench.bits import check_n_bits
from hashbench.errors import HashbenchError, unknown_name
from hashbench.method import HashMethod
from hashbench.registry import get_method

T = TypeVar("T")
_FOR_SOME = (
    "device",
    "preset",
    "validation",
)  # options that other methods of a grid ignore


@dataclass(frozen=True)
class Job:
    """One cell of a grid.

    Parameters
    ----------
    dataset : str
        Name, or path of a dataset file.
    method : str
        Name.
    n_bits, seed : int
        Code length and random state; the seed of a method without randomness counts as 0.
    params : mapping
        Parameters that differ from the method's defaults.
    """

    dataset: str
    method: str
    n_bits: int
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        params = "".join(f" {key}={value}" for key, value in sorted(self.params.items()))
        return f"{self.dataset} {self.method}{params} {self.n_bits} bits seed {self.seed}"


def grid(
    datasets: Iterable[str],
    methods: Iterable[str],
    n_bits: Iterable[int],
    seeds: Iterable[int],
    params: Mapping[str, Any],
) -> list[Job]:
    """Span a grid of jobs.

    Parameters
    ----------
    datasets, methods, n_bits, seeds : iterable
        The axes.
    params : mapping
        Method parameters of all jobs; ``preset`` stands for the settings of that name that the method
        brings, before the others. Like ``device`` and ``validation`` it is for methods that have it.

    Returns
    -------
    list of Job
        Without duplicates: methods without randomness run once, with seed 0.

    Raises
    ------
    HashbenchError
        If a method or parameter is unknown, or a code length impossible.
    """
    lengths, axis_of_seeds, names = _unique(n_bits), _unique(seeds), _unique(methods)
    for length in lengths:
        check_n_bits(length)
    known = {name: _known_settings(name) for name in names}
    for_some = {key for key in _FOR_SOME if key in params}
    for key in for_some - set().union(*known.values()):
        raise HashbenchError(f"none of {', '.join(names)} has a {key}, got {params[key]!r}. Leave it out.")
    settings = {}
    for name, length in itertools.product(names, lengths):
        ours = {key: params[key] for key in params if key in known[name] or key not in for_some}
        settings[name, length] = _with_preset(name, length, ours)
        make_method(name, length, 0, settings[name, length])  # unknown parameters show before any work is done
    defaults = {name: get_method(name)().get_params(deep=False) for name in names}
    return [
        Job(
            dataset,
            name,
            length,
            seed,
            {key: value for key, value in settings[name, length].items() if value != defaults[name][key]},
        )
        for dataset in _unique(datasets)
        for name in names
        for length in lengths
        for seed in (axis_of_seeds if is_random(name) else [0])
    ]


def make_method(name: str, n_bits: int, seed: int, params: Mapping[str, Any]) -> HashMethod:
    """Construct a method.

    Parameters
    ----------
    name : str
        The method's name.
    n_bits, seed : int
        Code length and random state.
    params : mapping
        Other parameters.

    Returns
    -------
    HashMethod
        Not yet fitted.

    Raises
    ------
    HashbenchError
        If there is no such method or parameter, or a value is out of range.
    """
    cls = get_method(name)
    known = _parameter_names(cls)
    free = [key for key in known if key not in ("n_bits", "random_state")]
    for key in params:
        if key not in free:
            raise unknown_name(f"{name} parameter", key, free or ["(none)"])
    state = {"random_state": seed} if "random_state" in known else {}
    method = cls(n_bits=n_bits, **state, **params)
    method.check_parameters()
    return method


def is_random(name: str) -> bool:
    """Tell whether seeds make a difference to a method.

    Parameters
    ----------
    name : str
        The method's name.

    Returns
    -------
    bool
        Whether it has a random state.
    """
    return "random_state" in _parameter_names(get_method(name))


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` options.

    Parameters
    ----------
    texts : iterable of str
        The value is a Python literal such as ``50``, ``0.5``, ``True``, else a string.

    Returns
    -------
    dict
        Names and values.

    Raises
    ------
    HashbenchError
        If a text has no ``=``.

    Examples
    --------
    >>> parse_params(["n_iter=50", "relaxation=full"])
    {'n_iter': 50, 'relaxation': 'full'}
    """
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise HashbenchError(f"--param takes name=value, got {text!r}.")
        if name in params:
            raise HashbenchError(f"--param gives {name!r} twice; run one value after the other.")
        try:
            params[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            params[name] = value
    return params


def _with_preset(name: str, n_bits: int, params: Mapping[str, Any]) -> dict[str, Any]:
    """Put the settings of a preset in its place."""
    if "preset" not in params:
        return dict(params)
    others = {key: value for key, value in params.items() if key != "preset"}
    return {**get_method(name).preset(str(params["preset"]), n_bits), **others}


def _known_settings(name: str) -> set[str]:
    cls = get_method(name)
    return {*_parameter_names(cls), *(["preset"] if cls.presets else [])}


def _unique(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _parameter_names(cls: type[HashMethod]) -> list[str]:
    return list(inspect.signature(cls).parameters)

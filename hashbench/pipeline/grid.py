"""What to run: the jobs that a grid spans, each with its method."""

import ast
import itertools
import re
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from hashbench._plugins import same_folder
from hashbench._validation import with_floats
from hashbench.bits import check_n_bits
from hashbench.cards import MethodCard, method_card
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError, JobFailure, needing, one_line, suggestion, unknown_name
from hashbench.pipeline.preparation import PreparedDataset
from hashbench.registry import get_method, is_dataset, method_names, resolve_dataset
from hashbench.store.files import data_dir, data_folder, write_text
from hashbench.store.provenance import Provenance, versions

if TYPE_CHECKING:
    from hashbench.method import HashMethod


T = TypeVar("T")
TUNED = "tuned"  # beside a method's parameters: how many settings were tried to choose them
_OPTIONS = {"n_bits": "--bits", "random_state": "--seed"}  # of parameters that span the grid
FOR_SOME = ("device", "preset", "validation")  # options that methods without them ignore
_QUOTED_OR_CHARACTER = re.compile(r"""(?<!\w)(?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|.""", re.DOTALL)
_NO_LITERAL = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)  # the last three when deeply nested


@dataclass(frozen=True, eq=False)
class Job:
    """One cell of a grid."""

    dataset: str  # name, or path of a dataset file
    card: MethodCard
    n_bits: int
    seed: int = 0  # 0 for a method without randomness
    params: Mapping[str, Any] = field(default_factory=dict)  # that differ from the method's defaults
    n_trials: int = 0  # how many settings were tried to choose these, from a grid file; 0 if unknown
    whole: str = ""  # the dataset that its own is cut out of, as users call it, for a trial

    def __str__(self) -> str:
        params = "".join(f" {key}={value}" for key, value in sorted(self.params.items()))
        return f"{self.whole or self.dataset} {self.method}{params} {self.n_bits} bits seed {self.seed}"

    @property
    def method(self) -> str:
        """The method's name."""
        return self.card.name

    @cached_property
    def estimator(self) -> "HashMethod":
        """The method itself, not yet fitted, with its parameters checked."""
        state = {"random_state": self.seed} if "random_state" in self.card.params else {}
        estimator = get_method(self.method)(n_bits=self.n_bits, **state, **self.params)
        estimator.check_parameters()
        return estimator

    @cached_property
    def recorded(self) -> str:
        """The parameters that identify codes, as canonical JSON; the method is constructed only if it must be."""
        if not self.card.is_plain:
            return canonical_json(self.estimator.recorded_params())
        params = {**self.card.params, **self.params}
        return canonical_json({key: params[key] for key in params if key not in _OPTIONS})

    def provenance(self, dataset: Dataset | PreparedDataset) -> Provenance:
        """Return the provenance of this job's codes."""
        return Provenance(
            dataset=dataset.name,
            features=dataset.features_name,
            method=self.method,
            params=self.recorded,
            n_bits=self.n_bits,
            seed=self.seed,
            dataset_fingerprint=dataset.fingerprint,
            method_version=self.card.version,
            libraries=canonical_json({**versions(self.card.libraries), **self.card.digests}),
        )


class Sweep(tuple[Any, ...]):
    """Values of a parameter that each make separate jobs."""

    __slots__ = ()


def part_of(jobs: Sequence[Job], number: int, n_parts: int) -> list[Job]:
    """Return the jobs of part ``number`` (from 1) of a grid, the same on any machine.

    For each method on each dataset, the longest codes are dealt first, each to the part with the fewest bits so far,
    and among these to the part with the fewest jobs.
    """
    n_parts = min(n_parts, max(len(jobs), 1))  # those beyond are empty
    chosen, n_dealt = set(), [0] * n_parts
    alike = sorted(jobs, key=lambda job: (job.method, job.dataset, -job.n_bits, str(job)))
    for _, group in itertools.groupby(alike, key=lambda job: (job.method, job.dataset)):
        bits = [0] * n_parts
        for job in group:
            part = min(range(n_parts), key=lambda part: (bits[part], n_dealt[part]))
            bits[part] += job.n_bits
            n_dealt[part] += 1
            if part == number - 1:
                chosen.add(id(job))
    return [job for job in jobs if id(job) in chosen]


def grid(
    datasets: Iterable[str],
    methods: Iterable[str | tuple[str, Mapping[str, Any]]],
    n_bits: Iterable[int],
    seeds: Iterable[int],
    params: Mapping[str, Any],
) -> list[Job]:
    """Return the jobs of a grid, each once; methods without randomness run only with seed 0.

    ``params`` called ``METHOD:NAME`` apply to one method, others to all methods that have them, at least one. Later
    ones win in this order: a method's preset, ``params`` for all methods, a method's own ``(name, params)``, and
    ``params`` for this method. Every combination of values of `Sweep` makes separate jobs. A method's own parameters
    may include ``tuned``, which is not a parameter.
    """
    lengths, all_seeds = _unique(n_bits), _unique(seeds)
    for length in lengths:
        check_n_bits(length)
    variants = by_variant(methods, params)
    jobs: dict[str, Job] = {}
    for spec, (card, settings, n_trials) in itertools.product(_unique(map(spelled, datasets)), variants):
        own_seeds = all_seeds if "random_state" in card.params else [0]
        values = [value if isinstance(value, Sweep) else (value,) for value in settings.values()]
        for combination, length in itertools.product(itertools.product(*values), lengths):
            setting = dict(zip(settings, combination, strict=True))
            preset = card.preset(str(setting.pop("preset")), length) if "preset" in setting else {}
            changed = _changed(card, preset | setting)
            for seed in own_seeds:
                key = f"{spec} {card.name} {length} {seed} {sorted(changed.items())}"
                jobs.setdefault(key, Job(spec, card, length, seed, changed, n_trials))
    for job in jobs.values():  # errors are raised before any work is done
        if job.params or not job.card.is_plain or not _are_installed(job.card.libraries):
            with contained(f"method {job.method!r}", str(job)):
                _ = job.estimator
    return list(jobs.values())


def by_variant(
    methods: Iterable[str | tuple[str, Mapping[str, Any]]], params: Mapping[str, Any]
) -> list[tuple[MethodCard, dict[str, Any], int]]:
    """Return the card, all parameters, and ``tuned`` or 0 of each method of a grid, as `grid` takes them."""
    variants: list[tuple[str, Mapping[str, Any]]] = [
        (method, {}) if isinstance(method, str) else method for method in methods
    ]
    cards = {name: method_card(name) for name in dict.fromkeys(name for name, _ in variants)}
    general, own = _by_method(params, cards)
    known = {name: settings_of(card) for name, card in cards.items()}
    _check_known(general, known)
    resolved = []
    for name, variant in variants:
        for key in variant:
            if suggestion(key, [TUNED]) and key not in known[name] | {TUNED}:
                raise unknown_name(f"{name} parameter", key, {*cards[name].params, TUNED} - {*_OPTIONS}, meant=TUNED)
        shared = {key: value for key, value in general.items() if key in known[name]}
        settings = {**shared, **variant}
        n_trials = settings.pop(TUNED, 0)
        if type(n_trials) is not int or n_trials < 0:
            raise HashbenchError(
                f"{TUNED} of {name} is {n_trials!r}, expected the number of settings that were tried to choose its "
                "parameters. Leave it out if none were."
            )
        resolved.append((cards[name], {**settings, **own[name]}, n_trials))
    return resolved


def parse_params(texts: Iterable[str]) -> dict[str, Any]:
    """Read ``name=value`` options; a value is a Python literal such as ``50``, ``0.5``, ``True``, or else a string.

    Several values separated by commas are a `Sweep`; a comma inside brackets or quotes is part of its value.

    Examples
    --------
    >>> parse_params(["n_iter=20,50", "ksh:n_items=5000", "relaxation=full"])
    {'n_iter': (20, 50), 'ksh:n_items': 5000, 'relaxation': 'full'}
    """
    params: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name or ":" in (name[0], name[-1]):
            raise HashbenchError(f"--param takes name=value, or method:name=value for one method, got {text!r}.")
        if name in params:
            raise HashbenchError(f"--param gives {name!r} twice; for several values write {name}=20,50, say.")
        values = _values(value)
        if len(values) > 1 and "" in values:
            raise HashbenchError(f"--param {text} has a comma with nothing before or after it. Leave it out.")
        params[name] = values[0] if len(values) == 1 else Sweep(values)
    return params


def _values(text: str) -> list[Any]:
    """Read the values of a parameter, separated by commas outside brackets and quotes."""
    parts, depth = [""], 0
    for piece in _QUOTED_OR_CHARACTER.findall(text):
        depth = max(0, depth + (piece in "([{") - (piece in ")]}"))
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [_value(part.strip()) for part in parts] if len(parts) > 1 else [_value(text)]


def _value(text: str) -> Any:
    with suppress(*_NO_LITERAL):
        return ast.literal_eval(text)
    return text


def settings_of(card: MethodCard) -> set[str]:
    """Return the names of a method's parameters, and ``preset`` if it has presets."""
    return {*card.params, "preset"} if card.presets else {*card.params}


def spelled(spec: str) -> str:
    """Return the canonical spelling of a known dataset, and any other spec as it is."""
    return resolve_dataset(spec)[2] if is_dataset(spec.partition(":")[0]) else spec


def _by_method(params: Mapping[str, Any], methods: Iterable[str]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Separate parameters for all methods from those of one; refuse those of methods outside the grid."""
    general: dict[str, Any] = {}
    own: dict[str, dict[str, Any]] = {name: {} for name in methods}
    for key, value in params.items():
        name, colon, param = key.rpartition(":")
        if colon and name not in own:
            hint = "" if name in method_names() else suggestion(name, own)
            raise HashbenchError(
                f"parameter {key} is only for {name}, and the methods here are {', '.join(own)}."
                f"{hint or f' Leave it out, or add --method {name}.'}"
            )
        (own[name] if colon else general)[param] = value
    return general, own


def _check_known(general: Mapping[str, Any], known: Mapping[str, set[str]]) -> None:
    """Refuse parameters for all methods that no method has."""
    for key in sorted(general.keys() - set().union(*known.values())):
        if key in FOR_SOME:
            raise HashbenchError(f"none of {', '.join(known)} has a {key}, got {general[key]!r}. Leave it out.")
        raise _unknown(" or ".join(known), key, general[key], set().union(*known.values()) - {*FOR_SOME})


def _changed(card: MethodCard, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from a method's defaults; refuse unknown ones."""
    for key in params:
        if key in _OPTIONS or key not in card.params:
            raise _unknown(card.name, key, params[key], card.params)
    return {key: value for key, value in with_floats(params, card.reals).items() if value != card.params[key]}


def _unknown(methods: str, key: str, value: Any, names: Iterable[str]) -> HashbenchError:
    """Return the error for a parameter that no method has, or that has its own option."""
    if key in _OPTIONS:
        return HashbenchError(f"{key} is not a --param, got {value!r}; it has its own option, {_OPTIONS[key]}.")
    return unknown_name(f"{methods} parameter", key, sorted({*names} - {*_OPTIONS}) or ["(none)"])


def _are_installed(libraries: tuple[str, ...]) -> bool:
    try:
        versions(libraries)
    except HashbenchError:
        return False
    return True


def _unique(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


# ---------------------------------------------------------------- failures of plug-ins


@contextmanager
def contained(plugin: str, job: str, check: str = "") -> Iterator[None]:
    """Turn whatever a plug-in raises, including ``sys.exit``, into a JobFailure that names it; ``check`` is a command.

    A HashbenchError, such as that for a package that is missing, and the user's interrupt pass unchanged.
    """
    token = data_folder.set(str(data_dir().absolute()))  # wherever the plug-in goes, until `same_folder` returns
    try:
        with same_folder(), needing(plugin):
            yield
    except (HashbenchError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        hint = f"; {check} may say why" if check else ""
        raise JobFailure(
            f"{plugin} failed with {type(error).__name__}: {one_line(error) or 'no message'}{hint}. Fix it; its "
            f"traceback is in {_log(job, error)}."
        ) from error
    finally:
        data_folder.reset(token)


def _log(job: str, error: BaseException) -> str:
    """Write the traceback of an error, replacing that of the job's last failure; return the file."""
    path = data_dir() / "logs" / f"{re.sub('[^A-Za-z0-9._=-]+', '-', job)[-100:].lstrip('-.')}.log"
    try:
        write_text(path, "".join(traceback.format_exception(error)))
    except HashbenchError as unwritten:
        return f"no file: {one_line(unwritten).rstrip('.')}"
    return str(path)

"""Recipes of users' own datasets: the options of ``hashbench prepare``, and the SHA-256 of each file that it read.

A recipe is an object of JSON with ``options`` and ``sha256``, by option, and the ``protocol`` in words. It is part of a
dataset's file and is written beside its rows. Paths are relative to the current folder; of files outside, it has names.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import fields
from numbers import Integral
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, get_args

from hashbench._choices import DEVICES, LEAVE_OUT, NEIGHBOUR_TIES, OWN_RULES, TRUE_DISTANCES
from hashbench._validation import as_tuple
from hashbench.adapter import Options, OwnData
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, unknown_name
from hashbench.sources.array_files import split_spec
from hashbench.sources.features.transformers_models import PREFIX, is_model, parse
from hashbench.sources.images import image_files
from hashbench.store.inputs import reading

RECIPE = "prepared"  # key of ``Dataset.about``, in JSON
Recipe = Mapping[str, Any]
_NAMES = {"items": "from", "query_items": "query-from", "rule": "affinity", "n_queries": "queries", "n_train": "train"}
_FILES = ("from", "labels", "query-from", "query-labels", "train-index", "weights")
_CHOICES: dict[str, tuple[str, ...]] = {
    "affinity": OWN_RULES,
    "neighbour-ties": NEIGHBOUR_TIES,
    "true-distance": TRUE_DISTANCES,
    "leave-out": LEAVE_OUT,
    "device": DEVICES,
}
_TEXT = "a text in quotes"
_EXPECTED = {str: _TEXT, Path: _TEXT, int: "a whole number", bool: "true or false"}


class _Option(NamedTuple):
    """The field of `OwnData` or `Options` for an option of ``hashbench prepare``."""

    owner: type
    field: str
    kind: Any  # of its value, or of each of its values
    default: Any

    @property
    def is_repeatable(self) -> bool:
        return isinstance(self.default, tuple)


_OPTIONS = {
    _NAMES.get(field.name, field.name.replace("_", "-")): _Option(
        owner,
        field.name,
        next((kind for kind in get_args(field.type) if kind is not NoneType), field.type),
        field.default,
    )
    for owner in (OwnData, Options)
    for field in fields(owner)
    if field.name not in ("name", "source", "own", "on_progress")
}


# ---------------------------------------------------------------- options


def read_options(name: str, table: Any, what: str) -> tuple[OwnData, Options]:
    """Return the choices that prepare a dataset, from a table of options of ``hashbench prepare``."""
    if not isinstance(table, Mapping) or "from" not in table:
        raise HashbenchError(f"{what} must be a table of options of hashbench prepare, from among them, got {table!r}.")
    choices: dict[type, dict[str, Any]] = {OwnData: {}, Options: {}}
    for key, value in table.items():
        if key not in _OPTIONS:
            raise unknown_name("option", f"{what}.{key}", _OPTIONS, like=key)
        option = _OPTIONS[key]
        choices[option.owner][option.field] = _checked(key, value, f"{what}.{key}")
    return OwnData(name, **choices[OwnData]), Options(**choices[Options])


def own_data(name: str, items: str, choices: Mapping[str, Any]) -> OwnData:
    """Return the choices for a dataset of the user's items, from values in Python by field of `OwnData`."""
    keys = {option.field: key for key, option in _OPTIONS.items() if option.owner is OwnData}
    del keys["items"]
    if unknown := choices.keys() - keys.keys():
        raise unknown_name("option of your own dataset", min(unknown), keys)
    checked = {}
    for field, value in choices.items():
        kind = _OPTIONS[keys[field]].kind
        if value is None:
            continue
        if not isinstance(value, {int: Integral, str: str | Path | list | tuple}.get(kind, kind)):
            raise HashbenchError(f"{field} is {value!r}, expected {kind.__name__}.")
        if isinstance(value, Path) or (isinstance(value, Integral) and not isinstance(value, bool)):
            value = kind(value)
        checked[field] = _checked(keys[field], value, field)
    return OwnData(name, items, **checked)


def _checked(key: str, value: Any, what: str) -> Any:
    """Return the value of an option, a tuple if the option is repeatable; refuse what it cannot take."""
    option, least = _OPTIONS[key], 0 if key == "seed" else 1
    values = as_tuple(value) if option.is_repeatable else (value,)
    for each in values:
        if not (isinstance(each, str) if option.kind is Path else type(each) is option.kind):
            several = ", or a list of such" if option.is_repeatable else ""
            raise HashbenchError(f"{what} must be {_EXPECTED[option.kind]}{several}, got {value!r}.")
        if option.kind is int and not least <= each < 2**32:
            raise HashbenchError(f"{what} is {each}, expected {least} to {2**32 - 1}.")
        if key in _CHOICES and each not in _CHOICES[key]:
            raise unknown_name(what, each, _CHOICES[key])
    return values if option.is_repeatable else option.kind(value)


def options_of(own: OwnData, options: Options) -> dict[str, Any]:
    """Return the options of ``hashbench prepare`` that affect a dataset and differ from their defaults, as in JSON."""
    chosen = {}
    for key, option in _OPTIONS.items():
        value = getattr(own if option.owner is OwnData else options, option.field)
        if value != option.default and key != "device":
            value = sorted({*as_tuple(value)}) if option.is_repeatable else value
            chosen[key] = str(value) if isinstance(value, Path) else value
    return chosen


def recorded(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with paths relative to the current folder; of files outside, with their names."""
    named = dict(options)
    for key in (key for key in _FILES if key in options):
        path, array = split_spec(options[key])
        named[key] = f"{_recorded_path(path)}{f':{array}' if array else ''}"
    if is_model(kind := options.get("features", "")) and (model := parse(kind)).folder:
        named["features"] = f"{PREFIX}{_recorded_path(model.folder)}{f':{model.pooling}' if model.pooling else ''}"
    return named


def _recorded_path(path: Path) -> str:
    here = Path.cwd()
    whole = here / path
    is_inside = whole.is_relative_to(here) and ".." not in path.parts
    return whole.relative_to(here).as_posix() if is_inside else path.resolve().name


def files_of(options: Mapping[str, Any]) -> dict[str, tuple[Path, list[Path]]]:
    """Return the file or folder of each option that names one, with the files in it; leave out what is missing."""
    paths = {key: split_spec(options[key])[0] for key in _FILES if key in options}
    if is_model(kind := options.get("features", "")) and (folder := parse(kind).folder):
        paths["features"] = folder
    found = {}
    for key, path in paths.items():
        with reading(path):
            if path.is_dir():
                inside = image_files(path) if key == "from" else filter(Path.is_file, path.rglob("*"))
                found[key] = path, sorted(inside)
            elif path.is_file():
                found[key] = path, [path]
    return found


# ---------------------------------------------------------------- recipes


def make_recipe(own: OwnData, options: Options) -> dict[str, Any]:
    """Return the recipe of a dataset that is to be prepared, without its protocol."""
    given = options_of(own, options)
    return {"options": recorded(given), "sha256": _digests(given)}


def recipe_of(dataset: Dataset) -> dict[str, Recipe]:
    """Return the recipe of the user's own dataset, or of the one it is a part of, by its fingerprint; or nothing."""
    text = dataset.about.get(RECIPE)
    return {dataset.part_of or dataset.fingerprint: json.loads(text)} if text else {}


def command_of(name: str, recipe: Recipe) -> str:
    """Return the command that prepares a dataset by its recipe."""
    words = ["hashbench", "prepare"]
    for key, value in recipe["options"].items():
        for each in as_tuple(value):
            words += [f"--{key}"] if each is True else [f"--{key}", str(each)]
    return shlex.join([*words, "--name", name])


def differences(recipe: Recipe, other: Recipe) -> list[str]:
    """Describe how a recipe differs from another: files of other content, and other options."""
    options, other_options = recipe["options"], other["options"]
    both = options.keys() & other_options.keys() & recipe["sha256"].keys()
    files = [
        f"{options[key]} (--{key}) is another file"
        for key in options
        if key in both and recipe["sha256"][key] != other["sha256"].get(key)
    ]
    pairs = [(key, options.get(key), other_options.get(key)) for key in options | other_options if key not in both]
    return files + [
        f"--{key} is {_shown(value)}, not {_shown(before)}" for key, value, before in pairs if value != before
    ]


def _shown(value: Any) -> str:
    return "its default" if value is None else " and ".join(map(str, as_tuple(value)))


def lacking_here(recipe: Recipe) -> list[str]:
    """List the files of a recipe that are missing in the current folder, or are others there."""
    here = _digests(recipe["options"])
    return [
        f"{recipe['options'][key]} is {'another file' if key in here else 'missing'} here"
        for key in {**recipe["sha256"], **here}
        if here.get(key) != recipe["sha256"].get(key)
    ]


def choices_here(name: str, recipes: Mapping[str, Recipe]) -> tuple[OwnData, Options]:
    """Return the choices that prepare a missing dataset by its only recipe, from the files in the current folder."""
    commands = " or ".join(command_of(name, recipe) for recipe in recipes.values())
    if len(recipes) > 1:
        raise HashbenchError(
            f"{name} is not prepared here, and the results have rows of {len(recipes)} contents of it. Prepare one of "
            f"them: {commands}."
        )
    (recipe,) = recipes.values()
    if lacking := lacking_here(recipe):
        raise HashbenchError(
            f"{name} is not prepared here, and of the files of its rows {', '.join(lacking)}. Prepare it from these: "
            f"{commands}."
        )
    return read_options(name, recipe["options"], f"the recipe of {name}")


def _digests(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the SHA-256 of the file of each option; of a folder, that of the digests and paths of its files."""
    return {key: _sha256(path, files) for key, (path, files) in files_of(options).items()}


def _sha256(path: Path, files: list[Path]) -> str:
    digests = []
    for file in files:
        with reading(file), file.open("rb") as stream:
            digests.append(hashlib.file_digest(stream, "sha256").hexdigest())
    if files == [path]:
        return digests[0]
    lines = (f"{digest}  {file.relative_to(path).as_posix()}\n" for digest, file in zip(digests, files, strict=True))
    return hashlib.sha256("".join(lines).encode()).hexdigest()

"""Prepared datasets: where they lie, made when asked for, found again by name."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py

from hashbench import affinity, bits, distances, storage
from hashbench import dataset as dataset_module
from hashbench.adapter import DatasetAdapter, Options, Own
from hashbench.dataset import Dataset, check_name
from hashbench.errors import HashbenchError, unknown_name
from hashbench.files import data_dir, locked
from hashbench.registry import dataset_names, get_dataset, source_digest

_SUFFIXES = (".h5", ".hdf5")  # of dataset files
_OWN = {"arrays", "ann-benchmarks"}  # adapters of users' own files


def dataset_path(spec: str) -> Path:
    """Tell where a prepared dataset lies.

    Parameters
    ----------
    spec : str
        Its name, or ``NAME:FEATURES``.

    Returns
    -------
    Path
        Inside the data folder; need not exist.
    """
    return data_dir() / "datasets" / f"{spec.replace(':', '-')}.h5"


def prepare(spec: str, options: Options | None = None, *, force: bool = False) -> tuple[Dataset, Path, bool]:
    """Make a named dataset, or find it again.

    Parameters
    ----------
    spec : str
        A known name, or ``NAME:FEATURES``.
    options : Options, optional
        Where the data come from and so on. What is left open stays as it was chosen the last time.
    force : bool, default=False
        Make it even if it is there.

    Returns
    -------
    dataset : Dataset
        Its content.
    path : Path
        Its file.
    is_new : bool
        Whether it was made now.
    """
    name, _, kind = spec.partition(":")
    options = options or Options()
    adapter = get_dataset(name, replace(options, features=options.features or kind or None))
    _demand_known_kind(adapter, name)
    path = dataset_path(name if adapter.kind == adapter.features[0] else f"{name}:{adapter.kind}")
    made_by = _made_by(adapter)
    with locked(path):
        found = storage.read_attributes(path)
        before = json.loads(found.get("choices", "{}"))
        choices = before | _chosen(adapter.options)
        if _is_made_by(found, made_by) and choices == before and not force:
            return storage.read_dataset(path), path, False
        for key in ("source", "weights"):
            choices[key] = Path(choices[key]) if key in choices else None
        adapter.options = replace(adapter.options, **choices)
        dataset = adapter.prepare()
        storage.write_dataset(dataset, path, made_by, _chosen(adapter.options))
    return dataset, path, True


def find_prepared() -> tuple[list[str], dict[str, str]]:
    """Find the known datasets that cannot be made out of nothing: those that are prepared, and the others.

    Returns
    -------
    prepared : list of str
        Names, and ``NAME:FEATURES``, whose files are up to date.
    missing : dict of str to str
        The other names, each with the command that would add it and what that needs.
    """
    prepared: list[str] = []
    missing: dict[str, str] = {}
    for name in sorted({*dataset_names()} - _OWN):
        try:
            adapter = get_dataset(name)
        except HashbenchError:
            continue  # a broken plugin; whoever names it is told
        if not adapter.needs:
            continue
        made_by = _made_by(adapter)
        specs = [name, *(f"{name}:{kind}" for kind in adapter.features[1:])]
        is_made = {spec: storage.read_attributes(dataset_path(spec)) for spec in specs}
        found = [spec for spec in specs if _is_made_by(is_made[spec], made_by)]
        stale = [spec for spec in specs if is_made[spec] and spec not in found]
        prepared += found
        for spec in stale or ([] if found else [name]):
            kind = spec.partition(":")[2]
            command = f"hashbench prepare {name}{f' --features {kind}' if kind else ''}"
            missing[spec] = f"{command} ({'made by another version' if stale else f'needs {adapter.needs}'})"
    return prepared, missing


def prepare_own(own: Own, options: Options) -> tuple[Dataset, Path]:
    """Make a dataset of the user's own files; it is made anew each time, since these may have changed.

    Parameters
    ----------
    own : Own
        Files, labels, split.
    options : Options
        Features, weights and so on, for folders of images.

    Returns
    -------
    dataset : Dataset
        Its content.
    path : Path
        Its file.

    Raises
    ------
    HashbenchError
        If the name is a known dataset's, or the files do not make a dataset.
    """
    check_name(own.name)
    if any(own.name == name or own.name.startswith(f"{name}-") for name in dataset_names()):
        raise HashbenchError(f"{own.name!r} is, or begins like, the name of a built-in dataset; choose another --name.")
    if own.name.endswith(_SUFFIXES):
        raise HashbenchError(f"{own.name!r} reads like a file; choose a --name without {Path(own.name).suffix}.")
    adapter = get_dataset("ann-benchmarks" if _is_ann_benchmark(own) else "arrays", replace(options, own=own))
    _demand_known_kind(adapter, own.name)
    dataset = adapter.prepare()
    path = dataset_path(own.name)
    with locked(path):
        storage.write_dataset(dataset, path, made_by="own")
    return dataset, path


def _demand_known_kind(adapter: DatasetAdapter, name: str) -> None:
    """Refuse features that a dataset does not have."""
    if adapter.kind not in adapter.features:
        raise unknown_name("feature kind", f"{name}:{adapter.kind}", adapter.features, like=adapter.kind)


def _made_by(adapter: DatasetAdapter) -> str:
    return source_digest(type(adapter), affinity, bits, distances, dataset_module)


def _is_made_by(found: Mapping[str, Any], made_by: str) -> bool:
    return (found.get("made_by"), found.get("schema_version")) == (made_by, storage.SCHEMA_VERSION)


def _is_ann_benchmark(own: Own) -> bool:
    """Whether the items are an HDF5 file with the arrays of ann-benchmarks."""
    path = Path(own.items)
    if not (path.is_file() and h5py.is_hdf5(path)):
        return False
    try:
        with h5py.File(path, "r") as file:
            return {"train", "test", "neighbors"} <= set(file)
    except OSError:  # cut short; whoever reads it as any other file says so
        return False


def _chosen(options: Options) -> dict[str, Any]:
    """Give what the user decided, as a dataset file remembers it."""
    chosen = {key: getattr(options, key) for key in ("source", "weights", "image_size")}
    return {key: str(value.resolve()) if isinstance(value, Path) else value for key, value in chosen.items() if value}


def load_dataset(spec_or_path: str) -> tuple[Dataset, bool]:
    """Open a dataset file, or prepare a named dataset if need be.

    Parameters
    ----------
    spec_or_path : str
        A known name, ``NAME:FEATURES``, the name of a dataset that the user prepared from own files, or the path of
        a dataset file.

    Returns
    -------
    dataset : Dataset
        Its content.
    is_new : bool
        Whether it was made now.

    Raises
    ------
    HashbenchError
        If it is none of these.
    """
    name, _, kind = spec_or_path.partition(":")
    if name in dataset_names():
        others = sorted(path.stem.removeprefix(f"{name}-") for path in dataset_path(name).parent.glob(f"{name}-*.h5"))
        others = [other for other in others if other in get_dataset(name).features]
        if not kind and others and not dataset_path(name).exists():
            raise HashbenchError(
                f"dataset {name!r} is prepared with features {', '.join(others)} alone. Say which ones you mean: "
                f"{name}:{others[0]} (or {name}:{get_dataset(name).features[0]} to prepare those)."
            )
        dataset, _, is_new = prepare(spec_or_path)
        return dataset, is_new
    path = Path(spec_or_path)
    if path.suffix in _SUFFIXES or path.is_file():
        dataset = storage.read_dataset(path)
        _demand_same_content(dataset, path)
        return dataset, False
    if dataset_path(spec_or_path).is_file():
        return storage.read_dataset(dataset_path(spec_or_path)), False
    raise unknown_name("dataset", spec_or_path, [*dataset_names(), *_own_names()])


def _own_names() -> list[str]:
    """Names of the datasets that users prepared from own files."""
    stems = sorted(path.stem for path in (data_dir() / "datasets").glob("*.h5"))
    built_in = dataset_names()
    return [stem for stem in stems if not any(stem == name or stem.startswith(f"{name}-") for name in built_in)]


def _demand_same_content(dataset: Dataset, path: Path) -> None:
    """Refuse a file that takes the name of a named dataset, but holds something else."""
    if dataset.name not in dataset_names():
        return
    for known in (data_dir() / "datasets").glob(f"{dataset.name}*.h5"):
        found = storage.read_attributes(known)
        if (found.get("name"), found.get("features_name")) == (dataset.name, dataset.features_name) and found.get(
            "fingerprint"
        ) != dataset.fingerprint:
            raise HashbenchError(
                f"{path} calls itself {dataset.name!r} but holds {dataset.fingerprint}, and the dataset of that name "
                f"holds {found.get('fingerprint')}. Give yours another name."
            )

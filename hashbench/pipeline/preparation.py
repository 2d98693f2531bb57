"""Prepared datasets: where their files are, whether they are current, and preparing, finding and loading them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import h5py

from hashbench._plugins import same_folder
from hashbench._typing import Progress, silent
from hashbench._validation import check_name
from hashbench.adapter import Options, OwnData
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.recipes import RECIPE, files_of, make_recipe, options_of, recorded
from hashbench.registry import (
    dataset_class,
    dataset_names,
    features_kind,
    get_dataset,
    is_dataset,
    modules_of,
    offers,
    resolve_dataset,
    unknown_plugin,
)
from hashbench.sources.array_files import split_spec
from hashbench.sources.features import extraction
from hashbench.sources.features.transformers_models import is_model, parse
from hashbench.sources.inspection import WARNING, with_warning
from hashbench.sources.splits import leave_out
from hashbench.store import hdf5
from hashbench.store.artifact import SCHEMA_VERSION, cached, read_record
from hashbench.store.files import HDF5_SUFFIXES, data_dir, identities, locked
from hashbench.store.inputs import reading, resolved
from hashbench.store.provenance import DATASET_VERSION, digest, digests
from hashbench.unseen import UnseenClasses, check_fold, split_name

OF_USERS = {"arrays", "ann-benchmarks"}  # adapters of users' own files


def dataset_path(spec: str) -> Path:
    """Return the data folder's file of a prepared dataset, ``NAME`` or ``NAME:FEATURES``; it need not exist."""
    return data_dir() / "datasets" / f"{stem_of(spec)}.h5"


def stem_of(spec: str) -> str:
    """Return ``NAME`` or ``NAME:FEATURES`` as part of a file name."""
    name, colon, kind = spec.partition(":")
    if is_model(kind):
        kind = parse(kind).stem
    return f"{name}-{kind}" if colon else name


def _with_folder(spec: str, options: Options) -> tuple[str, Options]:
    """Shorten the features ``hf:FOLDER`` to what rows record, and make the folder the weights of the options."""
    name, _, kind = spec.partition(":")
    if not is_model(kind):
        return spec, options
    model = parse(kind)
    return f"{name}:{model.short}", options if model.folder is None else replace(options, weights=model.folder)


# ---------------------------------------------------------------- current or not


def _current(spec_or_path: str) -> dict[str, Any] | None:
    """Return the record of a dataset's file; None if it is missing, or its version or sources have changed."""
    name = spec_or_path.partition(":")[0]
    if not is_known(name):
        path = _file_of(spec_or_path)
        attributes = read_record(path)
        if attributes.get("hashbench") != "dataset":
            hdf5.read_dataset(path)  # raises what is wrong
        return attributes
    spec = resolve_dataset(spec_or_path)[2] if is_dataset(name) else spec_or_path
    record = read_record(dataset_path(spec))
    stamps = _stamps(spec, record.get("chosen", {}))
    is_same = stamps is not None and stamps.items() <= record.get("stamps", {}).items()
    return record if is_same and record.get("versions") == _versions_of(name) else None


def _versions_of(name: str) -> str:
    """Return the version of the code that prepares a dataset, with the digests of a plug-in's files."""
    modules = () if split_name(name)[1] else modules_of(dataset_class(name))
    plugin = digests("dataset", split_name(name)[0], modules)
    return canonical_json({"dataset": DATASET_VERSION, "schema": SCHEMA_VERSION, **plugin})


def _chosen(options: Options) -> dict[str, Any]:
    """Return what the user chose, as a dataset file records it."""
    chosen = {key: getattr(options, key) for key in ("source", "weights", "image_size")}
    return {key: value if key == "image_size" else str(resolved(value)) for key, value in chosen.items() if value}


def _stamps(spec: str, choices: Mapping[str, Any]) -> dict[str, str] | None:
    """Digest the existing files that a dataset is made of, by sizes and times, or the dataset that it is cut out of.

    None if the latter is not current.
    """
    name = spec.partition(":")[0]
    base, protocol = split_name(name)
    if protocol:
        whole = _current(base + spec[len(name) :])
        return None if whole is None else {"base": whole["fingerprint"]}
    sources = {"source": data_dir() / "sources" / name, **choices}
    stamps = {}
    for key in ("source", "weights"):
        if key in sources:
            path = Path(sources[key])
            with reading(path):
                files = sorted(path.iterdir()) if path.is_dir() else [path]
                stamps[key] = _stamp_of(file for file in files if file.is_file())
    return {key: stamp for key, stamp in stamps.items() if stamp}


def _stamp_of(files: Iterable[Path]) -> str:
    states = [(file.name, file.stat()) for file in files]
    stamp = [[name, state.st_size, state.st_mtime_ns, state.st_ctime_ns] for name, state in states]
    return digest(stamp) if stamp else ""


# ---------------------------------------------------------------- preparing


def prepare(spec: str, options: Options | None = None, *, force: bool = False) -> tuple[Dataset, Path, str]:
    """Prepare a dataset, ``NAME`` or ``NAME:FEATURES``, unless its file is current.

    Returns it, its file, and what was done in words: "" if the file was current. Choices that the options leave open
    are those of the last time, unless forced.
    """
    options = options or Options()
    name = spec.partition(":")[0]
    protocol = split_name(name)[1]
    if is_dataset(name):
        _, kind, spec = resolve_dataset(spec, options.features)
        if protocol is None:
            _refuse_useless(name, kind, options)
            spec, options = _with_folder(spec, options)
    elif protocol is not None:
        if _chosen(options):
            raise HashbenchError(
                f"{name!r} is made of a dataset of your own files; leave out --source, --weights and --image-size."
            )
    elif dataset_path(spec).exists():
        raise HashbenchError(
            f"{spec!r} is a dataset of your own files. To prepare it again, name them: hashbench prepare --name {spec} "
            "--from ITEMS."
        )
    else:
        resolve_dataset(spec)  # raises that it is unknown
    path = dataset_path(spec)
    with locked(path):
        remembered = read_record(path).get("chosen", {})
        choices = _chosen(options) if force else remembered | _chosen(options)
        is_current = choices == remembered and _current(spec) is not None

        def make() -> Dataset:
            if protocol is None:
                dataset, record = _make(spec, choices, options)
            else:
                dataset, record = _cut_out(spec, protocol, options, force=force)
            dataset = with_warning(dataset)
            hdf5.write_dataset(dataset, path, {"versions": _versions_of(name), **record})
            return dataset

        dataset, words = cached(
            path, "dataset", lambda record: is_current, hdf5.dataset_of, make, force=force, done="prepared"
        )
    return dataset, path, words


def _make(spec: str, choices: Mapping[str, Any], options: Options) -> tuple[Dataset, dict[str, Any]]:
    """Prepare a known dataset by its adapter; return it with the choices and stamps to record."""
    name, kind, _ = resolve_dataset(spec)
    stamps = _stamps(spec, choices)  # before the files are read, which may change meanwhile
    paths: dict[str, Path] = {key: Path(choices[key]) for key in ("source", "weights") if key in choices}
    for key, path in paths.items():
        if getattr(options, key) is None and not path.exists():
            option = "--features hf:FOLDER" if is_model(kind) and key == "weights" else f"--{key}"
            raise HashbenchError(
                f"there is no {path}, which you chose earlier. Give {option} again, or --force to start over."
            )
    resolved_options: dict[str, Any] = {**choices, **paths, "features": kind}
    adapter = get_dataset(name, replace(options, **resolved_options))
    with same_folder():
        dataset = adapter.prepare()
    if dataset.name != name:
        raise HashbenchError(
            f"dataset plugin {name!r} makes a dataset called {dataset.name!r}. Call that {name!r}, too."
        )
    return dataset, {"chosen": choices, "stamps": stamps}


def _cut_out(spec: str, protocol: UnseenClasses, options: Options, *, force: bool) -> tuple[Dataset, dict[str, Any]]:
    """Cut a dataset with unseen classes out of the whole one; return it with the stamps to record."""
    name = spec.partition(":")[0]
    base = split_name(name)[0]
    whole_spec = base + spec[len(name) :]
    if is_dataset(base):
        whole, _, _ = prepare(whole_spec, options, force=force)
    else:
        whole = hdf5.read_dataset(_file_of(whole_spec))
    return leave_out(whole, protocol), {"stamps": {"base": whole.fingerprint}}


def prepare_own(own: OwnData, options: Options) -> tuple[Dataset, Path]:
    """Prepare a dataset of the user's own files, every time, since these may have changed; return it with its file.

    Refuses the name of a known dataset, and that of a prepared dataset whose file is among the sources.
    """
    check_name(own.name, "a dataset's name")
    path = dataset_path(own.name)
    for spec in filter(None, (own.items, own.labels, own.query_items, own.query_labels, own.train_index)):
        source, _ = split_spec(spec)
        with reading(source):
            if identities([path]) & identities([source]):
                raise HashbenchError(f"{spec} is read and would be overwritten; choose another --name.")
    folded = own.name.casefold()
    if any(folded == name or folded.startswith(f"{name}-") for name in map(str.casefold, dataset_names())):
        raise HashbenchError(f"{own.name!r} is, or begins like, the name of a built-in dataset; choose another --name.")
    if split_name(own.name)[1]:
        raise HashbenchError(f"{own.name!r} reads like a dataset with unseen classes; choose another --name.")
    if own.name.endswith(HDF5_SUFFIXES):
        raise HashbenchError(f"{own.name!r} reads like a file; choose a --name without {Path(own.name).suffix}.")
    name = _adapter_of(own)
    kinds = dataset_class(name).features
    kind = options.features or kinds[0]
    if not offers(kinds, kind):
        raise unknown_name("feature kind", f"{own.name}:{kind}", kinds, like=kind)
    _refuse_useless(name, kind, options)
    stamps, recipe = _own_stamps(own, options), make_recipe(own, options)  # before files are read that may change
    spec, options = _with_folder(f"{own.name}:{kind}", options)
    options = replace(options, features=spec.partition(":")[2])
    dataset = with_warning(get_dataset(name, replace(options, own=own)).prepare())
    recipe["protocol"] = dataset.about.get("protocol", "")
    dataset = replace(dataset, about={**dataset.about, RECIPE: canonical_json(recipe)})
    with locked(path):
        record = {"chosen": _chosen(options), "stamps": stamps, "versions": _versions_of(name)}
        hdf5.write_dataset(dataset, path, record)
    return dataset, path


def is_missing(name: str) -> bool:
    """Return whether a name can only be that of a dataset of the user's own files, which is not prepared."""
    is_file = name.endswith(HDF5_SUFFIXES) or Path(name).is_file()
    return not (is_file or is_known(name) or dataset_path(name).exists())


def is_current(own: OwnData, options: Options) -> bool:
    """Return whether a dataset of the user's own files is prepared with these options, and its files are unchanged."""
    record = read_record(dataset_path(own.name))
    recipe = json.loads(record.get("about", {}).get(RECIPE, "{}"))
    if recipe.get("options") != recorded(options_of(own, options)):
        return False
    parts = {"stamps": _own_stamps(own, options), "versions": _versions_of(_adapter_of(own))}
    return all(record.get(key) == part for key, part in parts.items())


def _own_stamps(own: OwnData, options: Options) -> dict[str, str]:
    """Digest the sizes and times of the user's own files, by the option that names them."""
    return {option: _stamp_of(files) for option, (_, files) in files_of(options_of(own, options)).items()}


def _adapter_of(own: OwnData) -> str:
    """Return the adapter for a user's own files: items may be an HDF5 file with the arrays of ann-benchmarks."""
    path = Path(own.items)
    with suppress(OSError, RuntimeError):  # no HDF5, or cut short, which is refused when it is read as any other file
        if path.is_file():
            with h5py.File(path, "r") as file:
                return "ann-benchmarks" if {"train", "test", "neighbors"} <= set(file) else "arrays"
    return "arrays"


def _refuse_useless(name: str, kind: str, options: Options) -> None:
    """Refuse options that a dataset with such features cannot use."""
    adapter = dataset_class(name)
    useful = {*adapter.takes}
    if kind == "features" or is_model(kind):
        useful -= {"weights", "image_size"}
    elif kind in extraction.KINDS and kind not in extraction.NETWORKS:
        useful -= {"weights"}
    if "weights" in useful or is_model(kind):
        useful.add("device")
    for key in ("source", "weights", "image_size", "device"):
        if getattr(options, key) not in (None, "auto") and key not in useful:
            raise HashbenchError(
                f"{name}:{kind} does not use --{key.replace('_', '-')}; leave it out"
                f"{', or choose other --features' if len(adapter.features) > 1 else ''}."
            )


# ---------------------------------------------------------------- finding and loading


def load_dataset(spec_or_path: str, on_progress: Progress = silent) -> tuple[Dataset, str]:
    """Load a dataset, preparing it if necessary; return it, and what was done in words: "" if it was current.

    Takes ``NAME``, ``NAME:FEATURES``, the name of a dataset of the user's own files, or the path of a dataset file.
    """
    name, _, kind = spec_or_path.partition(":")
    if is_known(name):
        _refuse_unclear(name, kind)
        dataset, _, words = prepare(spec_or_path, Options(on_progress=on_progress))
        return dataset, words
    path = _file_of(spec_or_path)
    dataset = hdf5.read_dataset(path)
    _refuse_other_content(dataset, path)
    return dataset, ""


def is_known(name: str) -> bool:
    """Return whether a dataset can be prepared by this name alone: a known one, or one with unseen classes."""
    return is_dataset(name) or split_name(name)[1] is not None


def _refuse_unclear(name: str, kind: str) -> None:
    """Refuse a dataset without its kind of features if only others than the first are prepared."""
    base = split_name(name)[0]
    if kind or not is_dataset(base):
        return
    kinds = dataset_class(base).features
    for prefix in dict.fromkeys((name, base)):
        specs = [f"{prefix}:{kind}" for kind in sorted(kinds)]
        specs = [spec for spec in specs if dataset_path(spec).exists()] + _prepared_models(prefix)
        others = [spec.partition(":")[2] for spec in specs]
        if others and not dataset_path(prefix).exists():
            raise HashbenchError(
                f"dataset {prefix!r} is prepared only with features {', '.join(others)}. Name the ones you mean: "
                f"{name}:{others[0]} (or {name}:{kinds[0]} to prepare those)."
            )


def _refuse_other_content(dataset: Dataset, path: Path) -> None:
    """Refuse a file with the name of a known dataset but other content."""
    if dataset.name not in dataset_names():
        return
    for known_path in dataset_path(dataset.name).parent.glob(f"{dataset.name}*.h5"):
        known = read_record(known_path)
        is_alike = (known.get("name"), known.get("features_name")) == (dataset.name, dataset.features_name)
        if is_alike and known.get("fingerprint") != dataset.fingerprint:
            raise HashbenchError(
                f"{path} calls itself {dataset.name!r} but holds {dataset.fingerprint}, and the dataset of that name "
                f"holds {known.get('fingerprint')}. Give yours another name."
            )


def _file_of(spec_or_path: str) -> Path:
    """Return the file of a user's dataset, given as a path or as the name of a prepared one; refuse unknown names."""
    path = Path(spec_or_path)
    if path.suffix in HDF5_SUFFIXES or path.is_file():
        return path
    if dataset_path(spec_or_path).is_file():
        return dataset_path(spec_or_path)
    check_fold(spec_or_path)
    built_in = dataset_names()
    stems = sorted(path.stem for path in (data_dir() / "datasets").glob("*.h5"))
    own_names = [
        stem
        for stem in stems
        if not split_name(stem)[1] and not any(stem == name or stem.startswith(f"{name}-") for name in built_in)
    ]
    raise unknown_plugin("dataset", spec_or_path, [*built_in, *own_names])


@dataclass(frozen=True)
class PreparedDataset:
    """What identifies a prepared dataset, read only from its file's attributes."""

    name: str
    features_name: str
    fingerprint: str
    warning: str  # about copies; empty if there is none


def find_dataset(spec_or_path: str) -> PreparedDataset | None:
    """Find a dataset as `load_dataset` does, but prepare nothing: None if it is not prepared or not current."""
    name, _, kind = spec_or_path.partition(":")
    if is_known(name):
        _refuse_unclear(name, kind)
    attributes = _current(spec_or_path)
    if attributes is None:
        return None
    name, features_name, fingerprint = (str(attributes.get(key)) for key in ("name", "features_name", "fingerprint"))
    warning = str(attributes.get("about", {}).get(WARNING, ""))
    return PreparedDataset(name, features_name, fingerprint, warning)


def find_unprepared() -> dict[str, str]:
    """Return how to prepare each known dataset that needs files or a download and that this code has not prepared.

    Keys are ``NAME`` or, for outdated features, ``NAME:FEATURES``. Values are the command, and what it needs or that
    another version made the dataset.
    """
    missing: dict[str, str] = {}
    for name in sorted({*dataset_names()} - OF_USERS):
        try:
            cls = dataset_class(name)
        except HashbenchError:
            continue  # a broken plugin, which is reported where it is named
        if not cls.needs:
            continue
        specs = [name if kind == cls.features[0] else f"{name}:{kind}" for kind in cls.features]
        specs += _prepared_models(name)
        made_by = {spec: read_record(dataset_path(spec)).get("versions") for spec in specs}
        current = [spec for spec in specs if made_by[spec] == _versions_of(name)]
        stale = [spec for spec in specs if made_by[spec] and spec not in current]
        for spec in stale or ([] if current else [name]):
            kind = spec.partition(":")[2]
            command = f"hashbench prepare {name}{f' --features {kind}' if kind else ''}"
            missing[spec] = f"{command} ({'made by another version' if stale else f'needs {cls.needs}'})"
    return missing


def _prepared_models(name: str) -> list[str]:
    """List a dataset's prepared features of transformers' models, as ``NAME:hf:MODEL``."""
    paths = sorted((data_dir() / "datasets").glob(f"{name}-hf-*.h5"))
    return [f"{name}:{features_kind(str(read_record(path).get('features_name')))}" for path in paths]


def find_by_content(fingerprint: str, first: Sequence[Path] = ()) -> Path | None:
    """Find the file of a prepared dataset by its content's fingerprint, among ``first`` before the data folder."""
    paths = [*first, *sorted((data_dir() / "datasets").glob("*.h5"))]
    return next((path for path in paths if read_record(path).get("fingerprint") == fingerprint), None)


def results_name(spec_or_path: str) -> str:
    """Return the name under which the results of a dataset, as `load_dataset` takes it, are kept."""
    path = Path(spec_or_path)
    stored = read_record(path).get("name") if path.is_file() else None
    return str(stored or spec_or_path.partition(":")[0])

"""Prepared datasets: where they lie, made when asked for, found again by name."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import h5py

from hashbench._typing import Progress, silent
from hashbench._validation import check_name
from hashbench.adapter import Options, OwnData
from hashbench.dataset import Dataset
from hashbench.errors import Damaged, HashbenchError, unknown_name
from hashbench.registry import dataset_class, dataset_names, get_dataset, is_dataset, modules_of, resolve_dataset
from hashbench.sources.array_files import split_spec
from hashbench.sources.features import extraction
from hashbench.sources.inspection import WARNING, with_warning
from hashbench.sources.unseen import leave_out
from hashbench.store import hdf5
from hashbench.store.files import HDF5_SUFFIXES, data_dir, is_one_of, locked
from hashbench.store.inputs import reading, resolved
from hashbench.store.provenance import code_that_decides
from hashbench.unseen import UnseenClasses, check_fold, split_name

_AGAIN = "re-prepared damaged"
_REMEMBERED = {"source": str, "weights": str, "image_size": int, "stamps": dict}
OF_USERS = {"arrays", "ann-benchmarks"}  # adapters of users' own files


def dataset_path(spec: str) -> Path:
    """Tell where a prepared dataset, ``NAME`` or ``NAME:FEATURES``, lies in the data folder; it need not exist."""
    return data_dir() / "datasets" / f"{spec.replace(':', '-')}.h5"


def prepare(spec: str, options: Options | None = None, *, force: bool = False) -> tuple[Dataset, Path, str]:
    """Make a dataset, ``NAME`` or ``NAME:FEATURES``, or find it again.

    Gives it, its file, and in words whether it was made now: nothing if it was found.

    What the options leave open stays as it was chosen the last time, unless forced.
    """
    options = options or Options()
    base, protocol = split_name(spec.partition(":")[0])
    if protocol:
        return _prepare_unseen(spec, base, protocol, options, force=force)
    if spec.partition(":")[0] not in dataset_names() and dataset_path(spec).exists():
        raise HashbenchError(
            f"{spec!r} is your own data, and prepared. To make it anew, say from what: hashbench prepare --name {spec} "
            "--from ITEMS."
        )
    name, kind, spec = resolve_dataset(spec, options.features)
    _refuse_useless(name, kind, options)
    path, code = dataset_path(spec), _code_of(name)
    with locked(path):
        found = hdf5.read_attributes(path)
        remembered = _remembered(found)
        stamps = remembered.pop("stamps", {})
        how = "prepared" if found or not path.exists() else _AGAIN
        choices = _chosen(options) if force else remembered | _chosen(options)
        now = _stamps(name, choices)
        is_same = choices == remembered and _agree(now, stamps)
        if _is_made_by(found, code) and is_same and not force:
            try:
                return hdf5.read_dataset(path), path, ""
            except Damaged:
                how = _AGAIN
        paths: dict[str, Path] = {key: Path(choices[key]) for key in ("source", "weights") if key in choices}
        for key, chosen in paths.items():
            if getattr(options, key) is None and not chosen.exists():
                raise HashbenchError(
                    f"there is no {chosen} (chosen earlier; give --{key} again, or --force to start afresh)."
                )
        settled: dict[str, Any] = {**choices, **paths, "features": kind}
        dataset = get_dataset(name, replace(options, **settled)).prepare()
        if dataset.name != name:
            raise HashbenchError(
                f"dataset plugin {name!r} makes a dataset called {dataset.name!r}; let it use its own."
            )
        dataset = with_warning(dataset)
        hdf5.write_dataset(dataset, path, code, choices | {"stamps": now})
    return dataset, path, how


def _prepare_unseen(
    spec: str, base: str, protocol: UnseenClasses, options: Options, *, force: bool
) -> tuple[Dataset, Path, str]:
    """Make a dataset with unseen classes out of the prepared one, which is prepared if need be, or find it again."""
    if is_dataset(base):
        spec = resolve_dataset(spec, options.features)[2]
    elif _chosen(options):
        raise HashbenchError(
            f"{base!r} is your own data, and prepared; leave out --source, --weights and --image-size."
        )
    of_base, path, how = base + spec[len(protocol.name_of(base)) :], dataset_path(spec), "prepared"
    with locked(path):
        if not force and not _chosen(options) and _current(spec):
            try:
                return hdf5.read_dataset(path), path, ""
            except Damaged:
                how = _AGAIN
        whole = prepare(of_base, options, force=force)[0] if is_dataset(base) else hdf5.read_dataset(_file_of(of_base))
        dataset = with_warning(leave_out(whole, protocol))
        hdf5.write_dataset(dataset, path, _code_of_unseen(), {"stamps": {"base": whole.fingerprint}})
    return dataset, path, how


def _code_of_unseen() -> str:
    return code_that_decides("hashbench.sources.unseen")


def _remembered(found: Mapping[str, Any]) -> dict[str, Any]:
    """Read what was chosen the last time; nothing if it cannot be read."""
    try:
        remembered: Any = json.loads(found.get("choices", "{}"))
    except (TypeError, ValueError, RecursionError):
        return {}
    is_ours = isinstance(remembered, dict) and all(
        isinstance(value, _REMEMBERED.get(key, ())) for key, value in remembered.items()
    )
    return remembered if is_ours else {}


def find_prepared() -> tuple[list[str], dict[str, str]]:
    """Find the known datasets that cannot be made out of nothing: those that are prepared, and the others.

    The former are those, as ``NAME`` or ``NAME:FEATURES``, whose files are up to date; the latter come each with the
    command that would add it and what that needs.
    """
    prepared: list[str] = []
    missing: dict[str, str] = {}
    for name in sorted({*dataset_names()} - OF_USERS):
        try:
            cls = dataset_class(name)
        except HashbenchError:
            continue  # a broken plugin; whoever names it is told
        if not cls.needs:
            continue
        kinds = {name if kind == cls.features[0] else f"{name}:{kind}": kind for kind in cls.features}
        is_made = {spec: hdf5.read_attributes(dataset_path(spec)) for spec in kinds}
        found = [spec for spec in kinds if _is_made_by(is_made[spec], _code_of(name))]
        stale = [spec for spec in kinds if is_made[spec] and spec not in found]
        prepared += found
        for spec in stale or ([] if found else [name]):
            kind = spec.partition(":")[2]
            command = f"hashbench prepare {name}{f' --features {kind}' if kind else ''}"
            missing[spec] = f"{command} ({'made by another version' if stale else f'needs {cls.needs}'})"
    return prepared, missing


def prepare_own(own: OwnData, options: Options) -> tuple[Dataset, Path]:
    """Make a dataset of the user's own files, and give it with its file; anew each time, since these may have changed.

    The name of a known dataset is refused, and that of a prepared one that is to be made of its own file.
    """
    check_name(own.name, "a dataset's name")
    path = dataset_path(own.name)
    for spec in filter(None, (own.items, own.labels, own.query_items, own.query_labels, own.train_index)):
        source, _ = split_spec(spec)
        with reading(source):
            if is_one_of(path, [source]):
                raise HashbenchError(f"{spec} is read and would be written over; choose another --name.")
    folded = own.name.casefold()
    if any(folded == name or folded.startswith(f"{name}-") for name in map(str.casefold, dataset_names())):
        raise HashbenchError(f"{own.name!r} is, or begins like, the name of a built-in dataset; choose another --name.")
    if split_name(own.name)[1]:
        raise HashbenchError(f"{own.name!r} reads like a dataset with unseen classes; choose another --name.")
    if own.name.endswith(HDF5_SUFFIXES):
        raise HashbenchError(f"{own.name!r} reads like a file; choose a --name without {Path(own.name).suffix}.")
    name = "ann-benchmarks" if _is_ann_benchmark(own) else "arrays"
    kinds = dataset_class(name).features
    kind = options.features or kinds[0]
    if kind not in kinds:
        raise unknown_name("feature kind", f"{own.name}:{kind}", kinds, like=kind)
    _refuse_useless(name, kind, options)
    dataset = with_warning(get_dataset(name, replace(options, own=own)).prepare())
    with locked(path):
        hdf5.write_dataset(dataset, path, code="own")
    return dataset, path


def _refuse_useless(name: str, kind: str, options: Options) -> None:
    """Refuse options that a dataset with such features cannot use."""
    given = kind == "features"
    useless = {"weights": given or kind in {*extraction.KINDS} - {*extraction.NETWORKS}, "image_size": given}
    takes = [key for key in dataset_class(name).takes if not useless.get(key)]
    needs = {key: key for key in ("source", "weights", "image_size")} | {"device": "weights"}  # a network's
    for key, needed in needs.items():
        if getattr(options, key) not in (None, "auto") and needed not in takes:
            raise HashbenchError(
                f"{name}:{kind} has no use for --{key.replace('_', '-')}; leave it out"
                f"{', or choose other --features' if len(dataset_class(name).features) > 1 else ''}."
            )


def _code_of(name: str) -> str:
    """Digest the code that decides a dataset."""
    return code_that_decides(*modules_of(dataset_class(name)))


def _stamps(name: str, choices: Mapping[str, Any]) -> dict[str, str]:
    """Digest sizes and times of the files a dataset is made of, as far as they are there."""
    places = {"source": data_dir() / "sources" / name, **choices}
    paths = {key: Path(places[key]) for key in ("source", "weights") if key in places}
    stamps: dict[str, str] = {}
    for key, path in paths.items():
        with reading(path):
            if path.exists():
                stamps[key] = _stamp(path)
    return stamps


def _agree(now: Mapping[str, str], then: Mapping[str, str]) -> bool:
    """Tell whether the files that are there are as they were."""
    return all(then.get(key) == stamp for key, stamp in now.items())


def _stamp(path: Path) -> str:
    """Digest a file's size and times, or those of the files of a folder."""
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    states = [(file.name, file.stat()) for file in files if file.is_file()]
    stamp = [[name, state.st_size, state.st_mtime_ns, state.st_ctime_ns] for name, state in states]
    return sha256(json.dumps(stamp).encode()).hexdigest()[:16]


def _is_made_by(found: Mapping[str, Any], code: str) -> bool:
    return (found.get("code"), found.get("schema_version")) == (code, hdf5.SCHEMA_VERSION)


def _is_ann_benchmark(own: OwnData) -> bool:
    """Whether the items are an HDF5 file with the arrays of ann-benchmarks."""
    path = Path(own.items)
    with reading(path):
        if not (path.is_file() and h5py.is_hdf5(path)):
            return False
    try:
        with h5py.File(path, "r") as file:
            return {"train", "test", "neighbors"} <= set(file)
    except (OSError, RuntimeError):  # cut short; whoever reads it as any other file says so
        return False


def _chosen(options: Options) -> dict[str, Any]:
    """Give what the user decided, as a dataset file remembers it."""
    chosen: dict[str, Any] = {"image_size": options.image_size} if options.image_size else {}
    for key in ("source", "weights"):
        if path := getattr(options, key):
            chosen[key] = str(resolved(path))
    return chosen


def find_by_content(fingerprint: str, first: Sequence[Path] = ()) -> Path | None:
    """Find the file of a prepared dataset by its content's fingerprint, among ``first`` before the data folder."""
    paths = [*first, *sorted((data_dir() / "datasets").glob("*.h5"))]
    return next((path for path in paths if hdf5.read_attributes(path).get("fingerprint") == fingerprint), None)


def load_dataset(spec_or_path: str, on_progress: Progress = silent) -> tuple[Dataset, str]:
    """Open a dataset file, or prepare a named dataset if need be; give it, and what of it was made now.

    Besides a path, ``NAME`` and ``NAME:FEATURES``, the name of a dataset that the user prepared from own files will do.
    """
    name, _, kind = spec_or_path.partition(":")
    if is_known(name):
        _refuse_unclear(name, kind)
        dataset, _, how = prepare(spec_or_path, Options(on_progress=on_progress))
        return dataset, how
    path = _file_of(spec_or_path)
    dataset = hdf5.read_dataset(path)
    _demand_same_content(dataset, path)
    return dataset, ""


def is_known(name: str) -> bool:
    """Tell whether a dataset is made when it is asked for by this name: a known one, or one with unseen classes."""
    return is_dataset(name) or split_name(name)[1] is not None


def _refuse_unclear(name: str, kind: str) -> None:
    """Refuse a dataset without its kind of features where others than the first are prepared."""
    base = split_name(name)[0]
    if kind or not is_dataset(base):
        return
    kinds = dataset_class(base).features
    for one in dict.fromkeys((name, base)):
        stems = sorted(path.stem.removeprefix(f"{one}-") for path in dataset_path(one).parent.glob(f"{one}-*.h5"))
        others = [stem for stem in stems if stem in kinds]
        if others and not dataset_path(one).exists():
            raise HashbenchError(
                f"dataset {one!r} is prepared with features {', '.join(others)} alone. Say which ones you mean: "
                f"{name}:{others[0]} (or {name}:{kinds[0]} to prepare those)."
            )


def _file_of(spec_or_path: str) -> Path:
    """Find the file of a dataset that is none of the known ones: the user's, or one prepared from the user's data."""
    path = Path(spec_or_path)
    if path.suffix in HDF5_SUFFIXES or path.is_file():
        return path
    if dataset_path(spec_or_path).is_file():
        return dataset_path(spec_or_path)
    check_fold(spec_or_path)
    raise unknown_name("dataset", spec_or_path, [*dataset_names(), *_own_names()])


@dataclass(frozen=True)
class Found:
    """What identifies a prepared dataset, as its file says without being read whole."""

    name: str
    features_name: str
    fingerprint: str


def find_dataset(spec_or_path: str) -> Found | None:
    """Find a dataset as `load_dataset` does, but prepare nothing: None if that is still to be done."""
    name, _, kind = spec_or_path.partition(":")
    if is_known(name):
        _refuse_unclear(name, kind)
    attributes = _current(spec_or_path)
    if attributes is None:
        return None
    return Found(*(str(attributes.get(key)) for key in ("name", "features_name", "fingerprint")))


def find_warning(spec_or_path: str) -> str:
    """Read the warning of copies in the file of a dataset that was read without error; "" if it has none."""
    attributes = _current(spec_or_path) or {}
    return str(json.loads(attributes.get("about", "{}")).get(WARNING, ""))


def _current(spec_or_path: str) -> dict[str, Any] | None:
    """Read what the file of a dataset says of itself; None if it is not there, or was made of what has changed."""
    name = spec_or_path.partition(":")[0]
    base, protocol = split_name(name)
    if not is_known(name):
        path = _file_of(spec_or_path)
        attributes = hdf5.read_attributes(path)
        if attributes.get("hashbench") != "dataset":
            hdf5.read_dataset(path)  # says what is wrong
        return attributes
    spec = resolve_dataset(spec_or_path)[2] if is_dataset(base) else spec_or_path
    attributes = hdf5.read_attributes(dataset_path(spec))
    choices = _remembered(attributes)
    stamps = choices.pop("stamps", {})
    if protocol:
        whole = _current(base + spec[len(name) :])
        is_same = whole is not None and stamps == {"base": whole["fingerprint"]}
    else:
        is_same = _agree(_stamps(name, choices), stamps)
    code = _code_of_unseen() if protocol else _code_of(name)
    return attributes if is_same and _is_made_by(attributes, code) else None


def results_name(spec_or_path: str) -> str:
    """Tell under which name the results of a dataset, as `load_dataset` takes it, are kept."""
    path = Path(spec_or_path)
    held = hdf5.read_attributes(path).get("name") if path.is_file() else None
    return str(held or spec_or_path.partition(":")[0])


def _own_names() -> list[str]:
    """Names of the datasets that users prepared from own files."""
    stems = sorted(path.stem for path in (data_dir() / "datasets").glob("*.h5"))
    stems = [stem for stem in stems if not split_name(stem)[1]]
    built_in = dataset_names()
    return [stem for stem in stems if not any(stem == name or stem.startswith(f"{name}-") for name in built_in)]


def _demand_same_content(dataset: Dataset, path: Path) -> None:
    """Refuse a file that takes the name of a named dataset, but holds something else."""
    if dataset.name not in dataset_names():
        return
    for known in (data_dir() / "datasets").glob(f"{dataset.name}*.h5"):
        found = hdf5.read_attributes(known)
        if (found.get("name"), found.get("features_name")) == (dataset.name, dataset.features_name) and found.get(
            "fingerprint"
        ) != dataset.fingerprint:
            raise HashbenchError(
                f"{path} calls itself {dataset.name!r} but holds {dataset.fingerprint}, and the dataset of that name "
                f"holds {found.get('fingerprint')}. Give yours another name."
            )

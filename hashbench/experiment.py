"""Prepare, encode, score: each step is found again by its fingerprint and not repeated."""

import ast
import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
import numpy.typing as npt

from hashbench import _kernels, affinity, bits, evaluation, metrics, storage, ties
from hashbench.bits import ByteArray, pack
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, Refusal, unknown_name
from hashbench.evaluation import DEFAULT_METRICS, Evaluation
from hashbench.method import HashMethod
from hashbench.metrics import Scores, get_metric
from hashbench.registry import dataset_names, get_dataset, get_method, source_digest, submodules
from hashbench.results import Row, params_text
from hashbench.storage import Codes, data_dir

_BATCH = 16384  # items encoded at a time

T = TypeVar("T")
Progress = Callable[[int, int], None]


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


@dataclass(frozen=True, eq=False)
class Outcome:
    """What became of a job.

    Parameters
    ----------
    job : Job
        The job.
    evaluation : Evaluation or None
        Its scores; None if the method refused.
    refusal : str
        Why it did.
    rows : tuple of Row
        The lines for the results file.
    notes : tuple of str
        What was done and what was found again.
    """

    job: Job
    evaluation: Evaluation | None
    refusal: str = ""
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()


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
        Method parameters of all jobs.

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
        bits.check_n_bits(length)
    for name in names:
        make_method(name, lengths[0], 0, params)  # unknown parameters show before any work is done
    is_random = {name: "random_state" in _parameter_names(get_method(name)) for name in names}
    return [
        Job(dataset, name, length, seed, params)
        for dataset in _unique(datasets)
        for name in names
        for length in lengths
        for seed in (axis_of_seeds if is_random[name] else [0])
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
        If there is no such method or parameter.
    """
    cls = get_method(name)
    known = _parameter_names(cls)
    free = [key for key in known if key not in ("n_bits", "random_state")]
    for key in params:
        if key not in free:
            raise unknown_name(f"{name} parameter", key, free or ["(none)"])
    state = {"random_state": seed} if "random_state" in known else {}
    return cls(n_bits=n_bits, **state, **params)


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
    params = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise HashbenchError(f"--param takes name=value, got {text!r}.")
        try:
            params[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            params[name] = value
    return params


def dataset_path(name: str) -> Path:
    """Tell where a prepared dataset lies.

    Parameters
    ----------
    name : str
        Its name.

    Returns
    -------
    Path
        Inside the data folder; need not exist.
    """
    return data_dir() / "datasets" / f"{name}.h5"


def prepare(name: str, *, force: bool = False) -> tuple[Dataset, bool]:
    """Make a named dataset, or find it again.

    Parameters
    ----------
    name : str
        A known name.
    force : bool, default=False
        Make it even if it is there.

    Returns
    -------
    dataset : Dataset
        Its content.
    is_new : bool
        Whether it was made now.
    """
    adapter = get_dataset(name)
    path = dataset_path(name)
    made_by = source_digest(type(adapter))
    with storage.locked(path):
        if not force and storage.read_attributes(path).get("made_by") == made_by:
            return storage.read_dataset(path), False
        dataset = adapter.prepare()
        storage.write_dataset(dataset, path, made_by)
    return dataset, True


def load_dataset(name_or_path: str) -> tuple[Dataset, bool]:
    """Open a dataset file, or prepare a named dataset if need be.

    Parameters
    ----------
    name_or_path : str
        A known name, or the path of a dataset file.

    Returns
    -------
    dataset : Dataset
        Its content.
    is_new : bool
        Whether it was made now.

    Raises
    ------
    HashbenchError
        If it is neither.
    """
    if name_or_path in dataset_names():
        return prepare(name_or_path)
    if Path(name_or_path).suffix in (".h5", ".hdf5") or Path(name_or_path).exists():
        return storage.read_dataset(Path(name_or_path)), False
    raise unknown_name("dataset", name_or_path, dataset_names())


def codes_path(dataset: Dataset, job: Job) -> Path:
    """Tell where the codes of a job lie.

    Parameters
    ----------
    dataset : Dataset
        The job's dataset.
    job : Job
        The job.

    Returns
    -------
    Path
        Inside the data folder; need not exist.
    """
    suffix = ""
    if job.params:
        suffix = "-" + sha256(params_text(job.params).encode()).hexdigest()[:8]
    return data_dir() / "codes" / dataset.name / f"{job.method}-{job.n_bits}-s{job.seed}{suffix}.h5"


def encode(dataset: Dataset, job: Job, *, on_progress: Progress | None = None) -> Codes:
    """Fit a method on a dataset's training items and encode queries and database.

    Parameters
    ----------
    dataset : Dataset
        What to learn from and encode.
    job : Job
        Method, code length, seed and parameters.
    on_progress : callable, optional
        Called with items encoded and all items.

    Returns
    -------
    Codes
        Packed codes with their provenance.

    Raises
    ------
    Refusal
        If the method cannot run on this dataset.
    """
    method = make_method(job.method, job.n_bits, job.seed, job.params)
    reason = method.refusal(dataset)
    if reason is not None:
        raise Refusal(reason)
    supervision: Any = None
    if method.supervision == "labels" and dataset.labels is not None:
        supervision = dataset.labels[dataset.train]
    elif method.supervision == "affinity":
        supervision = dataset.train_affinity()
    start = time.perf_counter()
    method.fit(_inputs(dataset, method, dataset.train), supervision)
    fitted = time.perf_counter()
    n_items = len(dataset.query) + len(dataset.database)
    packed: dict[str, ByteArray] = {}
    n_done = 0
    for role in ("query", "database"):
        index = getattr(dataset, role)
        parts = []
        for rows in ties.chunks(0, len(index), _BATCH):
            parts.append(pack(method.transform(_inputs(dataset, method, index[rows]))))
            n_done += rows.stop - rows.start
            if on_progress is not None:
                on_progress(n_done, n_items)
        packed[role] = np.concatenate(parts)
    return Codes(
        query=packed["query"],
        database=packed["database"],
        n_bits=job.n_bits,
        method=job.method,
        method_version=method.version,
        params=_all_params(method),
        seed=job.seed,
        dataset=dataset.name,
        dataset_fingerprint=dataset.fingerprint,
        features=dataset.features_name,
        libraries={name: version(name) for name in ("hashbench", "numpy", "scipy", "scikit-learn")},
        fit_seconds=fitted - start,
        encode_seconds=time.perf_counter() - fitted,
        made_by=source_digest(type(method)),
    )


def ensure_codes(
    dataset: Dataset, job: Job, *, force: bool = False, on_progress: Progress | None = None
) -> tuple[Path, bool]:
    """Encode, or find the codes again.

    Parameters
    ----------
    dataset : Dataset
        The job's dataset.
    job : Job
        The job.
    force : bool, default=False
        Encode even if the codes are there.
    on_progress : callable, optional
        See `encode`.

    Returns
    -------
    path : Path
        The codes file.
    is_new : bool
        Whether it was made now.
    """
    path = codes_path(dataset, job)
    method = make_method(job.method, job.n_bits, job.seed, job.params)
    wanted = {
        "method": job.method,
        "method_version": method.version,
        "params": params_text(_all_params(method)),
        "n_bits": job.n_bits,
        "seed": job.seed,
        "dataset_fingerprint": dataset.fingerprint,
        "made_by": source_digest(type(method)),
    }
    with storage.locked(path):
        found = storage.read_attributes(path)
        if not force and all(found.get(key) == value for key, value in wanted.items()):
            return path, False
        storage.write_codes(encode(dataset, job, on_progress=on_progress), path)
    return path, True


def score(
    dataset: Dataset,
    path: Path,
    metric_names: Sequence[str] = DEFAULT_METRICS,
    *,
    undefined: str = "skip",
    on_progress: Progress | None = None,
) -> Evaluation:
    """Score a codes file.

    Parameters
    ----------
    dataset : Dataset
        What the codes were made from.
    path : Path
        The codes file.
    metric_names : sequence of str
        Metrics.
    undefined : {"skip", "paper"}
        See `hashbench.evaluate`.
    on_progress : callable, optional
        Called with queries done and all queries.

    Returns
    -------
    Evaluation
        Scores of every query.

    Raises
    ------
    HashbenchError
        If the codes belong to another dataset.
    """
    with storage.open_codes(path) as codes:
        if codes.dataset_fingerprint != dataset.fingerprint:
            raise HashbenchError(
                f"{path} was encoded from {codes.dataset} with content {codes.dataset_fingerprint}, but dataset "
                f"{dataset.name} now holds {dataset.fingerprint}. Encode again: "
                f"hashbench encode --method {codes.method} --dataset {dataset.name} --bits {codes.n_bits}."
            )
        return evaluation.evaluate_packed(
            codes.query,
            codes.database,
            codes.n_bits,
            dataset.affinity(),
            metric_names,
            undefined=undefined,
            on_progress=on_progress,
        )


def ensure_scores(
    dataset: Dataset,
    path: Path,
    metric_names: Sequence[str],
    *,
    force: bool = False,
    on_progress: Progress | None = None,
) -> tuple[Evaluation, bool]:
    """Score a codes file, or find the scores of every query again.

    Parameters
    ----------
    dataset : Dataset
        What the codes were made from.
    path : Path
        The codes file, in the data folder.
    metric_names : sequence of str
        Metrics.
    force : bool, default=False
        Score even if the scores are there.
    on_progress : callable, optional
        See `score`.

    Returns
    -------
    evaluation : Evaluation
        Scores of every query.
    is_new : bool
        Whether any metric was scored now.
    """
    names = list(dict.fromkeys(get_metric(name).name for name in metric_names))
    cache = data_dir() / "scores" / path.relative_to(data_dir() / "codes")
    made_by = source_digest(affinity, bits, _kernels, ties, evaluation, *submodules(metrics))
    codes_attributes = storage.read_attributes(path)
    stamp = {key: codes_attributes.get(key) for key in ("content", "dataset_fingerprint")} | {"made_by": made_by}
    with storage.locked(cache):
        known: dict[str, Scores] = {}
        n_undefined = 0
        found = storage.read_attributes(cache)
        if not force and all(found.get(key) == value for key, value in stamp.items()):
            known, n_undefined = _read_scores(cache), int(found["n_undefined"])
        missing = [name for name in names if name not in known]
        if missing:
            fresh = score(dataset, path, missing, on_progress=on_progress)
            known, n_undefined = known | fresh.scores, fresh.n_undefined
            _write_scores(cache, known, {**stamp, "n_undefined": n_undefined})
    return Evaluation({name: known[name] for name in names}, n_undefined), bool(missing)


def run(
    jobs: Sequence[Job],
    metric_names: Sequence[str] = DEFAULT_METRICS,
    *,
    force: bool = False,
    on_progress: Progress | None = None,
) -> Iterator[Outcome]:
    """Do the jobs of a grid one after the other.

    Parameters
    ----------
    jobs : sequence of Job
        What `grid` spans.
    metric_names : sequence of str
        Metrics.
    force : bool, default=False
        Repeat finished steps.
    on_progress : callable, optional
        Called with the parts of the current step done, and all its parts.

    Yields
    ------
    Outcome
        One for each job, in order.
    """
    names = [get_metric(name).name for name in metric_names]
    datasets: dict[str, Dataset] = {}
    for job in jobs:
        notes = []
        if job.dataset not in datasets:
            datasets.clear()  # one dataset in memory at a time
            datasets[job.dataset], is_new = load_dataset(job.dataset)
            notes.append(f"{'prepared' if is_new else 'reused'} dataset")
        dataset = datasets[job.dataset]
        try:
            path, is_new = ensure_codes(dataset, job, force=force, on_progress=on_progress)
        except Refusal as refusal:
            yield Outcome(job, None, str(refusal), notes=tuple(notes))
            continue
        notes.append(f"{'encoded' if is_new else 'reused'} codes")
        scored, is_new = ensure_scores(dataset, path, names, force=force, on_progress=on_progress)
        notes.append(f"{'computed' if is_new else 'reused'} scores")
        yield Outcome(job, scored, rows=_rows(dataset, job, scored), notes=tuple(notes))


def _rows(dataset: Dataset, job: Job, scored: Evaluation) -> tuple[Row, ...]:
    method = make_method(job.method, job.n_bits, job.seed, job.params)
    return tuple(
        Row(
            dataset=dataset.name,
            features=dataset.features_name,
            method=job.method,
            params=params_text(_all_params(method)),
            n_bits=job.n_bits,
            seed=job.seed,
            metric=name,
            value=f"{summary.mean:.6f}",
            low=f"{summary.low:.6f}",
            high=f"{summary.high:.6f}",
            n_queries=summary.n_queries,
            n_undefined=summary.n_undefined,
            dataset_fingerprint=dataset.fingerprint,
            method_version=method.version,
        )
        for name, summary in scored.summary.items()
    )


def _inputs(dataset: Dataset, method: HashMethod, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    if method.reads == "labels":
        if dataset.labels is None or dataset.labels.ndim != 1:
            raise Refusal(f"{type(method).__name__} reads class labels, and dataset {dataset.name!r} has none.")
        return np.asarray(dataset.labels[rows, None])
    return dataset.features[rows]


def _unique(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _parameter_names(cls: type[HashMethod]) -> list[str]:
    return [name for name in inspect.signature(cls).parameters if name != "self"]


def _all_params(method: HashMethod) -> dict[str, Any]:
    params = method.get_params(deep=False)
    return {key: params[key] for key in sorted(params) if key not in ("n_bits", "random_state")}


def _read_scores(path: Path) -> dict[str, Scores]:
    with h5py.File(path, "r") as file:
        return {name: Scores(*file["scores"][name][:]) for name in file["scores"]}


def _write_scores(path: Path, scores: Mapping[str, Scores], attributes: Mapping[str, Any]) -> None:
    with storage.replacing(path) as part, h5py.File(part, "w") as file:
        file.attrs.update({**attributes, "schema_version": storage.SCHEMA_VERSION})
        for name, values in scores.items():
            file[f"scores/{name}"] = np.stack(values)

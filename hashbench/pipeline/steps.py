"""Encode and score: each step is found again by its fingerprint and not repeated."""

import time
from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hashbench import affinity, bits, distances
from hashbench import dataset as dataset_module
from hashbench._parallel import chunks
from hashbench._typing import ByteArray
from hashbench.bits import pack
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError, Refusal, TrainingFailure
from hashbench.method import HashMethod
from hashbench.pipeline.grid import Job, make_method
from hashbench.registry import dataset_names, dataset_spec, helpers_of, resolve_dataset, source_digest
from hashbench.scoring import evaluation
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5, score_cache
from hashbench.store.files import data_dir, locked
from hashbench.store.hdf5 import Codes

_BATCH = {"features": 16384, "labels": 16384, "images": 512}  # items encoded at a time
_HELPERS = "hashbench.methods._"  # modules shared by methods, whose code decides the codes too

Progress = Callable[..., None]  # takes parts done, all parts, and what they are if not items


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
    folder, suffix = dataset.name, ""
    if job.dataset.partition(":")[0] in dataset_names():
        folder = resolve_dataset(job.dataset)[2].replace(":", "-")
    if job.params:
        suffix = "-" + sha256(canonical_json(job.params).encode()).hexdigest()[:8]
    return data_dir() / "codes" / folder / f"{job.method}-{job.n_bits}-s{job.seed}{suffix}.h5"


def encode(dataset: Dataset, job: Job, *, resume: bool = False, on_progress: Progress | None = None) -> Codes:
    """Fit a method on a dataset's training items and encode queries and database.

    Parameters
    ----------
    dataset : Dataset
        What to learn from and encode.
    job : Job
        Method, code length, seed and parameters.
    resume : bool, default=False
        Go on from the checkpoint that an interrupted training left, if there is one.
    on_progress : callable, optional
        Called with items encoded and all items; before, with epochs done, all epochs, and how the last one went.

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
    method.checkpoint, method.resume = _checkpoint_path(dataset, job), resume
    method.made_by = canonical_json([_made_by(method), _libraries(method)])
    if on_progress is not None:
        method.on_epoch = lambda epoch: on_progress(epoch.number, epoch.n_epochs, f"epochs, {epoch}")
    start = time.perf_counter()
    method.fit(_inputs(dataset, method, dataset.train), supervision)
    fitted = time.perf_counter()
    n_items = len(dataset.query) + len(dataset.database)
    packed: dict[str, ByteArray] = {}
    n_done = 0
    for role in ("query", "database"):
        index = getattr(dataset, role)
        parts = []
        for rows in chunks(0, len(index), _BATCH[method.input_kind]):
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
        params=method.recorded_params(),
        seed=job.seed,
        dataset=dataset.name,
        dataset_fingerprint=dataset.fingerprint,
        features=dataset.features_name,
        libraries=_libraries(method),
        fit_seconds=fitted - start + method.resumed_seconds_,
        encode_seconds=time.perf_counter() - fitted,
        made_by=_made_by(method),
    )


def ensure_codes(
    dataset: Dataset,
    job: Job,
    *,
    force: bool = False,
    resume: bool = False,
    on_progress: Progress | None = None,
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
    resume : bool, default=False
        See `encode`.
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
        "params": canonical_json(method.recorded_params()),
        "n_bits": job.n_bits,
        "seed": job.seed,
        "dataset_fingerprint": dataset.fingerprint,
        "made_by": _made_by(method),
        "schema_version": hdf5.SCHEMA_VERSION,
        "libraries": canonical_json(_libraries(method)),
    }
    with locked(path):
        found = hdf5.read_attributes(path)
        if not force and all(found.get(key) == value for key, value in wanted.items()):
            return path, False
        checkpoint = _checkpoint_path(dataset, job)
        try:
            codes = encode(dataset, job, resume=resume, on_progress=on_progress)
        except TrainingFailure:
            checkpoint.unlink(missing_ok=True)
            raise
        hdf5.write_codes(codes, path)
        checkpoint.unlink(missing_ok=True)
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
        Called with parts done and all parts.

    Returns
    -------
    Evaluation
        Scores of every query.

    Raises
    ------
    HashbenchError
        If the codes belong to another dataset.
    """
    with hdf5.open_codes(path) as codes:
        return _score(dataset, path, codes, metric_names, undefined=undefined, on_progress=on_progress)


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
    with hdf5.open_codes(path) as codes, score_cache.opened(codes, _scored_by()) as kept:
        known = {} if force else kept.read()
        missing = [name for name in names if name not in known]
        if missing:
            known |= _score(dataset, path, codes, missing, on_progress=on_progress).scores
            kept.write(known)
    n_undefined = int(np.isnan(known[names[0]].mean).sum())
    return Evaluation({name: known[name] for name in names}, n_undefined), bool(missing)


def _score(
    dataset: Dataset,
    path: Path,
    codes: Codes,
    metric_names: Sequence[str],
    *,
    undefined: str = "skip",
    on_progress: Progress | None = None,
) -> Evaluation:
    if codes.dataset_fingerprint != dataset.fingerprint:
        spec = dataset_spec(dataset.name, dataset.features_name)
        raise HashbenchError(
            f"{path} was encoded from {codes.dataset} with content {codes.dataset_fingerprint}, but dataset "
            f"{spec} now holds {dataset.fingerprint}. Encode again: "
            f"hashbench encode --method {codes.method} --dataset {spec} --bits {codes.n_bits}."
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


@cache
def _scored_by() -> str:
    """Digest of the code that decides scores; scores made with another are made again."""
    return source_digest(*evaluation.scoring_modules())


def _made_by(method: HashMethod) -> str:
    helpers = helpers_of(type(method), _HELPERS)
    return source_digest(type(method), *helpers, *method.depends_on(), affinity, bits, distances, dataset_module)


def _libraries(method: HashMethod) -> dict[str, str]:
    """Versions of what codes may depend on; codes made with others are made again."""
    return {name: _version(name) for name in method.libraries}


_version = cache(version)


def _checkpoint_path(dataset: Dataset, job: Job) -> Path:
    return codes_path(dataset, job).with_suffix(".checkpoint")


def _inputs(dataset: Dataset, method: HashMethod, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    if method.input_kind == "labels":
        return np.asarray(dataset.labels)[rows, None]
    return np.asarray(dataset.images if method.input_kind == "images" else dataset.features)[rows]

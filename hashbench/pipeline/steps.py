"""Encoding and scoring one job: each step is cached by its provenance."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Progress, silent
from hashbench.bits import check_codes, pack
from hashbench.dataset import Dataset, as_slice, canonical_json
from hashbench.errors import Damaged, HashbenchError, OtherForm, Refusal, TrainingFailure
from hashbench.pipeline.grid import Job
from hashbench.pipeline.preparation import PreparedDataset, stem_of
from hashbench.registry import dataset_spec
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation, arrays_of, evaluation_of
from hashbench.scoring.metrics import get_metric
from hashbench.sources._torch import find_device
from hashbench.store import hdf5, score_cache
from hashbench.store.artifact import Artifact, cached
from hashbench.store.files import data_dir, identities, locked
from hashbench.store.hdf5 import SUFFIX, Codes, holds_model, write_model
from hashbench.store.origin import origin_here
from hashbench.store.provenance import Provenance, digest
from hashbench.store.result_rows import Row, check_numbers

if TYPE_CHECKING:
    from hashbench.method import HashMethod
    from hashbench.scoring.problem import Problem
    from hashbench.scoring.reranking import Vectors

BATCH = {"features": 16384, "labels": 16384, "images": 512}  # items encoded at a time
MANY_VALUES = 1_000_000  # of all items, from which numerical libraries may use several threads


@dataclass(frozen=True)
class Demands:
    """What a run does for each job."""

    metrics: Sequence[str] = DEFAULT_METRICS  # by canonical name, each once; without any, jobs end with their codes
    force: bool = False  # repeat finished steps
    resume: bool = False  # continue interrupted training after its last epoch
    keep_models: bool = False  # keep fitted methods beside their codes

    def __post_init__(self) -> None:
        names = dict.fromkeys(get_metric(name).name for name in self.metrics)  # unknown ones are refused here
        object.__setattr__(self, "metrics", tuple(names))

    @property
    def needs_outputs(self) -> bool:
        """Whether a metric compares codes with the real-valued outputs of queries."""
        return any(get_metric(name).form for name in self.metrics)


def codes_path(dataset: Dataset | PreparedDataset, job: Job) -> Path:
    """Return the codes file of a job in the data folder; it need not exist."""
    folder = dataset.name
    if job.dataset.startswith(f"{dataset.name}:"):  # the kind of features follows
        folder = stem_of(job.dataset)
    suffix = f"-{digest(job.params)[:8]}" if job.params else ""
    return data_dir() / "codes" / folder / f"{job.method}-{job.n_bits}-s{job.seed}{suffix}.h5"


def model_path(dataset: Dataset | PreparedDataset, job: Job) -> Path:
    """Return the model file of a job, beside its codes; it need not exist."""
    return codes_path(dataset, job).with_suffix(SUFFIX)


def encode(dataset: Dataset, job: Job, demands: Demands = Demands(), on_progress: Progress = silent) -> Codes:
    """Fit a job's method on a dataset's training items and encode queries and database.

    Progress counts epochs, then encoded items. Raises Refusal if the method cannot run on this dataset.
    """
    from sklearn.base import clone

    method: HashMethod = clone(job.estimator)
    reason = method.refusal(dataset)
    if reason is not None:
        raise Refusal(reason)
    provenance = job.provenance(dataset)
    _open_session(method, provenance, _checkpoint_path(dataset, job), demands.resume, on_progress)
    with _limited_threads(dataset):
        return _fit_and_encode(method, dataset, provenance, model_path(dataset, job), demands, on_progress)


def _fit_and_encode(
    method: "HashMethod", dataset: Dataset, provenance: Provenance, model: Path, demands: Demands, on_progress: Progress
) -> Codes:
    from sklearn.utils import gen_batches

    start = time.perf_counter()
    supervision: Any = dataset.train_affinity() if method.supervision == "affinity" else None
    if method.supervision == "labels" and dataset.labels is not None:
        supervision = dataset.labels[dataset.train]
    method.fit(_inputs(dataset, method, dataset.train), supervision)
    fit_end = time.perf_counter()
    n_items, n_done = len(dataset.query) + len(dataset.database), 0
    packed: dict[str, ByteArray] = {}
    for role in ("query", "database"):
        index = getattr(dataset, role)
        parts = []
        for rows in gen_batches(len(index), BATCH[method.input_kind]):
            inputs = _inputs(dataset, method, index[rows])
            codes = method.transform(inputs)
            check_codes(codes, (rows.stop - rows.start, provenance.n_bits), f"method {provenance.method!r}")
            parts.append(pack(codes))
            n_done += rows.stop - rows.start
            on_progress("items", n_done, n_items)
        packed[role] = np.concatenate(parts)
    outputs = outputs_of_queries(dataset, method) if demands.needs_outputs else None
    if demands.keep_models:
        write_model(method, provenance, model)
    device = str(getattr(method, "device", "cpu"))
    device = find_device(device).type if device == "auto" else device.partition(":")[0]
    return Codes(
        query=packed["query"],
        database=packed["database"],
        made=provenance,
        fit_seconds=fit_end - start + getattr(method, "resumed_seconds_", 0.0),
        encode_seconds=time.perf_counter() - fit_end,
        origin=origin_here(device),
        query_outputs=outputs,
        **_held_out(method),
    )


def outputs_of_queries(dataset: Dataset, method: "HashMethod") -> FloatArray:
    """Return a fitted method's real-valued outputs of a dataset's queries, (n_queries, n_bits)."""
    from sklearn.utils import gen_batches

    index = dataset.query
    batches = gen_batches(len(index), BATCH[method.input_kind])
    return np.concatenate([method.project(_inputs(dataset, method, index[rows])) for rows in batches])


@contextmanager
def codes_of(
    dataset: Dataset, job: Job, demands: Demands = Demands(), on_progress: Progress = silent
) -> Iterator[tuple[Codes, str]]:
    """Yield the codes of a job, from the cache or else encoded and cached, and what was done in words: "" if cached.

    Damaged codes and checkpoints are recomputed, and so are codes whose model is to be kept but is missing, or without
    the outputs of queries that a metric needs. A model of earlier codes is removed.
    """

    def read(found: Artifact) -> tuple[Codes, str] | None:
        codes = hdf5.codes_of(found)
        return None if demands.needs_outputs and codes.query_outputs is None else (codes, "")

    path, model = codes_path(dataset, job), model_path(dataset, job)
    provenance = job.provenance(dataset)
    if identities([Path(job.dataset)]) & identities([path, model]):
        raise HashbenchError(f"{job.dataset} is read and would be overwritten; move it out of the folder of codes.")
    with ExitStack() as opened:
        with locked(path):
            (codes, more), words = cached(
                path,
                "codes",
                hdf5.key_of(provenance),
                read,
                lambda: _encoded(dataset, job, demands, on_progress),
                force=demands.force or (demands.keep_models and not holds_model(model, provenance)),
                done="encoded",
                keep=opened,
            )
        yield codes, more or words


def _encoded(dataset: Dataset, job: Job, demands: Demands, on_progress: Progress) -> tuple[Codes, str]:
    """Encode, and write the codes and the model; return them with what was done in words, if there is more to say."""
    model, checkpoint, words = model_path(dataset, job), _checkpoint_path(dataset, job), ""
    try:
        try:
            codes = encode(dataset, job, demands, on_progress)
        except Damaged as error:
            reason = "of another version" if isinstance(error, OtherForm) else "damaged"
            words = f"encoded from scratch (checkpoint {reason})"
            codes = encode(dataset, job, replace(demands, resume=False), on_progress)
    except TrainingFailure:
        checkpoint.unlink(missing_ok=True)
        raise
    if not (demands.keep_models or holds_model(model, codes.made)):
        model.unlink(missing_ok=True)
    hdf5.write_codes(codes, codes_path(dataset, job))
    checkpoint.unlink(missing_ok=True)
    return codes, words


def kept_scores(dataset: Dataset | PreparedDataset, job: Job) -> dict[str, AnyArray] | None:
    """Return the cached scores of a job, by metric; None if its codes are not cached. Nothing is written."""
    try:
        with hdf5.open_codes(codes_path(dataset, job), job.provenance(dataset)) as codes:
            return None if codes is None else score_cache.read(codes)
    except Damaged:
        return None


def check_content(dataset: Dataset, codes: Provenance, path: Path) -> None:
    """Refuse codes that were encoded from another content of this dataset."""
    if codes.dataset_fingerprint != dataset.fingerprint:
        spec = dataset_spec(dataset.name, dataset.features_name)
        raise HashbenchError(
            f"{path} was encoded from {codes.dataset} with content {codes.dataset_fingerprint}, but dataset {spec} now "
            f"holds {dataset.fingerprint}. Encode again: hashbench encode --method {codes.method} --dataset {spec} "
            f"--bits {codes.n_bits}."
        )


def scores_of(
    dataset: Dataset, codes: Codes, demands: Demands, on_progress: Progress = silent
) -> tuple[Evaluation, str]:
    """Return the scores of a dataset's codes, with notes on the codes, and what was done in words: "" if cached.

    Only metrics that are not cached are computed.
    """
    from hashbench.scoring.code_statistics import usage_notes

    with score_cache.locked_scores(codes):
        known = {} if demands.force else score_cache.read(codes)
        missing = [name for name in demands.metrics if name not in known]
        if missing:
            with _limited_threads(dataset):
                scored = problem_of(dataset, codes).evaluate(missing, on_progress=on_progress)
            built_in = [name for name in scored.scores if get_metric(name).is_built_in]
            if built_in:
                score_cache.write(codes, known | arrays_of(scored, built_in))
            known |= arrays_of(scored)
    notes = usage_notes(codes.query, codes.database, codes.n_bits, advice="")
    return replace(evaluation_of(known, demands.metrics), notes=notes), "computed" if missing else ""


def rows_of(provenance: Provenance, evaluation: Evaluation) -> tuple[Row, ...]:
    """Return one row per metric for codes of some provenance; numbers have six decimals.

    Raises HashbenchError if a metric gave numbers that results cannot hold.
    """
    rows = tuple(
        Row(
            metric=name,
            value=f"{summary.mean:.6f}",
            tie_sd=f"{summary.tie_sd:.6f}".replace("nan", ""),
            low=f"{summary.low:.6f}",
            high=f"{summary.high:.6f}",
            n_queries=summary.n_queries,
            n_undefined=summary.n_undefined,
            **provenance.row,
        )
        for name, summary in evaluation.summary.items()
    )
    for row in rows:
        try:
            check_numbers(row)
        except ValueError as error:
            check = f"hashbench check metric {row.metric}"
            raise HashbenchError(
                f"metric {row.metric!r} cannot be in results: {error}. Fix it; see {check}."
            ) from error
    return rows


def problem_of(dataset: Dataset, codes: Codes) -> "Problem":
    """Return what is scored of the codes of a dataset, which may lie on disk."""
    from hashbench.scoring.problem import Problem

    packed = codes.query, codes.database, codes.n_bits, dataset.affinity()
    return Problem.of_packed(*packed, vectors=features_of(dataset), query_outputs=codes.query_outputs)


def features_of(dataset: Dataset) -> "Callable[[], Vectors]":
    """Return what reads the features, for metrics that re-rank by them."""

    def read() -> "Vectors":
        from hashbench.scoring.reranking import Vectors

        if dataset.features is None:
            raise HashbenchError(
                f"metrics that re-rank compare features, and dataset {dataset.name!r} as prepared has images only. "
                "Choose other metrics, or prepare it with --features."
            )
        query, database = (dataset.features[as_slice(rows)] for rows in (dataset.query, dataset.database))
        return Vectors(query, database, dataset.true_distance)

    return read


def needs_vectors(metric_names: Iterable[str]) -> bool:
    """Return whether any metric re-ranks."""
    return any(get_metric(name).family.needs_candidates for name in metric_names)


def _limited_threads(dataset: Dataset) -> AbstractContextManager[object]:
    """Limit the numerical libraries that are loaded to one thread if the items have few values: others only wait."""
    from threadpoolctl import threadpool_limits

    items: Any = dataset.images if dataset.features is None else dataset.features
    limits: AbstractContextManager[object] = threadpool_limits(None if items.size >= MANY_VALUES else 1)
    return limits


def _open_session(
    method: "HashMethod", provenance: Provenance, checkpoint: Path, resume: bool, on_progress: Progress
) -> None:
    """Set the checkpoint and progress of a method that learns in epochs, which has a ``session``."""
    if hasattr(method, "session"):
        method.session = replace(
            method.session,
            activations=data_dir() / "activations",
            checkpoint=checkpoint,
            key=canonical_json([provenance.codes_version, provenance.method_version, provenance.plugin]),
            resume=resume,
            on_epoch=lambda epoch: on_progress(f"epochs, {epoch}", epoch.number, epoch.n_epochs),
            on_progress=on_progress,
        )


def _held_out(method: Any) -> dict[str, Any]:
    """Return the best score of held-out items, whose epoch is used, and its metric; {} if none were held out."""
    scores = [epoch.score for epoch in method.history_] if hasattr(method, "session") else []
    return {"held_out": max(scores), "held_out_metric": method.criterion} if np.isfinite(scores).any() else {}


def _checkpoint_path(dataset: Dataset, job: Job) -> Path:
    return codes_path(dataset, job).with_suffix(".checkpoint")


def _inputs(dataset: Dataset, method: "HashMethod", rows: IntArray) -> AnyArray:
    if method.input_kind == "labels":
        return np.asarray(dataset.labels)[rows, None]
    return np.asarray(dataset.images if method.input_kind == "images" else dataset.features)[rows]

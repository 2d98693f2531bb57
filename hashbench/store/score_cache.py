"""The scores of every query, cached by what they were computed from; those of a job's earlier codes too.

A job (dataset, features, method, parameters, length, seed) has a folder in the data folder, with a file for each
content that its codes had, so that `hashbench.reports.diff` finds the queries behind a row of an earlier commit.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.scoring.evaluation import Evaluation, OrderEffect
from hashbench.scoring.metrics import Scores
from hashbench.store import artifact
from hashbench.store.artifact import Artifact
from hashbench.store.files import data_dir, locked
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import digest
from hashbench.store.result_rows import Row, unshown

N_KEPT = 20  # files per job; the oldest goes first
# Arrays for all metrics, whose names are no metrics'.
_KINDS, _N_UNDEFINED, _N_RELEVANT, _ALIKE, _ITEMS = "(kinds)", "(n_undefined)", "(n_relevant)", "(alike)", "(items)"


def locked_scores(codes: Codes) -> AbstractContextManager[None]:
    """Keep other processes from scoring codes of the same job."""
    return locked(_folder(codes.made.job))


def read(codes: Codes) -> dict[str, AnyArray]:
    """Read the scores of codes that `write` wrote, empty if there are none; refuse a damaged file."""
    path, made = place(codes)
    return artifact.read(path, "scores", scores_of, made) or {}


def scores_of(found: Artifact) -> dict[str, AnyArray]:
    """Return the scores in an open file."""
    return {name: found.array(name) for name in found.record["arrays"]}


def write(codes: Codes, scores: Mapping[str, AnyArray]) -> None:
    """Write scores as `arrays_of` returns them, and remove the job's oldest of over ``N_KEPT`` files."""
    path, made = place(codes)
    artifact.write(path, "scores", made, scores)
    newest_first = sorted(path.parent.glob("*.h5"), key=lambda path: -path.stat().st_mtime_ns)
    for old in newest_first[N_KEPT:]:
        old.unlink()


def place(codes: Codes) -> tuple[Path, dict[str, Any]]:
    """Return the file for the scores of codes, and what they are computed from."""
    made = codes.made.of_scores(codes.content)
    return _folder(codes.made.job) / f"{digest(made)}.h5", made


def arrays_of(scored: Evaluation, metric_names: Iterable[str] | None = None) -> dict[str, AnyArray]:
    """Return an evaluation in some metrics, else all, as arrays; `evaluation_of` undoes it.

    Of each metric the parts of `Scores`, (4, n_queries), or with the remainder of `OrderEffect` (5, n_queries).
    """
    asked = {_KINDS: scored.kind, _N_RELEVANT: scored.n_relevant, _ALIKE: scored.alike}
    arrays: dict[str, AnyArray] = {name: values for name, values in asked.items() if values is not None}
    arrays[_N_UNDEFINED] = np.array([scored.n_undefined])
    for name in scored.scores if metric_names is None else metric_names:
        effect = scored.order_effects.get(name)
        if effect is None or effect.items is None or effect.sums is None:
            arrays[name] = np.stack(scored.scores[name])
        else:
            arrays[name] = np.stack([*scored.scores[name], effect.remainder])
            arrays |= {_ITEMS: effect.items, _sums_of(name): effect.sums}
    return arrays


def evaluation_of(arrays: Mapping[str, AnyArray], metric_names: Iterable[str]) -> Evaluation:
    """Return an evaluation in some metrics from what `arrays_of` returned."""
    values = {name: arrays[name] for name in metric_names}
    effects = {
        name: OrderEffect.of_items(parts[4], arrays[_ITEMS], arrays[_sums_of(name)])
        for name, parts in values.items()
        if len(parts) > 4
    }
    return Evaluation(
        {name: Scores(*parts[:4]) for name, parts in values.items()},
        int(arrays[_N_UNDEFINED][0]),
        kinds=arrays[_KINDS],
        n_relevant=arrays.get(_N_RELEVANT),
        alike=arrays.get(_ALIKE),
        order_effects=effects,
    )


def _sums_of(metric: str) -> str:
    return f"({metric} of items)"


def find_scores(row: Row) -> AnyArray | None:
    """Find the mean over tie orders of each query behind a row of results, NaN where it is undefined; see `find`."""
    found = find(row)
    return None if found is None else found[row.metric][0]


def find(row: Row) -> dict[str, AnyArray] | None:
    """Find the scores of the queries behind a row of results, of any commit, as `write` takes them.

    They come from the file of the row's job that has its fingerprint, method version, number of queries, and mean, low
    and high to six decimals. Returns None if there is no such file, or several whose queries differ.
    """
    made = {"dataset_fingerprint": row.dataset_fingerprint, "method_version": row.method_version}
    candidates = []
    for path in sorted(_folder(row.key[:6]).glob("*.h5")):
        try:
            scores = artifact.read(path, "scores", scores_of, made) or {}
        except HashbenchError:  # the next scoring replaces this damaged file
            continue
        values = scores.get(row.metric)
        if values is None or values.shape[1] != row.n_queries:
            continue
        if _summary(values) == (row.value, row.low, row.high):
            candidates.append(scores)
    if not candidates:
        return None
    means = [scores[row.metric][0] for scores in candidates]
    is_clear = all(np.allclose(means[0], other, rtol=0, atol=1e-9, equal_nan=True) for other in means)
    return candidates[0] if is_clear else None


def _summary(values: AnyArray) -> tuple[str, ...]:
    counted = ~np.isnan(values[0])
    return tuple(f"{part[counted].mean() if counted.any() else float('nan'):.6f}" for part in values[:3])


def _folder(job: tuple[Any, ...]) -> Path:
    """Return the folder of a job, given as the key of its rows without the metric."""
    dataset, features, method, params, n_bits, seed = job
    job = dataset, features, method, unshown(params), n_bits, seed
    return data_dir() / "scores" / str(dataset) / f"{method}-{n_bits}-s{seed}-{digest(job)[:8]}"

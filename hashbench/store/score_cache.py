"""The scores of every query, cached by what they were computed from; those of a job's earlier codes too.

A job (dataset, features, method, parameters, length, seed) has a folder in the data folder, with a file for each
content that its codes had, so that `hashbench.reports.diff` finds the queries behind a row of an earlier commit.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import Damaged, HashbenchError
from hashbench.store import artifact
from hashbench.store.artifact import Artifact
from hashbench.store.files import data_dir, locked
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import digest
from hashbench.store.result_rows import Row, unshown

N_KEPT = 20  # files per job; the oldest goes first


def locked_scores(codes: Codes) -> AbstractContextManager[None]:
    """Keep other processes from scoring codes of the same job."""
    return locked(_folder(codes.made.job))


def read(codes: Codes) -> dict[str, AnyArray]:
    """Read the scores of codes that `write` wrote; empty if there are none, or if they are damaged."""
    path, made = place(codes)
    with suppress(Damaged):
        return artifact.read(path, "scores", _scores_of, made) or {}
    return {}


def _scores_of(found: Artifact) -> dict[str, AnyArray]:
    return {name: found.array(name) for name in found.record["arrays"]}


def write(codes: Codes, scores: Mapping[str, AnyArray]) -> None:
    """Write what `hashbench.scoring.evaluation.arrays_of` returns; remove the job's oldest of over ``N_KEPT`` files."""
    path, made = place(codes)
    artifact.write(path, "scores", made, scores)
    newest_first = sorted(path.parent.glob("*.h5"), key=lambda path: -path.stat().st_mtime_ns)
    for old in newest_first[N_KEPT:]:
        old.unlink()


def place(codes: Codes) -> tuple[Path, dict[str, Any]]:
    """Return the file for the scores of codes, and what they are computed from."""
    made = codes.made.of_scores(codes.content)
    return _folder(codes.made.job) / f"{digest(made)}.h5", made


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
    for path in sorted(_folder(row[:6]).glob("*.h5")):
        try:
            scores = artifact.read(path, "scores", _scores_of, made) or {}
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

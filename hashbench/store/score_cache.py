"""The scores of every query, kept by what they were computed from; those of a job's earlier codes too.

A job (dataset, features, method, parameters, length, seed) has a folder in the data folder, and in it a file for each
content that its codes had, so that `hashbench.reports.diff` finds the queries behind a row of an earlier commit.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.dataset import canonical_json
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.metrics import Scores
from hashbench.store.files import data_dir, locked
from hashbench.store.hdf5 import SCHEMA_VERSION, Codes, read_scores, write_scores
from hashbench.store.results import Row

N_KEPT = 20  # files a job; the oldest goes first


@dataclass(frozen=True)
class KeptScores:
    """The file of the scores of one content of codes.

    Parameters
    ----------
    path : Path
        The HDF5 file; need not exist.
    stamp : mapping
        What the scores are computed from.
    """

    path: Path
    stamp: Mapping[str, Any]

    def read(self) -> dict[str, Scores]:
        """Read the scores.

        Returns
        -------
        dict of str to Scores
            By metric; empty if there are none yet.
        """
        return {name: Scores(*values) for name, values in read_scores(self.path, self.stamp).items()}

    def write(self, scores: Mapping[str, Scores]) -> None:
        """Write the scores, and forget the job's oldest if there are more than ``N_KEPT`` files.

        Parameters
        ----------
        scores : mapping of str to Scores
            By metric.
        """
        write_scores(self.path, {name: np.stack(values) for name, values in scores.items()}, self.stamp)
        newest_first = sorted(self.path.parent.glob("*.h5"), key=lambda path: -path.stat().st_mtime_ns)
        for path in newest_first[N_KEPT:]:
            path.unlink()


@contextmanager
def opened(codes: Codes, scored_by: str) -> Iterator[KeptScores]:
    """Give the file for the scores of some codes, and keep other processes from its job's folder.

    Parameters
    ----------
    codes : Codes
        What is scored.
    scored_by : str
        Digest of the code that decides the scores.

    Yields
    ------
    KeptScores
        While the lock is held.
    """
    job = (codes.dataset, codes.features, codes.method, canonical_json(dict(codes.params)), codes.n_bits, codes.seed)
    stamp = {
        "schema_version": SCHEMA_VERSION,
        "content": codes.content,
        "dataset_fingerprint": codes.dataset_fingerprint,
        "method_version": codes.method_version,
        "made_by": scored_by,
    }
    folder = _folder(job)
    with locked(folder):
        yield KeptScores(folder / f"{_digest(stamp)}.h5", stamp)


def find_scores(row: Row) -> FloatArray | None:
    """Find the queries behind a row of results.

    Parameters
    ----------
    row : Row
        A row of any commit.

    Returns
    -------
    ndarray of shape (n_queries,), float64, or None
        The mean over tie orders of each query, NaN where it is undefined; from the file of the row's job with its
        fingerprint and method version, in which the metric's number of queries is the row's, and mean, low and high
        agree with it to six decimals. None if there is no such file, or if several that tell different queries apart.
    """
    stamp = {"dataset_fingerprint": row.dataset_fingerprint, "method_version": row.method_version}
    found = []
    for path in sorted(_folder(row.key[:6]).glob("*.h5")):
        values = read_scores(path, stamp).get(row.metric)
        if values is None or values.shape[1] != row.n_queries:
            continue
        if _summary(values) == (row.value, row.low, row.high):
            found.append(values[0])
    is_clear = all(np.allclose(found[0], other, rtol=0, atol=1e-9, equal_nan=True) for other in found[1:])
    return found[0] if found and is_clear else None


def _summary(values: FloatArray) -> tuple[str, ...]:
    (summary,) = Evaluation({"": Scores(*values)}, 0).summary.values()
    return tuple(f"{value:.6f}" for value in summary[:3])


def _folder(job: tuple[Any, ...]) -> Path:
    """Find the folder of a job, given as the key of its rows without the metric."""
    dataset, _, method, _, n_bits, seed = job
    return data_dir() / "scores" / str(dataset) / f"{method}-{n_bits}-s{seed}-{_digest(job)[:8]}"


def _digest(value: Any) -> str:
    return sha256(canonical_json(value).encode()).hexdigest()[:16]

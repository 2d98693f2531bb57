"""Codes, labels and affinities that users bring in NumPy and SciPy files."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hashbench.affinity import Hierarchy
from hashbench.errors import HashbenchError
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.evaluator import evaluate
from hashbench.sources.array_files import load_array, load_matrix


def evaluate_files(
    metrics: Iterable[str],
    *,
    query_codes: Path,
    database_codes: Path,
    query_labels: Path | None = None,
    database_labels: Path | None = None,
    query_coarse: Path | None = None,
    database_coarse: Path | None = None,
    affinity: Path | None = None,
    n_bits: int | None = None,
    distance: str = "hamming",
    undefined: str = "skip",
) -> Evaluation:
    """Score codes read from ``.npy`` files; see `hashbench.evaluate` for what is not a file.

    Labels are classes (n,), with superclasses (n,) if there are any (level 2 for equal classes, 1 for equal
    superclasses), or multi-hot (n, n_classes). Instead of labels, an affinity is a matrix (queries, database) of
    levels, in ``.npy`` or in ``.npz`` as `scipy.sparse.save_npz` writes it.
    """
    if distance == "cosine" and n_bits is not None:
        raise HashbenchError("--distance cosine ranks by real-valued outputs, which have no --bits; leave one out.")
    if affinity is not None and (query_coarse is not None or database_coarse is not None):
        raise HashbenchError("superclasses (--query-coarse, --database-coarse) go with labels, not with --affinity.")
    if affinity is not None and query_labels is None and database_labels is None:
        relevance: Any = load_matrix(affinity)
    elif affinity is None and query_labels is not None and database_labels is not None:
        relevance = (load_array(query_labels), load_array(database_labels))
        if query_coarse is not None and database_coarse is not None:
            relevance = Hierarchy(relevance[0], relevance[1], load_array(query_coarse), load_array(database_coarse))
        elif query_coarse is not None or database_coarse is not None:
            raise HashbenchError("superclasses are needed of both: --query-coarse and --database-coarse.")
    else:
        options = {"--query-labels": query_labels, "--database-labels": database_labels, "--affinity": affinity}
        given = " and ".join(option for option, value in options.items() if value is not None) or "nothing"
        raise HashbenchError(
            f"say what is relevant by both --query-labels and --database-labels, or by --affinity alone; got {given}."
        )
    query, database = load_array(query_codes), load_array(database_codes)
    if n_bits is None and query.ndim == database.ndim == 2 and query.shape[1] != database.shape[1]:
        raise HashbenchError(
            f"query codes in {query_codes} have {query.shape[1]} columns and database codes in {database_codes} "
            f"{database.shape[1]}; both must be equally long."
        )
    return evaluate(
        query,
        database,
        relevance,
        metrics,
        n_bits=n_bits,
        distance=distance,
        undefined=undefined,
    )

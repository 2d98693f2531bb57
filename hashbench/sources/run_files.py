"""Runs and relevance judgements (qrels) in the formats of TREC, plain or gzip."""

import gzip
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

from hashbench.errors import HashbenchError
from hashbench.scoring.runs import RankedRun
from hashbench.store.inputs import check_file, check_fits, reading

T = TypeVar("T")

_RUN = ("query", "Q0", "document", "rank", "score", "name of the run")
_QRELS = ("query", "0", "document", "grade")
_FACTOR = 6  # bytes of memory per byte of text
_ZIPPED = 6  # bytes of text per byte of a zipped file


def read_run(path: Path | str) -> dict[str, dict[str, float]]:
    """Read a run: lines of query, Q0, document, rank, score and name, separated by blanks; plain or gzip.

    Returns the score of each document that was retrieved for a query. The highest score is first, whatever the rank;
    `evaluate_run` reports lists whose ranks contradict that. Raises `HashbenchError` if a line has another form, a
    document comes twice for a query, or scores only grow with the rank, as distances do.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "run.txt")
    ...     _ = path.write_text("q1 Q0 d7 1 0.9 mine")
    ...     read_run(path)
    {'q1': {'d7': 0.9}}
    """
    run: dict[str, dict[str, float]] = {}
    ranks: dict[str, array[float]] = {}
    for number, (query, _, document, rank, text, _) in _lines(Path(path), _RUN):
        score = _number(text)
        if math.isnan(score):
            raise HashbenchError(f"{path} line {number}: the score {text!r} of document {document!r} is not a number.")
        _enter(run, query, document, score, path, number)
        ranks.setdefault(query, array("d")).append(_number(rank))
    ranked = RankedRun.of(run, ranks)
    if ranked.n_rising and not ranked.n_falling:
        raise HashbenchError(
            f"{path} has scores that grow with the rank in all lists, as distances do. The highest score comes first "
            "in a run; write minus the distance."
        )
    return ranked


def read_qrels(path: Path | str) -> dict[str, dict[str, float]]:
    """Read relevance judgements: lines of query, an ignored number, document and grade; plain or gzip.

    Returns the grade of each document that was judged for a query; above 0 it is relevant. Grades that are whole are
    integers. Raises `HashbenchError` if a line has another form, or a document comes twice for a query.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "qrels.txt")
    ...     _ = path.write_text("q1 0 d7 2")
    ...     read_qrels(path)
    {'q1': {'d7': 2}}
    """
    qrels: dict[str, dict[str, float]] = {}
    for number, (query, _, document, text) in _lines(Path(path), _QRELS):
        grade = _number(text)
        if not math.isfinite(grade):
            raise HashbenchError(
                f"{path} line {number}: the grade {text!r} of document {document!r} is not a finite number."
            )
        _enter(qrels, query, document, int(grade) if grade.is_integer() else grade, path, number)
    return qrels


def _lines(path: Path, columns: tuple[str, ...]) -> Iterator[tuple[int, list[str]]]:
    """Read the cells of each line that is not blank, with its number from 1."""
    check_file(path)
    with path.open("rb") as file:
        is_zipped = file.read(2) == b"\x1f\x8b"
    check_fits(path.stat().st_size * _FACTOR * (_ZIPPED if is_zipped else 1), str(path))
    n_lines = 0
    # some editors begin a file with a byte-order mark
    with reading(path, "lines of text"), (gzip.open if is_zipped else open)(path, "rt", encoding="utf-8-sig") as text:
        for number, line in enumerate(text, start=1):
            cells = line.split()
            if cells and len(cells) != len(columns):
                other = {len(_RUN): "a run", len(_QRELS): "qrels"}.get(len(cells))
                hint = f" {len(cells)} columns are those of {other}; exchange the files." if other else ""
                raise HashbenchError(
                    f"{path} line {number} has {len(cells)} columns, expected {len(columns)}: {', '.join(columns)}."
                    + hint
                )
            if cells:
                n_lines += 1
                yield number, cells
    if not n_lines:
        raise HashbenchError(f"{path} holds no lines, expected some of {', '.join(columns)}.")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _enter(table: dict[str, dict[str, T]], query: str, document: str, value: T, path: Path | str, number: int) -> None:
    documents = table.setdefault(query, {})
    if document in documents:
        raise HashbenchError(
            f"{path} line {number}: document {document!r} comes a second time for query {query!r}; keep only one line."
        )
    documents[document] = value

"""Runs: a list of documents with scores for each query; tie groups are documents with equal scores."""

from __future__ import annotations  # so that help() shows types as they are written

import zlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from hashbench._typing import BoolArray, FloatArray, IntArray, Undefined
from hashbench._validation import MAX_LEVEL, as_array, check_few, check_levels
from hashbench.errors import HashbenchError
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import RUN_METRICS, Evaluation
from hashbench.scoring.lists import ListRanking, RankedList
from hashbench.scoring.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

_QUERY = ("query_id", "q_id", "qid")  # column names of ir_measures, ranx and PyTerrier
_DOCUMENT = ("doc_id", "docno", "docid")
_SCORE = ("score",)
_GRADE = ("relevance", "rel", "label", "score")
_FEWEST_RISES = 2  # of scores, in the order of a dict, before this is not taken for chance


@reporting_compilation()
def evaluate_run(
    run: Mapping[str, Mapping[str, float]] | pd.DataFrame,
    qrels: Mapping[str, Mapping[str, float]] | pd.DataFrame,
    metrics: Iterable[str] = RUN_METRICS,
    *,
    complete: bool = False,
    exclude_self: bool = False,
    undefined: Undefined = "skip",
    random_orders: int = 0,
) -> Evaluation:
    """Score a run against relevance judgements, exactly over all orders of documents with equal scores.

    Parameters
    ----------
    run : dict of str to dict of str to float, or DataFrame
        The score of each document retrieved for a query, the highest first; scores are compared as float64. A
        DataFrame has columns ``query_id``, ``doc_id`` and ``score``, or those of ranx or PyTerrier.
    qrels : dict of str to dict of str to float, or DataFrame
        The grade of each document judged for a query, above 0 if it is relevant; a whole number, or for NDCG also a
        real one, at most 1,000 different ones per query. Documents that are not judged have grade 0, and so have
        negative whole grades. A DataFrame has columns ``query_id``, ``doc_id`` and ``relevance``.
    metrics : iterable of str
        Names such as ``AP``, ``NDCG@10``, ``P@10``; none in a Hamming radius, and none that counts items below the
        last one of a list. As in other tools for runs, ``NDCG`` is ``NDCG:trec``, with linear gains; that of codes is
        ``NDCG:exponential``.
    complete : bool, default=False
        Whether queries of the qrels that the run lacks count as empty lists, 0 in all metrics (trec_eval's ``-c``),
        or are left out.
    exclude_self : bool, default=False
        Whether queries are documents, and each list is without the document that has the query's name.
    undefined : {"skip", "paper", "zero"}, default="skip"
        Queries without relevant documents are NaN and left out of the means; or AP 0 and NDCG 1; or 0 in all metrics.
    random_orders : int, default=0
        Number of random orders of the documents, each shared by all queries, to score too, 2 or more: the means under
        them are ``Evaluation.random_orders``. They are the same each time.

    Returns
    -------
    Evaluation
        With ``summary``, ``per_query``, ``queries`` in the order of the qrels, and ``notes`` on what was left out.

    Raises
    ------
    HashbenchError
        If run, qrels and metrics do not fit together.

    Notes
    -----
    All relevant documents count, retrieved or not: R, and the ideal of NDCG, are those of the qrels, and no cutoff
    reaches what was not retrieved. P@k divides by k also where a list is shorter. So for a query with relevant
    documents whose scores differ in float32, AP, NDCG:trec, NDCG@k:trec, P@k, R@k, RR, RPrec and Hit@k are trec_eval's
    map, ndcg, ndcg_cut, P, recall, recip_rank, Rprec and success; with ties trec_eval's value, which the names of the
    documents decide, lies between low and high. Scores that differ only in float64 are ties in trec_eval, and not
    here; a note counts such lists. trec_eval counts queries without relevant documents as 0.

    Examples
    --------
    >>> import hashbench
    >>> run = {"q1": {"a": 2.0, "b": 1.0, "c": 1.0}}
    >>> hashbench.evaluate_run(run, {"q1": {"b": 1, "d": 1}}, ["AP"])  # b at rank 2 or 3, d not retrieved
    <Evaluation of 1 query; AP: 0.2083 (0.1667 to 0.2500; tie_sd 0.0417)>
    """
    problem = problem_of_run(run, qrels, complete=complete, exclude_self=exclude_self)
    return problem.evaluate(metrics, undefined=undefined, random_orders=random_orders)


def problem_of_run(run: Any, qrels: Any, *, complete: bool = False, exclude_self: bool = False) -> Problem:
    """Return what `evaluate_run` scores, given the same arguments."""
    scores, grades = as_lists(run, qrels)
    shared = _shared_queries(scores, grades)
    queries = list(grades) if complete else shared
    judged = [_Judged.of(query, scores.get(query, {}), grades[query], exclude_self) for query in queries]
    documents = list(dict.fromkeys(name for one in judged for name in one.documents))
    number = {name: i for i, name in enumerate(documents)}
    names = np.array([zlib.crc32(name.encode(errors="surrogatepass")) for name in documents], dtype=np.int64)
    grades_of = (part for one in judged for part in (one.grades, one.unretrieved))
    levels = check_levels(np.concatenate([[1.0], *grades_of]), may_be_real=True)
    lists = [one.listed(number) for one in judged]
    known = {document for by_query in (scores, grades) for documents in by_query.values() for document in documents}
    about = _left_out(judged) if exclude_self else []
    about += [*_missing(scores, grades, complete=complete), *order_notes(scores, queries), *_notes(judged, len(known))]
    return Problem(
        ListRanking(lists, levels, len(documents), names[:, None], of_run=True), queries=queries, about=about
    )


class RankedRun(dict[str, dict[str, Any]]):
    """A run with ranks beside the scores: in how many lists some scores rise, or fall, with the rank."""

    n_rising = n_falling = 0

    @classmethod
    def of(cls, run: Mapping[str, dict[str, Any]], ranks: Mapping[str, Sequence[float]]) -> Self:
        """Return a run, given the ranks of its documents in their order; NaN ranks and equal ones do not count."""
        ranked = cls(run)
        for query, documents in run.items():
            rank, score = (np.array([*values], dtype=np.float64) for values in (ranks[query], documents.values()))
            order = np.lexsort((-score, rank))
            is_step = np.diff(rank[order]) > 0
            before, after = score[order][:-1][is_step], score[order][1:][is_step]
            ranked.n_rising += bool((before < after).any())
            ranked.n_falling += bool((before > after).any())
        return ranked


def order_notes(run: Mapping[str, Mapping[str, Any]], queries: Sequence[str]) -> list[str]:
    """Report lists whose scores rise with the rank or, without ranks, in the order of the documents, as distances do.

    Documents of dicts need no order, so only one that all lists of the ``queries`` have is reported.
    """
    advice = "The highest score comes first, as in trec_eval; if scores are distances, negate them."
    if isinstance(run, RankedRun) and (run.n_rising or run.n_falling):
        note = f"In {run.n_rising:,} of {len(run):,} lists the ranks contradict the scores. {advice}"
        return [note] if run.n_rising else []
    n_rises = 0
    for query in queries:
        score = _numbers(run.get(query, {}), f"scores of query {query!r}")
        if (score[1:] < score[:-1]).any():
            return []
        n_rises += int((score[1:] > score[:-1]).sum())
    return [f"In all lists scores rise from the first document to the last. {advice}"] * (n_rises >= _FEWEST_RISES)


def as_lists(run: Any, qrels: Any) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]:
    """Return a run and qrels, each a dict of dicts or a DataFrame, as dicts of dicts; refuse others."""
    return _by_query(run, "run", _SCORE), _by_query(qrels, "qrels", _GRADE)


class _Judged(NamedTuple):
    """One query's list of documents, by tie group and grade."""

    documents: Sequence[str]
    groups: IntArray  # the place of each document's score among the distinct ones
    grades: FloatArray
    unretrieved: FloatArray  # grades above 0 of documents that are not in the list
    is_left: BoolArray | None  # whether a document is not the query itself, if that is ignored
    n_negative: int
    n_last: int  # documents that share the last score
    is_tied_in_32_bits: bool  # whether some scores that differ are equal in float32

    @classmethod
    def of(cls, query: str, scores: Mapping[str, Any], grades: Mapping[str, Any], exclude_self: bool) -> _Judged:
        score = _numbers(scores, f"scores of query {query!r} in the run")
        if np.isnan(score).any():
            document = list(scores)[int(np.isnan(score).argmax())]
            raise HashbenchError(f"document {document!r} of query {query!r} in the run has score NaN; give a number.")
        grade = _numbers(grades, f"grades of query {query!r} in the qrels")
        is_bad = ~(grade <= MAX_LEVEL) | ((grade < 0) & (np.floor(grade) != grade))
        if is_bad.any():
            raise HashbenchError(
                f"grades of query {query!r} in the qrels must be numbers up to {MAX_LEVEL}, whole ones if they are "
                f"negative, got {float(grade[is_bad][0]):g}."
            )
        if len(grade) > MAX_LEVEL:
            check_few(np.union1d([0.0], np.maximum(grade, 0)), f"the qrels of query {query!r}")
        known = dict(zip(grades, np.maximum(grade, 0).tolist(), strict=True))
        retrieved = np.array([known.pop(document, 0) for document in scores], dtype=np.float64)
        others = (level for document, level in known.items() if level > 0 and not (exclude_self and document == query))
        unretrieved = np.array([*others], dtype=np.float64)
        is_left = np.array([document != query for document in scores], dtype=bool) if exclude_self else None
        distinct, groups, sizes = np.unique(-score, return_inverse=True, return_counts=True)
        n_last = int(sizes[-1]) if sizes.size else 0
        with np.errstate(over="ignore"):  # infinite in trec_eval too
            single = distinct.astype(np.float32)
        is_tied = bool((single[1:] == single[:-1]).any())
        n_negative = int((grade < 0).sum())
        return cls(list(scores), np.asarray(groups), retrieved, unretrieved, is_left, n_negative, n_last, is_tied)

    def listed(self, number: Mapping[str, int]) -> RankedList:
        items = np.array([number[name] for name in self.documents], dtype=np.int64)
        return RankedList(items, self.groups, self.grades, self.unretrieved, self.is_left)


def _left_out(lists: Sequence[_Judged]) -> list[str]:
    """Report in how many lists the query's own document was left out."""
    n_lists = sum(judged.is_left is not None and not judged.is_left.all() for judged in lists)
    if not n_lists:
        return ["No list holds a document with the name of its query, so leaving it out changes no ranking."]
    return [f"The document with the name of the query was left out of {n_lists:,} of {len(lists):,} lists."]


def _notes(lists: Sequence[_Judged], n_known: int) -> list[str]:
    """Report grades below 0, scores that only trec_eval ties, and lists that a tie may have cut."""
    notes, depth = [], max(len(judged.groups) for judged in lists)
    n_negative = sum(judged.n_negative for judged in lists)
    if n_negative:
        notes.append(f"Grades below 0 count as 0, not relevant; there are {n_negative:,}.")
    n_tied = sum(judged.is_tied_in_32_bits for judged in lists)
    if n_tied:
        notes.append(
            f"{n_tied} of {len(lists)} lists have scores that differ here but tie in trec_eval, which reads them in "
            "32 bits."
        )
    ends = [judged.n_last for judged in lists if len(judged.groups) == depth]
    n_cut = sum(n_last > 1 for n_last in ends)
    if n_cut and len(ends) > 1 and depth < n_known:
        notes.append(
            f"{n_cut} of {len(lists)} lists end in a tie at {depth:,} documents. If the run was cut there, chance "
            "decided which of the tied documents it holds, and low and high leave out the others."
        )
    return notes


def _shared_queries(scores: Mapping[str, Mapping[str, Any]], grades: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the queries of both; refuse names that never match, as all would score 0."""
    for source, by_query in (("run", scores), ("qrels", grades)):
        if not by_query:
            raise HashbenchError(f"the {source} is empty, expected documents for one query or more. Give another.")
    shared = [query for query in grades if query in scores]
    if not shared:
        raise HashbenchError(
            f"run and qrels have no query in common: the first of the run is {next(iter(scores))!r}, that of the "
            f"qrels {next(iter(grades))!r}. Give both the same names."
        )
    listed = next((name for query in shared for name in scores[query]), None)
    judged = next((name for query in shared for name in grades[query]), None)
    are_apart = all(scores[query].keys().isdisjoint(grades[query]) for query in shared)
    if are_apart and listed is not None and judged is not None:
        raise HashbenchError(
            f"no document that is judged for a query is in its list: the first of the run is {listed!r}, that of the "
            f"qrels {judged!r}. Give both the same names."
        )
    return shared


def _missing(scores: Mapping[str, Any], grades: Mapping[str, Any], *, complete: bool) -> list[str]:
    """Report queries that are missing from the run or the qrels."""
    notes = []
    n_empty, n_unjudged = len(grades.keys() - scores.keys()), len(scores.keys() - grades.keys())
    if n_empty:
        fate = "count as empty lists" if complete else "are left out, as trec_eval does without -c"
        notes.append(f"{n_empty} of the {len(grades)} queries of the qrels have no list in the run and {fate}.")
    if n_unjudged:
        notes.append(f"{n_unjudged} of the {len(scores)} queries of the run are not in the qrels and are left out.")
    return notes


def _by_query(values: Any, what: str, names: tuple[str, ...]) -> Mapping[str, Mapping[str, Any]]:
    """Check scores or grades, a dict of dicts or a DataFrame with a column of one of the ``names``."""
    if hasattr(values, "columns"):
        return _of_table(values, what, names)
    is_nested = isinstance(values, Mapping) and all(isinstance(documents, Mapping) for documents in values.values())
    if not is_nested:
        raise HashbenchError(
            f"{what} must be a dict of dicts, {{query: {{document: {names[0]}}}}}, or a DataFrame with columns "
            f"{_QUERY[0]}, {_DOCUMENT[0]} and {names[0]}, got {type(values).__name__}. hashbench.read_run and "
            "hashbench.read_qrels read files."
        )
    for query, documents in values.items():
        stray: Hashable = next((name for name in (query, *documents) if not isinstance(name, str)), "")
        if stray != "":
            raise HashbenchError(f"queries and documents are named by strings, got {stray!r} in the {what}; use str().")
    return values  # type: ignore[no-any-return]


def _of_table(table: Any, what: str, names: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    columns = []
    for known in (_QUERY, _DOCUMENT, names):
        column = next((name for name in known if name in table.columns), None)
        if column is None:
            raise HashbenchError(
                f"the {what} has columns {', '.join(map(str, table.columns))}, but none called {' or '.join(known)}."
            )
        if known is not names and table[column].isna().any():
            row = int(table[column].isna().to_numpy().argmax())
            raise HashbenchError(f"the {what} has no {column} in row {row}, counted from 0; leave such rows out.")
        columns.append(table[column].tolist())
    result: dict[str, dict[str, Any]] = {}
    for query, document, value in zip(*columns, strict=True):
        documents = result.setdefault(str(query), {})
        if str(document) in documents:
            raise HashbenchError(f"the {what} has document {document!r} a second time for query {query!r}; keep one.")
        documents[str(document)] = value
    has_ranks = names is _SCORE and "rank" in table.columns
    if not has_ranks or any(table[column].dtype.kind not in "iuf" for column in ("rank", *_SCORE)):
        return result
    ranks: dict[str, list[float]] = {}
    for query, rank in zip(columns[0], table["rank"].tolist(), strict=True):
        ranks.setdefault(str(query), []).append(rank)
    return RankedRun.of(result, ranks)


def _numbers(values: Mapping[str, Any], what: str) -> FloatArray:
    array = as_array(list(values.values()) or [0], what)[: len(values)]
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise HashbenchError(f"{what} are {array.dtype}, expected numbers.")
    return array.astype(np.float64)

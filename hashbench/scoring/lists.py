"""Lists of items by score, one for each query: tie groups are items with equal scores.

Rankings of any origin are scored as arrays, with NumPy alone; `runs` are lists too.
"""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from numbers import Integral
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, BoolArray, IntArray, Undefined
from hashbench._validation import MAX_LEVEL, are_levels, are_real, as_array, check_few, check_levels
from hashbench.affinity import Affinity, Explicit, row_digests
from hashbench.errors import HashbenchError
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.histogram import TieHistogram, count_groups, levels_of
from hashbench.scoring.ignored import check_left, leave_out
from hashbench.scoring.metrics import Metric, checked_metrics
from hashbench.scoring.problem import Problem
from hashbench.scoring.random_orders import Ties
from hashbench.scoring.ranking import ALL, Plan, QueryKinds, Ranking
from hashbench.scoring.score_table import Counted, add_lists

_AT_A_TIME, _COUNTS = 64, 1 << 21  # queries, and counts of a histogram, held at a time
_METRICS = ("AP", "NDCG@10:trec")
_FEW, _MANY = 5, 10  # grades are at most so few, and scores more than so many, if the two are clearly swapped


def evaluate_ranking(
    *,
    relevance: npt.ArrayLike | Sequence[npt.ArrayLike] | Affinity,
    scores: npt.ArrayLike | Sequence[npt.ArrayLike],
    metrics: Iterable[str] = _METRICS,
    undefined: Undefined = "skip",
    exclude_self: bool = False,
    exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> Evaluation:
    """Score rankings by any scores, exactly over all orders of items with equal scores.

    Parameters
    ----------
    relevance : array of shape (n_queries, n_items), sequence of arrays of shape (n_items,), or Affinity
        The grade of each item, a whole number from 0 on, above 0 if it is relevant, or for NDCG also a real one, -1 if
        the query ignores it; a sequence where queries have different numbers of items. One ranking may be of shape
        (n_items,). Where all have as many items, the i-th one is taken to be the same for all queries: a random order,
        as in ``tie_sd``, moves it in all rankings. At most 1,000 grades of a query may differ; round real ones.
    scores : array or sequence of arrays, of the same shapes
        The higher, the nearer to the top. Infinite ones are allowed; integers are compared as they are.
    metrics : iterable of str
        Names such as ``AP``, ``NDCG@10:trec``, ``P@10``, ``RR``; none in a Hamming radius. ``NDCG:trec`` is
        scikit-learn's ``ndcg_score``, ``AP:thresholds`` its ``average_precision_score``.
    undefined : {"skip", "paper", "zero"}, default="skip"
        Queries without relevant items are NaN and left out of the means; or AP 0 and NDCG 1; or 0, as scikit-learn,
        ranx, torchmetrics and trec_eval have them.
    exclude_self, exclude_same_id, groups, junk_label
        As in `hashbench.evaluate`, where all queries rank the same items; classes are those of an `Affinity`.

    Returns
    -------
    Evaluation
        With ``scores``, ``summary`` and ``per_query``.

    Raises
    ------
    HashbenchError
        If relevance, scores and metrics do not fit together.

    Examples
    --------
    >>> evaluate_ranking(relevance=[[1, 0, 0]], scores=[[0.5, 0.5, 0.1]], metrics=["AP"])
    <Evaluation of 1 query; AP: 0.7500 (0.5000 to 1.0000; tie_sd 0.2500)>
    """
    ignored = exclude_self, exclude_same_id, groups, junk_label
    return problem_of_scores(relevance, scores, metrics, *ignored).evaluate(metrics, undefined=undefined)


def problem_of_scores(
    relevance: npt.ArrayLike | Sequence[npt.ArrayLike] | Affinity,
    scores: npt.ArrayLike | Sequence[npt.ArrayLike],
    metrics: Iterable[str],
    exclude_self: bool = False,
    exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> Problem:
    """Return rankings by any scores, for metrics, from what `evaluate_ranking` takes."""
    is_whole = (
        isinstance(relevance, Affinity)
        or exclude_self
        or any(given is not None for given in (exclude_same_id, groups, junk_label))
    )
    lists, rule = _rows(scores, "scores"), None
    if is_whole:
        rated = relevance if isinstance(relevance, Affinity) else _as_matrix(_rows(relevance, "relevance"))
        rule = leave_out(rated, exclude_self, exclude_same_id, groups, junk_label)
        rows = [slice(query, query + 1) for query in range(rule.n_queries)]
        grades: list[AnyArray] = [rule.plain.block(row, ALL)[0] for row in rows]
        left = [rule.block(row, ALL)[0] >= 0 for row in rows]
    else:
        grades = _rows(relevance, "relevance")  # type: ignore[arg-type]
        left = [grade != -1 for grade in grades]
    if len(grades) != len(lists):
        raise HashbenchError(f"there is relevance for {len(grades)} queries and there are scores for {len(lists)}.")
    if not grades:
        raise HashbenchError("there are no queries; at least one is needed.")
    for number, (grade, score) in enumerate(zip(grades, lists, strict=True)):
        _check(grade, score, number)
    if exclude_self and len(lists) != len(lists[0]):
        raise HashbenchError(
            f"excluding self-matches needs the same items as queries and database, got {len(lists):,} queries and "
            f"{len(lists[0]):,} items."
        )
    takes_real = all(metric.family.takes_real_levels for metric in checked_metrics(metrics, "skip"))
    kept = [grade[is_left] for grade, is_left in zip(grades, left, strict=True)]
    check_left(np.array([len(one) for one in kept]), np.arange(len(kept)))
    _check_order(np.concatenate(kept), np.concatenate(lists), may_be_real=takes_real)
    levels = check_levels(np.concatenate(kept), "relevance", may_be_real=True)
    if are_real(levels):
        for number, grade in enumerate(kept):
            check_few(np.union1d([0.0], grade), f"relevance of query {number}")
    lengths = np.array([len(score) for score in lists])
    are_shared = (lengths == lengths[0]).all()
    starts = np.zeros_like(lengths) if are_shared else np.cumsum(lengths) - lengths
    keys = row_digests(np.array(grades, dtype=levels.dtype).T).view(np.int64) if are_shared else None
    ranked = [
        RankedList(start + np.arange(len(score)), groups_of(score), grade, None, None if is_left.all() else is_left)
        for start, score, grade, is_left in zip(starts, lists, grades, left, strict=True)
    ]
    about = [] if rule is None else list(rule.notes)
    ranking = ListRanking(ranked, levels, int(starts[-1] + lengths[-1]), keys, rule)
    return Problem(ranking, about=about)


def _as_matrix(rows: Sequence[AnyArray]) -> Affinity:
    """Return the relevance of the same items to all queries, of which some are to be left out."""
    if len({len(row) for row in rows}) > 1:
        raise HashbenchError(
            "items are left out by their places in the database, but queries have different numbers of items. Remove "
            "them from relevance and scores instead."
        )
    return Explicit(np.array(rows))


def _rows(values: npt.ArrayLike | Sequence[npt.ArrayLike], name: str) -> list[AnyArray]:
    """Return the values of each query."""
    if isinstance(values, Sequence) and values and np.ndim(values[0]) == 1:
        return [_as_numbers(row, f"{name} of query {number}") for number, row in enumerate(values)]
    array = _as_numbers(values, name)
    if array.ndim not in (1, 2):
        raise HashbenchError(f"{name} have {array.ndim} dimensions, expected (n_queries, n_items).")
    return list(np.atleast_2d(array))


def _as_numbers(values: npt.ArrayLike | Sequence[npt.ArrayLike], name: str) -> AnyArray:
    """Convert to an array; refuse integers that would tie because NumPy rounds a mixed list to float64."""
    array = as_array(values, name)
    if array.dtype.kind == "f" and isinstance(values, Sequence) and (np.abs(array[np.isfinite(array)]) >= 2**53).any():
        for number in np.ravel(np.asarray(values, dtype=object)):
            if isinstance(number, Integral) and int(float(number)) != int(number):
                raise HashbenchError(
                    f"{name} hold {number} in a list that NumPy reads as float64, which rounds it; give an array of "
                    "integers."
                )
    return array


def _check(grade: AnyArray, score: AnyArray, number: int) -> None:
    if score.ndim != 1 or grade.shape != score.shape or not score.size:
        raise HashbenchError(
            f"query {number} has relevance of shape {grade.shape} and scores of shape {score.shape}; give one of each "
            "for every item, at least one."
        )
    if score.dtype.kind not in "biuf":
        raise HashbenchError(f"scores of query {number} are {score.dtype}, expected numbers.")
    if score.dtype.kind == "f" and np.isnan(score).any():
        raise HashbenchError(f"item {int(np.isnan(score).argmax())} of query {number} has score NaN; give a number.")


def _check_order(grades: AnyArray, scores: AnyArray, *, may_be_real: bool) -> None:
    """Refuse relevance and scores that look swapped."""
    if grades.dtype.kind not in "biuf":
        return
    others = grades[~(are_levels(np.ceil(grades) if may_be_real else grades) | np.isnan(grades))]
    if not are_levels(scores).all():
        return
    n_grades, n_scores = len(np.unique(grades)), len(np.unique(scores))
    fractions = grades[grades > np.floor(grades)]
    if others.size:
        sign = f"relevance holds {others[0]}, which is not a grade, and scores only whole numbers"
        advice = f"; if it is right, give grades from 0 to {MAX_LEVEL}, whole numbers except for NDCG"
    elif n_grades > _MANY and n_scores <= _FEW:
        sign = f"relevance holds {n_grades} grades and scores hold {n_scores} whole numbers"
        advice = "; if it is right, add 0.5 to the scores"
    elif fractions.size and n_grades > n_scores == 2 and scores.max() == 1:
        sign = f"relevance holds {n_grades} grades, such as {fractions[0]}, and scores only 0 and 1"
        advice = "; if it is right, add 0.5 to the scores"
    else:
        return
    raise HashbenchError(
        f"relevance and scores look swapped: {sign}. Call evaluate_ranking(relevance=..., scores=...){advice}."
    )


class RankedList(NamedTuple):
    """The items that are listed for a query, each with its tie group and its grade."""

    items: IntArray  # their numbers among those of all queries
    groups: IntArray  # the place of each item's score among the distinct ones
    grades: AnyArray
    unretrieved: AnyArray | None = None  # grades above 0 of items that are not listed; None where all are
    is_left: BoolArray | None = None  # whether the query does not ignore an item; None where it ignores none

    @property
    def ranked(self) -> RankedList:
        """The list without the items that its query ignores."""
        if self.is_left is None:
            return self
        left = self.is_left
        return RankedList(self.items[left], self.groups[left], self.grades[left], self.unretrieved)

    @property
    def digest(self) -> bytes:
        """A digest that lists of equal items, groups and grades share."""
        order = np.argsort(self.items, kind="stable")
        listed = np.array([self.items, self.groups, self.grades], dtype=np.float64)[:, order]
        unretrieved = np.sort(self.unretrieved).tobytes() if self.unretrieved is not None else b""
        return blake2b(listed.tobytes() + unretrieved, digest_size=16).digest()


class ListRanking(Ranking):
    """Lists out of ``n_items``, with grades among some levels; ``keys``, (n_items, n_keys), tell items apart."""

    def __init__(
        self,
        lists: Sequence[RankedList],
        levels: AnyArray,
        n_items: int,
        keys: IntArray | None,
        relevance: Affinity | None = None,
        *,
        of_run: bool = False,
    ) -> None:
        self._all, self.lists = lists, [one.ranked for one in lists]
        self._levels, self._keys, self.relevance, self.of_run = levels, keys, relevance, of_run
        self.n_queries, self.n_items = len(lists), n_items
        self.is_counted_one_by_one = are_real(levels)

    @property
    def levels(self) -> AnyArray:
        """Those of all lists."""
        return self._levels

    @cached_property
    def key_bytes(self) -> AnyArray:
        """A digest of each list as it is ranked."""
        return _as_rows([one.digest for one in self.lists])

    @cached_property
    def kinds(self) -> QueryKinds:
        """The kinds of lists."""
        return QueryKinds.of(self.key_bytes, np.empty((self.n_queries, 0), dtype=np.int64))

    @cached_property
    def plain_kinds(self) -> QueryKinds:
        """The kinds of lists with the items that their queries ignore."""
        if all(one.is_left is None for one in self._all):
            return self.kinds
        return QueryKinds.of(_as_rows([one.digest for one in self._all]), np.empty((self.n_queries, 0), dtype=np.int64))

    def plan(self, metrics: Sequence[Metric]) -> Plan:
        """Count some lists at a time, each in a thread; groups are padded with empty ones."""
        depth = max(max(len(one.groups) for one in self.lists), 1)
        n_levels = min(depth, MAX_LEVEL) + 1 if self.is_counted_one_by_one else len(self._levels)
        parts = chunks(0, self.n_queries, max(min(_AT_A_TIME, _COUNTS // (n_levels * depth)), 1))

        def counted(queries: slice) -> Counted:
            lists = self.lists[queries]
            histogram = self._count(lists)
            levels, n_groups = histogram.levels, histogram.counts.shape[2]
            cells = [np.searchsorted(levels, one.grades) * n_groups + one.groups for one in lists]
            return Counted(histogram, partial(add_lists, cells, [one.items for one in lists]))

        return Plan(lambda *_: iter([(parts, counted)]), self.n_queries, rows=np.arange(self.n_items), keys=self._keys)

    def ranked(self, queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        """See `Ranking.ranked`."""
        lists = [self.lists[query] for query in queries]
        histogram = self._count(lists)
        length = max(len(one.groups) for one in lists)
        group, level, item = np.full((3, len(lists), length), -1, dtype=np.int64)
        for row, one in enumerate(lists):
            group[row, : len(one.groups)] = one.groups
            level[row, : len(one.groups)] = np.searchsorted(histogram.levels, one.grades)
            item[row, : len(one.groups)] = one.items
        ties = Ties(group, level.astype(np.int16), histogram)

        def ranked(order: IntArray) -> TieHistogram:
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
            return ties.ranked(np.argsort(place[item], axis=1))

        return ranked

    def _count(self, lists: Sequence[RankedList]) -> TieHistogram:
        listed = [one.grades for one in lists]
        others = [one.unretrieved for one in lists if one.unretrieved is not None]
        levels = levels_of([*listed, *others], self._levels)
        level = [np.searchsorted(levels, grades) for grades in listed]
        histogram = count_groups(level, [one.groups for one in lists], levels)
        if not others:
            return histogram
        indices = [np.searchsorted(levels, grades) for grades in others]
        unretrieved = np.array([np.bincount(each, minlength=len(levels)) for each in indices])
        return replace(histogram, unretrieved=unretrieved)


def groups_of(score: AnyArray) -> IntArray:
    """Return the place of each item's score among the distinct ones, the highest first."""
    distinct, ascending = np.unique(score, return_inverse=True)
    return np.asarray(len(distinct) - 1 - ascending)


def _as_rows(digests: Sequence[bytes]) -> AnyArray:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(len(digests), -1)

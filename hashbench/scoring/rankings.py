"""Rankings of any origin, by scores that tie: from arrays to the scores of every query, with NumPy alone."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections.abc import Iterable, Sequence
from functools import partial
from numbers import Integral

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, IntArray
from hashbench._validation import MAX_LEVEL, are_levels, are_real, as_array, check_few, check_levels
from hashbench.affinity import row_digests
from hashbench.errors import HashbenchError
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.histogram import count_groups, levels_of
from hashbench.scoring.metrics import checked_metrics
from hashbench.scoring.score_table import Counted, ItemSums, ScoreTable, add_lists

_METRICS = ("AP", "NDCG@10:trec")
_COUNTS = 1 << 21  # of a histogram held at a time
_FEW, _MANY = 5, 10  # grades are at most so few, and scores more than so many, if the two are clearly swapped


def evaluate_ranking(
    relevance: npt.ArrayLike | Sequence[npt.ArrayLike],
    scores: npt.ArrayLike | Sequence[npt.ArrayLike],
    metrics: Iterable[str] = _METRICS,
    *,
    undefined: str = "skip",
) -> Evaluation:
    """Score rankings by any scores, exactly over all orders of items with equal scores.

    Parameters
    ----------
    relevance : array of shape (n_queries, n_items), or sequence of arrays of shape (n_items,)
        The grade of each item, a whole number from 0 on, above 0 if it is relevant, or for NDCG also a real one; a
        sequence where queries have different numbers of items. One ranking may be of shape (n_items,). Where all have
        as many items, the i-th one is taken to be the same for all queries: a random order, as in ``tie_sd``, moves it
        in all rankings. At most 1,000 grades of a query may differ; round real ones.
    scores : array or sequence of arrays, of the same shapes
        The higher, the nearer to the top. Infinite ones are allowed; integers are compared as they are.
    metrics : iterable of str
        Names such as ``AP``, ``NDCG@10:trec``, ``P@10``, ``RR``; none in a Hamming radius. ``NDCG:trec`` is
        scikit-learn's ``ndcg_score``, ``AP:thresholds`` its ``average_precision_score``.
    undefined : {"skip", "paper", "zero"}, default="skip"
        Queries without relevant items are NaN and left out of the means; or AP 0 and NDCG 1; or 0, as scikit-learn,
        ranx, torchmetrics and trec_eval have them.

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
    >>> evaluate_ranking([[1, 0, 0]], [[0.5, 0.5, 0.1]], ["AP"])
    <Evaluation of 1 query; AP: 0.7500 (0.5000 to 1.0000; tie_sd 0.2500)>
    """
    chosen = checked_metrics(metrics, undefined)
    grades, lists = _rows(relevance, "relevance"), _rows(scores, "scores")
    if len(grades) != len(lists):
        raise HashbenchError(f"there is relevance for {len(grades)} queries and there are scores for {len(lists)}.")
    if not grades:
        raise HashbenchError("there are no queries; at least one is needed.")
    for number, (grade, score) in enumerate(zip(grades, lists, strict=True)):
        _check(grade, score, number)
    takes_real = all(metric.family.takes_real_levels for metric in chosen)
    _check_order(np.concatenate(grades), np.concatenate(lists), may_be_real=takes_real)
    levels = check_levels(np.concatenate(grades), "relevance", may_be_real=True)
    for metric in chosen:
        metric.check_ranking(levels, by_radius=False)
    one_by_one = are_real(levels)
    lengths = np.array([len(score) for score in lists])
    are_shared = (lengths == lengths[0]).all()
    starts = np.zeros_like(lengths) if are_shared else np.cumsum(lengths) - lengths
    items = [start + np.arange(length) for start, length in zip(starts, lengths, strict=True)]
    n_items = int(starts[-1] + lengths[-1])
    keys = row_digests(np.array(grades, dtype=levels.dtype).T).view(np.int64) if are_shared else None
    sums = ItemSums(chosen, len(grades), np.arange(n_items), n_items, keys=keys)
    table = ScoreTable(chosen, undefined, len(grades), sums)
    longest = max(map(len, lists))
    at_a_time = max(_COUNTS // ((min(longest, MAX_LEVEL) + 1 if one_by_one else len(levels)) * longest), 1)

    def counted(part: slice) -> Counted:
        of_part = levels_of(grades[part], levels)
        check_few(of_part, f"relevance of query {part.start}")
        level, group = [np.searchsorted(of_part, grade) for grade in grades[part]], list(map(_groups, lists[part]))
        histogram = count_groups(level, group, of_part)
        n_groups = histogram.counts.shape[2]
        cells = [n_groups * levels_of_query + groups for levels_of_query, groups in zip(level, group, strict=True)]
        return Counted(histogram, partial(add_lists, cells, items[part]))

    with reporting_compilation():
        table.fill(chunks(0, len(grades), at_a_time), counted, one_by_one=one_by_one)
    return table.evaluation()


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


def _groups(score: AnyArray) -> IntArray:
    """Return the place of each item's score among the distinct ones, the highest first."""
    distinct, ascending = np.unique(score, return_inverse=True)
    return np.asarray(len(distinct) - 1 - ascending)


def _check_order(grades: AnyArray, scores: AnyArray, *, may_be_real: bool) -> None:
    """Refuse relevance and scores that look swapped, and marks of items to ignore."""
    if grades.dtype.kind not in "biuf":
        return
    others = grades[~(are_levels(np.ceil(grades) if may_be_real else grades) | np.isnan(grades))]
    if others.size and (others == -1).all():
        raise HashbenchError(
            f"relevance holds -1, expected levels 0 to {MAX_LEVEL}. If -1 marks items to ignore, remove them from "
            "relevance and scores."
        )
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
        f"relevance and scores look swapped: {sign}. The order is evaluate_ranking(relevance, scores){advice}."
    )

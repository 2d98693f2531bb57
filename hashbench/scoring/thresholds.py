"""What a Hamming threshold matches: counts of pairs at each radius, pooled over all queries."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Progress, Rows, silent
from hashbench._validation import refuse_fractions
from hashbench.affinity import Affinity
from hashbench.bits import as_packed_pair
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import Summary
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.ignored import check_left, check_symmetry, not_symmetric, why_none_left
from hashbench.scoring.intervals import CONFIDENCE, FEW_CLASSES, Units, groups_of, intervals
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.ranking import QueryKinds

if TYPE_CHECKING:
    import pandas as pd

    from hashbench.scoring.metrics._grammar import Slopes

_MEMORY = 256 << 20  # bytes of histograms held at a time
_ALL = slice(None)
_LONG = 1025  # distances; with more, the shuffle deviation of uAP is not computed


class Match(NamedTuple):
    """What a radius matches.

    Parameters
    ----------
    radius : int
        Pairs at this Hamming distance or nearer match.
    n_matches, n_false : int
        Pairs that match, and those among them that are not relevant.
    precision, recall, fpr, f1 : float
        Shares over all pairs: of matches that are relevant, of relevant pairs that match, of irrelevant pairs that
        match, and the harmonic mean of the first two. NaN where the divisor is 0.
    n_queries_with_false : int
        Queries with a false match; 0 for labelled pairs.
    precision_low, precision_high, recall_low, recall_high, fpr_low, fpr_high : float
        95 % intervals of the shares over pairs of other items or classes, `Thresholds.units`.

    Examples
    --------
    >>> from hashbench import Problem
    >>> Problem.of_codes([[0, 0, 0]], [[0, 0, 1], [1, 1, 0]], ([5], [5, 7])).thresholds().at(1).recall
    1.0
    """

    radius: int
    n_matches: int
    n_false: int
    precision: float
    recall: float
    fpr: float
    f1: float
    n_queries_with_false: int
    precision_low: float
    precision_high: float
    recall_low: float
    recall_high: float
    fpr_low: float
    fpr_high: float


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Counts of pairs by Hamming radius, over all queries and database items.

    Parameters
    ----------
    n_true, n_false : ndarray of shape (n_bits + 1,), int64
        Relevant and irrelevant pairs at distance 0, 1, ..., ``n_bits``; with ``exclude_self`` two items are one pair.
    n_empty, n_queries_with_false : ndarray of shape (n_bits + 1,), int64
        Queries that nothing matches within each radius, and queries with a false match.
    query_precision, query_recall : ndarray of shape (n_bits + 1,), float64
        Means over the queries with relevant items of ``P@rN`` (0 of an empty ball) and ``R@rN``.
    n_queries, n_undefined : int
        All queries, and those without relevant items, which are pooled, too; 0 of labelled pairs.
    pair_moments : ndarray of shape (3, n_bits + 1, n_bits + 1), float64
        Sums over queries of the products of two distances' counts: of relevant items, of these with all, of all. One
        NaN each for codes of over 1,024 bits.
    by_group : ndarray of shape (n_groups, 2, n_bits + 1), int64
        Irrelevant and relevant pairs that touch a group of items or classes, for intervals.
    units : str
        What intervals take as a sample, such as ``48 classes``: classes if there are at least 20, or else items.
    n_independent : int
        Groups of the role that has the fewest.
    are_met_twice : bool
        Whether pairs are of two items of the database, as with ``exclude_self``.
    notes : sequence of str
        Sentences about the input that its owner should read.
    held_out : Thresholds or None
        The other half of items or classes, if ``held_out`` was asked for.

    Examples
    --------
    >>> from hashbench import Problem
    >>> found = Problem.of_codes([[0, 0, 0]], [[0, 0, 1], [1, 1, 0]], ([5], [5, 7])).thresholds()
    >>> found, found.n_false.tolist()
    (<Thresholds of 3 bits; 1 relevant of 2 pairs, uAP 1.0000>, [0, 0, 1, 0])
    """

    n_true: IntArray
    n_false: IntArray
    n_empty: IntArray
    n_queries_with_false: IntArray
    query_precision: FloatArray
    query_recall: FloatArray
    n_queries: int
    n_undefined: int
    pair_moments: FloatArray
    by_group: IntArray
    units: str
    n_independent: int
    are_met_twice: bool = False
    notes: Sequence[str] = ()
    held_out: Thresholds | None = None

    @property
    def n_bits(self) -> int:
        """The code length."""
        return len(self.n_true) - 1

    @property
    def n_relevant(self) -> int:
        """Relevant pairs."""
        return int(self.n_true.sum())

    @property
    def n_irrelevant(self) -> int:
        """Irrelevant pairs."""
        return int(self.n_false.sum())

    def at(self, radius: int) -> Match:
        """Return what a radius matches.

        Parameters
        ----------
        radius : int
            From 0 to ``n_bits``.

        Returns
        -------
        Match
            Its counts and shares.

        Raises
        ------
        HashbenchError
            If codes have no such radius.
        """
        if radius not in range(self.n_bits + 1):
            raise HashbenchError(
                f"the radius is {radius}, expected a whole number from 0 to {self.n_bits}, the code length."
            )
        radius = int(radius)  # 2.0, too
        n_true, n_false = int(self.n_true[: radius + 1].sum()), int(self.n_false[: radius + 1].sum())
        n_matches = n_true + n_false
        return Match(
            radius,
            n_matches,
            n_false,
            precision=_share(n_true, n_matches),
            recall=_share(n_true, self.n_relevant),
            fpr=_share(n_false, self.n_irrelevant),
            f1=_share(2 * n_true, n_matches + self.n_relevant) if self.n_relevant else float("nan"),
            n_queries_with_false=int(self.n_queries_with_false[radius]),
            **{name: float(values[radius]) for name, values in self._ends.items()},
        )

    @cached_property
    def _ends(self) -> dict[str, FloatArray]:
        """Ends of the intervals, each (n_bits + 1,)."""
        counts = np.concatenate([np.stack([self.n_false, self.n_true])[None], self.by_group])  # all, then groups
        false, true = np.moveaxis(np.cumsum(counts, axis=2), 1, 0)  # (1 + n_groups, n_bits + 1) each
        shares = {
            "precision": (true, true + false),
            "recall": (true, np.broadcast_to(true[:, -1:], true.shape)),
            "fpr": (false, np.broadcast_to(false[:, -1:], false.shape)),
        }
        ends: dict[str, FloatArray] = {}
        for name, (hits, pairs) in shares.items():
            low, high = intervals(hits[0], pairs[0], hits[1:], pairs[1:], self.n_independent)
            ends |= {f"{name}_low": low, f"{name}_high": high}
        return ends

    @cached_property
    def matches(self) -> list[Match]:
        """What each radius matches, from 0 on."""
        return [self.at(radius) for radius in range(self.n_bits + 1)]

    @property
    def best_f1(self) -> Match | None:
        """The radius with the highest F1, the smallest of several; None without relevant pairs."""
        return max(self.matches, key=lambda match: match.f1) if self.n_relevant else None

    def at_fpr(self, rate: float) -> Match | None:
        """Return the largest radius whose false positive rate is at most ``rate`` by its upper bound, ``fpr_high``.

        Parameters
        ----------
        rate : float
            From 0 to 1.

        Returns
        -------
        Match or None
            None if ``fpr_high`` of every radius is above ``rate``; `why_no_radius` says why.
        """
        _check_share(rate, "a false positive rate")
        return next((match for match in reversed(self.matches) if match.fpr_high <= rate), None)

    def why_no_radius(self, rate: float) -> str:
        """Return why `at_fpr` finds none: too few pairs, or too many false matches.

        Parameters
        ----------
        rate : float
            The false positive rate that no radius has.

        Returns
        -------
        str
            The reason, without a full stop.
        """
        if not self.n_irrelevant:
            return "these pairs cannot show it, since none is irrelevant"
        least = self.at(0)
        if least.n_false:
            return f"no radius has it; the upper bound of radius 0 is {least.fpr_high:.2g}"
        pairs = counted(self.n_irrelevant, "irrelevant pair")
        bound = math.log(2 / (1 - CONFIDENCE))  # of the number of false matches where none is seen
        needed = f"; it takes some {bound / rate:,.0f} independent pairs or more" if rate else ""
        return (
            f"{pairs} cannot show it: without a false match, the upper bound is still {least.fpr_high:.2g}, as of some "
            f"{bound / least.fpr_high:,.0f} independent pairs{needed}"
        )

    def at_precision(self, precision: float) -> Match | None:
        """Return the largest radius whose precision is at least ``precision`` by its lower bound, ``precision_low``.

        Parameters
        ----------
        precision : float
            From 0 to 1.

        Returns
        -------
        Match or None
            None if ``precision_low`` of every radius is below ``precision``; `why_no_precision` says why.
        """
        _check_share(precision, "a precision")
        return next((match for match in reversed(self.matches) if match.precision_low >= precision), None)

    def why_no_precision(self, precision: float) -> str:
        """Return why `at_precision` finds none: too few pairs, or too many false matches.

        Parameters
        ----------
        precision : float
            The precision that no radius has.

        Returns
        -------
        str
            The reason, without a full stop.
        """
        best = max((match for match in self.matches if match.n_matches), key=lambda match: match.precision)
        if best.precision < precision:
            return f"no radius has it; the highest precision is {best.precision:.4f}, of radius {best.radius}"
        lowest = max(match.precision_low for match in self.matches if match.n_matches)
        return f"these pairs cannot show it; the highest lower bound of a radius is {lowest:.4f}"

    @property
    def uap(self) -> Summary:
        """Micro average precision: all pairs in one ranking by distance, exact over the orders of tied pairs.

        Its ``tie_sd`` is over orders of the queries, since scripts list pairs query by query; of the items, if these
        are compared with each other (docs/explanation/mean-over-queries.md). It has no bounds, and is NaN for codes of
        over 1,024 bits.
        """
        histogram, metric = TieHistogram(np.stack([self.n_false, self.n_true])[None]), get_metric("AP")
        mean, low, high, sd = (float(part[0]) for part in metric.scores(histogram))
        slope = cast("Slopes", metric.slopes(histogram)).slope[0]
        share = self.n_true / np.maximum(self.n_true + self.n_false, 1)
        relevant, mixed, of_sizes = self.pair_moments
        of_items = relevant - mixed * share - (mixed * share).T + np.outer(share, share) * of_sizes
        explained = 12 * float(slope**2 @ (self.n_true * (1 - share)))  # if pairs had a key each
        factor = 36 / 7 if self.are_met_twice else 12
        variance = factor * float(slope @ of_items @ slope) + max(sd**2 - explained, 0)
        return Summary(mean, low, high, self.n_queries, self.n_undefined, math.sqrt(max(variance, 0)))

    def to_frame(self) -> pd.DataFrame:
        """One row per radius: the fields of `Match`, and what single queries see, which labelled pairs lack."""
        with needing("to_frame"):
            import pandas as pd

        matches = pd.DataFrame(self.matches, columns=Match._fields)
        if not self.n_queries:
            return matches.drop(columns="n_queries_with_false")
        return matches.assign(**{name: getattr(self, name) for name in ("query_precision", "query_recall", "n_empty")})

    def __repr__(self) -> str:
        pairs = f"{self.n_relevant:,} relevant of {self.n_relevant + self.n_irrelevant:,} pairs"
        return f"<Thresholds of {self.n_bits} bits; {pairs}, uAP {self.uap.mean:.4f}>"


def find_false(codes: HammingRanking, radius: int) -> IntArray:
    """Find the irrelevant pairs within a radius: rows of query and item, and their distance, (n_pairs, 3).

    Of queries that are the items, each pair comes once.
    """
    relevance, database = codes.relevance, np.asarray(codes.database[:])
    found = [np.empty((0, 3), dtype=np.int64)]
    for queries in chunks(0, codes.n_queries, max(_MEMORY // (8 * max(database.size, 1)), 1)):
        distance = np.bitwise_count(codes.query[queries, None] ^ database).sum(axis=2, dtype=np.int64)
        is_false = (distance <= radius) & (relevance.block(queries, _ALL) == 0)
        query, item = np.nonzero(is_false)
        rows = np.column_stack([query + queries.start, item, distance[query, item]])
        found.append(rows[rows[:, 0] < rows[:, 1]] if relevance.excludes_self else rows)
    return np.concatenate(found)


def find_labelled_false(query: ByteArray, database: ByteArray, pairs: IntArray, radius: int) -> IntArray:
    """Find the labelled pairs, (n_pairs, 3), within a radius that are not the same, as `find_false`."""
    distance = np.bitwise_count(query[pairs[:, 0]] ^ database[pairs[:, 1]]).sum(axis=1, dtype=np.int64)
    is_false = (distance <= radius) & (pairs[:, 2] == 0)
    return np.column_stack([pairs[is_false, :2], distance[is_false]])


class PairDifference(NamedTuple):
    """How far two codes of the same items differ in what all pairs together say.

    Parameters
    ----------
    statistic : str
        ``uAP``, or ``recall at false positive rate 0.001``.
    first, second : float
        The value of either code.
    value : float
        The first less the second.
    low, high : float
        95 % interval of ``value`` for other items or classes like these, whose pairs depend on each other.

    Examples
    --------
    >>> PairDifference("uAP", 0.9, 0.8, 0.1, 0.05, 0.15).is_shown
    True
    """

    statistic: str
    first: float
    second: float
    value: float
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


def compare_pairs(first: Thresholds, second: Thresholds, rates: Sequence[float] = (0.001,)) -> list[PairDifference]:
    """Compare two codes of the same pairs: uAP, and the recall at false positive rates.

    Parameters
    ----------
    first, second : Thresholds
        Of the same pairs, which may have codes of different lengths.
    rates : sequence of float
        False positive rates, from 0 to 1. Between two radii, the recall is interpolated: it is that of a random part of
        the pairs at the farther one.

    Returns
    -------
    list of PairDifference
        With intervals by the jackknife: each class, or each hundredth of the items, is left out in turn.

    Raises
    ------
    HashbenchError
        If the pairs differ, or none is relevant or none is irrelevant.

    Examples
    --------
    >>> pairs = [[0, 1, 1], [2, 3, 0], [0, 2, 0], [1, 3, 0]]
    >>> codes, others = [[0, 0], [0, 0], [1, 1], [0, 1]], [[0, 0], [1, 1], [1, 1], [0, 1]]
    >>> compare_pairs(pair_thresholds(codes, codes, pairs), pair_thresholds(others, others, pairs))[0][:4]
    ('uAP', 1.0, 0.2916666666666665, 0.7083333333333335)
    """
    for rate in rates:
        _check_share(rate, "a false positive rate")
    counts = (first.n_relevant, first.n_irrelevant), (second.n_relevant, second.n_irrelevant)
    if counts[0] != counts[1] or first.units != second.units or len(first.by_group) != len(second.by_group):
        raise HashbenchError(
            f"the pairs differ: {counts[0][0]:,} relevant and {counts[0][1]:,} others of {first.units}, and "
            f"{counts[1][0]:,} and {counts[1][1]:,} of {second.units}. Count the same pairs of both codes."
        )
    if not all(counts[0]):
        raise HashbenchError("all pairs are relevant, or none is, so that codes cannot be compared by them.")
    found = []
    of_both = [_statistics(each, rates) for each in (first, second)]
    for name, *values in zip(
        ["uAP", *(f"recall at false positive rate {rate:g}" for rate in rates)], *of_both, strict=True
    ):
        difference = values[0] - values[1]  # of all pairs, then without each group
        low, high = _jackknife(difference[0], difference[1:], first.n_independent)
        found.append(PairDifference(name, float(values[0][0]), float(values[1][0]), float(difference[0]), low, high))
    return found


def _statistics(found: Thresholds, rates: Sequence[float]) -> list[FloatArray]:
    """Return uAP and the recall at each rate, (1 + n_groups,) each: of all pairs, and without those of each group."""
    all_pairs = np.stack([found.n_false, found.n_true])
    without = np.maximum(all_pairs - found.by_group, 0)  # pairs within a group of items may count twice
    counts = np.concatenate([all_pairs[None], without])  # (1 + n_groups, 2, n_bits + 1)
    uap = get_metric("AP").scores(TieHistogram(counts)).mean
    false, true = np.moveaxis(np.cumsum(counts, axis=2) / np.maximum(counts.sum(axis=2, keepdims=True), 1), 1, 0)
    recalls = []
    for rate in rates:
        after = (false > rate).argmax(axis=1)  # the first radius beyond the rate, 0 if there is none
        rows, is_last = np.arange(len(counts)), ~(false > rate).any(axis=1)
        before_false, before_true = (np.where(after > 0, part[rows, after - 1], 0.0) for part in (false, true))
        step = (rate - before_false) / np.maximum(false[rows, after] - before_false, np.finfo(float).tiny)
        recalls.append(np.where(is_last, 1.0, before_true + step * (true[rows, after] - before_true)))
    return [uap, *recalls]


def _jackknife(value: float, without: FloatArray, n_independent: int) -> tuple[float, float]:
    """Return the 95 % interval of a value, given those without each group."""
    if n_independent < 2:
        return float("nan"), float("nan")
    with needing("the interval of a difference"):
        from scipy.special import stdtrit

    n_groups = len(without)
    variance = (n_groups - 1) / n_groups * float(((without - without.mean()) ** 2).sum())
    half = float(stdtrit(n_independent - 1, 0.975)) * math.sqrt(variance)
    return max(value - half, -1.0), min(value + half, 1.0)


def _check_share(share: float, what: str) -> None:
    if not (isinstance(share, Real) and 0 <= share <= 1):
        raise HashbenchError(f"{what} is a share from 0 to 1, such as 0.001, got {share!r}.")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


class Members(NamedTuple):
    """Rows of some queries, alike ones once: how many each stands for, in all and in each group of `Units`."""

    weights: IntArray  # (n_rows,)
    of_groups: list[tuple[IntArray, IntArray]]  # rows, and how many queries of the group each stands for

    @classmethod
    def of(cls, kinds: QueryKinds, part: slice, units: Units | None) -> Members:
        """Find those of the kinds of a part; none in groups without units."""
        rows = kinds.of_query - part.start
        is_here = (rows >= 0) & (rows < part.stop - part.start)
        groups = [] if units is None else [is_here & (units.of_query == group) for group in range(units.n_groups)]
        return cls(np.bincount(rows[is_here]), [np.unique(rows[own], return_counts=True) for own in groups])


class Part(NamedTuple):
    """Histograms of some queries, alike ones once, and the pairs of each group as in `Thresholds.by_group`."""

    histogram: TieHistogram
    weights: IntArray  # queries that each histogram stands for
    by_group: IntArray

    @classmethod
    def of(cls, histogram: TieHistogram, members: Members) -> Part:
        """Add up the pairs of queries of each group."""
        by_group = [_sum_rows(histogram, *own) for own in members.of_groups]
        return cls(histogram, members.weights, np.array(by_group, dtype=np.int64))


def _sum_rows(histogram: TieHistogram, rows: Rows, times: IntArray) -> IntArray:
    """Add up irrelevant and relevant items, (2, n_distances), of some rows, each so many times."""
    counts = histogram.counts[rows]
    by_level = counts.sum(axis=0) if (times == 1).all() else np.tensordot(times, counts, axes=1)
    return np.stack([by_level[0], by_level[1:].sum(axis=0)])


def pooled(parts: Iterable[Part], notes: Sequence[str], units: Units, relevance: Affinity | None = None) -> Thresholds:
    """Add up the counts of all queries, or half of them if each pair was met from both sides.

    ``relevance`` is None for labelled pairs, which ignore nothing.
    """
    are_met_twice = relevance is not None and relevance.excludes_self
    sums: dict[str, Any] = {}
    n_queries, n_undefined = 0, 0
    for histogram, weights, by_group in parts:
        n_rel, n_within = histogram.n_rel, np.cumsum(histogram.size, axis=1)
        n_rel_within = np.cumsum(n_rel, axis=1)
        is_defined = weights * (histogram.n_relevant > 0)
        of_part = {
            "n_true": weights @ n_rel,
            "n_false": weights @ (histogram.size - n_rel),
            "n_empty": weights @ (n_within == 0),
            "n_queries_with_false": weights @ (n_within > n_rel_within),
            "query_precision": is_defined @ (n_rel_within / np.maximum(n_within, 1)),
            "query_recall": is_defined @ (n_rel_within / np.maximum(histogram.n_relevant, 1)[:, None]),
            "pair_moments": _moments(n_rel, histogram.size, weights),
            "by_group": by_group,
        }
        sums = {name: sums.get(name, 0) + part for name, part in of_part.items()}
        n_queries += int(weights.sum())
        n_undefined += int(weights.sum() - is_defined.sum())
    if are_met_twice:
        if any((sums[name] % 2).any() for name in ("n_true", "n_false")):
            raise not_symmetric()
        sums |= {name: sums[name] // 2 for name in ("n_true", "n_false")}
        if units.are_classes:
            sums["by_group"][:, 1] //= 2  # relevant pairs lie in a class
    n_defined = n_queries - n_undefined
    for name in ("query_precision", "query_recall"):
        sums[name] = sums[name] / n_defined if n_defined else sums[name] * np.nan
    if relevance is not None and relevance.ignores:
        n_items = relevance.n_database
        n_pairs = n_items * (n_items - 1) // 2 if are_met_twice else n_queries * n_items
        if n_ignored := n_pairs - int(sums["n_true"].sum() + sums["n_false"].sum()):
            notes = [*notes, f"{n_ignored:,} of {n_pairs:,} pairs are ignored."]
        if n_undefined == n_queries:
            notes = [*notes, *why_none_left(relevance)]
    return Thresholds(
        **sums,
        n_queries=n_queries,
        n_undefined=n_undefined,
        units=units.words,
        n_independent=units.n_independent,
        are_met_twice=are_met_twice,
        notes=notes,
    )


def _moments(n_rel: IntArray, sizes: IntArray, weights: IntArray) -> FloatArray:
    """Sum the products of two distances' counts over queries, as `Thresholds.pair_moments`; NaN of long codes."""
    moments = np.zeros((3, n_rel.shape[1], n_rel.shape[1])) if n_rel.shape[1] <= _LONG else np.full((3, 1, 1), np.nan)
    met = np.flatnonzero(sizes.any(axis=0))
    if n_rel.shape[1] <= _LONG and met.size:
        relevant, all_items = n_rel[:, met].astype(np.float64), sizes[:, met].astype(np.float64)
        for out, first, second in zip(
            moments, (relevant, relevant, all_items), (relevant, *2 * [all_items]), strict=True
        ):
            out[np.ix_(met, met)] = (first.T * weights) @ second
    return moments


def count_pairs(codes: HammingRanking, notes: Sequence[str] = (), on_progress: Progress = silent) -> Thresholds:
    """Count all pairs; queries alike in code and labels are counted once."""
    affinity = codes.relevance
    refuse_fractions(affinity.levels, "a threshold")
    if affinity.excludes_self:
        check_symmetry(affinity)
    units = Units.of(affinity, reads_items=codes.is_whole)
    return pooled(count_kinds(codes, on_progress, units), notes, units, affinity)


def count_halves(codes: HammingRanking, notes: Sequence[str] = (), on_progress: Progress = silent) -> Thresholds:
    """Count pairs in one half of the classes or items, and in the other as ``held_out``; pairs of both are lost."""
    if not codes.is_whole:
        raise HashbenchError(
            "a database that is read in slices is not split in halves. Give it as one file, or hold nothing out."
        )
    affinity, units = codes.relevance, Units.of(codes.relevance)
    of_item = units.of_query if units.of_item is None else units.of_item
    found = []
    for half in _halves(units):
        rows, items = (np.flatnonzero(np.isin(groups, half)) for groups in (units.of_query, of_item))
        database, part = np.asarray(codes.database[:])[items], affinity.part(rows, items)
        half_codes = replace(codes, query=codes.query[rows], database=database, relevance=part)
        found.append(count_pairs(half_codes, notes, on_progress))
    return replace(found[0], held_out=found[1])


def _halves(units: Units) -> tuple[IntArray, IntArray]:
    """Return the groups of two halves."""
    if units.n_independent < 4:
        raise HashbenchError(
            f"{units.words} are too few to choose a radius on one half and judge it on the other; give at least 4, or "
            "hold nothing out."
        )
    groups = np.arange(units.n_groups)
    return groups[::2], groups[1::2]


@reporting_compilation()
def pair_thresholds(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    pairs: npt.ArrayLike,
    *,
    held_out: bool = False,
    n_bits: int | None = None,
    bit_order: str | None = None,
) -> Thresholds:
    """Count what each Hamming radius matches among labelled pairs.

    Parameters
    ----------
    query_codes, database_codes, n_bits, bit_order
        As in `hashbench.evaluate`; both may be of the same items.
    pairs : array of shape (n_pairs, 3)
        Row of the query, row of the database item, and 1 if they are the same or else 0.
    held_out : bool, default=False
        Whether to count the pairs within one half of the items, and those within the other as
        ``Thresholds.held_out``.

    Returns
    -------
    Thresholds
        As of `Problem.thresholds`, without what single queries see.

    Raises
    ------
    HashbenchError
        If codes and pairs do not fit together.

    Examples
    --------
    >>> pair_thresholds([[0, 0, 0], [0, 1, 1]], [[0, 0, 1], [1, 1, 0]], [[0, 0, 1], [1, 1, 0]]).at(1).recall
    1.0
    """
    query, database, width = as_packed_pair(query_codes, database_codes, n_bits, bit_order)
    return count_labelled(query, database, width, np.asarray(pairs), held_out)


def count_labelled(
    query: ByteArray, database: ByteArray, n_bits: int, pairs: AnyArray, held_out: bool = False
) -> Thresholds:
    """Count labelled pairs, (n_pairs, 3), of packed codes; with ``held_out``, those within each half of the items."""
    is_database = np.array_equal(query, database)
    pairs, notes = _checked_pairs(pairs, (len(query), len(database)), is_database=is_database)
    first, second, _ = pairs.T
    items, number = np.unique(np.stack([first, second + (0 if is_database else len(query))]), return_inverse=True)
    sets = _sets_of_same(len(items), number[:, pairs[:, 2] == 1])  # which belong together, as copies of one image do
    n_sets = int(sets.max()) + 1
    if n_sets < FEW_CLASSES:
        sets, n_sets = np.arange(len(items)), len(items)
    groups, n_groups = groups_of(n_sets)
    of_pair = groups[sets[number]]  # (2, n_pairs)
    units = Units(groups[sets], None, n_groups, n_groups, False, _words(number, sets))

    def counted_in(half: IntArray) -> Thresholds:
        (chosen,) = np.nonzero(np.isin(of_pair, half).all(axis=0))
        if not chosen.size:
            raise HashbenchError("no labelled pair has both items in one half. Give more pairs, or hold nothing out.")
        n_same = int(pairs[chosen, 2].sum())
        note = (
            f"{n_same:,} of {counted(len(chosen), 'labelled pair')} are the same. Precision and F1 depend on that "
            "share; recall and the false positive rate do not."
        )
        half_units = units._replace(n_independent=len(half), words=_words(number[:, chosen], sets))
        parts = (
            _labelled_part(query, database, n_bits, pairs[chosen[rows]], of_pair[:, chosen[rows]], n_groups)
            for rows in chunks(0, len(chosen), max(_MEMORY // (16 * (n_bits + 1)), 1))
        )
        found = pooled(parts, [*notes, note], half_units)
        none = np.zeros(n_bits + 1, dtype=np.int64)
        return replace(found, n_queries=0, n_undefined=0, n_empty=none, n_queries_with_false=none)

    if not held_out:
        return counted_in(np.arange(n_groups))
    first_half, other = map(counted_in, _halves(units))
    n_left = len(pairs) - sum(half.n_relevant + half.n_irrelevant for half in (first_half, other))
    left_out = [f"{counted(n_left, 'labelled pair')} with an item in each half left out."] if n_left else []
    return replace(first_half, notes=[*first_half.notes, *left_out], held_out=other)


def _words(items: IntArray, sets: IntArray) -> str:
    """Describe some items and the sets of the same that they are in."""
    items = np.unique(items)
    n_sets = len(np.unique(sets[items]))
    return counted(len(items), "item") + (f" in {counted(n_sets, 'set')} of the same" if n_sets < len(items) else "")


def _sets_of_same(n_items: int, same: IntArray) -> IntArray:
    """Return the set of each item, counted from 0, where pairs (2, n) are in one set."""
    sets = np.arange(n_items)
    while True:
        least = sets.copy()
        for one, other in (same, same[::-1]):
            np.minimum.at(least, sets[one], sets[other])  # the root of a set takes the least root beside it
        while not np.array_equal(least[least], least):
            least = least[least]
        if np.array_equal(least, sets):
            return np.asarray(np.unique(sets, return_inverse=True)[1])
        sets = least


def _labelled_part(
    query: ByteArray, database: ByteArray, n_bits: int, pairs: IntArray, groups: IntArray, n_groups: int
) -> Part:
    """Count some labelled pairs, each as a query with one item."""
    first, second, is_same = pairs.T
    distance = np.bitwise_count(query[first] ^ database[second]).sum(axis=1, dtype=np.int64)
    counts = np.zeros((len(pairs), 2, n_bits + 1), dtype=np.int64)
    counts[np.arange(len(pairs)), is_same, distance] = 1
    by_group = np.zeros((n_groups, 2, n_bits + 1), dtype=np.int64)
    np.add.at(by_group, (groups[0], is_same, distance), 1)
    others = groups[0] != groups[1]
    np.add.at(by_group, (groups[1, others], is_same[others], distance[others]), 1)
    return Part(TieHistogram(counts), np.ones(len(pairs), dtype=np.int64), by_group)


def _checked_pairs(pairs: AnyArray, n_items: tuple[int, int], *, is_database: bool) -> tuple[IntArray, list[str]]:
    """Return labelled pairs, each once, and a note if some were repeated."""
    if pairs.ndim != 2 or pairs.shape[1] != 3 or not len(pairs) or pairs.dtype.kind not in "biu":
        raise HashbenchError(
            f"labelled pairs are {pairs.dtype} of shape {pairs.shape}, expected whole numbers of shape (n_pairs, 3): "
            "two rows, and 1 if they are the same or else 0."
        )
    pairs = pairs.astype(np.int64)
    is_wrong = (pairs < 0) | (pairs >= [*n_items, 2])
    if is_wrong.any():
        row = int(np.argmax(is_wrong.any(axis=1)))
        raise HashbenchError(
            f"labelled pair {row:,} (counted from 0) is {pairs[row].tolist()}, expected a row of {n_items[0]:,} query "
            f"codes, a row of {n_items[1]:,} database codes, and 0 or 1."
        )
    if is_database:
        pairs = np.column_stack([np.sort(pairs[:, :2], axis=1), pairs[:, 2]])  # two items are one pair
        if (is_one := pairs[:, 0] == pairs[:, 1]).any():
            row = int(np.argmax(is_one))
            raise HashbenchError(f"labelled pair {row:,} (counted from 0) is of one item with itself. Remove it.")
    distinct = np.unique(pairs, axis=0)
    if (is_twice := (np.diff(distinct[:, :2], axis=0) == 0).all(axis=1)).any():
        first, second = distinct[int(np.argmax(is_twice)), :2].tolist()
        raise HashbenchError(
            f"items {first:,} and {second:,} of the codes (counted from 0) are labelled both the same and not the "
            "same. Keep one of the two labels."
        )
    n_repeated = len(pairs) - len(distinct)
    return distinct, [f"{counted(n_repeated, 'labelled pair')} repeated, and counted once."] if n_repeated else []


def count_kinds(codes: HammingRanking, on_progress: Progress = silent, units: Units | None = None) -> Iterator[Part]:
    """Count histograms of some queries at a time, one of each kind; with units, also the pairs of each group."""
    codes, kinds = codes.counted
    for queries in chunks(0, codes.n_queries, codes.at_a_time):
        members = Members.of(kinds, queries, units)
        if units is None or units.of_item is None:
            part = Part.of(codes.histogram(queries), members)
        else:
            part = _count_by_item(codes, queries, members, units.of_item)
        if codes.relevance.ignores:
            check_left(part.histogram.n_database, kinds.first[queries])
        yield part
        on_progress("queries", queries.stop, codes.n_queries)


def _count_by_item(codes: HammingRanking, queries: slice, members: Members, group_of_item: IntArray) -> Part:
    """Count histograms of some queries, one group of the database at a time, and pairs by group of either role."""
    affinity, n_bits, database = codes.relevance, codes.n_bits, np.asarray(codes.database[:])
    by_item = np.zeros((len(members.of_groups), 2, n_bits + 1), dtype=np.int64)
    levels = affinity.levels
    counts = np.zeros((len(members.weights), len(levels), n_bits + 1), dtype=np.int64)
    for group in np.unique(group_of_item).tolist():
        items = np.flatnonzero(group_of_item == group)
        rule = affinity.part(_ALL, items)
        of_items = replace(codes, database=database[items], relevance=rule).histogram(queries)
        lacks_levels = len(of_items.levels) < len(levels)
        counts[:, np.searchsorted(levels, of_items.levels) if lacks_levels else _ALL] += of_items.counts
        # pairs of a query and an item of the group are among those of its queries
        by_item[group] = _sum_rows(of_items, _ALL, members.weights) - _sum_rows(of_items, *members.of_groups[group])
    part = Part.of(TieHistogram(counts, levels), members)
    return part._replace(by_group=part.by_group + by_item)

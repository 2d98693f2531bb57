"""What changed between two sets of results, and does it matter."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from hashbench._typing import FloatArray, Progress, silent
from hashbench.errors import HashbenchError
from hashbench.reports.revisions import Side
from hashbench.reports.significance import N_RESAMPLES, PairedTest, can_find_significance, paired_tests
from hashbench.reports.ties import Score
from hashbench.reports.ties import compare as compare_ties
from hashbench.scoring.comparison import ALPHA
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import NUMBERS, Row
from hashbench.store.score_cache import find_scores


@dataclass(frozen=True)
class Change:
    """Two rows of the same key."""

    old: Row
    new: Row
    test: PairedTest | None = None  # over the queries, if the scores of both sides are cached

    @property
    def reason(self) -> str:
        """Why the two are not comparable: other data or another version of the method; empty if they are."""
        parts = []
        old, new = self.old.dataset_fingerprint, self.new.dataset_fingerprint
        if old != new:
            parts.append(f"dataset fingerprint {old} -> {new}")
        if self.old.method_version != self.new.method_version:
            parts.append(f"method version {self.old.method_version} -> {self.new.method_version}")
        return ", ".join(parts)

    @property
    def is_real(self) -> bool:
        """Whether the rows differ in more than a deviation that one lacks."""
        is_known = bool(self.old.tie_sd and self.new.tie_sd)
        return self.old != self.new and (is_known or self.old._replace(tie_sd="") != self.new._replace(tie_sd=""))

    @property
    def difference(self) -> float:
        """New minus old value, rounded to six decimals; NaN if either is."""
        return round(float(self.new.value) - float(self.old.value), 6)

    @property
    def loss(self) -> float:
        """How much worse the new value is; all of it if it is no longer defined."""
        if math.isnan(self.difference):
            return math.inf if math.isnan(float(self.new.value)) else 0.0
        return self.difference if is_error(self.new.metric) else -self.difference

    @property
    def ties(self) -> str:
        """What ties leave open between the two values: a key of `hashbench.reports.ties.ANSWERS`."""

        def score(row: Row) -> Score:
            value, tie_sd, low, high = (float(getattr(row, name) or "nan") for name in NUMBERS)
            return Score(value, tie_sd, low, high)

        return str(compare_ties(score(self.old), score(self.new)))

    @property
    def is_significant(self) -> bool:
        """Whether the corrected test finds it."""
        return self.test is not None and self.test.p_holm < ALPHA


class OverSeeds(NamedTuple):
    """Means over the seeds of a row on both sides."""

    row: Row  # one of them, for its key
    n_seeds: int  # comparable ones, at least two
    n_changed: int  # those that differ, at least one
    old: float  # mean, rounded to six decimals
    new: float

    @property
    def difference(self) -> float:
        """New minus old, rounded to six decimals."""
        return round(self.new - self.old, 6) + 0.0  # never -0.0


@dataclass(frozen=True)
class Diff:
    """All rows of two sides, by what became of them; in order of keys, but changes by loss, the greatest first."""

    old_name: str
    new_name: str
    changed: tuple[Change, ...]
    incomparable: tuple[Change, ...]
    new: tuple[Row, ...]
    gone: tuple[Row, ...]
    unchanged: tuple[Row, ...]
    n_resamples: int = 0  # of the tests; 0: none

    @property
    def n_tested(self) -> int:
        """Changes that were tested."""
        return sum(change.test is not None for change in self.changed)

    @property
    def can_find_significance(self) -> bool:
        """Whether the least p value that the resamples allow survives the correction."""
        return can_find_significance(self.n_tested, self.n_resamples)

    def drops(self, limit: float) -> list[Change]:
        """Return the changes for the worse by more than this, whatever ties leave open, the greatest loss first."""
        return [change for change in self.changed if change.loss > limit]

    def by_seeds(self) -> dict[tuple[Any, ...], list[Change]]:
        """Return the comparable rows that differ only in the seed, by their key with seed 0."""
        groups: dict[tuple[Any, ...], list[Change]] = defaultdict(list)
        for change in (*self.changed, *(Change(row, row) for row in self.unchanged)):
            groups[change.new._replace(seed=0).key].append(change)
        return groups

    def rows(self) -> list[Row]:
        """Return all rows but the unchanged."""
        return [*(change.new for change in (*self.changed, *self.incomparable)), *self.new, *self.gone]

    def over_seeds(self) -> list[OverSeeds]:
        """Average over seeds the rows with two or more comparable ones of which one or more changed, by key."""
        means = []
        for _, group in sorted(self.by_seeds().items()):
            n_changed = sum(change.is_real for change in group)
            if n_changed and len(group) > 1:
                old = round(fmean(float(change.old.value) for change in group), 6)
                new = round(fmean(float(change.new.value) for change in group), 6)
                means.append(OverSeeds(group[0].new, len(group), n_changed, old, new))
        return means


def compare(old: Side, new: Side, metrics: Sequence[str] = ()) -> Diff:
    """Compare the rows of two sides, in these metrics (canonical names) or in all; without tests.

    If a side is a file or the folder of a dataset, only the methods or the dataset in it are compared. Raises
    HashbenchError if nothing is left to compare, though there are results or the user named the folders or files.
    """
    scopes = [  # how many of dataset and method limit the comparison, and the values that a side has
        (side.scope, {(row.dataset, row.method)[: side.scope] for row in side.rows.values()}) for side in (old, new)
    ]

    def rows_in_scope(side: Side) -> dict[tuple[Any, ...], Row]:
        return {
            key: row
            for key, row in side.rows.items()
            if all((row.dataset, row.method)[:n] in parts for n, parts in scopes if n)
            and (not metrics or row.metric in metrics)
        }

    before, after = rows_in_scope(old), rows_in_scope(new)
    if not before and not after and any(side.rows or side.is_named for side in (old, new)):
        other_methods = about_other_methods(old.rows.values(), new.rows.values())
        raise HashbenchError(
            f"there is nothing to compare: no results{' in ' * bool(metrics)}{' or '.join(metrics)} of one dataset "
            f"{'and method ' * bool(other_methods)}in {old.name} and {new.name}. "
            f"{other_methods or 'Check the names of folders, files and metrics.'}"
        )
    shared = sorted(before.keys() & after.keys())
    pairs = [Change(before[key], after[key]) for key in shared]
    comparable = [pair for pair in pairs if not pair.reason]
    changed = [change for change in comparable if change.is_real]
    return Diff(
        old_name=old.name,
        new_name=new.name,
        changed=tuple(sorted(changed, key=lambda change: -change.loss)),
        incomparable=tuple(pair for pair in pairs if pair.reason),
        new=tuple(after[key] for key in sorted(after.keys() - before.keys())),
        gone=tuple(before[key] for key in sorted(before.keys() - after.keys())),
        unchanged=tuple(change.new for change in comparable if not change.is_real),
    )


def about_other_methods(old: Iterable[Row], new: Iterable[Row]) -> str:
    """Return the command that compares two methods, if there are no rows of one method on both sides."""
    first, second = (sorted({row.method for row in rows}) for rows in (old, new))
    if not first or not second or set(first) & set(second):
        return ""
    return f"To compare methods, run: hashbench compare {first[0]} {second[0]}."


def with_tests(diff: Diff, n_resamples: int = N_RESAMPLES, on_progress: Progress = silent) -> Diff:
    """Test each change with scores of every query on both sides; Holm's correction is over all of the tests."""
    differences = [query_differences(change) for change in diff.changed]
    tests = iter(paired_tests([values for values in differences if values is not None], n_resamples, on_progress))
    changed = tuple(
        change if values is None else replace(change, test=next(tests))
        for change, values in zip(diff.changed, differences, strict=True)
    )
    return replace(diff, changed=changed, n_resamples=n_resamples)


def query_differences(change: Change) -> FloatArray | None:
    """Return how much each query changed: new minus old where both are defined, (n_queries,).

    None if the scores of either side are not cached, or fewer than two are defined.
    """
    old, new = find_scores(change.old), find_scores(change.new)
    if old is None or new is None or len(old) != len(new):
        return None
    difference = new - old
    difference = difference[~np.isnan(difference)]
    return difference if len(difference) > 1 else None

"""Changes since another commit: in words, and row by row."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hashbench.reports.aggregate import method_labels
from hashbench.reports.diff import Change, Diff
from hashbench.reports.diff_text import footnotes, headline, summarise
from hashbench.reports.html.content import coded, whole
from hashbench.reports.ties import ANSWERS
from hashbench.store.result_rows import Row

_COLUMNS = (
    "status",
    "data",
    "label",
    "bits",
    "seed",
    "metric",
    "old",
    "new",
    "seeds",
    "ties",
    "p",
    "low",
    "high",
    "other",
)
_NUMBERS = ("old", "new", "p", "low", "high")
_WHOLE = ("bits", "seed")


def changes_text(diff: Diff) -> dict[str, str | bool]:
    """Return the sides that are compared, a summary, and how to read the tests."""
    path = Path(diff.old_name)  # shown without its place on this machine
    title = _with_arrow(headline(replace(diff, old_name=path.name if path.is_absolute() else diff.old_name)))
    notes = " ".join(footnotes(diff))
    return {"title": title, "summary": summarise(diff), "notes": notes, "has_rows": any(_rows(diff))}


def changes_content(diff: Diff) -> dict[str, Any]:
    """Return the rows that changed, are not comparable, new or gone, in this order, each with others of its line."""
    place: dict[tuple[Any, ...], int] = {}  # of the lines of a dataset, by dataset and label
    rows = sorted(_rows(diff), key=lambda row: place.setdefault(row[1:3], len(place)))
    columns = {key: [row[position] for row in rows] for position, key in enumerate(_COLUMNS)}
    return {
        **{key: whole(columns[key]) for key in _NUMBERS},
        **{key: columns[key] for key in _WHOLE},
        **{key: coded(columns[key]) for key in _COLUMNS if key not in (*_NUMBERS, *_WHOLE)},
    }


def _with_arrow(text: str) -> str:
    return text.replace(" -> ", " → ")


def _rows(diff: Diff) -> Iterator[tuple[Any, ...]]:
    rows = [*(change.new for change in diff.changed), *(pair.new for pair in diff.incomparable), *diff.new, *diff.gone]
    labels = method_labels((row.method, row.params) for row in rows)
    unknown = (math.nan, math.nan, math.nan)

    def key(status: str, row: Row) -> tuple[Any, ...]:
        return status, f"{row.dataset}:{row.features}", labels[row.method, row.params], row.n_bits, row.seed, row.metric

    signs = defaultdict[Any, list[float]](list)  # of all seeds, by what else is in a key
    for change in (*diff.changed, *(Change(row, row) for row in diff.unchanged)):
        signs[_without_seed(change)].append(np.sign(change.difference))
    for change in diff.changed:
        of_seeds = signs[_without_seed(change)]
        seeds = f"{of_seeds.count(np.sign(change.difference))} of {len(of_seeds)}"
        tested = change.test[1:] if change.test else unknown
        values = float(change.old.value), float(change.new.value)
        yield (*key("changed", change.new), *values, seeds, ANSWERS[change.ties], *tested, "")
    for pair in diff.incomparable:
        values = float(pair.old.value), float(pair.new.value)
        yield (*key("not comparable", pair.new), *values, "", "", *unknown, _with_arrow(pair.reason))
    for row in diff.new:
        yield (*key("new", row), math.nan, float(row.value), "", "", *unknown, "")
    for row in diff.gone:
        yield (*key("gone", row), float(row.value), math.nan, "", "", *unknown, "")


def _without_seed(change: Change) -> tuple[Any, ...]:
    return change.new._replace(seed=0).key

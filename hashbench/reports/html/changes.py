"""What changed since another commit: in words, and row by row."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from hashbench.reports.aggregate import method_labels
from hashbench.reports.diff import Diff
from hashbench.reports.diff_text import footnotes, headline, summarise
from hashbench.reports.html.content import coded, whole
from hashbench.reports.ties import ANSWERS
from hashbench.store.result_rows import Row

_COLUMNS = ("status", "data", "label", "bits", "seed", "metric", "old", "new", "ties", "p", "low", "high", "other")
_NUMBERS = ("old", "new", "p", "low", "high")
_WHOLE = ("bits", "seed")
_NAN = float("nan")
_UNTESTED = (_NAN, _NAN, _NAN)  # p, low, high


def changes_text(diff: Diff) -> dict[str, str | bool]:
    """Return which sides are compared, how much changed, and how to read the tests."""
    title = _with_arrow(headline(replace(diff, old_name=_short(diff.old_name))))
    notes = " ".join(footnotes(diff))
    return {"title": title, "summary": summarise(diff), "notes": notes, "has_rows": any(_rows(diff))}


def changes_content(diff: Diff) -> dict[str, Any]:
    """Return the rows that changed, are not comparable, new or gone, in this order."""
    rows = list(_rows(diff))
    columns = {key: [row[place] for row in rows] for place, key in enumerate(_COLUMNS)}
    return {
        **{key: whole(columns[key]) for key in _NUMBERS},
        **{key: columns[key] for key in _WHOLE},
        **{key: coded(columns[key]) for key in _COLUMNS if key not in (*_NUMBERS, *_WHOLE)},
    }


def _short(name: str) -> str:
    """Return the name of a folder without its place on this machine."""
    return Path(name).name if Path(name).is_absolute() else name


def _with_arrow(text: str) -> str:
    return text.replace(" -> ", " → ")


def _rows(diff: Diff) -> Iterator[tuple[Any, ...]]:
    rows = [*(change.new for change in diff.changed), *(pair.new for pair in diff.incomparable), *diff.new, *diff.gone]
    labels = method_labels((row.method, row.params) for row in rows)

    def line(status: str, row: Row, old: float, new: float, *more: Any) -> tuple[Any, ...]:
        key = (f"{row.dataset}:{row.features}", labels[row.method, row.params], row.n_bits, row.seed, row.metric)
        return (status, *key, old, new, *(more or ("", *_UNTESTED, "")))

    for change in diff.changed:
        test = change.test
        tested = (test.p_holm, test.low, test.high) if test else _UNTESTED
        values = float(change.old.value), float(change.new.value)
        yield line("changed", change.new, *values, ANSWERS[change.ties], *tested, "")
    for pair in diff.incomparable:
        values = float(pair.old.value), float(pair.new.value)
        yield line("not comparable", pair.new, *values, "", *_UNTESTED, _with_arrow(pair.reason))
    for row in diff.new:
        yield line("new", row, _NAN, float(row.value))
    for row in diff.gone:
        yield line("gone", row, float(row.value), _NAN)

"""Changes since another commit: in words, and row by row."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hashbench.reports.aggregate import method_labels
from hashbench.reports.diff import Diff
from hashbench.reports.diff_text import footnotes, headline, summarise
from hashbench.reports.html.content import coded, whole
from hashbench.reports.ties import ANSWERS
from hashbench.store.result_rows import Row


def changes_text(diff: Diff) -> dict[str, str | bool]:
    """Return the sides that are compared, a summary, and how to read the tests."""
    path = Path(diff.old_name)  # shown without its place on this machine
    title = _with_arrow(headline(replace(diff, old_name=path.name if path.is_absolute() else diff.old_name)))
    notes = " ".join(footnotes(diff))
    return {"title": title, "summary": summarise(diff), "notes": notes, "has_rows": any(_rows(diff))}


def changes_content(diff: Diff) -> dict[str, Any]:
    """Return the rows that changed, are not comparable, new or gone, in this order, each with others of its line."""
    place: dict[tuple[str, str], int] = {}  # of the lines of a dataset
    rows = sorted(_rows(diff), key=lambda row: place.setdefault((row["data"], row["label"]), len(place)))
    return {
        **{key: whole(row.get(key, math.nan) for row in rows) for key in ("old", "new", "p", "low", "high")},
        **{key: [row[key] for row in rows] for key in ("bits", "seed")},
        **{
            key: coded(row.get(key, "") for row in rows)
            for key in ("status", "data", "label", "metric", "seeds", "ties", "other")
        },
    }


def _with_arrow(text: str) -> str:
    return text.replace(" -> ", " → ")


def _rows(diff: Diff) -> Iterator[dict[str, Any]]:
    labels = method_labels((row.method, row.params) for row in diff.rows())

    def about(status: str, row: Row) -> dict[str, Any]:
        place = {"data": f"{row.dataset}:{row.features}", "label": labels[row.method, row.params]}
        return {"status": status, **place, "bits": row.n_bits, "seed": row.seed, "metric": row.metric}

    groups = diff.by_seeds()
    for change in diff.changed:
        signs = [np.sign(other.difference) for other in groups[change.new._replace(seed=0).key]]
        yield {
            **about("changed", change.new),
            "old": float(change.old.value),
            "new": float(change.new.value),
            "seeds": f"{signs.count(np.sign(change.difference))} of {len(signs)}",
            "ties": ANSWERS[change.ties],
            **(dict(zip(("p", "low", "high"), change.test[1:], strict=True)) if change.test else {}),
        }
    for pair in diff.incomparable:
        values = {"old": float(pair.old.value), "new": float(pair.new.value)}
        yield {**about("not comparable", pair.new), **values, "other": _with_arrow(pair.reason)}
    for row in diff.new:
        yield {**about("new", row), "new": float(row.value)}
    for row in diff.gone:
        yield {**about("gone", row), "old": float(row.value)}

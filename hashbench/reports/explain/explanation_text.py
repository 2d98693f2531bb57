"""Explanations as tables and JSON."""

import json
import textwrap
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hashbench.reports.explain.emulation import Explanation
from hashbench.reports.formatting import json_number, markdown_table, plain_table

FORMATS = ("table", "markdown", "json")
_NOTHING = "0.0000"


def format_explanations(explanations: Sequence[Explanation], form: str) -> str:
    """Lay out explanations, metric by metric, in one of ``FORMATS``."""
    if form == "json":
        return json.dumps([as_json(explanation) for explanation in explanations], indent=2)
    lay_out = _as_markdown if form == "markdown" else _as_ledger
    parts = []
    for metric in dict.fromkeys(explanation.metric for explanation in explanations):
        of_metric = [explanation for explanation in explanations if explanation.metric == metric]
        shown, twins = without_twins(of_metric)
        parts += [heading(of_metric[0], form), lay_out(shown)]
        note = _note(shown, twins)
        if note:
            parts.append(note if form == "markdown" else textwrap.fill(note, 80, break_on_hyphens=False))
    return "\n\n".join(parts)


def without_twins(explanations: Sequence[Explanation]) -> tuple[list[Explanation], list[Explanation]]:
    """Separate, of one metric, the scripts from those that run on this machine's NumPy and are shown beside them."""
    names = {explanation.evaluator.name for explanation in explanations}
    twins = [explanation for explanation in explanations if explanation.evaluator.twin_of in names]
    return [explanation for explanation in explanations if explanation not in twins], twins


def _note(shown: Sequence[Explanation], twins: Sequence[Explanation]) -> str:
    """Return which scripts give other values by this machine's NumPy, and by how much; empty if none does."""
    values = {explanation.evaluator.name: explanation.value for explanation in shown}
    changes: dict[str, list[str]] = {}
    for twin in twins:
        name = twin.evaluator.twin_of
        changes.setdefault(_difference(values[name], twin.value), []).append(name)
    parts = [f"{change} for {', '.join(names)}" for change, names in changes.items() if change not in ("", _NOTHING)]
    if not parts:
        return ""
    return (
        f"This machine's NumPy {np.__version__} orders ties differently and changes values by {'; '.join(parts)}. "
        "For the causes, use --script NAME-here."
    )


def heading(explanation: Explanation, form: str) -> str:
    """Return a line on the exact value of a metric."""
    exact = explanation.exact
    name = f"**{explanation.metric}**" if form == "markdown" else explanation.metric
    text = f"{name}: exactly {exact.mean:.4f}, from {exact.low:.4f} to {exact.high:.4f} over orders of ties"
    if not explanation.n_undefined:
        return text
    return f"{text};\n{explanation.n_undefined} of {explanation.n_queries} queries, without relevant items, left out"


def _as_markdown(explanations: Sequence[Explanation]) -> str:
    header = ("script", "where it is used", "why", "value", "difference")
    rows = []
    for explanation in explanations:
        script, value = explanation.evaluator, explanation.value
        why = "; ".join(f"{words} {share}".rstrip() for words, share in _shown(explanation))
        rows.append((script.name, script.used_by, why, f"{value:.4f}", _difference(explanation.exact.mean, value)))
    return markdown_table(header, rows, n_left=3)


def _as_ledger(explanations: Sequence[Explanation]) -> str:
    """Lay out a line per script, followed by a line per cause; no wider than 80 characters."""
    rows = []
    for explanation in explanations:
        value = explanation.value
        rows.append((explanation.evaluator.name, f"{value:.4f}", _difference(explanation.exact.mean, value), ""))
        rows += [(f"  {words}", "", "", share) for words, share in _shown(explanation)]
    return plain_table(("script", "value", "difference", "of which"), rows)


def _shown(explanation: Explanation) -> list[tuple[str, str]]:
    """Return causes in words with their shares, without those that round to nothing.

    Running totals are rounded, not shares, so that the shares shown add up to the difference shown.
    """
    before = accumulate((cause.share for cause in explanation.causes[:-1]), initial=explanation.exact.mean)
    steps = pairwise([*before, explanation.value])
    shares = [(cause.words, _difference(*step)) for cause, step in zip(explanation.causes, steps, strict=False)]
    return [(words, share) for words, share in shares if share != _NOTHING]


def _difference(before: float, after: float) -> str:
    """Return the difference of two numbers, each rounded to four digits; empty if either is NaN."""
    difference = round(after, 4) - round(before, 4)
    return "" if np.isnan(difference) else _NOTHING if abs(difference) < 5e-5 else f"{difference:+.4f}"


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as JSON content, all digits; NaN is null."""
    return {
        "script": explanation.evaluator.name,
        "used_by": explanation.evaluator.used_by,
        "source": explanation.evaluator.source,
        "metric": explanation.metric,
        "value": json_number(explanation.value),
        "exact": {key: json_number(value) for key, value in explanation.exact._asdict().items()},
        "by_its_conventions": {
            key: None if explanation.evaluator.own else json_number(value)
            for key, value in explanation.script_range._asdict().items()
        },
        "difference": json_number(explanation.difference),
        "n_queries": explanation.n_queries,
        "n_undefined": explanation.n_undefined,
        "causes": [{"words": cause.words, "share": json_number(cause.share)} for cause in explanation.causes],
    }

"""Explanations as tables and JSON."""

import math
import textwrap
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from hashbench.errors import counted
from hashbench.reports.explain.emulation import TIE_ORDER, Explanation
from hashbench.reports.formatting import json_text, markdown_table, plain_table

_NOTHING_RELEVANT = "no query has relevant items"
OF_THIS_MACHINE = "-here: ties ordered by this machine's NumPy or numba; other machines may differ."
_NOTHING = "0.0000"
_NAMES_WIDTH = 44  # the room that a terminal leaves
_ADVICE = {
    True: "Sorts then favour some classes. Shuffle it (--database-order shuffled), or report the exact value.",
    False: "Each sort leaves tied items in its own order. The exact value does not depend on it.",
}


def format_explanations(explanations: Sequence[Explanation], form: str, database: str = "") -> str:
    """Lay out explanations as table, markdown or json; ``database`` is its order in words, if known."""
    if form == "json":
        return json_text([as_json(explanation) for explanation in explanations])
    lay_out = _as_markdown if form == "markdown" else _as_ledger
    parts = []
    is_of_this_machine = False
    for metric in dict.fromkeys(explanation.metric for explanation in explanations):
        of_metric = [explanation for explanation in explanations if explanation.metric == metric]
        shown, twins = without_twins(of_metric)
        is_of_this_machine |= any(explanation.evaluator.is_of_this_machine for explanation in shown)
        parts += [heading(of_metric[0], form), lay_out(shown, _is_by_class(database))]
        note = _note(shown, twins)
        if note:
            parts.append(note if form == "markdown" else textwrap.fill(note, 80, break_on_hyphens=False))
    is_tied = any(cause.words == TIE_ORDER for explanation in explanations for cause in explanation.causes)
    if database and is_tied:
        note = f"Tie order: the database is {database}. {_ADVICE[_is_by_class(database)]}"
        parts.append(note if form == "markdown" else textwrap.fill(note, 80))
    if is_of_this_machine:
        parts.append(OF_THIS_MACHINE)
    return "\n\n".join(parts)


def _is_by_class(database: str) -> bool:
    return database.startswith("by class")


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
    if math.isnan(exact.mean):
        return f"{name}: no exact value, since {_NOTHING_RELEVANT}"
    text = f"{name}: exactly {exact.mean:.4f}, from {exact.low:.4f} to {exact.high:.4f} over orders of ties"
    if not explanation.n_undefined:
        return text
    return f"{text};\n{explanation.n_undefined} of {explanation.n_queries} queries, without relevant items, left out"


def _as_markdown(explanations: Sequence[Explanation], is_by_class: bool) -> str:
    header = ("script", "where it is used", "why", "value", "difference")
    rows = []
    for explanation in explanations:
        script, value = explanation.evaluator, explanation.value
        why = "; ".join(f"{words} {share}".rstrip() for words, share in _shown(explanation, is_by_class))
        rows.append((script.name, script.used_by, why, _number(value), _difference(explanation.exact.mean, value)))
    return markdown_table(header, rows, n_left=3)


def _as_ledger(explanations: Sequence[Explanation], is_by_class: bool) -> str:
    """Lay out a line per script or scripts that agree, then one per cause; no wider than 80 characters."""
    names: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[str]] = {}
    for explanation in explanations:
        value = explanation.value
        shown = _number(value), _difference(explanation.exact.mean, value), tuple(_shown(explanation, is_by_class))
        names.setdefault(shown, []).append(explanation.evaluator.name)
    rows = []
    for (number, difference, causes), of_value in names.items():
        rows.append((textwrap.fill(", ".join(of_value), _NAMES_WIDTH, break_on_hyphens=False), number, difference, ""))
        rows += [(f"  {words}", "", "", share) for words, share in causes]
    return plain_table(("script", "value", "difference", "of which"), rows)


def _shown(explanation: Explanation, is_by_class: bool) -> list[tuple[str, str]]:
    """Return causes in words with their shares, without those that round to nothing.

    Running totals are rounded, not shares, so that the shares shown add up to the difference shown. A value that is not
    a number has its reason instead.
    """
    if math.isnan(explanation.value):
        return [(_reason(explanation), "")]
    before = accumulate((cause.share for cause in explanation.causes[:-1]), initial=explanation.exact.mean)
    steps = pairwise([*before, explanation.value])
    shares = [(cause.words, _difference(*step)) for cause, step in zip(explanation.causes, steps, strict=False)]
    tie_order = f"{TIE_ORDER}, database by class" if is_by_class else TIE_ORDER
    return [(tie_order if words == TIE_ORDER else words, share) for words, share in shares if share != _NOTHING]


def _reason(explanation: Explanation) -> str:
    """Return why a value is not a number."""
    script, n_undefined = explanation.evaluator, explanation.n_undefined
    if script.quantity in ("precision_or_share", "recall_or_nothing"):
        return script.own
    if script.quantity != "precision_of_pairs" and n_undefined == explanation.n_queries:
        return _NOTHING_RELEVANT
    if script.quantity in ("precision_of_pairs", "recall_of_pairs"):
        return "the curve ends at a smaller radius"
    if script.mean in ("not_a_number", "not_a_number_of_labelled") and n_undefined:
        return f"0 / 0: nothing is relevant to {counted(n_undefined, 'query', 'queries')}"
    return "0 / 0: no query has a hit above the cut"


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.4f}"


def _difference(before: float, after: float) -> str:
    """Return the difference of two numbers, each rounded to four digits; empty if either is NaN."""
    difference = round(after, 4) - round(before, 4)
    return "" if np.isnan(difference) else _NOTHING if abs(difference) < 5e-5 else f"{difference:+.4f}"


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as content for JSON, all digits."""
    bounds = explanation.script_range._asdict()
    return {
        "script": explanation.evaluator.name,
        "used_by": explanation.evaluator.used_by,
        "source": explanation.evaluator.source,
        "metric": explanation.metric,
        "value": explanation.value,
        "exact": explanation.exact._asdict(),
        "by_its_conventions": dict.fromkeys(bounds) if explanation.evaluator.own else bounds,
        "difference": explanation.difference,
        "n_queries": explanation.n_queries,
        "n_undefined": explanation.n_undefined,
        "reason": _reason(explanation) if math.isnan(explanation.value) else None,
        "causes": [cause._asdict() for cause in explanation.causes],
    }

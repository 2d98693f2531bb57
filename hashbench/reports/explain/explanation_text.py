"""Explanations to print."""

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from hashbench.reports.explain.emulation import N_ERRORS, TIE_ORDER, Estimate, Explanation
from hashbench.reports.explain.quantities import MEANS
from hashbench.reports.formatting import Records, Table, wrapped

_NOTHING_RELEVANT = "no query has relevant items"
WIDTH, _WIDTH = 80, 46  # of a terminal, and of names in a table


def explanation_records(explanations: Sequence[Explanation], database: str = "") -> Records:
    """Return explanations to print; ``database`` is its order in words, if known."""
    parts: list[Table | str] = []
    for metric in dict.fromkeys(explanation.metric for explanation in explanations):
        of_metric = [explanation for explanation in explanations if explanation.metric == metric]
        parts += [wrapped(_heading(of_metric[0]), WIDTH), _ledger(of_metric)]
    if database and any(cause.words == TIE_ORDER for explanation in explanations for cause in explanation.causes):
        parts.append(
            f"Tie order: the database is {database}. Sorts depend on it, most if it is by class;\n"
            "the exact value does not."
        )
    return Records(parts, [as_json(explanation) for explanation in explanations])


def _heading(explanation: Explanation) -> str:
    """Return a line on the exact value of a metric."""
    metric, exact, n_undefined = explanation.metric, explanation.exact, explanation.n_undefined
    if math.isnan(exact.mean):
        return f"{metric}: no exact value, since {_NOTHING_RELEVANT}"
    text = f"{metric}: exactly {exact.mean:.4f}, from {exact.low:.4f} to {exact.high:.4f} over orders of ties"
    if not n_undefined:
        return text
    return f"{text}; {n_undefined} of {explanation.n_queries} queries, without relevant items, left out"


def _ledger(explanations: Sequence[Explanation]) -> Table:
    """Return a table with a line per script or scripts that agree, then one per cause."""
    values = {explanation.evaluator.name: _number(explanation.value) for explanation in explanations}
    names: dict[tuple[str, str, tuple[tuple[str, str], ...]], list[str]] = {}
    for explanation in explanations:
        script, value = explanation.evaluator, explanation.value
        if values.get(script.twin_of) != values[script.name]:  # twins of the same value are not shown
            shown = values[script.name], _difference(explanation.exact.mean, value), tuple(_shown(explanation))
            names.setdefault(shown, []).append(script.name)
    rows = []
    for (number, difference, causes), of_value in names.items():
        rows.append({"script": ", ".join(of_value), "value": number, "difference": difference, "of which": ""})
        rows += [{"script": f"- {words}", "value": "", "difference": "", "of which": share} for words, share in causes]
    return Table("script | value | difference | of which", rows, width=_WIDTH)


def _shown(explanation: Explanation) -> list[tuple[str, str]]:
    """Return causes in words with their shares, without those that round to nothing.

    Running totals are rounded, not shares, so that the shares shown add up to the difference shown. A value that is not
    a number has its reason instead.
    """
    if math.isnan(explanation.value):
        return [(_reason(explanation), "")]
    before = accumulate((cause.share for cause in explanation.causes[:-1]), initial=explanation.exact.mean)
    shares = [_difference(*step) for step in pairwise([*before, explanation.value])]
    causes = zip(explanation.causes, shares, strict=False)
    return [(cause.words, share) for cause, share in causes if share != "0.0000"]


def _reason(explanation: Explanation) -> str:
    """Return why a value is not a number, or not known."""
    estimate = explanation.estimate
    if estimate is not None:
        rest = f"a sample of {estimate.n_queries} queries puts it over {N_ERRORS} standard errors off"
        return rest if estimate.n_queries else "no order of ties gives the number"
    if explanation.n_undefined == explanation.n_queries:
        return _NOTHING_RELEVANT
    return explanation.evaluator.own or MEANS[explanation.evaluator.mean].words


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else f"{value:.4f}"


def _difference(before: float, after: float) -> str:
    """Return the difference of two numbers, each rounded to four digits; empty if either is NaN."""
    difference = round(round(after, 4) - round(before, 4), 4)
    return "" if math.isnan(difference) else f"{difference:+.4f}" if difference else "0.0000"


def as_json(explanation: Explanation) -> dict[str, Any]:
    """Return an explanation as content for JSON, all digits."""
    bounds, estimate = explanation.script_range._asdict(), explanation.estimate
    return {
        "script": explanation.evaluator.name,
        "used_by": explanation.evaluator.used_by,
        "source": explanation.evaluator.source,
        "metric": explanation.metric,
        "value": explanation.value,
        "exact": explanation.exact._asdict(),
        "estimate": dict.fromkeys(Estimate._fields) if estimate is None else estimate._asdict(),
        "by_its_conventions": dict.fromkeys(bounds) if explanation.evaluator.own else bounds,
        "difference": explanation.difference,
        "n_queries": explanation.n_queries,
        "n_undefined": explanation.n_undefined,
        "reason": _reason(explanation) if math.isnan(explanation.value) else None,
        "causes": [cause._asdict() for cause in explanation.causes],
    }

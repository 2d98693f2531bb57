"""Explanations as tables and JSON, and which scripts give a number that is known."""

import json
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, NamedTuple

import numpy as np

from hashbench.errors import HashbenchError
from hashbench.reports.explain.emulation import Cause, Explanation
from hashbench.reports.formatting import json_number, markdown_table, plain_table

FORMATS = ("table", "markdown", "json")
_LEAST = 5e-5  # a share that four digits show
_HEADER = ("script", "where it is used", "why", "value", "difference")
_ANSWERS = {
    "gives": "gives it",
    "could": "may, in another order of ties",
    "unknown": "not in this order of ties",
    "not": "does not",
}


class Answer(NamedTuple):
    """Whether a script gives a number: ``"gives"``, ``"could"`` with other ties, ``"unknown"`` or ``"not"``."""

    explanation: Explanation
    verdict: str


def format_explanations(explanations: Sequence[Explanation], form: str) -> str:
    """Lay out explanations, metric by metric: ``"table"``, ``"markdown"`` or ``"json"``."""
    if form == "json":
        return json.dumps([_as_json(one) for one in explanations], indent=2)
    parts = []
    for metric, those in _by_metric(explanations):
        rows = [
            (one.evaluator.name, one.evaluator.used_by, _why(one), f"{one.value:.4f}", _signed(one.difference))
            for one in those
        ]
        parts += [_headed(metric, those[0], form), _table(_HEADER, rows, form)]
    return "\n\n".join(parts)


def _headed(metric: str, one: Explanation, form: str) -> str:
    name = f"**{metric}**" if form == "markdown" else metric
    told = f"{name}: exactly {one.ours.mean:.4f}, from {one.ours.low:.4f} to {one.ours.high:.4f} over orders of ties"
    if not one.n_undefined:
        return told
    return f"{told}; {one.n_undefined} of {one.n_queries} queries, without relevant items, left out"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], form: str) -> str:
    return (markdown_table if form == "markdown" else plain_table)(header, rows, n_left=3)


def _by_metric(explanations: Sequence[Explanation]) -> Iterable[tuple[str, list[Explanation]]]:
    for metric in dict.fromkeys(one.metric for one in explanations):
        yield metric, [one for one in explanations if one.metric == metric]


def _signed(value: float) -> str:
    return "" if np.isnan(value) else "0.0000" if abs(value) < _LEAST else f"{value:+.4f}"


def _why(one: Explanation) -> str:
    return "; ".join(_told(cause) for cause in one.causes if not abs(cause.share) < _LEAST)


def _told(cause: Cause) -> str:
    return cause.words if np.isnan(cause.share) else f"{cause.words} {cause.share:+.4f}"


def _as_json(one: Explanation) -> dict[str, Any]:
    return {
        "script": one.evaluator.name,
        "used_by": one.evaluator.used_by,
        "metric": one.metric,
        "value": json_number(one.value),
        "exact": {key: json_number(value) for key, value in one.ours._asdict().items()},
        "by_its_conventions": {key: json_number(value) for key, value in one.its._asdict().items()},
        "difference": json_number(one.difference),
        "n_queries": one.n_queries,
        "n_undefined": one.n_undefined,
        "causes": [{"words": cause.words, "share": json_number(cause.share)} for cause in one.causes],
    }


def answers(explanations: Sequence[Explanation], printed: str) -> list[Answer]:
    """Say of each script whether it gives a number, to the digits in which it is printed.

    ``printed`` is such as ``0.731`` or ``73.1``, in percent then. What lies between the bounds of a script's
    conventions it may give; of a quantity of its own we know no bounds, only the value in this order of ties.
    """
    number, half = parse_printed(printed)
    found = []
    for one in explanations:
        script = one.evaluator
        if abs(one.value - number) <= half:
            verdict = "gives"
        elif script.of_ranks is not None:
            verdict = "unknown"
        elif script.order is not None and one.its.low - half <= number <= one.its.high + half:
            verdict = "could"
        else:
            verdict = "not"
        found.append(Answer(one, verdict))
    return found


def parse_printed(printed: str) -> tuple[float, float]:
    """Give a score that was printed, and half of its last digit; a HashbenchError if it is none."""
    text = printed.strip()
    try:
        number = Decimal(text.removesuffix("%"))
    except InvalidOperation:
        number = Decimal("NaN")
    if not (number.is_finite() and 0 <= number <= 100):
        raise HashbenchError(f"--value is {printed!r}, expected a score such as 0.731, or 73.1 in percent.")
    if number > 1 or text.endswith("%"):
        number = number.scaleb(-2)
    if int(number.as_tuple().exponent) > -2:
        raise HashbenchError(f"--value {printed!r} says too little: give two digits behind the point, or percent.")
    return float(number), 0.5000001 * 10.0 ** int(number.as_tuple().exponent)


def format_answers(found: Sequence[Answer], printed: str, form: str) -> str:
    """Lay out which scripts give the number; those that do first."""
    if form == "json":
        return json.dumps([{**_as_json(one), "verdict": verdict} for one, verdict in found], indent=2)
    header = ("script", "where it is used", printed, "value", "low", "high")
    parts = []
    for metric in dict.fromkeys(one.explanation.metric for one in found):
        those = [one for one in found if one.explanation.metric == metric]
        rows = [
            (one.evaluator.name, one.evaluator.used_by, words, f"{one.value:.4f}", *_range(one))
            for key, words in _ANSWERS.items()
            for one, verdict in those
            if verdict == key
        ]
        parts += [_headed(metric, those[0].explanation, form), _table(header, rows, form)]
    return "\n\n".join(parts)


def _range(one: Explanation) -> tuple[str, str]:
    return ("", "") if one.evaluator.own else (f"{one.its.low:.4f}", f"{one.its.high:.4f}")

"""Explanations as tables and JSON, and which scripts give a number that is known."""

import json
import math
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from hashbench.errors import HashbenchError
from hashbench.reports.explain.emulation import Explanation
from hashbench.reports.formatting import json_number, markdown_table, plain_table

FORMATS = ("table", "markdown", "json")
_NOTHING = "0.0000"
_ANSWERS = {
    "gives": "gives it",
    "could": "may, with other ties",
    "unknown": "not with these ties",
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
    lay_out = _as_markdown if form == "markdown" else _as_ledger
    parts = []
    for metric in dict.fromkeys(one.metric for one in explanations):
        those = [one for one in explanations if one.metric == metric]
        parts += [_headed(metric, those[0], form), lay_out(those)]
    return "\n\n".join(parts)


def _headed(metric: str, one: Explanation, form: str) -> str:
    name = f"**{metric}**" if form == "markdown" else metric
    told = f"{name}: exactly {one.ours.mean:.4f}, from {one.ours.low:.4f} to {one.ours.high:.4f} over orders of ties"
    if not one.n_undefined:
        return told
    return f"{told};\n{one.n_undefined} of {one.n_queries} queries, without relevant items, left out"


def _as_markdown(those: Sequence[Explanation]) -> str:
    header = ("script", "where it is used", "why", "value", "difference")
    rows = []
    for one in those:
        why = "; ".join(f"{words} {share}".rstrip() for words, share in _shown(one))
        numbers = f"{one.value:.4f}", _difference(one.ours.mean, one.value)
        rows.append((one.evaluator.name, one.evaluator.used_by, why, *numbers))
    return markdown_table(header, rows, n_left=3)


def _as_ledger(those: Sequence[Explanation]) -> str:
    """Lay out a line a script, and below it one a cause; no wider than 80 characters."""
    rows = []
    for one in those:
        rows.append((one.evaluator.name, f"{one.value:.4f}", _difference(one.ours.mean, one.value), ""))
        rows += [(f"  {words}", "", "", share) for words, share in _shown(one)]
    return plain_table(("script", "value", "difference", "of which"), rows)


def _shown(one: Explanation) -> list[tuple[str, str]]:
    """Give causes in words with their shares, without those that come to nothing.

    What is rounded is the number that each cause leads to; so shares add up to the difference, as they are shown.
    """
    before = accumulate((cause.share for cause in one.causes[:-1]), initial=one.ours.mean)
    steps = pairwise([*before, one.value])
    shares = [(cause.words, _difference(*step)) for cause, step in zip(one.causes, steps, strict=False)]
    return [(words, share) for words, share in shares if share != _NOTHING]


def _difference(before: float, after: float) -> str:
    """Give the difference of two numbers as both are shown, to four digits; nothing if one is no number."""
    difference = round(after, 4) - round(before, 4)
    return "" if np.isnan(difference) else _NOTHING if abs(difference) < 5e-5 else f"{difference:+.4f}"


def _as_json(one: Explanation) -> dict[str, Any]:
    return {
        "script": one.evaluator.name,
        "used_by": one.evaluator.used_by,
        "source": one.evaluator.source,
        "metric": one.metric,
        "value": json_number(one.value),
        "exact": {key: json_number(value) for key, value in one.ours._asdict().items()},
        "by_its_conventions": {
            key: None if one.evaluator.own else json_number(value) for key, value in one.its._asdict().items()
        },
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


def _read_as(printed: str) -> str:
    """Give a number as it was printed and as it is read: 1.5 (0.0150 ± 0.0005)."""
    number, half = parse_printed(printed)
    n_digits = 1 - math.floor(math.log10(2 * half))
    return f"{printed} ({number:.{n_digits}f} ± {half:.{n_digits}f})"


def format_answers(found: Sequence[Answer], printed: str, form: str) -> str:
    """Lay out which scripts give the number; those that do first."""
    if form == "json":
        number, half = parse_printed(printed)
        asked = {"value": number, "half_width": half}
        return json.dumps([{**_as_json(one), "asked": asked, "verdict": verdict} for one, verdict in found], indent=2)
    used = ("where it is used",) if form == "markdown" else ()
    header = ("script", *used, printed, "value", "low", "high")
    lay_out = markdown_table if form == "markdown" else plain_table
    parts = [f"asked for: {_read_as(printed)}"]
    for metric in dict.fromkeys(one.explanation.metric for one in found):
        those = [one for one in found if one.explanation.metric == metric]
        rows = [
            (one.evaluator.name, *[one.evaluator.used_by for _ in used], words, f"{one.value:.4f}", *_range(one))
            for key, words in _ANSWERS.items()
            for one, verdict in those
            if verdict == key
        ]
        parts += [_headed(metric, those[0].explanation, form), lay_out(header, rows, n_left=2 + len(used))]
    return "\n\n".join(parts)


def _range(one: Explanation) -> tuple[str, str]:
    return ("", "") if one.evaluator.own else (f"{one.its.low:.4f}", f"{one.its.high:.4f}")

"""Which scripts print a given number: those that do, then the nearest."""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain.emulation import Explanation
from hashbench.reports.explain.explanation_text import OF_THIS_MACHINE, as_json
from hashbench.reports.formatting import json_text, markdown_table, plain_table

_CUTS = (  # that papers report
    ("AP", (100, 500, 1000, 5000, 10_000, 50_000)),
    ("NDCG", (100, 1000)),
    ("P", (100, 500, 1000)),
)
_N_NEAREST = 10  # candidates shown in text
_WIDTH = 32  # of script names
_EXACT = "exact, by hashbench"


class Answer(NamedTuple):
    """Whether a script prints a number: ``"gives"``, ``"could"`` with other ties, ``"unknown"`` or ``"not"``."""

    explanation: Explanation
    database: str  # its order; empty for a run
    verdict: str


class _Candidate(NamedTuple):
    """Scripts that print one value."""

    metric: str
    databases: tuple[str, ...]
    value: float
    names: tuple[str, ...]


def searched_metrics(n_items: int) -> list[str]:
    """Return the metrics that papers report, with cuts within a database of this size."""
    cuts = [f"{stem}@{cut}" for stem, of_stem in _CUTS for cut in of_stem if cut <= n_items]
    return ["AP", "NDCG", "P@r2", *cuts]


def answers(explanations: Mapping[str, Sequence[Explanation]], printed: str) -> list[Answer]:
    """Return whether each script prints a number, to the digits of ``printed``, such as 0.731, or 73.1 in percent.

    Explanations are by the order of the database. Any value between the bounds of a script's conventions is possible. A
    quantity of its own has no known bounds, only the value in this tie order.
    """
    number, half = parse_printed(printed)
    verdicts = []
    for database, of_database in explanations.items():
        for explanation in of_database:
            script, bounds = explanation.evaluator, explanation.script_range
            if abs(explanation.value - number) <= half:
                verdict = "gives"
            elif script.quantity and script.order:
                verdict = "unknown"
            elif script.order and bounds.low - half <= number <= bounds.high + half:
                verdict = "could"
            else:
                verdict = "not"
            verdicts.append(Answer(explanation, database, verdict))
    return verdicts


def parse_printed(printed: str) -> tuple[float, float]:
    """Return a printed score as a number, and half a unit of its last digit."""
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
        raise HashbenchError(f"--value {printed!r} has too few digits: give two decimal places, or percent.")
    return float(number), 0.5000001 * 10.0 ** int(number.as_tuple().exponent)


def format_answers(verdicts: Sequence[Answer], printed: str, form: str) -> str:
    """Lay out the scripts that print the number, then the nearest, with metric and order of the database."""
    number, half = parse_printed(printed)
    if form == "json":
        asked = {"value": number, "half_width": half}
        rows = [
            {**as_json(explanation), "database_order": database or None, "asked": asked, "verdict": verdict}
            for explanation, database, verdict in verdicts
        ]
        return json_text(rows)
    n_digits = max(4, round(-math.log10(2 * half)))
    candidates = sorted(_candidates(verdicts, n_digits), key=lambda candidate: abs(candidate.value - number))
    n_giving = sum(abs(candidate.value - number) <= half for candidate in candidates)
    n_databases = len({answer.database for answer in verdicts})
    is_markdown = form == "markdown"
    lines: list[tuple[str, ...]] = []
    shown = candidates[: max(n_giving, _N_NEAREST)]
    for candidate in shown:
        names = ", ".join(candidate.names)
        if not is_markdown:
            names = textwrap.fill(names, _WIDTH, break_on_hyphens=False)
        database = "any" if len(candidate.databases) == n_databases > 1 else ", ".join(candidate.databases)
        is_it = abs(candidate.value - number) <= half
        answer = "gives it" if is_it else f"{candidate.value - number:+.{n_digits}f}"
        lines.append((names, candidate.metric, database, f"{candidate.value:.{n_digits}f}", answer))
    header: tuple[str, ...] = ("script", "metric", "database", "value", printed)
    lay_out = markdown_table if is_markdown else plain_table
    if not any(answer.database for answer in verdicts):
        header, lines = header[:2] + header[3:], [line[:2] + line[3:] for line in lines]
    n_more = 1 - math.floor(math.log10(2 * half))
    asked_for = f"asked for: {printed} ({number - half:.{n_more}f} to {number + half:.{n_more}f})"
    parts = [asked_for, lay_out(header, lines, n_left=len(header) - 2)]
    if notes := _notes(verdicts, len(candidates) - len(lines), n_giving):
        parts.append(notes if is_markdown else textwrap.fill(notes, 80))
    scripts = [answer.explanation.evaluator for answer in verdicts]
    of_this_machine = {script.name for script in scripts if script.is_of_this_machine}
    if any(not of_this_machine.isdisjoint(candidate.names) for candidate in shown):
        parts.append(OF_THIS_MACHINE)
    return "\n\n".join(parts)


def _candidates(verdicts: Iterable[Answer], n_digits: int) -> list[_Candidate]:
    """Group scripts by their value of a metric as shown, then orders of the database; without NaN."""
    names: dict[tuple[str, str, str], list[str]] = {}
    values: dict[str, float] = {}
    for explanation, database, _ in verdicts:
        for name, value in ((_EXACT, explanation.exact.mean), (explanation.evaluator.name, explanation.value)):
            digits = f"{value:.{n_digits}f}"
            of_value = names.setdefault((explanation.metric, database, digits), [])
            values.setdefault(digits, value)
            if name not in of_value:
                of_value.append(name)
    databases: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for (metric, database, digits), of_value in names.items():
        databases.setdefault((metric, digits, tuple(of_value)), []).append(database)
    return [
        _Candidate(metric, tuple(of_databases), values[digits], of_value)
        for (metric, digits, of_value), of_databases in databases.items()
        if not math.isnan(values[digits])
    ]


def _notes(verdicts: Sequence[Answer], n_more: int, n_giving: int) -> str:
    notes = [] if n_giving else ["No script gives it; the nearest come first."]
    if n_more:
        notes.append(f"Left out: {counted(n_more, 'candidate')} farther away; JSON output has all.")
    by_verdict = {
        verdict: {answer.explanation.evaluator.name for answer in verdicts if answer.verdict == verdict}
        for verdict in ("gives", "could")
    }
    n_possible = len(by_verdict["could"] - by_verdict["gives"])
    if n_possible:
        notes.append(f"{counted(n_possible, 'other script')} could give it with ties in another order.")
    return " ".join(notes)

"""Which scripts print a given number: those that do, then the nearest."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain.emulation import N_ERRORS, Explanation
from hashbench.reports.explain.explanation_text import WIDTH, as_json
from hashbench.reports.formatting import Records, Table, wrapped

_CUTS = (  # that papers report
    ("AP", (100, 500, 1000, 5000, 10_000, 50_000)),
    ("NDCG", (100, 1000)),
    ("P", (100, 500, 1000)),
)
_N_NEAREST = 10  # candidates shown in text
_EXACT = "exact, by hashbench"


class Answer(NamedTuple):
    """Whether a script prints a number: ``"gives"``, ``"could"`` with other ties, ``"unknown"`` or ``"not"``."""

    explanation: Explanation
    database: str  # its order; empty for a run
    verdict: str


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
    if not isinstance(printed, str):
        raise HashbenchError(f"the value is {printed!r}, expected a string such as '0.730', whose final zeros count.")
    text = printed.strip()
    try:
        number = Decimal(text.removesuffix("%"))
        if number > 1 or text.endswith("%"):
            number = number.scaleb(-2)
        is_score = 0 <= number <= 1 and int(number.as_tuple().exponent) <= -2
    except InvalidOperation:
        is_score = False
    if not is_score:
        raise HashbenchError(
            f"the value is {printed!r}, expected a score with two decimals or more, such as 0.731, or 73.1 in percent."
        )
    return float(number), 0.5000001 * 10.0 ** int(number.as_tuple().exponent)


def answer_records(verdicts: Sequence[Answer], printed: str) -> Records:
    """Return the scripts that print the number, then the nearest, with metric and order of the database, to print."""
    number, half = parse_printed(printed)
    asked = {"value": number, "half_width": half}
    content = [
        {**as_json(explanation), "database_order": database or None, "asked": asked, "verdict": verdict}
        for explanation, database, verdict in verdicts
    ]
    n_digits = max(4, round(-math.log10(2 * half)))
    candidates = _candidates(verdicts, number, n_digits)
    n_giving = sum(row.gives(half) for row in candidates)
    shown = candidates[: max(n_giving, _N_NEAREST)]
    offs = ("gives it" if row.gives(half) else f"{row.off:+.{n_digits}f}" for row in shown)
    rows = [row._asdict() | {"off": off} for row, off in zip(shown, offs, strict=True)]
    n_more = 1 - math.floor(math.log10(2 * half))
    parts: list[Table | str] = [
        f"asked for: {printed} ({number - half:.{n_more}f} to {number + half:.{n_more}f})",
        Table(f"script {{names}} | metric | value {{digits}} | {printed} {{off}}", rows, n_left=2, width=30),
    ]
    giving, possible = (
        {answer.explanation.evaluator.name for answer in verdicts if answer.verdict == verdict}
        for verdict in ("gives", "could")
    )
    if not giving:
        parts.append("No script gives this number with ties in this order.")
    if possible - giving:
        scripts = counted(len(possible - giving), "script" if not giving else "other script")
        parts.append(f"{scripts} could give it with ties in another order.")
    return Records([*parts, *_about_estimates([answer.explanation for answer in verdicts])], content)


def _about_estimates(explanations: Sequence[Explanation]) -> list[str]:
    """Return a paragraph on what was ruled out before all queries were ranked, if anything was."""
    estimates = [explanation.estimate for explanation in explanations if explanation.estimate is not None]
    if not estimates:
        return []
    sizes = sorted({estimate.n_queries for estimate in estimates if estimate.n_queries})
    n_sampled = sum(estimate.n_queries > 0 for estimate in estimates)
    by_range = f"no order of ties gives the number ({len(estimates) - n_sampled})"
    sampled = " to ".join(f"{size:,}" for size in sorted({*sizes[:1], *sizes[-1:]}))
    by_sample = (
        f"a random sample of {sampled} of {explanations[0].n_queries:,} queries puts them more than {N_ERRORS} "
        f"standard errors off ({n_sampled})"
    )
    reasons = [by_range] * (n_sampled < len(estimates)) + [by_sample] * (n_sampled > 0)
    text = (
        f"~: an estimate. {len(estimates):,} of {len(explanations):,} values were ruled out without ranking all "
        f"queries: {', or '.join(reasons)}. All other values are of all queries."
    )
    return [wrapped(text, WIDTH)]


class _Row(NamedTuple):
    """Scripts that print one value."""

    off: float  # how far it lies from the number
    digits: str  # ~ before an estimate
    metric: str  # with orders of the database, unless it is the same in all
    names: str

    def gives(self, half: float) -> bool:
        """Whether it is the number, as far as that was printed."""
        return abs(self.off) <= half and not self.digits.startswith("~")


def _candidates(verdicts: Sequence[Answer], number: float, n_digits: int) -> list[_Row]:
    """Return the values with their metric and scripts, nearest first; without NaN."""
    values: dict[str, float] = {}
    databases: defaultdict[tuple[str, str, str], dict[str, None]] = defaultdict(dict)
    for explanation, database, _ in verdicts:
        estimate, script = explanation.estimate, explanation.evaluator.name
        of_script = ("", explanation.value) if estimate is None else ("~", estimate.value)
        for name, (mark, value) in {_EXACT: ("", explanation.exact.mean), script: of_script}.items():
            digits = f"{mark}{value:.{n_digits}f}"
            values.setdefault(digits, value)
            databases[digits, explanation.metric, name][database] = None
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    n_databases = len({answer.database for answer in verdicts})
    for (digits, metric, name), of_databases in databases.items():
        place = metric if len(of_databases) == n_databases else ", ".join([metric, *of_databases])
        names[digits, place].append(name)
    rows = [
        _Row(values[digits] - number, digits, place, ", ".join(scripts)) for (digits, place), scripts in names.items()
    ]
    return sorted((row for row in rows if not math.isnan(row.off)), key=lambda row: abs(row.off))

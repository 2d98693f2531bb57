"""Explanations as tables and JSON; the scripts, metrics and orders of the database that print a given number."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal, InvalidOperation
from itertools import accumulate, count, pairwise, takewhile
from typing import Any, NamedTuple

import numpy as np

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, counted
from hashbench.reports.explain.emulation import N_ERRORS, TIE_ORDER, Emulation, Estimate, Explanation, Job, is_exact
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
    values = {one.evaluator.name: f"{one.value:.4f}".replace("nan", "NaN") for one in explanations}
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


SMALLEST_SAMPLE = 32  # queries; a multiple of those ranked at a time, so that none is ranked twice
_ROUNDING = 1e-9  # of scores


def search(
    emulations: Mapping[str, Emulation], number: float, half: float, on_progress: Progress = silent
) -> dict[str, list[Explanation]]:
    """Explain all scripts that may print a value within ``half`` of a number, and estimate the values of the others.

    Emulations are of the same queries, by the order of the database. Values that no order of ties can give are ruled
    out first, then those that a random sample of queries, always the same, puts too far off. The sample is doubled
    until it would be all queries, which are ranked for the remaining values. Few queries are always ranked.
    """
    first, *others = emulations.values()
    exact = (need for job in first.jobs for need in job.needs if is_exact(need))
    first.score(exact, what="queries counted", on_progress=on_progress)
    for other in others:
        other.share_exact(first)
    rows = np.random.default_rng(0).permutation(first.n_queries)
    candidates = {order: [job for job in emulation.jobs if job.sorts] for order, emulation in emulations.items()}
    ruled_out: dict[tuple[str, Job], Estimate] = {}

    def rule_out(order: str, estimates: Mapping[Job, Estimate]) -> None:
        for job, estimate in estimates.items():
            is_nan = math.isnan(estimate.value) and not estimate.n_queries  # in every order; a sample may lack queries
            if is_nan or number + half < estimate.low - _ROUNDING or number - half > estimate.high + _ROUNDING:
                ruled_out[order, job] = estimate
        candidates[order] = [job for job in candidates[order] if (order, job) not in ruled_out]

    if first.n_queries > SMALLEST_SAMPLE:
        for order, emulation in emulations.items():
            rule_out(order, {job: emulation.bounds(job) for job in candidates[order]})
    sizes = takewhile(lambda size: size < first.n_queries, (SMALLEST_SAMPLE << doublings for doublings in count()))
    for n_before, n_sampled in pairwise([0, *sizes]):
        for order, emulation in emulations.items():
            needs = (need for job in candidates[order] for need in job.value_needs)
            emulation.score(needs, rows[n_before:n_sampled], "queries of a sample ranked", on_progress)
            rule_out(order, {job: emulation.estimate(job, rows[:n_sampled]) for job in candidates[order]})
    for order, emulation in emulations.items():
        emulation.score((need for job in candidates[order] for need in job.needs), rows, "queries ranked", on_progress)
    return {
        order: [
            emulation.estimated(job, ruled_out[order, job]) if (order, job) in ruled_out else emulation.explanation(job)
            for job in emulation.jobs
        ]
        for order, emulation in emulations.items()
    }


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

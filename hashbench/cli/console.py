"""Runs with their progress, and scores as text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hashbench.cli.progress import ProgressBar
from hashbench.errors import HashbenchError, counted
from hashbench.reports.formatting import json_text, markdown_table, plain_table, sheet_text, wrapped

if TYPE_CHECKING:
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.grid import Job
    from hashbench.pipeline.one_job import Outcome
    from hashbench.pipeline.steps import Demands
    from hashbench.scoring.candidates import CandidateCount
    from hashbench.scoring.drift import Drift
    from hashbench.scoring.evaluation import Evaluation

_SHOWN_BITS = 3  # that differ most


def run_jobs(
    jobs: Sequence["Job"], demands: "Demands", n_jobs: int = 1, cluster: "Cluster | None" = None
) -> Iterator["Outcome"]:
    """Run jobs, with progress on stderr, ``n_jobs`` at a time or on a cluster; yield the outcomes of those not refused.

    Raises HashbenchError if all jobs were refused, or, after the last one, if any
    failed.
    """
    from hashbench.pipeline.runner import run_all

    if not jobs:  # an empty part
        return
    refusals, n_failed = [], 0
    unwarned = {job.dataset for job in jobs}
    with ProgressBar(len(jobs)) as progress:
        is_serial = n_jobs == 1 and cluster is None
        progress.start_job(str(jobs[0]) if is_serial else "jobs")
        outcomes = run_all(jobs, demands, progress.update, n_jobs, cluster)
        for position, outcome in enumerate(outcomes, start=1):
            if outcome.refusal:
                n_failed += outcome.has_failed
                if len(jobs) > 1:  # the reason of a single one is in the error below
                    reason = outcome.refusal if outcome.refusal not in refusals else "As above."
                    progress.finish_job(f"{outcome.job}: {'failed' if outcome.has_failed else 'refused'}. {reason}")
                refusals.append(outcome.refusal)
            else:
                if outcome.job.dataset in unwarned:  # it is prepared by now
                    unwarned.remove(outcome.job.dataset)
                    warn_of(outcome.job.dataset, progress)
                yield outcome
                progress.finish_job(f"{outcome.job}: {', '.join(outcome.notes)}", is_new=outcome.is_new)
            if position < len(jobs) and is_serial:
                progress.start_job(str(jobs[position]))
    if len(jobs) == 1 and refusals:
        raise HashbenchError(refusals[0])
    if len(refusals) == len(jobs):
        raise HashbenchError(f"none of the {len(jobs)} jobs could run; the reasons are above.")
    if n_failed:
        raise HashbenchError(f"{n_failed} of the {len(jobs)} jobs failed; the reasons are above.")


def warn_of(spec: str, progress: ProgressBar) -> None:
    """Print a warning if queries of a prepared dataset have copies in it."""
    from hashbench.pipeline.preparation import find_dataset

    if (dataset := find_dataset(spec)) and (warning := dataset.warning):
        progress.print(f"Warning: in {spec}, {warning}")


def format_evaluation(evaluation: "Evaluation", form: str, ordered: str = "database") -> str:
    """Return scores as table, markdown or latex (four decimals), csv (six) or json (all), without a final newline.

    ``ordered`` is what ties are ordered by: the database, or the documents of a run.
    """
    summary = evaluation.summary
    if form == "json":
        return json_text(_by_name(evaluation))
    if form == "csv":
        rows = [[name, *map(_six, values.by_name.values())] for name, values in summary.items()]
        return sheet_text(("metric", *next(iter(summary.values())).by_name), rows).rstrip("\n")
    n_orders = next(map(len, evaluation.random_orders.values()), 0)
    header, lines = ["metric", "mean", "tie_sd", "low", "high"], []
    for name, values in summary.items():
        lines.append([name, _four(values.mean), _five(values.tie_sd), _four(values.low), _four(values.high)])
        if values.tie_sd_measured is not None:
            lines[-1].insert(3, _five(values.tie_sd_measured))
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    shuffle, worst_case = shuffle_and_worst_case(ordered)
    notes = [f"{_scored_queries(evaluation)}; mean over all orders of tied items.", shuffle]
    if n_orders:
        header.insert(3, "tie_sd_measured")
        notes.append(f"tie_sd_measured: the same, measured in {n_orders:,} random orders.")
    notes.append(worst_case)
    if evaluation.n_undefined:
        notes.append(_without_relevant(evaluation))
    for name, n_empty in evaluation.n_empty.items():
        if n_empty:
            fate = "are left out" if name.endswith(":skip") else f"count 0; {name}:skip leaves them out"
            notes.append(f"{name}: {n_empty:,} of {n_queries:,} queries have no item within the radius and {fate}.")
    return _laid_out(header, lines, notes, form)


def format_several(evaluations: Sequence[tuple[int, int, "Evaluation"]], form: str) -> str:
    """Return the scores of codes, each with its length and seed, as `format_evaluation` does those of one."""
    if form == "json":
        return json_text([{"n_bits": n_bits, "seed": seed, "scores": _by_name(of)} for n_bits, seed, of in evaluations])
    first = evaluations[0][2]
    if form == "csv":
        rows = [
            [n_bits, seed, name, *map(_six, values.by_name.values())]
            for n_bits, seed, evaluation in evaluations
            for name, values in evaluation.summary.items()
        ]
        return sheet_text(("n_bits", "seed", "metric", *next(iter(first.summary.values())).by_name), rows).rstrip("\n")
    header = ["bits", "seed", *(column for name in first.summary for column in (name, "tie_sd"))]
    lines = [
        [
            *(str(n_bits), str(seed)),
            *(text for of in evaluation.summary.values() for text in (_four(of.mean), _five(of.tie_sd))),
        ]
        for n_bits, seed, evaluation in evaluations
    ]
    return _laid_out(header, lines, [shuffle_and_worst_case()[0]], form)


def format_candidates(counts: Sequence["CandidateCount"], metric: str, form: str) -> str:
    """Return how many candidates reach each wanted recall as `format_evaluation` does scores."""
    if form == "json":
        return json_text([{**count._asdict(), "recall": count.recall.by_name} for count in counts])
    if form == "csv":
        header = ["wanted", "n_candidates", "fewest", "most", *counts[0].recall.by_name]
        rows = [[f"{count.wanted:.12g}", *count[1:4], *map(_six, count.recall.by_name.values())] for count in counts]
        return sheet_text(header, rows).rstrip("\n")
    header = [f"wanted {metric}", "candidates", "fewest", "most", "recall", "tie_sd", "low", "high"]
    lines = []
    for wanted, n_candidates, fewest, most, recall in counts:
        numbers = [f"{number:,}" for number in (n_candidates, fewest, most)]
        values = [_four(recall.mean), _five(recall.tie_sd), _four(recall.low), _four(recall.high)]
        lines.append([f"{wanted:.12g}", *numbers, *values])
    n_queries, n_undefined = counts[0].recall.n_queries, counts[0].recall.n_undefined
    notes = [
        f"{_scored_of(n_queries, n_undefined)}; candidates: the smallest number whose re-ranking reaches the wanted "
        "recall, as the mean over all orders of tied items.",
        "fewest, most: the smallest number if each query's ties are broken in the best order, and in the worst.",
        "recall: after re-ranking these candidates, the mean over all orders; low, high: the worst and the best case.",
        "tie_sd: the shuffle deviation, how far the recall in one random order of the database typically lies from "
        "this mean (estimate).",
        "Relevant items are taken to be the nearest by the distance that re-ranks, as true neighbours are.",
    ]
    if n_undefined:
        notes.append(_lacking(n_undefined, n_queries, leaves_out=True))
    return _laid_out(header, lines, notes, form)


def format_drift(
    drifts: Mapping[str, "Drift"],
    scored: Sequence[tuple[tuple[str, str], "Evaluation"]],
    answers: Mapping[str, Mapping[str, Any]],
    form: str,
) -> str:
    """Return how two codes differ, by role, and the scores of queries of each in a database of each, as text.

    ``answers`` are those of `hashbench.scoring.comparison.each_difference`.
    """
    if form == "json":
        pairs = [{"queries": names[0], "database": names[1], "scores": _by_name(of)} for names, of in scored]
        whole = {"scores": pairs, "differences": answers}
        return json_text({role: _drift_numbers(drift) for role, drift in drifts.items()} | whole)
    header = ["codes", "items", "equal", "bits per item", "most", "bits that differ most (share of items)"]
    lines = []
    for role, drift in drifts.items():
        sizes = f"{len(drift.bits_per_item):,}", f"{drift.most_bits} of {len(drift.items_per_bit)}"
        shares = _four(drift.share_equal), _four(drift.mean_bits)
        lines.append([role, sizes[0], *shares, sizes[1], _worst_bits(drift)])
    notes = [
        "equal: share of the items whose two codes are equal.",
        "bits per item: bits that differ, on average; most: in one item. Bits are counted from 0.",
    ]
    text = _laid_out(header, lines, notes, form)
    if not scored:
        return text
    about = (
        "these: the first codes; other: the other ones. Items are paired by row; ids are compared if the files have "
        "any."
    )
    return f"{text}\n\n{format_two(scored, ('queries', 'database'), answers, form, about)}"


def format_two(
    scored: Sequence[tuple[tuple[str, ...], "Evaluation"]],
    titles: Sequence[str],
    answers: Mapping[str, Mapping[str, Any]],
    form: str,
    about: str = "",
) -> str:
    """Return the scores of two of the same, under names with some titles, and which is better in each metric."""
    if form == "json":
        each = [dict(zip(titles, names, strict=True)) | {"scores": _by_name(of)} for names, of in scored]
        return json_text({"scores": each, "differences": answers})
    header, lines = [*titles, "metric", "mean", "tie_sd", "low", "high"], []
    for names, evaluation in scored:
        for name, values in evaluation.summary.items():
            numbers = [_four(values.mean), _five(values.tie_sd), _four(values.low), _four(values.high)]
            lines.append([*names, name, *numbers])
    evaluation = scored[0][1]
    notes = [f"{_scored_queries(evaluation)}; mean over all orders of tied items.", *shuffle_and_worst_case()]
    notes += [about] * bool(about)
    if evaluation.n_undefined:
        notes.append(_without_relevant(evaluation))
    n_tested = sum(answer["p_holm"] is not None for answer in answers.values())
    if n_tested:
        notes.append(f"p is corrected for the {n_tested} metrics by Holm's method; the intervals are not corrected.")
    notes += ["", *(wrapped(str(answer["sentence"])) for answer in answers.values())]
    return _laid_out(header, lines, notes, form, n_left=len(titles) + 1)


def _drift_numbers(found: "Drift") -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("share_equal", "mean_bits", "most_bits")}
    sizes = {"n_items": len(found.bits_per_item), "n_bits": len(found.items_per_bit)}
    return sizes | numbers | {"items_per_bit": found.items_per_bit.tolist()}


def _worst_bits(found: "Drift") -> str:
    order = np.argsort(-found.items_per_bit, kind="stable")[:_SHOWN_BITS]
    shares = found.items_per_bit / len(found.bits_per_item)
    return ", ".join(f"{bit} ({_four(shares[bit])})" for bit in order.tolist() if shares[bit]) or "none"


def _laid_out(header: list[str], lines: list[list[str]], notes: list[str], form: str, n_left: int = 1) -> str:
    """Return a table with its notes, in LaTeX as comments above it."""
    if form == "latex":
        from hashbench.reports.tables.latex import tabular

        return "\n".join([*(f"% {note}" for note in notes), *tabular(header, lines)])
    text = (markdown_table if form == "markdown" else plain_table)(header, lines, n_left)
    return "\n".join([text, "", *notes])


def _by_name(evaluation: "Evaluation") -> dict[str, dict[str, float | None]]:
    return {name: values.by_name for name, values in evaluation.summary.items()}


def shuffle_and_worst_case(ordered: str = "database") -> tuple[str, str]:
    """Return the notes on the columns tie_sd, low and high of a table."""
    return (
        f"tie_sd: the shuffle deviation, how far the score in one random order of the {ordered} typically lies from "
        "this mean (estimate).",
        "low, high: every query's ties broken in the worst or best way; usually no one order does all of that.",
    )


def _four(value: float) -> str:
    """Format four decimals of the six in results, so that tables show the same."""
    return f"{float(f'{value:.6f}'):.4f}"


def _five(value: float) -> str:
    """Format five decimals of a deviation; a dash if it is unknown."""
    return "-" if value != value else f"{value:.5f}"


def _six(value: float | None) -> str:
    """Format six decimals, none for a count; nothing for a missing value."""
    return "" if value is None else str(value) if isinstance(value, int) else f"{value:.6f}"


def format_outcomes(outcomes: Sequence["Outcome"], form: str, *, is_grid: bool = True) -> str:
    """Return the scores of finished jobs as text; with ``is_grid`` false, the table of one job does not name it."""
    if form == "csv":
        from hashbench.store.result_rows import COLUMNS

        return sheet_text(COLUMNS, (row for outcome in outcomes for row in outcome.rows)).rstrip("\n")
    if form == "json":
        content = []
        for outcome in outcomes:
            job = {
                "dataset": outcome.rows[0].dataset,
                "method": outcome.job.method,
                "n_bits": outcome.job.n_bits,
                "seed": outcome.job.seed,
                "params": dict(outcome.job.params),
                "scores": _by_name(_evaluation(outcome)),
            }
            if outcome.held_out:
                job["held_out"] = {outcome.held_out[0]: outcome.held_out[1]}
            content.append(job)
        return json_text(content)
    lines = [_grid_table(outcomes) if is_grid else format_evaluation(_evaluation(outcomes[0]), "table")]
    if any(outcome.held_out for outcome in outcomes):
        score = "" if is_grid else f" {_held_out(outcomes[0])},"
        lines.append(f"held out:{score} the training items that chose the epoch, as queries to the others.")
    return "\n".join(lines)


def _held_out(outcome: "Outcome") -> str:
    return f"{outcome.held_out[0]} {_four(outcome.held_out[1])}" if outcome.held_out else "-"


def _grid_table(outcomes: Sequence["Outcome"]) -> str:
    names = list(_evaluation(outcomes[0]).scores)
    has_held_out = any(outcome.held_out for outcome in outcomes)
    lines = []
    for outcome in outcomes:
        first, *others = _evaluation(outcome).summary.values()
        label = " ".join([outcome.job.method, *(f"{key}={value}" for key, value in outcome.job.params.items())])
        lines.append(
            [
                outcome.rows[0].dataset,
                label,
                str(outcome.job.n_bits),
                str(outcome.job.seed),
                _four(first.mean),
                _five(first.tie_sd),
                f"{_four(first.low)}-{_four(first.high)}",
                *(_four(other.mean) for other in others),
                *([_held_out(outcome)] if has_held_out else []),
            ]
        )
    header = ["dataset", "method", "bits", "seed", names[0], "tie_sd", f"{names[0]} low-high", *names[1:]]
    header += ["held out"] * has_held_out
    by_dataset = {outcome.rows[0].dataset: _evaluation(outcome) for outcome in outcomes}
    notes = [
        _without_relevant(evaluation, f" of {name}")
        for name, evaluation in by_dataset.items()
        if evaluation.n_undefined
    ]
    table = plain_table(header, lines, n_left=2, is_wrapped=True)
    return "\n".join([table, "", *shuffle_and_worst_case(), *notes])


def _without_relevant(evaluation: "Evaluation", of: str = "") -> str:
    """Say how many queries, ``of`` a dataset, have no relevant item, and whether they count."""
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    return _lacking(evaluation.n_undefined, n_queries, leaves_out=_leaves_out(evaluation), of=of)


def _lacking(n_undefined: int, n_queries: int, *, leaves_out: bool | None, of: str = "") -> str:
    has, are, count = ("has", "is", "counts") if n_undefined == 1 else ("have", "are", "count")
    fates = {True: f" and {are} left out", False: f" and {count}, as --undefined says", None: ""}
    return f"{n_undefined:,} of {counted(n_queries, 'query', 'queries')}{of} {has} no relevant item{fates[leaves_out]}."


def _scored_queries(evaluation: "Evaluation") -> str:
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    return _scored_of(n_queries, evaluation.n_undefined * bool(_leaves_out(evaluation)))


def _scored_of(n_queries: int, n_left_out: int) -> str:
    queries = counted(n_queries, "query", "queries")
    return f"{n_queries - n_left_out:,} of {queries}" if n_left_out else queries


def _leaves_out(evaluation: "Evaluation") -> bool | None:
    """Return whether queries without relevant items are left out of the means; None if only ``:skip`` metrics show."""
    whole = [scores for name, scores in evaluation.scores.items() if not name.endswith(":skip")]
    return any(np.isnan(scores.mean).any() for scores in whole) if whole else None


def _evaluation(outcome: "Outcome") -> "Evaluation":
    if outcome.evaluation is None:
        raise ValueError(f"{outcome.job} has no scores")
    return outcome.evaluation

"""Runs with their progress, and what is printed of scores."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hashbench.cli.progress import ProgressBar
from hashbench.errors import HashbenchError, counted
from hashbench.reports.formatting import NAME_WIDTH, Records, Table, score_text, wrapped

if TYPE_CHECKING:
    from hashbench.pipeline.cluster import Cluster
    from hashbench.pipeline.grid import Job
    from hashbench.pipeline.one_job import Outcome
    from hashbench.pipeline.steps import Demands
    from hashbench.scoring.candidates import CandidateCount
    from hashbench.scoring.code_statistics import Drift
    from hashbench.scoring.evaluation import Evaluation
    from hashbench.scoring.thresholds import PairDifference

_SHOWN_BITS = 3  # that differ most
_MEAN, _RANGE = "mean {mean:score} | tie_sd {tie_sd:.5f}", "low {low:score} | high {high:score}"  # columns
_NOWHERE: Mapping[str, object] = {}
_ENDS = "interval_low", "interval_high"
_INTERVAL = "from {interval_low:score} | to {interval_high:score}"
_ABOUT_INTERVAL = "from, to: the 95 % interval of the mean for other queries like these, if they are independent."


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


def evaluation_records(evaluation: "Evaluation", ordered: str = "database", *, with_interval: bool = False) -> Records:
    """Return scores to print; ``ordered`` is what ties are ordered by: the database, or the documents of a run."""
    table, notes = _scores(evaluation, ordered, with_interval)
    return Records([table, "\n".join(notes)], _by_name(evaluation, with_interval), table.rows, decimals=6)


def _scores(
    evaluation: "Evaluation", ordered: str = "database", with_interval: bool = False
) -> tuple[Table, list[str]]:
    """Return a table of scores, and notes on it."""
    n_orders = next(map(len, evaluation.random_orders.values()), 0)
    shuffle, worst_case = shuffle_and_worst_case(ordered)
    notes = [f"{_scored_queries(evaluation)}; mean over all orders of tied items."]
    notes += [*([_ABOUT_INTERVAL] if with_interval else []), shuffle]
    if n_orders:
        notes.append(f"tie_sd_measured: the same, measured in {n_orders:,} random orders.")
    notes += [worst_case, *_without_relevant(evaluation)]
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    for name, n_empty in evaluation.n_empty.items():
        if n_empty:
            fate = "are left out" if name.endswith(":skip") else f"count 0; {name}:skip leaves them out"
            notes.append(f"{name}: {n_empty:,} of {n_queries:,} queries have no item within the radius and {fate}.")
    measured = " | tie_sd_measured {tie_sd_measured:.5f}" if n_orders else ""
    columns = ["metric", f"{_MEAN}{measured}", _RANGE, *([_INTERVAL] if with_interval else [])]
    return Table(" | ".join(columns), _long_rows(evaluation, with_interval)), notes


def several_records(evaluations: Sequence[tuple[int, int, "Evaluation"]]) -> Records:
    """Return the scores of codes to print, each with its length and seed."""
    names = enumerate(evaluations[0][2].summary)
    columns = (f" | {name} {{mean_{number}:score}} | tie_sd {{tie_sd_{number}:.5f}}" for number, name in names)
    table = Table(
        "bits | seed" + "".join(columns),
        [{"bits": n_bits, "seed": seed} | _wide_row(of) for n_bits, seed, of in evaluations],
    )
    content = [{"n_bits": n_bits, "seed": seed, "scores": _by_name(of)} for n_bits, seed, of in evaluations]
    rows = [row for n_bits, seed, of in evaluations for row in _long_rows(of, place={"n_bits": n_bits, "seed": seed})]
    return Records([table, shuffle_and_worst_case()[0]], content, rows, decimals=6)


def candidate_records(counts: Sequence["CandidateCount"], evaluation: "Evaluation", metric: str) -> Records:
    """Return how many candidates reach each wanted recall, to print."""
    columns = (
        f"wanted {metric} {{wanted}} | candidates {{n_candidates:,}} | from {{n_candidates_low:,}} | "
        "to {n_candidates_high:,} | fewest {fewest:,} | most {most:,} | recall {mean:score} | tie_sd {tie_sd:.5f} | "
        f"{_RANGE}"
    )
    content = [{**count._asdict(), "recall": count.recall.by_name} for count in counts]
    rows = [{**count._asdict(), "wanted": f"{count.wanted:.12g}", **count.recall.by_name} for count in counts]
    notes = [
        f"{_scored_queries(evaluation)}; candidates: the smallest number whose re-ranking reaches the wanted recall, "
        "as the mean over all orders of tied items.",
        "from, to: the 95 % interval of this number for other queries like these.",
        "fewest, most: the smallest number if each query's ties are broken in the best order, and in the worst.",
        "recall: after re-ranking these candidates, the mean over all orders; low, high: the worst and the best case.",
        "tie_sd: the shuffle deviation, how far the recall in one random order of the database typically lies from "
        "this mean (estimate).",
        "Relevant items are taken to be the nearest by the distance that re-ranks, as true neighbours are.",
        *_without_relevant(evaluation),
    ]
    fields = [*counts[0]._fields[:-1], *counts[0].recall.by_name]
    return Records([Table(columns, rows), "\n".join(notes)], content, rows, fields, decimals=6)


def pair_records(
    differences: Sequence["PairDifference"], names: tuple[str, str], units: str, unshown: Iterable[str]
) -> Records:
    """Return how far two codes differ over labelled pairs, to print; ``unshown`` says which rates no radius has."""
    first, second = names if names[0] != names[1] else ("these", "other")
    columns = (
        f"statistic | {first} {{first:score}} | {second} {{second:score}} | difference {{value:+.4f}} | "
        "from {low:+.4f} | to {high:+.4f} | shown"
    )
    rows = [one._asdict() | {"shown": "yes" if one.is_shown else "no"} for one in differences]
    notes = [
        f"from, to: the 95 % interval of the difference, for others like these {units}, whose pairs depend on each "
        "other.",
        "shown: whether this interval excludes 0.",
        "recall at false positive rate: between those of two radii, at the rate of these pairs and not at its bound.",
        *unshown,
    ]
    codes = dict(zip(("first_codes", "second_codes"), names, strict=True))
    content = [codes | one._asdict() | {"is_shown": one.is_shown} for one in differences]
    return Records([Table(columns, rows), "\n".join(notes)], content, content, decimals=6)


def drift_records(
    drifts: Mapping[str, "Drift"],
    scored: Sequence[tuple[tuple[str, ...], "Evaluation"]],
    answers: Mapping[str, Mapping[str, Any]],
) -> Records:
    """Return how two codes differ, by role, and the scores of queries of each in a database of each, to print.

    ``answers`` are those of `hashbench.scoring.comparison.each_difference`.
    """
    numbers = {role: _drift_numbers(drift) for role, drift in drifts.items()}
    columns = (
        "codes | items {n_items:,} | equal {share_equal:score} | bits per item {mean_bits:score} | "
        "most {most_bits} of {n_bits} | bits that differ most (share of items) {worst}"
    )
    rows = [{"codes": role, "worst": _worst_bits(drift)} | numbers[role] for role, drift in drifts.items()]
    about_bits = (
        "equal: share of the items whose two codes are equal.\n"
        "bits per item: bits that differ, on average; most: in one item. Bits are counted from 0."
    )
    bits = Records([Table(columns, rows), about_bits], numbers)
    if not scored:
        return replace(bits, content=numbers | {"scores": [], "differences": answers})
    about = "these: the first codes; other: the other ones. Items are paired by row; ids are compared if there are any."
    two = two_records(scored, ("queries", "database"), answers, about)
    return Records([*bits.parts, *two.parts], numbers | dict(cast("Mapping[str, Any]", two.content)))


def two_records(
    scored: Sequence[tuple[tuple[str, ...], "Evaluation"]],
    titles: Sequence[str],
    answers: Mapping[str, Mapping[str, Any]],
    about: str = "",
    ordered: str = "database",
) -> Records:
    """Return the scores of two of the same, under names with some titles, and which is better in each metric."""
    places = [dict(zip(titles, names, strict=True)) for names, _ in scored]
    rows = [row for place, (_, of) in zip(places, scored, strict=True) for row in _long_rows(of, place=place)]
    evaluation = scored[0][1]
    notes = [f"{_scored_queries(evaluation)}; mean over all orders of tied items.", *shuffle_and_worst_case(ordered)]
    notes += [*([about] if about else []), *_without_relevant(evaluation)]
    if n_tested := sum(answer["p_holm"] is not None for answer in answers.values()):
        notes.append(f"p is corrected for the {n_tested} metrics by Holm's method; the intervals are not corrected.")
    table = Table(f"{' | '.join(titles)} | metric | {_MEAN} | {_RANGE}", rows, n_left=len(titles) + 1)
    sentences = "\n".join(wrapped(str(answer["sentence"])) for answer in answers.values())
    each = [place | {"scores": _by_name(of)} for place, (_, of) in zip(places, scored, strict=True)]
    return Records([table, "\n".join(notes), sentences], {"scores": each, "differences": answers})


def _drift_numbers(found: "Drift") -> dict[str, Any]:
    numbers = {name: getattr(found, name) for name in ("share_equal", "mean_bits", "most_bits")}
    sizes = {"n_items": len(found.bits_per_item), "n_bits": len(found.items_per_bit)}
    return sizes | numbers | {"items_per_bit": found.items_per_bit}


def _worst_bits(found: "Drift") -> str:
    order = np.argsort(-found.items_per_bit, kind="stable")[:_SHOWN_BITS]
    shares = found.items_per_bit / len(found.bits_per_item)
    return ", ".join(f"{bit} ({score_text(shares[bit])})" for bit in order.tolist() if shares[bit]) or "none"


def _by_name(evaluation: "Evaluation", with_interval: bool = False) -> dict[str, dict[str, float | None]]:
    ends = evaluation.intervals if with_interval else {}
    return {
        name: values.by_name | dict(zip(_ENDS, ends.get(name, ()), strict=False))
        for name, values in evaluation.summary.items()
    }


def _long_rows(
    evaluation: "Evaluation", with_interval: bool = False, place: Mapping[str, object] = _NOWHERE
) -> list[dict[str, Any]]:
    """Return a row per metric."""
    return [{**place, "metric": name, **values} for name, values in _by_name(evaluation, with_interval).items()]


def _wide_row(evaluation: "Evaluation", with_interval: bool = False) -> dict[str, Any]:
    """Return the values of all metrics in one row, such as ``mean_0`` of the first."""
    metrics = enumerate(_by_name(evaluation, with_interval).values())
    return {f"{name}_{number}": value for number, values in metrics for name, value in values.items()}


def shuffle_and_worst_case(ordered: str = "database") -> tuple[str, str]:
    """Return the notes on the columns tie_sd, low and high of a table."""
    return (
        f"tie_sd: the shuffle deviation, how far the score in one random order of the {ordered} typically lies from "
        "this mean (estimate).",
        "low, high: every query's ties broken in the worst or best way; usually no one order does all of that.",
    )


def outcome_records(outcomes: Sequence["Outcome"], *, is_grid: bool = True, with_interval: bool = False) -> Records:
    """Return the scores of finished jobs to print; with ``is_grid`` false, the table of one job does not name it."""
    of_one = _scores(_evaluation(outcomes[0]), with_interval=with_interval)
    table, notes = _grid(outcomes, with_interval) if is_grid else of_one
    if any(outcome.held_out for outcome in outcomes):
        score = "" if is_grid else f" {_held_out(outcomes[0])},"
        notes.append(f"held out:{score} the training items that chose the epoch, as queries to the others.")
    content = [
        {
            "dataset": outcome.rows[0].dataset,
            "method": outcome.job.method,
            "n_bits": outcome.job.n_bits,
            "seed": outcome.job.seed,
            "params": outcome.job.params,
            "scores": _by_name(_evaluation(outcome), with_interval),
            **({"held_out": dict([outcome.held_out])} if outcome.held_out else {}),
        }
        for outcome in outcomes
    ]
    rows = []
    for outcome in outcomes:
        scores = _by_name(_evaluation(outcome), with_interval)
        for row in outcome.rows:
            ends = {key: scores[row.metric][key] for key in _ENDS if with_interval}
            rows.append(row._asdict() | {key: value and round(value, 6) for key, value in ends.items()})
    return Records([table, "\n".join(notes)], content, rows)


def _held_out(outcome: "Outcome") -> str | None:
    return f"{outcome.held_out[0]} {score_text(outcome.held_out[1])}" if outcome.held_out else None


def _grid(outcomes: Sequence["Outcome"], with_interval: bool) -> tuple[Table, list[str]]:
    """Return a table with a line per job, and notes on it."""
    first, *others = _evaluation(outcomes[0]).scores
    columns = f"dataset | method | bits | seed | {first} {{mean_0:score}} | tie_sd {{tie_sd_0:.5f}} | "
    columns += f"{first} low-high {{low_0:score}}-{{high_0:score}}"
    columns += " | from {interval_low_0:score} | to {interval_high_0:score}" * with_interval
    columns += "".join(f" | {name} {{mean_{number}:score}}" for number, name in enumerate(others, start=1))
    columns += " | held out" * any(outcome.held_out for outcome in outcomes)
    rows = [
        {
            "dataset": outcome.rows[0].dataset,
            "method": " ".join([outcome.job.method, *(f"{key}={value}" for key, value in outcome.job.params.items())]),
            "bits": outcome.job.n_bits,
            "seed": outcome.job.seed,
            "held out": _held_out(outcome),
            **_wide_row(_evaluation(outcome), with_interval),
        }
        for outcome in outcomes
    ]
    by_dataset = {outcome.rows[0].dataset: _evaluation(outcome) for outcome in outcomes}
    undefined = (note for name, of in by_dataset.items() for note in _without_relevant(of, f" of {name}"))
    return Table(columns, rows, n_left=2, width=NAME_WIDTH), [
        *([_ABOUT_INTERVAL] if with_interval else []),
        *shuffle_and_worst_case(),
        *undefined,
    ]


def _without_relevant(evaluation: "Evaluation", of: str = "") -> list[str]:
    """Return a note on queries, ``of`` a dataset, that have no relevant item, if there are any."""
    n_undefined, n_queries = evaluation.n_undefined, len(next(iter(evaluation.scores.values())).mean)
    has, are, count = ("has", "is", "counts") if n_undefined == 1 else ("have", "are", "count")
    fates = {True: f" and {are} left out", False: f" and {count}, as --undefined says", None: ""}
    queries, fate = counted(n_queries, "query", "queries"), fates[_leaves_out(evaluation)]
    return [f"{n_undefined:,} of {queries}{of} {has} no relevant item{fate}."] * bool(n_undefined)


def _scored_queries(evaluation: "Evaluation") -> str:
    n_queries = len(next(iter(evaluation.scores.values())).mean)
    n_scored = n_queries - evaluation.n_undefined * bool(_leaves_out(evaluation))
    queries = counted(n_queries, "query", "queries")
    return queries if n_scored == n_queries else f"{n_scored:,} of {queries}"


def _leaves_out(evaluation: "Evaluation") -> bool | None:
    """Return whether queries without relevant items are left out of the means; None if only ``:skip`` metrics show."""
    whole = [scores for name, scores in evaluation.scores.items() if not name.endswith(":skip")]
    return any(np.isnan(scores.mean).any() for scores in whole) if whole else None


def _evaluation(outcome: "Outcome") -> "Evaluation":
    if outcome.evaluation is None:
        raise ValueError(f"{outcome.job} has no scores")
    return outcome.evaluation

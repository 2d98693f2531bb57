"""The scripts that may print a given number: samples of queries rule out the others before all queries are ranked."""

import math
from collections.abc import Mapping
from itertools import count, pairwise, takewhile

import numpy as np

from hashbench._typing import Progress, silent
from hashbench.reports.explain.emulation import Emulation, Estimate, Explanation, Job, is_exact

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

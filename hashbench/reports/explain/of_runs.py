"""What tools for runs make of one with ties, and why: one convention switched at a time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from hashbench._typing import AnyArray, IntArray
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain import orders
from hashbench.reports.explain.conventions import Evaluator
from hashbench.reports.explain.emulation import Cause, Explanation, Range
from hashbench.reports.explain.evaluators import RANX, TREC
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.runs import evaluate_run

Scores = Mapping[str, float]
Run = Mapping[str, Mapping[str, Any]]
_GIVEN = ("AP", "AP@k", "NDCG:trec", "NDCG@k:trec", "P@k", "R@k", "RR", "RPrec", "Hit@k")
_BURGES = ("NDCG", "NDCG@k")  # ranx's ndcg_burges, beside those
_MISSING = "queries that the run lacks count 0"
_SINGLE = "scores in 32 bits"


def _by_names(scores: Scores) -> list[str]:
    """Order documents as trec_eval does: of one score in 32 bits the last name first."""
    with np.errstate(over="ignore"):
        single = np.array(list(scores.values()), dtype=np.float64).astype(np.float32)
    keyed = sorted(zip(single.tolist(), (name.encode() for name in scores), scores, strict=True), reverse=True)
    return [name for _, _, name in keyed]


def _by_numba(scores: Scores, order: Callable[[AnyArray, int], IntArray] = orders.numba_here) -> list[str]:
    keys = -np.array(list(scores.values()), dtype=np.float64)
    names = list(scores)
    return [names[row] for row in order(keys, len(keys))]


def _by_numba_reversed(scores: Scores) -> list[str]:
    return _by_numba(scores, orders.numba_reversed)


def _by_numba_twice(scores: Scores) -> list[str]:
    return _by_numba({name: scores[name] for name in _by_numba(scores)})


@dataclass(frozen=True)
class RunTool:
    """A tool: what the tables say of it, its order of documents, and where it departs from ours."""

    described: Evaluator
    order: Callable[[Scores], list[str]]
    gives: tuple[str, ...] = _GIVEN
    is_single: bool = False  # it reads scores in 32 bits
    counts_missing: bool = False  # queries that the run lacks count 0
    takes: bool | None = None  # runs whose queries are (True), or are not (False), those of the qrels; None: any


def _described(name: str, used_by: str, source: str) -> Evaluator:
    return Evaluator(name, used_by, source, "AP", orders.stable, divisor="relevant")


_OF_RANX = _GIVEN + _BURGES
TOOLS = (
    RunTool(_described("trec_eval", "trec_eval", TREC), _by_names, is_single=True),
    RunTool(_described("pytrec_eval", "pytrec_eval, the mean over what it gives", TREC), _by_names, is_single=True),
    RunTool(_described("ir_measures", "ir_measures", TREC), _by_names, is_single=True, counts_missing=True),
    RunTool(
        _described("ranx-here", "ranx of a dict, by this machine's numba", RANX),
        _by_numba_reversed,
        _OF_RANX,
        takes=True,
    ),
    RunTool(
        _described("ranx-run-here", "ranx of a Run, by this machine's numba", RANX), _by_numba, _OF_RANX, takes=True
    ),
    RunTool(
        _described("ranx-comparable-here", "ranx of a Run, make_comparable=True", RANX),
        _by_numba_twice,
        _OF_RANX,
        counts_missing=True,
    ),
)


def named(name: str) -> RunTool:
    """Find a tool by its name."""
    known = {one.described.name: one for one in TOOLS}
    if name.casefold() not in known:
        raise unknown_name("script of runs", name, known)
    return known[name.casefold()]


def explain_run(run: Run, qrels: Run, metrics: Sequence[str], tools: Sequence[RunTool] = TOOLS) -> list[Explanation]:
    """Score a run by the tools that give one of the metrics, and say what makes each number differ from ours.

    Parameters
    ----------
    run, qrels : dict of str to dict
        Scores and grades of documents, as of `hashbench.evaluate_run`; documents in the order of the file.
    metrics : sequence of str
        AP, NDCG, NDCG:trec, P@k, R@k, RR, RPrec or Hit@k, with whatever cut.
    tools : sequence of RunTool
        The tools.

    Returns
    -------
    list of Explanation
        Metric by metric, tools in their order.

    Raises
    ------
    HashbenchError
        If none of the tools gives one of the metrics, or run and qrels do not fit together.
    """
    is_same = run.keys() == qrels.keys()
    able = [one for one in tools if one.takes in (None, is_same)]
    if not able:
        raise HashbenchError(
            "ranx refuses a run whose queries are not those of the qrels, unless it makes them comparable: "
            "choose --script ranx-comparable-here."
        )
    found = []
    for name in dict.fromkeys(get_metric(name).name for name in metrics):
        givers = [one for one in able if _pattern(name) in one.gives]
        if not givers:
            raise HashbenchError(
                f"none of {', '.join(one.described.name for one in able)} gives {name}; ask for "
                f"{', '.join(dict.fromkeys(pattern for one in able for pattern in one.gives))}."
            )
        exact = evaluate_run(run, qrels, [name])
        found += [_explained(one, run, qrels, name, exact) for one in givers]
    return found


def _pattern(name: str) -> str:
    """Give the pattern of a metric: NDCG with its gains, AP by whatever divisor."""
    pattern, (_, colon, option) = get_metric(name).family.pattern, name.partition(":")
    return f"{pattern}{colon}{option}" if pattern.startswith("NDCG") else pattern


def _explained(tool: RunTool, run: Run, qrels: Run, name: str, exact: Evaluation) -> Explanation:
    """Go from our number to the tool's, one convention at a time."""
    divided = f"{name.partition(':')[0]}:relevant" if name.startswith("AP@") else name
    single = _rounded(run) if tool.is_single else run
    sorted_run = {query: _without_ties(tool.order(scores)) for query, scores in run.items()}
    ours = Range(*exact.summary[name][:3])
    its = _range(single, qrels, divided, is_complete=tool.counts_missing)
    steps = (
        ("", ours),
        (by.EMPTY[by.count_zero], _range(run, qrels, name)),
        (f"divisor: {by.OF_DIVISOR['relevant']}", _range(run, qrels, divided)),
        (_MISSING, _range(run, qrels, divided, is_complete=tool.counts_missing)),
        (_SINGLE, its),
        ("tie order", _range(sorted_run, qrels, divided, is_complete=tool.counts_missing)),
    )
    causes = [
        Cause(words, after.mean - before.mean)
        for (_, before), (words, after) in pairwise(steps)
        if not (after.mean == before.mean or (np.isnan(after.mean - before.mean) and np.isnan(before.mean)))
    ]
    counts = len(exact.queries or ()), exact.n_undefined
    return Explanation(tool.described, name, steps[-1][1].mean, ours, its, tuple(causes), *counts)


def _range(run: Run, qrels: Run, name: str, *, is_complete: bool = False) -> Range:
    """Average a metric as these tools do: queries without relevant documents count 0."""
    scores = evaluate_run(run, qrels, [name], complete=is_complete).scores[name]
    return Range(*(float(np.nan_to_num(part).mean()) for part in scores[:3]))


def _rounded(run: Run) -> Run:
    with np.errstate(over="ignore"):
        return {
            query: {name: float(np.float32(score)) for name, score in scores.items()} for query, scores in run.items()
        }


def _without_ties(names: Sequence[str]) -> dict[str, float]:
    return {name: -float(rank) for rank, name in enumerate(names)}

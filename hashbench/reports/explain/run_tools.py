"""Scores of a run with ties by the tools for runs, and where their differences come from."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from hashbench._validation import refuse_fractions
from hashbench.errors import HashbenchError, unknown_name
from hashbench.reports.explain import orders, scripts
from hashbench.reports.explain.emulation import (
    TIE_ORDER,
    Explanation,
    Switches,
    TieRange,
    causes_of,
    subsets,
)
from hashbench.reports.explain.quantities import DIVISOR_WORDS, MEANS
from hashbench.reports.explain.scripts import Evaluator, metric_pattern
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.runs import evaluate_run

Run = Mapping[str, Mapping[str, Any]]
_METRICS = ("AP", "AP@k", "NDCG:trec", "NDCG@k:trec", "P@k", "R@k", "RR", "RPrec", "Hit@k")
_OF_RANX = (*_METRICS, "RR@k", "NDCG:exponential", "NDCG@k:exponential")  # the last two are its ndcg_burges
_MISSING = "queries that the run lacks count 0"
_SINGLE = "scores in 32 bits"


class RunTool(NamedTuple):
    """A tool: trec_eval or one that calls it, ir_measures' own part, or ranx, which sorts by numba."""

    evaluator: Evaluator  # as tables show it
    gives: tuple[str, ...] = _METRICS  # patterns of the metrics that it computes, by hashbench's names
    is_trec_eval: bool = False  # which reads scores in 32 bits
    sorts_twice: bool = False
    counts_missing: bool = False  # queries that the run lacks count 0; ranx otherwise refuses such runs

    @property
    def is_ranx(self) -> bool:
        """Whether it is ranx."""
        return self.evaluator.is_of_this_machine

    def order(self, scores: Mapping[str, float]) -> list[str]:
        """Return documents in its order: by name, descending or ascending, among equal scores, or as numba does."""
        if self.is_trec_eval:
            return sorted(scores, key=lambda name: (scores[name], name.encode()), reverse=True)
        if not self.is_ranx:
            return sorted(scores, key=lambda name: (-scores[name], name))
        names = list(scores)
        for _ in range(1 + self.sorts_twice):
            keys = -np.array([scores[name] for name in names], dtype=np.float64)
            names = [names[row] for row in getattr(orders, self.evaluator.order)(keys, len(keys))]
        return names


_TREC, _RANX, _RANX_RUN = map(scripts.named, ("trec_eval", "ranx-here", "ranx-run-here"))
_PYTREC = replace(_TREC, name="pytrec_eval", used_by="pytrec_eval, the mean over what it gives")
_IR_MEASURES = replace(_TREC, name="ir_measures", used_by="ir_measures")
_COMPARABLE = replace(_RANX_RUN, name="ranx-comparable-here", used_by="ranx of a Run, make_comparable=True")
TOOLS = {
    tool.evaluator.name: tool
    for tool in (
        RunTool(replace(_TREC, used_by="trec_eval"), is_trec_eval=True),
        RunTool(_PYTREC, is_trec_eval=True),
        RunTool(_IR_MEASURES, (*_METRICS, "RR@k"), is_trec_eval=True, counts_missing=True),
        RunTool(_RANX, _OF_RANX),
        RunTool(_RANX_RUN, _OF_RANX),
        RunTool(_COMPARABLE, _OF_RANX, sorts_twice=True, counts_missing=True),
    )
}
_OWN_RR = RunTool(_IR_MEASURES, ("RR@k",), counts_missing=True)  # by its provider msmarco, as trec_eval has no RR@k


def explain_run(
    run: Run, qrels: Run, metrics: Sequence[str], names: Sequence[str] = ()
) -> tuple[list[Explanation], dict[str, str]]:
    """Score a run by the tools of these names, or all, and explain each difference from the exact value.

    ``run`` and ``qrels`` are as for `hashbench.evaluate_run`, documents in the order of the file. Returns the
    explanations metric by metric, tools in their order, and a sentence on each metric that no tool computes. Raises
    HashbenchError if a tool is not known, no tool computes any of the metrics, or run and qrels do not fit together.
    """
    for name in names:
        if name.casefold() not in TOOLS:
            raise unknown_name("script", name, TOOLS)
    grades = [grade for of_query in qrels.values() for grade in of_query.values() if isinstance(grade, Real)]
    refuse_fractions(np.array(grades), "hashbench explain")  # which the tools cut, or refuse
    has_all_queries = run.keys() == qrels.keys()
    chosen = [TOOLS[name] for name in dict.fromkeys(map(str.casefold, names or TOOLS))]
    tools = [tool for tool in chosen if has_all_queries or tool.counts_missing or not tool.is_ranx]
    if not tools:
        raise HashbenchError(
            "ranx refuses a run whose queries are not those of the qrels, unless it makes them comparable: "
            "choose the script ranx-comparable-here."
        )
    explanations: list[Explanation] = []
    missing: dict[str, str] = {}
    for metric in dict.fromkeys(get_metric(name, of_run=True).name for name in metrics):
        pattern = metric_pattern(metric, of_run=True)
        of_metric = [tool for tool in tools if pattern in tool.gives]
        explanations += [_explain(tool, run, qrels, metric) for tool in of_metric]
        if not of_metric:
            missing[metric] = (
                f"none of {', '.join(tool.evaluator.name for tool in tools)} gives {metric}; ask for "
                f"{', '.join(dict.fromkeys(pattern for tool in tools for pattern in tool.gives))}."
            )
    if not explanations:
        raise HashbenchError(next(iter(missing.values())))
    return explanations, missing


def _explain(tool: RunTool, run: Run, qrels: Run, name: str) -> Explanation:
    if tool.evaluator is _IR_MEASURES and name.startswith("RR@"):
        tool = _OWN_RR
    divided = f"{name.partition(':')[0]}:relevant" if name.startswith("AP@") else name
    single = {query: _in_32_bits(scores) for query, scores in run.items()} if tool.is_trec_eval else run
    zero, divisor = MEANS["count_zero"].words, f"divisor: {DIVISOR_WORDS['relevant']}"
    is_used = {
        zero: True,
        divisor: divided != name,
        _MISSING: tool.counts_missing and not run.keys() >= qrels.keys(),
        _SINGLE: single != run,
        TIE_ORDER: True,
    }

    @cache
    def evaluated(on: Switches) -> Evaluation:
        scores = single if _SINGLE in on else run
        if TIE_ORDER in on:
            ranked = {query: tool.order(of_query) for query, of_query in scores.items()}
            scores = {query: {name: -float(rank) for rank, name in enumerate(ranked[query])} for query in scores}
        return evaluate_run(scores, qrels, [divided if divisor in on else name], complete=_MISSING in on)

    def averaged(on: Switches) -> TieRange:
        parts = next(iter(evaluated(on - {zero}).scores.values()))[:3]
        is_counted = np.ones(len(parts[0]), bool) if zero in on else ~np.isnan(parts[0])
        if not is_counted.any():
            return TieRange(np.nan, np.nan, np.nan)
        return TieRange(*(float(np.nan_to_num(part)[is_counted].mean()) for part in parts))

    used = [words for words, differs in is_used.items() if differs]
    values = {on: averaged(on).mean for on in subsets(used)}
    exact = evaluated(frozenset())
    return Explanation(
        tool.evaluator,
        name,
        value=values[frozenset(used)],
        exact=averaged(frozenset()),
        script_range=averaged(frozenset(used) - {TIE_ORDER}),
        causes=causes_of(values, {words: words for words in used}, zero),
        n_queries=len(exact.queries or ()),
        n_undefined=exact.n_undefined,
    )


def _in_32_bits(scores: Mapping[str, float]) -> dict[str, float]:
    with np.errstate(over="ignore"):
        return {name: float(np.float32(score)) for name, score in scores.items()}

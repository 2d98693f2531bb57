"""Codes or a run through the scripts: what `hashbench explain` prints, and `hashbench.explain` returns."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hashbench._typing import Progress, silent
from hashbench._validation import check_choice
from hashbench.errors import needing
from hashbench.reports.explain.answers import (
    answer_records,
    answers,
    as_json,
    explanation_records,
    parse_printed,
    search,
    searched_metrics,
)
from hashbench.reports.explain.emulation import Emulation, Explanation, describe_missing
from hashbench.reports.explain.orders import database_orders, describe_order, rearranged
from hashbench.reports.explain.ranking import n_left
from hashbench.reports.explain.run_tools import Run, explain_run
from hashbench.reports.explain.scripts import EVALUATORS, named, twins_of
from hashbench.scoring.ignored import FINDS_ITSELF, notes_on_ignored
from hashbench.scoring.metrics import Metric, get_metric, readings
from hashbench.scoring.problem import Problem
from hashbench.scoring.runs import order_notes

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class Explained:
    """Values of scripts beside the exact ones, with the causes of each difference; notebooks show them as tables.

    Parameters
    ----------
    by_order : dict of str to sequence of Explanation
        Explanations by the order of the database; of a run, whose documents have one order, by ``""``.
    notes : sequence of str
        Sentences on what was left out.
    order_in_words : str
        The order of the database, for the text; empty for a run.
    asked : str, optional
        The number that scripts were searched for.

    Examples
    --------
    >>> from hashbench import Problem, explain
    >>> problem = Problem.of_codes([[0, 0]], [[0, 1], [1, 0], [1, 1]], ([5], [7, 5, 5]))
    >>> explained = explain(problem, "AP", scripts="sklearn-ap")
    >>> explained.scripts[["script", "metric", "value", "exact_mean"]].round(4).values.tolist()
    [['sklearn-ap', 'AP', 0.5833, 0.7083]]
    >>> explained.causes[["cause", "share"]].round(4).values.tolist()
    [['precision at the end of each tie', -0.125]]
    """

    by_order: Mapping[str, Sequence[Explanation]]
    notes: Sequence[str] = ()
    order_in_words: str = ""
    asked: str | None = None

    def _each(self) -> Iterator[tuple[str, Explanation]]:
        return ((order, one) for order, of_order in self.by_order.items() for one in of_order)

    @property
    def scripts(self) -> "pd.DataFrame":
        """One row per script, metric and order of the database: the command's JSON, without causes.

        ``verdict`` is there if scripts were searched for a number. Those that the search ruled out early have an
        estimate and no value.
        """
        with needing("Explained.scripts"):
            import pandas as pd

        rows = [
            {"metric": one.metric, "script": one.evaluator.name, "database_order": order, "value": one.value}
            | as_json(one)
            for order, one in self._each()
        ]
        frame = pd.json_normalize(rows, sep="_").drop(columns="causes")
        if self.asked is not None:
            frame["verdict"] = [answer.verdict for answer in answers(self.by_order, self.asked)]
        return frame

    @property
    def causes(self) -> "pd.DataFrame":
        """One row per cause of a difference: metric, script, database_order, cause, share; shares add up to it."""
        with needing("Explained.causes"):
            import pandas as pd

        rows = [(one.metric, one.evaluator.name, order, *cause) for order, one in self._each() for cause in one.causes]
        return pd.DataFrame(rows, columns=["metric", "script", "database_order", "cause", "share"])

    def to_text(self, form: str = "table") -> str:
        """Lay out what the command prints.

        Parameters
        ----------
        form : {"table", "markdown", "json"}, default="table"
            Its format.

        Returns
        -------
        str
            Without a final newline.
        """
        check_choice(form, ("table", "markdown", "json"), "form")
        if self.asked is not None:
            return answer_records(answers(self.by_order, self.asked), self.asked).to_text(form)
        return explanation_records(next(iter(self.by_order.values())), self.order_in_words).to_text(form)

    def _repr_markdown_(self) -> str:
        return "\n\n".join([self.to_text("markdown"), *self.notes])

    def __repr__(self) -> str:
        each = [one for _, one in self._each()]
        metrics = dict.fromkeys(one.metric for one in each)
        return f"<Explained {', '.join(metrics)} of {len({one.evaluator.name for one in each})} scripts>"


def explain_problem(
    problem: Problem,
    metrics: Sequence[str] = (),
    scripts: Sequence[str] = (),
    database_order: str | None = None,
    value: str | None = None,
    on_progress: Progress = silent,
) -> Explained:
    """Score binary codes by scripts, and search for the one that prints a value; a database in slices is read whole.

    Without metrics, a value is searched in those that papers report, and in all orders of the database. Scripts that
    cannot give it are ruled out before all queries are ranked, and have an estimate.
    """
    if value is not None:
        parse_printed(value)
    query, database, n_bits = problem.codes.query, np.asarray(problem.codes.database[:]), problem.codes.n_bits
    affinity = problem.codes.relevance
    if affinity.is_read_in_slices:
        affinity = affinity.part(slice(None), slice(0, affinity.n_database))
    chosen = list(dict.fromkeys(map(named, scripts))) or [*EVALUATORS, *twins_of(EVALUATORS)]
    left = n_left(affinity)
    n_items, is_search = int(left.max()), value is not None and not metrics
    asked = [get_metric(name) for name in metrics]
    named_metrics = [metric.name for metric in asked] if value is None else _with_other_readings(asked)
    searched = searched_metrics(n_items) if is_search else named_metrics or ("AP", "AP@1000")
    if is_search:  # as if each cut were the only one
        chosen = [replace(script, shares_cut=False) for script in chosen]
    orders = database_orders(affinity) if is_search else ["given"]
    if database_order is not None:
        orders = [database_order]
    ordered = {order: rearranged(database, affinity, order) for order in orders}
    emulations = {
        order: Emulation(query, items, n_bits, relevance, searched, chosen)
        for order, (items, relevance) in ordered.items()
    }
    by_order: Mapping[str, Sequence[Explanation]]
    if value is not None:
        by_order = search(emulations, *parse_printed(value), on_progress)
    else:
        by_order = {order: emulation.explanations(on_progress) for order, emulation in emulations.items()}
    of_order = by_order[orders[0]]
    computed = dict.fromkeys(explanation.metric for explanation in of_order)
    missing = [name for name in dict.fromkeys(metrics) if get_metric(name).name not in computed]
    notes = [*readings(asked), *(f"Left out: {describe_missing(name, chosen, n_items)}" for name in missing)]
    notes += [note for note in problem.about if note == FINDS_ITSELF]
    has_relevant = any(explanation.n_undefined < explanation.n_queries for explanation in of_order)
    notes += notes_on_ignored(affinity, left, has_relevant=has_relevant)
    idle = {script.name for script in chosen} - {explanation.evaluator.name for explanation in of_order}
    notes += [f"{name} gives none of {', '.join(computed)}." for name in sorted(idle if scripts else ())]
    return Explained(by_order, notes, describe_order(orders[0], affinity), value)


def _with_other_readings(metrics: Iterable[Metric]) -> list[str]:
    """Return the names of metrics, and of those that their spellings mean elsewhere."""
    return [name for metric in metrics for name in (metric.name, *metric.elsewhere)]


def explain_lists(
    run: Run, qrels: Run, metrics: Sequence[str] = (), scripts: Sequence[str] = (), value: str | None = None
) -> Explained:
    """Score a run by the tools for runs, as `explain_run` does, and search for the one that prints a value."""
    if value is not None:
        parse_printed(value)
    asked = [get_metric(name, of_run=True) for name in metrics]
    searched = _with_other_readings(asked) if value is not None else [metric.name for metric in asked]
    explanations, missing = explain_run(run, qrels, searched or ("AP", "NDCG:trec"), scripts)
    explained = {explanation.evaluator.name for explanation in explanations}
    notes = [*readings(asked), *order_notes(run, [query for query in qrels if query in run])]
    notes += [f"Left out: {missing[metric.name]}" for metric in asked if metric.name in missing]
    notes += [
        f"Left out: {name} gives none of the metrics, or refuses the queries of this run."
        for name in dict.fromkeys(map(str.casefold, scripts))
        if name not in explained
    ]
    return Explained({"": explanations}, notes, asked=value)

"""Two methods compared by their rows of results: the difference, and whether queries and seeds show it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from hashbench._typing import IntArray
from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import needs_vectors
from hashbench.reports.aggregate import BLOCK, LINE, all_lines, draws, main_lines, mean_over_seeds
from hashbench.reports.formatting import json_text, markdown_table, plain_table, sheet_text, wrapped
from hashbench.reports.selection import Selection
from hashbench.reports.significance import holm
from hashbench.reports.uncertainty import verdict
from hashbench.scoring.comparison import Difference, compare, of_means, other_queries
from hashbench.scoring.evaluation import Evaluation, evaluation_of
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import OWN_FEATURES, as_row
from hashbench.store.score_cache import find

_HEADER = ["bits", "against", "difference", "95 % interval", "p", "shuffle sd", "answer"]
_SEEDS_ONLY = (
    "The data folder lacks the scores of single queries of some rows, so only seeds are compared, on these queries. To "
    "compare over queries too, run or evaluate the methods here."
)
Rows = dict[str, pd.DataFrame]  # of one metric and code length, by method


@dataclass(frozen=True)
class Answer:
    """What is known of two methods at a code length: their difference, or the reason why there is no interval."""

    n_bits: int
    names: tuple[str, str]
    difference: Difference | None
    reason: str = ""

    @property
    def in_a_word(self) -> str:
        """Whether the first method is shown to be better or worse."""
        if self.difference is None:
            return "no interval"
        return verdict(self.difference)

    @property
    def sentence(self) -> str:
        """The sentence to quote."""
        return f"no interval: {self.reason}" if self.difference is None else str(self.difference)


@dataclass(frozen=True)
class Column:
    """The differences of one method from others, in one metric and block, by code length and method."""

    dataset: str
    features: str
    metric: str
    answers: Sequence[Answer]
    notes: Sequence[str] = ()


def compare_results(
    results: pd.DataFrame, names: Sequence[str], metrics: Sequence[str], selection: Selection, by_class: bool
) -> list[Column]:
    """Compare the first of some methods, or labels of lines, with the others, wherever two of them have rows.

    ``results`` are all rows, of which metrics and ``selection`` choose. Scores of single queries come from the data
    folder. Where those of any row are missing, a whole column is compared by the means of seeds, on these queries.
    Several others are corrected together by Holm's method, at each length.
    """
    first, *others = names = list(dict.fromkeys(names))
    if not others:
        raise HashbenchError(f"a comparison needs two methods, and only {first} is named; name two different ones.")
    chosen = _chosen(results, names, metrics, selection)
    columns = []
    for (dataset, features, fingerprint, metric), block in chosen.groupby([*BLOCK, "metric"], sort=False):
        lengths = {
            int(str(n_bits)): {name: part[part["name"] == name] for name in names if (part["name"] == name).any()}
            for n_bits, part in block.groupby("n_bits")
        }
        lengths = {n: rows for n, rows in lengths.items() if first in rows and len(rows) > 1}
        if lengths:
            columns.append(_column((str(dataset), str(features), str(fingerprint)), str(metric), lengths, by_class))
    compared = {answer.names[1] for column in columns for answer in column.answers}
    for name in others:
        if name not in compared:
            raise _nothing_in_common(chosen, first, name)
    answers = [(column, answer) for column in columns for answer in column.answers]
    for n_bits in selection.n_bits:
        if n_bits not in {answer.n_bits for _, answer in answers}:
            raise HashbenchError(
                f"{' and '.join(names)} have no results to compare at {n_bits} bits; leave --bits {n_bits} out, or run "
                "them there."
            )
    if all(answer.difference is None for _, answer in answers):
        column, answer = answers[0]
        raise HashbenchError(
            f"{column.dataset} ({column.features}), {column.metric} at {answer.n_bits} bits: {answer.reason}"
        )
    return columns


def _chosen(results: pd.DataFrame, names: Sequence[str], metrics: Sequence[str], selection: Selection) -> pd.DataFrame:
    """Keep the rows of each name with a column ``name``: those of a method's line that tables show, or of a label."""
    cells = mean_over_seeds(results)
    main = main_lines(cells, cells)[[*BLOCK, "metric", *LINE]].drop_duplicates()
    parts = []
    for name in names:
        rows = results[results["method"] == name].merge(main)
        if rows.empty:
            lines = all_lines(results)
            rows = results.merge(lines.loc[lines["label"] == name, list(LINE)])
        if rows.empty:
            raise unknown_name("method", name, results["method"].unique())
        part = selection.of(rows[rows["metric"].isin(metrics)])
        part = part[part["n_bits"].isin(selection.n_bits)] if selection.n_bits else part
        if part.empty:
            raise replace(selection, methods=[name]).nothing_left(rows.assign(method=name), " or ".join(metrics))
        parts.append(part.assign(name=name))
    chosen = pd.concat(parts, ignore_index=True)
    cell = [*BLOCK, "metric", *LINE, "n_bits"]
    for _, same in chosen.groupby(cell)["name"]:
        first, *others = same.unique()
        if others:
            raise HashbenchError(f"{first} and {others[0]} are the same line of results; name two different ones.")
    return chosen


def _nothing_in_common(chosen: pd.DataFrame, first: str, second: str) -> HashbenchError:
    """Build the error for two names without a cell in common; rows of other data may be the reason."""
    rows = [chosen[chosen["name"] == name] for name in (first, second)]
    both = rows[0].merge(rows[1], on=["dataset", "features", "metric", "n_bits"])
    if both.empty:
        return HashbenchError(
            f"{first} and {second} have no results of one dataset, metric and code length. Run them on the same, or "
            "choose others with --dataset, --metric and --bits."
        )
    pair = both.iloc[0]
    return HashbenchError(
        f"results of {first} and {second} on {pair['dataset']} ({pair['features']}) are of different data: the "
        f"fingerprints are {pair['dataset_fingerprint_x']} and {pair['dataset_fingerprint_y']}. Run or evaluate both "
        "on the same queries, items and labels."
    )


def _column(place: tuple[str, str, str], metric: str, lengths: dict[int, Rows], by_class: bool) -> Column:
    found = {
        n_bits: {name: _evaluations(rows) for name, rows in by_name.items()} for n_bits, by_name in lengths.items()
    }
    is_known = all(side is not None for by_name in found.values() for side in by_name.values())
    classes, lacking = None, ""
    if by_class:
        try:
            classes = _classes(*place, metric, is_known)
        except HashbenchError as error:
            lacking = str(error)

    def difference(n_bits: int, pair: tuple[str, str]) -> Difference:
        if lacking:
            raise HashbenchError(lacking)
        fixed = [name for name in pair if not draws(*lengths[n_bits][name][["method", "params"]].iloc[0])]
        if not is_known:
            return _by_means(lengths[n_bits], pair, metric, fixed)
        sides = [found[n_bits][name] or [] for name in pair]
        return compare(*sides, names=pair, draws_nothing=fixed, clusters=classes)[metric]

    answers = []
    for n_bits, (first, *others) in lengths.items():
        at_length = [_answer(n_bits, (first, other), difference) for other in others]
        known = [answer.difference for answer in at_length if answer.difference]
        if len(known) > 1:
            corrected = iter(holm([one.p for one in known]))
            at_length = [
                replace(answer, difference=replace(answer.difference, p_holm=float(next(corrected))))
                if answer.difference
                else answer
                for answer in at_length
            ]
        answers += at_length
    return Column(*place[:2], metric, answers, [] if is_known else [_SEEDS_ONLY])


def _answer(n_bits: int, pair: tuple[str, str], difference: Callable[[int, tuple[str, str]], Difference]) -> Answer:
    try:
        return Answer(n_bits, pair, difference(n_bits, pair))
    except HashbenchError as error:
        return Answer(n_bits, pair, None, str(error))


def _evaluations(rows: pd.DataFrame) -> list[Evaluation] | None:
    """Return the scores of every seed; None if the data folder lacks any."""
    evaluations = []
    for row in map(as_row, rows.sort_values("seed").to_dict("records")):
        arrays = find(row)
        if arrays is None:
            return None
        evaluations.append(evaluation_of(arrays, [row.metric]))
    return evaluations


def _by_means(rows: Rows, pair: tuple[str, str], metric: str, fixed: Sequence[str]) -> Difference:
    first, second = (rows[name]["value"].to_numpy(dtype=float) for name in pair)
    for name, values in zip(pair, (first, second), strict=True):
        if np.isnan(values).any():
            raise HashbenchError(f"{name} has no {metric}, which is defined for no query.")
    if len({n_undefined for name in pair for n_undefined in rows[name]["n_undefined"]}) > 1:
        raise other_queries(metric, pair)
    tie_sd = sum(float(rows[name]["tie_sd"].mean(skipna=False)) for name in pair)
    return of_means(first, second, metric, pair, int(rows[pair[0]]["n_queries"].iloc[0]), tie_sd, fixed)


def _classes(dataset: str, features: str, fingerprint: str, metric: str, is_known: bool) -> IntArray:
    """Return the class of each query."""
    if features == OWN_FEATURES:
        raise HashbenchError(
            "the classes of saved codes are not kept; from Python, give them as hashbench.compare(..., clusters=...)."
        )
    if not is_known:
        raise HashbenchError(
            "--by class needs the scores of single queries, and the data folder lacks those of some rows. Run or "
            "evaluate them here again."
        )
    data, _ = load_dataset(f"{dataset}:{features}" if features else dataset)
    if data.fingerprint != fingerprint and not needs_vectors([metric]):
        raise HashbenchError(
            f"the prepared {dataset} has fingerprint {data.fingerprint}, and the rows have {fingerprint}, so the "
            "classes of their queries are not known. Run or evaluate the methods here again."
        )
    if data.labels is None or data.labels.ndim != 1:
        raise HashbenchError(f"--by class needs a dataset with one class per item, and {dataset} has none.")
    return np.asarray(data.labels)[data.query]


def format_columns(columns: Sequence[Column], form: str) -> str:
    """Write comparisons as a table, csv, json or markdown, without a final newline."""
    if form == "json":
        return json_text([_content(column) for column in columns])
    if form == "csv":
        rows = [[line[name] for name in _FIELDS] for column in columns for line in _content(column)["differences"]]
        return sheet_text(_FIELDS, [["" if pd.isna(value) else value for value in row] for row in rows]).rstrip("\n")
    table = markdown_table if form == "markdown" else plain_table
    texts = []
    for column in columns:
        sentences = [f"{answer.n_bits} bits: {answer.sentence}" for answer in column.answers]
        lower = ", lower is better" if is_error(column.metric) else ""
        title = f"{column.dataset} ({column.features}): {column.metric} of {column.answers[0].names[0]}{lower}"
        lines = table(_HEADER, [_line(answer) for answer in column.answers], n_left=2)
        notes = wrapped(" ".join([_ABOUT, *column.notes]))
        texts.append("\n\n".join([title, lines, "\n".join(map(wrapped, sentences)), notes]))
    return "\n\n".join(texts)


_FIELDS = (
    *("dataset", "features", "metric", "n_bits", "first", "second", "value", "low", "high", "p", "p_holm", "tie_sd"),
    *("n_queries", "n_seeds_first", "n_seeds_second", "basis", "is_shown", "answer"),
)
_ABOUT = (
    "Shuffle sd: how far a shuffle of the database can move the difference, as a standard deviation. Ties add nothing "
    "else: scores are means over all orders of tied items."
)


_SCOPES = {"queries": ", these codes", "seeds": ", these queries"}  # beside the answer, where it is not of all


def _line(answer: Answer) -> list[str]:
    difference = answer.difference
    if difference is None:
        return [str(answer.n_bits), answer.names[1], *["-"] * 4, answer.in_a_word]
    p = difference.p if difference.p_holm is None else difference.p_holm
    return [
        str(answer.n_bits),
        answer.names[1],
        f"{difference.value:+.4f}",
        "-" if np.isnan(difference.low) else f"{difference.low:+.4f} to {difference.high:+.4f}",
        "<0.0001" if p < 1e-4 else f"{p:.4f}",
        "-" if np.isnan(difference.tie_sd) else f"{difference.tie_sd:.5f}",
        answer.in_a_word + _SCOPES.get(difference.basis, ""),
    ]


def _content(column: Column) -> dict[str, Any]:
    place = {"dataset": column.dataset, "features": column.features, "metric": column.metric}
    differences = []
    for answer in column.answers:
        content: dict[str, Any] = dict.fromkeys((*_FIELDS, "sentence")) | place
        content |= {"n_bits": answer.n_bits, "first": answer.names[0], "second": answer.names[1]}
        if difference := answer.difference:
            same = ("value", "low", "high", "p", "p_holm", "tie_sd", "n_queries", "basis", "is_shown")
            content |= {name: getattr(difference, name) for name in same}
            content |= dict(zip(("n_seeds_first", "n_seeds_second"), difference.n_seeds, strict=True))
        differences.append(content | {"answer": answer.in_a_word, "sentence": answer.sentence})
    return {**place, "differences": differences, "notes": list(column.notes)}

"""Two methods compared by their rows of results: the difference, and whether queries and seeds show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from hashbench._typing import IntArray
from hashbench.errors import HashbenchError, unknown_name
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import evaluation_of
from hashbench.reports.aggregate import BLOCK, LINE, average_over_seeds, draws, line_labels, main_lines
from hashbench.reports.formatting import json_text, markdown_table, plain_table, sheet_text, wrapped
from hashbench.reports.selection import Selection
from hashbench.reports.significance import holm
from hashbench.scoring.comparison import Difference, compare, of_means
from hashbench.scoring.evaluation import Evaluation
from hashbench.store.result_rows import as_row
from hashbench.store.score_cache import find

_HEADER = ["bits", "against", "difference", "95 % interval", "p", "shuffle sd", ""]
_SEEDS_ONLY = (
    "The data folder lacks the scores of single queries of some rows, so only seeds are compared, on these queries. To "
    "compare over queries too, run or evaluate the methods here."
)
Rows = dict[str, pd.DataFrame]  # of one metric and code length, by method


@dataclass(frozen=True)
class Column:
    """The differences of one method from others, in one metric and block, by code length and method."""

    dataset: str
    features: str
    metric: str
    differences: Sequence[tuple[int, Difference]]  # code length and difference
    notes: Sequence[str] = ()


def compare_results(results: pd.DataFrame, names: Sequence[str], selection: Selection, by_class: bool) -> list[Column]:
    """Compare the first of some methods, or labels of lines, with the others, wherever two of them have rows.

    Scores of single queries come from the data folder. Where those of any row are missing, a whole column is compared
    by the means of seeds, on these queries. Several others are corrected together by Holm's method, at each length.
    """
    if len(set(names)) < 2:
        raise HashbenchError(f"{' and '.join(names)}: a comparison needs two methods; name two different ones.")
    chosen = _chosen(results, names, selection)
    columns = []
    for (dataset, features, _, metric), block in chosen.groupby([*BLOCK, "metric"], sort=False):
        lengths = {
            int(str(n_bits)): {name: part[part["name"] == name] for name in names if (part["name"] == name).any()}
            for n_bits, part in block.groupby("n_bits")
        }
        lengths = {n: rows for n, rows in lengths.items() if names[0] in rows and len(rows) > 1}
        if lengths:
            columns.append(_column(str(dataset), str(features), str(metric), lengths, by_class))
    if not columns:
        raise HashbenchError(
            f"{names[0]} and {' or '.join(names[1:])} have no results of one dataset, metric and code length. Run them "
            "on the same, or choose others with --dataset, --metric and --bits."
        )
    return columns


def _chosen(results: pd.DataFrame, names: Sequence[str], selection: Selection) -> pd.DataFrame:
    """Keep the rows of each name with a column ``name``; of a method with several lines, the one that tables show."""
    cells = average_over_seeds(results)
    labels = line_labels(results)
    main = main_lines(cells, cells)[[*BLOCK, *LINE]].drop_duplicates()
    parts = []
    for name in names:
        lines = [line for line, label in labels.items() if label == name]
        if lines:
            rows = results.merge(pd.DataFrame(lines, columns=list(LINE)))
        else:
            rows = results[results["method"] == name].merge(main)
        if rows.empty:
            raise unknown_name("method of the results", name, sorted({*results["method"], *labels.values()}))
        parts.append(rows.assign(name=name))
    chosen = pd.concat(parts, ignore_index=True)
    selected = selection.of(chosen.drop(columns="method").assign(method=chosen["name"]))
    return chosen.loc[selected.index] if selection.datasets or selection.features else chosen


def _column(dataset: str, features: str, metric: str, lengths: dict[int, Rows], by_class: bool) -> Column:
    found = {
        n_bits: {name: _evaluations(rows) for name, rows in by_name.items()} for n_bits, by_name in lengths.items()
    }
    is_known = all(side is not None for by_name in found.values() for side in by_name.values())
    classes = _classes(dataset, features, lengths) if by_class else None
    if by_class and not is_known:
        raise HashbenchError(
            "--by class needs the scores of single queries, and the data folder lacks those of some rows. Run or "
            "evaluate them here again."
        )
    differences = []
    for n_bits, by_name in lengths.items():
        first, *others = by_name
        at_length = []
        for other in others:
            pair = first, other
            fixed = [name for name in pair if not draws(str(by_name[name]["method"].iloc[0]))]
            if is_known:
                sides = [found[n_bits][name] or [] for name in pair]
                at_length.append(compare(*sides, names=pair, draws_nothing=fixed, clusters=classes)[metric])
            else:
                at_length.append(_by_means(by_name, pair, metric, fixed))
        if len(others) > 1:
            corrected = holm([difference.p for difference in at_length])
            at_length = [replace(d, p_holm=float(p)) for d, p in zip(at_length, corrected, strict=True)]
        differences += [(n_bits, difference) for difference in at_length]
    notes = [] if is_known else [_SEEDS_ONLY]
    return Column(dataset, features, metric, differences, notes)


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
    tie_sd = sum(float(rows[name]["tie_sd"].mean(skipna=False)) for name in pair)
    return of_means(first, second, metric, pair, int(rows[pair[0]]["n_queries"].iloc[0]), tie_sd, fixed)


def _classes(dataset: str, features: str, lengths: dict[int, Rows]) -> IntArray:
    """Return the class of each query."""
    data, _ = load_dataset(f"{dataset}:{features}" if features else dataset)
    if data.labels is None or data.labels.ndim != 1:
        raise HashbenchError(f"--by class needs a dataset with one class per item, and {dataset} has none.")
    return np.asarray(data.labels)[data.query]


def format_columns(columns: Sequence[Column], form: str) -> str:
    """Write comparisons as a table, csv, json or markdown, without a final newline."""
    if form == "json":
        return json_text([_content(column) for column in columns])
    if form == "csv":
        names = ["dataset", "features", "metric", "n_bits", "first", "second", "value", "low", "high", "p", "p_holm"]
        names += ["tie_sd", "n_queries", "n_seeds_first", "n_seeds_second", "basis", "is_shown"]
        rows = [[line[name] for name in names] for column in columns for line in _content(column)["differences"]]
        return sheet_text(names, [["" if value is None else value for value in row] for row in rows]).rstrip("\n")
    table = markdown_table if form == "markdown" else plain_table
    texts = []
    for column in columns:
        lines = [_line(n_bits, difference) for n_bits, difference in column.differences]
        sentences = [f"{n_bits} bits: {difference}" for n_bits, difference in column.differences]
        title = f"{column.dataset} ({column.features}): {column.metric} of {column.differences[0][1].names[0]}"
        parts = [title, table(_HEADER, lines, n_left=2), "\n".join(wrapped(text) for text in sentences)]
        parts += [wrapped(" ".join([_ABOUT, *column.notes]))]
        texts.append("\n\n".join(parts))
    return "\n\n".join(texts)


_ABOUT = (
    "Shuffle sd: how far a shuffle of the database can move the difference, as a standard deviation. Ties add nothing "
    "else: scores are means over all orders of tied items."
)


def _line(n_bits: int, difference: Difference) -> list[str]:
    p = difference.p if difference.p_holm is None else difference.p_holm
    return [
        str(n_bits),
        difference.names[1],
        f"{difference.value:+.4f}",
        f"{difference.low:+.4f} to {difference.high:+.4f}",
        "<0.0001" if p < 1e-4 else f"{p:.4f}",
        "-" if np.isnan(difference.tie_sd) else f"{difference.tie_sd:.5f}",
        "shown" if difference.is_shown else "not shown",
    ]


def _content(column: Column) -> dict[str, Any]:
    place = {"dataset": column.dataset, "features": column.features, "metric": column.metric}
    return {
        **place,
        "differences": [
            {
                **place,
                "n_bits": n_bits,
                "first": difference.names[0],
                "second": difference.names[1],
                "value": difference.value,
                "low": difference.low,
                "high": difference.high,
                "p": difference.p,
                "p_holm": difference.p_holm,
                "tie_sd": difference.tie_sd,
                "n_queries": difference.n_queries,
                "n_seeds_first": difference.n_seeds[0],
                "n_seeds_second": difference.n_seeds[1],
                "basis": difference.basis,
                "is_shown": difference.is_shown,
                "sentence": str(difference),
            }
            for n_bits, difference in column.differences
        ],
        "notes": list(column.notes),
    }

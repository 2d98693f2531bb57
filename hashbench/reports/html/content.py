"""The content of the page as plain values for JSON: results averaged over seeds, and the papers' values."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from hashbench.method import GROUPS
from hashbench.reports.aggregate import BLOCK, CELL, LINE, known_card, main_lines
from hashbench.reports.folds import fold_cells
from hashbench.reports.plots.style import Look, choose_looks
from hashbench.reports.row_origins import describe_origin, n_trials, origin_of
from hashbench.reports.tables.blocks import make_pairs
from hashbench.reports.tables.cells import records
from hashbench.reports.tables.published import published_values
from hashbench.reports.ties import ANSWERS, N_DEVIATIONS, N_QUERIES
from hashbench.scoring.metrics import is_error
from hashbench.store.origin import JobRecord
from hashbench.store.result_rows import COLUMNS, NUMBERS
from hashbench.unseen import split_name

_MILLIONTHS = 1_000_000  # numbers of six decimals travel as whole ones


def make_content(
    results: pd.DataFrame, lines: pd.DataFrame, cells: pd.DataFrame, origins: Mapping[tuple[Any, ...], JobRecord]
) -> dict[str, Any]:
    """Return results as JSON values: blocks, metrics, lines, methods, cells (means over seeds), rows, published values.

    The same results give the same content; ``null`` stands for a missing number. ``lines`` are `all_lines` of
    results, ``cells`` their `average_over_seeds`, ``origins`` those of `hashbench.reports.row_origins.read_origins`.
    """
    cells = cells.assign(cell=range(len(cells)))
    rows = results.merge(cells[[*CELL, "cell"]]).sort_values(["cell", "seed"])
    metrics = metrics_of(cells)
    labels = lines["label"].tolist()
    is_main = np.zeros(len(cells), dtype=int)
    is_main[main_lines(cells, cells)["cell"]] = 1
    names = block_names(cells)
    positions = {key: position for position, key in enumerate(names)}
    return {
        "groups": list(GROUPS),
        "data": _data(cells, names),
        "metrics": [{"name": name, "is_error": is_error(name)} for name in metrics],
        "lines": _lines(lines, choose_looks(lines)),
        "methods": {name: card.summary if (card := known_card(name)) else "" for name in sorted(set(lines["method"]))},
        "cells": {
            "data": [positions[key] for key in zip(*(cells[key] for key in BLOCK), strict=True)],
            "metric": cells["metric"].map(metrics.index).tolist(),
            "line": cells["label"].map(labels.index).tolist(),
            "bits": cells["n_bits"].tolist(),
            "is_main": is_main.tolist(),
            "n_rows": rows.groupby("cell").size().tolist(),
            **{key: whole(cells[key]) for key in (*NUMBERS, "spread")},
        },
        "rows": {
            "seed": rows["seed"].tolist(),
            **{key: whole(rows[key]) for key in ("value", "low", "high")},
            "made": coded(_origins(rows, origins)),
        },
        "folds": _folds(results, lines, metrics),
        "published": _published(cells),
        "luck": {"n_deviations": N_DEVIATIONS, "n_queries": N_QUERIES, "answers": ANSWERS},
    }


def _origins(rows: pd.DataFrame, origins: Mapping[tuple[Any, ...], JobRecord]) -> Iterator[str]:
    for job in records(rows[list(COLUMNS[:6])]):
        origin = origin_of(origins, job)
        yield "\n".join(describe_origin(origin, n_trials(job, origin))) if origin else ""


def whole(numbers: Iterable[float]) -> list[int | None]:
    """Return numbers in millionths; None for NaN."""
    return [None if number != number else round(number * _MILLIONTHS) for number in numbers]


def coded(values: Iterable[Hashable]) -> dict[str, list[Any]]:
    """Encode a column by its distinct values and, for each row, the position of its value among them."""
    values = list(values)
    positions = {value: position for position, value in enumerate(dict.fromkeys(values))}
    return {"of": list(positions), "at": [positions[value] for value in values]}


def block_names(cells: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Name each ``BLOCK`` as users do, with its fingerprint if another differs only in that; in the page's order.

    Datasets of which papers have most values come first, then those with most lines; folds with unseen classes last.
    """
    blocks = cells.groupby(list(BLOCK), as_index=False).agg(n_lines=("label", "nunique"))
    n_published = Counter(value.our_dataset for value in published_values())
    blocks["is_fold"] = blocks["dataset"].map(is_fold)
    blocks["n_published"] = blocks["dataset"].map(n_published)
    blocks["most_lines"] = blocks.groupby("dataset")["n_lines"].transform("max")
    order = ["is_fold", "n_published", "most_lines", "dataset", "n_lines", "features"]
    blocks = blocks.sort_values(order, ascending=[True, False, False, True, False, True])[list(BLOCK)]
    n_contents = blocks.groupby(["dataset", "features"])["dataset_fingerprint"].nunique()
    return {
        (dataset, features, fingerprint): f"{dataset}:{features}"
        + (f" [{fingerprint}]" if n_contents[dataset, features] > 1 else "")
        for dataset, features, fingerprint in blocks.itertuples(index=False, name=None)
    }


def is_fold(dataset: str) -> bool:
    """Return whether a dataset is a fold with unseen classes."""
    return split_name(dataset)[1] is not None


def metrics_of(cells: pd.DataFrame) -> list[str]:
    """Return the metrics in the order of the page: by name, errors last."""
    return sorted(cells["metric"].unique(), key=lambda name: (is_error(name), name))


def _data(cells: pd.DataFrame, names: Mapping[tuple[str, str, str], str]) -> list[dict[str, Any]]:
    first = cells.drop_duplicates(list(BLOCK)).set_index(list(BLOCK))
    return [
        {
            "name": name,
            "fingerprint": key[2],
            "n_queries": int(first.at[key, "n_queries"]),
            "n_undefined": int(first.at[key, "n_undefined"]),
            "is_fold": is_fold(key[0]),
        }
        for key, name in names.items()
    ]


def _lines(lines: pd.DataFrame, looks: Mapping[str, Look]) -> list[dict[str, Any]]:
    return [
        {
            "label": line.label,
            "method": line.method,
            "group": line.group,
            "supervision": card.supervision if (card := known_card(str(line.method))) else "",
            "colour": look.colour,
            "marker": look.marker,
            "is_variant": look.is_variant,
            "dash": "" if look.dash == "-" else " ".join(str(2 * length) for length in look.dash[1]),
        }
        for line in lines.itertuples(index=False)
        for look in [looks[str(line.label)]]
    ]


def _folds(results: pd.DataFrame, lines: pd.DataFrame, metrics: list[str]) -> dict[str, Any]:
    """Return means over folds with unseen classes, of one line per method."""
    folds = [name for name in results["dataset"].unique() if is_fold(name)]
    cells = fold_cells(results[results["dataset"].isin(folds)]) if folds else pd.DataFrame()
    if cells.empty:
        return {"base": []}
    cells = cells.merge(lines[[*LINE, "label"]])
    return {
        "base": coded(cells["base"] + ":" + cells["features"]),
        "scope": coded(cells["scope"]),
        "metric": cells["metric"].map(metrics.index).tolist(),
        "line": cells["label"].map(lines["label"].tolist().index).tolist(),
        "bits": cells["n_bits"].tolist(),
        "folds": coded(cells["folds"]),
        **{key: whole(cells[key]) for key in (*NUMBERS, "spread")},
    }


def _published(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the papers' values in order of cells: value as printed, verdict, source, and what differs."""
    pairs = [pair for _, value_pairs in make_pairs(cells, published_values()) for pair in value_pairs]
    pairs.sort(key=lambda pair: pair.cell.cell)
    values = [pair.published for pair in pairs]
    return {
        "cell": [pair.cell.cell for pair in pairs],
        "value": coded(value.value for value in values),
        "verdict": coded(pair.verdict for pair in pairs),
        "source": coded(f"{value.source}, {value.name}, {value.backbone}" for value in values),
        "differs": coded("; ".join(text for _, text in pair.differs) for pair in pairs),
    }

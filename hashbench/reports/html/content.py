"""What the page shows, as plain values for JSON: results averaged over seeds, the papers' values, what they are of."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from inspect import cleandoc
from typing import Any

import numpy as np
import pandas as pd

from hashbench import _source_code, registry
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.pipeline.preparation import find_by_content
from hashbench.reports.aggregate import BLOCK, CELL, all_lines, average_over_seeds, known_card, main_lines
from hashbench.reports.plots.style import Look, choose_looks
from hashbench.reports.tables.blocks import make_pairs
from hashbench.reports.tables.published import published_values
from hashbench.scoring.metrics import is_error
from hashbench.store import hdf5

_ABOUT = ("protocol", "source", "licence", "citation")
_MILLIONTHS = 1_000_000  # numbers of six decimals travel as whole ones


def make_content(results: pd.DataFrame) -> dict[str, Any]:
    """Lay out results: blocks, metrics, lines, methods, their cells (means over seeds), the rows behind, the papers'.

    The same results give the same content; ``null`` stands for a number that there is not.
    """
    lines = all_lines(results)
    cells = average_over_seeds(results, lines)
    cells["cell"] = range(len(cells))
    blocks = cells[list(BLOCK)].drop_duplicates(ignore_index=True)
    rows = results.merge(cells[[*CELL, "cell"]]).sort_values(["cell", "seed"])
    metrics = list(dict.fromkeys(sorted(cells["metric"], key=lambda name: (is_error(name), name))))
    labels = lines["label"].tolist()
    is_main = np.zeros(len(cells), dtype=int)
    is_main[main_lines(cells, cells)["cell"]] = 1
    names = block_names(blocks)
    places = {key: place for place, key in enumerate(names)}
    return {
        "groups": list(GROUPS),
        "data": [_block(names[key], cells, key) for key in blocks.itertuples(index=False, name=None)],
        "metrics": [{"name": name, "is_error": is_error(name)} for name in metrics],
        "lines": _lines(lines, choose_looks(lines)),
        "methods": [_method(name) for name in sorted(lines["method"].unique())],
        "cells": {
            "data": [places[key] for key in zip(*(cells[key] for key in BLOCK), strict=True)],
            "metric": cells["metric"].map(metrics.index).tolist(),
            "line": cells["label"].map(labels.index).tolist(),
            "bits": cells["n_bits"].tolist(),
            "is_main": is_main.tolist(),
            "n_rows": rows.groupby("cell").size().tolist(),
            **{key: whole(cells[key]) for key in ("value", "low", "high", "spread")},
        },
        "rows": {"seed": rows["seed"].tolist(), **{key: whole(rows[key]) for key in ("value", "low", "high")}},
        "published": _published(cells),
    }


def whole(numbers: Iterable[float]) -> list[int | None]:
    """Give numbers in millionths; None where there is none."""
    return [None if number != number else round(number * _MILLIONTHS) for number in numbers]


def coded(values: Iterable[Hashable]) -> dict[str, list[Any]]:
    """Give a column with few different values as these and, for each row, which of them."""
    values = list(values)
    places = {value: place for place, value in enumerate(dict.fromkeys(values))}
    return {"of": list(places), "at": [places[value] for value in values]}


def block_names(blocks: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Name each ``BLOCK`` as users do, with its fingerprint where others differ in that alone."""
    n_contents = blocks.groupby(["dataset", "features"])["dataset_fingerprint"].nunique()
    return {
        (dataset, features, fingerprint): f"{dataset}:{features}"
        + (f" [{fingerprint}]" if n_contents[dataset, features] > 1 else "")
        for dataset, features, fingerprint in blocks.itertuples(index=False, name=None)
    }


def _block(name: str, cells: pd.DataFrame, key: tuple[str, str, str]) -> dict[str, Any]:
    dataset, features, fingerprint = key
    first = cells[(cells[list(BLOCK)] == list(key)).all(axis=1)].iloc[0]
    path = find_by_content(fingerprint)
    about = json.loads(hdf5.read_attributes(path)["about"]) if path else {}
    try:
        known = registry.dataset_class(dataset).summary if dataset in registry.dataset_names() else ""
    except HashbenchError:
        known = ""
    return {
        **{"name": name, "dataset": dataset, "features": features, "fingerprint": fingerprint},
        **{"n_queries": int(first["n_queries"]), "n_undefined": int(first["n_undefined"])},
        "summary": about.get("summary", known),
        "about": {key: " ".join(str(about[key]).split()) for key in _ABOUT if about.get(key)},
    }


def _lines(lines: pd.DataFrame, looks: Mapping[str, Look]) -> list[dict[str, Any]]:
    return [
        {
            **{"label": line.label, "method": line.method, "version": line.method_version, "params": line.params},
            **{"group": line.group, "supervision": _supervision(str(line.method))},
            **{"colour": look.colour, "marker": look.marker, "is_variant": look.is_variant},
            "dash": "" if look.dash == "-" else " ".join(str(2 * length) for length in look.dash[1]),
        }
        for line in lines.itertuples(index=False)
        for look in [looks[str(line.label)]]
    ]


def _supervision(method: str) -> str:
    card = known_card(method)
    return card.supervision if card else ""


def _method(name: str) -> dict[str, Any]:
    """Tell what is known of a method; of one that is no longer installed its name."""
    card = known_card(name)
    if card is None:
        return {"name": name, "is_installed": False}
    return {
        **{"name": name, "is_installed": True, "summary": card.summary, "version": card.version},
        **{"group": card.group, "supervision": card.supervision},
        "references": _references(name),
        "params": [[key, str(value), card.meanings.get(key, "")] for key, value in card.params.items()],
        "presets": {
            preset: ", ".join(f"{key}={value}" for key, value in sorted(card.preset(preset, 32).items()))
            for preset in card.presets
        },
    }


def _references(method: str) -> list[str]:
    """Read the references of a method's docstrings, each in one line."""
    if registry.is_built_in(method):
        docstrings = _source_code.docstrings_of(f"hashbench.methods.{method.replace('-', '_')}")
    else:
        docstrings = [registry.get_method(method).__doc__ or ""]
    found = re.findall(r"^\.\. \[\w+\] (.*(?:\n {2,}.*)*)", "\n\n".join(map(cleandoc, docstrings)), re.MULTILINE)
    return [" ".join(text.split()) for text in dict.fromkeys(found)]


def _published(cells: pd.DataFrame) -> dict[str, Any]:
    """Give the papers' values of each cell, in order of cells: value as printed, verdict, source, what differs."""
    pairs = [pair for _, found in make_pairs(cells, published_values()) for pair in found]
    pairs.sort(key=lambda pair: pair.cell.cell)
    sources = (f"{one.source}, {one.name}, {one.backbone}" for one in (pair.published for pair in pairs))
    return {
        "cell": [pair.cell.cell for pair in pairs],
        "value": coded(pair.published.value for pair in pairs),
        "verdict": coded(pair.verdict for pair in pairs),
        "source": coded(sources),
        "differs": coded("; ".join(text for _, text in pair.differs) for pair in pairs),
    }

"""The data of the page, and the descriptions of datasets and methods on it."""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from inspect import cleandoc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hashbench import registry
from hashbench.cards import docstrings_of
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.pipeline.preparation import find_by_content
from hashbench.reports.aggregate import BLOCK, CELL, fold_cells, is_fold, known_card, lines_of_folds, main_lines
from hashbench.reports.diff import OF_SEEDS, STATUS, Diff, footnotes, headline, summarise
from hashbench.reports.marks import ANSWERS, EVERY_ORDER, OPEN, SHUFFLE, UNKNOWN, add_marks, explain, reach
from hashbench.reports.plots.figure_selection import at_usual_length
from hashbench.reports.plots.style import Look, choose_looks
from hashbench.reports.row_origins import describe_origin
from hashbench.reports.tables.published import LAYOUTS, Pair, is_own, make_pairs, order_by_set_up, published_values
from hashbench.reports.uncertainty import IN_WORDS, SEEDS, add_uncertainty, variances_of
from hashbench.reports.view import COLUMN, in_whole_columns, view_of
from hashbench.scoring.metrics import is_error
from hashbench.sources.inspection import WARNING
from hashbench.store.artifact import read_record
from hashbench.store.origin import Origin
from hashbench.store.result_rows import JOB, NUMBERS

_CODE = "https://github.com/hashbench/hashbench/blob/main/methods/{}.py"  # of built-in methods
_ABOUT = (WARNING, "protocol", "source", "licence", "citation")


def dataset_cards(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Describe each dataset, and count the lines that have values in each metric at each code length."""
    names = block_names(cells)
    parts = dict(list(cells.groupby(list(BLOCK), sort=False)))
    return [
        {"name": name, "is_fold": is_fold(key[0]), **_description(*key), **_counts(parts[key])}
        for key, name in names.items()
    ]


def method_cards(cells: pd.DataFrame) -> list[dict[str, Any]]:
    """Describe each method; one that is no longer installed has only a name."""
    return [_method(name) for name in sorted(cells["method"].unique())]


def _description(dataset: str, features: str, fingerprint: str) -> dict[str, Any]:
    path = find_by_content(fingerprint)
    about = read_record(path).get("about", {}) if path else {}
    summary = ""
    if dataset in registry.dataset_names():
        with suppress(HashbenchError):
            summary = registry.dataset_class(dataset).summary
    return {
        "fingerprint": fingerprint,
        "summary": about.get("summary", summary),
        "about": {key: " ".join(str(about[key]).split()) for key in _ABOUT if about.get(key)},
    }


def _counts(cells: pd.DataFrame) -> dict[str, Any]:
    first = cells.iloc[0]
    lengths, counts = sorted(cells["n_bits"].unique().tolist()), cells.groupby(["metric", "n_bits"]).size().to_dict()
    return {
        "n_queries": int(first["n_queries"]),
        "n_undefined": int(cells["least_undefined"].min()),
        "n_methods": cells["method"].nunique(),
        "n_lines": cells["label"].nunique(),
        "n_seeds": sorted(cells["n_seeds"].unique().tolist()),
        "lengths": lengths,
        "grid": [(metric, [counts.get((metric, bits), 0) for bits in lengths]) for metric in metrics_of(cells)],
    }


def _method(name: str) -> dict[str, Any]:
    card = known_card(name)
    if card is None:
        return {"name": name, "card": None, "summary": "", "paper": {}}
    references = _references(name)
    paper = _paper(references[0]) if references else {}
    if registry.is_built_in(name):
        paper["code"] = _CODE.format(name.replace("-", "_"))
    return {"name": name, "card": card, "summary": card.summary, "references": references, "paper": paper}


def _paper(reference: str) -> dict[str, Any]:
    """Read year, venue and address of a paper from its reference: authors, title in quotation marks, venue and year.

    Examples
    --------
    >>> _paper('A. Author, "A Title", ICML 2011, arXiv:1234.56789.')
    {'year': 2011, 'venue': 'ICML', 'url': 'https://arxiv.org/abs/1234.56789'}
    """
    paper: dict[str, Any] = {}
    if match := re.search(r'", (?:(.*?),? )?((?:19|20)\d\d)\b', reference):
        paper = {"year": int(match[2]), "venue": match[1] or ""}
    if match := re.search(r"arXiv:(\d{4}\.\d{4,5})|(https?://\S+[^\s.,)])", reference):
        paper["url"] = match[2] or f"https://arxiv.org/abs/{match[1]}"
    return paper


def _references(method: str) -> list[str]:
    text = "\n\n".join(map(cleandoc, docstrings_of(registry.get_method(method))))
    references = re.findall(r"^\.\. \[\w+\] (.*(?:\n {2,}.*)*)", text, re.MULTILINE)
    return [" ".join(reference.split()) for reference in dict.fromkeys(references)]


_MILLIONTHS = 1_000_000  # numbers of six decimals travel as whole ones
USUAL_BITS = 32  # code length that is shown first
_SHAPES = {  # SVG paths of matplotlib's markers, around (0, 0)
    "o": "M-4,0a4,4 0 1,0 8,0a4,4 0 1,0 -8,0Z",
    "s": "M-3.6,-3.6h7.2v7.2h-7.2Z",
    "^": "M0,-4.6L4.4,3.4H-4.4Z",
    "v": "M0,4.6L4.4,-3.4H-4.4Z",
    "D": "M0,-4.8L4.8,0L0,4.8L-4.8,0Z",
    "<": "M-4.6,0L3.4,-4.4V4.4Z",
    ">": "M4.6,0L-3.4,-4.4V4.4Z",
    "P": "M-1.5,-4.4h3v2.9h2.9v3h-2.9v2.9h-3v-2.9h-2.9v-3h2.9Z",
    "X": "M-4.2,-2.4L-2.4,-4.2L0,-1.8L2.4,-4.2L4.2,-2.4L1.8,0L4.2,2.4L2.4,4.2L0,1.8L-2.4,4.2L-4.2,2.4L-1.8,0Z",
    "p": "M0,-4.6L4.4,-1.4L2.7,3.8H-2.7L-4.4,-1.4Z",
    "h": "M0,-4.6L4,-2.3V2.3L0,4.6L-4,2.3V-2.3Z",
}
_LEARNS: dict[str, str] = {  # what users' own codes of a group learn from, as most methods of it do
    **dict.fromkeys(GROUPS, "affinity"),
    **dict.fromkeys(("baseline", "unsupervised"), "none"),
    "class-based": "labels",
    "": "",  # without a group
}
_OF_THEME = {"#000000": "var(--ink)", "#882255": "var(--wine)"}  # too dark for dark paper
_TIES_IN_WORDS = {  # what an answer says of two methods
    EVERY_ORDER: "Their ranges do not meet: no order of ties reverses the two.",
    SHUFFLE: "A shuffle of the database rarely reverses the two; an order that depends on the classes might.",
    OPEN: "A shuffle of the database may reverse the two.",
    UNKNOWN: "Whether a shuffle of the database may reverse the two is unknown: one has no value or no tie_sd.",
}
_VERDICTS = {  # of a published value
    "within": "it lies within our spread, or is not apart from ours under a shuffle",
    "above": "ours lies above it",
    "below": "ours lies below it",
    "unknown": "unknown, as our row has no tie_sd",
}


def make_content(
    results: pd.DataFrame, lines: pd.DataFrame, cells: pd.DataFrame, origins: Mapping[tuple[Any, ...], Origin]
) -> dict[str, Any]:
    """Return results as JSON values: blocks, metrics, lines, cells (means over seeds), rows, folds, published values.

    The same results give the same content; ``null`` stands for a missing number. ``lines`` are `all_lines` of
    results, ``cells`` those of their `hashbench.reports.view.View`, ``origins`` are by job.
    """
    cells = cells.assign(cell=range(len(cells)), supervision=_supervision(cells), is_main=0)
    cells.loc[cells.index[main_lines(cells, cells)["cell"]], "is_main"] = 1
    main = cells[cells["is_main"] == 1].reset_index(drop=True)
    main = in_whole_columns(add_uncertainty(main, None, variances_of(results, main), COLUMN))
    best = main.loc[main["may_be_best"], "cell"]
    tested = main.loc[main["p_value"].notna(), "cell"]
    cells = cells.assign(may_be_best=cells["cell"].isin(best), is_tested=cells["cell"].isin(tested).astype(int))
    cells = add_marks(cells)
    every_line, lines = lines, lines.drop_duplicates("label")  # versions that do not meet in a block share one
    rows = results.merge(cells[[*CELL, "cell"]]).sort_values(["cell", "seed"])
    names, metrics = block_names(cells), metrics_of(cells)
    positions = {key: position for position, key in enumerate(names)}
    place = {"metric": metrics.index, "line": lines["label"].tolist().index}
    shown = cells.assign(
        data=[positions[key] for key in zip(*(cells[key] for key in BLOCK), strict=True)],
        n_rows=rows.groupby("cell").size().to_numpy(),
    )
    return {
        "groups": list(GROUPS),
        "data": _data(cells, names),
        "metrics": [{"name": name, "is_error": is_error(name)} for name in metrics],
        "lines": _lines(lines, choose_looks(_in_order(lines, cells, next(iter(names))))),
        "cells": _placed(shown, place, ["data", "is_main", "is_tested", "n_rows"]),
        "rows": encode(rows[["seed", "value", "low", "high"]].assign(**_origins(rows, origins))),
        "folds": _folds(results, every_line, place),
        "published": _published(cells),
        "ties": {"answers": ANSWERS, "about": _TIES_IN_WORDS},
        "signs": explain(main.assign(marks="†§¶" + "★" * bool(len(best)))),
        "about_best": IN_WORDS[SEEDS],
        "verdicts": _VERDICTS,
    }


def _placed(cells: pd.DataFrame, place: Mapping[str, Callable[[str], int]], more: list[str]) -> dict[str, Any]:
    """Return the numbers of cells, and the positions of their metric and line on the page.

    ``reach`` is in millionths, to three decimals. Whether a cell is marked † depends on what it is shown beside.
    """
    at = {"metric": cells["metric"].map(place["metric"]), "line": cells["label"].map(place["line"])}
    marks = cells["marks"].str.replace("†", "")
    reaches = (reach(cells) * _MILLIONTHS).round(3).tolist()
    columns = [*more, "metric", "line", "bits", *NUMBERS, "spread", "marks"]
    encoded = encode(cells.assign(**at, bits=cells["n_bits"], marks=marks)[columns])
    return encoded | {"reach": [None if number != number else number for number in reaches]}


def _origins(rows: pd.DataFrame, origins: Mapping[tuple[Any, ...], Origin]) -> dict[str, list[str]]:
    """Return lines on what made each row, and apart from these how long it took, which few rows share."""
    made, took = list[str](), list[str]()
    for job in rows[list(JOB)].itertuples(index=False, name=None):
        *lines, time = describe_origin(origins[job], job) if job in origins else [""]
        made.append("\n".join(lines))
        took.append(time)
    return {"made": made, "took": took}


def encode(columns: pd.DataFrame) -> dict[str, Any]:
    """Return columns for JSON: floats in millionths, None for NaN; texts as the distinct ones and where each stands."""
    return {str(name): _encode_column(columns[name]) for name in columns}


def _encode_column(column: "pd.Series[Any]") -> Any:
    if column.dtype.kind == "f":
        whole = np.rint(column.to_numpy() * _MILLIONTHS)
        return [None if number != number else int(number) for number in whole.tolist()]
    if column.dtype.kind in "iu":
        return column.tolist()
    codes, values = pd.factorize(column)
    return {"of": values.tolist(), "at": codes.tolist()}


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


def metrics_of(cells: pd.DataFrame) -> list[str]:
    """Return the metrics in the order of the page: by name, errors last."""
    return sorted(cells["metric"].unique(), key=lambda name: (is_error(name), name))


def _data(cells: pd.DataFrame, names: Mapping[tuple[str, str, str], str]) -> list[dict[str, Any]]:
    counts = cells.groupby(list(BLOCK)).agg(n_queries=("n_queries", "first"), n_undefined=("least_undefined", "min"))
    first: Any = counts.to_dict("index")  # the fewest undefined: those without relevant items
    return [
        {"name": name, "fingerprint": key[2], **first[key], "is_fold": is_fold(key[0])} for key, name in names.items()
    ]


def _in_order(lines: pd.DataFrame, cells: pd.DataFrame, block: tuple[str, str, str]) -> pd.DataFrame:
    """Name the groups of lines so that the best methods of a block get their looks first, and differ in colour."""
    metric = metrics_of(cells)[0]
    here = cells[cells.set_index(list(BLOCK)).index.isin([block]) & (cells["metric"] == metric)]
    here = at_usual_length(here[here["group"] != "baseline"], USUAL_BITS)
    scores = here.groupby("method")["value"].max() * (1 if is_error(metric) else -1)
    ranks = scores.rank(method="first").map("{:06.0f}".format)
    groups = lines["method"].map(ranks).fillna("others").where(lines["group"] != "baseline", "baseline")
    return lines.assign(group=groups)


def _lines(lines: pd.DataFrame, looks: Mapping[str, Look]) -> list[dict[str, Any]]:
    return [
        {
            "label": line.label,
            "method": line.method,
            "group": line.group,
            "supervision": supervision,
            "colour": _OF_THEME.get(look.colour, look.colour),
            "shape": _SHAPES[look.marker],
            "is_variant": look.is_variant,
            "dash": "" if look.dash == "-" else " ".join(str(2 * length) for length in look.dash[1]),
        }
        for line, supervision in zip(lines.itertuples(index=False), _supervision(lines), strict=True)
        for look in [looks[str(line.label)]]
    ]


def _supervision(lines: pd.DataFrame) -> list[str]:
    """Return what the method of each line learns from."""
    cards = {method: known_card(method) for method in lines["method"].unique()}
    return [
        card.supervision if (card := cards[method]) else _LEARNS[group]
        for method, group in zip(lines["method"], lines["group"], strict=True)
    ]


def _folds(results: pd.DataFrame, lines: pd.DataFrame, place: Mapping[str, Callable[[str], int]]) -> dict[str, Any]:
    """Return means over folds with unseen classes, of one line per method."""
    folds = [name for name in results["dataset"].unique() if is_fold(name)]
    cells = fold_cells(results[results["dataset"].isin(folds)]) if folds else pd.DataFrame()
    if cells.empty:
        return {"base": []}
    view = view_of(cells.assign(rivals=cells["n_unseen"].astype(str)), results, lines=lines_of_folds(lines))
    cells = view.cells
    cells = cells.assign(base=cells["base"] + ":" + cells["features"])
    return _placed(cells, place, ["base", "scope", "folds"])


def _published(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the papers' values in order of cells; the value that tables show comes first.

    They have a value as printed, a verdict, a source, and what differs. As in tables, values of codes that were learned
    from the database's labels are left out.
    """
    values = [value for value in published_values() if value.is_of_hash_function]
    pairs = [pair for _, value_pairs in make_pairs(cells, values) for pair in value_pairs]
    pairs.sort(key=_order_of)
    rows = [
        {
            "cell": pair.cell.cell,
            "value": pair.published.value,
            "verdict": pair.verdict,
            "source": f"{pair.published.source}, {pair.published.name}, {pair.published.backbone}",
            "differs": "; ".join(text for _, text in pair.differs),
        }
        for pair in pairs
    ]
    return encode(pd.DataFrame(rows, columns=["cell", "value", "verdict", "source", "differs"]))


def _order_of(pair: Pair) -> tuple[Any, ...]:
    value, layout = pair.published, LAYOUTS.get(pair.published.layout)
    return pair.cell.cell, layout is None or not is_own(value, layout), order_by_set_up(value, pair.cell.features)


def changes_text(diff: Diff) -> dict[str, str | bool]:
    """Return the sides that are compared, a summary, and how to read the tests."""
    path = Path(diff.old_name)  # shown without its place on this machine
    title = headline(replace(diff, old_name=path.name if path.is_absolute() else diff.old_name)).replace("->", "→")
    has_rows = bool((diff.rows["status"] != "unchanged").any())
    return {"title": title, "summary": summarise(diff), "notes": " ".join(footnotes(diff)), "has_rows": has_rows}


def changes_content(diff: Diff) -> dict[str, Any]:
    """Return the rows that changed, are not comparable, new or gone, in this order, each with others of its line.

    ``seeds`` counts those of a row whose values changed to the same side.
    """
    comparable = diff.rows[diff.rows["status"].isin(["changed", "unchanged"])]
    sides = comparable.assign(side=np.sign(comparable["difference"]))
    to_one_side = sides.groupby([*OF_SEEDS, "side"], dropna=False)["seed"].transform("size").astype(str)
    seeds = to_one_side + " of " + comparable.groupby(OF_SEEDS)["seed"].transform("size").astype(str)
    rows = diff.rows.assign(
        seeds=seeds.where(comparable["status"] == "changed"),
        order=diff.rows["status"].map(STATUS.index),
        line=diff.rows.groupby(["data", "label"], sort=False).ngroup(),
        **{key: diff.rows[f"value_{key}"].astype(float) for key in ("old", "new")},
        other=diff.rows["other"].str.replace("->", "→"),
        ties=diff.rows["ties"].map(ANSWERS),
    )
    rows = rows[rows["status"] != "unchanged"].sort_values(["line", "order"], kind="stable")
    texts = ["status", "data", "label", "metric", "seeds", "ties", "marks", "other"]
    rows[texts] = rows[texts].fillna("")
    names = {"n_bits": "bits", "p_holm": "p"}
    return encode(rows.rename(columns=names)[["old", "new", "p", "low", "high", *texts, "bits", "seed"]])

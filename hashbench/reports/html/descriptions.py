"""Descriptions of datasets and methods: values for the cards of the page's templates."""

import re
from contextlib import suppress
from inspect import cleandoc
from typing import Any

import pandas as pd

from hashbench import registry
from hashbench.cards import docstrings_of
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import find_by_content
from hashbench.reports.aggregate import BLOCK, known_card
from hashbench.reports.folds import is_fold
from hashbench.reports.html.content import block_names, metrics_of
from hashbench.sources.inspection import WARNING
from hashbench.store.artifact import read_record

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

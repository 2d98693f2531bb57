"""Results averaged over seeds, method by method, and what people call each line of them."""

import json
from functools import cache
from typing import Any

import pandas as pd

from hashbench.jobs import make_method
from hashbench.method import GROUPS
from hashbench.registry import get_method, method_names

BLOCK = ("dataset", "features", "dataset_fingerprint")  # what is never mixed in one picture
LINE = ("method", "params", "method_version")  # what is never averaged
GROUP_RANK = {name: rank for rank, name in enumerate((*GROUPS, ""))}  # methods no longer installed come last


def average_over_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Average the scores of each method and code length over its seeds.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.results.read_results` gives.

    Returns
    -------
    DataFrame
        One row a ``BLOCK``, metric, ``LINE`` and ``n_bits``: means of ``value``, ``low`` and ``high``, ``n_seeds``,
        ``n_queries``, ``n_undefined``, and the line's ``group`` and ``label``. Groups stand in the order of the
        tables, methods that are no longer installed last; in a group and metric of a block the line with the highest
        mean over all its code lengths comes first.
    """
    cells = mean_over_seeds(results)
    n_versions = cells.groupby([*BLOCK, "method"])["method_version"].transform("nunique")
    cells["label"] = [
        line_label(method, params) + (f" (version {version})" if several > 1 else "")
        for method, params, version, several in zip(*(cells[key] for key in LINE), n_versions, strict=True)
    ]
    order = {
        **dict.fromkeys((*BLOCK, "metric"), True),
        "group_rank": True,
        "score": False,
        **dict.fromkeys((*LINE, "n_bits"), True),
    }
    ranked = cells.assign(
        group_rank=cells["group"].map(GROUP_RANK),
        score=cells.groupby([*BLOCK, "metric", *LINE])["value"].transform("mean"),
    ).sort_values(list(order), ascending=list(order.values()), ignore_index=True)
    return ranked.drop(columns=["group_rank", "score"])


def mean_over_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds, without names or order.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.results.read_results` gives.

    Returns
    -------
    DataFrame
        One row a ``BLOCK``, metric, ``LINE`` and ``n_bits``: means of ``value``, ``low`` and ``high``, ``spread`` (the
        standard deviation of ``value``), ``n_seeds``, ``n_queries``, ``n_undefined`` and ``group``, empty for methods
        that are no longer installed.
    """
    cells = (
        results.groupby([*BLOCK, "metric", *LINE, "n_bits"], sort=True)
        .agg(
            value=("value", "mean"),
            spread=("value", "std"),
            low=("low", "mean"),
            high=("high", "mean"),
            n_seeds=("seed", "nunique"),
            n_queries=("n_queries", "first"),
            n_undefined=("n_undefined", "first"),
        )
        .reset_index()
    )
    return cells.assign(group=cells["method"].map({name: _group(name) for name in cells["method"].unique()}))


def line_label(method: str, params: str) -> str:
    """Say what people call a method with its parameters.

    Parameters
    ----------
    method : str
        Its name.
    params : str
        All of its parameters, as JSON.

    Returns
    -------
    str
        The name, and the parameters that are not the default ones.
    """
    return " ".join([method, *(f"{key}={value}" for key, value in changed_params(method, params).items())])


def changed_params(method: str, params: str) -> dict[str, Any]:
    """Give the parameters that are not a method's defaults.

    Parameters
    ----------
    method : str
        Its name; of one that is no longer installed, all parameters count as changed.
    params : str
        All of its parameters, as JSON.

    Returns
    -------
    dict
        Names and values.
    """
    defaults = _default_params(method)
    return {key: value for key, value in json.loads(params).items() if key not in defaults or defaults[key] != value}


def _group(method: str) -> str:
    return get_method(method).group if method in method_names() else ""


@cache
def _default_params(method: str) -> dict[str, Any]:
    return make_method(method, 1, 0, {}).get_params(deep=False) if method in method_names() else {}

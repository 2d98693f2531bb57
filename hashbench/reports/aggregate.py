"""Means over seeds and over folds, the label of each line, and which line stands for a method."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import starmap
from typing import Any

import pandas as pd

from hashbench.cards import MethodCard, method_card
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.registry import method_names
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import OWN, SHOWN, left_out
from hashbench.unseen import split_name

BLOCK = ("dataset", "features", "dataset_fingerprint")  # what is never mixed in one picture
LINE = ("method", "params", "method_version")  # what is never averaged
CELL = (*BLOCK, "metric", *LINE, "n_bits")
DEFAULTS = " (defaults)"  # after the name of a line that has them
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Columns that results may have, and their means.
_OF_ORIGINS = {"trials": "max", "tuned": "max", "code_min": "min", "code_max": "max"}
GROUP_RANK = {name: rank for rank, name in enumerate((*GROUPS, ""))}  # methods no longer installed come last


def all_lines(results: pd.DataFrame, place: Sequence[str] = BLOCK) -> pd.DataFrame:
    """Return each ``LINE`` of each ``place`` (columns) of results with its ``label``, ``group``, and ``is_tuned``.

    No two in one place share a label: versions are named where one has several of a line there. A line whose settings
    were tuned on the data of its place has the name of its method, and the defaults beside it are called so.
    """
    lines = results[[*place, *LINE]].drop_duplicates(ignore_index=True)
    methods = list(zip(lines["method"], lines["params"], strict=True))
    labels = method_labels(dict.fromkeys(methods))
    n_versions = results.groupby([*place, "method", "params"])["method_version"].nunique()
    several = set(n_versions[n_versions > 1].reset_index()[["method", "params"]].itertuples(index=False, name=None))
    versions = zip(methods, lines["method_version"], strict=True)
    names = [labels[method] + f" (version {version})" * (method in several) for method, version in versions]
    lines = lines.assign(label=names, group=_groups(lines), is_tuned=False)
    if "tuned" not in results:
        return lines
    tuned = results.groupby([*place, *LINE], as_index=False)["tuned"].max()
    is_tuned = lines.merge(tuned, how="left")["tuned"] > 0
    has_one = is_tuned.groupby([lines[key] for key in (*place, "method")]).transform("sum") == 1
    is_default = lines["label"] == lines["method"]
    label = lines["label"].mask(has_one & is_default & ~is_tuned, lines["method"] + DEFAULTS)
    return lines.assign(label=label.mask(has_one & is_tuned, lines["method"]), is_tuned=is_tuned)


def mean_over_seeds(results: pd.DataFrame) -> pd.DataFrame:
    """Average results over seeds: one row per ``CELL``, without labels, sorted by key.

    Its columns are the key, means of ``value``, ``low``, ``high`` and ``tie_sd`` (at most that of the mean value: one
    order of the database moves the scores of several seeds together), ``spread`` (the standard deviation of ``value``),
    ``n_seeds``, ``n_queries``, ``n_undefined`` and ``least_undefined`` (the most and least of a seed), those of
    `with_origins` if results have them, and ``group``, empty for methods no longer installed.
    """
    cells = (
        results.groupby(list(CELL), sort=True)
        .agg(
            value=("value", "mean"),
            tie_sd=("tie_sd", "mean"),
            n_deviations=("tie_sd", "count"),
            spread=("value", "std"),
            low=("low", "mean"),
            high=("high", "mean"),
            n_values=("value", "count"),
            n_seeds=("seed", "nunique"),
            n_queries=("n_queries", "first"),
            n_undefined=("n_undefined", "max"),
            least_undefined=("n_undefined", "min"),
            **{name: (name, mean) for name, mean in _OF_ORIGINS.items() if name in results},
        )
        .reset_index()
    )
    n_values, n_deviations = cells.pop("n_values"), cells.pop("n_deviations")
    tie_sd = cells["tie_sd"].where(n_values == n_deviations)  # else it would be that of other seeds' mean
    return cells.assign(tie_sd=tie_sd, group=_groups(cells))


def signs_of(metrics: "pd.Series[str]") -> "pd.Series[float]":
    """Return -1 for each metric of errors, of which the least is the best, else 1."""
    signs = {name: -1.0 if is_error(name) else 1.0 for name in metrics.unique()}
    return metrics.map(signs).astype(float)


def main_lines(cells: pd.DataFrame, everything: pd.DataFrame) -> pd.DataFrame:
    """Keep one ``LINE`` of each method in each block and metric, never chosen by scores: the first with values there.

    The order is the same in all metrics, code lengths, tables and figures, since it is that of ``everything``, the
    cells of all results: settings that were tuned on these data, the defaults, parameters of a preset, others; then the
    newest version, the most cells, the most seeds, and the fewest changed parameters.
    """
    line = [*BLOCK, *LINE]
    everything = everything.assign(is_untuned=1 - everything["tuned"].gt(0) if "tuned" in everything else 1)
    lines = everything.groupby(line, as_index=False).agg(
        n_cells=("n_bits", "size"),
        n_bits=("n_bits", "first"),
        n_seeds=("n_seeds", "sum"),
        is_untuned=("is_untuned", "min"),
    )
    settings = pd.MultiIndex.from_frame(lines[["method", "params", "n_bits"]])
    ranks = {setting: rank_settings(*setting) for setting in settings.unique()}
    lines[["rank", "n_changed"]] = [ranks[setting] for setting in settings]
    order = ["is_untuned", "rank", "method_version", "n_cells", "n_seeds", "n_changed", "params"]
    lines = lines.sort_values(order, ascending=[True, True, False, False, False, True, True])
    placed = cells.merge(lines[line].assign(place=range(len(lines))))
    places = placed.groupby([*BLOCK, "metric", "method"])["place"]
    placed = placed.assign(n_lines=places.transform("nunique"))
    return placed[placed["place"] == places.transform("min")].drop(columns="place")


def rank_settings(method: str, params: str, n_bits: int) -> tuple[int, int]:
    """Rank parameters (JSON) at a code length, and count changes: 0 the defaults, 1 those of a preset, 2 others."""
    card, changed = known_card(method), changed_params(method, params)
    if card is None:
        return 2, len(changed)
    if not changed:
        return 0, 0
    presets = [card.preset(name, n_bits).items() for name in card.presets]
    changes = [{key: value for key, value in preset if card.params.get(key) != value} for preset in presets]
    return 1 if changed in changes else 2, len(changed)


def method_labels(methods: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the label of each method with all its parameters (JSON): the name, and what is not a default.

    Where that leaves two alike, also the defaults that differ; "?" where a line lacks a parameter.
    """
    names = {line: own_shown(line[1]).get("label", line[0]) for line in methods}
    n_methods = Counter(name for _, name in {(method, name) for (method, _), name in names.items()})
    names = {line: f"{name} ({line[0]})" if n_methods[name] > 1 else name for line, name in names.items()}
    labels = {line: _named(name, changed_params(*line)) for line, name in names.items()}
    alike = defaultdict(list)
    for line, label in labels.items():
        alike[label].append(line)
    for label, lines in alike.items():
        settings = [json.loads(params) for _, params in lines]
        keys = sorted({key for params in settings for key in params})
        texts = [{key: json.dumps(params[key]) if key in params else "?" for key in keys} for params in settings]
        differing = [key for key in keys if len({text[key] for text in texts}) > 1]
        for line, text in zip(lines, texts, strict=True):
            labels[line] = _named(label, {key: text[key] for key in differing})
    return labels


def changed_params(method: str, params: str) -> dict[str, Any]:
    """Return the parameters (JSON) that are not a method's defaults; all of them if it is not installed.

    Digests of the pairs that users' own codes ignore are not shown.
    """
    card = known_card(method)
    defaults, shown = card.params if card else {}, own_shown(params)
    unshown = {*shown, *(OWN if "label" in shown else ())}
    digests = {key: "left-out" for key in left_out(params) if key in ("exclude_same_id", "groups")}
    return {
        key: value
        for key, value in (json.loads(params) | digests).items()
        if key not in unshown and (key not in defaults or defaults[key] != value)
    }


def own_shown(params: str) -> dict[str, Any]:
    """Return what users said of their own codes, such as a label, from parameters (JSON)."""
    if '"codes"' not in params:
        return {}
    settings = json.loads(params)
    return {key: settings[key] for key in SHOWN if key in settings} if settings.get("codes") == OWN["codes"] else {}


def common_settings(cells: pd.DataFrame) -> dict[str, Any]:
    """Return the non-default settings, by name, that at least two ``LINE`` share.

    All lines whose methods have such a parameter must agree on it.
    """
    default, values = object(), defaultdict(list)
    for method, params, _ in set(cells[list(LINE)].itertuples(index=False, name=None)):
        card, changed = known_card(method), changed_params(method, params)
        for key in {**(card.params if card else {}), **changed}:
            values[key].append(changed.get(key, default))
    return {
        key: first
        for key, (first, *others) in sorted(values.items())
        if others and first is not default and all(value == first for value in others)
    }


def _groups(lines: pd.DataFrame) -> pd.Series:
    settings = pd.MultiIndex.from_frame(lines[["method", "params"]])
    groups = {setting: _group(*setting) for setting in settings.unique()}
    return pd.Series([groups[setting] for setting in settings], lines.index, dtype=object)


def _group(method: str, params: str) -> str:
    card = known_card(method)
    return card.group if card else own_shown(params).get("group", "")


def known_card(method: str) -> MethodCard | None:
    """Return the card of a method; None if it is not installed or its plug-in is broken."""
    try:
        return method_card(method) if method in method_names() else None
    except HashbenchError:
        return None


def draws(method: str, params: str) -> bool:
    """Return whether a method draws at random, so that it needs several seeds; users' own codes do unless they said so.

    So do those of methods that are no longer installed.
    """
    card = known_card(method)
    return "random_state" in card.params if card else "draws_nothing" not in own_shown(params)


def _named(name: str, params: Mapping[str, Any]) -> str:
    return " ".join([name, *starmap(setting_text, params.items())])


def setting_text(key: str, value: Any) -> str:
    """Write a parameter for people; a text with line breaks or other control characters as in JSON."""
    text = str(value)
    return f"{key}={json.dumps(text) if _CONTROL.search(text) else text}"


ALL_SEEN = "all classes seen"
SCOPES = {("unseen", "unseen"): "unseen", ("unseen", "all"): "unseen among all", ("all", "all"): "all among all"}
_WHOLE = 8  # digits of a fingerprint, see `hashbench.dataset.Dataset.fingerprint`
PLACE = ("base", "features", "n_unseen")  # what is shown together


def is_fold(dataset: str) -> bool:
    """Return whether a dataset is a fold with unseen classes."""
    return split_name(dataset)[1] is not None


def without_folds(results: pd.DataFrame, named: Sequence[str] = ()) -> pd.DataFrame:
    """Leave out datasets with unseen classes, except those named (also as NAME:FEATURES)."""
    datasets = {name.partition(":")[0] for name in named}
    left_out = [name for name in results["dataset"].unique() if name not in datasets and is_fold(name)]
    return results[~results["dataset"].isin(left_out)]


def bases(results: pd.DataFrame) -> pd.DataFrame:
    """Rename datasets with unseen classes to the dataset they are made of."""
    names = {name: split_name(name)[0] for name in results["dataset"].unique()}
    return results.assign(dataset=results["dataset"].map(names))


def lines_of_folds(lines: pd.DataFrame) -> pd.DataFrame:
    """Return the lines (`hashbench.reports.aggregate.all_lines`) of datasets with unseen classes, each once."""
    return lines[lines["dataset"].map(is_fold)].drop_duplicates(list(LINE)).drop(columns=list(BLOCK))


def fold_cells(results: pd.DataFrame, *, has_variants: bool = False) -> pd.DataFrame:
    """Average over seeds, then over folds, and add scores of training on all classes; there may be no rows.

    Unless ``has_variants``, one line of each method is kept. Returns the columns of `mean_over_seeds`, one row per
    scope, line and code length. ``dataset`` is without fold, ``spread`` is over folds, ``folds`` names them. ``base``,
    ``n_unseen`` and ``scope`` (one of ``SCOPES``, or ``ALL_SEEN``) identify a row; those of ``ALL_SEEN`` are of the
    base dataset, once for every ``n_unseen``, of the same lines.

    Folds are averaged that are parts of one content of the base dataset, which the first digits of a fingerprint
    identify; where there are several contents, ``dataset`` and ``base`` name it, as ``digits@cecf02ca``. A fold whose
    rows are of two contents is left out, as either could belong to the other folds.
    """
    cells = mean_over_seeds(results).assign(whole=lambda frame: frame["dataset_fingerprint"].str[:_WHOLE])
    contents = cells.groupby(["dataset", "features", "metric", "whole"])["dataset_fingerprint"]
    cells = cells[contents.transform("nunique") == 1]
    splits = [
        (name, base, split.n_classes, SCOPES[split.queries, split.database], split.fold, split.name_of_all(base))
        for name in cells["dataset"].unique()
        for base, split in [split_name(name)]
        if split
    ]
    columns = ["dataset", "base", "n_unseen", "scope", "fold", "over_folds"]
    folds = cells.merge(pd.DataFrame(splits, columns=columns))
    if folds.empty:
        return folds
    place = ["base", "features", "whole"]
    suffixes = folds[place].drop_duplicates()
    several = suffixes.duplicated(["base", "features"], keep=False)
    suffixes["suffix"] = ("@" + suffixes["whole"]).where(several, "")
    folds = folds.merge(suffixes)
    folds = folds.assign(base=folds["base"] + folds["suffix"], over_folds=folds["over_folds"] + folds["suffix"])
    folds = _over_folds(folds)
    if not has_variants:
        named = folds.assign(dataset=folds["base"] + "-" + folds["n_unseen"].astype(str), dataset_fingerprint="")
        folds = folds.merge(main_lines(named, named)[[*PLACE, "metric", *LINE]].drop_duplicates())
    beside = folds[[*PLACE, "metric", *LINE, "n_bits"]].drop_duplicates()
    seen = cells.assign(base=cells["dataset"]).merge(suffixes)  # of the content that the folds are parts of
    seen = seen.assign(base=seen["base"] + seen["suffix"], scope=ALL_SEEN, folds="").merge(beside)
    return pd.concat([folds, seen], ignore_index=True).drop(columns=["whole", "suffix"])


def most_folds(folds: "pd.Series[str]") -> str:
    """Return the folds that most rows of those with the most folds have, such as ``"0, 1, 2"``."""
    n_folds = folds.str.count(",")
    return str(folds[n_folds == n_folds.max()].mode().iloc[0])


def _over_folds(cells: pd.DataFrame) -> pd.DataFrame:
    cells = cells.sort_values("fold").assign(dataset=cells["over_folds"], seed=cells["fold"])
    contents = cells.groupby(["dataset", "features", "metric"])["dataset_fingerprint"]
    cells["dataset_fingerprint"] = contents.transform(lambda prints: " ".join(prints.unique()))
    folds = cells.groupby(list(CELL), as_index=False).agg(
        base=("base", "first"),
        n_unseen=("n_unseen", "first"),
        scope=("scope", "first"),
        n_seeds=("n_seeds", "min"),
        folds=("fold", lambda numbers: ", ".join(map(str, numbers))),
    )
    return mean_over_seeds(cells).drop(columns="n_seeds").merge(folds)

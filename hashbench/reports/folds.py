"""Classes that training does not see: means over folds, beside the scores where training saw all classes."""

from collections.abc import Sequence

import pandas as pd

from hashbench.reports.aggregate import BLOCK, CELL, LINE, main_lines, mean_over_seeds
from hashbench.unseen import split_name

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

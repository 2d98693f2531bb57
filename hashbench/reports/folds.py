"""Classes that training does not see: means over folds, beside the scores where training saw all classes."""

from collections.abc import Sequence

import pandas as pd

from hashbench.reports.aggregate import CELL, LINE, main_lines, mean_over_seeds
from hashbench.unseen import split_name

ALL_SEEN = "all classes seen"
SCOPES = {("unseen", "unseen"): "unseen", ("unseen", "all"): "unseen among all", ("all", "all"): "all among all"}
_WHOLE = 8  # digits of a fingerprint, see `hashbench.dataset.Dataset.fingerprint`
PLACE = ("base", "features", "n_unseen")  # what is shown together


def without_folds(results: pd.DataFrame, named: Sequence[str] = ()) -> pd.DataFrame:
    """Leave out datasets with unseen classes, but those of the names given (also NAME:FEATURES)."""
    asked = {name.partition(":")[0] for name in named}
    left_out = [name for name in results["dataset"].unique() if name not in asked and split_name(name)[1]]
    return results[~results["dataset"].isin(left_out)]


def bases(results: pd.DataFrame) -> pd.DataFrame:
    """Call datasets with unseen classes by what they are made of, so that they are chosen by its name."""
    names = {name: split_name(name)[0] for name in results["dataset"].unique()}
    return results.assign(dataset=results["dataset"].map(names))


def fold_cells(results: pd.DataFrame, *, has_variants: bool = False) -> pd.DataFrame:
    """Average over seeds, then over folds, and put what training saw all classes of beside it; perhaps no rows.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.store.results.read_results` gives.
    has_variants : bool, optional
        Whether all lines of a method are kept, not one of each.

    Returns
    -------
    DataFrame
        Columns of `mean_over_seeds`, one row a scope, line and code length. ``dataset`` is without fold, ``spread`` is
        over folds, ``folds`` names them. ``base``, ``n_unseen`` and ``scope``, of ``SCOPES`` or ``ALL_SEEN``, say what
        a row is of; those of ``ALL_SEEN`` are of the base dataset, once for every ``n_unseen``, of the same lines.
        Folds go together that are parts of one content of it, which the first digits of a fingerprint tell; where
        there are several, ``dataset`` and ``base`` say which, as ``digits@cecf02ca``. A fold whose rows are of two
        contents of its own is left out: which of them go with other folds is not known.
    """
    cells = mean_over_seeds(results).assign(whole=lambda all_: all_["dataset_fingerprint"].str[:_WHOLE])
    of_one = cells.groupby(["dataset", "features", "metric", "whole"])["dataset_fingerprint"]
    cells = cells[of_one.transform("nunique") == 1]
    parted = [(name, *split_name(name)) for name in cells["dataset"].unique()]
    of_folds = [
        (name, base, one.n_classes, SCOPES[one.queries, one.database], one.fold, one.name_of_all(base))
        for name, base, one in parted
        if one
    ]
    columns = ["dataset", "base", "n_unseen", "scope", "fold", "over_folds"]
    folds = cells.merge(pd.DataFrame(of_folds, columns=columns))
    if folds.empty:
        return folds
    place = ["base", "features", "whole"]
    known = folds[place].drop_duplicates()
    several = known.duplicated(["base", "features"], keep=False)
    known["of"] = ("@" + known["whole"]).where(several, "")
    folds = folds.merge(known)
    folds = _over_folds(folds.assign(base=folds["base"] + folds["of"], over_folds=folds["over_folds"] + folds["of"]))
    if not has_variants:
        named = folds.assign(dataset=folds["base"] + "-" + folds["n_unseen"].astype(str), dataset_fingerprint="")
        folds = folds.merge(main_lines(named, named)[[*PLACE, "metric", *LINE]].drop_duplicates())
    beside = folds[[*PLACE, "metric", *LINE, "n_bits"]].drop_duplicates()
    seen = cells.assign(base=cells["dataset"]).merge(known)  # of the content that the folds are parts of
    seen = seen.assign(base=seen["base"] + seen["of"], scope=ALL_SEEN, folds="").merge(beside)
    return pd.concat([folds, seen], ignore_index=True).drop(columns=["whole", "of"])


def most_folds(folds: "pd.Series[str]") -> str:
    """Give the folds that most rows of those with the most folds are of, such as ``"0, 1, 2"``."""
    n_folds = folds.str.count(",")
    return str(folds[n_folds == n_folds.max()].mode().iloc[0])


def _over_folds(cells: pd.DataFrame) -> pd.DataFrame:
    """Average means over seeds, a row a fold, over folds."""
    cells = cells.sort_values("fold").assign(dataset=cells["over_folds"], seed=cells["fold"])
    contents = cells.groupby(["dataset", "features", "metric"])["dataset_fingerprint"]
    cells["dataset_fingerprint"] = contents.transform(lambda ones: " ".join(ones.unique()))
    known = cells.groupby(list(CELL), as_index=False).agg(
        **{key: (key, "first") for key in ("base", "n_unseen", "scope")},
        n_seeds=("n_seeds", "min"),
        folds=("fold", lambda ones: ", ".join(map(str, ones))),
    )
    return mean_over_seeds(cells).drop(columns="n_seeds").merge(known)

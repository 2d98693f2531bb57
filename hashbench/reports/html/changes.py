"""Changes since another commit: in words, and row by row."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hashbench.reports.diff import OF_SEEDS, Diff
from hashbench.reports.diff_text import footnotes, headline, summarise
from hashbench.reports.html.content import coded, whole
from hashbench.reports.ties import ANSWERS


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
    rows = diff.rows[diff.rows["status"] != "unchanged"]
    comparable = diff.rows[diff.rows["status"].isin(["changed", "unchanged"])]
    side = np.sign(comparable["difference"])
    by_seeds = comparable.assign(side=side).groupby([*OF_SEEDS, "side"], dropna=False)["side"].transform("size")
    seeds = by_seeds.astype(str) + " of " + comparable.groupby(OF_SEEDS)["seed"].transform("size").astype(str)
    line = rows.groupby(["data", "label"], sort=False).ngroup()
    order = pd.Categorical(rows["status"], ["changed", "not comparable", "new", "gone"], ordered=True).codes
    rows = rows.assign(
        seeds=seeds.where(rows["status"] == "changed", "").reindex(rows.index, fill_value=""), line=line, order=order
    )
    rows = rows.sort_values(["line", "order"], kind="stable")
    numbers = {
        "old": rows["value_old"],
        "new": rows["value_new"],
        "p": rows["p_holm"],
        "low": rows["low"],
        "high": rows["high"],
    }
    texts = rows.assign(ties=rows["ties"].map(ANSWERS).fillna(""), other=rows["other"].str.replace(" -> ", " → "))
    return {
        **{name: whole(column.astype(float)) for name, column in numbers.items()},
        "bits": rows["n_bits"].tolist(),
        "seed": rows["seed"].tolist(),
        **{
            name: coded(texts[name])
            for name in ("status", "data", "label", "metric", "seeds", "ties", "marks", "other")
        },
    }

"""What ties leave open between two values, the marks of cells, and the notes below them, for all views and the diff.

There are three questions of ties. A shuffle of the database moves a value by its ``tie_sd``, a standard deviation. A
given order under a real script: `hashbench.reports.explain`. The worst case: ``low`` and ``high``, each query's ties
broken separately. Only `decide` decides marks.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hashbench.errors import counted
from hashbench.reports.aggregate import BLOCK, LINE, known_card, most_folds
from hashbench.reports.uncertainty import IN_WORDS, SEEDS, UNTESTED, draw_at_random
from hashbench.scoring.comparison import ALPHA

_N_DEVIATIONS = 3
_DIGIT = 5e-7  # results have six decimals: a deviation shown as 0 is less than this

EVERY_ORDER, SHUFFLE, OPEN, UNKNOWN = "every order", "shuffle", "open", "unknown"
ANSWERS = {  # from strong to weak
    EVERY_ORDER: "apart in every order",
    SHUFFLE: "apart under a shuffle",
    OPEN: "not apart under a shuffle",
    UNKNOWN: "unknown",
}


class Score(NamedTuple):
    """A value and what ties could make of it: numbers, or arrays of them."""

    value: Any
    tie_sd: Any
    low: Any
    high: Any


def compare(first: Any, second: Any) -> Any:
    """Return how far ties leave the order of two values as it is, as keys of ``ANSWERS``.

    Each side has attributes ``value``, ``tie_sd``, ``low`` and ``high``: numbers, or arrays or columns of them, of one
    metric.

    - ``every order``: the ranges do not meet.
    - ``shuffle``: the values are more than three times the sum of their deviations apart, which is the largest
      deviation that their difference can have under one order of the database.
    - ``open``: they are not.
    - ``unknown``: ranges meet, or are unknown, and a deviation is not known.
    """
    first, second = (
        Score(*(np.asarray(getattr(side, name), dtype=float) for name in Score._fields)) for side in (first, second)
    )
    is_apart = (first.low > second.high) | (first.high < second.low)
    difference = np.abs(first.value - second.value).round(6)
    both = reach(first) + reach(second)
    return np.select([is_apart, np.isnan(both + difference), difference > both], [EVERY_ORDER, UNKNOWN, SHUFFLE], OPEN)


def reach(score: Any) -> Any:
    """Return how far a shuffle may move a value: three deviations, at least what six decimals hide if order matters.

    Two values are apart under a shuffle if their difference is more than the sum of both.
    """
    least = np.where(score.low == score.high, 0.0, score.tie_sd)
    return _N_DEVIATIONS * np.where(score.low < score.high, np.maximum(score.tie_sd, _DIGIT), least)


OTHERS = "the others"  # what is tested against, unless one was named
SIGNS = {  # in the order in which they stand beside a value, with what it is compared with, and tests are corrected for
    "†": "a shuffle of the database may reverse this value and {best}.",
    "★": "may be the best: each best of a column is marked with about 95 % confidence ({about}). What is tested and "
    "not marked is shown not to be the best; what is marked is not shown to be equal. Each column stands for itself.",
    "‡": f"tested, and not shown to differ from {{against}} (p >= {ALPHA}, corrected by Holm's method).",
    "°": "not tested against {against}:",  # and why
    "§": "one seed of a method that draws at random; the value is of these codes only.",
    "¶": "a mean over other folds than most of its column, so not compared.",
}
_MOST_NAMES = 4  # of methods in a sentence


def add_marks(cells: pd.DataFrame) -> pd.DataFrame:
    """Add ``marks``, the ``SIGNS`` of each cell."""
    is_marked, marks = decide(cells), pd.Series("", index=cells.index)
    for sign in SIGNS:
        marks += np.where(is_marked[sign], sign, "")
    return cells.assign(marks=marks)


def decide(cells: pd.DataFrame) -> "dict[str, pd.Series[bool]]":
    """Decide which cells have which of the ``SIGNS``.

    Columns that cells may lack are ``n_seeds``, ``folds``, and those of `add_uncertainty`. One
    seed of a method that draws at random is marked where other lines of its block have several.
    """
    nowhere = pd.Series(False, index=cells.index)
    is_single = nowhere
    if "n_seeds" in cells and "folds" not in cells:
        has_several = cells.groupby(list(BLOCK))["n_seeds"].transform("max") > 1
        is_single = has_several & (cells["n_seeds"] == 1) & draw_at_random(cells)
    return {
        "†": cells["ties"] == OPEN,
        "★": cells.get("may_be_best", nowhere),
        "‡": cells.get("is_unshown", nowhere),
        "°": cells["untested"] != "" if "untested" in cells else nowhere,
        "§": is_single,
        "¶": ~is_of_most_folds(cells),
    }


def explain(cells: pd.DataFrame, best: str = "the best") -> dict[str, str]:
    """Explain each sign of marked cells, in the order of ``SIGNS``; ``best`` is what they are compared with."""
    used, against = set("".join(cells["marks"])), cells["against"].iloc[0] if "against" in cells else OTHERS
    if against != OTHERS and cells["p_value"].notna().any():
        used.add("‡")  # what has none differs
    words = {"best": best, "against": against}
    if "★" in used:
        tested = cells[cells["p_value"].notna()]
        drawn = tested.loc[draw_at_random(tested), "n_seeds"]
        seeds = [seeds_in_words(drawn)] if len(drawn) else []
        words["about"] = "; ".join([*seeds, bases_in_words(tested)])
    key = {sign: text.format(**words) for sign, text in SIGNS.items() if sign in used}
    if "°" in key:
        reasons = [text for reason, text in UNTESTED.items() if (cells["untested"] == reason).any()]
        key["°"] += f" {'; or '.join(reasons)}."
    return key


def is_of_most_folds(cells: pd.DataFrame) -> "pd.Series[bool]":
    """Return whether each cell is a mean over as many folds as most of its column, or over none."""
    if "folds" not in cells:
        return pd.Series(True, index=cells.index)
    column = [cells[key] for key in (*BLOCK, "metric", "n_bits", "rivals")]
    is_most: pd.Series[bool] = cells["folds"] == cells.groupby(column)["folds"].transform(most_folds)
    return is_most


def notes_of(cells: pd.DataFrame) -> list[str]:
    """Return sentences on what readers of some cells must know of them, in any view."""
    known = cells[cells["from_"].notna()] if "from_" in cells else cells[:0]
    tests = [f"Tests: {bases_in_words(known)}."] if len(known) else []
    return [*tests, *_notes_on_holes(cells), *_notes_on_ties(cells), *notes_on_code(cells)]


def _notes_on_holes(cells: pd.DataFrame) -> list[str]:
    """Name the code lengths at which too few methods were run to name the best."""
    few = cells[~cells["is_whole"] & cells["value"].notna()] if "is_whole" in cells else cells[:0]
    counts = few.drop_duplicates("n_bits").sort_values("n_bits")[["n_bits", "n_rivals", "n_block"]]
    lengths = [f"{n} of {of} methods at {n_bits} bits" for n_bits, n, of in counts.itertuples(index=False)]
    return [f"No best is named where too few methods were run: {', '.join(lengths)}."] if lengths else []


def _notes_on_ties(cells: pd.DataFrame) -> list[str]:
    """Count the cells of which it is unknown what a shuffle may do."""
    n_unknown, n_compared = int((cells["ties"] == UNKNOWN).sum()), int((cells["ties"] != "").sum())
    return [f"† unknown, as rows lack tie_sd: {n_unknown} of {counted(n_compared, 'cell')}."] if n_unknown else []


def notes_on_code(cells: pd.DataFrame) -> list[str]:
    """Name the methods with lines of an earlier version, and those of which a line has rows of different code."""
    cards = {method: known_card(method) for method in cells["method"].unique()}
    lines = zip(cells["method"], cells["method_version"], strict=True)
    older = sorted({method for method, version in lines if (card := cards[method]) and version < card.version})
    notes = [f"Made by earlier versions: {', '.join(older)}."] if older else []
    if mixed := mixed_methods(cells):
        notes.append(f"Some lines mix rows that different code of the method made: {', '.join(mixed)}. Rerun them.")
    return notes


def mixed_methods(cells: pd.DataFrame) -> list[str]:
    """Return the methods of which a line has rows of different code."""
    if "code_min" not in cells:
        return []
    lines = cells.groupby(list(LINE))
    is_mixed = lines["code_min"].transform("min") < lines["code_max"].transform("max")
    return sorted(set(cells["method"][is_mixed]))


def describe_hidden(cells: pd.DataFrame) -> str:
    """Return a sentence that names the methods of which `main_lines` left lines out; empty if there are none."""
    names = sorted(set(cells.loc[cells["n_lines"] > 1, "method"])) if "n_lines" in cells else []
    methods = ", ".join(names) if len(names) <= _MOST_NAMES else f"{len(names)} methods"
    return f"Other settings or versions of {methods} are left out: --variants shows all." if names else ""


def queries_in_words(cells: pd.DataFrame) -> str:
    """Return how many queries the means of cells are over, such as ``295 of 300 queries``."""
    n_queries = int(cells["n_queries"].iloc[0])
    n_scored = n_queries - int(cells["n_undefined"].max()), n_queries - int(cells["least_undefined"].min())
    some = " to ".join(f"{number:,}" for number in dict.fromkeys(n_scored))
    return f"{n_queries:,} queries" if n_scored[0] == n_queries else f"{some} of {n_queries:,} queries"


def seeds_in_words(n_seeds: Iterable[int]) -> str:
    """Return numbers of seeds in words, such as ``1 or 3 seeds``."""
    *fewer, most = sorted(set(n_seeds))
    numbers = f"{', '.join(map(str, fewer))} or {most}" if fewer else str(most)
    return f"{numbers} seed{'' if numbers == '1' else 's'}"


def bases_in_words(cells: pd.DataFrame) -> str:
    """Return what intervals and tests of cells are over; lines are named for which that is less than for others."""
    bases = [basis for basis in IN_WORDS if (cells["basis"] == basis).any()]
    parts = [IN_WORDS[basis] for basis in bases[:1]]
    for basis in bases[1:]:
        few = sorted(cells.loc[cells["basis"] == basis, "label"].unique())
        named = ", ".join(few) if len(few) <= _MOST_NAMES else f"{len(few)} lines"
        why = ", as the data folder lacks their scores of single queries" * (basis == SEEDS)
        parts.append(f"{named}: {IN_WORDS[basis]}{why}")
    return "; ".join(parts)

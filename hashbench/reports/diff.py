"""What changed between two sides of results, whether it matters, and how it is printed."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd

from hashbench._typing import FloatArray, Progress, silent
from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import method_labels, signs_of
from hashbench.reports.formatting import NAME_WIDTH, Records, Table, markdown_table, markdown_text, p_text, wrapped
from hashbench.reports.marks import ANSWERS, OPEN, Score, add_marks, explain
from hashbench.reports.marks import compare as compare_ties
from hashbench.reports.revisions import Side, read_sides
from hashbench.scoring.comparison import ALPHA, holm, interval
from hashbench.scoring.metrics import get_metric
from hashbench.store.result_rows import COLUMNS, Row
from hashbench.store.score_cache import find_scores

KEY = list(COLUMNS[: COLUMNS.index("value")])  # of rows, without the content
CONTENT = "dataset_fingerprint"
OF_SEEDS = [name for name in (*KEY, CONTENT) if name != "seed"]  # what the seeds of a row share
LISTED = ("changed", "not comparable", "new", "gone")
STATUS = (*LISTED, "unchanged")
CHECK_NAMES = "Check the names of folders, files and metrics; hashbench compare compares methods."
_FIELDS, _TEST = COLUMNS[len(KEY) :], ["p_value", "low", "high", "p_holm"]
_PARTNER = ["same", "nth"]
_OF_CHANGES = ["difference", "ties", "p_value", "p_holm", "low", "high"]


@dataclass(frozen=True, eq=False)
class Diff:
    """All rows of two sides.

    ``rows`` has the key of each row, its ``status`` (one of ``STATUS``), its ``label`` and ``data`` in words, and each
    field of both sides, as ``value_old`` and ``value_new``; ``data`` has the content where there are several. The
    changes of greatest loss come first, then rows by key.
    Where both sides have a row, there is ``other``, why the two are not comparable, or empty; the ``difference`` of
    values; and the ``loss``, how much worse the new one is. Changes have what ``ties`` leave open between the two, and
    the ``marks`` of the new one; and, with `with_tests`, ``p_value``, ``p_holm``, the 95 % interval from ``low`` to
    ``high``, and whether the two ``is_unshown`` to differ.

    Parameters
    ----------
    old_name, new_name : str
        The two sides.
    rows : DataFrame
        As above, with fields as the texts that files hold.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from hashbench import diff, run
    >>> with TemporaryDirectory() as old, TemporaryDirectory() as new:
    ...     _ = run("lsh", 12, metrics="AP", results=old), run("lsh", [12, 16], metrics="AP", results=new)
    ...     changes = diff(old, new)
    >>> changes.to_frame()[["status", "method", "n_bits"]].values.tolist()
    [['new', 'lsh', 16]]
    """

    old_name: str
    new_name: str
    rows: pd.DataFrame

    def of(self, status: str) -> pd.DataFrame:
        """Return the rows of a status."""
        return self.rows[self.rows["status"] == status]

    @property
    def counts(self) -> dict[str, int]:
        """The number of rows of each status."""
        return {status: int((self.rows["status"] == status).sum()) for status in STATUS}

    @property
    def n_tested(self) -> int:
        """Changes that were tested."""
        return int(self.rows["p_holm"].notna().sum())

    def drops(self, limit: float) -> pd.DataFrame:
        """Return the changes for the worse by more than this, whatever ties leave open, the greatest loss first."""
        changed = self.of("changed")
        return changed[changed["loss"] > limit]

    def to_frame(self, *, only_changed: bool = False) -> pd.DataFrame:
        """Return the rows that differ, numbers as float; the command's CSV has these columns.

        Parameters
        ----------
        only_changed : bool, default=False
            Whether to leave out rows that are not comparable, new or gone.

        Returns
        -------
        DataFrame
            ``status``, the key of each row, ``old`` and ``new`` value, ``other``, why they are not comparable, and
            ``dataset_fingerprint``, of both the new one. Of changes also the ``difference``, what ``ties`` leave open,
            ``p_value``, ``p_holm``, ``low`` and ``high``.
        """
        listed = LISTED[:1] if only_changed else LISTED
        rows = pd.concat([self.of(status) for status in listed], ignore_index=True)
        rows = rows.assign(**_values(rows), ties=rows["ties"].map(ANSWERS), other=rows["other"].replace("", np.nan))
        rows[_OF_CHANGES] = rows[_OF_CHANGES].where(rows["status"] == "changed")
        return rows[["status", *KEY, "old", "new", *_OF_CHANGES, "other", CONTENT]]

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in self.counts.items() if count)
        return f"<Diff {self.old_name} -> {self.new_name}: {counts or 'no results'}>"

    def over_seeds(self) -> pd.DataFrame:
        """Average over seeds the rows with two or more comparable ones of which one or more changed, by key.

        Columns are the key but the seed, ``label``, ``data``, ``old`` and ``new``, ``difference``, all rounded to six
        decimals, ``n_seeds`` and ``n_changed``.
        """
        rows = self.rows[self.rows["status"].isin(["changed", "unchanged"])]
        rows = rows.assign(is_changed=rows["status"] == "changed", **_values(rows))
        means = rows.groupby([*OF_SEEDS, "label", "data"], as_index=False).agg(
            old=("old", _mean), new=("new", _mean), n_seeds=("seed", "size"), n_changed=("is_changed", "sum")
        )
        means = means[(means["n_changed"] > 0) & (means["n_seeds"] > 1)].round({"old": 6, "new": 6})
        return means.assign(difference=(means["new"] - means["old"]).round(6) + 0.0)  # never -0.0


def _mean(values: "pd.Series[float]") -> float:
    return float(values.mean(skipna=False))


def read_diff(
    old: str, new: str | None, metrics: Sequence[str] = (), results: Path | None = None, on_progress: Progress = silent
) -> Diff:
    """Read two sides as `read_sides` does, compare them in these metrics or in all, and test each change."""
    comparison = compare(*read_sides(old, new, results), [get_metric(name).name for name in metrics])
    return with_tests(comparison, on_progress)


def compare(old: Side, new: Side, metrics: Sequence[str] = ()) -> Diff:
    """Compare the rows of two sides, in these metrics (canonical names) or in all; without tests.

    If a side is a file or the folder of a dataset, only the methods or the dataset in it are compared. Raises
    HashbenchError if nothing is left to compare, though there are results or the user named the folders or files.
    """
    scopes = [  # how many of dataset and method limit the comparison, and the values that a side has
        (side.scope, {(row.dataset, row.method)[: side.scope] for row in side.rows.values()}) for side in (old, new)
    ]

    def in_scope(side: Side) -> pd.DataFrame:
        rows = [
            row
            for row in side.rows.values()
            if all((row.dataset, row.method)[:n] in parts for n, parts in scopes if n)
            and (not metrics or row.metric in metrics)
        ]
        return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(_FIELDS, str))

    before, after = in_scope(old), in_scope(new)
    if before.empty and after.empty and any(side.rows or side.is_named for side in (old, new)):
        raise HashbenchError(
            f"there is nothing to compare: no results{' in ' * bool(metrics)}{' or '.join(metrics)} of one dataset "
            f"and method in {old.name} and {new.name}. {CHECK_NAMES}"
        )
    pairs = _with_partners(before, after), _with_partners(after, before)
    rows = pairs[0].merge(pairs[1], on=[*KEY, *_PARTNER], how="outer", suffixes=("_old", "_new"), indicator="sides")
    rows[CONTENT] = rows[f"{CONTENT}_new"].fillna(rows[f"{CONTENT}_old"])
    labels = method_labels(zip(rows["method"], rows["params"], strict=True))
    rows["label"] = [labels[line] for line in zip(rows["method"], rows["params"], strict=True)]
    data = rows["dataset"] + ":" + rows["features"]
    has_several = rows[CONTENT].groupby(data).transform("nunique") > 1
    rows["data"] = data + (" [" + rows[CONTENT] + "]").where(has_several, "")
    values = _values(rows)
    rows["difference"] = (values["new"] - values["old"]).round(6)
    loss = -rows["difference"] * signs_of(rows["metric"])
    rows["loss"] = np.where(rows["difference"].notna(), loss, np.where(values["new"].isna(), np.inf, 0.0))
    reasons = _moved(rows, "dataset_fingerprint") + ", " + _moved(rows, "method_version")
    rows["other"] = reasons.str.strip(", ")
    rows = rows.assign(status=_status(rows), is_unshown=False, **dict.fromkeys(_TEST, np.nan))
    answers = compare_ties(_score(rows, "old"), _score(rows, "new"))
    rows["ties"] = np.where(rows["status"] == "changed", answers, "")
    rows["greatest"] = rows["loss"].where(rows["status"] == "changed", -np.inf)
    order = [*KEY, CONTENT]
    rows = rows.sort_values(["greatest", *order], ascending=[False, *[True] * len(order)], ignore_index=True)
    return Diff(old.name, new.name, add_marks(rows.drop(columns=["greatest", "sides", *_PARTNER])))


def _with_partners(rows: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Add ``_PARTNER``, equal for two rows to compare: of one content, or else the nth of those without such a row."""
    keys = [pd.MultiIndex.from_frame(side[[*KEY, CONTENT]]) for side in (rows, others)]
    has_partner = keys[0].isin(keys[1])
    rows = rows.sort_values([*KEY, CONTENT]).assign(same=rows[CONTENT].where(has_partner, ""))
    return rows.assign(nth=rows.groupby([*KEY, rows["same"] == ""]).cumcount().where(rows["same"] == "", 0))


def _values(rows: pd.DataFrame) -> dict[str, "pd.Series[float]"]:
    """Return the values of both sides."""
    return {end: _score(rows, end).value for end in ("old", "new")}


def _score(rows: pd.DataFrame, end: str) -> Score:
    return Score(*(rows[f"{name}_{end}"].replace("", "nan").astype(float) for name in Score._fields))


def _moved(rows: pd.DataFrame, name: str) -> "pd.Series[str]":
    """Return from what to what a field that both sides have went, in words; empty if nowhere."""
    old, new = rows[f"{name}_old"], rows[f"{name}_new"]
    words = name.replace("_", " ") + " " + old.astype(str) + " -> " + new.astype(str)
    return words.where((rows["sides"] == "both") & (old != new), "")


def _status(rows: pd.DataFrame) -> pd.Series:
    """Return the status of each row; one that differs only by a deviation which one side lacks is unchanged."""
    differs = pd.DataFrame({name: rows[f"{name}_old"] != rows[f"{name}_new"] for name in _FIELDS})
    differs["tie_sd"] &= (rows["tie_sd_old"] != "") & (rows["tie_sd_new"] != "")
    is_changed = differs.any(axis=1)
    conditions = [rows["sides"] == "right_only", rows["sides"] == "left_only", rows["other"] != "", is_changed]
    status = np.select(conditions, ["new", "gone", "not comparable", "changed"], "unchanged")
    return pd.Series(status, index=rows.index, dtype=object)


def with_tests(diff: Diff, on_progress: Progress = silent) -> Diff:
    """Test each change with scores of every query on both sides; Holm's correction is over all of the tests."""
    changed, tests = diff.of("changed"), {}
    for number, (place, change) in enumerate(changed.iterrows(), start=1):
        if (values := _of_queries(change)) is not None:
            low, high, p_value = interval(values.mean(), values.var(ddof=1) / len(values), len(values) - 1)
            tests[place] = float(p_value), float(low), float(high)
        on_progress("changes tested", number, len(changed))
    rows = diff.rows.copy()
    rows.loc[list(tests), _TEST[:3]] = np.array([*tests.values()]).reshape(-1, 3)
    rows.loc[list(tests), "p_holm"] = holm(rows.loc[list(tests), "p_value"])
    rows["is_unshown"] = rows["p_holm"] >= ALPHA
    return replace(diff, rows=add_marks(rows))


def _of_queries(change: "pd.Series[Any]") -> FloatArray | None:
    """Return how much each query changed: new minus old where both are defined, (n_queries,).

    None if the scores of either side are not cached, or fewer than two are defined.
    """
    old, new = (find_scores(_row(change, end)) for end in ("old", "new"))
    if old is None or new is None or len(old) != len(new):
        return None
    difference = new - old
    difference = difference[~np.isnan(difference)]
    return difference if len(difference) > 1 else None


def _row(change: "pd.Series[Any]", end: str) -> Row:
    kinds = get_type_hints(Row)
    return Row(*(change[name] for name in KEY), *(kinds[name](change[f"{name}_{end}"]) for name in _FIELDS))


_LENGTHS = (50, 20, 5, 0)  # lines of a table in a comment, fewer where these make it too long
_MOST = 65_000  # characters of a comment; GitHub takes 65,536
_MOST_ROWS = 20  # of each other kind than changed, in a table on a terminal; more are counted
_ROW = {"dataset": "data", "method": "label", "bits": "n_bits", "seed": "seed", "metric": "metric"}
_CHANGED = {"old": "value_old", "new": "value_new", "change": "change", "p": "p", "95% interval": "interval"}
_MEANS = {"seeds changed": "seeds", "metric": "metric", "old": "old", "new": "new", "change": "change"}
# Title, status (without: means over seeds), and columns of a table, by heading.
_SECTIONS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("Changed", "changed", _ROW | _CHANGED),
    ("Means over seeds", "", {name: _ROW[name] for name in ("dataset", "method", "bits")} | _MEANS),
    ("Not comparable", "not comparable", _ROW | {"old": "value_old", "new": "value_new", "other": "other"}),
    ("New", "new", _ROW | {"value": "value_new"}),
    ("Gone", "gone", _ROW | {"value": "value_old"}),
)


def format_diff(diff: Diff, form: str, *, only_changed: bool = False) -> str:
    """Write a diff as a table, csv, json or markdown, without a final newline; the same bytes for the same diff.

    Markdown shows at most 50 lines per table, fewer if it would be too long for a comment; a terminal shows more than
    20 rows that are not comparable, new or gone as counts. Unchanged rows are only counted; with ``only_changed``, so
    are those that are not comparable, new or gone.
    """
    tables = {title: table for title, table in _tables(diff).items() if len(table)}
    if only_changed:
        tables = {title: tables[title] for title in ("Changed", "Means over seeds") if title in tables}
    if form == "markdown":
        head = [f"### {markdown_text(headline(diff))}", summarise(diff)]
        blocks = ([_markdown(title, table, n_lines) for title, table in tables.items()] for n_lines in _LENGTHS)
        texts = ("\n\n".join([*head, *parts, *footnotes(diff)]) for parts in blocks)
        return next((text for text in texts if len(text) < _MOST), "")
    rows = diff.to_frame(only_changed=only_changed)
    about = {"old": diff.old_name, "new": diff.new_name, "counts": diff.counts, "n_tested": diff.n_tested}
    content = about | {"rows": rows.to_dict("records"), "over_seeds": diff.over_seeds().to_dict("records")}
    p_values = {name: rows[name].map("{:.3g}".format, na_action="ignore") for name in ("p_value", "p_holm")}
    parts = [wrapped(f"{headline(diff)}: {summarise(diff)}"), *map(_plain, tables, tables.values())]
    parts += map(wrapped, footnotes(diff))
    return Records(parts, content, rows.assign(**p_values).to_dict("records"), [*rows], decimals=6).to_text(form)


def headline(diff: Diff) -> str:
    """Return the names of the two sides."""
    return f"{diff.old_name} -> {diff.new_name}"


def summarise(diff: Diff) -> str:
    """Count the rows of a diff in a sentence."""
    counts = {status: count for status, count in diff.counts.items() if count}
    if not counts:
        return "no results on either side."
    if counts.keys() == {"unchanged"}:
        return f"no differences, {counts['unchanged']} rows unchanged."
    text = ", ".join(f"{count} {status}" for status, count in counts.items())
    if counts.keys() == {"new", "gone"}:
        return f"{text}. The two sides share no row. {CHECK_NAMES}"
    changed = diff.of("changed")
    if len(changed):
        text += (
            f". Changed rows: {(changed['loss'] > 0).sum()} worse, {(changed['ties'] == OPEN).sum()} not apart under a "
            f"shuffle, {(changed['p_holm'] < ALPHA).sum()} of {diff.n_tested} tested significant for these codes"
        )
    return f"{text}."


def describe_drops(diff: Diff, limit: float) -> str:
    """Return a sentence that counts the drops beyond the limit, at least one, and names the worst."""
    drops, counts = diff.drops(limit), diff.counts
    worst = drops.iloc[0]
    return (
        f"{len(drops)} of {counts['changed'] + counts['unchanged']} comparable values are worse by more than "
        f"{limit:g}, most of all {worst['metric']} of {worst['method']} on {worst['data']} at {worst['n_bits']} bits "
        f"with seed {worst['seed']}: {worst['value_old']} -> {worst['value_new']}."
    )


def footnotes(diff: Diff) -> list[str]:
    """Return notes on how to read the columns, and on what could not be tested."""
    changed = diff.of("changed")
    signs = explain(changed.assign(against="the old value"), "the old value") if len(changed) else {}
    notes = [f"{sign}: {text}" for sign, text in signs.items()]
    if diff.n_tested:
        notes.append(
            f"p: paired t test over queries, of these codes, corrected by Holm for {diff.n_tested} tests. Interval: "
            "over queries, each change by itself."
        )
    if n_untested := len(changed) - diff.n_tested:
        notes.append(f"Not tested: {n_untested}, as scores of every query are not kept here for both sides.")
    is_other = changed["n_undefined_old"] != changed["n_undefined_new"]
    if is_other.any():
        notes.append(f"Different queries: {is_other.sum()} of the changed values are means over others than before.")
    return [" ".join(notes)] if notes else []


def _tables(diff: Diff) -> dict[str, pd.DataFrame]:
    """Return the rows of each section as text, by title."""
    rows = diff.rows
    interval = rows["low"].map("{:+.6f}".format) + rows["high"].map(" to {:+.6f}".format)
    rows = rows.assign(
        change=rows["difference"].map("{:+.6f}".format).astype(str).replace("+nan", "-") + rows["marks"],
        p=rows["p_holm"].map(p_text),
        interval=interval.where(rows["low"].notna(), "-"),
    )
    means = diff.over_seeds()
    means = means.assign(
        seeds=means["n_changed"].astype(str) + " of " + means["n_seeds"].astype(str),
        change=means["difference"].map("{:+.6f}".format),
        **{name: means[name].map("{:.6f}".format) for name in ("old", "new")},
    )
    parts = {title: rows[rows["status"] == status] if status else means for title, status, _ in _SECTIONS}
    return {
        title: parts[title][[*columns.values()]].astype(str).set_axis([*columns], axis=1)
        for title, _, columns in _SECTIONS
    }


def _plain(title: str, table: pd.DataFrame) -> str:
    """Lay out a section for a terminal; many rows are counted by dataset and method, unless they changed."""
    if title not in ("Changed", "Means over seeds") and len(table) > _MOST_ROWS:
        title += f": {len(table)} rows (--format csv lists them)"
        table = table.groupby(["dataset", "method"], sort=False).size().astype(str).reset_index(name="rows")
    return (
        f"{title}\n{Table(' | '.join(map(str, table)), table.to_dict('records'), n_left=2, width=NAME_WIDTH).to_text()}"
    )


def _markdown(title: str, table: pd.DataFrame, n_lines: int) -> str:
    """Write a table of a comment; all but the changes are folded."""
    text = markdown_table(table.columns.tolist(), table.to_numpy()[:n_lines].tolist(), n_left=2, is_padded=False)
    if len(table) > n_lines:
        text += f"\n\nand {len(table) - n_lines} more."
    if title == "Changed":
        return text
    return f"<details><summary>{title}: {len(table)}</summary>\n\n{text}\n\n</details>"

"""A diff in words: for a terminal, a pull-request comment, or another program."""

import pandas as pd

from hashbench.reports.diff import CHECK_NAMES, Diff
from hashbench.reports.formatting import NAME_WIDTH, Records, Table, markdown_table, markdown_text, p_text, wrapped
from hashbench.reports.marks import explain
from hashbench.reports.ties import OPEN
from hashbench.scoring.comparison import ALPHA

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
        texts = (_comment(diff, tables, n_lines) for n_lines in _LENGTHS)
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


def _comment(diff: Diff, tables: dict[str, pd.DataFrame], n_lines: int) -> str:
    parts = [_markdown(title, table, n_lines) for title, table in tables.items()]
    return "\n\n".join([f"### {markdown_text(headline(diff))}", summarise(diff), *parts, *footnotes(diff)])


def _markdown(title: str, table: pd.DataFrame, n_lines: int) -> str:
    """Write a table of a comment; all but the changes are folded."""
    text = markdown_table(table.columns.tolist(), table.to_numpy()[:n_lines].tolist(), n_left=2, is_padded=False)
    if len(table) > n_lines:
        text += f"\n\nand {len(table) - n_lines} more."
    if title == "Changed":
        return text
    return f"<details><summary>{title}: {len(table)}</summary>\n\n{text}\n\n</details>"

"""A diff in words: for a terminal, a pull-request comment, or another program."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from hashbench.reports.aggregate import method_labels
from hashbench.reports.diff import Change, Diff, about_other_methods
from hashbench.reports.formatting import json_text, markdown_table, markdown_text, plain_table, sheet_text, wrapped
from hashbench.reports.ties import ANSWERS, OPEN
from hashbench.scoring.comparison import ALPHA
from hashbench.store.result_rows import COLUMNS, NUMBERS, Row

_KEY = COLUMNS[:7]
_LENGTHS = (50, 20, 5, 0)  # lines of a table in a comment, fewer where these make it too long
_MOST = 65_000  # characters of a comment; GitHub takes 65,536
_MOST_ROWS = 20  # of each other kind than changed, in a table on a terminal; more are counted
_ROW_HEADER = ["dataset", "method", "bits", "seed", "metric"]
_CHANGE_HEADER = [*_ROW_HEADER, "old", "new", "change", "ties", "p", "95% interval"]

Section = tuple[str, list[str], list[list[str]]]


def format_diff(diff: Diff, form: str, *, only_changed: bool = False) -> str:
    """Write a diff as a table, csv, json or markdown, without a final newline; the same bytes for the same diff.

    Markdown shows at most 50 lines per table, fewer if it would be too long for a comment; a terminal shows more than
    20 rows that are not comparable, new or gone as counts. Unchanged rows are only counted; with ``only_changed``, so
    are those that are not comparable, new or gone.
    """
    if form == "csv":
        return _csv(diff, only_changed).rstrip("\n")
    if form == "json":
        return json_text(_content(diff, only_changed))
    sections = _sections(diff, only_changed)
    if form == "markdown":
        texts = (_comment(diff, sections, n_lines) for n_lines in _LENGTHS)
        return next((text for text in texts if len(text) < _MOST), "")
    counted = [_counted(section) for section in sections]
    tables = [f"{title}\n{plain_table(header, lines, n_left=2, is_wrapped=True)}" for title, header, lines in counted]
    return "\n\n".join([wrapped(f"{headline(diff)}: {summarise(diff)}"), *tables, *map(wrapped, footnotes(diff))])


def summarise(diff: Diff) -> str:
    """Count the rows of a diff in a sentence."""
    counts = {name: count for name, count in _counts(diff).items() if count}
    if not counts:
        return "no results on either side."
    if counts.keys() == {"unchanged"}:
        return f"no differences, {len(diff.unchanged)} rows unchanged."
    text = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items())
    if diff.new and diff.gone and not (diff.changed or diff.incomparable or diff.unchanged):
        advice = about_other_methods(diff.gone, diff.new)
        advice = advice or "Check that they are results of the same datasets and methods."
        return f"{text}. The two sides share no row. {advice}"
    if diff.changed:
        n_worse = sum(change.loss > 0 for change in diff.changed)
        n_open = sum(change.ties == OPEN for change in diff.changed)
        n_significant = sum(change.is_significant for change in diff.changed)
        text += (
            f". Changed rows: {n_worse} worse, {n_open} not apart under a shuffle, "
            f"{n_significant} of {diff.n_tested} tested significant for these codes"
        )
    return f"{text}."


def describe_drops(diff: Diff, limit: float) -> str:
    """Return a sentence that counts the drops beyond the limit, at least one, and names the worst."""
    drops = diff.drops(limit)
    old, row = drops[0].old, drops[0].new
    return (
        f"{len(drops)} of {len(diff.changed) + len(diff.unchanged)} comparable values are worse by more than "
        f"{limit:g}, most of all {row.metric} of {row.method} on {row.dataset}:{row.features} at {row.n_bits} bits "
        f"with seed {row.seed}: {old.value} -> {row.value}."
    )


def _comment(diff: Diff, sections: Iterable[Section], n_lines: int) -> str:
    tables = [_markdown(section, n_lines) for section in sections]
    return "\n\n".join([f"### {markdown_text(headline(diff))}", summarise(diff), *tables, *footnotes(diff)])


def headline(diff: Diff) -> str:
    """Return the names of the two sides."""
    return f"{diff.old_name} -> {diff.new_name}"


def _counts(diff: Diff) -> dict[str, int]:
    return {
        "changed": len(diff.changed),
        "not_comparable": len(diff.incomparable),
        "new": len(diff.new),
        "gone": len(diff.gone),
        "unchanged": len(diff.unchanged),
    }


def footnotes(diff: Diff) -> list[str]:
    """Return notes on how to read the columns, and on what could not be tested."""
    notes = []
    if diff.n_tested:
        notes.append(
            f"p: paired permutation test over queries, of these codes, with {diff.n_resamples:,} resamples, corrected "
            f"by Holm for {diff.n_tested} tests; * below {ALPHA}. Interval: over queries, each change by itself."
        )
    if diff.n_tested and not diff.can_find_significance:
        notes.append(
            "With so many tests and so few resamples no p value can fall below the threshold: "
            "compare fewer metrics (--metric) or take more resamples (--resamples)."
        )
    if diff.n_resamples and diff.n_tested < len(diff.changed):
        notes.append(
            f"Not tested: {len(diff.changed) - diff.n_tested}, as scores of every query are not kept here for both "
            "sides. hashbench run keeps scores."
        )
    recounted = [change for change in diff.changed if _n_counted(change.old) != _n_counted(change.new)]
    if recounted:
        old, new = recounted[0].old, recounted[0].new
        notes.append(
            f"Different queries: {len(recounted)} of the changed values are means over another number of queries than "
            f"before, such as {new.metric} of {new.method} at {new.n_bits} bits, {_n_counted(old):,} -> "
            f"{_n_counted(new):,}."
        )
    return [" ".join(notes)] if notes else []


def _n_counted(row: Row) -> int:
    return row.n_queries - row.n_undefined


def _sections(diff: Diff, only_changed: bool) -> list[Section]:
    labels = method_labels((row.method, row.params) for row in diff.rows())

    def label(row: Row) -> list[str]:
        dataset, method = f"{row.dataset}:{row.features}", labels[row.method, row.params]
        return [dataset, method, str(row.n_bits), str(row.seed), row.metric]

    seeds = []
    for mean in diff.over_seeds():
        numbers = [f"{mean.old:.6f}", f"{mean.new:.6f}", f"{mean.difference:+.6f}"]
        seeds.append([*label(mean.row)[:3], f"{mean.n_changed} of {mean.n_seeds}", mean.row.metric, *numbers])
    sections = [
        ("Changed", _CHANGE_HEADER, [label(change.new) + _cells(change) for change in diff.changed]),
        ("Means over seeds", ["dataset", "method", "bits", "seeds changed", "metric", "old", "new", "change"], seeds),
    ]
    if not only_changed:
        pairs = [[*label(pair.new), pair.old.value, pair.new.value, pair.reason] for pair in diff.incomparable]
        sections += [
            ("Not comparable", [*_ROW_HEADER, "old", "new", "other"], pairs),
            ("New", [*_ROW_HEADER, "value"], [[*label(row), row.value] for row in diff.new]),
            ("Gone", [*_ROW_HEADER, "value"], [[*label(row), row.value] for row in diff.gone]),
        ]
    return [section for section in sections if section[2]]


def _counted(section: Section) -> Section:
    """Count many rows by dataset and method instead of listing them, unless they changed."""
    title, header, lines = section
    if title in ("Changed", "Means over seeds") or len(lines) <= _MOST_ROWS:
        return section
    counts = Counter((dataset, method) for dataset, method, *_ in lines)
    title += f": {len(lines)} rows (--format csv lists them)"
    return title, [*header[:2], "rows"], [[*labels, str(count)] for labels, count in counts.items()]


def _cells(change: Change) -> list[str]:
    test = ["-", "-"]
    if change.test is not None:
        mark = " *" if change.is_significant else ""
        test = [f"{change.test.p_holm:.4f}{mark}", f"{change.test.low:+.6f} to {change.test.high:+.6f}"]
    return [change.old.value, change.new.value, f"{change.difference:+.6f}", ANSWERS[change.ties], *test]


def _markdown(section: Section, n_lines: int) -> str:
    """Write a table of a comment; all but the changes are folded."""
    title, header, lines = section
    table = markdown_table(header, lines[:n_lines], n_left=2, is_padded=False)
    if len(lines) > n_lines:
        table += f"\n\nand {len(lines) - n_lines} more."
    if title == "Changed":
        return table
    return f"<details><summary>{title}: {len(lines)}</summary>\n\n{table}\n\n</details>"


def _csv(diff: Diff, only_changed: bool) -> str:
    header = ["status", *_KEY, "old", "new", "difference", "ties", "p_value", "p_holm", "low", "high", "other"]
    lines: list[Sequence[Any]] = []
    for change in diff.changed:
        test = [f"{value:.6f}" for value in change.test] if change.test else [""] * 4
        numbers = [change.old.value, change.new.value, f"{change.difference:.6f}"]
        lines.append(["changed", *change.new.key, *numbers, ANSWERS[change.ties], *test, ""])
    if not only_changed:
        for pair in diff.incomparable:
            numbers = [pair.old.value, pair.new.value]
            lines.append(["not comparable", *pair.new.key, *numbers, *[""] * 6, pair.reason])
        lines += [["new", *row.key, "", row.value, *[""] * 7] for row in diff.new]
        lines += [["gone", *row.key, row.value, *[""] * 8] for row in diff.gone]
    return sheet_text(header, lines)


def _content(diff: Diff, only_changed: bool) -> dict[str, Any]:
    content: dict[str, Any] = {
        "old": diff.old_name,
        "new": diff.new_name,
        "counts": _counts(diff),
        "n_tested": diff.n_tested,
        "n_resamples": diff.n_resamples,
        "changed": [
            {
                **_key(change.new),
                "old": _numbers(change.old),
                "new": _numbers(change.new),
                "difference": change.difference,
                "ties": ANSWERS[change.ties],
                "test": change.test and {**change.test._asdict(), "is_significant": change.is_significant},
            }
            for change in diff.changed
        ],
        "over_seeds": [
            {
                **{key: value for key, value in _key(mean.row).items() if key != "seed"},
                "n_seeds": mean.n_seeds,
                "n_changed": mean.n_changed,
                "old": mean.old,
                "new": mean.new,
                "difference": mean.difference,
            }
            for mean in diff.over_seeds()
        ],
    }
    if not only_changed:
        content["not_comparable"] = [
            {**_key(pair.new), "old": _numbers(pair.old), "new": _numbers(pair.new), "other": pair.reason}
            for pair in diff.incomparable
        ]
        content["new_rows"], content["gone_rows"] = _as_json(diff.new), _as_json(diff.gone)
    return content


def _as_json(rows: Iterable[Row]) -> list[dict[str, Any]]:
    return [{**_key(row), **_numbers(row)} for row in rows]


def _key(row: Row) -> dict[str, Any]:
    return {**dict(zip(_KEY, row.key, strict=True)), "params": json.loads(row.params)}


def _numbers(row: Row) -> dict[str, float]:
    return {name: float(getattr(row, name) or "nan") for name in NUMBERS}

"""Two methods compared by their rows of results: the difference, and whether queries and seeds show it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hashbench._typing import IntArray
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.steps import needs_vectors
from hashbench.reports.aggregate import (
    BLOCK,
    CELL,
    DEFAULTS,
    LINE,
    all_lines,
    changed_params,
    main_lines,
    mean_over_seeds,
    setting_text,
)
from hashbench.reports.formatting import Records, Table, is_missing, wrapped
from hashbench.reports.marks import bases_in_words, mixed_methods, notes_on_code
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection, demand
from hashbench.reports.uncertainty import add_uncertainty, evaluations_of_rows, variances_of, verdict
from hashbench.reports.view import grouped
from hashbench.scoring.comparison import (
    Difference,
    SeedVariance,
    VariancesOfSides,
    compare,
    corrected,
    of_means,
    other_queries,
)
from hashbench.scoring.metrics import is_error
from hashbench.store.result_rows import OWN, OWN_FEATURES, is_own

_SEEDS_ONLY = (
    "The data folder lacks the scores of single queries of {}, so only seeds are compared there, on these queries. To "
    "compare over queries too, run or save them here."
)
_ABOUT = (
    "tie_sd: how far the difference in one random order of the database typically lies from this value, or an upper "
    "bound of that. Ties add no other uncertainty, since scores are means over all orders of tied items."
)
_PAIRED_BY_ROW = (
    "Scores of saved codes are paired by row: this takes all codes to be of the same queries in the same order."
)
_COLUMNS = (
    "bits {n_bits} | against {second_title} | difference {value:+.4f} | 95 % interval {low:+.4f} to {high:+.4f} | "
    "p {p:p} | tie_sd {tie_sd:.5f} | answer"
)
_OF_DIFFERENCE = (
    *("value", "low", "high", "p", "p_holm", "freedom", "tie_sd", "n_queries", "n_distinct", "basis", "is_shown"),
)
_FIELDS = (
    *(*BLOCK, "metric", "n_bits", "first", "second", "value", "low", "high", "p", "p_holm", "freedom"),
    *("tie_sd", "n_queries", "n_distinct", "n_seeds_first", "n_seeds_second", "basis", "is_shown", "answer"),
    *("first_settings", "second_settings"),
)
_SCOPES = {"queries": ", these codes", "seeds": ", these queries"}  # beside the answer, where it is not of all
Rows = dict[str, pd.DataFrame]  # of one metric and code length, by method


class Side(NamedTuple):
    """How a method of a comparison is named."""

    name: str  # in the sentence, with settings only where the method has several
    title: str  # in the table, always with them
    settings: str  # those that are not defaults


_Found = tuple[dict[str, Any], tuple[Side, Side], Difference | HashbenchError]  # where, of whom, and what was found


class Comparison(NamedTuple):
    """The differences of one method from others, notes on what their reader should fix, and what else they rest on.

    ``answers`` has a row per dataset, metric, code length and other method: ``_FIELDS``, the titles of both sides, and
    the ``sentence`` to quote. Where there is no difference, most are None, and the sentence has the reason. Of three
    methods and more, ``sets`` has a row per column: those ``tested``, those that ``may_be_best``, and a sentence.
    """

    answers: list[dict[str, Any]]
    notes: list[str]
    about: Sequence[str] = ()
    sets: Sequence[dict[str, Any]] = ()

    def to_frame(self) -> pd.DataFrame:
        """Return ``_FIELDS`` and the sentence of each answer; ``attrs`` has the sets, and what else they rest on."""
        frame = pd.DataFrame(self.answers)[[*_FIELDS, "sentence"]]
        frame.attrs = {"may_be_best": [*self.sets], "about": [*self.about]}
        return frame.astype(dict.fromkeys(("value", "low", "high", "p", "p_holm", "freedom", "tie_sd"), float))


def read_and_compare(results: Path, names: Sequence[str], selection: Selection, by_class: bool) -> Comparison:
    """Compare methods in a results folder as `compare_rows` does, in the metrics of the selection, by default AP."""
    names = list(dict.fromkeys(names))
    if len(names) < 2:
        shown = ", ".join(names) or "none"
        raise HashbenchError(f"a comparison needs two methods or more, got {shown}. Name two different ones.")
    rows = read_results_with_origins(results)
    selection = replace(selection, metrics=selection.metrics or ["AP"]).read()
    selection.check(rows)
    return compare_rows(rows, names, selection, by_class)


def compare_rows(results: pd.DataFrame, names: Sequence[str], selection: Selection, by_class: bool) -> Comparison:
    """Compare the first of some methods, or labels of lines, with the others, wherever two of them have rows.

    ``results`` are all rows, as `hashbench.reports.row_origins.with_origins` returns them; ``selection`` chooses some,
    and names the metrics. Scores of single queries come from the data folder; where those of either side are missing,
    two methods are compared by the means of seeds, on these queries. All differences are corrected together by Holm's
    method.
    """
    first, *others = names
    chosen = _chosen(results, names, selection)
    variances = variances_of(results, chosen)
    chosen = chosen.merge(variances, how="left", on=[*CELL])
    found: list[_Found] = []
    notes: list[str] = []
    compared = set[str]()
    for place, block in grouped(chosen, [*BLOCK, "metric"]):
        lengths = {
            int(str(n_bits)): dict(list(part.groupby("name", sort=False))) for n_bits, part in block.groupby("n_bits")
        }
        lengths = {n_bits: rows for n_bits, rows in lengths.items() if first in rows and len(rows) > 1}
        if lengths:
            of_block, notes_on_block = _compare(place, lengths, by_class)
            found, notes = [*found, *of_block], [*notes, *notes_on_block]
        compared |= {name for rows in lengths.values() for name in rows}
    for name in others:
        if name not in compared:
            raise HashbenchError(
                f"{first} and {name} have no results of the same data (dataset, features and fingerprint), metric and "
                "code length. Run or save both on the same, or choose other datasets, metrics and lengths."
            )
    differences = iter(corrected([one for *_, one in found if isinstance(one, Difference)]))
    answers = [
        make_answer(here, pair, next(differences) if isinstance(one, Difference) else one) for here, pair, one in found
    ]
    if missing := {*selection.n_bits} - {answer["n_bits"] for answer in answers}:
        raise HashbenchError(
            f"{' and '.join(names)} have no results to compare at {' or '.join(map(str, sorted(missing)))} bits; leave "
            "that out, or run them there."
        )
    if all(answer["value"] is None for answer in answers):
        answer = answers[0]
        raise HashbenchError(
            f"{answer['dataset']} ({answer['features']}), {answer['metric']} at {answer['n_bits']} bits: "
            f"{answer['sentence'].removeprefix('no interval: ')}"
        )
    compared_in, of_names = {answer["metric"] for answer in answers}, replace(selection, methods=names)
    notes += [
        f"Left out: {first} and the others have no results of the same data and code length in {metric}. To make them: "
        f"{of_names.command(metric)}."
        for metric in selection.metrics
        if metric not in compared_in
    ]
    n_tested = sum(answer["p_holm"] is not None for answer in answers)
    correction = f"p is corrected for {n_tested} differences by Holm's method; the intervals are not corrected."
    is_over_queries = any("queries" in (answer["basis"] or "") for answer in answers)
    is_paired_by_row = is_over_queries and any(map(is_own, chosen["params"].unique()))
    about = [*[_PAIRED_BY_ROW] * is_paired_by_row, *[correction] * (n_tested > 0)]
    sets = _sets_that_may_be_best(chosen, variances) if len(names) > 2 and not by_class else []
    return Comparison(answers, [*dict.fromkeys(notes)], about, sets)


def _sets_that_may_be_best(chosen: pd.DataFrame, variances: pd.DataFrame) -> list[dict[str, Any]]:
    """Return which methods may be the best of each column of chosen rows, of those that can be tested."""
    cells, column = mean_over_seeds(chosen), [*BLOCK, "metric", "n_bits"]
    parts = [part for _, part in chosen.groupby([*CELL], sort=True)]
    rows, names = [part.to_dict("records") for part in parts], [_side(part).name for part in parts]
    cells = add_uncertainty(cells.assign(label=names), rows, variances, column)
    sets = []
    for place, part in grouped(cells, column):
        tested = part[part["p_value"].notna()]
        if len(tested) > 2:
            names = tested.loc[tested["may_be_best"], "label"].tolist()
            confidence = f"each best is named with about 95 % confidence, {bases_in_words(tested)}"
            sentence = f"of {', '.join(tested['label'])}, the best may be {' or '.join(names)} ({confidence})."
            of_column = {"tested": tested["label"].tolist(), "may_be_best": names, "sentence": sentence}
            sets.append(dict(zip(column, place, strict=True)) | of_column)
    return sets


def _chosen(results: pd.DataFrame, names: Sequence[str], selection: Selection) -> pd.DataFrame:
    """Keep the rows of each name, in a new column: those of a method's line that tables show, or of a label.

    Others are the ``label``; ``full``, which says so where all settings are defaults; and ``is_one``, whether the
    method has a single line in the block.
    """
    lines = all_lines(results).drop(columns="group")
    lines["is_one"] = lines.groupby([*BLOCK, "method"])["label"].transform("size") == 1
    lines["full"] = lines["label"] + np.where((lines["label"] == lines["method"]) & ~lines["is_tuned"], DEFAULTS, "")
    titled, cells = results.merge(lines), mean_over_seeds(results)
    main, parts = main_lines(cells, cells)[[*BLOCK, "metric", *LINE]].drop_duplicates(), []
    for name in names:
        demand("method", [name], {*lines["method"], *lines["label"], *lines["full"]})
        rows = titled[titled["method"] == name].merge(main)
        if rows.empty:
            rows = titled[(titled["label"] == name) | (titled["full"] == name)]
        part = selection.of(rows)
        if part.empty:
            of_method = replace(selection, methods=[rows["method"].iloc[0]])
            raise of_method.nothing_left(rows, " or ".join(selection.metrics))
        parts.append(part.assign(name=name))
    chosen = pd.concat(parts, ignore_index=True)
    for _, same in chosen.groupby([*BLOCK, "metric", *LINE, "n_bits"])["name"]:
        first, *others = same.unique()
        if others:
            raise HashbenchError(f"{first} and {others[0]} are the same line of results; name two different ones.")
    return chosen


def _side(rows: pd.DataFrame) -> Side:
    """Return how the method of rows of one line is named."""
    row = rows.iloc[0]
    changed = changed_params(row["method"], row["params"]).items()
    settings = " ".join(setting_text(key, value) for key, value in changed if OWN.get(key) != value)
    if not row["is_one"]:
        return Side(row["full"], row["full"], settings)
    name = row["name"]
    return Side(name, name if name == row["label"] else f"{name} {settings}".strip(), settings)


def _compare(place: tuple[str, ...], lengths: dict[int, Rows], by_class: bool) -> tuple[list[_Found], list[str]]:
    """Compare the first method of each length with the others; by means over seeds if scores of either are missing.

    Return what was found, and notes.
    """
    dataset, features, fingerprint, metric = place
    found: list[_Found] = []
    lacking: dict[str, list[int]] = {}
    for n_bits, rows in lengths.items():
        scores = {name: evaluations_of_rows(of_name.to_dict("records")) for name, of_name in rows.items()}
        here = dict(zip((*BLOCK, "metric"), place, strict=True)) | {"n_bits": n_bits}
        sides = {name: _side(of_name) for name, of_name in rows.items()}
        first, *others = sides
        for other in others:
            both, shown = [rows[first], rows[other]], (sides[first].name, sides[other].name)
            mine, theirs = scores[first], scores[other]
            for name in (name for name in (first, other) if scores[name] is None):
                lacking.setdefault(sides[name].name, []).append(n_bits)
            difference: Difference | HashbenchError
            try:
                _refuse_mixed(*both)
                is_known = mine is not None and theirs is not None
                classes = _classes(dataset, features, fingerprint, metric, is_known) if by_class else None
                if mine is not None and theirs is not None:
                    difference = compare(
                        mine,
                        theirs,
                        names=shown,
                        draws_nothing=_fixed(both, shown),
                        clusters=classes,
                        metrics=[metric],
                        are_distinct=features != OWN_FEATURES,
                        seed_variances=_borrowed(both),
                    )[metric]
                else:
                    difference = by_means(both, shown, metric)
            except HashbenchError as error:
                difference = error
            found.append((here, (sides[first], sides[other]), difference))
    notes = notes_on_code(pd.concat([of_name for rows in lengths.values() for of_name in rows.values()]))
    names = [f"{name} at {', '.join(map(str, sorted({*bits})))} bits" for name, bits in lacking.items()]
    return found, [*[_SEEDS_ONLY.format("; ".join(names))] * bool(names), *notes]


def _refuse_mixed(*sides: pd.DataFrame) -> None:
    for rows in sides:
        if mixed_methods(rows):
            raise HashbenchError(
                f"different code of {rows['method'].iloc[0]} made its rows, so they are not of one method. Rerun them: "
                "hashbench results check lists them."
            )


def make_answer(
    place: Mapping[str, Any], sides: tuple[Side, Side], found: Difference | HashbenchError
) -> dict[str, Any]:
    """Return what is known of two methods, as `Comparison` has it."""
    answer: dict[str, Any] = dict.fromkeys(_FIELDS) | dict(place)
    for key, side in zip(("first", "second"), sides, strict=True):
        answer |= {key: side.name, f"{key}_settings": side.settings, f"{key}_title": side.title}
    if isinstance(found, HashbenchError):
        return answer | {"answer": "no interval", "sentence": f"no interval: {found}"}
    answer |= {name: getattr(found, name) for name in _OF_DIFFERENCE}
    answer |= dict(zip(("n_seeds_first", "n_seeds_second"), found.n_seeds, strict=True))
    said = verdict(found) if found.is_tested else "cannot be tested"
    return answer | {"answer": said, "sentence": str(found)}


def _fixed(rows: Sequence[pd.DataFrame], names: Sequence[str]) -> list[str]:
    """Return the names of the sides that draw nothing at random."""
    return [name for name, side in zip(names, rows, strict=True) if side["is_fixed"].iloc[0]]


def _borrowed(rows: Sequence[pd.DataFrame]) -> VariancesOfSides:
    """Return the variance over seeds of both sides where it borrows from other code lengths."""
    of_sides = (side.iloc[0] for side in rows)
    first, second = (
        SeedVariance(row["seed_variance"], row["seed_freedom"])
        if row["is_borrowed"] and row["seed_variance"] > 0
        else None
        for row in of_sides
    )
    return first, second


def by_means(rows: Sequence[pd.DataFrame], pair: tuple[str, str], metric: str) -> Difference:
    """Compare two lines by the means of their seeds, given the results of each, with the columns of `variances_of`."""
    first, second = (of_side["value"].to_numpy(dtype=float) for of_side in rows)
    for name, values in zip(pair, (first, second), strict=True):
        if np.isnan(values).any():
            raise HashbenchError(f"{name} has no {metric}, which is defined for no query.")
    if len({n_undefined for of_side in rows for n_undefined in of_side["n_undefined"]}) > 1:
        raise other_queries(metric, pair)
    tie_sd = sum(float(of_side["tie_sd"].mean(skipna=False)) for of_side in rows)
    n_queries, fixed = int(rows[0]["n_queries"].iloc[0]), _fixed(rows, pair)
    one_seed, other_seed = (bool(of_side["n_distinct"].iloc[0] == 1) for of_side in rows)
    more: Any = {"are_equal": (one_seed, other_seed), "seed_variances": _borrowed(rows)}
    return of_means(first, second, metric, pair, n_queries, tie_sd, fixed, **more)


@lru_cache(maxsize=1)
def _classes(dataset: str, features: str, fingerprint: str, metric: str, is_known: bool) -> IntArray:
    """Return the class of each query."""
    if features == OWN_FEATURES:
        raise HashbenchError(
            "the classes of saved codes are not kept; from Python, give them as hashbench.compare(..., clusters=...)."
        )
    if not is_known:
        raise HashbenchError(
            "a comparison by class needs the scores of single queries, and the data folder lacks those of some rows. "
            "Run or save them here again."
        )
    data, _ = load_dataset(f"{dataset}:{features}" if features else dataset)
    if data.fingerprint != fingerprint and not needs_vectors([metric]):
        raise HashbenchError(
            f"the prepared {dataset} has fingerprint {data.fingerprint}, and the rows have {fingerprint}, so the "
            "classes of their queries are not known. Run or save the methods here again."
        )
    if data.labels is None or data.labels.ndim != 1:
        raise HashbenchError(f"a comparison by class needs a dataset with one class per item, and {dataset} has none.")
    return np.asarray(data.labels)[data.query]


def comparison_records(comparison: Comparison) -> Records:
    """Return a comparison to print."""
    by_title: dict[str, list[dict[str, Any]]] = {}
    contents: dict[tuple[str, str], set[str]] = {}
    for answer in comparison.answers:
        contents.setdefault((answer["dataset"], answer["features"]), set()).add(answer["dataset_fingerprint"])
    for answer in comparison.answers:
        lower = ", lower is better" if is_error(answer["metric"]) else ""
        place = f"{answer['dataset']} ({answer['features']})"
        if len(contents[answer["dataset"], answer["features"]]) > 1:
            place += f", data {answer['dataset_fingerprint']}"
        title = f"{place}: {answer['metric']} of {answer['first_title']}{lower}"
        by_title.setdefault(title, []).append(answer)
    parts: list[Table | str] = []
    for title, answers in by_title.items():
        here = {tuple(answer[name] for name in (*BLOCK, "metric")) for answer in answers}
        sets = (one for one in comparison.sets if tuple(one[name] for name in (*BLOCK, "metric")) in here)
        sentences = [wrapped(f"{one['n_bits']} bits: {one['sentence']}") for one in (*answers, *sets)]
        parts += [title, Table(_COLUMNS, [*map(_shown, answers)], n_left=2), "\n".join(sentences)]
    parts.append(wrapped(" ".join([_ABOUT, *comparison.about, *comparison.notes])))
    content = {
        "differences": [{name: answer[name] for name in (*_FIELDS, "sentence")} for answer in comparison.answers],
        "may_be_best": comparison.sets,
        "notes": [*comparison.notes, *comparison.about],
    }
    return Records(parts, content, comparison.answers, _FIELDS)


def _shown(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer with its corrected p, and with the scope of the verdict."""
    scope = "" if is_missing(answer["p"]) else _SCOPES.get(answer["basis"], "")
    p_value = answer["p"] if answer["p_holm"] is None else answer["p_holm"]
    return {**answer, "p": p_value, "answer": answer["answer"] + scope}

import re

import pandas as pd
import pytest
from helpers.table_rows import cell, markdown_rows, table

from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import ALL_SEEN, all_lines, bases, fold_cells, most_folds, without_folds
from hashbench.reports.html.content import make_content
from hashbench.reports.view import make_view

WHOLE = "89abcdef"  # the first digits of a fingerprint, which identify what folds are parts of
UNSEEN, AMONG_ALL, ALL = (f"digits-unseen3-fold{{}}{end}" for end in ("", "-database-all", "-all"))


def fold(number, value, method="lsh", kind=UNSEEN, **changes):
    changes = {"dataset_fingerprint": f"{WHOLE}f{number}", **changes}
    return cell(method, 32, value, dataset=kind.format(number), **changes)


def seen(method, value, n_bits=32, **changes):
    return cell(method, n_bits, value, **{"dataset_fingerprint": f"{WHOLE}01234567", **changes})


def cells_of(*rows, **choice):
    cells = fold_cells(pd.DataFrame(rows), **choice)
    return {(row.scope, row.method): row for row in cells.itertuples()}


# ---------------------------------------------------------------- means over folds


def test_seeds_are_averaged_first_and_then_folds():
    cells = cells_of(fold(0, 0.2, seed=0), fold(0, 0.4, seed=1), fold(1, 0.5, seed=0), fold(2, 0.7, seed=0))
    (mean,) = cells.values()
    assert (mean.value, mean.spread, mean.low, mean.high) == pytest.approx((0.5, 0.2, 0.4, 0.7))  # of 0.3, 0.5 and 0.7
    assert (mean.folds, mean.n_seeds, mean.dataset_fingerprint) == ("0, 1, 2", 1, "89abcdeff0 89abcdeff1 89abcdeff2")
    assert (mean.dataset, mean.base, mean.n_unseen, mean.scope) == ("digits-unseen3", "digits", 3, "unseen")


def test_protocols_and_numbers_of_classes_never_mix():
    others = [fold(0, 0.1, kind=AMONG_ALL), fold(0, 0.3, kind=ALL), fold(0, 0.9, kind="digits-unseen2-fold{}")]
    cells = fold_cells(pd.DataFrame([fold(0, 0.5), *others, fold(0, 0.7, features="gist")]))
    assert sorted(zip(cells["dataset"], cells["features"], cells["value"], strict=True)) == [
        ("digits-unseen2", "pixels", 0.9),
        ("digits-unseen3", "gist", 0.7),
        ("digits-unseen3", "pixels", 0.5),
        ("digits-unseen3-all", "pixels", 0.3),
        ("digits-unseen3-database-all", "pixels", 0.1),
    ]


def test_what_saw_all_classes_is_of_the_same_settings():
    other = seen("lsh", 0.9, params='{"a": 1}')
    cells = cells_of(fold(0, 0.5), seen("lsh", 0.8), other, seen("lsh", 0.7, n_bits=16), seen("sh", 0.6))
    assert cells.keys() == {("unseen", "lsh"), (ALL_SEEN, "lsh")}
    assert cells[ALL_SEEN, "lsh"].value == 0.8
    assert (ALL_SEEN, "lsh") not in cells_of(fold(0, 0.5), other)


def test_a_method_has_one_line_in_all_columns_and_all_lines_as_variants():
    rows = [fold(0, 0.5, kind=UNSEEN), fold(0, 0.4, kind=ALL), fold(0, 0.6, params='{"a": 1}')]
    params = {scope: row.params for (scope, _), row in cells_of(*rows).items()}
    assert params == {"unseen": "{}", "all among all": "{}"}
    assert len(fold_cells(pd.DataFrame(rows), has_variants=True)) == 3


def test_a_fold_of_two_contents_is_left_out():
    rows = [fold(0, 0.1), fold(0, 0.2, "sh", dataset_fingerprint=f"{WHOLE}old"), fold(1, 0.5), fold(2, 0.7)]
    cells = cells_of(*rows)
    assert cells["unseen", "lsh"].folds == "1, 2"
    assert cells["unseen", "lsh"].value == pytest.approx(0.6)
    assert ("unseen", "sh") not in cells


def test_folds_of_two_contents_of_a_dataset_are_apart_and_each_beside_its_own():
    rows = [fold(0, 0.2), fold(1, 0.4), fold(0, 0.6, dataset_fingerprint="01234567f0"), seen("lsh", 0.9)]
    cells = fold_cells(pd.DataFrame(rows))
    assert {(row.base, row.dataset, row.scope, row.folds): row.value for row in cells.itertuples()} == {
        ("digits@89abcdef", "digits-unseen3@89abcdef", "unseen", "0, 1"): pytest.approx(0.3),
        ("digits@01234567", "digits-unseen3@01234567", "unseen", "0"): 0.6,
        ("digits@89abcdef", "digits", ALL_SEEN, ""): 0.9,
    }


def test_the_best_of_a_column_is_of_the_folds_that_most_have():
    rows = [fold(number, value, tie_sd=0.01) for number, value in enumerate((0.4, 0.5, 0.6))]
    rows += [fold(number, value, "sh", tie_sd=0.01) for number, value in enumerate((0.7, 0.8, 0.9))]
    rows += [fold(1, 0.95, "sdh")]
    lines = markdown_rows(table(*rows, name="unseen").to_markdown(digits=2))
    assert [lines[name][0] for name in ("lsh", "sh", "sdh")] == ["0.50 ± 0.10", "**0.80 ± 0.10**", "0.95¶"]


def test_the_number_of_folds_counts_and_not_the_length_of_their_names():
    assert most_folds(pd.Series(["0, 1", "10, 11", "0, 1"])) == "0, 1"
    assert most_folds(pd.Series(["10", "0, 1", "12345678"])) == "0, 1"


def test_folds_are_left_out_unless_they_are_named():
    results = pd.DataFrame([cell(), fold(0, 0.5), fold(1, 0.5)])
    assert list(without_folds(results)["dataset"]) == ["digits"]
    assert list(without_folds(results, [UNSEEN.format(1) + ":pixels"])["dataset"]) == ["digits", UNSEEN.format(1)]
    assert list(bases(results)["dataset"]) == ["digits"] * 3


# ---------------------------------------------------------------- the table

SMALL = (
    *(fold(number, value) for number, value in enumerate((0.4, 0.5, 0.6))),
    *(fold(number, value, "sdh") for number, value in enumerate((0.7, 0.8))),
    *(fold(number, 0.3, "oracle-label") for number in range(3)),
    *(fold(number, 0.25, kind=ALL) for number in range(3)),
    seen("lsh", 0.55),
    seen("sdh", 0.15),
)


def test_table_has_four_columns_with_their_ranges():
    text = table(*SMALL, name="unseen").to_markdown(digits=2)
    rows = [re.sub(" +", " ", line).strip("| ") for line in text.splitlines() if line.startswith("|")]
    assert text.startswith(
        "# Unseen classes. Average precision of classes that training did not see\n"
        "\n"
        "## digits (pixels), 3 unseen classes: AP, 32 bits\n"
    )
    assert rows[0] == (
        "method | unseen AP | unseen range | unseen among all AP | unseen among all range | all among all AP | "
        "all among all range | all classes seen AP | all classes seen range"
    )
    assert rows[2:] == [
        "*baseline*",
        "oracle-label | 0.30 ± 0.00 | 0.20 to 0.50 | - | - | - | - | - | -",
        "*unsupervised*",
        "lsh | 0.50 ± 0.10 | 0.40 to 0.70 | - | - | 0.25 ± 0.00 | 0.15 to 0.45 | **0.55** | 0.45 to 0.75",
        "*class-based*",
        "sdh | 0.75 ± 0.07¶ | 0.65 to 0.95 | - | - | - | - | 0.15 | 0.05 to 0.35",
    ]
    assert "- ±: standard deviation over folds; of methods that saw all classes, over seeds." in text
    assert "and folds 0, 1, 2; in each" in text
    assert "- ¶: a mean over other folds than most" in text
    assert "encodes the label itself" in text


def test_table_is_chosen_by_the_base_dataset():
    other = fold(0, 0.5, kind="cifar10-s1-unseen3-fold{}")
    assert set(table(*SMALL, other, name="unseen", datasets=("digits",)).cells["base"]) == {"digits"}
    with pytest.raises(HashbenchError, match=r"no results for unseen: AP .*--dataset digits-unseen3-fold0"):
        table(cell(), name="unseen")


def test_the_page_marks_means_over_other_folds_too():
    results = pd.DataFrame(SMALL).assign(tie_sd=0.01)
    lines = all_lines(results)
    folds = make_content(results, lines, make_view(results, lines=lines, by_score=True).cells, {})["folds"]
    marks = [folds["marks"]["of"][at] for at in folds["marks"]["at"]]
    labels = lines["label"].drop_duplicates().tolist()
    assert {labels[line] for line, sign in zip(folds["line"], marks, strict=True) if sign == "¶"} == {"sdh"}

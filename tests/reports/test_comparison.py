"""Whether one method is better than another, by `hashbench compare` and wherever else two methods are compared."""

import json
import re

import numpy as np
import pytest
from helpers import diff_rows
from helpers.table_rows import block_rows
from scipy import stats

from hashbench.reports.plots import FigureSelection, draw_figures
from hashbench.reports.significance import holm
from hashbench.store.results import read_rows
from hashbench.store.score_cache import find_scores

FIRST, SECOND = "ours", "csq-tuned"
LENGTHS = 12, 16


@pytest.fixture
def six_seeds(hashbench, digits, digits_data, empty_folder):
    """One method trained with six seeds, saved as two methods of three seeds each."""
    centred = digits.features - digits.features.mean(axis=0)
    for number, name in enumerate((FIRST, SECOND)):
        for n_bits in LENGTHS:
            for seed in range(3):
                bits = centred @ np.random.default_rng([number, seed]).normal(size=(64, n_bits)) > 0
                np.savez(f"{name}-{n_bits}-{seed}.npz", query=bits[digits.query], database=bits[digits.database])
        of = [f"--{role}-codes={name}-{{bits}}-{{seed}}.npz:{role}" for role in ("query", "database")]
        done = hashbench("evaluate", *of, "--dataset", "digits", "--save", name, "--metric", "AP")
        assert done.exit_code == 0, done.stderr
    return empty_folder


def seeds_of(folder, name, n_bits):
    rows = [row for row in read_rows(folder / "results", "digits") if (row.method, row.n_bits) == (name, n_bits)]
    return np.array([find_scores(row) for row in rows])


def test_six_seeds_of_one_method_show_no_gain_anywhere(hashbench, six_seeds):
    means = [seeds_of(six_seeds, name, 16).mean(axis=0) for name in (FIRST, SECOND)]
    assert stats.ttest_rel(*means).pvalue < 0.05  # over queries only, it looks like one

    compared = hashbench("compare", FIRST, SECOND).stdout
    sentences = re.findall(r"(?m)^\d+ bits: (.*(?:\n  .*)*)", compared)
    assert len(sentences) == len(LENGTHS)
    assert all("over 200 queries and 3 seeds each): not shown." in " ".join(text.split()) for text in sentences)

    table = hashbench("tables", "--metric", "AP", "--significance").stdout
    rows = block_rows(table, "digits (pixels): AP")
    for cells in zip(rows[FIRST], rows[SECOND], strict=True):
        assert [cell.endswith("‡") for cell in cells] == [not cell.startswith("**") for cell in cells]
    assert "- ‡: not shown to differ from the best" in table
    assert "Tests (‡): over queries and seeds." in table

    assert hashbench("report", "--output", "page.html").exit_code == 0
    content = json.loads(re.search(r'id="data">(.*?)</script>', (six_seeds / "page.html").read_text())[1])
    assert len(content["pairs"]["sentence"]) == len(LENGTHS)
    assert all("not shown on these queries." in sentence for sentence in content["pairs"]["sentence"])

    for name in ("ap-bits", "ranking"):
        (drawing,) = draw_figures(six_seeds / "results", [name], FigureSelection())
        text = " ".join(" ".join(text.get_text() for text in drawing.figure.texts).split())
        assert "95 % interval of the mean, over queries and seeds." in text
        (axes,) = drawing.figure.axes
        bars = [bar for drawn in axes.collections if drawn.get_label() == "_" for bar in drawn.get_segments()]
        value = 0 if name == "ranking" else 1
        for bar, other in zip(bars, bars[len(bars) // 2 :] + bars[: len(bars) // 2], strict=True):
            assert bar[0, value] < other[:, value].mean() < bar[1, value]  # each interval holds the other's mean
    assert [text.get_text().endswith("‡") for text in axes.texts] == [False, True]


def test_rows_alone_are_compared_by_their_seeds(hashbench, tmp_path):
    values = {"lsh": (0.50, 0.52, 0.54), "itq": (0.55, 0.56, 0.60), "sph": (0.51, 0.53, 0.52)}
    rows = [diff_rows.row(value, seed=seed, method=name) for name in values for seed, value in enumerate(values[name])]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    content = json.loads(hashbench("compare", *values, "--results", tmp_path, "--format", "json").stdout)
    (column,) = content
    p_values = [stats.ttest_ind(values["lsh"], values[other], equal_var=False).pvalue for other in ("itq", "sph")]
    assert [found["p"] for found in column["differences"]] == pytest.approx(p_values)
    assert [found["p_holm"] for found in column["differences"]] == pytest.approx(holm(p_values))
    assert {found["basis"] for found in column["differences"]} == {"seeds"}
    assert column["notes"][0].startswith("The data folder lacks the scores of single queries")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["lsh", "lsh"], "lsh and lsh: a comparison needs two methods; name two different ones."),
        (["lsh", "isq"], "Did you mean 'itq'?"),
        (["lsh", "itq"], "lsh has one seed, and the scores of single queries are not kept here."),
        (["pcah", "sh"], "pcah draws nothing at random, and the scores of single queries are not kept here."),
    ],
)
def test_what_cannot_be_compared_is_refused(hashbench, tmp_path, names, complaint):
    rows = [diff_rows.row(0.5, method=name) for name in ("lsh", "itq", "pcah", "sh")]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    done = hashbench("compare", *names, "--results", tmp_path)
    assert done.exit_code == 1
    assert complaint in done.stderr


def test_codes_of_one_seed_have_intervals_over_queries_that_say_so(hashbench, digits_data, empty_folder):
    grid = ["--method", "lsh", "--method", "itq", "--bits", 12, "--bits", 16, "--metric", "AP"]
    assert hashbench("run", *grid).exit_code == 0
    (drawing,) = draw_figures(empty_folder / "results", ["ap-bits"], FigureSelection())
    text = " ".join(" ".join(text.get_text() for text in drawing.figure.texts).split())
    assert "Bar: 95 % interval of the mean, over queries, for these codes." in text
    assert "Tests (‡): over queries, for these codes." in hashbench("tables", "table1", "--significance").stdout
    assert "shown for these codes." in " ".join(hashbench("compare", "itq", "lsh").stdout.split())
    assert hashbench("run", *grid[:2], *grid[4:], "--seed", 1, "--seed", 2).exit_code == 0
    (drawing,) = draw_figures(empty_folder / "results", ["ap-bits"], FigureSelection())
    text = " ".join(" ".join(text.get_text() for text in drawing.figure.texts).split())
    assert "over queries and seeds. Lines of one seed: for these codes." in text

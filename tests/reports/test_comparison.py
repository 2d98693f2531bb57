"""Whether one method is better than another, by `hashbench compare` and wherever else two methods are compared."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import diff_rows
from helpers.table_rows import block_rows
from scipy import stats

import hashbench as package
from hashbench import registry
from hashbench.cards import method_card
from hashbench.cli.main import cli
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import all_lines
from hashbench.reports.html.content import make_content
from hashbench.reports.plots import draw_figures
from hashbench.reports.selection import Selection
from hashbench.reports.view import make_view
from hashbench.scoring.comparison import compare, holm
from hashbench.store.results import read_results, read_rows
from hashbench.store.score_cache import find_scores

FIRST, SECOND = "ours", "csq-tuned"
LENGTHS = 12, 16


def save(folder, name, codes_of, *options):
    """Save codes of digits, one file per length and seed that a function of these gives, or per length."""
    digits, of_seed = registry.get_dataset("digits").prepare(), "seed" in codes_of.__code__.co_varnames
    centred = digits.features - digits.features.mean(axis=0)
    for n_bits, seed in itertools.product(LENGTHS, range(3) if of_seed else [""]):
        bits = codes_of(centred, n_bits, seed) if of_seed else codes_of(centred, n_bits)
        np.savez(folder / f"{name}-{n_bits}-{seed}.npz", query=bits[digits.query], database=bits[digits.database])
    path = f"{folder / name}-{{bits}}-{'{seed}' * of_seed}.npz"
    of = [f"--{role}-codes={path}:{role}" for role in ("query", "database")]
    command = ["save", name, *of, "--dataset=digits", "--metric=AP", f"--results={folder / 'results'}", *options]
    done = CliRunner().invoke(cli, command)
    assert done.exit_code == 0, done.stderr


def projections(number):
    return lambda centred, n_bits, seed: centred @ np.random.default_rng([number, seed]).normal(size=(64, n_bits)) > 0


@pytest.fixture(scope="module")
def saved(prepared, tmp_path_factory):
    """One method trained with six seeds, saved as two methods of three seeds each, and another saved as three seeds."""
    folder = tmp_path_factory.mktemp("saved")
    shutil.copytree(prepared, folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        for number, name in enumerate((FIRST, SECOND)):
            save(folder, name, projections(number))
        for number, name in enumerate(("one", "other")):
            draw = projections(number)
            save(folder, name, lambda centred, n_bits, seed, draw=draw: draw(centred, n_bits, 0))
    return folder


@pytest.fixture
def six_seeds(saved, monkeypatch):
    """The folder of `saved`, with its scores of every query in the data folder."""
    monkeypatch.setenv("HASHBENCH_DATA", str(saved / "data"))
    return saved


def test_own_codes_that_draw_nothing_need_no_seeds_anywhere(hashbench, six_seeds, tmp_path):
    def signs(centred, n_bits):
        return centred[:, 10 : 10 + n_bits] > 0

    def answers(*options):
        folder = tmp_path / str(len(options))
        (folder / "results" / "digits").mkdir(parents=True)
        for path in six_seeds.glob(f"results/digits/{FIRST}.*"):
            shutil.copy(path, folder / "results" / "digits")
        save(folder, "signs", signs, *options)
        (drawing,) = draw_figures(folder / "results", ["ap-bits"], Selection())
        results = read_results(folder / "results")
        content = make_content(results, all_lines(results), make_view(results, by_score=True).cells, {})
        options = "--metric", "AP", "--significance", "--against", "signs", "--results", folder / "results"
        table = hashbench("tables", *options).stdout
        return (
            differences(hashbench, folder / "results", "signs", FIRST)[0]["basis"],
            block_rows(table, "Uncertainty of digits")[f"{FIRST} codes=own"][-1] == "-",
            "signs codes=own: over queries, for these codes" in words_of(drawing.figure),
            any("§" in marks for marks in content["cells"]["marks"]["of"]),
        )

    assert answers() == ("queries", True, True, True)
    assert answers("--draws-nothing") == ("queries and seeds", False, False, False)


def words_of(figure):
    return " ".join(" ".join(text.get_text() for text in figure.texts).split())


def seeds_of(folder, name, n_bits):
    rows = [row for row in read_rows(folder / "results", "digits") if (row.method, row.n_bits) == (name, n_bits)]
    return np.array([find_scores(row) for row in rows])


def test_six_seeds_of_one_method_show_no_gain_anywhere(hashbench, six_seeds):
    means = [seeds_of(six_seeds, name, 16).mean(axis=0) for name in (FIRST, SECOND)]
    assert stats.ttest_rel(*means).pvalue < 0.05  # over queries only, it looks like one

    folder = six_seeds / "results"
    compared = hashbench("compare", FIRST, SECOND, "--results", folder).stdout
    sentences = re.findall(r"(?m)^\d+ bits: (.*(?:\n  .*)*)", compared)
    assert len(sentences) == len(LENGTHS)
    for text in sentences:
        sentence = " ".join(text.split())
        assert re.search("over 200 queries and 3 seeds each, .* degrees of freedom, corrected p = ", sentence)
        assert "the difference is not statistically shown for other queries and seeds" in sentence

    choice = "--metric", "AP", "--method", FIRST, "--method", SECOND
    table = hashbench("tables", *choice, "--significance", "--results", folder).stdout
    rows = block_rows(table, "digits (pixels): AP")
    assert all(cell.endswith("★") for name in (FIRST, SECOND) for cell in rows[name])
    assert "- ★: may be the best: " in table
    assert "Tests: over queries and seeds." in table

    for name in ("ap-bits", "ranking"):
        (drawing,) = draw_figures(folder, [name], Selection(methods=[FIRST, SECOND]))
        assert "95 % interval of the mean, over queries and seeds." in words_of(drawing.figure)
        (axes,) = drawing.figure.axes
        bars = [bar for drawn in axes.collections if drawn.get_label() == "_" for bar in drawn.get_segments()]
        value = 0 if name == "ranking" else 1
        for bar, other in zip(bars, bars[len(bars) // 2 :] + bars[: len(bars) // 2], strict=True):
            assert bar[0, value] < other[:, value].mean() < bar[1, value]  # each interval holds the other's mean
    assert [text.get_text().endswith("★") for text in axes.texts] == [True, True]


def test_rows_alone_are_compared_by_their_seeds(hashbench, tmp_path):
    values = {"lsh": (0.50, 0.52, 0.54), "itq": (0.55, 0.56, 0.60), "sph": (0.51, 0.53, 0.52)}
    rows = [diff_rows.row(value, seed=seed, method=name) for name in values for seed, value in enumerate(values[name])]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    content = json.loads(hashbench("compare", *values, "--results", tmp_path, "--format", "json").stdout)
    p_values = [stats.ttest_ind(values["lsh"], values[other], equal_var=False).pvalue for other in ("itq", "sph")]
    assert [found["p"] for found in content["differences"]] == pytest.approx(p_values)
    assert [found["p_holm"] for found in content["differences"]] == pytest.approx(holm(p_values))
    assert {found["basis"] for found in content["differences"]} == {"seeds"}
    assert content["notes"][0].startswith("The data folder lacks the scores of single queries")


@pytest.mark.parametrize(
    ("names", "complaint"),
    [
        (["lsh", "lsh"], "a comparison needs two methods or more, got lsh. Name two different ones."),
        (["lsh", "isq"], "no results of method 'isq'. Did you mean 'itq'? There are results of itq, lsh, pcah, sh.\n"),
    ],
)
def test_what_cannot_be_compared_is_refused(hashbench, tmp_path, names, complaint):
    rows = [diff_rows.row(0.5, method=name) for name in ("lsh", "itq", "pcah", "sh")]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    done = hashbench("compare", *names, "--results", tmp_path)
    assert done.exit_code == 1
    assert complaint in done.stderr


@pytest.mark.parametrize(
    ("values", "n_seeds", "reason"),
    [
        ({"itq": [0.9], "lsh": [0.2]}, (1, 1), "as itq and lsh have one seed and the scores of single queries are"),
        ({"mine": [0.9] * 3, "pcah": [0.2143]}, (1, 0), "as mine has one seed and the scores of single queries are"),
        ({"pcah": [0.9], "sh": [0.2]}, (0, 0), "neither method draws anything at random, so there is nothing random"),
        (
            {"pcah": [0.9], "sh": [0.9]},
            (0, 0),
            "do not differ in the mean of AP on these queries: neither method dra",
        ),
        (
            {"itq": [0.9, 0.8, 0.7], "lsh": [0.2]},
            (3, 1),
            "as lsh has one seed and the scores of single queries are",
        ),
        ({"mine": [0.9] * 3, "lsh": [0.2, 0.3, 0.4]}, (1, 3), "The 3 seeds of mine have the same scores and count as"),
    ],
)
def test_what_has_no_degrees_of_freedom_has_no_p_value_anywhere(hashbench, tmp_path, values, n_seeds, reason):
    diff_rows.write(tmp_path / "digits.csv", *(row for name in values for row in several(name, values[name])))
    (found,) = differences(hashbench, tmp_path, *values)
    assert [found[name] for name in ("p", "p_holm", "low", "high", "freedom")] == [None] * 5
    assert (found["answer"], found["is_shown"]) == ("cannot be tested", False)
    assert (found["n_seeds_first"], found["n_seeds_second"]) == n_seeds
    assert reason in found["sentence"]


def test_what_cannot_be_tested_has_a_dash_and_an_empty_cell(hashbench, tmp_path):
    diff_rows.write(tmp_path / "digits.csv", *several("itq", [0.9]), *several("lsh", [0.2]))
    command = "compare", "itq", "lsh", "--results", tmp_path
    assert re.search(r"(?m) - +- +0\.\d{5} +cannot be tested$", hashbench(*command).stdout)
    header, row = hashbench(*command, "--format", "csv").stdout.splitlines()
    assert dict(zip(header.split(","), row.split(","), strict=True))["p"] == ""
    with pytest.warns(UserWarning, match="lacks the scores of single queries"):
        frame = package.compare_results("itq", "lsh", results=tmp_path)
    assert frame[["p", "p_holm", "low", "high"]].isna().all(axis=None)


def test_seeds_with_equal_rows_are_several_if_another_metric_tells_them_apart(hashbench, tmp_path):
    sides = {"ksh": [0.5, 0.6, 0.7], "lsh": [0.3, 0.4, 0.45]}
    rows = [row for name in sides for row in several(name, sides[name])]
    rows += several("ksh", [0.9] * 3, metric="P@100") + several("lsh", [0.2, 0.3, 0.4], metric="P@100")
    diff_rows.write(tmp_path / "digits.csv", *rows)
    (found,) = differences(hashbench, tmp_path, "ksh", "lsh", "--metric", "P@100")
    assert (found["n_seeds_first"], found["answer"]) == (3, "better")
    assert found["p"] == pytest.approx(stats.ttest_1samp([0.2, 0.3, 0.4], 0.9).pvalue)


def test_all_differences_of_a_command_are_corrected_together(hashbench, tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        row
        for name, value in (("itq", 0.5), ("lsh", 0.48), ("sph", 0.47))
        for n_bits in (16, 32)
        for metric in ("AP", "P@100")
        for row in several(name, (value + rng.normal(0, 0.01, 3)).round(4), n_bits=n_bits, metric=metric)
    ]
    diff_rows.write(tmp_path / "digits.csv", *rows, *several("pcah", [0.4], n_bits=16))
    command = "itq", "lsh", "sph", "pcah", "--metric", "AP", "--metric", "P@100"
    content = json.loads(hashbench("compare", *command, "--results", tmp_path, "--format", "json").stdout)
    found = content["differences"]
    assert len(found) == 9
    assert [one["p_holm"] for one in found] == pytest.approx(holm([one["p"] for one in found]))
    assert "p is corrected for 9 differences by Holm's method; the intervals are not corrected." in content["notes"]
    (single,) = differences(hashbench, tmp_path, "itq", "pcah")
    assert single["p_holm"] is None


def test_one_draw_saved_as_three_seeds_is_no_claim_about_the_method(hashbench, six_seeds):
    content = json.loads(
        hashbench("compare", "one", "other", "--results", six_seeds / "results", "--format", "json").stdout
    )
    found = content["differences"][0]
    assert (found["basis"], found["n_seeds_first"], found["n_seeds_second"]) == ("queries", 1, 1)
    assert "The 3 seeds of one have the same scores and count as one." in found["sentence"]
    assert any("paired by row" in note for note in content["notes"])


def differences(hashbench, folder, *names):
    return json.loads(hashbench("compare", *names, "--results", folder, "--format", "json").stdout)["differences"]


def several(method, values, **changes):
    return [
        diff_rows.row(value, value - 0.1, value + 0.1, seed=seed, method=method, **changes)
        for seed, value in enumerate(values)
    ]


def test_a_method_is_the_line_that_tables_show_whatever_is_chosen(hashbench, tmp_path):
    paper, other = canonical_json(dict(method_card("dfh").preset("paper", 16))), canonical_json({"epochs": 3})
    rows = [
        *several("itq", (0.5, 0.51)),
        *several("dfh", (0.6, 0.61), n_bits=16, params=other),
        *several("dfh", (0.7, 0.71), params=paper),
        *several("itq", (0.5, 0.51), metric="P@100"),
        *several("dfh", (0.8, 0.81), metric="P@100", params=other),
    ]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    (found,) = differences(hashbench, tmp_path, "dfh", "itq", "--metric", "AP", "--bits", "16")
    assert found["value"] == pytest.approx(0.2)
    table = hashbench("tables", "--metric", "AP", "--results", tmp_path).stdout
    label = next(name for name in block_rows(table, "digits (pixels): AP") if name.startswith("dfh"))
    refused = hashbench("compare", "dfh", label, "--results", tmp_path)
    assert f"dfh and {label} are the same line of results; name two different ones." in refused.stderr


def test_settings_of_a_method_are_named_and_chosen_by_their_label(hashbench, tmp_path):
    few, more = canonical_json({"epochs": 3}), canonical_json({"epochs": 4})
    rows = [*several("csq", (0.5, 0.53)), *several("csq", (0.6, 0.61), params=few), *several("itq", (0.4, 0.41))]
    rows += [*several("dfh", (0.3, 0.31), params=more), *several("lsh", (0.2, 0.21), dataset="other")]
    diff_rows.write(tmp_path / "digits.csv", *rows)

    def compared(*names):
        (found,) = differences(hashbench, tmp_path, *names)
        return found["value"], found["first"], found["first_settings"], found["second"], found["second_settings"]

    value, *named = compared("csq", "itq")
    assert (value, *named) == (pytest.approx(0.11), "csq (defaults)", "", "itq", "")
    value, *named = compared("csq epochs=3", "csq")
    assert (value, *named) == (pytest.approx(0.09), "csq epochs=3", "epochs=3", "csq (defaults)", "")

    command = "compare", "--results", tmp_path
    text = hashbench(*command, "csq epochs=3", "dfh").stdout
    assert "AP of csq epochs=3" in text
    assert re.search(r"16 +dfh epochs=4 +\+0\.3000 ", text)
    assert "16 bits: csq epochs=3 is above dfh by 0.3000 AP" in text
    sheet = hashbench(*command, "csq epochs=3", "dfh", "--format", "csv").stdout.splitlines()
    assert sheet[0].endswith(",first_settings,second_settings")
    assert sheet[1].endswith(",epochs=3,epochs=4")
    lacking = diff_rows.refusal(hashbench(*command, "csq epochs=3", "itq", "--metric", "NDCG"))
    assert "make them: hashbench run --method csq --metric NDCG." in lacking


def test_a_pair_without_an_interval_leaves_the_others_their_answers(hashbench, tmp_path):
    rows = [*several("itq", (0.5, 0.51)), *several("lsh", (0.4, 0.41)), *several("csq", (0.6,))]
    rows += [diff_rows.row(np.nan, np.nan, np.nan, None, n_undefined=200, method="sph", seed=seed) for seed in range(2)]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    against_lsh, against_csq, against_sph = differences(hashbench, tmp_path, "itq", "lsh", "csq", "sph")
    assert against_sph["sentence"] == "no interval: sph has no AP, which is defined for no query."
    assert against_lsh["answer"] == "better"
    assert against_lsh["p_holm"] is None  # one test was made
    assert against_csq["answer"] == "cannot be tested"
    assert "cannot be tested, as csq has one seed and the scores of single queries are not" in against_csq["sentence"]
    text = " ".join(hashbench("compare", "itq", "lsh", "sph", "--results", tmp_path).stdout.split())
    assert "16 bits: no interval: sph has no AP" in text


def test_means_over_other_queries_are_not_compared_where_only_rows_are_at_hand(hashbench, tmp_path):
    changes = {"metric": "P@r2:skip"}
    rows = [*several("itq", (0.5, 0.51), **changes), *several("lsh", (0.4, 0.41), **changes)]
    rows += several("sph", (0.3, 0.31), n_undefined=7, **changes)
    mixed = several("agh", (0.2, 0.21), **changes)
    rows += [mixed[0], mixed[1]._replace(n_undefined=1)]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    command = "itq", "lsh", "sph", "agh", "--metric", "P@r2:skip"
    against_lsh, *others = differences(hashbench, tmp_path, *command)
    assert (against_lsh["answer"], against_lsh["p_holm"]) == ("better", None)
    for found, name in zip(others, ("sph", "agh"), strict=True):
        reason = f"no interval: P@r2:skip is defined for different queries of itq and {name}, or of their seeds, so"
        assert found["sentence"].startswith(reason)
    table = hashbench("tables", "--metric", "P@r2:skip", "--significance", "--results", tmp_path).stdout
    rows = block_rows(table, "digits (pixels)")
    assert [rows[name][0][-1] for name in ("agh", "sph")] == ["°", "°"]
    assert "- °: not tested against the others: a mean over other queries than most of its column." in table
    p_value = stats.t.sf(0.1 / np.sqrt(2 * np.var([0.5, 0.51], ddof=1) / 2), 1)  # of two seeds each
    assert block_rows(table, "Uncertainty of digits")["lsh"][-1] == f"{p_value:.4f}"


def test_of_three_methods_the_set_that_may_be_the_best_is_named_where_anything_is_random(hashbench, tmp_path):
    values = {"itq": [0.8, 0.801, 0.802], "lsh": [0.2, 0.201, 0.203], "sph": [0.799, 0.8, 0.804]}
    rows = [row for name in values for row in several(name, values[name])]
    fixed = [row for name in ("pcah", "sh", "constant") for row in several(name, [0.5])]
    diff_rows.write(tmp_path / "digits.csv", *rows, *fixed)
    (found,) = json.loads(hashbench("compare", *values, "--results", tmp_path, "--format", "json").stdout)[
        "may_be_best"
    ]
    assert (found["tested"], found["may_be_best"]) == (["itq", "lsh", "sph"], ["itq", "sph"])
    text = " ".join(hashbench("compare", *values, "--results", tmp_path).stdout.split())
    assert "16 bits: of itq, lsh, sph, the best may be itq or sph (each best is named with about 95 %" in text
    with pytest.warns(UserWarning, match="lacks the scores of single queries of itq at 16 bits; lsh at 16 bits"):
        frame = package.compare_results(*values, results=tmp_path)
    assert frame.attrs["may_be_best"][0]["may_be_best"] == ["itq", "sph"]
    none = hashbench("compare", "pcah", "sh", "constant", "--results", tmp_path, "--format", "json").stdout
    assert not json.loads(none)["may_be_best"]


def test_the_answer_knows_that_lower_is_better_of_errors(hashbench, tmp_path):
    values = {"itq": (0.5, 0.501), "lsh": (0.4, 0.401), "sph": (0.6, 0.601)}
    rows = [row for name in values for row in several(name, values[name], metric="PairwiseError")]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    command = *values, "--metric", "PairwiseError"
    assert [found["answer"] for found in differences(hashbench, tmp_path, *command)] == ["worse", "better"]
    text = hashbench("compare", *command, "--results", tmp_path).stdout
    assert re.search("tie_sd +answer$", text, re.MULTILINE)
    assert "Lower is better." in text


def test_results_in_other_metrics_or_of_other_data_are_named(hashbench, tmp_path):
    rows = [*several("lsh", (0.4, 0.41)), *several("lsh", (0.4, 0.41), metric="P@100"), *several("itq", (0.5, 0.51))]
    rows += several("sph", (0.5, 0.51), dataset_fingerprint="bbbb")
    diff_rows.write(tmp_path / "digits.csv", *rows)
    command = "compare", "--results", tmp_path, "lsh"
    lacking = diff_rows.refusal(hashbench(*command, "itq", "--metric", "P@100"))
    assert (
        "there are no results in P@100 of itq. There are results in AP at 16 bits on digits; choose others" in lacking
    )
    done = hashbench(*command, "itq", "--metric", "P@100", "--metric", "AP")
    assert done.exit_code == 0
    assert "16 bits: lsh is" in done.stdout
    left_out = "Left out: lsh and the others have no results of the same data and code length in P@100."
    assert left_out in " ".join(done.stdout.split())
    other = diff_rows.refusal(hashbench(*command, "sph"))
    assert "lsh and sph have no results of the same data (dataset, features and fingerprint), metric and code" in other


def test_the_classes_of_saved_codes_are_not_kept(hashbench, tmp_path):
    rows = [*several("ours", (0.4, 0.41), features="own"), *several("theirs", (0.5, 0.51), features="own")]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    refused = diff_rows.refusal(hashbench("compare", "ours", "theirs", "--by", "class", "--results", tmp_path))
    assert "the classes of saved codes are not kept; from Python, give them as hashbench.compare(..., clu" in refused


def test_what_scoring_refuses_to_compare_is_the_reason_of_its_cell(hashbench, digits_data, empty_folder, monkeypatch):
    def refusing(*sides, names, **options):
        if "lsh" in names:
            raise HashbenchError("they are of other labels.")
        return compare(*sides, names=names, **options)

    grid = ["--method", "itq", "--method", "lsh", "--method", "pcah", "--bits", 16, "--metric", "AP"]
    assert hashbench("run", *grid).exit_code == 0
    monkeypatch.setattr("hashbench.reports.comparison.compare", refusing)
    against_lsh, against_pcah = differences(hashbench, "results", "itq", "lsh", "pcah")
    assert against_lsh["sentence"] == "no interval: they are of other labels."
    assert against_pcah["basis"] == "queries"


def test_codes_of_one_seed_have_intervals_over_queries_that_say_so(hashbench, digits_data, empty_folder):
    grid = ["--method", "lsh", "--method", "itq", "--bits", 12, "--bits", 16, "--metric", "AP"]
    assert hashbench("run", *grid).exit_code == 0
    (drawing,) = draw_figures(empty_folder / "results", ["ap-bits"], Selection())
    text = words_of(drawing.figure)
    assert "Bar: 95 % interval of the mean, over queries, for these codes." in text
    assert "Tests: over queries, for these codes." in hashbench("tables", "table1", "--significance").stdout
    assert "shown for these codes." in " ".join(hashbench("compare", "itq", "lsh").stdout.split())
    assert "over 200 queries of 10 classes" in " ".join(
        hashbench("compare", "itq", "lsh", "--by", "class").stdout.split()
    )

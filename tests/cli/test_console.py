import csv
import errno
import io
import json
import math
import re
import sys
from dataclasses import replace
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from helpers.diff_rows import row
from helpers.json_output import scores_in
from helpers.paths import built_in_methods

from hashbench import evaluate
from hashbench.affinity import SameLabel
from hashbench.cards import method_card
from hashbench.cli import console, descriptions
from hashbench.cli.progress import ProgressBar
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome
from hashbench.pipeline.steps import Demands
from hashbench.registry import get_method
from hashbench.store.artifact import read_record

CODES = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])


@cache
def scores(*labels):
    """Score the first queries; a label 7 has no relevant item."""
    names = ["AP"] if labels else ["AP", "P@r0"]
    labels = labels or (1,)
    return evaluate(CODES[: len(labels)], CODES, SameLabel(np.array(labels), np.array([0, 1, 1, 0])), names)


# Query 00 finds ranks 1 (level 0), 2 (level 1), then a tie of one relevant and one irrelevant item.
AP = (1 / 2 + (2 / 3 + 2 / 4) / 2) / 2, (1 / 2 + 2 / 4) / 2, (1 / 2 + 2 / 3) / 2


def test_json_has_full_precision_and_null_for_what_is_undefined():
    text = console.evaluation_records(scores()).to_text("json")
    content = scores_in(text)
    assert list(content) == ["AP", "P@r0"]
    assert content["AP"] == {
        "mean": pytest.approx(AP[0], abs=1e-15),
        "tie_sd": pytest.approx(1 / 24, abs=1e-15),  # of 1/2 and 7/12
        "tie_sd_low": pytest.approx(math.sqrt(2 / 3) / 24),  # each key explains a third of the variance
        "tie_sd_bound": pytest.approx(1 / 24, abs=1e-15),
        "tie_sd_measured": None,
        "low": pytest.approx(AP[1], abs=1e-15),
        "high": pytest.approx(AP[2], abs=1e-15),
        "n_queries": 1,
        "n_undefined": 0,
    }
    assert f"{AP[0]:.15f}"[:15] in text
    undefined = scores_in(console.evaluation_records(scores(7)).to_text("json"), parse_constant=pytest.fail)["AP"]
    assert undefined == dict.fromkeys(content["AP"]) | {"n_queries": 1, "n_undefined": 1}


def test_csv_has_six_decimals():
    assert console.evaluation_records(scores()).to_text("csv") == (
        "metric,mean,tie_sd,tie_sd_low,tie_sd_bound,tie_sd_measured,low,high,n_queries,n_undefined\n"
        "AP,0.541667,0.041667,0.034021,0.041667,,0.500000,0.583333,1,0\n"
        "P@r0,0.000000,0.000000,0.000000,0.000000,,0.000000,0.000000,1,0"
    )


def test_the_interval_of_a_mean_is_a_column_of_every_form():
    one = evaluate(CODES, CODES, SameLabel(np.array([0, 1, 1, 0]), np.array([0, 1, 1, 0])), ["AP", "P@r0"])
    low, high = one.intervals["AP"]
    assert low < one.summary["AP"].mean < high
    records = console.evaluation_records(one, with_interval=True)
    assert records.to_text("csv").splitlines()[1].endswith(f",{low:.6f},{high:.6f}")
    assert scores_in(records.to_text("json"))["AP"]["interval_high"] == high
    header, _, line, *_ = records.to_text("table").splitlines()
    assert (header.split()[-2:], line.split()[-2:]) == (["from", "to"], [f"{low:.4f}", f"{high:.4f}"])
    rows = console.outcome_records([replace(outcome(), evaluation=one)], with_interval=True).to_text("csv")
    assert rows.splitlines()[1].endswith(f",{round(low, 6)},{round(high, 6)}")
    of_one_query = console.evaluation_records(scores(), with_interval=True).to_text("table")
    assert of_one_query.splitlines()[2].split()[-2:] == ["-", "-"]


def test_table_has_four_decimals_and_says_what_was_averaged():
    lines = console.evaluation_records(scores()).to_text("table").splitlines()
    assert lines[0].split() == ["metric", "mean", "tie_sd", "low", "high"]
    assert lines[2].split() == ["AP", "0.5417", "0.04167", "0.5000", "0.5833"]
    assert [line.partition(":")[0] for line in lines[-2:]] == ["tie_sd", "low, high"]
    assert lines[-3].startswith("1 query;")
    assert not any(line != line.rstrip() for line in lines)


def test_an_unknown_deviation_is_a_dash():
    unknown = {"AP": scores().scores["AP"]._replace(tie_sd=np.array([np.nan]))}
    unknown = replace(scores(), scores=unknown, order_effects={})
    shown = console.evaluation_records(unknown).to_text("table").splitlines()
    assert shown[2].split() == ["AP", "0.5417", "-", "0.5000", "0.5833"]
    assert json.loads(console.evaluation_records(unknown).to_text("json"))["AP"]["tie_sd"] is None


def test_table_counts_queries_without_relevant_items():
    *_, first, _, _, last = console.evaluation_records(scores(1, 7)).to_text("table").splitlines()
    assert first == "1 of 2 queries; mean over all orders of tied items."
    assert last == "1 of 2 queries has no relevant item and is left out."
    *_, first, _, _, last = console.evaluation_records(scores(7, 7)).to_text("table").splitlines()
    assert first == "0 of 2 queries; mean over all orders of tied items."
    assert last == "2 of 2 queries have no relevant item and are left out."
    assert "relevant item in" not in console.evaluation_records(scores()).to_text("table")


def outcome(method="itq", **changes):
    settings = {"method": method, "params": '{"n_iter": 50}', "n_queries": 1}
    rows = tuple(
        row(values.mean, values.low, values.high, values.tie_sd, metric=name, **settings)
        for name, values in scores().summary.items()
    )
    fields = {"job": Job("digits", method_card(method), 16, 0, {}), "evaluation": scores(), "rows": rows}
    return Outcome(**(fields | changes))


def test_outcomes_can_be_read_by_a_program():
    outcomes = [outcome(), outcome("lsh")]
    rows = list(csv.DictReader(io.StringIO(console.outcome_records(outcomes).to_text("csv"))))
    cells = [(method, metric) for method in ("itq", "lsh") for metric in ("AP", "P@r0")]
    assert [(cell["method"], cell["metric"]) for cell in rows] == cells
    expected = {"params": '{"n_iter": 50}', "n_bits": "16", "value": "0.541667", "tie_sd": "0.041667"}
    assert {**expected, "low": "0.500000", "high": "0.583333", "n_queries": "1"}.items() <= rows[0].items()
    first, second = json.loads(console.outcome_records(outcomes).to_text("json"))
    assert (first["dataset"], first["method"], first["n_bits"], first["seed"]) == ("digits", "itq", 16, 0)
    assert second["method"] == "lsh"
    assert first["scores"] == scores_in(console.evaluation_records(scores()).to_text("json"))


def test_one_outcome_is_shown_as_its_scores_and_several_as_a_line_each():
    assert console.outcome_records([outcome()], is_grid=False).to_text("table") == console.evaluation_records(
        scores()
    ).to_text("table")
    job = Job("digits", method_card("lsh"), 16, 3, {"n_iter": 5})
    lines = console.outcome_records([outcome(), outcome("lsh", job=job)]).to_text("table").strip().splitlines()
    assert lines[0].split() == ["dataset", "method", "bits", "seed", "AP", "tie_sd", "AP", "low-high", "P@r0"]
    assert lines[2].split() == ["digits", "itq", "16", "0", "0.5417", "0.04167", "0.5000-0.5833", "0.0000"]
    assert lines[3].split()[1:5] == ["lsh", "n_iter=5", "16", "3"]


def test_progress_is_plain_lines_where_there_is_no_terminal(capsys):
    with ProgressBar(2) as progress:
        progress.start_job("first")
        progress.update("items", 1, 2)
        progress.finish_job("first: done [1] :smile:")
    assert capsys.readouterr() == ("", "[1/2] first: done [1] :smile:\n")


class FullDisk(io.StringIO):
    def write(self, text):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def terminal(monkeypatch):
    """Let stderr count as a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("stderr", [None, FullDisk()], ids=["closed", "full"])
@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_that_cannot_be_written_ends_no_work(request, monkeypatch, stderr, is_terminal):
    monkeypatch.setattr("sys.stderr", stderr)
    if is_terminal:
        request.getfixturevalue("terminal")
    with ProgressBar(2) as progress:
        for text in ("first", "second"):
            progress.start_job(text)
            progress.update("waiting", 0, 0)
            progress.finish_job(text)
    assert progress.n_done == 2


@pytest.fixture
def clock(monkeypatch):
    """Time that stands still until it is set."""
    now = [0.0]
    monkeypatch.setattr("hashbench.cli.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_progress_estimates_what_is_left_from_new_jobs_once_it_is_long(capsys, clock):
    with ProgressBar(4) as progress:
        for clock[0] in (300.0, 390.0, 540.0, 541.0):
            progress.finish_job("done")
    first, second, third, fourth = capsys.readouterr().err.splitlines()
    assert first == "[1/4] done"  # it compiled loops, so its 300 s say little
    assert second == "[2/4] done (at this pace 3 min left)"  # 90 s for the second, two more to go
    assert third == "[3/4] done (at this pace 2 min left)"  # 240 s for two: 120 s for the last
    assert fourth == "[4/4] done"
    with ProgressBar(6) as progress:
        for clock[0], is_new in ((1.0, False), (2.0, False), (300.0, True), (390.0, True)):
            progress.finish_job("done", is_new=is_new)
    *before, last = capsys.readouterr().err.splitlines()
    assert before == [f"[{number}/6] done" for number in (1, 2, 3)]
    assert last == "[4/6] done (at this pace 3 min left)"
    progress = ProgressBar(4)
    for clock[0] in (0.0, 29.0):
        progress.finish_job("done")
    assert capsys.readouterr().err == "[1/4] done\n[2/4] done\n"


def test_long_training_is_reported_before_any_job_is_done(capsys, monkeypatch):
    monkeypatch.setattr("hashbench.cli.progress._SILENCE", -1)
    with ProgressBar(2) as progress:
        progress.update("epochs", 3, 30)
        progress.finish_job("digits")
    assert capsys.readouterr().err.splitlines() == ["[0/2] 3 of 30 epochs", "[1/2] digits"]


@pytest.mark.parametrize(
    ("n_refused", "n_jobs", "words"), [(1, 2, None), (2, 2, "none of the 2 jobs could run"), (1, 1, "Too many bits")]
)
def test_refusals_are_printed_and_end_in_an_error_if_nothing_ran(n_refused, n_jobs, words, capsys, monkeypatch):
    jobs = [Job("digits", method_card("itq"), 16), Job("digits", method_card("lsh"), 16)][:n_jobs]
    outcomes = [Outcome(job, None, "Too many bits.") for job in jobs[:n_refused]]
    outcomes += [outcome("lsh")] * (n_jobs - n_refused)
    monkeypatch.setattr("hashbench.pipeline.runner.run", lambda *args, **kwargs: iter(outcomes))
    if words:
        with pytest.raises(HashbenchError, match=words):
            list(console.run_jobs(jobs, Demands(["AP"])))
    else:
        assert list(console.run_jobs(jobs, Demands(["AP"]))) == outcomes[1:]
    line = "[1/2] digits itq 16 bits seed 0: refused. Too many bits.\n"
    assert (line in capsys.readouterr().err) == (n_jobs > 1)


@pytest.mark.usefixtures("terminal")
def test_progress_draws_a_bar_on_a_terminal_and_shows_names_as_they_are(capsys):
    with ProgressBar(2) as progress:
        progress.start_job("[/b] [red]x :smile:")
        progress.update("[/i]", 1, 2)
        progress._bar.refresh()
        sys.stdout.write("on stdout\n")
        progress.finish_job("[/b] done")
    out, err = capsys.readouterr()
    for text in ("\x1b[", "[/b] [red]x :smile:", "[/i]", "[/b] done"):
        assert text in err
    assert "on stdout\n" in out


# ---------------------------------------------------------------- info


def in_words(name):
    return descriptions.describe(name).to_text("text")


def facts(text):
    return {line.partition(":")[0]: line.partition(":")[2].strip() for line in text.splitlines()}


def test_prepared_dataset_is_described(digits_data):
    info = facts(in_words("digits"))
    assert info["items"] == "1,797 x 64 pixels (float32)"
    assert info["split"] == "200 queries, 1,597 database, 1,000 training"
    assert info["affinity"] == "same-label"
    assert info["classes"] == "10, 174 to 183 items each"
    assert re.findall(r"\d+", info["duplicates"]) == ["0"] * 4
    assert info["fingerprint"] == read_record(digits_data / "datasets" / "digits.h5")["fingerprint"]
    assert "CC BY" in info["licence"]
    assert in_words(str(digits_data / "datasets" / "digits.h5")) == in_words("digits")


def test_facts_that_are_not_texts_are_described(tiny):
    about = {"source": {"a": [1, 2]}, "summary": "two\nlines", "n": 3, "odd [/b]": None}
    info = facts(descriptions.describe_dataset(tiny(about=about)))
    assert {**info, "source": '{"a": [1, 2]}', "summary": "two lines", "n": "3", "odd [/b]": "null"} == info


def test_dataset_by_distance_shows_its_thresholds_as_distances(tiny):
    assert facts(descriptions.describe_dataset(tiny("distance")))["affinity"] == (
        "distance: level 1 up to 3.0000, level 5 up to 2.0000"
    )


def test_method_and_metric_are_described():
    facts_of_itq, _, parameters = in_words("itq").partition("\nparameters:\n")
    info = facts(facts_of_itq)
    assert (info["group"], info["supervision"], info["version"]) == ("unsupervised", "none", "1")
    lines = [line.split(maxsplit=1) for line in parameters.splitlines()]
    assert [name for name, _ in lines] == ["n_bits=32", "n_iter=50", "random_state=0"]
    assert dict(lines)["n_bits=32"].startswith("Code length")
    for name in ("AP@k", "AP@10", "NDCG"):
        title, summary, source = in_words(name).splitlines()
        assert title == name
        assert summary.endswith(".")
        assert source.startswith("source: ")


def test_choices_and_presets_of_a_method_are_described():
    text = in_words("dsh")
    assert re.search(r"objective=original +\(original, dispersion\)", text)
    before, _, dispersion = text.partition("--preset dispersion, at 32 bits:")
    assert "epochs=750" in dispersion
    assert "epochs=280" in before.partition("--preset paper")[2]
    assert "preset" not in in_words("itq")
    assert " Tried by tune: 12.5, 50.0, 200.0, 800.0, 3200.0, 12800.0, 51200.0. " in " ".join(in_words("adsh").split())
    assert "Tried by tune" not in in_words("itq")
    assert "n_bins=16" in in_words("talr-ap")  # half the bits
    notes = in_words("idhn").partition("\nnotes:\n")[2].partition("\n\nparameters:\n")[0]
    assert " On corel5k, the best slope depends on the code length. " in " ".join(notes.split())
    assert "\n\n  On corel5k" in notes  # a paragraph of its own
    assert "notes:" not in in_words("constant")


def described(name):
    """What JSON says, without the version before it."""
    return scores_in(descriptions.describe(str(name)).to_text("json"), parse_constant=pytest.fail)


def test_descriptions_can_be_read_by_a_program(hashbench, digits_data):
    dataset = digits_data / "datasets" / "digits.h5"
    codes, model = hashbench("encode", "--method", "itq", "--bits", 12, "--keep-model").stdout.split()
    kinds = {
        "itq": "method",
        "AP@k": "metric",
        "P@5": "metric",
        "digits": "dataset",
        "labelme": "dataset",
        dataset: "dataset",
        codes: "codes",
        model: "model",
    }
    contents = {name: described(name) for name in kinds}
    assert {name: content["kind"] for name, content in contents.items()} == kinds
    assert contents["itq"]["parameters"]["n_iter"] | {"about": ""} == {
        "default": 50,
        "about": "",
        "tried_by_tune": None,
    }
    assert described("talr-ap")["presets"]["paper"].items() >= {"n_bits": 32, "n_bins": 16}.items()
    assert contents["AP@k"]["options"] == ["retrieved", "relevant", "capped"]
    assert contents["digits"] == contents[dataset]
    sizes = [contents["digits"][f"n_{part}"] for part in ("items", "features", "queries", "database", "train")]
    assert sizes == [1797, 64, 200, 1597, 1000]
    assert contents["digits"]["fingerprint"] == contents[codes]["dataset_fingerprint"]
    assert contents["labelme"]["prepare"] == "hashbench prepare labelme"
    assert contents[codes]["params"] == contents[model]["params"] == {"n_iter": 50}
    assert contents[dataset]["n_queries_equal"].keys() == {"database", "training"}
    assert sum(contents[dataset]["class_sizes"]) == 1797


@pytest.mark.parametrize("name", built_in_methods())
def test_every_parameter_has_a_meaning(name):
    """Those that a base class explains, too."""
    meanings = method_card(name).meanings
    for parameter in get_method(name)().get_params():
        assert meanings[parameter].endswith("."), parameter

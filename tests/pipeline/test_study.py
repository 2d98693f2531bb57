"""A study: what a TOML file may hold, what options beside it change, and what a dry run prints."""

import json
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.result_files import contents, jobs_in

from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import Sweep, grid, part_of
from hashbench.pipeline.study import Study, read_study
from hashbench.store.results import read_rows

RESULTS = read_rows(ROOT / "results", "digits")
WHOLE = """
datasets = ["digits", "digits-pairs"]
bits = [16, 32]
seeds = [0, 1]
metrics = ["AP", "NDCG@100"]
preset = "paper"
[params]
ridge = 0.5
[methods]
lsh = {}
[methods.ksh]
n_items = [500, 600]
[[methods.itq]]
n_iter = 20
[[methods.itq]]
"""


@pytest.fixture
def study(tmp_path):
    def write(text):
        path = tmp_path / "study.toml"
        path.write_text(text)
        return path

    return write


def test_a_file_holds_all_that_spans_a_grid(study):
    assert read_study(study(WHOLE)) == Study(
        datasets=("digits", "digits-pairs"),
        methods=(("lsh", {}), ("ksh", {"n_items": Sweep((500, 600))}), ("itq", {"n_iter": 20}), ("itq", {})),
        n_bits=(16, 32),
        seeds=(0, 1),
        metrics=("AP", "NDCG@100"),
        params={"ridge": 0.5, "preset": "paper"},
    )


def test_a_file_without_methods_leaves_them_to_options(hashbench, study):
    path = study("bits = 8\nmethods = {}")
    command = ["encode", "--grid", path, "--dry-run"]
    assert "study.toml names no methods." in hashbench(*command).stderr
    assert hashbench(*command, "--method", "lsh").stdout.startswith("digits lsh 8 bits seed 0: ")


def test_a_list_of_one_value_and_a_list_of_lists_are_values(study):
    ((_, params),) = read_study(study("[methods]\na.x = [5]\na.y = [[1, 2]]\na.z = [[1], [2]]")).methods
    assert params == {"x": 5, "y": [1, 2], "z": Sweep(([1], [2]))}


def test_a_whole_number_is_one_setting_with_its_float_where_numbers_are_real():
    jobs = grid(
        ["digits"], [("dsh", {"margin": Sweep((2, 2.0))}), ("dsdh", {"eta": Sweep((None, 3, 3.0))})], [8], [0], {}
    )
    assert [dict(job.params) for job in jobs] == [{"margin": 2.0}, {}, {"eta": 3.0}]
    assert [json.loads(job.recorded)["margin"] for job in jobs[:1]] == [2.0]
    assert all(type(value) is float for job in jobs for value in job.params.values())
    assert type(json.loads(jobs[0].recorded)["epochs"]) is int


def test_the_committed_study_holds_the_variants_of_the_results():
    study = read_study(ROOT / "benchmarks/rows/variants.toml")
    for name, params in study.methods:
        assert any(json.loads(row.params).items() >= params.items() for row in RESULTS if row.method == name)


def test_a_method_records_how_many_settings_were_tried_for_it_and_none_as_a_text(study):
    path = study("bits = 8\n[methods.dpsh]\ntuned = 9\neta = 'None'\nlearning_rate = 0.2\n[methods.lsh]")
    tuned = read_study(path)
    assert tuned.methods[0] == ("dpsh", {"tuned": 9, "eta": None, "learning_rate": 0.2})
    assert [(job.n_trials, dict(job.params)) for job in tuned.jobs()] == [
        (9, {"eta": None, "learning_rate": 0.2}),
        (0, {}),
    ]
    for name, value in (("epochs", 2), ("learning_rate", 0.1), ("dpsh:eta", 3.0), ("preset", "paper")):
        assert [job.n_trials for job in tuned.changed(["dpsh"], params={name: value}).jobs()] == [0], name
    for changed in (tuned.changed(params={"device": "cpu"}), tuned.changed(methods=["dpsh"], n_bits=[16])):
        assert changed.jobs()[0].n_trials == 9
    assert tuned.changed(params={"weights": "my.pth"}).methods[0][1]["tuned"] == 9
    assert tuned.changed(methods=["dpsh", "lsh"], params={"lsh:n_bits": 8}).methods[0][1]["tuned"] == 9


@pytest.mark.usefixtures("digits_data", "empty_folder")
def test_the_number_of_tried_settings_is_kept_with_the_origin_of_rows(hashbench):
    Path("grid.toml").write_text(
        "datasets = ['digits']\nbits = 8\n[methods.itq]\ntuned = 4\nn_iter = 20\n[methods.lsh]\n"
    )
    assert hashbench("run", "--grid", "grid.toml", "--metric", "AP").exit_code == 0
    for method, trials in (("itq", 4), ("lsh", 0)):
        (job,) = jobs_in(Path(f"results/digits/{method}.csv"))
        assert job["trials"] == trials
    text = hashbench("tables", "--metric", "AP").stdout
    assert "- Tuned: on digits (pixels), settings chosen on held-out training items, among 4 for itq." in text
    assert "| lsh " in text


@pytest.mark.usefixtures("digits_data", "empty_folder")
def test_the_number_of_tried_settings_may_become_known_after_the_rows_and_stays(hashbench):
    Path("grid.toml").write_text("bits = 8\n[methods.itq]\ntuned = 4\nn_iter = 20\n")
    plain = ["run", "--method", "itq", "--bits", 8, "--param", "n_iter=20", "--metric", "AP"]
    grid = ["run", "--grid", "grid.toml", "--metric", "AP"]
    contents = []
    for command, trials in ((plain, 0), (grid, 4), (plain, 4)):
        assert hashbench(*command).exit_code == 0
        (job,) = jobs_in(Path("results/digits/itq.csv"))
        assert job.pop("trials") == trials
        contents.append((Path("results/digits/itq.csv").read_bytes(), job))
    assert contents[0] == contents[1] == contents[2]
    assert hashbench(*plain, "--metric", "NDCG", "--results", "elsewhere").exit_code == 0
    Path("grid.toml").write_text(Path("grid.toml").read_text().replace("4", "3"))
    assert hashbench(*grid, "--results", "fewer").exit_code == 0
    for folders in (["results", "fewer", "elsewhere"], ["elsewhere", "fewer", "results"]):
        assert hashbench("results", "merge", *folders, "--results", f"into-{folders[0]}").exit_code == 0
        assert [job["trials"] for job in jobs_in(Path(f"into-{folders[0]}/digits/itq.csv"))] == [4]
    assert hashbench(*plain, "--metric", "NDCG").exit_code == 0  # adds rows to the job
    assert [job["trials"] for job in jobs_in(Path("results/digits/itq.csv"))] == [4]


# ---------------------------------------------------------------- options beside it


def test_options_override_the_study():
    whole = Study(("a",), (("ksh", {"n_items": 5}), ("itq", {})), (16,), (3,), ("AP",), {"ridge": 0.5})
    assert whole.changed() == whole
    changed = whole.changed(n_bits=[8], seeds=[0], metrics=["P@10"])
    assert changed == Study(("a",), whole.methods, (8,), (0,), ("P@10",), {"ridge": 0.5})
    assert whole.changed(params={"n_items": 7}).methods == (("ksh", {}), ("itq", {}))
    assert whole.changed(params={"n_items": 7}).params == {"ridge": 0.5, "n_items": 7}


def test_options_override_the_study_for_one_method():
    whole = Study(methods=(("lsh", {}), ("itq", {})), params={"itq:n_iter": 20, "itq:n_jobs": 2, "ridge": 0.5})
    assert whole.changed(params={"n_iter": 5}).params == {"n_iter": 5, "itq:n_jobs": 2, "ridge": 0.5}
    both = {"n_iter": 5, "itq:n_iter": 7}
    assert whole.changed(params=both).params == {**both, "itq:n_jobs": 2, "ridge": 0.5}
    assert whole.changed(methods=["lsh"]).params == {"ridge": 0.5}
    assert whole.changed(methods=["itq"]).params == whole.params


def test_methods_and_datasets_are_chosen_among_those_of_the_study():
    variants = ("ksh", {"n_items": 5}), ("itq", {}), ("ksh", {"n_items": 6})
    whole = Study(("digits", "tiny.h5"), variants)
    assert whole.changed(methods=["ksh"]).methods == (variants[0], variants[2])
    assert whole.changed(methods=["itq", "ksh"], datasets=["digits:pixels"]) == Study(("digits:pixels",), variants)
    with pytest.raises(HashbenchError, match="the study has no method 'lsh', only ksh, itq"):
        whole.changed(methods=["ksh", "lsh"])
    with pytest.raises(HashbenchError, match=r"the study has no dataset 'x.h5', only digits, tiny.h5"):
        whole.changed(datasets=["x.h5"])
    assert Study().changed(methods=["lsh"], datasets=["x.h5"]) == Study(("x.h5",), (("lsh", {}),))


def test_a_parameter_of_a_method_that_is_not_chosen_is_refused_only_as_an_option(hashbench, study):
    path = study('bits = 8\nmethods = ["lsh", "itq"]\nparams = {"itq:n_iter" = 20}')
    command = ["encode", "--grid", path, "--dry-run", "--method", "lsh"]
    assert hashbench(*command).stdout.startswith("digits lsh 8 bits seed 0: ")
    assert "itq:n_iter is only for itq" in hashbench(*command, "--param", "itq:n_iter=5").stderr
    assert "add --method itq" in hashbench(*command, "--param", "itq:n_iter=5").stderr
    assert "Did you mean 'lsh'?" in hashbench(*command, "--param", "lhs:n_iter=5").stderr
    changed = hashbench("encode", "--grid", path, "--dry-run", "--method", "itq", "--param", "n_iter=5").stdout
    assert changed.startswith("digits itq n_iter=5 8 bits seed 0: ")


def test_a_file_may_have_presets_validation_and_device_that_chosen_methods_lack(hashbench, study):
    path = study('bits = 8\nmethods = ["lsh", "dpsh"]\npreset = "paper"\nvalidation = 0.1\ndevice = "cpu"')
    command = ["encode", "--grid", path, "--dry-run", "--method"]
    assert hashbench(*command, "lsh").stdout.startswith("digits lsh 8 bits seed 0: ")
    assert " validation=0.1 " in hashbench(*command, "dpsh").stdout


def test_parameters_of_all_methods_are_for_those_that_have_them(hashbench, study):
    path = study('bits = 8\nmethods = ["lsh", "itq", "agh"]\nparams = {n_iter = 15, n_anchors = 70}')
    command = ["encode", "--grid", path, "--dry-run"]
    jobs = {"lsh 8", "itq n_iter=15 8", "agh n_anchors=70 n_iter=15 8"}
    assert {line[7:].partition(" bits")[0] for line in hashbench(*command).stdout.splitlines()[:-1]} == jobs
    assert hashbench(*command, "--method", "lsh").stdout.startswith("digits lsh 8 bits seed 0: ")
    other = hashbench(*command, "--method", "itq", "--method", "lsh", "--param", "n_iter=5").stdout
    assert "digits itq n_iter=5 8 bits" in other


def test_seeds_that_no_method_uses_are_reported_once(hashbench):
    command = ["encode", "--dry-run", "--bits", 8, "--bits", 16, "--seed", 0, "--seed", 5, "--method", "pcah"]
    done = hashbench(*command)
    assert done.stderr == "only seed 0 is run, not 5: no randomness in pcah.\n"
    assert done.stdout.splitlines()[-1] == "0 of 2 jobs done, 2 to do."
    assert hashbench(*command, "--method", "lsh").stderr == ""
    with pytest.warns(UserWarning, match="only seed 0 is run, not 5, 6: no randomness in pcah, sh"):
        Study(methods=(("pcah", {}), ("sh", {})), n_bits=(8,), seeds=(5, 6)).jobs()


@pytest.mark.usefixtures("digits_data")
def test_run_takes_a_study_and_a_dry_run_of_it_writes_nothing(hashbench, study, data, tmp_path):
    path = study('bits = 8\nmetrics = "AP"\n[methods]\nlsh = {}\nitq.n_iter = [2, 3]')
    before = sorted(data.rglob("*"))
    command = ["run", "--grid", path, "--results", tmp_path / "results"]
    dry = hashbench(*command, "--dry-run")
    assert dry.stdout.splitlines() == [
        "digits lsh 8 bits seed 0: encode, score",
        "digits itq n_iter=2 8 bits seed 0: encode, score",
        "digits itq n_iter=3 8 bits seed 0: encode, score",
        "0 of 3 jobs done, 3 to do.",
    ]
    assert sorted(data.rglob("*")) == before
    assert not (tmp_path / "results").exists()

    assert hashbench(*command, "--method", "itq", "--param", "n_iter=2").exit_code == 0
    rows = read_rows(tmp_path / "results", "digits")
    assert {(row.method, row.params, row.metric) for row in rows} == {("itq", '{"n_iter": 2}', "AP")}
    assert hashbench("encode", "--grid", path, "--method", "lsh").exit_code == 0
    after = {file: file.stat().st_mtime_ns for file in data.rglob("*")}
    assert hashbench(*command, "--dry-run").stdout.splitlines() == [
        "digits lsh 8 bits seed 0: score AP",
        "digits itq n_iter=2 8 bits seed 0: done",
        "digits itq n_iter=3 8 bits seed 0: encode, score",
        "1 of 3 jobs done, 2 to do.",
    ]
    assert hashbench("encode", "--grid", path, "--dry-run").stdout.splitlines()[-1] == "2 of 3 jobs done, 1 to do."
    two_metrics = hashbench(*command, "--dry-run", "--metric", "AP", "--metric", "P@5", "--metric", "P@5").stdout
    assert "n_iter=2 8 bits seed 0: score P@5\n" in two_metrics
    assert hashbench(*command, "--dry-run", "--force").stdout.splitlines()[-1] == "0 of 3 jobs done, 3 to do."
    assert {file: file.stat().st_mtime_ns for file in data.rglob("*")} == after


def remaining(hashbench, *command):
    """Return what a dry run prints of the first job."""
    return hashbench(*command, "--dry-run").stdout.splitlines()[0].partition(" seed 0: ")[2]


def test_a_dry_run_looks_for_rows_in_the_results_file(hashbench, tiny_file, tmp_path):
    command = ["run", "--method", "lsh", "--bits", 8, "--metric", "AP", "--metric", "RR", "--dataset", tiny_file()]
    assert hashbench(*command, "--results", tmp_path).exit_code == 0
    assert remaining(hashbench, *command, "--results", tmp_path) == "done"
    assert remaining(hashbench, *command, "--results", tmp_path / "other") == "write rows"
    assert not (tmp_path / "other").exists()
    whole = (tmp_path / "tiny" / "lsh.csv").read_text()
    header, first, _ = whole.splitlines(keepends=True)
    (tmp_path / "tiny" / "lsh.csv").write_text(header + first)
    assert remaining(hashbench, *command, "--results", tmp_path) == "write rows"
    assert hashbench(*command, "--results", tmp_path).exit_code == 0
    assert (tmp_path / "tiny" / "lsh.csv").read_text() == whole


def test_a_dry_run_computes_damaged_codes_and_scores_again(hashbench, tiny_file, data, tmp_path):
    command = ["run", "--method", "lsh", "--bits", 8, "--metric", "AP", "--dataset", tiny_file(), "--results", tmp_path]
    assert hashbench(*command).exit_code == 0
    assert remaining(hashbench, *command) == "done"
    (scores,) = data.glob("scores/**/*.h5")
    scores.write_bytes(scores.read_bytes()[:500])
    assert remaining(hashbench, *command) == "score AP"
    (codes,) = data.glob("codes/**/*.h5")
    codes.write_bytes(b"")
    assert remaining(hashbench, *command) == "encode, score"


def test_a_dry_run_prepares_no_dataset(hashbench, tmp_path, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "data"))
    command = ["encode", "--dry-run", "--method", "lsh", "--bits", 8]
    lines = hashbench(*command).stdout.splitlines()
    assert lines == ["digits lsh 8 bits seed 0: prepare, encode", "0 of 1 jobs done, 1 to do."]
    assert not (tmp_path / "data").exists()


def test_a_dry_run_notices_a_changed_dataset(hashbench, tiny_file, tmp_path):
    command = ["encode", "--method", "lsh", "--bits", 8, "--dataset", tiny_file()]
    assert hashbench(*command).exit_code == 0
    assert hashbench(*command, "--dry-run").stdout.endswith("1 of 1 jobs done, 0 to do.\n")
    tiny_file(seed=1)
    assert hashbench(*command, "--dry-run").stdout.endswith("0 of 1 jobs done, 1 to do.\n")
    (tmp_path / "tiny.h5").write_text("no more")
    refused = hashbench(*command, "--dry-run")
    assert refused.exit_code == 1
    assert "it is not HDF5" in refused.stderr


@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 80])
def test_parts_of_a_grid_share_out_its_jobs_whatever_their_order(n_parts):
    jobs = grid(["digits", "digits-pairs"], ["lsh", "itq", "ksh"], [8, 16, 32, 64], [0, 1, 2], {})
    parts = [part_of(jobs, number, n_parts) for number in range(1, n_parts + 1)]
    assert sorted(str(job) for part in parts for job in part) == sorted(map(str, jobs))
    assert [{*map(str, part)} for part in parts] == [
        {*map(str, part_of(jobs[::-1], number, n_parts))} for number in range(1, n_parts + 1)
    ]
    for method in ("lsh", "itq", "ksh"):  # shares of the bits differ by one job at most
        bits = [sum(job.n_bits for job in part if job.method == method) for part in parts]
        assert max(bits) - min(bits) <= 64


def test_a_part_runs_alone_and_parts_together_are_the_whole(hashbench, tmp_path):
    common = ("run", "--method", "lsh", "--method", "pcah", "--bits", 4, "--bits", 8, "--metric", "AP", "--results")
    whole = hashbench(*common, tmp_path / "whole")
    parts = [hashbench(*common, tmp_path / "parts", "--part", f"{number}/3") for number in (1, 2, 3)]
    assert [part.exit_code for part in (whole, *parts)] == [0] * 4
    assert "part 1 of 3: 2 of 4 jobs" in parts[0].stderr
    assert contents(tmp_path / "parts" / "digits") == contents(tmp_path / "whole" / "digits")
    empty = hashbench(*common, tmp_path / "none", "--part", "9/9")
    assert (empty.exit_code, empty.stdout) == (0, "")

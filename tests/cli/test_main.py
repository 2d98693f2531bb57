import csv
import json
import re
import subprocess
import sys
from importlib import import_module

import click
import numpy as np
import pytest
from helpers.json_output import scores_in
from helpers.paths import built_in_datasets, built_in_methods

from hashbench import __version__, registry, testing
from hashbench.cli.main import COMMANDS, cli
from hashbench.errors import HashbenchError
from hashbench.scoring.metrics import get_metric
from hashbench.store import hdf5

HEAVY = ["numpy", "pandas", "torch", "scipy", "sklearn", "h5py", "numba", "rich", "matplotlib"]
IMPORTED = """
import json, sys
from click.testing import CliRunner
from hashbench.cli.main import cli
commands, heavy = map(json.loads, sys.argv[1:])
done = [(CliRunner().invoke(cli, command).exit_code, [name for name in heavy if name in sys.modules])
        for command in commands]
print(json.dumps(done))
"""


def imported_by(*commands):
    """Run commands in one fresh interpreter; return the exit code of each, and the heavy packages imported so far."""
    command = [sys.executable, "-c", IMPORTED, json.dumps(commands), json.dumps(HEAVY)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_help_imports_nothing_heavy_and_lists_nothing_that_fits_compiles_or_plots():
    helped = [["--help"], ["run", "--help"], ["diff", "-h"], ["evaluate", "-h"], ["--version"]]
    listed = [["list", "methods"], ["list", "metrics"], ["list", "datasets"], ["info", "itq"], ["info", "AP@k"]]
    done = imported_by(*helped, *listed, ["run", "--method", "iqt", "--bits", "8"])
    assert done[:5] == [[0, []]] * 5
    assert [exit_code for exit_code, _ in done[5:]] == [0] * 5 + [1]
    assert set(done[-1][1]) <= {"numpy", "h5py"}


@pytest.mark.usefixtures("digits_data")
def test_a_finished_run_is_skipped_without_importing_what_made_it(hashbench, tmp_path):
    command = ["run", "--method", "itq", "--bits", "8", "--metric", "AP", "--results", str(tmp_path)]
    assert hashbench(*command).exit_code == 0
    ((exit_code, imported),) = imported_by(command)
    assert exit_code == 0
    assert set(imported) <= {"numpy", "h5py", "rich"}


def test_installed_script_runs_outside_the_checkout(script, tmp_path):
    process = script("list", "methods")
    stdout, stderr = process.communicate()
    assert process.returncode == 0
    assert stderr == ""
    assert [line.split()[0] for line in stdout.splitlines()] == registry.method_names()
    assert not list(tmp_path.iterdir())


def test_version_is_that_of_the_package(hashbench):
    assert hashbench("--version").stdout == f"hashbench, version {__version__}\n"


def test_python_runs_the_package_as_the_command():
    command = [sys.executable, "-m", "hashbench", "list", "methods", "--speed", "fast"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: python -m hashbench list ")


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_with_many_options_have_them_in_groups(name):
    options = [option for option in cli.get_command(None, name).params if isinstance(option, click.Option)]
    if len(options) > 8:
        assert [option.opts[0] for option in options if not getattr(option, "group", None)] == []


def test_a_rule_of_a_group_is_shown_in_its_heading_and_checked(hashbench):
    shown = hashbench("evaluate", "--help").stdout
    assert "[only with --run]" in shown
    assert "[not with CODES.h5 or --run]" in shown
    result = hashbench("evaluate", "--complete")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Error: --complete needs --run." in result.stderr


# ---------------------------------------------------------------- list, info, check


def test_lists_have_a_line_a_name_and_list_alone_counts_them_in_words_and_in_json(hashbench):
    result, counts = hashbench("list"), scores_in(hashbench("list", "--format", "json").stdout)
    shown = re.findall(r"^(hashbench list \w+) +(\d+)  ", result.stdout, re.MULTILINE)
    kinds = cli.get_command(None, "list").params[0].type.choices
    assert [command for command, _ in shown] == [f"hashbench list {kind}" for kind in kinds]
    names = {}
    for kind, (command, count) in zip(kinds, shown, strict=True):
        lines = [line for line in hashbench(*command.split()[1:]).stdout.splitlines() if not line.startswith(" ")]
        (items,) = scores_in(hashbench("list", kind, "--format", "json").stdout).values()
        names[kind] = [line.split()[0] for line in lines]
        assert [item["name"] for item in items] == names[kind]
        assert int(count) == len(lines) == counts[kind]["count"] > 0
    assert set(built_in_methods()) <= {*names["methods"]}
    assert set(built_in_datasets()) <= {*names["datasets"]}
    assert {"AP", "AP@k", "NDCG", "NDCG@k", "P@k", "P@rN"} <= {*names["metrics"]}
    assert "Options: :retrieved, :relevant, :capped. Also mAP@k, MAP@k." in hashbench("list", "metrics").stdout


def test_options_that_take_names_say_where_these_are_and_their_examples_exist(hashbench):
    known = {"METHOD": registry.get_method, "METRIC": get_metric, "DATASET": registry.dataset_class}
    for name in COMMANDS:
        for option in cli.get_command(None, name).params:
            if option.opts[0] in ("--method", "--metric", "--dataset"):
                assert option.metavar == option.opts[0].removeprefix("--").upper(), name
                example = re.search(r" such as ([^;]+), repeatable", option.help)
                for named in re.split(", | or ", example[1]) if example else ():
                    known[option.metavar](named)
    shown = " ".join(hashbench("run", "--help").stdout.split())
    assert "-m, --method METHOD " in shown
    assert all(f"see `hashbench list {kind}`" in shown for kind in ("methods", "metrics", "datasets"))


def test_run_says_where_its_rows_are_on_a_terminal(hashbench, digits_data, tmp_path, monkeypatch):
    monkeypatch.setattr("hashbench.cli.pipeline._is_watched", lambda: True)
    result = hashbench("run", "--method", "lsh", "--bits", 8, "--metric", "AP", "--results", tmp_path / "mine")
    assert result.stderr.splitlines()[-1] == f"Rows are in {tmp_path / 'mine' / 'digits'}."


@pytest.mark.parametrize(("kind", "name"), [("method", "random"), ("dataset", "digits-unlabelled")])
def test_check_runs_the_conformance_suite(hashbench, kind, name):
    checks = testing.METHOD_CHECKS if kind == "method" else testing.DATASET_CHECKS
    result = hashbench("check", kind, name)
    assert result.exit_code == 0
    assert [line[:6] for line in result.stdout.splitlines()] == ["ok    "] * len(checks)


def test_check_prints_what_fails(hashbench, monkeypatch):
    monkeypatch.setattr(registry.get_method("random"), "version", 0)
    result = hashbench("check", "method", "random")
    assert result.exit_code == 1
    assert "FAIL  describes itself: ConformanceError: version is 0, not 1 or more" in result.stdout
    assert f"'random' fails 1 of {len(testing.METHOD_CHECKS)} checks." in result.stderr


def test_check_of_a_dataset_that_cannot_be_made_says_so_once(hashbench, monkeypatch):
    def prepare(self):
        raise HashbenchError("cannot reach example.org.")

    monkeypatch.setattr(registry.dataset_class("digits"), "prepare", prepare)
    result = hashbench("check", "dataset", "digits")
    first, *others = result.stdout.splitlines()
    assert first == "FAIL  prepares the same twice: HashbenchError: cannot reach example.org."
    assert [line[:6] for line in others] == ["skip  "] * (len(testing.DATASET_CHECKS) - 1)
    assert result.exit_code == 1
    assert f"'digits' fails 1 of {len(testing.DATASET_CHECKS)} checks" in result.stderr


# ---------------------------------------------------------------- prepare, encode, evaluate, tables


def test_prepare_makes_each_dataset_once(hashbench, data):
    first = hashbench("prepare", "digits", "digits-unlabelled")
    assert first.exit_code == 0
    assert [line for line in first.stdout.splitlines() if line.startswith("prepared")] == [
        f"prepared {data / 'datasets' / 'digits.h5'}",
        f"prepared {data / 'datasets' / 'digits-unlabelled.h5'}",
    ]
    before = (data / "datasets" / "digits.h5").stat().st_mtime_ns
    again = hashbench("prepare", "digits").stdout
    assert again.startswith("reused ")
    assert set(again.splitlines()[1:]) < set(first.stdout.splitlines())
    assert (data / "datasets" / "digits.h5").stat().st_mtime_ns == before
    assert hashbench("prepare", "--dataset", "digits", "digits-unlabelled").stdout.count("reused ") == 2
    assert hashbench("prepare", "digits", "--force").stdout.startswith("prepared")
    assert (data / "datasets" / "digits.h5").stat().st_mtime_ns > before


def test_encode_prints_the_files_and_nothing_else(hashbench, tiny_file):
    grid = ["--method", "lsh", "--method", "pcah", "--bits", 2, "--bits", 4, "--dataset", tiny_file()]
    result = hashbench("encode", *grid)
    assert result.exit_code == 0
    paths = result.stdout.splitlines()
    assert len(set(paths)) == 4
    for path in paths:
        with hdf5.open_codes(hdf5.Path(path)) as codes:
            assert codes.made.dataset == "tiny"
    again, forced = hashbench("encode", *grid), hashbench("encode", *grid, "--force")
    assert again.stdout == result.stdout
    for done, action in ((result, "encoded"), (again, "reused"), (forced, "encoded")):
        assert [line.split()[-2:] for line in done.stderr.splitlines()] == [[action, "codes"]] * 4


@pytest.fixture
def codes(hashbench, digits_data):
    return hashbench("encode", "--method", "lsh", "--bits", 12).stdout.strip()


def test_evaluate_prints_the_same_numbers_in_every_format_and_as_run(hashbench, codes, tmp_path):
    exact = scores_in(hashbench("evaluate", codes, "--format", "json").stdout)
    assert list(exact) == ["AP", "AP@1000", "NDCG", "NDCG@100", "P@100", "P@r2"]
    for values in exact.values():
        assert 0 <= values["low"] <= values["mean"] <= values["high"] <= 1
        assert (values["n_queries"], values["n_undefined"]) == (200, 0)
    command = ["run", "--method", "lsh", "--bits", 12, "--format", "json", "--results", tmp_path / "results"]
    (job,) = json.loads(hashbench(*command).stdout)
    assert job["scores"] == exact
    metrics = ["--metric", "NDCG@100", "--metric", "AP"]
    rows = list(csv.DictReader(hashbench("evaluate", codes, *metrics, "--format", "csv").stdout.splitlines()))
    assert [row["metric"] for row in rows] == ["NDCG@100", "AP"]
    table = hashbench("evaluate", codes, *metrics).stdout.split()
    for row in rows:
        for key in ("mean", "low", "high"):
            value = exact[row["metric"]][key]
            assert (row[key], f"{value:.4f}" in table) == (f"{value:.6f}", True)


def test_per_query_scores_average_to_the_mean(hashbench, codes, tmp_path):
    path = tmp_path / "new" / "scores.csv"
    exact = scores_in(hashbench("evaluate", codes, "--format", "json", "--per-query", path).stdout)
    assert b"\r" not in path.read_bytes()
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["query", "metric", "value", "tie_sd", "low", "high"]
    assert len(rows) == 6 * 200
    for name, values in exact.items():
        own = [row for row in rows if row["metric"] == name]
        assert [int(row["query"]) for row in own] == list(range(200))
        for column, key in (("value", "mean"), ("low", "low"), ("high", "high")):
            assert np.mean([float(row[column]) for row in own]) == pytest.approx(values[key], abs=1e-14)


def test_options_on_queries_and_orders_reach_the_scores(hashbench, codes, tmp_path):
    assert "30 random orders" in hashbench("evaluate", codes, "--metric", "AP", "--random-orders", 30).stdout
    for name, array in {"c": np.eye(4) > 0, "ql": np.array([0, 1, 2, 9]), "dl": np.arange(4)}.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = {"query-codes": "c", "database-codes": "c", "query-labels": "ql", "database-labels": "dl"}
    own = [part for option, name in files.items() for part in (f"--{option}", tmp_path / f"{name}.npy")]
    for undefined, expected in (("skip", [1, 1]), ("paper", [0.75, 1]), ("zero", [0.75, 0.75])):
        command = ["evaluate", *own, "--metric", "AP", "--metric", "NDCG", "--undefined", undefined]
        scores = scores_in(hashbench(*command, "--format", "json").stdout)
        assert [scores[name]["mean"] for name in ("AP", "NDCG")] == expected
        assert scores["AP"]["n_undefined"] == 1


def test_tables_are_printed_and_written(hashbench, tiny_file, tmp_path):
    results = tmp_path / "results"
    where = "--dataset", tiny_file(), "--results", results
    assert hashbench("run", "--method", "lsh", "--bits", 16, *where).exit_code == 0
    result = hashbench("tables", "--results", results)
    assert result.exit_code == 0
    assert [line for line in result.stdout.splitlines() if line.startswith("# ")] == [
        "# Table 1. Average precision of the whole ranking",
        "# Table 2. Average precision of the first 1,000",
        "# Table 3. Normalised discounted cumulative gain",
    ]
    assert len([path for path in (results / "tables").iterdir() if not path.name.startswith(".")]) == 15
    written = (results / "tables" / "table3.md").read_text()
    assert hashbench("tables", "table3", "--bits", 16, "--results", results).stdout == written + "\n"  # the only length


def test_tables_and_figures_of_some_methods_report_settings_that_they_do_not_show(hashbench, tiny_file, tmp_path):
    where = "--results", tmp_path / "results"
    run = "run", "--method", "sklsh", "--bits", 8, "--bits", 16, "--dataset", tiny_file(), *where
    note = "--variants shows all"
    for more, has_note in ([], False), (["--param", "gamma=2"], True):
        assert hashbench(*run, *more).exit_code == 0
        assert (note in hashbench("tables", "--method", "sklsh", *where).stderr) == has_note
    drawn = "plot", "ap-bits", "--format", "svg", "--output", tmp_path / "figures"
    assert note in hashbench(*drawn, "--method", "sklsh", *where).stderr
    assert note not in hashbench("tables", "--method", "sklsh", "--variants", *where).stderr


def test_a_table_of_your_own_has_the_name_you_give(hashbench, tiny_file, tmp_path):
    where = "--results", tmp_path / "results"
    assert hashbench("run", "--method", "sklsh", "--bits", 8, "--dataset", tiny_file(), *where).exit_code == 0
    own = "tables", "--method", "sklsh", *where, "--output", tmp_path
    assert hashbench(*own, "--name", "few-bits").exit_code == 0
    assert r"\label{tab:few-bits-" in (tmp_path / "few-bits.tex").read_text()
    assert not list(tmp_path.glob("selection*"))
    for name in ("table1", "Table2-published", "../up", "", "a b"):
        assert "cannot name a table" in hashbench(*own, "--name", name).stderr
    for command in ("tables", *where), (*own, "table1"):
        result = hashbench(*command, "--name", "few-bits")
        assert result.exit_code == 1
        assert "'few-bits' can only name a table of chosen rows" in result.stderr
    assert (tmp_path / "few-bits.md").read_text().startswith("# few-bits. AP\n")


def test_grid_of_which_one_job_is_left_names_it(hashbench, digits_data, tmp_path):
    command = ["run", "--method", "pcah", "--method", "lsh", "--bits", 100, "--metric", "AP", "--results", tmp_path]
    result = hashbench(*command)
    assert result.exit_code == 0
    assert result.stdout.split()[:4] == ["dataset", "method", "bits", "seed"]
    assert "lsh" in result.stdout


def test_every_command_is_listed_and_found():
    defined = {
        value.name
        for module in {module for module, _ in COMMANDS.values()}
        for value in vars(import_module(f"hashbench.cli.{module}")).values()
        if isinstance(value, click.Command)
    }
    assert defined - {"merge", "rerun", "cli"} == {*COMMANDS}  # of which the first two are those of `results`
    assert all(cli.get_command(None, name).name == name for name in COMMANDS)
    assert [*COMMANDS] == sorted(COMMANDS)

from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner
from places import ROOT

from hashbench.cli.main import cli
from hashbench.registry import get_method, method_names
from hashbench.reports import tables
from hashbench.store.results import read_rows

GOLDEN = ROOT / "tests" / "golden"


def make_digits(results: Path, data: Path) -> Path:
    """Run digits through the whole pipeline, baselines and unsupervised methods at 16 bits with seed 0.

    Returns the results file. `make golden` calls this through ``make_golden.py``; the methods are those of
    this repository, whatever else is installed. Optimisers of supervised and learned ones may end in other codes
    on other processors.
    """
    names = [name for name in method_names() if (ROOT / "methods" / _file(name)).is_file()]
    grid = [f"--method={name}" for name in names if get_method(name).group in ("baseline", "unsupervised")]
    grid += ["--bits=16", "--seed=0", f"--results={results}"]
    CliRunner().invoke(cli, ["run", *grid], env={"HASHBENCH_DATA": str(data)}, catch_exceptions=False)
    return results / "digits.csv"


def make_golden_tables(folder: Path) -> None:
    """Lay out the made-up results in ``golden/tables/results``.

    They hold ties, one to three seeds, a refusal, two fingerprints of one name, two versions of a method, and
    methods of the papers that count as not installed, whether they are or not.
    """
    results = GOLDEN / "tables" / "results"
    installed = {name: get_method(name).group for name in ("constant", "itq", "lsh", "pcah")}
    with mock.patch("hashbench.reports.aggregate._group", side_effect=lambda method: installed.get(method, "")):
        tables.write_tables(folder, tables.make_tables(results, ()))


def _file(name: str) -> str:
    return name.replace("-", "_") + ".py"


def test_digits_through_the_whole_pipeline_are_as_they_were(tmp_path, data):
    made = make_digits(tmp_path / "results", data).read_bytes().decode()
    golden = (GOLDEN / "digits.csv").read_bytes().decode()
    assert made.splitlines() == golden.splitlines()  # for a readable difference
    assert made == golden


def test_golden_file_is_whole():
    lines = (GOLDEN / "digits.csv").read_text().splitlines()[1:]
    methods = [line.split(",")[2] for line in lines]
    assert sorted(methods) == sorted(6 * sorted(set(methods)))  # six metrics each
    assert {"constant", "itq", "lsh", "oracle-label", "pcah", "random", "sh"} <= set(methods)


def test_golden_rows_are_those_of_the_committed_results():
    committed = (ROOT / "results" / "digits.csv").read_text().splitlines()
    assert set((GOLDEN / "digits.csv").read_text().splitlines()) <= set(committed)


OPTIMISED = [name for name in method_names() if get_method(name).group not in ("baseline", "unsupervised")]


@pytest.mark.parametrize("name", OPTIMISED)
def test_committed_rows_are_what_the_code_makes(name, hashbench, digits_data, tmp_path):
    """Up to what another processor may change; whoever changes more raises the version and makes the rows again."""
    hashbench("run", "--method", name, "--bits", 12, "--metric", "AP", "--results", tmp_path)
    (made,) = read_rows(tmp_path / "digits.csv")
    (committed,) = (row for row in read_rows(ROOT / "results" / "digits.csv") if row.key == made.key)
    assert made.method_version == committed.method_version
    assert float(made.value) == pytest.approx(float(committed.value), abs=0.02)


@pytest.mark.parametrize("name", ["table1", "continuation"])
@pytest.mark.parametrize("end", [".md", ".csv", ".tex", "-tie-range.csv", "-published.csv"])
def test_tables_are_as_they_were(name, end, tmp_path):
    make_golden_tables(tmp_path)
    made = (tmp_path / f"{name}{end}").read_bytes().decode()
    golden = (GOLDEN / "tables" / f"{name}{end}").read_bytes().decode()
    assert made.splitlines() == golden.splitlines()  # for a readable difference
    assert made == golden


def test_committed_tables_are_those_of_the_committed_results(tmp_path):
    results = ROOT / "results"
    tables.write_tables(tmp_path, tables.make_tables(results, ()))
    made, committed = (
        {path.name: path.read_text() for path in folder.glob("[!.]*")} for folder in (tmp_path, results / "tables")
    )
    assert made.keys() == committed.keys()
    for name, text in made.items():
        assert text.splitlines() == committed[name].splitlines(), name


def test_golden_tables_are_all_there_is_of_them(tmp_path):
    make_golden_tables(tmp_path)
    made = {path.name for path in tmp_path.glob("[!.]*")}
    assert made == {path.name for path in (GOLDEN / "tables").glob("[!.]*.*")}

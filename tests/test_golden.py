from pathlib import Path
from unittest import mock

import pytest
from click.testing import CliRunner
from helpers.paths import ROOT, built_in_methods
from helpers.result_files import rows_in
from helpers.thoroughness import TRAINED

from hashbench.cli.main import cli
from hashbench.registry import get_method
from hashbench.reports import tables
from hashbench.store.results import read_rows

GOLDEN = ROOT / "tests" / "golden"
QUICK_GROUPS = ("baseline", "unsupervised")
OPTIMISED = [name for name in built_in_methods() if name in TRAINED or get_method(name).group not in QUICK_GROUPS]


def run(results: Path, data: Path, *options: str) -> Path:
    command = ["run", *options, "--seed=0", f"--results={results}"]
    result = CliRunner().invoke(cli, command, env={"HASHBENCH_DATA": str(data)}, catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return results / "digits"


def make_golden_tables(folder: Path) -> None:
    """Lay out the made-up results in ``golden/tables/results``.

    They hold ties, one to three seeds, a refusal, two fingerprints of one name, two versions of a method, and
    methods of the papers that count as not installed, whether they are or not.
    """
    results = GOLDEN / "tables" / "results"
    installed = {name: get_method(name).group for name in ("constant", "itq", "lsh", "pcah")}
    with mock.patch("hashbench.reports.aggregate._group", side_effect=lambda method, params: installed.get(method, "")):
        tables.write_tables(folder, tables.make_tables(results, ()))


def test_digits_through_the_whole_pipeline_have_the_committed_rows(tmp_path, data):
    quick = [name for name in built_in_methods() if name not in OPTIMISED]
    results = run(tmp_path / "results", data, *(f"--method={name}" for name in quick), "--bits=16")
    rows, committed = rows_in(results), rows_in(ROOT / "results" / "digits")
    assert len(rows) == 6 * len(quick)
    others = [row for row in rows if row not in committed]
    methods = " ".join(sorted({f"--method {row['method']}" for row in others}))
    assert not others, f"results/digits has other rows, or none: .venv/bin/hashbench run {methods} --bits 16"


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMISED)
def test_committed_rows_are_what_the_code_computes(name, digits_data, tmp_path):
    """Up to what another processor may change."""
    results = run(tmp_path, digits_data, f"--method={name}", "--bits=12", "--metric=AP")
    ((row,), committed) = (read_rows(folder, "digits") for folder in (results.parent, ROOT / "results"))
    expected = next((other for other in committed if other.key == row.key), None)
    assert expected, f"results/digits lacks this row: .venv/bin/hashbench run --method {name} --bits 12"
    assert row.method_version == expected.method_version
    assert float(row.value) == pytest.approx(float(expected.value), abs=0.02)


def test_tables_are_as_they_were(tmp_path):
    make_golden_tables(tmp_path)
    laid_out, golden = (
        {path.name: path.read_bytes().decode() for path in folder.glob("[!.]*.*")}
        for folder in (tmp_path, GOLDEN / "tables")
    )
    assert laid_out.keys() == golden.keys()
    for name, text in laid_out.items():
        assert text.splitlines() == golden[name].splitlines(), name  # for a readable difference
        assert text == golden[name]

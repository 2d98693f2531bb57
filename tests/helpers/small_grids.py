"""Rows of a small grid with the data folder they come from: run once, and copied for each test."""

import shutil

import pytest
from click.testing import CliRunner

from hashbench.cli.main import cli


def run_once(prepared, folder, *options):
    """Run methods on a copy of prepared datasets: `data` and `results` in a folder, which is returned."""
    shutil.copytree(prepared, folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder / "data"))
        command = ["run", *options, "--metric=AP", f"--results={folder / 'results'}"]
        assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    return folder


def copy_of(folder, data, results):
    """Copy what `run_once` made to the test's data folder and to a folder of results, which is returned."""
    shutil.copytree(folder / "data", data, dirs_exist_ok=True)
    shutil.copytree(folder / "results", results)
    return results

"""Mistakes at the command line and trouble around it: each is a sentence, none a traceback."""

import errno
import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from hashbench.cli import descriptions, main
from hashbench.errors import HashbenchError
from hashbench.store import results

RUN = ["run", "--method", "itq", "--bits", 8]


def test_info_suggests_a_file_or_a_dataset_of_ones_own(hashbench, data, tiny_file, tmp_path):
    path = tiny_file(name="flowers")
    assert (
        f"there is no file {tmp_path / 'flower.h5'}. Did you mean {str(path)!r}?"
        in hashbench("info", tmp_path / "flower.h5").stderr
    )
    (data / "datasets").mkdir()
    path.rename(data / "datasets" / "flowers.h5")
    assert "Did you mean 'flowers'?" in hashbench("info", "flwers").stderr


def test_data_folder_of_an_unknown_user_is_an_error(hashbench, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", "~nosuchuser/x")
    result = hashbench(*RUN)
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert "there is no home folder of ~nosuchuser." in result.stderr


@pytest.mark.parametrize("arguments", [["list", "methods"], ["--help"]])
def test_full_standard_output_is_an_error(script, arguments):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with Path("/dev/full").open("w") as full:
        process = script(*arguments, stdout=full)
        _, stderr = process.communicate()
    assert (process.returncode, stderr.count("\n")) == (1, 1)
    assert stderr.startswith("Error: cannot write to standard output: No space left on device.")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["list", "methods"], 0),
        (["--help"], 0),
        (["results", "check", "results"], 1),
    ],
)
def test_reader_that_went_away_is_no_error_and_the_command_does_its_work(script, tmp_path, arguments, code):
    (tmp_path / "results" / "digits").mkdir(parents=True)
    (tmp_path / "results" / "digits" / "itq.csv").write_text("a,b\n")
    reading, writing = os.pipe()
    os.close(reading)
    process = script(*arguments, stdout=writing)
    os.close(writing)
    stderr = process.communicate()[1]
    assert (process.returncode, "Error" in stderr) == (code, bool(code))
    assert "Broken pipe" not in stderr


def test_closed_standard_output_is_an_error():
    command = [sys.executable, "-c", "from hashbench.cli.main import cli; cli()", "list", "methods"]
    done = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: standard output is closed")


SWALLOWS = """
import os, signal, time
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)
except KeyboardInterrupt:
    raise ImportError("a part failed to load")
"""


@pytest.mark.parametrize("swallowed", [True, False])
def test_interrupt_while_a_library_loads_ends_with_130(hashbench, plugin, swallowed):
    plugin("mine", SWALLOWS if swallowed else SWALLOWS.replace("KeyboardInterrupt", "ZeroDivisionError"))
    before = signal.getsignal(signal.SIGINT)
    result = hashbench("info", "mine")
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.startswith("Error: interrupted; finished steps are kept")
    assert signal.getsignal(signal.SIGINT) is before


class Interrupting:
    """The user's interrupt while a module is looked for."""

    def __init__(self, module):
        self.module = module

    def find_spec(self, name, path=None, target=None):
        if name == self.module:
            raise KeyboardInterrupt


@pytest.mark.parametrize("module", ["threading", "click", "hashbench.errors"])
def test_interrupt_while_the_command_line_itself_loads_ends_with_130_and_says_nothing(monkeypatch, capfd, module):
    monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(sys, "meta_path", [Interrupting(module), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(main.__file__)
    assert ended.value.code == 130
    assert capfd.readouterr() == ("", "")


def test_interrupt_while_a_command_loads_ends_with_130(hashbench, monkeypatch):
    monkeypatch.delitem(sys.modules, "hashbench.cli.scoring", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupting("hashbench.cli.scoring"), *sys.meta_path])
    result = hashbench("evaluate")
    assert result.exit_code == 130
    assert "interrupted" in result.stderr


@pytest.mark.parametrize("error", [OSError("a bug"), OSError(errno.EINVAL, "a bug"), ConnectionError("a bug")])
def test_error_of_the_system_is_a_sentence_only_if_it_names_a_file(hashbench, monkeypatch, error):
    monkeypatch.setattr(descriptions, "describe", Mock(side_effect=error))
    with pytest.raises(OSError, match="a bug"):
        hashbench("info", "itq")
    named = PermissionError(errno.EACCES, "Permission denied", "x.h5")
    monkeypatch.setattr(descriptions, "describe", Mock(side_effect=named))
    result = hashbench("info", "itq")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: cannot use x.h5: Permission denied.")


def test_exit_of_a_dataset_plugin_does_not_end_prepare_in_silence(hashbench, plugin):
    adapter = (
        "import sys\nfrom hashbench.adapter import DatasetAdapter\nclass Mine(DatasetAdapter):\n    name = 'mine'\n"
    )
    plugin("mine", f"{adapter}    summary = ''\n    def prepare(self):\n        sys.exit(0)\n", "datasets")
    result = hashbench("prepare", "mine")
    assert result.exit_code == 1
    assert "mine.py, line 7, ended the command by sys.exit." in result.stderr


@pytest.mark.parametrize(
    ("create", "reason"),
    [
        (lambda path: path.symlink_to("nowhere"), "is a link to nowhere"),
        (os.mkfifo, "is a pipe"),
    ],
)
@pytest.mark.usefixtures("empty_folder")
def test_what_is_called_csv_and_cannot_be_read_is_named(hashbench, tmp_path, create, reason):
    results_folder = tmp_path / "r"
    results_folder.mkdir()
    create(results_folder / "x.csv")
    for command in ("tables", "--results"), ("plot", "--results"), ("diff", results_folder):
        result = hashbench(*command, results_folder)
        assert (result.exit_code, result.stderr.startswith(f"Error: {results_folder / 'x.csv'} {reason}")) == (1, True)


def test_folder_in_the_place_of_a_results_file_is_an_error_before_any_work(hashbench, tmp_path, data):
    (tmp_path / "digits" / "itq.csv").mkdir(parents=True)
    result = hashbench(*RUN, "--results", tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: cannot write {tmp_path / 'digits' / 'itq.csv'}: Is a directory.")
    assert not list(data.rglob("*.h5"))


@pytest.mark.parametrize("what", ["iterdir", "read_bytes"])
def test_results_without_permission_are_an_error(monkeypatch, tmp_path, what):
    (tmp_path / "digits.csv").write_text("")

    monkeypatch.setattr(Path, what, Mock(side_effect=PermissionError(13, "Permission denied", "x")))
    with pytest.raises(HashbenchError, match=r"cannot read .* as .*results: Permission denied\."):
        results.read_folder(tmp_path)

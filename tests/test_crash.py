"""Processes killed at random moments: all files on disk are whole, and the next run writes the undisturbed bytes.

A kill counts after the first file that the command has written. Each test asserts one kill: a hundred in all.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from conftest import SCRIPT
from helpers.paths import ROOT
from helpers.thoroughness import ALL

from hashbench.store.results import read_folder

pytestmark = pytest.mark.slow

GRID = ["--bits", "8", "--bits", "16", "--seed", "0", "--seed", "1", "--metric", "AP"]
WORK = {
    "prepare": ["prepare", "digits"],
    "run": ["run", "--method", "lsh", "--method", "itq", *GRID],
    "train": ["run", "--method", "mihash", "--bits", "8", "--param", "epochs=8", "--resume", "--metric", "AP"],
    "tables": ["tables", "table1"],
    "plot": ["plot", "ap-bits", "tie-ranges", "--format", "svg"],
}
N_KILLS = 20 if ALL else 1  # of each of the five kinds
MOST_TRIES = 8  # until a process is killed before it has ended


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start the command line in an own folder that holds results of digits, with an empty data folder.

    Waits until it has written a first file, and returns the process and that time, or None if it has ended.
    """
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "data"))

    def begin(kind):
        (tmp_path / "here").mkdir(exist_ok=True)
        if kind in ("tables", "plot"):
            shutil.copytree(ROOT / "results" / "digits", tmp_path / "here" / "results" / "digits", dirs_exist_ok=True)
        before = files(tmp_path)
        process = subprocess.Popen(
            [SCRIPT, *WORK[kind]], cwd=tmp_path / "here", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while process.poll() is None:
            if files(tmp_path) - before:
                return process, time.monotonic()
            time.sleep(0.002)
        return process, None

    return begin


def files(folder):
    """Return the files below a folder, partial ones included, without locks."""
    paths = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return {path for path in paths if not path.name.endswith((".lock", ".lock.by"))}


def content(folder):
    """Return a folder's content without times: arrays of HDF5, provenance without day and seconds, else bytes."""
    contents = {}
    for path in sorted(files(folder)):
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                arrays = {}
                file.visititems(lambda name, item, arrays=arrays: arrays.update({name: item}))
                contents[path.relative_to(folder)] = {
                    name: np.asarray(item[()]).tobytes()
                    for name, item in arrays.items()
                    if isinstance(item, h5py.Dataset)
                }
        elif path.name.endswith(".jobs.csv"):
            contents[path.relative_to(folder)] = [line.rsplit(",", 2)[0] for line in path.read_text().splitlines()]
        else:
            contents[path.relative_to(folder)] = path.read_bytes()
    return contents


def clear(folder):
    for name in ("here", "data"):
        shutil.rmtree(folder / name, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed():
    """Return what each kind of work leaves behind, and the seconds from its first file to its end."""
    finished = {}

    def finish(kind, start, folder):
        if kind not in finished:
            process, since = start(kind)
            assert process.wait(120) == 0
            finished[kind] = content(folder), time.monotonic() - since
            clear(folder)
        return finished[kind]

    return finish


@pytest.mark.parametrize("number", range(N_KILLS))
@pytest.mark.parametrize("kind", WORK)
def test_a_killed_process_loses_nothing(kind, number, start, undisturbed, tmp_path):
    expected, seconds = undisturbed(kind, start, tmp_path)
    seconds *= (number + np.random.default_rng(number).random()) / N_KILLS
    for _ in range(MOST_TRIES):
        process, since = start(kind)
        assert since is not None, "it wrote nothing that was seen"
        time.sleep(max(0, since + seconds - time.monotonic()))
        process.kill()
        if process.wait() == -signal.SIGKILL:
            break
        clear(tmp_path)
        seconds /= 2  # it was done before
    assert process.returncode == -signal.SIGKILL
    content(tmp_path / "data")  # opens every file
    read_folder(tmp_path / "here" / "results")
    for name, value in content(tmp_path).items():
        if not name.name.endswith((".part", ".checkpoint")) and name in expected and kind != "run":
            assert value == expected[name], name
    process, _ = start(kind)
    assert process.wait(120) == 0
    assert content(tmp_path) == expected

"""Processes killed at random moments: all that lies on disk is whole, and the next run gives the undisturbed bytes.

A kill counts from the first file on that the command wrote itself, and each test asserts one: a hundred in all.
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
MOST_TRIES = 8  # until one is killed before it has ended


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start the command line in a folder of its own that holds results of digits, with an empty data folder.

    Waits until it has written a file of its own, and gives the process, and when that was; None if it has ended.
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
    """Files and parts of some below a folder, but for locks."""
    found = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return {path for path in found if not path.name.endswith((".lock", ".lock.by"))}


def content(folder):
    """What lies in a folder: bytes but for times: of HDF5 the arrays, of what made rows all but day and seconds."""
    found = {}
    for path in sorted(files(folder)):
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                arrays = {}
                file.visititems(lambda name, item, arrays=arrays: arrays.update({name: item}))
                values = {name: item[()] for name, item in arrays.items() if isinstance(item, h5py.Dataset)}
                found[path.relative_to(folder)] = {name: np.asarray(value).tobytes() for name, value in values.items()}
        elif path.name.endswith(".jobs.csv"):
            found[path.relative_to(folder)] = [line.rsplit(",", 2)[0] for line in path.read_text().splitlines()]
        else:
            found[path.relative_to(folder)] = path.read_bytes()
    return found


def clear(folder):
    for name in ("here", "data"):
        shutil.rmtree(folder / name, ignore_errors=True)


@pytest.fixture(scope="module")
def undisturbed():
    """What each kind of work leaves, and how many seconds it goes on from the first file on."""
    made = {}

    def give(kind, start, folder):
        if kind not in made:
            process, since = start(kind)
            assert process.wait(120) == 0
            made[kind] = content(folder), time.monotonic() - since
            clear(folder)
        return made[kind]

    return give


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

"""Processes killed at random moments: all that lies on disk is whole, and the next run gives the undisturbed bytes."""

import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest
from conftest import SCRIPT
from effort import ALL
from places import ROOT

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
N_KILLS = 20 if ALL else 1  # of each kind


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Start the command line in a folder of its own that holds results of digits, with an empty data folder."""
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "data"))

    def begin(kind):
        if kind in ("tables", "plot"):
            (tmp_path / "here" / "results").mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / "results" / "digits.csv", tmp_path / "here" / "results")
        (tmp_path / "here").mkdir(exist_ok=True)
        return subprocess.Popen(
            [SCRIPT, *WORK[kind]], cwd=tmp_path / "here", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    return begin


def content(folder):
    """What lies in a folder, but for locks: bytes, or of HDF5, which holds times of running, the arrays."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_dir() or path.name.endswith((".lock", ".lock.by")):
            continue
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                arrays = {}
                file.visititems(lambda name, item, arrays=arrays: arrays.update({name: item}))
                values = {name: item[()] for name, item in arrays.items() if isinstance(item, h5py.Dataset)}
                found[path.relative_to(folder)] = {name: np.asarray(value).tobytes() for name, value in values.items()}
        else:
            found[path.relative_to(folder)] = path.read_bytes()
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What each kind of work leaves, and how many seconds it takes."""
    made = {}

    def give(kind, start, folder):
        if kind not in made:
            before = time.monotonic()
            assert start(kind).wait(120) == 0
            made[kind] = content(folder), time.monotonic() - before
            for name in ("here", "data"):
                shutil.rmtree(folder / name, ignore_errors=True)
        return made[kind]

    return give


@pytest.mark.parametrize("number", range(N_KILLS))
@pytest.mark.parametrize("kind", WORK)
def test_a_killed_process_loses_nothing(kind, number, start, undisturbed, tmp_path):
    expected, seconds = undisturbed(kind, start, tmp_path)
    process = start(kind)
    time.sleep(seconds * (number + np.random.default_rng(number).random()) / N_KILLS)
    process.kill()
    assert process.wait() in (-signal.SIGKILL, 0)
    content(tmp_path / "data")  # opens every file
    read_folder(tmp_path / "here" / "results")
    for name, value in content(tmp_path).items():
        if not name.name.endswith((".part", ".checkpoint")) and name in expected and kind != "run":
            assert value == expected[name], name
    assert start(kind).wait(120) == 0
    assert content(tmp_path) == expected

"""Processes killed at any step: all files on disk are whole, and the next run writes the undisturbed bytes.

A step is a call from the moment the command opens its first file to write: of a function, or in one, of hashbench, h5py
or pathlib. A process counts its steps and kills itself, so a kill hits the same step on any machine. Each test asserts
one kill: a hundred in all.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest
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

STEPPING = """
import atexit, os, signal, sys
from pathlib import Path

folder, count, last = sys.argv[1], sys.argv[2], int(sys.argv[3])
del sys.argv[1:4]
n_steps = 0

def step(frame, event, argument):
    global n_steps
    if frame.f_globals.get("__name__", "").partition(".")[0] in ("hashbench", "h5py", "pathlib"):
        n_steps += 1
        if n_steps == last:
            os.kill(os.getpid(), signal.SIGKILL)

def watch(event, arguments):
    is_named = event == "open" and isinstance(arguments[0], (str, os.PathLike))
    if is_named and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        path = os.path.abspath(arguments[0])
        if path.startswith(folder) and ".lock" not in path:
            sys.setprofile(step)

def finish():
    sys.setprofile(None)
    Path(count).write_text(str(n_steps))

sys.addaudithook(watch)
atexit.register(finish)

from hashbench.cli.main import cli
cli()
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run the command line in a folder with results of digits and an empty data folder; return how it ended.

    It kills itself at a step, or else returns the number of its steps as well.
    """
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "work" / "data"))

    def finish(kind, last_step=0):
        here = tmp_path / "work" / "here"
        here.mkdir(parents=True, exist_ok=True)
        if kind in ("tables", "plot"):
            shutil.copytree(ROOT / "results" / "digits", here / "results" / "digits", dirs_exist_ok=True)
        count = tmp_path / "steps"
        command = [sys.executable, "-c", STEPPING, str(tmp_path / "work"), str(count), str(last_step), *WORK[kind]]
        process = subprocess.run(command, cwd=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return process.returncode, int(count.read_text()) if process.returncode == 0 else None

    return finish


def files(folder):
    """Return the files below a folder, partial ones included, without locks."""
    paths = (Path(place) / name for place, _, names in os.walk(folder) for name in names)
    return {path for path in paths if not (path.name.endswith(".lock") or path.parent.name == ".locks")}


def content(folder):
    """Return a folder's content without times: records and arrays of HDF5, provenance without seconds, else bytes."""
    contents = {}
    for path in sorted(files(folder)):
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                arrays = {}
                file.visititems(lambda name, item, arrays=arrays: arrays.update({name: item}))
                values = {
                    name: np.asarray(item[()]).tobytes()
                    for name, item in arrays.items()
                    if isinstance(item, h5py.Dataset) and name != "content"  # the digest, of times too
                }
                record = json.loads(values.pop("record"))
                record = {key: record[key] for key in record if key not in ("fit_seconds", "encode_seconds", "origin")}
                contents[path.relative_to(folder)] = record, values
        elif path.suffix == ".json":
            contents[path.relative_to(folder)] = re.sub(r'"seconds": [\d.]+', "", path.read_text())
        else:
            contents[path.relative_to(folder)] = path.read_bytes()
    return contents


@pytest.fixture(scope="module")
def undisturbed():
    """Return what each kind of work leaves behind, and its number of steps."""
    finished = {}

    def finish(kind, run, folder):
        if kind not in finished:
            code, n_steps = run(kind)
            assert code == 0
            finished[kind] = content(folder), n_steps
            shutil.rmtree(folder)
        return finished[kind]

    return finish


@pytest.mark.parametrize("number", range(N_KILLS))
@pytest.mark.parametrize("kind", WORK)
def test_a_killed_process_loses_nothing(kind, number, run, undisturbed, tmp_path):
    folder = tmp_path / "work"
    expected, n_steps = undisturbed(kind, run, folder)
    assert n_steps > 100
    last_step = 1 + int(n_steps * (number + np.random.default_rng(number).random()) / N_KILLS)
    assert run(kind, last_step) == (-signal.SIGKILL, None)
    assert files(folder), "it had written nothing yet"
    content(folder / "data")  # opens every file
    read_folder(folder / "here" / "results")
    for name, value in content(folder).items():
        if not name.name.endswith((".part", ".checkpoint")) and name in expected and kind != "run":
            assert value == expected[name], name
    code, _ = run(kind)
    assert code == 0
    assert content(folder) == expected

import gc
import importlib
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import thoroughness  # noqa: F401 - sets how many cases hypothesis tries
from helpers.diff_rows import GIT_ENVIRONMENT, git
from helpers.website import Site

from hashbench import _parallel, registry
from hashbench.cli.main import cli
from hashbench.dataset import Dataset
from hashbench.scoring.metrics import FAMILIES
from hashbench.sources import download
from hashbench.store import hdf5

SCRIPT = Path(sysconfig.get_path("scripts")) / "hashbench"

if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs, and their children, ignore it


def pytest_ignore_collect(collection_path, config):
    """Leave out files whose tests are all slow where none of these runs: some import large libraries."""
    if config.option.markexpr == "not slow" and collection_path.suffix == ".py":
        return re.search(r"^pytestmark = .*\bslow\b", collection_path.read_text("utf-8"), re.MULTILINE) and True
    return None


gc.disable()  # until all tests are collected: none of what they share is garbage


def pytest_collection_finish():
    """Keep the garbage collector off what all tests share; walking it repeatedly takes a tenth of their time."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_disks():
    """Tests need not outlive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield


@pytest.fixture(scope="session", autouse=True)
def _compiled_loops():
    """Which tests have run before does not decide which loops do: in this process all are compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parallel, "BEFORE_LOADING", 0.0)
        patch.setattr(_parallel, "BEFORE_COMPILING", 0.0)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_note_on_compiling():
    """Whether a loop was compiled before, on this machine, changes no output; yields what would print the note."""
    notify = _parallel._notify
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_parallel, "_notify", lambda error: None if error is None else notify(error))
        yield notify


@pytest.fixture
def note_on_compiling(_no_note_on_compiling, monkeypatch):
    """Print the note on compiling as outside of tests."""
    monkeypatch.setattr(_parallel, "_notify", _no_note_on_compiling)


@pytest.fixture(scope="session", autouse=True)
def _no_clock_of_progress():
    """Lines for users who have waited half a minute come on no machine, however slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hashbench.cli.progress.time", SimpleNamespace(monotonic=lambda: 0.0))
        yield


@pytest.fixture(scope="session")
def data_folders(tmp_path_factory):
    """Yield paths of folders to create; pytest's own numbering is slow with thousands of folders."""
    base = tmp_path_factory.mktemp("data")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def data(data_folders, monkeypatch):
    """An empty data folder for each test; the working directory must be left as it was found."""
    folder = next(data_folders)
    folder.mkdir()
    monkeypatch.setenv("HASHBENCH_DATA", str(folder))
    before = Path.cwd()
    yield folder
    assert Path.cwd() == before


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """A data folder in which digits are prepared, to be copied."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder))
        assert CliRunner().invoke(cli, ["prepare", "digits"], catch_exceptions=False).exit_code == 0
    return folder


@pytest.fixture
def digits_data(prepared, data):
    """The test's own data folder, with digits already prepared."""
    shutil.copytree(prepared, data, dirs_exist_ok=True)
    return data


@pytest.fixture(scope="session")
def digits():
    return registry.get_dataset("digits").prepare()


@pytest.fixture(scope="session")
def train(digits):
    """The 1,000 training items of digits, 64 pixels each."""
    return digits.features[digits.train].astype(np.float64)


@pytest.fixture
def site(monkeypatch):
    """A web server on loopback; downloads from it do not wait before they go on."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "_PAUSES", [0] * len(download._PAUSES))
    with Site() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.released.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def hashbench():
    """Run a command line in this process."""

    def invoke(*arguments):
        return CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)

    return invoke


def forget_plugins():
    """Look for plug-ins again."""
    importlib.invalidate_caches()
    for cache in (registry._entry_points, registry.import_metrics):
        cache.cache_clear()


@pytest.fixture
def site_packages(tmp_path, monkeypatch):
    """A folder for third-party packages, which are forgotten at the end; call `forget_plugins` after adding some."""
    folder, families = tmp_path / "site", dict(FAMILIES)
    monkeypatch.syspath_prepend(folder)
    yield folder
    for name, module in [*sys.modules.items()]:
        if str(getattr(module, "__dict__", {}).get("__file__")).startswith(f"{folder}{os.sep}"):
            del sys.modules[name]
    FAMILIES.clear()
    FAMILIES.update(families)
    forget_plugins()


@pytest.fixture
def plugin(site_packages):
    """Install a third-party plug-in, by its name, its source, and the object that the entry point names."""

    def install(name, source, kind="methods", attribute="Mine"):
        about, module = site_packages / f"{name}-1.dist-info", name.replace("-", "_")
        about.mkdir(parents=True)
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (about / "entry_points.txt").write_text(f"[hashbench.{kind}]\n{name} = {module}:{attribute}\n")
        (site_packages / f"{module}.py").write_text(source)
        forget_plugins()

    return install


@pytest.fixture
def script(tmp_path):
    """Start the installed script in another process, in an empty folder; takes keywords of `subprocess.Popen`."""

    def start(*arguments, env=None, **options):
        options = {"cwd": tmp_path, "text": True, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        return subprocess.Popen([SCRIPT, *map(str, arguments)], env={**os.environ, **(env or {})}, **options)

    return start


@pytest.fixture
def tiny():
    """Make datasets of 40 items in four dimensions: 8 queries, 32 in the database, 30 for training."""

    def make(rule="same-label", name="tiny", seed=0, **changes):
        rng = np.random.default_rng(seed)
        fields = {
            "name": name,
            "features": rng.normal(size=(40, 4)).astype(np.float32),
            "query": np.arange(8),
            "database": np.arange(8, 40),
            "train": np.arange(8, 38),
            "rule": rule,
        }
        if rule == "same-label":
            fields["labels"] = np.arange(40) % 4
        elif rule == "shared-labels":
            fields["labels"] = rng.integers(0, 2, (40, 5)).astype(np.uint8)
        elif rule == "distance":
            fields["rule_params"] = {"squared_thresholds": [9.0, 4.0], "levels": [1, 5]}
        elif rule == "explicit":
            fields["matrix"] = rng.integers(0, 3, (8, 32))
        return Dataset(**(fields | changes))

    return make


@pytest.fixture
def tiny_file(tiny, tmp_path):
    """Write a dataset as ``tiny`` makes it, and return its path."""

    def write(*args, **kwargs):
        dataset = tiny(*args, **kwargs)
        path = tmp_path / f"{dataset.name}.h5"
        hdf5.write_dataset(dataset, path)
        return path

    return write


@pytest.fixture
def empty_folder(tmp_path, data):
    """An empty working directory outside of any repository, untouched by the machine's git settings."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in GIT_ENVIRONMENT.items():
            patch.setenv(name, value)
        patch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
        (tmp_path / "here").mkdir()
        patch.chdir(tmp_path / "here")
        yield tmp_path / "here"


@pytest.fixture
def repository(empty_folder):
    """An empty folder as ``empty_folder``, in a git repository without commits."""
    git("init", "--quiet", "--initial-branch=main")
    return empty_folder


@pytest.fixture
def diff_json(hashbench):
    def run(*arguments):
        return json.loads(hashbench("diff", *arguments, "--format", "json").stdout)

    return run

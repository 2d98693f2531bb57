import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.paths import ROOT, built_in_datasets, built_in_methods
from helpers.thoroughness import ALL

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not hasattr(os, "fork"), reason="no os.fork there")]

METHOD = '''
"""Coin: one random bit after the other."""

import numpy as np

from hashbench.method import HashMethod


class Coin(HashMethod):
    """Toss coins.

    Parameters
    ----------
    n_bits : int, default=32
        Code length; any.
    sides : int, default=2
        Of the coin.
    """

    group = "baseline"

    def __init__(self, n_bits=32, *, sides=2):
        self.n_bits = n_bits
        self.sides = sides

    def _fit(self, X, y):
        self.normals_ = np.random.default_rng(self.sides).standard_normal((X.shape[1], self.n_bits))

    def _project(self, X):
        return X @ self.normals_
'''
DATASET = '''
"""A line of points."""

import numpy as np

from hashbench.adapter import DatasetAdapter
from hashbench.dataset import Dataset


class Line(DatasetAdapter):
    """Points on a line."""

    name = "line"
    summary = "forty points on a line"

    def prepare(self):
        """Lay the points out."""
        index = np.arange(40)
        about = dict.fromkeys(["summary", "protocol", "source", "licence", "citation"], "made up")
        features = np.linspace(-1, 1, 40, dtype=np.float32)[:, None]
        return Dataset("line", features, index[::5], np.delete(index, index[::5]), index[1:5], "same-label",
                       labels=index // 10, about=about)
'''


def install(site, modules, methods=(), datasets=()):
    """Lay out a distribution with entry points as pip would."""
    info = site / "third_party-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: third-party\nVersion: 1.0\n")
    groups = {"hashbench.methods": methods, "hashbench.datasets": datasets}
    lines = [f"[{group}]\n" + "".join(f"{point}\n" for point in points) for group, points in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for name, text in modules.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return site


RUN = ["run", "--method", "coin", "--method", "lsh", "--dataset", "line", "--bits", "16"]
THIRD_PARTY = {
    "list methods": ["list", "methods"],
    "list datasets": ["list", "datasets"],
    "info": ["info", "coin"],
    "unknown parameter": [*RUN, "--param", "side=3"],
    "run": RUN,
    "run classical": ["run", "--method", "itq", "--dataset", "line", "--bits", "1"],
    "evaluate": [
        "evaluate",
        "--query-codes=codes.npy",
        "--database-codes=codes.npy",
        "--query-labels=labels.npy",
        "--database-labels=labels.npy",
    ],
    "info learned": ["info", "talr-ap"],
    "tables": ["tables", "table1"],
    "check method": ["check", "method", "coin"],
    "check dataset": ["check", "dataset", "line"],
}


BROKEN = {
    "module": ({"broken.py": "import no_such_package\n"}, "broken:Broken"),
    "package": ({"broken/__init__.py": "raise RuntimeError('no luck')\n", "broken/it.py": ""}, "broken.it:Broken"),
    "syntax": ({"broken.py": "this is no Python\n"}, "broken:Broken"),
    "missing module": ({}, "broken:Broken"),
    "missing package": ({}, "broken.it:Broken"),
    "missing class": ({"broken.py": ""}, "broken:Broken"),
    "no class": ({"broken.py": "Broken = 5\n"}, "broken:Broken"),
    "another class": ({"broken.py": "class Broken:\n    pass\n"}, "broken:Broken"),
    "latin-1": ({"broken.py": "# -*- coding: latin-1 -*-\nimport no_such_package\n"}, "broken:Broken"),
}
if not ALL:  # the others take the same path as these
    BROKEN = {defect: BROKEN[defect] for defect in ("package", "syntax", "missing class")}
BESIDE_BROKEN = {
    "list methods": ["list", "methods"],
    "list datasets": ["list", "datasets"],
    "run method": ["run", "--method", "broken", "--bits", "8"],
    "run dataset": ["run", "--method", "lsh", "--bits", "8", "--dataset", "broken"],
    "help": ["--help"],
}
DRIVER = """
import json, os, sys
from click.testing import CliRunner
from hashbench import registry, testing
from hashbench.cli import console
from hashbench.reports import tables
from hashbench.cli.main import cli
sites, outcomes = json.loads(sys.argv[1]), []
for site, commands in sites:
    reader, writer = os.pipe()
    if not os.fork():  # before any plugin is looked for
        os.chdir(site)
        sys.path.insert(0, site)
        done = {}
        for name, command in commands.items():
            result = CliRunner().invoke(cli, command)
            is_traceback = result.exception is not None and not isinstance(result.exception, SystemExit)
            stderr = repr(result.exception) if is_traceback else result.stderr
            done[name] = (result.exit_code, result.stdout, stderr, "torch" in sys.modules)
        with open(writer, "w") as file:
            json.dump(done, file)
        os._exit(0)
    os.close(writer)
    with open(reader) as file:
        outcomes.append(json.load(file))
for name in registry.built_in_methods():
    registry.get_method(name)().get_params()
print(json.dumps([outcomes, "torch" in sys.modules]))
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Run each command beside each plugin; its exit code, stdout, stderr and whether it imported torch, and the folder.

    One process runs them all in forks. Key ``""`` holds whether describing all methods imports torch.
    """
    folder = tmp_path_factory.mktemp("plugins")
    modules = {"third_party/__init__.py": "", "third_party/coin.py": METHOD, "third_party/line.py": DATASET}
    third_party = folder / "third party"
    install(third_party, modules, ["coin = third_party.coin:Coin"], ["line = third_party.line:Line"])
    np.save(third_party / "codes.npy", np.eye(4) > 0)
    np.save(third_party / "labels.npy", np.arange(4))
    for defect, (modules, value) in BROKEN.items():
        install(folder / defect, modules, [f"broken = {value}"], [f"broken = {value}"])
    sites = [(str(third_party), THIRD_PARTY), *((str(folder / defect), BESIDE_BROKEN) for defect in BROKEN)]
    environment = {**os.environ, "HASHBENCH_DATA": str(folder / "data")}
    command = [sys.executable, "-B", "-c", DRIVER, json.dumps(sites)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    outcomes, has_torch = json.loads(done.stdout)
    return folder, dict(zip(["third party", *BROKEN], outcomes, strict=True)) | {"": has_torch}


@pytest.fixture(scope="module")
def third_party(printed):
    """The folder of a distribution with a method and a dataset, and what commands print beside it."""
    return printed[0] / "third party", {name: outcome[:3] for name, outcome in printed[1]["third party"].items()}


def test_names_of_the_plugin_folders_are_left_to_others():
    code = "import importlib.util, sys; sys.exit(any(map(importlib.util.find_spec, ['methods', 'datasets'])))"
    done = subprocess.run([sys.executable, "-P", "-c", code], cwd=ROOT, check=False)
    assert done.returncode == 0


def test_third_party_plugins_are_listed_and_described_beside_the_built_in_ones(third_party):
    for command, names, words in (
        ("list methods", {*built_in_methods(), "coin"}, "Coin: one random bit after the other."),
        ("list datasets", {*built_in_datasets(), "line"}, "forty points on a line"),
        ("info", set(), "sides=2    Of the coin."),
    ):
        exit_code, stdout, _ = third_party[1][command]
        assert (exit_code, words in stdout) == (0, True)
        listed = [line.split()[0] for line in stdout.splitlines() if line.strip()]
        assert names <= set(listed)
        assert listed == sorted(listed) or not names


def test_third_party_plugins_run_and_are_put_into_tables(third_party):
    folder, outcomes = third_party
    exit_code, _, stderr = outcomes["unknown parameter"]
    assert exit_code == 1
    assert "Did you mean 'sides'?" in stderr
    exit_code, _, stderr = outcomes["run"]
    assert exit_code == 0, stderr
    assert {path.name for path in (folder / "results" / "line").glob("*.jobs.csv")} == {
        f"{method}.jobs.csv" for method in ("coin", "lsh", "itq")
    }
    exit_code, stdout, _ = outcomes["tables"]
    assert exit_code == 0
    assert stdout.index("| coin ") < stdout.index("| lsh ")


@pytest.mark.parametrize("kind", ["method", "dataset"])
def test_third_party_plugins_pass_the_same_suite(third_party, kind):
    exit_code, stdout, stderr = third_party[1][f"check {kind}"]
    assert exit_code == 0, stdout + stderr
    assert "FAIL" not in stdout


def test_methods_are_described_and_classical_ones_run_without_torch(printed):
    outcomes = printed[1]["third party"]
    assert not printed[1][""]
    for name in ("run", "run classical", "evaluate", "info learned", "tables"):
        exit_code, _, stderr, has_torch = outcomes[name]
        assert (exit_code, has_torch) == (0, False), stderr


@pytest.mark.parametrize("defect", BROKEN)
@pytest.mark.parametrize(("kind", "built_in"), [("method", built_in_methods()), ("dataset", built_in_datasets())])
def test_broken_plugin_is_named_where_it_is_used_and_listed(printed, defect, kind, built_in):
    folder, outcomes = printed
    exit_code, stdout, stderr, _ = outcomes[defect][f"run {kind}"]
    assert stderr.startswith(f"Error: {kind} plugin 'broken'")
    assert (exit_code, stdout, stderr.count("\n")) == (1, "", 1)
    assert not (folder / defect / "results").exists()
    exit_code, stdout, stderr, _ = outcomes[defect][f"list {kind}s"]
    assert (exit_code, stderr) == (0, "")
    assert {*built_in, "broken"} <= {line.split()[0] for line in stdout.splitlines()}
    assert outcomes[defect]["help"][0] == 0

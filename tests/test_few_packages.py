"""What works without numba, pandas, SciPy, scikit-learn and matplotlib, and what says which of them to install."""

import json
import os
import re
import tomllib
from contextlib import chdir
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from helpers import scoring_calls
from helpers.few_packages import run_with_few_packages
from helpers.paths import ROOT
from helpers.waiting import wait_for
from scipy.io import savemat
from scipy.sparse import csr_array, save_npz

from hashbench import _parallel, errors, registry
from hashbench.errors import HashbenchError
from hashbench.scoring import compilation

COMMANDS = """
import json
from click.testing import CliRunner
from hashbench.cli.main import cli
results = [CliRunner().invoke(cli, command, catch_exceptions=False) for command in json.loads(sys.argv[1])]
print(json.dumps([(result.exit_code, result.stdout, result.stderr) for result in results]))
"""
ITQ = ["run", "--method", "itq", "--bits", "8"]
CODES = ["--query-codes", "q.npy", "--database-codes", "d.npy"]
LABELLED = [*CODES, "--query-labels", "ql.npy", "--database-labels", "dl.npy"]
LINES = ["--query-labels", "ql.txt", "--database-labels", "dl.lst"]
LINES += ["--coarse", "ql.npy", "numbers.lst"]
COMPARED = ["compare", "other", *LABELLED]
OF_NUMPY = [
    ["evaluate", *LABELLED],
    ["evaluate", *LABELLED, "--random-orders", "2", "--exclude-self", "--format", "markdown"],
    ["evaluate", *CODES, "--affinity", "a.npy", "--format", "csv"],
    ["evaluate", *LABELLED, "--distance", "cosine", "--format", "json"],
    ["evaluate", "--query-codes", "q.txt", "--database-codes", "d.lst", *LINES],
    ["evaluate", "--run", "run.txt", "qrels.txt"],
    ["list", "methods"],
    ["list", "scripts"],
    ["info", "itq"],
]
OF_OTHERS = [
    (["evaluate", *LABELLED, "--per-query", "scores.csv"], "pandas"),
    (["evaluate", *LABELLED, "--curves", "curves.csv"], "pandas"),
    (["evaluate", "--query-codes", "q.csv", *LABELLED[2:]], "pandas"),
    (["evaluate", "--query-codes", "q.mat", *LABELLED[2:]], "scipy"),
    (["evaluate", *CODES, "--affinity", "a.npz"], "scipy"),
    (["evaluate", *CODES, "--affinity", "a.ivecs"], "scipy"),
    (["thresholds", *LABELLED], "scipy"),
    (["explain", *LABELLED], "numba"),
    (ITQ, "scikit-learn"),
    (["encode", "--method", "itq", "--bits", "8", "--dataset", "q.h5"], "scikit-learn"),
    (["tables"], "pandas"),
    (["report"], "jinja2"),
    (["check", "method", "itq"], "scikit-learn"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with files of codes, labels, levels, a run and its qrels."""
    tmp_path = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    codes = rng.random((40, 16)) > 0.5
    arrays = {"q": codes, "d": codes, "a": rng.integers(0, 3, (40, 40))}
    for name, array in {**arrays, "ql": np.arange(40) % 4, "dl": np.arange(40) % 4}.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "other").mkdir()
    for name in "qd":
        np.save(tmp_path / "other" / f"{name}.npy", codes ^ (rng.random(codes.shape) > 0.9))
    hashes, names = [f"{int(byte):02x}" for byte in np.packbits(codes[:, :8])], [f"kind {i % 4}" for i in range(40)]
    lines = {"q.txt": hashes, "d.lst": hashes, "ql.txt": names, "dl.lst": names, "numbers.lst": np.arange(40) % 4}
    for name, cells in {**lines, "q.csv": ["hash", *hashes]}.items():
        (tmp_path / name).write_text("".join(f"{cell}\n" for cell in cells))
    savemat(tmp_path / "q.mat", {"codes": codes})
    save_npz(tmp_path / "a.npz", csr_array(arrays["a"]))
    np.tile(np.array([1, 0], np.int32), (40, 1)).tofile(tmp_path / "a.ivecs")
    (tmp_path / "run.txt").write_text("q Q0 a 1 0.5 mine\nq Q0 b 2 0.5 mine\n")
    (tmp_path / "qrels.txt").write_text("q 0 b 1\n")
    return tmp_path


def test_scores_with_numpy_alone_are_those_of_the_base_install_to_the_last_bit():
    numpy_alone = 'ALLOWED = {*sys.stdlib_module_names, "hashbench", "numpy"}\n'
    code = Path(scoring_calls.__file__).read_text(encoding="utf-8") + "import json; print(json.dumps(scores()))"
    stdout, stderr = run_with_few_packages(numpy_alone + code)
    assert stderr == ""  # for so little work nothing needs to be installed
    assert json.loads(stdout) == scoring_calls.scores()


@pytest.fixture(scope="module")
def printed(folder, tmp_path_factory):
    """What commands print with few packages, each by its words, and what they have written."""
    no_plugins = "from hashbench import registry; registry._entry_points = lambda group: {}"
    before, lines = {*folder.iterdir()}, [*OF_NUMPY, COMPARED, *(command for command, _ in OF_OTHERS)]
    environment = {**os.environ, "HASHBENCH_DATA": str(tmp_path_factory.mktemp("data"))}
    results, _ = run_with_few_packages(no_plugins + COMMANDS, json.dumps(lines), cwd=folder, env=environment)
    found = {" ".join(line): result for line, result in zip(lines, json.loads(results), strict=True)}
    return found, {*folder.iterdir()} - before


@pytest.mark.parametrize("command", OF_NUMPY, ids=" ".join)
def test_commands_that_score_arrays_print_the_same_without_numba(printed, folder, hashbench, monkeypatch, command):
    monkeypatch.setattr(registry, "_entry_points", lambda group: {})
    with chdir(folder):
        expected = hashbench(*command)
    assert printed[0][" ".join(command)] == [0, expected.stdout, expected.stderr]
    monkeypatch.undo()


def test_two_codes_are_scored_without_scipy_and_the_lack_of_an_interval_is_told(printed):
    exit_code, stdout, _ = printed[0][" ".join(COMPARED)]
    assert (exit_code, stdout.count(" AP ")) == (0, 4)
    assert "AP: no interval: comparing evaluations needs scipy, which is not installed" in " ".join(stdout.split())


def test_commands_say_what_to_install_before_any_work_and_write_nothing(printed):
    for command, package in OF_OTHERS:
        exit_code, stdout, stderr = printed[0][" ".join(command)]
        assert (exit_code, stdout, stderr.count("\n")) == (1, "", 1), command
        expected = f"needs {package}, which is not installed: {errors.how_to_install(package)}."
        assert re.fullmatch(f"Error: .* {re.escape(expected)}\n", stderr), stderr
    assert printed[1] == set()


CALLS = {
    "scored.per_query": "per_query needs pandas",
    "scored.to_frame()": "to_frame needs pandas",
    "hashbench.Problem.of_codes(codes, codes, (labels, labels)).curves()": "curves needs pandas",
    "counts.at(1)": "the interval of a share needs scipy",
    "plugins.HashMethod": "hashbench.plugins.HashMethod needs scikit-learn",
    "hashbench.tables()": "hashbench.tables needs pandas",
    "hashbench.plot('ap-bits')": "hashbench.plot needs pandas",
}


def test_calls_from_python_say_what_to_install():
    script = f"""
import numpy as np, hashbench
from hashbench import plugins
codes, labels = np.eye(4), np.arange(4) % 2
scored = hashbench.evaluate(codes, codes, (labels, labels))
counts = hashbench.Problem.of_codes(codes, codes, (labels, labels)).thresholds()
assert '<table ' in scored._repr_html_()
for call in {list(CALLS)}:
    try:
        eval(call)
    except hashbench.HashbenchError as error:
        print(error)
"""
    stdout, _ = run_with_few_packages(script)
    for line, message in zip(stdout.splitlines(), CALLS.values(), strict=True):
        assert line == f"{message}, which is not installed: {errors.how_to_install(message.rpartition(' ')[2])}."


def test_functions_name_the_package_that_they_need_with_numpy_alone():
    calls = {
        "hashbench.compare(scored, hashbench.evaluate(~codes, codes, labels))": "comparing evaluations needs scipy",
        "hashbench.explain(hashbench.Problem.of_codes(codes, codes, labels))": "this needs numba",
        "hashbench.explain_run({'q': {'a': 1.0}}, {'q': {'a': 1}})": "this needs numba",
        "hashbench.diff()": "hashbench.diff needs pandas",
        "hashbench.read_codes('q.h5')": "hashbench.read_codes needs h5py",
        "hashbench.run('lsh', 8)": "hashbench.run needs h5py",
    }
    script = f"""
ALLOWED = {{*sys.stdlib_module_names, "hashbench", "numpy"}}
import numpy as np, hashbench
codes, labels = np.eye(4, 8) > 0, (np.arange(4) % 2,) * 2
scored = hashbench.evaluate(codes, codes, labels)
for call in {list(calls)}:
    try:
        eval(call)
    except hashbench.HashbenchError as error:
        print(str(error).partition(",")[0])
"""
    assert run_with_few_packages(script)[0].splitlines() == list(calls.values())


def test_every_package_that_is_imported_on_demand_is_known_with_its_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    def packages(requirements):
        names = {re.split("[<>=]", requirement)[0].lower() for requirement in requirements}
        return {name for name in names if not name.startswith("hashbench[")}

    extras = {name: packages(parts) for name, parts in project["optional-dependencies"].items()}
    assert {name: {*parts} for name, parts in errors._EXTRAS.items()}.items() <= extras.items()
    of_extras = {package for parts in errors._EXTRAS.values() for package in parts}
    others = {"click", "cloup", "distributed", "transformers", "pyarrow", "safetensors"}  # with errors of their own
    assert {*errors._PACKAGES.values()} == (packages(project["dependencies"]) | of_extras) - others
    with pytest.raises(ModuleNotFoundError, match="no_such_module"), errors.needing("this"):
        import no_such_module  # noqa: F401
    with pytest.raises(ModuleNotFoundError), errors.needing("this"):
        import scipy.no_such_module  # noqa: F401  # of a package that is installed, but broken


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (ModuleNotFoundError("No module named 'numba'"), "pip install 'hashbench[fast]'"),
        (ImportError("Numba needs NumPy 2.3 or less."), "Numba needs NumPy 2.3 or less."),
    ],
)
def test_long_work_without_numba_says_once_what_would_make_it_faster(error, advice, monkeypatch):
    reports, timers = [], []
    monkeypatch.setattr(_parallel, "numba_error", lambda: error)
    monkeypatch.setattr(compilation, "_PATIENCE", 0)
    monkeypatch.setattr(compilation, "Timer", lambda *parts: timers.append(Timer(*parts)) or timers[-1])
    monkeypatch.setattr(compilation, "_has_complained", False)
    loop = _parallel.compiled_or(lambda x: 1 / x)(lambda x: x)
    for _ in range(2):
        with compilation.reporting_compilation(lambda *what: reports.append(what)):
            assert [loop(4), loop(2)] == [0.25, 0.5]
            wait_for(timers[-1].finished.is_set)
    assert len(timers) == 2
    assert reports == [(f"scoring without numba, which would make it faster ({advice})", 0, 0)]


def test_processors_are_counted_without_joblib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "joblib", None)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1, 2}, raising=False)
    count = _parallel._n_processors.__wrapped__
    assert [count(most) for most in (None, "2", "8", "0")] == [3, 2, 3, 1]


def test_loops_that_only_numba_can_run_say_so_when_they_are_called(monkeypatch):
    def missing():
        return ModuleNotFoundError("No module named 'numba'", name="numba")

    monkeypatch.setattr(_parallel, "numba_error", missing)
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    loop = _parallel.to_machine_code(lambda x: x)
    with pytest.raises(HashbenchError, match=r"this needs numba, .* pip install 'hashbench\[fast\]'"):
        loop(1)

"""What is in dist/, as `make dist` builds it: the wheel, the source distribution, and types for those who use them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest
from helpers.documents import blocks, files
from helpers.paths import ROOT

from hashbench import __version__

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (ROOT / "dist").exists(), reason="nothing is built: make dist")]
INFO = f"hashbench-{__version__}.dist-info"
HOMES = {"hashbench/methods/": "methods/", "hashbench/datasets/": "datasets/"}
TYPED = ("my_types.py", "my_proxies.py", "my_network.py", "my_autoencoder.py")  # of the tutorial
USER = '''
"""A project that uses hashbench, checked strictly."""

import numpy as np

import hashbench
from hashbench.methods.itq import ITQ


def score(n_bits: int) -> float:
    X = np.random.default_rng(0).normal(size=(120, 32))
    labels = np.arange(120) % 3
    codes = ITQ(n_bits=n_bits).fit(X).transform(X)
    evaluation: hashbench.Evaluation = hashbench.evaluate(codes[:20], codes[20:], (labels[:20], labels[20:]), ["AP"])
    return evaluation.summary["AP"].mean


print(score(8))
'''


def the_only(pattern, folder="dist"):
    (path,) = (ROOT / folder).glob(pattern)
    return path


def content_of(path):
    """Return the files of a wheel by name."""
    with ZipFile(path) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


@pytest.fixture(scope="module")
def wheel():
    return content_of(the_only("*.whl"))


@pytest.fixture(scope="module")
def sdist():
    """Names in the source distribution, without its folder."""
    with tarfile.open(the_only("*.tar.gz")) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def test_both_are_of_the_version_of_the_source():
    assert the_only("*.whl").name == f"hashbench-{__version__}-py3-none-any.whl"
    assert the_only("*.tar.gz").name == f"hashbench-{__version__}.tar.gz"


def test_the_wheel_has_the_package_and_nothing_else(wheel):
    assert {name.partition("/")[0] for name in wheel} == {"hashbench", INFO}
    endings = {name.rpartition(".")[2] for name in wheel if name.startswith("hashbench/")}
    assert endings == {"py", "typed", "css", "html", "js", "json", "csv", "toml", "mplstyle"}


def test_every_file_of_the_wheel_is_that_of_the_source(wheel):
    modules = {name: content for name, content in wheel.items() if name.startswith("hashbench/")}
    for name, content in modules.items():
        home = next((name.replace(key, place) for key, place in HOMES.items() if name.startswith(key)), name)
        assert content == (ROOT / home).read_bytes(), f"{name} is not that of the source: make dist"
    listed = {path for folder in ("hashbench", "methods", "datasets") for path in (ROOT / folder).rglob("*.py")}
    assert len(listed) == sum(name.endswith(".py") for name in modules)


@pytest.mark.parametrize(
    "name",
    [
        "hashbench/cards.json",
        "hashbench/py.typed",
        "hashbench/reports/explain/scripts.csv",
        "hashbench/reports/plots/hashbench.mplstyle",
        "hashbench/reports/tables/layouts.toml",
        "hashbench/reports/tables/published.csv",
        "hashbench/reports/html/page.html",
        "hashbench/reports/html/page.css",
        "hashbench/reports/html/js/main.js",
        f"{INFO}/licenses/LICENSE",
    ],
)
def test_the_wheel_has_what_is_no_module(wheel, name):
    assert name in wheel
    assert wheel[name] or name.endswith("py.typed")


def test_the_wheel_says_where_the_project_is(wheel):
    metadata = wheel[f"{INFO}/METADATA"].decode()
    assert len(re.findall(r"^Project-URL: ", metadata, re.MULTILINE)) == 4
    assert "License-Expression: BSD-3-Clause\n" in metadata
    assert "hashbench = hashbench.cli.main:cli" in wheel[f"{INFO}/entry_points.txt"].decode()


def test_the_source_distribution_has_what_builds_and_no_tests_nor_results(sdist):
    assert {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml"} <= sdist
    assert not {name.partition("/")[0] for name in sdist} & {"tests", "results", "benchmarks", "docs", ".github"}


def test_the_source_distribution_builds_the_wheel_that_the_tree_builds(wheel):
    from_tree = content_of(the_only("*.whl", "build/from-tree"))  # dist/*.whl comes of the source distribution
    assert from_tree.keys() == wheel.keys()
    assert [name for name in wheel if wheel[name] != from_tree[name]] == []


def environment_in(folder):
    """Create an environment with the dependencies of this one, and return its Python and its folder of packages."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = subprocess.run([python, "-c", where], capture_output=True, text=True, check=True).stdout.strip()
    own = [path for path in sys.path if path.endswith("site-packages")] or [sysconfig.get_path("purelib")]
    Path(site, "others.pth").write_text("\n".join(own) + "\n", encoding="utf-8")
    return python, site


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Create an environment with the wheel, and return its Python."""
    python, site = environment_in(tmp_path_factory.mktemp("environment"))
    with ZipFile(the_only("*.whl")) as archive:
        archive.extractall(site)
    return python


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """Copy what a clone installs, and link it as `make links` does."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("hashbench", "methods", "datasets"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "PYPI.md", "LICENSE", "Makefile"):
        shutil.copy(ROOT / name, folder)
    subprocess.run(["make", "--silent", "links"], cwd=folder, check=True)
    return folder


def types_of_plugins(folder, python, *options, **variables):
    """Check the typed files of the tutorial strictly, also with float32 and a mistake; return what mypy prints."""
    shown = files("docs/tutorials/plugins.md")
    for name in TYPED:
        (folder / name).write_text(shown[f"src/{name}"], encoding="utf-8")
    (folder / "narrow.py").write_text(shown["src/my_types.py"].replace("float64", "float32"), encoding="utf-8")
    (folder / "wrong.py").write_text('from hashbench.plugins import whole\n\nwhole("1")\n', encoding="utf-8")
    strict = ["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}", f"--python-executable={python}"]
    command = [sys.executable, "-m", "mypy", *strict, *options, *TYPED, "narrow.py", "wrong.py"]
    environment = os.environ | variables
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


def only_the_wrong(printed):
    """Return whether mypy reports the mistake in wrong.py, which it could not without types, and nothing else."""
    lines = printed.splitlines()
    return len(lines) == 2 and lines[0].startswith("wrong.py:3: ") and "[arg-type]" in lines[0]


def test_plugins_of_the_tutorial_are_checked_strictly_with_the_wheel(environment, tmp_path):
    printed = types_of_plugins(tmp_path, environment)
    assert only_the_wrong(printed), printed


def test_plugins_are_checked_strictly_with_a_strict_editable_install(clone, tmp_path):
    (strict,) = [text for text in blocks("docs/tutorials/plugins.md", "sh") if "-e path/to/hashbench" in text]
    python, _ = environment_in(tmp_path / "environment")
    arguments = strict.replace("path/to/hashbench", str(clone)).split()[1:]
    options = ["--python", python, *arguments, "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([sys.executable, "-m", "pip", *options], cwd=tmp_path, check=True)
    runs = subprocess.run([python, "-m", "hashbench", "list", "methods"], cwd=tmp_path, capture_output=True, check=True)
    assert b"itq" in runs.stdout
    printed = types_of_plugins(tmp_path, python)
    assert only_the_wrong(printed), printed


def test_plugins_are_checked_strictly_by_the_links_of_a_clone(clone, tmp_path):
    assert (
        "MYPYPATH=build/types .venv/bin/mypy --strict --follow-imports silent" in (ROOT / "CONTRIBUTING.md").read_text()
    )
    python, _ = environment_in(tmp_path / "environment")
    printed = types_of_plugins(tmp_path, python, "--follow-imports=silent", MYPYPATH=str(clone / "build/types"))
    assert only_the_wrong(printed), printed


def test_a_project_that_uses_the_wheel_runs_and_is_checked_strictly(environment, tmp_path):
    (tmp_path / "user.py").write_text(USER, encoding="utf-8")
    done = subprocess.run([environment, "user.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert 0 < float(done.stdout) < 1
    options = ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", f"--python-executable={environment}"]
    command = [sys.executable, "-m", "mypy", *options, "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Success: no issues found in 1 source file\n", done.stdout + done.stderr
    wrong = USER.replace("score(8)", 'score("8")').replace('["AP"].mean', '["AP"].median')
    (tmp_path / "user.py").write_text(wrong, encoding="utf-8")
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert {"[arg-type]", "[attr-defined]"} <= set(re.findall(r"\[[a-z-]+\]", done.stdout))


def test_the_base_install_alone_scores_has_types_and_lacks_nothing(tmp_path):
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("needs uv, which `make` installs")
    folder = tmp_path / "base"
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def run(*command, **options):
        done = subprocess.run(
            [*map(str, command)], cwd=tmp_path, capture_output=True, text=True, check=False, **options
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run(uv, "pip", "install", "--quiet", "--python", python, "-c", ROOT / "constraints.txt", the_only("*.whl"))
    run(uv, "pip", "check", "--python", python)
    n_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    assert n_bytes < 120e6
    arrays = "import numpy as np; np.save('q.npy', np.eye(4, 8) > 0); np.save('l.npy', [0, 0, 1, 1])"
    run(python, "-c", arrays)
    hashbench = python.with_name("hashbench")
    codes = (
        "--query-codes",
        "q.npy",
        "--database-codes",
        "q.npy",
        "--query-labels",
        "l.npy",
        "--database-labels",
        "l.npy",
    )
    assert "AP,0.861111" in run(hashbench, "evaluate", *codes, "--metric", "AP", "--format", "csv")
    lacking = subprocess.run(
        [hashbench, *["run", "--method", "itq", "--bits", "8"]],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert lacking.stderr.endswith("needs scikit-learn, which is not installed: pip install 'hashbench[methods]'.\n")
    (tmp_path / "user.py").write_text("import hashbench\nprint(hashbench.evaluate([[1]], [[1]], ([0], [0])).summary)\n")
    options = "--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", f"--python-executable={python}"
    run(sys.executable, "-m", "mypy", *options, "user.py")

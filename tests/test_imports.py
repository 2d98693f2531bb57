"""What starts quickly imports no library that only some of its work needs."""

import ast

import pytest
from helpers.paths import ROOT
from helpers.processes import printed_by

LARGE = "numpy, h5py, joblib, matplotlib, numba, pandas, rich, scipy, sklearn, torch"
LIST = """
from click.testing import CliRunner; from hashbench.cli.main import cli
assert CliRunner().invoke(cli, ["list"]).exit_code == 0
"""
NAMES_OF_ALL = """
from hashbench.cli import main, options
for kind in "methods datasets features metrics scripts figures tables".split(): assert options.names_of(kind)
"""
CARDS_OF_ALL = """
from hashbench import cards, registry
for name in registry.built_in_methods(): cards.method_card(name)
"""
METHODS = """
from hashbench import registry
for name in registry.built_in_methods(): registry.get_method(name)().get_params()
"""
RUN = """
from click.testing import CliRunner; from hashbench.cli.main import cli
assert CliRunner().invoke(cli, "run --method itq --bits 8 --metric AP --results r".split()).exit_code == 0
"""
ADAPTERS = """
from importlib import import_module; from pkgutil import iter_modules; import hashbench.datasets
names = [module.name for module in iter_modules(hashbench.datasets.__path__)]
assert len([import_module(f"hashbench.datasets.{name}") for name in names]) > 5
"""
SCORES = """
import hashbench.affinity, hashbench.scoring.code_statistics, hashbench.scoring.evaluation, hashbench.scoring.metrics
"""
CODES_OF_NUMPY = """
import numpy as np; from hashbench.sources.array_files import read_codes
np.save("a.npy", np.eye(2)); read_codes("a.npy")
"""


@pytest.mark.parametrize(
    ("code", "libraries"),
    [
        (NAMES_OF_ALL, f"{LARGE}, hashbench.datasets.digits, hashbench.methods.itq"),
        (CARDS_OF_ALL, LARGE),
        (METHODS + RUN, "numba, torch"),
        (LIST, "joblib, matplotlib, numba, pandas, rich, scipy, sklearn, torch"),
        (
            f"{ADAPTERS}\n{SCORES}\nimport hashbench.sources.download",
            "PIL, h5py, joblib, numba, pandas, requests, rich, scipy, sklearn, torch, urllib3",
        ),
        (f"{CODES_OF_NUMPY}\nimport hashbench.sources.features.backbones", "torch"),
    ],
)
def test_libraries_that_are_not_needed_are_not_imported(code, libraries, tmp_path):
    unwanted = set(libraries.split(", "))
    assert printed_by(f"{code}\nprint(*{unwanted} & {{*sys.modules}})", cwd=tmp_path) == "\n"


OWN = {"hashbench", "self", "cls", "other", "super()", "method"}  # whose private names the code may use
OF_TUPLES = {"_asdict", "_fields", "_make", "_replace"}  # public, whatever they look like
TREES = {"model._predictors", "model._baseline_prediction"}  # have no public name; fasthash reports their lack


def private_names(source):
    """Yield the private names of other packages that a source imports or reads."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] not in {
            "hashbench",
            "__future__",
        }:
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
        elif isinstance(node, ast.Import):
            names = [part for alias in node.names for part in alias.name.split(".")]
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr not in OF_TUPLES:
            names = [] if ast.unparse(node.value) in OWN else [node.attr]
        else:
            continue
        if any(name.startswith("_") and not name.startswith("__") for name in names):
            yield ast.unparse(node)


def test_no_private_name_of_another_package_is_used():
    paths = [path for folder in ("hashbench", "methods", "datasets") for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 100
    used = {path.name: {*private_names(path.read_text("utf-8"))} for path in paths}
    assert {name: names for name, names in used.items() if names} == {"fasthash.py": TREES}
    assert [*private_names("from numpy._core import x\nimport a._b\nc._d()")] == [
        "from numpy._core import x",
        "import a._b",
        "c._d",
    ]

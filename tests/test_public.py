"""The names that users and plug-in authors import are listed in one document, and there."""

import ast
import pydoc
import re
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from helpers.documents import files
from helpers.paths import ROOT

import hashbench
from hashbench import plugins, registry
from hashbench.cli.main import COMMANDS
from hashbench.store.provenance import method_digests
from hashbench.testing import METHOD_CHECKS

DOCUMENT = (ROOT / "docs" / "python.md").read_text()
TABLES = DOCUMENT.partition("## Names\n")[2].split("### For plug-ins\n")
LISTED, OF_PLUGINS = (
    [name for names in re.findall(r"^\| (.*?) \|", table, re.MULTILINE) for name in re.findall(r"`(\w+)`", names)]
    for table in TABLES
)


def test_every_command_has_its_functions_or_is_named_as_a_command_only():
    _, _, section = DOCUMENT.partition("## Commands as functions\n")
    section = section.partition("\n## ")[0]
    named = re.findall(r"`([a-z_]+)[` ]", section)
    assert set(COMMANDS) <= set(named)
    functions = re.findall(r"^\| `[\w -]+` \| (.*?) \|", section, re.MULTILINE)
    assert len(functions) == section.count("\n| `") > 0
    assert all(callable(getattr(hashbench, name)) for cell in functions for name in re.findall(r"`(\w+)`", cell))


def test_every_public_name_is_listed_once_if_no_command_has_it():
    table = "\n".join(
        re.findall(r"^\| `.*", DOCUMENT.partition("## Commands as functions\n")[2].partition("\n## ")[0], re.M)
    )
    of_commands = {*re.findall(r"`(\w+)`", table)} & {*hashbench.__all__}
    assert sorted([*of_commands, *LISTED]) == sorted({*hashbench.__all__} - {"__version__"})
    assert dir(hashbench) == hashbench.__all__
    assert sorted(OF_PLUGINS) == plugins.__all__ == dir(plugins)
    assert {*plugins.__all__} & {*hashbench.__all__} == {"TieHistogram"}


@pytest.mark.parametrize(
    "name",
    [f"hashbench.{name}" for name in hashbench.__all__ if name != "__version__"]
    + [f"plugins.{name}" for name in plugins.__all__],
)
def test_a_public_name_shows_an_example(name):
    module, _, name = name.partition(".")
    thing = getattr({"hashbench": hashbench, "plugins": plugins}[module], name)
    assert "\n    Examples\n    --------\n" in f"{thing.__doc__}"  # which test_documentation.py runs


@pytest.mark.parametrize("module", [hashbench, plugins], ids=lambda module: module.__name__)
def test_type_checkers_read_the_names_that_are_there(module):
    blocks = [node for node in ast.parse(Path(module.__file__).read_text()).body if isinstance(node, ast.If)]
    block, hidden = blocks
    assert [ast.unparse(node.test) for node in blocks] == ["TYPE_CHECKING", "not TYPE_CHECKING"]
    assert [node.name for node in hidden.body] == ["__getattr__"]  # which would give any misspelt name the type Any
    assert all(alias.name == alias.asname for node in block.body for alias in node.names)  # else they are private
    assert {node.module: tuple(alias.name for alias in node.names) for node in block.body} == module._NAMES


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory):
    """Import the modules that the tutorial shows, by name, and forget them at the end."""
    folder = tmp_path_factory.mktemp("src")
    modules = {Path(name).stem: text for name, text in files("docs/tutorials/plugins.md").items() if ".py" in name}
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield import_module
    for name in modules:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("check", METHOD_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "name", ["my_method:MedianHash", "my_types:Directions", "my_proxies:Proxies", "my_autoencoder:AutoencoderHash"]
)
def test_a_method_that_the_tutorial_shows_keeps_the_contract(name, check, tutorial):
    module, _, cls = name.partition(":")
    check(getattr(tutorial(module), cls))


def test_the_digest_of_the_tutorials_network_covers_the_file_that_it_imports(tutorial, monkeypatch):
    monkeypatch.setattr(registry, "installed_with", lambda kind, name: ["my_autoencoder", "my_labels", "my_network"])
    digests = method_digests("autoencoder", tutorial("my_autoencoder").AutoencoderHash)
    assert {*digests} == {"my_autoencoder", "my_network"}


def test_the_proxies_of_the_tutorial_are_kept_for_each_class(tutorial):
    X = np.random.default_rng(0).normal(size=(60, 8))
    method = tutorial("my_proxies").Proxies(n_bits=4, epochs=2).fit(X, np.arange(60) % 3)
    assert method.proxies_.shape == (3, 4)
    assert method.classes_.tolist() == [0, 1, 2]


def test_projections_are_float64_whatever_a_method_returns():
    class Narrow(plugins.HashMethod):
        def _fit(self, X, y):
            self.mean_ = X.mean(axis=0)

        def _project(self, X):
            return (X - self.mean_).astype(np.float32)

    X = np.random.default_rng(0).normal(size=(9, 4))
    assert Narrow(n_bits=4).fit(X).project(X).dtype == np.float64


@pytest.mark.parametrize(
    "name", ["evaluate", "evaluate_run", "pair_thresholds", "run", "tune", "tables", "plot", "explain"]
)
def test_help_shows_types_as_they_are_written(name):
    signature = pydoc.plain(pydoc.render_doc(getattr(hashbench, name))).splitlines()[2]
    assert signature.startswith(f"{name}(")
    assert "_NestedSequence" not in signature
    assert "collections.abc" not in signature
    assert "hashbench." not in signature


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="'hashbench' has no attribute 'evalute'"):
        _ = hashbench.evalute

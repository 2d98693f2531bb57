import sys
from importlib import import_module
from importlib.metadata import EntryPoint
from textwrap import dedent

import pytest
from helpers.paths import ROOT, built_in_datasets, built_in_methods
from helpers.processes import printed_by

from hashbench import cards, registry
from hashbench.adapter import DatasetAdapter
from hashbench.errors import HashbenchError
from hashbench.method import HashMethod


def test_built_in_plugins_are_listed_by_the_names_of_their_files():
    assert {"constant", "itq", "lsh", "oracle-label", "pcah", "random"} <= set(registry.method_names())
    assert {"digits", "digits-pairs", "digits-unlabelled"} <= set(registry.dataset_names())
    for names in (registry.method_names(), registry.dataset_names()):
        assert names == sorted(set(names))
        assert not any(name.startswith("_") or name.startswith("-") for name in names)


@pytest.mark.parametrize("name", built_in_methods())
def test_method_is_found_by_its_name_and_has_a_line_about_it(name):
    cls = registry.get_method(name)
    assert issubclass(cls, HashMethod)
    assert cls.__name__.casefold() == name.replace("-", "").casefold()
    summary = cards.method_summary(name)
    assert summary.endswith(".")
    assert len(summary) < 100


@pytest.mark.parametrize("name", built_in_datasets())
def test_dataset_is_found_by_its_name_and_has_a_line_about_it(name):
    adapter = registry.get_dataset(name)
    assert isinstance(adapter, DatasetAdapter)
    assert adapter.name == name
    assert 10 < len(adapter.summary) < 100


@pytest.fixture
def add_built_in(tmp_path, monkeypatch):
    """Add a file to a package of built-in plug-ins."""
    caches = registry._module_names, registry._dataset_modules
    modules = []

    def add(package, name, text):
        (tmp_path / f"{name}.py").write_text(text)
        module = import_module(f"hashbench.{package}")
        monkeypatch.setattr(module, "__path__", [*module.__path__, str(tmp_path)])
        modules.append(f"hashbench.{package}.{name}")
        for cache in caches:
            cache.cache_clear()

    yield add
    for module in modules:
        sys.modules.pop(module, None)
    for cache in caches:
        cache.cache_clear()


@pytest.mark.parametrize("kind", ["method", "dataset"])
@pytest.mark.parametrize("name", ["lsh+", "mine/lsh"])
def test_plugin_with_a_name_that_no_file_could_have_is_listed_and_refused(plugin, hashbench, monkeypatch, kind, name):
    plugin("mine", "raise ZeroDivisionError")  # which is not reached
    points = [EntryPoint(name, "mine:Mine", f"hashbench.{kind}s")]
    monkeypatch.setattr(registry, "entry_points", lambda group: [point for point in points if point.group == group])
    registry._entry_points.cache_clear()
    reason = f"the name of {kind} plugin mine:Mine may contain only letters a to z and A to Z, digits, '.', '_' and '-'"
    (line,) = [line for line in hashbench("list", f"{kind}s").stdout.splitlines() if line.split()[0] == name]
    assert f"({reason}" in line
    grid = ["--method", name] if kind == "method" else ["--method", "lsh", "--dataset", name]
    for command in (["run", *grid, "--bits", 8], ["info", name], ["check", kind, name]):
        result = hashbench(*command)
        assert (result.exit_code, result.stdout) == (1, "")
        assert result.stderr.startswith(f"Error: {reason}")
        assert f"got {name!r}" in result.stderr


def test_broken_file_among_the_methods_leaves_the_list_whole(add_built_in):
    add_built_in("methods", "broken_one", "def f(:")
    assert cards.method_summary("broken-one").startswith("(method plugin 'broken-one' cannot be imported: SyntaxError")
    assert cards.method_summary("itq").startswith("ITQ")


@pytest.mark.parametrize(
    ("name", "features_name", "spec"),
    [
        ("cifar10-s1", "gist (JPEG)", "cifar10-s1:gist"),
        ("cifar10-s1", "pixels (JPEG)", "cifar10-s1"),
        ("digits", "pixels", "digits"),
        ("mine", "gist", "mine"),
    ],
)
def test_names_in_rows_of_results_lead_back_to_what_users_type(name, features_name, spec):
    assert registry.dataset_spec(name, features_name) == spec


OF_DIGITS = "hashbench.datasets hashbench.datasets._published hashbench.datasets._unlabelled hashbench.datasets.digits"
TWO_DATASETS = """
from hashbench.adapter import DatasetAdapter

def f():
    name = "in-a-function"

class _Base(DatasetAdapter):
    name = "base"

class First(_Base):
    summary = "the first"

    name: str = "the-first"

    def prepare(self):
        name = "in-a-method"

class Second(First):
    name, summary = "two-datasets", "the second"

class Third(First):
    name = 'third'
"""


def test_names_are_listed_without_adapters_and_resolved_with_that_of_one_file():
    code = """
        import sys; from hashbench import registry
        assert len(registry.dataset_names()) > 15 and registry.is_dataset("digits")
        print(*sorted(name for name in sys.modules if name.startswith("hashbench.datasets.")))
        registry.get_dataset("digits-pairs")
        print(*sorted(name for name in sys.modules if name.startswith("hashbench.datasets")))
    """
    assert printed_by(dedent(code)).splitlines() == ["", OF_DIGITS]


def test_names_of_datasets_are_those_of_all_public_classes_in_their_files():
    modules = {name: import_module(module) for name, module in registry._dataset_modules().items()}
    public = {path.stem for path in (ROOT / "datasets").glob("[!_]*.py")}
    assert {module.__name__.rpartition(".")[2] for module in modules.values()} == public
    for module in modules.values():
        classes = [cls for cls in registry._classes(module) if issubclass(cls, DatasetAdapter)]
        assert sorted(cls.name for cls in classes) == sorted(name for name in modules if modules[name] is module)


def test_a_file_of_datasets_serves_the_names_that_its_public_classes_state(add_built_in):
    before = registry.dataset_names()
    add_built_in("datasets", "two_datasets", TWO_DATASETS)
    assert {*registry.dataset_names()} - {*before} == {"the-first", "third"}
    assert registry.get_dataset("third").summary == "the first"


def test_a_file_that_states_no_name_on_its_own_line_serves_that_of_the_file(add_built_in):
    add_built_in(
        "datasets", "two_datasets", TWO_DATASETS.replace("    name: str =", "    title =").replace("= 'third'", "= f()")
    )
    assert registry.is_dataset("two-datasets")
    assert registry.get_dataset("two-datasets").summary == "the second"


def test_a_file_without_the_dataset_that_it_stands_for_is_reported(add_built_in):
    add_built_in("datasets", "empty_one", "import os\n")
    with pytest.raises(HashbenchError, match=r"empty_one\.py must hold a public subclass of .* name = 'empty-one'\."):
        registry.get_dataset("empty-one")


def test_broken_file_among_the_datasets_is_reported_by_each_name_that_it_states(add_built_in):
    add_built_in("datasets", "broken_one", f"{TWO_DATASETS}def g(:")
    for name in ("the-first", "third"):
        assert registry.dataset_summary(name).startswith(f"(dataset plugin {name!r} cannot be imported: SyntaxError")
    assert registry.get_dataset("digits").prepare().name == "digits"


def test_datasets_with_unseen_classes_are_known_by_what_they_are_made_of():
    assert registry.is_dataset("digits-unseen3-fold0")
    assert not registry.is_dataset("digit-unseen3-fold0")
    assert "digits-unseen3-fold0" not in registry.dataset_names()
    kinds = "cifar10-s1-unseen3-fold0", "gist", "cifar10-s1-unseen3-fold0:gist"
    assert registry.resolve_dataset("cifar10-s1-unseen3-fold0:gist") == kinds
    assert registry.resolve_dataset("cifar10-s1-unseen3-fold0", "pixels")[2] == "cifar10-s1-unseen3-fold0"
    assert registry.dataset_spec("cifar10-s1-unseen3-fold0", "gist (JPEG)") == kinds[2]

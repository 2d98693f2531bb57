"""The keys of codes, scores and rows follow declared versions, libraries, plug-ins and the content that decide them."""

import importlib
import json
import sys
from dataclasses import replace
from importlib.metadata import version

import pytest

from hashbench import registry
from hashbench.pipeline.grid import grid
from hashbench.store import provenance
from hashbench.store.provenance import Provenance, digests


def job(name="itq", **params):
    return grid(["digits"], [name], [4], [0], params)[0]


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Write files of a plug-in, import its first module as a new process does, and return its digests."""
    monkeypatch.syspath_prepend(tmp_path)

    def load(*installed, **files):
        for name, text in files.items():
            path = tmp_path / f"{name.replace('__', '/', 1)}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        top = next(iter(files)).partition("__")[0]
        monkeypatch.delitem(sys.modules, top, raising=False)
        importlib.invalidate_caches()
        __import__(top)
        monkeypatch.setattr(registry, "installed_with", lambda *_: installed)
        return digests("method", "mine", (f"{top}.part", "hashbench.methods.itq"))

    return load


def test_a_plugin_is_known_by_the_files_that_it_imports_and_not_by_its_neighbours(mine):
    files = {"kit____init__": "", "kit__part": "from .loss import f\n", "kit__loss": "import kit.deep as d\nf = 1\n"}
    files |= {"kit__deep": "a = 1\n", "kit__neighbour": "b = 1\n", "apart": "c = 1\n"}
    installed = "kit", "apart"
    first = mine(*installed, **files)
    assert [*first] == ["kit"]
    assert mine(*installed, **files | {"kit__neighbour": "b = 2\n", "apart": "c = 2\n"}) == first
    changed = [
        files | {f"kit__{name}": files[f"kit__{name}"] + "# \n"} for name in ("__init__", "part", "loss", "deep")
    ]
    assert len({mine(*installed, **each)["kit"] for each in [files, *changed]}) == 5
    starred = [files | {"kit__loss": "from kit.rest import *\nf = 1\n", "kit__rest": text} for text in ("", "# \n")]
    assert len({mine(*installed, **each)["kit"] for each in starred}) == 2
    for text in ("from importlib import import_module as load", "import runpy", "import sys; sys.path.insert(0, 'v')"):
        hidden = files | {"kit__loss": f"{text}\nf = 1\n"}
        seen = {mine(*installed, **hidden | {"kit__neighbour": text})["kit"] for text in ("b = 1\n", "b = 2\n")}
        assert len(seen) == 2
    by_name = files | {"kit__loss": "from importlib import import_module\nf = import_module('kit.' + 'neighbour')\n"}
    seen = [mine(*installed, **by_name | {"kit__neighbour": text}) for text in ("b = 1\n", "b = 2\n")]
    assert seen[0]["kit"] != seen[1]["kit"]


def test_a_plugin_is_known_by_the_module_that_names_it_even_if_its_class_is_made_elsewhere(mine, monkeypatch):
    files = {"kit____init__": "", "kit__part": "a = 1\n", "kit__plugin": "rate = 1\n"}
    monkeypatch.setattr(registry, "entry_modules", lambda *_: ["kit.plugin"])
    assert mine("kit", **files) != mine("kit", **files | {"kit__plugin": "rate = -1\n"})


def test_a_plugin_is_known_by_all_its_files_that_are_no_python(mine, tmp_path):
    files = {"package_of_mine____init__": "", "package_of_mine__part": "a = 1\n"}
    first = mine(**files)
    assert [*first] == ["package_of_mine"]
    assert mine(**files) == first
    seen = [first, mine(**files | {"package_of_mine__part": "a = 1  # any byte counts\n"})]
    (tmp_path / "package_of_mine" / "signs.json").write_text("[-1]")
    seen.append(mine(**files))
    (tmp_path / "package_of_mine" / ".#part.py").symlink_to("nobody@host:1")  # as an editor leaves it
    assert mine(**files) == seen[-1]
    assert len({each["package_of_mine"] for each in seen}) == 3


def test_a_plugin_of_several_modules_is_known_by_those_that_it_imports(mine):
    imports = "import help_of_mine\n"
    first = mine("file_of_mine", "help_of_mine", file_of_mine=imports, help_of_mine="b = 1\n")
    assert [*first] == ["file_of_mine", "help_of_mine"]
    again = mine("file_of_mine", "help_of_mine", file_of_mine=imports, help_of_mine="b = 2\n")
    assert (again["file_of_mine"] == first["file_of_mine"], again["help_of_mine"] == first["help_of_mine"]) == (1, 0)


def test_methods_of_hashbench_are_known_by_their_versions_alone(tiny):
    made = job().provenance(tiny())
    assert json.loads(made.libraries) == {name: version(name) for name in ("numpy", "scipy", "scikit-learn")}
    assert digests("method", "itq", ("hashbench.methods.itq",)) == made.plugin == {}


MADE = Provenance("d", "f", "itq", "{}", 4, 0, "abc", 1, '{"numpy": "2.1.3", "sklearn": "0.24.1"}')


def test_provenance_is_read_from_attributes():
    attributes = {**MADE.attributes(), "fit_seconds": 1.0}
    assert Provenance.read(attributes) == MADE
    for name in MADE.attributes():
        other = {"params": '{"n_iter": 3}', "libraries": '{"numpy": "3"}'}.get(name, 7)
        assert Provenance.read({**attributes, name: other}) != MADE, name


@pytest.mark.parametrize(
    ("changes", "is_same"),
    [
        ({}, True),
        ({"libraries": '{"numpy": "2.5.0", "sklearn": "0.24.9"}'}, True),
        ({"libraries": '{"numpy": "3.0.0", "sklearn": "0.24.1"}'}, False),
        ({"libraries": '{"numpy": "2.1.3", "sklearn": "0.25.1"}'}, False),
        ({"libraries": '{"numpy": "2.1.3", "sklearn": "0.24.1", "mine": "sha256:ab"}'}, False),
        ({"codes_version": provenance.CODES_VERSION + 1}, False),
        ({"method_version": 2}, False),
        ({"dataset_fingerprint": "abd"}, False),
        ({"params": '{"n_iter": 3}'}, False),
    ],
)
def test_codes_are_reused_across_minor_versions_of_libraries(changes, is_same):
    assert MADE.gives_codes_of(replace(MADE, **changes)) == is_same


def test_scores_depend_on_the_codes_and_the_version_of_the_metrics(monkeypatch):
    before = MADE.of_scores("content")
    assert MADE.of_scores("other") != before
    monkeypatch.setattr(provenance, "SCORES_VERSION", 0)
    assert MADE.of_scores("content") != before


@pytest.mark.parametrize("key", ["params", "libraries"])
def test_attributes_without_a_json_object_are_damaged(key):
    with pytest.raises(ValueError, match="not a JSON object"):
        Provenance.read({**MADE.attributes(), key: "[1]"})

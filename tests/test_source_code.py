import sys

import pytest

from hashbench import _source_code
from hashbench.errors import HashbenchError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package; clears what was read before."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules):
        folder = tmp_path / "written"
        folder.mkdir(exist_ok=True)
        for name, text in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(text)
        for function in (_source_code.file_of, _source_code.tree_of, _source_code.imports_of, _source_code._code_of):
            function.cache_clear()

    return write


MODULE = "from written.helper import half\n\n\ndef work(x):\n    return half(x)\n"
HELPER = 'def half(x):\n    """Halve."""\n    return x / 2\n'


def digest(**options):
    return _source_code.code_digest(["written.module"], **options)


def test_a_digest_follows_imports_and_their_code_but_not_words(package):
    package(module=MODULE, helper=HELPER)
    before = digest()
    assert len(before) == 16
    package(module=MODULE, helper=HELPER.replace("Halve.", "Give the half.") + "# and a comment\n")
    assert digest() == before
    package(module=MODULE, helper=HELPER.replace("x / 2", "x // 2"))
    assert digest() != before
    assert digest(without=["written.helper"]) == digest(without=["written.helper", "written.other"]) != before


@pytest.mark.parametrize("place", ["", "site-packages"])
@pytest.mark.parametrize("form", ["{}.py", "{}/__init__.py", "{}/half.py"])
def test_modules_beside_one_another_are_followed_and_other_peoples_are_not(tmp_path, monkeypatch, package, form, place):
    """As a distribution of several modules has them; where Python installs they must be of one distribution."""
    folder = tmp_path / place
    (folder / "mine-1.dist-info").mkdir(parents=True)
    (folder / "mine-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1\n")
    (folder / "mine-1.dist-info" / "top_level.txt").write_text("flat_method\nflat_losses\n")
    used = "from flat_others import half as other\nfrom flat_losses import half\nimport numpy, json\n"
    (folder / "flat_method.py").write_text(used)

    def digest_with(half, other):
        for name, value in {"flat_losses": half, "flat_others": other}.items():
            (folder / form.format(name)).parent.mkdir(exist_ok=True)
            (folder / form.format(name)).write_text(f"half = {value}\n")
        monkeypatch.syspath_prepend(folder)
        package()  # forgets what was read
        return _source_code.code_digest(["flat_method"])

    before = digest_with(2, 2)
    assert digest_with(2, 2) == before != digest_with(3, 2)
    assert (digest_with(2, 3) != before) == (place == "")
    assert "flat_losses" not in sys.modules  # read, never run


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ("from written import other", True),
        ("import written.other", True),
        ("def late():\n    from written.other import third", True),
        ("if TYPE_CHECKING:\n    from written.other import third", False),
        ("if TYPE_CHECKING:\n    import json\nelse:\n    from written.other import third", True),
        ("from . import other", True),
        ("from .other import third", True),
        ("import numpy", False),
    ],
)
def test_an_import_counts_wherever_it_runs(package, line, changes):
    package(module=f"from typing import TYPE_CHECKING\n{line}\n", other="third = 3\n")
    before = digest()
    package(module=f"from typing import TYPE_CHECKING\n{line}\n", other="third = 4\n")
    assert (digest() != before) == changes


def test_modules_that_import_each_other_are_read_once(package):
    package(module="import written.other\n", other="import written.module\n")
    assert digest() == digest()


@pytest.mark.parametrize(
    ("line", "homes"),
    [
        ("from hashbench import draw_split", {"hashbench.sources.splits"}),
        ("from hashbench import Dataset, setting", {"hashbench.dataset", "hashbench.method"}),
        ("import hashbench", {"hashbench.scoring.evaluator", "hashbench.sources.splits", "hashbench.dataset"}),
    ],
)
def test_a_name_imported_from_hashbench_counts_as_its_module(package, line, homes):
    package(module=f"{line}\n")
    assert homes <= _source_code.imports_of("written.module")
    assert "hashbench" not in _source_code.imports_of("written.module")


def test_a_helper_that_is_not_python_is_reported(package):
    package(module=MODULE, helper="def half(:\n")
    with pytest.raises(HashbenchError, match=r"helper\.py cannot be read as Python: .* Fix it"):
        digest()

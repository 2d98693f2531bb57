"""What is read of a plugin's source is what importing it would tell."""

import json
import subprocess
import sys

import pytest
from places import built_in_methods

from hashbench import _source_code, cards, registry
from hashbench.errors import HashbenchError


@pytest.mark.parametrize("name", built_in_methods())
def test_the_card_of_a_method_is_that_of_its_class(name):
    card, cls = cards.method_card(name), registry.get_method(name)
    assert dict(card.params) == cls().get_params(deep=False)
    assert (card.group, card.supervision, card.version) == (cls.group, cls.supervision, cls.version)
    assert (card.libraries, card.is_slow, card.modules) == (cls.libraries, cls.is_slow, (cls.__module__,))
    assert set(card.presets) == set(cls.presets)
    for preset in cls.presets:
        for n_bits in (16, 48):
            assert card.preset(preset, n_bits) == cls.preset(preset, n_bits)
    from_the_class = cards._card_of_class(name)
    assert card.meanings == from_the_class.meanings
    assert dict(card.tunable) == dict(from_the_class.tunable)
    assert card.summary == from_the_class.summary


def test_cards_of_built_in_methods_are_read_without_importing_them():
    code = (
        "import json, sys; from hashbench import cards\n"
        "names = json.loads(sys.argv[1]); [cards.method_card(name) for name in names]\n"
        "print([name for name in ('numpy', 'scipy', 'sklearn', 'numba', 'pandas', 'torch') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code, json.dumps(built_in_methods())]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Write modules of a package; clears what was read before."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules):
        folder = tmp_path / "written"
        folder.mkdir(exist_ok=True)
        for name, text in {"__init__": "", **modules}.items():
            (folder / f"{name}.py").write_text(text)
        _source_code.names_of.cache_clear()
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


def test_finding_a_file_imports_nothing():
    code = (
        "import sys; from hashbench import _source_code\n"
        "print(_source_code.file_of('hashbench.scoring.kernels'), 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0].endswith("kernels.py")
    assert done.stdout.split()[1] == "False"


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


BASE = """
from dataclasses import dataclass
from hashbench.method import HashMethod, setting, whole

@dataclass(eq=False, repr=False, kw_only=True)
class Mine(HashMethod):
    n_iter: int = setting(50, whole(1))
"""


def test_a_base_imported_from_hashbench_itself_is_read(package):
    package(module=BASE.replace("hashbench.method", "hashbench"))
    (found,) = _source_code.classes_of("written.module")
    assert (found.supervision, found.fields, found.n_iter) == ("none", ("n_bits", "n_iter"), 50)


@pytest.mark.parametrize(
    "text",
    [
        BASE + "class Other(Mine):\n    n_iter = 7\n",  # an attribute over a field: the field's default stays
        BASE + "class Other(Mine):\n    n_iter: int = 7\n",  # no dataclass: likewise
        BASE + "    version, group = 4, 'baseline'\n",
        BASE + "    if True:\n        version = 9\n",
        BASE + "    presets = {'paper': {'n_iter': lambda n_bits: LIMIT}}\nLIMIT = 3\n",
        "Base = type('Base', (), {})\nclass Mine(Base):\n    version = 1\n",
    ],
)
def test_what_only_running_can_tell_is_not_read(package, text):
    package(module=text)

    def read():
        return [
            [found.values[name] for name in ("presets", "n_iter", "version")]
            for found in _source_code.classes_of("written.module")
        ]

    with pytest.raises((KeyError, NameError)):
        read()


def test_an_annotation_of_the_class_is_no_parameter(package):
    package(module=BASE + '    other: "ClassVar[int]" = 3\n    third: typing.ClassVar[int] = 4\n')
    (found,) = _source_code.classes_of("written.module")
    assert found.fields == ("n_bits", "n_iter")
    assert (found.other, found.third, found.n_iter) == (3, 4, 50)


def test_a_helper_that_is_no_python_is_told_in_a_sentence(package):
    package(module=MODULE, helper="def half(:\n")
    with pytest.raises(HashbenchError, match=r"helper\.py cannot be read as Python: .* Mend it"):
        digest()

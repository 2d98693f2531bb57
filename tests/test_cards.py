"""Cards read from the source of a method equal those of its class."""

from dataclasses import replace

import pytest
from helpers.paths import built_in_methods

from hashbench import cards, registry
from hashbench.method import HashMethod


@pytest.mark.parametrize("name", built_in_methods())
def test_the_card_read_from_source_is_that_of_the_class(name):
    card, expected = cards.read_card(name, f"hashbench.methods.{name.replace('-', '_')}"), cards._card_of_class(name)
    assert card.presets.keys() == expected.presets.keys()
    for n_bits in (16, 48):
        for preset in expected.presets:
            assert card.preset(preset, n_bits) == expected.preset(preset, n_bits)
    cls = registry.get_method(name)
    is_plain = all(getattr(cls, function) is getattr(HashMethod, function) for function in cards._DECIDING)
    expected = replace(expected, presets=card.presets, modules=(cls.__module__,), is_plain=is_plain)
    assert vars(card) == vars(expected), f"assign parameters and attributes of {name} one by one in the class body"


METHOD = """
from dataclasses import dataclass
from typing import ClassVar
from hashbench import HashMethod, setting, whole

@dataclass(eq=False, repr=False, kw_only=True)
class Mine(HashMethod):
    n_iter: int = setting(50, whole(1), tunable=(20, 50))
    other: "ClassVar[int]" = 3
    version = 4
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Write a module of a method; return its name."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text):
        name = f"method_in_{tmp_path.name}"  # sources are cached by the module's name
        (tmp_path / f"{name}.py").write_text(text)
        return name

    return write


def test_parameters_are_not_mistaken_for_attributes(module):
    card = cards.read_card("mine", module(METHOD))
    assert card.params == {"n_bits": 32, "n_iter": 50}
    assert (card.version, card.supervision, card.tunable) == (4, "none", {"n_iter": (20, 50)})


def test_a_value_that_needs_running_is_not_guessed(module):
    with pytest.raises(NameError):
        cards.read_card("mine", module(METHOD.replace("50,", "open('x'),")))

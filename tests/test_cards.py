"""Cards of built-in methods are those of their classes, and are read without them."""

import json
import shutil
from pathlib import Path

import pytest
from helpers.paths import built_in_methods
from make_cards import CARDS, cards

from hashbench import cards as of_hashbench


def test_the_file_of_cards_is_what_the_classes_say():
    written, expected = json.loads(CARDS.read_text()), cards()
    assert written["names"] == expected["names"], "run make cards"
    assert written["methods"] == expected["methods"], "run make cards"
    assert written["made_from"] == expected["made_from"], "run make cards"


@pytest.mark.parametrize("name", built_in_methods())
def test_a_card_from_the_file_equals_that_of_the_class(name):
    card, expected = of_hashbench.method_card(name), of_hashbench.card_of_class(name)
    assert vars(card) == vars(expected)
    for preset in card.presets:
        for n_bits in (16, 48):
            assert card.preset(preset, n_bits) == expected.preset(preset, n_bits)


def test_a_card_of_another_source_or_none_is_made_from_the_class(monkeypatch):
    for change in ({"made_from": "another"}, {"methods": {}}):
        monkeypatch.setattr(of_hashbench, "written", lambda change=change: cards() | change)
        monkeypatch.setattr(of_hashbench, "card_of_class", lambda name: f"the class {name}")
        assert of_hashbench._card_of_built_in.__wrapped__("itq") == "the class itq"
        monkeypatch.undo()


def test_the_source_of_a_card_is_every_byte_of_methods_and_learning(tmp_path, monkeypatch):
    shutil.copytree(Path(of_hashbench.__file__).parent, tmp_path / "hashbench")
    monkeypatch.setattr(of_hashbench, "__file__", str(tmp_path / "hashbench" / "cards.py"))
    assert of_hashbench.source_digest.__wrapped__() == of_hashbench.source_digest()
    with (tmp_path / "hashbench" / "learning" / "base.py").open("a") as file:
        file.write("# changed\n")
    assert of_hashbench.source_digest.__wrapped__() != of_hashbench.source_digest()

"""Cards of built-in methods are those of their classes, and are read without them."""

import json
from copy import deepcopy

import pytest
from helpers.paths import built_in_methods
from make_cards import CARDS, cards

from hashbench import cards as of_hashbench
from hashbench.errors import HashbenchError
from hashbench.pipeline.grid import grid
from hashbench.pipeline.steps import encode


def test_the_file_of_cards_is_what_the_classes_say():
    written, expected = json.loads(CARDS.read_text()), cards()
    assert written["names"] == expected["names"], "run make cards"
    assert written["methods"] == expected["methods"], "run make cards"


@pytest.mark.parametrize("name", built_in_methods())
def test_a_card_from_the_file_equals_that_of_the_class(name):
    card, expected = of_hashbench.method_card(name), of_hashbench.card_of_class(name)
    assert vars(card) == vars(expected)
    for preset in card.presets:
        for n_bits in (16, 48):
            assert card.preset(preset, n_bits) == expected.preset(preset, n_bits)


@pytest.mark.usefixtures("data")
def test_nothing_is_encoded_by_a_method_that_is_not_what_its_card_says(digits, monkeypatch):
    (job,) = grid(["digits"], ["itq"], [4], [0], {})
    other = deepcopy(of_hashbench.written())
    other["methods"]["itq"]["params"]["n_iter"] += 1
    monkeypatch.setattr(of_hashbench, "written", lambda: other)
    with pytest.raises(HashbenchError, match=r"'itq' is not what cards\.json says of it; run make cards"):
        encode(digits, job)


def test_a_new_method_needs_no_card(monkeypatch):
    monkeypatch.setattr(of_hashbench, "written", lambda: {"methods": {}, "names": {}})
    of_hashbench.check_card("itq")
    assert of_hashbench.method_card.__wrapped__("itq").name == "itq"

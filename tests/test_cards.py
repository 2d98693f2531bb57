"""Cards of methods are remembered until the source changes, and equal those of the classes."""

import os
from dataclasses import asdict

import pytest
from helpers.paths import built_in_methods

from hashbench import cards
from hashbench.store import remembered as memory


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Use another cache; return a function that forgets what is in memory, as a new process does."""
    monkeypatch.setattr(memory, "_path", lambda: tmp_path / "cards.json")

    def forget():
        for function in (memory._known, memory._source, cards.method_card):
            function.cache_clear()

    forget()
    yield forget
    monkeypatch.undo()
    forget()


@pytest.mark.parametrize("name", built_in_methods())
def test_a_remembered_card_is_that_of_the_class(name):
    cards.method_card(name)
    cards.method_card.cache_clear()
    assert asdict(cards.method_card(name)) == asdict(cards.card_of_class(name))


def test_a_card_is_made_again_after_a_change_of_the_source(cache, monkeypatch):
    cards.method_card("itq")
    cache()
    monkeypatch.setattr(cards, "card_of_class", None)
    assert cards.method_card("itq").version >= 1  # remembered
    cache()
    monkeypatch.setattr(memory, "_source", lambda: "another")
    with pytest.raises(TypeError):
        cards.method_card("itq")


def test_a_cache_that_cannot_be_read_or_written_changes_nothing(cache, tmp_path):
    path = tmp_path / "cards.json"
    path.write_text("{")
    assert cards.method_card("itq").name == "itq"
    path.unlink()
    path.mkdir()
    cache()
    assert cards.method_card("itq").name == "itq"


def test_the_cache_notices_an_edit(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "__file__", str(tmp_path / "remembered.py"))
    source = tmp_path / "method.py"
    source.write_text("version = 1\n")
    digests = set()
    for date in (1, 2):
        os.utime(source, (date, date))
        memory._source.cache_clear()
        digests.add(memory._source())
    memory._source.cache_clear()
    assert len(digests) == 2

"""The list of claims: each still stands on its page, and what holds it is there."""

import re

import pytest
import torch
from helpers.paths import ROOT

from hashbench.errors import HashbenchError
from hashbench.sources.features.weights import read_weights

LIST = ROOT / "docs/explanation/claims.md"
ROWS = [line.strip("| ").split(" | ") for line in LIST.read_text().splitlines() if line.startswith("| ")][1:]
PAGES = [*(ROOT / name for name in ("README.md", "PYPI.md", "SECURITY.md")), *LIST.parent.glob("*.md")]


def plain(text):
    return " ".join(text.replace("**", "").split())


@pytest.mark.parametrize(("claim", "where", "held_by"), ROWS, ids=[row[0] for row in ROWS])
def test_a_claim_stands_on_its_page_and_what_holds_it_exists(claim, where, held_by):
    for page in re.findall(r"\]\((.*?)\)", where):
        assert claim in plain((LIST.parent / page).read_text()), page
    holders = re.findall(r"`(.*?)`", held_by)
    assert holders
    for holder in holders:
        file, _, name = holder.partition("::")
        if name:
            assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text(), holder
        elif holder.startswith("make "):
            assert f"\n{holder.removeprefix('make ')}:" in (ROOT / "Makefile").read_text(), holder
        else:
            assert (ROOT / holder).is_file(), holder


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_is_said_of_never_and_always_is_listed(page):
    if page != LIST:
        for sentence in re.split(r"(?<=[.:|]) ", plain(page.read_text())):
            if re.search(r"\b(never|always)\b", sentence, re.IGNORECASE):
                assert any(row[0] in sentence for row in ROWS), sentence


class Caller:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_weights_that_call_something_are_refused_and_nothing_is_called(tmp_path):
    torch.save({"state_dict": Caller(tmp_path / "called")}, tmp_path / "weights.pth")
    with pytest.raises(HashbenchError, match=r"weights\.pth"):
        read_weights("squeezenet", tmp_path / "weights.pth")
    assert not (tmp_path / "called").exists()

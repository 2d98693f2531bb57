"""Fenced blocks of the documentation, as a reader copies them."""

import re
import shlex

from helpers.paths import ROOT


def blocks(page, language):
    """Return the texts of a page's blocks in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)


def files(page):
    """Return the files that a page shows, by the name above each."""
    pattern = r"^`(\S+)`:\n\n```\w+\n(.*?)^```$"
    return dict(re.findall(pattern, (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE))


def commands(page):
    """Return the arguments of the hashbench commands in a page's shell blocks."""
    return [shlex.split(line)[1:] for block in blocks(page, "sh") for line in block.splitlines()]

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


def commands(page, *, run=True):
    """Return the arguments of the hashbench commands in a page's shell blocks: those that are run, or the others."""
    pattern = r"^(<!-- not run: [^>]+ -->\n)?```sh\n(.*?)^```$"
    found = re.findall(pattern, (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    return [shlex.split(line)[1:] for not_run, block in found if run != bool(not_run) for line in block.splitlines()]

"""Hold a tag to the version in source, citation and changelog: python tests/check_tag.py v0.1.0."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLACES = {  # where the version stands, and how
    "hashbench/__init__.py": r'^__version__ = "(.+)"$',
    "CITATION.cff": r"^version: (\S+)$",
    "CHANGELOG.md": r"^## (\S+) \(\d{4}-\d\d-\d\d\)$",  # the first that has a date
}


def main(tag):
    """Give the exit code: 1, with a sentence for each place, if the tag is not that of the version."""
    wrong = 0
    for place, line in PLACES.items():
        found = re.search(line, (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE)
        version = found[1].strip('"') if found else "nothing of the kind"
        if tag != f"v{version}":
            sys.stderr.write(f"the tag is {tag}, and {place} has {version}: mend one of them, and tag again.\n")
            wrong = 1
    return wrong


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

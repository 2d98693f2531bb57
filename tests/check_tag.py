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
    """Return the exit code: 1, with a sentence for each place, if the tag is not that of the version."""
    exit_code = 0
    for place, line in PLACES.items():
        match = re.search(line, (ROOT / place).read_text(encoding="utf-8"), re.MULTILINE)
        version = match[1].strip('"') if match else "no version"
        if tag != f"v{version}":
            sys.stderr.write(f"the tag is {tag}, but {place} has {version}. Fix one of them and tag again.\n")
            exit_code = 1
    return exit_code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

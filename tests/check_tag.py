"""Hold a tag to the version in the source, without importing it: python tests/check_tag.py v0.1.0."""

import re
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "hashbench" / "__init__.py"


def main(tag):
    """Give the exit code: 1, with a sentence, if the tag is not that of the version."""
    version = re.search(r'^__version__ = "(.+)"$', SOURCE.read_text(encoding="utf-8"), re.MULTILINE)[1]
    if tag == f"v{version}":
        return 0
    sys.stderr.write(
        f"the tag is {tag}, and hashbench/__init__.py says {version}: tag v{version}, or raise it there.\n"
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

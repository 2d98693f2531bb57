"""What the scripts share that put tables into documents: their option, their rows, and the marks in the text."""

import argparse
import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def parser_of(doc: str | None) -> argparse.ArgumentParser:
    """Return the parser of a script that can lay out the rows of its last run again."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--again", action="store_true", help="only lay out the rows of the last run again")
    return parser


def write_rows(path: Path, columns: Iterable[str], rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as CSV."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(columns), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read the rows of the last run."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def put_into(page: str, parts: dict[str, str]) -> str:
    """Put tables between their marks in the text of a page."""
    for name, text in parts.items():
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        page = before + mark + text + "\n" + end + after
    return page

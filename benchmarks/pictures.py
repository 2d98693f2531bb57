"""The pictures of docs/images: the page of `hashbench report` on the committed rows, and the figure of a tutorial.

    make pictures

Opens the page in chromium, which must be installed (`apt-get install chromium`). Beside the pictures stands a digest of
what each of them shows: rows, the sources of the page, or code and output of the tutorial. A test compares it with the
rows and sources of today. Figures of results are made by ``make tables``, others by the scripts that have their rows.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from pages import DOCS

from hashbench.reports.html import write_report
from hashbench.reports.row_origins import read_results_with_origins

ROOT = DOCS.parent
IMAGES = DOCS / "images"
STAMPS = IMAGES / "shown.json"
PAGE = ROOT / "hashbench" / "reports" / "html"
TUTORIAL = DOCS / "tutorials" / "near-duplicates.md"
SHOWN = ["dataset", "features", "method", "params", "n_bits", "seed", "value", "tie_sd", "low", "high"]
HEADINGS = """height => [...document.querySelectorAll(".panel h2")]
    .filter((heading) => heading.getBoundingClientRect().bottom < height).map((heading) => heading.innerText)"""
NO_COUNT = "header > .muted { visibility: hidden; }"  # of all rows, which changes with each


@dataclass(frozen=True)
class View:
    """A picture of a view of the report."""

    name: str
    width: int
    height: int
    scheme: str
    dataset: str = ""  # all
    n_bits: int | None = None  # the only length it shows


VIEWS = {
    "report.png": View("overview", 1280, 1000, "light", n_bits=32),
    "report-phone.png": View("leaderboard", 390, 844, "dark", dataset="cifar10-s1:squeezenet (JPEG)"),
}


def digest(*texts: str) -> str:
    """Return 16 hex digits of some texts."""
    return sha256("\0".join(texts).encode()).hexdigest()[:16]


def digest_view(view: View, datasets: list[str], results: pd.DataFrame) -> str:
    """Digest the rows of AP that a view shows, and the sources of the page."""
    names = results["dataset"] + ":" + results["features"]
    rows = results[names.isin(datasets) & (results["metric"] == "AP")]
    if view.n_bits:
        rows = rows[rows["n_bits"] == view.n_bits]
    sources = sorted(path for path in PAGE.rglob("*") if path.suffix in (".css", ".html", ".js"))
    return digest(rows[SHOWN].sort_values(SHOWN[:6]).to_csv(index=False), *(path.read_text() for path in sources))


def digest_tutorial() -> str:
    """Digest code and output of the tutorial, which a test of the site runs."""
    return digest(*re.findall(r"^```\w+\n(.*?)^```$", TUTORIAL.read_text(), re.DOTALL | re.MULTILINE))


def stamps(shown: dict[str, Any], results: pd.DataFrame) -> dict[str, Any]:
    """Return the stamps of all pictures today; ``shown`` are those beside them."""
    views = {
        name: {"datasets": shown[name]["datasets"], "digest": digest_view(view, shown[name]["datasets"], results)}
        for name, view in VIEWS.items()
    }
    return {**views, "near-duplicates.svg": {"digest": digest_tutorial()}}


def picture_report(folder: Path) -> dict[str, Any]:
    """Make the pictures of the report; returns the datasets that each shows."""
    sys.path.insert(0, str(ROOT / "tests"))
    from helpers.browser import CHROMIUM, browsing, visiting

    sys.path.pop(0)
    if CHROMIUM is None:
        raise SystemExit("there is no chromium to open the page in. Install it: apt-get install chromium.")
    page = write_report(ROOT / "results", folder / "report.html")
    shown = {}
    with browsing() as browser:
        for name, view in VIEWS.items():
            size: Any = {"width": view.width, "height": view.height}
            fragment = f"#{view.name}" + f"?data={quote(view.dataset)}" * bool(view.dataset)
            with visiting(browser, page, fragment, viewport=size, color_scheme=view.scheme) as opened:
                opened.add_style_tag(content=NO_COUNT)
                opened.screenshot(path=IMAGES / name)
                datasets = [view.dataset] if view.dataset else opened.evaluate(HEADINGS, view.height)
            shown[name] = {"datasets": datasets}
    return shown


def draw_thresholds(folder: Path) -> None:
    """Run the tutorial up to its figure."""
    text = TUTORIAL.read_text().partition("](../images/near-duplicates.svg)")[0]
    blocks = re.findall(r"^```(python|sh)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    code = next(inside for language, inside in blocks if language == "python")
    command = next(inside for language, inside in reversed(blocks) if language == "sh").split()
    subprocess.run([sys.executable, "-c", code], cwd=folder, check=True)
    command[0] = str(Path(sys.executable).parent / command[0])
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    shutil.copyfile(folder / command[command.index("--output") + 1], IMAGES / "near-duplicates.svg")


def main() -> None:
    """Make the pictures, and write what they show."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["HASHBENCH_DATA"] = str(folder / "data")  # what is cached here does not count
        draw_thresholds(folder)
        shown = picture_report(folder)
    found = stamps(shown, read_results_with_origins(ROOT / "results"))
    STAMPS.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()

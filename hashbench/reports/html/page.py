"""The report: one HTML file that needs nothing else, or a folder whose parts are loaded when they are looked at."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hashbench import __version__
from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, counted
from hashbench.reports.aggregate import BLOCK
from hashbench.reports.diff import compare, with_tests
from hashbench.reports.html.cached import USUAL_BITS, blocks_of, read_costs, read_queries
from hashbench.reports.html.changes import changes_content
from hashbench.reports.html.content import block_names, make_content
from hashbench.reports.html.thumbnails import add_thumbnails
from hashbench.reports.plots.selection import Block
from hashbench.reports.revisions import read_sides
from hashbench.store.files import check_output, write_bytes, write_text
from hashbench.store.results import read_results

PAGE_SUFFIXES = (".html", ".htm")
USUAL_QUERIES = {"file": 20, "folder": 500}  # of each dataset, whose tie groups are there
_SCRIPTS = ("base", "forms", "tables", "leaderboard", "overview", "methods", "axes", "plots", "queries", "main")
_TITLE = "hashbench report"


def write_report(
    results_folder: Path,
    output: Path,
    *,
    against: str | None = None,
    n_queries: int | None = None,
    has_thumbnails: bool = False,
    on_progress: Progress = silent,
) -> Path:
    """Write the report of all results of a folder; the same results, and the same codes kept of them, give the same.

    Parameters
    ----------
    results_folder : Path
        Holds ``<dataset>.csv`` files.
    output : Path
        A file (``.html``), or else a folder for ``index.html`` and its data.
    against : str, optional
        A revision, folder or file to which results are compared.
    n_queries : int, optional
        Of each dataset, whose tie groups are shown; by default 20 in a file, 500 in a folder.
    has_thumbnails : bool, default=False
        Whether a folder also holds images of queries and of the items nearest to them.
    on_progress : Progress, optional
        Called with what is being done, parts done and all parts.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    HashbenchError
        If there are no results, thumbnails are asked of a single file, or it cannot be written.
    """
    is_file = output.suffix in PAGE_SUFFIXES
    if has_thumbnails and is_file:
        raise HashbenchError(f"thumbnails need a folder, and {output} is one file: --output {output.with_suffix('')}.")
    path = output if is_file else output / "index.html"
    check_output(path)
    results = read_results(results_folder)
    content = make_content(results)
    names = block_names(results[list(BLOCK)].drop_duplicates())
    named = [(names[_key(block)], block) for block in blocks_of(results, variants=True, on_progress=on_progress)]
    content |= read_costs(named)
    if against is not None:
        found = compare(*read_sides(against, None, results_folder))
        content["changes"] = changes_content(with_tests(found, on_progress=on_progress))
    n_queries = USUAL_QUERIES["file" if is_file else "folder"] if n_queries is None else n_queries
    content["queries"] = {}
    for number, block in enumerate(blocks_of(results, USUAL_BITS, on_progress=on_progress)):
        queries = _queries(block, n_queries)
        if not is_file and "labels" in queries:
            file = f"data/queries-{number}.js"
            sheets = add_thumbnails(queries, block, f"data/images-{number}") if has_thumbnails else {}
            for name, sheet in sheets.items():
                write_bytes(output / name, sheet)
            write_text(output / file, f"hashbenchData({json.dumps(file)}, {_json(queries)});\n")
            queries = {"labels": queries["labels"], "file": file}
        content["queries"][names[_key(block)]] = queries
    write_text(path, render(content, counted(len(results), "row")))
    return path


def render(content: Mapping[str, Any], subtitle: str) -> str:
    """Make the page of `make_content`, with what else there is to show."""
    here = files("hashbench.reports.html")
    environment = Environment(
        autoescape=True, loader=PackageLoader("hashbench.reports.html", ""), undefined=StrictUndefined
    )
    whole = {"times": {"data": [], "label": [], "bits": []}, "usage": {"bits": []}, "queries": {}, **content}
    script = "\n".join(here.joinpath("js", f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return environment.get_template("page.html").render(
        title=_TITLE,
        subtitle=subtitle,
        version=__version__,
        style=Markup(here.joinpath("page.css").read_text(encoding="utf-8")),
        data=Markup(_json({"title": _TITLE, **whole})),
        script=Markup(script),
    )


def _queries(block: Block, n_queries: int) -> dict[str, Any]:
    """Read the queries of a block, or say how to get them."""
    if n_queries == 0:
        return {"note": "They were left out: --queries 0."}
    try:
        return read_queries(block, n_queries)
    except HashbenchError as error:
        return {"note": f"Here {error}"}


def _key(block: Block) -> tuple[str, str, str]:
    return block.dataset, block.features, block.dataset_fingerprint


def _json(content: Mapping[str, Any]) -> str:
    """Write JSON in ASCII; with no ``<`` in it nothing can end the script element, or begin a comment, around it."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

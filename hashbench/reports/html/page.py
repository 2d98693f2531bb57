"""The report: one self-contained HTML file, or a folder whose parts load on demand."""

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hashbench import __version__
from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, counted
from hashbench.registry import dataset_spec
from hashbench.reports.aggregate import BLOCK, all_lines
from hashbench.reports.diff import compare, with_tests
from hashbench.reports.html.cached import add_thumbnails, blocks_of, main_part, read_costs, read_queries
from hashbench.reports.html.content import (
    block_names,
    changes_content,
    changes_text,
    dataset_cards,
    make_content,
    method_cards,
)
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.reports.revisions import read_sides
from hashbench.reports.row_origins import with_origins
from hashbench.reports.view import make_view
from hashbench.scoring.metrics import is_error
from hashbench.store.files import check_output, write_bytes, write_text
from hashbench.store.results import find_files, read_record, read_results

PAGE_SUFFIXES = (".html", ".htm")
USUAL_QUERIES = {"file": 20, "folder": 500}  # per dataset, with their tie groups
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
    """Write the report of all results of a folder, and return its path; the same results and codes give the same page.

    ``output`` is a file (``.html``), or else a folder for ``index.html`` and its data. Results are compared with
    ``against``, a revision, folder or file. Tie groups of ``n_queries`` per dataset are shown, by default 20 in a
    file, 500 in a folder. ``has_thumbnails`` adds images of queries and of the items nearest to them to a folder.
    Raises HashbenchError if there are no results, if a single file should have thumbnails, or if writing fails.
    """
    is_file = output.suffix.lower() in PAGE_SUFFIXES
    if not is_file:
        _check_folder(output)
    if has_thumbnails and n_queries == 0:
        raise HashbenchError("--thumbnails needs queries; drop it or --queries 0.")
    if has_thumbnails and is_file:
        raise HashbenchError(f"thumbnails need a folder, and {output} is one file: --output {output.with_suffix('')}.")
    path = output if is_file else output / "index.html"
    check_output(path)
    origins = read_record(find_files(results_folder)).origins
    results = with_origins(read_results(results_folder), origins)
    sides = None if against is None else read_sides(against, None, results_folder)
    lines = all_lines(results)
    cells = make_view(results, lines=lines, by_score=True).cells
    content = make_content(results, lines, cells, origins)
    names = block_names(cells)
    blocks = [(names[_key(block)], block) for block in blocks_of(results, on_progress)]
    content |= read_costs(blocks)
    fixed: dict[str, Any] = {"datasets": dataset_cards(cells), "methods": method_cards(cells), "changes": None}
    content["methods"] = {card["name"]: {"about": card["summary"], **card["paper"]} for card in fixed["methods"]}
    if sides is not None:
        diff = with_tests(compare(*sides), on_progress=on_progress)
        fixed["changes"], content["changes"] = changes_text(diff), changes_content(diff)
    n_queries = USUAL_QUERIES["file" if is_file else "folder"] if n_queries is None else n_queries
    content["queries"] = {}
    files_beside: dict[str, bytes] = {}
    cells_of = dict(tuple(cells.groupby(list(BLOCK))))
    for name, every_line in blocks:
        block = main_part(every_line, cells_of[_key(every_line)])
        queries = _queries(block, n_queries)
        if not is_file and "labels" in queries:
            files_beside |= add_thumbnails(queries, block) if has_thumbnails else {}
            text = _json(queries)
            file = f"data/queries-{sha256(text.encode()).hexdigest()[:16]}.js"
            files_beside[file] = f"hashbenchData({json.dumps(file)}, {text});\n".encode()
            queries = {"labels": queries["labels"], "file": file}
        content["queries"][name] = queries
    if has_thumbnails and not any(file.endswith(".jpg") for file in files_beside):
        raise HashbenchError(
            "no dataset of images has codes and scores in the data folder, so there is nothing to make thumbnails of. "
            "Train on one, such as cifar10-s1:images (hashbench run --method talr-ap --param backbone=squeezenet "
            "--dataset cifar10-s1:images), or leave out --thumbnails."
        )
    for file, part in files_beside.items():
        write_bytes(output / file, part)
    write_text(path, _render(content, fixed, counted(len(results), "row")))
    if not is_file:  # remove what an earlier report left
        for other in [*output.glob("data/queries-*.js"), *output.glob("data/images-*.jpg")]:
            if other.relative_to(output).as_posix() not in files_beside:
                other.unlink(missing_ok=True)
    return path


def _check_folder(output: Path) -> None:
    """Refuse a folder that is a file, or that does not exist and is named like one."""
    if not output.is_dir() and (output.exists() or output.suffix[1:].isalpha()):
        what = "is another kind of file" if output.exists() else f"ends in {output.suffix} as other files do"
        raise HashbenchError(
            f"the report is an .html file or a folder, and {output} {what}; give {output.with_suffix('.html')}, or "
            "create the folder first."
        )


def _render(content: Mapping[str, Any], fixed: Mapping[str, Any], subtitle: str) -> str:
    package = files("hashbench.reports.html")
    environment = Environment(
        autoescape=True,
        loader=PackageLoader("hashbench.reports.html", ""),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script = "\n".join(package.joinpath("js", f"{name}.js").read_text(encoding="utf-8") for name in _SCRIPTS)
    return environment.get_template("page.html").render(
        title=_TITLE,
        subtitle=subtitle,
        version=__version__,
        style=Markup(package.joinpath("page.css").read_text(encoding="utf-8")),
        data=Markup(_json({"title": _TITLE, **content})),
        script=Markup(script),
        **fixed,
    )


def _queries(block: FigureBlock, n_queries: int) -> dict[str, Any]:
    if n_queries == 0:
        return {"note": "Queries were left out: --queries 0."}
    try:
        return read_queries(block, n_queries)
    except HashbenchError:
        return {"note": f"To show queries, run {_command(block)}, then hashbench report, on the same machine."}


def _command(block: FigureBlock) -> str:
    """Return the command that caches codes and scores of the best two methods of a block."""
    rivals = block.cells[block.cells["group"] != "baseline"].sort_values("value", ascending=is_error(block.metric))
    methods = "".join(f" --method {name}" for name in rivals["method"].unique()[:2])
    spec = dataset_spec(block.dataset, block.features)
    return f"hashbench run --dataset {spec}{methods} --bits {block.n_bits[0]} --force"


def _key(block: FigureBlock) -> tuple[str, str, str]:
    return block.dataset, block.features, block.dataset_fingerprint


def _json(content: Mapping[str, Any]) -> str:
    """Write JSON in ASCII; without any ``<`` nothing can end the script element, or begin a comment, around it."""
    return json.dumps(content, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")

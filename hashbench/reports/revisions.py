"""The two sides of a comparison: results at a git revision, in the working tree, or in any folder or file."""

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hashbench.errors import HashbenchError
from hashbench.store.results import Row, Unreadable, read_content, read_folder, unite


@dataclass(frozen=True, eq=False)
class Side:
    """Results to compare: each `Row` by its key."""

    name: str  # what the user called it, and the commit if it is a revision
    rows: dict[tuple[Any, ...], Row]
    is_file: bool = False  # which says nothing about other datasets
    is_named: bool = False  # by the user, as a folder or file that then should hold results


def read_sides(old: str, new: str | None, results: Path | None = None) -> tuple[Side, Side]:
    """Read the two sides, each a revision or path; without a second one it is the working tree.

    By default the results folder is the nearest ``results`` with CSV files in it, in the current folder or above, up to
    the top of the git repository.
    """
    folder = results or _find_results()
    first = read_side(old, folder)
    second = Side("working tree", read_folder(folder)) if new is None else read_side(new, folder)
    return (first, second) if results is None else (replace(first, is_named=True), replace(second, is_named=True))


def read_side(text: str, results: Path) -> Side:
    """Read the results at a revision, branch or tag, or else of a folder or file.

    ``./main`` is a folder even if there is a branch ``main``. There are no rows if the revision had no results, or if
    there are no commits yet and it is ``HEAD``. Raises HashbenchError if there is neither such a revision nor such a
    path, or git is missing.
    """
    found = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    if found.returncode == 0:
        commit = found.stdout.decode().strip()
        try:
            return Side(f"{text} ({commit[:10]})", unite(_files_at(commit, text, results), is_past=True))
        except Unreadable as error:
            raise HashbenchError(f"{error.args[0]} What is committed stays as it is; give another commit.") from error
    path = Path(text)
    if text and path.is_dir():
        return Side(text, read_folder(path), is_named=True)
    if path.is_file():
        return Side(text, unite([(read_content(path), text)]), is_file=True, is_named=True)
    if text == "HEAD" and _top() is not None:
        return Side("HEAD (no commits yet)", {})
    raise _unknown(text)


def _find_results() -> Path:
    here = Path.cwd()
    top = _top() or here
    for folder in (here, *here.parents):
        if any((folder / "results").glob("*.csv")):
            return folder / "results"
        if folder == top:
            break
    return top / "results"


def _files_at(commit: str, text: str, results: Path) -> Iterable[tuple[bytes, str]]:
    """Give each results file at a commit, with its name for errors."""
    top = _top()
    if top is None or not results.resolve().is_relative_to(top):
        raise HashbenchError(
            f"{results} lies outside the git repository {top}, so {text!r} says nothing about it. "
            "Give a folder inside with --results, or two paths."
        )
    folder = results.resolve().relative_to(top).as_posix()
    inside = [] if folder == "." else [f"{folder}/"]
    listed = _checked("-C", str(top), "ls-tree", "-z", "--name-only", commit, *inside)
    for name in listed.decode().split("\0"):
        if name.endswith(".csv"):
            yield _checked("-C", str(top), "cat-file", "blob", f"{commit}:{name}"), f"{text}:{name}"


def _unknown(text: str) -> HashbenchError:
    """Build the error for a side that is nothing, with what may help."""
    inside = _git("rev-parse", "--git-dir")
    if inside.returncode:
        return HashbenchError(
            f"{text!r} is neither a file nor a folder, and no revision can be looked up: {_said(inside)}. "
            "Compare two folders or files: hashbench diff OLD NEW."
        )
    first, dots, second = text.partition("..")
    near = get_close_matches(text, _git("for-each-ref", "--format=%(refname:short)").stdout.decode().split(), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if dots:
        hint = f" Give the two sides apart: hashbench diff {first} {second.lstrip('.')}."
    elif _git("rev-parse", "--is-shallow-repository").stdout.strip() == b"true":
        hint += " This clone is shallow; fetch what it lacks: git fetch --depth=1 origin BRANCH, or --deepen=100."
    return HashbenchError(f"{text!r} is neither a revision of this git repository nor a file or folder.{hint}")


def _top() -> Path | None:
    """Find the top folder of the git repository here."""
    found = _git("rev-parse", "--show-toplevel")
    return Path(found.stdout.decode().rstrip("\n")).resolve() if found.returncode == 0 else None


def _checked(*arguments: str) -> bytes:
    done = _git(*arguments)
    if done.returncode:
        raise HashbenchError(
            f"git {' '.join(arguments)} fails: {' '.join(done.stderr.decode(errors='replace').split())}"
        )
    return done.stdout


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    """Give git's complaint in one line."""
    return " ".join(done.stderr.decode(errors="replace").removeprefix("fatal: ").split())


def _git(*arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], capture_output=True, check=False)
    except OSError:
        return subprocess.CompletedProcess(arguments, 127, b"", b"git is not installed")

"""The two sides of a comparison: results at a git revision, in the working tree, or in any folder or file."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from hashbench.errors import HashbenchError
from hashbench.store.inputs import resolved
from hashbench.store.result_rows import Row
from hashbench.store.results import (
    FIRST,
    ResultsFile,
    Unreadable,
    find_files,
    read_file,
    read_folder,
    record_path,
    unite,
)


@dataclass(frozen=True, eq=False)
class Side:
    """Results to compare: each `Row` by its key."""

    name: str  # as the user typed it, with the commit of a revision
    rows: dict[tuple[Any, ...], Row]
    scope: int = 0  # 0: all results; 1: only those of a dataset; 2: only those of a method on a dataset
    is_named: bool = False  # whether the user named the folder or file, which should then hold results


def read_sides(old: str, new: str | None, results: Path | None = None) -> tuple[Side, Side]:
    """Read the two sides, each a revision or path; by default the second one is the working tree.

    As in ``git diff``, ``A..B`` names both, and ``A...B`` the merge base of A and B, and B; a missing end is ``HEAD``.
    By default the results folder is the nearest ``results`` with results in it, in the current folder or above, up to
    the top of the git repository.
    """
    folder = results or _find_results()
    if ends := _ends_of_range(old):
        if new is not None:
            raise HashbenchError(f"{old!r} gives both sides already; leave out {new!r}, or name one revision there.")
        before, after = (_side_at(*end, folder) for end in ends)
        return before, after
    first = read_side(old, folder)
    second = Side("working tree", read_folder(folder)) if new is None else read_side(new, folder)
    return (first, second) if results is None else (replace(first, is_named=True), replace(second, is_named=True))


def read_side(text: str, results: Path) -> Side:
    """Read the results at a revision, branch or tag, or else in a folder or file.

    ``./main`` is a folder even if there is a branch ``main``. A revision without results has no rows, and neither has
    ``HEAD`` before the first commit.
    """
    if commit := _commit(text):
        return _side_at(commit, text, results)
    path = Path(text)
    if text and path.is_dir():
        is_dataset = any(file.parent == path and record_path(file).exists() for file in find_files(path))
        return Side(text, read_folder(path), scope=int(is_dataset), is_named=True)
    if path.is_file():
        return Side(text, unite([read_file(path)]), scope=2, is_named=True)
    if text == "HEAD" and _top() is not None:
        return Side("HEAD (no commits yet)", {})
    raise _unknown(text)


def _side_at(commit: str, name: str, results: Path) -> Side:
    try:
        return Side(f"{name} ({commit[:10]})", unite(files_at(commit, name, results)))
    except Unreadable as error:
        raise HashbenchError(f"{error.args[0]} A commit cannot be changed; name another one.") from error


def _commit(text: str) -> str:
    """Return the commit of a revision; empty if the text is not a revision."""
    parsed = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{text}^{{commit}}")
    return parsed.stdout.decode().strip() if parsed.returncode == 0 else ""


def _ends_of_range(text: str) -> list[tuple[str, str]]:
    """Return commit and name of both sides of ``A..B`` or ``A...B``; none if the text is not a range of revisions."""
    dots = "..." if "..." in text else ".."
    first, _, second = (end or "HEAD" for end in text.partition(dots))
    end = _commit(second)
    if dots not in text or Path(text).exists() or not (end and _commit(first)):
        return []
    starts = _git("rev-parse", "--revs-only", text, "--").stdout.decode().split()  # of three dots also the first side
    bases = [_commit(start.removeprefix("^")) for start in starts if start.startswith("^")]
    if len(bases) != 1:
        raise HashbenchError(
            f"{first} and {second} have {len(bases)} merge bases in this clone, expected one. Compare two commits: "
            f"hashbench diff {bases[0][:10] if bases else first} {second}."
        )
    return [(bases[0], first if dots == ".." else f"merge base of {first} and {second}"), (end, second)]


def _find_results() -> Path:
    here = Path.cwd()
    top = _top() or here
    for folder in (here, *here.parents):
        if find_files(folder / "results"):
            return folder / "results"
        if folder == top:
            break
    return top / "results"


def files_at(commit: str, text: str, results: Path) -> Iterable[ResultsFile]:
    """Yield the results files of a folder in a commit, which the user called ``text``."""
    top = _top()
    results_path = resolved(results)
    if top is None or not results_path.is_relative_to(top):
        raise HashbenchError(
            f"{results} lies outside the git repository {top}, so {text!r} has no results of it. "
            "Give a folder inside with --results, or two paths."
        )
    folder = results_path.relative_to(top).as_posix()
    inside = "" if folder == "." else f"{folder}/"
    listed = _checked("-C", str(top), "ls-tree", "-rz", commit, *([inside] if inside else [])).decode()
    entries = [entry.split("\t", 1) for entry in listed.split("\0") if entry]
    oids = {name.removeprefix(inside): facts.split()[2] for facts, name in entries if facts.split()[1] == "blob"}
    wanted = [name for name in oids if name.count("/") < 2 and name.endswith((".csv", ".json"))]
    contents = dict(zip(wanted, _blobs(top, [oids[name] for name in wanted]), strict=True))
    for name, content in contents.items():
        record = contents.get(str(record_path(Path(name))))
        if name.endswith(".csv") and ("/" not in name or record is not None or content.startswith(FIRST)):
            record = record or _earlier_record(contents.get(f"{name.removesuffix('.csv')}.settings.json"))
            yield ResultsFile(f"{text}:{inside}{name}", content, record)


def _earlier_record(settings: bytes | None) -> bytes | None:
    """Return the record of rows in a commit before the settings of rows moved into it."""
    if settings is None:
        return None
    params = {name: entry["params"] for name, entry in json.loads(settings).items()}
    return json.dumps({"settings": params, "origins": {}, "jobs": [], "recipes": {}}).encode()


def _blobs(top: Path, oids: Sequence[str]) -> Iterable[bytes]:
    output = _checked("-C", str(top), "cat-file", "--batch", stdin="".join(f"{oid}\n" for oid in oids).encode())
    start = 0
    for _ in oids:
        end = output.index(b"\n", start)
        n_bytes = int(output[start:end].split()[2])
        yield output[end + 1 : end + 1 + n_bytes]
        start = end + n_bytes + 2


def _unknown(text: str) -> HashbenchError:
    """Build the error for a side that does not exist."""
    refs = _git("for-each-ref", "--format=%(refname:short)")
    if refs.returncode:
        complaint = " ".join(refs.stderr.decode(errors="replace").removeprefix("fatal: ").split())
        return HashbenchError(
            f"{text!r} is neither a file nor a folder, and no revision can be looked up: {complaint}. "
            "Compare two folders or files: hashbench diff OLD NEW."
        )
    hint = "".join(f" Did you mean {near!r}?" for near in get_close_matches(text, refs.stdout.decode().split(), n=1))
    return HashbenchError(f"{text!r} is neither a revision in this clone of the repository nor a file or folder.{hint}")


def _top() -> Path | None:
    parsed = _git("rev-parse", "--show-toplevel")
    return Path(parsed.stdout.decode().rstrip("\n")).resolve() if parsed.returncode == 0 else None


def _checked(*arguments: str, stdin: bytes = b"") -> bytes:
    completed = _git(*arguments, stdin=stdin)
    if completed.returncode:
        raise HashbenchError(
            f"git {' '.join(arguments)} fails: {' '.join(completed.stderr.decode(errors='replace').split())}"
        )
    return completed.stdout


def _git(*arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(["git", *arguments], input=stdin, capture_output=True, check=False)
    except OSError:
        return subprocess.CompletedProcess(arguments, 127, b"", b"git is not installed")

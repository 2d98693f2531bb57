"""Check that no score in the tables of results/ falls, and none is lost, unless the changelog names it.

    .venv/bin/python tests/check_results.py [REVISION]

Cells are those that today's tables would show of either results: the mean over seeds of each method, whatever its
settings. A fall of more than 0.02, or a cell that is gone, must stand in a new bullet of the changelog's "Numbers that
changed" that names dataset and method; for cells that are gone, "all methods" and the length are enough. A bullet that
names several datasets is read sentence by sentence. Without a revision, the results are compared with origin/main, or
where that is HEAD, with the commit before.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from hashbench.registry import features_kind
from hashbench.reports.aggregate import main_lines, mean_over_seeds, signs_of
from hashbench.reports.revisions import files_at
from hashbench.reports.row_origins import with_origins
from hashbench.store.result_rows import to_frame
from hashbench.store.results import find_files, parse_record, read_file, unite

ROOT = Path(__file__).parents[1]
LARGEST = 0.02
PLACE = ["dataset", "features", "dataset_fingerprint", "method", "metric", "n_bits"]


def git(*command):
    return subprocess.run(["git", "-C", ROOT, *command], check=True, capture_output=True).stdout


def last_main():
    """Return the revision to compare with; empty if there is none."""
    for name in ("origin/main", "HEAD^"):
        found = subprocess.run(
            ["git", "-C", ROOT, "rev-parse", "-q", "--verify", name], capture_output=True, check=False
        )
        if found.stdout not in (b"", git("rev-parse", "HEAD")):
            return name
    return ""


def shown(files, origins):
    """Return the cells that tables show of results files, one line of each method."""
    cells = mean_over_seeds(with_origins(to_frame(unite(files).values()), origins))
    return main_lines(cells, cells)[[*PLACE, "value"]]


def shown_before_and_now(revision):
    """Return the cells of a revision and of today; jobs without a record of their origin have today's."""
    old, new = [*files_at(revision, revision, ROOT / "results")], [*map(read_file, find_files(ROOT / "results"))]
    origins = {job: origin for file in (*new, *old) for job, origin in parse_record(file).origins.items()}
    return shown(old, origins), shown(new, origins)


class Fall(NamedTuple):
    """Cells of a method of a dataset that are lost or fall."""

    text: str
    lost: frozenset[int] = frozenset()  # the code lengths, if all of these cells are lost


def falls(old, new):
    """Return the falls of each method of a dataset that has any, by both names."""
    both = old.merge(new, on=PLACE, how="left", suffixes=("_old", "_new"))
    both["fall"] = (both["value_old"] - both["value_new"]) * signs_of(both["metric"])
    is_lost = both["value_old"].notna() & both["value_new"].isna()
    found = {}
    for (dataset, features, method), cells in both[is_lost | (both["fall"] > LARGEST)].groupby(
        ["dataset", "features", "method"]
    ):
        words = [
            f"{cell.metric} at {cell.n_bits} bits {cell.value_old:.4f} -> "
            + ("lost" if pd.isna(cell.value_new) else f"{cell.value_new:.4f}")
            for cell in cells.itertuples()
        ]
        text = f"{dataset} ({features}) {method}: {', '.join(words)}"
        lost = frozenset(cells["n_bits"]) if cells["value_new"].isna().all() else frozenset()
        found[f"{dataset}:{features_kind(features)}", method] = Fall(text, lost)
    return found


def new_bullets(changelog, before):
    """Return the bullets of "Numbers that changed" that an earlier changelog lacks."""
    section = re.split(r"\n#+ ", changelog.partition("### Numbers that changed")[2])[0]
    return [bullet for bullet in re.split(r"\n(?=- )", section) if bullet.strip() not in before]


def name_pattern(*names):
    """Match one of the names, but not as a part of a longer one."""
    return re.compile(rf"(?<![\w:-])(?:{'|'.join(map(re.escape, names))})(?![\w-]|:\w)")


def passages(bullet, datasets):
    """Split a bullet that names several of the datasets into sentences, also at semicolons."""
    n_named = sum(bool(name_pattern(name).search(bullet)) for name in datasets)
    return re.split(r"(?<=[.;])\s+", bullet) if n_named > 1 else [bullet]


def is_named(passages, spec, method, lost=()):
    """Return whether a passage names dataset and method, or all methods and the code lengths of lost cells."""
    of_dataset = [text for text in passages if name_pattern(spec, spec.partition(":")[0]).search(text)]
    of_all = [text for text in of_dataset if lost and all(re.search(rf"\b{n_bits}\b", text) for n_bits in lost)]
    return any(map(name_pattern(method).search, of_dataset)) or any(map(name_pattern("all methods").search, of_all))


def main():
    base = sys.argv[1] if len(sys.argv) > 1 else last_main()
    if not base:
        return ""
    before = git("show", f"{base}:CHANGELOG.md").decode()
    bullets = new_bullets((ROOT / "CHANGELOG.md").read_text(), before)
    found = falls(*shown_before_and_now(base))
    datasets = {spec.partition(":")[0] for spec, _ in found}
    texts = [text for bullet in bullets for text in passages(bullet, datasets)]
    unnamed = [fall.text for place, fall in found.items() if not is_named(texts, *place, fall.lost)]
    return "\n".join([*unnamed, f"The changelog names none of these falls since {base}."]) if unnamed else ""


if __name__ == "__main__":
    os.chdir(ROOT)
    sys.exit(main() or 0)  # a text is an error

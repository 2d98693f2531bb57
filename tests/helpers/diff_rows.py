"""Rows, commits and kept scores for the tests of `hashbench diff`."""

import os
import shutil
import subprocess
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest

from hashbench.reports.revisions import Side
from hashbench.store import score_cache
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import Provenance, settings_name
from hashbench.store.result_rows import Row
from hashbench.store.results import FILE_COLUMNS, Record, csv_text, record_path, record_text

GIT_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{role}_NAME": "tester" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "tester@example.org" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_DATE": "2020-01-01T00:00:00Z" for role in ("AUTHOR", "COMMITTER")},
}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")


FIELDS = {  # of a made-up row, without its numbers
    "dataset": "digits",
    "features": "pixels",
    "method": "lsh",
    "params": "{}",
    "n_bits": 16,
    "seed": 0,
    "metric": "AP",
    "n_queries": 200,
    "n_undefined": 0,
    "dataset_fingerprint": "aaaa",
    "method_version": 1,
}


def row(value=0.5, low=0.4, high=0.6, tie_sd=0.005, **changes):
    numbers = {"value": value, "tie_sd": tie_sd, "low": low, "high": high}
    texts = {name: "" if number is None else f"{number:.6f}" for name, number in numbers.items()}
    return Row(**(FIELDS | texts | changes))


def side(*rows, name="side"):
    return Side(name, {row.key: row for row in rows})


def write(path, *rows):
    """Write rows, of any methods, and their settings."""
    path.parent.mkdir(parents=True, exist_ok=True)
    settings = {settings_name(row.params): row.params for row in rows}
    record_path(path).write_text(record_text(Record(settings, {}, {})))
    path.write_text(csv_text(FILE_COLUMNS, (row._replace(params=settings_name(row.params)) for row in rows)))
    return path


def write_sides(old, new):
    """Write rows into old.csv and new.csv in this folder, and return the two paths."""
    return write(Path("old.csv"), *old), write(Path("new.csv"), *new)


def changes(content):
    """Return the changed rows of a diff's JSON."""
    return [row for row in content["rows"] if row["status"] == "changed"]


def refusal(result):
    """Return the one sentence with which a command refused its arguments."""
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    return result.stderr


def git(*arguments, cwd=None):
    process = subprocess.run(["git", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=True)
    return process.stdout.strip()


def commit(*rows, file="results/digits.csv"):
    """Commit these rows as all results; return the first ten digits of the commit."""
    write(Path(file), *rows)
    git("add", ".")
    git("commit", "--quiet", "--allow-empty", "--message", "results")
    return git("rev-parse", "HEAD")[:10]


def keep(values, **changes):
    """Cache scores of queries as `hashbench run` does, and return the row it would write."""
    rng = np.random.default_rng(crc32(values.tobytes()))
    mean, n_undefined = np.nanmean(values), int(np.isnan(values).sum())
    scored = row(mean, mean - 0.1, mean + 0.1, n_queries=len(values), n_undefined=n_undefined, **changes)
    query, database = rng.integers(0, 256, (2, len(values), 2), dtype=np.uint8)
    provenance = Provenance(*scored[:6], scored.dataset_fingerprint, scored.method_version)
    codes = Codes(query=query, database=database, made=provenance)
    score_cache.write(codes, {scored.metric: np.stack([values, values - 0.1, values + 0.1])})
    return scored

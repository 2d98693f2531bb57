"""What made codes: the commit of the source tree and whether it is as committed, processor, threads, device, day."""

import json
import os
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from helpers.artifacts import record_in
from helpers.diff_rows import git, needs_git
from helpers.paths import ROOT
from helpers.processes import printed_by

from hashbench.pipeline import steps
from hashbench.pipeline.grid import grid
from hashbench.pipeline.steps import codes_of, codes_path, encode
from hashbench.store import hdf5, origin
from hashbench.store.origin import JobRecord, origin_here
from hashbench.store.provenance import Provenance

HERE = {
    **{"commit": "0123456789", "hashbench": "0.1.0", "processor": "x86_64 GenuineIntel avx2"},
    **{"threads": 2, "device": "cpu", "date": "2026-01-31"},
}


def test_codes_carry_where_they_come_from_and_keep_it_when_they_are_found_again(digits, data, monkeypatch):
    (job,) = grid(["digits"], ["lsh"], [8], [0], {})
    before = datetime.now(UTC).date().isoformat()
    with codes_of(digits, job) as (codes, _):
        first, record = codes.origin, codes.job_record
    assert before <= first["date"] <= datetime.now(UTC).date().isoformat()
    assert (first["device"], first["threads"] >= 1) == ("cpu", True)
    assert re.fullmatch(r"\S+ \S+ \S+", first["processor"])
    assert record.key == ("digits", "pixels", "44136fa3", 8, 0, digits.fingerprint)
    assert record.libraries.split() == sorted(record.libraries.split())
    assert {pair.split("=")[0] for pair in record.libraries.split()} == {*json.loads(job.provenance(digits).libraries)}
    monkeypatch.setattr(steps, "origin_here", lambda *_: {**first, "date": "2000-01-01"})
    with codes_of(digits, job) as (codes, words):
        assert (codes.origin, words) == (first, "")
    assert encode(digits, job).origin["date"] == "2000-01-01"


def test_codes_of_unknown_origin_have_no_record_and_damaged_ones_are_told(digits, data):
    (job,) = grid(["digits"], ["lsh"], [8], [0], {})
    codes = encode(digits, job)
    path = codes_path(digits, job)
    hdf5.write_codes(replace(codes, origin=None), path)
    with hdf5.open_codes(path) as stored:
        assert (stored.origin, stored.job_record) == (None, None)
    with codes_of(digits, job) as (_, words):
        assert words == ""
    record_in(path, origin={"commit": 1})
    with codes_of(digits, job) as (_, words):
        assert words == "re-encoded damaged"


def test_no_host_and_no_person_is_told():
    text = str(origin_here())
    names = {os.uname().nodename, os.environ.get("USER", ""), str(ROOT)} - {""}
    assert not [name for name in names if name in text]


def test_what_differs_is_said_in_words():
    codes = Provenance("digits", "pixels", "itq", "{}", 8, 0, "0" * 16, 1, '{"numpy": "2.4"}')
    made = JobRecord.of(codes, HERE, 1.234)
    assert made.seconds == "1.23"
    amd = "x86_64 AuthenticAMD avx512"
    other = made._replace(processor=amd, libraries="numpy=2.5 scipy=1.17", threads=1, commit="")
    assert made.differences(other) == [
        "made on another processor class (x86_64 GenuineIntel avx2, here x86_64 AuthenticAMD avx512)",
        "numpy 2.4 (here 2.5)",
        "scipy none (here 1.17)",
        "threads 2 (here 1)",
        "hashbench 0.1.0 at 0123456789 (here 0.1.0)",
    ]
    assert made.differences(made._replace(date="2027-01-01", seconds="9.00")) == []


@needs_git
def test_a_commit_is_marked_where_a_file_of_the_package_differs(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "hashbench", tree / "hashbench", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("methods", "datasets"):
        shutil.copytree(ROOT / name, tree / "hashbench" / name, ignore=shutil.ignore_patterns("__pycache__"))
    ask = "from hashbench.store.origin import origin_here; print(origin_here()['commit'])"
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1", "GIT_DIR": "/nowhere"}

    def commit():
        return printed_by(ask, cwd=tmp_path, env=environment).strip()

    git("init", "-q", cwd=tree)
    assert commit() == ""  # installed into a folder of another repository
    git("add", ".", cwd=tree)
    git("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all", cwd=tree)
    committed = git("rev-parse", "HEAD", cwd=tree)[:10]
    assert commit() == committed
    (tree / "notes.txt").touch()
    assert commit() == committed
    with (tree / "hashbench" / "methods" / "itq.py").open("a") as file:
        file.write("\n")
    assert commit() == f"{committed}+"


@pytest.mark.parametrize(
    ("simd", "level"),
    [
        ({"baseline": ["SSE42"], "found": ["AVX", "AVX2", "AVX512F"], "not found": ["AVX512_KNL"]}, "avx512"),
        ({"baseline": ["SSE42"], "found": ["AVX", "AVX2"], "not found": ["AVX512F"]}, "avx2"),
        ({"baseline": ["X86_V2"], "found": ["X86_V3", "X86_V4"]}, "avx512"),
        ({"baseline": ["X86_V2"], "not found": ["X86_V3"]}, "sse4.2"),
        ({"baseline": ["NEON", "ASIMD"]}, "neon"),
        (None, "unknown"),
    ],
)
def test_processors_are_classed_by_what_numpy_finds(monkeypatch, simd, level):
    monkeypatch.setattr(np, "show_config", lambda mode: {} if simd is None else {"SIMD Extensions": simd})
    assert origin.processor_class.__wrapped__().endswith(f" {level}")

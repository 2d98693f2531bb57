"""What made codes: the commit of the source tree and whether it is as committed, processor, threads, device, day."""

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from helpers.artifacts import record_in
from helpers.diff_rows import git, needs_git
from helpers.paths import ROOT

from hashbench.pipeline import steps
from hashbench.pipeline.grid import grid
from hashbench.pipeline.steps import codes_of, codes_path, encode
from hashbench.store import hdf5, origin
from hashbench.store.origin import Origin, origin_here
from hashbench.store.provenance import Provenance

HERE = {
    **{"commit": "0123456789", "hashbench": "0.1.0", "processor": "x86_64 GenuineIntel avx2"},
    **{"threads": 2, "device": "cpu", "date": "2026-01-31"},
}


def test_codes_carry_where_they_come_from_and_keep_it_when_they_are_found_again(digits, data, monkeypatch):
    (job,) = grid(["digits"], ["lsh"], [8], [0], {})
    before = datetime.now(UTC).date().isoformat()
    with codes_of(digits, job) as (codes, _):
        first, record = codes.origin, codes.job_origin
    assert before <= first["date"] <= datetime.now(UTC).date().isoformat()
    assert (first["device"], first["threads"] >= 1) == ("cpu", True)
    assert re.fullmatch(r"\S+ \S+ \S+", first["processor"])
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
        assert (stored.origin, stored.job_origin) == (None, None)
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
    codes = Provenance("digits", "pixels", "itq", "{}", 8, 0, "0" * 16, 1, '{"scipy": "1.17", "numpy": "2.4"}')
    made = Origin.of(codes, HERE, 1.234)
    assert (made.seconds, made.libraries) == (1.23, "numpy=2.4 scipy=1.17")
    other = made._replace(processor="x86_64 AuthenticAMD avx512", libraries="numpy=2.5", threads=1, commit="")
    assert made.differences(other) == [
        "commit 0123456789 (here none)",
        "libraries numpy=2.4 scipy=1.17 (here numpy=2.5)",
        "processor x86_64 GenuineIntel avx2 (here x86_64 AuthenticAMD avx512)",
        "threads 2 (here 1)",
    ]
    assert made.differences(made._replace(date="2027-01-01", seconds=9.0, trials=3)) == []


@needs_git
def test_a_commit_is_marked_where_a_file_of_the_package_differs(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_DIR", "/nowhere")  # which names another repository
    commit, tree = origin.commit_of.__wrapped__, tmp_path / "tree"
    module = tree / "hashbench" / "__init__.py"
    module.parent.mkdir(parents=True)
    module.touch()

    def git_here(*words):
        with monkeypatch.context() as patch:
            patch.delenv("GIT_DIR")
            return git(*words, cwd=tree)

    git_here("init", "-q")
    assert commit(tree) == ""  # installed into a folder of another repository
    git_here("add", ".")
    git_here("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "all")
    committed = git_here("rev-parse", "HEAD")[:10]
    (tree / "notes.txt").touch()
    assert commit(tree) == committed
    module.write_text("\n")
    assert commit(tree) == f"{committed}+"
    assert origin_here()["commit"] == origin.commit_of(ROOT)


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

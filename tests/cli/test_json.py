"""The JSON of all commands: how each object begins, and that ``docs/reference/json.md`` has all keys and no others."""

import json
import re
import shutil
from pathlib import Path

import click
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from helpers.documents import blocks
from helpers.paths import ROOT

from hashbench import __version__
from hashbench.cli.main import cli
from hashbench.reports.formatting import JSON_SCHEMA

NAME = "docs/reference/json.md"
PAGE = (ROOT / NAME).read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.DOTALL | re.MULTILINE))
CODES = ["--query-codes", "q.npy", "--database-codes", "d.npy"]
LABELS = ["--query-labels", "ql.npy", "--database-labels", "dl.npy"]
EACH = ["--query-codes", "q-{bits}-{seed}.npy", "--database-codes", "d-{bits}-{seed}.npy"]
GRID = [
    "--method",
    "itq",
    "--method",
    "lsh",
    "--method",
    "pcah",
    "--bits",
    8,
    "--metric",
    "AP",
    "--seed",
    0,
    "--seed",
    1,
]
CALLS = {
    "evaluate": [[*CODES, *LABELS, "--metric", "AP", "--interval"]],
    "save": [
        ["m", *CODES, *LABELS, "--dataset", "mine", "--metric", "AP"],
        ["m", *EACH, *LABELS, "--dataset", "mine", "--metric", "AP"],
    ],
    "candidates": [[*CODES, "--affinity", "a.npy", "--metric", "R@2", "--wanted-recall", 0.5]],
    "run": [GRID],
    "thresholds": [
        [
            *CODES,
            *LABELS,
            "--background",
            "d.npy",
            "--precision",
            0.4,
            "--fpr",
            1e-9,
            "--held-out",
            "--corpus-size",
            1000,
        ]
    ],
    "explain": [[*CODES, *LABELS, "--metric", "AP"], [*CODES, *LABELS, "--metric", "AP", "--value", "0.987"]],
    "compare": [
        ["itq", "lsh", "pcah"],
        ["other", *CODES, *LABELS, "--metric", "AP"],
        ["one.run", "other.run", "--qrels", "qrels.txt", "--metric", "AP"],
    ],
    "diff": [["old", "results"]],
    "list": [[], ["methods"], ["datasets"], ["metrics"], ["scripts"], ["missing"]],
    "info": [["itq"], ["hashnet"], ["AP@k"], ["digits"], ["labelme"], ["codes.h5"], ["model.model"]],
}
NAMES = {"AP", "R@2", "best F1", "precision 0.4", "false positive rate 1e-09", "not comparable"}  # keys that are names
OF_NAMES = {"params", "libraries", "about", "rule_params", "parameters", "presets", "counts"}  # whose keys are names
NEVER_HERE = {"held_out"}  # scores by which a method chose its epoch, which none of the jobs above does


def json_commands(group=cli):
    """Yield the names of the commands whose option --format has json."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from json_commands(command)
        elif any("json" in getattr(option.type, "choices", ()) for option in command.params):
            yield name


def keys_in(content):
    """Return all keys that are not names."""
    if isinstance(content, list):
        return {key for part in content for key in keys_in(part)}
    if not isinstance(content, dict):
        return set()
    inner = {key for name, part in content.items() if name not in OF_NAMES for key in keys_in(part)}
    return inner | {*content} - NAMES


@pytest.fixture(scope="module")
def made(prepared, tmp_path_factory):
    """Codes, labels, levels, runs, results, and earlier results in which a method's values are others, and the data."""
    folder = tmp_path_factory.mktemp("made") / "here"
    shutil.copytree(prepared, folder.parent / "data")
    folder.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder.parent / "data"))
        patch.chdir(folder)
        _make_files(folder)
    return folder


@pytest.fixture
def files(made, data, empty_folder):
    """Copy what was made to the working directory and the data folder."""
    shutil.copytree(made.parent / "data", data, dirs_exist_ok=True)
    shutil.copytree(made, empty_folder, dirs_exist_ok=True)


def _make_files(folder):
    rng = np.random.default_rng(0)
    codes = rng.random((40, 16)) > 0.5
    arrays = {"q": codes[:10], "d": codes[10:], "ql": np.arange(10) % 4, "dl": np.arange(30) % 4}
    arrays["a"] = np.eye(30, dtype=int)[:10] + np.eye(30, k=1, dtype=int)[:10]
    for n_bits in (8, 12):
        arrays |= {f"q-{n_bits}-0": codes[:10, :n_bits], f"d-{n_bits}-0": codes[10:, :n_bits]}
    (folder / "other").mkdir()
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
        np.save(f"other/{name}.npy", array[:, ::-1] if array.ndim == 2 else array)
    for name, scores in (("one", (3, 2, 1)), ("other", (1, 2, 2))):
        lines = [f"q{i} Q0 d{j} 0 {scores[(i + j) % 3]} {name}" for i in range(4) for j in range(3)]
        Path(f"{name}.run").write_text("\n".join(lines))
    Path("qrels.txt").write_text("\n".join(f"q{i} 0 d0 1" for i in range(4)))
    encode = ["encode", "--method", "itq", "--bits", "8", "--keep-model"]
    written = CliRunner().invoke(cli, encode, catch_exceptions=False).stdout.split()
    for path, name in zip(written, ("codes.h5", "model.model"), strict=True):
        shutil.copy(path, name)
    assert CliRunner().invoke(cli, ["run", *map(str, GRID)], catch_exceptions=False).exit_code == 0
    shutil.copytree("results", "old")
    rows = pd.read_csv("old/digits/itq.csv", dtype=str)
    rows.assign(value=rows["low"]).to_csv("old/digits/itq.csv", index=False, lineterminator="\n")


def test_the_page_has_a_section_for_every_command_that_prints_json():
    assert SECTIONS.keys() == CALLS.keys() == {*json_commands()}


@pytest.mark.parametrize("command", CALLS)
@pytest.mark.usefixtures("files")
def test_json_begins_with_its_version_and_has_the_keys_of_the_page(hashbench, command):
    keys = set()
    for arguments in CALLS[command]:
        done = hashbench(command, *arguments, "--format", "json")
        content = json.loads(done.stdout, parse_constant=pytest.fail)
        for part in content if isinstance(content, list) else [content]:
            assert next(iter(part)) == "hashbench"
            assert part.pop("hashbench") == {"version": __version__, "schema_version": JSON_SCHEMA}
            keys |= keys_in(part)
    section = SECTIONS[command]
    linked = section + "".join(SECTIONS[name] for name in re.findall(r"\(#(\w+)\)", section))
    assert keys - {*re.findall(r"`(\w+)`", linked)} == set()
    listed = " ".join(re.findall(r"^- (`\w+`(?:,\s+`\w+`)*)", section, flags=re.MULTILINE))
    assert {*re.findall(r"`(\w+)`", listed)} - keys - NEVER_HERE == set()


def test_the_example_of_the_page_has_the_schema_of_today():
    (example,) = blocks(NAME, "json")
    assert json.loads(example)["hashbench"]["schema_version"] == JSON_SCHEMA

"""`hashbench candidates`: the numbers of Python in each form, from files, datasets and shards."""

import csv
import json
import re
from io import StringIO

import numpy as np
import pytest

import hashbench as package

WANTED = [0.5, 0.9]


@pytest.fixture
def files(empty_folder):
    rng = np.random.default_rng(0)
    arrays = {"q": rng.random((20, 9)) > 0.5, "d": rng.random((90, 9)) > 0.5}
    labels = {"ql": np.arange(20), "dl": np.arange(90) // 3}  # three relevant items of each query
    for name, array in {**arrays, **labels}.items():
        np.save(f"{name}.npy", array)
    for number, rows in enumerate(np.array_split(np.arange(90), 4)):
        np.save(f"part-{number}.npy", arrays["d"][rows])
    return package.Problem.of_codes(arrays["q"], arrays["d"], (labels["ql"], labels["dl"])).candidates("R@3", WANTED)


def asked(database="d.npy"):
    codes = ["--query-codes", "q.npy", "--database-codes", database]
    wanted = [word for recall in WANTED for word in ("--wanted-recall", recall)]
    return ["candidates", *codes, "--query-labels", "ql.npy", "--database-labels", "dl.npy", *wanted, "--metric", "R@3"]


def test_the_table_has_a_line_for_each_recall(hashbench, files):
    done = hashbench(*asked())
    assert done.exit_code == 0, done.stderr
    lines = re.findall(r"^ (0\.\d)" + r" +(\d+)" * 5 + r" +([\d.]+)" * 4 + "$", done.stdout, re.M)
    for line, count in zip(lines, files, strict=True):
        wanted, number, *others = line[:6]
        ends = count.n_candidates_low, count.n_candidates_high
        assert [float(part) for part in (wanted, number, *others)] == [*count[:2], *ends, count.fewest, count.most]
        recall = count.recall
        values = [f"{recall.mean:.4f}", f"{recall.tie_sd:.5f}", f"{recall.low:.4f}", f"{recall.high:.4f}"]
        assert [*line[6:]] == values
    assert "\n20 queries; candidates: the smallest number" in done.stdout


@pytest.mark.parametrize("database", ["d.npy", "part-*.npy"])
def test_json_and_csv_have_the_numbers_of_python_from_one_file_and_from_shards(hashbench, files, database):
    rows = json.loads(hashbench(*asked(database), "--format", "json").stdout)
    for row, count in zip(rows, files, strict=True):
        assert (row["wanted"], row["n_candidates"], row["fewest"], row["most"]) == count[:4]
        assert row["recall"]["mean"] == pytest.approx(count.recall.mean, abs=1e-12)
    sheet = list(csv.DictReader(StringIO(hashbench(*asked(database), "--format", "csv").stdout)))
    assert [int(row["n_candidates"]) for row in sheet] == [count.n_candidates for count in files]
    assert [float(row["mean"]) for row in sheet] == pytest.approx([count.recall.mean for count in files], abs=1e-6)

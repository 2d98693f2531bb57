"""What the page on grids says, letter by letter."""

import re
from collections import Counter

import numpy as np
import pytest
from helpers.documents import blocks, commands
from helpers.paths import ROOT

from hashbench.store.results import read_rows

PAGE = "docs/grids.md"


@pytest.mark.usefixtures("digits_data")
def test_the_commands_of_the_page_do_what_it_says(hashbench, empty_folder):
    study, _ = blocks(PAGE, "toml")
    (empty_folder / "study.toml").write_text(study)
    done = [hashbench(*command) for command in commands(PAGE)]
    assert [result.exit_code for result in done] == [0] * 4
    swept, own, whole, part = (result.stdout.splitlines() for result in done)
    assert [line.split()[1:3] for line in swept[2:5]] == [["itq", "n_iter=5"], ["itq", "n_iter=20"], ["itq", "16"]]
    assert [line.split()[1:4] for line in own[2:-3]] == [
        ["lsh", "16", "0"],
        ["sklsh", "gamma=0.5", "n_neighbors=20"],
        ["sklsh", "gamma=2.0", "n_neighbors=20"],
    ]
    assert len(whole[2:-3]) == 2 * 5
    assert [line.split()[1:5] for line in part[2:-3]] == [["itq", f"n_iter={n}", "16", "0"] for n in (10, 20)]
    rows = read_rows(empty_folder / "results", "digits")
    assert Counter(row.method for row in rows if row.metric == "AP") == {"itq": 6, "lsh": 2, "sklsh": 5}


def test_the_grid_of_own_data_on_the_page_runs(hashbench, empty_folder):
    labels = np.arange(2000) % 4
    items = labels[:, None] + np.random.default_rng(0).normal(size=(2000, 32))
    np.savez("features.npz", items=items.astype(np.float32))
    np.save("labels.npy", labels)
    (empty_folder / "mine.toml").write_text(blocks(PAGE, "toml")[1])
    done = hashbench("run", "--grid", "mine.toml", "--metric", "P@10")
    assert done.exit_code == 0, done.stderr
    assert {(row.method, row.n_bits, row.n_queries) for row in read_rows(empty_folder / "results", "mine")} == {
        (method, n_bits, 500) for method in ("lsh", "itq") for n_bits in (16, 32)
    }


def test_every_command_of_the_page_is_run():
    assert len(commands(PAGE)) == len(re.findall(r"^hashbench ", (ROOT / PAGE).read_text(), re.MULTILINE)) == 4

"""The page on binary quantisation, letter by letter, and what it claims."""

import json
import re
from collections import defaultdict

import numpy as np
import pytest
from helpers.documents import blocks, commands
from helpers.paths import ROOT, rows_of
from scipy.spatial.distance import cdist

PAGE = "docs/binary-quantisation.md"
COMMANDS = commands(PAGE)


@pytest.fixture
def page_files(empty_folder):
    """Write the page's files into the working directory."""
    for block in blocks(PAGE, "python"):
        exec(block, {"np": np})


@pytest.mark.usefixtures("page_files")
def test_the_commands_run_and_recall_is_that_of_exact_re_ranking(hashbench):
    scores = {}
    for command in COMMANDS:
        done = hashbench(*command, *([] if command[0] == "prepare" else ["--format", "json"]))
        assert done.exit_code == 0, done.stderr
        scores[" ".join(command)] = done.stdout
    prepared, plain, reranked, *_, asymmetric = scores.values()
    assert "level 1 for the 10 nearest by cosine distance" in prepared
    (plain,), (reranked,) = (
        [
            {name: [parts[key] for key in ("mean", "low", "high")] for name, parts in job["scores"].items()}
            for job in json.loads(text)
        ]
        for text in (plain, reranked)
    )
    assert plain["R@100"] == pytest.approx(reranked["R@10:reranked=100"], abs=1e-12)

    queries, items = (np.load(f"{name}.npy").astype(float) for name in ("queries", "database"))
    true, hamming = cdist(queries, items, "cosine"), cdist(queries > 0, items > 0, "cityblock")
    neighbours, rng, recalls = true.argsort(axis=1)[:, :10], np.random.default_rng(0), []
    for _ in range(20):  # orders of ties
        candidates = np.argsort(hamming + rng.random(hamming.shape) / 2, axis=1)[:, :100]
        order = np.take_along_axis(true, candidates, axis=1).argsort(axis=1)[:, :10]
        first = np.take_along_axis(candidates, order, axis=1)
        recalls.append((first[:, :, None] == neighbours[:, None]).any(axis=2).mean())
    mean, low, high = plain["R@100"]
    assert low <= min(recalls) <= max(recalls) <= high
    assert np.mean(recalls) == pytest.approx(mean, abs=0.001)

    first = (queries @ np.where(items > 0, 1, -1).T).argsort(axis=1)[:, -10:]
    recall = (first[:, :, None] == neighbours[:, None]).any(axis=2).mean()
    assert json.loads(asymmetric)["R@10"]["mean"] == pytest.approx(recall, abs=1e-12)


@pytest.mark.usefixtures("page_files")
def test_the_page_shows_what_the_first_run_prints(hashbench):
    assert hashbench(*COMMANDS[0]).exit_code == 0
    (shown,) = blocks(PAGE, "text")
    assert hashbench(*COMMANDS[1]).stdout.strip("\n") == shown.strip("\n")


def test_tables_are_those_of_the_rows_that_the_script_wrote():
    rows = rows_of("benchmarks/binary_quantisation.csv")
    for dataset in ("squeezenet", "clusters"):
        table = re.search(rf"<!-- {dataset} -->\n(.*?)\n<!-- end -->", (ROOT / PAGE).read_text(), re.DOTALL)[1]
        shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
        cells = defaultdict(dict)
        for row in rows:
            if row["dataset"] == dataset:
                cells[row["method"], row["n_bits"]][row["ranking"], row["n_candidates"]] = row
        assert {(method, bits) for method, bits, *_ in shown} == cells.keys()
        columns = [("hamming", n) for n in ("10", "50", "100", "500")] + [("faiss", "100"), ("asymmetric", "100")]
        for method, bits, *recalls in shown:
            by_column = cells[method, bits]
            assert recalls == [f"{float(by_column[column]['recall']):.3f}" for column in columns]
            hamming, peer = by_column["hamming", "100"], float(by_column["faiss", "100"]["recall"])
            assert float(hamming["low"]) - 1e-4 <= peer <= float(hamming["high"]) + 1e-4

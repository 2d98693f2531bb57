"""The page on binary quantisation, letter by letter, and what it claims."""

import json
import re
from collections import defaultdict
from itertools import product
from statistics import fmean

import numpy as np
import pytest
from helpers.documents import blocks, commands
from helpers.paths import ROOT, rows_of
from helpers.result_files import rows_in
from scipy.spatial.distance import cdist
from scipy.stats import ttest_ind

from hashbench.reports.tables import make_tables
from hashbench.scoring.comparison import ALPHA, holm

PAGE = "docs/binary-quantisation.md"
COMMANDS = commands(PAGE)
FEATURES = {"squeezenet": 512, "glosses": 384, "clusters": 128}


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
    prepared, plain, reranked, counts, *_, asymmetric, _, truncated = scores.values()
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
    for _ in range(6):  # orders of ties
        candidates = np.argsort(hamming + rng.random(hamming.shape) / 2, axis=1)[:, :100]
        order = np.take_along_axis(true, candidates, axis=1).argsort(axis=1)[:, :10]
        first = np.take_along_axis(candidates, order, axis=1)
        recalls.append((first[:, :, None] == neighbours[:, None]).any(axis=2).mean())
    nearest = np.take_along_axis(hamming, neighbours, axis=1)[:, :, None]
    n_before, n_tied = (compare(hamming[:, None], nearest).sum(axis=2) for compare in (np.less, np.equal))
    for count in json.loads(counts):  # one fewer does not suffice
        fewer, enough = (np.clip((count["n_candidates"] - less - n_before) / n_tied, 0, 1).mean() for less in (1, 0))
        assert fewer < count["wanted"] <= enough == pytest.approx(count["recall"]["mean"])
    mean, low, high = plain["R@100"]
    assert low <= min(recalls) <= max(recalls) <= high
    assert np.mean(recalls) == pytest.approx(mean, abs=0.002)

    first = (queries @ np.where(items > 0, 1, -1).T).argsort(axis=1)[:, -10:]
    recall = (first[:, :, None] == neighbours[:, None]).any(axis=2).mean()
    assert json.loads(asymmetric)["R@10"]["mean"] == pytest.approx(recall, abs=1e-12)
    assert json.loads(truncated)[0]["scores"]["R@100"]["mean"] < plain["R@100"][0]


@pytest.mark.usefixtures("page_files")
def test_the_page_has_the_numbers_that_its_commands_print(hashbench):
    assert hashbench(*COMMANDS[0]).exit_code == 0
    (run,), counts = (json.loads(hashbench(*COMMANDS[n], "--format", "json").stdout) for n in (1, 3))
    text = " ".join((ROOT / PAGE).read_text().split())
    recalls = [run["scores"][name]["mean"] for name in ("R@10", "R@100")]
    assert "`R@10` is {:.2f}, and `R@100` is {:.2f}".format(*recalls) in text
    keys = ("n_candidates", "wanted", "n_candidates_low", "n_candidates_high")
    numbers = [count[key] for count in counts for key in keys]
    words = (
        "{} candidates reach a recall of {} (95 % interval for other queries: {} to {}), "
        "and {} candidates reach {} ({} to {})"
    )
    assert words.format(*numbers) in text
    printed = hashbench(*COMMANDS[3]).stdout
    assert [line.split() for line in printed.splitlines()[:1]] == [
        ["wanted", "R@10", "candidates", "from", "to", "fewest", "most", "recall", "tie_sd", "low", "high"]
    ]
    keys = ("wanted", "n_candidates", "n_candidates_low", "n_candidates_high", "fewest", "most")
    shown = [[str(count[key]) for key in keys] + [f"{count['recall']['mean']:.4f}"] for count in counts]
    assert [line.split()[:7] for line in printed.splitlines()[2:4]] == shown
    for count in counts:
        assert count["fewest"] < count["n_candidates"] < count["most"]
        assert count["n_candidates_low"] < count["n_candidates"] < count["n_candidates_high"]


def table_of(name):
    """Return the cells of a table of the page."""
    table = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- end -->", (ROOT / PAGE).read_text(), re.DOTALL)[1]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


@pytest.fixture(scope="module")
def measured():
    """Return the rows of the script, by dataset, method, queries, bytes and candidates."""
    rows = rows_of("benchmarks/binary_quantisation.csv")
    keys = [(row["dataset"], row["method"], row["query"], int(row["bytes"]), int(row["n_candidates"])) for row in rows]
    assert len(set(keys)) == len(keys)
    return dict(zip(keys, rows, strict=True))


def test_tables_are_those_of_the_rows_that_the_script_wrote(measured):
    columns = [(n_bytes, n) for n in (10, 100) for n_bytes in (8, 32)]
    shown = {key for key in measured if key[3] in (16, 64) or (key[0] == "clusters" and key[3] in (8, 32))}  # figure
    for dataset in ("squeezenet", "glosses"):
        for method, query, *recalls in table_of(dataset):
            keys = [(dataset, method, query, *column) for column in columns]
            assert recalls == [f"{float(measured[key]['recall']):.3f}" if key in measured else "" for key in keys]
            shown |= set(keys) & measured.keys()
    for method, query, n_bytes, *recalls in table_of("whole"):
        of_d = {"d": "d * 1", "4 d": "4 * d"}.get(n_bytes, n_bytes)
        keys = [(name, method, query, int(eval(of_d, {"d": d})), n) for n in (10, 100) for name, d in FEATURES.items()]
        assert recalls == [f"{float(measured[key]['recall']):.3f}" for key in keys]
        shown |= set(keys)
    assert shown == measured.keys()


def test_recall_of_faiss_lies_in_the_range_over_orders_of_ties(measured):
    for (_, _, query, *_), row in measured.items():
        low, mean, high = (float(row[name]) for name in ("low", "recall", "high"))
        assert low <= mean <= high
        assert query == "bits" or high - low < 0.02  # PQ gives few items the same code
        if row["faiss"]:
            assert low - 1e-4 <= float(row["faiss"]) <= high + 1e-4
        if row["method"] == "float32":
            assert low == high == 1


def test_what_to_choose_follows_from_the_rows(measured):
    recall = {key: float(row["recall"]) for key, row in measured.items()}

    def ends(methods, n_candidates, n_bytes):
        found = [
            recall[name, method, "floats", n_bytes(d), n_candidates]
            for method in methods
            for name, d in FEATURES.items()
        ]
        return min(found), max(found)

    at_32 = [*ends(["PQ", "OPQ"], 100, lambda d: 32), *ends(["RaBitQ"], 100, lambda d: min(d // 8 + 8, 32))]
    at_8 = ends(["OPQ"], 100, lambda d: 8)
    directions = [
        recall[name, "itq", query, 32, 100] for query in ("floats", "bits") for name in ("squeezenet", "glosses")
    ]
    by_sign = [recall[name, "sign", "bits", FEATURES[name] // 8, 100] for name in ("glosses", "squeezenet")]
    not_reranked = [
        *ends(["int8"], 10, lambda d: d),
        *ends(["RaBitQ, 4 bits"], 10, lambda d: d // 2 + 20),
        *ends(["OPQ"], 10, lambda d: 64),
    ]
    numbers = [min(at_32), max(at_32), *at_8, *directions, *by_sign, *not_reranked]
    text = (ROOT / PAGE).read_text().partition("### What to choose")[2].partition("### Results")[0]
    assert re.findall(r"[01]\.\d{3}", text) == [f"{number:.3f}" for number in numbers]


# ---------------------------------------------------------------- embeddings of text


@pytest.fixture(scope="module")
def seeds_of_texts():
    """Return recall on wordnet-minilm, a value per seed, by label, bits and whether it is re-ranked."""
    values = defaultdict(list)
    for row in rows_in(ROOT / "results/wordnet-minilm"):
        if not row["metric"].startswith("R@10"):
            continue
        params = json.loads(row["params"])
        label = row["method"] + " rotate=True" * params.get("rotate", False)
        values[label, int(row["n_bits"]), row["metric"] == "R@10:reranked=100"].append(float(row["value"]))
    return values


@pytest.fixture(scope="module")
def of_texts(seeds_of_texts):
    """Return means over seeds likewise."""
    return {key: fmean(seeds) for key, seeds in seeds_of_texts.items()}


def test_what_is_said_of_text_embeddings_follows_from_the_rows(of_texts):
    beyond = [of_texts[name, n_bits, False] for name in ("sign rotate=True", "lsh") for n_bits in (512, 1024)]
    text = (ROOT / PAGE).read_text().partition("## More bits than dimensions")[2]
    assert re.findall(r"0\.\d{3}", text)[:4] == [f"{number:.3f}" for number in beyond]
    assert {max(n_bits for name, n_bits, _ in of_texts if name == stopped) for stopped in ("itq", "pca-rr")} == {381}
    others = {key[0] for key in of_texts} - {"itq"}
    for n_bits in (64, 128, 256):
        for is_reranked in (False, True):
            best = max(of_texts.get((name, n_bits, is_reranked), 0) for name in others)
            assert best < of_texts["itq", n_bits, is_reranked]


LEARNED = ("bihalf", "cibhash", "greedyhash-unsupervised")


def p_values(seeds, names, reference, n_bits, *, is_reranked):
    """Return p of Welch's tests of several methods against one, corrected by Holm's method."""
    sides = [seeds[name, n_bits, is_reranked] for name in (reference, *names)]
    assert {*map(len, sides)} == {3}
    return holm([float(ttest_ind(sides[0], side, equal_var=False).pvalue) for side in sides[1:]])


def test_no_learned_method_is_shown_to_find_more_neighbours_than_lsh_from_256_bits_on(of_texts, seeds_of_texts):
    text = " ".join((ROOT / PAGE).read_text().split())
    assert "From 256 bits on, no learned method is shown to find more neighbours than `lsh` (three seeds)." in text
    for n_bits, is_reranked in product((256, 384, 512, 1024), (False, True)):
        p = p_values(seeds_of_texts, LEARNED, "lsh", n_bits, is_reranked=is_reranked)
        is_above = [of_texts[name, n_bits, is_reranked] > of_texts["lsh", n_bits, is_reranked] for name in LEARNED]
        assert not (np.array(is_above) & (p < ALPHA)).any()


def test_a_rotation_finds_more_neighbours_than_lsh(of_texts, seeds_of_texts):
    shown = []
    for n_bits in (512, 1024):
        (p,) = p_values(seeds_of_texts, ["sign rotate=True"], "lsh", n_bits, is_reranked=False)
        assert of_texts["sign rotate=True", n_bits, False] > of_texts["lsh", n_bits, False]
        shown.append(f"{p:.3f}")
    assert "p = {} and {} over three seeds".format(*shown) in " ".join((ROOT / PAGE).read_text().split())


def test_only_itq_may_be_the_best_on_text_embeddings_up_to_256_bits(of_texts, tmp_path):
    text = " ".join((ROOT / PAGE).read_text().split())
    assert "of eight methods at 64, 128 and 256 bits, straight and re-ranked" in text
    (tmp_path / "wordnet-minilm").symlink_to(ROOT / "results" / "wordnet-minilm")
    cells = make_tables(tmp_path, ["embeddings"])["embeddings"].tested().cells
    for (_, n_bits), column in cells[cells["n_bits"] <= 256].groupby(["metric", "n_bits"]):
        assert (len(column), n_bits in (64, 128, 256)) == (8, True)
        assert [*column.loc[column["may_be_best"], "method"]] == ["itq"]
    for n_bits, name in product((64, 128, 256), ("pca-rr", "itq")):
        assert of_texts[name, n_bits, False] > of_texts["sign", n_bits, False]


def test_the_page_on_datasets_has_the_fingerprint_of_the_rows():
    text = (ROOT / "docs/datasets.md").read_text()
    assert {row["dataset_fingerprint"] for row in rows_in(ROOT / "results/wordnet-minilm")} == {
        *re.findall(r"The fingerprint is `(\w+)`", text)
    }

"""Numbers in the documents that come from results and benchmarks are those of the files they come from.

If a passage moves to another page, the constant that names its file moves with it.
"""

import json
import math
import re
import tomllib
from collections import Counter, defaultdict
from functools import cache
from itertools import combinations, product
from math import isnan
from statistics import fmean

import numpy as np
import pytest
from helpers.paths import DATA, ROOT, benchmark, rows_of
from helpers.result_files import rows_in

from hashbench import evaluate, registry
from hashbench.cards import method_card
from hashbench.pipeline.tuning import LEAD
from hashbench.reports.aggregate import mean_over_seeds
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection
from hashbench.reports.ties import EVERY_ORDER, OPEN, SHUFFLE, UNKNOWN, Score, compare
from hashbench.reports.view import make_view
from hashbench.scoring.comparison import ALPHA, holm, of_means, of_scores

TIES = ROOT / "docs/tutorials/tie-ranges.md"  # the table of what ties do to a score
SCRIPTS = ROOT / "README.md"  # the figure of scripts, and the sentence below it
SPREADS = ROOT / "docs/why-numbers-differ.md"
EMBEDDINGS = ROOT / "docs/binary-embeddings.md"
PROTOCOLS = ROOT / "docs/explanation/protocols.md"
SHUFFLES = ROOT / "docs/explanation/shuffle-deviation.md"
COMPARING = ROOT / "docs/explanation/comparing.md"
TRIALS = ROOT / "docs/explanation/numbers.md"
SPEED = ROOT / "docs/explanation/speed.md"
SCALE = ROOT / "docs/scale.md"
TABLES = ROOT / "docs/tables.md"
FINDINGS = ROOT / "docs/findings.md"
RESULTS = ROOT / "benchmarks/RESULTS.md"

NETWORK_BASE = {"n_bins": 8, "alpha": 0.5, "learning_rate": 0.1, "pretrained_multiplier": 0.1}  # of talr-ap
OF_NETWORK = {"image_size", "train_from", "weight_decay"}


def states(page, *parts):
    """Check that a page holds these numbers and words near each other, in this order; a number is never cut short."""
    text = re.sub(r"\]\(.*?\)|[*`\[]", "", " ".join(page.read_text().split()))
    exact = (rf"(?<![\d.]){re.escape(str(part))}(?![.,]?\d)" for part in parts)
    return re.search(".{0,70}?".join(exact), text) is not None


def holds(page, mark, table):
    """Check that a page holds a table between its marks."""
    return f"<!-- {mark} -->\n{table}\n<!-- end -->" in page.read_text()


def tables(title, page=RESULTS):
    """Return the tables below headings that start so: rows of cells, as texts, by the heads of their columns."""
    shown = []
    for section in re.split(r"^#+ ", page.read_text(), flags=re.MULTILINE)[1:]:
        if section.startswith(title):
            section = section.replace("|  |", "| |").replace("|  |", "| |")
            lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
            cells = [[cell.strip() for cell in line.split("|")] for line in lines]
            shown.append([dict(zip(cells[0], row, strict=True)) for row in cells[2:]])
    return shown


def at_12_bits(method):
    """Return the numbers of a method's rows for AP at 12 bits on digits, by seed."""
    return {
        row["seed"]: {key: float(row[key]) for key in ("value", "tie_sd", "low", "high")}
        for row in rows_of(f"results/digits/{method}.csv")
        if (row["method"], row["n_bits"], row["metric"]) == (method, "12", "AP")
    }


# ---------------------------------------------------------------- ties


def test_the_ranges_shown_are_those_of_the_committed_table():
    rows = rows_of("results/tables/table1-tie-range.csv")
    cells = {row["method"]: row for row in rows if (row["dataset"], row["n_bits"]) == ("digits", "12")}
    line = r"^\| (\S+) +\| ([\d.]+) \| \*\*([\d.]+)\*\* \| ([\d.]+) \| `([·─●]+)` \|$"
    shown = re.findall(line, TIES.read_text(), re.MULTILINE)
    assert len(shown) == 4
    for method, low, mean, high, bar in shown:
        values = [float(cells[method][key]) for key in ("low", "value", "high")]
        assert [low, mean, high] == [f"{value:.4f}" for value in values]
        first, dot, last = (round(len(bar) * value - 0.5) for value in values)
        assert abs(bar.index("●") - dot) <= 1
        assert abs(len(bar) - len(bar.lstrip("·")) - first) <= 1
        assert abs(len(bar.rstrip("·")) - 1 - last) <= 1
    constant = cells["constant"]
    assert states(TIES, f"{float(constant['low']):.2f}", f"{float(constant['high']):.2f}")


def test_what_is_said_of_lsh_and_pcah_is_true_of_their_rows():
    lsh, pcah = at_12_bits("lsh"), at_12_bits("pcah")["0"]
    near, far = lsh["0"], lsh["2"]
    assert states(TIES, "With seed 2", "lsh", f"{far['value']:.4f}", "pcah", f"{pcah['value']:.4f}", "overlap")
    assert states(TIES, "With seed 0", "lsh", f"{near['value']:.4f}")
    overlap = min(far["high"], pcah["high"]) - max(far["low"], pcah["low"])
    assert all(overlap > (row["high"] - row["low"]) / 2 for row in (far, pcah))
    assert [str(compare(Score(**row), Score(**pcah))) for row in (near, far)] == [OPEN, SHUFFLE]
    assert states(TIES, "overlap by more than half", "apart under a shuffle")
    assert states(TIES, "Not apart under a shuffle", f"{near['value']:.4f}")


# ---------------------------------------------------------------- scripts


@pytest.fixture(scope="module")
def script_rows():
    return rows_of("benchmarks/why_numbers_differ.csv")


@pytest.fixture(scope="module")
def why():
    return benchmark("why_numbers_differ")


def values(rows, codes, order, *, metric="AP@1000", scripts=None):
    cell = {"codes": codes, "order": order, "metric": metric}
    return {
        row["script"]: float(row["value"])
        for row in rows
        if cell.items() <= row.items() and (scripts is None or row["script"] in scripts)
    }


def test_counts_of_pairs_that_scripts_turn_are_those_of_the_rows():
    script_orders = benchmark("script_orders")
    spreads = script_orders.read()
    pairs = {
        (dataset, cell.metric, cell.n_bits, cell.database): cell
        for dataset in spreads
        for cell in benchmark("spreads").pairs(spreads[dataset])
    }
    digits = [pairs["digits", "AP", 12, order] for order in ("by-class", "shuffled")]
    by_class, shuffled = (len(cell.turned) for cell in digits)
    assert states(SPREADS, by_class, digits[0].n_pairs, "12 bits", "sorted by class", shuffled, "shuffled")
    cifar = [pairs["cifar10-s1:squeezenet", "AP@1000", 12, order] for order in ("by-class", "given", "shuffled")]
    assert [(cell.n_pairs, cell.meet) for cell in cifar] == [(28, 28)] * 3
    assert [len(cell.turned) for cell in cifar] == [7, 7, 0]
    assert states(SPREADS, "AP@1000, 12 bits", f"7 of {cifar[0].n_pairs} pairs if it is sorted", "0 if it is shuffled")
    assert {spread.database for spread in spreads["digits"]} == {"given", "by-class", "shuffled"}
    for spread in (spread for rows in spreads.values() for spread in rows):
        assert spread.low <= spread.lowest <= spread.value <= spread.high or spread.lowest <= spread.highest


def test_the_effort_behind_settings_is_that_of_the_committed_trials():
    assert holds(TRIALS, "effort", benchmark("tuning").effort())


def test_shares_of_the_worst_case_below_the_figure_of_three_kinds_are_those_of_the_rows():
    script_orders = benchmark("script_orders")
    shuffles, scripts = {}, {}
    for spread in script_orders.read()["digits"]:
        name = spread.method.split()[0]
        if (spread.n_bits, spread.database) == (12, "by-class") and name in script_orders.SHOWN:
            width = spread.high - spread.low
            shuffles[name] = round(100 * 2 * spread.tie_sd / width)
            scripts[name] = round(100 * (spread.highest - spread.lowest) / width)
    few, many = ("agh", "hashnet"), ("itq", "lsh", "pcah", "sph")
    assert ({shuffles[name] for name in many}, {shuffles[name] for name in few}) == ({1}, {4})
    assert (min(scripts[name] for name in many), max(scripts[name] for name in many)) == (2, 6)
    assert sorted(scripts[name] for name in few) == [27, 51]
    assert states(TIES, "agh and hashnet", "4 %", "27 to 51 %")
    assert states(TIES, "itq, lsh, pcah and sph", "1 %", "2 to 6 %")


def test_what_is_said_of_the_shuffle_deviation_is_that_of_its_rows():
    import pandas as pd

    shuffles = benchmark("shuffles")
    rows, pairs = pd.read_csv(shuffles.ROWS), pd.read_csv(shuffles.PAIRS)
    assert holds(SHUFFLES, "estimate", shuffles.lay_out(rows))
    assert holds(SHUFFLES, "pairs", shuffles.lay_out_pairs(pairs))
    uncertainty = 1 / np.sqrt(2 * (rows["orders"] - 1))  # of a measured deviation
    of_sample = 0.15 * ~rows["dataset"].str.startswith("digits")  # of their items 1,024 stand for all
    measured, slack = rows["tie_sd_measured"], 1 + 4 * uncertainty + of_sample
    assert (rows["tie_sd_low"] <= slack * measured + 1e-7).all()
    assert (measured <= slack * rows["tie_sd_bound"] + 1e-7).all()
    assert {300, 100, 25} == {*rows["orders"]}
    assert states(SHUFFLES, "uncertain", "4 %", "300 orders", "7 %", "100", "14 %", "25")
    assert len(rows) >= 400
    tied = rows[(measured > 1e-7) & (rows["method"] != "constant") & (rows["orders"] == 300)]
    errors = (tied["tie_sd"] / tied["tie_sd_measured"] - 1).abs()
    assert states(SHUFFLES, "Nine of ten", "300 orders", f"{100 * errors.quantile(0.9):.0f} %")
    off = (errors > errors.quantile(0.9)).groupby(tied["metric"]).sum()
    assert off[["RR", "NDCG"]].sum() > off.sum() / 2
    constant = rows[(rows["method"] == "constant") & (rows["metric"] == "AP") & (rows["n_bits"] == 12)].iloc[0]
    assert constant["dataset"] == "digits"
    assert states(SHUFFLES, f"{constant['tie_sd'] / constant['tie_sd_measured']:.1f} times for AP")


def test_how_often_a_method_is_told_from_itself_is_as_in_the_committed_rows():
    import pandas as pd

    false_alarms = benchmark("false_alarms")
    rows = pd.read_csv(false_alarms.ROWS)
    assert holds(COMPARING, "false alarms", false_alarms.lay_out(rows))
    assert holds(COMPARING, "means of seeds", false_alarms.lay_out_seed_means())
    of_methods = rows[rows["dataset"] != "simulated"]
    shares = of_methods["false_alarms"]
    assert states(COMPARING, f"{100 * shares.min():.0f} to {100 * shares.max():.0f} %", "of the pairs of a method")
    least, most = of_methods["paired"].min(), of_methods["paired"].max()
    assert states(COMPARING, "calls", f"{100 * least:.0f} to {100 * most:.0f} %", "of these pairs different")
    by_seeds = rows.groupby("seeds")["found"].median()
    assert by_seeds.is_monotonic_increasing
    assert all(abs(found - false_alarms.power(n_seeds)) < 0.05 for n_seeds, found in by_seeds.items())


def test_numbers_beside_the_figure_of_scripts_are_those_of_the_rows(script_rows, why):
    drawn = why.TIES_ALONE["AP@1000"]
    by_class, shuffled = (
        values(script_rows, "classifier-10", order, scripts=drawn).values() for order in ("by-class", "shuffled")
    )
    assert len(drawn) == 7
    by_name = values(script_rows, "classifier-10", "by-class", scripts=drawn)
    assert by_name["orthohash"] == by_name["torchmetrics-map"]
    assert len({*by_class}) == len(drawn) - 1  # rankings
    assert states(SCRIPTS, "Six scripts", "one of them with two versions of NumPy")
    assert states(SCRIPTS, "differ only in how they order ties", "two of them order ties alike")
    assert {f"{value:.2f}" for value in shuffled} == {"0.58"}
    assert states(SCRIPTS, f"{min(by_class):.2f} to {max(by_class):.2f}", "sorted by class", "0.58", "shuffled")
    everything = values(script_rows, "classifier-10", "by-class")
    scalar, here = (f"{everything[name]:.3f}" for name in ("calc-top-map", "calc-top-map-here"))
    assert states(SPREADS, "NumPy before 1.25", scalar, "NumPy 2.4.6", "AVX-512", here)
    (stable,) = {f"{everything[name]:.3f}" for name in ("faiss-cumsum", "callmap", "deepbit", "talr-ap")}
    exact = {(row["codes"], row["metric"]): f"{float(row['exact']):.3f}" for row in script_rows}
    assert states(PROTOCOLS, stable, "stable sorts", scalar, "not stable", exact["classifier-10", "AP@1000"])
    assert f"{values(script_rows, 'classifier-10', 'shuffled')['calc-top-map']:.2f}" == "0.58"
    few = values(script_rows, "itq-32", "by-class", scripts=drawn).values()
    for page in (SCRIPTS, ROOT / "PYPI.md", ROOT / "docs/index.md"):
        assert states(page, "ITQ's 32-bit codes", f"{min(few):.3f} to {max(few):.3f}", "sorted by class")
    assert states(PROTOCOLS, "AP", exact["itq-32", "AP"], "AP@1000", exact["itq-32", "AP@1000"], "cifar10-s1")


def test_shuffles_of_the_example_give_what_is_told():
    scope = {}
    code = re.search(r"^```python\n(.*?)^```$", SPREADS.read_text(), flags=re.DOTALL | re.MULTILINE)[1]
    exec(re.sub(r"^np\.save.*$", "", code, flags=re.MULTILINE), scope)
    codes, labels = scope["codes"], scope["labels"]
    shuffled = []
    for seed in range(3):
        order = 100 + np.random.default_rng(seed).permutation(2000)
        scores = []
        for code, label in zip(codes[:100], labels[:100], strict=True):
            first = order[np.argsort((codes[order] != code).sum(axis=1), kind="stable")[:100]]
            hits = labels[first] == label
            scores.append((np.cumsum(hits) / np.arange(1, 101))[hits].mean() if hits.any() else 0)
        shuffled.append(f"{fmean(scores):.3f}")
    exact = evaluate(codes[:100], codes[100:], (labels[:100], labels[100:]), ["AP@100"]).scores["AP@100"].mean
    assert states(SPREADS, *shuffled, "three shuffles", f"{exact.mean():.3f}")


def test_the_table_of_spreads_is_that_of_the_rows(script_rows, why):
    assert holds(SPREADS, "spreads", why.spreads(script_rows))


def test_the_rows_of_scripts_have_all_that_give_ap_at_a_cut(script_rows, why):
    assert [*values(script_rows, "classifier-10", "by-class")] == [
        script.name for script in why.SCRIPTS if "AP@k" in script.gives
    ]


def test_sentences_on_scripts_are_true_of_the_rows(script_rows, why):
    ties_alone = why.TIES_ALONE
    exact = {(row["codes"], row["metric"]): float(row["exact"]) for row in script_rows}
    assert states(SPREADS, f"{exact['hashnet-32', 'AP@1000'] - exact['hashnet-12', 'AP@1000']:.3f}", "exact AP@1000")
    by_class = values(script_rows, "hashnet-12", "by-class", scripts=ties_alone["AP@1000"]).values()
    assert states(SPREADS, "12-bit codes", f"{min(by_class):.3f} to {max(by_class):.3f}")
    errors = []
    for codes, metric in ((codes, metric) for codes, metric in exact if metric in ties_alone):
        shuffled = values(script_rows, codes, "shuffled", metric=metric, scripts=ties_alone[metric]).values()
        errors += [abs(value - exact[codes, metric]) for value in shuffled]
    assert max(errors) < 0.01
    assert states(SPREADS, "On a shuffled database", "0.01")


# ---------------------------------------------------------------- speed


@pytest.mark.skipif(not (DATA / "cifar10-squeezenet-fire9-128px.npz").is_file(), reason="needs the real features")
def test_recall_by_hamming_cosine_and_dot_of_0_1_vectors_is_as_told():
    with np.load(DATA / "cifar10-squeezenet-fire9-128px.npz") as file:
        features = file["features"][:20500].astype(np.float32)
    features -= features.mean(axis=0)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    neighbours = np.argsort(-(unit[:500] @ unit[500:].T), axis=1)[:, :10]
    bits = (features > 0).astype(np.float64)
    common, n_ones = bits[:500] @ bits[500:].T, bits.sum(axis=1)
    recalls = []
    for scores in (2 * common - n_ones[500:], common**2 / n_ones[500:], common):  # of each query, up to its own terms
        near = np.take_along_axis(scores, neighbours, axis=1)
        at_cut = np.sort(scores, axis=1)[:, -10:-9]
        n_above, n_tied = (scores > at_cut).sum(axis=1), (scores == at_cut).sum(axis=1)
        hits = (near > at_cut).sum(axis=1) + (near == at_cut).sum(axis=1) * (10 - n_above) / n_tied
        recalls.append(f"{hits.mean() / 10:.3f}")
    assert f"| {' | '.join(recalls)} |" in EMBEDDINGS.read_text()
    assert states(EMBEDDINGS, "first 500 images", "20,000", *recalls)


def ratios(column, codes=("spread", "collapsed"), **cell):
    """Return the smallest and largest ratio of a column on both machines."""
    numbers = [
        float(row[column].replace(",", ""))
        for table in tables("Side by side")
        for row in table
        if row["codes"] in codes and row.get(column) and cell.items() <= row.items()
    ]
    return min(numbers), max(numbers)


def test_speed_told_is_that_of_the_benchmarks():
    least, most = ratios("faiss k=100", ["spread"])
    assert states(SPEED, f"{least:.1f} to {most:.0f} times faster", "faiss")
    least, most = ratios("faiss k=100", ["collapsed"])
    assert states(SPEED, "collapsed codes", f"{least:.1f} to {most:.0f} times faster")
    intel, amd = (
        next(float(row["faiss k=100"]) for row in table if [*row.values()][:3] == ["CIFAR-10 S2", "64", "spread"])
        for table in tables("Side by side")
    )
    assert states(SPEED, "10,000 x 50,000", "64 bits", f"{intel:.1f}", "Intel", f"{amd:.1f}", "AMD")
    (narrow,) = tables("Without AVX-512: papers' shapes")
    spread = [float(row["faiss k=100"]) for row in narrow if row["codes"] == "spread"]
    assert len(spread) == 16
    assert states(SPEED, "AVX2", f"{min(spread):.1f} to {max(spread):.1f} times faster")
    peers = ["{:.0f} to {:.0f}".format(*ratios(column, bits="64")) for column in ("argsort", "stable", "ndcg_score")]
    assert states(SPEED, "64 bits", "argsort", peers[0], "stable sort", peers[1], "ndcg_score", peers[2])
    (more,) = tables("Long codes, many labels, few queries")
    by_shape = {row["shape"]: (float(row["spread"]), float(row["collapsed"])) for row in more}
    long = [ratio for shape, pair in by_shape.items() if shape.endswith(" bits") for ratio in pair]
    assert states(SPEED, "256 to 1,024 bits", f"{min(long):.2f} to {max(long):.2f} times as fast")
    for words, shape in {"374 labels": "2,000 x 50,000, 374 labels"}.items() | {
        (shape, shape) for shape in ("200 x 1,600", "100 x 50,000", "10 x 50,000", "1 x 50,000")
    }:
        assert states(SPEED, words, f"{min(by_shape[shape]):.2f} to {max(by_shape[shape]):.2f} times as fast")


def test_memory_told_is_that_of_the_first_machine():
    peaks = [row["peak"] for row in tables("Memory")[0]]
    assert states(SPEED, "193,734", peaks[1])
    assert states(SPEED, "20 million codes", peaks[2], "dataset file", "float32", peaks[3])


def test_training_told_is_that_of_the_benchmarks():
    (histogram,) = tables("Soft histogram")
    times, memory = ([float(row[f"loop: {what}"]) for row in histogram] for what in ("time", "memory"))
    assert states(SPEED, f"{min(times):.0f} to {max(times):.0f} times faster", "loop over its bins")
    assert states(SPEED, f"{min(memory):.0f} to {max(memory):.0f} times less memory", "128 to 1,024", "16 to 128 bits")
    step = "times a step of dpsh"
    steps = [float(row[step]) for table in tables("") for row in table if step in row and row["method"] == "talr-ap"]
    assert states(SPEED, "TALR-AP", f"{min(steps):.1f} to {max(steps):.1f} times", "DPSH")
    assert {row["M"] for row in histogram} == {"128", "256", "512", "1024"}
    assert {row["b"] for row in histogram} == {"16", "32", "64", "128"}


def test_times_of_workers_follow_from_their_rates():
    measured = [
        [float(cell.replace(",", "")) for cell in line.split("|")]
        for line in re.findall(
            r"^\| ([\d,]+ \| [\d,]+ \| \d \| [\d.]+ \| [\d.]+ \| \d+) \|$", SCALE.read_text(), re.MULTILINE
        )
    ]
    assert states(SCALE, "Two workers", f"{measured[0][3] / measured[1][3]:.2f} times")
    for items, queries, workers, seconds, rate, _ in measured:
        assert items * queries / workers / seconds / 1e9 == pytest.approx(rate, rel=0.02)
    assert states(SCALE, "items x queries", f"{measured[1][4]:.1f} billion x workers")


# ---------------------------------------------------------------- trials


def score_of(row):
    """Return the mean of a trial's two numbers; NaN for a trial that failed."""
    scores = [row["among_held_out"], row["to_trained"]]
    return float("nan") if "" in scores else fmean(map(float, scores))


def test_all_learned_methods_have_as_many_trials_and_the_best_are_shown():
    trials = trials_on_features()
    counts = Counter((row["dataset"], row["n_bits"], row["method"]) for row in trials)
    learned = {name for name in registry.built_in_methods() if method_card(name).is_learned}
    of_neighbours = {("wordnet-minilm", n_bits) for n_bits in ("64", "512")}
    unlabelled = {name for name in learned if method_card(name).supervision == "none"}
    parts = {key[:2] for key in counts}
    expected = {(*part, name): 9 for part in parts for name in (unlabelled if part in of_neighbours else learned)}
    assert counts == expected
    assert of_neighbours < parts
    assert all(len(method_card(name).tunable) >= 3 for name in learned)
    assert holds(RESULTS, "chosen", benchmark("tuning").chosen())
    assert holds(RESULTS, "neighbours", benchmark("tuning").chosen_by_neighbours())
    for row in tables("Settings of the learned methods")[0]:
        default, best = default_and_best(trials_of_classes(), row["method"].strip("`"))
        assert row["lead"] == f"{best - default:.4f}"


def test_findings_on_equal_effort_are_those_of_the_trials():
    (shown,) = tables("Which loss is best after equal effort?", FINDINGS)
    trials = trials_of_classes()
    names = {name: default_and_best(trials, name) for name in {row["method"] for row in trials}}
    in_order = sorted(names, key=lambda name: -names[name][1])
    assert [row["method"] for row in shown[:3]] == in_order[:3]
    for row in shown:
        scores = row["score of the earlier default"], row["score of the best setting"]
        assert scores == tuple(f"{score:.3f}" for score in names[row["method"]])
    parts = {*product(("cifar10-s1:squeezenet", "digits-pairs", "tmc2007"), ("16", "48"))}
    by_part = {name: best_by_part(trials, name) for name in ("talr-ap", "hashnet")}
    n_ahead = sum(by_part["hashnet"][part] > by_part["talr-ap"][part] for part in parts)
    assert (n_ahead, by_part["hashnet"].keys()) == (3, parts)
    assert states(FINDINGS, "hashnet is above talr-ap in three of the six parts")
    assert len(shown) == 7
    assert states(FINDINGS, "Seven of the", len(names), "methods")
    seeds = {row["seed"] for row in trials}
    assert (seeds, {row["n_bits"] for row in trials}) == ({"0"}, {"16", "48"})


def test_what_may_be_the_best_on_cifar10_s1_is_as_told(tmp_path, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path))
    results = read_results_with_origins(ROOT / "results")
    selection = Selection(["cifar10-s1:squeezenet"], metrics=["AP"], n_bits=[12, 24, 32, 48])
    cells = make_view(results, selection).tested().cells
    by_length = cells[cells["may_be_best"]].groupby("n_bits")["method"].agg(set)
    assert set.intersection(*by_length) == {"csq", "hashnet", "idhn", "dfh"}
    assert states(FINDINGS, "csq, hashnet, idhn and dfh", "may be the best", "at 12, 24, 32 and 48 bits")
    means = cells[cells["method"] == "greedyhash"].set_index("n_bits")["value"]
    lines = mean_over_seeds(results[(results["method"] == "greedyhash") & (results["metric"] == "AP")])
    defaults = lines[(lines["dataset"] == "cifar10-s1") & (lines["tuned"] == 0)].set_index("n_bits")["value"]
    told = [f"{defaults[32]:.3f} to {means[32]:.3f} at 32 bits", f"{defaults[12]:.3f} to {means[12]:.3f} at 12"]
    assert states(FINDINGS, "greedyhash led by 0.0104", *told)


def test_what_is_told_of_tuned_rows_of_tmc2007_is_that_of_the_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path))
    results = read_results_with_origins(ROOT / "results")
    cells = make_view(results, Selection(["tmc2007"], metrics=["AP"], n_bits=[16, 32, 48, 64])).tested().cells
    by_length = cells[cells["may_be_best"]].groupby("n_bits")["method"].agg(set)
    assert set.intersection(*by_length) == {"talr-ap", "talr-ndcg"}
    assert [n_bits for n_bits, names in by_length.items() if "dfh" in names] == [32, 48, 64]
    assert states(FINDINGS, "talr-ap and talr-ndcg may be the best at 16,", "32, 48 and 64 bits, dfh at all but 16")
    grid = tomllib.loads((ROOT / "benchmarks/rows/tmc2007.toml").read_text())["methods"]
    lines = mean_over_seeds(results[(results["dataset"] == "tmc2007") & (results["metric"] == "AP")])
    means = lines.assign(is_tuned=lines["tuned"] > 0).set_index(["method", "is_tuned", "n_bits"])["value"]
    moved = [name for name, chosen in grid.items() if len(chosen) > 1]
    gains = {
        (name, n_bits): means[name, True, n_bits] - means[name, False, n_bits]
        for name, is_tuned, n_bits in means.index
        if name in moved and is_tuned and (name, False, n_bits) in means.index
    }
    assert f"{max(gains.values()):.3f}" == "0.069"
    assert {job for job, gain in gains.items() if gain <= 0} == {("greedyhash-unsupervised", bits) for bits in (48, 64)}
    assert f"{min(gains.values()):.3f}" == "-0.001"
    assert states(FINDINGS, len(moved), "methods that left its defaults gained", "by up to 0.069")
    assert states(FINDINGS, "except greedyhash-unsupervised, which lost", "up to 0.001 at two")
    shown = cells[(cells["n_bits"] == 32) & cells["method"].isin([name for name, chosen in grid.items() if chosen])]
    at_32 = shown.set_index("method")["value"]
    n_below = (at_32 < at_32["classifier-lsh"]).sum()
    told = f"{at_32['classifier-lsh']:.3f} at 32 bits", "above", n_below, "other", len(at_32) - 1
    assert states(FINDINGS, "classifier-lsh", "LSH turns into codes", *told)


def test_presets_of_neighbours_are_the_best_settings_there():
    trials = [row for row in trials_on_features() if row["dataset"] == "wordnet-minilm"]
    for name in ("bihalf", "greedyhash-unsupervised"):
        scores = {setting: score for (setting, _), score in means_of(trials, name).items() if not math.isnan(score)}
        assert json.loads(max(scores, key=scores.get)) == dict(method_card(name).presets["neighbours"])


def test_defaults_are_the_best_settings_where_these_lead_by_a_hundredth():
    trials = trials_of_classes()
    for name in {row["method"] for row in trials}:
        (tried,) = {row["setting"] for row in trials if (row["method"], row["is_default"]) == (name, "True")}
        scores = {setting: score for (setting, _), score in means_of(trials, name).items() if not math.isnan(score)}
        best, second = sorted(scores, key=scores.get, reverse=True)[:2]
        expected = second if name == "greedyhash" else best  # whose best fails scikit-learn's checks
        setting = json.loads(expected if scores[expected] > scores[tried] + LEAD else tried)
        assert {key: method_card(name).params[key] for key in setting} == setting
        if name == "greedyhash":
            assert states(RESULTS, "second best", f"{scores[second]:.3f}")


def trials_of_classes():
    return [row for row in trials_on_features() if row["dataset"] != "wordnet-minilm"]


def trials_on_features():
    return [row for row in rows_of("benchmarks/tuning.csv") if not row["dataset"].endswith(":images")]


def default_and_best(trials, method):
    means = means_of(trials, method)
    (default,) = [mean for (_, is_default), mean in means.items() if is_default == "True"]
    return default, max(mean for mean in means.values() if not math.isnan(mean))


def best_by_part(trials, method):
    """Return the scores of a method's best setting, by dataset and length."""
    means = means_of(trials, method)
    best = max((key for key in means if not math.isnan(means[key])), key=means.get)
    return {
        (row["dataset"], row["n_bits"]): score_of(row)
        for row in trials
        if (row["method"], row["setting"], row["is_default"]) == (method, *best)
    }


def means_of(trials, method):
    """Return the score of each setting and whether it is the default: means over datasets of means over lengths."""
    scores = defaultdict(lambda: defaultdict(list))
    for row in trials:
        if row["method"] == method:
            scores[row["setting"], row["is_default"]][row["dataset"]].append(score_of(row))
    return {key: fmean(map(fmean, parts.values())) for key, parts in scores.items()}


def test_further_trials_are_counted():
    assert states(TRIALS, len(rows_of("benchmarks/further.csv")), "further trials of mihash's bins")


def test_settings_taken_from_images_led_in_trials_on_held_out_items():
    (shown,), trials = tables("From images"), trials_from_images("tuning.csv")
    grid = tomllib.loads((ROOT / "benchmarks/rows/images.toml").read_text())
    assert sorted({row[""] for row in shown}) == sorted(trials) == sorted(grid["methods"])
    counts = Counter(name for name, pairs in trials.items() for setting, _ in pairs if not network_of(setting))
    assert counts == {name: 3 * n_rows for name, n_rows in Counter(row[""] for row in shown).items()}
    for row in shown:
        method = registry.get_method(row[""])(**grid["params"] | grid["methods"][row[""]])
        scores = {}
        for setting, score in trials[row[""]]:
            if not network_of(setting) and setting["learning_rate"] == float(row["rate"]):
                scores[f"{setting.pop('pretrained_multiplier'):g} of it below"] = score
                assert {key: getattr(method, key) for key in setting} == setting or row["taken"] == "-"
        assert sorted(scores) == sorted(list(row)[2:-1])
        told = {head: "failed" if isnan(score) else f"{score:.3f}" for head, score in scores.items()}
        assert {head: row[head] for head in told} == told
        if row["taken"] != "-":
            assert float(row["rate"]) == method.learning_rate
            assert row["taken"] == f"{method.pretrained_multiplier:g}"
            assert scores[f"{row['taken']} of it below"] == max(score for score in scores.values() if not isnan(score))
    assert [(row[""], row["rate"]) for row in shown if row["taken"] == "-"] == [("dtsh", "0.03")]


def test_what_the_network_gains_is_as_in_the_trials():
    (shown,), trials = tables("What the network gains"), trials_from_images("tuning.csv")["talr-ap"]
    told = {network_of(setting): f"{score:.3f}" for setting, score in trials if network_of(setting)}
    (base,) = (f"{score:.3f}" for setting, score in trials if setting == NETWORK_BASE)
    assert {row["setting"].strip("`"): row["held out"] for row in shown} == {"": base} | told


def test_earlier_trials_from_images_are_as_told():
    (shown,) = tables("What was tried before")
    best, n_trials = defaultdict(dict), 0
    for kind in ("before training", "that follows batches"):
        for name, pairs in trials_from_images("tuning-earlier.csv", kind).items():
            for setting, score in pairs:
                if setting.keys() & OF_NETWORK:
                    continue
                n_trials += 1
                head = f"mean {kind}" + ", head first" * (setting.get("head_epochs", 0) > 0)
                if not isnan(score):
                    best[name][head] = max(score, best[name].get(head, 0))
    told = {row[""]: {key: float(row[key]) for key in list(row)[1:] if row[key] != "-"} for row in shown}
    assert states(RESULTS, n_trials, "other trials of 6 epochs")
    assert told == {name: {head: round(score, 3) for head, score in scores.items()} for name, scores in best.items()}


def test_earlier_trials_from_images_are_counted():
    rows = rows_of("benchmarks/tuning-earlier.csv")
    counts = Counter(row["method"] for row in rows if row["dataset"].endswith(":images"))
    (shown,) = tables("How settings are chosen", TRIALS)
    cells = {name: row["images, earlier code"] for row in shown for name in re.findall("`(.+?)`", row["method"])}
    assert cells.keys() == {*registry.built_in_methods()}
    assert {name: int(cell) for name, cell in cells.items() if cell != "0"} == counts


def trials_from_images(name, centred_by=""):
    """Return settings and scores of the trials of 6 epochs on images, by method."""
    trials = defaultdict(list)
    for row in rows_of(f"benchmarks/{name}"):
        if row["dataset"] == "cifar10-s1:images" and row.get("centred_by", "").endswith(centred_by):
            assert (row["n_bits"], row["seed"]) == ("32", "0")
            if row["epochs"] == "6":
                trials[row["method"]].append((json.loads(row["setting"]), score_of(row)))
    return trials


def network_of(setting):
    return " ".join(f"{key}={setting[key]}" for key in ("image_size", "train_from") if key in setting)


def test_what_dispersion_trades_is_as_in_the_committed_rows():
    scores = defaultdict(list)
    for row in rows_in(ROOT / "results/cifar10-s1"):
        if (row["method"], row["features"]) == ("dsh", "squeezenet (JPEG)"):
            params = json.loads(row["params"])
            if all(value == method_card("dsh").params[key] for key, value in params.items() if key != "objective"):
                scores[row["metric"], row["n_bits"], params["objective"]].append(float(row["value"]))
    (shown,) = tables("Does dispersion trade AP", FINDINGS)
    *_, with_dispersion, without, interval = [[*row.values()][1:] for row in shown]
    columns = [
        [scores[metric, n_bits, objective] for objective in ("dispersion", "original")]
        for metric, n_bits in product(("LGAP@r2", "AP"), ("12", "24"))
    ]
    assert {len(cell) for column in columns for cell in column} == {3}
    for line, cells in zip((with_dispersion, without), zip(*columns, strict=True), strict=True):
        assert line == [f"{fmean(cell):.3f}" for cell in cells]
    found = [of_means(*map(np.array, column), "AP", ("with", "without"), 1000, 0.0) for column in columns]
    assert interval == [f"{each.low:+.3f} to {each.high:+.3f}" for each in found]
    assert [each.is_shown for each in found] == [False, True, True, True]
    assert states(FINDINGS, "12 bits", "not shown", f"p = {found[0].p:.2f}")


# ---------------------------------------------------------------- orders


@cache
def orders_of(name):
    """Return the published orders of a table that the committed rows allow, as the benchmark lists them."""
    orders = benchmark("published_orders").orders_of(name)
    return [{column: str(value) for column, value in order.row.items()} for order in orders]


def orders_shown():
    """Return the numbers of the table of published orders, line by line: as published, turned, open."""
    (shown,) = tables("What holds of the published orders", FINDINGS)
    return [[int(cell) for cell in [*row.values()][1:] if cell] for row in shown]


def test_counts_of_published_orders_are_those_of_the_committed_rows():
    rows = orders_of("table1")
    counts = Counter((row["verdict"], row["ties"]) for row in rows)
    in_every_order, under_a_shuffle = (
        [counts[verdict, ties] for verdict in ("holds", "turned")] for ties in (EVERY_ORDER, SHUFFLE)
    )
    n_open = counts["open", OPEN] + counts["open", UNKNOWN]
    assert orders_shown()[:2] == [in_every_order, [*under_a_shuffle, n_open]]
    assert sum(counts.values()) == sum(in_every_order + under_a_shuffle) + n_open
    of_others = [row for row in rows if not row["source"].startswith("TALR")]
    assert states(FINDINGS, "allows", len(rows), "comparisons", "All but", len(of_others), "TALR")
    turned = {
        (row["our_dataset"], row["our_higher"], row["our_lower"], row["n_bits"]) for row in rows if is_turned(row)
    }
    assert {("cifar10-s2", "mihash", "dtsh", n_bits) for n_bits in ("16", "48")} <= turned
    (greedyhash,) = of_others
    assert (greedyhash["our_higher"], greedyhash["our_lower"], greedyhash["n_bits"]) == ("greedyhash", "dfh", "48")
    assert is_turned(greedyhash)
    assert states(FINDINGS, "dfh", *(f"{float(greedyhash[key]):.3f}" for key in ("ours_lower", "ours_higher")))
    published = [(row["source"], row["setting"], row["higher"], row["lower"], row["n_bits"]) for row in rows]
    assert len({*published}) == len(published)
    assert all("n_trees=20 instead of 200" in row["differs"] for row in rows if "fasthash" in row["our_higher"])


def is_turned(order):
    return order["verdict"] == "turned"


def test_orders_of_table_2_are_as_is_told():
    rows = orders_of("table2")
    assert {(row["source"].partition(" ")[0], row["our_dataset"], row["n_bits"]) for row in rows} == {
        ("SDC", "cifar10-s2", "16")
    }
    assert len({row[side] for row in rows for side in ("our_higher", "our_lower")}) == 4
    counts = Counter((row["verdict"], row["ties"]) for row in rows)
    assert counts.keys() == {("holds", SHUFFLE), ("turned", SHUFFLE)}
    assert states(FINDINGS, f"Of {len(rows)} comparisons at 16 bits", f"{counts['holds', SHUFFLE]} hold")
    turned = {(row["our_higher"], row["our_lower"]) for row in rows if is_turned(row)}
    assert turned == {("cibhash", "bihalf")}


def test_continuation_gains_in_the_paper_and_loses_here():
    rows = orders_of("continuation")
    assert [row["n_bits"] for row in rows] == ["12", "24", "32", "48"]
    assert all(is_turned(row) and json.loads(row["our_params_higher"])["continuation"] == 3 for row in rows)
    assert states(FINDINGS, "gains from continuation at four lengths", "continuation=3 lowers AP at all four", 0.03)
    seeds = defaultdict(list)
    for row in rows_in(ROOT / "results/cifar10-s1"):
        if (row["method"], row["metric"]) == ("talr-ap", "AP"):
            seeds[row["features"], row["params"], row["n_bits"]].append(float(row["value"]))
    for row in rows:
        sides = [
            np.array(seeds[row["our_features"], row[f"our_params_{side}"], row["n_bits"]])
            for side in ("higher", "lower")
        ]
        found = of_means(*sides, "AP", ("with", "without"), 1000, 0.0)
        assert found.value < 0
        assert found.p < 0.03


def test_what_seeds_show_of_published_orders_is_that_of_the_committed_rows():
    seeds, found = defaultdict(list), {}
    for folder in ("cifar10-s1", "cifar10-s2"):
        for row in rows_in(ROOT / f"results/{folder}"):
            if row["metric"] == "AP":
                key = (row[name] for name in ("dataset_fingerprint", "features", "method", "params", "n_bits"))
                seeds[*key].append(float(row["value"]))
    for row in orders_of("table1"):
        place = row["dataset_fingerprint"], row["our_features"]
        sides = [
            np.array(seeds[*place, row[f"our_{side}"], row[f"our_params_{side}"], row["n_bits"]])
            for side in ("higher", "lower")
        ]
        assert {*map(len, sides)} <= {1, 3}
        if min(map(len, sides)) > 1:
            assert row["our_dataset"] == "cifar10-s1"
            pair = row["our_higher"], row["our_lower"], row["n_bits"]
            found[pair] = of_means(*sides, "AP", pair[:2], 1000, 0.0)
    differences = [*found.values()]
    is_shown = np.array([each.is_shown for each in differences])
    is_higher = np.array([each.value > 0 for each in differences])
    is_shown_after = holm([each.p for each in differences]) < ALPHA
    for shown, line in zip((is_shown, is_shown_after), orders_shown()[2:], strict=True):
        assert line == [(shown & is_higher).sum(), (shown & ~is_higher).sum(), (~shown).sum()]
    assert states(FINDINGS, "t tests of", len(found), "comparisons with three seeds", "Holm", len(found), "tests")
    turned = {pair for pair, is_one in zip(found, is_shown & ~is_higher, strict=True) if is_one}
    assert states(FINDINGS, "shown by itself", f"p = {found['greedyhash', 'dfh', '48'].p:.3f}", "not after correction")
    turned_after = {pair for pair, is_one in zip(found, is_shown_after & ~is_higher, strict=True) if is_one}
    assert turned_after == {("mihash", "dpsh", "48")} | {
        ("fasthash", "structhash", n_bits) for n_bits in ("12", "24", "32", "48")
    }
    assert states(FINDINGS, "Two reversals remain", "dpsh scores above mihash at 48 bits")
    assert {pair for pair in turned if pair[1] == "dtsh"} == {
        ("mihash", "dtsh", n_bits) for n_bits in ("24", "32", "48")
    }


def test_the_papers_settings_give_the_published_order_of_fasthash_and_structhash_on_digits():
    rows, shown = defaultdict(dict), {}
    for row in rows_in(ROOT / "results/digits"):
        method, params = row["method"], json.loads(row["params"])
        if (method, row["metric"], row["seed"]) in {("fasthash", "AP", "0"), ("structhash", "AP", "0")}:
            card = method_card(method)
            for name, settings in {"paper": card.preset("paper", 16), "default": card.params}.items():
                if all(params[key] == settings.get(key, card.params[key]) for key in params):
                    rows[name, row["n_bits"]][method] = Score(*(float(row[key]) for key in Score._fields))
    for n_bits in ("16", "32", "48"):
        fasthash, structhash = (rows["paper", n_bits][method] for method in ("fasthash", "structhash"))
        assert fasthash.value > structhash.value
        assert str(compare(fasthash, structhash)) == EVERY_ORDER
        shown[n_bits] = [f"{score.value:.3f}" for score in (fasthash, structhash)]
        ours = rows["default", n_bits]
        assert ours["structhash"].value > ours["fasthash"].value
    in_order = [value for column in zip(*shown.values(), strict=True) for value in column]
    assert states(FINDINGS, "every order of ties", *in_order, *shown)
    trees, anchors = (
        (method_card(method).params[key], method_card(method).preset("paper", 16)[key])
        for method, key in (("fasthash", "n_trees"), ("structhash", "n_anchors"))
    )
    assert states(FINDINGS, f"{trees[0]} trees instead of {trees[1]}")
    assert states(FINDINGS, f"{anchors[0]:,} anchors instead of {anchors[1]}")


# ---------------------------------------------------------------- unseen classes


def test_what_labels_teach_of_unseen_classes_is_as_in_the_committed_rows():
    (shown,) = tables("What labels of other classes are worth", FINDINGS)
    rows = [row for row in rows_of("results/tables/unseen.csv") if row["32"] and row["metric"] == "AP"]
    seen = {row["method"]: float(row["32"]) for row in rows if row["dataset"] == "cifar10-s1"}
    for suffix, column in (("-database-all", "among all classes"), ("", "among themselves")):
        block = [row for row in rows if row["dataset"] == f"cifar10-s1-unseen3{suffix}"]
        scores = {row["method"]: float(row["32"]) for row in block}
        names = sorted(row["method"] for row in block if row["group"] not in ("baseline", "unsupervised"))
        folds = by_fold("cifar10-s1", 3, suffix, "32")
        assert sorted(folds) == ["0", "1", "2"]
        values = {name: np.array([[folds[fold][name][0] for fold in "012"]]) for name in ("itq", *names)}
        found = [of_scores(values[name], values["itq"], "AP", (name, "itq"), (1, 1), 0.0) for name in names]
        corrected = holm([each.p for each in found])
        better = [name for name in names if scores[name] > scores["itq"]]
        passing = [sum(values[name][0, fold] > values["itq"][0, fold] for name in names) for fold in range(3)]
        shown_after = [name for name, p in zip(names, corrected, strict=True) if p < ALPHA]
        assert [row[column] for row in shown] == [
            f"{scores['itq']:.3f}",
            f"{min(scores[name] for name in names):.3f} to {max(scores[name] for name in names):.3f}",
            f"{len(better)}" + f" ({', '.join(better)})" * bool(better),
            str(sum(passing)),
            str(sum(each.is_shown for each in found)),
            f"{len(shown_after)}" + f" ({', '.join(shown_after)})" * bool(shown_after),
            str(sum(scores[name] > scores["lsh"] for name in names)),
        ]
    assert states(FINDINGS, f"the {len(names)} methods that learn from labels")
    assert states(FINDINGS, *passing, "methods pass ITQ")
    least, most = min(seen[name] for name in names), max(seen[name] for name in names)
    assert states(FINDINGS, f"{least:.2f} to {most:.2f}", "ITQ", f"{seen['itq']:.2f}")


def by_fold(base, n_unseen, suffix, n_bits):
    """Return means over seeds of value, low and high, by fold and method."""
    seeds = defaultdict(list)
    for row in rows_in(ROOT / f"results/{base}-unseen"):
        name = re.fullmatch(rf"{base}-unseen{n_unseen}-fold(\d){suffix}", row["dataset"])
        if name and (row["metric"], row["n_bits"]) == ("AP", n_bits):
            seeds[name[1], row["method"]].append([float(row[key]) for key in ("value", "low", "high")])
    folds = defaultdict(dict)
    for (fold, method), numbers in seeds.items():
        folds[fold][method] = [fmean(column) for column in zip(*numbers, strict=True)]
    return folds


# ---------------------------------------------------------------- said twice


@pytest.mark.parametrize(
    ("phrase", "home", "page"),
    [
        (r"[\d.]+ to [\d.]+ times faster than faiss", SPEED, "README.md"),
        (r"0\.\d\d to 0\.\d\d with the database sorted by class", SCRIPTS, "docs/index.md"),
    ],
)
def test_what_several_pages_say_they_say_alike(phrase, home, page):
    in_home, in_page = (
        {*re.findall(phrase, " ".join(path.read_text().replace("*", "").split()))} for path in (home, ROOT / page)
    )
    assert in_page
    assert in_page <= in_home


def test_the_landing_page_counts_methods_truly():
    for page, words in (("docs/index.md", "more than thirty"), ("README.md", "thirty more")):
        assert words in " ".join((ROOT / page).read_text().lower().split())
    n_learning = len(registry.built_in_methods()) - 3  # baselines
    assert 34 <= n_learning < 44


# ---------------------------------------------------------------- real-valued queries


def turned(rows):
    """Count the pairs of methods that the dot product reverses, and all pairs; list its gains in AP@1000."""
    kinds, scores = ("AP@1000", "AP@1000:dot"), defaultdict(dict)
    for row in rows:
        if row["metric"] in kinds and row["seed"] == "0":
            scores[row["method"]][row["metric"]] = float(row["value"])
    both = [[of[kind] for kind in kinds] for of in scores.values() if len(of) == 2]
    pairs = [*combinations(both, 2)]
    n_turned = sum((a[0] - b[0]) * (a[1] - b[1]) < 0 for a, b in pairs)
    return n_turned, len(pairs), [by_dot - by_hamming for by_hamming, by_dot in both]


def test_orders_that_real_valued_queries_turn_are_those_of_the_committed_rows():
    (shown,) = tables("Do real-valued queries change the order of methods?", FINDINGS)
    for line in shown:
        dataset, *cells, change = (cell.strip("`") for cell in line.values())
        rows = [row for row in rows_in(ROOT / "results" / dataset) if row["metric"].startswith("AP@1000")]
        if not dataset.endswith("gist-unlabelled"):
            rows = [row for row in rows if not row["features"].startswith("gist")]
        gains = []
        for n_bits, cell in zip(("16", "32", "64"), cells, strict=True):
            n_turned, n_pairs, of_length = turned(row for row in rows if row["n_bits"] == n_bits)
            assert cell == f"{n_turned} of {n_pairs}"
            gains += of_length
        assert change == f"{min(gains):+.3f} to {max(gains):+.3f}"


def test_orders_that_real_valued_queries_turn_for_unseen_classes_are_those_of_the_committed_rows():
    splits = defaultdict(list)
    for row in rows_in(ROOT / "results/cifar10-s1-unseen"):
        splits[row["dataset"]].append(row)
    counts, n_pairs, gains = zip(*(turned(rows) for rows in splits.values()), strict=True)
    assert (len(splits), {*n_pairs}) == (9, {45})
    least, most = (f"{of(map(of, gains)):+.3f}" for of in (min, max))
    assert states(FINDINGS, "nine splits", "32 bits", f"{min(counts)} to {max(counts)} of 45", f"{least} to {most}")

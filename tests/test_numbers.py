"""Numbers in the documents that come from results and benchmarks are those of the files they come from.

Where a part moves to another page, the constant that names its file moves with it.
"""

import csv
import json
import re
import sys
import tomllib
from collections import Counter, defaultdict
from itertools import combinations, product
from math import isnan
from statistics import fmean

import numpy as np
import pytest
from helpers.paths import ROOT
from helpers.result_files import rows_in

from hashbench import evaluate, registry
from hashbench.cards import method_card
from hashbench.pipeline.tuning import LEAD
from hashbench.reports.folds import fold_cells
from hashbench.reports.ties import compare
from hashbench.store.results import read_results

TIES = ROOT / "docs/tutorials/tie-ranges.md"  # the table of what ties do to a score
SCRIPTS = ROOT / "README.md"  # the figure of scripts, and the sentence below it
SPREADS = ROOT / "docs/why-numbers-differ.md"
PROTOCOLS = ROOT / "docs/explanation/protocols.md"
SPEED = ROOT / "docs/explanation/speed.md"
SCALE = ROOT / "docs/scale.md"

ASKED_OF_NETWORKS = {"n_bins": 8, "alpha": 0.5, "learning_rate": 0.1, "pretrained_multiplier": 0.1}  # of talr-ap

RESULTS = (ROOT / "benchmarks/RESULTS.md").read_text()


def text_of(path):
    """A document in one line, so that no sentence is broken."""
    return " ".join(path.read_text().split())


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def tables(title, text=RESULTS):
    """The tables below headings that start so: rows of cells, as texts, by the heads of their columns."""
    found = []
    for part in re.split(r"^#+ ", text, flags=re.MULTILINE)[1:]:
        if part.startswith(title):
            lines = re.findall(r"^\| (.*) \|$", part.replace("|  |", "| |").replace("|  |", "| |"), re.MULTILINE)
            cells = [[cell.strip() for cell in line.split("|")] for line in lines]
            found.append([dict(zip(cells[0], row, strict=True)) for row in cells[2:]])
    return found


# ---------------------------------------------------------------- ties


def test_the_ranges_shown_are_those_of_the_committed_table():
    rows = rows_of(ROOT / "results/tables/table1-tie-range.csv")
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
    assert f"from {float(constant['low']):.2f} to a perfect {float(constant['high']):.2f}" in text_of(TIES)


def test_what_is_said_of_lsh_and_pcah_is_true_of_their_rows():
    rows = {
        (row["method"], row["seed"]): {key: float(row[key]) for key in ("value", "tie_sd", "low", "high")}
        for name in ("lsh", "pcah")
        for row in rows_of(ROOT / f"results/digits/{name}.csv")
        if (row["n_bits"], row["metric"], row["method"] in ("lsh", "pcah")) == ("12", "AP", True)
    }
    near, far, pcah = rows["lsh", "0"], rows["lsh", "2"], rows["pcah", "0"]
    text = text_of(TIES)
    assert f"With seed 2, the ranges of lsh ({far['value']:.4f}) and pcah ({pcah['value']:.4f}) overlap" in text
    assert f"With seed 0, lsh has {near['value']:.4f}" in text
    both = min(far["high"], pcah["high"]) - max(far["low"], pcah["low"])
    assert all(both > (one["high"] - one["low"]) / 2 for one in (far, pcah))
    deviations = [abs(one["value"] - pcah["value"]) / np.hypot(one["tie_sd"], pcah["tie_sd"]) for one in (near, far)]
    assert deviations[0] < 5 < deviations[1]


# ---------------------------------------------------------------- scripts


@pytest.fixture(scope="module")
def of_scripts():
    return rows_of(ROOT / "benchmarks/why_numbers_differ.csv")


@pytest.fixture(scope="module")
def why():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
        import why_numbers_differ
    return why_numbers_differ


def values(rows, codes, order, *, metric="AP@1000", scripts=None):
    chosen = {"codes": codes, "order": order, "metric": metric}
    return {
        row["script"]: float(row["value"])
        for row in rows
        if chosen.items() <= row.items() and (scripts is None or row["script"] in scripts)
    }


def test_counts_of_pairs_that_scripts_turn_are_those_of_the_rows(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import script_orders

    found, text = script_orders.read(), (ROOT / "docs/why-numbers-differ.md").read_text()
    assert f"<!-- pairs -->\n{script_orders.counts(found)}\n<!-- end -->" in text
    cells = {
        (name, one.metric, one.n_bits, one.database): one for name in found for one in script_orders.pairs(found[name])
    }
    one, shuffled = (cells["digits", "AP", 12, order] for order in ("by-class", "shuffled"))
    told = " ".join(text.split())
    assert f"Of the {one.n_pairs} pairs on digits at 12 bits, {one.meet} have ranges that meet" in told
    assert f"random order may reverse {one.open} of them; two scripts reverse {len(one.turned)} if" in told
    assert f"sorted by class, and {len(shuffled.turned)} if it is shuffled" in told
    three = [cells["cifar10-s1:squeezenet", "AP@1000", 12, order] for order in ("by-class", "given", "shuffled")]
    assert [(one.n_pairs, one.meet, one.open, len(one.turned)) for one in three] == [
        *((28, 28, 3, 7), (28, 28, 3, 7), (28, 28, 3, 0))
    ]
    assert {one.database for one in found["digits"]} == {"given", "by-class", "shuffled"}
    for rows in found.values():
        assert all(one.low <= one.lowest <= one.value <= one.high or one.lowest <= one.highest for one in rows)


def test_the_effort_behind_settings_is_that_of_the_committed_trials(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import tuning

    assert f"<!-- effort -->\n{tuning.effort()}\n<!-- end -->" in (ROOT / "docs/explanation/numbers.md").read_text()


def test_shares_of_the_worst_case_below_the_figure_of_three_kinds_are_those_of_the_rows(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import script_orders

    luck, scripts = {}, {}
    for one in script_orders.read()["digits"]:
        name = one.method.split()[0]
        if (one.n_bits, one.database) == (12, "by-class") and name in script_orders.SHOWN:
            whole = one.high - one.low
            luck[name] = round(100 * 2 * one.tie_sd / whole)
            scripts[name] = round(100 * (one.highest - one.lowest) / whole)
    few, many = ("agh", "hashnet"), ("itq", "lsh", "pcah", "sph")
    assert ({luck[name] for name in many}, {luck[name] for name in few}) == ({1}, {4})
    assert (min(scripts[name] for name in many), max(scripts[name] for name in many)) == (2, 6)
    assert sorted(scripts[name] for name in few) == [19, 27]
    text = " ".join((ROOT / "docs/tutorials/tie-ranges.md").read_text().split())
    assert re.search(r"± sd spans 4 % of the grey band for agh and hashnet\b[^.]* 1 % for the", text)
    assert "span 19 to 27 % and 2 to 6 % of it" in text
    sdh = [
        {key: float(row[key]) for key in ("tie_sd", "low", "high")}
        for row in rows_of(ROOT / "results/digits/sdh.csv")
        if (row["n_bits"], row["metric"], row["method"]) == ("12", "AP", "sdh")
    ]
    widths = sorted(one["high"] - one["low"] for one in sdh)
    shares = sorted(round(200 * one["tie_sd"] / (one["high"] - one["low"])) for one in sdh)
    assert f"{widths[0]:.3f} to {widths[-1]:.3f} wide" in text
    assert f"spans {shares[0]} to {shares[-1]} % of it" in text


def test_what_is_said_of_the_estimate_of_luck_is_that_of_its_rows(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    import luck
    import pandas as pd

    rows, text = pd.read_csv(luck.ROWS), (ROOT / "docs/explanation/closed-forms.md").read_text()
    assert f"<!-- estimate -->\n{luck.lay_out(rows)}\n<!-- end -->" in text
    one = rows[(rows["method"] == "constant") & (rows["metric"] == "AP") & (rows["n_bits"] == 12)].iloc[0]
    tied = rows[(rows["measured"] > 1e-12) & (rows["method"] != "constant")]
    least = (tied["tie_sd"] / tied["measured"]).groupby(tied["dataset"]).min()
    n_queries = {"digits": 200, "cifar10-s1:squeezenet": 1000, "cifar10-s2:squeezenet": 10_000}
    few, more, most = (5 * (number / 200) ** 0.5 * least[name] for name, number in n_queries.items())
    told = f"{few:.1f} measured deviations at 200 queries, {more:.1f} at 1,000 and {most:.1f} at 10,000"
    assert told in " ".join(text.split())
    n_rows = tied["dataset"].value_counts()
    told = f"rests on the {len(tied)} measurements above: {n_rows['digits']} on `digits` in 300 orders, "
    told += f"{n_rows['cifar10-s1:squeezenet']} on `cifar10-s1` in 25, {n_rows['cifar10-s2:squeezenet']} on"
    assert told in " ".join(text.split())
    assert [grid.n_orders for grid in luck.GRIDS] == [300, 25, 8]
    assert (tied["measured"] <= 1.1 * tied["bound"]).all()  # of so few orders a deviation is itself uncertain
    assert f"the estimate is {one['tie_sd'] / one['measured']:.1f} times too large" in " ".join(text.split())


def test_numbers_beside_the_figure_of_scripts_are_those_of_the_rows(of_scripts, why):
    drawn = why.TIES_ALONE["AP@1000"]
    by_class, shuffled = (
        values(of_scripts, "classifier-10", order, scripts=drawn) for order in ("by-class", "shuffled")
    )
    text = text_of(SCRIPTS)
    assert len(drawn) == 7
    assert "seven scripts" in text
    assert f"{min(by_class.values()):.2f} to {max(by_class.values()):.2f} with the database sorted by class" in text
    assert {f"{value:.2f}" for value in shuffled.values()} == {"0.58"}
    assert "0.58 by all once it is shuffled" in text
    everything = values(of_scripts, "classifier-10", "by-class")
    scalar, here = (f"{everything[name]:.3f}" for name in ("calc-top-map", "calc-top-map-here"))
    assert re.search(rf"{scalar} with [^.]*NumPy before 1\.25, and {here} with [^.]*NumPy 2\.4\.6", text)
    assert f"2.4.6 with AVX-512: {scalar} and {here}." in text_of(SPREADS)
    stable = {f"{everything[name]:.3f}" for name in ("faiss-cumsum", "callmap", "deepbit", "talr-ap")}
    exact = {row["metric"]: float(row["exact"]) for row in of_scripts if row["codes"] == "classifier-10"}
    told = f"{stable.pop()} by stable sorts, {scalar} by NumPy's old sort, which is not stable, and exactly"
    assert not stable
    assert f"{told} {exact['AP@1000']:.3f}." in text_of(PROTOCOLS)
    assert {f"{values(of_scripts, 'classifier-10', 'shuffled')['calc-top-map']:.2f}"} == {"0.58"}
    for page in (SCRIPTS, ROOT / "PYPI.md", ROOT / "docs/index.md"):
        few = values(of_scripts, "itq-32", "by-class", scripts=drawn).values()
        told = re.sub(r"\]\(.*?\)", "", text_of(page)).replace("[", "")
        assert f"ITQ's 32-bit codes give {min(few):.3f} to {max(few):.3f} with the database sorted by class" in told
    itq = {row["metric"]: float(row["exact"]) for row in of_scripts if row["codes"] == "itq-32"}
    assert f"have AP {itq['AP']:.3f} and AP@1000 {itq['AP@1000']:.3f} on `cifar10-s1`" in text_of(PROTOCOLS)


def test_shuffles_of_the_example_leave_the_luck_that_is_told():
    page, found = SPREADS.read_text(), {}
    code = re.search(r"^```python\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE)[1]
    exec(re.sub(r"^np\.save.*$", "", code, flags=re.MULTILINE), found)
    codes, labels = found["codes"], found["labels"]
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
    told = f"{', '.join(shuffled[:2])} and {shuffled[2]} in three shuffles, and exactly {exact.mean():.3f}."
    assert told in text_of(SPREADS)


def test_one_order_by_class_gives_the_constant_code_as_much_as_is_told():
    data = registry.get_dataset("digits").prepare()
    n_items, n_queries = (np.bincount(data.labels[rows], minlength=10) for rows in (data.database, data.query))
    best = {frozenset(): 0.0}  # of all orders of the classes, by those that stand first
    for size in range(1, 11):
        for first in map(frozenset, combinations(range(10), size)):
            scores = []
            for last in first:
                before, ranks = sum(n_items[list(first - {last})]), np.arange(1, n_items[last] + 1)
                scores.append(best[first - {last}] + n_queries[last] * (ranks / (before + ranks)).mean())
            best[first] = max(scores)
    most = best[frozenset(range(10))] / n_queries.sum()
    assert f"A database sorted by class gives it {most:.2f} in the best order of the classes." in text_of(TIES)


def test_tables_of_scripts_are_those_of_the_rows(of_scripts, why):
    page = SPREADS.read_text()
    parts = {"spreads": why.spreads(of_scripts), "scripts": why.of_scripts(of_scripts)}
    assert why.put_into(page, parts) == page
    for name, by_class in values(of_scripts, "classifier-10", "by-class").items():
        (line,) = re.findall(rf"^\| {re.escape(name)} +\|.*$", page, re.MULTILINE)
        assert line.split("|")[-3].strip() == f"{by_class:.3f}"


def test_sentences_on_scripts_are_true_of_the_rows(of_scripts, why):
    text, ties_alone = text_of(SPREADS), why.TIES_ALONE
    exact = {(row["codes"], row["metric"]): float(row["exact"]) for row in of_scripts}
    assert f"gains {exact['hashnet-32', 'AP@1000'] - exact['hashnet-12', 'AP@1000']:.3f} of exact AP@1000" in text
    by_class = values(of_scripts, "hashnet-12", "by-class", scripts=ties_alone["AP@1000"]).values()
    assert f"12-bit codes {min(by_class):.3f} to {max(by_class):.3f}." in text
    spread = [
        max(found) - min(found)
        for codes, metric in product(("lsh-12", "lsh-32", "itq-12", "itq-32"), ties_alone)
        if (found := values(of_scripts, codes, "by-class", metric=metric, scripts=ties_alone[metric]).values())
    ]
    assert f"lie at most {max(spread):.3f} apart" in text
    away = [
        abs(value - exact[codes, metric])
        for codes, metric in exact
        if metric in ties_alone
        for value in values(of_scripts, codes, "shuffled", metric=metric, scripts=ties_alone[metric]).values()
    ]
    assert "Shuffled, all scripts agree with the exact value to 0.01." in text
    assert max(away) < 0.01


# ---------------------------------------------------------------- speed


def side_by_side(column, codes=("spread", "collapsed"), **chosen):
    """The ratios of a column on both machines, as texts of the size that the sentences have."""
    found = [
        float(row[column].replace(",", ""))
        for table in tables("Side by side")
        for row in table
        if row["codes"] in codes and row.get(column) and chosen.items() <= row.items()
    ]
    return min(found), max(found)


def test_speed_told_is_that_of_the_benchmarks():
    text = text_of(SPEED).replace("*", "")
    least, most = side_by_side("faiss k=100", ["spread"])
    assert f"{least:.1f} to {most:.0f} times faster than faiss's exact 100-neighbour search alone" in text
    least, most = side_by_side("faiss k=100", ["collapsed"])
    assert f"with collapsed codes, as supervised methods make them, {least:.1f} to {most:.0f} times faster" in text
    intel, amd = (
        next(float(row["faiss k=100"]) for row in table if [*row.values()][:3] == ["CIFAR-10 S2", "64", "spread"])
        for table in tables("Side by side")
    )
    assert f"10,000 x 50,000 at 64 bits: {intel:.1f} times faster on Intel, {amd:.1f} on AMD" in text
    for column, words in (
        ("argsort", "took {} times longer at 64 bits"),
        ("stable", "with a stable sort {},"),
        ("ndcg_score", "scikit-learn's `ndcg_score` {}."),
    ):
        least, most = side_by_side(column, bits="64")
        assert words.format(f"{least:.0f} to {most:.0f}") in text
    (more,) = tables("Long codes, many labels, few queries")
    ratios = {row["shape"]: (float(row["spread"]), float(row["collapsed"])) for row in more}
    few = {name: ratios.pop(name) for name in ("10 x 50,000", "1 x 50,000")}
    assert min(map(min, ratios.values())) > 1
    long = [ratio for name, pair in ratios.items() if name.endswith(" bits") for ratio in pair]
    labels, hundred = ratios["2,000 x 50,000, 374 labels"], ratios["100 x 50,000"]
    assert f"256 to 1,024 bits {min(long)} to {max(long)} times faster, 374 labels {min(labels)} to" in text
    assert f"{max(labels)}, 100 x 50,000 items {min(hundred)} to {max(hundred)}." in text
    ten, one = few.values()
    assert f"{min(ten)} to {max(ten)} times its speed), with one query more so ({max(one)})" in text


def test_memory_told_is_that_of_the_first_machine():
    peaks = [row["peak"] for row in tables("Memory")[0]]
    text = text_of(SPEED)
    assert f"193,734 multi-label items peaked at {peaks[1]}," in text
    assert f"20 million codes in an HDF5 file at {peaks[2]}, and with their items in a dataset file" in text
    assert f"one float32 each, at {peaks[3]};" in text


def test_training_told_is_that_of_the_benchmarks():
    text, (histogram,) = text_of(SPEED), tables("Soft histogram")
    times, memory = ([float(row[f"loop: {what}"]) for row in histogram] for what in ("time", "memory"))
    assert f"is {min(times):.0f} to {max(times):.0f} times faster than a loop over its bins and takes" in text
    assert f"takes {min(memory):.0f} to {max(memory):.0f} times less memory" in text
    assert "batches of 128 to 1,024 items and 16 to 128 bits" in text
    step = "times a step of dpsh"
    steps = [float(row[step]) for table in tables("") for row in table if step in row and row["method"] == "talr-ap"]
    assert f"a step of TALR-AP takes {min(steps):.1f} to {max(steps):.1f} times as long as one of DPSH" in text
    assert {row["M"] for row in histogram} == {"128", "256", "512", "1024"}
    assert {row["b"] for row in histogram} == {"16", "32", "64", "128"}


def test_computed_times_of_many_workers_follow_from_the_measured_ones():
    measured, computed = (
        [
            [float(cell.replace(",", "")) for cell in line.split("|")]
            for line in re.findall(rf"^\| ({row}) \|$", part, re.M)
        ]
        for part, row in (
            (SCALE.read_text(), r"[\d,]+ \| [\d,]+ \| \d \| [\d.]+ \| [\d.]+ \| \d+"),
            (SCALE.read_text(), r"[\d,]+ \| [\d,]+ \| \d+ \| [\d,.]+ \| [\d.]+"),
        )
    )
    one, two = (row[3] for row in measured[:2])
    assert f"Two workers are {one / two:.2f} times as fast as one." in text_of(SCALE)
    for items, queries, workers, seconds, rate, _ in measured:
        assert items * queries / workers / seconds / 1e9 == pytest.approx(rate, rel=0.02)
    assert len(computed) == 9
    for items, queries, workers, seconds, _ in computed:
        assert seconds == pytest.approx(items * queries / workers / 1e9 / measured[1][4], rel=0.02, abs=0.05)


# ---------------------------------------------------------------- trials


def test_settings_of_all_learned_methods_had_as_many_trials_and_moved_by_the_rule():
    scores, failed, counts = defaultdict(list), set(), Counter()
    for row in rows_of(ROOT / "benchmarks/tuning.csv"):
        if not row["dataset"].endswith(":images"):
            counts[row["method"], row["dataset"], row["n_bits"]] += 1
            key = row["method"], row["setting"]
            if row["failure"]:
                failed.add(key)
            else:
                score = (float(row["among_held_out"]) + float(row["to_trained"])) / 2
                scores[key].append((row["dataset"].split(":")[0], score))
    (shown,) = tables("Settings of the learned methods")
    everywhere = product((row[""] for row in shown), ("cifar10-s1:squeezenet", "tmc2007"), ("16", "48"))
    assert counts == dict.fromkeys(everywhere, 9)
    means = {
        key: [fmean(score for name, score in found if name == dataset) for dataset in ("cifar10-s1", "tmc2007")]
        for key, found in scores.items()
        if key not in failed
    }
    for row in shown:
        of_method = {setting: pair for (method, setting), pair in means.items() if method == row[""]}
        setting, best = max(of_method.items(), key=lambda item: fmean(item[1]))
        values = {name: value for name, value in json.loads(setting).items() if isinstance(value, float)}
        if row["best of nine"] != "the same":
            assert [row["best cifar10-s1"], row["best tmc2007"]] == [f"{score:.3f}" for score in best]
            assert all(f"{value:g}" in row["best of nine"] for value in values.values())
        defaults, tuned = method_card(row[""]).params, method_card(row[""]).presets.get("tuned", {})
        in_use = defaults | tuned
        if row["now"].startswith("the best") or "tuned" in row["now"]:
            assert {name: in_use[name] for name in values} == values
            assert bool(tuned) == ("tuned" in row["now"])
        lead = re.search(r"leads by ([.\d]+)$", row["now"])
        if lead:
            was = [float(row[name]) for name in ("was cifar10-s1", "was tmc2007")]
            if row[""] not in ("talr-ap", "talr-ndcg"):  # whose default was has other bins
                assert float(lead[1]) == pytest.approx(fmean(best) - fmean(was), abs=6e-4)
            assert (float(lead[1]) > LEAD) == row["now"].startswith("the best")


def test_further_trials_of_mihash_are_as_told():
    (shown,), found = tables("Bins of mihash"), defaultdict(list)
    trials = rows_of(ROOT / "benchmarks/further.csv")
    assert f"Nothing was chosen from {len(trials)} further trials of mihash's bins" in text_of(
        ROOT / "docs/explanation/numbers.md"
    )
    for row in trials:
        setting = json.loads(row["setting"])
        line = row["dataset"].split(":")[0], setting["n_bins"], setting.get("alpha", 2.0)
        found[*line, f"{row['n_bits']} bits"].append(float(row["among_held_out"]) / 2 + float(row["to_trained"]) / 2)
    lengths = list(shown[0])[3:]
    told = {(row["dataset"], int(row["bins"]), float(row["alpha"]), key): row[key] for row in shown for key in lengths}
    means = {key: f"{fmean(scores):.3f}" for key, scores in found.items()}
    assert told == dict.fromkeys(told, "-") | means
    assert {len(scores) for (dataset, *_), scores in found.items() if dataset == "tmc2007"} == {2}
    for row in shown:
        rising = [float(row[key]) for key in lengths if row[key] != "-"]
        assert rising == sorted(rising) or (row["bins"], row["alpha"]) == ("8", "4")
    for dataset, n_bins, alpha, key in means:
        assert n_bins == 8 or told[dataset, 8, alpha, key] > told[dataset, n_bins, alpha, key]
    defaults, fixed = ([mihash(name, n_bins) for name in ("tmc2007", "cifar10-s2")] for n_bins in (None, 8))
    fixed[1] = defaults[1][:1] + fixed[1]  # the rule's bins are 8 at 16 bits
    text = " ".join(RESULTS.split())
    assert "hardly ({} from 16 to 64 bits, and {} from 16 to 48)".format(*map(", ".join, defaults)) in text
    assert "On queries 8 bins at every length give {} and {}.".format(*map(", ".join, fixed)) in text


def mihash(dataset, n_bins):
    """AP of mihash on features, means of its seeds in the order of code lengths, with so many bins."""
    found = defaultdict(list)
    for row in rows_in(ROOT / f"results/{dataset}"):
        if (row["method"], row["metric"]) == ("mihash", "AP"):
            params = json.loads(row["params"])
            if (params["n_bins"], params["alpha"], params["head"]) == (n_bins, 2.0, "mlp"):
                found[int(row["n_bits"])].append(float(row["value"]))
    return [f"{fmean(found[n_bits]):.3f}" for n_bits in sorted(found)]


def test_settings_taken_from_images_led_in_trials_on_held_out_items():
    (shown,), trials = tables("From images"), trials_from_images("tuning.csv")
    grid = tomllib.loads((ROOT / "benchmarks/end_to_end.toml").read_text())
    assert sorted({row[""] for row in shown}) == sorted(trials) == sorted(grid["methods"])
    counted = Counter(name for name, found in trials.items() for setting, _ in found if not asks_of_network(setting))
    assert counted == {name: 3 * n_rows for name, n_rows in Counter(row[""] for row in shown).items()}
    for row in shown:
        method = registry.get_method(row[""])(**grid["params"] | grid["methods"][row[""]])
        scores = {}
        for setting, score in trials[row[""]]:
            if not asks_of_network(setting) and setting["learning_rate"] == float(row["rate"]):
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
    asked = {asks_of_network(setting): f"{score:.3f}" for setting, score in trials if asks_of_network(setting)}
    (base,) = (score for setting, score in trials if setting == ASKED_OF_NETWORKS)
    assert {row["setting"].strip("`"): row["held out"] for row in shown} == {"": f"{base:.3f}"} | asked


def test_earlier_trials_from_images_are_as_told():
    (shown,) = tables("What was tried before")
    of_means = {
        kind: trials_from_images("tuning-earlier.csv", kind) for kind in ("before training", "that follows batches")
    }
    best = defaultdict(dict)
    for kind, trials in of_means.items():
        for name, some in trials.items():
            for setting, score in some:
                if setting.keys() & {"image_size", "train_from", "weight_decay"} or isnan(score):
                    continue
                head = f"mean {kind}" + ", head first" * (setting.get("head_epochs", 0) > 0)
                best[name][head] = max(score, best[name].get(head, 0))
    told = {row[""]: {key: float(row[key]) for key in list(row)[1:] if row[key] != "-"} for row in shown}
    n_trials = sum(
        not setting.keys() & {"image_size", "train_from", "weight_decay"}
        for trials in of_means.values()
        for some in trials.values()
        for setting, _ in some
    )
    assert f"The best of {n_trials} other trials of 6 epochs" in RESULTS
    assert told == {name: {head: round(score, 3) for head, score in scores.items()} for name, scores in best.items()}


def test_earlier_trials_from_images_are_counted():
    counts = Counter(row["method"] for row in rows_of(ROOT / "benchmarks/tuning-earlier.csv"))
    (shown,) = tables("How settings are chosen", (ROOT / "docs/explanation/numbers.md").read_text())
    cells = {name: row["images, earlier code"] for row in shown for name in re.findall("`(.+?)`", row["method"])}
    assert cells.keys() == {*registry.built_in_methods()}
    assert {name: int(cell) for name, cell in cells.items() if cell != "0"} == counts


def trials_from_images(name, centred_by=""):
    """Settings and scores of the trials on images, by method; the score of a failure is NaN."""
    trials = defaultdict(list)
    for row in rows_of(ROOT / "benchmarks" / name):
        if row["dataset"] == "cifar10-s1:images" and row.get("centred_by", "").endswith(centred_by):
            assert (row["n_bits"], row["seed"]) == ("32", "0")
            if row["epochs"] == "6":
                scores = [row[key] for key in ("among_held_out", "to_trained")]
                score = float("nan") if "" in scores else sum(map(float, scores)) / 2
                trials[row["method"]].append((json.loads(row["setting"]), score))
    return trials


def asks_of_network(setting):
    return " ".join(f"{key}={setting[key]}" for key in ("image_size", "train_from") if key in setting)


def test_what_dispersion_trades_is_as_in_the_committed_rows():
    found = defaultdict(list)
    for dataset in ("cifar10-s1", "cifar10-s2"):
        for row in rows_in(ROOT / f"results/{dataset}"):
            if (row["method"], row["features"]) == ("dsh", "squeezenet (JPEG)"):
                params = json.loads(row["params"])
                if (params["learning_rate"], params["margin"], params["head"]) == (0.03, 2.0, "mlp"):
                    found[dataset, row["metric"], row["n_bits"], params["objective"]].append(float(row["value"]))
    n_seeds = {"cifar10-s1": 3, "cifar10-s2": 1}

    def told(dataset, metric):
        for n_bits in ("12", "24"):
            both = [found[dataset, metric, n_bits, kind] for kind in ("dispersion", "original")]
            assert [len(values) for values in both] == 2 * [n_seeds[dataset]]
            yield " instead of ".join(f"{fmean(values):.3f}" for values in both)

    text = text_of(ROOT / "docs/tables.md")
    for dataset, in_words in (("cifar10-s1", "{} at 12 bits and {} at 24"), ("cifar10-s2", "{} and {}")):
        of_lgap = in_words.format(*told(dataset, "LGAP@r2"))
        assert f"LGAP@r2 is {of_lgap}, AP {' and '.join(told(dataset, 'AP'))}" in text


def test_what_training_from_images_gives_is_as_in_the_committed_rows():
    text, lengths = (ROOT / "docs/tables.md").read_text(), ("12", "24", "32", "48")
    (shown,), ours, tables_of_ap = tables("From images", text), defaultdict(list), "results/tables/table1"
    for row in rows_in(ROOT / "results/cifar10-s1"):
        if row["features"] == "images (JPEG)":
            ours[row["method"], row["metric"], row["n_bits"]].append(float(row["value"]))
    on_features = {
        (row["method"], row["n_bits"]): float(row["value"])
        for row in rows_of(ROOT / f"{tables_of_ap}-tie-range.csv")
        if (row["dataset"], row["features"]) == ("cifar10-s1", "squeezenet (JPEG)")
    }
    published, verdicts = {}, Counter()
    for row in rows_of(ROOT / f"{tables_of_ap}-published.csv"):
        if row["our_features"] == "images (JPEG)" and row["source"].startswith("TALR"):
            published[row["our_method"], row["n_bits"]] = float(row["published"])
            verdicts[row["verdict"].partition(";")[0]] += 1

    def told(values):
        return " ".join(f"{value:.3f}"[1:] for value in values)

    assert [row[""] for row in shown] == ["dpsh", "dtsh", "hashnet", "mihash", "talr-ap"]
    for row in shown:
        for metric in ("AP", "AP@1000", "NDCG"):
            assert row[metric] == told(fmean(ours[row[""], metric, n_bits]) for n_bits in lengths)
        assert row["AP of a head on features"] == told(on_features[row[""], n_bits] for n_bits in lengths)
        assert row["in the paper"] in ("-", told(published.get((row[""], n_bits), 0) for n_bits in lengths))
    assert [row[""] for row in shown if row["in the paper"] == "-"] == ["hashnet"]
    n_seeds = {key: len(values) for key, values in ours.items() if key[1] == "AP"}
    assert n_seeds == dict.fromkeys(n_seeds, 1) | {(name, "AP", "32"): 3 for name in ("hashnet", "talr-ap")}
    orders = [row for row in rows_of(ROOT / f"{tables_of_ap}-orders.csv") if row["our_features"] == "images (JPEG)"]
    assert {(row["verdict"], row["ties"]) for row in orders} == {("open", "unknown")}
    text = " ".join(text.split())
    assert set(verdicts) == {"unknown", "below"}
    assert f"{verdicts['below']} of {len(published)} lie above our worst-case range" in text
    assert f"for the {verdicts['unknown']} inside it" in text
    assert f"ranges of all {len(orders)} pairs of the four meet" in text
    block = (ROOT / f"{tables_of_ap}.md").read_text().partition("## cifar10-s1 (images (JPEG)): AP")[2]
    taus = re.findall(r"\d+ bits (-?[\d.]+) \(", block.partition("Kendall's tau")[2].partition("\n")[0])
    assert f"the two orders is {', '.join(taus[:-1])} and {taus[-1]} from 12 to 48 bits" in text


# ---------------------------------------------------------------- orders


def test_counts_of_published_orders_are_those_of_the_committed_table():
    rows = rows_of(ROOT / "results/tables/table1-orders.csv")
    text = text_of(ROOT / "docs/tables.md")
    counts = Counter((row["verdict"], row["ties"]) for row in rows)
    assert {*counts} == {
        *product(("holds", "turned"), ("every order", "luck")),
        *(("open", "open"), ("open", "unknown")),
    }
    assert f"Of the {len(rows)} comparisons of table 1" in text
    every, luck = ([counts[verdict, ties] for verdict in ("holds", "turned")] for ties in ("every order", "luck"))
    assert f"**{every[0]} hold here in every order of ties and {luck[0]} under luck; {every[1]} are turned in" in text
    assert (
        f"every order and {luck[1]} under luck; {counts['open', 'open']} is open, and {counts['open', 'unknown']} are"
        in text
    )
    of_others = [row for row in rows if not row["source"].startswith("TALR")]
    on_gist = sum(row["our_features"].startswith("gist") for row in rows)
    distinct = {tuple(row[key] for key in ("source", "setting", "metric", "n_bits", "higher", "lower")) for row in rows}
    assert f"All but {len(of_others)} of the comparisons are TALR's" in text
    assert f"{on_gist} of them, with GIST. They are {len(distinct)} published orders" in text
    holds, n_rows = (
        [sum(row["n_bits"] == length and row["verdict"] in verdicts for row in rows) for length in ("12", "48")]
        for verdicts in (["holds"], ["holds", "turned", "open"])
    )
    assert f"at 12 bits {holds[0]} of {n_rows[0]} hold, at 48 bits {holds[1]} of {n_rows[1]}" in text
    turned = [row for row in rows if row["verdict"] == "turned"]
    under_luck = [row for row in turned if row["ties"] == "luck"]
    assert f"Of the {len(turned)} that are turned, the {len(under_luck)} under luck are on SqueezeNet's" in text
    assert {(row["our_dataset"], row["our_features"]) for row in under_luck} == {("cifar10-s1", "squeezenet (JPEG)")}
    lower = Counter(row["our_lower"] for row in under_luck)
    assert lower == {"dpsh": 11, "dtsh": 4}
    on_s2 = [(row["our_higher"], row["our_lower"]) for row in turned if row["our_dataset"] == "cifar10-s2"]
    assert f"Of the {every[1]} that are turned in every order, {len(on_s2)} are on `cifar10-s2`" in text
    assert sorted(on_s2) == [("mihash", "dtsh")] * 4 + [("talr-ap", "dtsh")]
    elsewhere = {
        (row["our_higher"], row["our_lower"], row["n_bits"])
        for row in turned
        if row["our_dataset"] != "cifar10-s2" and row["ties"] == "every order"
    }
    assert elsewhere == {("machash", "structhash", "48"), ("fasthash", "structhash", "48")}
    others = rows_of(ROOT / "results/tables/table2-orders.csv")
    assert {row["source"].partition(" ")[0] for row in others} == {"SDC"}
    assert {row["ties"] for row in others} == {"unknown"}
    assert f"**all {len(others)} are unknown**" in text
    (greedyhash,) = of_others
    assert (greedyhash["verdict"], greedyhash["our_higher"], greedyhash["our_lower"]) == ("holds", "greedyhash", "dfh")
    values = [f"{float(greedyhash[key]):.3f}" for key in ("ours_higher", "ours_lower")]
    assert f"with both at their `tuned` settings: {' and '.join(values)}" in text


# ---------------------------------------------------------------- unseen classes


def test_what_luck_leaves_open_of_unseen_classes_is_that_of_the_rows():
    results = read_results(ROOT / "results")
    cells = fold_cells(results[results["metric"] == "AP"])
    cells = cells[cells["base"].eq("cifar10-s1") & cells["n_bits"].eq(32) & ~cells["group"].isin(["baseline", ""])]
    answers = {}
    for scope in ("unseen among all", "unseen"):
        block = cells[cells["scope"] == scope].set_index("method")
        itq, learned = block.loc["itq"], block[block["group"] != "unsupervised"]
        answers[scope] = Counter((str(compare(cell, itq)), cell.value > itq.value) for _, cell in learned.iterrows())
        assert answers[scope].total() == 22
    among_all, among = answers.values()
    text = text_of(ROOT / "docs/tables.md")
    assert among_all == {("luck", False): 17, ("unknown", False): 5}
    assert "Luck separates 17 of the 22 from ITQ among all: all are below" in text
    assert among == {("luck", False): 15, ("luck", True): 1, ("open", False): 1, ("unknown", False): 5}
    assert (
        "Among themselves it separates 16: 15 are below, talr-ndcg is above, and sdh is open. For the other 5" in text
    )


def test_what_labels_teach_of_unseen_classes_is_as_in_the_committed_table():
    rows, text = rows_of(ROOT / "results/tables/unseen.csv"), text_of(ROOT / "docs/tables.md")
    seen = {row["method"]: float(row["32"]) for row in rows if row["dataset"] == "cifar10-s1" and row["32"]}
    told, above_lsh, passing = {}, {}, {}
    for suffix in ("-database-all", ""):
        block = [row for row in rows if row["dataset"] == f"cifar10-s1-unseen3{suffix}" and row["32"]]
        values = {row["method"]: float(row["32"]) for row in block}
        names = {row["method"] for row in block if row["group"] not in ("baseline", "unsupervised")}
        learned = {name: values[name] for name in names}
        told[suffix] = f"{values['itq']:.3f}", f"{min(learned.values()):.3f} to {max(learned.values()):.3f}"
        above_lsh[suffix] = sum(value > values["lsh"] for value in learned.values())
        better = [name for name in names if learned[name] > values["itq"]]
        assert better == ([] if suffix else ["talr-ndcg"])
        folds = by_fold("cifar10-s1", 3, suffix, "32")
        assert sorted(folds) == ["0", "1", "2"]
        for fold, found in folds.items():
            low, high = found["itq"][1:]
            apart = {name for name in names if not (found[name][2] > low and found[name][1] < high)}
            assert apart == ({"hyp2"} if (suffix, fold) == ("-database-all", "0") else set())
        passing[suffix] = [sum(folds[fold][name][0] > folds[fold]["itq"][0] for name in names) for fold in "012"]
    n_pairs = 3 * len(names)
    assert f"ITQ is above in {n_pairs - sum(passing['-database-all'])} of {n_pairs} pairs of method and fold" in text
    score, scores = told["-database-all"]
    assert f"score {score} with ITQ and {scores} with the {len(names)} methods that learn from labels" in text
    least, most = min(seen[name] for name in names), max(seen[name] for name in names)
    assert f"these methods score {least:.2f} to {most:.2f}, and ITQ {seen['itq']:.2f}" in text
    assert "they score {} with ITQ and {} with labels; only talr-ndcg".format(*told[""]) in text
    assert "among themselves {}, {} and {} methods pass ITQ on the three folds".format(*passing[""]) in text
    assert "on the three folds, among all {}, {} and {}".format(*passing["-database-all"]) in text
    assert (
        f"Of the {len(names)}, {above_lsh['-database-all']} score above random hyperplanes (LSH) among all, and "
        f"{above_lsh['']} among themselves"
    ) in text


@pytest.mark.slow
def test_ranges_on_unseen_digits_lie_as_is_told(hashbench, tmp_path):
    text = text_of(ROOT / "docs/tables.md")
    assert "the ranges of csq and sdh lie below ITQ's and do not meet it, in both columns on each of the three" in text
    names = [f"digits-unseen3-fold{fold}{suffix}" for fold in range(3) for suffix in ("", "-database-all")]
    methods = [f"--method={name}" for name in ("itq", "csq", "sdh")]
    done = hashbench("run", *methods, *(f"--dataset={name}" for name in names), "--bits", 32, "--results", tmp_path)
    assert done.exit_code == 0
    cells = {
        (row["dataset"], row["method"]): row for row in rows_in(tmp_path / "digits-unseen") if row["metric"] == "AP"
    }
    for name, method in product(names, ("csq", "sdh")):
        assert float(cells[name, method]["high"]) < float(cells[name, "itq"]["low"])


def by_fold(base, n_unseen, suffix, n_bits):
    """Means over seeds of value, low and high, by fold and method."""
    found = defaultdict(list)
    for row in rows_in(ROOT / f"results/{base}-unseen"):
        name = re.fullmatch(rf"{base}-unseen{n_unseen}-fold(\d){suffix}", row["dataset"])
        if name and (row["metric"], row["n_bits"]) == ("AP", n_bits):
            found[name[1], row["method"]].append([float(row[key]) for key in ("value", "low", "high")])
    folds = defaultdict(dict)
    for (fold, method), values in found.items():
        folds[fold][method] = [sum(column) / len(values) for column in zip(*values, strict=True)]
    return folds


# ---------------------------------------------------------------- said twice


@pytest.mark.parametrize(
    ("phrase", "home", "pages"),
    [
        (r"[\d.]+ to [\d.]+ times faster than faiss", SPEED, ["README.md"]),
        (r"0\.\d\d to 0\.\d\d with the database sorted by class", SCRIPTS, ["docs/index.md"]),
    ],
)
def test_what_several_pages_say_they_say_alike(phrase, home, pages):
    said = {re.sub(r"\*", "", found) for found in re.findall(phrase, text_of(home).replace("*", ""))}
    for page in pages:
        assert set(re.findall(phrase, text_of(ROOT / page))) <= said, page
        assert re.search(phrase, text_of(ROOT / page)), page


def test_the_landing_page_counts_methods_truly():
    from hashbench.registry import built_in_methods

    assert "more than thirty" in text_of(ROOT / "docs/index.md").lower()
    assert "thirty more" in text_of(ROOT / "README.md")
    n_learning = len(built_in_methods()) - 3  # baselines
    assert 34 <= n_learning < 44

"""Scripts and orders beside the libraries that they emulate, on a thousand random cases with many ties each."""

import functools
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from helpers.script_values import explained
from numpy._core._multiarray_umath import __cpu_dispatch__

from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.reports.explain import orders

pytestmark = pytest.mark.slow
N_CASES, N_QUERIES = 1000, 10
EXTRA = "is not there: pip install 'hashbench[originals]'"
SCRIPTS = """
sklearn-ap sklearn-lrap sklearn-ndcg sklearn-ndcg-linear faiss-cumsum
torchmetrics-map torchmetrics-map-bits-less-d retrieval-map retrieval-map-bits-less-d
trec_eval trec_eval-p trec_eval-r trec_eval-ndcg
mteb-binary mteb-binary-ndcg mteb-binary-p mteb-binary-r
mteb-binary-dot mteb-binary-dot-ndcg mteb-binary-dot-p mteb-binary-dot-r
ranx-here ranx-run-here ranx-burges-here ranx-run-burges-here ranx-ndcg-here ranx-run-ndcg-here
"""


class Case:
    """Ten queries of one database: codes, levels, distances, and a cut, sometimes beyond the database."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.n_items = int(rng.integers(120, 500) if seed % 10 == 0 else rng.integers(2, 40))
        self.n_bits, self.cut = int(rng.choice([2, 4, 8])), int(rng.integers(1, self.n_items + 3))
        self.query, self.database = (rng.random((n, self.n_bits)) < 0.5 for n in (N_QUERIES, self.n_items))
        self.levels = rng.integers(1, 4, (N_QUERIES, self.n_items)) * (
            rng.random((N_QUERIES, self.n_items)) < rng.choice([0, 0.1, 0.5, 1], (N_QUERIES, 1), p=[0.2, 0.4, 0.3, 0.1])
        )
        self.relevant, self.gains = (self.levels > 0).astype(int), 2**self.levels - 1
        self.distances = (self.query[:, None] != self.database).sum(axis=2)
        self.names = [f"d{item:03}" for item in range(self.n_items)]

    def emulated(self):
        at_cut = ["AP", "NDCG", "R", *(["P"] if self.cut <= self.n_items else [])]  # no script here gives P beyond
        metrics = ["AP", "NDCG", "NDCG:trec", *(f"{name}@{self.cut}" for name in at_cut), f"NDCG@{self.cut}:trec"]
        explanations = explained(metrics, self.query, self.database, Explicit(self.levels), SCRIPTS.split())
        return {(one.evaluator.name, one.metric.replace(f"@{self.cut}", "@k")): one.value for one in explanations}

    def mean(self, score, *arrays):
        """Average a library's score over queries."""
        return float(np.mean([score(*parts) for parts in zip(*arrays, strict=True)]))

    def qrels(self):
        return self.by_name(self.levels)

    def run(self):
        return self.by_name(-self.distances.astype(float))

    def by_name(self, values):
        rows = values.tolist()
        return {f"q{number}": dict(zip(self.names, row, strict=True)) for number, row in enumerate(rows)}


@pytest.fixture(scope="module")
def cases():
    return [Case(seed) for seed in range(N_CASES // N_QUERIES)]


@pytest.fixture(scope="module")
def emulated(cases):
    return [case.emulated() for case in cases]


def differing(cases, emulated, originals, tolerance=1e-12):
    """Return the values that differ from those of the originals, by case, script and metric."""
    return [
        (number, key, values[key], original)
        for number, (case, values) in enumerate(zip(cases, emulated, strict=True))
        for key, original in originals(case).items()
        if values[key] != pytest.approx(original, abs=tolerance)
    ]


def test_its_emulators_give_what_scikit_learn_gives(cases, emulated):
    from sklearn.metrics import average_precision_score, label_ranking_average_precision_score, ndcg_score

    def originals(case):
        scores = -case.distances
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is relevant to some queries
            precision = case.mean(average_precision_score, case.relevant, scores)
        return {
            ("sklearn-ap", "AP"): precision,
            ("sklearn-lrap", "AP"): label_ranking_average_precision_score(case.relevant, scores),
            ("sklearn-ndcg", "NDCG"): ndcg_score(case.gains, scores),
            ("sklearn-ndcg", "NDCG@k"): ndcg_score(case.gains, scores, k=case.cut),
            ("sklearn-ndcg-linear", "NDCG:trec"): ndcg_score(case.levels, scores),
            ("sklearn-ndcg-linear", "NDCG@k:trec"): ndcg_score(case.levels, scores, k=case.cut),
        }

    assert differing(cases, emulated, originals) == []


def test_its_emulators_give_what_torchmetrics_gives(cases, emulated):
    retrieval = pytest.importorskip("torchmetrics.functional.retrieval", reason=f"torchmetrics {EXTRA}")
    import torch
    from torchmetrics.retrieval import RetrievalMAP

    def originals(case):
        relevant, gains, levels = map(torch.from_numpy, (case.relevant, case.gains, case.levels))
        ids = torch.arange(N_QUERIES)[:, None].expand(relevant.shape)
        values = {}
        for ending, scores in (("", 1 / (1 + case.distances)), ("-bits-less-d", case.n_bits - case.distances)):
            scores = torch.from_numpy(scores.astype(np.float32))
            for at, first in (("", {}), ("@k", {"top_k": case.cut})):
                ap = functools.partial(retrieval.retrieval_average_precision, **first)
                ndcg = functools.partial(retrieval.retrieval_normalized_dcg, **first)
                values |= {
                    (f"torchmetrics-map{ending}", f"AP{at}"): case.mean(ap, scores, relevant),
                    (f"retrieval-map{ending}", f"AP{at}"): float(RetrievalMAP(**first)(scores, relevant, ids)),
                    ("sklearn-ndcg", f"NDCG{at}"): case.mean(ndcg, scores, gains),
                    ("sklearn-ndcg-linear", f"NDCG{at}:trec"): case.mean(ndcg, scores, levels),
                }
        return values

    assert differing(cases, emulated, originals, tolerance=1e-6) == []  # they compute in float32


def test_its_emulators_give_what_trec_eval_gives(cases, emulated):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not there: make test")

    def originals(case):
        measures = {
            ("trec_eval", "AP"): "map",
            ("trec_eval", "AP@k"): f"map_cut_{case.cut}",
            ("trec_eval-r", "R@k"): f"recall_{case.cut}",
            ("trec_eval-ndcg", "NDCG:trec"): "ndcg",
            ("trec_eval-ndcg", "NDCG@k:trec"): f"ndcg_cut_{case.cut}",
        }
        if case.cut <= case.n_items:
            measures |= {("trec_eval-p", "P@k"): f"P_{case.cut}"}
        names = {re.sub(r"_(\d+)$", r".\1", name) for name in measures.values()}
        queries = pytrec_eval.RelevanceEvaluator(case.qrels(), names).evaluate(case.run()).values()
        return {key: np.mean([scores[name] for scores in queries]) for key, name in measures.items()}

    assert differing(cases, emulated, originals) == []


def test_its_emulators_give_what_the_libraries_below_mteb_give(cases, emulated):
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install 'hashbench[learned]'")
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not there: make test")

    def originals(case):
        query, database = (torch.from_numpy(codes.astype(np.float32)) for codes in (case.query, case.database))
        cosine = torch.nn.functional.normalize(query) @ torch.nn.functional.normalize(database).T
        values = {}
        is_judged = case.relevant.any(axis=1)
        if case.cut > case.n_items or not is_judged.any():
            return values
        names = {"": "map_cut", "-ndcg": "ndcg_cut", "-p": "P", "-r": "recall"}
        metrics = {"": "AP@k", "-ndcg": "NDCG@k:trec", "-p": "P@k", "-r": "R@k"}
        evaluator = pytrec_eval.RelevanceEvaluator(case.qrels(), {f"{name}.{case.cut}" for name in names.values()})
        for script, scores in (("mteb-binary", cosine), ("mteb-binary-dot", query @ database.T)):
            results = evaluator.evaluate(case.by_name(scores.numpy().astype(float)))
            judged = [of_query for of_query, counts in zip(results.values(), is_judged, strict=True) if counts]
            for ending, name in names.items():
                mean = np.mean([of_query[f"{name}_{case.cut}"] for of_query in judged])
                values[f"{script}{ending}", metrics[ending]] = mean
        return values

    assert differing(cases, emulated, originals) == []


@pytest.mark.slow  # it is compiled on first use
@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_its_emulators_give_what_ranx_gives(cases, emulated):
    ranx = pytest.importorskip("ranx", reason=f"ranx {EXTRA}")

    def originals(case):
        names = {"": "map", "-burges": "ndcg_burges", "-ndcg": "ndcg"}
        metrics = {"": ("AP", "AP@k"), "-burges": ("NDCG", "NDCG@k"), "-ndcg": ("NDCG:trec", "NDCG@k:trec")}
        values = {}
        for script, run in (("ranx", case.run()), ("ranx-run", ranx.Run(case.run()))):
            qrels = case.qrels() if script == "ranx" else ranx.Qrels(case.qrels())
            all_names = [name + at for name in names.values() for at in ("", f"@{case.cut}")]
            scores = ranx.evaluate(qrels, run, all_names, make_comparable=False)
            for ending, name in names.items():
                for metric, at in zip(metrics[ending], ("", f"@{case.cut}"), strict=True):
                    values[f"{script}{ending}-here", metric] = scores[name + at]
        return values

    assert differing(cases, emulated, originals) == []


def test_its_emulator_gives_what_a_search_of_faiss_gives(cases, emulated):
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")

    def average_precision(is_relevant):
        hits = np.cumsum(is_relevant)
        return (hits / np.arange(1, len(hits) + 1))[is_relevant].sum() / max(hits[-1], 1)

    def originals(case):
        index = faiss.IndexBinaryFlat(8)
        query, database = (pack(np.pad(codes, [(0, 0), (0, 8 - case.n_bits)])) for codes in (case.query, case.database))
        index.add(database)
        values = {}
        for metric, n_first in (("AP", case.n_items), ("AP@k", case.cut)):
            if n_first <= case.n_items:
                rows = index.search(query, n_first)[1]
                relevant = np.take_along_axis(case.relevant, rows, axis=1) > 0
                values["faiss-cumsum", metric] = case.mean(average_precision, relevant)
        return values

    assert differing(cases, emulated, originals) == []


def keys():
    """Yield a thousand rows of keys with few distinct values, and the number of items requested.

    A third are in random order; the others are sorted, reversed, rise and fall, fall and rise, or nearly sorted, which
    makes quicksorts turn to heaps and to medians of medians.
    """
    rng = np.random.default_rng(1)
    for number in range(N_CASES):
        n_items = int(rng.integers(60, 900) if number % 4 == 0 else rng.integers(1, 60))
        row = rng.integers(0, rng.integers(1, 13), n_items)
        if number % 3:
            row = np.sort(row if number % 2 else rng.integers(0, 200, n_items))
            halves = row[::2], row[1::2]
            row = [
                row,
                row[::-1],
                np.concatenate([halves[0], halves[1][::-1]]),
                np.concatenate([halves[0][::-1], halves[1]]),
                np.where(rng.random(n_items) < 0.05, row[::-1], row),
                np.roll(row, n_items // 2),
            ][number // 12 % 6]
        yield row, int(rng.integers(1, n_items + 1))


def in_other_orders(order, original):
    """Return the numbers of rows of keys that an original puts in another order."""
    return [
        number
        for number, (row, n_first) in enumerate(keys())
        if order(row, n_first)[:n_first].tolist() != np.asarray(original(row, n_first))[:n_first].tolist()
    ]


@pytest.mark.parametrize(
    ("order", "original"),
    [
        (orders.numpy_scalar, lambda row, n_first: np.argsort(row.astype(np.int16))),  # sorted without vectors
        (orders.stable, lambda row, n_first: np.lexsort([row])),
        (orders.descending, lambda row, n_first: np.argsort(-row, kind="stable")[::-1]),
    ],
    ids=["scalar", "stable", "descending"],
)
def test_ties_come_in_the_order_of_numpy(order, original):
    assert in_other_orders(order, original) == []


WITHOUT_VECTORS = """
import sys
import numpy as np

rows = np.load(sys.argv[1])
sorted_, first = [], []
for key in rows.files:
    row, n_first = rows[key][:-1].astype(np.float32), int(rows[key][-1])
    sorted_.append(np.argsort(row))
    first.append(np.argpartition(row, n_first - 1)[:n_first])
    first[-1] = first[-1][np.argsort(row[first[-1]])]
np.savez(sys.argv[2], sorted=np.concatenate(sorted_), first=np.concatenate(first))
"""


def test_ties_come_in_the_order_of_numpy_without_vector_instructions(tmp_path):
    np.savez(tmp_path / "rows.npz", *(np.append(row, n_first) for row, n_first in keys()))
    subprocess.run(
        [sys.executable, "-c", WITHOUT_VECTORS, tmp_path / "rows.npz", tmp_path / "sorted.npz"],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)},
        check=True,
    )
    originals = np.load(tmp_path / "sorted.npz")
    for name, order in (("sorted", orders.numpy_scalar), ("first", orders.numpy_partition)):
        rows = [order(row, n_first) for row, n_first in keys()]
        np.testing.assert_array_equal(np.concatenate(rows), originals[name])


def test_ties_come_in_the_order_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install 'hashbench[learned]'")

    def tensor(row):
        return torch.from_numpy(row.astype(np.float32))

    assert in_other_orders(orders.libstdcxx, lambda row, n_first: torch.argsort(tensor(row))) == []
    assert in_other_orders(orders.torch_topk, lambda row, n_first: tensor(row).topk(n_first, largest=False)[1]) == []

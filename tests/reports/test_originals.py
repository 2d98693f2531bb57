"""Scripts and orders beside the libraries that they stand for, on a thousand random cases with many ties each."""

import functools
import os
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__

from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.reports.explain import orders
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.evaluators import named

pytestmark = pytest.mark.slow
N_CASES, N_QUERIES = 1000, 10
EXTRA = "is not there: pip install 'hashbench[originals]'"
SCRIPTS = (
    *("sklearn-ap", "sklearn-lrap", "sklearn-ndcg", "sklearn-ndcg-linear", "faiss-cumsum"),
    *("torchmetrics-map", "torchmetrics-map-bits-less-d", "retrieval-map", "retrieval-map-bits-less-d"),
    *("trec_eval", "trec_eval-p", "trec_eval-r", "trec_eval-ndcg"),
    *("ranx-here", "ranx-run-here", "ranx-burges-here", "ranx-run-burges-here", "ranx-ndcg-here", "ranx-run-ndcg-here"),
)


class Case:
    """Ten queries of one database: codes, levels, distances, and a cut, now and then beyond the database."""

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
        parts = pack(self.query), pack(self.database), self.n_bits, Explicit(self.levels), metrics
        found = explain(*parts, [named(name) for name in SCRIPTS])
        return {(one.evaluator.name, one.metric.replace(f"@{self.cut}", "@k")): one.value for one in found}

    def mean(self, score, *arrays):
        """Average what a library gives of each query."""
        return float(np.mean([score(*parts) for parts in zip(*arrays, strict=True)]))

    def qrels(self):
        return {
            f"q{number}": dict(zip(self.names, row, strict=True)) for number, row in enumerate(self.levels.tolist())
        }

    def run(self):
        rows = (-self.distances.astype(float)).tolist()
        return {f"q{number}": dict(zip(self.names, row, strict=True)) for number, row in enumerate(rows)}


@pytest.fixture(scope="module")
def cases():
    return [Case(seed) for seed in range(N_CASES // N_QUERIES)]


@pytest.fixture(scope="module")
def emulated(cases):
    return [case.emulated() for case in cases]


def differing(cases, emulated, originals, tolerance=1e-12):
    """Give what differs from what the originals give of each case, by script and metric."""
    return [
        (number, which, found[which], value)
        for number, (case, found) in enumerate(zip(cases, emulated, strict=True))
        for which, value in originals(case).items()
        if found[which] != pytest.approx(value, abs=tolerance)
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
        found = {}
        for ending, scores in (("", 1 / (1 + case.distances)), ("-bits-less-d", case.n_bits - case.distances)):
            scores = torch.from_numpy(scores.astype(np.float32))
            for at, first in (("", {}), ("@k", {"top_k": case.cut})):
                functions = {
                    name: functools.partial(getattr(retrieval, f"retrieval_{name}"), **first)
                    for name in ("average_precision", "normalized_dcg")
                }
                found |= {
                    (f"torchmetrics-map{ending}", f"AP{at}"): case.mean(
                        functions["average_precision"], scores, relevant
                    ),
                    (f"retrieval-map{ending}", f"AP{at}"): float(RetrievalMAP(**first)(scores, relevant, ids)),
                    ("sklearn-ndcg", f"NDCG{at}"): case.mean(functions["normalized_dcg"], scores, gains),
                    ("sklearn-ndcg-linear", f"NDCG{at}:trec"): case.mean(functions["normalized_dcg"], scores, levels),
                }
        return found

    assert differing(cases, emulated, originals, tolerance=1e-6) == []  # they compute in float32


def test_its_emulators_give_what_trec_eval_gives(cases, emulated):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not there: make install")

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
        asked = {re.sub(r"_(\d+)$", r".\1", name) for name in measures.values()}
        found = pytrec_eval.RelevanceEvaluator(case.qrels(), asked).evaluate(case.run())
        return {which: np.mean([scores[name] for scores in found.values()]) for which, name in measures.items()}

    assert differing(cases, emulated, originals) == []


@pytest.mark.slow  # it is compiled on first use
@pytest.mark.filterwarnings("ignore:unsafe cast")
def test_its_emulators_give_what_ranx_gives(cases, emulated):
    ranx = pytest.importorskip("ranx", reason=f"ranx {EXTRA}")

    def originals(case):
        names = {"": "map", "-burges": "ndcg_burges", "-ndcg": "ndcg"}
        metrics = {"": ("AP", "AP@k"), "-burges": ("NDCG", "NDCG@k"), "-ndcg": ("NDCG:trec", "NDCG@k:trec")}
        found = {}
        for script, run in (("ranx", case.run()), ("ranx-run", ranx.Run(case.run()))):
            qrels = case.qrels() if script == "ranx" else ranx.Qrels(case.qrels())
            asked = [name + at for name in names.values() for at in ("", f"@{case.cut}")]
            scores = ranx.evaluate(qrels, run, asked, make_comparable=False)
            for ending, name in names.items():
                for metric, at in zip(metrics[ending], ("", f"@{case.cut}"), strict=True):
                    found[f"{script}{ending}-here", metric] = scores[name + at]
        return found

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
        found = {}
        for metric, n_first in (("AP", case.n_items), ("AP@k", case.cut)):
            if n_first <= case.n_items:
                rows = index.search(query, n_first)[1]
                relevant = np.take_along_axis(case.relevant, rows, axis=1) > 0
                found["faiss-cumsum", metric] = case.mean(average_precision, relevant)
        return found

    assert differing(cases, emulated, originals) == []


def keys():
    """A thousand rows of keys, of few and many items, with few distinct ones; and how many of them come first.

    A third are in random order; the others are sorted, reversed, rise and fall, fall and rise, or nearly sorted, which
    quicksorts cut so badly that they turn to heaps and to medians of medians.
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
    """Give the numbers of rows of keys that an original puts in another order."""
    return [
        number
        for number, (row, n_first) in enumerate(keys())
        if order(row, n_first)[:n_first].tolist() != np.asarray(original(row, n_first))[:n_first].tolist()
    ]


@pytest.mark.parametrize(
    ("order", "original"),
    [
        (orders.numpy_scalar, lambda row, n_first: np.argsort(row.astype(np.int16))),  # whose sort is no vector's
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
    given = [np.append(row, n_first) for row, n_first in keys()]
    np.savez(tmp_path / "rows.npz", *given)
    subprocess.run(
        [sys.executable, "-c", WITHOUT_VECTORS, tmp_path / "rows.npz", tmp_path / "found.npz"],
        env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)},
        check=True,
    )
    found = np.load(tmp_path / "found.npz")
    for name, order in (("sorted", orders.numpy_scalar), ("first", orders.numpy_partition)):
        ours = [order(row, n_first) for row, n_first in keys()]
        np.testing.assert_array_equal(np.concatenate(ours), found[name])


def test_ties_come_in_the_order_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install 'hashbench[learned]'")

    def tensor(row):
        return torch.from_numpy(row.astype(np.float32))

    assert in_other_orders(orders.libstdcxx, lambda row, n_first: torch.argsort(tensor(row))) == []
    assert in_other_orders(orders.torch_topk, lambda row, n_first: tensor(row).topk(n_first, largest=False)[1]) == []


def test_ties_come_in_the_order_of_faiss():
    faiss = pytest.importorskip("faiss", reason="faiss is not there: pip install faiss-cpu")
    n_bits = 200

    def bits(row):
        return np.arange(n_bits) < row[:, None]  # as far from no bit as the key says

    def of_signs(codes):
        return np.where(codes, 1, -1).astype(np.float32)

    def binary(row, n_first):
        index = faiss.IndexBinaryFlat(n_bits)
        index.add(pack(bits(row)))
        return index.search(pack(np.zeros((1, n_bits), bool)), n_first)[1][0]

    def of_vectors(index, row):
        index.add(of_signs(bits(row)))
        return index.search(of_signs(np.zeros((1, n_bits), bool)), len(row))[1][0]

    assert in_other_orders(orders.stable, binary) == []
    assert in_other_orders(orders.stable, lambda row, _: of_vectors(faiss.IndexLSH(n_bits, n_bits, False), row)) == []
    assert in_other_orders(orders.descending, lambda row, _: of_vectors(faiss.IndexFlatIP(n_bits), row)) == []

import h5py
import numpy as np
import pytest
from helpers.affinity_examples import (
    N_BITS,
    N_DATABASE,
    N_QUERIES,
    RULES,
    classes,
    database,
    matrix,
    query,
)
from helpers.score_assertions import assert_same_scores
from helpers.thoroughness import slow
from numba.core.event import trigger_event

from hashbench import HashbenchError, Problem, _parallel, evaluate
from hashbench.affinity import Affinity, Explicit, as_affinity
from hashbench.bits import pack
from hashbench.scoring import counting, hamming

METRICS = ["AP", "AP@7", "AP@7:relevant", "AP@7:capped", "AP@1000", "NDCG", "NDCG@9", "P@5", "P@r2"]


@pytest.mark.parametrize("rule", RULES)
def test_neither_the_order_of_items_nor_that_or_the_values_of_bits_change_a_score_by_one_bit(rule):
    rng, expected = np.random.default_rng(0), evaluate(query, database, RULES[rule], METRICS)
    for _ in range(3):
        items, bits, flip = rng.permutation(N_DATABASE), rng.permutation(N_BITS), rng.random(N_BITS) > 0.5
        moved = query[:, bits] ^ flip, database[items][:, bits] ^ flip
        assert_same_scores(evaluate(*moved, RULES[rule].part(database=items), METRICS), expected)


@pytest.mark.parametrize("memory", [1500, *slow(1, 256 << 20)])
@pytest.mark.parametrize("rule", RULES)
def test_blocks_of_database_and_queries_in_memory_or_on_disk_add_up_to_the_whole(rule, memory, tmp_path, monkeypatch):
    affinity = RULES[rule]
    expected = evaluate(query, database, affinity, METRICS)
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 9)
    monkeypatch.setattr(counting, "_LEVEL_COLUMNS", 13)
    monkeypatch.setattr(counting, "_RUN", 3)
    monkeypatch.setattr(hamming, "_MEMORY", memory)
    monkeypatch.setattr(_parallel, "QUERY_CHUNK", 5)
    with h5py.File(tmp_path / "codes.h5", "w") as file:
        for codes in (pack(database), file.create_dataset("codes", data=pack(database))):
            progress = []
            evaluation = Problem.of_packed(pack(query), codes, N_BITS, affinity).evaluate(
                METRICS, on_progress=lambda *done, progress=progress: progress.append(done)
            )
            assert_same_scores(evaluation, expected)
    n_blocks = counting.n_blocks(pack(database), N_BITS)
    assert n_blocks == -(-len(database) // 9)
    assert progress[-1] == ("queries counted", N_QUERIES * n_blocks, N_QUERIES * n_blocks)
    items = [done for what, done, _ in progress if what == "queries counted"]  # compilation is reported too
    assert items == sorted(set(items))


@pytest.mark.parametrize(
    ("rule", "n_classes"), [("same-label", 3), ("shared-labels", 64), *slow(("shared-labels", 130))]
)
def test_repeated_queries_score_like_each_on_its_own(rule, n_classes):
    rng = np.random.default_rng(n_classes)
    codes = rng.random((4, N_BITS)) < 0.5
    queries, items = codes[rng.integers(0, 4, 40)], rng.random((50, N_BITS)) < 0.5
    if rule == "same-label":
        labels, others = rng.integers(0, n_classes, 40), rng.integers(0, n_classes + 1, 50)
    else:  # two queries may differ only in the last class
        some = np.repeat((rng.random((2, n_classes)) < 0.2).astype(np.uint8), 2, axis=0)
        some[1, -1], some[0, -1] = 1, 0
        labels, others = some[rng.integers(0, 4, 40)], (rng.random((50, n_classes)) < 0.3).astype(np.uint8)
        labels[:20] = 0  # nothing relevant
    together = evaluate(queries, items, (labels, others), METRICS)
    for row in range(40):
        single = evaluate(queries[row : row + 1], items, (labels[row : row + 1], others), METRICS)
        for name, parts in single.scores.items():
            np.testing.assert_array_equal([part[0] for part in parts], [part[row] for part in together.scores[name]])
    assert together.n_undefined == np.isnan(together.scores["AP"].mean).sum()


def test_codes_without_information_score_the_share_of_relevant_items_also_with_sorted_classes():
    rng = np.random.default_rng(1)
    labels = np.arange(10).repeat(5), np.arange(10).repeat(200)
    names = ["AP", "AP@1000", "P@100"]
    constant = evaluate(np.ones((50, 16)), np.ones((2000, 16)), labels, names).summary
    noise = evaluate(rng.random((50, 16)) > 0.5, rng.random((2000, 16)) > 0.5, labels, names).summary
    assert constant["P@100"].mean == pytest.approx(0.1, abs=1e-12)
    for summary in (constant, noise):
        assert summary["AP"].mean == pytest.approx(0.1, abs=0.01)
        assert summary["AP@1000"].mean == pytest.approx(0.1, abs=0.02)
        assert summary["P@100"].mean == pytest.approx(0.1, abs=0.02)
    assert (constant["AP"].low, constant["AP"].high) == (pytest.approx(0.05, abs=0.01), 1)


def test_undefined_queries_are_left_out_and_counted_or_scored_as_the_paper_does():
    skipped = evaluate(query, database, matrix, ["AP", "NDCG"])
    paper = evaluate(query, database, matrix, ["AP", "NDCG"], undefined="paper")
    for name, value in {"AP": 0.0, "NDCG": 1.0}.items():
        mean = skipped.scores[name].mean
        assert np.flatnonzero(np.isnan(mean)).tolist() == [3]
        assert paper.scores[name].mean[3] == value
        assert skipped.summary[name].mean == pytest.approx(np.delete(mean, 3).mean(), abs=1e-15)
        total = np.delete(mean, 3).sum() + value
        assert paper.summary[name].mean == pytest.approx(total / N_QUERIES, abs=1e-15)
        for summary in (skipped.summary[name], paper.summary[name]):
            assert (summary.n_queries, summary.n_undefined) == (N_QUERIES, 1)
    nothing = evaluate(query, database, np.zeros_like(matrix), ["AP"]).summary["AP"]
    assert np.isnan([nothing.mean, nothing.low, nothing.high]).all()
    assert nothing.n_undefined == N_QUERIES


@pytest.mark.parametrize("undefined", ["skip", "paper", "zero"])
def test_an_empty_ball_is_left_out_of_the_mean_whatever_an_undefined_query_counts(undefined):
    # queries: a relevant item within radius 0; none within it; undefined with an item within it; undefined without one
    codes, relevance = np.array([[0, 0], [0, 1]]), np.array([[1, 0], [1, 0], [0, 0], [0, 0]])
    queries = np.array([[0, 0], [1, 1], [0, 1], [1, 1]])
    scored = evaluate(queries, codes, relevance, ["P@r0:skip", "AP"], undefined=undefined)
    expected = [1, np.nan, np.nan if undefined == "skip" else 0, np.nan]
    np.testing.assert_array_equal(scored.scores["P@r0:skip"].mean, expected)
    assert (scored.n_undefined, scored.n_empty) == (2, {"P@r0:skip": 1 if undefined == "skip" else 2})
    assert scored.summary["P@r0:skip"].n_undefined == np.isnan(expected).sum()
    assert evaluate(queries, codes, relevance, ["P@r0"], undefined=undefined).n_empty == {"P@r0": 1}  # that is scored


def test_metrics_keep_their_order_and_equal_names_are_scored_once():
    evaluation = evaluate(query, database, classes, ["P@5", "AP@7:retrieved", "AP", "AP@7", "P@5"])
    assert list(evaluation.scores) == list(evaluation.summary) == ["P@5", "AP@7", "AP"]
    assert list(evaluate(query, database, classes, "NDCG").scores) == ["NDCG"]


@pytest.mark.parametrize(
    ("packed_query", "packed_database", "message"),
    [
        (pack(query), pack(database)[:0], "there are no database codes; at least one is needed"),
        (pack(query)[:0], pack(database), "there are no query codes; at least one is needed"),
        (pack(query), pack(database)[:, :1], "database codes are uint8 of shape"),
        (pack(query), pack(database) | 128, "database codes have set bits beyond bit 11"),
    ],
    ids=["no database", "no queries", "narrow database", "set padding"],
)
def test_packed_codes_that_do_not_fit_are_refused_in_words(packed_query, packed_database, message):
    affinity = as_affinity((classes[0][: len(packed_query)], classes[1][: len(packed_database)]))
    with pytest.raises(HashbenchError, match=message):
        Problem.of_packed(packed_query, packed_database, N_BITS, affinity).evaluate(["P@r2"])


@pytest.mark.usefixtures("note_on_compiling")
def test_a_scoring_that_must_compile_reports_it_once(monkeypatch):
    class Slow(Explicit):
        def block(self, query, database):
            with trigger_event("numba:compile"):  # as numba does when it finds nothing on disk
                return super().block(query, database)

    monkeypatch.setattr(counting, "_LEVEL_COLUMNS", 13)
    for affinity, n_reports in ((Slow(matrix), 1), (Explicit(matrix), 0)):
        calls = []
        Problem.of_packed(pack(query), pack(database), N_BITS, affinity).evaluate(
            on_progress=lambda *call, calls=calls: calls.append(call)
        )
        assert sum(what.startswith("compiling") for what, *_ in calls) == n_reports


gains = np.where(matrix > 0, np.random.default_rng(2).random(matrix.shape).round(2), 0)


@pytest.mark.parametrize(("distance", "n_radii"), [("hamming", 1), ("cosine", 0), ("dot", 0)])
def test_default_metrics_are_those_that_the_levels_and_the_distance_allow(distance, n_radii):
    def named(affinity):
        return list(evaluate(2 * query - 1.0, 2 * database - 1.0, affinity, distance=distance).summary)

    assert named(matrix) == named(matrix.astype(float))
    assert named(matrix) == ["AP", "AP@1000", "NDCG", "NDCG@100", "P@100", "P@r2"][: 5 + n_radii]
    assert named(gains) == ["NDCG", "NDCG@100"]


class OfPlugin(Affinity):
    """A rule that computes its levels in another type than it lists them."""

    n_queries, n_database = matrix.shape

    def __init__(self, listed, computed):
        self._levels, self.computed = np.asarray(listed), computed

    @property
    def levels(self):
        return self._levels

    def block(self, query, database):
        return self.computed[query][:, database]


@pytest.mark.parametrize("n_listed", [[0, 1, 2], [0, 1, 3]])
def test_a_whole_level_that_a_plugin_does_not_list_is_refused(n_listed):
    with pytest.raises(HashbenchError, match=r"holds level (5|10), which is none of its levels"):
        evaluate(query, database, OfPlugin(np.unique(matrix)[n_listed], matrix), ["AP"])


@pytest.mark.parametrize("distance", ["hamming", "cosine"])
def test_levels_in_another_type_than_listed_score_alike_or_are_refused(distance):
    codes, single = (2 * query - 1.0, 2 * database - 1.0), gains.astype(np.float32)
    whole, fractions = np.unique(matrix), np.unique(gains)

    def scored(affinity):
        return evaluate(*codes, affinity, ["NDCG:trec"], distance=distance)

    assert_same_scores(scored(OfPlugin(np.unique(single), single)), scored(single))
    assert_same_scores(scored(OfPlugin(whole, matrix.astype(float))), scored(matrix))
    for listed, computed in ((fractions, single), (fractions[:-1], gains), (whole[:-1], matrix.astype(float))):
        with pytest.raises(HashbenchError, match=r"holds level .* which is none of its levels\. .* float64"):
            scored(OfPlugin(listed, computed))

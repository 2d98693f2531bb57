import gc
import weakref

import numpy as np
import pytest
from helpers import oracles
from helpers.affinity_examples import LEVELS, N_BITS, N_DATABASE, N_QUERIES, RULES, database, query
from hypothesis import given
from hypothesis import strategies as st

from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.scoring import counting
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.histogram import TieHistogram, original_of
from hashbench.scoring.metrics import get_metric


def count_all(codes, affinity):
    """Count all queries over all blocks of the database codes."""
    return count(pack(query), database_blocks(pack(codes), N_BITS, affinity), N_BITS, affinity, slice(0, N_QUERIES))


def assert_same_histogram(histogram, expected):
    np.testing.assert_array_equal(histogram.levels, expected.levels)
    np.testing.assert_array_equal(histogram.counts, expected.counts)


@pytest.mark.parametrize("n_repeats", [1, 5, N_DATABASE], ids=["many codes", "repeated codes", "one code"])
@pytest.mark.parametrize("name", RULES)
def test_a_histogram_equals_an_obvious_double_loop(name, n_repeats):
    affinity, codes = RULES[name], database[np.arange(N_DATABASE) // n_repeats]
    distances = oracles.hamming_distances(query, codes)
    expected = TieHistogram.from_pairs(distances, LEVELS[name], N_BITS, affinity.levels)
    assert expected.counts.sum() == N_QUERIES * N_DATABASE
    assert_same_histogram(count_all(codes, affinity), expected)
    (block,) = database_blocks(pack(codes), N_BITS, affinity)
    if n_repeats == N_DATABASE and name in ("same-label", "hierarchy", "shared-labels"):  # equal rows are merged
        assert block.words.shape[1] < N_DATABASE == block.weights.sum()


@pytest.mark.parametrize("name", ["same-label", "hierarchy", "shared-labels"])
def test_rows_are_neither_merged_nor_sorted_for_a_few_queries(name, monkeypatch):
    affinity, codes = RULES[name], database[np.zeros(N_DATABASE, dtype=int)]
    whole = count_all(codes, affinity)
    monkeypatch.setattr(counting, "_MANY_ROWS", N_DATABASE)
    for n_few, is_whole in ((N_QUERIES, False), (N_QUERIES + 1, True)):
        monkeypatch.setattr(counting, "_FEW_QUERIES", n_few)
        (block,) = database_blocks(pack(codes), N_BITS, affinity)
        assert (block.words.shape[1] == N_DATABASE) == is_whole
        assert_same_histogram(count_all(codes, affinity), whole)


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1, 2, 5, 10])), min_size=1, max_size=20))
def test_sums_over_groups_equal_sums_over_pairs(pairs):
    distances, levels = zip(*pairs, strict=True)
    histogram = TieHistogram.from_pairs([distances], [levels], n_bits=5)
    assert histogram.n_queries == 1
    assert histogram.counts.dtype == np.int64
    assert (histogram.n_database[0], histogram.n_relevant[0]) == (len(pairs), sum(lv > 0 for lv in levels))
    for group in range(6):
        inside = [lv for d, lv in pairs if d == group]
        above = [lv for d, lv in pairs if d < group]
        assert histogram.size[0, group] == len(inside)
        assert histogram.n_rel[0, group] == sum(lv > 0 for lv in inside)
        assert histogram.before[0, group] == len(above)
        assert histogram.rel_before[0, group] == sum(lv > 0 for lv in above)
        for index, level in enumerate(histogram.levels):
            assert histogram.counts[0, index, group] == inside.count(level)


def test_histograms_add_up_where_queries_and_groups_agree_and_may_know_other_levels():
    one = TieHistogram.from_pairs([[0, 1]], [[0, 2]], n_bits=2)
    two = TieHistogram.from_pairs([[1, 1]], [[2, 2]], n_bits=2)
    assert_same_histogram(one + two, TieHistogram.from_pairs([[0, 1, 1, 1]], [[0, 2, 2, 2]], n_bits=2))
    three = TieHistogram.from_pairs([[0, 2, 2]], [[0, 5, 1]], n_bits=2)
    assert_same_histogram(one + three, TieHistogram.from_pairs([[0, 1, 0, 2, 2]], [[0, 2, 0, 5, 1]], n_bits=2))
    for other in (TieHistogram.from_pairs([[0]], [[2]], n_bits=3), TieHistogram.from_pairs([[0], [0]], [[2], [2]], 2)):
        with pytest.raises(HashbenchError, match=r"histograms of shapes .* do not add up\.$"):
            one + other
    with pytest.raises(HashbenchError, match=r"levels hold 0.3, which is none of level_values"):
        TieHistogram.from_pairs([[0, 1]], [[0.3, 1]], n_bits=1, level_values=[0, 1])


def test_a_scored_histogram_is_freed_without_the_garbage_collector():
    histogram = TieHistogram(np.array([[[1, 2, 0, 4], [0, 1, 3, 0]]]), np.array([0, 1]), by_radius=True)
    gc.disable()
    try:
        for name in ("AP", "AP@2", "NDCG", "NDCG@2", "P@2", "R@2", "RR"):
            get_metric(name).scores(histogram, "skip")
        reference = weakref.ref(histogram)
        del histogram
        assert reference() is None
    finally:
        gc.enable()


def test_a_read_only_histogram_leads_to_no_array_that_can_be_written():
    histogram = count_all(database, RULES["hierarchy"])
    shared = histogram.read_only()
    public = {name: getattr(shared, name) for name in dir(shared) if not name.startswith("_")}
    arrays = {name: value for name, value in public.items() if isinstance(value, np.ndarray)}
    assert {"counts", "levels", "size", "n_relevant"} <= arrays.keys()
    assert not [name for name, array in arrays.items() if array.flags.writeable]
    assert not [name for name, value in public.items() if isinstance(value, TieHistogram)]
    assert original_of(shared.read_only()) is original_of(shared) is original_of(histogram) is histogram

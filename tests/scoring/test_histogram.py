import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from helpers.thoroughness import slow
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import _parallel
from hashbench.affinity import Distance, Explicit, SameLabel, SharedLabels
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.scoring import counting
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.histogram import TieHistogram

N_QUERIES, N_DATABASE, N_BITS = 11, 60, 13
rng = np.random.default_rng(0)
query_codes = rng.random((N_QUERIES, N_BITS)) > 0.5
database_codes = rng.random((N_DATABASE, N_BITS)) > 0.5
classes = rng.integers(0, 4, N_QUERIES), rng.integers(0, 4, N_DATABASE)
multi_hot = rng.integers(0, 2, (N_QUERIES, 3)), rng.integers(0, 2, (N_DATABASE, 3))
features = rng.integers(0, 4, (N_QUERIES, 3)), rng.integers(0, 4, (N_DATABASE, 3))
matrix = rng.choice([0, 0, 1, 5, 10], (N_QUERIES, N_DATABASE))
thresholds, levels = [9.0, 4.0, 1.0], [1, 2, 5]
RULES = {
    "same-label": (SameLabel(*classes), oracles.same_label(*classes)),
    "shared-labels": (SharedLabels(*multi_hot), oracles.shared_labels(*multi_hot)),
    "distance": (
        Distance(*features, thresholds, levels),
        oracles.distance_levels(*features, thresholds, levels),
    ),
    "dense": (Explicit(matrix), matrix),
    "csr": (Explicit(sp.csr_array(matrix)), matrix),
}


def counted(query, database, n_bits, affinity):
    """Count all queries over all blocks the ordinary way."""
    blocks = database_blocks(pack(database), n_bits, affinity)
    return count(pack(query), blocks, n_bits, affinity, slice(0, len(query)))


def assert_same_histogram(found, expected):
    np.testing.assert_array_equal(found.levels, expected.levels)
    np.testing.assert_array_equal(found.counts, expected.counts)


@pytest.mark.parametrize("n_repeats", [1, 5], ids=["distinct codes", "repeated codes"])
@pytest.mark.parametrize("name", RULES)
def test_a_histogram_equals_an_obvious_double_loop(name, n_repeats):
    affinity, expected_levels = RULES[name]
    database = database_codes[np.arange(N_DATABASE) // n_repeats]
    distances = oracles.hamming_distances(query_codes, database)
    expected = TieHistogram.from_pairs(distances, expected_levels, N_BITS, affinity.levels)
    assert expected.counts.sum() == N_QUERIES * N_DATABASE
    assert_same_histogram(counted(query_codes, database, N_BITS, affinity), expected)


@pytest.mark.parametrize("columns", [7, *slow(1, 100)])
@pytest.mark.parametrize("block_bytes", [1, 8 * 7, 8 * 59, 8 * 1000])
@pytest.mark.parametrize("name", RULES)
def test_database_blocks_add_up_to_the_whole(name, block_bytes, columns, monkeypatch):
    affinity, _ = RULES[name]
    whole = counted(query_codes, database_codes, N_BITS, affinity)
    monkeypatch.setattr(counting, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(counting, "_LEVEL_COLUMNS", columns)
    monkeypatch.setattr(_parallel, "QUERY_CHUNK", 3)
    n_blocks = len(list(database_blocks(pack(database_codes), N_BITS, affinity)))
    assert n_blocks == -(-N_DATABASE // max(block_bytes // 8, 1))
    assert_same_histogram(counted(query_codes, database_codes, N_BITS, affinity), whole)


@pytest.mark.parametrize("name", ["same-label", "shared-labels"])
def test_equal_rows_are_merged_and_count_as_often_as_they_occur(name):
    affinity, _ = RULES[name]
    few = np.eye(3, N_BITS, dtype=bool)[np.arange(N_DATABASE) % 3]
    (block,) = database_blocks(pack(few), N_BITS, affinity)
    assert block.words.shape[1] < N_DATABASE
    assert block.weights.sum() == N_DATABASE
    one_by_one = Explicit(affinity.block(slice(0, N_QUERIES), slice(0, N_DATABASE)))  # never merges
    np.testing.assert_array_equal(
        counted(query_codes, few, N_BITS, affinity).counts[:, : len(one_by_one.levels)],
        counted(query_codes, few, N_BITS, one_by_one).counts,
    )


@settings(deadline=None)
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

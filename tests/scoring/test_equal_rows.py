import numpy as np
import pytest

from hashbench.scoring import equal_rows

COLUMNS = np.random.default_rng(0).integers(-3, 3, (2, 200))


@pytest.mark.parametrize("odd", [equal_rows.ODD, np.uint64(0), np.uint64(1 << 62)], ids=["distinct", "one", "few"])
def test_equal_rows_follow_each_other_also_where_hashes_are_equal(odd, monkeypatch):
    monkeypatch.setattr(equal_rows, "ODD", odd)
    order, first = equal_rows.sort_equal_rows(COLUMNS)
    runs = np.split(COLUMNS[:, order].T, first[1:])
    assert sorted(order) == list(range(200))
    assert [len(np.unique(run, axis=0)) for run in runs] == [1] * len(runs)
    assert len(runs) == len(np.unique(COLUMNS.T, axis=0))


def test_equal_rows_are_merged_only_where_half_of_the_rows_go():
    rows, sizes = equal_rows.merge_equal_rows([np.array([7, 5, 7, 5])])
    assert (sorted(rows % 2), sizes.tolist()) == ([0, 1], [2, 2])
    rows, sizes = equal_rows.merge_equal_rows([np.array([7, 5, 7, 6])])
    assert (rows.tolist(), sizes.size) == ([0, 1, 2, 3], 0)


def test_labels_as_far_apart_as_they_can_be_are_sorted_by_all_their_bits():
    labels = np.array([2**63 - 1, 65536, -(2**63) + 1, 0, 65536, 2**63 - 1])
    order, first = equal_rows.sort_rows([labels])
    assert labels[order].tolist() == sorted(labels.tolist())
    assert first.tolist() == [0, 1, 2, 4]


@pytest.mark.parametrize("n_rows", [0, 1, 9, 3000])
@pytest.mark.parametrize("most", [0, 3, 1000, 2**16 - 1, 2**40])
def test_rows_are_sorted_by_the_last_key_first_and_equal_ones_stay_in_order(n_rows, most):
    rng = np.random.default_rng(0)
    keys = [rng.integers(-most, most + 1, n_rows) // 2, rng.integers(0, 3, n_rows)]
    order, first = equal_rows.sort_rows(keys)
    np.testing.assert_array_equal(order, sorted(range(n_rows), key=lambda row: (keys[1][row], keys[0][row])))
    in_order = [(keys[1][row], keys[0][row]) for row in order]
    assert first.tolist() == [place for place in range(n_rows) if in_order[place - 1 : place] != [in_order[place]]]

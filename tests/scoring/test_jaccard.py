"""Rankings by Jaccard distance, against fractions and SciPy."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from hashbench import HashbenchError
from hashbench.scoring.jaccard import JaccardDistance


@pytest.mark.parametrize("largest", [1, 5])
def test_groups_are_those_of_exact_ratios(largest):
    rng = np.random.default_rng(0)
    query, database = rng.integers(0, largest + 1, (6, 7)), rng.integers(0, largest + 1, (60, 7))
    query[0], database[:2] = 0, 0
    for row, groups in zip(query.tolist(), JaccardDistance(query, database).groups(slice(None)), strict=True):
        ratios = []
        for item in database.tolist():
            most = sum(map(max, row, item))
            ratios.append(1 - Fraction(sum(map(min, row, item)), most) if most else Fraction(0))
        assert groups.tolist() == [sorted(set(ratios)).index(ratio) for ratio in ratios]


def test_long_bits_are_ordered_as_by_scipy():
    rng = np.random.default_rng(1)
    query, database = rng.random((3, 20_000)) < 0.01, rng.random((40, 20_000)) < 0.01
    distances = cdist(query, database, "jaccard")
    for row, groups in zip(distances, JaccardDistance(query, database).groups(slice(None)), strict=True):
        assert groups.tolist() == np.unique(row, return_inverse=True)[1].tolist()


@pytest.mark.parametrize(
    ("query", "database", "message"),
    [
        ([[0.5, 1]], [[0, 1]], "query codes hold numbers that are not whole or below 0"),
        ([[0, 1]], [[-1, 1]], "database codes hold numbers that are not whole or below 0"),
        ([[0, 1]], [[0, 1, 1]], "queries have 2 numbers and database items 3"),
        ([0, 1], [[0, 1]], r"query codes are int64 of shape \(2,\), expected bits or counts"),
        ([[2**23, 2**23]], [[0, 1]], "sums to 16,777,216 or more"),
    ],
)
def test_what_is_not_bits_or_counts_is_refused(query, database, message):
    with pytest.raises(HashbenchError, match=message):
        JaccardDistance(query, database)

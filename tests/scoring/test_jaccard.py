"""Rankings by Jaccard distance, against fractions and SciPy."""

import json
from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner
from scipy.spatial.distance import cdist

import hashbench
from hashbench import HashbenchError
from hashbench.cli.main import cli
from hashbench.scoring.real_rankings import JaccardDistance


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


def test_codes_in_every_form_are_scored_as_ranked_lists_of_their_ratios(tmp_path):
    rng = np.random.default_rng(2)
    query, database = rng.random((5, 12)) < 0.4, rng.random((40, 12)) < 0.4
    levels = rng.integers(0, 3, (5, 40))
    similarity = 1 - cdist(query, database, "jaccard")
    expected = hashbench.evaluate_ranking(relevance=levels, scores=similarity, metrics=["AP", "NDCG@10"]).summary
    found = hashbench.evaluate(query, database, levels, ["AP", "NDCG@10"], distance="jaccard")
    assert found.summary == expected
    assert not found.notes
    packed = [np.packbits(codes, axis=1, bitorder="little") for codes in (query, database)]
    assert hashbench.evaluate(*packed, levels, ["AP", "NDCG@10"], distance="jaccard", n_bits=12).summary == expected
    (note,) = hashbench.evaluate(*packed, levels, ["AP"], distance="jaccard").notes
    assert note.startswith("Codes are read as 2 counts each. If they are packed bits, give their")
    files = {"query-codes": packed[0], "database-codes": packed[1], "affinity": levels}
    for name, array in files.items():
        np.save(tmp_path / f"{name}.npy", array)
    options = [f"--{name}={tmp_path / name}.npy" for name in files]
    command = ["evaluate", *options, "--bits=12", "--distance=jaccard", "--metric=AP", "--format=json"]
    done = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert json.loads(done.stdout)["AP"]["mean"] == pytest.approx(expected["AP"].mean)


def test_curves_of_sets_are_by_rank():
    codes, labels = np.eye(4, dtype=bool), [0, 0, 1, 1]
    problem = hashbench.Problem.of_codes(codes, codes, (labels, labels), distance="jaccard", exclude_self=True)
    assert set(problem.curves()["curve"]) == {"rank"}
    with pytest.raises(HashbenchError, match="are of binary codes and their Hamming distance"):
        problem.thresholds()

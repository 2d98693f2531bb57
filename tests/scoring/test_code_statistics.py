import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import code_usage, evaluate, evaluate_ranking, evaluate_run
from hashbench.bits import pack
from hashbench.scoring import code_statistics


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60), n_bits=st.integers(2, 70), n_rows=st.integers(1, 70))
def test_usage_equals_that_of_numpy(seed, n, n_bits, n_rows):
    rng = np.random.default_rng(seed)
    codes = (rng.random((n, n_bits)) < rng.random(n_bits))[rng.integers(0, n, n)]
    usage = code_usage(pack(codes), n_bits)
    distinct, counts = np.unique(codes, axis=0, return_counts=True)
    assert (usage.n_codes, usage.n_bits) == (n, n_bits)
    assert (usage.n_distinct, usage.largest_bucket) == (len(distinct), counts.max())
    assert code_statistics.bucket_sizes(pack(codes), n_bits).tolist() == sorted(counts.tolist(), reverse=True)
    assert usage.share_of_space == len(distinct) / 2**n_bits
    mean = codes.mean(axis=0)
    assert usage.bit_balance == pytest.approx(np.minimum(mean, 1 - mean).mean())
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(np.corrcoef(codes.T.astype(float)))
    off_diagonal = np.abs(correlation[~np.eye(n_bits, dtype=bool)])
    assert usage.bit_correlation == pytest.approx(off_diagonal.mean(), abs=1e-6)


def test_codes_in_any_form_and_in_blocks_have_the_same_usage(monkeypatch):
    codes = np.random.default_rng(0).random((50, 12)) < 0.3
    expected = code_usage(codes)
    assert code_usage(np.where(codes, 1, -1)) == expected
    monkeypatch.setattr(code_statistics, "_ROWS", 7)
    assert code_usage(pack(codes), 12) == expected


def test_one_code_for_all_uses_nothing():
    usage = code_usage(np.zeros((9, 4), dtype=bool))
    assert (usage.n_distinct, usage.largest_bucket, usage.bit_balance, usage.bit_correlation) == (1, 9, 0.0, 0.0)


RANDOM = np.random.default_rng(0).random((60, 12)) < 0.5
ADVICE = "If bits are signs of real values, subtract the mean of each column before taking signs."
CHANCE = "All items of each query tie: the scores are those of chance."


def notes_of(query, database, **options):
    labels = np.arange(len(query)) % 2, np.arange(len(database)) % 2
    return evaluate(query, database, labels, ["AP"], **options).notes


@pytest.mark.parametrize("rows", [7, 1 << 16])
def test_codes_that_rank_little_or_nothing_are_noted(rows, monkeypatch):
    monkeypatch.setattr(code_statistics, "_ROWS", rows)
    query, database = RANDOM[:9], RANDOM[9:]
    assert notes_of(query, database) == []
    assert notes_of(query, database[[4] * 51]) == [
        "All 51 database codes are equal: every item ties, and the scores are those of chance."
    ]
    assert notes_of(query[[1] * 9], database) == ["All 9 query codes are equal: every query ranks the database alike."]
    for n_constant in (2, 3):
        some = np.where(np.arange(12) < n_constant, database[0], database)
        expected = [f"3 of 12 bits are the same in all 51 database codes. {ADVICE}"]
        assert notes_of(query, some) == expected * (n_constant == 3)
    for n_equal in (25, 26):
        some = np.where(np.arange(51)[:, None] < n_equal, database[0], database)
        expected = [f"26 of 51 database codes are equal and always tie. {ADVICE}"]
        assert notes_of(query, some) == expected * (n_equal == 26)
    both = np.where((np.arange(51) < 30)[:, None] | (np.arange(12) < 5), database[50], database)
    expected = (
        "31 of 51 database codes are equal and always tie, and 5 of 12 bits are the same in all 51 database codes."
    )
    assert notes_of(query, both) == [f"{expected} {ADVICE}"]
    assert notes_of(query[:1], database[:1]) == notes_of(query, database[[1, 1, 1, 2, 3]]) == []


@pytest.mark.parametrize("first", [0, 750, 1_400, None])
def test_a_frequent_code_is_counted_wherever_it_stands(first, monkeypatch):
    monkeypatch.setattr(code_statistics, "_ROWS", 900)
    rng = np.random.default_rng(0)
    database = rng.random((3_000, 70)) < 0.5
    query = rng.random((9, 70)) < 0.5
    assert notes_of(query, database) == []
    rows = rng.permutation(3_000)[:1_600] if first is None else np.arange(first, first + 1_600)
    database[rows] = rng.random(70) < 0.5
    assert notes_of(query, database) == [f"1,600 of 3,000 database codes are equal and always tie. {ADVICE}"]


def test_rankings_of_any_kind_whose_items_all_tie_are_noted():
    outputs, few = np.where(RANDOM, 1.5, -1), {"q": {"a": 1.0}, "p": {"a": 1.0, "b": 2.0}}
    assert notes_of(outputs[:9], outputs[[9] * 5], distance="cosine") == [CHANCE]
    assert notes_of(outputs[:9], outputs[9:], distance="cosine") == []
    tied, judged = {"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}, "p": {"a": 1}}
    assert evaluate_run(tied, {"q": {"a": 1}}).notes == [CHANCE]
    assert evaluate_run(few, judged).notes == []
    assert evaluate_ranking([[1, 0], [0, 1]], [[3, 3], [4, 4]]).notes == [CHANCE]
    assert evaluate_ranking([[1, 0], [0, 1]], [[3, 3], [4, 5]]).notes == []

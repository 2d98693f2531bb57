"""How codes use their bits, and how far two codes differ, against NumPy and loops over bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashbench import HashbenchError, code_usage, compare_codes, evaluate, evaluate_ranking, evaluate_run
from hashbench.bits import pack
from hashbench.scoring import code_statistics


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 60), n_bits=st.integers(2, 70), n_rows=st.integers(1, 70))
def test_usage_and_drift_equal_those_of_numpy_in_any_blocks(seed, n, n_bits, n_rows):
    rng = np.random.default_rng(seed)
    codes = (rng.random((n, n_bits)) < rng.random(n_bits))[rng.integers(0, n, n)]
    other = codes ^ (rng.random((n, n_bits)) < 0.1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code_statistics, "_ROWS", n_rows)
        usage, moved = code_usage(pack(codes), n_bits), compare_codes(codes, pack(other), n_bits=n_bits)
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
    differing = codes != other
    assert moved.bits_per_item.tolist() == differing.sum(axis=1).tolist()
    assert moved.items_per_bit.tolist() == differing.sum(axis=0).tolist()
    assert moved.share_equal == (~differing.any(axis=1)).mean()
    assert (moved.mean_bits, moved.most_bits) == (differing.sum() / n, differing.sum(axis=1).max())


def test_forms_of_codes_change_nothing():
    codes = np.random.default_rng(0).random((50, 19)) < 0.3
    signs, big = np.where(codes, 1, -1), np.packbits(codes, axis=1, bitorder="big")
    assert code_usage(signs) == code_usage(codes) == code_usage(pack(codes), 19)
    expected = compare_codes(codes, codes[::-1])
    for found in (compare_codes(signs, codes[::-1]), compare_codes(big, big[::-1], n_bits=19, bit_order="big")):
        assert found.items_per_bit.tolist() == expected.items_per_bit.tolist()
        assert found.bits_per_item.tolist() == expected.bits_per_item.tolist()


def test_other_items_and_other_lengths_are_refused():
    codes = np.zeros((50, 19), dtype=bool)
    with pytest.raises(HashbenchError, match="there are 50 codes and 49 other ones; give both codes of each item"):
        compare_codes(codes, codes[1:])
    with pytest.raises(HashbenchError, match="the codes have 19 bits and the other ones 18; both must be equally long"):
        compare_codes(codes, codes[:, 1:])


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


@pytest.mark.parametrize("first", [0, 1_400, None])
def test_a_frequent_code_is_counted_wherever_it_stands(first, monkeypatch):
    monkeypatch.setattr(code_statistics, "_ROWS", 900)
    rng = np.random.default_rng(0)
    query, database = pack(rng.random((9, 70)) < 0.5), rng.random((3_000, 70)) < 0.5
    assert code_statistics.usage_notes(query, pack(database), 70) == []
    rows = rng.permutation(3_000)[:1_600] if first is None else np.arange(first, first + 1_600)
    database[rows] = rng.random(70) < 0.5
    notes = code_statistics.usage_notes(query, np.asfortranarray(pack(database)), 70)  # of any memory layout
    assert notes == [f"1,600 of 3,000 database codes are equal and always tie. {ADVICE}"]


def test_rankings_of_any_kind_whose_items_all_tie_are_noted():
    outputs, few = np.where(RANDOM, 1.5, -1), {"q": {"a": 1.0}, "p": {"a": 1.0, "b": 2.0}}
    assert notes_of(outputs[:9], outputs[[9] * 5], distance="cosine") == [CHANCE]
    assert notes_of(outputs[:9], outputs[9:], distance="cosine") == []
    tied, judged = {"q": {"a": 1.0, "b": 1.0}}, {"q": {"a": 1}, "p": {"a": 1}}
    assert evaluate_run(tied, {"q": {"a": 1}}).notes == [CHANCE]
    assert evaluate_run(few, judged).notes == []
    assert evaluate_ranking(relevance=[[1, 0], [0, 1]], scores=[[3, 3], [4, 4]]).notes == [CHANCE]
    assert evaluate_ranking(relevance=[[1, 0], [0, 1]], scores=[[3, 3], [4, 5]]).notes == []

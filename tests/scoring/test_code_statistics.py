import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashbench import code_usage
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

"""Two codes of the same items against loops over their bits."""

import numpy as np
import pytest

import hashbench
from hashbench import HashbenchError
from hashbench.scoring import code_statistics as module

N_ITEMS, N_BITS = 50, 19
rng = np.random.default_rng(0)
codes = rng.random((N_ITEMS, N_BITS)) > 0.5
other = codes ^ (rng.random((N_ITEMS, N_BITS)) < np.linspace(0, 0.1, N_BITS))


def packed(bits, order):
    return np.packbits(bits, axis=1, bitorder=order)


@pytest.mark.parametrize("rows_at_a_time", [7, 1 << 16])
def test_every_bit_of_every_item_is_compared(rows_at_a_time, monkeypatch):
    monkeypatch.setattr(module, "_ROWS", rows_at_a_time)
    found = hashbench.drift(codes, other)
    differing = [[codes[i, j] != other[i, j] for j in range(N_BITS)] for i in range(N_ITEMS)]
    assert found.bits_per_item.tolist() == [sum(of_item) for of_item in differing]
    assert found.items_per_bit.tolist() == [sum(of_bit) for of_bit in zip(*differing, strict=True)]
    assert found.share_equal == sum(not any(of_item) for of_item in differing) / N_ITEMS
    assert found.mean_bits == sum(map(sum, differing)) / N_ITEMS
    assert found.most_bits == max(map(sum, differing))


def test_forms_of_codes_change_nothing():
    expected = hashbench.drift(codes, other)
    for found in (
        hashbench.drift(np.where(codes, 1.0, -1.0), packed(other, "little"), n_bits=N_BITS),
        hashbench.drift(packed(codes, "big"), packed(other, "big"), n_bits=N_BITS, bit_order="big"),
    ):
        assert found.items_per_bit.tolist() == expected.items_per_bit.tolist()
        assert found.bits_per_item.tolist() == expected.bits_per_item.tolist()


def test_equal_codes_do_not_differ():
    found = hashbench.drift(codes, codes)
    assert (found.share_equal, found.mean_bits, found.most_bits, found.items_per_bit.sum()) == (1, 0, 0, 0)


def test_other_items_and_other_lengths_are_refused():
    with pytest.raises(HashbenchError, match="there are 50 codes and 49 other ones; give both codes of each item"):
        hashbench.drift(codes, other[1:])
    with pytest.raises(HashbenchError, match="the codes have 19 bits and the other ones 18; both must be equally long"):
        hashbench.drift(codes, other[:, 1:])

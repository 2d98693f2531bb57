import numpy as np
import pytest

from hashbench import bits
from hashbench.errors import HashbenchError


@pytest.mark.parametrize("n_bits", [*range(1, 131), 4096])
def test_unpacking_inverts_packing_and_padding_stays_zero(n_bits):
    codes = np.random.default_rng(n_bits).random((5, n_bits)) > 0.5
    packed = bits.pack(codes)
    assert packed.shape == (5, bits.n_bytes(n_bits))
    assert packed.dtype == np.uint8
    assert bits.unpack(packed, n_bits).dtype == bool
    assert np.array_equal(bits.unpack(packed, n_bits), codes)
    assert not bits.unpack(packed, 8 * packed.shape[1])[:, n_bits:].any()
    bits.check_packed(packed, n_bits, "codes")
    same, same_bits = bits.as_packed(packed, n_bits)
    assert (same_bits, same.tolist()) == (n_bits, packed.tolist())


def test_bit_i_is_bit_i_modulo_8_of_byte_i_over_8():
    for i in range(20):
        codes = np.zeros((1, 20), dtype=bool)
        codes[0, i] = True
        assert bits.pack(codes)[0].tolist() == [1 << i % 8 if byte == i // 8 else 0 for byte in range(3)]


@pytest.mark.parametrize("n_bits", [1, 63, 64, 65, 128, 130])
def test_words_hold_the_bytes_least_significant_first_and_pad_with_zeros(n_bits):
    codes = np.random.default_rng(n_bits).random((3, n_bits)) > 0.5
    words = bits.to_words(bits.pack(codes))
    assert words.dtype == np.uint64
    for row, code in zip(words, codes, strict=True):
        value = sum(int(word) << 64 * position for position, word in enumerate(row))
        assert value == sum(1 << i for i in range(n_bits) if code[i])


CODES = np.array([[True, False, True], [False, False, True]])


@pytest.mark.parametrize(
    "codes",
    [
        CODES,
        CODES.tolist(),
        *(CODES.astype(kind) for kind in ("u1", "i1", "i8", "f2", "f4", "f8")),
        *((2 * CODES - 1).astype(kind) for kind in ("i1", "i8", "f4")),
    ],
)
def test_every_form_of_codes_packs_alike(codes):
    packed, n_bits = bits.as_packed(codes)
    assert (packed.tolist(), n_bits) == ([[5], [4]], 3)
    assert bits.as_packed(codes, 3)[0].tolist() == [[5], [4]]


@pytest.mark.parametrize(
    ("codes", "n_bits", "message"),
    [
        ([1, 0], None, r"codes have shape \(2,\), expected two dimensions: \(n_samples, n_bits\)\."),
        (np.zeros((0, 4)), None, r"codes are empty: shape \(0, 4\)"),
        (np.zeros((4, 0)), None, r"codes are empty: shape \(4, 0\)"),
        ([[0, 1], [2, 1]], None, "hold 1 values that are not 0 or 1, first 2 in row 1, column 0"),
        ([[0.5, 1]], None, "hold 1 values that are not 0 or 1, first 0.5 in row 0, column 0"),
        ([[np.nan, 1]], None, "hold 1 values that are not 0 or 1, first nan"),
        ([[-1, 1], [1, 0]], None, r"not -1 or 1, first 0 in row 1, column 1\. A zero beside -1 and \+1 is"),
        ([["a", "b"]], None, "of dtype <U1, expected booleans, 0/1 or -1/"),
        (np.array([[7, 9]], dtype=np.uint8), None, "values up to 9, as packed codes are.* at most 16"),
        (np.array([[7, 1]], dtype=np.uint8), 17, r"codes of 17 bits packed into bytes are uint8 of shape \(n, 3\)"),
        (np.array([[7, 1]]), 12, "codes are int64 of shape .* codes of 12 bits packed"),
        (np.array([[0, 1], [0, 16], [0, 32]], dtype=np.uint8), 12, "beyond bit 12 in 2 rows, first in row 1"),
        (np.zeros((1, 4097), dtype=bool), None, "codes must have 1 to 4096 bits, got 4097"),
        (np.zeros((1, 1), dtype=np.uint8), 0, "codes must have 1 to 4096 bits, got 0"),
    ],
)
def test_what_cannot_be_codes_is_refused_in_words(codes, n_bits, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits)


def test_errors_call_the_array_by_its_name():
    with pytest.raises(HashbenchError, match=r"^database codes have shape"):
        bits.as_packed([1], name="database codes")

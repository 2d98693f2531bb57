import base64

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashbench import bits
from hashbench.errors import HashbenchError


@given(n_bits=st.integers(1, 130), seed=st.integers(0, 2**32))
def test_unpacking_inverts_packing_and_padding_stays_zero(n_bits, seed):
    codes = np.random.default_rng(seed).random((5, n_bits)) > 0.5
    packed = bits.pack(codes)
    assert packed.shape == (5, bits.n_bytes(n_bits))
    assert packed.dtype == np.uint8
    assert bits.unpack(packed, n_bits).dtype == bool
    assert np.array_equal(bits.unpack(packed, n_bits), codes)
    assert not bits.unpack(packed, 8 * packed.shape[1])[:, n_bits:].any()
    bits.check_packed(packed, n_bits, "codes")
    same, same_bits = bits.as_packed(packed, n_bits)
    assert (same_bits, same.tolist()) == (n_bits, packed.tolist())
    values = [sum(int(word) << 64 * place for place, word in enumerate(row)) for row in bits.to_words(packed)]
    assert values == [sum(1 << i for i in range(n_bits) if code[i]) for code in codes]


def test_bit_i_is_bit_i_modulo_8_of_byte_i_over_8():
    for i in range(20):
        codes = np.zeros((1, 20), dtype=bool)
        codes[0, i] = True
        assert bits.pack(codes)[0].tolist() == [1 << i % 8 if byte == i // 8 else 0 for byte in range(3)]


BYTES = np.random.default_rng(0).integers(0, 256, (5, 3), dtype=np.uint8)
AS_BITS = np.array([[byte >> 7 - i & 1 for byte in row for i in range(8)] for row in BYTES.tolist()], dtype=bool)
SIGNED = (BYTES.astype(int) - 128).astype(np.int8)  # what sentence-transformers calls binary
TEXTS = [bytes(row).hex() for row in BYTES.tolist()]
DIGITS = ["".join(str(int(bit)) for bit in row) for row in AS_BITS]


def in_base64(rows):
    return [base64.b64encode(bytes(row)).decode() for row in rows]


IN_BASE64 = in_base64(BYTES.tolist())


@pytest.mark.parametrize(
    ("codes", "n_bits", "form"),
    [
        (AS_BITS.tolist(), None, {}),
        *((AS_BITS.astype(kind), n_bits, {}) for kind in ("?", "u1", "i1", "i8", "f2", "f8") for n_bits in (None, 24)),
        *(((2 * AS_BITS.astype(int) - 1).astype(kind), None, {}) for kind in ("i1", "i8", "f4")),
        (AS_BITS * np.uint8(255), 24, {}),
        *((AS_BITS * factor, None, {}) for factor in (255, 255.0)),
        (BYTES, 24, {"bit_order": "big"}),
        (BYTES.astype(np.int64), 24, {"bit_order": "big"}),
        (SIGNED, 24, {}),
        (SIGNED.astype(np.float64), 24, {}),
        (TEXTS, None, {}),
        ([f"0x{text}" for text in TEXTS], 24, {}),
        (np.array([f"\\x{text}" for text in TEXTS])[:, None], None, {}),
        (np.array(TEXTS, dtype="S"), None, {}),
        (np.array([text.upper() for text in TEXTS], dtype=object), None, {}),
        ([f"p:{text} " for text in TEXTS], None, {}),
        ([f"phash:0x{text}" for text in TEXTS], 24, {}),
        (DIGITS, 24, {}),
        ([f"0b{digits}" for digits in DIGITS], None, {}),
        (IN_BASE64, 24, {"bit_order": "big", "encoding": "base64"}),
        (np.array(IN_BASE64, dtype="S"), 24, {"bit_order": "big", "encoding": "base64"}),
        (np.array([[*text.encode()] for text in IN_BASE64], np.uint8), 24, {"bit_order": "big", "encoding": "base64"}),
    ],
)
def test_every_form_of_codes_is_the_same_bits(codes, n_bits, form):
    packed, length = bits.as_packed(codes, n_bits, **form)
    assert length == 24
    assert np.array_equal(packed, np.packbits(AS_BITS, axis=1, bitorder="little"))


def test_base64_may_be_for_urls_and_without_padding():
    rows = [[255, 254], [251, 255]]
    codes = [base64.urlsafe_b64encode(bytes(row)).decode().rstrip("=") for row in rows]
    assert bits.as_packed(codes, 16, encoding="base64")[0].tolist() == rows


def test_int8_that_are_the_bytes_themselves_have_the_same_distances_and_as_uint8_the_same_bits():
    stored = np.packbits(AS_BITS, axis=1).astype(np.int8)  # as Vespa and Elasticsearch store them
    expected = np.packbits(AS_BITS, axis=1, bitorder="little")
    assert np.array_equal(bits.as_packed(stored.view(np.uint8), 24, bit_order="big")[0], expected)
    read = bits.unpack(bits.as_packed(stored, 24)[0], 24)
    assert not np.array_equal(read, AS_BITS)
    assert np.array_equal((read[:, None] != read).sum(axis=2), (AS_BITS[:, None] != AS_BITS).sum(axis=2))


@pytest.mark.parametrize("n_bits", [7, 9, 12, 23])
def test_lengths_that_fill_no_byte_keep_their_bits(n_bits):
    codes = AS_BITS[:, :n_bits] | (np.arange(n_bits) == 0)  # a first bit that is set
    first = np.packbits(codes, axis=1)
    expected = np.packbits(codes, axis=1, bitorder="little").tolist()
    assert bits.as_packed(first, n_bits, bit_order="big")[0].tolist() == expected
    assert bits.as_packed((first.astype(int) - 128).astype(np.int8), n_bits)[0].tolist() == expected
    width = -(-n_bits // 4)
    written = [f"{int(''.join(str(int(bit)) for bit in row), 2):0{width}x}" for row in codes]
    if set("".join(written)) - set("01"):
        assert bits.as_packed(written, n_bits)[0].tolist() == expected


def test_hexadecimal_digits_may_begin_with_0b():
    for codes in (["0b1f", "0b00"], ["0b11", "0f00"], ["0b", "0b"]):
        expected = [[int(text[i : i + 2], 16) for i in range(0, len(text), 2)] for text in codes]
        assert np.packbits(bits.unpack(*bits.as_packed(codes)), axis=1).tolist() == expected


HASHES = np.random.default_rng(1).integers(0, 2**64, 20, dtype=np.uint64)
HASHES[:2] = 2**63 + 5, 3
OF_HASHES = np.array([[value >> 63 - i & 1 for i in range(64)] for value in HASHES.tolist()], dtype=bool)


@pytest.mark.parametrize(
    "codes",
    [
        HASHES,
        HASHES[:, None],
        HASHES.astype(">u8"),
        HASHES.view(np.int64),  # what databases call BIGINT
        HASHES.view(np.int64)[:, None].astype(">i8"),
        OF_HASHES.reshape(-1, 8, 8),  # of imagehash
        [f"0X{value:016X}" for value in HASHES.tolist()],
    ],
)
@pytest.mark.parametrize("n_bits", [None, 64])
def test_hashes_of_64_bits_are_the_same_codes_in_every_form(codes, n_bits):
    packed, length = bits.as_packed(codes, n_bits)
    assert length == 64
    np.testing.assert_array_equal(bits.unpack(packed, 64), OF_HASHES)


@given(kind=st.sampled_from(["u1", "u2", "u4", "u8"]), order=st.sampled_from("<>"), data=st.data())
def test_integers_signed_or_not_are_hashes_of_the_length_that_is_said(kind, order, data):
    width = 8 * int(kind[1])
    n_bits = data.draw(st.integers(1, width))
    unsigned = HASHES % np.uint64(2**n_bits)
    signed = unsigned.view(np.int64) - (unsigned >= 2 ** (n_bits - 1)) * (2**n_bits % 2**64 if n_bits < 64 else 0)
    for hashes in (unsigned.astype(f"{order}{kind}"), signed.astype(f"{order}i{kind[1]}")):
        if hashes.dtype.kind == "i" and n_bits > 32 and hashes.min() >= -(2**31) and hashes.max() < 2**31:
            continue  # as if they were of 32 bits
        for shaped in (hashes, hashes[:, None])[: 1 + (n_bits > 8)]:  # a column of fewer bits is one of bytes
            packed, length = bits.as_packed(shaped, n_bits)
            assert length == n_bits
            np.testing.assert_array_equal(bits.unpack(packed, n_bits), OF_HASHES[:, 64 - n_bits :])
            bits.check_packed(packed, n_bits, "codes")


def test_small_integers_are_hashes_if_they_are_said_to_have_64_bits():
    assert bits.unpack(bits.as_packed([1, 2], 64)[0], 64)[:, 62:].tolist() == [[False, True], [True, False]]


def test_queries_and_database_are_of_one_form():
    assert np.array_equal(bits.as_packed_pair(SIGNED, SIGNED, 24)[0], bits.as_packed_pair(BYTES, BYTES, 24, "big")[1])
    query, database, _ = bits.as_packed_pair(HASHES, [f"{value:016x}" for value in HASHES.tolist()])
    np.testing.assert_array_equal(query, database)
    for codes, other, n_bits, words in (
        (BYTES, SIGNED, 24, "packed bytes, database codes packed signed bytes. Give both in the same form"),
        (BYTES, AS_BITS, 24, "packed bytes, database codes a column"),
        (BYTES, TEXTS, 24, "packed bytes, database codes strings"),
        (HASHES, OF_HASHES, None, "query codes are integers, one per code, database codes a col"),
        (["p:ff"], ["d:ff"], None, "query codes are strings of kind 'p', database codes strings of kind 'd'"),
        (AS_BITS, AS_BITS[:, :23], None, "have 24 bits and database codes 23; both must be equally long"),
    ):
        with pytest.raises(HashbenchError, match=words):
            bits.as_packed_pair(codes, other, n_bits)


@pytest.mark.parametrize(
    ("codes", "n_bits", "form", "message"),
    [
        (np.zeros((5, 14, 3), bool), None, {}, r"shape \(5, 14, 3\), .* Reshape them: "),
        (np.zeros((2, 8, 8), dtype=np.uint8), None, {}, r"codes have shape \(2, 8, 8\), expected two dimensions"),
        (
            [1, 0],
            None,
            {},
            r"codes have shape \(2,\), expected two dimensions: \(n_samples, n_bits\)\. If each is a ha",
        ),
        (np.zeros((4, 0)), None, {}, r"codes are empty: shape \(4, 0\)"),
        (np.zeros((0, 8, 8), dtype=bool), None, {}, "codes are empty"),
        ([[0.5, 1]], None, {}, r"hold 1 values that are not 0 or 1, first 0.5 in row 0, column 0 .*binarise with"),
        ([[-1, 1], [1, 0]], None, {}, "not -1 or 1, first 0 in row 1, column 1"),
        ([[0, 255, 1]], None, {}, "hold 1 values that are not 0 or 255, first 1 in row 0, column 2"),
        ([["a", "b"]], None, {}, r"<U1 of shape \(1, 2\), expected strings of shape \(n,\)"),
        ([[1j, 0]], None, {}, "of dtype complex128, expected booleans, 0/1 or -1/"),
        (np.array([[7, 9]], np.uint8), None, {}, "uint8 from 7 to 9: packed codes, .* up to 16; .*--distance"),
        (np.array([[7, -9]], np.int8), None, {}, "int8 from -9 to 7: packed codes"),
        (np.array([[0, 255]], np.uint8), None, {}, "from 0 to 255.*, masks 2 and packed codes up to 16"),
        (np.array([[7, 1]], np.uint8), 17, {}, r"codes of 17 bits packed into bytes are uint8 of shape \(n, 3\)"),
        (np.array([[7, 256]]), 12, {}, "codes are int64 of shape .* codes of 12 bits packed"),
        (np.array([[7.5, 1]]), 12, {}, "codes are float64 of shape .* codes of 12 bits packed"),
        (np.array([[0, 1], [0, 16], [0, 32]], np.uint8), 12, {}, "beyond bit 12 in 2 rows, first in row 1"),
        (BYTES | 1, 23, {"bit_order": "big"}, r"beyond bit 23 in 5 rows.*bit_order='big'\)\.$"),
        ((BYTES | 1).view(np.int8), 23, {}, r"beyond bit 23 in 5 .*Vespa .* give codes\.view\(np\.uint8\) with"),
        (np.zeros((4, 16), dtype=bool), 24, {}, r"booleans of shape \(4, 16\), a column .* codes of 24 bits have 24"),
        (BYTES, 24, {"bit_order": "middle"}, "one of little, big, got 'middle'"),
        (["ff"], None, {"bit_order": "big"}, "strings, where the order of bits .big. has no effect"),
        (np.array([2**40]), None, {"bit_order": "little"}, "integers, one per code, where the order of bits"),
        (["0aff", "bff", "0cff"], None, {}, r"row 1 .* has 3 digits, most others 4\. If it lost .*'04x'"),
        (["0aff", "bffff", "0cff"], None, {}, r"row 1 .* has 5 digits, most others 4\. Fix that row"),
        (["0b101", "0b11", "0b100"], None, {}, r"row 1 .* has 2 digits, .*format\(number, '03b'\)"),
        (["0b0101", "0b1111"], 16, {}, "strings of 4 binary digits, 4 bits, of which 16 cannot be the last"),
        (["p:ab", "d:ab"], None, {}, r"row 1 .* is a hash of kind 'd', row 0 of kind 'p'"),
        (
            ["hash", "q/8=", "q/8"],
            None,
            {},
            r"row 0 .* holds 'hash', .*, or give codes as numbers; .* --encoding base64",
        ),
        (np.array(["ab", np.nan], dtype=object), None, {}, r"row 1 \(the first is 0\) is empty, expected"),
        (["0110", "1111"], None, {}, "each a bit or a hexadecimal digit.*: 4 or 16"),
        (["0110", "1111"], 8, {}, "4 or 16"),
        (["ffff"], 12, {}, "4 hexadecimal digits, 16 bits, of which 12 cannot be the last"),
        (["ff"], 7, {}, "of which 7 cannot"),
        (["ff"], 9, {}, "of which 9 cannot"),
        (np.array([1, 10**9 + 1, 10**11]), None, {}, "whose digits are all 0 and 1, .* bits that lost leading zeros"),
        (np.array([10**18 + 10**17]), 64, {}, "whose digits are all 0 and 1, such as 1100000000000000000: strings"),
        (HASHES, 32, {}, "from 3 to [0-9,]*, expected integers of 32 bits: 0 to 4,294,967,295, or .* from -2,147"),
        (np.array([-1, 2**31]), 32, {}, "from -1 to 2,147,483,648, expected"),  # neither signed nor unsigned
        (np.array([-(2**31) - 1]), 32, {}, "of 32 bits"),
        (HASHES.astype(np.int32), 64, {}, "are int32 .*, expected integers of 64 bits"),
        (BYTES[:, :1], 24, {}, "are uint8 .*, expected integers of 24"),
        (HASHES.astype(np.int32).astype(np.int64), 64, {}, r"copies of the sign.*--bits 32, .*view\(np.uint64\)"),
        (np.array([-1, 2**31 - 1]), 33, {}, "are signed integers of at most 32 bits, .* 33 bits"),
        (HASHES.astype(float), None, {}, "two dimensions.* If each is a hash, give integers, and say how many bits"),
        (
            ["q/8=", "/w=="],
            16,
            {"encoding": "base64"},
            r"row 1 \(the first is 0\) holds 1 bytes, row 0 2; expected equal",
        ),
        (["q/8=", "?"], 16, {"encoding": "base64"}, r"row 1 \(the first is 0\) holds 0 bytes"),
        (["q/8="], None, {"encoding": "base64"}, "Say how many bits they hold, at most 16"),
        (["q/8="], 17, {"encoding": "base64"}, r"codes of 17 bits packed into bytes are uint8 of shape \(n, 3\)"),
        (AS_BITS, 24, {"encoding": "base64"}, r"codes are bool of shape .* expected strings of shape \(n,\)"),
    ],
)
def test_what_may_be_read_in_two_ways_or_in_none_is_refused_in_words(codes, n_bits, form, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits, **form)

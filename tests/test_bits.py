import base64

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
        (np.zeros((5, 14, 3), bool), None, r"shape \(5, 14, 3\), .*Booleans may also be squares, .* reshape others: "),
        ([1, 0], None, r"codes have shape \(2,\), expected two dimensions: \(n_samples, n_bits\)\."),
        (np.zeros((4, 0)), None, r"codes are empty: shape \(4, 0\)"),
        ([[0.5, 1]], None, "hold 1 values that are not 0 or 1, first 0.5 in row 0, column 0"),
        ([[-1, 1], [1, 0]], None, r"not -1 or 1, first 0 in row 1, column 1 .* A zero beside -1 and \+1 is"),
        ([["a", "b"]], None, r"strings of shape \(1, 2\), expected numbers in two dimensions, or strings in one"),
        ([[1j, 0]], None, "of dtype complex128, expected booleans, 0/1 or -1/"),
        (
            np.array([[7, 9]], dtype=np.uint8),
            None,
            "values up to 9: packed codes, or embeddings .* 16 .*--distance",
        ),
        (np.array([[7, 1]], dtype=np.uint8), 17, r"codes of 17 bits packed into bytes are uint8 of shape \(n, 3\)"),
        (np.array([[7, 256]]), 12, "codes are int64 of shape .* codes of 12 bits packed"),
        (np.array([[7.5, 1]]), 12, "codes are float64 of shape .* codes of 12 bits packed"),
        (np.array([[7, -9]], dtype=np.int8), None, "values from -9 up to 7: packed codes, or embeddings"),
        (np.array([[0, 255]], dtype=np.uint8), None, "only 0 and 255.*: 2 in masks, up to 16 in packed codes"),
        ([[0, 255, 1]], None, "hold 1 values that are not 0 or 255, first 1 in row 0, column 2"),
        (np.array([[0, 1], [0, 16], [0, 32]], dtype=np.uint8), 12, "beyond bit 12 in 2 rows, first in row 1"),
        (np.zeros((4, 16), dtype=bool), 24, r"booleans of shape \(4, 16\), a column .* codes of 24 bits have 24"),
    ],
)
def test_what_cannot_be_codes_is_refused_in_words(codes, n_bits, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits)


BYTES = np.random.default_rng(0).integers(0, 256, (5, 3), dtype=np.uint8)
AS_BITS = np.array([[byte >> 7 - i & 1 for byte in row for i in range(8)] for row in BYTES.tolist()], dtype=bool)


def texts(rows, prefix=""):
    return [prefix + "".join(f"{byte:02x}" for byte in row) for row in rows]


@pytest.mark.parametrize(
    ("codes", "n_bits", "order"),
    [
        (BYTES, 24, "big"),
        (BYTES.astype(np.int64), 24, "big"),
        ((BYTES.astype(int) - 128).astype(np.int8), 24, None),  # what sentence-transformers calls binary
        ((BYTES.astype(int) - 128).astype(np.float64), 24, None),
        (texts(BYTES.tolist()), None, None),
        (texts(BYTES.tolist(), "0x"), 24, None),
        (np.array(texts(BYTES.tolist(), "\\x"))[:, None], None, None),
        (np.array(texts(BYTES.tolist()), dtype="S"), None, None),
        (np.array([text.upper() for text in texts(BYTES.tolist())], dtype=object), None, None),
        (["".join(str(int(bit)) for bit in row) for row in AS_BITS], 24, None),
        (["0b" + "".join(str(int(bit)) for bit in row) for row in AS_BITS], None, None),
        ([f"p:{text} " for text in texts(BYTES.tolist())], None, None),
        ([f"phash:0x{text}" for text in texts(BYTES.tolist())], 24, None),
        (AS_BITS * np.uint8(255), 24, None),
        (AS_BITS * 255, None, None),
        (AS_BITS * 255.0, None, None),
    ],
)
def test_codes_as_other_programs_keep_them_are_the_same_bits(codes, n_bits, order):
    packed, length = bits.as_packed(codes, n_bits, bit_order=order)
    assert length == 24
    assert np.array_equal(packed, np.packbits(AS_BITS, axis=1, bitorder="little"))


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


@pytest.mark.parametrize(
    ("codes", "n_bits", "order", "message"),
    [
        (["0aff", "bff", "0cff"], None, None, r"row 1 .* has 3 digits, the others 4\. If it lost .*'04x'"),
        (["0aff", "bff", "cff", "0dff"], None, None, r"row 1 .* has 3 digits, most others 4\."),
        (["0aff", "bffff", "0cff"], None, None, r"row 1 .* has 5 digits, the others 4\. Fix that row"),
        (["0b101", "0b11", "0b100"], None, None, r"row 1 .* has 2 digits, the others 3\. .*format\(number, '03b'\)"),
        (["0b0101", "0b1111"], 16, None, "strings of 4 binary digits, and codes of 16 bits have 16"),
        (["p:ab", "d:ab"], None, None, r"row 1 .* is a hash of kind 'd', row 0 of kind 'p'"),
        (["q/8=", "/wA="], None, None, r"holds 'q/8=', expected hexadecimal .* bytes in base64 need --encoding base64"),
        (["ab", "xy"], None, None, r"row 1 \(the first is 0\) holds 'xy'"),
        (["hash", "0123456789abcdef"], None, None, r"row 0 .* holds 'hash', .*, or give codes as numbers; bytes in"),
        (["hash", "q/8=", "q/8"], None, None, r"row 0 .* holds 'hash', .*, or give codes as numbers; bytes in"),
        (np.array(["ab", np.nan], dtype=object), None, None, r"row 1 \(the first is 0\) is empty, expected"),
        (["", ""], None, None, r"row 0 \(the first is 0\) is empty"),
        (["0110", "1111"], None, None, "each a bit or a hexadecimal digit.*: 4 or 16"),
        (["0110", "1111"], 8, None, "4 or 16"),
        (["ffff"], 12, None, "4 hexadecimal digits, 16 bits, of which 12 cannot be the last"),
        (["ff"], 7, None, "of which 7 cannot"),
        (["ff"], 9, None, "of which 9 cannot"),
        (["ff"], None, "big", "strings, where the order of bits .big. has no effect"),
        (np.array([2**40]), None, "little", "integers, one per code, where the order of bits"),
        (np.array([1, 10**9 + 1, 10**11]), None, None, "whose digits are all 0 and 1, .* bits that lost leading zeros"),
        (np.array([10**18 + 10**17]), 64, None, "whose digits are all 0 and 1, such as 1100000000000000000: strings"),
        (BYTES, None, "big", "packed codes, or"),
        (BYTES, 24, "middle", "one of little, big, got 'middle'"),
        (BYTES | 1, 23, "big", r"beyond bit 23 in 5 rows.*bit_order='big'\)\.$"),
        ((BYTES | 1).view(np.int8), 23, None, r"beyond bit 23 in 5 .*Vespa .* give codes\.view\(np\.uint8\) with"),
    ],
)
def test_codes_that_may_be_read_in_two_ways_are_refused(codes, n_bits, order, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits, bit_order=order)


def test_hexadecimal_digits_may_begin_with_0b():
    for codes in (["0b1f", "0b00"], ["0b11", "0f00"], ["0b", "0b"]):
        expected = [[int(text[i : i + 2], 16) for i in range(0, len(text), 2)] for text in codes]
        assert np.packbits(bits.unpack(*bits.as_packed(codes)), axis=1).tolist() == expected


def in_base64(rows):
    return [base64.b64encode(bytes(row)).decode() for row in rows]


@pytest.mark.parametrize(
    "codes",
    [
        in_base64(BYTES.tolist()),
        [base64.urlsafe_b64encode(bytes(row)).decode().rstrip("=") for row in BYTES.tolist()],
        np.array(in_base64(BYTES.tolist()), dtype="S"),
        np.array([[*text.encode()] for text in in_base64(BYTES.tolist())], dtype=np.uint8),
    ],
    ids=["text", "for URLs", "bytes", "a column of bytes"],
)
def test_base64_holds_packed_bytes(codes):
    packed, n_bits = bits.as_packed(codes, 24, bit_order="big", encoding="base64")
    assert n_bits == 24
    assert np.array_equal(packed, np.packbits(AS_BITS, axis=1, bitorder="little"))
    assert np.array_equal(bits.as_packed(codes, 24, encoding="base64")[0], BYTES)


@pytest.mark.parametrize(
    ("codes", "n_bits", "message"),
    [
        (["q/8=", "/w=="], 16, r"row 1 \(the first is 0\) holds 1 bytes, row 0 2; expected equally many"),
        (["q/8=", "?"], 16, r"row 1 \(the first is 0\) holds '\?'"),
        (["q/8=", None], 16, "holds 'None'"),
        (["q/8="], None, "Say how many bits they hold, at most 16"),
        (["q/8="], 17, r"codes of 17 bits packed into bytes are uint8 of shape \(n, 3\)"),
        (BYTES.astype(int), 24, r"codes are int64, and base64 is written as strings\. Leave out --encoding\."),
        (AS_BITS, 24, "codes are bool, and base64 is written as strings"),
        (np.array([[b"q/8=", b"q/8="]] * 2), 24, "strings of shape .* or strings in one"),
    ],
)
def test_what_is_no_base64_of_codes_is_refused(codes, n_bits, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits, encoding="base64")


def test_hashes_of_different_kinds_are_not_compared():
    with pytest.raises(HashbenchError, match="query codes are strings of kind 'p', database codes strings of kind 'd'"):
        bits.as_packed_pair(["p:ff"], ["d:ff"])


def test_queries_and_database_are_of_one_form():
    signed = (BYTES.astype(int) - 128).astype(np.int8)
    assert np.array_equal(bits.as_packed_pair(signed, signed, 24)[0], bits.as_packed_pair(BYTES, BYTES, 24, "big")[1])
    for other, words in ((signed, "packed signed bytes"), (AS_BITS, "a column"), (texts(BYTES.tolist()), "strings")):
        with pytest.raises(HashbenchError, match=f"packed bytes, database codes .*{words}.*the same form"):
            bits.as_packed_pair(BYTES, other, 24)
    with pytest.raises(HashbenchError, match="have 24 bits and database codes 23; both must be equally long"):
        bits.as_packed_pair(AS_BITS, AS_BITS[:, :23])


HASHES = np.random.default_rng(1).integers(0, 2**64, 20, dtype=np.uint64)
HASHES[:2] = 2**63 + 5, 3
OF_HASHES = np.array([[value >> 63 - i & 1 for i in range(64)] for value in HASHES.tolist()], dtype=bool)


@pytest.mark.parametrize(
    ("codes", "n_bits"),
    [
        (HASHES, None),
        (HASHES, 64),
        (HASHES[:, None], None),
        (HASHES.astype(">u8"), None),
        (HASHES.view(np.int64), None),  # what databases call BIGINT
        (HASHES.view(np.int64)[:, None].astype(">i8"), 64),
        (OF_HASHES.reshape(-1, 8, 8), None),  # of imagehash
        (OF_HASHES.reshape(-1, 8, 8), 64),
        ([f"{value:016x}" for value in HASHES.tolist()], None),
        ([f"0X{value:016X}" for value in HASHES.tolist()], 64),
    ],
)
def test_hashes_of_64_bits_are_the_same_codes_in_every_form(codes, n_bits):
    packed, length = bits.as_packed(codes, n_bits)
    assert length == 64
    np.testing.assert_array_equal(bits.unpack(packed, 64), OF_HASHES)


@pytest.mark.parametrize(
    ("kind", "n_bits"),
    [
        *[(f"{order}{kind}", 16) for order in "<>" for kind in ("u2", "i2")],
        *[(kind, 32) for kind in (">u4", "<i4", ">i4", "u4", "u8", "i8")],
        *[(kind, n_bits) for kind in ("u8", ">i8") for n_bits in (1, 7, 12, 33, 48, 63)],
        ("u1", 8),
        ("i1", 8),
        ("i4", 12),
        (">u4", 31),
    ],
)
def test_integers_of_any_width_are_hashes_of_the_length_that_is_said(kind, n_bits):
    hashes = (HASHES % np.uint64(2**n_bits)).astype(kind)
    for shaped in (hashes, hashes[:, None])[: 1 + (n_bits > 8)]:  # a column of fewer bits is one of bytes
        packed, length = bits.as_packed(shaped, n_bits)
        assert length == n_bits
        np.testing.assert_array_equal(bits.unpack(packed, n_bits), OF_HASHES[:, 64 - n_bits :])
        bits.check_packed(packed, n_bits, "codes")


@pytest.mark.parametrize("n_bits", [12, 16, 31, 32])
@pytest.mark.parametrize("kind", ["i4", "i8"])
def test_signed_integers_that_were_widened_lose_the_copies_of_their_sign(n_bits, kind):
    unsigned = HASHES % np.uint64(2**n_bits)
    signed = np.where(unsigned < 2 ** (n_bits - 1), unsigned, unsigned.astype(np.int64) - 2**n_bits).astype(kind)
    assert signed.min() < 0
    np.testing.assert_array_equal(bits.as_packed(signed, n_bits)[0], bits.as_packed(unsigned, n_bits)[0])


def test_integers_and_hexadecimal_texts_may_be_compared():
    query, database, n_bits = bits.as_packed_pair(HASHES, [f"{value:016x}" for value in HASHES.tolist()])
    assert n_bits == 64
    np.testing.assert_array_equal(query, database)
    with pytest.raises(HashbenchError, match="query codes are integers, one per code, database codes a col"):
        bits.as_packed_pair(HASHES, OF_HASHES)


@pytest.mark.parametrize(
    ("codes", "n_bits", "message"),
    [
        (
            HASHES,
            32,
            "are integers from 3 to [0-9,]*, expected 32 bits: 0 to 4,294,967,295, or signed ones from -2,147",
        ),
        (HASHES.astype(np.uint32), 16, "expected 16 bits: 0 to 65,535, or signed ones from -32,768 to 32,767"),
        (np.array([-1, 2**31]), 32, "from -1 to 2,147,483,648, expected 32 bits"),  # neither signed nor unsigned
        (np.array([-(2**31) - 1]), 32, "expected 32 bits"),
        (HASHES.astype(np.int32), 64, r"are int32, which hold at most 32 bits, expected 64\. Check the number"),
        (BYTES[:, :1], 24, "are uint8, which hold at most 8 bits, expected 24"),
        (HASHES.astype(np.int32).astype(np.int64), 64, r"copies of the sign.*--bits 32, .*view\(np.uint64\)"),
        (np.array([-1, 2**31 - 1]), 33, "are signed integers of at most 32 bits, .* 33 bits"),
        (HASHES.astype(np.uint32), None, "two dimensions.* If each is a hash, say how many bits it has"),
        (np.arange(5, dtype=np.int32), None, "If each is a hash, say how many bits it has: --bits, or n_bits="),
        (HASHES.astype(float), None, "two dimensions.* If each is a hash, give integers, and say how many bits"),
        (np.zeros((2, 8, 7), dtype=bool), None, r"codes have shape \(2, 8, 7\), expected two dimensions"),
        (np.zeros((2, 8, 8), dtype=np.uint8), None, r"codes have shape \(2, 8, 8\), expected two dimensions"),
        (np.zeros((0, 8, 8), dtype=bool), None, "codes are empty"),
    ],
)
def test_what_may_be_no_hashes_is_refused(codes, n_bits, message):
    with pytest.raises(HashbenchError, match=message):
        bits.as_packed(codes, n_bits)


def test_small_integers_are_hashes_if_they_are_said_to_have_64_bits():
    assert bits.unpack(bits.as_packed([1, 2], 64)[0], 64)[:, 62:].tolist() == [[False, True], [True, False]]

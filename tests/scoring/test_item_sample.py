import numpy as np
import pytest

from hashbench.bits import pack, to_words
from hashbench.scoring import equal_rows, item_sample
from hashbench.scoring.equal_rows import row_hashes

N_CHOSEN = 1024


@pytest.mark.parametrize("loops", ["compiled", "plain"])
@pytest.mark.parametrize(
    ("n_items", "n_distinct", "n_bits"),
    [(2049, 1, 3), (2049, 3000, 16), (16_384, 5, 64), (16_384, 20_000, 100), (20_000, 3000, 64), (20_000, 20_000, 16)],
)
def test_sampled_items_lie_at_equal_distances_in_the_order_of_all(n_bits, n_distinct, n_items, loops, monkeypatch):
    if loops == "plain":
        monkeypatch.setattr(item_sample, "_narrowed", item_sample._narrowed_by_sizes)
        monkeypatch.setattr(item_sample, "_at_places", item_sample._at_places_by_sorting)
    rng = np.random.default_rng(n_bits)
    codes = (rng.random((n_distinct, n_bits)) < 0.5)[rng.integers(0, n_distinct, n_items)]
    labels = rng.integers(0, 10, (n_items, 1))
    words = to_words(pack(codes))
    of_code = words[:, 0] << np.uint64(64 - min(n_bits, 64)) >> np.uint64(16)  # the 48 last bits of the first word
    hashes = row_hashes(words, labels)
    order = np.lexsort((hashes, hashes & np.uint64(0xFFFF), of_code))
    expected = order[(2 * np.arange(N_CHOSEN) + 1) * n_items // (2 * N_CHOSEN)]
    chosen = item_sample._draw(pack(codes), n_bits, labels)
    np.testing.assert_array_equal(chosen, expected)


@pytest.mark.parametrize("n_items", [1, 70, 5000])
def test_items_at_places_are_those_of_a_plain_sort_where_few_keys_share_their_first_bits(n_items):
    rng = np.random.default_rng(n_items)
    groups = np.unique(rng.integers(0, 3, n_items), return_inverse=True)[1]
    keys = rng.integers(0, 3, n_items).astype(np.uint64) + np.uint64(7 << 50)
    places = np.arange(0, n_items, 3)
    expected = sorted(range(n_items), key=lambda item: (groups[item], keys[item], item))
    for at_places in (item_sample._at_places, item_sample._at_places_by_sorting):
        assert at_places(groups, keys, places).tolist() == expected[::3]


@pytest.mark.parametrize("loops", ["compiled", "plain"])
def test_hashes_of_rows_mix_each_column_in_as_splitmix64_does(loops, monkeypatch):
    if loops == "plain":
        monkeypatch.setattr(equal_rows, "_mix_in", equal_rows._mix_in_whole)
    rng, mask = np.random.default_rng(0), 2**64 - 1
    words, keys = rng.integers(0, 2**64, (20, 2), dtype=np.uint64), rng.integers(-(2**63), 2**63, (20, 1))

    def mixed(word):
        word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & mask
        word = (word ^ (word >> 27)) * 0x94D049BB133111EB & mask
        return word ^ (word >> 31)

    for row, of_row in enumerate(row_hashes(words, keys).tolist()):
        expected = 0
        for column in (*words[row].tolist(), *keys[row].tolist()):
            expected = mixed((expected + 0x9E3779B97F4A7C15 & mask) ^ (column & mask))
        assert of_row == expected

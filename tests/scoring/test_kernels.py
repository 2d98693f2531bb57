import numpy as np
import pytest

from hashbench.bits import pack, to_words
from hashbench.scoring import engine, kernels

CHUNK, TILE = 2048, 65536  # a test below holds them to the kernels' own
NO_WEIGHTS = np.zeros(0, np.int64)


def numpy_count_levels(query, database, levels, counts, weights=NO_WEIGHTS):
    for row, code in enumerate(query):
        distances = sum(
            np.bitwise_count(word ^ of_items).astype(int) for word, of_items in zip(code, database, strict=True)
        )
        np.add.at(counts[row], (levels[row], distances), weights if weights.size else 1)


def numpy_count_ranges(query, start, stop, database, weights, counts):
    rows = np.arange(database.shape[1])
    levels = ((start[..., None] <= rows) & (rows < stop[..., None])).sum(axis=0)
    numpy_count_levels(query, database, levels, counts, weights)


def numpy_count_shared(query, query_masks, database, masks, first, weights, counts):
    levels = np.bitwise_count(query_masks[:, :, None] & masks).sum(axis=1, dtype=np.int64)
    numpy_count_levels(query, database[:, first:], levels[:, first:], counts, weights[first:])


def numpy_count_runs(query, query_masks, database, masks, edges, counts):
    masks = np.repeat(masks, np.diff(edges), axis=1)
    numpy_count_shared(query, query_masks, database[:, : edges[-1]], masks, 0, NO_WEIGHTS, counts)


UNWEIGHTED = ("runs", "levels")
KERNELS = {
    "ranges": numpy_count_ranges,
    "shared": numpy_count_shared,
    "runs": numpy_count_runs,
    "levels": numpy_count_levels,
}
KINDS = [(kind, weighted) for kind in KERNELS for weighted in (False, True) if kind not in UNWEIGHTED or not weighted]


def random_words(rng, n_rows, n_bits):
    """Codes of mixed density, with the all-zero and the all-one code among them."""
    codes = rng.random((n_rows, n_bits)) < rng.random((n_rows, 1))
    codes[:1], codes[-1:] = False, True
    return to_words(pack(codes))


def arguments(kind, rng, n_bits, n_rows, n_queries, weighted, n_classes=70):
    """Draw the arguments of a kernel, the counts to add to last."""
    query = random_words(rng, n_queries, n_bits)
    database = np.ascontiguousarray(random_words(rng, n_rows, n_bits).T)
    weights = rng.integers(1, 10**6, n_rows if weighted else 0)
    n_levels = {"ranges": 3, "levels": 4}.get(kind, n_classes + 1)
    counts = rng.integers(0, 100, (n_queries, n_levels, n_bits + 1))
    if kind == "ranges":
        edges = np.sort(rng.integers(0, n_rows + 1, (4, n_queries)), axis=0)
        start, stop = edges[[0, 1]], edges[[3, 2]]  # the second range inside the first
        start[:, 0], stop[:, 0] = 0, n_rows
        stop[:, -1] = start[:, -1] = start[0, -1]  # nothing relevant
        return [query, start, stop, database, weights, counts]
    if kind in ("shared", "runs"):
        query_masks = random_words(rng, n_queries, n_classes)
        masks = np.ascontiguousarray(random_words(rng, n_rows, n_classes).T)
        if kind == "shared":
            return [query, query_masks, database, masks, 0, weights, counts]
        edges = np.unique([0, *rng.integers(0, n_rows, min(n_rows, 9)), n_rows])
        return [query, query_masks, database, np.ascontiguousarray(masks[:, : len(edges) - 1]), edges, counts]
    levels = rng.integers(0, n_levels, (n_queries, n_rows)).astype(np.int16)
    return [query, database, levels, counts]


def assert_same_counts(kind, drawn, label=""):
    before = drawn[-1]
    compiled, plain, expected = before.copy(), before.copy(), before.copy()
    getattr(kernels, f"count_{kind}")(*drawn[:-1], compiled)
    getattr(engine, f"count_{kind}")(*drawn[:-1], plain)
    KERNELS[kind](*drawn[:-1], expected)
    np.testing.assert_array_equal(compiled, expected, err_msg=label)
    np.testing.assert_array_equal(plain, expected, err_msg=label)
    database, first = drawn[{"ranges": 3, "levels": 1}.get(kind, 2)], drawn[4] if kind == "shared" else 0
    is_weighted = kind not in UNWEIGHTED and drawn[-2].size
    n_items = drawn[-2][first:].sum() if is_weighted else database.shape[1] - first
    np.testing.assert_array_equal((compiled - before).sum(axis=(1, 2)), n_items, err_msg=label)


@pytest.mark.parametrize(("kind", "weighted"), KINDS)
def test_compiled_and_plain_counts_are_right_for_every_code_length(kind, weighted):
    rng = np.random.default_rng(0)
    for n_bits in (*range(1, 10), 31, 63, 64, 65, 127, 128, 129, 130, 192, 255, 256, 257, 1000, 4095, 4096):
        drawn = arguments(kind, rng, n_bits, int(rng.integers(1, 60)), 5, weighted)
        assert_same_counts(kind, drawn, f"{n_bits} bits")


@pytest.mark.parametrize(("kind", "weighted"), KINDS)
def test_compiled_and_plain_counts_are_right_across_chunk_and_tile_boundaries(kind, weighted):
    assert (CHUNK, TILE) == (kernels._CHUNK, kernels._TILE)
    rng = np.random.default_rng(1)
    for n_rows in (*range(1, 10), CHUNK - 1, CHUNK, CHUNK + 1, TILE - 1, TILE, TILE + 1, 2 * TILE + CHUNK + 3):
        assert_same_counts(kind, arguments(kind, rng, 12, n_rows, 3, weighted), f"{n_rows} rows")


@pytest.mark.parametrize("kind", ["shared", "runs"])
@pytest.mark.parametrize("n_classes", [1, 64, 65, 200])
def test_compiled_and_plain_counts_of_shared_labels_are_right_for_masks_of_any_width(n_classes, kind):
    assert_same_counts(kind, arguments(kind, np.random.default_rng(2), 65, 300, 4, False, n_classes))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("first", [1, CHUNK + 1, TILE, TILE + CHUNK])
def test_counts_of_shared_labels_may_begin_at_any_row(first, weighted):
    *drawn, _, weights, before = arguments("shared", np.random.default_rng(5), 9, TILE + CHUNK, 2, weighted)
    assert_same_counts("shared", [*drawn, first, weights, before])


def test_counters_of_runs_do_not_overflow_where_all_rows_are_equal():
    query, n_rows = np.ones((2, 1), np.uint64), 3 * TILE + 1
    edges, counts = np.array([0, n_rows - 1, n_rows]), np.zeros((2, 2, 9), np.int64)
    kernels.count_runs(query, query, np.zeros((1, n_rows), np.uint64), np.ones((1, 2), np.uint64), edges, counts)
    assert counts[:, 1, 1].tolist() == [n_rows, n_rows]
    assert counts.sum() == 2 * n_rows


def test_compiled_ranges_may_start_and_stop_at_any_boundary():
    rng = np.random.default_rng(3)
    edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 5]
    pairs = np.array([(start, stop) for start in edges for stop in edges if start <= stop])
    drawn = arguments("ranges", rng, 8, edges[-1], len(pairs), False)
    drawn[1:3] = (np.stack([side, drawn[1][0] * 0]) for side in pairs.T)  # the second range empty
    assert_same_counts("ranges", drawn)

import json
import subprocess
import sys

import numpy as np
import pytest

from hashbench.bits import pack, to_words
from hashbench.scoring import kernels

needs_numba = pytest.mark.skipif(not kernels.HAVE_NUMBA, reason="compares compiled loops with NumPy")
CHUNK, TILE = 2048, 65536  # a test below holds them to the kernels' own

KERNELS = {
    "ranges": (kernels.count_ranges, kernels.numpy_count_ranges),
    "shared": (kernels.count_shared, kernels.numpy_count_shared),
    "levels": (kernels.count_levels, kernels.numpy_count_levels),
}


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
    n_levels = {"ranges": 3, "shared": n_classes + 1, "levels": 4}[kind]
    counts = rng.integers(0, 100, (n_queries, n_levels, n_bits + 1))
    if kind == "ranges":
        edges = np.sort(rng.integers(0, n_rows + 1, (4, n_queries)), axis=0)
        start, stop = edges[[0, 1]], edges[[3, 2]]  # the second range inside the first
        start[:, 0], stop[:, 0] = 0, n_rows
        stop[:, -1] = start[:, -1] = start[0, -1]  # nothing relevant
        return [query, start, stop, database, weights, counts]
    if kind == "shared":
        query_masks = random_words(rng, n_queries, n_classes)
        masks = np.ascontiguousarray(random_words(rng, n_rows, n_classes).T)
        return [query, query_masks, database, masks, weights, counts]
    levels = rng.integers(0, n_levels, (n_queries, n_rows)).astype(np.int16)
    return [query, database, levels, weights, counts]


def assert_same_counts(kind, given, label=""):
    before = given[-1]
    compiled, plain = before.copy(), before.copy()
    fast, slow = KERNELS[kind]
    fast(*given[:-1], compiled)
    slow(*given[:-1], plain)
    np.testing.assert_array_equal(compiled, plain, err_msg=label)
    weights = given[-2]
    n_rows = given[{"ranges": 3, "shared": 2, "levels": 1}[kind]].shape[1]
    n_items = weights.sum() if weights.size else n_rows
    np.testing.assert_array_equal((compiled - before).sum(axis=(1, 2)), n_items, err_msg=label)


@needs_numba
@pytest.mark.parametrize("weighted", [False, True], ids=["single", "weighted"])
@pytest.mark.parametrize("kind", KERNELS)
def test_compiled_counts_equal_numpy_counts_for_every_code_length(kind, weighted):
    rng = np.random.default_rng(0)
    for n_bits in (*range(1, 131), 256, 1000, 4095, 4096):
        given = arguments(kind, rng, n_bits, int(rng.integers(1, 60)), 5, weighted)
        assert_same_counts(kind, given, f"{n_bits} bits")


@needs_numba
@pytest.mark.parametrize("weighted", [False, True], ids=["single", "weighted"])
@pytest.mark.parametrize("kind", KERNELS)
def test_compiled_counts_equal_numpy_counts_across_chunk_and_tile_boundaries(kind, weighted):
    assert (CHUNK, TILE) == (kernels._CHUNK, kernels._TILE)
    rng = np.random.default_rng(1)
    for n_rows in (*range(1, 10), CHUNK - 1, CHUNK, CHUNK + 1, TILE - 1, TILE, TILE + 1, 2 * TILE + CHUNK + 3):
        assert_same_counts(kind, arguments(kind, rng, 12, n_rows, 3, weighted), f"{n_rows} rows")


@needs_numba
@pytest.mark.parametrize("n_classes", [1, 63, 64, 65, 200])
def test_compiled_counts_of_shared_labels_equal_numpy_counts_for_masks_of_any_width(n_classes):
    given = arguments("shared", np.random.default_rng(2), 65, 300, 4, False, n_classes)
    assert_same_counts("shared", given)


@needs_numba
def test_compiled_ranges_may_start_and_stop_at_any_boundary():
    rng = np.random.default_rng(3)
    edges = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, TILE - 1, TILE, TILE + 1, 2 * TILE, 2 * TILE + 5]
    pairs = np.array([(start, stop) for start in edges for stop in edges if start <= stop])
    given = arguments("ranges", rng, 8, edges[-1], len(pairs), False)
    given[1:3] = (np.stack([side, given[1][0] * 0]) for side in pairs.T)  # the second range empty
    assert_same_counts("ranges", given)


def test_numpy_counts_equal_an_obvious_loop():
    rng = np.random.default_rng(4)
    query, database, levels, weights, counts = arguments("levels", rng, 70, 9, 3, True)
    expected = counts.copy()
    for row in range(3):
        for item in range(9):
            differing = sum(int(a ^ b).bit_count() for a, b in zip(query[row], database[:, item], strict=True))
            expected[row, levels[row, item], differing] += weights[item]
    kernels.numpy_count_levels(query, database, levels, weights, counts)
    np.testing.assert_array_equal(counts, expected)


METRICS = ["AP", "AP@7", "AP@300", "AP@300:capped", "NDCG", "NDCG@100", "P@10", "P@r2"]
SCORE_ALL = f"""
import numpy as np
from hashbench import evaluate
from hashbench.scoring import kernels
rng = np.random.default_rng(5)
query, database = rng.random((20, 9)) > 0.5, rng.random((700, 9)) > 0.4
classes = rng.integers(0, 4, 20), rng.integers(0, 4, 700)
tags = rng.integers(0, 2, (20, 5)), rng.integers(0, 2, (700, 5))
graded = rng.choice([0, 0, 1, 10], (20, 700))
scores = [
    [part.tolist() for values in evaluate(query, database, affinity, {METRICS}).scores.values() for part in values]
    for affinity in (classes, tags, graded)
]
"""


@needs_numba
def test_scores_are_the_same_to_the_last_bit_where_numba_is_missing():
    here = {}
    exec(SCORE_ALL, here)
    without = "import sys; sys.modules['numba'] = None\n" + SCORE_ALL
    without += "import json; assert not kernels.HAVE_NUMBA; print(json.dumps(scores))"
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", without]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == json.dumps(here["scores"])  # every bit of each float64

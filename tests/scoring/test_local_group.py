"""LGAP against brute force over sets of codes, and the paper's worked example."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hashbench
from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.errors import HashbenchError
from hashbench.scoring.counting import Buckets
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import get_metric

N_BITS = 4
CODES = st.tuples(*[st.booleans()] * N_BITS)


def lgap(query, database, is_relevant, radius):
    """Equation 10 word by word: the ball as the set of all its codes."""
    if not any(is_relevant):
        return math.nan
    total = 0.0
    for k in range(radius + 1):
        ball = [code for code in itertools.product([False, True], repeat=len(query)) if distance(code, query) <= k]
        inside = [row for row, code in enumerate(database) if code in ball]
        if inside:
            precision = sum(is_relevant[row] for row in inside) / len(inside)
            most = max(Counter(database[row] for row in inside).values())
            total += precision * len(inside) / (most * len(ball))
    return total / (radius + 1)


def distance(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


def scored(queries, database, affinity, name):
    scores = hashbench.evaluate(np.array(queries), np.array(database), affinity, [name]).scores[name]
    assert scores.mean.tobytes() == scores.low.tobytes() == scores.high.tobytes()
    return scores.mean


def bits(text):
    return tuple(letter == "1" for letter in text)


def test_worked_example_of_the_paper():
    items = [("0000", 1), ("0000", 1), ("1000", 1), ("1000", 1), ("0100", 0), ("0100", 0)]
    items += [("1100", 1), ("1100", 0), ("0011", 0), ("0011", 0)]
    codes, levels = [bits(code) for code, _ in items], [[level for _, level in items]]
    assert scored([bits("0000")], codes, np.array(levels), "LGAP@r2") == pytest.approx([0.5424242424242425], abs=1e-15)


@given(
    queries=st.lists(CODES, min_size=1, max_size=4),
    items=st.lists(st.tuples(CODES, st.integers(0, 2)), min_size=1, max_size=12),
    radius=st.integers(0, N_BITS),
)
def test_value_equals_brute_force_over_the_codes_of_each_ball(queries, items, radius):
    database, labels = [code for code, _ in items], np.array([label for _, label in items])
    wanted = np.arange(len(queries)) % 2
    expected = [lgap(query, database, labels == label, radius) for query, label in zip(queries, wanted, strict=True)]
    lgap_values = scored(queries, database, SameLabel(wanted, labels), f"LGAP@r{radius}")
    assert lgap_values == pytest.approx(expected, abs=1e-15, nan_ok=True)


@pytest.mark.parametrize("n_bits", [1, 64, 65, 2000])
def test_long_codes_and_many_equal_ones(n_bits):
    rng = np.random.default_rng(n_bits)
    query = rng.random((3, n_bits)) < 0.5
    database = query[rng.integers(0, 3, 200)] ^ (rng.random((200, n_bits)) < 1.5 / n_bits)
    levels, radius = rng.integers(0, 2, (3, 200)), min(n_bits, 3)
    distances, expected = (query[:, None] != database).sum(axis=2), []
    for of_query, relevant in zip(distances, levels, strict=True):
        terms = []
        for k in range(radius + 1):
            inside = of_query <= k
            most = max(Counter(map(bytes, database[inside])).values(), default=1)
            terms.append(relevant[inside].sum() / most / sum(math.comb(n_bits, i) for i in range(k + 1)))
        expected.append(np.mean(terms))
    assert scored(query, database, levels, f"LGAP@r{radius}") == pytest.approx(expected, rel=1e-14)


def test_buckets_of_parts_add_up_where_maxima_would_not():
    codes = pack(np.array([bits("0001"), bits("0010"), bits("0001"), bits("0010"), bits("0001"), bits("1111")]))
    query = pack(np.array([bits("0000")]))
    whole, parts = Buckets.of(codes, 4), [Buckets.of(part, 4) for part in (codes[:3], codes[3:])]
    assert whole.largest(query, 4).tolist() == [[0, 3, 0, 0, 1]]
    assert Buckets.united(parts).largest(query, 4).tolist() == whole.largest(query, 4).tolist()
    assert np.max([part.largest(query, 4) for part in parts], axis=0).tolist() == [[0, 2, 0, 0, 1]]  # split: too few


def test_a_radius_beyond_the_codes_and_rankings_without_codes_are_refused():
    codes, labels = np.eye(N_BITS) > 0, np.arange(N_BITS) % 2
    with pytest.raises(HashbenchError, match=r"LGAP@r5 needs codes of 5 bits or more, these have 4"):
        scored(codes, codes, (labels, labels), "LGAP@r5")
    with pytest.raises(HashbenchError, match=r"largest buckets"):
        get_metric("LGAP@r2").scores(TieHistogram.from_pairs([[0, 1]], [[1, 0]], n_bits=4))

import os
from dataclasses import replace

import numpy as np
import pytest

from hashbench.store import provenance, score_cache
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import Provenance
from hashbench.store.result_rows import Row

VALUES = np.array([0.25, np.nan, 0.75, 1.0])
KEY = ("tiny", "pixels", "lsh", '{"a": [1, null], "b": 2}', 8, 3)
PROVENANCE = Provenance(*KEY, "aaaa", 1)
ROW = Row(*KEY, "AP", "0.666667", "0.000000", "0.566667", "0.766667", 4, 1, "aaaa", 1)


def codes(seed=0, dataset="tiny"):
    rng = np.random.default_rng(seed)
    arrays = (rng.integers(0, 256, (n, 1), dtype=np.uint8) for n in (4, 9))
    return Codes(*arrays, made=replace(PROVENANCE, dataset=dataset))


def keep(values, of_codes=None):
    scored = of_codes or codes()
    scores = np.stack([values, values - 0.1, values + 0.1, 0 * values])
    score_cache.write(scored, {**score_cache.read(scored), "AP": scores})
    return score_cache.place(scored)[0]


def test_queries_behind_a_row_are_found():
    assert score_cache.find_scores(ROW) is None
    keep(VALUES)
    np.testing.assert_array_equal(score_cache.find_scores(ROW), VALUES)


OTHER = Row("other", "gist", "itq", "{}", 16, 4, "NDCG", "0.666668", "0.0", "0.566668", "0.766668", 5, 1, "bbbb", 2)


@pytest.mark.parametrize("field", [field for field in Row._fields if field not in ("tie_sd", "n_undefined")])
def test_queries_of_another_row_are_not_found(field):
    keep(VALUES)
    assert score_cache.find_scores(ROW._replace(**{field: getattr(OTHER, field)})) is None


def test_scores_of_earlier_codes_stay():
    keep(VALUES)
    keep(VALUES / 2, codes(seed=1))
    np.testing.assert_array_equal(score_cache.find_scores(ROW), VALUES)
    later = ROW._replace(value="0.333333", low="0.233333", high="0.433333")
    np.testing.assert_array_equal(score_cache.find_scores(later), VALUES / 2)


def test_same_scores_of_another_version_are_found(monkeypatch):
    first = keep(VALUES)
    monkeypatch.setattr(provenance, "SCORES_VERSION", 0)
    assert keep(VALUES + 1e-12) != first
    np.testing.assert_allclose(score_cache.find_scores(ROW), VALUES)


@pytest.mark.parametrize("order", [[3, 2, 1, 0], [0, 1, 3, 2]])  # the second differs in numbers alone
def test_row_that_fits_different_queries_is_left_alone(order):
    keep(VALUES)
    keep(VALUES[order], codes(seed=1))
    assert score_cache.find_scores(ROW) is None


def test_oldest_scores_of_a_job_go_first(monkeypatch):
    monkeypatch.setattr(score_cache, "N_KEPT", 3)
    other = keep(VALUES, codes(dataset="other"))
    paths = []
    for seed in range(5):
        paths.append(keep(VALUES, codes(seed=seed)))
        os.utime(paths[-1], (seed, seed))
    assert [path.exists() for path in paths] == [False, False, True, True, True]
    assert other.exists()


def test_damaged_scores_are_not_given():
    path = keep(VALUES)
    path.write_bytes(path.read_bytes().replace(VALUES.tobytes(), VALUES[::-1].tobytes()))
    assert score_cache.read(codes()) == {}
    assert score_cache.find_scores(ROW) is None

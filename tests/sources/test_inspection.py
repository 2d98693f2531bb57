import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.distance import cdist

from hashbench.dataset import Dataset
from hashbench.sources import inspection
from hashbench.sources.inspection import inspect, warning_of
from hashbench.store import hdf5

QUERY, DATABASE, TRAIN = np.arange(0, 4), np.arange(4, 12), np.arange(9, 12)


def make(features=None, **changes):
    fields = {"rule": "same-label", "labels": np.arange(12) % 3} | changes
    return Dataset("tiny", features, QUERY, DATABASE, TRAIN, **fields)


def count_equal(items, query, others):
    return sum(any((items[i] == items[j]).all() for j in others) for i in query)


SMALL = st.sampled_from([-1.0, -0.0, 0.0, 1.0])  # so few values that rows repeat, and both zeros


@given(arrays(np.float32, st.tuples(st.just(12), st.integers(1, 3)), elements=SMALL))
def test_counts_are_those_of_comparing_all_pairs_and_all_columns(features):
    counts = inspect(make(features))
    assert counts.n_queries_in_database == count_equal(features, QUERY, DATABASE)
    assert counts.n_queries_in_train == count_equal(features, QUERY, TRAIN)
    assert counts.n_constant == sum(len(set(column.tolist())) == 1 for column in features.T)
    assert counts.n_zero == sum(not any(row) for row in features.tolist())


@given(arrays(np.uint8, (12, 1, 2, 1), elements=st.integers(0, 2)))
def test_duplicates_among_images_are_counted_when_there_are_no_features(images):
    counts = inspect(make(images=images))
    assert counts.n_queries_in_database == count_equal(images, QUERY, DATABASE)
    assert counts.n_queries_in_train == count_equal(images, QUERY, TRAIN)
    assert (counts.n_constant, counts.n_zero) == (0, 0)


def test_minus_zero_equals_zero():
    features = np.arange(24, dtype=np.float32).reshape(12, 2) + 1
    features[0], features[5] = [0.0, 7.0], [-0.0, 7.0]
    assert inspect(make(features)).n_queries_in_database == 1


def test_features_decide_where_there_are_images_too():
    features = np.arange(24, dtype=np.float32).reshape(12, 2)
    images = np.zeros((12, 2, 2, 3), dtype=np.uint8)
    assert inspect(make(features, images=images)).n_queries_in_database == 0


def near(features, query, others):
    """Return whether each query has an item within a ten-thousandth of the median distance, pair by pair."""
    apart = cdist(features[query].astype(float), features[others].astype(float))
    return (apart <= 1e-4 * np.median(apart)).any(axis=1)


@pytest.mark.parametrize(("n_features", "scale"), [(1, 1), (3, 1e-3), (200, 1e3)])
def test_near_copies_are_those_that_comparing_all_pairs_finds(n_features, scale):
    rng = np.random.default_rng(n_features)
    features = scale * rng.normal(size=(600, n_features))
    features[:20] = features[300:320] + 1e-6 * scale  # of database items
    features[20:25] = features[500:505] - 1e-6 * scale  # of training items
    features[25:28] = features[400:403]
    features[28:30] = features[403:405] * (1 + 1e-2)
    features, query, database, train = features.astype(np.float32), *map(np.arange, (0, 100, 450), (100, 600, 600))
    counts = inspect(Dataset("tiny", features, query, database, train, rule="same-label", labels=np.arange(600) % 3))
    assert counts.n_queries_in_database == 3
    if n_features > 1:  # on a line some of 100 queries are near to another of 500 items by chance
        assert (counts.n_near_database, counts.n_near_train) == (25, 5)
        assert near(features, query, database).sum() == 28


def test_near_copies_are_found_far_from_the_origin_and_in_a_crowd():
    rng = np.random.default_rng(0)
    features = np.full((3000, 5), 100, dtype=np.float32)
    features[1000:] += rng.normal(size=(2000, 5)).astype(np.float32)  # the first thousand are all alike
    features[:10] = features[2000:2010]
    features[:10, 0] += 2e-5
    parts = np.arange(10), np.arange(10, 3000), np.arange(10, 20)
    counts = inspect(Dataset("tiny", features, *parts, rule="same-label", labels=np.arange(3000) % 3))
    assert counts.n_queries_in_database + counts.n_near_database == near(features, *parts[:2]).sum() == 10
    assert counts.n_near_train == 0


def test_near_copies_of_images_and_among_too_many_items_are_not_counted(monkeypatch):
    counts = inspect(make(images=np.zeros((12, 2, 2, 1), dtype=np.uint8)))
    assert (counts.n_near_database, counts.n_near_train) == (None, None)
    monkeypatch.setattr("hashbench.sources.inspection.MOST_ITEMS", 11)
    counts = inspect(make(np.arange(12, dtype=np.float32)[:, None]))
    assert (counts.n_near_database, counts.n_near_train) == (None, None)


@pytest.fixture
def leaky(hashbench, data, tmp_path):
    """Prepare 200 items, half of them for training, and 20 queries, of which those named are copies of items."""

    def prepare(copies, shift=0.0, *choices):
        rng = np.random.default_rng(0)
        items = rng.normal(size=(200, 6)).astype(np.float32)
        queries = rng.normal(size=(20, 6)).astype(np.float32)
        for query, item in copies.items():
            queries[query] = items[item] + np.float32(shift)
        arrays = {
            "from": items,
            "labels": np.arange(200) % 2,
            "query-from": queries,
            "query-labels": np.arange(20) % 2,
            "train-index": np.arange(100),
        }
        options = []
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
            options += [f"--{name}", tmp_path / f"{name}.npy"]
        return hashbench("prepare", *options, "--name", "leaky", *choices)

    return prepare


TEN = {query: query for query in range(5, 15)}
OUTSIDE = {3: 150, 4: 151}  # items that are no training items
HAVE = "queries have an equal or nearly equal item"


def test_commands_and_pages_warn_of_copies(hashbench, leaky, tmp_path, monkeypatch):
    n_inspected = count_calls(monkeypatch)
    warning = leaky(TEN | OUTSIDE, 1e-6).stderr.strip()
    assert n_inspected == [1]
    assert warning.startswith(f"Warning: in leaky, 12 of 20 {HAVE} in the database and 10 among the training items,")
    assert (
        ": 3, 4, 5, 6, 7 and 7 more (counted from 0; `hashbench info` with --format json lists all). `prepare --leave-"
        in warning
    )
    assert warning.endswith("--leave-out duplicates` leaves them out of your own data.")
    sentence = warning.removeprefix("Warning: in leaky, ")
    facts = dict(line.split(":", 1) for line in hashbench("info", "leaky").stdout.splitlines())
    assert facts["warning"].strip() == sentence
    on_leaky = ("--dataset", "leaky", "--bits", 4, "--method")
    done = hashbench("run", *on_leaky, "lsh", "--method", "pcah", "--results", tmp_path / "results")
    assert done.stderr.splitlines().count(warning) == done.stderr.count("leaky,") == 1
    tuned = hashbench("tune", *on_leaky, "itq", "--trials", 1, "--output", tmp_path / "tuning")
    assert tuned.stderr.splitlines().count(warning) == 1
    hashbench("report", "--results", tmp_path / "results", "--output", tmp_path / "page.html")
    assert f"<dt>warning</dt><dd>{sentence}</dd>" in (tmp_path / "page.html").read_text()


def count_calls(monkeypatch):
    """Count how often copies are looked for: a list whose one number rises."""
    calls, look = [0], inspection.row_digests

    def counting(rows):
        calls[0] += 1
        return look(rows)

    monkeypatch.setattr(inspection, "row_digests", counting)
    return calls


def test_copies_in_training_items_outside_the_database_come_first_if_they_are_more():
    features = np.arange(12, dtype=np.float32)[:, None]
    features[[0, 1, 2]] = features[[8, 9, 4]]
    parts = np.arange(3), np.arange(3, 8), np.arange(8, 12)
    counts = inspect(Dataset("tiny", features, *parts, rule="same-label", labels=np.arange(12) % 3))
    warning = warning_of(counts, 3)
    assert warning.startswith(f"2 of 3 {HAVE} among the training items and 1 in the database,")
    assert ": 0, 1, 2 (counted from 0; " in warning


def test_queries_with_copies_are_left_out_if_asked(hashbench, leaky, data):
    shift = 1e-6
    done = leaky(TEN | OUTSIDE, shift, "--leave-out", "duplicates")
    assert (done.exit_code, done.stderr) == (0, "")
    part = hdf5.read_dataset(data / "datasets" / "leaky.h5")
    assert "; 12 of 20 queries left out, since they equal or nearly equal database or training items" in done.stdout
    assert leaky(TEN | OUTSIDE, shift).exit_code == 0
    whole = hdf5.read_dataset(data / "datasets" / "leaky.h5")
    rows = np.setdiff1d(np.arange(20), [3, 4, *TEN])
    np.testing.assert_array_equal(part.features[part.query], whole.features[whole.query][rows])
    np.testing.assert_array_equal(part.labels[part.query], whole.labels[whole.query][rows])
    for role in ("database", "train"):
        np.testing.assert_array_equal(part.features[getattr(part, role)], whole.features[getattr(whole, role)])
    assert part.n_samples == 208
    assert part.fingerprint != whole.fingerprint
    leaky(TEN | OUTSIDE, shift, "--leave-out", "duplicates")
    content = json.loads(hashbench("info", "leaky", "--format", "json").stdout)
    assert content["left_out"] == {"items": [], "queries": [3, 4, *TEN]}
    assert "left_out" not in content["about"]
    assert "left_out" not in hashbench("info", "leaky").stdout


LINE = np.arange(12, dtype=np.float32)[:, None] + 1


@pytest.mark.parametrize(
    ("changes", "sizes", "n_without_label"),
    [
        ({"labels": np.array([7, 7, 7, -2, 7, -2, 50, 7, 7, 7, 7, 7])}, [2, 9, 1], 0),
        ({"labels": np.eye(4, 3, dtype=np.uint8)[[0] * 4 + [1] * 5 + [3] * 3], "rule": "shared-labels"}, [4, 5, 0], 3),
    ],
)
def test_classes_and_items_without_label_are_counted(changes, sizes, n_without_label):
    counts = inspect(make(LINE, **changes))
    assert (counts.class_sizes.tolist(), counts.n_without_label) == (sizes, n_without_label)


def test_without_labels_there_are_no_classes():
    params = {"squared_thresholds": [1.0], "levels": [1]}
    counts = inspect(make(LINE, rule="distance", rule_params=params, labels=None))
    assert (counts.class_sizes, counts.n_without_label) == (None, 0)


@pytest.fixture
def info(hashbench, tmp_path):
    """Return what ``hashbench info`` prints about a dataset, by the first word of its lines."""

    def run(dataset):
        hdf5.write_dataset(dataset, tmp_path / "tiny.h5")
        result = hashbench("info", tmp_path / "tiny.h5")
        assert result.exit_code == 0
        return {key: text.strip() for key, text in (line.split(":", 1) for line in result.stdout.splitlines())}

    return run


def test_info_shows_duplicates_and_features_to_note(info):
    features = np.arange(36, dtype=np.float32).reshape(12, 3) + 1
    features[1], features[10], features[2], features[4] = features[0], features[0], 0, 0
    facts = info(make(features))
    assert re.findall(r"\d+", facts["duplicates"]) == ["3", "0", "2", "0"]
    assert facts["features to note"] == "0 constant; all-zero items: 2"
    assert facts["classes"] == "3, 4 to 4 items each"


def test_info_shows_items_without_label_and_is_silent_about_good_features(info):
    labels = np.zeros((12, 2), dtype=np.uint8)
    labels[:9, 0] = labels[3:6, 1] = 1
    facts = info(make(LINE, rule="shared-labels", labels=labels))
    assert re.findall(r"[\d.]+", facts["classes"]) == ["2", "3", "9", "1.00", "3"]
    assert re.findall(r"\d+", facts["duplicates"]) == ["0", "0", "0", "0"]
    assert "features to note" not in facts

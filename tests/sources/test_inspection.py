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


def count_equal(items, ours, theirs):
    return sum(any((items[i] == items[j]).all() for j in theirs) for i in ours)


SMALL = st.sampled_from([-1.0, -0.0, 0.0, 1.0])  # so few values that rows repeat, and both zeros


@given(arrays(np.float32, st.tuples(st.just(12), st.integers(1, 3)), elements=SMALL))
def test_counts_are_those_of_comparing_all_pairs_and_all_columns(features):
    found = inspect(make(features))
    assert found.n_queries_in_database == count_equal(features, QUERY, DATABASE)
    assert found.n_queries_in_train == count_equal(features, QUERY, TRAIN)
    assert found.n_constant == sum(len(set(column.tolist())) == 1 for column in features.T)
    assert found.n_zero == sum(not any(row) for row in features.tolist())


@given(arrays(np.uint8, (12, 1, 2, 1), elements=st.integers(0, 2)))
def test_duplicates_among_images_are_counted_when_there_are_no_features(images):
    found = inspect(make(images=images))
    assert found.n_queries_in_database == count_equal(images, QUERY, DATABASE)
    assert found.n_queries_in_train == count_equal(images, QUERY, TRAIN)
    assert (found.n_constant, found.n_zero) == (0, 0)


def test_minus_zero_equals_zero():
    features = np.arange(24, dtype=np.float32).reshape(12, 2) + 1
    features[0], features[5] = [0.0, 7.0], [-0.0, 7.0]
    assert inspect(make(features)).n_queries_in_database == 1


def test_features_decide_where_there_are_images_too():
    features = np.arange(24, dtype=np.float32).reshape(12, 2)
    images = np.zeros((12, 2, 2, 3), dtype=np.uint8)
    assert inspect(make(features, images=images)).n_queries_in_database == 0


def near(features, ours, theirs):
    """Tell of each query whether an item lies within a ten-thousandth of the median distance, pair by pair."""
    apart = cdist(features[ours].astype(float), features[theirs].astype(float))
    return (apart <= 1e-4 * np.median(apart)).any(axis=1)


@pytest.mark.parametrize("n_features", [1, 3, 8, 200])
@pytest.mark.parametrize("scale", [1e-3, 1, 1e3])
def test_near_copies_are_those_that_comparing_all_pairs_finds(n_features, scale):
    rng = np.random.default_rng(n_features)
    features = scale * rng.normal(size=(600, n_features))
    features[:20] = features[300:320] + 1e-6 * scale  # of database items
    features[20:25] = features[500:505] - 1e-6 * scale  # of training items
    features[25:28] = features[400:403]
    features[28:30] = features[403:405] * (1 + 1e-2)
    features, query, database, train = features.astype(np.float32), *map(np.arange, (0, 100, 450), (100, 600, 600))
    found = inspect(Dataset("tiny", features, query, database, train, rule="same-label", labels=np.arange(600) % 3))
    assert found.n_queries_in_database == 3
    if n_features > 1:  # on a line some of 100 queries are near to another of 500 items by chance
        assert (found.n_near_database, found.n_near_train) == (25, 5)
        assert near(features, query, database).sum() == 28


def test_near_copies_are_found_far_from_the_origin_and_in_a_crowd():
    rng = np.random.default_rng(0)
    features = np.full((3000, 5), 100, dtype=np.float32)
    features[1000:] += rng.normal(size=(2000, 5)).astype(np.float32)  # the first thousand are all alike
    features[:10] = features[2000:2010]
    features[:10, 0] += 2e-5
    parts = np.arange(10), np.arange(10, 3000), np.arange(10, 20)
    found = inspect(Dataset("tiny", features, *parts, rule="same-label", labels=np.arange(3000) % 3))
    assert found.n_queries_in_database + found.n_near_database == near(features, *parts[:2]).sum() == 10
    assert found.n_near_train == 0


def test_near_copies_of_images_and_of_too_many_items_are_not_looked_for(monkeypatch):
    found = inspect(make(images=np.zeros((12, 2, 2, 1), dtype=np.uint8)))
    assert (found.n_near_database, found.n_near_train) == (None, None)
    monkeypatch.setattr("hashbench.sources.inspection.MOST_ITEMS", 11)
    found = inspect(make(np.arange(12, dtype=np.float32)[:, None]))
    assert (found.n_near_database, found.n_near_train) == (None, None)


@pytest.fixture
def leaky(hashbench, data, tmp_path):
    """Prepare 200 items, half of them for training, and 20 queries, of which those named are copies of items."""

    def prepare(copies, shift=0.0):
        rng = np.random.default_rng(0)
        items = rng.normal(size=(200, 6)).astype(np.float32)
        queries = rng.normal(size=(20, 6)).astype(np.float32)
        for query, item in copies.items():
            queries[query] = items[item] + np.float32(shift)
        arrays = {"X": items, "y": np.arange(200) % 2, "Q": queries, "qy": np.arange(20) % 2, "train": np.arange(100)}
        for name, array in arrays.items():
            np.save(tmp_path / f"{name}.npy", array)
        files = {name: tmp_path / f"{name}.npy" for name in arrays}
        return hashbench(
            *("prepare", "--from", files["X"], "--labels", files["y"], "--query-from", files["Q"]),
            *("--query-labels", files["qy"], "--train-index", files["train"], "--name", "leaky"),
        )

    return prepare


TEN = {query: query for query in range(5, 15)}
OUTSIDE = {3: 150, 4: 151}  # items that are no training items
HAVE = "queries have an equal or nearly equal item"


@pytest.mark.parametrize("shift", [0, 1e-6])
@pytest.mark.parametrize(
    ("copies", "sentence"),
    [
        (
            TEN | OUTSIDE,
            f"12 of 20 {HAVE} in the database and 10 among the training items, so scores are too high; take these "
            "queries out: 3, 4, 5, 6, 7 and 7 more (counted from 0).",
        ),
        (
            OUTSIDE,
            f"2 of 20 {HAVE} in the database, so scores are too high; take these queries out: 3, 4 (counted from 0).",
        ),
    ],
)
def test_copies_are_warned_of_wherever_scores_are_made_on_the_card_and_on_the_page(
    hashbench, leaky, tmp_path, monkeypatch, shift, copies, sentence
):
    n_inspected = count_calls(monkeypatch)
    done = leaky(copies, shift)
    assert n_inspected == [1]
    warning = f"Warning: in leaky, {sentence}"
    assert done.stderr == f"{warning}\n"
    told = dict(line.split(":", 1) for line in hashbench("info", "leaky").stdout.splitlines())
    assert told["warning"].strip() == sentence
    done = hashbench(
        *("run", "--dataset", "leaky", "--method", "lsh", "--method", "pcah", "--bits", 4),
        *("--results", tmp_path / "results"),
    )
    assert done.stderr.splitlines().count(warning) == done.stderr.count("leaky,") == 1
    tuned = hashbench(
        *("tune", "--dataset", "leaky", "--method", "itq", "--bits", 4, "--trials", 2, "--output", tmp_path / "tuning")
    )
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
    found = inspect(Dataset("tiny", features, *parts, rule="same-label", labels=np.arange(12) % 3))
    assert warning_of(found, 3) == (
        f"2 of 3 {HAVE} among the training items and 1 in the database, so scores are too high; take these queries "
        "out: 0, 1, 2 (counted from 0)."
    )


def test_classes_are_counted():
    features = np.arange(12, dtype=np.float32)[:, None]
    labels = np.array([7, 7, 7, -2, 7, -2, 50, 7, 7, 7, 7, 7])
    found = inspect(make(features, labels=labels))
    assert found.class_sizes.tolist() == [2, 9, 1]
    assert found.n_without_label == 0


def test_labels_of_multi_label_items_are_counted_and_so_are_items_without():
    features = np.arange(12, dtype=np.float32)[:, None]
    labels = np.zeros((12, 3), dtype=np.uint8)
    labels[:9, 0] = labels[3:8, 1] = 1
    found = inspect(make(features, rule="shared-labels", labels=labels))
    assert found.class_sizes.tolist() == [9, 5, 0]
    assert found.n_without_label == 3


def test_without_labels_there_are_no_classes():
    features = np.arange(12, dtype=np.float32)[:, None]
    params = {"squared_thresholds": [1.0], "levels": [1]}
    found = inspect(make(features, rule="distance", rule_params=params, labels=None))
    assert (found.class_sizes, found.n_without_label) == (None, 0)


@pytest.fixture
def told(hashbench, tmp_path):
    """What ``hashbench info`` prints, by its first word."""

    def info(dataset):
        hdf5.write_dataset(dataset, tmp_path / "tiny.h5")
        result = hashbench("info", tmp_path / "tiny.h5")
        assert result.exit_code == 0
        return dict(line.split(":", 1) for line in result.stdout.splitlines())

    return info


def test_info_shows_what_may_be_amiss(told):
    features = np.arange(36, dtype=np.float32).reshape(12, 3) + 1
    features[1], features[10], features[2], features[4] = features[0], features[0], 0, 0
    facts = told(make(features))
    assert facts["duplicates"].strip() == (
        "queries with an equal database item: 3, with only a nearly equal one: 0; "
        "queries with an equal training item: 2, with only a nearly equal one: 0"
    )
    assert facts["features to note"].strip() == "0 are constant; 2 items are all zero"
    assert facts["classes"].strip() == "3, 4 to 4 items each"


def test_info_shows_items_without_label_and_is_silent_about_good_features(told):
    features = np.arange(12, dtype=np.float32)[:, None] + 1
    labels = np.zeros((12, 2), dtype=np.uint8)
    labels[:9, 0] = labels[3:6, 1] = 1
    facts = told(make(features, rule="shared-labels", labels=labels))
    assert facts["classes"].strip() == "2, 3 to 9 items each, 1.00 labels per item, 3 items without"
    assert facts["duplicates"].strip().startswith("queries with an equal database item: 0,")
    assert "features to note" not in facts

import json
import re
import shutil
import unicodedata

import numpy as np
import pandas as pd
import pytest
from helpers.result_files import jobs_in, rows_in
from PIL import Image
from scipy.io import savemat
from scipy.spatial.distance import cdist, pdist

from hashbench import registry
from hashbench.adapter import Options, OwnData
from hashbench.datasets import arrays
from hashbench.errors import HashbenchError
from hashbench.store import hdf5
from hashbench.store.result_rows import COLUMNS

rng = np.random.default_rng(0)
LABELS = rng.permutation(np.arange(60) % 3)
X = (rng.normal(size=(60, 4)) + 3 * LABELS[:, None]).astype(np.float32)
NAMES = np.array(["cat", "dog", "emu"])[LABELS]
MULTI_HOT = np.column_stack([LABELS == 0, LABELS > 0, rng.random(60) < 0.5]).astype(np.uint8)


@pytest.fixture
def save(tmp_path):
    """Write an array as .npy and return its path."""

    def write(name, array):
        np.save(tmp_path / f"{name}.npy", array)
        return tmp_path / f"{name}.npy"

    return write


@pytest.fixture
def save_table(tmp_path):
    """Write the features and more columns as .csv and return its path."""

    def write(name="all", rows=slice(None), **columns):
        table = pd.DataFrame(X[rows], columns=list("abcd")).assign(**columns)
        table.to_csv(tmp_path / f"{name}.csv", index=False)
        return tmp_path / f"{name}.csv"

    return write


@pytest.fixture
def prepare(hashbench, data):
    """Prepare own data under the name ``mine``; return the dataset and what was printed."""

    def run(items, *options, name="mine"):
        result = hashbench("prepare", "--from", items, "--name", name, *options)
        assert result.exit_code == 0, result.stderr
        assert result.stdout.startswith(f"prepared {data / 'datasets' / name}.h5\n")
        return hdf5.read_dataset(data / "datasets" / f"{name}.h5"), result.stdout

    return run


@pytest.fixture
def complaint(hashbench, data):
    """Return the error of preparing own data, which must fail."""

    def run(items, *options, name="mine"):
        result = hashbench("prepare", "--from", items, "--name", name, *options)
        assert (result.exit_code, result.stdout) == (1, "")
        assert not list(data.glob("datasets/*.h5"))
        assert re.fullmatch(r"(images: 20 of 20\n)?Error: [^\n]*\.\n", result.stderr)
        return result.stderr

    return run


@pytest.fixture
def photos(tmp_path):
    """A folder of images: 12 of cats, 8 of dogs, all of 36 x 36 pixels."""
    noise = np.random.default_rng(1)
    for name, count in (("cat", 12), ("dog", 8)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number in range(count):
            pixels = noise.integers(0, 256, (36, 36, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{number:02d}.png")
    return tmp_path / "photos"


def with_value(array, index, value):
    copy = array.copy()
    copy[index] = value
    return copy


# ---------------------------------------------------------------- what becomes of files


def test_by_default_a_tenth_are_queries_and_all_others_are_for_training(prepare, save):
    dataset, stdout = prepare(save("X", X), "--labels", save("y", LABELS))
    assert (dataset.name, dataset.rule, dataset.features_name) == ("mine", "same-label", "features")
    np.testing.assert_array_equal(dataset.features, X)
    np.testing.assert_array_equal(dataset.labels, LABELS)
    assert (len(dataset.query), len(dataset.database)) == (6, 54)
    np.testing.assert_array_equal(dataset.train, dataset.database)
    assert sorted([*dataset.query, *dataset.database]) == list(range(60))
    assert "6 queries, 54 database, 54 training" in stdout
    assert "seed 0" in dataset.about["protocol"]
    assert dataset.about["source"] == "X.npy"


@pytest.mark.parametrize(
    ("classes", "is_said"), [((-1, 0, 1, 2), True), ((-1, 0, 1, 0), True), ((-1, 1), False), ((0, 1, 2), False)]
)
def test_a_label_that_others_read_as_unknown_is_a_class_and_said_to_be_one(prepare, save, classes, is_said):
    labels = np.resize(classes, 60)
    dataset, stdout = prepare(save("X", X), "--labels", save("y", labels))
    np.testing.assert_array_equal(dataset.labels, labels)
    assert ("label -1, of 15 items, is a class" in " ".join(stdout.split())) == is_said


@pytest.mark.parametrize(("n_items", "n_queries"), [(59, 5), (3, 1), (10_020, 1000)])
def test_a_tenth_is_rounded_down_to_between_1_and_1000(prepare, save, n_items, n_queries):
    dataset, _ = prepare(save("X", np.arange(1.0 * n_items)[:, None]), "--labels", save("y", np.arange(n_items) % 2))
    assert len(dataset.query) == n_queries


def test_numbers_and_seed_of_the_drawing_can_be_chosen(prepare, save):
    options = save("X", X), "--labels", save("y", LABELS), "--queries", 9, "--train", 20
    first, other, again = (prepare(*options, "--seed", seed)[0] for seed in (1, 2, 1))
    assert [len(index) for index in (first.query, first.database, first.train)] == [9, 51, 20]
    assert first.query.tolist() != other.query.tolist()
    assert first.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize(("options", "metric"), [((), "euclidean"), (("--true-distance", "cosine"), "cosine")])
def test_nearest_items_can_be_relevant(prepare, save, options, metric):
    dataset, stdout = prepare(save("X", X), "--affinity", "neighbours", "--neighbours", 5, "--queries", 9, *options)
    nearest = cdist(X[dataset.query], X[dataset.database], metric).argsort(axis=1)[:, :5]
    np.testing.assert_array_equal(dataset.neighbours, nearest)
    assert (dataset.rule, dataset.true_distance) == ("neighbours", metric)
    assert dataset.rule_params == ({} if metric == "euclidean" else {"true_distance": metric})
    assert f"level 1 for the 5 nearest by {metric} distance" in dataset.about["protocol"]
    assert "the 5 listed for each query are relevant" in stdout
    again, _ = prepare(save("X", X), "--neighbours", 5, "--queries", 9, *options)  # which says the rule, too
    assert again.fingerprint == dataset.fingerprint


def test_ties_of_the_last_neighbour_are_reported(prepare, save):
    own = "--query-from", save("Q", X[:3]), "--neighbours", 2
    assert "ties" not in prepare(save("X", X[:10]), *own)[1]
    dataset, shown = prepare(save("copies", np.repeat(X[:10], 4, axis=0)), *own)
    ties = "for 3 of 3 queries, items left out are as near as the last neighbour"
    assert (dataset.about["ties"], f"ties:        {ties}\n" in shown) == (ties, True)
    np.testing.assert_array_equal(dataset.neighbours, [[0, 1], [4, 5], [8, 9]])


def test_all_items_as_near_as_the_last_neighbour_can_be_relevant(prepare, save):
    items = save("items", np.concatenate([np.repeat(X[:2], 4, axis=0), X[2:10]]))
    own = items, "--query-from", save("Q", X[:3]), "--neighbours", 2
    dataset, shown = prepare(*own, "--neighbour-ties", "all")
    assert dataset.neighbours[:, :4].tolist()[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert dataset.neighbours[2, 2:].tolist() == [-1, -1]
    assert "ties" not in dataset.about
    assert "the 2 nearest of each query, and those as near as the last of them, are relevant" in shown
    assert prepare(*own)[0].fingerprint != dataset.fingerprint
    np.testing.assert_array_equal(prepare(*own, "--neighbour-ties", "first")[0].neighbours[0], [0, 1])


def test_methods_get_the_first_dimensions_and_neighbours_are_by_all(prepare, save, hashbench):
    items, own = save("X", X), ("--neighbours", 5, "--queries", 9)
    whole, _ = prepare(items, *own)
    first, shown = prepare(items, *own, "--dimensions", 2)
    np.testing.assert_array_equal(first.neighbours, whole.neighbours)
    np.testing.assert_array_equal(first.features, X[:, :2].astype(np.float32))
    assert f"methods get the first 2 of {X.shape[1]} dimensions" in " ".join(shown.split())
    assert first.fingerprint != whole.fingerprint
    refused = hashbench("prepare", "--from", items, "--name", "none", *own, "--dimensions", X.shape[1] + 1)
    assert refused.exit_code == 1
    assert f"and these are features of {X.shape[1]} dimensions; give no more than there are" in refused.stderr


@pytest.mark.parametrize("ties", ["first", "all"])
def test_scores_by_the_true_distance_say_what_counts_at_a_tie_of_the_last_neighbour(
    prepare, save, hashbench, tmp_path, ties
):
    items, queries = save("items", np.repeat(X[:10], 4, axis=0)), save("Q", X[:3])
    prepare(items, "--query-from", queries, "--neighbours", 2, "--true-distance", "cosine", "--neighbour-ties", ties)
    own = "--query-codes", queries, "--database-codes", items, "--dataset", "mine", "--distance"
    shown = hashbench("evaluate", *own, "cosine", "--metric", "P@2", "--format", "csv")
    value = float(shown.stdout.splitlines()[1].split(",")[1])
    assert value == pytest.approx(1.0 if ties == "all" else 0.5)
    job = "--dataset", "mine", "--method", "lsh", "--bits", 8, "--metric", "P@2", "--results", tmp_path / "results"
    run = hashbench("run", *job).stderr
    notes = {
        "first": [
            "mine: only the 2 listed neighbours of each query are relevant.",
            "mine: for 3 of 3 queries, items left out are as near as the last neighbour, and count as irrelevant. "
            "hashbench prepare --neighbour-ties all makes them relevant.",
        ],
        "all": [
            "mine: only the 2 nearest items of each query, and those as near as the last of them, are relevant; P@2 is "
            "the recall by distance."
        ],
    }[ties]
    assert [line for line in shown.stderr.splitlines() if line.startswith("mine:")] == notes
    assert [line for line in run.splitlines() if line.startswith("mine:")] == notes
    other = hashbench("evaluate", *own, "dot", "--metric", "P@2").stderr
    assert "Relevance was computed by cosine distance, and items are ranked by dot." in other
    assert "Relevance was computed" not in shown.stderr


def test_labelled_items_may_have_another_true_distance(prepare, save):
    items, options = save("X", X), ("--labels", save("y", LABELS))
    dataset, _ = prepare(items, *options, "--true-distance", "dot")
    assert (dataset.rule, dataset.true_distance) == ("same-label", "dot")
    plain, _ = prepare(items, *options)
    assert plain.true_distance == "euclidean"
    assert prepare(items, *options, "--true-distance", "euclidean")[0].fingerprint == plain.fingerprint


def test_items_can_be_drawn_per_class(prepare, save):
    options = "--labels", save("y", LABELS), "--queries-per-label", 3
    dataset, _ = prepare(save("X", X), *options, "--train-per-label", 5)
    assert np.bincount(LABELS[dataset.query]).tolist() == [3, 3, 3]
    assert np.bincount(LABELS[dataset.train]).tolist() == [5, 5, 5]
    dataset, _ = prepare(save("X", X), *options)
    np.testing.assert_array_equal(dataset.train, dataset.database)


def test_multi_hot_labels_are_drawn_by_label_and_shared(prepare, save):
    dataset, stdout = prepare(
        save("X", X), "--labels", save("y", MULTI_HOT), "--queries-per-label", 4, "--train-per-label", 6
    )
    assert dataset.rule == "shared-labels"
    assert (len(dataset.query), len(dataset.train)) == (12, 18)
    assert (MULTI_HOT[dataset.query].sum(axis=0) >= 4).all()
    assert (MULTI_HOT[dataset.train].sum(axis=0) >= 6).all()
    expected = MULTI_HOT[dataset.query].astype(int) @ MULTI_HOT[dataset.database].T.astype(int)
    np.testing.assert_array_equal(dataset.affinity().block(slice(0, 12), slice(0, 48)), expected)
    assert "labels per item" in stdout


@pytest.mark.parametrize("form", [np.float64, np.int16, np.uint8, lambda labels: labels[:, None], lambda labels: NAMES])
def test_classes_may_be_names_or_whole_numbers_of_any_type(prepare, save, form):
    dataset, _ = prepare(save("X", X), "--labels", save("y", form(LABELS)))
    assert dataset.labels.dtype == np.int64
    np.testing.assert_array_equal(dataset.labels, LABELS)


def test_rounding_that_loses_little_is_accepted(prepare, save):
    features = np.c_[X.astype(float), np.full(60, 1764000001.0), 1e6 + LABELS / 10]
    assert prepare(save("X", features), "--labels", save("y", LABELS))[0].features.shape == (60, 6)


@pytest.mark.parametrize(("n_numbers", "is_refused"), [(0, False), (20, False), (21, True)])
def test_a_column_is_numeric_if_most_of_its_cells_are(prepare, complaint, save_table, n_numbers, is_refused):
    cells = ["2"] * n_numbers + [""] * 20 + ["n/a?"] * (40 - n_numbers)
    path = save_table(place=cells)
    if is_refused:
        assert "column 'place' of" in (text := complaint(path))
        assert f"holds numbers, but 'n/a?' in row {20 + n_numbers} (the first is 0)" in text
    else:
        dataset, stdout = prepare(path)
        assert dataset.features.shape == (60, 4)
        assert "as given; left out, since they hold no numbers: place" in stdout


@pytest.mark.parametrize("place", ["a column", "a file"])
def test_a_label_that_is_not_a_number_where_most_are_is_refused(complaint, save, save_table, place):
    labels = with_value(LABELS.astype(str), 9, "?")
    arguments = [save("X", X), "--labels", save("y", labels)] if place == "a file" else [save_table(label=labels)]
    assert "are numbers, but item 9 (the first is 0) has '?'" in complaint(*arguments)


def test_without_labels_levels_are_by_distance(prepare, save):
    dataset, stdout = prepare(save("X", X))
    assert (dataset.rule, dataset.labels) == ("distance", None)
    squared = np.sort(pdist(X[dataset.train].astype(float), "sqeuclidean"))
    thresholds = [squared[int(np.ceil(share * len(squared))) - 1] for share in (0.05, 0.01, 0.002, 0.001)]
    np.testing.assert_allclose(dataset.rule_params["squared_thresholds"], thresholds, rtol=1e-9)
    far = cdist(X[dataset.query].astype(float), X[dataset.database].astype(float), "sqeuclidean")
    levels = np.select([far <= threshold for threshold in thresholds[::-1]], [10, 5, 2, 1])
    np.testing.assert_array_equal(dataset.affinity().block(slice(0, 6), slice(0, 54)), levels)
    assert "level 1 up to" in stdout


def test_labels_by_which_items_are_drawn_go_with_any_rule(prepare, save):
    options = "--labels", save("y", LABELS), "--queries-per-label", 3
    dataset, _ = prepare(save("X", X), *options, "--affinity", "distance")
    assert np.bincount(LABELS[dataset.query]).tolist() == [3] * (LABELS.max() + 1)


@pytest.fixture
def own_queries(save):
    """The arguments for 50 items and 10 queries, with labels if given."""

    def write(labels=None):
        arguments = [save("X", X[:50]), "--query-from", save("Q", X[50:])]
        if labels is not None:
            arguments += ["--labels", save("y", labels[:50]), "--query-labels", save("qy", labels[50:])]
        return arguments

    return write


def test_own_queries_are_the_queries(prepare, own_queries):
    dataset, _ = prepare(*own_queries(NAMES), "--train", 30)
    np.testing.assert_array_equal(dataset.features[dataset.query], X[50:])
    np.testing.assert_array_equal(dataset.features[dataset.database], X[:50])
    np.testing.assert_array_equal(dataset.labels[dataset.query], LABELS[50:])
    np.testing.assert_array_equal(dataset.labels[dataset.database], LABELS[:50])
    assert len(dataset.train) == 30
    assert dataset.train.tolist() != list(range(30))


def test_own_queries_have_the_classes_of_the_database_however_unicode_spells_them(prepare, own_queries):
    names = np.array(["Käse", "süß", "Öl"])[np.arange(60) % 3]  # sorted
    decomposed = np.array([unicodedata.normalize("NFD", name) for name in names.tolist()])
    dataset, _ = prepare(*own_queries(np.concatenate([names[:50], decomposed[50:]])))
    np.testing.assert_array_equal(dataset.labels, np.arange(60) % 3)


def test_a_folder_is_one_class_however_unicode_spells_it(prepare, photos):
    for split, form in (("train", "NFC"), ("test", "NFD")):
        (photos / split).mkdir()
        for name in ("cat", "dog"):
            shutil.copytree(photos / name, photos / split / unicodedata.normalize(form, f"{name} süß"))
    shutil.rmtree(photos / "cat")
    shutil.rmtree(photos / "dog")
    dataset, _ = prepare(photos, "--features", "images")
    assert np.unique(dataset.labels).tolist() == [0, 1]
    assert np.bincount(dataset.labels[dataset.query]).tolist() == [12, 8]


def test_labels_of_own_queries_may_be_in_their_file_and_be_a_row(prepare, tmp_path):
    for name, rows in (("base", slice(0, 50)), ("query", slice(50, 60))):
        savemat(tmp_path / f"{name}.mat", {"X": X[rows], "y": LABELS[rows]})
    dataset, _ = prepare(tmp_path / "base.mat", "--query-from", tmp_path / "query.mat")
    np.testing.assert_array_equal(dataset.labels, LABELS)


def test_own_queries_may_come_from_tables_with_a_column_of_labels(prepare, save_table):
    parts = {"base": slice(0, 50), "query": slice(50, 60)}
    base, query = (save_table(name, rows, kind=LABELS[rows]) for name, rows in parts.items())
    dataset, _ = prepare(base, "--labels", f"{base}:kind", "--query-from", query, "--query-labels", f"{query}:kind")
    assert dataset.features.shape == (60, 4)
    np.testing.assert_array_equal(dataset.labels, LABELS)


def test_words_of_own_queries_that_the_database_lacks_are_reported(prepare, save_table):
    words = np.array(["c1", "c2", "c3"])[np.arange(60) % 3].astype(object)
    words[50:][words[50:] == "c3"] = "C3"
    base, query = save_table("base", slice(0, 50), kind=words[:50]), save_table("query", slice(50, 60), kind=words[50:])
    _, shown = prepare(base, "--labels", f"{base}:kind", "--query-from", query, "--query-labels", f"{query}:kind")
    assert " 1 of the 3 classes of queries occurs nowhere in the database, such as 'C3'; the nearest" in shown


# ---------------------------------------------------------------- folders of images


def test_a_folder_of_images_becomes_features_with_a_class_a_folder(prepare, photos):
    dataset, _ = prepare(photos, "--features", "pixels", "--image-size", 8)
    assert dataset.features.shape == (20, 8 * 8 * 3)
    assert (dataset.images, dataset.features_name) == (None, "pixels")
    assert dataset.labels.tolist() == [0] * 12 + [1] * 8
    with Image.open(photos / "dog" / "03.png") as image:
        expected = np.asarray(image.resize((8, 8), Image.Resampling.BICUBIC)).ravel()
    np.testing.assert_array_equal(dataset.features[12 + 3], expected)


def test_a_folder_of_images_is_kept_as_images(prepare, photos):
    dataset, stdout = prepare(photos, "--features", "images", "--image-size", 36, "--queries-per-label", 2)
    assert (dataset.features, dataset.images.shape) == (None, (20, 36, 36, 3))
    with Image.open(photos / "cat" / "11.png") as image:
        np.testing.assert_array_equal(dataset.images[11], np.asarray(image))
    assert np.bincount(dataset.labels[dataset.query]).tolist() == [2, 2]
    assert "images of 36 x 36 x 3 (uint8)" in stdout


@pytest.mark.parametrize("test", ["test", "val"])
def test_folders_for_training_and_testing_are_the_split(prepare, photos, test):
    folder = photos.parent / "set"
    folder.mkdir()
    photos.rename(folder / "train")
    for name in ("cat", "dog"):
        (folder / test / name).mkdir(parents=True)
        (folder / "train" / name / "00.png").rename(folder / test / name / "00.png")
    items = folder, "--features", "pixels", "--image-size", 8
    dataset, _ = prepare(*items)
    assert (dataset.query.tolist(), dataset.database.tolist()) == ([18, 19], list(range(18)))
    np.testing.assert_array_equal(dataset.train, dataset.database)
    assert f"2 images of {test}/ as queries, 18 of train/ as database" in dataset.about["protocol"]
    np.save(photos.parent / "rows.npy", [5, 1])
    dataset, _ = prepare(*items, "--train-index", photos.parent / "rows.npy")
    assert dataset.train.tolist() == dataset.database[[1, 5]].tolist()
    assert "18 of train/ as database, 2 of these, as listed, for training" in dataset.about["protocol"]
    dataset, _ = prepare(*items, "--queries", 5)
    assert len(dataset.query) == 5
    assert dataset.about["protocol"].endswith(f"folders {', '.join(sorted([test, 'train']))} pooled")


def test_labels_of_images_may_come_from_a_file(prepare, photos, save):
    tags = MULTI_HOT[:20]
    dataset, _ = prepare(photos, "--features", "pixels", "--image-size", 8, "--labels", save("y", tags))
    assert dataset.rule == "shared-labels"
    np.testing.assert_array_equal(dataset.labels, tags)


def test_bad_images_can_be_skipped_with_their_labels_and_are_counted(prepare, complaint, photos, save):
    labels = save("y", LABELS[:20])
    options = "--features", "pixels", "--image-size", 8, "--labels", labels
    (photos / "cat" / "03.png").write_bytes(b"no image")
    assert "cannot decode image" in (text := complaint(photos, *options))
    assert "cat/03.png" in text
    assert "--skip-bad-images" in text
    dataset, stdout = prepare(photos, *options, "--skip-bad-images")
    assert dataset.n_samples == 19
    np.testing.assert_array_equal(dataset.labels, np.delete(LABELS[:20], 3))
    assert "; 1 of 20 images left out, since they cannot be decoded" in stdout


def test_items_left_out_are_counted_among_all_images(hashbench, prepare, photos):
    (photos / "cat" / "03.png").write_bytes(b"no image")
    Image.new("RGB", (36, 36)).save(photos / "cat" / "07.png")  # a row of zeros
    options = "--features", "pixels", "--image-size", 8, "--skip-bad-images"
    prepare(photos, *options, "--leave-out", "zeros")
    content = json.loads(hashbench("info", "mine", "--format", "json").stdout)
    assert content["left_out"] == {"items": [7], "queries": []}


def test_row_numbers_of_images_do_not_go_with_bad_ones(complaint, photos, save):
    for name in ("cat", "dog"):
        (photos / "train" / name).mkdir(parents=True)
        (photos / "test" / name).mkdir(parents=True)
        for image in (photos / name).iterdir():
            image.rename(photos / ("test" if image.name == "00.png" else "train") / name / image.name)
    (photos / "train" / "cat" / "03.png").write_bytes(b"no image")
    options = "--features", "pixels", "--image-size", 8, "--train-index", save("rows", np.arange(9))
    words = "--train-index counts all images, and 1 cannot be decoded. Remove these, and count the others."
    assert words in complaint(photos, *options, "--skip-bad-images")


ZEROS = [7, 31, 32, 59]


@pytest.mark.parametrize("rule", [(), ("--neighbours", 3, "--true-distance", "cosine")])
def test_items_without_any_value_are_left_out_of_all_roles(hashbench, prepare, save, rule):
    labels = () if rule else ("--labels", save("y", LABELS))
    whole = with_value(X, ZEROS, 0)
    dataset, stdout = prepare(save("X", whole), *labels, *rule, "--leave-out", "zeros", "--train", 20)
    assert "; 4 items left out, since their features are all zero" in stdout
    np.testing.assert_array_equal(dataset.features, np.delete(X, ZEROS, axis=0))
    if not rule:
        np.testing.assert_array_equal(dataset.labels, np.delete(LABELS, ZEROS))
    assert sorted([*dataset.query, *dataset.database]) == list(range(56))
    plain, _ = prepare(save("X", X), *labels, *rule, "--train", 20)
    rows = np.delete(np.arange(60), ZEROS)
    np.testing.assert_array_equal(rows[dataset.query], np.setdiff1d(plain.query, ZEROS))
    np.testing.assert_array_equal(rows[dataset.train], np.setdiff1d(plain.train, ZEROS))
    if rule:
        unit = dataset.features / np.linalg.norm(dataset.features, axis=1, keepdims=True)
        nearest = np.argsort(-unit[dataset.query] @ unit[dataset.database].T, axis=1)[:, :3]
        np.testing.assert_array_equal(np.sort(dataset.neighbours, axis=1), np.sort(nearest, axis=1))
    prepare(save("X", whole), *labels, *rule, "--leave-out", "zeros", "--leave-out", "duplicates")
    content = json.loads(hashbench("info", "mine", "--format", "json").stdout)
    assert content["left_out"] == {"items": ZEROS, "queries": []}


def test_leaving_out_copies_of_images_compares_the_images(prepare, photos):
    for name in ("cat", "dog"):
        (photos / "test" / name).mkdir(parents=True)
        (photos / "train").mkdir(exist_ok=True)
        (photos / name).rename(photos / "train" / name)
        (photos / "train" / name / "00.png").rename(photos / "test" / name / "00.png")
    shutil.copy(photos / "train" / "cat" / "03.png", photos / "test" / "dog" / "01.png")
    options = "--features", "images", "--image-size", 8
    whole, _ = prepare(photos, *options)
    dataset, stdout = prepare(photos, *options, "--leave-out", "duplicates")
    assert "; 1 of 3 queries left out" in stdout
    assert (len(dataset.query), len(dataset.database), len(dataset.images)) == (2, 18, 20)
    np.testing.assert_array_equal(dataset.images[dataset.query], whole.images[whole.query[[0, 1]]])


@pytest.mark.parametrize(
    ("array", "choice", "message"),
    [
        (np.zeros_like(X), "zeros", "--leave-out zeros leaves no query items. Choose other items, or leave it out."),
        (np.ones_like(X), "duplicates", "--leave-out duplicates leaves no query items. Choose"),
        (with_value(X, (3, 1), np.nan), "duplicates", "nan"),
    ],
)
def test_leaving_out_all_queries_is_refused(complaint, save, array, choice, message):
    assert message in complaint(save("X", array), "--labels", save("y", LABELS), "--leave-out", choice)


def test_images_alone_have_no_zeros_to_leave_out(complaint, photos):
    options = "--features", "images", "--image-size", 8, "--leave-out", "zeros"
    assert "--leave-out zeros needs features, and these are images only; leave it out." in complaint(photos, *options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "photos is a folder; .*: pixels, gist"),
        (["--features", "sift", "--image-size", 8], "unknown feature kind '.*:sift'. .*Known feature kinds: .*gist"),
        (["--features", "pixels", "--image-size", 8, "--query-from", "Q.npy"], "--query-from is for files"),
        (
            ["--features", "images", "--image-size", 8, "--affinity", "distance"],
            "rule 'distance' of dataset 'mine' needs features, and it has images only",
        ),
        (["--features", "images", "--neighbours", 2], "rule 'neighbours' needs features to compare"),
    ],
)
def test_wrong_options_for_a_folder_are_refused(complaint, photos, options, message):
    assert re.search(message, complaint(photos, *options))


def test_features_that_are_not_finite_are_refused_before_neighbours_are_searched(complaint, save, monkeypatch):
    monkeypatch.setattr(arrays, "find_neighbours", lambda *_, **__: 1 / 0)
    features = with_value(X, (9, 2), np.nan)
    assert "not finite, first nan in row 9, column 2" in complaint(save("X", features), "--neighbours", 3)


def test_labels_of_other_than_all_images_are_refused(complaint, photos, save):
    text = complaint(photos, "--features", "pixels", "--image-size", 8, "--labels", save("y", LABELS[:19]))
    assert "images: " not in text  # it is stdout before the long work
    assert "photos holds 20 items, but" in text
    assert "y.npy labels for 19" in text


def test_training_items_can_be_named_by_their_rows(prepare, own_queries, tmp_path):
    savemat(tmp_path / "rows.mat", {"other": X, "train_index": [41, 3, 0, 17]})
    dataset, stdout = prepare(*own_queries(), "--train-index", tmp_path / "rows.mat")
    assert dataset.train.tolist() == [0, 3, 17, 41]
    assert "4 of 50 database items for training, as listed" in stdout


@pytest.mark.parametrize("labels", [LABELS, MULTI_HOT], ids=["classes", "multi-hot"])
def test_training_items_of_each_label_go_with_own_queries(prepare, own_queries, labels):
    drawn = [prepare(*own_queries(labels), "--train-per-label", 2, "--seed", seed)[0] for seed in (1, 2)]
    n_labels = labels.shape[1] if labels.ndim == 2 else len(set(labels))
    for dataset in drawn:
        assert dataset.query.tolist() == list(range(50, 60))
        assert dataset.database.tolist() == list(range(50))
        assert len(set(dataset.train)) == 2 * n_labels
        if labels.ndim == 1:
            assert np.bincount(labels[dataset.train]).tolist() == [2] * n_labels
    assert drawn[0].train.tolist() != drawn[1].train.tolist()


# ---------------------------------------------------------------- mistakes

OWN = ["--query-from", "Q"]
OWN_LABELLED = [*OWN, "--query-labels", "qy"]


@pytest.mark.parametrize(
    ("arrays", "options", "message"),
    [
        ({"X": X.astype(float) + 1e8, "y": LABELS}, [], r"rounding would blur .*% of their spread"),
        ({"X": X[:1]}, [], "of 1 items, 1 queries and 1 training items"),
        ({"X": X, "y": np.array(3)}, [], "labels for 1;"),
        ({"X": X, "y": LABELS + 0.5}, [], r"y.npy holds float64 of shape \(60,\), expected classes"),
        ({"X": X, "y": np.where(LABELS == 0, np.inf, 1)}, [], r"y.npy holds float64 of shape \(60,\)"),
        ({"X": X, "y": MULTI_HOT}, ["--affinity", "same-label"], "rule 'same-label' .* needs class labels"),
        ({"X": X, "y": LABELS}, ["--queries-per-label", 2, "--train", 5], "per label or in total"),
        ({"X": X, "y": LABELS}, ["--queries-per-label", 30], "class 0 has 20 items, but 30 queries"),
        ({"X": X, "y": MULTI_HOT}, ["--queries-per-label", 50], "label 0 has 20 items not drawn before, but 50"),
        ({"X": X, "Q": X[:5], "qy": LABELS[:5]}, OWN_LABELLED, "the query items have labels and the database items"),
        ({"X": X, "Q": X[:5], "y": LABELS, "qy": LABELS[:6]}, OWN_LABELLED, "Q.npy holds 5 items, .* labels for 6"),
        ({"X": X, "Q": X[:5], "y": MULTI_HOT, "qy": MULTI_HOT[:5, :2]}, OWN_LABELLED, r"\(60, 3\) and .* \(5, 2\)"),
        ({"X": X, "Q": X[:5], "y": MULTI_HOT, "qy": LABELS[:5]}, OWN_LABELLED, r"\(60, 3\) and .* \(5,\)"),
        ({"X": X}, ["--skip-bad-images"], "--skip-bad-images is for folders of images"),
        ({"X": X, "Q": X[:5]}, [*OWN, "--train", 61], "there are 60 database items, fewer than the 61"),
    ],
)
def test_wrong_data_and_options_are_refused(complaint, save, arrays, options, message):
    paths = {name: save(name, array) for name, array in arrays.items()}
    options = [paths.get(option, option) for option in options]
    if "y" in paths:
        options += ["--labels", paths["y"]]
    assert re.search(message, complaint(paths["X"], *options))


def test_a_missing_name_in_a_table_is_not_a_class(complaint, save_table):
    assert "1 items of" in complaint(save_table(label=with_value(NAMES.astype(object), 9, None)))


@pytest.mark.parametrize("option", ["--labels", "--query-labels"])
def test_labels_with_other_ids_than_their_items_are_refused(complaint, prepare, tmp_path, option):
    items, same, other = (tmp_path / f"{name}.npz" for name in ("items", "same", "other"))
    np.savez(items, X=X, y=LABELS, ID=np.arange(60))
    np.savez(same, y=LABELS, id=np.arange(60))
    np.savez(other, y=LABELS, id=np.roll(np.arange(60), 1))
    queries = ["--query-from", items] if option == "--query-labels" else []
    expected = "other.npz have different ids of the same items, first in row 0 (the first is 0): 0 and 59."
    assert expected in complaint(items, *queries, option, other)
    prepare(items, *queries, option, same)


def test_a_rule_for_built_in_datasets_is_refused(save):
    own = OwnData("mine", str(save("X", X)), rule="hierarchy")
    with pytest.raises(HashbenchError, match=r"affinity rule 'hierarchy' .*same-label, shared-labels, distance"):
        registry.get_dataset("arrays", Options(own=own)).prepare()


# ---------------------------------------------------------------- put to use


def test_own_data_run_like_any_dataset(hashbench, prepare, save, tmp_path):
    dataset, _ = prepare(save("X", X), "--labels", save("y", LABELS), name="My.data_2-b")
    grid = ["--dataset", "My.data_2-b", "--method", "itq", "--method", "lsh", "--bits", 8]
    result = hashbench("run", *grid, "--results", tmp_path / "results")
    assert result.exit_code == 0
    assert {row["method"] for row in rows_in(tmp_path / "results" / "My.data_2-b")} == {"lsh"}
    assert "refused. itq" in result.stderr  # more bits than features, and the grid goes on
    grid[grid.index(8)] = 4
    result = hashbench("run", *grid, "--metric", "AP", "--metric", "P@r2", "--results", tmp_path / "results")
    assert result.exit_code == 0, result.stderr
    rows = [row for row in rows_in(tmp_path / "results" / "My.data_2-b") if row["n_bits"] == "4"]
    assert tuple(rows[0]) == COLUMNS
    assert {(row["method"], row["metric"]) for row in rows} == {
        (method, metric) for method in ("itq", "lsh") for metric in ("AP", "P@r2")
    }
    for row in rows:
        assert (row["dataset"], row["features"], row["n_bits"]) == ("My.data_2-b", "features", "4")
        assert (row["dataset_fingerprint"], row["n_queries"]) == (dataset.fingerprint, "6")
        assert 0 <= float(row["low"]) <= float(row["value"]) <= float(row["high"]) <= 1


def test_codes_that_are_all_equal_are_noted_whatever_the_format(hashbench, prepare, save, tmp_path):
    prepare(save("X", np.abs(X) + 1), "--labels", save("y", LABELS))
    grid = "--dataset", "mine", "--bits", 4, "--metric", "AP", "--results", tmp_path / "results"
    expected = "mine sign 4 bits seed 0: all 54 database codes are equal: every item ties, and the scores are those of"
    for form in ("table", "csv", "json"):  # computed, then cached
        noted = " ".join(hashbench("run", *grid, "--method", "sign", "--format", form).stderr.split())
        assert f"{expected} chance. Try --param threshold=mean: 0 does not suit features" in noted
    centred = hashbench("run", *grid, "--method", "sign", "--param", "threshold=mean").stderr
    assert "codes are equal" not in centred
    assert "--param" not in centred
    assert "codes are equal" not in hashbench("run", *grid, "--method", "constant", "--method", "lsh").stderr


def test_images_alone_are_refused_by_methods_that_read_features(hashbench, prepare, photos, tmp_path):
    prepare(photos, "--features", "images", "--image-size", 8)
    result = hashbench("run", "--dataset", "mine", "--method", "lsh", "--bits", 8, "--results", tmp_path / "results")
    assert result.exit_code == 1
    assert "lsh reads features, and dataset 'mine' as prepared has images only" in result.stderr


def test_rows_of_other_content_stay_whichever_is_run_again(hashbench, prepare, save, empty_folder):
    arrays = save("X", X), "--labels", save("y", LABELS)
    run = ["run", "--dataset", "mine", "--method", "itq", "--method", "lsh", "--bits", 4, "--metric", "AP"]
    rows, contents = [], []
    for seed in (0, 1, 0, 1):
        contents.append(prepare(*arrays, "--seed", seed)[0].fingerprint)
        assert hashbench(*run, "--force").exit_code == 0
        rows.append(rows_in(empty_folder / "results" / "mine"))
    assert contents[:2] == contents[2:]
    assert {row["dataset_fingerprint"] for row in rows[0]} == {contents[0]}
    assert sorted(row["dataset_fingerprint"] for row in rows[1]) == sorted(2 * contents[:2])
    assert all(row in rows[1] for row in rows[0])
    assert rows[1] == rows[2] == rows[3]
    jobs = jobs_in(empty_folder / "results" / "mine" / "itq.csv")
    assert {job["dataset_fingerprint"] for job in jobs} == {*contents}
    assert "2 of 2 jobs done" in hashbench(*run, "--dry-run").stdout


def test_reports_show_other_content_apart_and_name_it(hashbench, prepare, save, empty_folder):
    arrays = save("X", X), "--labels", save("y", LABELS)
    run = ["run", "--dataset", "mine", "--method", "itq", "--method", "lsh", "--bits", 4, "--metric", "AP"]
    contents = []
    for seed in (0, 1):
        contents.append(prepare(*arrays, "--seed", seed)[0].fingerprint)
        assert hashbench(*run, "--seed", 0, "--seed", 1).exit_code == 0
    for command in (("tables", "--dataset", "mine", "--metric", "AP", "--bits", 4), ("compare", "itq", "lsh")):
        shown = hashbench(*command)
        assert shown.exit_code == 0, shown.stderr
        assert all(content in shown.stdout for content in contents)
    assert hashbench("results", "check").exit_code == 0


def test_a_folder_of_the_same_name_does_not_stand_in_the_way(hashbench, prepare, photos, monkeypatch):
    prepare(photos, "--features", "pixels", "--image-size", 8, name="photos")
    with monkeypatch.context() as patch:
        patch.chdir(photos.parent)
        assert "20 x 192 pixels" in hashbench("info", "photos").stdout
        result = hashbench("encode", "--dataset", "photos", "--method", "lsh", "--bits", 8)
    assert result.exit_code == 0, result.stderr


def test_a_misspelt_name_suggests_own_data_too(hashbench, prepare, save):
    prepare(save("X", X), name="flowers")
    result = hashbench("encode", "--dataset", "flower", "--method", "lsh", "--bits", 8)
    assert result.exit_code == 1
    assert "Did you mean 'flowers'?" in result.stderr

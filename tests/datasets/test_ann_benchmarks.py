import h5py
import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from hashbench import testing
from hashbench.adapter import Options, OwnData
from hashbench.datasets import ann_benchmarks
from hashbench.datasets.ann_benchmarks import AnnBenchmarks
from hashbench.errors import HashbenchError
from hashbench.pipeline.preparation import load_dataset
from hashbench.store.hdf5 import read_dataset

K = 10


def arrays(metric="euclidean", n=200, q=30, d=12, seed=0):
    rng = np.random.default_rng(seed)
    train, test = (rng.normal(size=(size, d)).astype(np.float32) for size in (n, q))
    search = NearestNeighbors(n_neighbors=K, metric={"angular": "cosine"}.get(metric, metric)).fit(train)
    distances, neighbors = search.kneighbors(test)
    neighbors, distances = neighbors.astype(np.int32), distances.astype(np.float32)
    return {"train": train, "test": test, "neighbors": neighbors, "distances": distances}


def write(path, content, **attributes):
    with h5py.File(path, "w") as file:
        for name, value in content.items():
            file[name] = value
        usual = {"type": "dense", "distance": "euclidean", "dimension": 12, "point_type": "float"}
        file.attrs.update(usual | attributes)
    return path


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "sift-12-euclidean.hdf5", arrays())


def prepared(path, **own):
    return AnnBenchmarks(Options(own=OwnData(name="sift", items=str(path), **own))).prepare()


def refused(path, words, **own):
    with pytest.raises(HashbenchError, match=words):
        prepared(path, **own)


def test_roles_and_features_are_those_of_the_file(path):
    dataset, expected = prepared(path), arrays()
    assert dataset.name == "sift"
    np.testing.assert_array_equal(dataset.features[dataset.database], expected["train"])
    np.testing.assert_array_equal(dataset.features[dataset.query], expected["test"])
    np.testing.assert_array_equal(dataset.train, dataset.database)
    np.testing.assert_array_equal(dataset.neighbours, expected["neighbors"])


def test_training_items_are_drawn_with_the_seed(path):
    first, again, other = (prepared(path, n_train=50, seed=seed) for seed in (1, 1, 2))
    assert len(first.train) == len(set(first.train)) == 50
    assert set(first.train) <= set(first.database)
    np.testing.assert_array_equal(first.train, again.train)
    assert set(first.train) != set(other.train)
    assert "50 of 200 database vectors for training, drawn with seed 1" in first.about["protocol"]


def test_of_a_large_database_a_part_is_trained_on_unless_more_is_asked_for(path, monkeypatch):
    assert ann_benchmarks._MOST_TRAIN == 100_000
    monkeypatch.setattr(ann_benchmarks, "_MOST_TRAIN", 150)
    assert len(prepared(path).train) == 150
    assert len(prepared(path, n_train=200).train) == 200
    refused(path, "has 200 vectors, fewer than the 201", n_train=201)


def test_angular_features_are_used_as_given_and_noted(tmp_path):
    path = write(tmp_path / "glove.hdf5", arrays("angular"), distance="angular")
    dataset = prepared(path)
    np.testing.assert_array_equal(dataset.features[dataset.database], arrays("angular")["train"])
    assert "angular distance" in dataset.about["protocol"]
    assert "not scaled to unit length" in dataset.about["features"]
    assert "not scaled" not in prepared(write(tmp_path / "sift.hdf5", arrays())).about["features"]


def test_bits_are_read(tmp_path):
    content = arrays()
    content |= {name: content[name] > 0 for name in ("train", "test")}
    dataset = prepared(write(tmp_path / "bits.hdf5", content, distance="hamming"))
    assert dataset.features.dtype == np.float32
    np.testing.assert_array_equal(dataset.features[dataset.database], content["train"].astype(int))


def spoiled(**changes):
    content = arrays()
    for name, change in changes.items():
        content[name] = change(content[name])
    return {name: value for name, value in content.items() if value is not None}


def put(value, row=3, column=2):
    def change(array):
        array = array.copy()
        array[row, column] = value
        return array

    return change


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"neighbors": put(200)}, r"positions 0 to 200, but there are 200 database items"),
        ({"neighbors": put(-1)}, r"positions -1 to \d+, but there are 200"),
        ({"neighbors": lambda array: array[:, [0, *range(9)]]}, "item twice for 30"),
        ({"neighbors": lambda array: array[:-1]}, r"do not fit together: .*neighbors \(29, 10\)"),
        ({"distances": lambda array: array[:, 1:]}, r"do not fit together: .*distances \(30, 9\)"),
        ({"test": lambda array: array[:, 1:]}, r"do not fit together: .*test \(30, 11\)"),
        ({"test": lambda array: array[:-1]}, r"do not fit together: .*test \(29, 12\)"),
        ({"train": lambda array: array.ravel()}, r"do not fit together: train \(2400,\)"),
        ({"train": put(np.nan)}, "not finite, first nan in row 3, column 2"),
        ({"test": put(np.inf)}, "not finite, first inf in row 203, column 2"),
        ({"distances": lambda array: None}, "lacks distances of the arrays train, test, neighbors, distances"),
        ({"neighbors": lambda array: None, "test": lambda array: None}, "lacks test, neighbors of the arrays"),
        ({"neighbors": lambda array: array.astype(np.float32)}, "holds neighbors of float32; expected numbers"),
        ({"train": lambda array: array.astype("S4")}, r"holds train of .*S4; expected numbers"),
    ],
)
def test_wrong_files_are_refused(tmp_path, changes, words):
    refused(write(tmp_path / "wrong.hdf5", spoiled(**changes)), words)


def test_sets_are_refused(tmp_path):
    content = {"train": np.arange(90), "test": np.arange(9), "size_train": np.full(30, 3), "size_test": np.full(3, 3)}
    content |= {"neighbors": np.zeros((3, 2), np.int32), "distances": np.zeros((3, 2))}
    path = write(tmp_path / "kosarak-jaccard.hdf5", content, type="sparse", distance="jaccard")
    refused(path, r"holds sets of different sizes \(jaccard distance\)")


def test_options_that_the_file_determines_are_refused(path):
    words = "only --neighbours, --neighbour-ties, --train, --train-index and --seed can be chosen"
    for choice in ({"labels": "y.npy"}, {"query_items": "q.npy"}, {"rule": "distance"}, {"n_queries": 5}):
        refused(path, words, **choice)


@pytest.mark.parametrize("rule", [None, "neighbours"])
def test_the_first_neighbours_alone_can_be_relevant(path, rule):
    dataset = prepared(path, neighbours=3, rule=rule)
    np.testing.assert_array_equal(dataset.neighbours, arrays()["neighbors"][:, :3])
    assert "level 1 for the 3 nearest by euclidean distance as the file gives them" in dataset.about["protocol"]
    assert prepared(path, neighbours=K).fingerprint == prepared(path).fingerprint != dataset.fingerprint
    refused(path, "lists 10 neighbours of each query, fewer than the 11", neighbours=11)


def test_queries_whose_neighbours_are_cut_at_a_tie_are_counted(tmp_path):
    content = arrays()
    content["distances"][:4, 3] = content["distances"][:4, 2]
    path = write(tmp_path / "tied.hdf5", content)
    dataset = prepared(path, neighbours=3)
    assert dataset.about["ties"] == "for 4 of 30 queries, items left out are as near as the last neighbour"
    assert "ties" not in prepared(path, neighbours=4).about


def test_all_listed_items_as_near_as_the_last_neighbour_can_be_relevant(tmp_path):
    content = arrays()
    content["distances"][:4, 3] = content["distances"][:4, 2]
    content["distances"][0, 4] = content["distances"][0, 2]
    path = write(tmp_path / "tied.hdf5", content, distance="angular")
    dataset = prepared(path, neighbours=3, neighbour_ties="all")
    levels = dataset.affinity().block(slice(0, 30), slice(0, 200))
    assert levels.sum(axis=1).tolist() == [5, 4, 4, 4] + [3] * 26
    assert (np.take_along_axis(levels, content["neighbors"][:, :3], axis=1) == 1).all()
    assert levels[0, content["neighbors"][0, :5]].all()
    assert dataset.n_neighbours == 3
    assert dataset.rule_params == {"true_distance": "cosine", "n_neighbours": 3}
    assert "ties" not in dataset.about
    assert "3 nearest by angular distance, and all others as near as the last" in dataset.about["protocol"]
    for choice in ({"neighbours": K}, {}):
        refused(path, f"for 30 queries all {K} neighbours that .*others may be too", neighbour_ties="all", **choice)


def test_neighbours_out_of_order_are_not_cut(tmp_path):
    content = arrays()
    content["distances"] = content["distances"][:, ::-1]
    path = write(tmp_path / "other.hdf5", content)
    assert prepared(path).n_neighbours == K
    refused(path, "does not list neighbours by rising distance, so its first 3", neighbours=3)


@pytest.mark.parametrize(
    ("name", "expected"), [("euclidean", "euclidean"), ("angular", "cosine"), ("hamming", "euclidean"), ("dot", "dot")]
)
def test_the_true_distance_is_the_one_of_the_file_and_recorded_unless_it_is_euclidean(tmp_path, name, expected):
    dataset = prepared(write(tmp_path / "named.hdf5", arrays(), distance=name))
    assert dataset.rule_params == ({} if expected == "euclidean" else {"true_distance": expected})
    assert dataset.true_distance == expected


def test_training_vectors_can_be_named_by_their_rows(path, tmp_path):
    np.save(tmp_path / "rows.npy", [7, 2])
    dataset = prepared(path, train_index=str(tmp_path / "rows.npy"))
    assert dataset.train.tolist() == [2, 7]
    assert "database vectors for training, as listed" in dataset.about["protocol"]
    refused(path, "leave out --train and --seed", train_index=str(tmp_path / "rows.npy"), seed=3)


def test_command_line_prepares_and_runs_it_under_its_name(path, data, hashbench, tmp_path):
    result = hashbench("prepare", "--from", path, "--name", "sift", "--train", 100, "--seed", 3)
    assert result.exit_code == 0
    assert "neighbours" in result.stdout
    dataset = read_dataset(data / "datasets" / "sift.h5")
    assert dataset.fingerprint == prepared(path, n_train=100, seed=3).fingerprint
    assert load_dataset("sift")[0].fingerprint == dataset.fingerprint
    result = hashbench("run", "--dataset", "sift", "--method", "lsh", "--bits", 32, "--results", tmp_path / "results")
    assert result.exit_code == 0
    assert "30 queries" in result.stdout
    assert f"{K} listed neighbours" in result.stderr.splitlines()[-1]
    assert f"neighbours: the {K} listed for each query are relevant" in hashbench("info", "sift").stdout
    assert list((tmp_path / "results" / "sift").glob("*.csv"))


def test_without_a_file_it_says_where_to_fetch_one_and_where_to_put_it(data, hashbench):
    result = hashbench("prepare", "ann-benchmarks")
    place = data / "sources" / "ann-benchmarks" / "sift-128-euclidean.hdf5"
    assert result.exit_code == 1
    assert f"from http://ann-benchmarks.com/sift-128-euclidean.hdf5, to {place} (" in result.stderr
    assert "no checksum is published" in result.stderr
    place.parent.mkdir(parents=True)
    write(place, arrays())
    for arguments in ([], ["--source", place]):
        command = f"hashbench prepare --from {place} --name sift."
        assert command in hashbench("prepare", "ann-benchmarks", *arguments).stderr


@pytest.mark.parametrize("check", testing.DATASET_CHECKS, ids=lambda check: check.__name__)
def test_adapter_keeps_the_contract(path, check):
    adapter = AnnBenchmarks(Options(own=OwnData(name="ann-benchmarks", items=str(path))))
    check(adapter)

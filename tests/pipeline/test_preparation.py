import itertools
import re
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import h5py
import numpy as np
import pytest

from hashbench import registry
from hashbench.adapter import DatasetAdapter, Options
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.pipeline import preparation
from hashbench.pipeline.preparation import dataset_path, load_dataset, prepare
from hashbench.store import hdf5


class Toy(DatasetAdapter):
    name = "toy"
    summary = "forty points of two kinds"
    features = ("near", "far")
    seen: ClassVar = []  # the options of each preparation

    def prepare(self):
        self.seen.append(self.options)
        factor = 1 if self.kind == "near" else 100
        shift = 0 if self.options.source is None else int(self.options.source.read_text())
        features = np.linspace(-factor, factor, 40, dtype=np.float32)[:, None] + np.float32(shift)
        index, labels = np.arange(40), np.arange(40) // 10
        roles = index[::5], np.delete(index, index[::5]), index[1:5]
        return Dataset("toy", features, *roles, "same-label", labels=labels, features_name=self.kind)


DAMAGED = "re-prepared damaged"


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    """Register the adapter; return the options of each preparation."""
    monkeypatch.setitem(registry._dataset_modules(), "toy", __name__)
    monkeypatch.setattr(Toy, "seen", [])
    return Toy.seen


@pytest.fixture
def change_code(monkeypatch):
    def change():
        monkeypatch.setattr(preparation, "DATASET_VERSION", "another version")

    return change


@pytest.fixture
def source(tmp_path):
    """A raw file."""
    (tmp_path / "raw.txt").write_text("5")
    return tmp_path / "raw.txt"


@pytest.fixture
def own(tmp_path):
    """A user's own files of features and labels, by option."""
    np.save(tmp_path / "X.npy", np.random.default_rng(0).normal(size=(40, 3)))
    np.save(tmp_path / "y.npy", np.arange(40) % 4)
    return {"--from": tmp_path / "X.npy", "--labels": tmp_path / "y.npy"}


def test_a_dataset_is_prepared_once(toy, data):
    dataset, path, words = prepare("toy")
    assert (path, words) == (data / "datasets" / "toy.h5", "prepared")
    cached, cached_path, words = prepare("toy")
    assert (cached.fingerprint, cached_path, words) == (dataset.fingerprint, path, "")
    loaded, words = load_dataset("toy")
    assert (loaded.fingerprint, words, len(toy)) == (dataset.fingerprint, "", 1)


@pytest.mark.parametrize("name", ["toy", "toy-unseen1-fold0-all"])
def test_a_file_whose_content_changed_is_prepared_again_and_this_is_reported(hashbench, name):
    _, path, _ = prepare(name)
    with h5py.File(path, "a") as file:
        file["labels"][0] += 1
    result = hashbench("prepare", name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{DAMAGED} {path}")
    assert hashbench("prepare", name).stdout.startswith(f"reused {path}")


def test_an_own_dataset_that_is_damaged_cannot_be_prepared_again(hashbench, tmp_path, data, own):
    hashbench("prepare", "--from", own["--from"], "--name", "mine")
    with h5py.File(data / "datasets" / "mine.h5", "a") as file:
        file["features"][0] = 7
    result = hashbench("run", "--method", "lsh", "--bits", 8, "--dataset", "mine", "--results", tmp_path / "results")
    assert result.exit_code == 1
    assert re.search(r"mine\.h5 is damaged.* Rebuild it", result.stderr)


# ---------------------------------------------------------------- kinds of features


def test_the_first_kind_of_features_has_the_plain_name_and_others_their_own(toy, data):
    near, far = prepare("toy"), prepare("toy:far")
    assert (near[1].name, far[1].name) == ("toy.h5", "toy-far.h5")
    assert (near[0].features_name, far[0].features_name) == ("near", "far")
    assert far[0].features[-1, 0] == 100
    assert not prepare("toy:near")[2]
    assert prepare("toy", Options(features="far"))[1:] == (far[1], "")
    assert load_dataset("toy:far")[0].fingerprint == far[0].fingerprint
    assert load_dataset("toy")[0].fingerprint == near[0].fingerprint
    assert len(toy) == 2
    assert dataset_path("toy:far") == data / "datasets" / "toy-far.h5"


def test_the_plain_name_does_not_prepare_another_kind_than_the_prepared_one(toy):
    prepare("toy:far")
    with pytest.raises(HashbenchError, match=r"'toy' is prepared only with features far.*toy:far \(or toy:near"):
        load_dataset("toy")
    assert len(toy) == 1
    assert load_dataset("toy:near")[1]
    assert not load_dataset("toy")[1]


def test_each_kind_on_the_command_line_is_prepared(hashbench, data):
    result = hashbench("prepare", "toy", "--features", "far", "--features", "near")
    assert result.exit_code == 0
    lines = [line for line in result.stdout.splitlines() if line.startswith("prepared ")]
    assert lines == [f"prepared {data / 'datasets' / name}" for name in ("toy-far.h5", "toy.h5")]


def test_kinds_of_features_have_their_own_codes_and_rows(hashbench, data, tmp_path):
    grid = ["--method", "lsh", "--bits", 8, "--metric", "AP", "--results", tmp_path]
    for spec in ("toy", "toy:far"):
        assert hashbench("run", "--dataset", spec, *grid).exit_code == 0
    assert {path.parent.name for path in (data / "codes").rglob("*.h5")} == {"toy", "toy-far"}
    rows = (tmp_path / "toy" / "lsh.csv").read_text().splitlines()[1:]
    assert [row.split(",")[:2] for row in rows] == [["toy", "far"], ["toy", "near"]]


def test_info_lists_the_kinds_and_those_that_are_prepared(hashbench):
    assert "features: near, far\nnot prepared yet: hashbench prepare toy" in hashbench("info", "toy").stdout
    assert "not prepared yet: hashbench prepare toy --features far" in hashbench("info", "toy:far").stdout
    prepare("toy:far")
    assert "1 far (float32)" in hashbench("info", "toy:far").stdout
    assert "not prepared yet" in hashbench("info", "toy").stdout
    prepare("toy")
    assert hashbench("info", "toy:near").stdout == hashbench("info", "toy").stdout
    assert "unknown feature kind 'toy:nonsense'" in hashbench("info", "toy:nonsense").stderr
    assert "not prepared" not in hashbench("info", "arrays").stdout


# ---------------------------------------------------------------- choices


def test_choices_are_remembered_from_the_last_time(toy, source, change_code):
    first, _, _ = prepare("toy", Options(source=source, image_size=32))
    assert first.features[-1, 0] == 6
    assert not prepare("toy")[2]
    assert not prepare("toy", Options(source=source))[2]
    change_code()
    second, _, words = prepare("toy")
    assert (second.fingerprint, words) == (first.fingerprint, "prepared")
    assert (toy[-1].source, toy[-1].image_size, toy[-1].weights) == (source, 32, None)
    assert load_dataset("toy")[0].fingerprint == first.fingerprint


def test_a_choice_may_be_changed_and_the_others_stay(toy, source, tmp_path):
    prepare("toy", Options(source=source, image_size=32))
    (tmp_path / "other.txt").write_text("8")
    changed, _, words = prepare("toy", Options(source=tmp_path / "other.txt"))
    assert words
    assert changed.features[-1, 0] == 9
    assert (toy[-1].image_size, len(toy)) == (32, 2)
    assert prepare("toy", Options(image_size=64))[2]
    assert toy[-1].source == tmp_path / "other.txt"


def test_a_source_is_remembered_in_another_working_directory(toy, source, monkeypatch, change_code):
    with monkeypatch.context() as patch:
        patch.chdir(source.parent)
        prepare("toy", Options(source=Path("raw.txt")))
    change_code()
    assert prepare("toy")[2]
    assert toy[-1].source == source.resolve()


def test_force_starts_afresh_from_the_options(toy, source):
    prepare("toy", Options(source=source, image_size=32))
    assert prepare("toy", Options(image_size=16), force=True)[2]
    assert (toy[-1].source, toy[-1].image_size) == (None, 16)
    assert not prepare("toy")[2]


def test_a_source_that_was_replaced_in_place_is_prepared_again(toy, source):
    prepare("toy", Options(source=source))
    source.write_text("7")
    dataset, _, words = prepare("toy")
    assert (words, dataset.features[-1, 0]) == ("prepared", 8)
    assert not prepare("toy")[2]


@pytest.mark.parametrize("is_chosen", [True, False])
def test_a_file_that_changed_in_a_source_folder_has_another_stamp(toy, data, tmp_path, is_chosen):
    folder = tmp_path / "raw" if is_chosen else data / "sources" / "toy"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("1")
    choices = {"source": str(folder)} if is_chosen else {}
    before = preparation._stamps("toy", choices)
    assert preparation._stamps("toy", choices) == before
    (folder / "a.txt").write_text("2")
    assert preparation._stamps("toy", choices) != before


def test_a_source_that_is_gone_is_requested_once_it_is_needed(toy, source, change_code):
    prepare("toy", Options(source=source))
    source.unlink()
    assert not prepare("toy")[2]
    change_code()
    with pytest.raises(HashbenchError, match=r"no .*raw\.txt, .* Give --source again, or --force"):
        prepare("toy")
    assert prepare("toy", force=True)[2]


def test_a_plugin_that_takes_no_options_is_refused_in_a_sentence(hashbench, monkeypatch):
    class Bare(Toy):
        def __init__(self):
            super().__init__()

    monkeypatch.setattr(f"{__name__}.Toy", Bare)
    with pytest.raises(HashbenchError, match=r"dataset plugin 'toy' cannot be created: .* __init__"):
        prepare("toy")
    listed = hashbench("list", "datasets")
    assert listed.exit_code == 0
    assert "dataset plugin 'toy' cannot be created" in listed.stdout


def test_a_plugin_that_gives_its_dataset_another_name_is_refused(monkeypatch):
    class Other(Toy):
        name = "other"

    monkeypatch.setitem(registry._dataset_modules(), "other", __name__)
    monkeypatch.setattr(f"{__name__}.Toy", Other)
    with pytest.raises(HashbenchError, match="dataset plugin 'other' makes a dataset called 'toy'"):
        prepare("other")


def test_check_takes_the_options_of_a_dataset(hashbench, toy, source):
    hashbench("check", "dataset", "toy", "--source", source, "--features", "far")
    assert (toy[0].source, toy[0].features) == (source, "far")
    assert hashbench("check", "method", "lsh", "--source", source).exit_code == 2


def test_the_device_is_not_remembered(toy):
    prepare("toy", Options(device="cpu"))
    assert not prepare("toy", Options(device="auto"))[2]


def test_each_kind_of_features_remembers_its_own_choices(toy, source):
    prepare("toy", Options(source=source))
    prepare("toy:far")
    assert toy[-1].source is None


# ---------------------------------------------------------------- files with the name of a dataset


@pytest.fixture
def written(tmp_path):
    """Write a dataset called toy, moved a little; return its path."""

    def write(shift, kind="near", **changes):
        dataset = Toy(Options(features=kind)).prepare()
        moved = replace(dataset, features=dataset.features + np.float32(shift), **changes)
        hdf5.write_dataset(moved, tmp_path / "file.h5")
        return str(tmp_path / "file.h5")

    return write


@pytest.mark.parametrize("kind", ["near", "far"])
def test_a_file_with_the_name_of_a_dataset_but_other_content_is_refused(written, kind):
    prepare(f"toy:{kind}")
    assert load_dataset(written(0, kind))[0].name == "toy"
    with pytest.raises(HashbenchError, match=r"file.h5 calls itself 'toy' but holds .* Give yours another name"):
        load_dataset(written(1, kind))


def test_a_file_of_another_kind_of_features_or_another_name_may_differ(written):
    prepare("toy")
    assert load_dataset(written(1, "far"))[0].features_name == "far"
    assert load_dataset(written(1, name="toy-train"))[0].name == "toy-train"


def test_own_data_cannot_be_prepared_by_name(hashbench, own):
    assert hashbench("prepare", *itertools.chain(*own.items()), "--name", "mine").exit_code == 0
    result = hashbench("prepare", "mine")
    assert result.exit_code == 1
    assert "'mine' is a dataset of your own files" in result.stderr
    assert "hashbench prepare --name mine --from ITEMS" in result.stderr


@pytest.mark.parametrize("option", ["--from", "--labels", "--query-from", "--query-labels"])
def test_own_data_are_not_read_from_the_file_that_they_replace(hashbench, tmp_path, data, own, option):
    assert hashbench("prepare", *itertools.chain(*own.items()), "--name", "mine").exit_code == 0
    (path,) = (data / "datasets").glob("*.h5")
    before = path.read_bytes()
    (tmp_path / "link.h5").symlink_to(path)
    key = "labels" if option.endswith("labels") else "features"
    for source in (path, tmp_path / "link.h5"):
        queries = {"--query-from": tmp_path / "X.npy", "--query-labels": tmp_path / "y.npy"}
        chosen = own | (queries if "query" in option else {}) | {option: f"{source}:{key}"}
        done = hashbench("prepare", *itertools.chain(*chosen.items()), "--name", "mine")
        assert done.exit_code == 1
        assert f"{source}:{key} is read and would be overwritten; choose another --name." in done.stderr
    assert path.read_bytes() == before
    assert hashbench("prepare", *itertools.chain(*chosen.items()), "--name", "other").exit_code == 0


# ---------------------------------------------------------------- with unseen classes


def test_unseen_classes_are_cut_out_of_the_prepared_dataset(toy, data):
    load_dataset("toy:far")
    dataset, words = load_dataset("toy-unseen1-fold2-all:far")
    assert (dataset.name, dataset.features_name, words) == ("toy-unseen1-fold2-all", "far", "prepared")
    assert (data / "datasets" / "toy-unseen1-fold2-all-far.h5").is_file()
    assert load_dataset("toy-unseen1-fold2-all:far")[1] == ""
    assert preparation.find_dataset("toy-unseen1-fold2-all:far").fingerprint == dataset.fingerprint
    assert len(toy) == 1
    assert load_dataset("toy-unseen1-fold2-all:near")[0].fingerprint != dataset.fingerprint
    assert len(toy) == 2


def test_unseen_classes_are_cut_again_when_the_whole_dataset_changed(toy, source):
    before = prepare("toy-unseen1-fold0-all", Options(source=source))[0].fingerprint
    source.write_text("6")
    assert preparation.find_dataset("toy-unseen1-fold0-all") is None
    dataset, _, words = prepare("toy-unseen1-fold0-all")
    assert words == "prepared"
    assert dataset.fingerprint != before
    assert prepare("toy-unseen1-fold0-all")[2] == ""
    assert prepare("toy-unseen1-fold0-all", force=True)[2] == "prepared"


def test_unseen_classes_of_the_kind_that_is_prepared_are_meant(toy):
    load_dataset("toy:far")
    with pytest.raises(HashbenchError, match=r"prepared only with features far[.] .* toy-unseen1-fold0-all:far [(]or"):
        load_dataset("toy-unseen1-fold0-all")
    assert load_dataset("toy-unseen1-fold0-all:near")[0].features_name == "near"


def test_unseen_classes_of_own_data(hashbench, tmp_path, own):
    own = [*itertools.chain(*own.items()), "--queries-per-label", 2]
    assert hashbench("prepare", *own, "--name", "mine").exit_code == 0
    one_class = ["--unseen-classes", 1, "--fold", 3]
    assert hashbench("prepare", "mine", *one_class, "--unseen-database", "all").exit_code == 0
    assert "every item is relevant" in hashbench("prepare", "mine", *one_class).stderr
    dataset, words = load_dataset("mine-unseen1-fold3-database-all")
    assert (len(dataset.query), len(dataset.database), len(dataset.train), words) == (2, 32, 24, "")
    assert "leave out --source" in hashbench("prepare", "mine-unseen1-fold3-database-all", "--source", tmp_path).stderr
    assert "reads like a dataset with unseen" in hashbench("prepare", *own, "--name", "a-unseen1-fold3").stderr
    np.save(tmp_path / "X.npy", np.random.default_rng(1).normal(size=(40, 3)))
    assert hashbench("prepare", *own, "--name", "mine").exit_code == 0
    assert load_dataset("mine-unseen1-fold3-database-all")[1] == "prepared"


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((), "digits-unseen3-fold0"),
        (("--fold", 2, "--unseen-database", "all"), "digits-unseen3-fold2-database-all"),
        (("--unseen-queries", "all", "--unseen-database", "all"), "digits-unseen3-fold0-all"),
    ],
)
def test_options_of_the_command_line_name_the_protocol(hashbench, digits_data, arguments, name):
    done = hashbench("prepare", "digits", "--unseen-classes", 3, *arguments)
    assert done.stdout.startswith(f"prepared {digits_data / 'datasets' / name}.h5\n")
    assert hashbench("info", name).stdout in done.stdout

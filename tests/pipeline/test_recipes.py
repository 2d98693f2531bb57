"""Recipes of own datasets: recorded with rows, said in grid files, and enough to prepare the same content again."""

import hashlib
import json
import re
import shlex
from contextlib import chdir
from dataclasses import fields
from pathlib import Path

import click
import numpy as np
import pytest
from PIL import Image

import hashbench as hashbench_package
from hashbench.adapter import OwnData
from hashbench.cli.main import cli
from hashbench.pipeline import preparation, recipes
from hashbench.store import hdf5
from hashbench.store.results import read_rows

RUN = ("run", "--dataset", "mine", "--method", "lsh", "--bits", 8, "--metric", "AP")
GRID = """
datasets = ["mine"]
methods = "lsh"
bits = 8
metrics = "AP"
[prepare.mine]
from = "sources/x.npz:items"
labels = "sources/l.npy"
"""

ITEMS = "--from sources/x.npz:items"
LABELLED = f"{ITEMS} --labels sources/l.npy"
QUERIES = "--query-from sources/q.npy"
EXAMPLES = {  # of the field of `OwnData`
    "items": ITEMS,
    "labels": LABELLED,
    "query_items": f"{ITEMS} {QUERIES} --neighbours 3",
    "query_labels": f"{LABELLED} {QUERIES} --query-labels sources/ql.npy",
    "rule": f"{LABELLED} --affinity same-label",
    "neighbours": f"{ITEMS} --neighbours 3",
    "neighbour_ties": f"{ITEMS} --neighbours 3 --neighbour-ties all",
    "true_distance": f"{ITEMS} --neighbours 3 --true-distance cosine",
    "dimensions": f"{ITEMS} --neighbours 3 --dimensions 2",
    "n_queries": f"{LABELLED} --queries 9",
    "n_train": f"{LABELLED} --train 20",
    "queries_per_label": f"{LABELLED} --queries-per-label 2",
    "train_per_label": f"{LABELLED} --queries-per-label 2 --train-per-label 3",
    "train_index": f"{ITEMS} {QUERIES} --neighbours 3 --train-index sources/t.npy",
    "seed": f"{LABELLED} --seed 3",
    "skip_bad_images": "--from sources/photos --skip-bad-images --features pixels --image-size 8",
    "leave_out": f"{LABELLED} --leave-out duplicates --leave-out zeros",
}


@pytest.fixture
def folder(empty_folder):
    """A folder with the user's own files in ``sources/``."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 5
    (empty_folder / "sources").mkdir()
    np.savez("sources/x.npz", items=(rng.normal(size=(60, 4)) + labels[:, None]).astype(np.float32), other=labels)
    np.save("sources/l.npy", labels)
    return empty_folder


@pytest.fixture
def prepare(hashbench, folder, data):
    def run(*options, name="mine"):
        files = "--from", "sources/x.npz:items", "--labels", "sources/l.npy"
        assert hashbench("prepare", *files, "--name", name, *options).exit_code == 0
        return hdf5.read_dataset(data / "datasets" / f"{name}.h5")

    return run


@pytest.fixture
def grid(folder):
    def write(more=""):
        (folder / "study.toml").write_text(GRID + more)
        return "--grid", "study.toml"

    return write


def written(folder, name="mine"):
    recipes = {}
    for path in (folder / "results" / name).glob("*.json"):
        recipes |= json.loads(path.read_text())["recipes"]
    return recipes


def spoil_labels():
    labels = np.load("sources/l.npy")
    labels[0] = 1
    np.save("sources/l.npy", labels)


def test_rows_come_with_options_digests_and_protocol(hashbench, prepare, folder):
    dataset = prepare("--seed", 3, "--queries", 9)
    assert hashbench(*RUN).exit_code == 0
    files = {"from": "sources/x.npz", "labels": "sources/l.npy"}
    assert written(folder) == {
        dataset.fingerprint: {
            "options": {"from": "sources/x.npz:items", "labels": "sources/l.npy", "queries": 9, "seed": 3},
            "sha256": {key: hashlib.sha256((folder / file).read_bytes()).hexdigest() for key, file in files.items()},
            "protocol": dataset.about["protocol"],
        }
    }
    command = "hashbench prepare --from sources/x.npz:items --labels sources/l.npy --queries 9 --seed 3 --name mine\n"
    assert f"prepared by: {command}" in hashbench("info", "mine").stdout


def test_paths_are_those_in_the_current_folder_and_else_names(folder):
    inside, model = folder / "sources", folder / "sources" / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    options = {"from": f"{inside}/x.npz:items", "features": f"hf:{model}:cls", "seed": 1}
    expected = {"from": "sources/x.npz:items", "features": "hf:sources/model:cls", "seed": 1}
    assert recipes.recorded(options) == expected
    assert recipes.recorded({"from": "./sources/x.npz"} | {"labels": "../here/sources/l.npy"}) == {
        "from": "sources/x.npz",
        "labels": "l.npy",
    }
    assert recipes.files_of(expected)["features"] == (Path("sources/model"), [Path("sources/model/config.json")])
    with chdir(model):
        assert recipes.recorded(options) == {"from": "x.npz:items", "features": "hf:.:cls", "seed": 1}


def test_every_content_has_its_recipe_and_the_first_stays(hashbench, prepare, folder, monkeypatch):
    first = prepare().fingerprint
    assert hashbench(*RUN).exit_code == 0
    before = written(folder)
    second = prepare("--seed", 1).fingerprint
    noted = hashbench(*RUN)
    assert "for the rows in results/mine: --seed is 1, not its default. Its rows are added as those" in noted.stderr
    assert written(folder).keys() == {first, second}
    assert written(folder)[first] == before[first]
    (folder / "sources" / "l.npy").rename(folder / "renamed.npy")
    renamed = "--from", "sources/x.npz:items", "--labels", "renamed.npy", "--name", "mine"
    assert hashbench("prepare", *renamed).exit_code == 0
    assert "another way" not in hashbench(*RUN).stderr
    assert written(folder)[first] == before[first]


def test_other_rows_of_own_data_and_known_data_have_their_recipe_or_none(hashbench, prepare, folder):
    dataset = prepare()
    fold = "mine-unseen2-fold0"
    assert hashbench("run", "--dataset", fold, "--dataset", "digits", *RUN[3:]).exit_code == 0
    assert written(folder, "mine-unseen").keys() == {dataset.fingerprint}
    assert written(folder, "digits") == {}
    np.savez("codes.npz", query=np.eye(len(dataset.query), 8) > 0, database=np.eye(len(dataset.database), 8) > 0)
    own = "--query-codes", "codes.npz:query", "--database-codes", "codes.npz:database", "--dataset", "mine"
    assert hashbench("save", "ours", *own, "--metric", "AP").exit_code == 0
    assert written(folder).keys() == {dataset.fingerprint}
    assert hashbench("results", "merge", "results", "--results", "all").exit_code == 0
    for path in (folder / "results").glob("*/*.json"):
        assert (folder / "all" / path.parent.name / path.name).read_text() == path.read_text()
    assert hashbench("results", "rerun", "results/mine-unseen").exit_code == 0


@pytest.mark.parametrize(
    ("name", "reason"), [("mine", "dataset_fingerprint {}, here"), ("mine-unseen2-fold0", "not prepared")]
)
def test_a_cell_is_rerun_where_its_data_are_prepared(hashbench, prepare, data, name, reason):
    content = prepare("--seed", 1).fingerprint
    assert hashbench("run", "--dataset", name, *RUN[3:]).exit_code == 0
    before = {path: path.read_bytes() for path in data.rglob("*.h5")}
    assert hashbench("results", "rerun").stdout.endswith("1 cell rerun and reproduced, of 1 cell.\n")
    assert {path: path.read_bytes() for path in data.rglob("*.h5")} == before
    prepare()
    refused = hashbench("results", "rerun")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert f"{name} lsh ({reason.format(content)}" in refused.stderr


def test_a_missing_dataset_is_prepared_by_the_recipe_of_its_rows(hashbench, prepare, folder, data, monkeypatch):
    dataset = prepare("--seed", 1)
    assert hashbench(*RUN).exit_code == 0
    monkeypatch.setenv("HASHBENCH_DATA", str(folder / "new"))
    run = (*RUN, "--bits", 16, "--results", folder / "results")
    for command in (run, (*run, "--dry-run")):
        with chdir("sources"):
            lacking = hashbench(*command)
        assert lacking.exit_code == 1
        assert lacking.stderr == (
            "Error: mine is not prepared here, and of the files of its rows sources/x.npz:items is missing here, "
            "sources/l.npy is missing here. Prepare it from these: hashbench prepare --from sources/x.npz:items "
            "--labels sources/l.npy --seed 1 --name mine.\n"
        )
    assert hashbench(*run, "--dry-run").stdout.endswith("0 of 2 jobs done, 2 to do.\n")
    assert not (folder / "new" / "datasets").exists()
    assert f"prepared {folder / 'new' / 'datasets' / 'mine.h5'}\n" in hashbench(*run).stderr
    rows = read_rows(folder / "results", "mine")
    assert [(row.n_bits, row.dataset_fingerprint) for row in rows] == [(n, dataset.fingerprint) for n in (8, 16)]
    (folder / "new" / "datasets" / "mine.h5").unlink()
    frame = hashbench_package.run("lsh", 8, "mine-unseen2-fold0", metrics="AP", results=folder / "results")
    assert frame["dataset"].tolist() == ["mine-unseen2-fold0"]


@pytest.mark.parametrize("field", [field.name for field in fields(OwnData) if field.name != "name"])
def test_a_dataset_of_any_option_is_prepared_again(hashbench, folder, data, field):
    items, labels = np.load("sources/x.npz")["items"], np.load("sources/l.npy")
    for name, array in {"q": items[:7] + 1, "ql": labels[:7], "t": np.arange(30)}.items():
        np.save(f"sources/{name}.npy", array)
    items[[1, 8]], items[30:] = 0, items[29]
    if field == "leave_out":
        np.savez("sources/x.npz", items=items)
    for number in range(12):
        photo = folder / "sources" / "photos" / "ab"[number % 2] / f"{number}.png"
        photo.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number, 0, 0)).save(photo)
    photo.write_bytes(b"")
    path, command = data / "datasets" / "mine.h5", EXAMPLES[field]
    assert hashbench("prepare", *command.split(), "--name", "mine").exit_code == 0
    dataset = hdf5.read_dataset(path)
    (recipe,) = recipes.recipe_of(dataset).values()
    own, options = recipes.read_options("mine", recipe["options"], "mine")
    assert getattr(own, field) != OwnData.__dataclass_fields__[field].default
    assert preparation.is_current(own, options)
    again = shlex.split(recipes.command_of("mine", recipe))
    assert sorted(again) == sorted(f"hashbench prepare {command} --name mine".split())
    path.unlink()
    lines = [f"{key} = {json.dumps(value)}" for key, value in recipe["options"].items()]
    (folder / "study.toml").write_text("\n".join([GRID.partition("from")[0], *lines]))
    assert hashbench("run", "--grid", "study.toml").exit_code == 0
    assert {row.dataset_fingerprint for row in read_rows(folder / "results", "mine")} == {dataset.fingerprint}
    if field == "labels":  # the others go the same way
        path.unlink()
        missing = hashbench(*RUN, "--bits", 4)
        assert (missing.exit_code, path.exists()) == (0, True), missing.stderr


def test_a_missing_dataset_with_rows_of_two_contents_is_left_to_the_user(hashbench, prepare, data):
    for seed in (0, 1):
        prepare("--seed", seed)
        assert hashbench(*RUN).exit_code == 0
    (data / "datasets" / "mine.h5").unlink()
    refused = hashbench(*RUN)
    assert refused.exit_code == 1
    assert "the results have rows of 2 contents of it. Prepare one of them: hashbench prepare" in refused.stderr
    assert refused.stderr.count("--name mine") == 2


@pytest.mark.usefixtures("folder")
def test_a_grid_prepares_its_datasets_and_keeps_current_ones(hashbench, grid, prepare, data):
    command = ["run", *grid()]
    assert hashbench(*command, "--dry-run").stdout.startswith("mine lsh 8 bits seed 0: prepare, encode, score\n")
    assert not data.joinpath("datasets").exists()
    assert f"prepared {data / 'datasets' / 'mine.h5'}\n" in hashbench(*command).stderr
    path = data / "datasets" / "mine.h5"
    of_grid = path.stat().st_mtime_ns
    assert "prepared" not in hashbench(*command).stderr
    assert path.stat().st_mtime_ns == of_grid
    assert hashbench(*command, "--dry-run").stdout.startswith("mine lsh 8 bits seed 0: done\n")
    assert hdf5.read_dataset(path).fingerprint == prepare().fingerprint
    assert hashbench(*command, "--dry-run").stdout.startswith("mine lsh 8 bits seed 0: done\n")
    command = ["encode", *grid("seed = 1\n")]
    assert "prepare, encode" in hashbench(*command, "--dry-run").stdout
    assert "prepared" in hashbench(*command).stderr


def test_a_grid_whose_files_differ_from_those_of_the_rows_says_which(hashbench, grid, folder, data):
    command = ["run", *grid()]
    assert hashbench(*command).exit_code == 0
    spoil_labels()
    noted = hashbench(*command)
    assert noted.exit_code == 0
    assert (
        "mine was prepared in another way than for the rows in results/mine: sources/l.npy (--labels) is another file. "
        "Its rows are added as those of other data.\n"
    ) in noted.stderr
    assert len(read_rows(folder / "results", "mine")) == 2
    (folder / "sources" / "l.npy").unlink()
    missing = hashbench(*command)
    assert missing.exit_code == 1
    assert missing.stderr == "Error: there is no file sources/l.npy.\n"


def test_a_grid_prepares_the_dataset_of_a_fold_and_not_one_that_is_left_out(hashbench, folder, data):
    (folder / "study.toml").write_text(GRID.replace('["mine"]', '["mine-unseen2-fold0", "digits"]'))
    command = "run", "--grid", "study.toml", "--dataset"
    assert hashbench(*command, "digits").exit_code == 0
    assert not (data / "datasets" / "mine.h5").exists()
    assert hashbench(*command, "mine-unseen2-fold0").exit_code == 0
    assert (data / "datasets" / "mine.h5").exists()


def test_a_grid_takes_every_option_of_prepare_for_own_data():
    prepare = cli.get_command(click.Context(cli), "prepare")
    options = {name.removeprefix("--") for option in prepare.params for name in option.opts if name.startswith("--")}
    of_folds = {"unseen-classes", "fold", "unseen-queries", "unseen-database"}
    assert {*recipes._OPTIONS} == options - {"name", "dataset", "source", "force", "lock-timeout", *of_folds}


@pytest.mark.parametrize(
    "text", ["[]", '{"89ab": {}}', '{"89ab": {"options": {}, "sha256": {"from": ""}, "protocol": ""}}']
)
def test_damaged_recipes_are_refused_before_anything_is_written(hashbench, prepare, folder, text):
    prepare()
    assert hashbench(*RUN).exit_code == 0
    path = folder / "results" / "mine" / "lsh.json"
    path.write_text(re.sub(r'("recipes": ).*', rf"\g<1>{text}\n}}", path.read_text(), flags=re.DOTALL))
    before = (folder / "results" / "mine" / "lsh.csv").read_bytes()
    for command in (("results", "check"), (*RUN, "--seed", 1)):
        done = hashbench(*command)
        assert done.exit_code == 1
        assert "results/mine/lsh.json is damaged" in done.stderr
    assert (folder / "results" / "mine" / "lsh.csv").read_bytes() == before

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers.artifacts import edit
from PIL import Image

from hashbench import registry
from hashbench.bits import pack, unpack
from hashbench.cli.main import cli
from hashbench.pipeline.preparation import dataset_path
from hashbench.store import hdf5


@pytest.fixture(scope="module")
def itq(train):
    return registry.get_method("itq")(12).fit(train)


@pytest.fixture(scope="module")
def encoded(prepared, tmp_path_factory):
    """A data folder with digits, and models of ITQ and of labels on them, to be copied."""
    folder = tmp_path_factory.mktemp("models") / "data"
    shutil.copytree(prepared, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(folder))
        for method in ("itq", "oracle-label"):
            command = ["encode", "--method", method, "--bits", "12", "--keep-model"]
            assert CliRunner().invoke(cli, command, catch_exceptions=False).exit_code == 0
    return folder


@pytest.fixture
def model(encoded, data):
    """The file of an ITQ model on digits."""
    shutil.copytree(encoded, data, dirs_exist_ok=True)
    return data / "codes" / "digits" / "itq-12-s0.model.h5"


def test_new_items_get_the_codes_of_the_method(hashbench, model, itq, digits, tmp_path):
    np.save(tmp_path / "new.npy", digits.features[:50])
    command = ("encode", "--model", model, "--from", tmp_path / "new.npy", "--output", tmp_path / "codes.npy")
    assert hashbench(*command).stdout == f"wrote {tmp_path / 'codes.npy'}: codes of 50 items, 12 bits.\n"
    codes = itq.transform(digits.features[:50])
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), codes)
    assert "12 bits, packed" in hashbench(*command, "--packed").stdout
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), pack(codes))


def test_a_kept_model_is_reused_and_a_missing_or_damaged_one_is_fitted_again(hashbench, model):
    command = ("encode", "--method", "itq", "--bits", 12, "--keep-model")
    assert "reused codes" in hashbench(*command).stderr
    whole = model.read_bytes()
    model.write_bytes(whole[:-100])
    assert "0 of 1 jobs done" in hashbench(*command, "--dry-run").stdout
    assert "encoded codes" in hashbench(*command).stderr
    assert model.read_bytes() == whole
    model.unlink()
    assert "encoded codes" in hashbench(*command).stderr
    assert model.read_bytes() == whole


def test_a_model_is_removed_with_its_codes_but_not_when_they_are_encoded_again(hashbench, tiny_file, data):
    command = ("encode", "--method", "lsh", "--bits", 2, "--dataset")
    first = tiny_file()
    assert hashbench(*command, first, "--keep-model").exit_code == 0
    (model,) = data.rglob("*.model.h5")
    whole = model.read_bytes()
    assert "encoded codes" in hashbench(*command, first, "--force").stderr
    assert model.read_bytes() == whole
    assert "encoded codes" in hashbench(*command, tiny_file(seed=1)).stderr
    assert not model.exists()


REFUSED = [
    ("itq", np.ones((3, 5), np.float32), "holds 5 features per item, and the model learned from 64"),
    ("itq", np.where(np.arange(192).reshape(3, 64) == 70, np.nan, 1.0), "not finite in 1 rows, first in row 1"),
    ("itq", np.where(np.arange(192).reshape(3, 64) == 1, -np.inf, 1.0), "not finite in 1 rows, first in row 0"),
    ("oracle-label", np.array([1.0, np.nan, 2.0]), "1 values that are not whole numbers, first nan for item 1"),
    ("oracle-label", np.array(["1", "2", "3"]), "expected whole numbers of shape (n,)"),
    ("oracle-label", np.eye(3, 10, dtype=int), "int64 of shape (3, 10), expected whole numbers of shape (n,)"),
]


@pytest.mark.parametrize("command", ["encode --model {}", "export {} --to onnx"])
def test_items_that_the_method_cannot_encode_are_refused(hashbench, model, tmp_path, empty_folder, command):
    for method, items, words in REFUSED:
        np.save(tmp_path / "new.npy", items)
        start = command.format(model.with_name(f"{method}-12-s0.model.h5")).split()
        result = hashbench(*start, "--from", tmp_path / "new.npy", "--output", empty_folder / "o.npy")
        assert (result.exit_code, result.stdout) == (1, "")
        assert re.match(f"Error: .*{re.escape(words)}", result.stderr.splitlines()[-1])
        assert not [*empty_folder.iterdir()]


@pytest.fixture
def photos(tmp_path):
    """Twelve images of two classes, of different sizes, in folders."""
    rng = np.random.default_rng(0)
    for number in range(12):
        folder = tmp_path / "photos" / ("cat", "dog")[number % 2]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 256, (9 + number, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number:02d}.png")
    return tmp_path / "photos"


def fitted_on(hashbench, photos, kind, method, *options):
    """Return the file of a model fitted on a folder of images, and its codes of these in the order of their paths."""
    assert hashbench("prepare", "--from", photos, "--name", "photos", "--features", kind, *options).exit_code == 0
    result = hashbench("encode", "--dataset", "photos", "--bits", 4, "--keep-model", *method)
    codes_path, model = result.stdout.splitlines()
    items = hdf5.read_dataset(dataset_path("photos"))
    codes = np.empty((12, 4), dtype=bool)
    with hdf5.open_codes(Path(codes_path)) as stored:
        codes[items.query], codes[items.database] = (unpack(part[:], 4) for part in (stored.query, stored.database))
    return Path(model), codes


@pytest.mark.parametrize("kind", ["pixels", "squeezenet", "images"])
def test_a_folder_of_images_is_encoded_as_the_one_that_was_prepared(hashbench, photos, data, tmp_path, kind):
    method, options = ("--method", "itq"), ["--image-size", 32]
    if kind != "pixels":
        pytest.importorskip("torch")
        from helpers.striped_images import save_weights

        weights = save_weights("squeezenet", tmp_path / "weights.pth")
        options += ["--weights", weights] if kind == "squeezenet" else []
    if kind == "images":
        params = {"backbone": "squeezenet", "weights": weights, "image_size": 32, "epochs": 1}
        method = ("--method", "dpsh", *(word for item in params.items() for word in ("--param", "{}={}".format(*item))))
    model, codes = fitted_on(hashbench, photos, kind, method, *options)
    edit(dataset_path("photos"), lambda record, arrays: record["about"].update(features="other words"))  # for people
    result = hashbench("encode", "--model", model, "--from", photos, "--output", tmp_path / "new.npy")
    assert result.stdout.endswith("codes of 12 items, 4 bits, in the order of their paths.\n"), result.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), codes)
    flat = tmp_path / "flat"
    shutil.copytree(photos / "dog", flat)
    hashbench("encode", "--model", model, "--from", flat, "--output", tmp_path / "new.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "new.npy"), codes[6:])
    if kind == "squeezenet":
        save_weights("squeezenet", weights, seed=1)
        result = hashbench("encode", "--model", model, "--from", flat, "--output", tmp_path / "new.npy")
        words = r"features 'squeezenet, 32 px, weights \w+, on \w+', and the model .*: 'other words'. Restore the w"
        assert re.search(words, result.stderr)


def test_a_folder_without_the_features_that_were_learned_from_is_refused(hashbench, photos, data, tmp_path, model):
    def refused(path, folder=photos):
        result = hashbench("encode", "--model", path, "--from", folder, "--output", tmp_path / "new.npy")
        assert (result.exit_code, (tmp_path / "new.npy").exists()) == (1, False)
        return result.stderr

    assert "is a folder, and the model learned from digits (pixels) with content" in refused(model)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(40, 8)))
    hashbench("prepare", "--from", tmp_path / "x.npy", "--name", "vectors")
    lines = hashbench("encode", "--method", "itq", "--bits", 4, "--dataset", "vectors", "--keep-model").stdout
    assert "is a folder, and the model learned from vectors (features) with content" in refused(lines.split()[1])
    of_photos, _ = fitted_on(hashbench, photos, "pixels", ("--method", "itq"), "--image-size", 8)
    (tmp_path / "none").mkdir()
    assert f"there are no images in {tmp_path / 'none'}" in refused(of_photos, tmp_path / "none")
    dataset_path("photos").unlink()
    assert "the model learned from photos (pixels) with content" in refused(of_photos)

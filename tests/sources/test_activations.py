import tracemalloc

import numpy as np
import pytest
import torch
from helpers.error_sentences import complaint
from helpers.striped_images import SIZE, save_weights, stripes
from helpers.thoroughness import slow

from hashbench.errors import HashbenchError
from hashbench.sources.features import activations
from hashbench.sources.features.activations import FrozenBelow
from hashbench.sources.features.backbones import BACKBONES, FIRST_LAYER
from hashbench.sources.features.weights import Extractor
from hashbench.store import artifact

IMAGES = stripes()[0][:6]
SMALLEST = {"squeezenet": SIZE, "alexnet": 64, "vgg-f": 199, "vgg16": 32, "resnet18": 33}  # pixels, or near it


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_weights("squeezenet", tmp_path_factory.mktemp("weights") / "squeezenet.pth")


def cut(path, train_from="fire5", name="squeezenet", size=SIZE):
    return FrozenBelow(name, path, image_size=size, device="cpu", train_from=train_from)


@pytest.mark.parametrize("name", BACKBONES)
def test_a_network_has_the_layers_that_the_registry_names(name):
    backbone = BACKBONES[name]
    with torch.device("meta"):
        assert len(backbone.build().layers()) == len(backbone.layers)
    assert backbone.layers[0] == FIRST_LAYER


@pytest.mark.parametrize("name", ["squeezenet", *slow(*(name for name in SMALLEST if name != "squeezenet"))])
def test_layers_below_and_above_any_cut_make_the_whole_network(name, tmp_path):
    path, size = save_weights(name, tmp_path / "weights.pth"), SMALLEST[name]
    whole = Extractor(name, path, image_size=size, device="cpu")(IMAGES)
    assert whole.std() > 0
    part = cut(path, FIRST_LAYER, name, size)
    for part.n_frozen, layer in enumerate(BACKBONES[name].layers):
        vars(part).pop("_shape", None)
        inputs = part.inputs(IMAGES)
        assert inputs.dtype == (np.uint8 if layer == FIRST_LAYER else np.float16)
        np.testing.assert_allclose(part(inputs), whole, rtol=0.02, atol=0.01 * whole.std(), err_msg=layer)


def test_gradient_reaches_the_layers_above_the_cut_alone(weights):
    part = cut(weights)
    part.forward(torch.from_numpy(part.inputs(IMAGES))).sum().backward()
    reached = {key for key, value in part.network.named_parameters() if value.grad is not None and value.grad.any()}
    assert {key.split(".")[1] for key in reached} == {"7", "8", "9", "10", "12"}  # of features: fire5 to fire9


def test_activations_are_cached_as_they_are_computed(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(artifact, "_MAPPED", 1)
    computed, cached = cut(weights).inputs(IMAGES), cut(weights).inputs(IMAGES, tmp_path)
    np.testing.assert_array_equal(cached, computed)
    (path,) = tmp_path.glob("*.h5")
    assert path.name.startswith("squeezenet-fire5-")
    monkeypatch.setattr(activations, "in_batches", None)
    cached = cut(weights).inputs(IMAGES, tmp_path)
    assert isinstance(cached.base, np.memmap)
    np.testing.assert_array_equal(cached, computed)


def test_blocks_make_no_difference(weights, tmp_path, monkeypatch):
    whole = cut(weights).inputs(IMAGES)
    monkeypatch.setattr(activations, "BLOCK", 4)
    for folder in (None, tmp_path):
        np.testing.assert_allclose(cut(weights).inputs(IMAGES, folder), whole, rtol=2e-3, atol=1e-3)


def test_activations_of_other_weights_layers_or_images_have_their_own_file(weights, tmp_path):
    other = save_weights("squeezenet", tmp_path / "other.pth", seed=1)
    folder = tmp_path / "cache"
    usual = cut(weights)
    for part, images in (
        (usual, IMAGES),
        (usual, IMAGES[:, :, ::-1]),
        (usual, IMAGES[:5]),
        (cut(other), IMAGES),
        (cut(weights, "fire4"), IMAGES),
        (cut(weights, size=48), IMAGES),
    ):
        np.testing.assert_array_equal(part.inputs(images, folder), part.inputs(images))
    assert len([*folder.glob("*.h5")]) == 6


def test_kind_of_device_and_versions_decide_activations(weights, monkeypatch):
    part, keys = cut(weights), set()
    for target, name, value in (
        (part, "device", "cpu"),
        (part, "device", "cuda"),
        (torch, "__version__", "0.0.0"),
        (activations, "DATASET_VERSION", "other"),
    ):
        monkeypatch.setattr(target, name, value)
        keys.add(part._key(IMAGES))
    assert len(keys) == 4


def test_images_are_told_apart_without_a_copy_of_all(weights):
    part, images = cut(weights), np.zeros((16 * activations.BLOCK, 8, 8, 6), np.uint8)[..., ::2]  # 1.5 MB
    part._key(images[:1])
    tracemalloc.start()
    key = part._key(images)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < images.nbytes / 4
    assert key == part._key(images.copy())


def test_activations_beyond_float16_are_refused(weights, tmp_path):
    state = torch.load(weights, weights_only=True)
    state["features.0.weight"] *= 1e6
    torch.save(state, tmp_path / "large.pth")
    text = complaint(cut(tmp_path / "large.pth", "fire2").inputs, IMAGES)
    assert text.startswith("squeezenet gives fire2 numbers beyond the range of float16.")
    assert "train_from" in text


def test_activations_that_memory_cannot_hold_are_refused_before_they_are_computed(weights, monkeypatch):
    monkeypatch.setattr("hashbench.store.inputs.free_memory", lambda: 1000)
    monkeypatch.setattr(activations, "in_batches", None)
    with pytest.raises(HashbenchError, match=r"what squeezenet gives fire5 for 6 images takes .* GB of memory"):
        cut(weights).inputs(IMAGES)

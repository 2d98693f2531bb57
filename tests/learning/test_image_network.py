import hashlib
import json
import pickle
from itertools import combinations
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import torch
from helpers.learned_methods import LEARNED, StoppedError, session, stop_after
from helpers.striped_images import SIZE, make, save_weights
from helpers.thoroughness import slow

from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.learning import base, image_network, networks
from hashbench.learning.image_network import ImageNetwork
from hashbench.methods.talr_ap import TALRAP
from hashbench.reports.aggregate import method_labels
from hashbench.sources.features.weights import Extractor
from hashbench.store import hdf5
from hashbench.store.hdf5 import from_arrays, to_arrays
from hashbench.store.results import read_rows

FROM_SCRATCH = {"backbone": "dsh-net", "weights": None, "image_size": 0}


def state(network):
    return {name: value.clone() for name, value in network.state_dict().items()}


def features_of(images, weights):
    """Compute the features of the untrained network."""
    return Extractor("squeezenet", weights, image_size=SIZE, device="cpu")(images)


def fit_head(method, items):
    """Train only the head: stop where the whole network starts to learn."""
    with mock.patch.object(base, "train", side_effect=StoppedError), pytest.raises(StoppedError):
        method.fit(*items)
    return method


@pytest.fixture(scope="module")
def trained_once(weights, few):
    return make(weights, epochs=1).fit(*few)


# ---------------------------------------------------------------- what is trained


@pytest.mark.parametrize(("head", "scaling"), [("mlp", "variance"), *slow(("linear", "norm"), ("linear", "none"))])
def test_with_frozen_layers_it_is_training_on_the_networks_features(weights, few, head, scaling):
    images, labels = few
    method = make(weights, pretrained_multiplier=0, head=head, scaling=scaling).fit(images, labels)
    features = features_of(images, weights)
    other = TALRAP(8, epochs=2, batch_size=8, learning_rate=0.01, n_hidden=32, head=head, scaling=scaling)
    other.fit(features, labels)
    np.testing.assert_allclose(method.mean_, other.mean_, rtol=1e-5, atol=1e-6)  # images come in other batches
    np.testing.assert_allclose(method.project(images), other.project(features), rtol=1e-3, atol=1e-4)


def test_head_learns_first_as_it_does_on_the_networks_features(weights, few):
    images, labels = few
    method, features = fit_head(make(weights, head_epochs=3, augmentation="crop"), few), features_of(images, weights)
    other = TALRAP(8, epochs=3, halve_every=1, batch_size=8, learning_rate=0.01, n_hidden=32).fit(features, labels)
    outputs = image_network.project(method.network_, images, 8, "cpu", None)
    np.testing.assert_allclose(outputs, other.project(features), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("halve_every", "rates"), [(10, [1, 1, 0.5, 0.5]), (0, [1, 1, 1, 1])])
def test_rate_of_the_head_alone_is_halved_after_each_third_or_never(halve_every, rates, weights, few):
    """Epochs of a third are rounded up: two of four."""
    seen, steps = [], torch.optim.SGD.step

    def step(optimizer, *args, **kwargs):
        seen.append(optimizer.param_groups[0]["lr"] / 0.01)
        return steps(optimizer, *args, **kwargs)

    with mock.patch.object(torch.optim.SGD, "step", step):
        fit_head(make(weights, head_epochs=4, halve_every=halve_every), few)
    assert seen[::2] == seen[1::2] == rates  # of two batches an epoch


@pytest.mark.parametrize("name", ["talr-ap", *slow("orthohash")])
def test_head_learns_alone_in_single_precision_and_leaves_pretrained_layers_alone(name, weights, few):
    """Only what both then learn is in bfloat16, and here that is nothing."""
    of_head, before = [], torch.load(weights, weights_only=True)
    for mixed_precision in (False, True):
        method = fit_head(make(weights, name, head_epochs=2, mixed_precision=mixed_precision), few)
        of_head.append(state(method.network_.head))
        assert all(torch.equal(value, before[key]) for key, value in state(method.network_.pretrained).items())
    assert all(torch.equal(value, of_head[1][key]) for key, value in of_head[0].items())


def test_epochs_of_the_head_are_reported_and_timed(weights, few, tmp_path, monkeypatch):
    reported, path = [], tmp_path / "checkpoint"
    clock = SimpleNamespace(perf_counter=lambda: 60.0 * len(reported))
    for module in ("image_network", "state"):
        monkeypatch.setattr(f"hashbench.learning.{module}.time", clock)

    def on_epoch(epoch):
        reported.append((epoch.number, epoch.n_epochs, "the head alone" in str(epoch)))

    session(make(weights, head_epochs=2, epochs=1), on_epoch=on_epoch, checkpoint=path).fit(*few)
    assert reported == [(1, 2, True), (2, 2, True), (1, 1, False)]
    resumed = session(make(weights, head_epochs=2, epochs=1), checkpoint=path, resume=True).fit(*few)
    assert resumed.resumed_seconds_ == 2 * 60  # it was interrupted before the last epoch was reported
    assert make(weights, head_epochs=2, epochs=1).fit(*few).resumed_seconds_ == 0


def test_failure_of_the_head_alone_says_so(weights, few):
    with pytest.raises(HashbenchError, match="while the head learned alone") as failure:
        make(weights, head_epochs=3, learning_rate=1e8, pretrained_multiplier=0).fit(*few)
    assert "lower learning_rate (now 1e+08)" in str(failure.value)
    assert "pretrained_multiplier" not in str(failure.value)


def test_what_follows_the_heads_epochs_draws_what_it_would_without(weights, few):
    params = {"augmentation": "crop", "validation": 0.25, "learning_rate": 1e-12}  # at which the head stays as it was
    first, plain = (make(weights, head_epochs=n_epochs, **params).fit(*few) for n_epochs in (2, 0))
    np.testing.assert_allclose([one.loss for one in first.history_], [one.loss for one in plain.history_], rtol=1e-6)


OTHERS = slow("bihalf", *(name for name in LEARNED if name != "orthohash"))


@pytest.mark.parametrize("name", ["cibhash", "orthohash", *OTHERS])
def test_pretrained_layers_of_any_method_learn_with_the_head(name, weights, few):
    method = make(weights, name, epochs=1, batch_size=16).fit(*few)
    before = torch.load(weights, weights_only=True)
    moved = {key: float((value - before[key]).abs().max()) for key, value in state(method.network_.pretrained).items()}
    assert moved["features.0.weight"] > 0
    assert moved["features.12.expand3x3.bias"] > 0
    assert moved["classifier.1.weight"] == 0  # the layer of class scores has no part in features
    assert method.transform(few[0]).shape == (16, 8)


def test_learning_rates_are_those_of_head_biases_and_pretrained_layers(weights):
    extractor = Extractor("squeezenet", weights, image_size=SIZE, device="cpu")
    head = networks.make_head(512, 8, 16, torch.Generator())
    network = ImageNetwork(extractor, np.zeros(512), 1.0, head)
    groups = {group["multiplier"]: group["params"] for group in networks.parameter_groups(network, 0.1, 0.01)}
    pretrained = [*extractor.network.parameters()]
    expected = {1.0: [head[0].weight, head[2].weight], 0.1: [head[0].bias, head[2].bias], 0.01: pretrained}
    assert {key: [*map(id, group)] for key, group in groups.items()} == {
        key: [*map(id, group)] for key, group in expected.items()
    }
    assert {group["multiplier"] for group in networks.parameter_groups(network, 0.1, 0)} == {1.0, 0.1}


def test_dropout_and_batch_statistics_of_pretrained_layers_stay_off_while_the_head_trains():
    pretrained, head = torch.nn.Sequential(torch.nn.Dropout(), torch.nn.BatchNorm1d(4)), torch.nn.Linear(4, 2)
    network = image_network.ImageNetwork(SimpleNamespace(network=pretrained), np.zeros(4), 1.0, head).train()
    assert [layer.training for layer in (head, pretrained, *pretrained)] == [True, False, False, False]
    assert not network.eval().head.training


@pytest.mark.parametrize("learns", [True, False])
def test_features_that_learn_have_the_mean_of_their_batch_taken_away_until_that_of_all_is_known(learns):
    pretrained = torch.nn.Linear(4, 4).requires_grad_(learns)
    extractor = SimpleNamespace(network=pretrained, forward=pretrained)
    network = ImageNetwork(extractor, np.ones(4), None, torch.nn.Identity())
    items = torch.from_numpy(np.random.default_rng(0).normal(5, 1, (20, 4))).float()
    features = pretrained(items).detach().numpy()
    of_all = features.mean(axis=0)
    close = {"rtol": 1e-4, "atol": 1e-5}
    network.train()
    np.testing.assert_allclose(network(items).detach(), features - (of_all if learns else 1), **close)
    np.testing.assert_allclose(network(items[:1]).detach(), features[:1] - 1, **close)
    network.eval().settle(items.split(7))
    expected = features - (of_all if learns else 1)
    np.testing.assert_allclose(network(items).detach(), expected, **close)
    np.testing.assert_allclose(network(items[:3]).detach(), expected[:3], **close)


@pytest.mark.parametrize("validation", [0.0, 0.25])
def test_mean_is_that_of_what_the_trained_network_makes_of_its_items(validation, weights, few):
    images, labels = few
    params = {"train_from": "fire9", "pretrained_multiplier": 1.0, "validation": validation}
    method = make(weights, batch_size=100, epochs=3, **params).fit(images, labels)  # a batch an epoch
    network = method.network_
    with torch.no_grad():
        features = network.extractor.forward(torch.from_numpy(network.extractor.inputs(images, None))).double().numpy()
    before = features_of(images, weights).mean(axis=0)
    assert np.abs(features.mean(axis=0) - before).max() > 1e-3  # they have learned
    if validation:  # of those that were learned from, which are other ones
        means = [np.delete(features, held, axis=0).mean(axis=0) for held in combinations(range(len(images)), 4)]
        assert min(np.abs(method.mean_ - mean).max() for mean in means) < 1e-5
        assert np.abs(method.mean_ - features.mean(axis=0)).max() > 1e-4
    else:
        np.testing.assert_allclose(method.mean_, features.mean(axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "size"), [("alexnet", 64), ("vgg-f", 199), ("vgg16", 32), ("resnet18", 33)])
def test_every_backbone_is_trained_without_dropout_and_with_the_statistics_of_the_file(name, size, striped, tmp_path):
    path = save_weights(name, tmp_path / "weights.pth")
    images, labels = (part[:4] for part in striped)
    params = {"backbone": name, "weights": str(path), "image_size": size, "head": "linear", "epochs": 1}
    method = TALRAP(8, pretrained_multiplier=1e-9, **params).fit(images, labels)
    frozen = TALRAP(8, pretrained_multiplier=0, **params).fit(images, labels)
    np.testing.assert_allclose(method.project(images), frozen.project(images), rtol=1e-3, atol=1e-3)
    before = torch.load(path, weights_only=True)
    for key, value in method.network_.pretrained.state_dict().items():
        if "running" in key or "tracked" in key:
            assert torch.equal(value, before[key]), key
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(method)).project(images[:2]), method.project(images[:2]))


def test_grey_images_are_shown_in_three_channels(weights, few):
    grey, labels = few[0][..., :1], few[1]
    as_colour = make(weights).fit(grey.repeat(3, axis=3), labels)
    np.testing.assert_array_equal(make(weights).fit(grey, labels).project(grey), as_colour.project(grey))


# ---------------------------------------------------------------- from random weights


@pytest.fixture
def scratch(few, monkeypatch):
    """Train DSH's network, without any access to files of weights."""
    monkeypatch.setattr(image_network, "find_weights", mock.Mock(side_effect=AssertionError))
    return lambda **params: make(None, "dsh", **{**FROM_SCRATCH, "head": "linear"}, **params).fit(*few)


def test_random_weights_come_from_the_seed_alone(scratch, few):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = scratch(random_state=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    np.testing.assert_array_equal(first.project(few[0]), scratch(random_state=3).project(few[0]))
    other = scratch(random_state=4, epochs=1, learning_rate=1e-12)
    weights = [state(method.network_.pretrained)["conv1.weight"] for method in (first, other)]
    assert not torch.allclose(*weights, atol=0.1)
    assert first.network_.extractor.image_size == 32  # not enlarged


def test_layers_that_start_at_random_learn_at_the_rates_of_the_head(scratch, few):
    """The multiplier of pretrained layers has no effect on them, and is not recorded."""
    methods = [scratch(epochs=1, pretrained_multiplier=multiplier) for multiplier in (0.0, 1.0)]
    np.testing.assert_array_equal(*(method.project(few[0]) for method in methods))
    groups = networks.parameter_groups(methods[0].network_, 2.0, None)
    names = {id(value): name for name, value in methods[0].network_.named_parameters()}
    of_layers = [f"pretrained.{layer}" for layer in ("conv1", "conv2", "conv3", "fc4")]
    assert {group["multiplier"]: [names[id(value)] for value in group["params"]] for group in groups} == {
        1.0: [f"{layer}.weight" for layer in (*of_layers, "head.0")],
        2.0: [f"{layer}.bias" for layer in (*of_layers, "head.0")],
    }
    recorded = methods[0].recorded_params()
    assert (recorded["backbone"], recorded["weights"]) == ("dsh-net", "random")
    assert "pretrained_multiplier" not in recorded


def test_a_network_trained_from_random_weights_is_stored_with_them(scratch, few):
    method = scratch(epochs=1)
    again = from_arrays(type(method), method.get_params(deep=False), *to_arrays(method))
    np.testing.assert_array_equal(method.project(few[0]), again.project(few[0]))
    average = few[0].mean(axis=(0, 1, 2))
    np.testing.assert_allclose(again.network_.pretrained.average_image.mean(dim=(1, 2)), average, rtol=1e-4)


def test_training_from_random_weights_that_fails_does_not_advise_on_pretrained_ones(scratch):
    with pytest.raises(HashbenchError, match="lower learning_rate") as failure:
        scratch(learning_rate=1e8)
    assert "pretrained_multiplier" not in str(failure.value)


# ---------------------------------------------------------------- augmentation


IMAGES = torch.arange(6 * 16 * 24 * 3).reshape(6, 16, 24, 3)


def test_about_every_second_image_is_mirrored():
    many = IMAGES[:1].expand(2000, -1, -1, -1)
    seen = networks.augmented(many, "flip", torch.Generator().manual_seed(0))
    is_same = (seen == many).flatten(1).all(dim=1)
    is_mirrored = (seen == many.flip(2)).flatten(1).all(dim=1)
    assert (is_same | is_mirrored).all()
    assert 900 < int(is_mirrored.sum()) < 1100


def test_moved_images_repeat_their_edge():
    generator = torch.Generator().manual_seed(1)
    padded = np.pad(IMAGES[0].numpy(), ((2, 2), (3, 3), (0, 0)), mode="edge")
    windows = {
        (padded[y : y + 16, x : x + 24] if flip else padded[y : y + 16, x : x + 24][:, ::-1]).tobytes()
        for y in range(5)
        for x in range(7)
        for flip in (False, True)
    }
    seen = networks.augmented(IMAGES[:1].expand(2000, -1, -1, -1), "crop", generator).numpy()
    assert {np.ascontiguousarray(image).tobytes() for image in seen} == windows


@pytest.mark.parametrize(
    ("train_from", "augmentation", "other"),
    [("fire5", "crop", "flip"), *slow(("fire5", "flip", "none"), ("conv1", "crop", "none"))],
)
def test_augmented_training_differs_and_is_repeatable(train_from, augmentation, other, weights, few):
    first, again, different = (
        make(weights, train_from=train_from, augmentation=name).fit(*few)
        for name in (augmentation, augmentation, other)
    )
    np.testing.assert_array_equal(first.project(few[0]), again.project(few[0]))
    assert not np.array_equal(first.project(few[0]), different.project(few[0]))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("talr-ap", {"validation": 0.25}),
        *slow(("talr-ap", {}), ("adsh", {}), ("orthohash", {"validation": 0.25})),
        ("dsh", {**FROM_SCRATCH, "validation": 0.25}),
        *slow(("talr-ap", {"train_from": "fire5"}), ("talr-ap", {"train_from": "fire5", "mixed_precision": True})),
    ],
)
def test_resumed_training_ends_exactly_as_an_uninterrupted_one(name, changes, weights, few, tmp_path):
    params = {"epochs": 3, "augmentation": "crop", "pretrained_multiplier": 0.1, "head_epochs": 1, **changes}
    files = {"checkpoint": tmp_path / "checkpoint", "activations": tmp_path}

    def fit(**progress):
        return session(make(weights, name, **params), **progress).fit(*few)

    whole = fit()
    with pytest.raises(StoppedError):
        fit(on_epoch=stop_after(2), **files)
    with mock.patch.object(image_network, "train", side_effect=AssertionError):  # the head has learned
        resumed = fit(resume=True, **files)
    assert [epoch.loss for epoch in resumed.history_] == [epoch.loss for epoch in whole.history_]
    np.testing.assert_array_equal(resumed.project(few[0]), whole.project(few[0]))


# ---------------------------------------------------------------- datasets, records, refusals


def test_a_stored_network_needs_no_file_of_weights(weights, few):
    method = make(weights, epochs=1, train_from="fire5").fit(*few)
    again = from_arrays(type(method), {**method.get_params(deep=False), "weights": "gone.pth"}, *to_arrays(method))
    np.testing.assert_array_equal(method.project(few[0]), again.project(few[0]))


@pytest.fixture
def image_file(striped, tmp_path):
    images, labels = striped
    rows = np.arange(40)
    parts = {"images": images, "features_name": "images", "labels": labels}
    dataset = Dataset("stripes", None, rows[:8], rows[8:], rows[8:], "same-label", **parts)
    hdf5.write_dataset(dataset, tmp_path / "stripes.h5")
    return tmp_path / "stripes.h5"


def test_command_trains_on_images_and_records_the_weights_by_content(data, hashbench, image_file, weights, tmp_path):
    copy = tmp_path / "copy.pth"
    copy.write_bytes(weights.read_bytes())
    params = {"backbone": "squeezenet", "train_from": "fire5", "image_size": SIZE, "epochs": 1, "weights": copy}
    options = ["--dataset", image_file, "--method", "talr-ap", "--bits", 8, "--metric", "AP"]
    options += [word for key, value in params.items() for word in ("--param", f"{key}={value}")]

    def run():
        return hashbench("run", *options, "--results", tmp_path / "results")

    first = run()
    assert first.exit_code == 0, first.stderr
    (row,) = read_rows(tmp_path / "results", "stripes")
    recorded = json.loads(row.params)
    assert recorded["weights"] == hashlib.sha256(weights.read_bytes()).hexdigest()[:8]
    assert "tmp" not in row.params
    assert [path.name[:17] for path in (data / "activations").glob("*.h5")] == ["squeezenet-fire5-"] * 2  # and queries
    (label,) = method_labels([("talr-ap", row.params)]).values()
    assert label.endswith(f"image_size={SIZE} train_from=fire5 weights={recorded['weights']}")
    again = run()
    assert "encoded codes" not in again.stdout + again.stderr
    save_weights("squeezenet", copy, seed=1)
    other = run()
    assert "encoded codes" in other.stdout + other.stderr


def test_parameters_of_images_do_not_count_where_there_are_none():
    recorded = TALRAP(8, image_size=64, weights="nowhere.pth").recorded_params()
    assert not recorded.keys() & {"backbone", "weights", "image_size", "train_from", "augmentation", "head_epochs"}
    assert "pretrained_multiplier" not in recorded
    assert {"alpha", "head", "validation"} <= recorded.keys()
    assert list(recorded) == sorted(recorded)


def test_official_weights_are_recorded_without_the_file():
    recorded = TALRAP(8, backbone="resnet18").recorded_params()
    assert (recorded["weights"], recorded["train_from"]) == ("f37072fd", "conv1")


def test_datasets_and_methods_of_images_and_of_features_do_not_mix(hashbench, digits_data, image_file, weights):
    params = ["--param", "backbone=squeezenet", "--param", f"weights={weights}"]
    result = hashbench("encode", "--dataset", "digits", "--method", "talr-ap", "--bits", 8, *params)
    assert result.exit_code == 1
    assert "talr-ap with a backbone reads images, and dataset 'digits' as prepared has features only" in result.stderr
    result = hashbench("encode", "--dataset", image_file, "--method", "itq", "--bits", 8)
    assert result.exit_code == 1
    assert "itq reads features, and dataset 'stripes' as prepared has images only" in result.stderr
    assert "--param backbone=squeezenet" in result.stderr


@pytest.mark.parametrize("change", [lambda x: x[0], lambda x: x.astype(float), lambda x: x[..., :2], lambda x: x[:0]])
def test_items_that_are_not_images_are_refused(change, weights, few, trained_once):
    with pytest.raises(HashbenchError, match=r"expected images: uint8 of shape \(n, height, width, 3\)"):
        make(weights).fit(change(few[0]), few[1])
    with pytest.raises(HashbenchError, match="expected images"):
        trained_once.transform(change(few[0]))


def test_arrays_may_be_views_read_only_or_turned(weights, few, trained_once):
    images, labels = few
    expected = trained_once.project(images)
    view = images.transpose(0, 3, 1, 2).copy().transpose(0, 2, 3, 1)
    turned = images[:, :, ::-1].copy()[:, :, ::-1]
    fixed = images.copy()
    fixed.flags.writeable = False
    for same in (view, turned, fixed):
        np.testing.assert_array_equal(make(weights, epochs=1).fit(same, labels).project(same), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    {"augmentation": "flip", "train_from": "fire5", "weights": "some.pth", "image_size": 64, "head_epochs": 1}.items(),
)
def test_parameters_of_images_need_a_backbone(name, value, striped):
    with pytest.raises(HashbenchError, match=f"{name}.* without a backbone"):
        TALRAP(8, **{name: value}).fit(np.eye(40), striped[1])


def test_failed_training_names_the_rate_of_pretrained_layers(weights, striped):
    with pytest.raises(HashbenchError, match="lower pretrained_multiplier \\(now 100\\)"):
        make(weights, pretrained_multiplier=100.0, learning_rate=1e8).fit(*striped)


def test_refitting_without_a_backbone_forgets_the_network(weights, few):
    method = make(weights, epochs=1).fit(*few)
    method.set_params(backbone=None, weights=None, image_size=0).fit(few[0].reshape(16, -1), few[1])
    assert not hasattr(method, "network_")

"""Training that starts from a layer of the pretrained network: the layers below stay, what they give is kept."""

import pickle

import numpy as np
import pytest
import torch
from helpers.learned_methods import StoppedError, session, stop_after
from helpers.striped_images import make

from hashbench import registry
from hashbench.errors import HashbenchError
from hashbench.learning import networks
from hashbench.sources.features.activations import FrozenBelow


def state(method):
    return {key: value.numpy().copy() for key, value in method.network_.state_dict().items()}


@pytest.mark.slow
def test_where_nothing_pretrained_is_trained_any_layer_gives_the_same_training(weights, few):
    params = {"pretrained_multiplier": 0, "augmentation": "flip", "learning_rate": 1e-3}
    whole, first, last = (make(weights, train_from=layer, **params).fit(*few) for layer in ("conv1", "fire2", "fire9"))
    for cut in (first, last):
        losses = [[epoch.loss for epoch in method.history_] for method in (cut, whole)]
        np.testing.assert_allclose(*losses, rtol=0.01)  # the same images are mirrored
        np.testing.assert_allclose(cut.project(few[0]), whole.project(few[0]), atol=0.05)


def test_layers_from_the_named_one_on_are_trained_and_those_below_are_not(weights, few):
    method = make(weights, train_from="fire8", pretrained_multiplier=0.1).fit(*few)
    before = torch.load(weights, weights_only=True)
    trained = {key for key, value in before.items() if (state(method)[f"pretrained.{key}"] != value.numpy()).any()}
    assert {key.split(".")[1] for key in trained} == {"10", "12"}  # of features: fire8 and fire9


@pytest.mark.slow
def test_flips_are_drawn_for_each_visit(weights, few):
    first, again, plain = (
        make(weights, train_from="fire5", augmentation=how).fit(*few) for how in ("flip", "flip", "none")
    )
    np.testing.assert_array_equal(first.project(few[0]), again.project(few[0]))
    assert not np.array_equal(first.project(few[0]), plain.project(few[0]))


def test_other_methods_and_lengths_find_the_activations_again(weights, few, tmp_path, monkeypatch):
    n_computed, blocks = [], FrozenBelow._blocks

    def counted(part, images):
        n_computed.append(len(images))
        yield from blocks(part, images)

    monkeypatch.setattr(FrozenBelow, "_blocks", counted)
    params = {**make(weights).get_params(), "train_from": "fire5", "augmentation": "flip", "epochs": 1}
    for name, n_bits in (("talr-ap", 8), ("talr-ap", 12), ("dpsh", 8)):
        cls = registry.get_method(name)
        shared = {key: params[key] for key in cls().get_params() if key in params}
        method = session(cls(**shared | {"n_bits": n_bits}), activations=tmp_path).fit(*few)
        method.transform(few[0])
    assert n_computed == [16, 16]  # as they are, and mirrored


@pytest.mark.slow
def test_kept_activations_change_no_number(weights, few, tmp_path):
    params = {"train_from": "fire5", "augmentation": "flip"}
    in_memory = make(weights, **params).fit(*few)
    first, second = (session(make(weights, **params), activations=tmp_path).fit(*few) for _ in range(2))
    for method in (first, second, pickle.loads(pickle.dumps(in_memory))):
        np.testing.assert_array_equal(method.project(few[0]), in_memory.project(few[0]))


@pytest.mark.slow  # that training on images resumes exactly, test_image_network.py shows
@pytest.mark.parametrize("mixed_precision", [False, True])
def test_resumed_training_on_activations_ends_exactly_as_an_uninterrupted_one(mixed_precision, weights, few, tmp_path):
    params = {"epochs": 3, "augmentation": "flip", "train_from": "fire5", "pretrained_multiplier": 0.1}
    params |= {"validation": 0.25, "mixed_precision": mixed_precision}
    whole = make(weights, **params).fit(*few)
    kept = {"checkpoint": tmp_path / "checkpoint", "activations": tmp_path}
    with pytest.raises(StoppedError):
        session(make(weights, **params), on_epoch=stop_after(2), **kept).fit(*few)
    resumed = session(make(weights, **params), resume=True, **kept).fit(*few)
    assert [epoch.loss for epoch in resumed.history_] == [epoch.loss for epoch in whole.history_]
    np.testing.assert_array_equal(resumed.project(few[0]), whole.project(few[0]))


def test_mixed_precision_on_a_cpu_rounds_and_gives_the_same_bytes_twice(weights, few):
    params = {"pretrained_multiplier": 0.1, "epochs": 1, "device": "cpu"}
    first, again = (make(weights, mixed_precision=True, **params).fit(*few) for _ in range(2))
    exact = make(weights, **params).fit(*few)
    for key, value in state(first).items():
        assert value.dtype != torch.bfloat16
        np.testing.assert_array_equal(value, state(again)[key])
    assert first.history_[0].loss != exact.history_[0].loss
    assert first.history_[0].loss == pytest.approx(exact.history_[0].loss, rel=0.1)


def test_a_layer_that_is_none_is_told_with_those_there_are(weights, few):
    with pytest.raises(
        HashbenchError, match=r"unknown layer 'fire10'\. Did you mean .* Known layers: conv1, fire2, .* fire9"
    ):
        make(weights, train_from="fire10").fit(*few)


def test_what_frozen_layers_give_is_moved_by_one_cell_at_random(weights, few):
    params = {"train_from": "fire5", "augmentation": "crop"}
    first, again, flipped = (
        make(weights, **params | changes).fit(*few) for changes in ({}, {}, {"augmentation": "flip"})
    )
    np.testing.assert_array_equal(first.project(few[0]), again.project(few[0]))
    assert not np.array_equal(first.project(few[0]), flipped.project(few[0]))
    grid = torch.arange(12.0).reshape(1, 3, 4, 1).expand(500, -1, -1, -1)
    found = {image.numpy().tobytes() for image in networks.moved(grid, torch.Generator().manual_seed(0))}
    padded = np.pad(grid[0, :, :, 0].numpy(), 1, mode="edge")
    assert found == {padded[y : y + 3, x : x + 4].tobytes() for y in range(3) for x in range(3)}

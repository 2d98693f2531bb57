"""Training that starts from a layer of the pretrained network: activations of the layers below are cached."""

import numpy as np
import pytest
import torch
from helpers.learned_methods import session
from helpers.striped_images import make

from hashbench.errors import HashbenchError
from hashbench.learning import networks
from hashbench.sources.features.weights import FrozenBelow


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


def test_other_methods_and_lengths_use_the_cached_activations(weights, few, tmp_path, monkeypatch):
    n_computed, blocks = [], FrozenBelow._blocks

    def counted(part, images):
        n_computed.append(len(images))
        yield from blocks(part, images)

    monkeypatch.setattr(FrozenBelow, "_blocks", counted)
    for name, n_bits in (("talr-ap", 8), ("talr-ap", 12), ("dpsh", 8)):
        method = make(weights, name, train_from="fire5", augmentation="flip", epochs=1).set_params(n_bits=n_bits)
        session(method, activations=tmp_path).fit(*few).transform(few[0])
    assert n_computed == [16, 16]  # as they are, and mirrored


def test_mixed_precision_on_a_cpu_rounds_and_gives_the_same_bytes_twice(weights, few):
    params = {"pretrained_multiplier": 0.1, "epochs": 1, "device": "cpu"}
    first, again = (make(weights, mixed_precision=True, **params).fit(*few) for _ in range(2))
    exact = make(weights, **params).fit(*few)
    for key, value in state(first).items():
        assert value.dtype != torch.bfloat16
        np.testing.assert_array_equal(value, state(again)[key])
    assert first.history_[0].loss != exact.history_[0].loss
    assert first.history_[0].loss == pytest.approx(exact.history_[0].loss, rel=0.1)


def test_an_unknown_layer_is_refused_with_the_known_ones(weights, few):
    with pytest.raises(HashbenchError, match=r"unknown layer 'fire10'.* Known layers: conv1, fire2, .* fire9"):
        make(weights, train_from="fire10").fit(*few)


def test_activations_of_frozen_layers_are_moved_by_one_cell_at_random():
    grid = torch.arange(12.0).reshape(1, 3, 4, 1).expand(500, -1, -1, -1)
    moved = {image.numpy().tobytes() for image in networks.moved(grid, torch.Generator().manual_seed(0))}
    padded = np.pad(grid[0, :, :, 0].numpy(), 1, mode="edge")
    assert moved == {padded[y : y + 3, x : x + 4].tobytes() for y in range(3) for x in range(3)}

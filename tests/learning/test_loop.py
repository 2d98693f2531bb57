from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest
import torch
from helpers.learned_methods import (
    LEARNED,
    UNSUPERVISED,
    StoppedError,
    average_precision,
    fitted,
    same_network,
    session,
    stop_after,
)
from helpers.thoroughness import slow
from scipy.spatial.distance import cdist
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.metrics import average_precision_score

from hashbench import registry
from hashbench.affinity import Explicit
from hashbench.errors import HashbenchError
from hashbench.learning.base import LearnedHash
from hashbench.methods.talr_ap import TALRAP
from hashbench.testing import example_dataset

THREADED = ["dpsh", "dtsh", "mdsh", "talr-ndcg"]


@pytest.mark.parametrize("name", [*THREADED, *slow(*(name for name in LEARNED if name not in THREADED))])
def test_same_seed_gives_the_same_network_on_any_number_of_threads(name, example):
    large = {"n_hidden": 1024, "epochs": 2}  # so that threads would share sums
    before, fills = torch.get_num_threads(), torch.utils.deterministic.fill_uninitialized_memory
    try:
        torch.set_num_threads(1)
        first = fitted(example, name, **large)
        torch.set_num_threads(2)
        second = fitted(example, name, **large)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory == fills
    assert same_network(first, second)
    assert not same_network(first, fitted(example, name, **large, random_state=1))


def test_training_neither_reads_nor_moves_the_random_state_of_others(example):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    first, drawn = fitted(example), torch.rand(1)
    torch.manual_seed(0)
    assert drawn == torch.rand(1)
    torch.manual_seed(1)
    assert same_network(first, fitted(example))


@pytest.fixture
def watch(monkeypatch):
    """Call a function with each batch before its loss is computed."""

    def install(cls, look):
        loss = cls._loss
        monkeypatch.setattr(cls, "_loss", lambda self, batch: look(batch) or loss(self, batch))

    return install


def test_batches_hold_each_item_once_per_epoch_with_its_levels(example, watch):
    X, y = example
    seen = []
    watch(TALRAP, seen.append)
    TALRAP(16, epochs=2, validation=0.2, batch_size=64).fit(X, y)
    assert [len(batch.rows) for batch in seen] == [50] * 8
    for epoch in range(2):
        rows = np.concatenate([batch.rows for batch in seen if batch.epoch == epoch])
        np.testing.assert_array_equal(np.sort(rows), np.arange(200))
    assert [batch.share for batch in seen] == [step / 8 for step in range(8)]
    last = seen[-1]
    labels = y[last.numbers]
    np.testing.assert_array_equal(last.levels.numpy(), labels[last.rows][:, None] == labels[last.rows])
    np.testing.assert_array_equal(last.all_levels.numpy(), labels[last.rows][:, None] == labels)


def test_last_outputs_of_all_items_are_at_hand_and_0_before_the_first_visit(example, watch):
    cls, seen = registry.get_method("dpsh"), []
    watch(cls, lambda batch: seen.append((batch.rows, batch.outputs.detach().clone(), batch.all_outputs.clone())))
    cls(16, epochs=2, batch_size=100).fit(*example)
    expected = torch.zeros(250, 16, dtype=torch.float64)
    for rows, outputs, all_outputs in seen:
        expected[rows] = outputs
        assert torch.equal(all_outputs, expected)
    assert not torch.equal(seen[0][2], expected)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_missing_gpu_is_reported(example):
    with pytest.raises(HashbenchError, match="finds no CUDA GPU"):
        TALRAP(16, device="cuda").fit(*example)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("name", LEARNED)
def test_training_on_a_gpu_learns_the_same_task(name):
    dataset = example_dataset()
    scores = []
    for device in ("cpu", "cuda"):
        method = registry.get_method(name)(16, epochs=20, device=device)
        method.fit(dataset.features[dataset.train], dataset.labels[dataset.train])
        scores.append(average_precision(dataset, method))
    assert scores[1] == pytest.approx(scores[0], abs=0.05)


def test_a_step_follows_momentum(example):
    X, y = example
    dpsh, weights = registry.get_method("dpsh"), {}
    for momentum in (0.0, 0.5):
        method = dpsh(4, head="linear", epochs=2, batch_size=250, momentum=momentum, weight_decay=0, learning_rate=0.01)
        weights[momentum, 2] = method.fit(X, y).layers_[0][0]
        weights[momentum, 1] = method.set_params(epochs=1).fit(X, y).layers_[0][0]
    start = dpsh(4, head="linear", epochs=1, learning_rate=1e-30).fit(X, y).layers_[0][0]
    np.testing.assert_array_equal(weights[0.0, 1], weights[0.5, 1])  # the first step knows no other
    gained = weights[0.5, 2] - weights[0.0, 2]
    np.testing.assert_allclose(gained, 0.5 * (weights[0.0, 1] - start), rtol=0, atol=1e-6)


def test_a_step_is_2_long_at_most(example):
    X, y = example

    class Steep(LearnedHash):
        factor = 1.0

        def _loss(self, batch):
            return self.factor * (batch.outputs @ batch.outputs.T / self.n_bits - batch.levels).square().mean()

    def moved(factor, rate):
        Steep.factor = factor
        alike = {"epochs": 1, "batch_size": 250, "momentum": 0, "weight_decay": 0, "bias_multiplier": 0.5}
        start, end = (
            [array for layer in Steep(4, learning_rate=one, **alike).fit(X, y).layers_ for array in layer]
            for one in (1e-30, rate)
        )
        return np.concatenate([np.ravel(after - before) for before, after in zip(start, end, strict=True)])

    gentle = moved(1.0, 0.01)
    length = np.linalg.norm(gentle)
    assert 0 < length < 1
    just_below = 1.99 / length
    np.testing.assert_allclose(moved(just_below, 0.01), just_below * gentle, rtol=1e-6, atol=1e-12)
    for factor, rate in [(2.02 / length, 0.01), (1e4, 0.01), (1.0, 1e4)]:
        np.testing.assert_allclose(moved(factor, rate), 2 * gentle / length, rtol=1e-6, atol=1e-9)


def test_a_step_may_leave_out_parameters_of_the_loss(example):
    class Late(LearnedHash):
        def _begin(self, items, generator):
            own = torch.nn.Module()
            own.weight = torch.nn.Parameter(torch.ones(1))
            return own

        def _loss(self, batch):
            loss = 1e6 * batch.outputs.square().mean()
            return loss * batch.own.weight.sum() if batch.epoch else loss

    X, y = example
    assert Late(4, epochs=2).fit(X, y).transform(X).shape == (250, 4)


SMALL = {"wine": load_wine, "iris": load_iris, "breast cancer": load_breast_cancer}
STEEP = ["dpsh", "greedyhash"]  # two of those most of whose trainings diverge without the bound


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *product(STEEP, ["wine"]),
        *slow(*(case for case in product(LEARNED + UNSUPERVISED, SMALL) if case not in product(STEEP, ["wine"]))),
    ],
)
def test_defaults_learn_from_data_of_few_features(name, data):
    X, y = SMALL[data](return_X_y=True)
    codes = registry.get_method(name)().fit(X, y).transform(X)
    similar, nearness = y[:, None] == y, -cdist(codes, codes, "cityblock")
    score = np.mean([average_precision_score(*rows) for rows in zip(similar, nearness, strict=True)])
    assert score > similar.mean() + 0.15


def test_each_epoch_is_reported(example):
    seen = []
    method = session(TALRAP(16, epochs=3, validation=0.2), on_epoch=seen.append)
    method.fit(*example)
    assert seen == method.history_
    assert [(epoch.number, epoch.n_epochs) for epoch in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].loss < seen[0].loss
    assert f"loss {seen[-1].loss:.4f}" in str(seen[-1])
    assert f"held out {seen[-1].score:.4f}" in str(seen[-1])


@pytest.fixture
def optimizer_states(monkeypatch):
    """Parameter groups of the optimizer at each step."""
    states = []
    step = torch.optim.SGD.step

    def note(optimizer):
        states.append([{**group, "params": len(group["params"])} for group in optimizer.param_groups])
        return step(optimizer)

    monkeypatch.setattr(torch.optim.SGD, "step", note)
    return states


def test_steps_are_taken_with_the_rates_momentum_and_decay_that_parameters_say(optimizer_states, example):
    params = {"learning_rate": 0.2, "halve_every": 2, "bias_multiplier": 0.25, "weight_decay": 0.003}
    fitted(example, epochs=5, batch_size=125, **params)
    assert len(optimizer_states) == 10
    rates = np.array([[group["lr"] for group in groups] for groups in optimizer_states])  # of weights and of biases
    np.testing.assert_allclose(rates, np.repeat([0.2, 0.2, 0.1, 0.1, 0.05], 2)[:, None] * [1, 0.25])
    for group in np.ravel(optimizer_states):
        assert (group["params"], group["momentum"], group["weight_decay"]) == (2, 0.9, 0.003)


@pytest.mark.parametrize(
    ("params", "decay"),
    [
        ({}, 0.003 * 5000 / 8000),
        ({"decay_items": None}, 0.003),
        ({"decay_items": 2000}, 0.003 * 2000 / 8000),
        ({"decay_items": 8000}, 0.003),
        ({"validation": 0.25}, 0.003 * 5000 / 6000),
        ({"validation": 0.5}, 0.003),
    ],
)
def test_weight_decay_falls_with_more_items_than_it_is_meant_for(optimizer_states, params, decay):
    features, labels = np.random.default_rng(0).normal(size=(8000, 2)), np.arange(8000) % 2
    registry.get_method("csq")(2, head="linear", epochs=1, batch_size=8000, weight_decay=0.003, **params).fit(
        features, labels
    )
    (groups,) = optimizer_states
    assert [group["weight_decay"] for group in groups] == pytest.approx([decay, decay])


def test_training_does_not_mind_how_pytorch_is_set_up(example):
    expected = fitted(example)
    torch.set_default_dtype(torch.float64)
    torch.set_float32_matmul_precision("medium")  # bfloat16, where the processor has it
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            network = fitted(example)
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
    assert same_network(network, expected)


def test_loss_sees_products_of_full_precision_and_the_callers_setting_is_restored(example, watch):
    seen = []
    settings = (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv, torch.backends.cuda.matmul)
    cudnn = torch.backends.cudnn

    def note(batch=None):
        seen.append(([setting.fp32_precision for setting in settings], cudnn.allow_tf32))

    watch(TALRAP, note)
    before = [setting.fp32_precision for setting in settings]
    for setting in settings:
        setting.fp32_precision = "tf32"
    try:
        fitted(example, epochs=1)
        note()
    finally:
        for setting, precision in zip(settings, before, strict=True):
            setting.fp32_precision = precision
    assert seen[0] == (["ieee"] * 3, False)
    assert seen[-1] == (["tf32"] * 3, True)  # cuDNN's default


# ---------------------------------------------------------------- what a loss may have besides


@dataclass(eq=False, repr=False, kw_only=True)
class Proxies(LearnedHash):
    """Pulls items to fixed targets of their class, and classifies them by weights of its own.

    Parameters
    ----------
    weight : float, default=1.0
        Of the classifier.
    """

    weight: float = 1.0

    supervision = "labels"

    def _begin(self, items, generator):
        self.classes_ = np.unique(items.labels)
        self.targets_ = torch.randint(0, 2, (len(self.classes_), self.n_bits), generator=generator).numpy() * 2 - 1
        self.shares_, self.epochs_ = [], []
        own = torch.nn.Linear(self.n_bits, len(self.classes_), bias=False)
        torch.nn.init.normal_(own.weight, generator=generator)
        own.register_buffer("n_seen", torch.zeros((), dtype=torch.int64))
        self.start_ = own.weight.detach().clone()
        return own

    def _loss(self, batch):
        index = torch.searchsorted(torch.from_numpy(self.classes_), batch.labels)
        pull = (batch.outputs - torch.from_numpy(self.targets_)[index]).square().mean()
        return pull + self.weight * torch.nn.functional.cross_entropy(batch.own(batch.outputs), index)

    def _end_step(self, batch):
        batch.own.n_seen += len(batch.rows)
        self.shares_.append(batch.share)
        self.own_ = batch.own

    def _end_epoch(self, batch):
        self.epochs_.append((batch.epoch, len(batch.all_labels), int(batch.own.n_seen)))


def test_a_loss_may_have_labels_targets_parameters_and_hooks(example):
    X, y = example
    method = Proxies(16, epochs=3, batch_size=100).fit(X, 7 * y + 3)
    assert method.shares_ == [step / 9 for step in range(9)]
    assert method.epochs_ == [(0, 250, 250), (1, 250, 500), (2, 250, 750)]
    assert not torch.equal(method.own_.weight, method.start_)
    assert method.targets_.shape == (10, 16)
    longer = Proxies(16, epochs=30, n_hidden=64, weight=0.1).fit(X, y)
    assert (np.where(longer.transform(X), 1, -1) == longer.targets_[y]).mean() > 0.95


def test_a_step_on_parameters_of_a_loss_has_the_rate_of_new_layers(example, optimizer_states):
    Proxies(16, epochs=1, batch_size=250, learning_rate=0.2).fit(*example)
    assert [group["lr"] for group in optimizer_states[0]] == pytest.approx([0.2, 0.02, 0.2])


def test_parameters_of_a_loss_and_what_hooks_count_resume_with_training(example, tmp_path):
    whole = Proxies(16, epochs=4).fit(*example)
    method = session(Proxies(16, epochs=4), checkpoint=tmp_path / "checkpoint", on_epoch=stop_after(2))
    with pytest.raises(StoppedError):
        method.fit(*example)
    session(method, resume=True, on_epoch=lambda epoch: None).fit(*example)
    assert same_network(method, whole)
    assert torch.equal(method.own_.weight, whole.own_.weight)
    assert int(method.own_.n_seen) == 1000


def test_multi_hot_labels_reach_a_loss_and_missing_ones_are_reported(example, watch):
    X, y = example
    seen = []

    class Looks(Proxies):
        def _loss(self, batch):
            seen.append(batch.labels)
            return batch.outputs.square().mean()

    Looks(4, epochs=1).fit(X, np.eye(10, dtype=np.uint8)[y])
    assert seen[0].shape == (84, 10)
    watch(TALRAP, lambda batch: batch.labels)
    with pytest.raises(HashbenchError, match="learns from labels"):
        TALRAP(4, epochs=1).fit(X, Explicit(np.equal.outer(y, y).astype(int)))


@dataclass(eq=False, repr=False, kw_only=True)
class Noisy(LearnedHash):
    """Draws three views, which differ by noise."""

    n_views = 3

    def _view(self, features, generator):
        return features + 0.1 * torch.randn(features.shape, generator=generator)

    def _loss(self, batch):
        self.batch_ = batch
        return batch.views.square().mean()


def test_a_loss_may_see_random_views_of_each_item(example):
    seen = []
    for n_views in (1, 3):
        method = Noisy(4, epochs=1, batch_size=250, head="linear")
        method.n_views = n_views
        batch = method.fit(*example).batch_
        assert batch.views.shape == (n_views, 250, 4)
        assert torch.equal(batch.views[0], batch.outputs)
        assert torch.equal(batch.all_outputs[batch.rows], batch.outputs)
        seen.append(batch.views.detach())
    assert torch.equal(seen[0][0], seen[1][0])  # of one generator
    deviations = [float((seen[1][i] - seen[1][j]).std()) for i, j in ((0, 1), (0, 2), (1, 2))]
    np.testing.assert_allclose(deviations, 0.1 * 2**0.5 * (2 / 80) ** 0.5 * 80**0.5, rtol=0.1)

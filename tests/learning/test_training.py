import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from places import DATA, ROOT
from sklearn.exceptions import NotFittedError

from hashbench import evaluate, registry
from hashbench.affinity import Distance, Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError, Refusal, TrainingFailure
from hashbench.learning import base, networks
from hashbench.method import Epoch
from hashbench.methods.talr_ap import TALRAP
from hashbench.pipeline import steps
from hashbench.pipeline.grid import grid
from hashbench.pipeline.preparation import load_dataset
from hashbench.testing import example_dataset

LEARNED = ["dpsh", "dsh", "dtsh", "hashnet", "mihash", "talr-ap", "talr-ndcg"]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
SQUEEZENET = DATA / "cifar10-squeezenet-fire9-128px.npz"


@pytest.fixture(scope="module")
def example():
    """Ten classes, 250 training items of 80 features, and their affinity."""
    dataset = example_dataset()
    return dataset.features[dataset.train].astype(float), dataset.labels[dataset.train]


def average_precision(dataset, method):
    codes = method.transform(dataset.features[dataset.query]), method.transform(dataset.features[dataset.database])
    return evaluate(*codes, dataset.affinity(), ["AP"]).summary["AP"].mean


def fitted(example, name="talr-ap", **params):
    return registry.get_method(name)(16, **{"epochs": 4, **params}).fit(*example)


def same_network(first, second):
    return all(
        np.array_equal(one, other)
        for ours, theirs in zip(first.layers_, second.layers_, strict=True)
        for one, other in zip(ours, theirs, strict=True)
    )


# ---------------------------------------------------------------- what training is for


@pytest.fixture(scope="module")
def itq_on_digits(digits):
    method = registry.get_method("itq")(16).fit(digits.features[digits.train])
    return average_precision(digits, method)


@pytest.mark.parametrize("name", LEARNED)
def test_t22_defaults_beat_itq_on_digits_by_a_quarter(name, digits, itq_on_digits):
    method = registry.get_method(name)(16).fit(digits.features[digits.train], digits.train_affinity())
    assert average_precision(digits, method) >= itq_on_digits + 0.25


@pytest.mark.parametrize("head", ["linear", "mlp"])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        *((name, {}) for name in LEARNED),
        ("talr-ap", {"relaxation": "full"}),
        ("talr-ndcg", {"relaxation": "full"}),
        ("dsh", {"objective": "dispersion"}),
    ],
)
def test_t22_every_loss_beats_random_hyperplanes_within_20_epochs(name, params, head):
    dataset = example_dataset()
    lsh = registry.get_method("lsh")(16).fit(dataset.features[dataset.train])
    method = registry.get_method(name)(16, epochs=20, head=head, **params)
    method.fit(dataset.features[dataset.train], dataset.train_affinity())
    assert average_precision(dataset, method) > average_precision(dataset, lsh) + 0.1


@pytest.mark.slow
@pytest.mark.skipif(not SQUEEZENET.exists(), reason="needs the CIFAR-10 features beside the checkout")
def test_t22_talr_ap_scores_twice_as_high_as_itq_on_cifar10_features():
    with np.load(SQUEEZENET) as file:
        features, labels = file["features"].astype(np.float32), file["labels"].astype(np.int64)
    rng = np.random.default_rng(0)
    drawn = np.stack([rng.permutation(np.flatnonzero(labels == label))[:600] for label in range(10)])
    query, train = np.sort(drawn[:, :100].ravel()), np.sort(drawn[:, 100:].ravel())
    database = np.setdiff1d(np.arange(len(labels)), query)
    dataset = Dataset("squeezenet", features, query, database, train, "same-label", labels=labels)
    itq = average_precision(dataset, registry.get_method("itq")(32).fit(features[train]))
    method = TALRAP(32, epochs=10, halve_every=3).fit(features[train], dataset.train_affinity())
    assert average_precision(dataset, method) > 2 * itq


# ---------------------------------------------------------------- the front end


@pytest.mark.parametrize("n_features", [8, 300])
@pytest.mark.parametrize("head", ["linear", "mlp"])
def test_outputs_start_at_variance_1_whatever_the_scale_of_the_features(head, n_features):
    X = 40 + 1e3 * np.random.default_rng(0).normal(size=(400, n_features))
    method = TALRAP(256, head=head, epochs=1, learning_rate=1e-12).fit(X, np.arange(400) % 10)
    assert method.project(X).std() == pytest.approx(1, abs=0.15)
    assert method.history_[0].mean_output == pytest.approx(math.sqrt(2 / math.pi), abs=0.12)


def test_scaling_does_what_it_says(example):
    X, y = example
    centred = X - X.mean(axis=0)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    expected = {"none": centred, "norm": centred / norms, "variance": centred / norms * math.sqrt(40)}
    for scaling, inputs in expected.items():
        method = TALRAP(16, scaling=scaling, head="linear", epochs=1, learning_rate=1e-4).fit(X, y)
        ((weights, bias),) = method.layers_
        np.testing.assert_allclose(method.project(X), inputs @ weights + bias, atol=1e-9)


def test_codes_do_not_change_when_items_move_or_grow(example):
    X, y = example
    X = np.round(X * 4) / 4
    first, second = TALRAP(16, epochs=3).fit(X, y), TALRAP(16, epochs=3).fit(8 * X + 16, y)
    np.testing.assert_array_equal(first.transform(X), second.transform(8 * X + 16))


# ---------------------------------------------------------------- the same again


@pytest.mark.parametrize("name", LEARNED)
def test_same_seed_gives_the_same_network_on_any_number_of_threads(name, example):
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        first = fitted(example, name)
        torch.set_num_threads(2)
        second = fitted(example, name)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    assert not torch.are_deterministic_algorithms_enabled()
    assert same_network(first, second)
    assert not same_network(first, fitted(example, name, random_state=1))


def test_training_neither_reads_nor_moves_the_random_state_of_others(example):
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    first, drawn = fitted(example), torch.rand(1)
    torch.manual_seed(0)
    assert drawn == torch.rand(1)
    torch.manual_seed(1)
    assert same_network(first, fitted(example))


# ---------------------------------------------------------------- checkpoints


class StoppedError(Exception):
    """Stands for a kill."""


def stop_after(n_epochs):
    def on_epoch(epoch):
        if epoch.number == n_epochs:
            raise StoppedError

    return on_epoch


@pytest.mark.parametrize("validation", [0.0, 0.2])
@pytest.mark.parametrize("name", LEARNED)
def test_resumed_training_ends_exactly_as_an_uninterrupted_one(name, validation, example, tmp_path):
    whole = fitted(example, name, validation=validation, halve_every=2)
    method = registry.get_method(name)(16, epochs=4, validation=validation, halve_every=2)
    method.checkpoint = tmp_path / "state.checkpoint"
    for n_epochs in (1, 3):
        method.resume, method.on_epoch = n_epochs > 1, stop_after(n_epochs)
        with pytest.raises(StoppedError):
            method.fit(*example)
    seen = []
    method.resume, method.on_epoch = True, seen.append
    method.fit(*example)
    assert [epoch.number for epoch in seen] == [4]
    assert repr(method.history_) == repr(whole.history_)
    assert same_network(method, whole)
    method.on_epoch = stop_after(4)  # nothing is left to do
    assert same_network(method.fit(*example), whole)


def test_without_resume_training_starts_afresh(example, tmp_path):
    seen = []
    method = TALRAP(16, epochs=2)
    method.checkpoint, method.on_epoch = tmp_path / "state.checkpoint", seen.append
    method.fit(*example)
    method.fit(*example)
    assert [epoch.number for epoch in seen] == [1, 2, 1, 2]
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("change", ["parameter", "items", "labels", "method"])
def test_checkpoint_of_something_else_is_refused(change, example, tmp_path):
    X, y = example
    method = TALRAP(16, epochs=1)
    method.checkpoint = tmp_path / "state.checkpoint"
    method.fit(X, y)
    if change == "method":
        method = registry.get_method("mihash")(16, epochs=1)
        method.checkpoint = tmp_path / "state.checkpoint"
    method.resume = True
    method.set_params(alpha=2.0 if change == "parameter" else 1.0)
    with pytest.raises(HashbenchError, match=r"other parameters, items or code\. Start afresh"):
        method.fit(X + X**2 if change == "items" else X, y // 2 if change == "labels" else y)


def test_broken_checkpoint_is_told_in_a_sentence(example, tmp_path):
    method = TALRAP(16, epochs=1)
    method.checkpoint, method.resume = tmp_path / "state.checkpoint", True
    for content in (b"", b"no checkpoint"):
        method.checkpoint.write_bytes(content)
        with pytest.raises(HashbenchError, match=r"state\.checkpoint cannot be read as a checkpoint"):
            method.fit(*example)


def test_interrupted_command_resumes_to_the_same_results(hashbench, digits_data, tmp_path, monkeypatch):
    def run(folder, *more):
        params = ["--param", "epochs=6", "--param", "validation=0.1"]
        return hashbench("run", "--method", "talr-ap", "--bits", 16, *params, "--results", tmp_path / folder, *more)

    write, fresh = networks.TrainingState.write, []

    def write_and_interrupt(state, path, key):
        write(state, path, key)
        fresh.append(len(state.history))
        if fresh == [1, 2, 3]:
            raise KeyboardInterrupt

    monkeypatch.setattr(networks.TrainingState, "write", write_and_interrupt)
    result = run("first")
    assert result.exit_code == 1
    assert "--resume" in result.stderr.splitlines()[-1]
    (checkpoint,) = digits_data.glob("codes/digits/*.checkpoint")
    assert run("first", "--resume").exit_code == 0
    assert fresh == [1, 2, 3, 4, 5, 6]
    assert not checkpoint.exists()
    assert run("second", "--force").exit_code == 0
    assert (tmp_path / "first/digits.csv").read_bytes() == (tmp_path / "second/digits.csv").read_bytes()


# ---------------------------------------------------------------- validation


def test_held_out_items_choose_the_epoch_and_are_not_trained_on(example):
    X, y = example
    method = TALRAP(16, epochs=6, validation=0.2, learning_rate=3.0, halve_every=0).fit(X, y)
    scores = [epoch.score for epoch in method.history_]
    best = int(np.argmax(scores))
    assert best < 5  # steps this large end worse than they were
    shorter = TALRAP(16, epochs=best + 1, validation=0.2, learning_rate=3.0, halve_every=0).fit(X, y)
    assert same_network(method, shorter)
    assert all(0 <= score <= 1 for score in scores)


def test_held_out_score_is_that_of_evaluate_with_the_others_as_the_database(example, monkeypatch):
    X, y = example
    seen = []
    loss = TALRAP._loss
    monkeypatch.setattr(TALRAP, "_loss", lambda self, batch: seen.append(batch) or loss(self, batch))
    method = TALRAP(16, epochs=1, validation=0.2).fit(X, y)
    kept = seen[0].numbers
    held = np.setdiff1d(np.arange(len(X)), kept)
    assert len(held) == 50
    codes = method.transform(X)
    expected = evaluate(codes[held], codes[kept], (y[held], y[kept]), ["AP"]).summary["AP"].mean
    assert method.history_[0].score == pytest.approx(expected, abs=1e-9)


def test_batches_show_each_kept_item_once_an_epoch_with_its_own_levels(example, monkeypatch):
    X, y = example
    seen = []
    loss = TALRAP._loss
    monkeypatch.setattr(TALRAP, "_loss", lambda self, batch: seen.append(batch) or loss(self, batch))
    TALRAP(16, epochs=2, validation=0.2, batch_size=64).fit(X, y)
    assert [len(batch.rows) for batch in seen] == [50] * 8
    for epoch in range(2):
        rows = np.concatenate([batch.rows for batch in seen if batch.epoch == epoch])
        np.testing.assert_array_equal(np.sort(rows), np.arange(200))
    assert [batch.step for batch in seen] == list(range(8))
    last = seen[-1]
    labels = y[last.numbers]
    np.testing.assert_array_equal(last.levels.numpy(), labels[last.rows][:, None] == labels[last.rows])
    np.testing.assert_array_equal(last.all_levels.numpy(), labels[last.rows][:, None] == labels)


def test_t3_last_outputs_of_all_items_are_at_hand_and_0_before_the_first_visit(example, monkeypatch):
    X, y = example
    cls, seen = registry.get_method("dpsh"), []
    loss = cls._loss
    keep = lambda batch: seen.append((batch.rows, batch.outputs.detach().clone(), batch.all_outputs.clone()))  # noqa: E731
    monkeypatch.setattr(cls, "_loss", lambda self, batch: keep(batch) or loss(self, batch))
    cls(16, epochs=2, batch_size=100).fit(X, y)
    expected = torch.zeros(250, 16)
    for rows, outputs, all_outputs in seen:
        expected[rows] = outputs
        assert torch.equal(all_outputs, expected)
    assert not torch.equal(seen[0][2], expected)


# ---------------------------------------------------------------- what goes wrong


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("dtsh", {"learning_rate": 30.0}, r"the loss is (nan|inf)|outputs are no longer finite"),
        ("hashnet", {"scaling": "none", "learning_rate": 1.0}, r"of 10 kinds, .* have only (1 code|\d different)"),
        (
            "talr-ap",
            {"scaling": "none", "alpha": 5.0, "learning_rate": 1.0},
            r"of 10 kinds, .* have only (1 code|\d different)",
        ),
    ],
)
def test_collapsed_training_stops_with_the_likely_cause(name, params, message, example):
    X, y = example
    with pytest.raises(HashbenchError, match=message) as caught:
        fitted((10 * X, y), name, epochs=15, **params)
    assert "starts saturated or its steps are too large: lower learning_rate" in str(caught.value)
    assert "lower learning_rate" in str(caught.value)
    is_scaled = params.get("scaling", "variance") == "variance"
    assert ("scaling='variance'" in str(caught.value)) != is_scaled


@pytest.mark.parametrize("name", LEARNED)
def test_items_of_one_class_and_of_as_many_classes_as_items_can_be_learnt_from(name, example):
    X, _ = example
    for y in (np.zeros(250, dtype=int), np.arange(250)):
        with np.errstate(all="raise"):
            assert registry.get_method(name)(16, epochs=2).fit(X, y).transform(X).shape == (250, 16)


def test_one_item_or_equal_items_are_refused():
    for X in (np.ones((1, 3)), np.ones((5, 3))):
        with pytest.raises(Refusal, match=rf"n_samples={len(X)}, all of them equal"):
            TALRAP(4).fit(X, np.zeros(len(X), dtype=int))


def test_supervision_may_be_labels_or_an_affinity(example):
    X, y = example
    one_hot = np.eye(10, dtype=int)[y]
    networks = [fitted((X, supervision)) for supervision in (y, y.astype(float), SameLabel(y, y), one_hot)]
    for other in networks[1:]:
        assert same_network(networks[0], other)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "talr-ap requires y to be passed"),
        (np.arange(7) % 2, r"talr-ap got 250 items, but y for \(7,\)"),
        (SameLabel(np.arange(250), np.arange(7)), r"talr-ap got 250 items, but y for \(250, 7\)"),
    ],
)
def test_wrong_supervision_is_told(y, message, example):
    with pytest.raises(HashbenchError, match=message):
        TALRAP(16).fit(example[0], y)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"head": "conv"}, "head"),
        ({"scaling": "minmax"}, "scaling"),
        ({"epochs": 0}, "epochs"),
        ({"batch_size": 1}, "batch_size"),
        ({"learning_rate": 0}, "learning_rate"),
        ({"validation": 0.9}, "validation"),
        ({"device": "tpu"}, "device"),
        ({"relaxation": "half"}, "relaxation"),
        ({"alpha": 0}, "alpha"),
    ],
)
def test_parameters_out_of_range_are_told(params, message, example):
    with pytest.raises(HashbenchError, match=message):
        TALRAP(16, **params).fit(*example)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_told(example):
    with pytest.raises(HashbenchError, match="finds no CUDA GPU"):
        TALRAP(16, device="cuda").fit(*example)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
@pytest.mark.parametrize("mixed_precision", [False, True])
@pytest.mark.parametrize("name", LEARNED)
def test_training_on_a_gpu_learns_the_same_task(name, mixed_precision):
    dataset = example_dataset()
    scores = []
    for device in ("cpu", "cuda"):
        method = registry.get_method(name)(16, epochs=20, device=device, mixed_precision=mixed_precision)
        method.fit(dataset.features[dataset.train], dataset.train_affinity())
        scores.append(average_precision(dataset, method))
    assert scores[1] == pytest.approx(scores[0], abs=0.05)


def test_distance_affinities_can_be_learnt_from(digits):
    X = digits.features[digits.train][:300]
    affinity = Distance(X, X, [900.0, 400.0], [1, 2])
    assert registry.get_method("talr-ndcg")(16, epochs=3).fit(X, affinity).transform(X).shape == (300, 16)


# ---------------------------------------------------------------- without PyTorch, and around it

IMPORTS = """
import json, sys
from hashbench import registry
names = json.loads(sys.argv[1])
for name in names:
    registry.get_method(name)().get_params()
print(json.dumps([module for module in sys.modules if module == "torch"]))
"""


def test_learned_methods_are_found_and_described_without_torch(hashbench):
    command = [sys.executable, "-c", IMPORTS, json.dumps(LEARNED)]
    assert json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) == []


@pytest.mark.usefixtures("digits_data")
def test_classical_runs_never_import_torch(tmp_path):
    code = (
        "import sys; from hashbench.cli.main import cli\n"
        "cli(sys.argv[1:], standalone_mode=False); assert 'torch' not in sys.modules"
    )
    command = ["run", "--method", "itq", "--bits", "8", "--results", str(tmp_path)]
    subprocess.run([sys.executable, "-c", code, *command], check=True, capture_output=True)
    subprocess.run([sys.executable, "-c", code, "info", "talr-ap"], check=True, capture_output=True)


def test_missing_torch_is_told_in_one_sentence_with_the_remedy(hashbench, digits_data, monkeypatch):
    monkeypatch.setattr("hashbench.learning.base.find_spec", lambda name: None)
    result = hashbench("run", "--method", "talr-ap", "--bits", 8)
    assert result.exit_code == 1
    assert result.stderr.strip().splitlines() == [
        "Error: talr-ap needs PyTorch, which is not installed: pip install 'hashbench[learned]'."
    ]


def test_paper_preset_stands_for_its_settings():
    for name in LEARNED:
        (job,) = grid(["digits"], [name], [16], [0], {"preset": "paper", "weight_decay": 0.25})
        cls = registry.get_method(name)
        for key, value in (*cls.preset("paper", 16).items(), ("weight_decay", 0.25)):
            expected = 0.25 if key == "weight_decay" else value
            assert job.params.get(key, cls().get_params()[key]) == expected
    with pytest.raises(HashbenchError, match=r"unknown talr-ap preset 'papers'\. Did you mean 'paper'"):
        grid(["digits"], ["talr-ap"], [16], [0], {"preset": "papers"})
    with pytest.raises(HashbenchError, match=r"none of itq, lsh has a preset, got 'paper'\. Leave it out"):
        grid(["digits"], ["itq", "lsh"], [16], [0], {"preset": "paper"})


def test_presets_follow_the_code_length():
    jobs = grid(["digits"], ["talr-ap", "talr-ndcg", "mihash"], [16, 48], [0], {"preset": "paper"})
    bins = {(job.method, job.n_bits): job.params["n_bins"] for job in jobs}
    assert bins == {
        ("talr-ap", 16): 16,
        ("talr-ap", 48): 24,  # from 32 bits on half as many
        ("talr-ndcg", 16): 8,
        ("talr-ndcg", 48): 24,
        ("mihash", 16): 16,
        ("mihash", 48): 16,
    }


def halving(epochs, factor):
    """Epochs after which a rate is half, if it is multiplied by a factor after so many."""
    return round(epochs * math.log(0.5) / math.log(factor))


TALR = {"alpha": 0.5, "scaling": "none"}
DSH = {"margin": 2.0, "alpha": 0.01, "objective": "original"}
DISPERSION = DSH | {"objective": "dispersion"}
AUTHORS = {  # learning rate, halved every so many epochs, momentum, weight decay, batch, epochs, multipliers, other
    ("dpsh", "paper"): (0.05, halving(50, 0.1), 0.0, 1e-5, 128, 150, (1.0, 1.0), {"eta": 10.0}),
    ("dtsh", "paper"): (4.5e-3, halving(20, 2 / 3), 0.0, 5.6e-5, 128, 100, (1.0, 1.0), {"eta": 100 / 22500}),
    ("hashnet", "paper"): (2e-3, halving(2000 / (10_000 / 256), 0.5), 0.9, 5e-4, 256, 256, (2.0, 0.1), {}),
    ("mihash", "paper"): (0.1, 10, 0.9, 5e-4, 100, 100, (0.1, 0.01), {"alpha": 20.0, "n_bins": 16, "scaling": "norm"}),
    ("talr-ap", "paper"): (0.01, 0, 0.9, 5e-4, 250, 50, (1.0, 0.1), TALR),
    ("talr-ndcg", "paper"): (0.01, 0, 0.9, 5e-4, 256, 50, (1.0, 0.01), TALR),
    ("dsh", "paper"): (1e-3, 0, 0.9, 0.004, 200, 280, (2.0, 1.0), DSH),
    ("dsh", "dispersion"): (0.01, halving(150, 0.6), 0.9, 0.004, 200, 750, (2.0, 1.0), DISPERSION),
}


@pytest.mark.parametrize(("name", "preset"), AUTHORS)
def test_presets_are_the_authors_settings(name, preset):
    rate, halve_every, momentum, decay, batch, epochs, (of_biases, of_pretrained), others = AUTHORS[name, preset]
    cls = registry.get_method(name)
    expected = {
        **{"learning_rate": rate, "halve_every": halve_every, "momentum": momentum, "weight_decay": decay},
        **{"batch_size": batch, "epochs": epochs, "head": "linear", **others},
        **{"bias_multiplier": of_biases, "pretrained_multiplier": of_pretrained},
    }
    found = cls(**cls.preset(preset, 16)).get_params()
    assert {key: found[key] for key in expected} == expected
    assert set(AUTHORS) == set(PRESETS)


@pytest.mark.parametrize(("name", "criterion"), [("talr-ndcg", "NDCG"), ("mihash", "AP"), ("talr-ap", "AP")])
def test_held_out_items_are_scored_by_the_metric_that_a_method_is_for(name, criterion, example, monkeypatch):
    asked = []

    def spy(query, database, affinity, metrics, **options):
        asked.append((list(metrics), options))
        return evaluate(query, database, affinity, metrics, **options)

    monkeypatch.setattr("hashbench.learning.base.evaluate", spy)
    history = registry.get_method(name)(8, epochs=2, validation=0.2).fit(*example).history_
    assert asked == [([criterion], {"undefined": "paper"})] * 2
    assert len({epoch.score for epoch in history}) == 2


PRESETS = [(name, preset) for name in LEARNED for preset in registry.get_method(name).presets]


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_is_a_valid_setting(name, preset, example):
    cls = registry.get_method(name)
    settings = {**cls.preset(preset, 16), "epochs": 1}
    assert cls(16, **settings).fit(*example).transform(example[0]).shape == (250, 16)


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


def test_codes_depend_on_the_code_of_the_loop_and_the_version_of_torch():
    assert {"hashbench.learning.networks", "hashbench.learning.soft_histogram", "hashbench.methods._ranked"} <= set(
        TALRAP.modules
    )
    for name in LEARNED:
        cls = registry.get_method(name)
        assert registry.source_digest(*cls.modules) != registry.source_digest()
        assert steps._made_by(cls()) != registry.source_digest(cls)
        assert steps._libraries(cls())["torch"].startswith(torch.__version__.partition("+")[0])
    assert "torch" not in steps._libraries(registry.get_method("itq")())


def test_progress_tells_of_epochs(example):
    seen = []
    method = TALRAP(16, epochs=3, validation=0.2)
    method.on_epoch = seen.append
    method.fit(*example)
    assert seen == method.history_
    assert [(epoch.number, epoch.n_epochs) for epoch in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].loss < seen[0].loss
    text = str(seen[-1])
    assert f"loss {seen[-1].loss:.4f}" in text
    assert f"held out {seen[-1].score:.4f}" in text


def test_an_eighth_loss_takes_the_one_file_that_contributing_shows(digits, itq_on_digits, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```$", CONTRIBUTING.read_text(), flags=re.DOTALL | re.MULTILINE)
    (text,) = [block for block in blocks if "LearnedHash" in block]
    module = ModuleType("hashbench.methods.spread")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(text, module.__dict__)
    method = module.Spread(16).fit(digits.features[digits.train], digits.train_affinity())
    assert average_precision(digits, method) > itq_on_digits + 0.25


# ---------------------------------------------------------------- what a review found


@pytest.fixture
def optimizer_states(monkeypatch):
    """What each step of the optimizer was taken with."""
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
    for step, (weights, biases) in enumerate(optimizer_states):
        rate = [0.2, 0.2, 0.1, 0.1, 0.05][step // 2]
        assert weights["lr"] == pytest.approx(rate)
        assert biases["lr"] == pytest.approx(rate / 4)
        for group in (weights, biases):
            assert (group["params"], group["momentum"], group["weight_decay"]) == (2, 0.9, 0.003)


def test_rates_stay_if_they_are_never_halved(optimizer_states, example):
    fitted(example, epochs=3, halve_every=0, learning_rate=0.2)
    assert {weights["lr"] for weights, _ in optimizer_states} == {0.2}


@pytest.mark.parametrize("name", LEARNED)
def test_outputs_that_are_no_numbers_stop_any_method_with_the_likely_cause(name, example):
    with pytest.raises(HashbenchError, match=r"stopped .*lower learning_rate"):
        fitted(example, name, learning_rate=1e12)


def test_checkpoint_of_other_labels_or_other_code_is_refused(example, tmp_path):
    X, labels = example
    order = np.argsort(labels, kind="stable")
    X, labels = X[order], labels[order]

    def cut(made_by, y, epochs_done):
        method = TALRAP(16, epochs=3)
        method.checkpoint, method.resume, method.made_by = tmp_path / "checkpoint", True, made_by

        def stop(epoch):
            if epoch.number == epochs_done:
                raise KeyboardInterrupt

        method.on_epoch = stop
        return method.fit(X, y)

    with pytest.raises(KeyboardInterrupt):
        cut("this code", labels, 1)
    others = labels.copy()
    others[60:] = np.roll(others[60:], 1)
    for made_by, y in (("other code", labels), ("this code", others)):
        with pytest.raises(HashbenchError, match="left by training with other parameters, items or code"):
            cut(made_by, y, 0)
    assert len(cut("this code", labels, 0).history_) == 3


def test_many_labels_of_few_items_are_no_collapse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    labels = np.zeros((40, 100), dtype=int)
    labels[np.arange(40), np.arange(40) % 4] = 1
    assert len(TALRAP(16, epochs=1).fit(X, labels).history_) == 1
    many = rng.random((120, 300)) < 0.05
    assert len(TALRAP(16, epochs=1).fit(rng.normal(size=(120, 6)), many.astype(int)).history_) == 1
    assert len(TALRAP(4, epochs=1).fit(X[:3], np.arange(3)).history_) == 1


def test_labels_that_many_items_share_are_no_collapse():
    """Forty kinds of items, each with several of 100 labels: fewer than 50 codes can be all there is to find."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 40, 800)
    X = rng.normal(size=(40, 20))[kind] + 0.05 * rng.normal(size=(800, 20))
    labels = np.c_[np.eye(40, dtype=int)[kind], rng.random((800, 60)) < 0.05].astype(int)
    assert len(TALRAP(8, epochs=8).fit(X, labels).history_) == 8


def superclasses():
    """Fifty classes in five superclasses, far apart."""
    rng = np.random.default_rng(0)
    classes = np.arange(1000) % 50
    coarse = classes // 10
    X = 3 * rng.normal(size=(5, 32))[coarse] + rng.normal(size=(50, 32))[classes] + 0.3 * rng.normal(size=(1000, 32))
    return X, Hierarchy(classes, classes, coarse, coarse)


def broad_labels():
    """One of two broad labels an item, and one of forty others."""
    rng = np.random.default_rng(0)
    broad, tag = np.arange(1000) % 2, rng.integers(0, 40, 1000)
    labels = np.concatenate([np.eye(2, dtype=int)[broad], np.eye(40, dtype=int)[tag]], axis=1)
    X = 3 * rng.normal(size=(2, 32))[broad] + rng.normal(size=(40, 32))[tag] + 0.3 * rng.normal(size=(1000, 32))
    return X, SharedLabels(labels, labels)


@pytest.mark.parametrize("name", ["dpsh", "hashnet", "mihash", "talr-ap"])
def test_fewer_codes_than_classes_are_no_collapse(name):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(40), 10)
    X = rng.normal(size=(40, 32))[classes] + 0.3 * rng.normal(size=(400, 32))
    codes = registry.get_method(name)(3, epochs=10).fit(X, classes).transform(X)
    assert len(np.unique(codes, axis=0)) >= 7


@pytest.mark.parametrize("name", ["dpsh", "dsh", "hashnet", "mihash"])
@pytest.mark.parametrize("make", [superclasses, broad_labels])
def test_one_code_for_all_that_is_relevant_is_no_collapse(name, make):
    X, affinity = make()
    codes = registry.get_method(name)(16).fit(X, affinity).transform(X)
    assert evaluate(codes, codes, affinity, ["AP"]).summary["AP"].mean > 0.95


@pytest.mark.parametrize(("name", "rate"), [("talr-ndcg", 0.003), ("talr-ap", 0.3), ("dtsh", 0.03)])
def test_fewer_codes_than_half_the_kinds_may_be_the_way_up(name, rate):
    """A hundred classes in three dimensions: 8 bits tell about fifty of them apart."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(100), 10)
    X = (rng.normal(size=(100, 3)) @ rng.normal(size=(3, 32)))[classes] + 0.02 * rng.normal(size=(1000, 32))
    methods = [registry.get_method(name)(8, learning_rate=rate), registry.get_method("itq")(8)]
    codes = [method.fit(X, classes).transform(X) for method in methods]
    ours, itq = (evaluate(one, one, (classes, classes), ["AP"]).summary["AP"].mean for one in codes)
    assert min(epoch.n_distinct for epoch in methods[0].history_) <= 50
    assert ours > itq + 0.05


def test_a_collapse_that_training_leaves_again_is_none():
    def stops(counts, n_bits=16, n_kinds=10):
        epochs = [Epoch(number, 9, 0.5, count, 1.0, math.nan) for number, count in enumerate(counts, 1)]
        try:
            base._stop_if_failed(TALRAP(n_bits), epochs, n_kinds)
        except TrainingFailure:
            return True
        return False

    assert stops([90, 5, 5, 5])
    assert stops([5, 3, 4])
    assert not stops([5, 5])  # there may be more soon
    assert not stops([3, 4, 5])  # there are more each time
    assert not stops([5, 6, 5])
    assert not stops([5, 5, 5], n_bits=6)  # of 64 codes, kinds would share some by chance
    assert stops([2, 2, 2], n_bits=6)
    assert not stops([16, 16, 16], n_bits=4, n_kinds=100)  # all there are
    assert stops([4, 4, 4], n_bits=4, n_kinds=100)
    assert stops([1, 1, 1], n_kinds=2)
    assert not stops([1, 1, 1], n_kinds=1)


@pytest.mark.parametrize(
    ("affinity", "n_kinds"),
    [
        (SameLabel([0, 0, 1, 1, 2], [0, 0, 1, 1, 2]), 2),  # a class of one item is no measure
        (SameLabel([0, 1, 2], [0, 1, 2]), 2),
        (SameLabel([4, 4, 4], [4, 4, 4]), 1),
        (superclasses()[1], 5),
        (broad_labels()[1], 2),
        (SharedLabels(*2 * (np.repeat(np.eye(7, dtype=int), 2, axis=0),)), 7),
        (SharedLabels(*2 * (np.repeat([[0, 0], [0, 1], [1, 1]], 2, axis=0),)), 1),  # items without labels are of none
        (Explicit(np.eye(5, dtype=int)), 2),
        (Explicit(np.ones((5, 5), dtype=int)), 1),
        (Explicit(np.kron(np.eye(2, dtype=int), 1 - np.eye(3, dtype=int))), 2),  # no item is relevant to itself
        (SharedLabels(*2 * (np.c_[np.ones(9, dtype=int), np.eye(9, dtype=int)],)), 1),
    ],
)
def test_kinds_are_irrelevant_to_each_other(affinity, n_kinds):
    assert base._n_kinds(affinity) == n_kinds


@pytest.mark.parametrize("n_bits", [2, 3, 4])
def test_one_code_or_two_for_ten_classes_are_a_collapse_of_short_codes_too(n_bits, example):
    X, y = example
    with pytest.raises(HashbenchError, match=r"of 10 kinds, .* have only (1 code|2 different)"):
        registry.get_method("hashnet")(n_bits, epochs=5, scaling="none", learning_rate=1.0).fit(10 * X, y)


@pytest.mark.parametrize("epochs", [3, 4])
def test_collapse_in_the_last_epoch_is_no_success(epochs, example):
    """What an item's code was on its last visit hides what the last steps did."""
    X, y = example
    with pytest.raises(HashbenchError, match=r"different codes|1 code"):
        registry.get_method("hashnet")(16, epochs=epochs, scaling="none", learning_rate=1.0).fit(10 * X, y)


def test_validation_that_cannot_choose_is_refused(example):
    X, _ = example
    with pytest.raises(HashbenchError, match="none of 50 items held out is relevant to another training item"):
        TALRAP(16, epochs=2, validation=0.2).fit(X, np.arange(len(X)))
    with pytest.raises(HashbenchError, match=r"validation=0.1 of n_samples=4 items, which is none"):
        TALRAP(4, epochs=2, validation=0.1).fit(X[:4], np.array([0, 0, 1, 1]))


def test_mixed_precision_is_refused_on_a_cpu(example):
    with pytest.raises(HashbenchError, match="mixed_precision needs a CUDA GPU"):
        TALRAP(16, device="cpu", mixed_precision=True).fit(*example)


@pytest.mark.parametrize("name", ["dpsh", "talr-ndcg"])
def test_equal_supervision_resumes(name, example, tmp_path):
    """What an affinity has computed in the meantime, or which arrays it shares, is not what it says."""
    X, y = example
    for first, second in (
        [SharedLabels(*2 * (np.eye(10, dtype=int)[y],))] * 2,
        [SameLabel(y, y), SameLabel(y, y.copy())],
    ):
        method = registry.get_method(name)(8, epochs=2)
        method.checkpoint = tmp_path / f"{type(first).__name__}.checkpoint"

        def interrupt(epoch):
            raise KeyboardInterrupt

        method.on_epoch = interrupt
        with pytest.raises(KeyboardInterrupt):
            method.fit(X, first)
        method.on_epoch, method.resume = None, True
        assert len(method.fit(X, second).history_) == 2
        assert method.resumed_seconds_ > 0


def test_failed_training_does_not_end_a_grid(hashbench, digits_data, tmp_path):
    options = ["--results", tmp_path, "--bits", 8, "--param", "epochs=2", "--param", "scaling=none"]
    options += ["--param", "learning_rate=10.0"]
    result = hashbench("run", "--method", "hashnet", "--method", "dpsh", *options, "--seed", 0, "--seed", 1)
    assert result.exit_code == 1
    assert "failed. hashnet stopped" in result.stderr
    assert result.stderr.count("failed.") + result.stderr.count("encoded codes") == 4
    result = hashbench("run", "--method", "hashnet", "--method", "mihash", *options)
    assert result.exit_code == 1
    assert "Error: 1 of the 2 jobs failed; the reasons are above." in result.stderr
    assert "mihash" in result.stdout


def test_options_of_learned_methods_do_not_reach_others():
    jobs = grid(["digits"], ["itq", "ksh", "dpsh"], [8], [0], {"validation": 0.1, "device": "cpu", "preset": "paper"})
    assert [set(job.params) & {"validation", "device", "n_items"} for job in jobs] == [
        *(set(), {"n_items"}),
        {"validation", "device"},
    ]
    with pytest.raises(HashbenchError, match=r"none of itq has a validation, got 0\.1\. Leave it out"):
        grid(["digits"], ["itq"], [8], [0], {"validation": 0.1})
    with pytest.raises(HashbenchError, match="unknown itq parameter 'eta'"):
        grid(["digits"], ["itq", "dpsh"], [8], [0], {"eta": 0.1})


def test_codes_depend_on_the_code_that_parameters_call_for():
    def modules(**params):
        return set(TALRAP(**params).depends_on())

    assert {"hashbench.sources.features.backbones", "hashbench.sources.features.weights"} <= modules(
        backbone="alexnet"
    ) - modules()
    assert {"hashbench.scoring.evaluation", "hashbench.scoring.metrics.average_precision"} <= modules(
        validation=0.1
    ) - modules()
    for name in modules(backbone="alexnet", validation=0.1):
        assert find_spec(name) is not None
    assert steps._made_by(TALRAP()) != steps._made_by(TALRAP(validation=0.1))


def test_training_does_not_mind_how_pytorch_is_set_up(example):
    expected = fitted(example)
    torch.set_default_dtype(torch.float64)
    torch.set_float32_matmul_precision("medium")  # bfloat16, where the processor has it
    try:
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            found = fitted(example)
        assert torch.backends.mkldnn.matmul.fp32_precision == "bf16"
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_float32_matmul_precision("highest")
    assert same_network(found, expected)


def test_loss_sees_products_of_full_precision_and_the_caller_gets_his_setting_back(example, monkeypatch):
    seen, loss = [], TALRAP._loss
    settings = (torch.backends.mkldnn.matmul, torch.backends.mkldnn.conv, torch.backends.cuda.matmul)
    note = lambda: seen.append([setting.fp32_precision for setting in settings])  # noqa: E731
    monkeypatch.setattr(TALRAP, "_loss", lambda self, batch: note() or loss(self, batch))
    before = [setting.fp32_precision for setting in settings]
    for setting in settings:
        setting.fp32_precision = "tf32"
    try:
        fitted(example, epochs=1)
        note()
    finally:
        for setting, precision in zip(settings, before, strict=True):
            setting.fp32_precision = precision
    assert seen[0] == ["ieee"] * 3
    assert seen[-1] == ["tf32"] * 3


def test_a_fit_cut_short_leaves_nothing_to_encode_with(example):
    X, y = example

    def interrupt(epoch):
        raise KeyboardInterrupt

    method = TALRAP(16, epochs=2)
    for _ in range(2):  # the first fit, and one after a whole fit
        method.on_epoch = interrupt
        with pytest.raises(KeyboardInterrupt):
            method.fit(X + 1, y)
        with pytest.raises(NotFittedError):
            method.transform(X)
        method.on_epoch = None
        method.fit(X, y).transform(X)
    with pytest.raises(Refusal, match="all of them equal"):
        method.fit(np.ones((5, 3)), np.zeros(5, dtype=int))
    with pytest.raises(NotFittedError):
        method.transform(X[:, :3])


def test_one_job_that_fails_or_cannot_resume_does_not_end_a_grid(hashbench, digits_data, tmp_path):
    options = ["--bits", 8, "--param", "epochs=3", "--param", "scaling=none", "--param", "learning_rate=10.0"]
    options += ["--results", tmp_path, "--resume"]
    assert hashbench("run", "--method", "hashnet", *options).exit_code == 1
    assert not list(digits_data.rglob("*.checkpoint"))  # it would fail again

    (job,) = grid(["digits"], ["hashnet"], [8], [0], {"epochs": 3, "scaling": "none", "learning_rate": 10.0})
    stale = steps._checkpoint_path(load_dataset("digits")[0], job)
    torch.save({"key": "of other code"}, stale)
    result = hashbench("run", "--method", "hashnet", "--method", "mihash", *options)
    assert result.exit_code == 1
    assert "left by training with other parameters, items or code" in result.stderr
    assert re.search(r"digits mihash .* seed 0: encoded codes, computed scores", result.stderr)
    assert stale.exists()  # other code may be able to go on


def test_full_disk_during_a_checkpoint_is_told_as_such(example, tmp_path, monkeypatch):
    method = TALRAP(16, epochs=1)
    method.checkpoint = tmp_path / "checkpoint"

    def fail(path, content):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(HashbenchError, match="No space left on device"):
        method.fit(*example)
    assert not list(tmp_path.iterdir())


def test_options_of_learned_methods_stand_for_their_parameters(hashbench, digits_data, tmp_path):
    options = ["--dataset", "digits", "--method", "talr-ap", "--bits", "8", "--param", "epochs=1", "--metric", "AP"]
    options += ["--results", str(tmp_path), "--preset", "paper", "--validation", "0.25", "--device", "cpu"]
    assert hashbench("run", *options).exit_code == 0
    text = (tmp_path / "digits.csv").read_text().replace('""', '"')
    assert '"alpha": 0.5' in text
    assert '"validation": 0.25' in text
    assert "device" not in text
    result = hashbench("run", *options, "--param", "preset=paper")
    assert "gives 'preset' twice" in result.stderr

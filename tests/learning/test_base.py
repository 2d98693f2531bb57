import json
import math
import sys
from types import ModuleType

import numpy as np
import pytest
import torch
from helpers.documents import files
from helpers.learned_methods import LEARNED, UNSUPERVISED, average_precision, fitted, same_network
from helpers.paths import DATA
from helpers.thoroughness import slow

from hashbench import registry
from hashbench.affinity import Distance, SameLabel
from hashbench.dataset import Dataset
from hashbench.errors import Refusal
from hashbench.methods.talr_ap import TALRAP
from hashbench.pipeline.grid import grid
from hashbench.testing import example_dataset

SQUEEZENET = DATA / "cifar10-squeezenet-fire9-128px.npz"


@pytest.mark.slow
@pytest.mark.parametrize(("params", "lead"), [({"epochs": 8}, 0.2), ({}, 0.25)])
@pytest.mark.parametrize("name", LEARNED)
def test_learned_methods_beat_itq_on_digits_by_a_fifth_or_a_quarter(name, params, lead, digits, itq_on_digits):
    method = registry.get_method(name)(16, **params).fit(digits.features[digits.train], digits.labels[digits.train])
    assert average_precision(digits, method) >= itq_on_digits + lead


@pytest.mark.slow
def test_bihalf_beats_itq_on_digits_and_others_without_labels_come_near(digits, itq_on_digits):
    items = digits.features[digits.train]
    scores = {name: average_precision(digits, registry.get_method(name)(16).fit(items)) for name in UNSUPERVISED}
    assert scores["bihalf"] > itq_on_digits
    assert min(scores.values()) > itq_on_digits - 0.1


@pytest.mark.parametrize("head", ["linear", *slow("mlp")])
@pytest.mark.parametrize(
    ("name", "params"),
    [
        *slow(*((name, {}) for name in LEARNED + UNSUPERVISED)),  # on digits they beat more, above
        ("talr-ap", {"relaxation": "full"}),
        ("talr-ndcg", {"relaxation": "full"}),
        ("dsh", {"objective": "dispersion"}),
    ],
)
def test_every_loss_beats_random_hyperplanes_within_20_epochs(name, params, head):
    dataset = example_dataset()
    lsh = registry.get_method("lsh")(16).fit(dataset.features[dataset.train])
    method = registry.get_method(name)(16, epochs=20, head=head, **params)
    method.fit(dataset.features[dataset.train], dataset.labels[dataset.train])
    assert average_precision(dataset, method) > average_precision(dataset, lsh) + 0.1


@pytest.mark.slow
@pytest.mark.skipif(not SQUEEZENET.exists(), reason="needs the CIFAR-10 features beside the checkout")
def test_talr_ap_scores_twice_as_high_as_itq_on_cifar10_features():
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


def test_distance_affinities_can_be_learnt_from(digits):
    X = digits.features[digits.train][:300]
    affinity = Distance(X, X, [900.0, 400.0], [1, 2])
    assert registry.get_method("talr-ndcg")(16, epochs=3).fit(X, affinity).transform(X).shape == (300, 16)


def test_missing_torch_is_reported_in_one_line_with_the_remedy(hashbench, digits_data, monkeypatch):
    monkeypatch.setattr("hashbench.learning.base.find_spec", lambda name: None)
    result = hashbench("run", "--method", "talr-ap", "--bits", 8)
    assert result.exit_code == 1
    (line,) = result.stderr.strip().splitlines()
    assert "talr-ap needs PyTorch, which is not installed: pip install torch --index-url https://" in line


def test_paper_preset_stands_for_its_settings():
    for name in LEARNED:
        (job,) = grid(["digits"], [name], [16], [0], {"preset": "paper", "weight_decay": 0.25})
        cls = registry.get_method(name)
        expected = {**cls.preset("paper", 16), "weight_decay": 0.25}
        assert {**cls().get_params(), **job.params}.items() >= expected.items()


def test_presets_follow_the_code_length():
    jobs = grid(["digits"], ["talr-ap", "talr-ndcg", "mihash"], [16, 48], [0], {"preset": "paper"})
    assert [job.params["n_bins"] for job in jobs] == [16, 24, 8, 24, 16, 16]  # in order of methods, then lengths


def halving(epochs, factor):
    """Epochs after which a rate is half, if it is multiplied by a factor after so many."""
    return round(epochs * math.log(0.5) / math.log(factor))


TALR = {"alpha": 0.5, "scaling": "none"}
DSH = {"margin": 2.0, "alpha": 0.01, "objective": "original"}
DISPERSION = DSH | {"objective": "dispersion"}
CSQ = {"optimizer": "adam", "head": "mlp", "quantisation": 1e-3}
ORTHO = {"optimizer": "adam", "targets": "bernoulli", "scale": 8.0, "margin": 0.2}
CIB = {"optimizer": "adam", "head": "mlp", "temperature": 0.3, "kl_weight": 1e-3}
DSDH = {"mu": 0.5, "nu": 0.05, "eta": 27.5}  # half of theirs: a pair counts from one side, at twice the rate
IDHN = {"optimizer": "adam", "slope": 5.0, "gamma": 0.1, "quantisation": 0.1}
MIHASH = {"alpha": 20.0, "n_bins": 16, "scaling": "norm"}
AUTHORS = {  # rate, halving, momentum, decay, batch, epochs, multipliers of biases and pretrained layers, others
    ("dpsh", "paper"): (0.05, halving(50, 0.1), 0.0, 1e-5, 128, 150, 1.0, 1.0, {"eta": 10.0}),
    ("dtsh", "paper"): (4.5e-3, halving(20, 2 / 3), 0.0, 5.6e-5, 128, 100, 1.0, 1.0, {"eta": 100 / 22500}),
    ("hashnet", "paper"): (2e-3, halving(2000 / (10_000 / 256), 0.5), 0.9, 5e-4, 256, 256, 2.0, 0.1, {}),
    ("mihash", "paper"): (0.1, 10, 0.9, 5e-4, 100, 100, 0.1, 0.01, MIHASH),
    ("talr-ap", "paper"): (0.01, 0, 0.9, 5e-4, 250, 50, 1.0, 0.1, TALR),
    ("talr-ndcg", "paper"): (0.01, 0, 0.9, 5e-4, 256, 50, 1.0, 0.01, TALR),
    ("dsh", "paper"): (1e-3, 0, 0.9, 0.004, 200, 280, 2.0, 1.0, DSH),
    ("dsh", "dispersion"): (0.01, halving(150, 0.6), 0.9, 0.004, 200, 750, 2.0, 1.0, DISPERSION),
    ("csq", "paper"): (1e-4, halving(10, 0.7), 0.9, 0.0, 64, 90, 1.0, 0.01, CSQ),
    ("orthohash", "paper"): (1e-4, halving(80, 0.1), 0.9, 5e-4, 256, 100, 1.0, 0.1, ORTHO),
    ("greedyhash", "paper"): (1e-3, halving(30, 0.1), 0.9, 5e-4, 32, 50, 1.0, 1.0, {"alpha": 0.1}),
    ("greedyhash-unsupervised", "paper"): (1e-4, 0, 0.9, 5e-4, 32, 60, 1.0, 1.0, {"alpha": 0.1}),
    ("dpn", "paper"): (16e-4, halving(100, 0.1), 0.9, 5e-4 / 16, 256, 200, 1.0, 1.0, {"targets": "bernoulli"}),
    ("dch", "paper"): (0.05, 0, 0.9, 5e-4, 128, 50, 2.0, 0.1, {"gamma": 20.0}),
    ("adsh", "paper"): (1e-3, halving(30, 0.1), 0.0, 5e-4, 64, 150, 1.0, 1.0, {"gamma": 200.0}),
    ("dfh", "paper"): (0.01, halving(50, 0.1), 0.9, 5e-4, 128, 150, 1.0, 1.0, {"eta": 0.5, "margin": 0.0}),
    ("dhn", "paper"): (2e-4, halving(500 / (10_500 / 64), 0.3), 0.9, 5e-4, 64, 61, 2.0, 0.1, {"quantisation": 0.1}),
    ("dsdh", "paper"): (0.02, halving(149, 1e-4), 0.0, 2.5e-4, 128, 150, 1.0, 1.0, DSDH),
    ("idhn", "paper"): (1e-3, halving(500 / (4_000 / 128), 0.5), 0.9, 0.0, 128, 100, 1.0, 0.01, IDHN),
    ("bihalf", "paper"): (1e-4, halving(120, 0.1), 0.9, 5e-4, 32, 300, 1.0, 1.0, {"gamma": 6.0}),
    ("cibhash", "paper"): (1e-3, 0, 0.9, 0.0, 64, 60, 1.0, 0.0, CIB),
    ("hyp2", "paper"): (0.02, 10, 0.9, 5e-4, 100, 100, 1.0, 0.5, {"pair_weight": 0.5}),
    ("mdsh", "paper"): (1e-5, 0, 0.9, 1e-5, 64, 100, 1.0, 1.0, {"optimizer": "rmsprop", "pairs_after": 9}),
}
PRESETS = [(name, preset) for name in LEARNED + UNSUPERVISED for preset in registry.get_method(name).presets]


@pytest.mark.parametrize(("name", "preset"), AUTHORS)
def test_presets_are_the_authors_settings(name, preset):
    *values, others = AUTHORS[name, preset]
    steps = ["learning_rate", "halve_every", "momentum", "weight_decay", "batch_size", "epochs"]
    multipliers = ["bias_multiplier", "pretrained_multiplier"]
    expected = {"head": "linear", "decay_items": None, **dict(zip(steps + multipliers, values, strict=True)), **others}
    cls = registry.get_method(name)
    params = cls(**cls.preset(preset, 16)).get_params()
    assert {key: params[key] for key in expected} == expected
    assert {*AUTHORS} == {pair for pair in PRESETS if pair[1] != "neighbours"}


@pytest.mark.parametrize(("name", "preset"), PRESETS)
def test_a_preset_is_a_valid_setting(name, preset, example):
    cls = registry.get_method(name)
    settings = {**cls.preset(preset, 16), "epochs": 1, "n_hidden": 32}
    assert cls(16, **settings).fit(*example).transform(example[0]).shape == (250, 16)


def test_codes_of_learned_methods_depend_on_the_version_of_torch(tiny):
    (learned, itq) = grid(["digits"], ["talr-ap", "itq"], [4], [0], {})
    versions = json.loads(learned.provenance(tiny()).libraries)
    assert versions["torch"].startswith(torch.__version__.partition("+")[0])
    assert "torch" not in json.loads(itq.provenance(tiny()).libraries)


def test_a_new_loss_takes_the_one_file_that_the_tutorial_shows(digits, itq_on_digits, monkeypatch):
    text = files("docs/tutorials/plugins.md")["src/my_loss.py"]
    module = ModuleType("hashbench.methods.spread")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(text, module.__dict__)
    method = module.Spread(16, epochs=12, n_hidden=256).fit(digits.features[digits.train], digits.train_affinity())
    assert average_precision(digits, method) > itq_on_digits + 0.1


def test_options_of_learned_methods_do_not_reach_others():
    jobs = grid(["digits"], ["itq", "ksh", "dpsh"], [8], [0], {"validation": 0.1, "device": "cpu", "preset": "paper"})
    options = [set(job.params) & {"validation", "device", "n_items"} for job in jobs]
    assert options == [set(), {"n_items"}, {"validation", "device"}]
    assert [job.params for job in grid(["digits"], ["itq", "dpsh"], [8], [0], {"eta": 0.1})] == [{}, {"eta": 0.1}]


def test_options_of_learned_methods_stand_for_their_parameters(hashbench, digits_data, tmp_path):
    options = ["--dataset", "digits", "--method", "talr-ap", "--bits", "8", "--param", "epochs=1", "--metric", "AP"]
    options += ["--results", str(tmp_path), "--preset", "paper", "--validation", "0.25", "--device", "cpu"]
    assert hashbench("run", *options).exit_code == 0
    (params,) = json.loads((tmp_path / "digits" / "talr-ap.json").read_text())["settings"].values()
    assert (params["alpha"], params["validation"], "device" in params) == (0.5, 0.25, False)
    result = hashbench("run", *options, "--param", "preset=paper")
    assert "gives 'preset' twice" in result.stderr

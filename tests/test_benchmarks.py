"""What the benchmarks compare is the same number, made in two ways."""

import sys
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from places import ROOT

from hashbench.affinity import SameLabel
from hashbench.errors import HashbenchError, TrainingFailure
from hashbench.learning.loop import Session

sys.path.insert(0, str(ROOT / "benchmarks"))
import training as benchmark
import tuning

sys.path.pop(0)


@pytest.mark.parametrize("name", [name for name in benchmark.LOSSES if name not in ("dpsh", "hashnet")])
@pytest.mark.parametrize("n_bits", [5, 16])
def test_direct_form_of_a_loss_is_that_loss(name, n_bits):
    loss, direct, outputs = benchmark.make_losses(name, 24, n_bits)
    gradients = [torch.autograd.grad(form(outputs), outputs)[0] for form in (loss, direct)]
    torch.testing.assert_close(loss(outputs), direct(outputs), rtol=1e-5, atol=1e-6, check_dtype=False)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)
    assert benchmark.saved_mib(direct, outputs) > benchmark.saved_mib(loss, outputs)


def test_matrix_products_have_no_other_form():
    for name in ("dpsh", "hashnet"):
        assert benchmark.make_losses(name, 24, 16)[1] is None


def test_trials_of_settings_are_added_to_those_of_other_processes_and_repeated_for_other_data_alone(
    tmp_path, monkeypatch
):
    data, judged = SimpleNamespace(fingerprint="0123456789012345", images=None), []

    def judge(dataset, trial, weights):
        judged.append(trial)
        if len(judged) == 2:
            tuning.add({**trial, "dataset": "of another process"}, path)
        return {**trial, "among_held_out": 0.5}

    path = tmp_path / "tuning.csv"
    monkeypatch.setattr(tuning, "SPACES", {"dsh": {"margin": [1.0, 2.0]}, "talr-ap": {"n_bins": [0, None]}})
    monkeypatch.setattr(tuning, "judge", judge)
    counts = []
    for data.fingerprint in ("0123456789012345", "0123456789012345", "89"):
        tuning.run(data, tuning.trials("digits", data, 3), path=path)
        counts.append(len(judged))
    assert counts == [8, 8, 16]
    found = tuning.read(path)
    assert len(found) == len(found.drop_duplicates(tuning.KEY)) == 17
    assert found["dataset_fingerprint"].unique().tolist() == ["0123456789012345", "89"]


def test_methods_that_learn_from_images_have_as_many_trials_each():
    data = SimpleNamespace(fingerprint="0123456789012345", images=np.zeros((1, 2, 2, 3)))
    planned = tuning.trials("photos:images", data, 6)
    assert Counter(trial["method"] for trial in planned) == dict.fromkeys(tuning.OF_IMAGES, 3) | {"dtsh": 6}
    assert {(trial["epochs"], trial["n_bits"], trial["seed"]) for trial in planned} == {(6, 32, 0)}
    networks = tuning.trials("photos:images", data, 6, of_network=True)
    assert {trial["method"] for trial in networks} == {"talr-ap"}
    assert not {trial["setting"] for trial in networks} & {trial["setting"] for trial in planned}
    assert [tuning.network("w.pth", n_epochs)["halve_every"] for n_epochs in (1, 6, 12)] == [1, 2, 4]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("digits --setting {}", "--setting needs a dataset and one --method"),
        ("--method dsh --setting {}", "--setting needs a dataset and one --method"),
        ("digits --method dsh --setting 3", "a setting is a JSON object of parameters"),
        ('digits --method dsh --setting {"epochs":2}', "epochs not among them"),
        ("digits --bits 16", "--bits and --seed are of further settings"),
        ("photos --network", "--network needs --weights"),
        ("photos --network --method dsh --weights w.pth", "--network needs --weights, and neither --method"),
        ("digits --weights w.pth", "--weights are for datasets of images, all of which need them: got digits"),
        ("photos", "--weights are for datasets of images, all of which need them: got photos"),
    ],
)
def test_options_of_trials_that_would_be_ignored_are_refused(options, told, monkeypatch, capsys):
    images = {"digits": None, "photos": np.zeros((1, 2, 2, 3))}
    monkeypatch.setattr(tuning, "load_dataset", lambda spec: (SimpleNamespace(images=images[spec]), None))
    monkeypatch.setattr(sys, "argv", ["tuning.py", *options.split()])
    with pytest.raises(SystemExit):
        tuning.main()
    assert told in capsys.readouterr().err


@pytest.mark.parametrize("error", [TrainingFailure("dsh stopped"), HashbenchError("there is no file w.pth")])
def test_a_trial_that_fails_is_one_whose_training_failed(error, monkeypatch):
    def fit(items, y):
        raise error

    labels = np.arange(20) % 2
    data = SimpleNamespace(
        train=np.arange(20), labels=labels, features=np.zeros((20, 2)), images=None, fingerprint="0123456789012345"
    )
    data.train_affinity = lambda: SameLabel(labels, labels)
    method = SimpleNamespace(fit=fit, supervision="pairs", session=Session())
    monkeypatch.setattr(tuning.registry, "get_method", lambda name: lambda *args, **kwargs: method)
    trial = tuning.planned("digits", data, 3, {"dsh": [{}]}, (16,), (0,))[0]
    if isinstance(error, TrainingFailure):
        assert tuning.judge(data, trial, None)["failure"] == "dsh stopped"
    else:
        with pytest.raises(HashbenchError, match="there is no file"):
            tuning.judge(data, trial, None)

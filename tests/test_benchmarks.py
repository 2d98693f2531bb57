"""What the benchmarks compare is the same number, made in two ways."""

import sys
from types import SimpleNamespace

import pytest
import torch
from places import ROOT

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

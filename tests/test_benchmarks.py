"""What the benchmarks compare is the same number, computed in two ways."""

import sys
import tomllib
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch
from helpers.paths import ROOT, benchmark, rows_of

from hashbench.reports.aggregate import changed_params
from hashbench.reports.tables.published import published_values
from hashbench.store.results import merge_rows, read_folder

training, tuning, published_orders = benchmark("training"), benchmark("tuning"), benchmark("published_orders")
tuned = benchmark("tuned")


@pytest.mark.parametrize("name", [name for name in training.LOSSES if name not in ("dpsh", "hashnet")])
@pytest.mark.parametrize("n_bits", [5, 16])
def test_direct_form_of_a_loss_is_that_loss(name, n_bits):
    loss, direct, outputs = training.make_losses(name, 24, n_bits)
    gradients = [torch.autograd.grad(form(outputs), outputs)[0] for form in (loss, direct)]
    torch.testing.assert_close(loss(outputs), direct(outputs), rtol=1e-5, atol=1e-6, check_dtype=False)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-6)
    assert training.saved_mib(direct, outputs) > training.saved_mib(loss, outputs)


def test_trials_are_added_to_those_of_other_processes_and_repeated_only_for_other_data(tmp_path, monkeypatch):
    data, judged = SimpleNamespace(fingerprint="0123456789012345"), []

    def judge(trial, weights):
        judged.append(trial)
        if len(judged) == 2:
            tuning.add({**trial, "dataset": "of another process"}, path)
        return {**trial, "among_held_out": 0.5}

    path = tmp_path / "tuning.csv"
    monkeypatch.setattr(tuning, "OF_IMAGES", {"dsh": [{}], "talr-ap": [{}]})
    monkeypatch.setattr(tuning, "judge", judge)
    counts = []
    for data.fingerprint in ("0123456789012345", "0123456789012345", "89"):
        tuning.run(tuning.trials("photos", data, 3), "w.pth", path=path)
        counts.append(len(judged))
    assert counts == [6, 6, 12]
    trials = tuning.read(path)
    assert len(trials) == len(trials.drop_duplicates(tuning.KEY)) == 13
    assert trials["dataset_fingerprint"].unique().tolist() == ["0123456789012345", "89"]


def test_methods_that_learn_from_images_have_as_many_trials_each():
    data = SimpleNamespace(fingerprint="0123456789012345", images=np.zeros((1, 2, 2, 3)), rule="same-label")
    planned = tuning.trials("photos:images", data, 6)
    assert Counter(trial["method"] for trial in planned) == dict.fromkeys(tuning.OF_IMAGES, 3) | {"dtsh": 6}
    assert {(trial["epochs"], trial["n_bits"], trial["seed"]) for trial in planned} == {(6, 32, 0)}
    networks = tuning.trials("photos:images", data, 6, of_network=True)
    assert {trial["method"] for trial in networks} == {"talr-ap"}
    assert not {trial["setting"] for trial in networks} & {trial["setting"] for trial in planned}
    assert [tuning.network("w.pth", n_epochs)["halve_every"] for n_epochs in (1, 6, 12)] == [1, 2, 4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("digits", "digits has no images; tune on features by hashbench tune"),
        ("photos", "--weights is the file of the network's weights: got None"),
        ("photos --weights nowhere.pth", "the network's weights: got nowhere.pth"),
    ],
)
def test_datasets_without_images_and_networks_without_weights_are_refused(options, words, monkeypatch, capsys):
    images = {"digits": None, "photos": np.zeros((1, 2, 2, 3))}
    monkeypatch.setattr(tuning, "load_dataset", lambda spec: (SimpleNamespace(images=images[spec]), None))
    monkeypatch.setattr(sys, "argv", ["tuning.py", *options.split()])
    with pytest.raises(SystemExit):
        tuning.main()
    assert words in capsys.readouterr().err


# ---------------------------------------------------------------- what rows were tuned by

TUNED = sorted(path.name for path in tuned.FOLDER.iterdir() if path.is_dir() and tuned.is_finished(path))


def test_the_page_of_trials_is_that_of_the_rows_beside_it():
    assert tuned.page() == (tuned.FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", TUNED)
def test_grids_have_the_settings_that_the_trials_chose_and_none_is_at_an_edge(name):
    paths = [ROOT / f"benchmarks/rows/{name}{suffix}.toml" for suffix in ("", "-slow")]
    grids = [tomllib.loads(path.read_text()) for path in paths if path.exists()]
    methods = {method: own for grid in grids for method, own in grid["methods"].items()}
    assert len(methods) == sum(len(grid["methods"]) for grid in grids)
    assert all(grid[key] == grids[0][key] for grid in grids for key in ("datasets", "bits", "metrics", "params"))
    for trials in tuned.trials_of(tuned.FOLDER / name):
        chosen = {key: "None" if value is None else value for key, value in trials.chosen.items()}
        assert methods[trials.method] == {"tuned": len(trials.scores)} | chosen
        assert tuned.edges(trials) == []
    assert {method for method, own in methods.items() if own} == {
        trials.method for trials in tuned.trials_of(tuned.FOLDER / name)
    }


def test_the_score_of_a_setting_is_the_mean_of_its_two():
    (folder,) = {path.parent.name for path in tuned.FOLDER.glob("cifar10-s1/*-s0/hashnet.csv")}
    first, second = (
        {row["settings"]: float(row["value"]) for row in rows_of(f"benchmarks/tuned/cifar10-s1/{place}/hashnet.csv")}
        for place in (folder, f"{folder}-among")
    )
    (trials,) = (one for one in tuned.trials_of(tuned.FOLDER / "cifar10-s1") if one.method == "hashnet")
    means = sorted((first[setting] + second[setting]) / 2 for setting in first)
    assert sorted(trials.scores.values()) == pytest.approx(means)
    assert trials.chosen == {"learning_rate": 0.1}
    assert max(trials.scores, key=trials.scores.get) == '{"learning_rate": 0.1}'


def test_trials_with_one_score_or_without_defaults_are_refused(tmp_path):
    rows = [row for row in read_folder(tuned.FOLDER / "cifar10-s1").values() if row.method == "bihalf"]
    default = [row for row in rows if not changed_params("bihalf", row.params)]
    for name, kept, words in (
        ("one", rows[:1], "lacks one of the two scores"),
        ("others", [row for row in rows if row not in default], "lacks the defaults of bihalf"),
    ):
        merge_rows(tmp_path / name, kept, None)
        with pytest.raises(SystemExit, match=words):
            list(tuned.trials_of(tmp_path / name))


# ---------------------------------------------------------------- orders of published tables

HYP2 = [value for value in published_values() if value.source.startswith("HyP2") and value.our_dataset == "nuswide"]


def nuswide_cells(**rows):
    """Return cells of methods at 12 bits: value, and how far ties can move it; a shuffle a tenth as far."""
    ranges = [(name, value, value - by, value + by, by / 10) for name, (value, by) in rows.items()]
    of_block = {"dataset": "nuswide", "features": "alexnet", "dataset_fingerprint": "aaaa", "metric": "AP@5000"}
    cells = pd.DataFrame(ranges, columns=["method", "value", "low", "high", "tie_sd"])
    return cells.assign(**of_block, n_bits=12, n_queries=1, n_seeds=1, spread=np.nan, params="{}")


@pytest.mark.parametrize(
    ("hyp2", "csq", "verdict"),
    [
        ((0.6, 0.01), (0.5, 0.01), ("holds", "every order")),
        ((0.5, 0.06), (0.6, 0.05), ("turned", "shuffle")),  # three times the sum of .006 and .005 is .033
        ((0.58, 0.06), (0.6, 0.05), ("open", "open")),
        ((0.57, np.nan), (0.6, 0.05), ("open", "unknown")),
    ],
)
def test_order_of_a_paper_holds_or_is_turned_as_far_as_ties_leave_it(hyp2, csq, verdict):
    (order,) = published_orders.make_orders(nuswide_cells(hyp2=hyp2, csq=csq), HYP2)
    assert (order.higher.published.method, order.lower.published.method) == ("HyP2 Loss", "CSQ")  # 0.794 and 0.692
    assert order.verdict == verdict
    assert published_orders.count_orders([order]).startswith("1 orders of two methods (HyP2 Loss 1): 1 ")


def test_every_two_methods_of_a_table_and_block_are_ordered_once():
    block = nuswide_cells(hyp2=(0.6, 0.01), csq=(0.5, 0.01), orthohash=(0.55, 0.02), lsh=(0.1, 0.0))
    orders = published_orders.make_orders(pd.concat([block, block.assign(features="squeezenet", n_seeds=3)]), HYP2)
    counts = Counter((order.higher.cell.method, order.lower.cell.method) for order in orders)
    assert counts == {("hyp2", "orthohash"): 1, ("hyp2", "csq"): 1, ("orthohash", "csq"): 1}
    assert all({order.higher.cell.features, order.lower.cell.features} == {"squeezenet"} for order in orders)


def test_papers_and_classes_of_networks_are_not_mixed():
    at_12 = {value.our_method: value for value in HYP2 if value.n_bits == 12}
    hyp2, csq, cells = at_12["hyp2"], at_12["csq"], nuswide_cells(hyp2=(0.6, 0.01), csq=(0.5, 0.01))
    assert len(published_orders.make_orders(cells, [hyp2, csq])) == 1
    for change in ({"source": "another"}, {"backbone": "ResNet-50"}, {"value": hyp2.value}):
        assert published_orders.make_orders(cells, [hyp2, csq._replace(**change)]) == []

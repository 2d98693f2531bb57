import json

import numpy as np
import pytest
from helpers.learned_methods import same_network

from hashbench import evaluate, registry
from hashbench.errors import HashbenchError
from hashbench.methods.talr_ap import TALRAP


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
    others = seen[0].numbers
    held = np.setdiff1d(np.arange(len(X)), others)
    assert len(held) == 50
    codes = method.transform(X)
    expected = evaluate(codes[held], codes[others], (y[held], y[others]), ["AP"]).summary["AP"].mean
    assert method.history_[0].score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "criterion"), [("talr-ndcg", "NDCG"), ("mihash", "AP"), ("talr-ap", "AP")])
def test_held_out_items_are_scored_by_the_metric_that_a_method_is_for(name, criterion, example, monkeypatch):
    asked = []

    def spy(query, database, affinity, metrics, **options):
        asked.append((list(metrics), options))
        return evaluate(query, database, affinity, metrics, **options)

    monkeypatch.setattr("hashbench.scoring.problem.evaluate", spy)
    history = registry.get_method(name)(8, epochs=2, validation=0.2).fit(*example).history_
    assert asked == [([criterion], {"undefined": "paper"})] * 2
    assert len({epoch.score for epoch in history}) == 2


def test_validation_that_cannot_choose_is_refused(example):
    X, _ = example
    with pytest.raises(HashbenchError, match="none of 50 items held out is relevant to another training item"):
        TALRAP(16, epochs=2, validation=0.2).fit(X, np.arange(len(X)))
    with pytest.raises(HashbenchError, match=r"validation=0.1 of n_samples=4 items, which is none"):
        TALRAP(4, epochs=2, validation=0.1).fit(X[:4], np.array([0, 0, 1, 1]))


def test_the_score_of_held_out_items_is_printed_and_stored_with_the_codes(hashbench, digits, digits_data, tmp_path):
    labels = digits.labels[digits.train]
    method = TALRAP(8, epochs=2, validation=0.2).fit(digits.features[digits.train], labels)
    expected = max(epoch.score for epoch in method.history_)
    common = ("--method", "talr-ap", "--bits", 8, "--param", "talr-ap:epochs=2", "--validation", 0.2)
    run = ("run", *common, "--metric", "AP", "--results", tmp_path / "results")
    assert f"\nheld out: AP {expected:.4f}, the training items" in hashbench(*run).stdout
    (row,) = json.loads(hashbench(*run, "--format", "json").stdout)
    assert row["held_out"] == {"AP": pytest.approx(expected, abs=1e-12)}
    path = hashbench("encode", *common).stdout.strip()
    assert f"\nheld out:   AP {expected:.6f}" in hashbench("info", path).stdout
    lines = hashbench(*run, "--method", "itq").stdout.splitlines()
    assert lines[0].split("  ")[-1].strip() == "held out"
    assert [line.split()[-1] for line in lines[2:4]] == [f"{expected:.4f}", "-"]
    without = hashbench("run", "--method", "itq", "--bits", 8, "--results", tmp_path / "results")
    assert "held out" not in without.stdout

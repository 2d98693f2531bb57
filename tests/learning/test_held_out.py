import numpy as np
import pytest
from trained import same_network

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
    kept = seen[0].numbers
    held = np.setdiff1d(np.arange(len(X)), kept)
    assert len(held) == 50
    codes = method.transform(X)
    expected = evaluate(codes[held], codes[kept], (y[held], y[kept]), ["AP"]).summary["AP"].mean
    assert method.history_[0].score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("name", "criterion"), [("talr-ndcg", "NDCG"), ("mihash", "AP"), ("talr-ap", "AP")])
def test_held_out_items_are_scored_by_the_metric_that_a_method_is_for(name, criterion, example, monkeypatch):
    asked = []

    def spy(query, database, affinity, metrics, **options):
        asked.append((list(metrics), options))
        return evaluate(query, database, affinity, metrics, **options)

    monkeypatch.setattr("hashbench.scoring.evaluator.evaluate", spy)
    history = registry.get_method(name)(8, epochs=2, validation=0.2).fit(*example).history_
    assert asked == [([criterion], {"undefined": "paper"})] * 2
    assert len({epoch.score for epoch in history}) == 2


def test_validation_that_cannot_choose_is_refused(example):
    X, _ = example
    with pytest.raises(HashbenchError, match="none of 50 items held out is relevant to another training item"):
        TALRAP(16, epochs=2, validation=0.2).fit(X, np.arange(len(X)))
    with pytest.raises(HashbenchError, match=r"validation=0.1 of n_samples=4 items, which is none"):
        TALRAP(4, epochs=2, validation=0.1).fit(X[:4], np.array([0, 0, 1, 1]))

import numpy as np
import pytest
from helpers.thoroughness import slow
from sklearn.svm import LinearSVC

from hashbench.methods._graph_cuts import Energy
from hashbench.methods._pairs import Pairs
from hashbench.methods.machash import MACHash, agreement_gaps, coupling_sums, update_codes


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 5
    first, second = np.triu_indices(45, k=1)
    pairs = Pairs(first, second, (y[first] == y[second]).astype(np.int64))
    codes, learnt = (rng.choice([-1.0, 1.0], (45, 7)) for _ in range(2))
    return y, pairs, Energy(pairs, 45, rng), codes, learnt


def penalised(codes, learnt, y, penalty):
    wanted = np.where(y[:, None] == y, 7, -7)
    upper = np.triu_indices(len(y), k=1)
    return (((codes @ codes.T) - wanted)[upper] ** 2).sum() + penalty * ((codes - learnt) ** 2).sum()


@pytest.mark.parametrize("penalty", [0.0, 300.0])
def test_the_penalised_loss_never_rises(problem, penalty):
    y, pairs, energy, codes, learnt = problem
    before = penalised(codes, learnt, y, penalty)
    for _ in range(4):
        update_codes(codes, energy, pairs, penalty, learnt, 1)
        after = penalised(codes, learnt, y, penalty)
        assert after <= before
        before = after
    assert after <= penalised(learnt, learnt, y, penalty)
    assert set(np.unique(codes)) == {-1.0, 1.0}


def test_a_huge_penalty_gives_the_hash_functions_back(problem):
    _, pairs, energy, codes, learnt = problem
    update_codes(codes, energy, pairs, 1e9, learnt, 1)
    np.testing.assert_array_equal(codes, learnt)


def test_gaps_and_couplings_follow_their_definitions(problem):
    y, pairs, _, codes, _ = problem
    wanted = np.where(y[:, None] == y, 7, -7)
    gaps = codes @ codes.T - wanted
    np.testing.assert_array_equal(agreement_gaps(codes, pairs), gaps[pairs.first, pairs.second])
    without_last = codes[:, :-1] @ codes[:, :-1].T - wanted
    np.fill_diagonal(without_last, 0)
    np.testing.assert_allclose(coupling_sums(codes, pairs), 2 * np.abs(without_last).sum(axis=1))


@pytest.mark.parametrize("kernel", ["linear", *slow("rbf")])
def test_the_best_functions_of_all_steps_are_used(labelled, kernel):
    X, y = labelled[0][::5], labelled[1][::5]
    method = MACHash(8, kernel=kernel, n_similar=200, n_dissimilar=200).fit(X, y)
    codes = np.where(method.transform(X), 1.0, -1.0)
    wanted = np.where(y[:, None] == y, 8, -8)
    upper = np.triu_indices(len(y), k=1)
    assert ((codes @ codes.T - wanted)[upper] ** 2).mean() == pytest.approx(method.losses_.min())
    two_step = MACHash(8, kernel=kernel, n_similar=200, n_dissimilar=200, n_iter=0).fit(X, y)
    assert two_step.losses_[0] == method.losses_[0] >= method.losses_.min()


def test_a_bit_that_all_items_share_is_a_constant(labelled):
    X = labelled[0][:60]
    codes = np.random.default_rng(0).choice([-1.0, 1.0], (60, 3))
    codes[:, 1] = -1
    weights, intercept = MACHash(3)._separate(X, codes)
    assert not weights[:, 1].any()
    assert intercept[1] == -1
    assert weights[:, [0, 2]].any(axis=0).all()


def spied(X, y, monkeypatch, **params):
    """Fit, and note the penalty, the codes that came of it and the functions' bits of each step."""
    seen = []

    def spy(codes, energy, pairs, penalty, learnt, n_passes):
        update_codes(codes, energy, pairs, penalty, learnt, n_passes)
        seen.append((penalty, codes.copy(), learnt.copy(), pairs))

    monkeypatch.setattr("hashbench.methods.machash.update_codes", spy)
    return MACHash(6, n_similar=200, n_dissimilar=200, **params).fit(X, y), seen


def test_the_penalty_starts_at_a_twentieth_of_the_couplings_and_grows(labelled, monkeypatch):
    _, seen = spied(labelled[0][:200], labelled[1][:200], monkeypatch, n_iter=4, growth=1.7)
    penalties = [penalty for penalty, *_ in seen]
    first = 0.05 * np.median(coupling_sums(seen[0][1], seen[0][3]))
    np.testing.assert_allclose(penalties, [0, *(first * 1.7**step for step in range(len(penalties) - 1))])
    assert len(penalties) == 5


def test_it_stops_when_functions_give_the_codes(monkeypatch):
    y = np.arange(60) % 2
    X = np.random.default_rng(0).normal(size=(60, 4)) + 20 * y[:, None]
    _, seen = spied(X, y, monkeypatch, n_iter=9)
    assert len(seen) == 1


def test_without_alternation_it_is_the_two_step_method(labelled, monkeypatch):
    X, y = labelled[0][:200], labelled[1][:200]
    method, [(penalty, codes, _, _)] = spied(X, y, monkeypatch, n_iter=0, C=0.02)
    assert penalty == 0
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    for bit, found in enumerate(method.transform(X).T):
        machine = LinearSVC(C=0.02, dual=False).fit(scaled, codes[:, bit])
        np.testing.assert_array_equal(found, machine.predict(scaled) > 0)

"""Target codes: their distances, and that none of their bits is useless."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hashbench.errors import HashbenchError, Refusal
from hashbench.learning import targets as targets_module
from hashbench.learning.targets import KINDS, draw_targets, hadamard_matrix, item_targets, least_distance
from hashbench.methods.csq import CSQ
from hashbench.methods.dsdh import DSDH

ORDERS = [1, 2, 12, 20, 24, 40, 64]
LEAST = {  # distance of max-distance codes, by classes and bits, as measured with one seed; others may be 1 less
    10: {12: 6, 64: 32},
    80: {12: 3, 64: 26},
}


def draw(n_classes, n_bits, kind="auto", seed=0):
    return draw_targets(n_classes, n_bits, kind, np.random.default_rng(seed))


def distances(targets):
    """Compute the distances of all pairs by a loop."""
    return [int((a != b).sum()) for i, a in enumerate(targets) for b in targets[:i]]


@pytest.mark.parametrize("order", ORDERS)
def test_hadamard_matrices_have_orthogonal_rows_and_begin_with_ones(order):
    matrix = hadamard_matrix(order)
    np.testing.assert_array_equal(matrix @ matrix.T, order * np.eye(order))
    assert (matrix[0] == 1).all()


@pytest.mark.parametrize("order", [6, 28])
def test_a_length_without_a_known_hadamard_matrix_is_refused_and_auto_takes_other_targets(order):
    with pytest.raises(Refusal, match=f"no Hadamard matrix .* for {order} bits.* targets=max-distance"):
        draw(2, order, "hadamard")
    assert draw(4, order).shape == (4, order)


@pytest.mark.parametrize(("n_classes", "n_bits"), [(3, 8), (10, 12), (31, 32)])
def test_hadamard_targets_differ_in_half_of_the_bits(n_classes, n_bits):
    assert set(distances(draw(n_classes, n_bits, "hadamard"))) == {n_bits // 2}


@pytest.mark.parametrize(("n_classes", "n_bits"), [(32, 32), (33, 32), (24, 12)])
def test_more_classes_than_rows_take_negatives(n_classes, n_bits):
    differing = distances(draw(n_classes, n_bits, "hadamard"))
    assert min(differing) == n_bits // 2
    assert set(differing) <= {n_bits // 2, n_bits}
    assert differing.count(n_bits) == n_classes - n_bits


@pytest.mark.parametrize(("n_classes", "n_bits"), [(10, 16), (10, 64), (100, 64)])
def test_no_bit_of_hadamard_targets_is_constant_or_repeats_another(n_classes, n_bits):
    columns = draw(n_classes, n_bits, "hadamard").T
    assert not any(abs(int(one.sum())) == n_classes for one in columns)
    assert len({tuple(one * one[0]) for one in columns}) == n_bits


@pytest.mark.parametrize(
    ("n_classes", "n_bits", "least"), [(n, b, least) for n, of_bits in LEAST.items() for b, least in of_bits.items()]
)
def test_max_distance_targets_are_as_far_from_each_other_as_known(n_classes, n_bits, least):
    targets = draw(n_classes, n_bits, "max-distance")
    assert min(distances(targets)) == least_distance(targets) >= least - 1


@given(st.integers(2, 12), st.integers(4, 33), st.sampled_from(KINDS), st.integers(0, 5))
def test_targets_differ_are_of_two_values_and_the_same_by_the_same_seed(n_classes, n_bits, kind, seed):
    try:
        targets = draw(n_classes, n_bits, kind, seed)
    except Refusal:
        assert kind in ("hadamard", "bernoulli", "balanced")
        return
    assert targets.shape == (n_classes, n_bits)
    assert targets.dtype == np.int8
    assert set(np.unique(targets)) <= {-1, 1}
    assert min(distances(targets)) > 0
    np.testing.assert_array_equal(targets, draw(n_classes, n_bits, kind, seed))


def test_balanced_targets_have_as_many_ones_as_zeros():
    assert not draw(10, 32, "balanced").sum(axis=1).any()
    assert (draw(5, 9, "balanced").sum(axis=1) == 1).all()


def pinned(targets):
    return hashlib.sha256(targets.tobytes()).hexdigest()[:12]


@pytest.mark.parametrize(
    ("parts", "digest"),
    [
        ((100, 12, "max-distance"), "ff5aaa48a5b3"),
        ((100, 64, "max-distance", 1), "933065a91938"),
        ((500, 128, "max-distance"), "34cc3de7e203"),
        pytest.param((2500, 64, "max-distance"), "5a3190bc3a31", marks=pytest.mark.slow),
        ((300, 16, "balanced"), "e1432cd198ce"),
        ((1000, 32, "bernoulli", 1), "a9cbfe7182c6"),
        ((38, 64, "hadamard"), "82d390fc2349"),
    ],
)
def test_a_seed_gives_the_targets_that_results_were_made_with(parts, digest):
    assert pinned(draw(*parts)) == digest


def test_drawing_targets_of_many_classes_is_reported(monkeypatch):
    monkeypatch.setattr(targets_module, "_MANY", 300)
    reports = []
    targets = draw_targets(300, 64, "max-distance", np.random.default_rng(0), lambda *what: reports.append(what))
    assert reports[0] == ("drawing targets of 300 classes", 0, 0)
    assert {(what, n_all) for what, _, n_all in reports[1:]} == {("targets of classes", 300)}
    counts = [n_done for _, n_done, _ in reports[1:]]
    assert counts == sorted(counts)
    assert counts[-1] == 300
    assert least_distance(targets) >= 16
    assert least_distance(targets, enough=40) <= 40


@pytest.mark.usefixtures("digits_data")
def test_a_run_reports_that_it_draws_many_targets(hashbench, monkeypatch):
    monkeypatch.setattr(targets_module, "_MANY", 10)
    options = ["--bits", 12, "--param", "targets=max-distance", "--param", "epochs=1", "--param", "n_hidden=8"]
    result = hashbench("encode", "--method", "csq", *options)
    assert result.exit_code == 0
    assert result.stderr.startswith("drawing targets of 10 classes ...\n")


@pytest.mark.parametrize(
    ("method", "n_items", "advice"),
    [
        (CSQ(8, batch_size=32, epochs=1), 32, "lower batch_size"),
        (DSDH(8, batch_size=32, epochs=1), 90, "train on fewer items, or on fewer classes"),
    ],
    ids=["of a batch", "of all items"],
)
def test_classes_that_do_not_fit_memory_are_refused_before_they_take_it(method, n_items, advice, monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(90, 6)), np.arange(90) % 3
    monkeypatch.setattr("hashbench.store.inputs.free_memory", lambda: 16 * 3 * n_items - 1)
    message = rf"'s matrix of {n_items} items x 3 classes takes 0\.0 GB of memory, and 0\.0 GB are free; {advice}\.$"
    with pytest.raises(HashbenchError, match=message):
        method.fit(X, y)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ((17, 4, "auto"), "4 bits have only 16 targets, got 17 classes"),
        ((65, 32, "hadamard"), "32 bits have at most 64 Hadamard targets, got 65 classes"),
        ((10, 4, "balanced"), "balanced targets of 4 bits are too few for 10 classes"),
    ],
)
def test_targets_that_cannot_be_had_are_refused(parts, message):
    with pytest.raises(Refusal, match=message):
        draw(*parts)


def test_two_classes_differ_in_all_bits():
    for seed in range(5):
        targets = draw(2, 64, "hadamard", seed)
        assert (targets[0] == -targets[1]).all()
        assert abs(targets[0].sum()) < 40


@pytest.mark.parametrize("kind", ["bernoulli", "balanced"])
def test_a_target_that_another_class_has_is_drawn_again(kind):
    for seed in range(20):  # one in seven of such draws has two alike
        assert len(np.unique(draw(38, 12, kind, seed), axis=0)) == 38


def test_an_item_has_the_majority_of_the_targets_of_its_classes_and_shared_bits_where_they_tie():
    targets = torch.tensor([[1, 1, -1, -1], [1, -1, 1, -1], [1, 1, 1, -1]]).double()
    tie_bits = torch.tensor([-1, 1, -1, 1]).double()
    classes = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1]]).double()
    expected = [[1, 1, -1, -1], [1, 1, -1, -1], [1, 1, 1, -1], [1, 1, 1, -1]]
    assert item_targets(targets, tie_bits, classes).tolist() == expected

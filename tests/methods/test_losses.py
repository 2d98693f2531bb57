"""Losses of pairs and triplets against loops written from the papers."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers.learned_methods import FIRST, OF_CLASSES, UNSUPERVISED
from helpers.losses import begun, gradient, loss_of, normal, same_class, softplus
from helpers.thoroughness import slow

from hashbench import registry
from hashbench.affinity import Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.methods._pair_losses import logistic_loss, sum_of_similar
from hashbench.methods.dhn import dhn_loss
from hashbench.methods.dpsh import dpsh_loss
from hashbench.methods.dsh import dispersion_loss, original_loss
from hashbench.methods.dtsh import dtsh_loss
from hashbench.methods.hashnet import hashnet_loss, steepness

VARIANTS = [
    *((name, {}) for name in FIRST),
    ("talr-ap", {"relaxation": "full"}),
    ("talr-ndcg", {"relaxation": "full"}),
    ("talr-ap", {"n_bins": 3}),
    ("mihash", {"n_bins": 7, "continuation": 2}),
    ("dsh", {"objective": "dispersion"}),
]


# ---------------------------------------------------------------- DPSH


def test_dpsh_equals_a_double_loop():
    u, cache = normal(4, 5), normal(7, 5, seed=1)
    s = normal(4, 7, seed=2) > 0
    total = 0.0
    for i, j in itertools.product(range(4), range(7)):
        theta = sum(float(u[i, k] * cache[j, k]) for k in range(5)) / 2
        total += softplus(theta) - float(s[i, j]) * theta
    for i, k in itertools.product(range(4), range(5)):
        total += 3.0 * (float(u[i, k]) - (1 if u[i, k] > 0 else -1)) ** 2
    assert float(dpsh_loss(u, cache, s, eta=3.0)) == pytest.approx(total / 28, abs=1e-10)


def test_the_likelihood_of_many_pairs_and_its_gradient_are_those_of_all_at_once():
    u, cache = normal(4, 5).requires_grad_(), normal(2500, 5, seed=1)
    similar = normal(4, 2500, seed=2) > 0
    theta = u @ cache.T / 2
    wrong_by = torch.where(similar, 1.5 - theta, 1.5 + theta)
    expected = torch.logaddexp(torch.zeros_like(theta), wrong_by).sum() / 3
    loss = logistic_loss(u, cache, similar, 1.5) / 3
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, u)[0] for value in (loss, expected)))


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_the_gradient_of_the_likelihood_is_that_of_softplus_to_the_bit(scale):
    u, cache = (scale * normal(130, 5)).requires_grad_(), scale * normal(1500, 5, seed=1)
    similar = normal(130, 1500, seed=2) > 0
    blocks = []
    for block, are_similar in ((cache[:1024], similar[:, :1024]), (cache[1024:], similar[:, 1024:])):
        cost = torch.nn.functional.softplus(u @ block.T / 2 * (1 - 2 * are_similar.double()), threshold=40).sum()
        blocks.append(torch.autograd.grad(cost, u)[0])
    assert torch.equal(torch.autograd.grad(logistic_loss(u, cache, similar), u)[0], sum(blocks))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_likelihood_of_large_batches_does_not_underflow(dtype):
    loss = logistic_loss(torch.zeros(2500, 3, dtype=dtype), torch.zeros(7, 3, dtype=dtype), torch.ones(2500, 7) > 0)
    assert float(loss) == pytest.approx(2500 * 7 * math.log(2), rel=1e-6)


def test_sums_over_similar_items_are_products_in_blocks_of_rows_and_of_items(monkeypatch):
    monkeypatch.setattr("hashbench.methods._pair_losses._BLOCK", 2)
    similar, values = normal(5, 7) > 0, torch.arange(21.0).reshape(7, 3)
    assert sum_of_similar(similar, values).tolist() == (similar.numpy().astype(int) @ values.numpy()).tolist()


def test_default_penalties_are_those_of_the_docstrings():
    outputs, classes = normal(12, 6), np.arange(12) % 3
    s = same_class(classes)
    expected = {
        "dpsh": dpsh_loss(outputs, outputs, s, eta=1.0),
        "dtsh": dtsh_loss(outputs, s.int(), eta=1 / 16),
        "dsh": original_loss(outputs, s, 6.0, 0.01),
    }
    for name, loss in expected.items():
        assert float(loss_of(name, outputs, classes)) == pytest.approx(float(loss), abs=1e-12)


# ---------------------------------------------------------------- DHN


def dhn_by_loops(u, similar, quantisation):
    """Return the loss by the formulas of the authors' code in Caffe, without self-pairs."""
    n, b = u.shape
    z = np.tanh(u)
    loss = 0.0
    for i, j in itertools.permutations(range(n), 2):
        x = float(z[i] @ z[j])
        loss += (math.log(1 + math.exp(x)) - similar[i, j] * x) / (n * (n - 1))
    for i, k in itertools.product(range(n), range(b)):
        loss += quantisation * math.log(math.cosh(abs(z[i, k]) - 1)) / n
    return loss


def test_dhn_equals_a_double_loop():
    u, similar = 1.5 * normal(7, 5), same_class(np.arange(7) % 3)
    loss = dhn_by_loops(u.numpy(), similar.numpy().astype(float), 0.3)
    assert float(dhn_loss(u, similar, 0.3)) == pytest.approx(loss, abs=1e-12)


# ---------------------------------------------------------------- DTSH


def dtsh_by_loops(u, levels, eta):
    n, b = u.shape
    theta = (u @ u.T / 2).numpy()
    per_query = []
    for q in range(n):
        losses = [
            softplus(-(theta[q, p] - theta[q, x] - b / 2))
            for p in range(n)
            for x in range(n)
            if len({q, p, x}) == 3 and levels[q, p] > levels[q, x]
        ]
        if losses:
            per_query.append(sum(losses) / len(losses))
    penalty = sum((float(v) - (1 if v > 0 else -1)) ** 2 for v in u.flatten()) / n
    return (sum(per_query) / len(per_query) if per_query else 0.0) + eta * penalty


@pytest.mark.parametrize("n_levels", [2, 4])
def test_dtsh_equals_a_triple_loop(n_levels):
    u = normal(9, 6)
    levels = torch.randint(0, n_levels, (9, 9), generator=torch.Generator().manual_seed(4))
    levels = levels.triu() + levels.triu(1).T
    levels[2] = levels[:, 2] = 0  # one item without positives
    assert float(dtsh_loss(u, levels, eta=0.3)) == pytest.approx(dtsh_by_loops(u, levels.numpy(), 0.3), abs=1e-12)


@pytest.mark.parametrize("levels", [torch.ones(5, 5), torch.eye(5), torch.zeros(1, 1)])
def test_dtsh_of_a_batch_without_triplets_is_0_with_zero_gradient(levels):
    u = normal(len(levels), 4)
    assert float(dtsh_loss(u, levels.long(), eta=0.0)) == 0
    assert not gradient(lambda f: dtsh_loss(f, levels.long(), eta=0.0), u).any()


# ---------------------------------------------------------------- HashNet


def test_hashnet_is_the_mean_over_similar_plus_the_mean_over_dissimilar_pairs():
    f, s = normal(7, 6), same_class(np.arange(7) % 3)
    beta, slope = 1.7, 10 / 6
    sums = {True: [], False: []}
    for i, j in itertools.permutations(range(7), 2):
        x = slope * sum(math.tanh(beta * float(f[i, k])) * math.tanh(beta * float(f[j, k])) for k in range(6))
        loss = softplus(x) - float(s[i, j]) * x
        sums[bool(s[i, j])].append(loss)
    expected = sum(sums[True]) / len(sums[True]) + sum(sums[False]) / len(sums[False])
    assert float(hashnet_loss(f, s, beta, slope)) == pytest.approx(expected, abs=1e-12)


def test_hashnet_grows_steeper_by_the_share_of_training():
    shares = {0.0: 1.0, 0.2: math.sqrt(2.6), 1.0: 3.0}
    assert {share: pytest.approx(steepness(share, 3.0)) for share in shares} == shares
    f, classes = normal(5, 4), [0, 0, 1, 1, 2]
    for share, beta in shares.items():
        expected = float(hashnet_loss(f, same_class(classes), beta, 10 / 4))
        assert float(loss_of("hashnet", f, classes, share=share, beta=3.0)) == pytest.approx(expected)


# ---------------------------------------------------------------- DSH


def dsh_by_loops(u, similar, margin, alpha):
    n, _ = u.shape
    total = 0.0
    for i in range(n):
        for j in range(i + 1, n):
            squared = float(((u[i] - u[j]) ** 2).sum())
            total += 0.5 * squared if similar[i, j] else 0.5 * max(margin - squared, 0)
    return total / (n * (n - 1)) + alpha * float((u.abs() - 1).abs().sum()) / n


def test_dsh_equals_a_loop_over_pairs():
    u, s = normal(8, 5), same_class(np.arange(8) % 3)
    assert float(original_loss(u, s, 10.0, 0.2)) == pytest.approx(dsh_by_loops(u, s, 10.0, 0.2), abs=1e-12)


def dispersion_by_loops(u, levels, margin, alpha, zones):
    n, _ = u.shape
    total = 0.0
    for i, j in itertools.combinations(range(n), 2):
        d = float((u[i] - u[j]).abs().sum())
        for at_least, (low, high) in zones.items():
            if levels[i, j] >= at_least:
                total += 0.5 * (max(low - d, 0) + max(d - high, 0))
        if levels[i, j] == 0:
            total += 0.5 * max(margin - d, 0)
    return total / (n * (n - 1)) + alpha * float((u.abs() - 1).abs().sum()) / n


def test_dispersion_equals_a_loop_over_pairs():
    u = normal(8, 12) / 4
    classes = np.arange(8) % 4
    levels = same_class(classes).int() + same_class(classes // 2).int()
    loss = dispersion_loss(u, levels, 24.0, 0.2)
    assert float(loss) == pytest.approx(dispersion_by_loops(u, levels, 24.0, 0.2, {1: (2, 4)}), abs=1e-12)
    loss = dispersion_loss(u, levels, 24.0, 0.2, two_levels=True)
    zones = {2: (1, 2), 1: (2, 4)}
    assert float(loss) == pytest.approx(dispersion_by_loops(u, levels, 24.0, 0.2, zones), abs=1e-12)


def test_dsh_separates_class_from_superclass_only_under_a_hierarchy():
    u, classes = normal(8, 12) / 4, np.arange(8) % 4
    hierarchy = Hierarchy(classes, classes, classes // 2, classes // 2)
    levels = hierarchy.block(slice(0, 8), slice(0, 8))
    loss = loss_of("dsh", u, hierarchy, objective="dispersion", margin=2.0)
    zones = {2: (1, 2), 1: (2, 4)}
    assert float(loss) == pytest.approx(dispersion_by_loops(u, levels, 24.0, 0.01, zones), abs=1e-12)
    loss = loss_of("dsh", u, Explicit(levels), objective="dispersion", margin=1.0)
    assert float(loss) == pytest.approx(dispersion_by_loops(u, levels, 12.0, 0.01, {1: (2, 4)}), abs=1e-12)


# ---------------------------------------------------------------- all losses


def affinities(n_items):
    classes = np.arange(n_items) % 3
    multi_hot = np.random.default_rng(0).integers(0, 2, (n_items, 4))
    return [
        SameLabel(classes, classes),
        SharedLabels(multi_hot, multi_hot),
        Hierarchy(np.arange(n_items) % 4, np.arange(n_items) % 4, np.arange(n_items) % 2, np.arange(n_items) % 2),
        Explicit(np.random.default_rng(1).choice([0, 1, 2, 5, 10], (n_items, n_items))),
    ]


@pytest.mark.parametrize(
    ("name", "params", "rule"),
    [
        *((name, params, 3) for name, params in VARIANTS),  # levels of all kinds
        *slow(*((name, params, rule) for name, params in VARIANTS for rule in (0, 1, 2))),
        *((name, {}, 0) for name in (*OF_CLASSES, "dch", "adsh") if name != "greedyhash"),
    ],
)
def test_gradients_are_those_of_differences(name, params, rule):
    outputs = normal(5, 4, seed=6).requires_grad_()
    supervision = np.arange(5) % 3 if name in OF_CLASSES else affinities(5)[rule]
    method, batch = begun(name, outputs.detach().clone(), supervision, **params)  # whose all_outputs stay
    assert torch.autograd.gradcheck(lambda f: method._loss(replace(batch, outputs=f)), [outputs], atol=1e-6)


@pytest.mark.parametrize(("name", "params"), [*VARIANTS, *((name, {}) for name in OF_CLASSES if name != "mdsh")])
def test_gradients_follow_a_permutation_of_the_batch(name, params):
    labels, order = np.arange(12) % 4, np.random.default_rng(0).permutation(12)
    outputs = normal(12, 8)
    plain = gradient(lambda f: loss_of(name, f, labels, **params), outputs)
    permuted = gradient(lambda f: loss_of(name, f, labels[order], **params), outputs[order])
    np.testing.assert_allclose(permuted.numpy(), plain[order].numpy(), atol=1e-12)
    assert plain.abs().max() > 1e-3


@pytest.mark.parametrize(
    ("name", "params"), [*VARIANTS, *((name, {}) for name in (*OF_CLASSES, "dch", "adsh", *UNSUPERVISED))]
)
def test_loss_and_gradient_are_finite_at_any_scale_and_batch_size(name, params):
    classes = np.eye(12, dtype=np.uint8)
    several = np.roll(classes, 1, axis=1) | classes
    batches = (classes[:1], classes[np.arange(12) % 10], several, classes[np.zeros(12, dtype=int)])
    for scale, labels in itertools.product((1e3, 1e-6), batches):
        outputs = (scale * normal(len(labels), 16, dtype=torch.float32)).requires_grad_()
        loss = loss_of(name, outputs, labels, classes=classes, **params)
        loss.backward()
        assert torch.isfinite(loss)
        assert torch.isfinite(outputs.grad).all()


@pytest.mark.parametrize("name", FIRST)
def test_levels_above_0_differ_only_for_graded_methods(name):
    outputs, levels = normal(9, 6), np.random.default_rng(1).choice([0, 0, 1, 2, 5], (9, 9))
    graded, binary = (float(loss_of(name, outputs, Explicit(matrix))) for matrix in (levels, levels > 0))
    is_graded = name in ("dtsh", "talr-ndcg")
    assert (graded != binary) == is_graded
    assert ("grades are lost" in " ".join(registry.get_method(name).__doc__.split())) != is_graded

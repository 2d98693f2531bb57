"""Losses of pairs and triplets against loops written from the papers."""

import itertools
import math

import numpy as np
import pytest
import torch
from helpers.learned_methods import FIRST, OF_CLASSES, UNSUPERVISED
from helpers.losses import gradient, loss_of, normal, same_class, softplus
from helpers.thoroughness import slow

from hashbench import registry
from hashbench.affinity import Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.methods._pair_losses import logistic_loss
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


@pytest.mark.parametrize("n_items", [1024, 2500])
@pytest.mark.parametrize("margin", [0.0, 1.5])
def test_the_likelihood_of_many_pairs_and_its_gradient_are_those_of_all_at_once(n_items, margin):
    u, cache = normal(4, 5).requires_grad_(), normal(n_items, 5, seed=1)
    similar = normal(4, n_items, seed=2) > 0
    theta = u @ cache.T / 2
    wrong_by = torch.where(similar, margin - theta, margin + theta)
    expected = torch.logaddexp(torch.zeros_like(theta), wrong_by).sum() / 3
    loss = logistic_loss(u, cache, similar, margin) / 3
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, u)[0] for value in (loss, expected)))


def test_dpsh_is_finite_at_extreme_inner_products_and_0_where_they_agree_with_the_labels():
    u = torch.tensor([[200.0], [-200.0]])
    cache = torch.tensor([[100.0], [-100.0]])  # theta = 10,000 or -10,000
    agree, disagree = torch.eye(2, dtype=torch.bool), ~torch.eye(2, dtype=torch.bool)
    assert float(dpsh_loss(u, cache, agree, eta=0.0)) == 0
    assert float(dpsh_loss(u, cache, disagree, eta=0.0)) == pytest.approx(10_000)
    assert torch.isfinite(gradient(lambda f: dpsh_loss(f, cache, disagree, eta=10.0), u)).all()


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


def test_dpsh_items_without_a_visit_cost_ln_2_and_have_no_gradient():
    u = normal(3, 4)
    s = torch.ones(3, 5, dtype=torch.bool)
    loss = lambda f: dpsh_loss(f, torch.zeros(5, 4).double(), s, eta=0.0)  # noqa: E731
    assert float(loss(u)) == pytest.approx(math.log(2))
    assert not gradient(loss, u).any()


# ---------------------------------------------------------------- DHN


def dhn_by_loops(u, similar, quantisation):
    """Return the loss and its gradient by the formulas of the authors' code in Caffe, without self-pairs."""
    n, b = u.shape
    z = np.tanh(u)
    loss, slope = 0.0, np.zeros((n, b))
    for i, j in itertools.permutations(range(n), 2):
        x = float(z[i] @ z[j])
        loss += (math.log(1 + math.exp(x)) - similar[i, j] * x) / (n * (n - 1))
        slope[i] += 2 * (1 / (1 + math.exp(-x)) - similar[i, j]) * z[j] / (n * (n - 1))
    for i, k in itertools.product(range(n), range(b)):
        loss += quantisation * math.log(math.cosh(abs(z[i, k]) - 1)) / n
        slope[i, k] += quantisation * math.tanh(abs(z[i, k]) - 1) * np.sign(z[i, k]) / n
    return loss, slope * (1 - z**2)


def test_dhn_and_its_gradient_equal_a_double_loop():
    u, similar = 1.5 * normal(7, 5), same_class(np.arange(7) % 3)
    loss, slope = dhn_by_loops(u.numpy(), similar.numpy().astype(float), 0.3)
    assert float(dhn_loss(u, similar, 0.3)) == pytest.approx(loss, abs=1e-12)
    np.testing.assert_allclose(gradient(lambda f: dhn_loss(f, similar, 0.3), u).numpy(), slope, atol=1e-12)


def test_dhn_of_codes_is_the_cross_entropy_of_their_inner_products():
    codes = 1e3 * torch.tensor([[1.0, 1, 1, 1], [1, 1, 1, 1], [1, -1, 1, -1]])
    costs = [softplus(-4), softplus(0), softplus(0)]  # the one similar pair, and the dissimilar ones
    assert float(dhn_loss(codes, same_class([0, 0, 1]), 5.0)) == pytest.approx(np.mean(costs), abs=1e-6)


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


def test_dtsh_with_two_levels_does_not_depend_on_their_values():
    u, similar = normal(8, 4), same_class(np.arange(8) % 3)
    assert float(dtsh_loss(u, 5 * similar, eta=0.1)) == float(dtsh_loss(u, similar.int(), eta=0.1))


# ---------------------------------------------------------------- HashNet


def test_hashnet_is_the_mean_over_similar_plus_the_mean_over_dissimilar_pairs():
    f, s = normal(7, 6), same_class(np.arange(7) % 3)
    beta, slope = 1.7, 10 / 6
    sums = {True: [], False: []}
    weighted, n_similar = 0.0, int(s.sum()) - 7
    for i, j in itertools.permutations(range(7), 2):
        x = slope * sum(math.tanh(beta * float(f[i, k])) * math.tanh(beta * float(f[j, k])) for k in range(6))
        loss = softplus(x) - float(s[i, j]) * x
        sums[bool(s[i, j])].append(loss)
        weighted += loss * 42 / (n_similar if s[i, j] else 42 - n_similar)  # the paper's weights
    expected = sum(sums[True]) / len(sums[True]) + sum(sums[False]) / len(sums[False])
    assert float(hashnet_loss(f, s, beta, slope)) == pytest.approx(expected, abs=1e-12)
    assert weighted / 42 == pytest.approx(expected)


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


def test_dsh_gradient_is_the_official_accumulation():
    u, s = normal(8, 5) / 2, same_class(np.arange(8) % 3)
    expected = torch.zeros_like(u)
    for i, j in itertools.combinations(range(8), 2):
        difference = u[i] - u[j]
        if s[i, j]:
            expected[i] += difference
            expected[j] -= difference
        elif float((difference**2).sum()) < 10:
            expected[i] -= difference
            expected[j] += difference
    expected = expected / 56
    is_up = (u >= 1) | ((u >= -1) & (u <= 0))
    expected += 0.2 * torch.where(is_up, 1.0, -1.0).double() / 8
    slope = gradient(lambda f: original_loss(f, s, 10.0, 0.2), u)
    np.testing.assert_allclose(slope.numpy(), expected.numpy(), atol=1e-12)


def test_dsh_costs_nothing_for_codes_that_do_all_it_asks():
    codes = torch.tensor([[1.0, 1, 1, 1]] * 2 + [[1.0, 1, -1, -1]] * 2 + [[-1.0, 1, -1, 1]] * 2)
    assert float(original_loss(codes, same_class([0, 0, 1, 1, 2, 2]), 8.0, 0.5)) == 0
    assert float(original_loss(codes, same_class([0, 1, 2, 2, 3, 3]), 8.0, 0.5)) > 0


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


@pytest.mark.parametrize(("n_differing", "expected"), [(0, 1.0), (1, 0.0), (2, 0.0), (3, 1.0)])
def test_dispersion_lets_similar_codes_off_between_a_twelfth_and_a_sixth_of_the_bits(n_differing, expected):
    codes = torch.ones(2, 12)
    codes[1, :n_differing] = -1
    pair_loss = 4 * float(dispersion_loss(codes, torch.ones(2, 2), 24.0, 0.01)) / 2  # of the one pair, without 1/n(n-1)
    assert pair_loss == pytest.approx(expected)  # b / 6 / 2 for identical codes


def test_a_margin_of_2_b_leaves_three_classes_of_codes_at_a_loss_and_one_of_b_need_not():
    opposite = torch.tensor([[1.0] * 4, [-1.0] * 4])
    assert float(dispersion_loss(opposite, torch.zeros(2, 2), 8.0, 0.1)) == 0
    codes = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)))
    triples = [torch.stack(three) for three in itertools.combinations(codes, 3)]
    losses = {margin: [float(dispersion_loss(u, torch.zeros(3, 3), margin, 0.1)) for u in triples] for margin in (4, 8)}
    assert min(losses[8]) > 0
    assert min(losses[4]) == 0


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
        *((name, params, rule) for name, params in VARIANTS for rule in (1, 3)),  # these have levels of all kinds
        *slow(*((name, params, rule) for name, params in VARIANTS for rule in (0, 2))),
        *((name, {}, 0) for name in (*OF_CLASSES, "dch", "adsh") if name != "greedyhash"),
    ],
)
def test_gradients_are_those_of_differences(name, params, rule):
    outputs = normal(6, 4, seed=6).requires_grad_()
    supervision = np.arange(6) % 3 if name in OF_CLASSES else affinities(6)[rule]
    fixed = outputs.detach().clone()  # stays while outputs are varied
    loss = lambda f: loss_of(name, f, supervision, all_outputs=fixed, **params)  # noqa: E731
    assert torch.autograd.gradcheck(loss, [outputs], atol=1e-6)


@pytest.mark.parametrize(("name", "params"), [*VARIANTS, *((name, {}) for name in OF_CLASSES if name != "mdsh")])
def test_gradients_follow_a_permutation_of_the_batch(name, params):
    labels, order = np.arange(12) % 4, np.random.default_rng(0).permutation(12)
    outputs = normal(12, 8)
    plain = gradient(lambda f: loss_of(name, f, labels, **params), outputs)
    permuted = gradient(lambda f: loss_of(name, f, labels[order], **params), outputs[order])
    np.testing.assert_allclose(permuted.numpy(), plain[order].numpy(), atol=1e-12)
    assert plain.abs().max() > 1e-3


@pytest.mark.parametrize("scale", [1e3, 1e-6, *slow(1.0)])
@pytest.mark.parametrize("n_items", [1, 12, *slow(2, 40)])
@pytest.mark.parametrize(
    ("name", "params"), [*VARIANTS, *((name, {}) for name in (*OF_CLASSES, "dch", "adsh", *UNSUPERVISED))]
)
def test_loss_and_gradient_are_finite_at_any_scale_and_batch_size(name, params, n_items, scale):
    outputs, classes = scale * normal(n_items, 16, dtype=torch.float32), np.eye(max(n_items, 10), dtype=np.uint8)
    labels = classes[np.arange(n_items) % 10]
    several = np.roll(labels, 1, axis=1) | labels
    for some in (labels, several, classes[np.zeros(n_items, dtype=int)], classes[:n_items]):
        losses = []

        def loss(f, some=some, losses=losses):
            losses.append(loss_of(name, f, some, classes=classes, **params))
            return losses[-1]

        assert torch.isfinite(gradient(loss, outputs)).all()
        assert torch.isfinite(losses[0])
        assert losses[0] == loss(outputs)  # and the same twice


@pytest.mark.parametrize("name", FIRST)
def test_levels_above_0_differ_only_for_graded_methods(name):
    outputs, levels = normal(9, 6), np.random.default_rng(1).choice([0, 0, 1, 2, 5], (9, 9))
    graded, binary = (float(loss_of(name, outputs, Explicit(matrix))) for matrix in (levels, levels > 0))
    is_graded = name in ("dtsh", "talr-ndcg")
    assert (graded != binary) == is_graded
    assert ("grades are lost" in " ".join(registry.get_method(name).__doc__.split())) != is_graded

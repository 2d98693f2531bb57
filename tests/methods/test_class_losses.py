"""Losses of classes, targets, and pairs since 2018 against loops written from the papers, in float64."""

import itertools
import math

import numpy as np
import pytest
import torch
from helpers.learned_methods import OF_CLASSES
from helpers.losses import begun, gradient, loss_of, normal, same_class, signs, softplus

from hashbench import registry
from hashbench.affinity import SameLabel
from hashbench.errors import Refusal
from hashbench.learning import networks
from hashbench.learning.batch import Batch
from hashbench.learning.classes import mean_over_labelled
from hashbench.learning.loop import Items
from hashbench.methods._straight_through import similarity_gap, straight_through
from hashbench.methods.adsh import _pulls, adsh_loss, best_codes
from hashbench.methods.bihalf import bihalf_loss, halves
from hashbench.methods.cibhash import cibhash_loss
from hashbench.methods.csq import csq_loss
from hashbench.methods.dch import dch_loss
from hashbench.methods.dfh import dfh_loss, update_centres
from hashbench.methods.dpn import dpn_loss
from hashbench.methods.dsdh import dsdh_loss, ridge, update_codes
from hashbench.methods.greedyhash import greedyhash_loss
from hashbench.methods.hyp2 import default_threshold, hyp2_loss
from hashbench.methods.idhn import idhn_loss
from hashbench.methods.mdsh import attraction, mdsh_loss
from hashbench.methods.orthohash import orthohash_loss

CLASSES = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [0, 0, 0]]).double()


def cosine(a, b):
    return float(a @ b) / (float(a @ a) * float(b @ b)) ** 0.5


def share(classes, i):
    return [float(value) / max(float(classes[i].sum()), 1) for value in classes[i]]


def cross_entropy(logits, shares):
    top = max(logits)
    total = top + math.log(sum(math.exp(one - top) for one in logits))
    return sum(part * (total - one) for part, one in zip(shares, logits, strict=True))


LABELLED = range(5)  # the last row of CLASSES has none


# ---------------------------------------------------------------- CSQ


def test_csq_is_the_cross_entropy_of_tanh_outputs_and_a_quantisation_term():
    u, targets = normal(6, 4), signs(6, 4, seed=1)
    total = 0.0
    for i in LABELLED:
        for k in range(4):
            t = math.tanh(float(u[i, k]))
            p, wanted = (t + 1) / 2, (float(targets[i, k]) + 1) / 2
            total += (-(wanted * math.log(p) + (1 - wanted) * math.log(1 - p)) + 0.3 * (abs(t) - 1) ** 2) / 4
    assert float(csq_loss(u, targets, CLASSES, 0.3)) == pytest.approx(total / 5, abs=1e-12)


def test_csq_has_a_gradient_where_tanh_saturates_and_none_at_the_target():
    u = torch.full((1, 2), -50.0).double()
    slope = gradient(lambda f: csq_loss(f, -torch.sign(u), torch.ones(1, 2).double(), 1e-4), u)
    target, n_bits = 1.0, 2  # against outputs of -50: -2 T sigmoid(-2 T u), the mean over bits
    np.testing.assert_allclose(slope.numpy(), -2 * target / (1 + math.exp(2 * target * -50)) / n_bits)
    assert float(csq_loss(1e3 * signs(2, 4), signs(2, 4), torch.ones(2, 2).double(), 1.0)) == 0


# ---------------------------------------------------------------- DPN


def test_dpn_equals_a_loop_over_items_classes_and_bits():
    u, targets = 2 * normal(6, 4), signs(3, 4, seed=1)
    total = sum(
        float(CLASSES[i, c]) * max(1.5 - float(u[i, k] * targets[c, k]), 0) / 4
        for i, c, k in itertools.product(LABELLED, range(3), range(4))
    )
    assert float(dpn_loss(u, targets, CLASSES, 1.5)) == pytest.approx(total / 5, abs=1e-12)


def test_adapted_targets_of_dpn_are_the_majority_of_codes_and_stay_where_two_would_become_one():
    method, labels = registry.get_method("dpn")(3, adapt_every=2), np.array([0, 0, 0, 1, 1])
    own = method._begin(Items(torch.zeros(5, 2), SameLabel(labels, labels), labels), torch.Generator())
    before = own.targets.clone()
    outputs = torch.tensor([[1, 1, -1], [1, -1, -1], [1, 1, 1], [-1, -1, 1], [-1, 1, 1]]).float()

    def batch(all_outputs, epoch):
        rows = np.arange(5)
        affinity = SameLabel(labels, labels)
        return Batch(outputs, rows, all_outputs, affinity, rows, epoch, training_labels=labels, own=own)

    method._end_epoch(batch(outputs, 0))
    assert torch.equal(own.targets, before)  # only every other epoch
    method._end_epoch(batch(torch.ones(5, 3), 1))
    assert torch.equal(own.targets, before)  # both would be all ones
    method._end_epoch(batch(outputs, 3))
    assert own.targets.tolist() == [[1, 1, -1], [-1, float(before[1, 1]), 1]]
    method._end(own)
    assert method.targets_.tolist() == own.targets.tolist()


# ---------------------------------------------------------------- OrthoHash


@pytest.mark.parametrize("form", ["cosine", "arc"])
def test_orthohash_equals_a_loop(form):
    u, targets = normal(6, 4), signs(3, 4, seed=1)
    total = 0.0
    for i in LABELLED:
        logits = []
        for c in range(3):
            cos, margin = cosine(u[i], targets[c]), 0.3 * float(CLASSES[i, c])
            logits.append(2.5 * (math.cos(math.acos(cos) + margin) if form == "arc" else cos - margin))
        total += cross_entropy(logits, share(CLASSES, i))
    loss = orthohash_loss(u, targets, CLASSES, 2.5, 0.3, form)
    assert float(loss) == pytest.approx(total / 5, abs=1e-12)


def test_batch_normalisation_becomes_part_of_the_last_layer():
    inputs = normal(50, 5)
    head = networks.make_head(5, 8, 16, torch.Generator().manual_seed(0), normalise=True)
    for _ in range(5):
        head(inputs)  # running statistics
    torch.nn.init.normal_(head[-1].weight)
    torch.nn.init.normal_(head[-1].bias)
    head = head.eval()
    with torch.no_grad():
        expected = head(inputs)
        networks.fold(head)
        folded = head(inputs)
    assert not any(isinstance(layer, torch.nn.BatchNorm1d) for layer in head)
    np.testing.assert_allclose(folded.numpy(), expected.numpy(), atol=1e-12)


# ---------------------------------------------------------------- GreedyHash


def test_greedyhash_equals_a_loop():
    u, w = normal(6, 4), normal(3, 4, seed=1)
    total = 0.0
    for i in LABELLED:
        code = [1.0 if value > 0 else -1.0 for value in u[i]]
        logits = [sum(code[k] * float(w[c, k]) for k in range(4)) for c in range(3)]
        total += cross_entropy(logits, share(CLASSES, i))
        total += 0.3 * sum(abs(abs(float(value)) - 1) ** 3 for value in u[i]) / 4
    assert float(greedyhash_loss(u, w, CLASSES, 0.3)) == pytest.approx(total / 5, abs=1e-12)


def test_greedyhash_passes_the_gradient_of_the_codes_on_as_it_is():
    u, w = 3 * normal(6, 4), normal(3, 4, seed=1)
    codes = torch.where(u > 0, 1.0, -1.0).double()
    shares = CLASSES / CLASSES.sum(1, keepdim=True).clamp(min=1)
    by_code = gradient(lambda b: -(shares * torch.log_softmax(b @ w.T, 1)).sum() / 5, codes)
    torch.testing.assert_close(gradient(lambda f: greedyhash_loss(f, w, CLASSES, 0.0), u), by_code, rtol=0, atol=1e-15)
    assert straight_through(1e20 * u).abs().eq(1).all()  # exact codes, whatever the outputs


# ---------------------------------------------------------------- without labels


def test_the_gap_of_similarities_pairs_the_halves_of_a_batch_and_leaves_an_odd_row_out():
    codes, features = signs(7, 4), normal(7, 5, seed=1)
    total = sum((cosine(codes[i], codes[i + 3]) - cosine(features[i], features[i + 3])) ** 2 for i in range(3))
    assert float(similarity_gap(codes, features)) == pytest.approx(total / 3, abs=1e-12)
    assert float(similarity_gap(codes[:1], features[:1])) == 0


def test_half_of_a_batch_gets_each_bit():
    assert not halves(normal(8, 5)).sum(dim=0).any()
    assert (halves(normal(7, 5)).sum(dim=0) == -1).all()
    assert halves(torch.zeros(4, 1)).flatten().tolist() == [1, 1, -1, -1]  # of equal ones the first
    u = normal(6, 3)
    for column, codes in zip(u.T, halves(u).T, strict=True):
        assert {int(i) for i in torch.nonzero(codes == 1)} == set(np.argsort(-column.numpy())[:3])


def test_the_gradient_of_bihalf_is_that_of_its_layer():
    u, features = normal(6, 4), normal(6, 5, seed=1)
    codes = halves(u)
    by_code = gradient(lambda b: similarity_gap(b, features), codes)
    expected = by_code + 6.0 * (u - codes) / u.numel()
    torch.testing.assert_close(gradient(lambda f: bihalf_loss(f, features, 6.0), u), expected)


def kl(p, q):
    return sum(a * math.log(a / b) + (1 - a) * math.log((1 - a) / (1 - b)) for a, b in zip(p, q, strict=True))


def test_cibhash_and_its_gradient_equal_loops():
    n, n_bits, temperature, weight = 5, 4, 0.3, 0.7
    views = 2 * normal(2, n, n_bits)
    u = [[float(value) for value in row] for row in views.flatten(0, 1)]
    p = [[1 / (1 + math.exp(-value)) for value in row] for row in u]
    b = [[1.0 if value > 0 else -1.0 for value in row] for row in u]
    other = [(i + n) % (2 * n) for i in range(2 * n)]
    cosines = [[sum(map(math.prod, zip(x, y, strict=True))) / n_bits for y in b] for x in b]
    total, slopes = 0.0, [[0.0] * n_bits for _ in u]
    for i in range(2 * n):
        powers = [0.0 if j == i else math.exp(cosines[i][j] / temperature) for j in range(2 * n)]
        total -= math.log(powers[other[i]] / sum(powers)) / (2 * n)
        total += weight * kl(p[i], p[other[i]]) / (2 * n)
        for j in range(2 * n):
            pull = (powers[j] / sum(powers) - (j == other[i])) / (2 * n * temperature)
            for x, y in ((i, j), (j, i)):  # the slope of cos(b_x, b_y) by b_x, which are of norm sqrt(n_bits)
                for k in range(n_bits):
                    slopes[x][k] += pull * (b[y][k] - cosines[x][y] * b[x][k]) / n_bits
    for i, k in itertools.product(range(2 * n), range(n_bits)):
        slopes[i][k] += weight * (u[i][k] - u[other[i]][k]) / (2 * n)  # KL by p, whose second is fixed
        slopes[i][k] *= p[i][k] * (1 - p[i][k])
    loss = lambda f: cibhash_loss(*f, temperature, weight)  # noqa: E731
    assert float(loss(views)) == pytest.approx(total, abs=1e-12)
    np.testing.assert_allclose(gradient(loss, views).flatten(0, 1).numpy(), slopes, rtol=0, atol=1e-12)


# ---------------------------------------------------------------- DCH


def test_dch_equals_a_double_loop():
    u, classes = normal(6, 4), [0, 0, 1, 2, 1, 0]
    costs = {True: [], False: []}
    for i, j in itertools.permutations(range(6), 2):
        d, similar = 2 * (1 - cosine(u[i], u[j])), classes[i] == classes[j]
        costs[similar].append(math.log(1 + d / 20) if similar else math.log(1 + 20 / d))
    corner = torch.ones(4).double()
    quantisation = [math.log(1 + 2 * (1 - cosine(row.abs(), corner)) / 20) for row in u]
    expected = sum(np.mean(costs[kind]) for kind in costs) + 0.1 * np.mean(quantisation)
    similar = same_class(classes)
    assert float(dch_loss(u, similar, 20.0, 0.1)) == pytest.approx(expected, abs=1e-12)


def test_dch_is_finite_where_outputs_are_equal():
    u = torch.ones(4, 8).double()
    for similar in (torch.ones(4, 4).bool(), torch.zeros(4, 4).bool()):
        assert torch.isfinite(dch_loss(u, similar, 20.0, 0.1))
        assert torch.isfinite(gradient(lambda f, s=similar: dch_loss(f, s, 20.0, 0.1), u)).all()


# ---------------------------------------------------------------- HyP2


@pytest.mark.parametrize(
    ("n_bits", "n_classes", "threshold"),
    [
        (32, 21, 0.0),
        (32, 80, 0.125),
        (64, 10, 1 - 66 / 64),
        (12, 38, 1 / 3),
        (40, 21, 1 - 34 / 36),
        (8, 2, -1.0),
        (16, 129, 1 - 10 / 16),  # the code of Nordstrom and Robinson, 256 words at distance 6, is not linear
    ],
)
def test_thresholds_of_hyp2_are_of_the_best_linear_codes(n_bits, n_classes, threshold):
    assert default_threshold(n_bits, n_classes) == pytest.approx(threshold)


def test_hyp2_equals_loops():
    u, proxies = normal(6, 4), normal(4, 4, seed=1)
    rows = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0]]
    classes = torch.tensor(rows).double()
    near, far, pairs = [], [], []
    for i, c in itertools.product((0, 1, 2, 3, 5), range(4)):
        cos = cosine(u[i], proxies[c])
        (near if classes[i, c] else far).append(1 - cos if classes[i, c] else max(cos - 0.1, 0))
    for i, j in itertools.product(range(6), repeat=2):
        if classes[i].sum() > 1 and classes[j].sum() > 1 and not (classes[i] * classes[j]).any():
            pairs.append(max(cosine(u[i], u[j]) - 0.1, 0))
    assert len(pairs) == 2
    expected = np.mean(near) + np.mean(far) + 0.5 * np.mean(pairs)
    assert float(hyp2_loss(u, proxies, classes, 0.1, 0.5)) == pytest.approx(expected, abs=1e-12)


# ---------------------------------------------------------------- MDSH


def test_mdsh_equals_a_loop():
    u, targets = normal(6, 4), signs(3, 4, seed=1)
    total = 0.0
    for i in LABELLED:
        t = torch.tanh(u[i])
        logits = [2 * cosine(t, targets[c]) for c in range(3)]
        p = [math.exp(one) / sum(map(math.exp, logits)) for one in logits]
        total -= sum(math.log(p[c]) if CLASSES[i, c] else math.log(1 - p[c]) for c in range(3)) / 3
        total += 0.3 * float((t.abs() - 1).square().mean())
    assert float(mdsh_loss(u, targets, CLASSES, 0.3)) == pytest.approx(total / 5, abs=1e-12)


def test_the_attraction_of_mdsh_equals_a_loop():
    u, averages = normal(4, 3), normal(7, 3, seed=1)
    similar = normal(4, 7, seed=2) > 0
    t = u.tanh()
    costs = [
        softplus((1 - cosine(t[i], averages[j])) / 2) for i, j in itertools.product(range(4), range(7)) if similar[i, j]
    ]
    assert float(attraction(u, averages, similar)) == pytest.approx(np.mean(costs), abs=1e-12)


def test_the_attraction_of_mdsh_and_its_gradient_are_those_of_all_pairs_at_once():
    u, averages = normal(4, 3).requires_grad_(), normal(2500, 3, seed=1)  # three blocks
    similar = normal(4, 2500, seed=2) > 0
    cosines = torch.nn.functional.cosine_similarity(u.tanh()[:, None], averages, dim=2)
    expected = torch.nn.functional.softplus((1 - cosines) / 2)[similar].mean()
    loss = attraction(u, averages, similar)
    torch.testing.assert_close(loss, expected, rtol=0, atol=1e-12)
    torch.testing.assert_close(*(torch.autograd.grad(one, u) for one in (loss, expected)), rtol=0, atol=1e-12)


# ---------------------------------------------------------------- DFH


def test_dfh_equals_a_double_loop_and_stays_finite():
    u, cache, codes = normal(4, 5), normal(7, 5, seed=1), signs(4, 5, seed=2)
    similar = normal(4, 7, seed=3) > 0
    pairs = []
    for i, j in itertools.product(range(4), range(7)):
        theta = float(u[i] @ cache[j]) / 2
        pairs.append(softplus(1.5 - theta) if similar[i, j] else softplus(1.5 + theta))
    expected = np.mean(pairs) + 0.5 * float((codes - u).square().mean())
    assert float(dfh_loss(u, cache, similar, codes, 1.5, 0.5)) == pytest.approx(expected, abs=1e-12)
    assert torch.isfinite(gradient(lambda f: dfh_loss(f, 1e3 * cache, similar, codes, 1.5, 0.5), 1e3 * u)).all()


def test_each_centre_of_dfh_is_the_best_that_the_others_allow():
    codes, weights, centres = signs(9, 4), torch.eye(3).double()[np.arange(9) % 3], signs(3, 4, seed=1)
    updated = centres.clone()
    update_centres(updated, codes, weights, 0.7)

    def cost(c, centre, before):
        others = [e for e in range(3) if e != c]
        fit = (codes - weights[:, others] @ before[others] - torch.outer(weights[:, c], centre)).square().sum()
        return float(fit + 2 * 0.7 * sum(centre @ before[e] for e in others))

    for c in range(3):
        before = torch.cat([updated[:c], centres[c:]])
        choices = [torch.tensor(one).double() for one in itertools.product((-1.0, 1.0), repeat=4)]
        assert cost(c, updated[c], before) == pytest.approx(min(cost(c, one, before) for one in choices))


def test_a_class_that_the_batch_lacks_goes_where_the_others_are_not():
    centres = torch.tensor([[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    weights = torch.eye(3)[[0, 1]]
    update_centres(centres, torch.tensor([[1.0, 1.0], [1.0, -1.0]]), weights, 0.1)
    assert centres[2].tolist() == [-1.0, -1.0]  # the others sum to 2 and 0, and no preference is -1


# ---------------------------------------------------------------- DSDH


def test_dsdh_equals_a_double_loop():
    u, cache, codes = normal(4, 5), normal(7, 5, seed=1), signs(4, 5, seed=2)
    similar = normal(4, 7, seed=3) > 0
    loss = 3.0 * float((codes - u).square().sum())
    for i, j in itertools.product(range(4), range(7)):
        theta = float(u[i] @ cache[j]) / 2
        loss += softplus(theta) - float(similar[i, j]) * theta
    assert float(dsdh_loss(u, cache, similar, codes, 3.0)) == pytest.approx(loss / 28, abs=1e-12)


def dsdh_objective(codes, outputs, classes, weights, mu, nu, eta):
    fit = (classes - codes @ weights).square().sum()
    return float(mu * fit + nu * weights.square().sum() + eta * (codes - outputs).square().sum())


def test_the_classifier_of_dsdh_is_the_best_one():
    codes, classes = signs(6, 4), CLASSES[:6]
    weights = ridge(codes, classes, 0.3)
    best = dsdh_objective(codes, codes, classes, weights, 2.0, 0.6, 1.0)
    for seed in range(3):
        near = weights + 1e-3 * normal(4, 3, seed=seed)
        assert dsdh_objective(codes, codes, classes, near, 2.0, 0.6, 1.0) > best


def test_codes_of_dsdh_are_best_bit_by_bit():
    mu = 3.0
    outputs, start, weights = normal(5, 3), signs(5, 3, seed=1), normal(3, 3, seed=2)
    classes = CLASSES[:5]  # single and several
    swept = start.clone()
    update_codes(swept, outputs, classes, weights, 2.0 / mu)
    for bit in range(3):  # each column as the sweep meets it: those before it new, those behind it old
        choices = []
        for column in itertools.product((-1.0, 1.0), repeat=5):
            tried = torch.cat([swept[:, :bit], torch.tensor(column).double()[:, None], start[:, bit + 1 :]], dim=1)
            choices.append(dsdh_objective(tried, outputs, classes, weights, mu, 0.1, 2.0))
        found = torch.cat([swept[:, : bit + 1], start[:, bit + 1 :]], dim=1)
        assert dsdh_objective(found, outputs, classes, weights, mu, 0.1, 2.0) == pytest.approx(min(choices))


# ---------------------------------------------------------------- IDHN


def test_idhn_and_its_gradient_equal_the_authors_formula_over_pairs():
    """Of rows that have a class: some pairs equal, some partly so, some without one in common."""
    classes = torch.tensor([[1, 0, 0], [0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 0], [0, 0, 0]]).double()

    def by_loops(u):
        d, costs = u / (1 + u.abs()), []
        for i, j in itertools.permutations(range(6), 2):
            w = cosine(classes[i], classes[j])
            p = d[i] @ d[j]
            x = 5 * p / 4
            is_soft = 0.01 < w < 0.99
            costs.append(0.2 * 4 * ((p + 4) / 2 / 4 - w) ** 2 if is_soft else torch.log(1 + torch.exp(x)) - w * x)
        return torch.stack(costs).mean() + 0.3 * ((d[:6].abs() - 1).abs()).mean()

    def loss(u):
        return idhn_loss(u, classes, 5.0, 0.2, 0.3)

    u = 2 * normal(7, 4)
    assert float(loss(u)) == pytest.approx(float(by_loops(u)), abs=1e-12)
    torch.testing.assert_close(gradient(loss, u), gradient(by_loops, u))


# ---------------------------------------------------------------- ADSH


def zero_sum(similar):
    """Return 1 for similar pairs, and for others the number with which all sum to 0."""
    return similar.double() - (~similar).double() * float(similar.sum()) / max(int((~similar).sum()), 1)


@pytest.mark.parametrize(("n_items", "share"), [(6, 0.4), (6, 1), (2500, 0.4)])
def test_adsh_and_its_gradient_are_those_of_all_pairs_at_once(n_items, share):
    u, codes = normal(4, 3).requires_grad_(), signs(n_items, 3, seed=1)
    similar = torch.rand(4, n_items, generator=torch.Generator().manual_seed(2)) < share
    of_pairs = (u.tanh() @ codes.T - 3 * zero_sum(similar)).square().sum()
    expected = (of_pairs + 200 * (codes[:4] - u.tanh()).square().sum()) / (4 * n_items)
    loss = adsh_loss(u, codes, codes[:4], similar, 200.0)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(*(torch.autograd.grad(value, u)[0] for value in (loss, expected)))


def test_adsh_learns_nothing_from_codes_that_are_not_yet_found():
    zeros = torch.zeros(6, 3).double()
    slope = gradient(lambda f: adsh_loss(f, zeros, zeros[:4], torch.eye(6)[:4] > 0, 200.0), normal(4, 3))
    assert not slope.any()


def test_codes_of_adsh_are_best_column_by_column():
    n_items, n_bits, gamma = 6, 3, 2.0
    relaxed = torch.tanh(normal(n_items, n_bits))
    s = zero_sum(torch.tensor(np.equal.outer(np.arange(6) % 2, np.arange(6) % 2)))

    def cost(codes):
        return float((relaxed @ codes.T - n_bits * s).square().sum() + gamma * (codes - relaxed).square().sum())

    start = signs(n_items, n_bits, seed=10)
    pull = s.T @ relaxed
    for bit in range(n_bits):  # each column as the sweep meets it: those before it new, those behind it old
        swept = start.clone()
        best_codes(swept, relaxed, pull, gamma)
        choices = []
        for column in itertools.product((-1.0, 1.0), repeat=n_items):
            tried = torch.cat([swept[:, :bit], torch.tensor(column).double()[:, None], start[:, bit + 1 :]], dim=1)
            choices.append(cost(tried))
        assert cost(torch.cat([swept[:, : bit + 1], start[:, bit + 1 :]], dim=1)) == pytest.approx(min(choices))


# ---------------------------------------------------------------- all


def test_gradients_of_angles_are_those_of_differences():
    outputs, targets = normal(len(CLASSES), 8, seed=6).requires_grad_(), normal(CLASSES.shape[1], 8, seed=7).sign()
    assert torch.autograd.gradcheck(lambda u: orthohash_loss(u, targets, CLASSES, 2.5, 0.3, "arc"), [outputs])


@pytest.mark.parametrize("name", [*OF_CLASSES, "dch", "adsh"])
def test_items_without_a_class_count_where_pairs_do(name):
    """They are similar to none, as in an affinity; losses of only classes leave them out."""
    labels = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 1, 1]], dtype=np.uint8)
    slope = gradient(lambda f: loss_of(name, f, labels), normal(6, 8))
    assert bool(slope[3:5].any()) == (name in ("adsh", "dch", "dfh", "dsdh"))
    assert slope[:3].abs().max() > 1e-4
    assert torch.isfinite(gradient(lambda f: loss_of(name, f, 0 * labels, classes=labels), normal(6, 8))).all()


def test_what_an_item_without_a_class_costs_does_not_matter():
    classes = torch.tensor([[1, 0], [0, 1], [0, 0]])
    costs = torch.tensor([1.0, 3.0, math.nan], requires_grad=True)
    mean = mean_over_labelled(costs, classes)
    mean.backward()
    assert mean.item() == 2
    assert costs.grad.tolist() == [0.5, 0.5, 0]
    assert mean_over_labelled(costs.detach(), 0 * classes).item() == 0


@pytest.mark.parametrize("name", OF_CLASSES)
def test_one_class_per_item_is_the_same_as_labels_or_as_a_column(name):
    outputs, columns = normal(4, 8), np.eye(3, dtype=np.uint8)[[0, 1, 2, 1]]
    first, second = (float(loss_of(name, outputs, labels).detach()) for labels in ([3, 5, 9, 5], columns))
    assert first == pytest.approx(second, abs=1e-12)


# ---------------------------------------------------------------- what methods keep from step to step


LABELS = np.array([0, 1, 2, 0, 1])


def test_mdsh_averages_outputs_and_its_pairs_count_after_the_epochs_that_were_asked():
    outputs = normal(5, 4)
    method, batch = begun("mdsh", outputs, LABELS, epoch=9)
    before = batch.own.averages.clone()
    assert before.std() > 0.5  # they begin anywhere
    method._end_step(batch)
    np.testing.assert_allclose(batch.own.averages, 0.9 * before + 0.1 * outputs.tanh())
    early, late = (loss_of("mdsh", outputs, LABELS, epoch=epoch) for epoch in (8, 9))
    method, batch = begun("mdsh", outputs, LABELS, epoch=9)
    similar = same_class(LABELS)
    assert float(late - early) == pytest.approx(float(attraction(outputs, batch.own.averages, similar)), abs=1e-12)
    assert float(loss_of("mdsh", outputs, LABELS, pair_weight=0.0)) == pytest.approx(float(early), abs=1e-12)


def test_dfh_finds_its_centres_in_each_step_and_pushes_outputs_towards_them():
    outputs = normal(5, 4)
    method, batch = begun("dfh", outputs, LABELS)
    assert not batch.own.centres.any()
    np.testing.assert_array_equal(method._codes(batch), outputs.sign())
    method._end_step(batch)
    centres = torch.zeros(3, 4).double()
    update_centres(centres, outputs.sign(), torch.eye(3).double()[LABELS], 1.0)
    np.testing.assert_array_equal(batch.own.centres, centres)
    far = 10 * torch.ones(3, 4).double()
    batch.own.centres.copy_(far)
    assert (method._codes(batch) == 1).all()  # u + mu M, and M is large


def test_dsdh_finds_its_codes_after_each_epoch_and_items_without_a_class_get_their_signs():
    labels = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 1, 1]], dtype=np.uint8)
    outputs = normal(5, 4)
    params = {"mu": 40.0, "nu": 0.1, "eta": 1.0, "dcc_iter": 3}
    method, batch = begun("dsdh", outputs, labels, **params)
    first = dsdh_loss(outputs, outputs, batch.all_levels > 0, outputs.sign(), 1.0)
    assert float(method._loss(batch)) == pytest.approx(float(first), abs=1e-12)  # no codes yet
    method._end_epoch(batch)
    has_class = [0, 1, 2, 4]
    expected, classes = outputs.sign(), torch.from_numpy(labels).double()[has_class]
    codes = expected[has_class]
    for _ in range(3):
        update_codes(codes, outputs[has_class], classes, ridge(codes, classes, 0.1 / 40), 1 / 40)
    expected[has_class] = codes
    np.testing.assert_array_equal(batch.own.codes, expected)
    assert (codes != outputs[has_class].sign()).any()
    late = dsdh_loss(outputs, outputs, batch.all_levels > 0, expected, 1.0)
    assert float(method._loss(batch)) == pytest.approx(float(late), abs=1e-12)
    batch.own.codes[3] *= -1  # as if outputs had changed
    method._end_epoch(batch)
    np.testing.assert_array_equal(batch.own.codes[3], outputs[3].sign())


def test_what_pulls_codes_of_adsh_is_the_product_with_all_similarities(monkeypatch):
    monkeypatch.setattr("hashbench.methods.adsh._BLOCK", 3)
    method, batch = begun("adsh", normal(5, 4), LABELS)
    s = np.equal.outer(LABELS, LABELS).astype(float)
    s[s == 0] = -s.sum() / (s == 0).sum()
    np.testing.assert_allclose(_pulls(batch, batch.all_outputs.tanh()), s.T @ batch.all_outputs.tanh().numpy())
    before = batch.own.codes.clone()
    expected = before.clone()
    best_codes(expected, batch.all_outputs.tanh(), torch.from_numpy(s.T) @ batch.all_outputs.tanh(), method.gamma)
    for epoch, is_sweep in ((19, False), (21, True)):  # every third
        method, batch = begun("adsh", normal(5, 4), LABELS, epoch=epoch)
        method._end_epoch(batch)
        np.testing.assert_array_equal(batch.own.codes, expected if is_sweep else before)


def test_proxies_of_hyp2_begin_as_those_of_the_authors_do():
    """Kaiming's normal of fan-out: n_classes proxies of standard deviation sqrt(2 / n_classes)."""
    labels = np.arange(400) % 200
    _, batch = begun("hyp2", normal(400, 64), labels)
    (proxies,) = batch.own.parameters()
    assert proxies.shape == (200, 64)
    assert float(proxies.detach().std()) == pytest.approx((2 / 200) ** 0.5, rel=0.05)


def test_losses_have_the_parameters_of_their_methods():
    outputs = normal(5, 4)
    classes = torch.eye(3).double()[LABELS]
    method, _ = begun("csq", outputs, LABELS)
    targets = torch.from_numpy(method.targets_).double()
    expected = {
        "csq": csq_loss(outputs, targets[LABELS], classes, 1e-4),
        "orthohash": orthohash_loss(outputs, targets, classes, 4**0.5, 0.4, "cosine"),
        "dch": dch_loss(outputs, same_class(LABELS), 20.0, 0.1),
    }
    for name, value in expected.items():
        assert float(loss_of(name, outputs, LABELS)) == pytest.approx(float(value), abs=1e-12), name


@pytest.mark.parametrize("dtype", [bool, np.uint16, np.uint64])
def test_labels_may_be_of_any_whole_numbers(dtype):
    X, y = normal(20, 5).float().numpy(), np.arange(20) % 2
    fitted = [registry.get_method("csq")(8, epochs=1, n_hidden=8).fit(X, labels) for labels in (y, y.astype(dtype))]
    np.testing.assert_array_equal(fitted[0].transform(X), fitted[1].transform(X))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.zeros(5, dtype=np.int64), "all 5 training items have the same class"),
        (np.eye(3, dtype=np.uint8)[[1, 1, 1]], "all 3 training items have the same class"),
        (np.zeros((4, 3), dtype=np.uint8), "all 4 training items have none"),
    ],
)
def test_fewer_classes_than_two_are_refused(labels, message):
    with pytest.raises(Refusal, match=message):
        begun("csq", normal(len(labels), 8), labels)

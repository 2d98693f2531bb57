"""Mutual information, AP and DCG on soft histograms."""

import math

import numpy as np
import pytest
import torch
from helpers import oracles
from helpers.losses import begun, loss_of, normal, same_class
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from hashbench.affinity import Explicit
from hashbench.learning.soft_histogram import soft_histogram
from hashbench.methods.mihash import mutual_information
from hashbench.methods.talr_ap import full_ap, simplified_ap
from hashbench.methods.talr_ndcg import full_dcg, ideal_dcg, simplified_dcg

small_ties = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=6).filter(
    lambda ties: any(n_rel for n_rel, _ in ties)
)  # (relevant, irrelevant) items of each tie
large_ties = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 300)), min_size=1, max_size=20).filter(
    lambda ties: any(n_rel for n_rel, _ in ties)
)


def double(values):
    return torch.tensor(np.atleast_2d(values), dtype=torch.float64)


def sizes(ties):
    """c and c+ of ties given as (relevant, irrelevant)."""
    array = np.array(ties)
    return double(array.sum(axis=1)), double(array[:, 0])


def exact_ap(ties):
    """Tie-aware AP from the mean of 1/rank over each tie, in plain numbers (TALR eq. 6)."""
    total, before, rel_before = 0.0, 0, 0
    for n_rel, n_irr in ties:
        size = n_rel + n_irr
        for rank in range(1, size + 1):
            others = (n_rel - 1) * (rank - 1) / (size - 1) if size > 1 else 0
            total += n_rel / size * (rel_before + 1 + others) / (before + rank)
        before, rel_before = before + size, rel_before + n_rel
    return total / rel_before


def over_all_orders(score, ties):
    distances = [d for d, (n_rel, n_irr) in enumerate(ties) for _ in range(n_rel + n_irr)]
    levels = [level for n_rel, n_irr in ties for level in [1] * n_rel + [0] * n_irr]
    return oracles.over_orders(score, distances, levels)[0]


def soft_rows(n_rows=1000, n_bins=17, seed=0):
    """Soft histograms with bins of exactly 0 and 1, next to nothing, nearly 1, and anything else."""
    rng = np.random.default_rng(seed)
    special = rng.choice([0.0, 1e-9, 1e-5, 1 - 1e-5, 1.0, 1 + 1e-5, -1], (n_rows, n_bins))
    size = np.where(special < 0, rng.exponential(3, (n_rows, n_bins)), special)
    n_rel = size * np.where(rng.random((n_rows, n_bins)) < 0.3, rng.integers(0, 2, (n_rows, n_bins)), rng.random())
    return double(size), double(n_rel)


# ---------------------------------------------------------------- MIHash


def random_histograms(n_rows=40, n_bins=13, seed=0):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.choice([0.1, 1, 5], (n_rows, 1, 1)), (n_rows, 2, n_bins))
    return torch.tensor(counts, dtype=torch.float64)


def test_mutual_information_is_that_of_scipys_entropies():
    histograms = random_histograms()
    for histogram, information in zip(histograms.numpy(), mutual_information(histograms), strict=True):
        if (histogram.sum(axis=1) == 0).any():
            assert float(information) == 0
            continue
        joint = histogram / histogram.sum()
        of_class, of_distance = joint.sum(axis=1), joint.sum(axis=0)
        by_joint = entropy(of_class, base=2) + entropy(of_distance, base=2) - entropy(joint.ravel(), base=2)
        assert float(information) == pytest.approx(by_joint, abs=1e-9)


def test_gradient_is_finite_with_empty_bins_and_empty_classes():
    histograms = random_histograms().requires_grad_()
    assert (histograms == 0).any(dim=2).any()
    assert (histograms.sum(dim=2) == 0).any()
    mutual_information(histograms).sum().backward()
    assert torch.isfinite(histograms.grad).all()


# ---------------------------------------------------------------- TALR-AP


@given(small_ties.filter(lambda ties: max(map(sum, ties)) <= 4 and sum(map(sum, ties)) <= 9))
def test_full_ap_is_the_mean_over_all_orders_of_tied_items(ties):
    expected = over_all_orders(oracles.average_precision, ties)
    assert exact_ap(ties) == pytest.approx(expected, abs=1e-12)
    assert float(full_ap(*sizes(ties))) == pytest.approx(expected, abs=1e-12)


@given(large_ties)
def test_full_ap_is_exact_on_whole_counts(ties):
    assert float(full_ap(*sizes(ties))) == pytest.approx(exact_ap(ties), abs=1e-10)


@given(st.lists(st.sampled_from([(0, 0), (1, 0), (0, 1)]), min_size=1, max_size=12).filter(lambda f: (1, 0) in f))
def test_without_ties_both_relaxations_are_ordinary_ap(ties):
    ranked = [n_rel for n_rel, n_irr in ties if n_rel + n_irr]
    for relaxed in (full_ap, simplified_ap):
        assert float(relaxed(*sizes(ties))) == pytest.approx(oracles.average_precision(ranked), abs=1e-12)


@given(large_ties)
def test_simplified_ap_is_between_0_and_1_and_near_the_exact_one(ties):
    simplified = float(simplified_ap(*sizes(ties)))
    assert 0 < simplified <= 1 + 1e-12
    assert -37 / 300 - 1e-12 <= simplified - exact_ap(ties) <= 0.0749
    last = max(d for d, (n_rel, _) in enumerate(ties) if n_rel)
    is_clean = not any(n_irr for _, n_irr in ties[: last + 1])
    assert is_clean == (simplified > 1 - 1e-9)


def test_extreme_error_is_attained():
    ties = [(1, 4)]
    assert exact_ap(ties) == pytest.approx(0.45666667)
    assert float(simplified_ap(*sizes(ties))) == pytest.approx(1 / 3)


def test_full_ap_and_its_gradient_are_finite_on_any_soft_histogram():
    size, n_rel = (part.requires_grad_() for part in soft_rows())
    values = full_ap(size, n_rel)
    values.sum().backward()
    for part in (values, size.grad, n_rel.grad):
        assert torch.isfinite(part).all()
    has_positives = n_rel.sum(dim=1) > 1e-3
    assert values[has_positives].min() > 0
    assert values[has_positives].max() < 1.5
    assert size.grad.abs().max() < 100


def test_full_ap_goes_smoothly_through_a_tie_of_one_and_an_empty_tie():
    def at(first):
        return float(full_ap(double([first, 3, 2]), double([0.5 * first, 1, 1])))

    assert at(1 + 1e-6) == pytest.approx(at(1), abs=1e-5)
    for edge in (1 - 1e-3, 1 + 1e-3, 1e-4):  # where a series takes over
        assert at(edge * (1 + 1e-9)) == pytest.approx(at(edge * (1 - 1e-9)), abs=1e-8)
    assert at(1e-12) == pytest.approx(at(0), abs=1e-9)
    values = [at(x) for x in np.linspace(0, 2, 201)]
    assert np.abs(np.diff(values, 2)).max() < 1e-3


def test_full_ap_of_only_relevant_items_is_1():
    size = soft_rows()[0][:500] + 1e-3
    np.testing.assert_allclose(full_ap(size, size).numpy(), 1, atol=1e-8)


# ---------------------------------------------------------------- TALR-NDCG


def exact_dcg(size, gain):
    before, total = 0, 0.0
    for n, g in zip(size, gain, strict=True):
        if n:
            total += g / n * sum(1 / math.log2(rank + 1) for rank in range(before + 1, before + n + 1))
        before += n
    return total


@given(large_ties)
def test_full_dcg_is_exact_on_whole_counts_and_simplified_dcg_at_most_a_fifth_below(ties):
    size, n_rel = sizes(ties)
    gain = 3.0 * n_rel
    exact = exact_dcg([sum(tie) for tie in ties], gain[0].tolist())
    assert float(full_dcg(size, gain)) == pytest.approx(exact, rel=1e-11)
    assert 0.806 * exact <= float(simplified_dcg(size, gain)) <= exact * (1 + 1e-12)


def test_without_ties_both_relaxations_are_ordinary_dcg():
    size = double([1, 0, 1, 1, 0, 1])
    gain = double([3.0, 0, 0, 7, 0, 1])
    expected = 3 / math.log2(2) + 7 / math.log2(4) + 1 / math.log2(5)
    assert float(simplified_dcg(size, gain)) == pytest.approx(expected, abs=1e-12)
    assert float(full_dcg(size, gain)) == pytest.approx(expected, abs=1e-12)


@given(small_ties.filter(lambda ties: max(map(sum, ties)) <= 4 and sum(map(sum, ties)) <= 8))
def test_full_dcg_is_the_mean_over_all_orders_of_tied_items(ties):
    size, n_rel = sizes(ties)
    n_items = sum(map(sum, ties))
    expected = over_all_orders(lambda ranked: oracles.dcg(ranked, n_items), ties)
    assert float(full_dcg(size, n_rel)) == pytest.approx(expected, abs=1e-12)


def test_full_dcg_and_its_gradient_are_finite_and_below_the_ideal_on_any_soft_histogram():
    size, gain = (part.requires_grad_() for part in soft_rows())
    values = full_dcg(size, gain)
    values.sum().backward()
    for part in (values, size.grad, gain.grad):
        assert torch.isfinite(part).all()
    assert (values <= gain.sum(dim=1) + 1e-9).all()  # every discount is 1 at most


@given(st.lists(st.integers(0, 5), min_size=4, max_size=4))
def test_ideal_dcg_equals_a_full_sort(counts):
    levels = [0, 1, 2, 10]
    ranked = sorted((level for level, n in zip(levels, counts, strict=True) for _ in range(n)), reverse=True)
    gains = torch.tensor([2.0**level - 1 for level in levels], dtype=torch.float64)
    expected = oracles.dcg(ranked, max(len(ranked), 1))
    assert float(ideal_dcg(double(counts), gains)) == pytest.approx(expected, rel=1e-12)


def ndcg_of(levels, outputs, **params):
    method, batch = begun("talr-ndcg", outputs, Explicit(levels), **params)
    return method._ndcg(batch)


def saturated(bits):
    return 100.0 * (2 * torch.tensor(bits, dtype=torch.float64) - 1)


def test_ndcg_of_whole_codes_is_that_over_all_orders_without_the_item_itself():
    rng = np.random.default_rng(3)
    bits, levels = rng.integers(0, 2, (7, 3)), rng.choice([0, 1, 10], (7, 7))
    np.fill_diagonal(levels, 10)  # its gain of 1023 would raise the ideal
    scores = ndcg_of(levels, saturated(bits), relaxation="full")
    for item in range(7):
        others = [other for other in range(7) if other != item]
        distances = [int((bits[item] != bits[other]).sum()) for other in others]
        graded = [int(levels[item, other]) for other in others]
        expected = oracles.over_orders(oracles.ndcg, distances, graded)[0] if any(graded) else 1.0
        assert float(scores[item]) == pytest.approx(expected, abs=1e-9)


def test_levels_that_do_not_occur_change_nothing():
    levels = np.random.default_rng(0).choice([0, 1, 3], (8, 8))
    more = np.pad(levels, ((0, 1), (0, 1)), constant_values=2)
    few, many = (ndcg_of(some, normal(8, 5)) for some in (levels, more))
    np.testing.assert_allclose(few.numpy(), many.numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["talr-ap", "mihash"])
def test_queries_without_relevant_items_count_as_0_in_the_mean(name):
    outputs, matrix = normal(6, 5), np.eye(6, dtype=int)
    matrix[0, 1] = matrix[1, 0] = 1
    loss = float(loss_of(name, outputs, Explicit(matrix), alpha=1.0))
    histogram = soft_histogram(torch.tanh(outputs), torch.tensor(matrix), 2, 5)[:2]
    scores = mutual_information(histogram) if name == "mihash" else simplified_ap(histogram.sum(dim=1), histogram[:, 1])
    assert loss == pytest.approx(-float(scores.sum()) / 6)


@pytest.mark.parametrize(
    ("n_bits", "n_bins", "counted"),
    [(8, 3, 3), (40, 0, 40), (12, None, 8), (48, None, 16)],
)
def test_methods_count_distances_in_as_many_bins_as_asked_or_in_few(n_bits, n_bins, counted):
    outputs, classes = normal(9, n_bits), np.arange(9) % 3
    histogram = soft_histogram(torch.tanh(outputs), same_class(classes), 2, counted)
    size, n_rel = histogram.sum(dim=1), histogram[:, 1]
    expected = {
        "talr-ap": simplified_ap(size, n_rel),
        "talr-ndcg": simplified_dcg(size, n_rel) / ideal_dcg(n_rel.sum(dim=1, keepdim=True), torch.ones(1).double()),
        "mihash": mutual_information(histogram),
    }
    for name, scores in expected.items():
        loss = loss_of(name, outputs, classes, n_bins=n_bins, alpha=1.0)
        assert float(loss) == pytest.approx(-float(scores.mean()), abs=1e-12)


def test_steepness_doubles_so_often_during_training():
    """Its square grows in proportion to the share of training done, as HashNet's."""
    outputs, classes = normal(6, 5), np.arange(6) % 2
    for continuation, share, alpha in ((0, 0.9, 0.5), (1, 0.0, 0.5), (1, 0.5, 0.5 * 2.5**0.5), (3, 1.0, 4.0)):
        loss = loss_of("talr-ap", outputs, classes, share=share, alpha=0.5, continuation=continuation)
        histogram = soft_histogram(torch.tanh(alpha * outputs), same_class(classes), 2, 5)
        expected = -simplified_ap(histogram.sum(dim=1), histogram[:, 1]).mean()
        assert float(loss) == pytest.approx(float(expected))

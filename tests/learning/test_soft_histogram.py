import numpy as np
import pytest
import torch
from helpers.losses import normal
from scipy.spatial.distance import cdist

from hashbench.learning.soft_histogram import soft_histogram


def some_levels(n_items, n_levels, seed=0):
    generator = torch.Generator().manual_seed(seed)
    upper = torch.randint(0, n_levels, (n_items, n_items), generator=generator).triu()
    return upper + upper.triu(1).T


def loop_over_bins(codes, level_index, n_levels, n_bins):
    """The triangular kernel as TALR prints it, bin by bin and level by level, by autograd."""
    n_items, n_bits = codes.shape
    width = n_bits / n_bins
    distance = (n_bits - codes @ codes.T) / 2
    bins = []
    for centre in range(n_bins + 1):
        share = (1 - (distance - centre * width).abs() / width).clamp(min=0) * (1 - torch.eye(n_items))
        bins.append(torch.stack([(share * (level_index == level)).sum(dim=1) for level in range(n_levels)], dim=1))
    return torch.stack(bins, dim=2)


@pytest.mark.parametrize(
    ("n_items", "n_bits", "n_bins", "n_levels"), [(40, 12, 12, 2), (30, 16, 8, 5), (25, 32, 12, 3), (9, 8, 16, 2)]
)
def test_histogram_equals_the_loop_over_bins_in_value_and_gradient(n_items, n_bits, n_bins, n_levels):
    levels = some_levels(n_items, n_levels)
    weights = normal(n_items, n_levels, n_bins + 1, seed=5)
    values, gradients = [], []
    for histogram in (soft_histogram, loop_over_bins):
        codes = normal(n_items, n_bits).tanh().requires_grad_()
        counted = histogram(codes, levels, n_levels, n_bins)
        (counted * weights).sum().backward()
        values.append(counted.detach().numpy())
        gradients.append(codes.grad.numpy())
    np.testing.assert_allclose(values[0], values[1], atol=1e-12)
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-12)
    assert np.abs(gradients[0]).max() > 0.1


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bins_of_a_level_add_up_to_the_other_items_at_it(scale, dtype):
    levels = some_levels(50, 4)
    codes = torch.tanh(scale * normal(50, 24, seed=1, dtype=dtype))
    counted = soft_histogram(codes, levels, 4, 12)
    is_other = ~torch.eye(50, dtype=torch.bool)
    expected = np.stack([((levels == level) & is_other).sum(dim=1).numpy() for level in range(4)], axis=1)
    assert counted.dtype == torch.float64
    assert counted.min() >= 0
    np.testing.assert_allclose(counted.sum(dim=2).numpy(), expected, atol=1e-9)


def test_whole_codes_are_counted_as_hamming_distances():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2, (30, 11))
    classes = rng.integers(0, 3, 30)
    same = classes[:, None] == classes
    codes = torch.tensor(2.0 * bits - 1)
    counted = soft_histogram(codes, torch.tensor(same), 2, 11).numpy()
    hamming = np.round(cdist(bits, bits, "hamming") * 11).astype(int)
    for item in range(30):
        others = np.arange(30) != item
        for level in (0, 1):
            at_level = hamming[item, others & (same[item] == level)]
            np.testing.assert_array_equal(counted[item, level], np.bincount(at_level, minlength=12))


def test_rounding_never_puts_a_pair_outside_its_own_row():
    codes = torch.full((4, 7), 1.0 + 1e-6)  # the inner product exceeds n_bits
    codes[3] = -codes[3]
    counted = soft_histogram(codes, torch.zeros(4, 4, dtype=torch.int64), 1, 7)[:, 0]
    expected = [[2, 0, 0, 0, 0, 0, 0, 1]] * 3 + [[0, 0, 0, 0, 0, 0, 0, 3]]
    np.testing.assert_allclose(counted.numpy(), expected, atol=1e-5)

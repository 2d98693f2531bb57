import numpy as np
import pytest
from scipy.spatial.distance import pdist

from hashbench.errors import Refusal
from hashbench.methods.itq import ITQ
from hashbench.methods.sign import Sign

rng = np.random.default_rng(0)
X = rng.normal(size=(101, 40)) * rng.uniform(0.1, 3, 40) + rng.normal(size=40)
NEW = rng.normal(size=(23, 40))


def test_bits_are_those_that_embedding_libraries_pack():
    unit = NEW / np.linalg.norm(NEW, axis=1, keepdims=True)
    packed = np.packbits(unit > 0, axis=1)  # as quantize_embeddings(..., "ubinary")
    np.testing.assert_array_equal(np.packbits(Sign(40).fit(X).transform(NEW), axis=1), packed)


def test_zero_is_not_above_the_threshold():
    np.testing.assert_array_equal(Sign(3).fit(np.eye(3)).transform([[0.0, -0.0, 1e-300]]), [[False, False, True]])


@pytest.mark.parametrize("threshold", ["zero", "mean", "median"])
def test_fewer_bits_are_those_of_the_first_dimensions(threshold):
    longer, shorter = (Sign(n, threshold=threshold).fit(X).transform(NEW) for n in (40, 17))
    np.testing.assert_array_equal(longer[:, :17], shorter)
    cut = Sign(17, threshold=threshold, rotate=True).fit(X[:, :17]).transform(NEW[:, :17])
    np.testing.assert_array_equal(Sign(17, threshold=threshold, rotate=True).fit(X).transform(NEW), cut)


@pytest.mark.parametrize(("threshold", "centre"), [("mean", np.mean), ("median", np.median)])
def test_thresholds_are_the_training_items_own(threshold, centre):
    codes, threshold = Sign(40, threshold=threshold).fit(X).transform(NEW), centre(X, axis=0)
    np.testing.assert_array_equal(codes, np.greater(NEW, threshold))


@pytest.mark.parametrize("rotate", [False, True])
def test_the_median_balances_each_bit(rotate):
    codes = Sign(16, threshold="median", rotate=rotate).fit(X).transform(X)
    np.testing.assert_array_equal(codes.sum(axis=0), 50)  # of 101, one lies on it


def test_rotation_keeps_lengths_and_goes_by_the_seed():
    plain = Sign(16).fit(X)
    first, again, other = (Sign(16, rotate=True, random_state=seed).fit(X) for seed in (1, 1, 2))
    np.testing.assert_allclose(
        np.linalg.norm(first.project(NEW), axis=1), np.linalg.norm(plain.project(NEW), axis=1), rtol=1e-12
    )
    np.testing.assert_array_equal(first.project(NEW), again.project(NEW))
    assert (first.transform(NEW) != other.transform(NEW)).mean() > 0.2


def test_more_bits_than_features_are_a_rotation_into_more_dimensions():
    longer = Sign(64, threshold="mean", rotate=True).fit(X)
    assert longer.transform(NEW).shape == (23, 64)
    np.testing.assert_allclose(pdist(longer.project(NEW)), pdist(NEW), rtol=1e-12)
    origin, normals, offsets = longer.hyperplanes()
    np.testing.assert_allclose((NEW - origin) @ normals + offsets, longer.project(NEW), atol=1e-12)


def test_rotated_principal_components_at_the_mean_are_where_itq_starts():
    axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:12]
    axes *= np.sign(axes[np.arange(12), np.abs(axes).argmax(axis=1)])[:, None]
    start = ITQ(12, n_iter=0, random_state=3).fit(X)
    rotated = Sign(12, threshold="mean", rotate=True, random_state=3).fit(X @ axes.T)
    np.testing.assert_allclose(rotated.project(NEW @ axes.T), start.project(NEW), atol=1e-12)


def test_more_bits_than_features_are_refused_in_a_sentence():
    assert Sign(40).fit(X).transform(NEW).shape == (23, 40)
    with pytest.raises(
        Refusal, match=r"sign needs n_bits <= 40, .* features, .* n_bits=41\. Choose n_bits=40 .* or rotate=True"
    ):
        Sign(41).fit(X)

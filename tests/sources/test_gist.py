import io
import tarfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from helpers.paths import DATA
from helpers.thoroughness import slow
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.ndimage import gaussian_filter
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from hashbench.errors import HashbenchError
from hashbench.sources.features.gist import gist

CIFAR10 = DATA / "cifar10-images.tar.xz"


def slow_gist(image):
    """One RGB image, one filter after the other, in double precision and with full transforms."""
    grey = image.astype(float).mean(axis=-1)
    stretched = 255 * (grey - grey.min()) / max(grey.max() - grey.min(), 1e-9)
    padded = np.pad(np.log(1 + stretched), 5, mode="symmetric")
    longer = max(padded.shape)
    low_pass = np.empty(padded.shape)
    for i, fy in enumerate(np.fft.fftfreq(padded.shape[0])):
        for j, fx in enumerate(np.fft.fftfreq(padded.shape[1])):
            low_pass[i, j] = 0.5 ** ((fx**2 + fy**2) * longer**2 / 4**2)

    def smooth(values):
        return np.fft.ifft2(np.fft.fft2(values) * low_pass).real

    detail = padded - smooth(padded)
    whitened = detail / (0.2 + np.sqrt(np.abs(smooth(detail * detail))))
    spectrum = np.fft.fft2(np.pad(whitened[5:-5, 5:-5], 32, mode="symmetric"))
    values = []
    for scale in range(4):
        for orientation in range(8):
            gains = slow_gains(scale, orientation, spectrum.shape)
            magnitude = np.abs(np.fft.ifft2(spectrum * gains))[32:-32, 32:-32]
            height, width = magnitude.shape
            for row in range(4):
                for column in range(4):
                    lines = slice(row * height // 4, (row + 1) * height // 4)
                    values.append(magnitude[lines, column * width // 4 : (column + 1) * width // 4].mean())
    return np.array(values)


@cache
def slow_gains(scale, orientation, shape):
    fy, fx = np.meshgrid(*(np.fft.fftfreq(length) for length in shape), indexing="ij")
    distance = np.hypot(fx, fy) / (0.3 / 1.85**scale) - 1
    turned = np.arctan2(fy, fx) + np.pi * orientation / 8
    turned[turned > np.pi] -= 2 * np.pi
    return np.exp(-3.5 * distance**2 - 2 * np.pi * turned**2)


def by_part(features):
    """Descriptors as (n, scale, orientation, row, column)."""
    return features.reshape(-1, 4, 8, 4, 4)


def grating(angle, frequency, size=64):
    """Waves that travel at an angle in degrees, counterclockwise from the right; frequency in cycles per pixel."""
    row, column = np.mgrid[:size, :size]
    phase = column * np.cos(np.radians(angle)) - row * np.sin(np.radians(angle))
    return np.round(128 + 100 * np.cos(2 * np.pi * frequency * phase)).astype(np.uint8)


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(0).integers(0, 256, size=(11, 32, 32, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def smooth():
    """Images without the highest frequencies, where a grid of pixels is no longer the same in all directions."""
    values = gaussian_filter(np.random.default_rng(1).normal(size=(5, 64, 64)), (0, 3, 3), mode="wrap")
    return np.round(128 + 120 * values / np.abs(values).max()).astype(np.uint8)


LARGER = [pytest.param(*size, marks=pytest.mark.slow) for size in ((32, 32), (33, 33), (50, 18))]


@pytest.mark.parametrize(("height", "width"), [(16, 16), (21, 18), (21, 38), *LARGER])
def test_descriptor_follows_the_formula(height, width):
    images = np.random.default_rng(height).integers(0, 256, size=(2, height, width, 3), dtype=np.uint8)
    images[1] //= 64
    expected = np.array([slow_gist(image) for image in images])
    np.testing.assert_array_equal(gist(images), expected.astype(np.float16))


@given(arrays(np.uint8, (16, 17, 3), elements=st.integers(0, 255)))
@settings(max_examples=10, deadline=None)
def test_any_image_follows_the_formula(image):
    np.testing.assert_allclose(gist(image[None])[0], slow_gist(image), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("grey", [0, 7, 255])
def test_constant_image_has_no_energy(grey):
    features = gist(np.full((1, 32, 48, 3), grey, dtype=np.uint8))
    assert np.abs(features).max() < 1e-6


def test_grey_images_may_have_a_channel_or_none_or_three_equal_ones(noise):
    grey = noise[..., 0]
    plain = gist(grey)
    assert (plain.shape, plain.dtype) == ((11, 512), np.float32)
    assert gist(grey[:0]).shape == (0, 512)
    np.testing.assert_array_equal(plain, gist(np.asfortranarray(grey)))
    np.testing.assert_array_equal(plain, gist(grey[..., None]))
    np.testing.assert_array_equal(plain, gist(np.repeat(grey[..., None], 3, axis=-1)))


@pytest.mark.parametrize(("size", "n_images"), [(1, 20), (64, 70), *slow((1, 150), (3, 150), (64, 150), (100, 150))])
def test_batches_equal_the_whole(size, n_images):
    images = np.random.default_rng(2).integers(0, 256, size=(n_images, 20, 16, 3), dtype=np.uint8)
    batches = [gist(images[start : start + size]) for start in range(0, len(images), size)]
    np.testing.assert_array_equal(np.concatenate(batches), gist(images))


@pytest.mark.parametrize(("scale", "orientation"), [(0, 0), (1, 2), (2, 5), (3, 7)])
def test_grating_excites_its_own_scale_and_orientation_most(scale, orientation):
    image = grating(22.5 * orientation, 0.3 / 1.85**scale)
    energy = by_part(gist(image[None])).mean(axis=(0, 3, 4))
    assert np.unravel_index(energy.argmax(), energy.shape) == (scale, orientation)


def test_energy_lies_in_the_cell_where_the_texture_is():
    image = np.full((64, 64), 128, dtype=np.uint8)
    image[16:32, 48:] = grating(45, 0.3)[16:32, 48:]
    cells = by_part(gist(image[None]))[0, 0, 2]
    assert np.unravel_index(cells.argmax(), cells.shape) == (1, 3)


@pytest.mark.parametrize(
    "images",
    [
        np.zeros((2, 32, 32, 3)),
        np.zeros((32, 32), dtype=np.uint8),
        np.zeros((2, 3, 32, 32), dtype=np.uint8),
        np.zeros((2, 15, 32, 3), dtype=np.uint8),
        np.zeros((2, 32, 15), dtype=np.uint8),
        np.uint8(3),
    ],
    ids=lambda images: f"{images.dtype}-{'x'.join(map(str, images.shape))}",
)
def test_other_arrays_are_refused_in_one_sentence(images):
    with pytest.raises(HashbenchError) as raised:
        gist(images)
    message = str(raised.value)
    assert message.startswith(f"images are {images.dtype} of shape {images.shape}, expected uint8 of shape")
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.skipif(not CIFAR10.exists(), reason="the real images are not beside this checkout")
def test_descriptors_of_real_images_separate_classes_better_than_pixels():
    pil = pytest.importorskip("PIL.Image")
    images, labels = [], []
    with tarfile.open(CIFAR10) as archive:
        for member in archive:
            path = Path(member.name)
            if member.isfile() and path.parts[0] == "train" and int(path.stem) < 100:
                data = archive.extractfile(member).read()
                images.append(np.asarray(pil.open(io.BytesIO(data)).convert("RGB")))
                labels.append(path.parts[1])
    images = np.stack(images)

    def accuracy(features):
        return cross_val_score(KNeighborsClassifier(10), features, labels, cv=5).mean()

    assert accuracy(gist(images)) > max(0.35, accuracy(images.reshape(len(images), -1).astype(float)) + 0.1)

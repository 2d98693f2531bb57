import os
from contextlib import nullcontext

import numpy as np
import pytest
from PIL import Image

from hashbench.adapter import Options
from hashbench.errors import HashbenchError
from hashbench.sources.features import extraction, gist
from hashbench.sources.features.extraction import extract
from hashbench.sources.images import ImageArrays, ImageFiles
from hashbench.store import inputs

PIXELS = np.random.default_rng(0).integers(0, 256, (10, 36, 36, 3)).astype(np.uint8)
IMAGES = ImageArrays(PIXELS)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(extraction, "_BLOCK", 4)


@pytest.fixture
def files(tmp_path):
    """Six images of different sizes."""
    paths = []
    for number in range(6):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(PIXELS[number, : 20 + number]).save(paths[-1])
    return ImageFiles(paths)


def resized_files(size):
    """Return the images of `files` at one size."""
    images = [Image.fromarray(PIXELS[number, : 20 + number]) for number in range(6)]
    return np.stack([np.asarray(image.resize((size, size), Image.Resampling.BICUBIC)) for image in images])


def stored(data):
    return sorted(path.name for path in (data / "features").iterdir() if path.suffix != ".lock")


# ---------------------------------------------------------------- pixels and images


def test_pixels_are_the_values_of_an_image_in_a_row(data):
    extracted = extract("pixels", IMAGES, Options())
    assert (extracted.features.dtype, extracted.images) == (np.float32, None)
    np.testing.assert_array_equal(extracted.features, PIXELS.reshape(10, -1))
    assert "36 x 36" in extracted.description
    assert not list(data.iterdir())  # nothing to keep: they are read as fast again


def test_images_are_kept_as_they_are():
    extracted = extract("images", IMAGES, Options())
    assert (extracted.images.dtype, extracted.features) == (np.uint8, None)
    np.testing.assert_array_equal(extracted.images, PIXELS)


@pytest.mark.parametrize("kind", ["pixels", "images"])
def test_images_of_any_size_are_resized_to_the_one_asked_for(files, kind):
    extracted = extract(kind, files, Options(image_size=12))
    pixels = extracted.images if kind == "images" else extracted.features.reshape(6, 12, 12, 3)
    np.testing.assert_array_equal(pixels, resized_files(12))


@pytest.mark.parametrize("kind", ["pixels", "images"])
def test_without_a_size_images_of_different_sizes_are_refused(files, kind):
    with pytest.raises(HashbenchError, match=f"images differ in size; give --image-size for features '{kind}'"):
        extract(kind, files, Options())


@pytest.mark.parametrize(("kind", "bytes_a_value"), [("pixels", 4), ("images", 1)])
def test_what_would_not_fit_into_memory_is_refused(monkeypatch, kind, bytes_a_value):
    n_bytes = 10 * 36 * 36 * 3 * bytes_a_value
    monkeypatch.setattr(inputs, "free_memory", lambda: n_bytes)
    extract(kind, IMAGES, Options())
    monkeypatch.setattr(inputs, "free_memory", lambda: n_bytes - 1)
    with pytest.raises(HashbenchError, match=f"array of {kind} of 10 images of 36 x 36 pixels takes .*; choose"):
        extract(kind, IMAGES, Options())
    extract(kind, IMAGES, Options(image_size=35))


# ---------------------------------------------------------------- computed in blocks


class Counting:
    """A function that remembers how many images it got each time, and may be interrupted."""

    def __init__(self, compute, stops_at=None):
        self.compute, self.stops_at, self.calls = compute, stops_at, []

    def __call__(self, block):
        if len(self.calls) == self.stops_at:
            raise KeyboardInterrupt
        self.calls.append(len(block))
        return self.compute(block)


@pytest.fixture
def counted(monkeypatch):
    """Let gist count its calls."""

    def count(stops_at=None):
        monkeypatch.setattr(gist, "gist", Counting(whole_gist, stops_at))
        return gist.gist

    whole_gist = gist.gist
    return count


def test_gist_in_blocks_is_gist_of_all_images():
    extracted = extract("gist", IMAGES, Options())
    np.testing.assert_array_equal(extracted.features, gist.gist(PIXELS))
    assert extracted.description == "GIST, 512-d, of 36 x 36 pixels"


def test_gist_of_files_is_that_of_128_pixels(files):
    extracted = extract("gist", files, Options())
    np.testing.assert_array_equal(extracted.features, gist.gist(resized_files(128)))
    assert "128 x 128" in extracted.description


def test_features_are_computed_once(counted, data):
    compute = counted()
    first = extract("gist", IMAGES, Options()).features
    assert compute.calls == [4, 4, 2]
    assert len(stored(data)) == 1  # no parts are left behind
    again = extract("gist", ImageArrays(PIXELS.copy()), Options()).features
    assert compute.calls == [4, 4, 2]
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("n_done", [0, 1, 2])
def test_an_interrupted_run_goes_on_where_it_was(counted, n_done):
    counted(stops_at=n_done)
    with pytest.raises(KeyboardInterrupt):
        extract("gist", IMAGES, Options())
    compute = counted()
    seen = []
    extracted = extract("gist", IMAGES, Options(on_progress=lambda *words: seen.append(words)))
    assert compute.calls == [4, 4, 2][n_done:]
    np.testing.assert_array_equal(extracted.features, gist.gist(PIXELS))
    assert seen == [("gist features", done, 10) for done in (4, 8, 10)]


def test_parts_of_another_length_are_not_used(counted, monkeypatch):
    counted(stops_at=1)
    with pytest.raises(KeyboardInterrupt):
        extract("gist", IMAGES, Options())
    monkeypatch.setattr(extraction, "_BLOCK", 3)
    compute = counted()
    np.testing.assert_array_equal(extract("gist", IMAGES, Options()).features, compute.compute(PIXELS))


def test_large_images_come_in_smaller_blocks(counted, monkeypatch):
    monkeypatch.setattr(extraction, "_BLOCK_BYTES", 3 * 36 * 36 * 3 + 1)
    compute = counted()
    extract("gist", IMAGES, Options())
    assert compute.calls == [3, 3, 3, 1]


@pytest.mark.parametrize("n_done", [3, 1])
def test_damaged_features_are_computed_again_whole_or_in_parts(counted, data, n_done, caplog):
    """The features of all images, or those of the first block of an interrupted run."""
    counted(stops_at=None if n_done == 3 else n_done)
    with pytest.raises(KeyboardInterrupt) if n_done < 3 else nullcontext():
        extract("gist", IMAGES, Options())
    (path,) = (data / "features").rglob("*.h5")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    compute = counted()
    np.testing.assert_array_equal(extract("gist", IMAGES, Options()).features, gist.gist.compute(PIXELS))
    assert compute.calls == [4, 4, 2]
    (message,) = caplog.messages
    assert message.startswith(f"{path} is damaged")


@pytest.mark.parametrize("change", ["size", "image", "version"])
def test_other_images_sizes_or_versions_give_other_features(counted, monkeypatch, change):
    compute = counted()
    extract("gist", IMAGES, Options())
    pixels = PIXELS.copy()
    pixels[9, 35, 35, 2] ^= change == "image"
    if change == "version":
        monkeypatch.setattr(extraction, "DATASET_VERSION", 0)
    extract("gist", ImageArrays(pixels), Options(image_size=32 if change == "size" else None))
    assert compute.calls == [4, 4, 2] * 2


def test_a_file_that_changed_gives_other_features(counted, files):
    compute = counted()
    extract("gist", files, Options())
    extract("gist", ImageFiles(files.paths), Options())
    assert compute.calls == [4, 2]
    os.utime(files.paths[0], (1, 1))
    extract("gist", ImageFiles(files.paths), Options())
    assert compute.calls == [4, 2] * 2


# ---------------------------------------------------------------- networks


@pytest.fixture
def network(monkeypatch, tmp_path):
    """Stand in for networks: the mean colours times the first byte of the weights."""
    pytest.importorskip("torch")
    from hashbench.sources.features import weights

    extractors, calls = [], []

    class Fake:
        def __init__(self, name, weights_path, *, image_size, device):
            extractors.append((name, weights_path, image_size, device))
            self.n_features, self.device = 3, device
            self.factor = weights_path.read_bytes()[0]
            self.sha256, self.provenance = str(self.factor), f"{name}, {image_size} px, weights {self.factor}"

        def __call__(self, block):
            calls.append(block.shape)
            return (block.mean(axis=(1, 2)) * self.factor).astype(np.float32)

    monkeypatch.setattr(weights, "Extractor", Fake)
    path = tmp_path / "weights.pth"
    path.write_bytes(b"\x02")
    return path, extractors, calls


def test_a_network_sees_blocks_of_images_as_they_are(network):
    path, extractors, calls = network
    extracted = extract("resnet18", IMAGES, Options(weights=path, device="cpu"))
    np.testing.assert_allclose(extracted.features, 2 * PIXELS.mean(axis=(1, 2)), rtol=1e-6)
    assert calls == [(4, 36, 36, 3), (4, 36, 36, 3), (2, 36, 36, 3)]
    assert extractors == [("resnet18", path, 144, "cpu")]  # small images are enlarged four times, not to 224
    assert extracted.description == "resnet18, 144 px, weights 2, on cpu"


@pytest.mark.parametrize(
    ("kind", "native_size", "image_size", "expected"),
    [
        ("vgg16", 36, None, 224),
        ("squeezenet", 36, None, 144),
        ("squeezenet", 100, None, 224),
        ("resnet50", 36, 64, 64),
        ("alexnet", 36, 100, 100),
    ],
)
def test_networks_see_their_own_size_unless_another_is_chosen(network, kind, native_size, image_size, expected):
    path, extractors, _ = network
    images = ImageArrays(np.zeros((1, native_size, native_size, 3), np.uint8))
    extract(kind, images, Options(weights=path, image_size=image_size))
    assert [size for _, _, size, _ in extractors] == [expected]


def test_a_network_sees_files_resized(network, files):
    path, extractors, calls = network
    extracted = extract("squeezenet", files, Options(weights=path, image_size=16))
    assert calls == [(4, 16, 16, 3), (2, 16, 16, 3)]
    np.testing.assert_allclose(extracted.features, 2 * resized_files(16).mean(axis=(1, 2)), rtol=1e-6)
    extract("resnet18", files, Options(weights=path))
    assert (extractors[-1][2], calls[-1]) == (224, (2, 224, 224, 3))


def test_features_of_a_network_are_computed_once_per_weights_size_and_device(network):
    path, _, calls = network
    first = extract("resnet18", IMAGES, Options(weights=path)).features
    np.testing.assert_array_equal(extract("resnet18", IMAGES, Options(weights=path)).features, first)
    assert len(calls) == 3
    extract("resnet18", IMAGES, Options(weights=path, image_size=64))
    assert len(calls) == 6
    path.write_bytes(b"\x03")
    other = extract("resnet18", IMAGES, Options(weights=path)).features
    assert len(calls) == 9
    np.testing.assert_allclose(other, first * 1.5, rtol=1e-6)
    for device in ("cpu", "cuda", "cpu"):
        assert extract("resnet18", IMAGES, Options(weights=path, device=device)).description.endswith(f"on {device}")
    assert len(calls) == 15


def test_weights_that_are_not_downloaded_are_requested(network):
    _, extractors, _ = network
    with pytest.raises(HashbenchError, match=r"weights of vgg-f have no published .* pass the file as --weights"):
        extract("vgg-f", IMAGES, Options())
    assert extractors == []


def test_weights_are_downloaded_once_where_their_checksum_is_known(network, monkeypatch, data):
    from hashbench.sources.features import weights

    path, extractors, _ = network
    asked = []
    monkeypatch.setattr(weights, "fetch", lambda *what, on_progress: asked.append(what) or path)
    extract("resnet18", IMAGES, Options())
    ((url, checksum, target),) = asked
    assert url.startswith("https://")
    assert checksum[:8] in url  # torchvision's file names end in it
    assert (target.parent, target.name) == (data / "weights", url.rpartition("/")[2])
    assert extractors[0][1] == path

import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.error_sentences import complaint
from helpers.paths import DATA
from PIL import Image
from scipy.io import savemat

from hashbench.errors import HashbenchError
from hashbench.sources.features.backbones import BACKBONES
from hashbench.sources.features.weights import Extractor, pretrained, read_weights, to_input

FILTERS = {  # of VGG-F as MatConvNet stores them: height, width, channels in, channels out
    "conv1": (11, 11, 3, 64),
    "conv2": (5, 5, 64, 256),
    "conv3": (3, 3, 256, 256),
    "conv4": (3, 3, 256, 256),
    "conv5": (3, 3, 256, 256),
    "fc6": (6, 6, 256, 4096),
    "fc7": (1, 1, 4096, 4096),
    "fc8": (1, 1, 4096, 1000),
}


@pytest.fixture(scope="module")
def squeezenet(tmp_path_factory):
    """A file of random weights and the network they came from."""
    torch.manual_seed(0)
    network = BACKBONES["squeezenet"].build().eval()
    path = tmp_path_factory.mktemp("weights") / "squeezenet.pth"
    torch.save(network.state_dict(), path)
    return path, network


@pytest.fixture
def images():
    return np.random.default_rng(0).integers(0, 256, (70, 32, 32, 3), dtype=np.uint8)


def assert_same_state(state, expected):
    assert state.keys() == expected.keys()
    for key, tensor in expected.items():
        assert state[key].dtype == tensor.dtype, key
        assert torch.equal(state[key], tensor), key


def test_weights_and_hash_are_those_of_the_file(squeezenet):
    path, network = squeezenet
    weights = read_weights("squeezenet", path)
    assert_same_state(weights.state, network.state_dict())
    assert weights.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


def test_state_dict_may_be_wrapped_and_come_from_several_devices(squeezenet, tmp_path):
    state = squeezenet[1].state_dict()
    path = tmp_path / "checkpoint.pt"
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": value for key, value in state.items()}}, path)
    assert_same_state(read_weights("squeezenet", path).state, state)


def test_half_precision_is_widened(squeezenet, tmp_path):
    path = tmp_path / "half.pth"
    halves = {key: value.half() for key, value in squeezenet[1].state_dict().items()}
    torch.save(halves, path)
    assert_same_state(read_weights("squeezenet", path).state, {key: value.float() for key, value in halves.items()})


def test_old_files_without_counters_of_batches_are_read(tmp_path):
    torch.manual_seed(0)
    network = BACKBONES["resnet18"].build().eval()
    state = {key: value for key, value in network.state_dict().items() if "num_batches_tracked" not in key}
    assert len(state) == 102
    path = tmp_path / "resnet18.pth"
    torch.save(state, path)
    images = torch.rand(1, 3, 64, 64)
    torch.testing.assert_close(pretrained("resnet18", path)[0](images), network(images))


def test_pretrained_network_is_ready_to_be_trained(squeezenet):
    network, sha256 = pretrained("squeezenet", squeezenet[0])
    assert len(sha256) == 64
    assert not network.training
    assert all(parameter.requires_grad and parameter.is_leaf for parameter in network.parameters())


def spoil(state, fault):
    if fault == "missing":
        for key in ("features.3.squeeze.weight", "features.0.bias"):
            del state[key]
    elif fault == "unexpected":
        state["fc.weight"] = torch.zeros(3)
    elif fault == "misshapen":
        state["classifier.1.weight"] = torch.zeros(10, 512, 1, 1)
    elif fault == "not finite":
        state["classifier.1.bias"][3] = torch.nan
    else:
        return {f"backbone.{key}": value for key, value in state.items()}
    return state


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("missing", "2 missing, features.0.bias, features.3.squeeze.weight."),
        ("unexpected", "1 unexpected, fc.weight."),
        ("misshapen", "1 misshapen, classifier.1.weight of shape (10, 512, 1, 1) in place of (1000, 512, 1, 1)."),
        ("not finite", "1 with values that are not finite, classifier.1.bias."),
        ("renamed", "52 missing, first features.0.weight, features.0.bias, features.3.squeeze.weight; 52 unexpected"),
    ],
)
def test_weights_of_another_network_are_refused(squeezenet, tmp_path, fault, message):
    path = tmp_path / "other.pth"
    torch.save(spoil(squeezenet[1].state_dict(), fault), path)
    text = complaint(read_weights, "squeezenet", path)
    assert text.startswith(f"{path} does not hold the weights of squeezenet: ")
    assert message in text
    assert BACKBONES["squeezenet"].weights_url in text


def is_damaged(name, path):
    return "is damaged or not a file of weights" in complaint(read_weights, name, path)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", bytes(1000)])
@pytest.mark.parametrize(("name", "suffix"), [("squeezenet", ".pth"), ("vgg-f", ".mat")])
def test_file_without_weights_is_refused(tmp_path, name, suffix, content):
    path = tmp_path / f"weights{suffix}"
    path.write_bytes(content)
    assert is_damaged(name, path)


class Caller:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_weights_that_call_something_are_refused_and_nothing_is_called(tmp_path):
    torch.save({"state_dict": Caller(tmp_path / "called")}, tmp_path / "weights.pth")
    with pytest.raises(HashbenchError, match=r"weights\.pth"):
        read_weights("squeezenet", tmp_path / "weights.pth")
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_truncated_file_is_refused(squeezenet, tmp_path, share):
    content = squeezenet[0].read_bytes()
    path = tmp_path / "part.pth"
    path.write_bytes(content[: int(share * len(content))])
    assert is_damaged("squeezenet", path)


@pytest.mark.parametrize(
    "saved",
    [torch.zeros(3), [torch.zeros(3)], {"state_dict": 5}, {"epoch": 5}, {3: torch.zeros(3)}, {"features.0.bias": Path}],
)
def test_torch_file_of_something_else_is_refused_and_no_code_is_run(tmp_path, saved):
    torch.save(saved, tmp_path / "other.pth")
    assert is_damaged("squeezenet", tmp_path / "other.pth")


@pytest.mark.parametrize(
    ("name", "file", "words"),
    [
        ("resnet18", "net.mat", "weights of resnet18 are read from .pth, .pt"),
        ("vgg-f", "net.h5", "weights of vgg-f are read from .pth, .pt"),
        ("resnet18", "absent.pth", "there is no file "),
    ],
)
def test_file_that_cannot_be_read_is_refused(tmp_path, name, file, words):
    text = complaint(read_weights, name, tmp_path / file)
    assert words in text
    assert BACKBONES[name].weights_url in text


def make_cell(values):
    """A cell array of MATLAB, 1 x n."""
    cell = np.empty((1, len(values)), object)
    cell[0, :] = values
    return cell


def write_mat(path, arrays, average, form):
    """A SimpleNN network of MatConvNet; before 1.0-beta8 without cells of weights and without meta."""
    layers = []
    for name, (filters, biases) in arrays.items():
        number = name[-1]
        weights = {"weights": make_cell([filters, biases])} if form == "new" else {"filters": filters, "biases": biases}
        pad, stride = {"1": (0, 4), "2": (2, 1)}.get(number, (1 if name.startswith("conv") else 0, 1))
        layers.append({"name": name, "type": "conv", **weights, "pad": [[pad] * 4], "stride": [[stride] * 2]})
        layers.append({"name": f"relu{number}", "type": "relu"})
        if number in "12":
            layers.append({"name": f"norm{number}", "type": "lrn", "param": [[5, 2, 1e-4, 0.75]]})
        if number in "125":
            pool = {"method": "max", "pool": [[3, 3]], "stride": [[2, 2]], "pad": [[0, 1, 0, 1]]}
            layers.append({"name": f"pool{number}", "type": "pool", **pool})
    layers[-1] = {"name": "prob", "type": "softmax"}
    normalization = {"imageSize": [[224, 224, 3]], "averageImage": average, "interpolation": "bicubic"}
    about = {"meta": {"normalization": normalization}} if form == "new" else {"normalization": normalization}
    savemat(path, {"layers": make_cell(layers), **about})


@pytest.fixture(scope="module")
def vggf():
    """Random filters and biases of VGG-F, and an average image."""
    rng = np.random.default_rng(0)
    noise = rng.standard_normal(1_000_003, dtype=np.float32)
    arrays = {}
    for name, shape in FILTERS.items():
        filters = np.resize(noise, shape) * np.float32(np.sqrt(2 / np.prod(shape[:3])))
        arrays[name] = filters, rng.standard_normal((shape[3], 1), dtype=np.float32)
    return arrays, rng.uniform(90, 140, (224, 224, 3)).astype(np.float32)


@pytest.fixture(params=["new", "old"])
def vggf_file(vggf, tmp_path, request):
    path = tmp_path / "imagenet-vgg-f.mat"
    write_mat(path, *vggf, request.param)
    yield path
    path.unlink()  # 240 MB


def convolve(maps, filters, biases, pad, stride):
    """Correlation in MatConvNet's order of axes: maps (height, width, channels)."""
    padded = np.pad(maps, ((pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, filters.shape[:2], axis=(0, 1))[::stride, ::stride]
    return np.maximum(np.tensordot(windows, filters, ([3, 4, 2], [0, 1, 2])) + biases.ravel(), 0)


def normalise(maps):
    squares = np.pad(maps**2, ((0, 0), (0, 0), (2, 2)))
    sums = sum(squares[..., shift : shift + maps.shape[2]] for shift in range(5))
    return maps / (2 + 1e-4 * sums) ** 0.75


def pool(maps):
    padded = np.pad(maps, ((0, 1), (0, 1), (0, 0)), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[::2, ::2].max(axis=(3, 4))


@pytest.mark.slow
def test_vggf_computes_what_matconvnet_would(vggf, vggf_file):
    arrays, average = vggf
    image = np.random.default_rng(1).integers(0, 256, (224, 224, 3), dtype=np.uint8)
    maps = pool(normalise(convolve(image - average, *arrays["conv1"], 0, 4)))
    maps = pool(normalise(convolve(maps, *arrays["conv2"], 2, 1)))
    for name in ("conv3", "conv4", "conv5"):
        maps = convolve(maps, *arrays[name], 1, 1)
    maps = convolve(pool(maps), *arrays["fc6"], 0, 1)
    expected = convolve(maps, *arrays["fc7"], 0, 1).ravel()
    assert 1000 < (expected > 0).sum() < 3000
    extractor = Extractor("vgg-f", vggf_file, device="cpu")
    (features,) = extractor(image[None])
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-4 * expected.max())


def test_mat_file_of_another_network_is_told_apart(tmp_path):
    """A few filters: the error shows that (height, width, in, out) became (out, in, height, width)."""
    arrays = {name: (np.ones((5, 4, 3, 2), np.float32), np.ones((2, 1), np.float32)) for name in ("conv1", "conv9")}
    for form in ("new", "old"):
        write_mat(tmp_path / "tiny.mat", arrays, np.ones((1, 1, 3), np.float32), form)
        message = complaint(read_weights, "vgg-f", tmp_path / "tiny.mat")
        assert "14 missing, first conv2.weight, conv2.bias, conv3.weight; 2 unexpected, conv9.weight" in message
        assert "2 misshapen, conv1.weight of shape (2, 3, 5, 4) in place of (64, 3, 11, 11), conv1.bias" in message


PIXELS = np.random.default_rng(0).integers(0, 256, (2, 40, 30, 3), dtype=np.uint8)[:, :30]


@pytest.mark.parametrize("name", ["alexnet", "squeezenet", "vgg16", "resnet18", "resnet50"])
def test_input_of_one_colour_is_that_colour_normalised(name):
    images = np.empty((1, 8, 8, 3), np.uint8)
    images[:] = (255, 0, 51)
    inputs = to_input(images, BACKBONES[name], 16)
    assert inputs.shape == (1, 3, 16, 16)
    assert inputs.dtype == torch.float32
    expected = [(1 - 0.485) / 0.229, (0 - 0.456) / 0.224, (0.2 - 0.406) / 0.225]
    assert inputs.mean(dim=(0, 2, 3)).tolist() == pytest.approx(expected, abs=1e-5)
    assert inputs.std(dim=(0, 2, 3)).max() < 1e-5


def test_input_of_vggf_is_the_pixels_themselves():
    inputs = to_input(PIXELS, BACKBONES["vgg-f"], 30)
    assert np.array_equal(inputs.permute(0, 2, 3, 1).numpy(), PIXELS)
    assert inputs.is_contiguous(memory_format=torch.channels_last)


def test_enlarging_is_bicubic_interpolation_between_centres_of_pixels():
    """Cubic convolution with a = -0.75 by hand, at one point: column 5 of 60 lies at 5.5 / 2 - 0.5 = 2.25."""

    def weight(distance, a=-0.75):
        near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
        far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
        return near if distance <= 1 else far

    weights = np.array([weight(abs(2.25 - column)) for column in (1, 2, 3, 4)])
    expected = np.einsum("r,c,rcd->d", weights, weights, PIXELS[0, 1:5, 1:5].astype(float))
    inputs = to_input(PIXELS, BACKBONES["vgg-f"], 60)
    assert inputs[0, :, 5, 5].numpy() == pytest.approx(expected, abs=1e-3)


def test_shrinking_takes_the_mean_of_what_vanishes():
    stripes = np.zeros((1, 64, 64, 3), np.uint8)
    stripes[:, :, ::4] = 200  # a quarter of the columns
    inputs = to_input(stripes, BACKBONES["vgg-f"], 8)
    assert inputs[..., 2:-2].numpy() == pytest.approx(50, abs=5)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 8, 8, 3), np.float32), "images are float32 of shape (2, 8, 8, 3), expected uint8"),
        (np.zeros((2, 3, 8, 8), np.uint8), "images are uint8 of shape (2, 3, 8, 8)"),
        (np.zeros((8, 8, 3), np.uint8), "images are uint8 of shape (8, 8, 3)"),
    ],
)
def test_images_of_another_form_are_refused(images, message):
    assert message in complaint(to_input, images, BACKBONES["squeezenet"])


@pytest.fixture
def extractor(squeezenet):
    return Extractor("squeezenet", squeezenet[0], image_size=64, device="cpu")


def test_features_are_those_of_the_network_whatever_the_batch(squeezenet, extractor, images):
    network, features = squeezenet[1], extractor(images)
    assert features.dtype == np.float32
    assert features.shape == (70, 512)
    with torch.no_grad():
        expected = network(to_input(images, BACKBONES["squeezenet"], 64)).numpy()
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    alone = np.concatenate([extractor(images[row : row + 1]) for row in (0, 1, 65)])
    np.testing.assert_allclose(alone, features[[0, 1, 65]], rtol=1e-5, atol=1e-6)
    assert np.array_equal(extractor(images), features)


def test_features_are_the_same_bytes_on_any_number_of_threads(extractor, images, monkeypatch):
    before, features = torch.get_num_threads(), []
    for n_threads in (1, 2):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", str(n_threads))
        torch.set_num_threads(n_threads)
        features.append(extractor(images).tobytes())
        assert torch.get_num_threads() == n_threads
    torch.set_num_threads(before)
    assert features[0] == features[1]


def test_images_may_be_a_view_and_are_not_changed(extractor, images):
    images.flags.writeable = False
    assert np.array_equal(extractor(images[3::-1]), extractor(images[:4])[::-1])


def test_cudnn_is_on_while_features_are_computed(extractor, images, monkeypatch):
    seen = []
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)

    def look(*_):
        cudnn = torch.backends.cudnn
        seen.append((cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32))

    extractor.network.register_forward_hook(look)
    extractor(images[:1])
    assert seen == [(True, False, True, False)]


def test_no_images_have_no_features(extractor, images):
    assert extractor(images[:0]).shape == (0, 512)


def test_provenance_names_network_size_and_weights(squeezenet, extractor):
    digest = hashlib.sha256(squeezenet[0].read_bytes()).hexdigest()
    assert extractor.provenance == f"squeezenet, 64 px, weights {digest[:8]}"
    assert Extractor("squeezenet", squeezenet[0]).provenance.startswith("squeezenet, 224 px, ")
    assert (extractor.n_features, extractor.device) == (512, "cpu")


def test_device_is_the_best_available(squeezenet, monkeypatch):
    assert Extractor("squeezenet", squeezenet[0]).device == ("cuda" if torch.cuda.is_available() else "cpu")
    with pytest.raises(HashbenchError, match="device is 'gpu', expected 'auto', 'cpu' or 'cuda'"):
        Extractor("squeezenet", squeezenet[0], device="gpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HashbenchError, match="PyTorch finds no CUDA GPU here"):
        Extractor("squeezenet", squeezenet[0], device="cuda")


@pytest.mark.parametrize(
    ("name", "size"), [("vgg-f", 128), ("alexnet", 32), ("vgg16", 31), ("squeezenet", 0), ("resnet18", -5)]
)
def test_size_that_a_network_cannot_take_is_refused_before_the_file_is_read(name, size, tmp_path):
    with pytest.raises(HashbenchError, match=f"{name} cannot take images of {size} x {size} pixels"):
        Extractor(name, tmp_path / "absent.pth", image_size=size)


@pytest.mark.slow
@pytest.mark.skipif(not (DATA / "squeezenet1_0.pth").is_file(), reason="needs the real weights and images")
def test_features_of_real_images_agree_with_those_computed_elsewhere():
    with np.load(DATA / "cifar10-squeezenet-fire9-128px.npz") as file:
        known = file["features"]
    with tarfile.open(DATA / "cifar10-images.tar.xz") as archive:
        files = {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}
    names = sorted(files, key=lambda name: (not name.startswith("train/"), name))
    rows = np.random.default_rng(0).choice(len(names), size=64, replace=False)
    images = np.stack([np.asarray(Image.open(io.BytesIO(files[names[row]])).convert("RGB")) for row in rows])
    extractor = Extractor("squeezenet", DATA / "squeezenet1_0.pth", image_size=128, device="cpu")
    expected = known[rows].astype(np.float32)
    errors = np.linalg.norm(extractor(images) - expected, axis=1) / np.linalg.norm(expected, axis=1)
    assert len(names) == len(known) == 60_000
    assert errors.max() < 1e-2

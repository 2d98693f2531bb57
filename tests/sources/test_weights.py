import hashlib
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from helpers.error_sentences import complaint
from helpers.paths import DATA
from helpers.striped_images import SIZE, save_weights, stripes
from helpers.thoroughness import slow
from PIL import Image
from scipy.io import savemat

from hashbench.errors import HashbenchError
from hashbench.sources.features import weights as weights_module
from hashbench.sources.features.backbones import BACKBONES, FIRST_LAYER
from hashbench.sources.features.weights import Extractor, FrozenBelow, pretrained, read_weights, to_input
from hashbench.store import artifact

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
    return np.random.default_rng(0).integers(0, 256, (36, 32, 32, 3), dtype=np.uint8)


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


def test_state_dict_may_be_wrapped_come_from_several_devices_and_be_of_half_precision(squeezenet, tmp_path):
    halves = {key: value.half() for key, value in squeezenet[1].state_dict().items()}
    path = tmp_path / "checkpoint.pt"
    torch.save({"epoch": 3, "state_dict": {f"module.{key}": value for key, value in halves.items()}}, path)
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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features.0.bias": None}, 'Missing key(s) in state_dict: "features.0.bias"'),
        ({"fc.weight": torch.zeros(3)}, 'Unexpected key(s) in state_dict: "fc.weight"'),
        ({"classifier.1.weight": torch.zeros(10, 512, 1, 1)}, "size mismatch for classifier.1.weight"),
        ({"classifier.1.bias": torch.full((1000,), torch.nan)}, "has values of classifier.1.bias that are not finite"),
    ],
)
def test_weights_of_another_network_are_refused(squeezenet, tmp_path, changes, message):
    state = {**squeezenet[1].state_dict(), **changes}
    torch.save({key: value for key, value in state.items() if value is not None}, tmp_path / "other.pth")
    text = complaint(read_weights, "squeezenet", tmp_path / "other.pth")
    assert message in text
    assert text.endswith(f"Pass a file such as {BACKBONES['squeezenet'].weights_url}.")


class Caller:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>not found</html>",
        0.5,  # the share that is there
        0.99,
        torch.zeros(3),
        {"state_dict": 5},
        {"epoch": 5},
        {3: torch.zeros(3)},
        {"features.0.bias": Path},
        Caller,
    ],
)
def test_file_without_weights_is_refused_and_no_code_is_run(squeezenet, tmp_path, content):
    for name, path in (("squeezenet", tmp_path / "weights.pth"), ("vgg-f", tmp_path / "weights.mat")):
        if isinstance(content, float):
            path.write_bytes(squeezenet[0].read_bytes()[: int(content * squeezenet[0].stat().st_size)])
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            torch.save({"features.0.bias": Caller(tmp_path / "called")} if content is Caller else content, path)
        assert "is damaged or not a file of weights" in complaint(read_weights, name, path)
    assert not (tmp_path / "called").exists()


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


def test_mat_file_of_another_network_is_refused(tmp_path):
    arrays = {name: (np.ones((5, 4, 3, 2), np.float32), np.ones((2, 1), np.float32)) for name in ("conv1", "conv9")}
    for form in ("new", "old"):
        write_mat(tmp_path / "tiny.mat", arrays, np.ones((1, 1, 3), np.float32), form)
        message = complaint(read_weights, "vgg-f", tmp_path / "tiny.mat")
        assert 'Missing key(s) in state_dict: "conv2.weight", "conv2.bias", "conv3.weight"' in message
        assert "conv1.weight" not in message.partition("size mismatch")[0]


def test_filters_of_matlab_are_turned(monkeypatch, tmp_path):
    """From (height, width, in, out) to (out, in, height, width); full layers see one position."""
    rng = np.random.default_rng(0)
    shapes = {"conv1": (5, 4, 3, 2), "fc6": (2, 3, 4, 5)}
    arrays = {name: (rng.normal(size=shape), rng.normal(size=(shape[3], 1))) for name, shape in shapes.items()}
    for form in ("new", "old"):
        write_mat(tmp_path / "tiny.mat", arrays, np.arange(3.0).reshape(1, 1, 3), form)
        state = weights_module._read_mat((tmp_path / "tiny.mat").read_bytes())
        filters = arrays["conv1"][0]
        assert state["conv1.weight"].shape == (2, 3, 5, 4)
        assert state["conv1.weight"][1, 2, 3, 0] == np.float32(filters[3, 0, 2, 1])
        assert (
            state["fc6.weight"][4].tolist() == np.float32(arrays["fc6"][0][..., 4].transpose(2, 0, 1)).ravel().tolist()
        )
        assert state["fc6.bias"].tolist() == np.float32(arrays["fc6"][1]).ravel().tolist()
        assert state["average_image"][:, 5, 7].tolist() == [0, 1, 2]


PIXELS = np.random.default_rng(0).integers(0, 256, (2, 40, 30, 3), dtype=np.uint8)[:, :30]


def test_input_of_one_colour_is_that_colour_normalised():
    images = np.empty((1, 8, 8, 3), np.uint8)
    images[:] = (255, 0, 51)
    inputs = to_input(images, BACKBONES["resnet18"], 16)
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
    assert features.shape == (36, 512)
    with torch.no_grad():
        expected = network(to_input(images, BACKBONES["squeezenet"], 64)).numpy()
    np.testing.assert_allclose(features, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(extractor(images[33:34]), features[33:34], rtol=1e-5, atol=1e-6)
    assert np.array_equal(extractor(images), features)
    assert extractor(images[:0]).shape == (0, 512)


def test_features_are_the_same_bytes_on_any_number_of_threads(extractor, images, monkeypatch):
    before, features = torch.get_num_threads(), []
    for n_threads in (1, 2):
        monkeypatch.setenv("LOKY_MAX_CPU_COUNT", str(n_threads))
        torch.set_num_threads(n_threads)
        features.append(extractor(images).tobytes())
        assert torch.get_num_threads() == n_threads
    torch.set_num_threads(before)
    assert features[0] == features[1]


def test_cudnn_is_on_while_features_are_computed(extractor, images, monkeypatch):
    seen = []
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", True)

    def look(*_):
        cudnn = torch.backends.cudnn
        seen.append((cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32))

    extractor.network.register_forward_hook(look)
    extractor(images[:1])
    assert seen == [(True, False, True, False)]


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


# ---------------------------------------------------------------- frozen layers


IMAGES = stripes()[0][:6]
SMALLEST = {"squeezenet": SIZE, "alexnet": 64, "vgg-f": 199, "vgg16": 32, "resnet18": 33}  # pixels, or near it


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    return save_weights("squeezenet", tmp_path_factory.mktemp("weights") / "squeezenet.pth")


def cut(path, train_from="fire5", name="squeezenet", size=SIZE):
    return FrozenBelow(name, path, image_size=size, device="cpu", train_from=train_from)


@pytest.mark.parametrize("name", ["squeezenet", *slow(*(name for name in SMALLEST if name != "squeezenet"))])
def test_layers_below_and_above_any_cut_make_the_whole_network(name, tmp_path):
    path, size = save_weights(name, tmp_path / "weights.pth"), SMALLEST[name]
    whole = Extractor(name, path, image_size=size, device="cpu")(IMAGES)
    assert whole.std() > 0
    part = cut(path, FIRST_LAYER, name, size)
    for part.n_frozen, layer in enumerate(BACKBONES[name].layers):
        vars(part).pop("_shape", None)
        inputs = part.inputs(IMAGES)
        assert inputs.dtype == (np.uint8 if layer == FIRST_LAYER else np.float16)
        np.testing.assert_allclose(part(inputs), whole, rtol=0.02, atol=0.01 * whole.std(), err_msg=layer)


def test_gradient_reaches_the_layers_above_the_cut_alone(weights):
    part = cut(weights)
    part.forward(torch.from_numpy(part.inputs(IMAGES))).sum().backward()
    reached = {key for key, value in part.network.named_parameters() if value.grad is not None and value.grad.any()}
    assert {key.split(".")[1] for key in reached} == {"7", "8", "9", "10", "12"}  # of features: fire5 to fire9


def test_activations_are_cached_as_they_are_computed(weights, tmp_path, monkeypatch):
    monkeypatch.setattr(artifact, "_MAPPED", 1)
    computed, cached = cut(weights).inputs(IMAGES), cut(weights).inputs(IMAGES, tmp_path)
    np.testing.assert_array_equal(cached, computed)
    (path,) = tmp_path.glob("*.h5")
    assert path.name.startswith("squeezenet-fire5-")
    monkeypatch.setattr(weights_module, "in_batches", None)
    cached = cut(weights).inputs(IMAGES, tmp_path)
    assert isinstance(cached.base, np.memmap)
    np.testing.assert_array_equal(cached, computed)


def test_activations_of_other_weights_layers_or_images_have_their_own_file(weights, tmp_path):
    other = save_weights("squeezenet", tmp_path / "other.pth", seed=1)
    folder = tmp_path / "cache"
    usual = cut(weights)
    for part, images in (
        (usual, IMAGES),
        (usual, IMAGES[:, :, ::-1]),
        (usual, IMAGES[:5]),
        (cut(other), IMAGES),
        (cut(weights, "fire4"), IMAGES),
        (cut(weights, size=48), IMAGES),
    ):
        np.testing.assert_array_equal(part.inputs(images, folder), part.inputs(images))
    assert len([*folder.glob("*.h5")]) == 6


def test_kind_of_device_and_versions_decide_activations(weights, monkeypatch):
    part, keys = cut(weights), set()
    changes = [(part, "device", "cpu"), (part, "device", "cuda"), (torch, "__version__", "0.0.0")]
    for target, name, value in [*changes, (weights_module, "DATASET_VERSION", "other")]:
        monkeypatch.setattr(target, name, value)
        keys.add(part._key(IMAGES))
    assert len(keys) == 4


def test_activations_beyond_float16_are_refused(weights, tmp_path):
    state = torch.load(weights, weights_only=True)
    state["features.0.weight"] *= 1e6
    torch.save(state, tmp_path / "large.pth")
    text = complaint(cut(tmp_path / "large.pth", "fire2").inputs, IMAGES)
    assert text.startswith("squeezenet gives fire2 numbers beyond the range of float16.")
    assert "train_from" in text


def test_activations_that_memory_cannot_hold_are_refused_before_they_are_computed(weights, monkeypatch):
    monkeypatch.setattr("hashbench.store.inputs.free_memory", lambda: 1000)
    monkeypatch.setattr(weights_module, "in_batches", None)
    with pytest.raises(HashbenchError, match=r"what squeezenet gives fire5 for 6 images takes .* GB of memory"):
        cut(weights).inputs(IMAGES)

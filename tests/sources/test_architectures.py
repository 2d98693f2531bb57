import subprocess
import sys

import numpy as np
import pytest
import torch
from helpers.processes import printed_by
from helpers.thoroughness import slow

from hashbench.errors import HashbenchError
from hashbench.sources.features.backbones import BACKBONES, FIRST_LAYER, TRAINABLE, get_backbone
from hashbench.sources.features.extraction import KINDS
from hashbench.sources.features.weights import blank, drawn_weights, to_input

N_PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg-f": 60_834_536,
    "vgg16": 138_357_544,
    "squeezenet": 1_248_424,
    "resnet18": 11_689_512,
    "resnet50": 25_557_032,
    "dsh-net": 32 * 76 + 32 * 801 + 64 * 801 + 500 * 1025,  # filters of 5 x 5 x 3 and 5 x 5 x 32, and biases
}
SHAPES = {  # of some parameters of the official file, among them the first and the last
    "alexnet": {
        "features.0.weight": (64, 3, 11, 11),
        "features.10.bias": (256,),
        "classifier.1.weight": (4096, 9216),
        "classifier.6.bias": (1000,),
    },
    "vgg-f": {
        "average_image": (3, 224, 224),
        "conv2.weight": (256, 64, 5, 5),
        "fc6.weight": (4096, 9216),
        "fc8.weight": (1000, 4096),
    },
    "vgg16": {
        **{f"features.{number}.weight": (512, 512, 3, 3) for number in (19, 21, 24, 26, 28)},
        **{f"features.{number}.bias": (256,) for number in (10, 12, 14)},
        "features.0.weight": (64, 3, 3, 3),
        "classifier.0.weight": (4096, 25088),
        "classifier.6.bias": (1000,),
    },
    "squeezenet": {
        "features.0.weight": (96, 3, 7, 7),
        "features.3.squeeze.weight": (16, 96, 1, 1),
        "features.7.expand1x1.bias": (128,),
        "features.12.expand3x3.weight": (256, 64, 3, 3),
        "classifier.1.weight": (1000, 512, 1, 1),
    },
    "resnet18": {
        "bn1.running_mean": (64,),
        "layer1.0.conv2.weight": (64, 64, 3, 3),
        "layer2.0.downsample.0.weight": (128, 64, 1, 1),
        "fc.weight": (1000, 512),
    },
    "resnet50": {
        "layer1.0.downsample.0.weight": (256, 64, 1, 1),
        "layer3.5.conv2.weight": (256, 256, 3, 3),
        "layer4.2.bn3.bias": (2048,),
        "fc.weight": (1000, 2048),
    },
    "dsh-net": {
        "conv1.weight": (32, 3, 5, 5),
        "conv2.weight": (32, 32, 5, 5),
        "conv3.weight": (64, 32, 5, 5),
        "fc4.weight": (500, 1024),  # 64 maps of 4 x 4
    },
}
# Tensors of the state dict.
N_TENSORS = {"alexnet": 16, "vgg-f": 17, "vgg16": 32, "squeezenet": 52, "resnet18": 122, "resnet50": 320, "dsh-net": 9}


@pytest.fixture
def pixels():
    return np.random.default_rng(0).integers(0, 256, (2, 40, 30, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", BACKBONES)
def test_parameters_are_those_of_the_official_file(name):
    state = blank(name).state_dict()
    assert sum(parameter.numel() for parameter in blank(name).parameters()) == N_PARAMETERS[name]
    assert {key: tuple(state[key].shape) for key in SHAPES[name]} == SHAPES[name]
    assert len(state) == N_TENSORS[name]


@pytest.mark.parametrize("name", BACKBONES)
def test_network_has_the_layers_and_the_number_of_features_that_the_registry_names(name):
    backbone = BACKBONES[name]
    images = torch.empty(2, 3, backbone.input_size, backbone.input_size, device="meta")
    assert blank(name)(images).shape == (2, backbone.n_features)
    assert len(blank(name).layers()) == len(backbone.layers)
    assert backbone.layers[0] == FIRST_LAYER


@pytest.mark.parametrize(("name", "counts"), [("alexnet", [1] * 4), ("vgg16", [2, 2, 3, 3]), ("squeezenet", [1] * 8)])
def test_layers_begin_with_their_convolutions(name, counts):
    pieces = blank(name).layers()[: len(counts)]  # the last of convolutions is a function
    has_weights = [[any(True for _ in part.parameters()) for part in piece] for piece in pieces]
    assert all(parts[0] for parts in has_weights)
    assert [*map(sum, has_weights)] == counts


def test_most_networks_are_trained_end_to_end_and_all_pretrained_ones_are_kinds_of_features():
    assert list(TRAINABLE) == ["squeezenet", "alexnet", "vgg-f", "vgg16", "resnet18", "dsh-net"]
    assert list(KINDS) == ["pixels", "gist", *TRAINABLE[:-1], "resnet50", "hf:MODEL", "images"]


def test_unknown_backbone_suggests_a_near_name():
    with pytest.raises(HashbenchError, match=r"unknown backbone 'squeezenet1_0'. Did you mean 'squeezenet'\?"):
        get_backbone("squeezenet1_0")


def resolutions(network, images):
    """Width of the maps behind every layer that changes it."""
    widths = []
    for layer in network.modules():
        if isinstance(layer, torch.nn.Conv2d | torch.nn.MaxPool2d | torch.nn.AvgPool2d):
            layer.register_forward_hook(lambda layer, inputs, output: widths.append(output.shape[-1]))
    network(images)
    return [width for before, width in zip([None, *widths], widths, strict=False) if width != before]


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [
        ("alexnet", 224, [55, 27, 13, 6]),
        ("vgg-f", 224, [54, 27, 13, 6]),  # table 1 of the paper; 27 and 6 need the padding of one row and column
        ("vgg16", 224, [224, 112, 56, 28, 14, 7]),
        ("squeezenet", 224, [109, 54, 27, 13]),  # 7 x 7, stride 2, no padding; ceil(106 / 2) + 1 = 54
        ("squeezenet", 128, [61, 30, 15, 7]),
        ("squeezenet", 130, [62, 31, 15, 7]),  # ceil(59 / 2) + 1 = 31, where rounding down gives 30
        ("resnet18", 224, [112, 56, 28, 14, 7]),
        ("dsh-net", 32, [32, 16, 8, 4]),  # ceil(29 / 2) + 1, ceil(13 / 2) + 1, ceil(5 / 2) + 1
    ],
)
def test_maps_shrink_as_in_the_paper(name, size, expected):
    assert resolutions(blank(name), torch.empty(1, 3, size, size, device="meta")) == expected


def test_bottlenecks_halve_the_resolution_in_their_middle():
    network = blank("resnet50")
    strides = [network.get_submodule(f"layer3.0.conv{number}").stride for number in (1, 2, 3)]
    assert strides == [(1, 1), (2, 2), (1, 1)]


@pytest.mark.parametrize(
    ("name", "size"),
    [("squeezenet", 64), ("resnet18", 64), ("dsh-net", 32), *slow(("alexnet", 63), ("vgg-f", 199), ("vgg16", 32))],
)
def test_gradient_reaches_the_first_layer(name, size, pixels):
    torch.manual_seed(0)
    network = BACKBONES[name].build().eval()
    network(to_input(pixels, BACKBONES[name], size)).sum().backward()
    assert network.get_parameter(next(key for key, _ in network.named_parameters())).grad.abs().sum() > 0
    unused = {key.split(".")[0] for key, parameter in network.named_parameters() if parameter.grad is None}
    assert unused <= {"classifier", "fc8", "fc"}  # class scores


def test_vgg16_is_a_chain_of_convolutions_and_full_layers():
    torch.manual_seed(0)
    network = blank("vgg16").to_empty(device="cpu").eval()
    for parameter in network.parameters():
        torch.nn.init.normal_(parameter, std=(2 / parameter[0].numel()) ** 0.5 if parameter.ndim > 1 else 0.1)
    images = torch.rand(2, 3, 64, 64)
    values, maps = iter(network.state_dict().values()), images
    for n_convolutions in (2, 2, 3, 3, 3):
        for _ in range(n_convolutions):
            maps = torch.nn.functional.conv2d(maps, next(values), next(values), padding=1).clamp(min=0)
        n, n_channels, height, width = maps.shape
        maps = maps.reshape(n, n_channels, height // 2, 2, width // 2, 2).amax(dim=(3, 5))
    first, second = torch.eye(2)
    shares = torch.stack([first, first, first, (first + second) / 2, second, second, second])  # of 2 rows in each of 7
    expected = (shares @ maps @ shares.T).flatten(1)
    for _ in ("fc6", "fc7"):
        expected = (expected @ next(values).T + next(values)).clamp(min=0)
    with torch.no_grad():
        torch.testing.assert_close(network(images), expected, rtol=1e-4, atol=1e-4)
    assert expected.std() > 0.1


def test_residual_block_adds_its_input():
    torch.manual_seed(0)
    block = BACKBONES["resnet18"].build().eval().layer1[0]
    torch.nn.init.zeros_(block.conv2.weight)
    maps = torch.rand(1, 64, 5, 5)
    torch.testing.assert_close(block(maps), maps)  # what is added is nought, and the rest is not negative


def test_response_normalisation_of_vggf_sums_over_five_channels():
    maps = torch.rand(1, 8, 1, 1) * 100
    squares = maps.flatten().double() ** 2
    sums = torch.stack([squares[max(0, channel - 2) : channel + 3].sum() for channel in range(8)])
    expected = maps.flatten().double() / (2 + 1e-4 * sums) ** 0.75
    normalised = blank("vgg-f").norm(maps).flatten()
    torch.testing.assert_close(normalised.double(), expected, rtol=1e-5, atol=0)


def shifted(maps, weights, biases):
    """Correlation with 5 x 5 filters over maps (channels, side, side), two pixels of zeros around them."""
    side = maps.shape[1]
    padded = np.pad(maps, ((0, 0), (2, 2), (2, 2)))
    products = (
        np.tensordot(weights[:, :, y, x], padded[:, y : y + side, x : x + side], 1) for y in range(5) for x in range(5)
    )
    return sum(products) + biases[:, None, None]


def pooled(maps, reduce):
    """Windows of 3 x 3 with stride 2, of which the last ones stick out: what lies outside does not count."""
    places = range(0, maps.shape[1], 2)
    values = [[reduce(maps[:, y : y + 3, x : x + 3], axis=(1, 2)) for x in places] for y in places]
    return np.array(values).transpose(2, 0, 1)


def divided(maps):
    padded = np.pad(maps**2, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return maps / (1 + 5e-5 / 9 * windows.sum(axis=(3, 4))) ** 0.75


def test_network_of_dsh_computes_what_caffe_would():
    images = np.random.default_rng(0).integers(0, 256, (5, 32, 32, 3), dtype=np.uint8)
    weights = drawn_weights("dsh-net", images, torch.Generator().manual_seed(0)).state
    arrays = {key: value.double().numpy() for key, value in weights.items()}
    maps = (images[0] - images.mean(axis=0)).transpose(2, 0, 1)
    for name in ("conv1", "conv2"):
        maps = shifted(maps, arrays[f"{name}.weight"], arrays[f"{name}.bias"])
        maps = divided(np.maximum(pooled(maps, np.max if name == "conv1" else np.mean), 0))
    maps = pooled(np.maximum(shifted(maps, arrays["conv3.weight"], arrays["conv3.bias"]), 0), np.mean)
    expected = np.maximum(arrays["fc4.weight"] @ maps.ravel() + arrays["fc4.bias"], 0)
    network = blank("dsh-net")
    network.load_state_dict(weights, assign=True)
    with torch.no_grad():
        (features,) = network(to_input(images[:1], BACKBONES["dsh-net"]))
    assert 100 < (expected > 0).sum() < 400
    np.testing.assert_allclose(features, expected, rtol=1e-3, atol=1e-4 * expected.max())


def test_initial_weights_of_dsh_are_uniform_with_the_variance_of_one_input_in_n_and_biases_are_zero():
    images = np.zeros((1, 8, 8, 3), np.uint8) + np.uint8([10, 20, 30])
    state = drawn_weights("dsh-net", images, torch.Generator().manual_seed(0)).state
    for key, n_inputs in {"conv1": 75, "conv2": 800, "conv3": 800, "fc4": 1024}.items():
        weight = state[f"{key}.weight"]
        assert weight.abs().max() == pytest.approx((3 / n_inputs) ** 0.5, rel=0.01)
        assert weight.var() == pytest.approx(1 / n_inputs, rel=0.1)
        assert not state[f"{key}.bias"].any()
    assert state["average_image"].flatten(1).T.unique(dim=0).tolist() == [[10, 20, 30]]  # of images of another size


def test_without_torch_the_import_says_what_to_install():
    code = (
        "sys.modules['torch'] = None\n"
        "from hashbench.errors import HashbenchError\n"
        "try:\n    import hashbench.sources.features.weights\n"
        "except HashbenchError as error:\n    print(error)"
    )
    assert printed_by(code).startswith("this needs PyTorch: pip install torch --index-url https://")


def test_a_broken_torch_keeps_its_own_error(tmp_path):
    (tmp_path / "torch.py").write_text("import no_such_library\n")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import hashbench.sources.features.architectures"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'no_such_library'"

"""Networks trained on ImageNet that turn images into features: AlexNet, VGG-F, SqueezeNet, ResNet."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hashbench._torch import import_torch
from hashbench.errors import HashbenchError, unknown_name

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = import_torch()
    Tensor, nn = torch.Tensor, torch.nn

IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
_ENLARGED = 4  # how many times networks see small images enlarged


class Network(nn.Module):
    """Images to features; differentiable.

    Parameters and buffers carry the names of the weights file, with those of the layer that gives the
    1,000 class scores of ImageNet, which the features do without.
    """

    def forward(self, images: Tensor) -> Tensor:
        """Compute features.

        Parameters
        ----------
        images : Tensor of shape (n, 3, size, size), float32
            As `Backbone.to_input` gives them.

        Returns
        -------
        Tensor of shape (n, n_features), float32
            Not negative.
        """
        return self._compute(images)

    def _compute(self, images: Tensor) -> Tensor:
        raise NotImplementedError


class AlexNet(Network):
    """AlexNet in one tower [1]_; features are fc7 after ReLU, 4,096.

    References
    ----------
    .. [1] A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014,
       arXiv:1404.5997.
    """

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 64, 11, stride=4, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2)),
            *(nn.Conv2d(64, 192, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2)),
            *(nn.Conv2d(192, 384, 3, padding=1), nn.ReLU(inplace=True)),
            *(nn.Conv2d(384, 256, 3, padding=1), nn.ReLU(inplace=True)),
            *(nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2)),
        )
        self.avgpool = nn.AdaptiveAvgPool2d(6)
        self.classifier = nn.Sequential(
            *(nn.Dropout(), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(inplace=True)),
            *(nn.Dropout(), nn.Linear(4096, 4096), nn.ReLU(inplace=True)),
            nn.Linear(4096, 1000),
        )

    def _compute(self, images: Tensor) -> Tensor:
        maps = self.avgpool(self.features(images))  # (n, 256, 6, 6)
        features: Tensor = self.classifier[:-1](maps.flatten(1))
        return features


class VGGF(Network):
    """VGG-F, called CNN-F in [1]_; features are fc7 after ReLU, 4,096.

    Layers are called as in MatConvNet's file: ``conv1`` to ``conv5`` and ``fc6`` to ``fc8``. The buffer
    ``average_image`` (3, 224, 224) is subtracted from the pixels, 0 to 255, first. As in that file there is no
    dropout. Images have 199 to 230 pixels a side.

    Notes
    -----
    Local response normalisation divides by (2 + 1e-4 s)^0.75, where s sums the squares of five neighbouring
    channels; torch takes the mean of the five instead, hence 5e-4. Pooling of MatConvNet pads one row below and
    one column to the right, which never wins the maximum: that is ``ceil_mode``.

    References
    ----------
    .. [1] K. Chatfield, K. Simonyan, A. Vedaldi, A. Zisserman, "Return of the Devil in the Details: Delving
       Deep into Convolutional Nets", BMVC 2014, arXiv:1405.3531, table 1.
    """

    average_image: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average_image", torch.zeros(3, 224, 224))
        self.conv1 = nn.Conv2d(3, 64, 11, stride=4)
        self.conv2 = nn.Conv2d(64, 256, 5, padding=2)
        self.conv3 = nn.Conv2d(256, 256, 3, padding=1)
        self.conv4 = nn.Conv2d(256, 256, 3, padding=1)
        self.conv5 = nn.Conv2d(256, 256, 3, padding=1)
        self.fc6 = nn.Linear(256 * 6 * 6, 4096)
        self.fc7 = nn.Linear(4096, 4096)
        self.fc8 = nn.Linear(4096, 1000)
        self.norm = nn.LocalResponseNorm(5, alpha=5e-4, beta=0.75, k=2.0)
        self.pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)

    def _compute(self, images: Tensor) -> Tensor:
        average = nn.functional.interpolate(self.average_image[None], images.shape[2:], mode="bilinear")
        maps = self.pool(self.norm(self.conv1(images - average).relu_()))
        maps = self.pool(self.norm(self.conv2(maps).relu_()))
        maps = self.conv4(self.conv3(maps).relu_()).relu_()
        maps = self.pool(self.conv5(maps).relu_())  # (n, 256, 6, 6)
        features: Tensor = self.fc7(self.fc6(maps.flatten(1)).relu_()).relu_()
        return features


class _Fire(nn.Module):
    """Squeeze to few channels, then expand by 1 x 1 and 3 x 3 convolutions side by side."""

    def __init__(self, n_in: int, n_squeezed: int, n_expanded: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(n_in, n_squeezed, 1)
        self.expand1x1 = nn.Conv2d(n_squeezed, n_expanded, 1)
        self.expand3x3 = nn.Conv2d(n_squeezed, n_expanded, 3, padding=1)

    def forward(self, maps: Tensor) -> Tensor:
        squeezed = self.squeeze(maps).relu_()
        return torch.cat([self.expand1x1(squeezed), self.expand3x3(squeezed)], dim=1).relu_()


class SqueezeNet(Network):
    """SqueezeNet 1.0 [1]_; features are the last fire module's output, its mean over space, 512.

    References
    ----------
    .. [1] F. N. Iandola et al., "SqueezeNet: AlexNet-level accuracy with 50x fewer parameters and < 0.5 MB
       model size", 2016, arXiv:1602.07360, table 1.
    """

    def __init__(self) -> None:
        super().__init__()
        pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.features = nn.Sequential(
            *(nn.Conv2d(3, 96, 7, stride=2), nn.ReLU(inplace=True), pool),
            *(_Fire(96, 16, 64), _Fire(128, 16, 64), _Fire(128, 32, 128), pool),
            *(_Fire(256, 32, 128), _Fire(256, 48, 192), _Fire(384, 48, 192), _Fire(384, 64, 256), pool),
            _Fire(512, 64, 256),
        )
        self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(512, 1000, 1))

    def _compute(self, images: Tensor) -> Tensor:
        features: Tensor = self.features(images).mean(dim=(2, 3))
        return features


class _Residual(nn.Module):
    """Convolutions, each with batch normalisation, around which the input is led and added."""

    def __init__(self, n_in: int, convolutions: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.n_convolutions = len(convolutions)
        n_before, total_stride = n_in, 1
        for number, (kernel, n_out, stride) in enumerate(convolutions, start=1):
            layer = nn.Conv2d(n_before, n_out, kernel, stride=stride, padding=kernel // 2, bias=False)
            self.add_module(f"conv{number}", layer)
            self.add_module(f"bn{number}", nn.BatchNorm2d(n_out))
            n_before, total_stride = n_out, total_stride * stride
        self.downsample = nn.Sequential()  # leaves the input as it is
        if total_stride > 1 or n_in != n_before:
            shortcut = nn.Conv2d(n_in, n_before, 1, stride=total_stride, bias=False)
            self.downsample.extend([shortcut, nn.BatchNorm2d(n_before)])

    def forward(self, maps: Tensor) -> Tensor:
        inner = maps
        for number in range(1, self.n_convolutions + 1):
            inner = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(inner))
            if number < self.n_convolutions:
                inner = inner.relu_()
        outer: Tensor = self.downsample(maps)
        return (inner + outer).relu_()


class ResNet(Network):
    """A residual network [1]_; features are the global average pool, 512 or 2,048.

    Bottlenecks halve the resolution in their 3 x 3 convolution, as torchvision's do.

    Parameters
    ----------
    n_blocks : iterable of int
        Residual blocks of each of the four stages, of 64, 128, 256 and 512 channels.
    bottleneck : bool
        Blocks of 1 x 1, 3 x 3 and 1 x 1 convolutions with four times the channels at the end, else of two 3 x 3.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", CVPR 2016,
       arXiv:1512.03385, table 1.
    """

    def __init__(self, n_blocks: Iterable[int], *, bottleneck: bool) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        n_in = 64
        for stage, n in enumerate(n_blocks):
            width = 64 << stage
            layer = nn.Sequential()
            for block in range(n):
                stride = 2 if stage and not block else 1
                if bottleneck:
                    convolutions = [(1, width, 1), (3, width, stride), (1, 4 * width, 1)]
                else:
                    convolutions = [(3, width, stride), (3, width, 1)]
                layer.append(_Residual(n_in, convolutions))
                n_in = convolutions[-1][1]
            self.add_module(f"layer{stage + 1}", layer)
        self.fc = nn.Linear(n_in, 1000)

    def _compute(self, images: Tensor) -> Tensor:
        maps = self.maxpool(self.bn1(self.conv1(images)).relu_())
        for stage in range(1, 5):
            maps = self.get_submodule(f"layer{stage}")(maps)
        features: Tensor = maps.mean(dim=(2, 3))
        return features


@dataclass(frozen=True)
class Backbone:
    """What is known about a network before its weights are read.

    Parameters
    ----------
    build : callable
        Makes the network, untrained.
    n_features : int
        Length of a feature vector.
    weights_url : str
        Where the official weights are.
    sha256_prefix : str or None
        First hex digits of that file's SHA-256, where its publisher tells them.
    licence : str
        Of the weights.
    input_size : int, default=224
        Width and height of the images it was trained on, in pixels.
    any_size : bool, default=False
        Whether it takes other sizes too: no layer before the features is tied to one.
    pixel_max : int, default=1
        What the brightest pixel is before the mean is subtracted: 1 or 255.
    mean, std : tuple of float
        Of R, G and B on that scale; subtracted, and divided by. VGG-F subtracts an average image itself.
    """

    build: Callable[[], Network]
    n_features: int
    weights_url: str
    sha256_prefix: str | None
    licence: str
    input_size: int = 224
    any_size: bool = False
    pixel_max: int = 1
    mean: tuple[float, float, float] = IMAGENET_MEAN
    std: tuple[float, float, float] = IMAGENET_STD

    def usual_size(self, native_size: int | None) -> int:
        """Choose the size that images are resized to where users do not.

        Parameters
        ----------
        native_size : int or None
            Width and height of the images themselves, None if they differ.

        Returns
        -------
        int
            ``input_size``; less where that would enlarge small images more than four times, 128 pixels for
            CIFAR's 32, if the network allows it.
        """
        return min(self.input_size, _ENLARGED * native_size) if self.any_size and native_size else self.input_size

    def to_input(self, images: npt.NDArray[Any] | Tensor, size: int | None = None) -> Tensor:
        """Resize images and bring them to the scale that the network was trained on.

        Parameters
        ----------
        images : ndarray or Tensor of shape (n, height, width, 3), uint8
            RGB.
        size : int, optional
            Width and height in pixels; ``input_size`` if left out.

        Returns
        -------
        Tensor of shape (n, 3, size, size), float32
            On the device of ``images``, in memory with the channels last, on which convolutions are faster. Resized
            bicubically; where that shrinks, smoothed first.

        Raises
        ------
        HashbenchError
            If the images have another shape or dtype.
        """
        pixels = images if isinstance(images, Tensor) else torch.from_numpy(np.array(images))
        if pixels.ndim != 4 or pixels.shape[3] != 3 or pixels.dtype != torch.uint8:
            raise HashbenchError(
                f"images are {str(pixels.dtype).removeprefix('torch.')} of shape {tuple(pixels.shape)}, expected uint8 "
                "of shape (n, height, width, 3), red, green and blue from 0 to 255."
            )
        size = size or self.input_size
        shrinks = size < max(pixels.shape[1:3])
        resized = nn.functional.interpolate(
            pixels.permute(0, 3, 1, 2).float(), (size, size), mode="bicubic", align_corners=False, antialias=shrinks
        )
        mean, std = (resized.new_tensor(values)[:, None, None] for values in (self.mean, self.std))  # (3, 1, 1)
        return (resized * (self.pixel_max / 255) - mean) / std


def _torchvision(build: Callable[[], Network], n_features: int, file: str, *, any_size: bool = True) -> Backbone:
    """Describe a network whose official weights are a file of torchvision, with its SHA-256 in the name."""
    return Backbone(
        build=build,
        n_features=n_features,
        weights_url=f"https://download.pytorch.org/models/{file}",
        sha256_prefix=file.removesuffix(".pth").rpartition("-")[2],
        licence="BSD-3-Clause",
        any_size=any_size,
    )


BACKBONES: dict[str, Backbone] = {
    "alexnet": _torchvision(AlexNet, 4096, "alexnet-owt-7be5be79.pth", any_size=False),
    "vgg-f": Backbone(
        build=VGGF,
        n_features=4096,
        weights_url="https://www.vlfeat.org/matconvnet/models/imagenet-vgg-f.mat",
        sha256_prefix=None,
        licence="see https://www.robots.ox.ac.uk/~vgg/research/deep_eval",
        pixel_max=255,
        mean=(0.0, 0.0, 0.0),
        std=(1.0, 1.0, 1.0),
    ),
    "squeezenet": _torchvision(SqueezeNet, 512, "squeezenet1_0-b66bff10.pth"),
    "resnet18": _torchvision(lambda: ResNet((2, 2, 2, 2), bottleneck=False), 512, "resnet18-f37072fd.pth"),
    "resnet50": _torchvision(lambda: ResNet((3, 4, 6, 3), bottleneck=True), 2048, "resnet50-0676ba61.pth"),
}


def get_backbone(name: str) -> Backbone:
    """Find a backbone.

    Parameters
    ----------
    name : str
        Its name, such as ``resnet18``.

    Returns
    -------
    Backbone
        What is known about it.

    Raises
    ------
    HashbenchError
        If there is none of that name.
    """
    if name not in BACKBONES:
        raise unknown_name("backbone", name, BACKBONES)
    return BACKBONES[name]


def blank(name: str) -> Network:
    """Build a network without memory for its parameters, to look at names and shapes or to assign weights to.

    Parameters
    ----------
    name : str
        The backbone's name.

    Returns
    -------
    Network
        On torch's device ``meta``.
    """
    with torch.device("meta"):
        return get_backbone(name).build()

"""The layers of the networks that turn images into features: AlexNet, VGG-F, VGG-16, SqueezeNet, ResNet, DSH's.

AlexNet, VGG-16, SqueezeNet and ResNet are defined here because torchvision has no builds for some platforms that
hashbench supports. Their parameters have torchvision's names, so its weight files load.
"""

from collections.abc import Callable, Iterable
from functools import partial, reduce
from itertools import pairwise

from hashbench._typing import ByteArray
from hashbench.sources._tensors import Tensor, nn, torch

Layer = Callable[[Tensor], Tensor]


class Network(nn.Module):
    """A differentiable function from images to features.

    Parameters and buffers have the names of the weights file, if there is one. They then include the layer that
    computes the 1,000 class scores of ImageNet, which the features do not use.
    """

    def forward(self, values: Tensor, first: int = 0, end: int | None = None) -> Tensor:
        """Compute features (n, n_features), not negative, of images (n, 3, size, size) as `to_input` gives them.

        With ``first`` or ``end``, start from the inputs of layer ``first`` and return the inputs of layer ``end``.
        """
        return _chained(*self.layers()[first:end])(values)

    def layers(self) -> list[Layer]:
        """List what computes each of the layers that `Backbone` names; pooling behind a layer is part of it."""
        raise NotImplementedError

    def start(self, images: ByteArray, generator: torch.Generator) -> None:
        """Set all parameters and buffers for training from scratch on images (n, height, width, 3), in place."""
        raise NotImplementedError


def _chained(*layers: Layer) -> Layer:
    """Return the function that applies layers one after the other."""
    return lambda values: reduce(lambda inputs, layer: layer(inputs), layers, values)


def _centred(images: Tensor, average_image: Tensor) -> Tensor:
    """Subtract an average image (3, height, width), resized if images are of another size."""
    return images - nn.functional.interpolate(average_image[None], images.shape[2:], mode="bilinear")


def _mean_over_space(maps: Tensor) -> Tensor:
    """Turn maps (n, n_channels, height, width) into features (n, n_channels)."""
    return maps.mean(dim=(2, 3))


def _pieces(layers: nn.Sequential, *starts: int) -> list[nn.Sequential]:
    """Cut a sequence in front of each of ``starts``, of which the first is 0."""
    return [nn.Sequential(*[*layers][start:end]) for start, end in pairwise([*starts, len(layers)])]


class Tower(Network):
    """Five blocks of convolutions and three full layers; features are fc7 after ReLU, 4,096.

    ``convolutions`` are (n_out, kernel, stride, padding), each with ReLU, and pools, (kernel, stride); blocks begin at
    the positions ``starts``. They end in maps of ``side`` pixels.
    """

    def __init__(
        self, convolutions: Iterable[tuple[int, ...]], starts: tuple[int, ...], side: int, *, drops_first: bool
    ) -> None:
        super().__init__()
        self.features, self.starts = nn.Sequential(), starts
        n_maps = 3
        for part in convolutions:
            if len(part) == 2:
                self.features.append(nn.MaxPool2d(*part))
            else:
                n_out, kernel, stride, padding = part
                self.features.extend([nn.Conv2d(n_maps, n_out, kernel, stride, padding), nn.ReLU(inplace=True)])
                n_maps = n_out
        self.avgpool = nn.AdaptiveAvgPool2d(side)
        self.classifier = nn.Sequential()
        for n_in in (n_maps * side**2, 4096):
            layers = [nn.Linear(n_in, 4096), nn.ReLU(inplace=True)]
            self.classifier.extend([nn.Dropout(), *layers] if drops_first else [*layers, nn.Dropout()])
        self.classifier.append(nn.Linear(4096, 1000))

    def layers(self) -> list[Layer]:
        """List the blocks of convolutions, conv1 to conv5, fc6 and fc7."""
        *blocks, conv5 = _pieces(self.features, *self.starts)
        fc6, fc7, _ = _pieces(self.classifier, 0, 3, 6)
        return [*blocks, _chained(conv5, self.avgpool, nn.Flatten()), fc6, fc7]


# A. Krizhevsky, "One weird trick for parallelizing convolutional neural networks", 2014, arXiv:1404.5997: one tower.
_POOL, _MAPS = (3, 2), ((384, 3, 1, 1), (256, 3, 1, 1), (256, 3, 1, 1))
AlexNet = partial(
    Tower, ((64, 11, 4, 2), _POOL, (192, 5, 1, 2), _POOL, *_MAPS, _POOL), (0, 3, 6, 8, 10), side=6, drops_first=True
)
# K. Simonyan, A. Zisserman, "Very Deep Convolutional Networks for Large-Scale Image Recognition", ICLR 2015,
# arXiv:1409.1556, table 1, configuration D: numbers of convolutions and of channels.
_BLOCKS = ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512))
VGG16 = partial(
    Tower,
    tuple(part for n, width in _BLOCKS for part in [(width, 3, 1, 1)] * n + [(2, 2)]),
    (0, 5, 10, 17, 24),
    side=7,
    drops_first=False,
)


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

    def layers(self) -> list[Layer]:
        """List conv1 to conv5, fc6 and fc7."""
        return [
            _chained(
                partial(_centred, average_image=self.average_image), self.conv1, torch.relu_, self.norm, self.pool
            ),
            _chained(self.conv2, torch.relu_, self.norm, self.pool),
            _chained(self.conv3, torch.relu_),
            _chained(self.conv4, torch.relu_),
            _chained(self.conv5, torch.relu_, self.pool, nn.Flatten()),  # (n, 256 * 6 * 6)
            _chained(self.fc6, torch.relu_),
            _chained(self.fc7, torch.relu_),
        ]


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
        conv1 = [nn.Conv2d(3, 96, 7, stride=2), nn.ReLU(inplace=True), pool]
        early = [_Fire(96, 16, 64), _Fire(128, 16, 64), _Fire(128, 32, 128), pool]
        late = [_Fire(256, 32, 128), _Fire(256, 48, 192), _Fire(384, 48, 192), _Fire(384, 64, 256), pool]
        self.features = nn.Sequential(*conv1, *early, *late, _Fire(512, 64, 256))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Conv2d(512, 1000, 1))

    def layers(self) -> list[Layer]:
        """List conv1 and fire2 to fire9, each with the pool behind it."""
        *layers, fire9 = _pieces(self.features, 0, 3, 4, 5, 7, 8, 9, 10, 12)
        return [*layers, _chained(fire9, _mean_over_space)]


class _Residual(nn.Module):
    """Convolutions, each with batch normalisation, to whose output the input is added."""

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

    ``n_blocks`` are the residual blocks of each of the four stages, of 64, 128, 256 and 512 channels. A block has two
    3 x 3 convolutions, or as a ``bottleneck`` one of 1 x 1, 3 x 3 and 1 x 1 with four times the channels at the end;
    bottlenecks halve the resolution in their 3 x 3 convolution, as torchvision's do.

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

    def layers(self) -> list[Layer]:
        """List conv1 and the four stages, which are called layers."""
        *stages, last = (self.get_submodule(f"layer{stage}") for stage in range(1, 5))
        conv1 = _chained(self.conv1, self.bn1, torch.relu_, self.maxpool)
        return [conv1, *stages, _chained(last, _mean_over_space)]


ResNet18 = partial(ResNet, (2, 2, 2, 2), bottleneck=False)
ResNet50 = partial(ResNet, (3, 4, 6, 3), bottleneck=True)


class DSHNet(Network):
    """The network of DSH [1]_ for CIFAR-10, trained from scratch; features are its full layer after ReLU, 500.

    The layers are those of the authors' Caffe files. The buffer ``average_image`` (3, 32, 32), the mean of the training
    images, is subtracted from the pixels, 0 to 255, first. Images have 32 to 39 pixels a side.

    Notes
    -----
    Pooling is over 3 x 3 with stride 2, and windows may stick out at the right and below, as Caffe's do: 32, 16, 8, 4
    pixels. The second and third layer take the mean of what lies inside the window. Response normalisation divides by
    (1 + 5e-5 s)^0.75, where s is the mean square of the 3 x 3 neighbours in the same channel. Initial weights are
    Caffe's "xavier": uniform with variance 1 / n_inputs; biases start at 0.

    References
    ----------
    .. [1] H. Liu, R. Wang, S. Shan, X. Chen, "Deep Supervised Hashing for Fast Image Retrieval", CVPR 2016, figure 2.
    """

    average_image: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("average_image", torch.zeros(3, 32, 32))
        self.conv1 = nn.Conv2d(3, 32, 5, padding=2)
        self.conv2 = nn.Conv2d(32, 32, 5, padding=2)
        self.conv3 = nn.Conv2d(32, 64, 5, padding=2)
        self.fc4 = nn.Linear(64 * 4 * 4, 500)
        self.max_pool = nn.MaxPool2d(3, stride=2, ceil_mode=True)
        self.mean_pool = nn.AvgPool2d(3, stride=2, ceil_mode=True)

    def layers(self) -> list[Layer]:
        """List conv1 to conv3 and fc4."""
        return [
            _chained(
                partial(_centred, average_image=self.average_image), self.conv1, self.max_pool, torch.relu_, _norm
            ),
            _chained(self.conv2, self.mean_pool, torch.relu_, _norm),
            _chained(self.conv3, torch.relu_, self.mean_pool, nn.Flatten()),  # (n, 64 * 4 * 4)
            _chained(self.fc4, torch.relu_),
        ]

    def start(self, images: ByteArray, generator: torch.Generator) -> None:
        """Draw the weights and store the mean of the images; see `Network.start`."""
        mean = torch.from_numpy(images.mean(axis=0)).float().permute(2, 0, 1)
        with torch.no_grad():
            self.average_image.copy_(nn.functional.interpolate(mean[None], (32, 32), mode="bilinear")[0])
            for parameter in self.parameters():
                if parameter.ndim > 1:
                    nn.init.kaiming_uniform_(parameter, nonlinearity="linear", generator=generator)
                else:
                    nn.init.zeros_(parameter)


def _norm(maps: Tensor) -> Tensor:
    """Normalise by the neighbours within a channel, as Caffe does."""
    mean_square = nn.functional.avg_pool2d(maps.square(), 3, stride=1, padding=1)
    return maps / (1 + 5e-5 * mean_square) ** 0.75

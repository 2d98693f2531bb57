"""PyTorch helpers of training: reproducible runs, heads and their initial weights, optimizers, augmented images."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from hashbench._typing import FloatArray
from hashbench.sources._tensors import Tensor, nn, torch

Layers = list[tuple[FloatArray, FloatArray]]

_SHIFT = 8  # images are shifted by up to 1/8 of their height and width


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Set PyTorch so that one seed gives the same numbers on any number of cores, whatever the caller's settings.

    Products and convolutions of float32 are computed in float32, not TF32 or bfloat16. On a CPU, PyTorch uses one
    thread and deterministic algorithms only; on a GPU, the order of some sums varies. PyTorch's settings are restored.
    """
    cpu: Any = torch.backends.mkldnn
    memory: Any = torch.utils.deterministic
    products = (cpu.matmul, cpu.conv, torch.backends.cuda.matmul)
    precisions = [product.fp32_precision for product in products]
    n_threads, was_strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    was_tf32, filled = torch.backends.cudnn.allow_tf32, memory.fill_uninitialized_memory
    only_warned = torch.is_deterministic_algorithms_warn_only_enabled()
    for product in products:
        product.fp32_precision = "ieee"  # bfloat16 would move bins of histograms
    torch.backends.cudnn.allow_tf32 = False
    if device.type == "cpu":
        torch.set_num_threads(1)  # the split of a sum among threads affects its last digits
        torch.use_deterministic_algorithms(True)
        memory.fill_uninitialized_memory = False  # else each new tensor is written twice
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
        torch.use_deterministic_algorithms(was_strict, warn_only=only_warned)
        memory.fill_uninitialized_memory = filled
        for product, precision in zip(products, precisions, strict=True):
            product.fp32_precision = precision
        torch.backends.cudnn.allow_tf32 = was_tf32


class CentredReLU(nn.ReLU):
    """ReLU minus its mean under standard normal inputs.

    Without centring, hidden units share a direction that moves all outputs together. Losses against outputs of earlier
    steps (DPSH) react to that too late, and training oscillates with growing amplitude.
    """

    mean = 1 / math.sqrt(2 * math.pi)
    variance = 1 / 2 - mean**2

    def forward(self, input: Tensor) -> Tensor:
        """Rectify and centre."""
        return super().forward(input) - self.mean


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation that uses running statistics for a batch of one item."""

    def forward(self, input: Tensor) -> Tensor:
        """Normalise each output over the batch, or by running statistics."""
        if len(input) > 1:
            return super().forward(input)
        return nn.functional.batch_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
        )


def make_head(
    n_inputs: int, n_bits: int, n_hidden: int, generator: torch.Generator, *, normalise: bool = False
) -> nn.Sequential:
    """Return the layers from features to outputs, one per bit, with ``n_hidden`` units between; 0 for a linear head.

    They are float64: in float32, training amplifies the last bit, which depends on processors and libraries, to the
    third digit of a score. Weights are normal, biases 0: inputs of norm sqrt(n_inputs / 2) give outputs of variance 1,
    also through a hidden layer. With ``normalise`` the head ends in batch normalisation, see `fold`.
    """
    layers: list[nn.Module] = [_linear(n_inputs, n_hidden or n_bits, 2 / n_inputs, generator)]
    if n_hidden:
        layers += [CentredReLU(), _linear(n_hidden, n_bits, 1 / (n_hidden * CentredReLU.variance), generator)]
    if normalise:
        layers.append(BatchNorm(n_bits))
    return nn.Sequential(*layers).double()


def fold(head: nn.Sequential) -> None:
    """Fold batch normalisation at the end of a head, if there is any, into the linear layer before it, in place.

    With running mean m and variance v, W' = g W / sqrt(v + eps) and b' = h + g (b - m) / sqrt(v + eps).
    """
    if not isinstance(head[-1], BatchNorm):
        return
    linear, norm = head[-2], head[-1]
    assert isinstance(linear, nn.Linear)
    assert norm.running_mean is not None
    assert norm.running_var is not None
    with torch.no_grad():
        scale = norm.weight / (norm.running_var + norm.eps).sqrt()
        linear.weight.mul_(scale[:, None])
        linear.bias.sub_(norm.running_mean).mul_(scale).add_(norm.bias)
    del head[-1]


def parameter_groups(
    network: nn.Module, bias_multiplier: float, pretrained_multiplier: float | None
) -> list[dict[str, Any]]:
    """Group a network's parameters by their learning rate, for an optimizer; each group has its ``multiplier``.

    Parameters named ``pretrained.*`` have one multiplier, unless it is None, other biases another, all others 1. Groups
    of multiplier 0 are left out.
    """
    groups: dict[float, list[nn.Parameter]] = {}
    for name, value in network.named_parameters():
        if name.startswith("pretrained.") and pretrained_multiplier is not None:
            multiplier = pretrained_multiplier
        else:
            multiplier = bias_multiplier if name.endswith("bias") else 1.0
        groups.setdefault(multiplier, []).append(value)
    return [{"params": values, "multiplier": multiplier} for multiplier, values in groups.items() if multiplier]


def make_optimizer(
    name: str, groups: list[dict[str, Any]], learning_rate: float, momentum: float, weight_decay: float
) -> torch.optim.Optimizer:
    """Return an optimizer of groups of parameters: "sgd" with momentum, or PyTorch's "adam" or "rmsprop"."""
    if name == "sgd":
        # fused: one pass over the weights instead of three
        return torch.optim.SGD(groups, learning_rate, momentum, weight_decay=weight_decay, fused=True)
    kinds: dict[str, Any] = {"adam": torch.optim.Adam, "rmsprop": torch.optim.RMSprop}
    optimizer: torch.optim.Optimizer = kinds[name](groups, lr=learning_rate, weight_decay=weight_decay)
    return optimizer


def augmented(images: Tensor, augmentation: str, generator: torch.Generator) -> Tensor:
    """Mirror images (n, height, width, n_channels) with probability 1/2 ("flip", "crop"); "crop" also shifts them."""
    if augmentation == "none":
        return images
    if augmentation == "crop":
        images = moved(images, generator)
    is_mirrored = are_mirrored(len(images), generator)
    return torch.where(is_mirrored[:, None, None, None], images.flip(2), images)


def moved(images: Tensor, generator: torch.Generator) -> Tensor:
    """Shift each image, or its activations, (n, height, width, n_channels), by its own random offset.

    Offsets are at most an eighth of height and width, but at least one cell; what moves in repeats the edge.
    """
    n, height, width = images.shape[:3]
    rows, columns = _moved(height, n, generator), _moved(width, n, generator)
    return images[torch.arange(n)[:, None, None], rows[:, :, None], columns[:, None, :]]


def are_mirrored(n: int, generator: torch.Generator) -> Tensor:
    """Draw which of n images are mirrored, (n,) bool, each with probability 1/2."""
    return torch.rand(n, generator=generator) < 0.5


def head_layers(head: nn.Sequential) -> Layers:
    """Return the weights (n_in, n_out) and biases (n_out,) of each linear layer of a head, float64."""
    linear = [layer for layer in head if isinstance(layer, nn.Linear)]
    return [(_as_array(layer.weight).T.copy(), _as_array(layer.bias)) for layer in linear]


def _moved(length: int, n: int, generator: torch.Generator) -> Tensor:
    """Draw the visible rows, or columns, of n shifted images: (n, length)."""
    largest = max(length // _SHIFT, 1)
    shifts = torch.randint(-largest, largest + 1, (n, 1), generator=generator)
    return (torch.arange(length) + shifts).clamp(0, length - 1)


def _linear(n_in: int, n_out: int, variance: float, generator: torch.Generator) -> nn.Linear:
    with torch.device("meta"):  # PyTorch's initial weights would use its global generator
        layer = nn.Linear(n_in, n_out, dtype=torch.float32)
    layer.to_empty(device="cpu")
    nn.init.normal_(layer.weight, std=math.sqrt(variance), generator=generator)
    nn.init.zeros_(layer.bias)
    return layer


def _as_array(tensor: Tensor) -> FloatArray:
    return tensor.detach().cpu().numpy().astype(np.float64)

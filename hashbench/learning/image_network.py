"""From images to outputs end to end: a network, the front end of features, and a head."""

import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray, FloatArray
from hashbench.learning.loop import Items, Loss, Session, Settings, train
from hashbench.learning.networks import are_mirrored, augmented, moved, reproducible
from hashbench.learning.state import Epoch, Stopped, StoppedHead
from hashbench.sources._tensors import Tensor, nn, torch
from hashbench.sources._torch import find_device
from hashbench.sources.features.backbones import get_backbone
from hashbench.sources.features.weights import BLOCK, FrozenBelow, Weights, drawn_weights, find_weights, in_batches

_PRETRAINED = "pretrained."  # prefix of the names of its parameters
_TINY = 1e-6  # smallest norm to divide by, so that gradients are finite


class ImageNetwork(nn.Module):
    """A network, usually pretrained, whose features go through the front end and a head.

    Its initial outputs are those of training on the network's features. Dropout is off, as in the authors' runs of
    MIHash and TALR, and batch normalisation uses the statistics of the weights file, which batches of a few similar
    items would only disturb. ``mean`` (n_features,), float64, is subtracted from features, which are then scaled to the
    Euclidean norm ``norm``, or not if it is None. While features are trained, the mean of the batch is subtracted
    instead, and `settle` updates ``mean``: an outdated mean shifts all outputs together, until they are one code.
    """

    mean: Tensor

    def __init__(self, extractor: FrozenBelow, mean: FloatArray, norm: float | None, head: nn.Module) -> None:
        super().__init__()
        self.pretrained, self.extractor, self.norm, self.head = extractor.network, extractor, norm, head
        self.register_buffer("mean", torch.from_numpy(mean).double())

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute outputs (n, n_bits), float64, from RGB images or from activations of frozen layers."""
        features = self.extractor.forward(inputs)
        with torch.autocast(features.device.type, enabled=False):  # the head costs little
            features = features.double()
            is_trained = self.training and features.requires_grad and len(features) > 1
            centred = features - (features.mean(dim=0) if is_trained else self.mean)
            if self.norm is not None:
                centred = nn.functional.normalize(centred, eps=_TINY) * self.norm
            outputs: Tensor = self.head(centred)
        return outputs

    def settle(self, batches: Iterable[Tensor]) -> None:
        """Set ``mean`` to the mean of the current features of all items, if features are trained."""
        if any(parameter.requires_grad for parameter in self.pretrained.parameters()):
            total, n_items = torch.zeros_like(self.mean), 0
            for inputs in batches:
                total += self.extractor.forward(inputs).double().sum(dim=0)
                n_items += len(inputs)
            self.mean.copy_(total / n_items)

    def train(self, mode: bool = True) -> "ImageNetwork":
        """Set training mode of the head only."""
        super().train(mode)
        self.pretrained.eval()
        return self


def read_extractor(
    backbone: str,
    weights: Path | None,
    images: AnyArray,
    image_size: int,
    device: str,
    train_from: str,
    generator: torch.Generator,
) -> FrozenBelow:
    """Read a backbone for images (n, height, width, n_channels); size 0 is the usual size for such images.

    If it has no file of weights, they are drawn from the generator.
    """
    is_pretrained = get_backbone(backbone).is_pretrained
    source = find_weights(backbone, weights) if is_pretrained else drawn_weights(backbone, images, generator)
    height, width = images.shape[1:3]
    size = image_size or get_backbone(backbone).usual_size(height if height == width else None)
    return FrozenBelow(backbone, source, image_size=size, device=device, train_from=train_from)


def network_state(network: ImageNetwork) -> dict[str, Any]:
    """Return what `restored` needs to rebuild a network: parameters, image size, and digest of the original weights."""
    parameters = {key: tensor.numpy() for key, tensor in network.cpu().state_dict().items()}
    extractor = network.extractor
    return {"image_size": extractor.image_size, "weights_sha256": extractor.sha256, "parameters": parameters}


def restored(
    state: dict[str, Any], backbone: str, norm: float | None, head: nn.Module, device: str, train_from: str
) -> ImageNetwork:
    """Rebuild a network from `network_state`; the file of weights is not needed."""
    parameters = {key: torch.from_numpy(np.array(values)) for key, values in state["parameters"].items()}
    tensors = {key.removeprefix(_PRETRAINED): value for key, value in parameters.items() if key.startswith(_PRETRAINED)}
    weights = Weights(tensors, state["weights_sha256"])
    extractor = FrozenBelow(backbone, weights, image_size=state["image_size"], device=device, train_from=train_from)
    network = ImageNetwork(extractor, parameters["mean"].numpy(), norm, head)
    network.load_state_dict(parameters)
    return network.eval()


def seen_in_training(
    extractor: FrozenBelow, images: AnyArray, inputs: AnyArray, augmentation: str, folder: Path | None
) -> Callable[[Tensor, torch.Generator], Tensor]:
    """Return a function from rows and a generator to augmented inputs; see `augmented`.

    With frozen layers, activations of images and of mirror images are cached, and shifts apply to activations.
    """
    plain = torch.from_numpy(inputs)
    if not extractor.n_frozen or augmentation == "none":
        return lambda rows, generator: augmented(plain[rows], augmentation, generator)
    mirrored = torch.from_numpy(extractor.inputs(images[:, :, ::-1], folder))

    def vary(rows: Tensor, generator: torch.Generator) -> Tensor:
        is_mirrored = are_mirrored(len(rows), generator)
        seen = torch.where(is_mirrored[:, None, None, None], mirrored[rows], plain[rows])
        return moved(seen, generator) if augmentation == "crop" else seen

    return vary


class _OfHead(Epoch):
    """An epoch in which only the head was trained."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"the head alone, {super().__str__()}"


def train_head(
    network: nn.Module, items: Items, loss: Loss, settings: Settings, session: Session, generator: torch.Generator
) -> Session:
    """Train only the head of a network, on items of features, unless the session resumes from a checkpoint.

    The rate is halved after each third of the ``head_epochs``, or never, as with the settings. The generator is
    restored, so that the same items are held out afterwards. Returns the session with the time that this took; raises
    StoppedHead where `hashbench.learning.loop.train` raises Stopped.
    """
    if session.resume and session.checkpoint is not None and session.checkpoint.exists():
        return session
    start, before, n_epochs = time.perf_counter(), generator.get_state(), settings.head_epochs
    settings = replace(settings, epochs=n_epochs, mixed_precision=False)
    if settings.halve_every:
        settings = replace(settings, halve_every=-(-n_epochs // 3))
    of_head = Session(on_epoch=lambda epoch: session.on_epoch(_OfHead(*epoch)))
    try:
        train(network.get_submodule("head"), items, loss, settings, of_head, generator)
    except Stopped as stopped:
        raise StoppedHead(f"{stopped}, while the head learned alone") from None
    generator.set_state(before)
    return replace(session, seconds_spent=time.perf_counter() - start)


def project(network: ImageNetwork, images: AnyArray, n_bits: int, device: str, folder: Path | None) -> FloatArray:
    """Compute outputs (n, n_bits) of many images; ``folder`` caches activations, and the network returns to the CPU."""
    torch_device = find_device(device)
    network.to(torch_device).eval()
    outputs = np.empty((len(images), n_bits))
    with reproducible(torch_device):
        for start in range(0, len(images), BLOCK):
            rows = slice(start, start + BLOCK)
            inputs = network.extractor.inputs(images[rows], folder)
            outputs[rows] = in_batches(network, inputs, (n_bits,), torch_device.type)
    network.cpu()
    return outputs

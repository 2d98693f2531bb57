"""From images to outputs end to end: a pretrained network, the front end of features, and a head."""

from pathlib import Path
from typing import TYPE_CHECKING

from hashbench._torch import find_device, import_torch
from hashbench._typing import AnyArray, FloatArray
from hashbench.learning.networks import reproducible
from hashbench.sources.features.backbones import get_backbone
from hashbench.sources.features.weights import Extractor, find_weights, in_batches, weights_digest

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = import_torch()
    Tensor, nn = torch.Tensor, torch.nn

__all__ = ["ImageNetwork", "project", "read_extractor", "weights_digest"]

_TINY = 1e-6  # norm below which features only grow in proportion: gradients stay finite


class ImageNetwork(nn.Module):
    """A pretrained network whose features go through the front end and a head.

    It starts where training on the network's features starts. Dropout stays off, as in the authors' runs of
    MIHash and TALR, and batch normalisation keeps the statistics of the weights file, which batches of
    a few similar items would only disturb. ``mean`` is subtracted from features, which then get the Euclidean norm
    ``norm``, or keep theirs if it is None.
    """

    mean: Tensor

    def __init__(self, extractor: Extractor, mean: FloatArray, norm: float | None, head: nn.Module) -> None:
        super().__init__()
        self.pretrained, self.extractor, self.norm, self.head = extractor.network, extractor, norm, head
        self.register_buffer("mean", torch.from_numpy(mean).float())

    def forward(self, images: Tensor) -> Tensor:
        """Compute outputs (n, n_bits), float32, of RGB images (n, height, width, 3), uint8."""
        features = self.extractor.forward(images) - self.mean
        if self.norm is not None:
            features = nn.functional.normalize(features, eps=_TINY) * self.norm
        outputs: Tensor = self.head(features)
        return outputs

    def train(self, mode: bool = True) -> "ImageNetwork":
        """Say that training begins or ends, to the head alone."""
        super().train(mode)
        self.pretrained.eval()
        return self


def read_extractor(backbone: str, weights: Path | None, images: AnyArray, image_size: int, device: str) -> Extractor:
    """Read a backbone for images (n, height, width, n_channels); size 0 is the usual one for such."""
    path = find_weights(backbone, weights)
    height, width = images.shape[1:3]
    size = image_size or get_backbone(backbone).usual_size(height if height == width else None)
    return Extractor(backbone, path, image_size=size, device=device)


def project(network: ImageNetwork, images: AnyArray, n_bits: int, device: str) -> FloatArray:
    """Compute outputs (n, n_bits) of many images; the network comes back to the CPU."""
    where = find_device(device)
    with reproducible(where):
        outputs = in_batches(network.to(where).eval(), images, n_bits, where.type)
    network.cpu()
    return outputs.astype("float64")

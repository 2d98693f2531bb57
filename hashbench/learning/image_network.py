"""From images to outputs end to end: a pretrained network, the front end of features, and a head."""

from typing import TYPE_CHECKING

from hashbench._torch import import_torch
from hashbench._typing import FloatArray
from hashbench.sources.features.weights import Extractor

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = import_torch()
    Tensor, nn = torch.Tensor, torch.nn

_TINY = 1e-6  # norm below which features only grow in proportion: gradients stay finite


class ImageNetwork(nn.Module):
    """A pretrained network whose features go through the front end and a head.

    It starts where training on the network's features starts. Dropout stays off, as in the authors' runs of
    MIHash and TALR, and batch normalisation keeps the statistics of the weights file, which batches of
    a few similar items would only disturb.

    Parameters
    ----------
    extractor : Extractor
        The pretrained network, and how images become its input.
    mean : ndarray of shape (n_features,)
        What is subtracted from features.
    norm : float or None
        The Euclidean norm that features get then; None for that they have.
    head : nn.Module
        From features to outputs.
    """

    mean: Tensor

    def __init__(self, extractor: Extractor, mean: FloatArray, norm: float | None, head: nn.Module) -> None:
        super().__init__()
        self.pretrained, self.extractor, self.norm, self.head = extractor.network, extractor, norm, head
        self.register_buffer("mean", torch.from_numpy(mean).float())

    def forward(self, images: Tensor) -> Tensor:
        """Compute outputs.

        Parameters
        ----------
        images : Tensor of shape (n, height, width, 3), uint8
            RGB.

        Returns
        -------
        Tensor of shape (n, n_bits), float32
            Before the sign.
        """
        features = self.extractor.forward(images) - self.mean
        if self.norm is not None:
            features = nn.functional.normalize(features, eps=_TINY) * self.norm
        outputs: Tensor = self.head(features)
        return outputs

    def train(self, mode: bool = True) -> "ImageNetwork":
        """Say that training begins or ends, to the head alone.

        Parameters
        ----------
        mode : bool, default=True
            Whether it begins.

        Returns
        -------
        ImageNetwork
            Itself.
        """
        super().train(mode)
        self.pretrained.eval()
        return self

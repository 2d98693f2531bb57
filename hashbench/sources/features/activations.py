"""A pretrained network cut in two: the outputs of frozen layers are computed once and cached."""

import hashlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np

from hashbench._typing import AnyArray, ByteArray
from hashbench.errors import HashbenchError
from hashbench.sources._tensors import Tensor, torch
from hashbench.sources.features.backbones import FIRST_LAYER, get_backbone
from hashbench.sources.features.weights import Extractor, Weights, blank, in_batches
from hashbench.store.artifact import Blocks, cached_array
from hashbench.store.files import locked
from hashbench.store.inputs import check_fits
from hashbench.store.provenance import DATASET_VERSION

BLOCK = 512  # images whose activations are computed together


class FrozenBelow(Extractor):
    """Features from a pretrained network whose layers before ``train_from`` stay frozen.

    They are computed from the inputs of that layer, which `inputs` returns: the images if it is the first layer, else
    activations, channels last, rounded to float16 whether they are cached or not.
    """

    def __init__(
        self,
        name: str,
        weights: Path | Weights,
        *,
        image_size: int,
        device: str = "auto",
        train_from: str = FIRST_LAYER,
    ) -> None:
        super().__init__(name, weights, image_size=image_size, device=device)
        self.train_from, self.n_frozen = train_from, get_backbone(name).layers.index(train_from)

    def forward(self, inputs: Tensor, end: int | None = None) -> Tensor:
        """Compute the features of one batch of inputs; see `Extractor.forward`."""
        if not self.n_frozen:
            return super().forward(inputs, end)
        features: Tensor = self.network(inputs.float().movedim(-1, 1), self.n_frozen, end)
        return features

    def inputs(self, images: ByteArray, folder: Path | None = None) -> AnyArray:
        """Compute the inputs of RGB images (n, height, width, 3); cache them in ``folder`` if given."""
        if not self.n_frozen:
            return images
        shape = (len(images), *self._shape)
        if folder is None:
            check_fits(2 * int(np.prod(shape)), f"what {self.name} gives {self.train_from} for {len(images):,} images")
            values = np.empty(shape, np.float16)
            for number, block in enumerate(self._blocks(images)):
                values[number * BLOCK :][: len(block)] = block
            return values
        key = self._key(images)
        path = folder / f"{self.name}-{self.train_from}-{key}.h5"
        with locked(path):
            return cached_array(path, key, Blocks(shape, np.dtype(np.float16), self._blocks(images)))

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        """The shape of the activations of one image."""
        image = torch.empty(1, 3, self.image_size, self.image_size, device="meta")
        return tuple(blank(self.name)(image, end=self.n_frozen).movedim(1, -1).shape[1:])

    def _key(self, images: ByteArray) -> str:
        """Compute a digest of everything that affects the activations."""
        about = [
            DATASET_VERSION,
            torch.__version__,
            self.name,
            self.sha256,
            self.train_from,
            self.image_size,
            self.device,
        ]
        digest = hashlib.sha256(f"{about} {images.shape}".encode())
        for start in range(0, len(images), BLOCK):
            digest.update(images[start : start + BLOCK].tobytes())
        return digest.hexdigest()[:16]

    def _blocks(self, images: ByteArray) -> Iterator[AnyArray]:
        for start in range(0, len(images), BLOCK):
            block = in_batches(self._below, images[start : start + BLOCK], self._shape, self.device).astype(np.float16)
            if not np.isfinite(block).all():
                raise HashbenchError(
                    f"{self.name} gives {self.train_from} numbers beyond the range of float16. Choose another "
                    f"train_from, such as {FIRST_LAYER}."
                )
            yield block

    def _below(self, images: Tensor) -> Tensor:
        return super().forward(images, self.n_frozen).movedim(1, -1).half()

"""What tests of training from images share: striped images, random weights, a method that reads both."""

import numpy as np
import torch

from hashbench.methods.talr_ap import TALRAP
from hashbench.sources.features.backbones import BACKBONES

SIZE = 40  # pixels that images are resized to


def save_weights(name, path, seed=0):
    """Save random weights that keep images apart; PyTorch's own make them all alike."""
    torch.manual_seed(seed)
    network = BACKBONES[name].build()
    for parameter in network.parameters():
        if parameter.ndim > 1:
            torch.nn.init.kaiming_normal_(parameter)
    torch.save(network.state_dict(), path)
    return path


def stripes():
    """Two classes, 40 images: stripes that lie or stand, at all places and in all colours."""
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    waves = 127 * (1 + np.sin(np.arange(16) * 1.5 + rng.uniform(0, 6, (40, 1))))
    images = np.where(labels[:, None, None], waves[:, :, None], waves[:, None, :])[..., None] * rng.uniform(
        0.6, 1, (40, 1, 1, 3)
    )
    return images.astype(np.uint8), labels


def make(path, **params):
    settings = {"backbone": "squeezenet", "weights": str(path), "image_size": SIZE, "n_hidden": 32}
    return TALRAP(8, **{**settings, "epochs": 2, "batch_size": 8, "learning_rate": 0.01, **params})

"""What tests of training from images share: striped images, random weights, a method that learns from them."""

import numpy as np
import torch

from hashbench import registry
from hashbench.sources.features.backbones import BACKBONES

SIZE = 32  # pixels that images are resized to


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
    grey = np.where(labels[:, None, None], waves[:, :, None], waves[:, None, :])
    return (grey[..., None] * rng.uniform(0.6, 1, (40, 1, 1, 3))).astype(np.uint8), labels


def make(path, name="talr-ap", **params):
    settings = {"backbone": "squeezenet", "weights": str(path), "image_size": SIZE, "n_hidden": 32}
    settings |= {"epochs": 2, "batch_size": 8, "learning_rate": 0.01}
    return registry.get_method(name)(8, **settings | params)

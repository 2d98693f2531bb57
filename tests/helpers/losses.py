"""What tests of losses share: random tensors, gradients, and a batch that is the whole training set."""

import math

import numpy as np
import torch

from hashbench import registry
from hashbench.affinity import Affinity, SameLabel, SharedLabels
from hashbench.learning.batch import Batch
from hashbench.learning.loop import Items


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def signs(*shape, seed=0):
    return torch.where(normal(*shape, seed=seed) > 0, 1.0, -1.0).double()


def softplus(x):
    """Compute log(1 + exp(x)) without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def same_class(classes):
    return torch.tensor(np.equal.outer(classes, classes))


def gradient(loss, outputs):
    leaf = outputs.clone().requires_grad_()
    loss(leaf).backward()
    return leaf.grad


def begun(name, outputs, supervision, *, all_outputs=None, epoch=20, share=0.0, classes=None, **params):
    """Return a method, late in training, and a batch of all training items.

    ``supervision`` are labels or an affinity, ``classes`` the labels that training began with, if these are others.
    """
    n_items = len(outputs)
    affinity, labels = supervision, None
    if not isinstance(supervision, Affinity):
        labels = np.asarray(supervision)
        affinity = (SameLabel if labels.ndim == 1 else SharedLabels)(labels, labels)
    features = normal(n_items, 5, seed=7, dtype=outputs.dtype)
    method, rows = registry.get_method(name)(outputs.shape[1], **params), np.arange(n_items)
    items = Items(features, affinity, labels if classes is None else classes, features)
    own = method._begin(items, torch.Generator().manual_seed(1))
    if own is not None:
        own.to(outputs.dtype)
    if name == "adsh":
        own.codes.copy_(signs(n_items, outputs.shape[1], seed=5))
    all_outputs = outputs.detach() if all_outputs is None else all_outputs
    parts = {"training_labels": labels, "training_features": features, "own": own}
    parts["views"] = torch.stack([outputs, outputs + normal(*outputs.shape, seed=8, dtype=outputs.dtype)])
    return method, Batch(outputs, rows, all_outputs, affinity, rows, epoch, share, **parts)


def loss_of(*args, **kwargs):
    """Return the loss of the method and batch that `begun` returns."""
    method, batch = begun(*args, **kwargs)
    return method._loss(batch)

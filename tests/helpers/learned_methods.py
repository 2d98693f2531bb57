"""What tests of trained methods share."""

from dataclasses import replace

import numpy as np

from hashbench import evaluate, registry

FIRST = ["dhn", "dpsh", "dsh", "dtsh", "hashnet", "mihash", "talr-ap", "talr-ndcg"]
OF_PAIRS = [*FIRST, "adsh", "dch"]
OF_CLASSES = ["csq", "dfh", "dpn", "dsdh", "greedyhash", "hyp2", "idhn", "mdsh", "orthohash"]
LEARNED = OF_PAIRS + OF_CLASSES
UNSUPERVISED = ["bihalf", "cibhash", "greedyhash-unsupervised"]

EARLIER = {  # defaults until 28 November 2026, of which there are pins and scores of prototypes
    "bihalf": {"gamma": 6.0, "weight_decay": 5e-4},
    "greedyhash-unsupervised": {"alpha": 0.1, "learning_rate": 0.1, "weight_decay": 5e-4},
}


def average_precision(dataset, method):
    codes = method.transform(dataset.features[dataset.query]), method.transform(dataset.features[dataset.database])
    return evaluate(*codes, dataset.affinity(), ["AP"]).summary["AP"].mean


def fitted(example, name="talr-ap", **params):
    return registry.get_method(name)(16, **{"epochs": 4, "n_hidden": 64, **params}).fit(*example)


def same_network(first, second):
    arrays = ([array for layer in method.layers_ for array in layer] for method in (first, second))
    return all(map(np.array_equal, *arrays))


class StoppedError(Exception):
    """Stands for a kill."""


def stop_after(n_epochs):
    def on_epoch(epoch):
        if epoch.number == n_epochs:
            raise StoppedError

    return on_epoch


def session(method, **changes):
    """Change the checkpoint or the callback of a method's training."""
    method.session = replace(method.session, **changes)
    return method

"""What tests of trained methods share."""

from dataclasses import replace

import numpy as np

from hashbench import evaluate, registry

FIRST = ["dpsh", "dsh", "dtsh", "hashnet", "mihash", "talr-ap", "talr-ndcg"]
OF_PAIRS = [*FIRST, "adsh", "dch"]
OF_CLASSES = ["csq", "dfh", "dpn", "greedyhash", "hyp2", "mdsh", "orthohash"]
LEARNED = OF_PAIRS + OF_CLASSES
UNSUPERVISED = ["bihalf", "greedyhash-unsupervised"]


def average_precision(dataset, method):
    codes = method.transform(dataset.features[dataset.query]), method.transform(dataset.features[dataset.database])
    return evaluate(*codes, dataset.affinity(), ["AP"]).summary["AP"].mean


def fitted(example, name="talr-ap", **params):
    return registry.get_method(name)(16, **{"epochs": 4, **params}).fit(*example)


def same_network(first, second):
    return all(
        np.array_equal(one, other)
        for ours, theirs in zip(first.layers_, second.layers_, strict=True)
        for one, other in zip(ours, theirs, strict=True)
    )


class StoppedError(Exception):
    """Stands for a kill."""


def stop_after(n_epochs):
    def on_epoch(epoch):
        if epoch.number == n_epochs:
            raise StoppedError

    return on_epoch


def session(method, **changes):
    """Change how a method's training is kept and told of."""
    method.session = replace(method.session, **changes)
    return method

"""Few codes with many ties, and affinities of all six kinds between them, with their levels by brute force."""

import numpy as np
import scipy.sparse as sp

from hashbench.affinity import Distance, Explicit, Hierarchy, SameLabel, SharedLabels
from helpers import oracles

N_QUERIES, N_DATABASE, N_BITS = 12, 61, 11
rng = np.random.default_rng(0)
query = rng.random((N_QUERIES, N_BITS)) > 0.5
database = (rng.random((25, N_BITS)) > 0.5)[rng.integers(0, 25, N_DATABASE)]
classes = rng.integers(0, 4, N_QUERIES), rng.integers(0, 4, N_DATABASE)
multi_hot = rng.integers(0, 2, (N_QUERIES, 5)), rng.integers(0, 2, (N_DATABASE, 5))
multi_hot[0][0], multi_hot[1][:-1, 0], multi_hot[1][-1] = 1, 0, 1  # the highest level is only in the last row
features = rng.integers(0, 4, (N_QUERIES, 3)), rng.integers(0, 4, (N_DATABASE, 3))
matrix = rng.choice([0, 0, 0, 1, 5], (N_QUERIES, N_DATABASE))
matrix[3], matrix[0, -1] = 0, 10
RULES = {
    "same-label": SameLabel(*classes),
    "hierarchy": Hierarchy(*classes, classes[0] % 2, classes[1] % 2),
    "shared-labels": SharedLabels(*multi_hot),
    "distance": Distance(*features, [9.0, 4.0, 1.0], [1, 2, 5]),
    "dense": Explicit(matrix),
    "csr": Explicit(sp.csr_array(matrix)),
}
LEVELS = {
    "same-label": oracles.same_label(*classes),
    "hierarchy": np.add(oracles.same_label(*classes), oracles.same_label(classes[0] % 2, classes[1] % 2)),
    "shared-labels": oracles.shared_labels(*multi_hot),
    "distance": oracles.distance_levels(*features, [9.0, 4.0, 1.0], [1, 2, 5]),
    "dense": matrix,
    "csr": matrix,
}

"""How much the tests do: a little before each commit (`make test`), or all there is (`make test-all`)."""

import os

import pytest
from hypothesis import settings

from hashbench import registry
from hashbench.cards import method_card

ALL = os.environ.get("HASHBENCH_TESTS") == "all"

settings.register_profile("commit", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("all", deadline=None, max_examples=200)
settings.load_profile("all" if ALL else "commit")


def slow(*cases):
    """Mark cases of a parametrised test that go the way of another one, for `make test-all`."""
    return [pytest.param(*(case if isinstance(case, tuple) else [case]), marks=pytest.mark.slow) for case in cases]


TRAINED = [name for name in registry.built_in_methods() if method_card(name).is_learned]

# Settings with which a method is fitted in a moment.
QUICK = {
    "bre": {"n_items": 150, "max_sweeps": 3},
    "fasthash": {"n_items": 100, "n_similar": 10, "n_dissimilar": 10, "n_trees": 2, "n_passes": 1},
    "ksh": {"n_anchors": 50, "n_steps": 3},
    "lfh": {"n_iter": 10},
    "machash": {"n_items": 150, "n_similar": 20, "n_dissimilar": 20, "n_iter": 1},
    "structhash": {"n_items": 150, "n_anchors": 30, "n_queries": 20, "n_cuts": 1, "n_steps": 1},
    **{name: {"epochs": 2} for name in TRAINED},
}


# Smaller still, where codes are not compared with pins.
TINY = {
    "fasthash": {"n_items": 40, "n_trees": 1},
    "machash": {"n_items": 60, "n_similar": 10, "n_dissimilar": 10},
    "structhash": {"n_items": 80, "n_queries": 10},
    **{name: {"n_hidden": 32} for name in TRAINED},
}


def quick_method(name, monkeypatch):
    """Return a method whose defaults are the quickest settings."""
    cls = registry.get_method(name)
    defaults = cls.__init__.__kwdefaults__
    for key, value in {**QUICK.get(name, {}), **TINY.get(name, {})}.items():
        assert key in defaults
        monkeypatch.setitem(defaults, key, value)
    return cls

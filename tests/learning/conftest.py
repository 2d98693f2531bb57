import pytest
from trained import average_precision

from hashbench import registry
from hashbench.testing import example_dataset


@pytest.fixture(scope="module")
def example():
    """Ten classes, 250 training items of 80 features, and their affinity."""
    dataset = example_dataset()
    return dataset.features[dataset.train].astype(float), dataset.labels[dataset.train]


@pytest.fixture(scope="module")
def itq_on_digits(digits):
    method = registry.get_method("itq")(16).fit(digits.features[digits.train])
    return average_precision(digits, method)

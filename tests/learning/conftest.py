import pytest
from helpers.learned_methods import average_precision
from helpers.striped_images import save_weights, stripes

from hashbench import registry
from hashbench.testing import example_dataset


@pytest.fixture(scope="session")
def example():
    """Ten classes, 250 training items of 80 features, and their affinity."""
    dataset = example_dataset()
    return dataset.features[dataset.train].astype(float), dataset.labels[dataset.train]


@pytest.fixture(scope="session")
def itq_on_digits(digits):
    method = registry.get_method("itq")(16).fit(digits.features[digits.train])
    return average_precision(digits, method)


@pytest.fixture(scope="session")
def weights(tmp_path_factory):
    """A file of random weights for SqueezeNet."""
    return save_weights("squeezenet", tmp_path_factory.mktemp("weights") / "squeezenet.pth")


@pytest.fixture(scope="session")
def striped():
    """Two classes of 40 images."""
    return stripes()


@pytest.fixture(scope="session")
def few(striped):
    """The first 16 of these images, where the number does not matter."""
    images, labels = striped
    return images[:16], labels[:16]

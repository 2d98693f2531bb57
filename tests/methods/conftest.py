import pytest


@pytest.fixture(scope="session")
def labelled(train, digits):
    """The 1,000 training items of digits and their labels."""
    return train, digits.labels[digits.train]

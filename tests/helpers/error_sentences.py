"""Error sentences of refused calls."""

import pytest

from hashbench.errors import HashbenchError


def complaint(call, *arguments):
    """Return the one-line sentence with which a call is refused."""
    with pytest.raises(HashbenchError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text

"""What bad input is answered with."""

import pytest

from hashbench.errors import HashbenchError


def complaint(call, *arguments):
    """Give the one sentence that a call is refused with."""
    with pytest.raises(HashbenchError) as caught:
        call(*arguments)
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    return text

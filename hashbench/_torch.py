"""Libraries that only parts of hashbench need, imported when those parts are."""

from importlib import import_module
from types import ModuleType

from hashbench.errors import HashbenchError


def import_torch() -> ModuleType:
    """Import PyTorch.

    Returns
    -------
    module
        The package ``torch``.

    Raises
    ------
    HashbenchError
        If it is not installed. One that is installed but broken keeps its own error.
    """
    try:
        return import_module("torch")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise HashbenchError("this needs PyTorch: pip install 'hashbench[learned]'.") from error

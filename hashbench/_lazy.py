"""Names of a module that come from others, which are imported when a name is first used."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from hashbench.errors import needing


def imported(module: str, homes: Mapping[str, str], name: str) -> Any:
    """Return a name from its home, and keep it in the module, whose ``__getattr__`` lacks it."""
    if name not in homes:
        raise AttributeError(f"module {module!r} has no attribute {name!r}")
    with needing(f"{module}.{name}"):
        value = getattr(import_module(homes[name]), name)
    setattr(sys.modules[module], name, value)
    return value

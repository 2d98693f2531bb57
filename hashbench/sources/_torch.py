"""Libraries that need not be installed, imported on demand, and PyTorch's devices."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from hashbench._choices import DEVICES
from hashbench.errors import HashbenchError

if TYPE_CHECKING:
    from torch import device as Device

HOW_TO_INSTALL = "pip install torch --index-url https://download.pytorch.org/whl/cpu (for a GPU: pip install torch)"


def import_library(module: str, advice: str) -> ModuleType:
    """Import a module of a library, or raise an error with ``advice``; a broken library keeps its own error."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise HashbenchError(advice) from error


def import_torch() -> ModuleType:
    """Import PyTorch, or raise an error with the command that installs it."""
    return import_library("torch", f"this needs PyTorch: {HOW_TO_INSTALL}.")


def find_device(name: str) -> "Device":
    """Return the device ``cpu`` or ``cuda``; with ``auto`` a GPU if there is one."""
    torch = import_torch()
    if name not in DEVICES:
        raise HashbenchError(f"device is {name!r}, expected 'auto', 'cpu' or 'cuda'.")
    if name == "cuda" and not torch.cuda.is_available():
        raise HashbenchError("device is 'cuda', but PyTorch finds no CUDA GPU here. Choose cpu or auto.")
    device: Device = torch.device("cuda" if name != "cpu" and torch.cuda.is_available() else "cpu")
    return device

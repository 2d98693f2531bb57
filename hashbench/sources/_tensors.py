"""PyTorch for modules that need it throughout: importing this without PyTorch raises the command that installs it."""

from typing import TYPE_CHECKING

from hashbench.sources._torch import import_torch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn
else:
    torch = import_torch()
    Tensor, nn = torch.Tensor, torch.nn

__all__ = ["Tensor", "nn", "torch"]

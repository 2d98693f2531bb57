"""Sentences that several methods refuse with."""

from hashbench.errors import Refusal
from hashbench.method import HashMethod


def equal_items(method: HashMethod, n_samples: int) -> Refusal:
    """Build the refusal of training items of which none differs from another.

    Parameters
    ----------
    method : HashMethod
        For its name.
    n_samples : int
        How many items there are.

    Returns
    -------
    Refusal
        To be raised by the caller.
    """
    return Refusal(f"{method.label} needs training items that differ, got n_samples={n_samples}, all of them equal.")

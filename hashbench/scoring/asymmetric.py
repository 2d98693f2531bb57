"""Rankings of binary codes by real-valued queries: tie groups are items at an equal value."""

import numpy as np
import numpy.typing as npt

from hashbench._typing import ByteArray, FloatArray, IntArray, Rows
from hashbench._validation import as_array
from hashbench.bits import to_words, unpack
from hashbench.errors import HashbenchError
from hashbench.scoring.equal_rows import number_rows

_OTHER_CODES = 0.25  # of the bits: an own code differs from its outputs in few, one of other bits in half of them
_PLACES = 30  # binary ones, of the largest output of a query; what differs by less is rounding noise, and ties


class AsymmetricDistance:
    """Rank packed codes by the real-valued outputs of queries, (n_queries, n_bits), whose signs are their bits.

    ``dot`` is the inner product of outputs and codes in -1/+1. ``sigmoid`` is minus the L1 distance of codes in 0/1 to
    the sigmoid of outputs, which orders as the inner product with tanh(outputs / 2) does. Products are compared to
    2^-30 of the query's largest output rounded up to a power of two. Equal codes tie always, and so do all if outputs
    are 0.
    """

    def __init__(self, outputs: FloatArray, database: ByteArray, n_bits: int, form: str) -> None:
        query = np.tanh(outputs / 2) if form == "sigmoid" else outputs
        _, exponents = np.frexp(np.abs(query).max(axis=1, keepdims=True))
        self.query = np.ldexp(query, _PLACES - exponents)  # exact, so that sums of binary fractions are too
        self._of_item, first = number_rows([*to_words(database).T])
        self._signs = unpack(database[first], n_bits) * 2.0 - 1

    def groups(self, queries: Rows) -> IntArray:
        """Return the tie group of each item, numbered from the nearest, (n_queries, n_database)."""
        products = np.rint(self.query[queries] @ self._signs.T)
        return np.stack([np.unique(-row, return_inverse=True)[1][self._of_item] for row in products])


def as_outputs(outputs: npt.ArrayLike, shape: tuple[int, int]) -> FloatArray:
    """Return the outputs of queries as float64; refuse others than one finite real number for each query and bit."""
    array = as_array(outputs, "query outputs")
    if array.shape != shape or array.dtype.kind not in "biuf":
        raise HashbenchError(
            f"query outputs are {array.dtype} of shape {array.shape}, expected real numbers of shape {shape}, one for "
            "each query and bit."
        )
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array).all(axis=1)))
        raise HashbenchError(f"query outputs of query {row} (counted from 0) are not all finite. Fix or leave it out.")
    return array.astype(np.float64)


def notes_on_signs(outputs: FloatArray, query: ByteArray, n_bits: int) -> list[str]:
    """Report outputs whose signs are not the bits of the packed query codes, in a sentence; 0 has no sign.

    Raises HashbenchError if so many signs differ that the outputs must be those of other codes.
    """
    differ = (unpack(query, n_bits) != (outputs > 0)) & (outputs != 0)
    if not differ.any():
        return []
    share = differ.sum() / (outputs != 0).sum()
    said = f"signs of the query outputs differ from the query codes in {share:.1%} of the bits"
    advice = (
        "Give outputs and codes of the same queries, in one order of queries and of bits (--bit-order), and outputs "
        "whose threshold is 0."
    )
    if share > _OTHER_CODES:
        raise HashbenchError(f"{said}, so they cannot be compared. {advice}")
    return [f"The {said}. {advice}"]

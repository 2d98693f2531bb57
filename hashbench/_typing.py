"""Names of array types, and protocols: of codes that are read in slices, and of reports on long work."""

from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

BoolArray = npt.NDArray[np.bool_]
ByteArray = npt.NDArray[np.uint8]
WordArray = npt.NDArray[np.uint64]
IntArray = npt.NDArray[np.int64]
LevelArray = npt.NDArray[np.int16]
Float32Array = npt.NDArray[np.float32]
FloatArray = npt.NDArray[np.float64]
AnyArray = npt.NDArray[Any]
Undefined = Literal["skip", "paper", "zero"]  # what queries without relevant items score
CodeDistance = Literal["hamming", "jaccard", "cosine", "dot"]
TrueDistance = Literal["euclidean", "cosine", "dot"]
Rows = slice | IntArray  # a slice with step 1, or row numbers in any order


class SliceableCodes(Protocol):
    """Packed codes that can be read in slices: an array, or an HDF5 dataset still on disk."""

    shape: Any

    def __getitem__(self, rows: slice, /) -> Any: ...


class SparseMatrix(Protocol):
    """A sparse matrix or array of SciPy."""

    shape: Any

    def tocsr(self) -> Any: ...


class Progress(Protocol):
    """What long work calls: with what is being done or counted, parts done, and all parts (0 if unknown)."""

    def __call__(self, what: str, n_done: int, n_all: int, /) -> None: ...


def silent(what: str, n_done: int, n_all: int, /) -> None:
    """Report nothing."""

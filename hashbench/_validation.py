"""Labels, levels, matrices and parameters as users bring them, checked."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple
from unicodedata import normalize

import numpy as np
import numpy.typing as npt

from hashbench._typing import AnyArray, IntArray
from hashbench.errors import HashbenchError, one_line, unknown_name

_INT64 = np.iinfo(np.int64)
MAX_NAME = 100  # characters
FORMULA = "=+-@"  # what a cell begins with that a spreadsheet computes
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}")
MAX_LEVEL = 1000  # the gain 2**level - 1 must stay a finite float64


def check_name(name: str, what: str) -> None:
    """Refuse a name that no file could have, or that could lead out of its folder; ``what`` it is, for the message."""
    if not _NAME.fullmatch(name):
        shown = repr(name) if len(name) <= MAX_NAME else f"{name[:20]!r}... of {len(name):,} characters"
        raise HashbenchError(
            f"{what} is made of letters a to z and A to Z, digits, '.', '_' and '-', at most {MAX_NAME}, got {shown}: "
            "it names files."
        )


def check_words(text: str, what: str) -> None:
    """Refuse words that look like others, by blanks or signs that do not show, or that a spreadsheet would compute."""
    if text != " ".join(text.split()) or not text.isprintable() or not text:
        raise HashbenchError(f"{what} is words with single blanks between them, got {text!r}.")
    if text[0] in FORMULA:
        raise HashbenchError(f"{what} begins with none of {FORMULA}, got {text!r}. Rename it.")


def has_markup(text: str) -> bool:
    """Tell whether a name holds what HTML or Markdown has a use for."""
    return not set(text).isdisjoint("<>|`")


def as_array(value: Any, name: str) -> AnyArray:
    """Read an array as users have them, called ``name`` in messages: of NumPy, PyTorch or nested lists.

    A tensor may need gradients, lie on any device and be bfloat16 or float8. What has no values, or hides some, is
    refused.
    """
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise HashbenchError(
            f"{name} hide {int(np.ma.getmaskarray(value).sum())} values behind a mask. Fill them or leave out rows."
        )
    try:
        if hasattr(value, "detach") and hasattr(value, "cpu"):  # a tensor of PyTorch, which need not be imported
            value = value.detach().cpu()
            value = value.float() if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")) else value
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        what = "lists of unequal lengths" if "inhomogeneous" in str(error) else one_line(error).rstrip(".")
        raise HashbenchError(f"{name} cannot be read as an array: {what}. Give a NumPy array.") from error


def list_of_numbers(value: Any, name: str) -> list[Any]:
    """Give real numbers, called ``name`` in messages, as a list."""
    array = as_array(value, name)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise HashbenchError(f"{name} are {array.dtype} of shape {array.shape}, expected a list of numbers.")
    return array.tolist()  # type: ignore[no-any-return]


def class_labels(labels: npt.ArrayLike, name: str) -> IntArray:
    """Check class labels (n,), whole numbers or booleans, called ``name`` in messages; give them as int64."""
    array = as_array(labels, name)
    if array.ndim == 1 and array.dtype.kind == "f":
        bad = np.flatnonzero(array != np.floor(array))  # NaN is no number, and equal to nothing
        if bad.size:
            raise HashbenchError(
                f"{name} hold {bad.size} values that are no whole numbers, first {array[bad[0]]} for item {bad[0]} "
                "(counted from 0). Leave such items out, or give each a class."
            )
    if array.ndim != 1 or array.dtype.kind not in "iub":
        raise HashbenchError(
            f"{name} are {array.dtype} of shape {array.shape}, expected whole numbers of shape (n,). Cast floats "
            "with .astype(int). Encode names as numbers, those of queries and database together: numpy.unique(names, "
            "return_inverse=True)[1]."
        )
    return as_int64(array, name)


def check_labelled(labels: AnyArray, name: str) -> None:
    """Refuse labels (n,) or (n, n_classes), of a file called ``name``, some of which are missing."""
    import pandas as pd

    missing = np.flatnonzero(pd.isna(labels).reshape(len(labels), -1).any(axis=1))
    if missing.size:
        raise HashbenchError(
            f"{missing.size} items of {name} have no label, first item {missing[0]} (counted from 0); add labels, or "
            "leave items out."
        )


def number_words(words: AnyArray) -> tuple[AnyArray, IntArray]:
    """Return the distinct words, sorted, and the number of each item's word among them.

    Words are compared in the Unicode form NFC: "ü" may be one character, or a letter and a mark as macOS writes it.
    """
    if words.dtype.kind in "OU":
        composed = [normalize("NFC", word) if isinstance(word, str) else word for word in words.tolist()]
        words = np.array(composed, dtype=object if words.dtype.kind == "O" else np.str_)
    names, numbers = np.unique(words, return_inverse=True)
    return names, numbers.astype(np.int64, copy=False)


def as_int64(array: AnyArray, name: str) -> IntArray:
    """Give whole numbers, of whatever dtype and called ``name`` in messages, as int64; refuse what it cannot hold."""
    beyond = ~((array >= -(2.0**63)) & (array < 2.0**63)) if array.dtype.kind == "f" else array > _INT64.max
    if array.dtype.kind in "uf" and beyond.any():
        raise HashbenchError(
            f"{name} hold numbers beyond {_INT64.min} to {_INT64.max}, first {array[beyond].flat[0]}, which would no "
            "longer differ. Number the classes anew: numpy.unique(labels, return_inverse=True)[1]."
        )
    return array.astype(np.int64, copy=False)


def check_superclasses(labels: IntArray, coarse_labels: IntArray) -> None:
    """Refuse a class that lies in several superclasses; class and superclass of each item are both (n,)."""
    pairs = np.unique(np.stack([labels, coarse_labels], axis=1), axis=0)
    classes, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        raise HashbenchError(f"class {classes[counts > 1][0]} has items of several superclasses; it must lie in one.")


def multi_hot(labels: npt.ArrayLike, name: str) -> npt.NDArray[np.uint8]:
    """Check multi-hot labels (n, n_classes), zeros and ones, called ``name`` in messages; give them as uint8."""
    array = as_array(labels, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise HashbenchError(
            f"{name} have shape {array.shape}, expected multi-hot (n, n_classes), 2 classes or more. "
            "For one class an item give its number, in shape (n,)."
        )
    is_bit = (array == 0) | (array == 1)
    if not is_bit.all():
        row, column = np.argwhere(~is_bit)[0]
        raise HashbenchError(
            f"{name} are not multi-hot: {int(is_bit.size - is_bit.sum())} entries are neither 0 nor 1, "
            f"first {array[row, column]} in row {row}, column {column} (counted from 0)."
        )
    return array.astype(np.uint8, copy=False)


def largest_row_sum(multi_hot: npt.NDArray[np.uint8]) -> int:
    """Find the largest number of labels of an item in multi-hot labels (n, n_classes); 0 without items."""
    return int(multi_hot.sum(axis=1, dtype=np.int64).max(initial=0))


def is_sparse(matrix: Any) -> bool:
    """Tell whether a matrix is SciPy's, without waiting for SciPy if it is not even imported."""
    issparse = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # lacking while another thread imports it
    return issparse is not None and bool(issparse(matrix))


def summed_csr(matrix: Any) -> Any:
    """Copy a sparse matrix of levels, of any format, to CSR; refuse one that is damaged.

    Compiled code trusts the indices, so they are checked before any sees them. An entry may be stored in parts, each a
    level, which are added up in 64 bits; where they are booleans, one that is true will do.
    """
    from scipy.sparse import csr_array

    try:
        matrix = matrix.copy() if matrix.format in ("csr", "csc", "bsr", "coo") else csr_array(matrix)
        if matrix.format != "coo":
            matrix.check_format(full_check=True)
        else:
            for index, size in zip(matrix.coords, matrix.shape, strict=True):
                if len(index) != len(matrix.data):
                    raise ValueError(f"{len(index)} indices for {len(matrix.data)} entries")
                if len(index) and not 0 <= index.min() <= index.max() < size:
                    raise ValueError(f"indices {index.min()} to {index.max()} where there are {size}")
        if not matrix.has_canonical_format:
            check_levels(matrix.data)
            matrix = matrix.astype({"b": np.bool_, "f": np.float64}.get(matrix.dtype.kind, np.int64))
        summed = csr_array(matrix)  # of COO this adds up parts already
    except HashbenchError:
        raise
    except ValueError as error:
        raise HashbenchError(f"a sparse matrix of shape {matrix.shape} is damaged: {one_line(error)}.") from error
    summed.sum_duplicates()
    return summed


def check_levels(levels: npt.ArrayLike) -> IntArray:
    """Check levels, whole numbers 0 to ``MAX_LEVEL``; give 0 and those that occur, ascending."""
    array = np.asarray(levels)
    if array.dtype.kind not in "biuf":
        raise HashbenchError(
            f"an affinity holds whole-number levels 0 to {MAX_LEVEL}, got values of dtype {array.dtype}."
        )
    values = np.unique(array)
    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    bad = values[~((values >= 0) & (values <= MAX_LEVEL) & (values == np.floor(values)))]
    if bad.size:
        shown = ", ".join(str(value) for value in bad[:3])
        raise HashbenchError(
            f"an affinity holds whole-number levels 0 to {MAX_LEVEL}, got {bad.size} other values ({shown}"
            f"{', ...' if bad.size > 3 else ''})."
        )
    return np.union1d([0], values).astype(np.int64)


class Range(NamedTuple):
    """Numbers that a parameter may be; see `whole` and `real`."""

    kind: type
    low: float
    high: float | None
    closed: Literal["left", "right", "both", "neither"]


def whole(low: int, high: int | None = None) -> Range:
    """Allow whole numbers from ``low`` to ``high``, both included; None for no end."""
    return Range(Integral, low, high, "left" if high is None else "both")


def real(
    low: float, high: float | None = None, closed: Literal["left", "right", "both", "neither"] | None = None
) -> Range:
    """Allow real numbers from ``low`` to ``high``; ``closed`` says which ends are included, by default both."""
    return Range(Real, low, high, closed or ("left" if high is None else "both"))


def choice(*options: str) -> frozenset[str]:
    """Allow some words."""
    return frozenset(options)


def setting(default: Any, *allowed: Any, tunable: Sequence[Any] | None = None) -> Any:
    """Declare a parameter of a method, a dataclass: its default, what it may be, and what is worth trying.

    Parameters
    ----------
    default : object
        Its default.
    *allowed : Range, frozenset of str, type or None
        What it may be: `whole` or `real` numbers, a `choice` of words, any instance of a type (``bool`` also takes
        NumPy's), or None. Without any, what the nearest base class says.
    tunable : sequence, optional
        Values that ``hashbench tune`` tries; an empty one for a parameter that it leaves alone. By default what the
        nearest base class says.

    Returns
    -------
    dataclasses.Field
        What stands behind the equals sign.
    """
    said = {_ALLOWED: allowed or None, _TUNABLE: None if tunable is None else tuple(tunable)}
    return field(default=default, metadata={key: values for key, values in said.items() if values is not None})


def allowed_values(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return what each parameter may be: as the class declares it, or else the nearest of its bases that does."""
    return _declared(cls, _ALLOWED)


def tunable_values(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the values worth trying of each parameter that has some, declared likewise."""
    return {name: values for name, values in _declared(cls, _TUNABLE).items() if values}


def _declared(cls: type, key: str) -> dict[str, tuple[Any, ...]]:
    found: dict[str, tuple[Any, ...]] = {}
    for base in reversed(cls.__mro__):
        for name, declared in base.__dict__.get("__dataclass_fields__", {}).items():
            if key in declared.metadata:
                found[name] = declared.metadata[key]
    return found


def preset_settings(presets: Mapping[str, Mapping[str, Any]], owner: str, name: str, n_bits: int) -> dict[str, Any]:
    """Give the settings of a name for a code length; a value may be a function of it."""
    if not presets:
        raise HashbenchError(f"{owner} has no presets, got {name!r}. Leave the preset out for it.")
    if name not in presets:
        raise unknown_name(f"{owner} preset", name, presets)
    return {key: value(n_bits) if callable(value) else value for key, value in presets[name].items()}


def check_settings(allowed: Mapping[str, Sequence[Any]], values: Mapping[str, Any], owner: str) -> None:
    """Refuse values that are not allowed, in the words of scikit-learn."""
    from sklearn.utils._param_validation import (  # private, and imported nowhere else
        Interval,
        InvalidParameterError,
        StrOptions,
        validate_parameter_constraints,
    )

    def constraint(one: Any) -> Any:
        if isinstance(one, Range):
            return Interval(one.kind, one.low, one.high, closed=one.closed)
        return StrOptions(set(one)) if isinstance(one, frozenset) else "boolean" if one is bool else one

    constraints = {name: [constraint(one) for one in allowed[name]] for name in allowed if name in values}
    try:
        validate_parameter_constraints(constraints, dict(values), caller_name=owner)
    except InvalidParameterError as error:
        raise HashbenchError(str(error)) from error


_ALLOWED, _TUNABLE = "allowed", "tunable"


def real_rows(values: npt.ArrayLike, name: str, columns: str) -> AnyArray:
    """Check rows of real numbers, (n, ``columns``): at least one, all finite; float32 stays so, others are float64."""
    array = as_array(values, name)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise HashbenchError(
            f"{name} are {array.dtype} of shape {array.shape}, expected real numbers of shape (n, {columns}), not "
            "empty."
        )
    array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise HashbenchError(
            f"{name} hold values that are not finite in {bad.size} rows, first in row {bad[0]} (counted from 0)."
        )
    return array

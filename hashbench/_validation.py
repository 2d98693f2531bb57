"""Checks of what users pass: names, labels, levels, matrices and parameters."""

import re
import sys
from collections.abc import Container, Mapping, Sequence
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
FORMULA = "=+-@"  # first characters of cells that a spreadsheet computes
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_NAME - 1}}}")
MAX_LEVEL = 1000  # the gain 2**level - 1 must stay a finite float64


def check_name(name: str, what: str) -> None:
    """Refuse a name, called ``what`` in messages, that is no file name or could lead out of its folder."""
    if not _NAME.fullmatch(name):
        shown = repr(name) if len(name) <= MAX_NAME else f"{name[:20]!r}... of {len(name):,} characters"
        raise HashbenchError(
            f"{what} may contain only letters a to z and A to Z, digits, '.', '_' and '-', at most {MAX_NAME}, as it "
            f"names files; got {shown}."
        )


def check_words(text: str, what: str) -> None:
    """Refuse text with invisible characters or repeated blanks, and text that a spreadsheet would compute."""
    if text != " ".join(text.split()) or not text.isprintable() or not text:
        raise HashbenchError(f"{what} must be words with single blanks between them, got {text!r}.")
    if text[0] in FORMULA:
        raise HashbenchError(f"{what} must begin with none of {FORMULA}, got {text!r}. Rename it.")


def check_choice(value: Any, choices: Sequence[str | None], name: str) -> None:
    """Refuse a value of the parameter ``name`` that is not among the choices."""
    if value not in choices:
        raise HashbenchError(f"{name} must be one of {', '.join(filter(None, choices))}, got {value!r}.")


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Return the values of a sequence as a tuple, or one value, such as a text or a table, as a tuple of one."""
    return tuple(value) if np.iterable(value) and not isinstance(value, str | Mapping) else (value,)


def has_markup(text: str) -> bool:
    """Check whether a name holds characters that are markup in HTML or Markdown."""
    return not set(text).isdisjoint("<>|`")


def as_array(value: Any, name: str) -> AnyArray:
    """Convert an array, tensor or nested lists, called ``name`` in messages, to a NumPy array; refuse masked values.

    A tensor may need gradients, be on any device and be bfloat16 or float8. Sparse matrices of SciPy and objects of
    other libraries that offer DLPack are converted too.
    """
    if is_sparse(value):
        try:
            value = checked_sparse(value, name).toarray()
        except MemoryError as error:
            raise HashbenchError(
                f"{name} are sparse, of shape {value.shape}, and too large for memory as a dense array. Give fewer "
                "rows, or leave out columns of zeros."
            ) from error
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise HashbenchError(
            f"{name} hide {int(np.ma.getmaskarray(value).sum())} values behind a mask. Fill them or leave out rows."
        )
    try:
        if hasattr(value, "detach") and hasattr(value, "cpu"):  # a PyTorch tensor; PyTorch may not be installed
            value = value.detach().cpu()
            value = value.float() if str(value.dtype).startswith(("torch.bfloat16", "torch.float8")) else value
        elif hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            value = np.from_dlpack(value)
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, NotImplementedError, BufferError) as error:
        what = "lists of unequal lengths" if "inhomogeneous" in str(error) else one_line(error).rstrip(".")
        raise HashbenchError(f"{name} cannot be read as an array: {what}. Give a NumPy array.") from error


def as_labels(labels: Any, name: str) -> AnyArray:
    """Convert labels as `as_array` does; what is not a word in a list of words stays as it is, so it can be named."""
    array = as_array(labels, name)
    became_words = array.ndim == 1 and array.dtype.kind in "SU" and not hasattr(labels, "dtype")
    return np.array(labels, dtype=object) if became_words else array


def unexpected(array: Any, name: str, expected: str) -> HashbenchError:
    """Build the error for an array, called ``name`` in messages, of another dtype or shape than ``expected``."""
    return HashbenchError(f"{name} are {array.dtype} of shape {array.shape}, expected {expected}.")


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written; of what is no array, None say, the same."""
    if not isinstance(array, np.ndarray) or not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def list_of_numbers(value: Any, name: str) -> list[Any]:
    """Convert real numbers, called ``name`` in messages, to a list."""
    array = as_array(value, name)
    if array.ndim != 1 or array.dtype.kind not in "iuf":
        raise unexpected(array, name, "a list of numbers")
    return array.tolist()  # type: ignore[no-any-return]


def class_labels(labels: npt.ArrayLike, name: str, expected: str = "whole numbers") -> IntArray:
    """Check class labels (n,), whole numbers or booleans, called ``name`` in messages; return them as int64."""
    array = as_array(labels, name)
    if array.ndim == 1 and array.dtype.kind == "O":
        array = np.array([label if isinstance(label, Real) else np.nan for label in array.tolist()])
    if array.ndim == 1 and array.dtype.kind == "f":
        bad = np.flatnonzero(array != np.floor(array))  # true for NaN too
        if bad.size:
            raise HashbenchError(
                f"{name} hold {bad.size} values that are not whole numbers, first {array[bad[0]]} for item {bad[0]} "
                "(counted from 0). Leave such items out, or give each a class."
            )
    if array.ndim != 1 or array.dtype.kind not in "iubf":
        raise unexpected(array, name, f"{expected} of shape (n,)")
    return as_int64(array, name)


def class_pair(
    query_labels: npt.ArrayLike, database_labels: npt.ArrayLike, what: str = "labels"
) -> tuple[IntArray, IntArray, Sequence[str]]:
    """Check classes of queries and database, numbers or words, called ``what`` in messages; return them as int64.

    Words are numbered together; the distinct ones are returned too, sorted.
    """
    pair = {"query": query_labels, "database": database_labels}
    arrays = {f"{role} {what}": as_labels(labels, f"{role} {what}") for role, labels in pair.items()}
    worded = [name for name, array in arrays.items() if _are_words(array)]
    others = {name: array for name, array in arrays.items() if name not in worded}
    numbers = [class_labels(array, name, "whole numbers or words") for name, array in others.items()]
    if not worded:
        query, database = numbers
        return query, database, ()
    if numbers:
        raise HashbenchError(f"{worded[0]} are words and the other {what} numbers; give both in the same form.")
    query_words, database_words = (_words(array, name) for name, array in arrays.items())
    names, classes = number_words(np.array([*query_words, *database_words]))
    return classes[: len(query_words)], classes[len(query_words) :], names.tolist()


def _are_words(array: AnyArray) -> bool:
    is_numeric = array.ndim != 1 or array.dtype.kind in "biufc"
    return not is_numeric and any(isinstance(label, str | bytes) for label in array)


def _words(array: AnyArray, name: str) -> list[str]:
    """Return words (n,), called ``name`` in messages, as strings; bytes are UTF-8."""
    words = [word.decode(errors="surrogateescape") if isinstance(word, bytes) else word for word in array.tolist()]
    for item, word in enumerate(words):
        if not isinstance(word, str):
            raise HashbenchError(
                f"{name} are words, but item {item} (counted from 0) has {word}; give it a word too, or leave it out."
            )
    return words


def check_labelled(labels: AnyArray, name: str) -> None:
    """Refuse labels (n,) or (n, n_classes) of a file, called ``name`` in messages, if some are missing."""
    is_empty = labels != labels
    if labels.dtype.kind == "O":
        is_empty = np.array([is_missing(label) for label in labels.flat], dtype=bool).reshape(labels.shape)
    missing = np.flatnonzero(is_empty.any(axis=tuple(range(1, labels.ndim))))
    if missing.size:
        raise HashbenchError(
            f"{missing.size} items of {name} have no label, first item {missing[0]} (counted from 0); add labels, or "
            f"leave items out.{' Words such as NA and null count as missing in a .csv file.' if '.csv' in name else ''}"
        )


def is_missing(cell: Any) -> bool:
    """Return whether a cell of a table is empty: None or NaN."""
    return cell is None or (isinstance(cell, float) and cell != cell)


def number_words(words: AnyArray) -> tuple[AnyArray, IntArray]:
    """Return the distinct words, sorted, and the number of each item's word among them.

    Words are compared in Unicode form NFC: "ü" may be one character, or two as macOS writes it.
    """
    if words.dtype.kind in "OU":
        composed = [normalize("NFC", word) if isinstance(word, str) else word for word in words.tolist()]
        words = np.array(composed, dtype=object if words.dtype.kind == "O" else np.str_)
    names, numbers = np.unique(words, return_inverse=True)
    return names, numbers.astype(np.int64, copy=False)


def as_int64(array: AnyArray, name: str) -> IntArray:
    """Convert whole numbers of any dtype, called ``name`` in messages, to int64; refuse those that are not exact."""
    if array.dtype.kind not in "uf":
        return array.astype(np.int64, copy=False)
    largest = 2 ** (np.finfo(array.dtype).nmant + 1) - 1 if array.dtype.kind == "f" else int(_INT64.max)
    beyond = ~(np.abs(array) <= largest) if array.dtype.kind == "f" else array > largest
    if beyond.any():
        raise HashbenchError(
            f"{name} are {array.dtype}, exact up to {largest}, and hold {array[beyond].flat[0]}; different classes may "
            "no longer differ. Renumber them before they are saved: numpy.unique(labels, return_inverse=True)[1]."
        )
    return array.astype(np.int64, copy=False)


def check_superclasses(labels: IntArray, coarse_labels: IntArray, names: Sequence[str] = ()) -> None:
    """Refuse a class with several superclasses, given those of each item, both (n,), and ``names`` of the classes."""
    pairs = np.unique(np.stack([labels, coarse_labels], axis=1), axis=0)
    classes, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        number = classes[counts > 1][0]
        name = repr(names[number]) if names else number
        raise HashbenchError(f"class {name} has items of several superclasses; it must lie in one.")


def multi_hot(labels: npt.ArrayLike, name: str) -> npt.NDArray[np.uint8]:
    """Check multi-hot labels (n, n_classes), zeros and ones, called ``name`` in messages; return them as uint8."""
    array = as_array(labels, name)
    if array.ndim != 2 or array.shape[1] < 2:
        raise HashbenchError(
            f"{name} have shape {array.shape}, expected multi-hot (n, n_classes), 2 classes or more. "
            "For one class per item, give class numbers of shape (n,)."
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
    """Return the largest number of labels of an item in multi-hot labels (n, n_classes); 0 without items."""
    return int(multi_hot.sum(axis=1, dtype=np.int64).max(initial=0))


def is_sparse(matrix: Any) -> bool:
    """Check whether a matrix is SciPy's, without importing SciPy."""
    issparse = getattr(sys.modules.get("scipy.sparse"), "issparse", None)  # missing while another thread imports it
    return issparse is not None and bool(issparse(matrix))


def checked_sparse(matrix: Any, name: str = "a sparse matrix") -> Any:
    """Copy a sparse matrix, called ``name`` in messages; refuse one that is damaged, since compiled code trusts it."""
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
    except ValueError as error:
        raise HashbenchError(f"{name} of shape {matrix.shape} is damaged: {one_line(error)}.") from error
    return matrix


def summed_csr(matrix: Any) -> Any:
    """Copy a sparse matrix of levels, of any format, to CSR; refuse one that is damaged.

    Duplicate entries are added up in 64 bits; of booleans, one that is true suffices. Level -1 has no duplicates.
    """
    from scipy.sparse import csr_array

    matrix = checked_sparse(matrix)
    if not matrix.has_canonical_format:
        check_levels(matrix.data, may_ignore=True, may_be_real=True)
        matrix = matrix.astype({"b": np.bool_, "f": np.float64}.get(matrix.dtype.kind, np.int64))
    n_stored, has_ignored = matrix.nnz, (matrix.data < 0).any()
    summed = csr_array(matrix)  # adds up the duplicates of COO
    summed.sum_duplicates()  # in place, for CSR
    if summed.nnz < n_stored and has_ignored:
        raise HashbenchError(
            "a sparse matrix with level -1 holds some pairs twice, and -1 does not add up. Give each pair once."
        )
    return summed


def check_levels(
    levels: npt.ArrayLike, owner: str = "an affinity", *, may_ignore: bool = False, may_be_real: bool = False
) -> AnyArray:
    """Check levels of ``owner``, whole numbers 0 to ``MAX_LEVEL``; return 0 and those that occur, ascending.

    Level -1 is allowed where pairs may be ignored, and real numbers where levels may be real. The result is int64, or
    float64 if some level is not whole.
    """
    kind = "" if may_be_real else "whole-number "
    expected = f"{owner} holds {kind}levels 0 to {MAX_LEVEL}{', and -1 to ignore a pair' * may_ignore}"
    array = np.asarray(levels)
    if array.dtype.kind not in "biuf":
        raise HashbenchError(f"{expected}, got values of dtype {array.dtype}.")
    values = np.unique(array)
    if values.dtype == np.bool_:
        values = values.astype(np.int64)
    are_allowed = (values >= 0) & (values <= MAX_LEVEL) if may_be_real else are_levels(values)
    bad = values[~(are_allowed | (may_ignore & (values == -1)))]
    if bad.size:
        shown = ", ".join(map(str, bad[:3])) + (", ..." if bad.size > 3 else "")
        raise HashbenchError(f"{expected}, got {bad.size} other values ({shown}).")
    return np.union1d([0], values).astype(np.float64 if (values != np.floor(values)).any() else np.int64)


def check_few(levels: AnyArray, owner: str) -> None:
    """Refuse more levels of ``owner``, 0 among them, than are counted: a histogram has a row for each."""
    if len(levels) > MAX_LEVEL + 1:
        raise HashbenchError(
            f"{owner} holds {len(levels) - 1:,} different levels above 0, at most {MAX_LEVEL:,} are counted. Round "
            "them, for instance to 3 decimals if they are at most 1."
        )


def are_real(levels: AnyArray) -> bool:
    """Check whether levels may be other than whole numbers, which are counted faster."""
    return levels.dtype.kind == "f"


def refuse_fractions(levels: AnyArray, what: str, advice: str = "Apply a threshold, such as levels >= 0.5") -> None:
    """Refuse levels that are not whole, for ``what``, which asks which items are relevant, or counts levels."""
    fractions = levels[levels != np.floor(levels)]
    if fractions.size:
        raise HashbenchError(f"{what} needs whole-number levels of relevance, and one is {fractions[0]:g}. {advice}.")


def are_levels(values: AnyArray) -> npt.NDArray[np.bool_]:
    """Return which numbers are whole ones from 0 to ``MAX_LEVEL``."""
    return np.asarray((values >= 0) & (values <= MAX_LEVEL) & (values == np.floor(values)))


class Range(NamedTuple):
    """An interval of numbers; see `whole` and `real`."""

    kind: type
    low: float
    high: float | None
    closed: Literal["left", "right", "both", "neither"]

    def holds(self, value: Any) -> bool:
        """Return whether a number lies in the interval; NaN lies in none."""
        high = np.inf if self.high is None else self.high
        is_above = value >= self.low if self.closed in ("left", "both") else value > self.low
        return bool(is_above and (value <= high if self.closed in ("right", "both") else value < high))

    def __str__(self) -> str:
        start, end = "[" if self.closed in ("left", "both") else "(", "]" if self.closed in ("right", "both") else ")"
        number, kind = ("an int", int) if self.kind is Integral else ("a float", float)
        return f"{number} in the range {start}{kind(self.low)}, {'inf' if self.high is None else kind(self.high)}{end}"


def whole(low: int, high: int | None = None) -> Range:
    """Allow whole numbers from ``low`` to ``high``, both included, or to no end.

    Examples
    --------
    >>> whole(1)
    Range(kind=<class 'numbers.Integral'>, low=1, high=None, closed='left')
    """
    return Range(Integral, low, high, "left" if high is None else "both")


def real(
    low: float, high: float | None = None, closed: Literal["left", "right", "both", "neither"] | None = None
) -> Range:
    """Allow real numbers from ``low`` to ``high``; ``closed`` names the ends that are included, by default both.

    Examples
    --------
    >>> real(0, 1, closed="left")
    Range(kind=<class 'numbers.Real'>, low=0, high=1, closed='left')
    """
    return Range(Real, low, high, closed or ("left" if high is None else "both"))


def choice(*options: str) -> frozenset[str]:
    """Allow these words.

    Examples
    --------
    >>> sorted(choice("mlp", "linear"))
    ['linear', 'mlp']
    """
    return frozenset(options)


def setting(default: Any, *allowed: Any, tunable: Sequence[Any] | None = None) -> Any:
    """Declare a parameter of a method, a dataclass: its default, allowed values and values worth trying.

    Parameters
    ----------
    default : object
        The default.
    *allowed : Range, frozenset of str, type or None
        `whole` or `real` numbers, a `choice` of words, any instance of a type (``bool`` also takes NumPy's), or None.
        By default as in the nearest base class.
    tunable : sequence, optional
        Values that ``hashbench tune`` tries; empty for a parameter that it does not tune. By default as in the
        nearest base class.

    Returns
    -------
    dataclasses.Field
        The field.

    Examples
    --------
    >>> parameter = setting(50, whole(1), tunable=(20, 50))
    >>> parameter.default, parameter.metadata["tunable"]
    (50, (20, 50))
    """
    metadata: dict[str, tuple[Any, ...]] = {"allowed": allowed} if allowed else {}
    if tunable is not None:
        metadata["tunable"] = tuple(tunable)
    return field(default=default, metadata=metadata)


def allowed_values(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each parameter, as the class or its nearest base declares them."""
    return _declared(cls, "allowed")


def tunable_values(cls: type) -> dict[str, tuple[Any, ...]]:
    """Return the values worth trying of each parameter that has some, as the class or its nearest base declares."""
    return {name: values for name, values in _declared(cls, "tunable").items() if values}


def real_parameters(cls: type) -> tuple[str, ...]:
    """Return the names of parameters whose numbers are real: 2 and 2.0 are one setting of these."""

    def takes_ints(rule: Any) -> bool:
        return rule.kind is Integral if isinstance(rule, Range) else isinstance(rule, type) and issubclass(int, rule)

    return tuple(
        name
        for name, rules in allowed_values(cls).items()
        if any(isinstance(rule, Range) for rule in rules) and not any(map(takes_ints, rules))
    )


def with_floats(values: Mapping[str, Any], names: Container[str]) -> dict[str, Any]:
    """Return settings in which the whole numbers of these names are floats."""

    def is_whole(value: Any) -> bool:
        return isinstance(value, Integral) and not isinstance(value, bool)

    return {name: float(value) if name in names and is_whole(value) else value for name, value in values.items()}


def _declared(cls: type, key: str) -> dict[str, tuple[Any, ...]]:
    return {
        name: parameter.metadata[key]
        for base in reversed(cls.__mro__)
        for name, parameter in base.__dict__.get("__dataclass_fields__", {}).items()
        if key in parameter.metadata
    }


def preset_settings(presets: Mapping[str, Mapping[str, Any]], owner: str, name: str, n_bits: int) -> dict[str, Any]:
    """Return the settings of a preset for a code length; values in ``presets`` may be functions of it."""
    if not presets:
        raise HashbenchError(f"{owner} has no presets, got {name!r}. Leave the preset out for it.")
    if name not in presets:
        raise unknown_name(f"{owner} preset", name, presets)
    return {key: value(n_bits) if callable(value) else value for key, value in presets[name].items()}


def check_settings(allowed: Mapping[str, Sequence[Any]], values: Mapping[str, Any], owner: str) -> None:
    """Refuse values that are not allowed, in scikit-learn's words."""
    for name, value in values.items():
        rules = allowed.get(name, ())
        if rules and not any(_allows(rule, value) for rule in rules):
            *others, last = map(_words_of, rules)
            words = f"{', '.join(others)} or {last}" if others else last
            raise HashbenchError(f"The {name!r} parameter of {owner} must be {words}. Got {value!r} instead.")


def _allows(rule: Any, value: Any) -> bool:
    """Return whether a value is one of those that a rule of `setting` allows."""
    if isinstance(rule, Range):
        return isinstance(value, rule.kind) and rule.holds(value)
    if isinstance(rule, frozenset):
        return isinstance(value, str) and value in rule
    return value is None if rule is None else isinstance(value, (bool, np.bool_) if rule is bool else rule)


def _words_of(rule: Any) -> str:
    """Return what a rule of `setting` allows, in words."""
    if isinstance(rule, frozenset):
        return f"a str among {{{', '.join(map(repr, sorted(rule)))}}}"
    return f"an instance of {rule.__name__!r}" if isinstance(rule, type) else str(rule)


def real_rows(values: npt.ArrayLike, name: str, columns: str) -> AnyArray:
    """Check rows of finite real numbers, (n, ``columns``), not empty; float32 is kept, others become float64."""
    array = as_array(values, name)
    if array.ndim != 2 or 0 in array.shape or array.dtype.kind not in "biuf":
        raise unexpected(array, name, f"real numbers of shape (n, {columns}), not empty")
    array = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise HashbenchError(
            f"{name} hold values that are not finite in {bad.size} rows, first in row {bad[0]} (counted from 0)."
        )
    return array


def real_row_pair(query: npt.ArrayLike, database: npt.ArrayLike, what: str, columns: str) -> tuple[AnyArray, AnyArray]:
    """Check ``what`` of queries and database, both as `real_rows` does and with equally many columns."""
    query, database = real_rows(query, f"query {what}", columns), real_rows(database, f"database {what}", columns)
    if query.shape[1] != database.shape[1]:
        raise HashbenchError(
            f"query {what} have {query.shape[1]} columns and database {what} {database.shape[1]}; both must be equally "
            "long."
        )
    return query, database


def check_directions(rows: AnyArray, name: str, advice: str = "Leave such items out") -> None:
    """Refuse rows, called ``name`` in messages, that are all zeros."""
    bad = np.flatnonzero(~rows.any(axis=1))
    if bad.size:
        raise HashbenchError(
            f"{name} are all zeros in {bad.size} rows, first in row {bad[0]} (counted from 0), and have no direction. "
            f"{advice}."
        )

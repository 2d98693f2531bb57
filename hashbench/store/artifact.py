"""One form for all cached files: HDF5 with arrays, one record in JSON of what they are, and one digest over both.

Datasets, codes, scores, models, checkpoints and computed arrays differ only in what their records hold.
"""

import hashlib
import io
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hashbench._typing import AnyArray
from hashbench.dataset import canonical_json
from hashbench.errors import Damaged, HashbenchError, OtherForm, TooLarge, one_line
from hashbench.store.files import replacing
from hashbench.store.inputs import check_file, check_fits, check_stored, open_hdf5

if TYPE_CHECKING:
    import h5py

SCHEMA_VERSION = 2  # of the first release
ADVICE = {  # on a damaged file, by kind
    "dataset": "Rebuild it (hashbench prepare NAME --force)",
    "codes": "Encode again (--force)",
    "scores": "Score again (--force)",
    "model": "Fit it again with --keep-model",
    "checkpoint": "Start again without resuming",
    "array": "It is recomputed",
    "file": "Repeat the command that wrote it",  # of a kind that cannot be read
}
EXPECTED = {"model": "the .model.h5 file of hashbench encode --keep-model"}
_MAPPED = 1 << 20  # bytes
_ALIGNED = 64
_PIECE = 1 << 24  # bytes that are read at a time
_RECORD = 1 << 23  # bytes of the longest record
_log = logging.getLogger("hashbench")
_T = TypeVar("_T")


class Blocks(NamedTuple):
    """An array to be written, given by blocks of its rows."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Iterable[AnyArray]


def cached(
    path: Path,
    kind: str,
    key: "Key",
    read_value: "Callable[[Artifact], _T | None]",
    make: Callable[[], _T],
    *,
    force: bool = False,
    done: str = "computed",
    keep: ExitStack | None = None,
) -> tuple[_T, str]:
    """Return the value in a file of this key, or else the one that ``make`` returns, which writes the file.

    Also returns what was done in words, "" if nothing. ``read_value`` returns None if the file lacks something, and
    stays open until ``keep`` is closed. The caller holds the lock.
    """
    try:
        with ExitStack() as stack:
            found = None if force else stack.enter_context(opened(path, kind, key))
            with parsing(path, kind):
                value = None if found is None else read_value(found)
            if value is not None:
                if keep is not None:
                    keep.enter_context(stack.pop_all())
                return value, ""
    except OtherForm as error:
        _log.debug("%s", error)
    except Damaged as error:
        _log.log(logging.WARNING if kind == "array" else logging.DEBUG, "%s", error)
        done = f"re-{done} damaged"
    return make(), done


def cached_array(path: Path, key: str, blocks: Blocks) -> AnyArray:
    """Return a cached array, mapped into memory; write it if its file is missing, damaged or of another key.

    The caller holds the lock.
    """
    record = {"key": key, "shape": list(blocks.shape), "dtype": blocks.dtype.str}

    def make() -> AnyArray:
        write(path, "array", record, {"values": blocks})
        with open_hdf5(path) as file:
            return Artifact(path, file).mapped("values")

    return cached(path, "array", record, lambda found: found.mapped("values"), make)[0]


def write(path: Path, kind: str, record: Mapping[str, Any], arrays: Mapping[str, AnyArray | Blocks]) -> None:
    """Write a file, whole or not at all."""
    import h5py

    names = sorted(arrays)
    text = canonical_json({**record, "hashbench": kind, "schema_version": SCHEMA_VERSION, "arrays": names}).encode()
    if len(text) > _RECORD:
        raise HashbenchError(
            f"the record of {path} takes {len(text):,} bytes, expected at most {_RECORD:,}. Put long lists in arrays."
        )
    parts = {"record": np.array(text), **{name: arrays[name] for name in names}}
    digest = hashlib.sha256()
    with replacing(path) as part, _Part(part, "w+b") as raw:
        with h5py.File(raw, "w", alignment_threshold=_MAPPED, alignment_interval=_ALIGNED) as file:
            for name, array in parts.items():
                stored = file.create_dataset(name, array.shape, array.dtype)
                digest.update(_head(name, stored))
                for place, block in _placed(array):
                    digest.update(block.data)
                    stored[place] = block
                    raw.check()
            file["content"] = np.bytes_(digest.hexdigest())
        raw.check()


def _placed(array: AnyArray | Blocks) -> Iterator[tuple[Any, AnyArray]]:
    """Yield the blocks of an array and their places in it; raise an error if they do not add up to its shape."""
    if not isinstance(array, Blocks):
        yield (), np.asarray(array, order="C")
        return
    end = 0
    for block in array.blocks:
        start, end = end, end + len(block)
        if block.shape[1:] != array.shape[1:] or end > array.shape[0]:
            raise ValueError(f"a block of shape {block.shape} ends at row {end} of an array of shape {array.shape}")
        yield slice(start, end), np.asarray(block, array.dtype, order="C")
    if end != array.shape[0]:
        raise ValueError(f"blocks have {end} rows, expected {array.shape[0]}")


class _Part(io.FileIO):
    """A file that HDF5 writes to without noticing that the disk is full, since it may crash then."""

    _error: OSError | None = None

    def check(self) -> None:
        """Raise the first error of writing."""
        if self._error is not None:
            raise self._error

    def write(self, content: Any) -> int:
        """Write all bytes."""
        rest = memoryview(content).cast("B")
        try:
            while rest:
                rest = rest[super().write(rest) :]
        except OSError as error:
            self._error = self._error or error
        return len(content)

    def truncate(self, size: int | None = None) -> int:
        """Set the length."""
        try:
            return super().truncate(size)
        except OSError as error:
            self._error = self._error or error
            return 0


def _head(name: str, stored: "h5py.Dataset") -> bytes:
    return f"{name};{stored.dtype.str};{stored.shape};".encode()


class Artifact:
    """An open file: its record, and arrays that are read on demand."""

    def __init__(self, path: Path, file: "h5py.File") -> None:
        self.path, self._file = path, file
        record = self.stored("record")
        if record.shape or record.dtype.kind != "S" or record.nbytes > _RECORD:
            raise ValueError(f"its record is not a text of up to {_RECORD:,} bytes")
        self.record: dict[str, Any] = dict(json.loads(record[()]))

    def array(self, name: str) -> AnyArray:
        """Read an array into memory, if it fits."""
        return np.asarray(self.stored(name, in_slices=False)[...])

    def mapped(self, name: str) -> AnyArray:
        """Map a large array into memory, which processes share; read any other.

        Files of the data folder are replaced, never changed, so a mapped array stays the same. Windows cannot replace
        mapped files.
        """
        stored = self.stored(name)
        offset = stored.id.get_offset()
        if sys.platform == "win32" or not offset or offset % _ALIGNED or stored.nbytes < _MAPPED:
            return self.array(name)  # sums depend on alignment
        with os.fdopen(os.dup(self._file.id.get_vfd_handle()), "rb") as file:  # the name may be of another file by now
            return np.asarray(np.memmap(file, stored.dtype, "c", offset, stored.shape))

    def content(self) -> str:
        """Return the digest of the record and its arrays."""
        digest = hashlib.sha256()
        for name in ("record", *self.record["arrays"]):
            stored = self.stored(name)
            n_rows = len(stored) if stored.shape else 1
            row_bytes = stored.nbytes // max(1, n_rows)  # the least that is read at a time
            if row_bytes > _PIECE:
                check_fits(row_bytes, f"a row of {name} of {self.path}")
            digest.update(_head(name, stored))
            step = max(1, _PIECE // max(1, row_bytes))
            for start in range(0, n_rows, step):
                digest.update(stored[start : start + step] if stored.shape else stored[...])
        return digest.hexdigest()

    def stored(self, name: str, *, in_slices: bool = True) -> "h5py.Dataset":
        """Return an array to be read slice by slice while the file is open: numbers, or texts of fixed length.

        Others are in a heap, in which HDF5 loops forever once it is damaged; hashbench writes none.
        """
        from h5py import Dataset

        stored = self._file.get(name)
        if not isinstance(stored, Dataset):
            raise KeyError(name)
        if stored.dtype.hasobject:
            raise ValueError(f"{name} holds objects, expected numbers or texts of fixed length")
        check_stored(stored, f"{name} of {self.path}", in_slices=in_slices and stored.chunks is None)
        return stored


Key = Mapping[str, Any] | Callable[[Mapping[str, Any]], bool] | None  # entries of a record, or whether it has the key


@contextmanager
def opened(path: Path, kind: str, key: Key = None) -> Iterator[Any]:
    """Open a file as an `Artifact` and check its digest; with a key, yield None if there is no file, or of another key.

    A file of another kind or version counts as damaged, too, so that the cache replaces it.
    """
    if key is not None and not path.exists():
        yield None
        return
    check_file(path)
    with ExitStack() as stack:
        with parsing(path, kind):
            found = Artifact(path, stack.enter_context(open_hdf5(path)))
            actual_kind, version = found.record.get("hashbench"), found.record.get("schema_version")
            if actual_kind != kind:
                raise OtherForm(f"{path} is a {actual_kind} file, expected {EXPECTED.get(kind, f'a {kind} file')}.")
            if version != SCHEMA_VERSION:
                raise OtherForm(
                    f"{path} has schema version {version}, this hashbench reads {SCHEMA_VERSION}. Upgrade hashbench, "
                    "or rebuild the file."
                )
            names = found.record["arrays"]
            if not isinstance(names, list) or names != sorted({str(name) for name in names}):
                raise ValueError("its arrays are not a sorted list of different names")
            is_sought = key is None or (
                key(found.record)
                if callable(key)
                else all(found.record.get(name) == value for name, value in key.items())
            )
            if is_sought and found.array("content").item().decode() != found.content():
                raise ValueError("its content and its checksum differ")
        yield found if is_sought else None


def read(path: Path, kind: str, parse: Callable[[Artifact], Any], key: Key = None) -> Any:
    """Return what ``parse`` makes of a file that `opened` yields; with a key, None if there is no such file."""
    with opened(path, kind, key) as found, parsing(path, kind):
        return None if found is None else parse(found)


def kind_of(path: Path) -> str:
    """Return the kind that a file says it is, unchecked."""
    with parsing(path, "file"), open_hdf5(path) as file:
        return str(Artifact(path, file).record["hashbench"])


def read_record(path: Path) -> dict[str, Any]:
    """Read only the record of a file, unchecked; empty if it is missing or damaged."""
    with suppress(Exception), open_hdf5(path) as file:
        return Artifact(path, file).record
    return {}


@contextmanager
def parsing(path: Path, kind: str) -> Iterator[None]:
    """Turn any exception on a damaged file into `Damaged`."""
    try:
        yield
    except (Damaged, TooLarge, ImportError, MemoryError):
        raise
    except HashbenchError as error:
        raise Damaged(f"{error} {ADVICE[kind]}.") from error
    except Exception as error:  # readers meet damaged files with errors of any kind
        reason = "it is not HDF5" if "signature" in str(error) else one_line(error) or type(error).__name__
        if isinstance(error, KeyError):
            reason = f"it lacks {error.args[0]}"
        raise Damaged(
            f"{path} is damaged, or was not written by hashbench: {reason.rstrip('.')}. {ADVICE[kind]}."
        ) from error

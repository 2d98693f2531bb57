"""Arrays whose rows are in several files, one after the other, and are read in slices."""

import json
import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from itertools import accumulate, takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import find_array, opened_arrays, read_array, split_spec
from hashbench.sources.arrow_files import ARROW_SUFFIXES
from hashbench.sources.formats import VECTOR_SUFFIXES
from hashbench.store.files import HDF5_SUFFIXES
from hashbench.store.inputs import check_file, reading

SLICED = (".npy", *HDF5_SUFFIXES, *ARROW_SUFFIXES, ".safetensors", *VECTOR_SUFFIXES)
_MANIFESTS = {".json": json.loads, ".toml": tomllib.loads}


class ShardedArray:
    """An array whose rows are in several files that can be read in slices.

    It holds paths only: a file is open only while a slice of it is read, and pickles are small.
    """

    def __init__(self, specs: Sequence[str], keys: tuple[str, ...]) -> None:
        self._keys = keys
        headers = []
        seen: dict[tuple[int, int, str], str] = {}
        for spec in specs:
            with _opened(spec, keys) as (name, stored):
                headers.append((stored.shape, stored.dtype))
            file = split_spec(spec)[0].stat()
            other = seen.setdefault((file.st_dev, file.st_ino, name), spec)
            if len(seen) < len(headers):
                raise HashbenchError(
                    f"{spec} comes twice among the shards{f', first as {other}' * (other != spec)}. Name each once."
                )
            shape, dtype = headers[-1]
            if 0 in shape or not shape:
                raise HashbenchError(f"{spec} is empty: shape {shape}. Leave it out of the shards.")
            if (shape[1:], dtype) != (headers[0][0][1:], headers[0][1]):
                raise HashbenchError(
                    f"{spec} holds {dtype} of shape {shape}, but {specs[0]} {headers[0][1]} of shape {headers[0][0]}; "
                    "all shards need one dtype, and one width of their rows."
                )
        stops = list(accumulate(shape[0] for shape, _ in headers))
        places = (str(Path(spec).absolute()) for spec in specs)
        self._shards = list(zip(places, [0, *stops[:-1]], stops, strict=True))
        self.shape, self.dtype = (stops[-1], *headers[0][0][1:]), headers[0][1]

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: slice) -> AnyArray:
        start, stop, _ = rows.indices(len(self))
        stop = max(start, stop)
        first = bisect_right(self._shards, start, key=itemgetter(2))
        inside = takewhile(lambda shard: shard[1] < stop, self._shards[first:])
        parts = [self._read(place, max(start - begin, 0), min(stop, end) - begin) for place, begin, end in inside]
        return np.concatenate(parts) if parts else np.empty((0, *self.shape[1:]), self.dtype)

    def _read(self, place: str, start: int, stop: int) -> AnyArray:
        with _opened(place, self._keys) as (_, stored), reading(split_spec(place)[0]):
            part = np.array(stored[start:stop])
        if (part.shape, part.dtype) != ((stop - start, *self.shape[1:]), self.dtype):
            raise HashbenchError(f"{place} changed while codes were scored. Score again when it no longer changes.")
        return part


def read_in_slices(spec: str, keys: tuple[str, ...]) -> ShardedArray | AnyArray:
    """Open shards, or a file that can be read in slices; read any other file whole."""
    shards = find_shards(spec)
    suffix = split_spec(spec)[0].suffix.lower()
    if shards is None and (suffix in ARROW_SUFFIXES or suffix not in SLICED):  # a table may hold words
        return read_array(spec, keys)
    return ShardedArray(shards or [spec], keys)


def read_whole(spec: str, keys: tuple[str, ...]) -> AnyArray:
    """Read an array from one file, or from shards."""
    shards = find_shards(spec)
    return ShardedArray(shards, keys)[:] if shards else read_array(spec, keys)


def files_behind(spec: str) -> list[str]:
    """List the files that a manifest or a pattern names, or the one file itself."""
    return find_shards(spec) or [spec]


def find_shards(spec: str) -> list[str] | None:
    """List the files that a manifest or a pattern such as ``codes-*.npy`` names, 2 before 10; None for other files."""
    path, key = split_spec(spec)
    if path.suffix.lower() in _MANIFESTS:
        return _read_manifest(path)
    if not set("*?[") & set(str(path)) or path.exists():
        return None
    names = sorted(glob(str(path)), key=_natural)  # noqa: PTH207 - a pattern may be absolute
    if not names:
        raise HashbenchError(f"no file matches {path}. Fix the pattern, or write the files first.")
    return [name if key is None else f"{name}:{key}" for name in names]


def _read_manifest(path: Path) -> list[str]:
    """Read the files that a manifest beside them lists as ``shards``."""
    check_file(path)
    with reading(path, path.suffix.lower()):
        content = _MANIFESTS[path.suffix.lower()](path.read_text(encoding="utf-8"))
    shards = content["shards"] if isinstance(content, dict) and set(content) == {"shards"} else None
    if not isinstance(shards, list) or not shards or not all(isinstance(shard, str) and shard for shard in shards):
        raise HashbenchError(
            f"{path} is not a manifest of shards, expected one key, shards: a list of FILE or FILE:KEY in order."
        )
    return [str(path.parent / shard) for shard in shards]


def _natural(name: str) -> tuple[list[int | str], str]:
    """Return a key that sorts names by the numbers in them."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)], name


@contextmanager
def _opened(spec: str, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    path, key = split_spec(spec)
    if path.suffix.lower() not in SLICED:
        raise HashbenchError(f"{path} cannot be read in slices, as shards are; write it as one of {', '.join(SLICED)}.")
    with opened_arrays(path, in_slices=True) as arrays:
        yield find_array(arrays, path, key, keys)

"""Arrays that are computed once and cached: each a NumPy file followed by the SHA-256 of its content."""

import hashlib
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._typing import AnyArray
from hashbench.store.files import replacing

_DIGEST_BYTES = 32
_log = logging.getLogger("hashbench")


def cached_array(path: Path, shape: tuple[int, ...], dtype: type[np.generic], blocks: Iterable[AnyArray]) -> AnyArray:
    """Return a cached array, mapped into memory; write it from blocks of its rows if its file is missing or damaged.

    The caller holds the file's lock.
    """
    if not _is_whole(path, shape, dtype):
        if path.exists():
            _log.warning("%s is damaged, or was written by another version of hashbench; recomputing it.", path)
        with replacing(path) as part:
            _write(part, shape, np.dtype(dtype), blocks)
    return np.asarray(np.load(path, mmap_mode="c"))


def _is_whole(path: Path, shape: tuple[int, ...], dtype: type[np.generic]) -> bool:
    try:
        content = np.memmap(path, np.uint8, mode="r")
    except (OSError, ValueError):  # such as a missing or an empty file
        return False
    digest = hashlib.sha256(content[:-_DIGEST_BYTES].data).digest()
    if digest != content[-_DIGEST_BYTES:].tobytes():
        return False
    array = np.load(path, mmap_mode="r")
    return bool((array.shape, array.dtype) == (shape, dtype))


def _write(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[AnyArray]) -> None:
    digest = hashlib.sha256()
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with path.open("w+b") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.seek(0)
        digest.update(file.read())
        for block in blocks:  # not through a memory map, which a full disk would kill
            content = np.ascontiguousarray(block, dtype).data
            digest.update(content)
            file.write(content)
        file.write(digest.digest())

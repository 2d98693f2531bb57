"""Files of any origin, looked at before they are read: regular, whole in themselves, no larger than memory."""

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hashbench.errors import HashbenchError, one_line

if TYPE_CHECKING:
    import h5py


def check_file(path: Path) -> None:
    """Refuse what is no regular file that can be read; a pipe or a device may never end."""
    with reading(path):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise HashbenchError(f"{path} is a link to {path.readlink()}, where there is nothing.") from None
            raise HashbenchError(f"there is no file {path}.") from None
        if stat.S_ISDIR(mode):
            raise HashbenchError(f"{path} is a folder, expected a file.")
        if not stat.S_ISREG(mode):
            raise HashbenchError(f"{path} is a pipe or a device, expected a regular file: copy what it gives into one.")
        with path.open("rb"):
            pass


@contextmanager
def reading(path: Path, what: str = "") -> Iterator[None]:
    """Turn whatever libraries raise on a file that they cannot read into a sentence; ``what`` it was to be."""
    try:
        yield
    except HashbenchError:
        raise
    except Exception as error:  # each raises its own on damaged files
        words = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
        reason = words.rstrip(".") or type(error).__name__
        raise HashbenchError(f"cannot read {path}{f' as {what}' if what else ''}: {reason}.") from error


def check_fits(n_bytes: int, what: str) -> None:
    """Refuse what does not fit into the machine's free memory; ``what`` it is begins the sentence."""
    free = free_memory()
    if n_bytes > free:
        raise HashbenchError(
            f"{what} takes {n_bytes / 2**30:,.1f} GB of memory, and {free / 2**30:,.1f} GB are free; give a part of "
            "it, or take a larger machine. If it should be small, the file is damaged."
        )


def free_memory() -> int:
    """Tell how many bytes of memory are free, or all there are where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        try:
            return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return 1 << 62


@contextmanager
def open_hdf5(path: Path) -> "Iterator[h5py.File]":
    """Open an HDF5 file for reading; refuse one with links that leave it, before any is followed."""
    import h5py

    check_file(path)
    with h5py.File(path, "r") as file:
        _check_links(file, path)
        yield file


def check_stored(stored: "h5py.Dataset", name: str) -> None:
    """Refuse an array of HDF5, called ``name``, that lies elsewhere, was never written or does not fit into memory."""
    import h5py

    if stored.external or stored.is_virtual:
        raise HashbenchError(f"{name} keeps its values in other files, which are not read. Copy them into one file.")
    if h5py.check_ref_dtype(stored.dtype):
        raise HashbenchError(f"{name} holds references to objects, expected numbers or words.")
    n_bytes = max(stored.nbytes, math.prod(stored.chunks or ()) * stored.dtype.itemsize)
    check_fits(n_bytes, f"{name} of shape {stored.shape}")
    if stored.size and stored.id.get_space_status() == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED:
        raise HashbenchError(f"{name} declares shape {stored.shape}, but none of its values were ever written.")


def whole(file: "h5py.Group", name: str) -> Any:
    """Read an array of HDF5, once it is checked."""
    stored = file[name]
    check_stored(stored, f"{name} of {file.file.filename}")
    return stored[:]


def _check_links(file: "h5py.File", path: Path) -> None:
    """Go through all links by hand, since HDF5 walks in circles where a damaged group holds itself."""
    import h5py

    seen, waiting = set(), [file.id]
    while waiting:
        group = waiting.pop()
        for name in group:
            kind = group.links.get_info(name).type
            if kind == h5py.h5l.TYPE_HARD:
                found = h5py.h5o.get_info(group, name)
                if found.type == h5py.h5o.TYPE_GROUP and found.addr not in seen:
                    seen.add(found.addr)
                    waiting.append(h5py.h5g.open(group, name))
            elif kind != h5py.h5l.TYPE_SOFT:
                raise HashbenchError(
                    f"{path} links {name.decode(errors='replace')!r} to another file, and links that leave a file are "
                    "not followed. Give that file itself, or copy the array into this one."
                )

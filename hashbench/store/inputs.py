"""Checks of files before they are read: regular, without links to other files, no larger than free memory."""

import math
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hashbench.errors import HashbenchError, TooLarge, needing, one_line

if TYPE_CHECKING:
    import h5py

_SMALLER = "pass a part of it, or use a larger machine. If it should be small, the file is damaged"
_SMALL = 1 << 14  # bytes that are read without a check of free memory, since the check takes longer
_GROUPS = {  # control groups that limit memory: folder, limit, usage, and the part of it that is reclaimable cache
    "": ("", "memory.max", "memory.current", "inactive_file"),
    "memory": ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


def check_file(path: Path) -> None:
    """Refuse what is not a regular file that can be read; a pipe or a device may never end."""
    with reading(path):
        try:
            mode = path.stat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            if path.is_symlink():
                raise HashbenchError(f"{path} is a link to {path.readlink()}, which does not exist.") from None
            raise HashbenchError(f"there is no file {path}.{near_file(path)}") from None
        if stat.S_ISDIR(mode):
            raise HashbenchError(f"{path} is a folder, expected a file.")
        if not stat.S_ISREG(mode):
            raise HashbenchError(f"{path} is a pipe or a device, expected a regular file. Copy its content into one.")
        with path.open("rb"):
            pass


def resolved(path: Path) -> Path:
    """Follow all links of a path, which need not exist; refuse those that lead in a circle."""
    with reading(path):
        with suppress(FileNotFoundError):
            path.stat()
        return path.resolve()


def near_file(path: Path) -> str:
    """Return `` Did you mean ...?`` with the file beside a missing one whose name is nearest; empty if none is near."""
    from difflib import get_close_matches

    try:
        names = [file.name for file in path.parent.iterdir() if file.is_file()]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, n=1, cutoff=0.8)
    return f" Did you mean {str(path.parent / near[0])!r}?" if near else ""


@contextmanager
def reading(path: Path, what: str = "") -> Iterator[None]:
    """Turn any exception of a library that cannot read a file as ``what`` into a HashbenchError."""
    try:
        with needing(f"reading {path}"):
            yield
    except HashbenchError:
        raise
    except Exception as error:  # each raises its own on damaged files
        words = error.strerror if isinstance(error, OSError) and error.strerror else one_line(error)
        if isinstance(error, UnicodeDecodeError) and error.encoding == "utf-8":
            words = "its text is not UTF-8. Save it as UTF-8"
        reason = words.rstrip(".") or type(error).__name__
        raise HashbenchError(f"cannot read {path}{f' as {what}' if what else ''}: {reason}.") from error


def check_fits(n_bytes: int, what: str, advice: str = _SMALLER) -> None:
    """Refuse ``n_bytes`` that do not fit into free memory; the sentence begins with ``what``, ends with ``advice``."""
    free = free_memory()
    if n_bytes > free:
        raise TooLarge(
            f"{what} takes {n_bytes / 2**30:,.1f} GB of memory, and {free / 2**30:,.1f} GB are free; {advice}."
        )


def free_memory(root: Path = Path("/")) -> int:
    """Return how many bytes of memory this process may still take, on the machine and in its control groups.

    Containers and Slurm limit memory by control groups. If the system does not report its free memory, return the whole
    memory of the machine.
    """
    try:
        free = _numbers(root / "proc/meminfo")["MemAvailable:"] << 10
    except (OSError, KeyError):
        free = 1 << 62
        with suppress(AttributeError, OSError, ValueError):
            free = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(0, min([free, *_free_of_groups(root)]))


def _free_of_groups(root: Path) -> Iterator[int]:
    """Yield the bytes left below the limit of each control group around this process, of version 2 or 1."""
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:  # such as on other systems
        return
    for line in lines:
        _, kinds, group_path = line.split(":", 2)
        for kind in _GROUPS.keys() & set(kinds.split(",")):
            subfolder, limit, used, cache = _GROUPS[kind]
            group = Path(group_path.lstrip("/"))
            for part in (group, *group.parents):  # in a container the last is its own
                folder = root / "sys/fs/cgroup" / subfolder / part
                with suppress(OSError, ValueError):  # such as the limit "max"
                    taken = int((folder / used).read_text()) - _numbers(folder / "memory.stat").get(cache, 0)
                    yield int((folder / limit).read_text()) - taken


def _numbers(path: Path) -> dict[str, int]:
    """Read a system file with a name, a number and perhaps a unit on each line."""
    lines = map(str.split, path.read_text(encoding="utf-8").splitlines())
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}


@contextmanager
def open_hdf5(path: Path) -> "Iterator[h5py.File]":
    """Open an HDF5 file for reading; refuse one with links that leave it, before any is followed."""
    import h5py

    check_file(path)
    with h5py.File(path, "r") as file:
        _check_links(file, path)
        yield file


def check_stored(stored: "h5py.Dataset", name: str, *, in_slices: bool = False) -> None:
    """Refuse an array of HDF5 that is stored elsewhere, was never written or does not fit into memory.

    ``name`` is for errors. Of one that is read ``in_slices``, only a chunk must fit.
    """
    import h5py

    if stored.external or stored.is_virtual:
        raise HashbenchError(
            f"{name} keeps its values in other arrays or files, which are not read. Copy them into it."
        )
    if h5py.check_ref_dtype(stored.dtype):
        raise HashbenchError(f"{name} holds references to objects, expected numbers or strings.")
    n_bytes = max(0 if in_slices else stored.nbytes, math.prod(stored.chunks or ()) * stored.dtype.itemsize)
    if n_bytes > _SMALL:
        check_fits(n_bytes, f"{name} of shape {stored.shape}")
    status = stored.id.get_space_status()
    has_fill_value = stored.id.get_create_plist().fill_value_defined() == h5py.h5d.FILL_VALUE_USER_DEFINED
    is_partial = status == h5py.h5d.SPACE_STATUS_PART_ALLOCATED and not has_fill_value
    if stored.size and (is_partial or status == h5py.h5d.SPACE_STATUS_NOT_ALLOCATED):
        raise HashbenchError(
            f"{name} declares shape {stored.shape}, but some of its values were never written. Write them too; if they "
            "are meant to be zeros, set a fill value and write at least one value."
        )


def _check_links(file: "h5py.File", path: Path) -> None:
    """Check all links by hand, since HDF5 loops forever where a damaged group holds itself."""
    import h5py

    seen, waiting = set(), [file.id]
    while waiting:
        group = waiting.pop()
        for name in group:
            kind = group.links.get_info(name).type
            if kind == h5py.h5l.TYPE_HARD:
                info = h5py.h5o.get_info(group, name)
                if info.type == h5py.h5o.TYPE_GROUP and info.addr not in seen:
                    seen.add(info.addr)
                    waiting.append(h5py.h5g.open(group, name))
            elif kind != h5py.h5l.TYPE_SOFT:
                raise HashbenchError(
                    f"{path} links {name.decode(errors='replace')!r} to another file, and links that leave a file are "
                    "not followed. Give that file itself, or copy the array into this one."
                )

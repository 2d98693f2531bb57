"""Files: the data folder, locks between processes, and writing whole or not at all."""

import errno
import glob
import logging
import math
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

from hashbench.errors import HashbenchError, JobFailure, needing, one_line

if TYPE_CHECKING:
    from filelock import FileLock

HDF5_SUFFIXES = (".h5", ".hdf5")
_FULL = "free some space or choose another folder (for the cache: HASHBENCH_DATA)"
_HINTS = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), _FULL),
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "choose a name that is not a link to itself",
    errno.EISDIR: "choose the name of a file",
}
data_folder: ContextVar[str | None] = ContextVar("data_folder", default=None)  # in place of $HASHBENCH_DATA
lock_timeout: ContextVar[float] = ContextVar("lock_timeout", default=math.inf)  # seconds to wait for another process
_DESCRIPTORS = Path("/dev/fd")  # on Linux a link to /proc/self/fd
_MOST_LINKS = 40
_PATIENCE = 2.0  # seconds of waiting after which a warning says so
_log = logging.getLogger("hashbench")


def data_dir() -> Path:
    """Return the folder for datasets, codes and scores.

    It is `data_folder`, else ``$HASHBENCH_DATA``, else the user's cache folder.
    """
    chosen = Path(data_folder.get() or os.environ.get("HASHBENCH_DATA") or _cache_dir())
    try:
        return chosen.expanduser()
    except RuntimeError as error:
        raise HashbenchError(
            f"HASHBENCH_DATA is {chosen}, and there is no home folder of {chosen.parts[0]}. Set it to an absolute path."
        ) from error


def _cache_dir() -> Path:
    with needing("finding the cache folder, where HASHBENCH_DATA names none,"):
        from platformdirs import user_cache_path
    return user_cache_path("hashbench")


def locked(path: Path) -> AbstractContextManager[None]:
    """Keep other processes from making the same file, by ``.NAME.lock`` beside it; the same one may enter again."""
    return _holding(path.with_name(f".{path.name}.lock"))


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing files in a folder that may be in git; the same one may enter again.

    The lock is in its folder ``.locks``, which git ignores as it holds a ``.gitignore``. It is not in the data folder,
    since processes with other data folders may write here too.
    """
    locks = folder / ".locks"
    with _holding(locks / ".lock"):
        write_text(locks / ".gitignore", "*\n")
        yield


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Write a file whole or not at all: yield a temporary path beside it, which replaces it at the end.

    The new file has the permissions of the old one. On an error, ``path`` does not change and the temporary file is
    removed, as are those of killed processes. Raises HashbenchError if the file cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(path)
        try:
            yield part
            with part.open("r+b") as written:  # Windows flushes only what is open for writing
                os.fsync(written.fileno())
            if path.exists():
                shutil.copymode(path, part)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, LF) as `write_bytes` does."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; one that already holds these bytes stays untouched.

    A link is followed, and a pipe or a device is written through.
    """
    with writing(path):
        _follow(path)
        if _is_special(path):
            number = descriptor(path)
            with open(path if number is None else os.dup(number), "ab") as stream:  # noqa: PTH123
                stream.write(content)
            return
        path = path.resolve() if path.is_symlink() else path
        if path.is_file() and path.read_bytes() == content:
            return
    with replacing(path) as part:
        part.write_bytes(content)


def check_output(path: Path, *, is_folder: bool = False) -> None:
    """Refuse, before any work is done for it, a file or folder that cannot be written."""
    with writing(path):
        _follow(path)
        number = descriptor(path)
        if number is not None:
            os.fstat(number)
        if _is_special(path):
            return
        if path.is_dir() and not is_folder:
            raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
        absolute = path.absolute()
        folder = absolute if is_folder else absolute.parent
        while not folder.exists():
            folder = folder.parent
        if not folder.is_dir():
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def file_behind(path: Path) -> Path:
    """Follow a link to the file that is to be written whole; refuse what `check_output` does, a pipe and a device."""
    check_output(path)
    if _is_special(path):
        raise HashbenchError(f"cannot write {path}: it is a pipe or a device, expected a name for a file.")
    return path.resolve() if path.is_symlink() else path


def identities(paths: Iterable[Path]) -> set[tuple[int, int]]:
    """Return device and number of the files that exist; they are equal for all names and links of one file."""
    real = map(os.path.realpath, paths)  # of nowhere/../FILE the folder may be made before it is written
    return {(status.st_dev, status.st_ino) for status in map(os.stat, filter(os.path.exists, real))}


def descriptor(path: Path) -> int | None:
    """Return the number of the open file of this process that a path names, such as /dev/stdout; None for any other."""
    opened = _open_file(path)
    if opened is None or opened.parent != _DESCRIPTORS.resolve() or not opened.name.isdigit():
        return None
    return int(opened.name)


def _open_file(path: Path) -> Path | None:
    """Follow links to an open file of a process, such as /proc/7/fd/1; None if they lead elsewhere."""
    for _ in range(_MOST_LINKS):
        place = path.parent.resolve() / path.name
        if place.parent == _DESCRIPTORS.resolve() or (place.parts[:2] == ("/", "proc") and place.parent.name == "fd"):
            return place
        if not place.is_symlink():
            break
        path = place.parent / place.readlink()
    return None


def _follow(path: Path) -> None:
    """Raise OSError if links lead in a circle, or a name cannot be looked up; the file may be missing."""
    with suppress(FileNotFoundError):
        path.stat()


def _is_special(path: Path) -> bool:
    """Return whether a path is written through, such as a pipe or an open file, instead of being replaced."""
    is_file = path.is_file() or path.is_dir() or not path.exists()
    return not is_file or _open_file(path) is not None


@contextmanager
def _holding(path: Path) -> Iterator[None]:
    with needing("writing into a folder that other processes may use"):
        from filelock import FileLock, Timeout
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path, is_singleton=True)
        try:
            lock.acquire(timeout=min(_PATIENCE, lock_timeout.get()))
        except Timeout:
            _wait(lock, path)
    try:
        yield
    finally:
        lock.release()


def _wait(lock: "FileLock", path: Path) -> None:
    """Wait for another process's lock, with a warning; the lock ends with that process, even if it is killed."""
    from filelock import Timeout

    limit = lock_timeout.get()
    if limit > _PATIENCE:
        _log.warning("Waiting for another process, which holds %s ...", path)
    try:
        lock.acquire(timeout=-1 if limit == math.inf else max(limit - _PATIENCE, 0))
    except Timeout:
        raise JobFailure(
            f"gave up after {limit:g} seconds of waiting for another process, which holds {path}. Wait for its end, "
            "stop it, or allow more time: --lock-timeout."
        ) from None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn a failure to write or remove a file into a HashbenchError."""
    try:
        yield
    except OSError as error:
        hint = _HINTS.get(error.errno or 0, "choose another folder (for the cache: HASHBENCH_DATA)")
        raise HashbenchError(
            f"cannot write {path}: {error.strerror or one_line(error)}. What was there is unchanged; {hint}."
        ) from error


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files beside a file that dead processes have left."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        pid = part.name.split(".")[-2]
        if pid.isdigit() and not _is_alive(int(pid)):
            with suppress(PermissionError):  # Windows keeps a file that is open
                part.unlink(missing_ok=True)


def _is_alive(pid: int) -> bool:
    if sys.platform == "win32":  # where os.kill(pid, 0) would interrupt it
        return pid == os.getpid()
    try:
        os.kill(pid, 0)
    except OSError as error:  # such as a process of another user
        return not isinstance(error, ProcessLookupError)
    return True

"""Files: the data folder, locks between processes, and writing whole or not at all."""

import errno
import glob
import logging
import math
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from tempfile import TemporaryFile

from hashbench.errors import HashbenchError, JobFailure, needing, one_line

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
_OPEN_FILE = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
_MOST_LINKS = 40
_PATIENCE = 2.0  # seconds of waiting after which a warning says so
_log = logging.getLogger("hashbench")


def data_dir() -> Path:
    """Return the folder for datasets, codes and scores.

    It is `data_folder`, else ``$HASHBENCH_DATA``, else the user's cache folder.
    """
    chosen = data_folder.get() or os.environ.get("HASHBENCH_DATA")
    if not chosen:
        with needing("finding the cache folder, where HASHBENCH_DATA names none,"):
            from platformdirs import user_cache_path
        return user_cache_path("hashbench")
    try:
        return Path(chosen).expanduser()
    except RuntimeError as error:
        raise HashbenchError(
            f"HASHBENCH_DATA is {chosen}, and there is no home folder of {Path(chosen).parts[0]}. Set it to an "
            "absolute path."
        ) from error


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

    A link is followed, and the new file has the permissions of the old one. On an error, ``path`` does not change and
    the temporary file is removed, as are those of killed processes. Raises HashbenchError if it cannot be written.
    """
    with writing(path):
        target = path.resolve() if path.is_symlink() else path
        part = target.with_name(f".{target.name}.{os.getpid()}.part")
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(target)
        try:
            yield part
            with part.open("r+b") as written:  # Windows flushes only what is open for writing
                os.fsync(written.fileno())
            if target.exists():
                shutil.copymode(target, part)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def _remove_leftovers(path: Path) -> None:
    """Remove the temporary files beside a file that dead processes have left."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        if _is_dead(part.name.split(".")[-2]):
            with suppress(PermissionError):  # Windows keeps a file that is open
                part.unlink(missing_ok=True)


def _is_dead(pid: str) -> bool:
    try:
        if sys.platform != "win32":  # where this would interrupt it
            os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError):  # a process of another user, a file of another program
        return False
    return sys.platform == "win32" and pid != str(os.getpid())


def write_text(path: Path, text: str) -> None:
    """Write a text file (UTF-8, LF) as `write_bytes` does."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; one that already holds these bytes stays untouched.

    A pipe, a device or an open file is written through.
    """
    with writing(path):
        if _is_special(path):
            number = descriptor(path)
            with open(path if number is None else os.dup(number), "ab") as stream:  # noqa: PTH123
                stream.write(content)
            return
        if path.is_file() and path.read_bytes() == content:
            return
    with replacing(path) as part:
        part.write_bytes(content)


def check_output(path: Path, *, is_folder: bool = False) -> None:
    """Refuse, before any work is done for it, a file or folder that cannot be written."""
    with writing(path):
        if _is_special(path):
            return
        if path.is_dir() and not is_folder:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        target = Path(os.path.realpath(path))
        folder = target if is_folder else target.parent
        while not folder.exists():
            folder = folder.parent
        with TemporaryFile(dir=folder):
            pass


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
    for _ in range(_MOST_LINKS):
        named = _OPEN_FILE.fullmatch(str(path))
        if named or not path.is_symlink():
            return int(named[1]) if named else None
        path = path.parent / path.readlink()
    return None


def _is_special(path: Path) -> bool:
    """Return whether a path is written through, such as a pipe or an open file; OSError if it cannot be looked up."""
    number = descriptor(path)
    try:
        mode = path.stat().st_mode if number is None else os.fstat(number).st_mode
    except FileNotFoundError:
        return False
    return number is not None or not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _holding(path: Path) -> Iterator[None]:
    """Hold a lock, which ends with its process, even if that is killed; while another process holds it, wait."""
    with needing("writing into a folder that other processes may use"):
        from filelock import FileLock, Timeout
    lock, limit = FileLock(path, is_singleton=True), lock_timeout.get()
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            try:
                lock.acquire(timeout=min(_PATIENCE, limit))
            except Timeout:
                if limit > _PATIENCE:
                    _log.warning("Waiting for another process, which holds %s ...", path)
                lock.acquire(timeout=-1 if limit == math.inf else max(limit - _PATIENCE, 0))
        except Timeout:
            raise JobFailure(
                f"gave up after {limit:g} seconds of waiting for another process, which holds {path}. Wait for its "
                "end, stop it, or allow more time: --lock-timeout."
            ) from None
    try:
        yield
    finally:
        lock.release()


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

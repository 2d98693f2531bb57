"""Files from elsewhere: fetched with a known checksum and continued where they stopped, or asked of the user."""

import hashlib
import re
import shutil
import time
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError, one_line
from hashbench.store.files import data_dir, locked, replacing
from hashbench.store.inputs import check_file, reading

_TIMEOUT = (10, 30)  # seconds to connect, and without a byte
_PAUSES = (1, 2, 4)  # seconds before each resumption of a connection that broke
_CHUNK = 1 << 16
_CHECKSUM = re.compile(r"[0-9a-f]{8,64}|md5:[0-9a-f]{32}")
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+)")


class Needed(NamedTuple):
    """A file that users must fetch themselves; unknown fields are empty.

    Examples
    --------
    >>> Needed("labels.mat", note="the authors send it").name
    'labels.mat'
    """

    name: str  # in the folder
    url: str = ""
    sha256: str = ""  # the 64 hex digits, or the first 8 or more, or ``md5:`` and its 32
    note: str = ""  # such as a form to be filled in


def fetch(url: str, sha256: str, path: Path, *, on_progress: Progress = silent) -> Path:
    """Download a file, unless it exists.

    Parameters
    ----------
    url : str
        HTTP or HTTPS address.
    sha256 : str
        64 hex digits, or the first 8 or more of them; or ``md5:`` and an MD5, if no SHA-256 is known.
    path : Path
        Where to store the file. An interrupted download stays beside it as ``NAME.part``, and the next call
        continues it; other processes that need the same file wait.
    on_progress : callable, optional
        Called with ``bytes of NAME``, bytes done and all bytes if the server reports the size; replaces the progress
        bar or line on stderr.

    Returns
    -------
    Path
        ``path``.

    Raises
    ------
    HashbenchError
        If the file cannot be fetched or written, or has another checksum. An existing file is not changed, and a
        download with a wrong checksum is removed.

    Examples
    --------
    A file that exists is only checked:

    >>> from hashlib import sha256
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "raw.bin")
    ...     _ = path.write_bytes(b"raw")
    ...     fetch("https://example.org/raw.bin", sha256(b"raw").hexdigest(), path).name
    'raw.bin'
    """
    sha256 = _checked(sha256)
    if not path.exists():
        with locked(path):
            if not path.exists():
                shown = _shown(url, path) if on_progress is silent else nullcontext(_of_known_size(on_progress))
                with replacing(path) as whole, shown as progress:
                    _Download(url, sha256, path, progress).finish(whole)
                return path
    _verify(path, sha256, f"move it away and run the same command again to download {url}")
    return path


def fetch_unpacked(url: str, sha256: str, folder: Path, *, on_progress: Progress = silent) -> Path:
    """Download a ZIP archive and unpack it, unless the folder exists; the archive itself is not kept.

    Parameters
    ----------
    url, sha256, on_progress
        As in `fetch`.
    folder : Path
        Where to unpack the archive.

    Returns
    -------
    Path
        ``folder``.

    Raises
    ------
    HashbenchError
        As `fetch` does, or if the file is not a ZIP archive.
    """
    if folder.exists():
        return folder
    part = folder.with_name(f"{folder.name}.part")
    with locked(folder):
        if not folder.exists():
            archive = fetch(url, sha256, data_dir() / "downloads" / Path(url).name, on_progress=on_progress)
            shutil.rmtree(part, ignore_errors=True)
            try:
                with zipfile.ZipFile(archive) as opened:
                    opened.extractall(part)
            except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError) as error:
                why = one_line(error).rstrip(".")
                raise HashbenchError(f"cannot unpack {archive} into {folder}: {why}.") from error
            part.rename(folder)
            archive.unlink()
    return folder


def demand(folder: Path, files: Sequence[Needed], what: str) -> list[Path]:
    """Return the paths of files that may not be downloaded automatically, or raise an error that lists them.

    Parameters
    ----------
    folder : Path
        The folder that holds them; a single file may also be given itself, under any name.
    files : sequence of Needed
        The files.
    what : str
        What needs them, such as ``"dataset 'nus-wide'"``.

    Returns
    -------
    list of Path
        One path per file, in their order.

    Raises
    ------
    HashbenchError
        If files are missing, with the address, checksum and path of each, or if one has another checksum.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "labels.txt").write_text("0")
    ...     [path.name for path in demand(Path(folder), [Needed("labels.txt")], "dataset 'mine'")]
    ['labels.txt']
    """
    with reading(folder):
        is_file = folder.exists() and not folder.is_dir()
        paths = {file: folder if is_file else folder / file.name for file in files}
        missing = [f"\n  {_instruction(file, path)}" for file, path in paths.items() if not path.is_file()]
    if is_file:
        check_file(folder)
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise HashbenchError(
                f"{folder} is a file, but {what} needs {len(files)}: {names}. Pass the folder that holds them."
            )
    if missing:
        raise HashbenchError(
            f"{what} lacks {len(missing)} of {len(files)} files, which hashbench may not download by itself. "
            f"Fetch what is missing and put it in place:{''.join(missing)}"
        )
    for file, path in paths.items():
        if file.sha256:
            _verify(path, _checked(file.sha256), f"fetch {file.url or file.name} again and put it there")
    return [*paths.values()]


class _Download:
    """A download that continues where an earlier one, or a broken connection, stopped."""

    def __init__(self, url: str, sha256: str, path: Path, on_progress: Progress) -> None:
        self.url = url
        self.sha256 = sha256
        self.path = path
        self.part = path.with_name(f"{path.name}.part")
        self.on_progress = on_progress
        self.n_all: int | None = None  # 0 if the server answers without a size

    def finish(self, whole: Path) -> None:
        """Fetch what the part lacks, check it, and name it ``whole``."""
        self._complete()
        digest = _digest(self.part, self.sha256)
        if not digest.startswith(self.sha256):
            n_bytes = self.part.stat().st_size
            self.part.unlink()
            raise HashbenchError(
                f"{self.url} gave {n_bytes:,} bytes with {_spelled(digest)}, expected {_digits(self.sha256)}; they "
                "were removed. Run the same command again; if it fails again, fetch the file elsewhere and place it at "
                f"{self.path}."
            )
        self.part.replace(whole)

    def _complete(self) -> None:
        """Continue the part until it is whole, over connections that break."""
        from requests import RequestException
        from urllib3.exceptions import HTTPError

        broken = None
        for pause in (0, *_PAUSES):
            time.sleep(pause)
            try:
                if self._continue():
                    return
            except (RequestException, HTTPError) as error:
                broken = error
                if self.n_all is None:
                    raise HashbenchError(
                        f"cannot reach {self.url}: {_reason(error)}. Check the network and run the same command again, "
                        f"or fetch the file on another machine and place it at {self.path}."
                    ) from error
        of_all = f" of {self.n_all:,}" if self.n_all else ""
        why = f" ({_reason(broken)})" if broken else ""
        raise HashbenchError(
            f"the download of {self.url} stopped after {self._n_done():,}{of_all} bytes{why}; the same command "
            f"continues from there, or fetch {self.url} yourself and place it at {self.path}."
        ) from broken

    def _continue(self) -> bool:
        """Request what the part lacks and return whether it is complete now."""
        import requests

        n_done = self._n_done()
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={n_done}-"} if n_done else {})
        with requests.get(self.url, headers=headers, stream=True, timeout=_TIMEOUT) as response:
            if response.status_code == requests.codes.ok:
                n_done, n_all = 0, int(response.headers.get("Content-Length", 0))
            elif response.status_code in (requests.codes.partial_content, requests.codes.range_not_satisfiable):
                span = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
                start, n_all = (int(span[1] or span[2]), int(span[2])) if span else (-1, 0)
                if start != n_done or self.n_all not in (None, n_all):  # the part is of another file
                    self.part.unlink(missing_ok=True)
                    return False
            else:
                raise self._refused(response.status_code, response.reason)
            self.n_all = n_all
            self._report(n_done, n_all)
            if response.status_code == requests.codes.range_not_satisfiable:
                return True
            with self.part.open("ab" if n_done else "wb") as file:
                # Undecoded, since some servers call a .gz file an encoded one.
                for chunk in response.raw.stream(_CHUNK, decode_content=False):
                    file.write(chunk)
                    n_done += len(chunk)
                    self._report(n_done, n_all)
        return n_done == n_all or not n_all

    def _report(self, n_done: int, n_all: int) -> None:
        self.on_progress(f"bytes of {self.path.name}", n_done, n_all)

    def _n_done(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _refused(self, status: int, reason: str) -> HashbenchError:
        state, advice = f"answers {status} {reason}", "Run the same command again later, or fetch the file yourself"
        if status in (404, 410):
            state = f"is gone ({status} {reason})"
            advice = f"Look for the file elsewhere, with {_spelled(self.sha256)},"
        return HashbenchError(f"{self.url} {state}. {advice} and place it at {self.path}.")


def _of_known_size(on_progress: Progress) -> Progress:
    """Drop reports on files of unknown size, which would print a line per chunk."""
    return lambda what, n_done, n_all: on_progress(what, n_done, n_all) if n_all else None


@contextmanager
def _shown(url: str, path: Path) -> Iterator[Progress]:
    """Show a bar on a terminal, one plain line elsewhere."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.print(f"downloading {url} to {path}")
        yield silent
        return
    with progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    ) as bar:
        task = bar.add_task(path.name, total=None)
        yield lambda what, n_done, n_all: bar.update(task, completed=n_done, total=n_all or None)


def _instruction(file: Needed, path: Path) -> str:
    source = f"from {file.url}" if file.url else "from an unknown address"
    checksum = f", {_spelled(file.sha256)}" if file.sha256 else ""
    note = f" ({file.note})" if file.note else ""
    return f"{file.name} {source}{checksum}, to {path}{note}"


def _checked(sha256: str) -> str:
    if not _CHECKSUM.fullmatch(sha256.lower()):
        raise HashbenchError(
            f"{sha256!r} is not a checksum; expected the 64 hex digits of a SHA-256, or the first 8 or more of them, "
            "or md5: and the 32 of an MD5."
        )
    return sha256.lower()


def _verify(path: Path, sha256: str, advice: str) -> None:
    digest = _digest(path, sha256)
    if not digest.startswith(sha256):
        raise HashbenchError(
            f"{path} has {_spelled(digest)}, expected {_digits(sha256)}. If it is damaged or another file, {advice}."
        )


def _digest(path: Path, like: str) -> str:
    """Compute a file's checksum, of the same kind as ``like``."""
    check_file(path)
    prefix = "md5:" if like.startswith("md5:") else ""
    with reading(path), path.open("rb") as file:
        return prefix + hashlib.file_digest(file, "md5" if prefix else "sha256").hexdigest()


def _spelled(checksum: str) -> str:
    return f"{'MD5' if checksum.startswith('md5:') else 'SHA-256'} {_digits(checksum)}"


def _digits(checksum: str) -> str:
    digits = checksum.removeprefix("md5:")
    return digits if digits != checksum or len(digits) == 64 else f"{digits}..."


def _reason(error: BaseException) -> str:
    """Return the first cause of a failed connection; the message of requests contains memory addresses."""
    from urllib3.exceptions import IncompleteRead

    while error.__context__ is not None:
        error = error.__context__
    if isinstance(error, IncompleteRead):
        return "the connection was closed"
    return (isinstance(error, OSError) and error.strerror) or one_line(error).rstrip(".")

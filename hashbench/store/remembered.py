"""What importing hashbench's own modules tells, remembered between runs, since importing them takes seconds."""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from hashbench.errors import HashbenchError
from hashbench.store.files import write_text


def remembered(key: str, compute: Callable[[], Any]) -> Any:
    """Return a JSON value that depends on hashbench's source alone; compute it if it is not in the user's cache.

    The cache is one file for each place where hashbench is installed. Any change of a source file empties it.
    """
    known = _known()
    if key not in known:
        known[key] = json.loads(json.dumps(compute()))
        path = _path()
        with suppress(HashbenchError):  # such as in a folder that cannot be written: it is computed again next time
            if path is not None:
                write_text(path, json.dumps({"source": _source(), "known": known}))
    return known[key]


@cache
def _known() -> dict[str, Any]:
    path = _path()
    with suppress(OSError, ValueError, TypeError, KeyError):  # missing or damaged
        content = json.loads(path.read_bytes()) if path is not None else {}
        if content["source"] == _source():
            return dict(content["known"])
    return {}


@cache
def _source() -> str:
    """Return a digest of the names, sizes and times of hashbench's source files."""
    home = Path(__file__).parents[1]
    states = [(str(path.relative_to(home)), path.stat()) for path in sorted(home.rglob("*.py"))]
    return _digest([[name, state.st_size, state.st_mtime_ns] for name, state in states])


def _path() -> Path | None:
    """Return the file in the user's cache folder; None without platformdirs or a home folder."""
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError:
        return None
    path = user_cache_path("hashbench") / "cards" / f"{_digest(str(Path(__file__).parents[1]))}.json"
    return path if path.is_absolute() else None


def _digest(value: Any) -> str:
    return sha256(json.dumps(value).encode()).hexdigest()[:16]

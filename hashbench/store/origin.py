"""Where codes come from: the commit, machine and day that made them, none of which affects what is cached."""

import json
import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

from hashbench.store.provenance import Provenance

ORIGIN = ("commit", "hashbench", "processor", "threads", "device", "date")  # what makes codes besides `Provenance`
_LEVELS = {  # by the names of NumPy before 2.4 and since, highest first
    "AVX512F": "avx512",
    "X86_V4": "avx512",
    "AVX2": "avx2",
    "X86_V3": "avx2",
    "AVX": "avx",
    "SSE42": "sse4.2",
    "X86_V2": "sse4.2",
    "SVE": "sve",
    "ASIMD": "neon",
}


def origin_here(device: str = "cpu") -> dict[str, Any]:
    """Return what makes codes now, on this machine, by ``ORIGIN``; no host and no person."""
    today = datetime.now(UTC).date().isoformat()
    parts = (
        commit_of(Path(__file__).resolve().parents[2]),
        version("hashbench"),
        processor_class(),
        _n_threads(),
        device,
        today,
    )
    return dict(zip(ORIGIN, parts, strict=True))


class Origin(NamedTuple):
    """What made the codes of a job, as ``<method>.json`` records it; what jobs share is written once."""

    commit: str  # of hashbench's source tree, with + if a file of the package differs; empty if installed
    hashbench: str  # its version
    libraries: str  # that affect the codes, name=version; a plug-in as name=sha256:digest
    processor: str  # architecture, vendor and instruction level
    threads: int  # of numerical libraries
    device: str  # cpu or cuda
    date: str  # the day, in UTC
    seconds: float  # to fit and encode
    trials: int = 0  # settings that were tried to choose these; 0 if none, or if not known

    @classmethod
    def of(cls, made: Provenance, here: Mapping[str, Any], seconds: float) -> Self:
        """Return the origin of codes of that provenance, made where `origin_here` returned ``here``."""
        libraries = " ".join(f"{name}={version}" for name, version in sorted(json.loads(made.libraries).items()))
        return cls(libraries=libraries, seconds=round(seconds, 2), **here)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Self:
        """Read it from values by name; ValueError if one is of another type."""
        origin = cls(*(values[name] for name in cls._fields))
        for name, value, kind in zip(cls._fields, origin, cls.__annotations__.values(), strict=True):
            if type(value) is not kind:
                raise ValueError(f"{name} is {value!r}, expected {kind.__name__}")
        return origin

    @property
    def plugin(self) -> str:
        """The digests of the plug-in that made the codes; empty if hashbench did."""
        return " ".join(pair for pair in self.libraries.split() if "=sha256:" in pair)

    def differences(self, other: Self) -> list[str]:
        """List the differences from ``other``, made on this machine, that may explain different digits."""
        pairs = zip(self._fields[:-3], self, other, strict=False)  # without date, seconds and trials
        return [f"{name} {then or 'none'} (here {now or 'none'})" for name, then, now in pairs if then != now]


@cache
def processor_class() -> str:
    """Return the class of this processor, on which the last bits of sums may depend.

    It has architecture, vendor and the highest instruction level that NumPy detects, such as ``x86_64 AuthenticAMD
    avx512``; a part may be ``unknown``.
    """
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    simd: Mapping[str, Sequence[str]] = config.get("SIMD Extensions", {})
    features = {*simd.get("baseline", ()), *simd.get("found", ())}
    level = next((word for name, word in _LEVELS.items() if name in features), "unknown")
    return f"{platform.machine() or 'unknown'} {_vendor()} {level}"


def _vendor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # such as on other systems
        return (platform.processor().split() or ["unknown"])[-1]
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return facts.get("vendor_id") or facts.get("CPU implementer") or "unknown"


def _n_threads() -> int:
    from threadpoolctl import threadpool_info

    return max((int(pool["num_threads"]) for pool in threadpool_info()), default=1)


@cache
def commit_of(tree: Path) -> str:
    """Return the commit of a source tree, with + if a file of the package differs; empty if it is not in git."""
    oid = _git(tree, "rev-parse", "HEAD") if _git(tree, "ls-files", "hashbench/__init__.py") else ""
    if not oid:  # installed, perhaps in a folder of another repository
        return ""
    return oid[:10] + "+" * bool(_git(tree, "status", "--porcelain", "--", "hashbench"))


def _git(tree: Path, *arguments: str) -> str:
    """Return what git prints in a folder; empty if it fails or is missing."""
    environment: Mapping[str, str] = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(tree), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

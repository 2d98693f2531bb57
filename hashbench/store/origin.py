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

from hashbench.store.provenance import Provenance, settings_name

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
    parts = _commit(), version("hashbench"), processor_class(), _n_threads(), device, today
    return dict(zip(ORIGIN, parts, strict=True))


class JobRecord(NamedTuple):
    """What made the rows of a job, a line of ``<method>.jobs.csv``; the first six fields are its key."""

    dataset: str
    features: str
    settings: str  # name of the parameters
    n_bits: int
    seed: int
    dataset_fingerprint: str
    method_version: int
    commit: str  # of hashbench's source tree, with + if a file of the package differs; empty if installed
    hashbench: str  # its version
    libraries: str  # that affect the codes, name=version; a plug-in as name=sha256:digest
    processor: str  # architecture, vendor and instruction level
    threads: int  # of numerical libraries
    device: str  # cpu or cuda
    date: str  # the day, in UTC
    seconds: str  # to fit and encode
    trials: int = 0  # settings that were tried to choose these; 0 if none, or if not known

    @classmethod
    def of(cls, made: Provenance, origin: Mapping[str, Any], seconds: float) -> Self:
        """Return the record for rows of codes of that provenance and of what `origin_here` returned."""
        key = made.dataset, made.features, settings_name(made.params), made.n_bits, made.seed
        content = made.dataset_fingerprint, made.method_version
        libraries = " ".join(f"{name}={version}" for name, version in sorted(json.loads(made.libraries).items()))
        return cls(*key, *content, libraries=libraries, seconds=f"{seconds:.2f}", **origin)

    @classmethod
    def read(cls, cells: Sequence[str]) -> Self:
        """Read the cells of a line; ValueError if one is not as `of` writes it."""
        if len(cells) != len(cls._fields):
            raise ValueError(f"it has {len(cells)} cells, expected {len(cls._fields)}")
        record = cls(*(kind(cell) for kind, cell in zip(cls.__annotations__.values(), cells, strict=True)))
        float(record.seconds)
        return record

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the job among those of its method."""
        return self[:6]

    @property
    def plugin(self) -> str:
        """The digests of the plug-in that made the codes; empty if hashbench did."""
        return " ".join(pair for pair in self.libraries.split() if "=sha256:" in pair)

    def differences(self, other: Self) -> list[str]:
        """List the differences from ``other``, made on this machine, that may explain different digits."""
        differences = []
        if self.processor != other.processor:
            differences.append(f"made on another processor class ({self.processor}, here {other.processor})")
        then, now = (dict(pair.split("=", 1) for pair in record.libraries.split()) for record in (self, other))
        pairs = {name: (then.get(name, "none"), now.get(name, "none")) for name in sorted(then | now)}
        pairs["device"] = self.device, other.device
        pairs["threads"] = str(self.threads), str(other.threads)
        pairs["hashbench"] = self._version(), other._version()
        return differences + [f"{name} {old} (here {new})" for name, (old, new) in pairs.items() if old != new]

    def _version(self) -> str:
        return f"{self.hashbench} at {self.commit}" if self.commit else self.hashbench


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
def _commit() -> str:
    tree = Path(__file__).resolve().parents[2]
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

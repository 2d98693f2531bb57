"""Dask clusters, whose workers do what makes the numbers of this machine or are left out, and told."""

import ipaddress
import json
import logging
import os
import socket
import time
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._typing import Progress
from hashbench.errors import HashbenchError, one_line

if TYPE_CHECKING:
    from distributed import Client, Future, as_completed

_ANSWER_SECONDS, _PAUSE = 10, 0.02


class Cluster(NamedTuple):
    """A scheduler, by its address or the file that it wrote, and whether it is trusted wherever it is."""

    scheduler: str
    is_trusted: bool = False


class Unfit(NamedTuple):
    """A worker that would not make the numbers of this machine."""

    worker: str
    why: str


@contextmanager
def connected(cluster: Cluster) -> "Iterator[Client]":
    """Connect with a scheduler; a lost one is an error in a sentence.

    What a scheduler or a worker sends is unpickled, so whoever answers can run code here. An address that is not of
    this machine is therefore refused before a connection is opened, unless TLS or the user vouches for it.
    """
    address = cluster.scheduler
    try:
        from distributed import Client
        from distributed.client import FutureCancelledError
        from distributed.comm import get_address_host_port
        from distributed.security import Security
        from distributed.versions import VersionMismatchWarning
    except ImportError as error:
        raise HashbenchError(
            "--workers needs Dask, which is not installed: pip install 'hashbench[cluster]'."
        ) from error
    try:
        where = json.loads(Path(address).read_text(encoding="utf-8"))["address"] if Path(address).is_file() else address
        host, _ = get_address_host_port(where, strict=True)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HashbenchError(
            f"--workers is {address!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786, or the file "
            "that it wrote."
        ) from error
    is_encrypted = where.startswith(("tls:", "wss:"))
    if is_encrypted and not Security().get_connection_args("client").get("ssl_context"):
        raise HashbenchError(
            f"{where} asks for certificates, and Dask knows none; say where they are, as distributed.comm.tls in its "
            "configuration."
        )
    if not (cluster.is_trusted or is_encrypted or is_of_this_machine(host, own_addresses())):
        raise HashbenchError(
            f"{where} is another machine, and without TLS anyone there or on the way can run code here. Use tls:// "
            "(docs/scale.md), or --trust-workers (trust_workers=True) on a network that you trust."
        )
    with _silent("distributed"):  # it would tell in many lines what follows in one
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # of versions that matter each task tells
                client = Client(where, timeout=_ANSWER_SECONDS, set_as_default=False)
        except Exception as error:  # of whatever kind: nothing else is tried here
            raise HashbenchError(
                f"no scheduler of Dask answers at {address}: {one_line(error).rstrip('.')}. Start one with `dask "
                "scheduler`, and its workers with `dask worker tcp://HOST:8786 --nthreads 1`."
            ) from error
        try:
            yield client
        except (FutureCancelledError, OSError, TimeoutError) as error:
            if client.status == "running" and not isinstance(error, FutureCancelledError):
                raise  # a worker's own
            raise HashbenchError(
                f"the scheduler at {address} is lost. What is finished is kept; start it again, and the same command "
                "goes on from there."
            ) from error
        finally:
            with suppress(Exception):  # it may be gone
                client.close(timeout=5)


def is_of_this_machine(host: str, own: Collection[str]) -> bool:
    """Decide whether a host, as it stands in an address, is this machine, of which these addresses are.

    No name is looked up: other names than ``localhost`` are of other machines.
    """
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return address.is_loopback or str(address) in own


def own_addresses() -> set[str]:
    """Find the addresses of this machine's network interfaces."""
    import psutil

    families = socket.AF_INET, socket.AF_INET6
    return {one.address for many in psutil.net_if_addrs().values() for one in many if one.family in families}


def as_ready(running: "as_completed", client: "Client", address: str, on_progress: Progress) -> "Iterator[Future]":
    """Give what is done as it is done; tell if there is no worker, or none any more."""
    looked, had_some = 0.0, True
    while not running.is_empty():
        found = running.next_batch(block=False)
        yield from found
        if found or time.monotonic() - looked < 1:
            time.sleep(0 if found else _PAUSE)
            continue
        looked, has_some = time.monotonic(), bool(client.scheduler_info()["workers"])
        if had_some and not has_some:
            told = f"`dask worker {address} --nthreads 1` starts one; what one ended of is in its own log"
            on_progress(f"waiting for workers, there is none; {told}", 0, 0)
        had_some = has_some


class Others:
    """Who is left for work that some workers may not do; tells once of each of these."""

    def __init__(self, client: "Client", on_progress: Progress) -> None:
        self.client, self.on_progress = client, on_progress
        self.unfit: dict[Any, set[str]] = {}  # workers, by piece of work
        self.told: set[str] = set()

    def than(self, found: Unfit, work: Any) -> list[str]:
        """Give the workers that did not refuse this piece of work."""
        self.unfit.setdefault(work, set()).add(found.worker)
        notice = f"leaving out worker {found.worker}: it {found.why.rstrip('.')}"
        if notice not in self.told:
            self.told.add(notice)
            self.on_progress(notice, 0, 0)
        return [one for one in self.client.scheduler_info()["workers"] if one not in self.unfit[work]]


def placed(workers: list[str] | None) -> dict[str, Any]:
    """Give the keywords of `Client.submit` for work that should go to some workers, which may be gone by then."""
    return {"workers": workers, "allow_other_workers": True} if workers else {}


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Let a library's loggers say nothing, of which several have levels of their own."""
    logs = [logging.getLogger(one) for one in [name, *logging.root.manager.loggerDict] if one.startswith(name)]
    levels = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for log, level in zip(logs, levels, strict=True):
            log.setLevel(level)


def of_versions(here: Mapping[str, str], there: Mapping[str, str]) -> str:
    """Say in what versions a worker differs from the client."""
    found = [
        f"{name} {here.get(name)} and not {version}" for name, version in there.items() if here.get(name) != version
    ]
    return f"has {', '.join(found) or 'other code of hashbench'}. Install there what is installed here."


def prepared_worker() -> str | Unfit:
    """Give the address of this worker, once it keeps to as many threads as BLAS has in it, unless it is unfit."""
    from distributed import get_worker

    worker = get_worker()
    if worker.state.nthreads > 1:
        why = f"does {worker.state.nthreads} tasks at a time in one process, expected one. Start it with --nthreads 1."
        return Unfit(worker.address, why)
    if threads := os.environ.get("OMP_NUM_THREADS"):
        os.environ.setdefault("LOKY_MAX_CPU_COUNT", threads)
    return str(worker.address)

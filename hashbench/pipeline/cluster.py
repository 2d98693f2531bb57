"""Dask clusters: connecting to one, and leaving out workers that would give different numbers."""

import ipaddress
import itertools
import json
import logging
import os
import socket
import time
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._typing import Progress
from hashbench.errors import HashbenchError, one_line

if TYPE_CHECKING:
    from distributed import Client, Future

_ANSWER_SECONDS, _PAUSE = 10, 0.02


class Cluster(NamedTuple):
    """A scheduler, by its address or the file that it wrote, and whether the user trusts it on another machine."""

    scheduler: str
    is_trusted: bool = False


class UnfitWorker(HashbenchError):
    """Raised on a worker that would not give the numbers of this machine."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(worker, why)
        self.worker, self.why = worker, why

    def __str__(self) -> str:
        return f"worker {self.worker} {self.why}"


@contextmanager
def connected(cluster: Cluster) -> "Iterator[Client]":
    """Connect with a scheduler.

    What a scheduler or a worker sends is unpickled, so whoever answers can run code here. Without TLS or the user's
    trust, the address of another machine is therefore refused before a connection is opened.
    """
    scheduler = cluster.scheduler
    try:
        from distributed import Client
        from distributed.client import FutureCancelledError
        from distributed.comm import get_address_host_port
        from distributed.security import Security
        from distributed.versions import VersionMismatchWarning
    except ImportError as error:
        raise HashbenchError("workers need Dask, which is not installed: pip install distributed.") from error
    try:
        is_file = Path(scheduler).is_file()
        address = json.loads(Path(scheduler).read_text(encoding="utf-8"))["address"] if is_file else scheduler
        host, _ = get_address_host_port(address, strict=True)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HashbenchError(
            f"the cluster is {scheduler!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786, or the "
            "file that it wrote."
        ) from error
    is_encrypted = address.startswith(("tls:", "wss:"))
    if is_encrypted and not Security().get_connection_args("client").get("ssl_context"):
        raise HashbenchError(
            f"{address} needs certificates, and Dask's configuration has none. Set distributed.comm.tls there."
        )
    if not (cluster.is_trusted or is_encrypted or is_of_this_machine(host, own_addresses())):
        raise HashbenchError(
            f"{address} is another machine, and without TLS anyone there or on the way can run code here. Use tls:// "
            "(docs/scale.md), or --trust-workers (trust_workers=True) on a network that you trust."
        )
    with _silent("distributed"):  # it would log many lines beside the one error below
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", VersionMismatchWarning)  # each task checks the versions that matter
                client = Client(address, timeout=_ANSWER_SECONDS, set_as_default=False)
        except Exception as error:  # of any kind, all from connecting
            raise HashbenchError(
                f"no Dask scheduler answers at {scheduler}: {one_line(error).rstrip('.')}. Start one with `dask "
                "scheduler`, and its workers with `dask worker tcp://HOST:8786 --nthreads 1`."
            ) from error
        try:
            yield client
        except (FutureCancelledError, OSError, TimeoutError) as error:
            if client.status == "running" and not isinstance(error, FutureCancelledError):
                raise  # a worker's own
            raise HashbenchError(
                f"the connection to the scheduler at {scheduler} is lost. Finished jobs are kept; restart the "
                "scheduler and rerun the command to continue."
            ) from error
        finally:
            with suppress(Exception):  # it may be gone
                client.close(timeout=5)


def is_of_this_machine(host: str, own: Collection[str]) -> bool:
    """Return whether the host of an address is this machine, whose addresses are ``own``.

    No name is looked up: any name but ``localhost`` counts as another machine.
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
    """Return the addresses of this machine's network interfaces."""
    import psutil

    addresses = itertools.chain.from_iterable(psutil.net_if_addrs().values())
    return {address.address for address in addresses if address.family in (socket.AF_INET, socket.AF_INET6)}


class Tasks:
    """Tasks on the workers of a cluster, one for each piece of work; what an unfit worker refuses goes to the others.

    ``send`` submits a piece of work with options, which place it.
    """

    def __init__(
        self, client: "Client", address: str, on_progress: Progress, send: "Callable[[Any, dict[str, Any]], Future]"
    ) -> None:
        from distributed import as_completed

        self._client, self._address, self._on_progress, self._send = client, address, on_progress, send
        self._running = as_completed([], loop=client.loop)
        self._refused: dict[Any, set[str]] = {}  # workers, by piece of work
        self._notices: set[str] = set()  # each is reported once
        self.under_way: dict[Future, Any] = {}

    def start(self, work: Any, workers: list[str] | None = None) -> None:
        """Send a piece of work."""
        placed = {"pure": False, "workers": workers, "allow_other_workers": workers is not None}  # they may be gone
        future = self._send(work, placed)
        self.under_way[future] = work
        self._running.add(future)

    def __iter__(self) -> "Iterator[tuple[Any, Future]]":
        """Yield pieces of work with their futures as they finish; those refused by all workers are errors."""
        for future in self._ready():
            work, error = self.under_way.pop(future), future.exception()
            if isinstance(error, UnfitWorker) and (others := self._others(error, work)):
                self.start(work, others)
            else:
                yield work, future

    def _ready(self) -> "Iterator[Future]":
        """Yield futures as they finish; report when the cluster has no workers."""
        last_check, had_workers = 0.0, True
        while not self._running.is_empty():
            ready = self._running.next_batch(block=False)
            yield from ready
            if ready or time.monotonic() - last_check < 1:
                time.sleep(0 if ready else _PAUSE)
                continue
            last_check, has_workers = time.monotonic(), bool(self._client.scheduler_info()["workers"])
            if had_workers and not has_workers:
                start = f"start one with `dask worker {self._address} --nthreads 1`"
                advice = f"{start}; the log of a lost one shows why it ended"
                self._on_progress(f"waiting for workers, there are none; {advice}", 0, 0)
            had_workers = has_workers

    def _others(self, unfit: UnfitWorker, work: Any) -> list[str]:
        """Return the workers that have not refused this piece of work, after an unfit one did."""
        self._refused.setdefault(work, set()).add(unfit.worker)
        notice = f"leaving out worker {unfit.worker}: it {unfit.why.rstrip('.')}"
        if notice not in self._notices:
            self._notices.add(notice)
            self._on_progress(notice, 0, 0)
        return [worker for worker in self._client.scheduler_info()["workers"] if worker not in self._refused[work]]


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Silence a library's loggers, several of which have their own levels."""
    names = [name, *(logger for logger in logging.root.manager.loggerDict if logger.startswith(name))]
    levels = {logger: logger.level for logger in map(logging.getLogger, names)}
    for logger in levels:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in levels.items():
            logger.setLevel(level)


def version_difference(worker: Mapping[str, str], client: Mapping[str, str]) -> str:
    """Return in words how the versions of a worker differ from the client's."""
    differences = [
        f"{name} {worker.get(name)} instead of {version}"
        for name, version in client.items()
        if worker.get(name) != version
    ]
    return f"has {', '.join(differences) or 'different hashbench code'}. Install there what is installed here."


def prepared_worker() -> str:
    """Return the address of this worker, limited to as many threads as BLAS has in it; refuse an unfit one."""
    from distributed import get_worker

    worker = get_worker()
    if worker.state.nthreads > 1:
        why = f"runs {worker.state.nthreads} tasks at a time in one process, expected one. Start it with --nthreads 1."
        raise UnfitWorker(worker.address, why)
    if threads := os.environ.get("OMP_NUM_THREADS"):
        os.environ.setdefault("LOKY_MAX_CPU_COUNT", threads)
    return str(worker.address)

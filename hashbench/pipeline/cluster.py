"""Dask clusters: connecting to one, leaving out unfit workers, running jobs there, and counting a database of codes.

The scheduler places jobs and repeats those of a lost worker. Jobs, scores, paths of files, codes of queries and counts
are sent; workers open datasets and codes themselves.
"""

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
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import islice
from operator import add
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import ByteArray, Progress, Rows, SliceableCodes, silent
from hashbench.affinity import Affinity
from hashbench.bits import to_words
from hashbench.errors import HashbenchError, how_to_install, one_line
from hashbench.pipeline.grid import Job
from hashbench.pipeline.one_job import Outcome, finish, load_once
from hashbench.pipeline.steps import Demands
from hashbench.scoring.counting import count, database_blocks
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.item_sample import PackedSample, Sample
from hashbench.scoring.metrics import Metric
from hashbench.store.files import data_dir, data_folder, lock_timeout
from hashbench.store.provenance import SCORES_VERSION, Provenance, versions

if TYPE_CHECKING:
    from distributed import Client, Future

_ANSWER_SECONDS, _PAUSE = 10, 0.02
TASK_ROWS = 1 << 22  # most rows of a database for one worker at a time
_BLOCK_ROWS = 1 << 18  # of these, codes and labels, that a worker holds at a time
_AHEAD = 4  # parts of a database per worker that are submitted before others are done
_SCORING = ("numpy", "numba")  # libraries that counts depend on
_ALL = slice(None)


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
        raise HashbenchError(f"workers need Dask, which is not installed: {how_to_install('distributed')}.") from error
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


# ---------------------------------------------------------------- jobs


def on_workers(
    jobs: Mapping[int, tuple[Job, Provenance]], cluster: Cluster, demands: Demands, on_progress: Progress = silent
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs, each with the provenance of its codes, on workers that would give the same codes.

    A job that a worker refuses goes to the others; a job whose worker is lost is repeated until Dask gives up.
    """
    with connected(cluster) as client:
        from distributed import KilledWorker

        killed: set[int] = set()

        def send(number: int, placed: dict[str, Any]) -> "Future":
            job, provenance = jobs[number]
            if (path := Path(job.dataset)).is_file():  # a worker may have another working directory
                job = replace(job, dataset=str(path.absolute()))
            return client.submit(
                _run_job,
                job,
                (provenance, SCORES_VERSION),
                demands,
                (str(data_dir().absolute()), lock_timeout.get()),
                priority=-number - len(jobs) * (number in killed),  # jobs that killed workers go last
                **placed,
            )

        tasks = Tasks(client, cluster.scheduler, on_progress, send)
        try:
            for number in jobs:
                tasks.start(number)
            for number, future in tasks:
                error = future.exception()
                if isinstance(error, KilledWorker) and number not in killed:  # another job may have killed its worker
                    killed.add(number)
                    tasks.start(number)
                else:
                    yield number, future.result() if error is None else _failed(jobs[number][0], error)
        finally:
            client.cancel(list(tasks.under_way))


def _failed(job: Job, error: BaseException) -> Outcome:
    """Return the outcome of a job that has no other because of an error on its workers."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        why = "ended without an error: its workers were killed, likely for lack of memory. Give them more."
    elif isinstance(error, UnfitWorker):
        why = f"has no suitable worker: {error.worker} {error.why}"
    else:
        reason = f"{type(error).__name__}: {one_line(error).rstrip('.')}"
        why = f"failed on a worker with {reason}. Check that worker, and that it has what is installed here."
    return Outcome(job, None, f"{job} {why}", has_failed=True)


def _run_job(job: Job, expected: tuple[Provenance, int], demands: Demands, settings: tuple[str, float]) -> Outcome:
    """Run a job on a worker, in the worker's data folder or else the client's, if it would give the client's codes."""
    (client_provenance, _), (folder, seconds) = expected, settings
    data_folder.set(folder if "HASHBENCH_DATA" not in os.environ and Path(folder).is_dir() else None)
    lock_timeout.set(seconds)
    worker = prepared_worker()
    try:
        dataset = load_once(job.dataset, client_provenance.dataset_fingerprint)
        provenance = job.provenance(dataset)
    except HashbenchError as error:
        raise UnfitWorker(worker, f"cannot take it: {error}") from error
    if (provenance, SCORES_VERSION) != expected:
        load_once.cache_clear()  # the dataset may be corrected before the next job
        raise UnfitWorker(worker, _difference(provenance, client_provenance))
    return finish(job, dataset, demands)


def _difference(worker: Provenance, client: Provenance) -> str:
    """Return in words how the provenance of codes on a worker differs from the client's."""
    if worker.dataset_fingerprint != client.dataset_fingerprint:
        return (
            f"has another {worker.dataset}, {worker.dataset_fingerprint} and not {client.dataset_fingerprint}. Share "
            "the data folder, or prepare it there from the same files."
        )
    return version_difference(json.loads(worker.libraries), json.loads(client.libraries))


# ---------------------------------------------------------------- counting


@dataclass(frozen=True, eq=False)
class CountedRows:
    """What is known of some rows of the database; that of several adds up."""

    histogram: TieHistogram
    sample: Sample

    def __add__(self, other: "CountedRows") -> "CountedRows":
        return CountedRows(self.histogram + other.histogram, self.sample + other.sample)


class _Parts(Protocol):
    def part(self, query: Rows, database: slice, /) -> Affinity: ...


def count_rows(query: ByteArray, database: SliceableCodes, n_bits: int, relevance: _Parts, rows: slice) -> CountedRows:
    """Count packed codes against some rows of the database, and draw a sample of these; all is read once."""

    def counted(block: slice) -> CountedRows:
        affinity, packed = relevance.part(_ALL, block), np.asarray(database[block])
        histogram = count(query, database_blocks(packed, n_bits, affinity), n_bits, affinity, slice(0, len(query)))
        return CountedRows(histogram, Sample.draw(to_words(packed), affinity.item_keys(), block.start))

    return reduce(add, map(counted, chunks(rows.start, rows.stop, _BLOCK_ROWS)))


@dataclass(frozen=True, eq=False)
class RankingOnWorkers(HammingRanking):
    """Codes of a database that workers read, each some rows of it; of an affinity in memory they get only its rows."""

    cluster: Cluster = field(kw_only=True)
    on_progress: Progress = field(default=silent, kw_only=True)

    @property
    def is_whole(self) -> bool:
        """Whether the database lies in this process."""
        return False

    def check(self, metric: Metric) -> None:
        """Refuse a metric that re-ranks, too, which needs codes and vectors in one process."""
        if metric.family.needs_candidates:
            raise HashbenchError(
                f"{metric.name} re-ranks by vectors in this process, and workers count Hamming distances; leave one of "
                "the two out."
            )
        super().check(metric)

    @cached_property
    def sample(self) -> PackedSample:
        """Items that stand for the database, drawn where it is counted."""
        return PackedSample.of_sample(self._first.sample, self.query, self.n_bits, self.relevance)

    @cached_property
    def _first(self) -> CountedRows:
        """The first queries, whose histograms fit memory, counted against the whole database."""
        return self._count(slice(0, self.at_a_time))

    def histogram(self, queries: slice, on_counted: Callable[[int], None] = lambda n_counted: None) -> TieHistogram:
        """Count some queries; see `HammingRanking.histogram`."""
        counted = self._first if queries.start == 0 else self._count(queries)
        on_counted(counted.histogram.n_queries)
        return counted.histogram

    def _count(self, queries: slice) -> CountedRows:
        ranking = self.part(queries)
        with connected(self.cluster) as client:
            from distributed import KilledWorker

            n_workers = max(1, len(client.scheduler_info()["workers"]))
            parts = chunks(0, self.n_items, min(TASK_ROWS, max(1, -(-self.n_items // (4 * n_workers)))))
            expected = SCORES_VERSION, versions(_SCORING)

            def send(number: int, placed: dict[str, Any]) -> "Future":
                part, relevance = parts[number], ranking.relevance
                sent: _Parts = relevance
                if not relevance.is_read_in_slices:
                    sent = _AffinityRows(relevance.part(_ALL, part), part.start)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # of its size: each part is sent once
                    return client.submit(
                        _count, expected, ranking.query, self.database, self.n_bits, sent, part, **placed
                    )

            tasks, waiting = Tasks(client, self.cluster.scheduler, self.on_progress, send), iter(range(len(parts)))
            for number in islice(waiting, _AHEAD * n_workers):
                tasks.start(number)

            def counted() -> Iterator[CountedRows]:
                for n_done, (_, future) in enumerate(tasks, start=1):
                    try:
                        rows: CountedRows = future.result()
                    except KilledWorker as error:
                        raise HashbenchError(
                            "workers were killed while counting, probably out of memory. Give them more, or fewer "
                            "queries."
                        ) from error
                    yield rows
                    self.on_progress("parts of the database counted", n_done, len(parts))
                    for number in islice(waiting, 1):
                        tasks.start(number)

            return reduce(add, counted())


def _count(expected: tuple[int, dict[str, str]], *args: Any) -> CountedRows:
    """Count rows in a worker, if it counts as the client would."""
    worker = prepared_worker()
    actual = SCORES_VERSION, versions(_SCORING)
    if actual != expected:
        raise UnfitWorker(worker, version_difference(actual[1], expected[1]))
    try:
        return count_rows(*args)
    except Exception as error:
        reason = str(error) if isinstance(error, HashbenchError) else f"{type(error).__name__}: {one_line(error)}"
        raise HashbenchError(f"worker {worker}: {reason}") from error


@dataclass(frozen=True)
class _AffinityRows:
    """An affinity of consecutive rows, addressed by their numbers in the whole database."""

    affinity: Affinity
    first: int

    def part(self, query: Rows, database: slice) -> Affinity:
        return self.affinity.part(query, slice(database.start - self.first, database.stop - self.first))

"""Dask clusters on loopback, each a process with its own workers, and what kills or refuses them."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

from distributed.comm import listen
from distributed.protocol import Serialize
from distributed.security import Security

from helpers.waiting import PATIENCE

_CONFIG = {  # a worker that is slow to start is not given up
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": f"{PATIENCE}s",
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": f"{PATIENCE}s",
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
}
_SCRIPT = """
import sys, time
from distributed import LocalCluster
if __name__ == "__main__":
    n_workers, n_threads, protocol = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    options = {"processes": True, "dashboard_address": None, "host": "127.0.0.1", "protocol": protocol}
    with LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **options) as cluster:
        print(cluster.scheduler_address, flush=True)
        sys.stdin.read()
"""


@contextmanager
def cluster(folder, n_workers=2, n_threads=1, protocol="tcp", **environment):
    """Start a cluster; yield the address of its scheduler and its process group."""
    script = folder / "start_cluster.py"
    script.write_text(_SCRIPT)
    path = os.pathsep.join([str(Path(__file__).parents[1]), str(folder)])
    process = subprocess.Popen(
        [sys.executable, script, str(n_workers), str(n_threads), f"{protocol}://"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
        env={**os.environ, **_CONFIG, **environment, "PYTHONPATH": path},
    )
    try:
        yield process.stdout.readline().strip(), process.pid
    finally:
        end(process.pid)
        process.communicate()


@contextmanager
def worker(address, path):
    """Start one more worker, with the modules of a folder before all others."""
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    process = subprocess.Popen(command, cwd=path, env={**os.environ, "PYTHONPATH": str(path)}, **quiet)
    try:
        yield
    finally:
        end(process.pid)
        process.wait()


def certificate(folder):
    """Write a self-signed certificate for all roles; return it as a Dask configuration."""
    security = Security.temporary()
    files = {"cert": security.tls_client_cert, "key": security.tls_client_key}
    for name, text in files.items():
        (folder / f"{name}.pem").write_text(text)
    files = {name: str(folder / f"{name}.pem") for name in files}
    roles = {f"{role}.{name}": file for role in ("scheduler", "worker", "client") for name, file in files.items()}
    return {f"distributed.comm.tls.{key}": file for key, file in {"ca-file": files["cert"], **roles}.items()}


def as_environment(config):
    """Return a Dask configuration as environment variables."""
    return {f"DASK_{name.upper().replace('.', '__').replace('-', '_')}": value for name, value in config.items()}


@contextmanager
def hostile_scheduler(folder, protocol="tcp"):
    """Answer every client with a pickle that creates a folder; yield the address."""
    started, loop = threading.Event(), asyncio.new_event_loop()
    addresses = []

    async def answer(comm):
        await comm.read()
        await comm.write([{"op": "stream-start", "x": Serialize(Hostile(str(folder)))}])

    async def serve():
        security = Security()
        async with listen(f"{protocol}://127.0.0.1:0", answer, **security.get_listen_args("scheduler")) as listener:
            addresses.append(listener.contact_address)
            started.set()
            await stopping.wait()

    stopping = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=[serve()])
    thread.start()
    started.wait()
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()


class Hostile:
    """An object that creates a folder wherever it is unpickled."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (self.folder,)


def pretend_other_numpy(folder):
    """Report NumPy 1.0 to processes that have the folder on their path."""
    (folder / "sitecustomize.py").write_text(
        "import importlib.metadata as metadata\n"
        "version = metadata.version\n"
        "metadata.version = lambda name: '1.0' if name == 'numpy' else version(name)\n"
    )


def hide_hashbench(folder):
    """Hide hashbench from processes that have the folder on their path."""
    (folder / "sitecustomize.py").write_text(
        "import sys\n"
        "class Lacking:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'hashbench':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}')\n"
        "sys.meta_path.insert(0, Lacking())\n"
    )


def end(group):
    """Kill a cluster, all its processes at once."""
    with suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


class Fragile:
    """Codes that kill the process that reads them, the first time."""

    def __init__(self, codes, marker):
        self.codes, self.marker, self.shape = codes, marker, codes.shape

    def __getitem__(self, rows):
        if rows.start > 20 and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.codes[rows]

"""Where files lie, locks between processes, and what becomes of the file that was there."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from helpers.diff_rows import git, needs_git
from helpers.error_sentences import complaint

from hashbench.errors import HashbenchError
from hashbench.store import files


def test_data_lie_in_the_folder_of_the_environment_else_in_the_cache(monkeypatch, data):
    assert files.data_dir() == data
    monkeypatch.delenv("HASHBENCH_DATA")
    assert files.data_dir().name == "hashbench"
    monkeypatch.setenv("HASHBENCH_DATA", "")
    assert files.data_dir().name == "hashbench"


HOLD = """
import sys
from pathlib import Path
from hashbench.store import files
with getattr(files, sys.argv[2])(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holding(path, kind="locked"):
    """Start another process that holds the lock of a file until it reads a line."""
    command = [sys.executable, "-c", HOLD, path, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def holder(tmp_path):
    with holding(tmp_path / "file") as process:
        yield process


def test_waiting_says_so_and_gives_up(holder, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    token = files.lock_timeout.set(0.2)
    try:
        with (
            pytest.raises(HashbenchError, match=r"gave up after 0\.2 seconds of waiting for another process"),
            files.locked(tmp_path / "file"),
        ):
            pytest.fail("two hold the lock")
    finally:
        files.lock_timeout.reset(token)
    (message,) = caplog.messages
    assert message.startswith(f"Waiting for another process, which holds {tmp_path}")


def test_waiting_ends_when_the_lock_is_released(holder, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    original = files._log.warning

    def let_go(*arguments):
        original(*arguments)
        holder.stdin.write("\n")
        holder.stdin.flush()

    monkeypatch.setattr(files._log, "warning", let_go)
    with files.locked(tmp_path / "file"):
        pass
    assert len(caplog.messages) == 1


def test_a_holder_that_was_killed_is_not_waited_for(holder, tmp_path, caplog):
    holder.kill()
    holder.wait()
    with files.locked(tmp_path / "file"), files.locked(tmp_path / "file"), files.locked(tmp_path / "other"):
        files.write_text(tmp_path / "file", "text")  # the same process may enter again
    assert not caplog.messages


@needs_git
@pytest.mark.usefixtures("repository")
def test_git_adds_rows_without_their_lock(hashbench, monkeypatch, tmp_path, data):
    run = "run", "--method", "lsh", "--bits", 8, "--metric", "AP"
    assert hashbench(*run).exit_code == 0
    git("add", "results")
    added = git("ls-files", "results").splitlines()
    assert added == [f"results/digits/lsh.{suffix}" for suffix in ("csv", "json")]
    with holding("results", "locked_folder"):
        monkeypatch.setenv("HASHBENCH_DATA", str(tmp_path / "other data"))  # which changes nothing
        done = hashbench(*run, "--seed", 1, "--lock-timeout", 0.1)
    assert done.exit_code == 1
    assert "gave up after 0.1 seconds of waiting" in done.stderr


def test_command_gives_up_when_told_to(hashbench, data, tmp_path):
    (data / "datasets").mkdir()
    with holding(data / "datasets" / "digits.h5"):
        done = hashbench("prepare", "digits", "--lock-timeout", 0.1)
    assert done.exit_code == 1
    assert "gave up after 0.1 seconds of waiting for another process" in done.stderr
    assert hashbench("prepare", "digits").exit_code == 0


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there are no files below /dev")
def test_a_file_below_dev_is_replaced_like_any_other():
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for text in ("first", "second"):
            files.write_text(Path(folder) / "a.csv", text)
            assert (Path(folder) / "a.csv").read_text() == text


def test_a_file_that_others_may_not_read_is_replaced_by_one_that_they_may_not(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("old")
    path.chmod(0o600)
    files.write_text(path, "new")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o600)


# ---------------------------------------------------------------- whole or not at all


def leftovers(folder):
    return [path.name for path in folder.iterdir() if not path.name.endswith(".lock")]


class Oops(Exception):
    pass


@pytest.mark.parametrize("existed", [True, False])
def test_error_while_writing_leaves_what_was_there(tmp_path, existed):
    path = tmp_path / "file"
    if existed:
        path.write_text("old")

    def fail():
        with files.replacing(path) as part:
            part.write_text("half")
            raise Oops

    with pytest.raises(Oops):
        fail()
    assert leftovers(tmp_path) == (["file"] if existed else [])
    assert not existed or path.read_text() == "old"


def test_file_shows_its_new_content_only_when_it_is_whole(tmp_path):
    path = tmp_path / "new" / "folder" / "file"
    with files.replacing(path) as part:
        part.write_text("new")
        assert not path.exists()
        assert part.parent == path.parent  # a rename must not cross file systems
    assert path.read_text() == "new"
    assert leftovers(path.parent) == ["file"]


def test_content_is_on_the_disk_before_the_file_takes_its_place(tmp_path, monkeypatch):
    done = []
    monkeypatch.setattr("os.fsync", lambda descriptor: done.append((os.fstat(descriptor).st_size, path.exists())))
    path = tmp_path / "new.txt"
    files.write_text(path, "words")
    assert done == [(5, False)]
    assert path.read_text(encoding="utf-8") == "words"


def test_text_is_written_as_it_is_and_not_again(tmp_path):
    path = tmp_path / "table.csv"
    files.write_text(path, "ä,b\n1,2\n")
    assert path.read_bytes() == "ä,b\n1,2\n".encode()
    os.utime(path, (1, 1))
    files.write_text(path, "ä,b\n1,2\n")
    assert path.stat().st_mtime == 1
    files.write_text(path, "c\n")
    assert path.read_text() == "c\n"


WRITE = """
import sys, time
from pathlib import Path
from hashbench.store import files
path = Path(sys.argv[1])
with files.replacing(path) as part:
    part.write_text("half of the new con")
    print("writing", flush=True)
    time.sleep(60)
"""


def test_killed_writer_leaves_the_old_file_and_the_next_one_completes(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with subprocess.Popen([sys.executable, "-c", WRITE, path], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "writing\n"
        writer.kill()
    assert path.read_text() == "old"
    files.write_text(path, "new")
    assert path.read_text() == "new"
    assert leftovers(tmp_path) == ["file"]


DISK_FULL = """
import json, os, resource, sys
from pathlib import Path
import numpy as np
from hashbench.store import files
from hashbench.store import hdf5
from hashbench.store.provenance import Provenance
from hashbench.dataset import Dataset
from hashbench.errors import Damaged, HashbenchError

folder, limits = Path(sys.argv[1]), json.loads(sys.argv[2])
n = 2000
dataset = Dataset("tiny", np.ones((n, 16), np.float32), np.arange(4), np.arange(4, n), np.arange(4, n),
                  "same-label", labels=np.arange(n) % 3)
made = Provenance("tiny", "x", "lsh", "{}", 16, 0, "f", 1)
codes = hdf5.Codes(np.ones((4, 2), np.uint8), np.ones((n, 2), np.uint8), made)
writers = {
    "dataset": lambda path: hdf5.write_dataset(dataset, path),
    "codes": lambda path: hdf5.write_codes(codes, path),
    "text": lambda path: files.write_text(path, "line\\n" * 100_000),
}
outcomes = []
for kind, write in writers.items():
    for limit in limits:
        path = folder / f"{kind}-{limit}"
        path.write_text("old")
        reader, writer = os.pipe()
        child = os.fork()
        if not child:  # a process of its own: HDF5 may bring it down
            os.dup2(writer, 2)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            try:
                write(path)
            except HashbenchError as error:
                sys.exit(str(error))
            sys.exit("written")
        os.close(writer)
        with open(reader, errors="replace") as message:
            text = message.read()
        outcomes.append((kind, limit, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), text))
print(json.dumps(outcomes))
"""
LIMITS = [0, 100, 2100, 3000, 4100, 5000]


@pytest.fixture(scope="module")
def full_disk(tmp_path_factory):
    """Write files of several kinds, none larger than some limit; give the folder and what was message."""
    folder = tmp_path_factory.mktemp("full")
    command = [sys.executable, "-c", DISK_FULL, folder, json.dumps(LIMITS)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return folder, {(kind, limit): outcome for kind, limit, *outcome in json.loads(done.stdout)}


@pytest.mark.parametrize("kind", ["dataset", "codes", "text"])
@pytest.mark.parametrize("limit", LIMITS)
def test_full_disk_is_told_in_one_line_and_leaves_the_old_file(full_disk, kind, limit):
    folder, outcomes = full_disk
    path = folder / f"{kind}-{limit}"
    assert path.read_text() == "old"
    exit_code, message = outcomes[kind, limit]
    assert message.startswith(f"cannot write {path}: ")
    assert message.count("\n") == 1
    assert exit_code == 1


def test_full_disk_leaves_nothing_behind(full_disk):
    folder, outcomes = full_disk
    assert sorted(leftovers(folder)) == sorted(f"{kind}-{limit}" for kind, limit in outcomes)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_folder_without_permission_is_named(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert "Permission denied" in complaint(lambda path: files.write_text(path, "text"), folder / "file")

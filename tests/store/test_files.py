"""Locks between processes, and what becomes of the file that was there."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from hashbench.errors import HashbenchError
from hashbench.store import files

HOLD = """
import sys
from pathlib import Path
from hashbench.store.files import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a file until it reads a line."""
    command = [sys.executable, "-c", HOLD, tmp_path / "file"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_one_says_for_whom_one_waits_and_gives_up(holder, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    token = files.lock_timeout.set(0.2)
    try:
        with (
            pytest.raises(HashbenchError, match=rf"gave up after 0\.2 seconds of waiting for process {holder.pid} on"),
            files.locked(tmp_path / "file"),
        ):
            pytest.fail("two hold the lock")
    finally:
        files.lock_timeout.reset(token)
    (said,) = caplog.messages
    assert said.startswith(f"Waiting for process {holder.pid} on {os.uname().nodename}, which holds {tmp_path}")


def test_one_goes_on_when_the_lock_is_let_go(holder, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    original = files._log.warning

    def let_go(*arguments):
        original(*arguments)
        holder.stdin.write("\n")
        holder.stdin.flush()

    monkeypatch.setattr(files._log, "warning", let_go)
    with files.locked(tmp_path / "file"):
        assert f"process {os.getpid()} on" in (tmp_path / ".file.lock.by").read_text()
    assert not (tmp_path / ".file.lock.by").exists()
    assert len(caplog.messages) == 1


def test_a_holder_that_was_killed_is_not_waited_for(holder, tmp_path, caplog):
    holder.kill()
    holder.wait()
    with files.locked(tmp_path / "file"), files.locked(tmp_path / "file"):  # the same process may enter again
        pass
    assert not caplog.messages


def test_command_gives_up_when_told_to(hashbench, data, tmp_path):
    (data / "datasets").mkdir()
    command = [sys.executable, "-c", HOLD, data / "datasets" / "digits.h5"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        done = hashbench("prepare", "digits", "--lock-timeout", 0.1)
        process.kill()
    assert done.exit_code == 1
    assert f"gave up after 0.1 seconds of waiting for process {process.pid}" in done.stderr
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

"""Where files lie, locks between processes, and what becomes of the file that was there."""

import os
import subprocess
import sys
from contextlib import contextmanager

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


def test_waiting_says_so_and_ends_when_the_lock_is_released_or_the_time_is_up(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(files, "_PATIENCE", 0.05)
    warn = files._log.warning
    with holding(tmp_path / "file") as holder:
        token = files.lock_timeout.set(0.2)
        with (
            pytest.raises(HashbenchError, match=r"gave up after 0\.2 seconds of waiting for another process"),
            files.locked(tmp_path / "file"),
        ):
            pytest.fail("two hold the lock")
        files.lock_timeout.reset(token)
        monkeypatch.setattr(files._log, "warning", lambda *words: (warn(*words), holder.communicate("\n")))
        with files.locked(tmp_path / "file"):
            pass
    first, second = caplog.messages
    assert first == second
    assert first.startswith(f"Waiting for another process, which holds {tmp_path}")


def test_a_holder_that_was_killed_is_not_waited_for(tmp_path, caplog):
    with holding(tmp_path / "file") as holder:
        holder.kill()
        holder.wait()
        with files.locked(tmp_path / "file"), files.locked(tmp_path / "file"), files.locked(tmp_path / "other"):
            files.write_text(tmp_path / "file", "text")  # the same process may enter again
    assert not caplog.messages


@needs_git
def test_git_adds_files_without_the_lock_of_their_folder_which_holds_for_any_data_folder(repository, monkeypatch):
    folder = repository / "results"
    with files.locked_folder(folder):
        files.write_text(folder / "a.csv", "text")
    git("add", "results")
    assert git("ls-files").splitlines() == ["results/a.csv"]
    with holding(folder, "locked_folder"):
        monkeypatch.setenv("HASHBENCH_DATA", str(repository / "other"))
        token = files.lock_timeout.set(0)
        with pytest.raises(HashbenchError, match="gave up after 0 seconds"), files.locked_folder(folder):
            pytest.fail("two hold the lock")
        files.lock_timeout.reset(token)


def test_command_gives_up_when_told_to(hashbench, data):
    with holding(data / "datasets" / "digits.h5"):
        done = hashbench("prepare", "digits", "--lock-timeout", 0.1)
    assert done.exit_code == 1
    assert "gave up after 0.1 seconds of waiting for another process" in done.stderr


# ---------------------------------------------------------------- whole or not at all


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


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


def test_a_file_shows_its_new_content_only_when_it_is_whole_and_on_the_disk(tmp_path, monkeypatch):
    done, path = [], tmp_path / "new" / "folder" / "file"
    monkeypatch.setattr("os.fsync", lambda descriptor: done.append((os.fstat(descriptor).st_size, path.exists())))
    with files.replacing(path) as part:
        part.write_text("words")
        assert part.parent == path.parent  # a rename must not cross file systems
    assert done == [(5, False)]
    assert path.read_text() == "words"
    assert leftovers(path.parent) == ["file"]


def test_text_is_written_as_it_is_and_not_again_and_keeps_the_permissions(tmp_path):
    path = tmp_path / "table.csv"
    files.write_text(path, "ä,b\n1,2\n")
    assert path.read_bytes() == "ä,b\n1,2\n".encode()
    os.utime(path, (1, 1))
    path.chmod(0o600)
    files.write_text(path, "ä,b\n1,2\n")
    assert path.stat().st_mtime == 1
    files.write_text(path, "c\n")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("c\n", 0o600)


WRITE = """
import sys
from pathlib import Path
from hashbench.store import files
with files.replacing(Path(sys.argv[1])) as part:
    part.write_text("half of the new con")
    print("writing", flush=True)
    sys.stdin.readline()
"""


def test_killed_writer_leaves_the_old_file_and_the_next_one_removes_only_what_dead_writers_left(tmp_path):
    path, command = tmp_path / "file", [sys.executable, "-c", WRITE]
    path.write_text("old")
    with subprocess.Popen([*command, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout.readline() == "writing\n"
        files.write_text(path, "new")
        assert len(leftovers(tmp_path)) == 2  # of one that goes on
        writer.kill()
    assert path.read_text() == "new"
    files.write_text(path, "newer")
    assert path.read_text() == "newer"
    assert leftovers(tmp_path) == ["file"]


DISK_FULL = """
import resource, sys
from pathlib import Path
import numpy as np
from hashbench.errors import HashbenchError
from hashbench.store import artifact, files

path, block = Path(sys.argv[1]), np.ones((100, 16), np.float32)
blocks = artifact.Blocks((400, 16), block.dtype, [block] * 4)
computed = artifact.Blocks((10**6, 16), block.dtype, (block if i < 3 else sys.exit("it goes on") for i in range(10**4)))
writers = [
    lambda: files.write_text(path, "line\\n" * 10_000),
    lambda: artifact.write(path, "array", {}, {"x": blocks}),
    lambda: artifact.write(path, "model", {}, {f"state/{i}": block[:i] for i in range(100)}),
]
for write in writers:
    path.unlink(missing_ok=True)
    write()
    size = path.stat().st_size
    path.write_text("old")
    for limit in [*range(0, size, size // 30), size - 1]:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            write()
        except HashbenchError as error:
            print(path.read_text(), error)
        else:
            print("written at", limit)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    write()  # HDF5 is as before
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
try:
    artifact.write(path, "array", {}, {"x": computed})
except HashbenchError as error:
    print("done")
"""


def test_a_full_disk_is_reported_in_one_line_and_leaves_only_the_old_file(tmp_path):
    pytest.importorskip("resource")
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", DISK_FULL, path], capture_output=True, text=True, check=False)
    *sentences, last = done.stdout.splitlines()
    assert (done.returncode, done.stderr, last) == (0, "", "done")
    assert len(sentences) >= 3 * 31
    assert {*sentences} == {
        f"old cannot write {path}: File too large. What was there is unchanged; choose another "
        "folder (for the cache: HASHBENCH_DATA)."
    }
    assert leftovers(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to any folder")
def test_folder_without_permission_is_named(tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    for write in (lambda path: files.write_text(path, "text"), files.check_output):
        assert "Permission denied" in complaint(write, folder / "file")


def test_a_place_in_which_no_file_can_be_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in {
        "file/in it": "Not a directory",
        "": "Is a directory. What was there is unchanged; choose the name of a file",
        "loop": "Too many levels of symbolic links. What was there is unchanged; choose a name that is not a link",
        "x" * 300: "File name too long. What was there is unchanged; choose a shorter name",
    }.items():
        assert f"cannot write {tmp_path / name}: {words}" in complaint(files.check_output, tmp_path / name)
    files.check_output(tmp_path / "a" / "new" / "folder" / "file")
    assert leftovers(tmp_path) == ["file", "loop"]

"""Where output goes that users name a place for: pipes, links, standard output; never over an input."""

import csv
import io
import os
import threading
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def own(tmp_path):
    """Options that score four codes."""
    np.save(tmp_path / "codes.npy", np.eye(4, 8) > 0)
    np.save(tmp_path / "labels.npy", np.arange(4) % 2)
    codes, labels = tmp_path / "codes.npy", tmp_path / "labels.npy"
    return [
        *("evaluate", "--query-codes", codes, "--database-codes", codes),
        *("--query-labels", labels, "--database-labels", labels, "--metric", "AP"),
    ]


def n_rows(text):
    return len(list(csv.DictReader(io.StringIO(text))))


@pytest.mark.parametrize("option", ["--per-query", "--curves"])
def test_a_dash_is_standard_output_and_the_table_gives_way(hashbench, own, option, empty_folder):
    done = hashbench(*own, option, "-")
    assert done.exit_code == 0
    assert n_rows(done.stdout) >= 4
    assert "mean over all orders" in done.stderr
    assert not [*empty_folder.iterdir()]


def test_a_pipe_is_written_through(hashbench, own, tmp_path):
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: said.append(pipe.read_text()), daemon=True)
    reader.start()
    assert hashbench(*own, "--per-query", pipe).exit_code == 0
    reader.join(10)
    assert n_rows(said[0]) == 4
    assert pipe.is_fifo()


def test_a_device_is_written_through(hashbench, own):
    assert hashbench(*own, "--per-query", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("option", ["--per-query", "--curves"])
@pytest.mark.parametrize("is_pipe", [True, False])
def test_an_open_file_of_the_shell_is_written_through_though_its_folder_takes_no_files(
    hashbench, own, tmp_path, monkeypatch, option, is_pipe
):
    (tmp_path / "log").write_text("before\n")
    reading, writing = os.pipe() if is_pipe else [os.open(tmp_path / "log", os.O_RDWR) for _ in range(2)]
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert hashbench(*own, option, f"/dev/fd/{writing}").exit_code == 0
    text = os.read(reading, 1 << 16).decode()
    os.close(writing)
    os.close(reading)
    assert n_rows(text.removeprefix("before\n")) >= 4
    assert text.startswith("before\n") is not is_pipe


def test_an_open_file_of_the_shell_goes_on_behind_what_was_written(hashbench, own, tmp_path):
    with (tmp_path / "log").open("wb", buffering=0) as log:
        log.write(b"a much longer line than any other that comes before the rows and after them\n")
        assert hashbench(*own, "--per-query", f"/proc/self/fd/{log.fileno()}").exit_code == 0
        log.write(b"after\n")
    first, *rows, last = (tmp_path / "log").read_text().splitlines(keepends=True)
    assert (first[:6], last, n_rows("".join(rows))) == ("a much", "after\n", 4)


def test_an_open_file_that_is_none_is_refused_before_any_work(hashbench, own):
    done = hashbench(*own, "--per-query", "/dev/fd/987")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "cannot write /dev/fd/987: Bad file descriptor" in done.stderr


@pytest.mark.parametrize("option", ["--per-query", "--curves"])
@pytest.mark.parametrize("folder", ["/dev/std", "/dev/fd/", "/proc/self/fd/", "a link to /dev/fd/"])
def test_standard_error_and_output_take_rows_and_table(hashbench, own, option, folder, tmp_path):
    names = {"/dev/std": ["out", "err"]}.get(folder, [1, 2])
    out, err = (f"{folder.removeprefix('a link to ')}{name}" for name in names)
    if folder.startswith("a link"):
        out, err = tmp_path / "out", tmp_path / "err"
        out.symlink_to("/dev/fd/1")
        err.symlink_to("/dev/stderr")
    done = hashbench(*own, option, err)
    assert (done.exit_code, n_rows(done.stderr) >= 4) == (0, True)
    assert "mean over all orders" in done.stdout
    done = hashbench(*own, option, out)
    assert (done.exit_code, n_rows(done.stdout) >= 4) == (0, True)
    assert "mean over all orders" in done.stderr


@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_is_followed(hashbench, own, tmp_path, is_there):
    target, link = tmp_path / "folder" / "target.csv", tmp_path / "link.csv"
    target.parent.mkdir()
    if is_there:
        target.write_text("before")
    link.symlink_to(target)
    assert hashbench(*own, "--per-query", link).exit_code == 0
    assert link.is_symlink()
    assert n_rows(target.read_text()) == 4


def test_an_input_is_not_written_over(hashbench, own, tmp_path):
    before = (tmp_path / "codes.npy").read_bytes()
    (tmp_path / "other").symlink_to(tmp_path / "codes.npy")
    for name in ("codes.npy", "other"):
        done = hashbench(*own, "--per-query", tmp_path / name)
        assert (done.exit_code, done.stdout) == (2, "")
        assert "is read and would be written over" in done.stderr
    assert (tmp_path / "codes.npy").read_bytes() == before


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    ("place", "other"), [("same.csv", "./same.csv"), ("-", "-"), ("-", "/dev/stdout"), ("/proc/self/fd/1", "/dev/fd/1")]
)
def test_two_outputs_need_two_places(hashbench, own, place, other):
    done = hashbench(*own, "--per-query", place, "--curves", other)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "name the same file" in done.stderr


def test_tables_are_not_written_among_the_results(hashbench, tmp_path):
    done = hashbench("tables", "--results", tmp_path, "--output", tmp_path / "." / "x" / "..")
    assert done.exit_code == 2
    assert "folder of the results" in done.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--distance", "cosine", "--bits", "999"], "real-valued outputs, which have no --bits"),
        (["--dataset", "mine"], "unknown dataset 'mine'"),
        (["--per-query", ""], "an empty name is no file"),
    ],
)
def test_an_option_that_cannot_act_is_an_error(hashbench, own, options, message):
    done = hashbench(*own, *options)
    assert done.exit_code in (1, 2)
    assert done.stdout == ""
    assert message in done.stderr


def test_superclasses_do_not_go_with_a_matrix(hashbench, own, tmp_path):
    np.save(tmp_path / "matrix.npy", np.eye(4, dtype=int))
    done = hashbench(*own[:5], "--affinity", tmp_path / "matrix.npy", "--query-coarse", tmp_path / "labels.npy")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "not with --affinity" in done.stderr


def test_a_seed_of_drawing_goes_with_own_data(hashbench):
    done = hashbench("prepare", "digits", "--seed", 0)
    assert done.exit_code == 2
    assert "--seed" in done.stderr


@pytest.mark.parametrize("how", ["by its file", "by its content", "by its name"])
def test_the_dataset_of_codes_is_not_written_over(hashbench, tiny_file, data, how):
    made = tiny_file()
    dataset = made if how == "by its file" else data / "datasets" / "tiny.h5"
    dataset.parent.mkdir(exist_ok=True)
    made.rename(dataset)
    done = hashbench("encode", "--method", "lsh", "--bits", 4, "--dataset", dataset)
    before = dataset.read_bytes()
    named = {"by its file": ["--dataset", dataset], "by its content": [], "by its name": ["--dataset", "tiny"]}[how]
    again = hashbench("evaluate", done.stdout.strip(), *named, "--per-query", dataset)
    assert (again.exit_code, again.stdout) == (2, "")
    assert "is read and would be written over" in again.stderr
    assert dataset.read_bytes() == before

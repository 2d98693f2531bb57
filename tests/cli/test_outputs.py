"""Files that users name for output: pipes, links, standard output; never over an input."""

import csv
import io
import os
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from helpers.processes import printed_by

from hashbench.store.results import FILE_COLUMNS, Record, record_text


@pytest.fixture
def own(tmp_path):
    """Options that score four codes."""
    np.save(tmp_path / "codes.npy", np.eye(4, 8) > 0)
    np.save(tmp_path / "labels.npy", np.arange(4) % 2)
    codes, labels = tmp_path / "codes.npy", tmp_path / "labels.npy"
    files = f"--query-codes {codes} --database-codes {codes} --query-labels {labels} --database-labels {labels}"
    return ["evaluate", *files.split(), "--metric", "AP"]


def n_rows(text):
    return len(list(csv.DictReader(io.StringIO(text))))


def assert_refused(done, words, exit_code=2):
    assert (done.exit_code, done.stdout) == (exit_code, "")
    assert words in done.stderr


READ = "is read and would be overwritten"


@pytest.mark.parametrize("option", ["--per-query", "--curves"])
def test_a_dash_is_standard_output_and_the_table_gives_way(hashbench, own, option, empty_folder):
    done = hashbench(*own, option, "-")
    assert done.exit_code == 0
    assert n_rows(done.stdout) >= 4
    assert "mean over all orders" in done.stderr
    assert not [*empty_folder.iterdir()]


def test_a_pipe_and_a_device_are_written_through(hashbench, own, tmp_path):
    pipe, texts = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: texts.append(pipe.read_text()), daemon=True)
    reader.start()
    assert hashbench(*own, "--per-query", pipe).exit_code == 0
    reader.join(10)
    assert n_rows(texts[0]) == 4
    assert pipe.is_fifo()
    assert hashbench(*own, "--per-query", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(("option", "is_pipe"), [("--per-query", True), ("--curves", False)])
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
    assert_refused(done, "cannot write /dev/fd/987: Bad file descriptor", 1)


@pytest.mark.parametrize("folder", ["/dev/std", "/dev/fd/", "/proc/self/fd/", "a link to /dev/fd/"])
def test_standard_error_and_output_take_rows_and_table(hashbench, own, folder, tmp_path):
    names = {"/dev/std": ["out", "err"]}.get(folder, [1, 2])
    out, err = (f"{folder.removeprefix('a link to ')}{name}" for name in names)
    if folder.startswith("a link"):
        out, err = tmp_path / "out", tmp_path / "err"
        out.symlink_to("/dev/fd/1")
        err.symlink_to("/dev/stderr")
    for target, rows, table in ((err, "stderr", "stdout"), (out, "stdout", "stderr")):
        done = hashbench(*own, "--per-query", target)
        assert (done.exit_code, n_rows(getattr(done, rows)) >= 4) == (0, True)
        assert "mean over all orders" in getattr(done, table)


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


@pytest.fixture
def files(hashbench, tiny_file, data, empty_folder):
    """A folder with one file for every input that a command may have, and no others."""
    (empty_folder / "n").mkdir()
    tiny_file().rename(empty_folder / "data.h5")
    rng = np.random.default_rng(0)
    for name, array in {
        "X": rng.normal(size=(5, 4)),
        "codes": rng.random((4, 8)) < 0.5,
        "labels": np.arange(4) % 2,
        "vectors": rng.normal(size=(4, 3)),
    }.items():
        np.save(empty_folder / f"{name}.npy", array)
    (empty_folder / "shards.json").write_text('{"shards": ["codes.npy"]}')
    (empty_folder / "run.txt").write_text("q Q0 a 1 2.5 r\n")
    (empty_folder / "qrels.txt").write_text("q 0 a 1\n")
    printed = hashbench("encode", "--method", "lsh", "--bits", 2, "--dataset", "data.h5", "--keep-model").stdout
    for path, name in zip(printed.splitlines(), ("codes.h5", "m.npz"), strict=True):
        Path(path).rename(empty_folder / name)
    row = "digits,pixels,itq,44136fa3,16,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1"
    (empty_folder / "r" / "digits").mkdir(parents=True)
    (empty_folder / "r" / "digits" / "itq.csv").write_text(f"{','.join(FILE_COLUMNS)}\n{row}\n")
    (empty_folder / "r" / "digits" / "itq.json").write_text(record_text(Record({"44136fa3": "{}"}, {}, {})))
    return empty_folder


OWN = "--query-codes codes.npy --database-codes {} --query-labels labels.npy --database-labels labels.npy"
SCORED = f"evaluate {OWN.format('codes.npy')}"
RERANKED = f"{SCORED} --vectors vectors.npy vectors.npy --metric Recall@1:reranked=2"
WRITERS = f"""
X.npy | encode --model m.npz --from X.npy --output
X.npy | export m.npz --to npz --from X.npy --output
m.npz | encode --model m.npz --from X.npy --output
m.npz | export m.npz --to npz --from X.npy --output
codes.h5 | export codes.h5 --to hex --output
codes.h5 | evaluate codes.h5 --dataset data.h5 --curves
labels.npy | {SCORED} --curves
shards.json | evaluate {OWN.format("shards.json")} --per-query
codes.npy | evaluate {OWN.format("shards.json")} --per-query
run.txt | evaluate --run run.txt qrels.txt --per-query
qrels.txt | evaluate --run run.txt qrels.txt --per-query
vectors.npy | {RERANKED} --per-query
r/digits/itq.csv | report --results r --output
r/digits/itq.json | report --results r --output
r/digits/itq.csv | report --results other --against r/digits/itq.csv --output
r/digits/itq.json | report --results other --against r/digits/itq.csv --output
""".strip().splitlines()  # what is read, and a command that ends with where it writes


@pytest.mark.parametrize("line", WRITERS)
def test_no_command_writes_over_what_it_reads(hashbench, files, line):
    name, command = line.split(" | ")
    endings = {"--curves": ".svg", "report": ".html", "encode": ".npy"}
    ending = next((end for word, end in endings.items() if word in command), ".csv")
    source, outputs = files / name, [files / f"{way}{ending}" for way in ("hard-link", "link", "link-to-a-link")]
    os.link(source, outputs[0])
    outputs[1].symlink_to(source)
    outputs[2].symlink_to(outputs[1])
    if source.suffix == ending:
        outputs.append(files / "nowhere" / ".." / source.name)
    before = {path: path.read_bytes() for path in files.rglob("*") if path.is_file()}
    for output in outputs:
        assert_refused(hashbench(*command.split(), output), f"Error: {output} {READ}")
    assert {path: path.read_bytes() for path in files.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("command", "name", "link"),
    [
        ("tables", "table1.csv", os.symlink),
        ("tables", "table1.md", os.link),
        ("plot", "ap-bits-digits-pixels.svg", os.symlink),
        ("report", "index.html", os.link),
    ],
)
def test_no_file_of_a_folder_leads_to_the_results(hashbench, files, command, name, link):
    (files / "out").mkdir()
    rows = files / "r" / "digits" / "itq.csv"
    link(rows, files / "out" / name)
    before = rows.read_bytes()
    assert_refused(hashbench(command, "--results", "r", "--output", "out"), f"out/{name} {READ}")
    assert (rows.read_bytes(), len([*(files / "out").iterdir()])) == (before, 1)


def test_the_dataset_of_a_model_is_not_written_over(hashbench, tiny_file, data, tmp_path):
    (data / "datasets").mkdir(parents=True)
    dataset = tiny_file().rename(data / "datasets" / "tiny.h5")
    printed = hashbench("encode", "--method", "lsh", "--bits", 2, "--dataset", "tiny", "--keep-model").stdout
    before = dataset.read_bytes()
    assert_refused(
        hashbench("export", printed.splitlines()[1], "--to", "npz", "--output", dataset), f"{dataset} {READ}"
    )
    assert dataset.read_bytes() == before


def test_what_is_saved_is_an_output_too(hashbench, files):
    command = ["save", "mine", *SCORED.split()[1:], "--dataset", "own", "--results", "codes.npy/r"]
    assert_refused(hashbench(*command), "cannot write codes.npy/r/own/mine.csv: Not a directory", 1)


def test_kept_codes_are_not_written_over_while_they_are_read(hashbench, files, data):
    saving = ["save", "mine", *SCORED.split()[1:], "--dataset", "own", "--results", "r", "--keep-codes"]
    assert hashbench(*saving).exit_code == 0
    (file,) = (data / "codes").rglob("mine-8-s0.h5")
    before = file.read_bytes()
    codes = ["--query-codes", f"{file}:database/codes", "--database-codes", f"{file}:query/codes", "--bits", 8]
    assert_refused(hashbench(*saving, *codes), READ)
    assert file.read_bytes() == before


@pytest.mark.parametrize("command", ["encode --model m.npz --from X.npy --output", "export codes.h5 --to hex --output"])
def test_what_is_written_whole_takes_the_place_of_no_pipe_and_of_no_link(hashbench, files, command):
    os.mkfifo(files / "pipe.npy")
    assert_refused(hashbench(*command.split(), "pipe.npy"), "cannot write pipe.npy: it is a pipe or a device", 1)
    assert (files / "pipe.npy").is_fifo()
    (files / "link.npy").symlink_to(files / "n" / "target.npy")
    assert hashbench(*command.split(), "link.npy").exit_code == 0
    assert (files / "link.npy").is_symlink()
    assert (files / "n" / "target.npy").is_file()


def test_a_backend_that_matplotlib_does_not_have_is_a_sentence(files, data):
    before = {*files.rglob("*")}
    code = """
from click.testing import CliRunner
from hashbench.cli.main import cli
done = CliRunner().invoke(cli, "plot ap-bits --results r".split(), catch_exceptions=False)
print((done.exit_code, done.stdout, done.stderr.splitlines()[-1]))
"""
    environment = {**os.environ, "MPLBACKEND": "nonsense", "HASHBENCH_DATA": str(data)}
    assert re.match(r"""\(1, '', "Error: .*'nonsense'""", printed_by(code, env=environment))
    assert {*files.rglob("*")} == before


@pytest.mark.usefixtures("empty_folder")
@pytest.mark.parametrize(
    ("place", "other"), [("same.csv", "./same.csv"), ("-", "-"), ("-", "/dev/stdout"), ("/proc/self/fd/1", "/dev/fd/1")]
)
def test_two_outputs_need_two_places(hashbench, own, place, other):
    assert_refused(hashbench(*own, "--per-query", place, "--curves", other), "name the same file")


@pytest.mark.parametrize("found_by", ["its file", "its content", "its name"])
def test_the_dataset_of_codes_is_not_written_over(hashbench, tiny_file, data, found_by):
    file = tiny_file()
    dataset = file if found_by == "its file" else data / "datasets" / "tiny.h5"
    dataset.parent.mkdir(exist_ok=True)
    file.rename(dataset)
    done = hashbench("encode", "--method", "lsh", "--bits", 4, "--dataset", dataset)
    before = dataset.read_bytes()
    named = {"its file": ["--dataset", dataset], "its content": [], "its name": ["--dataset", "tiny"]}[found_by]
    assert_refused(hashbench("evaluate", done.stdout.strip(), *named, "--per-query", dataset), READ)
    assert dataset.read_bytes() == before


@pytest.mark.parametrize("option", ["--per-query", "--curves"])
def test_missing_folders_of_an_output_are_created(hashbench, own, empty_folder, option):
    assert hashbench(*own, option, "new/deep/out.csv").exit_code == 0
    assert n_rows((empty_folder / "new" / "deep" / "out.csv").read_text()) >= 4
    thresholds = ["thresholds", *own[1:-2], "--output", "other/deep/radii.csv"]
    assert hashbench(*thresholds).exit_code == 0
    assert (empty_folder / "other" / "deep" / "radii.csv").is_file()

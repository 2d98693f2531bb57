import gzip
import hashlib
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.waiting import PATIENCE, wait_for
from helpers.website import CONTENT, cut, ranged, whole, zipped

from hashbench.errors import HashbenchError
from hashbench.sources.download import Needed, demand, fetch, fetch_unpacked

OTHER = np.random.default_rng(1).bytes(280_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
MD5 = f"md5:{hashlib.md5(CONTENT).hexdigest()}"
HALF = len(CONTENT) // 2

FETCH = """
import sys
from pathlib import Path
from hashbench.sources.download import fetch
from hashbench.store import files
files._PATIENCE = 0  # who waits for the other says so at once
print("ready", flush=True)
print(fetch(sys.argv[1], sys.argv[2], Path(sys.argv[3])).stat().st_size)
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "data.bin"


def names_beside(path):
    """Return the names of the files in a file's folder, except locks."""
    return sorted(other.name for other in path.parent.iterdir() if not other.name.endswith(".lock"))


def complaint(function, *arguments):
    """Return the text of the error that a call raises, which may have several lines."""
    with pytest.raises(HashbenchError) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("sha256", [SHA256, SHA256[:20].upper()])
def test_file_comes_whole_and_alone(site, path, sha256):
    assert fetch(site.answering(whole()), sha256, path) == path
    assert path.read_bytes() == CONTENT
    assert names_beside(path) == ["data.bin"]
    assert fetch(site.url, sha256, path) == path  # without the network
    assert site.ranges == [None]


@pytest.mark.parametrize("sha256", [SHA256, SHA256[:8]])
def test_file_with_another_checksum_is_left_alone(site, path, sha256):
    path.parent.mkdir()
    path.write_bytes(OTHER)
    text = complaint(fetch, site.answering(whole()), sha256, path)
    assert str(path) in text
    assert hashlib.sha256(OTHER).hexdigest() in text
    assert sha256 in text
    assert "move it away" in text
    assert path.read_bytes() == OTHER
    assert site.ranges == []


def test_malformed_checksum_is_refused_before_anything_is_fetched(site, path):
    for checksum in ("", SHA256[:7], SHA256 + "0", "g" * 64, "md5:0123", MD5 + "0"):
        text = complaint(fetch, site.answering(whole()), checksum, path)
        assert f"{checksum!r} is not a checksum; expected the 64 hex digits" in text
    assert site.ranges == []


@pytest.mark.parametrize(
    ("answers", "starts"),
    [
        ([cut(HALF), ranged()], [HALF]),
        ([cut(HALF), whole()], [HALF]),
        ([cut(1000), ranged(last=2000), ranged()], [1000, 2000]),
        ([cut(10), cut(0), cut(20), whole()], [10, None, 20]),
        ([cut(HALF, OTHER), ranged()], [HALF, None]),
    ],
    ids=["resumed", "no ranges", "pieces", "three times", "changed size"],
)
def test_broken_download_asks_for_the_missing_bytes(site, path, answers, starts):
    fetch(site.answering(*answers), SHA256, path)
    assert site.ranges == [None, *(None if start is None else f"bytes={start}-" for start in starts)]
    assert path.read_bytes() == CONTENT


def test_download_that_keeps_breaking_stops_and_the_next_call_continues(site, path):
    url = site.answering(cut(HALF), whole(b"", 206, Content_Length=9, Content_Range=f"bytes {HALF}-299999/300000"))
    text = complaint(fetch, url, SHA256, path)
    assert f"stopped after {HALF:,} of 300,000 bytes (the connection was closed);" in text
    assert "the same command continues" in text
    assert url in text
    assert str(path) in text
    assert len(site.ranges) == 4
    assert names_beside(path) == ["data.bin.part"]
    assert path.with_name("data.bin.part").read_bytes() == CONTENT[:HALF]
    fetch(site.answering(ranged()), SHA256, path)
    assert site.ranges[-1] == f"bytes={HALF}-"
    assert path.read_bytes() == CONTENT
    assert names_beside(path) == ["data.bin"]


@pytest.mark.parametrize(("surplus", "ranges"), [(b"", []), (b"more", [None])], ids=["whole", "too long"])
def test_part_is_completed_or_discarded(site, path, surplus, ranges):
    path.parent.mkdir()
    path.with_name("data.bin.part").write_bytes(CONTENT + surplus)
    fetch(site.answering(ranged()), SHA256, path)
    assert site.ranges == [f"bytes={len(CONTENT + surplus)}-", *ranges]
    assert path.read_bytes() == CONTENT


def test_file_that_changes_its_bytes_midway_is_noticed(site, path):
    mixed = OTHER[:HALF] + CONTENT[HALF:]
    text = complaint(fetch, site.answering(cut(HALF, OTHER + OTHER[:20_000]), ranged()), SHA256, path)
    assert hashlib.sha256(mixed).hexdigest() in text
    assert names_beside(path) == []
    assert fetch(site.url, SHA256, path).read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("sha256", "answer"), [(SHA256, whole(OTHER)), (SHA256[:8], whole(OTHER, Content_Length=None))]
)
def test_wrong_bytes_are_named_and_removed(site, path, sha256, answer):
    text = complaint(fetch, site.answering(answer), sha256, path)
    assert "280,000 bytes" in text
    assert hashlib.sha256(OTHER).hexdigest() in text
    assert (f"expected {SHA256[:8]}...;" if len(sha256) == 8 else f"expected {SHA256};") in text
    assert names_beside(path) == []


def test_compressed_file_is_kept_as_it_is_even_if_called_an_encoding(site, path):
    content = gzip.compress(CONTENT)
    fetch(site.answering(whole(content, Content_Encoding="x-gzip")), hashlib.sha256(content).hexdigest(), path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(("status", "words"), [(404, " is gone (404 "), (204, " answers 204 "), (503, " answers 503 ")])
def test_any_other_answer_is_reported_and_not_saved(site, path, status, words):
    text = complaint(fetch, site.answering(whole(b"", status)), SHA256, path)
    assert site.url + words in text
    assert (SHA256 if "gone" in words else "later") in text
    assert str(path) in text
    assert len(site.ranges) == 1
    assert names_beside(path) == []


@pytest.fixture
def impatient(monkeypatch, site):
    """A client with a timeout gives up as soon as it has read all that came before the server fell silent."""

    def recv_into(client, *arguments):
        while client.gettimeout() and not select.select([client], [], [], 0.1)[0]:
            if client.getsockname() in site.silent:
                raise TimeoutError("timed out")
        return super(socket.socket, client).recv_into(*arguments)

    monkeypatch.setattr(socket.socket, "recv_into", recv_into, raising=False)


@pytest.mark.usefixtures("impatient")
def test_stalled_file_stops(site, path):
    text = complaint(fetch, site.answering(site.stalling(1 << 17)), SHA256, path)
    assert "stopped after 131,072 of 300,000 bytes" in text
    assert "timed out" in text


@pytest.mark.usefixtures("impatient")
def test_silent_server_is_out_of_reach(site, path):
    url = site.answering(site.fall_silent)
    text = complaint(fetch, url, SHA256, path)
    assert text.startswith(f"cannot reach {url}: timed out.")


def test_refused_connection_is_out_of_reach(site, path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/data.bin"
        text = complaint(fetch, url, SHA256, path)
    assert text.startswith(f"cannot reach {url}: Connection refused. ")
    assert str(path) in text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_reported_in_one_sentence(site, path):
    path.parent.mkdir()
    path.with_name("data.bin.part").symlink_to("/dev/full")
    text = complaint(fetch, site.answering(whole()), SHA256, path)
    assert text.startswith(f"cannot write {path}: No space left on device. ")
    assert names_beside(path) == ["data.bin.part"]


def test_interrupt_keeps_what_came(site, path):
    def interrupt(what, n_done, n_all):
        if n_done >= HALF:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(site.answering(whole()), SHA256, path, on_progress=interrupt)
    assert names_beside(path) == ["data.bin.part"]
    n_done = path.with_name("data.bin.part").stat().st_size
    assert HALF <= n_done < len(CONTENT)
    fetch(site.answering(ranged()), SHA256, path)
    assert site.ranges == [None, f"bytes={n_done}-"]
    assert path.read_bytes() == CONTENT


def test_progress_reports_bytes_and_nothing_else_is_printed(site, path, capsys):
    seen = []
    fetch(site.answering(cut(HALF), ranged()), SHA256, path, on_progress=lambda *at: seen.append(at))
    assert {what for what, _, _ in seen} == {"bytes of data.bin"}
    done = [n_done for _, n_done, _ in seen]
    assert done == sorted(done)
    assert done[0] == 0
    assert HALF in done
    assert {n_all for _, _, n_all in seen} == {len(CONTENT)}
    assert seen[-1][1:] == (len(CONTENT), len(CONTENT))
    assert capsys.readouterr() == ("", "")


def test_one_plain_line_goes_to_stderr_where_there_is_no_terminal(site, path, capsys):
    fetch(site.answering(cut(HALF), ranged()), SHA256, path)
    assert capsys.readouterr() == ("", f"downloading {site.url} to {path}\n")


def test_bar_shows_on_a_terminal(site, path, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm")
    fetch(site.answering(whole()), SHA256, path)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "data.bin" in shown.err
    assert "300.0/300.0 kB" in shown.err


@pytest.fixture
def process(site, path):
    """Start a process that fetches the file, and wait until it is about to."""
    started = []

    def start(url):
        command = [sys.executable, "-W", "error", "-c", FETCH, url, SHA256, str(path)]
        environment = {**os.environ, "NO_PROXY": "127.0.0.1"}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        started.append(child)
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in started:
        child.kill()
        child.communicate()


def test_two_processes_download_once(site, path, process):
    def slow(handler):
        site.released.wait(PATIENCE)
        whole()(handler)

    url = site.answering(slow)
    children = [process(url), process(url)]
    waiting, downloading = sorted((child.stderr.readline() for child in children), key=str.lower, reverse=True)
    assert waiting.startswith("Waiting for another process")
    assert downloading == f"downloading {url} to {path}\n"
    site.released.set()
    outputs = [child.communicate(timeout=PATIENCE) for child in children]
    assert outputs == [(f"{len(CONTENT)}\n", "")] * 2
    assert site.ranges == [None]
    assert path.read_bytes() == CONTENT
    assert names_beside(path) == ["data.bin"]


def test_killed_process_leaves_a_part_that_another_continues(site, path, process):
    part = path.with_name("data.bin.part")
    child = process(site.answering(site.stalling(1 << 17), ranged()))
    wait_for(lambda: part.exists() and part.stat().st_size == 1 << 17)
    child.kill()
    assert child.wait(PATIENCE) == -signal.SIGKILL
    assert not path.exists()
    fetch(site.url, SHA256, path)
    assert site.ranges == [None, f"bytes={1 << 17}-"]
    assert path.read_bytes() == CONTENT


IMAGES = Needed("images.tar", "https://example.org/images.tar", SHA256, "after filling in their form")
LABELS = Needed("lists/labels.txt")


def test_local_files_are_returned_in_their_order(tmp_path):
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "labels.txt").write_text("1\n")
    (tmp_path / "images.tar").write_bytes(CONTENT)
    assert demand(tmp_path, [LABELS, IMAGES], "it") == [tmp_path / "lists/labels.txt", tmp_path / "images.tar"]


def test_single_file_may_have_any_name_but_does_not_replace_several(tmp_path):
    file = tmp_path / "renamed.tar"
    file.write_bytes(CONTENT)
    assert demand(file, [IMAGES], "it") == [file]
    text = complaint(demand, file, [IMAGES, LABELS], "dataset 'photos'")
    assert f"{file} is a file, but dataset 'photos' needs 2: images.tar, lists/labels.txt" in text


def test_missing_files_are_listed_one_per_line(tmp_path):
    (tmp_path / "there.txt").write_text("1\n")
    first, *lines = complaint(demand, tmp_path, [IMAGES, Needed("there.txt"), LABELS], "dataset 'photos'").split("\n")
    assert first.startswith("dataset 'photos' lacks 2 of 3 files, ")
    assert len(lines) == 2
    for word in ("https://example.org/images.tar", SHA256, f"to {tmp_path / 'images.tar'}", "filling in their form"):
        assert word in lines[0]
    assert f"to {tmp_path / 'lists/labels.txt'}" in lines[1]
    assert "SHA-256" not in lines[1]
    text = complaint(demand, tmp_path / "nowhere", [IMAGES], "it")
    assert "lacks 1 of 1 files" in text
    assert str(tmp_path / "nowhere" / "images.tar") in text


def test_file_at_hand_with_another_checksum_is_told(tmp_path):
    file = tmp_path / "images.tar"
    file.write_bytes(CONTENT)
    assert demand(tmp_path, [IMAGES], "it") == [file]
    file.write_bytes(OTHER)
    text = complaint(demand, tmp_path, [IMAGES], "it")
    assert text.startswith(f"{file} has SHA-256 {hashlib.sha256(OTHER).hexdigest()}, expected {SHA256}")
    assert IMAGES.url in text
    assert file.read_bytes() == OTHER


# ---------------------------------------------------------------- MD5, and archives


def test_an_md5_is_accepted(site, path):
    text = complaint(fetch, site.answering(whole(OTHER)), MD5, path)
    other = hashlib.md5(OTHER).hexdigest()
    assert f"gave 280,000 bytes with MD5 {other}, expected {MD5[4:]};" in text
    assert names_beside(path) == []
    assert fetch(site.answering(whole()), MD5.upper(), path).read_bytes() == CONTENT
    assert fetch(site.url, MD5, path) == path
    path.write_bytes(OTHER)
    assert complaint(fetch, site.url, MD5, path).startswith(f"{path} has MD5 {other}, expected {MD5[4:]}. ")


@pytest.fixture
def serve(site):
    """Serve an archive, bytes; return its address and SHA-256."""
    return lambda archive: (site.answering(whole(archive)), hashlib.sha256(archive).hexdigest())


def test_an_archive_is_unpacked_once_and_removed(site, serve, tmp_path, data):
    for name, text in (("a", "1"), ("b", "22")):
        (tmp_path / name).write_text(text)
    url, sha256 = serve(zipped({f"inside/{name}": tmp_path / name for name in "ab"}))
    folder = tmp_path / "deep" / "folder"
    (tmp_path / "deep" / "folder.part").mkdir(parents=True)
    (tmp_path / "deep" / "folder.part" / "of an attempt that broke off").touch()
    for _ in range(2):
        assert fetch_unpacked(url, sha256, folder) == folder
    assert {path.name: path.read_text() for path in folder.rglob("*") if path.is_file()} == {"a": "1", "b": "22"}
    assert names_beside(folder) == ["folder"]
    assert names_beside(data / "downloads" / "data.bin") == []
    assert len(site.n_sent) == 1


def test_a_damaged_archive_leaves_no_folder(serve, tmp_path, data):
    assert "cannot unpack" in complaint(fetch_unpacked, *serve(CONTENT), tmp_path / "folder")
    assert not (tmp_path / "folder").exists()

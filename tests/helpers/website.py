"""A web server on loopback, and the ways in which it may answer."""

import http.server
import io
import itertools
import re
import threading
import zipfile

import numpy as np

from helpers.waiting import PATIENCE

CONTENT = np.random.default_rng(0).bytes(300_000)


def zipped(files):
    """Return a ZIP archive of files, given as paths by their name in the archive."""
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        for name, path in files.items():
            archive.write(path, name)
    return stored.getvalue()


def whole(content=CONTENT, status=200, **headers):
    """Answer with all bytes, whatever range is requested; ``headers`` are changed or, if None, left out."""
    headers = {"Content_Length": len(content), **headers}

    def answer(handler):
        handler.send_response(status)
        for name, value in headers.items():
            if value is not None:
                handler.send_header(name.replace("_", "-"), str(value))
        handler.end_headers()
        handler.server.n_sent.append(len(content))  # before a test can read it
        handler.wfile.write(content)

    return answer


def cut(n_bytes, content=CONTENT):
    """Announce all bytes and hang up after some."""
    return whole(content[:n_bytes], Content_Length=len(content))


def ranged(content=CONTENT, last=None):
    """Answer a Range as RFC 9110 says."""

    def answer(handler):
        first = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range", ""))
        if not first:
            return whole(content)(handler)
        start = int(first[1])
        if start >= len(content):
            return whole(b"no such range", 416, Content_Range=f"bytes */{len(content)}")(handler)
        piece = content[start:last]
        span = f"bytes {start}-{start + len(piece) - 1}/{len(content)}"
        return whole(piece, 206, Content_Range=span)(handler)

    return answer


class Site(http.server.ThreadingHTTPServer):
    """A web server on loopback that gives one answer after the other, the last one repeatedly."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/data.bin"
        self.ranges = []  # that were requested, None for the whole file
        self.n_sent = []  # bytes in each answer
        self.silent = set()  # addresses of clients that wait for more
        self.released = threading.Event()

    def answering(self, *answers):
        self.answers = itertools.chain(answers[:-1], itertools.repeat(answers[-1]))
        return self.url

    def stalling(self, n_bytes):
        """Answer with some bytes and then with silence."""

        def answer(handler):
            cut(n_bytes)(handler)
            self.fall_silent(handler)

        return answer

    def fall_silent(self, handler):
        self.silent.add(handler.client_address)
        self.released.wait(PATIENCE)

    def handle_error(self, request, client_address):
        """Clients that hang up are part of the tests."""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.ranges.append(self.headers.get("Range"))
        next(self.server.answers)(self)

    def log_message(self, *args):
        pass

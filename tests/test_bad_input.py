"""Bad input of every kind: what it must say, with which exit code, and that nothing was written.

A line of ``COMMANDS`` is the exit code, the command line, and words that its one line on stderr must hold, apart by
``|``. The files lie in the folder it runs in: see ``lay_out``. ``CALLS`` are the same for Python.
"""

import contextlib
import gzip
import json
import os
import pickle
import re
import shlex
from hashlib import sha256
from itertools import chain

import h5py
import numpy as np
import pytest
import scipy.sparse as sp
from click.testing import CliRunner

import hashbench
from hashbench.cli.main import cli
from hashbench.errors import HashbenchError
from hashbench.registry import get_method
from hashbench.store.result_files import FILE_COLUMNS

HEADER = ",".join(FILE_COLUMNS) + "\n"
ROW = "digits,pixels,itq,44136fa3,16,0,AP,0.5,0.01,0.4,0.6,200,3,0123,1\n"
RESULTS = {
    "good": HEADER + ROW,
    "twice": HEADER + ROW + ROW,
    "above": HEADER + ROW.replace("0.5", "1.5"),
    "infinite": HEADER + ROW.replace("0.5", "inf"),
    "outside": HEADER + ROW.replace("0.5", "0.7"),
    "large-sd": HEADER + ROW.replace("0.01", "0.11"),
    "negative-sd": HEADER + ROW.replace("0.01", "-0.01"),
    "undefined": HEADER + ROW.replace("200,3", "200,201"),
    "no-queries": HEADER + ROW.replace("200,3", "0,0"),
    "nan": HEADER + ROW.replace("0.5,", "nan,"),
    "version": HEADER + ROW.replace("0123,1", "0123,-1"),
    "twice-other": HEADER + ROW + ROW.replace("0.5", "0.55"),
    "conflict": HEADER + "<<<<<<< HEAD\n" + ROW + "=======\n" + ROW.replace("0.5", "0.55") + ">>>>>>> topic\n",
    "marker": HEADER + ROW + "=======\n",
    "bom": "\ufeff" + HEADER + ROW,
    "crlf": (HEADER + ROW).replace("\n", "\r\n"),
    "lacking": (HEADER + ROW).replace("metric,", "").replace(",AP,", ","),
    "swapped": HEADER.replace("low,high", "high,low") + ROW,
    "newer": HEADER.replace("method_version", "method_version,more") + ROW.replace("0123,1", "0123,1,2"),
    "short": HEADER + "digits,pixels,itq\n",
    "long": HEADER + ROW.replace("\n", ",1\n"),
    "no-number": HEADER + ROW.replace("0.5", "half"),
    "no-length": HEADER + ROW.replace(",16,", ",sixteen,"),
    "out": HEADER + ROW.replace("digits", "x/../../.."),
    "out-method": HEADER + ROW.replace("itq", "../itq"),
    "formula": HEADER + ROW.replace("pixels", "=1+1"),
    "no-results": "a,b\n1,2\n",
    "empty": "",
    "binary": "\x00\x01\x02",
    "latin": HEADER + ROW.replace("digits", "d\udcff"),
}


STUDIES = {
    "bit = 16": "unknown key 'bit'. Did you mean 'bits'",
    "bits = [16": "as TOML: Unclosed array",
    "a = " + 9_000 * "[": "cannot read study-2.toml as TOML: ",
    'bits = "16"': "bits must be whole numbers, got '16'",
    "bits = [true]": "bits must be whole numbers, got True",
    "bits = []": "bits is an empty list",
    "seeds = [0, -1]": "seeds are from 0 to 4294967295, got -1",
    "datasets = [1]": "datasets must be strings in quotes, got 1",
    "methods = [1]": "methods must be names in quotes, or a table for each, got 1",
    "methods.itq = 20": "methods.itq must be a table of parameters, got 20",
    "methods.itq = []": "methods.itq is an empty list",
    "methods.itq.n_iter = []": "methods.itq.n_iter is an empty list",
    "params = 3": "params must be a table of parameters, got 3",
    'preset = "paper"\nparams.preset = "paper"': "gives preset twice",
    'methods.itq.tuned = "9 trials"': "tuned of itq is '9 trials', expected the number of settings that were tried",
    "methods.itq.tuned = true": "tuned of itq is True, expected the number",
    "methods.itq.tuned = -1": "tuned of itq is -1, expected the number",
    "methods.itq.tuned = [9, 10]": "tuned of itq is (9, 10), expected the number",
    "methods.itq.tunned = 9": "unknown itq parameter 'tunned'. Did you mean 'tuned'?",
}


def named(params):
    """Return a file of settings with these parameters, by their name."""
    text = json.dumps(params)
    return f'{{"{sha256(text.encode()).hexdigest()[:8]}": {{"params": {text}}}}}\n'


NOW, NAMED = HEADER + ROW, named({})
BY_METHOD = {  # rows, settings and what made them
    "good": (NOW, NAMED),
    "missing": (NOW, ""),
    "other": (NOW, NAMED.replace("{}", '{"a": 1}')),
    "unnamed": (NOW.replace("44136fa3", "0" * 8), NAMED),
    "cut": (NOW, NAMED[:-4]),
    "deep": (NOW, "[" * 100_000),
    "ours": (NOW, f"<<<<<<< ours\n{NAMED}"),
    "short": (NOW[: NOW.index("44136fa3")] + "\n", NAMED),
    "jobs": (NOW, NAMED, "a,b\n"),
    "no-object": (NOW, named([])),
    "no-parameter": (NOW, named({"=a": 1})),
    "no-group": (NOW, named({"codes": "own", "group": "pairs"})),
    "no-draw": (NOW, named({"codes": "own", "draws_nothing": 1})),
    "no-label": (NOW, named({"codes": "own", "label": 5})),
    "version-99": (NOW.replace("0123,1", "0123,99"), NAMED),
}


def lay_out(folder):
    """Lay out files, good and bad."""
    rng = np.random.default_rng(0)
    codes = rng.random((6, 8)) < 0.5
    arrays = {
        "codes": codes,
        "wide": rng.random((6, 16)) < 0.5,
        "few": codes[:3],
        "flat": codes[0],
        "none": codes[:0],
        "threes": np.where(codes, 3, 0),
        "mixed": np.where(codes, 1, -1) * (np.arange(8) > 0),
        "nan": np.where(codes, np.nan, 1.0),
        "signs-nan": np.where(np.arange(48).reshape(6, 8) == 28, np.nan, np.where(codes, 1, -1)),
        "mask-nan": np.where(np.arange(48).reshape(6, 8) == 28, np.nan, np.where(codes, 255, 0)),
        "inf": np.where(codes, np.inf, -1.0),
        "complex": codes.astype(complex),
        "words": codes.astype(str),
        "masks": np.where(codes, 255, 0).astype(np.uint8),
        "labels": np.arange(6) % 2,
        "float-labels": np.arange(6) / 2,
        "word-labels": np.array(list("aabbcc")),
        "blank-labels": np.array(["c3 "] * 6),
        "other-labels": np.array(["c1", "c3"] * 3),
        "latin-labels": np.char.encode(list("aabbcß"), "latin1"),
        "small-hashes": np.arange(2, 8),
        "huge-labels": np.array([2**63, 1, 2, 3, 4, 5], dtype=np.uint64),
        "far-labels": np.array([1e300, 2e300, 1, 2, 3, 4]),
        "short-labels": np.arange(5) % 2,
        "hot": np.eye(6, dtype=np.uint8),
        "hot-4": np.eye(6, 4, dtype=np.uint8),
        "turned": codes.T,
        "hot-on-side": np.ones((4, 6), dtype=int),
        "hot-twos": 2 * np.eye(6, dtype=np.uint8),
        "hexes": np.array([["0f"]] * 6),
        "coarse": np.zeros(6, dtype=int),
        "crossed": np.array([0, 0, 0, 1, 1, 1]),
        "levels": np.eye(6, dtype=int),
        "levels-negative": -2 * np.eye(6, dtype=int),
        "levels-of-signs": 2 * np.eye(6, dtype=int) - 1,
        "levels-ignored": np.pad(np.full((1, 6), -1), ((2, 3), (0, 0))),
        "groups": np.array([0, 0, 1, 1, 2, 2]),
        "other-ids": np.arange(6) + 100,
        "levels-half": np.eye(6) / 2,
        "levels-minus-half": -np.eye(6) / 2,
        "levels-many": np.linspace(0, 1, 1601)[None],
        "levels-nan": np.full((6, 6), np.nan),
        "levels-2000": 2000 * np.eye(6, dtype=int),
        "levels-5": np.eye(5, dtype=int),
        "neighbours": np.arange(18).reshape(6, 3) % 6,
        "outputs": rng.normal(size=(6, 8)),
        "zero-outputs": np.zeros((6, 8)),
        "X": rng.normal(size=(40, 4)),
        "X-nan": np.where(np.arange(160).reshape(40, 4) == 7, np.nan, 1.0),
        "X-huge": np.full((40, 4), 1e200),
        "X-flat": rng.normal(size=40),
        "X-turned": rng.normal(size=(4, 40)),
        "hot-turned": np.ones((3, 40), dtype=int),
        "X-words": np.full((40, 4), "a"),
        "y": np.arange(40) % 4,
        "word-y": np.array(list("abcd" * 10)),
        "y-other": np.arange(40) % 4 + 7,
        "rows-40": np.arange(5) * 10,
        "rows-negative": np.array([3, -1]),
        "rows-twice": np.array([3, 4, 3]),
        "rows-far": np.array([1e300]),
        "rows-few": np.arange(3),
        "rows-none": np.arange(0),
        "rows-half": np.array([0.5, 1]),
        "rows-mask": np.arange(40) < 5,
        "y-nan": np.where(np.arange(40) == 3, np.nan, 1.0),
        "twice_08": codes,
        "twice_8": codes,
        "far_4294967296": codes,
        "o_9": np.ones((6, 8)),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.save(folder / "objects.npy", np.array([{}, 1], dtype=object), allow_pickle=True)
    np.save(folder / "object-labels.npy", np.array(list("aabbcc"), dtype=object), allow_pickle=True)
    np.savez(folder / "object-labels.npz", y=np.array(list("aabbcc"), dtype=object))
    np.savez(folder / "two.npz", a=codes, b=codes)
    np.savez(folder / "grid_8_0.npz", query=codes, database=codes)
    np.tile(np.array([1, 99], np.int32), (6, 1)).tofile(folder / "far.ivecs")
    whole = (folder / "codes.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-5])
    (folder / "text.npy").write_text("hello")
    (folder / "empty.npy").touch()
    (folder / "header.npy").write_bytes(whole[:6] + b"\x01\x00\x76\x00" + b"{'descr': 'x" + whole[22:])
    (folder / "archive.npy").write_bytes((folder / "two.npz").read_bytes())
    (folder / "text.npz").write_text("hello")
    (folder / "cut.npz").write_bytes((folder / "two.npz").read_bytes()[:100])
    eye = sp.csr_array(np.eye(6, dtype=np.int8))
    sp.save_npz(folder / "csr.npz", eye)
    for name, change in {
        "shifted": {"indices": eye.indices - 5},
        "beyond": {"indices": eye.indices + 1},
        "pointer": {"indptr": np.array([0, 1, 2, 3, 4, 10**6, 6])},
        "less": {"data": eye.data[:3]},
    }.items():
        parts = {"data": eye.data, "indices": eye.indices, "indptr": eye.indptr, **change}
        np.savez(folder / f"csr-{name}.npz", format=b"csr", shape=(6, 6), **parts)
    for number, text in enumerate(STUDIES):
        (folder / f"study-{number}.toml").write_text(text)
    (folder / "misspelt.toml").write_text('bits = 8\nmethods = ["itq", "lsh"]\n[params]\nn_itr = 5\n')
    (folder / "cell.csv").write_text("a,b\n" + "1,2\n" * 20 + "1.2.3,4\n" + "1,2\n" * 20)
    (folder / "rows.csv").write_text("0\n3\n")
    (folder / "semicolons.csv").write_text("file;phash;label\na;ff;1\nb;0f;2\n")
    (folder / "hash-gap.csv").write_text("hash,file\nff,a\n,b\n0a,c\n")
    (folder / "nameless.csv").write_text("a\nb\na\nb\na\nb\n")
    (folder / "nameless-40.csv").write_text("a\nb\n" * 20)
    (folder / "nameless-pair.csv").write_text("img0,a\nimg1,b\nimg2,a\nimg3,b\nimg4,a\nimg5,b\n")
    (folder / "rows-of-bits.txt").write_text("0 1 0 1 1 0 0 1\n" * 6)
    (folder / "zeros.csv").write_text("hash\n0012\n0013\n")
    (folder / "headless.csv").write_text("00ff\n0a12\nff00\n")
    (folder / "id.csv").write_text("id,a,b\n" + "7,0.5,1.5\n" * 40)
    (folder / "named-hashes.csv").write_text("id,hash\na,00\nb,01\nc,ff\n")
    (folder / "twice-named.csv").write_text("id,hash\na,00\nb,01\na,ff\n")
    (folder / "pairs.csv").write_text("first,second,same\na,b,1\na,c,0\n")
    (folder / "pairs-both.csv").write_text("first,second,same\na,b,1\nb,a,0\n")
    (folder / "pairs-none.csv").write_text("first,second,same\n")
    (folder / "pairs-maybe.csv").write_text("first,second,same\na,b,maybe\n")
    (folder / "label-gap.csv").write_text("label,file\na,1\nb,2\n,3\na,4\nb,5\na,6\n")
    (folder / "bit-gap.csv").write_text("a,b,c,d,e,f,g,h\n" + "1,0,0,1,1,0,1,0\n,0,1,1,0,0,1,0\n" * 3)
    (folder / "mixed.csv").write_text("1,a\n2,b\n")
    (folder / "head.csv").write_text("label\n")
    (folder / "gaps.csv").write_text("label\n" + 20 * "a\nNA\n")
    (folder / "empty.csv").touch()
    for suffix in ("csv", "txt"):
        (folder / f"latin.{suffix}").write_bytes("label\ncafé\n".encode("latin-1"))
    for name in ("tabs.tsv", "pickle.pkl"):
        (folder / name).write_bytes(b"a")
    (folder / "twice.json").write_text('{"shards": ["codes.npy", "codes.npy"]}')
    (folder / "text.pt").write_text("hello")
    (folder / "pickle.pt").write_bytes(pickle.dumps({"codes": codes}))
    (folder / "long.gz").write_bytes(gzip.compress(b"a" * 1_000_000))
    (folder / "run.txt").write_text("q Q0 a 1 2.5 r\nq Q0 b 2 1 r\n")
    (folder / "run-up.txt").write_text("q Q0 a 1 0 r\nq Q0 b 2 1 r\n")
    (folder / "qrels.txt").write_text("q 0 a 1\n")
    (folder / "qrels-half.txt").write_text("q 0 a 0.5\n")
    (folder / "qrels-other.txt").write_text("Q 0 a 1\n")
    for name in ("grid", "rows", "no-grid", "pipes"):
        (folder / f"tuning-{name}").mkdir()
    (folder / "tuning-rows" / "digits.csv").write_text(RESULTS["above"])
    (folder / "tuning-grid" / "grid.toml").write_text('bits = 8\nmethods = ["itq"]\n')
    (folder / "tuning-no-grid" / "grid.toml").mkdir()
    os.mkfifo(folder / "tuning-pipes" / "grid.toml")
    (folder / "text.h5").write_text("hello")
    (folder / "empty.h5").touch()
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["a"] = [1]
    (folder / "folder.npy").mkdir()
    (folder / "dangling.npy").symlink_to(folder / "nowhere")
    for name in ("loop", "loop.csv", "loop.npy"):
        (folder / name).symlink_to(name)
    os.mkfifo(folder / "pipe.npy")
    (folder / "before").mkdir()
    (folder / "before" / "digits.csv").write_text(NOW.replace("settings", "params").replace("44136fa3", "{}"))
    files = {f"r/{name}": (text, NAMED) for name, text in RESULTS.items()}
    files |= {f"n/{name}": texts for name, texts in BY_METHOD.items()}
    for name, (rows, settings, *jobs) in files.items():
        place = folder / name / "digits"
        place.mkdir(parents=True)
        (place / "itq.csv").write_text(rows, newline="", errors="surrogateescape")
        if settings:
            (place / "itq.settings.json").write_text(settings)
        for text in jobs:
            (place / "itq.jobs.csv").write_text(text)


OWN = "evaluate --query-codes codes.npy --database-codes codes.npy"
OF_LABELS = "--query-labels labels.npy --database-labels labels.npy"
LABELLED = f"{OWN} {OF_LABELS}"
OF = LABELLED.removeprefix("evaluate ")
OF_CODES = OWN.removeprefix("evaluate ")
OF_SHARDS = f"--query-codes codes.npy --database-codes code[s].npy {OF_LABELS}"
EXPLAINED = LABELLED.replace("evaluate", "explain")
SHARDED = f"evaluate {OF_SHARDS}"
GROUPS = "--groups groups.npy groups.npy"
COARSE = "--coarse coarse.npy coarse.npy"
GRID = "evaluate --query-codes grid_{bits}_{seed}.npz:query --database-codes grid_{bits}_{seed}.npz:database"
SAVED_GRID = f"{GRID.replace('evaluate', 'save mine')} --dataset flowers"
VECTORS = "--vectors outputs.npy outputs.npy"
OF_WORDS = "prepare --from X.npy --labels word-y.npy --name mine"
INDEXED = "prepare --from X.npy --query-from X.npy --name mine --train-index"
EXPLAINED_RUN = "explain --run run.txt qrels.txt"
RUN = "evaluate --run run.txt qrels.txt"
ITQ = "run --method itq --bits 8"
LONG = "a" * 300
COMMANDS = f"""
2 | run | Missing option '--method' / '-m'. `hashbench list methods`
2 | run --method itq | Missing option '--bits'. Such as --bits 32.
2 | lst | No such command 'lst'. Did you mean 'list'?
2 | xyz | No such command 'xyz'. Commands: candidates, check, compare, diff,
2 | list method | Did you mean 'methods'?
2 | run itq --bits 8 | Got unexpected extra argument (itq). Did you mean --method itq?
2 | tune digits-pairs itq --bits 8 | arguments (digits-pairs itq). Did you mean --dataset digits-pairs?
2 | run no-method --bits 8 | Got unexpected extra argument (no-method)
2 | {ITQ} --seed 0,1 | repeat the option: --seed 0 --seed 1.
2 | {ITQ} --metric 'AP, P@10' | repeat the option: --metric AP --metric P@10.
2 | plot -m itq,lsh | repeat the option: --method itq --method lsh.
1 | {ITQ} --param n_iter=True | itq got n_iter=True, but n_iter is not a switch
1 | {ITQ} --param n_iter={"9" * 30} | itq got n_iter beyond 1e+18
1 | run --method dpsh --bits 8 --param learning_rate=1e300 | dpsh got learning_rate beyond
1 | {ITQ} --metric AP@{"9" * 5000} | metric 'AP@99999999999999999'... has 5,003 characters, at most 100
1 | {ITQ} --metric {LONG} | metric {LONG[:20]!r}... has 300 characters
1 | {ITQ} --dataset {LONG} | cannot use {LONG[:20]}... of | characters
1 | info {LONG} | cannot use {LONG[:20]}... of | characters
1 | info itqq | Did you mean 'itq'? See: hashbench list
1 | info Digits | Did you mean 'digits'?
1 | info rprec | Did you mean 'RPrec'?
1 | info NDGC@100 | Did you mean 'NDCG@100'?
1 | info Recal@10 | Did you mean 'Recall@10'?
1 | info cifar10-s4 | Did you mean 'cifar10-s3'?
1 | run --method iqt --bits 8 | unknown method 'iqt' | 'itq'
1 | run --method ITQ --bits 8 | unknown method 'ITQ' | 'itq'
1 | run --method '' --bits 8 | unknown method ''
1 | run --method {"x" * 300} --bits 8 | unknown method
1 | {ITQ} --dataset digts --dry-run | unknown dataset 'digts' | 'digits'
1 | {ITQ} --dataset digts | unknown dataset 'digts' | 'digits'
1 | {ITQ} --dataset digits:gist | unknown feature kind 'digits:gist'
1 | {ITQ} --dataset nowhere.h5 | there is no file nowhere.h5
1 | {ITQ} --dataset text.h5 | text.h5 | not HDF5
1 | {ITQ} --dataset empty.h5 | empty.h5 is damaged, or was not written by hashbench: it is not HDF5
1 | {ITQ} --dataset foreign.h5 | was not written by hashbench
1 | {ITQ} --dataset codes.npy | codes.npy is damaged, or was not written by hashbench: it is not HDF5
1 | {ITQ} --metric APP | unknown metric 'APP' | 'AP'
1 | {ITQ} --metric P@ | unknown metric 'P@'. Did you mean 'P@k'
1 | {ITQ} --metric recall10 | unknown metric 'recall10'. Did you mean 'R@10'?
1 | {ITQ} --metric Recall@10:rerank=100 | Did you mean 'R@10:reranked=100'?
1 | {ITQ} --metric mAP:reranked100 | unknown metric 'mAP:reranked100'. Did you mean
1 | {ITQ} --metric Recall@10:reranked | has option 'reranked'; options of R@k: reranked=m, dot, sigmoid.
1 | {ITQ} --metric AP@10:reranked=20:capped | unknown metric | Did you mean 'AP@10:capped:reranked=20'? Known
1 | {ITQ} --metric AP@10:dot:capped | Did you mean 'AP@10:capped:dot'? Known
1 | {ITQ} --metric AP@10:dot:cap | unknown metric 'AP@10:dot:cap'.
1 | {ITQ} --metric P@0 | metric 'P@0' has cutoff 0
1 | {ITQ} --metric P@1.5 | unknown metric 'P@1.5'
1 | {ITQ} --metric P_5.5 | unknown metric 'P_5.5'. Known
1 | {ITQ} --metric P_0 | metric 'P_0' has cutoff 0
2 | run --method itq --bits eight | 'eight' is not a valid integer
1 | run --method itq --bits 0 | codes must have 1 to 4096 bits, got 0.
1 | run --method itq --bits 100000 | codes must have 1 to 4096 bits, got 100000.
1 | run --method itq --bits 100 | itq needs n_bits <= 61 | 64 features | got n_bits=100
1 | run --method pcah --bits 100 | pcah | n_bits=100 | --bits 61
1 | run --method oracle-label --bits 3 | oracle-label needs 4 bits | 10 classes | n_bits=3
2 | {ITQ} --seed -1 | '--seed': -1 is not in the range 0<=x<=4294967295
2 | {ITQ} --seed 4294967296 | '--seed': 4294967296 is not in the range 0<=x<=4294967295
1 | {ITQ} --param n_iter | name=value
1 | {ITQ} --param =3 | name=value
1 | {ITQ} --method lsh --param n_itr=20 | unknown itq or lsh parameter 'n_itr'. Did you mean 'n_iter'?
1 | {ITQ} --method lsh --param lsh:n_iter=20 | unknown lsh parameter 'n_iter'
1 | run --grid misspelt.toml | unknown itq or lsh parameter 'n_itr'. Did you mean 'n_iter'?
1 | run --grid misspelt.toml --method lsh | unknown lsh parameter 'n_itr'
1 | {ITQ} --param n_iter=-1 | 'n_iter' parameter of itq must be an int in the range [0, inf). Got -1
1 | {ITQ} --param n_iter=1.5 | 'n_iter' parameter of itq must be an int | Got 1.5
1 | {ITQ} --param n_iter=[1] | 'n_iter' parameter of itq must be an int | Got [1]
1 | {ITQ} --param n_iter=20, | comma with nothing before or after it
1 | {ITQ} --param n_iter=20,many | 'n_iter' parameter of itq must be an int | Got 'many'
1 | {ITQ} --param n_iter=20 --param n_iter=50 | 'n_iter' twice; for several values write n_iter=20,50
1 | {ITQ} --param ksh:n_items=5000 | n_items is only for ksh, and the methods here are itq | --method ksh
1 | {ITQ} --param tuned=9 --dry-run | unknown itq parameter 'tuned'
1 | {ITQ} --param itq:tuned=9 --dry-run | unknown itq parameter 'tuned'
1 | {ITQ} --param itq:n_itr=3 | unknown itq parameter 'n_itr'. Did you mean 'n_iter'
2 | {ITQ} --bits 16,32 | '16,32' holds several; repeat the option: --bits 16 --bits 32
1 | run --grid nowhere.toml | there is no file nowhere.toml
1 | run --grid codes.npy | cannot read codes.npy as TOML
2 | run --grid r | '--grid': File 'r' is a directory
1 | run --grid pipe.npy | pipe.npy is a pipe
1 | run --grid empty.csv | empty.csv names no methods | --method
1 | run --grid empty.csv --method itq | empty.csv names no bits | --bits
1 | {ITQ} --preset paper | none of itq has a preset, got 'paper'
1 | {ITQ} --param n_bits=16 | n_bits is not a --param | --bits
1 | {ITQ} --param random_state=1 | random_state is not a --param | --seed
1 | {ITQ} --dataset cifar10 | unknown dataset 'cifar10' | 'cifar10-s1' or 'cifar10-s2'
1 | {ITQ} --validation 0.1 | none of itq has a validation, got 0.1
2 | {ITQ} --validation nan | '--validation': nan is not in the range 0<=x<=0.5
2 | {ITQ} --validation 0.9 | '--validation': 0.9 is not in the range 0<=x<=0.5
1 | {ITQ} --device cpu | none of itq has a device, got 'cpu'
2 | {ITQ} --format xml | '--format': 'xml' is not one of
2 | {ITQ} --results codes.npy | '--results': Directory 'codes.npy' is a file
2 | {ITQ} extra | unexpected extra argument
2 | {ITQ} --no-such-option | No such option
1 | run --method dpsh --bits 8 --param learning_rate=-1 | 'learning_rate' parameter of dpsh must be a float | Got -1
1 | run --method dpsh --bits 8 --param epochs=0 | 'epochs' parameter of dpsh must be an int in the range [1, inf). Got 0
1 | run --method dpsh --bits 8 --param head=lineer | 'head' parameter of dpsh must be a str among | Got 'lineer'
1 | run --method dpsh --bits 8 --preset papers | unknown dpsh preset 'papers'. Did you mean 'paper'
1 | run --method dpsh --bits 8 --param backbone=resnet18 | dpsh with a backbone reads images | digits:images
1 | run --method dsh --bits 8 --param backbone=dsh-net --param weights=X.npy | weights, which is for pretrained networks
1 | run --method dsh --bits 8 --param backbone=dsh-net --param train_from=conv2 | got train_from | from random weights
2 | encode --method itq | Missing option '--bits'
2 | encode --method itq --bits 8 --packed | --packed needs --model
2 | encode --model none.npz --from X.npy --output o.npy --seed 1 | --seed does not go with
2 | encode --model none.npz --from X.npy --output o.npy --keep-model | --keep-model does not go with
2 | encode --model none.npz | --model goes with --from
1 | encode --model none.npz --from none.npy --output o.npy | there is no file none.npz
2 | encode --model none.npz --from none.npy --output o.csv | --output o.csv is written | a name that ends in .npy.
2 | encode --model none.npz --from X.npy:k --output nowhere/../X.npy | X.npy is read and would be overwritten
1 | export none.npz --to onnx --output o.onnx | there is no file none.npz
1 | export text.npy --to npy --output o.npy | text.npy is neither codes nor a model | .h5 | .model.h5 file of encode
1 | export text.h5 --to onnx --output o.onnx | text.h5 is neither codes nor a model that hashbench kept; export takes
1 | {ITQ} --results codes.npy/r | cannot write codes.npy/r/digits/itq.csv: Not a directory
1 | prepare cifar10-s1 --source loop | cannot read loop: Too many levels
1 | {ITQ} --results r/conflict | line 2, is a conflict marker | <<<<<<< HEAD | lines of both sides
1 | tables --results before | before/digits.csv is in the layout before version 0.1 | Move it out
1 | results check before | no longer reads. Move it out of the folder of results, and run again.
2 | results merge | Missing argument 'FOLDER...'
2 | results merge nowhere --results n/good | Directory 'nowhere' does not exist
1 | results merge n/missing --results n/good | itq.settings.json is missing
1 | results info digits lsh --results r/good | there are no results of 'lsh' on 'digits' in r/good
1 | results info digits itq --results n/good | does not record the origin of the 1 job of itq on digits
1 | results info digits itq --results n/jobs | itq.jobs.csv has columns a,b
1 | {ITQ} --results n/missing | itq.settings.json is missing, which holds the parameters
1 | diff n/good n/missing/digits/itq.csv | itq.settings.json is missing
1 | results check n/other | 44136fa3 is not what hashbench calls the parameters {{"a": 1}}
1 | report --results n/unnamed --output r.html | line 2: settings 00000000 are not in the file of settings
1 | plot ap-bits --results n/cut | itq.settings.json holds no settings
1 | tables --results n/deep | itq.settings.json holds no settings
1 | tables --results n/ours | itq.settings.json, line 1, is a conflict marker of git
1 | {ITQ} --results n/short | itq.csv, line 2: it has 4 cells, expected 15
1 | {ITQ} --results n/jobs | itq.jobs.csv has columns a,b
1 | {ITQ} --results n/version-99 | itq.csv has rows of version 99 of itq, and those to add are of version 1. Upgrade itq
1 | save a.jobs {OF} --dataset d | 'a.jobs' would write | another name
1 | {ITQ} --results r/marker | line 3, is a conflict marker | --ours
1 | {ITQ} --results r/bom | byte order mark | UTF-8 without
1 | {ITQ} --results r/crlf | lines that end in CR LF | eol=lf
1 | {ITQ} --results r/lacking | has columns dataset,
1 | {ITQ} --results r/swapped | has columns | expected
1 | {ITQ} --results r/newer | has more in its header | Upgrade hashbench
1 | {ITQ} --results r/short | line 2: it has 3 cells, expected 15
1 | {ITQ} --results r/long | line 2: it has 16 cells, expected 15
1 | {ITQ} --results r/no-number | line 2: could not convert string to float: 'half'
1 | {ITQ} --results r/no-length | line 2: invalid literal for int() with base 10: 'sixteen'
1 | {ITQ} --results n/no-object | itq.settings.json holds no settings
1 | {ITQ} --results r/out | line 2: column dataset | 'x/../../..' | names files
1 | {ITQ} --results r/out-method | line 2: column method | got '../itq'
1 | {ITQ} --results n/version-99 --dry-run | has rows of version 99 of itq, and those to add are of version 1
1 | {ITQ} --results r/no-results --dry-run | is not a results file | none of the columns dataset,features,method | Give
1 | diff text.npy r/good | text.npy is not a results file
1 | report --results r/good --against text.npy --output r.html | text.npy is not a results file
1 | report --results r/good --output r.pdf | r.pdf ends in .pdf as other files do | give r.html
1 | report --results r/good --output text.npy | text.npy is another kind of file | give text.html
1 | report --results r/good --output folder --thumbnails | no dataset of images | cifar10-s1:images
1 | {ITQ} --results r/empty | has columns none
1 | {ITQ} --results r/binary | digits/itq.csv
1 | tables --results nowhere | there are no results in nowhere
1 | tables table9 --results r/good | unknown table 'table9'
1 | tables table3 --results r/good | no results for table3
2 | tables --results r/good --output r/good | folder of the results
1 | plot --results nowhere | there are no results in nowhere
1 | plot ap-bit --results r/good | unknown figure 'ap-bit' | 'ap-bits'
1 | plot ap-bits --results r/good --metric APP | unknown metric 'APP'
1 | plot ap-bits --results r/good --metric NDCG | no results in NDCG | AP
1 | plot ap-bits --results r/good --method iqt | no results of method 'iqt'. Did you mean 'itq'
1 | plot ap-bits --results r/good --dataset digit | no results of dataset 'digit'. Did you mean 'digits'
1 | plot ap-bits --results r/good --bits 9 | no results in AP at 9 bits
1 | diff nowhere r/good | 'nowhere' is neither
1 | diff r/good nowhere | 'nowhere' is neither
1 | diff '' r/good | '' is neither a file nor a folder
2 | diff r/good r/good --fail-on-drop nan | '--fail-on-drop': nan is not in the range x>=0.
2 | plot --results r/good --width nan | '--width': nan is not in the range 2.5<=x<=30.
2 | thresholds | give CODES.h5, or both --query-codes
1 | {LABELLED.replace("evaluate", "thresholds").replace("codes.npy", "few.npy", 1)} | 3 query codes | for 6
2 | {LABELLED.replace("evaluate", "thresholds")} -o codes.npy | 'codes.npy' must end in .svg, .png or .pdf
2 | {LABELLED.replace("evaluate", "thresholds")} --fpr 2 | '--fpr': 2.0 is not in the range 0<=x<=1.
2 | {LABELLED.replace("evaluate", "thresholds")} --fpr nan | '--fpr': nan is not in the range 0<=x<=1.
2 | {LABELLED.replace("evaluate", "thresholds")} --precision nan | '--precision': nan is not in the range 0<=x<=1.
2 | {LABELLED.replace("evaluate", "thresholds")} --corpus-size 1 | '--corpus-size': 1 is not in the range x>=2.
2 | {LABELLED.replace("evaluate", "thresholds")} --pairs pairs.csv | --query-labels does not go with --pairs.
2 | thresholds --pairs pairs.csv | --pairs needs --database-codes
2 | thresholds --database-codes 'c*.npy' --pairs pairs.csv | --pairs needs codes in one file each
1 | thresholds --database-codes codes.npy --pairs pairs.csv | 'a', expected one of the row numbers | name a column or
1 | thresholds --database-codes named-hashes.csv --pairs codes.npy | from a table such as .csv or .parquet, got
1 | thresholds --database-codes named-hashes.csv --pairs rows.csv | rows.csv has 1 column, expected three: two ids
1 | thresholds --database-codes named-hashes.csv --pairs pairs-none.csv | pairs-none.csv has a header and no pairs.
1 | thresholds --database-codes named-hashes.csv --pairs pairs-maybe.csv | has 'maybe', expected 0 or 1.
1 | thresholds --database-codes named-hashes.csv --pairs pairs-both.csv | items 0 and 1 of the codes (counted
1 | thresholds --database-codes named-hashes.csv --pairs pairs.csv --held-out | 3 items are too few to choose a radius
1 | thresholds --database-codes twice-named.csv --pairs pairs.csv | has 2 distinct ids in 3 rows for 3 codes.
2 | diff r/good r/good --fail-on-drop -0.1 | -0.1 is not
1 | tables --results r/above | line 2: value 1.5, low 0.4 and high 0.6 are not all between 0 and 1
1 | {ITQ} --results r/infinite | value inf
1 | diff r/good r/outside | value 0.7 lies outside its range over tie orders, 0.4 to 0.6
1 | tables --results r/large-sd | line 2: tie_sd 0.11 is not between 0 and half of the range, 0.4 to 0.6
1 | diff r/good r/negative-sd | line 2: tie_sd -0.01 is not between 0 and half of the range
1 | tables --results r/undefined | 201 of 200 queries are undefined
1 | tables --results r/no-queries | 0 of 0 queries are undefined
1 | tables --results r/nan | value is nan, 0.4 to 0.6, though 197 of 200 queries have a score
1 | tables --results r/version | method_version -1
1 | prepare digits --device cpu | digits:pixels does not use --device
1 | prepare --from X.npy --labels y.npy --name mine --affinity distance | --labels have no effect
1 | prepare --from X.npy --query-from X.npy --name mine --seed 7 | --seed 7 has no effect
1 | prepare --from X.npy --labels y.npy --name mine --neighbours 3 | --neighbours compares features, so --labels
1 | prepare --from X.npy --name mine --affinity neighbours | --neighbours K go together
1 | prepare --from X.npy --name mine --affinity distance --neighbours 3 | got --affinity distance with --neighbours 3
1 | prepare --from X.npy --name mine --neighbour-ties all | --neighbour-ties all needs --neighbours K; add it
2 | prepare digits --neighbour-ties all | --neighbour-ties needs --from
1 | prepare --from X.npy --name mine --neighbours 37 | 36 database items, 37 neighbours of each query
1 | prepare --from X.npy --name mine --true-distance cosine | Euclidean distance
1 | results check r/formula | column features must begin with none of =+-@, got '=1+1'. Rename it.
1 | results check n/no-group | itq.settings.json holds no settings: unknown group 'pairs'. Did you mean 'pair-based'?
1 | results check n/no-label | itq.settings.json holds no settings: a label is | without =<>|`, got 5
1 | save mine {OF} --dataset own --group pairs | unknown group 'pairs'. Did you mean 'pair-based'?
1 | save mine {OF} --dataset own --label =1 | a label is a string of up to 40 characters without =<>|`, got '=1'
1 | save mine {OF} --dataset own --label '<b>' | a label is a string of up to 40 characters | got '<b>'
1 | save mine {OF} --dataset own --label '' | a label must be words
1 | save mine {OF} --dataset own --label ITQ | 'ITQ' is the name of a method
1 | save mine {OF} --dataset own-unseen3 | without a fold; add one, such as own-unseen3-fold0.
1 | save Öurs {OF} --dataset own | letters a to z and A to Z, digits
1 | {LABELLED.replace("codes.npy", "semicolons.csv:phash", 1)} | separates columns by ';', expected commas
1 | {LABELLED.replace("codes.npy", "hash-gap.csv:hash", 1)} | strings, and row 1 (the first is 0) is empty, expected
1 | {LABELLED.replace("codes.npy", "hexes.npy", 1)} | query codes are strings, database codes a column for each bit
1 | {LABELLED.replace("codes.npy", "zeros.csv", 1)} | strings of hexadecimal digits or of 0 and 1
1 | {LABELLED.replace("codes.npy", "headless.csv", 1)} | the first line of headless.csv reads like a code
1 | {LABELLED.replace("codes.npy", "bit-gap.csv", 1)} | row 1, column 0 (counted from 0). | Fill empty cells
1 | {OWN} --query-labels label-gap.csv:label --database-labels label-gap.csv:label | first item 2 (counted from 0)
1 | {OWN} --query-labels nameless.csv --database-labels labels.npy | for 5 of 6 items | put a line of names above it.
1 | prepare --from X.npy --labels nameless-40.csv --name mine | for 39 of 40 items | read as names. If that line
1 | {OWN} --query-labels nameless-pair.csv --database-labels labels.npy | columns img0, a; name one of them | If
1 | {OWN} --query-labels label-gap.csv:x --database-labels labels.npy | unknown column 'label-gap.csv:x'. Known columns
1 | {LABELLED.replace("codes.npy", "rows-of-bits.txt", 1)} | holds 8 numbers, expected one code or label.
1 | prepare --from id.csv --name mine --neighbours 3 | column 'id' of id.csv is named like an identifier. Remove it
2 | {LABELLED} --label Ours | No such option '--label'
1 | results check n/no-parameter | itq.settings.json holds no settings: params has '=a', expected names of parameters
1 | results check n/no-draw | itq.settings.json holds no settings: draws_nothing is true or left out, got 1
1 | evaluate --query-codes masks.npy --database-codes codes.npy {OF_LABELS} | from 0 to 255: packed codes, | --bits
1 | {OWN} --query-labels y-nan.npy --database-labels labels.npy | not whole numbers, first nan for item 3 | Leave such
2 | {RUN} --dataset digits | --dataset does not go with --run
2 | {RUN} --curves curves.csv | --curves does not go with --run
2 | {RUN} --distance cosine | --distance does not go with --run
2 | evaluate codes.h5 {RUN.partition(" ")[2]} | CODES.h5 does not go with --run
2 | evaluate --complete | --complete needs --run
1 | {RUN.replace("qrels.txt", "nowhere.txt")} | there is no file nowhere.txt
1 | {RUN.replace("qrels.txt", "run.txt")} | run.txt line 1 has 6 columns, expected 4 | those of a run
1 | {RUN.replace("run.txt", "long.gz")} | long.gz line 1 has 1 columns, expected 6
1 | {RUN.replace("run.txt", "run-up.txt")} | run-up.txt has scores that grow with the rank
1 | {RUN.replace("qrels.txt", "qrels-other.txt")} | no query in common
1 | {RUN.replace("qrels.txt", "qrels-half.txt")} | AP needs whole-number levels | one is 0.5 | Choose a form of NDCG
1 | {RUN} --metric P@r2 | P@r2 counts inside a radius of Hamming
1 | {RUN} --metric PairwiseError | counts the items below each relevant one
2 | evaluate | give CODES.h5
1 | on tcp://127.0.0.1:1 evaluate {OF} --query-outputs X.npy | workers count Hamming distances of codes
2 | on tcp://127.0.0.1:1 save mine {OF} | No such command 'save'
1 | on 127.0.0.1 evaluate {OF} | '127.0.0.1', expected the address of a scheduler
2 | on tcp://127.0.0.1:1 | Missing command.
1 | on tcp://scheduler.invalid:8786 evaluate {OF} | is another machine, and without TLS anyone there
2 | on tcp://127.0.0.1:1 run --method lsh --bits 4 --jobs 2 | runs one job on each worker
2 | evaluate --query-codes codes.npy | --database-codes
2 | evaluate foreign.h5 --query-codes codes.npy --database-codes codes.npy | --query-codes does not go with CODES.h5
1 | evaluate nowhere.h5 | no file nowhere.h5
1 | evaluate text.h5 | text.h5 is damaged, or was not written by hashbench: it is not HDF5
1 | evaluate empty.h5 | empty.h5 is damaged, or was not written by hashbench: it is not HDF5
1 | evaluate foreign.h5 | was not written by hashbench
1 | {OWN} | define what is relevant
1 | {OWN} --query-labels labels.npy | labels are needed for both: --query-labels and --database-labels
1 | {OWN} --query-labels labels.npy --database-labels labels.npy --affinity levels.npy | define what is relevant
1 | {OWN} --affinity levels.npy {COARSE} | superclasses (--coarse) need --query-labels
1 | {OWN} --query-labels other-labels.npy --database-labels blank-labels.npy | such as 'c3'; the nearest there is 'c3 '
1 | {OWN} --query-labels small-hashes.npy --database-labels labels.npy | no class of the queries
1 | thresholds {OWN[9:]} --query-labels small-hashes.npy --database-labels labels.npy | such as 2; the database has
1 | prepare --from X.npy --labels y.npy --name mine --query-from X.npy --query-labels y-other.npy | such as 7; the
1 | {OWN} --query-labels labels.npy --database-labels head.csv | labels or affinities for 0 database items
1 | {LABELLED} --groups short-labels.npy groups.npy | 5 query groups for 6 query items
1 | {OWN} --affinity levels-5.npy {GROUPS} | groups are found by class labels | Give labels (n,) of queries and
1 | {EXPLAINED.replace("labels.npy", "hot.npy")} {GROUPS} | groups are found by class labels
1 | {LABELLED} --junk-label 99 | no database item has the label 99 of junk
1 | {LABELLED} --junk-label ant | the label of junk is 'ant', and labels are whole numbers
1 | {OWN} --affinity levels-5.npy --junk-label 1 | junk is found by class labels
1 | {LABELLED} --exclude-self --junk-label 0 | themselves out are the database. Remove junk from
1 | {LABELLED} --exclude-same-id groups.npy other-ids.npy | no id of the queries is an id of the database
1 | {LABELLED} --exclude-self --exclude-same-id groups.npy labels.npy | but their ids differ. Give the same ids
1 | thresholds {LABELLED[9:]} --exclude-same-id short-labels.npy groups.npy | 5 query ids for 6 query items
1 | save mine {OF} {GROUPS} --dataset own --keep-codes | what --groups ignores; leave one of the two out
2 | {RUN} {GROUPS} | --groups does not go with --run
1 | {LABELLED} --coarse crossed.npy crossed.npy | several superclasses
1 | {LABELLED} --coarse coarse.npy few.npy | superclasses
1 | {LABELLED.replace("codes.npy", "turned.npy", 1)} | turned.npy has 8 rows and 6 columns, expected 6 rows
1 | {LABELLED.replace("query-codes codes", "query-codes turned")} --bits 6 | columns are the items, save it transposed
1 | {LABELLED.replace("database-labels labels", "database-labels hot-on-side")} | 4 rows and 6 columns, expected 6
1 | {LABELLED} --bits 7 | are booleans of shape (6, 8), a column for each bit, and codes of 7 bits have 7.
1 | {LABELLED} --bits 0 | codes must have 1 to 4096 bits, got 0.
1 | {LABELLED} --bits 99999 | codes must have 1 to 4096 bits, got 99999
1 | {LABELLED} --distance cosine --bits 8 | have no --bits
2 | {LABELLED} --distance euclidean | '--distance': 'euclidean' is not one of 'hamming', 'cosine', 'dot'
1 | {LABELLED} --dataset own | unknown dataset 'own'
1 | {LABELLED} --dataset digits | codes of 6 queries and 6 database items, but digits has 200 and 1,597
1 | {OWN} --query-labels QL.npy --dataset digits | labels are needed for both
1 | {SHARDED.replace("code[s]", "no-*")} | no file matches no-*.npy. Fix the pattern
1 | {SHARDED.replace("code[s]", "[cm]*s")} | masks.npy holds uint8 of shape | all shards need one dtype
1 | {SHARDED.replace("code[s].npy", "twice.json")} | codes.npy comes twice among the shards | Name each once
1 | {LABELLED.replace("codes.npy", "text.pt", 1)} | text.pt is damaged, or holds more than tensors | torch.save
1 | {LABELLED.replace("codes.npy", "pickle.pt", 1)} | pickle.pt is damaged, or holds more than tensors | torch.save
1 | {SHARDED.replace("code[s].npy", "text[.]pt")} | text.pt cannot be read in slices, as shards are
1 | {SHARDED.replace("labels labels", "labels short-labels")} | codes, but labels or affinities for 5
1 | {SHARDED.replace("database-labels labels", "database-labels hot")} | give both as class labels
1 | {SHARDED.replace("database-labels labels", "database-labels float-labels")} | not whole numbers
1 | {SHARDED.replace("labels labels", "labels word-labels")} {COARSE} | superclasses in shards are strings
1 | {SHARDED} --coarse coarse.npy short-labels.npy | and superclasses for 5
1 | {SHARDED} {COARSE.replace("coarse.npy", "crossed.npy")} | has items of several superclasses; it must lie in one
1 | {SHARDED.replace("codes codes", "codes zero-outputs", 1)} --distance cosine | all zeros in 6 rows
1 | {LABELLED} --true-distance cosine | is the distance between --vectors; add these
1 | {LABELLED} --metric Recall@10:reranked=100 | give --vectors, or in Python vectors=
1 | {LABELLED} {VECTORS} --metric AP | such as --metric Recall@10:reranked=100, or leave the vectors out
1 | {LABELLED} {VECTORS} --distance dot | --distance dot does not use
1 | {OWN} {VECTORS} --dataset digits | leave out --vectors
1 | {LABELLED} {VECTORS.replace("outputs", "X")} --metric Recall@10:reranked=100 | 40 query vectors for 6
1 | {ITQ} --metric P@r2:dot | ranks by real-valued queries (dot), and P@r2 needs Hamming distances
1 | {LABELLED} --metric AP:dot | give --query-outputs to hashbench evaluate
1 | {LABELLED} --query-outputs outputs.npy --metric AP | such as --metric AP:dot, or leave the outputs out
1 | {LABELLED} --query-outputs X.npy --metric AP:dot | one for each query and bit
1 | {LABELLED} --query-outputs outputs.npy --metric AP:dot --distance dot | leave one out
1 | {SHARDED} --query-outputs X.npy | one for each query and bit
2 | save mine {OF_SHARDS} --dataset own | codes are saved from one file
2 | save mine {OF} --dataset own --undefined paper | No such option '--undefined'
2 | save mine {OF} | Missing option '--dataset'
1 | save itq {OF} --dataset own | 'itq' is the name of a method
1 | save mine {OF} --dataset digits | codes of 6 queries and 6 database items, but digits has 200 and 1,597
1 | save mine {OF} --dataset DIGITS | 'digits' is a dataset with its own labels
1 | save ../mine {OF} --dataset own | the name of your codes may contain only letters | it names files
1 | save mine {OF} --dataset own --distance cosine --keep-codes | --keep-codes keeps binary codes
1 | {LABELLED} --bit-order big | a column for each bit, where the order of bits (big) has no effect
1 | {OWN.replace("codes.npy", "two.npz")} {OF_LABELS} | two.npz holds arrays a, b | two.npz:a
1 | {OWN.replace("codes.npy", "two.npz:c")} {OF_LABELS} | unknown array 'two.npz:c'. Known arrays: a, b
1 | {LABELLED} --metric P@r9 --distance cosine | P@r9 counts inside a radius of Hamming
1 | {LABELLED.replace("codes.npy", "wide.npy", 1)} --distance cosine | in wide.npy have 16 columns | in codes.npy 8
2 | {LABELLED} --per-query '' | '--per-query': the path is empty; give a name, or . for the folder
2 | {ITQ} --results '' | '--results': the path is empty; give a name, or . for the folder
2 | prepare --from '' --name mine | '--from': the path is empty; give the name of a file
2 | {LABELLED} --per-query r | directory
2 | {LABELLED} --per-query scores.xlsx | --per-query writes CSV, got scores.xlsx; name it scores.csv.
2 | candidates {OF} --wanted-recall 0 --metric R@5 | '--wanted-recall': 0.0 is not in the range 0<x<=1.
2 | candidates {OF} --wanted-recall .9 | Missing option '--metric'
2 | candidates {OF} --metric R@5 | Missing option '--wanted-recall'
1 | candidates {OF} --wanted-recall .9 --metric P@5 | for a recall such as R@10, got metric 'P@5'
1 | candidates {OF} --wanted-recall .9 --metric R@5:reranked=6 | such as R@10, got metric 'R@5:reranked=6'
1 | candidates {OF} --wanted-recall .9 --metric R@1 | a query has 3 relevant items, and R@1 counts | ask for R@3
2 | candidates {OF} --wanted-recall .9 --metric R@5 --save mine | No such option '--save'
1 | compare nowhere.npy {OF} | there is no file or folder nowhere.npy; give the other codes of the same items.
1 | compare codes.npy {OF_CODES} --junk-label 3 | got nothing to define what is relevant, expected one of
1 | compare wide.npy {OF} | the query codes have 8 bits and the other ones 16; both must be equally long.
1 | compare few.npy {OF} | there are 6 query codes and 3 other ones; give both codes of each item, in one order.
1 | compare codes.npy {OF.replace("codes.npy", "few.npy", 1)} | codes.npy would be the other codes of both
1 | compare n {OF} | there is no file n/codes.npy
1 | compare codes.npy {OF_CODES} --metric AP | got nothing to define what is relevant, expected one of
2 | compare old.h5 codes.npy --qrels qrels.txt --query-codes codes.npy | --query-codes does not go with --qrels
2 | compare codes.npy {OF} --format csv | in several tables, which --format csv cannot hold
2 | compare run.txt run.txt | run.txt is a file. Two runs need --qrels. To compare codes, give some as --query-codes
2 | compare itq lsh --encoding base64 | --encoding has no effect where methods are compared
2 | compare a.h5 b.h5 --bits 99 | --bits has no effect where two CODES.h5 are compared
2 | evaluate --run run.txt --metric AP | '--run': it takes two files, RUN QRELS, got run.txt and --metric.
2 | compare run.txt run.txt --qrels qrels.txt --by class | --by has no effect where two runs are compared
2 | compare codes.npy {OF} --results r | --results has no effect where codes are compared
2 | compare itq lsh --exclude-self | --exclude-self has no effect where methods are compared
2 | on tcp://127.0.0.1:1 {RUN} | workers count your own codes
2 | compare codes.npy wide.npy {OF} | give OTHER, one name, got 2 names.
2 | compare run.txt --qrels qrels.txt | give two files, got 1 names.
2 | compare codes.npy {OF} --bits 8 --bits 16 | codes have one --dataset and one --bits.
1 | compare run.txt nowhere.txt --qrels qrels.txt | there is no file nowhere.txt
1 | compare codes.npy {OF} --metric AQ | unknown metric 'AQ'
2 | {LABELLED} --curves x.jpg | 'x.jpg' must end in .svg, .png or .pdf, or in .csv for numbers.
2 | {LABELLED} --curves labels.npy | 'labels.npy' must end in .svg
1 | evaluate --query-codes folder.npy --database-codes codes.npy {OF_LABELS} | folder.npy is a folder, expected a file
1 | {OWN} --query-labels hot.npy --database-labels hot-4.npy | 6 classes | 4
1 | {OWN} --query-labels hot-twos.npy --database-labels hot-twos.npy | neither 0 nor 1
1 | {LABELLED.replace("codes.npy", "zero-outputs.npy")} --distance cosine | all zeros in 6 rows, first in row 0
1 | {LABELLED.replace("codes.npy", "nan.npy")} --distance cosine | not finite
1 | {LABELLED.replace("codes.npy", "complex.npy")} --distance cosine | real numbers
1 | evaluate codes.npy | codes.npy is not a CODES.h5 of hashbench | --query-codes
1 | explain codes.npy | codes.npy is not a CODES.h5 of hashbench | --query-codes
2 | explain | give CODES.h5, or both --query-codes
2 | explain foreign.h5 --bits 8 | --bits does not go with CODES.h5
1 | explain foreign.h5 | was not written by hashbench
1 | {EXPLAINED} --dataset digits | codes of 6 queries and 6 database items, but digits has 200 and 1,597
1 | {EXPLAINED.replace("codes.npy", "outputs.npy")} | not -1 or 1, first 0. | binarise with (x > 0)
2 | {EXPLAINED} --script csq,fire | holds several; repeat the option: --script csq --script fire
1 | {EXPLAINED} --database-order sorted | 'sorted', expected given, by-class, shuffled, or shuffled:7 with a seed
1 | {EXPLAINED} --database-order shuffled:-1 | 'shuffled:-1', expected given
1 | {EXPLAINED.replace(OF_LABELS, "--affinity levels.npy")} --database-order by-class | one class per item
1 | {EXPLAINED.replace(OF_LABELS, "--affinity levels-half.npy")} | explain needs whole-number levels | a threshold
1 | {EXPLAINED} --value abc | the value is 'abc', expected a score with two decimals or more, such as 0.731, or
1 | {EXPLAINED} --value 100.1 | the value is '100.1', expected a score
1 | {EXPLAINED} --value 7%% | the value is '7%%', expected a score
2 | prepare | name datasets to prepare
1 | prepare --dataset digts | unknown dataset 'digts'
2 | prepare --dataset digits --from X.npy --name mine | give your own
2 | prepare digits --fold 1 | --fold needs --unseen-classes
2 | prepare --from X.npy --name mine --unseen-classes 1 | prepare your own data first
1 | prepare digits --unseen-classes 1 --unseen-queries all | --unseen-database all
1 | info digits-unseen1-fold0:gist | unknown feature kind
2 | prepare digits --from X.npy --name mine | give your own
2 | prepare --from X.npy | give your own with both --from and --name
2 | prepare --name mine | --name needs --from
2 | prepare digits --labels y.npy | --labels needs --from
1 | prepare digts | unknown dataset 'digts'
1 | prepare digits --features gist | digits:gist
1 | prepare digits --source X.npy | does not use --source
1 | prepare digits --image-size 32 | does not use --image-size
1 | prepare cifar10-s1 --features gist --weights X.npy | cifar10-s1:gist does not use --weights
1 | prepare cifar10-s1:gits | Did you mean 'gist'? Known feature kinds
1 | prepare cifar10-s1 --features dsh-net | unknown feature kind 'cifar10-s1:dsh-net'
1 | prepare arrays | hashbench prepare --from features.npy --labels labels.npy --name mydata
1 | prepare none.h5 | unknown dataset 'none.h5'
2 | prepare digits --queries 5 | --queries needs --from
2 | prepare digits --query-from X.npy | --query-from needs --from
2 | prepare --from X.npy --name mine --queries 0 | '--queries': 0 is not in the range x>=1
2 | prepare --from X.npy --name mine --affinity hierarchy | 'hierarchy' is not one of
2 | prepare --from X.npy --name mine --features gist --features pixels | Give --features once
1 | prepare --from none --name mine --features gist | none is not a folder of images
1 | prepare --from X.npy --name mine --query-from nowhere.npy | there is no file nowhere.npy
2 | prepare digits --image-size 3 | '--image-size': 3 is not in the range 8<=x<=1024
1 | {OF_WORDS} --query-from X.npy --query-labels y.npy | database labels are words and the other labels numbers
1 | prepare --from codes.npy --labels far-labels.npy --name mine | 1e+300 | no longer differ
1 | prepare --from X.npy --labels y.npy --name mine --affinity shared-labels | of dataset 'mine' needs multi-hot
1 | prepare --from X.npy --name mine --affinity same-label | rule 'same-label' of dataset 'mine' needs class labels
1 | prepare --from X.npy --name mine --queries 40 | of 40 items, 40 queries and 1 training items
1 | prepare --from X.npy --name mine --train 400 | of 40 items, 4 queries and 400 training items
1 | prepare --from X.npy --labels y.npy --name mine --queries-per-label 3 --queries 3 | not both
1 | prepare --from X.npy --name mine --queries-per-label 3 | give --queries-per-label and labels
1 | prepare --from X.npy --name mine --query-labels y.npy | --query-from
1 | prepare --from X.npy --name mine --query-from codes.npy | 8 columns | 4
1 | prepare --from X-turned.npy --labels y.npy --name mine | X-turned.npy has 4 rows and 40 columns, expected 40 rows
1 | prepare --from X.npy --labels hot-turned.npy --name mine | has 3 rows and 40 columns, expected 40 rows
1 | prepare --from X.npy --labels y.npy --name mine --query-from X.npy | the query items have none
1 | prepare --from X.npy --name mine --train-index rows-40.npy | queries would be drawn from it
1 | {INDEXED} rows-40.npy | rows-40.npy names row 40, and the database has rows 0 to 39
1 | {INDEXED} rows-negative.npy | names row -1, and the database has rows 0 to 39
1 | {INDEXED} rows-twice.npy | names row 3 more than once
1 | {INDEXED} rows-far.npy | names row 1e+300, and the database has rows 0 to 39
1 | {INDEXED} rows-half.npy | float64 of shape (2,), expected row numbers of the database
1 | {INDEXED} rows-mask.npy | bool of shape (40,), expected row numbers of the database
1 | {INDEXED} X.npy | float64 of shape (40, 4), expected row numbers of the database
1 | {INDEXED} rows-none.npy | int64 of shape (0,), expected row numbers
1 | {INDEXED} X-words.npy | of shape (40, 4), expected row numbers
1 | {INDEXED} rows.csv | the first line of rows.csv may be a row number or a name
1 | {INDEXED} rows-twice.npy --train 3 | names the training items; leave out --train and --train-per-label
1 | {INDEXED} rows-few.npy --seed 3 | --seed 3 has no effect
1 | prepare --from X.npy --name mine --query-from X.npy --train-per-label 3 | training items for each label, give labels
1 | prepare --from X.npy --name mine --query-from X.npy --queries-per-label 3 | only training items can be drawn
2 | {EXPLAINED_RUN} --bits 8 | --bits does not go with --run
2 | {EXPLAINED_RUN} --database-order given | --database-order does not go with --run
1 | {EXPLAINED_RUN.replace("qrels.txt", "qrels-half.txt")} | explain needs whole-number levels | a threshold
1 | {EXPLAINED_RUN} --metric P@r2 | none of trec_eval, pytrec_eval, ir_measures | gives P@r2; ask for AP
1 | {EXPLAINED_RUN} --metric AP:thresholds | none of trec_eval, | gives AP:thresholds; ask for AP
1 | {EXPLAINED_RUN} --script calc-map | unknown script 'calc-map' | trec_eval
1 | prepare --from X.npy --name mine --features hf:r | expected texts of shape (n,) | give a folder of images
1 | prepare --from X.npy --name mine --features gist | 'gist' are computed from images, and X.npy is not a folder
1 | prepare --from X.npy --name mine --image-size 32 | does not use --image-size
1 | info nowhere.h5 | there is no file nowhere.h5
1 | info text.h5 | text.h5 is not an HDF5 file
1 | info foreign.h5 | not written by hashbench: it lacks record. Repeat the command that wrote it.
2 | run --method lsh --bits 8 --part 4/3 | '4/3' is not a part, expected I/N such as 2/5
2 | run --method lsh --bits 8 --part 0/3 | '0/3' is not a part
2 | run --method lsh --bits 8 --part 1/999999999999999999999 | is not a part | N of at most 9 digits
2 | run --method lsh --bits 8 --part ²/3 | '²/3' is not a part
2 | run --method lsh --bits 8 --part half | 'half' is not a part
2 | run --method lsh --bits 8 --part 1/2 --available | --available does not go with --part
2 | run --method lsh --bits 8 --jobs 0 | 0 is not in the range x>=1
2 | tune | Missing option | --method
2 | tune --method itq | Missing option | --bits
2 | tune --method itq --bits 8 --output codes.npy | 'codes.npy' is a file
2 | on tcp://127.0.0.1:1 tune --method itq --bits 8 --jobs 2 | one trial on each worker
1 | tune --method itq --bits 8 --param n_itr=1,2 | unknown itq parameter 'n_itr' | 'n_iter'
1 | tune --method itq --bits 8 --param n_iter=-1,2 | The 'n_iter' parameter of itq
1 | tune --method ksh --bits 8 --param preset=paper | starts from the defaults
1 | tune --method itq --bits 8 --output tuning-rows | tuning-rows/digits.settings.json is missing | Restore it
1 | tune --method csq --bits 8 --param 'head="None"' | a value of csq's head is the text 'None', which grid.toml cannot
1 | tune --method csq --bits 8 --param 'head=mlp,"None"' | a value of csq's head is the text 'None' | another name
1 | tune --method itq --bits 8 --output tuning-grid | tuning-grid/grid.toml does not begin with | does not replace it
1 | tune --method itq --bits 8 --output tuning-no-grid | cannot write tuning-no-grid/grid.toml: Is a directory
1 | tune --method itq --bits 8 --output tuning-pipes | cannot write tuning-pipes/grid.toml: it is a pipe or a device
2 | info | Missing argument
1 | check method iqt | unknown method 'iqt'
1 | check dataset digts | unknown dataset 'digts'
1 | check method bad.py | is a file, expected the name of a method, whose code hashbench then runs. | methods/bad.py in
1 | check dataset ./my-bad.py | Save it as datasets/my_bad.py in a clone | an entry point of a package
1 | check metric bad.py | is a file, expected the name of a metric
1 | run --method bad.py --bits 8 | is a file, expected the name of a method
1 | prepare bad.py | is a file, expected the name of a dataset
2 | check thing x | 'thing' is not one of 'method', 'dataset'
""".strip().splitlines()
COMMANDS += [
    *(f"1 | run --bits 8 --grid study-{number}.toml | {words}" for number, words in enumerate(STUDIES.values())),
    f"1 | {GRID} {OF_LABELS} | there is no file grid_{{bits}}_{{seed}}.npz",
    f"2 | {SAVED_GRID} {OF_LABELS} --per-query - | No such option '--per-query'",
    *(
        f"1 | {SAVED_GRID} {options} | {words}"
        for options, words in {
            f"{OF_LABELS} --bits 8": "--bits 8 does not go with {bits} in the names of files",
            f"{OF_LABELS} --seed 7": "--seed 7 does not go with {seed} in the names of files",
            f"{OF_LABELS} --draws-nothing": "--draws-nothing does not go with {seed} in the names of files",
            f"{OF_LABELS} --metric APP": "Error: unknown metric 'APP'.",
            "--query-labels labels.npy --database-labels nowhere.npy": "Error: there is no file nowhere.npy.",
            "--query-labels labels.npy --database-labels word-labels.npy": "Error: database labels are words",
            "--affinity nowhere.npy": "Error: there is no file nowhere.npy.",
            "--affinity text.npy": "Error: cannot read text.npy as .npy",
            "--affinity levels-minus-half.npy": "Error: an affinity holds levels 0 to 1000",
            "--affinity far.ivecs": "Error: far.ivecs lists neighbours 99 to 99, and the database has items 0 to 5",
        }.items()
    ),
    *(
        f"1 | save mine --query-codes {query} --database-codes {database} {OF_LABELS} --dataset d | {words}"
        for query, database, words in (
            ("none_{bits}.npy", "none_{bits}.npy", "no file matches none_{bits}.npy, in which {bits} and {seed} are"),
            ("grid_{bits}_0.npz", "codes.npy", "codes.npy has no counterpart among grid_{bits}_0.npz"),
            ("codes.npy", "grid_{bits}_0.npz", "codes.npy has no counterpart among grid_{bits}_0.npz"),
            ("twice_{bits}.npy", "codes.npy", "twice_08.npy and twice_8.npy have the same numbers in their names"),
            ("far_{seed}.npy", "far_{seed}.npy", "far_4294967296.npy names seed 4294967296, expected 0 to 42949672"),
            ("o_{bits}.npy", "o_{bits}.npy --distance cosine", "outputs have 8 columns, and the name says 9 bits"),
        )
    ),
    *(
        f"1 | {ITQ} --results r/{name} | itq.csv, line 3, holds | a second time | line 2 | {words}"
        for name, words in {"twice": "the same numbers", "twice-other": "with different numbers. Delete one"}.items()
    ),
    *(f"1 | tables table1 --results r/{name} | digits/itq.csv" for name in RESULTS if name != "good"),
    *(
        f"1 | {LABELLED.replace('codes.npy', f'{name}.npy', 1)} | {words}"
        for name, words in {
            "wide": "in wide.npy have 16 columns | in codes.npy 8",
            "few": "3 query codes | 6",
            "flat": "two dimensions",
            "small-hashes": "give integers, and say how many bits it has: --bits, or n_bits= in Python.",
            "none": "query codes are empty: shape (0, 8)",
            "threes": "20 values that are not 0 or 1, first 3 in row 0, column 1",
            "mixed": "query codes hold",
            "nan": "20 values that are not 0 or 1, first nan | Fill empty cells",
            "signs-nan": "1 values that are not -1 or 1, first nan in row 3, column 4",
            "mask-nan": "1 values that are not 0 or 255, first nan in row 3, column 4",
            "inf": "20 values that are not -1 or 1, first inf",
            "complex": "query codes are of dtype complex128",
            "words": "query codes are <U5 of shape",
            "objects": "cannot read objects.npy as .npy",
            "cut": "cannot read cut.npy as .npy: it is cut short, or numpy.save did not write it.",
            "text": "cannot read text.npy as .npy: it is cut short, or numpy.save did not write it.",
            "empty": "cannot read empty.npy as .npy: it is cut short, or numpy.save did not write it.",
            "header": "cannot read header.npy as .npy",
            "archive": "cannot read archive.npy as .npy",
            "nowhere": "no file nowhere.npy",
            "dangling": "dangling.npy is a link to",
            "pipe": "pipe.npy is a pipe or a device",
        }.items()
    ),
    *(
        f"1 | {OWN} --query-labels {name}.npy --database-labels labels.npy | {words}"
        for name, words in {
            "float-labels": "query labels | whole numbers",
            "word-labels": "query labels are words and the other labels numbers; give both in the same form",
            "latin-labels": "holds strings as bytes that are not UTF-8",
            "object-labels": "it holds Python objects, and opening them could run code | labels.astype(str).",
            "huge-labels": "9223372036854775808",
            "short-labels": "6 query codes, but labels or affinities for 5 query items",
            "hot": "query labels have shape",
            "text": "cannot read text.npy as .npy",
            "nowhere": "there is no file nowhere.npy",
        }.items()
    ),
    f"1 | candidates {OF_CODES} --affinity levels-half.npy --wanted-recall .5 --metric R@2 | R@2 needs whole",
    f"1 | {OWN} --query-labels object-labels.npz --database-labels labels.npy | labels.astype(str).",
    *(
        f"1 | {OWN} --affinity {name} | {words}"
        for name, words in {
            "levels-negative.npy": "levels 0 to 1000, and -1 to ignore a pair, got 1 other values (-2)",
            "levels-half.npy --metric AP": "AP needs whole-number levels | one is 0.5 | Choose a form of NDCG, such as",
            "levels-half.npy --metric NDCG --metric P@2": "P@2 needs whole-number levels",
            "levels-half.npy --metric NDCG --curves curves.csv": "a curve needs whole-number levels of relevance",
            "levels-minus-half.npy": "levels 0 to 1000, and -1 to ignore a pair, got 1 other values (-0.5)",
            "levels-many.npy": "1,600 different levels above 0, at most 1,000 are counted | Round them",
            "levels-nan.npy": "ignore a pair, got 1 other values (nan)",
            "levels-2000.npy": "ignore a pair, got 1 other values (2000)",
            "levels-of-signs.npy": "level -1 and no 0 | Write 0 for irrelevant pairs",
            "levels-ignored.npy": "query 2 (counted from 0) ignores all items of the database | Remove the query",
            "levels-5.npy": "6 query codes | 5",
            "labels.npy": "two dimensions",
            "neighbours.npy": "6 database codes, but labels or affinities for 3",
            "csr-shifted.npz": "is damaged: indices must be >= 0",
            "csr-beyond.npz": "is damaged: indices must be < 6",
            "csr-pointer.npz": "damaged | non-decreasing",
            "csr-less.npz": "cannot read csr-less.npz | indices and data should have the same size",
            "text.npz": "cannot read text.npz as .npz",
            "cut.npz": "cannot read cut.npz as .npz",
            "two.npz": "holds arrays a, b | such as two.npz:a",
            "nowhere.npz": "there is no file nowhere.npz",
            "words.npy": "an affinity holds levels 0 to 1000, and -1 to ignore a pair, got values of dtype <U5",
        }.items()
    ),
    *(
        f"1 | prepare --from X.npy --name {name} | a dataset's name may contain only letters"
        for name in ("../mine", "a/b", "a:b", "süß", "'a b'", "a" * 300, "''")
    ),
    "1 | prepare --from X.npy --labels gaps.csv --name mine | 20 items of gaps.csv have no label, first item 1 | as NA",
    "1 | prepare --from X.npy --name mine.h5 | 'mine.h5' reads like a file",
    *(
        f"1 | prepare --from X.npy --name {name} | {name!r} is, or begins like, the name of a built-in dataset"
        for name in ("digits", "digits-2", "Digits", "arrays")
    ),
    *(
        f"1 | prepare --from {name} --name mine | {words}"
        for name, words in {
            "X-nan.npy": "not finite, first nan in row 1, column 3",
            "X-huge.npy": "too large for float32",
            "X-flat.npy": "shape (40,)",
            "X-words.npy": "shape (40, 4)",
            "none.npy": "shape (0, 8)",
            "text.npy": "cannot read text.npy as .npy",
            "cut.npy": "cannot read cut.npy as .npy",
            "objects.npy": "cannot read objects.npy as .npy",
            "two.npz": "holds arrays a, b | such as two.npz:a",
            "two.npz:c": "unknown array 'two.npz:c'. Known arrays: a, b",
            "text.npz": "cannot read text.npz as .npz",
            "cut.npz": "cannot read cut.npz as .npz",
            "nowhere.npy": "there is no file nowhere.npy",
            "cell.csv": "column 'a' of cell.csv holds numbers, but '1.2.3' in row 20",
            "mixed.csv": "first line of mixed.csv mixes 1 numbers with words",
            "empty.csv": "cannot read empty.csv as .csv",
            "latin.csv": "cannot read latin.csv as .csv: its text is not UTF-8. Save it as UTF-8.",
            "latin.txt": "cannot read latin.txt as .txt: its text is not UTF-8. Save it as UTF-8.",
            "tabs.tsv": "tabs.tsv has an unknown suffix | .feather. Save it as .csv, with commas.",
            "pickle.pkl": "Opening pickles could run code; save arrays with numpy.savez.",
            "text.h5": "cannot read text.h5 as .h5",
            "r": "r is a folder; choose --features",
            "X.npy:k": "unknown array 'X.npy:k'",
            "complex.npy": "complex128",
            "pipe.npy": "pipe.npy is a pipe or a device",
            "dangling.npy": "dangling.npy is a link to",
        }.items()
    ),
    *(
        f"1 | prepare --from X.npy --labels {name} --name mine | {words}"
        for name, words in {
            "labels.npy": "40 items | 6",
            "y-nan.npy": "no label | item 3",
            "nowhere.npy": "there is no file nowhere.npy",
            "text.npy": "cannot read text.npy as .npy",
            "X.npy": "labels of X.npy are not multi-hot",
        }.items()
    ),
]


@pytest.fixture(scope="module")
def place(prepared, tmp_path_factory):
    """The folder of the files, a data folder in which digits are prepared, and all that is in both."""
    folder = tmp_path_factory.mktemp("bad")
    lay_out(folder)
    return folder, prepared, [all_files(folder, prepared)]


def all_files(*folders):
    """Names of all there is, but for locks and the folders that these lie in; of files, sizes and times."""
    found, locks = {}, []
    for place, inner, names in chain.from_iterable(map(os.walk, folders)):  # a third of the time of pathlib
        found |= {f"{place}/{name}": () for name in inner}
        for path in (f"{place}/{name}" for name in names):
            if path.endswith((".lock", ".locks/.gitignore")):
                locks.append(path)
            else:
                status = os.lstat(path)
                found[path] = status.st_size, status.st_mtime_ns
    return {path: state for path, state in found.items() if not any(lock.startswith(f"{path}/") for lock in locks)}


@pytest.mark.parametrize("line", [line for line in COMMANDS if line], ids=lambda line: line[:100])
def test_bad_command(place, line, monkeypatch):
    folder, data, before = place
    exit_code, command, *words = line.split(" | ")
    monkeypatch.setenv("HASHBENCH_DATA", str(data))
    with contextlib.chdir(folder):
        done = CliRunner().invoke(cli, shlex.split(command), catch_exceptions=False)
    before.append(all_files(folder, data))
    assert before[-1] == before.pop(0)
    assert done.exit_code == int(exit_code), done.stderr
    assert done.stdout == ""
    *usage, last = done.stderr.splitlines()
    assert last.startswith("Error: ")
    assert usage == [] if exit_code == "1" else usage[0].startswith("Usage: ")
    assert all(word in last for word in words), last


BEFORE_COUNTING = [  # what a metric cannot score, known without counting an item, and so before loops are compiled
    (
        lambda of: hashbench.evaluate(CODES, CODES, of, ["P@r1"], distance="cosine"),
        "P@r1 counts inside a radius of Ham",
    ),
    (lambda of: hashbench.evaluate(CODES, CODES, of, ["AP"], distance="cosine"), "AP needs whole-number levels"),
    (lambda of: hashbench.evaluate(CODES, CODES, of, ["AP"]), "AP needs whole-number levels of relevance"),
    (
        lambda of: hashbench.Problem.of_codes(CODES, CODES, of).candidates("R@2", 0.5),
        "R@2 needs whole-number levels of relevance",
    ),
    (
        lambda of: hashbench.Problem.of_codes(CODES, CODES, of).candidates("AP", 0.5),
        "candidates are counted for a recall such as R@10",
    ),
    (
        lambda of: hashbench.Problem.of_codes(CODES, CODES, of).thresholds(),
        "a threshold needs whole-number levels of relevance",
    ),
    (
        lambda of: hashbench.Problem.of_codes(CODES, CODES, of).curves(),
        "a curve needs whole-number levels of relevance",
    ),
    (lambda of: hashbench.evaluate_run({"q": {"a": 1.0}}, {"q": {"a": 1}}, ["P@r1"]), "P@r1 counts inside a radius"),
    (lambda of: hashbench.evaluate_run({"q": {"a": 1.0}}, {"q": {"a": 0.5}}, ["AP"]), "AP needs whole-number levels"),
    (lambda of: hashbench.evaluate_ranking([[1, 0]], [[0.5, 0.1]], ["P@r1"]), "P@r1 counts inside a radius of Hamming"),
]


class Uncounted(hashbench.Explicit):
    """An affinity of real levels, which nobody reads."""

    def block(self, query, database):
        raise AssertionError("items are counted")


@pytest.mark.parametrize(("refused", "words"), BEFORE_COUNTING, ids=[words for _, words in BEFORE_COUNTING])
def test_a_metric_that_does_not_fit_is_refused_before_anything_is_counted(refused, words, monkeypatch):
    def count(*arguments, **options):
        raise AssertionError("items are counted")

    monkeypatch.setattr("hashbench.scoring.ranking.ItemSums", count)
    with pytest.raises(HashbenchError, match=f"^{re.escape(words)}"):
        refused(Uncounted(np.eye(4) / 2))


def test_each_row_has_words_that_its_own_command_does_not_say():
    for line in filter(None, COMMANDS):
        _, command, *words = line.split(" | ")
        assert any(len(word) >= 8 and word not in command for word in words), line
    assert all(len(words) >= 7 for _, words in CALLS)


CODES, LABELS = np.eye(4, 8) > 0, np.arange(4) % 2


def call(codes=CODES, affinity=(LABELS, LABELS), metrics="AP", **options):
    """Score codes against others."""
    return hashbench.evaluate(codes, CODES, affinity, metrics, **options)


def explain(metrics="AP", scripts="csq", **options):
    """Show what a script makes of codes."""
    return hashbench.explain(
        hashbench.Problem.of_codes(CODES, CODES, (LABELS, LABELS)), metrics, scripts=scripts, **options
    )


def fit(method, levels):
    """Fit a method to items with these levels to each other."""
    return get_method(method)(4).fit(np.eye(len(levels)), hashbench.Explicit(levels))


def tensor(**options):
    """A tensor of PyTorch, (4, 8)."""
    import torch

    return torch.eye(4, 8, **options)


CALLS = [
    (lambda: call([[0, 1], [1]]), "query codes cannot be read as an array: lists of unequal lengths"),
    (lambda: call(affinity=([1, [2]], LABELS)), "query labels cannot be read as an array"),
    (lambda: call(affinity=[[1, 0], [1]]), "affinities cannot be read as an array"),
    (lambda: call(tensor(device="meta")), "query codes cannot be read as an array"),
    (lambda: call(tensor().to_sparse()), "query codes cannot be read as an array"),
    (lambda: call(np.ma.masked_array(CODES, mask=~CODES)), "query codes hide 28 values behind a mask"),
    (lambda: call(affinity=(np.ma.masked_array(LABELS, mask=[1, 0, 0, 0]), LABELS)), "query labels hide 1 values"),
    (
        lambda: call(affinity=2 * (sp.coo_array((2, 1 << 58)),)),
        "query labels are sparse, of shape (2, 288230376151711744)",
    ),
    (lambda: call(groups=LABELS), "groups must be a pair, (query_groups, database_groups), got a "),
    (lambda: call(groups=(LABELS / 2, LABELS)), "whole numbers"),
    (lambda: call(junk_label=0.5), "the label of junk is 0.5, and labels are whole numbers"),
    (lambda: call(junk_label=[0, 0.5]), "the label of junk is 0.5"),
    (lambda: call(exclude_same_id=(LABELS, LABELS[:2])), "there are 2 database ids for 4 database items"),
    (lambda: call(CODES.astype(complex), distance="cosine"), "expected real numbers"),
    (lambda: call(CODES.astype(object)), "dtype object"),
    (lambda: call(CODES[0]), "two dimensions"),
    (lambda: call(None), "two dimensions"),
    (lambda: call(CODES[:, :7]), "7 bits and database codes 8"),
    (lambda: call(np.where(CODES, 1e30, -1)), "values that are not -1 or 1, first 1e+30"),
    (lambda: call(affinity=None), "two dimensions"),
    (lambda: call(affinity=()), "must be a pair (query_labels, database_labels), got a tuple of 0"),
    (lambda: call(affinity=(LABELS, LABELS, LABELS)), "got a tuple of 3"),
    (lambda: call(affinity=(LABELS, np.eye(4))), "both as class"),
    (lambda: call(affinity=(LABELS / 2, LABELS)), "whole numbers"),
    (lambda: call(affinity=(["a", "b", None, "a"], list("abab"))), "query labels are words, but item 2 "),
    (
        lambda: call(affinity=([np.nan, *"bab"], list("abab"))),
        "query labels are words, but item 0 (counted from 0) has nan",
    ),
    (
        lambda: call(affinity=([None, *"bab"], list("abab"))),
        "query labels are words, but item 0 (counted from 0) has None",
    ),
    (
        lambda: call(affinity=(list("abab"), ["a", 2, "a", 2])),
        "database labels are words, but item 1 (counted from 0) has 2",
    ),
    (
        lambda: call(affinity=([0, None, 1, 1], LABELS)),
        "query labels hold 1 values that are not whole numbers, first nan",
    ),
    (lambda: call(affinity=(LABELS + 2.0**53, LABELS)), "query labels are float64, exact up to 9007199254740991"),
    (
        lambda: call(affinity=((LABELS - 2**24).astype("f4"), LABELS)),
        "float32, exact up to 16777215, and hold -16777",
    ),
    (lambda: call(affinity=((LABELS + 2**11).astype("f2"), LABELS)), "are float16, exact up to 2047, and hold 2048"),
    (lambda: call(affinity=(LABELS, list("abab"))), "database labels are words and the other labels numbers"),
    (lambda: call(affinity=(["xxxxx"] * 4, list("abab"))), "of the database, such as 'xxxxx'. Write the same class as"),
    (lambda: call(affinity=(["cat"] * 4, ["dog", "Cat"] * 2)), "such as 'cat'; the nearest there is 'Cat'"),
    (lambda: call(affinity=(LABELS[:3], LABELS)), "4 query codes, but labels or affinities for 3"),
    (lambda: call(affinity=np.eye(4) / 2), "AP needs whole-number levels of relevance, and one is 0.5"),
    (lambda: fit("ksh", np.eye(4) / 2), "ksh needs whole-number levels of relevance, and one is 0.5"),
    (lambda: fit("talr-ndcg", np.eye(4) * 0.9), "talr-ndcg needs whole-number levels of relevance, and one is 0.9"),
    (
        lambda: hashbench.Problem.of_codes(CODES, CODES, np.eye(4) / 2).thresholds(),
        "a threshold needs whole-number levels of relevance",
    ),
    (
        lambda: hashbench.Problem.of_codes(CODES, CODES, np.eye(4) / 2).curves(),
        "a curve needs whole-number levels of relevance",
    ),
    (lambda: call(affinity=np.eye(4) * 1j), "got values of dtype complex128"),
    (lambda: call(affinity=np.eye(3)), "4 query codes, but labels or affinities for 3"),
    (lambda: call(random_orders=2.5), "random_orders is 2.5, expected a whole number from 2 to 1,000,000"),
    (lambda: call(random_orders="5"), "random_orders is '5', expected a whole number"),
    (
        lambda: hashbench.Problem.of_codes(CODES, CODES, np.eye(4, dtype=int)).candidates("R@2", []),
        "wanted_recall is empty, expected one recall or several",
    ),
    (
        lambda: hashbench.compare(call(), call(), names=("a", "a")),
        "both methods are called 'a'; give each its own name",
    ),
    (lambda: hashbench.run("lsh", 8, results=""), "results is an empty path; give a name, or '.'"),
    (lambda: hashbench.tune("itq", 8, output=""), "output is an empty path; give a name, or '.'"),
    (lambda: hashbench.tables(results=""), "results is an empty path"),
    (lambda: hashbench.run("lsh", 8, n_jobs=2.5), "n_jobs is 2.5, expected a whole number from 1, or -1"),
    (lambda: hashbench.run("lsh", 8, n_jobs="2"), "n_jobs is '2', expected a whole number"),
    (lambda: hashbench.tune("itq", 8, output="new", n_trials=2.5), "n_trials is 2.5, expected a whole number from 1"),
    (lambda: explain(value=0.730), "the value is 0.73, expected a string such as '0.730', whose final zeros count"),
    (lambda: explain(database_order=["given"]), "the database order is ['given'], expected given, by-class"),
    (lambda: explain(metrics=None), "metrics are names such as AP or NDCG@100, got None"),
    (lambda: explain().to_text("csv"), "form must be one of table, markdown, json, got 'csv'"),
    (lambda: hashbench.compare_results(), "a comparison needs two methods or more, got none"),
    (lambda: hashbench.compare_results(["itq"]), "a comparison needs two methods or more, got itq"),
    (lambda: hashbench.compare_results("itq", 5), "methods are names, got ['itq', 5]"),
    (lambda: hashbench.compare_results("itq", ["lsh", "sh"]), "methods are names, got ['itq', ['lsh', 'sh']]"),
    (lambda: hashbench.read_codes("q.npy"), "q.npy is not a CODES.h5 of hashbench. Pass your own codes as arrays"),
    (lambda: call(metrics=5), "metrics are names"),
    (lambda: call(metrics=[None]), "metrics are names"),
    (lambda: call(metrics=[]), "there are no metrics"),
    (lambda: call(metrics=["AP", ""]), "unknown metric ''"),
    (lambda: call(distance="euclidean"), "distance must be one of"),
    (lambda: call(true_distance="manhattan"), "true_distance must be one of euclidean"),
    (lambda: call(distance="cosine", n_bits=8), "which have no n_bits and no bit_order"),
    (lambda: call(distance="dot", bit_order="big"), "which have no n_bits and no bit_order"),
    (lambda: call(undefined="none"), "undefined must be one of"),
    (lambda: call(n_bits=8.0), "1 to 4096 bits, got 8.0"),
    (lambda: call(n_bits=9), "codes of 9 bits have 9. Check the number of bits."),
    (lambda: hashbench.evaluate_run({}, {"q": {"a": 1}}), "the run is empty, expected documents for one query or more"),
    (lambda: hashbench.evaluate_run({"q": {"a": 1.0}}, {}), "the qrels is empty, expected"),
    (lambda: call(metrics=["map@100"]), "unknown metric 'map@100'. Did you mean 'AP@100'? Known metrics: AP, "),
    (lambda: call(n_bits=True), "codes of True bits"),
]


@pytest.mark.parametrize(("wrong", "words"), CALLS, ids=[words for _, words in CALLS])
def test_bad_call(wrong, words):
    with pytest.raises(HashbenchError) as caught:
        wrong()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "change", [lambda one: one.requires_grad_(), lambda one: one.bfloat16(), lambda one: one.bool()]
)
def test_any_tensor_with_values_is_read(change):
    assert call(change(tensor())).summary == call().summary

"""Files of bad input, each wrong in one way, and a few that are sound."""

import os

import h5py
import numpy as np
import scipy.sparse as sp


def lay_out(folder, studies, results):
    """Lay out files, good and bad: also texts of studies, and rows, settings and origins of results by their place."""
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
        "signs-nan": np.where(np.arange(48).reshape(6, 8) == 28, np.nan, np.where(codes, 1, -1)),
        "words": codes.astype(str),
        "masks": np.where(codes, 255, 0).astype(np.uint8),
        "labels": np.arange(6) % 2,
        "word-labels": np.array(list("aabbcc")),
        "blank-labels": np.array(["c3 "] * 6),
        "other-labels": np.array(["c1", "c3"] * 3),
        "latin-labels": np.char.encode(list("aabbcß"), "latin1"),
        "small-hashes": np.arange(2, 8),
        "huge-labels": np.array([2**63, 1, 2, 3, 4, 5], dtype=np.uint64),
        "hot": np.eye(6, dtype=np.uint8),
        "hot-4": np.eye(6, 4, dtype=np.uint8),
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
        "levels-5": np.eye(5, dtype=int),
        "neighbours": np.arange(18).reshape(6, 3) % 6,
        "outputs": rng.normal(size=(6, 8)),
        "zero-outputs": np.zeros((6, 8)),
        "X": rng.normal(size=(40, 4)),
        "X-nan": np.where(np.arange(160).reshape(40, 4) == 7, np.nan, 1.0),
        "X-huge": np.full((40, 4), 1e200),
        "X-flat": rng.normal(size=40),
        "X-turned": rng.normal(size=(4, 40)),
        "y": np.arange(40) % 4,
        "word-y": np.array(list("abcd" * 10)),
        "rows-40": np.arange(5) * 10,
        "rows-twice": np.array([3, 4, 3]),
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
    np.save(folder / "object-labels.npy", np.array(list("aabbcc"), dtype=object), allow_pickle=True)
    np.savez(folder / "two.npz", a=codes, b=codes)
    np.savez(folder / "grid_8_0.npz", query=codes, database=codes)
    np.tile(np.array([1, 99], np.int32), (6, 1)).tofile(folder / "far.ivecs")
    whole = (folder / "codes.npy").read_bytes()
    (folder / "cut.npy").write_bytes(whole[:-5])
    (folder / "text.npy").write_text("hello")
    (folder / "archive.npy").write_bytes((folder / "two.npz").read_bytes())
    eye = sp.csr_array(np.eye(6, dtype=np.int8))
    for name, change in {
        "shifted": {"indices": eye.indices - 5},
        "pointer": {"indptr": np.array([0, 1, 2, 3, 4, 10**6, 6])},
        "less": {"data": eye.data[:3]},
    }.items():
        parts = {"data": eye.data, "indices": eye.indices, "indptr": eye.indptr, **change}
        np.savez(folder / f"csr-{name}.npz", format=b"csr", shape=(6, 6), **parts)
    for number, text in enumerate(studies):
        (folder / f"study-{number}.toml").write_text(text)
    (folder / "cell.csv").write_text("a,b\n" + "1,2\n" * 20 + "1.2.3,4\n" + "1,2\n" * 20)
    (folder / "rows.csv").write_text("0\n3\n")
    (folder / "nameless.csv").write_text("a\nb\na\nb\na\nb\n")
    (folder / "nameless-40.csv").write_text("a\nb\n" * 20)
    (folder / "named-hashes.csv").write_text("id,hash\na,00\nb,01\nc,ff\n")
    (folder / "twice-named.csv").write_text("id,hash\na,00\nb,01\na,ff\n")
    (folder / "pairs.csv").write_text("first,second,same\na,b,1\na,c,0\n")
    (folder / "pairs-both.csv").write_text("first,second,same\na,b,1\nb,a,0\n")
    (folder / "pairs-maybe.csv").write_text("first,second,same\na,b,maybe\n")
    (folder / "mixed.csv").write_text("1,a\n2,b\n")
    (folder / "gaps.csv").write_text("label\n" + 20 * "a\nNA\n")
    (folder / "latin.csv").write_bytes("label\ncafé\n".encode("latin-1"))
    for name in ("tabs.tsv", "pickle.pkl"):
        (folder / name).write_bytes(b"a")
    (folder / "text.pt").write_text("hello")
    (folder / "run.txt").write_text("q Q0 a 1 2.5 r\nq Q0 b 2 1 r\n")
    (folder / "run-up.txt").write_text("q Q0 a 1 0 r\nq Q0 b 2 1 r\n")
    (folder / "qrels.txt").write_text("q 0 a 1\n")
    (folder / "qrels-other.txt").write_text("Q 0 a 1\n")
    for name in ("grid", "rows", "no-grid", "pipes"):
        (folder / f"tuning-{name}").mkdir()
    (folder / "tuning-rows" / "digits.csv").write_text(results["r/above"][0])
    (folder / "tuning-grid" / "grid.toml").write_text('bits = 8\nmethods = ["itq"]\n')
    (folder / "tuning-no-grid" / "grid.toml").mkdir()
    os.mkfifo(folder / "tuning-pipes" / "grid.toml")
    (folder / "text.h5").write_text("hello")
    with h5py.File(folder / "foreign.h5", "w") as file:
        file["a"] = [1]
    (folder / "folder.npy").mkdir()
    (folder / "dangling.npy").symlink_to(folder / "nowhere")
    for name in ("loop", "loop.npy"):
        (folder / name).symlink_to(name)
    os.mkfifo(folder / "pipe.npy")
    for name, (rows, record) in results.items():
        place = folder / name / "digits"
        place.mkdir(parents=True)
        (place / "itq.csv").write_text(rows, newline="", errors="surrogateescape")
        if record:
            (place / "itq.json").write_text(record)

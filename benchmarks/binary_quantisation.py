"""What binary quantisation costs: the tables and the figure of docs/binary-quantisation.md.

    .venv/bin/python benchmarks/binary_quantisation.py [--queries 1000] [--database 10000] [--embeddings FILE.h5]

Computes, for methods and code lengths, the share of each query's 10 true nearest neighbours that are among the first
candidates by Hamming distance: the recall of 10 after exact re-ranking of these candidates. The data are

- ``squeezenet``: embeddings of CIFAR-10 images, 512-d, by cosine; they need ``hashbench prepare cifar10-s1 --features
  squeezenet``;
- ``clusters``: vectors drawn around 200 centres, 128-d, by Euclidean distance, from a file as ann-benchmarks has them.

The peer, on the same codes, is ``IndexBinaryFlat`` of faiss with its candidates re-ranked by the floats. It breaks ties
by position, so its recall must lie between hashbench's best and worst order; otherwise the script stops. Neighbours of
``clusters`` are those of faiss's ``IndexFlatL2``. ``asymmetric`` ranks by inner products of float queries and -1/+1
codes.
"""

import itertools
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import h5py
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from pages import DOCS, parser_of, put_into, read_rows, write_rows

from hashbench import Refusal, evaluate
from hashbench.adapter import Options, OwnData
from hashbench.bits import pack
from hashbench.dataset import Dataset
from hashbench.pipeline.preparation import load_dataset
from hashbench.registry import get_dataset, get_method
from hashbench.reports.plots.style import METADATA, choose_looks, one_look
from hashbench.sources.neighbours import find_neighbours

PAGE = DOCS / "binary-quantisation.md"
FIGURE = PAGE.parent / "figures" / "binary-quantisation.svg"
ROWS = Path(__file__).with_suffix(".csv")
N_NEIGHBOURS = 10
N_BITS = (64, 128, 256, 512)
N_CANDIDATES = (10, 50, 100, 500)
SHOWN = 100  # candidates, in the figure against bits, and of the peers
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "sign": ("sign", {"threshold": "mean"}),
    "lsh": ("lsh", {}),
    "pca-rr": ("pca-rr", {}),
    "itq": ("itq", {}),
}
COLUMNS = ("dataset", "method", "n_bits", "ranking", "n_candidates", "recall", "low", "high")


def write_clusters(path: Path, n_queries: int, n_database: int, seed: int = 0) -> Path:
    """Write vectors around centres and their neighbours by faiss, in the layout of ann-benchmarks."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(200, 128))
    spread = np.linspace(1.5, 0.3, 128)  # of items around their centre, dimension by dimension
    of_item = rng.integers(len(centres), size=n_queries + n_database)
    items = (centres[of_item] + spread * rng.normal(size=(len(of_item), 128))).astype(np.float32)
    index = faiss.IndexFlatL2(128)
    index.add(items[n_queries:])
    squared, neighbours = index.search(items[:n_queries], 100)
    with h5py.File(path, "w") as file:
        file.attrs["distance"] = "euclidean"
        arrays = {"train": items[n_queries:], "test": items[:n_queries]}
        for name, array in (arrays | {"neighbors": neighbours, "distances": np.sqrt(squared)}).items():
            file[name] = array
    return path


def make_datasets(embeddings: str, n_queries: int, n_database: int, folder: Path) -> list[Dataset]:
    """Return both datasets, with ten neighbours of each query."""
    images, _ = load_dataset(embeddings)
    rng = np.random.default_rng(0)
    query, database = (
        np.sort(rng.permutation(part)[:n]) for part, n in ((images.query, n_queries), (images.database, n_database))
    )
    if images.features is None:
        raise SystemExit("there are no features")
    neighbours, _ = find_neighbours(images.features[query], images.features[database], N_NEIGHBOURS, "cosine")
    squeezenet = replace(
        images,
        name="squeezenet",
        query=query,
        database=database,
        train=database,
        labels=None,
        rule="neighbours",
        rule_params={"true_distance": "cosine"},
        neighbours=neighbours,
    )
    path = write_clusters(folder / "clusters.hdf5", n_queries, n_database)
    own = OwnData(name="clusters", items=str(path), neighbours=N_NEIGHBOURS)
    return [squeezenet, get_dataset("ann-benchmarks", Options(own=own)).prepare()]


def faiss_recall(dataset: Dataset, query: npt.NDArray[np.bool_], database: npt.NDArray[np.bool_], n: int) -> float:
    """Compute the recall of n candidates that faiss finds by Hamming distance, re-ranked by the floats."""
    index = faiss.IndexBinaryFlat(query.shape[1])
    index.add(pack(database))
    candidates = index.search(pack(query), n)[1].astype(np.int64)
    items = np.asarray(dataset.features, dtype=np.float64)
    if dataset.true_distance == "cosine":
        items = items / np.linalg.norm(items, axis=1, keepdims=True)  # then the nearest are the same by both distances
    database_items = items[dataset.database]
    pairs = zip(items[dataset.query], candidates, strict=True)
    exact = np.stack([((database_items[near] - item) ** 2).sum(axis=1) for item, near in pairs])
    first = np.take_along_axis(candidates, exact.argsort(axis=1, kind="stable")[:, :N_NEIGHBOURS], axis=1)
    is_found = (first[:, :, None] == np.asarray(dataset.neighbours)[:, None]).any(axis=2)
    return float(is_found.mean())


def score(dataset: Dataset, label: str, n_bits: int) -> list[dict[str, Any]]:
    """Return the rows of one method at one length; none if it cannot have so many bits."""
    name, params = METHODS[label]
    features = np.asarray(dataset.features)
    query, database = features[dataset.query], features[dataset.database]
    method = get_method(name)(n_bits=n_bits, **params)
    try:
        method.fit(features[dataset.train])
    except Refusal:
        return []
    values = method.project(query)
    codes = values > 0, method.transform(database)
    metrics = [f"R@{n}" for n in N_CANDIDATES]
    hamming = evaluate(*codes, dataset.affinity(), metrics).summary
    outputs = values, np.where(codes[1], 1.0, -1.0)
    asymmetric = evaluate(*outputs, dataset.affinity(), [f"R@{SHOWN}"], distance="dot").summary
    scores = {("hamming", n): hamming[f"R@{n}"][:3] for n in N_CANDIDATES}
    peer = faiss_recall(dataset, *codes, SHOWN)
    mean, low, high = scores["hamming", SHOWN]
    if not low - 1e-9 <= peer <= high + 1e-9:
        raise SystemExit(f"{dataset.name} {label} {n_bits}: faiss finds {peer}, hashbench {mean} ({low} to {high})")
    scores |= {("asymmetric", SHOWN): asymmetric[f"R@{SHOWN}"][:3], ("faiss", SHOWN): (peer, peer, peer)}
    return [
        dict(zip(COLUMNS, (dataset.name, label, n_bits, ranking, n, *(f"{part:.4f}" for part in parts)), strict=True))
        for (ranking, n), parts in scores.items()
    ]


def layout(rows: Sequence[dict[str, str]], dataset: str) -> str:
    """Lay out one dataset's rows as a Markdown table."""
    cells = {
        (row["method"], int(row["n_bits"]), row["ranking"], int(row["n_candidates"])): row
        for row in rows
        if row["dataset"] == dataset
    }
    columns = [("hamming", n) for n in N_CANDIDATES] + [("faiss", SHOWN), ("asymmetric", SHOWN)]
    heads = [*map(str, N_CANDIDATES), f"faiss, {SHOWN}", f"float query, {SHOWN}"]
    lines = [f"| method | bits | {' | '.join(heads)} |", "|---|--:|" + "--:|" * len(heads)]
    for method, n_bits in dict.fromkeys(key[:2] for key in cells):
        shown = [f"{float(cells[method, n_bits, *column]['recall']):.3f}" for column in columns]
        lines.append(f"| {method} | {n_bits} | {' | '.join(shown)} |")
    return "\n".join(lines)


def draw(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Draw recall against bits at 100 candidates, and against candidates at 128 bits; bands are ranges over ties."""
    import pandas as pd

    frame = pd.DataFrame(rows).astype(dict.fromkeys(COLUMNS[-4:], float) | {"n_bits": int})
    frame = frame[frame["ranking"] == "hamming"]
    datasets = list(dict.fromkeys(frame["dataset"]))
    lines = pd.DataFrame({"method": list(METHODS), "label": list(METHODS), "group": "unsupervised"})
    with one_look():
        figure = Figure(figsize=(6.9, 2.3 * len(datasets)), layout="constrained")
        looks = choose_looks(lines)
        panels = figure.subplots(len(datasets), 2, squeeze=False, sharey=True)
        for dataset, pair in zip(datasets, panels, strict=True):
            of_dataset = frame[frame["dataset"] == dataset]
            views = {
                ("n_bits", f"bits, {SHOWN} candidates"): of_dataset[of_dataset["n_candidates"] == SHOWN],
                ("n_candidates", "candidates, 128 bits"): of_dataset[of_dataset["n_bits"] == 128],
            }
            for panel, ((axis, words), cells) in zip(pair, views.items(), strict=True):
                for method, line in cells.groupby("method", sort=False):
                    look = looks[str(method)]
                    panel.fill_between(line[axis], line["low"], line["high"], **look.band())
                    panel.plot(line[axis], line["recall"], label=method, **look.curve())
                panel.set_xscale("log", base=2 if axis == "n_bits" else 10)
                ticks = N_BITS if axis == "n_bits" else N_CANDIDATES
                panel.set_xticks(ticks, [str(tick) for tick in ticks])
                panel.minorticks_off()
                panel.set(xlabel=words, ylim=(0, 1.02), title=f"{dataset}: recall of {N_NEIGHBOURS} neighbours")
            pair[1].set_title("")
            pair[0].legend(loc="lower right")
        figure.savefig(path, metadata=METADATA["svg"])


def main() -> None:
    """Score everything, write the rows, and make the tables and the figure."""
    parser = parser_of(__doc__)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--database", type=int, default=10_000)
    parser.add_argument("--embeddings", default="cifar10-s1:squeezenet", help="dataset, or its prepared file")
    options = parser.parse_args()
    if not options.again:
        rows = []
        with tempfile.TemporaryDirectory() as folder:
            datasets = make_datasets(options.embeddings, options.queries, options.database, Path(folder))
            for dataset, method, n_bits in itertools.product(datasets, METHODS, N_BITS):
                rows += score(dataset, method, n_bits)
                print(dataset.name, method, n_bits, flush=True)
        write_rows(ROWS, COLUMNS, rows)
    shown = read_rows(ROWS)
    draw(shown, FIGURE)
    parts = {name: layout(shown, name) for name in dict.fromkeys(row["dataset"] for row in shown)}
    PAGE.write_text(put_into(PAGE.read_text(), parts))


if __name__ == "__main__":
    main()

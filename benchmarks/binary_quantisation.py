"""What binary quantisation costs: the tables and the figure of docs/binary-quantisation.md.

    .venv/bin/hashbench prepare cifar10-s1 --features squeezenet
    .venv/bin/hashbench prepare wordnet-minilm    # docs/datasets.md says what to install
    .venv/bin/python benchmarks/binary_quantisation.py [--images FILE.h5] [--texts FILE.h5] [--again]

Computes, for codes of equal bytes per item, the share of each query's 10 true nearest neighbours that are among the
first 10 candidates, and among the first 100: the recall of 10 after exact re-ranking. The data are

- ``squeezenet``: embeddings of CIFAR-10 images, 512-d, by cosine;
- ``glosses``: the first items of wordnet-minilm, 384-d, by cosine;
- ``clusters``: vectors drawn around 200 centres, 128-d, by Euclidean distance.

Where the distance is cosine, all methods see vectors of unit length, whose Euclidean distances have the same order.
Every method learns from other items, neither queries nor database: 256 centroids that learn from 10,000 database items
fit these better than they would fit a large database. Bits are hashbench's methods; queries are bits, too, or their
real values, ranked by inner product. All others are indexes of faiss, named by its factory, whose queries are floats;
RaBitQ rounds them to 8 bits, which takes a tenth of the time. OPQ has 10 iterations, not faiss's 50. Distances of all
items are scored by ``evaluate_ranking``. Bytes are ``sa_code_size`` of the index: codes and what else it stores for
each item.

The peer is faiss itself, ``IndexBinaryFlat`` for bits: its first candidates, re-ranked by the floats. It breaks ties by
position, so its recall must lie between hashbench's best and worst order; otherwise the script stops.
"""

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import faiss
import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages import DOCS, parser_of, put_into, read_rows, write_rows

from hashbench import evaluate, evaluate_ranking
from hashbench._parallel import n_processors
from hashbench.affinity import Explicit
from hashbench.bits import pack
from hashbench.pipeline.preparation import load_dataset
from hashbench.plugins import Refusal
from hashbench.registry import get_method
from hashbench.reports.plots.style import METADATA, Look, one_look
from hashbench.sources.neighbours import find_neighbours

PAGE = DOCS / "binary-quantisation.md"
FIGURE = PAGE.parent / "figures" / "binary-quantisation.svg"
ROWS = Path(__file__).with_suffix(".csv")
TABLES = ("squeezenet", "glosses")  # datasets with a table of their own; the figure has all
N_NEIGHBOURS = 10
N_CANDIDATES = (10, 100)
EQUAL = (8, 16, 32, 64)  # bytes per item
IN_TABLES = (8, 32)
BITS: dict[str, dict[str, Any]] = {
    "sign": {"threshold": "mean"},
    "itq": {},
    "greedyhash-unsupervised": get_method("greedyhash-unsupervised").preset("neighbours", 32),
}
INDEXES: dict[str, Callable[[int], str]] = {  # by bytes per item: what faiss's factory makes
    "RaBitQ": lambda n_bytes: f"PCAR{8 * (n_bytes - 8)},RaBitQ",  # 8 bytes are its two factors
    "PQ": lambda n_bytes: f"PQ{n_bytes}np",  # np: centroids in any order; theirs is for another search
    "OPQ": lambda n_bytes: f"OPQ{n_bytes},PQ{n_bytes}np",
}
WHOLE = {"RaBitQ": "RR,RaBitQ", "RaBitQ, 4 bits": "RR,RaBitQ4", "4-bit scalar": "SQ4", "int8": "SQ8", "float32": "Flat"}
BYTES: dict[tuple[str, str], tuple[str, Callable[[int], int]]] = {  # of all d dimensions, by method and queries
    ("sign", "bits"): ("d / 8", lambda d: d // 8),
    ("sign", "floats"): ("d / 8", lambda d: d // 8),
    ("RaBitQ", "floats"): ("d / 8 + 8", lambda d: d // 8 + 8),
    ("RaBitQ, 4 bits", "floats"): ("d / 2 + 20", lambda d: d // 2 + 20),
    ("4-bit scalar", "floats"): ("d / 2", lambda d: d // 2),
    ("int8", "floats"): ("d", lambda d: d),
    ("float32", "floats"): ("4 d", lambda d: 4 * d),
}
LINES = {  # of the figure, by method and queries: the name and the look
    ("OPQ", "floats"): ("OPQ", Look("", "#d55e00", "^", "-")),
    ("PQ", "floats"): ("PQ", Look("", "#009e73", "s", "-")),
    ("RaBitQ", "floats"): ("RaBitQ", Look("", "#e69f00", "D", "-")),
    ("itq", "floats"): ("itq, queries in floats", Look("", "#0072b2", "o", (0, (5, 1.5)), is_variant=True)),
    ("itq", "bits"): ("itq", Look("", "#0072b2", "o", "-")),
    ("greedyhash-unsupervised", "bits"): ("greedyhash-unsupervised", Look("", "#cc79a7", "v", "-")),
    ("sign", "bits"): ("sign", Look("", "#000000", "X", "-")),
}
COLUMNS = ("dataset", "method", "query", "bytes", "n_candidates", "recall", "low", "high", "faiss")


class Case(NamedTuple):
    """Embeddings, compared by Euclidean distance, and the nearest items of each query: (n_queries, 10)."""

    name: str
    query: npt.NDArray[np.float32]
    database: npt.NDArray[np.float32]
    train: npt.NDArray[np.float32]
    neighbours: npt.NDArray[np.int64]

    @property
    def relevance(self) -> npt.NDArray[np.int8]:
        """Return 1 for neighbours, else 0: (n_queries, n_database)."""
        relevance = np.zeros((len(self.query), len(self.database)), dtype=np.int8)
        np.put_along_axis(relevance, self.neighbours, 1, axis=1)
        return relevance


def draw_clusters(n: int, seed: int = 0) -> npt.NDArray[np.float32]:
    """Draw vectors around centres."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(200, 128))
    spread = np.linspace(1.5, 0.3, 128)  # of items around their centre, dimension by dimension
    of_item = rng.integers(len(centres), size=n)
    return (centres[of_item] + spread * rng.normal(size=(n, 128))).astype(np.float32)


def make_cases(images: str, texts: str, n_queries: int, n_database: int) -> list[Case]:
    """Return the three cases; queries, database and training items are disjoint."""
    drawn, _ = load_dataset(images)
    glosses, _ = load_dataset(texts)  # in random order
    rng, n = np.random.default_rng(0), n_queries + 2 * n_database
    rows = np.concatenate([rng.permutation(drawn.query)[:n_queries], rng.permutation(drawn.database)[: 2 * n_database]])
    cosine = {"squeezenet": np.asarray(drawn.features)[rows], "glosses": np.asarray(glosses.features)[:n]}
    unit = {name: items / np.linalg.norm(items, axis=1, keepdims=True) for name, items in cosine.items()}
    cases = []
    for name, items in (unit | {"clusters": draw_clusters(n)}).items():
        query, database, train = np.split(items, [n_queries, n_queries + n_database])
        cases.append(Case(name, query, database, train, find_neighbours(query, database, N_NEIGHBOURS)[0]))
    return cases


def reranked_recall(case: Case, candidates: npt.NDArray[np.int64]) -> float:
    """Compute the recall of candidates, (n_queries, n), re-ranked by the floats."""
    database, n_found = case.database.astype(np.float64), 0
    for item, near, neighbours in zip(case.query.astype(np.float64), candidates, case.neighbours, strict=True):
        nearest = near[((database[near] - item) ** 2).sum(axis=1).argsort(kind="stable")[:N_NEIGHBOURS]]
        n_found += len(np.intersect1d(nearest, neighbours))
    return n_found / case.neighbours.size


def rows_of(
    case: Case, label: str, query: str, n_bytes: int, summary: Any, nearest: Any = None
) -> list[dict[str, Any]]:
    """Return the rows of one ranking, after a check against faiss's nearest items, (n_queries, 100 or more)."""
    rows = []
    for n in N_CANDIDATES:
        mean, low, high, *_ = summary[f"R@{n}"]
        peer = "" if nearest is None else reranked_recall(case, nearest[:, :n])
        if peer != "" and not low - 1e-9 <= peer <= high + 1e-9:
            raise SystemExit(f"{case.name} {label} {n_bytes}: faiss finds {peer}, hashbench {mean} ({low} to {high})")
        numbers = (f"{number:.4f}" if number != "" else "" for number in (mean, low, high, peer))
        rows.append(dict(zip(COLUMNS, (case.name, label, query, n_bytes, n, *numbers), strict=True)))
    return rows


def score_bits(case: Case, name: str, n_bytes: int) -> list[dict[str, Any]]:
    """Return the rows of one method of hashbench; none if it cannot have so many bits."""
    method = get_method(name)(n_bits=8 * n_bytes, **BITS[name])
    try:
        method.fit(case.train)
    except Refusal:
        return []
    values, codes = method.project(case.query), method.transform(case.database)
    index = faiss.IndexBinaryFlat(8 * n_bytes)
    index.add(pack(codes))
    nearest = index.search(pack(values > 0), max(N_CANDIDATES))[1]
    affinity, metrics = Explicit(case.relevance), [f"R@{n}" for n in N_CANDIDATES]
    hamming = evaluate(values > 0, codes, affinity, metrics).summary
    signs = np.where(codes, 1.0, -1.0)
    by_floats = evaluate(values, signs, affinity, metrics, distance="dot").summary
    return [
        *rows_of(case, name, "bits", n_bytes, hamming, nearest.astype(np.int64)),
        *rows_of(case, name, "floats", n_bytes, by_floats),
    ]


def trained_index(factory: str, train: npt.NDArray[np.float32]) -> Any:
    """Return an index of faiss that has learned from vectors, (n, n_features)."""
    index = faiss.index_factory(train.shape[1], factory)
    if isinstance(index, faiss.IndexPreTransform):
        chain, inner = faiss.downcast_VectorTransform(index.chain.at(0)), faiss.downcast_index(index.index)
        if isinstance(chain, faiss.OPQMatrix):
            chain.niter = 10
        if isinstance(inner, faiss.IndexRaBitQ):
            inner.qb = 8
    index.train(train)
    return index


def score_index(case: Case, label: str, factory: str) -> list[dict[str, Any]]:
    """Return the rows of one index of faiss, from its distances of all items."""
    index = trained_index(factory, case.train)
    index.add(case.database)
    distances, items = index.search(case.query, len(case.database))
    scores = np.empty_like(distances)
    np.put_along_axis(scores, items, -distances, axis=1)
    summary = evaluate_ranking(
        relevance=case.relevance, scores=scores, metrics=[f"R@{n}" for n in N_CANDIDATES]
    ).summary
    return rows_of(case, label, "floats", index.sa_code_size(), summary, items)


def score(case: Case, label: str, n_bytes: int | None) -> list[dict[str, Any]]:
    """Return the rows of one method at some bytes per item; None for all dimensions."""
    n_features = case.query.shape[1]
    if n_bytes is not None and label in BITS:
        rows = score_bits(case, label, n_bytes)
    elif n_bytes is None:
        rows = score_index(case, label, WHOLE[label])
    else:
        is_possible = label != "RaBitQ" or 0 < 8 * (n_bytes - 8) < n_features
        rows = score_index(case, label, INDEXES[label](n_bytes)) if is_possible else []
    print(case.name, label, n_bytes or "all dimensions", flush=True)
    return rows


def measure(cases: Sequence[Case]) -> list[dict[str, Any]]:
    """Return all rows; jobs run side by side, each in one thread."""
    equal = [*itertools.product((*BITS, *INDEXES), EQUAL), *((label, None) for label in WHOLE)]
    jobs = [(case, *job) for case in cases for job in equal]
    jobs += [(case, "sign", n) for case in cases if (n := case.query.shape[1] // 8) not in EQUAL]
    with joblib.parallel_config("loky", n_jobs=n_processors(), inner_max_num_threads=1):
        parts = joblib.Parallel()(joblib.delayed(score)(*job) for job in jobs)
    return [row for part in parts for row in part]


def cells_of(rows: Sequence[dict[str, str]], dataset: str) -> dict[tuple[str, str], dict[tuple[int, int], str]]:
    """Return recall by method and kind of query, and by candidates and bytes."""
    cells: dict[tuple[str, str], dict[tuple[int, int], str]] = {}
    for row in rows:
        if row["dataset"] == dataset:
            recall = f"{float(row['recall']):.3f}"
            cells.setdefault((row["method"], row["query"]), {})[int(row["n_candidates"]), int(row["bytes"])] = recall
    return cells


def layout_equal(rows: Sequence[dict[str, str]], dataset: str) -> str:
    """Lay out one dataset's rows of equal bytes as a Markdown table."""
    columns = [*itertools.product(N_CANDIDATES, IN_TABLES)]
    heads = [f"{n_bytes} B{', re-ranked' if n > N_NEIGHBOURS else ''}" for n, n_bytes in columns]
    lines = [f"| codes | queries | {' | '.join(heads)} |", "|---|---|" + "--:|" * len(heads)]
    for (method, query), cells in cells_of(rows, dataset).items():
        if method not in WHOLE or method in INDEXES:
            lines.append(f"| {method} | {query} | {' | '.join(cells.get(column, '') for column in columns)} |")
    return "\n".join(lines)


def layout_whole(rows: Sequence[dict[str, str]], datasets: Sequence[str]) -> str:
    """Lay out the rows of codes with all dimensions as a Markdown table."""
    heads = [*datasets, *(f"{name}, re-ranked" for name in datasets)]
    lines = [f"| codes | queries | bytes | {' | '.join(heads)} |", "|---|---|---|" + "--:|" * len(heads)]
    cells = [cells_of(rows, dataset) for dataset in datasets]
    sizes = [max(size for _, size in of_dataset["float32", "floats"]) // 4 for of_dataset in cells]  # features
    for (method, query), (words, n_bytes) in BYTES.items():
        shown = [of[method, query][n, n_bytes(d)] for n in N_CANDIDATES for of, d in zip(cells, sizes, strict=True)]
        lines.append(f"| {method} | {query} | {words} | {' | '.join(shown)} |")
    return "\n".join(lines)


def draw(rows: Sequence[dict[str, str]], path: Path) -> None:
    """Draw recall against up to 64 bytes per item: one row of panels per dataset, straight and re-ranked."""
    frame = pd.DataFrame(rows).astype({"bytes": int, "n_candidates": int, "recall": float})
    frame = frame[frame["bytes"] <= max(EQUAL)]
    datasets = list(dict.fromkeys(frame["dataset"]))
    with one_look():
        figure = Figure(figsize=(6.2, 0.6 + 2.2 * len(datasets)), layout="constrained")
        panels = figure.subplots(len(datasets), len(N_CANDIDATES), squeeze=False, sharex=True, sharey=True)
        for dataset, pair in zip(datasets, panels, strict=True):
            for n, panel in zip(N_CANDIDATES, pair, strict=True):
                cells = frame[(frame["dataset"] == dataset) & (frame["n_candidates"] == n)]
                draw_lines(panel, cells.set_index(["method", "query"]).sort_values("bytes"))
                panel.set_title(f"{dataset}, {f'first {n} re-ranked' if n > N_NEIGHBOURS else 'straight'}")
            pair[0].set_ylabel(f"recall of {N_NEIGHBOURS} neighbours")
        for panel in panels[-1]:
            panel.set_xlabel("bytes per item (log scale)")
        figure.legend(handles=panels[0, 0].get_lines(), loc="outside upper left", ncols=4, handlelength=2.5)
        figure.savefig(path, metadata=METADATA["svg"])


def draw_lines(panel: Axes, cells: pd.DataFrame) -> None:
    """Draw one panel's lines."""
    for part, (name, look) in LINES.items():
        line = cells.loc[[part]]
        panel.plot(line["bytes"], line["recall"], label=name, **look.curve())
    panel.set_xscale("log", base=2)
    panel.set_xticks(EQUAL, [str(n_bytes) for n_bytes in EQUAL])
    panel.minorticks_off()
    panel.set(xlim=(7, 73), ylim=(0, 1.04))
    panel.tick_params(labelbottom=True, labelleft=True)


def main() -> None:
    """Score everything, write the rows, and make the tables and the figure."""
    parser = parser_of(__doc__)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--database", type=int, default=10_000)
    parser.add_argument("--images", default="cifar10-s1:squeezenet", help="dataset, or its prepared file")
    parser.add_argument("--texts", default="wordnet-minilm", help="likewise")
    options = parser.parse_args()
    if not options.again:
        rows = measure(make_cases(options.images, options.texts, options.queries, options.database))
        write_rows(ROWS, COLUMNS, rows)
    shown = read_rows(ROWS)
    draw(shown, FIGURE)
    datasets = list(dict.fromkeys(row["dataset"] for row in shown))
    parts = {name: layout_equal(shown, name) for name in TABLES} | {"whole": layout_whole(shown, datasets)}
    PAGE.write_text(put_into(PAGE.read_text(), parts))


if __name__ == "__main__":
    main()

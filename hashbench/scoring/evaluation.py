"""From packed codes and an affinity to the scores of every query."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hashbench._parallel import chunks, in_threads, query_chunks
from hashbench._typing import ByteArray
from hashbench.affinity import Affinity, as_affinity
from hashbench.bits import as_packed, check_packed, n_words, to_words
from hashbench.errors import HashbenchError
from hashbench.scoring import metrics
from hashbench.scoring.cosine import CosineRanking
from hashbench.scoring.counting import SliceableCodes, count, database_blocks, n_blocks
from hashbench.scoring.equal_rows import sort_equal_rows
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Metric, Scores, get_metric

if TYPE_CHECKING:
    import pandas as pd

DEFAULT_METRICS = ("AP", "AP@1000", "NDCG", "NDCG@100", "P@100", "P@r2")
UNDEFINED = ("skip", "paper")
DISTANCES = ("hamming", "cosine")
_MEMORY = 256 << 20  # bytes of histograms held at a time, and of codes kept between groups of queries


class Summary(NamedTuple):
    """A metric over all queries.

    Parameters
    ----------
    mean, low, high : float
        Means over the queries of expectation, minimum and maximum over tie orders.
    n_queries, n_undefined : int
        All queries, and those without relevant items.
    """

    mean: float
    low: float
    high: float
    n_queries: int
    n_undefined: int


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of every query, by metric.

    Parameters
    ----------
    scores : dict of str to Scores
        Arrays of shape (n_queries,) under the metric's canonical name.
    n_undefined : int
        Queries without relevant items.
    """

    scores: dict[str, Scores]
    n_undefined: int

    def __repr__(self) -> str:
        lines = [
            f"{name}: {values.mean:.4f} ({values.low:.4f} to {values.high:.4f})"
            for name, values in self.summary.items()
        ]
        return f"<Evaluation of {len(next(iter(self.scores.values())).mean)} queries; " + ", ".join(lines) + ">"

    @property
    def summary(self) -> dict[str, Summary]:
        """Means over the queries, by metric; NaN where no query is defined."""
        return {name: self._summary(scores) for name, scores in self.scores.items()}

    def _summary(self, scores: Scores) -> Summary:
        counted = ~np.isnan(scores.mean)
        mean, low, high = (float(part[counted].mean()) if counted.any() else float("nan") for part in scores)
        return Summary(mean, low, high, len(counted), self.n_undefined)

    @property
    def per_query(self) -> "pd.DataFrame":
        """One row a query and metric: query, metric, value, low, high."""
        import pandas as pd  # here, since scoring has no need to wait for it

        frames = [
            pd.DataFrame(
                {
                    "query": np.arange(len(scores.mean)),
                    "metric": name,
                    "value": scores.mean,
                    "low": scores.low,
                    "high": scores.high,
                }
            )
            for name, scores in self.scores.items()
        ]
        return pd.concat(frames, ignore_index=True)


def evaluate(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    affinity: Any,
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    n_bits: int | None = None,
    distance: str = "hamming",
    undefined: str = "skip",
) -> Evaluation:
    """Score codes of any origin, exactly over all orders of tied items.

    Parameters
    ----------
    query_codes : array of shape (n_queries, n_bits)
        Booleans, 0/1 or -1/+1; or, with ``n_bits``, packed uint8 of shape (n_queries, ceil(n_bits / 8)),
        the first bit least significant, as ``numpy.packbits(..., bitorder="little")`` and faiss pack.
    database_codes : array of shape (n_database, n_bits)
        The same for the database.
    affinity : Affinity, pair of label arrays, array or sparse matrix
        Labels as ``(query_labels, database_labels)``, both of shape (n,) or both multi-hot; or a
        (queries x database) matrix of whole-number levels, dense or SciPy CSR.
    metrics : iterable of str
        Names such as ``AP``, ``NDCG@100``, ``P@r2``.
    n_bits : int, optional
        Code length, needed for packed codes alone.
    distance : {"hamming", "cosine"}, default="hamming"
        With ``cosine``, codes are real-valued outputs before the sign, and items are ranked by
        n_bits / 2 * (1 - cosine), which on -1/+1 codes is the Hamming distance.
    undefined : {"skip", "paper"}, default="skip"
        Queries without relevant items are NaN and left out of the means, or AP 0 and NDCG 1.

    Returns
    -------
    Evaluation
        With ``summary``, ``per_query`` and ``scores``.

    Raises
    ------
    HashbenchError
        If codes, affinity and metrics do not fit together.

    Examples
    --------
    >>> import numpy as np, hashbench
    >>> codes = np.array([[0, 0], [0, 0], [1, 1]])
    >>> hashbench.evaluate(codes[:1], codes[1:], (np.array([5]), np.array([5, 7])), ["AP"]).summary["AP"].mean
    1.0
    """
    if distance not in DISTANCES:
        raise HashbenchError(f"distance must be one of {', '.join(DISTANCES)}, got {distance!r}.")
    if distance == "cosine":
        ranking = CosineRanking(query_codes, database_codes)
        return evaluate_ranking(ranking, as_affinity(affinity), metrics, undefined=undefined)
    query, query_bits = as_packed(query_codes, n_bits, "query codes")
    database, database_bits = as_packed(database_codes, n_bits, "database codes")
    if n_bits is not None and (np.shape(query_codes)[1] == n_bits) != (np.shape(database_codes)[1] == n_bits):
        raise HashbenchError(
            f"query codes have shape {np.shape(query_codes)} and database codes {np.shape(database_codes)}: one is "
            f"packed, the other has a column for each of {n_bits} bits. Give both in the same form."
        )
    if query_bits != database_bits:
        raise HashbenchError(
            f"query codes have {query_bits} bits and database codes {database_bits}; both must be equally long."
        )
    return evaluate_packed(query, database, query_bits, as_affinity(affinity), metrics, undefined=undefined)


def evaluate_packed(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    affinity: Affinity,
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    undefined: str = "skip",
    on_progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Score packed codes; the database may still be on disk.

    Parameters
    ----------
    query : ndarray of shape (n_queries, ceil(n_bits / 8)), uint8
        Packed codes.
    database : array-like of shape (n_database, ceil(n_bits / 8)), uint8
        Packed codes, read in slices of some 8 MiB.
    n_bits : int
        Code length in bits.
    affinity : Affinity
        Of shape (n_queries, n_database).
    metrics : iterable of str
        Metric names.
    undefined : {"skip", "paper"}, default="skip"
        See `evaluate`.
    on_progress : callable, optional
        Called with queries counted, once for each block of the database, and how many there will be.

    Returns
    -------
    Evaluation
        Scores of every query.

    Raises
    ------
    HashbenchError
        If codes, affinity and metrics do not fit together.
    """
    chosen = _checked_metrics(metrics, undefined)
    _check_shapes(query, database, affinity)
    check_packed(query, n_bits, "query codes")  # the database is checked block by block
    query, affinity, origin = _distinct_queries(query, affinity)
    n_queries = len(query)
    board = _Board(chosen, undefined, n_queries)
    is_small = 8 * database.shape[0] * (n_words(n_bits) + 1) <= _MEMORY
    kept = list(database_blocks(database, n_bits, affinity)) if is_small else None
    bytes_per_query = 8 * len(affinity.levels) * (n_bits + 1)
    n_done = 0

    def tick(n_counted: int) -> None:
        nonlocal n_done
        n_done += n_counted
        if on_progress is not None:
            on_progress(n_done, n_queries * n_blocks(database, n_bits))

    for queries in chunks(0, n_queries, max(_MEMORY // bytes_per_query, 1)):
        blocks = kept or database_blocks(database, n_bits, affinity)
        histogram = count(query, blocks, n_bits, affinity, queries, tick)

        def score(chunk: slice, histogram: TieHistogram = histogram, first: int = queries.start) -> None:
            part = TieHistogram(histogram.counts[chunk], histogram.levels)
            board.fill(slice(first + chunk.start, first + chunk.stop), part)

        for _ in in_threads(score, query_chunks(histogram.n_queries)):
            pass
    return board.evaluation(origin)


def evaluate_ranking(
    ranking: CosineRanking, affinity: Affinity, metrics: Iterable[str] = DEFAULT_METRICS, *, undefined: str = "skip"
) -> Evaluation:
    """Score a real-valued ranking; tie groups are items at an equal distance.

    Parameters
    ----------
    ranking : CosineRanking
        Outputs of queries and database.
    affinity : Affinity
        Of shape (n_queries, n_database).
    metrics : iterable of str
        Metric names, but none inside a Hamming radius; of the default ones those are left out.
    undefined : {"skip", "paper"}, default="skip"
        See `evaluate`.

    Returns
    -------
    Evaluation
        Scores of every query.

    Raises
    ------
    HashbenchError
        If outputs, affinity and metrics do not fit together.
    """
    if metrics is DEFAULT_METRICS:
        metrics = [name for name in DEFAULT_METRICS if "@r" not in name]
    board = _Board(_checked_metrics(metrics, undefined), undefined, len(ranking.query))
    _check_shapes(ranking.query, ranking.database, affinity)
    bytes_per_query = 8 * (len(affinity.levels) + 8) * len(ranking.database)
    length = min(max(_MEMORY // (4 * bytes_per_query), 1), 64)

    def score(queries: slice) -> None:
        board.fill(queries, ranking.count(queries, affinity))

    for _ in in_threads(score, chunks(0, len(ranking.query), length)):
        pass
    return board.evaluation()


class _Board:
    """Collects the scores of queries, some at a time and in any order."""

    def __init__(self, metrics: Sequence[Metric], undefined: str, n_queries: int) -> None:
        self.metrics, self.undefined = metrics, undefined
        self.scores = {metric.name: Scores(*np.empty((3, n_queries))) for metric in metrics}
        self.is_undefined = np.empty(n_queries, dtype=bool)

    def fill(self, queries: slice, histogram: TieHistogram) -> None:
        self.is_undefined[queries] = histogram.n_relevant == 0
        for metric in self.metrics:
            scores = metric.scores(histogram, self.undefined)
            for out, values in zip(self.scores[metric.name], scores, strict=True):
                out[queries] = values

    def evaluation(self, origin: Any = slice(None)) -> Evaluation:
        scores = {name: Scores(*(part[origin] for part in parts)) for name, parts in self.scores.items()}
        return Evaluation(scores, int(self.is_undefined[origin].sum()))


def _distinct_queries(query: ByteArray, affinity: Affinity) -> tuple[ByteArray, Affinity, Any]:
    """Keep one of each sort of query where many have the same code and labels, as learned codes do.

    Returns also where each query's scores are to be found.
    """
    keys = affinity.query_keys()
    if keys is None:
        return query, affinity, slice(None)
    order, first = sort_equal_rows([*to_words(query).T, *keys.T])
    if 2 * len(first) > len(order):
        return query, affinity, slice(None)
    origin = np.empty(len(order), dtype=np.int64)
    origin[order] = np.repeat(np.arange(len(first)), np.diff(first, append=len(order)))
    kept = order[first]
    return query[kept], affinity.part(kept), origin


def _checked_metrics(metrics: Iterable[str], undefined: str) -> Sequence[Metric]:
    if isinstance(metrics, str):
        metrics = [metrics]
    chosen = list({metric.name: metric for metric in map(get_metric, metrics)}.values())
    if not chosen:
        raise HashbenchError("no metrics were asked for; name at least one, such as AP.")
    if undefined not in UNDEFINED:
        raise HashbenchError(f"undefined must be one of {', '.join(UNDEFINED)}, got {undefined!r}.")
    return chosen


def _check_shapes(query: npt.NDArray[Any], database: SliceableCodes, affinity: Affinity) -> None:
    for role, codes, n_rated in (
        ("query", query, affinity.n_queries),
        ("database", database, affinity.n_database),
    ):
        if not codes.shape[0]:
            raise HashbenchError(f"there are no {role} codes; at least one is needed.")
        if codes.shape[0] != n_rated:
            shapes = (query.shape[0], database.shape[0])
            swapped = shapes == (affinity.n_database, affinity.n_queries)
            raise HashbenchError(
                f"there are {codes.shape[0]} {role} codes, but labels or affinities for {n_rated} {role} items."
                + (" Query and database look swapped." if swapped else "")
            )


def scoring_modules() -> tuple[str, ...]:
    """Name the modules whose code decides scores.

    Returns
    -------
    tuple of str
        For `hashbench.registry.source_digest`.
    """
    names = ("affinity", "bits", "distances", "levels", "_kernels", "counting", "ties", "evaluation", "metrics")
    families = (module.name for module in iter_modules(metrics.__path__, "hashbench.scoring.metrics."))
    return (*(f"hashbench.{name}" for name in names), *families)

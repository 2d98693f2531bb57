"""Score every query from codes and an affinity, in parts that fit memory."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Self, cast

import numpy as np
import numpy.typing as npt

from hashbench._choices import DISTANCES, TRUE_DISTANCES
from hashbench._parallel import QUERY_CHUNK, chunks
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Progress, Rows, silent
from hashbench._validation import are_real, as_array, check_choice
from hashbench.affinity import Affinity, as_affinity, level_indices, row_digests
from hashbench.bits import as_packed_pair, n_words, to_words
from hashbench.errors import HashbenchError
from hashbench.scoring.asymmetric import AsymmetricRanking, as_outputs, notes_on_signs
from hashbench.scoring.code_statistics import usage_notes
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.cosine import CosineRanking
from hashbench.scoring.counting import Buckets, SliceableCodes, count, database_blocks, largest_left, n_blocks
from hashbench.scoring.engine import kernels
from hashbench.scoring.equal_rows import number_rows
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation, OrderEffect, suited
from hashbench.scoring.histogram import TieHistogram, count_groups
from hashbench.scoring.ignored import Relevance, check_left, leave_out, notes_on_ignored
from hashbench.scoring.item_sample import PackedSample
from hashbench.scoring.metrics import Metric, checked_metrics
from hashbench.scoring.random_orders import Ties, check_orders, measure
from hashbench.scoring.reranking import Vectors, candidate_parts
from hashbench.scoring.score_table import Counted, ItemSums, ScoreTable
from hashbench.scoring.self_pairs import check_self

_ALL = slice(None)
_MEMORY = 256 << 20  # bytes of histograms held at a time, and of codes held between groups of queries


@reporting_compilation()
def evaluate(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    affinity: Any,
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    n_bits: int | None = None,
    bit_order: str | None = None,
    distance: str = "hamming",
    undefined: str = "skip",
    vectors: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    true_distance: str = "euclidean",
    query_outputs: npt.ArrayLike | None = None,
    random_orders: int = 0,
    exclude_self: bool = False,
    exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    junk_label: int | str | Sequence[int | str] | None = None,
) -> Evaluation:
    """Score codes of any origin, exactly over all orders of tied items.

    Parameters
    ----------
    query_codes : array of shape (n_queries, n_bits)
        Booleans, 0/1, -1/+1 or 0/255; or, with ``n_bits``, packed uint8 of shape (n_queries, ceil(n_bits / 8)),
        the first bit least significant, as ``numpy.packbits(..., bitorder="little")`` and faiss pack, or int8 as
        sentence-transformers' ``binary``; or hexadecimal strings or integers (n_queries,), or booleans
        (n_queries, k, k), as perceptual hashes are.
    database_codes : array of shape (n_database, n_bits)
        The same for the database.
    affinity : Affinity, pair of label arrays, array or sparse matrix
        Labels as ``(query_labels, database_labels)``, both of shape (n,), numbers or words, or both multi-hot; or a
        (queries x database) matrix of levels, dense or SciPy CSR, -1 for items that the query ignores. Levels are whole
        numbers, or real ones for NDCG and PairwiseError.
    metrics : iterable of str
        Names such as ``AP``, ``NDCG@100``, ``P@r2``; the default is without AP and P where levels are not whole.
    n_bits : int, optional
        Code length, needed for packed codes, for integers below 2**32, and for 0/255 in uint8.
    bit_order : {"little", "big"}, optional
        Whether the first bit of a packed byte is the least or the most significant; by default the least, in int8 the
        most. It matters if ``n_bits`` is not a multiple of 8.
    distance : {"hamming", "cosine", "dot"}, default="hamming"
        With ``cosine``, codes are real-valued outputs before the sign, and items are ranked by
        n_bits / 2 * (1 - cosine), which on -1/+1 codes is the Hamming distance. ``dot`` ranks by inner products.
    undefined : {"skip", "paper", "zero"}, default="skip"
        Queries without relevant items are NaN and left out of the means; or AP 0 and NDCG 1; or 0 in all metrics.
    vectors : pair of arrays of shape (n, n_features), optional
        The float vectors that were coded, of queries and database: metrics such as ``Recall@10:reranked=100`` put the
        nearest items by Hamming distance in their order.
    true_distance : {"euclidean", "cosine", "dot"}, default="euclidean"
        Distance between the ``vectors``.
    query_outputs : array of shape (n_queries, n_bits), optional
        Real-valued outputs of the queries, whose signs are their codes: ``AP:dot`` ranks the database's codes, as -1
        and +1, by their inner product with these, and ``AP:sigmoid`` by the L1 distance to their sigmoid.
    random_orders : int, default=0
        Number of random orders of the database, each shared by all queries, to score too, 2 or more: the means under
        them are ``Evaluation.random_orders``. They are the same each time.
    exclude_self : bool, default=False
        Whether queries are the items of the database, in its order, and each ranks all items but itself. Without
        it, queries that equal the database find themselves first; ``Evaluation.notes`` says so.
    exclude_same_id : pair of arrays, optional
        Ids of queries and database, of shape (n,), numbers or words: each query ignores items with its id.
    groups : pair of arrays, optional
        Groups of queries and database, such as cameras, likewise: each query ignores items with its class label and
        its group.
    junk_label : int, str or sequence of them, optional
        Class labels of database items that all queries ignore.

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
    check_choice(distance, DISTANCES, "distance")
    check_choice(true_distance, TRUE_DISTANCES, "true_distance")
    if vectors is not None and (not isinstance(vectors, Sequence) or len(vectors) != 2):
        raise HashbenchError(f"vectors must be (query_vectors, database_vectors), got a {type(vectors).__name__}.")
    rule = leave_out(as_affinity(affinity), exclude_self, exclude_same_id, groups, junk_label)
    if distance != "hamming":
        if n_bits is not None or bit_order is not None:
            raise HashbenchError(
                f"distance={distance!r} ranks by real-valued outputs, which have no n_bits and no bit_order; leave "
                "them out."
            )
        if vectors is not None:
            raise HashbenchError(
                f"vectors re-rank the items nearest in Hamming distance, so they do not go with distance={distance!r}; "
                "leave one out."
            )
        if query_outputs is not None:
            raise HashbenchError(
                f"query_outputs are compared with binary codes, so they do not go with distance={distance!r}; leave "
                "one out."
            )
        ranking = CosineRanking(query_codes, database_codes, by_dot=distance == "dot")
        outputs = as_array(query_codes, "query outputs"), as_array(database_codes, "database outputs")
        check_counts((len(ranking.query), len(ranking.database)), (rule.n_queries, rule.n_database))
        notes = [*rule.notes, *check_self(*outputs, rule)]
        if rule.true_distance not in (None, distance):
            notes.append(
                f"Relevance was computed by {rule.true_distance} distance, and items are ranked by {distance}."
            )
        metrics, left_out = suited(metrics, rule.levels, has_radius=False)
        chosen = checked_metrics(metrics, undefined)
        scored = _evaluate_ranking(ranking, rule, chosen, undefined, random_orders)
        return replace(scored, notes=[*notes, *scored.notes, *left_out])
    query, database, n_bits = as_packed_pair(query_codes, database_codes, n_bits, bit_order)
    rules: dict[str, Any] = {"undefined": undefined, "random_orders": random_orders}
    if vectors is not None:
        rules["vectors"] = Vectors(*vectors, true_distance)
    if query_outputs is not None:
        rules["query_outputs"] = as_outputs(query_outputs, (len(query), n_bits))
    return evaluate_packed(query, database, n_bits, rule, metrics, **rules)


def evaluate_packed(
    query: ByteArray,
    database: SliceableCodes,
    n_bits: int,
    affinity: Affinity,
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    undefined: str = "skip",
    vectors: Vectors | None = None,
    query_outputs: FloatArray | None = None,
    random_orders: int = 0,
    on_progress: Progress = silent,
) -> Evaluation:
    """Score packed codes, (n, ceil(n_bits / 8)); a database on disk is read and checked some 8 MiB at a time.

    ``query_outputs``, of `as_outputs`, are for metrics that compare codes with them; the database is then read whole.
    ``on_progress`` is called if the loops have to be compiled, then for each block of the database with the
    queries counted, as items. Raises HashbenchError if codes, affinity and metrics do not fit together.
    """
    metrics, left_out = suited(metrics, affinity.levels)
    asked = checked_metrics(metrics, undefined)
    chosen = [metric for metric in asked if not metric.form]
    by_outputs = [metric for metric in asked if metric.form]
    if by_outputs and query_outputs is None:
        raise by_outputs[0].lacks_outputs()
    check_counts((len(query), database.shape[0]), (affinity.n_queries, affinity.n_database))
    for metric in asked:
        metric.check_levels(affinity.levels)
    n_reranked = _n_reranked(chosen, vectors)
    if random_orders:
        check_orders(random_orders, asked)
    if vectors is not None:
        vectors.check_fit(len(query), database.shape[0])
    notes = [*affinity.notes, *check_self(query, database, affinity)]
    notes += usage_notes(query, database, n_bits)
    if by_outputs and query_outputs is not None:
        notes += notes_on_signs(query_outputs, query, n_bits)
    kinds = QueryKinds.of(query, affinity.query_keys())
    origin: Rows = _ALL
    all_query, all_affinity = query, affinity
    if kinds.are_few and not n_reranked:
        query, affinity, origin = query[kinds.first], affinity.part(kinds.first), kinds.of_query
    n_queries, n_alike = len(query), None if origin is _ALL else np.bincount(kinds.of_query)
    sample = PackedSample.of(query, database, n_bits, affinity)
    keys = all_affinity.part(_ALL, sample.rows).item_keys()
    sums = ItemSums(chosen, n_queries, sample.rows, database.shape[0], n_alike, keys)
    table = ScoreTable(chosen, undefined, n_queries, sums)
    at_a_time = max(_MEMORY // (8 * len(affinity.levels) * (n_bits + 1)), 1)  # queries
    is_small = 8 * database.shape[0] * (n_words(n_bits) + 1) <= _MEMORY
    is_read_again = n_queries > at_a_time
    held_blocks = list(database_blocks(database, n_bits, affinity)) if is_small and is_read_again else None
    buckets = Buckets.of(database, n_bits) if any(metric.family.needs_buckets for metric in chosen) else None
    n_all, n_done = n_queries * n_blocks(database, n_bits), 0

    def tick(n_counted: int) -> None:
        nonlocal n_done
        n_done += n_counted
        on_progress("items", n_done, n_all)

    def fill(queries: slice, histogram: TieHistogram) -> None:
        def counted(part: slice) -> Counted:
            relative = slice(part.start - queries.start, part.stop - queries.start)
            return Counted(histogram.part(relative), partial(sample.add, part))

        table.fill(sums.parts(queries, histogram.counts[0].size), counted)

    with reporting_compilation(on_progress):
        for queries in chunks(0, n_queries, at_a_time):
            blocks = held_blocks or database_blocks(database, n_bits, affinity)
            histogram = count(query, blocks, n_bits, affinity, queries, tick)
            if affinity.ignores:
                check_left(histogram.n_database, (np.arange(n_queries) if origin is _ALL else kinds.first)[queries])
            if buckets is not None and affinity.ignores:
                largest = largest_left(query, database, affinity, queries, n_bits)
                histogram = replace(histogram, largest_bucket=largest)
            elif buckets is not None:
                histogram = replace(histogram, largest_bucket=buckets.largest(query[queries], n_bits))
            if vectors is None or not n_reranked:
                fill(queries, histogram)
                continue
            codes = query, database, n_bits
            for part, candidates in candidate_parts(histogram, queries, *codes, affinity, vectors, n_reranked):
                absolute = slice(queries.start + part.start, queries.start + part.stop)
                fill(absolute, replace(histogram.part(part), candidates=candidates))
    ignored = notes_on_ignored(all_affinity, table.n_left[origin], has_relevant=bool(table.n_relevant.any()))
    notes += [*ignored, *left_out, *table.readings(origin)]
    evaluation = replace(kinds.noted(table, origin, all_query, all_affinity), notes=notes)
    others = []
    for form in dict.fromkeys(metric.form for metric in by_outputs):
        of_form = [metric.without_form() for metric in by_outputs if metric.form == form]
        ranking = AsymmetricRanking(cast("FloatArray", query_outputs), np.asarray(database[:]), n_bits, form)
        scored = _evaluate_ranking(ranking, all_affinity, of_form, undefined, random_orders, sample.rows)
        effects = {name: OrderEffect(0.0, parts.tie_sd) for name, parts in scored.scores.items()}
        effects |= scored.order_effects
        effects = {name: effect._replace(kinds=scored.kind) for name, effect in effects.items()}
        others.append(replace(scored, order_effects=effects))
    if not random_orders or not chosen:
        return _united(evaluation, others, asked)
    words, all_words = to_words(all_query), to_words(np.asarray(database[:]))

    def rankings(queries: IntArray) -> Callable[[IntArray], TieHistogram]:
        distances = np.empty((len(queries), len(all_words)), dtype=np.int16)
        for row, code in zip(distances, words[queries], strict=True):
            row[:] = np.bitwise_count(all_words ^ code).sum(axis=1)
        return _ties(distances, all_affinity, queries).ranked

    measured = measure(
        evaluation,
        rankings,
        len(all_words),
        undefined,
        random_orders,
        on_progress,
        alike=kinds.of_query,
        are_real=are_real(affinity.levels),
    )
    return _united(measured, others, asked)


def _united(evaluation: Evaluation, others: Sequence[Evaluation], metrics: Sequence[Metric]) -> Evaluation:
    """Add the scores of evaluations of the same queries to those of one, in the order of metrics."""
    if not others:
        return evaluation
    parts: dict[str, Any] = {}
    for kind in ("scores", "order_effects", "random_orders"):
        values = {name: value for one in (evaluation, *others) for name, value in dict(getattr(one, kind)).items()}
        parts[kind] = {metric.name: values[metric.name] for metric in metrics if metric.name in values}
    return replace(evaluation, **parts)


def _ties(group: AnyArray, affinity: Affinity, queries: Rows) -> Ties:
    """Count the items of some queries by tie and level; tie groups are (n_queries, n_database), -1 if ignored."""
    block = affinity.block(queries, _ALL)
    level = level_indices(affinity.levels, block)
    if affinity.ignores:
        group = np.where(block < 0, -1, group)
    return Ties(group, level, count_groups(level, group, affinity.levels))


def _n_reranked(metrics: Sequence[Metric], vectors: Vectors | None) -> int:
    """Return the largest number of candidates that a metric re-ranks; 0 if none does."""
    reranked = [metric for metric in metrics if metric.family.needs_candidates]
    if reranked and vectors is None:
        raise reranked[0].lacks_vectors()
    return max((int(metric.arguments[1]) for metric in reranked), default=0)


def _evaluate_ranking(
    ranking: CosineRanking | AsymmetricRanking,
    affinity: Affinity,
    chosen: Sequence[Metric],
    undefined: str,
    random_orders: int,
    rows: IntArray | None = None,
) -> Evaluation:
    """Score a real-valued ranking, whose tie groups are items at an equal distance.

    It has no Hamming radius: metrics that need one raise HashbenchError. ``rows`` of the database stand for all where
    sums over items are kept, by default all.
    """
    n_database, n_levels = affinity.n_database, len(affinity.levels)
    for metric in chosen:
        metric.check_ranking(affinity.levels, by_radius=False)
    if random_orders:
        check_orders(random_orders, chosen)
    bytes_per_query = 8 * (n_levels * (len(chosen) + 5) + 8) * n_database  # counts, tables of `ItemSums`, and the rest
    length = min(max(_MEMORY // (4 * bytes_per_query), 1), 64)
    n_queries, digests = len(ranking.query), row_digests(ranking.query)

    def ties(queries: Rows) -> Ties:
        return _ties(ranking.groups(queries), affinity, queries)

    if rows is None:
        rows = np.arange(n_database)
    items = ItemSums(chosen, n_queries, rows, n_database, keys=affinity.part(_ALL, rows).item_keys())
    table = ScoreTable(chosen, undefined, n_queries, items)

    def counted(queries: slice) -> Counted:
        of_part = ties(queries)
        if affinity.ignores:
            check_left(of_part.histogram.n_database, np.arange(n_queries)[queries])
        cells = np.ascontiguousarray(of_part.cells[:, rows])
        return Counted(of_part.histogram, lambda tables, sums: kernels.add_cells(cells, tables, sums))

    table.fill(chunks(0, n_queries, length), counted)
    kinds = QueryKinds.of(digests, affinity.query_keys())
    evaluation = kinds.noted(table, _ALL, digests, affinity)
    ignored = notes_on_ignored(affinity, table.n_left, has_relevant=bool(table.n_relevant.any()))
    evaluation = replace(evaluation, notes=[*evaluation.notes, *ignored])
    if not random_orders:
        return evaluation
    return measure(
        evaluation,
        lambda queries: ties(queries).ranked,
        n_database,
        undefined,
        random_orders,
        alike=kinds.of_query,
        are_real=are_real(affinity.levels),
    )


def evaluate_histogram(histogram: TieHistogram, metrics: Iterable[str], *, undefined: str) -> Evaluation:
    """Score the queries of a histogram; the items behind the counts are not known."""
    table = ScoreTable(checked_metrics(metrics, undefined), undefined, histogram.n_queries)
    queries = chunks(0, histogram.n_queries, QUERY_CHUNK)
    table.fill(queries, lambda part: Counted(histogram.part(part)))
    return table.evaluation()


class QueryKinds(NamedTuple):
    """Kinds of queries, alike in code and in their level with every item; learned codes have few."""

    first: IntArray  # (n_kinds,): a query of each kind
    of_query: IntArray  # (n_queries,): the kind of each query

    @classmethod
    def of(cls, codes: AnyArray, keys: IntArray | None) -> Self:
        """Find kinds by packed codes, or other bytes, and `Affinity.query_keys`; without keys all queries differ."""
        if keys is None:
            return cls(np.arange(len(codes)), np.arange(len(codes)))
        of_query, first = number_rows([*to_words(codes).T, *keys.T])
        return cls(first, of_query)

    def noted(self, table: ScoreTable, origin: Rows, codes: AnyArray, relevance: Relevance) -> Evaluation:
        """Return the scores of all queries, and which are of one kind but for the items that they ignore."""
        keys, is_plain = relevance.plain.query_keys(), relevance.plain is relevance
        kinds = self if is_plain else QueryKinds.of(codes, keys)
        if keys is None:
            return table.evaluation(origin, kinds.of_query)
        number, first = number_rows([*keys.T])
        return replace(table.evaluation(origin, kinds.of_query), alike=first[number])

    @property
    def are_few(self) -> bool:
        """Whether it pays to score one of each."""
        return 2 * len(self.first) <= len(self.of_query)


def check_counts(n_codes: tuple[int, int], n_rated: tuple[int, int]) -> None:
    """Refuse no codes of queries or database, and numbers of codes that differ from those of the affinity."""
    hint = " Query and database look swapped." if n_codes == n_rated[::-1] else ""
    for role, n, expected in zip(("query", "database"), n_codes, n_rated, strict=True):
        if not n:
            raise HashbenchError(f"there are no {role} codes; at least one is needed.")
        if n != expected:
            raise HashbenchError(
                f"there are {n} {role} codes, but labels or affinities for {expected} {role} items.{hint}"
            )

"""What is scored, as one value: queries, what is ranked for them, what is relevant to them, and what is ignored."""

from __future__ import annotations  # so that help() shows npt.ArrayLike, not all that it stands for

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from hashbench._choices import DISTANCES, TRUE_DISTANCES
from hashbench._typing import (
    ByteArray,
    CodeDistance,
    FloatArray,
    Progress,
    SliceableCodes,
    TrueDistance,
    Undefined,
    silent,
)
from hashbench._validation import as_array, check_choice, refuse_fractions
from hashbench.affinity import Affinity, AffinityLike, as_affinity
from hashbench.bits import as_packed_pair
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.candidates import CandidateCount, CandidateCounts, check_wanted, count_candidates
from hashbench.scoring.compilation import reporting_compilation
from hashbench.scoring.evaluation import DEFAULT_METRICS, RUN_METRICS, Evaluation, OrderEffect, suited
from hashbench.scoring.hamming import HammingRanking, check_counts
from hashbench.scoring.ignored import check_self, leave_out
from hashbench.scoring.metrics import Metric, checked_metrics
from hashbench.scoring.random_orders import check_orders
from hashbench.scoring.ranking import Ranking, score
from hashbench.scoring.real_rankings import (
    AsymmetricDistance,
    CosineDistance,
    JaccardDistance,
    RealRanking,
    as_outputs,
    bits_or_counts,
    notes_on_signs,
)
from hashbench.scoring.reranking import Vectors
from hashbench.scoring.thresholds import Thresholds, count_halves, count_pairs

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd


@reporting_compilation()
def evaluate(
    query_codes: npt.ArrayLike,
    database_codes: npt.ArrayLike,
    affinity: AffinityLike,
    metrics: Iterable[str] = DEFAULT_METRICS,
    *,
    undefined: Undefined = "skip",
    random_orders: int = 0,
    n_bits: int | None = None,
    bit_order: str | None = None,
    distance: CodeDistance = "hamming",
    vectors: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
    true_distance: TrueDistance = "euclidean",
    query_outputs: npt.ArrayLike | None = None,
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
    distance : {"hamming", "jaccard", "cosine", "dot"}, default="hamming"
        With ``cosine``, codes are real-valued outputs before the sign, and items are ranked by
        n_bits / 2 * (1 - cosine), which on -1/+1 codes is the Hamming distance. ``dot`` ranks by inner products.
        ``jaccard`` ranks codes, or rows of counts, by 1 - sum of minima / sum of maxima (on bits 1 - Tanimoto
        similarity); equal ratios tie.
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
    problem = Problem.of_codes(
        query_codes,
        database_codes,
        affinity,
        n_bits=n_bits,
        bit_order=bit_order,
        distance=distance,
        vectors=vectors,
        true_distance=true_distance,
        query_outputs=query_outputs,
        exclude_self=exclude_self,
        exclude_same_id=exclude_same_id,
        groups=groups,
        junk_label=junk_label,
    )
    return problem.evaluate(metrics, undefined=undefined, random_orders=random_orders)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is scored: queries, what is ranked for them, what is relevant, and what is ignored.

    `Problem.of_codes` makes one of codes. Scores, curves, thresholds and candidates are asked of it.

    Parameters
    ----------
    ranking : Ranking
        Codes with what is relevant to their queries, real-valued outputs, or lists.
    query_outputs : ndarray of shape (n_queries, n_bits), optional
        Real-valued outputs of queries that metrics such as ``AP:dot`` compare with codes.
    queries : sequence of str, optional
        Names of the queries; by default they are numbered.
    about : sequence of str
        Sentences about the input that its owner should read.

    Examples
    --------
    >>> problem = Problem.of_codes([[0, 0]], [[0, 1], [0, 1], [1, 0], [1, 1]], [[1, 1, 0, 0]])
    >>> problem
    <Problem of 1 query and 4 items, 2 bits>
    >>> problem.evaluate(["P@2"])
    <Evaluation of 1 query; P@2: 0.6667 (0.5000 to 1.0000; tie_sd 0.2357)>
    >>> [count.n_candidates for count in problem.candidates("R@2", [0.6, 0.9])]
    [2, 3]
    """

    ranking: Ranking
    query_outputs: FloatArray | None = None
    queries: Sequence[str] | None = None
    about: Sequence[str] = ()

    @classmethod
    def of_codes(
        cls,
        query_codes: npt.ArrayLike,
        database_codes: npt.ArrayLike,
        affinity: AffinityLike,
        *,
        n_bits: int | None = None,
        bit_order: str | None = None,
        distance: CodeDistance = "hamming",
        vectors: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        true_distance: TrueDistance = "euclidean",
        query_outputs: npt.ArrayLike | None = None,
        exclude_self: bool = False,
        exclude_same_id: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        groups: tuple[npt.ArrayLike, npt.ArrayLike] | None = None,
        junk_label: int | str | Sequence[int | str] | None = None,
    ) -> Problem:
        """Return what `hashbench.evaluate` scores, given the same arguments.

        Parameters
        ----------
        query_codes, database_codes, affinity, n_bits, bit_order, distance, vectors, true_distance, query_outputs
            As in `hashbench.evaluate`.
        exclude_self, exclude_same_id, groups, junk_label
            As in `hashbench.evaluate`.

        Returns
        -------
        Problem
            To evaluate.

        Raises
        ------
        HashbenchError
            If codes and affinity do not fit together.

        Examples
        --------
        >>> codes = [[0, 0, 0], [0, 0, 1], [1, 1, 1]]
        >>> Problem.of_codes(codes, codes, ([5, 5, 7], [5, 5, 7]), exclude_self=True).thresholds().best_f1.radius
        1
        """
        check_choice(distance, DISTANCES, "distance")
        check_choice(true_distance, TRUE_DISTANCES, "true_distance")
        if vectors is not None and (not isinstance(vectors, Sequence) or len(vectors) != 2):
            raise HashbenchError(f"vectors must be (query_vectors, database_vectors), got a {type(vectors).__name__}.")
        rule = leave_out(as_affinity(affinity), exclude_self, exclude_same_id, groups, junk_label)
        if distance == "hamming":
            packed = as_packed_pair(query_codes, database_codes, n_bits, bit_order)
            compared = None if vectors is None else Vectors(*vectors, true_distance)
            return cls.of_packed(*packed, rule, vectors=compared, query_outputs=query_outputs)
        if distance == "jaccard":
            query_codes, database_codes = bits_or_counts(query_codes, database_codes, n_bits, bit_order)
        elif n_bits is not None or bit_order is not None:
            raise HashbenchError(
                f"distance={distance!r} ranks by real-valued outputs, which have no n_bits and no bit_order; leave "
                "them out."
            )
        for what, value in (
            ("vectors re-rank codes", vectors),
            ("query_outputs are compared with codes", query_outputs),
        ):
            if value is not None:
                raise HashbenchError(
                    f"{what} that are ranked by Hamming distance, got distance={distance!r}; leave one of the two out."
                )
        return cls.of_outputs(query_codes, database_codes, rule, distance)

    @classmethod
    def of_packed(
        cls,
        query: ByteArray,
        database: SliceableCodes,
        n_bits: int,
        affinity: Affinity,
        *,
        vectors: Vectors | Callable[[], Vectors] | None = None,
        query_outputs: npt.ArrayLike | None = None,
    ) -> Problem:
        """Return a problem of packed codes, (n, ceil(n_bits / 8)); a database on disk is read some 8 MiB at a time.

        ``vectors`` may be what reads them, called if a metric re-ranks. Raises HashbenchError if parts do not fit
        together.
        """
        return cls.of_ranking(HammingRanking(query, database, n_bits, affinity, vectors), query_outputs)

    @classmethod
    def of_ranking(cls, ranking: HammingRanking, query_outputs: npt.ArrayLike | None = None) -> Problem:
        """Return a problem of packed codes that are counted in some way, such as by workers."""
        relevance, shape = ranking.relevance, (ranking.n_queries, ranking.n_items)
        check_counts(shape, (relevance.n_queries, relevance.n_database))
        about = [*relevance.notes, *check_self(ranking.query, ranking.database, relevance)]
        if isinstance(ranking.vectors, Vectors):
            ranking.vectors.check_fit(*shape)
        outputs = None if query_outputs is None else as_outputs(query_outputs, (ranking.n_queries, ranking.n_bits))
        return cls(ranking, outputs, about=about)

    @classmethod
    def of_outputs(cls, query: npt.ArrayLike, database: npt.ArrayLike, affinity: Affinity, distance: str) -> Problem:
        """Return a problem of outputs, (n, n_bits), ranked by ``cosine`` or ``dot``, or of counts by ``jaccard``."""
        about = []
        if distance == "jaccard":
            by_outputs: JaccardDistance | CosineDistance = (of_sets := JaccardDistance(query, database))
            if not of_sets.are_bits:
                about.append(
                    f"Codes are read as {of_sets.query.shape[1]:,} counts each. If they are packed bits, give their "
                    "number (--bits, in Python n_bits)."
                )
        else:
            by_outputs = CosineDistance(query, database, by_dot=distance == "dot")
        outputs = as_array(query, "query outputs"), as_array(database, "database outputs")
        check_counts((len(by_outputs.query), len(outputs[1])), (affinity.n_queries, affinity.n_database))
        about += [*affinity.notes, *check_self(*outputs, affinity)]
        if affinity.true_distance not in (None, distance):
            about.append(
                f"Relevance was computed by {affinity.true_distance} distance, and items are ranked by {distance}."
            )
        return cls(RealRanking(by_outputs, affinity), about=about)

    def __post_init__(self) -> None:
        if not isinstance(self.ranking, Ranking):
            raise HashbenchError(
                f"a Problem is made by Problem.of_codes(query_codes, database_codes, affinity), got a "
                f"{type(self.ranking).__name__}."
            )

    def __repr__(self) -> str:
        queries = counted(self.ranking.n_queries, "query", "queries")
        of_codes = f", {self.ranking.n_bits} bits" if isinstance(self.ranking, HammingRanking) else ""
        return f"<Problem of {queries} and {counted(self.ranking.n_items, 'item')}{of_codes}>"

    @property
    def notes(self) -> list[str]:
        """Sentences about the input, and about codes that rank little or nothing."""
        return [*self.about, *self.ranking.notes]

    @property
    def codes(self) -> HammingRanking:
        """The binary codes; refused if what is ranked has none."""
        if isinstance(self.ranking, HammingRanking):
            return self.ranking
        raise HashbenchError(
            "thresholds, candidates and explanations are of binary codes and their Hamming distance, and this is a "
            "ranking by real-valued scores, which has none. Pass binary codes."
        )

    def evaluate(
        self,
        metrics: Iterable[str] = DEFAULT_METRICS,
        *,
        undefined: Undefined = "skip",
        random_orders: int = 0,
        on_progress: Progress = silent,
    ) -> Evaluation:
        """Score every query, exactly over all orders of tied items.

        Parameters
        ----------
        metrics, undefined, random_orders
            As in `hashbench.evaluate`.
        on_progress : callable, optional
            Called if the loops have to be compiled, then for each block of the database with the queries counted.

        Returns
        -------
        Evaluation
            With ``summary``, ``per_query`` and ``scores``.

        Raises
        ------
        HashbenchError
            If metrics are unknown, or need what this problem lacks.
        """
        if metrics is DEFAULT_METRICS and self.ranking.of_run:
            metrics = RUN_METRICS
        metrics, left_out = suited(metrics, self.ranking.levels, has_radius=self.ranking.by_radius)
        asked = checked_metrics(metrics, undefined, of_run=self.ranking.of_run)
        chosen = [metric for metric in asked if not (metric.form and self.query_outputs is not None)]
        for metric in chosen:
            self.ranking.check(metric)
        by_outputs = [metric.without_form() for metric in asked if metric not in chosen]
        for metric in by_outputs:
            metric.check_levels(self.ranking.levels)
        if random_orders:
            check_orders(random_orders, asked)
        notes = self.notes
        if by_outputs:
            notes += notes_on_signs(cast("FloatArray", self.query_outputs), self.codes.query, self.codes.n_bits)
        evaluation = score(self.ranking, chosen, undefined, random_orders, on_progress)
        notes += [*evaluation.notes, *left_out]
        others = []
        for form in dict.fromkeys(metric.form for metric in asked if metric not in chosen):
            of_form = [metric.without_form() for metric in asked if metric.form == form]
            scored = score(self._asymmetric(form, chosen), of_form, undefined, random_orders, on_progress)
            effects = {name: OrderEffect(0.0, parts.tie_sd) for name, parts in scored.scores.items()}
            effects |= scored.order_effects
            effects = {name: effect._replace(kinds=scored.kind) for name, effect in effects.items()}
            others.append(replace(scored, order_effects=effects))
        return replace(_united(evaluation, others, asked), notes=notes, queries=self.queries)

    def _asymmetric(self, form: str, others: Sequence[Metric]) -> RealRanking:
        """Return the ranking of the codes by the outputs of queries; ``others`` are metrics by Hamming distance."""
        codes, outputs = self.codes, cast("FloatArray", self.query_outputs)
        distance = AsymmetricDistance(outputs, np.asarray(codes.database[:]), codes.n_bits, form)
        return RealRanking(distance, codes.relevance, codes.plan(others).rows)

    def curves(self, on_progress: Progress = silent) -> pd.DataFrame:
        """Compute precision-recall curves.

        Parameters
        ----------
        on_progress : callable, optional
            As in `evaluate`.

        Returns
        -------
        DataFrame
            One point per row: ``curve`` (radius or rank), ``cutoff``, then ``precision`` and ``recall``, means over the
            queries, with ``_low`` and ``_high`` over tie orders (no ties in a ball), and ``n_not_empty``, how many of
            the queries have an item within the cutoff; the precision of the others is 0.

        Raises
        ------
        HashbenchError
            If levels of relevance are not whole.

        Examples
        --------
        >>> points = Problem.of_codes([[0, 0]], [[0, 0], [1, 1]], ([5], [5, 7])).curves()
        >>> points["precision"].round(2).tolist()
        [1.0, 1.0, 0.5, 1.0, 0.5]
        """
        with needing("curves"):
            import pandas as pd  # noqa: F401  # for the result; missing, it is reported before any work
        refuse_fractions(self.ranking.levels, "a curve")
        n_bits = self.codes.n_bits if self.ranking.by_radius else None
        return lay_out(self.evaluate(curve_metrics(n_bits, self.ranking.n_items), on_progress=on_progress))

    def thresholds(self, *, held_out: bool = False, on_progress: Progress = silent) -> Thresholds:
        """Count what each Hamming radius matches, over all pairs of a query and a database item.

        Parameters
        ----------
        held_out : bool, default=False
            Whether to count one half of the classes or items, and the other as ``Thresholds.held_out``, to judge a
            radius that was chosen on the first.
        on_progress : callable, optional
            Called with the number of queries counted.

        Returns
        -------
        Thresholds
            Precision, recall, false positive rate and F1 by radius; no order of ties changes them. Pairs of a level
            above 0 are relevant.

        Raises
        ------
        HashbenchError
            If there are no binary codes.

        Examples
        --------
        >>> found = Problem.of_codes([[0, 0, 0]], [[0, 0, 0], [0, 0, 1], [1, 1, 1]], ([5], [5, 5, 7])).thresholds()
        >>> found.best_f1.radius, found.at(1).recall, found.at(3).n_false
        (1, 1.0, 1)
        """
        with reporting_compilation():
            return (count_halves if held_out else count_pairs)(self.codes, self.notes, on_progress)

    def candidates(
        self, metric: str, wanted_recall: float | Sequence[float], *, on_progress: Progress = silent
    ) -> CandidateCounts:
        """Find the smallest number of candidates whose re-ranking reaches a recall.

        Parameters
        ----------
        metric : str
            ``R@k``, such as ``R@10`` for candidates by Hamming distance, or ``R@10:dot`` for those by the inner product
            of the codes with ``query_outputs``: the share of a query's relevant items, at most k of them, among the
            first k of the re-ranked candidates. The relevant items are taken to be the nearest by the distance that
            re-ranks, as true neighbours are.
        wanted_recall : float or sequence of float
            Recalls to reach, above 0 and at most 1.
        on_progress : callable, optional
            As in `evaluate`.

        Returns
        -------
        CandidateCounts
            A list of `CandidateCount`, one for each recall, in order, with ``to_frame()``. No number is below k.

        Raises
        ------
        HashbenchError
            If there are no binary codes, or a query has more than k relevant items.

        Notes
        -----
        Re-ranking puts the true neighbours among m candidates first. There are at most k of them, so the recall of the
        first k is the share that was fetched: ``R@m``, which grows with m.

        Examples
        --------
        Two of three tied items are true neighbours:

        >>> problem = Problem.of_codes([[0, 0]], [[0, 1], [0, 1], [1, 0], [1, 1]], [[1, 1, 0, 0]])
        >>> [(count.n_candidates, count.fewest, count.most) for count in problem.candidates("R@2", [0.6, 0.9])]
        [(2, 2, 3), (3, 2, 3)]
        """
        with reporting_compilation():
            counts, _ = self.candidates_and_scores(metric, np.atleast_1d(wanted_recall).tolist(), on_progress)
            return CandidateCounts(counts)

    def candidates_and_scores(
        self, metric: str, wanted_recall: Sequence[float], on_progress: Progress = silent
    ) -> tuple[list[CandidateCount], Evaluation]:
        """Return `candidates` with the evaluation of their recalls."""
        chosen = check_wanted(metric, wanted_recall)
        form = f":{chosen.form}" if chosen.form else ""
        if form and self.query_outputs is None:
            raise chosen.lacks_outputs()
        ranking = self._asymmetric(chosen.form, []) if form else self.codes
        counts = count_candidates(ranking, int(chosen.arguments[0]), wanted_recall, on_progress)
        names = [f"R@{n_candidates}{form}" for n_candidates, *_ in counts]
        evaluation = self.evaluate(names, on_progress=on_progress)
        found = [
            CandidateCount(wanted, number, fewest, most, low, high, evaluation[name])
            for wanted, (number, fewest, most, low, high), name in zip(wanted_recall, counts, names, strict=True)
        ]
        return found, evaluation


def _united(evaluation: Evaluation, others: Sequence[Evaluation], metrics: Sequence[Metric]) -> Evaluation:
    """Add the scores of evaluations of the same queries to those of one, in the order of metrics."""
    if not others:
        return evaluation
    parts: dict[str, Any] = {}
    for kind in ("scores", "order_effects", "random_orders"):
        values = {name: value for one in (evaluation, *others) for name, value in dict(getattr(one, kind)).items()}
        parts[kind] = {metric.name: values[metric.name] for metric in metrics if metric.name in values}
    return replace(evaluation, **parts)


def curve_metrics(n_bits: int | None, n_items: int) -> list[str]:
    """Return the metrics of curves: P and R at each radius, and at ranks spaced evenly on a logarithmic axis.

    There are radii if there is a code length.
    """
    ranks = np.unique(np.geomspace(1, n_items, 50).round().astype(int))
    cutoffs = [] if n_bits is None else [f"r{radius}" for radius in range(n_bits + 1)]
    return [f"{name}@{cutoff}" for cutoff in [*cutoffs, *map(str, ranks)] for name in "PR"]


def lay_out(evaluation: Evaluation) -> pd.DataFrame:
    """Lay out the scores of `curve_metrics` as the table that `Problem.curves` returns."""
    import pandas as pd

    summary = evaluation.summary
    cutoffs = [name.removeprefix("P@") for name in summary if name.startswith("P@") and ":" not in name]
    points = []
    for cutoff in cutoffs:
        if f"R@{cutoff}" not in summary:
            continue
        row: dict[str, object] = {"curve": "radius" if cutoff[0] == "r" else "rank", "cutoff": int(cutoff.lstrip("r"))}
        for letter, column in (("P", "precision"), ("R", "recall")):
            scores = summary[f"{letter}@{cutoff}"]
            row |= {column: scores.mean, f"{column}_low": scores.low, f"{column}_high": scores.high}
        row["n_not_empty"] = scores.n_queries - scores.n_undefined - evaluation.n_empty.get(f"P@{cutoff}", 0)
        points.append(row)
    return pd.DataFrame(points)

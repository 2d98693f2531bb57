"""The scoring scripts that people use, each described by where it departs from ours. A new one is a line here.

What each does was read in its public code, and its numbers are held to worked examples in the tests, and to the
original where it can be installed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hashbench._typing import FloatArray, IntArray
from hashbench.errors import unknown_name
from hashbench.reports.explain import conventions as by
from hashbench.reports.explain import orders
from hashbench.reports.explain.conventions import Distance, Mean, Query
from hashbench.reports.explain.orders import Order
from hashbench.scoring.histogram import TieHistogram

_ZERO, _LEFT_OUT, _ONE = (
    "queries without relevant items count 0",
    "queries without hits left out",
    "queries without relevant items count 1",
)
EMPTY: dict[Mean, str] = {
    by.count_zero: _ZERO,
    by.leave_out: "",
    by.leave_out_without_hits: _LEFT_OUT,
    by.not_a_number: "queries without relevant items are not a number",
    by.count_one: _ONE,
    by.forget_last_ones: "queries without relevant items count 0, unless they are the last",
    by.divide_by_ten_more: "divided by ten queries more",
}


@dataclass(frozen=True)
class Evaluator:
    """A scoring script.

    Parameters
    ----------
    name : str
        What it is called here.
    used_by : str
        Where it is from, and who else has it.
    metric : str
        What it gives of hashbench's: ``"AP"``, ``"NDCG"``, ``"P@k"``, ``"R@k"``, ``"P@r"`` or ``"R@r"``.
    order : Order or None
        How it leaves ties; None if their order does not matter to it.
    mean : Mean
        How it averages over queries.
    distance : Distance
        What it ranks by.
    divisor : str
        Of AP, as in the names of our metrics.
    cuts : {"any", "none", "below", "only"}
        Whether it takes a cut or scores the whole list; ``"below"`` takes one, not beyond the database, and ``"only"``
        never scores the whole list.
    loses_last : bool
        Whether the whole list lacks its last item.
    shares_cut : bool
        Whether the order is that of the largest cut asked for.
    own : str
        What it has of its own, in words.
    of_ranks : callable, optional
        Its own quantity, from the ranks of a query's hits, the cut and the query; in the whole list, if the order gives
        it whole.
    of_counts : callable, optional
        Its own quantity, where the order of ties does not matter: of each query, or one of all.
    """

    name: str
    used_by: str
    metric: str = "AP"
    order: Order | None = orders.stable
    mean: Mean = by.count_zero
    distance: Distance = by.hamming
    divisor: str = "retrieved"
    cuts: str = "any"
    loses_last: bool = False
    shares_cut: bool = False
    own: str = ""
    of_ranks: Callable[[IntArray, int, Query], float] | None = None
    of_counts: Callable[[TieHistogram, int], FloatArray | float] | None = None

    def cut_of(self, asked: int | None, n_items: int) -> int | None:
        """Give how many items it looks at, None if it cannot be asked that."""
        if self.metric.endswith("@r"):
            return asked
        if asked is None:
            return None if self.cuts == "only" else (n_items - self.loses_last) or None
        if self.cuts == "none" or (self.cuts in ("below", "only") and asked > n_items):
            return None
        return min(asked, n_items)


def _without_first(ranks: IntArray, cut: int, query: Query) -> float:
    hits = ranks[ranks <= cut]
    return float(by.precisions(hits)[hits > 1].sum() / len(hits)) if len(hits) else 0.0


def _of_first_hits(ranks: IntArray, cut: int, query: Query) -> float:
    first = ranks[:cut]
    return float(by.precisions(first).mean()) if len(first) else 0.0


def _of_scores_above_zero(ranks: IntArray, cut: int, query: Query) -> float:
    """Take AP above the cut, where items that differ in all bits count irrelevant."""
    rows = query.rows(by.hamming, orders.torch_topk, cut)
    hits = ranks[query.keys(by.hamming)[rows[ranks - 1]] < query.n_bits]
    return float(by.precisions(hits).mean()) if len(hits) else 0.0


def _none_relevant(counts: TieHistogram, cut: int) -> FloatArray:
    return np.zeros(counts.n_queries)


def _at_end_of_ties(counts: TieHistogram, cut: int) -> FloatArray:
    """Give precision at the end of each tie, weighted by the share of relevant items in it."""
    precision = (counts.rel_before + counts.n_rel) / np.maximum(counts.before + counts.size, 1)
    return np.asarray((precision * counts.n_rel).sum(axis=1) / np.maximum(counts.n_relevant, 1))


def _area(counts: TieHistogram, cut: int) -> float:
    """Give the area under precision against recall of all pairs, radius by radius, the last one missing."""
    sizes, relevant = counts.size.sum(axis=0), counts.n_rel.sum(axis=0)
    if not relevant.any():  # recall is 0 / 0
        return float("nan")
    n_radii = int(np.flatnonzero(sizes)[-1])
    good, retrieved = np.cumsum(relevant)[:n_radii], np.cumsum(sizes)[:n_radii]
    recall, first = np.unique(good / relevant.sum(), return_index=True)
    precision = (good / (retrieved + np.finfo(float).eps))[first]
    if good.size and good[0] > 0:
        recall, precision = np.insert(recall, 0, 0.0), np.insert(precision, 0, precision[0])
    return float(np.trapezoid(precision, recall))


def _ndcg_of_int8(counts: TieHistogram, cut: int) -> FloatArray:
    """Give NDCG with gains 2**level - 1 where 2**level is at most 127."""
    gains = np.minimum(2.0**counts.levels, 127.0) - 1.0
    n_items = int(counts.n_database[0])
    discounts = np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, n_items + 2)))])
    of_group = discounts[counts.before + counts.size] - discounts[counts.before]
    mean_gain = np.einsum("l,qlg->qg", gains, counts.counts) / np.maximum(counts.size, 1)
    ends = np.cumsum(counts.n_at_level[:, ::-1], axis=1)
    ideal = np.diff(discounts[np.concatenate([np.zeros((len(ends), 1), int), ends], axis=1)], axis=1) @ gains[::-1]
    return np.where(ideal > 0, (mean_gain * of_group).sum(axis=1) / np.where(ideal > 0, ideal, 1.0), 0.0)


def _ball(counts: TieHistogram, radius: int) -> tuple[IntArray, IntArray]:
    return counts.n_rel[:, : radius + 1].sum(axis=1), counts.size[:, : radius + 1].sum(axis=1)


def _precision_or_share(counts: TieHistogram, radius: int) -> FloatArray:
    """Give the precision inside a radius; that of the whole database where nothing is inside."""
    hits, sizes = _ball(counts, radius)
    return np.where(sizes > 0, hits / np.maximum(sizes, 1), counts.n_relevant / counts.n_database)


def _among_hits(counts: TieHistogram, radius: int) -> float:
    """Average the precision over the queries that have a hit."""
    hits, sizes = _ball(counts, radius)
    return float((hits / np.maximum(sizes, 1)).sum() / max((hits > 0).sum(), 1))


def _recall_among_hits(counts: TieHistogram, radius: int) -> float:
    hits, _ = _ball(counts, radius)
    return float((hits / np.maximum(counts.n_relevant, 1)).sum() / max((hits > 0).sum(), 1))


def _recall_or_nothing(counts: TieHistogram, radius: int) -> float:
    """Average the recall; not a number where a query has items inside and nothing is relevant."""
    hits, sizes = _ball(counts, radius)
    with np.errstate(invalid="ignore"):
        return float(np.where(sizes > 0, hits / counts.n_relevant, 0.0).mean())


_DEEPHASH = "DeepHash-pytorch, DPSH, BiHalf, GreedyHash, CIBHash"
_AREA = "area under precision and recall of all pairs"
_END = "precision at the end of each tie"
EVALUATORS = (
    Evaluator("calc-top-map", _DEEPHASH, order=orders.numpy_scalar, loses_last=True),
    Evaluator(
        "calc-top-map-here", "DeepHash-pytorch, by this machine's NumPy", order=orders.numpy_here, loses_last=True
    ),
    Evaluator("calc-map", "DeepHash-pytorch and others, the whole list", order=orders.numpy_scalar, cuts="none"),
    Evaluator(
        "hashnet",
        "thuml/HashNet, PyTorch",
        order=orders.numpy_scalar,
        mean=by.leave_out_without_hits,
        cuts="below",
    ),
    Evaluator(
        "hashnet-here",
        "thuml/HashNet, by this machine's NumPy",
        order=orders.numpy_here,
        mean=by.leave_out_without_hits,
        cuts="below",
    ),
    Evaluator("hashnet-caffe", "thuml/HashNet, Caffe", order=orders.numpy_scalar, mean=by.leave_out, cuts="below"),
    Evaluator("csq", "yuanli2333/Hadamard-Matrix-for-hashing", order=orders.numpy_scalar),
    Evaluator(
        "thulab",
        "thulab/DeepHash, after the sign: DHN, DCH, DTQ",
        order=orders.numpy_partition,
        mean=by.leave_out_without_hits,
        cuts="below",
    ),
    Evaluator("orthohash", "kamwoh/orthohash, kamwoh/DPN", order=orders.torch_topk, cuts="below"),
    Evaluator("fire", "CISiPLab/cisip-FIRe", order=orders.torch_topk, cuts="below", shares_cut=True),
    Evaluator(
        "fire-old",
        "CISiPLab/cisip-FIRe, old_eval",
        order=orders.torch_topk,
        cuts="below",
        shares_cut=True,
        mean=by.leave_out_without_hits,
    ),
    Evaluator("treezzz", "TreezzZ's DPSH, ADSH and DSDH in PyTorch", order=orders.libstdcxx, loses_last=True),
    Evaluator(
        "calc-map-k",
        "aassxun/DSH_Analysis",
        order=orders.libstdcxx,
        own="the cut counts hits, not items",
        of_ranks=_of_first_hits,
    ),
    Evaluator(
        "pytorch-deephash",
        "flyingpot/pytorch_deephash",
        order=orders.numpy_scalar,
        mean=by.not_a_number,
        divisor="relevant",
        cuts="none",
    ),
    Evaluator("ratio-baseline", "facebookresearch baselines, faiss IndexLSH", cuts="none"),
    Evaluator(
        "ratio-baseline-flat", "facebookresearch baselines, faiss IndexFlatIP", order=orders.descending, cuts="none"
    ),
    Evaluator("callmap", "ADSH in MATLAB: callMap, calculateTopMap", distance=by.bytes_of_seven, cuts="below"),
    Evaluator("dtsh", "Minione/DTSH, MATLAB", mean=by.leave_out, cuts="none"),
    Evaluator("sdh", "SDH and SELVE, MATLAB", distance=by.bytes_of_seven, cuts="none"),
    Evaluator("deepbit", "kevinlin311tw/cvpr16-deepbit, MATLAB"),
    Evaluator(
        "perf10",
        "24 cross-modal packages in MATLAB",
        distance=by.bytes_of_seven,
        mean=by.divide_by_ten_more,
        cuts="none",
    ),
    Evaluator("perf", "5 cross-modal packages in MATLAB", distance=by.bytes_of_seven, mean=by.leave_out, cuts="none"),
    Evaluator(
        "area-rp",
        "willard-yuan's hashing baselines, printed as mAP",
        order=None,
        distance=by.bytes_of_seven,
        cuts="none",
        own=_AREA,
        of_counts=_area,
    ),
    Evaluator(
        "talr-ap",
        "kunhe/TALR and deep-mihash, MATLAB",
        own="the hit at rank 1 counts nothing",
        of_ranks=_without_first,
    ),
    Evaluator("talr-tieap", "kunhe/TALR, MATLAB: exact", order=None, mean=by.forget_last_ones, cuts="none"),
    Evaluator("mihash", "fcakir/mihash, MATLAB: mAP", mean=by.leave_out, distance=by.of_int8, cuts="none"),
    Evaluator(
        "mihash-k",
        "fcakir/mihash, MATLAB: mAP_k",
        mean=by.leave_out_without_hits,
        distance=by.of_int8,
        cuts="only",
    ),
    Evaluator(
        "sklearn-ap",
        "sklearn average_precision_score",
        order=None,
        cuts="none",
        own=_END,
        of_counts=_at_end_of_ties,
    ),
    Evaluator(
        "sklearn-lrap",
        "sklearn label_ranking_average_precision_score",
        order=None,
        cuts="none",
        mean=by.count_one,
        own=_END,
        of_counts=_at_end_of_ties,
    ),
    Evaluator("torchmetrics-map", "torchmetrics retrieval_average_precision, 1 / (1 + d)", order=orders.torch_topk),
    Evaluator(
        "torchmetrics-map-less-d",
        "torchmetrics, of -d",
        order=None,
        own="items with a score of 0 or less count irrelevant",
        of_counts=_none_relevant,
    ),
    Evaluator(
        "torchmetrics-map-bits-less-d",
        "torchmetrics, of n_bits - d",
        order=orders.torch_topk,
        own="items with a score of 0 or less count irrelevant",
        of_ranks=_of_scores_above_zero,
    ),
    Evaluator(
        "trec_eval",
        "trec_eval, pytrec_eval, ir_measures; names in the order of the database",
        order=orders.descending,
        divisor="relevant",
    ),
    Evaluator(
        "trec_eval-unjudged",
        "the same, with judgements of relevant documents alone",
        order=orders.descending,
        mean=by.leave_out,
        divisor="relevant",
    ),
    Evaluator("ranx", "ranx of a dict, by this machine's numba", order=orders.numba_reversed, divisor="relevant"),
    Evaluator("ranx-run", "ranx of a Run, by this machine's numba", order=orders.numba_here, divisor="relevant"),
    Evaluator("talr-ndcg", "kunhe/TALR, MATLAB", "NDCG", mean=by.count_one),
    Evaluator(
        "talr-tiendcg",
        "kunhe/TALR, MATLAB: exact",
        "NDCG",
        None,
        by.count_one,
        cuts="none",
        own="gains end at 126",
        of_counts=_ndcg_of_int8,
    ),
    Evaluator("sklearn-ndcg", "sklearn ndcg_score, torchmetrics: exact", "NDCG", None),
    Evaluator("mihash-prec-k", "fcakir/mihash, MATLAB", "P@k", distance=by.of_int8, cuts="below"),
    Evaluator("rp5", "willard-yuan's hashing baselines, MATLAB", "P@k", distance=by.bytes_of_seven),
    Evaluator("deepbit-p", "kevinlin311tw/cvpr16-deepbit, MATLAB", "P@k"),
    Evaluator("pytorch-deephash-p", "flyingpot/pytorch_deephash", "P@k", orders.numpy_scalar),
    Evaluator("fire-p", "CISiPLab/cisip-FIRe", "P@k", orders.torch_topk, shares_cut=True, cuts="below"),
    # beyond the database it divides by k, and ours by what there is
    Evaluator("trec_eval-p", "trec_eval, pytrec_eval", "P@k", orders.descending, cuts="below"),
    Evaluator("csq-r", "yuanli2333/Hadamard-Matrix-for-hashing", "R@k", orders.numpy_scalar, by.not_a_number),
    Evaluator("trec_eval-r", "trec_eval, pytrec_eval", "R@k", orders.descending),
    Evaluator("sdh-r2", "SDH, MATLAB, at radius 2", "P@r", None, distance=by.bytes_of_seven),
    Evaluator("mihash-prec-n", "fcakir/mihash, MATLAB", "P@r", None),
    Evaluator("thulab-r2", "thulab/DeepHash, at radius 2", "P@r", None),
    Evaluator(
        "pytorch-deephash-r2",
        "flyingpot/pytorch_deephash, at radius 2",
        "P@r",
        None,
        own="an empty ball counts the share of relevant items",
        of_counts=_precision_or_share,
    ),
    Evaluator(
        "bihalf-pr",
        "BiHalf, ImageHashing",
        "P@r",
        None,
        own="divided by the queries with a hit",
        of_counts=_among_hits,
    ),
    Evaluator("sdh-recall", "SDH, MATLAB, at radius 2", "R@r", None, distance=by.bytes_of_seven),
    Evaluator(
        "thulab-recall",
        "thulab/DeepHash, at radius 2",
        "R@r",
        None,
        own="not a number where nothing is relevant",
        of_counts=_recall_or_nothing,
    ),
    Evaluator(
        "bihalf-recall",
        "BiHalf, ImageHashing",
        "R@r",
        None,
        own="divided by the queries with a hit",
        of_counts=_recall_among_hits,
    ),
)


def named(name: str) -> Evaluator:
    """Find a script by its name."""
    known = {one.name: one for one in EVALUATORS}
    if name.casefold() not in known:
        raise unknown_name("script", name, known)
    return known[name.casefold()]

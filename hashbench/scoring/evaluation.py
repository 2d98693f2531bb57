"""The result of scoring: the scores of every query, by metric, and their means."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from hashbench._typing import AnyArray, FloatArray, IntArray
from hashbench._validation import read_only
from hashbench.errors import HashbenchError, counted, needing
from hashbench.scoring.metrics import Scores, get_metric

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

DEFAULT_METRICS = ("AP", "AP@1000", "NDCG", "NDCG@100", "P@100", "P@r2")
RUN_METRICS = ("AP", "NDCG:trec", "NDCG@10:trec", "P@10", "R@1000", "RR")
# Arrays for all metrics, whose names are no metrics'.
_KINDS, _N_UNDEFINED, _N_RELEVANT, _ALIKE, _ITEMS = "(kinds)", "(n_undefined)", "(n_relevant)", "(alike)", "(items)"


def suited(metrics: Iterable[str], levels: AnyArray, *, has_radius: bool = True) -> tuple[Iterable[str], list[str]]:
    """Return the metrics, of the default ones those that levels and distance allow, and a note on those left out."""
    if metrics is not DEFAULT_METRICS:
        return metrics, []
    chosen = [name for name in DEFAULT_METRICS if has_radius or "@r" not in name]
    if (levels == np.floor(levels)).all():
        return chosen, []
    allowed = [name for name in chosen if get_metric(name).family.takes_real_levels]
    others = ", ".join(name for name in chosen if name not in allowed)
    return allowed, [f"Relevance has levels that are not whole, so these default metrics are left out: {others}."]


class OrderEffect(NamedTuple):
    """What one random order of the database, shared by all queries, does to the scores of a metric.

    Parameters
    ----------
    explained : float
        Variance of the sum over queries that random keys of the items explain.
    remainder : ndarray of shape (n_queries,), float64
        Deviation of each query that they leave; NaN where its score is undefined.
    items : ndarray of shape (n_sampled,), int64, optional
        A number for each item of the database that stands for all, if the sums are known: equal ones are of the same
        row and relevant to the same queries.
    sums : ndarray of shape (n_sampled,), float64, optional
        Covariance of the sum over queries with the key of each of these; scaled, so that ``explained`` is the sum of
        their squares.
    kinds : ndarray of shape (n_queries,), int64, optional
        A number for each kind of queries, if it is not that of the evaluation.
    """

    explained: float
    remainder: FloatArray
    items: IntArray | None = None
    sums: FloatArray | None = None
    kinds: IntArray | None = None

    @classmethod
    def of_items(cls, remainder: FloatArray, items: IntArray, sums: FloatArray) -> Self:
        """Return the effect given the sums of items; those add up in the same way in any order."""
        return cls(float(np.sort(sums**2).sum()), remainder, items, sums)


class Summary(NamedTuple):
    """A metric over all queries.

    Parameters
    ----------
    mean, low, high : float
        Means over the queries of expectation, minimum and maximum over tie orders.
    n_queries, n_undefined : int
        All queries, and those without relevant items; of ``P@rN:skip`` also those whose ball is empty.
    tie_sd : float
        Estimate of the standard deviation of the mean over random orders of the database, each shared by all queries
        (docs/explanation/shuffle-deviation.md). NaN if it is not known.
    tie_sd_low, tie_sd_bound : float
        Bounds of that deviation. The lower one is 0 for metrics that do not know how their scores follow single items:
        re-ranked ones, and those of plug-ins.
    tie_sd_measured : float or None
        The deviation over ``random_orders``; None without them.

    Examples
    --------
    >>> from hashbench import evaluate
    >>> summary = evaluate([[0, 0]], [[0, 0], [0, 0], [1, 1]], ([0], [0, 1, 0]), ["P@1"]).summary["P@1"]
    >>> summary.mean, summary.low, summary.high, summary.n_queries
    (0.5, 0.0, 1.0, 1)
    """

    mean: float
    low: float
    high: float
    n_queries: int
    n_undefined: int
    tie_sd: float = float("nan")
    tie_sd_low: float = float("nan")
    tie_sd_bound: float = float("nan")
    tie_sd_measured: float | None = None

    @property
    def by_name(self) -> dict[str, float | None]:
        """The fields in the order in which they are printed: the mean, its deviations, the range, the queries."""
        names = (
            "mean",
            "tie_sd",
            "tie_sd_low",
            "tie_sd_bound",
            "tie_sd_measured",
            "low",
            "high",
            "n_queries",
            "n_undefined",
        )
        return {name: getattr(self, name) for name in names}


class ByMetric(dict[str, T]):
    """Values by the canonical name of a metric; its other names work too, such as ``mAP`` for ``AP``."""

    def __init__(self, values: Mapping[str, T], *, of_run: bool = False) -> None:
        super().__init__(values)
        self._of_run = of_run

    def __missing__(self, name: Any) -> T:
        if name not in self:
            raise KeyError(name)
        return self[get_metric(name, of_run=self._of_run).name]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or not isinstance(name, str):
            return super().__contains__(name)
        try:
            return super().__contains__(get_metric(name, of_run=self._of_run).name)
        except HashbenchError:
            return False

    def get(self, name: Any, default: Any = None) -> Any:
        """Return the value of a metric, or the default."""
        try:
            return self[name]
        except KeyError:
            return default


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, Summary]):
    """Scores of every query, by metric; a mapping of metrics to their means.

    Parameters
    ----------
    scores : dict of str to Scores
        Read-only arrays of shape (n_queries,) under the metric's canonical name; its other names work too.
    n_undefined : int
        Queries without relevant items.
    queries : sequence of str, optional
        Names of the queries; by default they are numbered.
    notes : sequence of str
        Sentences about the input that its owner should read.
    kinds : ndarray of shape (n_queries,), int64, optional
        A number for each kind of queries: those alike in code and labels have the same ties, but for items that they
        ignore. By default all differ.
    random_orders : dict of str to ndarray of shape (n_orders,)
        The mean over the queries under random orders of the database, by metric; empty without them.
    n_relevant : ndarray of shape (n_queries,), int64, optional
        The number of relevant items of each query, if it is known.
    alike : ndarray of shape (n_queries,), int64, optional
        The first query with the same labels, of each query, or with what else makes items relevant; if it is known.
    n_empty : dict of str to int
        The number of scored queries without any item in the Hamming ball, by metric ``P@rN``, if they were counted.
    of_run : bool
        Whether it is of a run, where ``NDCG`` is ``NDCG:trec``.

    Examples
    --------
    >>> from hashbench import evaluate
    >>> evaluate([[0, 0]], [[0, 0], [0, 0], [1, 1]], ([0], [0, 1, 0]), ["AP"])
    <Evaluation of 1 query; AP: 0.7083 (0.5833 to 0.8333; tie_sd 0.1250)>

    The means of a metric, by any of its names:

    >>> scored = evaluate([[0, 0]], [[0, 0], [0, 0], [1, 1]], ([0], [0, 1, 0]), ["AP"])
    >>> scored["AP"].mean == scored["mAP"].mean == scored.summary["AP"].mean
    True
    """

    scores: dict[str, Scores]
    n_undefined: int
    queries: Sequence[str] | None = None
    notes: Sequence[str] = ()
    kinds: IntArray | None = None
    n_relevant: IntArray | None = None
    alike: IntArray | None = None
    random_orders: dict[str, FloatArray] = field(default_factory=dict)
    order_effects: dict[str, OrderEffect] = field(default_factory=dict)
    n_empty: dict[str, int] = field(default_factory=dict)
    of_run: bool = False

    def __post_init__(self) -> None:
        frozen = {name: Scores(*(read_only(part) for part in parts)) for name, parts in self.scores.items()}
        object.__setattr__(self, "scores", ByMetric(frozen, of_run=self.of_run))
        object.__setattr__(self, "random_orders", ByMetric(self.random_orders, of_run=self.of_run))

    def __repr__(self) -> str:
        lines = [
            f"{name}: {values.mean:.4f} ({values.low:.4f} to {values.high:.4f}; tie_sd {values.tie_sd:.4f})"
            for name, values in self.summary.items()
        ]
        return f"<Evaluation of {counted(len(self.kind), 'query', 'queries')}; {', '.join(lines)}>"

    def __getitem__(self, metric: str) -> Summary:
        """Return the means of a metric."""
        return self.summary[metric]

    def __contains__(self, metric: object) -> bool:
        return metric in self.scores

    def __iter__(self) -> Iterator[str]:
        return iter(self.scores)

    def __len__(self) -> int:
        return len(self.scores)

    __eq__ = object.__eq__  # two evaluations are not one, whatever their means
    __hash__ = object.__hash__

    @classmethod
    def concat(cls, evaluations: Iterable["Evaluation"]) -> "Evaluation":
        """Return the evaluation of all queries together, of parts that rank the same database by the same metrics.

        The deviation takes it that each random order is shared by all queries, as for one evaluation. Where parts do
        not know which items move their scores, or know others, ``tie_sd`` takes queries as independent and may be too
        small; ``tie_sd_bound`` holds. It is not checked that databases and options are
        the same. Random orders are left out.

        Parameters
        ----------
        evaluations : iterable of Evaluation
            At least one. Queries alike in code and labels count as different in different parts.

        Returns
        -------
        Evaluation
            With the queries in the order of the parts.

        Raises
        ------
        HashbenchError
            If there is none, or if they have different metrics.

        Examples
        --------
        >>> from hashbench import evaluate
        >>> parts = [evaluate([[0, 0]], [[0, 0], [0, 0], [1, 1]], ([label], [0, 1, 0]), ["AP"]) for label in (0, 1)]
        >>> Evaluation.concat(parts)
        <Evaluation of 2 queries; AP: 0.7292 (0.5417 to 0.9167; tie_sd 0.0955)>
        """
        parts = list(evaluations)
        if not parts or any({*part.scores} != {*parts[0].scores} or part.of_run != parts[0].of_run for part in parts):
            raise HashbenchError(
                f"got evaluations in {' and in '.join(', '.join(part.scores) for part in parts) or 'nothing'}; one or "
                "more are needed, in the same metrics, all of codes or all of runs."
            )
        names = [*parts[0].scores]
        columns = {name: zip(*(part.scores[name] for part in parts), strict=True) for name in names}
        scores = {name: Scores(*map(np.concatenate, of_name)) for name, of_name in columns.items()}
        n_relevant = [part.n_relevant for part in parts if part.n_relevant is not None]
        queries = [part.queries for part in parts if part.queries is not None]
        return cls(
            scores,
            sum(part.n_undefined for part in parts),
            [*chain(*queries)] if len(queries) == len(parts) else None,
            list(dict.fromkeys(chain(*(part.notes for part in parts)))),
            _apart([part.kind for part in parts]),
            np.concatenate(n_relevant) if len(n_relevant) == len(parts) else None,
            order_effects={name: effect for name in names if (effect := _united_effect(parts, name)) is not None},
            n_empty={name: sum(part.n_empty[name] for part in parts) for name in parts[0].n_empty},
            of_run=parts[0].of_run,
        )

    @property
    def summary(self) -> dict[str, Summary]:
        """Means over the queries, by metric as ``scores``; NaN where no query is defined."""
        return ByMetric({name: self._summary(name) for name in self.scores}, of_run=self.of_run)

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """Ends of the 95 % interval of each mean for other queries like these; NaN of fewer than two queries.

        Queries count as independent; it is too narrow if several belong together, such as those of one image.
        """
        from hashbench.scoring.intervals import Moments, mean_interval

        ends = {
            name: mean_interval(Moments.of(scores.mean), is_share=not get_metric(name).is_of_levels)
            for name, scores in self.scores.items()
        }
        return ByMetric(ends, of_run=self.of_run)

    @property
    def kind(self) -> IntArray:
        """The kind of each query, (n_queries,)."""
        n_queries = len(next(iter(self.scores.values())).mean)
        return np.arange(n_queries) if self.kinds is None else self.kinds

    def _summary(self, name: str) -> Summary:
        scores = self.scores[name]
        is_defined = ~np.isnan(scores.mean)
        n_queries, n_defined = len(is_defined), int(is_defined.sum())
        n_undefined = n_queries - n_defined if name.endswith(":skip") else self.n_undefined
        if not n_defined:
            return Summary(np.nan, np.nan, np.nan, n_queries, n_undefined)
        mean, low, high = (float(part[is_defined].mean()) for part in scores[:3])
        effect = self.order_effects.get(name, OrderEffect(0.0, scores.tie_sd))
        remainder = effect.remainder[is_defined]
        kind = self.kind if effect.kinds is None else effect.kinds
        by_kind = np.bincount(kind[is_defined], weights=remainder)
        measured = float(self.random_orders[name].std(ddof=1)) if name in self.random_orders else None
        least = math.sqrt(effect.explained) / n_defined
        rest = float(np.linalg.norm(np.sort(by_kind))) / n_defined  # sorted: however kinds are numbered
        most = max(high - low, 0) / 2  # no deviation within a range is greater
        tie_sd, bound = min(math.hypot(least, rest), most), min(math.hypot(least, float(remainder.mean())), most)
        return Summary(mean, low, high, n_queries, n_undefined, tie_sd, min(least, most), bound, measured)

    @property
    def per_query(self) -> "pd.DataFrame":
        """One row per query and metric: query, metric, value, tie_sd, low, high."""
        with needing("per_query"):
            import pandas as pd  # slow to import, and not needed to score

        columns = ["query", "metric", "value", "tie_sd", "low", "high"]
        frames = []
        for name, (mean, low, high, tie_sd) in self.scores.items():
            queries = np.arange(len(mean)) if self.queries is None else self.queries
            values = {"query": queries, "metric": name, "value": mean, "tie_sd": tie_sd, "low": low, "high": high}
            frames.append(pd.DataFrame(values, columns=columns))
        return pd.concat(frames, ignore_index=True)

    def to_frame(self) -> "pd.DataFrame":
        """One row per metric: metric, mean, tie_sd, and the other fields of `Summary`."""
        with needing("to_frame"):
            import pandas as pd

        rows = [{"metric": name, **values.by_name} for name, values in self.summary.items()]
        return pd.DataFrame(rows)

    def _repr_html_(self) -> str:
        """Return the means as a table, whose style is that of data frames in the notebook, and the notes."""
        title = f"Evaluation of {counted(len(self.kind), 'query', 'queries')}"
        title += f", {self.n_undefined} of them without relevant items" * bool(self.n_undefined)
        rows = [("metric", "mean", "tie_sd", "range")]
        for name, values in self.summary.items():
            numbers = f"{values.mean:.4f}", f"{values.tie_sd:.5f}", f"{values.low:.4f} to {values.high:.4f}"
            rows.append((escape(name), *numbers))
        head, *body = (f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in rows)
        parts = f"<thead>{head.replace('td>', 'th>')}</thead><tbody>{''.join(body)}</tbody>"
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return f'<p>{title}</p><table class="dataframe">{parts}</table>{notes}'


def _united_effect(parts: Sequence[Evaluation], name: str) -> OrderEffect | None:
    """Return what one order does to the scores of all parts; None if their items are not known to be the same."""
    effects = [part.order_effects.get(name) for part in parts]
    first = effects[0]
    if first is None or first.items is None:
        return None
    sums = np.zeros(len(first.items))
    for effect in effects:
        if effect is None or effect.sums is None or not np.array_equal(np.array(effect.items), first.items):
            return None
        sums += effect.sums
    known = [effect for effect in effects if effect is not None]
    kinds = [part.kind if effect.kinds is None else effect.kinds for part, effect in zip(parts, known, strict=True)]
    united = OrderEffect.of_items(np.concatenate([effect.remainder for effect in known]), first.items, sums)
    return united._replace(kinds=_apart(kinds))


def _apart(kinds: Sequence[IntArray]) -> IntArray:
    """Join numbers of kinds, those of each part beginning after those of the part before."""
    starts = np.cumsum([0, *(int(kind.max(initial=-1)) + 1 for kind in kinds)])
    return np.concatenate([kind + start for kind, start in zip(kinds, starts, strict=False)])


def arrays_of(scored: Evaluation, metric_names: Iterable[str] | None = None) -> dict[str, AnyArray]:
    """Return an evaluation in some metrics, else all, as arrays; `evaluation_of` undoes it.

    Of each metric the parts of `Scores`, (4, n_queries), or with the remainder of `OrderEffect` (5, n_queries).
    """
    asked = {_KINDS: scored.kind, _N_RELEVANT: scored.n_relevant, _ALIKE: scored.alike}
    arrays: dict[str, AnyArray] = {name: values for name, values in asked.items() if values is not None}
    arrays[_N_UNDEFINED] = np.array([scored.n_undefined])
    for name in scored.scores if metric_names is None else metric_names:
        effect = scored.order_effects.get(name)
        if effect is None or effect.items is None or effect.sums is None:
            arrays[name] = np.stack(scored.scores[name])
        else:
            arrays[name] = np.stack([*scored.scores[name], effect.remainder])
            arrays |= {_ITEMS: effect.items, _sums_of(name): effect.sums}
        if effect is not None and effect.kinds is not None:
            arrays[_kinds_of(name)] = effect.kinds
    return arrays


def evaluation_of(arrays: Mapping[str, AnyArray], metric_names: Iterable[str]) -> Evaluation:
    """Return an evaluation in some metrics from what `arrays_of` returned."""
    values = {name: arrays[name] for name in metric_names}
    effects = {
        name: OrderEffect.of_items(parts[4], arrays[_ITEMS], arrays[_sums_of(name)])
        if len(parts) > 4
        else OrderEffect(0.0, parts[3])
        for name, parts in values.items()
        if len(parts) > 4 or _kinds_of(name) in arrays
    }
    effects = {name: effect._replace(kinds=arrays.get(_kinds_of(name))) for name, effect in effects.items()}
    return Evaluation(
        {name: Scores(*parts[:4]) for name, parts in values.items()},
        int(arrays[_N_UNDEFINED][0]),
        kinds=arrays[_KINDS],
        n_relevant=arrays.get(_N_RELEVANT),
        alike=arrays.get(_ALIKE),
        order_effects=effects,
    )


def metrics_in(arrays: Iterable[str]) -> list[str]:
    """Return the metrics among the names of what `arrays_of` returned."""
    return [name for name in arrays if not name.startswith("(")]


def _sums_of(metric: str) -> str:
    return f"({metric} of items)"


def _kinds_of(metric: str) -> str:
    return f"({metric} of kinds)"

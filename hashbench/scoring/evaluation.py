"""What a scoring gives: the scores of every query, by metric, and their means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from hashbench.errors import HashbenchError, counted
from hashbench.scoring.metrics import Scores, get_metric

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")

DEFAULT_METRICS = ("AP", "AP@1000", "NDCG", "NDCG@100", "P@100", "P@r2")
RUN_METRICS = ("AP", "NDCG:trec", "NDCG@10:trec", "P@10", "R@1000", "RR")


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


class ByMetric(dict[str, T]):
    """Values by the canonical name of a metric, found by its other names too, such as ``mAP`` for ``AP``."""

    def __missing__(self, name: Any) -> T:
        if name not in self:
            raise KeyError(name)
        return self[get_metric(name).name]

    def __contains__(self, name: object) -> bool:
        if super().__contains__(name) or not isinstance(name, str):
            return super().__contains__(name)
        try:
            return super().__contains__(get_metric(name).name)
        except HashbenchError:
            return False

    def get(self, name: Any, default: Any = None) -> Any:
        """Give the value of a metric, or the default."""
        try:
            return self[name]
        except KeyError:
            return default


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Scores of every query, by metric.

    Parameters
    ----------
    scores : dict of str to Scores
        Arrays of shape (n_queries,) under the metric's canonical name, found by its other names too.
    n_undefined : int
        Queries without relevant items.
    queries : sequence of str, optional
        What the queries are called; by default they are numbered.
    notes : sequence of str
        What was done to the input that its owner should know, a sentence each.
    """

    scores: dict[str, Scores]
    n_undefined: int
    queries: Sequence[str] | None = None
    notes: Sequence[str] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", ByMetric(self.scores))

    def __repr__(self) -> str:
        lines = [
            f"{name}: {values.mean:.4f} ({values.low:.4f} to {values.high:.4f})"
            for name, values in self.summary.items()
        ]
        n_queries = len(next(iter(self.scores.values())).mean)
        return f"<Evaluation of {counted(n_queries, 'query', 'queries')}; {', '.join(lines)}>"

    @property
    def summary(self) -> dict[str, Summary]:
        """Means over the queries, by metric as ``scores``; NaN where no query is defined."""
        return ByMetric({name: self._summary(scores) for name, scores in self.scores.items()})

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
                    "query": np.arange(len(scores.mean)) if self.queries is None else self.queries,
                    "metric": name,
                    "value": scores.mean,
                    "low": scores.low,
                    "high": scores.high,
                }
            )
            for name, scores in self.scores.items()
        ]
        return pd.concat(frames, ignore_index=True)

    def to_frame(self) -> "pd.DataFrame":
        """One row a metric: metric, mean, low, high, n_queries, n_undefined."""
        import pandas as pd

        return pd.DataFrame([{"metric": name, **values._asdict()} for name, values in self.summary.items()])

    def _repr_html_(self) -> str:
        """Show the means as a table, in a notebook."""
        table: str = self.to_frame().to_html(index=False, float_format=lambda value: f"{value:.4f}")
        return table

"""Rows of results from the scores of codes."""

from hashbench.scoring.evaluation import Evaluation
from hashbench.store.provenance import Provenance
from hashbench.store.result_rows import Row


def rows_of(provenance: Provenance, evaluation: Evaluation) -> tuple[Row, ...]:
    """Return one row per metric for codes of some provenance; numbers have six decimals."""
    return tuple(
        Row(
            metric=name,
            value=f"{summary.mean:.6f}",
            tie_sd=f"{summary.tie_sd:.6f}".replace("nan", ""),
            low=f"{summary.low:.6f}",
            high=f"{summary.high:.6f}",
            n_queries=summary.n_queries,
            n_undefined=summary.n_undefined,
            **provenance.row,
        )
        for name, summary in evaluation.summary.items()
    )

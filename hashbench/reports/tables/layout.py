"""What each table shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """What a table shows."""

    title: str
    metric: str  # a dataset that the paper also scores by another metric gets a block for that too
    n_bits: tuple[int, ...]  # the columns of datasets that are not in the paper
    source: str  # how the paper begins in the column of published.csv
    number: str  # of the paper's table, as in the column "table"
    beside: tuple[str, ...] = ()  # metrics that stand in the same block, before ``metric``
    is_open: bool = True  # to methods that are not in the paper's table


LAYOUTS = {
    "table1": Layout("Table 1. Average precision of the whole ranking", "AP", (12, 16, 24, 32, 48), "TALR", "1"),
    "table2": Layout("Table 2. Average precision of the first 1,000", "AP@1000", (16, 32, 48, 64), "TALR", "2"),
    "table3": Layout("Table 3. Normalised discounted cumulative gain", "NDCG", (16, 32, 48, 64), "TALR", "3"),
    "continuation": Layout(
        "TALR, appendix D. Average precision with and without continuation",
        *("AP", (12, 24, 32, 48), "TALR", "D"),
        is_open=False,
    ),
    "mlgap": Layout(
        "mLGAP, Table 1. Mean local group average precision beside average precision",
        *("AP", (12, 24), "mLGAP", "1"),
        beside=("mLGAP",),
        is_open=False,
    ),
}

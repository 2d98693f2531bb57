"""What each table shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Layout:
    """What a table shows.

    Parameters
    ----------
    title : str
        Its heading.
    metric : str
        Canonical metric name. A dataset that the paper also scores by another metric gets a block for that too.
    n_bits : tuple of int
        The columns of datasets that are not in the paper.
    source : str
        How the paper begins in the ``source`` column of the published values.
    number : str
        The paper's number of the table, as in their ``table`` column.
    beside : tuple of str
        Metrics that stand in the same block, before ``metric``.
    is_open : bool
        Whether methods that are not in the paper's table are shown too.
    """

    title: str
    metric: str
    n_bits: tuple[int, ...]
    source: str
    number: str
    beside: tuple[str, ...] = ()
    is_open: bool = True


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

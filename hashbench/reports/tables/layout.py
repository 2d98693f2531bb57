"""What each table shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableLayout:
    """What a table shows."""

    heading: str  # such as "Table 1"
    title: str
    metrics: tuple[str, ...]  # a dataset that the paper also scores by another metric gets a block for that too
    n_bits: tuple[int, ...] = ()  # the columns of datasets that are not in the paper; empty: all there are
    source: str = ""  # how the paper begins in the column "source" of published.csv
    number: str = ""  # the number of the paper's table, as in the column "table"
    of_others: tuple[str, ...] = ()  # metrics in which values of other papers stand beside ours too
    is_beside: bool = False  # whether all metrics share one block, whose lines have values in the first of them
    is_open: bool = True  # whether methods that are not in the paper's table are shown
    is_ablation: bool = False  # whether it shows several lines of one method, not one line of each
    is_over_folds: bool = False  # whether it shows datasets with unseen classes, which others leave out
    remark: str = ""  # a sentence for every caption


LAYOUTS = {
    "table1": TableLayout(
        heading="Table 1",
        title="Average precision of the whole ranking",
        metrics=("AP",),
        n_bits=(12, 16, 24, 32, 48),
        source="TALR",
        number="1",
        of_others=("AP", "AP@5000"),
    ),
    "table2": TableLayout(
        heading="Table 2",
        title="Average precision of the first 1,000",
        metrics=("AP@1000",),
        n_bits=(16, 32, 48, 64),
        source="TALR",
        number="2",
        of_others=("AP@1000",),
    ),
    "table3": TableLayout(
        heading="Table 3",
        title="Normalised discounted cumulative gain",
        metrics=("NDCG",),
        n_bits=(16, 32, 48, 64),
        source="TALR",
        number="3",
    ),
    "continuation": TableLayout(
        heading="TALR, appendix D",
        title="Average precision with and without continuation",
        metrics=("AP",),
        n_bits=(12, 24, 32, 48),
        source="TALR",
        number="D",
        is_open=False,
    ),
    "mlgap": TableLayout(
        heading="mLGAP, Table 1",
        title="Mean local group average precision of radius 2 beside average precision",
        metrics=("LGAP@r2", "AP"),
        n_bits=(12, 24),
        source="mLGAP",
        number="1",
        is_beside=True,
        remark="mLGAP is the mean of LGAP@r2, of radius 2; the paper does not state its radius.",
    ),
    "ablation": TableLayout(
        heading="Ablation",
        title="Average precision of methods with other parameters",
        metrics=("AP",),
        n_bits=(12, 16, 24, 32, 48),
        is_ablation=True,
    ),
    "unseen": TableLayout(
        heading="Unseen classes",
        title="Average precision of classes that training did not see",
        metrics=("AP",),
        is_over_folds=True,
    ),
}

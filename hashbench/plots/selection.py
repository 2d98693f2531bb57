"""What to draw: results cut to the methods, code lengths and metric chosen, one block a dataset."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from hashbench import storage
from hashbench.averages import BLOCK, average_over_seeds
from hashbench.errors import HashbenchError, unknown_name
from hashbench.metrics import get_metric
from hashbench.plots.look import Look, choose_looks

Progress = Callable[[str, int, int], None]

DEFAULT_METRIC = "AP"


@dataclass(frozen=True)
class Selection:
    """What the user wants to see; what is empty means all.

    Parameters
    ----------
    datasets : sequence of str
        Names, NAME:FEATURES, or dataset files.
    methods : sequence of str
        Names.
    n_bits : sequence of int
        Code lengths.
    metric : str
        What methods are judged by.
    """

    datasets: Sequence[str] = ()
    methods: Sequence[str] = ()
    n_bits: Sequence[int] = ()
    metric: str = DEFAULT_METRIC


@dataclass(frozen=True, eq=False)
class Block:
    """What one figure shows: results of one metric on one dataset.

    Parameters
    ----------
    dataset, features, dataset_fingerprint : str
        The dataset.
    metric : str
        Canonical name.
    cells : DataFrame
        What `hashbench.averages.average_over_seeds` gives, in its order.
    rows : DataFrame
        The results behind the cells, one row a seed.
    looks : mapping of str to Look
        How the line of each label is drawn.
    stem : tuple of str
        What tells its files from those of other blocks.
    dataset_files : tuple of Path
        Dataset files the user named.
    on_progress : callable
        Called with what is being read, parts done and all parts.
    notes : list of str
        What the figure lacks; drawing adds to it.
    """

    dataset: str
    features: str
    dataset_fingerprint: str
    metric: str
    cells: pd.DataFrame
    rows: pd.DataFrame
    looks: Mapping[str, Look]
    stem: tuple[str, ...]
    dataset_files: tuple[Path, ...] = ()
    on_progress: Progress = lambda what, n_done, n_all: None
    notes: list[str] = field(default_factory=list)

    @property
    def labels(self) -> list[str]:
        """The lines, in order."""
        return list(self.cells["label"].unique())

    @property
    def n_bits(self) -> list[int]:
        """The code lengths, in order."""
        return sorted(self.cells["n_bits"].unique().tolist())


def choose_blocks(
    results: pd.DataFrame, selection: Selection, usual_bits: int | None = None, on_progress: Progress | None = None
) -> list[Block]:
    """Cut results to what was chosen.

    Parameters
    ----------
    results : DataFrame
        What `hashbench.results.read_results` gives.
    selection : Selection
        What was chosen.
    usual_bits : int, optional
        The one code length to show if none was chosen; the nearest one a block has stands in for it.
    on_progress : callable, optional
        For the blocks.

    Returns
    -------
    list of Block
        At least one. Looks do not depend on what was chosen.

    Raises
    ------
    HashbenchError
        If a name is unknown, or nothing is left.
    """
    metric = get_metric(selection.metric).name
    names, files = _dataset_names(selection.datasets)
    chosen = results
    if names:
        specs = results["dataset"] + ":" + results["features"]
        for name in names:
            _demand("dataset", name, [*results["dataset"], *(specs if ":" in name else ())])
        chosen = chosen[chosen["dataset"].isin(names) | specs.isin(names)]
    if selection.methods:
        for name in selection.methods:
            _demand("method", name, results["method"])
        chosen = chosen[chosen["method"].isin(selection.methods)]
    if selection.n_bits:
        chosen = chosen[chosen["n_bits"].isin(selection.n_bits)]
    if metric not in set(chosen["metric"]):
        raise _nothing_left(results, selection, metric)
    cells, looks = average_over_seeds(chosen[chosen["metric"] == metric]), choose_looks(average_over_seeds(results))
    n_contents = results.groupby(["dataset", "features"])["dataset_fingerprint"].nunique()
    blocks = []
    for keys, part in cells.groupby(list(BLOCK), sort=True):
        dataset, features, fingerprint = map(str, keys)
        if usual_bits is not None and not selection.n_bits:
            nearest = min(part["n_bits"], key=lambda length: (abs(length - usual_bits), length))
            part = part[part["n_bits"] == nearest]
        rows = chosen[(chosen[list(BLOCK)] == list(keys)).all(axis=1) & (chosen["metric"] == metric)]
        stem = [dataset, re.sub(r"[^A-Za-z0-9._-]+", "-", features).strip("-")]
        stem += [fingerprint] if n_contents[dataset, features] > 1 else []
        stem += [metric.replace(":", "-")] if metric != DEFAULT_METRIC else []
        blocks.append(
            Block(
                *(dataset, features, fingerprint, metric),
                *(part.reset_index(drop=True), rows[rows["n_bits"].isin(part["n_bits"])], looks, tuple(stem)),
                dataset_files=files,
                on_progress=on_progress or (lambda what, n_done, n_all: None),
            )
        )
    return blocks


def _dataset_names(specs: Sequence[str]) -> tuple[list[str], tuple[Path, ...]]:
    """Tell names from files, and give the names that the files hold."""
    files = tuple(Path(spec) for spec in specs if spec.endswith((".h5", ".hdf5")))
    held = [storage.read_dataset(path) for path in files]
    names = [spec for spec in specs if Path(spec) not in files]
    return [*names, *(f"{dataset.name}:{dataset.features_name}" for dataset in held)], files


def _demand(kind: str, name: str, known: Iterable[str]) -> None:
    if name not in set(known):
        error = unknown_name(kind, name, set(known))
        raise HashbenchError(f"there are no results of {kind} {name!r}: {error}")


def _nothing_left(results: pd.DataFrame, selection: Selection, metric: str) -> HashbenchError:
    lengths = " at " + " or ".join(map(str, selection.n_bits)) + " bits" if selection.n_bits else ""
    of = " of " + " or ".join(selection.methods) if selection.methods else ""
    on = " on " + " or ".join(selection.datasets) if selection.datasets else ""
    return HashbenchError(
        f"there is nothing to draw: no results in {metric}{of}{on}{lengths}. There are results in "
        f"{', '.join(sorted(results['metric'].unique()))} at {', '.join(map(str, sorted(results['n_bits'].unique())))} "
        "bits; choose others, or make some with hashbench run."
    )

"""What tables call their rows, datasets and metrics in place of the names that results hold."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

from hashbench.errors import HashbenchError, suggestion
from hashbench.pipeline.study import read_names, read_study
from hashbench.registry import features_kind
from hashbench.reports.aggregate import method_labels
from hashbench.reports.selection import places

CAPTION = "caption"
_MOST_LISTED = 60


class DisplayNames:
    """Texts to show for the names of rows, datasets and metrics, and for captions.

    Those of ``texts`` must be in the tables. Those of the table ``[rename]`` of a TOML ``file``, such as a grid, which
    serves several tables, need only be in the results.
    """

    def __init__(self, texts: Mapping[str, str] | None = None, file: Path | None = None) -> None:
        self._given, self._file = read_names(texts or {}, "rename"), file
        self._texts = {**({} if file is None else read_study(file).rename), **self._given}
        self._shown = {CAPTION}  # all names that were looked up

    def __bool__(self) -> bool:
        return bool(self._texts)

    def _find(self, *names: str) -> str | None:
        self._shown.update(names)
        return next((self._texts[name] for name in names if name in self._texts), None)

    def line(self, label: str, whole: str = "") -> str:
        """Return what to show for the label of a line; ``whole`` has also the settings that stand below the block."""
        method, blank, settings = label.partition(" ")
        by_method = f"{self._find(method) or method}{blank}{settings}"
        return self._find(label, whole or label) or by_method

    def lines(self, labels: "pd.Series[str]", whole: "pd.Series[str]") -> "pd.Series[str]":
        """Return what to show for the labels of a block, which must still differ."""
        texts = {label: self.line(label, full) for label, full in zip(labels, whole, strict=True)}
        owners: dict[str, str] = {}
        for label, text in texts.items():
            if owners.setdefault(text, label) != label:
                raise HashbenchError(
                    f"{owners[text]!r} and {label!r} would both be shown as {text!r}. Give each row its own name."
                )
        return labels.map(texts)

    def metric(self, name: str) -> str:
        """Return what to show for a metric."""
        return self._find(name) or name

    def place(self, dataset: str, features: str) -> str:
        """Return what to show for a dataset and its features."""
        kinds = features_kind(features), features
        by_dataset = f"{self._find(dataset) or dataset} ({features})"
        return self._find(*(f"{dataset}:{kind}" for kind in kinds)) or by_dataset

    def caption(self, usual: str, metric: str, dataset: str) -> str:
        """Return a caption: the usual one, or the user's with the names of this block."""
        text = self._texts.get(CAPTION)
        return usual if text is None else text.replace("{metric}", metric).replace("{dataset}", dataset)

    def check(self, results: pd.DataFrame) -> None:
        """Check that each name is in the tables that were laid out, or, of a file, at least in the results."""
        for name in self._given:
            if name not in self._shown:
                raise _unknown(name, "in these tables", self._shown)
        unseen = [name for name in self._texts if name not in self._shown]
        known = self._shown | set(_all_names(results) if unseen else ())
        for name in unseen:
            words = set(name.split())
            if name not in known and not any(words <= set(other.split()) for other in known):
                raise _unknown(name, f"in the results, but {self._file} renames it", known)


def _unknown(name: str, where: str, known: set[str]) -> HashbenchError:
    short = sorted(other for other in known if ":" not in other or " " not in other)
    names = f" Names: {', '.join(short)}." if len(short) <= _MOST_LISTED else ""
    return HashbenchError(f"there is no {name!r} {where}.{suggestion(name, sorted(known), n=3)}{names}")


def _all_names(results: pd.DataFrame) -> Iterator[str]:
    yield from results["metric"].unique()
    for dataset, features in places(results).unique():
        yield from (dataset, f"{dataset}:{features_kind(features)}", f"{dataset}:{features}")
    settings = results[["method", "params"]].drop_duplicates()
    yield from method_labels(settings.itertuples(index=False, name=None)).values()

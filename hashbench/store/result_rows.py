"""Rows of results: their columns, what a row may hold, and rows as a data frame."""

import json
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from hashbench._validation import check_name, check_words, has_markup
from hashbench.dataset import canonical_json
from hashbench.errors import HashbenchError, needing, unknown_name

if TYPE_CHECKING:
    import pandas as pd


class Row(NamedTuple):
    """One metric of one method on one content of a dataset; ``KEY`` names the fields of its key."""

    dataset: str
    features: str
    method: str
    params: str  # the method's, as sorted JSON
    n_bits: int
    seed: int
    metric: str  # canonical name
    value: str  # mean over the queries of the expectation over tie orders; six decimals
    tie_sd: str  # estimated standard deviation of it over random orders of the database; empty if not known
    low: str  # as value, of the minimum over tie orders
    high: str  # as value, of the maximum
    n_queries: int
    n_undefined: int  # those left out of the means: without relevant items; of P@rN:skip also with an empty ball
    dataset_fingerprint: str  # of its content
    method_version: int

    @property
    def key(self) -> tuple[Any, ...]:
        """The key of the row: its job, then the metric."""
        key: tuple[Any, ...] = _key_of(self)
        return key

    @property
    def job(self) -> tuple[Any, ...]:
        """The key of its job."""
        return self.key[:N_JOB]

    @property
    def rest(self) -> tuple[Any, ...]:
        """The fields after the metric."""
        return self[_VALUE:]


COLUMNS = Row._fields
JOB = (*COLUMNS[:6], "dataset_fingerprint")  # rows of other content are of other jobs, and are never replaced
KEY = (*JOB, "metric")
NUMBERS = ("value", "tie_sd", "low", "high")
OWN = {"codes": "own"}  # the parameters that mark rows of users' own codes
OWN_FEATURES = "own"  # features of such rows that belong to no prepared dataset
LEFT_OUT = ("exclude_self", "exclude_same_id", "groups", "junk_label")  # those that say what rankings of them lack
SHOWN = ("group", "label", "draws_nothing")  # those that only affect how such rows are shown and compared
MAX_LABEL = 40  # characters
N_JOB, PARAMS = len(JOB), COLUMNS.index("params")  # fields of a key that are those of its job, or before parameters
_VALUE, _key_of = COLUMNS.index("value"), itemgetter(*map(COLUMNS.index, KEY))
_ROUNDING = 1.5e-6  # sums in other orders may end on either side of a sixth decimal
_WHOLE = tuple(place for place, kind in enumerate(Row.__annotations__.values()) if kind is int)
_OF_LEVELS = re.compile(r"(ACG|WAP)(@\d+)?(:\w+)?")  # metrics that are means of levels, which may be above 1
_METRIC = re.compile(r"[A-Za-z]\w*(@(R|r?(0|[1-9]\d*)))?(:[a-z0-9=-]+)*", re.ASCII)


def parse_row(cells: list[Any], settings: Mapping[str, str]) -> Row:
    """Check the cells of a row; ``settings`` holds the parameters by name."""
    if cells[PARAMS] not in settings:
        raise ValueError(f"settings {cells[PARAMS]} are not in the file beside it")
    cells[PARAMS] = settings[cells[PARAMS]]
    for column in _WHOLE:
        cells[column] = int(cells[column])
    row = Row._make(cells)
    check_numbers(row)
    _check_spelling(row.dataset, row.method, row.dataset_fingerprint, row.features, row.metric)
    return row


@lru_cache(maxsize=1 << 16)  # many rows have the same
def _check_spelling(dataset: str, method: str, fingerprint: str, features: str, metric: str) -> None:
    """Refuse names that cannot name files, and a second spelling of a part of the key."""
    for key, name in {"dataset": dataset, "method": method, "dataset_fingerprint": fingerprint}.items():
        check_name(name, f"column {key}")
    check_words(features, "column features")
    if not _METRIC.fullmatch(metric):
        raise ValueError(f"metric {metric!r} is not a metric's name, such as AP@1000")


def check_params(params: Mapping[str, Any]) -> None:
    """Refuse parameters that no table could show."""
    if unnamed := [key for key in params if not key.isidentifier()]:
        raise ValueError(f"params has {unnamed[0]!r}, expected names of parameters: letters, digits and _")
    check_shown(params)


def check_numbers(row: Row) -> None:
    """Refuse numbers that no run produces; NaN is a mean of no query."""
    value, low, high, tie_sd = float(row.value), float(row.low), float(row.high), float(row.tie_sd or 0)
    highest = 1e300 if _OF_LEVELS.fullmatch(row.metric) else 1
    is_usual = 0 <= low <= value <= high <= highest and 0 <= tie_sd <= (high - low) / 2
    if is_usual and 0 <= row.n_undefined <= row.n_queries > 0 and row.n_bits > 0 <= row.seed and row.method_version > 0:
        return
    if not all(number != number or 0 <= number <= highest for number in (value, low, high)):
        raise ValueError(f"value {row.value}, low {row.low} and high {row.high} are not all between 0 and {highest:g}")
    if value < low - _ROUNDING or value > high + _ROUNDING:
        raise ValueError(f"value {row.value} lies outside its range over tie orders, {row.low} to {row.high}")
    if not tie_sd >= 0 or tie_sd > (high - low) / 2 + _ROUNDING:
        raise ValueError(f"tie_sd {row.tie_sd} is not between 0 and half of the range, {row.low} to {row.high}")
    if not 0 <= row.n_undefined <= row.n_queries or row.n_queries < 1:
        raise ValueError(f"{row.n_undefined} of {row.n_queries} queries are undefined")
    if any(number != number for number in (value, low, high)) and row.n_undefined < row.n_queries:
        n_scored = f"{row.n_queries - row.n_undefined} of {row.n_queries} queries have a score"
        raise ValueError(f"value is {row.value}, {row.low} to {row.high}, though {n_scored}")
    if row.n_bits < 1 or row.seed < 0 or row.method_version < 1:
        raise ValueError(f"n_bits is {row.n_bits}, seed {row.seed} and method_version {row.method_version}")


# ---------------------------------------------------------------- users' own codes


def check_shown(params: Mapping[str, Any]) -> None:
    """Refuse what users say of their own codes, if a table could not show it."""
    if params.get("codes") != OWN["codes"]:
        return
    if "group" in params:
        from hashbench.method import GROUPS

        if params["group"] not in GROUPS:
            raise unknown_name("group", str(params["group"]), GROUPS)
    if "label" in params:
        label = params["label"]
        if not isinstance(label, str) or len(label) > MAX_LABEL or "=" in label or has_markup(label):
            raise HashbenchError(f"a label is a string of up to {MAX_LABEL} characters without =<>|`, got {label!r}.")
        check_words(label, "a label")
    if params.get("draws_nothing", True) is not True:
        raise HashbenchError(f"draws_nothing is true or left out, got {params['draws_nothing']!r}.")


def is_own(params: str) -> bool:
    """Return whether rows with these parameters (JSON) are of users' own codes."""
    return '"codes"' in params and bool(json.loads(params).get("codes") == OWN["codes"])


def left_out(params: str) -> dict[str, Any]:
    """Return those parameters (JSON) of users' own codes that say which items their rankings lack."""
    return {key: value for key, value in json.loads(params).items() if key in LEFT_OUT} if is_own(params) else {}


def unshown(params: str) -> str:
    """Return parameters (JSON) without those of ``SHOWN``, which users' own codes have."""
    if not is_own(params):
        return params
    return canonical_json({key: value for key, value in json.loads(params).items() if key not in SHOWN})


def unshown_key(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the key of a row as `unshown` parameters have it."""
    return (*key[:PARAMS], unshown(key[PARAMS]), *key[PARAMS + 1 :])


# ---------------------------------------------------------------- data frames


def to_frame(rows: Iterable[Row]) -> "pd.DataFrame":
    """Return rows as a data frame; ``value``, ``tie_sd``, ``low`` and ``high`` are float, NaN where not known."""
    with needing("a data frame of results"):
        import pandas as pd

    columns: dict[str, Sequence[Any]] = dict.fromkeys(COLUMNS, ())
    columns.update(zip(COLUMNS, zip(*rows, strict=True), strict=False))  # no columns of no rows
    return pd.DataFrame(columns | {name: [float(text or "nan") for text in columns[name]] for name in NUMBERS})


def as_row(record: Mapping[Hashable, Any]) -> Row:
    """Return the row of a record of `to_frame`, its numbers as strings of six decimals."""
    texts = {name: f"{record[name]:.6f}" for name in NUMBERS}
    texts["tie_sd"] = texts["tie_sd"].replace("nan", "")
    return Row(**{name: texts.get(name, record[name]) for name in COLUMNS})

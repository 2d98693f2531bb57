"""Public conformance suites for methods, datasets and metrics.

``hashbench check method NAME`` runs them, and so can a plugin's own tests::

    @pytest.mark.parametrize("check", testing.METHOD_CHECKS, ids=lambda check: check.__name__)
    def test_my_method(check):
        check(MyMethod)
"""

import inspect
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import permutations, product
from pathlib import Path
from typing import Any, cast

import numpy as np
from sklearn.utils.estimator_checks import check_estimator

from hashbench._validation import tunable_values
from hashbench.adapter import DatasetAdapter
from hashbench.bits import MAX_BITS
from hashbench.cards import described_parameters
from hashbench.dataset import Dataset
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS, SUPERVISION, HashMethod
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import Metric, Scores, Slopes
from hashbench.store.hdf5 import from_arrays, read_dataset, to_arrays, write_dataset

MethodClass = type[HashMethod]
_GIVEN = {"none": "None", "labels": "labels", "affinity": "an Affinity"}
_N_TIMES = 80  # repetitions that make the example larger than a batch of a run
_N_EPOCHS = 3  # of a learned method; one that diverges later passes


class ConformanceError(AssertionError):
    """A plugin breaks the contract."""


class WrongSupervision(ConformanceError):
    """A method fits only with another ``supervision`` than it declares; no other check says more."""


def check_describes_itself(cls: MethodClass) -> None:
    """Check default construction, supervision, group, version, docstring and the parameters it describes."""
    _demand(cls().n_bits >= 1, "default construction gives no n_bits")
    _demand(cls.supervision in SUPERVISION, f"supervision is {cls.supervision!r}, not {' or '.join(SUPERVISION)}")
    _demand(cls.group in GROUPS, f"group is {cls.group!r}, not one of {', '.join(GROUPS)}")
    _demand(isinstance(cls.version, int) and cls.version >= 1, f"version is {cls.version!r}, not 1 or more")
    _demand(bool(cls.__doc__ and "Parameters" in cls.__doc__), "the docstring describes no parameters")
    unknown = described_parameters([cls.__doc__ or ""]).keys() - cls().get_params(deep=False).keys()
    _demand(
        not unknown,
        f"the docstring describes parameters that the method does not have: {', '.join(sorted(unknown))}; annotate "
        "them in the class, and decorate it with @dataclass(eq=False, repr=False, kw_only=True)",
    )
    positional = [
        name
        for name, parameter in inspect.signature(cls).parameters.items()
        if name != "n_bits" and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]
    _demand(not positional, f"parameters but n_bits must be keyword-only: {positional}")


def check_values_to_try_are_allowed(cls: MethodClass) -> None:
    """Check that a method accepts each of its tunable values."""
    for name, values in tunable_values(cls).items():
        for value in values:
            try:
                cls(**{name: value}).check_parameters()
            except HashbenchError as error:
                raise ConformanceError(f"tunable of {name} holds {value!r}, which is refused: {error}") from error


def check_fit_returns_self_and_keeps_its_input(cls: MethodClass) -> None:
    """Check that fit returns the method itself, and that it changes neither X nor y, and transform not X."""
    method, X, y = example(cls)
    X = X.astype(np.float64)  # or `_fit` and `_project` get a copy
    X_before, y_before = X.copy(), y.copy() if isinstance(y, np.ndarray) else None
    _demand(_fit(method, X, y) is method, "fit does not return self")
    _demand(np.array_equal(X, X_before), "_fit changes X; write X = X - ... for X -= ..., or copy it")
    _demand(y_before is None or np.array_equal(y, y_before), "_fit changes y; copy it")
    method.transform(X)
    _demand(np.array_equal(X, X_before), "_project changes X; write X = X - ... for X -= ..., or copy it")


def check_same_seed_gives_same_codes(cls: MethodClass) -> None:
    """Check that two fits with the same seed give the same codes."""
    method, X, y = example(cls)
    first = _fit(method, X, y).transform(X)
    _demand(np.array_equal(first, example(cls)[0].fit(X, y).transform(X)), "codes differ between two fits")


def check_batches_encode_like_the_whole(cls: MethodClass, sizes: tuple[int, ...] = (1, 2, 7, 64, 249)) -> None:
    """Check that items get the same code in batches of any size, up to many thousands."""
    method, X, y = example(cls)
    whole = _codes(_fit(method, X, y), X)
    for size in sizes:
        starts = range(0, len(X), size)[:40]
        batches = np.concatenate([_codes(method, X[start : start + size]) for start in starts])
        _demand(np.array_equal(whole[: len(batches)], batches), f"codes depend on the batch, here of {size} items")
    many = _codes(method, np.concatenate([X] * _N_TIMES))
    _demand(np.array_equal(many, np.concatenate([whole] * _N_TIMES)), f"codes depend on the batch of {len(many)} items")


def check_codes_are_boolean_of_any_usual_length(
    cls: MethodClass, lengths: tuple[int, ...] = (12, 16, 24, 32, 48, 64)
) -> None:
    """Check that codes of 12 to 64 bits are boolean of shape (n, n_bits) and follow ``project``, in real numbers."""
    for n_bits in lengths:
        method, X, y = example(cls, n_bits)
        codes = _codes(_fit(method, X, y), X[:50])
        values = method.project(X[:50])
        _demand(np.isrealobj(values), f"projections are {values.dtype}, not real")
        _demand(np.array_equal(codes, values > 0), "codes are not project(X) > 0")


def check_short_codes_fit_or_are_refused(cls: MethodClass) -> None:
    """Check that codes of 1, 2 and 5 bits are boolean of shape (n, n_bits), or refused by a HashbenchError."""
    for n_bits in (1, 2, 5):
        method, X, y = example(cls, n_bits)
        try:
            method.fit(X, y)
        except HashbenchError:
            continue
        for items in (X[:1], X):
            _codes(method, items)


def check_too_many_bits_are_refused(cls: MethodClass) -> None:
    """Check that code lengths of 0 and beyond 4,096 raise a HashbenchError."""
    for n_bits in (0, MAX_BITS + 1):
        method, X, y = example(cls, n_bits)
        with suppress(HashbenchError):
            method.fit(X, y)
            raise ConformanceError(f"n_bits={n_bits} is not refused")


def check_keeps_what_it_learned(cls: MethodClass) -> None:
    """Check that a fitted method gives the same codes after writing it to a file and reading it."""
    method, X, y = example(cls)
    codes = _codes(_fit(method, X, y), X)
    state, arrays = to_arrays(method)
    restored = from_arrays(cls, method.get_params(deep=False), json.loads(json.dumps(state)), arrays)
    _demand(np.array_equal(codes, _codes(restored, X)), "codes differ after writing and reading the method")


def check_refusal_is_a_sentence(cls: MethodClass) -> None:
    """Check that ``refusal`` returns None or a sentence, with labels and without."""
    for dataset in (example_dataset(), example_dataset(labelled=False)):
        reason = cls(n_bits=16).refusal(dataset)
        _demand(reason is None or (len(reason) > 20 and reason.endswith(".")), f"refusal gives {reason!r}")


def check_several_classes_an_item_are_learnt_from_or_refused(cls: MethodClass) -> None:
    """Check that fitting to items of several classes or of none ends in finite projections, or in a HashbenchError."""
    dataset = replace(example_dataset(), labels=_several_classes(), rule="shared-labels")
    method, X, y = example(cls, dataset=dataset)
    if y is not None and method.refusal(dataset) is None:
        try:
            method.fit(X, y)
        except HashbenchError:
            return
        except Exception as error:
            raise ConformanceError(
                f"items of several classes, or of none, end in {type(error).__name__}: {error}; reject them in "
                "`refusal`, or raise hashbench.plugins.Refusal"
            ) from error
        _codes(method, X)
        _demand(bool(np.isfinite(method.project(X)).all()), "items of several classes, or of none, end in NaN")


def check_is_a_scikit_learn_estimator(cls: MethodClass) -> None:
    """Run scikit-learn's own ``check_estimator`` at one bit; a method that reads labels is no such estimator.

    Learned methods of classes have eight bits, since some need a different code per class.
    """
    if cls.reads == "features":
        is_of_classes = cls.supervision == "labels" and "epochs" in inspect.signature(cls).parameters
        check_estimator(_quick(cls, 8 if is_of_classes else 1), on_skip=None)


METHOD_CHECKS: tuple[Callable[[MethodClass], None], ...] = (
    check_describes_itself,
    check_values_to_try_are_allowed,
    check_fit_returns_self_and_keeps_its_input,
    check_same_seed_gives_same_codes,
    check_batches_encode_like_the_whole,
    check_codes_are_boolean_of_any_usual_length,
    check_short_codes_fit_or_are_refused,
    check_too_many_bits_are_refused,
    check_keeps_what_it_learned,
    check_refusal_is_a_sentence,
    check_several_classes_an_item_are_learnt_from_or_refused,
    check_is_a_scikit_learn_estimator,
)


def check_prepares_the_same_twice(adapter: DatasetAdapter) -> None:
    """Check that two preparations have the same fingerprint and the adapter's name."""
    first, second = adapter.prepare(), adapter.prepare()
    _demand(first.fingerprint == second.fingerprint, "two preparations differ in content")
    _demand(first.name == adapter.name, f"the dataset is called {first.name!r}, not {adapter.name!r}")


def check_tells_its_origin(adapter: DatasetAdapter) -> None:
    """Check that the dataset carries summary, protocol, source, licence and citation."""
    about = adapter.prepare().about
    missing = [key for key in ("summary", "protocol", "source", "licence", "citation") if not about.get(key)]
    _demand(not missing, f"about lacks {', '.join(missing)}")


def check_survives_a_round_trip(adapter: DatasetAdapter) -> None:
    """Check that the content survives being written to a file and read again."""
    dataset = adapter.prepare()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset.h5"
        write_dataset(dataset, path)
        again = replace(read_dataset(path))  # which computes its fingerprint anew
        _demand(again.fingerprint == dataset.fingerprint, "a round trip changes the content")


def check_queries_have_relevant_items(adapter: DatasetAdapter) -> None:
    """Check that some query has a relevant item, and some pair is irrelevant."""
    dataset = adapter.prepare()
    affinity = dataset.affinity()
    levels = affinity.block(slice(0, min(100, affinity.n_queries)), slice(0, affinity.n_database))
    _demand(bool((levels > 0).any()), "no query has a relevant item")
    _demand(bool((levels == 0).any()), "every item is relevant to every query")


DATASET_CHECKS: tuple[Callable[[DatasetAdapter], None], ...] = (
    check_prepares_the_same_twice,
    check_tells_its_origin,
    check_survives_a_round_trip,
    check_queries_have_relevant_items,
)


def check_is_described(metric: Metric) -> None:
    """Check that the metric's function has a docstring, and its definition a source."""
    _demand(bool(metric.family.summary), "the function has no docstring")
    _demand(bool(metric.family.source), "no source of the definition is given")


def check_gives_mean_low_and_high_for_each_query(metric: Metric) -> None:
    """Check that mean, low and high are between 0 and 1, in order, and NaN for a query without relevant items."""
    _demand_no_vectors(metric)
    for histogram in _tied_rankings():
        try:
            metric.scores(histogram)
        except HashbenchError as error:
            raise ConformanceError(str(error)) from error
    nothing = TieHistogram(np.array([[[2, 1], [0, 0]]]), largest_bucket=np.array([[1, 1]]))
    _demand(bool(np.isnan(metric.scores(nothing).mean).all()), "a query without relevant items has a score")


def check_ties_are_averaged_over_all_orders(metric: Metric) -> None:
    """Check that mean, low, high and tie_sd are those of the metric's own values over every order of tied items.

    A metric inside a Hamming ball has no ties to order; a tie_sd may be unknown, NaN.
    """
    _demand_no_vectors(metric)
    if metric.family.pattern.endswith("@rN"):
        return
    for histogram in _tied_rankings():
        values = metric.scores(_untied(histogram)).mean
        expected = values.mean(), values.min(), values.max(), values.std()
        for name, (score,), value in zip(Scores._fields, metric.scores(histogram), expected, strict=True):
            is_unknown = name == "tie_sd" and np.isnan(score)
            _demand(
                bool(is_unknown or abs(score - value) < 1e-9),
                f"counts {histogram.counts[0].tolist()} (level, tie) give {name} {score:.9f}, but over all "
                f"{len(values)} orders of tied items it is {value:.9f}",
            )


def check_slopes_are_those_of_all_orders(metric: Metric) -> None:
    """Check that slopes, if the metric has any, are those of the covariances over every order of tied items."""
    _demand_no_vectors(metric)
    if metric.family.slopes is None or metric.family.pattern.endswith("@rN"):
        return
    for histogram in _tied_rankings():
        ((slope,), gains), untied, start = cast(Slopes, metric.slopes(histogram)), _untied(histogram), 0
        values = metric.scores(untied).mean
        for of_tie, counts in zip(slope, histogram.counts[0].T, strict=True):
            n_items = int(counts.sum())
            places, mean_gain = np.arange(n_items), counts @ gains / max(n_items, 1)
            for level in np.flatnonzero(counts):
                place = untied.counts[:, level, start : start + n_items] @ places / counts[level]
                expected = float(np.cov(values, place, bias=True)[0, 1]) / (n_items + 1)
                covariance = float(gains[level] - mean_gain) * float(of_tie)
                _demand(
                    abs(covariance - expected) < 1e-9,
                    f"counts {histogram.counts[0].tolist()} (level, tie) give a covariance of {covariance:.9f} with "
                    f"the key of an item of level {level}, but over all {len(values)} orders it is {expected:.9f}",
                )
            start += n_items


METRIC_CHECKS: tuple[Callable[[Metric], None], ...] = (
    check_is_described,
    check_gives_mean_low_and_high_for_each_query,
    check_ties_are_averaged_over_all_orders,
    check_slopes_are_those_of_all_orders,
)


def _demand_no_vectors(metric: Metric) -> None:
    needs = metric.family.needs_candidates
    _demand(not needs, f"{metric.name} re-ranks by float vectors, of which the suite has none")


def _tied_rankings() -> Iterator[TieHistogram]:
    """Yield rankings of one query with up to seven items in up to three ties, at levels 0 to 2, always the same."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = np.zeros((1, 3, 3), dtype=np.int64)
        ties = rng.integers(0, 3, size=rng.integers(2, 8))
        np.add.at(counts[0], (rng.integers(0, 3, size=len(ties)), ties), 1)
        counts[0, 1, ties[0]] += not counts[0, 1:].any()
        yield TieHistogram(counts, np.arange(3), largest_bucket=np.minimum(counts.sum(axis=1), 1))


def _untied(histogram: TieHistogram) -> TieHistogram:
    """Return one ranking without ties for each order of the tied items of one query."""
    n_levels = len(histogram.levels)
    ties = [np.repeat(np.arange(n_levels), counts) for counts in histogram.counts[0].T]
    orders = np.array([np.concatenate(order) for order in product(*(permutations(tie) for tie in ties))], dtype=int)
    return TieHistogram((orders[:, None, :] == np.arange(n_levels)[:, None]).astype(np.int64), histogram.levels)


def example_dataset(*, labelled: bool = True) -> Dataset:
    """Return a small dataset, always the same: ten well separated classes in 80 dimensions, 300 items.

    50 are queries, 250 are both database and training items. Without labels, the rule is ``distance``.
    """
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 10
    features = rng.normal(size=(10, 80))[labels] * 2 + rng.normal(size=(300, 80))
    return Dataset(
        name="example" if labelled else "example-unlabelled",
        features=features.astype(np.float32),
        query=np.arange(50),
        database=np.arange(50, 300),
        train=np.arange(50, 300),
        rule="same-label" if labelled else "distance",
        rule_params={} if labelled else {"squared_thresholds": [200.0, 150.0], "levels": [1, 2]},
        labels=labels if labelled else None,
    )


def example(cls: MethodClass, n_bits: int = 16, dataset: Dataset | None = None) -> tuple[HashMethod, Any, Any]:
    """Return a method with items and supervision for it, from the example dataset or another one."""
    dataset = dataset or example_dataset()
    labels = np.asarray(dataset.labels)[dataset.train]
    X = labels.reshape(len(labels), -1).astype(np.float64)
    X = X if cls.reads == "labels" else np.asarray(dataset.features)[dataset.train]
    y = {"none": None, "labels": labels, "affinity": dataset.train_affinity()}[cls.supervision]
    return _quick(cls, n_bits), X, y


def _quick(cls: MethodClass, n_bits: int) -> HashMethod:
    """Construct a method, one that learns in epochs with few of them."""
    method = cls(n_bits=n_bits)
    if hasattr(method, "session"):
        method.set_params(epochs=min(method.get_params(deep=False)["epochs"], _N_EPOCHS))
    return method


def _fit(method: HashMethod, X: Any, y: Any) -> HashMethod:
    """Fit a method; if that fails, but not with another kind of supervision, say so."""
    try:
        return method.fit(X, y)
    except Exception as error:
        cls = type(method)
        for kind in SUPERVISION:
            other, X, y = example(type(cls.__name__, (cls,), {"supervision": kind}), method.n_bits)
            try:
                other.fit(X, y)
            except Exception:
                continue
            raise WrongSupervision(
                f"supervision is {cls.supervision!r}, so fit gets {_GIVEN[cls.supervision]} as y and ends in "
                f"{type(error).__name__}: {error}; it works with supervision = {kind!r}, so set this class attribute"
            ) from error
        raise


def _several_classes() -> Any:
    """Return multi-hot labels of the example: its class, for every third item also the next one, for some none."""
    rows = np.eye(10, dtype=np.uint8)[np.arange(300) % 10]
    rows[::3] |= np.roll(rows[::3], 1, axis=1)
    rows[::50] = 0
    return rows


def _codes(method: HashMethod, X: Any) -> Any:
    """Encode items, and check that each has one boolean code."""
    codes = method.transform(X)
    _demand(codes.dtype == np.bool_, f"codes are {codes.dtype}, not bool")
    _demand(
        codes.shape == (len(X), method.n_bits), f"{len(X)} items at {method.n_bits} bits give codes of {codes.shape}"
    )
    return codes


def _demand(holds: bool, complaint: str) -> None:
    if not holds:
        raise ConformanceError(complaint)

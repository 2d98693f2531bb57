import csv
import re
from dataclasses import dataclass, replace

import numpy as np
import pytest
from helpers.documents import files
from helpers.thoroughness import slow

from hashbench import evaluate, registry, testing
from hashbench.errors import HashbenchError
from hashbench.methods.lsh import LSH
from hashbench.plugins import real, register_metric, setting
from hashbench.scoring.metrics import FAMILIES, Family, Metric, Scores, get_metric, is_error
from hashbench.testing import ConformanceError


def changing(function, change):
    """Make a method that changes what a function of its base returns."""

    class Mine(LSH):
        pass

    setattr(Mine, function, lambda self, X: change(getattr(super(Mine, self), function)(X)))
    return Mine


WRONG = {  # of n items, where the suite once looked only at 7 and 50 of 250 items
    "too short for one item": lambda values: values[0] if len(values) == 1 else values,
    "too short for two items": lambda values: values[:1] if len(values) == 2 else values,
    "too short for 64 items": lambda values: values[:63] if len(values) == 64 else values,
    "too short for many items": lambda values: values[:1000],
    "squeezed at one bit": lambda values: values[:, 0] if values.shape[1] == 1 else values,
    "padded to whole bytes": lambda values: np.pad(values, [(0, 0), (0, -values.shape[1] % 4)]),
}


@pytest.mark.parametrize(
    ("function", "change"), [*zip(3 * ["_project", "transform"], WRONG.values(), strict=True)], ids=WRONG
)
def test_suite_finds_codes_of_a_wrong_shape(function, change):
    complaints = []
    for check in (testing.check_batches_encode_like_the_whole, testing.check_short_codes_fit_or_are_refused):
        try:
            check(changing(function, change))
        except (ConformanceError, HashbenchError) as error:
            complaints.append(str(error))
    assert complaints
    assert all("shape" in complaint or "items at" in complaint for complaint in complaints)


def test_suite_finds_values_to_try_that_are_refused():
    @dataclass(eq=False, repr=False, kw_only=True)
    class Mine(LSH):
        """A method."""

        share: float = setting(0.5, real(0, 1), tunable=(0.5, 2.0))

    with pytest.raises(ConformanceError, match=r"tunable of share holds 2\.0, which is refused: .*'share' parameter"):
        testing.check_values_to_try_are_allowed(Mine)


class NoDataclass(LSH):
    """A method.

    Parameters
    ----------
    n_bits : int, default=32
        Code length.
    shift : float, default=0.5
        Shift of the features.
    """

    shift: float = 0.5


def test_suite_finds_described_parameters_that_are_no_fields():
    with pytest.raises(ConformanceError, match=r"parameters that the method does not have: shift; .* with @dataclass"):
        testing.check_describes_itself(NoDataclass)
    testing.check_describes_itself(dataclass(eq=False, repr=False, kw_only=True)(NoDataclass))


class ChangingFit(LSH):
    """A method that changes the items in ``_fit``."""

    def _fit(self, X, y):
        X -= 1
        super()._fit(X, y)


class ChangingProjection(LSH):
    """A method that changes the items in ``_project``."""

    def _project(self, X):
        X -= 1
        return super()._project(X)


@pytest.mark.parametrize(("cls", "function"), [(ChangingFit, "_fit"), (ChangingProjection, "_project")])
def test_suite_names_the_function_that_changes_the_items(cls, function):
    with pytest.raises(ConformanceError, match=f"^{function} changes X; write X = X - "):
        testing.check_fit_returns_self_and_keeps_its_input(cls)


class MeanOfFirstClass(LSH):
    """A method that learns from labels, without saying so."""

    def _fit(self, X, y):
        super()._fit(X - X[y == y[0]].mean(axis=0), y)


class Similar(LSH):
    """A method that learns from pairs, without saying so."""

    def _fit(self, X, y):
        super()._fit(X * y.block(slice(None), slice(None)).mean(), y)


class Broken(LSH):
    """A method that fits to nothing."""

    def _fit(self, X, y):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("cls", "message"),
    [
        (
            MeanOfFirstClass,
            "supervision is 'none', so fit gets None as y and ends in TypeError: .*; it works with "
            "supervision = 'labels', so set this class attribute",
        ),
        (Similar, "supervision is 'none', so fit gets None as y and ends in AttributeError: .*'affinity', so set"),
    ],
)
def test_suite_names_the_supervision_that_a_method_needs(cls, message, hashbench, monkeypatch):
    for check in (testing.check_fit_returns_self_and_keeps_its_input, testing.check_keeps_what_it_learned):
        with pytest.raises(ConformanceError, match=message):
            check(cls)
    monkeypatch.setattr(registry, "get_method", lambda name: cls)
    monkeypatch.setattr(cls, "__doc__", LSH.__doc__)
    result = hashbench("check", "method", "mine")
    assert re.findall("^(?:ok|FAIL|skip)", result.stdout, re.MULTILINE) == ["ok", "ok", "FAIL", *["skip"] * 9]
    assert result.stderr == (
        "Error: method 'mine' fails 1 of 12 checks; the others were skipped, because it cannot be fitted.\n"
    )


def test_suite_keeps_the_error_of_a_method_that_no_supervision_mends():
    with pytest.raises(ZeroDivisionError):
        testing.check_same_seed_gives_same_codes(Broken)


ODD = {
    "complex": (lambda values: values + 0j, r"complex128 projections of shape \(250, 16\)"),
    "none": (lambda values: None, r"object projections of shape \(\)"),
    "a list too few": (lambda values: values[1:].tolist(), r"float64 projections of shape \(249, 16\)"),
    "words": (lambda values: values.astype(str), r"<U\d+ projections of shape \(250, 16\)"),
}


@pytest.mark.parametrize(("change", "message"), ODD.values(), ids=ODD)
def test_projections_that_are_no_real_numbers_are_refused(change, message):
    method, X, y = testing.example(changing("_project", change))
    with pytest.raises(HashbenchError, match=rf"^Mine .*{message} .* expected real numbers"):
        method.fit(X, y).transform(X)


PLUGIN = """
import numpy as np
from hashbench.methods.lsh import LSH


class Mine(LSH):
    def {function}(self, X):
        values = super().{function}(X)
        return {change}
"""
CHANGES = {
    "short projection": ("_project", "values[:-1]"),
    "narrow codes": ("transform", "values[:, :-1]"),
    "codes of numbers": ("transform", "values * 2 - 1.0"),
    "no codes": ("transform", "None"),
}


@pytest.mark.usefixtures("digits_data")
@pytest.mark.parametrize(("function", "change"), CHANGES.values(), ids=CHANGES)
def test_in_a_run_codes_of_a_wrong_shape_are_their_jobs_failure(hashbench, plugin, data, tmp_path, function, change):
    plugin("mine", PLUGIN.format(function=function, change=change))
    methods = ["--method", "mine", "--method", "pcah"]
    result = hashbench("run", *methods, "--bits", 8, "--metric", "AP", "--results", tmp_path / "r")
    first, second, last = result.stderr.splitlines()
    assert result.exit_code == 1
    assert "digits mine 8 bits seed 0: failed. " in first
    assert first.endswith(f" its {function}.")
    assert "computed scores" in second
    assert last == "Error: 1 of the 2 jobs failed; the reasons are above."
    assert not list(data.glob("codes/*/mine*.h5"))


def test_suite_finds_complex_projections_where_codes_are_real():
    class Mine(LSH):
        def project(self, X):
            return super().project(X) + 0j

        def transform(self, X):
            return super().project(X).real > 0

    with pytest.raises(ConformanceError, match="projections are complex128, not real"):
        testing.check_codes_are_boolean_of_any_usual_length(Mine)
    assert registry.get_method("lsh") is LSH


def test_suite_finds_what_is_lost_in_a_file():
    class Mine(LSH):
        def _fit(self, X, y):
            super()._fit(X, y)
            self.learned = self.projection_[:, ::-1]

        def _project(self, X):
            return (X - self.mean_) @ getattr(self, "learned", self.projection_)

    with pytest.raises(ConformanceError, match="codes differ after writing and reading"):
        testing.check_keeps_what_it_learned(Mine)


@pytest.mark.parametrize(
    "name", ["lsh", "pcah", "sign", "dsh-density", "cca-itq", "lfh", *slow("itq", "pca-rr", "isohash", "bre")]
)
def test_hyperplanes_cut_the_bits(name):
    method, X, y = testing.example(registry.get_method(name))
    origin, normals, offsets = method.fit(X, y).hyperplanes()
    np.testing.assert_array_equal((X - origin) @ normals + offsets > 0, method.transform(X))


# ---------------------------------------------------------------- metrics


@pytest.mark.parametrize("name", ["AP@3:retrieved", "NDCG:linear", "RPrec", "Hit@2", "P@r1"])
@pytest.mark.parametrize("check", testing.METRIC_CHECKS, ids=lambda check: check.__name__)
def test_metrics_keep_the_contract(name, check):
    check(get_metric(name))


def of(function, pattern="Mine", **facts):
    return Metric(pattern, Family(pattern, function, (), "a book", 0.0, **facts))


def first_in_given_order(histogram):
    first = (histogram.size > 0).argmax(axis=1)
    value = 1.0 - (histogram.counts[np.arange(len(first)), 0, first] > 0)
    return Scores(value, value, value)


def not_finite(histogram):
    value = histogram.n_rel[:, 0] + np.inf
    return Scores(value, value, value)


def mean_above_high(histogram):
    mean, low, high, _ = get_metric("AP").scores(histogram)
    return Scores(high, low, mean)


def above_one(histogram):
    return Scores(*(5 * part for part in get_metric("AP").scores(histogram)))


def without_deviation(histogram):
    return get_metric("AP").scores(histogram)._replace(tie_sd=np.zeros(histogram.n_queries))


def one_number(histogram):
    return Scores(*(np.mean(part) for part in get_metric("AP").scores(histogram)))


@pytest.mark.parametrize(
    ("function", "check", "words"),
    [
        (first_in_given_order, testing.check_ties_are_averaged_over_all_orders, "over all"),
        (without_deviation, testing.check_ties_are_averaged_over_all_orders, "give tie_sd 0.000000000, but over all"),
        (not_finite, testing.check_gives_mean_low_and_high_for_each_query, "no finite score"),
        (mean_above_high, testing.check_gives_mean_low_and_high_for_each_query, "out of order"),
        (
            above_one,
            testing.check_gives_mean_low_and_high_for_each_query,
            ", expected 0 to 1",
        ),
        (one_number, testing.check_gives_mean_low_and_high_for_each_query, "of shape ()"),
        (one_number, testing.check_is_described, "no docstring"),
    ],
)
def test_suite_finds_what_is_wrong_with_a_metric(function, check, words):
    with pytest.raises(ConformanceError, match=re.escape(words)):
        check(of(function))


METRIC = '''
"""A metric."""

from hashbench.plugins import Scores, Slopes, register_metric
from hashbench.scoring.metrics import get_metric


def slopes(histogram):
    {slopes}
    return get_metric("AP").slopes(histogram)


@register_metric("Mine", source="a book", slopes=slopes)
def mine(histogram):
    """Average precision, or nearly."""
    mean, low, high, tie_sd = get_metric("AP").scores(histogram)
    {body}
    return {returned}
'''
CHANGING = {
    "counts": "histogram.counts[:] //= 2",
    "levels": "histogram.levels[1] = 5",
    "n_rel": "histogram.n_rel[:] //= 2",
    "size": "histogram.size[:] = 1",
    "before": "histogram.before.sort()",
    "rel_before": "histogram.rel_before[0] = 0",
    "n_database": "histogram.n_database[:] = 1",
    "n_at_level": "histogram.n_at_level[:] = 1",
    "n_relevant": "histogram.n_relevant.fill(1)",
    "part": "histogram.part(slice(1)).counts[:] = 0",
}
TIED = [[0, 0], [1, 0]], [[0, 0], [0, 1], [0, 1], [1, 1]], ([0, 1], [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("where", "change"), [("slopes", CHANGING["counts"]), *(("body", change) for change in CHANGING.values())]
)
def test_a_metric_cannot_change_the_histogram_that_others_share(plugin, hashbench, change, where):
    expected = evaluate(*TIED, ["AP", "P@2"])
    source = {"body": "", "slopes": "", "returned": "Scores(mean, low, high, tie_sd)"} | {where: change}
    plugin("mine", METRIC.format(**source), "metrics", "mine")
    with pytest.raises(HashbenchError, match=r"^metric 'Mine' changes the histogram, which all metrics share: .*copy"):
        evaluate(*TIED, ["P@2", "Mine", "AP"])
    assert evaluate(*TIED, ["AP", "P@2"]).summary == expected.summary
    if where == "slopes":
        checked = hashbench("check", "metric", "Mine")
        assert "changes the histogram" in checked.stdout
        assert checked.exit_code == 1


def test_a_metric_that_forces_its_way_changes_only_its_own_histogram(plugin):
    expected = evaluate(*TIED, ["AP", "P@2"])
    force = "histogram.n_rel.setflags(write=True); histogram.n_rel[:] = 0"
    plugin("mine", METRIC.format(slopes="", body=force, returned="mean, low, high"), "metrics", "mine")
    summary = evaluate(*TIED, ["P@2", "Mine", "AP"]).summary
    assert {name: summary[name] for name in ("AP", "P@2")} == {**expected.summary}


def test_a_metric_may_call_others_and_change_copies(plugin, hashbench):
    body = "copy = histogram.n_rel.copy(); copy += 1; assert histogram.read_only().size.sum()"
    plugin("mine", METRIC.format(slopes="", body=body, returned="mean, low, high"), "metrics", "mine")
    (mine, ap) = evaluate(*TIED, ["Mine", "AP"]).summary.values()
    assert mine[:5] == ap[:5]


RETURNED = {
    "5": "int, expected hashbench.plugins.Scores",
    "(mean, low)": "tuple, expected hashbench.plugins.Scores",
    "Scores(mean[:1], low, high)": r"mean as float64 of shape (1,), expected floats of (2,)",
    "Scores(mean, low.sum(), high)": "low as float64 of shape (), expected floats of (2,)",
    "Scores(mean, low, high.astype(str))": "high as <U32 of shape (2,), expected floats",
    "Scores(mean, low, high, tie_sd[:1])": "tie_sd as float64 of shape (1,), expected",
    "Scores(mean + 1, low, high + 1)": "scores from 0.",
    "Scores(mean, low - 1, high)": "scores from -",
    "Scores(mean * float('nan'), low, high)": "no finite score",
    "Scores(low, mean, high)": "low, mean and high out of order",
    "Scores(mean, low, high, -tie_sd)": "a tie_sd that is negative",
    "Scores(mean, low, high, 1 + tie_sd)": "more than half of high - low",
}


@pytest.mark.parametrize(("returned", "words"), RETURNED.items(), ids=RETURNED)
def test_scores_of_a_plugin_are_checked(plugin, returned, words):
    plugin("mine", METRIC.format(slopes="", body="", returned=returned), "metrics", "mine")
    with pytest.raises(HashbenchError, match=rf"^metric 'Mine' returned .*{re.escape(words)}"):
        evaluate(*TIED, ["AP", "Mine"])


RETURNED_SLOPES = {
    "5": "slopes as int, expected hashbench.plugins.Slopes(slope, gains)",
    "slope[:1], gains": "slope as float64 of shape (1, 3), expected floats of (2, 3)",
    "slope[:, 0], gains": "slope as float64 of shape (2,), expected floats of (2, 3)",
    "slope, gains.sum()": "gains as float64 of shape (), expected floats of (2,)",
}


@pytest.mark.parametrize(("returned", "words"), RETURNED_SLOPES.items(), ids=RETURNED_SLOPES)
def test_slopes_of_a_plugin_are_checked(plugin, returned, words):
    slopes = f"slope, gains = get_metric('AP').slopes(histogram); return {returned}"
    plugin("mine", METRIC.format(slopes=slopes, body="", returned="mean, low, high"), "metrics", "mine")
    with pytest.raises(HashbenchError, match=rf"^metric 'Mine' returned {re.escape(words)}"):
        evaluate(*TIED, ["AP", "Mine"])


def test_queries_without_relevant_items_may_have_any_score(plugin):
    plugin(
        "mine",
        METRIC.format(slopes="", body="mean = mean.copy(); mean[1] = 7", returned="Scores(mean, low, high)"),
        "metrics",
        "mine",
    )
    scored = evaluate(*TIED[:2], ([0, 2], [0, 1, 0, 1]), ["Mine"])
    assert np.isnan(scored.scores["Mine"].mean).tolist() == [False, True]


def test_arrays_of_a_dataset_cannot_be_written(tiny):
    dataset = tiny("same-label")
    for array in (
        dataset.features,
        dataset.labels,
        dataset.query,
        dataset.train,
        dataset.train_affinity().query_labels,
    ):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0


def test_suite_finds_slopes_of_another_metric():
    metric = of(get_metric("AP").family.function, slopes=get_metric("RPrec").family.slopes)
    with pytest.raises(ConformanceError, match=r"give a covariance of .* with the key of an item of level 0, but over"):
        testing.check_slopes_are_those_of_all_orders(metric)


MISS = files("docs/tutorials/plugins.md")["src/my_metric.py"]


@pytest.fixture
def miss(plugin):
    """Install a package with the metric that the tutorial shows."""
    plugin("miss", MISS, kind="metrics", attribute="miss_at")


@pytest.mark.usefixtures("miss")
def test_a_metric_of_a_package_is_listed_checked_and_scored(hashbench):
    assert "Share of irrelevant items among the first k. [a tutorial]" in hashbench("list", "metrics").stdout
    assert hashbench("check", "metric", "Miss@2").exit_code == 0
    summary = evaluate([[0, 0]], [[0, 0], [0, 1], [1, 1]], [[1, 0, 0]], ["Miss@1", "Miss@2", "P@2"]).summary
    assert [summary[name].mean for name in ("Miss@1", "Miss@2", "P@2")] == [0, 0.5, 0.5]
    assert (is_error("Miss@2"), is_error("P@2"), is_error("Gone@2")) == (True, False, False)


@pytest.mark.usefixtures("miss", "digits_data")
def test_scores_of_a_packages_metric_are_not_cached(hashbench, tmp_path):
    def score():
        stderr = hashbench("run", "--method", "lsh", "--bits", 8, "--metric", "Miss@5", "--results", tmp_path).stderr
        (row,) = csv.DictReader((tmp_path / "digits" / "lsh.csv").read_text().splitlines())
        return stderr, float(row["value"])

    _, value = score()
    family = FAMILIES["Miss@k"]
    halved = replace(family, function=lambda *args: Scores(*(family.function(*args)[0] / 2,) * 3), slopes=None)
    FAMILIES["Miss@k"] = halved
    FAMILIES["Miss@k"].function.__module__ = "miss"
    stderr, half = score()
    assert "computed scores" in stderr
    assert half == pytest.approx(value / 2, abs=1e-6)


@pytest.mark.usefixtures("digits_data")
def test_scores_that_results_cannot_hold_are_refused_before_they_are_written(hashbench, plugin, tmp_path):
    plugin("miss", MISS.replace("return Scores(1 - mean,", "return Scores(2 - mean,"), "metrics", "miss_at")
    done = hashbench("run", "--method", "lsh", "--bits", 8, "--metric", "Miss@5", "--results", tmp_path / "results")
    assert done.exit_code == 1
    assert "metric 'Miss@5' returned scores from " in done.stderr
    assert "expected 0 to 1. Fix it; see hashbench check metric Miss@5." in done.stderr
    assert not [*tmp_path.glob("results/**/*.csv")]


def test_a_metric_that_is_there_already_is_refused(plugin):
    plugin("miss", MISS.replace("Miss@k", "P@k"), kind="metrics", attribute="miss_at")
    with pytest.raises(HashbenchError, match=r"'P@k' is claimed by hashbench\.scoring\.metrics\.precision and by miss"):
        get_metric("Miss@2")


@pytest.mark.parametrize("pattern", ["my metric", "Recall@k", "mAP", "AP:reranked=m", "P@rN:reranked=m"])
def test_a_metric_that_no_name_would_reach_is_refused(pattern):
    with pytest.raises(HashbenchError, match=f"called '{pattern}', expected letters"):
        register_metric(pattern, source="a book")


def test_suite_says_that_it_has_no_float_vectors():
    with pytest.raises(ConformanceError, match="re-ranks by float vectors"):
        testing.check_gives_mean_low_and_high_for_each_query(get_metric("R@2:reranked=5"))

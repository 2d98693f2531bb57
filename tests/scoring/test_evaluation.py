import numpy as np
import pytest

from hashbench.scoring.evaluation import Evaluation, OrderEffect
from hashbench.scoring.metrics import Scores

AP = Scores(np.array([0.5, 1.0]), np.array([0.25, 1.0]), np.array([0.75, 1.0]), np.array([0.125, 0]))
P5 = Scores(np.array([0.2, 0.4]), np.array([0.2, 0.4]), np.array([0.4, 0.4]), np.array([np.nan, 0]))


def test_one_row_a_query_and_metric():
    table = Evaluation({"AP": AP, "P@5": P5}, n_undefined=0).per_query
    assert table.columns.tolist() == ["query", "metric", "value", "tie_sd", "low", "high"]
    assert table.drop(columns="tie_sd").to_numpy().tolist() == [
        [0, "AP", 0.5, 0.25, 0.75],
        [1, "AP", 1.0, 1.0, 1.0],
        [0, "P@5", 0.2, 0.2, 0.4],
        [1, "P@5", 0.4, 0.4, 0.4],
    ]
    np.testing.assert_array_equal(table["tie_sd"], [0.125, 0, np.nan, 0])


def test_a_summary_is_the_mean_over_the_queries_that_are_defined():
    nothing = Scores(*np.full((3, 2), np.nan))
    some = Scores(*(np.append(part, np.nan) for part in AP))
    assert Evaluation({"AP": AP}, n_undefined=0).summary["AP"][:8] == (0.75, 0.625, 0.875, 2, 0, 0.0625, 0, 0.0625)
    assert Evaluation({"AP": some}, n_undefined=1).summary["AP"][:8] == (0.75, 0.625, 0.875, 3, 1, 0.0625, 0, 0.0625)
    result = Evaluation({"AP": nothing}, n_undefined=2).summary["AP"]
    mean, low, high, n_queries, n_undefined, *deviations, measured = result
    assert np.isnan([mean, low, high, *deviations]).all()
    assert (n_queries, n_undefined, measured) == (2, 2, None)


def test_deviations_add_up_within_a_kind_and_their_squares_between_kinds():
    ends = np.zeros(5), np.ones(5)
    scores = Scores(np.full(5, 0.5), *ends, np.array([0.1, 0.2, 0.3, 0.4, np.nan]))
    scores.mean[4] = np.nan  # undefined
    result = Evaluation({"AP": scores}, n_undefined=1, kinds=np.array([3, 0, 3, 1, 0])).summary["AP"]
    assert result.tie_sd == pytest.approx(np.sqrt(0.4**2 + 0.2**2 + 0.4**2) / 4)
    assert result.tie_sd_bound == pytest.approx(0.25)


def test_no_deviation_is_greater_than_half_of_the_range():
    """Scores within 0.25 of their middle have a variance of 1/16 at most, whatever the sample of items says."""
    effect = OrderEffect(4.0, np.array([0.3, 0.3]))
    scores = Scores(np.full(2, 0.5), np.full(2, 0.25), np.full(2, 0.75), np.array([0.2, 0.2]))
    result = Evaluation({"AP": scores}, n_undefined=0, order_effects={"AP": effect}).summary["AP"]
    assert (result.tie_sd, result.tie_sd_low, result.tie_sd_bound) == (0.25, 0.25, 0.25)


def test_metrics_are_found_by_each_of_their_names():
    result = Evaluation({"AP": AP, "P@5": P5}, n_undefined=0)
    for by_metric in (result.summary, result.scores):
        assert list(by_metric) == ["AP", "P@5"]
        for name, canonical in {"mAP": "AP", "MAP": "AP", "Precision@5": "P@5", "P@05": "P@5"}.items():
            assert by_metric[name] is by_metric[canonical] is by_metric.get(name)
            assert name in by_metric
            assert name in result
            assert result[name].mean == result.summary[canonical].mean
        for name in ("NDCG", "nothing", "P@6", "AP@5:odd", 0):
            assert name not in by_metric
            assert name not in result
            assert by_metric.get(name, "none") == "none"
            with pytest.raises(KeyError, match=str(name)):
                by_metric[name]
            with pytest.raises(KeyError, match=str(name)):
                result[name]


def test_an_evaluation_is_read_like_the_dictionary_of_its_means_and_shows_them():
    result = Evaluation({"AP": AP, "P@5": P5}, n_undefined=0)
    assert list(result) == list(dict(result)) == ["AP", "P@5"]
    assert dict(result)["AP"] == result["AP"]
    assert repr(result) == (
        "<Evaluation of 2 queries; AP: 0.7500 (0.6250 to 0.8750; tie_sd 0.0625), P@5: 0.3000 (0.3000 to 0.4000; "
        "tie_sd nan)>"
    )
    assert np.isnan([result["P@5"].tie_sd, result["P@5"].tie_sd_bound]).all()  # since one is unknown

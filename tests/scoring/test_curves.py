import csv

import numpy as np
import pytest
from helpers import oracles

from hashbench import Problem, evaluate
from hashbench.scoring.problem import curve_metrics, lay_out


def test_points_are_means_over_queries_by_radius_and_by_rank():
    rng = np.random.default_rng(0)
    query, database = rng.random((5, 6)) < 0.5, rng.random((7, 6)) < 0.5
    labels = rng.integers(0, 2, 5), np.array([0, 1, 0, 1, 1, 0, 0])
    frame = lay_out(evaluate(query, database, labels, ["AP", *curve_metrics(6, 7)]))
    distances, levels = oracles.hamming_distances(query, database), oracles.same_label(*labels)
    assert frame[frame["curve"] == "radius"]["cutoff"].tolist() == list(range(7))
    assert frame[frame["curve"] == "rank"]["cutoff"].tolist() == list(range(1, 8))
    for row in frame.itertuples():
        for column, in_ball, in_top in (
            ("precision", oracles.precision_in_ball, oracles.precision),
            ("recall", oracles.recall_in_ball, oracles.recall),
        ):
            expected = [
                (in_ball(d, lv, row.cutoff),) * 3
                if row.curve == "radius"
                else oracles.over_orders(lambda ranked, f=in_top, k=row.cutoff: f(ranked, k), d, lv)[:3]
                for d, lv in zip(distances, levels, strict=True)
            ]
            point = [getattr(row, name) for name in (column, f"{column}_low", f"{column}_high")]
            assert point == pytest.approx(np.mean(expected, axis=0))
        n_within = [np.sum(d <= row.cutoff) if row.curve == "radius" else row.cutoff for d in np.array(distances)]
        assert row.n_not_empty == np.count_nonzero(n_within)
    assert frame["n_not_empty"].min() < 5
    assert frame["recall"].iloc[-1] == 1


def test_curves_of_a_codes_file_are_written(hashbench, digits_data, tmp_path):
    path = hashbench("encode", "--method", "itq", "--bits", 12).stdout.strip()
    assert hashbench("evaluate", path, "--curves", tmp_path / "curves.csv").exit_code == 0
    with (tmp_path / "curves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["cutoff"] for row in rows if row["curve"] == "radius"] == [str(radius) for radius in range(13)]
    assert rows[-1]["cutoff"] == "1597"
    assert float(rows[-1]["recall"]) == 1


def test_queries_without_relevant_items_are_in_no_mean_and_not_counted():
    codes = np.array([[0, 0], [0, 1], [1, 1]])
    frame = Problem.of_codes(codes, codes[[0, 2]], (np.array([5, 5, 6]), np.array([5, 7]))).curves()
    assert frame[frame["curve"] == "radius"]["n_not_empty"].tolist() == [1, 2, 2]
    assert frame[frame["curve"] == "rank"]["n_not_empty"].tolist() == [2, 2]


def test_a_real_valued_ranking_has_only_ranks():
    assert not any("@r" in name for name in curve_metrics(None, 100))

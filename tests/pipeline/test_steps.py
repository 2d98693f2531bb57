import json
import os
import subprocess
import sys

import numpy as np
import pytest
from helpers.result_files import rows_in
from threadpoolctl import threadpool_info, threadpool_limits

from hashbench import evaluate, registry
from hashbench.bits import unpack
from hashbench.pipeline import grid, runner, steps
from hashbench.store import hdf5
from hashbench.store.files import data_dir

NAME = "NDCG@3:reranked=9"


@pytest.mark.parametrize("true_distance", ["euclidean", "dot"])
def test_a_run_reranks_by_the_features_and_the_true_distance_of_the_dataset(
    hashbench, tiny, tiny_file, tmp_path, true_distance
):
    changes = {"rule_params": {"true_distance": true_distance}} if true_distance != "euclidean" else {}
    dataset = tiny(**changes)
    assert (dataset.fingerprint == tiny().fingerprint) == (true_distance == "euclidean")
    command = ["run", "--method", "lsh", "--bits", 2, "--dataset", tiny_file(**changes), "--metric", NAME]
    first = hashbench(*command, "--results", tmp_path / "results")
    assert first.exit_code == 0, first.stderr
    (row,) = rows_in(tmp_path / "results" / "tiny")
    (path,) = data_dir().glob("codes/**/*.h5")
    with hdf5.open_codes(path) as codes:
        packed = codes.query, codes.database[:]
    vectors = dataset.features[dataset.query], dataset.features[dataset.database]
    expected = evaluate(
        *(unpack(part, 2) for part in packed), dataset.affinity(), NAME, vectors=vectors, true_distance=true_distance
    ).summary[NAME]
    assert row["metric"] == NAME
    values = [float(row[part]) for part in ("value", "low", "high")]
    assert values == pytest.approx([expected.mean, expected.low, expected.high], abs=1e-6)
    assert expected.low < expected.mean < expected.high
    evaluated = hashbench("evaluate", path, "--dataset", tiny_file(**changes), "--metric", NAME, "--format", "json")
    assert json.loads(evaluated.stdout)[NAME]["mean"] == pytest.approx(expected.mean, abs=1e-12)


def test_a_dataset_of_only_images_has_nothing_to_rerank_by(hashbench, tiny_file, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), dtype=np.uint8)
    path = tiny_file(features=None, images=images)
    command = ["run", "--method", "oracle-label", "--bits", 2, "--dataset", path, "--metric", NAME]
    result = hashbench(*command, "--results", tmp_path / "results")
    assert result.exit_code == 1
    assert "re-rank compare features, and dataset 'tiny' as prepared has images only" in result.stderr
    assert not (tmp_path / "results").exists()


@pytest.mark.usefixtures("digits_data")
def test_balls_without_items_make_no_query_undefined_scored_now_or_from_the_cache(hashbench, tmp_path):
    rows = []
    for number, metrics in enumerate([("P@r0:skip", "AP"), ("AP", "P@r0:skip"), ("P@r0:skip",)]):
        options = [word for metric in metrics for word in ("--metric", metric)]
        command = ["run", "--method", "lsh", "--bits", 64, *options, "--results", tmp_path / str(number)]
        assert hashbench(*command).exit_code == 0
        rows.append(
            {row["metric"]: (row["value"], row["n_undefined"]) for row in rows_in(tmp_path / str(number) / "digits")}
        )
    assert rows[0] == rows[1] == rows[2] | {"AP": rows[0]["AP"]}
    assert rows[0]["AP"][1] == "0" < rows[0]["P@r0:skip"][1]


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize(("many", "expected"), [(161, 1), (160, 2)])
def test_a_job_has_one_thread_of_numerical_libraries_if_the_items_have_few_values(
    tiny_file, monkeypatch, many, expected
):
    method, threads = registry.get_method("lsh"), set()
    fit, problem_of = method._fit, steps.problem_of

    def note():
        threads.update(pool["num_threads"] for pool in threadpool_info())

    monkeypatch.setattr(method, "_fit", lambda *args: (note(), fit(*args))[1])
    monkeypatch.setattr(steps, "problem_of", lambda *args: (note(), problem_of(*args))[1])
    monkeypatch.setattr(steps, "MANY_VALUES", many)  # 40 items have four features each
    jobs = grid.grid([str(tiny_file())], ["lsh"], [2, 3], [0], {})
    with threadpool_limits(2):
        outcomes = [*runner.run(jobs, steps.Demands())]
        assert {pool["num_threads"] for pool in threadpool_info()} == {2}
    assert [outcome.made.threads for outcome in outcomes] == [expected] * 2
    assert threads == {expected}


@pytest.mark.usefixtures("digits_data")
def test_the_first_job_of_a_process_has_one_thread_too(tmp_path):
    code = "from hashbench import run; run('itq', 8, results={!r})".format(str(tmp_path / "results"))
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    (record,) = json.loads((tmp_path / "results" / "digits" / "itq.json").read_text())["origins"].values()
    assert record["threads"] == 1

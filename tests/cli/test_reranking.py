"""Own codes re-ranked by the float vectors they were made of, as docs/metrics.md says."""

import numpy as np
import pytest
from helpers.documents import commands
from helpers.json_output import scores_in

import hashbench as package
from hashbench.store.results import read_rows
from hashbench.store.score_cache import find_scores


@pytest.fixture
def files(empty_folder):
    rng = np.random.default_rng(0)
    vectors = {"q": rng.normal(size=(7, 6)), "d": rng.normal(size=(150, 6))}
    arrays = {}
    for role, part in vectors.items():
        arrays |= {
            f"{role}v": part.astype(np.float32),
            role: part[:, :4] > 0,
            f"{role}l": rng.integers(0, 4, len(part)),
        }
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)
    return arrays


def command():
    (arguments,) = [words for words in commands("docs/metrics.md", run=False) if "--vectors" in words]
    return arguments


def test_the_documented_command_scores_as_python_does(hashbench, files):
    done = hashbench(*command(), "--format", "json")
    assert done.exit_code == 0, done.stderr
    names = ["R@10", "R@10:reranked=100"]
    expected = package.evaluate(
        *(files["q"], files["d"], (files["ql"], files["dl"]), names),
        vectors=(files["qv"], files["dv"]),
        true_distance="cosine",
    ).summary
    scores = scores_in(done.stdout)
    assert list(scores) == names
    for name in names:
        parts = [scores[name][part] for part in ("mean", "low", "high")]
        assert parts == pytest.approx(list(expected[name][:3]), abs=1e-12)


def test_rows_of_other_vectors_have_another_content_where_these_rerank(hashbench, files, tmp_path, data):
    saving = ("--dataset", "mine", "--results", tmp_path / "results")
    for name in ("one", "other"):
        assert hashbench("save", name, *command()[1:], *saving, "--keep-codes").exit_code == 0
        np.save("dv.npy", files["dv"][:, ::-1])
    without_vectors = command()[1 : command().index("--vectors")]
    assert hashbench("save", "none", *without_vectors, "--metric", "Recall@10", *saving).exit_code == 0
    rows = read_rows(tmp_path / "results", "mine")
    contents = {(row.method, row.metric): row.dataset_fingerprint for row in rows}
    assert len(contents) == 5
    assert contents["one", "R@10"] == contents["other", "R@10"] == contents["none", "R@10"]
    assert len({contents["none", "R@10"], *(contents[name, "R@10:reranked=100"] for name in ("one", "other"))}) == 3
    assert all(find_scores(row) is not None for row in rows)
    assert {path.parent.name for path in data.glob("codes/*/o*.h5")} == {
        f"mine-{content}" for content in contents.values()
    }

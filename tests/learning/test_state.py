import re
import shutil

import numpy as np
import pytest
from helpers.learned_methods import LEARNED, UNSUPERVISED, StoppedError, fitted, same_network, session, stop_after
from helpers.result_files import contents
from helpers.thoroughness import slow
from sklearn.exceptions import NotFittedError

from hashbench import registry
from hashbench.affinity import SameLabel, SharedLabels
from hashbench.errors import HashbenchError, Refusal
from hashbench.learning import state
from hashbench.methods.talr_ap import TALRAP
from hashbench.pipeline import steps
from hashbench.pipeline.grid import grid
from hashbench.pipeline.preparation import load_dataset
from hashbench.store import artifact

OTHERS = [(name, 0.2) for name in LEARNED if name not in ("talr-ap", "mdsh", "adsh")]


@pytest.mark.parametrize(
    ("name", "validation"),
    [
        *((name, 0.2) for name in ("talr-ap", "mdsh", "adsh")),
        ("cibhash", 0.0),  # its views are drawn
        *slow(*OTHERS, *((name, 0.0) for name in (*LEARNED, *UNSUPERVISED) if name != "cibhash")),
    ],
)
def test_resumed_training_ends_exactly_as_an_uninterrupted_one(name, validation, example, tmp_path):
    whole = fitted(example, name, validation=validation, halve_every=2)
    method = registry.get_method(name)(16, epochs=4, n_hidden=64, validation=validation, halve_every=2)
    session(method, checkpoint=tmp_path / "state.checkpoint")
    for n_epochs in (1, 3):
        session(method, resume=n_epochs > 1, on_epoch=stop_after(n_epochs))
        with pytest.raises(StoppedError):
            method.fit(*example)
    seen = []
    session(method, resume=True, on_epoch=seen.append)
    method.fit(*example)
    assert [epoch.number for epoch in seen] == [4]
    assert repr(method.history_) == repr(whole.history_)
    assert same_network(method, whole)
    session(method, on_epoch=stop_after(4))  # nothing is left to do
    assert same_network(method.fit(*example), whole)


def test_without_resume_training_starts_afresh(example, tmp_path):
    seen = []
    method = TALRAP(16, epochs=2)
    session(method, checkpoint=tmp_path / "state.checkpoint", on_epoch=seen.append)
    method.fit(*example)
    method.fit(*example)
    assert [epoch.number for epoch in seen] == [1, 2, 1, 2]
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".part")]


@pytest.mark.parametrize("change", ["parameter", "items", "labels", "order of some labels", "method", "code"])
def test_checkpoint_of_something_else_is_refused(change, example, tmp_path):
    X, y = example
    files = {"checkpoint": tmp_path / "state.checkpoint", "key": "this code"}
    method = session(TALRAP(16, epochs=1), **files)
    method.fit(X, y)
    if change == "method":
        method = session(registry.get_method("mihash")(16, epochs=1), **files)
    session(method, resume=True, key="other code" if change == "code" else "this code")
    method.set_params(alpha=2.0 if change == "parameter" else 1.0)
    labels = {"labels": y // 2, "order of some labels": np.append(y[:60], np.roll(y[60:], 1))}.get(change, y)
    with pytest.raises(HashbenchError, match="other parameters, items or version"):
        method.fit(X + X**2 if change == "items" else X, labels)


def test_interrupted_command_resumes_to_the_same_results(hashbench, digits_data, tmp_path, monkeypatch):
    def run(folder, *more):
        params = ["--param", "epochs=4", "--param", "n_hidden=32", "--param", "validation=0.1"]
        return hashbench("run", "--method", "talr-ap", "--bits", 16, *params, "--results", tmp_path / folder, *more)

    write, fresh = state.TrainingState.write, []

    def write_and_interrupt(state, path, key):
        write(state, path, key)
        fresh.append(len(state.history))
        if fresh == [1, 2, 3]:
            raise KeyboardInterrupt

    monkeypatch.setattr(state.TrainingState, "write", write_and_interrupt)
    result = run("first")
    assert result.exit_code == 130
    assert "--resume" in result.stderr.splitlines()[-1]
    (checkpoint,) = digits_data.glob("codes/digits/*.checkpoint")
    assert run("first", "--resume").exit_code == 0
    assert fresh == [1, 2, 3, 4]
    assert not checkpoint.exists()
    assert run("second", "--force").exit_code == 0
    assert contents(tmp_path / "first/digits") == contents(tmp_path / "second/digits")


@pytest.mark.parametrize("name", ["dpsh", "talr-ndcg"])
def test_equal_supervision_resumes(name, example, tmp_path):
    """Values that an affinity has cached, and arrays that it shares, do not affect its levels."""
    X, y = example
    for first, second in (
        [SharedLabels(*2 * (np.eye(10, dtype=int)[y],))] * 2,
        [SameLabel(y, y), SameLabel(y, y.copy())],
    ):
        path = tmp_path / f"{type(first).__name__}.checkpoint"
        method = session(registry.get_method(name)(8, epochs=2), checkpoint=path)
        session(method, on_epoch=stop_after(1))
        with pytest.raises(StoppedError):
            method.fit(X, first)
        session(method, on_epoch=lambda epoch: None, resume=True)
        assert len(method.fit(X, second).history_) == 2
        assert method.resumed_seconds_ > 0


def test_a_fit_cut_short_leaves_nothing_to_encode_with(example):
    X, y = example
    method = TALRAP(16, epochs=2)
    for _ in range(2):  # the first fit, and one after a whole fit
        session(method, on_epoch=stop_after(1))
        with pytest.raises(StoppedError):
            method.fit(X + 1, y)
        with pytest.raises(NotFittedError):
            method.transform(X)
        session(method, on_epoch=lambda epoch: None)
        method.fit(X, y).transform(X)
    with pytest.raises(Refusal, match="all of them equal"):
        method.fit(np.ones((5, 3)), np.zeros(5, dtype=int))
    with pytest.raises(NotFittedError):
        method.transform(X[:, :3])


def test_one_job_that_fails_or_cannot_resume_does_not_end_a_grid(hashbench, digits_data, tmp_path):
    params = {"epochs": 3, "n_hidden": 32, "scaling": "none"}
    options = ["--bits", 8, *(word for item in params.items() for word in ("--param", "{}={}".format(*item)))]
    options += ["--param", "hashnet:learning_rate=1e12", "--results", tmp_path, "--resume"]
    result = hashbench("run", "--method", "hashnet", *options, "--seed", 0, "--seed", 1)
    assert result.exit_code == 1
    assert "failed. hashnet stopped" in result.stderr
    assert result.stderr.count(": failed.") == 2
    assert not list(digits_data.rglob("*.checkpoint"))  # it would fail again

    (job,) = grid(["digits"], ["hashnet"], [8], [0], params | {"learning_rate": 1e12})
    stale = steps._checkpoint_path(load_dataset("digits")[0], job)
    artifact.write(stale, "checkpoint", {"key": "of other code"}, {})
    result = hashbench("run", "--method", "hashnet", "--method", "mihash", *options)
    assert result.exit_code == 1
    assert "other parameters, items or version" in result.stderr
    assert "1 of the 2 jobs failed" in result.stderr
    assert re.search(r"digits mihash .* seed 0: encoded codes, computed scores", result.stderr)
    assert stale.exists()  # other code may be able to go on


@pytest.mark.parametrize("reason", ["damaged", "of another version"])
def test_checkpoint_that_cannot_be_read_is_reported_and_training_starts_afresh(
    reason, hashbench, digits_data, tmp_path, monkeypatch
):
    options = ["--method", "mihash", "--bits", 8, "--param", "epochs=1", "--param", "n_hidden=32", "--resume"]
    assert hashbench("run", *options, "--results", tmp_path / "fresh").exit_code == 0
    (job,) = grid(["digits"], ["mihash"], [8], [0], {"epochs": 1, "n_hidden": 32})
    checkpoint = steps._checkpoint_path(load_dataset("digits")[0], job)
    checkpoint.write_bytes(b"damaged")
    if reason == "of another version":
        with monkeypatch.context() as patch:
            patch.setattr(artifact, "SCHEMA_VERSION", 1)
            artifact.write(checkpoint, "checkpoint", {}, {})
    shutil.rmtree(digits_data / "scores")
    steps.codes_path(load_dataset("digits")[0], job).unlink()
    done = hashbench("run", *options, "--results", tmp_path / "again")
    assert f"encoded from scratch (checkpoint {reason}) codes" in done.stderr
    fresh, again = (contents(tmp_path / name / "digits") for name in ("fresh", "again"))
    assert again == fresh
    assert not list(digits_data.rglob("*.checkpoint"))


def test_full_disk_during_a_checkpoint_is_reported(example, tmp_path, monkeypatch):
    method = session(TALRAP(16, epochs=1), checkpoint=tmp_path / "checkpoint")

    def fail(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(HashbenchError, match="No space left on device"):
        method.fit(*example)
    assert not list(tmp_path.iterdir())

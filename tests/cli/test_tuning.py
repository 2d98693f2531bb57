"""The command tune, with a plug-in of another package: what it tries, repeats, records and writes."""

import json
import signal
import sys
from collections import Counter
from contextlib import chdir

import numpy as np
import psutil
import pytest
from conftest import forget_plugins
from helpers.waiting import PATIENCE, wait_for

from hashbench.pipeline.study import read_study
from hashbench.store.results import read_folder

MINE = """
'''Mine: notes each fit.'''
import os
from dataclasses import dataclass
from pathlib import Path
import numpy as np
from hashbench.plugins import HashMethod, real, setting, whole

@dataclass(eq=False, repr=False, kw_only=True)
class Mine(HashMethod):
    '''Random planes, better with more shift, which beyond 2 fails.'''

    shift: float = setting(0.0, real(0), tunable=(0.0, 1.0, 2.0, 3.0))
    other: int = setting(1, whole(0))
    random_state: int = 0

    def _fit(self, X, y):
        with Path(os.environ["FITS"]).open("a") as file:
            file.write(f"{self.shift} {self.n_bits}\\n")
        if self.shift > 2:
            raise RuntimeError("too far")
        while Path(os.environ["FITS"] + ".wait").exists() and self.shift > 1:
            pass
        self.planes_ = np.random.default_rng(self.random_state).normal(size=(X.shape[1], self.n_bits))
        self.mean_ = X.mean(axis=0) * min(self.shift, 1)

    def _project(self, X):
        return (X - self.mean_) @ self.planes_
"""


@pytest.fixture
def fits(plugin, digits_data, tmp_path, monkeypatch):
    """Install the plug-in; the fixture lists its fits since the last call."""
    plugin("mine", MINE)
    path = tmp_path / "fits.txt"
    monkeypatch.setenv("FITS", str(path))

    def since():
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines

    with chdir(tmp_path):
        yield since


def test_all_settings_are_tried_printed_and_written_and_failures_are_trials(fits, hashbench, tmp_path):
    command = ("tune", "--method", "mine", "--method", "lsh", "--bits", 8, "--bits", 12)
    done = hashbench(*command)
    assert done.exit_code == 0
    assert sorted(fits()) == sorted(f"{shift} {n_bits}" for shift in (0.0, 1.0, 2.0, 3.0) for n_bits in (8, 12))
    assert len(read_folder(tmp_path / "tuning")) == 2 * 2 * (3 + 1)
    assert "[10/10] digits mine shift=3.0 12 bits seed 0: failed. method 'mine' failed with RuntimeError" in done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[2:4]]
    assert [row[0] for row in rows] == ["mine", "lsh"]
    assert rows[0][-2:] == ["4", "1"]
    assert float(rows[0][-4]) - float(rows[0][-5]) == pytest.approx(float(rows[0][-3]), abs=2e-4)
    assert rows[1][1:4] == ["the", "default", "default"]
    assert "mine 4 trials, lsh 1 trial." in done.stdout
    study = read_study(tmp_path / "tuning" / "grid.toml")
    assert [(name, own["tuned"]) for name, own in study.methods] == [("mine", 4)]  # nothing was chosen for lsh
    assert "Not in grid.toml, since they declare no values to try: lsh." in done.stderr
    ran = hashbench("run", "--grid", tmp_path / "tuning" / "grid.toml", "--metric", "AP")
    assert len(ran.stdout.split("\n\n")[0].splitlines()) == 2 + 2
    assert [job.n_trials for job in study.jobs()] == [4, 4]
    assert len(fits()) == 2  # with all training items

    hashbench(*command)
    assert fits() == ["3.0 8", "3.0 12"]  # others are skipped


@pytest.mark.slow  # in processes of their own: `make test-cluster` has it
def test_a_killed_command_goes_on_and_repeats_no_finished_trial(fits, tmp_path, script, monkeypatch):
    (tmp_path / "fits.txt.wait").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    command = ("tune", "--method", "mine", "--bits", 8, "--output", "out")
    started = script(*command)
    folder = tmp_path / "out"
    wait_for(lambda: len(read_folder(folder)) == 4)
    started.send_signal(signal.SIGKILL)
    started.communicate()
    assert set(fits()) >= {"0.0 8", "1.0 8"}
    (tmp_path / "fits.txt.wait").unlink()
    done = script(*command)
    assert "AP" in done.communicate()[0]
    assert done.returncode == 0
    assert fits() == ["2.0 8", "3.0 8"]
    assert len(read_folder(folder)) == 6


@pytest.mark.slow  # in processes of their own: `make test-cluster` has it
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM")
def test_a_termination_is_an_interrupt_and_leaves_no_worker(fits, tmp_path, script, monkeypatch):
    (tmp_path / "fits.txt.wait").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    options = ("--bits", 8, "--bits", 12, "--param", "shift=0.0,2.0", "--jobs", 2)
    started = script("tune", "--method", "mine", *options)
    noted = tmp_path / "fits.txt"
    wait_for(lambda: noted.exists() and noted.read_text().count("2.0 ") == 2)
    workers = psutil.Process(started.pid).children(recursive=True)
    started.send_signal(signal.SIGTERM)
    _, stderr = started.communicate(timeout=PATIENCE)  # a worker left behind keeps the pipes open
    assert started.returncode == 128 + signal.SIGTERM
    assert "Error: interrupted; finished steps are kept." in stderr
    assert psutil.wait_procs(workers, timeout=PATIENCE)[1] == []


def test_trials_of_other_code_are_repeated(fits, hashbench, tmp_path):
    command = ("tune", "--method", "mine", "--bits", 8, "--param", "shift=0.0,1.0", "--resume")
    rows = []
    for n_fits, change in ((2, ""), (0, ""), (2, "self.mean_ = 0 * self.mean_"), (0, "")):
        if change:
            source = tmp_path / "site" / "mine.py"
            text = source.read_text().replace("\n\n    def _project", f"\n        {change}\n\n    def _project")
            source.write_text(text)
            del sys.modules["mine"]
            forget_plugins()
        assert "AP" in hashbench(*command).stdout
        assert len(fits()) == n_fits
        rows.append([row.value for row in read_folder(tmp_path / "tuning").values()])
    assert rows[0] == rows[1] != rows[2] == rows[3]
    assert len(rows[3]) == 4


def test_no_settings_that_went_through_is_an_error(fits, hashbench, tmp_path):
    command = ("tune", "--bits", 8, "--param", "mine:shift=3.0", "--method", "mine")
    done = hashbench(*command)
    assert done.exit_code == 1
    assert "no settings finished all their trials" in done.stderr
    assert "was left as it was" not in done.stderr
    assert not (tmp_path / "tuning" / "grid.toml").exists()
    failure = "method 'mine' failed with RuntimeError: too far; hashbench check method mine may say why."
    assert f"no settings finished all their trials: {failure}" in done.stderr
    done = hashbench(*command, "--method", "itq", "--param", "itq:n_iter=3")  # fixed, and so wanted in the grid
    assert done.exit_code == 1
    sentence = (
        "mine is not in grid.toml, since no settings finished all their trials: method 'mine' failed with Runtime"
    )
    assert done.stderr.splitlines()[-1].startswith(f"Error: {sentence}")
    text = (tmp_path / "tuning" / "grid.toml").read_text()
    assert [name for name, _ in read_study(tmp_path / "tuning" / "grid.toml").methods] == ["itq"]
    assert "grid.toml of an earlier command was left as it was." in hashbench(*command).stderr
    assert (tmp_path / "tuning" / "grid.toml").read_text() == text


def test_balls_that_are_empty_among_the_held_out_items_are_a_failure(digits_data, hashbench, tmp_path):
    command = ("tune", "--method", "lsh", "--bits", 32, "--metric", "P@r1:skip", "--output", tmp_path / "out")
    done = hashbench(*command)
    assert done.exit_code == 1
    assert [row.value for row in read_folder(tmp_path / "out").values()] == ["1.000000", "nan"]
    failure = "P@r1:skip has no value for held-out queries among the other held-out items: every ball is empty, or "
    assert f"failed. {failure}nothing is relevant." in done.stderr
    assert hashbench(*command, "--resume").stderr == done.stderr


def test_trials_are_judged_by_any_metrics(tiny_file, hashbench, tmp_path):
    metrics = ("P@3:reranked=5", "PairwiseError", "P@r2")
    options = [option for metric in metrics for option in ("--metric", metric)]
    command = ("tune", "--method", "itq", "--param", "n_iter=1,2", "--bits", 4, "--dataset", tiny_file())
    done = hashbench(*command, *options, "--output", tmp_path / "out")
    assert done.exit_code == 0
    rows = read_folder(tmp_path / "out").values()
    assert Counter(row.metric for row in rows) == dict.fromkeys(metrics, 2 * 3)
    assert "Mean of P@3:reranked=5, 1 - PairwiseError, P@r2 of held-out training items" in done.stdout
    assert "; more is better." in done.stdout


def test_a_metric_of_errors_is_printed_as_it_is_and_the_lowest_is_best(fits, hashbench, tmp_path):
    done = hashbench("tune", "--method", "mine", "--bits", 8, "--param", "shift=0.0,1.0", "--metric", "PairwiseError")
    rows = read_folder(tmp_path / "tuning").values()
    default, best = (
        np.mean([float(row.value) for row in rows if json.loads(row.params)["shift"] == shift]) for shift in (0, 1)
    )
    assert best < default - 0.01
    assert f"[1/2] digits mine 8 bits seed 0: PairwiseError {default:.4f}\n" in done.stderr
    row = done.stdout.splitlines()[2].split()
    assert row == ["mine", "shift=1.0", "best", f"{default:.4f}", f"{best:.4f}", f"{default - best:+.4f}", "2", "0"]
    assert "; less is better." in done.stdout
    assert read_study(tmp_path / "tuning" / "grid.toml").methods == (("mine", {"tuned": 2, "shift": 1.0}),)


def test_listed_values_that_are_not_all_tried_are_counted(tiny_file, hashbench, tmp_path):
    command = ("tune", "--method", "itq", "--param", "n_iter=1,2", "--bits", 4, "--dataset", tiny_file())
    done = hashbench(*command, "--trials", 2, "--output", tmp_path / "out")
    assert "itq: 2 of 3 settings are tried; --trials 3" in done.stderr
    assert "settings are tried" not in hashbench(*command, "--trials", 3, "--output", tmp_path / "out").stderr
    done = hashbench(*command[:3], *command[5:], "--trials", 3, "--output", tmp_path / "out")
    assert done.stderr.startswith("itq declares no values to try; its defaults stand.\n")


def test_settings_of_earlier_commands_count_as_tried(tiny_file, hashbench, tmp_path):
    command = ("tune", "--method", "itq", "--dataset", tiny_file(), "--output", tmp_path / "out")
    for n_bits, values, n_tried in ((4, "1,2", 3), (4, "5,6", 5), (3, "7", 1), (4, "2,50", 5)):
        done = hashbench(*command, "--bits", n_bits, "--param", f"n_iter={values}")
        assert read_study(tmp_path / "out" / "grid.toml").methods[0][1]["tuned"] == n_tried
        assert done.stdout.splitlines()[2].split()[-2:] == [str(n_tried), "0"]


def test_methods_that_have_nothing_to_tune_leave_a_grid_as_it_is(digits_data, hashbench, tmp_path):
    done = hashbench("tune", "--method", "lsh", "--bits", 8, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert "Run the chosen settings" not in done.stderr
    assert not (tmp_path / "out" / "grid.toml").exists()

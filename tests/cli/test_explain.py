"""The command that explains numbers: its input, its formats and its errors."""

import json
import re

import numpy as np
import pytest

from hashbench.reports.explain import orders


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Options for six codes of queries and thirty of a database, in two classes; the last query has a third."""
    rng = np.random.default_rng(0)
    folder = tmp_path_factory.mktemp("own")
    arrays = {
        "--query-codes": rng.random((6, 8)) < 0.5,
        "--database-codes": rng.random((30, 8)) < 0.5,
        "--query-labels": np.array([0, 1, 0, 1, 0, 2]),
        "--database-labels": np.arange(30) % 2,
    }
    options = []
    for option, array in arrays.items():
        np.save(folder / f"{option[2:]}.npy", array)
        options += [option, folder / f"{option[2:]}.npy"]
    return options


@pytest.fixture
def explained(hashbench):
    """Run explain and return the JSON that it prints, by script and metric; it reports nothing else."""

    def run(*arguments):
        done = hashbench("explain", *arguments, "--format", "json")
        assert done.exit_code == 0, done.stderr
        assert "queries ranked" not in done.stderr
        explanations = json.loads(done.stdout, parse_constant=pytest.fail)  # NaN is no JSON
        return {(row["script"], row["metric"]): row for row in explanations}

    return run


def refused(hashbench, *arguments):
    """Return the exit code and the error; nothing must be printed."""
    done = hashbench("explain", *arguments)
    assert done.stdout == ""
    return done.exit_code, done.stderr.splitlines()[-1]


def of_rows(own, rows, folder):
    """Return the options for some rows of the database."""
    changed = list(own)
    for place in (3, 7):
        np.save(folder / own[place].name, np.load(own[place])[rows])
        changed[place] = folder / own[place].name
    return changed


@pytest.fixture
def of_themselves(own):
    """Options for the thirty codes as queries of themselves."""
    codes, labels = own[3], own[7]
    return "--query-codes", codes, "--database-codes", codes, "--query-labels", labels, "--database-labels", labels


def test_cuts_are_within_the_others(hashbench, explained, of_themselves):
    assert ("hashnet", "AP@29") in explained(*of_themselves, "--exclude-self", "--metric", "AP@29")
    options = *of_themselves, "--script", "hashnet", "--metric", "AP@30"
    assert hashbench("explain", *options).exit_code == 0
    code, line = refused(hashbench, *options, "--exclude-self")
    assert (code, "AP@30 of 29 items" in line) == (1, True)


def test_queries_that_find_themselves_are_reported(hashbench, own, of_themselves):
    note = "The queries are the database, so each finds itself. To leave it out: --exclude-self"
    assert note in hashbench("explain", *of_themselves, "--metric", "AP").stderr
    assert note not in hashbench("explain", *of_themselves, "--metric", "AP", "--exclude-self").stderr
    assert note not in hashbench("explain", *own, "--metric", "AP").stderr
    code, line = refused(hashbench, *own, "--exclude-self")
    assert (code, "the 6 queries and 30 database items differ" in line) == (1, True)


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_tables_have_a_line_for_scripts_that_agree_and_one_a_cause(hashbench, own, form):
    options = "--metric", "AP", "--script", "perf", "--script", "hashnet-caffe", "--script", "DTSH", "--script", "dtsh"
    exact, table, advice = hashbench("explain", *own, *options, "--format", form).stdout.split("\n\n")
    assert exact.startswith("AP: exactly 0.")
    assert "1 of 6 queries, without relevant items, left out" in " ".join(exact.split())
    cells = [re.split(r"\s[\s|]+", line.strip("| ")) for line in table.splitlines()[2:]]
    assert [row[0] for row in cells] == ["perf, dtsh", "- tie order", "hashnet-caffe", "- tie order"]
    assert re.fullmatch(r"0\.\d{4}", cells[0][1])
    assert cells[0][2] == cells[1][1]  # the difference and its only share
    assert advice.startswith("Tie order: the database is as given. Sorts depend on it")


def test_a_database_by_class_is_named_also_if_it_is_stored_so(hashbench, own, tmp_path):
    options = "--metric", "AP", "--script", "dtsh"
    rows = np.argsort(1 - np.load(own[7]), kind="stable")  # class 1 first
    for codes, order, words in (
        (own, "by-class", "the database is by class: items of class 0 first."),
        (of_rows(own, rows, tmp_path), "given", "the database is by class: items of class 1 first."),
        (own, "shuffled:1", "the database is shuffled:1."),
    ):
        assert words in hashbench("explain", *codes, *options, "--database-order", order).stdout


@pytest.mark.parametrize(
    ("script", "metric", "reason"),
    [
        ("dsh", "AP", "queries without relevant items give NaN"),  # the last has a class of its own
        ("pytorch-deephash-r2", "P@r8", "nothing inside: all items; all inside: NaN"),
        ("bihalf-pairs-p", "P@r8", "all pairs together, NaN at the last radius"),
        ("thulab-recall", "R@r2", "not a number where nothing is relevant"),
    ],
)
def test_a_value_that_is_not_a_number_has_a_reason(hashbench, explained, own, script, metric, reason):
    options = *own, "--metric", metric, "--script", script
    assert re.search(rf"^ {script} +NaN\n - {re.escape(reason)}$", hashbench("explain", *options).stdout, re.MULTILINE)
    assert explained(*options)[script, metric]["reason"] == reason
    assert explained(*own, "--metric", "AP", "--script", "dtsh")["dtsh", "AP"]["reason"] is None


def test_where_nothing_is_relevant_the_table_says_so(hashbench, own, tmp_path):
    np.save(tmp_path / "none.npy", np.zeros((len(np.load(own[5])), len(np.load(own[7])))))
    options = [*own[:4], "--affinity", tmp_path / "none.npy", "--metric", "AP", "--script", "dtsh"]
    text = hashbench("explain", *options).stdout
    assert text.startswith("AP: no exact value, since no query has relevant items\n")
    assert "nan" not in text


def test_scripts_that_this_machine_sorts_otherwise_have_their_own_line(hashbench, explained, own, monkeypatch):
    monkeypatch.setattr(orders, "numpy_here", orders.descending)  # as if NumPy's here
    rows = explained(*own, "--metric", "AP")
    assert rows["csq-here", "AP"]["value"] == rows["ratio-baseline-flat", "AP"]["value"] != rows["csq", "AP"]["value"]
    assert rows["csq-here", "AP"]["used_by"] == "csq, by this machine's NumPy"
    assert set(explained(*own, "--script", "csq-here", "--metric", "AP")) == {("csq-here", "AP")}
    assert "csq-here" in hashbench("explain", *own, "--metric", "AP").stdout
    monkeypatch.setattr(orders, "numpy_here", orders.numpy_scalar)
    assert "csq-here" not in hashbench("explain", *own, "--metric", "AP").stdout


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_a_value_tells_which_scripts_give_it(hashbench, explained, own, form):
    value = explained(*own, "--metric", "AP")["hashnet", "AP"]["value"]
    for printed in (f"{value:.6f}", f"{100 * value:.4f}", f"{100 * value:.4f}%"):
        text = hashbench("explain", *own, "--metric", "AP", "--value", printed, "--format", form).stdout
        if form != "json":
            assert "hashnet" in text.partition("gives it")[0]
            continue
        rows = json.loads(text)
        verdicts = {row["script"]: row["verdict"] for row in rows}
        assert [row["asked"]["value"] for row in rows] == pytest.approx([value] * len(rows), abs=1e-6)
        assert {round(row["asked"]["half_width"], 8) for row in rows} == {5e-7}
        assert verdicts["hashnet"] == verdicts["hashnet-caffe"] == "gives"
        assert set(verdicts.values()) == {"gives", "could", "unknown", "not"}


def test_a_value_without_a_metric_is_searched_in_metrics_and_database_orders(hashbench, explained, own):
    sought = explained(*own, "--metric", "P@r2", "--database-order", "shuffled")["sdh-r2", "P@r2"]["value"]
    done = hashbench("explain", *own, "--value", f"{sought:.5f}")
    assert re.search(r"sdh-r2.*(\n.*)?P@r2 +\S+ +gives it", done.stdout)
    rows = json.loads(hashbench("explain", *own, "--value", "0.731", "--format", "json").stdout)
    assert {row["database_order"] for row in rows} == {"given", "by-class", "shuffled"}
    assert {row["metric"] for row in rows} == {"AP", "NDCG", "P@r2"}  # thirty items: no cut that papers have
    by_class = [row for row in rows if row["database_order"] == "by-class"]
    alone = explained(*own, "--metric", "AP", "--metric", "NDCG", "--metric", "P@r2", "--database-order", "by-class")
    assert {(row["script"], row["metric"]): row["value"] for row in by_class} == {
        key: row["value"] for key, row in alone.items()
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--metric RR", "RR of 30 items"),
        ("--script talr-ndcg", "AP of 30 items; ask for NDCG, NDCG@k"),
        ("--script calc-map --metric AP@5 --metric P@5", "AP@5 of 30 items; ask for AP"),
        ("--metric AP:thresholds --script talr-tieap", "none of talr-tieap gives AP:thresholds of 30"),
        ("--metric AP:thresholds --value 0.50", "no script gives AP:thresholds of 30 items; ask for AP"),
        ("--script hashnt", "Did you mean 'hashnet' or "),
        ("--script qqqq", "hashbench list scripts"),
        ("--script hashnet --metric AP@31", "AP@31 of 30 items; ask for AP, AP@k, k from 2 to 30"),
    ],
)
def test_what_scripts_do_not_give_is_refused_with_what_they_do(hashbench, own, options, words):
    code, line = refused(hashbench, *own, *options.split())
    assert (code, words in line) == (1, True), line


@pytest.mark.parametrize("scripts", [(), ("--script", "hashnet")])
def test_metrics_that_no_script_gives_are_left_out_with_a_note(hashbench, own, scripts):
    metrics = "--metric", "AP@5", "--metric", "RR", "--metric", "AP@5"
    done = hashbench("explain", *own, *scripts, *metrics)
    assert (done.exit_code, done.stdout) == (0, hashbench("explain", *own, *scripts, "--metric", "AP@5").stdout)
    (line,) = (line for line in done.stderr.splitlines() if "RR" in line)
    assert line.startswith("Left out: ")
    assert ("hashnet" in line) == bool(scripts)


def test_swapped_labels_and_scripts_without_the_metric_are_reported(hashbench, own):
    at = own.index("--query-labels")
    swapped = [*own[:at], "--query-labels", own[at + 3], "--database-labels", own[at + 1]]
    done = hashbench("explain", *swapped, "--metric", "AP", "--database-order", "by-class")
    assert done.exit_code == 1
    assert "swapped" in done.stderr
    done = hashbench("explain", *own, "--metric", "AP@5", "--script", "hashnet", "--script", "Perf10")
    assert "perf10 gives none of AP@5.\n" in done.stderr

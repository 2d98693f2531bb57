"""The command that explains numbers: what it reads, which forms it has, and what it refuses."""

import json
import time

import numpy as np
import pytest
import rich.progress

from hashbench.cli import explain, progress
from hashbench.reports.explain.evaluators import EVALUATORS


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """Options that give six codes of queries and thirty of a database, in two classes; the last query has a third."""
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
def told(hashbench):
    """Run explain and give what it prints as JSON, by script and metric; it tells nothing else."""

    def run(*arguments):
        done = hashbench("explain", *arguments, "--format", "json")
        assert done.exit_code == 0, done.stderr
        assert "queries ranked" not in done.stderr
        found = json.loads(done.stdout, parse_constant=pytest.fail)  # NaN is no JSON
        return {(one["script"], one["metric"]): one for one in found}

    return run


def refused(hashbench, *arguments):
    """Give the exit code and the last line of what is refused before anything is printed."""
    done = hashbench("explain", *arguments)
    assert done.stdout == ""
    return done.exit_code, done.stderr.splitlines()[-1]


def labels_as_affinity(own, folder):
    query, database = (np.load(path) for path in own[5::2])
    np.save(folder / "levels.npy", (query[:, None] == database).astype(int))
    return [*own[:4], "--affinity", folder / "levels.npy"]


def test_codes_of_a_file_are_scored_as_evaluate_scores_them(hashbench, told, digits_data):
    assert hashbench("encode", "--method", "lsh", "--dataset", "digits", "--bits", "8").exit_code == 0
    (codes,) = digits_data.glob("codes/**/lsh-8-s0.h5")
    exact = json.loads(hashbench("evaluate", codes, "--metric", "AP", "--format", "json").stdout)["AP"]
    scripts = "--metric", "AP", "--script", "dtsh"
    one = told(codes, *scripts)["dtsh", "AP"]
    assert one["exact"] == pytest.approx({key: exact[key] for key in ("mean", "low", "high")}, abs=1e-12)
    assert one["difference"] == pytest.approx(one["value"] - exact["mean"], abs=1e-12)
    by_class = told(codes, *scripts, "--database-order", "by-class")["dtsh", "AP"]
    assert by_class["exact"] == pytest.approx(one["exact"], abs=1e-12)
    assert by_class["value"] != one["value"]


def test_labels_and_the_affinity_they_mean_give_the_same(told, own, tmp_path):
    ours, its = told(*own), told(*labels_as_affinity(own, tmp_path))
    assert {which: one["value"] for which, one in ours.items()} == {which: one["value"] for which, one in its.items()}
    assert {metric for _, metric in ours} == {"AP", "AP@1000"}


def test_a_dataset_judges_own_codes(hashbench, told, tiny_file, tmp_path):
    rng = np.random.default_rng(0)
    for name, n_items in (("q", 8), ("d", 32)):
        np.save(tmp_path / f"{name}.npy", rng.random((n_items, 8)) < 0.5)
    codes = "--query-codes", tmp_path / "q.npy", "--database-codes", tmp_path / "d.npy", "--dataset", tiny_file()
    exact = json.loads(hashbench("evaluate", *codes, "--metric", "AP", "--format", "json").stdout)["AP"]["mean"]
    assert told(*codes, "--metric", "AP")["sdh", "AP"]["exact"]["mean"] == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("order", "seed"), [("shuffled", 0), ("shuffled:3", 3)])
def test_a_shuffled_database_is_that_of_its_seed(told, own, tmp_path, order, seed):
    rows = np.random.default_rng(seed).permutation(30)
    shuffled = list(own)
    for place in (3, 7):
        np.save(tmp_path / own[place].name, np.load(own[place])[rows])
        shuffled[place] = tmp_path / own[place].name
    found = told(*own, "--metric", "AP", "--database-order", order)
    assert {one["value"] for one in found.values()} == {
        one["value"] for one in told(*shuffled, "--metric", "AP").values()
    }


def test_by_class_is_the_order_of_labels(told, own, tmp_path):
    rows = np.argsort(np.arange(30) % 2, kind="stable")
    ordered = list(own)
    for place in (3, 7):
        np.save(tmp_path / own[place].name, np.load(own[place])[rows])
        ordered[place] = tmp_path / own[place].name
    assert told(*own, "--database-order", "by-class") == told(*ordered)


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_the_same_seed_gives_the_same_bytes(hashbench, own, tmp_path, form):
    options = ["--database-order", "shuffled:7", "--format", form]
    made = []
    for name in ("one.svg", "other.svg"):
        drawn = ["--figure", tmp_path / name] if form == "table" else []
        told = hashbench("explain", *own, *options, *drawn).stdout
        made.append((told, (tmp_path / name).read_bytes() if drawn else b""))
    assert made[0] == made[1]


def test_tables_have_a_row_a_script_and_a_line_of_the_exact_value(hashbench, own):
    options = "--metric", "AP", "--script", "dtsh", "--script", "trec_eval"
    plain = hashbench("explain", *own, *options).stdout
    assert plain.startswith("AP: exactly 0.")
    assert [line.split()[0] for line in plain.splitlines() if line.startswith((" dtsh", " trec"))] == [
        "dtsh",
        "trec_eval",
    ]
    assert [line[:3] for line in plain.splitlines()[-2:]] == ["   ", "   "]  # its causes, a line each
    markdown = hashbench("explain", *own, *options, "--format", "markdown").stdout
    assert markdown.startswith("**AP**: exactly 0.")
    assert [line.split()[:2] for line in markdown.splitlines()[-2:]] == [["|", "dtsh"], ["|", "trec_eval"]]


def test_scripts_are_listed_with_what_they_give_and_what_was_read_of_them(hashbench):
    lines = hashbench("list", "scripts").stdout.splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [one.name for one in EVALUATORS]
    assert max(map(len, lines)) <= 80
    at = next(number for number, line in enumerate(lines) if line.startswith("hashnet "))
    assert [line.strip() for line in (lines[at].removeprefix("hashnet"), *lines[at + 1 : at + 3])] == [
        "AP, AP@k",
        "thuml/HashNet, PyTorch",
        "thuml/HashNet@85387b8 pytorch/src/test.py:31-53",
    ]


def test_json_names_where_a_script_is_used_and_what_was_read_of_it(told, own):
    one = told(*own, "--metric", "AP", "--script", "dtsh")["dtsh", "AP"]
    assert one["used_by"] == "Minione/DTSH, MATLAB"
    assert one["source"] == "Minione/DTSH@4be0707 calcMAP.m:2-32"


def test_json_has_null_where_no_range_of_a_quantity_of_its_own_is_known(told, own):
    found = told(*own, "--metric", "AP", "--script", "area-rp", "--script", "dtsh")
    assert found["area-rp", "AP"]["by_its_conventions"] == {"mean": None, "low": None, "high": None}
    assert found["dtsh", "AP"]["by_its_conventions"] == found["dtsh", "AP"]["exact"]


def test_a_script_that_is_named_twice_is_shown_once(hashbench, own):
    lines = hashbench("explain", *own, "--script", "DTSH", "--script", "dtsh").stdout.splitlines()
    assert len([line for line in lines if line.startswith(" dtsh")]) == 1


@pytest.mark.parametrize("form", ["table", "markdown"])
def test_what_is_of_this_machine_alone_says_so_where_it_is_shown(hashbench, own, form):
    options = "explain", *own, "--metric", "AP", "--format", form, "--script"
    line = "-here: in the order of ties of this machine's NumPy or numba; elsewhere another."
    for value in ([], ["--value", "0.73"]):
        assert hashbench(*options, "ranx-here", *value).stdout.splitlines()[-1] == line
        assert line not in hashbench(*options, "dtsh", *value).stdout


def test_json_has_null_where_a_mean_is_not_a_number(told, own):
    one = told(*own, "--metric", "R@5", "--script", "csq-r")["csq-r", "R@5"]
    assert one["value"] is one["difference"] is None


@pytest.mark.parametrize("form", ["table", "markdown", "json"])
def test_a_value_tells_which_scripts_give_it(hashbench, told, own, form):
    value = told(*own, "--metric", "AP")["hashnet", "AP"]["value"]
    for printed in (f"{value:.6f}", f"{100 * value:.4f}", f"{100 * value:.4f}%"):
        done = hashbench("explain", *own, "--metric", "AP", "--value", printed, "--format", form)
        assert done.exit_code == 0, done.stderr
        if form == "json":
            found = json.loads(done.stdout)
            verdicts = {one["script"]: one["verdict"] for one in found}
            assert [one["asked"]["value"] for one in found] == pytest.approx([value] * len(found), abs=1e-6)
            assert {round(one["asked"]["half_width"], 8) for one in found} == {5e-7}
            assert verdicts["hashnet"] == verdicts["hashnet-caffe"] == "gives"
            assert set(verdicts.values()) == {"gives", "could", "unknown", "not"}
        else:
            (line,) = (line for line in done.stdout.splitlines() if " hashnet " in line)
            assert "gives it" in line


@pytest.mark.parametrize("ending", ["svg", "png", "pdf", "SVG"])
def test_a_figure_is_of_the_kind_that_its_ending_says(hashbench, own, tmp_path, ending):
    path = tmp_path / f"figure.{ending}"
    assert hashbench("explain", *own, "--metric", "AP", "--script", "dtsh", "--figure", path).exit_code == 0
    start = path.read_bytes()[:5]
    assert start == {"png": b"\x89PNG\r", "pdf": b"%PDF-"}.get(ending, b"<?xml")


def test_scripts_that_take_no_cut_beyond_the_database_are_left_out(told, own):
    names = {name for name, _ in told(*own, "--metric", "AP@31")}
    assert "calc-top-map" in names
    assert not {"hashnet", "orthohash"} & names


def test_scripts_alone_are_asked_for_what_they_give(told, own):
    assert set(told(*own, "--script", "calc-map")) == {("calc-map", "AP")}


def test_a_database_of_one_item_is_explained(told, own, tmp_path):
    one = list(own)
    for place in (3, 7):
        np.save(tmp_path / own[place].name, np.load(own[place])[:1])
        one[place] = tmp_path / own[place].name
    found = told(*one, "--metric", "AP")
    assert found["dtsh", "AP"]["value"] == found["dtsh", "AP"]["exact"]["mean"] == 1
    assert found["callmap", "AP"]["value"] == pytest.approx(1 / 2)  # three of six queries are of its class
    assert ("calc-top-map", "AP") not in found  # which loses the last item


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_line_is_told_on_no_terminal_and_then_only_of_what_takes_long(hashbench, own, monkeypatch, is_terminal):
    bars = []
    monkeypatch.setattr(progress._Stderr, "isatty", lambda self: is_terminal)
    monkeypatch.setattr(rich.progress.Progress, "update", lambda self, task, **what: bars.append(what))
    quick = hashbench("explain", *own, "--metric", "AP")
    assert "queries ranked" not in quick.stderr
    assert bool(bars) == is_terminal
    now = iter(range(0, 10**6, 31))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    slow = hashbench("explain", *own, "--metric", "AP")
    assert ("queries ranked: 6 of 6" in slow.stderr) == (not is_terminal)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--metric RR", "no script that is known here gives RR of 30 items; ask for AP, AP@k, NDCG"),
        ("--script talr-ndcg", "talr-ndcg does not give AP of 30 items; ask for NDCG, NDCG@k."),
        (
            "--script talr-ndcg --script calc-map --metric P@5",
            "none of talr-ndcg, calc-map gives P@5 of 30 items; ask for NDCG, NDCG@k, AP.",
        ),
        ("--script calc-map --metric AP@5 --metric P@5", "calc-map does not give AP@5 of 30 items; ask for AP."),
        ("--script hashnt", "Did you mean 'hashnet' or "),
        ("--script qqqq", "unknown script 'qqqq'. All scripts: hashbench list scripts."),
        (
            "--script hashnet --metric AP@31",
            "hashnet does not give AP@31 of 30 items; ask for AP, AP@k, k within",
        ),
    ],
)
def test_what_scripts_do_not_give_is_refused_with_what_they_do(hashbench, own, options, words):
    code, line = refused(hashbench, *own, *options.split())
    assert (code, words in line) == (1, True), line


@pytest.mark.parametrize("scripts", [(), ("--script", "hashnet")])
def test_metrics_that_no_script_gives_are_left_out_and_told(hashbench, own, scripts):
    metrics = "--metric", "AP@5", "--metric", "RR", "--metric", "AP@5"
    done = hashbench("explain", *own, *scripts, *metrics)
    assert (done.exit_code, done.stdout) == (0, hashbench("explain", *own, *scripts, "--metric", "AP@5").stdout)
    (line,) = (line for line in done.stderr.splitlines() if "RR" in line)
    assert line.startswith("Left out: hashnet does not give" if scripts else "Left out: no script that is known here")


@pytest.mark.parametrize(("printed", "read"), [("1.5", "0.0150 ± 0.0005"), ("0.73", "0.730 ± 0.005")])
def test_a_value_is_told_as_it_was_read(hashbench, own, printed, read):
    done = hashbench("explain", *own, "--script", "dtsh", "--value", printed)
    assert done.stdout.startswith(f"asked for: {printed} ({read})\n")


def test_a_figure_shows_the_value_asked_for_and_the_order_of_the_database(hashbench, own, tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(explain, "write_drawn", lambda path, figure: drawn.append(figure))
    options = "--metric", "AP", "--script", "dtsh", "--figure", tmp_path / "f.svg"
    for value in ((), ("--value", "73.1")):
        assert hashbench("explain", *own, *options, *value).exit_code == 0
    without, with_it = ([line.get_xdata()[0] for line in figure.axes[0].lines] for figure in drawn)
    assert set(with_it) - set(without) == {0.731}
    assert "Dashed: 73.1, the value asked for." in drawn[1].get_label()
    assert "database order: given" in drawn[1].get_label()


def test_a_figure_of_no_numbers_is_refused(hashbench, own, tmp_path):
    options = "--metric", "R@5", "--script", "csq-r", "--figure", tmp_path / "none.svg"
    assert refused(hashbench, *own, *options) == (
        1,
        "Error: no script's value is a number, so there is nothing to draw. Leave out --figure.",
    )
    assert not (tmp_path / "none.svg").exists()


def test_swapped_labels_are_told_and_so_is_a_script_that_gives_nothing_asked_for(hashbench, own):
    at = own.index("--query-labels")
    swapped = [*own[:at], "--query-labels", own[at + 3], "--database-labels", own[at + 1]]
    done = hashbench("explain", *swapped, "--metric", "AP", "--database-order", "by-class")
    assert done.exit_code == 1
    assert "Query and database look swapped" in done.stderr
    done = hashbench("explain", *own, "--metric", "AP@5", "--script", "hashnet", "--script", "Perf10")
    assert "perf10 gives none of AP@5.\n" in done.stderr

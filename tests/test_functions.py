"""What users call from Python: the functions beside the commands of the same names."""

import html
import json
import re
import shutil
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from helpers.paths import ROOT
from helpers.result_files import contents, files_in, rows_in
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GridSearchCV

import hashbench as package
from hashbench.errors import HashbenchError
from hashbench.methods.itq import ITQ
from hashbench.store.results import read_folder

SUMMARY = ("mean", "tie_sd", "tie_sd_low", "tie_sd_bound", "tie_sd_measured", "low", "high", "n_queries", "n_undefined")

DOCUMENT = (ROOT / "docs" / "python.md").read_text()


@pytest.fixture
def few(tmp_path):
    """Results of two methods on digits."""
    (tmp_path / "digits").mkdir()
    for path in (ROOT / "results" / "digits").glob("*.*"):
        if path.name.startswith(("itq.", "lsh.")):
            shutil.copy(path, tmp_path / "digits")
    return tmp_path


def test_run_returns_the_rows_that_the_command_writes(hashbench, digits_data, tmp_path):
    command = ["run", "--method", "itq", "--method", "lsh", "--bits", 8, "--bits", 12, "--metric", "AP", "--seed", 1]
    assert hashbench(*command, "--param", "itq:n_iter=3", "--results", tmp_path / "command").exit_code == 0
    results = tmp_path / "function"
    frame = package.run({"itq": {"n_iter": 3}, "lsh": {}}, [8, 12], seeds=1, metrics="AP", results=results)
    assert contents(results / "digits") == contents(tmp_path / "command" / "digits")
    expected = pd.DataFrame(rows_in(results / "digits")).astype(dict(frame.dtypes))
    pd.testing.assert_frame_equal(frame.sort_values(["method", "n_bits"], ignore_index=True), expected)
    pd.testing.assert_frame_equal(package.read_results(results), expected)


def test_what_the_commands_prepare_encode_and_export_is_the_same_from_python(hashbench, digits_data, tmp_path):
    assert package.prepare("digits").read_bytes() == (digits_data / "datasets" / "digits.h5").read_bytes()
    first, second = package.encode(["itq", "lsh"], 8, keep_model=True)
    printed = hashbench("encode", "--method", "itq", "--method", "lsh", "--bits", 8, "--keep-model").stdout.split()
    assert [str(first), str(first.with_suffix(".model.h5")), str(second)] == printed[:3]
    assert package.export(first, "npy", tmp_path / "codes.npy", role="query") == 0
    assert np.load(tmp_path / "codes.npy").shape == (200, 8)
    assert package.export(first.with_suffix(".model.h5"), "npz", tmp_path / "model.npz") == 0
    items, labels = np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3
    np.savez(tmp_path / "mine.npz", features=items, labels=labels)
    own = package.prepare("mine", items=tmp_path / "mine.npz", labels=f"{tmp_path / 'mine.npz'}:labels", n_queries=9)
    assert package.run("itq", 4, own, metrics="AP")["n_queries"].tolist() == [9]
    with pytest.warns(UserWarning, match="pcah"):
        assert [path.name for path in package.encode(["lsh", "pcah"], 100)] == ["lsh-100-s0.h5"]
    for call, words in (
        (lambda: package.prepare("mine", items=tmp_path / "mine.npz", label="x"), "Did you mean 'labels'"),
        (lambda: package.prepare("digits", labels="y.npy"), "labels is of your own items; give these as items="),
        (lambda: package.prepare("mine", items="x.npy", name="other"), "unknown option of your own dataset 'name'"),
        (lambda: package.prepare("mine", items="x.npy", neighbours="10"), "neighbours is '10', expected int"),
        (lambda: package.prepare("mine", items="x.npy", neighbour_ties="al"), "Did you mean 'all'"),
        (lambda: package.prepare("mine", items="x.npy", seed=-1), "seed is -1, expected 0 to"),
        (lambda: package.prepare("digits", label="x"), "Did you mean 'labels'"),
        (lambda: package.prepare("nosuch"), "nosuch"),
        (lambda: package.export(first, "npy", tmp_path / "x.npy", role="databse"), "role"),
        (lambda: package.export(first.with_suffix(".model.h5"), "npz", tmp_path / "x.npz", precision="int8"), "int8"),
        (lambda: package.encode("pcah", 100), "pcah"),
    ):
        with pytest.raises(HashbenchError, match=words):
            call()


def test_each_value_of_a_list_is_run(digits_data):
    def params_of(methods, **options):
        return package.run(methods, 8, metrics="AP", **options)["params"].map(json.loads).tolist()

    assert params_of("itq", params={"n_iter": [2, 3]}) == [{"n_iter": 2}, {"n_iter": 3}]
    assert params_of({"itq": {"n_iter": np.arange(2, 4)}, "lsh": {}}) == [{"n_iter": 2}, {"n_iter": 3}, {}]
    assert params_of({"itq": [{"n_iter": 3}, {"n_iter": (2,)}]}) == [{"n_iter": 3}, {"n_iter": 2}]
    assert params_of(["itq", "lsh"], params={"itq:n_iter": range(2, 4)}) == [{"n_iter": 2}, {"n_iter": 3}, {}]


def test_run_warns_of_what_cannot_run_and_refuses_if_nothing_can(digits_data):
    with pytest.warns(UserWarning, match="pcah") as warned:
        frame = package.run(["lsh", "pcah"], 100, metrics="AP")
    assert [warning.filename for warning in warned] == [__file__]
    assert frame["method"].unique().tolist() == ["lsh"]
    with pytest.raises(HashbenchError, match="pcah"):
        package.run("pcah", 100)
    with pytest.raises(HashbenchError, match="unknown method"):
        package.run("pcha", 8)


def test_one_value_of_any_kind_is_a_sequence_of_one(digits_data, few):
    by_name = package.run("lsh", 8, seeds=1, metrics="AP")
    (path,) = digits_data.rglob("digits.h5")
    by_path = package.run("lsh", np.int64(8), path, seeds=np.uint8(1), metrics=np.str_("AP"))
    columns = ["method", "n_bits", "seed", "value"]
    assert by_path.loc[0, columns].equals(by_name.loc[0, columns])
    assert set(package.run({"lsh"}, np.array([8]), seeds=range(2), metrics=("AP",))["seed"]) == {0, 1}
    assert package.plot("ap-bits", results=few, n_bits=np.array([16, 32]))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_bits": 16.0}, "1 to 4096 bits, got 16.0. Give a whole number"),
        ({"seeds": 1.5}, "Got 1.5 instead"),
        ({"methods": None}, "unknown method 'None'"),
        ({"datasets": 5}, "unknown dataset '5'"),
        ({"metrics": 5}, "unknown metric '5'"),
        *(({key: []}, f"{key} is an empty list") for key in ("methods", "n_bits", "datasets", "seeds", "metrics")),
        ({"methods": {}}, "nothing to run; name a method"),
        ({"params": {"n_iter": []}}, "params.n_iter is an empty list"),
        ({"methods": {"lsh": 5}}, "methods.lsh must be a table of parameters, got 5"),
    ],
)
def test_invalid_values_are_refused_in_a_sentence(options, words, digits_data):
    with pytest.raises(HashbenchError, match=words):
        package.run(**{"methods": "lsh", "n_bits": 8, "datasets": "digits", **options})


def test_tune_returns_the_best_settings_that_the_command_writes(hashbench, digits_data, tmp_path):
    with pytest.warns(UserWarning, match="lsh declares no values to try; its defaults stand"):
        choices = package.tune({"itq": {"n_iter": [1, 5]}, "lsh": {}}, 8, output=tmp_path / "one", n_trials=3)
    assert choices[["method", "n_trials", "n_failed"]].to_numpy().tolist() == [["itq", 3, 0], ["lsh", 1, 0]]
    command = ("tune", "--method", "itq", "--method", "lsh", "--param", "itq:n_iter=1,5", "--bits", 8, "--trials", 3)
    shown = hashbench(*command, "--output", tmp_path / "two").stdout
    assert (tmp_path / "one" / "grid.toml").read_bytes() == (tmp_path / "two" / "grid.toml").read_bytes()
    assert read_folder(tmp_path / "one") == read_folder(tmp_path / "two")
    assert all(f"{score:.4f}" in shown for score in choices["best_score"])
    with pytest.warns(UserWarning, match="itq: 2 of 3 settings are tried; n_trials=3 tries all"):
        package.tune({"itq": {"n_iter": [1, 5]}}, 8, output=tmp_path / "one", n_trials=2)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "grid.toml").write_text("bits = 8\n")
    with pytest.raises(HashbenchError, match=r"grid\.toml does not begin with '# Chosen by hashbench tune:'"):
        package.tune("itq", 8, output=tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["grid.toml"]
    with pytest.raises(HashbenchError, match="n_trials is 0, expected a whole number from 1"):
        package.tune("itq", 8, output=tmp_path / "three", n_trials=0)


def test_figures_and_tables_are_those_of_the_folder(few):
    figure = package.plot("ap-bits", results=few, methods="itq")
    assert {line.get_label() for line in figure.axes[0].get_lines()} >= {"itq"}
    table = package.tables("table1", results=str(few), methods=["lsh"])["table1"]
    assert table.cells["method"].unique().tolist() == ["lsh"]
    assert table._repr_markdown_() == str(table) == table.to_markdown()
    assert repr(table) == f"<ResultTable table1 of {len(table.cells)} cells>"


def test_several_figures_are_listed_by_name(few):
    shutil.copytree(few / "digits", few / "other")
    for path in files_in(few / "other"):
        path.write_text(re.sub("^digits,", "other,", path.read_text(), flags=re.MULTILINE))
    with pytest.raises(HashbenchError, match=r"2 figures .* ap-bits-digits-pixels, ap-bits-other-pixels\. Choose one"):
        package.plot("ap-bits", results=few)
    assert package.plot("ap-bits", results=few, datasets="digits")


def test_an_evaluation_is_a_frame_and_a_table_in_a_notebook():
    evaluation = package.evaluate([[0, 0]], [[0, 1], [0, 0], [1, 0]], [[1, 0, 1]], ["AP", "P@1"])
    frame = evaluation.to_frame().set_index("metric")
    assert frame.columns.tolist() == [*SUMMARY]
    for name, values in evaluation.summary.items():
        np.testing.assert_array_equal(frame.loc[name].astype(float), np.array([*values.by_name.values()], dtype=float))
    head, ap, p1 = re.findall("<tr>(.*?)</tr>", evaluation._repr_html_())
    assert re.findall("<th>(.*?)</th>", head) == ["metric", "mean", "tie_sd", "range"]
    assert re.findall("<td>(.*?)</td>", p1) == ["P@1", "0.0000", "0.00000", "0.0000 to 0.0000"]
    assert f"<td>{evaluation['AP'].mean:.4f}</td>" in ap


def test_a_notebook_shows_the_number_of_queries_and_the_notes_of_an_evaluation():
    scored = package.evaluate([[0, 0], [1, 1]], [[0, 1], [0, 0]], (["<b>", "c"], ["<b>", "d"]), ["AP"])
    first, *notes = re.findall("<p>(.*?)</p>", scored._repr_html_())
    assert first == "Evaluation of 2 queries, 1 of them without relevant items"
    assert [html.unescape(note) for note in notes] == [*scored.notes] != []
    scored = package.evaluate([[0, 0]], [[0, 1], [1, 0]], [[1, 0]], ["AP"])
    assert re.findall("<p>(.*?)</p>", scored._repr_html_())[0] == "Evaluation of 1 query"


def test_a_notebook_shows_the_name_of_a_metric_and_not_its_markup():
    scores = package.evaluate([[0]], [[1]], [[1]], ["AP"]).scores["AP"]
    shown = package.Evaluation({"<script>": scores}, 0)._repr_html_()
    assert "<td>&lt;script&gt;</td>" in shown
    assert "<script>" not in shown
    assert "style" not in shown  # nor colours: it takes those of a dark or a light notebook


@pytest.fixture
def own():
    """Codes and labels, with their files as options of the commands."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    codes = (rng.random((3, 8)) > 0.5)[labels] ^ (rng.random((60, 8)) < 0.2)
    return codes[:20], codes[20:], (labels[:20], labels[20:])


@pytest.fixture
def own_options(own, tmp_path):
    query, database, labels = own
    arrays = {"query-codes": query, "database-codes": database}
    arrays |= dict(zip(("query-labels", "database-labels"), labels, strict=True))
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)
    return [word for name in arrays for word in (f"--{name}", tmp_path / f"{name}.npy")]


def words_of(options):
    """Write keyword arguments as the options of a command."""
    return [
        word
        for key, values in options.items()
        for value in ([values] if isinstance(values, str) else values)
        for word in (f"--{key.removesuffix('s').replace('_', '-')}", value)
    ]


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": ["AP", "RR"], "scripts": ["csq", "sklearn-ap"], "database_order": "by-class"},
        {"value": "0.80", "scripts": ["csq", "sklearn-ap"]},
    ],
)
def test_explain_returns_what_the_command_prints(hashbench, own, own_options, options):
    explained = package.explain(package.Problem.of_codes(*own), **options)
    command = ["explain", *own_options, *words_of(options)]
    content = json.loads(hashbench(*command, "--format", "json").stdout)
    frame = explained.scripts
    keys = ["script", "metric", "value", "difference", "n_undefined", *["verdict"] * ("value" in options)]
    assert frame[keys].to_numpy().tolist() == [[row[key] for key in keys] for row in content]
    assert frame["exact_low"].tolist() == [row["exact"]["low"] for row in content]
    shares = [list(cause.values()) for row in content for cause in row["causes"]]
    assert explained.causes[["cause", "share"]].to_numpy().tolist() == shares
    total = explained.causes.groupby(["script", "metric", "database_order"])["share"].sum()
    by_key = frame.set_index(["script", "metric", "database_order"])["difference"]
    np.testing.assert_allclose(total, by_key[total.index], atol=1e-12)
    printed = hashbench(*command, "--format", "markdown")
    assert [line for line in printed.stderr.splitlines() if line.startswith("Left out")] == explained.notes
    assert explained._repr_markdown_() == "\n\n".join([printed.stdout.rstrip("\n"), *explained.notes])
    assert len(explained.notes) == ("RR" in options.get("metrics", ()))


def test_explain_leaves_out_what_queries_ignore(own):
    cameras = np.arange(20) % 4, np.arange(40) % 4
    exact = package.evaluate(*own, ["AP"], groups=cameras)["AP"].mean
    explained = package.explain(package.Problem.of_codes(*own, groups=cameras), "AP", scripts="csq")
    assert explained.scripts["exact_mean"].tolist() == [pytest.approx(exact, abs=1e-12)]
    with pytest.raises(HashbenchError, match="the 20 queries and 40 database items differ"):
        package.explain(package.Problem.of_codes(*own, exclude_self=True))


@pytest.mark.parametrize(
    "options",
    [
        {"metrics": "RR"},
        {"database_order": "sorted"},
        {"junk_label": "5"},
    ],
)
def test_explain_refuses_in_the_words_of_the_command(hashbench, own, own_options, options):
    done = hashbench("explain", *own_options, *words_of(options))
    assert done.exit_code == 1
    of_codes = {key: value for key, value in options.items() if key == "junk_label"}
    how = {key: value for key, value in options.items() if key not in of_codes}
    with pytest.raises(HashbenchError) as refused:
        package.explain(package.Problem.of_codes(*own, **of_codes), **how)
    assert done.stderr.splitlines()[-1] == f"Error: {refused.value}"


def test_explain_run_takes_frames_and_returns_what_the_command_prints(hashbench, tmp_path):
    run = pd.DataFrame({"query_id": "q", "doc_id": list("abc"), "score": [2.0, 2.0, 1.0]})
    qrels = {"q": {"a": 1}, "other": {"a": 1}}
    (tmp_path / "run.txt").write_text("q Q0 a 1 2 r\nq Q0 b 2 2 r\nq Q0 c 3 1 r\n")
    (tmp_path / "qrels.txt").write_text("q 0 a 1\nother 0 a 1\n")
    files = ["explain", "--run", tmp_path / "run.txt", tmp_path / "qrels.txt"]
    options = {"metrics": "AP", "scripts": ["ranx-here", "trec_eval"], "value": "0.50"}
    explained = package.explain_run(run, qrels, **options)
    done = hashbench(*files, *words_of(options))
    assert done.stdout == explained.to_text() + "\n"
    assert explained.notes == [line for line in done.stderr.splitlines() if "ranx-here" in line]
    assert explained.scripts[["script", "value", "verdict"]].to_numpy().tolist() == [["trec_eval", 0.5, "gives"]]
    by_default = package.explain_run(run, qrels).to_text("json")
    assert json.loads(by_default) == json.loads(hashbench(*files, "--format", "json").stdout)
    with pytest.raises(HashbenchError, match=r"run must be a dict of dicts"):
        package.explain_run("run.txt", qrels)


def test_codes_of_a_file_are_scored_as_the_command_scores_them(hashbench, digits_data):
    package.run("lsh", 12, metrics="AP")
    path = digits_data / "codes" / "digits" / "lsh-12-s0.h5"
    content = json.loads(hashbench("evaluate", path, "--metric", "AP", "--format", "json").stdout)
    assert package.read_codes(path).evaluate(["AP"])["AP"].mean == content["AP"]["mean"]
    assert package.read_codes(path, "digits").codes.n_queries == 200
    with pytest.raises(HashbenchError, match=r"codes\.npy is not a CODES\.h5 of hashbench"):
        package.read_codes("codes.npy")


@pytest.fixture
def changed(few, tmp_path):
    """Results of two methods on digits, and a copy in which a value fell and a row is gone."""
    copy = tmp_path / "changed"
    shutil.copytree(few / "digits", copy / "digits")
    path = copy / "digits" / "itq.csv"
    lines = path.read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if ",AP," in line)
    header, fields = lines[0].rstrip("\n").split(","), lines[at].rstrip("\n").split(",")
    fields[header.index("value")] = fields[header.index("low")]
    lines[at] = ",".join(fields) + "\n"
    path.write_text("".join(lines[:-1]))
    return few, copy


def test_diff_returns_the_rows_that_the_command_lists(hashbench, changed):
    found = package.diff(*changed)
    text = hashbench("diff", *changed, "--format", "csv").stdout
    pd.testing.assert_frame_equal(
        found.to_frame().astype({"ties": object, "other": object}),
        pd.read_csv(StringIO(text)).astype({"ties": object, "other": object}),
        check_dtype=False,
        atol=5e-7,
    )
    assert repr(found).startswith(f"<Diff {changed[0]} -> {changed[1]}: 1 changed, 1 gone, ")
    change = found.to_frame(only_changed=True).iloc[0]
    assert change["difference"] == pytest.approx(change["new"] - change["old"])
    for limit, n_drops in ((0.0, 1), (0.99, 0)):
        assert len(found.drops(limit)) == n_drops
        assert hashbench("diff", *changed, "--fail-on-drop", limit).exit_code == 3 * n_drops
    assert set(package.diff(*changed, metrics="mAP").rows["metric"]) == {"AP"}


@pytest.mark.parametrize("arguments", [("nowhere", None), ("HEAD..HEAD", "HEAD")])
def test_diff_refuses_in_the_words_of_the_command(hashbench, arguments):
    done = hashbench("diff", *(argument for argument in arguments if argument))
    assert done.exit_code == 1
    with pytest.raises(HashbenchError) as refused:
        package.diff(*arguments)
    assert done.stderr.splitlines()[-1] == f"Error: {refused.value}"


def test_compare_results_returns_what_the_command_prints(hashbench, few):
    with pytest.warns(UserWarning, match="so only seeds are compared") as warned:
        frame = package.compare_results("itq", "lsh", results=few, n_bits=[16, 32])
    assert [warning.filename for warning in warned] == [__file__]  # the caller's line, which Python shows
    command = ["compare", "itq", "lsh", "--results", few, "--bits", 16, "--bits", 32, "--format", "json"]
    content = json.loads(hashbench(*command).stdout)
    keys = ["n_bits", "value", "low", "high", "p", "p_holm", "basis", "is_shown", "answer", "sentence", "second"]
    assert frame[keys].to_numpy().tolist() == [[row[key] for key in keys] for row in content["differences"]]
    assert (frame["p_holm"] > frame["p"]).any()  # corrected for both lengths
    for options, words in (
        ({"by": "item"}, "by must be one of query, class, got 'item'"),
        ({"by": "class"}, "a comparison by class needs the scores of single queries"),
        ({"n_bits": 7}, "^there are no results in AP of itq at 7 bits"),
        ({"n_bits": "8"}, "^code lengths are whole numbers, got '8'"),
    ):
        with pytest.raises(HashbenchError, match=words):
            package.compare_results("itq", "lsh", results=few, **options)
    with pytest.warns(UserWarning, match="so only seeds are compared"):
        of_list = package.compare_results(["itq", "lsh"], results=few, n_bits=[16, 32], metrics=())
    pd.testing.assert_frame_equal(of_list, frame)


def test_curves_leave_out_what_queries_ignore(own):
    cameras = np.arange(20) % 4, np.arange(40) % 4
    points = package.Problem.of_codes(*own, groups=cameras, junk_label=2).curves()
    names = [f"R@{'r' * (point.curve == 'radius')}{point.cutoff}" for point in points.itertuples()]
    scores = package.evaluate(*own, names, groups=cameras, junk_label=2)
    assert points["recall"].tolist() == pytest.approx([scores[name].mean for name in names])


@pytest.mark.parametrize("distance", ["hamming", "cosine"])
def test_curves_are_precision_and_recall_of_the_evaluation(distance):
    rng = np.random.default_rng(0)
    vectors, levels = rng.integers(0, 2, (30, 6)) * 2 - 1.0, rng.integers(0, 2, (10, 20))
    codes = vectors.astype(int)
    items = codes if distance == "hamming" else vectors
    points = package.Problem.of_codes(items[:10], items[10:], levels, distance=distance).curves()
    kinds = {"hamming": {"radius", "rank"}, "cosine": {"rank"}}
    assert set(points["curve"]) == kinds[distance]
    names = [f"P@{'r' * (point.curve == 'radius')}{point.cutoff}" for point in points.itertuples()]
    scores = package.evaluate(codes[:10], codes[10:], levels, names)
    assert points["precision"].tolist() == pytest.approx([scores.summary[name].mean for name in names])


class Thermometer:
    """Codes whose Hamming distances are differences of whole numbers."""

    def transform(self, X):
        return np.arange(4096) < X


def test_scorer_ranks_each_half_of_the_items_for_the_other():
    rng = np.random.default_rng(1)
    X, y = rng.choice(4096, (21, 1), replace=False), np.arange(21) // 2 % 3
    scores = []
    halves = np.split(np.random.default_rng(0).permutation(21), [11])
    for database, queries in (halves, halves[::-1]):
        for query in queries:
            nearness = -np.abs(X[database, 0] - X[query])
            assert len(set(nearness)) == len(nearness)
            scores.append(average_precision_score(y[database] == y[query], nearness))
    assert package.scorer("AP")(Thermometer(), X, y) == pytest.approx(np.mean(scores))


def test_scorer_works_in_a_search_and_needs_labels(train, digits):
    X, y = train[:200], np.asarray(digits.labels)[digits.train][:200]
    search = GridSearchCV(ITQ(n_bits=16), {"n_bits": [4, 16]}, scoring=package.scorer("mAP"), cv=2).fit(X, y)
    assert search.best_params_ == {"n_bits": 16}
    with pytest.raises(HashbenchError, match="needs labels of two items or more"):
        package.scorer("AP")(search.best_estimator_, X)
    error, share = (package.scorer(name)(search.best_estimator_, X, y) for name in ("PairwiseError", "NDCG:linear"))
    assert error == pytest.approx(share - 1)
    with pytest.raises(HashbenchError, match="re-ranks by float vectors, which scorers do not have"):
        package.scorer("R@10:reranked=20")
    for classes in (np.arange(5), np.array(list("abcde"))):
        with pytest.raises(HashbenchError, match="none of 5 items is relevant to another; AP has no value"):
            package.scorer("AP")(search.best_estimator_, X[:5], classes)
    with pytest.raises(HashbenchError, match="unknown metric 'APP'"):
        package.scorer("APP")


def test_the_documents_examples_run_as_they_stand(digits_data, empty_folder, few):
    blocks = re.findall(r"```python\n(.*?)```", DOCUMENT, re.DOTALL)
    notebook = next(block for block in blocks if "hashbench.run(" in block)
    assert len(blocks) == 3
    shutil.copytree(few, empty_folder / "results", ignore=shutil.ignore_patterns("here", "site"))
    for block in (*(block for block in blocks if block is not notebook), notebook):
        scope = {}
        exec(block, scope)
    assert set(scope["frame"]["method"]) == {"itq", "lsh"}
    (axes,) = re.findall(r"groupby\((.*?)\)", notebook)
    assert "metric" in eval(axes)  # or it would average over unlike ones


def test_the_cells_of_the_notebook_run_in_their_order(capsys):
    cells = json.loads((ROOT / "docs/tutorials/notebook.ipynb").read_text(encoding="utf-8"))["cells"]
    scope = {}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []  # the site shows what it gives
            exec("".join(cell["source"]), scope)
    assert set(scope["explained"].scripts["script"]) == {"csq", "callmap", "talr-ap", "trec_eval"}
    assert "calc-map-k" in set(scope["found"].query("verdict == 'gives'")["script"])
    assert capsys.readouterr().out.startswith("pca is above planes by 0.0")
    assert scope["matches"].best_f1.radius == 5

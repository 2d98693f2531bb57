import json
import re

import numpy as np
import pytest
from helpers.table_rows import ITQ, block_rows, cell, chosen, markdown_rows, parsed, ranged, table

from hashbench.errors import HashbenchError
from hashbench.reports import tables
from hashbench.reports.row_origins import describe_origin, n_trials
from hashbench.reports.selection import Selection
from hashbench.store import result_rows, results
from hashbench.store.origin import Origin

ENDS = (".csv", ".md", ".tex", "-tie-range.csv")  # of the files of each table; a paper's has one more


def shown(*cells, **selection):
    """Return the cells of one column in Markdown, by their line."""
    rows = markdown_rows(table(*cells, **selection).to_markdown())
    return {name: entries[0] for name, entries in rows.items()}


SMALL = (
    cell("lsh", 16, 0.3),
    cell("itq", 32, 0.65),
    cell("itq", 16, 0.6, seed=0),
    cell("itq", 16, 0.7, seed=1),
    cell("constant", 16, 0.1),
    cell("itq", 16, 0.9, metric="NDCG"),
    cell("itq", 20, 0.9),
)


@pytest.mark.parametrize(
    ("dataset", "features", "n_settings"),
    [
        ("cifar10-s1", "squeezenet (JPEG)", 9),
        ("tmc2007", "features", 9),
        ("cifar10-s1", "gist (JPEG)", 0),
    ],
)
def test_trials_of_defaults_count_only_on_the_data_that_they_were_tried_on(dataset, features, n_settings):
    assert n_trials((dataset, features, "hashnet", "{}", 16, 0), None) == n_settings
    assert n_trials((dataset, features, "itq", ITQ, 16, 0), None) == 0
    assert n_trials((dataset, features, "lfh", "{}", 16, 0), None) == 0  # has values to try, but no committed trials


@pytest.mark.parametrize(("n_tried", "n_settings"), [(0, 0), (1, 0), (2, 2)])
def test_a_single_setting_is_not_chosen(n_tried, n_settings):
    origin = Origin("", "0.1.0", "numpy=2", "x86_64 Nobody avx2", 1, "cpu", "2026-01-31", 1.0, n_tried)
    job = "digits", "pixels", "lsh", "{}", 16, 0
    assert n_trials(job, origin) == n_settings
    assert ("settings chosen among" in "\n".join(describe_origin(origin, job))) == (n_settings > 0)


def test_effort_is_explained_below():
    of_user, default, itq = cell("hashnet", trials=3), cell("csq", trials=0), cell("itq", trials=0)
    elsewhere = "- Defaults: those of built-in learned methods were chosen among 9 settings on"
    text = table(of_user, default, itq).to_markdown()
    assert {"hashnet", "csq", "itq"} <= {*markdown_rows(text)}
    tuned = "- Tuned: on digits (pixels), settings chosen on held-out training items, among 3 for hashnet"
    assert f"{tuned}.\n" in text
    assert f"{elsewhere} held-out training items of cifar10-s1:squeezenet, digits-pairs, tmc2007." in text
    text = table(of_user, cell("dpsh", trials=9), cell("adsh", trials=9), itq).to_markdown()
    assert {"hashnet", "dpsh", "adsh", "itq"} <= {*markdown_rows(text)}
    assert f"{tuned}; 9 for adsh, dpsh.\n" in text
    assert elsewhere not in text
    assert elsewhere not in table(itq).to_markdown()


def test_tie_range_has_a_line_per_cell_with_means_over_seeds():
    rows = parsed(table(*SMALL).to_tie_range_csv())
    assert [(row["method"], row["n_bits"], row["n_seeds"]) for row in rows] == [
        ("constant", "16", "1"),
        ("itq", "16", "2"),
        ("itq", "32", "1"),
        ("lsh", "16", "1"),
    ]
    numbers = [float(rows[1][key]) for key in ("value", "tie_sd", "low", "high")]
    assert numbers == [0.65, 0.05, 0.55, 0.85]  # one order moves the scores of both seeds
    assert [row["spread"] for row in rows] == ["", "0.070711", "", ""]  # sqrt(0.005): both 0.05 off their mean


@pytest.mark.parametrize(
    ("change", "n_blocks"),
    [
        ({"dataset": "other"}, 2),
        ({"features": "other"}, 2),
        ({"dataset_fingerprint": "bbbb"}, 2),
        ({"params": "{}"}, 1),
        ({"method_version": 2}, 1),
    ],
)
def test_blocks_and_lines_never_mix(change, n_blocks):
    result_table = table(cell(value=0.2), cell(value=0.4, seed=1, **change), variants=True)
    assert result_table.to_markdown().partition("## cifar10-s1")[0].count("## ") == n_blocks
    for text, column in ((result_table.to_csv(), "16"), (result_table.to_tie_range_csv(), "value")):
        first, second = parsed(text)
        assert {first.pop(column), second.pop(column)} == {"0.200000", "0.400000"}
        keys = first.keys() - {"low", "high"}
        assert any(first[key] != second[key] for key in keys)


def test_a_method_has_the_same_parameters_in_each_metric_that_has_values_of_them():
    less, more = '{"n_iter": 5}', '{"n_iter": 6}'
    runs = {less: {"AP": (16, 32), "NDCG": (16,), "RR": (16,)}, more: {"AP": (16,), "NDCG": (16, 32), "P@5": (16, 32)}}
    cells = [
        cell(n_bits=n_bits, params=params, metric=metric)
        for params, metrics in runs.items()
        for metric, lengths in metrics.items()
        for n_bits in lengths
    ]
    by_metric = chosen(*cells, metrics=("AP", "NDCG", "P@5", "RR")).cells.groupby("metric")["params"]
    assert by_metric.unique().map(list).to_dict() == {"AP": [more], "NDCG": [more], "P@5": [more], "RR": [less]}


@pytest.mark.parametrize(
    ("other", "params", "labels"),
    [
        ("lsh", {}, ["itq", "agh n_anchors=70", "lsh"]),
        ("dsh-density", {"n_iter": 3}, ["itq n_iter=7", "agh n_iter=7 n_anchors=70", "dsh-density"]),
        ("dsh-density", {"n_iter": 70}, ["itq n_iter=7", "agh n_iter=7 n_anchors=70", "dsh-density n_iter=70"]),
    ],
)
def test_settings_that_all_lines_of_a_block_have_stand_below_it_once(other, params, labels):
    """There is no such setting of lsh; 3 is the default of dsh-density."""
    settings = {"itq": {"n_iter": 7}, "agh": {"n_iter": 7, "n_anchors": 70}, other: params}
    result_table = table(*(cell(method, params=json.dumps(settings[method])) for method in settings))
    names = markdown_rows(result_table.to_markdown())
    assert sorted(name for name in names if name.split()[0] in settings) == sorted(labels)
    note = "All rows that have these parameters use n_iter=7."
    is_common = "itq" in labels
    assert (note in result_table.to_markdown()) == is_common
    assert (note.replace("_", "\\_") in result_table.to_latex()) == is_common


def test_a_line_without_the_common_settings_is_not_taken_for_the_tuned_one():
    short, rate = '{"epochs": 5}', '{"epochs": 5, "learning_rate": 0.1}'
    tuned, default = cell("csq", params=rate, trials=9, tuned=9), cell("csq", params=short, trials=0, tuned=0)
    both = table(tuned, default, variants=True).to_markdown()
    assert {name for name in markdown_rows(both) if "csq" in name} == {"csq", "csq (defaults)"}
    assert "All rows that have these parameters use epochs=5." in both


def test_settings_of_a_single_tuned_line_stand_below_it():
    params = '{"epochs": 5, "learning_rate": 0.1}'
    alone = table(cell("csq", params=params, trials=9, tuned=9)).to_markdown()
    assert "csq" in markdown_rows(alone)
    assert "csq uses epochs=5, learning_rate=0.1." in alone


def test_names_and_parameters_are_neither_html_nor_formulas():
    hostile = {"features": "<b>", "params": '{"a": "<i>"}', "dataset_fingerprint": "=1"}
    result_table = table(cell("lsh", **hostile), cell("sh", **{**hostile, "value": -0.5}))
    assert {"<b>", "<i>"}.isdisjoint(re.findall(r"(?<!\\)<\w+>", result_table.to_markdown()))
    row, other = parsed(result_table.to_csv())
    assert (row["dataset_fingerprint"], row["16"], other["16"]) == ("'=1", "0.500000", "-0.500000")


def test_no_two_lines_share_a_label():
    settings = ("{}", ITQ, '{"n_iter": 50.0}', '{"n_iter": "5"}', '{"n_iter": 5}')
    cells = [cell(value=0.1 * n, params=params) for n, params in enumerate(settings, start=1)]
    labels = [label for label in shown(*cells, variants=True) if label.startswith("itq")]
    expected = ['itq n_iter=5 n_iter="5"', "itq n_iter=5 n_iter=5", "itq n_iter=50", "itq n_iter=50.0", "itq n_iter=?"]
    assert sorted(labels) == expected


def test_one_seed_of_a_random_method_is_marked_among_others_with_several():
    by_line = shown(cell(seed=0), cell(seed=1), cell("lsh", value=0.1), cell("pcah", value=0.1))
    assert (by_line["lsh"], by_line["pcah"]) == ("0.1000§", "0.1000")
    assert shown(cell(), cell("lsh", value=0.1))["lsh"] == "0.1000"


def test_other_lengths_can_be_chosen():
    (row,) = parsed(table(*SMALL[1:4], SMALL[-1], n_bits=[20, 16]).to_csv())
    assert [key for key in row if key.isdigit()] == ["16", "20"]


def test_unknown_table_and_empty_table_are_refused():
    with pytest.raises(HashbenchError, match="Did you mean 'table1'"):
        table(*SMALL, name="table11")
    with pytest.raises(HashbenchError, match="no results for table2: AP@1000"):
        table(*SMALL, name="table2")
    with pytest.raises(HashbenchError, match=r"AP at 20 bits\. Choose other lengths with --bits \(results have 16"):
        table(*SMALL[:1], n_bits=[20])


@pytest.fixture
def folder(tmp_path):
    cells = [
        cell(method, n_bits, 0.25, metric=metric)
        for method in ("itq", "lsh")
        for n_bits in (16, 32)
        for metric in ("AP", "AP@1000", "NDCG")
    ]
    return saved(tmp_path, *cells)


def saved(folder, *cells):
    rows = [result_rows.Row(**fields | {key: f"{fields[key]:.6f}" for key in result_rows.NUMBERS}) for fields in cells]
    results.merge_rows(folder, rows)
    return folder


def test_tables_are_written_beside_the_results_and_only_when_they_change(folder):
    by_name = tables.make_tables(folder, ["table2"])
    tables.write_tables(folder / "tables", by_name)
    written = {path.name: path for path in (folder / "tables").iterdir() if not path.name.startswith(".")}
    assert set(written) == {f"{name}{end}" for name in by_name for end in (*ENDS, "-published.csv")}
    table2 = by_name["table2"]
    assert written["table2.md"].read_text() == table2.to_markdown()
    assert written["table2.csv"].read_bytes().decode() == table2.to_csv()
    assert written["table2.tex"].read_text() == table2.to_latex()
    assert written["table2-tie-range.csv"].read_text() == table2.to_tie_range_csv()
    assert written["table2-published.csv"].read_text() == table2.to_published_csv()
    before = {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in written.items()}
    tables.write_tables(folder / "tables", by_name)
    assert {name: (path.read_bytes(), path.stat().st_mtime_ns) for name, path in written.items()} == before


# ---------------------------------------------------------------- best and marks


BEST, SECOND = ranged("itq", 0.58, 0.5, 0.7), ranged("pcah", 0.3, 0.2, 0.4)


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (
            [cell("oracle-label", value=1.0), cell(value=0.6), cell("lsh", value=0.1)],
            {"oracle-label": "1.0000", "itq": "**0.6000**", "lsh": "0.1000"},
        ),
        ([BEST, SECOND, ranged("constant", 0.57, 0.05, 1.0)], {"constant": "0.5700†"}),
        ([BEST, ranged("constant", 0.5, 0.05, 1.0)], {"itq": "0.5800", "constant": "0.5000"}),  # itq has no rival
        ([cell(value=0.5), cell("lsh", value=0.5000001)], {"itq": "**0.5000**", "lsh": "**0.5000**"}),  # equal
        (  # a mean of both seeds' ranges would reach 0.65, though one seed reaches 0.9
            [ranged("itq", 0.8, 0.7, 0.9), ranged("lsh", 0.5, 0.4, 0.9), ranged("lsh", 0.5, 0.4, 0.4, seed=1)],
            {"lsh": "0.5000 ± 0.0000"},
        ),
    ],
)
def test_best_of_the_methods_is_bold_and_others_have_their_marks(cells, expected):
    assert shown(*cells).items() >= expected.items()


def test_of_errors_the_least_is_the_best():
    rows = cell("itq", metric="PairwiseError", value=0.1), cell("lsh", metric="PairwiseError", value=0.4)
    cells = chosen(*rows, metrics=["PairwiseError"]).cells
    assert cells.loc[cells["is_best"], "method"].tolist() == ["itq"]


def test_best_is_found_in_each_column_block_and_metric():
    cells = table(
        cell(n_bits=16, value=0.9),
        cell(n_bits=32, value=0.1),
        cell("lsh", n_bits=16, value=0.1),
        cell("lsh", n_bits=32, value=0.9),
        cell("pcah", value=0.95, dataset_fingerprint="bbbb"),
        cell("pcah", value=0.99, features="other"),
        cell("lsh", value=0.1, dataset_fingerprint="bbbb"),
        cell("lsh", value=0.1, features="other"),
    ).cells
    best = cells[cells["is_best"]]
    assert sorted(zip(best["method"], best["n_bits"], best["dataset_fingerprint"], best["features"], strict=True)) == [
        ("itq", 16, "aaaa", "pixels"),
        ("lsh", 32, "aaaa", "pixels"),
        ("pcah", 16, "aaaa", "other"),
        ("pcah", 16, "bbbb", "pixels"),
    ]


@pytest.mark.parametrize(
    ("value", "low", "high", "tie_sd", "mark"),
    [
        (0.565, 0.1, 0.6, 0.001, "†"),  # just three times the sum of .004 and .001
        (0.564, 0.1, 0.6, 0.001, ""),
        (0.499, 0.1, 0.499, 0.1, ""),  # ranges do not meet
        (0.57, 0.1, 0.6, np.nan, ""),
    ],
)
def test_what_a_shuffle_may_reverse_and_the_best_is_marked(value, low, high, tie_sd, mark):
    cells = BEST, ranged("lsh", value, low, high, tie_sd)
    assert shown(*cells).items() >= {"itq": "**0.5800**", "lsh": f"{value:.4f}{mark}"}.items()
    text = table(*cells).to_markdown()
    assert ("- †: a shuffle of the database may reverse this value and the best." in text) == (mark == "†")
    assert ("† unknown, as rows lack tie_sd: 1 of 1 cell." in text) == np.isnan(tie_sd)


def test_of_equal_bests_the_one_that_leaves_more_open_counts():
    bests = ranged("itq", 0.6, 0.5, 0.7, 0.001), ranged("lsh", 0.6, 0.5, 0.7, 0.02)
    assert shown(*bests, ranged("pcah", 0.56, 0.4, 0.7, 0.001))["pcah"] == "0.5600†"
    assert shown(bests[0], ranged("pcah", 0.56, 0.4, 0.7, 0.001))["pcah"] == "0.5600"


# ---------------------------------------------------------------- one line per method, and the others

NEWER = '{"n_iter": 5}'


def test_method_is_shown_once_by_its_defaults_and_whatever_its_scores():
    defaults, newer, lsh = cell(value=0.2), cell(value=0.4, params=NEWER), cell("lsh", value=0.3)
    by_line = shown(defaults, newer, cell(value=0.4, n_bits=32, params=NEWER), lsh)
    assert (by_line["itq"], by_line["lsh"]) == ("0.2000†", "**0.3000**")
    assert "itq n_iter=5" not in by_line
    assert shown(newer, lsh)["itq n_iter=5"] == "**0.4000**"


def test_ablation_shows_methods_with_several_settings_each_with_its_best():
    cells = cell(value=0.2), cell(value=0.4, params=NEWER), cell("lsh", value=0.9), cell(n_bits=32, params=NEWER)
    rows = markdown_rows(table(*cells, name="ablation").to_markdown())
    assert (rows["itq"], rows["itq n_iter=5"]) == (["0.2000†"], ["**0.4000**"])  # 32 bits have one setting
    assert "lsh" not in rows
    with pytest.raises(HashbenchError, match=r"no results for ablation: AP at .*, with several settings of one method"):
        table(cells[0], cells[2], name="ablation")


# ---------------------------------------------------------------- rows in a table of their own


def test_any_metric_of_any_rows_can_be_laid_out():
    cells = (
        cell(metric="AP@5000", n_bits=20, value=0.2),
        cell("lsh", metric="AP@5000", n_bits=20, value=0.3),
        cell(metric="NDCG", n_bits=99, value=0.4),
        cell(n_bits=20, value=0.5),
        cell(dataset="mine", metric="NDCG"),
    )
    selected = chosen(*cells, metrics=["AP@5000", "NDCG"], methods=["itq"], datasets=["digits"])
    assert selected.to_markdown().startswith("# Selection. AP@5000, NDCG\n\n## digits (pixels): AP@5000\n")
    assert [row["20"] + row["99"] for row in parsed(selected.to_csv())] == ["0.200000", "0.400000"]
    assert "cifar10" not in selected.to_markdown()
    for selection in ({"datasets": ["digits:pixels"]}, {"features": ["pixels"], "n_bits": [20]}):
        assert chosen(*cells, **selection).cells["value"].tolist() == [0.5]  # of AP, unless metrics are named


@pytest.mark.parametrize(
    ("selection", "words"),
    [
        ({"datasets": ["digit"]}, r"no results of dataset 'digit'\. Did you mean 'digits'"),
        ({"methods": ["iqt"]}, r"method 'iqt'\. Did you mean 'itq'\? There are results of itq"),
        ({"features": ["pixel"]}, r"feature kind 'pixel'\. Did you mean 'pixels'\? There are results of pixels\."),
        (
            {"metrics": ["AP@5000"]},
            r"no results in AP@5000\. There are results in AP at 16 bits on digits; .*--metric AP@5000",
        ),
        ({"n_bits": [99], "methods": ["itq"]}, "no results in AP of itq at 99 bits"),
    ],
)
def test_rows_that_are_not_there_are_named_with_those_that_are(selection, words):
    with pytest.raises(HashbenchError, match=words):
        chosen(cell(), **selection)


def test_tables_of_the_papers_are_cut_to_what_is_chosen():
    text = table(cell(), cell("lsh"), cell(dataset="nuswide"), datasets=["digits"], methods=["lsh"]).to_markdown()
    assert "| lsh " in text
    assert not re.search("itq|nuswide|cifar10", text)


def test_command_lays_out_rows_and_writes_only_on_request(folder, hashbench, tmp_path_factory):
    command = ["tables", "--results", folder, "--method", "lsh", "--metric", "NDCG", "--digits", 2, "--no-spread"]
    done = hashbench(*command)
    assert "| lsh            |    0.25 |    0.25 |" in done.stdout
    assert not (folder / "tables").exists()
    output = tmp_path_factory.mktemp("output")
    assert hashbench(*command, "--output", output).exit_code == 0
    assert {path.name for path in output.glob("[!.]*")} == {f"selection{end}" for end in ENDS}
    assert "lsh & 0.25 & 0.25" in (output / "selection.tex").read_text()
    assert "has its own metric" in hashbench(*command, "table1").stderr


# ---------------------------------------------------------------- names to show

SEVEN = '{"n_iter": 7}'


def named(folder, texts=None, file=None, **selection):
    selection = Selection(**{"datasets": ["digits"]} | selection)
    return tables.make_tables(folder, selection=selection, shown=tables.DisplayNames(texts, file))["selection"]


@pytest.fixture
def own(tmp_path):
    anchors = cell("agh", params='{"n_anchors": 70, "n_iter": 7}')
    return saved(tmp_path, anchors, cell(value=0.6, params=SEVEN), cell("lsh", value=0.1), cell("lsh", metric="NDCG"))


def test_names_to_show_replace_those_of_results_but_in_files_for_programs(own):
    texts = {"itq": "ITQ (ours)", "agh n_anchors=70": "50% | AGH_", "digits": "Digits", "AP": "mAP"}
    shown_table = named(own, texts | {"caption": "{metric} & more on {dataset}."})
    text, tex = shown_table.to_markdown(), shown_table.to_latex()
    assert text.startswith("# Selection. mAP\n\n## Digits (pixels): mAP\n")
    assert {"ITQ (ours)", "lsh"} <= {*markdown_rows(text)}
    assert "| 50% \\| AGH\\_ " in text
    assert "\\caption{mAP \\& more on Digits (pixels).}\n\\label{tab:selection-digits-pixels-ap}" in tex
    assert r"50\% $|$ AGH\_ & 0.500$^{\dagger}$ \\" in tex
    keys = [tuple(row[key] for key in ("dataset", "metric", "method")) for row in parsed(shown_table.to_csv())]
    assert keys == [("digits", "AP", method) for method in ("agh", "itq", "lsh")]


@pytest.mark.parametrize(
    ("texts", "place", "labels"),
    [
        ({"agh": "AGH", "itq n_iter=7": "ITQ"}, "digits (pixels): AP", {"AGH n_anchors=70", "ITQ", "lsh"}),
        ({"agh": "AGH", "agh n_anchors=70": "A"}, "digits (pixels): AP", {"A", "itq", "lsh"}),
        ({"digits:pixels": "Digits", "digits": "D"}, "Digits: AP", {"agh n_anchors=70", "itq", "lsh"}),
    ],
)
def test_a_method_keeps_its_settings_and_a_dataset_its_features_unless_both_are_named(own, texts, place, labels):
    assert labels <= {*block_rows(named(own, texts).to_markdown(), f"{place}\n")}


def test_tested_tables_show_names_and_spreads_beside_marks(tmp_path):
    cells = [
        cell(m, value=v + 0.01 * s, seed=s) for m, v in (("itq", 0.5), ("lsh", 0.5), ("pcah", 0.1)) for s in (0, 1)
    ]
    shown_table = named(saved(tmp_path, *cells), {"itq": "ITQ", "lsh": "LSH"}).tested("itq")
    text, tex = shown_table.to_markdown(), shown_table.to_latex()
    assert shown(*cells)["lsh"] == "**0.5050 ± 0.0071**"
    assert markdown_rows(text.partition("## Uncertainty")[0])["LSH"] == ["**0.5050 ± 0.0071**‡"]
    assert r"LSH & \textbf{0.505}{\tiny$\pm$.007}$^{\ddagger}$ \\" in tex
    assert "not shown to differ from ITQ (p" in text
    assert "p against ITQ" in markdown_rows(text.partition("## Uncertainty")[2])["method"]


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (
            {"iqt": "ITQ"},
            r"^there is no 'iqt' in these tables\. Did you mean 'itq'\? Names: AP, agh, .*digits:pixels, itq",
        ),
        ({"NDCG": "N"}, "^there is no 'NDCG' in these tables"),
        ({"itq": "lsh"}, "^'itq' and 'lsh' would both be shown as 'lsh'"),
        ({"itq": "a  b"}, "^rename: the text for 'itq' must be words with single blanks, got 'a  b'"),
        ({"itq": 5}, "^rename: the text for 'itq' must be in quotes, got 5"),
    ],
)
def test_names_of_what_is_not_there_and_equal_names_are_refused(own, texts, words):
    with pytest.raises(HashbenchError, match=words):
        named(own, texts)


def test_a_grid_serves_several_tables_and_names_only_what_has_results(own, tmp_path):
    grid = tmp_path / "grid.toml"
    grid.write_text('bits = 16\n[rename]\nitq = "ITQ"\n"agh n_anchors=70" = "AGH"\nNDCG = "nDCG"\nlsh = "LSH"')
    rows = markdown_rows(named(own, {"lsh": "Random"}, grid, methods=["itq", "lsh"]).to_markdown())
    assert {"ITQ n_iter=7", "Random"} <= {*rows}
    grid.write_text('[rename]\n"agh n_anchor=70" = "AGH"')
    with pytest.raises(
        HashbenchError, match=r"no 'agh n_anchor=70' in the results, .*grid.toml renames it\. Did you mean"
    ):
        named(own, file=grid)


def test_command_prints_names_and_digits_in_all_files_but_those_of_ranges(own, hashbench, tmp_path_factory):
    output = tmp_path_factory.mktemp("output")
    command = ["tables", "--results", own, "--dataset", "digits", "--rename", "itq", "ITQ (ours)", "--digits", 2]
    done = hashbench(*command)
    assert "| ITQ (ours) " in done.stdout
    assert "Only printed" in done.stderr
    assert not (own / "tables").exists()
    assert hashbench(*command, "--output", output).stdout == done.stdout
    assert "ITQ (ours) & \\textbf{0.60} " in (output / "selection.tex").read_text()
    assert [row["16"] for row in parsed((output / "selection.csv").read_text())] == ["0.50", "0.60", "0.10"]
    ranges = parsed((output / "selection-tie-range.csv").read_text())
    assert [row["value"] for row in ranges] == ["0.500000", "0.600000", "0.100000"]

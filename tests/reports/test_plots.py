import json
import re
import shutil
import sys
from collections import defaultdict
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean, stdev

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from helpers import diff_rows
from helpers.paths import ROOT, benchmark
from helpers.result_files import rows_in
from helpers.thoroughness import ALL
from matplotlib.text import Text
from scipy import stats

from hashbench.cards import method_card
from hashbench.errors import HashbenchError
from hashbench.reports import plots
from hashbench.reports.plots.figure_selection import FigureBlock, choose_blocks
from hashbench.reports.plots.result_figures import draw_thresholds, panels_of
from hashbench.reports.plots.style import FigureLayout, choose_looks, one_look
from hashbench.reports.row_origins import read_results_with_origins
from hashbench.reports.selection import Selection
from hashbench.scoring.problem import Problem
from hashbench.store import result_rows, results

pytestmark = pytest.mark.slow  # make test-figures
BASELINES = {"constant", "random", "oracle-label"}
COMMITTED = sorted(path.name for path in (ROOT / "results" / "figures").glob("*.svg"))


def committed(dataset, metric="AP"):
    """Mean value, low and high over the seeds of the committed results, by method with its variant and code length."""
    cells = defaultdict(list)
    for row in rows_in(ROOT / "results" / dataset):
        if row["metric"] == metric:
            params = json.loads(row["params"])
            defaults = method_card(row["method"]).params
            variant = [f"{key}={value}" for key, value in sorted(params.items()) if value != defaults[key]]
            values = [float(row[key]) for key in ("value", "low", "high")]
            cells[" ".join([row["method"], *variant]), int(row["n_bits"])].append(values)
    return {key: np.mean(seeds, axis=0) for key, seeds in cells.items()}


def draw(name, folder, layout=None, metric="AP", **selection):
    """Draw a figure of one dataset."""
    (drawing,) = plots.draw_figures(folder, [name], Selection(metrics=[metric], **selection), layout)
    return drawing


@pytest.fixture(scope="module")
def figure_of(tmp_path_factory):
    """Draw a figure of the committed results of one dataset, once."""

    @cache
    def figure_of(name, dataset="digits", metric="AP", **options):
        folder = tmp_path_factory.mktemp(dataset)
        shutil.copytree(ROOT / "results" / dataset, folder / dataset)
        return draw(name, folder, metric=metric, **options).figure

    return figure_of


@pytest.fixture(scope="module")
def itq_rows():
    return [row for row in results.read_rows(ROOT / "results", "digits") if row.method == "itq"]


@pytest.fixture(scope="module")
def digits_alone(tmp_path_factory):
    """A folder with only the committed results of six methods on digits, which is quicker to read."""
    folder = tmp_path_factory.mktemp("digits-alone")
    methods = {"itq", "lsh", "sph", "random", "oracle-label", "talr-ap"}
    for path in (ROOT / "results").glob("digits*/*"):
        if path.name.partition(".")[0] in methods:
            (folder / path.parent.name).mkdir(exist_ok=True)
            shutil.copyfile(path, folder / path.parent.name / path.name)
    return folder


def lines(figure):
    """Points of every line, by label: pairs of x and y."""
    return {
        line.get_label(): np.column_stack(line.get_data())
        for panel in figure.axes
        for line in panel.get_lines()
        if not line.get_label().startswith("_")
    }


def words_of(figure):
    """The heading and the foot of a figure."""
    texts = [*(legend.get_title() for legend in figure.legends), *figure.texts, figure._supxlabel]
    return " ".join(" ".join(text.get_text() for text in dict.fromkeys(texts) if text).split())


def ranges(figure):
    """Vertices of every range bar, by label."""
    return {
        drawn.get_label(): [path.vertices for path in drawn.get_paths()]
        for panel in figure.axes
        for drawn in panel.collections
        if not drawn.get_label().startswith("_")
    }


# ---------------------------------------------------------------- one scale for all panels


@pytest.mark.parametrize("name", ["ap-bits", "tie-ranges"])
@pytest.mark.parametrize(("dataset", "kind"), [("digits", "logit"), ("corel5k", "linear")])
def test_panels_have_one_scale_and_show_every_mean(figure_of, name, dataset, kind):
    figure = figure_of(name, dataset)
    (limits,) = {panel.get_ylim() for panel in figure.axes}
    assert {panel.get_yscale() for panel in figure.axes} == {kind}
    means = np.concatenate([points[:, 1] for points in lines(figure).values()])
    assert limits[0] < means.min() < means.max() < limits[1]
    assert "and one scale." in words_of(figure)
    assert ("logit scale" in figure.axes[0].get_ylabel()) == (kind == "logit")


def test_few_long_bars_do_not_squash_the_others_and_end_in_a_triangle(figure_of):
    figure = figure_of("tie-ranges", "corel5k")
    low, high = figure.axes[0].get_ylim()
    ends = np.array([bar[:, 1] for bars in ranges(figure).values() for bar in bars])
    beyond = {">": (ends[:, 1] > high).sum(), "<": (ends[:, 0] < low).sum()}
    drawn = [line.get_marker() for panel in figure.axes for line in panel.get_lines() if line.get_label() == "_"]
    assert beyond[">"] > 0
    assert {">": drawn.count("^"), "<": drawn.count("v")} == beyond
    assert f"All bars lie between {ends.min():.3f} and {ends.max():.3f}." in words_of(figure)


# ---------------------------------------------------------------- classes that training does not see


@pytest.fixture(scope="module")
def folds(tmp_path_factory):
    """A folder with made-up results of 18 methods, each on digits and three folds with unseen classes."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("folds")
    methods = "lsh itq sdh csq orthohash greedyhash dpn mdsh hyp2 dfh dch adsh hashnet dpsh dtsh mihash ksh random"
    rows = []
    for method in methods.split():
        for dataset in ("digits", *(f"digits-unseen3-fold{fold}" for fold in range(3))):
            if (method, dataset) == ("sdh", "digits"):  # not run with all classes
                continue
            value = rng.uniform(0.2, 0.4) if method in ("lsh", "itq", "random") else rng.uniform(0.5, 0.8)
            texts = [f"{number:.6f}" for number in (value, 0.001, value - 0.02, value + 0.03)]
            rows.append(
                result_rows.Row(dataset, "pixels", method, "{}", 32, 0, "AP", *texts, 200, 0, "89abcdef" + dataset, 1)
            )
    results.merge_rows(folder, rows)
    return folder


def test_unseen_classes_stand_beside_seen_ones_a_row_per_method(folds):
    drawing = draw("unseen", folds, FigureLayout(3.3))
    assert drawing.stem == "unseen-digits-unseen3-pixels"
    rows = rows_in(folds / "digits") + rows_in(folds / "digits-unseen")
    unseen, seen = drawing.figure.axes
    assert [axes.get_xlabel() for axes in (unseen, seen)] == ["AP, unseen", "AP, all seen"]
    expected = {
        method: (
            mean(float(row["value"]) for row in own if row["dataset"] != "digits"),
            *([float(row["value"]) for row in own if row["dataset"] == "digits"] or [np.nan]),
        )
        for method in {row["method"] for row in rows} - {"random"}  # a baseline
        for own in [[row for row in rows if row["method"] == method]]
    }
    names = [text.get_text() for text in unseen.get_yticklabels()]
    assert names == sorted(expected, key=lambda method: -expected[method][0])
    for axes, scope in ((unseen, 0), (seen, 1)):
        for place, name in enumerate(names):
            (mark,) = (line for line in axes.get_lines() if line.get_label() == name)
            assert mark.get_xydata()[0] == pytest.approx([expected[name][scope], place], abs=1e-6, nan_ok=True)
        (best,) = (line.get_xdata()[0] for line in axes.get_lines() if line.get_linestyle() not in ("None", "-"))
        assert best == pytest.approx(max(expected[name][scope] for name in ("lsh", "itq")), abs=1e-6)
    assert "unsupervised" in [text.get_text() for text in drawing.figure.legends[0].get_texts()]
    assert_all_can_be_read(drawing.figure)


def test_queries_of_unseen_classes_among_all_have_their_own_panel_and_folds_a_thick_bar(folds, tmp_path):
    rows = [*results.read_folder(folds).values()]
    among_all = [
        row._replace(dataset=f"{row.dataset}-database-all", value="0.300000", low="0.200000", high="0.400000")
        for row in rows
        if "unseen" in row.dataset
    ]
    results.merge_rows(tmp_path, [*rows, *among_all])
    drawing = draw("unseen", tmp_path, FigureLayout(6.9))
    assert [panel.get_xlabel() for panel in drawing.figure.axes] == ["AP, unseen", "AP, among all", "AP, all seen"]
    left, middle, _ = drawing.figure.axes
    assert [line.get_xdata()[0] for line in middle.get_lines() if line.get_label() == "csq"] == pytest.approx([0.3])
    thick = [bar for bar in left.collections if bar.get_linewidth()[0] == 4]
    values = [float(row.value) for row in rows if row.method == "csq" and "unseen" in row.dataset]
    spans = [np.ptp(bar.get_segments()[0][:, 0]) for bar in thick]
    assert any(span == pytest.approx(2 * stdev(values), abs=1e-5) for span in spans)
    assert_all_can_be_read(drawing.figure)


def test_results_without_folds_have_no_figure_of_unseen_classes(digits_alone):
    with pytest.raises(HashbenchError, match="no results in AP with unseen classes"):
        draw("unseen", digits_alone)
    stems = [drawing.stem for drawing in plots.draw_figures(digits_alone, (), Selection(datasets=["digits"]))]
    assert "tie-ranges-digits-pixels" in stems


# ---------------------------------------------------------------- figures of the results alone


@pytest.mark.parametrize(
    ("name", "dataset", "metric"), [("tie-ranges", "digits", "AP"), ("ap-bits", "digits-pairs", "NDCG@100")]
)
def test_points_by_length_and_their_tie_ranges_are_those_of_the_csv(figure_of, name, dataset, metric):
    cells = {key: cell for key, cell in committed(dataset, metric).items() if key[0] not in BASELINES}
    figure, drawn = figure_of(name, dataset, metric, variants=True), {}
    bars, lengths = ranges(figure), sorted({n_bits for _, n_bits in cells})
    for method, points in lines(figure).items():
        for (x, value), bar in zip(points, bars[method], strict=True):
            ends = bar[:, 1] if name == "tie-ranges" else cells[method, lengths[round(x)]][1:]
            drawn[method, lengths[round(x)]] = [value, *ends]
    assert drawn.keys() == cells.keys()
    for key, values in cells.items():
        assert drawn[key] == pytest.approx(values)


def test_the_help_lists_every_figure(hashbench):
    named = re.findall(
        r"^  ([a-z-]+)  +[a-z]", hashbench("plot", "--help").stdout.partition("Options")[0], re.MULTILINE
    )
    assert named == list(plots.FIGURES)


def test_rows_of_a_ranking_are_those_of_the_csv_the_best_first(figure_of):
    cells = {name: cell for (name, n_bits), cell in committed("digits").items() if n_bits == 32}
    figure = figure_of("ranking", variants=True, n_bits=(32,))
    (axes,) = figure.axes
    names = [text.get_text().replace("\n", " ") for text in axes.get_yticklabels()]
    assert names == sorted(cells.keys() - BASELINES, key=lambda name: -cells[name][0])
    marks = {line.get_label(): line.get_xydata()[0] for line in axes.get_lines()}
    for place, name in enumerate(names):
        (thin,) = (bar.get_segments()[0] for bar in axes.collections if bar.get_label() == name)
        assert [*marks[name], *thin[:, 0]] == pytest.approx([cells[name][0], place, *cells[name][1:]])
    assert [text.get_text().strip(" ★°§") for text in axes.texts] == [f"{cells[name][0]:.4f}" for name in names]
    assert_all_can_be_read(figure)


def test_bars_are_intervals_over_seeds_where_only_rows_are_at_hand_and_a_single_seed_has_none(tmp_path):
    (tmp_path / "digits").mkdir()
    for name in ("itq", "lsh", "pcah"):  # too few to borrow variances
        for path in (ROOT / "results" / "digits").glob(f"{name}.*"):
            shutil.copy(path, tmp_path / "digits")
    figure = draw("ap-bits", tmp_path, datasets=["digits"]).figure
    values = defaultdict(list)
    for row in rows_in(ROOT / "results" / "digits"):
        if row["metric"] == "AP" and row["method"] == "itq":
            values[int(row["n_bits"])].append(float(row["value"]))
    expected = [tuple(stats.ttest_1samp(values[n_bits], 0).confidence_interval()) for n_bits in sorted(values)]
    assert [tuple(bar[:, 1]) for bar in ranges(figure)["itq"]] == [pytest.approx(bar) for bar in expected]
    assert all(np.isnan(bar[:, 1]).all() for bar in ranges(figure)["pcah"])
    assert "95 % interval of the mean, over seeds, on these queries" in words_of(figure)
    assert "No bar: one seed" in words_of(figure)


def test_methods_that_may_be_the_best_are_marked(ranked):
    figure = ranked({"a": [0.7, 0.72, 0.71], "b": [0.70, 0.72, 0.705], "c": [0.2, 0.21, 0.22]})
    assert [text.get_text().endswith("★") for text in figure.axes[0].texts] == [True, True, False]
    thick = [bar.get_segments()[0][:, 0] for bar in figure.axes[0].collections if bar.get_linewidth()[0] == 4]
    assert list(thick[0]) == pytest.approx(stats.ttest_1samp([0.7, 0.72, 0.71], 0).confidence_interval())


@pytest.fixture
def ranked(itq_rows, tmp_path):
    """Draw the ranking of methods with these values at 32 bits, one per seed, each with a range of ties."""

    def ranked(values, metric="AP", layout=None):
        row = itq_rows[0]._replace(n_bits=32, metric=metric)
        rows = [
            row._replace(method=name, params="{}", seed=seed, **dict(zip(("value", "low", "high"), texts, strict=True)))
            for name, seeds in values.items()
            for seed, value in enumerate(seeds)
            for texts in [[f"{number:.6f}" for number in (value, value - 0.01, min(value + 0.01, 1))]]
        ]
        results.merge_rows(tmp_path, rows)
        figure = draw("ranking", tmp_path, layout, metric=metric).figure
        assert_all_can_be_read(figure)
        return figure

    return ranked


CROWD = {"a": [0.997, 0.999, 1.0], "b": [0.99, 0.985, 0.98], "c": [0.97], "d": [0.96], "e": [0.6], "f": [0.3]}


def test_the_crowded_end_of_a_ranking_is_opened_and_its_axis_says_so(ranked):
    (axes,) = ranked(CROWD, layout=FigureLayout(3.3)).axes
    assert axes.get_xlabel() == "AP (0 to 1, logit scale)"
    low, high = axes.get_xlim()
    assert 0 < low < 0.3
    assert 0.999 < high < 1
    ticks = [tick.get_text() for tick in axes.get_xticklabels()]
    assert {"0.5", "0.9", "0.99"} <= {*ticks}
    dots = [line.get_xydata() for line in axes.get_lines() if line.get_label().startswith("_")]
    assert dots[0][:, 0].tolist() == [0.997, 0.999, high]  # 1 is infinitely far
    assert all(0 < y - place < 0.6 for place, of_row in enumerate(dots) for y in of_row[:, 1])


# ---------------------------------------------------------------- which lines stand together


@pytest.fixture(scope="module")
def block_of():
    """Make a block with this many lines per group, each with one cell, the first the best."""

    def block_of(**n_lines):
        lines = [(group.replace("_", "-"), n) for group, number in n_lines.items() for n in range(number)]
        cells = pd.DataFrame(lines, columns=["group", "n"])
        cells = cells.assign(label=cells["group"] + cells["n"].astype(str), value=1 - cells["n"] / 100)
        cells["method"] = cells["label"]
        looks = choose_looks(cells)
        return FigureBlock(cells, cells, "", "", "", "AP", looks, ())

    return block_of


@pytest.mark.parametrize(("n_lines", "sizes"), [(1, [1]), (8, [8]), (9, [5, 4]), (19, [7, 6, 6])])
def test_panels_have_at_most_eight_lines_the_best_first(block_of, n_lines, sizes):
    block = block_of(list_based=n_lines)
    panels = panels_of(block)
    assert [len(panel.labels) for panel in panels] == sizes
    assert [label for panel in panels for label in panel.labels] == [f"list-based{n}" for n in range(n_lines)]
    assert [panel.title for panel in panels] == {1: [""], 2: ["1 to 5 of 9", "6 to 9 of 9"]}.get(
        len(sizes), ["1 to 7 of 19", "8 to 13 of 19", "14 to 19 of 19"]
    )


def test_settings_that_all_lines_share_are_named_once(itq_rows, tmp_path):
    of_ap = [row for row in itq_rows if (row.metric, row.seed) == ("AP", 0)]
    params = {"itq": '{"a": 1, "n_iter": 7}', "mine": '{"a": 1, "n_iter": 7}', "other": '{"a": 1, "c": 2}'}
    results.merge_rows(tmp_path, [row._replace(method=name, params=params[name]) for name in params for row in of_ap])
    assert "All: a=1. itq, mine: n_iter=7. other: c=2." in words_of(draw("ranking", tmp_path).figure)


def test_names_are_those_of_methods_and_the_caption_has_their_parameters(itq_rows, tmp_path):
    results.merge_rows(tmp_path, [row._replace(params='{"n_iter": 7}') for row in itq_rows])
    drawing = draw("ap-bits", tmp_path, FigureLayout(3.3, has_title=False))
    assert lines(drawing.figure).keys() == {"itq n_iter=7"}
    assert [text.get_text() for text in drawing.figure.axes[0].get_legend().get_texts()] == ["itq"]
    assert drawing.figure.texts == []
    assert drawing.caption.startswith("digits (pixels): AP by code length, 200 queries.")
    assert drawing.caption.endswith("itq: n_iter=7.")


def test_no_figure_is_drawn_of_a_single_point(digits_alone):
    with pytest.raises(HashbenchError, match=r"nothing to compare on digits \(pixels\): a single"):
        draw("tie-ranges", digits_alone, datasets=["digits"], n_bits=[16], methods=["itq"])


# ---------------------------------------------------------------- what can be read


def assert_all_can_be_read(figure):
    with one_look():
        plots.figure_bytes(figure, "svg")
        figure.draw_without_rendering()
    shown = [text for legend in figure.legends for text in (legend.get_title(), *legend.get_texts())]
    shown += [figure._supxlabel] if figure._supxlabel else []
    for panel in figure.axes:
        legend = panel.get_legend()
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())
            ticks = [*axis.get_major_ticks(), *axis.get_minor_ticks()]
            shown += [tick.label1 for tick in ticks if low <= tick.get_loc() <= high]
        shown += [*panel.texts, panel.xaxis.label, panel.yaxis.label, panel._left_title]
        shown += legend.get_texts() if legend else []
    shown = [text for text in shown if text.get_text() and text.get_visible()]
    boxes = np.array([Text.get_window_extent(text).extents for text in shown])
    low, high = boxes[:, :2], boxes[:, 2:]
    overlaps = ((low[:, None] <= high) & (low <= high[:, None])).all(axis=-1)
    pairs = np.argwhere(np.triu(overlaps, k=1))
    assert [[shown[n].get_text() for n in pair] for pair in pairs] == []
    assert (low >= figure.bbox.min).all()
    assert (high <= figure.bbox.max).all()


def test_each_line_has_its_own_look_whatever_is_chosen(digits_alone):
    frame = pd.DataFrame({"label": [f"m{n}" for n in range(40)], "group": ["unsupervised"] * 20 + ["pair-based"] * 20})
    looks = choose_looks(frame.assign(method=frame["label"]))
    assert len({(look.colour, look.marker, look.dash) for look in looks.values()}) == 40
    assert len({look.colour for look in list(looks.values())[:8]}) == 8
    drawn = []
    for choice in ({"methods": ["sph"]}, {}):
        figure = draw("ap-bits", digits_alone, datasets=["digits"], **choice).figure
        (line,) = (line for line in figure.axes[0].get_lines() if line.get_label() == "sph")
        drawn.append((line.get_color(), line.get_marker(), line.get_linestyle()))
    assert drawn[0] == drawn[1]


def test_methods_of_one_panel_have_different_colours_and_variants_that_of_their_method(block_of):
    block = block_of(unsupervised=1, pair_based=8)
    cells = block.cells[block.cells["label"].isin(["unsupervised0", "pair-based7"])]
    assert len({block.looks[label].colour for label in cells["label"]}) == 1
    cells = pd.concat([cells, cells.assign(label=cells["label"] + " x=1")])
    (panel,) = panels_of(replace(block, cells=cells, looks=choose_looks(cells)))
    colours = {label: panel.looks[label].colour for label in panel.labels}
    assert all(colours[label] == colours[label.removesuffix(" x=1")] for label in colours)
    assert len(set(colours.values())) == 2
    assert [panel.looks[label].is_variant for label in panel.labels] == [False, False, True, True]
    assert len({(look.colour, str(look.dash)) for look in map(panel.looks.get, panel.labels)}) == 4


def test_features_that_read_alike_have_different_files(itq_rows, tmp_path):
    places = [("digits", "a b"), ("digits", "a-b"), ("digits", "c"), ("digits-a", "b")]
    rows = [row._replace(dataset=dataset, features=features) for dataset, features in places for row in itq_rows]
    results.merge_rows(tmp_path, rows)
    all_results = results.read_results(tmp_path)
    blocks = choose_blocks(all_results, Selection())
    stems = {(block.dataset, block.features): "-".join(block.stem) for block in blocks}
    assert len({*stems.values()}) == len(stems) == 4
    assert stems["digits", "c"] == "digits-c"
    (block,) = choose_blocks(all_results, Selection(features=["a-b"]))
    assert "-".join(block.stem) == stems["digits", "a-b"]  # whatever else is drawn


@pytest.fixture
def undefined(hashbench, tiny_file, digits_alone, tmp_path):
    """Results of a dataset in which each item has its own class, beside those of digits."""
    folder = tmp_path / "results"
    path = tiny_file(name="loners", labels=np.arange(40))
    grid = ["--method", "lsh", "--method", "random", "--bits", 8, "--bits", 32]
    result = hashbench("run", *grid, "--dataset", path, "--results", folder)
    assert (result.exit_code, " - " in result.stdout) == (0, True)
    shutil.copytree(digits_alone / "digits", folder / "digits")
    return folder


def test_dataset_without_any_value_is_reported_and_the_others_are_drawn(hashbench, undefined):
    result = hashbench("plot", "--results", undefined, "--format", "svg")
    assert result.exit_code == 0
    assert [Path(line).stem for line in result.stdout.splitlines()] == [
        "ranking-digits-pixels",
        "tie-ranges-digits-pixels",
        "ap-bits-digits-pixels",
    ]
    notes = [line for line in result.stderr.splitlines() if "loners" in line]
    assert [line.partition("-loners")[0] for line in notes] == ["ranking", "tie-ranges", "ap-bits"]
    assert all("loners (features): no query has a value of AP" in line for line in notes)
    only = hashbench("plot", "ap-bits", "--dataset", "loners", "--results", undefined)
    assert (only.exit_code, only.stderr.count("\n")) == (1, 1)
    assert "loners (features): no query has a value of AP" in only.stderr
    table = hashbench("tables", "--results", undefined).stdout
    assert "loners" in table
    assert "**nan" not in table


@pytest.mark.parametrize(("width", "n_lines"), [(2.5, 9), (30, 2)])
def test_long_names_of_lines_without_intervals_can_be_read(itq_rows, tmp_path, width, n_lines):
    of_ap = [row for row in itq_rows if (row.metric, row.seed) == ("AP", 0)]
    of_ap = [row._replace(value="1.000000", tie_sd="0", low="1.000000", high="1.000000") for row in of_ap]
    for n in range(n_lines):
        params = {"codes": "own", "label": f"own codes after {n} epochs of augmentation"}
        results.merge_rows(tmp_path, [row._replace(method=f"own{n}", params=json.dumps(params)) for row in of_ap])
    for name in ("ranking", "tie-ranges", "ap-bits"):
        assert_all_can_be_read(draw(name, tmp_path, FigureLayout(width)).figure)


def test_names_with_a_dollar_are_drawn_as_they_are(itq_rows, tmp_path):
    results.merge_rows(tmp_path, [row._replace(features="a$b$c{ $^_$") for row in itq_rows])
    (path,) = plots.write_figure(draw("ap-bits", tmp_path), tmp_path, ["svg"])
    assert path.exists()


# ---------------------------------------------------------------- files


@pytest.fixture
def read_once(monkeypatch, committed_results):
    """Read the committed results once for all tests that draw them."""
    monkeypatch.setattr(plots, "read_results_with_origins", lambda folder: committed_results)


@pytest.fixture(scope="module")
def committed_results():
    return read_results_with_origins(ROOT / "results")


def assert_is_committed(drawing, path, tmp_path):
    (written,) = plots.write_figure(drawing, tmp_path, ["svg"])
    if f"matplotlib=={mpl.__version__}\n" in (ROOT / "constraints.txt").read_text():
        assert written.read_bytes() == path.read_bytes(), path.name
    assert_all_can_be_read(drawing.figure)


def test_committed_figures_are_those_of_the_committed_results_and_can_be_read(tmp_path, read_once):
    datasets = [] if ALL else ["digits"]  # which has the most methods
    names = [
        "ranking",
        "tie-ranges",
        "ap-bits",
        *["unseen"] * any(ALL and name.startswith("unseen-") for name in COMMITTED),
    ]
    drawn = plots.draw_figures(ROOT / "results", names, Selection(datasets=datasets))
    drawings = {f"{drawing.stem}.svg": drawing for drawing in drawn if drawing.figure is not None}
    assert sorted(drawings) == [name for name in COMMITTED if ALL or "-digits-pixels" in name]
    assert "ap-bits-digits-pixels.svg" in drawings
    for name, drawing in drawings.items():
        path = ROOT / "results" / "figures" / name
        assert path.stat().st_size < 300_000
        assert_is_committed(drawing, path, tmp_path)


def test_figures_of_the_documents_are_made_by_make_tables_and_can_be_read(tmp_path, read_once):
    layout = FigureLayout(3.3, has_title=False)
    drawings = [
        draw(name, ROOT / "results", layout, datasets=[dataset], methods=methods.split())
        for name, dataset, methods in (
            ("ap-bits", "cifar10-s1:squeezenet", "talr-ap hashnet dtsh dpsh sdh ksh mihash"),
            ("tie-ranges", "digits", "itq lsh sph sh sklsh pcah"),
        )
    ]
    others = {"binary-quantisation", "three-kinds-of-ties", "why-numbers-differ"}  # made by scripts of benchmarks/
    paths = sorted(path for path in (ROOT / "docs" / "figures").iterdir() if path.stem not in others)
    assert [path.stem for path in paths] == [drawing.stem for drawing in drawings]
    for path, drawing in zip(paths, drawings, strict=True):
        assert f"figures/{path.name}" in (ROOT / "docs" / "figures.md").read_text()
        assert drawing.figure.get_figwidth() == 3.3
        assert_is_committed(drawing, path, tmp_path)


@pytest.mark.parametrize(
    ("script", "stem"),
    [
        ("binary_quantisation", "binary-quantisation"),
        ("script_orders", "three-kinds-of-ties"),
        ("why_numbers_differ", "why-numbers-differ"),
    ],
)
def test_figures_of_scripts_are_those_of_their_committed_rows(script, stem, tmp_path):
    module = benchmark(script)
    rows = module.read()["digits"] if script == "script_orders" else module.read_rows(module.ROWS)
    module.draw(rows, tmp_path / "drawn.svg")
    assert ROOT / "docs" / "figures" / f"{stem}.svg" == module.FIGURE
    if f"matplotlib=={mpl.__version__}\n" in (ROOT / "constraints.txt").read_text():
        assert (tmp_path / "drawn.svg").read_bytes() == module.FIGURE.read_bytes(), "make pictures"


def test_same_figure_gives_the_same_bytes_whatever_the_users_settings(digits_alone, tmp_path):
    choice = {"datasets": ["digits"], "methods": ["itq", "lsh"]}
    first = plots.write_figure(draw("ap-bits", digits_alone, **choice), tmp_path / "first", plots.FORMATS)
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": None, "svg.fonttype": "none", "axes.grid": False}):
        again = plots.write_figure(draw("ap-bits", digits_alone, **choice), tmp_path / "again", plots.FORMATS)
        assert mpl.rcParams["font.size"] == 30
    assert [path.suffix for path in first] == [".svg", ".png", ".pdf"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    text = first[0].read_text()
    assert "<dc:date>" not in text
    assert "<text" not in text
    pdf = first[2].read_bytes()
    assert b"/CreationDate" not in pdf
    assert b"/Subtype /TrueType" in pdf or b"/Subtype /CIDFontType2" in pdf
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    assert b"/MediaBox [ 0 0 496.8 " in pdf


def test_drawing_leaves_pyplot_alone(digits_alone, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it is an error
    plots.write_figure(draw("tie-ranges", digits_alone, datasets=["digits"], methods=["itq"]), tmp_path)


@pytest.mark.parametrize(
    ("lengths", "shown"), [({"itq": (16, 32), "lsh": (16,)}, 16), ({"itq": (8, 24), "lsh": (8, 24)}, 24)]
)
def test_a_ranking_has_the_length_of_most_methods_of_several_the_nearest_to_32_bits(tmp_path, lengths, shown):
    rows = [diff_rows.row(method=name, n_bits=n_bits) for name in lengths for n_bits in lengths[name]]
    diff_rows.write(tmp_path / "digits.csv", *rows)
    (block,) = choose_blocks(results.read_results(tmp_path), Selection(), 32)
    assert [*block.cells["n_bits"]] == [shown] * 2


@pytest.mark.parametrize(("forms", "endings"), [((), {".svg", ".png"}), (("png", "pdf"), {".png", ".pdf"})])
def test_command_writes_the_formats_asked_for(hashbench, digits_alone, tmp_path, forms, endings):
    command = ["plot", "ap-bits", "--results", digits_alone, "--dataset", "digits", "--metric", "AP@1000"]
    options = [word for form in forms for word in ("--format", form)]
    result = hashbench(*command, "--method", "itq", *options, "--output", tmp_path / "new")
    assert result.exit_code == 0
    written = [Path(line) for line in result.stdout.splitlines()]
    assert len(written) == len(endings)
    assert {path.name for path in written} == {f"ap-bits-digits-pixels-AP@1000{ending}" for ending in endings}
    assert all(path.stat().st_size > 1000 for path in written)


# ---------------------------------------------------------------- contents and versions


def test_contents_and_versions_are_told_apart(hashbench, digits_data, tmp_path):
    folder = tmp_path / "before"
    grid = ["--method", "itq", "--method", "lsh", "--bits", 12, "--seed", 0, "--seed", 1, "--metric", "AP"]
    assert hashbench("run", *grid, "--results", folder).exit_code == 0
    rows = results.read_rows(folder, "digits")
    changed = [row._replace(dataset_fingerprint="other", seed=5) for row in rows]
    rows = [row for row in rows if row.method == "itq"]
    newer = [row._replace(method_version=99, seed=7, value="0.999000", high="1.000000") for row in rows]
    results.merge_rows(tmp_path, [*rows, *changed, *newer])
    drawings = plots.draw_figures(tmp_path, ["tie-ranges"], Selection(variants=True))
    figures = {drawing.stem: drawing.figure for drawing in drawings}
    assert len(figures) == 2
    assert "digits (pixels), data other: " in figures.pop("tie-ranges-digits-pixels-other").get_label()
    (figure,) = figures.values()
    points = lines(figure)
    assert len(points) == 2
    assert points["itq (version 99)"][0, 1] == 0.999


# ---------------------------------------------------------------- figures of thresholds


@pytest.mark.parametrize("codes", ["near", "alike", "all relevant"])
def test_radii_that_were_asked_for_are_marked_where_something_changes(codes):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 3) * (codes != "all relevant")
    bits = (rng.random((20, 64)) > 0.5)[np.arange(60) // 3] ^ (rng.random((60, 64)) < 0.05 * (codes == "near"))
    found = Problem.of_codes(bits, bits, (labels, labels), exclude_self=True).thresholds()
    asked = {"best F1": found.best_f1, "false positive rate 0.001": found.at_fpr(0.001)}
    figure = draw_thresholds(found, "codes", asked, [0.001])
    assert_all_can_be_read(figure)
    by_radius, by_rate = figure.axes
    radii = {f"{name}:\nradius {match.radius}": match.radius for name, match in asked.items() if match}
    assert {line.get_label(): line.get_xdata()[0] for line in by_radius.get_lines()[2:]} == radii
    if codes == "near":
        assert by_radius.get_xlim()[1] < 40  # beyond it all is flat
        assert by_rate.get_lines()[-1].get_ydata()[0] == 0.001
        (band,) = by_rate.collections
        assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(found.at(int(by_rate.get_xlim()[1])).fpr_high)
    else:
        assert [text.get_text() for text in by_rate.texts] == ["no pair is irrelevant"] * (codes == "all relevant")

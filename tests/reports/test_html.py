"""The page of `hashbench report` without a browser: what data it holds, and that they are those of the CSV."""

import base64
import csv
import io
import json
import re
import shutil
from math import nan
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from helpers.diff_rows import row, write
from helpers.paths import ROOT
from helpers.result_files import rows_in
from PIL import Image

import hashbench as package
from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import all_lines, average_over_seeds
from hashbench.reports.html import cached, thumbnails, write_report
from hashbench.reports.html.descriptions import dataset_cards, method_cards
from hashbench.reports.plots.figure_selection import FigureSelection, choose_blocks
from hashbench.store import hdf5
from hashbench.store.files import data_dir
from hashbench.store.results import read_results

pytestmark = pytest.mark.slow  # make test-figures

NASTY = "</script><script>alert(1)</script> <!-- \"quoted\" & 'so' Ü中文"


def data_of(page):
    """Read the data that a page holds as a browser does: up to the first end of a script element."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script', page.read_text(), re.DOTALL)
    return json.loads(text)


def column(coded):
    return [coded["of"][place] for place in coded["at"]]


@pytest.fixture(scope="module")
def small(tmp_path_factory, prepared):
    """Results of two methods on digits, two seeds each, whose codes and scores are kept; and their data folder."""
    folder, data = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(data))
        (data / "datasets").mkdir()
        (data / "datasets" / "digits.h5").write_bytes((prepared / "datasets" / "digits.h5").read_bytes())
        package.run(["itq", "lsh"], [8, 12], seeds=[0, 1], metrics=["AP", "P@100"], results=folder)
    return folder, data


@pytest.fixture
def cells_of_small(small):
    results = read_results(small[0])
    return average_over_seeds(results, all_lines(results))


@pytest.fixture
def kept(small, monkeypatch):
    """The results of `small`, with their codes at hand."""
    monkeypatch.setenv("HASHBENCH_DATA", str(small[1]))
    return small[0]


# ---------------------------------------------------------------- results


def test_rows_and_cells_are_those_of_the_csv(small, tmp_path):
    results = read_results(small[0])
    content = data_of(write_report(small[0], tmp_path / "page.html"))
    cells, rows = content["cells"], content["rows"]
    found, start = {}, 0
    for place, n_rows in enumerate(cells["n_rows"]):
        line = content["lines"][cells["line"][place]]
        metric = content["metrics"][cells["metric"][place]]["name"]
        values = [rows["value"][start + number] / 1e6 for number in range(n_rows)]
        assert cells["value"][place] == pytest.approx(1e6 * np.mean(values), abs=0.51)
        assert cells["spread"][place] == pytest.approx(1e6 * np.std(values, ddof=1), abs=0.51)
        for number, value in enumerate(values):
            key = (line["method"], cells["bits"][place], rows["seed"][start + number], metric)
            found[key] = (value, rows["low"][start + number] / 1e6, rows["high"][start + number] / 1e6)
        start += n_rows
    expected = results.set_index(["method", "n_bits", "seed", "metric"])[["value", "low", "high"]]
    assert found == {key: tuple(values) for key, values in zip(expected.index, expected.to_numpy(), strict=True)}


def test_the_same_results_give_the_same_bytes_in_whatever_files_they_stand(tmp_path):
    one, other = row(0.5), row(0.6, method="itq", dataset="more")
    write(tmp_path / "a" / "both.csv", one, other)
    write(tmp_path / "b" / "digits.csv", one)
    write(tmp_path / "b" / "more.csv", other)
    pages = [write_report(tmp_path / name, tmp_path / f"{name}.html") for name in "ab"]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert str(tmp_path) not in pages[0].read_text()


def test_a_value_of_a_paper_stands_beside_its_cell_with_a_verdict(tmp_path):
    its = {"dataset": "cifar10-s1", "features": "vgg-f", "method": "bre", "n_bits": 12}
    write(tmp_path / "cifar10-s1.csv", row(0.4, 0.36, 0.45, **its), row(0.4, 0.3, 0.5, **its | {"method": "lsh"}))
    content = data_of(write_report(tmp_path, tmp_path / "page.html"))
    papers = content["published"]
    (cell,) = papers["cell"]
    assert content["lines"][content["cells"]["line"][cell]]["method"] == "bre"
    assert (column(papers["value"]), column(papers["verdict"])) == (["0.361"], ["within"])


def test_names_that_hold_html_end_no_script_and_come_out_as_they_are(tmp_path):
    write(tmp_path / "digits.csv", row(features=NASTY, params=json.dumps({"note": NASTY + "\u2028"})))
    content = data_of(write_report(tmp_path, tmp_path / "page.html"))
    assert content["data"][0]["name"] == f"digits:{NASTY}"
    assert content["lines"][0]["label"] == f"lsh note={NASTY}\u2028"
    text = (tmp_path / "page.html").read_text()
    assert text.count("</script>") == 2
    assert "alert(1)</" not in text


def test_what_there_is_not_is_null_and_a_method_not_installed_has_a_page(tmp_path):
    write(tmp_path / "digits.csv", row(nan, nan, nan, n_undefined=200), row(method="gone", params='{"old": 1}'))
    page = write_report(tmp_path, tmp_path / "page.html")
    content = data_of(page)
    assert content["cells"]["value"] == [None, 500000]
    assert list(content["methods"]) == ["gone", "lsh"]
    assert "<strong>gone</strong> is not installed" in page.read_text()
    assert [line["group"] for line in content["lines"] if line["method"] == "gone"] == [""]


def test_two_contents_of_a_dataset_stay_apart(tmp_path):
    write(tmp_path / "digits.csv", row(), row(dataset_fingerprint="bbbb", seed=1))
    content = data_of(write_report(tmp_path, tmp_path / "page.html"))
    assert [block["name"] for block in content["data"]] == ["digits:pixels [aaaa]", "digits:pixels [bbbb]"]


def test_a_method_is_described_with_its_reference(cells_of_small):
    (itq, _) = method_cards(cells_of_small)
    assert "Procrustean" in itq["references"][0]
    assert ("n_iter=50", "Alternations of codes and rotation.") in itq["params"]


def test_a_dataset_is_described_with_how_much_of_its_grid_is_there(cells_of_small):
    is_there = (cells_of_small["n_bits"] == 8) | (cells_of_small["method"] == "itq")
    (digits,) = dataset_cards(cells_of_small[is_there & (cells_of_small["metric"] == "AP")])
    assert (digits["name"], digits["n_queries"], digits["n_seeds"]) == ("digits:pixels", 200, [2])
    assert (digits["lengths"], digits["grid"]) == ([8, 12], [("AP", [2, 1])])


def test_changes_against_another_folder(tmp_path):
    write(tmp_path / "old" / "digits.csv", row(0.5), row(seed=1), row(seed=2, method_version=2))
    write(tmp_path / "new" / "digits.csv", row(0.55), row(seed=3), row(seed=2))
    page = write_report(tmp_path / "new", tmp_path / "page.html", against=str(tmp_path / "old"))
    assert "1 changed, 1 not comparable, 1 new, 1 gone" in page.read_text()
    changes = data_of(page)["changes"]
    assert column(changes["status"]) == ["changed", "not comparable", "new", "gone"]
    assert (changes["old"][0], changes["new"][0]) == (500000, 550000)
    assert column(changes["ties"])[0] == "not told apart by luck"
    assert changes["new"][3] is None
    assert column(changes["other"])[1] == "method version 2 → 1"
    assert " → working tree</strong>" in page.read_text()
    assert str(tmp_path) not in page.read_text()
    assert "Old is the value before" in page.read_text()


def test_no_changes_are_told_too(tmp_path):
    write(tmp_path / "digits.csv", row())
    page = write_report(tmp_path, tmp_path / "page.html", against=str(tmp_path / "digits.csv"))
    assert "no differences, 1 rows unchanged." in page.read_text()
    assert "Old is the value before" not in page.read_text()
    assert data_of(page)["changes"]["bits"] == []


# ---------------------------------------------------------------- codes and scores of the data folder


def test_queries_have_the_scores_and_tie_groups_of_their_codes(kept, tmp_path, digits):
    queries = data_of(write_report(kept, tmp_path / "page.html", n_queries=3))["queries"]["digits:pixels"]
    assert (queries["metric"], queries["bits"], len(queries["chosen"])) == ("AP", 12, 3)
    for label, text in zip(queries["labels"], queries["scores"], strict=True):
        scores = np.frombuffer(base64.b64decode(text), "<u2") / 1e4
        method = package.read_results(kept).query(f"method == '{label}' and n_bits == 12 and seed == 0")
        assert scores.mean() == pytest.approx(method[method["metric"] == "AP"]["value"].item(), abs=1e-4)
        codes = codes_of(label)
        for query, flat in zip(queries["chosen"], queries["groups"][label], strict=True):
            distances = (codes["query"][query] ^ codes["database"]).sum(axis=1)
            is_relevant = digits.labels[digits.database] == digits.labels[digits.query[query]]
            assert np.reshape(flat, (-1, 3)).tolist() == [
                [distance, (distances == distance).sum(), (is_relevant & (distances == distance)).sum()]
                for distance in np.unique(distances)
            ]


def codes_of(method):
    with hdf5.open_codes(data_dir() / "codes" / "digits" / f"{method}-12-s0.h5") as codes:
        packed = {"query": codes.query, "database": codes.database[:]}
        return {
            role: np.unpackbits(rows, axis=1, bitorder="little")[:, :12].astype(bool) for role, rows in packed.items()
        }


def test_the_queries_of_a_file_are_those_that_differ_most_between_the_first_methods():
    scores = np.array([[0.9, 0.5, 0.7, 0.7, nan], [0.1, 0.6, 0.7, 0.7, nan], [0.9, 0.5, 0.0, 0.8, nan]])
    assert cached._choose_queries(scores, 2).tolist() == [0, 1]
    assert cached._choose_queries(scores, 4).tolist() == [0, 1, 2, 3]
    assert cached._choose_queries(scores, 9).tolist() == [0, 1, 2, 3, 4]


def test_queries_are_of_the_main_lines_at_the_usual_length(kept, cells_of_small):
    results = read_results(kept)
    (block,) = cached.blocks_of(results)
    found = cached.main_part(block, cells_of_small)
    (expected,) = choose_blocks(results, FigureSelection(metric="AP"), 32)
    assert (block.n_bits, found.n_bits, found.labels) == ([8, 12], [12], expected.labels)
    pd.testing.assert_frame_equal(found.cells, expected.cells)
    pd.testing.assert_frame_equal(found.rows, expected.rows)


def test_times_and_use_of_codes(kept):
    blocks = [("here", block) for block in cached.blocks_of(read_results(kept))]
    costs = cached.read_costs(blocks)
    assert sorted(zip(column(costs["times"]["label"]), costs["times"]["bits"], strict=True)) == [
        *(("itq", 8), ("itq", 12)),
        *(("lsh", 8), ("lsh", 12)),
    ]
    assert min(costs["times"]["fit_seconds"]) >= 0
    usage = costs["usage"]
    sizes = np.unique(codes_of("lsh")["database"], axis=0, return_counts=True)[1]
    at = [*zip(column(usage["label"]), usage["bits"], strict=True)].index(("lsh", 12))
    assert (usage["seed"][at], usage["n_items"][at], usage["n_distinct"][at]) == (0, sizes.sum(), len(sizes))
    assert (usage["curve"][at][:2], usage["curve"][at][-2:]) == ([1, sizes.max()], [len(sizes), sizes.min()])


def test_without_codes_the_page_says_how_to_get_them(small, tmp_path):
    note = data_of(write_report(small[0], tmp_path / "page.html"))["queries"]["digits:pixels"]["note"]
    assert "hashbench encode --dataset digits" in note


def test_in_a_folder_all_queries_lie_beside_the_page(kept, tmp_path):
    page = write_report(kept, tmp_path / "report")
    queries = data_of(page)["queries"]["digits:pixels"]
    text = (tmp_path / "report" / queries["file"]).read_text()
    name, content = re.fullmatch(r'hashbenchData\("(.*?)", (.*)\);\n', text).groups()
    assert name == queries["file"]
    assert [path.name for path in (page.parent / "data").iterdir()] == [Path(name).name]
    assert len(json.loads(content)["chosen"]) == 200


def test_what_an_earlier_report_left_in_the_folder_goes(kept, tmp_path):
    page = write_report(kept, tmp_path / "report", n_queries=3)
    (before,) = (page.parent / "data").iterdir()
    (page.parent / "data" / "mine.txt").touch()
    write_report(kept, tmp_path / "report", n_queries=4)
    left = {path.name for path in (page.parent / "data").iterdir()}
    assert before.name not in left
    assert "mine.txt" in left


def test_tie_groups_are_never_those_of_another_seed_or_of_codes_made_again(small, tmp_path, monkeypatch):
    data = tmp_path / "data"
    shutil.copytree(small[1], data)
    monkeypatch.setenv("HASHBENCH_DATA", str(data))
    (folder,) = (data / "codes").iterdir()
    (folder / "lsh-12-s0.h5").unlink()
    queries = data_of(write_report(small[0], tmp_path / "page.html"))["queries"]["digits:pixels"]
    assert set(queries["labels"]) == {"itq", "lsh"}
    assert set(queries["groups"]) == {"itq"}
    with h5py.File(folder / "itq-12-s0.h5", "r+") as file:
        (name,) = [name for name in _arrays(file) if file[name].shape[0] == 200]
        file[name][...] = file[name][...][::-1]
    queries = data_of(write_report(small[0], tmp_path / "page.html"))["queries"]["digits:pixels"]
    assert "itq" not in queries.get("groups", {})


def _arrays(file):
    names = []
    file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


# ---------------------------------------------------------------- thumbnails


def test_thumbnails_are_of_the_nearest_items_and_of_whole_groups_as_far_as_there_is_room():
    distances = np.repeat([5, 3, 4, 9], [10, 6, 40, 2])
    (three, first), (four, second) = thumbnails._nearest(distances)
    assert (three, first.tolist()) == (3, [*range(10, 16)])
    assert four == 4
    assert len(second) == 18
    assert set(second) <= set(range(16, 56))


def test_a_sheet_holds_images_small_and_side_by_side():
    images = np.stack([np.full((80, 40, 3), shade, np.uint8) for shade in (0, 250)])
    written, size = thumbnails._sheet(images, [1, 0])
    sheet = Image.open(io.BytesIO(written))
    assert (size, sheet.size) == ((20, 40), (40, 40))
    assert sheet.getpixel((5, 20))[0] > 240
    assert sheet.getpixel((35, 20))[0] < 10


def test_thumbnails_of_a_dataset_of_images_are_those_of_its_queries_and_their_nearest_items(data, tiny, tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (40, 6, 4, 1)).astype(np.uint8)
    dataset = tiny(images=images)
    hdf5.write_dataset(dataset, data / "datasets" / "tiny.h5")
    package.run("lsh", 4, "tiny", metrics="AP", results=tmp_path)
    write_report(tmp_path, tmp_path / "report", has_thumbnails=True)
    (file,) = (tmp_path / "report" / "data").glob("queries-*.js")
    text = file.read_text()
    found = json.loads(text.partition(", ")[2].removesuffix(");\n"))["images"]
    sheet = Image.open(io.BytesIO((tmp_path / "report" / found["files"][0]).read_bytes()))
    n_items = 1 + max(place for groups in found["nearest"]["lsh"] for group in groups for place, _ in group[1:])
    assert (found["size"], sheet.size) == ([4, 6], (4 * n_items, 6))
    assert found["of_query"] == {str(query): query for query in range(8)}
    for query, groups in enumerate(found["nearest"]["lsh"]):
        assert [group[0] for group in groups] == sorted({group[0] for group in groups})
        n_relevant = sum(level for group in groups for _, level in group[1:])
        assert sum(len(group) - 1 for group in groups) == 24
        assert n_relevant <= (dataset.labels[dataset.database] == dataset.labels[query]).sum()


# ---------------------------------------------------------------- the command


def test_command_writes_beside_the_results_and_tells_the_path(hashbench, tmp_path):
    write(tmp_path / "digits.csv", row())
    result = hashbench("report", "--results", tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'report.html'}\n")
    assert read_results(tmp_path).shape == (1, 15)


def test_thumbnails_of_nothing_are_refused_and_nothing_is_written(kept, tmp_path):
    with pytest.raises(HashbenchError, match="no dataset of images has codes and scores in the data folder"):
        write_report(kept, tmp_path / "report", has_thumbnails=True)
    with pytest.raises(HashbenchError, match="--thumbnails needs queries"):
        write_report(kept, tmp_path / "report", has_thumbnails=True, n_queries=0)
    with pytest.raises(HashbenchError, match=r"thumbnails need a folder, and .*page\.html is one file"):
        write_report(kept, tmp_path / "page.html", has_thumbnails=True)
    assert not (tmp_path / "report" / "index.html").exists()


def test_a_folder_that_is_there_may_be_called_like_a_file(tmp_path):
    write(tmp_path / "digits.csv", row())
    (tmp_path / "site.io").mkdir()
    assert write_report(tmp_path, tmp_path / "site.io") == tmp_path / "site.io" / "index.html"
    assert write_report(tmp_path, tmp_path / "v1.2").exists()
    with pytest.raises(HashbenchError, match=r"new\.io ends in \.io as other files do; give .*new\.html, or make"):
        write_report(tmp_path, tmp_path / "new.io")


def test_what_made_a_row_is_on_the_page_with_it_and_nothing_where_it_is_not_known(small, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(small[0], folder)
    (beside, *others) = sorted((folder / "digits").glob("*.jobs.csv"))
    for other in others:
        other.unlink()
    rows = data_of(write_report(folder, tmp_path / "page.html"))["rows"]
    told = [rows["made"]["of"][at] for at in rows["made"]["at"]]
    assert len(told) == len(rows["seed"])
    assert "" in told
    with beside.open(newline="") as file:
        lines = list(csv.DictReader(file))
    for line in lines:
        (words,) = {text for text in told if f"{float(line['seconds']):,.2f} s to fit" in text} or {""}
        assert all(line[key] in words for key in ("date", "processor", "libraries", "commit"))


def test_the_committed_results_stay_under_three_megabytes(tmp_path):
    page = write_report(ROOT / "results", tmp_path / "page.html")
    assert page.stat().st_size < 3e6
    content = data_of(page)
    n_lines = sum(len(rows_in(folder)) for folder in (ROOT / "results").iterdir() if any(folder.glob("*.json")))
    assert len(content["rows"]["seed"]) == sum(content["cells"]["n_rows"]) == n_lines
    assert pd.notna(content["cells"]["value"]).all()

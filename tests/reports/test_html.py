"""The data of `hashbench report`'s page, without a browser, against the CSV files."""

import base64
import io
import json
import re
import shutil
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers.artifacts import edit
from helpers.diff_rows import row, write
from helpers.paths import ROOT
from helpers.result_files import files_in, jobs_in, rows_in
from PIL import Image

import hashbench as package
from hashbench.bits import unpack
from hashbench.errors import HashbenchError
from hashbench.reports.aggregate import all_lines
from hashbench.reports.html import cached, write_report
from hashbench.reports.html.content import dataset_cards, method_cards
from hashbench.reports.view import make_view
from hashbench.store import hdf5
from hashbench.store.files import data_dir
from hashbench.store.results import read_results

pytestmark = pytest.mark.slow  # make test-figures

NASTY = "</script><script>alert(1)</script> <!-- \"quoted\" & 'so' Ü中文"


def data_of(page):
    """Read the data that a page holds as a browser does: up to the first end of a script element."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script', page.read_text(), re.DOTALL)
    return json.loads(text)


def page_data(folder, tmp_path, **options):
    return data_of(write_report(folder, tmp_path / "page.html", **options))


def column(coded):
    return [coded["of"][place] for place in coded["at"]]


@pytest.fixture(scope="module")
def small(tmp_path_factory, prepared):
    """Results of two methods on digits, two seeds each; and the data folder with their codes and scores."""
    folder, data = tmp_path_factory.mktemp("small"), tmp_path_factory.mktemp("cached")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HASHBENCH_DATA", str(data))
        shutil.copytree(prepared, data, dirs_exist_ok=True)
        package.run(["itq", "lsh"], [8, 12], seeds=[0, 1], metrics=["AP", "P@100"], results=folder)
    return folder, data


@pytest.fixture
def with_codes(small, monkeypatch):
    """The results of `small`, with their codes in the data folder."""
    monkeypatch.setenv("HASHBENCH_DATA", str(small[1]))
    return small[0]


# ---------------------------------------------------------------- results


def test_rows_and_cells_are_those_of_the_csv(small, tmp_path):
    results = read_results(small[0])
    content = page_data(small[0], tmp_path)
    cells, rows = content["cells"], content["rows"]
    shown, start = {}, 0
    for place, n_rows in enumerate(cells["n_rows"]):
        line = content["lines"][cells["line"][place]]
        metric = content["metrics"][cells["metric"][place]]["name"]
        values = [rows["value"][start + number] / 1e6 for number in range(n_rows)]
        assert cells["value"][place] == pytest.approx(1e6 * np.mean(values), abs=0.51)
        assert cells["spread"][place] == pytest.approx(1e6 * np.std(values, ddof=1), abs=0.51)
        for number, value in enumerate(values):
            key = (line["method"], cells["bits"][place], rows["seed"][start + number], metric)
            shown[key] = (value, rows["low"][start + number] / 1e6, rows["high"][start + number] / 1e6)
        start += n_rows
    expected = results.set_index(["method", "n_bits", "seed", "metric"])[["value", "low", "high"]]
    assert shown == {key: tuple(values) for key, values in zip(expected.index, expected.to_numpy(), strict=True)}


def test_the_same_results_give_the_same_bytes_in_whatever_files_they_stand(tmp_path):
    first, second = row(0.5), row(0.6, method="itq", dataset="more")
    write(tmp_path / "a" / "both.csv", first, second)
    write(tmp_path / "b" / "digits.csv", first)
    write(tmp_path / "b" / "more.csv", second)
    pages = [write_report(tmp_path / name, tmp_path / f"{name}.html") for name in "ab"]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    assert str(tmp_path) not in pages[0].read_text()


def test_names_that_hold_html_end_no_script_and_come_out_as_they_are(tmp_path):
    write(tmp_path / "digits.csv", row(features=NASTY, params=json.dumps({"note": NASTY + "\u2028"})))
    content = page_data(tmp_path, tmp_path)
    assert content["data"][0]["name"] == f"digits:{NASTY}"
    assert content["lines"][0]["label"] == f"lsh note={NASTY}\u2028"
    text = (tmp_path / "page.html").read_text()
    assert text.count("</script>") == 2
    assert "alert(1)</" not in text


def test_missing_numbers_are_null_and_a_method_not_installed_has_a_page(tmp_path):
    write(tmp_path / "digits.csv", row(nan, nan, nan, n_undefined=200), row(method="gone", params='{"old": 1}'))
    page = write_report(tmp_path, tmp_path / "page.html")
    content = data_of(page)
    assert content["cells"]["value"] == [None, 500000]
    assert list(content["methods"]) == ["gone", "lsh"]
    assert "Only the results of <strong>gone</strong> are shown" in page.read_text()
    assert [line["group"] for line in content["lines"] if line["method"] == "gone"] == [""]


def test_published_values_are_those_of_hash_functions(tmp_path):
    rows = [row(method=name, dataset="cifar10-s1", n_bits=24, params="{}") for name in ("adsh", "dtsh")]
    write(tmp_path / "results/all.csv", *rows)
    data = page_data(tmp_path / "results", tmp_path)
    lines = data["cells"]["line"]
    shown = {data["lines"][lines[cell]]["method"] for cell in data["published"]["cell"]}
    assert shown == {"dtsh"}  # adsh's at 24 bits is of codes that were learned from the database's labels


def test_the_first_published_value_of_a_cell_is_the_tables(tmp_path):
    """At 48 bits, a README has 0.844 for DFH by its authors, and 0.801 from its own run."""
    write(tmp_path / "results/all.csv", row(method="dfh", dataset="cifar10-s1", n_bits=48, params="{}"))
    values = column(page_data(tmp_path / "results", tmp_path)["published"]["value"])
    assert values[0] == "0.844"
    assert "0.801" in values


def test_methods_and_datasets_are_described(small):
    cells = make_view(results := read_results(small[0]), lines=all_lines(results), by_score=True).cells
    itq, _ = method_cards(cells)
    assert "Procrustean" in itq["references"][0]
    assert itq["card"].params["n_iter"] == 50
    is_in_grid = (cells["n_bits"] == 8) | (cells["method"] == "itq")
    (digits,) = dataset_cards(cells[is_in_grid & (cells["metric"] == "AP")])
    assert (digits["name"], digits["n_queries"], digits["n_seeds"]) == ("digits:pixels", 200, [2])
    assert (digits["lengths"], digits["grid"]) == ([8, 12], [("AP", [2, 1])])


def test_changes_against_another_folder(tmp_path):
    write(tmp_path / "old" / "digits.csv", row(0.5), row(seed=1), row(seed=2, method_version=2))
    write(tmp_path / "new" / "digits.csv", row(0.55), row(seed=3), row(seed=2))
    page = write_report(tmp_path / "new", tmp_path / "page.html", against=str(tmp_path / "old"))
    text, changes = page.read_text(), data_of(page)["changes"]
    assert "1 changed, 1 not comparable, 1 new, 1 gone" in text
    assert column(changes["status"]) == ["changed", "not comparable", "new", "gone"]
    assert (changes["old"][0], changes["new"][0]) == (500000, 550000)
    assert column(changes["ties"])[0] == "apart under a shuffle"
    assert column(changes["seeds"])[0] == "1 of 1"
    assert changes["new"][3] is None
    assert column(changes["other"])[1] == "method version 2 → 1"
    assert " → working tree</strong>" in text
    assert str(tmp_path) not in text
    assert "Old is the value before" in text


def test_a_change_counts_the_seeds_that_changed_to_the_same_side(tmp_path):
    old, new = [0.5, 0.5, 0.5, 0.5], [0.55, 0.52, 0.45, 0.5]
    for side, values in (("old", old), ("new", new)):
        write(tmp_path / side / "digits.csv", *(row(value, seed=seed) for seed, value in enumerate(values)))
    changes = page_data(tmp_path / "new", tmp_path, against=str(tmp_path / "old"))["changes"]
    assert dict(zip(changes["seed"], column(changes["seeds"]), strict=True)) == {0: "2 of 4", 1: "2 of 4", 2: "1 of 4"}


# ---------------------------------------------------------------- codes and scores of the data folder


def test_queries_have_the_scores_and_tie_groups_of_their_codes(with_codes, tmp_path, digits):
    queries = page_data(with_codes, tmp_path, n_queries=3)["queries"]["digits:pixels"]
    assert (queries["metric"], queries["bits"], len(queries["chosen"])) == ("AP", 12, 3)
    for label, text in zip(queries["labels"], queries["scores"], strict=True):
        scores = np.frombuffer(base64.b64decode(text), "<u2") / 1e4
        method = package.read_results(with_codes).query(f"method == '{label}' and n_bits == 12 and seed == 0")
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
        return {role: unpack(rows, 12) for role, rows in packed.items()}


@pytest.mark.parametrize(
    ("n_queries", "chosen"), [(1, [0]), (2, [0, 2]), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (9, [*range(5)])]
)
def test_half_of_the_queries_differ_most_between_the_first_two_methods(n_queries, chosen):
    scores = np.array([[0.9, 0.5, 0.7, 0.7, nan], [0.1, 0.6, 0.7, 0.7, nan], [0.9, 0.5, 0.0, 0.8, nan]])
    assert cached._choose_queries(scores, n_queries).tolist() == chosen


def test_without_codes_the_page_says_how_to_get_them(small, tmp_path):
    note = page_data(small[0], tmp_path)["queries"]["digits:pixels"]["note"]
    assert (
        "run hashbench run --dataset digits --method itq --method lsh --bits 12 --force, then hashbench report" in note
    )
    assert note.count(".") == 1


def test_in_a_folder_all_queries_lie_beside_the_page(with_codes, tmp_path):
    page = write_report(with_codes, tmp_path / "report")
    queries = data_of(page)["queries"]["digits:pixels"]
    text = (tmp_path / "report" / queries["file"]).read_text()
    name, content = re.fullmatch(r'hashbenchData\("(.*?)", (.*)\);\n', text).groups()
    assert name == queries["file"]
    assert [path.name for path in (page.parent / "data").iterdir()] == [Path(name).name]
    assert len(json.loads(content)["chosen"]) == 200


def test_what_an_earlier_report_left_in_the_folder_is_removed(with_codes, tmp_path):
    page = write_report(with_codes, tmp_path / "report", n_queries=3)
    (before,) = (page.parent / "data").iterdir()
    other = page.parent / "data" / "notes.txt"
    other.touch()
    write_report(with_codes, tmp_path / "report", n_queries=4)
    assert (before.exists(), other.exists()) == (False, True)


def test_tie_groups_are_never_those_of_another_seed_or_of_recomputed_codes(small, tmp_path, monkeypatch):
    data = tmp_path / "data"
    shutil.copytree(small[1], data)
    monkeypatch.setenv("HASHBENCH_DATA", str(data))
    (folder,) = (data / "codes").iterdir()
    (folder / "lsh-12-s0.h5").unlink()
    queries = page_data(small[0], tmp_path)["queries"]["digits:pixels"]
    assert set(queries["labels"]) == {"itq", "lsh"}
    assert set(queries["groups"]) == {"itq"}
    edit(folder / "itq-12-s0.h5", lambda record, arrays: arrays.update({"query/codes": arrays["query/codes"][::-1]}))
    assert "itq" not in page_data(small[0], tmp_path)["queries"]["digits:pixels"].get("groups", {})


# ---------------------------------------------------------------- thumbnails


def test_a_sheet_holds_images_small_and_side_by_side():
    images = np.stack([np.full((80, 40, 3), shade, np.uint8) for shade in (0, 250)])
    written, size = cached._sheet(images, [1, 0])
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
    content = json.loads(file.read_text().partition(", ")[2].removesuffix(");\n"))["images"]
    sheet = Image.open(io.BytesIO((tmp_path / "report" / content["files"][0]).read_bytes()))
    n_items = 1 + max(place for groups in content["nearest"]["lsh"] for group in groups for place, _ in group[1:])
    assert (content["size"], sheet.size) == ([4, 6], (4 * n_items, 6))
    assert content["of_query"] == {str(query): query for query in range(8)}
    for query, groups in enumerate(content["nearest"]["lsh"]):
        assert [group[0] for group in groups] == sorted({group[0] for group in groups})
        n_relevant = sum(level for group in groups for _, level in group[1:])
        assert sum(len(group) - 1 for group in groups) == 24
        assert n_relevant <= (dataset.labels[dataset.database] == dataset.labels[query]).sum()


# ---------------------------------------------------------------- the command


@pytest.mark.parametrize(
    ("name", "n_queries", "message"),
    [
        ("report", None, "no dataset of images has codes and scores"),
        ("report", 0, "--thumbnails needs queries"),
        ("page.html", None, r"thumbnails need a folder, and .*page\.html is one file"),
    ],
)
def test_thumbnails_of_nothing_are_refused_and_nothing_is_written(with_codes, tmp_path, name, n_queries, message):
    with pytest.raises(HashbenchError, match=message):
        write_report(with_codes, tmp_path / name, has_thumbnails=True, n_queries=n_queries)
    assert not [*tmp_path.rglob("*.html")]


def test_an_existing_folder_may_be_named_like_a_file(tmp_path):
    write(tmp_path / "digits.csv", row())
    (tmp_path / "site.io").mkdir()
    assert write_report(tmp_path, tmp_path / "site.io") == tmp_path / "site.io" / "index.html"
    assert write_report(tmp_path, tmp_path / "v1.2").exists()
    with pytest.raises(HashbenchError, match=r"new\.io ends in \.io .*new\.html"):
        write_report(tmp_path, tmp_path / "new.io")


def test_the_page_shows_the_origin_of_each_row_if_it_is_known(small, tmp_path):
    folder = tmp_path / "results"
    shutil.copytree(small[0], folder)
    first, *others = files_in(folder / "digits")
    jobs = jobs_in(first)
    for other in others:
        record = json.loads(other.with_suffix(".json").read_text()) | {"jobs": []}
        other.with_suffix(".json").write_text(json.dumps(record))
    rows = page_data(folder, tmp_path)["rows"]
    origins = ["\n".join(lines).strip() for lines in zip(column(rows["made"]), column(rows["took"]), strict=True)]
    assert len(origins) == len(rows["seed"])
    assert "" in origins
    for job in jobs:
        (words,) = {text for text in origins if f"{job['seconds']:,.2f} s to fit" in text} or {""}
        assert all(job[key] in words for key in ("date", "processor", "libraries", "commit"))


def test_the_committed_results_stay_under_three_megabytes(tmp_path):
    page = write_report(ROOT / "results", tmp_path / "page.html")
    assert page.stat().st_size < 3e6
    content = data_of(page)
    n_lines = sum(len(rows_in(folder)) for folder in (ROOT / "results").iterdir() if any(folder.glob("*.json")))
    assert len(content["rows"]["seed"]) == sum(content["cells"]["n_rows"]) == n_lines
    assert pd.notna(content["cells"]["value"]).all()

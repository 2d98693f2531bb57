"""Numbers in the documents, and defaults of methods, are those of the rows that they come from."""

import json
import re
from collections import Counter

import numpy as np
import pytest
from helpers.paths import DATA, ROOT, benchmark

from hashbench import registry
from hashbench.cards import method_card
from hashbench.pipeline.tuning import LEAD
from hashbench.reports import tables

documents, pictures, tuning = (benchmark(name) for name in ("documents", "pictures", "tuning"))


@pytest.mark.parametrize("name", documents.PAGES)
def test_a_document_has_the_numbers_of_the_rows(name):
    text = (ROOT / name).read_text()
    assert documents.filled(name, text).splitlines() == text.splitlines(), "run make numbers"


def test_numbers_and_names_are_put_where_their_words_are_and_nowhere_else():
    page = documents.Page("p", "A has 0.25, and B\n0.5. C, D\nand E lead.\n<!-- t -->\nold\n<!-- end -->\nA had 0.25.")
    page.says("A has {:.3f}, and B {}.", 0.125, 0.5)
    page.says("0.5. {} lead.", "C, D and E")  # as it was, with its line break
    page.table("t", ["item"], [["1"]])
    table = "<!-- t -->\n| item |\n| ---- |\n| 1    |\n<!-- end -->"
    assert page.text == f"A has 0.125, and B\n0.5. C, D\nand E lead.\n{table}\nA had 0.25."


@pytest.mark.parametrize(
    ("words", "is_true", "complaint"),
    [
        ("B is {} here", True, "p has 0 passages like this"),
        ("A is {}", True, "p has 2 passages like this"),
        ("A is {} now", False, "p says what the rows do not: A is {} now"),
    ],
)
def test_a_sentence_that_is_gone_or_no_longer_true_is_named(words, is_true, complaint):
    page = documents.Page("p", "A is 1 now. A is 2.")
    with pytest.raises(SystemExit, match=complaint):
        page.says(words, 1, is_true=is_true)
    with pytest.raises(SystemExit, match="p has no mark <!-- t -->"):
        page.table("t", "")


@pytest.mark.skipif(not (DATA / "cifar10-squeezenet-fire9-128px.npz").is_file(), reason="needs the real features")
def test_recall_by_hamming_cosine_and_dot_of_0_1_vectors_is_as_told():
    with np.load(DATA / "cifar10-squeezenet-fire9-128px.npz") as file:
        features = file["features"][:20500].astype(np.float32)
    features -= features.mean(axis=0)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    neighbours = np.argsort(-(unit[:500] @ unit[500:].T), axis=1)[:, :10]
    bits = (features > 0).astype(np.float64)
    common, n_ones = bits[:500] @ bits[500:].T, bits.sum(axis=1)
    recalls = []
    for scores in (2 * common - n_ones[500:], common**2 / n_ones[500:], common):  # of each query, up to its own terms
        near = np.take_along_axis(scores, neighbours, axis=1)
        at_cut = np.sort(scores, axis=1)[:, -10:-9]
        n_above, n_tied = (scores > at_cut).sum(axis=1), (scores == at_cut).sum(axis=1)
        hits = (near > at_cut).sum(axis=1) + (near == at_cut).sum(axis=1) * (10 - n_above) / n_tied
        recalls.append(f"{hits.mean() / 10:.3f}")
    row = f"| the first 500 images | the next 20,000 | {' | '.join(recalls)} |"
    assert row in (ROOT / "docs/binary-quantisation.md").read_text()


# ---------------------------------------------------------------- tables


@pytest.fixture
def read_once(monkeypatch):
    """Give tables the committed rows that the documents are of."""
    monkeypatch.setattr("hashbench.reports.tables.table.read_results_with_origins", lambda folder: documents.results())


@pytest.mark.usefixtures("read_once")
def test_committed_tables_are_those_of_the_committed_results(tmp_path):
    tables.write_tables(tmp_path, tables.make_tables(ROOT / "results", ()))
    laid_out, committed = (
        {path.name: path.read_text() for path in folder.glob("[!.]*")}
        for folder in (tmp_path, ROOT / "results" / "tables")
    )
    assert laid_out.keys() == committed.keys()
    for name, text in laid_out.items():
        assert text.splitlines() == committed[name].splitlines(), f"{name} is of other results: make tables"


@pytest.mark.usefixtures("read_once")
def test_latex_table_that_the_documentation_shows_is_what_its_command_writes(hashbench, tmp_path):
    page = (ROOT / "docs/tables.md").read_text()
    command = re.search(r"\(table\.tex\).*?    (hashbench tables .*?) --output paper\n", page, re.DOTALL)
    arguments = command[1].replace("\\\n", " ").split()[1:]
    done = hashbench(*arguments, "--results", ROOT / "results", "--output", tmp_path)
    assert done.exit_code == 0, done.output
    shown = (ROOT / "docs/table.tex").read_text()
    assert (tmp_path / "selection.tex").read_text() == shown, "make tables"


# ---------------------------------------------------------------- pictures


def test_pictures_show_the_rows_and_the_page_of_today():
    shown = json.loads(pictures.STAMPS.read_text())
    assert pictures.stamps(shown, documents.results()) == shown, "a picture is older than what it shows: make pictures"
    assert all((pictures.IMAGES / name).is_file() for name in shown)
    assert {path.name for path in pictures.IMAGES.iterdir()} == {*shown, pictures.STAMPS.name}


# ---------------------------------------------------------------- trials


def test_all_learned_methods_have_as_many_trials():
    trials = tuning.read()
    trials = trials[~trials["dataset"].str.endswith(":images")]
    learned = {name for name in registry.built_in_methods() if method_card(name).is_learned}
    unlabelled = {name for name in learned if method_card(name).supervision == "none"}
    expected = {
        (*part, name): 9
        for part in {*zip(trials["dataset"], trials["n_bits"], strict=True)}
        for name in (unlabelled if part[0] == tuning.OF_NEIGHBOURS else learned)
    }
    assert Counter(zip(trials["dataset"], trials["n_bits"], trials["method"], strict=True)) == expected
    assert len({part[:2] for part in expected}) == 8
    assert all(len(method_card(name).tunable) >= 3 for name in learned)


def test_defaults_and_presets_are_the_best_settings_where_these_lead_by_a_hundredth():
    trials = tuning.read()
    every = tuning.overall(tuning.means(tuning.of_classes(trials))).dropna(subset="score")
    for name, table in every.groupby("method"):
        best = table.iloc[1 if name == "greedyhash" else 0]  # whose best fails scikit-learn's checks
        (tried,) = table[table["is_default"]].to_dict("records")
        setting = json.loads((best if best["score"] > tried["score"] + LEAD else tried)["setting"])
        assert {key: method_card(name).params[key] for key in setting} == setting
    of_neighbours = tuning.means(trials[trials["dataset"] == tuning.OF_NEIGHBOURS]).dropna(subset="score")
    best = of_neighbours.sort_values("score").groupby("method")["setting"].last()
    for name in ("bihalf", "greedyhash-unsupervised"):
        chosen = {**json.loads(best[name]), "decay_items": None}  # the trials learned from 8,000 items
        assert dict(method_card(name).presets["neighbours"]) == chosen


def test_the_rows_of_scripts_have_all_that_give_ap_at_a_cut():
    why = benchmark("why_numbers_differ")
    _, values, _ = documents.by_scripts("classifier-10", "by-class")
    assert [*values.index] == [script.name for script in why.SCRIPTS if "AP@k" in script.gives]

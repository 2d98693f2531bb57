"""`hashbench thresholds`: its table, sentences, files and refusals."""

import json
import re
from io import StringIO

import numpy as np
import pandas as pd
import pytest

import hashbench as package

N_ITEMS, N_BITS = 60, 16


@pytest.fixture
def files(tmp_path):
    """Codes of 20 groups of three copies, some bits of which differ, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(20), 3)
    codes = (rng.random((20, N_BITS)) > 0.5)[labels] ^ (rng.random((N_ITEMS, N_BITS)) < 0.1)
    np.save(tmp_path / "codes.npy", codes)
    np.save(tmp_path / "labels.npy", labels)
    np.save(tmp_path / "part-1.npy", codes[:25])
    np.save(tmp_path / "part-2.npy", codes[25:])
    return tmp_path


@pytest.fixture
def of_files(files):
    codes, labels = files / "codes.npy", files / "labels.npy"
    own = ["--query-codes", codes, "--database-codes", codes, "--query-labels", labels, "--database-labels", labels]
    return ["thresholds", *own, "--exclude-self"]


@pytest.fixture
def expected(files):
    codes, labels = np.load(files / "codes.npy"), np.load(files / "labels.npy")
    return package.Problem.of_codes(codes, codes, (labels, labels), exclude_self=True).thresholds()


def test_the_table_and_the_sentences_have_the_numbers(hashbench, of_files, expected):
    text = hashbench(*of_files, "--fpr", "1e-2", "--precision", 0.4).stdout
    for line in re.findall(r"^ (\d+) +([\d,]+) +([\d,]+) ", text, re.MULTILINE):
        match = expected.at(int(line[0]))
        assert [int(number.replace(",", "")) for number in line[1:]] == [match.n_matches, match.n_false]
    for name, match in (
        ("best F1", expected.best_f1),
        ("precision 0.4", expected.at_precision(0.4)),
        ("false positive rate 0.01", expected.at_fpr(0.01)),
    ):
        (sentence,) = re.findall(rf"^{name}: (.*)$", text, re.MULTILINE)
        assert sentence.startswith(f"radius {match.radius}, F1 {match.f1:.4f}, ")
        assert f"recall {match.recall:.4f} ({match.recall_low:.2f} to {match.recall_high:.2f})" in sentence
        assert f"; {match.n_false:,} of {expected.n_irrelevant:,} irrelevant pairs match, " in sentence
        assert f"({match.fpr_low:.2g} to {match.fpr_high:.2g}), in {match.n_queries_with_false} of 60 qu" in sentence
    assert "In brackets: 95 % intervals for others like these 20 classes" in text
    assert f"uAP {expected.uap.mean:.4f}" in text
    assert f"60 relevant of {60 * 59 // 2:,} pairs" in text


def test_a_rate_that_the_pairs_cannot_show_is_named(hashbench, of_files, expected):
    bound = expected.at(0).fpr_high  # without a false match
    assert expected.at(0).n_false == 0
    text = hashbench(*of_files, "--fpr", bound * 0.99, "--fpr", bound * 1.01).stdout
    words = rf"1,710 irrelevant pairs cannot show it: without a false match, the upper bound is still {bound:.2g}, "
    words += r"as of some ([\d,]+) independent pairs; it takes some ([\d,]+) independent pairs or more\. --backg.*"
    ((n_here, n_needed),) = re.findall(rf"^false positive rate [\d.]+: {words}$", text, re.MULTILINE)
    assert int(n_here.replace(",", "")) < int(n_needed.replace(",", "")) <= 1_710
    assert len(re.findall(r"^false positive rate [\d.]+: radius ", text, re.MULTILINE)) == 1


def test_pairs_that_are_all_relevant_or_all_irrelevant_leave_no_nan(hashbench, files):
    codes = ["--query-codes", files / "codes.npy", "--database-codes", files / "part-1.npy"]
    asked = ["--fpr", 0.5, "--precision", 0]
    for level, sentences in (
        (
            1,
            [
                "best F1: radius 13, F1 1.0000, precision 1.0000 (",
                "; no pair is irrelevant.",
                "0.5: these pairs cannot show it, since",
            ],
        ),
        (
            0,
            [
                "best F1: no pair is relevant.",
                "so recall, F1 and uAP are not defined.",
                "0.5: radius 7, F1 -, precision 0.0000 (",
            ],
        ),
    ):
        np.save(files / "levels.npy", np.full((N_ITEMS, 25), level))
        text = hashbench("thresholds", *codes, "--affinity", files / "levels.npy", *asked).stdout
        assert "nan" not in text
        assert all(sentence in text for sentence in sentences), text
        command = ["thresholds", *codes, "--affinity", files / "levels.npy", *asked, "--format", "json"]
        json.loads(hashbench(*command).stdout, parse_constant=pytest.fail)


def test_all_radii_are_in_the_file_and_in_csv(hashbench, of_files, expected, tmp_path):
    assert hashbench(*of_files, "--output", tmp_path / "radii.csv").exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "radii.csv"), expected.to_frame(), check_dtype=False)
    text = hashbench(*of_files, "--format", "csv").stdout
    pd.testing.assert_frame_equal(pd.read_csv(StringIO(text)), expected.to_frame(), check_dtype=False)
    printed = hashbench(*of_files, "--output", "-")
    assert (printed.stdout.startswith("radius,"), "best F1" in printed.stderr) == (True, True)
    assert hashbench(*of_files, "--output", tmp_path / "radii.svg").exit_code == 0
    assert "<svg" in (tmp_path / "radii.svg").read_text()


def test_json_has_what_was_asked_for(hashbench, of_files, expected):
    content = json.loads(hashbench(*of_files, "--format", "json", "--fpr", 0.5, "--precision", 1).stdout)
    assert content["n_bits"] == N_BITS
    assert content["uAP"]["mean"] == pytest.approx(expected.uap.mean)
    assert content["best F1"]["radius"] == expected.best_f1.radius
    assert content["false positive rate 0.5"]["n_false"] == expected.at_fpr(0.5).n_false
    assert (content["n_relevant_pairs"], content["n_irrelevant_pairs"]) == (60, 1710)
    assert content["notes"] == list(expected.notes)


@pytest.mark.usefixtures("empty_folder")
def test_shards_and_codes_of_a_method_have_thresholds_too(hashbench, of_files, files, digits_data):
    command = [*of_files]
    command[4] = f"{files}/part-*.npy"
    assert hashbench(*command, "--format", "csv").stdout == hashbench(*of_files, "--format", "csv").stdout
    assert hashbench("run", "--method", "lsh", "--bits", 12, "--metric", "AP").exit_code == 0
    (codes,) = digits_data.glob("codes/*/lsh*.h5")
    assert "best F1: radius" in hashbench("thresholds", codes).stdout


def test_a_radius_is_chosen_on_one_half_of_the_classes_and_judged_on_the_other(hashbench, of_files, files):
    codes, labels = np.load(files / "codes.npy"), np.load(files / "labels.npy")
    found = package.Problem.of_codes(codes, codes, (labels, labels), exclude_self=True).thresholds(held_out=True)
    chosen, judged = (half.at(found.best_f1.radius) for half in (found, found.held_out))
    text = hashbench(*of_files, "--held-out").stdout
    assert f"best F1: radius {chosen.radius}, F1 {chosen.f1:.4f}, " in text
    assert f"\n  held out: F1 {judged.f1:.4f}, " in text
    content = json.loads(hashbench(*of_files, "--held-out", "--format", "json").stdout)["best F1"]
    assert (content["fpr"], content["held_out"]["fpr"]) == (chosen.fpr, judged.fpr)


def test_false_matches_in_a_corpus_are_the_rate_times_its_pairs(hashbench, of_files, expected):
    match, command = expected.at_precision(0.4), [*of_files, "--precision", 0.4, "--corpus-size", 1000]
    content = json.loads(hashbench(*command, "--format", "json").stdout)["precision 0.4"]["expected_false"]
    rates = np.array([match.fpr, match.fpr_low, match.fpr_high])
    np.testing.assert_allclose(content["per_query"], 1000 * rates)
    np.testing.assert_allclose(content["all_pairs"], 1000 * 999 / 2 * rates)
    text = hashbench(*command).stdout
    assert f"  1,000 items: {1000 * match.fpr:.2g} (" in text
    assert "1,000 items: if they match each other as often as irrelevant pairs here do." in text


def test_labelled_pairs_name_items_by_their_ids(hashbench, tmp_path):
    (tmp_path / "hashes.csv").write_text("id,hash\nred,0x00\nblue,0x01\ngreen,0x7f\n")
    (tmp_path / "pairs.csv").write_text("a,b,same\nred,blue,1\ngreen,blue,0\nred,green,0\n")
    labelled = ["thresholds", "--database-codes", tmp_path / "hashes.csv", "--pairs", tmp_path / "pairs.csv"]
    printed = hashbench(*labelled, "--precision", 0.5)
    assert "precision 0.5: radius 1, F1 1.0000, " not in printed.stdout  # the largest radius, with a false match
    assert "best F1: radius 1, F1 1.0000, " in printed.stdout
    assert "1 relevant of 3 pairs; a radius has no ties." in printed.stdout
    assert "1 of 3 labelled pairs are the same. Precision and F1 depend on that share" in printed.stderr
    content = json.loads(hashbench(*labelled, "--format", "json", "--fpr", 0.001, "--precision", 0.999).stdout)
    assert "2 irrelevant pairs cannot show it" in content["false positive rate 0.001"]["reason"]
    assert "these pairs cannot show it; the highest lower bound" in content["precision 0.999"]["reason"]
    assert content["precision 0.999"]["radius"] is None
    assert "n_queries_with_false" not in content["best F1"]
    assert "n_queries_with_false" not in hashbench(*labelled, "--format", "csv").stdout
    np.save(tmp_path / "codes.npy", np.array([[0, 0, 0], [0, 0, 1], [1, 1, 1]]))
    (tmp_path / "pairs.csv").write_text("0,1,1\n2,1,0\n0,2,0\n")
    by_row = [*labelled[:2], tmp_path / "codes.npy", *labelled[3:]]
    assert "best F1: radius 1, F1 1.0000, " in hashbench(*by_row).stdout
    assert "best F1: radius 1, " in hashbench(*by_row, "--query-codes", tmp_path / "codes.npy").stdout


def test_false_matches_are_written_by_their_ids(hashbench, of_files, files, expected):
    codes, labels = np.load(files / "codes.npy"), np.load(files / "labels.npy")
    done = hashbench(*of_files, "--fpr", 0.01, "--false-pairs", "-")
    radius = expected.at_fpr(0.01).radius
    distance = (codes[:, None] != codes).sum(axis=2)
    is_false = np.triu((distance <= radius) & (labels[:, None] != labels), 1)
    rows = pd.read_csv(StringIO(done.stdout))
    assert rows.to_numpy().tolist() == [[i, j, distance[i, j]] for i, j in np.argwhere(is_false)]
    assert len(rows) == expected.at(radius).n_false > 0
    hexes = [np.packbits(code).tobytes().hex() for code in codes]
    (files / "hashes.csv").write_text("id,hash\n" + "".join(f"item-{i},{text}\n" for i, text in enumerate(hexes)))
    words = {True: "same", False: "different"}
    pairs = [(f"item-{i},item-{j}", words[bool(labels[i] == labels[j])]) for i in range(60) for j in range(i)]
    (files / "pairs.csv").write_text("one,other,verdict\n" + "".join(f"{ids},{word}\n" for ids, word in pairs))
    of_pairs = "thresholds", "--database-codes", files / "hashes.csv", "--pairs", files / "pairs.csv"
    labelled = hashbench(*of_pairs, "--fpr", 0.01, "--false-pairs", files / "false.csv")
    assert labelled.exit_code == 0, labelled.stderr
    found = pd.read_csv(files / "false.csv")
    assert {frozenset(row[:2]) for row in found.to_numpy().tolist()} == {
        frozenset((f"item-{i}", f"item-{j}")) for i, j in np.argwhere(is_false)
    }


def test_a_background_of_unlabelled_codes_gives_the_false_positive_rates(hashbench, of_files, files, expected):
    rng = np.random.default_rng(7)
    others = rng.random((400, N_BITS)) < 0.5
    np.save(files / "others.npy", others)
    distance = (others[:, None] != others).sum(axis=2)[np.triu_indices(400, 1)]
    asked = *of_files, "--background", files / "others.npy", "--fpr", 0.01, "--corpus-size", 1000, "--format", "json"
    found = json.loads(hashbench(*asked).stdout)["false positive rate 0.01"]
    radius = found["radius"]
    assert found["recall"] == pytest.approx(expected.at(radius).recall)
    of_others = found["background"]
    assert of_others["n_false"] == (distance <= radius).sum()
    assert of_others["fpr"] == pytest.approx((distance <= radius).mean())
    assert of_others["fpr_low"] < of_others["fpr"] < of_others["fpr_high"] <= 0.01
    assert (distance <= radius + 1).mean() > 0.009  # the next radius has too many
    assert found["expected_false"]["per_query"][0] == pytest.approx(1000 * of_others["fpr"])
    table = pd.read_csv(StringIO(hashbench(*asked[:-1], "csv").stdout)).set_index("radius")
    assert table.loc[radius, "background_fpr_high"] == pytest.approx(of_others["fpr_high"], abs=1e-6)
    assert table["background_n_false"].tolist() == np.bincount(distance, minlength=N_BITS + 1).cumsum().tolist()
    few = hashbench(*of_files, "--background", files / "others.npy", "--fpr", 1e-9).stdout
    assert "without a false match" in few or "the upper bound of radius 0 is" in few
    np.save(files / "short.npy", others[:, :8])
    refused = hashbench(*of_files, "--background", files / "short.npy")
    assert (refused.exit_code, "(400, 8), a column for each bit, and codes of 16" in refused.stderr) == (1, True)


def test_outputs_never_replace_the_background_and_without_a_radius_there_are_no_false_pairs(hashbench, files):
    np.save(files / "others.npy", np.load(files / "codes.npy"))
    before = (files / "others.npy").read_bytes()
    alone = "thresholds", "--database-codes", files / "codes.npy"
    (files / "none.csv").write_text("one,other,same\n0,1,0\n2,3,0\n")
    background = "--pairs", files / "none.csv", "--background", files / "others.npy"
    refused = hashbench(*alone, *background, "--false-pairs", files / "others.npy")
    assert (refused.exit_code, (files / "others.npy").read_bytes()) == (2, before)
    lacking = hashbench(*alone, "--pairs", files / "none.csv", "--false-pairs", files / "false.csv")
    assert (lacking.exit_code, (files / "false.csv").exists()) == (1, False)
    assert "no radius was found whose false matches --false-pairs could write: no pair is relevant." in lacking.stderr

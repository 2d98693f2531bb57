"""`hashbench compare` of two codes: two codes of the same items, in each way to name them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from helpers.documents import blocks, commands
from scipy.stats import ttest_rel

import hashbench as package
from hashbench.bits import pack
from hashbench.scoring.comparison import holm
from hashbench.store import hdf5

N_BITS = 12
AGES = ("old", "new")


@pytest.fixture
def arrays(empty_folder):
    """Old and new codes in two folders and in two files, and labels."""
    rng = np.random.default_rng(0)
    labels = {"ql": rng.integers(0, 4, 30), "dl": rng.integers(0, 4, 120)}
    centres = rng.random((4, N_BITS)) > 0.5
    arrays = dict(labels)
    for age, noise in (("old", 0.2), ("new", 0.05)):
        Path(age).mkdir()
        for role in "qd":
            base = arrays[f"old-{role}"] if age == "new" else centres[labels[f"{role}l"]]
            arrays[f"{age}-{role}"] = base ^ (rng.random(base.shape) < noise)
            np.save(f"{age}/{role}.npy", arrays[f"{age}-{role}"])
        np.savez(f"{age}.npz", query=arrays[f"{age}-q"], database=arrays[f"{age}-d"])
    for role in ("ql", "dl"):
        np.save(f"{role}.npy", labels[role])
    return arrays


OF_LABELS = ["--query-labels", "ql.npy", "--database-labels", "dl.npy"]
IN_FOLDERS = ["compare", "new", "--query-codes", "old/q.npy", "--database-codes", "old/d.npy"]
IN_FILES = ["compare", "new.npz", "--query-codes", "old.npz:query", "--database-codes", "old.npz:database"]


def printed(hashbench, *command):
    done = hashbench(*command, "--format", "json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("command", [IN_FOLDERS, IN_FILES], ids=["folders", "files"])
def test_bits_and_scores_are_those_of_python(hashbench, arrays, command):
    content = printed(hashbench, *command, *OF_LABELS, "--metric", "AP", "--metric", "P@5")
    for role, letter in (("queries", "q"), ("database", "d")):
        is_different = arrays[f"old-{letter}"] != arrays[f"new-{letter}"]
        found = content[role]
        assert found["items_per_bit"] == is_different.sum(axis=0).tolist()
        assert found["n_items"] == len(is_different)
        assert found["mean_bits"] == pytest.approx(is_different.sum(axis=1).mean())
        assert found["most_bits"] == is_different.sum(axis=1).max()
        assert found["share_equal"] == pytest.approx((~is_different.any(axis=1)).mean())
    ages = {"these": "old", "other": "new"}
    assert [(of["queries"], of["database"]) for of in content["scores"]] == [(q, d) for q in ages for d in ages]
    for of in content["scores"]:
        pair = arrays[f"{ages[of['queries']]}-q"], arrays[f"{ages[of['database']]}-d"]
        expected = package.evaluate(*pair, (arrays["ql"], arrays["dl"]), ["AP", "P@5"]).summary
        assert of["scores"].keys() == {"AP", "P@5"}
        for name, values in of["scores"].items():
            assert [values[part] for part in ("mean", "tie_sd", "low", "high")] == pytest.approx(
                [getattr(expected[name], part) for part in ("mean", "tie_sd", "low", "high")], abs=1e-12
            )


def test_the_answer_is_that_of_comparing_both_scored_alone(hashbench, arrays):
    content = printed(hashbench, *IN_FOLDERS, *OF_LABELS, "--metric", "AP", "--metric", "P@5")["differences"]
    evaluations = [
        package.evaluate(arrays[f"{age}-q"], arrays[f"{age}-d"], (arrays["ql"], arrays["dl"]), ["AP", "P@5"])
        for age in ("old", "new")
    ]
    for metric, answer in content.items():
        scores = [evaluation.scores[metric].mean for evaluation in evaluations]
        test = ttest_rel(*scores)
        assert (answer["value"], answer["p"]) == pytest.approx((np.mean(scores[0] - scores[1]), test.pvalue))
        assert [answer["low"], answer["high"]] == pytest.approx([*test.confidence_interval(0.95)])
        assert answer["is_shown"] == (answer["p_holm"] < 0.05)
        assert answer["sentence"].startswith(f"{Path('old/d.npy')} is above {Path('new/d.npy')} by")
    assert [*content] == ["AP", "P@5"]
    p_values = [answer["p"] for answer in content.values()]
    assert [answer["p_holm"] for answer in content.values()] == pytest.approx(holm(p_values))
    text = " ".join(hashbench(*IN_FOLDERS, *OF_LABELS, "--metric", "AP", "--metric", "P@5").stdout.split())
    assert content["AP"]["sentence"] in text
    assert "p is corrected for the 2 metrics by Holm's method; the intervals are not corrected." in text
    one = ["compare", "other", "--query-codes", "one.npy", "--database-codes", "old/d.npy"]
    Path("other").mkdir()
    for name, age in (("one.npy", "old"), ("other/one.npy", "new")):
        np.save(name, arrays[f"{age}-q"][:1])
    np.save("other/d.npy", arrays["new-d"])
    np.save("label.npy", arrays["ql"][:1])
    (answer,) = printed(hashbench, *one, "--query-labels", "label.npy", *OF_LABELS[2:])["differences"].values()
    assert answer["sentence"].startswith("AP: no interval: ")


def test_without_labels_only_bits_are_compared(hashbench, arrays):
    content = printed(hashbench, *IN_FOLDERS)
    assert (content["scores"], content["differences"]) == ([], {})
    assert content["queries"]["n_items"] == 30
    content = printed(hashbench, "compare", "new/d.npy", "--database-codes", "old/d.npy")
    assert content["items"]["items_per_bit"] == (arrays["old-d"] != arrays["new-d"]).sum(axis=0).tolist()
    content = printed(hashbench, "compare", "new.npz:database", "--query-codes", "old/d.npy")
    assert content["items"]["mean_bits"] == pytest.approx((arrays["old-d"] != arrays["new-d"]).sum(axis=1).mean())


@pytest.mark.usefixtures("empty_folder")
def test_the_command_of_the_page_counts_bits_and_scores_both_versions_with_each_other(hashbench):
    page, scope = "docs/own-codes.md", {}
    for code in blocks(page, "python")[:2]:
        exec(code, scope)
    (command,) = [words for words in commands(page) if words[:1] == ["compare"] and "--query-codes" in words]
    printed = hashbench(*command).stdout
    for role, rows in (("queries", slice(40)), ("database", slice(40, None))):
        differs = (scope["bits"] ^ scope["changed"])[rows]
        n_bits, n_items = differs.sum(axis=1), differs.sum(axis=0)
        most = [f"{bit} \\({n_items[bit] / len(differs):.4f}\\)" for bit in np.argsort(-n_items, kind="stable")[:3]]
        worst = ", ".join(most[: (n_items > 0).sum()])
        line = (
            f" {role} +{len(n_bits)} +{(n_bits == 0).mean():.4f} +{n_bits.mean():.4f} +{n_bits.max()} of 24 +{worst}\n"
        )
        assert re.search(line, printed)
    assert re.findall(r"^ (these|other) +(these|other) +AP ", printed, re.MULTILINE) == [
        ("these", "these"), ("these", "other"), ("other", "these"), ("other", "other"),
    ]  # fmt: skip


def test_two_codes_files_of_hashbench_are_compared_on_their_dataset(hashbench, digits_data, tmp_path):
    assert hashbench("encode", "--method", "sign", "--bits", 16, "--dataset", "digits").exit_code == 0
    (path,) = digits_data.rglob("sign-16-s0.h5")
    with hdf5.open_codes(path) as codes:
        changed, database, made = codes.query[:], codes.database[:], codes.made
    changed[0] ^= pack(np.eye(16, dtype=bool)[4:5])[0]  # a bit of the first query
    other = tmp_path / "other.h5"
    hdf5.write_codes(hdf5.Codes(changed, database, made), other)
    content = printed(hashbench, "compare", path, other, "--metric", "AP")
    assert content["queries"]["items_per_bit"] == [0, 0, 0, 0, 1] + 11 * [0]
    assert content["database"]["share_equal"] == 1
    these, mixed, others, both = [of["scores"]["AP"]["mean"] for of in content["scores"]]
    assert these == mixed != others == both


def test_items_searched_among_themselves_leave_themselves_out(hashbench, arrays):
    own = ["compare", "new/d.npy", "--query-codes", "old/d.npy", "--database-codes", "old/d.npy"]
    labels = ["--query-labels", "dl.npy", "--database-labels", "dl.npy", "--exclude-self"]
    content = printed(hashbench, *own, *labels)
    classes, found = arrays["dl"], [of["scores"]["AP"]["mean"] for of in content["scores"]]
    ids = np.arange(len(classes))
    for number, (query, database) in enumerate((q, d) for q in ("old-d", "new-d") for d in ("old-d", "new-d")):
        codes = arrays[query], arrays[database], (classes, classes)
        expected = package.evaluate(*codes, ["AP"], exclude_same_id=(ids, ids))["AP"].mean
        if query == database:
            assert package.evaluate(*codes, ["AP"], exclude_self=True)["AP"].mean == pytest.approx(expected)
        assert found[number] == pytest.approx(expected)
    assert content["differences"]["AP"]["value"] == pytest.approx(found[0] - found[3])
    differ = hashbench(*IN_FOLDERS, *OF_LABELS, "--exclude-self")
    assert differ.exit_code == 1
    assert "excluding self-matches needs the same items as queries and database, in the same order" in differ.stderr
    np.save("other-labels.npy", classes[::-1])
    differ = hashbench(*own, *labels[:2], "--database-labels", "other-labels.npy", "--exclude-self")
    assert differ.exit_code == 1
    assert "but their labels differ" in differ.stderr


def test_a_metric_without_an_interval_says_so_and_leaves_the_others(hashbench, arrays):
    radius = ["--metric", "P@r1:skip", "--metric", "AP"]  # which is defined for other queries of the old codes
    content = printed(hashbench, *IN_FOLDERS, *OF_LABELS, *radius)["differences"]
    assert content["P@r1:skip"]["value"] is None
    assert content["P@r1:skip"]["sentence"].startswith("P@r1:skip: no interval: P@r1:skip is defined for different")
    assert content["AP"]["value"] > 0
    labels = np.where(np.arange(30) == 3, arrays["dl"][0], 9)  # one query with relevant items
    np.save("one.npy", labels)
    one = ["--query-labels", "one.npy", *OF_LABELS[2:]]
    done = hashbench(*IN_FOLDERS, *one)
    assert done.exit_code == 0, done.stderr
    assert "AP: no interval: AP is defined for 1 query" in " ".join(done.stdout.split())


def test_codes_are_compared_by_labelled_pairs_and_by_class(hashbench, arrays):
    rows = [(i, j, int(arrays["dl"][i] == arrays["dl"][j])) for i in range(60) for j in range(i)]
    Path("pairs.csv").write_text("one,other,same\n" + "".join(f"{i},{j},{same}\n" for i, j, same in rows))
    np.save("short.npy", arrays["new-d"][:, :9])
    content = printed(hashbench, "compare", "short.npy", "--database-codes", "old/d.npy", "--pairs", "pairs.csv")
    of_both = [package.pair_thresholds(codes, codes, rows) for codes in (arrays["old-d"], arrays["new-d"][:, :9])]
    for found, expected in zip(content, package.compare_pairs(*of_both), strict=True):
        assert expected._asdict().items() <= found.items()
        assert (found["first_codes"], found["second_codes"]) == ("d.npy", "short.npy")
    order = np.random.default_rng(0).permutation(60)  # with ids, rows may be in any order
    for name, codes, rows_of in (("a", "old-d", np.arange(60)), ("b", "new-d", order)):
        lines = (f"{row},{''.join(map(str, arrays[codes][row].astype(int)))}\n" for row in rows_of)
        Path(f"{name}.csv").write_text("id,code\n" + "".join(lines))
    np.save("new.npy", arrays["new-d"])
    by_row = printed(hashbench, "compare", "new.npy", "--database-codes", "old/d.npy", "--pairs", "pairs.csv")
    by_id = printed(
        hashbench, "compare", "b.csv", "--database-codes", "a.csv", "--pairs", "pairs.csv", "--bits", N_BITS
    )
    numbers = "first", "second", "value", "low", "high"
    assert [[one[key] for key in numbers] for one in by_id] == [[one[key] for key in numbers] for one in by_row]
    scored = [
        package.evaluate(arrays[f"{age}-q"], arrays[f"{age}-d"], (arrays["ql"], arrays["dl"]), ["AP"]) for age in AGES
    ]
    expected = package.compare(*scored, clusters=arrays["ql"])["AP"]
    found = printed(hashbench, *IN_FOLDERS, *OF_LABELS, "--by", "class")["differences"]["AP"]
    assert (found["low"], found["high"], found["n_clusters"]) == pytest.approx((expected.low, expected.high, 4))


def test_arrays_of_one_file_are_named_by_their_keys(hashbench, arrays):
    np.savez("both.npz", old=arrays["old-d"], new=arrays["new-d"], labels=arrays["dl"])
    own = ["compare", "both.npz:new", "--query-codes", "both.npz:old", "--database-codes", "both.npz:old"]
    labels = ["--query-labels", "both.npz:labels", "--database-labels", "both.npz:labels"]
    content = printed(hashbench, *own, *labels)["differences"]
    assert content["AP"]["sentence"].startswith("both.npz:old is above both.npz:new by")

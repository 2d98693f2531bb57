import re
from collections import Counter
from functools import partial
from pathlib import Path

import pandas as pd
import pytest
from helpers import table_rows
from helpers.table_rows import markdown_rows, parsed, table

from hashbench import registry
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.reports import tables
from hashbench.reports.tables.published import WHOSE, nearest, published_values
from hashbench.scoring.metrics import get_metric
from hashbench.unseen import split_name

FILE = Path(tables.__file__).with_name("published.csv")


def cell(method, n_bits, value, dataset="cifar10-s1", metric="AP", params="{}", **changes):
    ranges = {"tie_sd": 0.0001, "low": value - 0.001, "high": value + 0.001, "n_queries": 1000}
    place = {"dataset": dataset, "features": "squeezenet (JPEG)", "metric": metric, "params": params}
    return table_rows.cell(method, n_bits, value, **{**place, **ranges, **changes})


def block(made, title):
    """Return the lines of one Markdown block by their first cell."""
    _, _, after = made.to_markdown().partition(f"## {title}\n")
    return markdown_rows(after.partition("\n## ")[0])


DISPERSION = '{"objective": "dispersion"}'
PAPER = ["BRE", "MACHash", "FastHash", "StructHash", "DPSH", "DTSH", "MIHash", "TALR-AP"]


def test_every_number_of_the_file_is_read_and_has_a_place():
    rows = parsed(FILE.read_text())
    assert [(one.method, one.n_bits, one.value) for one in published_values()] == [
        (row["method"], int(row["bits"]), row["value"]) for row in rows
    ]
    assert {one.layout for one in published_values()} == {
        "",
        *(name for name, layout in tables.LAYOUTS.items() if layout.source),
    }
    assert {one.group for one in published_values()} <= set(GROUPS)
    assert {one.whose for one in published_values()} == set(WHOSE)
    assert all(0 <= float(one.value) <= 1 for one in published_values())
    for one in published_values():
        assert get_metric(one.our_metric).name == one.our_metric


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (["source", "dataset", "setting", "method"], ["our_dataset", "dataset_differs"]),
        (["dataset", "setting"], ["our_dataset"]),
        (["source", "metric"], ["our_metric", "metric_differs"]),
        (["method"], ["our_method", "group", "our_params", "stated"]),
        (["backbone"], ["same_features", "backbone_in_words"]),
    ],
)
def test_the_papers_words_mean_the_same_of_ours_in_every_row(theirs, ours):
    rows = pd.read_csv(FILE, keep_default_na=False)
    assert rows[[*theirs, *ours]].drop_duplicates()[theirs].duplicated().sum() == 0


def test_sources_have_as_many_values_as_in_their_tables():
    counts = Counter(one.source.partition(" ")[0] for one in published_values())
    assert counts == {
        **{"TALR": 180, "mLGAP": 16, "CSQ": 15, "OrthoHash": 116, "ADSH": 24, "TreezzZ/ADSH_PyTorch": 4, "HyP2": 112},
        **{"DeepHash-pytorch": 37, "CISiP-FIRe": 24, "BiHalf": 2, "SDC": 18, "SHC": 72},
        **{"supervised-hashing-baselines": 4, "DSH_Analysis": 360},
    }


def test_no_value_stands_twice():
    rows = Counter(tuple(one[:8]) for one in published_values())
    assert [row for row, count in rows.items() if count > 1] == []


def test_a_table_has_one_value_of_its_own_paper_for_each_place():
    own = Counter((one.layout, one.place) for one in published_values() if one.source.startswith(("TALR", "mLGAP")))
    assert set(own.values()) == {1}


def test_modern_values_are_of_datasets_that_are_here():
    older = ("TALR", "mLGAP")
    modern = [one for one in published_values() if one.our_dataset and not one.source.startswith(older)]
    assert {split_name(one.our_dataset)[0] for one in modern} <= set(registry.dataset_names())
    here = {one.our_method for one in modern} & set(registry.method_names())
    assert here >= {"csq", "orthohash", "greedyhash", "greedyhash-unsupervised", "dpn", "dch", "adsh", "dfh", "bihalf"}
    assert here >= {"hyp2", "mdsh", "itq", "hashnet", "dtsh", "dpsh", "dsh"}


@pytest.mark.parametrize("name", ["digits", "digits-pairs", "constant", "random"])
def test_names_that_no_paper_uses_are_not_taken_for_its(name):
    assert name not in {word for one in published_values() for word in (one.our_dataset, one.our_method)}


def test_groups_of_methods_that_are_here_are_their_own():
    for one in published_values():
        if one.our_method in registry.method_names():
            assert one.group == registry.get_method(one.our_method).group


@pytest.mark.parametrize(
    ("name", "dataset", "metric", "lengths"),
    [
        ("table1", "cifar10-s1", "AP", [12, 24, 32, 48]),
        ("table1", "cifar10-s2", "AP", [16, 24, 32, 48]),
        ("table1", "nuswide", "AP", [12, 24, 32, 48]),
        ("table1", "nuswide", "AP@5000", [12, 24, 32, 48]),
        ("table2", "imagenet100", "AP@1000", [16, 32, 48, 64]),
        ("table3", "nuswide", "NDCG", [16, 32, 48, 64]),
        ("table3", "labelme", "NDCG", [16, 32, 48, 64]),
    ],
)
def test_columns_are_the_papers_with_its_values_beside_ours(name, dataset, metric, lengths):
    cells = [cell("pca-rr", n_bits, n_bits / 1000, dataset, metric) for n_bits in range(4, 132, 4)]
    shown = block(table(*cells, name=name), f"{dataset} (squeezenet (JPEG)): {metric}")
    assert shown["method"] == [text for n in lengths for text in (f"{n} bits", "paper")]
    assert shown["pca-rr"] == [text for n in lengths for text in (f"{n / 1000:.4f}", "")]  # no paper has it


def test_table_1_for_cifar10_has_the_papers_rows():
    shown = block(table(cell("lsh", 12, 0.147)), "cifar10-s1 (squeezenet (JPEG)): AP")
    assert set(PAPER) < set(shown)
    assert shown["BRE"] == ["-", "0.361", "-", "0.448", "-", "0.502", "-", "0.533"]
    assert shown["TALR-AP"] == ["-", "0.732", "-", "0.789", "-", "0.800", "-", "0.826"]


def test_our_value_takes_the_place_of_the_papers_row():
    shown = block(table(cell("dtsh", 12, 0.6), cell("lsh", 12, 0.1)), "cifar10-s1 (squeezenet (JPEG)): AP")
    assert shown["dtsh"] == ["**0.6000**", "0.725 ↓", "-", "0.773", "-", "0.781", "-", "0.810"]
    assert "DTSH" not in shown


def test_agreement_is_told_in_the_order_of_code_lengths():
    runs = ("dpsh", 32), ("dtsh", 32), ("mihash", 12), ("talr-ap", 12), ("mihash", 48), ("talr-ap", 48)
    told = table(*(cell(method, n_bits, 0.1 + n / 10) for n, (method, n_bits) in enumerate(runs))).to_markdown()
    (agreement,) = re.findall(r"Kendall's tau.*?: (.*)\.$", told, re.MULTILINE)
    assert re.findall(r"(\d+) bits", agreement)[:3] == ["12", "32", "48"]


def test_groups_stand_in_the_papers_order():
    names = list(block(table(cell("constant", 12, 0.1), cell("lsh", 12, 0.1)), "cifar10-s1 (squeezenet (JPEG)): AP"))
    groups = [name.strip("*") for name in names if name.startswith("*")]
    assert groups == list(GROUPS)
    assert names.index("*pair-based*") < names.index("DPSH") < names.index("*triplet-based*") < names.index("DTSH")


def test_published_csv_pairs_every_number_with_ours():
    made = table(cell("dpsh", 12, 0.7), cell("dpsh", 12, 0.5, seed=1), cell("dpsh", 24, 0.7), cell("lsh", 12, 0.1))
    rows = parsed(made.to_published_csv())
    own = [row for row in rows if row["source"].startswith("TALR")]
    assert rows[: len(own)] == own
    assert len(own) == sum(one.source.startswith("TALR") and one.table == "1" for one in published_values())
    ours = [row for row in rows if row["ours"]]
    assert [(row["method"], row["n_bits"], row["published"], row["our_method"]) for row in ours] == [
        ("DPSH", "12", "0.720", "dpsh"),
        ("DPSH", "24", "0.757", "dpsh"),
    ]
    assert [(row["ours"], row["spread"], row["difference"]) for row in ours] == [
        ("0.600000", "0.141421", "-0.120000"),  # sqrt(0.02): both 0.1 off their mean
        ("0.700000", "", "-0.057000"),
    ]
    assert ours[0]["differs"] == (
        "features squeezenet (JPEG) instead of a fine-tuned VGG-F; another draw of queries and training items"
    )
    (other,) = [row for row in rows if (row["method"], row["setting"], row["n_bits"]) == ("BRE", "S1", "12")]
    assert [other[key] for key in ("our_dataset", "our_method", "ours", "differs")] == ["cifar10-s1", "bre", "", ""]


def test_each_of_our_features_and_fingerprints_is_a_line_of_its_own():
    made = table(
        *(cell("bre", 12, 0.3, features=features) for features in ("gist", "vgg-f")),
        cell("bre", 12, 0.4, dataset_fingerprint="bbbb"),
    )
    rows = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    drawn = "another draw of queries and training items"
    assert [(row["our_features"], row["dataset_fingerprint"], row["differs"]) for row in rows] == [
        ("gist", "aaaa", f"features gist instead of VGG-F fc7; {drawn}"),
        ("squeezenet (JPEG)", "bbbb", f"features squeezenet (JPEG) instead of VGG-F fc7; {drawn}"),
        ("vgg-f", "aaaa", drawn),
    ]


def test_parameters_other_than_the_default_are_a_difference():
    made = table(cell("dpsh", 12, 0.7, params='{"eta": 5}'))
    (row,) = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    assert row["differs"].endswith("; parameter eta=5")


@pytest.mark.parametrize(
    ("params", "differs"),
    [
        ('{"head": "mlp"}', "a head (mlp) on frozen features squeezenet (JPEG) instead of a fine-tuned VGG-F"),
        ('{"head": "linear"}', "a head (linear) on frozen features squeezenet (JPEG) instead of a fine-tuned VGG-F"),
        ('{"backbone": "vgg-f", "head": "mlp"}', "features squeezenet (JPEG) instead of a fine-tuned VGG-F"),
    ],
)
def test_head_on_frozen_features_is_no_network_trained_as_a_whole(params, differs):
    made = table(cell("dpsh", 12, 0.7, params=params))
    (row,) = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    assert row["differs"].startswith(f"{differs}; ")
    assert "parameter head" not in row["differs"]
    assert f"What differs: {differs}; " in made.to_markdown()


def test_steepness_that_the_paper_states_is_a_difference():
    params = '{"alpha": 1.0, "continuation": 0}'
    made = table(cell("talr-ap", 12, 0.5, params=params), name="continuation")
    (row,) = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    assert row["differs"].endswith("; alpha=1.0 instead of 40")
    made = table(cell("talr-ap", 12, 0.5, params=params.replace("1.0", "40")), name="continuation")
    (row,) = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    assert "alpha" not in row["differs"]


def test_our_names_of_the_papers_methods():
    older = [one for one in published_values() if one.source.startswith(("TALR", "mLGAP"))]
    assert {one.method: one.our_method for one in older} == {
        **{name: name.lower() for name in PAPER},
        **{"HashNet": "hashnet", "TALR-NDCG": "talr-ndcg", "DSH original (eq. 16)": "dsh"},
        **{f"TALR-AP (alpha{rest})": "talr-ap" for rest in ("=40 fixed", "->inf continuation")},
        **{f"DSH dispersion (eq. {number})": "dsh" for number in (20, 25)},
    }


def test_continuation_table_tells_the_papers_two_rows_apart():
    on, off = '{"continuation": 5}', '{"continuation": 0}'
    made = table(
        *(cell("talr-ap", 12, 0.5, params=off), cell("talr-ap", 12, 0.6, params=on), cell("lsh", 12, 0.9)),
        name="continuation",
    )
    rows = [row for row in parsed(made.to_published_csv()) if row["ours"]]
    assert [(row["published"], row["ours"]) for row in rows] == [("0.732", "0.500000"), ("0.751", "0.600000")]
    shown = block(made, "cifar10-s1 (squeezenet (JPEG)): AP")
    assert [shown[name][:2] for name in ("talr-ap", "talr-ap continuation=5")] == [
        ["0.5000", "0.732 ↓"],
        ["**0.6000**", "0.751 ↓"],
    ]
    assert "lsh" not in shown


def test_mlgap_stands_beside_ap_and_names_its_radius():
    near = partial(cell, n_bits=12, dataset="cifar100", metric="LGAP@r2")
    made = table(
        *(cell("dsh", 12, 0.5, "cifar100"), cell("lsh", 12, 0.5, "cifar100"), cell("itq", 12, 0.5, "cifar100")),
        *(near("dsh", value=0.1), near("lsh", value=0.2), near("dsh", value=0.3, params=DISPERSION)),
        name="mlgap",
    )
    shown = block(made, "cifar100 (squeezenet (JPEG)): LGAP@r2 beside AP")
    names = [text for n in (12, 24) for text in (f"{n} bits LGAP@r2", "paper", f"{n} bits AP", "paper")]
    assert shown["method"] == names
    assert shown["dsh"] == ["0.1000", "0.0637 ↑", "**0.5000**", "0.1514 ↑", "-", "0.0660", "-", "0.1556"]
    assert shown["dsh objective=dispersion"][:2] == ["**0.3000**", "0.1703 ↑"]
    assert "lsh" in shown  # open to every method
    assert "itq" not in shown  # which has no LGAP
    assert "radius 2, the paper does not tell its own" in made.to_markdown()
    assert "does not say how its mAP breaks ties" in made.to_markdown()
    assert "mLGAP is the mean of LGAP@r2, of radius 2; the paper does not state its radius.}" in made.to_latex()
    shown = block(made, "cifar10-s2: LGAP@r2 beside AP")  # not run, but in the paper
    assert shown["DSH original (eq. 16)"][:4] == ["-", "0.2633", "-", "0.6012"]
    assert "Paper: mLGAP (Ding et al.), CIFAR-10 (official split). Not run here." in made.to_markdown()


@pytest.mark.parametrize(("name", "words"), [("continuation", "AP of talr-ap"), ("mlgap", "LGAP@r2 or AP at")])
def test_table_without_rows_says_of_what_there_are_none(name, words):
    with pytest.raises(HashbenchError, match=f"no results for {name}: {words}"):
        table(cell("lsh", 12, 0.5), name=name)


@pytest.mark.parametrize(
    ("write", "way", "features"),
    [
        (tables.ResultTable.to_markdown, "## {0}: {1}\n", "(squeezenet (JPEG))"),
        (tables.ResultTable.to_latex, "\\caption{{{1} on {0}.}}", "(squeezenet, JPEG)"),
    ],
)
def test_papers_blocks_that_were_not_run_are_laid_out_with_its_values(write, way, features):
    text = write(table(cell("lsh", 12, 0.1), cell("lsh", 12, 0.1, "nuswide")))
    titles = (f"nuswide {features}", "AP"), ("cifar10-s2", "AP"), ("nuswide", "AP@5000")
    first, *at = [text.find(way.format(*title)) for title in titles]
    assert 0 < first < at[0] < at[1]
    assert "nuswide: AP\n" not in text
    assert text[at[0] :].count("Not run here.") == 2


def test_other_lengths_have_the_papers_values_where_it_has_them():
    made = table(cell("dpsh", 12, 0.7), cell("dpsh", 20, 0.7), n_bits=[20, 24])
    assert block(made, "cifar10-s1 (squeezenet (JPEG)): AP")["dpsh"] == ["0.7000", "", "-", "0.757"]


def modern(**changes):
    """A published value that no table's own paper has."""
    (one,) = [
        one for one in published_values() if one.source.startswith("OrthoHash rep") and one.our_dataset == "cifar10-s1"
    ]
    return one._replace(**{"stated": {}, "whose": "others", **changes})


@pytest.mark.parametrize(
    ("nearer", "other"),
    [
        ({"backbone": "AlexNet", "dataset_differs": "a; b"}, {"backbone": "ResNet-50", "dataset_differs": ""}),
        ({"dataset_differs": "a", "whose": "others"}, {"dataset_differs": "a; b", "whose": "authors"}),
        ({"whose": "authors", "stated": {"margin": 0.5}}, {"whose": "authors, quoted"}),
        ({"whose": "authors, quoted"}, {"whose": "others"}),
        ({"stated": {"margin": 0.4}}, {"stated": {"margin": 0.5}}),
        ({}, {}),  # the first
    ],
)
def test_of_several_values_of_one_place_the_nearest_is_kept(nearer, other):
    one, less = modern(value="0.1", **nearer), modern(value="0.2", **other)
    assert nearest([one, less], "squeezenet (JPEG)") == [one]
    if nearer:
        assert nearest([less, one], "squeezenet (JPEG)") == [one]
    elsewhere = modern(n_bits=12)
    assert nearest([one, elsewhere, less], "squeezenet (JPEG)") == [one, elsewhere]


def test_large_networks_are_nearer_to_large_ones():
    large, small = modern(backbone="ResNet-50"), modern(backbone="AlexNet")
    assert nearest([small, large], "resnet18") == [large]
    assert nearest([large, small], "gist") == [small]


def test_values_of_other_papers_stand_beside_ours_and_say_whose_they_are():
    made = table(*(cell("adsh", n_bits, 0.5) for n_bits in (12, 24, 32, 48, 64)), cell("lsh", 12, 0.1))
    shown = block(made, "cifar10-s1 (squeezenet (JPEG)): AP")
    assert shown["method"] == [text for n in (12, 24, 32, 48) for text in (f"{n} bits", "paper")]  # as the paper has
    assert shown["adsh"][1::2] == ["0.8939 ↓", "0.9243 ↓", "0.9330 ↓", "0.921 ↓"]  # that of codes by the network
    assert shown["DCH"] == ["-", "", "-", "", "-", "", "-", "0.810"]
    text = made.to_markdown()
    assert "ADSH at 12, 24, 32 bits: ADSH repository README, MatConvNet (Jiang & Li, AAAI 2018), CIFAR-10 (S1" in text
    assert "database codes learned from the database's labels; ties broken by a sort. ADSH at 48 bits: DeepHash" in text
    assert "Of 40 published values 4 are compared:" in text  # of the block: TALR's 32, ADSH's 4 and 4 of other methods
    rows = [row for row in parsed(made.to_published_csv()) if not row["source"].startswith("TALR")]
    assert Counter(row["method"] for row in rows) == {"ADSH": 4, "DFH": 1, "GreedyHash": 1, "DPN": 1, "DCH": 1}
    assert "Of 104 published values of this table 4 are compared:" in text  # TALR's 96, once


def test_block_that_the_own_paper_lacks_has_columns_of_ours_with_other_papers_values():
    cells = [cell("csq", n_bits, 0.5, "mscoco", "AP@5000") for n_bits in (16, 20, 64)]
    shown = block(table(*cells), "mscoco (squeezenet (JPEG)): AP@5000")
    assert shown["method"] == ["16 bits", "paper", "64 bits", "paper"]
    assert shown["csq"] == ["0.5000", "0.796 ↓", "0.5000", "0.861 ↓"]
    assert "Papers: those below" in table(*cells).to_markdown()


def test_datasets_that_were_not_run_are_laid_out_for_the_own_paper_alone():
    text = table(cell("lsh", 12, 0.1)).to_markdown()
    assert "## nuswide: AP" in text
    assert "mscoco" not in text

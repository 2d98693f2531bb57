import json
from collections import Counter
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import table_rows
from helpers.table_rows import block_rows, parsed, table

from hashbench import registry
from hashbench.errors import HashbenchError
from hashbench.method import GROUPS
from hashbench.reports import tables
from hashbench.reports.tables.published import WHOSE, Pair, count_verdicts, nearest, published_values
from hashbench.scoring.metrics import get_metric

FILE = Path(tables.__file__).with_name("published.csv")


def cell(method, n_bits, value, dataset="cifar10-s1", metric="AP", params="{}", **changes):
    ranges = {"tie_sd": 0.0001, "low": value - 0.001, "high": value + 0.001, "n_queries": 1000}
    place = {"dataset": dataset, "features": "squeezenet (JPEG)", "metric": metric, "params": params}
    return table_rows.cell(method, n_bits, value, **{**place, **ranges, **changes})


def block(result_table, title):
    """Return the lines of one Markdown block by their first cell."""
    return block_rows(result_table.to_markdown(), f"{title}\n")


def compared_rows(*cells, name="table1"):
    """Return the rows of the CSV beside the paper that have a value of ours."""
    return [row for row in parsed(table(*cells, name=name).to_published_csv()) if row["ours"]]


CIFAR10 = "cifar10-s1 (squeezenet (JPEG)): AP"
OLDER = ("TALR", "mLGAP")  # the papers that have tables of their own


def test_every_number_of_the_file_is_read_and_has_a_place():
    values = published_values()
    assert [(value.method, str(value.n_bits), value.value) for value in values] == [
        (row["method"], row["bits"], row["value"]) for row in parsed(FILE.read_text())
    ]
    with_papers = {name for name, layout in tables.LAYOUTS.items() if layout.source}
    assert {value.layout for value in values} == {"", *with_papers}
    assert {value.group for value in values} <= set(GROUPS)
    assert {value.whose for value in values} == set(WHOSE)
    for value in values:
        assert 0 <= float(value.value) <= 1
        assert get_metric(value.our_metric).name == value.our_metric
        if value.our_method in registry.method_names():
            assert value.group == registry.get_method(value.our_method).group


@pytest.mark.parametrize(
    ("paper_columns", "our_columns"),
    [
        (["source", "dataset", "setting", "method"], ["our_dataset", "dataset_differs"]),
        (["dataset", "setting"], ["our_dataset"]),
        (["source", "metric"], ["our_metric", "metric_differs"]),
        (["method"], ["our_method", "group", "our_params", "stated"]),
        (["backbone"], ["same_features", "backbone_in_words"]),
    ],
)
def test_the_papers_words_mean_the_same_of_ours_in_every_row(paper_columns, our_columns):
    rows = pd.read_csv(FILE, keep_default_na=False)
    assert rows[[*paper_columns, *our_columns]].drop_duplicates()[paper_columns].duplicated().sum() == 0


def test_no_value_is_listed_twice():
    assert set(Counter(value[:8] for value in published_values()).values()) == {1}
    own = Counter((value.layout, value.place) for value in published_values() if value.source.startswith(OLDER))
    assert set(own.values()) == {1}


@pytest.mark.parametrize(
    ("name", "dataset", "metric", "lengths"),
    [
        ("table1", "cifar10-s1", "AP", [12, 24, 32, 48]),
        ("table1", "nuswide", "AP@5000", [12, 24, 32, 48]),
        ("table2", "imagenet100", "AP@1000", [16, 32, 48, 64]),
        ("table3", "labelme", "NDCG", [16, 32, 48, 64]),
    ],
)
def test_columns_are_the_papers_with_its_values_beside_ours(name, dataset, metric, lengths):
    cells = [cell("pca-rr", n_bits, n_bits / 1000, dataset, metric) for n_bits in (12, 16, 20, 24, 32, 48, 64, 128)]
    shown = block(table(*cells, name=name), f"{dataset} (squeezenet (JPEG)): {metric}")
    assert shown["method"] == [text for n in lengths for text in (f"{n} bits", "paper")]
    assert shown["pca-rr"] == [text for n in lengths for text in (f"{n / 1000:.4f}", "")]  # no paper has it


def test_published_csv_pairs_every_number_with_ours():
    cells = cell("dpsh", 12, 0.7), cell("dpsh", 12, 0.5, seed=1), cell("dpsh", 24, 0.7), cell("lsh", 12, 0.1)
    rows = parsed(table(*cells).to_published_csv())
    own = [row for row in rows if row["source"].startswith("TALR")]
    assert rows[: len(own)] == own
    assert len(own) == sum(value.source.startswith("TALR") and value.table == "1" for value in published_values())
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
    (bre,) = [row for row in rows if (row["method"], row["setting"], row["n_bits"]) == ("BRE", "S1", "12")]
    assert [bre[key] for key in ("our_dataset", "our_method", "ours", "differs")] == ["cifar10-s1", "bre", "", ""]


def test_each_of_our_features_and_fingerprints_is_a_line_of_its_own():
    rows = compared_rows(
        cell("bre", 12, 0.3, features="gist"),
        cell("bre", 12, 0.3, features="vgg-f"),
        cell("bre", 12, 0.4, dataset_fingerprint="bbbb"),
    )
    drawn = "another draw of queries and training items"
    assert [(row["our_features"], row["dataset_fingerprint"], row["differs"]) for row in rows] == [
        ("gist", "aaaa", f"features gist instead of VGG-F fc7; {drawn}"),
        ("squeezenet (JPEG)", "bbbb", f"features squeezenet (JPEG) instead of VGG-F fc7; {drawn}"),
        ("vgg-f", "aaaa", drawn),
    ]


@pytest.mark.parametrize(
    ("params", "differs"),
    [
        ('{"head": "mlp"}', "a head (mlp) on frozen features squeezenet (JPEG) instead of a fine-tuned VGG-F"),
        ('{"backbone": "vgg-f", "head": "mlp"}', "features squeezenet (JPEG) instead of a fine-tuned VGG-F"),
    ],
)
def test_head_on_frozen_features_is_no_network_trained_as_a_whole(params, differs):
    dpsh = cell("dpsh", 12, 0.7, params=params)
    (row,) = compared_rows(dpsh)
    assert row["differs"].startswith(f"{differs}; ")
    assert "parameter head" not in row["differs"]
    assert f"What differs: {differs}; " in table(dpsh).to_markdown()


@pytest.mark.parametrize(
    ("name", "method", "params", "difference"),
    [
        ("table1", "dpsh", '{"eta": 5}', "; parameter eta=5"),  # not the default
        ("continuation", "talr-ap", '{"alpha": 1.0, "continuation": 0}', "; alpha=1.0 instead of 40"),  # the paper's
        ("continuation", "talr-ap", '{"alpha": 40, "continuation": 0}', ""),
        ("table1", "fasthash", '{"n_trees": 20}', "; n_trees=20 instead of 200 in the method's paper"),  # our default
        ("table1", "fasthash", '{"n_trees": 200, "learning_rate": 0.1}', "training items"),  # the paper's
    ],
)
def test_parameters_are_a_difference(name, method, params, difference):
    (row,) = compared_rows(cell(method, 12, 0.7, params=params), name=name)
    assert row["differs"].endswith(difference)
    assert ("alpha" in row["differs"]) == ("alpha" in difference)


@pytest.mark.parametrize(
    ("backbone", "weights", "difference"),
    [
        ("dsh-net", "random", "the paper does not say how its mAP breaks ties"),
        (
            "squeezenet",
            "b66bff10",
            "features images instead of a CNN of 3 + 2 layers trained from scratch; the paper does not say how its mAP "
            "breaks ties; backbone=squeezenet instead of dsh-net; weights=b66bff10 instead of random",
        ),
    ],
)
def test_the_papers_own_network_is_no_difference(backbone, weights, difference):
    params = json.dumps({"backbone": backbone, "head": "mlp", "objective": "dispersion", "weights": weights})
    values = [value for value in published_values() if value.source.startswith("mLGAP")]
    dispersed = next(
        value for value in values if value.method == "DSH dispersion (eq. 20)" and value.our_metric == "AP"
    )
    assert "; ".join(text for _, text in dispersed.differs("images", params)) == difference


def test_continuation_table_distinguishes_the_papers_two_rows():
    cells = [cell("talr-ap", 12, n / 10, params=f'{{"continuation": {steps}}}') for n, steps in ((5, 0), (6, 5))]
    rows = compared_rows(*cells, name="continuation")
    assert [(row["published"], row["ours"]) for row in rows] == [("0.732", "0.500000"), ("0.751", "0.600000")]
    shown = block(table(*cells, cell("lsh", 12, 0.9), name="continuation"), CIFAR10)
    assert shown["talr-ap"][:2] == ["0.5000", "0.732"]
    assert shown["talr-ap continuation=5"][:2] == ["**0.6000**", "0.751"]
    assert "lsh" not in shown


def test_continuation_table_compares_like_with_like_and_not_with_tuned_settings():
    default, steps = (cell("talr-ap", 12, n / 10, params=f'{{"continuation": {n}}}', tuned=0) for n in (0, 5))
    tuned = cell("talr-ap", 12, 0.9, params='{"alpha": 2.0, "continuation": 0}', tuned=9)
    shown = block(table(default, steps, tuned, name="continuation"), CIFAR10)
    assert (shown["talr-ap"][0], shown["talr-ap continuation=5"][0]) == ("0.0000", "**0.5000**")
    assert block(table(default, steps, tuned, name="table1"), CIFAR10)["talr-ap"][0] == "0.9000"


def test_mlgap_stands_beside_ap_and_names_its_radius():
    ap = partial(cell, n_bits=12, value=0.5, dataset="cifar100")
    lgap = partial(ap, metric="LGAP@r2")
    cells = [*map(ap, ("dsh", "lsh", "itq")), lgap("dsh", value=0.1), lgap("lsh", value=0.2)]
    cells.append(lgap("dsh", value=0.3, params='{"objective": "dispersion"}'))
    mlgap = table(*cells, name="mlgap")
    text = mlgap.to_markdown()
    shown = block(mlgap, "cifar100 (squeezenet (JPEG)): LGAP@r2 and AP")
    assert shown["method"] == ["12 bits LGAP@r2", "paper", "12 bits AP", "paper"]  # at 24, we have none
    assert shown["dsh"] == ["0.1000", "0.0637", "**0.5000**", "0.1514"]
    assert shown["dsh objective=dispersion"][:2] == ["**0.3000**", "0.1703"]
    assert "lsh" in shown  # open to every method
    assert "itq" not in shown  # which has no LGAP
    assert "radius 2, the paper states none" in text
    assert "does not say how its mAP breaks ties" in text
    assert "mLGAP is the mean of LGAP@r2, of radius 2; the paper does not state its radius.}" in mlgap.to_latex()


def test_table_without_rows_says_of_what_there_are_none():
    with pytest.raises(HashbenchError, match=r"no results for continuation: AP at.*--method talr-ap "):
        table(cell("lsh", 12, 0.5), name="continuation")


def modern(**changes):
    """A published value that no table's own paper has."""
    values = [value for value in published_values() if value.source.startswith("OrthoHash rep")]
    (value,) = [value for value in values if value.our_dataset == "cifar10-s1"]
    return value._replace(**{"stated": {}, "whose": "others", **changes})


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
    near, far, elsewhere = modern(value="0.1", **nearer), modern(value="0.2", **other), modern(n_bits=12)
    assert nearest([near, elsewhere, far], "squeezenet (JPEG)") == [near, elsewhere]
    if nearer:
        assert nearest([far, near], "squeezenet (JPEG)") == [near]


def test_values_of_other_papers_stand_beside_ours_and_say_whose_they_are():
    table1 = table(*(cell("adsh", n_bits, 0.5) for n_bits in (12, 24, 32, 48, 64)), cell("lsh", 12, 0.1))
    shown = block(table1, CIFAR10)
    assert shown["method"] == [text for n in (12, 24, 32, 48) for text in (f"{n} bits", "paper")]  # as the paper has
    assert shown["adsh"][1::2] == ["", "", "", "0.921"]  # others are of codes learned from the database's labels
    assert shown["DCH"] == ["-", "", "-", "", "-", "", "-", "0.810"]
    text = table1.to_markdown()
    assert "ADSH at 48 bits: DeepHash-pytorch README (third-party" in text
    assert "codes learned from" not in text
    assert "DFH at 48 bits, GreedyHash at 48 bits: DeepHash-pytorch README (quoting the paper)" in text
    rows = [row for row in parsed(table1.to_published_csv()) if not row["source"].startswith("TALR")]
    assert Counter(row["method"] for row in rows) == {"ADSH": 1, "DFH": 1, "GreedyHash": 1, "DPN": 1, "DCH": 1}


def test_block_that_the_own_paper_lacks_has_columns_of_ours_with_other_papers_values():
    cells = [cell("csq", n_bits, 0.5, "mscoco", "AP@5000") for n_bits in (16, 20, 64)]
    shown = block(table(*cells), "mscoco (squeezenet (JPEG)): AP@5000")
    assert shown["method"] == ["16 bits", "paper", "64 bits", "paper"]
    assert shown["csq"] == ["0.5000", "0.796", "0.5000", "0.861"]
    assert "Values of other papers: CSQ at 16, 64 bits: " in table(*cells).to_markdown()


# ---------------------------------------------------------------- how near ours are

OF_BRE = next(value for value in published_values() if (value.method, value.our_dataset) == ("BRE", "cifar10-s1"))


def pair(published, value, low=None, high=None, spread=np.nan, features="vgg-f", tie_sd=0.0, **changes):
    cell = SimpleNamespace(
        value=value,
        low=value if low is None else low,
        high=value if high is None else high,
        tie_sd=tie_sd,
        n_queries=1,
        spread=spread,
        n_seeds=1 if np.isnan(spread) else 3,
        features=features,
        params="{}",
    )
    return Pair(OF_BRE._replace(value=published, **changes), cell)


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [
        ("0.500", {"value": 0.4996}, "within"),  # it prints three digits
        ("0.500", {"value": 0.4994}, "below"),
        ("0.500", {"value": 0.5006}, "above"),
        ("0.50", {"value": 0.504}, "within"),
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.51, "tie_sd": 0.0168}, "within"),  # 0.0495 is less than 0.0504
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.51, "tie_sd": 0.0162}, "below"),
        ("0.500", {"value": 0.45, "low": 0.4, "high": 0.49, "tie_sd": 0.01}, "below"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": 0.02}, "within"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": np.nan}, "unknown"),
        ("0.500", {"value": 0.55, "low": 0.51, "high": 0.6, "tie_sd": np.nan}, "above"),
        ("0.500", {"value": 0.55, "low": 0.49, "high": 0.6, "tie_sd": np.nan, "spread": 0.06}, "within"),
        ("0.500", {"value": 0.45, "spread": 0.06}, "within"),
        ("0.500", {"value": 0.45, "low": 0.44, "high": 0.46, "spread": 0.04}, "below"),  # each on its own
        ("0.500", {"value": 0.55, "low": 0.54, "high": 0.56, "spread": 0.04}, "above"),
    ],
)
def test_verdict_goes_by_the_spread_and_what_a_shuffle_may_do(published, ours, verdict):
    assert pair(published, **ours).verdict == verdict


def test_verdict_names_the_parts_of_the_set_up_that_differ():
    assert pair("0.5", 0.4, dataset_differs="").in_words == "below"
    assert pair("0.5", 0.4, features="gist").in_words == "below; set-up differs (features, data)"


def test_verdicts_are_counted():
    pairs = [pair("0.5", value) for value in (0.4, 0.6, 0.5, 0.4)]
    assert count_verdicts(pairs) == "1 within, 1 above, 2 below"

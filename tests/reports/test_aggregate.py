import json
from functools import partial

import pandas as pd
import pytest
from helpers.paths import ROOT

from hashbench.cards import method_card
from hashbench.reports.aggregate import all_lines, main_lines, mean_over_seeds, method_labels
from hashbench.reports.marks import describe_hidden
from hashbench.store.results import read_rows

PAPER = {"n_similar": 100, "n_dissimilar": 500, "n_iter": 20}  # of machash


@pytest.fixture(scope="module")
def machash():
    """A row of the committed results with other parameters, value, version and code length."""
    rows = [row for row in read_rows(ROOT / "results", "digits") if (row.method, row.n_bits) == ("machash", 16)]
    defaults = {name: method_card("machash").params[name] for name in json.loads(rows[0].params)}

    def make(value=0.5, n_bits=16, version=1, **params):
        changed = {"n_bits": n_bits, "method_version": version, "params": json.dumps(defaults | params, sort_keys=True)}
        return rows[0]._replace(**changed, value=value, tie_sd=0.0, low=value, high=value)

    return make


def main_values(*rows):
    """Return the values of the main lines."""
    cells = mean_over_seeds(pd.DataFrame(rows))
    return main_lines(cells, cells)["value"].tolist()


def test_main_line_has_the_default_parameters_whatever_the_scores(machash):
    tuned = partial(machash, **PAPER)
    assert main_values(tuned(0.9), tuned(0.9, n_bits=32), machash(0.1)) == [0.1]
    assert main_values(tuned(0.1), tuned(0.1, n_bits=32), machash(0.9)) == [0.9]


def test_main_line_is_else_that_of_a_preset_and_then_that_with_most_cells(machash):
    other = partial(machash, n_iter=7)
    assert main_values(other(0.9), other(0.9, n_bits=32), machash(0.1, **PAPER)) == [0.1]
    assert main_values(other(0.1), other(0.2, n_bits=32), machash(0.9, n_iter=8)) == [0.1, 0.2]
    assert main_values(other(0.9), machash(0.1, n_iter=8), machash(0.3, n_iter=8)._replace(seed=1)) == [
        0.2
    ]  # of two seeds


def test_main_line_is_of_other_parameters_that_with_the_fewest_changed(machash):
    assert main_values(machash(0.9, n_dissimilar=1, n_iter=7), machash(0.1, n_similar=9)) == [0.1]


def test_main_line_is_chosen_among_all_results_of_a_block_and_not_those_shown(machash):
    less, more = partial(machash, n_iter=7), partial(machash, n_iter=8)
    rows = [less(0.1), less(0.1, n_bits=32), more(0.9), *(more(n_bits=n)._replace(metric="NDCG") for n in (16, 32))]
    cells = mean_over_seeds(pd.DataFrame(rows))
    assert main_lines(cells[cells["metric"] == "AP"], cells)["value"].tolist() == [0.9]


def results_of(*rows, tuned):
    """Return results in which some rows record that their settings were chosen among nine."""
    return pd.DataFrame(rows).assign(tuned=[9 if row in tuned else 0 for row in rows])


def test_main_line_is_the_one_that_was_tuned_on_its_data(machash):
    tuned, more = partial(machash, n_iter=7), partial(machash, n_iter=8)
    for rows in ((tuned(0.1), machash(0.9)), (machash(0.9), more(0.8), more(0.8, n_bits=32), tuned(0.1))):
        cells = mean_over_seeds(results_of(*rows, tuned=[tuned(0.1)]))
        assert main_lines(cells, cells)["value"].tolist() == [0.1]
    elsewhere = [tuned(0.2)._replace(dataset="other"), machash(0.3)._replace(dataset="other")]
    cells = mean_over_seeds(results_of(tuned(0.1), machash(0.9), *elsewhere, tuned=[tuned(0.1)]))
    assert main_lines(cells, cells)["value"].tolist() == [0.1, 0.3]


def test_a_tuned_line_is_named_by_its_method_and_the_defaults_beside_it_are_called_so(machash):
    tuned, other, plain = machash(n_iter=7), machash(n_iter=8), machash()

    def labels(*rows, tuned):
        lines = all_lines(results_of(*rows, tuned=tuned)).set_index("params")["label"]
        return [lines[row.params] for row in rows]

    assert labels(tuned, tuned=[tuned]) == ["machash"]
    assert labels(plain, tuned=[plain]) == ["machash"]
    assert labels(tuned, plain, other, tuned=[tuned]) == ["machash", "machash (defaults)", "machash n_iter=8"]
    assert labels(tuned, plain._replace(dataset="other"), tuned=[tuned]) == ["machash", "machash"]
    assert labels(tuned, plain, other, tuned=[]) == ["machash n_iter=7", "machash", "machash n_iter=8"]
    assert labels(tuned, other._replace(dataset="other"), tuned=[tuned, other._replace(dataset="other")]) == [
        "machash",
        "machash",
    ]
    both = labels(tuned, other, plain, tuned=[tuned, other])  # two in one place, each with its settings
    assert both == ["machash n_iter=7", "machash n_iter=8", "machash"]


def test_main_line_is_of_the_newest_version_and_each_metric_and_block_has_its_own(machash):
    older, newer = machash(0.9, version=1), machash(0.1, version=2)
    assert main_values(older, newer, machash(0.9, n_bits=32, version=1)) == [0.1]
    assert main_values(newer, older._replace(metric="NDCG")) == [0.1, 0.9]
    assert main_values(newer, older._replace(dataset_fingerprint="other")) == [0.1, 0.9]


def test_main_line_of_a_method_that_is_gone_is_that_with_most_cells(machash):
    gone = [row._replace(method="gone") for row in (machash(0.9), machash(0.1, n_iter=7), machash(0.1, 32, n_iter=7))]
    assert main_values(*gone) == [0.1, 0.1]


def test_methods_are_named_of_which_lines_are_left_out(machash):
    def note(*rows):
        cells = mean_over_seeds(pd.DataFrame(rows))
        return describe_hidden(main_lines(cells, cells))

    assert note(machash(), machash(n_bits=32), machash()._replace(seed=1), machash()._replace(method="ksh")) == ""
    assert note(machash(), machash(n_bits=32, n_iter=7)).startswith("Other settings or versions of machash are")
    two = [machash(n_iter=n)._replace(method=name) for n in (7, 8) for name in ("ksh", "bre")]
    assert note(machash(), *two).startswith("Other settings or versions of bre, ksh are")
    assert note(*(row._replace(method=f"{row.method}{n}") for row in two for n in range(3))).startswith(
        "Other settings or versions of 6 methods"
    )


def test_labels_that_users_give_never_hide_which_method_is_meant():
    params = [json.dumps({"codes": "own", "label": label}) for label in ("Ours", "itq", "One")]
    lines = [("m1", params[0]), ("m2", params[0]), ("m3", params[1]), ("itq", "{}"), ("m4", params[2])]
    assert [method_labels(lines)[line] for line in lines] == ["Ours (m1)", "Ours (m2)", "itq (m3)", "itq (itq)", "One"]


def test_codes_that_ignore_pairs_are_labelled_by_what_differs_and_not_by_digests():
    params = [{"codes": "own", "label": "Ours", **more} for more in ({}, {"groups": "c738"}, {"exclude_self": True})]
    lines = [("m", json.dumps(one)) for one in params]
    labels = method_labels(lines)
    assert [labels[line] for line in lines] == ["Ours", "Ours groups=left-out", "Ours exclude_self=True"]
    lines = [("m", json.dumps({**params[1], "groups": digest})) for digest in ("c738", "d1")]
    assert sorted(method_labels(lines).values()) == [
        'Ours groups=left-out groups="c738"',
        'Ours groups=left-out groups="d1"',
    ]

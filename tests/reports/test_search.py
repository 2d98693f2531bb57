"""The search for a printed number: against ranking all queries, and how much it ranks."""

import json
import math
from collections import Counter
from functools import cache

import numpy as np
import pytest
from helpers.script_values import explained as by_ranking_all
from helpers.thoroughness import slow

from hashbench import Problem, explain
from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.reports.explain.answers import SMALLEST_SAMPLE, answers, parse_printed, search
from hashbench.reports.explain.emulation import Emulation
from hashbench.reports.explain.ranking import Query
from hashbench.reports.explain.scripts import named

SCRIPTS = """
calc-map csq hashnet thulab orthohash treezzz calc-map-k pytorch-deephash oxford-paris dtsh perf10 callmap talr-ap
mihash-k sklearn-ap trec_eval ranx-here calc-top-map-p calc-top-map-p-topk calc-top-map-r-topk bihalf-r thulab-all
""".split()  # noqa: SIM905
METRICS = ["AP", "AP@20", "P@20", "R@20", "P@r1"]
N_QUERIES = 200


@cache
def example(seed):
    """Codes that know a little of their classes, the database sorted by class; no item has the last class."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 5, N_QUERIES), np.sort(rng.integers(0, 4, 80))
    centres = rng.random((5, 6)) < 0.5
    return *(centres[part] ^ (rng.random((len(part), 6)) < 0.3) for part in labels), labels


@cache
def all_values(seed):
    explanations = by_ranking_all(METRICS, *example(seed), SCRIPTS)
    return {(one.metric, one.evaluator.name): one for one in explanations}


def searched(seed, printed):
    query, database, labels = example(seed)
    scripts = [named(name) for name in SCRIPTS]
    emulation = Emulation(pack(query), pack(database), query.shape[1], SameLabel(*labels), METRICS, scripts)
    (explanations,) = search({"given": emulation}, *parse_printed(printed)).values()
    return {(one.metric, one.evaluator.name): one for one in explanations}


def verdicts(explanations, printed):
    return [(answer.explanation.metric, answer.verdict) for answer in answers({"given": explanations}, printed)]


def printed_values(seed):
    """Return values of scripts from the lowest to the highest, and numbers that no script gives."""
    values = sorted(one.value for one in all_values(seed).values() if not math.isnan(one.value))
    return [f"{value:.4f}" for value in (*values[:: len(values) // 3], 0.5 * (values[0] + values[-1]), 0.999)]


@pytest.mark.parametrize("seed", [0, *slow(1)])
def test_a_search_answers_as_ranking_all_queries_does(seed):
    for printed in printed_values(seed):
        explanations = searched(seed, printed)
        assert explanations.keys() == all_values(seed).keys()
        assert verdicts([*explanations.values()], printed) == verdicts([*all_values(seed).values()], printed)
        for key, one in explanations.items():
            exhaustive = all_values(seed)[key]
            if one.estimate is None:
                assert one.value == pytest.approx(exhaustive.value, abs=1e-12, nan_ok=True), key
                assert dict(one.causes) == pytest.approx(dict(exhaustive.causes), abs=1e-12, nan_ok=True), key
            else:
                assert math.isnan(one.value)
                assert one.estimate.low - 1e-12 <= exhaustive.value <= one.estimate.high + 1e-12, key
            assert one.exact == pytest.approx(exhaustive.exact)
            assert one.script_range == pytest.approx(exhaustive.script_range, nan_ok=True)


@pytest.fixture
def n_sorted(monkeypatch):
    """Count the queries that are sorted, by order of ties."""
    counts, sort = Counter(), Query._sorted

    def counting(query, keys, order):
        counts[order] += 1
        return sort(query, keys, order)

    monkeypatch.setattr(Query, "_sorted", counting)
    return counts


def test_a_search_sorts_few_queries_for_values_that_are_far_off(n_sorted):
    searched(0, "0.999")  # no order of ties gives that, but scripts that score another quantity have no known bounds
    own = {name for name in SCRIPTS if named(name).quantity and named(name).order}
    assert {order.order for order in n_sorted} == {named(name).order for name in own}
    assert set(n_sorted.values()) == {SMALLEST_SAMPLE}


def test_a_search_sorts_all_queries_only_for_values_that_are_near(n_sorted):
    (explanation,) = by_ranking_all(["AP"], *example(0), ["trec_eval"])
    n_sorted.clear()
    searched(0, f"{explanation.value:.4f}")
    assert n_sorted[named("trec_eval").sort(80)] == N_QUERIES  # each once
    n_searched = n_sorted.total()
    n_sorted.clear()
    by_ranking_all(METRICS, *example(0), SCRIPTS)
    assert n_searched < 0.8 * n_sorted.total()


def test_few_queries_are_all_ranked(n_sorted):
    query, database, (of_queries, of_items) = example(0)
    few = query[:SMALLEST_SAMPLE], database, (of_queries[:SMALLEST_SAMPLE], of_items)
    found = explain(Problem.of_codes(*few), "AP", scripts="dtsh", value="0.999").scripts
    assert found["estimate_value"].isna().all()
    assert found["value"].notna().all()
    assert set(n_sorted.values()) == {SMALLEST_SAMPLE}


@pytest.mark.parametrize("form", ["table", "json"])
def test_what_was_ruled_out_is_said_in_the_output(form):
    explained = explain(Problem.of_codes(*example(0)), ("AP", "AP@20"), scripts=SCRIPTS, value="0.999")
    text, estimates = explained.to_text(form), explained.scripts["estimate_n_queries"]
    n_sampled, n_estimates = int((estimates > 0).sum()), int(estimates.notna().sum())
    assert 0 < n_sampled < n_estimates < len(estimates)
    if form == "json":
        rows = {(row["metric"], row["script"]): row for row in json.loads(text)}
        assert rows["AP", "dtsh"]["value"] is None
        assert rows["AP", "dtsh"]["estimate"]["n_queries"] == 0
        assert rows["AP", "dtsh"]["reason"] == "no order of ties gives the number"
        assert rows["AP", "talr-ap"]["estimate"]["n_queries"] == SMALLEST_SAMPLE
        assert rows["AP", "sklearn-ap"]["estimate"] == dict.fromkeys(("value", "low", "high", "n_queries"))
        return
    words = " ".join(text.split())
    assert f"~: an estimate. {n_estimates} of {len(estimates)} values were ruled out without ranking all" in words
    assert f"no order of ties gives the number ({n_estimates - n_sampled})" in words
    assert f"a random sample of 32 of 200 queries puts them more than 5 standard errors off ({n_sampled})" in words
    assert "~0." in text

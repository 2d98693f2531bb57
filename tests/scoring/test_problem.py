"""One value for what is scored: small problems of every kind, by any route and in any parts, against all tie orders."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from helpers.slices import in_slices
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hashbench
from hashbench import TieHistogram, _parallel, evaluate, evaluate_ranking
from hashbench.affinity import Distance, Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.bits import as_packed_pair, pack
from hashbench.errors import HashbenchError
from hashbench.scoring import counting, hamming, real_rankings
from hashbench.scoring.ignored import leave_out
from hashbench.scoring.metrics import get_metric

OF_CLASSES = ("classes", "words", "superclasses")
KINDS = (*OF_CLASSES, "shared labels", "distance", "dense", "csr", "ignored", "real")
OF_GAINS = ["NDCG:exponential", "NDCG@2:trec", "NDCG:linear", "PairwiseError"]
NAMES = ["AP:ranked", "AP@3:retrieved", "AP@2:capped", "P@2", "R@3", "RR", *OF_GAINS]


class Drawn(NamedTuple):
    """Codes with many ties, a rule and options, and the level that these give each pair, -1 where it is ignored."""

    query: np.ndarray
    database: np.ndarray
    rule: Any
    options: dict[str, Any]
    levels: np.ndarray
    names: list[str]

    @property
    def distances(self):
        return (self.query[:, None] != self.database).sum(axis=2)


def rule_of(kind, rng, shape, is_self):
    """Draw a rule, with the level of each pair by brute force, and the labels of classes."""

    def of_each(n, *more):
        query = rng.integers(0, n, (shape[0], *more))
        return query, query if is_self else np.concatenate([query[:1], rng.integers(0, n, (shape[1] - 1, *more))])

    if kind in OF_CLASSES:
        labels = of_each(3)
        levels = np.array(oracles.same_label(*labels))
        if kind == "superclasses":
            coarse = labels[0] % 2, labels[1] % 2
            return Hierarchy(*labels, *coarse), levels + oracles.same_label(*coarse), labels
        words = [np.array(["a", "b", "ç"])[part] for part in labels]
        return SameLabel(*(words if kind == "words" else labels)), levels, labels
    if kind == "shared labels":
        labels = of_each(2, 3)
        return SharedLabels(*labels), np.array(oracles.shared_labels(*labels)), None
    if kind == "distance":
        features, how = of_each(3, 2), ([4.0, 1.0], [1, 3])
        return Distance(*features, *how), np.array(oracles.distance_levels(*features, *how)), None
    levels = rng.choice({"ignored": [-1, 0, 0, 1, 4], "real": [-1, 0, 0, 0.3, 1.75]}.get(kind, [0, 0, 1, 4]), shape)
    levels[0, 0] = 0
    if is_self:
        levels = np.triu(levels) + np.triu(levels, 1).T
    return Explicit(sp.csr_array(levels) if kind == "csr" else levels), levels, None


@st.composite
def problems(draw):
    """Draw a problem whose queries each have an item left."""
    kind, is_self = draw(st.sampled_from(KINDS)), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_items, n_bits = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    shape = n_items if is_self else int(rng.integers(1, 4)), n_items
    database = rng.random((n_items, n_bits)) < 0.5
    query = database if is_self else rng.random((shape[0], n_bits)) < 0.5
    rule, levels, labels = rule_of(kind, rng, shape, is_self)
    options, is_ignored = {}, levels < 0
    if is_self:
        options["exclude_self"], is_ignored = True, is_ignored | (np.eye(n_items) > 0)
    if draw(st.booleans()):
        of_queries = rng.integers(0, 4, shape[0])
        others = [of_queries[0], *rng.integers(0, 4, n_items - 1)]
        options["exclude_same_id"] = of_queries, of_queries if is_self else rng.permutation(others)
        is_ignored = is_ignored | np.equal.outer(*options["exclude_same_id"])
    if kind in OF_CLASSES and draw(st.booleans()):
        of_queries = rng.integers(0, 2, shape[0])
        options["groups"] = of_queries, of_queries if is_self else rng.integers(0, 2, n_items)
        is_ignored = is_ignored | (np.equal.outer(*options["groups"]) & np.equal.outer(*labels))
        if not is_self:
            options["junk_label"] = "abç"[labels[1][0]] if kind == "words" else int(labels[1][0])
            is_ignored = is_ignored | (labels[1] == labels[1][0])
    assume((~is_ignored).any(axis=1).all())
    names = OF_GAINS if kind == "real" else NAMES
    return Drawn(query, database, rule, options, np.where(is_ignored, -1, levels), names)


def in_small_parts(patch):
    for name, value in {"_BLOCK_BYTES": 8 * 2, "_LEVEL_COLUMNS": 3, "_PAIRS": 3, "_RUN": 2}.items():
        patch.setattr(counting, name, value)
    patch.setattr(hamming, "_MEMORY", 300)
    patch.setattr(real_rankings, "_MEMORY", 1)
    patch.setattr(_parallel, "QUERY_CHUNK", 2)


def score(name, ranked):
    metric = get_metric(name)
    return oracles.ORACLES[metric.family.pattern](ranked, *metric.arguments)


@settings(max_examples=2 * settings().max_examples)
@given(problems(), st.booleans())
def test_scores_are_those_of_every_order_of_tied_items_by_any_route_and_in_any_parts(drawn, in_parts):
    query, database, rule, options, levels, names = drawn
    packed, signs, by_dot = as_packed_pair(query, database, None, None), 2.0 * query - 1, [f"{n}:dot" for n in names]
    with pytest.MonkeyPatch.context() as patch:
        if in_parts:
            in_small_parts(patch)
        of_codes = evaluate(query, database, rule, names, random_orders=2, **options)
        routes = {
            "codes": of_codes,
            "slices": in_slices(*packed, leave_out(rule, **options)).evaluate(names),
            "outputs": evaluate(signs, 2.0 * database - 1, rule, names, distance="cosine", **options),
            "ranking": evaluate_ranking(relevance=rule, scores=-drawn.distances, metrics=names, **options),
            "outputs of queries": evaluate(query, database, rule, by_dot, query_outputs=signs / 3, **options),
        }
    lists = [(d[lv >= 0].tolist(), lv[lv >= 0].tolist()) for d, lv in zip(drawn.distances, levels, strict=True)]
    for name, name_by_dot in zip(names, by_dot, strict=True):
        expected = np.transpose(
            oracles.of_each_query(lambda ranked, name=name: score(name, ranked), *zip(*lists, strict=True))
        )
        for route, found in routes.items():
            here = name_by_dot if route == "outputs of queries" else name
            np.testing.assert_allclose(found.scores[here][:3], expected[:3], atol=1e-12, err_msg=f"{name}, {route}")
            np.testing.assert_allclose(found.scores[here].tie_sd ** 2, expected[3] ** 2, atol=1e-12)
            assert found.n_undefined == np.isnan(expected[0]).sum()
            assert found.summary[here].tie_sd_low == pytest.approx(
                of_codes.summary[name].tie_sd_low, abs=1e-9, nan_ok=True
            )
        for number, mean in enumerate(of_codes.random_orders[name]):
            order = np.random.default_rng([0, number]).permutation(len(database))
            ranked = [
                lv[order][np.argsort(d[order], kind="stable")] for d, lv in zip(drawn.distances, levels, strict=True)
            ]
            values = [score(name, row[row >= 0].tolist()) for row in ranked if (row > 0).any()]
            assert mean == pytest.approx(np.mean(values) if values else np.nan, abs=1e-12, nan_ok=True)


@given(problems(), st.booleans())
def test_thresholds_count_the_pairs_that_are_left_two_items_as_one(drawn, in_parts):
    query, database, rule, options, levels, names = drawn
    assume(names is NAMES)
    is_pair = np.triu(levels >= 0, 1) if "exclude_self" in options else levels >= 0
    with pytest.MonkeyPatch.context() as patch:
        if in_parts:
            in_small_parts(patch)
        problem = in_slices(*as_packed_pair(query, database, None, None), leave_out(rule, **options))
        found = problem.thresholds()
    for counts, is_counted in ((found.n_true, levels > 0), (found.n_false, levels == 0)):
        at = drawn.distances[is_pair & is_counted]
        assert counts.tolist() == np.bincount(at, minlength=query.shape[1] + 1).tolist()
    within = [(drawn.distances <= match.radius) & (levels == 0) for match in found.matches]
    assert found.n_queries_with_false.tolist() == [near.any(axis=1).sum() for near in within]
    assert found.n_undefined == (~(levels > 0).any(axis=1)).sum()


# ---------------------------------------------------------------- one problem, several questions


RNG = np.random.default_rng(0)
N_ITEMS, N_BITS = 40, 4
CODES, LABELS = RNG.random((N_ITEMS, N_BITS)) < 0.5, RNG.integers(0, 3, N_ITEMS)
DISTANCES = (CODES[:, None] != CODES).sum(axis=2)
SAME = (LABELS[:, None] == LABELS).astype(int)
METRICS = ["AP", "P@1", "NDCG", "RR", "R@7"]


def of_run(relevance, **options):
    names = [f"item {number}" for number in range(N_ITEMS)]
    by_name = [{query: dict(zip(names, row.tolist(), strict=True)) for query, row in zip(names, matrix, strict=True)}
               for matrix in (-DISTANCES.astype(float), relevance)]  # fmt: skip
    return hashbench.evaluate_run(*by_name, [*METRICS[:2], "NDCG:exponential", *METRICS[3:]], **options)


def means_and_deviations(scored):
    return [(*values[:3], values.tie_sd) for values in scored.summary.values()]


def test_leaving_oneself_out_is_the_same_by_codes_scores_and_run():
    expected = hashbench.evaluate(CODES, CODES, (LABELS, LABELS), METRICS, exclude_self=True)
    for relevance in (SAME, SameLabel(LABELS, LABELS)):
        found = hashbench.evaluate_ranking(relevance=relevance, scores=-DISTANCES, metrics=METRICS, exclude_self=True)
        np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)
    found = of_run(SAME, exclude_self=True)
    np.testing.assert_allclose(means_and_deviations(found), means_and_deviations(expected), rtol=1e-12)
    np.testing.assert_array_equal(found.scores["AP"].low, expected.scores["AP"].low)


def test_a_document_that_is_the_query_is_ignored_listed_or_not():
    run = {"a": {"a": 3.0, "b": 2.0, "c": 1.0}, "b": {"a": 1.0, "c": 2.0}}
    qrels = {"a": {"a": 1, "c": 1}, "b": {"b": 1, "a": 1}}
    without = {query: {name: score for name, score in of.items() if name != query} for query, of in run.items()}
    rated = {query: {name: grade for name, grade in of.items() if name != query} for query, of in qrels.items()}
    found = hashbench.evaluate_run(run, qrels, ["AP", "R@1", "RPrec"], exclude_self=True)
    assert found.summary == hashbench.evaluate_run(without, rated, ["AP", "R@1", "RPrec"]).summary


def test_one_problem_answers_every_question_as_its_own_does():
    problem = hashbench.Problem.of_codes(CODES[:9], CODES[9:], (LABELS[:9], LABELS[9:]))
    assert problem.evaluate(METRICS).summary == problem.evaluate(METRICS).summary
    whole = hashbench.evaluate(CODES[:9], CODES[9:], (LABELS[:9], LABELS[9:]), METRICS)
    assert problem.evaluate(METRICS).summary == whole.summary
    curves = problem.curves()
    assert curves["precision"].iloc[-1] == pytest.approx(np.mean(SAME[:9, 9:]))
    assert problem.thresholds().n_relevant == SAME[:9, 9:].sum()
    assert hashbench.explain(problem, "AP", scripts="csq").scripts["exact_mean"][0] == whole["AP"].mean


def test_what_does_not_fit_a_problem_is_refused_in_one_sentence():
    outputs, sliced = RNG.normal(size=(9, 4)), SameLabel(LABELS[:9], LABELS[9:])
    by_cosine = hashbench.Problem.of_codes(outputs[:4], outputs[4:], np.eye(4, 5, dtype=int), distance="cosine")
    in_parts = in_slices(pack(CODES[:9]), pack(CODES[9:]), N_BITS, sliced)
    vectors, ragged = (RNG.random((8, 3)), RNG.random((N_ITEMS - 9, 3))), ([[1, 0], [0, 1, 1]], [[2, 1], [3, 2, 1]])
    need_codes = r"are of binary codes and their Hamming distance, .* Pass binary codes"
    for ask, message in (
        (by_cosine.thresholds, need_codes),
        (lambda: by_cosine.candidates("R@9", 0.5), need_codes),
        (lambda: hashbench.explain(by_cosine), need_codes),
        (lambda: in_parts.thresholds(held_out=True), "read in slices is not split in halves"),
        (
            lambda: hashbench.evaluate_ranking(relevance=ragged[0], scores=ragged[1], exclude_self=True),
            "queries have different numbers of items",
        ),
        (
            lambda: hashbench.Problem(CODES, CODES),
            r"by Problem\.of_codes\(query_codes, database_codes, affinity\), got",
        ),
        (
            lambda: hashbench.Problem.of_codes(CODES[:9], CODES[9:], SAME[:9, 9:], vectors=vectors),
            "there are 8 query vectors for 9 query codes",
        ),
    ):
        with pytest.raises(HashbenchError, match=message):
            ask()


@pytest.mark.parametrize("form", [tuple, list, np.array])
def test_two_rows_of_relevance_are_no_pair_of_labels(form):
    rows = form([np.array([0, 0]), np.array([1, 0])])
    found = hashbench.evaluate_ranking(relevance=rows, scores=[[2, 1], [2, 1]], metrics=["R@1"], exclude_self=True)
    np.testing.assert_array_equal(found.scores["R@1"].mean, [np.nan, 1])


def test_parts_of_the_queries_joined_are_those_of_all_with_one_order_for_all():
    rng = np.random.default_rng(5)
    queries, items = rng.random((40, 10)) < 0.5, rng.random((300, 10)) < 0.5
    labels, of_item = rng.integers(0, 5, 40), rng.integers(0, 5, 300)
    names = ["AP", "NDCG", "P@10", "RR", "P@r2:skip"]
    whole = hashbench.evaluate(queries, items, (labels, of_item), names)
    parts = [
        hashbench.evaluate(queries[rows], items, (labels[rows], of_item), names) for rows in (slice(15), slice(15, 40))
    ]
    joined = hashbench.Evaluation.concat(parts)
    for name, scores in whole.scores.items():
        np.testing.assert_array_equal(joined.scores[name], scores)
        assert joined[name] == pytest.approx(whole[name])  # the deviations, too
    assert (list(joined), len(joined), dict(joined)) == (names, 5, joined.summary)
    assert joined != whole
    levels = (labels[:, None] == of_item).astype(int) * rng.integers(1, 4, (40, 300))
    apart = [hashbench.evaluate(queries[rows], items, levels[rows], ["AP"]) for rows in (slice(15), slice(15, 40))]
    united = hashbench.Evaluation.concat(apart)["AP"]
    assert united.mean == pytest.approx(hashbench.evaluate(queries, items, levels, ["AP"])["AP"].mean)
    assert united.tie_sd_low <= hashbench.evaluate(queries, items, levels, ["AP"])["AP"].tie_sd_low + 1e-12
    with pytest.raises(HashbenchError, match=r"got evaluations in AP, NDCG, .* and in AP; one or more are needed"):
        hashbench.Evaluation.concat([whole, apart[0]])
    with pytest.raises(HashbenchError, match="got evaluations in nothing; one or more"):
        hashbench.Evaluation.concat([])
    with pytest.raises(ValueError, match="read-only"):
        whole.scores["AP"].mean[0] = 1


def test_a_histogram_that_is_counted_by_hand_scores_as_its_pairs_do():
    rng = np.random.default_rng(8)
    distances, levels = rng.integers(0, 5, (6, 30)), rng.integers(-1, 3, (6, 30))
    halves = [TieHistogram.from_pairs(distances[:, part], levels[:, part], 4) for part in (slice(12), slice(12, 30))]
    found = hashbench.evaluate_histogram(halves[0] + halves[1], ["AP", "NDCG"])
    expected = hashbench.evaluate_ranking(relevance=levels, scores=-distances, metrics=["AP", "NDCG"])
    for name in ("AP", "NDCG"):
        assert found[name][:3] == pytest.approx(expected[name][:3])
        assert found[name].tie_sd_bound >= expected[name].tie_sd


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: TieHistogram.from_pairs([[0, -1]], [[0, 1]], 1),
            "distances are int64, expected whole numbers",
        ),
        (lambda: TieHistogram.from_pairs([[0, 9]], [[0, 1]], 4), "whole numbers from 0 to 4"),
        (lambda: TieHistogram.from_pairs([[0, 1, 1]], [[0, 1]], 4), r"shape \(1, 3\) and levels \(1, 2\)"),
        (lambda: TieHistogram.from_pairs([[0, 1]], [[0, -2]], 4), "levels hold -2, expected 0 or more, or -1"),
        (lambda: TieHistogram(np.ones((2, 2, 3))), "counts are float64 of shape"),
        (lambda: TieHistogram(np.ones((2, 3), int)), r"of shape \(2, 3\), expected whole numbers"),
        (lambda: TieHistogram(-np.ones((1, 2, 3), int)), "from 0 on"),
        (lambda: TieHistogram(np.ones((1, 3, 3), int)), "levels are .0, 1., expected 3 that ascend from 0"),
    ],
)
def test_counts_that_are_none_are_refused(make, words):
    with pytest.raises(HashbenchError, match=words):
        hashbench.evaluate_histogram(make())

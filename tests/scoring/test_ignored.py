"""Items that a query ignores, such as itself, against each query on its own in a database that lacks them."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from helpers.script_values import explained, values_of
from helpers.slices import in_slices

import hashbench
from hashbench import Distance, Explicit, HashbenchError, Hierarchy, Problem, SameLabel, SharedLabels
from hashbench.affinity import Affinity
from hashbench.bits import as_packed_pair
from hashbench.pipeline.cluster import _AffinityRows, count_rows
from hashbench.scoring import counting
from hashbench.scoring.ignored import leave_out

N_QUERIES, N_ITEMS, N_SELF, N_BITS = 10, 40, 24, 7
N_ALL = N_QUERIES + N_ITEMS
rng = np.random.default_rng(0)
codes = (rng.random((15, N_BITS)) > 0.5)[rng.integers(0, 15, N_ALL)]
vectors = rng.normal(size=(N_ALL, 3)).round(1)
classes, cameras, ids = rng.integers(0, 5, N_ALL), rng.integers(0, 3, N_ALL), rng.integers(0, 25, N_ALL)
classes[1], cameras[1], codes[1], ids[1] = classes[0], cameras[0], codes[0], ids[0]  # two queries of one kind
classes[2], codes[2], cameras[2] = classes[0], codes[0], (cameras[0] + 1) % 3  # and one but for what it ignores
multi_hot = rng.integers(0, 2, (N_ALL, 4))
matrix = rng.choice([-1, -1, 0, 0, 0, 1, 4], (N_QUERIES, N_ITEMS))
matrix[1] = matrix[0]
own = np.append(classes[: N_SELF - 1], 9)  # one item has a class of its own: without itself nothing is relevant
symmetric = np.triu(rng.choice([0, 0, 0, 1, 4], (N_SELF, N_SELF)))
symmetric += np.triu(symmetric, 1).T
symmetric[1], symmetric[:, 1] = symmetric[0], symmetric[0]  # alike but for themselves
symmetric[:2, :2] = 1


class OfAPlugIn(Affinity):
    """The rule of a matrix, in a class that hashbench does not know."""

    n_queries, n_database = matrix.shape
    levels, ignores = np.array([0, 1, 4]), True

    def block(self, query, database):
        return matrix[query][:, database].astype(np.int16)


class Case(NamedTuple):
    """A rule and options, and which pairs they ignore."""

    rule: Affinity
    options: dict[str, Any]
    is_ignored: np.ndarray
    is_self: bool = False

    def sides(self, values):
        return (values[:N_SELF],) * 2 if self.is_self else split(values)


def split(values):
    return values[:N_QUERIES], values[N_QUERIES:]


def of_itself(rule):
    return Case(rule, {"exclude_self": True}, np.eye(N_SELF, dtype=bool), True)


same = split(classes)
of_camera, of_id = np.equal.outer(*split(cameras)), np.equal.outer(*split(ids))
is_left_out = (classes[N_QUERIES:] == 3) | of_id | (np.equal.outer(*same) & of_camera)
CASES = {
    "all": Case(
        SameLabel(*same), {"exclude_same_id": split(ids), "groups": split(cameras), "junk_label": 3}, is_left_out
    ),
    "shared labels": Case(SharedLabels(*split(multi_hot)), {"exclude_same_id": split(ids)}, of_id),
    "csr": Case(Explicit(sp.csr_array(matrix)), {"exclude_same_id": split(ids)}, (matrix == -1) | of_id),
    "plug-in": Case(OfAPlugIn(), {}, matrix == -1),
    "self, superclasses": of_itself(Hierarchy(own, own, own % 3, own % 3)),
    "self, distance": of_itself(Distance(vectors[:N_SELF], vectors[:N_SELF], [2.0, 1.0], [1, 3])),
    "self, dense": of_itself(Explicit(symmetric)),
}
METRICS = ("AP", "AP@5", "NDCG", "P@3", "R@3", "P@r1", "P@r1:skip", "R@r1", "LGAP@r2", "RR", "PairwiseError", "AP@R")
OF_VECTORS = ("AP", "R@3:reranked=6", "NDCG@3:reranked=6")


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def one_by_one(case, metrics):
    """Score each query in the database without the items that it ignores; scores are (n_metrics, 4, n_queries)."""
    levels, found = case.rule.block(slice(None), slice(None)), []
    (query, database), of_vectors = case.sides(codes), case.sides(vectors)
    for row, is_ignored in enumerate(case.is_ignored):
        left = np.flatnonzero(~is_ignored)
        options = {"vectors": (of_vectors[0][[row]], of_vectors[1][left])} if metrics is OF_VECTORS else {}
        scores = hashbench.evaluate(query[[row]], database[left], levels[[row]][:, left], metrics, **options).scores
        found.append([np.ravel(scores[metric]) for metric in metrics])
    return np.moveaxis(np.array(found), 0, -1)


def scored(evaluation, metrics):
    return np.array([evaluation.scores[name] for name in metrics])


def test_scores_are_those_of_each_query_in_its_own_database(case):
    found = hashbench.evaluate(*case.sides(codes), case.rule, METRICS, **case.options)
    np.testing.assert_allclose(scored(found, METRICS), one_by_one(case, METRICS), rtol=1e-12, atol=1e-12)
    of_each = case.is_ignored.sum(axis=1)
    least, most = of_each.min(), of_each.max()
    each = f"{least}" if least == most else f"{least} to {most}"
    pairs = f"{of_each.sum():,} of {case.is_ignored.size:,} pairs of a query and a database item are ignored"
    assert (f"{pairs}, {each} of each query." in found.notes) == (not case.is_self)
    assert not (case.is_self and found.notes)


def test_candidates_to_re_rank_lack_ignored_items(case):
    options = {"vectors": case.sides(vectors), **case.options}
    found = hashbench.evaluate(*case.sides(codes), case.rule, OF_VECTORS, **options)
    np.testing.assert_allclose(scored(found, OF_VECTORS), one_by_one(case, OF_VECTORS), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["all", "csr", "self, dense"])
def test_the_deviation_is_that_of_a_shuffle(name):
    case, n_orders = CASES[name], 500
    options = {"random_orders": n_orders, **case.options}
    found = hashbench.evaluate(*case.sides(codes), case.rule, ["AP", "P@3", "NDCG@5"], **options)
    for metric, values in found.summary.items():
        drawn = found.random_orders[metric]
        assert values.low - 1e-12 <= drawn.min() <= drawn.max() <= values.high + 1e-12
        assert drawn.mean() == pytest.approx(values.mean, abs=5 * drawn.std() / np.sqrt(n_orders) + 1e-12)
        assert values.tie_sd_low <= drawn.std() * 1.1
        assert drawn.std() <= values.tie_sd_bound * 1.1
        assert values.tie_sd == pytest.approx(drawn.std(), rel=0.25)


def test_databases_in_slices_and_counts_of_workers_lack_ignored_items_too(case, monkeypatch):
    query, database, n_bits = as_packed_pair(*case.sides(codes), None, None)
    problem = Problem.of_codes(*case.sides(codes), case.rule, **case.options)
    expected, thresholds, reduced = problem.evaluate(METRICS), problem.thresholds(), problem.codes.relevance
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 7 * 8)
    sliced = in_slices(query, database, n_bits, reduced)
    found, counts = sliced.evaluate(METRICS), sliced.thresholds()
    np.testing.assert_array_equal(scored(found, METRICS), scored(expected, METRICS))
    for name, values in found.summary.items():
        assert values.by_name == pytest.approx(expected.summary[name].by_name, nan_ok=True)
    np.testing.assert_array_equal([counts.n_true, counts.n_false], [thresholds.n_true, thresholds.n_false])
    note = f"{case.is_ignored.sum():,} of {case.is_ignored.size:,} pairs are ignored."
    assert (note in counts.notes) == (not case.is_self)
    for one, other in ((found, expected), (counts, thresholds)):
        assert [note for note in one.notes if "ignored" in note] == [note for note in other.notes if "ignored" in note]
    whole, *parts = (
        count_rows(query, database, n_bits, _AffinityRows(reduced.part(slice(None), rows), rows.start), rows).histogram
        for rows in (slice(0, len(database)), slice(0, 13), slice(13, len(database)))
    )
    np.testing.assert_array_equal((parts[0] + parts[1]).counts, whole.counts)
    np.testing.assert_array_equal(whole.n_database, (~case.is_ignored).sum(axis=1))


@pytest.mark.parametrize(
    ("cameras", "cause"),
    [
        (np.zeros(N_ALL, dtype=int), "all queries and items are in one group, such as one camera"),
        (classes, "all relevant ones are in theirs. Check that groups, such as cameras, differ within a class."),
    ],
)
def test_groups_that_leave_no_relevant_item_are_given_as_the_cause(cameras, cause):
    options = {"groups": split(cameras)}
    problem = Problem.of_codes(*split(codes), same, **options)
    found = {
        "codes": problem.evaluate(["AP"]),
        "outputs": hashbench.evaluate(*split(vectors + 0.01), same, ["AP"], distance="cosine", **options),
        "thresholds": problem.thresholds(),
        "explain": hashbench.explain(problem),
    }
    for name, result in found.items():
        assert [note for note in result.notes if cause in note], name
    some = np.where(np.arange(N_ALL) == np.flatnonzero(classes[N_QUERIES:] == classes[0])[0] + N_QUERIES, 99, cameras)
    assert not [note for note in hashbench.evaluate(*split(codes), same, groups=split(some)).notes if "No rel" in note]
    assert not [note for note in hashbench.evaluate(*split(codes), same).notes if "No relevant" in note]


def test_an_item_with_itself_is_no_ignored_pair_of_a_threshold():
    classes, groups = np.arange(30) % 3, np.arange(30) % 5
    options = {"exclude_self": True, "groups": (groups, groups)}
    found = Problem.of_codes(codes[:30], codes[:30], (classes, classes), **options).thresholds()
    assert "15 of 435 pairs are ignored." in found.notes  # two items have each class and group


def test_micro_average_precision_has_a_pair_once():
    equal, classes = np.zeros((3, 4), dtype=bool), [0, 0, 1]
    found = Problem.of_codes(equal, equal, (classes, classes), exclude_self=True).thresholds()
    expected = oracles.over_orders(oracles.average_precision, [0, 0, 0], [1, 0, 0])
    assert (found.uap.mean, found.uap.low, found.uap.high) == pytest.approx(expected[:3])


def test_a_part_of_a_rule_of_a_plug_in_ignores_pairs_too():
    part = OfAPlugIn().part(slice(2, 5))
    assert part.ignores
    found, whole = (
        hashbench.evaluate(codes[rows], codes[N_QUERIES:], rule, ["AP"]).scores["AP"].mean
        for rows, rule in ((slice(2, 5), part), (slice(0, N_QUERIES), OfAPlugIn()))
    )
    np.testing.assert_array_equal(found, whole[2:5])


@pytest.mark.parametrize("name", ["all", "csr"])
def test_scripts_get_the_items_that_are_left(name):
    rule, options, is_ignored, _ = CASES[name]
    (query, database), levels = split(codes), rule.block(slice(None), slice(None))
    together = explained(["AP@7"], query, database, leave_out(rule, **options))
    one_by_one = []
    for row in range(N_QUERIES):
        left = ~is_ignored[row]
        alone = Explicit(levels[[row]][:, left])
        one_by_one.append(values_of(explained(["AP@7"], query[[row]], database[left], alone)))
    kept = {explanation.evaluator.name for explanation in together if explanation.evaluator.mean == "count_zero"}
    assert len(kept) > 5
    notes = hashbench.explain(Problem.of_codes(query, database, rule, **options), ["AP@7"]).notes
    assert any(f"{is_ignored.sum():,} of {is_ignored.size:,} pairs" in note for note in notes)
    for explanation in together:
        name = explanation.evaluator.name
        if name in kept and not explanation.evaluator.item_order:
            assert explanation.value == pytest.approx(np.mean([values[name] for values in one_by_one])), name


def market_1501(distances, people, views, gallery_people, gallery_views):
    """Compute mAP and CMC as torchreid's ``eval_market1501`` does, on a gallery that still has junk."""
    values, first_hits = [], []
    for row, order in enumerate(np.argsort(distances, axis=1)):
        order = order[gallery_people[order] != -1]
        is_removed = (gallery_people[order] == people[row]) & (gallery_views[order] == views[row])
        hits = (gallery_people[order] == people[row])[~is_removed].astype(int)
        if not hits.any():
            continue  # this person is seen by no other camera
        precisions = hits.cumsum() / np.arange(1, len(hits) + 1)
        values.append((precisions * hits).sum() / hits.sum())
        first_hits.append(int(hits.argmax()) + 1)
    return np.mean(values), np.mean(np.array(first_hits)[:, None] <= [1, 5], axis=0), len(values)


def test_re_identification_is_scored_as_by_its_scripts():
    people, views, outputs = rng.integers(1, 9, 90), rng.integers(1, 4, 90), rng.normal(size=(90, 16))
    people[20:35] = -1
    unit = outputs / np.linalg.norm(outputs, axis=1, keepdims=True)
    expected = market_1501(1 - unit[:20] @ unit[20:].T, people[:20], views[:20], people[20:], views[20:])
    options = {"distance": "cosine", "groups": (views[:20], views[20:]), "junk_label": -1}
    found = hashbench.evaluate(
        outputs[:20], outputs[20:], (people[:20], people[20:]), ["AP", "Hit@1", "Hit@5"], **options
    )
    assert found["AP"].mean == pytest.approx(expected[0])
    assert [found["Hit@1"].mean, found["Hit@5"].mean] == pytest.approx(expected[1])
    assert found["AP"].n_queries - found["AP"].n_undefined == expected[2]


def test_a_rule_with_level_minus_one_must_say_that_it_ignores_pairs():
    class Silent(OfAPlugIn):
        ignores = False

    with pytest.raises(HashbenchError, match="Silent returned level -1"):
        hashbench.evaluate(*split(codes), Silent(), ["AP"])


def test_queries_that_are_the_database_are_noted():
    labels, rule = (own, own), SameLabel(own, own)
    items, outputs = codes[:N_SELF], vectors[:N_SELF]
    problem = Problem.of_codes(items, items, labels)
    by_dot = hashbench.evaluate(outputs, outputs, labels, ["AP"], distance="dot")
    sliced = in_slices(*as_packed_pair(items, items, None, None), rule)
    for found in (problem.evaluate(["AP"]), problem.thresholds(), by_dot, sliced.evaluate(["AP"])):
        (note,) = found.notes
        assert "exclude_self" in note
    assert not hashbench.evaluate(items, items[::-1], (own, own[::-1]), ["AP"]).notes
    not_itself = np.where(np.eye(N_SELF, dtype=bool), -1, symmetric)
    assert not [note for note in hashbench.evaluate(items, items, not_itself, ["AP"]).notes if "exclude_self" in note]


def test_queries_that_are_not_the_database_cannot_leave_themselves_out():
    for query, database, labels, message in (
        (codes[:9], codes[9:18], own, "differ"),
        (codes[:9], codes[:10], own, "9 queries and 10"),
        (codes[:1], codes[:1], own, "one item"),
        (codes[:9], codes[:9], own[::-1], "their labels differ"),
    ):
        rule = own[: len(query)], labels[: len(database)]
        with pytest.raises(HashbenchError, match=message):
            Problem.of_codes(query, database, rule, exclude_self=True)
    packed, twice = as_packed_pair(codes[:9], codes[:9], None, None), SameLabel(own[:9], own[:9][::-1])
    with pytest.raises(HashbenchError, match="their labels differ"):
        in_slices(*packed, leave_out(twice, exclude_self=True))


def test_thresholds_refuse_what_is_relevant_one_way_only():
    equal, even = np.zeros((N_SELF, 4), dtype=bool), np.zeros((N_SELF, N_SELF), dtype=int)
    even[[0, 2], [1, 3]] = 1  # an even number of pairs
    for items, one_way in ((equal, even), (codes[:N_SELF], np.eye(N_SELF, k=1, dtype=int))):
        with pytest.raises(HashbenchError, match="two items are one pair"):
            Problem.of_codes(items, items, one_way, exclude_self=True).thresholds()

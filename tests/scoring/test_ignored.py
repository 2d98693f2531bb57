"""Items that a query ignores, against each query on its own in a database that lacks them."""

import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from helpers.script_values import explained, values_of
from helpers.slices import in_slices
from helpers.thoroughness import ALL

import hashbench
from hashbench import Explicit, Hierarchy, SameLabel, SharedLabels
from hashbench.affinity import Affinity
from hashbench.bits import as_packed_pair
from hashbench.pipeline.cluster import _AffinityRows, count_rows
from hashbench.scoring import counting
from hashbench.scoring.ignored import leave_out

N_QUERIES, N_ITEMS, N_BITS = 14, 60, 7
rng = np.random.default_rng(0)
codes = (rng.random((15, N_BITS)) > 0.5)[rng.integers(0, 15, N_QUERIES + N_ITEMS)]
vectors = rng.normal(size=(N_QUERIES + N_ITEMS, 3)).round(1)
classes, cameras = rng.integers(0, 5, N_QUERIES + N_ITEMS), rng.integers(0, 3, N_QUERIES + N_ITEMS)
ids = rng.integers(0, 25, N_QUERIES + N_ITEMS)
classes[1], cameras[1], codes[1], ids[1] = classes[0], cameras[0], codes[0], ids[0]  # two queries of one kind
classes[2], codes[2], cameras[2] = classes[0], codes[0], (cameras[0] + 1) % 3  # and one but for what it ignores
multi_hot = rng.integers(0, 2, (N_QUERIES + N_ITEMS, 4))
matrix = rng.choice([-1, -1, 0, 0, 0, 1, 4], (N_QUERIES, N_ITEMS))
matrix[1] = matrix[0]


def split(values):
    return values[:N_QUERIES], values[N_QUERIES:]


same = split(classes)
in_class = np.equal.outer(*same)
of_camera, of_id = np.equal.outer(*split(cameras)), np.equal.outer(*split(ids))
is_junk = np.broadcast_to(classes[N_QUERIES:] == 3, in_class.shape)
words = np.array(["ü", "dog", "cat", "bee", "ant"])[classes]
CASES = {  # the rule, the options, and which pairs they ignore
    "groups": (SameLabel(*same), {"groups": split(cameras)}, in_class & of_camera),
    "groups of superclasses": (
        Hierarchy(*same, *split(classes % 2)),
        {"groups": split(np.array(["a", "b", "c"])[cameras])},
        in_class & of_camera,
    ),
    "ids": (SharedLabels(*split(multi_hot)), {"exclude_same_id": split(ids)}, of_id),
    "junk": (SameLabel(*same), {"junk_label": 3}, is_junk),
    "junk of two classes": (SameLabel(*same), {"junk_label": [3, 1]}, is_junk | (classes[N_QUERIES:] == 1)),
    "junk in words": (SameLabel(*split(words)), {"junk_label": "bee"}, is_junk),
    "junk in words, superclasses": (
        Hierarchy(*split(words), *split(classes % 2)),
        {"junk_label": "bee"},
        is_junk,
    ),
    "dense": (Explicit(matrix), {}, matrix == -1),
    "csr": (Explicit(sp.csr_array(matrix)), {}, matrix == -1),
    "ids and dense": (Explicit(matrix), {"exclude_same_id": split(ids)}, (matrix == -1) | of_id),
    "all": (
        SameLabel(*same),
        {"exclude_same_id": split(ids), "groups": split(cameras), "junk_label": 3},
        is_junk | of_id | (in_class & of_camera),
    ),
}
METRICS = ["AP", "AP@5", "NDCG", "P@3", "R@3", "P@r1", "P@r1:skip", "R@r1", "LGAP@r2", "RR", "PairwiseError", "AP@R"]
OF_VECTORS = ["AP", "R@3:reranked=6", "NDCG@3:reranked=6"]


@pytest.fixture(params=CASES)
def case(request):
    """A rule, options, and which pairs they ignore."""
    return CASES[request.param]


def one_by_one(items, case, metrics, re_ranked_by=None, **options):
    """Score each query in the database without the items that it ignores; scores are (n_metrics, 4, n_queries)."""
    rule, _, is_ignored = case
    levels, (query, database), found = rule.block(slice(None), slice(None)), split(items), []
    for row in range(N_QUERIES):
        left = np.flatnonzero(~is_ignored[row])
        if re_ranked_by is not None:
            options["vectors"] = re_ranked_by[[row]], re_ranked_by[N_QUERIES:][left]
        parts = query[[row]], database[left], levels[[row]][:, left]
        scores = hashbench.evaluate(*parts, metrics, **options).scores
        found.append([np.ravel(scores[name]) for name in metrics])
    return np.moveaxis(np.array(found), 0, -1)


def scored(evaluation, metrics):
    return np.array([evaluation.scores[name] for name in metrics])


def test_scores_are_those_of_each_query_in_its_own_database(case):
    rule, options, is_ignored = case
    found = hashbench.evaluate(*split(codes), rule, METRICS, **options)
    of_each = is_ignored.sum(axis=1)
    least, most = of_each.min(), of_each.max()
    each = f"{least}" if least == most else f"{least} to {most}"
    pairs = f"{of_each.sum():,} of {is_ignored.size:,} pairs of a query and a database item are ignored"
    assert f"{pairs}, {each} of each query." in found.notes
    np.testing.assert_allclose(scored(found, METRICS), one_by_one(codes, case, METRICS), rtol=1e-12, atol=1e-12)
    assert found.n_undefined == np.isnan(found.scores["AP"].mean).sum()


def test_pairs_are_subtracted_in_any_parts(case, monkeypatch):
    monkeypatch.setattr(counting, "_PAIRS", 3)
    monkeypatch.setattr(counting, "_BLOCK_BYTES", 8 * 7)
    monkeypatch.setattr(counting, "_LEVEL_COLUMNS", 4)
    test_scores_are_those_of_each_query_in_its_own_database(case)


def test_candidates_to_re_rank_lack_ignored_items(case):
    rule, options, _ = case
    found = hashbench.evaluate(*split(codes), rule, OF_VECTORS, vectors=split(vectors), **options)
    expected = one_by_one(codes, case, OF_VECTORS, re_ranked_by=vectors)
    np.testing.assert_allclose(scored(found, OF_VECTORS), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("distance", ["cosine", "dot"])
def test_real_valued_rankings_lack_ignored_items(case, distance):
    rule, options, _ = case
    found = hashbench.evaluate(*split(vectors), rule, ["AP", "P@3"], distance=distance, **options)
    expected = one_by_one(vectors, case, ["AP", "P@3"], distance=distance)
    np.testing.assert_allclose(scored(found, ["AP", "P@3"]), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("items", "distance"), [(codes, "hamming"), (vectors, "cosine")])
def test_a_random_order_is_one_of_the_left_items(case, items, distance):
    rule, options, is_ignored = case
    found = hashbench.evaluate(*split(items), rule, ["AP"], distance=distance, random_orders=3, **options)
    (query, database), levels = split(items.astype(float)), rule.block(slice(None), slice(None))
    unit = [part / np.linalg.norm(part, axis=1, keepdims=True) for part in (query, database)]
    distances = 1 - unit[0] @ unit[1].T if distance == "cosine" else np.abs(query[:, None] - database).sum(axis=2)
    for number, mean in enumerate(found.random_orders["AP"]):
        order = np.random.default_rng([0, number]).permutation(N_ITEMS)
        values = []
        for row in range(N_QUERIES):
            left = order[~is_ignored[row, order]]
            ranked = left[np.argsort(distances[row, left].round(9), kind="stable")]
            relevance = (levels[row, ranked] > 0).astype(int).tolist()
            values.append(oracles.average_precision(relevance, None) if any(relevance) else np.nan)
        assert mean == pytest.approx(np.nanmean(values), abs=1e-12)


@pytest.mark.parametrize("case", CASES if ALL else ["all", "csr"], indirect=True)
def test_the_deviation_is_that_of_a_shuffle(case):
    rule, options, _ = case
    n_orders = 20_000 if ALL else 500
    found = hashbench.evaluate(*split(codes), rule, ["AP", "P@3", "NDCG@5"], random_orders=n_orders, **options)
    for name, values in found.summary.items():
        drawn = found.random_orders[name]
        assert values.low - 1e-12 <= drawn.min() <= drawn.max() <= values.high + 1e-12
        assert drawn.mean() == pytest.approx(values.mean, abs=5 * drawn.std() / np.sqrt(n_orders) + 1e-12)
        assert values.tie_sd_low <= drawn.std() * 1.1
        assert drawn.std() <= values.tie_sd_bound * 1.1
        assert values.tie_sd == pytest.approx(drawn.std(), rel=0.25)


def test_thresholds_count_the_pairs_that_are_left(case):
    rule, options, is_ignored = case
    query, database = split(codes)
    distances, is_relevant = (query[:, None] != database).sum(axis=2), rule.block(slice(None), slice(None)) > 0
    found = hashbench.Problem.of_codes(query, database, rule, **options).thresholds()
    for match in found.matches:
        is_match = (distances <= match.radius) & ~is_ignored
        assert (match.n_matches, match.n_false) == (is_match.sum(), (is_match & ~is_relevant).sum())
        assert match.n_queries_with_false == (is_match & ~is_relevant).any(axis=1).sum()
    of_each = one_by_one(codes, case, ["P@r1", "R@r1"])[:, 0]
    assert (found.query_precision[1], found.query_recall[1]) == pytest.approx(np.nanmean(of_each, axis=1))
    assert found.n_undefined == np.isnan(of_each[1]).sum()
    assert f"{is_ignored.sum():,} of {is_ignored.size:,} pairs are ignored." in found.notes


@pytest.mark.parametrize(
    ("cameras", "cause"),
    [
        (np.zeros(74, dtype=int), "all queries and items are in one group, such as one camera"),
        (classes, "all relevant ones are in theirs. Check that groups, such as cameras, differ within a class."),
    ],
)
def test_groups_that_leave_no_relevant_item_are_given_as_the_cause(cameras, cause):
    options = {"groups": split(cameras)}
    rule = leave_out(SameLabel(*same), **options)
    packed = as_packed_pair(*split(codes))
    found = {
        "codes": hashbench.evaluate(*split(codes), same, ["AP"], **options),
        "outputs": hashbench.evaluate(*split(vectors + 0.01), same, ["AP"], distance="cosine", **options),
        "shards": in_slices(*packed, rule).evaluate(["AP"]),
        "thresholds": hashbench.Problem.of_codes(*split(codes), same, **options).thresholds(),
        "explain": hashbench.explain(hashbench.Problem.of_codes(*split(codes), same, **options)),
    }
    for name, scored in found.items():
        assert [note for note in scored.notes if cause in note], name
    some = np.where(np.arange(74) == np.flatnonzero(classes[N_QUERIES:] == classes[0])[0] + N_QUERIES, 99, cameras)
    assert not [note for note in hashbench.evaluate(*split(codes), same, groups=split(some)).notes if "No rel" in note]
    assert not [note for note in hashbench.evaluate(*split(codes), same).notes if "No relevant" in note]


def test_an_item_with_itself_is_no_ignored_pair_of_a_threshold():
    classes, groups = np.arange(30) % 3, np.arange(30) % 5
    found = hashbench.Problem.of_codes(codes[:30], codes[:30], (classes, classes), exclude_self=True).thresholds()
    assert not any("ignored" in note for note in found.notes)
    options = {"exclude_self": True, "groups": (groups, groups)}
    found = hashbench.Problem.of_codes(codes[:30], codes[:30], (classes, classes), **options).thresholds()
    assert "15 of 435 pairs are ignored." in found.notes  # two items have each class and group


def test_databases_in_slices_lack_ignored_items_too(case, monkeypatch):
    rule, options, _ = case
    metrics = METRICS
    query, database, n_bits = as_packed_pair(*split(codes), None, None)
    expected = hashbench.evaluate(*split(codes), rule, metrics, **options)
    monkeypatch.setattr("hashbench.scoring.counting._BLOCK_BYTES", 7 * 8)
    found = in_slices(query, database, n_bits, leave_out(rule, **options))
    np.testing.assert_array_equal(scored(found.evaluate(metrics), metrics), scored(expected, metrics))
    assert [note for note in found.evaluate(metrics).notes if "ignored" in note] == [
        note for note in expected.notes if "ignored" in note
    ]
    for name, values in found.evaluate(metrics).summary.items():
        assert values.by_name == pytest.approx(expected.summary[name].by_name, nan_ok=True)
    thresholds = hashbench.Problem.of_codes(*split(codes), rule, **options).thresholds()
    np.testing.assert_array_equal(found.thresholds().n_true, thresholds.n_true)
    np.testing.assert_array_equal(found.thresholds().n_false, thresholds.n_false)
    assert [note for note in found.thresholds().notes if "ignored" in note] == [
        note for note in thresholds.notes if "ignored" in note
    ]


def test_counts_of_workers_add_up(case):
    rule, options, _ = case
    query, database, n_bits = as_packed_pair(*split(codes), None, None)
    reduced = leave_out(rule, **options)
    whole = count_rows(query, database, n_bits, reduced, slice(0, N_ITEMS)).histogram
    parts = []
    for rows in (slice(0, 23), slice(23, N_ITEMS)):
        sent = _AffinityRows(reduced.part(slice(None), rows), rows.start)
        parts.append(count_rows(query, database, n_bits, sent, rows).histogram)
    np.testing.assert_array_equal((parts[0] + parts[1]).counts, whole.counts)


class OfAPlugIn(Affinity):
    """The rule of a matrix, in a class that hashbench does not know."""

    n_queries, n_database = matrix.shape
    levels, ignores = np.array([0, 1, 4]), True

    def block(self, query, database):
        return matrix[query][:, database].astype(np.int16)


def test_a_rule_of_a_plug_in_may_ignore_pairs_too():
    case = OfAPlugIn(), {}, matrix == -1
    test_scores_are_those_of_each_query_in_its_own_database(case)
    part = OfAPlugIn().part(slice(2, 5))
    assert part.ignores
    found, whole = (
        hashbench.evaluate(codes[rows], codes[N_QUERIES:], rule, ["AP"]).scores["AP"].mean
        for rows, rule in ((slice(2, 5), part), (slice(0, N_QUERIES), OfAPlugIn()))
    )
    np.testing.assert_array_equal(found, whole[2:5])


@pytest.mark.parametrize("case", CASES if ALL else ["all", "csr"], indirect=True)
def test_scripts_get_the_items_that_are_left(case):
    rule, options, is_ignored = case
    (query, database), levels = split(codes), rule.block(slice(None), slice(None))
    together = explained(["AP@7"], query, database, leave_out(rule, **options))
    one_by_one = []
    for row in range(N_QUERIES):
        left = ~is_ignored[row]
        alone = Explicit(levels[[row]][:, left])
        one_by_one.append(values_of(explained(["AP@7"], query[[row]], database[left], alone)))
    kept = {explanation.evaluator.name for explanation in together if explanation.evaluator.mean == "count_zero"}
    assert len(kept) > 5
    notes = hashbench.explain(hashbench.Problem.of_codes(query, database, rule, **options), ["AP@7"]).notes
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
    found = hashbench.evaluate(
        outputs[:20],
        outputs[20:],
        (people[:20], people[20:]),
        ["AP", "Hit@1", "Hit@5"],
        distance="cosine",
        groups=(views[:20], views[20:]),
        junk_label=-1,
    )
    assert found["AP"].mean == pytest.approx(expected[0])
    assert [found["Hit@1"].mean, found["Hit@5"].mean] == pytest.approx(expected[1])
    assert found["AP"].n_queries - found["AP"].n_undefined == expected[2]


def test_a_rule_with_level_minus_one_must_say_that_it_ignores_pairs():
    class Silent(Affinity):
        n_queries, n_database, levels = 2, 3, np.array([0, 1])

        def block(self, query, database):
            return np.array([[0, -1, 1], [1, 0, 0]], dtype=np.int16)[query][:, database]

    codes = np.eye(3)
    with pytest.raises(hashbench.HashbenchError, match="Silent returned level -1"):
        hashbench.evaluate(codes[:2], codes, Silent(), ["AP"])

"""Pairs that match at each radius, against brute force, scikit-learn and SciPy."""

import numpy as np
import pytest
from helpers import oracles
from helpers.affinity_examples import N_BITS, RULES, database, query
from helpers.slices import in_slices
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.stats import t
from sklearn.metrics import f1_score, precision_score, recall_score, roc_curve

import hashbench
from hashbench import HashbenchError
from hashbench.affinity import Affinity
from hashbench.bits import as_packed_pair
from hashbench.scoring.thresholds import _sets_of_same

ENDS = ("low", "high")
DISTANCES = (query[:, None] != database).sum(axis=2)


@pytest.fixture(params=RULES)
def rule(request) -> Affinity:
    return RULES[request.param]


@pytest.fixture
def is_relevant(rule):
    return rule.block(slice(None), slice(None)) > 0


def test_every_radius_is_scikit_learns_classifier_over_all_pairs(rule, is_relevant):
    found = hashbench.Problem.of_codes(query, database, rule).thresholds()
    truth = is_relevant.ravel()
    for match in found.matches:
        is_match = DISTANCES.ravel() <= match.radius
        assert match.n_matches == is_match.sum()
        assert match.n_false == (is_match & ~truth).sum()
        assert match.fpr == pytest.approx((is_match & ~truth).sum() / (~truth).sum())
        if is_match.any():
            assert match.precision == pytest.approx(precision_score(truth, is_match))
        else:
            assert np.isnan(match.precision)
        assert match.recall == pytest.approx(recall_score(truth, is_match))
        assert match.f1 == pytest.approx(f1_score(truth, is_match))
        assert match.n_queries_with_false == ((match.radius >= DISTANCES) & ~is_relevant).any(axis=1).sum()


def test_what_single_queries_see_is_what_evaluate_scores(rule):
    frame = hashbench.Problem.of_codes(query, database, rule).thresholds().to_frame()
    summary = hashbench.evaluate(
        query, database, rule, [f"{name}@r{r}" for name in "PR" for r in frame["radius"]]
    ).summary
    assert frame["query_precision"].tolist() == pytest.approx([summary[f"P@r{r}"].mean for r in frame["radius"]])
    assert frame["query_recall"].tolist() == pytest.approx([summary[f"R@r{r}"].mean for r in frame["radius"]])
    assert frame["n_empty"].tolist() == [(~(r >= DISTANCES).any(axis=1)).sum() for r in frame["radius"]]


def test_micro_average_precision_is_the_mean_over_orders_of_all_pairs():
    codes, relevance = database[:5], np.array([[1, 0, 0, 1, 0], [0, 1, 0, 0, 0]])
    found = hashbench.Problem.of_codes(query[:2], codes, relevance).thresholds().uap
    pairs = DISTANCES[:2, :5].ravel().tolist(), relevance.ravel().tolist()
    expected = oracles.over_orders(oracles.average_precision, *pairs)
    assert (found.mean, found.low, found.high) == pytest.approx(expected[:3])


@pytest.mark.parametrize("exclude_self", [True, False])
def test_deviation_of_micro_average_precision_is_that_of_shuffled_items(exclude_self):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 12, 48)
    codes = (rng.random((12, 8)) < 0.5)[labels] ^ (rng.random((48, 8)) < 0.1)
    rows, columns = (np.arange(48), np.arange(48)) if exclude_self else (np.arange(16), np.arange(16, 48))
    relevance = labels[rows], labels[columns]
    found = (
        hashbench.Problem.of_codes(codes[rows], codes[columns], relevance, exclude_self=exclude_self).thresholds().uap
    )
    scores = []
    for _ in range(200):
        items = rng.permutation(48)  # pairs of i < j, or query by query
        first, second = (items[part] for part in np.triu_indices(48, 1))
        if not exclude_self:
            first, second = np.repeat(rng.permutation(rows), 32), np.tile(rng.permutation(columns), 16)
        order = np.argsort((codes[first] != codes[second]).sum(axis=1), kind="stable")
        is_relevant = (labels[first] == labels[second])[order]
        scores.append((np.cumsum(is_relevant) / np.arange(1, len(order) + 1))[is_relevant].mean())
    assert found.mean == pytest.approx(np.mean(scores), rel=0.01)
    assert found.tie_sd == pytest.approx(np.std(scores), rel=0.2)


@pytest.mark.parametrize("is_database", [False, True])
def test_labelled_pairs_are_counted_as_they_are(is_database):
    rng = np.random.default_rng(0)
    items = database if is_database else query
    pairs = np.column_stack([rng.integers(0, len(items), 90), rng.integers(0, len(database), 90)])
    pairs = np.unique(pairs[pairs[:, 0] < pairs[:, 1]] if is_database else pairs, axis=0)
    is_same = np.arange(len(pairs)) % 3 == 0
    found = hashbench.pair_thresholds(items, database, np.column_stack([pairs, is_same]))
    distances = (items[pairs[:, 0]] != database[pairs[:, 1]]).sum(axis=1)
    np.testing.assert_array_equal(found.n_true, np.bincount(distances[is_same], minlength=N_BITS + 1))
    np.testing.assert_array_equal(found.n_false, np.bincount(distances[~is_same], minlength=N_BITS + 1))
    touched = pairs if is_database else pairs + np.array([0, len(items)])
    graph = coo_array((np.ones(is_same.sum()), tuple(touched[is_same].T)), shape=2 * (len(items) + len(database),))
    _, sets = connected_components(graph, directed=False)
    n_items, n_sets = len(np.unique(touched)), len(np.unique(sets[touched]))
    assert found.units == f"{n_items} items in {n_sets} sets of the same"
    is_within = sets[touched[:, 0]] == sets[touched[:, 1]]
    assert found.by_group.sum() == 2 * len(pairs) - is_within.sum()  # fewer sets than groups: others touch two
    assert found.uap.tie_sd > 0
    assert {"query_precision", "n_empty"}.isdisjoint(found.to_frame())
    swapped = np.column_stack([pairs[:, ::-1], is_same]) if is_database else np.column_stack([pairs, is_same])
    again = hashbench.pair_thresholds(items, database, np.concatenate([swapped, swapped[:2]]))
    assert again.at(3) == found.at(3)
    assert again.notes[0] == "2 labelled pairs repeated, and counted once."


def test_halves_hold_each_class_whole():
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(30), 4)
    codes = (rng.random((30, 8)) < 0.5)[labels] ^ (rng.random((120, 8)) < 0.1)
    found = hashbench.Problem.of_codes(codes, codes, (labels, labels), exclude_self=True).thresholds(held_out=True)
    for half in (found, found.held_out):
        assert (half.n_queries, half.n_relevant, half.n_irrelevant) == (60, 15 * 6, 60 * 59 // 2 - 90)
    whole = hashbench.Problem.of_codes(codes, codes, (labels, labels), exclude_self=True).thresholds()
    np.testing.assert_array_equal(found.n_true + found.held_out.n_true, whole.n_true)
    pairs = np.array([[row, row + 1, int(row % 4 < 3)] for row in range(119)])
    labelled = hashbench.pair_thresholds(codes, codes, pairs, held_out=True)
    n_counted = sum(half.n_relevant + half.n_irrelevant for half in (labelled, labelled.held_out))
    assert 0 < n_counted < len(pairs)
    assert f"{len(pairs) - n_counted} labelled pairs with an item in each half left out." in labelled.notes


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 1]], "shape .1, 2., expected whole numbers"),
        ([[0, 1, 0.5]], "pairs are float64"),
        (np.zeros((0, 3), dtype=int), "of shape .0, 3."),
        ([[0, 9, 1]], r"labelled pair 0 .* is \[0, 9, 1\], expected a row of 3"),
        ([[0, 1, 1], [0, 1, 2]], r"labelled pair 1 .* and 0 or 1"),
        ([[0, 1, 1], [1, 0, 0]], "items 0 and 1 of the codes .* are labelled both"),
        ([[0, 1, 1], [2, 2, 1]], "labelled pair 1 .* is of one item"),
    ],
)
def test_labelled_pairs_that_make_no_sense_are_refused(pairs, message):
    with pytest.raises(HashbenchError, match=message):
        hashbench.pair_thresholds(database[:3], database[:3], pairs)


def test_pairs_and_halves_need_what_they_count():
    for pairs, message in (
        ([[0, 1, 1], [1, 2, 0]], "3 items are too few to choose a radius on one half"),
        ([[0, 2, 1], [1, 3, 0]], "no labelled pair has both items in one half"),
    ):
        with pytest.raises(HashbenchError, match=message):
            hashbench.pair_thresholds(database, database, pairs, held_out=True)


def test_a_share_or_a_radius_that_is_none_is_refused():
    found = hashbench.Problem.of_codes(query, database, RULES["dense"]).thresholds()
    for share in (5, -1, float("nan"), "x"):
        for choose in (found.at_fpr, found.at_precision):
            with pytest.raises(HashbenchError, match=r"is a share from 0 to 1, such as 0\.001, got"):
                choose(share)
    for radius in (-1, 12, 1.5, "2"):
        with pytest.raises(HashbenchError, match=f"radius is {radius}, expected a whole number from 0 to 11"):
            found.at(radius)
    assert found.at(2.0) == found.at(2)


def test_shards_have_the_counts_of_the_whole(rule):
    packed_query, packed, n_bits = as_packed_pair(query, database, None, None)
    found, expected = (  # without intervals, since shards are not resampled
        codes.to_frame().drop(columns=[f"{name}_{end}" for name in ("precision", "recall", "fpr") for end in ENDS])
        for codes in (
            in_slices(packed_query, packed, n_bits, rule).thresholds(),
            hashbench.Problem.of_codes(query, database, rule).thresholds(),
        )
    )
    np.testing.assert_array_equal(found, expected)


def test_the_radius_that_is_looked_for_is_the_largest_that_has_it():
    # distances 0 to 3; relevant, relevant, irrelevant, relevant
    codes = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1]])
    found = hashbench.Problem.of_codes(codes[:1], codes, np.array([[1, 1, 0, 1]])).thresholds()
    assert [round(match.f1, 3) for match in found.matches] == [0.5, 0.8, 0.667, 0.857]
    assert found.best_f1.radius == 3
    assert (found.at_fpr(0.999), found.at_fpr(1).radius) == (None, 3)  # of one query
    assert (found.at_precision(0).radius, found.at_precision(0.001)) == (3, None)
    reason = "these pairs cannot show it; the highest lower bound of a radius is 0.0000"
    assert found.why_no_precision(0.9) == reason
    assert hashbench.Problem.of_codes(codes[:1], codes[:1], np.array([[0]])).thresholds().at_fpr(0.5) is None


def test_a_radius_is_chosen_by_the_upper_bound_of_the_false_positive_rate_or_the_lower_one_of_precision():
    found = hashbench.Problem.of_codes(query, database, RULES["dense"]).thresholds()
    highs = [match.fpr_high for match in found.matches]
    assert highs == sorted(highs)
    for radius, high in enumerate(highs[:-1]):
        assert found.at_fpr(high).radius == max(place for place, other in enumerate(highs) if other <= high) >= radius
    assert found.at_fpr(highs[0] * 0.99) is None
    lows = [match.precision_low if match.n_matches else -1 for match in found.matches]
    for low in set(lows) - {-1}:
        assert found.at_precision(low).radius == max(place for place, other in enumerate(lows) if other >= low)
    beyond = max(lows) + 1e-9
    assert found.at_precision(beyond) is None
    assert f"the highest lower bound of a radius is {max(lows):.4f}" in found.why_no_precision(beyond)
    best = max((match for match in found.matches if match.n_matches), key=lambda match: match.precision)
    said = f"no radius has it; the highest precision is {best.precision:.4f}, of radius {best.radius}"
    assert found.why_no_precision(best.precision + 1e-9) == said


def test_without_relevant_or_irrelevant_pairs_shares_are_unknown():
    found = hashbench.Problem.of_codes(query, database, np.zeros(DISTANCES.shape, dtype=int)).thresholds()
    assert found.best_f1 is None
    assert np.isnan([found.at(3).recall, found.at(3).f1, found.uap.mean]).all()
    assert found.n_undefined == len(query)
    everything = (
        hashbench.Problem.of_codes(query, database, np.ones(DISTANCES.shape, dtype=int)).thresholds().at(N_BITS)
    )
    assert (everything.precision, everything.recall) == (1, 1)
    assert np.isnan([everything.fpr, everything.fpr_low]).all()


def of_pairs(codes, pairs):
    return hashbench.pair_thresholds(codes, codes, pairs)


def test_two_codes_are_compared_by_roc_and_average_precision_over_the_same_pairs():
    rng = np.random.default_rng(0)
    codes, others = rng.random((30, 12)) < 0.5, rng.random((30, 20)) < 0.5
    pairs = np.array([(i, j, (i + j) % 3 == 0) for i in range(30) for j in range(i)])
    uap, recall = hashbench.compare_pairs(of_pairs(codes, pairs), of_pairs(others, pairs), [0.1])
    for place, of_items in (("first", codes), ("second", others)):
        distance = (of_items[pairs[:, 0]] != of_items[pairs[:, 1]]).sum(axis=1)
        orders = [pairs[np.lexsort((rng.random(len(pairs)), distance)), 2] for _ in range(3000)]
        precisions = [(np.cumsum(order) / np.arange(1, len(order) + 1))[order > 0].mean() for order in orders]
        assert getattr(uap, place) == pytest.approx(np.mean(precisions), abs=0.002)
        false, true, _ = roc_curve(pairs[:, 2], -distance, drop_intermediate=False)
        assert getattr(recall, place) == pytest.approx(np.interp(0.1, false, true))
    for found in (uap, recall):
        assert found.value == pytest.approx(found.first - found.second)
        assert found.low < found.value < found.high
        assert found.is_shown == (found.low > 0 or found.high < 0)


def test_the_interval_of_a_difference_is_that_of_leaving_each_item_out():
    rng = np.random.default_rng(1)
    codes, others = rng.random((15, 12)) < 0.5, rng.random((15, 12)) < 0.5
    pairs = np.array([(i, j, i // 3 == j // 3) for i in range(15) for j in range(i)])

    def difference(chosen):
        return hashbench.compare_pairs(of_pairs(codes, chosen), of_pairs(others, chosen))[0]

    without = np.array([difference(pairs[(pairs[:, :2] != item).all(axis=1)]).value for item in range(15)])
    found = difference(pairs)
    half = t.ppf(0.975, 14) * np.sqrt(14 / 15 * ((without - without.mean()) ** 2).sum())
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


@pytest.mark.parametrize("n_copies", [2, 8])
def test_intervals_of_differences_hold_for_other_images(n_copies):
    labels = np.repeat(np.arange(20), n_copies)
    first, second = np.triu_indices(len(labels), 1)
    pairs = np.column_stack([first, second, labels[first] == labels[second]]).astype(int)
    held, values, widths = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        of_image, difficulty = (rng.random((2, 20, 16)) < 0.5)[:, labels], rng.normal(size=(2, 20, 1))[:, labels]
        codes = of_image ^ (rng.random((2, len(labels), 16)) < 1 / (1 + np.exp(2 - difficulty)))
        uap, _ = hashbench.compare_pairs(*(of_pairs(one, pairs) for one in codes), rates=[0.01])
        held.append(uap.low <= 0 <= uap.high)  # both hashes are drawn alike
        values.append(uap.value)
        widths.append(uap.high - uap.low)
    assert np.mean(held) >= 0.88
    assert np.mean(widths) < 3 * 2 * np.std(values)


def test_sets_of_the_same_are_found_through_any_chain():
    rng = np.random.default_rng(1)
    for _ in range(20):
        same = rng.integers(0, 30, (2, rng.integers(0, 40)))
        graph = coo_array((np.ones(same.shape[1]), tuple(same)), shape=(30, 30))
        n_sets, sets = connected_components(graph, directed=False)
        found = _sets_of_same(30, same)
        assert len(set(zip(found.tolist(), sets.tolist(), strict=True))) == n_sets == found.max() + 1


def test_pairs_that_differ_are_not_compared():
    codes, pairs = np.eye(4, dtype=bool), np.array([[0, 1, 1], [1, 2, 0], [2, 3, 1]])
    with pytest.raises(HashbenchError, match="the pairs differ: 2 relevant and 1 others of 4 items, and 1 and 1 of 3"):
        hashbench.compare_pairs(of_pairs(codes, pairs), of_pairs(codes, pairs[:2]))
    with pytest.raises(HashbenchError, match="all pairs are relevant, or none is"):
        hashbench.compare_pairs(*2 * [of_pairs(codes, pairs[::2])])
    with pytest.raises(HashbenchError, match="a false positive rate is a share from 0 to 1"):
        hashbench.compare_pairs(*2 * [of_pairs(codes, pairs)], rates=[2])

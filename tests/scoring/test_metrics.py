import math
import re

import numpy as np
import pytest
from helpers import oracles
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom
from sklearn.metrics import ndcg_score

from hashbench.errors import HashbenchError
from hashbench.scoring.histogram import TieHistogram
from hashbench.scoring.metrics import FAMILIES, Family, Metric, Scores, _loops, get_metric, metric_names
from hashbench.scoring.metrics._sums import cut_at, discount_sums, harmonic_range, weighted_discount_sums

N_BITS = 4
LEVELS = [0, 1, 2, 5, 10]
ANY_LEVEL = st.sampled_from(LEVELS)
DIVISORS = ("retrieved", "relevant", "capped")


def spellings(in_a_radius=False):
    """List all metrics with each of their options, {k} for the cutoff: AP@{k}:capped, P@r{k}."""
    names = []
    for family in FAMILIES.values():
        is_untied = family.pattern.endswith("@rN") and family.slopes is None
        if (
            family.pattern != "AP@rN"
            and is_untied == in_a_radius
            and not (family.needs_buckets or family.needs_candidates)
        ):
            stem = family.pattern.replace("@rN", "@r{k}").replace("@k", "@{k}")
            names += [f"{stem}:{option}" for option in family.options] or [stem]
    return [name for name in names if name != "AP:thresholds"]  # no order has it; beside scikit-learn in test_rankings


def oracle_of(name):
    """Find the brute-force version of a metric, cutoff and option given."""
    metric = get_metric(name)
    oracle = oracles.ORACLES.get(metric.family.pattern)
    assert oracle, f"add a brute-force version of {metric.family.pattern} to ORACLES in tests/helpers/oracles.py"
    return lambda *ranking: oracle(*ranking, *metric.arguments)


def rankings(max_size, levels=ANY_LEVEL):
    """Draw one or two queries' lists of (distance, level) over a database of one size."""

    def of_size(n_items):
        item = st.tuples(st.integers(0, N_BITS), st.one_of(st.just(0), levels))
        ranking = st.lists(item, min_size=n_items, max_size=n_items)
        return st.integers(1, 2).flatmap(lambda n: st.lists(ranking, min_size=n, max_size=n))

    return st.integers(1, max_size).flatmap(of_size)


def split(queries):
    distances = [[distance for distance, _ in ranking] for ranking in queries]
    levels = [[level for _, level in ranking] for ranking in queries]
    return distances, levels


def scores(name, distances, levels, n_bits=N_BITS, undefined="skip"):
    histogram = TieHistogram.from_pairs(distances, levels, n_bits=n_bits)
    return get_metric(name).scores(histogram, undefined)


def scored(name, distances, levels, **options):
    """Return mean, low, high and deviation, (n_queries, 4), and leave out a deviation that the metric does not know."""
    result = np.transpose(scores(name, distances, levels, **options))
    return result[:, :3] if name.startswith("WAP") else result


def approx(expected, **tolerance):
    return pytest.approx(np.asarray(expected, dtype=float), nan_ok=True, **(tolerance or {"abs": 1e-12}))


@pytest.mark.parametrize("pattern", spellings())
@given(queries=rankings(max_size=6), k=st.integers(1, 9))
def test_mean_low_high_and_deviation_equal_those_over_every_order_of_tied_items(pattern, queries, k):
    distances, levels = split(queries)
    name = pattern.format(k=k)
    expected = np.array(oracles.of_each_query(oracle_of(name), distances, levels))
    result = scored(name, distances, levels)
    assert result == approx(expected[:, : result.shape[1]])
    expected[np.isnan(expected).all(axis=1)] = [get_metric(name).family.paper_value] * 3 + [0]
    assert scored(name, distances, levels, undefined="paper") == approx(expected[:, : result.shape[1]])


@pytest.mark.parametrize(
    "pattern", [name for name in spellings() if name.startswith(("NDCG", "Pairwise", "ACG", "WAP"))]
)
@settings(max_examples=settings().max_examples // 2)
@given(queries=rankings(max_size=5, levels=st.floats(0.01, 20)), k=st.integers(1, 7))
def test_real_gains_are_scored_over_every_order_of_tied_items(pattern, queries, k):
    distances, levels = split(queries)
    name = pattern.format(k=k)
    expected = np.array(oracles.of_each_query(oracle_of(name), distances, levels))
    result = scored(name, distances, levels)
    assert result[:, :3] == approx(expected[:, :3])
    assert result[:, 3:] ** 2 == approx(expected[:, 3 : result.shape[1]] ** 2)


def test_small_gains_keep_their_digits():
    levels = np.array([[1e-12, 3e-12, 0]])
    assert np.ravel(scores("NDCG", [[0, 0, 0]], levels)) == approx(np.ravel(scores("NDCG:trec", [[0, 0, 0]], levels)))


@pytest.mark.parametrize("pattern", spellings(in_a_radius=True))
@given(queries=rankings(max_size=9), radius=st.integers(0, N_BITS + 2))
def test_a_ball_counts_the_items_inside(pattern, queries, radius):
    distances, levels = split(queries)
    name = pattern.format(k=radius)
    oracle = oracle_of(name)
    expected = [oracle(d, lv) if any(lv) else math.nan for d, lv in zip(distances, levels, strict=True)]
    result = scores(name, distances, levels)
    for part in result[:3]:
        np.testing.assert_array_equal(part, expected)
    np.testing.assert_array_equal(result.tie_sd, np.where(np.isnan(expected), np.nan, 0.0))


@given(queries=rankings(max_size=6), radius=st.integers(0, N_BITS + 2))
def test_average_precision_in_a_ball_is_that_of_the_items_inside_over_every_order(queries, radius):
    distances, levels = split(queries)
    for empty, of_none in (("zero", 0.0), ("skip", math.nan)):
        expected = []
        for d, lv in zip(distances, levels, strict=True):
            n_inside = sum(distance <= radius for distance in d)
            inside = [level for distance, level in sorted(zip(d, lv, strict=True)) if distance <= radius]
            within = sorted(distance for distance in d if distance <= radius)
            of_query = oracles.over_orders(lambda r: oracles.average_precision(r, None, "retrieved"), within, inside)
            of_query = of_query if n_inside else (of_none,) * 3 + (of_none * 0,)
            expected.append(of_query if any(lv) else (math.nan,) * 4)
        assert scored(f"AP@r{radius}:{empty}", distances, levels) == approx(expected)


@given(queries=rankings(max_size=9))
def test_error_in_linear_gain_equals_the_pairwise_error(queries):
    distances, levels = split(queries)
    gain, error = scores("NDCG:linear", distances, levels), scores("PairwiseError", distances, levels)
    for total in (gain.mean + error.mean, gain.low + error.high, gain.high + error.low):
        assert total == approx([1.0 if any(lv) else math.nan for lv in levels])


@pytest.mark.parametrize(("size", "n_rel"), [(10**5, 10**4), (50_000, 3)])
def test_reciprocal_rank_and_hit_in_a_large_tie_equal_sums_over_scipy_hypergeom(size, n_rel):
    counts = np.array([[[7, size - n_rel], [0, n_rel]]])
    k = 7 + size // 100
    places = np.arange(1, size - n_rel + 2)
    none_before = np.exp(hypergeom.logpmf(0, size, n_rel, places - 1))  # probability of no relevant one before a place
    expected = math.fsum(none_before * n_rel / (size - places + 1) / (7 + places))
    assert get_metric("RR").scores(TieHistogram(counts)).mean[0] == pytest.approx(expected, rel=1e-8)
    shown = places <= k - 7
    expected = math.fsum((none_before * n_rel / (size - places + 1) / (7 + places))[shown])
    assert get_metric(f"RR@{k}").scores(TieHistogram(counts)).mean[0] == pytest.approx(expected, rel=1e-8)
    result = get_metric(f"Hit@{k}").scores(TieHistogram(counts)).mean[0]
    assert result == pytest.approx(hypergeom.sf(0, size, n_rel, k - 7), rel=1e-8)


@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(2, 300), n_bits=st.integers(0, 12), k=st.integers(1, 400))
def test_ndcg_equals_that_of_scikit_learn_which_averages_ties(seed, n_items, n_bits, k):
    rng = np.random.default_rng(seed)
    distances = rng.integers(0, n_bits + 1, (3, n_items))
    levels = rng.choice(LEVELS, (3, n_items))
    levels[:, 0] = 1
    for name, cutoff in (("NDCG", None), (f"NDCG@{k}", k)):
        expected = [
            ndcg_score(2.0 ** lv[None] - 1, -d[None].astype(float), k=cutoff)
            for d, lv in zip(distances, levels, strict=True)
        ]
        assert scores(name, distances, levels, n_bits).mean == approx(expected)


@given(
    prefix=st.lists(st.integers(0, 1), max_size=12),
    size=st.integers(1, 40),
    share=st.floats(0, 1),
    depth=st.floats(0, 1),
)
def test_a_tie_cut_by_k_is_averaged_and_bounded_over_its_hypergeometric_number(prefix, size, share, depth):
    n_rel = max(round(share * size), 0 if any(prefix) else 1)
    k = len(prefix) + max(1, round(depth * size))
    distances = [[*range(len(prefix)), *[len(prefix)] * size]]
    levels = [[*prefix, *[1] * n_rel, *[0] * (size - n_rel)]]
    exact = oracles.cut_tie(prefix, size, n_rel, k)
    for divisor in DIVISORS:
        result = scores(f"AP@{k}:{divisor}", distances, levels, n_bits=len(prefix))
        assert np.ravel(result)[:3] == approx([float(value) for value in exact[divisor]])


@given(queries=rankings(max_size=40), k=st.integers(1, 50))
def test_low_mean_and_high_are_in_order_and_in_range(queries, k):
    distances, levels = split(queries)
    slack = 1e-12
    for pattern in spellings():
        name, of_graded = pattern.format(k=k), pattern.startswith(("ACG", "WAP"))  # up to the highest level
        mean, low, high, tie_sd = scores(name, distances, levels, undefined="paper")
        assert (low >= 0).all()
        assert (low <= mean + slack).all()
        assert (mean <= high + slack).all()
        assert (high <= (max(LEVELS) if of_graded else 1) + slack).all()
        tie_sd = np.where(np.isnan(tie_sd), 0.0, tie_sd)
        assert (tie_sd >= 0).all()
        assert (tie_sd <= (high - low) / 2 + slack).all()  # Popoviciu


@given(queries=rankings(max_size=20))
def test_an_irrelevant_item_beyond_all_relevant_ones_does_not_change_ap(queries):
    distances, levels = split(queries)
    beyond = N_BITS + 1
    before = scores("AP", distances, levels, n_bits=beyond)
    after = scores("AP", [[*d, beyond] for d in distances], [[*lv, 0] for lv in levels], n_bits=beyond)
    np.testing.assert_array_equal(after, before)


@given(queries=rankings(max_size=20), n_beyond=st.sampled_from([0, 1, 3, 10**25]))
def test_a_cutoff_beyond_the_database_is_cut_to_it(queries, n_beyond):
    distances, levels = split(queries)
    n_items = len(distances[0])
    for pattern in ("AP@{k}", "AP@{k}:relevant", "AP@{k}:capped", "NDCG@{k}", "P@{k}"):
        beyond = scores(pattern.format(k=n_items + n_beyond), distances, levels)
        np.testing.assert_array_equal(beyond, scores(pattern.format(k=n_items), distances, levels))
    assert np.asarray(scores(f"AP@{n_items}", distances, levels)) == approx(scores("AP", distances, levels))


def sum_of_precision(size, n_rel, before, rel_before, slots):
    """Mean and variance of the sum of precision at a tie's relevant items above the cut, rank by rank, in O(slots)."""

    def chance(n):  # that n given items of the tie are all relevant
        return math.prod((n_rel - i) / (size - i) if size > i else 0 for i in range(n))

    p, pp, ppp, pppp = (np.longdouble(chance(n)) for n in range(1, 5))
    place = np.arange(1, slots + 1, dtype=np.longdouble)
    weight = 1 / (before + place)
    n1 = rel_before + 1
    mean = (weight * (p * n1 + (place - 1) * pp)).sum()
    single = (p * n1**2 + (2 * n1 + 1) * pp * (place - 1) + ppp * (place - 1) * (place - 2)) * weight**2
    first = np.cumsum(weight) - weight  # of all k < l: the weights, and these times k - 1
    second = np.cumsum(weight * (place - 1)) - weight * (place - 1)
    constant = pp * n1 * (n1 + 1) + ppp * n1 * (place - 2)
    pairs = weight * (first * constant + second * (ppp * (n1 + 2) + pppp * (place - 3)))
    return mean, single.sum() + 2 * pairs.sum() - mean**2


@pytest.mark.parametrize(("size", "n_rel"), [(2, 1), (3, 2), (4, 2), (900, 1), (900, 899), (10**5, 10**4)])
@pytest.mark.parametrize(("before", "rel_before"), [(0, 0), (50, 20), (10**5, 10**3)])
def test_the_deviation_of_ap_equals_the_sum_over_ranks(size, n_rel, before, rel_before):
    counts = np.array([[[before - rel_before, 0, size - n_rel], [0, rel_before, n_rel]]])
    for slots in {size, size - size // 3, 1}:
        _, variance = sum_of_precision(size, n_rel, before, rel_before, slots)
        name = "AP" if slots == size else f"AP@{before + slots}:relevant"
        result = get_metric(name).scores(TieHistogram(counts)).tie_sd[0] * (rel_before + n_rel)
        assert result**2 == pytest.approx(float(variance), rel=1e-6 if variance > 1e-9 else 1e-3)


@pytest.mark.parametrize(("size", "n_rel", "slots"), [(500, 100, 60), (1000, 990, 400), (10**5, 5, 2000)])
@pytest.mark.parametrize(("before", "rel_before"), [(0, 0), (40, 15)])
def test_the_deviation_of_ap_over_those_retrieved_adds_up_over_their_number(size, n_rel, slots, before, rel_before):
    counts = np.array([[[before - rel_before, 0, size - n_rel], [0, rel_before, n_rel]]])
    first = before - rel_before
    known = math.fsum(i / (first + i) for i in range(1, rel_before + 1))
    moments = np.zeros(2)
    for m in range(max(0, slots - (size - n_rel)), min(slots, n_rel) + 1):
        chance = hypergeom.pmf(m, size, n_rel, slots)
        if chance > 1e-18 and rel_before + m > 0:
            mean, variance = sum_of_precision(slots, m, before, rel_before, slots)
            value = float(known + mean) / (rel_before + m)
            moments += chance * np.array([value, value**2 + float(variance) / (rel_before + m) ** 2])
    result = get_metric(f"AP@{before + slots}").scores(TieHistogram(counts))
    assert result.mean[0] == pytest.approx(moments[0], rel=1e-9)
    assert result.tie_sd[0] == pytest.approx(math.sqrt(moments[1] - moments[0] ** 2), rel=1e-6)


@pytest.mark.parametrize(
    ("start", "n", "beyond"),
    [
        (0, 1, 0),
        (0, 2, 7),
        (1, 31, 0),
        (40, 500, 7),
        (40, 2, 0),
        (1000, 31, 0),
        (4000, 31, 7),
        (4000, 500, 0),
        (10**5, 2, 7),
        (10**5, 500, 0),
    ],
)
def test_the_variance_of_a_discounted_gain_is_that_of_each_rank_however_deep(start, n, beyond):
    discounts = 1 / np.log2(np.arange(start + 2, start + n + 2, dtype=np.longdouble))
    whole = np.append(discounts, np.zeros(beyond))
    k, size = start + n, n + beyond
    counts = np.array([[[start, size - 1], [0, 1]]])  # one relevant item
    out, slopes = np.empty((4, 1)), np.zeros((1, 2))
    sums = discount_sums(k), discount_sums(k, power=2), weighted_discount_sums(k)
    _loops.discounted_gains(counts, np.array([0.0, 1.0]), *sums, out, slopes)
    expected = float(((whole - whole.mean()) ** 2).sum()) / size
    assert out[3, 0] == pytest.approx(expected, rel=1e-6, abs=1e-18)
    if size > 1:
        from_middle = np.arange(1, size + 1, dtype=np.longdouble) - (size + 1) / 2
        assert slopes[0, 1] == pytest.approx(float((whole * from_middle).sum()) / (size**2 - 1), rel=1e-6, abs=1e-15)


def test_a_metric_of_a_plug_in_without_a_deviation_has_none_but_0_where_no_order_matters():
    family = Family("Odd", lambda histogram: Scores(*np.array([[0.5, 0.5], [0.5, 0.2], [0.5, 0.7]])), (), "test", 0.0)
    histogram = TieHistogram.from_pairs([[0, 0], [0, 0]], [[1, 0], [1, 0]], n_bits=1)
    np.testing.assert_array_equal(Metric("Odd", family).scores(histogram).tie_sd, [0, np.nan])


def test_level_1000_overflows_nothing():
    result = scores("NDCG", [[0, 1, 1]], [[0, 1000, 1]])
    last, first = 0.5, 1 / math.log2(3)
    assert np.ravel(result) == approx([(first + last) / 2, last, first, (first - last) / 2])


@pytest.mark.parametrize(
    ("before", "size"),
    [
        (0, 0),
        (0, 1),
        (0, 64),
        (0, 65),
        (1, 2),
        (10, 1000),
        (63, 1),
        (63, 2),
        (64, 1),
        (65, 3),
        (10**4, 10**5),
        (10**9, 1000),
    ],
)
def test_harmonic_ranges_are_exact_however_deep_the_tie(before, size):
    expected = math.fsum(1 / rank for rank in range(before + 1, before + size + 1))
    # Among the first 64 ranks it is a difference of table entries; beyond them nothing cancels.
    assert float(harmonic_range(before, size)) == pytest.approx(expected, rel=2e-15 if before >= 64 else 5e-14, abs=0)


@pytest.mark.parametrize("n_ranks", [1, 1023, 1024, 1025, 5000])
def test_discount_sums_add_up_every_rank(n_ranks):
    sums = discount_sums(n_ranks)
    assert sums.shape == (n_ranks + 1,)
    discounts = [1 / math.log2(rank + 1) for rank in range(1, n_ranks + 1)]
    for n in {0, 1, n_ranks // 2, n_ranks - 1, n_ranks}:
        assert sums[n] == pytest.approx(math.fsum(discounts[:n]), rel=1e-14, abs=0)


@given(queries=rankings(max_size=12), k=st.integers(1, 15))
def test_a_cut_is_the_tie_that_the_cutoff_falls_into(queries, k):
    distances, levels = split(queries)
    cut = cut_at(TieHistogram.from_pairs(distances, levels, n_bits=N_BITS), k)
    for row, (d, lv) in enumerate(zip(distances, levels, strict=True)):
        order = sorted(range(len(d)), key=d.__getitem__)
        at = d[order[k]] if k < len(d) else math.inf  # the first item left out is in the cut tie
        tie = [lv[i] for i in order if d[i] == at]
        above = [lv[i] for i in order if d[i] < at]
        n_slots = min(k, len(d)) - len(above)
        assert (cut.before[row], cut.size[row], cut.slots[row]) == (len(above), len(tie), n_slots)
        assert cut.rel_before[row] == sum(level > 0 for level in above)
        assert cut.n_rel[row] == sum(level > 0 for level in tie)


@pytest.mark.parametrize(
    ("names", "canonical"),
    [
        ("AP mAP mAP@all mAP@ALL", "AP"),
        ("AP@1000 AP@1000:retrieved", "AP@1000"),
        ("AP@5:relevant MAP@5:relevant", "AP@5:relevant"),
        ("AP@5:capped", "AP@5:capped"),
        ("nDCG@all", "NDCG"),
        ("NDCG@007 nDCG@7", "NDCG@7"),
        ("Precision@5", "P@5"),
        ("P@r0", "P@r0"),
        ("Recall@10", "R@10"),
        ("Recall@r2", "R@r2"),
        ("MRR", "RR"),
        ("CMC@1 Hit@1 Hits@1 HitRate@1 Success@1", "Hit@1"),
        ("Recall@010:reranked=0100", "R@10:reranked=100"),
        ("AP@5:reranked=5", "AP@5:capped:reranked=5"),
        ("AP@5:relevant:reranked=50", "AP@5:relevant:reranked=50"),
        ("ndcg_cut_10 ndcg_cut.10 NDCG@10:trec", "NDCG@10:trec"),
        ("P_5 P.5", "P@5"),
    ],
)
def test_all_spellings_of_a_metric_have_one_canonical_name(names, canonical):
    assert {get_metric(name).name for name in names.split()} == {canonical}


REFUSED = """
Ap | ^unknown metric 'Ap'. Did you mean 'AP'? Known metrics: ACG@k, AP, AP@R, AP@k,
recall@5 | unknown metric 'recall@5'. Did you mean 'R@5'?
mRR | unknown metric 'mRR'. Did you mean 'RR'?
AP@ | unknown metric 'AP@'
AP@-1 | unknown metric 'AP@-1'
RR@r2 | unknown metric 'RR@r2'. Forms of RR: RR, RR@k
MRR@r2 | unknown metric 'MRR@r2'. Forms of RR:
ap:best | unknown metric 'ap:best'. Forms of AP:
success | metric 'success' needs a cutoff, such as success_10
ndcg | differs from nDCG only in case, and has two meanings: give NDCG (gain 2^level - 1), or NDCG:trec
gm_map | not here: trec_eval's gm_map is the geometric mean of AP over queries; AP has the arithmetic one
iprec_at_recall_0.10 | not here: trec_eval's iprec_at_recall is interpolated
P@all | metric 'P@all' needs a cutoff, such as P@100
mAP@All | unknown metric 'mAP@All'
AP@5:best | metric 'AP@5:best' has option 'best'; options of AP@k: retrieved, relevant, capped
AP@5:retrieved:reranked=9 | has option 'retrieved'; options of AP@k:reranked=m: capped, relevant
R@9:reranked=8 | metric 'R@9:reranked=8' scores 9 items of 8 that are re-ranked; re-rank as many or more
P@r2:reranked=8 | P@rN does not score re-ranked candidates; AP@k:reranked=m,
R@k:reranked=m | lacks its cutoffs; put numbers for k and m, such as R@10:reranked=100
R:reranked=8 | metric 'R:reranked=8' needs a cutoff, such as R@100
NDCG:best | has option 'best'; options of NDCG: exponential, linear
"""


@pytest.mark.parametrize(("name", "message"), [row.split(" | ") for row in REFUSED.strip().splitlines()])
def test_a_name_outside_the_grammar_is_refused_in_words(name, message):
    with pytest.raises(HashbenchError, match=re.escape(message).replace(r"\^unknown", "^unknown")):
        get_metric(name)


def test_every_family_is_listed_with_a_summary_and_a_source():
    assert metric_names() == sorted(FAMILIES)
    for family in FAMILIES.values():
        assert family.summary.endswith(".")
        assert family.source


@pytest.mark.parametrize("name", ["AP", "AP@20", "AP@20:relevant", "NDCG", "NDCG@20", "NDCG:linear", "P@20", "RR"])
def test_empty_groups_change_no_bit(name):
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, (50, 3, 8))
    wide = np.zeros((50, 3, 100), dtype=np.int64)
    wide[:, :, 5:85:10] = counts
    levels, metric = np.arange(3), get_metric(name)
    few, many = TieHistogram(counts, levels), TieHistogram(wide, levels)
    np.testing.assert_array_equal(metric.scores(many), metric.scores(few))
    np.testing.assert_array_equal(metric.slopes(many).slope[:, 5:85:10], metric.slopes(few).slope)

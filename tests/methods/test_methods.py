import hashlib

import numpy as np
import pytest
from helpers.learned_methods import EARLIER
from helpers.paths import built_in_methods
from helpers.thoroughness import ALL, TRAINED, quick_method, slow
from sklearn.datasets import load_digits

from hashbench import evaluate, registry, testing
from hashbench.errors import HashbenchError, Refusal
from hashbench.methods.bre import BRE
from hashbench.methods.classifier_lsh import ClassifierLSH
from hashbench.methods.constant import Constant
from hashbench.methods.dsh_density import DSHDensity
from hashbench.methods.isohash import IsoHash
from hashbench.methods.itq import ITQ
from hashbench.methods.lfh import LFH
from hashbench.methods.lsh import LSH
from hashbench.methods.machash import MACHash
from hashbench.methods.oracle_label import OracleLabel
from hashbench.methods.pca_rr import PCARR
from hashbench.methods.pcah import PCAH
from hashbench.methods.random import Random
from hashbench.methods.sh import SH
from hashbench.methods.sklsh import SKLSH
from hashbench.methods.sph import SpH
from hashbench.methods.talr_ap import TALRAP

LESS = {  # of what takes long, before a commit; `test_method_keeps_the_contract_at_its_defaults` does it all
    testing.check_codes_are_boolean_of_any_usual_length: {"lengths": (12, 64)},
    testing.check_batches_encode_like_the_whole: {"sizes": (1, 64)},
}
ALIKE = tuple(name for name in TRAINED if name != "talr-ap")  # encode by the base that talr-ap shares with them
OF_BASES = {  # what methods get from their bases, so that others need not show it before a commit
    testing.check_codes_are_boolean_of_any_usual_length: ALIKE,
    testing.check_batches_encode_like_the_whole: ALIKE,
    testing.check_is_a_scikit_learn_estimator: (*ALIKE, "bre", "fasthash", "machash", "structhash"),
}
OF_ALL = (  # what each method decides for itself; the rest, others of the same bases show before a commit
    testing.check_describes_itself,
    testing.check_same_seed_gives_same_codes,
    testing.check_keeps_what_it_learned,
    testing.check_refusal_is_a_sentence,
)
BESIDE = [name for name in TRAINED if name not in ("bihalf", "csq", "dpsh", "mihash", "talr-ap")]
CHECKED = [(check, name) for check in testing.METHOD_CHECKS for name in built_in_methods()]
LATER = [(check, name) for check, name in CHECKED if name in BESIDE and check not in OF_ALL]


@pytest.mark.parametrize(("check", "name"), [*(case for case in CHECKED if case not in LATER), *slow(*LATER)])
def test_method_keeps_the_contract(name, check, monkeypatch):
    if name not in OF_BASES.get(check, ()):
        check(quick_method(name, monkeypatch), **LESS.get(check, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", built_in_methods())
@pytest.mark.parametrize("check", testing.METHOD_CHECKS, ids=lambda check: check.__name__)
def test_method_keeps_the_contract_at_its_defaults(name, check):
    check(registry.get_method(name))


@pytest.mark.parametrize("name", [*(name for name in built_in_methods() if name not in BESIDE), *slow(*BESIDE)])
def test_method_takes_no_notice_of_the_order_of_columns_in_memory(name, monkeypatch):
    method, X, y = testing.example(quick_method(name, monkeypatch), n_bits=4)
    codes = method.fit(X, y).transform(X)
    np.testing.assert_array_equal(codes, method.fit(np.asfortranarray(X), y).transform(np.asfortranarray(X)))


# ---------------------------------------------------------------- the conformance suite can fail


def described(name, **attributes):
    return type(name, (LSH,), {"__doc__": LSH.__doc__, **attributes})


class Undescribed(LSH):
    """A docstring without parameters."""


class Positional(LSH):
    """A seed by position.

    Parameters
    ----------
    n_bits, random_state : int
    """

    def __init__(self, n_bits=32, random_state=0):
        super().__init__(n_bits, random_state=random_state)


class FitsNothing(LSH):
    def fit(self, X, y=None):
        super().fit(X, y)


class ChangesItsInput(LSH):
    def fit(self, X, y=None):
        X -= X.mean(axis=0)
        return super().fit(X, y)


class Unseeded(LSH):
    def _fit(self, X, y):
        super()._fit(X, y)
        self.projection_ = np.random.default_rng().standard_normal((X.shape[1], self.n_bits))


class CentresEachBatch(LSH):
    def _project(self, X):
        return (X - X.mean(axis=0)) @ self.projection_


class GivesNumbers(LSH):
    def transform(self, X):
        return super().transform(X).astype(np.uint8)


class RoundsUpToBytes(LSH):
    def transform(self, X):
        codes = super().transform(X)
        return np.pad(codes, ((0, 0), (0, -codes.shape[1] % 8)))


class CountsZeroAsOne(LSH):
    def transform(self, X):
        return self.project(X) <= 0


class TakesAnyLength(LSH):
    def fit(self, X, y=None):
        asked, self.n_bits = self.n_bits, min(max(self.n_bits, 1), 4096)
        super().fit(X, y)
        self.n_bits = asked
        return self


class RefusesInAWord(LSH):
    def refusal(self, dataset):
        return "no"


class CountsClasses(LSH):
    supervision = "labels"

    def _fit(self, X, y):
        super()._fit(X, None)
        self.counts_ = np.bincount(y)


class LearnsIntoAParameter(LSH):
    def _fit(self, X, y):
        super()._fit(X, y)
        self.mean = X.mean()  # fitted attributes should end in an underscore


@pytest.mark.parametrize(
    ("cls", "check"),
    [
        (Undescribed, testing.check_describes_itself),
        (Positional, testing.check_describes_itself),
        (described("NoGroup", group="best"), testing.check_describes_itself),
        (described("NoVersion", version=0), testing.check_describes_itself),
        (described("Seer", supervision="dreams"), testing.check_describes_itself),
        (FitsNothing, testing.check_fit_returns_self_and_keeps_its_input),
        (ChangesItsInput, testing.check_fit_returns_self_and_keeps_its_input),
        (Unseeded, testing.check_same_seed_gives_same_codes),
        (CentresEachBatch, testing.check_batches_encode_like_the_whole),
        (GivesNumbers, testing.check_codes_are_boolean_of_any_usual_length),
        (RoundsUpToBytes, testing.check_codes_are_boolean_of_any_usual_length),
        (CountsZeroAsOne, testing.check_codes_are_boolean_of_any_usual_length),
        (TakesAnyLength, testing.check_too_many_bits_are_refused),
        (RefusesInAWord, testing.check_refusal_is_a_sentence),
        (CountsClasses, testing.check_several_classes_an_item_are_learnt_from_or_refused),
    ],
    ids=lambda value: value.__name__,
)
def test_conformance_suite_finds_a_broken_method(cls, check):
    with pytest.raises(testing.ConformanceError):
        check(cls)


def test_conformance_suite_runs_the_checks_of_scikit_learn():
    with pytest.raises(AssertionError, match="mean"):
        testing.check_is_a_scikit_learn_estimator(LearnsIntoAParameter)


# ---------------------------------------------------------------- what several methods share


OUT_OF_RANGE = {
    "classifier-lsh": {"C": [0.0], "code": ["binary"]},
    "csq": {"learning_rate": [0], "scaling": ["minmax"], "validation": [0.9]},
    "dpsh": {"batch_size": [1], "device": ["tpu"], "epochs": [0], "head": ["conv"]},
    "dsh-density": {"alpha": [0], "n_iter": [0], "n_neighbors": [0]},
    "sh": {"percentile": [-1, 50, "5"]},
    "sign": {"threshold": ["mode"]},
    "sklsh": {"gamma": [0, "1"], "n_neighbors": [1]},
    "sph": {"max_iter": [0]},
    "talr-ap": {"alpha": [0], "relaxation": ["half"], "backbone": ["vgg"], "augmentation": ["mix"]},
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_parameters_out_of_range_are_refused(name, labelled):
    for parameter, values in OUT_OF_RANGE[name].items():
        for value in values:
            with pytest.raises(HashbenchError, match=parameter):
                registry.get_method(name)(4, **{parameter: value}).fit(*labelled)


@pytest.mark.parametrize("make", [LSH, SKLSH])
def test_short_codes_start_longer_ones(make, train):
    longest = make(64, random_state=3).fit(train).transform(train)
    for n_bits in (1, 12, 33):
        np.testing.assert_array_equal(make(n_bits, random_state=3).fit(train).transform(train), longest[:, :n_bits])


@pytest.mark.parametrize(
    ("method", "factor", "shift"),
    [
        (PCAH(48), 1, 8),
        (SH(48), 1, 8),
        (SH(48), 4, 0),
        (SKLSH(48), 1 / 16, 0),
        (BRE(8), 4, 64),
        (MACHash(6), 4, 16),
        (ClassifierLSH(24), 4, 16),
        (LFH(16, ridge=1e-9), 4, 16),
        (TALRAP(16, epochs=3), 8, 16),
    ],
    ids=repr,
)
def test_codes_do_not_change_when_all_items_move_or_stretch(method, factor, shift, labelled):
    X, y = (part[:200] if method.is_slow else part for part in labelled)
    codes, moved = method.fit(X, y).transform(X), factor * X + shift
    np.testing.assert_array_equal(method.fit(moved, y).transform(moved), codes)


# ---------------------------------------------------------------- LSH


@pytest.mark.parametrize("angle", [0.2, 1.0, np.pi / 2, 2.6])
def test_lsh_bits_differ_with_probability_angle_over_pi(angle):
    centre, first, second = np.array([[7.0, -3, 2], [2, 0, 0], [np.cos(angle), np.sin(angle), 0]])
    X = np.stack([centre + first, centre - first, centre + second, centre - second])  # their mean is the centre
    differing = []
    for seed in range(25):
        codes = LSH(4096, random_state=seed).fit(X).transform(X)
        differing.append(np.mean(codes[0] != codes[2]))
    assert np.mean(differing) == pytest.approx(angle / np.pi, abs=0.0065)  # four standard deviations at most


def test_lsh_hyperplanes_pass_through_the_mean_of_the_training_items(train):
    method = LSH(256).fit(train)
    opposite = 2 * train.mean(axis=0) - train
    np.testing.assert_array_equal(method.transform(opposite), ~method.transform(train))
    assert not method.transform(method.mean_[None]).any()


# ---------------------------------------------------------------- PCAH


def test_pcah_directions_are_orthonormal_and_uncorrelated_by_falling_variance(train):
    method = PCAH(61).fit(train)
    np.testing.assert_allclose(method.projection_.T @ method.projection_, np.eye(61), atol=1e-10)
    covariance = np.cov(method.project(train), rowvar=False)
    variances = np.diag(covariance)
    assert (np.diff(variances) <= 0).all()
    np.testing.assert_allclose(covariance - np.diag(variances), 0, atol=1e-9 * variances[0])


def test_pcah_directions_have_their_largest_entry_positive(train):
    directions = PCAH(61).fit(train).projection_
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(61)]
    assert (largest > 0).all()


@pytest.mark.parametrize("cls", [PCAH, PCARR, ITQ, IsoHash])
def test_more_bits_than_directions_with_variance_are_refused_by_number(cls, train):
    rank = np.linalg.matrix_rank(train - train.mean(axis=0))
    assert rank == 61
    assert cls(61).fit(train).transform(train).shape == (1000, 61)
    with pytest.raises(Refusal, match=r"<= 61\b.*n_bits=62"):
        cls(62).fit(train)
    with pytest.raises(Refusal, match=r"<= 9\b.*n_bits=10"):
        cls(10).fit(train[:10])


@pytest.mark.parametrize("cls", [PCAH, PCARR, ITQ, IsoHash, SH, SKLSH, SpH, DSHDensity])
@pytest.mark.parametrize("n_items", [1, 5, 100])
def test_items_that_are_all_equal_are_refused_without_a_warning(cls, n_items, train):
    with pytest.raises(Refusal, match="equal"):
        cls(1).fit(train[:1].repeat(n_items, axis=0))


# ---------------------------------------------------------------- ITQ


def rotation_of(itq, train):
    """Recover W and R from the projection W R, with W from PCAH."""
    directions = PCAH(itq.n_bits).fit(train).projection_
    return directions, directions.T @ itq.projection_


def loss(projected, rotation):
    rotated = projected @ rotation
    return ((np.where(rotated > 0, 1, -1) - rotated) ** 2).sum()


@pytest.mark.parametrize("n_bits", [1, 16])
def test_itq_losses_never_rise(train, n_bits):
    method = ITQ(n_bits).fit(train)
    directions, rotation = rotation_of(method, train)
    final = loss((train - train.mean(axis=0)) @ directions, rotation)
    losses = [*method.losses_, final]
    assert len(losses) == 51
    assert (np.diff(losses) <= 1e-9 * losses[0]).all()
    assert n_bits == 1 or final < 0.99 * losses[0]


def test_itq_reports_the_loss_at_the_start_of_each_alternation(train):
    projected = (train - train.mean(axis=0)) @ PCAH(16).fit(train).projection_
    for n_iter in (0, 1, 7):
        _, rotation = rotation_of(ITQ(16, n_iter=n_iter).fit(train), train)
        assert ITQ(16, n_iter=8).fit(train).losses_[n_iter] == pytest.approx(loss(projected, rotation), rel=1e-9)


def test_itq_one_iteration_solves_the_procrustes_problem(train):
    projected = (train - train.mean(axis=0)) @ PCAH(16).fit(train).projection_
    _, start = rotation_of(ITQ(16, n_iter=0).fit(train), train)
    _, rotation = rotation_of(ITQ(16, n_iter=1).fit(train), train)
    signs = np.where(projected @ start > 0, 1, -1)
    symmetric = rotation.T @ projected.T @ signs  # symmetric and positive semidefinite only at the optimum
    np.testing.assert_allclose(symmetric, symmetric.T, rtol=1e-8, atol=1e-6)
    assert np.linalg.eigvalsh(symmetric).min() > -1e-6


# ---------------------------------------------------------------- scores on digits, as the facts sheet has them


@pytest.fixture(scope="module")
def sheet():
    """The split of the facts sheet: 300 queries out of a permutation, the rest is database and training set."""
    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(1797)  # the sheet's own
    return pixels[order[:300]], pixels[order[300:]], labels[order[:300]], labels[order[300:]]


def score_on(sheet, method):
    queries, database, *labels = sheet
    method.fit(database, labels[1])
    return evaluate(method.transform(queries), method.transform(database), labels, ["AP"]).summary["AP"].mean


@pytest.mark.parametrize(
    ("make", "n_bits", "expected", "spread"),
    [
        *slow((LSH, 16, 0.350, 0.021)),
        (LSH, 32, 0.479, 0.026),
        (PCAH, 16, 0.337, 0.001),
        *slow((PCAH, 32, 0.286, 0.001)),
        *slow((PCARR, 16, 0.488, 0.029)),
        (PCARR, 32, 0.533, 0.011),
        (SH, 16, 0.395, 0.001),
        *slow((SH, 32, 0.371, 0.001)),
        *slow((SKLSH, 16, 0.243, 0.020)),
        (SKLSH, 32, 0.320, 0.025),
        (SpH, 16, 0.391, 0.013),
        *slow((SpH, 32, 0.436, 0.015)),
        (DSHDensity, 16, 0.419, 0.025),
        *slow((DSHDensity, 32, 0.486, 0.024)),
        (ITQ, 16, 0.620, 0.008),
        *slow((ITQ, 32, 0.653, 0.004)),
        (Random, 16, 0.103, 0.001),
        (Constant, 16, 0.103, 0.001),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_average_precision_on_digits_is_that_of_the_facts_sheet(sheet, make, n_bits, expected, spread):
    seeds = (
        [{"random_state": seed} for seed in range(5 if ALL else 2)] if "random_state" in make().get_params() else [{}]
    )
    scores = [score_on(sheet, make(n_bits, **seed)) for seed in seeds]
    assert np.mean(scores) == pytest.approx(expected, abs=max(2 * spread, 0.0025))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("csq", (0.974, 0.977, 0.980)),
        ("orthohash", (0.981, 0.983, 0.983)),
        ("greedyhash", (0.987, 0.978, 0.974)),
        ("dpn", (0.975, 0.982, 0.989)),
        ("dch", (0.984, 0.985, 0.988)),
        ("adsh", (0.986, 0.983, 0.983)),
        ("dfh", (0.978, 0.986)),
        ("hyp2", (0.970, 0.968)),
        ("mdsh", (0.977, 0.986)),
        ("bihalf", (0.651, 0.705, 0.726)),
        ("greedyhash-unsupervised", (0.577, 0.609, 0.632)),
        ("agh", (0.843, 0.815, 0.756)),
    ],
)
def test_methods_of_today_score_on_digits_as_prototypes_of_them_in_another_loop_did(sheet, name, expected):
    """At 16, 32 and 64 bits, one seed each; the prototypes' codes were scored by another evaluator."""
    for n_bits, value in zip((16, 32, 64), expected, strict=False):
        method = registry.get_method(name)(n_bits, random_state=0, **EARLIER.get(name, {}))
        assert score_on(sheet, method) == pytest.approx(value, abs=0.02)


# ---------------------------------------------------------------- baselines


def test_constant_gives_all_items_one_code(train):
    assert not Constant(20).fit(train).transform(train).any()


def test_random_gives_an_item_its_code_in_any_batch_whatever_was_fitted(train):
    items = train[:60]
    codes = Random(24, random_state=5).fit(train).transform(items)
    order = np.random.default_rng(0).permutation(60)
    np.testing.assert_array_equal(Random(24, random_state=5).fit(items[:2]).transform(items[order]), codes[order])
    np.testing.assert_array_equal(Random(24, random_state=5).fit(train).transform(items[7:8]), codes[7:8])


def test_random_separates_items_but_not_minus_zero_from_zero():
    items = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0 + 1e-12]])
    codes = Random(64).fit(items).transform(items)
    np.testing.assert_array_equal(codes[0], codes[1])
    assert 10 < (codes[0] != codes[2]).sum() < 54


def test_random_bits_are_balanced_and_differ_between_seeds(train):
    first, second = (Random(64, random_state=seed).fit(train).transform(train) for seed in (0, 1))
    assert first.mean() == pytest.approx(0.5, abs=0.01)
    assert np.abs(first.mean(axis=0) - 0.5).max() < 0.08
    assert np.mean(first != second) == pytest.approx(0.5, abs=0.01)


def test_random_codes_are_the_same_on_every_machine():
    item = np.array([[0.5, -2.0]])
    code = Random(16, random_state=3).fit(item).transform(item)[0]
    digest = hashlib.shake_128(b"3" + item.astype("<f8").tobytes()).digest(2)
    assert "".join(str(int(bit)) for bit in code[::-1]) == f"{int.from_bytes(digest, 'little'):016b}"


@pytest.mark.parametrize("n_bits", [4, 100])
def test_oracle_label_is_perfect(digits, n_bits):
    labels = digits.labels[:, None]
    codes = OracleLabel(n_bits).fit(labels[digits.train]).transform(labels)
    assert len(np.unique(codes, axis=0)) == 10
    query, database = digits.query, digits.database
    pair = digits.labels[query], digits.labels[database]
    summary = evaluate(codes[query], codes[database], pair, ["AP", "NDCG"]).summary
    assert all(values[:3] == pytest.approx((1, 1, 1)) for values in summary.values())


def test_oracle_label_spells_the_index_of_the_class():
    labels = np.array([[-7], [50], [3], [50]])
    codes = OracleLabel(3).fit(labels).transform(labels)
    np.testing.assert_array_equal(codes @ [1, 2, 4], [0, 2, 1, 2])


@pytest.mark.parametrize(("n_classes", "needed"), [(1, 1), (2, 1), (3, 2), (16, 4), (17, 5)])
def test_oracle_label_needs_enough_bits_for_the_classes(tiny, n_classes, needed):
    dataset = tiny(labels=np.arange(40) % n_classes)
    assert OracleLabel(needed).refusal(dataset) is None
    if needed > 1:
        assert f"needs {needed} bits" in OracleLabel(needed - 1).refusal(dataset)
        with pytest.raises(Refusal, match=f"needs {needed} bits"):
            OracleLabel(needed - 1).fit(dataset.labels[dataset.train, None])


@pytest.mark.parametrize("rule", ["explicit", "neighbours"])
def test_methods_that_learn_from_pairs_refuse_affinities_of_only_queries(tiny, rule):
    changes = {"neighbours": np.arange(16).reshape(8, 2)} if rule == "neighbours" else {}
    dataset = tiny(rule, **changes)
    assert "no affinity for them" in registry.get_method("ksh")(4).refusal(dataset)
    assert registry.get_method("lsh")(4).refusal(dataset) is None


@pytest.mark.parametrize("n_bits", [3, 8])
def test_oracle_label_gives_all_classes_it_was_fitted_without_one_code_that_no_other_has(n_bits):
    method = OracleLabel(n_bits).fit(np.array([[0], [5], [7], [8]]))
    codes = method.transform(np.array([[0], [5], [7], [8], [3], [6], [-1], [100]]))
    assert len(np.unique(codes[:4], axis=0)) == 4
    assert len(np.unique(codes[:5], axis=0)) == 5
    assert (codes[4:] == codes[4]).all()


def test_oracle_label_needs_a_code_for_items_of_no_class_where_there_are_some(tiny):
    dataset = tiny(labels=np.where(np.arange(40) < 8, 9, np.arange(40) % 4))
    assert "needs 3 bits for 4 classes and one code for all others" in OracleLabel(2).refusal(dataset)
    assert OracleLabel(3).refusal(dataset) is None
    method = OracleLabel(2).fit(dataset.labels[dataset.train, None])
    with pytest.raises(Refusal, match="needs 3 bits"):
        method.transform(dataset.labels[:, None])

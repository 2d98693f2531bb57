import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hashbench.errors import Refusal
from hashbench.methods.classifier_lsh import ClassifierLSH
from hashbench.methods.lsh import LSH


@pytest.fixture
def tagged():
    """Draw 300 items of several labels each, and their multi-hot labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    return X, (X @ rng.normal(size=(8, 4)) + rng.normal(size=(300, 4)) > [0, 0, 1, 2]).astype(np.uint8)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("n_classes", [2, 10])
def test_codes_are_lsh_of_the_probabilities_of_scikit_learn(labelled, C, n_classes):
    X, y = (part[labelled[1] < n_classes] for part in labelled)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=1000)).fit(X, y)
    expected = LSH(24, random_state=3).fit(model.predict_proba(X))
    method = ClassifierLSH(24, C=C, random_state=3).fit(X, y)
    np.testing.assert_allclose(method.project(X), expected.project(model.predict_proba(X)), atol=1e-9)


def test_several_labels_are_classified_one_by_one(tagged):
    X, y = tagged
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression(C=0.1, max_iter=1000))).fit(X, y)
    expected = LSH(24).fit(model.predict_proba(X))
    values = ClassifierLSH(24).fit(X, y).project(X)
    np.testing.assert_allclose(values, expected.project(model.predict_proba(X)), atol=1e-9)


def test_labels_that_all_items_or_none_have_do_not_count(tagged):
    X, y = tagged
    none, every = np.zeros((300, 1), dtype=np.uint8), np.ones((300, 1), dtype=np.uint8)
    normals = np.random.default_rng(0).standard_normal((16, 6)).T
    method = ClassifierLSH(16).fit(X, np.hstack([y, none, every]))
    np.testing.assert_array_equal(method.projection_, normals)
    without = ClassifierLSH(16).fit(X, y)
    without.projection_ = normals[:4]
    np.testing.assert_allclose(method.project(X), without.project(X), atol=1e-12)


@pytest.mark.parametrize("n_bits", [10, 13])
def test_one_hot_codes_name_the_predicted_class(labelled, n_bits):
    X, y = labelled
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(X, y)
    codes = ClassifierLSH(n_bits, code="one-hot").fit(X, y).transform(X)
    np.testing.assert_array_equal(codes, model.predict(X)[:, None] == np.arange(n_bits))


def test_one_hot_codes_of_equally_probable_classes_name_the_first():
    X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([7, 7, 5, 5])
    codes = ClassifierLSH(2, code="one-hot").fit(X, y).transform(X)
    np.testing.assert_array_equal(codes, [[True, False]] * 4)


def test_one_hot_codes_need_a_bit_per_class_and_one_class_per_item(labelled, tagged):
    with pytest.raises(Refusal, match=r"one bit per class, got n_bits=9 and 10 classes\. Choose n_bits=10"):
        ClassifierLSH(9, code="one-hot").fit(*labelled)
    with pytest.raises(Refusal, match=r"one class per item, got several\. Choose code=lsh"):
        ClassifierLSH(9, code="one-hot").fit(*tagged)

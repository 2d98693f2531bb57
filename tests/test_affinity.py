import numpy as np
import pytest
import scipy.sparse as sp
from helpers import oracles
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import pdist

from hashbench.affinity import (
    Affinity,
    Distance,
    Explicit,
    Hierarchy,
    SameLabel,
    SharedLabels,
    as_affinity,
)
from hashbench.distances import squared_distance_percentiles
from hashbench.errors import HashbenchError

N_QUERIES, N_DATABASE = 6, 9
THRESHOLDS, LEVELS = [9.0, 4.0, 1.0], [1, 2, 5]
rng = np.random.default_rng(0)
classes = rng.integers(0, 3, N_QUERIES), rng.integers(0, 3, N_DATABASE)
multi_hot = rng.integers(0, 2, (N_QUERIES, 70)), rng.integers(0, 2, (N_DATABASE, 70))
features = rng.integers(0, 3, (N_QUERIES, 3)), rng.integers(0, 3, (N_DATABASE, 3))
matrix = rng.choice([0, 0, 1, 5, 10], (N_QUERIES, N_DATABASE))


class ThirdParty(Affinity):
    """What a plug-in may bring: a rule that only gives blocks."""

    n_queries, n_database = N_QUERIES, N_DATABASE
    levels = np.array([0, 1, 2])

    def block(self, query, database):
        return np.abs(classes[0][query, None] - classes[1][None, database]).astype(np.int16)

    def query_keys(self):
        return classes[0][:, None]


CASES = {
    "same-label": (SameLabel(*classes), oracles.same_label(*classes)),
    "hierarchy": (
        Hierarchy(*classes, *(labels % 2 for labels in classes)),
        np.add(oracles.same_label(*classes), oracles.same_label(*(labels % 2 for labels in classes))),
    ),
    "shared-labels": (SharedLabels(*multi_hot), oracles.shared_labels(*multi_hot)),
    "distance": (
        Distance(*features, THRESHOLDS, LEVELS),
        oracles.distance_levels(*features, THRESHOLDS, LEVELS),
    ),
    "dense": (Explicit(matrix), matrix),
    "float": (Explicit(matrix.astype(float)), matrix),
    "boolean": (Explicit(matrix > 0), matrix > 0),
    "csr": (Explicit(sp.csr_array(matrix)), matrix),
    "coo": (Explicit(sp.coo_matrix(matrix)), matrix),
    "third-party": (ThirdParty(), np.abs(np.subtract.outer(*classes))),
}


WORDS = np.array(["süß", "Käse", "Öl"])


@pytest.mark.parametrize("form", [list, lambda words: words.astype(object), np.char.encode])
def test_classes_may_be_words_of_any_type(form):
    words = [form(WORDS[labels]) for labels in classes]
    expected = oracles.same_label(*classes)
    for rule in (SameLabel(*words), as_affinity(tuple(words))):
        np.testing.assert_array_equal(rule.block(slice(None), slice(None)), expected)
        assert kinds_of(rule.query_keys()) == kinds_of(classes[0][:, None])
    rule = Hierarchy(*words, *(np.array(["x", "y"])[labels % 2] for labels in classes))
    np.testing.assert_array_equal(rule.block(slice(None), slice(None)), CASES["hierarchy"][1])


@pytest.mark.parametrize("dtype", [np.float32, object])
def test_whole_numbers_of_other_dtypes_are_classes(dtype):
    rule = SameLabel(classes[0].astype(dtype), classes[1].astype(dtype).tolist())
    np.testing.assert_array_equal(rule.block(slice(None), slice(None)), CASES["same-label"][1])


def test_classes_of_queries_that_the_database_lacks_are_noted_by_name_and_refused_if_none_is_there():
    note = "1 of the {} classes of queries occurs nowhere in the database, such as 'c3'; the nearest there is 'c3 '."
    assert as_affinity((["c1", "c3", "c2"], ["c3 ", "c2", "c1"])).notes == [note.format(3)]
    assert as_affinity(Hierarchy(["c1", "c3"], ["c1", "c3 "], ["x", "x"], ["x", "x"])).notes == [note.format(2)]
    many = [f"a{number:03}" for number in range(150)]
    (note,) = as_affinity((["a000", "zebra "], [*many, "zebra"])).notes
    assert note.endswith(", such as 'zebra '; the nearest there is 'zebra'.")
    assert as_affinity((["a", "b"], ["b", "a", "c"])).notes == []
    assert SameLabel(["a"], ["b"]).notes == ()  # maybe of a part
    unseen = as_affinity(Hierarchy(["a", "b"], ["c", "d"], ["x", "Y"], ["x", "y"]))
    assert [note[: note.index(" occur")] for note in unseen.notes] == [
        "2 of the 2 classes of queries",
        "1 of the 2 superclasses of queries",
    ]
    for labels, message in (
        ((["a"], ["b"]), r"no class of the queries is a class of the database, such as 'a'"),
        (([1], [2]), r"such as 1; the database has 2. Number the classes of both"),
    ):
        for coarse in ((["x"], ["y"]), ([1], [2])):
            with pytest.raises(HashbenchError, match=message):
                as_affinity(Hierarchy(*labels, *coarse))


@pytest.mark.parametrize("name", CASES)
def test_blocks_equal_an_obvious_double_loop(name):
    affinity, expected = CASES[name]
    assert (affinity.n_queries, affinity.n_database) == (N_QUERIES, N_DATABASE)
    np.testing.assert_array_equal(affinity.part().block(slice(None), slice(None)), expected)
    assert affinity.levels[0] == 0
    assert (np.diff(affinity.levels) > 0).all()
    assert np.isin(expected, affinity.levels).all()
    rows, columns = np.array([4, 0, 4]), np.array([8, 1, 2, 1])
    for queries in (slice(0, N_QUERIES), slice(2, 5), slice(3, 3), rows, rows[:0]):
        for database in (slice(0, N_DATABASE), slice(1, 2), slice(4, N_DATABASE), columns, columns[:1]):
            block = affinity.block(queries, database)
            assert block.dtype == np.int16
            np.testing.assert_array_equal(block, np.asarray(expected)[queries][:, database])


def rows_of(n):
    """Draw a slice or row numbers, in any order and more than once."""
    numbers = st.lists(st.integers(0, n - 1), max_size=5).map(lambda some: np.array(some, dtype=np.int64))
    slices = st.tuples(st.integers(0, n), st.integers(0, n)).map(lambda ends: slice(min(ends), max(ends)))
    return st.one_of(st.just(slice(None)), slices, numbers)


def kinds_of(rows):
    """Return for each row the first row that is equal to it."""
    texts = [row.tobytes() for row in np.ascontiguousarray(rows)]
    return [*map(texts.index, texts)]


@given(st.sampled_from([*CASES]), rows_of(N_QUERIES), rows_of(N_DATABASE), st.data())
def test_a_part_equals_the_block_of_the_whole_and_stays_the_same_rule(name, query, database, data):
    affinity, expected = CASES[name]
    part, expected = affinity.part(query, database), np.asarray(expected)[query][:, database]
    assert type(part) is type(affinity) or name == "third-party"
    assert (part.n_queries, part.n_database) == expected.shape
    rows, columns = (data.draw(rows_of(n)) if n else slice(None) for n in expected.shape)
    block = part.block(rows, columns)
    np.testing.assert_array_equal(block, expected[rows][:, columns])
    np.testing.assert_array_equal(part.part(rows, columns).block(slice(None), slice(None)), block)
    assert np.isin(block, part.levels).all()
    assert getattr(part, "is_sparse", False) == getattr(affinity, "is_sparse", False)
    if part.query_keys() is not None:
        if isinstance(affinity, Explicit):  # of the levels, which are the part's own
            assert kinds_of(part.query_keys()) == kinds_of(expected)
        else:
            np.testing.assert_array_equal(part.query_keys(), affinity.query_keys()[query])


def test_items_whose_levels_are_powers_of_two_keep_keys_of_their_own():
    levels = np.random.default_rng(0).choice([0, 0.5, 1], (6, 2000))
    assert len(np.unique(Explicit(levels).item_keys())) == len(np.unique(levels, axis=1).T)


def test_a_part_of_shared_labels_has_as_many_levels_as_its_items_can_share():
    labels = np.tri(4, dtype=np.uint8)  # the first item has one label, the last one four
    whole = SharedLabels(labels, labels)
    assert whole.levels.tolist() == [0, 1, 2, 3, 4]
    assert whole.part(slice(0, 2)).levels.tolist() == [0, 1, 2]


@given(
    points=hnp.arrays(np.int64, st.tuples(st.integers(2, 12), st.integers(1, 4)), elements=st.integers(-4, 4)),
    shift=st.sampled_from([0, 1000, 2**30]),
)
def test_distance_levels_are_exact_at_the_thresholds_wherever_the_origin_lies(points, shift):
    squared = sorted({sum((a - b) ** 2) for a in points for b in points}, reverse=True)
    thresholds = [float(value) for value in squared[:4]]  # each one is met exactly by some pair
    levels = [1, 2, 5, 10][: len(thresholds)]
    moved = points.astype(np.float64) + shift
    block = Distance(moved, moved, thresholds, levels).block(slice(0, len(points)), slice(0, len(points)))
    np.testing.assert_array_equal(block, oracles.distance_levels(points, points, thresholds, levels))


@given(
    points=hnp.arrays(np.int64, st.tuples(st.integers(2, 20), st.integers(1, 4)), elements=st.integers(-4, 4)),
    percentiles=st.lists(
        st.one_of(st.sampled_from([0.1, 0.2, 1.0, 5.0, 50.0, 100.0]), st.floats(0.01, 100)), min_size=1, max_size=4
    ),
    shift=st.sampled_from([0, 2**30]),
)
def test_percentiles_equal_numpy_inverted_cdf_of_all_pairs(points, percentiles, shift):
    pairs = pdist(points.astype(np.float64), "sqeuclidean")
    expected = np.percentile(pairs, percentiles, method="inverted_cdf")
    result = squared_distance_percentiles(points.astype(np.float64) + shift, percentiles)
    assert result == expected.tolist()


def test_what_stands_for_an_affinity_is_recognised():
    assert isinstance(as_affinity(([1, 2], [1])), SameLabel)
    assert isinstance(as_affinity((np.eye(2), np.eye(2))), SharedLabels)
    assert isinstance(as_affinity([[0, 1]]), Explicit)
    assert isinstance(as_affinity(sp.csr_matrix([[0, 1]])), Explicit)
    rule = SameLabel([1], [1])
    assert as_affinity(rule) is rule


def coo(parts):
    """Store one entry, of a 2 x 3 matrix, in parts."""
    return sp.coo_array((parts, ([1] * len(parts), [2] * len(parts))), shape=(2, 3))


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("parts", "level"),
    [
        (np.full(10, 100, dtype=np.int8), 1000),
        (np.array([True, True]), 1),
        (np.array([1, 2], dtype=np.float32), 3),
        (np.array([1, 2], dtype=np.uint64), 3),
    ],
)
def test_parts_of_any_dtype_add_up_to_their_level(parts, level, form):
    matrix = coo(parts)
    if form == "csr":  # built by hand, since SciPy adds up as it converts
        matrix = sp.csr_array((parts, np.full(len(parts), 2), [0, 0, len(parts)]), shape=(2, 3))
    elif form == "csc":
        matrix = sp.csc_array((parts, np.ones(len(parts), dtype=int), [0, 0, 0, len(parts)]), shape=(2, 3))
    elif form == "bsr":
        matrix = sp.bsr_array((parts[:, None, None], np.full(len(parts), 2), [0, 0, len(parts)]), shape=(2, 3))
    affinity = Explicit(matrix)
    assert affinity.block(slice(None), slice(None)).tolist() == [[0, 0, 0], [0, 0, level]]
    assert affinity.levels.tolist() == [0, level]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SameLabel([["cat"]], [1]), "query labels are <U3 of shape .*, expected whole numbers or words"),
        (lambda: Hierarchy(["a", None], ["b"], [0, 1], [0]), "query labels are words, but item 1 .* has None"),
        (lambda: SameLabel(["cat"], [1]), "query labels are words and the other labels numbers"),
        (lambda: Hierarchy([1, 1], [2], [0, 1], [0]), "class 1 has items of several superclasses"),
        (lambda: Hierarchy(["a", "b"], ["a"], [0, 1], [1]), "class 'a' has items of several superclasses"),
        (lambda: Hierarchy([1, 1], [2], [0], [0]), "superclasses for 1 and 1"),
        (lambda: SameLabel([[1]], [1]), r"query labels are int64 of shape \(1, 1\)"),
        (lambda: SharedLabels([1], [1]), r"query labels have shape \(1,\), expected multi-hot"),
        (lambda: Explicit([1, 2]), r"two dimensions, \(queries, database\), got shape \(2,\)"),
        (lambda: Explicit(sp.csr_array([[-2, 1001, 0, -3, -4]])), r"got 4 other values \(-4, -3, -2, \.\.\.\)"),
        (lambda: Explicit(coo(np.array([2**63 - 1, 2**63 - 1, 3]))), r"got 1 other values \(9223372036854775807\)"),
        (lambda: Explicit(coo(np.array([3, -2]))), r"levels 0 to 1000, .* got 1 other values \(-2\)"),
        (lambda: Explicit(coo(np.array([-0.5, 3], dtype=np.float32))), r"got 1 other values \(-0.5\)"),
        (
            lambda: SameLabel(np.array([2**63 + 1], dtype=np.uint64), [1]),
            "exact up to 9223372036854775807, and hold 9223372036854775809",
        ),
        (lambda: Explicit(coo(np.array([2, -1]))), "level -1 holds some pairs twice"),
        (lambda: Explicit(sp.csr_array(([-1, 2, 1], [0, 0, 1], [0, 3]))), "level -1 holds some pairs twice"),
        (lambda: Explicit([[1, -1], [-1, 1]]), "level -1 and no 0"),
        (lambda: Distance([[0]], [[0]], [1.0], [1, 2]), r"levels \[1, 2\] and 1 thresholds"),
        (lambda: Distance([[0]], [[0]], "abc", [1]), r"squared thresholds are <U3 of shape \(\), expected a list"),
        (lambda: Distance([[0]], [[0]], [{}], [1]), "squared thresholds are object"),
        (lambda: Distance([[0]], [[0]], None, [1]), "squared thresholds are object"),
        (lambda: Distance([[0]], [[0]], [1.0], [[1]]), r"levels are int64 of shape \(1, 1\)"),
        (lambda: Distance([[0]], [[0]], [2.0, 1.0], [2, 1]), "one ascending level above 0"),
        (lambda: Distance([[0]], [[0]], [1.0], [0]), "one ascending level above 0"),
        (lambda: Distance([[0]], [[0]], [1.0, 2.0], [1, 2]), r"thresholds must descend.*\[1\.0, 2\.0\]"),
        (lambda: Distance([[0, 1]], [[0, 1, 2]], [1.0], [1]), "query features have 2 columns and database features 3"),
        (
            lambda: Distance([0, 1], [0, 1], [1.0], [1]),
            r"query features are int64 of shape \(2,\), expected real numbers",
        ),
        (lambda: Distance([[0]], [[0]], [1.0], [1.5]), r"got 1 other values \(1\.5\)"),
        (lambda: Distance([[0]], [[0]], [1.0], [1001]), r"got 1 other values \(1001\)"),
        (lambda: SharedLabels(np.ones((1, 1001)), np.ones((1, 1001))).levels, r"got 1 other values \(1001\)"),
        (lambda: SharedLabels(np.zeros((1, 0)), np.zeros((1, 0))), r"shape \(1, 0\), expected multi-hot"),
        (lambda: squared_distance_percentiles([[0.0, 1.0]], [5]), "two items or more"),
        (lambda: squared_distance_percentiles([[0.0], [1.0]], [150]), r"at most 100, got \[150\]"),
        (lambda: squared_distance_percentiles([[0.0], [1.0]], [0]), r"at most 100, got \[0\]"),
    ],
)
def test_what_cannot_be_an_affinity_is_refused_in_words(make, message):
    with pytest.raises(HashbenchError, match=message):
        make()


def with_parts(form, **parts):
    """A sparse matrix whose arrays were changed behind its back."""
    matrix = sp.csr_array(np.eye(6, dtype=np.int8)).asformat(form)
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def with_rows(column):
    """A list of lists with a column beyond its shape."""
    matrix = sp.lil_array(np.eye(6, dtype=int))
    matrix.rows[0] = [column]
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        with_parts("csr", indices=np.arange(6) - 5),
        with_parts("csr", indices=np.arange(6) + 1),
        with_parts("csr", indptr=np.array([0, 1, 2, 3, 4, 10**6, 6])),
        with_parts("csr", indptr=np.array([1, 1, 2, 3, 4, 5, 6])),
        with_parts("csr", indptr=np.array([0, 1, 2, 6])),
        with_parts("csr", data=np.ones(3, dtype=np.int8)),
        with_parts("csc", indices=np.arange(6) - 1),
        with_parts("coo", coords=(np.arange(6) - 1, np.arange(6))),
        with_parts("coo", coords=(np.arange(6), np.arange(6) + 1)),
        with_parts("coo", coords=(np.arange(6), np.arange(3))),
        with_rows(6),
        with_rows(-1),
    ],
)
def test_a_damaged_sparse_matrix_is_refused_before_compiled_code_sees_it(matrix):
    with pytest.raises(HashbenchError, match=r"a sparse matrix of shape \(6, 6\) is damaged: "):
        Explicit(matrix)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia", "bsr"])
def test_levels_and_labels_may_be_sparse_in_any_format_and_are_left_as_they_were(form):
    dense = np.random.default_rng(0).integers(0, 3, (5, 7))
    matrix, labels = sp.csr_array(dense).asformat(form), dense // 2
    np.testing.assert_array_equal(Explicit(matrix).block(slice(None), slice(None)), dense)
    np.testing.assert_array_equal(matrix.toarray(), dense)
    rule = as_affinity((sp.csr_array(labels).asformat(form), labels))
    np.testing.assert_array_equal(rule.block(slice(None), slice(None)), labels @ labels.T)


class OnlyDLPack:
    """An array of another library, which NumPy takes for an object."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_labels_and_levels_may_be_arrays_of_any_library_with_dlpack():
    labels, levels = np.array([0, 1, 1]), np.array([[0, 2], [1, 0]])
    np.testing.assert_array_equal(as_affinity((OnlyDLPack(labels), labels)).query_labels, labels)
    np.testing.assert_array_equal(as_affinity(OnlyDLPack(levels)).block(slice(None), slice(None)), levels)


def test_labels_up_to_int64_are_exact():
    fine = np.array([2**63 - 1, 2], dtype=np.uint64)
    assert SameLabel(fine, fine).query_labels.tolist() == fine.tolist()

import numpy as np
import pytest

from hashbench.store.array_cache import cached_array

X = np.random.default_rng(0).normal(size=(10, 3)).astype(np.float32)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "a.npy"


def blocks(asked=None):
    for start in range(0, 10, 4):
        if asked is not None:
            asked.append(start)
        yield X[start : start + 4]


def test_blocks_are_computed_once_and_make_one_array_of_numpys(path, caplog):
    asked = []
    for _ in range(2):
        np.testing.assert_array_equal(cached_array(path, X.shape, np.float32, blocks(asked)), X)
    assert asked == [0, 4, 8]
    np.testing.assert_array_equal(np.load(path), X)
    assert not caplog.messages


def test_what_is_done_to_the_array_does_not_reach_the_file(path):
    cached_array(path, X.shape, np.float32, blocks())[:] = 0
    np.testing.assert_array_equal(cached_array(path, X.shape, np.float32, []), X)


@pytest.mark.parametrize("block", [X.T, X[::-1], X.astype(float)], ids=["by columns", "backwards", "float64"])
def test_blocks_of_any_layout_are_kept_as_what_they_hold(path, block):
    np.testing.assert_array_equal(cached_array(path, block.shape, np.float32, [block]), block)


def flip(place):
    return lambda content: content[:place] + bytes([content[place] ^ 1]) + content[place:][1:]


@pytest.mark.parametrize(
    "damage",
    [
        *(flip(place) for place in (0, 30, 60, 128, 200, -40, -1)),  # in the header, the values, the digest
        lambda content: content[: len(content) // 2],
        lambda content: content[:-32],  # as numpy.save writes it
        lambda content: content + b"x",
        lambda content: b"x",
        lambda content: b"",
    ],
)
def test_a_file_that_is_not_as_it_was_written_is_made_again_and_that_is_told(path, damage, caplog):
    cached_array(path, X.shape, np.float32, blocks())
    content = path.read_bytes()
    path.write_bytes(damage(content))
    np.testing.assert_array_equal(cached_array(path, X.shape, np.float32, blocks()), X)
    assert path.read_bytes() == content
    (message,) = caplog.messages
    assert message.startswith(f"{path} is damaged, or was written by another version of hashbench")


@pytest.mark.parametrize(("shape", "dtype"), [((10, 3), np.float16), ((3, 10), np.float32), ((9, 3), np.float32)])
def test_an_array_of_another_shape_or_type_is_made_again(path, shape, dtype):
    cached_array(path, X.shape, np.float32, blocks())
    other = np.ones(shape, dtype)
    np.testing.assert_array_equal(cached_array(path, shape, dtype, [other]), other)


def test_what_fails_midway_leaves_no_file(path):
    def failing():
        yield X[:4]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cached_array(path, X.shape, np.float32, failing())
    assert not [*path.parent.iterdir()]

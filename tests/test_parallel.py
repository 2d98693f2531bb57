import os
import subprocess
import sys

import pytest

from hashbench import _parallel
from hashbench.errors import HashbenchError


@pytest.mark.parametrize("n_parts", [0, 1, 2, 50])
def test_threads_give_results_in_the_order_of_the_parts(n_parts):
    parts = _parallel.chunks(10, 10 + 3 * n_parts, 3)
    assert list(_parallel.in_threads(lambda part: part.start, parts)) == list(range(10, 10 + 3 * n_parts, 3))


def test_chunks_cover_a_range_without_gap_or_overlap():
    assert _parallel.chunks(2, 9, 3) == [slice(2, 5), slice(5, 8), slice(8, 9)]
    assert _parallel.chunks(4, 4, 3) == []


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(part):
        raise HashbenchError(f"no part {part.start}.")

    with pytest.raises(HashbenchError, match="no part"):
        list(_parallel.in_threads(fail, _parallel.chunks(0, 5, 1)))


COMPILE = """
import numpy as np
from hashbench._parallel import telling_of_compilation
from hashbench.scoring.metrics._loops import probability_of_none
some, others, out = np.ones(1, dtype=np.int64), np.ones(1, dtype=np.int32), np.empty(1)
with telling_of_compilation(lambda *told: print(*told, sep=", ")):
    probability_of_none(some, some, some, out)
    probability_of_none(others, others, others, out)  # another type, so compiled once more
print(*out)
"""


@pytest.mark.slow
def test_compilation_is_told_once_and_only_on_a_machine_that_has_not_compiled_before(tmp_path):
    def told():
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", COMPILE], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    assert told() == ["compiling loops that count and score, kept for the next time, 0, 0", "0.0"]
    assert told() == ["0.0"]

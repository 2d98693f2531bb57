import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor

import numba
import pytest

from hashbench import _parallel
from hashbench._parallel import to_machine_code
from hashbench.errors import HashbenchError


@pytest.mark.parametrize("n_parts", [0, 1, 2, 50])
def test_threads_give_results_in_the_order_of_the_parts(n_parts):
    parts = _parallel.chunks(10, 10 + 3 * n_parts, 3)
    assert list(_parallel.in_threads(lambda part: part.start, parts)) == list(range(10, 10 + 3 * n_parts, 3))
    assert _parallel.chunks(2, 9, 3) == [slice(2, 5), slice(5, 8), slice(8, 9)]


def test_an_error_in_a_thread_reaches_the_caller():
    def fail(part):
        raise HashbenchError(f"no part {part.start}.")

    with pytest.raises(HashbenchError, match="no part"):
        list(_parallel.in_threads(fail, _parallel.chunks(0, 5, 1)))


@pytest.fixture
def loops(monkeypatch, tmp_path):
    """The folder where machine code is kept, of a user whose cache is empty."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "hashbench" / "loops"


def imported(path):
    """Read a module from its file."""
    spec = importlib.util.spec_from_file_location("of_test", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def of_module(path):
    return to_machine_code(imported(path).function)


def test_machine_code_lies_in_the_users_cache_a_folder_for_each_content_of_a_source(loops, tmp_path):
    path = tmp_path / "source.py"
    path.write_text("def function(x):\n    return x + 1\n", encoding="utf-8")
    assert of_module(path)(1) == 2
    assert len(list(loops.iterdir())) == 1
    path.write_text("def function(x):\n    return x + 100\n", encoding="utf-8")
    assert of_module(path)(1) == 101
    assert len(list(loops.iterdir())) == 2
    assert not list(tmp_path.glob("__pycache__/*.nb?"))
    assert numba.config.CACHE_DIR == ""


def test_a_loop_is_plain_until_loops_of_the_process_have_taken_long_and_longer_where_none_lies_on_disk(
    loops, tmp_path, monkeypatch
):
    path = tmp_path / "source.py"
    path.write_text("def function(x):\n    return x + 1\n", encoding="utf-8")
    monkeypatch.setattr(_parallel, "BEFORE_LOADING", 4.0)
    monkeypatch.setattr(_parallel, "BEFORE_COMPILING", 7.0)
    calls = []

    def calls_before_it_is_loaded():
        monkeypatch.setattr(_parallel, "_plain_seconds", 0.0)

        def plain(x):
            calls.append(x)
            return x + 1

        loop = _parallel.compiled_or(plain, seconds=1.0)(imported(path).function)
        calls.clear()
        assert [loop(x) for x in range(10)] == list(range(1, 11))
        assert calls == list(range(len(calls)))
        return len(calls)

    assert calls_before_it_is_loaded() == 6
    assert calls_before_it_is_loaded() == 3
    path.write_text("def function(x):\n    return 1 + x\n", encoding="utf-8")
    assert calls_before_it_is_loaded() == 6


def test_functions_that_a_loop_calls_are_compiled_with_it(loops, tmp_path):
    path = tmp_path / "source.py"
    text = "def twice(x):\n    return x + x\ndef more(x):\n    return twice(x) + 1\n"
    path.write_text(text + "def function(x):\n    return more(x) + twice(x)\n", encoding="utf-8")
    module = imported(path)
    loop = to_machine_code(module.function)
    assert loop(3) == module.function(3) == 13
    assert loop.nopython_signatures
    assert module.more(3) == 7  # which is left as it is
    again = to_machine_code(module.function)
    assert again(4) == 17
    assert sum(again.stats.cache_hits.values()) == 1


def test_a_thread_waits_until_another_has_imported_numba(monkeypatch):
    n_importing, most = 0, 0

    def import_slowly():
        nonlocal n_importing, most
        n_importing += 1
        most = max(most, n_importing)
        time.sleep(0.01)
        n_importing -= 1

    monkeypatch.setattr(_parallel, "_import_numba", import_slowly)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: _parallel.numba_error(), range(4))) == [None] * 4
    assert most == 1


def test_threads_that_compile_at_once_leave_numbas_settings_as_they_were(loops, tmp_path):
    path = tmp_path / "source.py"
    path.write_text("def function(x):\n    return x + 1\n", encoding="utf-8")
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda number: of_module(path)(number), range(12))) == list(range(1, 13))
    assert numba.config.CACHE_DIR == ""
    assert not list(tmp_path.glob("__pycache__/*.nb?"))


def test_without_a_cache_folder_machine_code_lies_beside_the_source(loops, tmp_path):
    (tmp_path / "cache").write_text("no folder", encoding="utf-8")
    path = tmp_path / "source.py"
    path.write_text("def function(x):\n    return x + 1\n", encoding="utf-8")
    assert of_module(path)(1) == 2
    assert list(tmp_path.glob("__pycache__/*.nbi"))

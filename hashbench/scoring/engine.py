"""The loops that count here: in NumPy, and once that pays compiled, with the same results."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hashbench._parallel import plain_first
from hashbench.scoring import plain_kernels

_SOURCE = str(Path(plain_kernels.__file__).with_name("kernels.py"))
_SECONDS = 7e-9  # of the plain loops, for each query and 8 bytes of the database


def _either(plain: Callable[..., Any], n_steps: Callable[..., int]) -> Callable[..., Any]:
    def load() -> Any:
        return getattr(import_module("hashbench.scoring.kernels"), plain.__name__)

    return plain_first(plain, load, _SOURCE, lambda *arguments: _SECONDS * n_steps(*arguments))


_LOOPS: dict[Callable[..., Any], Callable[..., int]] = {
    plain_kernels.count_ranges: lambda query, start, stop, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.count_runs: lambda query, masks, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.count_shared: lambda query, masks, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.count_levels: lambda query, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.largest_buckets: lambda query, codes, *others: len(query) * codes.nbytes // 8,
    plain_kernels.collect: lambda query, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.all_cells: lambda query, database, *others: len(query) * database.nbytes // 8,
    plain_kernels.add_cells: lambda cells, tables, sums: cells.size * sums.shape[1] // 4,
}
kernels: Any = SimpleNamespace(**{plain.__name__: _either(plain, n_steps) for plain, n_steps in _LOOPS.items()})

"""The loops that count here: compiled, or in NumPy where numba is missing."""

from hashbench._parallel import numba_error

if numba_error() is None:
    from hashbench.scoring import kernels
else:
    from hashbench.scoring import plain_kernels as kernels  # type: ignore[no-redef]

__all__ = ["kernels"]

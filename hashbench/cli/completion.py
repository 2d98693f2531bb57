"""Names that a shell completes, without importing what has them, which would take seconds per keystroke."""

from collections.abc import Callable
from functools import partial

from hashbench.cards import written
from hashbench.registry import dataset_names, method_names
from hashbench.store.files import data_dir


def datasets() -> list[str]:
    """List the known datasets, and those prepared from the user's own data."""
    known = dataset_names()
    own = [path.stem for path in (data_dir() / "datasets").glob("*.h5")]
    return known + [name for name in own if not name.startswith(tuple(f"{prefix}-" for prefix in known))]


def _built_in(kind: str) -> list[str]:
    names: list[str] = written()["names"][kind]
    return names


NAMES: dict[str, Callable[[], list[str]]] = {
    "methods": method_names,
    "datasets": datasets,
    **{kind: partial(_built_in, kind) for kind in ("features", "metrics", "scripts", "figures", "tables")},
}

"""Names that a shell completes, from a file, since importing what has them would take seconds per keystroke."""

from collections.abc import Callable
from importlib.metadata import entry_points

from hashbench.cards import written
from hashbench.registry import method_names
from hashbench.store.files import data_dir


def methods() -> list[str]:
    """List all methods."""
    return method_names()


def datasets() -> list[str]:
    """List the known datasets, and those prepared from the user's own data."""
    known = [*_built_in("datasets"), *(point.name for point in entry_points(group="hashbench.datasets"))]
    own = [path.stem for path in (data_dir() / "datasets").glob("*.h5")]
    return known + [name for name in own if not name.startswith(tuple(f"{prefix}-" for prefix in known))]


def features() -> list[str]:
    """List the kinds of features that datasets offer."""
    return _built_in("features")


def metrics() -> list[str]:
    """List metrics, with an example of a cutoff; those with a colon are left out, since a shell splits words there."""
    return _built_in("metrics")


def scripts() -> list[str]:
    """List the scoring scripts that `explain` emulates, and those that sort by NumPy as they run on this machine."""
    return _built_in("scripts")


def figures() -> list[str]:
    """List the figures."""
    return _built_in("figures")


def tables() -> list[str]:
    """List the tables."""
    return _built_in("tables")


NAMES: dict[str, Callable[[], list[str]]] = {
    function.__name__: function for function in (methods, datasets, features, metrics, scripts, figures, tables)
}


def _built_in(kind: str) -> list[str]:
    names: list[str] = written()["names"][kind]
    return names

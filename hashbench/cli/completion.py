"""Names that a shell completes, remembered, since importing what has them would take seconds per keystroke."""

from collections.abc import Callable
from importlib.metadata import entry_points

from hashbench.registry import method_names
from hashbench.store.files import data_dir
from hashbench.store.remembered import remembered


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
    names: dict[str, list[str]] = remembered("names", _all_names)
    return names[kind]


def _all_names() -> dict[str, list[str]]:
    from hashbench.registry import built_in_datasets, dataset_class
    from hashbench.reports.explain.evaluators import EVALUATORS, twins_of
    from hashbench.reports.plots import FIGURES
    from hashbench.reports.tables import LAYOUTS
    from hashbench.scoring.metrics import FAMILIES

    scripts = [script.name for original in EVALUATORS for script in (original, *twins_of([original]))]
    own = [name for name, family in FAMILIES.items() if family.function.__module__.startswith("hashbench.")]
    patterns = [name.replace("@k", "@100").replace("@rN", "@r2") for name in own if ":" not in name]
    kinds = dict.fromkeys(kind for name in built_in_datasets() for kind in dataset_class(name).features)
    return {
        "datasets": built_in_datasets(),
        "features": list(kinds),
        "metrics": patterns,
        "scripts": scripts,
        "figures": list(FIGURES),
        "tables": list(LAYOUTS),
    }

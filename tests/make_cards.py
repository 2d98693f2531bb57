"""Write hashbench/cards.json: cards of the built-in methods, and names that a shell completes (`make cards`)."""

import json

from helpers.paths import ROOT, built_in_datasets, built_in_methods

from hashbench.cards import as_json, card_of_class, source_digest
from hashbench.registry import dataset_class
from hashbench.reports.explain.scripts import EVALUATORS, twins_of
from hashbench.reports.plots import FIGURES
from hashbench.reports.tables import LAYOUTS
from hashbench.scoring.metrics import FAMILIES

CARDS = ROOT / "hashbench" / "cards.json"


def cards():
    """Return what the file should hold."""
    own = [name for name, family in FAMILIES.items() if family.function.__module__.startswith("hashbench.")]
    kinds = (kind for name in built_in_datasets() for kind in dataset_class(name).features)
    names = {
        "features": list(dict.fromkeys(kinds)),
        "metrics": [name.replace("@k", "@100").replace("@rN", "@r2") for name in own if ":" not in name],
        "scripts": [script.name for original in EVALUATORS for script in (original, *twins_of([original]))],
        "figures": list(FIGURES),
        "tables": list(LAYOUTS),
    }
    return {
        "made_from": source_digest(),
        "methods": {name: as_json(card_of_class(name)) for name in built_in_methods()},
        "names": names,
    }


if __name__ == "__main__":
    CARDS.write_text(json.dumps(cards(), indent=1) + "\n")

"""Codes scored by the scripts of `hashbench explain`."""

from hashbench.affinity import SameLabel
from hashbench.bits import pack
from hashbench.reports.explain.emulation import explain
from hashbench.reports.explain.scripts import EVALUATORS, named


def explained(metrics, query, database, labels, scripts=EVALUATORS):
    """Explain boolean codes by all scripts, or by those of these names; labels are a pair, or an affinity."""
    affinity = SameLabel(*labels) if isinstance(labels, tuple) else labels
    scripts = [named(script) if isinstance(script, str) else script for script in scripts]
    return explain(pack(query), pack(database), query.shape[1], affinity, metrics, scripts)


def values_of(explanations, metric=None):
    """Return values by script, of one metric if there are several."""
    return {
        explanation.evaluator.name: explanation.value
        for explanation in explanations
        if metric in (None, explanation.metric)
    }

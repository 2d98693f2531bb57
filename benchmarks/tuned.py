"""What `hashbench tune` tried for the rows of each dataset, as a page, and the chosen settings as tables of a grid.

    .venv/bin/python benchmarks/tuned.py                 # writes benchmarks/tuned/README.md
    .venv/bin/python benchmarks/tuned.py cifar10-s1      # prints the chosen settings, for benchmarks/rows

Everything is computed from the committed rows of trials: the score of a setting is the mean of its two of each seed,
the best is chosen if it leads the default by more than 0.01, as tune does. A chosen number is at an edge if all others
that were tried are on one side of it.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from numbers import Real
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from hashbench.cards import method_card
from hashbench.pipeline.tuning import is_at_edge, leads
from hashbench.reports.aggregate import changed_params
from hashbench.reports.formatting import markdown_table
from hashbench.store.results import read_folder

FOLDER = Path(__file__).with_name("tuned")
LEAST = {("hashnet", "beta"): 1.0}  # a method takes no smaller number, so this is no edge
LENGTH = ("epochs", "halve_every")  # of training, the same for all methods: not a choice
ABOUT = """# What the rows of each dataset were tuned by

`hashbench tune` chose the settings of the rows of a dataset on its own training items, of which it held out a fifth
([how](../../docs/tuning.md)). Queries were not used. Each method went from its defaults to better settings, one
parameter at a time: at least nine settings, or all that it declares. Where a chosen number was the least or the
greatest that had been tried, further settings followed, but not below what the method takes (`beta` of hashnet is at
least 1; `auto` of lfh's `n_sampled`, the number of bits, is the paper's). So a chosen number has others on both sides,
but not all were tried together with the other chosen numbers.

On `cifar10-s2`, where a trial takes minutes, the settings were five of rate and weight decay, and then, at the chosen
ones, two further values of the first parameter of the loss. adsh, dfh, dpsh, dsdh and mdsh take longest, and have none
of the loss.

`benchmarks/tuned.py` makes this page from the rows of the trials, which lie beside it. All settings of a method, with
their scores:

    hashbench tables --results benchmarks/tuned/cifar10-s1 --method csq --variants
"""


class Trials(NamedTuple):
    """The trials of a method on a dataset: the score of each setting, as JSON of what is not a default."""

    method: str
    scores: dict[str, float]
    chosen: dict[str, Any]
    tried: dict[str, list[Any]]  # values of each parameter


def trials_of(folder: Path) -> Iterator[Trials]:
    """Yield the trials of each method; a setting that failed has no rows, so each needs both scores."""
    values = defaultdict[tuple[str, str], list[float]](list)
    for row in read_folder(folder).values():
        changed = changed_params(row.method, row.params)
        setting = json.dumps({key: changed[key] for key in sorted(changed) if key not in LENGTH})
        values[row.method, setting].append(float(row.value))
    n_seeds = len({row.seed for row in read_folder(folder).values()})
    if any(len(all_scores) != 2 * n_seeds for all_scores in values.values()):
        sys.exit(f"{folder} lacks one of the two scores of a setting and seed, or has several lengths")
    for method in sorted({method for method, _ in values}):
        scores = {setting: fmean(of_setting) for (name, setting), of_setting in values.items() if name == method}
        if "{}" not in scores:
            sys.exit(f"{folder} lacks the defaults of {method}")
        settings, params = [json.loads(setting) for setting in scores], method_card(method).params
        tried = {
            key: [setting.get(key, params[key]) for setting in settings]
            for key in sorted({key for setting in settings for key in setting})
        }
        best = max(scores, key=lambda setting: (scores[setting], -len(setting)))  # of equal ones, the shortest
        chosen = json.loads(best) if leads(scores[best] - scores["{}"]) else {}
        yield Trials(method, scores, chosen, tried)


def edges(trials: Trials) -> list[str]:
    params = method_card(trials.method).params | trials.chosen
    return [
        key
        for key, tried in trials.tried.items()
        if is_at_edge(params[key], tried) and params[key] != LEAST.get((trials.method, key))
    ]


def table(folder: Path) -> str:
    lines = []
    for trials in trials_of(folder):
        default = trials.scores["{}"]
        words = ", ".join(f"{key} {_word(value)}" for key, value in trials.chosen.items()) or "the defaults"
        tried = "; ".join(
            f"{key} {', '.join(sorted({*map(_word, values)}, key=_number))}" for key, values in trials.tried.items()
        )
        best = max(trials.scores.values())
        at_edge = ", ".join(edges(trials)) or "-"
        lines.append(
            [f"`{trials.method}`", words, f"{default:.4f}", f"{best:.4f}", str(len(trials.scores)), tried, at_edge]
        )
    header = ["method", "chosen", "default", "best", "settings", "values tried", "at the edge"]
    return markdown_table(header, lines, is_padded=False, is_markup=True)


def _word(value: Any) -> str:
    return "auto" if value is None else f"{value:g}" if isinstance(value, Real) else str(value)


def _seeds(seeds: list[int]) -> str:
    return f"seed{'s' * (len(seeds) > 1)} {' and '.join(map(str, seeds))}"


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return float("inf")


def grid_of(folder: Path) -> str:
    """Return the chosen settings as tables of a grid, each with the number of settings tried."""
    lines = []
    for trials in trials_of(folder):
        lines += ["", f"[methods.{trials.method}]", f"tuned = {len(trials.scores)}"]
        lines += [f"{key} = {json.dumps('None' if value is None else value)}" for key, value in trials.chosen.items()]
    return "\n".join(lines)


def is_finished(folder: Path) -> bool:
    """Return whether the grid of a dataset has the settings that its trials choose."""
    path = FOLDER.with_name("rows") / f"{folder.name}.toml"
    return path.exists() and "\ntuned = " in path.read_text()


def page() -> str:
    parts = [ABOUT]
    for folder in sorted(path for path in FOLDER.iterdir() if path.is_dir()):
        rows = read_folder(folder).values()
        (features,), (n_bits,), seeds = ({getattr(row, key) for row in rows} for key in ("features", "n_bits", "seed"))
        (n_epochs,) = {params["epochs"] for row in rows if "epochs" in (params := json.loads(row.params))}
        about = f"Features: {features}. At {n_bits} bits, {_seeds(sorted(seeds))}, {n_epochs} epochs."
        if not is_finished(folder):
            about += " These trials are not finished: other methods follow, and the rows still have the defaults."
        parts.append(f"## {folder.name}\n\n{about}\n\n{table(folder)}\n")
    return "\n".join(parts)


def main() -> int:
    if len(sys.argv) > 1:
        print(grid_of(FOLDER / sys.argv[1]))
    else:
        (FOLDER / "README.md").write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())

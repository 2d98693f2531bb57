"""Settings of the learned methods: what was tried before defaults were fixed, and networks from images.

    .venv/bin/python benchmarks/tuning.py cifar10-s1:images --weights squeezenet1_0.pth --epochs 6 [--jobs N]
    .venv/bin/python benchmarks/tuning.py cifar10-s1:images --weights squeezenet1_0.pth --epochs 6 --network
    .venv/bin/python benchmarks/tuning.py --summary

Trials are those of `hashbench tune`: a fifth of the training items is held out, a method learns from the others, and
two numbers judge it, since neither alone foretells the queries: AP of held-out items as queries to other held-out
items, and to those that were learned from. Queries and database of the dataset are never looked at.

benchmarks/tuning.csv has the trials behind the defaults, on features: nine settings a method, an even draw from three
values of the rate, three of weight decay and three of one parameter of its loss, at two lengths. Their code was that of
25 November 2026. further.csv has more settings of mihash, from which none was chosen; tuning-earlier.csv has trials of
earlier code: on features without weight decay, and from images before features were centred by the mean of all items.
What the rows of a dataset were tuned by is in benchmarks/tuned, which `hashbench tune` wrote.

From images there are three settings at one length: the rate that suits the method on features, with pretrained layers
at a hundredth, three hundredths or a tenth of it, all else as in benchmarks/rows/images.toml; dtsh diverges at two of
these, and has three more at a third of the rate. ``--network`` asks, by talr-ap, what smaller and larger images gain,
and training fewer layers or all. Trials are added to benchmarks/tuning.csv one by one, and not repeated.
"""

import argparse
import json
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

from hashbench import registry
from hashbench.cards import method_card
from hashbench.dataset import Dataset
from hashbench.pipeline.grid import grid
from hashbench.pipeline.one_job import load_once
from hashbench.pipeline.preparation import load_dataset
from hashbench.pipeline.tuning import LEAD, SCORES, failure_of, run_trials, split_file
from hashbench.reports.formatting import markdown_table
from hashbench.store.files import locked, write_text

TRIALS = Path(__file__).with_name("tuning.csv")
GRID = Path(__file__).parent / "rows/images.toml"
EARLIER = Path(__file__).with_name("tuning-earlier.csv")
N_BITS, SEED = 32, 0
OF_NEIGHBOURS = "wordnet-minilm"
NAMES = {"learning_rate": "rate", "weight_decay": "decay"}
MULTIPLIERS = [0.01, 0.03, 0.1]  # of the rates of pretrained layers
OF_IMAGES: dict[str, list[dict[str, Any]]] = {  # the rate that suits a method on features, and what else it has
    "talr-ap": [{"n_bins": 8, "alpha": 0.5, "learning_rate": 0.1}],
    "mihash": [{"n_bins": 8, "alpha": 2.0, "learning_rate": 0.1}],
    "hashnet": [{"learning_rate": 0.1}],
    "dpsh": [{"eta": 30.0, "learning_rate": 0.3}],
    "dtsh": [{"learning_rate": 0.03}, {"learning_rate": 0.01}],  # the first is finite only at the least share
}
NETWORK_METHOD = "talr-ap"  # with pretrained layers at a tenth
NETWORKS: list[dict[str, Any]] = [
    {"image_size": 96},
    {"image_size": 224},
    {"train_from": "fire9"},
    {"train_from": "conv1"},
]
KEY = ["dataset", "dataset_fingerprint", "epochs", "method", "setting", "n_bits", "seed"]
COLUMNS = [*KEY, "is_default", *SCORES, "seconds", "failure"]


def trials(spec: str, dataset: Dataset, epochs: int, of_network: bool = False) -> list[dict[str, Any]]:
    below = [{"pretrained_multiplier": multiplier} for multiplier in MULTIPLIERS]
    plan = {method: [one | share for one in settings for share in below] for method, settings in OF_IMAGES.items()}
    if of_network:
        plan = {NETWORK_METHOD: [plan[NETWORK_METHOD][-1] | one for one in NETWORKS]}
    same = {"dataset": spec, "dataset_fingerprint": dataset.fingerprint, "epochs": epochs}
    return [
        same | {"method": method, "setting": json.dumps(setting), "n_bits": N_BITS, "seed": SEED, "is_default": False}
        for method, settings in plan.items()
        for setting in settings
    ]


def network(weights: str, epochs: int) -> dict[str, Any]:
    """Return the parameters of all methods that learn from images, the rate halved as often as in the grid."""
    grid = tomllib.loads(GRID.read_text())["params"]
    halve_every = max(1, epochs * grid["halve_every"] // grid["epochs"])
    return grid | {"weight_decay": 5e-4, "weights": weights, "epochs": epochs, "halve_every": halve_every}


def judge(trial: dict[str, Any], weights: str) -> dict[str, Any]:
    """Learn from four fifths of the training items, and score the others in both ways."""
    dataset = load_once(trial["dataset"], trial["dataset_fingerprint"])
    params = {"device": "cpu"} | network(weights, trial["epochs"]) | json.loads(trial["setting"])
    path = split_file(dataset, trial["seed"])
    (job,) = grid([str(path)], [(trial["method"], params)], [trial["n_bits"]], [trial["seed"]], {})
    with TemporaryDirectory() as folder:
        (outcome,) = run_trials([replace(job, whole=trial["dataset"])], ["AP"], Path(folder))
    if failure := failure_of(outcome, "AP"):
        return {**trial, "failure": failure}
    scores = zip(SCORES, (float(row.value) for row in outcome.rows), strict=True)
    return {**trial, **dict(scores), "seconds": round(float(outcome.made.seconds), 1)}


def run(plan: list[dict[str, Any]], weights: str, n_jobs: int = 1, path: Path = TRIALS) -> None:
    """Judge the trials that the file does not hold yet."""
    done = {_identity(trial) for trial in read(path)[KEY].to_dict("records")}
    missing = [trial for trial in plan if _identity(trial) not in done]
    print(f"{len(missing)} trials left of {len(plan)}", flush=True)
    tasks = (delayed(judge)(trial, weights) for trial in missing)
    results = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    for number, result in enumerate(results, start=1):
        add(result, path)
        print(f"[{number}/{len(missing)}]", *result.values(), flush=True)


def _identity(trial: dict[str, Any]) -> tuple[str, ...]:
    """Return the key of a trial, whatever the order of its parameters."""
    return tuple(str(sorted(json.loads(trial[key]).items()) if key == "setting" else trial[key]) for key in KEY)


def add(result: dict[str, Any], path: Path = TRIALS) -> None:
    """Insert a trial into the file, beside those that other processes have added."""
    with locked(path):
        known = pd.concat([read(path), pd.DataFrame([result])], ignore_index=True)
        write_text(path, known.sort_values(KEY, ignore_index=True).to_csv(index=False, lineterminator="\n"))


def read(path: Path = TRIALS) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"dataset_fingerprint": str}) if path.exists() else pd.DataFrame(columns=COLUMNS)


def summary() -> None:
    """Print the mean over lengths and seeds of both scores, of each setting on each dataset and in the mean of all."""
    table = means(read())
    print(table.sort_values(["dataset", "method", "score"], ascending=[True, True, False]).to_string(index=False))
    print(overall(table).to_string(index=False))


def means(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the score of each setting on each dataset, the mean over lengths; NaN if a trial failed."""
    trials = trials.assign(score=trials[list(SCORES)].mean(axis=1, skipna=False))
    same = ["dataset", "method", "setting", "is_default"]
    return trials.groupby(same)["score"].apply(lambda scores: scores.mean(skipna=False)).reset_index()


def overall(table: pd.DataFrame) -> pd.DataFrame:
    """Return the mean over datasets of each setting, the best of each method first."""
    same = table.groupby(["method", "setting", "is_default"])["score"]
    scores = same.apply(lambda scores: scores.mean(skipna=False)).reset_index()
    return scores.sort_values(["method", "score"], ascending=[True, False])


def choices() -> pd.DataFrame:
    """Return, for each method, its default when trials began, the best of its settings on features, and its lead."""
    table = overall(means(of_classes(read())))
    default = table[table["is_default"]].set_index("method")
    best = table.dropna(subset="score").groupby("method").head(1).set_index("method")
    frame = default.reset_index().merge(best.reset_index(), on="method", suffixes=("_default", "_best"))
    return frame.assign(lead=frame["score_best"] - frame["score_default"])


def of_classes(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the trials that defaults are chosen by: on features of items with classes."""
    return trials[~trials["dataset"].str.endswith(":images") & (trials["dataset"] != OF_NEIGHBOURS)]


def chosen_by_neighbours() -> str:
    """Lay out as a table what methods without labels score on items with neighbours, and with which settings."""
    trials = read()
    table = means(trials[trials["dataset"] == OF_NEIGHBOURS]).dropna(subset="score")
    best = table.sort_values("score", ascending=False).groupby("method").head(1).sort_values("method")
    rows = []
    for row in best.itertuples():
        force = {name: method_card(row.method).params[name] for name in json.loads(row.setting)}
        scores = table[(table["method"] == row.method) & (table["setting"].map(json.loads) == force)]["score"]
        default = f"{scores.iloc[0]:.3f}" if len(scores) else "not tried"
        rows.append([f"`{row.method}`", in_words(json.loads(row.setting)), f"{row.score:.3f}", default])
    header = ["method", "best of nine", "score", "default"]
    return markdown_table(header, rows, is_padded=False, is_markup=True)


def chosen() -> str:
    """Lay out `choices` as a table, with what is in force now."""
    rows = []
    for row in choices().itertuples():
        default, best = (json.loads(setting) for setting in (row.setting_default, row.setting_best))
        scores = f"{row.score_default:.3f}", f"{row.score_best:.3f}", f"{row.lead:.4f}"
        params = method_card(row.method).params
        is_best = all(params[name] == value for name, value in best.items())
        now = "the default" if row.lead <= LEAD else "the best" if is_best else "not the best"
        rows.append([f"`{row.method}`", in_words(default), scores[0], in_words(best), *scores[1:], now])
    header = ["method", "default", "score", "best of nine", "score", "lead", "in force"]
    return markdown_table(header, rows, is_padded=False, is_markup=True)


def in_words(setting: dict[str, Any]) -> str:
    texts = {name: "auto" if value is None else f"{value:g}" for name, value in setting.items()}
    return ", ".join(f"{NAMES.get(name, name)} {text}" for name, text in texts.items())


def effort() -> str:
    """Lay out, as a table, how many settings of each method were tried on images, and how many trials failed."""
    table, earlier = read(), read(EARLIER).drop_duplicates(["centred_by", *KEY[:5]])
    now, earlier = table.drop_duplicates(KEY[:5]), earlier[earlier["dataset"].str.endswith(":images")]
    counts = pd.crosstab(now["method"], now["dataset"]).filter(like=":images").reindex(registry.built_in_methods())
    counts["images, earlier code"] = earlier["method"].value_counts()
    failed = table[table["failure"].notna() & table["dataset"].str.endswith(":images")]
    counts["trials that failed"] = failed["method"].value_counts()
    counts = counts.fillna(0).astype(int)
    by_counts = counts[counts.any(axis=1)].groupby([*counts], sort=False)
    alike = [(", ".join(f"`{name}`" for name in rows.index), *row) for row, rows in by_counts]
    rows = [[names, *map(str, row)] for names, *row in sorted(alike, key=lambda row: row[1:], reverse=True)]
    return markdown_table(["method", *counts], rows, is_padded=False, is_markup=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", help="of images, prepared, such as cifar10-s1:images")
    parser.add_argument("--weights", help="of the network")
    parser.add_argument("--network", action="store_true", help=f"ask of it instead, by {NETWORK_METHOD}")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--summary", action="store_true")
    options = parser.parse_args()
    if options.dataset:
        dataset, _ = load_dataset(options.dataset)
        if dataset.images is None:
            parser.error(f"{options.dataset} has no images; tune on features by hashbench tune")
        if options.weights is None or not Path(options.weights).is_file():
            parser.error(f"--weights is the file of the network's weights: got {options.weights}")
        run(trials(options.dataset, dataset, options.epochs, options.network), options.weights, options.jobs)
    if options.summary or not options.dataset:
        summary()
    return 0


if __name__ == "__main__":
    sys.exit(main())

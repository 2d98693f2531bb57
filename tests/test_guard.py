"""Numbers move only with a version: datasets, codes and scores are those of tests/golden/pins.json.

Each pin holds numbers and the declared versions under which they were made. Caches rely on these versions, so `make
golden` replaces a pin only if one of its versions was raised.

Whole numbers have exact fingerprints; processors round real ones differently. With instructions of old processors
imitated, as in tests/methods/test_same_codes.py, no bit of the codes moved, projections and losses by 2e-6 of their
size after four steps of training (float64), those of a network of images by 1e-3 (float32). So 1 % of the bits, 1e-4
and 1e-2 are allowed. Scores are short sums in float64: 1e-9.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from unittest import mock

import numpy as np
import pytest
from helpers.learned_methods import EARLIER
from helpers.paths import ROOT, built_in_datasets, built_in_methods
from helpers.striped_images import save_weights, stripes
from helpers.thoroughness import QUICK, TRAINED
from PIL import Image

from hashbench._validation import allowed_values
from hashbench.adapter import Options, OwnData
from hashbench.bits import pack
from hashbench.cards import method_card
from hashbench.dataset import Dataset
from hashbench.learning.classes import TargetHash
from hashbench.method import HashMethod
from hashbench.pipeline import preparation, steps
from hashbench.pipeline.grid import Job
from hashbench.registry import get_dataset, get_method
from hashbench.scoring.metrics import FAMILIES
from hashbench.scoring.problem import Problem
from hashbench.store import hdf5, provenance
from hashbench.store.files import data_dir

PINS = ROOT / "tests" / "golden" / "pins.json"
N_BITS, SEED = 12, 3


@dataclass(frozen=True)
class Case:
    """Numbers to pin, and the versions one of which must be raised when they move."""

    compute: Callable[[], dict]
    versions: dict[str, int]


def sketch(array):
    """Return the norm of an array and, as shares of it, four sums of its values with fixed random weights."""
    norm = np.linalg.norm(array.astype(np.float64))
    weights = np.random.default_rng(0).standard_normal((4, array.size))
    return [norm, *(weights @ array.ravel() / (norm or 1))]


# ---------------------------------------------------------------- datasets


ITEMS = np.random.default_rng(0).integers(0, 9, (60, 6)).astype(np.float32)
CLASSES = np.random.default_rng(1).permutation(np.arange(60) % 3)
SEVERAL = np.column_stack([CLASSES == 0, CLASSES > 0, ITEMS[:, 0] > 4]).astype(np.uint8)
OWN = {
    "classes": {"labels": np.array(["cat", "dog", "emu"])[CLASSES], "queries_per_label": 3, "train_per_label": 8},
    "several classes": {"labels": SEVERAL, "n_queries": 9, "n_train": 20},
    "levels by distance": {"n_train": 30},
    "neighbours": {"neighbours": 4, "neighbour_ties": "all"},
    "neighbours by cosine": {"neighbours": 4, "true_distance": "cosine", "items": ITEMS + 1},
    "queries from a file": {"labels": CLASSES, "query_items": ITEMS[:7] + 1, "query_labels": CLASSES[:7]},
}


def of_own_files(options):
    folder = data_dir() / "own"
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for key, value in ({"items": ITEMS} | options).items():
        if isinstance(value, np.ndarray):
            files[key] = str(folder / f"{key}.npy")
            np.save(files[key], value)
    seed = {} if "query_items" in options else {"seed": SEED}
    return of_own(OwnData("mine", **options | files | seed), Options())


def of_images(features):
    folder = data_dir() / "images"
    for number, (image, label) in enumerate(zip(*(part[:12] for part in stripes()), strict=True)):
        (folder / str(label)).mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / str(label) / f"{number:02d}.png")
    weights = save_weights("squeezenet", data_dir() / "squeezenet.pth") if features == "squeezenet" else None
    options = Options(features=features, image_size=None if features == "gist" else 40, weights=weights)
    return of_own(OwnData("mine", str(folder), n_train=8), options)


def of_own(own, options):
    return content(preparation.prepare_own(own, options)[1])


def of_known(spec):
    return content(preparation.prepare(spec)[1])


def content(path):
    """Return what a prepared file holds; by its fingerprint, unless rounding may show in its features."""
    dataset = hdf5.read_dataset(path)
    features = dataset.features
    if features is None or (features == features.astype(np.float16)).all():
        return {"fingerprint": dataset.fingerprint}
    others = replace(dataset, features=np.zeros_like(features))
    return {"fingerprint of the rest": others.fingerprint, "features": sketch(features)}


def cases_of_datasets():
    known = [name for name in built_in_datasets() if not get_dataset(name).needs]
    for name in [*known, "digits-unseen3-fold0"]:
        yield f"dataset {name}", partial(of_known, name)
    for name, options in OWN.items():
        yield f"dataset of {name}", partial(of_own_files, options)
    for features in ("images", "pixels", "gist", "squeezenet"):
        yield f"{features} of a folder", partial(of_images, features)


# ---------------------------------------------------------------- codes


@cache
def items(rule):
    """Make a dataset of five classes: 30 queries, 50 items of the database, and 160 others for training."""
    rng = np.random.default_rng(2)
    labels = np.arange(240) % 5
    features = 2 * rng.normal(size=(5, 20))[labels] + rng.normal(size=(240, 20))
    features[:, -1] = 1  # it never varies
    several = np.eye(5, dtype=np.uint8)[labels] | np.eye(5, dtype=np.uint8)[rng.integers(0, 5, 240)]
    about = {
        "same-label": {"labels": labels},
        "shared-labels": {"labels": several},
        "distance": {"rule_params": {"squared_thresholds": [60.0, 30.0], "levels": [1, 3]}},
    }
    split = {"query": np.arange(30), "database": np.arange(30, 80), "train": np.arange(80, 240)}
    return Dataset("items", features.astype(np.float32), **split, rule=rule, **about[rule])


LOOP = {"epochs": 2, "batch_size": 40, "halve_every": 1, "n_hidden": 32}
SHARED = "csq"  # tries the settings that all learned methods have
UNGRADED = QUICK.keys() - {*TRAINED}  # read levels as relevant or not, and take long
OF_IMAGES = ("augmentation", "backbone", "device", "mixed_precision")


@cache
def few_images():
    """Make a dataset of images of two classes: 4 queries, 8 of the database, all of these for training."""
    images, labels = stripes()
    index = np.arange(4), np.arange(4, 12), np.arange(4, 12)
    return Dataset("images", None, *index, "same-label", labels=labels[:12], images=images[:12])


def codes_of_images():
    path = str(save_weights("squeezenet", data_dir() / "squeezenet.pth"))
    settings = {"backbone": "squeezenet", "weights": path, "image_size": 40, "train_from": "fire9"}
    settings |= {"augmentation": "crop", "learning_rate": 0.01, "batch_size": 4, "head_epochs": 1}
    return codes_of(SHARED, settings, few_images())


def codes_from_scratch():
    settings = {"backbone": "dsh-net", "head": "linear", "batch_size": 4, "learning_rate": 1e-3}
    return codes_of("dsh", settings, few_images())


def codes_of(name, params, dataset):
    """Encode as a run does."""
    card = method_card(name)
    short = {"n_iter": 2} if "n_iter" in card.params else {}  # on such items, many alternations end where fewer would
    params = {**short, **QUICK.get(name, {}), **(LOOP if name in TRAINED else {}), **params}
    job = Job("items", card, N_BITS, SEED if "random_state" in card.params else 0, params)
    seen, project = [], HashMethod.project

    def recorded(method, X):
        seen.append((method, project(method, X)))
        return seen[-1][1]

    with mock.patch.object(HashMethod, "project", recorded), steps.codes_of(dataset, job):
        pass
    with hdf5.open_codes(steps.codes_path(dataset, job)) as codes:
        values = {"codes": codes.query.tobytes().hex(), "projections": sketch(np.concatenate([v for _, v in seen]))}
    history = getattr(seen[0][0], "history_", [])
    return values | ({"losses": [epoch.loss for epoch in history]} if history else {})


def cases_of_codes():
    """Yield the title, method, parameters and dataset of each case; choices that methods share are tried with one."""
    for name in built_in_methods():
        cls = get_method(name)
        yield "", name, EARLIER.get(name, {}), items("same-label")
        if cls.supervision != "none" and name not in UNGRADED:
            yield " for several classes", name, {}, items("shared-labels")
        if cls.supervision == "affinity" and name not in UNGRADED:
            yield " for levels", name, {}, items("distance")
        own = allowed_values(cls).items() - allowed_values(TargetHash).items()
        for key, value in [*choices(own), *(choices(allowed_values(TargetHash).items()) if name == SHARED else [])]:
            if value != method_card(name).params[key] and key not in OF_IMAGES:
                yield f" with {key}={value}", name, {key: value}, items("same-label")
    yield " with held-out items", SHARED, {"validation": 0.2}, items("same-label")


def choices(parameters):
    """List names and values of the parameters that are a switch or a choice of words."""
    words = [(key, {False, True} if allowed[0] is bool else allowed[0]) for key, allowed in parameters]
    return sorted((key, value) for key, values in words if isinstance(values, set | frozenset) for value in values)


# ---------------------------------------------------------------- scores


@cache
def scored():
    """Score codes of many ties and several levels, one query without relevant items, in all metrics as a run does."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2, (80, 5)).astype(np.uint8)
    bits = rng.random((80, 7)) < 0.5
    labels[3] = 0  # of a query
    labels[4], bits[4] = labels[5], bits[5]  # of one kind
    features = rng.integers(0, 4, (80, 3)).astype(np.float32)
    index = np.arange(20), np.arange(20, 80), np.arange(20, 80)
    dataset = Dataset("scored", features, *index, "shared-labels", labels=labels)
    made = Job("scored", method_card("constant"), 7).provenance(dataset)
    path = data_dir() / "codes" / "scored.h5"
    hdf5.write_codes(hdf5.Codes(pack(bits[:20]), pack(bits[20:]), made), path)
    with hdf5.open_codes(path) as codes:
        names = [name for of_kind in metrics().values() for name in of_kind]
        return dataset, bits, steps.problem_of(dataset, codes).evaluate(names)


def metrics():
    """List names of each family: its options, cutoffs at 10 items and beyond the database, and radius 2."""
    names = {}
    for pattern, family in FAMILIES.items():
        if family.function.__module__.startswith("hashbench."):
            stem, colon, rest = pattern.replace("rN", "r2").replace("=m", "=20").partition(":")
            stems = [stem.replace("@k", f"@{k}") for k in ((10, 100) if "@k" in stem and not colon else (10,))]
            options = [f":{option}" for option in family.options] or [""]
            names[pattern] = list(dict.fromkeys(f"{s}{option}{colon}{rest}" for s in stems for option in options))
    return names


def scores_of(names):
    _, _, evaluation = scored()

    def mean(part):
        """Return the mean of the queries that have a number; NaN if none has."""
        return float(part[~np.isnan(part)].mean()) if not np.isnan(part).all() else np.nan

    return {name: [*evaluation[name][:-1], *map(mean, evaluation.scores[name])] for name in names}


def matches():
    """Return what each radius matches, over all pairs, without intervals, and uAP."""
    dataset, bits, _ = scored()
    counted = Problem.of_packed(pack(bits[:20]), pack(bits[20:]), 7, dataset.affinity()).thresholds()
    return {"uAP": [*counted.uap[:-1]]} | {f"radius {radius}": list(counted.at(radius)[:8]) for radius in (0, 2, 7)}


# ---------------------------------------------------------------- pins


def cases():
    """Return all cases by name."""
    of_datasets = {"DATASET_VERSION": provenance.DATASET_VERSION}
    named = {name: Case(compute, of_datasets) for name, compute in cases_of_datasets()}
    of_codes = [(title, name, partial(codes_of, name, *how)) for title, name, *how in cases_of_codes()]
    of_images = [(" of images", SHARED, codes_of_images), (" of images", "dsh", codes_from_scratch)]
    for title, method, compute in [*of_codes, *of_images]:
        versions = {"CODES_VERSION": provenance.CODES_VERSION, f"version of {method}": method_card(method).version}
        named[f"codes of {method}{title}"] = Case(compute, versions)
    scores = {"SCORES_VERSION": provenance.SCORES_VERSION}
    for pattern, names in metrics().items():
        named[f"scores of {pattern}"] = Case(partial(scores_of, names), scores)
    return named | {"matches by radius": Case(matches, scores)}


CASES = cases()


def tolerance(name):
    """Return how far real numbers may move, for those above 1 as a share of them."""
    return 1e-9 if name.startswith(("scores", "matches")) else 1e-2 if name.endswith("of images") else 1e-4


def moved(pinned, now, name):
    """Return the names of the values of a case that moved."""
    return [key for key in {**pinned, **now} if not alike(pinned.get(key), now.get(key), tolerance(name), key)]


def alike(pinned, now, share, key):
    if isinstance(pinned, list) and len(pinned) == len(now or ()):
        return np.allclose(now, pinned, rtol=share, atol=share, equal_nan=True)
    if key == "codes" and len(pinned) == len(now or ""):
        bits = [np.unpackbits(np.frombuffer(bytes.fromhex(text), np.uint8)) for text in (pinned, now)]
        return np.mean(bits[0] != bits[1]) <= 0.01
    return pinned == now


def read_pins():
    return json.loads(PINS.read_text())


def values_of(case):
    with mock.patch.object(steps, "origin_here", return_value=None):  # it calls git
        return rounded(case.compute())


def rounded(value):
    """Return a value as pins hold it: real numbers to twelve digits."""
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return [float(f"{number:.12g}") for number in value] if isinstance(value, list) else value


def is_raised(pin, versions):
    """Return whether a version is higher than that of the pin."""
    return any(versions[key] > pin["versions"].get(key, 0) for key in versions)


def pin_again(data):
    """Pin all cases as they are now, and return those that moved without a higher version, whose pins stay."""
    pins, pinned, refused = read_pins(), {}, []
    for name, case in CASES.items():
        (data / name).mkdir(parents=True)
        with mock.patch.dict("os.environ", HASHBENCH_DATA=str(data / name)):
            values, pin = values_of(case), pins.get(name)
        is_moved = pin and moved(pin["values"], values, name)
        if is_moved and not is_raised(pin, case.versions):
            refused.append(name)
            pinned[name] = pin
        else:
            pinned[name] = {"versions": case.versions, "values": pin["values"] if pin and not is_moved else values}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(pin)}" for name, pin in pinned.items())
    PINS.write_text(f"{{\n{lines}\n}}\n")
    return refused


@pytest.mark.parametrize("name", CASES)
def test_numbers_have_not_moved_under_the_same_versions(name):
    case, pin = CASES[name], read_pins().get(name)
    assert pin, f"{name} has no pin: run make golden"
    changed = moved(pin["values"], values_of(case), name)
    assert not changed or is_raised(pin, case.versions), (
        f"numbers moved, {name} ({', '.join(changed)}): raise {' or the '.join(case.versions)}, and add a line to "
        "CHANGELOG.md; then run make golden"
    )
    assert (changed, pin["versions"]) == ([], case.versions), f"{name} has another version: run make golden"


def test_each_pin_is_of_a_case():
    assert [*read_pins()] == [*CASES], "run make golden"


@pytest.mark.parametrize(
    ("version", "number", "holds"), [(1, 0.5, True), (2, 0.5, True), (1, 0.7, False), (2, 0.7, True)]
)
def test_a_pin_is_replaced_only_under_a_higher_version(version, number, holds, tmp_path, monkeypatch):
    pinned = {"scores": {"versions": {"V": 1}, "values": {"AP": [0.5, 1.0]}}}
    now = {"scores": Case(lambda: {"AP": [number, 1.0]}, {"V": version})}
    (tmp_path / "pins.json").write_text(json.dumps(pinned))
    monkeypatch.setattr(sys.modules[__name__], "PINS", tmp_path / "pins.json")
    monkeypatch.setattr(sys.modules[__name__], "CASES", now)
    assert pin_again(tmp_path) == ([] if holds else ["scores"])
    expected = {"scores": {"versions": {"V": version}, "values": {"AP": [number, 1.0]}}}
    assert read_pins() == (expected if holds else pinned)

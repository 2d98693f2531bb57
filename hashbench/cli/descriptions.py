"""What `hashbench info` prints about datasets, codes, models, methods and metrics."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from hashbench import registry
from hashbench.cards import MethodCard, method_card
from hashbench.errors import HashbenchError, counted, suggestion
from hashbench.reports.formatting import Records
from hashbench.unseen import split_name

if TYPE_CHECKING:
    from hashbench.dataset import Dataset
    from hashbench.scoring.metrics import Family
    from hashbench.store.provenance import Provenance


def describe(name: str) -> Records:
    """Describe a dataset (by name or file), a file of codes or a model, a method or a metric."""
    if name in registry.method_names() and not Path(name).is_file():
        return _describe_method(name)
    from hashbench.pipeline.preparation import dataset_path
    from hashbench.store.files import HDF5_SUFFIXES

    if Path(name).is_file() or name.endswith(HDF5_SUFFIXES):
        return _describe_file(name)
    if registry.is_dataset(name.partition(":")[0]):
        return _describe_named(name)
    if dataset_path(name).is_file():
        return _describe_prepared(dataset_path(name))
    return _describe_metric(name)


def _describe_file(name: str) -> Records:
    import h5py

    from hashbench.store.artifact import kind_of
    from hashbench.store.hdf5 import SUFFIX
    from hashbench.store.inputs import check_file

    check_file(Path(name))
    if not h5py.is_hdf5(name):
        raise HashbenchError(
            f"{name} is not an HDF5 file, expected a file that hashbench wrote. Score codes in .npy files with "
            "hashbench evaluate."
        )
    kind = "model" if name.endswith(SUFFIX) else kind_of(Path(name))
    if kind == "model":
        return _describe_model(Path(name))
    if kind == "codes":
        return _describe_codes(Path(name))
    if kind == "scores":
        return Records([f"{name}: cached scores of every query"], {"kind": "scores"})
    return _describe_prepared(Path(name))


def _describe_prepared(path: Path) -> Records:
    from hashbench.store import hdf5

    dataset = hdf5.read_dataset(path)
    return Records([describe_dataset(dataset)], _content_of(dataset))


def _describe_metric(name: str) -> Records:
    from hashbench.scoring.metrics import FAMILIES, get_metric

    try:
        metric = get_metric(name)
    except HashbenchError:
        if name in FAMILIES:
            return _describe_family(name, FAMILIES[name])
        if name and Path(name).is_dir():
            raise HashbenchError(f"{name} is a folder; name a file in it.") from None
        raise HashbenchError(
            f"{name!r} is not a dataset, method, metric or file.{_suggestion(name)} "
            "See: hashbench list datasets|methods|metrics."
        ) from None
    return _describe_family(metric.name, metric.family)


def _suggestion(name: str) -> str:
    """Suggest a file or a known name near an unknown one."""
    from hashbench.scoring.metrics import FAMILIES
    from hashbench.store.files import data_dir
    from hashbench.store.inputs import near_file

    if suggested_file := near_file(Path(name)):
        return suggested_file
    own = [path.stem for path in (data_dir() / "datasets").glob("*.h5")]
    metrics = [pattern for family in FAMILIES.values() for pattern in (*family.aliases, family.pattern)]
    cutoff = name.partition("@")[2]
    if cutoff.removeprefix("r").isdecimal():
        metrics = [pattern.replace("@rN" if cutoff[0] == "r" else "@k", f"@{cutoff}") for pattern in metrics]
    return suggestion(name, [*own, *metrics, *registry.dataset_names(), *registry.method_names()])


def _describe_family(name: str, family: "Family") -> Records:
    options = ", ".join(f":{option}" for option in family.options)
    choices = f" Options: {options}; the first is the default." if options else ""
    text = f"{name}\n{family.summary}{choices}\nsource: {family.source}"
    return Records([text], {"kind": "metric", "name": name, **family.facts})


def _describe_named(name: str) -> Records:
    from hashbench.pipeline.preparation import OF_USERS, dataset_path

    name, kind, spec = registry.resolve_dataset(name)
    if dataset_path(spec).is_file():
        return _describe_prepared(dataset_path(spec))
    base, protocol = split_name(name)
    cls = registry.dataset_class(base)
    lines = [f"{name}: {cls.summary}{f'; {protocol.in_words}' if protocol else ''}"]
    if len(cls.features) > 1:
        lines.append(f"features: {', '.join(cls.features)}")
    content: dict[str, Any] = {"kind": "dataset", "name": name, "summary": cls.summary, "offers": cls.features}
    if name not in OF_USERS:
        content["prepare"] = f"hashbench prepare {name}{'' if spec == name else f' --features {kind}'}"
        lines.append(f"not prepared yet: {content['prepare']}")
    return Records(["\n".join(lines)], content)


def describe_dataset(dataset: "Dataset") -> str:
    """Describe a dataset."""
    from hashbench.dataset import N_NEIGHBOURS
    from hashbench.pipeline import recipes
    from hashbench.sources.features.extraction import RECIPE
    from hashbench.sources.inspection import LEFT_OUT, WARNING, inspect, warning_of

    order = ("summary", "protocol", "source", "features", "licence", "citation", *sorted(dataset.about))
    hidden = (WARNING, RECIPE, LEFT_OUT, recipes.RECIPE)
    facts = {
        "dataset": dataset.name,
        **{key: dataset.about[key] for key in order if key in dataset.about and key not in hidden},
        "items": _describe_items(dataset),
        "split": f"{len(dataset.query):,} queries, {len(dataset.database):,} database, {len(dataset.train):,} training",
        "affinity": dataset.rule,
        "fingerprint": dataset.fingerprint,
    }
    for recipe in recipes.recipe_of(dataset).values():
        facts["prepared by"] = recipes.command_of(split_name(dataset.name)[0], recipe)
    if not np.isin(dataset.train[:1], dataset.database).any():
        facts["split"] += ", outside the database"
    if dataset.rule == "distance":
        thresholds = np.sqrt(dataset.rule_params["squared_thresholds"])
        steps = zip(dataset.rule_params["levels"], thresholds, strict=True)
        facts["affinity"] += ": " + ", ".join(f"level {level} up to {step:.4f}" for level, step in steps)
    if dataset.n_neighbours:
        listed = f"{dataset.n_neighbours:,} listed for each query"
        if N_NEIGHBOURS in dataset.rule_params:
            listed = f"{dataset.n_neighbours:,} nearest of each query, and those as near as the last of them,"
        facts["affinity"] += f": the {listed} are relevant, no other item"
    inspection = inspect(dataset)
    if inspection.class_sizes is not None:
        sizes = inspection.class_sizes
        facts["classes"] = f"{len(sizes)}, {sizes.min():,} to {sizes.max():,} items each"
        if len(sizes) == 1:
            facts["classes"] += "; every item is relevant to every query"
        if not dataset.is_single_label:
            facts["classes"] += f", {sizes.sum() / dataset.n_samples:.2f} labels per item"
            facts["classes"] += f", {inspection.n_without_label:,} items without"
    facts["duplicates"] = "; ".join(
        f"queries equal to a {role} item: {n_equal:,}" + ("" if n_near is None else f", nearly equal: {n_near:,}")
        for role, n_equal, n_near in (
            ("database", inspection.n_queries_in_database, inspection.n_near_database),
            ("training", inspection.n_queries_in_train, inspection.n_near_train),
        )
    )
    if warning := warning_of(inspection, len(dataset.query)):
        facts[WARNING] = warning
    if inspection.n_constant or inspection.n_zero:
        facts["features to note"] = f"{inspection.n_constant:,} constant; all-zero items: {inspection.n_zero:,}"
    return _facts(facts)


def _content_of(dataset: "Dataset") -> dict[str, Any]:
    from hashbench.sources.inspection import LEFT_OUT, inspect

    inspection = inspect(dataset)
    return {
        "kind": "dataset",
        "name": dataset.name,
        "about": {key: text for key, text in dataset.about.items() if key != LEFT_OUT},
        "left_out": json.loads(dataset.about.get(LEFT_OUT, "null")),
        "n_items": dataset.n_samples,
        "features": dataset.features_name,
        "n_features": None if dataset.features is None else dataset.features.shape[1],
        "image_shape": None if dataset.images is None else dataset.images.shape[1:],
        "n_queries": len(dataset.query),
        "n_database": len(dataset.database),
        "n_train": len(dataset.train),
        "rule": dataset.rule,
        "rule_params": dataset.rule_params,
        "fingerprint": dataset.fingerprint,
        "class_sizes": inspection.class_sizes,
        "n_without_label": inspection.n_without_label,
        "n_queries_equal": {"database": inspection.n_queries_in_database, "training": inspection.n_queries_in_train},
        "n_queries_nearly_equal": {"database": inspection.n_near_database, "training": inspection.n_near_train},
        "equal_or_nearly_equal_queries": inspection.copied,
        "n_constant_features": inspection.n_constant,
        "n_zero_items": inspection.n_zero,
    }


def _describe_items(dataset: "Dataset") -> str:
    parts = []
    if dataset.features is not None:
        parts.append(f"{dataset.features.shape[1]} {dataset.features_name} ({dataset.features.dtype})")
    if dataset.images is not None:
        parts.append("images of " + " x ".join(map(str, dataset.images.shape[1:])) + f" ({dataset.images.dtype})")
    return f"{dataset.n_samples:,} x {' and '.join(parts)}"


def _describe_codes(path: Path) -> Records:
    from hashbench.scoring.code_statistics import code_usage
    from hashbench.store import hdf5

    with hdf5.open_codes(path) as codes:
        usage = code_usage(np.asarray(codes.database[:]), codes.n_bits)
        sizes = counted(len(codes.query), "query", "queries"), counted(len(codes.database), "database item")
        content = {
            "kind": "codes",
            "n_queries": len(codes.query),
            "n_database": len(codes.database),
            **_content_of_origin(codes.made),
            "content": codes.content,
            "n_distinct": usage.n_distinct,
            "share_of_space": usage.share_of_space,
            "largest_bucket": usage.largest_bucket,
            "bit_balance": usage.bit_balance,
            "bit_correlation": usage.bit_correlation,
            "fit_seconds": codes.fit_seconds,
            "encode_seconds": codes.encode_seconds,
            "held_out": codes.held_out,
            "held_out_metric": codes.held_out_metric,
        }
        text = _facts(
            {
                "codes": ", ".join([counted(codes.n_bits, "bit"), *sizes]),
                **_origin(codes.made),
                "content": codes.content,
                "usage": f"{usage.n_distinct:,} distinct database codes ({usage.share_of_space:.2%} of the space), the "
                f"most frequent one {usage.largest_bucket:,} times; bit balance {usage.bit_balance:.3f}, "
                f"bit correlation {usage.bit_correlation:.3f}",
                "time": f"{codes.fit_seconds:.3f} s to fit, {codes.encode_seconds:.3f} s to encode",
                **({} if codes.held_out is None else {"held out": f"{codes.held_out_metric} {codes.held_out:.6f}"}),
            }
        )
        return Records([text], content)


def _describe_model(path: Path) -> Records:
    from hashbench.store.hdf5 import read_origin

    provenance, writer = read_origin(path)
    text = _facts({"model": f"{counted(provenance.n_bits, 'bit')}, kept by hashbench {writer}", **_origin(provenance)})
    return Records([text], {"kind": "model", "written_by": writer, **_content_of_origin(provenance)})


def _origin(provenance: "Provenance") -> dict[str, str]:
    return {
        "method": f"{provenance.method}, version {provenance.method_version}",
        "parameters": provenance.params,
        "seed": str(provenance.seed),
        "dataset": f"{provenance.dataset} ({provenance.features}), content {provenance.dataset_fingerprint}",
        "libraries": ", ".join(f"{name} {version}" for name, version in json.loads(provenance.libraries).items()),
    }


def _content_of_origin(provenance: "Provenance") -> dict[str, Any]:
    attributes = provenance.attributes()
    return {**attributes, **{key: json.loads(attributes[key]) for key in ("params", "libraries")}}


def _describe_method(name: str) -> Records:
    card = method_card(name)
    facts = {
        "method": name,
        "about": card.summary,
        "group": card.group,
        "supervision": card.supervision,
        "version": str(card.version),
    }
    table = click.HelpFormatter(width=120)
    if card.notes:
        with table.section("notes"):
            table.write_text("\n\n".join(card.notes))
    with table.section("parameters"):
        table.write_dl([(f"{key}={value}", _meaning(card, key)) for key, value in card.params.items()], 28)
    n_bits = card.params["n_bits"]
    for preset in card.presets:
        settings = sorted(card.preset(preset, n_bits).items())
        with table.section(f"--preset {preset}, at {n_bits} bits"):
            table.write_text(", ".join(f"{key}={value}" for key, value in settings) or "the defaults")
    content = {
        "kind": "method",
        "name": name,
        "summary": card.summary,
        "group": card.group,
        "supervision": card.supervision,
        "version": card.version,
        "notes": card.notes,
        "parameters": {
            key: {"default": value, "about": card.meanings.get(key), "tried_by_tune": card.tunable.get(key)}
            for key, value in card.params.items()
        },
        "presets": {preset: {"n_bits": n_bits, **card.preset(preset, n_bits)} for preset in card.presets},
    }
    return Records([f"{_facts(facts)}\n{table.getvalue().rstrip()}"], content)


def _meaning(card: MethodCard, name: str) -> str:
    tried = f" Tried by tune: {', '.join(map(str, card.tunable[name]))}." if name in card.tunable else ""
    return card.meanings.get(name, "") + tried


def _facts(facts: Mapping[str, Any]) -> str:
    width = max(map(len, facts)) + 2
    texts = {key: value if isinstance(value, str) else json.dumps(value, default=str) for key, value in facts.items()}
    return "\n".join(f"{key}:".ljust(width) + " ".join(text.splitlines()) for key, text in texts.items())

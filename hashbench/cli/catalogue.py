"""The commands that list and describe what exists, and check it against its contract: list, info, check."""

import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
from click import Choice
from cloup import option

from hashbench.cli.options import FEATURES, SOURCE, WEIGHTS, Word, completing
from hashbench.errors import HashbenchError


@click.command("list")
@click.argument("kind", type=Word(["methods", "datasets", "metrics", "scripts", "missing"]), required=False)
@option("--speed", type=Choice(["quick", "slow"]), help="Speed of the built-in methods to list.")
def list_command(kind: str | None, speed: str | None) -> None:
    """List methods, datasets, metrics or scoring scripts, one per line; or how to add missing datasets.

    Scripts, which explain emulates, are listed with their metrics, their users and their source. Without an argument
    it prints what can be listed, and how many of each.
    """
    if speed is not None and kind != "methods":
        raise click.UsageError("--speed is for methods.")
    if kind is None:
        rows = [(f"hashbench list {name}", f"{len(rows_of()):3}  {what}") for name, (what, rows_of) in _LISTS.items()]
        rows.append(("hashbench info NAME", "     details of one of these, or of a file"))
    else:
        rows = _LISTS[kind][1]() if speed is None else _methods(speed)
    width = max((len(name) for name, _ in rows), default=0)
    for name, text in rows:
        click.echo(f"{name.ljust(width)}  {text}")


def _methods(speed: str | None = None) -> list[tuple[str, str]]:
    from hashbench import registry
    from hashbench.cards import method_card

    names = registry.method_names()
    if speed is not None:
        names = [name for name in registry.built_in_methods() if method_card(name).is_slow == (speed == "slow")]
    return [(name, registry.method_summary(name)) for name in names]


def _datasets() -> list[tuple[str, str]]:
    from hashbench import registry

    return [(name, registry.dataset_summary(name)) for name in registry.dataset_names()]


def _metrics() -> list[tuple[str, str]]:
    from hashbench.scoring.metrics import FAMILIES, metric_names

    rows = []
    for name in metric_names():
        family = FAMILIES[name]
        options = f" Options: {', '.join(':' + option for option in family.options)}." if family.options else ""
        also = f" Also {', '.join(family.aliases)}." if family.aliases else ""
        rows.append((name, f"{family.summary}{options}{also} [{family.source}]"))
    return rows


def _scripts() -> list[tuple[str, str]]:
    from hashbench.reports.explain.evaluators import EVALUATORS, twins_of

    rows = []
    for script in EVALUATORS:
        parts = (textwrap.wrap(text, 76, break_on_hyphens=False) for text in (script.used_by, script.source))
        more = [f"\n    {line}" for part in parts for line in part]
        twin = "; on this machine: -here" if twins_of([script]) else ""
        rows.append((script.name, ", ".join(script.gives) + twin + "".join(more)))
    return rows


def _missing() -> list[tuple[str, str]]:
    from hashbench.pipeline.preparation import find_prepared

    return list(find_prepared()[1].items())


_LISTS: dict[str, tuple[str, Callable[[], list[tuple[str, str]]]]] = {
    "methods": ("methods, which compute codes from features or images", _methods),
    "datasets": ("datasets, each with its split and what is relevant", _datasets),
    "metrics": ("metrics, exact over all orders of tied items", _metrics),
    "scripts": ("other projects' scoring scripts, which `hashbench explain` emulates", _scripts),
    "missing": ("datasets that are not prepared, each with the command to prepare it", _missing),
}


@click.command()
@click.argument("name", shell_complete=completing("datasets", "methods", "metrics"))
def info(name: str) -> None:
    """Describe a dataset (by name or file), a file of codes or a model, a method or a metric."""
    from hashbench.cli.descriptions import describe

    click.echo(describe(name))


@click.command()
@click.argument("kind", type=Word(["method", "dataset", "metric"]))
@click.argument("name", shell_complete=completing("methods", "datasets", "metrics"))
@FEATURES
@SOURCE
@WEIGHTS
def check(kind: str, name: str, features: str | None, source: Path | None, weights: Path | None) -> None:
    """Run the conformance suite on a method, dataset or metric, built-in or your own plugin."""
    from hashbench import registry, testing
    from hashbench.adapter import Options
    from hashbench.scoring.metrics import get_metric

    if kind != "dataset" and (features or source or weights):
        raise click.UsageError("--features, --source and --weights are for datasets.")
    options = Options(features=features, source=source, weights=weights)
    subject: Any
    checks: Sequence[Callable[[Any], None]]
    if kind == "method":
        subject, checks = registry.get_method(name), testing.METHOD_CHECKS
    elif kind == "dataset":
        subject, checks = registry.get_dataset(name, options), testing.DATASET_CHECKS
    else:
        subject, checks = get_metric(name), testing.METRIC_CHECKS
    n_failed, cannot_be_prepared = 0, False
    for contract_check in checks:
        title = contract_check.__name__.removeprefix("check_").replace("_", " ")
        if cannot_be_prepared:
            click.echo(f"skip  {title}")
            continue
        try:
            contract_check(subject)
        except (Exception, SystemExit) as error:  # any failure of a plugin is a finding
            n_failed += 1
            cannot_be_prepared = kind == "dataset" and isinstance(error, HashbenchError)  # offline, for example
            click.echo(f"FAIL  {title}: {type(error).__name__}: {error}")
        else:
            click.echo(f"ok    {title}")
    if n_failed:
        skipped = "; the others were skipped, because it cannot be prepared" * cannot_be_prepared
        raise HashbenchError(f"{kind} {name!r} fails {n_failed} of {len(checks)} checks{skipped}.")

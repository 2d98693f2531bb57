"""The commands that list and describe what exists, and check it against its contract: list, info, check."""

import textwrap
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import click
from click import Choice
from cloup import option

from hashbench._plugins import same_folder
from hashbench.cli.options import FEATURES, SOURCE, WEIGHTS, Word, completing, output_format
from hashbench.cli.outputs import echo
from hashbench.errors import HashbenchError


@click.command("list")
@click.argument("kind", type=Word(["methods", "datasets", "metrics", "scripts", "missing"]), required=False)
@option("--speed", type=Choice(["quick", "slow"]), help="Speed of the built-in methods to list.")
@output_format("text", "json")
def list_command(kind: str | None, speed: str | None, form: str) -> None:
    """List methods, datasets, metrics or scoring scripts, one per line; or how to add missing datasets.

    Scripts are those that `hashbench explain` emulates, with their metrics, users and source. Without an argument, the
    command prints what it can list, and how many of each.
    """
    from hashbench.reports.formatting import Records

    if speed is not None and kind != "methods":
        raise click.UsageError("--speed is for methods.")
    content: dict[str, Any]
    if kind is None:
        counts = {name: (len(items_of()), what) for name, (what, items_of, _) in _LISTS.items()}
        content = {name: {"count": count, "about": what} for name, (count, what) in counts.items()}
        rows = [(f"hashbench list {name}", f"{count:3}  {what}") for name, (count, what) in counts.items()]
        rows.append(("hashbench info NAME", "     details of one of these, or of a file"))
    else:
        _, items_of, text_of = _LISTS[kind]
        items = items_of() if speed is None else _methods(speed)
        content, rows = {kind: items}, [(item["name"], text_of(item)) for item in items]
    width = max((len(name) for name, _ in rows), default=0)
    text = "\n".join(f"{name.ljust(width)}  {text}" for name, text in rows)
    if printed := Records([text], content).to_text(form):
        echo(printed)


_Item = dict[str, Any]


def _methods(speed: str | None = None) -> list[_Item]:
    from hashbench import registry
    from hashbench.cards import method_card, method_summary

    names = registry.method_names()
    if speed is not None:
        names = [name for name in registry.built_in_methods() if method_card(name).is_slow == (speed == "slow")]
    return [{"name": name, "summary": method_summary(name)} for name in names]


def _datasets() -> list[_Item]:
    from hashbench import registry

    return [{"name": name, "summary": registry.dataset_summary(name)} for name in registry.dataset_names()]


def _metrics() -> list[_Item]:
    from hashbench.scoring.metrics import FAMILIES, metric_names

    return [{"name": name, **FAMILIES[name].facts} for name in metric_names()]


def _text_of_metric(item: _Item) -> str:
    options = f" Options: {', '.join(':' + option for option in item['options'])}." if item["options"] else ""
    also = f" Also {', '.join(item['also'])}." if item["also"] else ""
    return f"{item['summary']}{options}{also} [{item['source']}]"


def _scripts() -> list[_Item]:
    from hashbench.reports.explain.scripts import EVALUATORS, twins_of

    return [
        {
            "name": script.name,
            "metrics": script.gives,
            "used_by": script.used_by,
            "source": script.source,
            "on_this_machine": [twin.name for twin in twins_of([script])],
        }
        for script in EVALUATORS
    ]


def _text_of_script(item: _Item) -> str:
    parts = (textwrap.wrap(item[key], 76, break_on_hyphens=False) for key in ("used_by", "source"))
    twin = "; on this machine: -here" if item["on_this_machine"] else ""
    return ", ".join(item["metrics"]) + twin + "".join(f"\n    {line}" for part in parts for line in part)


def _missing() -> list[_Item]:
    from hashbench.pipeline.preparation import find_unprepared

    return [{"name": name, "command": command} for name, command in find_unprepared().items()]


_LISTS: dict[str, tuple[str, Callable[[], list[_Item]], Callable[[_Item], str]]] = {
    "methods": ("methods, which compute codes from features or images", _methods, itemgetter("summary")),
    "datasets": ("datasets, each with its split and what is relevant", _datasets, itemgetter("summary")),
    "metrics": ("metrics, exact over all orders of tied items", _metrics, _text_of_metric),
    "scripts": ("other projects' scoring scripts, which `hashbench explain` emulates", _scripts, _text_of_script),
    "missing": ("datasets that are not prepared, each with the command to prepare it", _missing, itemgetter("command")),
}


@click.command()
@click.argument("name", shell_complete=completing("datasets", "methods", "metrics"))
@output_format("text", "json")
def info(name: str, form: str) -> None:
    """Describe a dataset (by name or file), a file of codes or a model, a method or a metric."""
    from hashbench.cli.descriptions import describe

    echo(describe(name).to_text(form))


@click.command()
@click.argument("kind", type=Word(["method", "dataset", "metric"]))
@click.argument("name", shell_complete=completing("methods", "datasets", "metrics"))
@FEATURES
@SOURCE
@WEIGHTS
def check(kind: str, name: str, features: str | None, source: Path | None, weights: Path | None) -> None:
    """Run the tests that all plug-ins must pass on a method, dataset or metric, such as your own.

    NAME is that of an installed plug-in or, in a clone of hashbench, of a file in methods/ or a class in datasets/
    (docs/tutorials/plugins.md). The tests run its code.
    """
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
        if name.endswith(".py"):
            raise registry.unknown_plugin(kind, name, ())
        subject, checks = get_metric(name), testing.METRIC_CHECKS
    n_failed, reason = 0, ""  # to skip the other checks
    for contract_check in checks:
        title = contract_check.__name__.removeprefix("check_").replace("_", " ")
        if reason:
            echo(f"skip  {title}")
            continue
        try:
            with same_folder():
                contract_check(subject)
        except (Exception, SystemExit) as error:  # any failure of a plugin is a finding
            n_failed += 1
            if kind == "dataset" and isinstance(error, HashbenchError):  # offline, for example
                reason = "it cannot be prepared"
            elif isinstance(error, testing.WrongSupervision):
                reason = "it cannot be fitted"
            echo(f"FAIL  {title}: {type(error).__name__}: {error}")
        else:
            echo(f"ok    {title}")
    if n_failed:
        skipped = f"; the others were skipped, because {reason}" if reason else ""
        raise HashbenchError(f"{kind} {name!r} fails {n_failed} of {len(checks)} checks{skipped}.")

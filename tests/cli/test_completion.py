"""What a shell completes, as click's own scripts ask for it."""

import pytest
from click.shell_completion import ShellComplete
from helpers.paths import built_in_datasets

from hashbench import registry
from hashbench.cli.main import cli
from hashbench.cli.options import names_of
from hashbench.reports.explain.scripts import EVALUATORS, twins_of
from hashbench.reports.plots import FIGURES
from hashbench.reports.tables import LAYOUTS
from hashbench.scoring.metrics import get_metric, metric_names


def completed(line):
    """List what is offered for the last word of a command line; of files only that it is one."""
    *arguments, incomplete = line.split(" ")
    items = ShellComplete(cli, {}, "hashbench", "_HASHBENCH_COMPLETE").get_completions(arguments, incomplete)
    return [item.value if item.type == "plain" else f"({item.type})" for item in items]


def test_names_are_those_there_are():
    assert names_of("methods") == registry.method_names()
    assert set(names_of("datasets")) == set(built_in_datasets())
    kinds = {kind for name in built_in_datasets() for kind in registry.dataset_class(name).features}
    assert set(names_of("features")) == kinds
    scripts = (script for original in EVALUATORS for script in (original, *twins_of([original])))
    assert names_of("scripts") == [script.name for script in scripts]
    assert names_of("figures") == list(FIGURES)
    assert names_of("tables") == list(LAYOUTS)


def test_metrics_are_offered_as_they_can_be_typed():
    offered = [get_metric(name) for name in names_of("metrics")]
    patterns = {metric.name.replace("@100", "@k").replace("@r2", "@rN") for metric in offered}
    assert patterns == {name for name in metric_names() if ":" not in name}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("run --method it", ["itq"]),
        ("encode --method lsh --method ls", ["(file)"]),  # lsh is named already
        ("run --dataset digits", ["digits", "digits-pairs", "digits-unlabelled"]),
        ("run --dataset my", ["(file)"]),
        ("evaluate --metric NDCG", ["NDCG", "NDCG@100"]),
        ("prepare cifar10-s", ["cifar10-s1", "cifar10-s2", "cifar10-s3"]),
        ("prepare cifar10-s1 --features gi", ["gist"]),
        ("check method it", ["itq"]),
        ("plot ap", ["ap-bits"]),
        ("tables table", ["table1", "table2", "table3"]),
        ("explain --script sklearn-", ["sklearn-ap", "sklearn-lrap", "sklearn-ndcg", "sklearn-ndcg-linear"]),
        ("list me", ["methods", "metrics"]),
        ("run --dry", ["--dry-run"]),
    ],
)
def test_names_are_completed(line, expected):
    assert completed(line) == expected


def test_datasets_of_plugins_and_of_the_user_are_offered_too(plugin, data):
    plugin("other", "", kind="datasets")
    (data / "datasets").mkdir()
    for stem in ("mine", "digits", "cifar10-s1-gist"):
        (data / "datasets" / f"{stem}.h5").touch()
    assert set(names_of("datasets")) - {*built_in_datasets()} == {"other", "mine"}

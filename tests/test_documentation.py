import ast
import doctest
import importlib
import pkgutil
import re
import subprocess

import click
import numpy as np
import pytest
from helpers.documents import blocks, commands
from helpers.paths import ROOT, built_in_datasets, built_in_methods

import hashbench as package
from hashbench import registry
from hashbench.cli.main import COMMANDS, cli
from hashbench.reports.plots import FIGURES
from hashbench.scoring.metrics import FAMILIES, metric_names

DOCUMENTS = sorted(path.name for path in ROOT.glob("*.md"))
PAGES = sorted(f"docs/{path.relative_to(ROOT / 'docs').as_posix()}" for path in (ROOT / "docs").rglob("*.md"))
MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(package.__path__, "hashbench.")
    if module.name != "hashbench.cli.main"
)


OPTIONS = [f":{option}" for family in FAMILIES.values() for option in family.options]
PACKAGES = ["hashbench/**", "methods", "datasets", "tests/helpers"]
ROOMS = sorted(
    path.parent.relative_to(ROOT).as_posix() for room in PACKAGES for path in ROOT.glob(f"{room}/__init__.py")
)


@pytest.mark.parametrize(
    ("page", "mentions"),
    [
        ("docs/reference/methods.md", [f"| `{name}` |" for name in built_in_methods()]),
        ("docs/datasets.md", [f"`{name}`" for name in built_in_datasets()]),
        ("docs/figures.md", [f"| `{name}` |" for name in FIGURES]),
        ("docs/metrics.md", [*(f"`{name}`" for name in metric_names()), *OPTIONS]),
    ],
)
def test_a_page_mentions_all_that_it_is_on(page, mentions):
    text = (ROOT / page).read_text()
    assert [mention for mention in mentions if mention not in text] == []


@pytest.mark.parametrize("page", [page for page in PAGES if "/tutorials/" in page and not page.endswith("index.md")])
def test_a_tutorial_begins_with_how_long_it_takes(page):
    assert re.search(r"\bminutes?\b", (ROOT / page).read_text().split("\n\n")[1])


def test_readme_shows_what_its_commands_print(hashbench, digits_data, tmp_path, capsys):
    assert ".venv/bin/hashbench run --method itq --bits 32\n" in blocks("README.md", "sh")
    result = hashbench("run", "--method", "itq", "--bits", 32, "--results", tmp_path / "results")
    of_run, of_example = blocks("README.md", "text")
    (example,) = blocks("README.md", "python")
    exec(example, {})
    assert result.stdout.strip("\n") == of_run.strip("\n")
    assert capsys.readouterr().out == of_example


@pytest.mark.usefixtures("empty_folder")
def test_the_page_on_comparing_shows_what_command_and_function_answer(hashbench):
    page, scope = "docs/explanation/comparing.md", {}
    making, comparing, choosing = blocks(page, "python")
    exec(making, scope)
    for arguments in commands(page):
        result = hashbench(*arguments)
        assert result.exit_code == 0, result.stderr
    (shown,) = blocks(page, "text")
    assert result.stdout.strip("\n") == shown.strip("\n")
    exec(comparing, scope)
    assert f"16 bits: {scope['found']}" in " ".join(shown.split())
    exec(choosing, scope)
    assert scope["best"].names == ("ours", "theirs")  # as the difference is not shown


@pytest.mark.parametrize("name", [*DOCUMENTS, *PAGES])
def test_commands_in_the_documents_have_options_that_exist(name):
    text = re.sub(r"hashbench on \S+( --trust-workers)?(?= \w)", "hashbench", (ROOT / name).read_text())
    lines = re.findall(r"(?:^|[\s`/])hashbench (\w+)((?: [^`\n]*)?)", text, flags=re.MULTILINE)
    lines = [(command, rest) for command, rest in lines if command in COMMANDS]
    assert lines or name not in ("README.md", "CONTRIBUTING.md")
    for name_of_command, rest in lines:
        command = cli.get_command(None, name_of_command)
        if isinstance(command, click.Group) and name_of_command != "on" and rest.strip():
            command = command.commands[rest.split()[0]]
        known = {"--help"}.union(*(parameter.opts + parameter.secondary_opts for parameter in command.params))
        assert set(re.findall(r"(--[a-z-]+)", rest.partition("#")[0].partition(" | ")[0])) <= known


@pytest.mark.parametrize("name", [*DOCUMENTS, *PAGES])
def test_links_to_files_lead_somewhere(name):
    targets = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", (ROOT / name).read_text())
    assert not [target for target in targets if not ((ROOT / name).parent / target).exists()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_targets_of_make_exist(name):
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / name).read_text(), flags=re.MULTILINE))
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert targets <= known


def test_make_alone_lists_its_targets():
    listed = subprocess.run(["make", "-s"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("dev", "format", "lint", "types", "test", "golden", "reproduce-tables", "bench", "check"):
        assert re.search(rf"^{target} +[A-Z]", listed, flags=re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_and_each_of_its_options_has_help(name, hashbench):
    command = cli.get_command(None, name)
    assert command.help
    assert re.match(r"[A-Z].*[.]", command.help.splitlines()[0])
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            choices = getattr(parameter.type, "choices", ())
            assert parameter.help or choices, parameter.name
    known = {spelling for parameter in command.params for spelling in parameter.opts + parameter.secondary_opts}
    helps = " ".join(getattr(parameter, "help", "") or "" for parameter in command.params)
    assert set(re.findall(r"--[a-z][a-z-]*", re.sub("`.*?`", "", helps))) <= known  # others stand in commands
    result = hashbench(name, "--help")
    assert result.exit_code == 0
    assert name in hashbench("--help").stdout


@pytest.mark.parametrize("name", MODULES)
def test_module_says_what_it_owns_and_its_examples_run(name):
    module = importlib.import_module(name)
    assert module.__name__ == name
    assert (module.__doc__ or "").partition("\n")[0].endswith((".", ":"))
    if "numba" in name or "_kernels" in name:
        return
    with np.printoptions():
        assert doctest.testmod(module, extraglobs={"np": np}).failed == 0


@pytest.mark.parametrize("room", ROOMS)
def test_the_map_of_a_room_names_its_files_and_no_others(room):
    docstring = ast.get_docstring(ast.parse((ROOT / room / "__init__.py").read_text()))
    entries = re.findall(r"^ *([\w./]+)  +\S", docstring, flags=re.MULTILINE)
    named = {entry for entry in entries if "." not in entry and not entry.endswith("/")}
    files = {path.stem for path in (ROOT / room).glob("*.py")} - {"__init__"}
    if room == "methods":
        files = {stem for stem in files if stem.startswith("_")}  # the others, one per method, are named as a group
    assert named == files
    assert not [entry for entry in entries if entry not in named and not (ROOT / room / entry).exists()]


def test_examples_are_found():
    for name in ("bits", "scoring.problem", "methods.itq", "scoring.metrics.ndcg"):
        assert any(test.examples for test in doctest.DocTestFinder().find(importlib.import_module(f"hashbench.{name}")))


@pytest.mark.parametrize("name", built_in_methods())
def test_every_method_shows_an_example_and_cites_its_source_or_is_a_baseline(name):
    cls = registry.get_method(name)
    assert ">>> " in cls.__doc__, f"the docstring of {cls.__name__} lacks Examples"
    if cls.group != "baseline":
        assert ".. [1] " in cls.__doc__, f"the docstring of {cls.__name__} lacks References"

"""Version, addresses and packages of a release agree in all places that state them."""

import ast
import io
import re
import sys
import tomllib
from importlib.metadata import distribution

import pytest
import yaml
from helpers.paths import ROOT

from hashbench import __version__
from hashbench.cli.main import _write_as_elsewhere

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
WORKFLOWS = {path.name: path.read_text(encoding="utf-8") for path in ROOT.glob(".github/workflows/*.yml")}


def test_the_installed_version_is_that_of_the_source():
    assert distribution("hashbench").version == __version__


def test_the_citation_and_the_changelog_know_the_version():
    assert str(CITATION["version"]) == __version__
    assert re.search(rf"^## {re.escape(__version__)}( |$)", CHANGELOG, re.MULTILINE)


def test_each_release_in_the_changelog_closes_with_the_numbers_that_changed():
    for release in re.split(r"^## ", CHANGELOG, flags=re.MULTILINE)[1:]:
        assert re.findall(r"^### (.*)$", release, re.MULTILINE)[-1] == "Numbers that changed"


def test_the_citation_has_the_addresses_of_the_project():
    urls = PROJECT["project"]["urls"]
    assert (CITATION["repository-code"], CITATION["url"]) == (urls["Repository"], urls["Documentation"])
    assert CITATION["license"] == PROJECT["project"]["license"]


def test_what_pypi_shows_has_no_link_into_the_repository():
    shown = (ROOT / PROJECT["project"]["readme"]).read_text(encoding="utf-8")
    assert shown.count("](https://") == shown.count("](") > 3


def test_every_target_that_is_listed_is_made_whatever_files_there_are():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split()
    assert set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE)) <= set(phony)


def packages_of(requirements):
    """Return the names of packages, and of those in the extras of hashbench that are among them."""
    names = set()
    for requirement in requirements:
        extras = re.fullmatch(r"hashbench\[(.*)\]", requirement)
        if extras is None:
            names.add(re.split("[<>=]", requirement)[0])
            continue
        for extra in extras[1].split(","):
            names |= packages_of(PROJECT["project"]["optional-dependencies"][extra])
    return names


def test_make_bench_installs_what_its_scripts_import():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    stamps, scripts = re.search(r"^bench: (.*) ##.*\n((?:\t.*\n)+)", makefile, re.MULTILINE).groups()
    extras = [f"hashbench[{stamp}]" for stamp in re.findall(r"\.(\w+)", stamps)]
    packages = packages_of([*PROJECT["project"]["dependencies"], "hashbench[learned]", *extras])
    imported = set()
    for script in re.findall(r"benchmarks/\w+\.py", scripts):
        nodes = [*ast.walk(ast.parse((ROOT / script).read_text(encoding="utf-8")))]
        imported |= {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    modules = {name.partition(".")[0] for name in imported} - sys.stdlib_module_names - {"hashbench", "helpers"}
    named = {"faiss": "faiss-cpu", "sklearn": "scikit-learn", "trm": "tie-aware-retrieval-metrics"}
    assert {named.get(module, module) for module in modules} <= packages


@pytest.mark.parametrize(
    ("place", "before", "after"),
    [
        ("CITATION.cff", f"version: {__version__}", "version: 0.0.9"),
        ("CHANGELOG.md", f"## {__version__} (2026-12-01)", f"## {__version__} (unreleased)"),
        ("hashbench/__init__.py", f'__version__ = "{__version__}"', '__version__ = "9"'),
    ],
)
def test_a_tag_is_held_to_source_citation_and_changelog(tmp_path, monkeypatch, place, before, after):
    import check_tag

    for name in check_tag.PLACES:
        text = (ROOT / name).read_text(encoding="utf-8")
        (tmp_path / name).parent.mkdir(exist_ok=True)
        dated = re.sub(rf"^## {re.escape(__version__)}.*$", f"## {__version__} (2026-12-01)", text, flags=re.MULTILINE)
        (tmp_path / name).write_text(dated, encoding="utf-8")
    monkeypatch.setattr(check_tag, "ROOT", tmp_path)
    assert check_tag.main(f"v{__version__}") == 0
    text = (tmp_path / place).read_text(encoding="utf-8")
    assert before in text
    (tmp_path / place).write_text(text.replace(before, after), encoding="utf-8")
    assert check_tag.main(f"v{__version__}") == 1


def test_every_package_and_plugin_folder_is_in_the_distribution():
    project = PROJECT["tool"]["setuptools"]
    folders = {path.parent.relative_to(ROOT) for path in ROOT.glob("hashbench/**/__init__.py")}
    expected = {".".join(folder.parts) for folder in folders} | {"hashbench.methods", "hashbench.datasets"}
    assert set(project["packages"]) == expected
    data = {path for path in ROOT.glob("hashbench/**/*.*") if path.suffix != ".py" and "__pycache__" not in path.parts}
    packaged = {ROOT.joinpath(*name.split(".")): forms for name, forms in project["package-data"].items()}
    assert data == {path for folder, forms in packaged.items() for form in forms for path in folder.glob(form)}


def test_classifiers_name_the_pythons_that_the_workflow_tests():
    named = re.findall(r":: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    matrix = yaml.safe_load(WORKFLOWS["tests.yml"])["jobs"]["tests"]["strategy"]["matrix"]
    tested = {*matrix["python"], *(job["python"] for job in matrix["include"])}
    assert sorted(tested) == sorted(named)
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"


def test_what_is_written_into_pipes_has_the_same_bytes_on_windows():
    content = io.BytesIO()
    stream = io.TextIOWrapper(content, encoding="cp1252", newline="\r\n")
    _write_as_elsewhere(stream, None)
    stream.write("low ─ high\n")
    stream.flush()
    assert content.getvalue() == "low ─ high\n".encode()

"""The commands of the site: each page's blocks run in order, in an empty folder, as a reader would copy them."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from contextlib import chdir, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import forget_plugins
from helpers.paths import ROOT

from hashbench import _parallel

DOCS = ROOT / "docs"
ELSEWHERE = {  # pages that have tests of their own, which run their commands and look at what comes out
    "binary-quantisation.md": "cli/test_binary_quantisation.py",
    "explanation/comparing.md": "test_documentation.py",
    "files.md": "store/test_layout.py",
    "grids.md": "cli/test_grids.py",
    "models.md": "cli/test_export.py",
    "python.md": "test_functions.py",
    "run-files.md": "cli/test_run_files.py",
}
ON_RESULTS = ("figures.md", "report.md", "tables.md")  # pages that lay out the committed results
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for path in DOCS.rglob("*.md")
    if "_build" not in path.parts and path.name != "pypi.md"
)


@dataclass
class Block:
    """A fenced block of a page."""

    kind: str  # sh, python, or the name of a file to write or add to
    text: str
    reason: str  # why it is not run

    def __str__(self):
        return self.text


def blocks_of(page):
    """List a page's blocks that a reader copies."""
    matches = re.finditer(
        r"(?:^<!-- not run: (?P<reason>[^>]+) -->\n|`(?P<file>\S+\.(?:py|toml))`:\n\n)?"
        r"^ *```(?P<kind>sh|python|(?(file)toml|(?!)))\n(?P<text>.*?)^```$",
        (DOCS / page).read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
    return [Block(match["file"] or match["kind"], match["text"], match["reason"] or "") for match in matches]


LONGEST = ("datasets.md", "tutorials/plugins.md", "tuning.md", "diff.md")  # which begin
RUN = [page for page in PAGES if page not in ELSEWHERE and any(not block.reason for block in blocks_of(page))]
RUN.sort(key=lambda page: page not in LONGEST)


def plain_commands(text):
    """List the hashbench commands of a block, by their words; None if it has others, or needs a shell."""
    lines = text.replace("\\\n", " ").splitlines()
    if all(line.startswith("hashbench ") and not re.search(r"[$|&>`{\\]", re.sub("'.*?'", "", line)) for line in lines):
        return [shlex.split(line, comments=True)[1:] for line in lines]
    return None


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN)
def test_blocks_of_a_page_run_in_their_order(page, hashbench, site_packages, tmp_path, monkeypatch):
    if page == "scale.md":
        pytest.importorskip("distributed")
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(site_packages),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    loops = _parallel._cache_folder()  # which other tests have compiled
    loops.mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache" / "hashbench").mkdir(parents=True)
    (tmp_path / "cache" / "hashbench" / "loops").symlink_to(loops)
    environment.pop("HASHBENCH_DATA", None)  # a page that wants it says so
    monkeypatch.delenv("HASHBENCH_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", environment["XDG_CACHE_HOME"])
    exported = tmp_path / "exported"  # variables, from one block to the next, as in the reader's shell
    exported.touch()
    work = tmp_path / "work"
    work.mkdir()
    if page in ON_RESULTS:
        shutil.copytree(ROOT / "results", work / "results")
    scope, children = {}, []
    try:
        with chdir(work):
            for block in blocks_of(page):
                if block.reason:
                    continue
                if block.kind == "python":
                    exec(block.text, scope)
                elif block.kind != "sh":
                    path = Path(block.kind)
                    path.parent.mkdir(exist_ok=True)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(block.text)
                elif (commands := plain_commands(block.text)) is not None:
                    for command in commands:
                        result = hashbench(*command)
                        assert result.exit_code == 0, f"{command}\n{result.output}"
                else:
                    text = block.text
                    if text.startswith("pip install"):  # beside the environment of the tests, not into it
                        options = f"--quiet --upgrade --no-deps --no-build-isolation --target {site_packages}"
                        text = f"{sys.executable} -m pip install {options} ."
                    with Path("printed").open("w+") as printed:
                        child = subprocess.Popen(
                            ["bash", "-euo", "pipefail", "-c", f"source {exported}\n{text}\nexport -p > {exported}"],
                            env=environment,
                            stdout=printed,
                            stderr=subprocess.STDOUT,
                            start_new_session=True,
                        )
                        children.append(child)
                        code = child.wait(300)
                        printed.seek(0)
                        assert code == 0, f"{block.text}\n{printed.read()}"
                    if data := re.search(r'^declare -x HASHBENCH_DATA="(.*)"$', exported.read_text(), re.MULTILINE):
                        monkeypatch.setenv("HASHBENCH_DATA", data[1])
                    Path("printed").unlink()
                    forget_plugins()  # they may be there now
    finally:
        for child in children:  # what runs in the background ends with the page
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.parametrize("page", ELSEWHERE)
def test_pages_whose_commands_run_elsewhere_are_named_there(page):
    assert page in (ROOT / "tests" / ELSEWHERE[page]).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted({*PAGES} - {*ELSEWHERE}))
def test_a_block_that_is_not_run_says_why(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    fences = re.findall(r"^ *```(?:sh|bash|shell|console|python)\b.*$", text, re.MULTILINE)
    assert len(fences) == sum(not block.kind.endswith(".toml") for block in blocks_of(page)), "a block in no known form"
    for block in blocks_of(page):
        assert not block.reason or len(block.reason.split()) > 2


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path):
    pytest.importorskip("pydata_sphinx_theme")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", DOCS, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    for page in PAGES:
        assert (tmp_path / page).with_suffix(".html").exists()
    assert "<td>AP@100</td>" in (tmp_path / "tutorials/notebook.html").read_text(encoding="utf-8")  # which it ran
    content = (tmp_path / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(content[content.index("(") + 1 : content.rindex(")")])
    page = index["docnames"].index("why-numbers-differ")
    for word in ("explain", "calctopmap"):  # of a command, and of a script that people search
        pages = [index[terms].get(word, []) for terms in ("terms", "titleterms")]
        assert any(page == found or (isinstance(found, list) and page in found) for found in pages), word

"""How the site is built: `make docs`. Pages are Markdown, read in the repository too; the reference is made here.

A line ``<!-- made: NAME -->`` of a page becomes what the function NAME below writes, from docstrings and registries.
"""

import ast
import io
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import click
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

import hashbench
from hashbench import plugins, registry
from hashbench.cards import method_card
from hashbench.cli.main import cli

ROOT = Path(__file__).parents[1]
_URLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
_SOURCE = f"{_URLS['Repository']}/blob/main"

project, author, version = "hashbench", "the hashbench developers", hashbench.__version__
copyright = "the hashbench developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "sphinx_design"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
smartquotes = False  # would turn -- of options into dashes
autodoc_typehints = "none"
autodoc_member_order = "bysource"
html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "hashbench"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "gallery": []}
html_theme_options = {
    "icon_links": [{"name": "Source", "url": _URLS["Repository"], "icon": "fa-brands fa-github"}],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
}


def _of_registry() -> Iterator[str]:
    for name in registry.built_in_methods():
        card = method_card(name)
        cls = registry.get_method(name)
        learns = {"none": "nothing but items", "labels": "labels", "affinity": "which items are similar"}
        yield f"### {name}\n\n{card.summary} Group {card.group}; learns from {learns[card.supervision]}.\n"
        if card.presets:
            yield f"Presets: {', '.join(f'`--preset {preset}`' for preset in sorted(card.presets))}.\n"
        yield f"```{{eval-rst}}\n.. autoclass:: {cls.__module__}.{cls.__name__}\n   :noindex:\n```\n"


def methods() -> str:
    """Every built-in method with its parameters, equations and references."""
    return "\n".join(_of_registry())


def public() -> str:
    """Every public name with its docstring."""
    lines = []
    names = [(hashbench, name) for name in sorted(hashbench.__all__, key=str.lower) if not name.startswith("__")]
    names += [(plugins, name) for name in sorted(plugins.__all__, key=str.lower) if name not in hashbench.__all__]
    for module, name in names:
        thing = getattr(module, name)
        kind = "exception" if _is(thing, Exception) else "class" if isinstance(thing, type) else "function"
        members = "\n   :members:" if kind == "class" else ""
        lines.append(f"## {name}\n\n```{{eval-rst}}\n.. auto{kind}:: {module.__name__}.{name}{members}\n```\n")
    return "\n".join(lines)


def commands() -> str:
    """Print the help of each command, and of those below it."""
    return "\n".join(_helps(cli.context_class(cli, info_name="hashbench", terminal_width=84, **cli.context_settings)))


def _helps(context: click.Context) -> Iterator[str]:
    command = context.command
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group) and context.info_name != "on":  # whose commands are there already
        for name in command.list_commands(context):
            subcommand = command.get_command(context, name)
            assert subcommand is not None
            yield from _helps(subcommand.context_class(subcommand, parent=context, info_name=name))


def gallery() -> str:
    """All figures and tables of results/."""
    lines = ["## Tables\n"]
    for path in sorted((ROOT / "results/tables").glob("*.md")):
        title = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        lines.append(f"- [{title}]({_SOURCE}/{path.relative_to(ROOT).as_posix()})")
    kinds = {"ranking": "Methods by AP", "unseen": "Unseen classes", "ap-bits": "AP by code length"}
    for kind, words in {**kinds, "tie-ranges": "Tie ranges"}.items():
        lines.append(f"\n## {words}\n")
        for path in sorted((ROOT / "results/figures").glob(f"{kind}-*.svg")):
            name = path.stem.removeprefix(f"{kind}-")
            lines.append(f"### {name}\n\n![{words} of {name}](../{path.relative_to(ROOT).as_posix()})\n")
    return "\n".join(lines)


def notebook() -> str:
    """Every cell of the notebook, run here, with what it shows."""
    scope: dict[str, Any] = {}
    content = json.loads((ROOT / "docs/tutorials/notebook.ipynb").read_text(encoding="utf-8"))
    return "\n\n".join(_shown(cell["cell_type"], "".join(cell["source"]), scope) for cell in content["cells"])


def _shown(kind: str, text: str, scope: dict[str, Any]) -> str:
    if kind == "markdown":
        return text
    parsed, printed = ast.parse(text), io.StringIO()
    last = ast.Expression(parsed.body.pop().value) if isinstance(parsed.body[-1], ast.Expr) else None
    with redirect_stdout(printed), redirect_stderr(io.StringIO()):
        exec(compile(parsed, "notebook", "exec"), scope)
        value = None if last is None else eval(compile(last, "notebook", "eval"), scope)
    parts = [f"```python\n{text}\n```"]
    if hasattr(value, "_repr_html_"):
        table = f'<div class="cell_output"><div class="output">{value._repr_html_()}</div></div>'
        parts.append(f"```{{raw}} html\n{table}\n```")
    elif value is not None or printed.getvalue():
        parts.append(f"```text\n{printed.getvalue() or repr(value)}\n```")
    return "\n\n".join(parts)


def _is(thing: object, base: type) -> bool:
    return isinstance(thing, type) and issubclass(thing, base)


_MADE = {made.__name__: made for made in (methods, public, commands, gallery, notebook)}


def _fill(app: Sphinx, page: str, source: list[str]) -> None:
    """Put in what is made, and lead links out of docs/ to the repository."""
    text = re.sub(r"<!-- made: (\w+) -->", lambda found: _MADE[found[1]](), source[0])
    source[0] = re.sub(r"\]\(((?:\.\./)+[^)#]+)(#[^)]*)?\)", lambda found: _outside(page, found), text)


def _outside(page: str, link: re.Match[str]) -> str:
    here = ROOT / "docs" / page
    target = Path(os.path.normpath(here.parent / link[1]))
    if target.is_relative_to(ROOT / "docs") or target.suffix == ".svg":
        return link[0]
    if not target.exists() or (link[2] and link[2][1:] not in _anchors(target)):
        raise ValueError(f"{page}: {link[1]}{link[2] or ''} leads nowhere")
    included = ROOT / "docs" / target.name.lower()  # contributing.md shows CONTRIBUTING.md
    if target.parent == ROOT and included.exists():
        return f"]({os.path.relpath(included, here.parent)}{link[2] or ''})"
    return f"]({_SOURCE}/{target.relative_to(ROOT).as_posix()}{link[2] or ''})"


def _anchors(page: Path) -> set[str]:
    """Give the anchors that GitHub makes of the headings of a Markdown file."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def _write_math(self, node):  # type: ignore[no-untyped-def]
    from docutils import nodes

    self.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Add what is made to pages, and formulas that browsers draw without a script."""
    app.connect("source-read", _fill)
    app.add_html_math_renderer("mathml", (_write_math, None), (_write_math, None))

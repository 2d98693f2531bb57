import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.paths import ROOT
from helpers.table_rows import ITQ, cell, chosen, ranged, table
from helpers.thoroughness import slow

PDFLATEX = shutil.which("pdflatex")
MAY_LACK = "HASHBENCH_NEEDS_LATEX" not in os.environ
needs_latex = pytest.mark.skipif(PDFLATEX is None and MAY_LACK, reason="needs pdflatex")


def test_digits_can_be_chosen_and_the_spread_left_out():
    two_seeds = table(ranged("itq", 0.58, 0.5, 0.7), ranged("itq", 0.60, 0.5, 0.7, seed=1))
    assert r"itq & 0.59{\tiny$\pm$.01} \\" in two_seeds.to_latex(2)
    text = two_seeds.to_latex(2, has_spread=False)
    assert r"itq & 0.59 \\" in text
    assert r"\pm" not in text
    assert "standard deviation" not in text


def test_a_long_label_takes_several_lines():
    assert r"itq n\_iter=5 & 0.500 \\" in table(cell(params='{"n_iter": 5}')).to_latex()
    text = table(cell("gone", params='{"a_long_name": 5, "head": "mlp and more"}')).to_latex()
    assert r"\shortstack[l]{gone a\_long\_name=5\\head=mlp and more} & 0.500 \\" in text


def test_what_has_a_meaning_in_latex_is_escaped():
    text = chosen(cell("gone", params='{"a": "50% & #{$}\\\\~^<"}')).to_latex()
    assert r"gone a=50\% \& \#\{\$\}\textbackslash{}\textasciitilde{}\textasciicircum{}$<$ & " in text


def test_a_label_that_begins_like_an_option_is_none():
    own = '{"codes": "own", "label": "[b]"}'
    assert r"{}[b]" in chosen(cell("mine", params=own), cell("lsh")).to_latex()


@pytest.mark.parametrize(("n_lengths", "environment"), [(3, "table"), (8, "table*")])
def test_block_is_as_wide_as_it_needs(n_lengths, environment):
    cells = [cell(n_bits=n_bits, seed=seed, value=0.5 + 0.1 * seed) for n_bits in range(n_lengths) for seed in (0, 1)]
    assert rf"\begin{{{environment}}}" in chosen(*cells, datasets=["digits"]).to_latex()


def test_a_tested_table_has_one_float_with_spreads_and_no_intervals():
    cells = cell(value=0.5), cell(value=0.6, seed=1), cell("lsh", value=0.3), cell("lsh", value=0.2, seed=1)
    text = chosen(*cells).tested().to_latex()
    assert r"lsh & 0.250{\tiny$\pm$.071}$^{\dagger}$$^{\star}$ \\" in text
    assert text.count(r"\begin{table}") == 1
    assert "interval" not in text


def tall():
    """A block that fits a page only when it is made smaller."""
    cells = [cell(f"method-{number}", n_bits) for number in range(45) for n_bits in range(10, 40)]
    return chosen(*cells, datasets=["digits"]).to_latex(4)


@needs_latex
@pytest.mark.parametrize("columns", [*slow("onecolumn"), "twocolumn"])
def test_tables_fit_the_columns_of_an_article(columns, tmp_path):
    wide = [
        cell(method, n_bits, 0.5 + 0.1 * seed, seed=seed, params=params)
        for method, params in (("itq", ITQ), ("lsh", "{}"), ("gone", '{"a_b": "50% & #{$}\\\\~^< and more"}'))
        for n_bits in range(10, 28)
        for seed in (0, 1)
    ]
    (tmp_path / "wide.tex").write_text(chosen(*wide, datasets=["digits"]).to_latex(4))
    (tmp_path / "tall.tex").write_text(tall())
    files = [*sorted((ROOT / "results" / "tables").glob("*.tex")), tmp_path / "wide.tex", tmp_path / "tall.tex"]
    assert len(files) > 5
    inputs = "".join(rf"\input{{{path.resolve().as_posix()}}}\clearpage" for path in files)
    packages = r"\usepackage{booktabs,graphicx}"
    packages = r"\usepackage{booktabs,graphicx}"
    source = rf"\documentclass[{columns}]{{article}}{packages}\begin{{document}}{inputs}\end{{document}}"
    log = compiled(source, tmp_path)
    assert not re.findall(r"^(?:Overfull|LaTeX Warning: Float too large|!).*", log, re.MULTILINE)


@needs_latex
def test_table_that_does_not_fit_would_fail(tmp_path):
    table = r"\begin{table}\begin{tabular}{l}" + "wide " * 99 + r"\end{tabular}\end{table}"
    source = rf"\documentclass[twocolumn]{{article}}\begin{{document}}{table}\end{{document}}"
    assert "Overfull" in compiled(source, tmp_path)


def compiled(source: str, folder: Path) -> str:
    """Compile a document and return LaTeX's log."""
    assert PDFLATEX, "there is no pdflatex: Debian's texlive-latex-base and texlive-latex-recommended"
    (folder / "main.tex").write_text(source)
    command = [PDFLATEX, "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    process = subprocess.run(command, cwd=folder, capture_output=True)
    log = (folder / "main.log").read_text(errors="replace")
    assert process.returncode == 0, log[-2000:]
    return log

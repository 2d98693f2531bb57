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


def test_latex_is_laid_out_with_booktabs():
    """The whole layout is in ``tests/golden/tables``."""
    cells = ranged("itq", 0.58, 0.5, 0.7), ranged("itq", 0.60, 0.5, 0.7, seed=1), ranged("lsh", 0.57, 0.4, 0.6)
    text = table(*cells).to_latex().partition(r"\end{table}")[0]
    assert r"\caption{AP on digits (pixels).}" "\n" r"\label{tab:table1-digits-pixels-ap}" in text
    assert text.partition(r"\midrule")[2].partition(r"\bottomrule")[0].strip().splitlines() == [
        r"\multicolumn{2}{@{}l}{\textit{unsupervised}} \\",
        r"itq & \textbf{0.590}{\tiny$\pm$.014} \\",
        r"lsh & 0.570$^{\dagger}$$^{\S}$ \\",
    ]
    assert r"\raggedright Means over 200 queries and 1 or 2 seeds. $\pm$: standard deviation over seeds. Bold" in text


def test_labels_of_blocks_differ():
    labels = re.findall(r"\\label{(.*)}", table(cell(), cell(dataset="mine"), cell(features="other")).to_latex())
    assert len(set(labels)) == len(labels) > 3


def test_digits_can_be_chosen_and_the_spread_left_out():
    two_seeds = table(ranged("itq", 0.58, 0.5, 0.7), ranged("itq", 0.60, 0.5, 0.7, seed=1))
    assert r"itq & 0.59{\tiny$\pm$.01} \\" in two_seeds.to_latex(2)
    text = two_seeds.to_latex(2, has_spread=False)
    assert r"itq & 0.59 \\" in text
    assert r"\pm" not in text
    assert "standard deviation" not in text


def test_parameters_are_in_words_and_long_ones_below():
    text = table(cell(params='{"n_iter": 5}')).to_latex()
    assert r"itq, n iter 5 & 0.500 \\" in text
    text = table(cell("gone", params='{"a_long_name": 5, "head": "mlp and more"}')).to_latex()
    assert r"gone (1) & 0.500 \\" in text
    assert "raggedright (1): a long name 5, head mlp and more. Means" in text


def test_what_has_a_meaning_in_latex_is_escaped():
    text = chosen(cell("gone", params='{"a": "50% & #{$}\\\\~^<"}')).to_latex()
    assert r"gone, a 50\% \& \#\{\$\}\textbackslash{}\textasciitilde{}\textasciicircum{}$<$ & " in text


def test_every_row_of_markdown_is_there_with_two_lines_of_headings_beside_the_paper():
    cifar10 = table(cell(), cell("dtsh", 12, dataset="cifar10-s1"), datasets=["cifar10-s1"])
    rows = [line for line in cifar10.to_latex().splitlines() if line.endswith(r"\\")]
    markdown_lines = [line for line in cifar10.to_markdown().splitlines() if re.match(r"\| [^-]", line)]
    assert len(rows) == len(markdown_lines) + 1
    assert rows[0] == " & ".join(["", *(rf"\multicolumn{{2}}{{l}}{{{n} bits}}" for n in (12, 24, 32, 48))]) + r" \\"
    assert rows[1] == "method" + " & ours & paper" * 4 + r" \\"


@pytest.mark.parametrize(
    ("n_lengths", "environment", "n_parts"), [(3, "table", 1), (8, "table*", 1), (30, "table*", 4)]
)
def test_block_is_as_wide_as_it_needs_and_broken_if_too_wide_for_a_page(n_lengths, environment, n_parts):
    cells = [
        cell(n_bits=n_bits, seed=seed, value=0.5 + 0.1 * seed)
        for n_bits in range(10, 10 + n_lengths)
        for seed in (0, 1)
    ]
    text = chosen(*cells, datasets=["digits"]).to_latex()
    assert rf"\begin{{{environment}}}" in text
    assert text.count(r"\begin{tabular}") == n_parts
    columns = [len(re.findall(r"\d bits", part)) for part in text.split(r"\begin{tabular}")[1:]]
    assert max(columns) == -(-n_lengths // n_parts)  # no part is wider than need be
    assert re.findall(r"(\d+) bits", text) == [str(n) for n in range(10, 10 + n_lengths)]


def tall():
    """A block of so many methods and lengths that its parts do not fit on a page."""
    cells = [cell(f"method-{number}", n_bits) for number in range(30) for n_bits in range(10, 60)]
    return chosen(*cells, datasets=["digits"]).to_latex(4)


def test_parts_that_do_not_fit_on_a_page_are_tables_of_their_own():
    text = tall()
    assert text.count(r"\begin{tabular}") == text.count(r"\begin{table*}") > 1
    assert text.count("Continued.") == text.count(r"\begin{table*}") - 1
    assert len(set(re.findall(r"\\label{(.*)}", text))) == text.count(r"\begin{table*}")
    assert text.count("Means over") == 1


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
    source = rf"\documentclass[{columns}]{{article}}\usepackage{{booktabs}}\begin{{document}}{inputs}\end{{document}}"
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

"""One function decides marks: tables, figures, the page and the diff show what it says."""

import json
import re

import pandas as pd
import pytest
from helpers.diff_rows import row, write, write_sides
from helpers.table_rows import block_rows, cell, chosen

from hashbench.reports import marks
from hashbench.reports.plots import draw_figures


@pytest.mark.parametrize("sign", ["", "§"])
def test_what_the_one_function_decides_is_shown_everywhere(hashbench, empty_folder, monkeypatch, sign):
    monkeypatch.setattr(
        marks, "decide", lambda cells: {each: pd.Series(each == sign, cells.index) for each in marks.SIGNS}
    )
    path = empty_folder / "results" / "digits.csv"
    write(
        path, *(row(value, method=name, seed=seed) for name, value in (("lsh", 0.4), ("itq", 0.6)) for seed in (0, 1))
    )
    table = hashbench("tables", "--metric", "AP").stdout
    rows = block_rows(table, "digits")
    assert (rows["lsh"][0], rows["itq"][0]) == (f"0.4000 ± 0.0000{sign}", f"**0.6000 ± 0.0000**{sign}")
    assert (f"- {sign}: {marks.SIGNS.get(sign)}" in table) == bool(sign)
    (drawing,) = draw_figures(path.parent, ["ranking"])
    (axes,) = drawing.figure.axes
    assert {text.get_text().strip() for text in axes.texts} == {f"0.6000{sign}", f"0.4000{sign}"}
    assert hashbench("report", "--output", "page.html").exit_code == 0
    content = json.loads(re.search(r'id="data">(.*?)</script>', (empty_folder / "page.html").read_text())[1])
    assert set(content["cells"]["marks"]["of"]) == {sign}
    assert f"+0.100000{sign} " in hashbench("diff", *write_sides([row(0.5)], [row(0.6)])).stdout


def test_methods_stand_in_the_order_in_which_they_are_named():
    names = "sph", "itq", "lsh"
    table = chosen(*(cell(name) for name in sorted(names)), methods=names)
    assert [name for name in block_rows(table.to_markdown(), "digits") if name in names] == list(names)

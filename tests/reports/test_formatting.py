import json

import pytest

from hashbench import __version__
from hashbench.reports.formatting import json_text, markdown_table, markdown_text, plain_table

HEADER, ROWS = ["method", "bits", "AP"], [["lsh", "16", "0.25"], ["sh|a", "128", "-"]]


def test_markdown_reads_well_as_plain_text():
    assert markdown_table(HEADER, ROWS) == (
        "| method | bits |   AP |\n| ------ | ---: | ---: |\n| lsh    |   16 | 0.25 |\n| sh\\|a  |  128 |    - |"
    )


def test_markdown_can_be_short():
    assert markdown_table(HEADER, ROWS, n_left=2, is_padded=False) == (
        "| method | bits | AP |\n| --- | --- | ---: |\n| lsh | 16 | 0.25 |\n| sh\\|a | 128 | - |"
    )


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("n_iter=5", "n_iter=5"),
        ("<img src=x>", "&lt;img src=x&gt;"),
        ("**best** _x_ ~~y~~", "**best** _x_ ~~y~~"),
        ("[a](b) `c`", "[a](b) `c`"),
        ("&lt; &#60; a & b", "&amp;lt; &amp;#60; a &amp; b"),
        (r"a\*b*", r"a\*b*"),
        ("x|y", "x|y"),
    ],
)
def test_text_in_a_cell_is_shown_as_it_is(text, html):
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"])
    assert parser.renderInline(markdown_text(text)) == html
    assert f"<td>{html}</td>" in parser.render(markdown_table(["name"], [[text]]))


def test_plain_table_has_names_at_the_left_and_numbers_at_the_right():
    assert [line.rstrip() for line in plain_table(HEADER, ROWS).splitlines()] == [
        " method   bits     AP",
        " ────────────────────",
        " lsh        16   0.25",
        " sh|a      128      -",
    ]


def test_json_knows_no_nan():
    assert json.loads(json_text({"a": [0.5, (float("nan"),)]}))["a"] == [0.5, [None]]


def test_each_object_of_json_begins_with_the_version_of_hashbench_and_of_its_json():
    version = {"version": __version__, "schema_version": 1}
    assert json_text({"AP": 1}).startswith('{\n  "hashbench": {\n')
    assert json.loads(json_text({"AP": 1})) == {"hashbench": version, "AP": 1}
    assert json.loads(json_text([{"a": 1}, {"a": 2}])) == [{"hashbench": version, "a": number} for number in (1, 2)]

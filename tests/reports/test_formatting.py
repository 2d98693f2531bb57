import json

import pytest

from hashbench import __version__
from hashbench.reports.formatting import Records, Table, json_text, markdown_table, markdown_text

HEADER, ROWS = ["method", "bits", "AP"], [["lsh", "16", "0.25"], ["sh|a", "128", "-"]]


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


def test_each_object_of_json_begins_with_the_version_of_hashbench_and_of_its_json():
    version = {"version": __version__, "schema_version": 1}
    assert json_text({"AP": 1}).startswith('{\n  "hashbench": {\n')
    assert json.loads(json_text({"AP": 1})) == {"hashbench": version, "AP": 1}
    assert json.loads(json_text([{"a": 1}, {"a": 2}])) == [{"hashbench": version, "a": number} for number in (1, 2)]


SCORES = [
    {"method": "lsh", "bits": 16, "mean": 0.12345, "low": 0.1, "high": 0.25, "p": 0.00001},
    {"method": "=sh", "bits": 1024, "mean": float("nan"), "low": 0.5, "high": None, "p": 0.5},
]
RECORDS = Records(
    [Table("method | bits {bits:,} | AP {mean:score} | low-high {low:.1f}-{high:.1f} | p {p:p}", SCORES), "a note"],
    {"scores": SCORES},
    SCORES,
    decimals=6,
)


def test_one_value_is_printed_in_every_form():
    assert RECORDS.to_text("table") == (
        " method    bits       AP   low-high         p\n"
        " ────────────────────────────────────────────\n"
        " lsh         16   0.1235    0.1-0.2   <0.0001\n"
        " =sh      1,024        -          -    0.5000\n"
        "\n"
        "a note"
    )
    assert RECORDS.to_text("markdown") == (
        "| method |  bits |     AP | low-high |        p |\n"
        "| ------ | ----: | -----: | -------: | -------: |\n"
        "| lsh    |    16 | 0.1235 |  0.1-0.2 | \\<0.0001 |\n"
        "| =sh    | 1,024 |      - |        - |   0.5000 |\n"
        "\n"
        "a note"
    )
    assert RECORDS.to_text("csv") == (
        "method,bits,mean,low,high,p\nlsh,16,0.123450,0.100000,0.250000,0.000010\n'=sh,1024,,0.500000,,0.500000"
    )
    content = json.loads(RECORDS.to_text("json"))
    assert content["scores"] == [SCORES[0], SCORES[1] | {"mean": None}]


def test_csv_has_all_digits_of_the_fields_that_are_named():
    records = Records([], rows=[{"a": 1 / 3, "b": 1}], fields=["a"])
    assert records.to_text("csv") == f"a\n{1 / 3!r}"
    assert Records([], fields=["a", "b"]).to_text("csv") == "a,b"


def test_scores_are_rounded_from_the_six_decimals_of_results():
    rows = [{"AP": 0.12344996}]
    assert f"{rows[0]['AP']:.4f}" == "0.1234"
    assert Table("AP {AP:score}", rows).to_text().split()[-1] == "0.1235"


def test_long_names_take_several_lines_on_a_terminal_only():
    table = Table("method | AP", [{"method": "itq n_iter=50", "AP": "1"}], width=8)
    assert [line.split() for line in table.to_text().splitlines()[2:]] == [["itq", "1"], ["n_iter=50"]]
    assert "itq n_iter=50" in table.to_text("markdown")

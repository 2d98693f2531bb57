from hashbench.reports.formatting import json_number, markdown_table, plain_table

HEADER, ROWS = ["method", "bits", "AP"], [["lsh", "16", "0.25"], ["sh|a", "128", "-"]]


def test_markdown_reads_well_as_plain_text():
    assert markdown_table(HEADER, ROWS) == (
        "| method | bits |   AP |\n| ------ | ---: | ---: |\n| lsh    |   16 | 0.25 |\n| sh\\|a  |  128 |    - |"
    )


def test_markdown_can_be_short():
    assert markdown_table(HEADER, ROWS, n_left=2, is_padded=False) == (
        "| method | bits | AP |\n| --- | --- | ---: |\n| lsh | 16 | 0.25 |\n| sh\\|a | 128 | - |"
    )


def test_plain_table_has_names_at_the_left_and_numbers_at_the_right():
    assert [line.rstrip() for line in plain_table(HEADER, ROWS).splitlines()] == [
        " method   bits     AP",
        " ────────────────────",
        " lsh        16   0.25",
        " sh|a      128      -",
    ]


def test_json_knows_no_nan():
    assert [json_number(value) for value in (0.5, float("nan"))] == [0.5, None]

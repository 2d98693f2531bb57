import gzip

import pytest

from hashbench import HashbenchError, read_qrels, read_run

RUN = "q1 Q0 d1 1 2.5 ours\nq1\tQ0\td2\t2\t-1e-3\tours\n\nq2 Q0 d1 1 7 ours\n"
QRELS = "q1 0 d1 1\nq1 0 d3 -2\nq2 0 d1 0\n"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "file.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.mark.parametrize(
    "pack", [str.encode, lambda text: gzip.compress(text.encode(), mtime=0)], ids=["plain", "gzip"]
)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte-order mark"])
def test_lines_are_read_plain_or_zipped_whatever_the_suffix(pack, mark, written):
    assert read_run(written(pack(mark + RUN))) == {"q1": {"d1": 2.5, "d2": -0.001}, "q2": {"d1": 7.0}}
    assert read_qrels(str(written(pack(mark + QRELS)))) == {"q1": {"d1": 1, "d3": -2}, "q2": {"d1": 0}}


def test_grades_that_are_whole_are_integers(written):
    grades = read_qrels(written("q 0 a 2.0\nq 0 b 0.5\n"))["q"]
    assert [repr(grade) for grade in grades.values()] == ["2", "0.5"]


def test_lines_of_windows_and_names_in_any_script_are_read(written):
    assert read_run(written("質問 Q0 d1 1 2 x\r\n質問 Q0 é 2 1 x\r\n")) == {"質問": {"d1": 2.0, "é": 1.0}}


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (read_run, RUN + "q2 Q0 d2\n", r"line 5 has 3 columns, expected 6: query, Q0, document, rank, score"),
        (read_run, QRELS, "line 1 has 4 columns, expected 6.* those of qrels"),
        (read_run, RUN.replace("7", "seven"), "line 4: the score 'seven' of document 'd1' is not a number"),
        (read_run, RUN.replace("7", "nan"), "line 4: the score 'nan' of document 'd1' is not a number"),
        (read_run, RUN + "q1 Q0 d2 9 -5 ours\n", "line 5: document 'd2' comes a second time for query 'q1'"),
        (read_qrels, QRELS + "q2 0 d1 0\n", "line 4: document 'd1' comes a second time for query 'q2'"),
        (read_qrels, QRELS + "q2 0 d2 good\n", "line 4: the grade 'good' of document 'd2' is not a finite number"),
        (read_qrels, QRELS + "q2 0 d2 inf\n", "line 4: the grade 'inf' of document 'd2' is not a finite number"),
        (read_run, "\n \n", "holds no lines, expected some of query, Q0, document"),
        (read_run, gzip.compress(RUN.encode(), mtime=0)[:-9], "cannot read .* as lines of text"),
        (read_run, b"\xff\xfe\x00", "cannot read .* as lines of text"),
    ],
)
def test_wrong_files_are_refused_with_their_line(read, text, message, written):
    with pytest.raises(HashbenchError, match=message):
        read(written(text))


def test_scores_that_only_grow_with_the_rank_are_taken_for_distances(written):
    rising = "a Q0 x 1 0 r\na Q0 y 2 3 r\na Q0 z 3 3 r\nb Q0 x 1 1 r\n"
    with pytest.raises(HashbenchError, match="grow with the rank in all lists, as distances do"):
        read_run(written(rising))
    assert read_run(written(rising + "b Q0 y 2 0.5 r\n"))["a"] == {"x": 0.0, "y": 3.0, "z": 3.0}
    assert read_run(written("a Q0 x 2 0 r\na Q0 y 1 3 r\n"))  # the last one first
    assert read_run(written("a Q0 x - 0 r\na Q0 y - 3 r\n"))  # without ranks

import pytest

from hashbench.errors import HashbenchError
from hashbench.unseen import UnseenClasses, split_name

SCOPES = [("unseen", "unseen"), ("unseen", "all"), ("all", "all")]


@pytest.mark.parametrize(("queries", "database"), SCOPES)
@pytest.mark.parametrize("base", ["cifar10-s1", "my-unseen3-fold0"])
def test_a_name_holds_the_protocol(base, queries, database):
    protocol = UnseenClasses(25, 10, queries, database)
    assert split_name(protocol.name_of(base)) == (base, protocol)
    assert protocol.name_of(f"{base}:gist") == f"{protocol.name_of(base)}:gist"


@pytest.mark.parametrize("name", ["digits", "digits-unseen3", "digits-unseen3-fold00", "digits-unseen3-fold0-some"])
def test_other_names_hold_none(name):
    assert split_name(name) == (name, None)


def test_queries_of_seen_classes_need_a_database_of_them():
    with pytest.raises(HashbenchError, match="--unseen-database all"):
        UnseenClasses(3, 0, "all", "unseen")


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (("unseen", "unseen"), "queries and database of the 3 classes of fold 1 that training did not see"),
        (("unseen", "all"), "queries of the 3 classes of fold 1 that training did not see, database of all classes"),
        (("all", "all"), "queries and database of all classes, with the 3 classes of fold 1 that training did not see"),
    ],
)
def test_a_caption_names_the_classes_of_queries_and_database(scope, expected):
    assert UnseenClasses(3, 1, *scope).in_words == expected

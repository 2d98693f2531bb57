from hashbench.adapter import DatasetAdapter, Options


class Two(DatasetAdapter):
    name = "two"
    summary = "two kinds of features"
    features = ("gist", "pixels")

    def prepare(self):
        raise NotImplementedError


def test_an_adapter_has_its_first_kind_of_features_unless_told_another():
    assert Two().kind == "gist"
    assert Two(Options(features="pixels")).kind == "pixels"


def test_options_compare_by_what_they_choose_about_the_data():
    assert Two().options == Options()
    assert Options().on_progress("anything", 1, 2) is None
    assert Options(on_progress=print) == Options()

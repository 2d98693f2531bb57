"""The guard of our own results: what falls, what is lost, and what the changelog names."""

import pandas as pd
import pytest
from check_results import Fall, falls, is_named, new_bullets, passages

CELL = {"dataset": "mine", "features": "gist (JPEG)", "dataset_fingerprint": "a", "n_bits": 16}


def cells(**values):
    """Return cells of methods: the values of AP, or of PairwiseError for names that end in _error."""
    return pd.DataFrame(
        CELL
        | {"method": name.removesuffix("_error"), "metric": "PairwiseError" if name.endswith("_error") else "AP"}
        | {"value": value}
        for name, value in values.items()
    )


def test_falls_beyond_two_hundredths_and_lost_cells_are_found():
    old = cells(lsh=0.5, itq=0.5, sh=0.5, sph=0.5, agh=float("nan"), bre_error=0.2, ksh_error=0.2)
    new = cells(lsh=0.479, itq=0.481, sh=0.9, agh=float("nan"), bre_error=0.25, ksh_error=0.1)
    found = falls(old, new)
    assert {method for _, method in found} == {"lsh", "sph", "bre"}
    assert found["mine:gist", "lsh"] == Fall("mine (gist (JPEG)) lsh: AP at 16 bits 0.5000 -> 0.4790")
    assert found["mine:gist", "sph"] == ("mine (gist (JPEG)) sph: AP at 16 bits 0.5000 -> lost", {16})
    both = pd.concat([old, cells(sph_error=0.2)]), pd.concat([new, cells(sph_error=0.9)])
    assert not falls(*both)["mine:gist", "sph"].lost  # only one of two cells
    assert falls(old, old) == {}
    assert {method for _, method in falls(old, new.assign(dataset_fingerprint="b"))} == {
        *("lsh", "itq", "sh", "sph", "bre", "ksh")
    }


@pytest.mark.parametrize(
    ("bullet", "of_fallen", "of_lost"),
    [
        ("- On mine, lsh and `itq` fell.", True, True),
        ("- On mine:gist, lsh fell.", True, True),
        ("- mine: lsh fell.", True, True),
        ("- On mine, settings changed. AP of lsh fell.", True, True),
        ("- Rows of all methods at 16 bits on `mine:gist` left.", False, True),
        ("- Rows of all methods at 64 bits on `mine:gist` left.", False, False),
        ("- On mine, sh fell; on yours, lsh fell.", False, False),
        ("- On mine:pixels, lsh fell.", False, False),
        ("- On mine-2, lsh fell.", False, False),
        ("- On mine, classifier-lsh fell.", False, False),
    ],
)
def test_a_passage_names_dataset_and_method(bullet, of_fallen, of_lost):
    texts = passages(bullet, {"mine", "yours"})
    assert is_named(texts, "mine:gist", "lsh") == of_fallen
    assert is_named(texts, "mine:gist", "lsh", {16}) == of_lost
    assert not is_named(["- On mine, sh fell.", "- On yours, lsh fell."], "mine:gist", "lsh")


def test_only_new_bullets_of_the_section_count():
    old = "- lsh is there.\n\n### Numbers that changed\n\nWords.\n\n- On mine, itq fell.\n\n## 0.0\n\n- sh.\n"
    new = old.replace("- On mine, itq", "- On mine, lsh fell,\n  far.\n- On mine, itq").replace("- sh.", "- pcah.")
    assert new_bullets(new, old) == ["- On mine, lsh fell,\n  far."]
    assert new_bullets(old, old) == []

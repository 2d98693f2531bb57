"""The guard of our own results: what falls, what is lost, and what the changelog names."""

import pandas as pd
import pytest
from check_results import falls, is_named

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
    assert found["mine:gist", "lsh"] == "mine (gist (JPEG)) lsh: AP at 16 bits 0.5000 -> 0.4790"
    assert found["mine:gist", "sph"].endswith("AP at 16 bits 0.5000 -> lost")
    assert falls(old, old) == {}
    assert {method for _, method in falls(old, new.assign(dataset_fingerprint="b"))} == {
        *("lsh", "itq", "sh", "sph", "bre", "ksh")
    }


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("### Numbers that changed\n\n- On mine, lsh and `itq` fell.\n", True),
        ("### Numbers that changed\n\n- On mine:gist, lsh fell.\n", True),
        ("### Numbers that changed\n\n- Rows of all methods on `mine:gist` left.\n", True),
        ("### Numbers that changed\n\n- On mine:pixels, lsh fell.\n", False),
        ("### Numbers that changed\n\n- On mine-2, lsh fell.\n", False),
        ("### Numbers that changed\n\n- On mine, classifier-lsh fell.\n", False),
        ("### Numbers that changed\n\n- On mine, sh fell.\n- On yours, lsh fell.\n", False),
        ("- On mine, lsh fell.\n\n### Numbers that changed\n", False),
    ],
)
def test_a_bullet_names_dataset_and_method(text, named):
    assert is_named(text, "mine:gist", "lsh") == named

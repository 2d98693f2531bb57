"""Users' own codes, with labels, an affinity or a prepared dataset: read from files, scored, saved and compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from hashbench._parallel import chunks
from hashbench._typing import AnyArray, ByteArray, FloatArray, IntArray, Progress, Undefined, silent
from hashbench._validation import check_labelled, check_name, is_sparse, summed_csr
from hashbench.affinity import Affinity, Hierarchy, as_affinity
from hashbench.bits import as_packed_pair
from hashbench.dataset import Dataset, canonical_json
from hashbench.errors import HashbenchError, counted
from hashbench.pipeline.cluster import Cluster, RankingOnWorkers
from hashbench.pipeline.preparation import dataset_path, find_by_content, is_known, load_dataset
from hashbench.pipeline.recipes import recipe_of
from hashbench.pipeline.sliced_codes import LabelFiles, PackedSlices, SlicedLabels
from hashbench.pipeline.steps import check_content, features_of, needs_vectors, outputs_of_queries, problem_of, rows_of
from hashbench.registry import dataset_names, method_names
from hashbench.scoring.code_statistics import Drift, check_same, drift_packed
from hashbench.scoring.evaluation import Evaluation, arrays_of
from hashbench.scoring.hamming import HammingRanking
from hashbench.scoring.hamming import check_counts as check_rated
from hashbench.scoring.ignored import leave_out
from hashbench.scoring.lists import problem_of_scores
from hashbench.scoring.metrics import Scores, get_metric
from hashbench.scoring.problem import Problem
from hashbench.scoring.real_rankings import as_outputs, bits_or_counts
from hashbench.scoring.reranking import Vectors
from hashbench.sources.array_files import (
    ShardedArray,
    files_behind,
    find_shards,
    read_array,
    read_codes,
    read_features,
    read_levels,
    read_whole,
    refuse_nameless,
    refuse_transposed,
    split_spec,
)
from hashbench.sources.formats import (
    COARSE_KEYS,
    CODE_KEYS,
    FEATURE_KEYS,
    GROUP_KEYS,
    ID_KEYS,
    LABEL_KEYS,
    SCORE_KEYS,
)
from hashbench.sources.pair_files import read_ids, read_pairs, refuse_other_ids
from hashbench.store import hdf5, score_cache
from hashbench.store.artifact import read_record
from hashbench.store.files import HDF5_SUFFIXES, data_dir, locked
from hashbench.store.hdf5 import Codes
from hashbench.store.provenance import Provenance
from hashbench.store.result_rows import OWN, OWN_FEATURES, SHOWN, check_shown
from hashbench.store.results import record_path, replace_own, results_path
from hashbench.unseen import check_fold

_TRIED = 1024  # rows from which the form of all is inferred
_RATED_QUERIES, _RATED_ITEMS = 64, 1 << 14  # block of levels to compare at a time
THESE, OTHER = "these", "other"
Packed = tuple[ByteArray, ByteArray, int]  # codes of queries and database, and their length


@dataclass(frozen=True, kw_only=True)
class OwnFiles:
    """Files of a user's codes and of what is relevant to them, each ``FILE`` or ``FILE:KEY``."""

    query_codes: str  # in any form that `hashbench.evaluate` takes
    database_codes: str
    query_labels: str | None = None  # classes (n,), numbers or words, or multi-hot labels (n, n_classes)
    database_labels: str | None = None
    coarse: tuple[str, str] | None = None  # superclasses (n,) beside classes: level 2 in a class, 1 in a superclass
    affinity: str | None = None  # instead of labels: levels (queries, database), maybe sparse, or lists of neighbours
    dataset: str | None = None  # prepared, with codes in the order of its split; labels beside it must agree with it
    n_bits: int | None = None
    bit_order: str | None = None
    encoding: str | None = None
    distance: str = "hamming"
    vectors: tuple[str, str] | None = None  # float features (n, n_features) to re-rank by, without a dataset
    true_distance: str | None = None  # between the vectors
    query_outputs: str | None = None  # real-valued outputs of queries (n, n_bits), whose signs are their codes
    exclude_self: bool = False  # queries are the items of the database, and never find themselves
    exclude_same_id: tuple[str, str] | None = None  # ids (n,) of queries and database, which ignore their own
    groups: tuple[str, str] | None = None  # (n,), numbers or words: queries ignore those of their class and group
    junk_label: tuple[str, ...] = ()  # classes of database items that all queries ignore
    needs_relevance: bool = True  # if false, codes are compared and not scored

    def __post_init__(self) -> None:
        if not self.needs_relevance:
            return
        if (self.query_labels is None) != (self.database_labels is None):
            raise HashbenchError("labels are needed for both: --query-labels and --database-labels.")
        if self.coarse and not self.query_labels:
            raise HashbenchError("superclasses (--coarse) need --query-labels and --database-labels.")
        if (self.query_labels and self.affinity) or not (self.query_labels or self.affinity or self.dataset):
            raise HashbenchError(
                f"got {'labels and --affinity' if self.affinity else 'nothing'} to define what is relevant, expected "
                "one of: --query-labels and --database-labels; --affinity; --dataset."
            )

    def reduced(self, affinity: Any) -> tuple[Any, dict[str, Any]]:
        """Leave out the pairs that queries ignore; return the affinity, and parameters that record what is left out."""
        pairs: dict[str, Any] = {}
        for name, specs, keys in (
            ("exclude_same_id", self.exclude_same_id, ID_KEYS),
            ("groups", self.groups, GROUP_KEYS),
        ):
            if specs is not None:
                arrays = [read_whole(spec, keys) for spec in specs]
                pairs[name] = (*comparable(arrays, map(str, specs), (affinity.n_queries, affinity.n_database)),)
        chosen: dict[str, Any] = {"exclude_self": True} if self.exclude_self else {}
        if self.junk_label:
            labels = sorted(set(self.junk_label))
            chosen["junk_label"] = labels if len(labels) > 1 else labels[0]
        params = chosen | {name: _digest_of_words(*arrays) for name, arrays in pairs.items()}
        return leave_out(affinity, **chosen, **pairs), params

    @property
    def by_role(self) -> tuple[list[str], list[str]]:
        """Files of the queries, and of the database, that may have ids beside an entry per item."""
        pairs = [
            (self.query_codes, self.database_codes),
            (self.query_labels, self.database_labels),
            *(pair for pair in (self.coarse, self.groups, self.vectors, self.exclude_same_id) if pair is not None),
            (self.query_outputs, None),
        ]
        of_queries = [pair[0] for pair in pairs if pair[0]]
        return of_queries, [file for pair in pairs if pair[1] for file in files_behind(pair[1])]

    @property
    def label_files(self) -> list[tuple[dict[str, str], tuple[str, ...]]]:
        """Files of classes, then of superclasses: by option, with the keys to look under; empty without labels."""
        files: list[tuple[dict[str, str], tuple[str, ...]]] = []
        if self.query_labels and self.database_labels:
            files.append(({"query-labels": self.query_labels, "database-labels": self.database_labels}, LABEL_KEYS))
        if self.coarse:
            files.append((dict(zip(("query-coarse", "database-coarse"), self.coarse, strict=True)), COARSE_KEYS))
        return files


@dataclass(frozen=True)
class Saving:
    """How a user's own codes become rows of results."""

    name: str  # in the place of a method's
    dataset: str  # of the rows, if labels or an affinity define relevance
    results: Path  # their folder
    group: str | None = None  # in tables
    label: str | None = None  # likewise
    seed: int = 0
    keep_codes: bool = False  # for figures
    draws_nothing: bool = False  # at random, so that one seed is all there is

    @property
    def shown(self) -> dict[str, Any]:
        """The parameters that only affect how rows are shown and compared."""
        return {key: value for key in SHOWN if (value := getattr(self, key)) not in (None, False)}

    def check(self, distance: str, *, is_labelled: bool, ignoring: Sequence[str] = ()) -> None:
        """Check what can be saved before anything is scored; ``is_labelled`` if the user's labels define relevance.

        ``ignoring`` are the fields of `OwnFiles` that leave pairs out.
        """
        if self.keep_codes and distance != "hamming":
            raise HashbenchError(f"--keep-codes keeps binary codes, and --distance {distance} has none; leave it out.")
        if self.keep_codes and ignoring:
            raise HashbenchError(
                "--keep-codes keeps codes for figures, where each query would find what "
                f"--{ignoring[0].replace('_', '-')} ignores; leave one of the two out."
            )
        check_name(self.name, "the name of your codes")
        check_shown({**OWN, **self.shown})
        for option, saved_name in (("NAME", self.name), ("--label", self.label or "")):
            if saved_name.casefold() in map(str.casefold, method_names()):
                raise HashbenchError(f"{saved_name!r} is the name of a method; choose another for {option}.")
        if is_labelled:
            check_name(self.dataset, "a dataset's name")
            check_fold(self.dataset)
            for known in (*dataset_names(), *(path.stem for path in dataset_path(self.dataset).parent.glob("*.h5"))):
                if known.casefold() == self.dataset.casefold():
                    raise HashbenchError(
                        f"{known!r} is a dataset with its own labels; leave out yours, or choose another --dataset."
                    )


@dataclass(frozen=True, eq=False)
class OwnCodes:
    """A user's codes with what is relevant to them, and where rows of their scores belong."""

    problem: Problem
    n_bits: int
    dataset: Dataset | None  # the prepared dataset that the codes belong to, if any
    fingerprint: str  # of the dataset, or of labels or affinity, and of the pairs that are left out
    distance: str = "hamming"
    vectors: Vectors | None = None  # the float vectors that were coded; a dataset's features re-rank instead
    ignored: Mapping[str, Any] = field(default_factory=dict)  # parameters that record what the affinity leaves out
    has_own_outputs: bool = False  # whether outputs of queries come from the user's file

    def with_codes(self, query: AnyArray, database: AnyArray, n_bits: int) -> Self:
        """Return other codes, packed or real-valued, of the same items."""
        ranking = self.problem.ranking
        if isinstance(ranking, HammingRanking):
            changed = replace(ranking, query=query, database=database, n_bits=n_bits)
            problem = Problem.of_ranking(changed, self.problem.query_outputs)
        else:
            problem = Problem.of_outputs(query, database, cast("Affinity", ranking.relevance), self.distance)
        return replace(self, problem=problem, n_bits=n_bits)

    def check_metrics(self, metrics: Iterable[str]) -> None:
        """Refuse vectors and outputs that no metric uses."""
        if self.vectors is not None and not needs_vectors(metrics):
            raise HashbenchError(
                "--vectors are for metrics that re-rank, and no such metric was chosen. Add one, such as --metric "
                "Recall@10:reranked=100, or leave the vectors out."
            )
        if (
            self.problem.query_outputs is not None
            and self.has_own_outputs
            and not any(get_metric(name).form for name in metrics)
        ):
            raise HashbenchError(
                "--query-outputs are for metrics that compare codes with them, and no such metric was chosen. Add one, "
                "such as --metric AP:dot, or leave the outputs out."
            )

    def scores_of(self, saving: Saving, scored: Evaluation) -> dict[Provenance, Evaluation]:
        """Sort scores by what they depend on: those of re-ranked metrics also on the vectors."""
        params: dict[str, Any] = {**OWN, **saving.shown, **self.ignored}
        if self.distance != "hamming":
            params["distance"] = self.distance
        provenance = Provenance(
            dataset=self.dataset_name(saving),
            features=self.dataset.features_name if self.dataset else OWN_FEATURES,
            method=saving.name,
            params=canonical_json(params),
            n_bits=self.n_bits,
            seed=saving.seed,
            dataset_fingerprint=self.fingerprint,
            method_version=1,
        )
        scores_of: dict[Provenance, dict[str, Scores]] = {}
        for metric, metric_scores in scored.scores.items():
            content = self._reranked_fingerprint if needs_vectors([metric]) else self.fingerprint
            scores_of.setdefault(replace(provenance, dataset_fingerprint=content), {})[metric] = metric_scores
        return {source: replace(scored, scores=scores) for source, scores in scores_of.items()}

    def saved_files(self, saving: Saving) -> dict[str, Path]:
        """Return the files that `save` writes and that other options may name too, by the option that writes them."""
        dataset = self.dataset_name(saving)
        rows = results_path(saving.results, dataset, saving.name)
        files = {"--results": rows, "--results (record)": record_path(rows)}
        for content in (self.fingerprint, self._reranked_fingerprint) if saving.keep_codes else ():
            files[f"--keep-codes ({content})"] = _codes_path(dataset, content, saving.name, self.n_bits, saving.seed)
        return files

    def dataset_name(self, saving: Saving) -> str:
        """Return the name of the dataset of the rows."""
        return self.dataset.name if self.dataset else saving.dataset

    @cached_property
    def _reranked_fingerprint(self) -> str:
        if self.vectors is None:
            return self.fingerprint
        digest = sha256(f"{self.fingerprint}:{self.vectors.true_distance};".encode())
        for part in (self.vectors.query, self.vectors.database):
            digest.update(f"{part.shape};".encode() + np.ascontiguousarray(part, "<f4").tobytes())
        return digest.hexdigest()[:16]

    def keep(self, source: Provenance, scored: Evaluation, keep_codes: bool) -> list[str]:
        """Keep every query's scores, and with ``keep_codes`` the codes; return a report."""
        packed, outputs = self.problem.codes, self.problem.query_outputs
        codes = Codes(packed.query, packed.database, source, query_outputs=outputs)
        with score_cache.locked_scores(codes):
            score_cache.write(codes, score_cache.read(codes) | arrays_of(scored))
        path = _codes_path(source.dataset, source.dataset_fingerprint, source.method, source.n_bits, source.seed)
        if keep_codes:
            with locked(path):
                hdf5.write_codes(codes, path)
            return [f"Codes with content {codes.content} are kept in {path}."]
        if path.is_file() and read_record(path).get("content") != codes.content:
            return [f"{path} holds other codes, which figures show. Replace them: --keep-codes."]
        return []


def save_all(scored_codes: Sequence[tuple[OwnCodes, Saving, Evaluation]]) -> list[str]:
    """Add rows of codes of one name to the results, and return a report; `Saving.check` must have passed.

    The rows replace all rows of the same name, dataset, content, code length and seed, whatever their metrics, group
    and label; all are written or none. Every query's scores are kept for significance tests.
    """
    sources = [codes.scores_of(saving, scored) for codes, saving, scored in scored_codes]
    rows = [[row for source, scored in parts.items() for row in rows_of(source, scored)] for parts in sources]
    judge = scored_codes[0][0].dataset
    recipes = recipe_of(judge) if judge else {}
    path, all_earlier, others = replace_own(scored_codes[0][1].results, chain(*rows), recipes)
    report: list[str] = []
    for (codes, saving, scored), own_rows in zip(scored_codes, rows, strict=True):
        what, job = f"{saving.name!r}, {counted(codes.n_bits, 'bit')}", (codes.n_bits, saving.seed)
        seed = f", seed {saving.seed}" * (len(rows) > 1)
        report.append(f"{counted(len(own_rows), 'row')} of {what}{seed}, written to {path}.")
        if earlier := [row for row in all_earlier if (row.n_bits, row.seed) == job]:
            metrics = dict.fromkeys(row.metric for row in earlier)
            report.append(
                f"{counted(len(earlier), 'earlier row')} of {what}, seed {saving.seed}, removed: {', '.join(metrics)}."
            )
            if lacking := [metric for metric in metrics if metric not in scored.scores]:
                report.append(f"Not scored again: {', '.join(lacking)}. Name all metrics in one call to keep them.")
        if of_others := [row for row in others if (row.n_bits, row.seed) == job]:
            metrics = dict.fromkeys(row.metric for row in of_others)
            report.append(
                f"{counted(len(of_others), 'row')} of {what}, seed {saving.seed}, over other labels, affinity or "
                f"vectors kept: {', '.join(metrics)}."
            )
    codes, saving, _ = scored_codes[0]
    if codes.dataset is None:
        name = codes.dataset_name(saving)
        report.append(f"{name!r} is not a known or prepared dataset; your labels or affinity were used.")
    else:
        report.append(
            "What these codes were learned from cannot be checked. Methods here learn from the "
            f"{len(codes.dataset.train):,} training items of {codes.dataset.name} (hashbench info "
            f"{codes.dataset.name}); compare with their rows only if yours learned from the same items."
        )
    for (codes, saving, _), parts in zip(scored_codes, sources, strict=True):
        for source, scored in parts.items() if codes.distance == "hamming" else ():
            report += codes.keep(source, scored, saving.keep_codes)
    return report


def _codes_path(dataset: str, content: str, name: str, n_bits: int, seed: int) -> Path:
    return data_dir() / "codes" / f"{dataset}-{content}" / f"{name}-{n_bits}-s{seed}.h5"


def dataset_of(path: Path, dataset: str | None = None) -> str:
    """Return the dataset of a codes file of hashbench, found by content unless ``dataset`` is its name or file."""
    if path.suffix.lower() not in HDF5_SUFFIXES:
        raise HashbenchError(
            f"{path} is not a CODES.h5 of hashbench. Pass your own codes as arrays, or to a command with --query-codes "
            "and --database-codes; a TREC run with --run RUN QRELS."
        )
    with hdf5.open_codes(path) as codes:
        return dataset or str(find_by_content(codes.made.dataset_fingerprint) or codes.made.dataset)


def read_file(path: Path, dataset: str, metrics: Iterable[str] = ()) -> OwnCodes:
    """Read a codes file and its dataset, as `dataset_of` found it.

    Outputs of queries that a metric needs and the file lacks are those of the model beside it, if there is one.
    """
    judge, _ = load_dataset(dataset)
    with hdf5.open_codes(path) as codes:
        check_content(judge, codes.made, path)
        outputs, beside = codes.query_outputs, path.with_suffix(hdf5.SUFFIX)
        if outputs is None and any(get_metric(name).form for name in metrics) and beside.is_file():
            model = hdf5.read_model(beside)
            if model.made != codes.made:
                raise HashbenchError(
                    f"{beside} is not the model of the codes in {path.name}, so outputs of queries cannot come from "
                    "it; encode again with --keep-model, or remove the model."
                )
            outputs = outputs_of_queries(judge, model.method)
        whole = replace(codes, query=codes.query[:], database=codes.database[:], query_outputs=outputs)
        return OwnCodes(problem_of(judge, whole), codes.n_bits, judge, judge.fingerprint)


def read_own(
    files: OwnFiles,
    naming: AbstractContextManager[None] | None = None,
    *,
    cluster: Cluster | None = None,
    on_progress: Progress = silent,
) -> OwnCodes:
    """Read codes and what is relevant to them; ``naming`` may add names to errors in the codes.

    A database in shards, and one that the workers of a ``cluster`` count, is read in slices, unless vectors or
    real-valued outputs need all of it.
    """
    vectors = _read_vectors(files)
    judge = None if files.dataset is None else load_dataset(files.dataset)[0]
    needs_whole = files.distance != "hamming" or files.query_outputs is not None or vectors is not None
    if cluster is not None and needs_whole:
        raise HashbenchError(
            "workers count Hamming distances of codes, and real-valued outputs and vectors are compared in this "
            "process; leave these out, or `hashbench on`."
        )
    if cluster is not None or (not needs_whole and find_shards(files.database_codes)):
        return _read_sliced(files, judge, cluster, on_progress)
    _refuse_other_ids(files)
    labels = [[read_whole(spec, keys) for spec in specs.values()] for specs, keys in files.label_files]
    sizes: list[tuple[int, ...]] = [] if judge is None else [(len(judge.query),), (len(judge.database),)]
    with naming or nullcontext():
        query, database, n_bits = read_packed(files, sizes or [array.shape for array in chain(*labels[:1])])
    outputs = None if files.query_outputs is None else _read_outputs(files, (len(query), n_bits))
    affinity, content = _relevance(files, labels, judge, (len(query), len(database)))
    fingerprint = _fingerprint(content) if judge is None else judge.fingerprint
    affinity, ignored = files.reduced(affinity)
    if ignored:
        fingerprint = sha256(f"{fingerprint}:{canonical_json(ignored)}".encode()).hexdigest()[:16]
    if files.distance == "hamming":
        compared = vectors if judge is None else features_of(judge)
        packed = query, database, n_bits, affinity
        problem = Problem.of_packed(*packed, vectors=compared, query_outputs=outputs)
    else:
        problem = Problem.of_outputs(query, database, affinity, files.distance)
    own = OwnCodes(problem, n_bits, judge, fingerprint, files.distance, vectors, ignored)
    return replace(own, has_own_outputs=outputs is not None)


def _relevance(
    files: OwnFiles, labels: Sequence[Sequence[AnyArray]], judge: Dataset | None, counts: tuple[int, int]
) -> tuple[Any, dict[str, Any]]:
    """Return what is relevant, and the content that says so, which a dataset leaves empty."""
    content: dict[str, Any] = {}
    affinity: Any = None
    if files.affinity is not None:
        content["affinity"] = read_levels(files.affinity, counts[1])
        affinity = as_affinity(content["affinity"])
    elif labels:
        for (specs, _), arrays in zip(files.label_files, labels, strict=True):
            content |= zip(specs, comparable(arrays, specs.values(), counts), strict=True)
        affinity = as_affinity(Hierarchy(*content.values()) if files.coarse else tuple(content.values()))
        content = {name: getattr(affinity, name.replace("-", "_")) for name in content}  # words became numbers
    if judge is not None:
        check_judge(judge, str(files.dataset), counts, affinity)
        affinity = judge.affinity()
    return affinity, content


def read_scores(scores: str, files: OwnFiles, metrics: Iterable[str]) -> Problem:
    """Read scores of all items for each query, (n_queries, n_database), and what is relevant, for metrics."""
    _refuse_other_ids(files)
    judge = None if files.dataset is None else load_dataset(files.dataset)[0]
    labels = [[read_whole(spec, keys) for spec in specs.values()] for specs, keys in files.label_files]
    matrix = read_array(scores, SCORE_KEYS)
    if matrix.ndim != 2:
        raise HashbenchError(f"scores in {scores} have shape {matrix.shape}, expected (n_queries, n_database).")
    affinity, _ = _relevance(files, labels, judge, (matrix.shape[0], matrix.shape[1]))
    return problem_of_scores(files.reduced(affinity)[0], matrix, metrics)


def _refuse_other_ids(files: OwnFiles) -> None:
    for of_role in files.by_role:
        refuse_other_ids([one] for one in of_role)


def _read_sliced(files: OwnFiles, judge: Dataset | None, cluster: Cluster | None, on_progress: Progress) -> OwnCodes:
    """Read codes and labels of the queries, and open those of the database."""
    stored = ShardedArray(find_shards(files.database_codes) or [files.database_codes], CODE_KEYS)
    _refuse_other_ids(files)
    form = files.bit_order, files.encoding
    query_codes = read_codes(files.query_codes, files.n_bits)
    query, _, width = as_packed_pair(query_codes, stored[:_TRIED], files.n_bits, *form)
    are_integers = len(stored.shape) == 1 and stored.dtype.kind in "iu"  # those of a slice may all be small
    database = PackedSlices(stored, width, width if are_integers else files.n_bits, *form)
    affinity: Any = None
    if files.affinity is not None:
        affinity = as_affinity(read_levels(files.affinity, len(database)))
    elif files.label_files:
        affinity = SlicedLabels([LabelFiles([*specs.values()], keys, comparable) for specs, keys in files.label_files])
    if judge is not None:
        check_judge(judge, str(files.dataset), (len(query), len(database)), affinity)
        affinity = judge.affinity()
    affinity, ignored = files.reduced(affinity)
    packed = query, database, width, affinity
    vectors = None if judge is None else features_of(judge)
    ranking = HammingRanking(*packed, vectors)
    if cluster is not None:
        ranking = RankingOnWorkers(*packed, vectors, cluster=cluster, on_progress=on_progress)
    return OwnCodes(Problem.of_ranking(ranking), width, judge, "", ignored=ignored)


def read_packed(files: OwnFiles, sizes: Sequence[tuple[int, ...]] = ()) -> tuple[AnyArray, AnyArray, int]:
    """Read and pack codes, or read outputs before the sign; ``sizes`` of queries and database may be their counts."""
    distance, n_bits = files.distance, files.n_bits
    for option, value in (("--bits", n_bits), ("--bit-order", files.bit_order), ("--encoding", files.encoding)):
        if distance in ("cosine", "dot") and value is not None:
            raise HashbenchError(f"--distance {distance} ranks real-valued outputs, which have no {option}; drop it.")
    query = read_codes(files.query_codes, n_bits)
    shards = find_shards(files.database_codes)
    database = ShardedArray(shards, CODE_KEYS)[:] if shards else read_codes(files.database_codes, n_bits)
    for spec, codes, size in zip((files.query_codes, files.database_codes), (query, database), sizes, strict=False):
        refuse_transposed(codes, spec, size)
    are_tables = all(codes.ndim == 2 and codes.dtype.kind not in "USO" for codes in (query, database))
    if n_bits is None and are_tables and query.shape[1] != database.shape[1]:
        raise HashbenchError(
            f"query codes in {files.query_codes} have {query.shape[1]} columns and database codes in "
            f"{files.database_codes} {database.shape[1]}; both need the same length."
        )
    if distance == "hamming":
        return as_packed_pair(query, database, n_bits, files.bit_order, files.encoding)
    if distance == "jaccard":
        query, database = bits_or_counts(query, database, n_bits, files.bit_order, files.encoding)
    return query, database, query.shape[-1] if query.ndim else 1


Labelled = tuple[ByteArray, ByteArray, int, IntArray]


def read_labelled(files: OwnFiles, path: Path) -> Labelled:
    """Read packed codes, their length, and labelled pairs of ids in the files of codes or of row numbers."""
    query, database, n_bits = read_packed(files)
    specs = (files.query_codes, query), (files.database_codes, database)
    return query, database, n_bits, read_pairs(path, [read_ids(spec, len(codes)) for spec, codes in specs])


def in_order_of(first: Labelled, other: Labelled) -> Labelled:
    """Return the other codes of the same labelled pairs in the rows of the first, whatever the order of their ids."""
    of_first, rows = first[:2], first[3]
    n_bits, other_rows = other[2:]
    are_same = np.array_equal(of_first[0], of_first[1])
    roles = ([0, 1], [0, 1]) if are_same else ([0], [1])  # columns of pairs with rows of the codes
    moved = []
    for codes, place, columns in zip(other[:2], of_first, roles, strict=True):
        target = np.zeros((len(place), codes.shape[1]), dtype=np.uint8)
        target[rows[:, columns]] = codes[other_rows[:, columns]]
        moved.append(target)
    return moved[0], moved[1], n_bits, rows


def check_judge(dataset: Dataset, spec: str, counts: tuple[int, int], relevance: Affinity | None) -> None:
    """Refuse other counts of codes than a dataset has items, and labels that rate items differently."""
    expected = len(dataset.query), len(dataset.database)
    if counts != expected:
        raise HashbenchError(
            f"there are codes of {counts[0]:,} queries and {counts[1]:,} database items, but {spec} has "
            f"{expected[0]:,} and {expected[1]:,}. Pass one code per item, in the order of its split "
            f"(hashbench info {spec})."
        )
    if relevance is not None:
        check_rating(dataset, spec, relevance)


def names_own_relevance(own: Mapping[str, Any]) -> bool:
    """Return whether fields of `OwnFiles` say what is relevant by the user's own labels or affinity."""
    return any(own.get(key) is not None for key in ("query_labels", "database_labels", "affinity"))


def judge_of(saving: Saving, own: Mapping[str, Any]) -> str | None:
    """Return the dataset that says what is relevant to codes to be saved; None if their own labels or affinity do."""
    return None if names_own_relevance(own) and not names_dataset(saving.dataset) else saving.dataset


def names_dataset(spec: str) -> bool:
    """Return whether this is a dataset file, or the name of a known or prepared dataset."""
    is_file = Path(spec).suffix.lower() in HDF5_SUFFIXES
    return is_file or is_known(spec.partition(":")[0]) or dataset_path(spec).is_file()


def check_rating(dataset: Dataset, spec: str, relevance: Affinity) -> None:
    """Refuse labels or an affinity that rate any query and item differently from a dataset, given as ``spec``."""
    affinity = dataset.affinity()
    check_rated((affinity.n_queries, affinity.n_database), (relevance.n_queries, relevance.n_database))
    for columns in chunks(0, affinity.n_database, _RATED_ITEMS):
        own, expected = (source.part(slice(None), columns) for source in (relevance, affinity))
        for rows in chunks(0, affinity.n_queries, _RATED_QUERIES):
            own_levels, levels = (part.block(rows, slice(0, part.n_database)) for part in (own, expected))
            if (own_levels == levels).all():
                continue
            query, item = np.argwhere(own_levels != levels)[0]
            raise HashbenchError(
                f"your labels or affinity give query {rows.start + query:,} and database item "
                f"{columns.start + item:,} (counted from 0) level {own_levels[query, item]}, but {spec} gives them "
                f"level {levels[query, item]}: they are of other items, in another order, or not by its rule, "
                f"{dataset.rule}. Pass codes and labels in the order of its split (hashbench info {spec}), or leave "
                "yours out."
            )


def comparable(labels: Iterable[AnyArray], specs: Iterable[str], counts: tuple[int, int]) -> list[AnyArray]:
    """Bring labels of queries and database, whole or in part, into the form that an affinity takes.

    A column or row of classes becomes one-dimensional.
    """
    arrays = []
    for array, spec, n_items in zip(labels, specs, counts, strict=True):
        if array.ndim == 2 and 1 in array.shape and array.size == n_items:  # as in MATLAB
            array = array.ravel()
        refuse_transposed(array, spec, (n_items,))
        refuse_nameless(array, spec, n_items)
        if array.dtype.kind == "O" and array.ndim:  # an empty cell among words is not a class
            check_labelled(array, spec)
        arrays.append(array)
    return arrays


def _read_vectors(files: OwnFiles) -> Vectors | None:
    if files.vectors is None:
        if files.true_distance is not None:
            raise HashbenchError("--true-distance is the distance between --vectors; add these, or leave it out.")
        return None
    if files.distance != "hamming":
        raise HashbenchError(
            f"--vectors re-rank items near in Hamming distance, which --distance {files.distance} does not use; leave "
            "them out."
        )
    if files.dataset is not None:
        raise HashbenchError("--dataset re-ranks by its own features; leave out --vectors.")
    query, database = map(read_features, files.vectors)
    return Vectors(query, database, files.true_distance or "euclidean")


def _read_outputs(files: OwnFiles, shape: tuple[int, int]) -> FloatArray:
    if files.distance != "hamming":
        raise HashbenchError(
            f"--query-outputs are compared with binary codes, which --distance {files.distance} does not take; leave "
            "one out."
        )
    return as_outputs(read_array(str(files.query_outputs), FEATURE_KEYS), shape)


def _digest_of_words(*arrays: AnyArray) -> str:
    """Compute a digest of ids or groups, numbers or words, whatever their dtype."""
    return sha256("\n\n".join("\n".join(map(str, array.tolist())) for array in arrays).encode()).hexdigest()[:16]


def _fingerprint(content: dict[str, Any]) -> str:
    """Compute a digest of labels or an affinity that does not depend on file format, sparsity or dtype.

    Levels that are not whole count as float32.
    """
    digest = sha256()
    for name, array in content.items():
        if name == "affinity":  # as CSR
            if is_sparse(array):
                matrix = summed_csr(array)
                matrix.eliminate_zeros()
                matrix.sort_indices()
                parts = [np.array(matrix.shape), matrix.data, matrix.indices, matrix.indptr]
            else:
                rows, columns = np.nonzero(array)
                ends = np.cumsum(np.bincount(rows, minlength=len(array)))
                parts = [np.array(array.shape), array[rows, columns], columns, np.append(0, ends)]
        else:
            parts = [array]
        for part in parts:
            dtype = "<f4" if part.dtype.kind == "f" and (part % 1).any() else "<i8"
            digest.update(f"{name}:{part.shape};".encode() + np.ascontiguousarray(part, dtype).tobytes())
    return digest.hexdigest()[:16]


# ---------------------------------------------------------------- two codes of the same items


@dataclass(frozen=True, eq=False)
class TwoCodes:
    """Packed codes of queries and database, (n, ceil(n_bits / 8)), and other codes of the same items."""

    queries: dict[str, ByteArray]  # ``THESE`` and ``OTHER``
    database: dict[str, ByteArray]
    n_bits: int
    names: tuple[str, str]  # the files of both
    own: OwnCodes | None = None  # these, with what is relevant to them, if that is known

    @classmethod
    def of(cls, these: Packed, others: Packed, names: tuple[str, str], own: OwnCodes | None) -> Self:
        """Return two codes, each given by its queries, database and length; refuse those of other items or lengths."""
        (query, database, n_bits), (other_query, other_database, n_other_bits) = these, others
        check_same(len(query), n_bits, len(other_query), n_other_bits, "query ")
        check_same(len(database), n_bits, len(other_database), n_other_bits, "database ")
        queries, items = {THESE: query, OTHER: other_query}, {THESE: database, OTHER: other_database}
        return cls(queries, items, n_bits, names, own)

    def drifts(self) -> dict[str, Drift]:
        """Count the bits that differ, by role; queries that are the database are counted once, as ``items``."""
        roles = {"queries": self.queries, "database": self.database}
        if all(np.array_equal(self.queries[which], self.database[which]) for which in (THESE, OTHER)):
            roles = {"items": self.database}
        return {role: drift_packed(codes[THESE], codes[OTHER], self.n_bits) for role, codes in roles.items()}

    def evaluations(
        self, metrics: Sequence[str], undefined: Undefined, on_progress: Progress = silent
    ) -> Iterator[tuple[tuple[str, str], Evaluation]]:
        """Score queries of these and of the other codes in a database of each; none if nothing is known as relevant."""
        if self.own is None:
            return
        chosen = [get_metric(name) for name in metrics]
        for metric in chosen:
            if metric.form:
                raise HashbenchError(
                    f"two codes are compared by Hamming distance, got metric {metric.name}; leave :{metric.form} out."
                )
        for of_queries, query in self.queries.items():
            for of_database, database in self.database.items():
                problem = self.own.with_codes(query, database, self.n_bits).problem
                yield (of_queries, of_database), problem.evaluate(metrics, undefined=undefined, on_progress=on_progress)
                metrics = [metric.name for metric in chosen]  # one note on each spelling


def read_two_files(path: Path, other: Path, dataset: str) -> TwoCodes:
    """Read two codes files of hashbench and their dataset."""
    own, others = read_file(path, dataset), read_file(other, dataset_of(other, dataset))
    these, other_codes = map(_packed, (own, others))
    names = (path.name, other.name) if path.name != other.name else (str(path), str(other))
    return TwoCodes.of(these, other_codes, names, own)


def read_two_own(files: OwnFiles, other: str) -> TwoCodes:
    """Read a user's own codes, with what is relevant to them if that is known, and other ones; see `other_files`."""
    others = other_files(files, other)
    refuse_other_ids([[files.query_codes], [others.query_codes]])
    refuse_other_ids([[files.database_codes], [others.database_codes]])
    own = read_own(files) if files.needs_relevance else None
    these = read_packed(files) if own is None else _packed(own)
    if own is not None and files.exclude_self:
        codes = own.problem.codes
        rows = np.arange(codes.n_queries)  # as ids, since queries of one code meet a database of the other
        rest, _ = replace(files, exclude_self=False).reduced(codes.relevance.plain)
        problem = Problem.of_ranking(replace(codes, relevance=leave_out(rest, exclude_same_id=(rows, rows))))
        own = replace(own, problem=problem)
    first, second = (str(split_spec(of.database_codes)[0]) for of in (files, others))
    names = (first, second) if first != second else (files.database_codes, others.database_codes)
    return TwoCodes.of(these, read_packed(others), names, own)


def _packed(own: OwnCodes) -> Packed:
    codes = own.problem.codes
    return codes.query, np.asarray(codes.database[:]), codes.n_bits


def other_files(files: OwnFiles, other: str) -> OwnFiles:
    """Find the files of other codes: of the same names in a folder, or one file in the place of a user's own file."""
    place, other_key = split_spec(other)
    if not place.exists():
        raise HashbenchError(f"there is no file or folder {place}; give the other codes of the same items.")
    specs = []
    for spec in (files.query_codes, files.database_codes):
        path, key = split_spec(spec)
        file, key = place / path.name if place.is_dir() else place, other_key or key
        specs.append(f"{file}:{key}" if key else str(file))
    if specs[0] == specs[1] and files.query_codes != files.database_codes:
        raise HashbenchError(
            f"{specs[0]} would be the other codes of both queries and database. Give a folder that holds them in files "
            f"named like yours, {Path(files.query_codes).name} and {Path(files.database_codes).name}."
        )
    return replace(files, query_codes=specs[0], database_codes=specs[1])

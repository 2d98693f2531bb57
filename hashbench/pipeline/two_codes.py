"""Two codes of the same items, such as before and after an upgrade: how far they differ, and which scores higher."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from hashbench._typing import ByteArray, Progress, silent
from hashbench.errors import HashbenchError
from hashbench.pipeline.own_codes import OwnCodes, OwnFiles, dataset_of, read_file, read_own, read_packed
from hashbench.scoring.code_statistics import Drift, check_same, drift_packed
from hashbench.scoring.evaluation import Evaluation
from hashbench.scoring.ignored import leave_out
from hashbench.scoring.metrics import get_metric
from hashbench.scoring.problem import Problem
from hashbench.sources.array_files import split_spec
from hashbench.sources.pair_files import refuse_other_ids

THESE, OTHER = "these", "other"
Packed = tuple[ByteArray, ByteArray, int]  # codes of queries and database, and their length


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
        self, metrics: Sequence[str], undefined: str, on_progress: Progress = silent
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

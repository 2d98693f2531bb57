"""Users' own codes of several lengths and seeds, in files whose names hold {bits} and {seed}."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from glob import escape, glob
from typing import NamedTuple

from hashbench._typing import Progress, silent
from hashbench.errors import HashbenchError
from hashbench.pipeline.own_codes import OwnCodes, OwnFiles, Saving, read_own, read_packed
from hashbench.scoring.evaluation import DEFAULT_METRICS, Evaluation
from hashbench.scoring.metrics import checked_metrics
from hashbench.sources.array_files import split_spec
from hashbench.sources.pair_files import refuse_other_ids

_PLACE = re.compile(r"\{(bits|seed)\}")
_Numbers = tuple[tuple[str, int], ...]  # such as (("bits", 32), ("seed", 0))


class Pair(NamedTuple):
    """Files of codes of queries and database, and what their names say."""

    query: str
    database: str
    n_bits: int | None
    seed: int | None


def names_several(spec: str) -> bool:
    """Return whether {bits} or {seed} stand for numbers in the name of a file, ``FILE`` or ``FILE:KEY``."""
    path, _ = split_spec(spec)
    return bool(_PLACE.search(str(path))) and not path.exists()


def find_pairs(query: str, database: str) -> list[Pair]:
    """List the files that two names with {bits} and {seed} stand for, by length and seed."""
    query_files, database_files = _found(query), _found(database)
    for numbers in sorted(query_files.keys() ^ database_files.keys()):
        spec, other = query_files.get(numbers), database
        if spec is None:
            spec, other = database_files[numbers], query
        raise HashbenchError(f"{spec} has no counterpart among {other}. Add that file, or move this one away.")
    return [
        Pair(query_files[numbers], database_files[numbers], dict(numbers).get("bits"), dict(numbers).get("seed"))
        for numbers in sorted(query_files)
    ]


def missing_seeds(pairs: Sequence[Pair]) -> list[str]:
    """Report the code lengths without files of a seed that other lengths have."""
    notes = []
    for n_bits in sorted({pair.n_bits for pair in pairs if pair.n_bits is not None}):
        lacking = {pair.seed for pair in pairs} - {pair.seed for pair in pairs if pair.n_bits == n_bits}
        seeds = ", ".join(map(str, sorted(seed for seed in lacking if seed is not None)))
        notes += [f"{n_bits} bits: there is no file of seed {seeds}, which other lengths have."] if seeds else []
    return notes


def _found(spec: str) -> dict[_Numbers, str]:
    """Return the files that a name stands for, by the numbers in their names."""
    path, key = split_spec(spec)
    if not names_several(spec):
        return {(): spec}
    texts, names = _PLACE.split(str(path))[::2], _PLACE.findall(str(path))
    groups = [f"(?P={name})" if name in names[:at] else f"(?P<{name}>[0-9]+)" for at, name in enumerate(names)]
    pattern = re.compile("".join(f"{re.escape(text)}{group}" for text, group in zip(texts, [*groups, ""], strict=True)))
    found: dict[_Numbers, str] = {}
    for file in sorted(glob("*".join(map(escape, texts)))):  # noqa: PTH207 - a pattern may be absolute
        match = pattern.fullmatch(file)
        if match is None:
            continue
        written = match.groupdict()
        if key is not None:
            parts = _PLACE.split(key)
            parts[1::2] = [written.get(name, f"{{{name}}}") for name in parts[1::2]]
            file += f":{''.join(parts)}"
        if int(written.get("seed", 0)) >= 2**32:
            raise HashbenchError(f"{file} names seed {written['seed']}, expected 0 to {2**32 - 1}. Rename it.")
        other = found.setdefault(tuple((name, int(number)) for name, number in sorted(written.items())), file)
        if other != file:
            raise HashbenchError(f"{other} and {file} have the same numbers in their names. Rename one of them.")
    if not found:
        raise HashbenchError(f"no file matches {path}, in which {{bits}} and {{seed}} are numbers. Fix the name.")
    return found


def evaluate_each(
    files: OwnFiles,
    pairs: Sequence[Pair],
    saving: Saving,
    metrics: Sequence[str],
    check: Callable[[OwnCodes, Saving], None],
    on_progress: Progress = silent,
) -> list[tuple[OwnCodes, Saving, Evaluation]]:
    """Score the codes of each pair of files, after a ``check`` that they can be saved; labels are read once."""
    for option, value, place in (("--bits", files.n_bits, pairs[0].n_bits), ("--seed", saving.seed, pairs[0].seed)):
        if value and place is not None:
            name = f"{{{option[2:]}}}"
            raise HashbenchError(f"{option} {value} does not go with {name} in the names of files; leave one out.")
    if saving.draws_nothing and pairs[0].seed is not None:
        raise HashbenchError("--draws-nothing does not go with {seed} in the names of files; leave one out.")
    checked_metrics(metrics, "skip")
    scored: list[tuple[OwnCodes, Saving, Evaluation]] = []
    for number, pair in enumerate(pairs, start=1):
        codes = _read(files, pair, pairs[0], scored[0][0] if scored else None)
        codes.check_metrics(metrics)
        with _naming(pair):
            if pair.n_bits not in (None, codes.n_bits):
                raise HashbenchError(
                    f"outputs have {codes.n_bits} columns, and the name says {pair.n_bits} bits. Rename it."
                )
            of_codes = saving if pair.seed is None else replace(saving, seed=pair.seed)
            check(codes, of_codes)
            scored.append((codes, of_codes, codes.problem.evaluate(metrics)))
        if metrics is not DEFAULT_METRICS:
            metrics = [metric.name for metric in checked_metrics(metrics, "skip")]  # one note on each spelling
        if len(pairs) > 1:
            on_progress("files", number, len(pairs))
    return scored


def _read(files: OwnFiles, pair: Pair, first_pair: Pair, first: OwnCodes | None) -> OwnCodes:
    """Read codes; what is relevant to them is that of the first, if there is one."""
    n_bits = files.n_bits if pair.n_bits is None or files.distance != "hamming" else pair.n_bits
    files = replace(files, query_codes=pair.query, database_codes=pair.database, n_bits=n_bits)
    if first is None:
        return read_own(files, _naming(pair))
    counts = first.problem.ranking.n_queries, first.problem.ranking.n_items
    with _naming(pair):
        for specs in zip(first_pair[:2], pair[:2], strict=True):
            refuse_other_ids([spec] for spec in specs)
        query, database, length = read_packed(files, [(count,) for count in counts])
        if (len(query), len(database)) != counts:
            raise HashbenchError(
                f"there are codes of {len(query):,} queries and {len(database):,} database items, and in the files "
                f"before of {counts[0]:,} and {counts[1]:,}. All need the same items."
            )
    return first.with_codes(query, database, length)


@contextmanager
def _naming(pair: Pair) -> Iterator[None]:
    """Begin errors with the names of the files, if these stand for several."""
    if pair[2:] == (None, None):
        yield
        return
    paths = dict.fromkeys(str(split_spec(spec)[0]) for spec in (pair.query, pair.database))
    try:
        yield
    except HashbenchError as error:
        raise HashbenchError(f"{' and '.join(paths)}: {error}") from error

"""The grammar of metric names, and the register of the functions behind them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hashbench import registry
from hashbench._typing import FloatArray
from hashbench._validation import MAX_NAME
from hashbench.errors import HashbenchError, unknown_name
from hashbench.scoring.histogram import TieHistogram


class Scores(NamedTuple):
    """One metric's values for some queries.

    Parameters
    ----------
    mean : ndarray of shape (n_queries,), float64
        Expectation over all orders of tied items.
    low, high : ndarray of shape (n_queries,), float64
        Minimum and maximum over all orders of tied items, each query on its own.
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray


@dataclass(frozen=True)
class Family:
    """A metric up to its cutoff and option.

    Parameters
    ----------
    pattern : str
        Such as ``AP@k``: cutoff ``k`` counts items, ``rN`` is a Hamming radius.
    function : callable
        Takes a histogram, the cutoff if there is one, the option if there are any; gives `Scores`.
    options : tuple of str
        The choices behind the colon, the default first.
    source : str
        Where the definition comes from.
    paper_value : float
        The value of a query without relevant items under ``undefined="paper"``.
    needs_buckets : bool
        Whether it asks for ``TieHistogram.largest_bucket``.
    needs_candidates : bool
        Whether it asks for ``TieHistogram.candidates``, and so for float vectors.
    """

    pattern: str
    function: Callable[..., Scores]
    options: tuple[str, ...]
    source: str
    paper_value: float
    needs_buckets: bool = False
    needs_candidates: bool = False

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def aliases(self) -> list[str]:
        """Other patterns of the same metric, such as ``Recall@k``."""
        stem, at, cutoff = self.pattern.partition("@")
        return [alias + at + cutoff for alias, name in ALIASES.items() if name == stem]


ALIASES = {"Recall": "R", "Precision": "P", "MRR": "RR", "mAP": "AP", "MAP": "AP", "nDCG": "NDCG"}
FAMILIES: dict[str, Family] = {}


def register_metric(
    pattern: str,
    *,
    source: str,
    options: tuple[str, ...] = (),
    paper_value: float = 0.0,
    needs_buckets: bool = False,
    needs_candidates: bool = False,
) -> Callable[[Callable[..., Scores]], Callable[..., Scores]]:
    """Register a function as a metric.

    Parameters
    ----------
    pattern, source, options, paper_value, needs_buckets, needs_candidates
        See `Family`.

    Returns
    -------
    callable
        A decorator that leaves the function as it is.

    Raises
    ------
    HashbenchError
        If the pattern is none, or the metric of another module.
    """
    if not _PATTERN.fullmatch(pattern):
        raise HashbenchError(f"a metric is called {pattern!r}, expected letters, then @k or @rN if it has a cutoff.")

    def enter(function: Callable[..., Scores]) -> Callable[..., Scores]:
        known = FAMILIES.get(pattern)
        if known is not None and known.function.__module__ != function.__module__:
            claims = f"{known.function.__module__} and by {function.__module__}"
            raise HashbenchError(f"metric {pattern!r} is claimed by {claims}; rename one.")
        FAMILIES[pattern] = Family(pattern, function, options, source, paper_value, needs_buckets, needs_candidates)
        return function

    return enter


@dataclass(frozen=True)
class Metric:
    """A metric with its cutoff and option, ready to score.

    Parameters
    ----------
    name : str
        The canonical name: a default option is left out.
    family : Family
        What it is a case of.
    arguments : tuple
        Cutoff, number of items re-ranked and option, as far as the family's function takes them.
    """

    name: str
    family: Family
    arguments: tuple[int | str, ...] = ()

    def scores(self, histogram: TieHistogram, undefined: str = "skip") -> Scores:
        """Score every query of a histogram.

        Parameters
        ----------
        histogram : TieHistogram
            Counts of the database per query, level and tie group.
        undefined : {"skip", "paper"}, default="skip"
            A query without relevant items scores NaN, or the TALR code's convention.

        Returns
        -------
        Scores
            Arrays of shape (n_queries,).

        Raises
        ------
        HashbenchError
            If the metric needs Hamming distances and the ranking is real-valued, or float vectors and there are none.
        """
        if self.family.needs_candidates and histogram.candidates is None:
            raise self.lacks_vectors()
        if self.family.pattern.endswith("@rN") and not histogram.by_radius:
            raise HashbenchError(f"{self.name} counts inside a Hamming radius, which a real-valued ranking has not.")
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 where nothing is relevant
            scores = self.family.function(histogram, *self.arguments)
        value = np.nan if undefined == "skip" else self.family.paper_value
        is_defined = histogram.n_relevant > 0
        return Scores(*(np.where(is_defined, part, value) for part in scores))

    @property
    def is_built_in(self) -> bool:
        """Whether it is hashbench's own, whose code is part of what scores are kept by."""
        return self.family.function.__module__.startswith("hashbench.")

    def lacks_vectors(self) -> HashbenchError:
        """Say that there is nothing to re-rank by."""
        return HashbenchError(
            f"{self.name} re-ranks items near in Hamming distance by the float vectors that were coded, and there are "
            "none here; give those of queries and database."
        )


_PATTERN = re.compile(r"[A-Za-z]+(@k|@rN)?(:reranked=m)?")
_LARGEST_CUTOFF = 1 << 40  # beyond any database, and safe in int64
_NAME = re.compile(
    r"(?P<stem>[A-Za-z]+)(@(?P<radius>r)?(?P<cutoff>\d+))?(:(?P<option>[a-z]+))?(?P<reranked>:reranked=(?P<n_reranked>\d+))?"
)


def get_metric(name: str) -> Metric:
    """Find the metric of a name.

    Parameters
    ----------
    name : str
        ``NAME[@cutoff][:option][:reranked=m]``, such as ``AP``, ``NDCG@100``, ``P@r2``, ``AP@1000:relevant`` or
        ``Recall@10:reranked=100``.

    Returns
    -------
    Metric
        Ready to score.

    Raises
    ------
    HashbenchError
        If there is no such metric, cutoff or option.
    """
    if len(name) > MAX_NAME:
        raise HashbenchError(f"metric {name[:20]!r}... has {len(name):,} characters, at most {MAX_NAME} are read.")
    if name in FAMILIES and name[-1] in "kN" and "@" in name:
        raise HashbenchError(f"metric {name!r} lacks its cutoff; put a number for {name[-1]}, such as {name[:-1]}2.")
    if name in FAMILIES and name.endswith("=m"):
        example = name.replace("@k", "@10").replace("=m", "=100")
        raise HashbenchError(f"metric {name!r} lacks its cutoffs; put numbers for k and m, such as {example}.")
    match = _NAME.fullmatch(name)
    if match is None:
        raise unknown_name("metric", name, FAMILIES)
    stem = ALIASES.get(match["stem"], match["stem"])
    cutoff = "" if match["cutoff"] is None else "@rN" if match["radius"] else "@k"
    if stem + cutoff not in FAMILIES:
        registry.import_metrics()
    family = FAMILIES.get(stem + cutoff)
    if family is None and not cutoff and f"{stem}@k" in FAMILIES:
        raise HashbenchError(f"metric {name!r} needs a cutoff, such as {stem}@100.")
    if family is None:
        raise unknown_name("metric", name, FAMILIES, like=stem + cutoff)
    if match["reranked"]:
        family = _reranked(name, family)
    arguments: list[int | str] = []
    canonical = stem
    if cutoff:
        value = int(match["cutoff"])
        if cutoff == "@k" and value < 1:
            raise HashbenchError(f"metric {name!r} has cutoff {value}; a cutoff counts items, 1 or more.")
        arguments.append(min(value, _LARGEST_CUTOFF))
        canonical += f"@{match['radius'] or ''}{value}"
    if match["reranked"]:
        n_reranked = int(match["n_reranked"])
        if n_reranked < value:
            raise HashbenchError(
                f"metric {name!r} scores {value} items of {n_reranked} that are re-ranked; re-rank as many or more."
            )
        arguments.append(min(n_reranked, _LARGEST_CUTOFF))
    option = match["option"]
    if match["reranked"] and family.options and not option:  # it is another default than without re-ranking: tell it
        option = family.options[0]
    if option:
        if option not in family.options:
            known = ", ".join(family.options) or "none"
            raise HashbenchError(f"metric {name!r} has option {option!r}; {family.pattern} knows: {known}.")
        arguments.append(option)
        if option != family.options[0] or match["reranked"]:
            canonical += f":{option}"
    if match["reranked"]:
        canonical += f":reranked={n_reranked}"
    return Metric(canonical, family, tuple(arguments))


def _reranked(name: str, family: Family) -> Family:
    """Find the family that scores the re-ranked candidates."""
    pattern = f"{family.pattern}:reranked=m"
    if pattern not in FAMILIES:
        known = ", ".join(other for other in metric_names() if other.endswith("=m"))
        raise HashbenchError(f"metric {name!r}: {family.pattern} does not score re-ranked candidates; {known} do.")
    return FAMILIES[pattern]


def metric_names() -> list[str]:
    """List the patterns of all metrics, built-in and third-party, such as ``AP@k``, sorted."""
    registry.import_metrics()
    return sorted(FAMILIES)

"""The grammar of metric names, and the registry of their functions."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from hashbench import registry
from hashbench._choices import UNDEFINED
from hashbench._plugins import same_folder
from hashbench._typing import AnyArray, FloatArray
from hashbench._validation import MAX_NAME, check_choice, refuse_fractions
from hashbench.errors import HashbenchError, one_line, unknown_name
from hashbench.scoring.histogram import TieHistogram, original_of

T = TypeVar("T")

_ROUNDING = 1e-9  # of scores


class Scores(NamedTuple):
    """One metric's values for some queries.

    Parameters
    ----------
    mean : ndarray of shape (n_queries,), float64
        Expectation over all orders of tied items.
    low, high : ndarray of shape (n_queries,), float64
        Minimum and maximum over all orders of tied items, each query on its own.
    tie_sd : ndarray of shape (n_queries,), float64
        Standard deviation over all orders of tied items, equally likely; NaN, the default, if it is not known.

    Examples
    --------
    One relevant and one irrelevant item in one tie:

    >>> get_metric("AP").scores(TieHistogram.from_pairs([[0, 0]], [[1, 0]], n_bits=1))
    Scores(mean=array([0.75]), low=array([0.5]), high=array([1.]), tie_sd=array([0.25]))
    """

    mean: FloatArray
    low: FloatArray
    high: FloatArray
    tie_sd: FloatArray = np.array(np.nan)

    @classmethod
    def without_ties(cls, value: FloatArray) -> Self:
        """Return the scores of a metric that has the same value in every order of tied items."""
        return cls(value, value, value, 0 * value)  # NaN of NaN


class Slopes(NamedTuple):
    """How scores follow the order inside ties: what random keys, uniform on [0, 1], of the items explain.

    A random order ranks tied items by such keys. The covariance of a query's score and the key of an item is
    ``(gain - mean gain of its tie) * slope`` (docs/explanation/mean-over-queries.md).

    Parameters
    ----------
    slope : ndarray of shape (n_queries, n_groups), float64
        Of each tie: the sum over places k of v_k (k - (n + 1) / 2), over n^2 - 1, for a tie of n items; v_k is what a
        unit of gain at place k adds to the score. 0 where the order inside the tie changes nothing.
    gains : ndarray of shape (n_levels,), float64
        Of each level; for binary metrics 0, and 1 above level 0.

    Examples
    --------
    One relevant and one irrelevant item in one tie; P@1 is 1 if the relevant one comes first:

    >>> get_metric("P@1").slopes(TieHistogram.from_pairs([[0, 0]], [[1, 0]], n_bits=1))
    Slopes(slope=array([[-0.16666667,  0.        ]]), gains=array([0., 1.]))
    """

    slope: FloatArray
    gains: FloatArray

    @classmethod
    def of_relevance(cls, slope: FloatArray, histogram: TieHistogram) -> Self:
        """Return the slopes of a metric that reads levels as relevant or not."""
        return cls(slope, (histogram.levels > 0).astype(np.float64))


@dataclass(frozen=True)
class Family:
    """A metric up to its cutoff and option; see `register_metric`."""

    pattern: str
    function: Callable[..., Scores]
    options: tuple[str, ...]
    source: str
    paper_value: float
    needs_buckets: bool = False
    needs_candidates: bool = False
    is_error: bool = False
    slopes: Callable[..., Slopes] | None = None
    takes_real_levels: bool = False

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def aliases(self) -> list[str]:
        """Other patterns of the same metric, such as ``Recall@k``."""
        stem, at, cutoff = self.pattern.partition("@")
        return [alias + at + cutoff for alias, name in ALIASES.items() if name == stem]

    @property
    def facts(self) -> dict[str, Any]:
        """What it is, as plain values."""
        return {"summary": self.summary, "options": self.options, "also": self.aliases, "source": self.source}


ALIASES = {
    "Recall": "R",
    "Precision": "P",
    "MRR": "RR",
    "CMC": "Hit",
    "Hits": "Hit",
    "HitRate": "Hit",
    "Success": "Hit",
    "mAP": "AP",
    "MAP": "AP",
    "nDCG": "NDCG",
}
TREC_NAMES = {  # of trec_eval, with the metric that equals each
    "map": "AP",
    "map_cut_k": "AP@k:relevant",
    "ndcg": "NDCG:trec",
    "ndcg_cut_k": "NDCG@k:trec",
    "P_k": "P@k",
    "recall_k": "R@k",
    "recip_rank": "RR",
    "Rprec": "RPrec",
    "success_k": "Hit@k",
}
_OPTIONS_OF_RUNS = {"NDCG": "trec", "NDCG@k": "trec"}  # the defaults there, by pattern
_DIVISORS = {"AP@k:relevant": "in trec_eval it is {}", "AP@k:capped": "in sentence-transformers {}"}
_LINEAR = "in trec_eval and scikit-learn it is {}"
_ELSEWHERE = {  # spellings that have another meaning in use: the metrics that they are there
    "Recall@k": {"Hit@k": "in metric learning it is {}"},
    "Hits@k": {"R@k": "in link prediction, which ranks relevant items one by one, {} comes nearest"},
    "mAP@k": _DIVISORS,
    "MAP@k": _DIVISORS,
    "nDCG": {"NDCG:trec": _LINEAR},
    "nDCG@k": {"NDCG@k:trec": _LINEAR},
}
_EXPONENTIAL = "in hashing papers it is {}"
_ELSEWHERE_OF_RUNS = _ELSEWHERE | {  # the same in runs, where others use hashbench's own names too
    "AP@k": _DIVISORS,
    **{stem: {"NDCG:exponential": _EXPONENTIAL} for stem in ("NDCG", "nDCG")},
    **{f"{stem}@k": {"NDCG@k:exponential": _EXPONENTIAL} for stem in ("NDCG", "nDCG")},
}
_IN_WORDS = {  # metrics that share a spelling
    "R@k": "share of the relevant items found",
    "Hit@k": "any relevant item found",
    "AP@k": "divided by the relevant items in the first k",
    "AP@k:relevant": "divided by all relevant items",
    "AP@k:capped": "divided by k at most",
    "NDCG": "gain 2^level - 1",
    "NDCG:trec": "gain level",
}
_OTHER_TREC_NAMES = {  # that no metric equals: what they are, and the nearest
    "11pt_avg": "averages interpolated precision at eleven recalls; the nearest metric is AP",
    "bpref": "leaves out documents that are not judged; the nearest metric is AP, where they are irrelevant",
    "gm_map": "is the geometric mean of AP over queries; AP has the arithmetic one",
    "infAP": "estimates AP from a sample of judgements; AP takes what is not judged as irrelevant",
    "iprec_at_recall": "is interpolated precision at a recall; the nearest metric is P@k",
    "relative_P": "divides by the most that k documents can hold, min(k, R); the nearest metrics are P@k and R@k",
    "Rprec_mult": "cuts at multiples of R; RPrec cuts at R",
    "set_F": "combines precision and recall of the whole list; the nearest metrics are P@k and R@k",
    "set_map": "is precision times recall of the whole list; the nearest metric is AP",
    "set_P": "is the precision of the whole list; P@k is that of its first k documents",
    "set_recall": "is the recall of the whole list; R@k is that, with the length of the longest list as k",
}
FAMILIES: dict[str, Family] = {}


def register_metric(
    pattern: str,
    *,
    source: str,
    options: tuple[str, ...] = (),
    paper_value: float = 0.0,
    needs_buckets: bool = False,
    needs_candidates: bool = False,
    is_error: bool = False,
    slopes: Callable[..., Slopes] | None = None,
    takes_real_levels: bool = False,
) -> Callable[[Callable[..., Scores]], Callable[..., Scores]]:
    """Register a function of a histogram, the cutoff and the option, if there are any, to `Scores` as a metric.

    Parameters
    ----------
    pattern : str
        Such as ``AP@k``: cutoff ``k`` counts items, ``rN`` is a Hamming radius.
    source : str
        The source of the definition.
    options : tuple of str
        The choices after the colon, the default first.
    paper_value : float
        The value of a query without relevant items under ``undefined="paper"``.
    needs_buckets : bool
        Whether it needs ``TieHistogram.largest_bucket``.
    needs_candidates : bool
        Whether it needs ``TieHistogram.candidates``, and so float vectors.
    is_error : bool
        Whether less is better.
    slopes : callable, optional
        Function of the same arguments to `Slopes`. Without it the estimate of the deviation of the mean adds up the
        queries' own deviations, and its lower bound is 0.
    takes_real_levels : bool
        Whether ``TieHistogram.levels`` may be real numbers; otherwise they are refused unless they are whole.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    HashbenchError
        If the pattern is invalid, or belongs to a metric of another module.

    Examples
    --------
    >>> @register_metric("Miss@k", source="a book", is_error=True)
    ... def miss_at(histogram, k):
    ...     mean, low, high, tie_sd = get_metric(f"P@{k}").scores(histogram)
    ...     return Scores(1 - mean, 1 - high, 1 - low, tie_sd)
    >>> get_metric("Miss@10").name
    'Miss@10'
    >>> del FAMILIES["Miss@k"]  # so that the example leaves no metric behind
    """
    match = _PATTERN.fullmatch(pattern)
    other_names = *ALIASES, *filter(str.isalpha, TREC_NAMES)
    if match is None or match[1] in other_names:
        raise HashbenchError(
            f"a metric is called {pattern!r}, expected letters, then @k, @rN or @R if it has a cutoff, and not "
            f"{', '.join(other_names)}, which are other names of built-in metrics."
        )

    def register(function: Callable[..., Scores]) -> Callable[..., Scores]:
        known = FAMILIES.get(pattern)
        if known is not None and known.function.__module__ != function.__module__:
            claims = f"{known.function.__module__} and by {function.__module__}"
            raise HashbenchError(f"metric {pattern!r} is claimed by {claims}; rename one.")
        FAMILIES[pattern] = Family(
            pattern,
            function,
            options,
            source,
            paper_value,
            needs_buckets,
            needs_candidates,
            is_error,
            slopes,
            takes_real_levels,
        )
        return function

    return register


@dataclass(frozen=True)
class Metric:
    """A metric with its cutoff and option, ready to score."""

    name: str  # canonical: without a default option
    family: Family
    arguments: tuple[int | str, ...] = ()  # cutoff, number of items re-ranked and option, as the function takes them
    form: str = ""  # how real-valued queries are compared with codes; empty for the Hamming distance
    spelling: str = field(default="", compare=False)  # the name as it was written
    elsewhere: Mapping[str, str] = field(default_factory=dict, compare=False)  # metrics that the spelling also means

    def scores(self, histogram: TieHistogram, undefined: str = "skip") -> Scores:
        """Score every query of a histogram; one without relevant items scores NaN, or as ``undefined="paper"`` has it.

        Raises HashbenchError if the metric needs Hamming distances or float vectors that the ranking lacks.
        """
        self.check_ranking(histogram.levels, by_radius=histogram.by_radius)
        if self.family.needs_candidates and histogram.candidates is None:
            raise self.lacks_vectors()
        scores = self._call(self.family.function, histogram)
        if not self.is_built_in:
            scores = self._checked(scores, histogram)
        value = {"skip": np.nan, "zero": 0.0, "paper": self.family.paper_value}[undefined]
        # With ``skip`` the function itself scores every query that has items in its ball.
        is_defined = (histogram.n_relevant > 0) | (undefined != "skip" and "skip" in self.arguments)
        mean, low, high = (np.where(is_defined, part, value) for part in scores[:3])
        return Scores(mean, low, high, np.where(low == high, 0.0, np.where(is_defined, scores.tie_sd, np.nan)))

    def slopes(self, histogram: TieHistogram) -> Slopes | None:
        """Return the `Slopes` of a histogram, 0 for queries without relevant items; None if they are not known."""
        if self.family.slopes is None:
            return None
        returned = self._call(self.family.slopes, histogram)
        slope, gains = returned if self.is_built_in else self._checked_slopes(returned, histogram)
        return Slopes(np.where(histogram.n_relevant[:, None] > 0, slope, 0.0), gains)

    def _call(self, function: Callable[..., T], histogram: TieHistogram) -> T:
        """Call a function of the metric; one of a plug-in gets arrays that it cannot write."""
        with np.errstate(invalid="ignore", divide="ignore"):  # 0 / 0 where nothing is relevant
            if self.is_built_in:
                return function(original_of(histogram), *self.arguments)
            return self._call_plugin(function, histogram.read_only())

    def _call_plugin(self, function: Callable[..., T], histogram: TieHistogram) -> T:
        try:
            with same_folder():
                return function(histogram, *self.arguments)
        except ValueError as error:
            if "read-only" not in str(error):  # the word of NumPy
                raise
            raise HashbenchError(
                f"metric {self.name!r} changes the histogram, which all metrics share: {one_line(error)}. Change a "
                "copy, such as histogram.n_rel.copy()."
            ) from error

    def _checked(self, scores: Any, histogram: TieHistogram) -> Scores:
        """Refuse scores of a plug-in that results could not hold: of another shape, out of range or of order."""
        try:
            mean, low, high, tie_sd = parts = [np.asarray(part) for part in Scores(*scores)]
        except (TypeError, ValueError):
            raise self._returned(
                f"{type(scores).__name__}, expected hashbench.plugins.Scores(mean, low, high, tie_sd)"
            ) from None
        for name, part in zip(Scores._fields, parts, strict=True):
            is_number = part is tie_sd and part.shape == ()
            self._check_floats(name, part, () if is_number else (histogram.n_queries,))
        is_defined = histogram.n_relevant > 0
        of_defined = np.stack([low, mean, high])[:, is_defined]
        if not np.isfinite(of_defined).all():
            raise self._returned("no finite score for a query with relevant items")
        if of_defined.size and not -_ROUNDING <= of_defined.min() <= of_defined.max() <= 1 + _ROUNDING:
            raise self._returned(f"scores from {of_defined.min():g} to {of_defined.max():g}, expected 0 to 1")
        if (np.diff(of_defined, axis=0) < -_ROUNDING).any():
            raise self._returned("low, mean and high out of order, expected low <= mean <= high")
        largest = np.where(is_defined, (high - low) / 2, np.inf) + _ROUNDING
        if not (np.isnan(tie_sd) | ((tie_sd >= 0) & (tie_sd <= largest))[...]).all():
            raise self._returned("a tie_sd that is negative or more than half of high - low")
        return Scores(mean, low, high, tie_sd)

    def _checked_slopes(self, slopes: Any, histogram: TieHistogram) -> Slopes:
        """Refuse slopes of a plug-in of another form or shape."""
        try:
            slope, gains = (np.asarray(part) for part in Slopes(*slopes))
        except (TypeError, ValueError):
            expected = "hashbench.plugins.Slopes(slope, gains)"
            raise self._returned(f"slopes as {type(slopes).__name__}, expected {expected}") from None
        n_queries, n_levels, n_groups = histogram.counts.shape
        self._check_floats("slope", slope, (n_queries, n_groups))
        self._check_floats("gains", gains, (n_levels,))
        return Slopes(slope, gains)

    def _check_floats(self, name: str, part: AnyArray, expected: tuple[int, ...]) -> None:
        if part.dtype.kind not in "biuf" or part.shape != expected:
            raise self._returned(f"{name} as {part.dtype} of shape {part.shape}, expected floats of {expected}")

    def _returned(self, what: str) -> HashbenchError:
        return HashbenchError(f"metric {self.name!r} returned {what}. Fix it; see hashbench check metric {self.name}.")

    @property
    def is_of_levels(self) -> bool:
        """Whether it is a mean of levels of relevance, which may be above 1; all others are from 0 to 1."""
        return self.family.pattern.partition("@")[0] in ("ACG", "WAP")

    @property
    def is_built_in(self) -> bool:
        """Whether it is built-in; its code is then part of the key of cached scores."""
        return self.family.function.__module__.startswith("hashbench.")

    def check_ranking(self, levels: AnyArray, *, by_radius: bool) -> None:
        """Refuse a ranking that lacks what the metric needs, such as Hamming distances, before items are counted."""
        if not by_radius and (self.family.needs_candidates or self.family.pattern.endswith("@rN")):
            what = "re-ranks the nearest items by" if self.family.needs_candidates else "counts inside a radius of"
            raise HashbenchError(
                f"{self.name} {what} Hamming distance, which runs and rankings by another distance do not have. "
                "Choose another metric, or pass binary codes."
            )
        if self.form:
            raise self.lacks_outputs()
        self.check_levels(levels)

    def check_levels(self, levels: AnyArray) -> None:
        """Refuse levels of relevance that are not whole, unless the metric takes them."""
        if not self.family.takes_real_levels:
            advice = "Choose a form of NDCG, such as NDCG:trec, or apply a threshold, such as levels >= 0.5"
            refuse_fractions(levels, self.name, advice)

    def lacks_vectors(self) -> HashbenchError:
        """Return the error for missing float vectors."""
        return HashbenchError(
            f"{self.name} re-ranks items near in Hamming distance by the float vectors that were coded, and there are "
            "none here; give --vectors, or in Python vectors=(query, database)."
        )

    @property
    def in_words(self) -> str:
        """What it is beside others that share its spelling."""
        pattern = self.family.pattern.replace("NDCG@k", "NDCG")
        options = [option for option in self.family.options[1:] if option in self.arguments]
        return re.sub(r"\bk\b", str(next(iter(self.arguments), "")), _IN_WORDS[":".join([pattern, *options])])

    def without_form(self) -> Self:
        """Return this metric, of the same name, for histograms of rankings by its form."""
        return replace(self, form="")

    def lacks_outputs(self) -> HashbenchError:
        """Return the error for missing real-valued outputs of queries."""
        return HashbenchError(
            f"{self.name} compares codes with the real-valued outputs of queries, and there are none here. Score it by "
            "hashbench run, encode with --keep-model, or give --query-outputs with your own codes (query_outputs= in "
            "Python)."
        )


_RERANKED = ":reranked=m"
FORMS = ("dot", "sigmoid")  # of asymmetric distances
_PATTERN = re.compile(rf"([A-Za-z]+)(@k({_RERANKED})?|@rN|@R)?")
_LARGEST_CUTOFF = 1 << 40  # beyond any database, and safe in int64
_NAME = re.compile(
    r"(?P<stem>[A-Za-z]+)(@(all|ALL|(?P<all_relevant>R)|(?P<radius>r)?(?P<cutoff>\d+)))?"
    rf"(:(?P<option>(?!({'|'.join(FORMS)})$)[a-z]+))?(?P<reranked>:reranked=(?P<n_reranked>\d+))?"
    rf"(:(?P<form>{'|'.join(FORMS)}))?"
)


def get_metric(name: str, *, of_run: bool = False) -> Metric:
    """Return the metric of a name.

    Names are ``NAME[@cutoff][:option][:reranked=m][:form]``, such as ``AP``, ``NDCG@100``, ``P@r2``,
    ``AP@1000:relevant``, ``Recall@10:reranked=100`` or ``AP:dot``; ``@all`` and ``@ALL`` are read as no cutoff. Names
    of trec_eval, such as ``ndcg_cut_10``, are read as the metrics that equal them. With ``of_run``, ``NDCG`` is
    ``NDCG:trec``, as in other tools for runs, and ``NDCG:exponential`` keeps its option. Without, ``ndcg`` is refused,
    as it would differ from ``nDCG`` only in case.

    Parameters
    ----------
    name : str
        Such a name.
    of_run : bool, default=False
        Whether it is of a run.

    Returns
    -------
    Metric
        With the canonical ``name``, and ``scores`` of a `TieHistogram`.

    Raises
    ------
    HashbenchError
        If there is no such metric, cutoff or option.

    Examples
    --------
    >>> get_metric("Recall@10").name
    'R@10'
    """
    if not isinstance(name, str):
        raise HashbenchError(f"metrics are names such as AP or NDCG@100, got {name!r}.")
    if len(name) > MAX_NAME:
        raise HashbenchError(f"metric {name[:20]!r}... has {len(name):,} characters, at most {MAX_NAME} are read.")
    if name == "ndcg" and not of_run:
        raise HashbenchError(
            "metric 'ndcg' differs from nDCG only in case, and has two meanings: give NDCG (gain 2^level - 1), or "
            "NDCG:trec (gain level), which is trec_eval's."
        )
    match = _NAME.fullmatch(_without_trec_name(name))
    if match is None:
        if name in FAMILIES:
            raise _lacks_number(name)
        raise unknown_name("metric", name, metric_names(), meant=_meant(name))
    family = _find_family(name, match)
    cutoff, n_reranked = (None if match[part] is None else int(match[part]) for part in ("cutoff", "n_reranked"))
    if cutoff is not None and cutoff < 1 and not match["radius"]:
        raise HashbenchError(f"metric {name!r} has cutoff {cutoff}; a cutoff counts items, 1 or more.")
    if n_reranked is not None and n_reranked < (cutoff or 0):
        raise HashbenchError(
            f"metric {name!r} scores {cutoff} items of {n_reranked} that are re-ranked; re-rank as many or more."
        )
    option, default = match["option"], next(iter(family.options), None)
    if of_run and family.pattern in _OPTIONS_OF_RUNS:  # always named there
        option, default = option or _OPTIONS_OF_RUNS[family.pattern], None
    if option and option not in family.options:
        known = [*family.options, *["reranked=m"] * (family.pattern + _RERANKED in FAMILIES)]
        known += FORMS if not match["radius"] else ()
        raise HashbenchError(f"metric {name!r} has option {option!r}; options of {family.pattern}: {', '.join(known)}.")
    if n_reranked is not None:  # the default differs from that without re-ranking, so it is always named
        option, default = option or default, None
    canonical = ALIASES.get(match["stem"], match["stem"])
    canonical += "" if cutoff is None else f"@{match['radius'] or ''}{cutoff}"
    canonical += "@R" * bool(match["all_relevant"])
    canonical += f":{option}" if option and option != default else ""
    canonical += "" if n_reranked is None else f":reranked={n_reranked}"
    form = match["form"] or ""
    if form and (match["radius"] or family.needs_candidates or family.needs_buckets):
        raise HashbenchError(
            f"metric {name!r} ranks by real-valued queries ({form}), and {canonical} needs Hamming distances. Leave "
            f":{form} out, or choose a metric without."
        )
    canonical += f":{form}" if form else ""
    numbers = (min(number, _LARGEST_CUTOFF) for number in (cutoff, n_reranked) if number is not None)
    is_plain = name == match[0] and not any(match[part] for part in ("radius", "option", "reranked", "form"))
    pattern = match["stem"] + ("" if cutoff is None else "@k")
    others = (_ELSEWHERE_OF_RUNS if of_run else _ELSEWHERE).get(pattern, {}) if is_plain else {}
    elsewhere = {other.replace("@k", f"@{cutoff}"): words for other, words in others.items()}
    return Metric(canonical, family, (*numbers, *([option] if option else [])), form, name, elsewhere)


def checked_metrics(metrics: Iterable[str], undefined: str, *, of_run: bool = False) -> Sequence[Metric]:
    """Return the metrics of names, each once; refuse unknown names and values of ``undefined``."""
    names = [metrics] if isinstance(metrics, str) or not isinstance(metrics, Iterable) else list(metrics)
    chosen = list({metric.name: metric for metric in (get_metric(name, of_run=of_run) for name in names)}.values())
    if not chosen:
        raise HashbenchError("there are no metrics; name at least one, such as AP.")
    check_choice(undefined, UNDEFINED, "undefined")
    return chosen


def readings(metrics: Iterable[Metric], means: Mapping[str, FloatArray] | None = None) -> list[str]:
    """Return a note for each spelling with several meanings: which was taken, and what the others are called.

    ``means`` are those of each query, by metric; notes then hold their means. There is no note where all meanings have
    equal values, or were asked for.
    """
    asked, notes = {metric.name: metric for metric in metrics}, []

    def described(metric: Metric) -> str:
        mean = means[metric.name] if means else np.empty(0)
        value = f": {np.nanmean(mean):.4f}" if (~np.isnan(mean)).any() else ""
        return f"{metric.name} ({metric.in_words}{value})"

    for metric in asked.values():
        others = {get_metric(name, of_run=True): words for name, words in metric.elsewhere.items() if name not in asked}
        if means:
            others = {
                other: words
                for other, words in others.items()
                if not np.allclose(means[other.name], means[metric.name], equal_nan=True)
            }
        if others:
            meant = ", ".join(words.format(described(other)) for other, words in others.items())
            notes.append(f"{metric.spelling} is read as {described(metric)}; {meant}.")
    return notes


def _find_family(name: str, match: re.Match[str]) -> Family:
    """Find the family of a name, built-in or of a plug-in."""
    stem = ALIASES.get(match["stem"], match["stem"])
    pattern = stem + ("" if match["cutoff"] is None else "@rN" if match["radius"] else "@k")
    pattern += "@R" * bool(match["all_relevant"])
    full_pattern = pattern + _RERANKED * bool(match["reranked"])
    if full_pattern not in FAMILIES:
        registry.import_metrics()
    if full_pattern in FAMILIES:
        return FAMILIES[full_pattern]
    if match["cutoff"] is None and f"{stem}@k" in FAMILIES:
        raise HashbenchError(f"metric {name!r} needs a cutoff, such as {stem}@100.")
    if pattern in FAMILIES:
        known = ", ".join(other for other in metric_names() if other.endswith(_RERANKED))
        raise HashbenchError(f"metric {name!r}: {pattern} does not score re-ranked candidates; {known} do.")
    known = _recased(match["stem"])
    meant = known + name.removeprefix(match["stem"])
    if known and meant != name and _exists(meant):
        raise unknown_name("metric", name, metric_names(), meant=meant)
    if forms := [form for form in metric_names() if form.partition("@")[0] == known]:
        raise HashbenchError(f"unknown metric {name!r}. Forms of {known}: {', '.join(forms)}.")
    raise unknown_name("metric", name, metric_names(), like=pattern)


def _recased(stem: str) -> str:
    """Return the first word of the metrics whose name, or other name, has the same letters; empty if none has."""
    stems = {stem.casefold(): stem for stem in [*ALIASES, *(known.partition("@")[0] for known in FAMILIES)]}
    recased = stems.get(stem.casefold(), "")
    return ALIASES.get(recased, recased)


def _meant(name: str) -> str:
    """Return the metric that a misspelt name such as ``recall10`` or ``R@10:rerank=100`` stands for; empty if none."""
    match = re.fullmatch(r"([A-Za-z]+)@?(\d+)(\W*rerank\w*?\W*(\d+))?", name)
    if match is None:
        stem, *parts = name.split(":")[:4]
        spelt = (":".join((stem, *order)) for order in permutations(parts))  # as AP@10:reranked=20:capped needs
        return next((other for other in spelt if _NAME.fullmatch(other) and _exists(other)), "")
    meant = f"{_recased(match[1])}@{match[2]}" + (f":reranked={match[4]}" if match[3] else "")
    return meant if _exists(meant) else ""


def _exists(name: str) -> bool:
    try:
        get_metric(name)
    except HashbenchError:
        return False
    return True


_TREC_NAME = re.compile(r"(11pt_avg|[A-Za-z_]+?)([_.]([0-9.]+))?")


def _without_trec_name(name: str) -> str:
    """Replace a name as trec_eval prints it (``P_5``) or reads it (``P.5``) by the metric that equals it, if any."""
    match = _TREC_NAME.fullmatch(name)
    if match is None:
        return name
    stem, with_cutoff, cutoff = match.groups()
    if stem in _OTHER_TREC_NAMES and stem not in metric_names():
        raise HashbenchError(f"metric {name!r} is not here: trec_eval's {stem} {_OTHER_TREC_NAMES[stem]}.")
    if not with_cutoff and f"{stem}_k" in TREC_NAMES and stem != "P":
        raise HashbenchError(f"metric {name!r} needs a cutoff, such as {stem}_10.")
    equal = TREC_NAMES.get(f"{stem}_k" if with_cutoff else stem, name)
    return equal.replace("@k", f"@{cutoff}")


def _lacks_number(pattern: str) -> HashbenchError:
    """Return the error for a pattern such as ``AP@k`` in place of a name with numbers."""
    if pattern.endswith(_RERANKED):
        example = pattern.replace("@k", "@10").replace("=m", "=100")
        return HashbenchError(f"metric {pattern!r} lacks its cutoffs; put numbers for k and m, such as {example}.")
    return HashbenchError(
        f"metric {pattern!r} lacks its cutoff; put a number for {pattern[-1]}, such as {pattern[:-1]}2."
    )


def is_error(name: str) -> bool:
    """Check whether less of a metric is better; False if it is unknown, such as one of a removed plug-in."""
    try:
        return get_metric(name).family.is_error
    except HashbenchError:
        return False


def metric_names() -> list[str]:
    """List the patterns of all metrics, built-in and third-party, such as ``AP@k``, sorted.

    Returns
    -------
    list of str
        The names.

    Examples
    --------
    >>> "AP@k" in metric_names()
    True
    """
    registry.import_metrics()
    return sorted(FAMILIES)

"""How often the intervals of `Problem.thresholds` and `compare_pairs` hold: two tables of RESULTS.md.

    .venv/bin/python benchmarks/intervals.py

Draws samples from populations of codes in which a few items match many others, and counts in how many samples the 95 %
interval of the false positive rate, and that of recall, holds the share over the pairs of all samples, and how often
those for independent pairs do. Then it draws labelled pairs of images that are harder for one hash or the other, and
counts how often the interval of a difference holds 0, since both hashes are drawn alike.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from pages import put_into
from scipy.stats import binomtest

import hashbench
from hashbench.reports.formatting import markdown_table

PAGE = Path(__file__).with_name("RESULTS.md")
N_DRAWS = 400
N_LABELLED = 200

Bits = npt.NDArray[np.bool_]


def skewed(rng: np.random.Generator, n_classes: int, n_bits: int) -> Bits:
    """Draw codes whose bits are skewed and move together."""
    load, weights = rng.normal(size=(n_classes, 1)), np.linspace(0.3, 2.5, n_bits)
    return rng.normal(size=(n_classes, n_bits)) + load * weights + np.linspace(-1, 1, n_bits) > 0


def blank(rng: np.random.Generator, n_classes: int, n_bits: int) -> Bits:
    """Draw even codes, a twentieth of them with few bits set, as of images without content."""
    is_blank = rng.random((n_classes, 1)) < 0.05
    return rng.random((n_classes, n_bits)) < np.where(is_blank, 0.05, 0.5)


class Case(NamedTuple):
    """A population, and how samples are drawn from it."""

    population: Callable[[np.random.Generator, int, int], Bits]
    n_bits: int
    n_classes: int
    n_copies: int  # items of each class
    is_split: bool  # in queries, a third, and a database
    radius: int


CASES = [
    Case(skewed, 16, 48, 6, False, 0),
    Case(skewed, 16, 48, 6, False, 3),
    Case(skewed, 16, 300, 3, False, 3),
    Case(skewed, 16, 20, 10, False, 3),
    Case(skewed, 16, 10, 20, False, 3),
    Case(skewed, 16, 60, 8, True, 3),
    Case(skewed, 16, 300, 1, True, 3),
    Case(blank, 32, 48, 6, False, 0),
    Case(blank, 32, 48, 6, False, 5),
    Case(blank, 24, 30, 2, False, 5),
]


def counted(rng: np.random.Generator, case: Case) -> hashbench.Thresholds:
    """Draw a sample and count it; items with a class each are given a matrix, so that hashbench takes them as items."""
    classes = np.repeat(np.arange(case.n_classes), case.n_copies)
    codes = case.population(rng, case.n_classes, case.n_bits)[classes] ^ (
        rng.random((len(classes), case.n_bits)) < 0.05
    )
    if not case.is_split:
        return hashbench.Problem.of_codes(codes, codes, (classes, classes), exclude_self=True).thresholds()
    queries, items = np.split(rng.permutation(len(classes)), [len(classes) // 3])
    is_same = (classes[queries][:, None] == classes[items]).astype(int)
    rule = (classes[queries], classes[items]) if case.n_copies > 1 else is_same
    return hashbench.Problem.of_codes(codes[queries], codes[items], rule).thresholds()


def row_of(rng: np.random.Generator, case: Case) -> list[str]:
    """Return the case, its false positive rate, and how often intervals of that and of recall hold."""
    draws = [counted(rng, case) for _ in range(N_DRAWS)]
    matches = [found.at(case.radius) for found in draws]
    sides = {
        "fpr": [(match.n_false, found.n_irrelevant) for match, found in zip(matches, draws, strict=True)],
        "recall": [
            (match.n_matches - match.n_false, found.n_relevant) for match, found in zip(matches, draws, strict=True)
        ],
    }
    shares = []
    for name, counts in sides.items():
        hits, pairs = np.array(counts).T
        truth = hits.sum() / max(pairs.sum(), 1)
        ours = [(getattr(match, f"{name}_low"), getattr(match, f"{name}_high")) for match in matches]
        exact = [binomtest(*pair).proportion_ci() for pair in counts] if pairs.all() else []
        held = [
            f"{np.mean([low <= truth <= high for low, high in ends]):.2f}" if exact else "-" for ends in (ours, exact)
        ]
        shares += [f"{truth:.2g}", f"{np.mean(hits == 0):.2f}", *held] if name == "fpr" else held
    sample = f"{case.n_classes} of {case.n_copies}{', a third as queries' * case.is_split}"
    return [f"{case.population.__name__}, {case.n_bits} bits", sample, str(case.radius), *shares]


def row_of_labelled(n_copies: int) -> list[str]:
    """Return how often intervals of differences hold over all pairs of 40 images, each with some copies."""
    labels = np.repeat(np.arange(40), n_copies)
    first, second = np.triu_indices(len(labels), 1)
    pairs, held = np.column_stack([first, second, labels[first] == labels[second]]).astype(int), []
    for number in range(N_LABELLED):
        rng = np.random.default_rng(number)
        of_image = (rng.random((2, 40, 32)) < 0.5)[:, labels]
        difficulty = rng.normal(size=(2, 40, 1))[:, labels]
        codes = of_image ^ (rng.random((2, len(labels), 32)) < 1 / (1 + np.exp(2 - difficulty)))
        both = [hashbench.pair_thresholds(one, one, pairs) for one in codes]
        held.append([one.low <= 0 <= one.high for one in hashbench.compare_pairs(*both, rates=[0.01])])
    return [str(n_copies), *(f"{share:.2f}" for share in np.mean(held, axis=0))]


if __name__ == "__main__":
    header = ["codes", "classes of items", "radius", "false positive rate", "no false match"]
    header += ["FPR holds", "FPR, independent pairs", "recall holds", "recall, independent pairs"]
    rows = [row_of(np.random.default_rng(number), case) for number, case in enumerate(CASES)]
    labelled = markdown_table(
        ["copies of an image", "uAP", "recall at a false positive rate of .01"],
        [row_of_labelled(n) for n in (2, 4, 10)],
    )
    tables = {"coverage": markdown_table(header, rows), "labelled": labelled}
    PAGE.write_text(put_into(PAGE.read_text(), tables))

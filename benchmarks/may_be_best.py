"""Whether the set that may be the best holds it, and how large it is: tables of RESULTS.md.

    .venv/bin/python benchmarks/may_be_best.py

In the first table, all methods are equally good, which is the hardest case: the best, always the first method at the
first length, is left out if chance favours another. Means of three seeds are normal; each row of the table changes
one thing.

The second takes the committed means and variances of a column as the true ones, draws three seeds of each method, and
counts how often the truly best one is left out and how many stay, beside Welch's tests against the one that came out
first, corrected by Holm's method for all pairs.

The third has real seeds: thirty of eight methods (`hashbench run`, so that a second call finds them), drawn three at a
time for each; the truly best is the one with the best mean of thirty.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

import hashbench
from hashbench.reports.aggregate import LINE, main_lines, mean_over_seeds
from hashbench.reports.formatting import markdown_table
from hashbench.scoring.comparison import ALPHA, combined, holm, interval
from hashbench.scoring.may_be_best import Chance, corrected_p_values, seed_variances

ROWS = Path(__file__).with_suffix(".csv")
N_SEEDS, N_DRAWS = 3, 4000
SHAPES = ((34, 6), (34, 2), (10, 6), (5, 6))  # methods and code lengths
COLUMNS = ["part", "case", "methods", "lengths", "draws", "left_out", "own_left_out", "size", "own_size", "holm_size"]
BLOCKS = (  # whose columns stand for real ones, by AP
    ("cifar10-s1", "squeezenet (JPEG)", (12, 24, 32, 48)),
    ("tmc2007", "features", (16, 48)),
    ("corel5k", "features", (16, 48)),
    ("digits", "pixels", (12, 24, 48)),
)
TRAINED = ("lsh", "itq", "sklsh", "pca-rr", "sph", "sdh", "csq", "hashnet")
REAL = {"digits": (12, 24, 48), "tmc2007": (16, 48)}
N_TRAINED, N_OF_TRAINED = 30, 2000

Scores = npt.NDArray[np.float64]  # (n_methods, n_lengths, n_seeds)
Draw = Callable[[np.random.Generator, int, int], Scores]


def normal(rng: np.random.Generator, sd: npt.ArrayLike, shared: npt.ArrayLike = 0.0) -> Scores:
    """Draw means of deviations (n_methods, n_lengths); a share of the variance is the same at all lengths of a seed."""
    sd = np.asarray(sd)[..., None]
    share = np.broadcast_to(shared, len(sd))[:, None, None]
    of_seed = rng.normal(size=(len(sd), 1, N_SEEDS))
    return sd * (np.sqrt(share) * of_seed + np.sqrt(1 - share) * rng.normal(size=(*sd.shape[:2], N_SEEDS)))


def ones(n_methods: int, n_lengths: int) -> npt.NDArray[np.float64]:
    """Return equal deviations."""
    return np.ones((n_methods, n_lengths))


def steady_best(rng: np.random.Generator, n_methods: int, n_lengths: int) -> Scores:
    """Draw scores of which the best has a hundredth of the variance."""
    sd = ones(n_methods, n_lengths)
    sd[0] = 0.1
    return normal(rng, sd)


def restless(rng: np.random.Generator, n_methods: int, n_lengths: int, methods: slice, shared: float = 0.0) -> Scores:
    """Draw scores of which some methods have ten times the deviation at the first length."""
    sd = ones(n_methods, n_lengths)
    sd[methods, 0] = 10
    return normal(rng, sd, shared)


def trending(rng: np.random.Generator, n_methods: int, n_lengths: int) -> Scores:
    """Draw scores whose deviation grows or shrinks tenfold with the length, by method."""
    ends = rng.choice([-1.0, 1.0], n_methods)
    return normal(rng, 10.0 ** (np.linspace(-0.5, 0.5, n_lengths) * ends[:, None]))


def best_shared(rng: np.random.Generator, n_methods: int, n_lengths: int) -> Scores:
    """Draw scores of which only the best's seeds move all its lengths together."""
    return normal(rng, ones(n_methods, n_lengths), np.where(np.arange(n_methods) == 0, 0.95, 0.0))


def unequal(rng: np.random.Generator, n_methods: int, n_lengths: int) -> Scores:
    """Draw scores of which half of the methods have two seeds, at the first length only, and the others ten."""
    scores = rng.normal(size=(n_methods, n_lengths, 10))
    scores[1::2, 1:], scores[1::2, 0, 2:] = np.nan, np.nan
    return scores


def skewed(rng: np.random.Generator, n_methods: int, n_lengths: int) -> Scores:
    """Draw scores with exponential losses, as of trainings some of which get stuck."""
    return 1 - rng.exponential(size=(n_methods, n_lengths, N_SEEDS))


CASES: dict[str, Draw] = {
    "equal variances": lambda rng, n, m: normal(rng, ones(n, m)),
    "the best has a hundredth of the variance": steady_best,
    "seeds correlate .9 over lengths": lambda rng, n, m: normal(rng, ones(n, m), 0.9),
    "the best's deviation is ten times larger here": lambda rng, n, m: restless(rng, n, m, slice(0, 1)),
    "three rivals' deviation is ten times larger here": lambda rng, n, m: restless(rng, n, m, slice(1, 4)),
    "deviation grows or shrinks tenfold with length": trending,
    "only the best's seeds correlate, .95": best_shared,
    "three rivals' is ten times larger here, seeds correlate .5": lambda rng, n, m: restless(
        rng, n, m, slice(1, 4), 0.5
    ),
    "losses are exponential": skewed,
    "half have two seeds at one length, the others ten": unequal,
}


def sets_of(scores: Scores, length: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return which methods may be the best at a length: with borrowed variances, and by their own seeds only."""
    means, n_seeds = np.nanmean(scores[:, length], axis=1), (~np.isnan(scores[:, length])).sum(axis=1)
    of_all, of_own = seed_variances(scores), seed_variances(scores[:, length : length + 1])
    ours, own = (
        corrected_p_values(means, Chance.over_seeds(variance[:, at] / n_seeds, freedom[:, at], is_borrowed[:, at]))
        for (variance, freedom, is_borrowed), at in ((of_all, length), (of_own, 0))
    )
    return ours >= ALPHA, own >= ALPHA


def holm_set(scores: Scores, length: int) -> int:
    """Count the best and what Welch's tests do not show to differ from it, corrected for all pairs."""
    means, variances = scores[:, length].mean(axis=1), scores[:, length].var(axis=1, ddof=1) / N_SEEDS
    first, second = np.triu_indices(len(means), 1)
    parts = np.stack([variances[first], variances[second]], axis=1)
    p = holm(interval(means[first] - means[second], *combined(parts, np.full_like(parts, N_SEEDS - 1)))[2])
    best = means.argmax()
    return 1 + int((p[(first == best) | (second == best)] >= ALPHA).sum())


def count(case: str, part: str, n_draws: int, draws: Iterable[Scores], best: int, length: int) -> dict[str, object]:
    """Count over draws how often the best is left out at a length, and how many stay."""
    out, sizes, shape = np.zeros(2), np.zeros(3), (0, 0, 0)
    for scores in draws:
        shape, (ours, own) = scores.shape, sets_of(scores, length)
        out += ~ours[best], ~own[best]
        sizes += ours.sum(), own.sum(), holm_set(scores, length) if part == "measured" else np.nan
    values = part, case, *shape[:2], n_draws, *(out / n_draws), *(sizes / n_draws)
    return dict(zip(COLUMNS, values, strict=True))


def measured(dataset: str, features: str, lengths: tuple[int, ...]) -> Iterable[dict[str, object]]:
    """Yield what is counted with the committed means and variances of a dataset, length by length."""
    results = hashbench.read_results()
    place = (results["dataset"] == dataset) & (results["features"] == features) & (results["metric"] == "AP")
    cells = mean_over_seeds(results[place])
    cells = main_lines(cells[cells["n_bits"].isin(lengths) & (cells["group"] != "baseline")], cells)
    several = cells[(cells["n_seeds"] == N_SEEDS) & (cells["spread"] > 0)]
    table = several.pivot_table(index=list(LINE), columns="n_bits", values=["value", "spread"]).dropna()
    means, sd = table["value"].to_numpy(), table["spread"].to_numpy()
    for column, n_bits in enumerate(lengths):
        rng = np.random.default_rng(0)
        draws = (means[..., None] + normal(rng, sd) for _ in range(N_DRAWS // 4))
        yield count(
            f"{dataset}, {n_bits} bits", "measured", N_DRAWS // 4, draws, int(means[:, column].argmax()), column
        )


def trained(dataset: str, lengths: tuple[int, ...]) -> Scores:
    """Return AP of each method, length and seed."""
    results = hashbench.run(TRAINED, lengths, dataset, seeds=range(N_TRAINED), metrics="AP", n_jobs=-1)
    table = results.pivot_table(index="method", columns=["n_bits", "seed"], values="value").loc[[*TRAINED]]
    return table.to_numpy().reshape(len(TRAINED), len(lengths), N_TRAINED)


def real(dataset: str, lengths: tuple[int, ...]) -> Iterable[dict[str, object]]:
    """Yield what is counted with real seeds drawn at random, for each method others; once with all means made equal."""
    scores = trained(dataset, lengths)
    for is_level in (False, True):
        kept = scores - scores.mean(axis=2, keepdims=True) if is_level else scores
        for column, n_bits in enumerate(lengths):
            for best in range(len(TRAINED)) if is_level else [int(kept[:, column].mean(axis=1).argmax())]:
                rng = np.random.default_rng(0)
                seeds = (
                    rng.permuted(np.tile(np.arange(N_TRAINED), (len(kept), 1)), axis=1) for _ in range(N_OF_TRAINED)
                )
                draws = (np.take_along_axis(kept, of_all[:, None, :N_SEEDS], axis=2) for of_all in seeds)
                case = f"{dataset}, {n_bits} bits" + (f", as good as {TRAINED[best]}" if is_level else "")
                yield count(case, "level" if is_level else "real", N_OF_TRAINED, draws, best, column)


def run() -> pd.DataFrame:
    """Simulate all cases, then columns as measured and as trained, a row each."""
    rows: list[dict[str, object]] = []
    for case, draw in CASES.items():
        for n_methods, n_lengths in SHAPES:
            rng = np.random.default_rng(0)
            draws = (draw(rng, n_methods, n_lengths) for _ in range(N_DRAWS))
            rows.append(count(case, "simulated", N_DRAWS, draws, 0, 0))
            print(rows[-1], flush=True)
    for block in BLOCKS:
        rows += measured(*block)
        print(rows[-1], flush=True)
    for dataset, lengths in REAL.items():
        rows += real(dataset, lengths)
        print(rows[-1], flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def lay_out(rows: pd.DataFrame) -> dict[str, str]:
    """Lay out the shares left out, with own seeds only and by the rule, and the sizes of sets."""
    simulated = rows[rows["part"] == "simulated"]
    shapes = [f"{n} methods, {m} lengths" for n, m in SHAPES]
    lines = [
        [case, *(f"{own:.3f}, {ours:.3f}" for own, ours in part[["own_left_out", "left_out"]].to_numpy())]
        for case, part in simulated.groupby("case", sort=False)
    ]
    found = rows[rows["part"].isin(["measured", "real"])]
    sizes = [
        [
            f"{row.case}{', real seeds' if row.part == 'real' else ''}",
            str(row.methods),
            f"{row.left_out:.3f}",
            *(f"{size:.1f}" if size == size else "" for size in (row.n_kept, row.own_size, row.holm_size)),
        ]
        for row in found.rename(columns={"size": "n_kept"}).itertuples(index=False)
    ]
    level = rows[rows["part"] == "level"]
    for column, part in level.groupby(level["case"].str.partition(", as")[0], sort=False):
        worst = part["left_out"].max()
        ours, own = (f"{part[name].mean():.1f}" for name in ("size", "own_size"))
        sizes.append([f"{column}, made equally good: the worst of 8", "8", f"{worst:.3f}", ours, own, ""])
    header = ["column", "methods", "best left out", "size", "own seeds only", "Holm, all pairs"]
    return {
        "left out": markdown_table(["all methods are equally good, and", *shapes], lines, n_left=1),
        "sizes": markdown_table(header, sizes, n_left=1),
    }


def main() -> None:
    """Simulate, and write the rows."""
    run().to_csv(ROWS, index=False, float_format="%.4g", lineterminator="\n")


if __name__ == "__main__":
    main()

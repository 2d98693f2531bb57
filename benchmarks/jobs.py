"""How much faster a grid runs with jobs side by side, and features of images on all processors.

    .venv/bin/python benchmarks/jobs.py [--jobs N] [--rounds N]

The grid of `make reproduce-tables`, with the default metrics; each way in its own data folder, in turn. The
machine's limit is measured, too: as many whole serial grids at once as there are jobs.
Prints the median ratios of wall-clock times, and whether all rows and features are the same bytes.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from hashbench.cards import method_card
from hashbench.registry import method_names
from hashbench.store.results import read_folder

DATASETS = ("digits", "digits-pairs", "digits-unlabelled")
HASHBENCH = Path(sys.executable).with_name("hashbench")


def start(folder: Path, n_jobs: int, threads: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start the grid in an empty data folder."""
    quick = [name for name in method_names() if not method_card(name).is_slow]
    axes = {"--method": quick, "--dataset": DATASETS, "--bits": (12, 16, 24, 32, 48, 64), "--seed": (0, 1, 2)}
    grid = [str(word) for option, values in axes.items() for value in values for word in (option, value)]
    environment = {**os.environ, **threads, "HASHBENCH_DATA": str(folder / "data")}
    command = [str(HASHBENCH), "run", *grid, "--jobs", str(n_jobs), "--results", str(folder / "results")]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def seconds_of(folder: Path, n_jobs: int, n_grids: int = 1) -> float:
    """Run so many grids at once, several in one thread each; return the seconds."""
    threads = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "1"} if n_grids > 1 else {}
    begin = time.perf_counter()
    grids = [start(folder / str(number), n_jobs, threads) for number in range(n_grids)]
    if any(grid.wait() for grid in grids):
        raise SystemExit("a grid failed")
    return time.perf_counter() - begin


def seconds_of_features(n_threads: int) -> tuple[float, bytes]:
    """Compute SqueezeNet's features of 1,000 images, with random weights; return the seconds and the features."""
    import torch

    from hashbench.sources.features.weights import Extractor, Weights, blank

    os.environ["LOKY_MAX_CPU_COUNT"] = str(n_threads)
    torch.set_num_threads(n_threads)
    torch.manual_seed(0)
    state = {key: 0.05 * torch.randn(tensor.shape) for key, tensor in blank("squeezenet").state_dict().items()}
    extractor = Extractor("squeezenet", Weights(state, "0" * 64), image_size=128, device="cpu")
    images = np.random.default_rng(0).integers(0, 256, (1000, 32, 32, 3)).astype(np.uint8)
    extractor(images[:50])
    begin = time.perf_counter()
    features = extractor(images)
    return time.perf_counter() - begin, features.tobytes()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    n_jobs = options.jobs
    jobs, grids, features = [], [], []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            ways = [("one after the other", 1, 1), ("side by side", n_jobs, 1), ("grids at once", 1, n_jobs)]
            taken = {
                name: seconds_of(Path(folder) / name, n_workers, n_grids)
                for name, n_workers, n_grids in ways[:: -1 if number % 2 else 1]
            }
            contents = [read_folder(Path(folder) / f"{name}/0/results") for name, *_ in ways]
        same = contents[0] == contents[1] == contents[2]
        serial = taken["one after the other"]
        jobs.append(serial / taken["side by side"])
        grids.append(n_jobs * serial / taken["grids at once"])
        runs = [seconds_of_features(n_threads) for n_threads in (1, n_jobs)]
        features.append(runs[0][0] / runs[1][0])
        seconds = ", ".join(f"{name} {value:.1f} s" for name, value in taken.items())
        print(f"{seconds}; {'the same rows' if same else 'OTHER ROWS'}", flush=True)
        print(f"{'the same' if runs[0][1] == runs[1][1] else 'OTHER'} features", flush=True)
    print(f"| {n_jobs} jobs side by side | {statistics.median(jobs):.2f} times the speed of one after the other |")
    print(f"| {n_jobs} grids at once | {statistics.median(grids):.2f}, the most that this machine gives |")
    print(f"| features on {n_jobs} processors | {statistics.median(features):.2f} times the speed of one |")


if __name__ == "__main__":
    main()

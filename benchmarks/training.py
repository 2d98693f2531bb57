"""Losses per step: time and memory saved for the backward pass, against the direct form of each by autograd.

    .venv/bin/python benchmarks/training.py [--quick]

The direct form of a loss computes the same number. On histograms it loops over the bins (O(b M^2) time and
memory); that of DTSH has a number for every three items, that of DSH one for every pair and bit. HashNet and
DPSH are matrix products already. One thread; times are the best of several runs. Ratios, not milliseconds,
are the claim.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from hashbench import registry
from hashbench.affinity import SameLabel
from hashbench.learning import soft_histogram
from hashbench.learning.base import Batch, LearnedHash
from hashbench.learning.loop import Session
from hashbench.sources.features.backbones import get_backbone

Loss = Callable[[Tensor], Tensor]

N_ITEMS, N_CLASSES, N_FEATURES = 5_000, 10, 512
BATCHES, LENGTHS = (128, 256, 512, 1024), (16, 32, 64, 128)
LOSSES = {
    "talr-ap": {},
    "talr-ap full": {"relaxation": "full"},
    "talr-ndcg": {},
    "mihash": {},
    "dpsh": {},
    "hashnet": {},
    "dtsh": {},
    "dsh": {},
    "dsh dispersion": {"objective": "dispersion"},
}


def loop_over_bins(codes: Tensor, level_index: Tensor, n_levels: int, n_bins: int) -> Tensor:
    n_items, n_bits = codes.shape
    width = n_bits / n_bins
    distance = (n_bits - codes @ codes.T) / 2
    other = 1 - torch.eye(n_items)
    masks = [(level_index == level) * other for level in range(n_levels)]
    bins = []
    for position in range(n_bins + 1):
        share = (1 - (distance - position * width).abs() / width).clamp(min=0)
        bins.append(torch.stack([(share * mask).sum(dim=1, dtype=torch.float64) for mask in masks], dim=1))
    return torch.stack(bins, dim=2)


def direct_dtsh(outputs: Tensor, levels: Tensor, eta: float) -> Tensor:
    theta, other = outputs @ outputs.T / 2, ~torch.eye(len(levels), dtype=torch.bool)
    is_triplet = (levels[:, :, None] > levels[:, None, :]) & other[:, :, None] & other[:, None, :]
    losses = softplus(theta[:, None, :] - theta[:, :, None] + outputs.shape[1] / 2) * is_triplet
    n_triplets = is_triplet.sum(dim=(1, 2))
    of_queries = losses.sum(dim=(1, 2)) / n_triplets.clamp(min=1)
    quantisation = (outputs - outputs.detach().sign()).square().sum(dim=1).mean()
    return of_queries.sum() / (n_triplets > 0).sum().clamp(min=1) + eta * quantisation


def direct_dsh(outputs: Tensor, levels: Tensor, margin: float, alpha: float) -> Tensor:
    squared = (outputs[:, None] - outputs).square().sum(dim=2)
    pairs = torch.where(levels > 0, squared, (margin - squared).clamp(min=0)) / 2
    n_batch = len(levels)
    pairs = pairs * (1 - torch.eye(n_batch))
    return pairs.sum() / (n_batch * (n_batch - 1)) / 2 + alpha * (outputs.abs() - 1).abs().sum(dim=1).mean()


def direct_l1(outputs: Tensor, others: Tensor, p: int) -> Tensor:
    return (outputs[:, None] - others).abs().pow(p).sum(dim=2)


def saved_mib(loss: Loss, outputs: Tensor) -> float:
    """Return the MiB that a forward pass saves for the backward pass."""
    storages: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        loss(outputs).backward()
    return sum(storages.values()) / 2**20


def measure(loss: Loss, outputs: Tensor) -> tuple[float, float]:
    """Return the milliseconds of a forward and backward pass, and the MiB saved between the two."""
    mib = saved_mib(loss, outputs)
    times = []
    while sum(times) < 0.3 or len(times) < 3:
        outputs.grad = None
        start = time.perf_counter()
        loss(outputs).backward()
        times.append(time.perf_counter() - start)
    return min(times) * 1e3, mib


def make_losses(name: str, n_batch: int, n_bits: int) -> tuple[Loss, Loss | None, Tensor]:
    """Return the loss of a method, its direct form if there is another, and outputs for both."""
    generator = torch.Generator().manual_seed(0)
    labels = np.random.default_rng(0).integers(0, N_CLASSES, N_ITEMS)
    all_outputs = torch.randn(N_ITEMS, n_bits, generator=generator, dtype=torch.float64)
    rows, numbers = np.arange(n_batch), np.arange(N_ITEMS)
    affinity = SameLabel(labels, labels)
    method: Any = registry.get_method(name.split()[0])(n_bits, **LOSSES[name])

    def batch(outputs: Tensor) -> Batch:
        return Batch(outputs, rows, all_outputs, affinity, numbers)

    def loss(outputs: Tensor) -> Tensor:
        return method._loss(batch(outputs))

    def loss_with(target: str, replacement: Callable[..., Tensor]) -> Loss:
        return lambda outputs: patch(target, replacement)(loss)(outputs)

    direct: Loss | None = None
    if name.startswith(("talr", "mihash")):
        direct = loss_with("hashbench.learning.soft_histogram.soft_histogram", loop_over_bins)
    elif name == "dsh dispersion":
        direct = loss_with("torch.cdist", direct_l1)
    elif name == "dsh":
        direct = lambda f: direct_dsh(f, batch(f).levels, method.margin * n_bits, method.alpha)  # noqa: E731
    elif name == "dtsh":
        direct = lambda f: direct_dtsh(f, batch(f).levels, method.eta)  # noqa: E731
    return loss, direct, all_outputs[:n_batch].clone().requires_grad_()


def histograms(batches: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    """Print the ratios of the soft histogram alone, with two levels."""
    print("\n## Soft histogram: the loop over bins takes so many times as much\n")
    print("| M | b | ms | MiB | loop: time | loop: memory |\n| ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_batch in batches:
        for n_bits in lengths:
            generator = torch.Generator().manual_seed(0)
            outputs = torch.randn(n_batch, n_bits, generator=generator, dtype=torch.float64).requires_grad_()
            classes = torch.arange(n_batch) % N_CLASSES
            same = (classes[:, None] == classes).int()
            weights = torch.randn(n_batch, 2, n_bits + 1, dtype=torch.float64)
            (ms, mib), (loop_ms, loop_mib) = (
                measure(lambda f, make=make: (make(torch.tanh(f), same, 2, n_bits) * weights).sum(), outputs)  # noqa: B023
                for make in (soft_histogram.soft_histogram, loop_over_bins)
            )
            ratios = f"{loop_ms / ms:.1f} | {loop_mib / mib:.1f}"
            print(f"| {n_batch} | {n_bits} | {ms:.2f} | {mib:.2f} | {ratios} |", flush=True)


def losses(batches: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    """Print time and memory of every loss, with levels from the affinity, as in the training loop: losses.csv."""
    print(f"\n## Losses: one batch, {N_ITEMS:,} training items\n")
    print("n_batch,n_bits,loss,ms,mib,direct_time_ratio,direct_memory_ratio")
    for n_batch in batches:
        for n_bits in lengths:
            for name in LOSSES:
                loss, direct, outputs = make_losses(name, n_batch, n_bits)
                ms, mib = measure(loss, outputs)
                ratios = ","
                if direct and not (name == "dtsh" and n_batch > 256):  # some GiB
                    direct_ms, direct_mib = measure(direct, outputs)
                    ratios = f"{direct_ms / ms:.1f},{direct_mib / mib:.1f}"
                print(f"{n_batch},{n_bits},{name},{ms:.2f},{mib:.2f},{ratios}", flush=True)


def steps(epochs: int) -> None:
    """Print what whole steps of training on features cost: head, loss, optimizer."""
    print(f"\n## Steps of training: {N_FEATURES} features, default head and batch, 32 bits\n")
    print("| items | method | ms a step | times a step of dpsh | items a second |")
    print("| ---: | --- | ---: | ---: | ---: |")
    for n_items in (1_000, N_ITEMS):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, N_CLASSES, n_items)
        X = rng.normal(size=(N_CLASSES, N_FEATURES))[labels] + rng.normal(size=(n_items, N_FEATURES))
        milliseconds = {}
        for name in ("dpsh", *(name for name in LOSSES if name != "dpsh")):
            ends: list[float] = []
            n_epochs = epochs * N_ITEMS // n_items + 1
            method: LearnedHash = registry.get_method(name.split()[0])(32, epochs=n_epochs, **LOSSES[name])
            method.session = Session(on_epoch=lambda epoch: ends.append(time.perf_counter()))  # noqa: B023
            method.fit(X, labels)
            seconds = min(np.diff(ends))
            milliseconds[name] = seconds * 1e3 / (n_items // method.batch_size)
            ratio, rate = milliseconds[name] / milliseconds["dpsh"], n_items / seconds
            print(f"| {n_items:,} | {name} | {milliseconds[name]:.2f} | {ratio:.2f} | {rate:,.0f} |", flush=True)


def end_to_end(n_images: int) -> None:
    """Print how many images a second SqueezeNet is trained on, with random weights, which take the same time."""
    print("\n## Training SqueezeNet end to end with talr-ap: images of 32 x 32, enlarged to 128 x 128, 32 bits\n")
    print("| | images a second |\n| --- | ---: |")
    rng = np.random.default_rng(0)
    images, labels = rng.integers(0, 256, (n_images, 32, 32, 3), dtype=np.uint8), np.arange(n_images) % N_CLASSES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "squeezenet.pth"
        torch.manual_seed(0)
        network = get_backbone("squeezenet").build()
        for parameter in network.parameters():
            if parameter.ndim > 1:
                torch.nn.init.kaiming_normal_(parameter)  # which keeps images apart
        torch.save(network.state_dict(), path)
        params = {"backbone": "squeezenet", "weights": str(path), "device": "cpu", "epochs": 3, "learning_rate": 1e-6}
        method: LearnedHash = registry.get_method("talr-ap")(32, **params)
        ends: list[float] = []
        method.session = Session(on_epoch=lambda epoch: ends.append(time.perf_counter()))
        method.fit(images, labels)
        print(f"| training | {n_images / min(np.diff(ends)):.1f} |", flush=True)
        start = time.perf_counter()
        method.transform(images)
        print(f"| encoding | {n_images / (time.perf_counter() - start):.1f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="batches of 256 and 64 bits only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    batches, lengths = ((256,), (64,)) if options.quick else (BATCHES, LENGTHS)
    print(f"# hashbench training, one thread, Python {sys.version.split()[0]}, PyTorch {torch.__version__}")
    histograms(batches, lengths)
    losses(batches, lengths)
    steps(2 if options.quick else 5)
    end_to_end(100 if options.quick else 500)


if __name__ == "__main__":
    main()

"""CIFAR-10 by the protocols of the TALR paper and of DCH, and without labels by that of TALR's LabelMe experiments."""

from typing import Any

import numpy as np

from hashbench._typing import IntArray
from hashbench.datasets._cifar import CifarAdapter, CifarImages, Format
from hashbench.datasets._unlabelled import PROTOCOL, describe_unlabelled
from hashbench.sources.splits import draw_split

_SEED = 0
_UNLABELLED = 22_000  # images for 2,000 queries and a database of 20,000


class _Cifar10(CifarAdapter):
    format = Format(
        name="CIFAR-10",
        train=tuple(f"data_batch_{number}" for number in range(1, 6)),
        test=("test_batch",),
        keys=(b"labels",),
        n_classes=(10,),
        classes=("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
    )
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    sha256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"


class Cifar10S1(_Cifar10):
    """Split 1: queries and a small training set drawn from all images."""

    name = "cifar10-s1"
    summary = "60,000 images, ten classes; 1,000 queries, 59,000 database, 5,000 of these for training"

    protocol = "split 1 of TALR: 100 queries and 500 training items per class, drawn from all images with seed 0"

    def split(self, items: CifarImages) -> tuple[IntArray, IntArray, IntArray]:
        """Draw 100 queries and 500 training items per class; the rest is database."""
        return draw_split(items.labels[0], 100, 500, _SEED)


class Cifar10S2(_Cifar10):
    """Split 2: the official test part as queries, the official training part as database."""

    name = "cifar10-s2"
    summary = "the same images; the official 10,000 as queries, the official 50,000 as database, all for training"
    protocol = (
        "split 2 as the TALR paper prints it: official test and training part (its released script draws 1,000 queries "
        "per class from all images instead)"
    )


class Cifar10S3(_Cifar10):
    """Split 3: queries and training items as in split 1, the training items outside the database."""

    name = "cifar10-s3"
    summary = "the same images; 1,000 queries, 54,000 database, 5,000 others for training"

    protocol = (
        "that of DCH and of DeepHash's lists, redrawn: 100 queries and 500 training items per class, drawn from all "
        "images with seed 0, as in cifar10-s1; database = all but queries and training items"
    )

    def split(self, items: CifarImages) -> tuple[IntArray, IntArray, IntArray]:
        """Draw 100 queries and 500 training items per class; the database is the rest without the training items."""
        query, others, train = draw_split(items.labels[0], 100, 500, _SEED)
        return query, np.setdiff1d(others, train), train


class Cifar10Unlabelled(_Cifar10):
    """GIST features without labels: near items are relevant."""

    name = "cifar10-gist-unlabelled"
    summary = "22,000 of the images as GIST, no labels: levels by distance; 2,000 queries, 5,000 for training"
    features = ("gist",)
    protocol = f"the LabelMe protocol of TALR on 22,000 images of CIFAR-10: {PROTOCOL}"

    def fields(self, items: CifarImages, features: Any) -> dict[str, Any]:
        """Draw 22,000 images; 5, 1, 0.2, 0.1 % nearest training pairs have levels 1, 2, 5, 10."""
        keep = np.sort(np.random.default_rng(_SEED).choice(len(items.images), _UNLABELLED, replace=False))
        return {"features": features[keep], **describe_unlabelled(features[keep])}

"""Small images of queries and of the items nearest to them, side by side in JPEGs."""

import io
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from PIL import Image

from hashbench._typing import AnyArray, IntArray
from hashbench.bits import to_words
from hashbench.reports.html.cached import first_codes
from hashbench.reports.html.cached_codes import open_dataset
from hashbench.reports.plots.figure_selection import FigureBlock
from hashbench.store import hdf5

_LONGEST = 40  # pixels of a side
_N_NEAREST = 24  # items of a query and method, of its nearest tie groups
_PER_ROW, _PER_SHEET = 50, 2500  # images; browsers keep a sheet of these in 16 MB
_QUALITY = 80


def add_thumbnails(queries: dict[str, Any], block: FigureBlock) -> dict[str, bytes]:
    """Add the places of images to the queries of a block, and return sheets of images as JPEGs by name.

    There are none if the dataset has no images. Each query and method has some items of the nearest tie groups; if a
    group has more, they are drawn at random with seed 0.
    """
    dataset = open_dataset(block)
    if dataset.images is None:
        return {}
    chosen = np.asarray(queries["chosen"])
    items: dict[int, int] = {}  # place in the sheets, by row of the dataset
    of_query = {int(query): items.setdefault(int(dataset.query[query]), len(items)) for query in chosen}
    affinity = dataset.affinity().part(chosen)
    nearest: dict[str, list[Any]] = {}
    for label, path in first_codes(block).items():
        if label not in queries["groups"]:
            continue
        with hdf5.open_codes(path) as codes:
            database, query_codes = to_words(np.asarray(codes.database[:])), to_words(codes.query[chosen])
        label_groups = nearest[label] = []
        for row, words in enumerate(query_codes):
            groups = []
            for distance, positions in _nearest(np.bitwise_count(database ^ words).sum(axis=1, dtype=np.int64)):
                levels = affinity.block(slice(row, row + 1), positions)[0]
                places = [items.setdefault(int(item), len(items)) for item in dataset.database[positions]]
                left = [[place, int(level)] for place, level in zip(places, levels, strict=True) if level >= 0]
                groups += [[distance, *left]] if left else []
            label_groups.append(groups)
    rows, sheets = list(items), {}
    for start in range(0, len(rows), _PER_SHEET):
        sheet, size = _sheet(dataset.images, rows[start : start + _PER_SHEET])
        sheets[f"data/images-{sha256(sheet).hexdigest()[:16]}.jpg"] = sheet
    queries["images"] = {
        "files": list(sheets),
        "size": size,
        "n_columns": _PER_ROW,
        "n_of_file": _PER_SHEET,
        "of_query": of_query,
        "nearest": nearest,
    }
    return sheets


def _nearest(distances: IntArray) -> Iterator[tuple[int, IntArray]]:
    """Yield the nearest distances and their items, in order of the database, ``_N_NEAREST`` items in all."""
    order = np.lexsort((np.random.default_rng(0).random(len(distances)), distances))
    nearest = np.sort(order[:_N_NEAREST])
    for distance in np.unique(distances[nearest]):
        yield int(distance), nearest[distances[nearest] == distance]


def _sheet(images: AnyArray, items: list[int]) -> tuple[bytes, tuple[int, int]]:
    """Return a JPEG of images side by side, row by row, with the width and height of each image."""
    height, width = images.shape[1:3]
    shrink = min(1.0, _LONGEST / max(height, width))
    size = max(round(width * shrink), 1), max(round(height * shrink), 1)
    n_columns, n_rows = min(_PER_ROW, len(items)), -(-len(items) // _PER_ROW)
    sheet = Image.new("RGB", (n_columns * size[0], n_rows * size[1]), "white")
    for place, item in enumerate(items):
        picture = Image.fromarray(images[item].squeeze()).convert("RGB").resize(size, Image.Resampling.LANCZOS)
        sheet.paste(picture, (place % n_columns * size[0], place // n_columns * size[1]))
    written = io.BytesIO()
    sheet.save(written, "JPEG", quality=_QUALITY)
    return written.getvalue(), size

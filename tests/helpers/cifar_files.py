"""Small CIFAR archives in the official formats, as dictionaries from file names to bytes."""

import io
import pickle
import struct
import tarfile

import numpy as np
from PIL import Image


class Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings, as in the official archives."""

    dispatch = pickle._Pickler.dispatch.copy()

    def save_bytes(self, value):
        self.write(b"U" + bytes([len(value)]) if len(value) < 256 else b"T" + struct.pack("<i", len(value)))
        self.write(value)
        self.memoize(value)

    dispatch[bytes] = save_bytes


def pickled(batch):
    stream = io.BytesIO()
    Python2Pickler(stream, protocol=2).dump(batch)
    return stream.getvalue().replace(b"numpy._core.", b"numpy.core.")


def content(form, seed=0):
    """Draw images (n, 32, 32, 3) and their labels (n_keys, n), training part first."""
    rng = np.random.default_rng(seed)
    n, n_fine = form.n_train + form.n_test, form.n_classes[-1]
    fine = np.concatenate([rng.permutation(size) % n_fine for size in (form.n_train, form.n_test)])
    labels = fine[None]
    if len(form.keys) == 2:
        superclass = {name: k for k, names in enumerate(form.superclasses) for name in names.split()}
        labels = np.stack([np.array([superclass[name] for name in form.classes])[fine], fine])
    return rng.integers(0, 256, (n, 32, 32, 3), dtype=np.uint8), labels


def batches(form, images, labels):
    """Return name, channel-major pixels (m, 3072) and labels (n_keys, m) of each file."""
    flat = images.transpose(0, 3, 1, 2).reshape(len(images), 3072)
    ends = np.linspace(0, form.n_train, len(form.train) + 1).astype(int)
    starts = [*zip(form.train, ends[:-1], ends[1:], strict=True), (*form.test, form.n_train, len(images))]
    return [(name, flat[start:end], labels[:, start:end]) for name, start, end in starts]


def python_files(form, images, labels, dump=pickled):
    files = {"batches.meta": dump({b"label_names": [b"airplane"], b"num_vis": 3072})}
    for name, pixels, classes in batches(form, images, labels):
        batch = {b"batch_label": b"one of them", b"data": pixels, b"filenames": [b"a.png"] * len(pixels)}
        batch |= {key: row.tolist() for key, row in zip(form.keys, classes, strict=True)}
        files[name] = dump(batch)
    return files


def binary_files(form, images, labels):
    files = {"batches.meta.txt": b"airplane\n", "readme.html": b"<html>"}
    for name, pixels, classes in batches(form, images, labels):
        files[f"{name}.bin"] = np.concatenate([classes.T.astype(np.uint8), pixels], axis=1).tobytes()
    return files


def tree_files(form, images, labels, suffix=".png"):
    files = {}
    for number, (image, label) in enumerate(zip(images, labels[-1], strict=True)):
        part, stream = "train" if number < form.n_train else "test", io.BytesIO()
        Image.fromarray(image).save(stream, {".png": "png", ".jpg": "jpeg"}[suffix])
        files[f"{part}/{form.classes[label]}/{number:05}{suffix}"] = stream.getvalue()
    return files


def write_folder(folder, files):
    for name, stored in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(stored)
    return folder


def write_archive(path, files, inside="cifar-10-batches-py"):
    with tarfile.open(path, f"w:{path.suffix[1:]}") as archive:
        for name, stored in files.items():
            member = tarfile.TarInfo(f"{inside}/{name}")
            member.size = len(stored)
            archive.addfile(member, io.BytesIO(stored))
    return path

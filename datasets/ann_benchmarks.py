"""Files of the ann-benchmarks project: vectors, queries, and the true nearest neighbours of these."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from hashbench._typing import AnyArray, IntArray
from hashbench._validation import as_int64
from hashbench.adapter import DatasetAdapter, OwnData
from hashbench.dataset import N_NEIGHBOURS, Dataset
from hashbench.errors import HashbenchError
from hashbench.sources.array_files import read_rows
from hashbench.sources.download import Needed, demand
from hashbench.sources.formats import row_blocks
from hashbench.sources.neighbours import describe_neighbours, describe_ties, padded
from hashbench.store.files import data_dir
from hashbench.store.inputs import check_fits, check_stored, open_hdf5, reading

if TYPE_CHECKING:
    import h5py

_MOST_TRAIN = 100_000  # drawn by default
_KINDS = {"train": "biuf", "test": "biuf", "neighbors": "iu", "distances": "biuf"}  # of the dtype of each array
_NOT_EUCLIDEAN = {"angular": "cosine", "dot": "dot"}  # their names and ours
_EXAMPLE = Needed(
    "sift-128-euclidean.hdf5",
    "http://ann-benchmarks.com/sift-128-euclidean.hdf5",
    note="501 MB, or any other file of https://github.com/erikbern/ann-benchmarks; no checksum is published",
)


class AnnBenchmarks(DatasetAdapter):
    """Vectors whose nearest neighbours are known and relevant, under a name the user chooses."""

    name = "ann-benchmarks"
    summary = "any HDF5 file of that project: hashbench prepare --from FILE.hdf5 --name NAME"
    takes = ("source",)
    needs = "such a file"

    def prepare(self) -> Dataset:
        """Read vectors as database, test vectors as queries, and their neighbours as relevant."""
        own = self.options.own
        if own is None:
            self._ask_for_name()
        self._refuse_other_choices(own)
        path = Path(own.items)
        with reading(path, "HDF5"), open_hdf5(path) as file:
            distance = _checked(file, path)
            vectors = [file[name] for name in ("train", "test")]
            n_database, n_queries = map(len, vectors)
            n_bytes = 4 * (n_database + n_queries) * vectors[0].shape[1]
            check_fits(n_bytes, f"{path} with {n_database + n_queries:,} vectors")
            features = np.empty((n_database + n_queries, vectors[0].shape[1]), dtype=np.float32)
            for part, stored in zip((features[:n_database], features[n_database:]), vectors, strict=True):
                with np.errstate(over="ignore"):  # Dataset refuses what becomes infinite
                    for rows in row_blocks(stored):
                        part[rows] = stored[rows]
            neighbours = as_int64(file["neighbors"][()], "neighbours")
            n_tied, n_wanted, with_ties = 0, own.neighbours or neighbours.shape[1], own.neighbour_ties == "all"
            if own.neighbours is not None or with_ties:
                near = neighbours, file["distances"][()]
                neighbours, n_tied = _nearest(*near, n_wanted, path, with_ties=with_ties)
        train, origin = _train_of(own, n_database, path)
        params: dict[str, Any] = {"true_distance": _NOT_EUCLIDEAN[distance]} if distance in _NOT_EUCLIDEAN else {}
        params |= {N_NEIGHBOURS: n_wanted} if with_ties else {}
        described = describe_neighbours(n_wanted, distance, with_ties=with_ties)
        return Dataset(
            name=own.name,
            features=features,
            query=np.arange(n_database, len(features)),
            database=np.arange(n_database),
            train=train,
            rule="neighbours",
            rule_params=params,
            neighbours=neighbours,
            features_name="features",
            about={
                "summary": f"{path.stem} of ann-benchmarks",
                "protocol": "its test vectors as queries, its training vectors as database; level 1 for the "
                f"{described} as the file gives them; {len(train):,} of {n_database:,} database vectors for "
                f"training{origin}",
                **describe_ties(n_tied, n_queries, with_ties=with_ties),
                "source": path.name,
                "features": "as given" + (", not scaled to unit length" if distance == "angular" else ""),
                "licence": "code of ann-benchmarks: MIT; the vectors: see their authors",
                "citation": "M. Aumüller, E. Bernhardsson, A. Faithfull, ANN-Benchmarks: A Benchmarking Tool for "
                "Approximate Nearest Neighbor Algorithms, Information Systems 2020",
            },
        )

    def _ask_for_name(self) -> NoReturn:
        path = self.options.source
        if path is None:
            (path,) = demand(data_dir() / "sources" / self.name, [_EXAMPLE], f"dataset {self.name!r}")
        raise HashbenchError(
            f"choose a name for the file of ann-benchmarks: hashbench prepare --from {path} "
            f"--name {path.stem.partition('-')[0] or 'mydata'}."
        )

    def _refuse_other_choices(self, own: OwnData) -> None:
        if self.kind not in self.features:
            raise HashbenchError(f"features {self.kind!r} are computed from images, and {own.items} holds vectors.")
        other = (own.labels, own.query_items, own.query_labels, own.true_distance)
        counts = (own.n_queries, own.queries_per_label, own.train_per_label)
        is_other_rule = own.rule not in (None, "neighbours")
        is_cleaned = own.skip_bad_images or own.leave_out
        if is_cleaned or is_other_rule or any(choice is not None for choice in (*other, *counts)):
            raise HashbenchError(
                f"{own.items} is a file of ann-benchmarks, which has queries and neighbours; only --neighbours, "
                "--neighbour-ties, --train, --train-index and --seed can be chosen."
            )


def _train_of(own: OwnData, n_database: int, path: Path) -> tuple[IntArray, str]:
    """Read the row numbers of the training items, or draw them; describe the choice."""
    if own.train_index is not None:
        if own.n_train is not None or own.seed:
            raise HashbenchError("--train-index names the training items; leave out --train and --seed.")
        return read_rows(own.train_index, n_database), ", as listed"
    n_train = own.n_train or min(n_database, _MOST_TRAIN)
    if n_train > n_database:
        raise HashbenchError(f"{path} has {n_database:,} vectors, fewer than the {n_train:,} of --train.")
    train = np.sort(np.random.default_rng(own.seed).permutation(n_database)[:n_train])
    return train, f", drawn with seed {own.seed}" if n_train < n_database else ""


def _nearest(
    neighbours: IntArray, distances: AnyArray, n_wanted: int, path: Path, *, with_ties: bool
) -> tuple[IntArray, int]:
    """Return the first neighbours, perhaps with those as near, and the number of queries that have such others."""
    n_listed = neighbours.shape[1]
    if n_wanted > n_listed:
        raise HashbenchError(
            f"{path} lists {n_listed} neighbours of each query, fewer than the {n_wanted} of --neighbours."
        )
    if not (distances[:, :-1] <= distances[:, 1:]).all():
        raise HashbenchError(
            f"{path} does not list neighbours by rising distance, so its first {n_wanted} may not be the nearest. "
            "Leave --neighbours out, or sort them."
        )
    is_near = distances <= distances[:, n_wanted - 1, None]
    n_tied = int((is_near.sum(axis=1) > n_wanted).sum())
    if not with_ties:
        return neighbours[:, :n_wanted], n_tied
    if n_open := int(is_near[:, -1].sum()):
        raise HashbenchError(
            f"for {n_open} queries all {n_listed} neighbours that {path} lists are as near as the first {n_wanted}, so "
            "others may be too. Choose fewer --neighbours, or leave --neighbour-ties out."
        )
    return padded(neighbours[is_near], is_near.sum(axis=1)), n_tied


def _checked(file: "h5py.File", path: Path) -> str:
    """Check that the arrays exist and fit together; return the name of the distance."""
    import h5py

    distance = str(file.attrs.get("distance", "an unnamed"))
    if file.attrs.get("type") == "sparse" or distance == "jaccard":
        raise HashbenchError(
            f"{path} holds sets of different sizes ({distance} distance), and hash methods need vectors of one length; "
            "choose a file with euclidean, angular or hamming distance."
        )
    missing = [name for name in _KINDS if not isinstance(file.get(name), h5py.Dataset)]
    if missing:
        raise HashbenchError(f"{path} lacks {', '.join(missing)} of the arrays {', '.join(_KINDS)}; fetch it again.")
    wrong = [f"{name} of {file[name].dtype}" for name, kinds in _KINDS.items() if file[name].dtype.kind not in kinds]
    if wrong:
        raise HashbenchError(f"{path} holds {', '.join(wrong)}; expected numbers, and whole ones as neighbors.")
    for name in _KINDS:
        check_stored(file[name], f"{name} of {path}")
    train, test, neighbours, distances = (file[name].shape for name in _KINDS)
    fits = len(train) == len(test) == len(neighbours) == 2 and train[1] == test[1]
    if not (fits and len(file["test"]) == neighbours[0] and neighbours == distances):
        raise HashbenchError(
            f"arrays of {path} do not fit together: train {train}, test {test}, neighbors {neighbours}, distances "
            f"{distances}; expected (n, d), (q, d), (q, k) and (q, k)."
        )
    return distance

"""Users' own features and labels, or folders of images."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hashbench._choices import LEAVE_OUT, OWN_RULES
from hashbench._typing import AnyArray, BoolArray, IntArray
from hashbench._validation import as_int64, as_tuple, check_choice, check_labelled, multi_hot, number_words
from hashbench.adapter import DatasetAdapter, OwnData
from hashbench.affinity import as_affinity
from hashbench.dataset import N_NEIGHBOURS, Dataset, check_finite
from hashbench.datasets._unlabelled import distance_rule
from hashbench.errors import HashbenchError, counted
from hashbench.sources.array_files import (
    read_array,
    read_items,
    read_rows,
    refuse_nameless,
    refuse_transposed,
    split_spec,
)
from hashbench.sources.features.extraction import KINDS, extract, extract_texts
from hashbench.sources.features.transformers_models import is_model
from hashbench.sources.formats import LABEL_KEYS
from hashbench.sources.images import read_tree, without_bad
from hashbench.sources.inspection import LEFT_OUT, find_copies
from hashbench.sources.neighbours import describe_neighbours, describe_ties, find_neighbours
from hashbench.sources.pair_files import refuse_other_ids
from hashbench.sources.splits import draw_any, draw_by_label, draw_split
from hashbench.sources.tables import stray_word
from hashbench.store.inputs import reading

_MOST_QUERIES = 1_000  # drawn by default
_THRESHOLD_ITEMS = 5_000  # training items whose distances give the thresholds of the distance rule
_BY_FOLDER = "split by folder: "
_WITHOUT_LABELS = ("distance", "neighbours")


class Arrays(DatasetAdapter):
    """Features and labels of any origin, under a name that the user chooses."""

    name = "arrays"
    summary = "your own files or folder of images: hashbench prepare --from FILE --labels FILE --name NAME"
    features = ("features", *KINDS)
    takes = ("weights", "image_size")
    needs = "your own files"

    def prepare(self) -> Dataset:
        """Read features and labels, draw a split, choose the affinity rule."""
        own = self.options.own
        if own is None:
            raise HashbenchError(
                "'arrays' is for your own data: hashbench prepare --from features.npy --labels labels.npy "
                "--name mydata."
            )
        if own.query_labels is not None and own.query_items is None:
            raise HashbenchError("--query-labels needs --query-from, the queries that have these labels.")
        with reading(Path(own.items)):
            is_folder = split_spec(own.items)[0].is_dir()
        items = self._of_folder(own) if is_folder else self._of_files(own)
        features, labels = items.get("features"), items.pop("labels")
        n_items = len(next(array for array in (features, items.get("images")) if array is not None))
        n_own, folders, rows_in_file = items.pop("n_queries", 0), items.pop("folders", []), items.pop("rows")
        n_bad = items.pop("n_bad", 0)
        features_name = f"{self.kind}{items.pop('remark', '')}"
        (query, database, train), protocol = _by_folder(own, folders) or _split(own, n_items, n_own, labels)
        if len(set(folders)) > 1 and not protocol.startswith(_BY_FOLDER):
            protocol += f"; folders {', '.join(sorted(set(folders)))} pooled"
        if n_bad:
            protocol += f"; {n_bad:,} of {n_items + n_bad:,} images left out, since they cannot be decoded"
        if own.leave_out:
            images = items.get("images")
            roles = {"query": query, "database": database, "training": train}
            is_left, words = _left_out(own, n_items, features, images, roles)
            protocol += words
            left, rows = np.flatnonzero(is_left), np.flatnonzero(~is_left)
            query, database, train = (np.searchsorted(rows, role[~is_left[role]]) for role in roles.values())
            features, images, labels = (array if array is None else array[rows] for array in (features, images, labels))
            is_own = left >= n_items - n_own
            by_file = {"items": rows_in_file[left[~is_own]].tolist(), "queries": rows_in_file[left[is_own]].tolist()}
            items |= {"features": features, "images": images}
            items["about"] |= {LEFT_OUT: json.dumps(by_file)}
        rule = _rule(own, labels)
        n_minus = 0 if labels is None else np.sum(labels == -1)
        if n_minus and len(np.unique(labels)) > 2:
            protocol += f"; label -1, of {n_minus:,} items, is a class like any other"
        is_drawn = (own.n_train, own.train_per_label) != (None, None)
        is_split_drawn = is_drawn or not (n_own or protocol.startswith(_BY_FOLDER))
        _refuse_idle(own, rule, is_drawn=is_split_drawn or (rule == "distance" and len(train) > _THRESHOLD_ITEMS))
        distance = own.true_distance or "euclidean"
        params: dict[str, Any] = {} if distance == "euclidean" else {"true_distance": distance}
        neighbours = None
        if rule in _WITHOUT_LABELS and features is not None:
            check_finite(features, own.name)  # names rows of the file, and before the long work
        if rule == "neighbours" and own.neighbours is not None:
            if features is None:
                raise HashbenchError(
                    "rule 'neighbours' needs features to compare, and these are images only; choose other --features."
                )
            arrays, with_ties = (features[query], features[database]), own.neighbour_ties == "all"
            neighbours, n_tied = find_neighbours(
                *arrays, own.neighbours, distance, self.options.on_progress, with_ties=with_ties
            )
            protocol += f"; level 1 for the {describe_neighbours(own.neighbours, distance, with_ties=with_ties)}"
            items["about"] |= describe_ties(n_tied, len(query), with_ties=with_ties)
            params |= {N_NEIGHBOURS: own.neighbours} if with_ties else {}
        if rule == "distance" and features is not None:
            measured = np.random.default_rng(own.seed).permutation(train)[:_THRESHOLD_ITEMS]
            params = distance_rule(features[measured])["rule_params"]
            protocol += f"; levels by percentiles of the distances between {len(measured):,} training items"
        if own.dimensions is not None:
            n_all = 0 if features is None else features.shape[1]
            if features is None or own.dimensions > n_all:
                has = "images only" if features is None else f"features of {n_all:,} dimensions"
                raise HashbenchError(
                    f"--dimensions is {own.dimensions}, and these are {has}; give no more than there are."
                )
            items["features"] = features[:, : own.dimensions]
            protocol += f"; methods get the first {own.dimensions:,} of {n_all:,} dimensions"
        return Dataset(
            name=own.name,
            query=query,
            database=database,
            train=train,
            rule=rule,
            rule_params=params,
            labels=None if rule in _WITHOUT_LABELS else labels,
            neighbours=neighbours,
            features_name=features_name,
            about={"summary": "own data", "protocol": protocol, "source": Path(own.items).name, **items.pop("about")},
            **items,
        )

    def _of_files(self, own: OwnData) -> dict[str, Any]:
        if own.skip_bad_images:
            raise HashbenchError(f"--skip-bad-images is for folders of images; leave it out for {own.items}.")
        is_text = is_model(self.kind)
        if not (is_text or self.kind == "features"):
            raise HashbenchError(
                f"features {self.kind!r} are computed from images, and {own.items} is not a folder of images."
            )
        for items, of_labels in ((own.items, own.labels), (own.query_items, own.query_labels)):
            refuse_other_ids([spec] for spec in (items, of_labels) if spec is not None)
        features, labels, left_out = read_items(own.items, own.labels, are_texts=is_text)
        if labels is not None:
            refuse_transposed(features, own.items, labels.shape)
            labels = _one_each(labels, own.labels, own.items, len(features))
        n_queries = 0
        about: dict[str, str] = {}
        if own.query_items is not None:
            query_features, query_labels, _ = read_items(own.query_items, own.query_labels, are_texts=is_text)
            if query_features.shape[1:] != features.shape[1:]:
                raise HashbenchError(
                    f"{own.query_items} has {query_features.shape[1]} columns and {own.items} {features.shape[1]}; "
                    "queries and database items need the same features."
                )
            if query_labels is not None:
                query_labels = _one_each(query_labels, own.query_labels, own.query_items, len(query_features))
            if (labels is None) != (query_labels is None):
                has, lacks = ("query", "database") if labels is None else ("database", "query")
                raise HashbenchError(
                    f"the {has} items have labels and the {lacks} items have none; give labels for both or neither."
                )
            if labels is not None and query_labels is not None:
                if labels.shape[1:] != query_labels.shape[1:]:
                    raise HashbenchError(
                        f"labels of the database have shape {labels.shape} and those of the queries "
                        f"{query_labels.shape}; both need the same form and number of classes."
                    )
                about |= _unmatched(query_labels, labels, own.query_labels or own.query_items, own.labels or own.items)
                labels = np.concatenate([labels, query_labels])
            features, n_queries = np.concatenate([features, query_features]), len(query_features)
        description, remark = "as given", ""
        if is_text:
            extracted = extract_texts(self.kind, features.tolist(), self.options)
            features, description, remark = np.asarray(extracted.features), extracted.description, extracted.remark
        return {
            "features": features,
            "labels": None if labels is None else _as_labels(labels, own.labels or own.items),
            "n_queries": n_queries,
            "rows": np.concatenate([np.arange(len(features) - n_queries), np.arange(n_queries)]),
            "remark": remark,
            "about": {**about, "features": "; ".join(filter(None, [description, left_out]))},
        }

    def _of_folder(self, own: OwnData) -> dict[str, Any]:
        if self.kind == "features":
            raise HashbenchError(f"{own.items} is a folder; choose --features to compute: {', '.join(KINDS)}.")
        if own.query_items is not None:
            raise HashbenchError("queries of a folder of images are drawn; --query-from is for files of features.")
        tree = read_tree(Path(own.items))
        n_images, labels = len(tree.images), None
        rows = np.arange(n_images)
        if own.labels:
            labels = _one_each(read_array(own.labels, LABEL_KEYS), own.labels, own.items, n_images)
        if own.skip_bad_images:
            tree, rows = without_bad(tree)
            labels = None if labels is None else labels[rows]
        n_bad = n_images - len(rows)
        if n_bad and own.train_index is not None:
            raise HashbenchError(
                f"--train-index counts all images, and {n_bad:,} cannot be decoded. Remove these, and count the others."
            )
        if len(tree.classes) < 2 and own.labels is None:
            raise HashbenchError(
                f"images of {own.items} lie in one class, {tree.classes[0]!r}; expected two or more folders "
                "train/<class>/ or <class>/ with files, or give --labels."
            )
        extracted = extract(self.kind, tree.images, self.options)
        return {
            "features": extracted.features,
            "images": extracted.images,
            "labels": tree.labels if labels is None else _as_labels(labels, str(own.labels)),
            "folders": tree.splits,
            "rows": rows,
            "n_bad": n_bad,
            "remark": extracted.remark,
            "about": extracted.about,
        }


def _left_out(
    own: OwnData, n_items: int, features: AnyArray | None, images: AnyArray | None, roles: Mapping[str, IntArray]
) -> tuple[BoolArray, str]:
    """Choose the items to leave out, True for each, and describe the choice; copies are looked for among the others."""
    words, is_left = "", np.zeros(n_items, dtype=np.bool_)
    for choice in sorted({*as_tuple(own.leave_out)}, reverse=True):  # zeros first, which are copies of each other
        check_choice(choice, LEAVE_OUT, "leave_out")
        query, database, train = (rows[~is_left[rows]] for rows in roles.values())
        if choice == "duplicates":
            if features is not None:
                check_finite(features, own.name)
            has_copy = find_copies(features, images, query, {"database": database, "train": train})[2]
            is_left[query[has_copy]] = True
            words += f"; {has_copy.sum():,} of {counted(len(query), 'query', 'queries')} left out, since they equal or "
            words += "nearly equal database or training items"
        elif features is None:
            raise HashbenchError("--leave-out zeros needs features, and these are images only; leave it out.")
        else:
            is_left[~features.any(axis=1)] = True
            words += f"; {counted(int(is_left.sum()), 'item')} left out, since their features are all zero"
        for role, rows in roles.items():
            if is_left[rows].all():
                raise HashbenchError(
                    f"--leave-out {choice} leaves no {role} items. Choose other items, or leave it out."
                )
    return is_left, words


def _rule(own: OwnData, labels: AnyArray | None) -> str:
    """Return the chosen affinity rule, or the one that fits the labels."""
    fits = "distance" if labels is None else "same-label" if labels.ndim == 1 else "shared-labels"
    rule = own.rule or ("neighbours" if own.neighbours else fits)
    if rule not in OWN_RULES:
        raise HashbenchError(f"affinity rule {rule!r} is not for your own data; choose one of {', '.join(OWN_RULES)}.")
    if (rule == "neighbours") != (own.neighbours is not None):
        raise HashbenchError(
            "--affinity neighbours and --neighbours K go together: the K nearest database items of each query are "
            f"relevant; got --affinity {rule} {f'with --neighbours {own.neighbours}' if own.neighbours else 'only'}."
        )
    return rule


def _refuse_idle(own: OwnData, rule: str, *, is_drawn: bool) -> None:
    """Refuse labels, a distance and a seed that would have no effect."""
    if rule in _WITHOUT_LABELS and (own.labels or own.query_labels) and own.queries_per_label is None:
        option = "--neighbours" if rule == "neighbours" else f"--affinity {rule}"
        raise HashbenchError(f"{option} compares features, so --labels have no effect; leave them out.")
    if own.neighbour_ties != "first" and rule != "neighbours":
        raise HashbenchError(f"--neighbour-ties {own.neighbour_ties} needs --neighbours K; add it, or leave it out.")
    if rule == "distance" and own.true_distance is not None:
        raise HashbenchError("--affinity distance uses Euclidean distance; leave --true-distance out.")
    if own.seed and not is_drawn:
        raise HashbenchError(
            f"--seed {own.seed} has no effect, as neither queries nor training items are drawn; leave it out."
        )


def _by_folder(own: OwnData, folders: list[str]) -> tuple[tuple[IntArray, ...], str] | None:
    """Split by the folders train/ and test/ or val/, if these are all folders and no drawing is requested."""
    counts = (own.n_queries, own.n_train, own.queries_per_label, own.train_per_label)
    if set(folders) not in ({"train", "test"}, {"train", "val"}) or any(count is not None for count in counts):
        return None
    is_train = np.array(folders) == "train"
    query, database = np.flatnonzero(~is_train), np.flatnonzero(is_train)
    (query_folder,) = set(folders) - {"train"}
    train = database if own.train_index is None else database[read_rows(own.train_index, len(database))]
    n_train = "all" if len(train) == len(database) else f"{len(train):,} of these, as listed,"
    words = f"{len(query):,} images of {query_folder}/ as queries, {len(database):,} of train/ as database, {n_train} "
    return (query, database, train), f"{_BY_FOLDER}{words}for training"


def _split(own: OwnData, n_items: int, n_own: int, labels: AnyArray | None) -> tuple[tuple[IntArray, ...], str]:
    """Split by the user's choices and draw the rest; the user's own queries are the last ``n_own`` items."""
    by_label = own.queries_per_label is not None or own.train_per_label is not None
    if by_label and (own.n_queries is not None or own.n_train is not None):
        raise HashbenchError("choose numbers of items per label or in total, not both.")
    if own.train_index is not None:
        if own.n_train is not None or own.train_per_label is not None:
            raise HashbenchError("--train-index names the training items; leave out --train and --train-per-label.")
        if not n_own:
            raise HashbenchError(
                "--train-index names rows of the database, and queries would be drawn from it. Pass your queries too "
                "(--query-from), or draw the training items (--train)."
            )
    if n_own:
        if own.n_queries is not None or own.queries_per_label is not None:
            raise HashbenchError(
                "--query-from gives all queries, so only training items can be drawn; leave out --queries and "
                "--queries-per-label."
            )
        database = np.arange(n_items - n_own)
        train, origin = _train_of(own, database, None if labels is None else labels[: len(database)])
        words = f"own queries; {len(train):,} of {len(database):,} database items for training{origin}"
        return (np.arange(len(database), n_items), database, train), words
    if by_label:
        if labels is None or own.queries_per_label is None:
            raise HashbenchError("to draw items for each label, give --queries-per-label and labels.")
        draw: Any = draw_split if labels.ndim == 1 else draw_by_label
        query, database, train = draw(labels, own.queries_per_label, own.train_per_label or 0, own.seed)
        words = f"{own.queries_per_label} queries per label"
        words += f", {own.train_per_label} training items per label" if own.train_per_label else ""
        return (query, database, train if len(train) else database), f"{words}, drawn with seed {own.seed}"
    n_queries = own.n_queries if own.n_queries is not None else min(_MOST_QUERIES, max(n_items // 10, 1))
    split = draw_any(n_items, n_queries, own.n_train, own.seed)
    words = f"{n_queries:,} queries and {len(split[2]):,} training items drawn with seed {own.seed}"
    return split, f"{words}, database = all but the queries"


def _train_of(own: OwnData, database: IntArray, labels: AnyArray | None) -> tuple[IntArray, str]:
    """Choose training items from a database, with the labels of its items; describe the choice."""
    if own.train_index is not None:
        return read_rows(own.train_index, len(database)), ", as listed"
    if own.train_per_label is not None:
        if labels is None:
            raise HashbenchError("to draw training items for each label, give labels.")
        draw: Any = draw_split if labels.ndim == 1 else draw_by_label
        train: IntArray = draw(labels, 0, own.train_per_label, own.seed)[2]
        return train, f", {own.train_per_label} per label, drawn with seed {own.seed}"
    n_train = own.n_train or len(database)
    if n_train > len(database):
        raise HashbenchError(f"there are {len(database)} database items, fewer than the {n_train} of --train.")
    return np.sort(np.random.default_rng(own.seed).permutation(database)[:n_train]), ""


def _one_each(labels: AnyArray, spec: str | None, items: str, n_items: int) -> AnyArray:
    """Check that there is one label per item; flatten a row or column of labels, as MATLAB has them."""
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.ravel()
    refuse_transposed(labels, spec or items, (n_items,))
    refuse_nameless(labels, spec or items, n_items)
    n_labels = len(labels) if labels.ndim else 1
    if n_labels != n_items:
        raise HashbenchError(f"{items} holds {n_items} items, but {spec or 'it'} labels for {n_labels}; give one each.")
    return labels


def _unmatched(query_labels: AnyArray, labels: AnyArray, query_name: str, name: str) -> dict[str, str]:
    """Describe classes of queries that the database lacks; refuse classes that all differ, and words beside numbers."""
    if labels.ndim != 1:
        return {}
    check_labelled(query_labels, query_name)
    check_labelled(labels, name)
    notes = as_affinity((query_labels, labels)).notes
    return {"labels": notes[0].removesuffix(".")} if notes else {}


def _as_labels(array: AnyArray, name: str) -> AnyArray:
    """Convert classes or multi-hot labels to the form of a dataset; names of classes become numbers."""
    check_labelled(array, name)
    if array.ndim == 2:
        return multi_hot(array, f"labels of {name}")
    if array.ndim == 1 and array.dtype.kind in "USO":
        stray = stray_word(array.astype(str))
        if stray is not None:
            raise HashbenchError(
                f"most labels of {name} are numbers, but item {stray} (the first is 0) has {str(array[stray])!r}. Fix "
                "that label, or use words for all classes."
            )
    if array.dtype.kind == "f" and np.isfinite(array).all() and (array == np.floor(array)).all():
        array = as_int64(array, f"labels of {name}")
    if array.ndim != 1 or array.dtype.kind not in "biuUSO":
        raise HashbenchError(
            f"{name} holds {array.dtype} of shape {array.shape}, expected classes of shape (n,) or multi-hot labels."
        )
    return as_int64(array, f"labels of {name}") if array.dtype.kind in "biu" else number_words(array.astype(str))[1]

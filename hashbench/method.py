"""The contract of a hashing method: a scikit-learn transformer from features to boolean codes."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, get_args

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from hashbench._plugins import same_folder
from hashbench._typing import AnyArray, BoolArray, FloatArray
from hashbench._validation import (
    allowed_values,
    as_labels,
    check_settings,
    choice,
    number_words,
    preset_settings,
    real,
    refuse_fractions,
    setting,
    whole,
)
from hashbench.affinity import Affinity, SameLabel, SharedLabels
from hashbench.bits import MAX_BITS, check_n_bits
from hashbench.dataset import RULES_OF_QUERIES, Dataset
from hashbench.errors import HashbenchError

__all__ = ["GROUPS", "HashMethod", "Hyperplanes", "choice", "real", "setting", "whole"]

_OF_ALL = {"n_bits": (whole(1, MAX_BITS),), "random_state": (whole(0, 2**32 - 1),)}
Supervision = Literal["none", "labels", "affinity"]
Reads = Literal["features", "labels"]
SUPERVISION: tuple[str, ...] = get_args(Supervision)
READS: tuple[str, ...] = get_args(Reads)
_LARGEST = 1e18  # parameter; integers must fit 64 bits, and products of real numbers float32
PLUGIN_NAMES: dict[type, str] = {}  # of third-party methods that were loaded by name
GROUPS = ("baseline", "unsupervised", "pair-based", "triplet-based", "list-based", "class-based")


class Hyperplanes(NamedTuple):
    """The planes behind bits: a bit is 1 where (x - origin) @ normals + offsets is above 0."""

    origin: FloatArray  # (n_features,)
    normals: FloatArray  # one direction per bit, (n_features, n_bits)
    offsets: FloatArray  # (n_bits,)


@dataclass(eq=False, repr=False)
class HashMethod(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of all methods: ``fit`` on training items, ``transform`` any items to codes.

    A subclass takes ``n_bits`` and keyword parameters in ``__init__`` (stored unchanged), learns in
    ``_fit`` and returns one real value per bit in ``_project``; the bit is 1 where that value is above 0.

    Attributes
    ----------
    supervision : {"none", "labels", "affinity"}
        What ``fit`` needs as ``y``: nothing, the labels of the training items, or their
        `hashbench.Affinity` to each other.
    reads : {"features", "labels"}
        Which part of a dataset is ``X``, unless parameters change it (``input_kind``); only the oracle baseline reads
        labels.
    group : str
        Block of tables that lists the method, one of ``GROUPS``.
    version : int
        To be raised whenever a seed may give different codes.
    presets : mapping
        Named parameter settings, such as a paper's; a value may be a function of the code length. See ``preset``.
    libraries : tuple of str
        Installed packages that the codes depend on.
    modules : tuple of str
        Of a plug-in: imported modules outside its own package that decide its codes.
    is_slow : bool
        Whether fits take so long that ``make reproduce-tables`` leaves the method out.

    Examples
    --------
    >>> class Signs(HashMethod):
    ...     def _fit(self, X, y):
    ...         self.mean_ = X.mean(axis=0)
    ...     def _project(self, X):
    ...         return (X - self.mean_)[:, : self.n_bits]
    >>> Signs(n_bits=2).fit_transform([[1, 4], [3, 2]]).tolist()
    [[False, True], [True, False]]
    """

    supervision: ClassVar[Supervision] = "none"
    reads: ClassVar[Reads] = "features"
    group: ClassVar[str] = "unsupervised"
    version: ClassVar[int] = 1
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    libraries: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "scikit-learn")
    modules: ClassVar[tuple[str, ...]] = ()
    is_slow: ClassVar[bool] = False
    n_bits: int = 32

    def fit(self, X: npt.ArrayLike, y: Any = None) -> Self:
        """Learn the hash functions.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Training items, finite.
        y : array or Affinity, optional
            Supervision as named by ``supervision``. A method that learns from an affinity also accepts labels,
            classes of shape (n_samples,) or multi-hot of shape (n_samples, n_classes).

        Returns
        -------
        self
            The fitted method.

        Raises
        ------
        HashbenchError
            If a parameter is out of range, ``n_bits`` is more than the items allow, or ``y`` does not match them.
        """
        self.check_parameters()
        checked = self._checked_items(X, reset=True)
        supervision = self._checked_supervision(y, len(checked))
        with same_folder():
            self._fit(checked, supervision)
        return self

    @property
    def input_kind(self) -> Literal["features", "labels", "images"]:
        """Which part of a dataset is ``X``, with the current parameters."""
        return self.reads

    @property
    def label(self) -> str:
        """Name of a method that is built in or a plug-in, else of the class."""
        return self._name()

    @property
    def advice(self) -> str:
        """What to change, in a sentence, if most of its codes are equal or many of its bits constant; may be empty."""
        return ""

    def check_parameters(self) -> None:
        """Raise HashbenchError for a parameter of a wrong type or out of range, with its name and allowed values."""
        check_n_bits(self.n_bits)
        allowed, params = _OF_ALL | allowed_values(type(self)), self.get_params(deep=False)
        for name, value in params.items():
            if isinstance(value, bool) and name in allowed and bool not in allowed[name]:
                raise HashbenchError(f"{self.label} got {name}={value!r}, but {name} is not a switch. Pass a value.")
            if isinstance(value, int | float) and _LARGEST < abs(value) < np.inf:
                raise HashbenchError(f"{self.label} got {name} beyond {_LARGEST:.0e}. Pass a smaller number.")
        check_settings(allowed, params, self.label)

    @classmethod
    def preset(cls, name: str, n_bits: int) -> dict[str, Any]:
        """Return the settings of a preset, such as a paper's; ``--preset NAME`` on the command line.

        They are parameters by name, without ``n_bits``, for codes of ``n_bits``. Raises HashbenchError for a name that
        is not in ``presets``.
        """
        return preset_settings(cls.presets, cls._name(), name, n_bits)

    def project(self, X: npt.ArrayLike) -> FloatArray:
        """Compute the real value behind each bit.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Items, finite.

        Returns
        -------
        ndarray of shape (n_samples, n_bits), float64
            The bit is 1 where the value is above 0.

        Raises
        ------
        HashbenchError
            If the method does not return one finite real number for each item and bit.
        """
        check_is_fitted(self)
        checked = self._checked_items(X, reset=False)
        with same_folder():
            values = np.asarray(self._project(checked))
        if values.shape != (len(checked), self.n_bits) or values.dtype.kind not in "biuf":
            raise HashbenchError(
                f"{self.label} returned {values.dtype} projections of shape {values.shape} for {len(checked)} items of "
                f"{self.n_bits} bits, expected real numbers of shape {(len(checked), self.n_bits)}. Fix its _project."
            )
        if not np.isfinite(values).all():
            raise HashbenchError(
                f"{self.label} returned {int((~np.isfinite(values)).sum())} projections that are not finite, the first "
                f"for item {int(np.argmin(np.isfinite(values).all(axis=1)))} (counted from 0). Scale the features."
            )
        return values.astype(np.float64, copy=False)

    def transform(self, X: npt.ArrayLike) -> BoolArray:
        """Encode items.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Items, finite.

        Returns
        -------
        ndarray of shape (n_samples, n_bits), bool
            One code per row.
        """
        return self.project(X) > 0

    def hyperplanes(self) -> Hyperplanes | None:
        """Return the planes behind the bits, with which other programs can encode.

        None, as here, for a method that is not known to be linear.
        """
        return None

    def fitted_state(self) -> dict[str, Any]:
        """Return what ``fit`` learned, for a file; with the parameters it is all that encoding needs.

        By default these are all attributes that end in an underscore. Values are arrays, numbers, texts and None, and
        lists, tuples, dicts, dataclasses and named tuples of such.
        """
        return {name: value for name, value in vars(self).items() if name.endswith("_") and name[0] != "_"}

    def set_fitted_state(self, state: Mapping[str, Any]) -> None:
        """Restore what `fitted_state` of a method with the same parameters returned, instead of a fit."""
        for name, value in state.items():
            setattr(self, name, value)

    def recorded_params(self) -> dict[str, Any]:
        """Return the parameters that identify codes, besides length and seed, sorted; results can hold their values."""
        params = self.get_params(deep=False)
        return {key: params[key] for key in sorted(params) if key not in ("n_bits", "random_state")}

    def refusal(self, dataset: Dataset) -> str | None:
        """Return a sentence on why this method cannot run on a dataset, or None if it can."""
        name = self.label
        if self.input_kind == "features" and dataset.features is None:
            return (
                f"{name} reads features, and dataset {dataset.name!r} as prepared has images only. Prepare it with "
                "other --features (your own data under another --name), or "
                + ("add" if hasattr(self, "backbone") else "choose a learned method, with")
                + " --param backbone=squeezenet."
            )
        if self.input_kind == "images" and dataset.images is None:
            return (
                f"{name} with a backbone reads images, and dataset {dataset.name!r} as prepared has features only. "
                f"Choose its images, if it has any: {dataset.name}:images; of your own data, prepare them with "
                "--features images under another --name."
            )
        if self.input_kind == "labels" and not dataset.is_single_label:
            return f"{name} reads one class label per item, and dataset {dataset.name!r} has none."
        if self.supervision == "labels" and dataset.labels is None:
            return f"{name} learns from labels, and dataset {dataset.name!r} has none."
        if self.supervision == "affinity" and dataset.rule in RULES_OF_QUERIES:
            return f"{name} learns from pairs of training items, and {dataset.name!r} has no affinity for them."
        return None

    def _checked_items(self, X: npt.ArrayLike, *, reset: bool) -> Any:
        """Return items as ``_fit`` and ``_project`` expect them; ``reset`` marks training items."""
        checked = validate_data(self, X, dtype=np.float64, reset=reset)
        largest = max(float(checked.max()), -float(checked.min()))
        limits = np.finfo(np.float64)
        n_summed = (
            checked.size if reset else 4 * checked.shape[1]
        )  # squared features in the distance to a training item
        is_small = reset and 0 < largest < limits.tiny**0.5
        if is_small or largest > (limits.max / n_summed) ** 0.5:
            raise HashbenchError(
                f"{self.label} got features up to {largest:.3g}, whose squares leave the range of float64. "
                "Scale the features."
            )
        return checked

    def _checked_supervision(self, y: Any, n_samples: int) -> Any:
        """Return what ``_fit`` learns from: labels of every item, or the affinity of the items to each other."""
        if self.supervision == "none":
            return y
        if y is None:
            raise HashbenchError(
                f"{self.label} requires y to be passed, but the target y is None. "
                "Pass the labels of the training items."
            )
        if isinstance(y, Affinity) and self.supervision == "labels":
            raise HashbenchError(f"{self.label} learns from labels, got y of kind {type(y).__name__}. Pass labels.")
        if isinstance(y, Affinity):
            refuse_fractions(y.levels, self.label)
            shape: tuple[int, ...] = (y.n_queries, y.n_database)
            expected: tuple[int, ...] = (n_samples, n_samples)
        else:
            y = as_labels(y, f"labels for {self.label}")
            if y.dtype.kind in "fc" and not np.isfinite(y).all():
                raise HashbenchError(
                    f"{self.label} got {int((~np.isfinite(y)).sum())} labels that are not finite. "
                    "Leave out such items, or label them."
                )
            if y.ndim == 1 and y.dtype.kind not in "iub":
                y = self._numbered(y)
            shape, expected = y.shape[:1], (n_samples,)
        if shape != expected:
            raise HashbenchError(f"{self.label} got {n_samples} items, but y for {shape}, expected {expected}.")
        if self.supervision == "labels" or isinstance(y, Affinity):
            return y
        return SameLabel(y, y) if y.ndim == 1 else SharedLabels(y, y)

    @classmethod
    def _name(cls) -> str:
        package, _, stem = cls.__module__.rpartition(".")
        return stem.replace("_", "-") if package == "hashbench.methods" else PLUGIN_NAMES.get(cls, cls.__name__)

    def _numbered(self, names: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        try:
            return number_words(names)[1]
        except TypeError:
            kinds = sorted({type(name).__name__ for name in names})
            raise HashbenchError(
                f"{self.label} got labels of different kinds: {', '.join(kinds)}. Use only numbers or only names."
            ) from None

    @property
    def _n_features_out(self) -> int:
        return self.n_bits

    # X has type Any so that a subclass can declare its input, such as npt.NDArray[np.float64], under mypy --strict.

    @abstractmethod
    def _fit(self, X: Any, y: Any) -> None:
        """Learn from checked items, float64 (n_samples, n_features); set attributes that end in an underscore."""

    @abstractmethod
    def _project(self, X: Any) -> AnyArray:
        """Return one real value per bit for checked items, float64 (n_samples, n_features)."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.supervision != "none"
        tags.transformer_tags.preserves_dtype = []  # codes are boolean
        return tags

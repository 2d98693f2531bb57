"""Names of datasets for the retrieval of classes that training does not see."""

import re
from dataclasses import dataclass

from hashbench.errors import HashbenchError

_SUFFIXES = {("unseen", "unseen"): "", ("unseen", "all"): "-database-all", ("all", "all"): "-all"}
_NAME = re.compile(rf"(.+)-unseen(\d+)-fold(\d+)({'|'.join(_SUFFIXES.values())})")


@dataclass(frozen=True)
class UnseenClasses:
    """A protocol that hides classes from training."""

    n_classes: int  # that training does not see
    fold: int = 0  # folds share no class
    queries: str = "unseen"  # classes of the queries, "unseen" or "all"
    database: str = "unseen"  # likewise; "all" if the queries are of all classes

    def __post_init__(self) -> None:
        if (self.queries, self.database) not in _SUFFIXES:
            raise HashbenchError(
                f"queries are of {self.queries} classes and the database of {self.database} classes, so queries of "
                "seen classes have no relevant items; add --unseen-database all."
            )

    def name_of(self, spec: str) -> str:
        """Return the name of a dataset, ``NAME`` or ``NAME:FEATURES``, under this protocol."""
        base, colon, kind = spec.partition(":")
        return f"{base}-unseen{self.n_classes}-fold{self.fold}{self._suffix}{colon}{kind}"

    def name_of_all(self, base: str) -> str:
        """Return the name of a dataset under this protocol over all folds, for a report."""
        return f"{base}-unseen{self.n_classes}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return _SUFFIXES[self.queries, self.database]

    @property
    def in_words(self) -> str:
        """Description for a caption."""
        classes = "class" if self.n_classes == 1 else f"{self.n_classes} classes"
        hidden = f"the {classes} of fold {self.fold} that training did not see"
        if self.database == "unseen":
            return f"queries and database of {hidden}"
        if self.queries == "unseen":
            return f"queries of {hidden}, database of all classes"
        return f"queries and database of all classes, with {hidden}"


def split_name(name: str) -> tuple[str, UnseenClasses | None]:
    """Split the name of a dataset into the name of the whole dataset and the protocol, None without one.

    Examples
    --------
    >>> split_name("digits-unseen3-fold0-all")
    ('digits', UnseenClasses(n_classes=3, fold=0, queries='all', database='all'))
    >>> split_name("digits")
    ('digits', None)
    """
    match = _NAME.fullmatch(name)
    if match is None:
        return name, None
    base, n_classes, fold, suffix = match.groups()
    queries, database = next(key for key, known in _SUFFIXES.items() if known == suffix)
    protocol = UnseenClasses(int(n_classes), int(fold), queries, database)
    return (base, protocol) if protocol.name_of(base) == name else (name, None)  # such as fold00


def check_fold(name: str) -> None:
    """Refuse the name of a dataset with unseen classes, such as ``digits-unseen3``, if it lacks a fold."""
    if re.fullmatch(r".+-unseen\d+", name):
        raise HashbenchError(f"{name!r} names unseen classes without a fold; add one, such as {name}-fold0.")

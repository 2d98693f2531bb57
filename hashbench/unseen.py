"""Retrieval of classes that training does not see: what datasets made for it are called."""

import re
from dataclasses import dataclass

from hashbench.errors import HashbenchError

_SUFFIXES = {("unseen", "unseen"): "", ("unseen", "all"): "-database-all", ("all", "all"): "-all"}
_NAME = re.compile(rf"(.+)-unseen(\d+)-fold(\d+)({'|'.join(_SUFFIXES.values())})")


@dataclass(frozen=True)
class UnseenClasses:
    """Which classes are left out of training, and of which classes queries and database are.

    Parameters
    ----------
    n_classes : int
        How many classes training does not see.
    fold : int
        Which of them: the folds share no class.
    queries, database : {"unseen", "all"}
        Of which classes the queries and the database items are.

    Raises
    ------
    HashbenchError
        If queries of all classes are to be looked for among unseen ones alone.
    """

    n_classes: int
    fold: int = 0
    queries: str = "unseen"
    database: str = "unseen"

    def __post_init__(self) -> None:
        if (self.queries, self.database) not in _SUFFIXES:
            raise HashbenchError(
                f"queries are of {self.queries} classes and the database of {self.database} ones, where those of seen "
                "classes have nothing relevant; choose --unseen-database all, too."
            )

    def name_of(self, spec: str) -> str:
        """Name what the protocol makes of a dataset, ``NAME`` or ``NAME:FEATURES``."""
        base, colon, kind = spec.partition(":")
        return f"{base}-unseen{self.n_classes}-fold{self.fold}{self._suffix}{colon}{kind}"

    def name_of_all(self, base: str) -> str:
        """Name what the protocol makes of a dataset over all folds, for a report."""
        return f"{base}-unseen{self.n_classes}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return _SUFFIXES[self.queries, self.database]

    @property
    def in_words(self) -> str:
        """What was learned and what is scored, for a caption."""
        classes = "class" if self.n_classes == 1 else f"{self.n_classes} classes"
        hidden = f"the {classes} of fold {self.fold} that training did not see"
        if self.database == "unseen":
            return f"queries and database of {hidden}"
        if self.queries == "unseen":
            return f"queries of {hidden}, database of all classes"
        return f"queries and database of all classes, with {hidden}"


def split_name(name: str) -> tuple[str, UnseenClasses | None]:
    """Part the name of a dataset into that of what it is made of and the protocol, None if it is not one of these.

    Examples
    --------
    >>> split_name("digits-unseen3-fold0-all")
    ('digits', UnseenClasses(n_classes=3, fold=0, queries='all', database='all'))
    >>> split_name("digits")
    ('digits', None)
    """
    found = _NAME.fullmatch(name)
    if found is None:
        return name, None
    base, n_classes, fold, suffix = found.groups()
    queries, database = next(key for key, known in _SUFFIXES.items() if known == suffix)
    protocol = UnseenClasses(int(n_classes), int(fold), queries, database)
    return (base, protocol) if protocol.name_of(base) == name else (name, None)  # such as fold00


def check_fold(name: str) -> None:
    """Refuse the name of a dataset with unseen classes that says no fold, such as ``digits-unseen3``.

    Raises
    ------
    HashbenchError
        If ``name`` is such a one.
    """
    if re.fullmatch(r".+-unseen\d+", name):
        raise HashbenchError(f"{name!r} names unseen classes without a fold; say which, such as {name}-fold0.")

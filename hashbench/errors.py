"""The one exception for mistakes a user can mend, and the sentences that help."""

from collections.abc import Iterable


class HashbenchError(ValueError):
    """A mistake that the user can mend: what came in, what was expected, what to do.

    The command line prints it as one line and exits with code 1. It is a ``ValueError``,
    so that code written for scikit-learn estimators treats it as it expects.
    """


class Damaged(HashbenchError):
    """A file of ours that is not what it says; whoever can makes it again, and says so."""


class Refusal(HashbenchError):
    """A method that cannot run on this dataset with these parameters; a grid goes on without it."""


class JobFailure(Refusal):
    """A job that went wrong on the way; a grid goes on, and fails in the end."""


class TrainingFailure(JobFailure):
    """Training that went wrong for good, and would again; its checkpoint is of no use."""


def unknown_name(
    kind: str, name: str, choices: Iterable[str], like: str = "", meant: str = "", listed: str = ""
) -> HashbenchError:
    """Build the error for a name that is not among the choices.

    Parameters
    ----------
    kind : str
        What the name stands for, such as ``"method"``.
    name : str
        The name as the user typed it.
    choices : iterable of str
        All names that exist.
    like : str, optional
        What to compare with the choices in place of ``name``.
    meant : str, optional
        What to suggest, where the caller knows better than by comparing.
    listed : str, optional
        Where all names can be found, if they are too many for a sentence; then three near ones are suggested.

    Returns
    -------
    HashbenchError
        To be raised by the caller; it suggests the nearest name and lists them all, or says what does.
    """
    known = sorted(choices)
    hint = f" Did you mean {meant!r}?" if meant else suggestion(like or name, known, n=3 if listed else 1)
    choices_told = f"All {kind}s: {listed}" if listed else f"Known {kind}s: {', '.join(known)}"
    return HashbenchError(f"unknown {kind} {name!r}.{hint} {choices_told}.")


def suggestion(typed: str, choices: Iterable[str], n: int = 1) -> str:
    """Ask, after a space, if one of the ``n`` choices nearest to what was typed was meant; empty if none is near."""
    from difflib import get_close_matches  # not needed to show help

    folded, wanted = {choice.casefold(): choice for choice in choices}, typed.casefold()
    kinds = [choice for choice in folded if choice.startswith(f"{wanted}-")]  # cifar10 of cifar10-s1 and cifar10-s2
    near = [folded[one] for one in kinds or get_close_matches(wanted, folded, n=n, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Give a number with what it counts, as a sentence has it; without ``plural`` an s is enough.

    Examples
    --------
    >>> counted(1, "query", "queries"), counted(2000, "row")
    ('1 query', '2,000 rows')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def one_line(error: BaseException | str) -> str:
    """Give an error's text, or any text, without line breaks; nothing if the error fails to say."""
    try:
        return " ".join(str(error).split())
    except Exception:  # of a class that is not ours
        return ""

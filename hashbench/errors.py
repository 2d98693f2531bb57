"""The exception for mistakes a user can fix, and helpers for its sentences."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

_PACKAGES = {  # what is imported on demand: packages by module
    "PIL": "pillow",
    "faiss": "faiss-cpu",
    "filelock": "filelock",
    "h5py": "h5py",
    "jinja2": "jinja2",
    "joblib": "joblib",
    "matplotlib": "matplotlib",
    "numba": "numba",
    "numpy": "numpy",
    "onnx": "onnx",
    "onnxruntime": "onnxruntime",
    "pandas": "pandas",
    "platformdirs": "platformdirs",
    "requests": "requests",
    "rich": "rich",
    "scipy": "scipy",
    "sklearn": "scikit-learn",
    "threadpoolctl": "threadpoolctl",
    "usearch": "usearch",
}
_EXTRAS = {  # that have them; all others come with hashbench, or are to be installed by name
    "fast": ("numba",),
    "tables": ("pandas", "scipy"),
    "methods": ("joblib", "pillow", "requests", "scikit-learn", "threadpoolctl"),
    "figures": ("jinja2", "matplotlib"),
    "export": ("faiss-cpu", "onnx", "onnxruntime", "usearch"),
    "cluster": ("distributed",),
    "hf": ("transformers",),
    "parquet": ("pyarrow",),
    "safetensors": ("safetensors",),
}


class HashbenchError(ValueError):
    """A mistake that the user can fix: what came in, what was expected, what to do.

    The command line prints it as one line and exits with code 1. It is a ``ValueError``, as scikit-learn expects.

    Examples
    --------
    >>> issubclass(HashbenchError, ValueError)
    True
    """


class Damaged(HashbenchError):
    """A damaged file of hashbench's; callers that can rebuild it do, and report that."""


class OtherForm(Damaged):
    """A sound file of hashbench's, but of another kind or schema version."""


class TooLarge(HashbenchError):
    """What does not fit into free memory; a file that does not is no worse for it, so nobody replaces it."""


class Refusal(HashbenchError):
    """A method that cannot run on this dataset with these parameters; a grid skips it.

    Examples
    --------
    >>> issubclass(Refusal, HashbenchError)
    True
    """


class JobFailure(Refusal):
    """A job that failed; a grid runs the others, then exits with an error."""


class TrainingFailure(JobFailure):
    """Training that failed and would fail again; its checkpoint is of no use."""


def unknown_name(
    kind: str, name: str, choices: Iterable[str], like: str = "", meant: str = "", listed: str = ""
) -> HashbenchError:
    """Build the error for a name that is not among the choices; it suggests the nearest and lists them all.

    ``like`` is compared with the choices in place of ``name``; ``meant``, if given, is suggested without comparing. If
    there are too many to list, ``listed`` names where they can be found, and up to three near ones are suggested.
    """
    known = sorted(choices)
    hint = f" Did you mean {meant!r}?" if meant else suggestion(like or name, known, n=3 if listed else 1)
    names = f"All {kind}s: {listed}" if listed else f"Known {kind}s: {', '.join(known)}"
    return HashbenchError(f"unknown {kind} {name!r}.{hint} {names}.")


def suggestion(typed: str, choices: Iterable[str], n: int = 1) -> str:
    """Return `` Did you mean ...?`` with up to ``n`` choices nearest to what was typed; empty if none is near."""
    from difflib import get_close_matches  # not needed to show help

    folded, wanted = {choice.casefold(): choice for choice in choices}, typed.casefold()
    kinds = [choice for choice in folded if choice.startswith(f"{wanted}-")]  # cifar10 of cifar10-s1 and cifar10-s2
    exact = [choice for choice in folded if choice == wanted]
    near = [folded[choice] for choice in exact or kinds or get_close_matches(wanted, folded, n=n, cutoff=0.6)]
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


def nearest_pair(names: Sequence[str], others: Sequence[str]) -> tuple[str, str]:
    """Return the name, of the first few, that is most like one of the others, and this other; empty if none is near."""
    from difflib import SequenceMatcher, get_close_matches

    folded, few = {other.casefold(): other for other in others}, names[:3]
    pairs = [(name, folded[near]) for name in few for near in get_close_matches(name.casefold(), folded, n=1)]
    return max(
        pairs,
        key=lambda pair: SequenceMatcher(None, pair[0].casefold(), pair[1].casefold()).ratio(),
        default=(names[0], ""),
    )


def how_to_install(package: str) -> str:
    """Return the command that installs a package, by the extra of hashbench that has it."""
    extra = next((extra for extra, packages in _EXTRAS.items() if package in packages), None)
    return f"pip install 'hashbench[{extra}]'" if extra else f"pip install {package}"


@contextmanager
def needing(what: str = "this") -> Iterator[None]:
    """Turn the import of a missing package into an error that names its extra: ``what`` needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = _PACKAGES.get(str(error.name))  # a part that an installed package lacks is another fault
        if package is None:
            raise
        raise HashbenchError(f"{what} needs {package}, which is not installed: {how_to_install(package)}.") from error


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun; ``plural`` is for nouns that take more than an s.

    >>> counted(1, "query", "queries"), counted(2000, "row")
    ('1 query', '2,000 rows')
    """
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def one_line(error: BaseException | str) -> str:
    """Return the text of an error, or any text, without line breaks; empty if the error's ``str`` fails."""
    try:
        return " ".join(str(error).split())
    except Exception:  # of a third-party class
        return ""

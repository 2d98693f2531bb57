"""Cards of methods: what is known of a method without constructing it, of a built-in one without importing it.

``cards.json`` holds those of the built-in methods, and names that a shell completes; `make cards` writes it. It is
not a cache, since `hashbench list` and `info` also describe methods where scikit-learn, which these import, is missing.
"""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

from hashbench import registry
from hashbench.errors import HashbenchError


@dataclass(frozen=True, eq=False)
class MethodCard:
    """What is known of a method without constructing it; most fields are class attributes of `HashMethod`."""

    name: str
    summary: str  # one line
    group: str
    supervision: str
    version: int
    libraries: tuple[str, ...]
    params: Mapping[str, Any]  # defaults, in alphabetical order of the names
    notes: tuple[str, ...] = ()  # paragraphs of its docstring
    meanings: Mapping[str, str] = field(default_factory=dict)  # descriptions of parameters in the docstrings
    presets: Mapping[str, Mapping[str, Any] | None] = field(default_factory=dict)  # None: not the same for all lengths
    tunable: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # values worth trying; see `setting`
    reals: tuple[str, ...] = ()  # parameters whose numbers are real, so that 2 and 2.0 are one setting
    is_slow: bool = False
    is_plain: bool = False  # whether its parameters are recorded as they are
    digests: Mapping[str, str] = field(default_factory=dict)  # of the files of a plug-in, by package

    @property
    def is_learned(self) -> bool:
        """Whether the method trains a network, in epochs."""
        return "epochs" in self.params

    def preset(self, name: str, n_bits: int) -> dict[str, Any]:
        """Return the settings of a preset for a code length."""
        from hashbench._validation import preset_settings

        known: Any = self.presets
        presets = registry.get_method(self.name).presets if known.get(name, {}) is None else known
        return preset_settings(presets, self.name, name, n_bits)


def method_card(name: str) -> MethodCard:
    """Return the card of a method; that of a built-in one from the file, unless a source file has changed since."""
    return _card_of_built_in(name) if registry.is_built_in(name) else card_of_class(name)


@cache
def _card_of_built_in(name: str) -> MethodCard:
    fields = written()["methods"].get(name)
    if fields is None or written()["made_from"] != source_digest():
        return card_of_class(name)
    tunable = {key: tuple(values) for key, values in fields["tunable"].items()}
    tuples = {key: tuple(fields[key]) for key in ("libraries", "notes", "reals")}
    return MethodCard(**fields | tuples | {"tunable": tunable})


@cache
def written() -> dict[str, Any]:
    """Return what ``cards.json`` holds.

    These are the cards of ``methods`` as JSON by name, ``names`` by what they name, and the `source_digest`.
    """
    content: dict[str, Any] = json.loads(Path(__file__).with_name("cards.json").read_bytes())
    return content


@cache
def source_digest() -> str:
    """Digest the files in which the classes of built-in methods say what they are."""
    content, home = sha256(), Path(__file__).parent
    folders = [home / "learning", *map(Path, import_module("hashbench.methods").__path__)]
    for path in [home / "method.py", *(path for folder in folders for path in sorted(folder.glob("*.py")))]:
        content.update(path.name.encode() + path.read_bytes().replace(b"\r\n", b"\n"))
    return content.hexdigest()[:16]


def as_json(card: MethodCard) -> Any:
    """Return a card as ``cards.json`` holds it."""
    return json.loads(json.dumps(asdict(card)))


def card_of_class(name: str) -> MethodCard:
    """Build the card of a method by importing it."""
    cls = registry.get_method(name)  # before the imports, which an unknown name does not need
    from hashbench._validation import real_parameters, tunable_values
    from hashbench.method import HashMethod
    from hashbench.store.provenance import method_digests

    with registry.loading("method", name, "constructed without arguments", " Give its parameters defaults."):
        params = cls().get_params(deep=False)
    with registry.loading("method", name, "read"):
        found = method_digests(name, cls)
    deciding = ("recorded_params", "check_parameters")  # functions that change what parameters mean
    return MethodCard(
        name=name,
        summary=next((text.strip().partition("\n")[0] for text in docstrings_of(cls) if text.strip()), ""),
        group=cls.group,
        supervision=cls.supervision,
        version=cls.version,
        libraries=cls.libraries,
        params={key: params[key] for key in sorted(params)},
        notes=described_notes(cls.__doc__ or ""),
        meanings=described_parameters([base.__doc__ or "" for base in reversed(cls.__mro__)]),
        presets={name: None if any(map(callable, of.values())) else {**of} for name, of in cls.presets.items()},
        tunable=tunable_values(cls),
        reals=real_parameters(cls),
        is_slow=cls.is_slow,
        is_plain=all(getattr(cls, function) is getattr(HashMethod, function) for function in deciding),
        digests=found,
    )


def method_summary(name: str) -> str:
    """Return the first line of a method's docstring, or an error in parentheses."""
    try:
        return method_card(name).summary
    except HashbenchError as error:
        return f"({error})"


def docstrings_of(cls: type) -> list[str]:
    """Return the docstrings of a class's module and of the class, empty where there is none."""
    return [sys.modules[cls.__module__].__doc__ or "", cls.__doc__ or ""]


def described_notes(docstring: str) -> tuple[str, ...]:
    """Return the paragraphs of a docstring's notes, in numpydoc's format, without its markup."""
    section = re.search(r"^Notes\n-+\n(.*?)(\n\n\w+\n-+\n|\Z)", cleandoc(docstring), re.DOTALL | re.MULTILINE)
    text = re.sub(r" ?\[\d+\]_|`", "", section[1] if section else "")
    return tuple(" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph.strip())


def described_parameters(docstrings: Sequence[str]) -> dict[str, str]:
    """Return what docstrings say of parameters, in numpydoc's format; later ones have the last word."""
    meanings = {}
    for text in docstrings:
        section = re.search(r"^Parameters\n-+\n(.*?)(\n\n|\Z)", cleandoc(text), re.DOTALL | re.MULTILINE)
        entries = re.findall(r"^(\S.*?) : (.*)\n((?:    .*\n?)+)", section[1] if section else "", re.MULTILINE)
        for names, kind, meaning in entries:
            choices = re.search(r"{(.*)}", kind)
            words = [f"({choices[1]})" if choices else "", *meaning.split()]
            meanings.update(dict.fromkeys(names.split(", "), re.sub('[`"]', "", " ".join(words)).strip()))
    return meanings

"""Cards of methods: what is known of one without making it, of a built-in one without importing it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import cleandoc
from typing import Any

from hashbench import _source_code, registry
from hashbench.errors import HashbenchError, one_line

_TELLING = ("recorded_params", "leaves_out", "check_parameters")  # by which a class decides more than its card tells


@dataclass(frozen=True, eq=False)
class MethodCard:
    """What is known of a method without making one; of a built-in one without importing it.

    Parameters
    ----------
    name, summary : str
        What users call it, and a line about it.
    group, supervision : str
        See `hashbench.method.HashMethod`.
    version : int
        Of the method.
    modules : tuple of str
        Where its class is, and of a third-party one its bases.
    libraries : tuple of str
        Packages that its codes depend on.
    params : mapping
        Defaults of its parameters, by name in alphabetical order.
    meanings : mapping of str to str
        What the docstrings say of them.
    presets : mapping
        Named settings; a value may be a function of the code length.
    tunable : mapping of str to tuple
        Values of parameters that are worth trying; see `hashbench.setting`.
    is_slow : bool
        Whether a grid of quick methods does without it.
    is_plain : bool
        Whether its parameters are recorded as they are, and it runs all that it imports.
    """

    name: str
    summary: str
    group: str
    supervision: str
    version: int
    modules: tuple[str, ...]
    libraries: tuple[str, ...]
    params: Mapping[str, Any]
    meanings: Mapping[str, str] = field(default_factory=dict)
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tunable: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    is_slow: bool = False
    is_plain: bool = False

    def preset(self, name: str, n_bits: int) -> dict[str, Any]:
        """Give the settings of a name for a code length."""
        from hashbench._validation import preset_settings

        return preset_settings(self.presets, self.name, name, n_bits)


@cache
def method_card(name: str) -> MethodCard:
    """Tell what is known of a method; of a built-in one its source is read, of others the class is imported."""
    if registry.is_built_in(name):
        try:
            card = _read_card(name)
        except Exception:  # of whatever stands in the file; whoever imports it is told
            card = None
        if card is not None:
            return card
    return _card_of_class(name)


def _card_of_class(name: str) -> MethodCard:
    """Make the card of a method by importing it."""
    from hashbench._validation import tunable_values

    cls = registry.get_method(name)
    try:
        params = cls().get_params(deep=False)
    except (Exception, SystemExit) as error:
        raise HashbenchError(
            f"method plugin {name!r} cannot be made: {type(error).__name__}: {one_line(error)}. Give its "
            "parameters defaults."
        ) from error
    return MethodCard(
        name=name,
        summary=registry.method_summary(name),
        group=cls.group,
        supervision=cls.supervision,
        version=cls.version,
        modules=(*registry.modules_of(cls), *cls.modules),
        libraries=cls.libraries,
        params={key: params[key] for key in sorted(params)},
        meanings=_meanings([base.__doc__ or "" for base in reversed(cls.__mro__)]),
        presets=cls.presets,
        tunable=tunable_values(cls),
        is_slow=cls.is_slow,
    )


def _read_card(name: str) -> MethodCard | None:
    """Read the card of a built-in method from its source; None if that does not tell all."""
    module = f"hashbench.methods.{name.replace('-', '_')}"
    classes = [found for found in _source_code.classes_of(module) if "supervision" in found.values]
    if len(classes) != 1 or not {*classes[0].fields} <= {*classes[0].values}:
        return None
    (found,) = classes
    keys = ("group", "supervision", "version", "libraries", "presets", "is_slow")
    if not {*keys, "modules"} <= {*found.values}:
        return None
    return MethodCard(
        name=name,
        summary=registry.method_summary(name),
        modules=(module, *found.values["modules"]),
        params={key: found.values[key] for key in sorted(found.fields)},
        meanings=_meanings(found.docstrings),
        tunable={key: tried for key, tried in found.tunable.items() if tried},
        is_plain=all(found.methods[key] == "HashMethod" for key in _TELLING),
        **{key: found.values[key] for key in keys},
    )


def _meanings(docstrings: Sequence[str]) -> dict[str, str]:
    """Read what docstrings say of parameters, in numpydoc's format; later ones have the last word."""
    meanings = {}
    for text in docstrings:
        section = re.search(r"^Parameters\n-+\n(.*?)(\n\n|\Z)", cleandoc(text), re.DOTALL | re.MULTILINE)
        told = re.findall(r"^(\S.*?) : (.*)\n((?:    .*\n?)+)", section[1] if section else "", re.MULTILINE)
        for names, kind, meaning in told:
            choices = re.search(r"{(.*)}", kind)
            words = [f"({choices[1]})" if choices else "", *meaning.split()]
            meanings.update(dict.fromkeys(names.split(", "), re.sub('[`"]', "", " ".join(words)).strip()))
    return meanings

"""Cards of methods: what is known of a method without constructing it, of a built-in one without importing it."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from inspect import cleandoc
from types import SimpleNamespace
from typing import Any

from hashbench import _source_code, registry

_ATTRIBUTES = ("group", "supervision", "version", "modules", "libraries", "presets", "is_slow")
_DECIDING = ("recorded_params", "leaves_out", "check_parameters")  # functions that change what parameters mean


@dataclass(frozen=True, eq=False)
class MethodCard:
    """What is known of a method without constructing it; most fields are class attributes of `HashMethod`."""

    name: str
    summary: str  # one line
    group: str
    supervision: str
    version: int
    modules: tuple[str, ...]  # of its class, its ``modules``, and of a third-party method those of its bases
    libraries: tuple[str, ...]
    params: Mapping[str, Any]  # defaults, in alphabetical order of the names
    meanings: Mapping[str, str] = field(default_factory=dict)  # descriptions of parameters in the docstrings
    presets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tunable: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # values worth trying; see `setting`
    is_slow: bool = False
    is_plain: bool = False  # whether its parameters are recorded as they are, and it runs all that it imports

    def preset(self, name: str, n_bits: int) -> dict[str, Any]:
        """Return the settings of a preset for a code length."""
        from hashbench._validation import preset_settings

        return preset_settings(self.presets, self.name, name, n_bits)


@cache
def method_card(name: str) -> MethodCard:
    """Return the card of a method: a built-in one is read from its source, others are imported."""
    if registry.is_built_in(name):
        with suppress(Exception):  # whatever stands in the file: importing it shows what is wrong
            return read_card(name, f"hashbench.methods.{name.replace('-', '_')}")
    return _card_of_class(name)


def _card_of_class(name: str) -> MethodCard:
    """Build the card of a method by importing it."""
    from hashbench._validation import tunable_values

    cls = registry.get_method(name)
    with registry.loading("method", name, "constructed without arguments", " Give its parameters defaults."):
        params = cls().get_params(deep=False)
    return MethodCard(
        name=name,
        summary=registry.method_summary(name),
        group=cls.group,
        supervision=cls.supervision,
        version=cls.version,
        modules=(*registry.modules_of(cls), *cls.modules),
        libraries=cls.libraries,
        params={key: params[key] for key in sorted(params)},
        meanings=described_parameters([base.__doc__ or "" for base in reversed(cls.__mro__)]),
        presets=cls.presets,
        tunable=tunable_values(cls),
        is_slow=cls.is_slow,
    )


def read_card(name: str, module: str) -> MethodCard:
    """Read the card of a method from the source of its module and of its bases in hashbench, importing neither.

    Raises what `eval` does if a default or an attribute is more than an expression of constants.
    """
    classes = [node.name for node in _source_code.tree_of(module).body if isinstance(node, ast.ClassDef)]
    lineages = [_lineage(class_name, module) for class_name in classes if not class_name.startswith("_")]
    (lineage,) = (lineage for lineage in lineages if lineage[0][1].name == "HashMethod")
    params: dict[str, Any] = {}
    tunable: dict[str, tuple[Any, ...]] = {}
    attributes: dict[str, Any] = {}
    for home, node in lineage:
        inherited = {base.id: SimpleNamespace(**attributes) for base in node.bases if isinstance(base, ast.Name)}
        for key, value, is_parameter in _assignments(node):
            if is_parameter:
                keywords = value.keywords if isinstance(value, ast.Call) else []  # of `setting`
                tunable |= {key: _evaluate(word.value, home) for word in keywords if word.arg == "tunable"}  # noqa: B035
                params[key] = _evaluate(value.args[0] if isinstance(value, ast.Call) else value, home)
            elif key in _ATTRIBUTES:
                attributes[key] = _evaluate(value, home, inherited)
    functions = [each.name for _, node in lineage[1:] for each in node.body if isinstance(each, ast.FunctionDef)]
    return MethodCard(
        name=name,
        summary=registry.method_summary(name),
        modules=(module, *attributes.pop("modules")),
        params={key: params[key] for key in sorted(params)},
        meanings=described_parameters([ast.get_docstring(node) or "" for _, node in lineage]),
        tunable={key: values for key, values in tunable.items() if values},
        is_plain=not {*_DECIDING} & {*functions},
        **attributes,
    )


def _lineage(name: str, module: str) -> list[tuple[str, ast.ClassDef]]:
    """Find the definitions of a class and of its bases in hashbench, the class last, each with its module."""
    home, node = _definition(name, module)
    if not isinstance(node, ast.ClassDef):
        return []
    bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
    return [*(definition for base in bases for definition in _lineage(base, home)), (home, node)]


def _definition(name: str, module: str) -> tuple[str, ast.ClassDef | ast.Assign | None]:
    """Find the module and the statement that define a name used in a module; None for what is not of hashbench."""
    for node in _source_code.tree_of(module).body:
        match node:
            case ast.ClassDef(name=defined) | ast.Assign(targets=[ast.Name(id=defined)]) if defined == name:
                return module, node
            case ast.ImportFrom(module=str(home), names=aliases) if name in [alias.name for alias in aliases]:
                if home == "hashbench":
                    home = next(module for module, names in _source_code.PUBLIC.items() if name in names)
                return _definition(name, home) if home.startswith("hashbench.") else (home, None)
    return module, None


def _assignments(node: ast.ClassDef) -> Iterator[tuple[str, ast.expr, bool]]:
    """List what a class assigns: name, value, and whether it is a parameter, not an attribute of the class."""
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=ast.expr() as value):
                yield name, value, "ClassVar" not in ast.unparse(kind)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value, False


def _evaluate(expression: ast.expr, module: str, known: Mapping[str, Any] | None = None) -> Any:
    """Evaluate an expression of constants, those of its module and of modules it imports from included."""
    names = dict(known or {}, __builtins__={"max": max, "min": min})
    for node in ast.walk(expression):
        if isinstance(node, ast.Name) and node.id not in names:
            home, definition = _definition(node.id, module)
            if isinstance(definition, ast.Assign):
                names[node.id] = _evaluate(definition.value, home)
    return eval(compile(ast.Expression(expression), module, "eval"), names)


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

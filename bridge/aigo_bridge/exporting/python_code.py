"""Values, arguments and docstrings as Python source that the formatter leaves as it is."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.exporting.names import unique_names
from aigo_bridge.plan import TaskPlan
from aigo_bridge.spec.parameters import (
    BooleanParameter,
    CategoricalParameter,
    DictParameter,
    FloatParameter,
    IntParameter,
    ListParameter,
    Parameter,
)

WIDTH = 88
"""Columns that the formatter gives a line unless it is told otherwise."""

_ITEMS = {"string": "str", "integer": "int", "float": "float", "boolean": "bool"}


@dataclass(frozen=True)
class Argument:
    """A parameter of a task as an argument of a Python function."""

    key: str
    """Key of the parameter."""
    name: str
    """Name of the argument; the key itself where that is an identifier."""
    annotation: str
    """Its type, in source."""
    default: str
    """The value at the time of the export, in source."""
    doc: str
    """What it means and what it may be, on one line."""

    @property
    def is_mutable(self) -> bool:
        """Whether the default is a list or a mapping."""
        return self.default.startswith(("[", "{"))


def arguments_of(plan: TaskPlan, reserved: Iterable[str] = ()) -> list[Argument]:
    """The parameters of a task, with the values of the plan as defaults."""
    parameters = plan.task.config_spec
    names = unique_names([parameter.key for parameter in parameters], reserved, longest=50)
    return [
        Argument(
            parameter.key,
            names[parameter.key],
            annotation(parameter),
            literal(plan.config[parameter.key], indent=4),
            described(parameter),
        )
        for parameter in parameters
    ]


def annotation(parameter: Parameter) -> str:
    """The Python type of a parameter's values."""
    match parameter:
        case IntParameter():
            kind = "int"
        case FloatParameter():
            kind = "float"
        case BooleanParameter():
            kind = "bool"
        case ListParameter():
            kind = f"list[{_ITEMS[parameter.dtype]}]"
        case DictParameter():
            kind = f"dict[str, {_ITEMS[parameter.value_dtype]}]"
        case CategoricalParameter(multiple=True):
            kind = "list[str]"
        case _:
            kind = "str"
    return f"{kind} | None" if parameter.nullable else kind


def described(parameter: Parameter) -> str:
    """What a parameter means and what it may be, on one line."""
    text = one_line(parameter.description or parameter.display_name).rstrip(".")
    facts: list[str] = []
    if isinstance(parameter, CategoricalParameter):
        several = "any of" if parameter.multiple else "one of"
        facts.append(f"{several} {', '.join(map(one_line, parameter.allowed_values))}")
    elif isinstance(parameter, IntParameter | FloatParameter):
        if parameter.min is not None:
            facts.append(f"at least {parameter.min}")
        if parameter.max is not None:
            facts.append(f"at most {parameter.max}")
    elif parameter.type in ("model", "dataset", "dataset_column", "task_result"):
        facts.append({"model": "key of a model", "dataset": "key of a data set"}.get(parameter.type, ""))
    return "; ".join(fact for fact in (text, *facts) if fact)


def literal(value: Any, *, indent: int = 0) -> str:
    """A JSON value as Python source; lists and mappings go one item a line.

    Args:
        value: text, number, boolean, `None`, or lists and mappings of them.
        indent: column at which the value's own lines begin.
    """
    if isinstance(value, str):
        return text_literal(value)
    if isinstance(value, Mapping):
        items = [f"{text_literal(str(k))}: {literal(v, indent=indent + 4)}" for k, v in value.items()]
        return _bracketed("{", items, "}", indent)
    if isinstance(value, list | tuple):
        return _bracketed("[", [literal(item, indent=indent + 4) for item in value], "]", indent)
    return repr(value)


def _bracketed(start: str, items: Sequence[str], end: str, indent: int) -> str:
    if not items:
        return start + end
    space = " " * indent
    return f"{start}\n" + "".join(f"{space}    {item},\n" for item in items) + f"{space}{end}"


def text_literal(text: str) -> str:
    """A text as Python source, with the quotes that need fewer escapes; invisible characters are escaped."""
    quote = "'" if text.count('"') > text.count("'") else '"'
    written = (char if char.isprintable() and char != "\\" else repr(char)[1:-1] for char in text)
    return quote + "".join(written).replace(quote, f"\\{quote}") + quote


def one_line(text: str) -> str:
    """A text for docstrings and comments: one line, nothing in it that ends them or hides."""
    return visible(" ".join(text.split())).replace("\\", "\\\\").replace('"""', "'''")


def visible(text: str) -> str:
    """A text with what cannot be seen (it may turn the direction of writing) spelt out."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def docstring(text: str, *, indent: int) -> list[str]:
    """A docstring of one sentence."""
    space = " " * indent
    end = (" " if text.endswith('"') else "") + '"""'
    if len(line := f"{space}{opened(text)}{end}") <= WIDTH:
        return [line]
    return [*wrapped(opened(text), indent=indent), f'{space}"""']


def opened(text: str) -> str:
    """The beginning of a docstring."""
    return '"""' + (" " if text.startswith('"') else "") + text


def call(start: str, arguments: Sequence[str], end: str = ")", *, indent: int = 0) -> list[str]:
    """A call on one line if it fits, else one argument a line; `start` goes up to the bracket."""
    space = " " * indent
    if len(line := f"{space}{start}{', '.join(arguments)}{end}") <= WIDTH:
        return [line]
    return [f"{space}{start}", *(f"{space}    {argument}," for argument in arguments), f"{space}{end}"]


def assigned(name: str, text: str, *, indent: int = 0) -> list[str]:
    """A text with a name, in brackets where only that makes it fit."""
    space, source = " " * indent, text_literal(text)
    if len(line := f"{space}{name} = {source}") <= WIDTH or indent + 4 + len(source) > WIDTH:
        return [line]
    return [f"{space}{name} = (", f"{space}    {source}", f"{space})"]


def with_text(line: str, text: str, *, indent: int = 0) -> list[str]:
    """A line that uses a text once, as `{}`; a long text gets a name of its own before it."""
    space = " " * indent
    if len(short := space + line.replace("{}", text_literal(text))) <= WIDTH:
        return [short]
    return [*assigned("name", text, indent=indent), space + line.replace("{}", "name")]


def wrapped(text: str, *, indent: int, hanging: int = 0) -> list[str]:
    """One line of a docstring, wrapped to the width of the source."""
    return textwrap.wrap(
        text,
        width=WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hanging),
        break_long_words=False,
        break_on_hyphens=False,
    )

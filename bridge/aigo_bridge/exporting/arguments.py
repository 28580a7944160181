"""Values of parameters as they come from `-T name=value` of an exported task.

Engines' command lines read values as YAML and take commas for lists, without knowing what a parameter wants: a text with a comma
arrives as a list, a list of one item as that item, `1e-3` as text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.parameters import parse_text
from aigo_bridge.spec.parameters import (
    BooleanParameter,
    CategoricalParameter,
    DictParameter,
    FloatParameter,
    IntParameter,
    ListParameter,
    Parameter,
)


def typed_arguments(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Values as the parameters want them, where the text that was typed can be told from what arrived.

    Raises:
        SpecError: a text was read as something else and is lost; the issue says how to type it.
    """
    known = {parameter.key: parameter for parameter in parameters}
    issues: list[Issue] = []
    typed = {
        key: _typed(known[key], value, issues) if key in known else value for key, value in given.items()
    }
    if issues:
        raise SpecError(issues)
    return typed


def _typed(parameter: Parameter, value: Any, issues: list[Issue]) -> Any:
    match parameter:
        case _ if value is None:
            return None
        case IntParameter() | FloatParameter() | BooleanParameter() | DictParameter():
            return parse_text(parameter, value) if isinstance(value, str) else value
        case ListParameter():
            return [_item(parameter, item) for item in _listed(value)]
        case CategoricalParameter(multiple=True):
            return _listed(value)
        case _:
            return _text(parameter, value, issues)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value == "" else [value]


def _item(parameter: ListParameter, item: Any) -> Any:
    """An item between commas is text, whatever it says."""
    if parameter.dtype == "string" or not isinstance(item, str):
        return item
    single: Parameter
    if parameter.dtype == "boolean":
        single = BooleanParameter(type="boolean", key=parameter.key, display_name=parameter.display_name)
    else:
        single = FloatParameter(type="float", key=parameter.key, display_name=parameter.display_name)
        if parameter.dtype == "integer":
            single = IntParameter(type="int", key=parameter.key, display_name=parameter.display_name)
    return parse_text(single, item)


def _text(parameter: Parameter, value: Any, issues: list[Issue]) -> Any:
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return ",".join(value)
    if isinstance(value, str):
        return value
    message = f"parameter {parameter.key!r}: found {value!r}, expected text"
    issues.append(
        Issue(message, path=("config", parameter.key), hint="type it with quotes inside: -T 'name=\"…\"'")
    )
    return value

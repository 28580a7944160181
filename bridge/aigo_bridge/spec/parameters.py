"""Parameters that a task (or evaluation, generator, methodology) declares in its `config_spec`, and values
for them: defaults, types, limits.
"""

import difflib
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.spec.base import DisplayName, JsonMap, Scalar, SpecModel

ItemType = Literal["string", "integer", "float", "boolean"]


class _Parameter(SpecModel):
    key: str
    """Name in `<< config.KEY >>`."""
    display_name: DisplayName
    """Display name."""
    description: str | None = None
    """Short text."""
    nullable: bool = False
    """Whether the value can be null."""


class FloatParameter(_Parameter):
    """A number."""

    type: Literal["float"]
    min: float | None = None
    """Minimum; `None`: no limit."""
    max: float | None = None
    """Maximum; `None`: no limit."""
    default_value: float | None = None
    """Default; without it, a value is required."""


class IntParameter(_Parameter):
    """An integer."""

    type: Literal["int"]
    min: int | None = None
    """Minimum; `None`: no limit."""
    max: int | None = None
    """Maximum; `None`: no limit."""
    default_value: int | None = None
    """Default; without it, a value is required."""


class BooleanParameter(_Parameter):
    """True or false."""

    type: Literal["boolean"]
    default_value: bool | None = None
    """Default; without it, a value is required."""


class StringExample(SpecModel):
    """A value that the author suggests."""

    value: str
    """Suggested value."""
    display_name: str
    """Display name."""


class StringParameter(_Parameter):
    """A text."""

    type: Literal["string"]
    string_kind: Literal["freeform", "python", "jinja"] = "freeform"
    """Kind of text; the syntax of Python and Jinja is checked."""
    examples: tuple[StringExample, ...] | None = None
    """Suggested values."""
    default_file_content: str | None = None
    """Initial content of a file for this parameter."""
    default_value: str | None = None
    """Default; without it, a value is required."""


class ModelParameter(_Parameter):
    """Key of a model."""

    type: Literal["model"]
    usage: (
        Literal["judge_model", "productivity_assistant", "synthesizer_model", "model_under_test"] | None
    ) = None
    """Purpose of the model."""
    default_value: str | None = None
    """Default; without it, a value is required."""


class DatasetParameter(_Parameter):
    """Key of a dataset."""

    type: Literal["dataset"]
    default_value: str | None = None
    """Default; without it, a value is required."""


class DatasetColumnParameter(_Parameter):
    """Name of a column."""

    type: Literal["dataset_column"]
    default_value: str | None = None
    """Default; without it, a value is required."""


class TaskResultParameter(_Parameter):
    """Key of an earlier task result."""

    type: Literal["task_result"]
    default_value: str | None = None
    """Default; without it, a value is required."""


class ListParameter(_Parameter):
    """A list of values of one type."""

    type: Literal["list"]
    dtype: ItemType
    """Item type."""
    default_value: tuple[Any, ...] | None = None
    """Default; without it, a value is required."""


class DictParameter(_Parameter):
    """A mapping from text to values of one type."""

    type: Literal["dict"]
    value_dtype: ItemType
    """Value type."""
    default_value: JsonMap | None = None
    """Default; without it, a value is required."""


class CategoricalParameter(_Parameter):
    """One of a list of texts, or several."""

    type: Literal["categorical"]
    allowed_values: tuple[str, ...]
    """Allowed texts."""
    multiple: bool = False
    """Whether to allow several texts; the value is then a list."""
    values_mapping: dict[str, Scalar] | None = None
    """Value of `<< config.KEY >>` for each allowed text; other texts are used unchanged."""
    default_value: str | tuple[str, ...] | None = None
    """Default; without it, a value is required."""


Parameter = Annotated[
    FloatParameter
    | IntParameter
    | BooleanParameter
    | StringParameter
    | ModelParameter
    | DatasetParameter
    | DatasetColumnParameter
    | TaskResultParameter
    | ListParameter
    | DictParameter
    | CategoricalParameter,
    Field(discriminator="type"),
]


_ITEM_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (int, float),
    "boolean": (bool,),
}


def resolve_config(parameters: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of every declared parameter: the given value, otherwise its default, otherwise null if
    allowed.

    Raises:
        SpecError: values are missing, unknown, of the wrong type or out of their limits; all are listed.
    """
    issues: list[Issue] = []
    config: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.key in given:
            config[parameter.key] = _checked(parameter, given[parameter.key], issues)
        elif parameter.default_value is not None:
            config[parameter.key] = _checked(parameter, parameter.default_value, issues)
        elif parameter.nullable:
            config[parameter.key] = None
        else:
            issues.append(
                Issue(
                    f"parameter {parameter.key!r} ({parameter.display_name}) has no value",
                    path=("config", parameter.key),
                    hint=f"set it with --config {parameter.key}=…",
                    option="--config",
                    code=Code.MISSING_PARAMETER,
                )
            )
    keys = [parameter.key for parameter in parameters]
    for key in given:
        if key not in keys:
            near = difflib.get_close_matches(key, keys, n=1)
            listed = ", ".join(keys) or "none"
            issues.append(
                Issue(
                    f"unknown parameter {key!r}",
                    path=("config", key),
                    hint=f"did you mean {near[0]!r}?" if near else f"task parameters: {listed}",
                    code=Code.UNKNOWN_PARAMETER,
                )
            )
    if issues:
        raise SpecError(issues)
    return config


def template_values(parameters: Sequence[Parameter], config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values for `<< config.x >>`: given values, or mapped values of categorical parameters."""
    values = dict(config)
    for parameter in parameters:
        if (
            isinstance(parameter, CategoricalParameter)
            and parameter.values_mapping
            and parameter.key in values
        ):
            mapping, value = parameter.values_mapping, values[parameter.key]
            if isinstance(value, list):
                values[parameter.key] = [mapping.get(item, item) for item in value]
            elif value is not None:
                values[parameter.key] = mapping.get(value, value)
    return values


def parse_text(parameter: Parameter, text: str) -> Any:
    """Parse a value from the command line. Numbers are decimal; lists and mappings are YAML. Unreadable
    values stay text, and `resolve_config` refuses them.

    Raises:
        SpecError: the text of a list or a mapping is not YAML.
    """
    if parameter.nullable and text == "null":
        return None
    if isinstance(parameter, IntParameter | FloatParameter):
        return _typed_number(parameter, text)
    if (
        isinstance(parameter, CategoricalParameter)
        and parameter.multiple
        and not text.lstrip().startswith("[")
    ):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    wants_yaml = isinstance(parameter, BooleanParameter | ListParameter | DictParameter) or (
        isinstance(parameter, CategoricalParameter) and parameter.multiple
    )
    if not wants_yaml:
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "not YAML"
        message = f"parameter {parameter.key!r}: cannot read {text!r} as a value: {problem}"
        raise SpecError(message, path=("config", parameter.key), code=Code.WRONG_PARAMETER) from error


def _typed_number(parameter: IntParameter | FloatParameter, text: str) -> int | float | str:
    """Parse a decimal number. YAML would read `010` as 8 and `1:30` as 90."""
    kinds = (int, float) if isinstance(parameter, IntParameter) else (float,)
    for kind in kinds:
        try:
            return kind(text)
        except ValueError:
            continue
    return text


class _WrongValueError(ValueError):
    """Value that does not fit its parameter; the message contains the expected value."""


def _checked(parameter: Parameter, value: Any, issues: list[Issue]) -> Any:
    """Convert a value to the type of its parameter. A value that does not fit is added to the issues and
    stays unchanged.
    """
    if value is None and parameter.nullable:
        return None
    try:
        return _fitted(parameter, value)
    except _WrongValueError as error:
        message = f"parameter {parameter.key!r}: found {value!r}, expected {error}"
        issues.append(Issue(message, path=("config", parameter.key), code=Code.WRONG_PARAMETER))
        return value


def _fitted(parameter: Parameter, value: Any) -> Any:
    _require(value, value is not None, "a value (the parameter is not nullable)")
    match parameter:
        case IntParameter() | FloatParameter():
            return _number(parameter, value)
        case BooleanParameter():
            return _require(value, isinstance(value, bool), "true or false")
        case ListParameter():
            fits = isinstance(value, list | tuple) and all(_is(item, parameter.dtype) for item in value)
            return list(_require(value, fits, f"a list of {parameter.dtype} values"))
        case DictParameter():
            fits = isinstance(value, dict) and all(
                isinstance(key, str) and _is(item, parameter.value_dtype) for key, item in value.items()
            )
            return _require(value, fits, f"a mapping from texts to {parameter.value_dtype} values")
        case CategoricalParameter():
            return _choice(parameter, value)
        case _:
            return _require(value, isinstance(value, str), "text")


def _require(value: Any, fits: bool, expected: str) -> Any:
    if not fits:
        raise _WrongValueError(expected)
    return value


def _number(parameter: IntParameter | FloatParameter, value: Any) -> int | float:
    if isinstance(parameter, IntParameter):
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        _require(value, _is(value, "integer"), "a whole number")
    else:
        _require(value, _is(value, "float"), "a finite number")
    _require(value, _within(value, parameter.min, parameter.max), _range(parameter))
    fitted: int | float = value
    return fitted


def _choice(parameter: CategoricalParameter, value: Any) -> str | list[str]:
    allowed = ", ".join(map(repr, parameter.allowed_values))
    if not parameter.multiple:
        one: str = _require(value, value in parameter.allowed_values, f"one of {allowed}")
        return one
    chosen = [value] if isinstance(value, str) else value
    fits = isinstance(chosen, list | tuple) and all(item in parameter.allowed_values for item in chosen)
    return list(_require(chosen, fits, f"any of {allowed}"))


def _is(item: object, dtype: str) -> bool:
    if isinstance(item, bool):
        return dtype == "boolean"
    if isinstance(item, float) and not math.isfinite(item):
        return False  # JSON, and so the evidence, has neither infinity nor NaN
    if isinstance(item, int) and not -(2**63) <= item < 2**63:
        return False
    return isinstance(item, _ITEM_TYPES[dtype])


def _within(value: float, low: float | None, high: float | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _range(parameter: IntParameter | FloatParameter) -> str:
    if parameter.min is None:
        return f"at most {parameter.max}"
    if parameter.max is None:
        return f"at least {parameter.min}"
    return f"a number from {parameter.min} to {parameter.max}"

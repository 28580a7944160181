"""Base classes and field types of all specification models, filters over samples, and functions that read
JSON-like data of any shape, because checks also run on invalid documents.

The coercions are pydantic's lax ones, which are also AI GO's: `"3"` and `3.0` are integers, `"yes"` and `1`
are booleans, but a number is never a string.
"""

from __future__ import annotations

import importlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, overload

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
)
from pydantic_core import CoreSchema, core_schema

from aigo_bridge import plugins
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue

KEY_PATTERN = r"^[a-zA-Z0-9_\-]+$"
MODEL_KEY_PATTERN = r"^[a-zA-Z0-9_\-$]+$"

Key = Annotated[str, StringConstraints(min_length=1, max_length=250, pattern=KEY_PATTERN)]
"""Identifier of a task, dataset, evaluation, rule …: 1 to 250 letters, digits, `_` or `-`."""

ModelKey = Annotated[str, StringConstraints(min_length=1, max_length=250, pattern=MODEL_KEY_PATTERN)]
"""Identifier of a model or adapter: as `Key`, and `$` after a provider's name (`openai$gpt-4-1-nano`)."""

DisplayName = Annotated[str, StringConstraints(min_length=1)]

MLTask = Literal["chat_completion", "embeddings", "custom"]
"""Kind of machine learning task."""

MARKER = re.compile(r"<<\s*(?:config|secrets)\..*?>>", re.DOTALL)
"""Pattern of a placeholder for a task parameter or a secret."""

WHOLE_MARKER = re.compile(r"\s*<<\s*config\..*>>\s*", re.DOTALL)
"""Pattern of a string that consists of one placeholder; release 3.17 accepts no other template as a key."""


def has_marker(value: object) -> bool:
    """Return whether a value is text with a `<< config.x >>`, so that its type is still unknown."""
    return isinstance(value, str) and MARKER.search(value) is not None


def is_whole_marker(value: object) -> bool:
    """Return whether a value consists of exactly one `<< config.x >>`."""
    return isinstance(value, str) and WHOLE_MARKER.fullmatch(value) is not None


class _UntilBound:
    """Annotation that accepts strings with a `<< config.x >>` and validates other values as the type."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        # The handler also applies earlier annotations (the pattern of a key).
        narrowed = _without_str(source)
        inner = handler(source) if narrowed is source else handler.generate_schema(narrowed)
        written = core_schema.wrap_serializer_function_ser_schema(_as_written, schema=inner)
        return core_schema.no_info_wrap_validator_function(_unless_marked, inner, serialization=written)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        inner = handler(schema.get("schema", schema))
        return {"anyOf": [inner, {"type": "string", "pattern": r"<<\s*config\."}]}


def _without_str(source: Any) -> Any:
    if get_origin(source) is Union and str in get_args(source):
        return Union[tuple(part for part in get_args(source) if part is not str)]  # noqa: UP007  # built at run time
    return source


def _unless_marked(value: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
    return value if has_marker(value) else validate(value)


def _as_written(value: Any, serialize: core_schema.SerializerFunctionWrapHandler) -> Any:
    return value if isinstance(value, str) else serialize(value)


T = TypeVar("T")
Templated = Annotated[Union[T, str], _UntilBound()]  # noqa: UP007  # `T | str` cannot be subscripted on 3.11
"""Value of type T, or text with a `<< config.x >>` that becomes such a value when parameters are bound."""

TemplatedKey = Annotated[Key, _UntilBound()]
"""Key of a dataset or stored result, written out or as `<< config.x >>`."""

TemplatedModelKey = Annotated[ModelKey, _UntilBound()]
"""Key of a model, written out or as `<< config.x >>`."""

Scalar = bool | int | float | str
"""A value of a filter, header or environment variable."""

JsonMap = dict[str, Any]
"""Mapping with any content."""


def tag_of(value: Any, key: str, default: str) -> str | None:
    """Return the tag that selects the member of a union, or `default` if the key is missing."""
    tag = value.get(key, default) if isinstance(value, dict) else getattr(value, key, None)
    return tag if isinstance(tag, str) else None


class SpecModel(BaseModel):
    """Base class of all specification models. Unknown keys are errors, so that misspelled keys are found."""

    # Build models on first use: a task needs half of them, and `import aigo_bridge` none.
    # Modules of models evaluate annotations directly: pydantic takes a quarter longer to evaluate texts.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, protected_namespaces=())


class TypedSpec(SpecModel):
    """Base class of scorers, solvers and metrics, which are distinguished by `type`."""

    if TYPE_CHECKING:
        # Every subclass declares this field at its own position, because the order of fields defines the
        # order in logs.
        @property
        def type(self) -> str:
            """Return the name of the type."""

    @classmethod
    def type_name(cls) -> str:
        """Return the `type` of these specifications."""
        (name,) = get_args(cls.model_fields["type"].annotation)
        return str(name)


Spec = TypeVar("Spec", bound=TypedSpec)


_REGISTRIES: Mapping[plugins.Kind, str] = {
    "scorers": "aigo_bridge.scoring.registry",
    "solvers": "aigo_bridge.solving.registry",
    "metrics": "aigo_bridge.metrics.registry",
}
"""Module that registers all types of a kind."""


class TypeTable(dict[str, type[Spec]]):
    """Types of one kind by name. Types of plug-ins are loaded when their name is first used."""

    def __init__(self, kind: plugins.Kind, base: type[Spec]):
        super().__init__()
        self._kind, self._base = kind, base
        self._unknown = set[str]()

    def __missing__(self, name: str) -> type[Spec]:
        spec = self.get(name)
        if spec is None:
            raise KeyError(name)
        return spec

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.get(name) is not None

    @overload
    def get(self, name: str, default: None = None, /) -> type[Spec] | None: ...

    @overload
    def get(self, name: str, default: type[Spec], /) -> type[Spec]: ...

    @overload
    def get(self, name: str, default: T, /) -> type[Spec] | T: ...

    def get(self, name: str, default: Any = None, /) -> Any:
        """Return the type of a name.

        Raises:
            PluginError: a plug-in of that name cannot be loaded.
        """
        if super().__contains__(name):
            return super().__getitem__(name)
        if name not in self._unknown:
            spec = self._of_plugin(name)
            if spec is not None:
                self[name] = spec
                return spec
            self._unknown.add(name)
        return default

    def load(self, name: str) -> None:
        """Make the type of a name in a task available, also if the module that implements it defines it.

        Raises:
            PluginError: a plug-in of that name cannot be loaded.
        """
        if not super().__contains__(name):
            importlib.import_module(_REGISTRIES[self._kind])
            self.get(name)

    def _of_plugin(self, name: str) -> type[Spec] | None:
        row = plugins.load(self._kind, name, object)
        spec = getattr(row, "spec", None)
        if row is None:
            return None
        if not (isinstance(spec, type) and issubclass(spec, self._base)) or spec.type_name() != name:
            raise plugins.PluginError(
                f"plug-in {name!r} ({self._kind}): expected an object whose `spec` is a subclass of"
                f" {self._base.__name__} with `type: Literal[{name!r}]`, found {row!r:.80}"
            )
        return spec


class OneOf:
    """Annotation for a field with one of several types: those known when a task is first read, or when
    `task.rebuild` is called.
    """

    def __init__(self, types: Mapping[str, type[TypedSpec]]):
        self.types = types

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        union: Any = Union[tuple(self.types.values())]  # noqa: UP007  # built at run time
        return handler.generate_schema(Annotated[union, Field(discriminator="type")])


UnaryOp = Literal["exists", "not_exists", "is_true", "is_false"]
ComparisonOp = Literal[
    "equals", "not_equals", "greater_than", "less_than", "greater_or_equal", "less_or_equal"
]
MembershipOp = Literal["in", "not_in"]


class UnaryFilter(SpecModel):
    """A question about one value."""

    op: UnaryOp
    """Operation."""
    expression: str
    """`{{ }}` expression to test."""


class ComparisonFilter(SpecModel):
    """A value compared with a constant."""

    op: ComparisonOp
    """Comparison of `expression` with `value`."""
    expression: str
    """`{{ }}` expression to compare."""
    value: Scalar
    """Constant to compare with."""


class MembershipFilter(SpecModel):
    """A value looked up in a list of constants."""

    op: MembershipOp
    """Whether the expression must be in the list, or must not be in it."""
    expression: str
    """`{{ }}` expression to look up."""
    values: tuple[Scalar, ...]
    """Constants; an empty list contains nothing."""


Filter = Annotated[UnaryFilter | ComparisonFilter | MembershipFilter, Field(discriminator="op")]


Path = tuple[str | int, ...]


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, otherwise an empty mapping."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[tuple[int, dict[str, Any]]]:
    """Return the mappings in a list, with their index; empty for other values."""
    return (
        [(index, item) for index, item in enumerate(value) if isinstance(item, dict)]
        if isinstance(value, list)
        else []
    )


def texts(value: Any) -> list[str]:
    """Return the texts in a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def number(value: Any) -> float | None:
    """Return a number, also from text such as `"3"`; `None` for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def duplicates(
    entries: list[tuple[int, dict[str, Any]]], path: Path, what: str, name: str = "key"
) -> Iterator[Issue]:
    """Yield an issue for each repeated key of a list."""
    seen: dict[str, int] = {}
    for index, entry in entries:
        key = entry.get(name)
        if not isinstance(key, str):
            continue
        if key in seen:
            yield Issue(
                f"{what} {key!r} is declared twice; the other is [{seen[key]}]",
                path=(*path, index, name),
                code=Code.REPEATED_ENTRY,
            )
        seen.setdefault(key, index)


def not_finite(value: Any, path: Path) -> Iterator[Issue]:
    """Yield an issue if a number is infinite or NaN."""
    if isinstance(value, float) and not math.isfinite(value):
        yield Issue(
            f"{path[-1]!r}: found {value}, expected a finite number", path=path, code=Code.WRONG_VALUE
        )


def texts_of(part: dict[str, Any], path: Path) -> Iterator[tuple[Path, str, str]]:
    """Yield the path, key and value of each text in a mapping and its lists."""
    for name, value in part.items():
        for index, text in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(text, str):
                yield (*path, name) if index is None else (*path, name, index), name, text


def walk(value: Any, path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every mapping inside a value, with its path."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            if isinstance(item, dict | list):
                yield from walk(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, dict | list):
                yield from walk(item, (*path, index))


# Tags of a dataset that describe its rows

SAMPLE_TAG = "sample data"
"""Tag of a dataset with made-up rows that replace the real ones."""
SAMPLE_NOTE = "sample data, not the benchmark"
"""Note on numbers that were computed from such rows."""

ROWS_TAG = "rows of "
"""Start of the tag that names the published rows and the result of their check."""


def rows_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Return the dataset tags about published rows."""
    return tuple(tag for tag in tags if tag.startswith(ROWS_TAG))


def is_sample_data(tags: Iterable[str]) -> bool:
    """Return whether the tags mark the rows as sample data."""
    return any(tag.strip().lower() == SAMPLE_TAG for tag in tags)

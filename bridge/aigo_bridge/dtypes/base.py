"""Base classes of the models, with their rules for unknown fields, dumping and reading.

| family | unknown field, constructor | unknown field, `model_validate…` | default dump |
|---|---|---|---|
| `LFBaseModel` | error | dropped | unset fields and optional nulls left out |
| `OpenFieldsModel` (chat types, templates, custom items) | kept | kept | the same |
| `OpenResponsesModel` (messages, calls, content) | kept | kept | `model_dump` without unset, JSON in full |
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    Protocol,
    Self,
    TypeVar,
    cast,
    get_args,
    runtime_checkable,
)

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, SchemaSerializer, core_schema

from aigo_bridge.dtypes.validation import unknown_fields, without
from aigo_bridge.text.json_text import read_json


class ByType:
    """Annotation for a union of models, each of which has a `type` with a constant default."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        plain = handler(source)
        tagged = core_schema.tagged_union_schema(
            choices={model.model_fields["type"].default: handler(model) for model in get_args(source)},
            discriminator="type",
        )
        return core_schema.union_schema([tagged, plain], mode="left_to_right")

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        assert schema["type"] == "union"
        plain = schema["choices"][1]
        return handler(plain[0] if isinstance(plain, tuple) else plain)


JSONType = None | int | str | bool | float | list[Any] | Mapping[str, Any]
"""JSON value."""

DType = type | tuple[type, ...]
"""Python type, or several alternative types, as for `isinstance`."""


@runtime_checkable
class DataFrame(Protocol):
    """Table interface of a pandas data frame. pandas itself is not required."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""

    @property
    def iloc(self) -> Any:
        """Rows by position."""


ResultDType = DataFrame | JSONType | BaseModel
"""Values that a snippet may return."""


Key = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_\-]+$", min_length=1, max_length=250)]
"""Key of an entity."""

ModelKey = Annotated[
    str,
    Field(
        pattern=r"^((together|gemini|openai|fireworks|sambanova|anthropic|novita|latticeflow)\$)?[a-zA-Z0-9_-]+$",
        min_length=1,
        max_length=250,
    ),
]
"""Key of a model; the part before `$` names its provider."""

SecretName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
"""Name of a secret."""

Color = Annotated[str, Field(pattern=r"^#([0-9a-fA-F]{6}|[0-9a-fA-F]{3})$")]
"""Colour as `#RRGGBB` or `#RGB`."""

HeaderText = Annotated[str, Field(pattern=r"^[\x20-\x7e]*$")]
"""Value of an HTTP header: printable ASCII characters."""

NonEmpty = Annotated[str, Field(min_length=1)]
"""Text with at least one character."""

AtLeastOne = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]


@cache
def sparse_serializer(model: type[BaseModel]) -> SchemaSerializer:
    """Return a serializer of `model` that omits null values of fields with a default, at any depth."""
    model.model_rebuild()  # Classes are built lazily. This call does nothing if the class is complete.
    schema = _null_defaults_excluded(model.__pydantic_core_schema__, {})
    # Without this option, the prebuilt serializers of the classes would replace the modified ones.
    return SchemaSerializer(cast("CoreSchema", schema), _use_prebuilt=False)


def _is_none(value: object) -> bool:
    return value is None


def _sparse(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
    """Serialize a value of any type. Optional nulls of models in it are also left out."""
    if isinstance(value, BaseModel):
        serializer = sparse_serializer(type(value))
        exclude_unset = info.exclude_unset
        return serializer.to_python(value, mode=info.mode, by_alias=True, exclude_unset=exclude_unset)
    if isinstance(value, list | tuple) and any(isinstance(item, BaseModel) for item in value):
        return [_sparse(item, handler, info) for item in value]
    return handler(value)


_FREE = core_schema.wrap_serializer_function_ser_schema(_sparse, info_arg=True, schema={"type": "any"})


def _null_defaults_excluded(node: Any, done: dict[int, Any]) -> Any:
    """Return a copy of a core schema in which fields with a default have an `exclude_if`.

    Values of any type are serialized by their class, whose own serializer writes nulls.
    """
    if id(node) in done:
        return done[id(node)]
    copy: Any
    if isinstance(node, dict):
        if node.get("type") == "any" or node.get("serialization") == {"type": "any"}:
            node = {**node, "serialization": _FREE}
            done[id(node)] = node
            return node
        copy = done[id(node)] = {}
        for key, value in node.items():
            copy[key] = _null_defaults_excluded(value, done)
        if node.get("type") == "model-field" and node["schema"]["type"] == "default":
            copy["serialization_exclude_if"] = _is_none
        return copy
    if isinstance(node, list | tuple):
        copy = done[id(node)] = type(node)(_null_defaults_excluded(value, done) for value in node)
        return copy
    return node


_MODEL_MEMBERS = frozenset(dir(BaseModel))


class ReadableModel(BaseModel):
    """Base of all families: reading of data, and access with `[]` in addition to attributes."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        protected_namespaces=(),
        # Building 130 validators during the import would be slow, and most users need only a few.
        defer_build=True,
    )

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Validate plain data. Unknown fields are dropped if the family requires it; the input is not
        changed.

        Raises:
            pydantic.ValidationError: the data is invalid, even without the unknown fields.
        """
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            unknown = unknown_fields(error)
            if not unknown:
                raise
            without_unknown = without(obj, unknown)
        return super().model_validate(without_unknown, **options)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Validate JSON text, equivalent to `json.loads` followed by `model_validate`.

        Raises:
            json.JSONDecodeError: the text is not JSON.
            pydantic.ValidationError: the data is invalid.
        """
        return cls.model_validate(read_json(json_data), **options)

    __template_text__: ClassVar[Callable[[object], str | None]]
    """Function that returns the text of `{{ value }}` in a template. The module `chat` sets it, because it
    can import all types with a text.
    """

    def __str__(self) -> str:
        """Return the same text as in a template. Values without a text show their fields."""
        text = type(self).__template_text__(self)
        return super().__str__() if text is None else text

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __getitem__(self, name: str) -> Any:
        if name in (self.model_extra or ()):
            # An attribute lookup could return a pydantic method with the same name.
            return (self.model_extra or {})[name]
        if name in self:
            return getattr(self, "schema_dict" if name == "schema" else name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Return whether `name` is a field, a stored unknown field, or a property (`text` …)."""
        if not isinstance(name, str):
            return False
        cls = type(self)
        return (
            name in self._own()
            or (name == "schema" and "schema_dict" in cls.model_fields)
            or (name not in _MODEL_MEMBERS and isinstance(getattr(cls, name, None), property))
        )

    def get(self, name: str, default: Any = None) -> Any:
        """Return the field `name`, or `default` if it does not exist, as for a dictionary."""
        try:
            return self[name]
        except KeyError:
            return default

    def _own(self) -> set[str]:
        return {*type(self).model_fields, *(self.model_extra or ())}


class LFBaseModel(ReadableModel):
    """Base of AI GO's types. Unset fields are left out of dumps."""

    nullable_fields: ClassVar[list[str]] = []

    def model_dump(
        self,
        *,
        mode: str = "python",
        by_alias: bool | None = None,
        exclude_unset: bool = True,
        exclude_none: bool = False,
        warnings: bool | Literal["none", "warn", "error"] = True,
        **options: Any,
    ) -> dict[str, Any]:
        """Return plain data: set fields only, without optional nulls, with required nulls.

        `exclude_unset=False` includes every field. The other options are passed to pydantic.
        """
        options |= {"mode": mode, "by_alias": by_alias is not False, "warnings": warnings}
        if not exclude_unset or exclude_none:
            return super().model_dump(exclude_unset=exclude_unset, exclude_none=exclude_none, **options)
        data: dict[str, Any] = sparse_serializer(type(self)).to_python(self, exclude_unset=True, **options)
        return data

    def model_dump_json(
        self,
        *,
        indent: int | None = None,
        by_alias: bool | None = None,
        exclude_unset: bool = True,
        exclude_none: bool = False,
        warnings: bool | Literal["none", "warn", "error"] = True,
        **options: Any,
    ) -> str:
        """Return JSON text by the rules of `model_dump`. NaN and infinity become `null`.

        Raises:
            pydantic_core.PydanticSerializationError: a string contains a lone surrogate, or a value cannot
                be converted to JSON.
        """
        options |= {"indent": indent, "by_alias": by_alias is not False, "warnings": warnings}
        if not exclude_unset or exclude_none:
            return super().model_dump_json(exclude_unset=exclude_unset, exclude_none=exclude_none, **options)
        return sparse_serializer(type(self)).to_json(self, exclude_unset=True, **options).decode()

    def model_dump_include_unset(self, **options: Any) -> dict[str, Any]:
        """Return plain data with every field, including nulls."""
        return self.model_dump(exclude_unset=False, **options)

    def model_dump_json_include_unset(self, **options: Any) -> str:
        """Return JSON text with every field, including nulls."""
        return self.model_dump_json(exclude_unset=False, **options)


class OpenFieldsModel(LFBaseModel):
    """AI GO type that keeps unknown fields, because model endpoints and authors add their own."""

    model_config = ConfigDict(extra="allow")


class OpenResponsesModel(ReadableModel):
    """Base of the types that follow the Open Responses format. Unknown fields are kept."""

    model_config = ConfigDict(extra="allow")

    def model_dump(self, *, exclude_unset: bool = True, **options: Any) -> dict[str, Any]:
        """Return plain data without unset fields."""
        return super().model_dump(exclude_unset=exclude_unset, **options)


T = TypeVar("T")

_LEAVES = frozenset({str, int, float, bool, type(None)})


def make_explicit(value: T) -> T:
    """Mark `type`, `role` and `id` as set in a model and all models in it, and return the model.

    Dumps leave out unset fields. An item built in Python without `type` or `role` would be read as another
    kind of item, and an event would get another identifier. Call this function before evidence is stored.
    """
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            parts = item
        elif isinstance(item, dict):
            parts = list(item.values())
        elif (fields := _fields(cast("Any", type(item)))) is not None:
            identifying, holding = fields
            cast("BaseModel", item).__pydantic_fields_set__.update(identifying)
            members = item.__dict__
            parts = [members.get(name) for name in holding]
        else:
            continue
        waiting.extend([part for part in parts if type(part) not in _LEAVES])
    return value


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the names of a model's identifying fields and of the fields that may contain models; `None` for
    other classes.

    Plain data (a row, details of an event) is not searched, because its fields do not identify anything.
    """
    if not issubclass(kind, BaseModel):
        return None
    fields = kind.model_fields
    identifying = tuple(name for name in ("type", "role", "id") if name in fields)
    return identifying, tuple(name for name, field in fields.items() if _holds_models(field.annotation))


def _holds_models(annotation: Any) -> bool:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(map(_holds_models, get_args(getattr(annotation, "__value__", annotation))))


M = TypeVar("M", bound=BaseModel)


def maker(kind: type[M]) -> Callable[[dict[str, Any]], M]:
    """Return a function that creates objects of a class from a dictionary of fields. The object takes
    ownership of the values.

    The object equals the result of the constructor if the fields are valid and already in their final
    form. Enums must be members instead of texts, and objects must not be dictionaries. All required fields
    must be present, and so must defaults that are lists or dictionaries. Nothing is checked. Unknown
    fields are not allowed.
    """
    fields = {
        name: None if field.is_required() else field.default for name, field in kind.model_fields.items()
    }
    is_open = kind.model_config.get("extra") == "allow"
    new, put = object.__new__, object.__setattr__

    def make(values: dict[str, Any]) -> M:
        instance = new(kind)
        # Keep the field order of the class, because dumps use it.
        put(instance, "__dict__", {**fields, **values})
        put(instance, "__pydantic_fields_set__", set(values))
        put(instance, "__pydantic_extra__", {} if is_open else None)
        put(instance, "__pydantic_private__", None)
        return instance

    return make


_KEY = re.compile(r"[a-zA-Z0-9_\-]{1,250}")
_FOREIGN = re.compile(r"[^a-z0-9_]+")


def is_valid_key(key: str) -> bool:
    """Return whether a text is a valid key of a task, dataset or evaluation."""
    return _KEY.fullmatch(key) is not None


def sanitize_key(text: str) -> str:
    """Convert a text to a key: lowercase, with one `-` for each run of other characters, and without `-` at
    the start or end.

    Raises:
        ValueError: the result is empty.
    """
    key = _FOREIGN.sub("-", text.lower()).strip("-")
    if not key:
        raise ValueError(f"a key cannot contain any character of {text!r}")
    return key

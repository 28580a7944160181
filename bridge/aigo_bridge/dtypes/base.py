"""The families of models, with their rules for unknown fields, for dumps and for reading.

| family | unknown field, constructor | unknown field, `model_validate…` | default dump |
|---|---|---|---|
| `LFBaseModel` | error | dropped | unset fields and optional nulls left out |
| `OpenFieldsModel` (chat types, templates, custom items) | kept | kept | the same |
| `OpenResponsesModel` (messages, calls, content) | kept | kept | `model_dump` without unset, JSON in full |
"""

from __future__ import annotations

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
"""A value that JSON can hold."""

DType = type | tuple[type, ...]
"""A Python type, or several to choose from, as `isinstance` takes them."""


@runtime_checkable
class DataFrame(Protocol):
    """The part of a pandas data frame that makes it a table; pandas itself is not needed for it."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""

    @property
    def iloc(self) -> Any:
        """Rows by position."""


ResultDType = DataFrame | JSONType | BaseModel
"""What a snippet may return."""


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
"""Value of an HTTP header: printable ASCII."""

NonEmpty = Annotated[str, Field(min_length=1)]
"""Text of at least one character."""

AtLeastOne = Annotated[int, Field(ge=1)]
AtLeastTwo = Annotated[int, Field(ge=2)]


@cache
def sparse_serializer(model: type[BaseModel]) -> SchemaSerializer:
    """Serializer of `model` that leaves out every field that has a default and is null, at any depth."""
    model.model_rebuild()  # classes are built lazily; this is a no-op for one that is complete
    schema = _null_defaults_excluded(model.__pydantic_core_schema__, {})
    # Otherwise the serializers that the classes hold would be put in place of the changed ones.
    return SchemaSerializer(cast("CoreSchema", schema), _use_prebuilt=False)


def _is_none(value: object) -> bool:
    return value is None


def _sparse(value: Any, handler: Callable[[Any], Any], info: Any) -> Any:
    """Serialize a free value: the models in it lose their optional nulls as well."""
    if isinstance(value, BaseModel):
        serializer = sparse_serializer(type(value))
        exclude_unset = info.exclude_unset
        return serializer.to_python(value, mode=info.mode, by_alias=True, exclude_unset=exclude_unset)
    if isinstance(value, list | tuple) and any(isinstance(item, BaseModel) for item in value):
        return [_sparse(item, handler, info) for item in value]
    return handler(value)


_FREE = core_schema.wrap_serializer_function_ser_schema(_sparse, info_arg=True, schema={"type": "any"})


def _null_defaults_excluded(node: Any, done: dict[int, Any]) -> Any:
    """Copy of a core schema in which fields with a default carry an `exclude_if`.

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
    """What all families share: how data is read, and access with `[]` besides attributes."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        protected_namespaces=(),
        # Building 130 validators costs more than most users of this module need at import.
        defer_build=True,
    )

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Read plain data; unknown fields are dropped where the family does so, the input stays as it is.

        Raises:
            pydantic.ValidationError: The data does not fit, also without the unknown fields.
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
        """Read JSON text: the same as `json.loads` followed by `model_validate`.

        Raises:
            json.JSONDecodeError: The text is not JSON.
            pydantic.ValidationError: The data does not fit.
        """
        return cls.model_validate(read_json(json_data), **options)

    __template_text__: ClassVar[Callable[[object], str | None]]
    """The text that `{{ value }}` prints in a template; set by `chat`, which knows all types that
    have one.
    """

    def __str__(self) -> str:
        """The same text as in a template; values without a text print their fields."""
        text = type(self).__template_text__(self)
        return super().__str__() if text is None else text

    def __format__(self, form: str) -> str:
        return format(str(self), form)

    def __getitem__(self, name: str) -> Any:
        if name in (self.model_extra or ()):
            # Not as attribute: a method of pydantic may have the same name.
            return (self.model_extra or {})[name]
        if name in self:
            return getattr(self, "schema_dict" if name == "schema" else name)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        """Whether `name` is a field, an unknown field that was kept, or a computed view (`turns`,
        `text` …).
        """
        if not isinstance(name, str):
            return False
        cls = type(self)
        return (
            name in self._own()
            or (name == "schema" and "schema_dict" in cls.model_fields)
            or (name not in _MODEL_MEMBERS and isinstance(getattr(cls, name, None), property))
        )

    def get(self, name: str, default: Any = None) -> Any:
        """The field `name`, or `default` when there is none, as with a dictionary."""
        try:
            return self[name]
        except KeyError:
            return default

    def _own(self) -> set[str]:
        return {*type(self).model_fields, *(self.model_extra or ())}


class LFBaseModel(ReadableModel):
    """Base of AI GO's types: fields that were not set are left out of dumps."""

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
        """Plain data: set fields only, optional nulls left out, required nulls kept.

        `exclude_unset=False` writes every field. Other options are those of pydantic.
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
        """JSON text by the rules of `model_dump`; NaN and infinity become `null`.

        Raises:
            pydantic_core.PydanticSerializationError: A string holds a lone surrogate, or a free value has no
                JSON form.
        """
        options |= {"indent": indent, "by_alias": by_alias is not False, "warnings": warnings}
        if not exclude_unset or exclude_none:
            return super().model_dump_json(exclude_unset=exclude_unset, exclude_none=exclude_none, **options)
        return sparse_serializer(type(self)).to_json(self, exclude_unset=True, **options).decode()

    def model_dump_include_unset(self, **options: Any) -> dict[str, Any]:
        """Plain data with every field, nulls included."""
        return self.model_dump(exclude_unset=False, **options)

    def model_dump_json_include_unset(self, **options: Any) -> str:
        """JSON text with every field, nulls included."""
        return self.model_dump_json(exclude_unset=False, **options)


class OpenFieldsModel(LFBaseModel):
    """An LF type that keeps fields it does not know: model endpoints and authors add their own."""

    model_config = ConfigDict(extra="allow")


class OpenResponsesModel(ReadableModel):
    """Base of the types that follow the Open Responses format; unknown fields are kept."""

    model_config = ConfigDict(extra="allow")

    def model_dump(self, *, exclude_unset: bool = True, **options: Any) -> dict[str, Any]:
        """Plain data; fields that were not set are left out."""
        return super().model_dump(exclude_unset=exclude_unset, **options)


T = TypeVar("T")

_LEAVES = frozenset({str, int, float, bool, type(None)})


def make_explicit(value: T) -> T:
    """Let `type`, `role` and `id` count as set in a model and in all models below it; hands back the model.

    Dumps leave out what was not set. An item built in Python without `type` or `role` would be read back as
    another kind of item, and an event would get another identifier. Do this before evidence is stored.
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
    """Names of a model's identifying fields, and of those that may hold models; `None` for what is no model.

    Plain data (a row, an event's details) is not searched: what stands in it identifies nothing.
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
    """What makes objects of a class from their fields, which become the object's own.

    The object is the one that the constructor makes of the same fields, as long as these are valid and are
    what the constructor would keep: members of enums instead of their texts, objects instead of dictionaries,
    required fields all there, defaults that are lists or dictionaries as well. Nothing of that is checked.
    Unknown fields may not be given.
    """
    fields = {
        name: None if field.is_required() else field.default for name, field in kind.model_fields.items()
    }
    is_open = kind.model_config.get("extra") == "allow"
    new, put = object.__new__, object.__setattr__

    def make(values: dict[str, Any]) -> M:
        instance = new(kind)
        # In the order of the class, which is the order in dumps.
        put(instance, "__dict__", {**fields, **values})
        put(instance, "__pydantic_fields_set__", set(values))
        put(instance, "__pydantic_extra__", {} if is_open else None)
        put(instance, "__pydantic_private__", None)
        return instance

    return make


_KEY = re.compile(r"[a-zA-Z0-9_\-]{1,250}")
_FOREIGN = re.compile(r"[^a-z0-9_]+")


def is_valid_key(key: str) -> bool:
    """Whether a text can be the key of a task, dataset or evaluation."""
    return _KEY.fullmatch(key) is not None


def sanitize_key(text: str) -> str:
    """A text as a key: in lower case, every run of other characters as one `-`, none at the ends.

    Raises:
        ValueError: Nothing is left.
    """
    key = _FOREIGN.sub("-", text.lower()).strip("-")
    if not key:
        raise ValueError(f"a key cannot contain any character of {text!r}")
    return key

"""The parameters that a task may be configured with.

The fields that all have in common are spelt out in each: their order is that of published files.
"""

from typing import Any, Literal

from aigo_bridge.dtypes.base import LFBaseModel
from aigo_bridge.dtypes.constraints import NonEmpty
from aigo_bridge.dtypes.enums import ScalarDtype, StringKind


class FloatParameterSpec(LFBaseModel):
    """A number."""

    type: Literal["float"]
    """Always `float`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    min: float | None = None
    """Smallest value allowed; `None` for no limit."""
    max: float | None = None
    """Largest value allowed; `None` for no limit."""
    default_value: float | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class IntParameterSpec(LFBaseModel):
    """A whole number."""

    type: Literal["int"]
    """Always `int`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    min: int | None = None
    """Smallest value allowed; `None` for no limit."""
    max: int | None = None
    """Largest value allowed; `None` for no limit."""
    default_value: int | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class BooleanParameterSpec(LFBaseModel):
    """Yes or no."""

    type: Literal["boolean"]
    """Always `boolean`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: bool | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class StringParameterExample(LFBaseModel):
    """A text to start from."""

    value: str
    """The text."""
    display_name: NonEmpty
    """Name as shown."""


class StringParameterSpec(LFBaseModel):
    """A text, possibly a template or Python source."""

    type: Literal["string"]
    """Always `string`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: str | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""
    string_kind: StringKind = StringKind.freeform
    """What the text is."""
    examples: list[StringParameterExample] | None = None
    """Texts to start from."""


class ModelParameterSpec(LFBaseModel):
    """A model, by key."""

    type: Literal["model"]
    """Always `model`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: str | None = None
    """Key when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class DatasetParameterSpec(LFBaseModel):
    """A data set, by key."""

    type: Literal["dataset"]
    """Always `dataset`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: str | None = None
    """Key when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class DatasetColumnParameterSpec(LFBaseModel):
    """A column of the data set."""

    type: Literal["dataset_column"]
    """Always `dataset_column`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: str | None = None
    """Column when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class TaskResultParameterSpec(LFBaseModel):
    """An earlier task result, by key; later releases have it."""

    type: Literal["task_result"]
    """Always `task_result`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: str | None = None
    """Key when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class ListParameterSpec(LFBaseModel):
    """A list."""

    type: Literal["list"]
    """Always `list`."""
    dtype: ScalarDtype
    """Type of the elements."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: list[Any] | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class DictParameterSpec(LFBaseModel):
    """A dictionary."""

    type: Literal["dict"]
    """Always `dict`."""
    value_dtype: ScalarDtype
    """Type of the values."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    default_value: dict[str, Any] | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""


class CategoricalParameterSpec(LFBaseModel):
    """One, or several, of a list of texts."""

    type: Literal["categorical"]
    """Always `categorical`."""
    key: str
    """Name by which the task refers to it."""
    display_name: NonEmpty
    """Name as shown."""
    description: str | None = None
    """What it is for."""
    allowed_values: list[str]
    """The texts to choose from."""
    multiple: bool = False
    """Whether several may be chosen."""
    default_value: str | None = None
    """Value when none is given."""
    nullable: bool = False
    """Whether it may be left without a value."""
    values_mapping: dict[str, int | float | bool | str] | None = None
    """What each text stands for; `None` when it stands for itself."""


ParameterSpec = (
    FloatParameterSpec
    | IntParameterSpec
    | BooleanParameterSpec
    | StringParameterSpec
    | ModelParameterSpec
    | DatasetParameterSpec
    | DatasetColumnParameterSpec
    | ListParameterSpec
    | DictParameterSpec
    | CategoricalParameterSpec
    | TaskResultParameterSpec
)
"""One parameter of a task."""

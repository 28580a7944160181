"""Arrow columns → Python values that JSON can hold."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships none
import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships none

_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
)


def columns_of(array: Any) -> dict[str, list[Any]]:
    """The fields of a struct array as columns; those without any value are left out.

    Raises:
        ValueError: a text is no UTF-8, or a time is beyond what Python can hold.
    """
    return {
        field.name: values(column)
        for field, column in zip(array.type, array.flatten(), strict=True)
        if column.null_count < len(column)
    }


def values(array: Any) -> list[Any]:
    """The values of an array as JSON has them; bytes as `data:` URLs.

    Raises:
        ValueError: a text is no UTF-8, or a time is beyond what Python can hold.
    """
    found: list[Any] = array.to_pylist()
    return [_without_bytes(value) for value in found] if _has(array.type, _is_binary) else found


def has_odd_numbers(array: Any) -> bool:
    """Whether any number in an array, however deep, is not finite."""
    kind = array.type
    if pa.types.is_floating(kind):
        return pc.all(pc.is_finite(array)).as_py() is False
    if not _has(kind, pa.types.is_floating):
        return False
    if pa.types.is_struct(kind):
        return any(has_odd_numbers(column) for column in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return has_odd_numbers(array.flatten())
    # Kinds that lighteval does not write: looked at value by value.
    return True


def _has(kind: Any, wanted: Callable[[Any], bool]) -> bool:
    return bool(wanted(kind)) or any(_has(kind.field(at).type, wanted) for at in range(kind.num_fields))


def _is_binary(kind: Any) -> bool:
    return bool(
        pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _without_bytes(value: Any) -> Any:
    if isinstance(value, bytes):
        return data_url(value)
    if isinstance(value, dict):
        return {name: _without_bytes(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_without_bytes(item) for item in value]
    return value


def data_url(data: bytes) -> str:
    """Bytes as a `data:` URL, with the type of the usual image formats."""
    kind = next((kind for sign, kind in _KINDS if data.startswith(sign)), None)
    if kind is None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        kind = "image/webp"
    return f"data:{kind or 'application/octet-stream'};base64,{base64.b64encode(data).decode()}"

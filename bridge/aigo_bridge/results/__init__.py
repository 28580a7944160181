"""Task results: from trial records to a result log on disk, and back.

The public functions are imported lazily, because most packages need only one module of this package.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_bridge.results.reading import FramePart, LogReader, SamplePart, read_log
    from aigo_bridge.results.validating import schema_for_log, validate_log
    from aigo_bridge.results.writing import write_log

__all__ = [
    "FramePart",
    "LogReader",
    "SamplePart",
    "read_log",
    "schema_for_log",
    "validate_log",
    "write_log",
]

_HOMES = {
    "FramePart": "reading",
    "LogReader": "reading",
    "SamplePart": "reading",
    "read_log": "reading",
    "schema_for_log": "validating",
    "validate_log": "validating",
    "write_log": "writing",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)

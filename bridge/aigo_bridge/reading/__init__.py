"""Conversion of text to specifications with positions, includes and references; all problems together."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_bridge.reading.document import Dialect, Document, SourcePosition, snippet_place
    from aigo_bridge.reading.kinds import Kind, recognise
    from aigo_bridge.reading.messages import issues_from_validation
    from aigo_bridge.reading.reader import (
        FileReport,
        UnknownKindError,
        kind_of,
        peek,
        read,
        upgrade_text,
        validate_paths,
    )
    from aigo_bridge.reading.variables import environment

_HOMES = {
    "Dialect": "document",
    "Document": "document",
    "FileReport": "reader",
    "Kind": "kinds",
    "SourcePosition": "document",
    "UnknownKindError": "reader",
    "environment": "variables",
    "issues_from_validation": "messages",
    "kind_of": "reader",
    "peek": "reader",
    "read": "reader",
    "recognise": "kinds",
    "snippet_place": "document",
    "upgrade_text": "reader",
    "validate_paths": "reader",
}
"""Name → module that defines it; loaded when the name is first used."""

__all__ = [
    "Dialect",
    "Document",
    "FileReport",
    "Kind",
    "SourcePosition",
    "UnknownKindError",
    "environment",
    "issues_from_validation",
    "kind_of",
    "peek",
    "read",
    "recognise",
    "snippet_place",
    "upgrade_text",
    "validate_paths",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)

"""Conversion of text to specifications with positions, includes and references; all problems together."""

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

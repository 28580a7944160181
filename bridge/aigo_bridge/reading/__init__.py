"""Text to specification: positions, includes, references, and every problem of every file at once."""

from aigo_bridge.reading.code_places import snippet_place
from aigo_bridge.reading.document import Dialect, Document
from aigo_bridge.reading.environment import environment
from aigo_bridge.reading.kinds import Kind, recognise
from aigo_bridge.reading.places import Place
from aigo_bridge.reading.reader import (
    UnknownKindError,
    kind_of,
    peek,
    read_adapter,
    read_any,
    read_app,
    read_dataset,
    read_evaluation,
    read_generator,
    read_model,
    read_plan,
    read_policy,
    read_run,
    read_task,
)
from aigo_bridge.reading.rendering import render_issues
from aigo_bridge.reading.upgrade import upgrade_text
from aigo_bridge.reading.validating import FileReport, validate_paths
from aigo_bridge.reading.wording import issues_from_validation

__all__ = [
    "Dialect",
    "Document",
    "FileReport",
    "Kind",
    "Place",
    "UnknownKindError",
    "environment",
    "issues_from_validation",
    "kind_of",
    "peek",
    "read_adapter",
    "read_any",
    "read_app",
    "read_dataset",
    "read_evaluation",
    "read_generator",
    "read_model",
    "read_plan",
    "read_policy",
    "read_run",
    "read_task",
    "recognise",
    "render_issues",
    "snippet_place",
    "upgrade_text",
    "validate_paths",
]

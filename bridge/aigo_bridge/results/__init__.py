"""Task results: from what happened to the samples to a result log on disk, and back."""

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

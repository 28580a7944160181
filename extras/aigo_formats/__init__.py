"""Formats in which other projects exchange evaluations, by their names on the command line.

A format is no engine: nothing is run on it, and its own package need not be installed. What a file means is
read from what its project writes; nothing that stands in a file is run.
"""

from __future__ import annotations

from aigo_formats.formats import (
    Format,
    foreign_files,
    format_files,
    format_named,
    formats,
    result_export,
    result_exports,
)

__all__ = [
    "Format",
    "foreign_files",
    "format_files",
    "format_named",
    "formats",
    "result_export",
    "result_exports",
]

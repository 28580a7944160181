"""A folder as a data set: one row per text file, recursively.

Columns: `sample_id` (SHA-256 of the bytes), `file_name` (path inside the folder), `content`, then the keys of YAML
front matter, which is cut from the content. As on the platform, hidden files count, PDFs never do, order is by path.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.datasets.json_tables import ObjectTable
from aigo_bridge.datasets.plain import plain
from aigo_bridge.datasets.rows import Problems
from aigo_bridge.datasets.tables import Record
from aigo_bridge.encodings import conversion, wrong_byte
from aigo_bridge.errors import DatasetError, Issue
from aigo_bridge.roots import is_below, outside

_OWN_COLUMNS = ("sample_id", "file_name", "content")
_LONGEST_FRONT_MATTER = 64 * 1024


class FolderTable(ObjectTable):
    """The files below a folder; `extension` (with or without dot, any case) chooses among them."""

    def __init__(self, folder: Path, extension: str | None, *, root: Path | None = None):
        super().__init__(())
        self._folder = folder
        self._ending = None if extension is None else "." + extension.lower().removeprefix(".")
        self._root = root
        self.warnings: list[Issue] = []

    def records(self, problems: Problems) -> Iterator[Record]:
        """One record per file; a file that is not UTF-8 or lies outside the root is noted as a problem.

        Raises `DatasetError` when the folder does not exist.
        """
        if not self._folder.is_dir():
            raise DatasetError([Issue("the folder does not exist", str(self._folder))])
        for number, path in enumerate(self._files()):
            data = self._row(path, problems)
            if data is not None:
                yield Record(number, None, data)

    def _files(self) -> list[Path]:
        found = [Path(folder, name) for folder, _, names in os.walk(self._folder) for name in names]
        return sorted(path for path in found if self._wanted(path.suffix.lower()))

    def _wanted(self, suffix: str) -> bool:
        return suffix != ".pdf" and (self._ending is None or suffix == self._ending)

    def _row(self, path: Path, problems: Problems) -> dict[str, Any] | None:
        name = path.relative_to(self._folder).as_posix()
        if self._root is not None and not is_below(path, self._root):
            issue = outside(f"{name}: the link", path, self._root)
            problems.add(issue.message, hint=issue.hint)
            return None
        try:
            content = path.read_bytes()
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            problems.add(f"{name}: {wrong_byte(error)}", hint=conversion(error, name))
            return None
        except OSError as error:
            problems.add(f"{name}: {error.strerror}")
            return None
        matter, rest = self._split(text, str(path))
        own = dict(zip(_OWN_COLUMNS, (hashlib.sha256(content).hexdigest(), name, rest), strict=True))
        return {**own, **{key: value for key, value in matter.items() if key not in own}}

    def _split(self, text: str, file: str) -> tuple[dict[str, Any], str]:
        """Front matter and what follows it; the newline after the closing `---` stays with the text."""
        first, newline, after = text.partition("\n")
        if first.rstrip("\r") != "---" or not newline:
            return {}, text
        end = _closing(after)
        if end is None:
            return {}, text
        matter = _parsed(after[:end])
        if matter is None:
            message = "the front matter is not a plain YAML mapping, so the text was kept whole"
            self.warnings.append(Issue(message, file, line=1, severity="warning"))
            return {}, text
        return matter, after[end + 3 :]


def _closing(text: str) -> int | None:
    """Where the line that is only `---` starts."""
    start = 0
    for line in text.splitlines(keepends=True):
        if line.rstrip("\r\n") == "---":
            return start
        start += len(line)
        if start > _LONGEST_FRONT_MATTER:
            break
    return None


def _parsed(source: str) -> dict[str, Any] | None:
    try:
        # Anchors have no use in front matter, and a few of them can stand for a document of gigabytes.
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(source, Loader=yaml.CSafeLoader)):
            return None
        value = yaml.load(source, Loader=yaml.CSafeLoader)
        return {str(key): plain(item) for key, item in value.items()} if isinstance(value, dict) else None
    except (yaml.YAMLError, ValueError, RecursionError):
        return None

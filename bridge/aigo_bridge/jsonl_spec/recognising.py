"""Whether a file holds task records, told by its lines; and what it holds instead, told to somebody who took it for such a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import orjson

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.jsonl_spec.files import numbered_lines, opened
from aigo_bridge.jsonl_spec.vocabulary import REQUIRED_FIELDS

ENDINGS = tuple(f".{name}{packed}" for name in ("jsonl", "ndjson") for packed in ("", ".gz"))
"""How files of JSON lines are called."""

Content = Literal["records", "rows", "log", "list", "spread"]
"""Records one a line; other objects one a line; a result log; a JSON list of objects; one record over several lines."""

_MOST_LINES = 200
_MOST_BYTES = 1024 * 1024
_LARGEST_DOCUMENT = 64 * 1024 * 1024
_REQUIRED = frozenset(REQUIRED_FIELDS)
_SHOWN_COLUMNS = 6


def is_record_file(path: Path) -> bool:
    """Whether a file is to be read as task records: JSON lines by its name, or records by its content.

    Rows, say, in a file that is called like records are told when it is read, see `other_content`.
    """
    if path.name.lower().endswith(ENDINGS):
        return True
    try:
        return _begins_like_json(path) and _holds_records(path)
    except SpecError:
        return False


def other_content(path: Path) -> Issue | None:
    """What is wrong with a file that holds something else than one record a line; `None` when it holds records, or nothing.

    Raises:
        SpecError: the file cannot be read.
    """
    match content_of(path):
        case "rows":
            return _rows(path)
        case "log":
            hint = "its task and `aigo-bridge score TASK LOG` score it again"
            return Issue("this is a result log, not a file of task records", file=str(path), hint=hint)
        case "list" | "spread" as content:
            one = ".[]" if content == "list" else "."
            found = "a list of objects" if content == "list" else "an object over several lines"
            target = f"{path.stem}.jsonl" if path.suffix != ".jsonl" else f"{path.stem}-lines.jsonl"
            hint = f"one record is one line of a .jsonl file: jq -c '{one}' {path.name} > {target}"
            return Issue(f"found {found}, expected one task record a line", file=str(path), hint=hint)
    return None


def content_of(path: Path) -> Content | None:
    """What the first lines of a file are; `None` when no line tells (it is empty, or broken).

    Raises:
        SpecError: the file cannot be read.
    """
    document = _document(path)
    if isinstance(document, list) and any(isinstance(item, dict) for item in document):
        return "list"
    found: Content | None = None
    for value in _first_objects(path):
        if is_like_record(value):
            return "records"
        found = found or ("log" if is_like_log(value) or ".tasklog." in path.name else "rows")
    if found is None and isinstance(document, dict):
        return "spread" if is_like_record(document) else None
    return found


def is_like_record(value: dict[str, Any]) -> bool:
    """Whether an object has at least half of the fields that a record must have."""
    return 2 * len(_REQUIRED & value.keys()) >= len(_REQUIRED)


def is_like_log(value: dict[str, Any]) -> bool:
    """Whether an object is a line of a result log: a sample, or the log without its samples."""
    return "format_version" in value or {"sample_id", "trials"} <= value.keys()


def _holds_records(path: Path) -> bool:
    content = content_of(path)
    if content == "list":
        document = _document(path)
        return any(isinstance(item, dict) and is_like_record(item) for item in document)
    return content in ("records", "spread")


def _begins_like_json(path: Path) -> bool:
    with opened(path) as stream:
        return stream.read(512).lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _document(path: Path) -> Any:
    """A file that is one JSON document of several lines, or a list; `None` for every other."""
    with opened(path) as stream:
        head = stream.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
        first = head.split(b"\n", 1)[0].strip()
        if not head.startswith(b"[") and first != b"{" and not first.endswith(b","):
            return None  # lines of their own: reading the whole file would be in vain
        stream.seek(0)
        text = stream.read(_LARGEST_DOCUMENT)
    try:
        return orjson.loads(text.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None


def _first_objects(path: Path) -> Iterator[dict[str, Any]]:
    read = 0
    with opened(path) as stream:
        for number, line in numbered_lines(stream):
            read += len(line)
            try:
                value = orjson.loads(line)
            except orjson.JSONDecodeError:
                value = None
            if isinstance(value, dict):
                yield value
            if number >= _MOST_LINES or read >= _MOST_BYTES:
                return


def _rows(path: Path) -> Issue:
    columns = list(next(_first_objects(path)))
    missing = ", ".join(map(repr, (name for name in REQUIRED_FIELDS if name not in columns)))
    shown = ", ".join(repr(name[:40]) for name in columns[:_SHOWN_COLUMNS]) or "no fields"
    more = ", …" if len(columns) > _SHOWN_COLUMNS else ""
    message = f"found rows with {shown}{more}, expected task records: {missing} are missing"
    hint = f"rows are run by a task: aigo-bridge run TASK --dataset KEY={path.name}; `aigo-bridge schema jsonl` describes records"
    return Issue(message, file=str(path), hint=hint)

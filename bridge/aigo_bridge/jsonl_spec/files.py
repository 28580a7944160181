"""Files of task records: each line is validated separately, IDs across the whole file."""

from __future__ import annotations

import gzip
import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, cast

import orjson

from aigo_bridge.access.bounds import DEFAULT_BOUNDS, LogTooLargeError
from aigo_bridge.access.opening import open_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import SpecError
from aigo_bridge.jsonl_spec.checking import find_errors, task_of, validate_task
from aigo_bridge.jsonl_spec.records import LONGEST_TEXT, RecordError, Rule, TaskSpec, no_records
from aigo_bridge.redaction.secrets import open_clean

LONGEST_LINE = 64 * 1024 * 1024
"""Maximum bytes of a line; a longer one is an error of that line."""

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
# orjson silently reads integers beyond 64 bits as floats.
_LONG_INTEGER = re.compile(rb"\d{19}")
_PLAIN = frozenset({str, int, bool, type(None)})


def read_records(path: Path) -> Iterator[TaskSpec | tuple[RecordError, ...]]:
    """Yield the task of each line, or all its errors. Blank lines are skipped.

    Memory grows only with the number of IDs. `.gz` files are decompressed.

    Raises:
        SpecError: the file itself cannot be read.
    """
    first_lines: dict[str, int] = {}
    with opened(path) as stream:
        for number, line in numbered_lines(stream):
            # Fast path for valid lines.
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError:
                record = None
            if type(record) is dict and _read_exactly(record, line):
                task_id = record.get("task_id")
                if type(task_id) is str and task_id not in first_lines and not find_errors(record):
                    first_lines[task_id] = number
                    yield task_of(record)
                    continue
            if line.strip():
                yield _judged(line, number, first_lines)


def validate_file(path: Path) -> tuple[list[TaskSpec], list[RecordError]]:
    """Return the valid tasks of a file and all errors of the other lines, both in file order.

    An invalid line affects only its record. If several fields violate a rule, each field has an error.

    Raises:
        SpecError: the file itself cannot be read.
    """
    tasks: list[TaskSpec] = []
    errors: list[RecordError] = []
    for record in read_records(path):
        if isinstance(record, TaskSpec):
            tasks.append(record)
        else:
            errors.extend(record)
    return tasks, errors


def load_tasks(path: Path, *, allow_bad_tasks: bool = False) -> tuple[TaskSpec, ...]:
    """Load the tasks of a file for a run: all or none, unless `allow_bad_tasks` skips invalid records.

    Raises:
        SpecError: a record is invalid and that is not allowed, or no task is valid; contains every error.
    """
    tasks, errors = validate_file(path)
    if errors and not (allow_bad_tasks and tasks):
        raise SpecError([error.to_issue(path) for error in errors])
    if not tasks:
        raise SpecError([no_records(path)])
    return tuple(tasks)


def write_records(tasks: Iterable[TaskSpec], path: Path) -> None:
    """Write tasks as a file of records, one per line."""
    with open_clean(path) as file:
        for task in tasks:
            file.write(json_line(task.to_record()))


def json_line(value: dict[str, Any]) -> bytes:
    """Return one line of JSON; integers of any size stay exact."""
    try:
        return orjson.dumps(value, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:  # An integer beyond 64 bits.
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _judged(line: bytes, number: int, first_lines: dict[str, int]) -> TaskSpec | tuple[RecordError, ...]:
    """Validate a line that the fast path did not accept."""
    repeated: list[str] = []
    task: TaskSpec | None = None
    try:
        # Without the line ending, so that an unclosed text does not extend over it.
        record = _parsed(line.rstrip(b"\r\n"), repeated)
    except (ValueError, RecursionError) as error:
        errors = [broken_line(line, error)]
    else:
        errors = [
            RecordError(Rule.DUPLICATE_KEY, key, "the key occurs twice in its object, expected once")
            for key in dict.fromkeys(repeated)
        ]
        task, violations = validate_task(record)
        errors += violations
        errors += _duplicate(record, number, first_lines)
    if task is not None and not errors:
        return task
    text = _shown(line)
    return tuple(replace(error, line=number, text=text) for error in errors)


def _duplicate(record: object, number: int, first_lines: dict[str, int]) -> list[RecordError]:
    task_id = record.get("task_id") if isinstance(record, dict) else None
    if not isinstance(task_id, str) or not task_id.strip():
        return []
    first_line = first_lines.setdefault(task_id, number)
    if first_line == number:
        return []
    message = f"{task_id[:100]!r} is already the id of line {first_line}, expected a unique id"
    return [RecordError(Rule.TASK_ID_UNIQUE, "task_id", message)]


def _parsed(line: bytes, repeated: list[str]) -> Any:
    """Parse JSON strictly: long integers are exact, NaN and lone surrogates are refused. Add duplicate
    keys to `repeated`.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        pairs_by_key = dict(pairs)
        if len(pairs_by_key) < len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    repeated.append(key)
                seen.add(key)
        return pairs_by_key

    text = line.decode("utf-8")
    value = json.loads(text, object_pairs_hook=unique, parse_constant=_refuse_constant, parse_float=_finite)
    if "\\u" in text:
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # A lone surrogate is not a character.
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:40]} is too large a number")
    return number


def _shown(line: bytes) -> str:
    text = line[: 4 * LONGEST_TEXT].decode("utf-8", "replace").rstrip()
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _read_exactly(record: dict[str, Any], line: bytes) -> bool:
    """Return whether the fast parser certainly lost no data: no duplicate keys and no integers beyond 64
    bits.

    If the result is false, the line is parsed strictly.
    """
    expected = len(record)
    examples = record.get("few_shot_examples")
    if type(examples) is list:
        for example in examples:
            if type(example) is dict:
                expected += len(example)
    metadata = record.get("metadata")
    if type(metadata) is dict:
        expected += len(metadata)
        if not _PLAIN.issuperset(map(type, metadata.values())) and _LONG_INTEGER.search(line):
            return False
    # A quotation mark before a colon ends a key, unless it is escaped. Lines with whitespace between the two,
    # or with an escaped backslash, are parsed strictly.
    if b'\\\\"' in line or b'" :' in line or b'"  ' in line or b'"\t' in line or b'"\r' in line:
        return False
    return line.count(b'":') - line.count(b'\\":') == expected


def numbered_lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield lines with their numbers from 1, without a byte order mark. A line that is too long is
    truncated, and thus invalid JSON.
    """
    first_line = stream.readline(LONGEST_LINE)
    if first_line.startswith(_UTF16):
        raise UnicodeError("it is UTF-16, expected UTF-8")
    lines = iter(partial(stream.readline, LONGEST_LINE), b"")
    for number, line in enumerate(chain([first_line.removeprefix(_BOM)], lines), start=1):
        yield number, line
        if len(line) >= LONGEST_LINE - len(_BOM):
            piece = line
            while piece and not piece.endswith(b"\n"):
                piece = stream.readline(LONGEST_LINE)


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed if needed.

    Raises:
        SpecError: the file cannot be opened or read.
    """
    try:
        with open_regular(path) as file:
            if path.suffix.lower() == ".gz":
                with gzip.open(file) as stream:
                    size = os.fstat(file.fileno()).st_size
                    yield DEFAULT_BOUNDS.unpacked(cast("BinaryIO", stream), size, path.name)
            else:
                yield file
    except LogTooLargeError as error:
        raise SpecError(str(error), file=str(path), code=error.code) from error
    except (OSError, EOFError, UnicodeError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SpecError(
            f"the file cannot be read: {reason}", file=str(path), code=Code.UNREADABLE_FILE
        ) from error


_HINTS = (
    (re.compile("property name"), "put names in double quotes, without a comma after the last field"),
    (re.compile("Unterminated string"), "close the quote; a line break inside a text is written \\n"),
    (re.compile("control character"), "a tab or line break inside a text is written \\t or \\n"),
    (re.compile("escape"), "a backslash inside a text is written \\\\"),
)
_PYTHON = re.compile(r"None\b|True\b|False\b|'")
_WRITTEN_AS = "JSON writes null, true and false, and texts in double quotes"


def broken_line(line: bytes, error: Exception) -> RecordError:
    """Return the error of a line from its parser's exception (`ValueError` or `RecursionError`)."""
    if isinstance(error, UnicodeDecodeError):
        column = len(line[: error.start].decode("utf-8", "replace")) + 1
        message = f"not JSON: byte {error.start + 1} is not UTF-8"
        return RecordError(Rule.JSON, "", message, "save the file as UTF-8", column=column)
    if isinstance(error, json.JSONDecodeError):
        text = error.doc.rstrip()
        at = min(error.pos, len(text))
        message = f"not JSON: {error.msg[:1].lower()}{error.msg[1:]}"
        return RecordError(Rule.JSON, "", message, _hint(text, at, error.msg), column=at + 1)
    if isinstance(error, UnicodeEncodeError):
        hint = "write the character itself, or both halves of its escape"
        return RecordError(Rule.JSON, "", "not JSON: an escaped surrogate stands alone", hint)
    reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    return RecordError(Rule.JSON, "", f"not JSON: {reason}")


def _hint(text: str, at: int, problem: str) -> str | None:
    if text.lstrip().startswith(("//", "#", "/*")):
        return "JSON does not support comments; remove the line"
    if problem == "Extra data":
        behind = text[at:]
        if behind == ",":
            return "remove the comma at the end of the line"
        return "one record a line: begin a new line here" if behind.startswith("{") else None
    if _PYTHON.match(text, at):
        return _WRITTEN_AS
    if at == len(text) and "Unterminated" not in problem:
        return "the line ends before the record does: a record is one line, whole"
    return next((hint for pattern, hint in _HINTS if pattern.search(problem)), None)

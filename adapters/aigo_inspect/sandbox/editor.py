"""Text editor tool for a sandbox. It needs only file access.

Inspect's own editor copies a program into the container, and some sandboxes cannot run that program.
"""

from __future__ import annotations

from typing import Literal, TypeVar

from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import sandbox

from aigo_bridge.text.plurals import plural

T = TypeVar("T")

SHOWN = 2_000
"""Maximum number of lines in one view."""


@tool
def text_editor() -> Tool:
    """Look at text files, create and change them."""

    async def execute(
        command: Literal["view", "create", "str_replace", "insert"],
        path: str,
        file_text: str | None = None,
        old_str: str | None = None,
        new_str: str | None = None,
        insert_line: int | None = None,
        view_range: list[int] | None = None,
    ) -> str:
        """Look at a text file, create one, or change one.

        Args:
          command: What to do.
          path: The file.
          file_text: With `create`, the text of the file.
          old_str: With `str_replace`, the text to replace, which must occur exactly once.
          new_str: With `str_replace` the text in its place, with `insert` the text to insert.
          insert_line: With `insert`, the number of the line behind which to insert; 0 is the beginning.
          view_range: With `view`, the numbers of the first and the last line to show.

        Returns:
          The lines with their numbers, or that the file was written.
        """
        match command:
            case "view":
                return numbered(await _read(path), view_range)
            case "create":
                text = _needed(file_text, "file_text", command)
            case "str_replace":
                text = replaced(await _read(path), _needed(old_str, "old_str", command), new_str or "")
            case "insert":
                line = _needed(insert_line, "insert_line", command)
                text = inserted(await _read(path), line, _needed(new_str, "new_str", command))
        try:
            await sandbox().write_file(path, text)
        except OSError as error:
            raise ToolError(str(error)) from error
        return f"{path} was written."

    return execute


async def _read(path: str) -> str:
    try:
        return await sandbox().read_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"{path} cannot be read: {error}") from error


def _needed(value: T | None, name: str, command: str) -> T:
    if value is None:
        raise ToolError(f"{command} needs {name}")
    return value


def numbered(text: str, view_range: list[int] | None = None) -> str:
    """Return lines of a text with their line numbers.

    Raises:
        ToolError: the range is not valid.
    """
    lines = text.splitlines()
    begin, end = 1, min(len(lines), SHOWN)
    if view_range is not None:
        if len(view_range) != 2 or not 1 <= view_range[0] <= view_range[1]:
            raise ToolError(f"view_range: found {view_range}, expected the first and the last line, from 1")
        begin, end = view_range[0], min(view_range[1], len(lines), view_range[0] + SHOWN - 1)
    shown = [f"{number:6}\t{lines[number - 1]}" for number in range(begin, end + 1)]
    return "\n".join([*shown, *([f"(of {plural(len(lines), 'line')})"] if len(shown) < len(lines) else [])])


def replaced(text: str, old: str, new: str) -> str:
    """Return the text with the only occurrence of `old` replaced.

    Raises:
        ToolError: `old` does not occur, or occurs more than once.
    """
    count = text.count(old) if old else 0
    if count != 1:
        raise ToolError(f"old_str occurs {plural(count, 'time')}, expected exactly once; nothing was changed")
    return text.replace(old, new)


def inserted(text: str, line: int, new: str) -> str:
    """Return the text with `new` inserted after a line.

    Raises:
        ToolError: the line does not exist.
    """
    lines = text.splitlines(keepends=True)
    if not 0 <= line <= len(lines):
        raise ToolError(f"insert_line: found {line}, expected 0 to {len(lines)}")
    head = "".join(lines[:line])
    if head and not head.endswith("\n"):
        head += "\n"
    return f"{head}{new if new.endswith(chr(10)) else new + chr(10)}{''.join(lines[line:])}"

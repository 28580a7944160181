"""The page "Core Types" as a table: names, fields, required flags, defaults, enum values, members.

    python seed_table.py <text of the page> > core_types_table.json

The table holds facts only, none of the page's prose. Run it again when the page changes.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

SECTIONS = ("Models", "Enums", "Type Aliases", "Supporting Types")
PARTS = ("Properties", "Computed Properties", "Methods", "Allowed Values:", "No properties defined.")

_TYPE = r'(?:string|integer|number|boolean|object|Any|Literal "[^"]+"|array\[.+\]|[A-Z]\w+)'
_FIELD = re.compile(rf"^(?P<name>[A-Za-z_]\w*) (?P<type>{_TYPE}(?:, {_TYPE})*)(?P<required> required)?$")
_MEMBER = re.compile(r"^(?P<name>[a-z_]\w*) (?P<kind>.+)$")


def table_of(page: str) -> dict[str, Any]:
    """Return the facts of the page, by type."""
    lines = page.splitlines()
    types: dict[str, Any] = {}
    aliases: dict[str, str] = {}
    section = part = None
    current: dict[str, Any] = {}
    field: dict[str, Any] | None = None
    for at, line in enumerate(lines):
        blank_before = at > 0 and not lines[at - 1]
        blank_after = at + 1 == len(lines) or not lines[at + 1]
        if line in SECTIONS:
            section, part = line, None
        elif section == "Type Aliases" and " = " in line:
            name, _, meaning = line.partition(" = ")
            aliases[name] = meaning
        elif section is None or not line:
            continue
        elif line in PARTS:
            part = line
        elif (
            re.fullmatch(r"[A-Z]\w+", line)
            and blank_before
            and blank_after
            and not _is_title(line, lines[at - 2])
        ):
            current = types[line] = {"fields": {}, "values": [], "properties": [], "methods": []}
            part = field = None
        elif part == "Properties" and (found := _FIELD.match(line)) and _starts_field(lines, at):
            field = {"type": found["type"], "required": bool(found["required"])}
            current["fields"][found["name"]] = field
        elif part == "Properties" and field is not None and line.startswith("Default: "):
            field["default"] = line.removeprefix("Default: ")
        elif part == "Properties" and field is not None and line.startswith("Pattern: "):
            field["pattern"] = line.removeprefix("Pattern: ")
        elif part == "Properties" and field is not None and line.startswith("Max Length: "):
            field["max_length"] = int(line.removeprefix("Max Length: "))
        elif part == "Allowed Values:" and line.startswith("  • "):
            current["values"].append(line.removeprefix("  • "))
        elif (
            part == "Computed Properties"
            and (found := _MEMBER.match(line))
            and _looks_like_type(found["kind"])
        ):
            current["properties"].append(found["name"])
        elif part == "Methods" and (found := re.fullmatch(r"([a-z_]\w*) (method|classmethod)", line)):
            current["methods"].append(found[1])
    return {"types": types, "aliases": aliases}


def _starts_field(lines: list[str], at: int) -> bool:
    """Return whether a field starts here: after two empty lines, or after one if the text above is a list."""
    return not lines[at - 1] and (not lines[at - 2] or lines[at].endswith(" required"))


def _is_title(line: str, before: str) -> bool:
    """Return whether a line is the title of the field above it, such as `Role` below `role string required`."""
    field = _FIELD.match(before)
    return field is not None and line == field["name"].replace("_", " ").title()


def _looks_like_type(kind: str) -> bool:
    return re.fullmatch(r"(str|list\[.+\]|[A-Z]\w+( \| None)?)", kind) is not None


if __name__ == "__main__":
    print(json.dumps(table_of(Path(sys.argv[1]).read_text(encoding="utf-8")), indent=1, ensure_ascii=False))

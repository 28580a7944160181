"""Files of project templates and parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal, get_args

Template = Literal["chat", "judge", "multi-turn", "agent", "rag", "data-set", "jsonl"]

TEMPLATES: dict[Template, str] = {
    "chat": "answers compared with the correct ones",
    "judge": "answers judged by a second model",
    "multi-turn": "a conversation with a simulated user",
    "agent": "an agent with tools in a sandbox",
    "rag": "retrieval and answers, checked claim by claim",
    "data-set": "rows of a table, without a model",
    "jsonl": "task records, one per line",
}
"""Template → subject of the evaluation."""

Part = Literal["task", "scorer", "dataset"]

PARTS: tuple[Part, ...] = get_args(Part)

SCHEMAS = ("run", "task", "dataset", "model")
"""Kinds of files with a JSON Schema for the editor."""

_FOLDER = Path(__file__).parent
_NAME, _TITLE = "part-name", "Part name"
"""Placeholders for the name of a part, in files and file names."""


def project_files(template: Template) -> dict[str, bytes]:
    """Return the files of a project: name with `/` → content. Template files replace common files."""
    files = {**_files(_FOLDER / "templates" / "common"), **_files(_FOLDER / "templates" / template)}
    return {**files, **{f".vscode/schemas/{kind}.json": _schema(kind) for kind in SCHEMAS}}


def part_files(part: Part, name: str) -> dict[str, bytes]:
    """Return the files of a part.

    Args:
        part: kind of the part.
        name: key of the part.
    """
    title = name.replace("-", " ").replace("_", " ").strip().capitalize() or name
    return {
        file.replace(_NAME, name): content.replace(_NAME.encode(), name.encode()).replace(
            _TITLE.encode(), title.encode()
        )
        for file, content in _files(_FOLDER / "parts" / part).items()
    }


def _files(folder: Path) -> dict[str, bytes]:
    names = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {
        "/".join(
            f".{part[4:]}" if part.startswith("dot-") else part for part in path.relative_to(folder).parts
        ): (path.read_bytes())
        for path in names
    }


def _schema(kind: str) -> bytes:
    from aigo_bridge.reading.kinds import KINDS
    from aigo_bridge.spec.schema import json_schema

    document = json_schema(KINDS[kind].spec)  # type: ignore[index]  # KINDS has all file kinds
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()

"""A task as a file for `lighteval … --custom-tasks` that calls aigo-bridge, and the model that carries out the whole task there."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.exporting.python_code import Argument, one_line, opened, text_literal, wrapped


def hosted_code(manifest: Manifest, arguments: Sequence[Argument]) -> str:
    """The task's file."""
    title = f"{one_line(manifest.display_name)}: an AI GO evaluation task on lighteval."
    about = f"Written by {MARK}. The task as its author wrote it and the rows that it runs on are in {manifest.module}/."
    lines = [
        *wrapped(opened(title), indent=0),
        "",
        *(f"    {one_line(command)}" for command in manifest.commands),
        "",
        *wrapped(about, indent=0),
        '"""',
        "",
        "from pathlib import Path",
        "",
        "from aigo_lighteval.exported import exported_tasks",
        "",
        f'FILES = Path(__file__).resolve().parent / "{manifest.module}"',
    ]
    if not arguments:
        return "\n".join([*lines, "", "TASKS_TABLE = exported_tasks(FILES, {})"]) + "\n"
    lines += ["", "# The task's parameters; other values make another task of the same rows.", "CONFIG = {"]
    for argument in arguments:
        lines += [*_comment(argument.doc), f"    {text_literal(argument.key)}: {argument.default},"]
    return "\n".join([*lines, "}", "", "TASKS_TABLE = exported_tasks(FILES, CONFIG)"]) + "\n"


def model_code(manifest: Manifest) -> str:
    """The file that `lighteval custom` loads a model from: it takes the first class of a model that it finds there."""
    about = f"The evaluated model of {manifest.module}.py, written by {MARK}."
    lines = [
        *wrapped(opened(about), indent=0),
        '"""',
        "",
        "from aigo_lighteval.exported import ExportedModel",
        "",
        '__all__ = ["ExportedModel"]',
    ]
    return "\n".join(lines) + "\n"


def _comment(text: str) -> list[str]:
    return [f"    # {line}" for line in wrapped(text, indent=0)]

"""A task as a file for `inspect eval` that calls aigo-bridge: everything that runs here runs there."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.exporting.python_code import Argument, one_line, opened, text_literal, wrapped

OWN_NAMES = ("exported_task", "FILES", "num_samples")
"""Names that the file itself uses inside the task function."""


def hosted_code(manifest: Manifest, arguments: Sequence[Argument]) -> str:
    """The task's file."""
    function = f"{manifest.module}_task" if manifest.module in ("task", "exported_task") else manifest.module
    title = f"{one_line(manifest.display_name)}: an AI GO evaluation task on Inspect AI."
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
        "from aigo_inspect.exported import exported_task",
        "from inspect_ai import Task, task",
        "",
        f'FILES = Path(__file__).resolve().parent / "{manifest.module}"',
        "",
        "",
        "@task",
        f"def {function}(",
        *(_parameter(argument) for argument in arguments),
        "    num_samples: int | None = None,",
        ") -> Task:",
        *_docstring(manifest, arguments),
        *_call(arguments),
    ]
    return "\n".join(lines) + "\n"


def _parameter(argument: Argument) -> str:
    first, *rest = argument.default.split("\n")
    # Ruff looks for the exemption where the list begins.
    exempt = "  # noqa: B006  # never changed"
    if not argument.is_mutable:
        return f"    {argument.name}: {argument.annotation} = {argument.default},"
    if not rest:
        return f"    {argument.name}: {argument.annotation} = {first},{exempt}"
    return "\n".join([f"    {argument.name}: {argument.annotation} = {first}{exempt}", *rest]) + ","


def _docstring(manifest: Manifest, arguments: Sequence[Argument]) -> list[str]:
    first = one_line(manifest.description.strip() or manifest.display_name)
    lines = [*wrapped(opened(first), indent=4), "", "    Args:"]
    for argument in arguments:
        lines += wrapped(f"{argument.name}: {argument.doc}.", indent=8, hanging=4)
    return [*lines, "        num_samples: Run on the first samples only; None for all.", '    """']


def _call(arguments: Sequence[Argument]) -> list[str]:
    if not arguments:
        return ["    return exported_task(FILES, {}, num_samples=num_samples)"]
    return [
        "    config = {",
        *(f"        {text_literal(argument.key)}: {argument.name}," for argument in arguments),
        "    }",
        "    return exported_task(FILES, config, num_samples=num_samples)",
    ]

"""What an import says on the terminal. Texts from logs are strangers' texts: they must not move the cursor."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aigo_bridge.importing.result import ImportResult

_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]")
_MOST_DAMAGE = 20


def harmless(text: str) -> str:
    """`text` with control characters, and those that change the direction of writing, as visible escapes."""
    return _CONTROL.sub(
        lambda match: f"\\x{ord(match[0]):02x}" if ord(match[0]) < 256 else f"\\u{ord(match[0]):04x}", text
    )


def report_lines(result: ImportResult) -> list[str]:
    """The report of one log: what was written, what was dropped or changed, what could not be read."""
    lines = [f"{harmless(result.log)}: {result.status or 'unreadable'}"]
    if result.output is not None:
        failed = f", {result.failed} failed" if result.failed else ""
        lines.append(
            f"  {result.samples} samples in {result.trials} trials{failed} -> {harmless(str(result.output))}"
        )
    for title, counts in (
        ("dropped", result.loss.dropped),
        ("changed", result.loss.changed),
        ("redacted", result.redacted),
    ):
        lines += [f"  {title}: {count} x {harmless(kind)}" for kind, count in sorted(counts.items())]
    lines += [f"  unreadable: {harmless(str(item))}" for item in result.damage[:_MOST_DAMAGE]]
    if len(result.damage) > _MOST_DAMAGE:
        where = "" if result.loss_file is None else f", see {harmless(str(result.loss_file))}"
        lines.append(f"  unreadable: {len(result.damage) - _MOST_DAMAGE} more{where}")
    if result.reason:
        lines.append(f"  {harmless(result.reason)}")
    return lines

"""The catalogue of errors: what each code means, an example, the remedy. Loaded by `aigo-bridge error` only."""

from __future__ import annotations

from aigo_bridge.catalogue import commands, datasets, files, models, planning, results, running, tasks
from aigo_bridge.catalogue.entry import Entry, Example
from aigo_bridge.codes import Code

__all__ = ["CATALOGUE", "FAMILIES", "Entry", "Example", "family_of"]

CATALOGUE: dict[Code, Entry] = {
    entry.code: entry
    for room in (files, tasks, datasets, models, planning, running, results, commands)
    for entry in room.ENTRIES
}

FAMILIES = {
    "0": "Not aigo-bridge's own",
    "1": "Files and what they say",
    "2": "Templates",
    "3": "Data sets",
    "4": "Models",
    "5": "Planning",
    "6": "Running",
    "7": "Logs and results",
    "8": "The command line",
    "9": "This machine",
}
"""First digit of a code → what such errors are about."""


def family_of(code: Code) -> str:
    """What errors of a code are about."""
    return FAMILIES[code[2]]

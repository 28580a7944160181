"""Error catalogue: meaning, fix and example of each code. Only `aigo-bridge error` loads it."""

from __future__ import annotations

from aigo_bridge.catalogue import commands, datasets, files, models, planning, results, running, tasks
from aigo_bridge.catalogue.entry import CatalogueEntry, Example
from aigo_bridge.codes import Code

__all__ = ["CATALOGUE", "FAMILIES", "CatalogueEntry", "Example", "family_of"]

CATALOGUE: dict[Code, CatalogueEntry] = {
    entry.code: entry
    for package in (files, tasks, datasets, models, planning, running, results, commands)
    for entry in package.ENTRIES
}

FAMILIES = {
    "0": "Engines and plug-ins",
    "1": "Files",
    "2": "Templates",
    "3": "Datasets",
    "4": "Models",
    "5": "Planning",
    "6": "Running",
    "7": "Logs and results",
    "8": "Command line",
    "9": "Machine",
}
"""First digit of a code → title of the group."""


def family_of(code: Code) -> str:
    """Return the group title of a code."""
    return FAMILIES[code[2]]

"""Hooks: functions of the extras that the core calls, loaded when a command needs them.

The core never imports an extra. The package that calls a hook declares a frozen dataclass of functions. An
extra has one object of that class, and the table below is the only place that names it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TypeVar

HOOKS = {
    "addresses": "aigo_scale.copies:COMMAND_ADDRESSES",
    "comparison page": "aigo_report.page.comparisons:COMPARISON_PAGE",
    "disclosures": "aigo_trust.verification.disclosures:DISCLOSURES",
    "distributed runs": "aigo_scale.cluster.command:DISTRIBUTED_RUNS",
    "lake": "aigo_scale.lake.command:LAKE",
    "object storage": "aigo_scale.storage.objects:OBJECT_STORAGE",
    "provenance": "aigo_trust.provenance.record:PROVENANCE",
    "recordings": "aigo_trust.recording.run_cassette:RECORDINGS",
    "report": "aigo_report.terminal:REPORT",
    "statistics": "aigo_stats.terminal.intervals:STATISTICS",
}
"""Hook → module and object."""

Hook = TypeVar("Hook")


def load_hook(name: str, expected: type[Hook]) -> Hook:
    """Return the object of an extra for a hook in `HOOKS`; `expected` is the class that declares it."""
    module, _, attribute = HOOKS[name].partition(":")
    hook = getattr(import_module(module), attribute)
    if not isinstance(hook, expected):
        raise TypeError(f"hook {name!r}: {HOOKS[name]} is a {type(hook).__name__}, not {expected.__name__}")
    return hook

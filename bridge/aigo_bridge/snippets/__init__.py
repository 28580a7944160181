"""Execution of task authors' Python code in separate processes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aigo_bridge.snippets.host import SnippetHost, run_in_process
    from aigo_bridge.snippets.protocol import InOut, Remote
    from aigo_bridge.snippets.snippet import Snippet, SnippetLimits

__all__ = ["InOut", "Remote", "Snippet", "SnippetHost", "SnippetLimits", "run_in_process"]


def __getattr__(name: str) -> Any:
    """Import the names above on first use: workers and readers of logs do without the runner's modules."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = (import_module(f"{__name__}.{module}") for module in ("snippet", "protocol", "host"))
    return next(getattr(module, name) for module in modules if hasattr(module, name))

"""Shell completion for options and verbs: values listed in a metavar, engines, shipped tasks.

The shell scripts are Typer's. File names are completed by the shell itself if there are no other completions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

_CHOICES = re.compile(r"[a-z0-9][a-z0-9._-]*(?:\|[a-z0-9][a-z0-9._-]*)+")
"""Metavars that list the allowed values."""

_PACKAGE = "aigo_tasks/"
_SHORTEST = 2
"""Minimum number of letters for completing shipped tasks; shorter text may be a file name."""


@dataclass(frozen=True)
class Item:
    """Completion in the format of all shell scripts."""

    value: str
    help: str | None = None
    type: str = "plain"


def verbs(table: Mapping[str, tuple[str, str]], incomplete: str) -> list[Item]:
    """Return the verbs that start with some letters, with their help lines, without loading them."""
    return [Item(verb, line) for verb, (_, line) in table.items() if verb.startswith(incomplete)]


def offer_words(command: Any) -> None:
    """Complete the values of a command's parameters."""
    for parameter in command.params:
        words = _words_of(parameter)
        if words is not None:
            parameter.shell_complete = partial(_offered, words)


def _words_of(parameter: Any) -> Callable[[str], Iterable[str]] | None:
    metavar = parameter.metavar or ""
    if _CHOICES.fullmatch(metavar):
        return lambda _: metavar.split("|")
    if "--engine" in parameter.opts:
        return lambda _: _engines()
    return _shipped_tasks if metavar == "TASK" else None


def _offered(words: Callable[[str], Iterable[str]], context: Any, incomplete: str) -> list[Item]:
    return [Item(word) for word in words(incomplete) if word.startswith(incomplete)]


def _engines() -> Iterable[str]:
    from aigo_bridge.engine.registry import engine_names

    return engine_names()


def _shipped_tasks(incomplete: str) -> Iterable[str]:
    if len(incomplete) < _SHORTEST or not (
        _PACKAGE.startswith(incomplete) or incomplete.startswith(_PACKAGE)
    ):
        return ()
    from aigo_bridge.reading.locating import shipped_tasks

    return shipped_tasks()

"""What a shell offers behind options and verbs: words that a metavar lists, engines, shipped tasks.

The shells' scripts are Typer's. Of files nothing is said here: every shell knows them itself, and asks for
them where there is nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

_CHOICES = re.compile(r"[a-z0-9][a-z0-9._-]*(?:\|[a-z0-9][a-z0-9._-]*)+")
"""Metavars that list what may be written."""

_PACKAGE = "aigo_tasks/"
_SHORTEST = 2
"""Letters from which on shipped tasks are offered: before that a file may be meant."""


@dataclass(frozen=True)
class Item:
    """A word that is offered, in the form that all shells' scripts know."""

    value: str
    help: str | None = None
    type: str = "plain"


def verbs(table: Mapping[str, tuple[str, str]], incomplete: str) -> list[Item]:
    """Verbs that begin with some letters, with their help lines; none of them is loaded."""
    return [Item(verb, line) for verb, (_, line) in table.items() if verb.startswith(incomplete)]


def offer_words(command: Any) -> None:
    """Have the parameters of a command offer the words that they take."""
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

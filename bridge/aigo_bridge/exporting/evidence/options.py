"""Options of an export to AI GO, and the keys that it creates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.spec.base import KEY_PATTERN, MODEL_KEY_PATTERN
from aigo_bridge.text.json_text import sha256_of

EventChoice = Literal["all", "main"]
"""Events in the traces: `all`, or `main` for the conversation without its events."""

AttachmentChoice = Literal["keep", "files", "drop"]
"""Handling of attachments: `keep` them in the logs, write them as `files` that the logs refer to, or `drop`
them.
"""

_OTHER = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST_PART = 100
_LONGEST_KEY = 250


@dataclass(frozen=True)
class EvidenceOptions:
    """Options for exporting results to AI GO."""

    app: str | None = None
    """Key of the AI app; `None` for a placeholder in the README."""
    evaluation_key: str | None = None
    """Key of the evaluation; `None` to derive it from its results."""
    model_keys: Mapping[str, str] = field(default_factory=dict)
    """Model → key of a model that exists on the platform."""
    task_keys: Mapping[str, str] = field(default_factory=dict)
    """Task → key of a task that exists on the platform."""
    events: EventChoice = "all"
    attachments: AttachmentChoice = "keep"
    allow_gaps: bool = False
    """Export results with parts that AI GO cannot store, and record these parts as losses."""
    force: bool = False
    """Replace an earlier export."""
    dry_run: bool = False
    """Do not write any file."""

    def check(self) -> None:
        """Check that AI GO accepts the keys.

        Raises:
            UsageError: a key is too long, or contains characters that AI GO does not allow.
        """
        given = [("--app", self.app, KEY_PATTERN), ("--evaluation-key", self.evaluation_key, KEY_PATTERN)]
        given += [("--model-key", key, MODEL_KEY_PATTERN) for key in self.model_keys.values()]
        given += [("--task-key", key, KEY_PATTERN) for key in self.task_keys.values()]
        wrong = [
            f"{option}: found {key!r}, expected 1 to {_LONGEST_KEY} letters, digits, '_' and '-'"
            for option, key, pattern in given
            if key is not None and not (re.fullmatch(pattern, key) and len(key) <= _LONGEST_KEY)
        ]
        if wrong:
            raise UsageError("; ".join(wrong), code=Code.WRONG_OPTION)


def key_part(text: str) -> str:
    """Return a text with only the characters that AI GO allows in keys."""
    return _OTHER.sub("-", text).strip("-")[:_LONGEST_PART].rstrip("-") or "x"


def content_key(name: str, content: Any) -> str:
    """Return a key with a name and a digest of the content.

    The same content always has the same key, and entities that you created on the platform are not
    overwritten.
    """
    return f"{key_part(name)}-{sha256_of(content)[:8]}"


def parameter_name(text: str, taken: Iterable[str]) -> str:
    """Return an unused name for a parameter, valid in `<< config.NAME >>`."""
    base = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:_LONGEST_PART] or "x"
    used, name, number = set(taken), base, 2
    while name in used:
        name, number = f"{base}_{number}", number + 1
    return name

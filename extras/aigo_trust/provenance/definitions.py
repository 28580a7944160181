"""Digests of the inputs of a result: task, config, rows, code and prompts.

Each digest is the SHA-256 of canonical JSON (RFC 8785), so formatting does not change it. The digest is
`None` for values without canonical JSON, such as an integer beyond 2**53 - 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from aigo_bridge.errors import dotted
from aigo_bridge.text.canonical_json import canonical_digest, canonical_json

PROMPTS = frozenset(
    {
        "content",
        "input",
        "instructions",
        "message",
        "prompt",
        "prompt_template",
        "system_message",
        "system_prompt",
        "template",
        "user_prompt",
    }
)
"""Fields of solvers and scorers whose text is sent to models."""


def digest_or_none(value: Any) -> str | None:
    """Return the SHA-256 of a value's canonical JSON; `None` without canonical JSON."""
    try:
        return canonical_digest(value)
    except ValueError:
        return None


def specification_digests(specification: Mapping[str, Any]) -> dict[str, Any]:
    """Return the digests of a result's specification as plain data."""
    task = specification.get("task")
    task = task if isinstance(task, Mapping) else {}
    definition = task.get("definition")
    return {
        "task": {"key": task.get("key"), "sha256": digest_or_none(task)},
        "config": {"sha256": digest_or_none(specification.get("config"))},
        "entity": {"sha256": digest_or_none(specification.get("evaluated_entity"))},
        "snippets": {place: digest_or_none(text) for place, text in _texts(definition, _is_code)},
        "prompts": {place: digest_or_none(text) for place, text in _texts(definition, _is_prompt)},
    }


def _is_code(path: tuple[str | int, ...]) -> bool:
    return str(path[-1]).endswith("snippet")


def _is_prompt(path: tuple[str | int, ...]) -> bool:
    return path[0] in ("solver", "scorers") and path[-1] in PROMPTS


def _texts(value: Any, wanted: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str, str]]:
    if isinstance(value, str) and path and wanted(path):
        yield dotted(path), value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _texts(item, wanted, (*path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, wanted, (*path, number))


class RowsDigest:
    """SHA-256 of the canonical JSON of all rows in order, each followed by a line feed."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._fits = True
        self.count = 0

    def add(self, row: Any) -> None:
        """Add a row."""
        self.count += 1
        if not self._fits:
            return
        try:
            self._digest.update(canonical_json(row) + b"\n")
        except ValueError:
            self._fits = False

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the provenance file."""
        return {"rows": self.count, "sha256": self._digest.hexdigest() if self._fits else None}


def rows_digest(rows: Iterable[Any]) -> dict[str, Any]:
    """Return the digest of rows as plain data."""
    digest = RowsDigest()
    for row in rows:
        digest.add(row)
    return digest.to_json()

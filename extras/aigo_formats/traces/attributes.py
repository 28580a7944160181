"""Span attributes with dotted names. Attributes that are not taken remain in `rest`."""

from __future__ import annotations

import json
from typing import Any

LONGEST = 64 << 20
"""Maximum characters of a text that is parsed as JSON."""


def parsed(value: Any) -> Any:
    """Return a value, parsed if it is the JSON text of an object or a list."""
    if isinstance(value, str) and len(value) <= LONGEST and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, otherwise an empty object."""
    return value if isinstance(value, dict) else {}


class Attributes:
    """Attributes of a span by name."""

    def __init__(self, listed: dict[str, Any]):
        self._values = dict(listed)

    def get(self, name: str) -> Any:
        """Return the value of a name without removing it."""
        return self._values.get(name)

    def offer(self, name: str, value: Any) -> None:
        """Add a value unless the name already exists."""
        self._values.setdefault(name, value)

    def take(self, *names: str) -> Any:
        """Remove and return the value of the first name that has one."""
        for name in names:
            if self._values.get(name) is not None:
                return self._values.pop(name)
        return None

    def take_list(self, *prefixes: str) -> list[Any] | None:
        """Remove and return the list under the first existing prefix; `None` if there isn't any.

        The list is stored as `<prefix>.<n>.<name>`, or directly under the prefix.
        """
        for prefix in prefixes:
            listed = parsed(self._values.get(prefix))
            if isinstance(listed, list):
                del self._values[prefix]
                return [nested(entry) for entry in listed]
            start = f"{prefix}."
            flat = {
                name.removeprefix(start): value
                for name, value in self._values.items()
                if name.startswith(start) and name[len(start)].isdecimal()
            }
            if flat:
                for name in flat:
                    del self._values[start + name]
                entries = _unflattened(flat)
                return entries if isinstance(entries, list) else [entries]
        return None

    def rest(self) -> dict[str, Any]:
        """Return the remaining attributes."""
        return self._values


def nested(value: Any) -> Any:
    """Convert dotted names in a value to nested objects, at every level."""
    if isinstance(value, list):
        return [nested(part) for part in value]
    if not isinstance(value, dict):
        return value
    flat: dict[str, Any] = {}
    for name, part in value.items():
        if part is not None:
            flat[name] = nested(part)
    return _unflattened(flat) if any("." in name for name in flat) else flat


_DEEPEST = 60


def _unflattened(flat: dict[str, Any]) -> Any:
    """Convert dotted names to nested objects and lists. A name that contradicts another one stays dotted."""
    root: dict[str, Any] = {}
    for name, value in flat.items():
        steps = name.split(".")
        node = root
        for step in steps[:-1] if len(steps) <= _DEEPEST else ():
            inner = node.setdefault(step, {})
            if not isinstance(inner, dict):
                break
            node = inner
        else:
            if len(steps) <= _DEEPEST and steps[-1] not in node:
                node[steps[-1]] = value
                continue
        root[name] = value
    return _listed(root)


def _listed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    entries = {name: _listed(value) for name, value in node.items()}
    if entries and all(name.isdecimal() and name.isascii() and len(name) < 10 for name in entries):
        return [entries[name] for name in sorted(entries, key=int)]
    return entries

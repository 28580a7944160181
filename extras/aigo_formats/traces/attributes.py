"""Attributes of a span: flat names with dots, taken one by one; what nobody took is kept."""

from __future__ import annotations

import json
from typing import Any

LONGEST = 64 << 20
"""Characters of a text that is parsed as JSON."""


def parsed(value: Any) -> Any:
    """A value, parsed where it is the JSON text of an object or a list."""
    if isinstance(value, str) and len(value) <= LONGEST and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def mapping(value: Any) -> dict[str, Any]:
    """The value, where it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


class Attributes:
    """What a span says, by name; `rest` is what was not taken."""

    def __init__(self, listed: dict[str, Any]):
        self._values = dict(listed)

    def get(self, name: str) -> Any:
        """The value of a name, which stays."""
        return self._values.get(name)

    def offer(self, name: str, value: Any) -> None:
        """Add a value, where the name has none."""
        self._values.setdefault(name, value)

    def take(self, *names: str) -> Any:
        """The value of the first of the names that has one; it is taken."""
        for name in names:
            if self._values.get(name) is not None:
                return self._values.pop(name)
        return None

    def take_list(self, *prefixes: str) -> list[Any] | None:
        """The entries below the first prefix that has any: `<prefix>.<n>.<name>`, or a list under the prefix
        itself; `None` where there are none.
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
        """What was not taken."""
        return self._values


def nested(value: Any) -> Any:
    """A value whose names with dots are made to objects, at every level."""
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
    """Names with dots as objects, numbers as places in lists; what contradicts another name keeps its own."""
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

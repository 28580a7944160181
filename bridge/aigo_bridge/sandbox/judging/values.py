"""Values of two processes in JSON: plain ones by what they are, containers that can change by number,
everything else by a hook.

A list that one process has handed to the other is the same list to both: it has a number, and every message
begins with what has changed in such containers. So a function that sorts its argument has sorted it, and one
that returns its argument returns that.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

LARGEST_INT = 1 << 53
"""Larger whole numbers go as text: JSON has no form for them that every reader takes."""

SHARED: tuple[Any, ...] = (list, dict, set, bytearray, deque, OrderedDict, defaultdict, Counter)
"""Containers that can change, of exactly these types."""

_VIEWS: dict[type, tuple[str, Callable[[list[Any]], Any]]] = {
    type({}.keys()): ("keys", lambda items: dict.fromkeys(items).keys()),
    type({}.values()): ("values", lambda items: dict(enumerate(items)).values()),
    type({}.items()): ("items", lambda items: dict(items).items()),
}
_MAKE_VIEW = dict(_VIEWS.values())
_SINGLE = {"...": ..., "NotImplemented": NotImplemented}
_SHARED = {kind.__name__: kind for kind in SHARED}
_TO_TEXT: dict[type, tuple[str, Callable[[Any], str]]] = {
    int: ("int", hex),
    float: ("float", repr),
    bytes: ("bytes", lambda value: value.decode("latin-1")),
    Decimal: ("Decimal", str),
    UUID: ("UUID", str),
    datetime: ("datetime", datetime.isoformat),
    date: ("date", date.isoformat),
    time: ("time", time.isoformat),
}
_FROM_TEXT: dict[str, Callable[[str], Any]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "bytes": lambda text: text.encode("latin-1"),
    "Decimal": Decimal,
    "UUID": UUID,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
}
_TO_PARTS: dict[type, tuple[str, Callable[[Any], tuple[Any, ...]]]] = {
    tuple: ("tuple", tuple),
    frozenset: ("frozenset", tuple),
    complex: ("complex", lambda value: (value.real, value.imag)),
    range: ("range", lambda value: (value.start, value.stop, value.step)),
    slice: ("slice", lambda value: (value.start, value.stop, value.step)),
    Fraction: ("Fraction", lambda value: (value.numerator, value.denominator)),
    timedelta: ("timedelta", lambda value: (value.days, value.seconds, value.microseconds)),
}
_FROM_PARTS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "frozenset": frozenset,
    "complex": lambda parts: complex(*parts),
    "range": lambda parts: range(*parts),
    "slice": lambda parts: slice(*parts),
    "Fraction": lambda parts: Fraction(*parts),
    "timedelta": lambda parts: timedelta(*parts),
}


class Values:
    """One process's values as the other gets them. A subclass says what becomes of the others."""

    def __init__(self, numbers: int):
        """Args:
        numbers: 0 or 1: even or odd numbers are this side's to give.
        """
        self._next = numbers
        self._shared: dict[int, list[Any]] = {}
        """Number → the container, and its items when both sides last agreed on them."""
        self._numbers: dict[int, int] = {}

    def outward(self, value: Any, key: bool) -> Any:
        """The form of a value that is not plain; `key`: it is a key or a member of a set."""
        raise NotImplementedError

    def inward(self, form: list[Any]) -> Any:
        """Back from `outward`, on the other side."""
        raise NotImplementedError

    def encode(self, value: Any, key: bool = False) -> Any:
        """A value as JSON; only exact types are plain: a subclass may lie about what it is."""
        kind = type(value)
        if value is None or kind in (bool, str):
            return value
        if kind is int and -LARGEST_INT < value < LARGEST_INT:
            return value
        if kind is float and math.isfinite(value):
            return value
        if kind in _TO_TEXT:
            name, text = _TO_TEXT[kind]
            return [name, text(value)]
        if kind in _TO_PARTS:
            name, parts = _TO_PARTS[kind]
            inside = key or kind is frozenset
            return [name, [self.encode(part, inside) for part in parts(value)]]
        if kind in SHARED:
            return self._container(value)
        if kind in _VIEWS:
            return [_VIEWS[kind][0], [self.encode(item) for item in value]]
        for name, single in _SINGLE.items():
            if value is single:
                return ["single", name]
        return self.outward(value, key)

    def decode(self, form: Any) -> Any:
        """Back from `encode`; whatever is wrong with the form is an exception of Python's own."""
        if not isinstance(form, list):
            return form
        name = form[0]
        if name in _FROM_TEXT:
            return _FROM_TEXT[name](form[1])
        if name in _FROM_PARTS:
            return _FROM_PARTS[name]([self.decode(part) for part in form[1]])
        if name in _SHARED:
            return self._new_container(_SHARED[name], *form[1:])
        if name == "same":
            return self._shared[form[1]][0]
        if name in _MAKE_VIEW:
            return _MAKE_VIEW[name]([self.decode(item) for item in form[1]])
        if name == "single":
            return _SINGLE[form[1]]
        return self.inward(form)

    # Containers

    def changes(self) -> list[Any]:
        """What has changed in the containers that both have, since the last message of either."""
        changes = []
        for number, entry in list(self._shared.items()):
            now = _items(entry[0])
            if not _same(now, entry[1]):
                entry[1] = now
                changes.append([number, self._content(entry[0])])
        return changes

    def apply(self, changes: list[Any]) -> None:
        """Make the changes of the other side in the containers here."""
        for number, content in changes:
            entry = self._shared[number]
            self._fill(entry[0], content)
            entry[1] = _items(entry[0])

    def released(self) -> list[int]:
        """Numbers of containers that nobody holds here any more; from now on they are the other side's."""
        numbers = []
        for number in list(self._shared):
            # What holds it: its entry, and the call.
            if sys.getrefcount(self._shared[number][0]) <= 2:
                numbers.append(number)
                self.release(number)
        return numbers

    def release(self, number: int) -> None:
        """Forget a container."""
        entry = self._shared.pop(number)
        del self._numbers[id(entry[0])]

    def _container(self, value: Any) -> Any:
        known = self._numbers.get(id(value))
        if known is not None:
            return ["same", known]
        number = self._next
        self._next += 2
        self._enter(number, value)
        extra: Any | None = None
        if type(value) is deque:
            extra = value.maxlen
        elif type(value) is defaultdict:
            extra = self.encode(value.default_factory)
        return [type(value).__name__, number, self._content(value), extra]

    def _new_container(self, kind: Any, number: int, content: Any, extra: Any) -> Any:
        if type(number) is not int or number % 2 == self._next % 2 or number in self._shared:
            raise ValueError("a container's number is not its sender's to give")
        if kind is deque:
            container: Any = deque(maxlen=extra)
        elif kind is defaultdict:
            container = defaultdict(self.decode(extra))
        else:
            container = kind()
        self._enter(number, container)
        self._fill(container, content)
        self._shared[number][1] = _items(container)
        return container

    def _enter(self, number: int, value: Any) -> None:
        self._shared[number] = [value, _items(value)]
        self._numbers[id(value)] = number

    def _content(self, value: Any) -> Any:
        if isinstance(value, bytearray):
            return value.decode("latin-1")
        if isinstance(value, dict):
            return [[self.encode(key, True), self.encode(item)] for key, item in list(value.items())]
        inside = isinstance(value, set)
        return [self.encode(item, inside) for item in list(value)]

    def _fill(self, value: Any, content: Any) -> None:
        if isinstance(value, bytearray):
            value[:] = content.encode("latin-1")
            return
        if isinstance(value, dict):
            pairs = [(self.decode(key), self.decode(item)) for key, item in content]
            value.clear()
            for key, item in pairs:
                value[key] = item
            return
        items = [self.decode(item) for item in content]
        value.clear()
        (value.update if isinstance(value, set) else value.extend)(items)


def _items(value: Any) -> list[Any]:
    if isinstance(value, bytearray):
        return [bytes(value)]
    return [*value, *value.values()] if isinstance(value, dict) else list(value)


def _same(now: list[Any], earlier: list[Any]) -> bool:
    if len(now) != len(earlier):
        return False
    return all(
        a is b or (type(a) is bytes and type(b) is bytes and a == b)
        for a, b in zip(now, earlier, strict=True)
    )

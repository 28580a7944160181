"""What stands in thousands of events of a log and is nearly always the same: parsed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw

Made = TypeVar("Made")
_ANYTHING: msgspec.json.Decoder[Any] = msgspec.json.Decoder()


class Repeated(Generic[Made]):
    """What is made of JSON values, by their text. It is shared, and must not be changed."""

    _MOST = 256

    def __init__(self, make: Callable[[Any], Made]):
        self._make = make
        self._known: dict[bytes, Made] = {}
        self._last: tuple[Raw, Made] | None = None

    def of(self, raw: Raw) -> Made:
        """What is made of the value in `raw`; raises what `make` raises."""
        if self._last is not None and raw == self._last[0]:
            return self._last[1]
        text = bytes(raw)
        found = self._known.get(text)
        if found is None:
            found = self._make(_ANYTHING.decode(text))
            if len(self._known) >= self._MOST:
                self._known.clear()
            self._known[text] = found
        # A copy, that does not hold the document the value stands in.
        self._last = Raw(text), found
        return found

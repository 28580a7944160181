"""Times in Inspect's logs → AI GO times (UTC, written with `Z`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime

_from_iso = datetime.fromisoformat
_usual = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}\+00:00", re.ASCII
).fullmatch
"""A time that exists, in UTC with six digits, not at the end of a month."""


_SHAPE = b"0000-00-00T00:00:00.000000+00:00,"
_AS_SHAPE = bytes.maketrans(b"123456789", b"000000000")


def utc_all(values: list[str]) -> list[str] | None:
    """What `utc` gives for each of these times; `None` when one of them is no time.

    The times of a log are nearly always of one shape and of the same hour, and looking at all of them as one text takes a
    quarter of the time.
    """
    text = ",".join(values)
    count = len(values)
    if (
        count
        and text.encode(errors="replace").translate(_AS_SHAPE) == (_SHAPE * count)[:-1]
        and text.count(values[0][:13]) == count
        and utc(values[0]) is not None
        and not text[14 :: len(_SHAPE)].strip("012345")
        and not text[17 :: len(_SHAPE)].strip("012345")
    ):
        short = text.replace("+00:00", "Z")
        if len(short) == len(text) - 5 * count:
            return short.split(",")
    found = [time for value in values if (time := utc(value)) is not None]
    return found if len(found) == count else None


def utc(value: object) -> str | None:
    """An ISO time with any offset as `2024-01-01T00:00:00.123456Z`; `None` when it is no time.

    Always with six digits, so that such texts sort as the times they are.

    Times without an offset are taken as UTC, as Inspect does when it reads them.
    """
    if type(value) is not str:
        return None
    # What every current log has; all else goes through datetime.
    if _usual(value):
        return value[:-6] + "Z"
    found = parse(value)
    return None if found is None else found.isoformat(timespec="microseconds").replace("+00:00", "Z")


def parse(value: object) -> datetime | None:
    """An ISO time as an aware `datetime` in UTC; `None` when it is no time."""
    if not isinstance(value, str) or not value:
        return None
    try:
        found = _from_iso(value)
        if found.tzinfo is UTC:
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds_between(start: object, end: object) -> float | None:
    """Seconds from one ISO time to another, never negative; `None` when either is unknown."""
    first, last = parse(start), parse(end)
    if first is None or last is None:
        return None
    return max(0.0, (last - first).total_seconds())


def running_time(start: object, end: object, first: object, last: object) -> float:
    """Seconds that a run took; 0 when nothing tells.

    Inspect writes whole seconds, so a quick run begins and ends at the same time: then it took what its samples did.

    Args:
        start: ISO time at which the run began.
        end: when it ended.
        first: when its first sample began; it may be of an earlier run, from which it was taken over.
        last: when its last sample ended.
    """
    between = seconds_between(start, end)
    if between:
        return between
    begun, began = parse(start), parse(first)
    if begun is not None and began is not None and began < begun:
        first = start
    return seconds_between(first, last) or 0.0


def unix_seconds(value: object) -> int | None:
    """An ISO time as whole Unix seconds; `None` when it is no time."""
    found = parse(value)
    return None if found is None else int(found.timestamp())

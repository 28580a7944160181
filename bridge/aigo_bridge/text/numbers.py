"""Numbers as people read them, in the terminal as on the pages: `frontend/DESIGN.md` has the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

ABSENT = "–"
"""Shown for an unknown number."""

Scale = tuple[float, float] | None
"""Lowest and highest value that the data declare for a number; `None`: not declared."""


def short_number(value: float) -> str:
    """Return a number with at most four significant digits; whole numbers keep all digits."""
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size < 1e15 and float(value).is_integer():
        return f"{int(value):,}"
    if size < 1e-4 or size >= 1e15:
        digits, exponent = f"{value:.3e}".split("e")
        return f"{digits.rstrip('0').rstrip('.')}e{int(exponent):+d}"
    return f"{float(f'{value:.4g}'):,.7f}".rstrip("0").rstrip(".")


def shown_number(value: float | None, scale: Scale = None) -> str:
    """Return a number, in percent if its declared scale is 0 to 1."""
    return ABSENT if value is None else _joined((value,), scale, "%")


def shown_range(low: float, high: float, scale: Scale = None) -> str:
    """Return the ends of an interval with one unit, e.g. `20.77 to 93.85 %`."""
    return _joined((low, high), scale, "%")


def shown_error(value: float | None, scale: Scale = None) -> str:
    """Return a standard error, in percentage points if the scale is 0 to 1."""
    return ABSENT if value is None else _joined((value,), scale, "pp")


def shown_change(value: float, scale: Scale = None) -> str:
    """Return a difference with its sign, in percentage points if the scale is 0 to 1."""
    return _joined((value,), scale, "pp", _signed)


def shown_change_range(low: float, high: float, scale: Scale = None) -> str:
    """Return the ends of the interval of a difference with one unit, e.g. `-1.05 to +14.08 pp`."""
    return _joined((low, high), scale, "pp", _signed)


def _joined(
    values: Iterable[float], scale: Scale, unit: str, form: Callable[[float], str] = short_number
) -> str:
    if scale is None or tuple(scale) != (0, 1):
        return " to ".join(map(form, values))
    return f"{' to '.join(form(value * 100) for value in values)} {unit}"


def _signed(value: float) -> str:
    return f"{'-' if value < 0 else '+'}{short_number(abs(value))}"

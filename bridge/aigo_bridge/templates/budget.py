"""Cost limits of one rendering.

Task files are untrusted. Every template operation whose result can be larger than its input is paid from a
`Budget` *before* it runs: one unit per character, `ITEM` per container element. The budget counts operations,
so a template has the same outcome on every machine. Time is only a second limit, for work without output. It
is measured as processor time of the thread, so that a busy machine does not fail samples.

No cost model is complete. Therefore the process of the evaluation only runs operations that `plain` allows,
with a small budget. Everything else runs in a process that the kernel can end (`rendering`).
"""

from __future__ import annotations

import re
import time
import types
from collections.abc import Iterator
from typing import Any

from jinja2.exceptions import SecurityError
from jinja2.runtime import Undefined
from jinja2.sandbox import SandboxedEnvironment, SandboxedFormatter

from aigo_bridge.templates.names import text_of

WORK = 100_000_000
"""Maximum units of one rendering: about 100 MB of text or 1.5 million container elements."""
ITEM = 64
"""Units for one element in a container, about its memory size."""
POINTER = 8
"""Units for copying one element from a container to another."""
SECONDS = 0.75
"""Maximum processor seconds of one rendering with loops or calls."""
PLAIN_WORK = 10_000_000
"""Maximum units of a rendering in the runner. More costly templates are rendered in a separate process
with the full `WORK`.
"""
PLAIN_SECONDS = 0.2
"""Maximum seconds of a rendering in the runner."""
LARGEST_BITS = 100_000
"""Maximum bits of an integer that a template may compute."""
LARGEST_WIDTH = 10_000
"""Maximum width, indent or count of a formatting function."""

_TICK = 8
_FORMAT_NUMBER = re.compile(r"%(?:\(.*?\))?[#0\- +]*(\*|\d*)(?:\.(\*|\d+))?[a-zA-Z]", re.DOTALL)


class OverBudgetError(SecurityError):
    """Template that needs more work or memory than any prompt."""


class OutOfTimeError(OverBudgetError):
    """Template that runs longer than any prompt needs."""


class Budget:
    """Remaining budget of one rendering."""

    __slots__ = ("_cpu", "_wall", "left", "plain")

    def __init__(self, *, plain: bool = False) -> None:
        self.plain = plain
        """Whether the rendering runs in the runner, which only allows plain operations."""
        self.left = PLAIN_WORK if plain else WORK
        self._wall = 0.0

    def spend(self, units: int) -> None:
        """Pay for work before it is done; raise `OverBudgetError` if it is too much."""
        self.left -= units
        if self.left < 0:
            msg = f"the template creates more than {WORK:,} characters and list items"
            raise OverBudgetError(msg)

    def tick(self) -> bool:
        """Pay for one step of a loop, one call or one filter. Always return true, so that it can be part
        of a condition.
        """
        self.spend(_TICK)
        now = time.monotonic()
        if not self._wall:
            self._wall = now
            self._cpu = 0.0 if self.plain else time.thread_time()
        elif self.plain:
            # Wall clock time, which is faster to read; slower templates are rendered in the other process.
            if now - self._wall > PLAIN_SECONDS:
                raise OutOfTimeError(f"more than {PLAIN_SECONDS:g} s")
        elif now - self._wall > SECONDS and time.thread_time() - self._cpu > SECONDS:
            raise OutOfTimeError(f"the template computes for more than {SECONDS:g} s")
        return True

    def spend_value(self, value: object) -> None:
        """Pay for the full size of a value; nested content counts as often as it would be printed."""
        if isinstance(value, str | bytes):
            self.spend(len(value))
        elif isinstance(value, list | tuple | dict | set | frozenset):
            self._spend_container(value)

    def _spend_container(self, value: Any) -> None:
        # A list that contains the same list twice, a few dozen levels deep, is small in memory but endless
        # when printed. Walking it without a memo counts the exact printing cost.
        waiting: list[Any] = [value]
        while waiting:
            container = waiting.pop()
            self.spend(ITEM * len(container) + ITEM)
            items = [*container, *container.values()] if isinstance(container, dict) else container
            for item in items:
                if isinstance(item, str | bytes):
                    self.spend(len(item))
                elif type(item) is int and item.bit_length() > 64:
                    self.spend(item.bit_length())
                elif isinstance(item, list | tuple | dict | set | frozenset):
                    waiting.append(item)
                elif isinstance(item, Undefined):
                    # Python prints it as the word "Undefined"; a strict undefined value must raise an error
                    # here too.
                    str(item)


def multiply(budget: Budget, left: Any, right: Any) -> None:
    """Pay for `left * right`."""
    for sized, times in ((left, right), (right, left)):
        if isinstance(sized, str | bytes | list | tuple) and isinstance(times, int):
            unit = ITEM if isinstance(sized, list | tuple) else 1
            budget.spend(len(sized) * max(times, 0) * unit)
            return
    if isinstance(left, int) and isinstance(right, int):
        _check_bits(left.bit_length() + right.bit_length())


def power(_: Budget, left: Any, right: Any) -> None:
    """Pay for `left ** right`."""
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        _check_bits(left.bit_length() * right)


def add(budget: Budget, left: Any, right: Any) -> None:
    """Pay for `left + right`."""
    if isinstance(left, str | bytes) and isinstance(right, str | bytes):
        budget.spend(len(left) + len(right))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        budget.spend((len(left) + len(right)) * POINTER)


def percent_format(budget: Budget, pattern: Any, values: Any) -> None:
    """Pay for `pattern % values`."""
    if not isinstance(pattern, str | bytes):
        return
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    budget.spend(len(text))
    for sizes in _FORMAT_NUMBER.findall(text):
        for size in sizes:
            if size == "*" or (size and (len(size) > 5 or int(size) > LARGEST_WIDTH)):
                message = f"{size!r} is not allowed as a width; the largest is {LARGEST_WIDTH:,}"
                raise OverBudgetError(message)
            budget.spend(int(size or 0))
    if isinstance(values, dict):
        # Every slot may refer to the same value.
        budget.spend(text.count("%(") * max(map(_printed, values.values()), default=0))
    else:
        for value in values if isinstance(values, tuple) else (values,):
            budget.spend(_printed(value))


def width(number: Any) -> None:
    """Raise an error for an excessive width, indent or count."""
    if isinstance(number, int) and number > LARGEST_WIDTH:
        raise OverBudgetError(f"{number:,} is not allowed here; the largest is {LARGEST_WIDTH:,}")


def replace(budget: Budget, text: str, old: Any, new: Any) -> None:
    """Pay for `text.replace(old, new)`."""
    if isinstance(old, str) and isinstance(new, str):
        budget.spend(len(text) + text.count(old) * len(new))


def _printed(value: object) -> int:
    """Return the units for printing a value; a separate budget limits the work."""
    purse = Budget()
    purse.spend_value(value)
    return WORK - purse.left


def _check_bits(bits: int) -> None:
    if bits > LARGEST_BITS:
        raise OverBudgetError(f"the template computes an integer of more than {LARGEST_BITS:,} bits")


_LONG_NUMBER = re.compile(r"%[^a-zA-Z%]*\d{3}")
# Separators of `str.split` and `str.splitlines`.
_SPACES = "".join(filter(str.isspace, map(chr, range(0x3001))))


class BoundFormat:
    """Bound method `text.format` before its call."""

    def __init__(self, method: types.BuiltinMethodType):
        self.text = str(method.__self__)
        self.takes_map = method.__name__ == "format_map"

    def run(
        self, environment: SandboxedEnvironment, budget: Budget, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> str:
        """Return the formatted text; attributes in the pattern are read through the sandbox."""
        budget.spend(len(self.text))
        formatter = _BoundedFormatter(environment, budget)
        if self.takes_map:
            (mapping,) = args
            return formatter.vformat(self.text, (), mapping)
        return formatter.vformat(self.text, args, kwargs)


class _BoundedFormatter(SandboxedFormatter):
    def __init__(self, environment: SandboxedEnvironment, budget: Budget):
        super().__init__(environment)
        self._budget = budget

    def convert_field(self, value: Any, conversion: Any) -> Any:
        self._budget.spend_value(value)
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> Any:
        for number in re.findall(r"\d+", format_spec):
            width(int(number[:12]))
        if not format_spec:
            value = text_of(value)
        formatted = super().format_field(value, format_spec)
        self._budget.spend(len(formatted))
        return formatted


def pay_for_method(
    budget: Budget, owner: Any, name: str, positional: tuple[Any, ...], named: dict[str, Any]
) -> tuple[Any, ...]:
    """Pay for a method of a built-in value; return the positional arguments with iterators converted to
    lists.
    """
    positional = tuple(whole(budget, arg) for arg in positional)
    # The few text methods with keyword arguments (`expandtabs`, `split`) take them in this order.
    args = (*positional, *named.values())
    if isinstance(owner, str | bytes):
        _pay_for_text_method(budget, owner, name, args)
    elif isinstance(owner, list | dict | set):
        # Copies and, in adapters, methods that insert the arguments.
        budget.spend(POINTER * len(owner) if name == "copy" else 1)
        for arg in args:
            budget.spend_value(arg)
    elif name in ("strftime", "__format__") and any(_LONG_NUMBER.search(str(arg)) for arg in args):
        raise OverBudgetError("a width of three digits is not allowed in a date format")
    return positional


def _pay_for_text_method(budget: Budget, text: Any, name: str, args: tuple[Any, ...]) -> None:
    budget.spend(len(text))
    if name in ("center", "ljust", "rjust", "zfill") and args and isinstance(args[0], int):
        budget.spend(max(args[0], 0))
    elif name == "expandtabs":
        size = args[0] if args else 8
        width(size)
        budget.spend(
            text.count("\t" if isinstance(text, str) else b"\t") * (size if isinstance(size, int) else 8)
        )
    elif name == "replace" and len(args) > 1 and isinstance(text, str):
        replace(budget, text, args[0], args[1])
    elif name == "join" and args:
        pay_for_join(budget, args[0], len(text))
    elif name in ("split", "rsplit", "splitlines"):
        budget.spend(ITEM * _most_pieces(text, args))
    elif name == "translate" and args and isinstance(args[0], dict):
        longest = max((len(new) for new in args[0].values() if isinstance(new, str)), default=1)
        budget.spend(len(text) * longest)
    elif name not in ("encode", "decode") and any(isinstance(arg, bytes) for arg in args):
        budget.spend(len(text))


def _most_pieces(text: str | bytes, args: tuple[Any, ...]) -> int:
    """Return an upper limit for the number of pieces from splitting."""
    if isinstance(text, bytes):
        return len(text)
    separators = [arg for arg in args if isinstance(arg, str) and arg] or _SPACES
    return 1 + sum(map(text.count, separators))


def pay_for_join(budget: Budget, parts: Any, separator: int) -> None:
    """Pay for joining parts with a separator of this length."""
    if isinstance(parts, list | tuple | set | frozenset | dict):
        budget.spend(separator * len(parts) + sum(len(part) for part in parts if isinstance(part, str)))
    elif isinstance(parts, str):
        budget.spend((separator + 1) * len(parts))


def whole(budget: Budget, value: Any) -> Any:
    """Convert an iterator to a list: `list.extend` with an iterator over the same list would never end."""
    if not isinstance(value, Iterator) or isinstance(value, Undefined):
        return value
    items = []
    for item in value:
        budget.tick()
        budget.spend(ITEM)
        items.append(item)
    return items

"""Cost limits of one rendering.

Task files are untrusted. Every template operation whose result can be larger than its input is paid from a
`Budget`: one unit per character, `ITEM` per container element. Loops, calls, filters and tests pay for each
step. The budget counts operations, so a template has the same outcome on every machine. Processor time of the
thread is only a second limit, for work without output. It is checked between steps. An endless template
therefore ends with an error, but one costly step can take longer than the limit.
"""

from __future__ import annotations

import itertools
import re
import sys
import time
import types
from collections.abc import Callable, Iterator
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
"""Maximum processor seconds of one rendering, checked between steps."""
LARGEST_BITS = 100_000
"""Maximum bits of an integer that a template may compute."""
LARGEST_WIDTH = 10_000
"""Maximum width, indent or count of a formatting function."""

_TICK = 8
_FEW = 64
"""Steps between two checks of the time."""
_FORMAT_NUMBER = re.compile(r"%(?:\(.*?\))?[#0\- +]*(\*|\d*)(?:\.(\*|\d+))?[a-zA-Z]", re.DOTALL)


class OverBudgetError(SecurityError):
    """Template that needs more work or memory than any prompt."""


class OutOfTimeError(OverBudgetError):
    """Template that runs longer than any prompt needs."""


class Budget:
    """Remaining budget of one rendering."""

    __slots__ = ("_start", "_steps", "left")

    def __init__(self) -> None:
        self.left = WORK
        self._steps = 0
        self._start = 0.0

    def spend(self, units: int) -> None:
        """Pay for work before it is done; raise `OverBudgetError` if it is too much."""
        self.left -= units
        if self.left < 0:
            msg = f"the template creates more than {WORK:,} characters and list items"
            raise OverBudgetError(msg)

    def tick(self, steps: int = 1) -> None:
        """Pay for steps of a loop, a call or a filter."""
        self.spend(_TICK * steps)
        self._steps += steps
        if self._steps >= _FEW:
            self.check_time()

    def check_time(self) -> None:
        """Raise `OutOfTimeError` if the rendering takes too long."""
        self._steps = 0
        now = time.thread_time()
        if not self._start:
            self._start = now
        elif now - self._start > SECONDS:
            raise OutOfTimeError(f"the template computes for more than {SECONDS:g} s")

    def steps(self, values: Any) -> Any:
        """Return the values for a loop that pays for each step."""
        if type(values) in (list, tuple) and len(values) <= _FEW:
            self.tick(len(values) + 1)
            return values
        self.tick()
        return self.counted(values)

    def counted(self, values: Any) -> Iterator[Any]:
        """Yield the values; pay for each."""
        for value in values:
            self.tick()
            yield value

    def spend_size(self, value: object) -> None:
        """Pay for a new value that shares its parts with other values."""
        if isinstance(value, str | bytes):
            self.spend(len(value))
        elif isinstance(value, list | tuple | dict):
            self.spend(POINTER * len(value))
        elif isinstance(value, int):
            check_bits(value.bit_length())

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


def multiply_cost(left: Any, right: Any) -> int:
    """Return the units of `left * right`."""
    for sized, times in ((left, right), (right, left)):
        if isinstance(sized, str | bytes | list | tuple) and isinstance(times, int):
            return len(sized) * max(times, 0) * (ITEM if isinstance(sized, list | tuple) else 1)
    return 0


def power_cost(left: Any, right: Any) -> int:
    """Check the size of `left ** right`, which costs nothing else."""
    if isinstance(left, int) and isinstance(right, int):
        check_bits(left.bit_length() * right)
    return 0


def percent_cost(pattern: Any, values: Any) -> int:
    """Return the units of `pattern % values`."""
    if not isinstance(pattern, str | bytes):
        return 0
    text = pattern if isinstance(pattern, str) else pattern.decode("latin-1")
    cost = len(text)
    for size in filter(None, itertools.chain.from_iterable(_FORMAT_NUMBER.findall(text))):
        number = sys.maxsize if size == "*" else int(size[:12])
        width(number)
        cost += number
    if isinstance(values, dict):
        # Every slot may refer to the same value.
        return cost + text.count("%(") * max(map(printed_cost, values.values()), default=0)
    return cost + printed_cost(values)


def width(number: Any) -> None:
    """Raise an error for an excessive width, indent or count."""
    # Also true for NaN.
    if isinstance(number, int | float) and not abs(number) <= LARGEST_WIDTH:
        raise OverBudgetError(f"{number:,} is not allowed here; the largest is {LARGEST_WIDTH:,}")


def printed_cost(value: object, *_: Any, **__: Any) -> int:
    """Return the units for printing a value; a separate budget limits the work."""
    purse = Budget()
    purse.spend_value(value)
    return WORK - purse.left


def check_bits(bits: int) -> None:
    """Raise an error for an integer that is too large."""
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
    """Pay for a method of a built-in value; return the arguments with iterators as lists."""
    positional = tuple(whole(budget, arg) for arg in positional)
    # The few text methods with keyword arguments (`expandtabs`, `split`) take them in this order.
    args = (*positional, *named.values())
    if isinstance(owner, str | bytes):
        budget.spend(len(owner) + sum(max(arg, 0) for arg in args if isinstance(arg, int)))
        if (cost := _METHODS.get(name)) is not None:
            budget.spend(cost(owner, *args))
        if name in ("split", "rsplit", "splitlines"):
            budget.spend(ITEM * _most_pieces(owner, args))
    elif isinstance(owner, list | dict | set):
        # Copies and, in adapters, methods that insert the arguments.
        budget.spend_size(owner if name == "copy" else "")
        for arg in args:
            budget.spend_value(arg)
    elif name in ("strftime", "__format__") and any(_LONG_NUMBER.search(str(arg)) for arg in args):
        raise OverBudgetError("a width of three digits is not allowed in a date format")
    return positional


def replace_cost(text: Any, old: Any = None, new: Any = None, *_: Any) -> int:
    """Return the units of `text.replace(old, new)`."""
    kind = str if isinstance(text, str) else bytes
    return len(text) + text.count(old) * len(new) if isinstance(old, kind) and isinstance(new, kind) else 0


def join_cost(separator: Any, parts: Any = None, *_: Any) -> int:
    """Return the units of `separator.join(parts)`."""
    if not isinstance(parts, str | list | tuple | set | frozenset | dict):
        return 0
    return len(separator) * len(parts) + sum(len(part) for part in parts if isinstance(part, str | bytes))


def _search_cost(text: Any, searched: Any = None, *_: Any) -> int:
    # The time of these methods can be the product of both lengths.
    return len(text) * (len(searched) // _SHORT) if isinstance(searched, str | bytes) else 0


def _tabs_cost(text: Any, size: Any = 8, *_: Any) -> int:
    width(size)
    return len(text) * size if isinstance(size, int) else 0


def _translate_cost(text: Any, table: Any = None, *_: Any) -> int:
    values = table.values() if isinstance(table, dict) else ()
    return len(text) * max((len(new) for new in values if isinstance(new, str)), default=1)


def _codec_cost(text: Any, codec: Any = None, *_: Any) -> int:
    return len(text) ** 2 if str(codec).lower() in ("idna", "punycode") else 0


_METHODS: dict[str, Callable[..., int]] = {
    **dict.fromkeys(("strip", "lstrip", "rstrip", "rfind", "rindex", "rpartition", "rsplit"), _search_cost),
    "decode": _codec_cost,
    "encode": _codec_cost,
    "expandtabs": _tabs_cost,
    "join": join_cost,
    "replace": replace_cost,
    "translate": _translate_cost,
}
"""Text methods whose cost is more than the lengths of text and arguments."""
_SHORT = 32


def _most_pieces(text: str | bytes, args: tuple[Any, ...]) -> int:
    """Return an upper limit for the number of pieces from splitting."""
    if isinstance(text, bytes):
        return len(text)
    separators = [arg for arg in args if isinstance(arg, str) and arg] or _SPACES
    return 1 + sum(map(text.count, separators))


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

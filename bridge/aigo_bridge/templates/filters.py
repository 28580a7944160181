"""AI GO's additional Jinja filters, and the cost of each filter before it runs.

Names and behavior follow the platform's shared template code: `fromjson`, `tojson`, `json_escape`, `merge`,
`regex_replace`, `zip`. Older files also use `to_json`, which is the same as `tojson`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2.runtime import Context
from jinja2.utils import pass_context

from aigo_bridge.templates.budget import (
    ITEM,
    SECONDS,
    OutOfTimeError,
    OverBudgetError,
    join_cost,
    percent_cost,
    printed_cost,
    replace_cost,
    width,
)

LONGEST_PATTERN = 1_500
"""Maximum characters of a regular expression. The time limit of `regex` does not include its preparation."""

MOST_LOOKUPS = 100
"""Maximum names in the attribute of a filter, such as `"a.b, c"`: each is looked up in each element."""


def fromjson(text: str | bytes) -> Any:
    """Parse a JSON text; raise `ValueError` if it is invalid."""
    return json.loads(text)


def tojson(value: Any, indent: int | None = None) -> str:
    r"""Return JSON for a prompt: keys sorted, non-ASCII and `< > & '` as `\uXXXX`, NaN as `NaN`.

    Model objects are dumped without unset fields. Raises `TypeError` for dates, sets and other
    types that JSON lacks.
    """
    text = json.dumps(value, default=_dumped, sort_keys=True, indent=indent)
    for character in "<>&'":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def json_escape(text: str) -> str:
    """Escape a text for use between the quotes of a JSON string."""
    return json.dumps(str(text))[1:-1]


def merge(value: Any, other: Any) -> dict[str, Any]:
    """Merge two maps recursively; `other` takes precedence."""
    for operand in (value, other):
        if not isinstance(operand, Mapping):
            raise TypeError(f"`merge` needs two maps, found a value of type {type(operand).__name__!r}")
    merged = dict(value)
    for key, new in other.items():
        old = merged.get(key)
        merged[key] = merge(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new
    return merged


def regex_replace(
    text: str,
    pattern: str = "",
    replacement: str = "",
    *,
    multiline: bool = False,
    ignorecase: bool = False,
    count: int = 0,
) -> str:
    """Apply `re.sub` with a time limit, which stops excessive backtracking."""
    # Imported late because few templates need it and it loads slowly.
    import regex  # type: ignore[import-untyped]  # untyped

    if not isinstance(replacement, str):
        raise TypeError(f"found a replacement of type {type(replacement).__name__!r}, expected a text")
    if len(pattern) > LONGEST_PATTERN:
        raise OverBudgetError(f"the regular expression has more than {LONGEST_PATTERN:,} characters")
    for number in re.findall(r"\d+", pattern):
        width(int(number[:12]))
    flags = (regex.MULTILINE if multiline else 0) | (regex.IGNORECASE if ignorecase else 0)
    # `re` cannot be interrupted from Python; `regex` supports the same expressions and has a timeout.
    try:
        return str(regex.sub(pattern, replacement, text, count=count, flags=flags, timeout=SECONDS))
    except TimeoutError as error:
        raise OutOfTimeError(f"the regular expression {pattern!r} takes more than {SECONDS:g} s") from error
    except regex.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from error


def zipped(value: Iterable[Any], *others: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return rows of the first items, the second items and so on, up to the shortest input."""
    return list(zip(value, *others, strict=False))


@pass_context
def summed(
    context: Context, values: Iterable[Any], attribute: str | int | None = None, start: Any = 0
) -> Any:
    """Compute `sum` without the quadratic copying of `sum(start=[])`."""
    if attribute is not None:
        kwargs = {"attribute": attribute}
        values = context.environment.call_filter("map", values, kwargs=kwargs, context=context)
    if isinstance(start, list | tuple):
        flat = list(start)
        for value in values:
            flat.extend(value)
        return type(start)(flat)
    return sum(values, start)


def _dumped(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"a value of type {type(value).__name__!r} cannot be written as JSON")
    return dump(mode="json", exclude_unset=True)


FILTERS: Mapping[str, Callable[..., Any]] = {
    "fromjson": fromjson,
    "tojson": tojson,
    "to_json": tojson,
    "json_escape": json_escape,
    "merge": merge,
    "regex_replace": regex_replace,
    "sum": summed,
    "zip": zipped,
}
"""Filters in addition to Jinja's, and one replaced Jinja filter."""


def _json_cost(value: Any, *_: Any, **__: Any) -> int:
    return ITEM * sum(map(value.count, ",[{")) if isinstance(value, str) else 0


def _pieces_cost(value: Any, *_: Any, **__: Any) -> int:
    return ITEM * len(value) if isinstance(value, str) else 0


def _pprint_cost(value: Any, *_: Any, **__: Any) -> int:
    # It is written in Python, and slow.
    return 8 * printed_cost(value)


def _sum_cost(values: Any, *_: Any, **__: Any) -> int:
    if isinstance(values, list | tuple) and any(isinstance(value, str) for value in values):
        raise TypeError("`sum` cannot add texts; use `join`")
    return printed_cost(values)


def _join_cost(values: Any, d: Any = "", *_: Any, **__: Any) -> int:
    return join_cost(str(d), values)


def _replace_cost(text: Any, old: Any = "", new: Any = "", *_: Any, **__: Any) -> int:
    return replace_cost(text, str(old), str(new))


def _regex_cost(text: Any, pattern: Any = "", replacement: Any = "", *_: Any, **__: Any) -> int:
    # There is at most one match per character and one at the end. Groups of different matches do not overlap,
    # except with look-around.
    groups = str(replacement).count("\\")
    copied = len(text) * (len(text) if "(?=" in str(pattern) or "(?<" in str(pattern) else 1)
    return len(str(replacement)) * (len(text) + 1) + groups * copied


def _format_cost(pattern: Any, *args: Any, **kwargs: Any) -> int:
    return percent_cost(pattern, kwargs or args)


def _indent_cost(text: Any, width: Any = 4, *_: Any, **__: Any) -> int:
    columns = len(width) if isinstance(width, str) else width if isinstance(width, int) else 0
    return int((text.count("\n") + 1) * max(columns, 0))


def _wordwrap_cost(
    text: Any, width: Any = 79, break_long_words: Any = True, wrapstring: Any = None, *_: Any, **__: Any
) -> int:
    # textwrap can take quadratic time for a long word.
    longest = max(map(len, text.split()), default=0)
    return len(text) * len(str(wrapstring or "\n")) + longest * longest // 16


def _striptags_cost(text: Any, *_: Any, **__: Any) -> int:
    # Every tag copies the text once.
    return int(len(text) * text.count("<") // 64)


@dataclass(frozen=True, slots=True)
class FilterRule:
    """What a filter takes, and its cost in addition to its input and output."""

    cost: Callable[..., int] | None = None
    """Function with the arguments of the filter that returns units."""
    takes_text: bool = False
    """Whether the input is converted to text, so that `solver_output.output | upper` uses the answer."""
    takes_width: bool = False
    """Whether a number determines the size of the output."""
    walks: bool = False
    """Whether the filter needs all elements, so that iterators become lists before."""
    makes_nothing: bool = False
    """Whether the output is an existing value, or a lazy iterator over them."""
    attribute: int | None = None
    """Position of the argument `attribute`."""


RULES: Mapping[str, FilterRule] = {
    "attr": FilterRule(makes_nothing=True),
    "batch": FilterRule(_pieces_cost, walks=True, takes_width=True),
    "capitalize": FilterRule(takes_text=True),
    "center": FilterRule(takes_text=True, takes_width=True),
    "count": FilterRule(makes_nothing=True),
    "d": FilterRule(makes_nothing=True),
    "default": FilterRule(makes_nothing=True),
    "dictsort": FilterRule(_pieces_cost, walks=True),
    "e": FilterRule(takes_text=True),
    "escape": FilterRule(takes_text=True),
    "first": FilterRule(makes_nothing=True),
    "forceescape": FilterRule(takes_text=True),
    "format": FilterRule(_format_cost, takes_text=True),
    "fromjson": FilterRule(_json_cost),
    "groupby": FilterRule(_pieces_cost, walks=True, attribute=0),
    "indent": FilterRule(_indent_cost, takes_text=True, takes_width=True),
    "join": FilterRule(_join_cost, walks=True, attribute=1),
    "json_escape": FilterRule(takes_text=True),
    "last": FilterRule(makes_nothing=True),
    "length": FilterRule(makes_nothing=True),
    "list": FilterRule(_pieces_cost, walks=True),
    "lower": FilterRule(takes_text=True),
    "map": FilterRule(makes_nothing=True),
    "max": FilterRule(makes_nothing=True, attribute=1),
    "merge": FilterRule(printed_cost),
    "min": FilterRule(makes_nothing=True, attribute=1),
    "pprint": FilterRule(_pprint_cost),
    "regex_replace": FilterRule(_regex_cost, takes_text=True),
    "reject": FilterRule(makes_nothing=True),
    "rejectattr": FilterRule(makes_nothing=True, attribute=0),
    "replace": FilterRule(_replace_cost, takes_text=True),
    "round": FilterRule(takes_width=True),
    "select": FilterRule(makes_nothing=True),
    "selectattr": FilterRule(makes_nothing=True, attribute=0),
    "slice": FilterRule(_pieces_cost, walks=True, takes_width=True),
    "sort": FilterRule(_pieces_cost, walks=True, attribute=2),
    "string": FilterRule(takes_text=True),
    "striptags": FilterRule(_striptags_cost, takes_text=True),
    "sum": FilterRule(_sum_cost, walks=True, attribute=0),
    "title": FilterRule(_pieces_cost, takes_text=True),
    "to_json": FilterRule(printed_cost, takes_width=True),
    "tojson": FilterRule(printed_cost, takes_width=True),
    "trim": FilterRule(takes_text=True),
    "truncate": FilterRule(takes_text=True),
    "unique": FilterRule(_pieces_cost, walks=True, attribute=1),
    "upper": FilterRule(takes_text=True),
    "urlencode": FilterRule(takes_text=True),
    "wordcount": FilterRule(_pieces_cost, takes_text=True),
    "wordwrap": FilterRule(_wordwrap_cost, takes_text=True, takes_width=True),
    "zip": FilterRule(_pieces_cost, walks=True),
}
"""Rules of filters; other filters only pay for their input and output."""

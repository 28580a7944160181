"""AI GO's additional Jinja filters, and the cost of each filter before it runs.

Names and behavior follow the platform's shared template code: `fromjson`, `tojson`, `json_escape`, `merge`,
`regex_replace`, `zip`. Older files also use `to_json`, which is the same as `tojson`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2.runtime import Context
from jinja2.utils import pass_context

from aigo_bridge.templates.budget import (
    ITEM,
    SECONDS,
    Budget,
    OutOfTimeError,
    OverBudgetError,
    join_cost,
    percent_format,
    replace_cost,
    whole,
    width,
)
from aigo_bridge.templates.names import text_of

LONGEST_PATTERN = 1_500
"""Maximum characters of a regular expression. The time limit of `regex` does not include its preparation."""

Prepay = Callable[[Budget, Any, tuple[Any, ...], dict[str, Any]], tuple[Any, tuple[Any, ...], dict[str, Any]]]

TAKES_TEXT = frozenset(
    {
        "capitalize",
        "center",
        "e",
        "escape",
        "forceescape",
        "format",
        "indent",
        "json_escape",
        "lower",
        "regex_replace",
        "replace",
        "string",
        "striptags",
        "title",
        "trim",
        "truncate",
        "upper",
        "urlencode",
        "wordcount",
        "wordwrap",
    }
)
"""Filters that first convert their input to text, so that `solver_output.output | upper` uses the answer."""
TAKES_WIDTH = frozenset({"batch", "center", "indent", "round", "slice", "tojson", "to_json", "wordwrap"})
"""Filters with a number that determines the size of their output."""
ATTRIBUTE = {
    **dict.fromkeys(("groupby", "rejectattr", "selectattr", "sum"), 0),
    **dict.fromkeys(("join", "max", "min", "unique"), 1),
    "sort": 2,
}
"""Filter → position of its argument `attribute`, such as `"a.b, c"`."""
MOST_LOOKUPS = 100
"""Maximum names in an attribute: a filter looks up each of them in each element."""
MAKES_NOTHING = frozenset(
    {
        "attr",
        "count",
        "d",
        "default",
        "first",
        "last",
        "length",
        "map",
        "max",
        "min",
        "reject",
        "rejectattr",
        "select",
        "selectattr",
    }
)
"""Filters that return existing values, or a lazy iterator over them."""


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
    import regex  # type: ignore[import-untyped]  # it ships no types

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


def prepay(name: str) -> Prepay | None:
    """Return the function that pays and converts arguments before a filter runs."""
    return _PREPAY.get(name)


def _pays_itself(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    budget.spend_value(value)
    return value, args, kwargs


def _fromjson(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    if isinstance(value, str):
        budget.spend(ITEM * sum(map(value.count, ",[{")))
    return value, args, kwargs


def _words(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    budget.spend(ITEM * len(value))
    return value, args, kwargs


def _pprint(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    # It is written in Python, and slow.
    for _ in range(8):
        budget.spend_value(value)
    return value, args, kwargs


def _splits(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    if isinstance(value, str):
        budget.spend(ITEM * len(value))
    return whole(budget, value), tuple(whole(budget, arg) for arg in args), kwargs


def _join(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    value = whole(budget, value)
    separator = args[0] if args else kwargs.get("d", "")
    attribute = args[1] if len(args) > 1 else kwargs.get("attribute")
    if isinstance(value, list | tuple) and attribute is None:
        for part in value:
            if not isinstance(part, str):
                budget.spend_value(part)
        value = [text_of(part) for part in value]
    budget.spend(join_cost(str(separator), value))
    return value, args, kwargs


def _sum(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    value = whole(budget, value)
    if isinstance(value, list | tuple):
        for item in value:
            if isinstance(item, str):
                raise TypeError("`sum` cannot add texts; use `join`")
            budget.spend_value(item)
    return value, args, kwargs


def _replace(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    old = args[0] if args else kwargs.get("old")
    new = args[1] if len(args) > 1 else kwargs.get("new")
    budget.spend(replace_cost(value, str(old), str(new)))
    return value, args, kwargs


def _regex_replace(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    replacement = args[1] if len(args) > 1 else kwargs.get("replacement", "")
    pattern = str(args[0] if args else kwargs.get("pattern", ""))
    budget.check_time()
    # There is at most one match per character and one at the end.
    budget.spend(len(str(replacement)) * (len(value) + 1))
    groups = str(replacement).count("\\")
    if groups:
        # Groups of different matches do not overlap, except with look-around.
        budget.spend(groups * len(value) * (len(value) if "(?=" in pattern or "(?<" in pattern else 1))
    return value, args, kwargs


def _format(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    percent_format(budget, value, kwargs or args)
    return value, args, kwargs


def _indent(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    by = args[0] if args else kwargs.get("width", 4)
    width = len(by) if isinstance(by, str) else by if isinstance(by, int) else 0
    budget.spend((value.count("\n") + 1) * max(width, 0))
    return value, args, kwargs


def _wordwrap(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    separator = args[2] if len(args) > 2 else kwargs.get("wrapstring") or "\n"
    # textwrap can take quadratic time for a long word.
    longest = max(map(len, value.split()), default=0)
    budget.spend(len(value) * len(str(separator)) + longest * longest // 16)
    return value, args, kwargs


def _striptags(budget: Budget, value: Any, args: Any, kwargs: Any) -> tuple[Any, Any, Any]:
    # Every tag copies the text once.
    budget.spend(len(value) * value.count("<") // 64)
    return value, args, kwargs


_PREPAY: dict[str, Prepay] = {
    "batch": _splits,
    "dictsort": _splits,
    "format": _format,
    "fromjson": _fromjson,
    "groupby": _splits,
    "indent": _indent,
    "join": _join,
    "list": _splits,
    "merge": _pays_itself,
    "pprint": _pprint,
    "regex_replace": _regex_replace,
    "replace": _replace,
    "slice": _splits,
    "sort": _splits,
    "striptags": _striptags,
    "sum": _sum,
    "to_json": _pays_itself,
    "title": _words,
    "tojson": _pays_itself,
    "unique": _splits,
    "wordcount": _words,
    "wordwrap": _wordwrap,
    "zip": _splits,
}

"""Plain templates: recognition, and checks while they are rendered.

A plain template is rendered directly in the runner; any other template in a process that can be killed
(`rendering`). Both checks are lists of allowed elements. `is_plain` checks the *kinds* of nodes, filters,
tests and methods in the text. The `allow_…` functions check the *operands* at run time. They raise
`NotPlainError` for operations whose time is not proportional to their input or whose cost is unknown.
Rendering has no side effects, so it then starts again in the other process with the same result.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jinja2 import nodes
from jinja2.runtime import Undefined
from jinja2.sandbox import safe_range

from aigo_bridge.templates.budget import ITEM, POINTER, Budget, OverBudgetError, add, multiply

MOST_NODES = 2_000
"""Maximum nodes in the tree of a plain template; it limits the work between two budget checks."""
MOST_LOOPS = 6
SMALL_BITS = 64
"""Maximum bits of integer operands."""
SHORT = 32
"""Maximum characters of a text argument: searching and stripping cost the product of both lengths."""
SMALL_NUMBER = 1_000
"""Maximum number as an argument of a filter or method."""

FILTERS = frozenset(
    {
        *("abs", "capitalize", "count", "d", "default", "first", "float", "fromjson", "int", "items", "join"),
        *(
            "json_escape",
            "last",
            "length",
            "list",
            "lower",
            "map",
            "reject",
            "rejectattr",
            "replace",
            "reverse",
        ),
        *("round", "select", "selectattr", "string", "to_json", "tojson", "trim", "truncate", "upper"),
    }
)
"""Filters whose work is proportional to their cost."""
TESTS = frozenset(
    {
        *("boolean", "defined", "even", "false", "float", "integer", "iterable", "mapping", "none", "number"),
        *("odd", "sequence", "string", "true", "undefined"),
    }
)
"""Tests that check the type or the last bit; comparing tests are in `_COMPARISONS`."""
METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(
        {
            *(
                "capitalize",
                "count",
                "endswith",
                "find",
                "join",
                "lower",
                "lstrip",
                "replace",
                "rstrip",
                "split",
            ),
            *("splitlines", "startswith", "strip", "upper"),
        }
    ),
    dict: frozenset({"get", "items", "keys", "values"}),
}
"""Methods whose work is proportional to their cost if their arguments are short."""

_COMPARISONS = {
    "==": "eq",
    "eq": "eq",
    "equalto": "eq",
    "!=": "eq",
    "ne": "eq",
    "in": "in",
    **dict.fromkeys(("gt", ">", "greaterthan", "ge", ">=", "lt", "<", "lessthan", "le", "<="), "order"),
}
_NUMERIC = frozenset({"abs", "float", "int", "round"})
_LAZY = frozenset({"items", "map", "reject", "rejectattr", "reverse", "select", "selectattr"})
_ANY_ARGUMENTS = _LAZY | {"d", "default"}
_METHOD_NAMES = frozenset().union(*METHODS.values())
_SCALARS = (str, int, float, bool, types.NoneType)
_CONTAINERS = (list, tuple, dict)


class NotPlainError(OverBudgetError):
    """Operation of a plain template that requires a separate process; users never see this error."""


def is_plain(tree: Sequence[nodes.Node]) -> bool:
    """Return whether all nodes of a template are allowed in the runner."""
    if len(tree) > MOST_NODES:
        return False
    loops = 0
    for node in tree:
        if isinstance(node, nodes.For):
            loops += 1
            if loops > MOST_LOOPS:
                return False
        rule = _NODES.get(type(node))
        if rule is None or not rule(node):
            return False
    return True


def allow_operator(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Pay for `left operator right`, or leave it to the other process."""
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return
    if _is_number(left) and _is_number(right) and operator != "**":
        return
    if operator == "+" and type(left) is type(right) and type(left) in (str, list, tuple):
        add(budget, left, right)
    elif operator == "*" and {type(left), type(right)} == {str, int}:
        multiply(budget, left, right)
    else:
        raise NotPlainError(operator)


def allow_comparison(budget: Budget, operator: str, left: Any, right: Any) -> None:
    """Pay for a comparison, or leave it to the other process."""
    if isinstance(left, Undefined) or isinstance(right, Undefined):
        return
    if operator in ("in", "notin"):
        if type(right) is str or (type(right) in (list, tuple) and type(left) in _SCALARS):
            budget.spend_value(right)
        elif type(right) is not dict or type(left) not in _SCALARS:
            raise NotPlainError(operator)
        return
    if type(left) is str and type(right) is str:
        budget.spend(min(len(left), len(right)))
    elif type(left) not in _SCALARS or type(right) not in _SCALARS:
        raise NotPlainError(operator)


def allow_slice(budget: Budget, value: Any) -> None:
    """Pay for a slice of a text or list as for the whole value."""
    if type(value) is str:
        budget.spend(len(value))
    elif type(value) in (list, tuple):
        budget.spend(POINTER * len(value))
    elif not isinstance(value, Undefined):
        raise NotPlainError("slice")


def allow_call(budget: Budget, called: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Allow methods of texts or maps with short arguments."""
    if called is safe_range:
        return
    owner = getattr(called, "__self__", None)
    if not isinstance(called, types.BuiltinMethodType) or called.__name__ not in METHODS.get(type(owner), ()):
        raise NotPlainError("call")
    if type(owner) is dict:
        if args and type(args[0]) not in _SCALARS:
            raise NotPlainError("call")
    elif called.__name__ == "join":
        if len(args) != 1 or type(args[0]) not in _CONTAINERS:
            raise NotPlainError("call")
    else:
        _allow_arguments((*args, *kwargs.values()))


def allow_filter(
    budget: Budget, name: str, value: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> None:
    """Allow filters that are known to be fast with such arguments."""
    if name not in FILTERS:
        raise NotPlainError(name)
    kind = type(value)
    if name in _NUMERIC:
        short = kind is str and len(value) <= SMALL_NUMBER
        if not (short or value is None or _is_number(value) or isinstance(value, Undefined)):
            raise NotPlainError(name)
    elif kind in _CONTAINERS:
        # A lazy value is walked later without another check.
        budget.spend((ITEM if name in _LAZY else POINTER) * len(value))
    if args or kwargs:
        if name == "join" and (len(args) > 1 or "attribute" in kwargs):
            raise NotPlainError(name)
        if name not in _ANY_ARGUMENTS:
            _allow_arguments((*args, *kwargs.values()))


def allow_test(budget: Budget, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Allow tests that are known to be fast with such a value."""
    comparison = _COMPARISONS.get(name)
    if kwargs or len(args) != (1 if comparison is None else 2):
        raise NotPlainError(name)
    if comparison is not None:
        allow_comparison(budget, comparison, *args)
    elif name not in TESTS or (name in ("odd", "even") and not _is_number(args[0])):
        raise NotPlainError(name)


def _allow_arguments(arguments: tuple[Any, ...]) -> None:
    for argument in arguments:
        if isinstance(argument, Undefined):
            continue
        kind = type(argument)
        if kind not in _SCALARS or (
            len(argument) > SHORT
            if kind is str
            else kind in (int, float) and not -SMALL_NUMBER <= argument <= SMALL_NUMBER
        ):
            raise NotPlainError("argument")


def _is_number(value: Any) -> bool:
    kind = type(value)
    return kind is float or kind is bool or (kind is int and value.bit_length() <= SMALL_BITS)


def _always(_: Any) -> bool:
    return True


def _constant(node: nodes.Const) -> bool:
    value = node.value
    if type(value) is float:
        return math.isfinite(value)
    return type(value) in (str, bool, types.NoneType) or _is_number(value)


def _call(node: nodes.Call) -> bool:
    if node.dyn_args is not None or node.dyn_kwargs is not None:
        return False
    called = node.node
    if isinstance(called, nodes.Getattr):
        return called.attr in _METHOD_NAMES
    return isinstance(called, nodes.Name) and called.name == "range"


def _filter(node: nodes.Filter) -> bool:
    return (
        node.name in FILTERS and node.node is not None and node.dyn_args is None and node.dyn_kwargs is None
    )


def _test(node: nodes.Test) -> bool:
    known = node.name in TESTS or node.name in _COMPARISONS
    return known and node.dyn_args is None and node.dyn_kwargs is None


def _dictionary(node: nodes.Dict) -> bool:
    return all(isinstance(pair.key, nodes.Const) and type(pair.key.value) is str for pair in node.items)


def _assignment(node: nodes.Assign) -> bool:
    return not any(node.target.find_all(nodes.NSRef)) and not isinstance(node.target, nodes.NSRef)


_NODES: Mapping[type[nodes.Node], Callable[[Any], bool]] = {
    **dict.fromkeys(
        (
            *(nodes.Output, nodes.TemplateData, nodes.Name, nodes.Getattr, nodes.Getitem, nodes.Slice),
            *(nodes.If, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.With),
            *(nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat),
            *(nodes.List, nodes.Tuple, nodes.Operand, nodes.Pair, nodes.Keyword, nodes.Break, nodes.Continue),
        ),
        _always,
    ),
    nodes.Const: _constant,
    nodes.For: lambda node: not node.recursive,
    nodes.Compare: lambda node: len(node.ops) == 1,
    nodes.Call: _call,
    nodes.Filter: _filter,
    nodes.Test: _test,
    nodes.Dict: _dictionary,
    nodes.Assign: _assignment,
}
"""Nodes that a plain template may contain."""

"""Filters over samples: `exists`, `is_true`, comparisons and membership of a `{{ }}` expression.

Dataset filters and action rules use the same classes with different typing:

========================  ======================================  =====================================
                          dataset filter                         action rule
========================  ======================================  =====================================
text of a Python          becomes that value (`"3"` is 3,         stays text
literal                   `"True"` is true)
`equals`, `in`            Python equality; text is never a        equal, or equal as text (`3` and `"3"`,
                          number                                  `true` and `"true"`)
ordering                  both numbers or booleans, else error    numbers or numeric text, else error
`is_true`, `is_false`     a boolean, else error                   also non-zero numbers and true/1/yes
`exists`                  defined, with any value                 defined and neither null nor NaN
model output, message,    unchanged                               the text that a template prints for it
message content
name not defined          error, except for `(not_)exists`        does not match (`not_equals`, `not_in` do)
========================  ======================================  =====================================

The left column describes the platform's client for datasets. The platform does not define action rules
completely; the right column is the interpretation with which published rules work.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from aigo_bridge.codes import Code
from aigo_bridge.errors import TemplateError
from aigo_bridge.spec.base import ComparisonFilter, Filter, MembershipFilter, UnaryFilter
from aigo_bridge.templates import SampleTemplate, own_text, text_of

Semantics = Literal["dataset", "action"]

_LONGEST_LITERAL = 10_000
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "greater_than": operator.gt,
    "less_than": operator.lt,
    "greater_or_equal": operator.ge,
    "less_or_equal": operator.le,
}
_UNDEFINED = object()


def matches(rule: Filter, /, *, semantics: Semantics = "dataset", **variables: Any) -> bool:
    """Return whether a sample passes a filter.

    `variables` are the variables of the expression: `sample` and, for action rules, `solver_output` and
    `scores`. Raises `TemplateError` if the expression fails or its value is not valid for the operation.
    """
    return CompiledFilter(rule, semantics).matches(variables)


def compile_filters(filters: Sequence[Filter]) -> tuple[CompiledFilter, ...]:
    """Compile dataset filters for many rows. Raises `TemplateError` if an expression is not a template."""
    return tuple(CompiledFilter(rule, "dataset") for rule in filters)


class CompiledFilter:
    """Filter with a compiled expression."""

    def __init__(self, rule: Filter, semantics: Semantics = "action"):
        self.rule = rule
        self._template = SampleTemplate(rule.expression)
        self._native = semantics == "dataset"

    def matches(self, variables: Mapping[str, Any]) -> bool:
        """Return whether the variables pass. Raises `TemplateError` (see the function `matches`)."""
        rule = self.rule
        if isinstance(rule, UnaryFilter) and rule.op in ("exists", "not_exists"):
            return self._exists(variables) == (rule.op == "exists")
        value = self._value(variables)
        if value is _UNDEFINED:
            return rule.op in ("not_equals", "not_in")
        if isinstance(rule, UnaryFilter):
            return self._truth(value) == (rule.op == "is_true")
        if isinstance(rule, MembershipFilter):
            return any(self._equal(value, constant) for constant in rule.values) == (rule.op == "in")
        if rule.op in ("equals", "not_equals"):
            return self._equal(value, rule.value) == (rule.op == "equals")
        return self._ordered(rule, value)

    def _value(self, variables: Mapping[str, Any]) -> Any:
        if not self._native and not self._template.exists(**variables):
            return _UNDEFINED
        value = self._template.evaluate(**variables)
        if self._native:
            return _literal(value) if isinstance(value, str) else value
        # A model output or a message is compared as the text that it prints.
        text = own_text(value)
        return value if text is None else text

    def _exists(self, variables: Mapping[str, Any]) -> bool:
        if not self._template.exists(**variables):
            return False
        if self._native:
            return True
        value = self._template.evaluate(**variables)
        return value is not None and not (isinstance(value, float) and math.isnan(value))

    def _truth(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        if self._native:
            raise self._unfit(value, "true or false")
        if isinstance(value, int | float):
            return value != 0 and not math.isnan(value)
        return isinstance(value, str) and value.strip().lower() in ("true", "1", "yes")

    def _equal(self, value: Any, constant: str | float | bool) -> bool:
        if bool(value == constant):
            return True
        return not self._native and _as_text(value) & _as_text(constant) != set()

    def _ordered(self, rule: ComparisonFilter, value: Any) -> bool:
        number = self._number(value)
        right = self._number(rule.value)
        if number is None:
            raise self._unfit(value, "a number")
        if right is None:
            raise TemplateError(
                f"`{rule.op}` compares with {rule.value!r}, expected a number", code=Code.WRONG_COMPARISON
            )
        return _ORDER[rule.op](number, right)

    def _number(self, value: Any) -> float | None:
        if isinstance(value, int | float):
            return value
        if self._native or not isinstance(value, str):
            return None
        try:
            return float(value)
        except ValueError:
            return None

    def _unfit(self, value: Any, expected: str) -> TemplateError:
        shown = repr(value)
        shown = shown if len(shown) <= 60 else shown[:57] + "…"
        return TemplateError(
            f"`{self.rule.op}` of {self.rule.expression!r} found {shown}, expected {expected}",
            code=Code.WRONG_COMPARISON,
        )


def _literal(text: str) -> Any:
    if len(text) > _LONGEST_LITERAL:
        return text
    try:
        # `literal_eval(text)` would ignore leading spaces, but `" 3"` must stay text.
        return ast.literal_eval(ast.parse(text, mode="eval"))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def _as_text(value: Any) -> set[str]:
    texts = {text_of(value)}
    if isinstance(value, bool):
        texts.add(str(value).lower())
    return texts

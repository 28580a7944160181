"""Jinja environment of AI GO templates: a sandbox with a budget, strict names, and columns before methods.

Differences from Jinja's own sandbox:

* Calls are checked against a list of allowed functions instead of forbidden ones. Jinja lets templates call
any public method of any reachable object; pydantic's `parse_raw` unpickles, and `parse_file` opens files.
* Every operation that can grow pays a `Budget` (see `budget`). Jinja has hooks for operators, calls and
output. For loops, literals, slices and `~`, `limited` adds calls to the syntax tree.
* There are no random functions (`random`, `lipsum`), because evidence must be reproducible. There are no
includes, imports or blocks, because a prompt is one text.
* `sample.items` is the column `items` if it exists. Jinja looks up attributes first.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace, pass_context

from aigo_bridge.templates.budget import (
    WORK,
    BoundFormat,
    Budget,
    OverBudgetError,
    multiply_cost,
    pay_for_method,
    percent_cost,
    power_cost,
    whole,
    width,
)
from aigo_bridge.templates.filters import FILTERS, MOST_LOOKUPS, RULES, FilterRule
from aigo_bridge.templates.names import text_of


class BoundedContext(Context):
    """Variables of one rendering and its budget, which is set before rendering starts."""

    budget: Budget


def limited(node: Any) -> Any:
    """Return a syntax tree in which loops, literals, slices and `~` pay; the tree is changed."""
    for name in node.fields:
        value = getattr(node, name)
        if isinstance(value, nodes.Node):
            setattr(node, name, limited(value))
        elif isinstance(value, list):
            value[:] = [limited(item) if isinstance(item, nodes.Node) else item for item in value]
    match node:
        case nodes.For():
            node.iter = _paid(node.iter, "steps")
        case nodes.Concat():
            return _paid(nodes.List(node.nodes, lineno=node.lineno), "join_texts")
        case nodes.List() | nodes.Dict() | nodes.Tuple(ctx="load"):
            values = [item.value if isinstance(item, nodes.Pair) else item for item in node.items]
            if not all(isinstance(value, nodes.Const) for value in values):
                return _paid(node, "pay_for_literal")
        case nodes.Getitem(arg=nodes.Slice()):
            return _paid(node, "pay_for_slice")
    return node


def _paid(node: Any, method: str) -> nodes.Call:
    """Return a call of a method of the environment with the value of an expression."""
    called = nodes.EnvironmentAttribute(method, lineno=node.lineno)
    return nodes.Call(called, [nodes.ContextReference(), node], [], None, None, lineno=node.lineno)


_VALUE_TYPES = (
    str,
    bytes,
    int,
    float,
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    types.MappingProxyType,
    dt.date,
    dt.time,
    dt.timedelta,
)
_REFUSED_METHODS = frozenset({"fromkeys", "to_bytes", "from_bytes"})
_OUR_PACKAGE = "aigo_bridge."
_DUMPS = frozenset({"model_dump", "model_dump_json"})
_CHANGES_EVIDENCE = re.compile(r"append|extend|add_|set_|insert|clear|pop|remove|update")


class BoundedNamespace(Namespace):
    """`namespace()` whose printed form does not include its content."""

    def __repr__(self) -> str:
        return "<namespace>"


def _bounded_concat(pieces: Iterable[str]) -> str:
    parts = list(pieces)
    if sum(map(len, parts)) > WORK:
        raise OverBudgetError(f"the template collects a text of more than {WORK:,} characters")
    return "".join(parts)


@pass_context
def _finalize(context: BoundedContext, value: Any) -> str:
    if type(value) is not str:
        if isinstance(value, Undefined):
            return str(value)
        context.budget.spend_value(value)
        value = text_of(value)
    text: str = value
    context.budget.spend(len(text))
    return text


class _Sandbox(ImmutableSandboxedEnvironment):
    """Sandbox without a budget, which runs Jinja's filters and tests after they were paid."""

    changes_allowed = False

    def __init__(self, undefined: type[Undefined], **options: Any):
        super().__init__(undefined=undefined, **options)
        self.filters.update(FILTERS)
        for name in ("random", "urlize"):
            del self.filters[name]

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        kind = SandboxedEnvironment if self.changes_allowed else ImmutableSandboxedEnvironment
        return kind.is_safe_attribute(self, obj, attr, value)

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is dict or isinstance(obj, Mapping):
            try:
                return obj[attribute]
            except KeyError:
                pass
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(obj) is dict or isinstance(obj, Mapping):
            try:
                return obj[argument]
            except (KeyError, TypeError):
                return self.undefined(obj=obj, name=argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> Any:
        if (
            isinstance(value, types.BuiltinMethodType)
            and value.__name__ in ("format", "format_map")
            and isinstance(value.__self__, str)
        ):
            return BoundFormat(value)
        return None

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        # Raise immediately: a lenient template would print an empty text.
        raise SecurityError(f"access to attribute {attribute!r} of {type(obj).__name__!r} object is unsafe")


class SampleEnvironment(_Sandbox):
    """Environment of sample templates: their values cannot be changed."""

    context_class = BoundedContext
    concat = staticmethod(_bounded_concat)
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})

    def __init__(self, undefined: type[Undefined]):
        # Constant folding would run operators and filters during compilation, before a budget exists.
        super().__init__(
            undefined,
            finalize=_finalize,
            optimized=False,
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
        )
        unpaid = _Sandbox(undefined)
        unpaid.changes_allowed = self.changes_allowed
        del self.globals["lipsum"]
        self.globals["namespace"] = BoundedNamespace
        self.filters = {name: _guarded_filter(name, unpaid) for name in self.filters}
        self.tests = {name: _guarded_test(name, unpaid) for name in self.tests}

    def steps(self, context: BoundedContext, values: Any) -> Any:
        """Return the values of a loop."""
        return context.budget.steps(values)

    def join_texts(self, context: BoundedContext, values: list[Any]) -> str:
        """Compute `a ~ b`."""
        return "".join(_texts(context.budget, values))

    def pay_for_literal(self, context: BoundedContext, value: Any) -> Any:
        """Pay for a list, tuple or map literal."""
        context.budget.spend_value(value)
        return value

    def pay_for_slice(self, context: BoundedContext, value: Any) -> Any:
        """Pay for `value[start:stop:step]`."""
        context.budget.spend_size(value)
        return value

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        assert isinstance(context, BoundedContext)
        if (cost := _OPERATORS.get(operator)) is not None:
            context.budget.spend(cost(left, right))
        result = super().call_binop(context, operator, left, right)
        if type(result) is float and not math.isfinite(result) and _all_finite(left, right):
            raise OverflowError(f"the result of `{operator}` is too large for a number")
        context.budget.spend_size(result)
        return result

    def is_safe_callable(self, obj: Any) -> bool:
        if isinstance(obj, Macro | LoopContext | BoundFormat | Joiner):
            return True
        if isinstance(obj, type) or obj is safe_range:
            return obj in (safe_range, dict, Cycler, Joiner, BoundedNamespace)
        owner = getattr(obj, "__self__", None)
        name = getattr(obj, "__name__", "_")
        if isinstance(obj, types.BuiltinMethodType):
            return isinstance(owner, _VALUE_TYPES) and name not in _REFUSED_METHODS
        if isinstance(obj, types.MethodType):
            if isinstance(owner, Cycler | LoopContext) or name in _DUMPS:
                return True
            ours = (obj.__func__.__module__ or "").startswith(_OUR_PACKAGE)
            return ours and (self.changes_allowed or not _CHANGES_EVIDENCE.match(name))
        return False

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063  # Jinja's signature; keywords cannot collide
        if getattr(__obj, "__self__", None) is __self:
            # A call from `limited`; templates cannot reach the environment.
            return __obj(*args)
        assert isinstance(__context, BoundedContext)
        budget = __context.budget
        budget.tick()
        if isinstance(__obj, Undefined):
            __obj()
        if not __self.is_safe_callable(__obj):
            name = getattr(__obj, "__qualname__", type(__obj).__name__)
            raise SecurityError(f"`{name}` must not be called in a template")
        kwargs.pop("_loop_vars", None)
        kwargs.pop("_block_vars", None)
        if isinstance(__obj, BoundFormat):
            return __obj.run(__self, budget, args, kwargs)
        if isinstance(__obj, types.BuiltinMethodType):
            args = pay_for_method(budget, __obj.__self__, __obj.__name__, args, kwargs)
        elif __obj is dict:
            budget.spend_value([args, kwargs])
            args = tuple(budget.counted(arg) if isinstance(arg, list | tuple) else arg for arg in args)
        return __context.call(__obj, *args, **kwargs)


class AdapterEnvironment(SampleEnvironment):
    """Environment of model adapters, which build their result with `list.append` and `dict.update`."""

    changes_allowed = True


_OPERATORS: dict[str, Callable[[Any, Any], int]] = {
    "*": multiply_cost,
    "**": power_cost,
    "%": percent_cost,
}
"""Operators whose cost is more than the size of their result."""


def _all_finite(*values: Any) -> bool:
    return all(not isinstance(value, float) or math.isfinite(value) for value in values)


def _guarded_test(name: str, unpaid: _Sandbox) -> Callable[..., Any]:
    @pass_context
    def guarded(context: BoundedContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        context.budget.tick()
        return unpaid.call_test(name, value, args, kwargs, context=context)

    return guarded


def _guarded_filter(name: str, unpaid: _Sandbox) -> Callable[..., Any]:
    """Return a filter that pays for its input, its work and its result."""
    rule = RULES.get(name, FilterRule())
    # aigo-bridge's own filters take no context, except `sum`.
    direct = None if name == "sum" else FILTERS.get(name)

    @pass_context
    def guarded(context: BoundedContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = context.budget
        value, args = _pay_for_filter(budget, name, rule, value, args, kwargs)
        if direct is not None:
            result = direct(value, *args, **kwargs)
        else:
            result = unpaid.call_filter(name, value, args, kwargs, context=context)
        if isinstance(result, types.GeneratorType):
            return budget.counted(result)
        if isinstance(result, int):
            budget.spend_size(result)
        elif not rule.makes_nothing:
            budget.spend_value(result)
        return result

    return guarded


def _pay_for_filter(
    budget: Budget, name: str, rule: FilterRule, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """Pay for the input and the work of a filter; return its value and its arguments as it takes them."""
    budget.tick()
    if rule.takes_text and not isinstance(value, str | Undefined):
        budget.spend_value(value)
        value = text_of(value)
    if isinstance(value, str):
        budget.spend(len(value))
    if rule.takes_width:
        for number in (*args, *kwargs.values()):
            width(number)
    if rule.walks:
        value, args = whole(budget, value), tuple(whole(budget, arg) for arg in args)
    if rule.attribute is not None:
        attribute = args[rule.attribute] if len(args) > rule.attribute else kwargs.get("attribute")
        if isinstance(attribute, str) and attribute.count(".") + attribute.count(",") > MOST_LOOKUPS:
            raise OverBudgetError(f"an attribute has more than {MOST_LOOKUPS} names")
        if name == "join" and attribute is None and isinstance(value, list | tuple):
            value = _texts(budget, value)
    if name == "regex_replace":
        budget.check_time()
    if rule.cost is not None:
        budget.spend(rule.cost(value, *args, **kwargs))
    return value, args


def _texts(budget: Budget, values: Iterable[Any]) -> list[str]:
    for value in values:
        budget.spend_value(value)
    return list(map(text_of, values))


def source_line(template: jinja2.Template, error: BaseException) -> int | None:
    """Return the template line of an error from its traceback."""
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == _FILENAME:
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line


_FILENAME = "<template>"
"""File name of code that Jinja generates from a text."""

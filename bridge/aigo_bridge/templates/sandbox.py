# ruff: noqa: N802  # the visitors are named by Jinja
"""Jinja environment of AI GO templates: a sandbox with a budget, strict names, and columns before methods.

Differences from Jinja's own sandbox:

* Calls are checked against a list of allowed functions instead of forbidden ones. Jinja lets templates call
any public method of any reachable object; pydantic's `parse_raw` unpickles, and `parse_file` opens files.
* Every operation that can grow pays a `Budget` first (see `budget`). This needs a custom code generator,
because Jinja has hooks for operators and calls, but not for literals, `~`, loops and captured output.
* There are no random functions (`random`, `lipsum`), because evidence must be reproducible. There are no
includes, imports or blocks, because a prompt is one text.
* `sample.items` is the column `items` if it exists. Jinja looks up attributes first.
"""

from __future__ import annotations

import datetime as dt
import math
import operator as operator_functions
import re
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import jinja2
from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, LoopContext, Macro, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment, safe_range
from jinja2.utils import Cycler, Joiner, Namespace, pass_context

from aigo_bridge.templates import plain
from aigo_bridge.templates.budget import (
    WORK,
    BoundFormat,
    Budget,
    OverBudgetError,
    add,
    multiply,
    pay_for_method,
    percent_format,
    power,
    width,
)
from aigo_bridge.templates.filters import FILTERS, MAKES_NOTHING, TAKES_TEXT, TAKES_WIDTH, prepay
from aigo_bridge.templates.names import text_of


class BoundedContext(Context):
    """Variables of one rendering and its budget, which is set before rendering starts."""

    budget: Budget


class PayingGenerator(CodeGenerator):
    """Code generator that adds payments to loops, macros, literals and `~`."""

    def visit_Concat(self, node: nodes.Concat, frame: Frame) -> None:
        self.write("environment.join_texts(context, (")
        for part in node.nodes:
            self.visit(part, frame)
            self.write(", ")
        self.write("))")

    def visit_List(self, node: nodes.List, frame: Frame) -> None:
        self._paid(super().visit_List, node, frame, node.items)

    def visit_Tuple(self, node: nodes.Tuple, frame: Frame) -> None:
        if node.ctx == "load":
            self._paid(super().visit_Tuple, node, frame, node.items)
        else:
            super().visit_Tuple(node, frame)

    def visit_Dict(self, node: nodes.Dict, frame: Frame) -> None:
        self._paid(super().visit_Dict, node, frame, [pair.value for pair in node.items])

    def _paid(
        self, visit: Callable[[Any, Frame], None], node: nodes.Expr, frame: Frame, items: Iterable[nodes.Node]
    ) -> None:
        if all(isinstance(item, nodes.Const) for item in items):
            visit(node, frame)
            return
        self.write("environment.pay_for(context, ")
        visit(node, frame)
        self.write(")")

    def visit_For(self, node: nodes.For, frame: Frame) -> None:
        self.writeline("context.budget.tick()")
        node.body.insert(0, _tick_statement(node))
        if node.test is not None:
            # This also counts skipped items.
            node.test = nodes.And(nodes.ContextReference(), node.test, lineno=node.test.lineno)
        super().visit_For(node, frame)

    def visit_Macro(self, node: nodes.Macro, frame: Frame) -> None:
        node.body.insert(0, _tick_statement(node))
        super().visit_Macro(node, frame)

    def visit_CallBlock(self, node: nodes.CallBlock, frame: Frame) -> None:
        node.body.insert(0, _tick_statement(node))
        super().visit_CallBlock(node, frame)

    def visit_Getitem(self, node: nodes.Getitem, frame: Frame) -> None:
        if not isinstance(node.arg, nodes.Slice):
            super().visit_Getitem(node, frame)
            return
        self.write("environment.slice(context, ")
        self.visit(node.node, frame)
        for part in (node.arg.start, node.arg.stop, node.arg.step):
            self.write(", ")
            if part is None:
                self.write("None")
            else:
                self.visit(part, frame)
        self.write(")")

    def visit_Compare(self, node: nodes.Compare, frame: Frame) -> None:
        if len(node.ops) != 1 or _with_constant(node.expr, node.ops[0]):
            super().visit_Compare(node, frame)
            return
        (operand,) = node.ops
        self.write(f"environment.compare(context, {operand.op!r}, ")
        self.visit(node.expr, frame)
        self.write(", ")
        self.visit(operand.expr, frame)
        self.write(")")

    def visit_ContextReference(self, node: nodes.ContextReference, frame: Frame) -> None:
        # Jinja's node types cannot be extended, and no template text parses to a bare context reference.
        self.write("context.budget.tick()")


def _tick_statement(node: nodes.Node) -> nodes.ExprStmt:
    return nodes.ExprStmt(nodes.ContextReference(), lineno=node.lineno)


def _with_constant(left: nodes.Expr, operand: nodes.Operand) -> bool:
    """Return whether the cost of a comparison is limited by the length of a constant in the template."""
    right = operand.expr
    if operand.op in ("in", "notin"):
        return isinstance(right, nodes.List | nodes.Tuple) and all(
            isinstance(item, nodes.Const) for item in right.items
        )
    return isinstance(left, nodes.Const) or isinstance(right, nodes.Const)


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


class SampleEnvironment(ImmutableSandboxedEnvironment):
    """Environment of sample templates: their values cannot be changed."""

    code_generator_class = PayingGenerator
    context_class = BoundedContext
    concat = staticmethod(_bounded_concat)
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})
    changes_allowed = False

    def __init__(self, name: str, undefined: type[Undefined]):
        self.name = name
        """Name of the environment in the rendering process."""
        # Constant folding would run operators and filters during compilation, before a budget exists.
        super().__init__(
            undefined=undefined,
            finalize=_finalize,
            optimized=False,
            extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
        )
        self.filters.update(FILTERS)
        for name in ("random", "urlize"):
            del self.filters[name]
        del self.globals["lipsum"]
        self.globals["namespace"] = BoundedNamespace
        self.filters = {name: _guarded_filter(name, call) for name, call in self.filters.items()}
        self.tests = {
            name: _guarded_test(name, cast("Callable[..., Any]", call)) for name, call in self.tests.items()
        }

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

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        # Raise immediately: a lenient template would print an empty text.
        raise SecurityError(f"access to attribute {attribute!r} of {type(obj).__name__!r} object is unsafe")

    def wrap_str_format(self, value: Any) -> Any:
        if (
            isinstance(value, types.BuiltinMethodType)
            and value.__name__ in ("format", "format_map")
            and isinstance(value.__self__, str)
        ):
            return BoundFormat(value)
        return None

    def join_texts(self, context: BoundedContext, values: tuple[Any, ...]) -> str:
        """Compute `a ~ b`."""
        texts = []
        for value in values:
            context.budget.spend_value(value)
            texts.append(text_of(value))
        return "".join(texts)

    def pay_for(self, context: BoundedContext, value: Any) -> Any:
        """Pay for a list, tuple or map literal."""
        context.budget.spend_value(value)
        return value

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        assert isinstance(context, BoundedContext)
        budget = context.budget
        if budget.plain:
            plain.allow_operator(budget, operator, left, right)
        elif (pay := _PAY_FOR_OPERATOR.get(operator)) is not None:
            pay(budget, left, right)
        result = self.binop_table[operator](left, right)
        if type(result) is float and not math.isfinite(result) and _all_finite(left, right):
            raise OverflowError(f"the result of `{operator}` is too large for a number")
        return result

    def compare(self, context: BoundedContext, operator: str, left: Any, right: Any) -> Any:
        """Compute `left operator right` if neither is a constant."""
        if context.budget.plain:
            plain.allow_comparison(context.budget, operator, left, right)
        return _COMPARE[operator](left, right)

    def slice(self, context: BoundedContext, value: Any, start: Any, stop: Any, step: Any) -> Any:
        """Compute `value[start:stop:step]`."""
        if context.budget.plain:
            plain.allow_slice(context.budget, value)
        else:
            context.budget.tick()
        return value[start:stop:step]

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

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805, PYI063  # Jinja's signature, so that no keyword collides
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
        if budget.plain:
            plain.allow_call(budget, __obj, args, kwargs)
        if isinstance(__obj, BoundFormat):
            return __obj.run(__self, budget, args, kwargs)
        if isinstance(__obj, types.BuiltinMethodType):
            args = pay_for_method(budget, __obj.__self__, __obj.__name__, args, kwargs)
        elif __obj is dict:
            budget.spend_value([args, kwargs])
        return __context.call(__obj, *args, **kwargs)


class AdapterEnvironment(SampleEnvironment):
    """Environment of model adapters; published adapters build their result with `list.append` and
    `dict.update`.
    """

    changes_allowed = True

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator_functions.eq,
    "ne": operator_functions.ne,
    "gt": operator_functions.gt,
    "gteq": operator_functions.ge,
    "lt": operator_functions.lt,
    "lteq": operator_functions.le,
    "in": lambda left, right: left in right,
    "notin": lambda left, right: left not in right,
}
_PAY_FOR_OPERATOR: dict[str, Callable[[Budget, Any, Any], None]] = {
    "+": add,
    "*": multiply,
    "**": power,
    "%": percent_format,
}


def _all_finite(*values: Any) -> bool:
    return all(not isinstance(value, float) or math.isfinite(value) for value in values)


def _guarded_test(name: str, test: Callable[..., Any]) -> Callable[..., Any]:
    passes = getattr(test, "jinja_pass_arg", None)

    @pass_context
    def guarded(context: BoundedContext, *args: Any, **kwargs: Any) -> Any:
        context.budget.tick()
        if context.budget.plain:
            plain.allow_test(context.budget, name, args, kwargs)
        return test(*_first_argument(passes, context), *args, **kwargs)

    return guarded


def _first_argument(passes: Any, context: BoundedContext) -> tuple[Any, ...]:
    if passes is None:
        return ()
    return {
        "context": (context,),
        "eval_context": (context.eval_ctx,),
        "environment": (context.environment,),
    }[passes.name]


def _guarded_filter(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a filter so that it pays for its input, its work and its result."""
    passes = getattr(call, "jinja_pass_arg", None)
    prepays = prepay(name)

    @pass_context
    def guarded(context: BoundedContext, value: Any, *args: Any, **kwargs: Any) -> Any:
        budget = context.budget
        budget.tick()
        if budget.plain:
            plain.allow_filter(budget, name, value, args, kwargs)
        if name in TAKES_TEXT and not isinstance(value, str | Undefined):
            budget.spend_value(value)
            value = text_of(value)
        if isinstance(value, str):
            budget.spend(len(value))
        if name in TAKES_WIDTH:
            for number in (*args, *kwargs.values()):
                width(number)
        if prepays is not None:
            value, args, kwargs = prepays(budget, value, args, kwargs)
        result = call(*_first_argument(passes, context), value, *args, **kwargs)
        if name not in MAKES_NOTHING:
            budget.spend_value(result)
        return result

    return guarded


def source_line(error: BaseException) -> int | None:
    """Return the template line of an error from its traceback."""
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        template = traceback.tb_frame.f_globals.get("__jinja_template__")
        if isinstance(template, jinja2.Template):
            line = template.get_corresponding_lineno(traceback.tb_lineno)
        traceback = traceback.tb_next
    return line

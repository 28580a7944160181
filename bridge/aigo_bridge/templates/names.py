"""Names that a template reads, determined without rendering."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

from jinja2 import nodes
from jinja2.exceptions import UndefinedError
from jinja2.runtime import Undefined
from jinja2.utils import missing

NamePath = tuple[str, ...]
"""Variable and the names that are looked up in it: `("sample", "question")` for `{{ sample.question }}`."""

_IMPLICIT = frozenset({"loop", "self", "caller", "varargs", "kwargs"})


@dataclass
class Reads:
    """Names that a template reads.

    A name that the template itself sets anywhere is never reported: a missed check is better than refusing a
    valid template.
    """

    required: dict[NamePath, int] = field(default_factory=dict)
    """Names read in every rendering (including loop bodies) → line of the first use."""
    optional: dict[NamePath, int] = field(default_factory=dict)
    """Names read only under a condition, or checked with `is defined`, `default`, `in` or `.get`."""


def reads_of(tree: nodes.Template, known_globals: frozenset[str]) -> Reads:
    """Return the names that a parsed template reads; constant-false branches are skipped."""
    own = {
        node.name
        for node in tree.find_all((nodes.Name, nodes.Macro))
        if isinstance(node, nodes.Macro) or (isinstance(node, nodes.Name) and node.ctx in ("store", "param"))
    }
    walk = _Walk(own | _IMPLICIT | known_globals)
    for node in tree.body:
        walk.visit(node, conditional=False)
    longest = max(map(len, walk.guarded), default=0)
    for path in list(walk.reads.required):
        if any(path[:length] in walk.guarded for length in range(1, min(len(path), longest) + 1)):
            walk.reads.optional.setdefault(path, walk.reads.required.pop(path))
    for path in walk.reads.required:
        walk.reads.optional.pop(path, None)
    return walk.reads


class _Walk:
    def __init__(self, own: set[str] | frozenset[str]):
        self.own = own
        self.reads = Reads()
        self.guarded: set[NamePath] = set()

    def visit(self, node: nodes.Node, *, conditional: bool) -> None:
        if isinstance(node, nodes.If):
            self._branches(node.test, node.body, [*node.elif_, *node.else_], conditional=conditional)
        elif isinstance(node, nodes.CondExpr):
            self._branches(
                node.test, [node.expr1], [node.expr2] if node.expr2 else [], conditional=conditional
            )
        elif isinstance(node, nodes.And | nodes.Or):
            self.visit(node.left, conditional=conditional)
            self.visit(node.right, conditional=True)
        elif isinstance(node, nodes.Test) and node.name in ("defined", "undefined"):
            self._guard(node.node)
        elif isinstance(node, nodes.Filter) and node.name in ("default", "d") and node.node is not None:
            self._guard(node.node)
            self._children(node, conditional=conditional, skip=node.node)
        elif isinstance(node, nodes.Compare):
            self._membership(node)
            self._children(node, conditional=conditional)
        elif isinstance(node, nodes.Call):
            self._call(node, conditional=conditional)
        elif isinstance(node, nodes.Name | nodes.Getattr | nodes.Getitem):
            self._read(node, conditional=conditional)
        elif isinstance(node, nodes.Macro):
            # A macro may never be called.
            self._children(node, conditional=True)
        else:
            self._children(node, conditional=conditional)

    def _children(self, node: nodes.Node, *, conditional: bool, skip: nodes.Node | None = None) -> None:
        for child in node.iter_child_nodes():
            if child is not skip:
                self.visit(child, conditional=conditional)

    def _branches(
        self,
        test: nodes.Node,
        then: Sequence[nodes.Node],
        otherwise: Sequence[nodes.Node],
        *,
        conditional: bool,
    ) -> None:
        self.visit(test, conditional=conditional)
        certain = bool(test.value) if isinstance(test, nodes.Const) else None
        if certain is not False:
            for node in then:
                self.visit(node, conditional=conditional or certain is None)
        if certain is not True:
            for node in otherwise:
                self.visit(node, conditional=conditional or certain is None)

    def _call(self, node: nodes.Call, *, conditional: bool) -> None:
        called = node.node
        if isinstance(called, nodes.Getattr):
            # The last name is a method and not a column.
            path = path_of(called.node)
            if path and called.attr == "get" and node.args and isinstance(node.args[0], nodes.Const):
                self.guarded.add((*path, str(node.args[0].value)))
            self.visit(called.node, conditional=conditional)
        else:
            self.visit(called, conditional=conditional)
        self._children(node, conditional=conditional, skip=called)

    def _membership(self, node: nodes.Compare) -> None:
        """Handle `'x' in sample`, which checks a name without requiring it."""
        for operand in node.ops:
            path = path_of(operand.expr)
            if operand.op in ("in", "notin") and path and isinstance(node.expr, nodes.Const):
                self.guarded.add((*path, str(node.expr.value)))

    def _guard(self, node: nodes.Node) -> None:
        path = path_of(node)
        if path is None:
            self._children(node, conditional=True)
        elif path[0] not in self.own:
            self.guarded.add(path)
            self.reads.optional.setdefault(path, node.lineno)

    def _read(self, node: nodes.Name | nodes.Getattr | nodes.Getitem, *, conditional: bool) -> None:
        for inner in _other_parts(node):
            self.visit(inner, conditional=conditional)
        path = path_of(node)
        if path is None:
            inner = node.node if not isinstance(node, nodes.Name) else node
            if inner is not node:
                self.visit(inner, conditional=conditional)
        elif path[0] not in self.own and not (isinstance(node, nodes.Name) and node.ctx != "load"):
            names = self.reads.optional if conditional else self.reads.required
            names.setdefault(path, node.lineno)


def path_of(node: nodes.Node) -> NamePath | None:
    """Return the path of names that an expression looks up, up to the first look-up that is not a name.

    Return `None` if the expression does not start with a variable.
    """
    steps: list[str | None] = []
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        steps.append(_looked_up(node))
        node = node.node
    if not isinstance(node, nodes.Name):
        return None
    named = itertools.takewhile(lambda step: step is not None, reversed(steps))
    return (node.name, *(step for step in named if step is not None))


def whole_path(node: nodes.Node | None) -> NamePath | None:
    """Return the path of an expression that only looks up names, such as `sample.question`."""
    path = None if node is None else path_of(node)
    steps = 1
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        node, steps = node.node, steps + 1
    return path if path is not None and len(path) == steps else None


def _looked_up(node: nodes.Getattr | nodes.Getitem) -> str | None:
    if isinstance(node, nodes.Getattr):
        return node.attr
    return node.arg.value if isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str) else None


def _other_parts(node: nodes.Node) -> Iterator[nodes.Node]:
    """Yield expressions in the brackets of a look-up, such as `sample.index` in `letters[sample.index]`."""
    while isinstance(node, nodes.Getattr | nodes.Getitem):
        if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Const):
            yield node.arg
        node = node.node


def text_of(value: object) -> str:
    """Return the text of a value in a template.

    A class may define a static method `__template_text__(value) -> str | None`. It is called for objects of
    the class and for lists that start with one, such as the content parts of a message. For example, a model
    output is printed as the text of its first choice. Other values, and values for which it returns `None`,
    are printed as in Jinja: `str(value)`.
    """
    if isinstance(value, str):
        # `str` of a text enumeration member would be `Role.user`.
        return str(value.value) if isinstance(value, Enum) else str(value)
    text = own_text(value)
    return str(value) if text is None else text


def own_text(value: object) -> str | None:
    """Return the text from a value's `__template_text__`; `None` for values that are printed as in Jinja."""
    item = value[0] if isinstance(value, list) and value else value
    text_for = getattr(type(item), "__template_text__", None)
    text = None if text_for is None else text_for(value)
    return None if text is None else str(text)


class UnknownNameError(UndefinedError):
    """Read of a name that does not exist; `missing` identifies it."""

    def __init__(self, missing: MissingName):
        super().__init__(missing.explain())
        self.missing = missing


class MissingName(Undefined):
    """Undefined value that raises an error on use, but supports `default` and `is defined` through several
    levels.

    Jinja's strict class already fails at the dot in `sample.meta.lang | default("en")` if `meta` is missing.
    """

    __slots__ = ()

    def explain(self) -> str:
        """Return Jinja's error message."""
        return self._undefined_message

    def _fail(self, *_: Any, **__: Any) -> NoReturn:
        if self._undefined_exception is not UndefinedError:
            raise self._undefined_exception(self._undefined_message)
        raise UnknownNameError(self)

    def _beyond(self) -> MissingName:
        if self._undefined_exception is not UndefinedError:
            self._fail()
        return self

    @property
    def name(self) -> str | None:
        """Name that does not exist."""
        return None if self._undefined_name is None else str(self._undefined_name)

    @property
    def hint(self) -> str | None:
        """Jinja's explanation if the cause is not an unknown name."""
        return self._undefined_hint

    @property
    def owner(self) -> object:
        """Object without the name."""
        return self._undefined_obj

    @property
    def owner_is_unknown(self) -> bool:
        """Whether the missing name is a template variable instead of a part of a value."""
        return self._undefined_obj is missing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._beyond()

    def __getitem__(self, name: Any) -> Any:
        return self._beyond()

    __str__ = __iter__ = __len__ = __bool__ = __contains__ = __call__ = _fail
    __eq__ = __ne__ = __hash__ = __lt__ = __le__ = __gt__ = __ge__ = _fail
    __int__ = __float__ = __complex__ = __index__ = __neg__ = __pos__ = _fail
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _fail
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _fail

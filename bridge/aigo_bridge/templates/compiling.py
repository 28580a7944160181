"""From template text to something that renders, and from what Jinja says to an issue with its place."""

from __future__ import annotations

import difflib
import functools
import itertools
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.runtime import Undefined
from markupsafe import Markup

from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.templates.missing import MissingName, UnknownNameError
from aigo_bridge.templates.names import Reads, reads_of, whole_path
from aigo_bridge.templates.sandbox import SampleEnvironment, source_line

LONGEST_SOURCE = 16_000_000
"""Characters a template may have."""
MOST_TOKENS = 30_000
"""Tokens of Jinja code a template may have; literal text between two expressions is one token."""
_RESULT = "_aigo_result"
# Python refuses 100 levels of indentation and 20 nested loops.
_SMALL = 150
_FEW_LOOPS = 6
# Together far from the budget of a rendering.
_SHORT = 10_000
_MOST_PIECES = 100
# Names that a data set may have in a message, so that a hostile one does not fill the screen.
_LONGEST_NAME = 80
_MOST_NAMES = 1_000

_OTHER_TEMPLATES = (nodes.Block, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)

_RENDER_FAILURES = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What an expression over plain values can raise."""


class Compiled:
    """One text in one environment.

    Python code is generated when it is first needed: validating a folder of tasks or checking names against columns
    renders nothing, and generating is two thirds of the work.
    """

    def __init__(self, source: str, environment: SampleEnvironment):
        tree, found = _parse(source, environment)
        self.source = source
        self.reads = frozenset(found.required)
        self.optional_reads = frozenset(found.optional)
        self.lines = {**found.optional, **found.required}
        self._text = _constant_text(tree)
        self._pieces = _pieces(tree)
        self._environment = environment
        expression = _lone_expression(tree)
        self._is_expression = expression is not None
        self.lone_path = whole_path(expression)
        if not _surely_compiles(tree, environment):
            self._template  # noqa: B018  # generates, and raises what is wrong

    @functools.cached_property
    def _template(self) -> jinja2.Template:
        # From a fresh tree, because generating changes it.
        return _generate(self.source, self._environment.parse(self.source), self._environment)

    @functools.cached_property
    def _expression(self) -> jinja2.Template:
        """A template that keeps the value of the text's only expression."""
        expression = _lone_expression(self._environment.parse(self.source))
        assert expression is not None
        target = nodes.Name(_RESULT, "store", lineno=expression.lineno)
        whole = nodes.Template([nodes.Assign(target, expression, lineno=expression.lineno)], lineno=1)
        whole.set_environment(self._environment)
        return _generate(self.source, whole, self._environment)

    @property
    def constant(self) -> bool:
        return self._text is not None

    def render(self, variables: Mapping[str, Any]) -> str:
        if self._text is not None:
            return self._text
        if self._pieces is not None and (text := _joined(self._pieces, variables)) is not None:
            return text
        context = self._template.new_context(variables)  # type: ignore[arg-type]  # Jinja only reads it
        try:
            return self._environment.concat(self._template.root_render_func(context))
        except _RENDER_FAILURES as error:
            raise TemplateError([self._explained(error, variables)]) from error

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        if not self._is_expression:
            return self.render(variables)
        try:
            value = self._value(variables)
            if isinstance(value, MissingName):
                str(value)
        except _RENDER_FAILURES as error:
            raise TemplateError([self._explained(error, variables)]) from error
        return None if isinstance(value, Undefined) else value

    def exists(self, variables: Mapping[str, Any]) -> bool:
        if not self._is_expression:
            return True
        try:
            return not isinstance(self._value(variables), Undefined)
        except UnknownNameError:
            return False
        except _RENDER_FAILURES as error:
            raise TemplateError([self._explained(error, variables)]) from error

    def _value(self, variables: Mapping[str, Any]) -> Any:
        expression = self._expression
        context = expression.new_context(variables)  # type: ignore[arg-type]  # Jinja only reads it
        deque(expression.root_render_func(context), maxlen=0)
        value = context.vars[_RESULT]
        if isinstance(value, Markup):
            # `escape` makes texts that would escape whatever is added to them.
            return "".join(value)
        return list(value) if isinstance(value, Iterator | range) else value

    def _explained(self, error: BaseException, variables: Mapping[str, Any]) -> Issue:
        line = source_line(error)
        if isinstance(error, UnknownNameError):
            return self._unknown_name(error.missing, variables, line)
        if isinstance(error, RecursionError):
            text = "the template nests or calls itself too deeply"
        elif isinstance(error, SecurityError | jinja2.TemplateError):
            text = error.message or "the template failed"
        else:
            text = f"{type(error).__name__}: {error}"
        return Issue(text, line=line, source_line=self._line(line))

    def _unknown_name(self, missing: MissingName, variables: Mapping[str, Any], line: int | None) -> Issue:
        name = missing.name
        if name is None or missing.hint is not None:
            return Issue(missing.explain(), line=line, source_line=self._line(line))
        is_variable = missing.owner_is_unknown
        known = list(variables) if is_variable else _names_in(missing.owner)
        expression = name if is_variable else self._expression_for(name)
        listing = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
        close = difflib.get_close_matches(name, known, n=1)
        message = f"`{expression}` is undefined" + (f"; known: {listing}" if known else "")
        hint = f"did you mean `{expression.removesuffix(name)}{close[0]}`?" if close else None
        return Issue(message, line=line, hint=hint, source_line=self._line(line))

    def _expression_for(self, name: str) -> str:
        for path in sorted(self.lines, key=len):
            if name in path[1:]:
                return ".".join(path[: path.index(name, 1) + 1])
        return name

    def _line(self, line: int | None) -> str | None:
        lines = self.source.splitlines()
        return lines[line - 1] if line is not None and line <= len(lines) else None


@functools.lru_cache(maxsize=2048)
def compile_template(source: str, environment: SampleEnvironment) -> Compiled:
    """The compiled form of a text, made once. Raises `TemplateError`."""
    return Compiled(source, environment)


def _parse(source: str, environment: SampleEnvironment) -> tuple[nodes.Template, Reads]:
    if len(source) > LONGEST_SOURCE:
        raise TemplateError(
            f"a template of {len(source):,} characters; the longest allowed is {LONGEST_SOURCE:,}"
        )
    try:
        tree = _bounded_tree(source, environment)
        return tree, reads_of(tree, frozenset(environment.globals))
    except TemplateSyntaxError as error:
        raise TemplateError(
            [_syntax_issue(source, error.lineno, error.message or "", environment)]
        ) from error
    except TemplateError:
        raise
    except (RecursionError, MemoryError) as error:
        raise TemplateError("the template is nested too deeply") from error
    except ValueError as error:
        raise TemplateError(f"the template has a number that cannot be read: {error}") from error


def _bounded_tree(source: str, environment: SampleEnvironment) -> nodes.Template:
    for count, _ in enumerate(environment.lexer.tokeniter(source, None)):
        if count > MOST_TOKENS:
            raise TemplateError(f"a template of more than {MOST_TOKENS:,} tokens of code")
    tree = environment.parse(source)
    for node in tree.find_all(_OTHER_TEMPLATES):
        tag = type(node).__name__.lower().removeprefix("from")
        message = f"`{{% {tag} %}}` is not available: a template is one text"
        raise TemplateError([Issue(message, line=node.lineno, column=1)])
    return tree


def _generate(source: str, tree: nodes.Template, environment: SampleEnvironment) -> jinja2.Template:
    try:
        return environment.from_string(tree)
    except TemplateSyntaxError as error:
        raise TemplateError(
            [_syntax_issue(source, error.lineno, error.message or "", environment)]
        ) from error
    except SyntaxError as error:
        raise TemplateError(f"the template is nested too deeply: {error.msg}") from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise TemplateError("the template is nested too deeply") from error


def _constant_text(tree: nodes.Template) -> str | None:
    """What a text without expressions prints; `None` when there are any."""
    pieces = []
    for node in tree.body:
        parts = node.nodes if isinstance(node, nodes.Output) else [node]
        for part in parts:
            if not isinstance(part, nodes.TemplateData):
                return None
            pieces.append(part.data)
    return "".join(pieces)


def _pieces(tree: nodes.Template) -> tuple[str | tuple[str, str], ...] | None:
    """Texts, and columns such as `("sample", "question")`, where a text is made of nothing else."""
    pieces: list[str | tuple[str, str]] = []
    for node in tree.body:
        for part in node.nodes if isinstance(node, nodes.Output) else [node]:
            match part:
                case nodes.TemplateData(data=text):
                    pieces.append(text)
                case nodes.Getattr(node=nodes.Name(name=name), attr=attribute):
                    pieces.append((name, attribute))
                case _:
                    return None
    return tuple(pieces) if len(pieces) <= _MOST_PIECES else None


def _joined(pieces: tuple[str | tuple[str, str], ...], variables: Mapping[str, Any]) -> str | None:
    """What such a text prints where all columns are short texts, as most are; `None`: Jinja has to say.

    It is a tenth of the work, and what Jinja would print: texts as they are.
    """
    texts: list[str] = []
    for piece in pieces:
        if type(piece) is tuple:
            row = variables.get(piece[0])
            value = row.get(piece[1]) if type(row) is dict else None
            if type(value) is not str or len(value) > _SHORT:
                return None
            texts.append(value)
        else:
            texts.append(piece)  # type: ignore[arg-type]  # `type(…) is` narrows one way only
    return "".join(texts)


def _lone_expression(tree: nodes.Template) -> nodes.Expr | None:
    """The expression that is all there is in a text, apart from space around it."""
    if len(tree.body) != 1 or not isinstance(tree.body[0], nodes.Output):
        return None
    parts = [
        part
        for part in tree.body[0].nodes
        if not (isinstance(part, nodes.TemplateData) and not part.data.strip())
    ]
    return None if len(parts) != 1 or isinstance(parts[0], nodes.TemplateData) else parts[0]


def _surely_compiles(tree: nodes.Template, environment: SampleEnvironment) -> bool:
    """Whether generating code cannot fail: small, no macros, every filter and test known."""
    loops = 0
    for count, node in enumerate(tree.find_all(nodes.Node)):
        if count > _SMALL or isinstance(node, nodes.Macro | nodes.CallBlock):
            return False
        if isinstance(node, nodes.For):
            loops += 1
            if loops > _FEW_LOOPS:
                return False
        elif isinstance(node, nodes.Filter):
            if node.name not in environment.filters:
                return False
        elif isinstance(node, nodes.Test):
            if node.name not in environment.tests:
                return False
        elif isinstance(node, nodes.Name) and node.name == "loop" and node.ctx == "store":
            return False
    return True


def _syntax_issue(source: str, line: int, message: str, environment: SampleEnvironment) -> Issue:
    lines = source.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Issue(
        _lower_first(message.rstrip(".")),
        line=line,
        column=_column(text, environment),
        source_line=text,
    )


def _column(text: str, environment: SampleEnvironment) -> int:
    """1-based column of the first tag of a line that does not compile alone; Jinja keeps only lines."""
    first = None
    start = 0
    while (start := _next_tag(text, start)) >= 0:
        first = start + 1 if first is None else first
        close = {"{{": "}}", "{%": "%}", "{#": "#}"}[text[start : start + 2]]
        end = text.find(close, start)
        if end < 0:
            return start + 1
        if close == "}}":
            try:
                environment.from_string(text[start : end + 2])
            except (TemplateSyntaxError, RecursionError, SyntaxError, MemoryError, ValueError):
                return start + 1
        start = end + 2
    return first or 1


def _next_tag(text: str, start: int) -> int:
    found = [place for tag in ("{{", "{%", "{#") if (place := text.find(tag, start)) >= 0]
    return min(found, default=-1)


def _names_in(value: object) -> list[str]:
    names = map(str, value) if isinstance(value, Mapping) else iter(getattr(type(value), "model_fields", ()))
    return [name[:_LONGEST_NAME] for name in itertools.islice(names, _MOST_NAMES)]


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]

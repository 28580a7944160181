"""From template text to its tree, within fixed bounds, and to something that renders; and from what Jinja
says to an issue with its place.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
import itertools
import json
import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.runtime import Undefined
from markupsafe import Markup

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, TemplateError, issue_from
from aigo_bridge.templates import rendering
from aigo_bridge.templates.budget import Budget, OverBudgetError
from aigo_bridge.templates.names import MissingName, Reads, UnknownNameError, reads_of, whole_path
from aigo_bridge.templates.plain import is_plain
from aigo_bridge.templates.sandbox import BoundedContext, SampleEnvironment, source_line

LONGEST_SOURCE = 16_000_000
"""Characters a template may have."""
MOST_TOKENS = 30_000
"""Tokens of Jinja code a template may have; literal text between two expressions is one token."""
_MOST_PROBLEMS = 20
_LONGEST_NUMBER = 1_000
# Characters of a number that is shown whole.
_SHOWN = 80
# Characters of a line in which a place is looked for.
_SHORT_EXPRESSION = 10_000
_TAG = re.compile(r"\{[{%#]")
_LINE_END = re.compile(r"\r\n|\r|\n")

_OTHER_TEMPLATES = (nodes.Block, nodes.Extends, nodes.Include, nodes.Import, nodes.FromImport)


def parse(source: str, environment: SampleEnvironment) -> tuple[nodes.Template, Reads]:
    """The tree of a text, and the names that it reads. Raises `TemplateError`."""
    if len(source) > LONGEST_SOURCE:
        raise TemplateError(
            f"a template of {len(source):,} characters; the longest allowed is {LONGEST_SOURCE:,}",
            code=Code.TEMPLATE_TOO_COSTLY,
        )
    try:
        tree = _bounded_tree(source, environment)
        return tree, reads_of(tree, frozenset(environment.globals))
    except TemplateSyntaxError as error:
        raise TemplateError([syntax_issue(source, error.lineno, error.message or "", environment)]) from error
    except TemplateError:
        raise
    except (RecursionError, MemoryError) as error:
        raise TemplateError("the template is nested too deeply", code=Code.TEMPLATE_TOO_COSTLY) from error
    except ValueError as error:
        raise TemplateError(
            f"the template has a number that cannot be read: {error}", code=Code.TEMPLATE_SYNTAX
        ) from error


def _bounded_tree(source: str, environment: SampleEnvironment) -> nodes.Template:
    numbers: list[tuple[int, str]] = []
    for count, (line, kind, text) in enumerate(environment.lexer.tokeniter(source, None)):
        if count > MOST_TOKENS:
            raise TemplateError(
                f"a template of more than {MOST_TOKENS:,} tokens of code", code=Code.TEMPLATE_TOO_COSTLY
            )
        if kind in ("float", "integer") and not _is_finite(kind, text):
            numbers.append((line, text))
    if numbers:
        raise TemplateError(_number_issues(source, numbers))
    tree = environment.parse(source)
    for node in tree.find_all(_OTHER_TEMPLATES):
        tag = type(node).__name__.lower().removeprefix("from")
        message = f"`{{% {tag} %}}` is not available: a template is one text"
        raise TemplateError([Issue(message, line=node.lineno, column=1, code=Code.TEMPLATE_SYNTAX)])
    return tree


def _is_finite(kind: str, text: str) -> bool:
    """Whether a number that a template writes down can be computed with."""
    return math.isfinite(float(text)) if kind == "float" else len(text) <= _LONGEST_NUMBER


def _number_issues(source: str, numbers: Sequence[tuple[int, str]]) -> list[Issue]:
    lines = _LINE_END.split(source)
    return [
        Issue(
            f"`{text}` is too large for a number; the largest is about 1.8e308"
            if len(text) < _SHOWN
            else f"a number of {len(text):,} characters; the longest allowed is {_LONGEST_NUMBER:,}",
            line=line,
            column=lines[line - 1].find(text) + 1,
            source_line=lines[line - 1],
            code=Code.TEMPLATE_SYNTAX,
        )
        for line, text in numbers[:_MOST_PROBLEMS]
    ]


def syntax_issue(source: str, line: int, message: str, environment: SampleEnvironment) -> Issue:
    """What Jinja says of a line of the text."""
    lines = _LINE_END.split(source)
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    return Issue(
        _lower_first(message.rstrip(".")),
        line=line,
        column=_column(text, environment),
        source_line=text,
        code=Code.TEMPLATE_SYNTAX,
    )


def _column(text: str, environment: SampleEnvironment) -> int:
    """1-based column of the first tag of a line that does not compile alone; Jinja keeps only lines."""
    column = None
    start = 0
    while (tag := _TAG.search(text, start, _SHORT_EXPRESSION)) is not None:
        start = tag.start()
        column = start + 1 if column is None else column
        close = {"{{": "}}", "{%": "%}", "{#": "#}"}[text[start : start + 2]]
        end = text.find(close, start)
        if end < 0:
            return start + 1
        if close == "}}" and end - start < _SHORT_EXPRESSION:
            try:
                environment.from_string(text[start : end + 2])
            except (TemplateSyntaxError, RecursionError, SyntaxError, MemoryError, ValueError):
                return start + 1
        start = end + 2
    return column or 1


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


_RESULT = "_aigo_result"
# Python refuses 100 levels of indentation and 20 nested loops.
_SMALL = 150
_FEW_LOOPS = 6
# Together far from the budget of a rendering.
_SHORT = 10_000
_MOST_PIECES = 100
# Names that a dataset may have in a message, so that a hostile one does not fill the screen.
_LONGEST_NAME = 80
_MOST_NAMES = 1_000

# Rows that may keep the runner waiting to no end, before the template is taken for what it is.
_MOST_SLOW_ROWS = 5

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


class _NotPlainNowError(Exception):
    """A template of the plain kind, with values that are not."""


class Compiled:
    """One text in one environment.

    Python code is generated when it is first needed: validating a folder of tasks or checking names against
    columns renders nothing, and generating is two thirds of the work.
    """

    def __init__(self, source: str, environment: SampleEnvironment):
        tree, reads = parse(source, environment)
        self.source = source
        self.reads = frozenset(reads.required)
        self.optional_reads = frozenset(reads.optional)
        self.lines = {**reads.optional, **reads.required}
        self._text = _constant_text(tree)
        self._pieces = _pieces(tree)
        self._environment = environment
        walked = list(tree.find_all(nodes.Node))
        self.is_plain = is_plain(walked)
        """Whether it is rendered where it is asked for, as long as its values are as plain."""
        self._names = frozenset(node.name for node in walked if isinstance(node, nodes.Name))
        self._slow: dict[bytes, str] = {}
        """What was said when it took too long, by the digest of the values."""
        expression = _lone_expression(tree)
        self._is_expression = expression is not None
        self.lone_path = whole_path(expression)
        if not _surely_compiles(walked, environment):
            if self.is_plain or rendering.renders_here():
                self.generate()
            else:
                self._elsewhere("generate", {})

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

    def generate(self) -> None:
        """Generate its code now, and raise what is wrong with it."""
        self._template  # noqa: B018  # compiles it

    def render(self, variables: Mapping[str, Any]) -> str:
        if self._text is not None:
            return self._text
        if self._pieces is not None and (text := _joined(self._pieces, variables)) is not None:
            return text
        return str(self._anywhere("render", self.render_here, variables))

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        if not self._is_expression:
            return self.render(variables)
        return self._anywhere("evaluate", self.evaluate_here, variables)

    def exists(self, variables: Mapping[str, Any]) -> bool:
        if not self._is_expression:
            return True
        return bool(self._anywhere("exists", self.exists_here, variables))

    def _anywhere(self, job: str, here: Callable[..., Any], variables: Mapping[str, Any]) -> Any:
        """Do a job in this process as long as all is plain, else in one that can be killed."""
        if self.is_plain:
            try:
                return here(variables, plain=True)
            except _NotPlainNowError:
                pass
        return self._elsewhere(job, variables)

    def render_here(self, variables: Mapping[str, Any], *, plain: bool = False) -> str:
        """`render` in this process; `plain`: only as long as nothing comes up that is not plain."""
        template = self._template
        try:
            return self._environment.concat(template.root_render_func(_context(template, variables, plain)))
        except _RENDER_FAILURES as error:
            raise self._failure(error, variables, plain) from error

    def evaluate_here(self, variables: Mapping[str, Any], *, plain: bool = False) -> Any:
        """`evaluate` in this process, as `render_here`."""
        try:
            value = self._value(variables, plain)
            if isinstance(value, MissingName):
                str(value)
        except _RENDER_FAILURES as error:
            raise self._failure(error, variables, plain) from error
        return None if isinstance(value, Undefined) else value

    def exists_here(self, variables: Mapping[str, Any], *, plain: bool = False) -> bool:
        """`exists` in this process, as `render_here`."""
        try:
            return not isinstance(self._value(variables, plain), Undefined)
        except UnknownNameError:
            return False
        except _RENDER_FAILURES as error:
            raise self._failure(error, variables, plain) from error

    def _failure(self, error: BaseException, variables: Mapping[str, Any], plain: bool) -> Exception:
        if plain and isinstance(error, OverBudgetError | MemoryError | RecursionError):
            return _NotPlainNowError()
        return TemplateError([self._explained(error, variables)])

    def _elsewhere(self, job: str, variables: Mapping[str, Any]) -> Any:
        """Have a job done by a process that can be killed."""
        # It is told which variables there are, and given those that it names.
        named = {name: value for name, value in variables.items() if name in self._names}
        try:
            values = rendering.pickled(named)
        except TypeError as error:
            raise TemplateError(str(error), code=Code.TEMPLATE_FAILED) from error
        if self._slow:
            self._refuse_slow(values)
        request = rendering.pickled((job, self._environment.name, self.source, tuple(variables), values))
        try:
            answer = rendering.exchange(request)
        except rendering.RenderingStoppedError as error:
            if error.slow:
                self._slow[_digest(values)] = str(error)
            raise TemplateError(str(error), code=Code.TEMPLATE_TOO_COSTLY) from error
        kind, content = answer[:1], answer[1:]
        if kind == b"t":
            return content.decode("utf-8", "surrogatepass")
        if kind == b"v":
            return rendering.read(content)
        slow, issues = json.loads(content)
        problem = TemplateError(list(map(issue_from, issues)))
        if slow:
            self._slow[_digest(values)] = str(problem)
        raise problem

    def _refuse_slow(self, values: bytes) -> None:
        """Each job that takes too long keeps the runner waiting: none is done twice, and after a few rows
        none at all.
        """
        message = self._slow.get(_digest(values))
        if message is not None:
            raise TemplateError(message, code=Code.TEMPLATE_TOO_COSTLY)
        if len(self._slow) >= _MOST_SLOW_ROWS:
            count = f"{_MOST_SLOW_ROWS} different rows"
            raise TemplateError(
                f"the template took too long with {count} and is not rendered again",
                code=Code.TEMPLATE_TOO_COSTLY,
            )

    def _value(self, variables: Mapping[str, Any], plain: bool) -> Any:
        expression = self._expression
        context = _context(expression, variables, plain)
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
        return Issue(text, line=line, source_line=self._line(line), code=Code.TEMPLATE_FAILED)

    def _unknown_name(self, missing: MissingName, variables: Mapping[str, Any], line: int | None) -> Issue:
        name = missing.name
        if name is None or missing.hint is not None:
            return Issue(missing.explain(), line=line, source_line=self._line(line), code=Code.UNKNOWN_NAME)
        is_variable = missing.owner_is_unknown
        known = list(variables) if is_variable else _names_in(missing.owner)
        expression = name if is_variable else self._expression_for(name)
        listing = ", ".join(known[:20]) + (", …" if len(known) > 20 else "")
        close = difflib.get_close_matches(name, known, n=1)
        message = f"`{expression}` is undefined" + (f"; known: {listing}" if known else "")
        hint = f"did you mean `{expression.removesuffix(name)}{close[0]}`?" if close else None
        return Issue(message, line=line, hint=hint, source_line=self._line(line), code=Code.UNKNOWN_NAME)

    def _expression_for(self, name: str) -> str:
        for path in sorted(self.lines, key=len):
            if name in path[1:]:
                return ".".join(path[: path.index(name, 1) + 1])
        return name

    def _line(self, line: int | None) -> str | None:
        lines = self.source.splitlines()
        return lines[line - 1] if line is not None and line <= len(lines) else None


def _context(template: jinja2.Template, variables: Mapping[str, Any], plain: bool) -> BoundedContext:
    context: BoundedContext = template.new_context(variables)  # type: ignore[assignment, arg-type]  # Jinja only reads them
    context.budget = Budget(plain=plain)
    return context


@functools.lru_cache(maxsize=2048)
def compile_template(source: str, environment: SampleEnvironment) -> Compiled:
    """The compiled form of a text, made once. Raises `TemplateError`."""
    return Compiled(source, environment)


def _generate(source: str, tree: nodes.Template, environment: SampleEnvironment) -> jinja2.Template:
    try:
        return environment.from_string(tree)
    except TemplateSyntaxError as error:
        raise TemplateError([syntax_issue(source, error.lineno, error.message or "", environment)]) from error
    except SyntaxError as error:
        raise TemplateError(
            f"the template is nested too deeply: {error.msg}", code=Code.TEMPLATE_TOO_COSTLY
        ) from error
    except (RecursionError, MemoryError, ValueError, OverflowError) as error:
        raise TemplateError("the template is nested too deeply", code=Code.TEMPLATE_TOO_COSTLY) from error


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


def _surely_compiles(tree: Sequence[nodes.Node], environment: SampleEnvironment) -> bool:
    """Whether generating code cannot fail: small, no macros, every filter and test known."""
    if len(tree) > _SMALL:
        return False
    loops = 0
    for node in tree:
        if isinstance(node, nodes.Macro | nodes.CallBlock):
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


def _digest(values: bytes) -> bytes:
    return hashlib.sha256(values).digest()


def _names_in(value: object) -> list[str]:
    names = map(str, value) if isinstance(value, Mapping) else iter(getattr(type(value), "model_fields", ()))
    return [name[:_LONGEST_NAME] for name in itertools.islice(names, _MOST_NAMES)]

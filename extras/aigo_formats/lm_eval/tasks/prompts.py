"""Templates of lm-evaluation-harness as templates of AI GO: `{{question}}` is `{{sample.question}}` there.

A template is taken apart by Jinja's own lexer, and put together again with the columns behind `sample`. What
comes out is only believed if its tree is the tree of what went in, with these names replaced.
"""

from __future__ import annotations

import json
import re
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError

from aigo_bridge.errors import TemplateError
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.templates.sample import ENVIRONMENTS

LONGEST = 100_000
"""Characters that a template may have."""

COLUMN = re.compile(r"[A-Za-z_]\w*")
"""What is taken for the name of a column where it stands alone. The harness looks into the dataset."""

# Trees are read here, nothing is rendered.
_JINJA = jinja2.Environment(keep_trailing_newline=True)  # noqa: S701  # no page of HTML
_BEHIND = frozenset({".", "|"})
"""Tokens behind which a name is none of a variable."""


class UntranslatableError(ValueError):
    """A template that has no form in AI GO."""


def text_of(template: str) -> str:
    """A template that prints what the harness makes of one, for it to stand within another.

    Raises:
        UntranslatableError: the message says why.
    """
    return f"{{{{ sample.{template} }}}}" if COLUMN.fullmatch(template) else translated(template)


def expression_of(template: str) -> str | None:
    """An expression of the value that the harness takes from one; `None` where it prints a text.

    Raises:
        UntranslatableError: the message says why.
    """
    if COLUMN.fullmatch(template):
        return f"sample.{template}"
    tree = _tree(template.strip())
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[_])]:
            # What is printed may be asked to eat the blanks around it.
            inner = translated(template.strip()).removeprefix("{{").removesuffix("}}")
            return f"({inner.removeprefix('-').removesuffix('-').strip()})"
    return None


def check_syntax(template: str) -> None:
    """Refuse what the harness could not render either.

    Raises:
        UntranslatableError: the message says why.
    """
    _tree(template)


def literal(value: Any) -> str:
    """A constant within an expression."""
    # Jinja reads the escapes of JSON.
    return json.dumps(value)


def translated(template: str) -> str:
    """The template with the columns of the dataset behind `sample`.

    Raises:
        UntranslatableError: it is none, or uses what templates of AI GO have not.
    """
    tree = _tree(template)
    columns = _columns(tree)
    written = _rewritten(template, columns)
    if _tree(written) != _replaced(tree, columns):
        raise UntranslatableError("a name in it is a column at one place and something else at another")
    environment = ENVIRONMENTS["strict"]
    for kind, names in ((nodes.Filter, environment.filters), (nodes.Test, environment.tests)):
        for used in tree.find_all(kind):
            if used.name not in names:
                raise UntranslatableError(f"AI GO's templates have no {kind.__name__.lower()} {used.name!r}")
    try:
        SampleTemplate(written)
    except TemplateError as error:
        raise UntranslatableError(error.issues[0].message) from error
    return written


def _tree(template: str) -> nodes.Template:
    if len(template) > LONGEST:
        raise UntranslatableError(f"it has more than {LONGEST:,} characters")
    try:
        return _JINJA.parse(template)
    except TemplateSyntaxError as error:
        raise UntranslatableError(f"it is no template: {error.message}, line {error.lineno}") from error
    except RecursionError:
        raise UntranslatableError("it is nested too deeply") from None


def _columns(tree: nodes.Template) -> frozenset[str]:
    """Names that the template reads and does not set."""
    names = list(tree.find_all(nodes.Name))
    stored = {name.name for name in names if name.ctx != "load"}
    stored |= {macro.name for macro in tree.find_all(nodes.Macro)}
    return frozenset(
        name.name for name in names if name.name not in stored and name.name not in {"loop", *_JINJA.globals}
    )


def _rewritten(template: str, columns: frozenset[str]) -> str:
    tokens = list(_JINJA.lexer.tokeniter(template, None))
    ink = [number for number, (_, kind, _) in enumerate(tokens) if kind != "whitespace"]
    around = {number: (ink[at - 1], ink[at + 1]) for at, number in enumerate(ink) if 0 < at < len(ink) - 1}
    parts: list[str] = []
    for number, (_, kind, text) in enumerate(tokens):
        before, behind = around.get(number, (0, 0))
        is_column = (
            kind == "name"
            and text in columns
            and tokens[before][2] not in _BEHIND
            and not (tokens[before][2] in ("is", "not") and _is_test(tokens, before))
            and not (tokens[behind][2] == "=" and tokens[before][2] in ("(", ","))
        )
        parts.append(f"sample.{text}" if is_column else text)
    return "".join(parts)


def _is_test(tokens: list[tuple[int, str, str]], at: int) -> bool:
    """Whether what follows a token is the name of a test: behind `is`, or `is not`."""
    if tokens[at][2] == "is":
        return True
    earlier = [text for _, kind, text in tokens[:at] if kind != "whitespace"]
    return bool(earlier) and earlier[-1] == "is"


def _replaced(node: Any, columns: frozenset[str]) -> Any:
    """A tree with columns looked up in `sample`."""
    if isinstance(node, nodes.Name) and node.ctx == "load" and node.name in columns:
        return nodes.Getattr(nodes.Name("sample", "load"), node.name, "load")
    if isinstance(node, nodes.Node):
        for name, value in node.iter_fields():
            setattr(node, name, _replaced(value, columns))
        return node
    return [_replaced(part, columns) for part in node] if isinstance(node, list) else node

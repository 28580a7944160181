"""Conversion of lm-evaluation-harness templates to AI GO templates: `{{question}}` becomes
`{{sample.question}}`.

Jinja's own lexer splits a template, and the columns get the prefix `sample`. The result is accepted only if
its syntax tree equals the original tree with these names replaced.
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
from aigo_bridge.templates.sample import STRICT

LONGEST = 100_000
"""Maximum characters of a template."""

COLUMN = re.compile(r"[A-Za-z_]\w*")
"""Pattern of a template that is only a column name. The harness looks it up in the dataset."""

# Only for syntax trees. This environment never renders a template.
_JINJA = jinja2.Environment(keep_trailing_newline=True)  # noqa: S701  # not an HTML page
_BEHIND = frozenset({".", "|"})
"""Tokens that make the following name something other than a variable."""


class UntranslatableError(ValueError):
    """Error for a template that AI GO cannot express."""


def text_of(template: str) -> str:
    """Return a template that prints the harness's value and can be embedded in another template.

    Raises:
        UntranslatableError: the template cannot be converted. The message contains the reason.
    """
    return f"{{{{ sample.{template} }}}}" if COLUMN.fullmatch(template) else translated(template)


def expression_of(template: str) -> str | None:
    """Return an expression for the value that the harness uses; `None` if the template prints text.

    Raises:
        UntranslatableError: the template cannot be converted. The message contains the reason.
    """
    if COLUMN.fullmatch(template):
        return f"sample.{template}"
    tree = _tree(template.strip())
    match tree.body:
        case [nodes.Output(nodes=[nodes.TemplateData()])]:
            return None
        case [nodes.Output(nodes=[_])]:
            # Remove whitespace control characters of the print statement.
            inner = translated(template.strip()).removeprefix("{{").removesuffix("}}")
            return f"({inner.removeprefix('-').removesuffix('-').strip()})"
    return None


def check_syntax(template: str) -> None:
    """Refuse templates that the harness itself could not render.

    Raises:
        UntranslatableError: the template is not valid. The message contains the reason.
    """
    _tree(template)


def literal(value: Any) -> str:
    """Return a constant for use in an expression."""
    # Jinja understands the escapes of JSON.
    return json.dumps(value)


def translated(template: str) -> str:
    """Return the template with the prefix `sample` for the dataset's columns.

    Raises:
        UntranslatableError: the template is not valid or uses features that AI GO templates do not
            support.
    """
    tree = _tree(template)
    columns = _columns(tree)
    written = _rewritten(template, columns)
    if _tree(written) != _replaced(tree, columns):
        raise UntranslatableError("a name in it is a column in one place and something else in another")
    for kind, names in ((nodes.Filter, STRICT.filters), (nodes.Test, STRICT.tests)):
        for used in tree.find_all(kind):
            if used.name not in names:
                raise UntranslatableError(f"AI GO's templates lack the {kind.__name__.lower()} {used.name!r}")
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
        raise UntranslatableError(f"it is not a template: {error.message}, line {error.lineno}") from error
    except RecursionError:
        raise UntranslatableError("it is nested too deeply") from None


def _columns(tree: nodes.Template) -> frozenset[str]:
    """Return the names that the template reads but does not set."""
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
    """Return whether a test name follows a token, after `is` or `is not`."""
    if tokens[at][2] == "is":
        return True
    earlier = [text for _, kind, text in tokens[:at] if kind != "whitespace"]
    return bool(earlier) and earlier[-1] == "is"


def _replaced(node: Any, columns: frozenset[str]) -> Any:
    """Return a syntax tree that reads columns from `sample`."""
    if isinstance(node, nodes.Name) and node.ctx == "load" and node.name in columns:
        return nodes.Getattr(nodes.Name("sample", "load"), node.name, "load")
    if isinstance(node, nodes.Node):
        for name, value in node.iter_fields():
            setattr(node, name, _replaced(value, columns))
        return node
    return [_replaced(part, columns) for part in node] if isinstance(node, list) else node

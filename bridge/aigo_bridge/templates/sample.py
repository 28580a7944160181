"""Sample templates: `{{ sample.x }}` is rendered once per sample."""

from __future__ import annotations

import ast
import json
from typing import Any

from jinja2.runtime import ChainableUndefined

from aigo_bridge.codes import Code
from aigo_bridge.errors import TemplateError
from aigo_bridge.templates.compiling import compile_template
from aigo_bridge.templates.names import MissingName, NamePath
from aigo_bridge.templates.sandbox import AdapterEnvironment, SampleEnvironment

LONGEST_LITERAL = 100_000
"""Maximum characters of a list in Python notation; JSON has no such limit."""

STRICT = SampleEnvironment(MissingName)
"""Environment of sample templates."""
_ADAPTER = AdapterEnvironment(ChainableUndefined)


class SampleTemplate:
    """Compiled template of one field, rendered for every sample.

    Compiling the same text again only takes a look-up. A template stores no rendering state, so several
    threads may render it at the same time.

    An unknown name is an error unless the template checks it with `is defined` or supplies a `default`.
    Rendering is limited (see `budget`).

    Raises `TemplateError` if the text is not a valid template; the issue has line and column in the text.
    """

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str):
        self.source = source
        self._compiled = compile_template(source, STRICT)

    def __repr__(self) -> str:
        return f"SampleTemplate({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleTemplate) and self.source == other.source

    def __hash__(self) -> int:
        return hash(self.source)

    def __reduce__(self) -> tuple[Any, ...]:
        return (SampleTemplate, (self.source,))

    @property
    def reads(self) -> frozenset[NamePath]:
        """Names that every rendering looks up, such as `("sample", "question")`."""
        return self._compiled.reads

    @property
    def optional_reads(self) -> frozenset[NamePath]:
        """Names looked up only under a condition, or with a guard (`is defined`, `default`, `in`, `.get`)."""
        return self._compiled.optional_reads

    @property
    def lone_path(self) -> NamePath | None:
        """Name that the text's single expression looks up without further operations; otherwise `None`."""
        return self._compiled.lone_path

    @property
    def is_constant(self) -> bool:
        """Whether the text contains no expressions."""
        return self._compiled.constant

    def locate(self, file: str, line: int) -> None:
        """Set the file and first line of the text, for errors of templates that are too costly."""
        self._compiled.place = (file, line)

    def line_of(self, path: NamePath) -> int | None:
        """Return the line, from 1, of the first use of a name in `reads` or `optional_reads`."""
        return self._compiled.lines.get(path)

    def render(self, /, **variables: Any) -> str:
        """Render the text for one sample.

        Raises `TemplateError` with the expression, its line and the available names.
        """
        return self._compiled.render(variables)

    def evaluate(self, /, **variables: Any) -> Any:
        """Return the value if the whole text is one `{{ expression }}`, otherwise the rendered text.

        Raises `TemplateError` like `render`.
        """
        return self._compiled.evaluate(variables)

    def exists(self, /, **variables: Any) -> bool:
        """Return whether the name in the text's single expression exists, with any value; for other texts,
        return true.

        Raises `TemplateError` like `render`, except for unknown names.
        """
        return self._compiled.exists(variables)


class CompiledAdapter:
    """Template of a model adapter: builds a request or parses a response.

    Published adapters change lists and maps with `append` and `update` during rendering, unlike sample
    templates. They change copies of the caller's values. Unknown names are printed as an empty text, because
    adapters check for fields that only some models send.

    Raises `TemplateError` if the text is not a valid template.
    """

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str):
        self.source = source
        self._compiled = compile_template(source, _ADAPTER)

    def render(self, /, **variables: Any) -> str:
        """Render the text; raise `TemplateError` on failure."""
        return self._compiled.render(variables)


def as_list(value: Any) -> list[Any]:
    """Return the list of a field after `evaluate`: a list itself, or the list in a JSON or Python text.

    Raises `TemplateError` with the found value.
    """
    if isinstance(value, list):
        return value
    if isinstance(value, tuple | range):
        return list(value)
    if not isinstance(value, str):
        raise TemplateError(
            f"found a value of type {type(value).__name__!r}, expected a list", code=Code.TEMPLATE_FAILED
        )
    items = _parsed(value)
    if not isinstance(items, list | tuple):
        shown = value if len(value) <= 80 else value[:77] + "…"
        raise TemplateError(
            f"found the text {shown!r}, expected a list in JSON or Python form", code=Code.TEMPLATE_FAILED
        )
    return list(items)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    if len(text) > LONGEST_LITERAL:
        return None
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None

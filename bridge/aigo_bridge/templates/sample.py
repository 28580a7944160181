"""`{{ sample.x }}`: templates rendered once per sample."""

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
"""Characters of a list spelt in Python's form; JSON has no such limit."""

_STRICT = SampleEnvironment("strict", undefined=MissingName)
_LENIENT = SampleEnvironment("lenient", undefined=ChainableUndefined)
_ADAPTER = AdapterEnvironment("adapter", undefined=ChainableUndefined)
ENVIRONMENTS = {environment.name: environment for environment in (_STRICT, _LENIENT, _ADAPTER)}
"""By name, for the process that renders what is not plain."""


class SampleTemplate:
    """A compiled template of one field, rendered for every sample.

    Compiling the same text again costs a look-up. A template holds no state of a rendering: any number of
    threads may render it at the same time.

    With `lenient=True` a name that does not exist prints as nothing; otherwise it is an error unless the
    template asks with `is defined` or supplies a `default`. Rendering is bounded (see `bounds`).

    Raises `TemplateError` when the text is not a template; the issue has line and column inside the text.
    """

    __slots__ = ("_compiled", "lenient", "source")

    def __init__(self, source: str, *, lenient: bool = False):
        self.source = source
        self.lenient = lenient
        self._compiled = compile_template(source, _LENIENT if lenient else _STRICT)

    def __repr__(self) -> str:
        return f"SampleTemplate({self.source!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SampleTemplate) and (self.source, self.lenient) == (
            other.source,
            other.lenient,
        )

    def __hash__(self) -> int:
        return hash((self.source, self.lenient))

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuilt, (self.source, self.lenient))

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
        """The name that the text's one expression looks up, where it does nothing else with it."""
        return self._compiled.lone_path

    @property
    def is_constant(self) -> bool:
        """Whether the text has no expression at all."""
        return self._compiled.constant

    def line_of(self, path: NamePath) -> int | None:
        """1-based line of the first use of a name in `reads` or `optional_reads`."""
        return self._compiled.lines.get(path)

    def render(self, /, **variables: Any) -> str:
        """The text for one sample.

        Raises `TemplateError` naming the expression, its line and what there is instead.
        """
        return self._compiled.render(variables)

    def evaluate(self, /, **variables: Any) -> Any:
        """The value itself when the whole text is one `{{ expression }}`, otherwise the rendered text.

        Raises `TemplateError` as `render` does.
        """
        return self._compiled.evaluate(variables)

    def exists(self, /, **variables: Any) -> bool:
        """Whether what the text's one expression names is there, whatever its value; other texts always
        exist.

        Raises `TemplateError` as `render` does, for other reasons than an unknown name.
        """
        return self._compiled.exists(variables)


class AdapterTemplate:
    """A model adapter's template: builds request text or reads response text.

    Published adapters fill lists and maps with `append` and `update` while they render, which sample
    templates may not. What does so is rendered in another process, so what the caller passed stays as it was.
    Unknown names print as nothing: adapters probe for fields that not every model sends.

    Raises `TemplateError` when the text is not a template.
    """

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str):
        self.source = source
        self._compiled = compile_template(source, _ADAPTER)

    def render(self, /, **variables: Any) -> str:
        """The text. Raises `TemplateError`."""
        return self._compiled.render(variables)


def as_list(value: Any) -> list[Any]:
    """A list-valued field after `evaluate`: a list as it is, or the list that a JSON or Python text spells.

    Raises `TemplateError` saying what was found.
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


def _rebuilt(source: str, lenient: bool) -> SampleTemplate:
    return SampleTemplate(source, lenient=lenient)

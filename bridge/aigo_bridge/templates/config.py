"""Substitution of `<< config.x >>`: values are inserted into a task once, before a run.

The substitution is one regular expression pass over every string of the parsed document, including text from
included prompts and Python files. It is not Jinja with other delimiters, because that would fail for Python
shifts (`1 << 3`) and for `{% if << config.flag >> %}`.
"""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, TemplateError
from aigo_bridge.templates.budget import Budget, OverBudgetError

_NAME = r"[^\W\d][\w\-]*"
_MARKER = re.compile(rf"<<\s*(config|secrets)\.({_NAME}(?:\.[\w\-]+)*)\s*>>")
# Text of this form with another root is a typo if the root is similar to ours.
# In Python code, `1 << other.bits >> 2` is arithmetic.
_LOOKALIKE = re.compile(rf"<<\s*({_NAME})(?:\.{_NAME})+\s*>>")
_LARGEST_DOCUMENT = (
    64_000_000  # Maximum characters that are inserted into one document; a list element counts as `ITEM`.
)
_MOST_ISSUES = 1_000


def is_config_template(value: object) -> bool:
    """Return whether a value is one `<< config.x >>` or `<< secrets.x >>` and whitespace."""
    return isinstance(value, str) and _MARKER.fullmatch(value.strip()) is not None


def config_names(text: str) -> list[str]:
    """Return the dotted names `x` of all `<< config.x >>` in a text, in order of first use."""
    return list(dict.fromkeys(name for root, name in _MARKER.findall(text) if root == "config"))


def bind_config(value: Any, config: Mapping[str, Any], *, secrets: Mapping[str, Any] | None = None) -> Any:
    """Insert config values into every string of a JSON-like tree and return the new tree.

    A string that is a single marker becomes the value with its type (lists and maps are copied). A marker in
    a longer text is replaced by `str(value)`. This is Python's notation because the result may be Python
    source or a Jinja condition, where `True` and `None` are valid, but JSON's `true` is not always. Inserted
    text is not substituted again. Keys of maps are unchanged.

    Raises `TemplateError` with one issue per unknown name, each with its path in the tree.
    """
    binding = _Binding({"config": config, "secrets": secrets})
    bound = binding.bind(value, ())
    if binding.issues:
        raise TemplateError(binding.issues)
    return bound


@dataclass
class _Binding:
    roots: Mapping[str, Mapping[str, Any] | None]
    issues: list[Issue] = field(default_factory=list)
    budget: Budget = field(default_factory=Budget)
    overdrawn: bool = False

    def __post_init__(self) -> None:
        self.budget.left = _LARGEST_DOCUMENT

    def bind(self, value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, str):
            return self._bind_text(value, path) if "<<" in value else value
        if isinstance(value, Mapping):
            return {key: self.bind(item, (*path, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.bind(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _bind_text(self, text: str, path: tuple[str | int, ...]) -> Any:
        self._report_lookalikes(text, path)
        marker = _MARKER.fullmatch(text.strip())
        try:
            if marker:
                return copy.deepcopy(self._paid(marker, text, path))
            pieces: list[str] = []
            end = 0
            for match in _MARKER.finditer(text):
                pieces += [text[end : match.start()], str(self._paid(match, text, path))]
                end = match.end()
        except OverBudgetError:
            if not self.overdrawn:
                self.overdrawn = True
                message = f"config values make the document longer than {_LARGEST_DOCUMENT:,} characters"
                self.issues.append(Issue(message, path=path, code=Code.TEMPLATE_TOO_COSTLY))
            return text
        pieces.append(text[end:])
        return "".join(pieces)

    def _paid(self, match: re.Match[str], text: str, path: tuple[str | int, ...]) -> Any:
        value = self._look_up(match, text, path)
        self.budget.spend_value(value)
        return value

    def _look_up(self, match: re.Match[str], text: str, path: tuple[str | int, ...]) -> Any:
        if len(self.issues) >= _MOST_ISSUES:
            return ""
        root, dotted_name = match[1], match[2]
        values = self.roots[root]
        if values is None:
            self._report(match, text, path, f"`{root}.{dotted_name}` is not available here")
            return ""
        if dotted_name in values:
            return values[dotted_name]
        value: Any = values
        reached: list[str] = [root]
        for name in dotted_name.split("."):
            if not isinstance(value, Mapping):
                where = ".".join(reached)
                self._report(
                    match, text, path, f"`{where}` has no parts, so `.{name}` cannot be looked up in it"
                )
                return ""
            if name not in value:
                self._report_unknown(match, text, path, ".".join([*reached, name]), name, list(value))
                return ""
            value = value[name]
            reached.append(name)
        return value

    def _report_unknown(
        self,
        match: re.Match[str],
        text: str,
        path: tuple[str | int, ...],
        full_name: str,
        name: str,
        known: list[str],
    ) -> None:
        listing = ", ".join(map(str, known[:20])) + (", …" if len(known) > 20 else "") if known else "none"
        close = difflib.get_close_matches(name, map(str, known), n=1)
        hint = f"did you mean `{full_name.removesuffix(name)}{close[0]}`?" if close else None
        self._report(match, text, path, f"unknown parameter `{full_name}`; known: {listing}", hint)

    def _report_lookalikes(self, text: str, path: tuple[str | int, ...]) -> None:
        for match in _LOOKALIKE.finditer(text):
            root = match[1]
            if root in self.roots:
                continue
            if len(self.issues) >= _MOST_ISSUES:
                return
            close = difflib.get_close_matches(root.lower(), self.roots, n=1, cutoff=0.75)
            if close:
                message = f"`{match[0]}` looks like a template, but {root!r} is not 'config' or 'secrets'"
                self._report(match, text, path, message, f"did you mean `<< {close[0]}.… >>`?")

    def _report(
        self,
        match: re.Match[str],
        text: str,
        path: tuple[str | int, ...],
        message: str,
        hint: str | None = None,
    ) -> None:
        line, column = position(text, match.start())
        self.issues.append(
            Issue(message, line=line, column=column, path=path, hint=hint, code=Code.UNKNOWN_PLACEHOLDER)
        )


def position(text: str, offset: int) -> tuple[int, int]:
    """Return line and column, from 1, of a character offset."""
    line = text.count("\n", 0, offset) + 1
    return line, offset - (text.rfind("\n", 0, offset) + 1) + 1

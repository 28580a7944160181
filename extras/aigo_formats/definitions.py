"""YAML of other projects: what a file says, with the place of every value; nothing that it names is run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.access.opening import read_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.text.summaries import summary_of

MOST_BYTES = 1 << 20
"""Bytes that one file may have; the largest task of lm-evaluation-harness has a tenth of it."""
MOST_VALUES = 100_000
"""Values that a definition may come to, aliases written out."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Function:
    """What `!function` names; it is never run."""

    name: str


@dataclass(frozen=True)
class ValuePosition:
    """Where a value stands."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Definition:
    """What a file says, includes put below its own keys as the harness does."""

    path: Path
    values: Mapping[str, Any]
    places: Mapping[KeyPath, ValuePosition]
    warnings: tuple[Issue, ...] = ()
    """What is odd about it, and goes as the harness takes it."""

    def issue(self, path: KeyPath, message: str, code: Code, hint: str | None = None, **more: Any) -> Issue:
        """A problem with the value at a path, or with the nearest one around it."""
        place = next(
            (
                self.places[path[:length]]
                for length in range(len(path), 0, -1)
                if path[:length] in self.places
            ),
            ValuePosition(str(self.path), 1, 1),
        )
        return Issue(message, place.file, place.line, place.column, path=path, hint=hint, code=code, **more)


class Parts:
    """What is made of a definition, and what cannot be."""

    def __init__(self, definition: Definition):
        self.definition = definition
        self.fatal: list[Issue] = []
        """What stands in the way."""
        self.lost: list[Issue] = []
        """What the task would lack; it can be allowed."""
        self.told: list[Issue] = list(definition.warnings)
        """What is different."""

    def refuse(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Note what stands in the way."""
        self.fatal.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint))

    def lose(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Note what would be lost."""
        self.lost.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint))

    def tell(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Note what is different."""
        self.told.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint, severity="warning"))


@dataclass(frozen=True)
class Dialect:
    """What a project's files of YAML may hold."""

    project: str
    """Its name, for people."""
    has_functions: bool = False
    """Whether it knows `!function`."""


class _Loader(yaml.SafeLoader):
    """As projects load it, but for functions."""


def _function(_: yaml.SafeLoader, node: yaml.Node) -> Function:
    return Function(str(node.value))


def _plain(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return loader.construct_scalar(node)


_Loader.add_constructor("!function", _function)
# No date is meant in a task; one that is none would be an error.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _plain)


def read_yaml(
    path: Path, shown: str, dialect: Dialect, warnings: list[Issue]
) -> tuple[dict[str, Any], dict[KeyPath, ValuePosition]]:
    """A mapping and the places of its values.

    Args:
        path: the file.
        shown: its name in messages.
        dialect: of its project.
        warnings: gets what is odd, and goes as the project takes it.

    Raises:
        SpecError: it cannot be read; all problems at once.
    """
    text = _text(path, shown)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places = _places(node, shown, dialect, warnings)
        values: dict[str, Any] = loader.construct_document(node)
    except SpecError:
        raise
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or summary_of(error)
        raise _failure(
            f"not YAML: {problem}", shown, Code.NOT_YAML, getattr(error, "problem_mark", None)
        ) from error
    except RecursionError:
        raise _failure("it is nested too deeply", shown, Code.TOO_MUCH) from None
    except (ValueError, KeyError, TypeError) as error:  # `!!bool maybe`, say
        raise _failure(f"not YAML: a value is none of its tag: {error}", shown, Code.NOT_YAML) from error
    return values, places


def _failure(message: str, file: str, code: Code, mark: Any = None) -> SpecError:
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return SpecError([Issue(message, file, line, column, code=code)])


def _text(path: Path, shown: str) -> str:
    try:
        return read_regular(path, MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        raise _failure(f"{shown!r} does not exist", shown, Code.MISSING_FILE) from None
    except OSError as error:
        message = f"{shown!r} cannot be read: {error.strerror or error}"
        raise _failure(message, shown, Code.UNREADABLE_FILE) from error
    except UnicodeDecodeError as error:
        raise _failure(f"{shown!r} is not UTF-8 text", shown, Code.NOT_UTF8) from error


def _places(
    node: yaml.Node | None, file: str, dialect: Dialect, warnings: list[Issue]
) -> dict[KeyPath, ValuePosition]:
    if not isinstance(node, yaml.MappingNode):
        message = f"{file!r} holds no mapping, as a task of {dialect.project} does"
        raise _failure(message, file, Code.UNKNOWN_KIND)
    places: dict[KeyPath, ValuePosition] = {}
    issues: list[Issue] = []
    for number, (path, inner, issue) in enumerate(_walk(node, (), file, dialect)):
        if number > MOST_VALUES:
            raise _failure(f"it comes to more than {MOST_VALUES:,} values", file, Code.TOO_MUCH)
        if issue is not None:
            (issues if issue.severity == "error" else warnings).append(issue)
        if path:
            places.setdefault(
                path, ValuePosition(file, inner.start_mark.line + 1, inner.start_mark.column + 1)
            )
    if issues:
        raise SpecError(issues)
    return places


def _walk(
    node: yaml.Node, path: KeyPath, file: str, dialect: Dialect
) -> Iterator[tuple[KeyPath, yaml.Node, Issue | None]]:
    """All values with their paths, aliases written out, and what is wrong with them."""
    issue: Issue | None = None
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if node.tag.startswith("!") and not (dialect.has_functions and node.tag == "!function"):
        hint = f"{dialect.project} knows {'`!function` alone' if dialect.has_functions else 'no tags'}"
        issue = Issue(f"unknown tag {node.tag!r}", file, line, column, path, hint, code=Code.UNKNOWN_TAG)
    elif node.tag == "!function" and not isinstance(node, yaml.ScalarNode):
        issue = Issue("`!function` names no function", file, line, column, path, code=Code.WRONG_TYPE)
    yield path, node, issue
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                at = key.start_mark
                yield (
                    path,
                    key,
                    Issue("a key is no text", file, at.line + 1, at.column + 1, path, code=Code.KEY_NOT_TEXT),
                )
                continue
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                at = key.start_mark
                message = f"the key {key.value!r} stands here twice; the last one counts"
                yield (
                    (*path, key.value),
                    value,
                    Issue(
                        message,
                        file,
                        at.line + 1,
                        at.column + 1,
                        path,
                        severity="warning",
                        code=Code.REPEATED_KEY,
                    ),
                )
            seen.add(key.value)
            yield from _walk(value, (*path, key.value), file, dialect)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _walk(value, (*path, number), file, dialect)

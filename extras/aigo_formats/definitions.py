"""Reader of other projects' YAML files, with the position of every value. Code that a file names is never
executed.
"""

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
"""Maximum file size in bytes. The largest task of lm-evaluation-harness has a tenth of it."""
MOST_VALUES = 100_000
"""Maximum number of values in a definition, with expanded aliases."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Function:
    """Function named by `!function`. It is never executed."""

    name: str


@dataclass(frozen=True)
class ValuePosition:
    """Position of a value."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Definition:
    """Content of a file. Its own keys override keys from includes, as in the harness."""

    path: Path
    values: Mapping[str, Any]
    places: Mapping[KeyPath, ValuePosition]
    warnings: tuple[Issue, ...] = ()
    """Unusual parts that the project's own loader accepts."""

    def issue(self, path: KeyPath, message: str, code: Code, hint: str | None = None, **more: Any) -> Issue:
        """Return an issue for the value at a path, or for the nearest enclosing value."""
        place = next(
            (
                self.places[path[:length]]
                for length in range(len(path), 0, -1)
                if path[:length] in self.places
            ),
            ValuePosition(str(self.path), 1, 1),
        )
        return Issue(message, place.file, place.line, place.column, path=path, hint=hint, code=code, **more)


class ConvertedParts:
    """Converted parts of a definition, and the parts that cannot be converted."""

    def __init__(self, definition: Definition):
        self.definition = definition
        self.fatal: list[Issue] = []
        """Issues that prevent the conversion."""
        self.lost: list[Issue] = []
        """Parts that would be lost. The user can allow this."""
        self.told: list[Issue] = list(definition.warnings)
        """Differences from the original task."""

    def refuse(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Record an issue that prevents the conversion."""
        self.fatal.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint))

    def lose(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Record a part that would be lost."""
        self.lost.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint))

    def tell(self, path: KeyPath, message: str, hint: str | None = None) -> None:
        """Record a difference."""
        self.told.append(self.definition.issue(path, message, Code.UNTRANSLATED, hint, severity="warning"))


@dataclass(frozen=True)
class Dialect:
    """Features of a project's YAML files."""

    project: str
    """Project name for messages."""
    has_functions: bool = False
    """Whether the project supports `!function`."""


class _Loader(yaml.SafeLoader):
    """Loader that behaves like the projects' own loaders, except for functions."""


def _function(_: yaml.SafeLoader, node: yaml.Node) -> Function:
    return Function(str(node.value))


def _plain(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return loader.construct_scalar(node)


_Loader.add_constructor("!function", _function)
# Tasks do not contain dates, and an invalid date would raise an error.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _plain)


def read_yaml(
    path: Path, shown: str, dialect: Dialect, warnings: list[Issue]
) -> tuple[dict[str, Any], dict[KeyPath, ValuePosition]]:
    """Read a mapping and the positions of its values.

    Args:
        path: the file.
        shown: file name in messages.
        dialect: features of the project.
        warnings: list for unusual parts that the project's own loader accepts.

    Raises:
        SpecError: the file cannot be read. The error contains all problems.
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
    except (ValueError, KeyError, TypeError) as error:  # for example `!!bool maybe`
        raise _failure(f"not YAML: a value does not match its tag: {error}", shown, Code.NOT_YAML) from error
    return values, places


def _failure(message: str, file: str, code: Code, mark: Any = None) -> SpecError:
    line, column = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
    return SpecError(message, file=file, line=line, column=column, code=code)


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
        message = f"{file!r} is not a mapping, as a task of {dialect.project} must be"
        raise _failure(message, file, Code.UNKNOWN_KIND)
    places: dict[KeyPath, ValuePosition] = {}
    issues: list[Issue] = []
    for number, (path, inner, issue) in enumerate(_walk(node, (), file, dialect)):
        if number > MOST_VALUES:
            raise _failure(f"it expands to more than {MOST_VALUES:,} values", file, Code.TOO_MUCH)
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
    """Yield all values with their paths and problems. Aliases are expanded."""
    issue: Issue | None = None
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if node.tag.startswith("!") and not (dialect.has_functions and node.tag == "!function"):
        hint = (
            f"{dialect.project} supports {'only the tag `!function`' if dialect.has_functions else 'no tags'}"
        )
        issue = Issue(f"unknown tag {node.tag!r}", file, line, column, path, hint, code=Code.UNKNOWN_TAG)
    elif node.tag == "!function" and not isinstance(node, yaml.ScalarNode):
        issue = Issue("`!function` without a function name", file, line, column, path, code=Code.WRONG_TYPE)
    yield path, node, issue
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                at = key.start_mark
                yield (
                    path,
                    key,
                    Issue(
                        "a key is not text", file, at.line + 1, at.column + 1, path, code=Code.KEY_NOT_TEXT
                    ),
                )
                continue
            if key.value in seen and key.tag != "tag:yaml.org,2002:merge":
                at = key.start_mark
                message = f"the key {key.value!r} appears twice; the last value is used"
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

"""Loading of files into one tree of nodes: environment variables, then `!include` (text), then `$ref` (parsed
YAML).

Every file must be in the root folder, so that a task from another person cannot read unrelated files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from aigo_bridge.access.grants import record_file
from aigo_bridge.access.in_memory import unsaved
from aigo_bridge.access.opening import (
    FileTooLargeError,
    IrregularFileError,
    conversion,
    read_regular,
    wrong_byte,
)
from aigo_bridge.access.private import refusal
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading.nodes import (
    MAP,
    MAX_CHARACTERS,
    MAX_DEPTH,
    MAX_FILE_BYTES,
    NULL,
    STR,
    IncludedNode,
    Sizes,
    TooLarge,
    VariableNode,
    compose,
    issue_at,
    measure,
    place_of,
    shown,
)
from aigo_bridge.reading.variables import Variables, is_candidate

# Most files do not contain includes, references or variables and skip the second pass.
_TO_FOLLOW = re.compile(r"""!include|(?:^|[\s"'\[{,:])\$""")
_REMOTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:|#")


class Unreadable(Exception):  # noqa: N818  # private to this package
    """Unreadable file; `issue` contains the reason and, if known, the position in the file."""

    def __init__(self, issue: Issue):
        super().__init__(issue.message)
        self.issue = issue


@dataclass
class Loader:
    """Loader of one document with all its files. It keeps their texts for messages."""

    root: Path
    env: Mapping[str, str]
    issues: list[Issue] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    """Text of each file by the file name in marks."""
    has_variables: bool = False
    """Whether values name environment variables, which `Variables` expands when the kind is known."""
    unsaved: dict[str, str] = field(default_factory=dict)
    """Texts that replace the content of files, by the absolute paths of the files."""
    failed: set[tuple[str, int, int]] = field(default_factory=set)
    """Positions (file, line, column) of references to unreadable files."""
    _loaded: dict[str, Node | None] = field(default_factory=dict)
    _sizes: Sizes = field(default_factory=dict)
    _included: dict[str, str] = field(default_factory=dict)
    """Included texts, stripped, by name. Each is stored once, even if several includes use it."""
    _num_included: int = 0
    """Total number of included characters. A repeated include counts again."""

    @cached_property
    def variables(self) -> Variables:
        """Expands environment variables in values."""
        return Variables(self.env, self.issues, self.failed)

    def load(self, path: Path) -> Node | None:
        """Load the document of a file and resolve everything in it; return `None` if the file is empty.

        Raises:
            Unreadable: the file itself cannot be read. Problems of files that it refers to are added to
                `issues`.
        """
        return self._load(path, str(path.absolute()), (), 0)

    def _load(
        self, path: Path, real: str, parents: tuple[str, ...], depth: int, written: str | None = None
    ) -> Node | None:
        if real in self._loaded:
            return self._loaded[real]
        name = str(path)
        text = self.unsaved[real] if real in self.unsaved else read_text(path, name, written)
        self.texts[name] = text
        try:
            node = compose(text, name)
            if node is not None:
                followed = _TO_FOLLOW.search(text) is not None
                if followed:
                    node = self._follow_node(node, path.parent, (*parents, real), depth, {})
                if followed or "&" in text:
                    measure(node, self._sizes)
        except TooLarge as error:
            mark = error.mark
            file, line, column = (mark.name, mark.line + 1, mark.column + 1) if mark else (name, None, None)
            raise Unreadable(
                Issue(f"file {error.message}", file, line, column, code=Code.TOO_MUCH)
            ) from error
        except yaml.YAMLError as error:
            raise Unreadable(_syntax_issue(error, text, name)) from error
        self._loaded[real] = node
        return node

    def _follow_node(
        self, node: Node, folder: Path, parents: tuple[str, ...], depth: int, done: dict[int, Node]
    ) -> Node:
        if depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} levels deep", node.start_mark)
        if node.tag == "!include":
            return self._include(node, folder)
        if isinstance(node, ScalarNode):
            return node
        if id(node) in done:
            return done[id(node)]
        done[id(node)] = node  # An alias inside its own anchor ends here; `measure` reports it.
        if isinstance(node, SequenceNode):
            node.value = [self._follow_node(item, folder, parents, depth + 1, done) for item in node.value]
            return node
        assert isinstance(node, MappingNode)
        pairs = []
        reference: Node | None = None
        for key, written in node.value:
            is_variable = (
                isinstance(written, ScalarNode) and written.tag == STR and is_candidate(written.value)
            )
            value = VariableNode(written) if is_variable else written
            if isinstance(key, ScalarNode) and key.tag == STR and key.value == "$ref":
                reference = self._path_of(value)
            else:
                self.has_variables = self.has_variables or is_variable
                pairs.append((key, self._follow_node(value, folder, parents, depth + 1, done)))
        node.value = pairs
        if reference is not None:
            merged = self._referenced(node, reference, folder, parents, depth)
            done[id(node)] = merged
            return merged
        return node

    def _path_of(self, reference: Node) -> Node:
        """Return a reference with its variables expanded. Only allowed variables are expanded, because a path
        may be sent or shown.
        """
        if not isinstance(reference, VariableNode):
            return reference
        text = self.variables.text(reference, "granted")
        return ScalarNode(STR, text, reference.start_mark, reference.end_mark, reference.style)

    def _include(self, node: Node, folder: Path) -> Node:
        if not isinstance(node, ScalarNode):
            return self._failed(
                node, issue_at(node, "'!include' takes the path of one text file", code=Code.WRONG_REFERENCE)
            )
        try:
            name = str(self._confined(node.value, folder)[0])
            if name not in self.texts:
                self.texts[name] = read_text(Path(name), name, node.value)
        except Unreadable as error:
            return self._failed(node, _blame(node, "!include", error.issue))
        text = self.texts[name]
        if name not in self._included:
            self._included[name] = text.strip()
        stripped = self._included[name]
        self._num_included += len(stripped)
        if self._num_included > MAX_CHARACTERS:
            raise TooLarge(f"expands to more than {MAX_CHARACTERS:,} characters", node.start_mark)
        skipped = text[: len(text) - len(text.lstrip())].count("\n")
        return IncludedNode(node, stripped, name, skipped)

    def _referenced(
        self, node: MappingNode, reference: Node, folder: Path, parents: tuple[str, ...], depth: int
    ) -> Node:
        if place_of(reference) in self.failed:  # The variable caused the failure.
            return ScalarNode(NULL, "", reference.start_mark, reference.end_mark)
        if not isinstance(reference, ScalarNode) or reference.tag != STR:
            return self._failed(
                reference,
                issue_at(reference, "'$ref' takes the path of one YAML file", code=Code.WRONG_REFERENCE),
            )
        if _REMOTE.match(reference.value):
            message = f"'$ref' takes the path of a file, found {shown(reference.value)}"
            hint = "URLs and fragments are not supported"
            return self._failed(reference, issue_at(reference, message, code=Code.WRONG_REFERENCE, hint=hint))
        try:
            path, real = self._confined(reference.value, folder)
            if real in parents:
                chain = " → ".join(Path(step).name for step in (*parents[parents.index(real) :], real))
                message = f"files refer to each other in a circle: {chain}"
                return self._failed(reference, issue_at(reference, message, code=Code.REFERENCE_CIRCLE))
            target = self._load(path, real, parents, depth + 1, reference.value)
        except Unreadable as error:
            return self._failed(reference, _blame(reference, "$ref", error.issue))
        if not node.value:
            return target if target is not None else ScalarNode(NULL, "", node.start_mark, node.end_mark)
        return self._merged(node, reference, target)

    def _merged(self, node: MappingNode, reference: ScalarNode, target: Node | None) -> Node:
        if not isinstance(target, MappingNode):
            self.issues.append(
                issue_at(
                    reference,
                    "a '$ref' next to other keys needs a file that contains a mapping",
                    code=Code.WRONG_REFERENCE,
                )
            )
            return node
        theirs = {key.value: value for key, value in target.value if isinstance(key, ScalarNode)}
        entries = []
        for key, value in node.value:
            if isinstance(key, ScalarNode) and key.value in theirs:
                message = f"{key.value!r} is also in {reference.value!r}, and the value there is used"
                self.issues.append(issue_at(key, message, code=Code.SHADOWED_KEY, severity="warning"))
            else:
                entries.append((key, value))
        return MappingNode(MAP, entries + target.value, node.start_mark, node.end_mark)

    def _failed(self, node: Node, issue: Issue) -> ScalarNode:
        """Return a placeholder for an unreadable file, so that consequential errors are not reported."""
        self.issues.append(issue)
        self.failed.add(place_of(node))
        return ScalarNode(STR if node.tag == "!include" else NULL, "", node.start_mark, node.end_mark)

    def _confined(self, written: str, folder: Path) -> tuple[Path, str]:
        """Return the path of `written` relative to `folder`, inside the root folder, and its real path."""
        if "\x00" in written or not written.strip():
            raise Unreadable(Issue(f"{shown(written)} is not a path", code=Code.WRONG_VALUE))
        path = Path(os.path.normpath(folder / written))
        real = os.path.realpath(folder / written)
        if (issue := refusal(folder / written, self.root, shown(written), own=folder)) is not None:
            raise Unreadable(issue)
        record_file(path)
        return path, real


_BINARY = {
    b"PK\x03\x04": "the file is an archive; import Inspect logs with `aigo-bridge import`",
    b"PAR1": ("the file is Parquet: dataset rows, or lighteval details for `aigo-bridge import`"),
    b"\x1f\x8b": "the file is compressed; decompress it first",
    b"\x28\xb5\x2f\xfd": "the file is compressed; decompress it first",
}
"""First bytes of files that are not text → description."""


def read_text(path: Path, name: str, written: str | None = None) -> str:
    """Return the text of a file, or its unsaved text in an editor, with line feeds as line ends.

    Args:
        path: the file.
        name: file name for positions.
        written: file name for messages, if it was written in another form.

    Raises:
        Unreadable: the file is missing, not a regular file, too large, or not UTF-8.
    """
    if (edited := unsaved(path)) is not None:
        return with_line_feeds(edited)
    called = repr(written if written is not None else name)
    try:
        raw = read_regular(path, MAX_FILE_BYTES)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise Unreadable(Issue(f"{called} does not exist", file=name, code=Code.MISSING_FILE)) from error
    except (IrregularFileError, FileTooLargeError) as error:
        raise Unreadable(Issue(f"{called} {error.strerror}", file=name, code=Code.UNREADABLE_FILE)) from error
    except OSError as error:
        raise Unreadable(
            Issue(f"{called} cannot be read: {error.strerror}", file=name, code=Code.UNREADABLE_FILE)
        ) from error
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        preceding = raw[: error.start]
        start = preceding.rfind(b"\n") + 1
        binary = next((hint for sign, hint in _BINARY.items() if raw.startswith(sign)), None)
        raise Unreadable(
            Issue(
                f"{called} is not UTF-8 text: {wrong_byte(error)}",
                file=name,
                line=preceding.count(b"\n") + 1,
                column=len(preceding[start:].decode("utf-8", "replace")) + 1,
                hint=binary or conversion(error, str(path)),
                code=Code.NOT_UTF8,
            )
        ) from error
    return with_line_feeds(text)


def with_line_feeds(text: str) -> str:
    """Return a text with all line ends converted to line feeds."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _blame(node: Node, verb: str, issue: Issue) -> Issue:
    """Return a problem with another file at its own position, otherwise at that of the reference."""
    if issue.line is not None:
        return issue
    return issue_at(node, f"{verb}: {issue.message}", code=issue.code, hint=issue.hint)


_HINTS = (
    (
        "found character that cannot start any token",
        "a tab cannot indent YAML; and values that start with % @ ` need quotes",
    ),
    ("mapping values are not allowed", "a text with ': ' in it needs quotes"),
    (
        "expected a single document",
        "a file can contain only one document; remove '---' and the text after it",
    ),
    ("found undefined alias", "a value that starts with '*' needs quotes"),
    (
        "invalid Unicode character escape",
        "write the character itself; pairs of \\u escapes are only valid in JSON",
    ),
    ("control characters are not allowed", "remove the character"),
    (
        "did not find expected <document start>",
        (
            "a file can contain only one document; for JSON lines (rows or task records), "
            "run `aigo-bridge validate`"
        ),
    ),
    (
        "did not find expected",
        "look for a bracket or quote that is not closed, or for text after a closing quote",
    ),
)


def _syntax_issue(error: yaml.YAMLError, text: str, name: str) -> Issue:
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else _at_byte(text, error)
    context = getattr(error, "context", None)
    message = f"not YAML: {problem}" + (f", {context}" if context else "")
    hint = next((hint for start, hint in _HINTS if start in message), None)
    return Issue(message, file=name, line=line, column=column, hint=hint, code=Code.NOT_YAML)


def _at_byte(text: str, error: yaml.YAMLError) -> tuple[int, int]:
    """Return the line and column of a reader error, which only contains a byte offset."""
    preceding = text.encode("utf-8")[: getattr(error, "position", 0)].decode("utf-8", "ignore")
    return preceding.count("\n") + 1, len(preceding) - preceding.rfind("\n")

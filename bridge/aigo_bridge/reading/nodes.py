"""Parsing of YAML text into nodes with positions, through libyaml, within fixed limits.

The limits protect against malicious files: libyaml overflows the C stack at about ten thousand nested
brackets, and a short alias can refer to a huge value.
"""

from __future__ import annotations

from typing import Any

import yaml
from yaml._yaml import CParser
from yaml.constructor import SafeConstructor
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.resolver import Resolver

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, Severity

MAX_FILE_BYTES = 16 * 2**20
"""Maximum size of a YAML or included file."""
MAX_DEPTH = 100
"""Maximum nesting depth of mappings and lists."""
MAX_NODES = 200_000
"""Maximum number of values in one file, and in one document after aliases and references are resolved."""
MAX_CHARACTERS = 64 * 2**20
"""Maximum number of characters in one document after aliases, references and includes are resolved."""

LONGEST_NUMBER = 5000
"""Maximum number of characters in a number or a date. Some notations (base 60) take quadratic time."""

STR = "tag:yaml.org,2002:str"
SEQ = "tag:yaml.org,2002:seq"
MAP = "tag:yaml.org,2002:map"
MERGE = "tag:yaml.org,2002:merge"
NULL = "tag:yaml.org,2002:null"
_PREFIX = "tag:yaml.org,2002:"
_NUMBERS = {_PREFIX + name for name in ("int", "float", "timestamp")}


class TooLarge(Exception):  # noqa: N818  # private to this package
    """Exceeded limit; `mark` is the position."""

    def __init__(self, message: str, mark: Any = None):
        super().__init__(message)
        self.message = message
        self.mark = mark


class _NamedText:
    """Input stream of the C parser, which takes the name for its marks from the stream."""

    def __init__(self, text: str, name: str):
        self._bytes = text.encode("utf-8")
        self.name = name
        self._at = 0

    def read(self, size: int = -1, /) -> bytes:
        chunk = self._bytes[self._at : self._at + size]
        self._at += size
        return chunk


class _Composer(CParser):
    """Composer that limits depth and size while the C parser resolves tags."""

    def __init__(self, stream: _NamedText):
        super().__init__(stream)
        self._depth = 0
        self._count = 0

    def resolve(self, kind: type[Node], value: str | None, implicit: Any) -> str:
        if kind is ScalarNode:
            if implicit[0]:
                for tag, pattern in _RESOLVERS.get(value[0] if value else "", ()):
                    if pattern.match(value):
                        return tag
            return STR
        return SEQ if kind is SequenceNode else MAP

    def descend_resolver(self, parent: Node | None, index: Any) -> None:
        self._depth += 1
        self._count += 1
        mark = parent.start_mark if parent is not None else None
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} levels deep", mark)
        if self._count > MAX_NODES:
            raise TooLarge(f"contains more than {MAX_NODES:,} values", mark)

    def ascend_resolver(self) -> None:
        self._depth -= 1


_RESOLVERS: dict[str, list[tuple[str, Any]]] = Resolver.yaml_implicit_resolvers
_WORDS = SafeConstructor()


def compose(text: str, name: str) -> Node | None:
    """Return the only document in `text`, or `None` if it is empty. Marks contain `name`.

    Raises:
        yaml.YAMLError: the text is not YAML, or contains several documents.
        TooLarge: it is nested too deeply, or contains too many values.
    """
    parser = _Composer(_NamedText(text, name))
    try:
        node: Node | None = parser.get_single_node()
        return node
    finally:
        parser.dispose()


class VariableNode(ScalarNode):
    """Scalar that names environment variables. The expanded value is only in the document's data, because the
    node may be shown.
    """

    value: str
    is_expanded = False
    """Whether a variable was expanded."""

    def __init__(self, node: ScalarNode):
        super().__init__(STR, node.value, node.start_mark, node.end_mark, node.style)


class IncludedNode(ScalarNode):
    """Text of another file, with the marks of the tag."""

    def __init__(self, node: ScalarNode, text: str, file: str, skipped_lines: int):
        super().__init__(STR, text, node.start_mark, node.end_mark, None)
        self.file = file
        self.skipped_lines = skipped_lines


Sizes = dict[int, tuple[int, int, int] | None]
"""Number of values, characters and levels in each node by its `id`; `None` while it is measured."""


def measure(node: Node, sizes: Sizes) -> tuple[int, int, int]:
    """Measure a document. Short documents that expand to a huge size (aliases, references) are rejected.

    Raises:
        TooLarge: a limit is exceeded (see `MAX_NODES`, `MAX_CHARACTERS` and `MAX_DEPTH`), or an anchor
            contains itself.
    """
    if isinstance(node, ScalarNode):
        return 1, len(node.value), 0
    if id(node) in sizes:
        measured = sizes[id(node)]
        if measured is None:
            raise TooLarge("contains itself: an alias is inside its own anchor", node.start_mark)
        return measured
    sizes[id(node)] = None
    count, characters, levels = 1, 0, 0
    parts = node.value if isinstance(node, SequenceNode) else [part for pair in node.value for part in pair]
    for part in parts:
        part_count, part_characters, part_levels = measure(part, sizes)
        count += part_count
        characters += part_characters
        levels = max(levels, part_levels + 1)
        if count > MAX_NODES:
            raise TooLarge(f"expands to more than {MAX_NODES:,} values", node.start_mark)
        if characters > MAX_CHARACTERS:
            raise TooLarge(f"expands to more than {MAX_CHARACTERS:,} characters", node.start_mark)
        if levels > MAX_DEPTH:
            raise TooLarge(f"nested more than {MAX_DEPTH} levels deep", node.start_mark)
    sizes[id(node)] = (count, characters, levels)
    return count, characters, levels


def construct(node: Node, issues: list[Issue]) -> Any:
    """Convert nodes to a JSON-like tree with dates. `issues` gets values that cannot be converted."""
    if isinstance(node, ScalarNode):
        return node.value if node.tag == STR else _scalar(node, issues)
    if isinstance(node, SequenceNode):
        return _sequence(node, issues)
    assert isinstance(node, MappingNode)
    return _mapping(node, issues)


def _scalar(node: ScalarNode, issues: list[Issue]) -> Any:
    tag = node.tag
    if tag in _NUMBERS and len(node.value) > LONGEST_NUMBER:
        return _not_a(node, issues)
    try:
        match tag.removeprefix(_PREFIX):
            case "null":
                return None
            case "bool":
                return _WORDS.construct_yaml_bool(node)
            case "int":
                return _bounded(_WORDS.construct_yaml_int(node))
            case "float":
                return _WORDS.construct_yaml_float(node)
            case "timestamp":
                return _WORDS.construct_yaml_timestamp(node)
            case "binary":
                return _WORDS.construct_yaml_binary(node).decode("utf-8")
            case "value" | "merge":
                return node.value
    except (ValueError, LookupError, OverflowError, AttributeError, yaml.YAMLError):
        return _not_a(node, issues)
    issues.append(unknown_tag(node))
    return None


def _not_a(node: ScalarNode, issues: list[Issue]) -> None:
    issues.append(
        issue_at(node, f"{shown(node.value)} is not a {node.tag.removeprefix(_PREFIX)}", code=Code.WRONG_TYPE)
    )


def _bounded(value: int) -> int:
    if value.bit_length() > 4096:  # Python refuses to print much larger numbers, and no field needs them.
        raise OverflowError
    return value


def _sequence(node: SequenceNode, issues: list[Issue]) -> Any:
    items = [construct(item, issues) for item in node.value]
    if node.tag in {SEQ, _PREFIX + "omap", _PREFIX + "pairs"}:
        return items
    issues.append(unknown_tag(node))
    return items


def _mapping(node: MappingNode, issues: list[Issue]) -> Any:
    result: dict[Any, Any] = {}
    merges: list[Node] = []
    lines: dict[Any, int] = {}
    for key_node, value_node in node.value:
        if key_node.tag == MERGE:
            merges.append(value_node)
            continue
        if isinstance(key_node, ScalarNode):
            key = construct(key_node, issues)
        else:
            hint = 'put templates in quotes: "{{ … }}"'
            issues.append(
                issue_at(key_node, "a mapping or list cannot be a key", code=Code.KEY_NOT_TEXT, hint=hint)
            )
            continue
        if key in result:
            lines = lines or _first_lines(node)
            message = f"key {key_node.value!r} is given twice; the first is in line {lines[key]}"
            issues.append(issue_at(key_node, message, code=Code.REPEATED_KEY))
            continue
        result[key] = construct(value_node, issues)
    for value_node in merges:
        for source in _merge_sources(value_node):
            if not isinstance(source, MappingNode):
                issues.append(
                    issue_at(
                        source, "'<<' takes a mapping (an alias) or a list of them", code=Code.WRONG_TYPE
                    )
                )
                continue
            for key, value in _mapping(source, issues).items():
                result.setdefault(key, value)
    if node.tag == _PREFIX + "set":
        return list(result)
    if node.tag != MAP:
        issues.append(unknown_tag(node))
    return result


def _merge_sources(node: Node) -> list[Node]:
    return list(node.value) if isinstance(node, SequenceNode) else [node]


def _first_lines(node: MappingNode) -> dict[Any, int]:
    lines: dict[Any, int] = {}
    for key_node, _ in node.value:
        if isinstance(key_node, ScalarNode):
            key = construct(key_node, [])
            lines.setdefault(key, key_node.start_mark.line + 1)
    return lines


def unknown_tag(node: Node) -> Issue:
    """Return an issue for a tag that AI GO does not define."""
    tag = node.tag.replace(_PREFIX, "!!")
    hint = "only '!include <file>' is supported; put a value that starts with '!' in quotes"
    return issue_at(node, f"unknown tag {tag!r}", code=Code.UNKNOWN_TAG, hint=hint)


def place_of(node: Node) -> tuple[str, int, int]:
    """Return the file, line and column of the start of a node."""
    mark = node.start_mark
    return mark.name, mark.line + 1, mark.column + 1


def issue_at(
    node: Node, message: str, *, code: Code, hint: str | None = None, severity: Severity = "error"
) -> Issue:
    """Return an issue at the start of a node. The text of its line is added later."""
    return Issue(message, *place_of(node), hint=hint, severity=severity, code=code)


def shown(text: str, limit: int = 60) -> str:
    """Return the text as the user typed it, truncated if it is long."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def child(node: Node, part: str | int) -> tuple[Node | None, Node] | None:
    """Return the key node (for mappings) and value node at one part of a path, including merged keys.

    Call it only if the nodes do not change later, because large mappings cache the positions of their
    keys.
    """
    if isinstance(node, SequenceNode):
        if isinstance(part, int) and 0 <= part < len(node.value):
            return None, node.value[part]
        return None
    if not isinstance(node, MappingNode):
        return None
    places: dict[Any, tuple[Node | None, Node]] | None = node.__dict__.get("places")
    if places is None:
        places = node.__dict__["places"] = _places(node)
    return places.get(part)


def _places(node: MappingNode) -> dict[Any, tuple[Node | None, Node]]:
    places: dict[Any, tuple[Node | None, Node]] = {}
    merged: dict[Any, tuple[Node | None, Node]] = {}
    for key_node, value_node in node.value:
        if key_node.tag == MERGE:
            for source in _merge_sources(value_node):
                if isinstance(source, MappingNode):
                    for key, place in _places(source).items():
                        merged.setdefault(key, place)
        elif isinstance(key_node, ScalarNode):
            key = construct(key_node, [])
            places.setdefault(key, (key_node, value_node))
    return {**merged, **places}

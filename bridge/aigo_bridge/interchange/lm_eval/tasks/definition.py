"""The YAML of a task of lm-evaluation-harness, with its includes put together and the place of every value.

Functions (`!function utils.process_docs`) are names here: nothing beside the file is imported or run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.access.opening import is_below, outside, read_regular
from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.reading.messages import nearest

MOST_BYTES = 1 << 20
"""Bytes that one file may have; the harness's own largest has a tenth of it."""
MOST_VALUES = 100_000
"""Values that a definition may come to, aliases written out."""
MOST_FILES = 100
"""Files that one definition may include."""

# fmt: off
KEYS = frozenset(
    {
        "task", "task_alias", "tag", "group", "group_alias", "include", "dataset_path", "dataset_name",
        "dataset_kwargs", "custom_dataset", "training_split", "validation_split", "test_split",
        "fewshot_split", "process_docs", "doc_to_text", "doc_to_target", "doc_to_choice", "doc_to_image",
        "doc_to_audio", "unsafe_code", "process_results", "use_prompt", "description", "target_delimiter",
        "fewshot_delimiter", "fewshot_config", "num_fewshot", "metric_list", "output_type",
        "generation_kwargs", "repeats", "filter_list", "should_decontaminate",
        "doc_to_decontamination_query", "gen_prefix", "metadata", "class", "aggregate_metric_list",
        "task_list",
    }
)
# fmt: on
"""Keys of tasks and groups that the harness knows, of releases 0.4 on."""

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Function:
    """What `!function` names; it is never run."""

    name: str


@dataclass(frozen=True)
class Place:
    """Where a value stands."""

    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Definition:
    """What a file says, includes put below its own keys as the harness does."""

    path: Path
    values: Mapping[str, Any]
    places: Mapping[KeyPath, Place]
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
            Place(str(self.path), 1, 1),
        )
        return Issue(message, place.file, place.line, place.column, path=path, hint=hint, code=code, **more)


def read_definition(path: Path, root: Path) -> Definition:
    """A file of a task or a group.

    Args:
        path: the file.
        root: folder that no include may leave.

    Raises:
        SpecError: it, or a file that it includes, cannot be read; all problems of one file at once.
    """
    warnings: list[Issue] = []
    values, places = _merged(path, root, str(path), (), warnings)
    definition = Definition(path, values, places, tuple(warnings))
    issues = [_unknown(definition, key) for key in values if key not in KEYS and "class" not in values]
    if issues:
        raise SpecError(issues)
    return definition


def _unknown(definition: Definition, key: Any) -> Issue:
    if not isinstance(key, str):
        return definition.issue((str(key),), f"the key {key!r} is no text", Code.KEY_NOT_TEXT)
    hint = nearest(key, sorted(KEYS)) or "lm-evaluation-harness would refuse it"
    return definition.issue((key,), f"unknown key {key!r}", Code.UNKNOWN_KEY, hint)


def _merged(
    path: Path, root: Path, shown: str, above: tuple[Path, ...], warnings: list[Issue]
) -> tuple[dict[str, Any], dict[KeyPath, Place]]:
    if not is_below(path, root):
        raise SpecError([outside(shown, path, root)])
    real = path.resolve()
    if real in above:
        circle = " → ".join(file.name for file in (*above[above.index(real) :], real))
        raise SpecError(
            [Issue(f"files include each other: {circle}", file=shown, code=Code.REFERENCE_CIRCLE)]
        )
    if len(above) >= MOST_FILES:
        raise SpecError(
            [Issue(f"more than {MOST_FILES} files include each other", file=shown, code=Code.TOO_MUCH)]
        )
    own, own_places = _parsed(path, shown, warnings)
    included = own.pop("include", None)
    values: dict[str, Any] = {}
    places: dict[KeyPath, Place] = {}
    names = included if isinstance(included, list) else [] if included is None else [included]
    for number, name in enumerate(names):
        place = own_places.get(("include", number), own_places[("include",)])
        if not isinstance(name, str):
            raise SpecError(
                [
                    Issue(
                        f"'include': found {name!r}, expected the name of a file",
                        place.file,
                        place.line,
                        place.column,
                        code=Code.WRONG_TYPE,
                    )
                ]
            )
        file = path.parent / name
        try:
            inner, inner_places = _merged(file, root, _shown(shown, name), (*above, real), warnings)
        except SpecError as error:
            # What is wrong with the file itself has no line there: it is named where it is included.
            raise SpecError(
                [
                    issue
                    if issue.line is not None
                    else Issue(
                        issue.message,
                        place.file,
                        place.line,
                        place.column,
                        ("include",),
                        issue.hint,
                        code=issue.code,
                    )
                    for issue in error.issues
                ]
            ) from error
        inner.pop("task_list", None)
        _put(values, places, inner, inner_places)
    _put(values, places, own, own_places)
    return values, places


def _put(
    values: dict[str, Any],
    places: dict[KeyPath, Place],
    new: Mapping[str, Any],
    new_places: Mapping[KeyPath, Place],
) -> None:
    """Let keys take the place of those that are there, with all that stands in them."""
    for path in [path for path in places if path[0] in new]:
        del places[path]
    values.update(new)
    places.update(new_places)


def _shown(file: str, name: str) -> str:
    return str(Path(file).parent / name) if not Path(name).is_absolute() else name


# One file


class _Loader(yaml.SafeLoader):
    """As the harness loads it, but for functions."""


def _function(_: yaml.SafeLoader, node: yaml.Node) -> Function:
    return Function(str(node.value))


def _plain(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> str:
    return loader.construct_scalar(node)


_Loader.add_constructor("!function", _function)
# No date is meant in a task; one that is none would be an error.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _plain)


def _parsed(path: Path, shown: str, warnings: list[Issue]) -> tuple[dict[str, Any], dict[KeyPath, Place]]:
    text = _text(path, shown)
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        places = _places(node, shown, warnings)
        values: dict[str, Any] = loader.construct_document(node)
    except SpecError:
        raise
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
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


def _places(node: yaml.Node | None, file: str, warnings: list[Issue]) -> dict[KeyPath, Place]:
    if not isinstance(node, yaml.MappingNode):
        message = f"{file!r} holds no mapping, as a task of lm-evaluation-harness does"
        raise _failure(message, file, Code.UNKNOWN_KIND)
    places: dict[KeyPath, Place] = {}
    issues: list[Issue] = []
    for number, (path, inner, issue) in enumerate(_walk(node, (), file)):
        if number > MOST_VALUES:
            raise _failure(f"it comes to more than {MOST_VALUES:,} values", file, Code.TOO_MUCH)
        if issue is not None:
            (issues if issue.severity == "error" else warnings).append(issue)
        if path:
            places.setdefault(path, Place(file, inner.start_mark.line + 1, inner.start_mark.column + 1))
    if issues:
        raise SpecError(issues)
    return places


def _walk(node: yaml.Node, path: KeyPath, file: str) -> Iterator[tuple[KeyPath, yaml.Node, Issue | None]]:
    """All values with their paths, aliases written out, and what is wrong with them."""
    issue: Issue | None = None
    line, column = node.start_mark.line + 1, node.start_mark.column + 1
    if node.tag.startswith("!") and node.tag != "!function":
        hint = "lm-evaluation-harness knows `!function` alone"
        issue = Issue(f"unknown tag {node.tag!r}", file, line, column, path, hint, code=Code.UNKNOWN_TAG)
    if node.tag == "!function" and not isinstance(node, yaml.ScalarNode):
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
            yield from _walk(value, (*path, key.value), file)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield from _walk(value, (*path, number), file)

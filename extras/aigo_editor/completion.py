"""Completion suggestions for a position, best first."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from aigo_bridge.access.opening import is_below
from aigo_bridge.reading.checks.scoring import scores_of
from aigo_bridge.reading.locating import DATA_SUFFIXES
from aigo_bridge.spec.scorers import SCORERS
from aigo_editor import fields
from aigo_editor.context import Context
from aigo_editor.fields import FieldNote, ValueChoice
from aigo_editor.parameters import Parameter
from aigo_editor.positions import TextRange

MOST_FILES = 200
"""Maximum number of files of a folder to suggest."""

What = Literal["key", "value", "parameter", "column", "entity", "variable", "filter", "file"]


@dataclass(frozen=True)
class Suggestion:
    """One completion suggestion."""

    label: str
    text: str
    what: What
    replaced: TextRange
    detail: str = ""
    notes: str = ""
    """Description in Markdown."""
    is_urgent: bool = False
    """Whether the key is required."""


@dataclass(frozen=True)
class Knowledge:
    """Information about the document's surroundings. Fields are empty until they are needed."""

    root: Any
    """Model class of the document; see `fields`."""
    parameters: tuple[Parameter, ...] = ()
    task_parameters: Mapping[str, tuple[Parameter, ...]] = field(default_factory=dict)
    """Parameters of each task key."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Example value of each column."""
    nested: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    models: tuple[tuple[str, str], ...] = ()
    """Keys and display names of models."""
    datasets: tuple[tuple[str, str], ...] = ()
    tasks: tuple[tuple[str, str], ...] = ()
    is_part: bool = False
    """Whether the document is a part of a task, such as a scorer or a solver."""
    folder: Path | None = None
    """Folder of the document, for relative paths."""
    project: Path | None = None
    """Folder that paths may not leave."""


VARIABLES = {
    "sample": "the row: `sample.COLUMN`",
    "solver_output": "output of the solver; `solver_output.output` is the text of the answer",
    "trace": "the conversation with its items",
    "messages": "the conversation",
    "model_output": "the last output of the model",
    "input_prompt": "all messages before the last output",
    "scores": "in rules: `scores.SCORER_KEY.SCORE`",
}
"""Names available in templates, with their meaning. See Templates in docs/reference/task-format/README.md."""

_SOLVED = ("solver_output", "trace", "messages", "model_output", "input_prompt")
_COLUMN_FIELDS = frozenset({"trace_column", "files"})
_MODEL_FIELDS = frozenset({"model_key", "model_under_test_key", "judge_model_key"})


def wants_columns(context: Context) -> bool:
    """Return whether columns may be written at a position. They are read only in this case."""
    return context.subject == "column" or bool(context.path and context.path[-1] in _COLUMN_FIELDS)


def complete(context: Context, knowledge: Knowledge) -> list[Suggestion]:
    """Return all suggestions that fit a position. The editor filters them by the typed text."""
    match context.subject:
        case "key":
            return list(_keys(context, knowledge))
        case "item":
            if fields.is_mapping_at(knowledge.root, context.path, context.data):
                return list(_keys(context, knowledge))
            return [*_values(context, knowledge), *_markers(context, knowledge)]
        case "value":
            return [*_values(context, knowledge), *_markers(context, knowledge)]
        case "column":
            return list(_columns(context, knowledge))
        case "variable":
            return list(_variables(context))
        case "filter":
            return [Suggestion(name, name, "filter", context.replaced) for name in filters()]
        case "scores":
            return list(_scores(context))
        case "parameter":
            return list(_parameters(context, knowledge))
        case "file":
            return list(_files(context, knowledge))
        case "nothing":
            return []


def _keys(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    if context.path[-1:] == ("task_config",):
        yield from _task_config(context, knowledge)
        return
    notes = fields.fields_at(knowledge.root, context.path, context.data)
    types = fields.types_at(knowledge.root, context.path, context.data)
    if not context.siblings & fields.TAG_KEYS:
        yield from _types(context, knowledge)
    for note in notes:
        if note.name in context.siblings or note.meaning.startswith("Deprecated"):
            continue
        if note.name != "type" or not types:
            yield _key(note, context)


def _task_config(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    """Yield the parameters of the task in a specification."""
    specification: Any = context.data
    for part in context.path[:-1]:
        try:
            specification = specification[part]
        except (KeyError, IndexError, TypeError):
            return
    task = specification.get("task_key") if isinstance(specification, dict) else None
    for parameter in knowledge.task_parameters.get(str(task), ()):
        if parameter.key not in context.siblings:
            text = f"{parameter.key}: " if context.needs_colon else parameter.key
            yield Suggestion(parameter.key, text, "parameter", context.replaced, *_of_parameter(parameter))


def _key(note: FieldNote, context: Context) -> Suggestion:
    colon = (": " if note.form in {"text", "boolean"} else ":") if context.needs_colon else ""
    return Suggestion(
        note.name,
        note.name + colon,
        "key",
        context.replaced,
        detail=note.value.replace("`", ""),
        notes=describe(note),
        is_urgent=note.is_required,
    )


def describe(note: FieldNote) -> str:
    """Return the description of a key as Markdown, in the words of the reference."""
    words = {"": "may be left out", "required": "required", "``": "default empty"}
    default = words.get(note.default, f"default {note.default}")
    owner = f" of `{note.owner}`" if note.owner else ""
    return f"**{note.name}**{owner}: {note.value}; {default}\n\n{note.meaning}".rstrip()


def _types(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    for choice in fields.types_at(knowledge.root, context.path, context.data):
        written = f"{choice.key}: {choice.text}"
        yield Suggestion(written, written, "value", context.replaced, notes=choice.meaning, is_urgent=True)


def _values(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    for choice in fields.choices_at(knowledge.root, context.path, context.data):
        yield _value(choice, context)
    name = next((part for part in reversed(context.path) if isinstance(part, str)), "")
    if name in _MODEL_FIELDS:
        yield from _entities(knowledge.models, context)
    elif name in {"dataset_key", "dataset_keys"} or _in_task(context.path)[:3] in _DATASETS:
        yield from _entities(knowledge.datasets, context)
    elif name == "task_key":
        yield from _entities(knowledge.tasks, context)
    elif name in _COLUMN_FIELDS:
        yield from _columns(context, knowledge)
    elif name == "field" and "metrics" in context.path:
        yield from _metric_fields(context)
    elif name in {"file_path", "directory_path"}:
        yield from _files(context, knowledge)


_DATASETS = {("definition", "dataset", "key"), ("definition", "dataset", "keys")}


def _in_task(path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Return the path inside a task, without the prefix of a run file."""
    return path[path.index("definition") :] if "definition" in path else path


def _value(choice: ValueChoice, context: Context) -> Suggestion:
    return Suggestion(choice.text, choice.text, "value", context.replaced, notes=choice.meaning)


def _entities(entities: Iterable[tuple[str, str]], context: Context) -> Iterator[Suggestion]:
    for key, title in entities:
        yield Suggestion(key, key, "entity", context.replaced, detail=title)


def _markers(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    """Yield parameter markers that replace a whole value."""
    name = context.path[-1] if context.path else ""
    if name in {"type", "op"} or not (knowledge.is_part or "definition" in context.path):
        return
    for parameter in knowledge.parameters:
        written = f"<< config.{parameter.key} >>"
        yield Suggestion(written, written, "parameter", context.replaced, *_of_parameter(parameter))


def _parameters(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    prefix = "" if context.owner else "config."
    for parameter in knowledge.parameters:
        written = f"{prefix}{parameter.key}"
        yield Suggestion(written, written, "parameter", context.replaced, *_of_parameter(parameter))


def _of_parameter(parameter: Parameter) -> tuple[str, str]:
    return parameter.fields.get("type", ""), describe_parameter(parameter)


def describe_parameter(parameter: Parameter) -> str:
    """Return the declaration of a parameter as Markdown."""
    written = parameter.fields
    title = written.get("display_name", "")
    head = f"**{parameter.key}**: parameter, {written.get('type', 'without a type')}"
    default = written.get("default_value")
    default_line = f"default `{default}`" if default else ""
    return "\n\n".join(part for part in (head, title, written.get("description", ""), default_line) if part)


def _columns(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    names: dict[str, str] = {
        **dict.fromkeys(knowledge.nested, "rows of this dataset"),
        **knowledge.columns,
    }
    for name, example in names.items():
        yield Suggestion(name, name, "column", context.replaced, detail=_one_line(example))


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:59] + "…"


def _variables(context: Context) -> Iterator[Suggestion]:
    definition = context.data.get("definition") if isinstance(context.data, dict) else None
    has_solver = isinstance(definition, dict) and definition.get("solver") is not None
    path = _in_task(context.path)
    section = path[1] if len(path) > 1 and path[0] == "definition" else None
    for name, notes in VARIABLES.items():
        fits = name == "sample"
        fits |= name in _SOLVED and has_solver and section in {"scorers", "actions"}
        fits |= name == "scores" and section == "actions"
        fits |= section is None  # a part or a prompt in a separate file
        if fits:
            yield Suggestion(name, name, "variable", context.replaced, notes=notes)


def filters() -> tuple[str, ...]:
    """Return the names of all template filters."""
    from aigo_bridge.templates.sample import STRICT

    return tuple(sorted(STRICT.filters))


def _scorers(data: object) -> list[dict[str, Any]]:
    definition = data.get("definition") if isinstance(data, dict) else None
    scorers = definition.get("scorers") if isinstance(definition, dict) else None
    return (
        [suggestion for suggestion in scorers if isinstance(suggestion, dict)]
        if isinstance(scorers, list)
        else []
    )


def _scores(context: Context) -> Iterator[Suggestion]:
    for scorer in _scorers(context.data):
        key = str(scorer.get("key") or scorer.get("type") or "")
        if not context.owner and key:
            yield Suggestion(key, key, "variable", context.replaced, detail=str(scorer.get("type")))
        elif context.owner == key:
            for name in sorted(_names_of(scorer)):
                yield Suggestion(name, name, "variable", context.replaced, detail=key)


def _metric_fields(context: Context) -> Iterator[Suggestion]:
    place = context.path.index("metrics")
    node: Any = context.data
    for part in context.path[:place]:
        try:
            node = node[part]
        except (KeyError, IndexError, TypeError):
            return
    for name in sorted(_names_of(node)) if isinstance(node, dict) else ():
        yield Suggestion(name, name, "value", context.replaced, detail=str(node.get("type", "")))


def _names_of(scorer: Mapping[str, Any]) -> frozenset[str]:
    """Return the known score names of an incomplete scorer."""
    try:
        return scores_of(scorer) or frozenset()
    # An incomplete scorer may contain anything. Use the scores of its type instead.
    except (AttributeError, KeyError, TypeError, ValueError):
        spec = SCORERS.get(str(scorer.get("type")))
        return frozenset() if spec is None else spec.scores or frozenset()


def _files(context: Context, knowledge: Knowledge) -> Iterator[Suggestion]:
    """Yield project files and folders that complete the written path."""
    if knowledge.folder is None or knowledge.project is None:
        return
    written = context.prefix.rpartition("/")
    place = knowledge.folder / written[0]
    start = context.replaced.end - len(written[2])
    if not is_below(place, knowledge.project):
        return
    try:
        entries = sorted(os.scandir(place), key=lambda entry: entry.name)
    except OSError:
        return
    wanted = _endings(context)
    replaced = replace(context.replaced, start=start)
    number = 0
    for entry in entries:
        is_folder = entry.is_dir()
        if entry.name.startswith(".") or not (is_folder or wanted is None or entry.name.endswith(wanted)):
            continue
        name = entry.name + ("/" if is_folder else "")
        yield Suggestion(name, name, "file", replaced)
        number += 1
        if number >= MOST_FILES:
            return


def _endings(context: Context) -> tuple[str, ...] | None:
    if context.path[-1:] == ("$ref",):
        return (".yaml", ".yml")
    if context.path[-1:] == ("file_path",):
        return (*DATA_SUFFIXES, ".gz", ".zst")
    name = str(context.path[-1]) if context.path else ""
    return (".py",) if name.endswith("_snippet") else None

"""Conversion of an `eval.yaml` entry to an AI GO task with the same prompts and Inspect's own scorers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from aigo_bridge.errors import Issue
from aigo_bridge.text.json_text import key_of
from aigo_bridge.text.plurals import plural
from aigo_formats.conversions import ConvertedTask, Refusal
from aigo_formats.definitions import ConvertedParts, Definition
from aigo_formats.inspect_hub.entries import checked_entry
from aigo_formats.inspect_hub.prompts import conversation_of
from aigo_formats.inspect_hub.scorers import scorers_of

Json = dict[str, Any]

FRAMEWORKS = ("inspect-ai", "inspect_ai")
_MEANS = (None, "mean", "pass_at_1")
"""Epoch reducers that compute the mean of the scores."""


@dataclass(frozen=True)
class RowSource:
    """Location of the rows of an entry."""

    file: Path | None = None
    """File next to the `eval.yaml`."""
    repository: str | None = None
    """Dataset on the Hub, `ORG/NAME`."""
    revision: str | None = None
    """Revision of the dataset."""


def convert(
    definition: Definition, number: int, rows: RowSource, *, key: str | None = None, allow: bool = False
) -> ConvertedTask | Refusal:
    """Convert one entry to an AI GO task.

    Args:
        definition: content of the file.
        number: index of the entry in `tasks`, from 0.
        rows: location of the rows.
        key: key of the AI GO task; `None`: derived from the entry's id.
        allow: whether to convert with lost parts. The task's description lists them.
    """
    parts = ConvertedParts(definition)
    path = ("tasks", number)
    _about_file(parts)
    entry = checked_entry(parts, definition.values["tasks"][number], path)
    if entry is None or parts.fatal:
        return Refusal(tuple(parts.fatal), tuple(parts.lost))
    talk = conversation_of(parts, entry, path)
    scorers = scorers_of(parts, entry, path)
    trials = _trials(parts, entry, path)
    if entry["shuffle_choices"]:
        parts.lose(
            (*path, "shuffle_choices"),
            "choices are shuffled differently in each run; here they keep their order",
        )
    for setting in talk.settings:
        parts.lose(
            (*path, "solvers"), f"the setting {setting!r} is not part of an AI GO task", "set it on the model"
        )
    if parts.fatal or (parts.lost and not allow):
        return Refusal(tuple(parts.fatal), tuple(parts.lost))
    issues = (*(replace(issue, severity="warning") for issue in parts.lost), *parts.told)
    name = entry["id"] or _name_of(definition)
    task_key = key or key_of(name)
    rows_key = f"{task_key[:235]}-rows"
    definition_of_task: Json = {
        "type": "benchmark_task",
        "dataset": {"key": rows_key},
        "solver": {
            "type": "single_turn_solver",
            "input_builder": {"type": "chat_completion", "input_messages": talk.messages},
        },
        "scorers": scorers,
    }
    if trials is not None:
        definition_of_task["trials"] = trials
    return ConvertedTask(
        _document(definition, task_key, name, definition_of_task, issues),
        _dataset(rows_key, entry, rows),
        issues,
        rows.file,
    )


def _about_file(parts: ConvertedParts) -> None:
    framework = parts.definition.values.get("evaluation_framework")
    if framework is not None and framework not in FRAMEWORKS:
        message = f"'evaluation_framework': found {framework!r}; the file is read as Inspect would read it"
        parts.tell(("evaluation_framework",), message)


def _name_of(definition: Definition) -> str:
    name = definition.values.get("name")
    return name if isinstance(name, str) and name.strip() else definition.path.resolve().parent.name or "task"


def _document(definition: Definition, key: str, name: str, content: Json, issues: tuple[Issue, ...]) -> Json:
    description = definition.values.get("description")
    document: Json = {
        "key": key,
        "display_name": (name.strip() or key)[:250],
        "description": " ".join(description.split())
        if isinstance(description, str) and description.strip()
        else f"The task {name!r} of an eval.yaml of Inspect",
    }
    if issues:
        lines = [f"- {issue.message}" for issue in issues]
        document["long_description"] = "\n".join(["Different from Inspect:", "", *lines]) + "\n"
    return {**document, "tasks": ["chat_completion"], "definition": content}


def _dataset(key: str, entry: Json, rows: RowSource) -> Json | None:
    if rows.file is not None:
        source: Json = {"type": "local", "file_path": f"{key}{rows.file.suffix}"}
        return {"key": key, "display_name": key, "source": source}
    if rows.repository is None:
        return None
    arguments = {"name": entry["config"]} | ({"revision": rows.revision} if rows.revision else {})
    source = {
        "type": "huggingface",
        "path": rows.repository,
        "split": entry["split"],
        "load_dataset_kwargs": arguments,
    }
    return {"key": key, "display_name": rows.repository[:250], "source": source}


def _trials(parts: ConvertedParts, entry: Json, path: tuple[str | int, ...]) -> Json | None:
    epochs, reducer = entry["epochs"], entry["epoch_reducer"]
    least = (reducer or "").rpartition("_at_")[2] or (reducer or "").rpartition("at_least_")[2]
    if least.isdigit() and int(least) > epochs:
        message = f"{reducer!r} of {plural(epochs, 'epoch')}, which Inspect rejects"
        parts.refuse((*path, "epoch_reducer"), message)
        return None
    if epochs == 1:
        return None
    if reducer not in _MEANS:
        message = f"'epoch_reducer': {reducer!r} has no equivalent in AI GO; metrics use the mean of epochs"
        hint = "AI GO's own metrics combine several scores by their mean"
        parts.lose((*path, "epoch_reducer"), message, hint)
    return {"num_trials": epochs}

"""Analysis that reads and plans files: issues, dataset columns and prompts of rows.

It runs in a separate process (`worker`), because files may be untrusted and templates are rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from aigo_bridge.access.in_memory import editing
from aigo_bridge.access.opening import YAML_SUFFIXES
from aigo_bridge.datasets.files import load_file
from aigo_bridge.datasets.rows import Rows, Selection
from aigo_bridge.errors import BridgeError, DatasetError, Issue
from aigo_bridge.evaluation.explain import SamplePreview, explain
from aigo_bridge.evaluation.validation import planning_issues
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning.planning import plan_task
from aigo_bridge.planning.rows import Surroundings, entity_rows, is_at_hand
from aigo_bridge.reading import environment, read
from aigo_bridge.reading.locating import find_dataset
from aigo_bridge.reading.reader import FileReport, upgrade_text, validate_paths
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.task import TaskSpec
from aigo_bridge.text.plurals import plural

LONGEST_VALUE = 300
"""Maximum number of characters to show of a row's value."""

MOST_ROWS = 20
"""Number of rows to read for column names."""

_FIRST = Selection(num_samples=MOST_ROWS)
_AT_HAND = Surroundings(at_hand_only=True)


@dataclass(frozen=True)
class SampleColumns:
    """Columns of a sample, available in templates."""

    values: Mapping[str, str] = field(default_factory=dict)
    """Shortened value of each column in the first row."""
    nested: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Columns of each dataset key, if a task has several datasets."""
    files: Mapping[str, str] = field(default_factory=dict)
    """File of each dataset key."""
    total: int = 0
    """Number of rows."""


def problems(file: Path, texts: Mapping[str, str], *, planned: bool) -> list[Issue]:
    """Return the issues that `validate` reports for a file; with `planned`, include issues of its rows."""
    with editing(texts):
        report = _report(file)
        if not planned or report.document is None or report.kind is None:
            return list(report.issues)
        more = planning_issues(report.kind, report.document, None) if file.exists() else []
        return list(dict.fromkeys((*report.issues, *more)))


def columns(file: Path, texts: Mapping[str, str], keys: Sequence[str]) -> SampleColumns:
    """Return the columns of a task's datasets. Datasets that are not local or not readable are skipped.

    The task may be invalid, because it is being edited.

    Args:
        file: path of the task. Datasets are searched next to it.
        texts: texts open in the editor.
        keys: keys of the datasets.
    """
    values: dict[str, dict[str, str]] = {}
    files: dict[str, str] = {}
    total = 0
    with editing(texts):
        for key in keys:
            try:
                place = find_dataset(key, {}, file)
                rows = _first_rows(place)
            except BridgeError:
                continue
            files[key] = str(place)
            total = max(total, rows.total or 0)
            values[key] = {
                str(name): shown(row.data[name]) for row in reversed(rows.rows) for name in row.data
            }
            values[key] = {str(name): values[key].get(str(name), "") for name in rows.columns}
    if len(keys) == 1:
        return SampleColumns(values.get(keys[0], {}), {}, files, total)
    return SampleColumns({}, values, files, total)


def prompt(file: Path, texts: Mapping[str, str], row: int) -> str:
    """Return the prompt of a task's row as Markdown, as in `explain`, or the reason why it cannot be shown.

    Args:
        file: path of the task.
        texts: texts open in the editor.
        row: row number from 1.
    """
    with editing(texts):
        document = _report(file).document
        if document is None or not isinstance(document.spec, TaskSpec):
            return "The prompt is shown when the task is valid."
        try:
            plan = plan_task(document, PlanOrigin(task=str(file)), _AT_HAND)
            previews = list(islice(explain(_from_row(plan, row), 1), 1))
        except BridgeError as error:
            issues = getattr(error, "issues", ())
            reason = (
                "; ".join(issue.message for issue in issues) or str(error) or "its rows are not available"
            )
            return f"The prompt cannot be shown: {reason}"
    if not previews:
        return f"Row {row} does not exist: the dataset has {plural(len(plan.samples), 'row', form=',')}."
    return markdown(previews[0], row, len(plan.samples))


def upgraded(file: Path, texts: Mapping[str, str]) -> str | None:
    """Return a file's text with deprecated syntax replaced; `None` if it cannot be rewritten."""
    with editing(texts):
        try:
            return upgrade_text(file)
        except BridgeError:
            return None


def markdown(preview: SamplePreview, row: int, total: int) -> str:
    """Return the conversation of a row and the scorers' input as Markdown."""
    parts = [f"**Row {row:,} of {total:,}** (sample `{preview.id}`)"]
    if preview.problem is not None:
        parts.append(f"This prompt will fail: {preview.problem}")
    for message in preview.messages:
        parts += [f"*{message.role}*", fenced(message.content)]
    for scorer in preview.scorers:
        parts += _scorer_parts(scorer.key, scorer.type, scorer.fields, scorer.problem)
        for message in scorer.messages:
            parts += [f"*{message.role}*", fenced(message.content)]
    return "\n\n".join(parts)


def _scorer_parts(key: str, kind: str, fields: Mapping[str, str], problem: str | None) -> Iterator[str]:
    yield f"**{key}** (`{kind}`)" if key != kind else f"**{key}**"
    if problem is not None:
        yield f"cannot be shown: {problem}"
    for name, text in fields.items():
        yield f"{name}:"
        yield fenced(text)


def fenced(text: str) -> str:
    """Return any text as a Markdown code block."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"


def shown(value: Any) -> str:
    """Return a shortened value of a row."""
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"


def _from_row(plan: TaskPlan, row: int) -> TaskPlan:
    return replace(plan, samples=tuple(plan.samples[max(row, 1) - 1 :][:1]))


def _report(file: Path) -> FileReport:
    (report,) = validate_paths([file.absolute()], env=environment())
    return report


def _first_rows(file: Path) -> Rows:
    """Return the first rows of a dataset; empty if it is not a local file."""
    if file.suffix.lower() not in YAML_SUFFIXES:
        return load_file(file, _FIRST)
    document = read(DatasetSpec, file)
    if not is_at_hand(document.spec):
        raise DatasetError([])
    return entity_rows(document, _FIRST)

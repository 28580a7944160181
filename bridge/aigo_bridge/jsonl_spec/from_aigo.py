"""AI GO tasks as task records, where they fit; where they do not, every reason why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.errors import TemplateError
from aigo_bridge.jsonl_spec.checking import validate_task
from aigo_bridge.jsonl_spec.records import TaskSpec
from aigo_bridge.jsonl_spec.snippet import scorer_snippet
from aigo_bridge.jsonl_spec.to_aigo import CODE_SCORER, PROMPT_TEMPLATE
from aigo_bridge.templates import SampleTemplate

_MOST_REASONS = 20
_SCORERS: Mapping[str, tuple[str, str, str]] = {
    "string_equals": ("classification", "exact_match", "is_correct"),
    "bleu": ("summary", "bleu_4", "bleu_score"),
}
"""AI GO scorer → category, metric, name of its score. The multiple-choice scorer is not here: it looks at the first character of the
answer only, which no post-process rule does."""

_SCORING_COLUMNS = ("category", "targets", "metric_name", "post_process")


@dataclass(frozen=True)
class Recovered:
    """Task records made of an AI GO task, or why there are none."""

    tasks: tuple[TaskSpec, ...]
    """One per row; empty when there are reasons against it."""
    reasons: tuple[str, ...]
    """What the record format cannot express; empty when the task fits."""


def from_aigo(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Recovered:
    """Task records for an AI GO task: what `to_aigo` made (exactly what went in), and plain single-turn tasks.

    A task fits if it asks the model one user message, once, and has one scorer: that of converted tasks, `string_equals` or `bleu` of the
    model's answer. Prompts and targets of other tasks are rendered, columns that they do not use are left behind, and their category
    is `classification` or `summary`, by the scorer. Every record must then be valid by itself.

    Args:
        document: the task, valid and as plain data, with its includes resolved.
        rows: its data set; ids are taken from `sample_id`, else made of the task's key and the row's number.
    """
    reasons = list(_structure(document))
    if reasons:
        return Recovered((), tuple(reasons))
    if not rows:
        return Recovered((), ("the data set has no rows",))
    definition = document["definition"]
    template = definition["solver"]["input_builder"]["input_messages"][0]["content"]
    scorer = definition["scorers"][0]
    tasks: list[TaskSpec] = []
    taken: set[str] = set()
    for number, row in enumerate(rows):
        where = f"row {number + 1}"
        sample_id = row.get("sample_id")
        named = isinstance(sample_id, str | int) and not isinstance(sample_id, bool)
        task_id = str(sample_id) if named else f"{document['key']}_{number}"
        try:
            record = {"task_id": task_id, **_prompt(template, row), **_scoring(scorer, row)}
        except TemplateError as error:
            reasons.append(f"{where}: {error}")
            continue
        task, errors = validate_task(record)
        reasons += [f"{where}: {error}" for error in errors]
        if task_id in taken:
            reasons.append(f"{where}: the id {task_id!r} occurs twice")
        taken.add(task_id)
        if task is not None:
            tasks.append(task)
    if reasons:
        more = len(reasons) - _MOST_REASONS
        shown = reasons if more <= 0 else [*reasons[:_MOST_REASONS], f"and {more:,} more reasons"]
        return Recovered((), tuple(shown))
    return Recovered(tuple(tasks), ())


def _prompt(template: str, row: Mapping[str, Any]) -> dict[str, Any]:
    if template != PROMPT_TEMPLATE:
        return {"prompt": SampleTemplate(template).render(sample=row)}
    record: dict[str, Any] = {"prompt": row.get("prompt")}
    for name in ("few_shot_examples", "metadata"):
        if row.get(name):
            record[name] = row[name]
    return record


def _scoring(scorer: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    if scorer["type"] == "python":
        return {name: row[name] for name in _SCORING_COLUMNS if name in row}
    category, metric_name, _ = _SCORERS[scorer["type"]]
    target = SampleTemplate(scorer["ground_truth"]).render(sample=row)
    return {"category": category, "targets": [target], "metric_name": metric_name, "post_process": "none"}


def _structure(document: Mapping[str, Any]) -> Iterator[str]:
    definition = document["definition"]
    if document.get("config_spec"):
        yield "it has parameters (config_spec); records have none"
    if definition.get("type") == "system_task":
        yield "it is a system task; records ask a model"
        return
    if (definition.get("dataset") or {}).get("source", "dataset") != "dataset":
        yield "it runs on an earlier task result; records hold their own prompts"
    if (definition.get("trials") or {}).get("num_trials", 1) != 1:
        yield "it has several trials; records are run once"
    if definition.get("actions"):
        yield "it has action rules, which would be lost"
    yield from _solver(definition.get("solver"))
    yield from _scorer([each for each in definition.get("scorers") or [] if each != CODE_SCORER])


def _solver(solver: Mapping[str, Any] | None) -> Iterator[str]:
    if solver is None:
        yield "it has no solver; records ask a model"
        return
    if solver.get("postprocessor"):
        yield "its solver has a postprocessor, which would be lost"
    if solver["type"] != "single_turn_solver":
        yield f"its solver is a {solver['type']!r}; records ask once"
        return
    builder = solver["input_builder"]
    if builder["type"] != "chat_completion":
        yield f"its input builder is {builder['type']!r}; records have a prompt as plain text"
        return
    roles = [message["role"] for message in builder["input_messages"]]
    if roles != ["user"]:
        yield f"it sends messages of {', '.join(roles) or 'nobody'}; records have one message of the user"


def _scorer(scorers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(scorers) != 1:
        yield f"it has {len(scorers)} scorers; records have one metric"
        return
    (scorer,) = scorers
    kind = scorer["type"]
    if scorer.get("purpose", "score") != "score":
        yield "its scorer checks quality (purpose 'qa'); records have no such thing"
    if kind == "python":
        if scorer["compute_scores_snippet"] != scorer_snippet():
            yield "its scorer runs its own code; records name a metric"
        return
    if kind not in _SCORERS:
        yield f"no metric of the record format is the scorer {kind!r}"
        return
    if scorer.get("value") is not None:
        yield f"its scorer {kind!r} compares its own `value`; records compare the answer"
    field = _SCORERS[kind][2]
    for metric in scorer.get("metrics") or ():
        if (metric["type"], metric.get("field")) != ("mean", field):
            yield f"its metric {metric['type']!r} would be lost; records have the mean of {field!r}"

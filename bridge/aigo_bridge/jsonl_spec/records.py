"""Task records as values: a task, a few-shot example, and what is wrong with a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from aigo_bridge.errors import Issue
from aigo_bridge.jsonl_spec.vocabulary import Category, MetricName, PostProcess


class Rule(StrEnum):
    """What a record can violate; the value is the rule's id in messages and reports."""

    JSON = "json"
    """The line is JSON (RFC 8259: no NaN, no lone surrogates, UTF-8)."""
    OBJECT = "object"
    """The line is one object."""
    DUPLICATE_KEY = "duplicate_key"
    """No object has a key twice: readers disagree about which one counts."""
    MISSING_FIELD = "missing_field"
    """The required fields are there, of the record and of each few-shot example."""
    UNKNOWN_FIELD = "unknown_field"
    """There are no others."""
    FIELD_TYPE = "field_type"
    """Every field has its type."""
    BLANK_TEXT = "blank_text"
    """Ids, prompts, targets and completions hold more than whitespace."""
    TASK_ID_WHITESPACE = "task_id_whitespace"
    """`task_id` has no whitespace."""
    TASK_ID_UNIQUE = "task_id_unique"
    """No earlier line of the file, valid or not, has the same `task_id`."""
    CATEGORY = "category"
    """`category` is one of the closed vocabulary."""
    METRIC_NAME = "metric_name"
    """`metric_name` is one of the closed vocabulary."""
    POST_PROCESS = "post_process"
    """`post_process` is one of the closed vocabulary."""
    COMBINED_POST_PROCESS = "combined_post_process"
    """`post_process` is a single rule."""
    CATEGORY_METRIC = "category_metric"
    """The metric is legal for the category."""
    CATEGORY_POST_PROCESS = "category_post_process"
    """The post-process rule is legal for the category."""
    PROMPT_TRAILING_WHITESPACE = "prompt_trailing_whitespace"
    """`prompt` does not end in whitespace."""
    PROMPT_FEW_SHOT = "prompt_few_shot"
    """`prompt` holds no few-shot block; see `few_shot.few_shot_block`."""
    TARGETS_EMPTY = "targets_empty"
    """`targets` has at least one element."""
    MCQ_ONE_TARGET = "mcq_one_target"
    """A multiple-choice task has exactly one target."""
    MCQ_LETTER = "mcq_letter"
    """That target is one letter that the post-process rule can yield: A to E after `extract_letter`, a to z after
    `lower`, else any of A to Z and a to z."""
    FEW_SHOT_CAP = "few_shot_cap"
    """There are at most eight few-shot examples."""


class FewShotExample(NamedTuple):
    """A solved example that is shown to the model before the prompt."""

    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A valid task record. Made by `validate_task`; nothing is checked when one is made by hand."""

    task_id: str
    """Unique in its file, without whitespace."""
    category: Category
    prompt: str
    """Text for the model, without examples and without whitespace at its end."""
    targets: tuple[str, ...]
    """Right answers, at least one."""
    metric_name: MetricName
    post_process: PostProcess
    """Applied to the generation before the metric; targets are left as they are."""
    few_shot_examples: tuple[FewShotExample, ...] = ()
    """At most eight; empty when the record has none."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Free JSON; empty when the record has none."""

    def to_record(self) -> dict[str, Any]:
        """The record as a JSON object; optional fields that are empty stay out."""
        record: dict[str, Any] = {
            "task_id": self.task_id,
            "category": self.category,
            "prompt": self.prompt,
            "targets": list(self.targets),
            "metric_name": self.metric_name,
        }
        if self.few_shot_examples:
            record["few_shot_examples"] = [
                {"prompt": example.prompt, "completion": example.completion}
                for example in self.few_shot_examples
            ]
        record["post_process"] = self.post_process
        if self.metadata:
            record["metadata"] = dict(self.metadata)
        return record


@dataclass(frozen=True, slots=True)
class RecordError:
    """One rule that one field of one record violates."""

    rule: Rule
    field: str
    """The field at fault, e.g. `targets[1]` or `few_shot_examples[0].completion`; empty when it is the whole line."""
    message: str
    """What was found and what was expected; lower-case start, no full stop."""
    hint: str | None = None
    """What to do about it; `None` when that is not known."""
    line: int | None = None
    """1-based line in the file; `None` for a record that did not come from a file."""
    text: str | None = None
    """The offending line, cut after `LONGEST_TEXT` characters; `None` as for `line`."""
    column: int | None = None
    """1-based character of the line at which it stops being JSON; `None` for every other rule."""

    def to_issue(self, file: str | Path | None = None) -> Issue:
        """The error with its place, as everything else that can be wrong with a file; the rule's id stands in brackets."""
        # Issues with a line do not show their path.
        where = f"{self.field}: " if self.field and self.line is not None else ""
        return Issue(
            f"{where}{self.message} [{self.rule}]",
            file=None if file is None else str(file),
            line=self.line,
            column=self.column,
            path=(self.field,) if self.field else (),
            hint=self.hint,
            source_line=self.text,
        )

    def __str__(self) -> str:
        return str(self.to_issue())


LONGEST_TEXT = 1_000
"""Characters of an offending line that are kept: a file of bad lines must not fill the memory."""

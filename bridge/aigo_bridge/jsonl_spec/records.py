"""Data types of task records: the closed vocabularies and their legal combinations, tasks with few-shot
examples, and errors of a line.

The task spec format page gives two examples of legal combinations: `code_exec` tasks use the metric
`code_exec`, and `mcq` tasks use `exact_match`. `LEGAL` is the complete table. A metric is legal if it
measures the goal of the category (no partial credit for a number, no exact match for a summary). A
post-process rule is legal if it cannot destroy the answer (no program in lowercase, no letter taken from a
word).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue

Category = Literal["arithmetic", "mcq", "code_exec", "classification", "summary"]
MetricName = Literal["exact_match", "f1", "bleu_4", "rouge_l", "accuracy", "code_exec"]
PostProcess = Literal[
    "none", "strip_whitespace", "lower", "extract_letter", "extract_code_block", "extract_first_line"
]

CATEGORIES: tuple[Category, ...] = get_args(Category)
METRIC_NAMES: tuple[MetricName, ...] = get_args(MetricName)
POST_PROCESS_RULES: tuple[PostProcess, ...] = get_args(PostProcess)

REQUIRED_FIELDS = ("task_id", "category", "prompt", "targets", "metric_name", "post_process")
OPTIONAL_FIELDS = ("few_shot_examples", "metadata")
FIELDS = (*REQUIRED_FIELDS, *OPTIONAL_FIELDS)
EXAMPLE_FIELDS = ("prompt", "completion")

MAX_FEW_SHOT = 8
"""Maximum number of few-shot examples of a task."""


@dataclass(frozen=True)
class Legal:
    """Legal combinations of a category: every metric with every rule."""

    metric_names: frozenset[str]
    post_process: frozenset[str]


_TEXT = frozenset({"none", "strip_whitespace", "lower", "extract_first_line"})

LEGAL: Mapping[str, Legal] = {
    "arithmetic": Legal(frozenset({"exact_match", "accuracy"}), _TEXT),
    "mcq": Legal(frozenset({"exact_match"}), _TEXT | {"extract_letter"}),
    "code_exec": Legal(
        frozenset({"code_exec"}), frozenset({"none", "strip_whitespace", "extract_code_block"})
    ),
    "classification": Legal(frozenset({"exact_match", "accuracy", "f1"}), _TEXT),
    "summary": Legal(frozenset({"f1", "bleu_4", "rouge_l"}), _TEXT),
}
"""Category → legal metrics and post-process rules."""


class Rule(StrEnum):
    """Rule that a record can violate; the value is the rule's ID in messages and reports."""

    JSON = "json"
    """The line is JSON (RFC 8259: no NaN, no lone surrogates, UTF-8)."""
    OBJECT = "object"
    """The line is one object."""
    DUPLICATE_KEY = "duplicate_key"
    """No object has a duplicate key, because parsers interpret duplicates differently."""
    MISSING_FIELD = "missing_field"
    """All required fields are present, in the record and in each few-shot example."""
    UNKNOWN_FIELD = "unknown_field"
    """All fields are known."""
    FIELD_TYPE = "field_type"
    """Every field has its type."""
    BLANK_TEXT = "blank_text"
    """IDs, prompts, targets and completions are not blank."""
    TASK_ID_WHITESPACE = "task_id_whitespace"
    """`task_id` contains no whitespace."""
    TASK_ID_UNIQUE = "task_id_unique"
    """No earlier line of the file, valid or not, has the same `task_id`."""
    CATEGORY = "category"
    """`category` is in the closed vocabulary."""
    METRIC_NAME = "metric_name"
    """`metric_name` is in the closed vocabulary."""
    POST_PROCESS = "post_process"
    """`post_process` is in the closed vocabulary."""
    COMBINED_POST_PROCESS = "combined_post_process"
    """`post_process` is a single rule."""
    CATEGORY_METRIC = "category_metric"
    """The metric is legal for the category."""
    CATEGORY_POST_PROCESS = "category_post_process"
    """The post-process rule is legal for the category."""
    PROMPT_TRAILING_WHITESPACE = "prompt_trailing_whitespace"
    """`prompt` does not end in whitespace."""
    PROMPT_FEW_SHOT = "prompt_few_shot"
    """`prompt` contains no few-shot block; see `few_shot.few_shot_block`."""
    TARGETS_EMPTY = "targets_empty"
    """`targets` has at least one element."""
    MCQ_ONE_TARGET = "mcq_one_target"
    """A multiple-choice task has exactly one target."""
    MCQ_LETTER = "mcq_letter"
    """The target is one letter that the post-process rule can return: A to E after `extract_letter`, a to
    z after `lower`, otherwise A to Z and a to z.
    """
    FEW_SHOT_CAP = "few_shot_cap"
    """A record has at most eight few-shot examples."""


class FewShotExample(NamedTuple):
    """Solved example that the model sees before the prompt."""

    prompt: str
    completion: str


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Valid task record. `validate_task` creates it; the constructor checks nothing."""

    task_id: str
    """Task ID without whitespace, unique in its file."""
    category: Category
    prompt: str
    """Prompt without examples and without trailing whitespace."""
    targets: tuple[str, ...]
    """Correct answers, at least one."""
    metric_name: MetricName
    post_process: PostProcess
    """Post-process rule for the generation before scoring; targets are not processed."""
    few_shot_examples: tuple[FewShotExample, ...] = ()
    """Few-shot examples, at most eight; empty if the record has none."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Free JSON; empty if the record has none."""

    def to_record(self) -> dict[str, Any]:
        """Return the record as a JSON object without empty optional fields."""
        record: dict[str, Any] = {
            "task_id": self.task_id,
            "category": self.category,
            "prompt": self.prompt,
            "targets": list(self.targets),
            "metric_name": self.metric_name,
        }
        if self.few_shot_examples:
            record["few_shot_examples"] = [example._asdict() for example in self.few_shot_examples]
        record["post_process"] = self.post_process
        if self.metadata:
            record["metadata"] = dict(self.metadata)
        return record


@dataclass(frozen=True, slots=True)
class RecordError:
    """Violation of one rule by one field of a record."""

    rule: Rule
    field: str
    """Invalid field, e.g. `targets[1]` or `few_shot_examples[0].completion`; empty for the whole line."""
    message: str
    """Found and expected value; starts in lowercase, without a full stop."""
    hint: str | None = None
    """Hint on how to fix the error; `None` if unknown."""
    line: int | None = None
    """Line number from 1; `None` for a record without a file."""
    text: str | None = None
    """Invalid line, truncated to `LONGEST_TEXT` characters; `None` as for `line`."""
    column: int | None = None
    """Character of the line, from 1, where it stops being JSON; `None` for every other rule."""

    def to_issue(self, file: str | Path | None = None) -> Issue:
        """Convert the error to an issue with its position; the rule's ID is in brackets."""
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
            code=Code.WRONG_RECORD,
        )

    def __str__(self) -> str:
        return str(self.to_issue())


LONGEST_TEXT = 1_000
"""Maximum characters to keep of an invalid line, so that a file of invalid lines does not fill the memory."""


_ANSWER_OF = {
    "q": "a",
    "question": "answer",
    "problem": "solution",
    "input": "output",
    "text": "label",
    "article": "summary",
    "prompt": "completion",
}
"""Cue of a question → cue of its answer."""

_WORDS = (*_ANSWER_OF, *_ANSWER_OF.values())
_LONGEST_CUE = 24
"""Maximum characters before the colon of a cue, including number and Markdown."""

_BEHIND = " \t*_#0123456789"
"""Characters that are allowed between the word of a cue and its colon."""

_BEFORE = _BEHIND + ">-.()"
"""Characters that are allowed between the start of a line and the word of a cue."""

_LAST_WORD = re.compile(r"[^\W\d_]+$")


@dataclass(frozen=True, slots=True)
class _Cue:
    word: str
    line_start: int | None
    """Start of its line; `None` if the line contains text before the cue."""
    end: int
    """Position after its colon."""


def render(task: TaskSpec | Mapping[str, Any]) -> str:
    """Return the text for the model: each example as prompt, space, completion and a blank line; then the
    prompt.
    """
    record = task.to_record() if isinstance(task, TaskSpec) else task
    parts = [
        f"{example['prompt']} {example['completion']}" for example in record.get("few_shot_examples", [])
    ]
    parts.append(record["prompt"])
    return "\n\n".join(parts)


def few_shot_block(prompt: str, category: str | None = None) -> int | None:
    """Return the line number, from 1, of the answer in a solved example within a prompt; `None` without an
    example.

    A few-shot block is a question with its answer, followed by the next question. Questions and answers are
    recognized by the cues `Q:`/`A:`, `Question:`/`Answer:`, `Problem:`/`Solution:`, `Input:`/`Output:`,
    `Text:`/`Label:`, `Article:`/`Summary:` and `Prompt:`/`Completion:`, in any case, with or without numbers
    or Markdown. Exact definition:

    1. a question cue, at the start of a line or after an instruction in its line,
    2. then a line that starts with the answer cue of that pair, followed by text and
    3. the next line that starts with a cue of that pair.

    Therefore `Question: 17 + 24`, `Answer:` is not an example (the answer is missing). The options `A: …`,
    `B: …` (without a later `Q:`) and a reading passage with one question are not examples either.
    `Input:`/`Output:` are ignored in `code_exec` tasks, where they specify the program.
    """
    # A question, its answer and the next cue need separate lines.
    if prompt.count(":") < 3 or prompt.count("\n") < 2:
        return None
    cues = list(_cues(prompt))
    questions: set[str] = set()
    for number, cue in enumerate(cues):
        if cue.word in _ANSWER_OF:
            questions.add(_ANSWER_OF[cue.word])
        if (
            cue.word not in questions
            or cue.line_start is None
            or (cue.word, category) == ("output", "code_exec")
        ):
            continue
        following = _next_of_pair(cues, number)
        if following is not None and prompt[cue.end : following].strip(" \t\r\n*_"):
            return prompt.count("\n", 0, cue.end) + 1
    return None


def _next_of_pair(cues: list[_Cue], number: int) -> int | None:
    answer = cues[number].word
    for later in cues[number + 1 :]:
        if later.line_start is not None and answer in (later.word, _ANSWER_OF.get(later.word)):
            return later.line_start
    return None


def _cues(prompt: str) -> Iterator[_Cue]:
    """Yield every cue. The search goes backwards from colons, because most texts contain few."""
    line_start = previous = 0
    colon = prompt.find(":")
    while colon >= 0:
        newline = prompt.rfind("\n", previous, colon)
        if newline >= 0:
            line_start = newline + 1
        previous = colon
        tail = prompt[max(line_start, colon - _LONGEST_CUE) : colon].lower().rstrip(_BEHIND)
        if tail.endswith(_WORDS):
            word = _LAST_WORD.search(tail)
            if word is not None and word[0] in _WORDS:
                short = colon - line_start <= _LONGEST_CUE
                starts = short and tail[: word.start()].strip(_BEFORE) == ""
                yield _Cue(word[0], line_start if starts else None, colon + 1)
        colon = prompt.find(":", colon + 1)


def no_records(path: Path) -> Issue:
    """Return the issue of an empty file."""
    return Issue(
        "the file does not contain task records, expected at least one", file=str(path), code=Code.NO_ROWS
    )

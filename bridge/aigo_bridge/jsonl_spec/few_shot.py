"""Few-shot examples: putting them in front of a prompt, and finding those that an author wrote into the prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aigo_bridge.jsonl_spec.records import TaskSpec

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
"""Characters before the colon of a cue, with number and Markdown."""

_BEHIND = " \t*_#0123456789"
"""What may stand between the word of a cue and its colon."""

_BEFORE = _BEHIND + ">-.()"
"""What may stand between the start of a line and the word of a cue."""

_LAST_WORD = re.compile(r"[^\W\d_]+$")


@dataclass(frozen=True, slots=True)
class _Cue:
    word: str
    line_start: int | None
    """Where its line starts; `None` when other text stands before it in the line."""
    end: int
    """Behind its colon."""


def render(task: TaskSpec | Mapping[str, Any]) -> str:
    """The text that the model is given: each example as prompt, space, completion; a blank line; …; the prompt.

    Args:
        task: a task, or the record of a valid one as parsed JSON.
    """
    record = task.to_record() if isinstance(task, TaskSpec) else task
    parts = [
        f"{example['prompt']} {example['completion']}" for example in record.get("few_shot_examples", [])
    ]
    parts.append(record["prompt"])
    return "\n\n".join(parts)


def few_shot_block(prompt: str, category: str | None = None) -> int | None:
    """Where a prompt shows a solved example, as the 1-based line of its answer; `None` when it shows none.

    A few-shot block is a question with its answer, and after it the next question. Questions and answers are told by the cues
    `Q:`/`A:`, `Question:`/`Answer:`, `Problem:`/`Solution:`, `Input:`/`Output:`, `Text:`/`Label:`, `Article:`/`Summary:` and
    `Prompt:`/`Completion:`, in any case, numbered or not, in Markdown or not. Precisely: there is

    1. a question cue, at the start of a line or after an instruction in its line,
    2. then a line that starts with the answer cue of that pair, with text between it and
    3. the next line that starts with a cue of that pair.

    So `Question: 17 + 24`, `Answer:` is none (nothing is answered), nor are the options `A: …`, `B: …` (no `Q:` comes after them), nor
    a reading passage with one question. `Input:`/`Output:` are not looked for in `code_exec` tasks: there they specify the program.
    """
    # A question, its answer and what follows, each in its line.
    if prompt.count(":") < 3 or prompt.count("\n") < 2:
        return None
    cues = list(_cues(prompt))
    asked: set[str] = set()
    for number, cue in enumerate(cues):
        if cue.word in _ANSWER_OF:
            asked.add(_ANSWER_OF[cue.word])
        if cue.word not in asked or cue.line_start is None or (cue.word, category) == ("output", "code_exec"):
            continue
        following = _next_of_pair(cues, number)
        if following is not None and prompt[cue.end : following].strip(" \t\r\n*_"):
            return prompt.count("\n", 0, cue.end) + 1
    return None


def _next_of_pair(cues: list[_Cue], number: int) -> int | None:
    """Start of the next line with a cue of the same pair."""
    answer = cues[number].word
    for later in cues[number + 1 :]:
        if later.line_start is not None and answer in (later.word, _ANSWER_OF.get(later.word)):
            return later.line_start
    return None


def _cues(prompt: str) -> Iterator[_Cue]:
    """Every cue, found from its colon backwards: most texts have few colons."""
    line_start = before = 0
    colon = prompt.find(":")
    while colon >= 0:
        newline = prompt.rfind("\n", before, colon)
        if newline >= 0:
            line_start = newline + 1
        before = colon
        tail = prompt[max(line_start, colon - _LONGEST_CUE) : colon].lower().rstrip(_BEHIND)
        if tail.endswith(_WORDS):
            last = _LAST_WORD.search(tail)
            if last is not None and last[0] in _WORDS:
                short = colon - line_start <= _LONGEST_CUE
                starts = short and tail[: last.start()].strip(_BEFORE) == ""
                yield _Cue(last[0], line_start if starts else None, colon + 1)
        colon = prompt.find(":", colon + 1)

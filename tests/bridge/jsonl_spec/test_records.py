"""Rendering of examples, and detection of examples inside a prompt."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from tests.bridge.jsonl_spec.jsonl_records import made, tasks

from aigo_bridge.jsonl_spec import TaskSpec, few_shot_block, load_fixtures, render

pytestmark = pytest.mark.usefixtures("own_heap")


def test_examples_precede_the_prompt_and_end_with_a_blank_line() -> None:
    task = made(
        prompt="3 + 3 =",
        few_shot_examples=[
            {"prompt": "1 + 1 =", "completion": "2"},
            {"prompt": "2 + 2 =", "completion": "4"},
        ],
    )
    assert render(task) == "1 + 1 = 2\n\n2 + 2 = 4\n\n3 + 3 ="


@pytest.mark.parametrize("task", load_fixtures(), ids=lambda task: task.task_id)
def test_record_and_task_render_the_same_prompt(task: TaskSpec) -> None:
    """A runner with parsed lines needs no task object."""
    record = task.to_record()

    assert render(record) == render(task)
    assert render({**record, "few_shot_examples": []}) == task.prompt


def test_text_without_examples_is_the_prompt() -> None:
    assert render(made(few_shot_examples=None)) == made().prompt


@settings(deadline=None)
@given(tasks())
def test_text_starts_with_the_first_example_and_ends_with_the_prompt(task: TaskSpec) -> None:
    text = render(task)
    assert text.endswith(task.prompt)
    assert text.startswith((task.few_shot_examples or (task,))[0].prompt)


BLOCKS = [
    ("Q: a\nA: b\n\nQ: c\nA:", 2),
    ("Q: a\nA: b\nA:", 2),
    ("Question: 2 + 2\nAnswer: 4\n\nQuestion: 3 + 3\nAnswer:", 2),
    ("Compute. Question: 2 + 2\nAnswer: 4\n\nQuestion: 3 + 3\nAnswer:", 2),
    ("question: a\nanswer:\nb\n\nquestion: c\nanswer:", 2),
    ("Problem 1: a\nSolution 1: b\nProblem 2: c\nSolution 2:", 2),
    ("**Question:** a\n**Answer:** b\n\n**Question:** c\n**Answer:**", 2),
    ("Text: good\nLabel: positive\n\nText: bad\nLabel:", 2),
    ("Article: a\nb\nSummary: c\n\nArticle: d\nSummary:", 3),
    ("Input: 1\nOutput: 2\nInput: 3\nOutput:", 2),
]
NONE = [
    "Compute the result. Question: 17 + 24\nAnswer:",
    "Question: what is 2:1?\nAnswer: (in minutes:seconds)",
    "Q: Which one?\nA: Paris\nB: Rome\nC: Bern",
    "Which one?\nA: Paris\nB: Rome\nAnswer:",
    "Question: Which one?\nA: Paris\nB: Rome\nAnswer:",
    "Q: a\nA:\nQ: b\nA:",
    "Passage: a: b: c\nQuestion: d\nAnswer:",
    "Note: see Q: and A: above: they are cues",
    "User: hi\nAssistant: hello\nUser: bye\n\nSummarise the dialogue.",
    "Answer: b\n\nQuestion: c\nAnswer:",
    "",
]


@pytest.mark.parametrize(("prompt", "line"), BLOCKS)
def test_solved_example_before_the_question_is_a_few_shot_block(prompt: str, line: int) -> None:
    assert few_shot_block(prompt) == line


@pytest.mark.parametrize("prompt", NONE)
def test_open_questions_options_and_dialogues_are_not_few_shot_blocks(prompt: str) -> None:
    assert few_shot_block(prompt) is None


def test_input_output_pairs_of_code_tasks_are_not_few_shot_blocks() -> None:
    prompt = "Square it.\nInput: 2\nOutput: 4\nInput: 3\nOutput: 9"
    assert few_shot_block(prompt) == 3
    assert few_shot_block(prompt, "code_exec") is None


@pytest.mark.parametrize(
    "prompt",
    ["A: x\n" * 100_000, "Q: " * 200_000, "Q:" + " " * 500_000 + "A", "#" * 500_000, "q\t" * 250_000 + ":::"],
)
def test_search_time_for_a_hostile_prompt_is_linear(prompt: str) -> None:
    started = time.process_time()
    few_shot_block(prompt)
    assert time.process_time() - started < 5

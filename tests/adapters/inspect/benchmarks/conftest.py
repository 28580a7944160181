"""Fixtures: a folder with a space in its name that contains Inspect tasks and answers."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.support.plugins import NOTHING_REGISTERED

ANSWERS = (
    "ANSWER: B",
    "ANSWER: A",
    "",
    "   ANSWER: B   \n\n",
    "I cannot help with that.",
    "B",
    "b",
    "The answer is B, because of A and C; I considered each in turn.\n\nANSWER: B\n",
    "ANSWER: A, B",
    "ANSWER: B.",
    "**ANSWER: (B)**",
    "42",
    "It is 42.",
    "42.0 exactly",
    "1,042",
    "forty-two",
    "Café ñandú",
    "CAFÉ ÑANDÚ!",
    "Straße — 四十二 🙂",
    "the café",
    "ANSWER: Z",
    "{{ sample.input }} <think>",
    "\n",
    "ANSWER: 42",
)
"""One answer for each sample: correct, wrong, empty, padded, refused, verbose, Unicode."""

TASKS = """
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser
from inspect_ai.scorer import (
    Score, accuracy, answer, choice, exact, f1, includes, match, model_graded_qa, pattern, scorer,
)
from inspect_ai.solver import (
    chain_of_thought, generate, multiple_choice, prompt_template, self_critique, solver, system_message,
)

TARGETS = ["B", ["B", "A"], "42", ["42", "Café ñandú"], "Straße — 四十二 🙂"]


def plain():
    return [
        Sample(id=f"s{n:02}", input=f"Q{n:02}: {{{{ what }}}} is ñ?\\n", target=TARGETS[n % 5], metadata={"hint": f"h{n}"})
        for n in range(24)
    ]


def lettered():
    return [
        Sample(id=n + 1, input=f"Q{n:02}: which?", choices=["one", "two", "thrée"], target="B") for n in range(24)
    ]


@task
def matching():
    return Task(plain(), solver=[system_message("Be brief. {hint}"), generate()], scorer=[match(), includes(), exact(), f1()])


@task
def numbers():
    solver = [prompt_template("Solve: {prompt} ({hint})"), chain_of_thought(), generate()]
    return Task(plain(), solver=solver, scorer=[match(numeric=True), answer("line"), pattern("(\\\\d+|B)")])


@task
def choices(cot: bool = False):
    return Task(lettered(), solver=multiple_choice(cot=cot), scorer=choice())


@task
def several_correct():
    return Task(lettered(), solver=[system_message("Choose."), multiple_choice(multiple_correct=True)], scorer=choice())


@task
def few_shot():
    shots = [ChatMessageSystem(content="Go on."), ChatMessageUser(content="1?"), ChatMessageAssistant(content="1")]
    rows = [
        Sample(id=f"s{n:02}", input=[*shots[: 1 + n % 3], ChatMessageUser(content=f"Q{n:02}")], target="B")
        for n in range(24)
    ]
    return Task(rows, solver=generate(), scorer=includes(ignore_case=False))
"""

OTHERS = '''
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes, model_graded_qa
from inspect_ai.solver import multiple_choice, self_critique, generate


@task
def fails_once(word: str = "yes"):
    """Asks twice."""
    return Task([Sample(id="good", input="hello", target=word), Sample(id="bad", input="crash", target="x")], scorer=includes())


@task
def shuffled():
    return Task([Sample(input="a", choices=["x", "y"], target="A")], solver=multiple_choice(shuffle=True), scorer=includes())


@task
def judged():
    return Task(
        [Sample(input="a", target="A")],
        solver=[generate(), self_critique()],
        scorer=model_graded_qa(),
        epochs=Epochs(3, "pass_at_2"),
    )


@task
def no_model():
    return Task([Sample(input="yes", target="")], solver=[], scorer=includes())
'''


@pytest.fixture
def benchmarks(tmp_path: Path) -> Path:
    """Return the folder with the tasks and answers."""
    folder = tmp_path / "my tasks"
    folder.mkdir()
    (folder / "converted.py").write_text(TASKS, encoding="utf-8")
    (folder / "others.py").write_text(OTHERS, encoding="utf-8")
    rules: list[dict[str, object]] = [
        {"match": {"contains": f"Q{number:02}"}, "reply": answer} for number, answer in enumerate(ANSWERS)
    ]
    rules += [
        {"match": {"exact": "crash"}, "reply": {"error": "bad request", "status": 400}},
        {"default": True, "reply": "yes"},
    ]
    (tmp_path / "answers.jsonl").write_text(
        "".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8"
    )
    return folder


@pytest.fixture
def inspect_evals(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that the benchmarks of inspect-evals are registered."""
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path != NOTHING_REGISTERED])

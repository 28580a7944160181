"""Inspect tasks that can be converted, and one that cannot."""

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import choice, includes, match, model_graded_qa, pattern
from inspect_ai.solver import (
    chain_of_thought,
    generate,
    multiple_choice,
    prompt_template,
    self_critique,
    system_message,
)


def rows() -> list[Sample]:
    return [
        Sample(
            id=f"s{n}",
            input=f"Q{n}: {{{{ what }}}} is ñ?\n",
            target=["4", "2"][n % 2],
            metadata={"hint": f"h{n}"},
        )
        for n in range(3)
    ]


@task
def numbers() -> Task:
    solver = [
        system_message("Be brief."),
        prompt_template("Solve: {prompt} ({hint})"),
        chain_of_thought(),
        generate(),
    ]
    return Task(rows(), solver=solver, scorer=[match(numeric=True), includes(), pattern("(\\d+|B)")])


@task
def letters(cot: bool = False) -> Task:
    questions = [
        Sample(id=n, input=f"Which {n}?", choices=["one", "two", "thrée"], target="B") for n in (1, 2)
    ]
    return Task(questions, solver=multiple_choice(cot=cot), scorer=choice())


@task
def judged() -> Task:
    return Task(
        rows(), solver=[generate(), self_critique()], scorer=model_graded_qa(), epochs=Epochs(3, "pass_at_2")
    )

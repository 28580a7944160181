"""A benchmark as it is written for Inspect."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

EASY = {"What has hands but cannot clap?": "clock", "What gets wetter as it dries?": "towel"}
HARD = {"What can fill a room but takes up no space?": "light"}


@task
def riddles(difficulty: str = "easy") -> Task:
    """Riddles with one right answer."""
    rows = HARD if difficulty == "hard" else EASY
    return Task(
        dataset=[Sample(input=question, target=answer) for question, answer in rows.items()],
        solver=generate(),
        scorer=includes(),
    )

"""Real Inspect evals with scores and metrics of every type: letters, dictionaries, several scorers and reducers, groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from inspect_ai import Epochs, Task
from inspect_ai import eval as run_eval
from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    accuracy,
    bootstrap_stderr,
    ci,
    grouped,
    mean,
    metric,
    scorer,
    std,
    stderr,
    var,
)
from inspect_ai.solver import Generate, Solver, TaskState, solver

from aigo_inspect.importing.importing import import_file

SAMPLES = 12
REDUCERS = ["mean", "median", "mode", "max", "at_least_2", "pass_at_2"]


@solver
def silent() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        return state

    return solve


@scorer(
    metrics={"relevance": [mean(), stderr(), std(), var()], "fluency": [mean(), stderr(), bootstrap_stderr()]}
)
def marks() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        number = int(state.sample_id)
        return Score(value={"relevance": 1 + (number * 7 + state.epoch) % 5, "fluency": (number % 4) / 4})

    return score


@scorer(metrics=[accuracy(), stderr()])
def letters() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="CPIN"[(int(state.sample_id) * 3 + state.epoch // 2) % 4])

    return score


@scorer(metrics=[accuracy(), stderr(cluster="doc")])
def strict() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if (int(state.sample_id) + state.epoch) % 3 else "I")

    return score


@scorer(
    metrics=[
        grouped(accuracy(), "category"),
        grouped(mean(), "doc", all="groups", all_label="overall", name_template="doc {group_name}"),
        accuracy(),
    ]
)
def by_group() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value="C" if (int(state.sample_id) * 5) % 3 else "I")

    return score


@metric
def total() -> Metric:
    def compute(scores: list[SampleScore]) -> float:
        return float(len(scores)) + 0.25

    return compute


@scorer(metrics=[mean(), total(), ci()])
def counts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=int(int(state.sample_id) % 3 == 0))

    return score


def task(name: str, scorers: list[Scorer], **options: Any) -> Task:
    samples = [
        Sample(
            id=number,
            input=f"Question {number}?",
            metadata={"category": "ab"[number % 2], "doc": number // 3},
        )
        for number in range(SAMPLES)
    ]
    return Task(samples, solver=silent(), scorer=scorers, name=name, **options)


def tasks() -> Iterator[Task]:
    yield task("letters", [letters(), strict()])
    yield task("reducers", [letters(), strict(), marks()], epochs=Epochs(3, list(REDUCERS)))
    yield task("dictionary", [marks()])
    yield task("groups", [by_group()])
    yield task("counts", [counts()])


def evals(folder: Path) -> dict[str, tuple[Path, EvalLog]]:
    """Run all evals and return the imported result and the Inspect log by name."""
    logs = run_eval(
        list(tasks()),
        model="none",
        log_dir=str(folder / "logs"),
        display="none",
        log_realtime=False,
        max_tasks=1,
    )
    results: dict[str, tuple[Path, EvalLog]] = {}
    for log in logs:
        assert log.status == "success", log.error
        report = import_file(Path(log.location), folder / log.eval.task)
        assert report.output is not None
        results[log.eval.task] = (report.output, log)
    return results

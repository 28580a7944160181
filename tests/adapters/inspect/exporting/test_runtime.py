"""Runtime code of native exports: scorers, metrics and trials as seen by Inspect."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import anyio
from inspect_ai._util.registry import registry_unqualified_name
from inspect_ai.model import ModelName, ModelOutput
from inspect_ai.scorer import SampleScore, Score, Target
from inspect_ai.solver import TaskState

from aigo_bridge.exporting.runtime import string_equals
from aigo_inspect.exporting import native, runtime

ABOUT: dict[str, Any] = {
    "key": "my scorer",
    "methods": ["trim"],
    "settings": {},
    "metrics": [{"type": "mean", "field": "is_correct", "name": "accuracy"}],
    "asks_model": True,
}


def state(answer: str, **metadata: Any) -> TaskState:
    task_state = TaskState(ModelName("none/none"), 1, 1, "", [], metadata=metadata)
    task_state.output = ModelOutput.from_content("none", answer)
    return task_state


def score(task_state: TaskState) -> Score:
    scorer = runtime.scored(string_equals, ABOUT)
    assert registry_unqualified_name(scorer) == "my scorer"
    scored = anyio.run(scorer, task_state, Target("x"))
    assert scored is not None
    return scored


def test_a_scorer_compares_the_answer_with_the_target() -> None:
    solved = state(" x ")
    solved.store.set("solved", True)

    assert score(solved).value == {"is_correct": 1.0}


def test_an_explicit_value_and_ground_truth_are_compared() -> None:
    solved = state("x", expected={"my scorer": {"value": "y", "ground_truth": "y"}})
    solved.store.set("solved", True)

    assert (score(solved).value, score(solved).answer) == ({"is_correct": 1.0}, "y")


def test_a_sample_stopped_by_a_limit_has_no_score() -> None:
    assert math.isnan(cast("float", score(state("x")).value))


def test_metrics_ignore_excluded_samples() -> None:
    scores = [
        SampleScore(score=Score(value={"is_correct": value}), sample_metadata={"excluded": excluded})
        for value, excluded in ((1.0, False), (0.0, True))
    ]

    assert cast("Any", runtime.metrics(ABOUT))(scores) == {"accuracy": 1.0}


def test_failed_trials_are_ignored() -> None:
    reduce = runtime.trials([{"field": "n", "name": "worst", "function": "min"}])
    failed = Score(value=math.nan)

    assert reduce([Score(value={"n": 1.0}), failed, Score(value={"n": 0.0})]).value == {
        "n": 0.5,
        "worst": 0.0,
    }
    assert reduce([failed]) is failed


def test_samples_are_read_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"id": 1, "input": "a"}\n{"id": 2, "input": "b\\u2028"}\n')

    dataset = runtime.samples(tmp_path / "rows.jsonl", "mine")

    assert (dataset.name, [sample.input for sample in dataset]) == ("mine", ["a", "b\u2028"])


def test_every_native_form_has_runtime_code() -> None:
    for form in native.SOLVERS.values():
        assert not form.code or hasattr(runtime, form.code.partition("(")[0])
    for form in native.SCORERS.values():
        assert bool(form.code) != bool(form.reason)

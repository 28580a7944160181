"""Solutions and scores are restored unchanged from JSON, for every engine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from aigo_bridge.dtypes import SolverOutput
from aigo_bridge.execution.codec import Json, dump_result, dump_solution, load_result, load_solution
from aigo_bridge.execution.solutions import SampleFailure, ScorerRow, Solution
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.solving.conversation import assistant_item, empty_trace, text_item

SAMPLE = Sample(7, {"q": "why"})


def dump(output: SolverOutput) -> Json:
    dumped: Json = output.model_dump(mode="json", exclude_unset=False, exclude_none=True)
    return dumped


def output(*texts: str) -> SolverOutput:
    trace = empty_trace()
    trace.extend([text_item("user", texts[0]), *(assistant_item(text) for text in texts[1:])])
    return trace


def back(result: Solution | SampleFailure, *, postprocessed: bool) -> Any:
    stored = json.loads(json.dumps(dump_solution(result, dump, postprocessed=postprocessed)))
    return load_solution(stored, SAMPLE)


def test_solution_without_stored_rows_is_scored_as_its_sample() -> None:
    whole = output("why", "because")
    solution = Solution(whole, (ScorerRow(SAMPLE, whole),))
    assert back(solution, postprocessed=False) == solution


@pytest.mark.parametrize("absent", [False, True])
def test_postprocessor_rows_and_outputs_are_restored(absent: bool) -> None:
    rows = (
        ()
        if absent
        else (ScorerRow(Sample("7.a", {"q": 1}), output("a")), ScorerRow(Sample("7.b", {}), None))
    )
    solution = Solution(output("why", "because"), rows, absent=absent)
    assert back(solution, postprocessed=True) == solution


def test_failure_is_restored_without_its_details() -> None:
    failure = SampleFailure("solver", "ModelError", "no answer", "try again", {"judge_calls": 1})
    assert back(failure, postprocessed=True) == SampleFailure(
        "solver", "ModelError", "no answer", "try again"
    )
    assert load_solution({}, SAMPLE) is None


@pytest.mark.parametrize(
    "result",
    [
        Score({"a": 1.0, "b": "x"}, {"why": ["so"]}),
        SampleFailure("score", "JudgeError", "no verdict", None, {"judge_calls": [1]}),
    ],
)
def test_score_and_scorer_failure_are_restored_completely(result: Score | SampleFailure) -> None:
    assert load_result(json.loads(json.dumps(dump_result(result)))) == result

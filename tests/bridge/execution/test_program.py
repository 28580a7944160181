"""The boundary around a sample: exceptions become failures with a stage, except cancellation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter

from aigo_bridge.errors import SampleError, SnippetError
from aigo_bridge.execution.program import contained
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.models.protocol import Model
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.judges import JudgeError
from aigo_bridge.scoring.registry import compile_scorers
from aigo_bridge.scoring.scorer import Score
from aigo_bridge.snippets import SnippetHost, SnippetLimits
from aigo_bridge.spec.scorers import Scorer

SCORER: TypeAdapter[Scorer] = TypeAdapter(Scorer)


def contain(error: BaseException, **fields: Any) -> Any:
    async def work() -> int:
        raise error

    return asyncio.run(contained(work(), "score", **fields))


def nobody(key: str) -> Model:
    raise AssertionError(f"model {key!r} was called")


def test_result_is_returned_unchanged() -> None:
    async def work() -> int:
        return 4

    assert asyncio.run(contained(work(), "solver")) == 4


def test_sample_error_keeps_its_message() -> None:
    error = SampleError("no answer", stage="solver", hint="ask", kind="ModelError")
    assert contain(error) == SampleFailure("solver", "ModelError", "no answer", "ask")


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ValueError("bad"), "ValueError", "bad"),
        (KeyError("x"), "KeyError", "'x'"),
        (RuntimeError(), "RuntimeError", "RuntimeError"),
        (RecursionError("deep"), "RecursionError", "deep"),
        (MemoryError(), "MemoryError", "MemoryError"),
        (SnippetError("s: boom"), "SnippetError", "s: boom"),
        (ExceptionGroup("several", [ValueError("a")]), "ExceptionGroup", "several (1 sub-exception)"),
    ],
)
def test_other_exception_becomes_a_failure_with_the_stage(error: Exception, kind: str, message: str) -> None:
    assert contain(error) == SampleFailure("score", kind, message)


@pytest.mark.parametrize(
    "error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3), GeneratorExit()]
)
def test_exceptions_that_end_the_run_are_raised(error: BaseException) -> None:
    async def work() -> int:
        raise error

    async def main() -> None:
        with pytest.raises(type(error)):
            await contained(work(), "score")

    asyncio.run(main())


def test_exception_of_an_engine_limit_is_raised_if_listed() -> None:
    with pytest.raises(TimeoutError):
        contain(TimeoutError("limit"), let_through=(TimeoutError,))
    assert contain(TimeoutError("limit")).kind == "TimeoutError"


def test_judge_error_keeps_its_model_calls() -> None:
    calls = [{"reply": "?"}]
    assert contain(JudgeError("unreadable", calls, kind="K")).details == {"judge_calls": calls}
    assert contain(JudgeError("unreadable", [], kind="K")).details == {}


def test_failure_is_restored_from_a_log_and_becomes_evidence() -> None:
    failure = SampleFailure("score", "KeyError", "'x'", "look")
    assert SampleFailure.from_json(json.loads(json.dumps(failure.to_json()))) == failure
    error = failure.to_error("scorer 'a'")
    assert (error.error_type, error.message, error.hint) == ("KeyError", "scorer 'a': 'x'", "look")
    assert error.model_dump(mode="json")["stage"] == "score"


@pytest.fixture(scope="module")
def host() -> Iterator[SnippetHost]:
    host = SnippetHost(SnippetLimits(seconds=20))
    yield host
    host.close()


def score_all(host: SnippetHost, source: str, rows: list[dict[str, Any]]) -> list[Score | SampleFailure]:
    spec = SCORER.validate_python(
        {"type": "python_all_samples", "compute_scores_snippet": source, "metrics": []}
    )
    samples = [Sample(number, row) for number, row in enumerate(rows)]
    (compiled,) = compile_scorers([spec], samples=samples, host=host)

    async def main() -> list[Score | SampleFailure]:
        works = [contained(compiled.score(sample, None, nobody), "score") for sample in samples]
        return await asyncio.gather(*works)

    return asyncio.run(main())


def test_all_samples_are_scored_in_order_by_one_call(host: SnippetHost) -> None:
    source = (
        "calls = []\ndef compute_scores(samples):\n    calls.append(1)\n"
        "    return [{'scores': {'n': s['n'] * 2}, 'metadata': {'calls': len(calls)}} for s in samples]"
    )
    found = score_all(host, source, [{"n": 3}, {"n": 1}, {"n": 2}])
    assert found == [Score({"n": number}, {"calls": 1}) for number in (6, 2, 4)]


def test_invalid_score_entry_fails_only_its_sample(host: SnippetHost) -> None:
    good, bad, metadata = score_all(
        host, "def compute_scores(s): return [{'x': 1}, 'two', {'scores': {}, 'metadata': [1]}]", [{}, {}, {}]
    )
    assert good == Score({"x": 1})
    assert isinstance(bad, SampleFailure)
    assert (
        bad.message == "compute_scores_snippet: compute_scores returned a str, expected a mapping of scores"
    )
    assert isinstance(metadata, SampleFailure)
    assert "its metadata is a list, expected a mapping" in metadata.message


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("[]", "returned 0 entries, expected a list with one entry for each of the 2 samples"),
        ("[{}, {}, {}]", "returned 3 entries"),
        ("{'x': 1}", "returned a dict, expected a list"),
        ("None", "returned a NoneType"),
        ("1 / 0", "ZeroDivisionError: division by zero (line 1, in compute_scores"),
    ],
)
def test_exception_in_the_scoring_call_fails_every_sample(
    host: SnippetHost, returned: str, message: str
) -> None:
    found = score_all(host, f"def compute_scores(samples): return {returned}", [{}, {}])
    assert len(found) == 2
    for each in found:
        assert isinstance(each, SampleFailure)
        assert message in each.message
        assert each.stage == "score"


@pytest.mark.parametrize(
    ("entry", "outcome"),
    [
        ({"a": 1}, Score({"a": 1})),
        ({}, Score({})),
        ({"scores": {"a": 1}}, Score({"a": 1})),
        ({"scores": {"a": 1}, "metadata": None}, Score({"a": 1})),
        ({"scores": 4}, Score({"scores": 4})),
        ({"scores": {"a": 1}, "b": 2}, Score({"scores": {"a": 1}, "b": 2})),
    ],
)
def test_score_entries_with_and_without_metadata_are_distinguished(
    host: SnippetHost, entry: dict[str, Any], outcome: Score
) -> None:
    assert score_all(host, f"def compute_scores(samples): return [{entry!r}]", [{}]) == [outcome]

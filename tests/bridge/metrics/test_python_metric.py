"""The author's own metrics, run in a real worker."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import dedent

import pytest

from aigo_bridge.dtypes import DirectModelIO, ModelEndpointInput, ModelEndpointOutput, SampleScore
from aigo_bridge.metrics import MetricResult, compute_metric
from aigo_bridge.snippets import SnippetHost, SnippetLimits
from aigo_bridge.spec.metrics import PythonMetric

SCORES = [{"x": 1.0, "who": "a"}, {"x": 3.0, "who": "b"}]


@pytest.fixture(scope="module")
def host() -> Iterator[SnippetHost]:
    host = SnippetHost(SnippetLimits(seconds=20))
    yield host
    host.close()


def metric(source: str) -> PythonMetric:
    return PythonMetric(type="python", compute_metrics_snippet=dedent(source))


def returning(host: SnippetHost, expression: str) -> MetricResult:
    return compute_metric(metric(f"def compute_metrics(scores): return {expression}"), SCORES, host=host)


def test_it_sees_sample_scores_and_gives_numbers(host: SnippetHost) -> None:
    source = """
        from latticeflow.core.dtypes import SampleScore

        def compute_metrics(scores: list[SampleScore]) -> dict[str, float]:
            assert all(isinstance(score, SampleScore) for score in scores)
            return {"total": sum(score.values["x"] for score in scores), "count": len(scores)}
    """
    result = compute_metric(metric(source), SCORES, host=host)
    assert result == MetricResult({"total": 4.0, "count": 2}, 2, 0)


def test_it_may_be_async(host: SnippetHost) -> None:
    source = """
        import asyncio

        async def compute_metrics(scores):
            await asyncio.sleep(0)
            return {"count": len(scores)}
    """
    assert compute_metric(metric(source), SCORES, host=host).values == {"count": 2}


def test_it_sees_metadata_and_model_calls_where_they_are_given(host: SnippetHost) -> None:
    exchange = DirectModelIO(
        direct_input=ModelEndpointInput(body="{}"),
        direct_output=ModelEndpointOutput(body="hello", status_code=200),
    )
    samples = [SampleScore(values={"x": 1.0}, metadata={"weight": 5}, direct_ios=[exchange])]
    source = """
        def compute_metrics(scores):
            (score,) = scores
            return {"weight": score.metadata["weight"], "letters": len(score.direct_ios[0].direct_output.body)}
    """
    result = compute_metric(metric(source), [{"x": 1.0}], host=host, samples=samples)
    assert result.values == {"weight": 5, "letters": 5}


def test_without_samples_it_is_called_with_an_empty_list(host: SnippetHost) -> None:
    source = "def compute_metrics(scores): return {'count': len(scores)}"
    assert compute_metric(metric(source), [], host=host) == MetricResult({"count": 0}, 0, 0)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("1 / 0", "compute_metrics_snippet: ZeroDivisionError: division by zero (line 1"),
        (
            "3",
            "compute_metrics_snippet: compute_metrics returned a int, expected a mapping of names to numbers",
        ),
        (
            "{'a': 1, 'b': 'two'}",
            "compute_metrics_snippet: compute_metrics returned what is no number: 'b' is 'two'",
        ),
        (
            "{'a': {'value': 1}}",
            "compute_metrics_snippet: compute_metrics returned what is no number: 'a' is {'value': 1}",
        ),
        ("{}", "compute_metrics returned no values"),
        ("{'a': 10**400}", "the numbers are too large to compute with"),
    ],
)
def test_a_metric_that_fails_has_no_value_and_says_why(
    host: SnippetHost, expression: str, problem: str
) -> None:
    result = returning(host, expression)
    assert result.values == {}
    assert (result.num_used, result.num_skipped) == (0, 2)
    assert str(result.problem).startswith(problem)


def test_a_value_that_is_no_finite_number_is_left_out_and_named(host: SnippetHost) -> None:
    result = returning(host, "{'a': 1, 'b': float('nan'), 'c': None, 'd': float('inf')}")
    assert result.values == {"a": 1}
    assert (
        result.problem
        == "compute_metrics returned values that are left out: 'b' is nan, 'c' is None, 'd' is inf"
    )


def test_a_boolean_is_a_number_in_metrics(host: SnippetHost) -> None:
    values = returning(host, "{'passed': True}").values
    assert values == {"passed": 1}
    assert type(values["passed"]) is int


def test_a_snippet_without_the_function_says_what_it_must_define(host: SnippetHost) -> None:
    result = compute_metric(metric("def total(scores): return {}"), SCORES, host=host)
    assert "must define a function `compute_metrics`; it defines total" in str(result.problem)


def test_without_a_worker_it_is_not_run() -> None:
    result = compute_metric(metric("def compute_metrics(scores): return {'a': 1}"), SCORES)
    assert (result.values, result.num_skipped) == ({}, 2)
    assert "no worker process" in str(result.problem)

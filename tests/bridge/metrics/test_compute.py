"""Metrics compared with values computed by hand, and their mathematical properties."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from aigo_bridge.dtypes import DirectModelIO, ModelEndpointInput, ModelEndpointOutput, SampleScore
from aigo_bridge.metrics.metric import MetricResult
from aigo_bridge.metrics.registry import compute_metric
from aigo_bridge.snippets import SnippetHost, SnippetLimits
from aigo_bridge.spec.metrics import Metric, PythonMetric

pytestmark = pytest.mark.usefixtures("own_heap")

METRIC: TypeAdapter[Metric] = TypeAdapter(Metric)
COUNTS = {
    "num_true_positives_field": "tp",
    "num_false_positives_field": "fp",
    "num_false_negatives_field": "fn",
}
NAN = math.nan


def compute(scores: Sequence[Mapping[str, Any]], **spec: Any) -> MetricResult:
    return compute_metric(METRIC.validate_python(spec), scores)


def over(kind: str, *values: Any, **spec: Any) -> MetricResult:
    """Return a metric over the values of one score `x`."""
    return compute([{"x": value} for value in values], type=kind, field="x", **spec)


@pytest.mark.parametrize(
    ("kind", "values", "name", "number"),
    [
        ("mean", (1.0, 0.0, 1.0, 1.0), "x_mean", 0.75),
        ("mean", (True, False, False), "x_mean", 1 / 3),
        ("mean", (0.1, 0.1, 0.1), "x_mean", 0.1),
        ("mean", (3,), "x_mean", 3.0),
        ("mean", (-5, 5, None), "x_mean", 0.0),
        ("min", (3, 1.5, 2), "x_min", 1.5),
        ("max", (True, False), "x_max", 1),
        ("std_dev", (2, 4, 4, 4, 5, 5, 7, 9), "x_std_dev", math.sqrt(32 / 7)),
        ("std_dev", (2 / 3, 1, 2 / 3, 1, 2 / 3), "x_std_dev", 0.18257418583505536),
        ("std_dev", (5,), "x_std_dev", 0.0),
    ],
)
def test_metric_equals_the_value_computed_by_hand(
    kind: str, values: tuple[Any, ...], name: str, number: float
) -> None:
    result = over(kind, *values)
    assert list(result.values) == [name]
    assert result.values[name] == pytest.approx(number, rel=1e-15)
    assert result.problem is None


def test_metric_may_have_a_custom_name() -> None:
    assert over("mean", 1.0, name="accuracy").values == {"accuracy": 1.0}
    assert over("weighted_average", "a", weights={"a": 2.0}, name="points").values == {"points": 2.0}


@pytest.mark.parametrize("kind", ["mean", "min", "max", "std_dev", "frequency"])
def test_missing_values_are_skipped_and_counted_but_never_zero(kind: str) -> None:
    scores: list[dict[str, Any]] = [{"x": 4.0}, {"x": None}, {"x": NAN}, {"y": 1.0}, {"x": 4.0}]
    result = compute(scores, type=kind, field="x")
    assert (result.num_used, result.num_skipped) == (2, 3)
    assert list(result.values.values()) == [{"std_dev": 0.0, "frequency": 1.0}.get(kind, 4.0)]


@pytest.mark.parametrize("kind", ["mean", "min", "max", "std_dev", "frequency"])
def test_metric_without_values_has_a_reason(kind: str) -> None:
    for values in ((), (None,), (NAN, None)):
        result = over(kind, *values)
        assert result.values == {}
        assert result.num_skipped == len(values)
        assert result.problem == "no sample has a value for 'x'"


def test_a_misspelled_field_is_reported_with_the_known_scores() -> None:
    result = compute([{"is_correct": 1.0, "b": 2}], type="mean", field="is_corect")
    assert result.problem == "no sample has a score 'is_corect'; the scorer gives: b, is_correct"


@pytest.mark.parametrize("kind", ["mean", "min", "max", "std_dev"])
@pytest.mark.parametrize("wrong", ["good", [1], {"a": 1}, math.inf, -math.inf, "1"])
def test_one_non_numeric_value_leaves_the_metric_without_a_value(kind: str, wrong: object) -> None:
    result = over(kind, 1.0, wrong, 2.0)
    assert result.values == {}
    assert result.problem is not None
    assert result.problem.startswith(f"'x' has the value {wrong!r}")


@pytest.mark.parametrize("kind", ["mean", "min", "max", "std_dev"])
@pytest.mark.parametrize("values", [(10**400, 1.5), (10**400,), (2**63, 1.0, 2**64), (1e308, -1e308, 1e308)])
def test_huge_numbers_give_a_finite_value_or_a_problem(kind: str, values: tuple[float, ...]) -> None:
    result = over(kind, *values)
    assert all(math.isfinite(value) for value in result.values.values())
    assert bool(result.values) == (result.problem is None)


def test_huge_text_is_truncated_in_the_message() -> None:
    assert len(over("mean", "x" * 1_000_000).problem or "") < 200
    labels = [f"label {number}" for number in range(1000)]
    assert len(over("weighted_average", *labels, weights={"a": 1.0}).problem or "") < 500


finite = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
gaps = st.none() | st.just(NAN)


@given(st.lists(finite, min_size=1), st.lists(gaps))
def test_the_mean_is_between_minimum_and_maximum(values: list[float], missing: list[Any]) -> None:
    given_values = [*values, *missing]
    mean = over("mean", *given_values)
    low, high = over("min", *given_values).values["x_min"], over("max", *given_values).values["x_max"]
    assert low <= mean.values["x_mean"] <= high
    assert (mean.num_used, mean.num_skipped) == (len(values), len(missing))


@given(st.lists(finite, min_size=1), st.randoms(use_true_random=False))
def test_metrics_do_not_depend_on_the_sample_order(values: list[float], random: Any) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)
    for kind in ("mean", "min", "max", "std_dev"):
        assert over(kind, *values) == over(kind, *shuffled)


@given(st.lists(st.text(max_size=3) | st.booleans() | st.integers() | gaps))
def test_frequencies_add_up_to_one(values: list[Any]) -> None:
    result = over("frequency", *values)
    assert result.num_used + result.num_skipped == len(values)
    assert math.fsum(result.values.values()) == pytest.approx(1.0 if result.num_used else 0.0)
    assert all(0 < share <= 1 for share in result.values.values())


@given(st.lists(st.floats(min_value=-1e6, max_value=1e6), min_size=2), st.floats(-1e6, 1e6))
def test_adding_a_constant_shifts_the_mean_but_not_the_deviation(values: list[float], by: float) -> None:
    moved = [value + by for value in values]
    assert over("mean", *moved).values["x_mean"] == pytest.approx(
        over("mean", *values).values["x_mean"] + by, abs=1e-6
    )
    assert over("std_dev", *moved).values["x_std_dev"] == pytest.approx(
        over("std_dev", *values).values["x_std_dev"], abs=1e-6
    )


def test_frequencies_distinguish_values_that_print_differently() -> None:
    assert over("frequency", "en", "de", "en", None, True, 1).values == {
        "x_en": 0.4,
        "x_de": 0.2,
        "x_True": 0.2,
        "x_1": 0.2,
    }


def test_weighted_average_ignores_missing_labels() -> None:
    weights = {"good": 1, "fair": 0.5, "poor": -1}
    result = over("weighted_average", "good", "fair", "fair", None, "poor", weights=weights)
    assert result.values == {"x_weighted_average": 0.25}
    assert (result.num_used, result.num_skipped) == (4, 1)


def test_a_label_without_a_weight_is_an_error_not_a_zero() -> None:
    result = over("weighted_average", "good", "odd", "bad", weights={"good": 1})
    assert result.values == {}
    assert result.problem == "'x' has labels without a weight: 'bad', 'odd'"


@pytest.mark.parametrize("weight", [math.inf, -math.inf, NAN])
def test_a_weight_must_be_finite(weight: float) -> None:
    result = over("weighted_average", "a", "b", weights={"a": weight, "b": -weight})
    assert (result.values, result.problem) == ({}, "a weight is not a finite number")


def test_ratios_are_computed_from_summed_counts() -> None:
    scores = [{"tp": 1, "fp": 1, "fn": 0}, {"tp": 8, "fp": 0, "fn": 2}]
    fields = dict(COUNTS)
    recall = {name: fields[name] for name in ("num_true_positives_field", "num_false_negatives_field")}
    precision = {name: fields[name] for name in ("num_true_positives_field", "num_false_positives_field")}
    assert compute(scores, type="precision", **precision).values == {"precision": 0.9}
    assert compute(scores, type="recall", **recall).values == {"recall": 9 / 11}
    assert compute(scores, type="f1_score", **fields).values == {"f1_score": 18 / 21}
    assert compute(scores, type="f1_score", name="f", **fields).values == {"f": 18 / 21}


def test_sample_without_one_of_the_counts_is_excluded() -> None:
    scores: list[dict[str, Any]] = [
        {"tp": 3, "fp": 1},
        {"tp": 100},
        {"tp": 1, "fp": None},
        {"tp": True, "fp": False},
    ]
    result = compute(scores, type="precision", num_true_positives_field="tp", num_false_positives_field="fp")
    assert result.values == {"precision": 0.8}
    assert (result.num_used, result.num_skipped) == (2, 2)


def test_an_undefined_ratio_is_zero_with_a_reason() -> None:
    result = compute([{"tp": 0, "fp": 0, "fn": 0}], type="f1_score", **COUNTS)
    assert result.values == {"f1_score": 0.0}
    assert result.problem == "all counts are zero; 0.0 stands for an undefined ratio"


@pytest.mark.parametrize("wrong", ["3", -1, math.inf, [1]])
def test_an_invalid_count_leaves_the_ratio_without_a_value(wrong: object) -> None:
    result = compute([{"tp": 1, "fp": 0, "fn": wrong}], type="f1_score", **COUNTS)
    assert result.values == {}
    assert result.problem == f"'fn' has the value {wrong!r}, expected a count"


def test_ratios_without_samples_have_a_reason() -> None:
    assert compute([], type="f1_score", **COUNTS).problem == "no sample has a value for 'tp'"
    assert "gives: tp" in str(compute([{"tp": 1}], type="f1_score", **COUNTS).problem)


def test_score_field_may_have_any_name() -> None:
    result = compute([{"pass^3": 0.5}], type="mean", field="pass^3")
    assert result.values == {"pass^3_mean": 0.5}


@pytest.mark.parametrize("kind", ["mean", "std_dev", "frequency"])
def test_metric_over_a_hundred_thousand_samples_is_fast(kind: str) -> None:
    import time

    scores = [{"x": number / 7} for number in range(100_000)]
    start = time.process_time()
    assert compute(scores, type=kind, field="x").num_used == 100_000
    assert time.process_time() - start < 3


METRIC_of_classification: TypeAdapter[Metric] = TypeAdapter(Metric)


def rows(pairs: Sequence[tuple[Any, Any]]) -> list[dict[str, Any]]:
    return [{"gt": truth, "pred": predicted} for truth, predicted in pairs]


def binary(scores: Sequence[Mapping[str, Any]], positive: str = "yes", negative: str = "no") -> MetricResult:
    metric = METRIC_of_classification.validate_python(
        {
            "type": "binary-classification",
            "field_gt": "gt",
            "field_pred": "pred",
            "positive_answer": positive,
            "negative_answer": negative,
        }
    )
    return compute_metric(metric, scores)


def multiclass(scores: Sequence[Mapping[str, Any]]) -> MetricResult:
    metric = METRIC_of_classification.validate_python(
        {"type": "multiclass-classification", "field_gt": "gt", "field_pred": "pred"}
    )
    return compute_metric(metric, scores)


COUNTED = rows([("yes", "yes")] * 3 + [("no", "yes")] + [("yes", "no")] * 2 + [("no", "no")] * 4)


def test_binary_classification_equals_the_values_computed_by_hand() -> None:
    result = binary(COUNTED)
    assert result.values == {"accuracy": 7 / 10, "precision": 3 / 4, "recall": 3 / 5, "f1_score": 6 / 9}
    assert (result.num_used, result.num_skipped, result.problem) == (10, 0, None)
    assert result.details == {
        "confusion_matrix": {"yes": {"yes": 3, "no": 2}, "no": {"yes": 1, "no": 4}},
    }


@pytest.mark.parametrize(
    "other", [("maybe", "yes"), ("yes", "maybe"), (None, "yes"), ("yes", math.nan), ("Yes", "yes")]
)
def test_sample_with_neither_answer_is_skipped_and_counted(other: tuple[Any, Any]) -> None:
    result = binary([*COUNTED, *rows([other]), {"gt": "yes"}])
    assert result.values == binary(COUNTED).values
    assert (result.num_used, result.num_skipped) == (10, 2)


@pytest.mark.parametrize(
    ("value", "answer"), [(True, "true"), (True, "True"), (1.0, "1"), (1.0, "1.0"), (1, "1"), ("1", "1")]
)
def test_values_match_common_spellings_of_the_answer(value: Any, answer: str) -> None:
    assert binary(rows([(value, answer)]), positive=answer, negative="0").values["accuracy"] == 1.0


def test_boolean_and_number_are_different_answers() -> None:
    assert binary(rows([(True, 1)]), positive="1", negative="0").values == {}


def test_precision_without_predictions_is_zero_with_a_reason() -> None:
    result = binary(rows([("yes", "no"), ("no", "no")]))
    assert result.values == {"accuracy": 0.5, "precision": 0.0, "recall": 0.0, "f1_score": 0.0}
    assert result.problem == "0.0 replaces values without a denominator: precision of 'yes'"


@pytest.mark.parametrize("compute", [binary, multiclass])
def test_metric_without_samples_has_no_value(compute: Any) -> None:
    result = compute([])
    assert result.values == {}
    assert result.problem is not None


def test_missing_score_field_is_named() -> None:
    result = binary([{"truth": "yes", "pred": "yes"}])
    assert result.problem == "no sample has a score 'gt'; the scorer gives: pred, truth"
    assert multiclass([{"gt": "a"}]).problem == "no sample has a score 'pred'; the scorer gives: gt"


def test_samples_with_only_other_answers_give_no_value() -> None:
    result = binary(rows([("a", "b")]))
    assert (result.values, result.num_used, result.num_skipped) == ({}, 0, 1)
    assert result.problem == "no sample has 'yes' or 'no' in both fields"


def test_multiclass_classification_equals_the_values_computed_by_hand() -> None:
    result = multiclass(rows([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b"), ("c", "a")]))
    assert result.values == {
        "accuracy": 3 / 5,
        "a_precision": 1 / 2,
        "a_recall": 1 / 2,
        "a_f1_score": 1 / 2,
        "b_precision": 2 / 3,
        "b_recall": 1.0,
        "b_f1_score": 4 / 5,
        "c_precision": 0.0,
        "c_recall": 0.0,
        "c_f1_score": 0.0,
        "macro_precision": pytest.approx((1 / 2 + 2 / 3) / 3),
        "macro_recall": 1 / 2,
        "macro_f1_score": pytest.approx((1 / 2 + 4 / 5) / 3),
    }
    assert result.problem == "0.0 replaces values without a denominator: precision of 'c'"
    assert result.details["confusion_matrix"] == {"a": {"a": 1, "b": 1}, "b": {"b": 2}, "c": {"a": 1}}


def test_labels_of_every_type_are_compared_as_text() -> None:
    values = multiclass(rows([(1, 1.0), ("1", 1), (0.5, "0.5"), (True, "True")])).values
    assert values["accuracy"] == 1.0
    assert [name for name in values if name.endswith("_recall")] == [
        "0.5_recall",
        "1_recall",
        "True_recall",
        "macro_recall",
    ]


def test_class_named_macro_keeps_its_metrics() -> None:
    result = multiclass(rows([("macro", "macro"), ("a", "a"), ("a", "macro")]))
    assert result.values["macro_precision"] == 1 / 2
    assert "averages over classes are left out" in str(result.problem)


def test_missing_labels_are_skipped_and_counted() -> None:
    result = multiclass(rows([("a", "a"), (None, "a"), ("a", math.nan)]))
    assert (result.values["accuracy"], result.num_used, result.num_skipped) == (1.0, 1, 2)


def test_memory_is_not_quadratic_in_the_number_of_labels() -> None:
    result = multiclass([{"gt": number, "pred": number + 1} for number in range(20_000)])
    assert result.values["accuracy"] == 0.0
    assert result.problem is not None
    assert len(result.problem) < 500


PAIRS = st.lists(
    st.tuples(st.sampled_from(["yes", "no", "?", None]), st.sampled_from(["yes", "no", 1])), max_size=30
)


@given(PAIRS)
def test_classification_values_are_proportions_and_all_samples_are_counted(
    pairs: list[tuple[Any, Any]],
) -> None:
    for result in (binary(rows(pairs)), multiclass(rows(pairs))):
        assert all(0.0 <= value <= 1.0 for value in result.values.values())
        assert result.num_used + result.num_skipped == len(pairs)
        matrix = result.details.get("confusion_matrix", {})
        assert sum(count for row in matrix.values() for count in row.values()) == result.num_used


@given(PAIRS, st.randoms())
def test_classification_does_not_depend_on_the_sample_order(
    pairs: list[tuple[Any, Any]], random: Random
) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)
    assert binary(rows(pairs)) == binary(rows(shuffled))
    assert multiclass(rows(pairs)) == multiclass(rows(shuffled))


@given(st.lists(st.tuples(st.sampled_from(["yes", "no"]), st.sampled_from(["yes", "no"])), min_size=1))
def test_binary_metrics_equal_multiclass_metrics_of_the_positive_answer(pairs: list[tuple[str, str]]) -> None:
    two, many = binary(rows(pairs)).values, multiclass(rows(pairs)).values
    assert two["accuracy"] == many["accuracy"]
    for name in ("precision", "recall", "f1_score"):
        assert two[name] == many.get(f"yes_{name}", 0.0)


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


def test_metric_snippet_receives_sample_scores_and_returns_numbers(host: SnippetHost) -> None:
    source = """
        from latticeflow.core.dtypes import SampleScore

        def compute_metrics(scores: list[SampleScore]) -> dict[str, float]:
            assert all(isinstance(score, SampleScore) for score in scores)
            return {"total": sum(score.values["x"] for score in scores), "count": len(scores)}
    """
    result = compute_metric(metric(source), SCORES, host=host)
    assert result == MetricResult({"total": 4.0, "count": 2}, 2, 0)


def test_metric_snippet_may_be_async(host: SnippetHost) -> None:
    source = """
        import asyncio

        async def compute_metrics(scores):
            await asyncio.sleep(0)
            return {"count": len(scores)}
    """
    assert compute_metric(metric(source), SCORES, host=host).values == {"count": 2}


def test_metric_snippet_receives_metadata_and_model_calls(host: SnippetHost) -> None:
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


def test_metric_snippet_without_samples_receives_an_empty_list(host: SnippetHost) -> None:
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
            "compute_metrics_snippet: compute_metrics returned values that are not numbers: 'b' is 'two'",
        ),
        (
            "{'a': {'value': 1}}",
            "compute_metrics_snippet: compute_metrics returned values that are not numbers: 'a' is {'value': 1}",
        ),
        ("{}", "compute_metrics returned no values"),
        ("{'a': 10**400}", "the numbers are too large to compute with"),
    ],
)
def test_failing_metric_snippet_has_no_value_and_a_reason(
    host: SnippetHost, expression: str, problem: str
) -> None:
    result = returning(host, expression)
    assert result.values == {}
    assert (result.num_used, result.num_skipped) == (0, 2)
    assert str(result.problem).startswith(problem)


def test_non_finite_metric_value_is_dropped_and_reported(host: SnippetHost) -> None:
    result = returning(host, "{'a': 1, 'b': float('nan'), 'c': None, 'd': float('inf')}")
    assert result.values == {"a": 1}
    assert (
        result.problem
        == "compute_metrics returned values that are left out: 'b' is nan, 'c' is None, 'd' is inf"
    )


def test_boolean_result_of_a_metric_snippet_is_a_number(host: SnippetHost) -> None:
    values = returning(host, "{'passed': True}").values
    assert values == {"passed": 1}
    assert type(values["passed"]) is int


def test_snippet_without_the_function_is_reported_with_the_expected_name(host: SnippetHost) -> None:
    result = compute_metric(metric("def total(scores): return {}"), SCORES, host=host)
    assert "must define a function `compute_metrics`; it defines total" in str(result.problem)


def test_metric_snippet_without_a_worker_is_not_run() -> None:
    result = compute_metric(metric("def compute_metrics(scores): return {'a': 1}"), SCORES)
    assert (result.values, result.num_skipped) == ({}, 2)
    assert "no worker process" in str(result.problem)

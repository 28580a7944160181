"""Metric names are unique, as short as possible, and independent of the order of results."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aigo_bridge.metrics.names import MetricIdentity, metric_labels, standard_errors


def number(name: str, **parts: str) -> MetricIdentity:
    return MetricIdentity(parts.pop("scorer", "s"), parts.pop("metric", "m"), name, **parts)


def test_unique_metric_name_is_not_qualified() -> None:
    assert metric_labels([number("accuracy", score="x", reducer="max")]) == ["accuracy"]


def test_metric_name_is_qualified_with_the_part_that_differs() -> None:
    assert metric_labels([number("mean", score="fluency"), number("mean", score="relevance")]) == [
        "mean (fluency)",
        "mean (relevance)",
    ]
    assert metric_labels([number("accuracy", scorer="match"), number("accuracy", scorer="includes")]) == [
        "accuracy (match)",
        "accuracy (includes)",
    ]
    assert metric_labels([number("mean"), number("mean", reducer="max"), number("std")]) == [
        "mean",
        "mean (max)",
        "std",
    ]


def test_metric_name_is_qualified_with_several_parts_if_needed() -> None:
    numbers = [number("mean", score=score, reducer=reducer) for score in "ab" for reducer in ("max", "mode")]

    assert metric_labels(numbers) == ["mean (a, max)", "mean (a, mode)", "mean (b, max)", "mean (b, mode)"]


PARTS = st.sampled_from(["a", "b", None])
IDENTITIES = st.builds(
    MetricIdentity, PARTS, st.sampled_from("mn"), st.sampled_from("xy"), PARTS, PARTS, PARTS
)


@given(st.lists(IDENTITIES, unique=True, max_size=12))
def test_different_metrics_have_different_names(identities: list[MetricIdentity]) -> None:
    labels = metric_labels(identities)

    assert len(set(labels)) == len(identities)
    assert metric_labels(identities[::-1]) == labels[::-1]


def test_standard_error_is_matched_to_the_metric_of_its_score() -> None:
    numbers = [
        number("accuracy", reducer="mean", kind="accuracy"),
        number("stderr", reducer="mean", kind="stderr"),
        number("accuracy", reducer="max", kind="inspect_ai/accuracy"),
        number("bootstrap_stderr", reducer="max", kind="bootstrap_stderr"),
        number("stderr", score="other", kind="stderr"),
        number("em", kind="mean"),
        number("em_stderr", kind="mean"),
        number("f1_stderr", kind="mean"),
    ]

    assert standard_errors(numbers) == {1: 0, 3: 2, 6: 5}

"""Action rules: samples that are excluded from the metrics, and the reasons."""

from __future__ import annotations

from typing import Any

import pytest

from aigo_bridge.dtypes import (
    OpenResponsesModelOutput,
    SolverTrace,
    TaskResultErrorStage,
    Trace,
)
from aigo_bridge.metrics.metric import Exclusion, excluded
from aigo_bridge.solving.conversation import assistant_item, chat_output, text_item
from aigo_bridge.spec.task import ActionRuleSpec
from aigo_bridge.templates import SampleTemplate

SCORES: dict[str, dict[str, Any]] = {
    "language_labeller": {"label": "OTHER"},
    "judge": {"score": 0.25, "checked": True},
}


def rule(op: str, expression: str, key: str = "r", **operand: Any) -> ActionRuleSpec:
    return ActionRuleSpec.model_validate(
        {
            "key": key,
            "action": "exclude_from_metrics",
            "filter": {"op": op, "expression": expression, **operand},
        }
    )


def apply(*rules: ActionRuleSpec, output: SolverTrace | None = None, **sample: Any) -> Exclusion:
    return excluded(rules, sample, output, SCORES)


def selects(op: str, expression: str, *, operand: dict[str, Any] | None = None, **sample: Any) -> bool:
    result = apply(rule(op, expression, **(operand or {})), **sample)
    assert result.errors == ()
    return result.excluded


@pytest.mark.parametrize("rules", [None, (), []])
def test_samples_are_not_excluded_without_rules(rules: Any) -> None:
    assert excluded(rules, {}, None, {}) == Exclusion()
    assert not Exclusion().excluded


def test_rules_of_the_published_page_select_the_right_samples() -> None:
    assert selects("equals", "{{ scores.language_labeller.label }}", operand={"value": "OTHER"})
    assert selects("in", "{{ sample.sample_id }}", operand={"values": ["3", "6"]}, sample_id=3)
    assert not selects("in", "{{ sample.sample_id }}", operand={"values": ["3", "6"]}, sample_id=4)
    assert selects("is_true", "{{ sample.is_holdout }}", is_holdout="true")
    assert not selects("is_true", "{{ sample.is_holdout }}", is_holdout="false")


def test_matching_rules_are_recorded_in_task_order() -> None:
    result = apply(
        rule("is_true", "{{ sample.a }}", key="second"),
        rule("is_true", "{{ sample.b }}", key="never"),
        rule("exists", "{{ sample.a }}", key="first"),
        a=True,
        b=False,
    )
    assert [record.rule_key for record in result.records] == ["second", "first"]
    assert {record.action.value for record in result.records} == {"exclude_from_metrics"}


@pytest.mark.parametrize(
    "expression",
    ["{{ sample.nope }}", "{{ scores.failed.label }}", "{{ solver_output.output }}", "{{ nope }}"],
)
def test_missing_values_match_only_negations(expression: str) -> None:
    assert not selects("equals", expression, operand={"value": "x"})
    assert not selects("in", expression, operand={"values": ["x"]})
    assert not selects("greater_than", expression, operand={"value": 1})
    assert not selects("is_true", expression)
    assert not selects("is_false", expression)
    assert not selects("exists", expression)
    assert selects("not_exists", expression)
    assert selects("not_equals", expression, operand={"value": "x"})
    assert selects("not_in", expression, operand={"values": ["x"]})


def test_scores_are_compared_as_numbers() -> None:
    assert selects("less_than", "{{ scores.judge.score }}", operand={"value": 0.5})
    assert selects("is_true", "{{ scores['judge'].checked }}")


def test_rule_can_read_the_solver_output() -> None:
    output = SolverTrace(trace=Trace(items=[]), raw_outputs=[], direct_ios=[])
    output.append_user_message("Stop.")
    asks = rule("equals", "{{ solver_output.trace.get_last_user_text() }}", value="Stop.")
    assert apply(asks, output=output).excluded


def trace_that_says(*contents: Any) -> SolverTrace:
    output = SolverTrace(trace=Trace(items=[]), raw_outputs=[], direct_ios=[])
    output.append_user_message("?")
    for content in contents:
        output.raw_outputs.append(content)
    return output


OUTPUTS = {
    "chat": chat_output("No."),
    "several calls": chat_output("No."),
    "items": OpenResponsesModelOutput(items=[assistant_item("No.")]),
    "dictionary": {"text": "No."},
    "text": "No.",
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_output_equals_its_printed_text(kind: str) -> None:
    output = trace_that_says(*([chat_output("Yes.")] if kind == "several calls" else []), OUTPUTS[kind])
    expression = "{{ solver_output.output }}"
    printed = SampleTemplate(expression + "!").render(solver_output=output).removesuffix("!")
    for asks in (
        rule("equals", expression, value=printed),
        rule("in", expression, values=["x", printed]),
        rule("equals", "{{ solver_output.output }}!", value=printed + "!"),
        rule("not_equals", expression, value=printed + " "),
        rule("not_in", expression, values=["x", printed.lower()]),
        rule("exists", expression),
    ):
        assert apply(asks, output=output).excluded, asks
    assert not apply(rule("not_equals", expression, value=printed), output=output).excluded


def test_messages_and_parts_of_them_equal_their_text() -> None:
    output = trace_that_says()
    output.extend([text_item("user", "one"), assistant_item("two")])
    for expression, text in (
        ("{{ solver_output.messages[-1] }}", "two"),
        ("{{ solver_output.messages[-1].content }}", "two"),
        ("{{ solver_output.trace.items[-1] }}", "two"),
        ("{{ solver_output.trace.items[-1].content }}", "two"),
        ("{{ solver_output.trace.items[-1].content[0] }}", "two"),
        ("{{ solver_output.messages[-1].role }}", "assistant"),
    ):
        assert apply(rule("equals", expression, value=text), output=output).excluded, expression


def test_outputs_are_compared_as_their_printed_text() -> None:
    numeric, yes = trace_that_says(chat_output("5")), trace_that_says(chat_output("Yes"))
    assert apply(rule("greater_than", "{{ solver_output.output }}", value=3), output=numeric).excluded
    assert apply(rule("equals", "{{ solver_output.output }}", value=5), output=numeric).excluded
    assert apply(rule("is_true", "{{ solver_output.output }}"), output=yes).excluded
    assert not apply(rule("is_false", "{{ solver_output.output }}"), output=yes).excluded


def test_failing_rule_is_an_action_error_and_other_rules_still_apply() -> None:
    result = apply(
        rule("greater_than", "{{ sample.text }}", key="broken", value=3),
        rule("equals", "{{ sample.text }}", key="fine", value="a"),
        rule("equals", "{{ sample.text", key="no-template", value="a"),
        text="a",
    )
    assert [record.rule_key for record in result.records] == ["fine"]
    assert [error.stage for error in result.errors] == [TaskResultErrorStage.action] * 2
    assert result.errors[0].message.startswith("action rule 'broken': `greater_than` of")
    assert "expected a number" in result.errors[0].message
    assert result.errors[1].message.startswith("action rule 'no-template': ")

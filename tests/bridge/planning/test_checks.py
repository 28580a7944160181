"""Action rules that can never match are reported before a model call, with position, known names and similar names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import Run

from aigo_bridge.errors import Issue, SpecError
from aigo_bridge.evaluation.task import plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.reading import read
from aigo_bridge.spec.task import TaskSpec

SCORERS = """
    - {type: string_equals, ground_truth: "{{ sample.a }}"}
    - {type: string_equals, ground_truth: b}
    - {type: labeler_via_model, key: labeller, model_key: judge, user_prompt: x, valid_labels: [DE, OTHER]}
    - {type: python, key: mine, compute_scores_snippet: "def compute_scores(sample, solver_output): return {'x': 1}"}
    - {type: rag_checker, key: rag, judge_model_key: judge, target_column: a, scores_to_compute: [recall]}
"""
HEAD = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
"""
SOLVER = """  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
"""
ROWS = [{"q": "one", "a": "x", "my col": 1}, {"q": "two", "a": "y", "only here": True}]


def rule(op: str, expression: str, **operand: Any) -> dict[str, Any]:
    return {
        "key": "r",
        "action": "exclude_from_metrics",
        "filter": {"op": op, "expression": expression, **operand},
    }


def write(folder: Path, *rules: dict[str, Any], extra: str = "", solver: str = SOLVER) -> Path:
    (folder / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    actions = yaml.safe_dump({"actions": list(rules)}, sort_keys=False, width=1000)
    indented = "".join(f"  {line}\n" for line in actions.splitlines())
    file = folder / "t.yaml"
    file.write_text(f"{HEAD}{solver}  scorers:{SCORERS}{extra}{indented}")
    return file


def planned(folder: Path, *rules: dict[str, Any], **parts: str) -> TaskPlan:
    return plan(PlanOrigin(task=str(write(folder, *rules, **parts))))


def errors(folder: Path, *rules: dict[str, Any], **parts: str) -> list[Issue]:
    with pytest.raises(SpecError) as caught:
        planned(folder, *rules, **parts)
    return [issue for issue in caught.value.issues if issue.severity == "error"]


UNKNOWN = [
    (
        "{{ scores.string_equal.is_correct }}",
        "the task does not define scorer 'string_equal'",
        "did you mean 'string_equals'?",
    ),
    (
        "{{ scores['string_equal'].is_correct }}",
        "the task does not define scorer 'string_equal'",
        "did you mean 'string_equals'?",
    ),
    (
        "{{ scores.zzz.x }}",
        "the task does not define scorer 'zzz'",
        "its scorers: labeller, mine, rag, string_equals, string_equals_2",
    ),
    (
        "{{ scores.string_equals_3.is_correct }}",
        "the task does not define scorer 'string_equals_3'",
        "did you mean",
    ),
    (
        "{{ scores.string_equals_2.is_corect }}",
        "scorer 'string_equals_2' has no score 'is_corect'",
        "did you mean 'is_correct'?",
    ),
    ("{{ scores.labeller.is_correct }}", "scorer 'labeller' has no score 'is_correct'", "its scores: label"),
    ("{{ scores.rag.precision }}", "scorer 'rag' has no score 'precision'", "recall"),
    (
        "{{ 1 + scores.labeler.label | length }}",
        "the task does not define scorer 'labeler'",
        "did you mean 'labeller'?",
    ),
    ("{{ sample.Q }}", "`sample.Q` is not a column of the dataset", "did you mean"),
    (
        "{{ sample['mycol'] }}",
        "`sample.mycol` is not a column of the dataset",
        "did you mean 'my col'?",
    ),
    ("{{ solver_output.outptu }}", "the solver output does not contain 'outptu'", "did you mean 'output'?"),
    ("{{ solver_output.solver_outputs }}", "the solver output does not contain 'solver_outputs'", None),
    ("{{ scores.labeller }}", "all scores of the scorer", "{{ scores.labeller.label }}"),
    ("{{ scores }}", "all scores of the sample", None),
    ("{{ sample }}", "the whole row", "{{ sample.x }}"),
    ("{{ solver_output }}", "the whole output of the solver", "{{ solver_output.output }}"),
    ("sample.q", "plain text and the same for every sample", "{{ sample.q }}"),
    ("scores.string_equals.is_correct", "plain text", "{{ scores.string_equals.is_correct }}"),
    ("{ sample.q }", "plain text", "{{ sample.q }}"),
    ("q", "plain text", "{{ sample.q }}"),
    ("", "plain text", None),
]


@pytest.mark.parametrize(("expression", "message", "hint"), UNKNOWN)
def test_unknown_name_is_reported_with_its_position(
    tmp_path: Path, expression: str, message: str, hint: str | None
) -> None:
    (issue,) = errors(tmp_path, rule("not_equals", expression, value="x"))

    assert message in issue.message
    if hint is not None:
        assert hint in str(issue.hint)
    text = (tmp_path / "t.yaml").read_text().splitlines()
    assert issue.line is not None
    assert issue.column is not None
    assert "expression:" in text[issue.line - 1]
    assert issue.file is not None


@pytest.mark.parametrize(
    "expression",
    [
        "{{ scores.string_equals.is_correct }}",
        "{{ scores.string_equals_2['is_correct'] }}",
        "{{ scores.labeller.label }}",
        "{{ scores.mine.whatever }}",
        "{{ scores.rag.recall }}",
        "{{ scores.get('string_equal', {}) | length }}",
        "{{ scores.zzz.x | default('') }}",
        "{{ scores.zzz.x if scores.zzz is defined else '' }}",
        "{{ sample.q ~ scores.string_equals.is_correct }}",
        '{{ sample["only here"] }}',
        "{{ sample.q | upper }}",
        "{{ solver_output.output }}",
        "{{ solver_output.messages[-1].content }}",
        "{{ solver_output.trace.get_last_assistant_text() }}",
        "{% if sample.q %}x{% endif %}",
        "{% for word in sample.q %}{{ word }}{% endfor %}",
        "{{ true }}",
    ],
)
def test_valid_rule_has_no_warning(tmp_path: Path, expression: str) -> None:
    assert planned(tmp_path, rule("equals", expression, value=1)).warnings == ()


def test_rules_can_use_names_of_aggregated_scores(tmp_path: Path) -> None:
    trials = (
        "  trials:\n    num_trials: 2\n    score_aggregators:\n"
        "      - {score_name: is_correct, aggregator: {function: max, score_name: best}}\n"
        "      - {score_name: is_correct, aggregator: {function: 'pass@k', k: 2}}\n"
    )
    good = [
        rule("equals", "{{ scores.string_equals.best }}", value=1),
        {**rule("less_than", "{{ scores.string_equals['is_correct.pass@2'] }}", value=1), "key": "s"},
    ]
    assert planned(tmp_path, *good, extra=trials).warnings == ()
    (issue,) = errors(tmp_path, rule("equals", "{{ scores.string_equals.beste }}", value=1), extra=trials)
    assert "no score 'beste'" in issue.message


def test_exists_check_on_unknown_column_is_only_a_warning(tmp_path: Path) -> None:
    """Rules are shared between tasks, so a check with a known result is only a warning."""
    (issue,) = planned(tmp_path, rule("not_exists", "{{ sample.holdout }}")).warnings
    assert "`sample.holdout` is not a column" in issue.message
    assert errors(tmp_path, rule("exists", "{{ scores.string_equal.is_correct }}"))


def test_rules_can_use_columns_added_by_a_post_processor(tmp_path: Path) -> None:
    solver = SOLVER + (
        "    postprocessor:\n      type: python\n      postprocess_snippet: |\n"
        "        def postprocess(sample, solver_output):\n            return [({'w': 1}, solver_output)]\n"
    )
    rules = (
        rule("equals", "{{ sample.w }}", value=1),
        {**rule("exists", "{{ solver_output.solver_outputs }}"), "key": "s"},
    )
    assert planned(tmp_path, *rules, solver=solver).warnings == ()


@pytest.mark.parametrize("op", ["in", "is_true", "exists", "greater_than"])
def test_every_operator_is_checked_for_unknown_names(tmp_path: Path, op: str) -> None:
    operands: dict[str, dict[str, Any]] = {"in": {"values": ["x"]}, "greater_than": {"value": 1}}
    operand = operands.get(op, {})
    (issue,) = errors(tmp_path, rule(op, "{{ scores.string_equal.is_correct }}", **operand))
    assert "does not define scorer" in issue.message


def test_all_invalid_rules_are_reported_once(tmp_path: Path) -> None:
    found = errors(
        tmp_path,
        rule("equals", "{{ scores.string_equal.is_correct }}", value=1),
        {**rule("in", "sample.q", values=["one"]), "key": "second"},
        {**rule("greater_than", "{{ scores.mine.x }}", value="many"), "key": "third"},
    )
    assert len(found) == 3
    assert "'many'" in found[2].message


@pytest.mark.parametrize(
    ("op", "expression", "operand", "message"),
    [
        ("equals", "{{ scores.labeller.label }}", {"value": "OTHR"}, "'OTHR' is not a label"),
        ("in", "{{ scores.labeller.label }}", {"values": ["DE", "FR"]}, "'FR' is not a label"),
        ("equals", "{{ scores.string_equals.is_correct }}", {"value": "yes"}, "'yes' is no number"),
        ("equals", "{{ scores.string_equals.is_correct }}", {"value": "1"}, "'1' is text"),
        ("in", "{{ sample.q }}", {"values": []}, "selects no sample"),
        ("not_in", "{{ sample.q }}", {"values": []}, "selects every sample"),
    ],
)
def test_constant_that_never_matches_is_a_warning(
    tmp_path: Path, op: str, expression: str, operand: dict[str, Any], message: str
) -> None:
    (issue,) = planned(tmp_path, rule(op, expression, **operand)).warnings
    assert message in issue.message
    assert issue.severity == "warning"
    assert issue.line is not None


def test_names_from_parameters_are_checked_after_binding(tmp_path: Path) -> None:
    file = write(tmp_path, rule("equals", "{{ scores.<< config.scorer >>.is_correct }}", value=1))
    file.write_text(
        file.read_text().replace(
            "definition:", "config_spec: [{type: string, key: scorer, display_name: S}]\ndefinition:", 1
        )
    )
    read(TaskSpec, file)
    assert plan(PlanOrigin(task=str(file), config={"scorer": "string_equals"})).warnings == ()
    with pytest.raises(SpecError, match="does not define scorer 'string_equal'"):
        plan(PlanOrigin(task=str(file), config={"scorer": "string_equal"}))


def test_dataset_task_has_scores_but_no_solver_output(tmp_path: Path) -> None:
    scorer = '  scorers:\n    - {type: string_equals, value: "{{ sample.q }}", ground_truth: x}\n'
    write(tmp_path)
    for expression, count in (
        ("{{ scores.string_equals.is_correct }}", 0),
        ("{{ scores.string_eq.x }}", 1),
        ("{{ solver_output.output }}", 1),
    ):
        rules = yaml.safe_dump({"actions": [rule("equals", expression, value=1)]})
        (tmp_path / "t.yaml").write_text(
            HEAD + scorer + "".join(f"  {line}\n" for line in rules.splitlines())
        )
        try:
            plan(PlanOrigin(task=str(tmp_path / "t.yaml")))
            found = 0
        except SpecError as error:
            found = len(error.issues)
        assert found == count, expression


def test_unknown_name_is_a_warning_in_the_platform_dialect(tmp_path: Path) -> None:
    file = write(tmp_path, rule("equals", "{{ scores.string_equal.is_correct }}", value=1))
    with pytest.raises(SpecError) as caught:  # other errors, because that release uses another syntax
        read(TaskSpec, file, dialect="aigo-3.17")
    found = [issue for issue in caught.value.issues if "string_equal'" in issue.message]
    assert [issue.severity for issue in found] == ["warning"]


@pytest.mark.parametrize("verb", ["validate", "explain", "run"])
def test_validate_explain_and_run_reject_an_unknown_name(aigo: Run, tmp_path: Path, verb: str) -> None:
    write(
        tmp_path,
        rule("equals", "{{ scores.string_equal.is_correct }}", value=1),
        {**rule("equals", "sample.q", value="one"), "key": "s"},
    )
    more = (
        ("--model", "scripted/none.jsonl", "--model-map", "judge=scripted/none.jsonl")
        if verb == "run"
        else ()
    )
    done = aigo(verb, "t.yaml", *more)
    assert done.code == (1 if verb == "validate" else 2), done.out + done.err
    shown = done.out + done.err
    assert "t.yaml:20:23: error: the task does not define scorer" in shown
    assert "did you mean 'string_equals'?" in shown
    assert "{{ sample.q }}" in shown


def test_dataset_filter_without_expression_is_a_warning(aigo: Run, tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "d.yaml").write_text(
        "key: d\ndisplay_name: D\ndescription: ''\n"
        "source:\n  type: local\n  file_path: d.jsonl\n  filters:\n"
        "    - {op: not_equals, expression: sample.q, value: one}\n"
    )
    done = aigo("validate", "d.yaml")
    assert done.code == 0, done.out + done.err
    assert "plain text and the same for every row" in done.out + done.err
    assert "{{ sample.q }}" in done.out + done.err


def test_a_mistake_in_a_scorers_key_or_type_is_reported_once(tmp_path: Path) -> None:
    file = write(tmp_path, rule("equals", "{{ scores.mine.x }}", value=1))
    text = file.read_text()
    for old, new in (("key: mine", "key: my own"), ("type: rag_checker", "type: rag_chekcer")):
        file.write_text(text.replace(old, new, 1))
        with pytest.raises(SpecError) as caught:
            read(TaskSpec, file)
        assert len(caught.value.issues) == 1, caught.value

"""From a task file to a plan: every error is reported before a model call."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from aigo_bridge.errors import BridgeError, DatasetError, EvidenceError, Issue, SpecError, UsageError
from aigo_bridge.plan.logged_plan import LoggedPlan, is_intact, logged_plan
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan
from aigo_bridge.planning.checks import definition_issues
from aigo_bridge.planning.planning import plan_origin
from aigo_bridge.redaction.secrets import MASK
from aigo_bridge.spec.task import BenchmarkDefinition

TASK = """\
key: t
display_name: T
description: ""
config_spec:
  - {type: string, key: tone, display_name: Tone, default_value: dry}
  - {type: dataset_column, key: column, display_name: Column, default_value: answer}
definition:
  dataset: {key: q}
  solver:
    type: single_turn_solver
    input_builder:
      type: chat_completion
      input_messages:
        - role: user
          content: |
            Be << config.tone >>.
            {{ sample.question }}
  scorers:
    - type: string_equals
      ground_truth: "{{ sample.<< config.column >> }}"
"""
ROWS = '{"question": "one", "answer": "1"}\n{"question": "two", "answer": "2"}\n'
JUDGE = """\
    - type: model_as_a_judge_classifier
      model_key: "judge"
      user_prompt: "{{ solver_output.output }}"
      correct_labels: [yes!, fine]
      incorrect_labels: [no!, "Fine "]
"""


def write(folder: Path, text: str = TASK, rows: str = ROWS) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "q.jsonl").write_text(rows)
    path = folder / "task.yaml"
    path.write_text(dedent(text))
    return path


def plan(path: Path, **fields: Any) -> TaskPlan:
    return plan_origin(PlanOrigin(task=str(path), **fields))


def issues(path: Path, **fields: Any) -> tuple[Issue, ...]:
    with pytest.raises(SpecError) as caught:
        plan(path, **fields)
    return caught.value.issues


def test_config_and_rows_are_bound(tmp_path: Path) -> None:
    made = plan(write(tmp_path), config={"tone": "warm"})
    assert made.config == {"tone": "warm", "column": "answer"}
    assert made.definition.model_dump_json().count("Be warm.") == 1
    assert [sample.id for sample in made.samples] == [0, 1]
    assert made.samples[1].data == {"question": "two", "answer": "2"}
    assert (made.entity, made.num_trials, made.model_keys) == ("model", 1, ())


def test_digest_depends_on_content_and_not_on_location(tmp_path: Path) -> None:
    first = plan(write(tmp_path / "a"))
    second = plan(write(tmp_path / "somewhere else"))
    assert first.digest == second.digest
    assert len(first.digest) == 64
    # Comments, quotes and key order do not change the content.
    assert (
        plan(write(tmp_path / "c", "# note\n" + TASK.replace("key: t\n", 'key: "t"\n'))).digest
        == first.digest
    )


@pytest.mark.parametrize(
    ("text", "rows", "fields"),
    [
        (TASK.replace("Be <<", "be <<"), ROWS, {}),
        (TASK.replace("display_name: T\n", "display_name: U\n"), ROWS, {}),
        (TASK, ROWS.replace('"2"', '"3"'), {}),
        (TASK, ROWS.replace('"2"', "2"), {}),
        (TASK, ROWS + '{"question": "three", "answer": "3"}\n', {}),
        (TASK, ROWS, {"config": {"tone": "warm"}}),
        (TASK, ROWS, {"num_samples": 1}),
        (TASK, ROWS, {"num_trials": 2}),
    ],
)
def test_every_change_of_content_changes_the_digest(
    tmp_path: Path, text: str, rows: str, fields: dict[str, Any]
) -> None:
    usual = plan(write(tmp_path / "a"))
    assert plan(write(tmp_path / "b", text, rows), **fields).digest != usual.digest


def test_included_file_changes_the_digest(tmp_path: Path) -> None:
    text = TASK.replace('"{{ sample.<< config.column >> }}"', "!include truth.txt")
    for folder, truth in (("a", "{{ sample.answer }}"), ("b", "{{ sample.answer }}!")):
        write(tmp_path / folder, text)
        (tmp_path / folder / "truth.txt").write_text(truth)
    assert plan(tmp_path / "a/task.yaml").digest != plan(tmp_path / "b/task.yaml").digest


def test_the_logged_plan_is_read_from_the_header(tmp_path: Path) -> None:
    made = plan(write(tmp_path, TASK + JUDGE), config={"tone": "warm"}, num_samples=1)
    back = logged_plan(json.loads(json.dumps(made.header())))
    assert back == LoggedPlan.of(made)
    assert back.damage == ()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"format": None},
        {"task": None},
        {"task": {}},
        {"config": None},
        {"dataset": {"key": "q"}},
        {"dataset": "q"},
        {"num_trials": "2"},
        {"outline": {}},
        {"cache": "never"},
    ],
)
def test_a_damaged_header_is_reported(tmp_path: Path, change: dict[str, Any]) -> None:
    header = {**plan(write(tmp_path)).header(), **change}
    with pytest.raises(EvidenceError, match="the log's plan"):
        logged_plan(header)


CODE = """\
      metrics:
        - {type: python, key: own, compute_metrics_snippet: "def compute_metrics(scores): return {}"}
  actions:
    - {key: skip, action: exclude_from_metrics, filter: {op: is_true, expression: "{{ sample.answer }}"}}
"""


def test_a_logged_plan_has_no_code_and_no_templates(tmp_path: Path) -> None:
    header = json.loads(json.dumps(plan(write(tmp_path, TASK + CODE)).header()))

    outline = logged_plan(header).outline

    assert (outline.needs_code, outline.rules) == (True, ("skip",))
    assert "def " not in repr(outline)
    assert "{{" not in repr(outline)


def edited(header: dict[str, Any]) -> dict[str, Any]:
    return {**header, "task": {**header["task"], "description": "another"}}


def test_an_edited_plan_is_reported(tmp_path: Path) -> None:
    header = plan(write(tmp_path)).header()

    (problem,) = logged_plan(edited(header)).damage

    assert "its digest is" in problem
    assert not is_intact(edited(header))


def test_plan_with_masked_secret_does_not_count_as_edited(tmp_path: Path) -> None:
    header = plan(write(tmp_path)).header()
    header["config"] = {**header["config"], "key": MASK}
    assert logged_plan(header).damage == ()


def test_plan_of_older_release_is_read_unless_it_has_placeholders(tmp_path: Path) -> None:
    made = plan(write(tmp_path))
    header = json.loads(json.dumps(made.header()))
    del header["outline"]
    assert logged_plan(header).outline == made.outline
    header["task"]["definition"]["scorers"][0]["display_name"] = "<< config.column >>"
    with pytest.raises(EvidenceError, match="placeholders"):
        logged_plan(header)


def test_plan_rebuilt_from_its_origin_is_equal(tmp_path: Path) -> None:
    made = plan(write(tmp_path), num_samples=1)
    assert made.origin is not None
    assert plan_origin(made.origin) == made


def test_unknown_column_is_reported_with_file_line_and_column(tmp_path: Path) -> None:
    path = write(tmp_path, TASK.replace("sample.question", "sample.qestion"))
    (issue,) = issues(path)
    assert issue.message == "`sample.qestion` is not a column of the dataset"
    assert issue.hint == "did you mean 'question'?"
    assert (Path(issue.file or "").name, issue.line) == ("task.yaml", 17)
    assert issue.column is not None
    assert issue.source_line == "            {{ sample.qestion }}"


def test_all_unknown_columns_are_reported_together(tmp_path: Path) -> None:
    text = (TASK + JUDGE).replace("sample.question", "sample.qestion")
    text = text.replace("solver_output.output", "sample.nothing").replace(
        "sample.<< config.column >>", "sample.x"
    )
    found = [
        (issue.message, issue.line) for issue in issues(write(tmp_path, text)) if issue.severity == "error"
    ]
    assert found == [
        ("`sample.qestion` is not a column of the dataset", 17),
        ("`sample.x` is not a column of the dataset", 20),
        ("`sample.nothing` is not a column of the dataset", 23),
    ]


def test_a_guarded_column_may_be_missing(tmp_path: Path) -> None:
    guarded = "{% if sample.hint is defined %}{{ sample.hint }}{% endif %}{{ sample.note | default('') }}"
    assert plan(write(tmp_path, TASK.replace("{{ sample.question }}", guarded))).samples


def test_a_column_parameter_must_name_a_column(tmp_path: Path) -> None:
    found = issues(write(tmp_path), config={"column": "anwser"})
    assert "parameter 'column': 'anwser' is not a column of the dataset" in [issue.message for issue in found]
    assert {issue.hint for issue in found} == {"did you mean 'answer'?"}


def test_invalid_template_is_reported_with_its_line(tmp_path: Path) -> None:
    (issue,) = issues(write(tmp_path, TASK.replace("{{ sample.question }}", "{{ sample.question }")))
    assert (issue.line, Path(issue.file or "").name) == (17, "task.yaml")


def test_missing_and_unknown_parameters_are_reported_together(tmp_path: Path) -> None:
    text = TASK.replace(", default_value: dry", "")
    assert [issue.message for issue in issues(write(tmp_path, text), config={"tome": "x"})] == [
        "parameter 'tone' (Tone) has no value",
        "unknown parameter 'tome'",
    ]


def test_invalid_parameter_value_is_reported_with_its_position(tmp_path: Path) -> None:
    text = TASK.replace("role: user", 'role: "<< config.tone >>"')
    found = issues(write(tmp_path, text))
    assert [Path(issue.file or "").name for issue in found] == ["task.yaml"]
    assert found[0].line == 14


def test_contradictory_labels_are_a_warning(tmp_path: Path) -> None:
    warnings = plan(write(tmp_path, TASK + JUDGE)).warnings
    (found,) = [issue for issue in warnings if "among the correct" in issue.message]
    assert (found.severity, found.line) == ("warning", 25)


def test_definition_is_checked_again_after_binding() -> None:
    document = {
        "solver": {
            "type": "single_turn_solver",
            "input_builder": {"type": "generic", "template": "{{ trace }}"},
        },
        "dataset": {"key": "q"},
        "scorers": [
            {"type": "string_equals", "key": "a", "ground_truth": "{{ solver_outputs }}"},
            {
                "type": "model_as_a_judge_scorer",
                "key": "b",
                "model_key": "m",
                "user_prompt": "{{ messages }}{{ trace }}",
                "score_min": 5,
                "score_max": 1,
            },
        ],
    }
    found = definition_issues(BenchmarkDefinition.model_validate(document), ["question"])
    assert [(issue.path, issue.message) for issue in found] == [
        (("definition", "solver", "input_builder", "template"), "`trace` is not defined here"),
        (("definition", "scorers", 0, "ground_truth"), "`solver_outputs` is not defined here"),
        (
            ("definition", "scorers", 1, "score_min"),
            "score_min is 5.0, expected a number below score_max (1.0)",
        ),
    ]


def test_solver_output_is_unknown_without_a_solver() -> None:
    scorer = {"type": "string_equals", "ground_truth": "a", "value": "{{ solver_output.output }}"}
    (issue,) = definition_issues(BenchmarkDefinition.model_validate({"scorers": [scorer]}), ["a"])
    assert issue.hint == "without a solver, only `sample` can be used here"


def test_an_empty_range_from_config_is_reported(tmp_path: Path) -> None:
    text = TASK.replace(
        "{type: string, key: tone, display_name: Tone", "{type: int, key: tone, display_name: Tone"
    )
    text = text.replace("default_value: dry", "default_value: 7") + (
        "    - {type: model_as_a_judge_scorer, model_key: m, user_prompt: x, score_min: 5, "
        'score_max: "<< config.tone >>"}\n'
    )
    path = write(tmp_path, text)
    assert plan(path).samples
    (issue,) = issues(path, config={"tone": 5})
    assert issue.message == "score_min is 5.0, expected a number below score_max (5.0)"
    assert issue.line == 21


def test_a_missing_dataset_is_reported_with_the_searched_paths(tmp_path: Path) -> None:
    path = write(tmp_path / "tasks", TASK.replace("{key: q}", "{key: other}"))
    (tmp_path / "datasets").mkdir()
    (issue,) = issues(path)
    assert issue.message.startswith("dataset 'other' was not found; looked for a dataset file with that key")
    assert str(tmp_path / "tasks") in issue.message
    assert str(tmp_path / "datasets") in issue.message
    assert issue.hint == "pass it with --dataset other=FILE"


def test_duplicate_dataset_declaration_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path)
    for name in ("a.yaml", "b.yml"):
        (tmp_path / name).write_text("key: q\ndisplay_name: Q\nsource: {type: local, path: q.jsonl}\n")
    (issue,) = issues(path)
    assert issue.message.startswith("several files")
    assert issue.message.endswith("a.yaml, b.yml")
    assert plan(path, datasets={"q": str(tmp_path / "q.jsonl")}).samples


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"datasets": {"x": "q.jsonl"}}, "the task does not use dataset 'x'; its dataset is 'q'"),
        ({"datasets": {"q": "missing.jsonl"}}, "dataset 'q': file 'missing.jsonl' does not exist"),
        ({"num_samples": 0}, "num_samples is 0, expected at least 1"),
        ({"num_trials": 0}, "num_trials is 0, expected at least 1"),
    ],
)
def test_invalid_options_are_rejected(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(write(tmp_path), **fields)
    assert message in str(caught.value)


@pytest.mark.parametrize("rows", ["", "\n\n"])
def test_empty_dataset_is_rejected(tmp_path: Path, rows: str) -> None:
    with pytest.raises(DatasetError, match=r"q\.jsonl"):
        plan(write(tmp_path, rows=rows))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("aigo_tasks/hp-trivai", "did you mean 'aigo_tasks/hp-trivia'?"),
        ("aigo_tasks/zzzzzz", "`aigo-bridge list` shows them"),
        ("nowhere.yaml", "file 'nowhere.yaml' does not exist"),
    ],
)
def test_a_misspelled_task_is_reported(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(Path(name))
    assert message in str(caught.value)


def test_folder_without_task_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"contains neither task\.yaml"):
        plan(tmp_path)
    assert plan(write(tmp_path).parent).samples


def test_dataset_task_needs_exactly_one_dataset(tmp_path: Path) -> None:
    text = """\
        key: t
        display_name: T
        description: ""
        definition:
          scorers:
            - {type: string_equals, ground_truth: "{{ sample.answer }}", value: "x"}
        """
    path = write(tmp_path, text)
    with pytest.raises(UsageError, match="evaluates a dataset, and none was given"):
        plan(path)
    made = plan(path, datasets={"any": str(tmp_path / "q.jsonl")})
    assert (made.entity, made.dataset and made.dataset.key) == ("dataset", "any")


def test_invalid_task_file_raises_a_bridge_error(tmp_path: Path) -> None:
    for text in ("", "[]", "key: t", "key: [", TASK.replace("key: t", "key: T t")):
        with pytest.raises(BridgeError):
            plan(write(tmp_path, text))

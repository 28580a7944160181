"""Conversion of records to AI GO tasks and back: same prompts and same scores."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bridge.jsonl_spec.jsonl_records import made, tasks
from tests.support.commands import Run

from aigo_bridge.dtypes import SolverTrace, Trace
from aigo_bridge.errors import UsageError
from aigo_bridge.jsonl_spec import (
    TaskSpec,
    from_aigo,
    load_tasks,
    metric_score,
    post_process,
    render,
    to_aigo,
    write_aigo,
)
from aigo_bridge.jsonl_spec.conversion import PROMPT_TEMPLATE, scorer_snippet
from aigo_bridge.plan.plan import document_of
from aigo_bridge.reading import read
from aigo_bridge.spec import task as task_spec
from aigo_bridge.templates import SampleTemplate

Load = Callable[[Path], dict[str, Any]]
some_tasks = st.lists(tasks(), min_size=1, max_size=4, unique_by=lambda task: task.task_id)


@settings(deadline=None)
@given(some_tasks)
def test_conversion_to_aigo_and_back_keeps_the_records(some: list[TaskSpec]) -> None:
    converted = to_aigo(some, key="k")
    recovered = from_aigo(converted.task, converted.rows)
    assert (recovered.tasks, recovered.reasons) == (tuple(some), ())


@settings(deadline=None)
@given(tasks())
def test_template_renders_the_same_prompt_as_the_record(task: TaskSpec) -> None:
    (row,) = to_aigo([task]).rows
    assert SampleTemplate(PROMPT_TEMPLATE).render(sample=row) == render(task)


def test_template_syntax_in_records_is_kept_as_text() -> None:
    task = made(prompt="{{ sample.targets }} {% if %} << config.x >> {# #}", few_shot_examples=None)
    (row,) = to_aigo([task]).rows
    assert SampleTemplate(PROMPT_TEMPLATE).render(sample=row) == task.prompt


class _Message:
    def __init__(self, text: str):
        self.message = self
        self.choices = [self]
        self.output = self
        self.content = text


_SCOPE: dict[str, Any] = {}
exec(compile(scorer_snippet(), "scorer", "exec"), _SCOPE)


@given(tasks().filter(lambda task: task.metric_name != "code_exec"), st.text(max_size=40))
def test_the_scorer_of_a_converted_task_gives_the_same_score(task: TaskSpec, generation: str) -> None:
    (row,) = to_aigo([task]).rows
    for text in (generation, *task.targets):
        prediction = post_process(task.post_process, text)
        assert _SCOPE["compute_scores"](row, _Message(text)) == {
            "scores": {task.metric_name: metric_score(task.metric_name, prediction, task.targets)},
            "metadata": {"prediction": prediction},
        }


def test_converted_scorer_does_not_import_aigo_bridge() -> None:
    assert "aigo_bridge" not in scorer_snippet()


def test_file_becomes_one_task_with_a_mean_for_each_metric(fixture_file: Path) -> None:
    converted = to_aigo(load_tasks(fixture_file), key="ten")
    scorer, code = converted.task["definition"]["scorers"]
    assert (code["type"], code["tests"]) == ("code_exec", "targets")
    assert [metric["field"] for metric in scorer["metrics"]] == [
        "exact_match",
        "f1",
        "bleu_4",
        "rouge_l",
        "accuracy",
    ]
    assert converted.dataset_key == "ten-records"
    assert [row["sample_id"] for row in converted.rows][:3] == ["arith_001", "arith_002", "mcq_001"]


def test_code_execution_is_reported_as_a_gap(fixture_file: Path) -> None:
    ten = load_tasks(fixture_file)
    (gap,) = to_aigo(ten).gaps
    assert gap.startswith("2 samples use the metric 'code_exec', whose scorer is an aigo-bridge extension")
    assert to_aigo([task for task in ten if task.category != "code_exec"]).gaps == ()


@pytest.mark.parametrize("key", ["", "a b", "ä", "x" * 241])
def test_an_invalid_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="expected 1 to 240"):
        to_aigo([made()], key=key)


def test_empty_list_of_records_is_refused() -> None:
    with pytest.raises(UsageError, match="no task records"):
        to_aigo([])


def test_written_task_is_valid_and_converts_back(fixture_file: Path, tmp_path: Path) -> None:
    ten = load_tasks(fixture_file)
    path = write_aigo(
        to_aigo(ten, key="ten", display_name="Ten: «tasks»", description="a\nb"), tmp_path / "new"
    )
    document = read(task_spec.TaskSpec, path)
    assert document.issues == ()
    rows = [json.loads(line) for line in (tmp_path / "new" / "ten-records.jsonl").read_bytes().splitlines()]
    assert from_aigo(document_of(document.spec), rows).tasks == ten


@pytest.mark.engine
def test_converted_task_runs_with_the_same_prompts_and_scores(
    fixture_file: Path, tmp_path: Path, aigo: Run, result_of: Load
) -> None:
    """End to end: ten samples, eight scores equal to those of our functions, two refused programs."""
    ten = load_tasks(fixture_file)
    folder = tmp_path / "ten"
    write_aigo(to_aigo(ten, key="ten"), folder)
    done = aigo(
        "run",
        folder,
        "--model",
        f"scripted/{fixture_file.with_name('answers.jsonl')}",
        "--out",
        tmp_path / "o",
    )
    assert done.code == 0, done.out
    assert "10 of 10 samples scored" in done.out

    evidence = result_of(tmp_path / "o" / "ten.tasklog.json")["evidence"]
    by_id = {
        sample["trials"][0]["sample"]["data"]["sample_id"]: sample["trials"][0]
        for sample in evidence["samples"]
    }
    assert list(by_id) == [task.task_id for task in ten]
    expected: dict[str, list[float]] = {}
    for task in ten:
        trial = by_id[task.task_id]
        asked, answered = trial["solver"]["output"]["trace"]["items"]
        assert "".join(part["text"] for part in asked["content"]) == render(task)
        if task.metric_name == "code_exec":
            (ran,) = [score for score in trial["scores"] if score["scorer_key"] == "code_exec"]
            expected.setdefault("code_exec", []).append(ran["values"]["code_exec"])
            continue
        generation = "".join(part["text"] for part in answered["content"])
        score = metric_score(task.metric_name, post_process(task.post_process, generation), task.targets)
        assert trial["scores"][0]["values"] == {task.metric_name: score}
        expected.setdefault(task.metric_name, []).append(score)
    assert {name: value for metric in evidence["metrics"] for name, value in metric["values"].items()} == {
        name: pytest.approx(sum(scores) / len(scores)) for name, scores in expected.items()
    }
    assert expected["exact_match"] == [1.0, 1.0, 1.0, 1.0]
    assert expected["f1"] == [pytest.approx(2 / 3)]


FOREIGN: dict[str, Any] = {
    "key": "capitals",
    "display_name": "Capitals",
    "description": "",
    "definition": {
        "dataset": {"key": "capitals"},
        "solver": {
            "type": "single_turn_solver",
            "input_builder": {
                "type": "chat_completion",
                "input_messages": [{"role": "user", "content": "Capital of {{ sample.country }}?"}],
            },
        },
        "scorers": [{"type": "string_equals", "ground_truth": "{{ sample.capital }}"}],
    },
}
ROWS: list[dict[str, Any]] = [
    {"country": "Norway", "capital": "Oslo"},
    {"country": "Peru", "capital": "Lima", "sample_id": 7},
]


def changed(path: str, value: Any) -> dict[str, Any]:
    document = copy.deepcopy(FOREIGN)
    *parents, last = path.split(".")
    place: Any = document
    for name in parents:
        place = place[int(name) if name.isdigit() else name]
    place[int(last) if last.isdigit() else last] = value
    return document


def test_plain_task_is_converted_to_records() -> None:
    first, second = from_aigo(FOREIGN, ROWS).tasks
    assert first == TaskSpec(
        "capitals_0", "classification", "Capital of Norway?", ("Oslo",), "exact_match", "none"
    )
    assert (second.task_id, second.targets) == ("7", ("Lima",))


def test_bleu_task_gets_the_category_summary() -> None:
    document = changed("definition.scorers.0.type", "bleu")
    assert {(task.category, task.metric_name) for task in from_aigo(document, ROWS).tasks} == {
        ("summary", "bleu_4")
    }


BUILDER = "definition.solver.input_builder"
SYSTEM = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "{{ sample.country }}"}]


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("config_spec", [{"type": "string", "key": "a", "display_name": "A"}], "parameters"),
        ("definition", {"type": "system_task", "compute_evidence_snippet": ""}, "system task"),
        ("definition.dataset", {"source": "task_result", "key": "r"}, "earlier task result"),
        ("definition.trials", {"num_trials": 3}, "several trials"),
        ("definition.actions", [{"key": "a"}], "action rules"),
        ("definition.solver", None, "does not define a solver"),
        ("definition.solver.postprocessor", {"type": "python", "postprocess_snippet": ""}, "postprocessor"),
        ("definition.solver.type", "multi_turn_solver", "'multi_turn_solver'"),
        (BUILDER, {"type": "generic", "template": ""}, "'generic'"),
        (f"{BUILDER}.input_messages", SYSTEM, "system, user"),
        (f"{BUILDER}.input_messages.0.content", "{{ sample.land }}", "land"),
        (f"{BUILDER}.input_messages.0.content", "{{ sample.country }} ", "whitespace"),
        ("definition.scorers", [], "0 scorers"),
        ("definition.scorers.0.purpose", "qa", "quality"),
        ("definition.scorers.0.value", "{{ sample.x }}", "`value`"),
        ("definition.scorers.0.metrics", [{"type": "std_dev", "field": "is_correct"}], "'std_dev'"),
        ("definition.scorers.0.ground_truth", "", "blank_text"),
        (
            "definition.scorers.0",
            {"type": "string_equals_mcqa", "ground_truth_choice": "A", "choices": ["A"]},
            "'string_equals_mcqa'",
        ),
        ("definition.scorers.0", {"type": "python", "compute_scores_snippet": "x = 1"}, "own code"),
    ],
    ids=range(19),
)
def test_task_that_cannot_be_converted_is_refused_with_the_reason(path: str, value: Any, reason: str) -> None:
    recovered = from_aigo(changed(path, value), ROWS)
    assert recovered.tasks == ()
    assert any(reason in each for each in recovered.reasons), recovered.reasons


def test_all_reasons_are_reported_up_to_a_limit() -> None:
    document = changed("definition.trials", {"num_trials": 3})
    document["definition"]["scorers"] = []
    assert len(from_aigo(document, ROWS).reasons) == 2
    many = from_aigo(FOREIGN, [{"country": "x"}] * 50).reasons
    assert len(many) == 21
    assert many[-1] == "and 30 more reasons"
    assert from_aigo(FOREIGN, []).reasons == ("the dataset is empty",)


def test_duplicate_row_ids_cannot_be_converted() -> None:
    rows = [{**ROWS[0], "sample_id": "a"}, {**ROWS[1], "sample_id": "a"}]
    assert from_aigo(FOREIGN, rows).reasons == ("row 2: the id 'a' occurs twice",)


def test_solver_outputs_have_the_shape_that_the_scorer_reads() -> None:
    from aigo_bridge.dtypes import ChatCompletionModelOutput

    answer = {"choices": [{"message": {"role": "assistant", "content": " 41 "}}]}
    output = SolverTrace(
        trace=Trace(items=[]), raw_outputs=[ChatCompletionModelOutput.model_validate(answer)], direct_ios=[]
    )
    (row,) = to_aigo([made()]).rows
    assert _SCOPE["compute_scores"](row, output)["scores"] == {"exact_match": 1.0}

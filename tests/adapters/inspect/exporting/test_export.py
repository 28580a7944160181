"""Exported folders in other environments: they run with the command of Inspect, in another place and at
another time."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import list_eval_logs, read_eval_log
from tests.support.commands import Run

from .conftest import Export, Make, evaluate, numbers_of_log

SOLVER = {
    "type": "single_turn_solver",
    "input_builder": {
        "type": "chat_completion",
        "input_messages": [
            {"role": "user", "content": "Say {{ sample.w }} << config.tone >> << config.max-words >>"}
        ],
    },
}
CONFIG = [
    {"type": "int", "key": "max-words", "display_name": "Words", "min": 1, "max": 50, "default_value": 10},
    {"type": "categorical", "key": "tone", "display_name": "Tone", "allowed_values": ["dry", "warm, kind"], "default_value": "dry"},
    {"type": "list", "dtype": "integer", "key": "numbers", "display_name": "N", "default_value": [1, 2]},
    {"type": "dict", "value_dtype": "float", "key": "weights", "display_name": "W", "default_value": {"a": 0.1}},
    {"type": "string", "key": "class", "display_name": "Class", "default_value": "c"},
    {"type": "float", "key": "num_samples", "display_name": "Taken name", "default_value": 1.5},
    {"type": "boolean", "key": "flag", "display_name": "Flag", "default_value": False},
    {"type": "string", "key": "maybe", "display_name": "Maybe", "nullable": True},
]  # fmt: skip
TASK: dict[str, Any] = {
    "key": "of-parameters",
    "config_spec": CONFIG,
    "definition": {
        "dataset": {"key": "rows"},
        "solver": SOLVER,
        "scorers": [{"type": "string_equals", "ground_truth": "{{ sample.w }}"}],
    },
}
ROWS = [{"w": "a"}, {"w": "b"}]


def test_an_exported_folder_runs_in_another_place(
    case: Make, export: Export, aigo: Run, command: Run, tmp_path: Path
) -> None:
    """The folder is moved, the original files are deleted, and the printed command runs with other values."""
    made = case(TASK, ROWS, {"Say a warm, kind 3": "a", "Say b": "?"})
    file = export(made)
    moved = tmp_path / "elsewhere" / "of us"
    shutil.copytree(file.parent, moved)
    (moved / "answers.jsonl").write_text((made.folder / "answers.jsonl").read_text())
    shutil.rmtree(file.parent)
    shutil.rmtree(made.folder)

    done = command(
        "inspect", "eval", "of_parameters.py", "--model", "scripted/answers.jsonl", "-T", "max_words=3", "-T", "tone=warm, kind",
        "--log-dir", "logs", "--display", "none", cwd=moved,
    )  # fmt: skip

    assert done.code == 0, done.err
    imported = aigo("import", moved / "logs", "--out", moved / "evidence")
    assert imported.code == 0, imported.err
    (result,) = (moved / "evidence").glob("*.tasklog.json")
    evidence = json.loads(result.read_bytes())
    assert evidence["specification"]["config"]["max-words"] == 3
    assert evidence["evidence"]["metrics"][0]["values"] == {"accuracy": 0.5}


@pytest.mark.parametrize("form", ["hosted", "native"])
def test_eval_retry_finishes_an_exported_run(
    form: str, case: Make, export: Export, command: Run, tmp_path: Path
) -> None:
    """One of two trials failed. Only this trial is run again; the other is reused."""
    definition = {**TASK["definition"], "trials": {"num_trials": 2}}
    made = case({**TASK, "definition": definition}, ROWS)
    rules = [
        {"match": {"contains": "Say a"}, "times": 1, "reply": {"error": "out of order"}},
        {"match": {"contains": "Say a"}, "reply": {"text": "a"}},
        {"default": True, "reply": {"text": "?"}},
    ]
    (made.folder / "answers.jsonl").write_text("".join(f"{json.dumps(rule)}\n" for rule in rules))
    file = export(made, *(["--native"] if form == "native" else []))
    folder = file.parent
    first = Path(evaluate(file, made.model).location.removeprefix("file://"))
    assert len([sample for sample in read_eval_log(str(first)).samples or [] if sample.error]) == 1
    rules[0] = rules[1]
    (made.folder / "answers.jsonl").write_text("".join(f"{json.dumps(rule)}\n" for rule in rules))

    done = command(
        "inspect", "eval-retry", first, "--log-dir", folder / "again", "--display", "none", cwd=tmp_path
    )  # fmt: skip

    assert done.code == 0, done.err
    (again,) = list_eval_logs(str(folder / "again"))
    numbers = numbers_of_log(read_eval_log(again))
    assert numbers.metrics == {"string_equals": {"accuracy": 0.5}}
    assert len(numbers.scores) == 4
    assert not numbers.failed


def test_task_arguments_are_typed(case: Make, export: Export) -> None:
    """The command of Inspect reads values as YAML, and values with commas as lists."""
    made = case(TASK, ROWS)
    given = {
        "max_words": 7,
        "tone": ["warm", " kind"],
        "numbers": ["3", "4"],
        "weights": {"b": 2},
        "class_": ["x", "y"],
        "num_samples_2": "1e-3",
        "flag": True,
        "maybe": "text",
        "num_samples": 1,
    }

    log = evaluate(export(made), made.model, task_args=given)

    assert log.eval.metadata is not None
    header = log.eval.metadata["aigo_bridge"]
    assert header["config"] == {
        "max-words": 7, "tone": "warm, kind", "numbers": [3, 4], "weights": {"b": 2}, "class": "x,y",
        "num_samples": 0.001, "flag": True, "maybe": "text",
    }  # fmt: skip
    assert log.eval.dataset.samples == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_words": 51}, "parameter 'max-words': found 51, expected a number from 1 to 50"),
        ({"tone": "hot"}, "parameter 'tone': found 'hot', expected one of 'dry', 'warm, kind'"),
        ({"class_": 8}, "parameter 'class': found 8, expected text"),
        ({"num_samples": 0}, "num_samples is 0, expected at least 1"),
    ],
)
def test_a_wrong_argument_is_reported(
    arguments: dict[str, Any], message: str, case: Make, export: Export
) -> None:
    made = case(TASK, ROWS)

    with pytest.raises(PrerequisiteError, match=re.escape(message)):
        evaluate(export(made), made.model, task_args=arguments)


def test_errors_are_shown_without_a_traceback(case: Make, export: Export, command: Run) -> None:
    made = case(TASK, ROWS)

    done = command(
        "inspect",
        "eval",
        "of_parameters.py",
        "--model",
        made.model,
        "-T",
        "class_=010",
        cwd=export(made).parent,
    )

    assert done.code != 0
    said = " ".join((done.out + done.err).split())
    assert "parameter 'class': found 8, expected text (type it with quotes inside: -T 'name=\"…\"')" in said
    assert "Traceback" not in said


def test_exported_values_are_the_argument_defaults(case: Make, export: Export) -> None:
    made = case(TASK, ROWS)

    log = evaluate(export(made, "--config", "max-words=4", "--config", "numbers=[9]"), made.model)

    assert log.eval.metadata is not None
    assert (
        log.eval.metadata["aigo_bridge"]["config"] | {"max-words": 4, "numbers": [9]}
        == (log.eval.metadata["aigo_bridge"]["config"])
    )


@pytest.mark.parametrize("changed", ["samples.jsonl", "task/task.yaml"])
def test_changed_files_are_refused(changed: str, case: Make, export: Export) -> None:
    made = case(TASK, ROWS)
    file = export(made)
    target = file.parent / "of_parameters" / changed
    target.write_text(target.read_text() + "\n")

    with pytest.raises(PrerequisiteError, match=f"were changed after the export: {changed} has changed"):
        evaluate(file, made.model)


def test_different_line_endings_are_not_a_change(case: Make, export: Export) -> None:
    """Git on Windows changes line endings."""
    made = case(TASK, ROWS)
    file = export(made)
    for path in (file.parent / "of_parameters").rglob("*"):
        if path.suffix in (".yaml", ".jsonl"):
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))

    assert evaluate(file, made.model).status == "success"


def test_a_native_file_does_not_import_aigo_bridge(case: Make, export: Export) -> None:
    definition = {**TASK["definition"]}
    made = case({**TASK, "config_spec": CONFIG, "definition": definition}, ROWS)
    file = export(made, "--native")
    code = (
        f"import sys, runpy; space = runpy.run_path({str(file)!r}); task = space['of_parameters']();"
        "print(len(task.dataset), *(name for name in sys.modules if name.startswith('aigo')))"
    )

    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )

    assert done.stdout.split() == ["2"]

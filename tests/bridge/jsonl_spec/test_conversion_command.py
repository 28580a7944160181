"""`convert` on the command line: records to an AI GO task and back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.bridge.jsonl_spec.jsonl_records import SOUND, made, record
from tests.support.commands import TASKS, Finished

from aigo_bridge.jsonl_spec import validate_file, write_records
from aigo_bridge.reading import read
from aigo_bridge.reading.locating import find_task
from aigo_bridge.spec.task import TaskSpec


def convert(*args: object) -> Finished:
    from typer.testing import CliRunner

    from aigo_bridge.cli.verbs.convert import app

    done = CliRunner().invoke(app, [str(arg) for arg in args])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Finished(done.exit_code, done.stdout, done.stderr)


def test_convert_to_aigo_and_back_gives_the_same_records(fixture_file: Path, tmp_path: Path) -> None:
    there = convert(fixture_file, "--out", tmp_path / "task")
    assert (there.code, there.out.split()[:2]) == (0, ["10", "tasks"])
    assert "gap: 2 samples use the metric 'code_exec'" in there.err
    back = convert(tmp_path / "task", "--out", tmp_path / "back.jsonl")
    assert back.code == 0, back.err
    assert validate_file(tmp_path / "back.jsonl") == validate_file(fixture_file)


def test_task_key_is_derived_from_the_file_name(tmp_path: Path) -> None:
    write_records([made()], tmp_path / "Größe & co.jsonl")
    assert convert(tmp_path / "Größe & co.jsonl", "--out", tmp_path / "task").code == 0
    assert read(TaskSpec, find_task(str(tmp_path / "task"))).spec.key == "Gr-e-co"


def test_file_with_errors_is_refused_unless_bad_tasks_are_allowed(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(SOUND) + "\n" + json.dumps(record(task_id="b", targets=[])) + "\n")
    refused = convert(path, "--out", tmp_path / "task")
    assert refused.code == 2
    assert "[targets_empty]" in refused.err
    assert not (tmp_path / "task").exists()
    partial = convert(path, "--out", tmp_path / "task", "--allow-bad-tasks")
    assert (partial.code, partial.out.split()[0]) == (3, "1")
    assert "[targets_empty]" in partial.err


def test_existing_output_is_replaced_only_with_force(fixture_file: Path, tmp_path: Path) -> None:
    assert convert(fixture_file, "--out", tmp_path / "task").code == 0
    again = convert(fixture_file, "--out", tmp_path / "task")
    assert again.code == 2
    assert "--force" in again.err
    assert convert(fixture_file, "--out", tmp_path / "task", "--force").code == 0
    (tmp_path / "back.jsonl").touch()
    assert convert(tmp_path / "task", "--out", tmp_path / "back.jsonl").code == 2


def test_task_that_cannot_be_converted_is_refused_with_all_reasons(tmp_path: Path) -> None:
    done = convert(TASKS / "hp-trivia", "--out", tmp_path / "t.jsonl")
    assert done.code == 1
    assert "system, user" in done.err
    assert "'model_as_a_judge_classifier'" in done.err
    assert not (tmp_path / "t.jsonl").exists()


@pytest.mark.parametrize("out", ["folder", "t.json"])
def test_records_are_written_to_a_jsonl_file(tmp_path: Path, out: str) -> None:
    done = convert(TASKS / "hp-trivia", "--out", tmp_path / out)
    assert done.code == 2
    assert "expected a .jsonl file" in done.err

"""The hook: any evaluation leaves evidence behind when it is asked to."""

import json
from pathlib import Path

import pytest
from tests.adapters.inspect.importing import scripted_logs
from tests.support.commands import Run

from aigo_bridge.dtypes import TaskResultLog
from aigo_inspect import hooks
from aigo_inspect.importing import import_file
from aigo_inspect.logs import import_log

TASK = """key: t
display_name: T
description: ''
definition:
  dataset: {key: d}
  trials: {num_trials: 2}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, ground_truth: '{{ sample.a }}'}
"""


def test_an_evaluation_writes_evidence_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "evidence"))
    log = scripted_logs.run("plain", tmp_path)
    (file,) = (tmp_path / "evidence").glob("*.tasklog.json")
    assert (
        TaskResultLog.model_validate_json(file.read_bytes()).model_dump()
        == import_log(log.location).model_dump()
    )


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_of_ours_leaves_the_evidence_of_the_run_itself(
    aigo: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "evidence"))
    rows = [{"q": "France", "a": "Paris"}, {"q": "Atlantis", "a": "none"}]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.yaml").write_text(TASK)
    rules = [
        {"match": {"contains": "France"}, "reply": "Paris"},
        {"match": {"contains": "Atlantis"}, "reply": {"error": "no such place"} if fails else "none"},
    ]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(rule) + "\n" for rule in rules))
    assert aigo("run", "t.yaml", "--model", "scripted/m.jsonl", "-o", "out").code == int(fails)
    (file,) = (tmp_path / "evidence").glob("*.tasklog.json")
    assert json.loads(file.read_bytes()) == json.loads((tmp_path / "out" / "t.tasklog.json").read_bytes())
    # The same log, told nothing of where it comes from, is a log like any other.
    (log,) = (tmp_path / "out").glob("*.eval")
    result = import_file(log, tmp_path / "foreign")
    assert (result.exit_code, result.trials, result.failed) == (0, 4, int(fails))


def test_without_the_variable_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(hooks.VARIABLE, raising=False)
    scripted_logs.run("plain", tmp_path)
    assert [file.suffix for file in tmp_path.iterdir()] == [".eval"]


def test_evidence_can_stand_beside_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(hooks.VARIABLE, "log")
    scripted_logs.run("plain", tmp_path)
    assert len(list(tmp_path.glob("*.tasklog.json"))) == 1


def test_a_folder_that_cannot_be_written_does_not_take_the_evaluation_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(hooks.VARIABLE, str(tmp_path / "file" / "evidence"))
    assert scripted_logs.run("plain", tmp_path).status == "success"
    assert "evidence of" in caplog.text

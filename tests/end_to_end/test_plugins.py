"""A package that adds one type of each kind with entry points, and a package that cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.commands import Finished, Run
from tests.support.plugin_package import install

TASK = """key: plugged
display_name: Plugged
description: ""
definition:
  dataset: {key: rows}
  solver: {type: shout, question: "Capital of {{ sample.country }}?"}
  scorers:
    - type: contains
      expected: "{{ sample.capital }}"
      metrics: [{type: mean, field: contains, name: hits}, {type: median, field: contains, name: middle}]
"""


@pytest.fixture
def plugged(tmp_path: Path, command: Run) -> Callable[..., Finished]:
    """Run `aigo-bridge` in a process with the plug-ins."""
    site = install(tmp_path / "site", "scorers/lost=no_such_module:X", "verbs/lost=no_such_module:app")
    (tmp_path / "task.yaml").write_text(TASK)
    (tmp_path / "rows.jsonl").write_text(
        '{"country": "Norway", "capital": "Oslo"}\n{"country": "Peru", "capital": "Lima"}\n'
    )
    (tmp_path / "answers.jsonl").write_text(
        '{"match": {"exact": "CAPITAL OF NORWAY?"}, "reply": "It is Oslo."}\n{"default": true, "reply": "Rome"}\n'
    )

    def run(*args: object, **env: str) -> Finished:
        return command("aigo-bridge", *args, PYTHONPATH=str(site), **env)

    return run


@pytest.mark.engine
@pytest.mark.slow
def test_task_with_plugin_types_is_validated_explained_run_and_exported(
    plugged: Callable[..., Finished], tmp_path: Path
) -> None:
    assert plugged("validate", "task.yaml").code == 0
    assert "CAPITAL OF NORWAY?" in plugged("explain", "task.yaml").out
    for engine in ("inspect", "echo"):
        done = plugged(
            "run", "task.yaml", "--model", "scripted/answers.jsonl", "--engine", engine, "--out", engine
        )
        assert done.code == 0, done.err
        assert "hits" in done.out
        assert "middle" in done.out
        assert "0.5" in done.out
    exported = plugged("export", "inspect/plugged.tasklog.json", "--to", "scores-csv", "--out", "csv")
    assert exported.code == 0, exported.err
    rows = (tmp_path / "csv" / "plugged.scores.csv").read_text().splitlines()
    assert rows == ["sample,scorer,score,value", "0,contains,contains,1.0", "1,contains,contains,0.0"]


def test_plugin_verb_is_called_by_its_name(plugged: Callable[..., Finished], tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("three short words")
    assert plugged("words", "text.txt").out == "3 words\n"


def test_broken_plugin_is_named_and_does_not_affect_other_commands(
    plugged: Callable[..., Finished], tmp_path: Path
) -> None:
    done = plugged("doctor")
    assert done.code == 0, done.err
    lines = {line.split()[2]: line for line in done.out.splitlines() if "plug-in" in line.split()[1:2]}
    assert lines["scorers/contains"].startswith("ok")
    assert lines["scorers/lost"].startswith("missing")
    assert "aigo-bridge-words 1.0" in lines["scorers/lost"]
    assert "no_such_module" in lines["scorers/lost"]
    (tmp_path / "lost.yaml").write_text(TASK.replace("type: contains", "type: lost"))
    refused = plugged("validate", "lost.yaml")
    assert refused.code == 2
    assert "plug-in 'lost' (scorers) of aigo-bridge-words 1.0 cannot be loaded" in refused.err + refused.out
    assert "Traceback" not in refused.err
    missing = plugged("lost")
    assert missing.code == 2
    assert "plug-in 'lost' (verbs)" in missing.err


def test_unknown_type_is_reported_with_a_plugin_installed(
    plugged: Callable[..., Finished], tmp_path: Path
) -> None:
    (tmp_path / "wrong.yaml").write_text(TASK.replace("type: contains", "type: contain"))
    done = plugged("validate", "wrong.yaml")
    assert done.code != 0
    assert "'contain'" in done.out + done.err

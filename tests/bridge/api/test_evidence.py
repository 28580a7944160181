"""Validation from Python with allowed variables, and the `repr` of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import aigo_bridge

TASK = """\
key: t
display_name: $AIGO_TITLE
description: ''
definition:
  dataset: {key: rows}
  scorers: [{type: python, compute_scores_snippet: "def compute_scores(sample): return {'a': 1}"}]
"""


@pytest.fixture
def task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text('{"q": "Q"}\n')
    path = tmp_path / "t.yaml"
    path.write_text(TASK)
    return path


def test_validate_accepts_names_of_allowed_environment_variables(
    task: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIGO_TITLE", "Title")
    (refused,) = aigo_bridge.validate(task)
    assert not refused.is_valid(strict=False)
    (allowed,) = aigo_bridge.validate(task, env=["AIGO_TITLE"])
    assert allowed.is_valid(strict=True)
    assert [(use.name, use.is_set) for use in allowed.variables] == [("AIGO_TITLE", True)]
    (again,) = aigo_bridge.validate(task)
    assert again.issues == refused.issues


def test_validate_accepts_environment_variable_values(task: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIGO_TITLE", raising=False)
    (unset,) = aigo_bridge.validate(task, env=["AIGO_TITLE"])
    assert [use.is_set for use in unset.variables] == [False]
    (given,) = aigo_bridge.validate(task.parent, env={"AIGO_TITLE": "Title"})
    assert given.is_valid(strict=True)
    assert [use.is_set for use in given.variables] == [True]


def test_env_as_a_single_string_is_refused(task: Path) -> None:
    with pytest.raises(aigo_bridge.BridgeError, match="env: found the text 'AIGO_TITLE'"):
        aigo_bridge.validate(task, env="AIGO_TITLE")


@pytest.mark.parametrize("name", ["inspekt", "", None, 3])
def test_unknown_engine_is_refused_with_the_valid_names(name: Any) -> None:
    plan = aigo_bridge.plan_task(text=TASK.replace("$AIGO_TITLE", "T"), datasets={"rows": [{"q": "Q"}]})
    with pytest.raises(
        aigo_bridge.BridgeError, match=r"unknown engine .*; known engines: .*inspect.*lighteval"
    ):
        aigo_bridge.run(plan, engine=name)


def test_reprs_are_one_line_with_the_main_facts(task: Path) -> None:
    task.write_text(TASK.replace("$AIGO_TITLE", "T") + "  nonsense: 1\n")
    (report,) = aigo_bridge.validate(task)
    assert repr(report) == f"<ValidationReport of {str(task)!r}: unknown, 1 error>"
    task.write_text(TASK.replace("$AIGO_TITLE", "T"))
    plan = aigo_bridge.plan_task(task)
    assert repr(plan) == f"<TaskPlan of 't': 1 sample, digest {plan.digest[:12]}>"
    outcome = aigo_bridge.Outcome(task="t", status="error", error="Traceback:\nValueError: the disk is full")
    assert (
        repr(outcome)
        == "<Outcome of 't': error, 0 samples, error: 'Traceback: ValueError: the disk is full'>"
    )


@pytest.mark.engine
def test_reprs_of_a_run_show_metrics_and_files(task: Path) -> None:
    task.write_text(TASK.replace("$AIGO_TITLE", "T"))
    outcome = aigo_bridge.run(aigo_bridge.plan_task(task))
    assert outcome.result is not None
    place = repr(str(outcome.result))
    assert repr(outcome) == f"<Outcome of 't': success, 1 sample, a_mean 1 in {place}>"
    results = aigo_bridge.open_results(outcome.result)
    assert (repr(results), repr(aigo_bridge.read_log(outcome.result))) == (
        f"<Results: {place}>",
        f"<LogReader of {place}>",
    )
    assert repr(results.metrics()).startswith("<Table 'metrics' of 1 result: result, task, ")
    checked = aigo_bridge.verify(outcome.result)
    assert repr(checked) == f"<Verification of {place}: {checked.summary}>"
    (report,) = aigo_bridge.import_logs(outcome.logs[0].path, "evidence")
    assert (
        repr(report)
        == f"<ImportReport of {str(outcome.logs[0].path)!r}: success, 1 sample -> {str(report.output)!r}>"
    )

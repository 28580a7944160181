"""lm-evaluation-harness tasks with their golden conversions. `AIGO_GOLDEN=update` rewrites them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml

from aigo_bridge.errors import Issue, UnsupportedPlanError
from aigo_bridge.jsonl_spec.conversion import task_yaml
from aigo_bridge.reading import read
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.task import TaskSpec
from aigo_formats.conversions import ConvertedTask
from aigo_formats.lm_eval.tasks.files import converted_tasks
from aigo_formats.lm_eval.tasks.scorers import snippet

GOLDEN = Path(__file__).resolve().parents[4] / "golden" / "lm_eval_tasks"
FILES = sorted(path for path in (GOLDEN / "tasks").iterdir() if not path.name.startswith("_"))
_CODE = re.compile(
    r"^( *)compute_scores_snippet: \|\n.*?^ *SETTINGS: Settings = (\{.*?\})\n\n.*?(?=^ *metrics:)",
    re.MULTILINE | re.DOTALL,
)


def outcome_of(path: Path, *, allow: bool) -> str:
    try:
        tasks = converted_tasks(path, allow=allow)
    except UnsupportedPlanError as error:
        return str(error)
    return "\n".join(map(told, tasks))


def told(task: ConvertedTask) -> str:
    text = task_yaml(task.task)
    parts = [_CODE.sub(r"\1compute_scores_snippet: # with \2\n", text)]
    parts += [] if task.dataset is None else [task_yaml(task.dataset)]
    return "\n".join([*parts, *map(line, task.issues)])


def line(issue: Issue) -> str:
    return f"{issue.severity}: {issue}"


def test_at_least_20_tasks_are_covered() -> None:
    assert len(FILES) >= 20


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_converted_task_matches_the_golden_output(path: Path) -> None:
    strict, allowed = outcome_of(path, allow=False), outcome_of(path, allow=True)
    outcome = strict if strict == allowed else f"{strict}\n\nwith --allow-gaps:\n\n{allowed}"
    outcome = outcome.replace(f"{path.parent}/", "").rstrip() + "\n"
    golden = GOLDEN / "converted" / f"{path.stem}.txt"
    if os.environ.get("AIGO_GOLDEN") == "update":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(outcome)
    assert outcome == golden.read_text()


def test_every_golden_belongs_to_a_task() -> None:
    assert {path.stem for path in (GOLDEN / "converted").iterdir()} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_converted_tasks_are_valid(path: Path, tmp_path: Path) -> None:
    try:
        tasks = converted_tasks(path, allow=True)
    except UnsupportedPlanError:
        return
    for task in tasks:
        file = tmp_path / "task.yaml"
        file.write_text(task_yaml(task.task))
        assert list(read(TaskSpec, file).issues) == []
        if task.dataset is not None:
            file.write_text(task_yaml(task.dataset))
            assert list(read(DatasetSpec, file).issues) == []


def test_generated_scorer_code_contains_its_settings() -> None:
    code = snippet({"target": "{{x}}", "choices": None, "filters": [], "metrics": []})
    names: dict[str, object] = {}
    exec(compile(code, "scorer", "exec", dont_inherit=True), names)  # aigo-bridge's own code
    assert names["SETTINGS"] == {"target": "{{x}}", "choices": None, "filters": [], "metrics": []}
    assert yaml.safe_load(task_yaml({"code": code}))["code"] == code

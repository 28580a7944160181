"""`eval.yaml` files as on the Hub with their golden conversions. `AIGO_GOLDEN=update` rewrites them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from aigo_bridge.errors import BridgeError, SpecError, UnsupportedPlanError
from aigo_bridge.jsonl_spec.conversion import task_yaml
from aigo_bridge.reading import read
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.task import TaskSpec
from aigo_formats.conversions import ConvertedTask
from aigo_formats.inspect_hub.files import converted_tasks

GOLDEN = Path(__file__).resolve().parents[3] / "golden" / "inspect_hub"
FILES = sorted((GOLDEN / "files").iterdir())
_CODE = re.compile(
    r"^( *)compute_scores_snippet: \|\n.*?^ *SCORER = (\d+)\n\n.*?(?=^ *metrics:)|^( *)compute_metrics_snippet: \|\n.*?^ *return \{.*?\}\n",
    re.MULTILINE | re.DOTALL,
)


def outcome_of(path: Path, *, allow: bool) -> str:
    try:
        tasks = converted_tasks(path, repository="org/rows@main", allow=allow)
    except BridgeError as error:
        return f"{type(error).__name__}: {error}"
    return "\n".join(map(told, tasks))


def told(task: ConvertedTask) -> str:
    def shortened(match: re.Match[str]) -> str:
        if match[1] is None:
            return f"{match[3]}compute_metrics_snippet: # standard error\n"
        return f"{match[1]}compute_scores_snippet: # scorer {match[2]} of the entry\n"

    parts = [_CODE.sub(shortened, task_yaml(task.task))]
    parts += [] if task.dataset is None else [task_yaml(task.dataset)]
    return "\n".join([*parts, *(f"{issue.severity}: {issue}" for issue in task.issues)])


def test_at_least_20_hub_files_are_covered() -> None:
    assert len(FILES) >= 20
    assert sum(path.stem.startswith("hostile") for path in FILES) >= 5


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_converted_file_matches_the_golden_output(path: Path) -> None:
    strict, allowed = outcome_of(path, allow=False), outcome_of(path, allow=True)
    outcome = strict if strict == allowed else f"{strict}\n\nwith --allow-gaps:\n\n{allowed}"
    outcome = outcome.replace(f"{path.parent}/", "").rstrip() + "\n"
    golden = GOLDEN / "converted" / f"{path.stem}.txt"
    if os.environ.get("AIGO_GOLDEN") == "update":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(outcome, encoding="utf-8")
    assert outcome == golden.read_text(encoding="utf-8")


def test_every_golden_belongs_to_a_file() -> None:
    assert {path.stem for path in (GOLDEN / "converted").iterdir()} == {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_converted_tasks_are_valid(path: Path, tmp_path: Path) -> None:
    try:
        tasks = converted_tasks(path, repository="org/rows", allow=True)
    except UnsupportedPlanError:
        return
    except SpecError:
        if path.stem.startswith("hostile"):
            return
        raise
    for task in tasks:
        file = tmp_path / "task.yaml"
        file.write_text(task_yaml(task.task), encoding="utf-8")
        assert list(read(TaskSpec, file).issues) == []
        file.write_text(task_yaml(task.dataset or {}), encoding="utf-8")
        assert list(read(DatasetSpec, file).issues) == []

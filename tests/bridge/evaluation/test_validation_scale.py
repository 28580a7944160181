"""Validation of folders with many files: the work grows with the number of files, not with its square."""

from __future__ import annotations

import cProfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.evaluation.validation import ValidationReport, validate
from aigo_bridge.plan.plan import PlanOrigin

T = TypeVar("T")

TASK = """\
key: t{n}
display_name: T{n}
description: ''
definition:
  dataset: {{key: rows{n}}}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]}}
  scorers:
    - {{type: string_equals, ground_truth: "{{{{ sample.a }}}}"}}
"""
ROWS = "key: rows{n}\ndisplay_name: Rows\nsource: {{type: local, file_path: rows{n}.jsonl}}\n"
ROW = '{"q": "Q", "a": "A"}\n'
RUN = "run_config: {}\nevaluation:\n  key: e\n  display_name: E\n  task_specifications:\n"
SPECIFICATION = "    - {{key: s{n}, display_name: S, model_key: openai$gpt-4-1-nano, task_key: t{n}}}\n"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def in_one_folder(folder: Path, count: int) -> None:
    for n in range(count):
        write(folder / f"task{n}.yaml", TASK.format(n=n))
        write(folder / f"rows{n}.yaml", ROWS.format(n=n))
        write(folder / f"rows{n}.jsonl", ROW)


def in_their_own_folders(folder: Path, count: int) -> None:
    for n in range(count):
        write(folder / "tasks" / str(n) / "task.yaml", TASK.format(n=n))
        write(folder / "tasks" / "datasets" / f"rows{n}.yaml", ROWS.format(n=n))
        write(folder / "tasks" / "datasets" / f"rows{n}.jsonl", ROW)


def of_a_project(folder: Path, count: int) -> None:
    write(folder / "pyproject.toml", "")
    for n in range(count):
        write(folder / "tasks" / f"task{n}.yaml", TASK.format(n=n))
        write(folder / "datasets" / f"rows{n}.jsonl", ROW)


def without_datasets(folder: Path, count: int) -> None:
    for n in range(count):
        write(folder / f"task{n}.yaml", TASK.format(n=n))


def linked(folder: Path, count: int) -> None:
    in_one_folder(folder / "files", count)
    for file in (folder / "files").iterdir():
        (folder / file.name).symlink_to(Path("files", file.name))


def counted(work: Callable[[], T]) -> tuple[int, T]:
    """Return the number of function calls, which does not depend on the machine, and the result."""
    profile = cProfile.Profile()
    result = profile.runcall(work)
    return sum(entry.callcount for entry in profile.getstats()), result


def validated(folder: Path) -> list[ValidationReport]:
    return list(validate([folder]))


@pytest.mark.parametrize(
    "layout", [in_one_folder, in_their_own_folders, of_a_project, without_datasets, linked]
)
def test_validation_work_grows_linearly_with_the_files(
    layout: Callable[[Path, int], None], tmp_path: Path
) -> None:
    layout(tmp_path / "warm", 1)
    list(validate([tmp_path / "warm"]))
    counts = []
    for count in (24, 48):
        folder = tmp_path / str(count)
        layout(folder, count)
        calls, reports = counted(partial(validated, folder))
        assert sum(report.kind == "task" and report.is_valid(strict=False) for report in reports) >= count
        counts.append(calls)
    assert counts[1] < 2.2 * counts[0]


def test_planning_work_grows_linearly_with_the_specifications(tmp_path: Path) -> None:
    counts = []
    for count in (1, 24, 48):
        folder = tmp_path / str(count)
        of_a_project(folder, count)
        references = "".join(f"  - $ref: tasks/task{n}.yaml\n" for n in range(count))
        specifications = "".join(SPECIFICATION.format(n=n) for n in range(count))
        write(folder / "run.yaml", f"tasks:\n{references}{RUN}{specifications}")
        calls, (evaluation,) = counted(partial(plan_evaluations, PlanOrigin(task=str(folder / "run.yaml"))))
        assert len(evaluation.entries) == count
        counts.append(calls)
    assert counts[2] < 2.2 * counts[1]


def test_file_changed_during_validation_is_reread_by_the_next_call(tmp_path: Path) -> None:
    in_one_folder(tmp_path, 2)
    reports = validate([tmp_path / "task0.yaml", tmp_path / "task1.yaml"])
    assert next(reports).is_valid(strict=True)
    write(tmp_path / "other.yaml", ROWS.format(n=1))
    (report,) = validate([tmp_path / "task1.yaml"])  # while the first call has not ended
    assert report.issues[0].message.startswith("several files")
    assert next(reports, None) is not None

"""Reading run files: specification keys and the number of checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from aigo_bridge.evaluation.planning import plan_evaluations
from aigo_bridge.evaluation.run_files import read_run_files
from aigo_bridge.plan.plan import PlanOrigin
from aigo_bridge.reading import Document


def write(folder: Path, specifications: list[dict[str, Any]]) -> PlanOrigin:
    (folder / "d.jsonl").write_text('{"q": "1"}\n')
    task = {
        "key": "t",
        "display_name": "T",
        "description": "",
        "definition": {
            "dataset": {"key": "d0"},
            "solver": {
                "type": "single_turn_solver",
                "input_builder": {
                    "type": "chat_completion",
                    "input_messages": [{"role": "user", "content": "q"}],
                },
            },
            "scorers": [{"type": "string_equals", "ground_truth": "1"}],
        },
    }
    datasets = [
        {"key": f"d{number}", "display_name": "D", "source": {"type": "local", "file_path": "d.jsonl"}}
        for number in range(len(specifications))
    ]
    evaluation = {
        "key": "e",
        "display_name": "E",
        "description": "",
        "task_specifications": [{"model_key": "m", **specification} for specification in specifications],
    }
    run = {"datasets": datasets, "tasks": [task], "evaluation": evaluation}
    (folder / "run.json").write_text(json.dumps(run))
    return PlanOrigin(task=str(folder / "run.json"))


def test_missing_specification_key_is_the_task_key_with_a_number_if_taken(tmp_path: Path) -> None:
    origin = write(
        tmp_path,
        [{"task_key": "t"}, {"key": "t_1", "task_key": "t"}, {"task_key": "t"}],
    )
    (run_file,) = read_run_files(origin)
    assert [written.key for written in run_file.specifications] == ["t_2", "t_1", "t_3"]


def test_shared_parts_of_specifications_are_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = 40
    origin = write(tmp_path, [{"task_key": "t"}] * number)
    parts: list[object] = []
    part = Document.part

    def counted(*args: Any) -> Any:
        parts.append(args)
        return part(*args)

    monkeypatch.setattr(Document, "part", counted)

    (evaluation,) = plan_evaluations(origin)

    assert len(evaluation.entries) == number
    # One for each dataset, and the task of each specification.
    assert len(parts) <= 4 * number

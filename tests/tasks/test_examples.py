"""Examples of a published definition: with them, a shipped task has the published prompt."""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import TASKS, Run

from aigo_tasks.examples import SHOWN, examples, main

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # from modules that the references import


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[dict[str, Any]]:
    """Hub that records its requests and has a hundred rows of every dataset."""
    datasets = importlib.import_module("datasets")

    requests: list[dict[str, Any]] = []

    def load_dataset(*positional: str, **named: Any) -> Any:
        names = dict(zip(("path", "name"), positional, strict=False)) | named
        requests.append({key: value for key, value in names.items() if value})
        folder = names["path"].partition("/")[2]
        lines = (TASKS / folder / "rows.jsonl").read_text("utf-8").splitlines()
        rows = [json.loads(lines[number % len(lines)]) for number in range(100)]
        column = "question" if "question" in rows[0] else "prompt"
        return datasets.Dataset.from_list(
            [{**row, column: f"{row[column]} {number}", "task_id": number} for number, row in enumerate(rows)]
        )

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return requests


@pytest.mark.engine
@pytest.mark.parametrize("task", ["gsm8k", "drop"])
def test_default_prompt_with_examples_equals_inspect_evals(
    aigo: Run, hub: list[dict[str, Any]], task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The published task builds its system message from the same hub."""
    module = importlib.import_module(f"inspect_evals.{task}.{task}")
    system = ""

    def system_message(template: str) -> None:
        nonlocal system
        system = template

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(module, "system_message", system_message)
        getattr(module, task)()
    capsys.readouterr()
    published = next(source for source in hub if source["split"] == "train")
    del hub[:]

    assert main([task]) == 0

    shown = capsys.readouterr().out.strip()
    assert [{key: source[key] for key in SHOWN[task][0]} for source in [published]] == hub == [SHOWN[task][0]]
    done = aigo("explain", f"aigo_tasks/{task}", "-n", 1, "--json", "--config", f"examples={shown}")
    message = done.json["samples"][0]["messages"][0]
    # Inspect fills in the template, of which braces are doubled.
    assert message == {"role": "system", "content": system.replace("{{", "{").replace("}}", "}")}


@pytest.mark.engine
def test_mbpp_examples_are_the_three_of_inspect_evals(hub: list[dict[str, Any]]) -> None:
    assert [row["task_id"] for row in examples("mbpp")] == [2, 3, 4]
    assert hub == [SHOWN["mbpp"][0]]


def test_examples_have_the_dataset_revision_of_the_task() -> None:
    for task, (source, _) in SHOWN.items():
        entity = yaml.safe_load((TASKS / task / "dataset.yaml").read_text("utf-8"))["source"]
        assert entity["path"] == source["path"]
        assert entity["load_dataset_kwargs"]["revision"] == source["revision"]


def test_unknown_task_and_missing_package_are_reported(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["piqa"]) == main([]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "expected one of drop, gsm8k, mbpp, found piqa",
        "expected one of drop, gsm8k, mbpp, found nothing",
    ]

    monkeypatch.setitem(sys.modules, "datasets", None)
    assert main(["gsm8k"]) == 2
    assert re.search(r"needs the package datasets: pip install", capsys.readouterr().err)

"""Compare two scripted models on shipped tasks; the difference and its p-value are computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.support.commands import REPOSITORY, Run


@pytest.mark.parametrize("task", ["gsm8k", "mmlu"])
def test_model_without_right_answers_loses_every_point(aigo: Run, tmp_path: Path, task: str) -> None:
    """For k lost and 0 gained samples, McNemar's p is 2 · (1/2)ᵏ."""
    silent = tmp_path / "silent.jsonl"
    silent.write_text(json.dumps({"default": True, "reply": {"text": "I do not know."}}))
    answers = {
        "base": REPOSITORY / "tasks" / "aigo_tasks" / task / "answers.jsonl",
        "new": silent,
    }
    for name, file in answers.items():
        run = aigo("run", f"aigo_tasks/{task}", "--model", f"scripted/{file}", "--out", name)
        assert run.code == 0, run.err

    done = aigo("compare", "base", "new", "--json")

    (comparison,) = done.json["comparisons"]
    compared = [metric for metric in comparison["metrics"] if metric["test"] == "McNemar, exact"]
    assert compared
    for metric in compared:
        lost = round(metric["base"] * metric["pairs"])
        assert lost > 0
        assert metric["new"] == 0
        assert metric["difference"] == pytest.approx(-lost / metric["pairs"])
        assert metric["p_value"] == pytest.approx(2 * 0.5**lost)
        assert metric["flips"]["right_to_wrong"] == lost
    assert {divergence["kind"] for divergence in comparison["differs"]} == {"model"}

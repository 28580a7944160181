"""Built-in lighteval tasks run by aigo-bridge give the values of the lighteval pipeline, document by
document."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.adapters.lighteval.benchmarks.conftest import ROWS, Splits, alone, answering, native, rows_of, run

LIKELIHOODS = ("arc:challenge", "arc:easy", "truthfulqa:mc", "winogrande", "sciq", "swag", "logiqa")
SPOKEN = sorted(set(ROWS) - set(LIKELIHOODS))


def said(doc: Any) -> str:
    """Return correct, wrong and unusual answers in turn."""
    golds: list[str] = doc.get_golds()
    number: int = sum(doc.query.encode())
    answers: list[str] = [f"{golds[0]}", "no idea", f" ANSWER: {golds[0]}\n", f"<think>B</think>{golds[-1]}"]
    return answers[number % len(answers)]


@pytest.mark.parametrize(
    ("task", "shots"), [*((task, 0) for task in SPOKEN), ("mmlu:abstract_algebra", 2), ("gsm8k", 3)]
)
def test_metrics_match_lighteval(
    task: str,
    shots: int,
    tmp_path: Path,
    data_dir: Callable[[Splits], Path],
    scripted: Callable[[Mapping[str, str]], str],
) -> None:
    splits = rows_of(task)
    model = answering(said)
    expected, docs = native(task, splits, model, shots)
    texts = {messages[-1]["content"]: said(doc) for doc in docs for messages in [model.asked[doc.query]]}

    (outcome,) = run(f"{alone(task)}|{shots}", tmp_path / "out", scripted(texts), data_dir(splits))

    assert outcome.num_failed == 0, outcome.first_errors
    numbers = {row.name: row.value for row in outcome.metrics if not row.name.endswith("_stderr")}
    assert numbers == pytest.approx(dict(expected.results), nan_ok=True)
    assert outcome.result is not None
    log = json.loads(outcome.result.read_text("utf-8"))
    found = log["evidence"]["samples"]
    assert len(found) == len(docs) == len({sample["sample_id"] for sample in found})
    for sample in found:
        (trial,) = sample["trials"]
        query = trial["sample"]["data"]["query"]
        values = {name: value for score in trial["scores"] for name, value in score["values"].items()}
        assert values == as_json(expected.metrics[query])
        spoken = [
            {"role": item["role"], "content": "".join(part["text"] for part in item["content"])}
            for item in trial["solver"]["output"]["trace"]["items"]
        ]
        assert spoken[:-1] == model.asked[query]
        assert spoken[-1] == {"role": "assistant", "content": texts[model.asked[query][-1]["content"]]}


def as_json(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return document metrics as in the evidence; inputs of corpus metrics have their own names."""
    found: dict[str, Any] = {}
    for name, value in metrics.items():
        number = value.tolist() if hasattr(value, "tolist") else value
        assert not isinstance(number, float) or math.isfinite(number)
        found[name] = number
    return found


def test_the_task_list_has_26_tasks() -> None:
    assert len(ROWS) == 26

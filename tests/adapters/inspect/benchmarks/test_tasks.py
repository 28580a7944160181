"""Tasks of `inspect-evals` run unchanged, and the evidence has the values of their native logs, sample by
sample."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from inspect_ai.log import read_eval_log
from inspect_ai.scorer import value_to_float
from tests.support.plugins import with_benchmarks

SCRIPT = Path(__file__).with_name("run_installed.py")
NAMES = (
    "gsm8k",
    "arc_easy",
    "arc_challenge",
    "boolq",
    "commonsense_qa",
    "winogrande",
    "hellaswag",
    "truthfulqa",
    "mmlu_0_shot",
)
CONVERTED = ("mmlu_0_shot",)


@pytest.fixture(scope="module")
def summaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the output of each run; all runs share one process without a network."""
    folder = tmp_path_factory.mktemp("installed")
    homes = ("HF_HOME", "HF_DATASETS_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME", "INSPECT_CACHE_DIR")
    environment = with_benchmarks({**os.environ, **{name: str(folder / "cache") for name in homes}})
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        cwd=folder,
        env={**environment, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads((folder / "summaries.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_metrics_and_scores_match_the_native_log(name: str, summaries: dict[str, Any]) -> None:
    run = summaries[name]
    assert run["code"] == 0, run["err"]
    (outcome,) = run["outcomes"]
    log = read_eval_log(outcome["native_log"])
    assert log.results is not None
    assert log.samples
    result = json.loads(Path(outcome["result"]).read_bytes())

    native = [
        (score.scorer, key, metric.value)
        for score in log.results.scores
        for key, metric in score.metrics.items()
    ]
    shown = [(metric["scorer"], metric["name"], metric["value"]) for metric in outcome["metrics"]]
    evidence = [
        (metric["scorer_name"], key, value)
        for metric in result["evidence"]["metrics"]
        for key, value in metric["values"].items()
    ]
    assert native
    assert [value for *_, value in shown] == [value for *_, value in native]
    assert evidence == native

    scores = {
        (str(sample.id), sample.epoch): {key: score.value for key, score in (sample.scores or {}).items()}
        for sample in log.samples
    }
    mapped = {
        (str(sample["sample_id"]), trial["index"] + 1): {
            data["scorer_name"]: data["values"][data["scorer_name"]] for data in trial["scores"]
        }
        for sample in result["evidence"]["samples"]
        for trial in sample["trials"]
    }
    assert mapped == scores
    assert len({value for each in scores.values() for value in each.values()}) > 1, "all answers alike"


@pytest.mark.parametrize("name", CONVERTED)
def test_a_task_with_a_custom_solver_is_converted_exactly(name: str, summaries: dict[str, Any]) -> None:
    logs, metrics = [], []
    for run in (summaries[name], summaries[f"aigo-{name}"]):
        assert run["code"] == 0, run["err"]
        (outcome,) = run["outcomes"]
        logs.append(read_eval_log(outcome["native_log"]))
        metrics.append({row["name"].rpartition(".")[2]: row["value"] for row in outcome["metrics"]})
    native, own = (
        {
            str(sample.id): (
                [
                    [(message.role, message.text) for message in event.input]
                    for event in sample.events
                    if event.event == "model"
                ],
                {key: value_to_float()(score.value) for key, score in (sample.scores or {}).items()},
            )
            for sample in log.samples or []
        }
        for log in logs
    )
    assert own == native
    assert len(native) == 4
    assert metrics[1] == pytest.approx(metrics[0], abs=1e-12)
    assert set(metrics[0]) == {"accuracy", "stderr"}

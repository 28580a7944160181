"""Exported tasks, and the three ways to run them: with aigo-bridge, as a hosted file, as a native file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from inspect_ai import eval as inspect_eval
from inspect_ai.event import ModelEvent
from inspect_ai.log import EvalLog, read_eval_log
from inspect_ai.scorer import Score
from tests.support.commands import Run

from aigo_bridge.evaluation.writing import write_result
from aigo_inspect.running.evidence import read

Scores = dict[tuple[Any, int, str], Any]
"""Sample id, trial, scorer → values."""


@dataclass(frozen=True)
class Numbers:
    """Metrics and scores of a run."""

    scores: Scores
    metrics: dict[str, dict[str, float]]
    """Scorer → name → value."""
    failed: set[Any]
    """Ids of samples that have an error in every trial."""


@dataclass(frozen=True)
class Case:
    """Task in its own folder, with rows and a scripted model."""

    folder: Path

    @property
    def model(self) -> str:
        return f"scripted/{self.folder / 'answers.jsonl'}"

    @property
    def judge(self) -> str:
        return f"scripted/{self.folder / 'judge.jsonl'}"


Make = Callable[..., Case]


@pytest.fixture
def case(tmp_path: Path) -> Make:
    """Write a task, its rows (dataset `rows`) and the answers of its model."""

    def make(
        task: dict[str, Any],
        rows: list[dict[str, Any]] | None = None,
        answers: dict[str, Any] | None = None,
        judge: dict[str, str] | None = None,
        **files: str,
    ) -> Case:
        folder = tmp_path / "author"
        folder.mkdir(exist_ok=True)
        document = {"display_name": task.get("key", "task"), "description": "", **task}
        (folder / "task.yaml").write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
        if rows is not None:
            lines = [json.dumps(row, ensure_ascii=False) for row in rows]
            (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")
        for name, replies in (("answers", answers), ("judge", judge)):
            rules: list[dict[str, Any]] = [
                {"match": {"contains": text}, "reply": reply if isinstance(reply, dict) else {"text": reply}}
                for text, reply in (replies or {}).items()
            ]
            rules.append({"default": True, "reply": {"text": "?"}})
            (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(rule)}\n" for rule in rules))
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return Case(folder)

    return make


def numbers_of_result(path: Path) -> Numbers:
    """Return the metrics and scores of a result log."""
    evidence = orjson.loads(path.read_bytes())["evidence"]
    scores: Scores = {}
    failed = set()
    for sample in evidence["samples"]:
        trials = sample["trials"]
        for trial in trials:
            for score in trial["scores"] or []:
                scores[sample["sample_id"], trial["index"] + 1, score["scorer_key"]] = score["values"]
        if all(trial["errors"] for trial in trials):
            failed.add(sample["sample_id"])
    metrics: dict[str, dict[str, float]] = {}
    for metric in evidence["metrics"]:
        metrics.setdefault(metric.get("scorer_key", ""), {}).update(metric["values"])
    return Numbers(scores, metrics, failed)


def numbers_of_log(log: EvalLog, *, scored: bool = True) -> Numbers:
    """Return the metrics and scores of an Inspect log, read with Inspect only."""
    full = read_eval_log(log.location)
    assert (full.results is not None) is scored
    assert full.samples is not None
    scores = {
        (sample.id, sample.epoch, name): values
        for sample in full.samples
        for name, score in (sample.scores or {}).items()
        if (values := _values(score)) is not None
    }
    # Only Inspect computes a standard error.
    metrics = {
        score.scorer: {name: float(value.value) for name, value in score.metrics.items() if name != "stderr"}
        for score in (full.results.scores if full.results is not None else ())
    }
    ids = {sample.id for sample in full.samples}
    whole = {sample.id for sample in full.samples if sample.error is None and sample.limit is None}
    return Numbers(scores, {name: values for name, values in metrics.items() if values}, ids - whole)


def _values(score: Score) -> Any:
    """Return values by name. A hosted run stores a single value without its name, which is next to it."""
    if isinstance(score.value, dict):
        return score.value
    name = ((score.metadata or {}).get("aigo_bridge") or {}).get("name")
    return None if name is None else {name: score.value}


Direct = Callable[..., Numbers]


@pytest.fixture
def direct(aigo: Run, tmp_path: Path) -> Direct:
    """Return a function that calls `aigo-bridge run`."""

    def run(case: Case, *options: object) -> Numbers:
        out = tmp_path / "direct"
        done = aigo("run", case.folder, "--out", out, *options)
        assert done.code in (0, 1), done.err
        (result,) = out.glob("*.tasklog.json")
        return numbers_of_result(result)

    return run


Export = Callable[..., Path]


@pytest.fixture
def export(aigo: Run, tmp_path: Path) -> Export:
    """Return a function that calls `aigo-bridge export --to inspect` and returns the task file."""

    def run(case: Case, *options: object, out: Path | None = None) -> Path:
        out = out or tmp_path / "exported"
        done = aigo("export", case.folder, "--to", "inspect", "--out", out, "--json", *options)
        assert done.code == 0, done.err
        return out / str(done.json["files"][0])

    return run


def evaluate(file: Path, model: str, **options: Any) -> EvalLog:
    """Run an exported file with Inspect."""
    (log,) = inspect_eval(
        os.path.relpath(file),
        model=model,
        display="none",
        log_dir=str(file.parent / "logs"),
        ctl_server=False,
        **options,
    )
    assert log.status == "success", log.error
    return log


def calls_of(log: EvalLog) -> dict[Any, list[Any]]:
    """Return the requests to the evaluated model by sample and trial: messages and generation options."""
    calls: dict[Any, list[Any]] = {}
    for sample in read_eval_log(log.location, resolve_attachments=True).samples or []:
        for event in sample.events:
            if isinstance(event, ModelEvent):
                messages = [(message.role, message.text) for message in event.input]
                config = event.config.model_dump(exclude_none=True)
                calls.setdefault((sample.id, sample.epoch), []).append((messages, config))
    return calls


def numbers_of_hosted(log: EvalLog, folder: Path) -> Numbers:
    """Return the metrics and scores of a hosted file's log, read by `aigo-bridge import`."""
    path = Path(log.location.removeprefix("file://"))
    result = folder / "hosted.tasklog.json"
    write_result(read(path), result, engine="inspect")
    return numbers_of_result(result)

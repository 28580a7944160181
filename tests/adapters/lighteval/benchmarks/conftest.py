"""Built-in lighteval tasks with made-up rows, and the lighteval pipeline for comparison."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from aigo_bridge.engine.benchmarks import BenchmarkRun
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.registry import load_benchmarks

Splits = Mapping[str, list[dict[str, Any]]]
ROWS: Mapping[str, Any] = json.loads((Path(__file__).parent / "rows.json").read_text("utf-8"))


@dataclass(frozen=True)
class Native:
    """Outcome of the lighteval pipeline."""

    results: Mapping[str, float]
    metrics: Mapping[str, Mapping[str, Any]]
    """Metrics of each document, by its question."""


def rows_of(task: str) -> Splits:
    """Return the splits of a task."""
    from aigo_lighteval.benchmarks.tasks import select

    rows = ROWS[task]
    if isinstance(rows, dict):
        return rows
    (found,) = select(alone(task))
    return dict.fromkeys((*found.config.evaluation_splits, *found.config.hf_avail_splits), rows)


def alone(task: str) -> str:
    """Return the name of a task that shares its name with a superset."""
    return f"{task}:" if task in ("bbq", "boolq") else task


@pytest.fixture
def data_dir(tmp_path: Path) -> Callable[[Splits], Path]:
    """Return a function that writes rows to a folder for `--data-dir`."""

    def make(splits: Splits) -> Path:
        folder = tmp_path / "rows"
        folder.mkdir(exist_ok=True)
        for split, rows in splits.items():
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (folder / f"{split}.jsonl").write_text(lines, "utf-8")
        return folder

    return make


@pytest.fixture
def scripted(tmp_path: Path) -> Callable[[Mapping[str, str]], str]:
    """Return a function that writes a scripted model from last messages and answers."""

    def make(answers: Mapping[str, str]) -> str:
        rules = [{"match": {"exact": asked}, "reply": {"text": said}} for asked, said in answers.items()]
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), "utf-8")
        return f"scripted/{path}"

    return make


def run(task: str, out: Path, model: str, data: Path | None = None, **rest: Any) -> list[Outcome]:
    """`aigo-bridge run lighteval:…` without its command line."""
    request = BenchmarkRun(task=task, out=out, model=model, data_dir=data, **rest)
    return load_benchmarks("lighteval").run(request)


@contextmanager
def only(config: Any, splits: Splits) -> Iterator[None]:
    """Set up lighteval with one task and rows in memory."""
    from lighteval.tasks.lighteval_task import LightevalTask
    from lighteval.tasks.registry import Registry

    def tables(custom_tasks: object = None, load_multilingual: bool = False) -> dict[str, Any]:
        return {config.name: config}

    def rows(task: object) -> dict[str, list[dict[str, Any]]]:
        return {split: json.loads(json.dumps(rows)) for split, rows in splits.items()}

    with (
        mock.patch.object(Registry, "load_all_task_configs", staticmethod(tables)),
        mock.patch.object(LightevalTask, "download_dataset_worker", staticmethod(rows)),
    ):
        yield


def native(task: str, splits: Splits, model: Any, shots: int = 0) -> tuple[Native, list[Any]]:
    """Run the unchanged lighteval pipeline; return its outcome and documents.

    Args:
        task: name of a built-in task.
        splits: its rows.
        model: a `LightevalModel`.
        shots: number of examples before each question.
    """
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters

    from aigo_lighteval.benchmarks.tasks import built_in

    config = built_in().configs[task]
    with only(config, splits):
        pipeline = Pipeline(
            tasks=f"{task}|{shots}",
            model=model,
            evaluation_tracker=EvaluationTracker(output_dir="unused"),
            pipeline_parameters=PipelineParameters(launcher_type=ParallelismManager.NONE, bootstrap_iters=0),
        )
        pipeline.evaluate()
    name = f"{task}|{shots}"
    metrics: dict[str, dict[str, Any]] = {}
    for detail in pipeline.get_details()[name]:
        metrics.setdefault(detail.doc.query, {}).update(detail.metric)
    results = pipeline.get_results()["results"][f"{task}:{shots}"]
    docs = [doc for docs in pipeline.sampling_docs.values() for doc in docs]
    return Native({key: float(value) for key, value in results.items()}, metrics), docs


def answering(answer: Callable[[Any], str]) -> Any:
    """Return a lighteval model that computes each answer with a function and records the messages."""
    from lighteval.models.abstract_model import LightevalModel, ModelConfig
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.prompt_manager import PromptManager

    class Answering(LightevalModel):  # type: ignore[misc]  # lighteval has no types
        tokenizer = None
        add_special_tokens = False
        max_length = 4096

        def __init__(self) -> None:
            self.config = ModelConfig(model_name="native")
            self._cache = types.SimpleNamespace(_init_registry=lambda registry: None)
            self.asked: dict[str, list[dict[str, str]]] = {}

        def greedy_until(self, docs: list[Any]) -> list[ModelResponse]:
            prompts = PromptManager(use_chat_template=True)
            responses = []
            for doc in docs:
                messages = prompts.prepare_prompt_api(doc)
                self.asked[doc.query] = messages
                text = [answer(doc)] * doc.num_samples
                responses.append(ModelResponse(input=messages, text=text))
            return responses

        def loglikelihood(self, docs: list[Any]) -> list[ModelResponse]:
            raise NotImplementedError

        def loglikelihood_rolling(self, docs: list[Any]) -> list[ModelResponse]:
            raise NotImplementedError

    return Answering()

"""Cost of a task on the lighteval engine, compared with the same task written for lighteval.

    python benchmarks/lighteval_engine.py [--documents 5000] [--memory 20000] [--repeat 3]

All variants save their results, and have the same rows and the same answers. With `http`, a local server
gives the answers. `native, http` is lighteval's own pipeline: its client for servers, with its cache of
answers, which is empty, and its details. It is what users have without aigo-bridge, so it is the peer,
although it keeps less: `ours, http` also keeps requests and answers with times, and masks secrets. `equal`
keeps the same data as aigo-bridge for evidence: each call in its own task with limited concurrency, requests
and answers with times, the row, and the score with the compared values. `equal` and `ours` have a scripted
model.

Each measurement has its own process, a copy of one that has imported lighteval and aigo-bridge, and runs two
documents first. CPU seconds therefore do not contain imports; they contain no planning either. The server is
another process and is not measured. Compare ratios, because other users of the machine change the seconds.
Memory is the peak of the process; the memory of a sample is the difference between the peaks of `--documents`
and `--memory` samples. `--memory 100000` takes minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import multiprocessing
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
import types
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from ratios import FOLDER, record

TASK = """key: cost
display_name: Cost
description: ''
definition:
  dataset: {key: rows}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.question }}"}]}
  scorers: [{type: string_equals, ground_truth: "{{ sample.answer }}"}]
"""


def prepare(folder: Path, rows: int) -> None:
    lines = (
        json.dumps(
            {"question": f"What is {number} plus {number}? " + "Think. " * 10, "answer": str(2 * number)}
        )
        + "\n"
        for number in range(rows)
    )
    (folder / "rows.jsonl").write_text("".join(lines))
    (folder / "model.jsonl").write_text('{"default": true, "reply": "42"}\n')
    (folder / "task.yaml").write_text(TASK)


def equal(folder: Path, out: Path) -> float:
    """Run the task with a model and a score that keep the same data as aigo-bridge."""
    from lighteval.models.abstract_model import LightevalModel, ModelConfig
    from lighteval.models.model_output import ModelResponse
    from lighteval.tasks.prompt_manager import PromptManager
    from lighteval.tasks.requests import Doc

    from aigo_bridge.models.scripted import load_script

    class NoCache:
        def _init_registry(self, registry: object) -> None:
            """Required by the pipeline."""

    class Model(LightevalModel):  # type: ignore[misc]  # lighteval has no types
        tokenizer, add_special_tokens, max_length = None, False, 4096

        def __init__(self) -> None:
            self.config, self._cache = ModelConfig(model_name="equal"), NoCache()
            self.script, self.prompts = load_script(folder / "model.jsonl"), PromptManager()

        def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
            return asyncio.run(self.together(docs))

        def answer(self, doc: Doc) -> ModelResponse:
            messages = self.prompts.prepare_prompt_api(doc)
            reply = self.script.reply([(message["role"], message["content"]) for message in messages])
            return ModelResponse(input=messages, text=[reply.text])

        async def together(self, docs: list[Doc]) -> list[ModelResponse]:
            allowed = asyncio.Semaphore(10)

            async def one(doc: Doc) -> ModelResponse:
                async with allowed:
                    started = time.time()
                    response = self.answer(doc)
                    asked = json.dumps({"messages": response.input})
                    said = json.dumps({"choices": [{"message": {"content": response.text[0]}}]})
                call = {
                    "asked": asked,
                    "said": said,
                    "started": started,
                    "ended": time.time(),
                    "trace": response.input,
                }
                response.reasonings = [json.dumps(call)]
                return response

            return await asyncio.gather(*(one(doc) for doc in docs))

        def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
            raise NotImplementedError

        def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
            raise NotImplementedError

    def score(is_correct: float, expected: str, answer: str) -> str:
        return json.dumps({"is_correct": is_correct, "answer_gt": expected, "answer_pred": answer})

    def mean(values: list[str]) -> float:
        return statistics.fmean(json.loads(value)["is_correct"] for value in values)

    return pipeline(folder, out, Model, score, mean, with_row=True)


def native(folder: Path, out: Path) -> float:
    """Run the task with lighteval's client for servers of Hugging Face, with its cache of answers."""
    from lighteval.models.endpoints import inference_providers_model as module
    from lighteval.models.model_input import GenerationParameters

    def client() -> Any:
        config = module.InferenceProvidersModelConfig(
            model_name=os.environ["LOCAL_BASE_URL"],
            provider="hf-inference",
            generation_parameters=GenerationParameters(),
            cache_dir=str(out / "cache"),
        )
        # The client would download the tokenizer of the model. It only needs it for likelihoods.
        nothing = types.SimpleNamespace(from_pretrained=lambda _: None)
        with mock.patch.object(module, "AutoTokenizer", nothing):
            return module.InferenceProvidersClient(config)

    return pipeline(folder, out, client, lambda is_correct, *_: is_correct, statistics.fmean, with_row=False)


def pipeline(
    folder: Path,
    out: Path,
    model: Callable[[], Any],
    score: Callable[[float, str, str], Any],
    mean: Callable[[list[Any]], float],
    *,
    with_row: bool,
) -> float:
    """Run the task as an experienced lighteval user writes it: rows in memory, without built-in tasks and
    bootstrap.
    """
    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.metrics.metrics_sample import SampleLevelComputation
    from lighteval.metrics.utils.metric_utils import SampleLevelMetric
    from lighteval.models.model_output import ModelResponse
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
    from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
    from lighteval.tasks.registry import Registry
    from lighteval.tasks.requests import Doc, SamplingMethod

    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]

    class Equals(SampleLevelComputation):  # type: ignore[misc]  # lighteval has no types
        def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> Any:
            expected, answer = doc.choices[0], model_response.text[0]
            return score(1.0 if answer == expected else 0.0, expected, answer)

    def prompt(row: dict[str, Any], task: str | None = None) -> Doc:
        specific = {"row": json.dumps(rows[row["__index"]])} if with_row else None
        return Doc(query=row["question"], choices=[row["answer"]], gold_index=0, specific=specific)

    config = LightevalTaskConfig(
        name="cost",
        prompt_function=prompt,
        hf_repo="memory",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        few_shots_split="test",
        metrics=[SampleLevelMetric("is_correct", True, SamplingMethod.GENERATIVE, Equals(), mean)],
    )
    module = types.ModuleType("cost")
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]  # how lighteval finds tasks in a module
    only = staticmethod(lambda **_: {"cost": config})
    loaded = staticmethod(lambda task: {"test": [dict(row) for row in rows]})
    started = time.process_time()
    with (
        mock.patch.object(Registry, "load_all_task_configs", only),
        mock.patch.object(LightevalTask, "download_dataset_worker", loaded),
    ):
        made = Pipeline(
            tasks="cost|0",
            model=model(),
            evaluation_tracker=EvaluationTracker(output_dir=str(out), save_details=True),
            pipeline_parameters=PipelineParameters(
                launcher_type=ParallelismManager.NONE,
                custom_tasks_directory=module,
                bootstrap_iters=0,
                remove_reasoning_tags=False,
            ),
        )
    made.evaluate()
    made.save_and_push_results()
    return time.process_time() - started


def ours(folder: Path, out: Path, model: str | None = None) -> float:
    """Run `Engine.run`: the complete sample program in lighteval's pipeline."""
    from aigo_bridge.engine.protocol import Job, LogRef, RunSettings
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.plan.plan import PlanOrigin
    from aigo_lighteval.engine import LightevalEngine

    job = Job(
        plan(PlanOrigin(str(folder / "task.yaml"))), model=model or f"scripted/{folder / 'model.jsonl'}"
    )
    started = time.process_time()
    (log,) = LightevalEngine().run([job], RunSettings(out=out))
    spent = time.process_time() - started
    assert isinstance(log, LogRef), log
    return spent


VARIANTS: dict[str, Callable[[Path, Path], float]] = {
    "equal": equal,
    "ours": ours,
    "native, http": native,
    "ours, http": lambda folder, out: ours(folder, out, "openai-api/local/m"),
}

PEERS = {"ours": "equal", "ours, http": "native, http"}

KEY = "benchmark-7Qm2xVb9RtKc4WnJ8sHd3LfZ6gYp1A"
"""Key of the server. It is as long as a real one, because the search for secrets ignores short keys."""

FORKED = multiprocessing.get_context("fork")


def serve(address: Connection) -> None:
    """Answer requests until the process is ended."""
    sys.path.append(str(FOLDER.parent))
    from tests.support.endpoint import Endpoint, completion

    server = Endpoint()
    server.answer = lambda _: (200, completion("42"))
    server.start()
    address.send(server.url)
    threading.Event().wait()


def measure(variant: str, folder: Path) -> tuple[float, float]:
    """Return CPU seconds, and the peak memory of the process in MiB."""
    result, sending = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=child, args=(variant, folder, sending))
    process.start()
    sending.close()
    try:
        measured: tuple[float, float] = result.recv()
    except EOFError:
        sys.exit((folder / "messages").read_text()[-3000:])
    process.join()
    return measured


def child(variant: str, folder: Path, result: Connection) -> None:
    """Run a variant in this process and send its costs."""
    messages = os.open(folder / "messages", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(messages, 1)
    os.dup2(messages, 2)
    run = VARIANTS[variant]
    with tempfile.TemporaryDirectory(dir=folder) as out:
        run(folder.parent / "two", Path(out) / "two")
        spent = run(folder, Path(out) / "all")
    result.send((spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024))
    result.close()
    os._exit(0)  # without the work of libraries at the end of a process


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=5_000)
    parser.add_argument("--memory", type=int, default=20_000, help="samples of the second peak")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    address, sending = FORKED.Pipe(duplex=False)
    server = FORKED.Process(target=serve, args=(sending,), daemon=True)
    server.start()
    os.environ |= {"LOCAL_BASE_URL": address.recv(), "LOCAL_API_KEY": KEY, "HF_TOKEN": KEY}
    # A benchmark in this folder has the same name as a package that lighteval imports.
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != FOLDER]
    load()
    runs: dict[str, list[tuple[float, float]]] = {variant: [] for variant in VARIANTS}
    with tempfile.TemporaryDirectory() as place:
        two, few, most = (Path(place) / name for name in ("two", "few", "most"))
        for folder, rows in ((two, 2), (few, given.documents), (most, given.memory)):
            folder.mkdir()
            prepare(folder, rows)
        for _ in range(given.repeat):
            for variant, measured in runs.items():
                measured.append(measure(variant, few))
        peaks = {variant: measure(variant, most)[1] for variant in ("equal", "ours")}
    server.terminate()
    least = {variant: min(measured)[0] for variant, measured in runs.items()}
    for variant, seconds in least.items():
        all_seconds = ", ".join(f"{spent:.2f}" for spent, _ in runs[variant])
        print(f"{variant:14} {seconds / given.documents * 1e6:10.0f} µs/document   {all_seconds} s")
    for variant, peer in PEERS.items():
        record(f"{variant} compared with {peer}", least[variant] / least[peer])
        print(f"{variant:14} {least[variant] / least[peer]:10.3f} × {peer}")
    added = given.memory - given.documents
    of_sample = {}
    for variant, peak in peaks.items():
        smaller = min(mib for _, mib in runs[variant])
        of_sample[variant] = max(0.1, (peak - smaller) / added * 1024)  # a few samples need nothing
        print(
            f"{variant:14} {smaller:6,.0f} MiB at {given.documents:,}, {peak:6,.0f} MiB at {given.memory:,},"
            f" {of_sample[variant]:.1f} KiB a sample"
        )
    record("peak, ours compared with equal", peaks["ours"] / peaks["equal"])
    record("memory of a sample, ours compared with equal", of_sample["ours"] / of_sample["equal"])


def load() -> None:
    """Import what all variants use."""
    from aigo_lighteval.engine import LightevalEngine

    LightevalEngine()
    for name in (
        *("lighteval.models.endpoints.inference_providers_model", "lighteval.pipeline"),
        *("aigo_bridge.evaluation.task", "aigo_lighteval.running.run"),
    ):
        importlib.import_module(name)
    assert threading.active_count() == 1, "a process with threads cannot be copied"


if __name__ == "__main__":
    main()

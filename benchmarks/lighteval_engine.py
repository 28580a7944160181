"""Cost of a task on the lighteval engine, compared with the same task written by hand for lighteval; and
speed of converting rows to documents.

    python benchmarks/lighteval_engine.py [--documents 10000] [--rows 100000] [--memory 20000] [--repeat 3]

Each variant runs in a new process with the same rows and the same scripted answers. CPU seconds cover the
pipeline without imports and planning. `hand` is the minimum for lighteval: a model that answers in a loop and
keeps the answers. `equal` keeps the same data as aigo-bridge for evidence: each call in its own task with
limited concurrency, requests and answers with times, the row, and the score with the compared values. `http`
calls a local server: `hand` with a client of lighteval, and `ours` with aigo-bridge's client, as users run
them. The server is another process and is not measured. Compare ratios, because other users of the machine
change the seconds. Memory is the peak of the process; the memory of a sample is the difference between the
peaks of `--documents` and `--memory` samples. `--memory 100000` takes minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

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


def planned(folder: Path) -> Any:
    from aigo_bridge.evaluation.task import plan
    from aigo_bridge.plan.plan import PlanOrigin

    return plan(PlanOrigin(str(folder / "task.yaml")))


def by_hand(  # noqa: C901  # one task, as one writes it
    folder: Path, *, save: bool, equal: bool, called: bool = False
) -> float:
    """Run the task as an experienced lighteval user writes it: rows in memory, without built-in tasks and
    bootstrap.
    """
    import asyncio

    from lighteval.logging.evaluation_tracker import EvaluationTracker
    from lighteval.metrics.metrics_sample import SampleLevelComputation
    from lighteval.metrics.utils.metric_utils import SampleLevelMetric
    from lighteval.models.abstract_model import LightevalModel, ModelConfig
    from lighteval.models.model_output import ModelResponse
    from lighteval.pipeline import ParallelismManager, Pipeline, PipelineParameters
    from lighteval.tasks.lighteval_task import LightevalTask, LightevalTaskConfig
    from lighteval.tasks.prompt_manager import PromptManager
    from lighteval.tasks.registry import Registry
    from lighteval.tasks.requests import Doc, SamplingMethod

    from aigo_bridge.models.scripted import load_script

    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]

    class Equals(SampleLevelComputation):  # type: ignore[misc]  # lighteval has no types
        def compute(self, doc: Doc, model_response: ModelResponse, **_: Any) -> Any:
            score = 1.0 if model_response.text[0] == doc.choices[0] else 0.0
            if not equal:
                return score
            return json.dumps(
                {"is_correct": score, "answer_gt": doc.choices[0], "answer_pred": model_response.text[0]}
            )

    def mean(values: list[Any]) -> float:
        numbers = [json.loads(value)["is_correct"] for value in values] if equal else values
        return float(statistics.fmean(numbers))

    class NoCache:
        def _init_registry(self, registry: object) -> None:
            """Required by the pipeline."""

    class Model(LightevalModel):  # type: ignore[misc]  # lighteval has no types
        tokenizer, add_special_tokens, max_length = None, False, 4096

        def __init__(self) -> None:
            self.config, self._cache = ModelConfig(model_name="hand"), NoCache()
            self.script, self.prompts = load_script(folder / "model.jsonl"), PromptManager()

        def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
            if equal:
                return asyncio.run(self.together(docs))
            return [self.answer(doc) for doc in docs]

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

    def prompt(row: dict[str, Any], task: str | None = None) -> Doc:
        specific = {"row": json.dumps(rows[row["__index"]])}
        return Doc(query=row["question"], choices=[row["answer"]], gold_index=0, specific=specific)

    config = LightevalTaskConfig(
        name="hand",
        prompt_function=prompt,
        hf_repo="memory",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        few_shots_split="test",
        metrics=[SampleLevelMetric("is_correct", True, SamplingMethod.GENERATIVE, Equals(), mean)],
    )
    module = types.ModuleType("hand")
    module.TASKS_TABLE = [config]  # type: ignore[attr-defined]  # how lighteval finds tasks in a module
    ours = staticmethod(lambda **_: {"hand": config})
    loaded = staticmethod(lambda task: {"test": [dict(row) for row in rows]})
    started = time.process_time()
    with (
        mock.patch.object(Registry, "load_all_task_configs", ours),
        mock.patch.object(LightevalTask, "download_dataset_worker", loaded),
    ):
        pipeline = Pipeline(
            tasks="hand|0",
            model=lighteval_client(folder) if called else Model(),
            evaluation_tracker=EvaluationTracker(output_dir=str(folder / "hand"), save_details=True),
            pipeline_parameters=PipelineParameters(
                launcher_type=ParallelismManager.NONE,
                custom_tasks_directory=module,
                bootstrap_iters=0,
                remove_reasoning_tags=False,
            ),
        )
    pipeline.evaluate()
    if save:
        pipeline.save_and_push_results()
    return time.process_time() - started


ADDRESS = "LOCAL_BASE_URL"
"""Variable with the address of the server, for its clients in new processes."""


def lighteval_client(folder: Path) -> Any:
    """Return lighteval's client for servers of Hugging Face, with its cache of answers."""
    from lighteval.models.endpoints import inference_providers_model as module
    from lighteval.models.model_input import GenerationParameters

    os.environ["HF_TOKEN"] = "none"
    config = module.InferenceProvidersModelConfig(
        model_name=os.environ[ADDRESS],
        provider="hf-inference",
        generation_parameters=GenerationParameters(),
        cache_dir=str(folder / "cache"),
    )
    # The client would download the tokenizer of the model. It only needs it for likelihoods.
    with mock.patch.object(module, "AutoTokenizer", types.SimpleNamespace(from_pretrained=lambda _: None)):
        return module.InferenceProvidersClient(config)


def serve() -> None:
    """Answer requests until standard input ends."""
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tests.support.endpoint import Endpoint, completion

    server = Endpoint()
    server.answer = lambda _: (200, completion("42"))
    server.start()
    print(server.url, flush=True)
    sys.stdin.read()


def ours(folder: Path, *, save: bool, model: str | None = None) -> float:
    """Run `Engine.run`: the complete sample program in lighteval's pipeline."""
    from aigo_bridge.engine.protocol import Job, RunSettings
    from aigo_lighteval.engine import LightevalEngine

    engine = LightevalEngine()
    from aigo_lighteval.running import pipeline  # their import is not measured

    def save_nothing(tracker: Any) -> None:
        tracker.results_file = folder / "nothing"

    made = planned(folder)
    settings = RunSettings(out=folder / "ours")
    job = Job(made, model=model or f"scripted/{folder / 'model.jsonl'}")
    with mock.patch.object(pipeline.Tracker, "save", pipeline.Tracker.save if save else save_nothing):
        started = time.process_time()
        engine.run([job], settings)
        return time.process_time() - started


def translated(folder: Path) -> float:
    from aigo_lighteval.documents.translate import to_docs

    made = planned(folder)
    started = time.process_time()
    docs = to_docs(made)
    spent = time.process_time() - started
    assert len(docs) == len(made.samples)
    return spent


VARIANTS: dict[str, Callable[[Path], float]] = {
    "hand": lambda folder: by_hand(folder, save=False, equal=False),
    "equal": lambda folder: by_hand(folder, save=False, equal=True),
    "ours": lambda folder: ours(folder, save=False),
    "hand, saved": lambda folder: by_hand(folder, save=True, equal=False),
    "equal, saved": lambda folder: by_hand(folder, save=True, equal=True),
    "ours, saved": lambda folder: ours(folder, save=True),
    "hand, http": lambda folder: by_hand(folder, save=True, equal=False, called=True),
    "ours, http": lambda folder: ours(folder, save=True, model="openai-api/local/m"),
    "translation": translated,
}


SAVED = ("equal, saved", "ours, saved")
"""Variants whose memory counts: they keep and save the same."""


def measure(variant: str, folder: Path) -> tuple[float, float]:
    """Return CPU seconds, and the peak memory of the process in MiB."""
    done = subprocess.run(
        # `-P`: a benchmark in this folder has the same name as a package that lighteval imports.
        [sys.executable, "-P", __file__, "--child", variant, str(folder)],
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    seconds, mib = map(float, done.stdout.split()[-2:])
    return seconds, mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=10_000)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--memory", type=int, default=20_000, help="samples of the second peak")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--child", nargs=2)
    given = parser.parse_args()
    if given.child and given.child[0] == "serve":
        serve()
        return
    if given.child:
        spent = VARIANTS[given.child[0]](Path(given.child[1]))
        print(spent, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        return
    found: dict[str, list[tuple[float, float]]] = {variant: [] for variant in VARIANTS}
    command = [sys.executable, "-P", __file__, "--child", "serve", "."]
    with (
        tempfile.TemporaryDirectory() as place,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server,
    ):
        assert server.stdout is not None
        os.environ |= {ADDRESS: server.stdout.readline().strip(), "LOCAL_API_KEY": "none"}
        few, many, most = (Path(place) / name for name in ("few", "many", "most"))
        for folder, rows in ((few, given.documents), (many, given.rows), (most, given.memory)):
            folder.mkdir()
            prepare(folder, rows)
        for _ in range(given.repeat):
            for variant, runs in found.items():
                runs.append(measure(variant, many if variant == "translation" else few))
        peaks = {variant: measure(variant, most)[1] for variant in SAVED}
        server.communicate()
    from ratios import record  # not for the measured processes, which are started without this folder

    least = {variant: min(runs)[0] for variant, runs in found.items()}
    for variant in VARIANTS:
        if variant == "translation":
            print(f"{variant:14} {given.rows / least[variant]:10,.0f} rows/s")
            continue
        _, comma, kind = variant.partition(", ")
        floors = [name for name in ("hand", "equal") if name + comma + kind in least]
        ratios = {name: least[variant] / least[name + comma + kind] for name in floors}
        if variant.startswith("ours") and "equal" in ratios:
            record(f"{variant} compared with equal", ratios["equal"])
        shown = ", ".join(f"{ratio:.2f} × {name}" for name, ratio in ratios.items())
        print(f"{variant:14} {least[variant] / given.documents * 1e6:10.0f} µs/document   {shown}")
    added = given.memory - given.documents
    of_sample = {}
    for variant, peak in peaks.items():
        smaller = min(mib for _, mib in found[variant])
        of_sample[variant] = max(0.1, (peak - smaller) / added * 1024)  # a few samples need nothing
        print(
            f"{variant:14} {smaller:6,.0f} MiB at {given.documents:,}, {peak:6,.0f} MiB at {given.memory:,},"
            f" {of_sample[variant]:.1f} KiB a sample"
        )
    record("peak, ours compared with equal", peaks["ours, saved"] / peaks["equal, saved"])
    record(
        "memory of a sample, ours compared with equal", of_sample["ours, saved"] / of_sample["equal, saved"]
    )


if __name__ == "__main__":
    main()

"""Functions called by exported files: a packed task for lighteval's command line, and a model that runs whole
tasks.

With a lighteval backend, lighteval asks the questions and aigo-bridge's metric uses the answers as the
evaluated model's. The sample program does the rest: post-processor, scorers, judges, rules and metrics. This
works only for tasks whose requests fit into lighteval documents. Other tasks need the exported model, which
calls models like a run of aigo-bridge does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import SampleLevelMetric
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.codes import Code
from aigo_bridge.errors import UnsupportedPlanError, UsageError
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.exporting.manifest import read_manifest
from aigo_bridge.exporting.packing import packed_plan
from aigo_bridge.results.specification import slug
from aigo_bridge.scoring.likelihoods import by_likelihood
from aigo_lighteval.documents.translate import (
    CARRIER,
    asked,
    golds_of,
    has_several,
    sampling_methods,
    task_name,
)
from aigo_lighteval.documents.turns import (
    EXAMPLES,
    ROWS,
    SPLIT,
    asker,
    mark,
    opening,
    shared_question,
    storable,
    version,
)
from aigo_lighteval.exporting.hosted_runs import (
    GivenAnswer,
    HostedRun,
    asking_model,
    hides_failures,
    metrics_of_run,
    model_problems,
    named_models,
    prompt_problem,
    weighed_tokens,
    working,
)
from aigo_lighteval.exporting.native import exported_fields
from aigo_lighteval.running.pipeline import UncachedModel


def exported_tasks(folder: Path, config: Mapping[str, Any]) -> list[LightevalTaskConfig]:
    """Return the tasks of a folder written by `aigo-bridge export`, for a module's `TASKS_TABLE`.

    Args:
        folder: folder of the task, next to its module.
        config: values of the task's parameters, by key.

    Raises:
        BridgeError: a value is not valid for its parameter, or the files differ from the exported ones.
    """
    task = ExportedTask(folder, config)
    _TASKS[task.config.name] = task
    return [task.config]


_TASKS: dict[str, ExportedTask] = {}
"""Loaded tasks by lighteval name. lighteval loads the task files before it loads a model."""


class ExportedTask:
    """Packed task with its documents and scores."""

    def __init__(self, folder: Path, config: Mapping[str, Any]):
        plan = packed_plan(folder, config)
        # Report missing models before any model is called.
        named_models(plan)
        self.plan = plan
        self.shared, self.problems = shared_question(plan)
        self._mark = mark(read_manifest(folder))
        self._check_examples(folder)
        methods = sampling_methods(plan)
        compared = by_likelihood(plan.benchmark.scorers)
        if any(scorer.normalisation == "tokens" for scorer in compared):
            self.problems.append(
                "it divides likelihoods by token counts, and backends do not return all of them"
            )
        if len(methods) > 1:
            self.problems.append(
                "it needs answers and likelihoods, and lighteval passes only one of them to a metric"
            )
        self.config = LightevalTaskConfig(
            name=task_name(plan),
            prompt_function=self._prompt(),
            hf_repo=str(folder / ROWS),
            hf_subset="default",
            hf_avail_splits=[SPLIT, EXAMPLES],
            evaluation_splits=[SPLIT],
            few_shots_split=EXAMPLES,
            few_shots_select="sequential",
            metrics=[self._metric(methods[0])],
            generation_size=self.shared.size,
            stop_sequence=list(self.shared.stop),
            version=version(plan.digest),
        )

    # Documents

    def _check_examples(self, folder: Path) -> None:
        file = folder / ROWS / f"{EXAMPLES}.jsonl"
        exported = len(file.read_text(encoding="utf-8").splitlines()) if file.exists() else 0
        if not self.problems and exported != len(self.shared.examples):
            self.problems.append(
                f"it has {len(self.shared.examples)} examples with these parameters, but {exported} were"
                " exported"
            )

    def _prompt(self) -> Callable[[dict[str, Any], str], Doc]:
        plan = self.plan
        ask, golds = asker(plan) or opening(plan), golds_of(plan)
        as_lists = has_several(plan, golds)

        def prompt(row: dict[str, Any], task: str | None = None) -> Doc:
            if row["export"] != self._mark:
                raise UsageError(
                    f"the rows belong to another export of task {plan.task.key!r}, from the cache of "
                    "the datasets library; remove them from HF_DATASETS_CACHE",
                    code=Code.OTHER_EXPORT,
                )
            if row["__few_shots"]:
                query, answer = self.shared.examples[row["sample"]]
                return Doc(storable(query.text), [storable(answer.text)], 0)
            sample = plan.samples[row["sample"]]
            question = asked(ask, sample)
            return Doc(**exported_fields(sample, question, golds, as_lists=as_lists))

        return prompt

    # Scores

    def _metric(self, method: SamplingMethod) -> SampleLevelMetric:
        scores = _Scores(self)

        def aigo(values: list[str]) -> dict[str, float]:
            return scores.metrics

        return SampleLevelMetric(
            metric_name=CARRIER,
            higher_is_better=True,
            category=method,
            sample_level_fn=scores,
            corpus_level_fn=aigo,
            batched_compute=True,
        )

    def refuse_inexact(self, docs: Sequence[Doc], model: Any) -> None:
        """Refuse answers of lighteval's own models if the request differed from the task's.

        Raises:
            UnsupportedPlanError: a request differed. The message lists the reasons.
        """
        problems = [*self.problems, *model_problems(model, self.shared)]
        wanted = len(self.shared.examples)
        if any(len(doc.fewshot_samples) != wanted for doc in docs):
            problems.append(
                f"the task has {wanted} examples: name it {self.config.name}|{wanted} on the command line"
            )
        if problems:
            head = (
                f"task {self.plan.task.key!r} cannot be run with this lighteval model; run it with"
                " `lighteval custom` and the"
                " model.py in its folder, or change the following:"
            )
            raise UnsupportedPlanError(
                "\n".join([head, *(f"  - {problem}" for problem in problems)]), code=Code.ENGINE_GAP
            )


class _Scores(SamplingMetric, SampleLevelComputation):  # type: ignore[misc]  # lighteval is untyped
    """Metric that scores all documents of a task together. Each document's value is a text with all scorer
    results.
    """

    def __init__(self, task: ExportedTask):
        self.task = task
        self.metrics: dict[str, float] = {}
        """Metrics of the task, available after scoring."""

    def num_samples(self) -> int:
        """Return the number of answers per document: one for each trial."""
        return self.task.plan.num_trials

    def __deepcopy__(self, memo: object) -> _Scores:
        # lighteval copies the metrics of every task, but a run has one shared state.
        return self

    def __str__(self) -> str:
        # This text is written to the results file. The default form contains a memory address.
        return "aigo"

    def compute(self, responses: list[ModelResponse], docs: list[Doc], **_: Any) -> list[str]:
        """Return one text per document, in document order."""
        plan = self.task.plan
        numbers = sorted(int(doc.id) for doc in docs)
        answered = {int(doc.id): response for doc, response in zip(docs, responses, strict=True)}
        given = None
        if not all(hasattr(response, CARRIER) for response in responses):
            model = asking_model()
            self.task.refuse_inexact(docs, model)
            given = {
                str(plan.samples[int(doc.id)].id): _given(doc, response, model, plan.num_trials)
                for doc, response in zip(docs, responses, strict=True)
            }
        with working(plan, numbers, given=given) as run:
            if given is None:
                for place, number in enumerate(numbers):
                    for trial, solved in enumerate(json.loads(answered[number].aigo)):
                        run.solved.add((place, trial), solved)
                run.score_all()
            else:
                run.run_all()
            if run.interrupted:
                raise KeyboardInterrupt
            self.metrics = metrics_of_run(run)
            of_one = run.metric_value if given is None else partial(_with_failures, run)
            values = {number: of_one(place) for place, number in enumerate(numbers)}
        return [values[int(doc.id)] for doc in docs]


def _with_failures(run: HostedRun, place: int) -> str:
    """Return the scores of one document, or the failure if its solver failed. Backend responses cannot store
    failures.
    """
    value = run.metric_value(place)
    solved = [run.solution((place, trial)) for trial in range(run.plan.num_trials)]
    if not any(isinstance(solution, SampleFailure) for solution in solved):
        return value
    values = [
        {"failure": solution.to_json()} if isinstance(solution, SampleFailure) else scored
        for solution, scored in zip(solved, json.loads(value), strict=True)
    ]
    return json.dumps(values)


def _given(doc: Doc, response: ModelResponse, model: Any, num_trials: int) -> list[GivenAnswer]:
    problem = prompt_problem(model, doc, response)
    if problem is None and hides_failures(model) and not all(response.text):
        problem = "the backend returned an empty answer, as it also does for a call that failed"
    tokens = weighed_tokens(model, doc) if response.logprobs else []
    return [GivenAnswer(response, trial, doc, problem, tokens) for trial in range(num_trials)]


class ExportedModel(UncachedModel):
    """Model that runs the solvers of exported tasks, including conversations and task code.

    `lighteval custom NAME model.py` creates it. `NAME` is a model name as for `aigo-bridge run --engine
    lighteval --model`. Tasks that call no model accept any name.
    """

    def __init__(self, config: ModelConfig):
        self._model = str(config.model_name)
        # lighteval names the results folder after the model.
        super().__init__(ModelConfig(model_name=slug(self._model)))

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, in document order."""
        numbers: dict[str, list[int]] = {}
        for doc in docs:
            numbers.setdefault(doc.task_name.partition("|")[0], []).append(int(doc.id))
        responses: dict[tuple[str, int], Any] = {}
        for name, unordered in numbers.items():
            if name not in _TASKS:
                raise UsageError(
                    f"task {name!r} was not exported by aigo-bridge; this model only runs exported tasks",
                    code=Code.OTHER_EXPORT,
                )
            chosen = sorted(unordered)
            with working(_TASKS[name].plan, chosen, self._model) as run:
                run.solve_all()
                if run.interrupted:
                    raise KeyboardInterrupt
                for place, number in enumerate(chosen):
                    responses[name, number] = run.response(place)
        return [responses[doc.task_name.partition("|")[0], int(doc.id)] for doc in docs]

    loglikelihood = greedy_until

"""Runs of the sample program inside lighteval's command line, with aigo-bridge's models or a backend's
answers.
"""

from __future__ import annotations

import inspect
import logging
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import anyio
import orjson
from anyio.from_thread import start_blocking_portal
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.codes import Code
from aigo_bridge.errors import SampleError, Stage, UsageError
from aigo_bridge.execution.permissions import snippet_host
from aigo_bridge.execution.program import SampleProgram, compile_program, contained
from aigo_bridge.execution.progress import ProgressCounter
from aigo_bridge.execution.solutions import SampleFailure, Solution
from aigo_bridge.models.connections import Choice, Exchange, Reply
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.results.assembling import RunningTotals, count_samples, metrics_for
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_bridge.text.plurals import plural
from aigo_lighteval.documents.turns import SharedFields
from aigo_lighteval.exporting.export import MODELS
from aigo_lighteval.models.backends import BACKENDS
from aigo_lighteval.models.callers import SAMPLE_ROW, make_caller
from aigo_lighteval.models.messages import ModelAnswer
from aigo_lighteval.models.models import HostedModel, TaskModels, limiter, load_caller
from aigo_lighteval.running.hosted import PlanRun, likelihood_solver
from aigo_lighteval.running.run import records_of

NUM_ERRORS = "num_errors"
"""Metric name for the number of failed samples. lighteval cannot store it in any other place."""

logger = logging.getLogger(__name__)


@dataclass
class HostedRun(PlanRun):
    """Run whose evaluated model may already have answered."""

    given: Mapping[str, Sequence[GivenAnswer]] | None = None
    """Answers by sample id and trial; `None` if the model must still be called."""

    async def _solution(self, program: SampleProgram, sample: Sample, trial: int) -> Solution | SampleFailure:
        if self.given is None:
            return await super()._solution(program, sample, trial)
        SAMPLE_ROW.set(sample.data)
        model = HostedModel("", self.given[str(sample.id)][trial], anyio.CapacityLimiter(1))
        if self.likelihoods is not None:
            return await contained(self.likelihoods.solve(program, sample, model, self.models), "solver")
        return await program.solve(sample, model, self.models)


@contextmanager
def working(
    plan: TaskPlan,
    numbers: Sequence[int],
    evaluated: str | None = None,
    given: Mapping[str, Sequence[GivenAnswer]] | None = None,
) -> Iterator[HostedRun]:
    """Run the samples that lighteval has chosen, in the plan's order.

    Args:
        plan: plan of the whole task.
        numbers: positions of the samples in the plan.
        evaluated: name of the evaluated model; `None` if it is not called or has already answered.
        given: answers by sample id and trial.
    """
    part = replace(plan, samples=tuple(plan.samples[number] for number in numbers))
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        callers = {key: make_caller(name) for key, name in named_models(part).items()}
        model = None if evaluated is None or not plan.calls_model else make_caller(evaluated)
        for caller in [*callers.values(), *([] if model is None else [model])]:
            load_caller(caller)
            stack.callback(portal.call, caller.aclose)
        host = snippet_host(part)
        stack.callback(host.close)
        limited = {key: (caller, limiter(caller)) for key, caller in callers.items()}
        yield HostedRun(
            plan=part,
            program=compile_program(part, host),
            host=host,
            model=None if model is None else HostedModel("", model, limiter(model)),
            models=TaskModels(limited, "score"),
            portal=portal,
            progress=ProgressCounter(None, len(numbers) * plan.num_trials),
            likelihoods=likelihood_solver(part),
            given=given,
        )


def named_models(plan: TaskPlan) -> dict[str, str]:
    """Return the other models of a task from the environment.

    Raises:
        UsageError: models are missing. The message lists all of them.
    """
    pairs = [pair.partition("=") for pair in os.environ.get(MODELS, "").split(",") if pair.strip()]
    named = {key.strip(): name.strip() for key, _, name in pairs}
    missing = [key for key in plan.model_keys if not named.get(key)]
    if missing:
        raise UsageError(
            f"task {plan.task.key!r} calls {', '.join(map(repr, missing))}: set"
            f" {MODELS}='{missing[0]}=PROVIDER/MODEL' (separate several with commas)"
            " between them",
            code=Code.NO_MODEL,
        )
    return {key: named[key] for key in plan.model_keys}


def metrics_of_run(run: HostedRun) -> dict[str, float]:
    """Return the plan's metrics as `<scorer>.<name>`, and the number of failed samples."""
    plan = run.plan
    records = list(records_of(run))
    tally = RunningTotals(plan)
    count_samples(records, tally)
    metrics = {
        f"{row.scorer_key}.{row.name}": float(row.value)
        for row in metrics_for(tally, run.host).rows
        if row.value is not None and math.isfinite(float(row.value))
    }
    for error in [error for record in records for error in record.errors][:5]:
        logger.warning("a sample of %s failed: %s", plan.task.key, error.message)
    return {**metrics, NUM_ERRORS: float(tally.failures.num_errors)}


# Answers of a backend


class GivenAnswer:
    """Model that returns an existing answer to one question in one trial."""

    name = "lighteval"
    max_concurrent = 1
    settings: Mapping[str, Any] = MappingProxyType({})

    def __init__(
        self,
        response: ModelResponse,
        trial: int,
        doc: Doc,
        problem: str | None = None,
        tokens: Sequence[int] = (),
    ):
        self._response = response
        self._tokens = tokens
        """Token counts of the document's choices if likelihoods were requested."""
        self._problem = problem
        """Difference between the request and the task; `None` if they agree."""
        self._trial = trial
        self._doc = doc

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Return the answer, truncated at a stop sequence because some backends generate past it."""
        self._check_prompt(stage)
        texts = self._response.text
        if self._trial >= len(texts):
            raise SampleError(
                f"the backend returned {plural(len(texts), 'answer')}, expected one for each trial",
                stage=stage,
                kind="MissingAnswer",
            )
        text = str(texts[self._trial])
        for stop in self._doc.stop_sequences or ():
            text = text.split(stop, 1)[0]
        reasonings = self._response.reasonings
        reasoning = reasonings[self._trial] if self._trial < len(reasonings) else None
        answer = ModelAnswer(Reply(choices=(Choice(text=text, reasoning=reasoning, finish_reason=None),)))
        return answer, self._exchange({"text": text})

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """Return the likelihoods of the document's choices."""
        self._check_prompt(stage)
        response = self._response
        if list(continuations) != self._doc.choices or len(response.logprobs) != len(continuations):
            raise SampleError(
                "the backend returned likelihoods of other texts", stage=stage, kind="MissingLikelihoods"
            )
        tokens, greedy = self._tokens, response.argmax_logits_eq_gold
        if not len(tokens) == len(greedy) == len(continuations) or not all(tokens):
            raise SampleError(
                "the backend does not return the tokens that it compared",
                stage=stage,
                kind="MissingLikelihoods",
            )
        weights = tuple(
            Likelihood(text, float(value), number, bool(best))
            for text, value, number, best in zip(
                continuations, response.logprobs, tokens, greedy, strict=True
            )
        )
        return weights, self._exchange({"logprobs": [weight.log_likelihood for weight in weights]})

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""

    def _check_prompt(self, stage: Stage) -> None:
        if self._problem is not None:
            raise SampleError(self._problem, stage=stage, kind="UntrustedAnswer")

    def _exchange(self, reply: object) -> Exchange:
        question = {"query": self._doc.query, "choices": self._doc.choices}
        return Exchange(orjson.dumps(question).decode(), orjson.dumps(reply).decode())


# Checks of the lighteval model that has answered. lighteval does not pass the model to metrics. It also
# truncates the beginning of long prompts silently.


def asking_model() -> Any:
    """Return the model of the calling pipeline; `None` outside of a pipeline."""
    from lighteval.pipeline import Pipeline

    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if isinstance(caller, Pipeline):
            return caller.model
        frame = frame.f_back
    return None


def model_problems(model: Any, shared: SharedFields) -> Iterator[str]:
    """Yield the differences between a model's configuration and the task's settings."""
    if not hasattr(getattr(model, "config", None), "generation_parameters"):
        return
    config = model.config
    if (config.system_prompt or None) != shared.system:
        wanted = "no system_prompt" if shared.system is None else f"system_prompt {shared.system!r}"
        yield f"the model has the system_prompt {config.system_prompt!r}, but the task needs {wanted}"
    parameters = config.generation_parameters
    for name, value in shared.settings.items():
        if getattr(parameters, name, None) != value:
            yield f"the model has {name} {getattr(parameters, name, None)}, but the task needs {value}"
    if shared.size is not None and parameters.max_new_tokens not in (None, shared.size):
        yield (f"the model has max_new_tokens {parameters.max_new_tokens}, but the task needs {shared.size}")


def prompt_problem(model: Any, doc: Doc, response: ModelResponse) -> str | None:
    """Return why a prompt was truncated; `None` if it was complete or a server checks its length."""
    tokenizer, limit = _tokenizer(model), getattr(model, "max_length", None)
    if tokenizer is None or limit is None:
        return None
    prompt = model.prompt_manager.prepare_prompt(doc)
    length = len(tokenizer(prompt, add_special_tokens=bool(model.add_special_tokens))["input_ids"])
    if SamplingMethod.LOGPROBS in doc.sampling_methods:
        longest = max(weighed_tokens(model, doc) or [0])
        return _too_long(length + longest, limit) if length + longest > limit else None
    num_asked = len(response.input_tokens) - int(response.padded_tokens_count)
    return _too_long(length, limit) if response.input_tokens and num_asked < length else None


def hides_failures(model: Any) -> bool:
    """Return whether an empty answer of this model can be a failed call."""
    name = type(model).__name__
    return any(backend.hides_failures and backend.model == name for backend in BACKENDS.values())


def weighed_tokens(model: Any, doc: Doc) -> list[int]:
    """Return the token counts of a document's choices; empty if unknown. The counts in responses include
    padding or are missing.
    """
    tokenizer = _tokenizer(model)
    if tokenizer is None:
        return []
    return [len(tokenizer(choice, add_special_tokens=False)["input_ids"]) for choice in doc.choices]


def _tokenizer(model: Any) -> Any:
    # The model itself and its own tokenizer are already released.
    tokenizer = getattr(getattr(model, "prompt_manager", None), "tokenizer", None)
    return tokenizer if callable(tokenizer) else None


def _too_long(length: int, limit: int) -> str:
    return (
        f"the backend cut the beginning of the prompt: {plural(length, 'token')} with the"
        " compared text; the model"
        f" takes {limit}, less the answer"
    )

"""Models for lighteval's tasks: aigo-bridge models called like lighteval's API backends, and guarded local
backends.

lighteval cannot store failures: an exception ends the run, and an empty answer looks like a real one. Here, a
document without an answer is recorded with the reason and excluded from all metrics.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from lighteval.models.abstract_model import ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import ChatCompletionInput, Message, ReasoningTextContent
from aigo_bridge.dtypes import ModelResponse as Answered
from aigo_bridge.errors import SampleError, UsageError
from aigo_bridge.execution.checkpoint import asking
from aigo_bridge.execution.program import contained
from aigo_bridge.execution.progress import ProgressCounter
from aigo_bridge.execution.solutions import SampleFailure
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.solving.conversation import last_text
from aigo_bridge.text.plurals import plural
from aigo_lighteval.benchmarks.requests import (
    common_options,
    generation_parameters,
    options_of,
    request_options,
)
from aigo_lighteval.models.backends import BACKENDS, PREFIX, ModelQuery
from aigo_lighteval.models.batches import (
    BackendCaller,
    contained_answers,
    continuation_problem,
    length_problem,
    prompt_tokens,
)
from aigo_lighteval.models.callers import ConnectionCaller
from aigo_lighteval.models.loading import LoadedModel, quiet_logs
from aigo_lighteval.models.messages import Caller
from aigo_lighteval.models.models import ATTEMPT_SECONDS, RETRIES, CallLog, HostedModel
from aigo_lighteval.running.hosted import within
from aigo_lighteval.running.pipeline import UncachedModel

Json = dict[str, Any]


@dataclass
class DocumentNotes:
    """Information by document id that lighteval cannot store."""

    failures: dict[str, SampleFailure] = field(default_factory=dict)
    """Reasons why documents lack an answer or metrics."""
    unscored: dict[str, set[str]] = field(default_factory=dict)
    """Documents without a value by metric, although nothing failed."""
    records: dict[str, Json] = field(default_factory=dict)
    """Model calls by document: tokens, times and raw exchanges (see `CallLog`)."""
    progress: ProgressCounter = field(default_factory=lambda: ProgressCounter(None, 0))
    """Counter of finished documents, with the limit of failures."""
    stopped: str | None = None
    """Reason for an early stop because of too many failures; `None` if all documents were sent to the
    model."""

    def failed(self, doc: Doc, failure: SampleFailure) -> None:
        """Record a document's failure. The first reason is kept."""
        self.failures.setdefault(doc.id, failure)


@dataclass(frozen=True)
class Limits:
    """Limits for one document; `None`: no limit."""

    seconds: int | None = None
    tokens: int | None = None
    in_flight: int = 20
    """Number of documents in progress at the same time."""
    attempt_timeout: int | None = None
    """Maximum seconds of one attempt."""


class CalledModel(UncachedModel):
    """aigo-bridge model that gets the same messages as lighteval's API backends.

    Args:
        caller: the model.
        limiter: limiter of concurrent calls.
        portal: event loop of the run.
        limits: limits for each document.
        told: notes for failures and calls.
    """

    def __init__(
        self,
        caller: Caller,
        limiter: anyio.CapacityLimiter,
        portal: BlockingPortal,
        limits: Limits,
        told: DocumentNotes,
    ):
        generation = generation_parameters(caller)
        super().__init__(ModelConfig(model_name=caller.name, generation_parameters=generation))
        self._model = HostedModel("", caller, limiter)
        self._portal = portal
        self._limits = limits
        self._told = told
        self._prompts = PromptManager(use_chat_template=True, tokenizer=None, system_prompt=None)
        self._caller = caller

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one response per document, in document order. The response of a failed document is empty."""
        responses: list[ModelResponse] = [ModelResponse(text=[]) for _ in docs]

        async def all_of_them() -> None:
            remaining = iter(enumerate(docs))
            tolerance = self._told.progress.tolerance
            RETRIES.set(self._told.progress.retrying)
            ATTEMPT_SECONDS.set(self._limits.attempt_timeout)

            async def worker() -> None:
                for number, doc in remaining:
                    if tolerance.is_spent:
                        self._told.stopped = tolerance.reason
                        self._told.failed(
                            doc, SampleFailure("solver", "NotAsked", f"not called: {tolerance.reason}")
                        )
                        continue
                    responses[number] = await self._response(doc)
                    self._told.progress.finished(doc.id, 0, self._told.failures.get(doc.id))

            async with anyio.create_task_group() as group:
                for _ in range(self._limits.in_flight):
                    group.start_soon(worker)

        self._portal.call(all_of_them)
        return responses

    async def _response(self, doc: Doc) -> ModelResponse:
        asker = self._told.progress.asker(doc.id, 0, "solver")
        with CallLog("lighteval", "solver", self._limits.tokens) as record, asking(asker):
            work = contained(self._answers(doc), "solver")
            response: Any = await within(self._limits.seconds, "solver", work)
        self._told.records[doc.id] = record.to_json()
        if isinstance(response, SampleFailure):
            self._told.failed(doc, response)
            return ModelResponse(text=[])
        return response

    async def _answers(self, doc: Doc) -> ModelResponse:
        messages = self._prompts.prepare_prompt_api(doc)
        options = request_options(doc, self._caller)
        request = ModelRequest(ChatCompletionInput.model_validate({"messages": messages}), options)
        answers = [await self._model.predict(request) for _ in range(doc.num_samples)]
        texts = [last_text(answer.items) for answer in answers]
        if any(text is None for text in texts):
            raise SampleError("the answer does not contain text", stage="solver", kind="ModelError")
        return ModelResponse(
            input=messages, text=texts, reasonings=[_reasoning(answer) for answer in answers]
        )


def _reasoning(answer: Answered) -> str | None:
    texts = [
        part.text
        for item in answer.items
        if isinstance(item, Message)
        for part in item.content
        if isinstance(part, ReasoningTextContent)
    ]
    return "\n".join(texts) or None


class BackendModel(UncachedModel):
    """lighteval backend model with its own prompts and answers. Prompts that it would truncate are refused.

    Args:
        loaded: the model.
        told: notes for failures.
    """

    def __init__(self, loaded: LoadedModel, told: DocumentNotes):
        super().__init__(loaded.config)
        self._loaded = loaded
        self._told = told
        self._done: set[str] = set()

    @property
    def tokenizer(self) -> Any:
        return self._loaded.model.tokenizer

    @property
    def add_special_tokens(self) -> bool:
        return bool(self._loaded.model.add_special_tokens)

    @property
    def max_length(self) -> int:
        return int(self._loaded.model.max_length)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return one answer per document, in document order."""
        return self._responses(docs, self._loaded.model.greedy_until, self._prompt_problem)

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Return the log-likelihoods of each document's choices."""

        def problem(doc: Doc) -> str | None:
            return continuation_problem(self._loaded, ModelQuery(doc, None, ()))

        return self._responses(docs, self._loaded.model.loglikelihood, problem)

    def _prompt_problem(self, doc: Doc) -> str | None:
        if not self._loaded.backend.loads_weights:
            return None
        length = len(prompt_tokens(self._loaded, ModelQuery(doc, None, ())))
        return length_problem(self._loaded, length, doc.generation_size)

    def _responses(
        self,
        docs: list[Doc],
        call: Callable[[list[Doc]], list[ModelResponse]],
        problem: Callable[[Doc], str | None],
    ) -> list[ModelResponse]:
        fitting: list[Doc] = []
        for doc in docs:
            reason = problem(doc)
            if reason is None:
                fitting.append(doc)
            else:
                self._told.failed(doc, SampleFailure("solver", "BackendError", reason))

        def ask(loaded: LoadedModel, questions: Sequence[ModelQuery]) -> list[ModelResponse]:
            batch = [question.doc for question in questions]
            return [response for _, response in zip(batch, call(batch) if batch else [], strict=True)]

        with quiet_logs():
            results = contained_answers(self._loaded, [ModelQuery(doc, None, ()) for doc in fitting], ask)
        responses: dict[int, ModelResponse] = {}
        for doc, result in zip(fitting, results, strict=True):
            if isinstance(result, Exception):
                message = str(result).strip() or type(result).__name__
                self._told.failed(doc, SampleFailure("solver", type(result).__name__, message))
                continue
            responses[id(doc)] = result
            silent = not any(result.text) and not result.logprobs
            if silent and self._loaded.backend.hides_failures:
                reason = "the backend returned an empty text, which can also mean a failed call"
                self._told.failed(doc, SampleFailure("solver", "BackendError", reason))
        for doc in docs:
            # A document can request an answer and likelihoods.
            if doc.id not in self._done:
                self._done.add(doc.id)
                self._told.progress.finished(doc.id, 0, self._told.failures.get(doc.id))
        return [responses.get(id(doc)) or ModelResponse(text=[]) for doc in docs]


def refuse_methods(task: str, methods: Sequence[SamplingMethod], caller: Caller) -> None:
    """Check that a model can return the values that a task measures.

    Raises:
        UsageError: it cannot. The message lists models that can.
    """
    measured = set(methods)
    if SamplingMethod.PERPLEXITY in measured:
        # The transformers class reads a token's likelihood from the following position, and fails for
        # documents without choices.
        raise UsageError(
            f"task {task!r} uses perplexities, which no backend of lighteval 0.13 computes "
            "correctly: 'transformers' fails or uses wrong positions, and the others return "
            "none",
            code=Code.UNFIT_BENCHMARK,
        )
    backend = caller.asked.backend if isinstance(caller, BackendCaller) else None
    if SamplingMethod.LOGPROBS not in measured or (backend is not None and backend.tells_likelihoods):
        return
    able = [candidate for candidate in BACKENDS.values() if candidate.tells_likelihoods]
    models = ", ".join(
        f"{PREFIX if candidate.has_server_name else ''}{candidate.name}/…" for candidate in able
    )
    raise UsageError(
        f"task {task!r} is measured by log-likelihoods of given texts, which {caller.name!r} does not"
        f" return; models that do: {models}",
        code=Code.UNFIT_BENCHMARK,
    )


def refuse_documents(task: str, docs: Sequence[Doc], caller: Caller) -> None:
    """Check that the answer settings of documents reach the model.

    Raises:
        UsageError: a setting would be dropped silently.
    """
    generative = [doc for doc in docs if SamplingMethod.GENERATIVE in doc.sampling_methods]
    if any(doc.generation_grammar is not None for doc in generative):
        raise UsageError(
            f"task {task!r} sets a grammar for answers, which {caller.name!r} does not support",
            code=Code.UNFIT_BENCHMARK,
        )
    names = dict.fromkeys(itertools.chain.from_iterable(options_of(doc) for doc in generative))
    if isinstance(caller, ConnectionCaller) and names and not caller.connection.takes_options:
        raise UsageError(
            f"task {task!r} limits answers ({', '.join(names)}), which the adapter"
            f" {caller.connection.adapter.key!r} of"
            f" {caller.name!r} does not pass on (let 'process_input' write the options in `kwargs`)",
            code=Code.UNFIT_BENCHMARK,
        )
    most = max((doc.num_samples for doc in generative), default=1)
    if isinstance(caller, ConnectionCaller) and most > 1 and common_options(caller).get("temperature") == 0:
        raise UsageError(
            f"task {task!r} needs {plural(most, 'answer')} to each question, which are identical at"
            " temperature"
            " 0, so"
            f" lighteval rejects it: add a temperature to the model, {caller.name},temperature=0.7",
            code=Code.UNFIT_BENCHMARK,
        )
    if isinstance(caller, BackendCaller) and not caller.asked.backend.takes_length and "max_tokens" in names:
        raise UsageError(
            f"task {task!r} limits the length of answers, which is not passed to models of"
            f" {caller.asked.backend.name!r} unchanged"
            " (run it on a server: openai-api/<service>/<model>)",
            code=Code.UNFIT_BENCHMARK,
        )

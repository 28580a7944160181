"""Models in front of lighteval's own tasks: any model of ours as lighteval's API backends ask one, and lighteval's local backends, guarded.

lighteval has no place for a failure: an exception ends the run, and an empty answer looks like one. Here a document that got no answer is
kept apart, with the reason, and counts in no metric.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal
from lighteval.models.abstract_model import LightevalModel, ModelConfig
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager
from lighteval.tasks.requests import Doc, SamplingMethod

from aigo_bridge.counting import ProgressCounter
from aigo_bridge.dtypes import ChatCompletionInput, Message, ReasoningTextContent
from aigo_bridge.dtypes import ModelResponse as Answered
from aigo_bridge.errors import SampleError, UsageError
from aigo_bridge.models import ModelRequest
from aigo_bridge.program import Failure, contained
from aigo_bridge.solving.conversation import last_text
from aigo_lighteval.asking import BackendCaller
from aigo_lighteval.backend_calls import continuation_problem, length_problem, prompt_tokens
from aigo_lighteval.backends import BACKENDS, PREFIX
from aigo_lighteval.calling import Caller, ConnectionCaller
from aigo_lighteval.documents import Question
from aigo_lighteval.loading import Loaded, quiet_logs
from aigo_lighteval.models import RETRIES, HostedModel
from aigo_lighteval.recording import Recording

Json = dict[str, Any]


@dataclass
class Told:
    """What lighteval has no place for, by the ids of documents."""

    failures: dict[str, Failure] = field(default_factory=dict)
    """Why a document has no answer, or no metrics."""
    records: dict[str, Json] = field(default_factory=dict)
    """Calls of a document: tokens, times and raw exchanges (see `recording`)."""
    progress: ProgressCounter = field(default_factory=lambda: ProgressCounter(None, 0))
    """Told of documents that are done; knows how many may fail."""
    stopped: str | None = None
    """Why documents were not asked: more had failed than are tolerated; `None`: all were."""

    def failed(self, doc: Doc, failure: Failure) -> None:
        """A document failed; the first reason is kept."""
        self.failures.setdefault(doc.id, failure)


class _NoCache:
    """In place of lighteval's response cache, which gives old answers when only rows or prompts have changed."""

    def _init_registry(self, registry: object) -> None:
        """Asked for by the pipeline."""


@dataclass(frozen=True)
class Limits:
    """What one document may use; `None`: any amount."""

    seconds: int | None = None
    tokens: int | None = None
    in_flight: int = 20
    """Documents that are worked on at a time."""


class CalledModel(LightevalModel):  # type: ignore[misc]  # lighteval has no types
    """A model of ours, given the messages that lighteval's API backends give theirs.

    Args:
        caller: the model.
        limiter: how many calls may be made at a time.
        portal: the event loop of the run.
        limits: of each document.
        told: where failures and calls go.
    """

    tokenizer = None
    add_special_tokens = False
    max_length = 2**31
    disable_tqdm = True

    def __init__(
        self,
        caller: Caller,
        limiter: anyio.CapacityLimiter,
        portal: BlockingPortal,
        limits: Limits,
        told: Told,
    ):
        self.config = ModelConfig(model_name=caller.name)
        self._cache = _NoCache()
        self._model = HostedModel("", caller, limiter)
        self._portal = portal
        self._limits = limits
        self._told = told
        self._prompts = PromptManager(use_chat_template=True, tokenizer=None, system_prompt=None)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """One response per document, in their order; of a failed one, without text."""
        responses: list[ModelResponse] = [ModelResponse(text=[]) for _ in docs]

        async def all_of_them() -> None:
            remaining = iter(enumerate(docs))
            tolerance = self._told.progress.tolerance
            RETRIES.set(self._told.progress.retrying)

            async def worker() -> None:
                for number, doc in remaining:
                    if tolerance.is_spent:
                        self._told.stopped = tolerance.reason
                        self._told.failed(
                            doc, Failure("solver", "NotAsked", f"not asked: {tolerance.reason}")
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
        with Recording("lighteval", "solver", self._limits.tokens) as record:
            found: Any = Failure(
                "solver",
                "LimitExceeded",
                f"the time limit ({self._limits.seconds} s) of the sample was exceeded",
            )
            with anyio.move_on_after(self._limits.seconds):
                found = await contained(self._answers(doc), "solver")
        self._told.records[doc.id] = record.to_json()
        if not isinstance(found, Failure):
            return found
        self._told.failed(doc, found)
        return ModelResponse(text=[])

    async def _answers(self, doc: Doc) -> ModelResponse:
        messages = self._prompts.prepare_prompt_api(doc)
        request = ModelRequest(ChatCompletionInput.model_validate({"messages": messages}), options_of(doc))
        answers = [await self._model.predict(request) for _ in range(doc.num_samples)]
        texts = [last_text(answer.items) for answer in answers]
        if any(text is None for text in texts):
            raise SampleError("the answer has no text", stage="solver", kind="ModelError")
        return ModelResponse(
            input=messages, text=texts, reasonings=[_reasoning(answer) for answer in answers]
        )

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Not to be had from a model that is asked over messages; refused before a run."""
        raise NotImplementedError

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """As `loglikelihood`."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Left to whoever made the model, as several tasks share it."""


def options_of(doc: Doc) -> Json:
    """What a document says about its answer, by the names of chat completion."""
    options: Json = {}
    if doc.generation_size is not None:
        options["max_tokens"] = doc.generation_size
    if stops := [stop for stop in doc.stop_sequences or () if stop]:
        options["stop"] = stops
    return options


def _reasoning(answer: Answered) -> str | None:
    texts = [
        part.text
        for item in answer.items
        if isinstance(item, Message)
        for part in item.content
        if isinstance(part, ReasoningTextContent)
    ]
    return "\n".join(texts) or None


class BackendModel(LightevalModel):  # type: ignore[misc]  # lighteval has no types
    """A model of lighteval's backends, which writes prompts and answers as in a run of lighteval; prompts that it would cut are refused.

    Args:
        loaded: the model.
        told: where failures go.
    """

    def __init__(self, loaded: Loaded, told: Told):
        self.config = loaded.config
        self._cache = _NoCache()
        self._loaded = loaded
        self._told = told

    @property
    def tokenizer(self) -> Any:
        """The model's own."""
        return self._loaded.model.tokenizer

    @property
    def add_special_tokens(self) -> bool:
        """The model's own."""
        return bool(self._loaded.model.add_special_tokens)

    @property
    def max_length(self) -> int:
        """The model's own."""
        return int(self._loaded.model.max_length)

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Answers, in the order of the documents."""
        return self._responses(docs, self._loaded.model.greedy_until, self._prompt_problem)

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Log-likelihoods of the choices of each document."""

        def problem(doc: Doc) -> str | None:
            return continuation_problem(self._loaded, Question(doc, None, ()))

        return self._responses(docs, self._loaded.model.loglikelihood, problem)

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Refused before a run, see `refuse_methods`."""
        raise NotImplementedError

    def cleanup(self) -> None:
        """Left to whoever loaded the model, as several tasks share it."""

    def _prompt_problem(self, doc: Doc) -> str | None:
        if not self._loaded.backend.loads_weights:
            return None
        length = len(prompt_tokens(self._loaded, Question(doc, None, ())))
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
                self._told.failed(doc, Failure("solver", "BackendError", reason))
        with quiet_logs():
            found = {id(doc): response for doc, response in self._asked(fitting, call)}
        for doc in fitting:
            response = found.get(id(doc))
            silent = response is not None and not any(response.text) and not response.logprobs
            if silent and self._loaded.backend.hides_failures:
                reason = "the backend gave an empty text, which is also what it gives for a call that failed"
                self._told.failed(doc, Failure("solver", "BackendError", reason))
        return [found.get(id(doc)) or ModelResponse(text=[]) for doc in docs]

    def _asked(
        self, docs: list[Doc], call: Callable[[list[Doc]], list[ModelResponse]]
    ) -> list[tuple[Doc, ModelResponse]]:
        """Documents with their responses; what fails together is asked again one by one."""
        import torch

        if not docs:
            return []
        try:
            with torch.no_grad():
                return list(zip(docs, call(docs), strict=True))
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is the failure of those who asked
            if len(docs) > 1:
                return [pair for doc in docs for pair in self._asked([doc], call)]
            message = str(error).strip() or type(error).__name__
            self._told.failed(docs[0], Failure("solver", type(error).__name__, message))
            return []


def refuse_methods(task: str, methods: Sequence[SamplingMethod], caller: Caller) -> None:
    """Make sure that a model can tell what a task measures.

    Raises:
        UsageError: it cannot; those that can are named.
    """
    asked = set(methods)
    if SamplingMethod.PERPLEXITY in asked:
        # Its class for transformers takes the likelihood of a token from the place behind it, and fails at documents without choices.
        raise UsageError(
            f"task {task!r} is measured by perplexities, which no backend of lighteval 0.13 computes right: 'transformers' fails or takes"
            " them from the wrong places, the others have none"
        )
    backend = caller.asked.backend if isinstance(caller, BackendCaller) else None
    if SamplingMethod.LOGPROBS not in asked or (backend is not None and backend.tells_likelihoods):
        return
    able = [each for each in BACKENDS.values() if each.tells_likelihoods]
    models = ", ".join(f"{PREFIX if each.has_server_name else ''}{each.name}/…" for each in able)
    raise UsageError(
        f"task {task!r} is measured by log-likelihoods of given texts, which {caller.name!r} does not tell; models that do: {models}"
    )


def refuse_documents(task: str, docs: Sequence[Doc], caller: Caller) -> None:
    """Make sure that what documents say about answers reaches the model.

    Raises:
        UsageError: some of it would be left out silently.
    """
    generative = [doc for doc in docs if SamplingMethod.GENERATIVE in doc.sampling_methods]
    if any(doc.generation_grammar is not None for doc in generative):
        raise UsageError(
            f"task {task!r} prescribes a grammar for answers, which {caller.name!r} would not be told of"
        )
    names = dict.fromkeys(itertools.chain.from_iterable(options_of(doc) for doc in generative))
    if isinstance(caller, ConnectionCaller) and names and not caller.connection.takes_options:
        raise UsageError(
            f"task {task!r} limits answers ({', '.join(names)}), which the adapter {caller.connection.adapter.key!r} of"
            f" {caller.name!r} does not pass on (let 'process_input' write the options in `kwargs`)"
        )
    if isinstance(caller, BackendCaller) and not caller.asked.backend.takes_length and "max_tokens" in names:
        raise UsageError(
            f"task {task!r} limits the length of answers, which does not reach models of {caller.asked.backend.name!r} as it is"
            " (run it on a server: openai-api/<service>/<model>)"
        )

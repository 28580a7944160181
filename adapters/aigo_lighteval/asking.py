"""A backend of lighteval as a model that the sample program calls: single requests in, batches of documents to the backend.

Whoever finds the model free takes the waiting requests of its own kind along. So samples keep their own failures, progress and limits, and
the backend still gets batches. A limit on a sample's time takes effect when its batch has ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread
import jinja2

from aigo_bridge.connections import Exchange, Reply
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_lighteval.answers import Answer
from aigo_lighteval.backend_calls import generate, given_text, weigh
from aigo_lighteval.backends import BackendModel
from aigo_lighteval.calling import AttemptError
from aigo_lighteval.documents import Question, question
from aigo_lighteval.golds import storable
from aigo_lighteval.loading import Loaded, load, prepare

Ask = Callable[[Loaded, Sequence[Question]], list[Any]]


@dataclass(eq=False)
class _Waiting:
    """A question on its way."""

    asked: Question
    ask: Ask
    result: Any = None
    """What became of it: what `ask` gives for it, or the exception; `None` before."""


@dataclass
class _Queue:
    """What waits for the model."""

    waiting: list[_Waiting] = field(default_factory=list)
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def take(self, first: _Waiting, size: int) -> list[_Waiting]:
        """A question with others of its kind, which then wait no longer."""
        same = [
            each
            for each in self.waiting
            if each is not first and each.ask is first.ask and each.asked.kind == first.asked.kind
        ]
        batch = [first, *same[: size - 1]]
        self.waiting = [each for each in self.waiting if each not in batch]
        return batch


class BackendCaller:
    """A model of a lighteval backend; `load` comes before the first call.

    Raises:
        UsageError: the model string is not valid, or packages are missing.
    """

    def __init__(self, asked: BackendModel):
        self.asked = asked
        self.name = asked.name
        self._prepared = prepare(asked)
        self._loaded: Loaded | None = None
        # While one batch is worked on, the next one gathers.
        self.max_concurrent = 2 * self._prepared.batch_size
        self._queue = _Queue()
        # torch's switches are per thread, so it is always the same kind of thread, and one at a time.
        self._thread = anyio.CapacityLimiter(1)

    def load(self) -> Loaded:
        """Load the model, once.

        Raises:
            UsageError: it cannot be loaded.
        """
        if self._loaded is None:
            self._loaded = load(self._prepared)
        return self._loaded

    @property
    def is_loaded(self) -> bool:
        """Whether it can be called."""
        return self._loaded is not None

    @property
    def loaded(self) -> Loaded:
        """The model; it has been loaded."""
        assert self._loaded is not None
        return self._loaded

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[Answer, Exchange]:
        """Generate an answer.

        Raises:
            SampleError: a document cannot say the request.
            AttemptError: the backend failed.
        """
        asked = self._question(request, stage, ())
        sent = self._sent(asked, stage)
        reply: Reply = await self._answered(asked, generate, sent, stage)
        (choice,) = reply.choices
        told = {"text": choice.text, "finish_reason": choice.finish_reason}
        return Answer(reply), Exchange(sent, _text(told), None)

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """How likely the model finds texts behind a request's prompt.

        Raises:
            SampleError: a document cannot say the request.
            AttemptError: the backend failed.
        """
        asked = self._question(request, stage, tuple(continuations))
        sent = self._sent(asked, stage)
        found: tuple[Likelihood, ...] = await self._answered(asked, weigh, sent, stage)
        told = [each.to_json() for each in found]
        return found, Exchange(sent, _text(told), None)

    def _question(self, request: ModelRequest, stage: Stage, choices: tuple[str, ...]) -> Question:
        loaded = self.loaded
        return question(
            request,
            loaded.backend,
            loaded.generation,
            chat=loaded.uses_chat_template,
            max_tokens=loaded.max_tokens if loaded.backend.takes_length else None,
            stage=stage,
            choices=choices,
        )

    def _sent(self, asked: Question, stage: Stage) -> str:
        """What the model is given, as kept in evidence: the very text, where lighteval writes it."""
        try:
            given = given_text(self.loaded, asked)
        except (jinja2.TemplateError, ValueError) as error:
            raise SampleError(
                f"the model's chat template does not take these messages: {error}",
                stage=stage,
                kind="ChatTemplateError",
            ) from error
        sent: dict[str, Any] = {"prompt" if isinstance(given, str) else "messages": given}
        if asked.doc.choices:
            sent["continuations"] = list(asked.doc.choices)
        else:
            sent |= {"max_new_tokens": asked.doc.generation_size, "stop": list(asked.stop)}
            sent |= {"generation_parameters": dict(self.loaded.generation)}
        return _text(sent)

    async def _answered(self, asked: Question, ask: Ask, sent: str, stage: Stage) -> Any:
        mine = _Waiting(asked, ask)
        queue = self._queue
        queue.waiting.append(mine)
        try:
            async with queue.lock:
                if mine.result is None:
                    batch = queue.take(mine, self.loaded.batch_size)
                    questions = [each.asked for each in batch]
                    results = await anyio.to_thread.run_sync(
                        contained_answers, self.loaded, questions, ask, limiter=self._thread
                    )
                    for each, result in zip(batch, results, strict=True):
                        each.result = result
        finally:
            if mine in queue.waiting:
                queue.waiting.remove(mine)
        if isinstance(mine.result, Exception):
            failed = mine.result
            message = str(failed).strip() or type(failed).__name__
            raise AttemptError(
                SampleError(message, stage=stage, kind=type(failed).__name__),
                is_transient=False,
                exchange=Exchange(sent, None, None),
            ) from failed
        return mine.result

    async def aclose(self) -> None:
        """Give the model's memory back."""
        if self._loaded is None:
            return
        async with self._queue.lock:  # an interrupted run may have left a batch at work
            await anyio.to_thread.run_sync(self._loaded.model.cleanup)


def _text(value: Any) -> str:
    return storable(json.dumps(value, ensure_ascii=False))


def contained_answers(loaded: Loaded, questions: Sequence[Question], ask: Ask) -> list[Any]:
    """An answer or an exception for each question; what fails together is asked again one by one."""
    import torch

    with torch.no_grad():
        try:
            return ask(loaded, questions)
        except Exception as error:  # noqa: BLE001  # whatever a backend raises is the failure of those who asked
            if len(questions) == 1:
                return [error]
        return [result for each in questions for result in contained_answers(loaded, [each], ask)]

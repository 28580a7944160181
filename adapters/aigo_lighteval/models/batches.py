"""A lighteval backend as a model: callers make single requests, and the backend gets batches of documents.

The first caller that finds the model free also takes the waiting requests of the same kind. Every sample
keeps its own failures, progress and limits, although the backend gets batches. A sample's time limit takes
effect when its batch has ended. aigo-bridge guards against silent faults of lighteval's classes: truncated
prompts, ignored stop sequences and hidden failures.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import jinja2
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager

from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models.connections import Choice, Exchange, Reply, Usage
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_bridge.text.plurals import plural
from aigo_lighteval.documents.turns import storable
from aigo_lighteval.models.backends import ModelQuery, ModelString, question
from aigo_lighteval.models.loading import LoadedModel, load, prepare, quiet_logs, replaced
from aigo_lighteval.models.messages import AttemptError, ModelAnswer

Ask = Callable[[LoadedModel, Sequence[ModelQuery]], list[Any]]


@dataclass(eq=False)
class _Waiting:
    """Question that waits for its answer."""

    asked: ModelQuery
    ask: Ask
    result: Any = None
    """Result of `ask` for this question, or the exception; `None` while it waits."""


@dataclass
class _Queue:
    """Questions that wait for the model."""

    waiting: list[_Waiting] = field(default_factory=list)
    lock: anyio.Lock = field(default_factory=anyio.Lock)

    def take(self, head: _Waiting, size: int) -> list[_Waiting]:
        """Remove a question and others of the same kind from the queue, and return them."""
        same = [
            waiter
            for waiter in self.waiting
            if waiter is not head and waiter.ask is head.ask and waiter.asked.kind == head.asked.kind
        ]
        batch = [head, *same[: size - 1]]
        self.waiting = [waiter for waiter in self.waiting if waiter not in batch]
        return batch


class BackendCaller:
    """Model of a lighteval backend. Call `load` before the first request.

    Raises:
        UsageError: the model string is not valid, or packages are missing.
    """

    def __init__(self, asked: ModelString, attempt_timeout: int | None = None):
        self.asked = asked
        self.name = asked.name
        self._prepared = prepare(asked, attempt_timeout)
        self._loaded: LoadedModel | None = None
        # The next batch collects while the model processes the current one.
        self.max_concurrent = 2 * self._prepared.batch_size
        self._queue = _Queue()
        # torch settings are per thread, so all batches run in one worker thread at a time.
        self._thread = anyio.CapacityLimiter(1)

    def load(self) -> LoadedModel:
        """Load the model on the first call.

        Raises:
            UsageError: the model cannot be loaded.
        """
        if self._loaded is None:
            self._loaded = load(self._prepared)
        return self._loaded

    @property
    def settings(self) -> Mapping[str, Any]:
        """Return the maximum answer length if the model string sets it and lighteval's configuration does not
        take it.
        """
        length = self._prepared.max_tokens
        return {"max_tokens": length} if length is not None and self.asked.backend.takes_length else {}

    @property
    def is_loaded(self) -> bool:
        """Return whether the model is loaded."""
        return self._loaded is not None

    @property
    def loaded(self) -> LoadedModel:
        """Return the loaded model."""
        assert self._loaded is not None
        return self._loaded

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Generate an answer.

        Raises:
            SampleError: a document cannot carry the request.
            AttemptError: the backend failed.
        """
        document = self._question(request, stage, ())
        sent = self._sent(document, stage)
        reply: Reply = await self._answered(document, generate, sent, stage)
        (choice,) = reply.choices
        answer = {"text": choice.text, "finish_reason": choice.finish_reason}
        return ModelAnswer(reply), Exchange(sent, _text(answer), None)

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """Return the likelihoods of texts after a request's prompt.

        Raises:
            SampleError: a document cannot carry the request.
            AttemptError: the backend failed.
        """
        document = self._question(request, stage, tuple(continuations))
        sent = self._sent(document, stage)
        weighed: tuple[Likelihood, ...] = await self._answered(document, weigh, sent, stage)
        answer = [weight.to_json() for weight in weighed]
        return weighed, Exchange(sent, _text(answer), None)

    def _question(self, request: ModelRequest, stage: Stage, choices: tuple[str, ...]) -> ModelQuery:
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

    def _sent(self, query: ModelQuery, stage: Stage) -> str:
        """Return the model's input for the evidence: the exact prompt text if lighteval writes it."""
        try:
            prompt = given_text(self.loaded, query)
        except (jinja2.TemplateError, ValueError) as error:
            raise SampleError(
                f"the model's chat template does not accept these messages: {error}",
                stage=stage,
                kind="ChatTemplateError",
            ) from error
        sent: dict[str, Any] = {"prompt" if isinstance(prompt, str) else "messages": prompt}
        if query.doc.choices:
            sent["continuations"] = list(query.doc.choices)
        else:
            sent |= {"max_new_tokens": query.doc.generation_size, "stop": list(query.stop)}
            sent |= {"generation_parameters": dict(self.loaded.generation)}
        return _text(sent)

    async def _answered(self, query: ModelQuery, ask: Ask, sent: str, stage: Stage) -> Any:
        mine = _Waiting(query, ask)
        queue = self._queue
        queue.waiting.append(mine)
        try:
            async with queue.lock:
                if mine.result is None:
                    batch = queue.take(mine, self.loaded.batch_size)
                    questions = [waiter.asked for waiter in batch]
                    results = await anyio.to_thread.run_sync(
                        contained_answers, self.loaded, questions, ask, limiter=self._thread
                    )
                    for waiter, result in zip(batch, results, strict=True):
                        waiter.result = result
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
        """Free the model's memory."""
        if self._loaded is None:
            return
        async with self._queue.lock:  # an interrupted run may still have a batch in progress
            await anyio.to_thread.run_sync(self._loaded.model.cleanup)


def _text(value: Any) -> str:
    return storable(json.dumps(value, ensure_ascii=False))


def contained_answers(loaded: LoadedModel, questions: Sequence[ModelQuery], ask: Ask) -> list[Any]:
    """Return an answer or an exception for each question. If a batch fails, ask its questions one by one."""
    import torch

    with torch.no_grad():
        try:
            return ask(loaded, questions)
        except Exception as error:  # noqa: BLE001  # any error of a backend is a failure of these questions only
            if len(questions) == 1:
                return [error]
        return [result for single in questions for result in contained_answers(loaded, [single], ask)]


# Calls of lighteval's classes, in the worker thread


Result = TypeVar("Result")


class BackendError(RuntimeError):
    """Error for a request that the backend cannot process or has not processed."""


def given_text(loaded: LoadedModel, query: ModelQuery) -> Any:
    """Return the model's input: a text, or messages if a server writes the text.

    Raises:
        jinja2.TemplateError: the model's template refuses the messages.
        ValueError: the model does not have a template.
    """
    native = loaded.model.prompt_manager
    # The model's own prompt manager belongs to the batch in progress.
    manager = PromptManager(native.use_chat_template, native.tokenizer, query.system)
    if loaded.backend.writes_prompts:
        return manager.prepare_prompt(query.doc)
    return manager.prepare_prompt_api(query.doc)


def generate(loaded: LoadedModel, questions: Sequence[ModelQuery]) -> list[Reply | BackendError]:
    """Return answers to questions of one kind.

    Raises:
        Exception: any error of the backend.
    """

    def replies(fitting: Sequence[ModelQuery]) -> list[Reply | BackendError]:
        return [
            _reply(loaded, single, *pair)
            for single, pair in zip(fitting, _generated(loaded, fitting), strict=True)
        ]

    if not loaded.backend.loads_weights:
        return replies(questions)
    lengths = [len(prompt_tokens(loaded, single)) for single in questions]
    size = questions[0].doc.generation_size
    if size is not None and max(lengths) - min(lengths) > size and len(questions) > 1:
        # lighteval truncates the whole batch to the length of its longest prompt in characters, plus the
        # answer.
        return [reply for single in questions for reply in generate(loaded, [single])]
    return _of_fitting(questions, [length_problem(loaded, length, size) for length in lengths], replies)


def weigh(
    loaded: LoadedModel, questions: Sequence[ModelQuery]
) -> list[tuple[Likelihood, ...] | BackendError]:
    """Return the likelihoods of the continuations of questions of one kind.

    Raises:
        Exception: any error of the backend.
    """

    def likelihoods(fitting: Sequence[ModelQuery]) -> list[tuple[Likelihood, ...] | BackendError]:
        responses = _called(loaded, loaded.model.loglikelihood, fitting)
        return [_weighed(loaded, *pair) for pair in zip(fitting, responses, strict=True)]

    return _of_fitting(questions, [continuation_problem(loaded, single) for single in questions], likelihoods)


def _of_fitting(
    questions: Sequence[ModelQuery],
    problems: Sequence[str | None],
    ask: Callable[[Sequence[ModelQuery]], Sequence[Result | BackendError]],
) -> list[Result | BackendError]:
    """Return results in the order of the questions. A question with a problem is not asked."""
    fitting = [single for single, problem in zip(questions, problems, strict=True) if problem is None]
    answers = iter(ask(fitting) if fitting else ())
    return [next(answers) if problem is None else BackendError(problem) for problem in problems]


def _called(
    loaded: LoadedModel,
    call: Callable[[list[Any]], list[ModelResponse]],
    questions: Sequence[ModelQuery],
) -> list[ModelResponse]:
    loaded.model.prompt_manager.system_prompt = questions[0].system
    with quiet_logs(), _without_bars(loaded):
        responses = call([single.doc for single in questions])
    if len(responses) != len(questions):
        raise BackendError(
            f"the backend returned {plural(len(responses), 'answer')} to {len(questions)} questions"
        )
    return responses


# Answers


def _generated(loaded: LoadedModel, questions: Sequence[ModelQuery]) -> Iterator[tuple[str, ModelResponse]]:
    for response in _called(loaded, loaded.model.greedy_until, questions):
        if len(response.text) != 1:
            raise BackendError(f"the backend returned {plural(len(response.text), 'answer')} to one question")
        yield response.text[0] or "", response


def _reply(
    loaded: LoadedModel, query: ModelQuery, text: str, response: ModelResponse
) -> Reply | BackendError:
    if loaded.backend.hides_failures and not text:
        return BackendError("the backend returned an empty text, which can also mean a failed call")
    for stop in query.stop:
        # With a chat template, lighteval ignores stop sequences and generates to the end of the turn.
        text = text.split(stop, 1)[0]
    usage, reason = _spent(loaded, query, response)
    reasoning = response.reasonings[0] if response.reasonings else None
    return Reply(choices=(Choice(text=text, reasoning=reasoning, finish_reason=reason),), usage=usage)


def _spent(
    loaded: LoadedModel, query: ModelQuery, response: ModelResponse
) -> tuple[Usage | None, str | None]:
    """Return the tokens without padding, and the stop reason; `None` if unknown."""
    if not response.input_tokens or len(response.output_tokens) != 1:
        return None, None
    written = _numbers(response.output_tokens[0])
    prompt = len(response.input_tokens) - response.padded_tokens_count
    if loaded.backend.name != "transformers":
        return Usage(prompt, len(written)), None
    # After its end, an answer is padded with the end token.
    end = loaded.model.tokenizer.eos_token_id
    ended = end in written
    spoken = written[: written.index(end) + 1] if ended else written
    text = loaded.model.tokenizer.decode(spoken, skip_special_tokens=True)
    stopped = ended or any(stop in text for stop in query.stop)
    return Usage(prompt, len(spoken)), "stop" if stopped else "length"


# Likelihoods


def _weighed(
    loaded: LoadedModel, query: ModelQuery, response: ModelResponse
) -> tuple[Likelihood, ...] | BackendError:
    _, continuations = _pairs(loaded, query)
    choices = query.doc.choices
    if not len(choices) == len(response.logprobs) == len(response.argmax_logits_eq_gold):
        return BackendError(
            f"the backend returned {len(response.logprobs)} likelihoods for {plural(len(choices), 'text')}"
        )
    values = [float(value) for value in response.logprobs]
    if not all(math.isfinite(value) for value in values):
        return BackendError(f"the backend returned log-likelihoods that are not numbers: {values}")
    return tuple(
        Likelihood(choice, value, len(tokens), bool(greedy))
        for choice, value, tokens, greedy in zip(
            choices, values, continuations, response.argmax_logits_eq_gold, strict=True
        )
    )


def _pairs(loaded: LoadedModel, query: ModelQuery) -> tuple[list[list[int]], list[list[int]]]:
    """Return the tokens of prompt and continuation for each continuation, encoded as the backend does it."""
    # The transformers backend always encodes the two parts separately and ignores its setting.
    apart = loaded.backend.name == "transformers" or loaded.model.pairwise_tokenization
    contexts, continuations = loaded.model.tok_encode_pair(
        given_text(loaded, query), list(query.doc.choices), pairwise=apart
    )
    return [_numbers(tokens) for tokens in contexts], [_numbers(tokens) for tokens in continuations]


def continuation_problem(loaded: LoadedModel, query: ModelQuery) -> str | None:
    """Return why likelihoods would be wrong: empty continuations get 0, and long ones lose their prompt."""
    contexts, continuations = _pairs(loaded, query)
    for context, tokens, text in zip(contexts, continuations, query.doc.choices, strict=True):
        if not context:
            return "the prompt contains 0 tokens, so the likelihood of the first token after it is unknown"
        if not tokens:
            return f"the continuation {text!r} has no tokens"
        if loaded.model.max_length is not None and len(context) + len(tokens) > loaded.model.max_length:
            return (
                f"prompt and continuation have {len(context)} and {plural(len(tokens), 'token')};"
                " the model accepts"
                f" {loaded.model.max_length} in total"
            )
    return None


# Lengths


def prompt_tokens(loaded: LoadedModel, query: ModelQuery) -> list[int]:
    """Return the tokens of a prompt from the backend's tokenizer."""
    encoded = loaded.model.tokenizer(
        given_text(loaded, query), add_special_tokens=loaded.model.add_special_tokens
    )
    return _numbers(encoded["input_ids"])


def length_problem(loaded: LoadedModel, length: int, size: int | None) -> str | None:
    """Return why a prompt would be truncated: lighteval removes its beginning until it fits."""
    limit = loaded.model.max_length
    # Server classes in this process reserve room for the whole answer, transformers for one token only.
    room = 1 if loaded.backend.name == "transformers" else max(1, size or 1)
    if limit is None or length + room <= limit:
        return None
    wanted = "" if room == 1 else f" and {room} are reserved for the answer"
    return f"the prompt has {plural(length, 'token')}{wanted}; the model accepts {limit} in total"


def _numbers(tokens: Iterable[Any]) -> list[int]:
    return [int(token) for token in tokens]


@contextmanager
def _without_bars(loaded: LoadedModel) -> Iterator[None]:
    """Hide the progress bars of single batches because the run has its own."""
    with ExitStack() as bars:
        for module in {cls.__module__ for cls in type(loaded.model).__mro__}:
            bars.enter_context(replaced(sys.modules[module], "tqdm", _no_bar))
        yield


def _no_bar(iterable: Iterable[Result], *_: Any, **__: Any) -> Iterable[Result]:
    return iterable

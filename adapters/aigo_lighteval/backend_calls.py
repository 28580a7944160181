"""Calls of lighteval's model classes, guarded against what they do silently: cut prompts, ignored stop sequences, hidden failures.

Everything here runs in the thread of a batch.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar

from lighteval.models.model_output import ModelResponse
from lighteval.tasks.prompt_manager import PromptManager

from aigo_bridge.connections import Choice, Reply, Usage
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_lighteval.documents import Question
from aigo_lighteval.loading import Loaded, quiet_logs, replaced

Result = TypeVar("Result")


class BackendError(RuntimeError):
    """A backend cannot do, or has not done, what it was asked."""


def given_text(loaded: Loaded, asked: Question) -> Any:
    """What the model is given: a text, or the messages where a server writes the text.

    Raises:
        jinja2.TemplateError: the model's template refuses the messages.
        ValueError: it has none.
    """
    own = loaded.model.prompt_manager
    # Not the model's own: that one belongs to the batch that is worked on.
    manager = PromptManager(own.use_chat_template, own.tokenizer, asked.system)
    if loaded.backend.writes_prompts:
        return manager.prepare_prompt(asked.doc)
    return manager.prepare_prompt_api(asked.doc)


def generate(loaded: Loaded, questions: Sequence[Question]) -> list[Reply | BackendError]:
    """Answers to questions of one kind.

    Raises:
        Exception: of whatever kind the backend raises.
    """
    if not loaded.backend.loads_weights:
        return [
            _reply(loaded, each, *pair)
            for each, pair in zip(questions, _generated(loaded, questions), strict=True)
        ]
    lengths = [len(prompt_tokens(loaded, each)) for each in questions]
    size = questions[0].doc.generation_size
    if size is not None and max(lengths) - min(lengths) > size and len(questions) > 1:
        # A batch is cut to the length of the prompt that has the most characters, plus the answer's.
        return [reply for each in questions for reply in generate(loaded, [each])]

    def replies(fitting: Sequence[Question]) -> list[Reply | BackendError]:
        return [
            _reply(loaded, each, *pair)
            for each, pair in zip(fitting, _generated(loaded, fitting), strict=True)
        ]

    return _of_fitting(questions, [length_problem(loaded, length, size) for length in lengths], replies)


def weigh(loaded: Loaded, questions: Sequence[Question]) -> list[tuple[Likelihood, ...] | BackendError]:
    """How likely the continuations of questions of one kind are.

    Raises:
        Exception: of whatever kind the backend raises.
    """

    def likelihoods(fitting: Sequence[Question]) -> list[tuple[Likelihood, ...] | BackendError]:
        responses = _called(loaded, loaded.model.loglikelihood, fitting)
        return [_weighed(loaded, *pair) for pair in zip(fitting, responses, strict=True)]

    return _of_fitting(questions, [continuation_problem(loaded, each) for each in questions], likelihoods)


def _of_fitting(
    questions: Sequence[Question],
    problems: Sequence[str | None],
    ask: Callable[[Sequence[Question]], Sequence[Result | BackendError]],
) -> list[Result | BackendError]:
    """Results in the order of the questions; those with a problem are not asked."""
    fitting = [each for each, problem in zip(questions, problems, strict=True) if problem is None]
    answers = iter(ask(fitting) if fitting else ())
    return [next(answers) if problem is None else BackendError(problem) for problem in problems]


def _called(
    loaded: Loaded, call: Callable[[list[Any]], list[ModelResponse]], questions: Sequence[Question]
) -> list[ModelResponse]:
    loaded.model.prompt_manager.system_prompt = questions[0].system
    with quiet_logs(), _without_bars(loaded):
        responses = call([each.doc for each in questions])
    if len(responses) != len(questions):
        raise BackendError(f"the backend gave {len(responses)} answers to {len(questions)} questions")
    return responses


# Answers


def _generated(loaded: Loaded, questions: Sequence[Question]) -> Iterator[tuple[str, ModelResponse]]:
    for response in _called(loaded, loaded.model.greedy_until, questions):
        if len(response.text) != 1:
            raise BackendError(f"the backend gave {len(response.text)} answers to one question")
        yield response.text[0] or "", response


def _reply(loaded: Loaded, asked: Question, text: str, response: ModelResponse) -> Reply | BackendError:
    if loaded.backend.hides_failures and not text:
        return BackendError(
            "the backend gave an empty text, which is also what it gives for a call that failed"
        )
    for stop in asked.stop:
        # With a chat template, lighteval generates on to the end of the turn.
        text = text.split(stop, 1)[0]
    usage, reason = _spent(loaded, asked, response)
    reasoning = response.reasonings[0] if response.reasonings else None
    return Reply(choices=(Choice(text=text, reasoning=reasoning, finish_reason=reason),), usage=usage)


def _spent(loaded: Loaded, asked: Question, response: ModelResponse) -> tuple[Usage | None, str | None]:
    """Tokens without padding, and why the answer ended; `None` where that is not known."""
    if not response.input_tokens or len(response.output_tokens) != 1:
        return None, None
    written = _numbers(response.output_tokens[0])
    prompt = len(response.input_tokens) - response.padded_tokens_count
    if loaded.backend.name != "transformers":
        return Usage(prompt, len(written)), None
    # Behind its end, an answer is filled up with the end token.
    end = loaded.model.tokenizer.eos_token_id
    ended = end in written
    spoken = written[: written.index(end) + 1] if ended else written
    said = loaded.model.tokenizer.decode(spoken, skip_special_tokens=True)
    stopped = ended or any(stop in said for stop in asked.stop)
    return Usage(prompt, len(spoken)), "stop" if stopped else "length"


# Likelihoods


def _weighed(
    loaded: Loaded, asked: Question, response: ModelResponse
) -> tuple[Likelihood, ...] | BackendError:
    _, continuations = _pairs(loaded, asked)
    choices = asked.doc.choices
    if not len(choices) == len(response.logprobs) == len(response.argmax_logits_eq_gold):
        return BackendError(f"the backend gave {len(response.logprobs)} likelihoods of {len(choices)} texts")
    found = [float(value) for value in response.logprobs]
    if not all(math.isfinite(value) for value in found):
        return BackendError(f"the backend gave log-likelihoods that are no numbers: {found}")
    return tuple(
        Likelihood(choice, value, len(tokens), bool(greedy))
        for choice, value, tokens, greedy in zip(
            choices, found, continuations, response.argmax_logits_eq_gold, strict=True
        )
    )


def _pairs(loaded: Loaded, asked: Question) -> tuple[list[list[int]], list[list[int]]]:
    """Tokens of prompt and continuation, for each continuation, as the backend makes them."""
    # Models of transformers are always given both apart, whatever the setting says.
    apart = loaded.backend.name == "transformers" or loaded.model.pairwise_tokenization
    contexts, continuations = loaded.model.tok_encode_pair(
        given_text(loaded, asked), list(asked.doc.choices), pairwise=apart
    )
    return [_numbers(each) for each in contexts], [_numbers(each) for each in continuations]


def continuation_problem(loaded: Loaded, asked: Question) -> str | None:
    """Why likelihoods would be wrong: a continuation of no tokens has 0, and one that does not fit loses its prompt."""
    contexts, continuations = _pairs(loaded, asked)
    for context, tokens, text in zip(contexts, continuations, asked.doc.choices, strict=True):
        if not context:
            return "the prompt has no tokens, so nothing tells how likely the first one behind it is"
        if not tokens:
            return f"the continuation {text!r} has no tokens"
        if loaded.model.max_length is not None and len(context) + len(tokens) > loaded.model.max_length:
            return (
                f"prompt and continuation have {len(context)} and {len(tokens)} tokens; the model takes"
                f" {loaded.model.max_length} together"
            )
    return None


# Lengths


def prompt_tokens(loaded: Loaded, asked: Question) -> list[int]:
    """A prompt as the backend's tokenizer encodes it."""
    encoded = loaded.model.tokenizer(
        given_text(loaded, asked), add_special_tokens=loaded.model.add_special_tokens
    )
    return _numbers(encoded["input_ids"])


def length_problem(loaded: Loaded, length: int, size: int | None) -> str | None:
    """Why a prompt would be cut: lighteval takes its beginning away until it fits."""
    limit = loaded.model.max_length
    # Classes of servers in this process make room for the whole answer, transformers models for one token.
    room = 1 if loaded.backend.name == "transformers" else max(1, size or 1)
    if limit is None or length + room <= limit:
        return None
    wanted = "" if room == 1 else f" and {room} of the answer"
    return f"the prompt has {length} tokens{wanted}; the model takes {limit} together"


def _numbers(tokens: Iterable[Any]) -> list[int]:
    return [int(token) for token in tokens]


@contextmanager
def _without_bars(loaded: Loaded) -> Iterator[None]:
    """No progress bar for every batch: the run has its own."""
    with ExitStack() as bars:
        for module in {cls.__module__ for cls in type(loaded.model).__mro__}:
            bars.enter_context(replaced(sys.modules[module], "tqdm", _no_bar))
        yield


def _no_bar(iterable: Iterable[Result], *_: Any, **__: Any) -> Iterable[Result]:
    return iterable

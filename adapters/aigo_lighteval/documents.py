"""A chat request as a lighteval document, where a document says exactly that; and where not, why.

lighteval writes a document's examples and question as turns of a chat, behind the model's system prompt; without a chat template it is
the bare text of the question. Everything else that it could do with a document is not what a task of ours asks for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lighteval.tasks.requests import Doc

from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models import ModelRequest
from aigo_lighteval.backends import Backend
from aigo_lighteval.subset import message_problem, option_problem


@dataclass(frozen=True)
class Question:
    """A document, and what belongs to it but stands elsewhere in lighteval."""

    doc: Doc
    system: str | None
    """System prompt; lighteval has one per model."""
    stop: tuple[str, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Questions of one kind can be asked together: a batch has one system prompt, one length, one list of stop sequences."""
        return self.system, self.stop, self.doc.generation_size


def question(
    request: ModelRequest,
    backend: Backend,
    generation: Mapping[str, Any],
    *,
    chat: bool,
    max_tokens: int | None,
    stage: Stage,
    choices: tuple[str, ...] = (),
) -> Question:
    """The document of a request.

    Args:
        request: what is asked.
        backend: who is asked.
        generation: its generation parameters, by lighteval's names.
        chat: whether messages are written in the model's own form.
        max_tokens: length of the answer where the request says none.
        stage: of errors.
        choices: continuations whose likelihoods are asked; none when an answer is generated.

    Raises:
        SampleError: a document cannot say what the request asks.
    """
    turns = [(message.role, message.content) for message in request.input.messages]
    problem = (
        "its conversation has parts that are no plain text"
        if request.items is not None or not all(isinstance(text, str) for _, text in turns)
        else message_problem([role for role, _ in turns], chat=chat)
    )
    problem = problem or option_problem(request, backend, generation)
    if problem is not None:
        raise SampleError(
            f"lighteval's {backend.name} backend cannot be asked this: {problem}",
            stage=stage,
            kind="UnsupportedRequest",
        )
    texts = [str(text) for _, text in turns]
    system = texts.pop(0) if turns[0][0] == "system" else None
    *spoken, asked = texts
    given = request.options.get("stop") or ()
    stop = [text for text in ([given] if isinstance(given, str) else given) if text]
    size = request.options.get("max_tokens")
    doc = Doc(
        query=asked,
        choices=list(choices),
        gold_index=0,
        id="0",
        task_name="aigo|0",
        fewshot_samples=[
            Doc(query=said, choices=[answered], gold_index=0)
            for said, answered in zip(spoken[::2], spoken[1::2], strict=True)
        ],
        generation_size=size if isinstance(size, int) else max_tokens,
        stop_sequences=stop,
        num_samples=1,
    )
    return Question(doc, system, tuple(stop))

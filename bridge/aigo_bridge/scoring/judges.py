"""Judges: a model classifies, scores or labels an answer.

The platform adds its own format instruction to the author's prompts, but does not publish it; aigo-bridge's
is in `_instruction`. With `use_structured_outputs`, the same format is also sent as a JSON schema. An
unreadable reply is returned to the judge once, with the reason; a second one is an error of the sample. The
score's metadata contains every call.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionJSONSchema,
    ChatCompletionModelOutput,
    ChatCompletionOutputMessage,
    ChatCompletionResponseFormatJSONSchema,
    ModelResponse,
    SolverOutput,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.models.protocol import Model, ModelRequest, Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.judge_replies import (
    JudgeReply,
    UnreadableReplyError,
    canonical,
    read_label,
    read_number,
)
from aigo_bridge.scoring.scorer import UNEXPECTED_LABEL, Score, ScoreFunction, ScorerType
from aigo_bridge.scoring.variables import render, variables
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import LabelerViaModelScorer, ModelAsAJudgeClassifierScorer, ModelAsAJudgeScorer
from aigo_bridge.templates import SampleTemplate

MAX_ATTEMPTS = 2
"""Calls per verdict: the first one, and one more with the reason why the first reply was unreadable."""

JudgeSpec = ModelAsAJudgeClassifierScorer | ModelAsAJudgeScorer | LabelerViaModelScorer
ChatMessage = ChatCompletionInputMessage | ChatCompletionOutputMessage

T = TypeVar("T")
J = TypeVar("J", ModelAsAJudgeClassifierScorer, ModelAsAJudgeScorer, LabelerViaModelScorer)


class Judge(ABC):
    """Base class of the judges: prompts, calls, retry, records of the calls."""

    def __init__(self, spec: JudgeSpec):
        self._model_key = spec.model_key
        self._system = SampleTemplate(spec.system_prompt)
        self._user = SampleTemplate(spec.user_prompt)
        self._structured = spec.use_structured_outputs

    @property
    @abstractmethod
    def field(self) -> tuple[str, dict[str, Any]]:
        """Return the name of the verdict in the JSON reply, and its JSON schema."""

    @abstractmethod
    def read(self, reply: str) -> JudgeReply:
        """Return the verdict in a reply; raise `UnreadableReplyError` without one."""

    @abstractmethod
    def outcome(self, verdict: JudgeReply, metadata: dict[str, Any]) -> Score:
        """Return the scores of a verdict; raise `JudgeError` if it is out of range."""

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        calls: list[dict[str, Any]] = []
        conversation = self._opening(sample, output)
        model = models(self._model_key)
        verdict = await ask(
            model, self._model_key, conversation, self._chat_input, self._instruction(), self.read, calls
        )
        metadata = {
            "reasoning": verdict.reasoning,
            "confidence": verdict.confidence,
            "model_key": self._model_key,
            "judge_calls": calls,
        }
        return self.outcome(verdict, metadata)

    def first_input(self, sample: Sample, output: SolverOutput | None) -> ChatCompletionInput:
        """Return the first input of the judge without calling it.

        Raises:
            SampleError: a prompt cannot be rendered.
        """
        return self._chat_input(self._opening(sample, output))

    def _opening(self, sample: Sample, output: SolverOutput | None) -> list[ChatMessage]:
        values = variables(sample, output)
        system = render(self._system, values) + self._instruction()
        return [
            ChatCompletionInputMessage(role="system", content=system),
            ChatCompletionInputMessage(role="user", content=render(self._user, values)),
        ]

    def _chat_input(self, conversation: Sequence[ChatMessage]) -> ChatCompletionInput:
        messages = list(conversation)
        if not self._structured:
            return ChatCompletionInput(messages=messages)
        schema = ChatCompletionJSONSchema(name="verdict", schema=self._schema(), strict=True)
        response_format = ChatCompletionResponseFormatJSONSchema(type="json_schema", json_schema=schema)
        return ChatCompletionInput(messages=messages, response_format=response_format)

    def _schema(self) -> dict[str, Any]:
        name, schema = self.field
        return {
            "type": "object",
            # The reasons come before the verdict: otherwise a model only defends its verdict.
            "properties": {
                "reasoning": {"type": "string", "description": "Why, in a few sentences."},
                name: schema,
                "confidence": {"type": "number", "description": "From 0 (a guess) to 1 (certain)."},
            },
            "required": ["reasoning", name, "confidence"],
            "additionalProperties": False,
        }

    def _instruction(self) -> str:
        name, schema = self.field
        return (
            "\n\nAnswer with one JSON object and nothing else: "
            f'{{"reasoning": "<why, in a few sentences>", "{name}": <{schema["description"]}>, '
            '"confidence": <number from 0 to 1>}'
        )


class JudgeError(SampleError):
    """Missing or invalid verdict of a judge; it contains the calls that were made."""

    def __init__(self, message: str, calls: list[dict[str, Any]], *, kind: str, hint: str | None = None):
        super().__init__(message, stage="score", kind=kind, hint=hint)
        self.calls = calls


async def ask(
    model: Model,
    key: str,
    conversation: list[ChatMessage],
    chat_input: Callable[[Sequence[ChatMessage]], ChatCompletionInput],
    instruction: str,
    read: Callable[[str], T],
    calls: list[dict[str, Any]],
) -> T:
    """Ask a judge for a verdict, and once again with the reason if its reply is unreadable.

    Args:
        model: judge model.
        key: AI GO key of the judge, for messages.
        conversation: messages to the judge; unreadable replies are appended.
        chat_input: function that returns the request for a conversation.
        instruction: format instruction, repeated after the reason.
        read: function that returns the verdict in a reply, or raises `UnreadableReplyError`.
        calls: list to which every call is appended.

    Raises:
        JudgeError: the model failed, or its verdict is missing.
    """
    for _ in range(MAX_ATTEMPTS):
        request = ModelRequest(chat_input(conversation))
        try:
            response = await model.predict(request)
        except SampleError as error:
            raise JudgeError(
                f"judge {key!r}: {error.message}", calls, kind=error.kind, hint=error.hint
            ) from error
        reply = _text(response)
        calls.append(_record(model.name, request, reply, response))
        try:
            return read(reply)
        except UnreadableReplyError as error:
            problem = str(error)
        if reply.strip():  # Providers refuse empty assistant messages.
            conversation.append(ChatCompletionOutputMessage(role="assistant", content=reply))
        again = f"Your answer could not be read: {problem}.{instruction}"
        conversation.append(ChatCompletionInputMessage(role="user", content=again))
    raise JudgeError(
        f"judge {key!r}: no readable answer after {MAX_ATTEMPTS} attempts: {problem}; "
        f"last answer: {_shortened(reply)!r}",
        calls,
        kind="UnreadableJudgeReply",
    )


class ClassifierJudge(Judge):
    """Judge with the score `is_correct`: 1.0 if the verdict is a correct label, otherwise 0.0."""

    def __init__(self, spec: ModelAsAJudgeClassifierScorer):
        super().__init__(spec)
        self._correct = _texts(spec.correct_labels)
        self.labels = (*self._correct, *_texts(spec.incorrect_labels))
        """Labels in the order of the prompt."""

    @property
    def field(self) -> tuple[str, dict[str, Any]]:
        return "prediction", _label_schema(self.labels)

    def read(self, reply: str) -> JudgeReply:
        return read_label(reply, self.labels)

    def outcome(self, verdict: JudgeReply, metadata: dict[str, Any]) -> Score:
        label = canonical(str(verdict.value), self.labels)
        metadata = {"prediction": label or verdict.value, **metadata}
        if label is None:
            metadata[UNEXPECTED_LABEL] = True
        return Score({"is_correct": 1.0 if label is not None and label in self._correct else 0.0}, metadata)


class ScoreJudge(Judge):
    """Judge with the score `score`: the judge's number, scaled linearly to [0, 1]. The metadata contains
    the raw number.
    """

    def __init__(self, spec: ModelAsAJudgeScorer):
        super().__init__(spec)
        self._low, self._high = float(spec.score_min), float(spec.score_max)

    @property
    def field(self) -> tuple[str, dict[str, Any]]:
        description = f"number from {_plain(self._low)} to {_plain(self._high)}"
        return "score", {"type": "number", "description": description}

    def read(self, reply: str) -> JudgeReply:
        return read_number(reply)

    def outcome(self, verdict: JudgeReply, metadata: dict[str, Any]) -> Score:
        raw = float(verdict.value)
        if not self._low <= raw <= self._high:
            raise JudgeError(
                f"judge {self._model_key!r} gave {_plain(raw)}, expected a number from {_plain(self._low)}"
                f" to {_plain(self._high)}",
                metadata["judge_calls"],
                hint="scores are never clamped; adjust the prompt, or score_min and score_max",
                kind="ScoreOutOfRange",
            )
        return Score({"score": (raw - self._low) / (self._high - self._low)}, {"raw_score": raw, **metadata})


class LabelJudge(Judge):
    """Judge with the score `label`: the judge's label, spelled as in `valid_labels` if they are set."""

    def __init__(self, spec: LabelerViaModelScorer):
        super().__init__(spec)
        self.labels = _texts(spec.valid_labels)
        """Labels in the order of the prompt; empty if any label is valid."""

    @property
    def field(self) -> tuple[str, dict[str, Any]]:
        return "label", _label_schema(self.labels)

    def read(self, reply: str) -> JudgeReply:
        return read_label(reply, self.labels)

    def outcome(self, verdict: JudgeReply, metadata: dict[str, Any]) -> Score:
        label = canonical(str(verdict.value), self.labels) if self.labels else str(verdict.value)
        if label is None:
            raise JudgeError(
                f"judge {self._model_key!r} gave the label {_shortened(str(verdict.value))!r}, expected"
                " one of"
                f" {', '.join(map(repr, self.labels))}",
                metadata["judge_calls"],
                kind="UnexpectedLabel",
            )
        return Score({"label": label}, metadata)


def with_labels_reversed(spec: ScorerSpec) -> ScoreFunction | None:
    """Return the same judge with its labels in the opposite order; `None` if it has fewer than two labels."""
    judge: ClassifierJudge | LabelJudge
    if isinstance(spec, ModelAsAJudgeClassifierScorer):
        judge = ClassifierJudge(spec)
    elif isinstance(spec, LabelerViaModelScorer):
        judge = LabelJudge(spec)
    else:
        return None
    if len(judge.labels) < 2:
        return None
    judge.labels = judge.labels[::-1]
    return judge


def _texts(labels: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels after the config is bound; a single text is one label."""
    return (labels,) if isinstance(labels, str) else tuple(labels)


def _label_schema(labels: tuple[str, ...]) -> dict[str, Any]:
    if not labels:
        return {"type": "string", "description": "a label"}
    allowed = ", ".join(json.dumps(label, ensure_ascii=False) for label in labels)
    return {"type": "string", "enum": list(dict.fromkeys(labels)), "description": f"one of {allowed}"}


def _text(response: ModelResponse) -> str:
    """Return the text of a judge's reply; `""` without text."""
    output = response.raw_output
    if isinstance(output, ChatCompletionModelOutput):
        return output.choices[0].message.content if output.choices else ""
    try:
        return response.text
    except ValueError:  # The output has no message, for example only a function call.
        return ""


def _record(model: str, request: ModelRequest, reply: str, response: ModelResponse) -> dict[str, Any]:
    usage = getattr(response.raw_output, "usage", None)
    return {
        "model": model,
        "messages": [
            {"role": message.role, "content": message.content} for message in request.input.messages
        ],
        "reply": reply,
        "usage": None if usage is None else usage.model_dump(mode="json", exclude_unset=False),
    }


def _plain(number: float) -> str:
    """Return a number with all its digits: 5 instead of 5.0, but never 5 for 5.0000001."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def _shortened(text: str, length: int = 200) -> str:
    return text if len(text) <= length else text[:length] + "…"


def _judge_type(spec: type[J], judge: Callable[[J], Judge]) -> ScorerType[J]:
    return ScorerType(
        spec,
        lambda scorer, _: judge(scorer),
        lambda scorer, sample, output: judge(scorer).first_input(sample, output),
    )


CLASSIFIER_JUDGE = _judge_type(ModelAsAJudgeClassifierScorer, ClassifierJudge)
SCORE_JUDGE = _judge_type(ModelAsAJudgeScorer, ScoreJudge)
LABEL_JUDGE = _judge_type(LabelerViaModelScorer, LabelJudge)

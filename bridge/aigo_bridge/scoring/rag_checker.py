"""Scorer `rag_checker`: quality of retrieval and answer, claim by claim.

The answer and the target are split into claims. A judge decides which claims of one are supported by the
other and by the retrieved chunks (the `references` of the model output). The scores are computed from the
counts (`rag_scores`). The judge is only asked for the inputs of the requested scores.

AI GO names the fields but publishes no rules for them; the following rules are aigo-bridge's. `mode` selects
the counted claims of both target and answer. `required_only` keeps claims labeled `required`;
`required_and_optional` drops claims labeled `irrelevant`. Labels come from the label columns, otherwise from
the judge. In every mode, the whole target decides what is correct.

The judge's three questions are from the RAGChecker framework. Claim extraction and checking follow
RefChecker: entailment, neutral, contradiction; five claims per question. The wording is aigo-bridge's because
AI GO publishes none. The judge gets all texts as JSON, so that document content cannot be mistaken for a part
of the question.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    RAGCompletionOutput,
    SolverOutput,
)
from aigo_bridge.errors import SampleError, SpecError, TemplateError
from aigo_bridge.models.protocol import Model, Models
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.judge_replies import UnreadableReplyError, json_with
from aigo_bridge.scoring.judges import ChatMessage, ask
from aigo_bridge.scoring.rag_scores import CHECKS, Check, Entailments, rag_score
from aigo_bridge.scoring.scorer import Score, ScorerType
from aigo_bridge.scoring.variables import answer_text
from aigo_bridge.spec.scorers import RagCheckerScorer
from aigo_bridge.templates import as_list, text_of
from aigo_bridge.text.plurals import plural

_COUNTED = {
    "required_only": frozenset({"required"}),
    "required_and_optional": frozenset({"required", "optional"}),
}
"""Mode → labels of the counted claims; in `all_claims`, labels are ignored."""


_PLACES: dict[Check, tuple[str, str]] = {
    "target_in_response": ("target", "response"),
    "response_in_target": ("response", "target"),
    "target_in_chunks": ("target", "chunks"),
    "response_in_chunks": ("response", "chunks"),
}
"""Check → source of the claims, and texts in which they are looked up."""


@dataclass(frozen=True)
class Side:
    """Target or response."""

    name: str
    text: str
    given: tuple[str, ...] | None
    """Claims from the dataset; `None`: the judge extracts them."""
    labels: tuple[str, ...] | None
    """Labels of these claims from the dataset; `None`: the judge assigns them if the mode needs them."""


class RagChecker:
    """Scorer of `scores_to_compute`; by default all eleven scores, or only `faithfulness` without a target.

    A score is `None` and excluded from all metrics if it cannot be measured (no claims, no chunks, no target
    in this row).

    Raises:
        SpecError: a score needs a target column, or labels are set without their claims.
    """

    def __init__(self, spec: RagCheckerScorer):
        self._spec = spec
        has_target = spec.target_column is not None or spec.target_claims_column is not None
        wanted: Sequence[str] | None = spec.scores_to_compute
        if wanted is None:
            wanted = tuple(CHECKS) if has_target else ("faithfulness",)
        without = [name for name in wanted if not has_target and name != "faithfulness"]
        if without:
            raise SpecError(
                f"rag_checker: {', '.join(without)} cannot be computed without 'target_column'",
                code=Code.CONTRADICTION,
            )
        for side in ("target", "response"):
            labels, claims = getattr(spec, f"{side}_labels_column"), getattr(spec, f"{side}_claims_column")
            if labels is not None and claims is None:
                raise SpecError(
                    f"rag_checker: '{side}_labels_column' needs '{side}_claims_column'",
                    code=Code.CONTRADICTION,
                )
        self._wanted = tuple(dict.fromkeys(wanted))
        self._checks = [check for check in _PLACES if any(check in CHECKS[name] for name in self._wanted)]

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Score:
        key = self._spec.judge_model_key
        judge = ClaimsJudge(models(key), key, _text(sample, self._spec.query_column) or "")
        sides = {side.name: side for side in (self._target(sample), self._response(sample, output)) if side}
        texts = {name: [side.text] for name, side in sides.items()} | {"chunks": _chunks(output)}
        claims: dict[str, list[str]] = {}
        record: dict[str, Any] = {
            "model_key": key,
            "mode": self._spec.mode,
            "num_chunks": len(texts["chunks"]),
        }
        for name, side in sides.items():
            if any(_PLACES[check][0] == name for check in self._checks):
                claims[name], record[f"{name}_claims"] = await self._claims(judge, side)
        verdicts: dict[Check, list[list[str]]] = {}
        for check in self._checks:
            whose, where = _PLACES[check]
            if claims.get(whose) and texts.get(where):
                verdicts[check] = await _look_up(judge, claims[whose], texts[where])
        entailments = _entailments(verdicts)
        return Score(
            {name: rag_score(name, entailments) for name in self._wanted},
            {**record, "verdicts": verdicts, "judge_calls": judge.calls},
        )

    def _target(self, sample: Sample) -> Side | None:
        """Return the target; `None` if the row has no target."""
        spec = self._spec
        claims = _texts(sample, spec.target_claims_column)
        text = _text(sample, spec.target_column)
        if (text is None or not text.strip()) and claims:
            text = "\n".join(claims)
        if text is None or not text.strip():
            return None
        return Side("target", text, claims, _labels(sample, spec.target_labels_column, claims))

    def _response(self, sample: Sample, output: SolverOutput | None) -> Side:
        spec = self._spec
        claims = _texts(sample, spec.response_claims_column)
        return Side(
            "response", answer_text(output), claims, _labels(sample, spec.response_labels_column, claims)
        )

    async def _claims(self, judge: ClaimsJudge, side: Side) -> tuple[list[str], dict[str, Any]]:
        spec = self._spec
        known_claims = side.given
        claims = (
            await judge.claims(side.text, spec.claim_extraction_instructions)
            if known_claims is None
            else list(known_claims)
        )
        record: dict[str, Any] = {"from": "judge" if known_claims is None else "dataset", "claims": claims}
        counted = _COUNTED.get(spec.mode)
        if counted is None:
            return claims, record
        labels = side.labels
        if labels is None:
            labels = tuple(await judge.labels(claims, side.text, spec.claim_labeling_instructions))
        record["labels"] = list(labels)
        return [claim for claim, label in zip(claims, labels, strict=True) if label in counted], record


async def _look_up(judge: ClaimsJudge, claims: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """Return the judge's verdict per claim and text; a text that was retrieved twice is checked once."""
    columns = {text: await judge.entailed(claims, text) for text in dict.fromkeys(texts)}
    return [[columns[text][row] for text in texts] for row in range(len(claims))]


def _entailments(verdicts: Mapping[Check, Sequence[Sequence[str]]]) -> Entailments:
    holds = {
        check: [[verdict == "entailment" for verdict in row] for row in rows]
        for check, rows in verdicts.items()
    }
    return Entailments(
        target_in_response=[row[0] for row in holds.get("target_in_response", ())],
        response_in_target=[row[0] for row in holds.get("response_in_target", ())],
        target_in_chunks=holds.get("target_in_chunks", ()),
        response_in_chunks=holds.get("response_in_chunks", ()),
    )


def _chunks(output: SolverOutput | None) -> list[str]:
    """Return the retrieved texts; empty for models that do not report them."""
    answer = getattr(output, "output", None)
    if not isinstance(answer, RAGCompletionOutput) or not answer.choices:
        return []
    return [reference.content for reference in answer.choices[0].references]


def _value(sample: Sample, column: str) -> Any:
    if column not in sample.data:
        raise SampleError(
            f"rag_checker: no column {column!r}, expected one of {', '.join(map(repr, sample.data))}",
            stage="score",
            kind="MissingColumn",
        )
    value = sample.data[column]
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(sample: Sample, column: str | None) -> str | None:
    """Return the text in a column; `None` if the cell is empty."""
    value = None if column is None else _value(sample, column)
    return None if value is None else text_of(value)


def _texts(sample: Sample, column: str | None) -> tuple[str, ...] | None:
    """Return the list of texts in a column, also from JSON text; `None` if the cell is empty."""
    value = None if column is None else _value(sample, column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        texts = as_list(value)
    except TemplateError as error:
        raise _unreadable(f"column {column!r}: {error}") from error
    if not all(isinstance(text, str) for text in texts):
        raise _unreadable(f"column {column!r}: its list contains values that are not texts")
    return tuple(texts)


def _labels(sample: Sample, column: str | None, claims: Sequence[str] | None) -> tuple[str, ...] | None:
    texts = _texts(sample, column)
    if texts is None:
        return None
    labels = tuple(text.strip().casefold() for text in texts)
    unknown = [label for label in labels if label not in LABELS]
    if unknown:
        raise _unreadable(f"column {column!r}: found the label {unknown[0]!r}, expected {', '.join(LABELS)}")
    if claims is None or len(labels) != len(claims):
        count = "no" if claims is None else str(len(claims))
        raise _unreadable(f"column {column!r}: found {plural(len(labels), 'label')} for {count} claims")
    return labels


def _unreadable(message: str) -> SampleError:
    return SampleError(f"rag_checker: {message}", stage="score", kind="InvalidClaims")


CLAIMS_PER_CALL = 5
"""Number of claims per judge call; RAGChecker's default."""

LABELS = ("required", "optional", "irrelevant")
"""Relation of a claim to the answer of the question."""

VERDICTS = ("entailment", "neutral", "contradiction")
"""Relation of a text to a claim."""

T = TypeVar("T")

_EXTRACT = (
    "Split a text into the claims that it makes. A claim is one short sentence that states a single fact,"
    " can be checked on its own and"
    " is understood without the text: names instead of pronouns. Take every fact that the text states and"
    " none that it does not;"
    " `question` is given only to make the text understandable. A text that states nothing, such as a"
    " refusal, has no claims."
)
_CHECK = (
    "Judge for each numbered claim what a text says about it, by the text alone and not by what you know"
    " otherwise."
    " `entailment`: the text states it, or it follows from the text. `contradiction`: the text says"
    " otherwise."
    " `neutral`: neither. `question` is given only to make the claims understandable."
)
_LABEL = (
    "Label each numbered claim of an answer to a question. `required`: without it the question is not"
    " answered correctly and completely."
    " `optional`: it helps, but the question is answered without it. `irrelevant`: it has nothing to do"
    " with the question."
)


class ClaimsJudge:
    """Judge of one sample that records every call."""

    def __init__(self, model: Model, key: str, question: str):
        self._model = model
        self._key = key
        self._question = question
        self.calls: list[dict[str, Any]] = []
        """Calls so far, in the format of the other judges."""

    async def claims(self, text: str, instructions: str | None = None) -> list[str]:
        """Return the claims of a text in order; an empty list, without a call, for an empty text."""
        if not text.strip():
            return []
        shape = '{"claims": ["<claim>", …]}, or {"claims": []} when there are none'
        return await self._ask(_EXTRACT, instructions, {"text": text}, shape, read_claims)

    async def labels(self, claims: Sequence[str], text: str, instructions: str | None = None) -> list[str]:
        """Return one of `LABELS` for each claim of a text."""
        return await self._of_each(_LABEL, instructions, claims, text, LABELS)

    async def entailed(self, claims: Sequence[str], text: str) -> list[str]:
        """Return for each claim whether a text entails or contradicts it, or is neutral. An empty text is
        neutral, without a call.
        """
        if not text.strip():
            return ["neutral"] * len(claims)
        return await self._of_each(_CHECK, None, claims, text, VERDICTS)

    async def _of_each(
        self,
        task: str,
        instructions: str | None,
        claims: Sequence[str],
        text: str,
        allowed: Sequence[str],
    ) -> list[str]:
        shape = (
            f'{{"labels": [{{"claim": <number>, "label": <{" | ".join(allowed)}>}}, …]}} with one entry'
            f" per claim"
        )
        labels: list[str] = []
        for start in range(0, len(claims), CLAIMS_PER_CALL):
            part = claims[start : start + CLAIMS_PER_CALL]
            numbered = [{"claim": number, "text": claim} for number, claim in enumerate(part, 1)]
            data = {"text": text, "claims": numbered}
            read = partial(read_labels, count=len(part), allowed=allowed)
            labels += await self._ask(task, instructions, data, shape, read)
        return labels

    async def _ask(
        self,
        task: str,
        instructions: str | None,
        data: dict[str, Any],
        shape: str,
        read: Callable[[str], T],
    ) -> T:
        instruction = f"\n\nAnswer with one JSON object and nothing else: {shape}"
        further = f"\n\n{instructions}" if instructions else ""
        question = json.dumps({"question": self._question, **data}, ensure_ascii=False)
        conversation: list[ChatMessage] = [
            ChatCompletionInputMessage(role="system", content=f"{task}{further}{instruction}"),
            ChatCompletionInputMessage(role="user", content=question),
        ]
        return await ask(
            self._model,
            self._key,
            conversation,
            lambda messages: ChatCompletionInput(messages=list(messages)),
            instruction,
            read,
            self.calls,
        )


def read_claims(reply: str) -> list[str]:
    """Return the claims in a judge's reply without blank ones.

    Raises:
        UnreadableReplyError: there is no list of claims, or there are two different ones.
    """
    listed = _only(reply, "claims")
    if not isinstance(listed, list) or not all(isinstance(claim, str) for claim in listed):
        raise UnreadableReplyError("its claims are not a list of texts")
    return [claim.strip() for claim in listed if claim.strip()]


def read_labels(reply: str, count: int, allowed: Sequence[str]) -> list[str]:
    """Return one label for each of `count` claims, in the order of the claims.

    Raises:
        UnreadableReplyError: a claim has no label or two different ones, or a label is not allowed.
    """
    listed = _only(reply, "labels")
    if not isinstance(listed, list):
        raise UnreadableReplyError("its labels are not a list")
    labels: dict[int, str] = {}
    for entry in listed:
        number = entry.get("claim") if isinstance(entry, dict) else None
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= count:
            raise UnreadableReplyError(f"an entry of its labels names no claim from 1 to {count}")
        label = str(entry.get("label")).strip().casefold()
        if label not in allowed:
            raise UnreadableReplyError(f"the label of claim {number} is not one of {', '.join(allowed)}")
        if labels.setdefault(number, label) != label:
            raise UnreadableReplyError(f"claim {number} has two different labels")
    missing = [str(number) for number in range(1, count + 1) if number not in labels]
    if missing:
        raise UnreadableReplyError(f"there is no label for claim {', '.join(missing)}")
    return [labels[number] for number in range(1, count + 1)]


def _only(reply: str, key: str) -> Any:
    objects = json_with(reply, (key,))
    if not objects:
        raise UnreadableReplyError(
            f"there is no JSON object with {key!r} in it" if reply.strip() else "it is empty"
        )
    if any(content[key] != objects[0][key] for content in objects):
        raise UnreadableReplyError(f"it holds several JSON objects with different {key!r}")
    return objects[0][key]


RAG_CHECKER = ScorerType(RagCheckerScorer, lambda scorer, _: RagChecker(scorer))

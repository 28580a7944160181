"""`rag_checker`: how good retrieval and answer are, claim by claim.

The answer and the target are split into claims; a judge says which claims of the one hold in the other and in the retrieved chunks (the
`references` of the model's output); the scores follow by counting (`rag_scores`). Only what the wanted scores need is asked.

AI GO names the fields and publishes no rules for them. Ours: `mode` says which claims count, those of the target and those of the answer alike.
`required_only` keeps claims labelled `required`, `required_and_optional` drops those labelled `irrelevant`; labels come from the label columns,
else from the judge. The whole target decides what is correct in every mode.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aigo_bridge.dtypes import RAGCompletionOutput, SolverOutput
from aigo_bridge.errors import SampleError, SpecError, TemplateError
from aigo_bridge.models import Models
from aigo_bridge.plan import Sample
from aigo_bridge.scoring.outcome import Outcome
from aigo_bridge.scoring.rag_claims import LABELS, ClaimsJudge
from aigo_bridge.scoring.rag_scores import CHECKS, Check, Entailments, rag_score
from aigo_bridge.scoring.variables import answer_text
from aigo_bridge.spec.scorers import RagCheckerScorer
from aigo_bridge.templates import as_list, text_of

_COUNTED = {
    "required_only": frozenset({"required"}),
    "required_and_optional": frozenset({"required", "optional"}),
}
"""Mode → labels of the claims that count; in `all_claims` labels are not looked at."""


_PLACES: dict[Check, tuple[str, str]] = {
    "target_in_response": ("target", "response"),
    "response_in_target": ("response", "target"),
    "target_in_chunks": ("target", "chunks"),
    "response_in_chunks": ("response", "chunks"),
}
"""Check → whose claims are looked up, and in what."""


@dataclass(frozen=True)
class Side:
    """The target, or the response."""

    name: str
    text: str
    given: tuple[str, ...] | None
    """Claims that the data set has for it; `None`: the judge extracts them."""
    labels: tuple[str, ...] | None
    """Labels that the data set has for these claims; `None`: the judge gives them, where the mode asks for any."""


class RagChecker:
    """The scores of `scores_to_compute`; without it all eleven, or `faithfulness` alone when there is no target to compare with.

    A score of which nothing can be measured (no claims, no chunks, no target in this row) is `None` and in no metric.

    Raises:
        SpecError: a score needs a target column, or labels stand without their claims.
    """

    def __init__(self, spec: RagCheckerScorer):
        self._spec = spec
        has_target = spec.target_column is not None or spec.target_claims_column is not None
        wanted: Sequence[str] | None = spec.scores_to_compute
        if wanted is None:
            wanted = tuple(CHECKS) if has_target else ("faithfulness",)
        without = [name for name in wanted if not has_target and name != "faithfulness"]
        if without:
            raise SpecError(f"rag_checker: {', '.join(without)} cannot be computed without 'target_column'")
        for side in ("target", "response"):
            labels, claims = getattr(spec, f"{side}_labels_column"), getattr(spec, f"{side}_claims_column")
            if labels is not None and claims is None:
                raise SpecError(f"rag_checker: '{side}_labels_column' needs '{side}_claims_column'")
        self._wanted = tuple(dict.fromkeys(wanted))
        self._checks = [check for check in _PLACES if any(check in CHECKS[name] for name in self._wanted)]

    async def __call__(self, sample: Sample, output: SolverOutput | None, models: Models) -> Outcome:
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
        found = _entailments(verdicts)
        return Outcome(
            {name: rag_score(name, found) for name in self._wanted},
            {**record, "verdicts": verdicts, "judge_calls": judge.calls},
        )

    def _target(self, sample: Sample) -> Side | None:
        """The target; `None` when the row has none."""
        spec = self._spec
        given = _texts(sample, spec.target_claims_column)
        text = _text(sample, spec.target_column)
        if (text is None or not text.strip()) and given:
            text = "\n".join(given)
        if text is None or not text.strip():
            return None
        return Side("target", text, given, _labels(sample, spec.target_labels_column, given))

    def _response(self, sample: Sample, output: SolverOutput | None) -> Side:
        spec = self._spec
        given = _texts(sample, spec.response_claims_column)
        return Side(
            "response", answer_text(output), given, _labels(sample, spec.response_labels_column, given)
        )

    async def _claims(self, judge: ClaimsJudge, side: Side) -> tuple[list[str], dict[str, Any]]:
        """The claims that count, and a record of all."""
        spec = self._spec
        given = side.given
        claims = (
            await judge.claims(side.text, spec.claim_extraction_instructions)
            if given is None
            else list(given)
        )
        record: dict[str, Any] = {"from": "judge" if given is None else "data set", "claims": claims}
        counted = _COUNTED.get(spec.mode)
        if counted is None:
            return claims, record
        labels = side.labels
        if labels is None:
            labels = tuple(await judge.labels(claims, side.text, spec.claim_labeling_instructions))
        record["labels"] = list(labels)
        return [claim for claim, label in zip(claims, labels, strict=True) if label in counted], record


async def _look_up(judge: ClaimsJudge, claims: Sequence[str], texts: Sequence[str]) -> list[list[str]]:
    """Per claim, per text, the judge's verdict; a text that was retrieved twice is asked about once."""
    columns = {text: await judge.entailed(claims, text) for text in dict.fromkeys(texts)}
    return [[columns[text][row] for text in texts] for row in range(len(claims))]


def _entailments(verdicts: Mapping[Check, Sequence[Sequence[str]]]) -> Entailments:
    holds = {
        check: [[verdict == "entailment" for verdict in row] for row in rows]
        for check, rows in verdicts.items()
    }
    in_response, in_target = holds.get("target_in_response"), holds.get("response_in_target")
    return Entailments(
        target_in_response=None if in_response is None else [row[0] for row in in_response],
        response_in_target=None if in_target is None else [row[0] for row in in_target],
        target_in_chunks=holds.get("target_in_chunks"),
        response_in_chunks=holds.get("response_in_chunks"),
    )


def _chunks(output: SolverOutput | None) -> list[str]:
    """What was retrieved for the answer; empty for models that say nothing about it."""
    answer = getattr(output, "output", None)
    if not isinstance(answer, RAGCompletionOutput) or not answer.choices:
        return []
    return [reference.content for reference in answer.choices[0].references]


def _value(sample: Sample, column: str) -> Any:
    if column not in sample.data:
        raise SampleError(
            f"rag_checker: there is no column {column!r}, expected one of {', '.join(map(repr, sample.data))}",
            stage="score",
            kind="MissingColumn",
        )
    value = sample.data[column]
    return None if isinstance(value, float) and math.isnan(value) else value


def _text(sample: Sample, column: str | None) -> str | None:
    """The text in a column; `None` without one."""
    value = None if column is None else _value(sample, column)
    return None if value is None else text_of(value)


def _texts(sample: Sample, column: str | None) -> tuple[str, ...] | None:
    """The list of texts in a column, or that the JSON in it spells; `None` without one."""
    value = None if column is None else _value(sample, column)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        texts = as_list(value)
    except TemplateError as error:
        raise _unreadable(f"column {column!r}: {error}") from error
    if not all(isinstance(text, str) for text in texts):
        raise _unreadable(f"column {column!r}: its list holds something else than texts")
    return tuple(texts)


def _labels(sample: Sample, column: str | None, claims: Sequence[str] | None) -> tuple[str, ...] | None:
    """The labels in a column, one for each of the claims."""
    texts = _texts(sample, column)
    if texts is None:
        return None
    labels = tuple(text.strip().casefold() for text in texts)
    unknown = [label for label in labels if label not in LABELS]
    if unknown:
        raise _unreadable(f"column {column!r}: found the label {unknown[0]!r}, expected {', '.join(LABELS)}")
    if claims is None or len(labels) != len(claims):
        count = "no" if claims is None else str(len(claims))
        raise _unreadable(f"column {column!r}: found {len(labels)} labels for {count} claims")
    return labels


def _unreadable(message: str) -> SampleError:
    return SampleError(f"rag_checker: {message}", stage="score", kind="InvalidClaims")

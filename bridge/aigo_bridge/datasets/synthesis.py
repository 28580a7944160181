"""Synthesizers, which create new rows from one row."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aigo_bridge.codes import Code
from aigo_bridge.datasets.tables import parse_json, plain
from aigo_bridge.errors import DatasetError
from aigo_bridge.spec.datasets import (
    ClaimExtractionSynthesizer,
    ClaimLabelingSynthesizer,
    DropColumnsSynthesizer,
    EmptySynthesizer,
    LinkClaimQuotesSynthesizer,
    LLMSynthesizer,
    PythonSynthesizer,
    QuestionAnsweringSynthesizer,
    Synthesizer,
    TemplateSynthesizer,
)
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.text.plurals import plural

RowData = dict[str, Any]


@dataclass(frozen=True)
class SynthesisCall:
    """Model call for a synthesizer."""

    model_key: str
    """Key of the model."""
    system: str
    """System prompt."""
    user: str
    """User prompt."""
    schema: Mapping[str, Any] | None
    """JSON schema for the response format; `None` if only the prompt describes the answer."""


Ask = Callable[[SynthesisCall], str]
"""Function that calls a model and returns its text."""
RunSnippet = Callable[[str, RowData], Any]
"""Function that runs `synthesize(source)` of a snippet, whose source code is the first argument."""


class Step(Protocol):
    """Step of a generator."""

    def rows_from(self, row: RowData) -> list[RowData]:
        """Return the new rows for one row."""
        ...


TEMPLATE_COLUMN = "text"
"""Output column of the template synthesizer (the platform's documentation does not name it)."""
_SLOT = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_MARK = re.compile("(\0[0-9]+\0)")
_MOST_COMBINATIONS = 1_000_000
_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)```", re.DOTALL)


def step_for(synthesizer: Synthesizer, ask: Ask | None, run_snippet: RunSnippet | None) -> Step:
    """Return the step of one synthesizer.

    Raises `DatasetError` if it needs a missing function, and `TemplateError` if a template is wrong.
    """
    match synthesizer:
        case EmptySynthesizer():
            return _Nothing()
        case DropColumnsSynthesizer():
            return _Drop(frozenset(synthesizer.columns))
        case TemplateSynthesizer():
            return _Fill(synthesizer)
        case PythonSynthesizer():
            if run_snippet is None:
                raise DatasetError(
                    "the generator contains a Python snippet, and snippets cannot be executed here",
                    code=Code.FAILED_GENERATOR,
                )
            return _Snippet(synthesizer.synthesize_snippet, run_snippet)
        case _:
            if ask is None:
                message = f"the synthesizer {synthesizer.type!r} needs the model {synthesizer.model_key!r}"
                raise DatasetError(f"{message}, but no models are available here", code=Code.FAILED_GENERATOR)
            return ModelSynthesizer(synthesizer, ask)


class _Nothing:
    def rows_from(self, row: RowData) -> list[RowData]:
        return [row]


@dataclass(frozen=True)
class _Drop:
    columns: frozenset[str]

    def rows_from(self, row: RowData) -> list[RowData]:
        return [{key: value for key, value in row.items() if key not in self.columns}]


class _Fill:
    """Step that creates a row per template and combination of field values, and keeps all columns."""

    def __init__(self, spec: TemplateSynthesizer):
        texts = [spec.template] if isinstance(spec.template, str) else list(spec.template)
        self._fields = spec.fields
        self._names = {f"\0{number}\0": name for number, name in enumerate(spec.fields)}
        marks = {name: mark for mark, name in self._names.items()}
        # Slots are marked before rendering, because `{city}` in a cell is data and not a slot.
        self._templates = [
            SampleTemplate(_SLOT.sub(lambda slot: marks.get(slot[1], slot[0]), text)) for text in texts
        ]
        count = len(texts) * math.prod(len(values) for values in spec.fields.values())
        if count > _MOST_COMBINATIONS:
            message = f"the template has {count:,} combinations of field values"
            raise DatasetError(
                f"{message}, the maximum is {_MOST_COMBINATIONS:,}", code=Code.FAILED_GENERATOR
            )

    def rows_from(self, row: RowData) -> list[RowData]:
        rows = []
        for template in self._templates:
            text = template.render(source=_without_nul(row))
            pieces = [(self._names.get(piece), piece) for piece in _MARK.split(text)]
            for values in itertools.product(*self._fields.values()):
                fields = dict(zip(self._fields, values, strict=True))
                filled = "".join(piece if name is None else str(fields[name]) for name, piece in pieces)
                rows.append({**row, **fields, TEMPLATE_COLUMN: filled})
        return rows


def _without_nul(value: Any) -> Any:
    """Return the value without NUL characters, which mark slots."""
    if isinstance(value, str):
        return value.replace("\0", "")
    if isinstance(value, dict):
        return {key: _without_nul(item) for key, item in value.items()}
    return [_without_nul(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True)
class _Snippet:
    source: str
    run: RunSnippet

    def rows_from(self, row: RowData) -> list[RowData]:
        rows = self.run(self.source, row)
        if not isinstance(rows, list) or not all(isinstance(item, dict) for item in rows):
            raise DatasetError(
                f"`synthesize` returned {type(rows).__name__!r}, expected a list of dicts",
                code=Code.FAILED_GENERATOR,
            )
        return [plain(item) for item in rows]


class ModelSynthesizer:
    """Step that calls a model and parses JSON from its answer, with one repetition if it is not JSON."""

    def __init__(self, spec: Any, ask: Ask):
        self._plan = _model_step(spec)
        self._ask = ask
        self._key = str(spec.model_key)

    def rows_from(self, row: RowData) -> list[RowData]:
        """Return the new rows for one row. Raises `DatasetError` if the answer has another form."""
        plan = self._plan
        system, user = plan.prompts(row)
        schema = plan.schema if plan.structured else None
        question = SynthesisCall(self._key, f"{system}\n\n{plan.instructions}".strip(), user, schema)
        problem = ""
        for _ in range(2):
            answer = self._ask(question)
            try:
                return plan.rows(row, _json_in(answer))
            except ValueError as error:
                problem = str(error)
        shown = answer if len(answer) <= 200 else answer[:197] + "…"
        raise DatasetError(
            f"the model {self._key!r} answered {shown!r}: {problem}", code=Code.FAILED_GENERATOR
        )


@dataclass(frozen=True)
class _ModelStep:
    schema: Mapping[str, Any]
    structured: bool
    prompts: Callable[[RowData], tuple[str, str]]
    rows: Callable[[RowData, Any], list[RowData]]
    wording: str | None = None

    @property
    def instructions(self) -> str:
        return self.wording or (
            "Answer with JSON only, without any other text. It must fit this JSON schema:\n"
            + json.dumps(self.schema, indent=2, ensure_ascii=False)
        )


def _model_step(spec: Any) -> _ModelStep:
    match spec:
        case LLMSynthesizer():
            return _free_step(spec)
        case ClaimExtractionSynthesizer():
            return _claim_step(spec, _EXTRACTION, {"type": "string"}, per_claim=False)
        case ClaimLabelingSynthesizer():
            label = {"type": "string", "enum": ["essential", "supplementary", "irrelevant"]}
            return _claim_step(spec, _LABELING, label, per_claim=True)
        case LinkClaimQuotesSynthesizer():
            quotes = {"type": "array", "items": {"type": "string"}}
            return _claim_step(spec, _QUOTING, quotes, per_claim=True)
        case QuestionAnsweringSynthesizer():
            return _question_step(spec)
    raise DatasetError(f"unknown synthesizer {type(spec).__name__!r}", code=Code.FAILED_GENERATOR)


def _free_step(spec: LLMSynthesizer) -> _ModelStep:
    if spec.user_prompt_template is None:
        raise DatasetError(
            ("the synthesizer sends files (`file_ids_field`), which only works on the platform"),
            code=Code.FAILED_GENERATOR,
        )
    user = SampleTemplate(spec.user_prompt_template)
    system = SampleTemplate(spec.system_prompt or "You write rows of a dataset.")
    properties = list(spec.sample_properties)
    item = _object(spec.sample_properties)

    def rows(row: RowData, answer: Any) -> list[RowData]:
        samples = answer.get("samples", [answer]) if isinstance(answer, dict) else answer
        if not isinstance(samples, list) or not all(isinstance(sample, dict) for sample in samples):
            raise ValueError("expected a list of objects")
        return [{**row, **_picked(sample, properties)} for sample in samples]

    return _ModelStep(
        schema=_object({"samples": {"type": "array", "items": item}}),
        structured=spec.use_structured_outputs,
        prompts=lambda row: (system.render(source=row), user.render(source=row)),
        rows=rows,
        wording=spec.format_instructions,
    )


_EXTRACTION = (
    "Split the answer to a question into claims: short statements that each say one thing, can be "
    "understood alone, "
    "and together say what the answer says, nothing more."
)
_LABELING = (
    "For each numbered claim of an answer, say how it serves the question: essential (without it the "
    "question is not "
    "answered), supplementary (true to the question, but more than was asked) or irrelevant."
)
_QUOTING = (
    "For each numbered claim, copy the passages of the answer, word for word, that state it. Give an "
    "empty list for a "
    "claim that no passage states."
)


def _claim_step(spec: Any, task: str, item: Mapping[str, Any], *, per_claim: bool) -> _ModelStep:
    columns = spec.read_columns
    needed = [columns.question, columns.answer] + ([columns.claims] if per_claim else [])

    def prompts(row: RowData) -> tuple[str, str]:
        lacking = [name for name in needed if name not in row]
        if lacking:
            listed = ", ".join(row) or "none"
            raise DatasetError(
                f"column {lacking[0]!r} is not in the row; columns: {listed}", code=Code.FAILED_GENERATOR
            )
        user = f"Question: {row[columns.question]}\n\nAnswer: {row[columns.answer]}"
        if per_claim:
            listing = "\n".join(
                f"{number}. {claim}" for number, claim in enumerate(_claims(row, columns.claims), 1)
            )
            user += f"\n\nClaims:\n{listing}"
        return "\n\n".join([task, *([spec.instructions] if spec.instructions else [])]), user

    def rows(row: RowData, answer: Any) -> list[RowData]:
        items = answer.get("items") if isinstance(answer, dict) else answer
        if not isinstance(items, list) or not all(_fits(value, item) for value in items):
            raise ValueError("expected a list with the described items")
        if per_claim and len(items) != len(_claims(row, columns.claims)):
            raise ValueError(f"found {plural(len(items), 'item')}, expected one for each claim")
        return [{**row, spec.output_field: items}]

    schema = _object({"items": {"type": "array", "items": item}})
    return _ModelStep(schema=schema, structured=False, prompts=prompts, rows=rows)


def _claims(row: RowData, column: str) -> list[Any]:
    claims = row[column]
    if not isinstance(claims, list):
        raise DatasetError(
            (f"the column {column!r} contains {type(claims).__name__!r}, expected a list of claims"),
            code=Code.FAILED_GENERATOR,
        )
    return claims


def _question_step(spec: QuestionAnsweringSynthesizer) -> _ModelStep:
    properties: dict[str, Any] = {"question": {"type": "string"}, "answer": {"type": "string"}}
    task = "Write one question that the document answers, and the answer, from the document alone."
    if spec.qa_type == "multiple_choice":
        properties["choices"] = {"type": "array", "items": {"type": "string"}, "minItems": 2}
        task += " Give four choices, exactly one of which is right, and repeat that one as the answer."
    system = SampleTemplate(spec.system_prompt or task)
    user = SampleTemplate(
        spec.user_prompt
        or f"Title: {{{{ source[{spec.title_column!r}] | default('') }}}}\n"
        f"Summary: {{{{ source[{spec.summary_column!r}] | default('') }}}}\n\n"
        f"{{{{ source[{spec.content_column!r}] }}}}"
    )
    extra = "" if spec.additional_instructions == "none" else f"\n\n{spec.additional_instructions}"

    def rows(row: RowData, answer: Any) -> list[RowData]:
        if not isinstance(answer, dict):
            raise ValueError("expected an object")  # noqa: TRY004  # wrong answer, not a wrong argument type
        fields = _picked(answer, list(properties))
        if "choices" in fields and fields["answer"] not in fields["choices"]:
            raise ValueError("the answer is not among the choices")
        return [{**row, **fields}]

    return _ModelStep(
        schema=_object(properties),
        structured=False,
        prompts=lambda row: (system.render(source=row) + extra, user.render(source=row)),
        rows=rows,
    )


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _picked(sample: Mapping[str, Any], properties: Sequence[str]) -> RowData:
    lacking = [name for name in properties if name not in sample]
    if lacking:
        raise ValueError(f"{lacking[0]!r} is missing in the object")
    return {name: sample[name] for name in properties}


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    if schema["type"] == "array":
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    return isinstance(value, str) and value in schema.get("enum", [value])


def _json_in(answer: str) -> Any:
    """Return the JSON in an answer, optionally in a Markdown fence. Raises `ValueError` if it is missing."""
    fenced = _FENCE.search(answer)
    text = fenced[1] if fenced else answer
    try:
        return parse_json(text.strip().encode("utf-8", "replace"))
    except (ValueError, RecursionError) as error:
        raise ValueError("expected JSON") from error

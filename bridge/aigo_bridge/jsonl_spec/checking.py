"""Validation rules of a single record, and their JSON Schema.

Each violated rule and field gives one error. Checks that depend on an invalid field are skipped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

from aigo_bridge.jsonl_spec.records import (
    CATEGORIES,
    EXAMPLE_FIELDS,
    FIELDS,
    LEGAL,
    MAX_FEW_SHOT,
    METRIC_NAMES,
    POST_PROCESS_RULES,
    REQUIRED_FIELDS,
    FewShotExample,
    RecordError,
    Rule,
    TaskSpec,
    few_shot_block,
)

_KNOWN = frozenset(FIELDS)
_REQUIRED = frozenset(REQUIRED_FIELDS)
_EXAMPLE = frozenset(EXAMPLE_FIELDS)
_VOCABULARY: tuple[tuple[str, Rule, tuple[str, ...], frozenset[str]], ...] = (
    ("category", Rule.CATEGORY, CATEGORIES, frozenset(CATEGORIES)),
    ("metric_name", Rule.METRIC_NAME, METRIC_NAMES, frozenset(METRIC_NAMES)),
    ("post_process", Rule.POST_PROCESS, POST_PROCESS_RULES, frozenset(POST_PROCESS_RULES)),
)
_WHITESPACE = re.compile(r"\s")
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_YIELDED = {"extract_letter": frozenset("ABCDE"), "lower": frozenset("abcdefghijklmnopqrstuvwxyz")}
_SHOWN = 60
_JOINTS = re.compile(r"[\s,;+|>&/]+")


def validate_task(value: object) -> tuple[TaskSpec | None, tuple[RecordError, ...]]:
    """Check one record as a parsed JSON value.

    `files.validate_file` checks that each `task_id` is unique.

    Returns:
        The task without errors, or `None` and every error in the order of the rules.
    """
    if not isinstance(value, dict):
        error = RecordError(Rule.OBJECT, "", f"found {_kind(value)}, expected an object")
        return None, (error,)
    errors = find_errors(value)
    return (None, tuple(errors)) if errors else (task_of(value), ())


def task_of(record: dict[str, Any]) -> TaskSpec:
    """Return the task of a record without errors."""
    examples = record.get("few_shot_examples")
    return TaskSpec(
        record["task_id"],
        record["category"],
        record["prompt"],
        tuple(record["targets"]),
        record["metric_name"],
        record["post_process"],
        tuple(FewShotExample(example["prompt"], example["completion"]) for example in examples)
        if examples
        else (),
        record.get("metadata", {}),
    )


def find_errors(record: dict[str, Any]) -> list[RecordError]:
    """Return all errors of a single record."""
    errors: list[RecordError] = []
    keys = record.keys()
    if not (_REQUIRED <= keys <= _KNOWN):
        errors += _field_names(keys, "", REQUIRED_FIELDS, FIELDS)
    _task_id(record, errors)
    legal = _vocabulary(record, errors)
    examples = _examples(record, errors) if "few_shot_examples" in record else ()
    _prompt(record, examples, errors)
    _targets(record, errors)
    if legal:
        _pairs(record, errors)
    if "metadata" in record and not isinstance(record["metadata"], dict):
        errors.append(_type("metadata", record["metadata"], "an object"))
    return errors


def _field_names(
    keys: Iterable[str], place: str, required: tuple[str, ...], known: tuple[str, ...]
) -> list[RecordError]:
    present = list(keys)
    errors = [
        RecordError(Rule.MISSING_FIELD, f"{place}{name}", "the field is missing")
        for name in required
        if name not in present
    ]
    for name in present:
        if name not in known:
            message = f"unknown field; known: {', '.join(known)}"
            errors.append(
                RecordError(Rule.UNKNOWN_FIELD, f"{place}{_cut(name)}", message, _near(name, known))
            )
    return errors


def _task_id(record: dict[str, Any], errors: list[RecordError]) -> None:
    task_id = record.get(
        "task_id", record
    )  # The record itself stands for a missing field, which has already been reported.
    if isinstance(task_id, str):
        if not task_id or task_id.isspace():
            errors.append(RecordError(Rule.BLANK_TEXT, "task_id", f"found {task_id!r}, expected an id"))
        elif _WHITESPACE.search(task_id):
            message = f"found {_cut(task_id)!r}, expected an id without whitespace"
            errors.append(RecordError(Rule.TASK_ID_WHITESPACE, "task_id", message))
    elif task_id is not record:
        errors.append(_type("task_id", task_id, "a text"))


def _vocabulary(record: dict[str, Any], errors: list[RecordError]) -> bool:
    """Return whether category, metric and post-process rule are valid, so that they can be combined."""
    sound = True
    for name, rule, words, vocabulary in _VOCABULARY:
        value = record.get(name, record)
        if isinstance(value, str) and value in vocabulary:
            continue
        sound = False
        if value is record:
            continue
        if name == "post_process" and (combined := _combined(value)):
            message = f"found {combined}, expected one rule"
            errors.append(RecordError(Rule.COMBINED_POST_PROCESS, name, message, "rules cannot be combined"))
        elif isinstance(value, str):
            message = f"found {_cut(value)!r}, expected one of {', '.join(words)}"
            errors.append(RecordError(rule, name, message, _near(value, words)))
        else:
            errors.append(_type(name, value, "a text"))
    return sound


def _combined(value: object) -> str | None:
    """Return a description of several post-process rules that were combined; `None` for other values."""
    if isinstance(value, list):
        named = [part for part in value if isinstance(part, str) and part in POST_PROCESS_RULES]
        return "a list of rules" if named else None
    if isinstance(value, str):
        parts = [part for part in _JOINTS.split(value) if part]
        if len(parts) > 1 and all(part in POST_PROCESS_RULES for part in parts):
            return repr(_cut(value))
    return None


def _prompt(
    record: dict[str, Any], examples: tuple[dict[str, str], ...] | list[Any], errors: list[RecordError]
) -> None:
    prompt = record.get("prompt", record)
    if not isinstance(prompt, str):
        if prompt is not record:
            errors.append(_type("prompt", prompt, "a text"))
        return
    if not prompt or prompt.isspace():
        errors.append(RecordError(Rule.BLANK_TEXT, "prompt", f"found {_cut(prompt)!r}, expected a text"))
        return
    if prompt[-1].isspace():
        end = prompt[len(prompt.rstrip()) :]
        message = f"ends in whitespace ({_cut(end)!r}), expected none"
        errors.append(RecordError(Rule.PROMPT_TRAILING_WHITESPACE, "prompt", message))
    category = record.get("category")
    line = few_shot_block(prompt, category if isinstance(category, str) else None)
    hint = "move the examples to 'few_shot_examples'; the runner puts them in front of the prompt"
    if line is not None:
        message = f"contains a solved example (answered in line {line}), expected only the question"
        errors.append(RecordError(Rule.PROMPT_FEW_SHOT, "prompt", message, hint))
        return
    for number, example in enumerate(examples):
        written_out = f"{example['prompt']} {example['completion']}\n"
        if written_out in prompt and f"\n{written_out}" in f"\n{prompt}":
            message = f"contains 'few_shot_examples[{number}]', expected only the question"
            errors.append(RecordError(Rule.PROMPT_FEW_SHOT, "prompt", message, hint))
            return


def _targets(record: dict[str, Any], errors: list[RecordError]) -> None:
    targets = record.get("targets", record)
    if not isinstance(targets, list):
        if targets is not record:
            errors.append(_type("targets", targets, "a list of texts"))
        return
    if not targets:
        errors.append(RecordError(Rule.TARGETS_EMPTY, "targets", "the list is empty, expected a target"))
    for number, target in enumerate(targets):
        if not isinstance(target, str):
            errors.append(_type(f"targets[{number}]", target, "a text"))
        elif not target or target.isspace():
            message = f"found {_cut(target)!r}, expected a text"
            errors.append(RecordError(Rule.BLANK_TEXT, f"targets[{number}]", message))
    if record.get("category") == "mcq" and targets:
        _mcq(record, targets, errors)


def _mcq(record: dict[str, Any], targets: list[Any], errors: list[RecordError]) -> None:
    if len(targets) > 1:
        message = f"found {len(targets)} targets, expected one for a multiple-choice task"
        errors.append(RecordError(Rule.MCQ_ONE_TARGET, "targets", message))
        return
    (target,) = targets
    if not isinstance(target, str) or not target.strip():
        return
    rule = record.get("post_process")
    allowed = _YIELDED.get(rule, _LETTERS) if isinstance(rule, str) else _LETTERS
    if target not in allowed:
        which = {"extract_letter": "one letter from A to E", "lower": "one lower-case letter"}
        wanted = which.get(str(rule), "one letter")
        why = f", which {rule!r} can return" if allowed is not _LETTERS else ""
        errors.append(
            RecordError(Rule.MCQ_LETTER, "targets[0]", f"found {_cut(target)!r}, expected {wanted}{why}")
        )


def _pairs(record: dict[str, Any], errors: list[RecordError]) -> None:
    category, metric, post_process = record["category"], record["metric_name"], record["post_process"]
    legal = LEGAL[category]
    if metric not in legal.metric_names:
        words = ", ".join(name for name in METRIC_NAMES if name in legal.metric_names)
        message = f"{metric!r} does not fit category {category!r}, expected {words}"
        errors.append(RecordError(Rule.CATEGORY_METRIC, "metric_name", message))
    if post_process not in legal.post_process:
        words = ", ".join(name for name in POST_PROCESS_RULES if name in legal.post_process)
        message = f"{post_process!r} does not fit category {category!r}, expected one of {words}"
        errors.append(RecordError(Rule.CATEGORY_POST_PROCESS, "post_process", message))


def _examples(record: dict[str, Any], errors: list[RecordError]) -> list[Any]:
    """Return the valid few-shot examples."""
    examples = record["few_shot_examples"]
    if not isinstance(examples, list):
        errors.append(
            _type("few_shot_examples", examples, "a list of objects with 'prompt' and 'completion'")
        )
        return []
    if len(examples) > MAX_FEW_SHOT:
        message = f"found {len(examples)} examples, expected at most {MAX_FEW_SHOT}"
        errors.append(RecordError(Rule.FEW_SHOT_CAP, "few_shot_examples", message))
    sound = []
    for number, example in enumerate(examples):
        if _is_example(example):
            sound.append(example)
            continue
        place = f"few_shot_examples[{number}]"
        if not isinstance(example, dict):
            errors.append(_type(place, example, "an object with 'prompt' and 'completion'"))
            continue
        if example.keys() != _EXAMPLE:
            errors += _field_names(example, f"{place}.", EXAMPLE_FIELDS, EXAMPLE_FIELDS)
        for name in EXAMPLE_FIELDS:
            text = example.get(name, record)
            if isinstance(text, str):
                if not text or text.isspace():
                    message = f"found {_cut(text)!r}, expected a text"
                    errors.append(RecordError(Rule.BLANK_TEXT, f"{place}.{name}", message))
            elif text is not record:
                errors.append(_type(f"{place}.{name}", text, "a text"))
    return sound


def _is_example(example: object) -> bool:
    if not isinstance(example, dict) or example.keys() != _EXAMPLE:
        return False
    prompt, completion = example["prompt"], example["completion"]
    return (
        isinstance(prompt, str)
        and isinstance(completion, str)
        and bool(prompt.strip() and completion.strip())
    )


def _type(field: str, value: object, expected: str) -> RecordError:
    return RecordError(Rule.FIELD_TYPE, field, f"found {_kind(value)}, expected {expected}")


def _kind(value: object) -> str:
    names = {type(None): "null", bool: "a boolean", str: "a text", list: "a list", dict: "an object"}
    return names.get(type(value), "a number")


def _near(word: str, known: tuple[str, ...]) -> str | None:
    close = difflib.get_close_matches(word[:_SHOWN].lower(), known, n=1)
    return f"did you mean {close[0]!r}?" if close else None


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


_TEXT = {"type": "string", "pattern": r"\S"}


def schema_for_record() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a task record, with the legal combinations by category."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Task record",
        "description": "One line of a JSONL file of evaluation tasks.",
        "type": "object",
        "required": list(REQUIRED_FIELDS),
        "additionalProperties": False,
        "properties": {
            "task_id": {
                "type": "string",
                "minLength": 1,
                "not": {"pattern": r"\s"},
                "description": "Unique in its file.",
            },
            "category": {"enum": list(CATEGORIES)},
            "prompt": {
                "type": "string",
                "minLength": 1,
                "not": {"pattern": r"\s$"},
                "description": "Without examples, and without whitespace at its end.",
            },
            "targets": {
                "type": "array",
                "minItems": 1,
                "items": _TEXT,
                "description": "Right answers.",
            },
            "metric_name": {"enum": list(METRIC_NAMES)},
            "few_shot_examples": {
                "type": "array",
                "maxItems": MAX_FEW_SHOT,
                "items": {
                    "type": "object",
                    "required": list(EXAMPLE_FIELDS),
                    "additionalProperties": False,
                    "properties": dict.fromkeys(EXAMPLE_FIELDS, _TEXT),
                },
            },
            "post_process": {"enum": list(POST_PROCESS_RULES)},
            "metadata": {"type": "object"},
        },
        "allOf": [_legality(category) for category in CATEGORIES],
    }


def _legality(category: str) -> dict[str, Any]:
    legal = LEGAL[category]
    then: dict[str, Any] = {
        "metric_name": {"enum": [name for name in METRIC_NAMES if name in legal.metric_names]},
        "post_process": {"enum": [name for name in POST_PROCESS_RULES if name in legal.post_process]},
    }
    if category == "mcq":
        then["targets"] = {"maxItems": 1, "items": {"pattern": "^[A-Za-z]", "maxLength": 1}}
    condition = {"required": ["category"], "properties": {"category": {"const": category}}}
    return {"if": condition, "then": {"properties": then}}

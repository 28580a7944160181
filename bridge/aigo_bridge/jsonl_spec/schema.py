"""JSON Schema of one record, for editors. It says what a schema can say; `validate_task` knows more."""

from __future__ import annotations

from typing import Any

from aigo_bridge.jsonl_spec.vocabulary import (
    CATEGORIES,
    EXAMPLE_FIELDS,
    LEGAL,
    MAX_FEW_SHOT,
    METRIC_NAMES,
    POST_PROCESS_RULES,
    REQUIRED_FIELDS,
)

_TEXT = {"type": "string", "pattern": r"\S"}


def schema_for_record() -> dict[str, Any]:
    """The schema (draft 2020-12) of a line of a task record file, legality of categories included."""
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
    given = {"required": ["category"], "properties": {"category": {"const": category}}}
    return {"if": given, "then": {"properties": then}}

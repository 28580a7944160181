"""What kind of file something is, told by its content."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from aigo_bridge import spec

Kind = Literal[
    "task",
    "dataset",
    "generator",
    "model",
    "adapter",
    "evaluation",
    "run",
    "plan",
    "app",
    "policy",
    "risk_scorer",
    "risk_methodology",
    "action_rule",
]

MODELS: dict[Kind, type[BaseModel]] = {
    "task": spec.TaskSpec,
    "dataset": spec.DatasetSpec,
    "generator": spec.DatasetGeneratorSpec,
    "model": spec.ModelSpec,
    "adapter": spec.AdapterSpec,
    "evaluation": spec.EvaluationSpec,
    "run": spec.RunSpec,
    "plan": spec.AssessmentPlanSpec,
    "app": spec.AppSpec,
    "policy": spec.PolicySpec,
    "risk_scorer": spec.RiskScorerSpec,
    "risk_methodology": spec.RiskMethodologySpec,
    "action_rule": spec.ActionRule,
}

WORDS: dict[Kind, str] = {
    "task": "a task",
    "dataset": "a data set",
    "generator": "a data set generator",
    "model": "a model",
    "adapter": "a model adapter",
    "evaluation": "an evaluation",
    "run": "a run file",
    "plan": "an assessment plan",
    "app": "an app",
    "policy": "a policy",
    "risk_scorer": "a risk scorer",
    "risk_methodology": "a risk scoring methodology",
    "action_rule": "an action rule",
}

# The first kind that has one of these keys; keys that several kinds have are left out.
_TELLING: tuple[tuple[Kind, frozenset[str]], ...] = (
    ("plan", frozenset({"evaluation_specifications", "evaluations"})),
    (
        "run",
        frozenset(
            {
                "evaluation",
                "run_config",
                "model_adapters",
                "models",
                "dataset_generators",
                "datasets",
                "policies",
            }
        ),
    ),
    ("evaluation", frozenset({"task_specifications"})),
    ("adapter", frozenset({"process_input", "process_output"})),
    ("risk_scorer", frozenset({"risk_scoring_methodology_key"})),
    ("risk_methodology", frozenset({"function", "metric_key"})),
    ("policy", frozenset({"rules"})),
    ("action_rule", frozenset({"filter", "action"})),
    ("dataset", frozenset({"source", "generator_specification", "file_path"})),
    ("app", frozenset({"risk_profile", "key_info", "model_under_test_key", "judge_model_key"})),
    ("model", frozenset({"rate_limit", "max_concurrent_requests", "adapter_id", "modality"})),
)


_PLACES: dict[str, Kind] = {
    "task": "task",
    "tasks": "task",
    "dataset": "dataset",
    "datasets": "dataset",
    "generator": "generator",
    "generators": "generator",
    "dataset_generator": "generator",
    "dataset_generators": "generator",
    "model": "model",
    "models": "model",
    "evaluation": "evaluation",
    "evaluations": "evaluation",
    "policy": "policy",
    "policies": "policy",
    "app": "app",
    "apps": "app",
}
"""Names of files (without ending) and folders, as published projects have them."""


def is_part(data: Any) -> bool:
    """Whether a document is a scorer, solver, metric …: no file by itself, but what a `$ref` of one refers to."""
    return isinstance(data, dict) and isinstance(data.get("type"), str) and "definition" not in data


# What is no file of AI GO's at all, by keys that it has all of: what it is, and what takes it.
_IMPORT = "`aigo-bridge import` takes it"
_OTHER: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"evidence", "format_version"}),
        "a result log",
        "`aigo-bridge validate`, `score` and `export` take it",
    ),
    (frozenset({"eval", "status"}), "a log of Inspect", _IMPORT),
    (frozenset({"config_general", "results"}), "the results of a lighteval run", _IMPORT),
    (
        frozenset({"evaluation", "results", "policies", "format"}),
        "the summary of an evaluation",
        "name the run file; the result logs are beside it",
    ),
)


def other_document(data: Any) -> tuple[str, str] | None:
    """What a document is that is no file of AI GO's, and what takes it; `None` for everything that may be one."""
    keys = data.keys() if isinstance(data, dict) else frozenset()
    return next(((what, hint) for marks, what, hint in _OTHER if marks <= keys), None)


def recognise(data: Any, file: Path | None = None) -> Kind | None:
    """The kind of a document, or `None` when its keys do not tell.

    Args:
        data: the document.
        file: where it was read from; the name of an entity whose keys every kind has may tell (`datasets/rows.yaml`).
    """
    kind = told_kind(data, file)
    if kind is not None or not isinstance(data, dict) or is_part(data):
        return kind
    return _likely({key for key in data if isinstance(key, str)})


def told_kind(data: Any, file: Path | None = None) -> Kind | None:
    """As `recognise`, without guessing what a misspelt key would tell."""
    if not isinstance(data, dict) or is_part(data):
        return None
    keys = {key for key in data if isinstance(key, str)}
    named = None
    if file is not None and {"key", "display_name"} <= keys:
        named = _PLACES.get(file.stem.lower()) or _PLACES.get(file.absolute().parent.name.lower())
    if "definition" in keys:
        definition = data["definition"]
        if not definition and named == "generator":
            return "generator"
        made = isinstance(definition, dict) and (
            "synthesizers" in definition or definition.get("type") == "declarative_dataset_generator"
        )
        return "generator" if made else "task"
    if isinstance(data.get("tasks"), list) and any(isinstance(task, dict) for task in data["tasks"]):
        return "run"
    for kind, telling in _TELLING:
        if keys & telling:
            return kind
    scorers = data.get("risk_scorers")
    if isinstance(scorers, list) and all(isinstance(key, str) for key in scorers):
        return "app"
    if isinstance(data.get("config"), dict) and _CONNECTION & data["config"].keys():
        return "model"
    if keys & {"config", "secrets"} and not keys & {"key", "display_name"}:
        return "run"
    return named


_CONNECTION = frozenset(
    {"connection_type", "url", "adapter", "adapter_id", "provider_id", "run_inference_snippet"}
)
_COMMON = frozenset(
    {"key", "display_name", "description", "long_description", "tags", "config", "config_spec", "secrets"}
)


def _likely(keys: set[str]) -> Kind | None:
    """The kind that a misspelt key would tell."""
    words: dict[str, Kind] = {word: kind for kind, telling in reversed(_TELLING) for word in telling} | {
        "definition": "task"
    }
    best = 0.75
    found: Kind | None = None
    for key in keys - _COMMON:
        for word, kind in words.items():
            likeness = difflib.SequenceMatcher(None, key, word).ratio()
            if likeness > best:
                best, found = likeness, kind
    if found is not None:
        return found
    return "model" if "config" in keys else None

"""Detection of file kinds from their content."""

from __future__ import annotations

import difflib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from aigo_bridge.spec.datasets import DatasetGeneratorSpec, DatasetSpec
from aigo_bridge.spec.evaluations import (
    AppSpec,
    AssessmentPlanSpec,
    EvaluationSpec,
    PolicySpec,
    RiskMethodologySpec,
    RiskScorerSpec,
    RunSpec,
)
from aigo_bridge.spec.models import AdapterSpec, ModelSpec
from aigo_bridge.spec.task import ActionRuleSpec, TaskSpec

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


@dataclass(frozen=True)
class KindOfFile:
    """Kind of file with its distinguishing features."""

    spec: type[BaseModel]
    """Specification class of the kind."""
    noun: str
    """Name of the kind in messages."""
    keys: frozenset[str] = frozenset()
    """Top-level keys that only this kind has."""
    names: frozenset[str] = frozenset()
    """Names of files (without extension) and folders of this kind in published projects."""


KINDS: dict[Kind, KindOfFile] = {
    "task": KindOfFile(TaskSpec, "a task", names=frozenset({"task", "tasks"})),
    "generator": KindOfFile(
        DatasetGeneratorSpec,
        "a dataset generator",
        names=frozenset({"generator", "generators", "dataset_generator", "dataset_generators"}),
    ),
    "plan": KindOfFile(
        AssessmentPlanSpec,
        "an assessment plan",
        frozenset({"evaluation_specifications", "evaluations"}),
    ),
    "run": KindOfFile(
        RunSpec,
        "a run file",
        frozenset({"evaluation", "run_config", "model_adapters", "models"})
        | {"dataset_generators", "datasets", "policies"},
    ),
    "evaluation": KindOfFile(
        EvaluationSpec,
        "an evaluation",
        frozenset({"task_specifications", "use_cases", "domains", "providers"}),
        frozenset({"evaluation", "evaluations"}),
    ),
    "adapter": KindOfFile(AdapterSpec, "a model adapter", frozenset({"process_input", "process_output"})),
    "risk_scorer": KindOfFile(RiskScorerSpec, "a risk scorer", frozenset({"risk_scoring_methodology_key"})),
    "risk_methodology": KindOfFile(
        RiskMethodologySpec, "a risk scoring methodology", frozenset({"function", "metric_key"})
    ),
    "policy": KindOfFile(PolicySpec, "a policy", frozenset({"rules"}), frozenset({"policy", "policies"})),
    "action_rule": KindOfFile(ActionRuleSpec, "an action rule", frozenset({"filter", "action"})),
    "dataset": KindOfFile(
        DatasetSpec,
        "a dataset",
        frozenset({"source", "generator_specification", "file_path"}),
        frozenset({"dataset", "datasets"}),
    ),
    "app": KindOfFile(
        AppSpec,
        "an app",
        frozenset({"risk_profile", "key_info", "model_under_test_key", "judge_model_key"}),
        frozenset({"app", "apps"}),
    ),
    "model": KindOfFile(
        ModelSpec,
        "a model",
        frozenset({"rate_limit", "max_concurrent_requests", "adapter_id", "modality"}),
        frozenset({"model", "models"}),
    ),
}
"""Kinds in the order of detection. A key of several kinds counts for none of them, or for the first."""


def is_part(data: Any) -> bool:
    """Return whether a document is a scorer, solver, metric or similar: a target of `$ref`, not a file."""
    return isinstance(data, dict) and isinstance(data.get("type"), str) and "definition" not in data


# Keys that identify files of other programs, a description, and the command for the file.
_IMPORT = "import it with `aigo-bridge import`"
_OTHER: tuple[tuple[frozenset[str], str, str], ...] = (
    (
        frozenset({"evidence", "format_version"}),
        "a result log",
        "use it with `aigo-bridge validate`, `score` or `export`",
    ),
    (frozenset({"eval", "status"}), "a log of Inspect", _IMPORT),
    (frozenset({"config_general", "results"}), "the results of a lighteval run", _IMPORT),
    (
        frozenset({"evaluation", "results", "policies", "format"}),
        "the summary of an evaluation",
        "name the run file; the result logs are next to it",
    ),
)


def other_document(data: Any) -> tuple[str, str] | None:
    """Return the description of a file of another program, and the command for it; otherwise `None`."""
    keys = data.keys() if isinstance(data, dict) else frozenset()
    return next(((what, hint) for marks, what, hint in _OTHER if marks <= keys), None)


def recognise(data: Any, file: Path | None = None) -> Kind | None:
    """Return the kind of a document; `None` if neither its keys nor the name of its file determines it."""
    kind = told_kind(data, file)
    if kind is not None or not isinstance(data, dict) or is_part(data):
        return kind
    keys = (key for key in data if isinstance(key, str) and len(key) <= _LONGEST_GUESSED)
    return _likely(set(itertools.islice(keys, _MOST_GUESSED)))


def told_kind(data: Any, file: Path | None = None) -> Kind | None:
    """Return the kind as `recognise` does, without considering misspelt keys."""
    if not isinstance(data, dict) or is_part(data):
        return None
    keys = {key for key in data if isinstance(key, str)}
    named = None
    if file is not None and {"key", "display_name"} <= keys:
        named = _named(file.stem.lower()) or _named(file.absolute().parent.name.lower())
    if "definition" in keys:
        definition = data["definition"]
        if not definition and named == "generator":
            return "generator"
        is_generator = isinstance(definition, dict) and (
            "synthesizers" in definition or definition.get("type") == "declarative_dataset_generator"
        )
        return "generator" if is_generator else "task"
    if isinstance(data.get("tasks"), list) and any(isinstance(task, dict) for task in data["tasks"]):
        return "run"
    for kind, about in KINDS.items():
        if keys & about.keys:
            return kind
    scorers = data.get("risk_scorers")
    if isinstance(scorers, list) and all(isinstance(key, str) for key in scorers):
        return "app"
    if isinstance(data.get("config"), dict) and _CONNECTION & data["config"].keys():
        return "model"
    if keys & {"config", "secrets"} and not keys & {"key", "display_name"}:
        return "run"
    return named


def _named(name: str) -> Kind | None:
    return next((kind for kind, about in KINDS.items() if name in about.names), None)


_CONNECTION = frozenset(
    {"connection_type", "url", "adapter", "adapter_id", "provider_id", "run_inference_snippet"}
)
_COMMON = frozenset(
    {"key", "display_name", "description", "long_description", "tags", "config", "config_spec", "secrets"}
)


_MOST_GUESSED = 100
_LONGEST_GUESSED = 100
"""Maximum number of keys in a file, and of characters in a key, to compare with known keys. The comparison is
slow.
"""


def _likely(keys: set[str]) -> Kind | None:
    words: dict[str, Kind] = {
        **{word: kind for kind, about in reversed(KINDS.items()) for word in about.keys},
        "definition": "task",
    }
    best = 0.75
    likeliest: Kind | None = None
    for key in keys - _COMMON:
        for word, kind in words.items():
            likeness = difflib.SequenceMatcher(None, key, word).ratio()
            if likeness > best:
                best, likeliest = likeness, kind
    if likeliest is not None:
        return likeliest
    return "model" if "config" in keys else None

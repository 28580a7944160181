"""What kind of file something is, told by its content."""

from __future__ import annotations

import difflib
import itertools
from dataclasses import dataclass
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


@dataclass(frozen=True)
class KindOfFile:
    """A kind of file, and how it is told from others."""

    spec: type[BaseModel]
    """Its specification."""
    noun: str
    """Name of it in messages."""
    keys: frozenset[str] = frozenset()
    """Keys at the top that only this kind has."""
    names: frozenset[str] = frozenset()
    """Names of files (without ending) and folders of it, as published projects have them."""


KINDS: dict[Kind, KindOfFile] = {
    "task": KindOfFile(spec.TaskSpec, "a task", names=frozenset({"task", "tasks"})),
    "generator": KindOfFile(
        spec.DatasetGeneratorSpec,
        "a dataset generator",
        names=frozenset({"generator", "generators", "dataset_generator", "dataset_generators"}),
    ),
    "plan": KindOfFile(
        spec.AssessmentPlanSpec,
        "an assessment plan",
        frozenset({"evaluation_specifications", "evaluations"}),
    ),
    "run": KindOfFile(
        spec.RunSpec,
        "a run file",
        frozenset({"evaluation", "run_config", "model_adapters", "models"})
        | {"dataset_generators", "datasets", "policies"},
    ),
    "evaluation": KindOfFile(
        spec.EvaluationSpec,
        "an evaluation",
        frozenset({"task_specifications", "use_cases", "domains", "providers"}),
        frozenset({"evaluation", "evaluations"}),
    ),
    "adapter": KindOfFile(
        spec.AdapterSpec, "a model adapter", frozenset({"process_input", "process_output"})
    ),
    "risk_scorer": KindOfFile(
        spec.RiskScorerSpec, "a risk scorer", frozenset({"risk_scoring_methodology_key"})
    ),
    "risk_methodology": KindOfFile(
        spec.RiskMethodologySpec, "a risk scoring methodology", frozenset({"function", "metric_key"})
    ),
    "policy": KindOfFile(
        spec.PolicySpec, "a policy", frozenset({"rules"}), frozenset({"policy", "policies"})
    ),
    "action_rule": KindOfFile(spec.ActionRule, "an action rule", frozenset({"filter", "action"})),
    "dataset": KindOfFile(
        spec.DatasetSpec,
        "a dataset",
        frozenset({"source", "generator_specification", "file_path"}),
        frozenset({"dataset", "datasets"}),
    ),
    "app": KindOfFile(
        spec.AppSpec,
        "an app",
        frozenset({"risk_profile", "key_info", "model_under_test_key", "judge_model_key"}),
        frozenset({"app", "apps"}),
    ),
    "model": KindOfFile(
        spec.ModelSpec,
        "a model",
        frozenset({"rate_limit", "max_concurrent_requests", "adapter_id", "modality"}),
        frozenset({"model", "models"}),
    ),
}
"""In the order in which they are tried; a key that several kinds have counts for none of them, or for the
first.
"""


def is_part(data: Any) -> bool:
    """Whether a document is a scorer, solver, metric …: no file by itself, but what a `$ref` of one refers
    to.
    """
    return isinstance(data, dict) and isinstance(data.get("type"), str) and "definition" not in data


# What is no file of AI GO's at all, by keys that it has all of: what it is, and what takes it.
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
    """What a document is that is no file of AI GO's, and what takes it; `None` for everything that may be
    one.
    """
    keys = data.keys() if isinstance(data, dict) else frozenset()
    return next(((what, hint) for marks, what, hint in _OTHER if marks <= keys), None)


def recognise(data: Any, file: Path | None = None) -> Kind | None:
    """The kind of a document, or `None` when its keys do not tell.

    Args:
        data: the document.
        file: where it was read from; the name of an entity whose keys every kind has may tell
            (`datasets/rows.yaml`).
    """
    kind = told_kind(data, file)
    if kind is not None or not isinstance(data, dict) or is_part(data):
        return kind
    keys = (key for key in data if isinstance(key, str) and len(key) <= _LONGEST_GUESSED)
    return _likely(set(itertools.islice(keys, _MOST_GUESSED)))


def told_kind(data: Any, file: Path | None = None) -> Kind | None:
    """As `recognise`, without guessing what a misspelt key would tell."""
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
"""Keys of a file, and characters of one, that are compared with known ones: it takes long."""


def _likely(keys: set[str]) -> Kind | None:
    """The kind that a misspelt key would tell."""
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

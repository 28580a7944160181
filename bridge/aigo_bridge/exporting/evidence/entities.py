"""Models and datasets of results as AI GO entities, and the run file that refers to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.dtypes import StoredModel, TaskResultLog
from aigo_bridge.exporting.evidence.options import content_key, parameter_name
from aigo_bridge.text.plurals import plural

Json = dict[str, Any]

PLACEHOLDER = (
    "The connection is a placeholder: no request is sent, because the results are uploaded.",
    "To run the task again, connect this model on the platform, or name yours with --model-key.",
)


@dataclass(frozen=True)
class ModelEntity:
    """Evaluated model or judge."""

    key: str
    """Key on the platform."""
    names: tuple[str, ...]
    """Names of the model that --model-key accepts."""
    display_name: str
    kind: str = "chat_completion"
    is_reference: bool = False
    """Whether the model already exists on the platform."""

    @property
    def document(self) -> Json:
        """Content of the model file."""
        return {
            "key": self.key,
            "display_name": self.display_name,
            "description": f"Model of imported results: {self.names[0]}",
            "task": self.kind,
            "config": {"connection_type": "placeholder"},
        }


@dataclass(frozen=True)
class DatasetEntity:
    """Dataset with the rows in the results."""

    key: str
    name: str
    num_rows: int

    @property
    def document(self) -> Json:
        """Content of the dataset file."""
        document: Json = {
            "key": self.key,
            "display_name": self.name,
            "description": f"{plural(self.num_rows, 'row')} of imported results, as the samples have them.",
        }
        if self.num_rows:
            document["source"] = {"type": "local", "file_path": f"{self.key}.jsonl"}
        return document


@dataclass(frozen=True)
class ResultSpecification:
    """Result in the run file."""

    key: str
    task_key: str
    display_name: str
    log: str
    """Path of the log in the folder."""
    config: Mapping[str, Any]
    """Values of the task parameters."""
    model: str | None
    """Key of the evaluated model; `None` if the task does not evaluate a model."""
    frame: TaskResultLog = field(repr=False)
    num_trials: int = 1

    def document(self, model_parameters: Mapping[str, str], subsampling: Mapping[str, str]) -> Json:
        """Return the specification in the form of the run file."""
        run = self.frame.specification.run_config
        repeated = self.frame.specification.repeatability_config
        trials = run.trials_config.num_trials if run.trials_config is not None else self.num_trials
        document: Json = {"key": self.key, "task_key": self.task_key, "display_name": self.display_name}
        if self.config:
            document["task_config"] = dict(self.config)
        if self.model is not None:
            document["model_key"] = f"<< config.{model_parameters[self.model]} >>"
        if run.num_samples is not None:
            document["num_samples"] = run.num_samples
        if run.subsampling is not None:
            document["subsampling"] = f"<< config.{subsampling[run.subsampling.value]} >>"
        if trials > 1:
            document["trials"] = {"num_trials": trials}
        if repeated is not None:
            document["repeatability"] = {"num_runs": repeated.num_runs}
        return {**document, "task_result_log_path": self.log}


def evaluated_model(frame: TaskResultLog) -> ModelEntity | None:
    """Return the evaluated model of a result; `None` if it does not evaluate a model."""
    entity = frame.specification.evaluated_entity
    if not isinstance(entity, StoredModel):
        return None
    config = entity.config
    provider = getattr(config, "provider_id", None)
    name = getattr(config, "model_key", None) or entity.display_name
    if provider is not None:
        name = f"{provider.value}/{name}"
    url = getattr(config, "url", None)
    address = None if url is None or url.startswith(f"{entity.adapter_id}://") else url
    snippet = getattr(config, "run_inference_snippet", None)
    key = content_key(entity.key, [entity.key, name, address, snippet])
    names = tuple(dict.fromkeys((name, entity.display_name, entity.key)))
    return ModelEntity(key, names, entity.display_name, entity.task.value)


def other_model(name: str, asked: str | None) -> ModelEntity:
    """Return a judge, or another model that a task calls, and the engine's name for it if it answered."""
    names = (name,) if asked is None else (name, asked)
    return ModelEntity(content_key(name, [name, asked]), names, name)


def run_document(
    key: str,
    display_name: str,
    specifications: Sequence[ResultSpecification],
    models: Iterable[ModelEntity],
    files: Mapping[str, Sequence[str]],
) -> Json:
    """Return the run file with a specification for each result. `files` is `models`, `datasets` and `tasks` →
    their files.
    """
    evaluated = {specification.model for specification in specifications}
    parameters: list[Json] = []
    values: Json = {}
    of_models: dict[str, str] = {}
    for model in models:
        if model.key in evaluated and model.key not in of_models:
            name = of_models[model.key] = parameter_name(f"model_{model.key}", values)
            parameters.append({"type": "model", "key": name, "display_name": model.display_name})
            values[name] = model.key
    of_choices: dict[str, str] = {}
    for choice in sorted(_choices(specifications)):
        name = of_choices[choice] = parameter_name(f"subsampling_{choice}", values)
        parameters.append(
            {
                "type": "categorical",
                "key": name,
                "display_name": f"Subsampling {choice}",
                "allowed_values": ["head", "random"],
            }
        )
        values[name] = choice
    evaluation: Json = {
        "key": key,
        "display_name": display_name,
        "description": f"{len(specifications)} imported results",
    }
    if parameters:
        evaluation["config_spec"] = parameters
    evaluation["task_specifications"] = [
        specification.document(of_models, of_choices) for specification in specifications
    ]
    return {
        **{name: [{"$ref": file} for file in found] for name, found in files.items() if found},
        "evaluation": evaluation,
        **({"config": values} if values else {}),
        "run_config": {"cache_policy": "reuse"},
    }


def _choices(specifications: Iterable[ResultSpecification]) -> set[str]:
    runs = [specification.frame.specification.run_config for specification in specifications]
    return {run.subsampling.value for run in runs if run.subsampling is not None}

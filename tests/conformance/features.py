"""Feature tasks: one small AI GO task for each feature of the format, with scripted model answers and a
hand-written expectation.

The features are in `features/*.yaml`, several in each file. Each document contains:

- `feature`: name of the feature. The file name is its area. Both are used in the support table.
- `definition`: definition of the task, or `jsonl`: task records that are converted to a task.
- `ask`: template; short for a single turn solver with this message.
- `rows`, or `rows_file`: `name` (its extension determines the format) and `text`.
- `model`: rules of the evaluated model, and `models`: rules of other models by AI GO key. A mapping is short
  for the text of the last message and its reply, with `default` for other messages.
- `model_file`: a model entity in place of rules.
- `tiny_model`: a small transformer with random weights that returns likelihoods.
- `snippets`: `worker` runs the author's Python in a worker process, as for users. Otherwise it runs in this
  process.
- `prices: true`: the model has a price.
- `config`, `config_spec`, `options` (of the job and the run), `num_samples`, `subsampling`.
- `again`: a second run in the same folder, whose outcome is checked. It has its own `model` and `options`.
  With `stored: true`, the outputs of the first run are scored with `scorers`.
- `expect`: expected outcome of every engine; see `expecting.py`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.evaluation.task import plan
from aigo_bridge.jsonl_spec import to_aigo, validate_file, write_aigo
from aigo_bridge.plan.plan import PlanOrigin, TaskPlan

FOLDER = Path(__file__).parent / "features"

AREAS = ("solvers", "scorers", "judges", "metrics", "trials", "rules", "failures", "data", "models", "runs")
"""Files with features, in the order of the support table."""

KEYS = frozenset(
    {
        "feature",
        "ask",
        "definition",
        "jsonl",
        "rows",
        "rows_file",
        "model",
        "model_file",
        "prices",
        "tiny_model",
        "again",
        "snippets",
        "models",
        "config",
        "config_spec",
        "options",
        "num_samples",
        "subsampling",
        "expect",
    }
)


@dataclass(frozen=True)
class Feature:
    """One feature of the format."""

    name: str
    area: str
    document: Mapping[str, Any]
    expect: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Area and name, as in test ids and the ledger."""
        return f"{self.area}: {self.name}"


@dataclass(frozen=True)
class Ready:
    """A feature written to files and planned, the input of an engine."""

    plan: TaskPlan
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Models and limits of the run."""
    again: Callable[[Path], Ready] | None = None
    """Function that prepares the second run from the result of the first; `None` without a second run."""


@cache
def features() -> tuple[Feature, ...]:
    """Return all features, in the order of the support table."""
    found: list[Feature] = []
    for area in AREAS:
        for document in yaml.safe_load_all((FOLDER / f"{area}.yaml").read_text(encoding="utf-8")):
            unknown = set(document) - KEYS
            assert not unknown, f"{area}: {document.get('feature')}: unknown keys {unknown}"
            found.append(Feature(document["feature"], area, document, document["expect"]))
    names = [each.id for each in found]
    assert len(set(names)) == len(names), "two features have the same name"
    return tuple(found)


def ready(feature: Feature, folder: Path) -> Ready:
    """Write the files of a feature and plan its task."""
    document = feature.document
    _write(files_of(document), folder)
    task = _convert_records(folder / "records.jsonl", folder) if "jsonl" in document else folder / "task.yaml"
    made = plan(
        PlanOrigin(
            str(task),
            config=document.get("config", {}),
            num_samples=document.get("num_samples"),
            subsampling=document.get("subsampling"),
        )
    )
    models = {key: f"scripted/{folder / key}.rules" for key in document.get("models", {})}
    settings: dict[str, Any] = {"model_map": models, "max_connections": 1, **document.get("options", {})}
    if made.calls_model:
        settings["model"] = _model(document, folder)
    if "again" not in document:
        return Ready(made, settings)
    return Ready(made, settings, lambda result: _again(feature, document["again"], folder, result))


def _again(feature: Feature, change: Mapping[str, Any], folder: Path, result: Path) -> Ready:
    """Prepare the second run with the same files, so that it has the same task and models."""
    document = {name: value for name, value in feature.document.items() if name != "again"}
    document |= {name: value for name, value in change.items() if name in KEYS}
    if not change.get("stored"):
        return ready(replace(feature, document=document), folder)
    stored = result.with_name("stored.tasklog.json")
    shutil.copyfile(result, stored)
    definition = {**document["definition"], "scorers": change["scorers"]}
    again = folder / stored.parent.name
    _write(_task_files({**document, "definition": definition}), again)
    return Ready(plan(PlanOrigin(str(again / "task.yaml"), stored=str(stored))), {"model_map": {}})


def files_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the files of a feature by name (task or records, rows and models), except a model with
    weights.
    """
    files: dict[str, str] = {}
    if "jsonl" in document:
        files["records.jsonl"] = _lines(document["jsonl"])
    else:
        files |= _task_files(document)
    files |= {f"{key}.rules": _rules(rules) for key, rules in document.get("models", {}).items()}
    if "model_file" in document:
        files["model.yaml"] = yaml.safe_dump(document["model_file"])
    elif "model" in document:
        files["model.rules"] = _rules(document["model"])
    return files


def _model(document: Mapping[str, Any], folder: Path) -> str:
    if "model_file" in document:
        return str(folder / "model.yaml")
    if "tiny_model" in document:
        from tests.support.tiny_model import save_tiny_model

        return f"transformers/{save_tiny_model(folder / 'model')}"
    return f"scripted/{folder / 'model.rules'}"


def _write(files: Mapping[str, str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")


def _task_files(document: Mapping[str, Any]) -> dict[str, str]:
    files: dict[str, str] = {}
    definition = dict(document["definition"])
    if definition.get("type") != "system_task":
        rows = document.get("rows")
        file = document.get("rows_file", {"name": "rows.jsonl", "text": None})
        files[file["name"]] = _lines(rows) if rows is not None else file["text"]
        definition.setdefault("dataset", {"key": "rows"})
    if "ask" in document:
        message = {"role": "user", "content": document["ask"]}
        definition["solver"] = {
            "type": "single_turn_solver",
            "input_builder": {"type": "chat_completion", "input_messages": [message]},
        }
    task = {
        "key": "feature",
        "display_name": "Feature",
        "description": "",
        "config_spec": document.get("config_spec", []),
        "definition": definition,
    }
    return {**files, "task.yaml": yaml.safe_dump(task, allow_unicode=True, sort_keys=False)}


def _convert_records(source: Path, folder: Path) -> Path:
    tasks, errors = validate_file(source)
    assert not errors, errors
    return write_aigo(to_aigo(tasks, key="feature"), folder / "task")


def _rules(rules: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> str:
    if isinstance(rules, Mapping):
        rules = [
            {"default": True, "reply": reply}
            if text == "default"
            else {"match": {"exact": text}, "reply": reply}
            for text, reply in rules.items()
        ]
    return _lines(rules)


def _lines(values: Sequence[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)

"""Assembly of an export to AI GO in a draft folder: logs, entities, the run file, and losses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.provenance import provenance_of
from aigo_bridge.errors import EvidenceError, Issue, UsageError
from aigo_bridge.exporting.evidence.entities import (
    PLACEHOLDER,
    DatasetEntity,
    ModelEntity,
    ResultSpecification,
    evaluated_model,
    other_model,
    run_document,
)
from aigo_bridge.exporting.evidence.logs import Attachments, WrittenLog, faults_of, write_evidence
from aigo_bridge.exporting.evidence.options import EvidenceOptions, content_key, key_part
from aigo_bridge.exporting.evidence.sources import EvidenceSource
from aigo_bridge.exporting.evidence.tasks import TaskEntity, code_files, dataset_name, task_entity
from aigo_bridge.exporting.evidence.yaml_text import with_snippet_files, yaml_text
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.rules import redaction

LOG = "task_result_log.json"
"""Name of a log in `task_results/KEY/`, as in exports of the platform itself."""


@dataclass
class Assembly:
    """Export folder during its assembly."""

    folder: Path
    options: EvidenceOptions
    redaction: Redactor = field(default_factory=redaction)
    specifications: dict[str, ResultSpecification] = field(default_factory=dict)
    tasks: dict[str, TaskEntity] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    """Key of a task that exists on the platform → its key in the results."""
    models: dict[str, ModelEntity] = field(default_factory=dict)
    datasets: dict[str, DatasetEntity] = field(default_factory=dict)
    issues: list[Issue] = field(default_factory=list)
    """Results that cannot be exported."""
    gaps: list[Issue] = field(default_factory=list)
    """Parts that AI GO cannot store."""
    lost: dict[str, Counter[str]] = field(default_factory=dict)
    """Specification → parts that its log lacks: kind → count."""
    repeated: list[str] = field(default_factory=list)
    """Results that were given twice."""
    evaluations: dict[str, str] = field(default_factory=dict)
    """Key of the results' evaluation → its display name."""
    used: set[str] = field(default_factory=set)
    """Names of --model-key and --task-key that were used."""

    def add(self, source: EvidenceSource) -> None:
        """Add a result and collect its errors and gaps."""
        errors, unknown = faults_of(source.path)
        if errors:
            self.issues += errors
            return
        number = len(list(self.folder.glob(".log-*")))
        log_file, rows = self.folder / f".log-{number}.json", self.folder / f".rows-{number}.jsonl"
        try:
            choice = self.options.attachments
            attachments = None if choice == "keep" else Attachments(choice, self.folder)
            log = write_evidence(
                source.path, log_file, rows, self.options.events, self.redaction, attachments
            )
        except EvidenceError as error:
            self.issues += error.issues
            return
        log.dropped.update(source.dropped)
        log.dropped.update(
            f"field that AI GO does not have: {issue.path[-1]}" for issue in unknown if issue.path
        )
        self._place(source, log, log_file)

    def _place(self, source: EvidenceSource, log: WrittenLog, log_file: Path) -> None:
        frame = log.frame
        model = evaluated_model(frame)
        if model is not None:
            model = self._model(model)
        task, task_key, config = self._task(source, log)
        key = self._specification_key(source, log, model)
        if key in self.specifications:
            self.repeated.append(source.name)
            log_file.unlink()
            return
        name = frame.specification.display_name
        place = f"task_results/{key}/{LOG}"
        # If the definition declares trials, the specification does not need their number.
        has_trials = bool(task is not None and task.document["definition"].get("trials"))
        self.specifications[key] = ResultSpecification(
            key, task_key, name, place, config, None if model is None else model.key, frame,
            1 if has_trials else log.num_trials,
        )  # fmt: skip
        target = self.folder / place
        target.parent.mkdir(parents=True)
        log_file.rename(target)
        if log.dropped:
            self.lost[key] = log.dropped
        of_run_file = source.evaluation.get("evaluation") if isinstance(source.evaluation, Mapping) else None
        if isinstance(of_run_file, dict) and isinstance(of_run_file.get("key"), str):
            named = of_run_file["key"]
            self.evaluations[named] = str(of_run_file.get("display_name") or named)

    def _specification_key(self, source: EvidenceSource, log: WrittenLog, model: ModelEntity | None) -> str:
        if source.key is not None and source.key.endswith(f"-{log.identity[:12]}"):
            return source.key  # The key comes from an earlier export.
        parts = [source.key or log.frame.specification.task.key]
        if source.key is None and model is not None:
            parts.append(model.display_name)
        return f"{'-'.join(key_part(part) for part in parts)}-{log.identity[:12]}"

    def _task(
        self, source: EvidenceSource, log: WrittenLog
    ) -> tuple[TaskEntity | None, str, Mapping[str, Any]]:
        """Return the task of a result, its key, and the values of its parameters."""
        frame = log.frame
        named = frame.specification.task.key
        known = self._given(self.options.task_keys, (named, frame.specification.task.display_name))
        dataset = dataset_name(frame)
        task = task_entity(frame, dataset, log.scorers)
        if known is not None:
            self.references[known] = named
            return None, known, {} if task.is_described else self._config(task, source)
        self.gaps += task.gaps
        key = content_key(named, task.identity)
        self.tasks.setdefault(key, task)
        config = self._config(task, source)
        if task.dataset_parameter is not None:
            config[task.dataset_parameter] = self._dataset(dataset or named, log).key
        return task, key, config

    def _config(self, task: TaskEntity, source: EvidenceSource) -> dict[str, Any]:
        config = dict(task.config)
        if task.models:
            asked = _models_asked(source.path)
            for parameter, name in task.models.items():
                config[parameter] = self._model(other_model(name, asked.get(name))).key
        return config

    def _dataset(self, name: str, log: WrittenLog) -> DatasetEntity:
        key = content_key(name, [name, log.rows_digest])
        if key not in self.datasets:
            self.datasets[key] = DatasetEntity(key, name, log.num_rows)
            if log.num_rows:
                place = self.folder / "datasets" / f"{key}.jsonl"
                place.parent.mkdir(exist_ok=True)
                log.rows.rename(place)
        return self.datasets[key]

    def _model(self, model: ModelEntity) -> ModelEntity:
        known = self._given(self.options.model_keys, model.names)
        if known is not None:
            model = ModelEntity(known, model.names, model.display_name, model.kind, is_reference=True)
        other = self.models.setdefault(model.key, model)
        if known is not None and not set(other.names) & set(model.names):
            raise UsageError(
                f"--model-key: {other.names[0]!r} and {model.names[0]!r} are different models, and both are"
                f" given the key {known!r}",
                code=Code.WRONG_OPTION,
            )
        return other

    def _given(self, keys: Mapping[str, str], names: tuple[str, ...]) -> str | None:
        name = next((name for name in names if name in keys), None)
        if name is None:
            return None
        self.used.add(name)
        return keys[name]

    def check_names(self) -> None:
        """Check that the results contain all names of --model-key and --task-key.

        Raises:
            UsageError: a name is unknown; the message lists the known ones.
        """
        models = sorted({name for model in self.models.values() for name in model.names})
        tasks = sorted({*(task.name for task in self.tasks.values()), *self.references.values()})
        for option, given, known in (
            ("--model-key", self.options.model_keys, models),
            ("--task-key", self.options.task_keys, tasks),
        ):
            unknown = [name for name in given if name not in self.used]
            if unknown:
                raise UsageError(
                    f"{option}: no result has {', '.join(map(repr, unknown))}; expected one of"
                    f" {', '.join(map(repr, known)) or 'none'}",
                    code=Code.UNKNOWN_CHOICE,
                )

    # Output files

    def write_entities(self) -> str:
        """Write tasks, models, datasets and the run file; return the key of the evaluation."""
        files: dict[str, list[str]] = {"models": [], "datasets": [], "tasks": []}
        for model in sorted(self.models.values(), key=lambda model: model.key):
            if not model.is_reference:
                files["models"].append(self._write("models", model.key, model.document, *PLACEHOLDER))
        for dataset in sorted(self.datasets.values(), key=lambda dataset: dataset.key):
            files["datasets"].append(self._write("datasets", dataset.key, dataset.document))
        for key, task in sorted(self.tasks.items()):
            files["tasks"].append(self._write_task(key, task))
        specifications = [self.specifications[key] for key in sorted(self.specifications)]
        key, name = self._evaluation()
        document = run_document(key, name, specifications, self.models.values(), files)
        self._text(
            "run.yaml",
            yaml_text(
                document, "written by aigo-bridge export --to aigo: run it with lf run -f run.yaml --wait"
            ),
        )
        for leftover in (*self.folder.glob(".rows-*"), *self.folder.glob(".log-*")):
            leftover.unlink()
        return key

    def _evaluation(self) -> tuple[str, str]:
        key = self.options.evaluation_key
        name = "Imported results"
        if len(self.evaluations) == 1:
            ((named, name),) = self.evaluations.items()
        else:
            named = "evidence"
        return key or content_key(named, sorted(self.specifications)), name

    def _write(self, folder: str, key: str, document: Mapping[str, Any], *comments: str) -> str:
        # A key that the user chose may contain `$`.
        name = f"{folder}/{key.replace('$', '-')}.yaml"
        self._text(name, yaml_text(document, *comments))
        return name

    def _write_task(self, key: str, task: TaskEntity) -> str:
        codes = code_files()
        if task.is_described:
            text = yaml_text({"key": key, **task.document})
            for name, code in codes.items():
                if f"!include '{name}'" in text or f"!include {name}" in text or f'!include "{name}"' in text:
                    self._text(f"tasks/{name}", code)
            self._text(f"tasks/{key}.yaml", text)
            return f"tasks/{key}.yaml"
        snippets: dict[str, str] = {}
        document = with_snippet_files(task.document, key, snippets)
        for name, code in snippets.items():
            self._text(f"tasks/{name}", code)
        self._text(f"tasks/{key}.yaml", yaml_text({"key": key, **document}))
        return f"tasks/{key}.yaml"

    def _text(self, name: str, text: str) -> None:
        file = self.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(self.redaction.text(text), encoding="utf-8", newline="\n")

    def text(self, name: str, text: str) -> None:
        """Write an additional file to the folder."""
        self._text(name, text)


def _models_asked(result: Path) -> Mapping[str, str]:
    """Return name of a model in the task → model that answered, if the result's provenance has it."""
    try:
        record = provenance_of(result)
    except EvidenceError:
        return {}
    run = (record or {}).get("run")
    models = run.get("models") if isinstance(run, dict) else None
    return models if isinstance(models, dict) else {}

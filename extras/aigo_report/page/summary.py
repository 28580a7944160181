"""Summary of a result for its page: task and model, metrics with sample counts, failures, verification."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aigo_bridge.access.opening import is_below
from aigo_bridge.dtypes import TaskResultError, TaskResultLog
from aigo_bridge.errors import BridgeError
from aigo_bridge.metrics.grades import GRADES, WORDS, is_graded
from aigo_bridge.results.counts import ResultTally, is_unfinished, scorers_of
from aigo_bridge.results.reading import SamplePart
from aigo_bridge.results.rows import TrialRow
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.stop_reasons import incomplete_texts
from aigo_bridge.results.superseded_results import STATUS, superseded_by
from aigo_bridge.results.values import Json, duration_text, json_line, mappings, member, number_text, tree
from aigo_report.page.metrics import (
    ColumnValues,
    MetricReader,
    breakdown_rows,
    label_scores,
    metric_rows,
    run_rows,
)

LONGEST = 2_000
"""Maximum number of characters of a value of the task, model or configuration."""
LARGEST_CHECKED = 64_000_000
"""Maximum size in bytes of a result that is verified while its page is written."""
_SIDECARS = (".provenance.json", ".intoto.json")
_STATES = {"verified": "verified", "partly verified": "partly verified", "FAILED": "altered"}
_ENDINGS = (".tasklog.json", ".tasklog.jsonl", ".json", ".jsonl")

Verify = Callable[[Path], Any]
"""Function that verifies a result: `aigo_bridge.verify`."""


@dataclass
class ModelUse:
    """Total usage of one model."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    unknown: int = 0
    """Number of calls without usage data."""


@dataclass
class ResultTotals:
    """Totals of a result's samples, counted while they are read."""

    samples: int = 0
    """Number of samples of the task and of all runs."""
    tally: ResultTally = field(default_factory=ResultTally)
    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    """Number of samples with an error, by stage and error type."""
    rules: Counter[str] = field(default_factory=Counter)
    """Number of excluded samples for each rule."""
    excluded: int = 0
    """Number of samples that action rules exclude from the metrics, including failed samples."""
    stages: Counter[str] = field(default_factory=Counter)
    """Number of samples with an error in each stage."""
    scored: Counter[str] = field(default_factory=Counter)
    """Number of samples with a value of each scorer, without excluded samples."""
    models: dict[str, ModelUse] = field(default_factory=dict)
    seconds: array[float] = field(default_factory=lambda: array("d"))
    """Known trial times in seconds."""
    call_seconds: array[float] = field(default_factory=lambda: array("d"))
    digest: Any = field(default_factory=hashlib.sha256)
    values: ColumnValues = field(default_factory=ColumnValues)

    def add(self, part: SamplePart, rows: Sequence[TrialRow]) -> None:
        """Count a sample."""
        sample = part.value
        self.samples += 1
        self.tally.add(part)
        errors = {error for row in rows for error in row.errors}
        stages = {stage for stage, _ in errors}
        for stage, kind in errors:
            self.kinds.setdefault(stage, Counter())[kind] += 1
        excluded = any("x" in row.cells for row in rows)
        self.excluded += excluded
        self.stages.update(stages)
        scored = frozenset[str]().union(*(row.scored for row in rows)) | _aggregated(sample)
        self.rules.update({rule for row in rows for rule in row.cells.get("x", ())})
        if not excluded:
            self.scored.update(scored)
        if part.run is None:
            self.values.add(rows[0].cells.get("d", {}) if rows else {})
        for row in rows:
            if "w" in row.cells:
                self.seconds.append(float(row.cells["w"]))
            for call in row.calls:
                self._count_call(call)
        self.digest.update(json_line(_data(sample)))
        self.digest.update(b"\n")

    def _count_call(self, call: Any) -> None:
        use = self.models.setdefault(call.model, ModelUse())
        use.calls += 1
        use.failed += call.failed
        if call.seconds is not None:
            self.call_seconds.append(call.seconds)
        if call.prompt_tokens is None or call.completion_tokens is None:
            use.unknown += 1
        use.prompt_tokens += call.prompt_tokens or 0
        use.completion_tokens += call.completion_tokens or 0


def _aggregated(sample: Json) -> frozenset[str]:
    """Return the scorers with an aggregated value over the trials of a sample."""
    return frozenset(
        str(score.get("scorer_key"))
        for score in mappings(sample.get("scores"))
        if any(value is not None for value in (score.get("values") or {}).values())
    )


def _data(sample: Json) -> Any:
    """Return the dataset row of a sample."""
    trial = next(mappings(sample.get("trials")), sample)
    return member(trial, "sample", "data") or member(sample, "sample", "data")


def result_summary(
    source: ResultSource,
    log: TaskResultLog,
    totals: ResultTotals,
    reader: MetricReader,
    verify: Verify | None = None,
) -> Json:
    """Return a result without its samples, as displayed on the page.

    Args:
        source: source of the result.
        log: log without samples.
        totals: totals over the samples of the task and of all runs.
        reader: collector with the scores of all samples.
        verify: function that verifies the result; `None` to skip verification.
    """
    columns = reader.columns(source.path, log)
    specification = log.specification
    entry = source.entry or {}
    evidence = log.evidence
    counts = totals.tally.counts(scorers_of(log))
    errors = [*log.errors, *(evidence.errors if evidence is not None else ())]
    return {
        "name": source.name,
        "file": None if source.path is None else source.path.name,
        "title": _specification_name(source) or specification.display_name,
        "task": specification.task.key,
        "model": _entity_name(log),
        "status": log.status if superseded_by(specification.config) is None else STATUS,
        "dataset": dataset_name(specification.model_dump(mode="json", exclude_unset=True)),
        "engine": _engine(log),
        "started": log.execution.started_at,
        "seconds": log.execution.runtime,
        "verification": verification_of(source.path, source.root, verify),
        "breakdowns": breakdown_rows(columns, totals.values),
        "facts": [[label, text] for label, text in _facts(log, totals) if text is not None],
        "description": specification.task.description,
        "configuration": [
            [label, tree(value, LONGEST)]
            for label, value in _configuration(log)
            if value not in (None, {}, [])
        ],
        "metrics": list(metric_rows(log, entry, columns, scorer_counts(totals))),
        "runs": run_rows(log),
        "labels": label_scores(columns),
        "grades": GRADES | WORDS if is_graded(specification.config) else None,
        "counts": {
            **counts.to_json(),
            "missing": member(entry, "samples", "missing"),
            "stated": None if evidence is None or evidence.failures is None else asdict_of(evidence.failures),
        },
        "stopped": incomplete_texts(totals.tally.stop_reasons),
        "unfinished": is_unfinished(log),
        "stages": [
            [stage, number, totals.kinds[stage].most_common()]
            for stage, number in totals.stages.most_common()
        ],
        "rules": totals.rules.most_common(),
        "errors": [_error(error) for error in errors],
        "problems": [*_texts(entry.get("faults")), *_texts(entry.get("problem")), *_warnings(entry)],
        "models": [{"model": name, **asdict(use)} for name, use in totals.models.items()],
        "usage": None
        if log.execution.model_usage is None
        else log.execution.model_usage.model_dump(mode="json"),
        "times": {
            "a trial": _times(totals.seconds),
            "a model call": _times(totals.call_seconds),
        },
    }


def _specification_name(source: ResultSource) -> str | None:
    """Return the name of a result in a run file. The titles of its logs may all be the same."""
    entry = source.entry or {}
    return str(entry.get("display_name") or source.name) if source.run_file is not None else None


def scorer_counts(totals: ResultTotals) -> dict[str, Json]:
    """Return the number of samples with a value for each scorer, and the outcomes of the others."""
    return {
        scorer: {
            "scored": scored,
            "excluded": totals.excluded,
            "without": totals.samples - scored - totals.excluded,
        }
        for scorer, scored in totals.scored.items()
    }


def asdict_of(failures: Any) -> Json:
    """Return failure counts as plain data."""
    return {"failed": failures.num_errors, "total": failures.num_total}


def broken_summary(source: ResultSource, problems: Sequence[str]) -> Json:
    """Return a summary for a result that is unreadable or missing from an evaluation."""
    entry = source.entry or {}
    return {
        "name": source.name,
        "file": None if source.path is None else source.path.name,
        "title": str(entry.get("display_name") or source.name),
        "task": str(entry.get("task") or source.name),
        "model": str(member(entry, "models", "") or ""),
        "status": "unreadable" if source.path is not None else "missing",
        "problems": [*problems, *_texts(entry.get("problem"))],
    }


def evaluation_summary(evaluation: Json) -> Json:
    """Return the facts of a run file beyond its results: its name and its policy outcomes."""
    return {
        "name": str(member(evaluation, "evaluation", "display_name") or ""),
        "key": str(member(evaluation, "evaluation", "key") or ""),
        "file": str(member(evaluation, "evaluation", "file") or ""),
        "status": str(evaluation.get("status")),
        "policies": [
            {
                "policy": str(rule.get("policy")),
                "rule": str(rule.get("rule")),
                "name": str(rule.get("display_name")),
                "passed": rule.get("passed") is True,
                "reason": str(rule.get("reason")),
            }
            for rule in mappings(evaluation.get("policies"))
        ],
    }


def dataset_name(specification: Json) -> str | None:
    """Return the dataset name of a result's task."""
    dataset = member(specification, "task", "definition", "dataset")
    names = [member(dataset, name) for name in ("display_name", "key", "id")]
    names.append(member(specification, "config", "inspect", "eval", "dataset", "name"))
    return next((str(name) for name in names if isinstance(name, str) and name), None)


def _engine(log: TaskResultLog) -> str | None:
    entity = log.specification.evaluated_entity
    return getattr(entity, "adapter_id", None)  # an adapter is not a dataset


def _entity_name(log: TaskResultLog) -> str:
    entity = log.specification.evaluated_entity
    return "" if entity is None else entity.display_name


def _facts(log: TaskResultLog, totals: ResultTotals) -> Iterator[tuple[str, str | None]]:
    """Yield label and text of each fact about the run: subject, settings and times."""
    specification, execution = log.specification, log.execution
    entity: Json = (
        {}
        if specification.evaluated_entity is None
        else specification.evaluated_entity.model_dump(mode="json", exclude_unset=True)
    )
    config = entity.get("config") or {}
    yield "Task", f"{specification.task.display_name} ({specification.task.key})"
    yield "Superseded by", superseded_by(specification.config)
    yield "Evaluated", entity.get("display_name")
    if config.get("model_key") != entity.get("display_name"):
        yield "Model", config.get("model_key")
    yield "Connection", config.get("url") or config.get("connection_type")
    yield "Engine", entity.get("adapter_id")
    if totals.samples:
        yield "Digest of the rows", f"sha256:{totals.digest.hexdigest()}"
    yield "Began", _moment(execution.started_at)
    yield "Ended", _moment(execution.ended_at)
    yield "Took", duration_text(execution.runtime)
    yield "Written by", log.app_version
    yield "Format", log.format_version


_SHOWN = frozenset({"model_key", "url", "connection_type", "adapter_id"})


def _configuration(log: TaskResultLog) -> Iterator[tuple[str, Any]]:
    """Yield label and value of each configuration setting."""
    specification = log.specification
    entity = specification.evaluated_entity
    config = {} if entity is None else entity.model_dump(mode="json", exclude_unset=True).get("config") or {}
    yield "Parameters of the model", {key: value for key, value in config.items() if key not in _SHOWN}
    yield "Configuration of the task", specification.config
    yield "Run configuration", specification.run_config.model_dump(mode="json", exclude_unset=True)
    yield "Definition of the task", specification.task.definition.model_dump(mode="json", exclude_unset=True)


def _moment(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return number_text(seconds)


def _times(seconds: array[float]) -> Json | None:
    """Return nearest-rank percentiles. Each of them is a measured time."""
    if not seconds:
        return None
    ordered = sorted(seconds)

    def rank(share: float) -> str:
        return number_text(ordered[max(0, math.ceil(share * len(ordered)) - 1)])

    return {
        "n": len(ordered),
        "min": number_text(ordered[0]),
        "median": rank(0.5),
        "p95": rank(0.95),
        "max": number_text(ordered[-1]),
        "total": number_text(round(math.fsum(ordered), 6)),
    }


def _error(error: TaskResultError) -> Json:
    return {
        "type": error.error_type,
        "message": error.message,
        "hint": error.hint,
        "stage": error.stage.value if error.stage is not None else None,
    }


def _texts(values: Any) -> list[str]:
    if values is None:
        return []
    return [values] if isinstance(values, str) else [str(value) for value in _iterable(values)]


def _iterable(values: Any) -> Iterable[Any]:
    return values if isinstance(values, list) else ()


def _warnings(entry: Any) -> list[str]:
    return [str(warning.get("message")) for warning in mappings(entry.get("warnings"))]


def verification_of(result: Path | None, root: Path | None, verify: Verify | None) -> Json:
    """Return state, reason and levels of a verification. A result without a provenance file is not verified.

    Args:
        result: path of the result log.
        root: folder that must contain the files; `None` for any folder.
        verify: function that verifies the result; `None` to skip verification.
    """
    if verify is None:
        return _unchecked("not checked when this page was written")
    if result is None or not _has_provenance(result, root):
        return _unchecked("no provenance file is next to the result")
    try:
        if result.stat().st_size > LARGEST_CHECKED:
            return _unchecked("the result is too large to check while the page is written")
        checked = verify(result)
    except (BridgeError, OSError) as error:
        return _unchecked(str(error))
    levels = [
        [
            level.title,
            level.verdict,
            level.reason or "; ".join([*map(str, level.findings[:5]), *level.notes]),
        ]
        for level in checked.levels
    ]
    return {"state": _STATES[checked.verdict], "reason": checked.summary, "levels": levels}


def _has_provenance(result: Path, root: Path | None) -> bool:
    stem = next((result.name.removesuffix(end) for end in _ENDINGS if result.name.endswith(end)), None)
    if stem is None:
        return False
    files = [result.with_name(f"{stem}{sidecar}") for sidecar in _SIDECARS]
    found = [file for file in files if file.is_file()]
    return bool(found) and (root is None or all(is_below(file, root) for file in found))


def _unchecked(reason: str) -> Json:
    return {"state": "not checked", "reason": reason, "levels": []}

"""Reader of a run's results file, with limits, and the parts that one task's result needs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.access.bounds import Bounds
from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError
from aigo_bridge.importing.places import FileLocation
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.text.json_text import DEEPEST, dumps, read_json_once, without_depths

Json = dict[str, Any]
_BY_TASK = ("versions", "n-shot", "higher_is_better", "n-samples", "task_hashes")
"""Tables by task, in addition to results and configurations."""
_COMMON = ("results", "groups", "group_subtasks", "configs", "samples", *_BY_TASK)
_STDERR = "_stderr"
NOT_METRICS = frozenset({"alias", "name", "sample_len", "sample_count", "samples"})
"""Entries among a task's metrics that are not metrics."""

DEFAULT_AGGREGATIONS = {
    "acc": "mean",
    "acc_norm": "mean",
    "acc_bytes": "mean",
    "acc_mutual_info": "mean",
    "exact_match": "mean",
    "brier_score": "brier_score",
    "likelihood": "mean",
    "perplexity": "perplexity",
    "word_perplexity": "weighted_perplexity",
    "byte_perplexity": "weighted_perplexity",
    "bits_per_byte": "bits_per_byte",
    "mcc": "matthews_corrcoef",
    "f1": "f1",
    "bleu": "bleu",
    "chrf": "chrf",
    "ter": "ter",
}
"""Default aggregation by metric."""


@dataclass(frozen=True)
class StoredMetric:
    """Metric of a task in the results file."""

    metric: str
    filter: str
    """Filter that was applied to the answers."""
    value: Any
    stderr: Any
    """Standard error; `None` or `"N/A"` if missing."""

    @property
    def name(self) -> str:
        """Return the name in the evidence: the metric name, with the filter name if there is a filter."""
        return score_name(self.metric, self.filter)


def score_name(metric: str, filter_name: str) -> str:
    """Return `acc`, or `exact_match,strict-match` if the answers were filtered."""
    return metric if filter_name in ("", "none") else f"{metric},{filter_name}"


@dataclass(frozen=True)
class HarnessHeader:
    """Content of the results file; empty if the file is missing."""

    content: Json = field(default_factory=dict)
    size: int = 0
    """File size in bytes."""

    def _table(self, name: str) -> Json:
        table = self.content.get(name)
        return table if isinstance(table, dict) else {}

    @property
    def is_old(self) -> bool:
        """Return whether a release before 0.4 wrote the file. Such runs lack task configurations and
        samples.
        """
        return "results" in self.content and "configs" not in self.content

    @property
    def tasks(self) -> list[str]:
        """Return the tasks of the run in the order of the results, without groups, which are averages."""
        configs, results = self._table("configs"), self._table("results")
        groups = set(self._table("groups")) | {
            name for name, members in self._table("group_subtasks").items() if members
        }
        names = [name for name in results if name in configs or name not in groups]
        return [*names, *(name for name in configs if name not in results)]

    def config(self, task: str) -> Json:
        """Return the configuration of a task; empty if missing."""
        config = self._table("configs").get(task)
        return config if isinstance(config, dict) else {}

    def results(self, task: str) -> Any:
        """Return the metrics of a task; `None` if missing."""
        return self._table("results").get(task)

    def metrics(self, task: str) -> Iterator[StoredMetric]:
        """Yield the metrics of a task."""
        results = self.results(task)
        if not isinstance(results, dict):
            return
        for key, value in results.items():
            metric, _, filter_name = key.partition(",")
            # Keys of release 0.4.0 do not contain a filter. A task's own metric can also end with `_stderr`.
            if key in NOT_METRICS or not metric.strip():
                continue
            if metric.endswith(_STDERR) and _joined(metric.removesuffix(_STDERR), filter_name) in results:
                continue
            stderr = results.get(_joined(metric + _STDERR, filter_name))
            yield StoredMetric(metric, filter_name, value, stderr)

    def part(self, table: str, task: str) -> Any:
        """Return the entry of a task in a table; `None` if missing."""
        return self._table(table).get(task)

    def aggregations(self, task: str) -> dict[str, str]:
        """Return the known aggregations of a task by metric."""
        declared = self.config(task).get("metric_list")
        aggregations: dict[str, str] = {}
        for metric in declared if isinstance(declared, list) else []:
            if isinstance(metric, dict) and isinstance(metric.get("metric"), str):
                name, aggregation = metric["metric"], metric.get("aggregation")
                if aggregation is None:
                    aggregation = DEFAULT_AGGREGATIONS.get(name)
                if isinstance(aggregation, str):
                    aggregations[name] = aggregation
        return aggregations

    def groups(self, task: str) -> Json:
        """Return the averages that include a task, also indirectly through other averages."""
        subtasks, results = self._table("group_subtasks"), self._table("results") | self._table("groups")
        groups: Json = {}
        members = {task}
        for _ in range(len(subtasks)):
            more = {
                name
                for name, parts in subtasks.items()
                if name not in members and isinstance(parts, list) and any(part in members for part in parts)
            }
            if not more:
                break
            members |= more
            groups |= {name: results.get(name) for name in sorted(more)}
        return groups

    def about_run(self, bounds: Bounds) -> Json | None:
        """Return the content that does not belong to a single task; `None` if repeating it for each task
        would be too large.
        """
        common = {name: part for name, part in self.content.items() if name not in _COMMON}
        return None if len(dumps(common)) * len(self.tasks) > bounds.room(self.size) else common

    def about_task(self, task: str) -> Json:
        """Return the entries of a task in the tables by task."""
        return {table: part for table in _BY_TASK if (part := self.part(table, task)) is not None}

    @property
    def run_config(self) -> Json:
        """Return the configuration of the run."""
        return self._table("config")

    @property
    def model(self) -> str | None:
        """Return the model name; `None` if the file does not contain it."""
        name = self.content.get("model_name")
        if isinstance(name, str) and name:
            return name
        arguments = self.run_config.get("model_args")
        for key in ("peft", "delta", "pretrained", "model", "path", "engine"):
            if isinstance(arguments, dict) and isinstance(arguments.get(key), str):
                return str(arguments[key])
            if isinstance(arguments, str):
                values = [
                    part.removeprefix(f"{key}=")
                    for part in arguments.split(",")
                    if part.startswith(f"{key}=")
                ]
                if values and values[0]:
                    return values[0]
        source = self.run_config.get("model")
        return source if isinstance(source, str) and source else None

    @property
    def started_at(self) -> float | None:
        """Return the start as Unix time in seconds."""
        return _seconds(self.content.get("date"))

    @property
    def runtime(self) -> float | None:
        """Return the runtime in seconds."""
        return _seconds(self.content.get("total_evaluation_time_seconds"))


def _joined(metric: str, filter_name: str) -> str:
    return f"{metric},{filter_name}" if filter_name else metric


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        seconds = float(value)
    except (ValueError, OverflowError):
        return None
    return seconds if math.isfinite(seconds) and 0 <= seconds < 1e11 else None


def read_header(location: str, bounds: Bounds, redaction: Redactor, *, redact: bool) -> HarnessHeader:
    """Read the results file.

    Raises:
        EvidenceError: the file cannot be read, is not a results file, has a duplicate key, or exceeds the
            bounds.
    """
    place = FileLocation.of(location)
    try:
        data = place.read(bounds.member_bytes)
    except OSError as error:
        raise EvidenceError(f"cannot read the results file: {error}", code=Code.UNREADABLE_LOG) from error
    bounds.check_document(location, data)
    data = redaction.json(data)
    try:
        content = read_json_once(data)
    except (ValueError, RecursionError) as error:
        raise EvidenceError(f"the results file is not JSON: {error}", code=Code.NOT_A_LOG) from error
    if not isinstance(content, dict) or not isinstance(content.get("results"), dict):
        raise EvidenceError(
            "'results' is missing or is not an object, so it is not an lm-evaluation-harness file",
            code=Code.NOT_A_LOG,
        )
    if without_depths(content):
        raise EvidenceError(
            f"the results file is nested more than {DEEPEST} levels deep", code=Code.NOT_A_LOG
        )
    if redact:
        content = redaction.settings(content)
    return HarnessHeader(content, len(data))

"""Recalculation of all numbers of a result from its sample scores.

The core recalculates aggregates of trials, metrics, failure counts, exclusions by action rules, and metrics
over runs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from aigo_bridge.dtypes import (
    MetricData,
    SampleEvidence,
    ScoresData,
    TaskResultEvidence,
    TaskResultFailures,
    TaskResultLog,
)
from aigo_bridge.errors import EvidenceError, TemplateError
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.metrics.metric import Exclusion
from aigo_bridge.metrics.names import MEANS, metric_labels
from aigo_bridge.plan.logged_plan import LoggedPlan
from aigo_bridge.plan.outline import TaskOutline, outline_from_json, outline_json
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.results.assembling import Metrics, RunningTotals, metrics_for, sample_stream
from aigo_bridge.results.records import StoredNumbers, TrialRecord
from aigo_bridge.text.plurals import plural
from aigo_stats.comparison.columns import ResultColumns, read_columns
from aigo_stats.comparison.numbers import Quantity, identity_of, stored_numbers
from aigo_stats.comparison.sources import PointValue, WrongMetric
from aigo_stats.statistics.intervals import NoInterval
from aigo_trust.verification.levels import Finding, Level, level

if TYPE_CHECKING:
    from aigo_bridge.evaluation.repeating import RunSamples
    from aigo_bridge.results.reading import LogReader
    from aigo_bridge.snippets import SnippetHost

FOREIGN = ("inspect", "lighteval", "lm_eval", "every_eval_ever")
"""Config keys in a result imported from another tool. They contain the header of the tool's log."""


@dataclass
class _Pass:
    """Samples of a task or of one of its runs, counted as in a run."""

    tally: RunningTotals
    path: tuple[str | int, ...]
    findings: list[Finding] = field(default_factory=list)
    exclusions: dict[int, Exclusion] = field(default_factory=dict)
    metrics: Metrics | None = None

    def counted(self, samples: Iterator[SampleEvidence]) -> None:
        """Count the samples, and compare the results with the stored values."""
        originals: list[SampleEvidence] = []
        rows = self.tally.plan.samples if isinstance(self.tally.plan, TaskPlan) else ()
        planned: dict[Any, Mapping[str, Any]] = {row.id: row.data for row in rows}

        def records() -> Iterator[TrialRecord]:
            for number, sample in enumerate(samples):
                originals.append(sample)
                rules, errors = tuple(sample.action_records or ()), tuple(sample.errors or ())
                if rules or errors:
                    self.exclusions[number] = Exclusion(rules, errors)
                yield from _records(sample, number, planned.get(sample.sample_id, {}))

        for number, (computed, _) in enumerate(sample_stream(records(), self.tally)):
            # Read one record ahead, so that a computed sample is always the first waiting sample.
            self._compare(number, originals.pop(0), computed)

    def _compare(self, number: int, sample: SampleEvidence, computed: SampleEvidence) -> None:
        shown = json.dumps(sample.sample_id, ensure_ascii=False)
        path = (*self.path, "samples", number)
        if len(sample.trials) != 1:
            self.findings += score_differences(sample.scores or (), computed.scores or (), shown, path)
        if isinstance(self.tally.plan, TaskPlan):
            rules = [[record.rule_key for record in one.action_records or ()] for one in (sample, computed)]
            if rules[0] != rules[1]:
                message = f"the action rules exclude by {rules[1]}, the result says {rules[0]}"
                self.findings.append(
                    Finding(message, (*path, "action_records"), shown, field="action_records")
                )


def _records(sample: SampleEvidence, number: int, planned: Mapping[str, Any]) -> Iterator[TrialRecord]:
    trials = sample.trials
    for trial in trials:
        yield TrialRecord(
            # Number the samples, because an untrusted file may contain the same ID twice.
            sample_id=number,
            index=trial.index,
            data={} if trial.sample is None else _with_missing_cells(trial.sample.data, planned),
            output=None if trial.solver is None else trial.solver.output,
            scores=tuple(map(_with_infinities, trial.scores or ())),
            errors=tuple(trial.errors),
        )
    if not trials:
        yield TrialRecord(number, 0, {}, None, ())


def _with_missing_cells(data: dict[str, Any], planned: Mapping[str, Any]) -> dict[str, Any]:
    """Return sample data with NaN for missing numbers, which evidence stores as null."""
    missing = {name: value for name, value in planned.items() if is_missing(value) and data.get(name) is None}
    return {**data, **missing} if missing else data


def _with_infinities(score: ScoresData) -> ScoresData:
    """Return a score with infinities restored. Evidence stores infinity as null, with a separate note."""
    infinite = (score.metadata or {}).get("not_finite")
    if not isinstance(infinite, Mapping):
        return score
    values = dict(score.values)
    for name, text in infinite.items():
        if text in ("inf", "-inf") and name in values:
            values[name] = float(text)
    return score.model_copy(update={"values": values})


def score_differences(
    stored: Sequence[ScoresData],
    computed: Sequence[ScoresData],
    sample: str,
    path: tuple[str | int, ...],
) -> Iterator[Finding]:
    """Yield a finding for each difference between the stored and the computed scores of a sample or trial."""
    by_key = {score.scorer_key: score for score in computed}
    for number, score in enumerate(stored):
        values = by_key.pop(score.scorer_key, None)
        place = (*path, "scores", number, "values")
        if values is None:
            yield Finding("nothing gives this score", place, sample, score.scorer_key)
            continue
        for name in dict.fromkeys([*score.values, *values.values]):
            one, other = _plain(score.values.get(name)), _plain(values.values.get(name))
            if not same(one, other):
                message = f"the result has {one!r:.60}, but the computed value is {other!r:.60}"
                yield Finding(message, (*place, name), sample, score.scorer_key, name)
    for key in by_key:
        yield Finding("the result lacks this score", (*path, "scores"), sample, key)


def _plain(value: Any) -> Any:
    """Return a value in the form that evidence uses."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal in JSON: numbers by value, everything else by type and content."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, int | float) and isinstance(other, int | float):
        return one == other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and bool(one == other)


def check_numbers(
    reader: LogReader,
    frame: TaskResultLog,
    raw: Mapping[str, Any],
    own: TaskPlan | None,
    host: SnippetHost | None,
) -> Level:
    """Return the level of the metrics.

    Args:
        reader: reader of the result, which is a valid log.
        frame: result without its samples.
        raw: raw JSON of the frame.
        own: user's own plan, whose action rules are evaluated; `None` to use the stored rule outcomes.
        host: host that runs the plan's Python metrics; `None` to skip these metrics.
    """
    if frame.evidence is None:
        return level("metrics", [], unchecked="the result does not contain evidence")
    specification = raw.get("specification") or {}
    definition = (specification.get("task") or {}).get("definition") or {}
    if definition.get("type") == "system_task":
        return level("metrics", [], unchecked="a system task computes its metrics directly, not over samples")
    config = specification.get("config") or {}
    if any(isinstance(config.get(name), Mapping) for name in FOREIGN):
        return _foreign(read_columns(reader.path))
    try:
        plan = own or _outlined(frame, definition, config, specification["task"])
    except (EvidenceError, TemplateError, ValidationError, TypeError, KeyError, AttributeError) as error:
        return level("metrics", [], unchecked=f"its task cannot be read: {error}")
    return _own(reader, frame.evidence, plan, host)


def _template_values(config: Mapping[str, Any], parameters: Any) -> dict[str, Any]:
    """Return the value of each `<< config.x >>`, mapped for a categorical parameter."""
    values = dict(config)
    for parameter in parameters if isinstance(parameters, list) else ():
        mapping = parameter.get("values_mapping") if isinstance(parameter, Mapping) else None
        key = str(parameter["key"]) if isinstance(mapping, Mapping) else ""
        if isinstance(mapping, Mapping) and mapping and isinstance(values.get(key), str):
            values[key] = mapping.get(values[key], values[key])
        elif isinstance(mapping, Mapping) and mapping and isinstance(values.get(key), list):
            values[key] = [mapping.get(item, item) for item in values[key]]
    return values


def _outlined(
    frame: TaskResultLog,
    definition: Mapping[str, Any],
    config: Mapping[str, Any],
    raw_task: Mapping[str, Any],
) -> LoggedPlan:
    """Return the outline of the plan in the result: names and arithmetic, without code or templates."""
    values = _template_values(config, raw_task.get("config_spec"))
    written = outline_json(definition)
    # Fill in parameters in the scorers' own texts only. Values in code or prompts do not affect any number.
    bound = written
    if "<<" in json.dumps(written):
        from aigo_bridge.templates.config import bind_config

        bound = bind_config(written, values)
    bound["entity"] = definition.get("evaluated_entity_type") or written["entity"]
    outline: TaskOutline = outline_from_json(bound)
    task = frame.specification.task
    return LoggedPlan(
        document={"key": task.key, "display_name": task.display_name, "definition": definition},
        outline=outline,
        config=config,
        dataset=None,
        num_trials=1,
        num_samples=None,
        subsampling="head",
        digest="",
    )


def _own(
    reader: LogReader, evidence: TaskResultEvidence, plan: LoggedPlan | TaskPlan, host: SnippetHost | None
) -> Level:
    runs = evidence.runs or []
    if not runs:
        one = _passed(reader, None, plan, host)
        findings = [
            *one.findings,
            *_metric_findings(evidence.metrics, one, ("evidence",)),
            *_failure_findings(evidence.failures, one.tally.failures, ("evidence", "failures")),
        ]
        return level("metrics", findings, notes=_notes(one, plan), unchecked=_unchecked(evidence, one))
    from aigo_bridge.evaluation.repeating import RunSamples

    findings = []
    passes = []
    samples = RunSamples(len(runs))
    for number, run in enumerate(runs):
        one = _passed(reader, number, plan, host, samples)
        passes.append(one)
        place = ("evidence", "runs", number)
        findings += [
            *one.findings,
            *_metric_findings(run.metrics, one, place),
            *_failure_findings(run.failures, one.tally.failures, (*place, "failures")),
        ]
    findings += _over_runs(reader, evidence, samples, passes)
    return level(
        "metrics", findings, notes=_notes(passes[0], plan), unchecked=_unchecked(evidence, passes[0])
    )


def _passed(
    reader: LogReader,
    run: int | None,
    plan: LoggedPlan | TaskPlan,
    host: SnippetHost | None,
    samples: RunSamples | None = None,
) -> _Pass:
    place = ("evidence",) if run is None else ("evidence", "runs", run)
    exclusions: dict[int, Exclusion] = {}
    tally = (
        RunningTotals(plan)
        if isinstance(plan, TaskPlan)
        else RunningTotals(plan, StoredNumbers({}, exclusions))
    )
    one = _Pass(tally, place, exclusions=exclusions)

    def noted() -> Iterator[SampleEvidence]:
        for sample in reader.samples(run=run):
            if samples is not None and run is not None:
                samples.note(run, sample)
            yield sample

    one.counted(noted())
    one.metrics = metrics_for(tally, host)
    return one


def _metric_findings(
    stored: Sequence[MetricData] | None, one: _Pass, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    assert one.metrics is not None
    computed = {(metric.scorer_key, metric.metric_key): metric for metric in one.metrics.data}
    code = {key for key, result in one.metrics.of_code.items() if not result.values}
    for number, metric in enumerate(stored or ()):
        key = (metric.scorer_key or "", metric.metric_key)
        place = (*path, "metrics", number, "values")
        if key in code:
            continue
        expected = computed.pop((metric.scorer_key, metric.metric_key), None)
        if expected is None:
            yield Finding(
                "the task does not have this metric, or no score for it", place, None, key[0], key[1]
            )
            continue
        for name in dict.fromkeys([*metric.values, *expected.values]):
            value, number_again = metric.values.get(name), expected.values.get(name)
            if not same(value, number_again):
                message = f"the result has {value!r}, the samples' scores give {number_again!r}"
                yield Finding(message, (*place, name), None, key[0], name)
    for scorer, metric_key in computed:
        yield Finding(
            "the samples' scores give this metric, the result lacks it",
            (*path, "metrics"),
            None,
            scorer,
            metric_key,
        )


def _failure_findings(
    stored: TaskResultFailures | None, computed: TaskResultFailures, path: tuple[str | int, ...]
) -> Iterator[Finding]:
    if stored is None:
        return
    for name in ("num_errors", "num_total"):
        value, again = getattr(stored, name), getattr(computed, name)
        if value != again:
            yield Finding(f"the result has {value}, the samples give {again}", (*path, name), field=name)


def _over_runs(
    reader: LogReader, evidence: TaskResultEvidence, samples: RunSamples, passes: Sequence[_Pass]
) -> Iterator[Finding]:
    from aigo_bridge.evaluation.repeating import agreements, metrics_over

    data = [
        (run.metrics or []) if one.metrics is None or one.metrics.of_code else one.metrics.data
        for one, run in zip(passes, evidence.runs or (), strict=True)
    ]
    computed = {(metric.scorer_key, metric.metric_key): metric for metric in metrics_over(data)}
    for number, metric in enumerate(evidence.metrics or ()):
        expected = computed.get((metric.scorer_key, metric.metric_key))
        place = ("evidence", "metrics", number, "values")
        for name, value in metric.values.items():
            again = None if expected is None else expected.values.get(name)
            if not same(value, again):
                message = f"the result has {value!r}, its runs give {again!r}"
                yield Finding(message, (*place, name), None, metric.scorer_key, name)
    failures = [one.tally.failures for one in passes]
    total = TaskResultFailures(
        num_errors=sum(item.num_errors for item in failures),
        num_total=sum(item.num_total for item in failures),
    )
    yield from _failure_findings(evidence.failures, total, ("evidence", "failures"))
    for number, (sample, expected_sample) in enumerate(
        zip(reader.samples(), agreements(samples), strict=False)
    ):
        shown = json.dumps(sample.sample_id, ensure_ascii=False)
        # Without trials, the sample is read like older evidence: the sample itself is one trial.
        stored = sample.scores or (sample.trials[0].scores if sample.trials else None) or ()
        path = ("evidence", "samples", number)
        yield from score_differences(stored, expected_sample.scores or (), shown, path)


def _notes(one: _Pass, plan: LoggedPlan | TaskPlan) -> list[str]:
    assert one.metrics is not None
    num_metrics = len(one.metrics.data)
    notes = [f"{plural(num_metrics, 'metric')} over {plural(one.tally.num_rows, 'sample')}"]
    skipped = [key for key, result in one.metrics.of_code.items() if not result.values]
    if skipped:
        names = ", ".join(f"{metric!r} of {scorer!r}" for scorer, metric in skipped)
        notes.append(
            f"not computed: {names}: the author's code, which only runs with --task and --rerun-scorers"
        )
    if plan.outline.rules and not isinstance(plan, TaskPlan):
        notes.append(
            "what action rules exclude is taken from the result: they are only evaluated with --task"
        )
    return notes


def _unchecked(evidence: TaskResultEvidence, one: _Pass) -> str | None:
    """Return why the level is not fully proved although no findings exist."""
    assert one.metrics is not None
    code = [key for key, result in one.metrics.of_code.items() if not result.values]
    stored = {(metric.scorer_key, metric.metric_key) for metric in evidence.metrics or ()}
    if any(key in stored for key in code):
        return "some metrics are Python code, and code in a result is never executed"
    if one.tally.outline.rules and not isinstance(one.tally.plan, TaskPlan):
        return "action rules are templates, and templates in a result are never rendered"
    return None


def _foreign(columns: ResultColumns) -> Level:
    """Return the level for another tool's metrics. Only metrics with a known formula are proved."""
    numbers = stored_numbers(columns)
    labels = metric_labels([identity_of(number) for number in numbers])
    unknown = [
        (number, label, number.content.reason)
        for number, label in zip(numbers, labels, strict=True)
        if isinstance(number.content, NoInterval) and not isinstance(number.content, PointValue)
    ]
    proved = len(numbers) - len(unknown)
    notes = [f"{proved} of {len(numbers)} metrics follow from their samples' scores"]
    notes += [
        f"not computed: {label!r} of {number.scorer!r}: {reason}" for number, label, reason in unknown[:10]
    ]
    evidence = columns.frame.evidence
    findings = [
        Finding(reason, ("evidence", "metrics"), scorer=number.scorer, field=label)
        for number, label, reason in unknown
        if isinstance(number.content, WrongMetric) and columns.graded and _is_settled(number)
    ]
    failures = None if evidence is None else evidence.failures
    if failures is not None and not columns.runs and failures.num_total != len(columns):
        message = f"the result has {failures.num_total}, there are {plural(len(columns), 'sample')}"
        findings.append(Finding(message, ("evidence", "failures", "num_total"), field="num_total"))
    unchecked = None
    if unknown:
        unchecked = f"{len(unknown)} of {len(numbers)} metrics cannot be computed from the samples' scores"
    return level("metrics", findings, notes=notes, unchecked=unchecked)


def _is_settled(number: Quantity) -> bool:
    """Return whether all Inspect releases have the same formula of a metric: other values are wrong."""
    identity = identity_of(number)
    return identity.package == "inspect_ai" and (identity.kind or "").rpartition("/")[2] in MEANS

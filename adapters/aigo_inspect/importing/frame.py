"""All parts of a `TaskResultLog` except its samples, from the header of an Inspect log and the totals of its
samples.

An Inspect log names the task, dataset, model and settings, but not as AI GO entities. Ids and keys are
therefore derived from names, so that the same log always gives the same specification. The complete header is
kept in `specification.config["inspect"]`, because it is the only exact record of the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aigo_bridge.importing.log_import import UNMAPPED, Damage, LossReport, unmapped
from aigo_bridge.importing.result_header import ImportedTask, result_header
from aigo_bridge.results.counts import CountsTally, sample_facts, scorers_in
from aigo_bridge.results.specification import dataset_entity, model_entity, slug
from aigo_bridge.text.json_text import key_of, without_non_finite
from aigo_inspect.logs.parsing import running_time, unix_seconds
from aigo_inspect.logs.shapes import MALFORMED, STATUS_UNKNOWN, lift_header
from aigo_inspect.mapping.model_calls import TOKEN_COUNTS, count_odd_usage, model_usage
from aigo_inspect.mapping.samples import MappedTrial
from aigo_inspect.mapping.scores import kind_of, metric_definition, metric_entries, metrics_of, odd_metrics

_Part = TypeVar("_Part")
_TAG_COLOR = "#808080"
_TAG = (str, int, float)
"""Accepted types of a tag. Numbers are converted to text."""
_ASIDE = "it has an unexpected type and is kept under 'malformed'"
UNCOUNTED_USAGE = (
    "token counts of the run: no sample in the log contains a model call, kept in the configuration"
)
_NO_MODEL = frozenset({"", "none", "none/none"})


@dataclass
class LogTotals:
    """Totals over the samples of a log, updated while they are read."""

    trials: int = 0
    samples: int = 0
    failed: int = 0
    """Number of failed samples, set with the frame: counting needs the number of scorers."""
    callers: Counter[str] = field(default_factory=Counter)
    """Model → number of samples that called it in at least one trial."""
    usage: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(model, `num_prompt_tokens` or `num_completion_tokens`) → tokens."""
    unknown: set[tuple[str, str]] = field(default_factory=set)
    """Keys of `usage` whose sum is unknown, because at least one trial does not report it."""
    scorers: dict[str, None] = field(default_factory=dict)
    """Names of the scorers, in order."""
    started_at: str | None = None
    completed_at: str | None = None
    _tally: CountsTally = field(default_factory=CountsTally)
    _trials: list[dict[str, Any]] = field(default_factory=list)
    """Errors and scores of the current sample's trials."""
    _called: set[str] = field(default_factory=set)
    """Models that the current sample called."""

    def count_trial(self, trial: MappedTrial, *, first: bool) -> None:
        """Add one trial. `first` starts a new sample; otherwise the trial belongs to the current sample."""
        if first:
            self.samples += 1
            self._called = set()
            self.end_sample()
        self._trials.append({"errors": trial.errors, "scores": trial.scores})
        self.trials += 1
        for model in trial.models - self._called:
            self.callers[model] += 1
        self._called |= trial.models
        for model, usage in trial.usage.items():
            counts = model_usage(usage) or {}
            for name in TOKEN_COUNTS:
                if name in counts:
                    self.usage[model, name] += counts[name]
                else:
                    self.unknown.add((model, name))
        for score in trial.scores or []:
            self.scorers.setdefault(score["scorer_name"])
        if trial.started_at:
            self.started_at = min(self.started_at or trial.started_at, trial.started_at)
        if trial.completed_at:
            self.completed_at = max(self.completed_at or trial.completed_at, trial.completed_at)

    def end_sample(self) -> None:
        """Count the current sample."""
        if self._trials:
            self._tally.add(sample_facts({"trials": self._trials}))
        self._trials = []

    def count_failures(self, num_scorers: int) -> None:
        """Set `failed` after all samples were added."""
        self.end_sample()
        self.failed = self._tally.counts(num_scorers).failed

    def add(self, totals: LogTotals) -> None:
        """Add the totals of other samples of the same log."""
        self.trials += totals.trials
        self.samples += totals.samples
        for each in (self, totals):
            each.end_sample()
        self._tally.merge(totals._tally)
        self.callers.update(totals.callers)
        self.usage.update(totals.usage)
        self.unknown |= totals.unknown
        self.scorers |= totals.scorers
        starts = [time for time in (self.started_at, totals.started_at) if time]
        ends = [time for time in (self.completed_at, totals.completed_at) if time]
        self.started_at = min(starts, default=None)
        self.completed_at = max(ends, default=None)


def frame_of(
    header: dict[str, Any],
    totals: LogTotals,
    damage: list[Damage],
    loss: LossReport,
    marks: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a `TaskResultLog` as JSON whose `evidence` does not have `samples` yet.

    Args:
        header: header of the log.
        totals: totals of the samples.
        damage: parts that cannot be read. Unreadable parts of the header are added.
        loss: collects the counts of kept, changed and dropped values.
        marks: additional entries for the `config` of the specification.
    """
    damage += _guarded(lambda part, _: odd_parts(part), header, damage, loss)
    metrics = _guarded(metrics_of, header, damage, loss)
    error = header.get("error")
    if isinstance(error, dict) and error.get("traceback_ansi"):
        # Left out, because colors and line breaks inside words can hide secrets from redaction.
        without_copy = {name: value for name, value in error.items() if name != "traceback_ansi"}
        header = {**header, "error": without_copy}
        loss.changed["error of the run: colored copy of the traceback left out"] += 1
    finite, odd = without_non_finite(header)
    if odd:
        loss.changed["number that is not finite in the header: written as text"] += odd
    specification = _guarded(lambda part, _: _specification(part, totals), finite, damage, loss)
    specification["config"] |= marks or {}
    execution = _guarded(lambda part, counts: _execution(part, totals, counts), finite, damage, loss)
    totals.count_failures(scorers_in(specification))
    numbers, metric_errors = metrics
    return result_header(
        metrics=numbers,
        metric_errors=metric_errors,
        failed=totals.failed,
        samples=totals.samples,
        specification=specification,
        execution=execution,
        damage=damage,
        errors=_errors(finite, is_damaged=bool(damage)),
        is_complete=header.get("status") == "success",
        software=_software(header),
    )


def _guarded(
    make: Callable[[dict[str, Any], LossReport], _Part],
    header: dict[str, Any],
    damage: list[Damage],
    loss: LossReport,
) -> _Part:
    """Return a part of the frame. If it cannot be created, return the part for a minimal header.

    Invalid values of the header were removed before, so an error here is most likely a bug in aigo-bridge,
    and is reported as one. The samples were already written and must not be lost.
    """
    counts = LossReport()
    try:
        part = make(header, counts)
    except MALFORMED as error:
        damage.append(Damage("header", None, unmapped("the header", error), UNMAPPED))
        spec = header.get("eval")
        task = spec.get("task") if isinstance(spec, dict) else None
        plain = lift_header({"status": header.get("status"), "eval": {"task": task}, "malformed": header})
        counts.clear()
        part = make(plain, counts)
    loss.add(counts)
    return part


def _software(header: dict[str, Any]) -> str | None:
    packages = header["eval"].get("packages")
    version = packages.get("inspect_ai") if isinstance(packages, dict) else None
    return f"inspect_ai {version}" if version else None


def odd_parts(header: dict[str, Any]) -> list[Damage]:
    """Return the header values that cannot be used in the evidence, because they have an unexpected type."""
    spec = header["eval"]
    entries = spec.get("scorers") or []
    odd = [
        *(_unexpected(f"eval.tags[{i}]", tag, "a text") for i, tag in enumerate(spec.get("tags") or [])),
        *(_unexpected(f"tags[{i}]", tag, "a text") for i, tag in enumerate(header.get("tags") or [])),
        *(_unexpected(f"eval.scorers[{i}]", entry, "an object") for i, entry in enumerate(entries)),
        *odd_metrics(header),
        *(
            f"{where}{name}: {_ASIDE}"
            for where, part in _parts(header)
            for name in part.get("malformed") or {}
        ),
    ]
    return [Damage("header", None, reason) for reason in odd if reason]


def _parts(header: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the header and its parts, each with the prefix for names inside it."""
    yield "", header
    for name in ("eval", "stats", "results", "plan"):
        if isinstance(part := header.get(name), dict):
            yield f"{name}.", part


def _unexpected(where: str, value: object, expected: str) -> str:
    if isinstance(value, dict if expected == "an object" else _TAG):
        return ""
    return f"{where}: expected {expected}, found {kind_of(value)}"


def _errors(header: dict[str, Any], *, is_damaged: bool) -> list[dict[str, Any]]:
    errors = []
    status = header.get("status")
    error = header.get("error")
    # An unknown status is already reported as damage.
    expected_ends = ("success", STATUS_UNKNOWN) if is_damaged else ("success",)
    if isinstance(error, dict):
        message = str(error.get("message") or "the evaluation failed")
        errors.append({"error_type": "EvaluationError", "message": message})
    if status == "cancelled":
        errors.append({"error_type": "EvaluationCancelled", "message": "the evaluation was cancelled"})
    elif status == "started":
        errors.append(
            {
                "error_type": "EvaluationUnfinished",
                "message": "the log was not finished: it contains the samples written until then",
            }
        )
    elif status not in expected_ends and not isinstance(error, dict):
        errors.append(
            {"error_type": "EvaluationError", "message": f"the evaluation ended with status {status!r}"}
        )
    if header.get("invalidated"):
        errors.append(
            {
                "error_type": "InvalidatedLog",
                "message": "the log, or some of its samples, were marked as invalid",
            }
        )
    return errors


# Specification


def _specification(header: dict[str, Any], totals: LogTotals) -> dict[str, Any]:
    spec = header["eval"]
    name = str(spec.get("task") or "task")
    arguments = spec.get("task_args")
    arguments = dict(arguments) if isinstance(arguments, dict) else {}
    remainder = {key: value for key, value in header.items() if key not in ("samples", "reductions")}
    specification: dict[str, Any] = {
        "display_name": str(spec.get("task_display_name") or name),
        "task": _task(header, name, arguments, totals),
        "config": {**arguments, "inspect": remainder},
        "run_config": _run_config(spec),
    }
    model = str(spec.get("model") or "")
    if model in _NO_MODEL:
        entity = dataset_entity(key_of(_dataset_name(spec)), _dataset_name(spec))
    else:
        entity = model_entity(model, engine="inspect")
    specification["evaluated_entity"] = entity
    return specification


def _dataset_name(spec: dict[str, Any]) -> str:
    dataset = spec["dataset"]
    return str(dataset.get("name") or dataset.get("location") or "dataset")


def _task(header: dict[str, Any], name: str, arguments: dict[str, Any], totals: LogTotals) -> dict[str, Any]:
    spec = header["eval"]
    epochs = spec["config"].get("epochs")
    steps = header["plan"].get("steps") or []
    solver = str(
        spec.get("solver")
        or (steps[-1].get("solver") if steps and isinstance(steps[-1], dict) else None)
        or "solver"
    )
    return ImportedTask(
        name=name,
        display_name=str(spec.get("task_display_name") or name),
        dataset=_dataset_name(spec),
        solver={"type": solver, "steps": steps},
        scorers=_scorers(header, totals),
        entity="dataset" if str(spec.get("model") or "") in _NO_MODEL else "model",
        task_id=str(spec.get("task_id") or key_of(name)),
        description=str(spec.get("task_description") or ""),
        num_trials=epochs if isinstance(epochs, int) else 1,
        parameters=_parameters(arguments),
        tags=[
            {"id": slug(str(tag)), "value": str(tag), "color": _TAG_COLOR}
            for tag in dict.fromkeys(
                tag
                for tag in [*(spec.get("tags") or []), *(header.get("tags") or [])]
                if isinstance(tag, _TAG)
            )
        ],
        created_at=unix_seconds(spec.get("created")),
    ).to_json()


_PARAMETER_TYPES: dict[type, str] = {bool: "boolean", int: "int", float: "float", str: "string"}


def _parameters(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the task parameters whose type is known from their value. `None`, lists and objects are only in
    `config`.
    """
    return [
        {
            "type": _PARAMETER_TYPES[type(value)],
            "key": key,
            "display_name": key or "(unnamed)",
            "default_value": value,
        }
        for key, value in arguments.items()
        if type(value) in _PARAMETER_TYPES
    ]


def _scorers(header: dict[str, Any], totals: LogTotals) -> list[dict[str, Any]]:
    names: dict[str, None] = dict(totals.scorers)
    metrics: dict[str, list[dict[str, Any]]] = {}
    for entry in metric_entries(header):
        names.setdefault(entry.scorer)
        metrics.setdefault(entry.scorer, []).append(metric_definition(entry, header))
    options = {
        str(entry.get("name")): entry.get("options")
        for entry in header["eval"].get("scorers") or []
        if isinstance(entry, dict)
    }
    for name in options:
        names.setdefault(name)
    scorers = []
    for name in names:
        scorer: dict[str, Any] = {"key": key_of(name), "type": name, "display_name": name}
        if metrics.get(name):
            scorer["metrics"] = metrics[name]
        if options.get(name):
            scorer["options"] = options[name]
        scorers.append(scorer)
    return scorers


def _run_config(spec: dict[str, Any]) -> dict[str, Any]:
    config = spec["config"]
    run: dict[str, Any] = {}
    limit = config.get("limit")
    if isinstance(limit, list) and len(limit) == 2 and all(isinstance(n, int) for n in limit):
        limit = limit[1] - limit[0]
    if isinstance(limit, int) and not isinstance(limit, bool) and limit >= 1:
        run |= {"num_samples": limit, "subsampling": "random" if config.get("sample_shuffle") else "head"}
    epochs = config.get("epochs")
    if isinstance(epochs, int) and epochs >= 2:
        run["trials_config"] = {"num_trials": epochs}
    return run


# Execution


def _execution(header: dict[str, Any], totals: LogTotals, loss: LossReport) -> dict[str, Any]:
    stats = header["stats"]
    created = header["eval"].get("created")
    started = stats.get("started_at") or totals.started_at or created
    ended = stats.get("completed_at") or totals.completed_at or started
    begin = max(0, unix_seconds(started) or 0)
    end = unix_seconds(ended)
    if end is not None and end < begin:
        loss.changed["end time of the run: before its start, replaced by the start time"] += 1
    execution: dict[str, Any] = {
        "runtime": running_time(started, ended, totals.started_at, totals.completed_at),
        "started_at": begin,
        "ended_at": max(begin, end or 0),
    }
    usage = _usage(header, totals, loss)
    if usage is not None:
        execution["model_usage"] = usage
    return execution


def _usage(header: dict[str, Any], totals: LogTotals, loss: LossReport) -> dict[str, int] | None:
    """Return `ModelUsageStats` of the evaluated model, `None` if it is unknown.

    If all calls in the log were made to judges or sub-agents, the evaluated model used nothing.
    """
    model = str(header["eval"].get("model") or "")
    by_model = header["stats"].get("model_usage")
    if isinstance(by_model, dict) and by_model:
        for usage in by_model.values():
            count_odd_usage(usage, loss)
        others = by_model.keys() - {model}
        tokens = model_usage(by_model.get(model)) or {}
    else:
        # Unfinished logs lack statistics, so the totals of the samples are used.
        others = {used for used, _ in totals.usage} - {model}
        tokens = {
            name: count
            for (used, name), count in sorted(totals.usage.items())
            if used == model and (used, name) not in totals.unknown
        }
    num_samples = totals.callers[model]
    if num_samples:
        return {"num_samples": num_samples, **tokens}
    if tokens:
        loss.changed[UNCOUNTED_USAGE] += 1
        return None
    return {"num_samples": 0, **dict.fromkeys(TOKEN_COUNTS, 0)} if others and totals.callers else None

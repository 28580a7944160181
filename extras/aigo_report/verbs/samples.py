"""Terminal output of samples: conversation, scores and errors.

All texts are untrusted. Control characters are displayed as escapes, and markup is never interpreted.
"""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from aigo_bridge.cli.tables import MetricLine, print_metrics
from aigo_bridge.cli.terminal import name_of, printable, short_path
from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import EvidenceError, UsageError, code_of_kind
from aigo_bridge.metrics.grades import is_graded
from aigo_bridge.metrics.names import metric_identities, metric_labels, standard_errors
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.results.counts import (
    SampleState,
    outcome_label,
    rules_of,
    sample_facts,
    trial_number,
    trial_state,
    trials_of,
)
from aigo_bridge.results.reading import FramePart, LogReader, SamplePart
from aigo_bridge.results.rows import items_of, outputs_of, rows_of
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.stop_reasons import NORMAL, stop_reason_of
from aigo_bridge.results.values import Json, mappings, short_text
from aigo_bridge.text.numbers import ABSENT, shown_error, shown_number
from aigo_bridge.text.plurals import plural
from aigo_report.tables.trials import (
    FIXED_NAMES,
    Condition,
    Field,
    condition_of,
    data_of,
    field_of,
    mean_score,
    numbers_of,
    role_of,
    value_text,
    values_of,
)
from aigo_stats.terminal.intervals import result_numbers
from aigo_stats.terminal.statistics import metric_line

LENGTH = 2_000
"""Default maximum number of characters of a text."""
_SOME_IDS = 10
_LABEL = 20
"""Maximum number of characters of a label, because names in scorer metadata are untrusted."""

Line = tuple[str, str, str]
"""Label, label style and text."""


@dataclass(frozen=True)
class SampleFilter:
    """Selection of samples to show."""

    sample: str | None = None
    """ID of a single sample; `None` for all."""
    failed: bool = False
    """Whether to show only samples with a failed trial."""
    stop_reason: str | None = None
    """Stop reason that an answer must have."""
    where: str | None = None
    """Condition that a trial must meet."""
    worst: int | None = None
    """Number of samples to show, lowest score first; `None` for result order."""
    score: str | None = None
    """Score that defines the worst samples; `None` for the first numeric score."""

    def samples(self, reader: LogReader) -> Iterator[SamplePart]:
        """Yield the selected samples one by one.

        Raises:
            EvidenceError: the result is damaged. Samples before the damage have been yielded.
            UsageError: the sample or the score does not exist.
        """
        if self.sample is not None:
            return self._named(reader, self.sample)
        parts = _samples(reader)
        if self.failed:
            parts = (part for part in parts if sample_facts(part.value).trials[SampleState.FAILED])
        if self.stop_reason is not None:
            parts = self._stopped(parts, self.stop_reason)
        if self.where is not None:
            parts = _matching(parts, condition_of(self.where), graded=_is_graded(reader))
        return parts if self.worst is None else self._worst(parts, self.worst, graded=_is_graded(reader))

    def _stopped(self, parts: Iterable[SamplePart], wanted: str) -> Iterator[SamplePart]:
        found: Counter[str] = Counter()
        for part in parts:
            reasons = {reason for trial in trials_of(part.value) if (reason := stop_reason_of(trial))}
            found.update(reasons)
            if wanted in reasons:
                yield part
        if wanted not in found:
            known = ", ".join(sorted(found)) or "none"
            message = f"no answer has the stop reason {wanted!r}; stop reasons in the result: {known}"
            raise UsageError(message, code=Code.UNKNOWN_CHOICE)

    def _named(self, reader: LogReader, wanted: str) -> Iterator[SamplePart]:
        names: list[str] = []
        missing = True
        for part in _samples(reader):
            name = str(part.value.get("sample_id"))
            if name == wanted:
                missing = False
                yield part
            elif len(names) <= _SOME_IDS:
                names.append(name)
        if missing:
            shown = ", ".join(map(repr, names[:_SOME_IDS])) + (", …" if len(names) > _SOME_IDS else "")
            raise UsageError(
                f"{reader.path}: no sample {wanted!r}, expected one of {shown or 'none at all'}",
                code=Code.UNKNOWN_CHOICE,
            )

    def _worst(self, parts: Iterable[SamplePart], count: int, *, graded: bool) -> Iterator[SamplePart]:
        score = self.score
        names: dict[str, None] = {}

        def ranked() -> Iterator[tuple[float, int, SamplePart]]:
            nonlocal score
            for order, part in enumerate(parts):
                if not names or self.score is not None:
                    for trial in trials_of(part.value):
                        numbers = numbers_of(trial, graded=graded)
                        names.update((name, None) for name, number in numbers if number is not None)
                score = score or next(iter(names), None)
                mean = None if score is None else mean_score(part, score, graded=graded)
                if mean is not None:
                    yield mean, order, part

        worst = heapq.nsmallest(count, ranked())
        if not worst:
            known = f"; expected one of {', '.join(map(repr, names))}" if names else ""
            which = "score that is a number" if score is None else f"number of the score {score!r}"
            raise UsageError(f"no sample has a {which}{known}", code=Code.UNKNOWN_CHOICE)
        return (part for _, _, part in worst)


def _matching(parts: Iterable[SamplePart], condition: Condition, *, graded: bool) -> Iterator[SamplePart]:
    """Yield the samples with a trial for which a condition holds.

    Raises:
        UsageError: no sample has a value for a name, and no sample was found.
    """
    missing: dict[str, None] = {}
    known: set[str] = set(FIXED_NAMES)
    found = False
    for number, part in enumerate(parts):
        for row in rows_of(part.value, number, part.run):

            def field(name: str, cells: Json = row.cells) -> Field:
                value = field_of(cells, name, graded=graded)
                if value is None:
                    missing[name] = None
                else:
                    known.add(name)
                return value

            if condition(field):
                found = True
                yield part
                break
    unknown = [name for name in missing if name not in known]
    if unknown and not found:
        raise UsageError(
            f"--where: no trial has a value for {unknown[0]!r}, expected a column of the dataset, a score"
            f" or one of {', '.join(FIXED_NAMES)}",
            code=Code.UNKNOWN_CHOICE,
        )


def _is_graded(reader: LogReader) -> bool:
    """Return whether scores are Inspect's; false if the end of the log is damaged."""
    try:
        return is_graded(reader.frame().specification.config)
    except EvidenceError:
        return False


def with_sample(sources: Sequence[ResultSource], sample: str) -> list[ResultSource]:
    """Return the results that contain a sample.

    Raises:
        UsageError: the sample is missing in all results.
    """
    having = [
        source
        for source in sources
        if source.path is not None
        and any(str(part.value.get("sample_id")) == sample for part in _samples(LogReader(source.path)))
    ]
    if not having:
        raise UsageError(f"--sample: no result has a sample {sample!r}", code=Code.UNKNOWN_CHOICE)
    return having


def _samples(reader: LogReader) -> Iterator[SamplePart]:
    return (part for part in reader.parts() if not isinstance(part, FramePart))


def show_head(screen: Console, reader: LogReader, log: TaskResultLog, result: str) -> None:
    """Print the evaluated subject and the metrics with their 95 % intervals."""
    specification = log.specification
    entity = specification.evaluated_entity
    name = f"\n{name_of(specification.display_name)}"
    model = "" if entity is None else f"  {name_of(entity.display_name)}"
    screen.print(Text.assemble((name, "bold"), (model, "dim")), soft_wrap=True)
    screen.print(Text(short_path(result), style="dim"), soft_wrap=True)
    metrics = (log.evidence.metrics if log.evidence is not None else None) or []
    numbers, counts = result_numbers(reader.path)
    if counts is not None and not counts.is_plain:
        screen.print(Text(counts.text(), style="dim"), soft_wrap=True)
    definition = specification.task.definition.model_dump(mode="json", exclude_unset=True)
    identities = metric_identities(definition, metrics)
    values = [value for metric in metrics for value in metric.values.values()]
    errors_of_metrics = standard_errors(identities)
    reported = {base: values[error] for error, base in errors_of_metrics.items()}
    kept = [place for place in range(len(values)) if place not in errors_of_metrics]
    lines: list[MetricLine] = []
    for place, label in zip(kept, metric_labels([identities[place] for place in kept]), strict=True):
        identity = identities[place]
        number = numbers.get((identity.scorer or "", identity.metric, identity.name))
        if number is not None:
            lines.append(metric_line(number))
            continue
        error = shown_error(reported[place]) if place in reported else ""
        scorer = identity.scorer or ABSENT
        lines.append(MetricLine(label, shown_number(values[place]), error=error, scorer=scorer))
    print_metrics(screen, lines)
    errors = [*log.errors, *(log.evidence.errors if log.evidence is not None else ())]
    for error in errors:
        screen.print(Text(f"error: {_shown(error.message, LENGTH)}", style="red"))


def show_sample(screen: Console, part: SamplePart, num_scorers: int, *, length: int | None = LENGTH) -> None:
    """Print a sample with all its trials.

    Args:
        screen: console.
        part: sample to print.
        num_scorers: number of scorers of the task.
        length: maximum number of characters of a text; `None` for no limit.
    """
    sample = part.value
    trials = trials_of(sample)
    run = "" if part.run is None else f"run {part.run + 1} · "
    facts = sample_facts(sample)
    label = outcome_label(facts, num_scorers)
    title = Text(f"{run}sample {name_of(str(sample.get('sample_id')))}", style="bold")
    if label:
        title.append(f" · {label}", style="red" if facts.trials[SampleState.FAILED] else "yellow")
    screen.print(Rule(title, align="left", style="dim"))
    for position, trial in enumerate(trials):
        if len(trials) > 1:
            state = trial_state(sample, trial)
            ending = "" if state is SampleState.SCORED else f" · {state.label}"
            screen.print(Text(f"trial {trial_number(trial, position)}{ending}", style="dim"))
        _print(screen, _of_trial(sample, trial), length)
    _print(screen, _of_sample(sample), length)


def _print(screen: Console, lines: Iterable[Line], length: int | None) -> None:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for label, style, text in lines:
        table.add_row(Text(name_of(short_text(label, _LABEL) or ""), style=style), Text(_shown(text, length)))
    if table.row_count:
        screen.print(table)


def _shown(text: str, length: int | None) -> str:
    # Remove secrets before truncation, so that no part of a secret remains.
    clean = redact(text)
    cut = clean if length is None else short_text(clean, length) or ""
    more = f" ({len(clean) - length:,} more characters: --full)" if length and cut != clean else ""
    return printable(cut).expandtabs(4) + more


def _of_trial(sample: Json, trial: Json) -> Iterator[Line]:
    data = data_of(sample, trial)
    if data:
        yield "row", "dim", value_text(data)
    for output in outputs_of(trial):
        for item in items_of(output):
            yield _of_item(item)
    if (reason := stop_reason_of(trial)) is not None and reason not in NORMAL:
        yield "stop reason", "bold red", reason
    for score in mappings(trial.get("scores")):
        yield from _of_score(score)
    yield from map(_of_error, mappings(trial.get("errors")))


def _of_sample(sample: Json) -> Iterator[Line]:
    """Yield the lines of a sample other than its trials."""
    if sample.get("trials"):
        for score in mappings(sample.get("scores")):
            yield from _of_score(score, "over all trials")
        yield from map(_of_error, mappings(sample.get("errors")))
    for rule in rules_of(sample):
        yield "excluded", "yellow", f"by the rule {rule}"


_STYLES = {"user": "bold cyan", "assistant": "bold green", "system": "bold magenta", "developer": "magenta"}


def _of_item(item: Json) -> Line:
    kind = str(item.get("type"))
    match kind:
        case "function_call":
            return "calls", "bold yellow", f"{item.get('name')}({_content(item.get('arguments'))})"
        case "function_call_output":
            return "result", "yellow", _content(item.get("output"))
        case "reasoning":
            return "reasoning", "dim", _content(item.get("content") or item.get("summary"))
    label = role_of(item)
    return label, _STYLES.get(label, "bold"), _content(item.get("content"))


def _content(value: Any) -> str:
    """Return the texts of a message, with placeholders for images and files."""
    if isinstance(value, list) and all(isinstance(part, dict) for part in value):
        return "\n".join(map(_part, value))
    return value_text(value)


def _part(part: Json) -> str:
    for name in ("text", "refusal", "reasoning"):
        if isinstance(part.get(name), str):
            return str(part[name])
    size = max((len(value) for value in part.values() if isinstance(value, str)), default=0)
    return f"⟨{part.get('type')}, {plural(size, 'character', form=',')}⟩"


def _of_score(score: Json, note: str = "") -> Iterator[Line]:
    values = ", ".join(f"{name} = {value_text(value)}" for name, value in values_of(score))
    suffix = f" ({note})" if note else ""
    yield "score", "bold blue", f"{score.get('scorer_key')}: {values or 'no value'}{suffix}"
    metadata = score.get("metadata")
    for name, value in metadata.items() if isinstance(metadata, dict) else ():
        if value is not None and name != "judge_calls":
            yield f"  {name}", "dim", value_text(value)
    if isinstance(metadata, dict):
        for call in mappings(metadata.get("judge_calls")):
            yield "  judge call", "dim", json.dumps(call, ensure_ascii=False, default=str)


def _of_error(error: Json) -> Line:
    hint = f"\nhint: {error['hint']}" if error.get("hint") else ""
    stage = f"{error['stage']}: " if error.get("stage") else ""
    kind = str(error.get("error_type"))
    return "error", "bold red", f"{stage}{kind}: {error.get('message')} [{code_of_kind(kind)}]{hint}"

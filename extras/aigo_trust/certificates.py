"""Parity certificates: several engines run the same plan with the same answers, and differences get a cause.

Every engine reads the answers from the same cassette, so each difference is caused by the engines. For each
sample, the certificate compares the model requests, then the conversation, then the scores. The first
difference is the cause.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from aigo_bridge.engine.model_calls import CallSite
from aigo_bridge.engine.outcome import Outcome
from aigo_bridge.engine.recording import task_name
from aigo_bridge.evaluation.parity import Parity, SampleId, compared_part, parity
from aigo_bridge.redaction.secrets import redact_value
from aigo_bridge.results.reading import LogReader, SamplePart
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__
from aigo_trust.provenance.environment import environment
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.replay import Player, RecordedRun

FORMAT = 1

Cause = Literal["prompt", "generation settings", "conversation", "scorer", "aggregation"]
"""Cause of a difference.

- `prompt`: a model received a different request.
- `generation settings`: the request is the same, but its options or its response format differ.
- `conversation`: the engines built different conversations from the same answers.
- `scorer`: the scores differ for the same conversation.
- `aggregation`: the metrics differ for the same scores.
"""

MOST_DIFFERENCES = 1000
"""Maximum number of differences listed in a certificate."""

_SETTINGS = ("options", "response_format")
_NOTES = frozenset({"id", "call_id", "tool_call_id", "inspect"})
"""Keys of items whose values depend on the engine."""

_Key = tuple[int | None, str, SampleId]


@dataclass(frozen=True)
class EngineDifference:
    """Sample or metric with different values on the engines."""

    cause: Cause
    sample: SampleId | None
    """ID of the sample; `None` for a metric."""
    detail: str
    """Description of the difference and its location."""


@dataclass(frozen=True)
class TaskCertificate:
    """Comparison of the engines for one plan."""

    task: str
    plan_digest: str
    parity: Parity
    num_same_messages: int
    """Number of samples whose conversations are the same on all engines."""
    num_same_scores: int
    """Number of samples whose scores, failures and exclusions are the same on all engines."""
    causes: Mapping[str, int]
    """Number of samples (or metrics) for each cause."""
    differences: tuple[EngineDifference, ...]
    """First differences."""
    digests: Mapping[str, str]
    """SHA-256 of the conversations and scores of all samples in order, for each engine."""

    @property
    def is_equal(self) -> bool:
        """Return whether all engines agree."""
        return self.parity.is_equal and not self.causes


@dataclass(frozen=True)
class Certificate:
    """Certificate that engines agree, or do not agree, on all plans that were run."""

    cassette: Path
    num_calls: int
    """Number of calls in the cassette."""
    engines: Mapping[str, Player]
    """Player that answered the model calls of each engine."""
    tasks: Sequence[TaskCertificate] = field(default_factory=tuple)
    versions: Mapping[str, str | None] = field(default_factory=dict)
    """Version of each engine; `None` for an engine without its own package."""
    recorded: Sequence[RecordedRun] = ()
    """Recorded runs with their engine and models."""

    @property
    def is_equal(self) -> bool:
        """Return whether the engines agree on every plan."""
        return all(task.is_equal for task in self.tasks)

    @property
    def is_complete(self) -> bool:
        """Return whether the cassette contained every call. Missing answers make a comparison incomplete."""
        return not any(player.num_missing for player in self.engines.values())

    @property
    def passed(self) -> bool:
        """Return whether the engines agree and every run finished with all answers available."""
        statuses = {status for task in self.tasks for status in task.parity.statuses.values()}
        return self.is_equal and self.is_complete and statuses <= {"success"}

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        with self.cassette.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return {
            "certificate": "parity",
            "format": FORMAT,
            "version": __version__,
            "created_at": int(time.time()),
            "equal": self.is_equal,
            "complete": self.is_complete,
            "cassette": {
                "name": self.cassette.name,
                "sha256": digest,
                "calls": self.num_calls,
                "recorded": redact_value([asdict(run) for run in self.recorded]),
            },
            "engines": {
                engine: {
                    "version": self.versions.get(engine),
                    "answered": player.num_given,
                    "missing": player.num_missing,
                    "not_asked": player.num_unasked,
                }
                for engine, player in self.engines.items()
            },
            "environment": environment(),
            "tasks": [self._task(task) for task in self.tasks],
        }

    def _task(self, task: TaskCertificate) -> dict[str, Any]:
        content = task.parity.to_json()
        total = content["samples"]["total"]
        return {
            "task": task.task,
            "plan": task.plan_digest,
            **content,
            "equal": task.is_equal,
            "samples": {
                "total": total,
                "same_messages": task.num_same_messages,
                "same_scores": task.num_same_scores,
            },
            "causes": dict(task.causes),
            "differences": [asdict(difference) for difference in task.differences],
            "digests": dict(task.digests),
        }

    def to_markdown(self) -> str:
        """Return the certificate as Markdown."""
        return "".join(f"{line}\n" for line in _lines(self, self.to_json()))


def task_certificate(outcomes: Mapping[str, Outcome], players: Mapping[str, Player]) -> TaskCertificate:
    """Compare the outcomes of several engines for one plan.

    Args:
        outcomes: outcome of each engine. At least two are needed; the first one sets the sample order.
        players: player of each engine, with its recorded requests.

    Raises:
        EvidenceError: a result log cannot be read.
    """
    first = next(iter(outcomes.values()))
    compared = parity(outcomes)
    samples = {engine: dict(_digests(outcome.result)) for engine, outcome in outcomes.items()}
    keys = list(dict.fromkeys(key for of_one in samples.values() for key in of_one))
    keys = [key for key in keys if key[0] is not None] or keys
    name = first.task if first.plan is None else task_name(first.plan)
    requests = dict(_asked_differences(players, name))
    different: dict[_Key, EngineDifference] = {}
    same_messages = same_scores = 0
    for key in keys:
        messages, scores = zip(*(of_one.get(key, (b"", b"")) for of_one in samples.values()), strict=True)
        same_messages += len(set(messages)) == 1
        same_scores += len(set(scores)) == 1
        if key[2] in requests:
            different[key] = requests[key[2]]
        elif len(set(messages)) > 1:
            different[key] = EngineDifference(
                "conversation", key[2], "different messages from the same answers"
            )
        elif len(set(scores)) > 1:
            different[key] = EngineDifference("scorer", key[2], "different scores for the same messages")
    details = dict(_details([outcome.result for outcome in outcomes.values()], different))
    differences = [details.get(key, difference) for key, difference in different.items()]
    if not differences:
        differences = list(_aggregations(compared))
    return TaskCertificate(
        task=name,
        plan_digest="" if first.plan is None else first.plan.digest,
        parity=compared,
        num_same_messages=same_messages,
        num_same_scores=same_scores,
        causes=Counter(difference.cause for difference in differences),
        differences=tuple(differences[:MOST_DIFFERENCES]),
        digests={engine: _digest_of(of_one) for engine, of_one in samples.items()},
    )


def _aggregations(compared: Parity) -> Iterator[EngineDifference]:
    for metric in compared.metrics:
        if not metric.is_equal:
            values = ", ".join(f"{engine} {value!r}" for engine, value in metric.values.items())
            detail = f"{metric.scorer_key}, {metric.name}: {values}"
            yield EngineDifference("aggregation", None, detail)


def _digest_of(samples: Mapping[_Key, tuple[bytes, bytes]]) -> str:
    digest = hashlib.sha256()
    for key, (messages, scores) in samples.items():
        digest.update(repr(key).encode("utf-8", "replace") + messages + scores)
    return digest.hexdigest()


# Model requests


def _asked_differences(
    players: Mapping[str, Player], task: str
) -> Iterator[tuple[SampleId, EngineDifference]]:
    """Return the first difference between model requests for each affected sample."""
    (first_engine, first), *others = players.items()
    done: set[SampleId] = set()
    for engine, other in others:
        left, right = first.asked or {}, other.asked or {}
        for place in [*left, *(place for place in right if place not in left)]:
            if place.task != task or place.sample in done or left.get(place) == right.get(place):
                continue
            sides = (_request(first, left.get(place)), _request(other, right.get(place)))
            difference = _asked_difference(place, (first_engine, engine), sides)
            if difference is not None:
                done.add(place.sample)
                yield place.sample, difference


def _asked_difference(
    place: CallSite, engines: tuple[str, str], sides: tuple[Any, Any]
) -> EngineDifference | None:
    one, another = sides
    if one == another:
        return None
    if one is None or another is None:
        alone = engines[one is None]
        return EngineDifference("prompt", place.sample, f"{place}: only {alone} asks")
    cause: Cause = "prompt" if _without_settings(one) != _without_settings(another) else "generation settings"
    lines = request_differences(one, another, engines)
    return EngineDifference(cause, place.sample, f"{place}: {'; '.join(lines)}")


def _request(player: Player, asked: int | bytes | None) -> Any:
    if asked is None:
        return None
    return (
        player.cassette.line(asked)["request"] if isinstance(asked, int) else orjson.loads(asked or b"null")
    )


def _without_settings(request: Any) -> Any:
    return {name: part for name, part in request.items() if name not in _SETTINGS}


# Conversations and scores


def _parts(result: Path | None) -> Iterator[tuple[_Key, dict[str, Any]]]:
    if result is None:
        return
    for part in LogReader(result).parts():
        if isinstance(part, SamplePart):
            sample_id = part.value.get("sample_id")
            sample_id = part.position if sample_id is None else sample_id
            yield (part.run, type(sample_id).__name__, sample_id), dict(part.value)


def _digests(result: Path | None) -> Iterator[tuple[_Key, tuple[bytes, bytes]]]:
    """Yield digests of conversations and scores for each sample. Digests save memory, as results can be
    large.
    """
    for key, sample in _parts(result):
        yield key, (_digest(_conversations(sample)), _digest(compared_part(sample)))


def _digest(value: Any) -> bytes:
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).digest()


def _details(
    results: Sequence[Path | None], different: Mapping[_Key, EngineDifference]
) -> Iterator[tuple[_Key, EngineDifference]]:
    """Yield the differences of conversations and scores with their locations."""
    wanted = [key for key, each in different.items() if each.cause in ("conversation", "scorer")]
    looked_at = set(wanted[:MOST_DIFFERENCES])
    if not looked_at:
        return
    sides = [{key: sample for key, sample in _parts(result) if key in looked_at} for result in results]
    for key in looked_at:
        left, *others = [side.get(key) for side in sides]
        for right in others:
            difference = different[key]
            if left is None or right is None:
                yield key, EngineDifference(difference.cause, key[2], "it is only in one result")
                break
            view = _conversations if difference.cause == "conversation" else compared_part
            lines = request_differences(view(left), view(right), ("one", "another"))
            if lines:
                yield key, EngineDifference(difference.cause, key[2], "; ".join(lines))
                break


def _conversations(sample: Mapping[str, Any]) -> Any:
    """Return the conversations of a sample without engine-specific keys."""
    trials: Iterable[Any] = sample.get("trials") or [sample]
    return [_said((trial.get("solver") or {}).get("output")) for trial in trials]


def _said(output: Any) -> Any:
    if not isinstance(output, dict):
        return output
    group = output.get("solver_outputs")
    if group is not None:
        return (
            {key: _said(part) for key, part in group.items()}
            if isinstance(group, dict)
            else list(map(_said, group))
        )
    trace = output.get("trace")
    items = output.get("messages") if trace is None else trace.get("items")
    return {"items": _item(items), "raw_outputs": output.get("raw_outputs"), "output": output.get("output")}


def _item(item: Any) -> Any:
    if isinstance(item, list):
        return [_item(part) for part in item]
    if not isinstance(item, dict):
        return item
    fields = {name: _item(part) for name, part in item.items() if name not in _NOTES and part is not None}
    if item.get("type") == "function_call":
        with suppress(KeyError, TypeError, ValueError):
            fields["arguments"] = json.loads(item["arguments"])
    return fields


# Markdown


def _lines(certificate: Certificate, content: Mapping[str, Any]) -> Iterator[str]:
    verdict = "the engines agree" if certificate.is_equal else "the engines differ"
    if not certificate.is_complete:
        verdict += ", and some calls were not in the cassette"
    yield "# Parity certificate"
    yield ""
    yield f"**{verdict}**: {', '.join(certificate.engines)}, each answered from `{certificate.cassette.name}`"
    yield ""
    yield "| engine | version | answered | not in the cassette | not asked |"
    yield "|---|---|--:|--:|--:|"
    for engine, player in certificate.engines.items():
        version = certificate.versions.get(engine) or "–"
        yield f"| {engine} | {version} | {player.num_given} | {player.num_missing} | {player.num_unasked} |"
    yield ""
    cassette, made_by = content["cassette"], content["environment"]
    created = datetime.fromtimestamp(content["created_at"], UTC).isoformat()
    yield f"- written {created} by aigo-bridge {content['version']}"
    yield f"- {made_by['implementation']} {made_by['python']} on {_cell(made_by['platform'])}"
    yield f"- cassette: {cassette['calls']} calls, SHA-256 `{cassette['sha256']}`"
    for run in cassette["recorded"]:
        models = ", ".join(
            _cell(f"{key or 'evaluated model'}: {name}") for key, name in run["models"].items()
        )
        yield f"- {_cell(run['task'])} was recorded on {_cell(run['engine'])}; {models or 'no model'}"
    yield "- packages: " + ", ".join(f"{name} {version}" for name, version in made_by["packages"].items())
    for task in certificate.tasks:
        yield from _task_lines(task)


def _task_lines(task: TaskCertificate) -> Iterator[str]:
    total = task.parity.num_samples
    yield ""
    yield f"## {_cell(task.task)}"
    yield ""
    same = f"the same messages in {task.num_same_messages}, the same scores in {task.num_same_scores}"
    yield f"{plural(total, 'sample')}: {same}"
    yield ""
    yield f"Plan: SHA-256 `{task.plan_digest}`"
    yield ""
    for engine, digest in task.digests.items():
        yield f"- {engine}: conversations and scores have SHA-256 `{digest}`"
    yield ""
    yield f"| metric | {' | '.join(task.parity.statuses)} | |"
    yield f"|---|{'--:|' * len(task.parity.statuses)}---|"
    for metric in task.parity.metrics:
        values = " | ".join("–" if value is None else repr(value) for value in metric.values.values())
        mark = "" if metric.is_equal else "differs"
        yield f"| {_cell(metric.scorer_key)}, {_cell(metric.name)} | {values} | {mark} |"
    if task.causes:
        yield ""
        yield "Causes: " + ", ".join(f"{cause} {count}" for cause, count in task.causes.items())
        yield ""
        for difference in task.differences[:20]:
            where = "metric" if difference.sample is None else f"sample {_cell(str(difference.sample))}"
            yield f"- {where} ({difference.cause}): {_cell(difference.detail)}"
        if len(task.differences) > 20:
            yield f"- and {sum(task.causes.values()) - 20} more, in the JSON"


def _cell(text: str) -> str:
    """Return untrusted text as one table cell: on one line, with markup escaped."""
    shown = "".join(f"\\{sign}" if sign in r"\`*_[]<>|#" else sign for sign in " ".join(text.split()))
    return shown if len(shown) <= 500 else f"{shown[:500]}…"

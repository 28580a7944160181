"""A run of one of lighteval's own tasks as a result log: mapped as an import of its files would be, with what those files have no place for.

That is: failures, tokens, raw requests and responses, and times by a clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from aigo_bridge.engine import ImportOptions
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS
from aigo_bridge.importing.loss import LossReport
from aigo_bridge.importing.output import open_draft
from aigo_bridge.importing.redaction import redaction
from aigo_bridge.importing.result import ImportResult
from aigo_bridge.secrets import redact_json
from aigo_lighteval import recording
from aigo_lighteval.foreign.finding import Run
from aigo_lighteval.foreign.frame import frame_of
from aigo_lighteval.foreign.header import read_header
from aigo_lighteval.foreign.rows import Asked, Row
from aigo_lighteval.foreign.samples import SampleMapper
from aigo_lighteval.foreign.writing import prompting, redacted
from aigo_lighteval.native_models import Told
from aigo_lighteval.native_running import Finished, Measured, plain

Json = dict[str, Any]


def write_result(
    task: str, finished: Finished, told: Told, target: Path, *, started: float, ended: float
) -> Path:
    """Write `<target>.tasklog.json` and `<target>.loss.json`; returns the former.

    Args:
        task: as lighteval names it in its results.
        finished: what the run left.
        told: what lighteval had no place for.
        target: the files without their suffixes.
        started: Unix time in seconds.
        ended: Unix time in seconds.
    """
    loss, secrets = LossReport(), redaction(())
    location = str(finished.results_file)
    run = Run(finished.date, location)
    _, header = read_header(location, DEFAULT_BOUNDS, redaction(()), redact=True)
    mapper = SampleMapper(
        run=f"{finished.date}/{task}",
        source=location,
        model=header.model,
        prompts=prompting(header),
        options=ImportOptions(),
        loss=loss,
    )
    output = target.with_name(f"{target.name}.tasklog.json")
    with open_draft(output) as file:
        file.write(b'{"evidence":{"samples":[\n')
        before = b""
        for asked in _documents(finished.measured, told):
            sample = mapper.sample(asked)
            _complete(sample, asked.sample_id, told)
            file.write(before + redact_json(redacted(sample, secrets)))
            before = b",\n"
        frame = frame_of(run, header, task, mapper.totals, mapper.scores.names, [], loss)
        evidence = frame.pop("evidence")
        evidence["failures"]["num_errors"] = len(told.failures)
        frame["execution"] |= {"runtime": ended - started, "started_at": int(started), "ended_at": int(ended)}
        frame["execution"].setdefault("model_usage", {}).update(_usage(told))
        file.write(
            b"\n],"
            + redact_json(redacted(evidence, secrets))[1:]
            + b","
            + redact_json(redacted(frame, secrets))[1:]
            + b"\n"
        )
    result = ImportResult(
        log=f"{location} ({task})",
        output=output,
        loss_file=target.with_name(f"{target.name}.loss.json"),
        status="success",
        samples=mapper.totals.samples,
        trials=mapper.totals.trials,
        failed=len(told.failures),
        damage=(),
        loss=loss,
        redacted=secrets.found,
    )
    result.write_loss()
    return output


def _documents(measured: list[Measured], told: Told) -> Iterator[Asked]:
    """Documents with a row for each way of asking, in their order."""
    rows: dict[str, list[Row]] = {}
    for number, each in enumerate(measured):
        metrics = {name: plain(value) for name, value in each.metrics.items()}
        row = Row(
            number,
            plain(asdict(each.doc)),
            plain(asdict(each.response)),
            None if each.doc.id in told.failures else metrics,
            odd=True,
        )
        rows.setdefault(each.doc.id, []).append(row)
    for sample_id, own in rows.items():
        yield Asked(sample_id, own)


def _complete(sample: Json, sample_id: str, told: Told) -> None:
    """Add to a sample what lighteval had no place for."""
    failure, record = told.failures.get(sample_id), told.records.get(sample_id)
    trials = sample["trials"]
    if failure is not None:
        for trial in trials:
            trial["errors"].append(failure.to_error().model_dump(mode="json", exclude_unset=True))
    if record is None:
        return
    calls = record["calls"]
    for number, trial in enumerate(trials):
        if trial["solver"] is None:
            continue
        own = {**record, "calls": calls[number : number + 1] if len(trials) > 1 else calls}
        output = trial["solver"]["output"]
        mapped = output["trace"]["events"]
        events = recording.events(own, f"solver:{number}")
        for event in events:
            if event["type"] == "model_call_event" and mapped:
                event["metadata"] = mapped[0]["metadata"]
        output["trace"]["events"] = events
        output["direct_ios"] = recording.direct_ios(own)


def _usage(told: Told) -> Mapping[str, int]:
    """Tokens of the whole run; empty when no call told of any."""
    found: dict[str, int] = {}
    for record in told.records.values():
        for call in record["calls"]:
            for name, tokens in call.get("usage", {}).items():
                found[name] = found.get(name, 0) + tokens
    return found

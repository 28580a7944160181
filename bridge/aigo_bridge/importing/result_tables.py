"""Parquet tables of a result log, with the same schema as the tables of an imported engine log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.dtypes import SampleEvidence, SampleTrialEvidence, make_explicit
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportReport, LossReport, file_stem, unmapped
from aigo_bridge.importing.tables import TrialParts, total_of, written_tables
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.results.log_files import COMPRESSIONS
from aigo_bridge.results.reading import LogReader
from aigo_bridge.text.json_text import dumps

Json = dict[str, Any]


def import_result_log(location: str, out: Path, secrets: Redactor, taken: set[str]) -> ImportReport:
    """Write the tables of a result log to `<name>.tables` in a folder.

    Args:
        location: location of the log.
        out: folder of the tables, which is created if necessary.
        secrets: redaction to apply.
        taken: names that are taken in the folder; the name of this log is added.

    Raises:
        UsageError: pyarrow is not installed.
    """
    secrets.found.clear()
    name = Path(location).name
    for suffix in (*COMPRESSIONS, ".json", ".jsonl", ".tasklog"):
        name = name.removesuffix(suffix)
    out.mkdir(parents=True, exist_ok=True)
    folder = out / f"{file_stem(secrets.text(name), taken)}.tasklog"
    loss, counts = LossReport(), {"samples": 0, "trials": 0}
    try:
        reader = LogReader(location)
        status = _write(reader, folder, secrets, loss, counts)
    except UsageError:
        raise
    except (EvidenceError, OSError) as error:
        reason = str(error) if isinstance(error, EvidenceError) else f"{folder}: {error.strerror or error}"
        return _unreadable(location, reason)
    except Exception as error:  # noqa: BLE001  # must not affect other results
        return _unreadable(location, unmapped("the result", error))
    facts = {"status": status, **counts, "loss": loss.as_dict(), "redacted": dict(secrets.found)}
    return ImportReport(
        location,
        folder,
        status=status,
        samples=counts["samples"],
        trials=counts["trials"],
        loss=loss,
        redacted=Counter(secrets.found),
        facts=facts,
    )


def _unreadable(location: str, reason: str) -> ImportReport:
    return ImportReport(location, exit_code=ExitCode.PARTIAL, reason=reason, facts={"reason": reason})


def _write(
    reader: LogReader, folder: Path, secrets: Redactor, loss: LossReport, counts: dict[str, int]
) -> str:
    frame = reader.frame()
    aggregated: dict[str, list[Json]] = {}
    with written_tables(folder, loss) as (tables, draft):
        for sample in reader.samples():
            counts["samples"] += 1
            if sample.trials and sample.scores:
                scores = [score.model_dump(mode="json", exclude_unset=True) for score in sample.scores]
                aggregated[str(sample.sample_id)] = secrets.value(scores)
            for parts in _trials(sample, secrets):
                counts["trials"] += 1
                tables.add(parts)
        frame_data = secrets.value(frame.model_dump(mode="json", exclude_unset=True))
        (frame_data.get("evidence") or {}).pop("samples", None)
        if aggregated:
            frame_data["reduced_scores"] = aggregated
        (draft / "result.json").write_bytes(dumps(frame_data) + b"\n")
    return str(frame.status)


def _trials(sample: SampleEvidence, secrets: Redactor) -> Iterator[TrialParts]:
    trials = sample.trials or [
        # In legacy evidence and the evidence of one run, the sample is its only trial.
        SampleTrialEvidence(
            index=0,
            sample_id="" if sample.sample_id is None else sample.sample_id,
            sample=sample.sample,
            solver=sample.solver,
            scores=sample.scores,
            errors=sample.errors,
        )
    ]
    for trial in trials:
        yield _parts(secrets.value(make_explicit(trial).model_dump(mode="json")))


def _parts(trial: Json) -> TrialParts:
    outputs = _outputs((trial.get("solver") or {}).get("output") or {})
    traces = [output.get("trace") or {} for output in outputs]
    metadata = (traces[0].get("metadata") or {}) if traces else {}
    usages = [usage for output in outputs for usage in _usages(output)]
    extra = metadata.get("extra") or {}
    return TrialParts(
        sample_id=trial["sample_id"],
        index=trial["index"],
        data=(trial.get("sample") or {}).get("data") or {},
        items=[item for output in outputs for item in _items(output)],
        events=[event for trace in traces for event in trace.get("events") or ()],
        metadata=metadata,
        scores=trial.get("scores") or (),
        errors=trial.get("errors") or (),
        extra=extra.get("inspect", extra),
        prompt_tokens=total_of(usage.get("num_prompt_tokens") for usage in usages),
        completion_tokens=total_of(usage.get("num_completion_tokens") for usage in usages),
    )


def _outputs(output: Json) -> list[Json]:
    """Return the conversations of a trial in order."""
    several = output.get("solver_outputs")
    if several is None:
        return [output] if output else []
    return list(several.values() if isinstance(several, dict) else several)


def _items(output: Json) -> Iterable[Mapping[str, Any]]:
    return (output.get("trace") or {}).get("items") or output.get("messages") or ()


def _usages(output: Json) -> Iterator[Json]:
    """Yield the tokens of each model call; empty for a call without usage data."""
    events = (output.get("trace") or {}).get("events") or ()
    calls = [event for event in events if event.get("type") == "model_call_event"]
    raw = output.get("raw_outputs") or [output.get("output")]
    for source in calls or [each for each in raw if isinstance(each, dict)]:
        yield source.get("usage") or {}

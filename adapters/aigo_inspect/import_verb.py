"""The engine's side of `aigo-bridge import`: foreign logs are mapped, our own come back as the run wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from aigo_bridge.engine import Evidence, ImportOptions, ImportReport
from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.evaluate import write_evidence
from aigo_inspect.bounds import DEFAULT_BOUNDS
from aigo_inspect.evidence import read
from aigo_inspect.importing import ImportResult, import_logs
from aigo_inspect.reading import open_log
from aigo_inspect.sources import find_logs, local_path
from aigo_inspect.terminal import harmless, report_lines


def run_import(
    locations: Sequence[str], out: Path, options: ImportOptions, tell: Callable[[ImportReport], None]
) -> int:
    """Import logs, one report each as they are done; returns the worst exit code (see `ImportReport`)."""
    bounds = DEFAULT_BOUNDS.changed(options.bounds)
    worst = 0
    foreign: list[str] = []
    for log in find_logs(locations):
        report = import_own(log, out, options.output_format) if options.output_format != "parquet" else None
        if report is not None:
            tell(report)
            worst = max(worst, report.exit_code)
        else:
            foreign.append(log)
    if foreign:
        results = import_logs(
            foreign,
            out,
            context=options.context,
            output_format=options.output_format,
            keep=options.events,
            jobs=options.jobs,
            redact=options.redact,
            patterns=options.patterns,
            max_loss=options.max_loss,
            bounds=bounds,
            on_result=lambda result: tell(_report(result)),
        )
        worst = max([worst, *(result.exit_code for result in results)])
    return worst


def _own_evidence(log: str) -> Evidence | None:
    """What a log of `aigo-bridge run` says; `None` for every other log, and for damaged ones, which are salvaged."""
    path = local_path(log)
    if path is None:
        return None
    try:
        with open_log(path) as reader:
            if reader.damage:
                return None
        return read(Path(path), bounds=DEFAULT_BOUNDS)
    except BridgeError:
        # Not ours, or of a release whose plans this one cannot read: then it is a log like any other.
        return None


def import_own(log: str, out: Path, output_format: str = "json") -> ImportReport | None:
    """Write the evidence of a run of ours; `None` for every other log, and for one that has to be salvaged."""
    evidence = _own_evidence(log)
    if evidence is None:
        return None
    out.mkdir(parents=True, exist_ok=True)
    name = Path(log).name.removesuffix(".eval").removesuffix(".json")
    target = out / f"{name}.tasklog.{output_format}"
    try:
        tally, _ = write_evidence(evidence, target, engine="inspect")
    except EvidenceError:
        return None
    failed = f", {tally.num_failed} failed" if tally.num_failed else ""
    lines = (
        f"{harmless(log)}: {evidence.execution.status}",
        f"  {tally.num_samples} samples{failed} -> {harmless(str(target))}",
        "  written by aigo-bridge: the evidence is that of the run",
    )
    return ImportReport(log, target, lines, 0, {"samples": tally.num_samples, "failed": tally.num_failed})


def _report(result: ImportResult) -> ImportReport:
    summary = {
        "status": result.status,
        "samples": result.samples,
        "trials": result.trials,
        "failed": result.failed,
        "loss": result.loss.as_dict(),
        "redacted": dict(result.redacted),
        "unreadable": [str(damage) for damage in result.damage],
        "reason": result.reason,
    }
    return ImportReport(result.log, result.output, tuple(report_lines(result)), result.exit_code, summary)

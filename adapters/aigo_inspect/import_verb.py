"""The engine's side of `aigo-bridge import`: foreign logs are mapped, our own come back as the run wrote them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aigo_bridge.errors import BridgeError, EvidenceError
from aigo_bridge.importing.bounds import DEFAULT_BOUNDS
from aigo_bridge.importing.redaction import Redaction, redaction
from aigo_bridge.importing.result import PARTIAL
from aigo_bridge.importing.terminal import harmless
from aigo_inspect.importing import import_logs, result_stem
from aigo_inspect.keys import HEADER_KEY
from aigo_inspect.reading import open_log
from aigo_inspect.sources import UnreachableError, find_logs, is_log_file, local_path

if TYPE_CHECKING:
    from aigo_bridge.engine import Evidence, ImportOptions
    from aigo_bridge.importing.report import ImportReport


class InspectLogs:
    """Reads what Inspect leaves behind."""

    expected = "logs of Inspect (*.eval, *.json)"

    def files(self, location: str) -> list[str]:
        """The logs of Inspect at a location."""
        path = local_path(location)
        if path is not None and Path(path).is_file():
            return [location] if is_log_file(Path(path)) else []
        try:
            return find_logs([location])
        except UnreachableError:
            # The import says why.
            return [location]
        except (BridgeError, OSError, ValueError, ImportError):
            return []

    def import_logs(
        self,
        locations: Sequence[str],
        out: Path,
        options: ImportOptions,
        tell: Callable[[ImportReport], None],
    ) -> int:
        """Turn Inspect's logs into result logs; see `Engine.import_logs`."""
        return run_import(locations, out, options, tell)


def run_import(
    locations: Sequence[str], out: Path, options: ImportOptions, tell: Callable[[ImportReport], None]
) -> int:
    """Import logs, one report each as they are done; returns the worst exit code (see `ImportReport`)."""
    bounds = DEFAULT_BOUNDS.changed(options.bounds)
    worst = 0
    foreign: list[str] = []
    taken: set[str] = set()
    for log in find_logs(locations):
        report = import_own(log, out, options, taken) if options.output_format != "parquet" else None
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
            on_result=lambda result: tell(result.report()),
            taken=taken,
        )
        worst = max([worst, *(result.exit_code for result in results)])
    return worst


def _own_evidence(log: str, redaction: Redaction) -> Evidence | None:
    """What a log of `aigo-bridge run` says; `None` for every other log, and for damaged ones, which are salvaged."""
    path = local_path(log)
    if path is None:
        return None
    try:
        with open_log(path) as reader:
            metadata = reader.header["eval"].get("metadata")
            if reader.damage or not isinstance(metadata, dict) or HEADER_KEY not in metadata:
                return None
        # Late: for the logs of others no plans are needed, which take longer to load than most logs to import.
        from aigo_inspect.evidence import read

        return read(Path(path), bounds=DEFAULT_BOUNDS, redaction=redaction)
    except (BridgeError, MemoryError):
        # Not ours, or of a release whose plans this one cannot read: then it is a log like any other, and what is wrong
        # with it is told there.
        return None


def import_own(
    log: str, out: Path, options: ImportOptions | None = None, taken: set[str] | None = None
) -> ImportReport | None:
    """Write the evidence of a run of ours; `None` for every other log, and for one that has to be salvaged.

    The run kept all of it, so that choices of contexts and events do not apply; secrets are taken out as from any log.

    Args:
        log: a path or a URL.
        out: folder for the evidence.
        options: how it is imported.
        taken: names that are taken in the folder; that of this log is added.
    """
    from aigo_bridge.engine import ImportOptions
    from aigo_bridge.importing.report import ImportReport

    options = options or ImportOptions()
    secrets = (
        redaction(options.patterns)
        if options.redact
        else redaction(options.patterns, environment={}, well_known=False)
    )
    evidence = _own_evidence(log, secrets)
    if evidence is None:
        return None
    secrets.found.clear()
    from aigo_bridge.evaluate import write_evidence

    out.mkdir(parents=True, exist_ok=True)
    names = set() if taken is None else taken
    before = set(names)
    target = out / f"{result_stem(secrets.text(log), names)}.tasklog.{options.output_format}"
    try:
        tally, _ = write_evidence(evidence, target, engine="inspect")
    except EvidenceError:
        names.intersection_update(before)
        return None
    except OSError as error:
        reason = f"the evidence cannot be written: {target}: {error.strerror or error}"
        told = (f"{harmless(log)}: {evidence.execution.status}", f"  {harmless(reason)}")
        return ImportReport(log, None, told, PARTIAL, {"reason": reason})
    failed = f", {tally.num_failed} failed" if tally.num_failed else ""
    unused = [
        name
        for name, value, default in (
            ("--context", options.context, "full"),
            ("--events", options.events, "default"),
        )
        if value != default
    ]
    lines = (
        f"{harmless(log)}: {evidence.execution.status}",
        f"  {tally.num_samples} samples{failed} -> {harmless(str(target))}",
        *(f"  redacted: {count} x {harmless(kind)}" for kind, count in sorted(secrets.found.items())),
        "  written by aigo-bridge: the evidence is that of the run",
        *(f"  {name} is not used: the run's evidence is complete" for name in unused),
    )
    summary = {
        "samples": tally.num_samples,
        "failed": tally.num_failed,
        "redacted": dict(secrets.found),
        "unused_options": unused,
    }
    return ImportReport(log, target, lines, 0, summary)

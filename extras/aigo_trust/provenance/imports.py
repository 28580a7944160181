"""The provenance of results that are imported from an engine's logs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from aigo_bridge.errors import EvidenceError
from aigo_bridge.exit_codes import ExitCode
from aigo_bridge.importing.log_import import ImportOptions, ImportReport


def keep_provenance(
    report: ImportReport,
    engine: str,
    logs: Sequence[str | None],
    options: ImportOptions,
    *,
    verb: str = "import",
) -> ImportReport:
    """Write the provenance of a result beside it, where it is asked for; of tables there is none.

    Args:
        report: of the import, whose result is written.
        engine: that wrote the logs.
        logs: their locations, as the user named them.
        options: how they were imported.
        verb: `run` where an engine's own benchmark was.

    Returns:
        The report, with the reason where the provenance could not be written.
    """
    is_asked = options.provenance or verb == "run"
    if not is_asked or report.output is None or options.output_format == "parquet":
        return report
    from aigo_trust.provenance.record import Making, write_provenance

    chosen = {
        "context": options.context,
        "events": options.events,
        "redact": options.redact,
        "patterns": len(options.patterns),
    }
    making = Making(
        verb,
        engine,
        logs=[log for log in logs if log is not None],
        options=chosen if verb == "import" else {},
    )
    try:
        write_provenance(report.output, making)
    except (OSError, EvidenceError) as error:
        missing = f"the provenance cannot be written: {getattr(error, 'strerror', None) or error}"
        reason = f"{missing}; {report.reason}" if report.reason else missing
        return replace(report, exit_code=ExitCode.PARTIAL, reason=reason)
    return report

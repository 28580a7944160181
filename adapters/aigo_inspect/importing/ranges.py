"""A large log read by several processes: each maps some of its samples, and one adds what they come to.

Put together, the lines are those of an import in one stream. Where a sample depends on others (ids that have
to be settled) or something cannot be read, the log is left to that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from aigo_bridge.engine.engine import LogRange
from aigo_bridge.importing.log_import import ImportOptions, ImportReport, LossReport
from aigo_bridge.process import no_collections
from aigo_bridge.results.log_files import open_for_replacing
from aigo_bridge.results.writing import DocumentWriter
from aigo_inspect.importing.attempts import superseded
from aigo_inspect.importing.frame import Totals, frame_of
from aigo_inspect.importing.writing import finish, reduced_scores, write_samples
from aigo_inspect.logs.index import NO_TEXT, RENAMED, RENUMBERED, SampleRef
from aigo_inspect.logs.reader import LogReader, open_log
from aigo_inspect.logs.shapes import FRAME, HEADER_KEY

_OF_OTHERS = (NO_TEXT, RENAMED, RENUMBERED)
"""Changes by which the id of one sample depends on those of all."""


class InspectRanges:
    """Reads parts of Inspect's logs; see `RangeImporter`."""

    def count(self, log: Path, options: ImportOptions) -> int | None:
        """Samples of a finished, sound archive that is not of a run of ours."""
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            metadata = reader.header["eval"].get("metadata")
            is_ours = FRAME in reader.members() or (isinstance(metadata, dict) and HEADER_KEY in metadata)
            if reader.format != "eval" or is_ours or reader.damage or not reader.finished:
                return None
            return len(_samples(reader))

    def import_range(
        self, log: Path, output: Path, options: ImportOptions, first: int, end: int
    ) -> LogRange | None:
        """Write some of its samples as a result log."""
        secrets = options.redaction()
        with open_log(log, bounds=options.bounds, redaction=secrets) as reader:
            refs = [ref for group in _samples(reader)[first:end] for ref in group]
            reductions = reduced_scores(reader, LossReport())
            # What was met until here is counted where the frame is made.
            secrets.found.clear()
            reader.changes.clear()
            loss = LossReport()
            with open_for_replacing(output, clean=False) as file, no_collections():
                writer = DocumentWriter(file)
                totals = write_samples(reader, writer, options, loss, reductions, refs)
                loss.changed.update(reader.changes)
                found = Counter(secrets.found)
                finish(writer, frame_of(reader.header, totals, [], LossReport()))
            if reader.damage or totals.samples != end - first or any(loss.changed[one] for one in _OF_OTHERS):
                return None
        return LogRange(totals.samples, loss, found, totals)

    def import_frame(
        self, log: Path, output: Path, options: ImportOptions, ranges: Sequence[LogRange]
    ) -> ImportReport:
        """Write a result log without samples, whose numbers are those of all."""
        totals, loss = Totals(), LossReport()
        with open_log(log, bounds=options.bounds, redaction=options.redaction()) as reader:
            reduced_scores(reader, loss)
            for part in ranges:
                assert isinstance(part.totals, Totals)
                totals.add(part.totals)
                loss.add(part.loss)
            with open_for_replacing(output, clean=False) as file:
                finish(
                    DocumentWriter(file),
                    frame_of(reader.header, totals, reader.damage, loss, superseded(reader)),
                )
            loss.changed.update(reader.changes)
            report = ImportReport(
                reader.location,
                output=output,
                status=str(reader.header.get("status") or ""),
                samples=totals.samples,
                trials=totals.trials,
                failed=totals.failed,
                damage=tuple(reader.damage),
                loss=loss,
                redacted=Counter(reader.redaction.found),
            )
        for part in ranges:
            report.redacted.update(part.redacted)
        return report.judged(options.max_loss)


def _samples(reader: LogReader) -> list[list[SampleRef]]:
    """The samples in their order, each with its epochs."""
    groups: list[list[SampleRef]] = []
    for ref in reader.sample_refs("sample"):
        if groups and groups[-1][0].id_text == ref.id_text:
            groups[-1].append(ref)
        else:
            groups.append([ref])
    return groups

"""Reports of an import on the terminal, and `--out` that names one file."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from aigo_bridge.cli.terminal import is_verbose, note, print_json
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport

_SUFFIXES = {f".tasklog.{name}": name for name in ("json", "json.gz", "json.zst")}


@dataclass
class ImportReports:
    """Reports of the logs of one import, printed as they arrive."""

    as_json: bool
    """Print all reports as JSON at the end."""
    reports: list[ImportReport] = field(default_factory=list)

    def add(self, report: ImportReport) -> None:
        """Print a report: one line, or all details with `--verbose`."""
        self.reports.append(report)
        if not self.as_json:
            typer.echo("\n".join(report.lines) if is_verbose() else report.line)

    def names(self) -> set[str]:
        """Return the names of the results, without suffixes."""
        outputs = [report.output for report in self.reports if report.output is not None]
        return {output.name.removesuffix(".tasklog") for output in outputs}

    def finish(self, *, total: bool = True) -> None:
        """Print the JSON reports, or the total of several logs."""
        if self.as_json:
            print_json([_for_programs(report) for report in self.reports])
        elif total and len(self.reports) > 1:
            note(_total(self.reports))


def _for_programs(report: ImportReport) -> dict[str, Any]:
    output = None if report.output is None else str(report.output)
    return {"log": report.log, "output": output, **report.summary}


def _total(reports: list[ImportReport]) -> str:
    """Return a line such as `184 logs: 180 imported, 3 partly imported, 1 not imported; 920 samples`."""
    written = [report for report in reports if report.output is not None]
    parts = sum(bool(report.damage) for report in written)
    counts = {
        "imported": len(written) - parts,
        "partly imported": parts,
        "not imported": len(reports) - len(written),
    }
    said = ", ".join(f"{number} {what}" for what, number in counts.items() if number)
    samples, failed = sum(report.samples for report in written), sum(report.failed for report in written)
    return (
        f"{plural(len(reports), 'log')}: {said};"
        f" {plural(samples, 'sample')}{f', {failed} failed' if failed else ''}"
    )


def result_name(out: Path, output_format: str) -> tuple[str, str] | None:
    """Return stem and format of `--out NAME.tasklog.json`; `None` if it names a folder.

    Raises:
        UsageError: the suffix contradicts `--format`, or a folder has the name.
    """
    from aigo_bridge.errors import UsageError

    suffix = next((suffix for suffix in _SUFFIXES if out.name.lower().endswith(suffix)), None)
    if suffix is None or len(out.name) == len(suffix):
        return None
    if output_format not in ("json", _SUFFIXES[suffix]):
        raise UsageError(
            (
                f"--out {out}: the file extension requires --format {_SUFFIXES[suffix]}, found "
                f"--format {output_format}"
            ),
            code=Code.OPTIONS_APART,
        )
    if out.is_dir():
        raise UsageError(
            f"--out {out}: a folder with this name exists; choose another file name",
            code=Code.UNUSABLE_OUTPUT,
        )
    return out.name[: -len(suffix)], _SUFFIXES[suffix]


@contextmanager
def one_result(
    out: Path, options: ImportOptions, reports: ImportReports
) -> Iterator[tuple[Path, ImportOptions, ImportReports]]:
    """Yield folder, options and reports of an import; `--out NAME.tasklog.json` is written when it ends.

    Files are written into a folder next to it, so that nothing is left of logs that have several results.
    """
    named = result_name(out, options.output_format)
    if named is None:
        yield out, options, reports
        return
    stem, output_format = named
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".aigo-import-", dir=out.parent) as folder:
        waiting = ImportReports(as_json=True)
        yield Path(folder), replace(options, name=stem, output_format=output_format), waiting  # type: ignore[arg-type]
        for file in Path(folder).iterdir():
            shutil.move(file, out.parent / file.name)
    for report in waiting.reports:
        output, loss_file = (
            None if path is None else out.parent / path.name for path in (report.output, report.loss_file)
        )
        reports.add(replace(report, output=output, loss_file=loss_file))

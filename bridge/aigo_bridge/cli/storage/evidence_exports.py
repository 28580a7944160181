"""Export of results to AI GO on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast, get_args

import typer

from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.cli.export_options import ExportVerbOptions
    from aigo_bridge.exporting.evidence import EvidenceFolder, EvidenceOptions

_SHOWN = 40


def export_to_aigo(options: ExportVerbOptions) -> int:
    """Export results to AI GO, print a summary, and return the exit code."""
    from aigo_bridge.cli.error_handling import reported
    from aigo_bridge.cli.terminal import print_json
    from aigo_bridge.errors import UnsupportedPlanError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.exporting.evidence import export_evidence

    choices = _choices(options)
    with reported(ExitCode.FAILED, (UnsupportedPlanError,)):
        written = export_evidence(
            options.sources, options.out, choices, lambda line: typer.echo(line, err=True)
        )
    if options.as_json:
        print_json(_summary(written, choices))
    else:
        _print(written, choices)
    return ExitCode.PARTIAL if written.is_partial else ExitCode.DONE


def _choices(options: ExportVerbOptions) -> EvidenceOptions:
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.errors import UsageError
    from aigo_bridge.exporting.evidence import EvidenceOptions
    from aigo_bridge.exporting.evidence.options import AttachmentChoice, EventChoice

    events, attachments = options.events or "all", options.attachments or "keep"
    if events not in get_args(EventChoice):
        raise UsageError(f"--events: found {events!r}, expected all or main", code=Code.WRONG_OPTION)
    if attachments not in get_args(AttachmentChoice):
        raise UsageError(
            f"--attachments: found {attachments!r}, expected keep, files or drop", code=Code.WRONG_OPTION
        )
    return EvidenceOptions(
        app=options.app,
        evaluation_key=options.evaluation_key,
        model_keys=pairs("--model-key", options.model_key),
        task_keys=pairs("--task-key", options.task_key),
        events=cast("EventChoice", events),
        attachments=cast("AttachmentChoice", attachments),
        allow_gaps=options.allow_gaps,
        force=options.force,
        dry_run=options.dry_run,
    )


def _summary(written: EvidenceFolder, options: EvidenceOptions) -> dict[str, Any]:
    return {
        "folder": str(written.folder),
        "written": not options.dry_run,
        "evaluation": written.evaluation,
        "files": [{"file": name, "bytes": size} for name, size in written.created],
        "reused": list(written.reused),
        "repeated": list(written.repeated),
        "losses": written.losses,
    }


def _print(written: EvidenceFolder, options: EvidenceOptions) -> None:
    from aigo_bridge.cli.terminal import name_of, printable, short_path
    from aigo_bridge.text.plurals import plural

    folder = name_of(short_path(written.folder))
    results = [name for name, _ in written.created if name.startswith("task_results/")]
    total = sum(size for _, size in written.created)
    verb = "would write" if options.dry_run else "wrote"
    typer.echo(
        f"{name_of(written.evaluation)}: {verb} {plural(len(results), 'result')}"
        f" in {plural(len(written.created), 'file')} ({_size(total)}) to {folder}"
    )
    if options.dry_run:
        for name, size in written.created:
            typer.echo(f"  create  {_size(size):>9}  {printable(name)}")
    for name in written.reused:
        typer.echo(f"  reuse   {printable(name)}")
    for name in written.repeated:
        typer.echo(f"  skip    {printable(name)}: this result was already exported")
    for line in _losses(written.losses)[:_SHOWN]:
        typer.echo(f"  lost    {printable(line)}")
    if not options.dry_run:
        typer.echo(f"run it in {folder}:")
        typer.echo(f"  lf switch {options.app or 'APP'}")
        typer.echo("  lf run -f run.yaml --wait")


def _losses(losses: Mapping[str, Any]) -> list[str]:
    """Return losses as lines; equal losses of several results are counted together."""
    counts: dict[str, int] = {}
    for dropped in losses.get("dropped", {}).values():
        for kind, count in dropped.items():
            counts[kind] = counts.get(kind, 0) + count
    lines = [f"{count} x {kind}" for kind, count in sorted(counts.items())]
    lines += [f"{count} x secret: {kind}" for kind, count in losses.get("redacted", {}).items()]
    return [*lines, *losses.get("missing", ()), *losses.get("tasks", ())]


def _size(number: int) -> str:
    if number < 1000:
        return f"{number} B"
    return f"{number / 1000:.1f} kB" if number < 1_000_000 else f"{number / 1_000_000:.1f} MB"

"""Export of results to AI GO on the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import typer

from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.exporting.evidence import EvidenceFolder, EvidenceOptions

_SHOWN = 40


def refuse_without_aigo(to: str, options: Mapping[str, Any]) -> None:
    """Raise an error for options that require --to aigo.

    Raises:
        UsageError: such an option was set.
    """
    from aigo_bridge.errors import UsageError

    names = [name for name, value in options.items() if value]
    if names:
        raise UsageError(f"{', '.join(names)}: only with --to aigo, found --to {to}", code=Code.OPTIONS_APART)


def export_to_aigo(
    locations: Sequence[str], out: Path, given: Mapping[str, Any], *, force: bool, as_json: bool
) -> int:
    """Export results to AI GO, print a summary, and return the exit code.

    Args:
        locations: results, engine logs, folders and lakes.
        out: output folder.
        given: option → value on the command line.
        force: whether an earlier export is replaced.
        as_json: whether the summary is JSON.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.terminal import print_json
    from aigo_bridge.errors import UnsupportedPlanError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.exporting.evidence import export_evidence

    options = _options(given, force=force)
    try:
        written = export_evidence(locations, out, options, lambda line: typer.echo(line, err=True))
    except UnsupportedPlanError as error:
        with reported(ExitCode.FAILED):
            raise error from error
    if as_json:
        print_json(_summary(written, options))
    else:
        _print(written, options)
    return ExitCode.PARTIAL if written.is_partial else ExitCode.DONE


def _options(given: Mapping[str, Any], *, force: bool) -> EvidenceOptions:
    from aigo_bridge.cli.options import pairs
    from aigo_bridge.errors import UsageError
    from aigo_bridge.exporting.evidence import EvidenceOptions
    from aigo_bridge.exporting.evidence.options import AttachmentChoice, EventChoice

    events: EventChoice = given["--events"] or "all"
    if events not in get_args(EventChoice):
        raise UsageError(f"--events: found {events!r}, expected all or main", code=Code.WRONG_OPTION)
    attachments: AttachmentChoice = given["--attachments"] or "keep"
    if attachments not in get_args(AttachmentChoice):
        raise UsageError(
            f"--attachments: found {attachments!r}, expected keep, files or drop", code=Code.WRONG_OPTION
        )
    return EvidenceOptions(
        app=given["--app"],
        evaluation_key=given["--evaluation-key"],
        model_keys=pairs("--model-key", given["--model-key"]),
        task_keys=pairs("--task-key", given["--task-key"]),
        events=events,
        attachments=attachments,
        allow_gaps=given["--allow-gaps"],
        force=force,
        dry_run=given["--dry-run"],
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

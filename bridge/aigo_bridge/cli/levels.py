"""The outcome of `verify`, as the terminal shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import typer

from aigo_bridge.cli.terminal import printable, short_path
from aigo_bridge.text.plurals import plural
from aigo_trust.verification.levels import Level, Verification

_MARKS = {"proved": "proved", "failed": "FAILED", "cannot be checked": "cannot be checked"}
_SHOWN = 20


def show_verifications(verifications: Sequence[Verification]) -> None:
    """Print each result, and of several the number of each verdict."""
    for number, verification in enumerate(verifications):
        if number:
            typer.echo("")
        _show_verification(verification)
    if len(verifications) > 1:
        counts = Counter(verification.verdict for verification in verifications)
        shown = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        typer.echo(f"\n{plural(len(verifications), 'result')}: {shown}")


def _show_verification(verification: Verification) -> None:
    """Print the verdict on a result, then its levels one by one."""
    typer.echo(printable(verification.summary))
    typer.echo(printable(str(short_path(verification.result))))
    for label, text in verification.facts:
        typer.echo(printable(f"  {label:<10} {text}"))
    for item in verification.levels:
        _show_level(item)
    if verification.verdict == "FAILED":
        reliable = verification.reliable or ("nothing in this file",)
        typer.echo("  you can still rely on:")
        for statement in reliable:
            typer.echo(printable(f"  {'':<10} - {statement}"))


def _show_level(item: Level) -> None:
    reason = "" if item.reason is None else f": {item.reason}"
    typer.echo(printable(f"  {item.name:<10} {_MARKS[item.verdict]}{reason}"))
    if item.verdict == "proved":
        typer.echo(printable(f"  {'':<10}   {item.title}"))
    for finding in item.findings[:_SHOWN]:
        typer.echo(printable(f"  {'':<10} - {finding}"))
    if item.num_findings > _SHOWN:
        typer.echo(f"  {'':<10} - and {item.num_findings - _SHOWN} more")
    for note in item.notes:
        typer.echo(printable(f"  {'':<10}   {note}"))

"""`aigo-bridge show`: samples of a result, readable in the terminal."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import VERB
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.errors import EvidenceError
    from aigo_bridge.results import LogReader

app = typer.Typer(**VERB)


@app.command("show")
def show(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="A result log (.tasklog.json, also .gz and .zst).")
    ],
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="ID", help="The sample of this id.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only samples with a failed trial.")] = False,
    stop_reason: Annotated[
        str | None,
        typer.Option(
            "--stop-reason",
            metavar="REASON",
            help="Only samples with an answer that has this stop reason, e.g. content_filter or max_tokens.",
        ),
    ] = None,
    worst: Annotated[
        int | None, typer.Option("--worst", min=1, metavar="N", help="N samples, lowest score first.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="SCORER.SCORE",
            help="That says which are worst; without it the first one that is a number.",
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "-n", "--num-samples", "--limit", min=0, metavar="N", help="Samples at most; 0 for all."
        ),
    ] = 10,
    full: Annotated[bool, typer.Option("--full", help="Texts in full length.")] = False,
) -> None:
    """Show samples of a result: the conversation, scores, errors.

    Exit code: 0 done, 2 wrong use or no result, 3 the result could be read in part.
    """
    from rich.console import Console

    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.failing import show as show_error
    from aigo_bridge.cli.samples import LENGTH, Selection, show_sample
    from aigo_bridge.cli.terminal import note, short_path
    from aigo_bridge.errors import EvidenceError, UsageError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.results import LogReader

    with reported():
        if sample is not None and (failed or worst is not None or stop_reason is not None):
            raise UsageError(
                "--sample cannot be combined with --failed, --stop-reason or --worst, expected one of them",
                code=Code.OPTIONS_APART,
            )
        if score is not None and worst is None:
            raise UsageError(
                "--score says which samples are worst, expected --worst N beside it", code=Code.OPTIONS_APART
            )
        if not result.is_file():
            raise UsageError(f"there is no result log {short_path(result)!r}", code=Code.NOTHING_THERE)
        if _show_disclosure(result):
            return
        reader = LogReader(result)
        screen = Console(highlight=False, markup=False, emoji=False)
        chosen = Selection(sample, failed=failed, stop_reason=stop_reason, worst=worst, score=score)
        parts = chosen.samples(reader)
        limit = None if number == 0 or sample is not None else max(number, worst or 0)
        shown, more = 0, False
        try:
            damage, num_scorers = _show_head(screen, reader)
            for part in islice(parts, limit):
                show_sample(screen, part, num_scorers, length=None if full else LENGTH)
                shown += 1
            more = limit is not None and next(parts, None) is not None
        except EvidenceError as error:
            damage = error
    if damage is not None:
        show_error(damage)
        raise typer.Exit(ExitCode.PARTIAL if shown else ExitCode.WRONG_USE)
    if more:
        note(f"more samples follow; -n shows more of them (now {limit}), 0 all")
    if not shown:
        typer.echo("no sample has failed" if failed else "the result has no samples", err=True)


def _show_disclosure(file: Path) -> bool:
    """Show a disclosed sample of `attest --disclose`; `False`: the file is something else."""
    from aigo_bridge.cli.terminal import note, printable
    from aigo_bridge.verification.disclosures import disclosed_facts, is_disclosure

    if not is_disclosure(file):
        return False
    for label, text in disclosed_facts(file):
        typer.echo(printable(f"{label:<10} {text}"))
    note(f"not checked: aigo-bridge verify {file} --key FILE proves that it belongs to its result")
    return True


def _show_head(screen: Console, reader: LogReader) -> tuple[EvidenceError | None, int]:
    """Show the result as a whole, or return why it cannot be read: samples before the damage can be.

    Also return the number of its scorers.
    """
    from aigo_bridge.cli.samples import show_head
    from aigo_bridge.errors import EvidenceError
    from aigo_bridge.results.counts import scorers_of

    try:
        frame = reader.frame()
        show_head(screen, reader, frame)
    except EvidenceError as error:
        return error, 0
    return None, scorers_of(frame)

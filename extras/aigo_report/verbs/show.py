"""`aigo-bridge show`: prints samples of a result."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import VERB, verb_command
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from rich.console import Console

    from aigo_bridge.errors import EvidenceError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.results.reading import LogReader
    from aigo_bridge.results.sources import ResultSource
    from aigo_report.verbs.samples import SampleFilter

app = typer.Typer(**VERB)


@app.command(
    "show",
    cls=verb_command(
        "aigo-bridge show out --failed",
        "aigo-bridge show out/capitals.tasklog.json --sample 3 --full",
        "aigo-bridge show out --worst 5",
        exit_codes={
            "0": "the samples were shown",
            "2": "wrong arguments, or no result was found",
            "3": "a result could only be read in part",
        },
    ),
)
def show(
    results: Annotated[
        list[str],
        typer.Argument(metavar="RESULT…", help=f"{RESULTS_HELP} Also samples from `attest --disclose`."),
    ],
    sample: Annotated[
        str | None, typer.Option("--sample", metavar="ID", help="Show the sample with this id, e.g. 3.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Show only samples with a failed trial.")] = False,
    stop_reason: Annotated[
        str | None,
        typer.Option(
            "--stop-reason",
            metavar="REASON",
            help="Show only samples with an answer that has this stop reason, e.g. "
            "content_filter or max_tokens.",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="CONDITION",
            help="Show only samples with a trial that fulfils a condition, "
            "e.g. 'score < 0.5 and topic == \"law\"'.",
        ),
    ] = None,
    worst: Annotated[
        int | None, typer.Option("--worst", min=1, metavar="N", help="Show N samples, lowest score first.")
    ] = None,
    score: Annotated[
        str | None,
        typer.Option(
            "--score",
            metavar="SCORER.SCORE",
            help="Score for --worst, e.g. string_equals.is_correct. [default: the first numeric score]",
        ),
    ] = None,
    number: Annotated[
        int,
        typer.Option(
            "-n",
            "--num-samples",
            "--limit",
            min=0,
            metavar="N",
            help="Maximum number of samples of each result; 0 shows all.",
        ),
    ] = 10,
    full: Annotated[bool, typer.Option("--full", help="Show texts without shortening them.")] = False,
) -> None:
    """Show samples of results in the terminal: conversations, scores and errors.

    -n and --worst apply to each result. With --sample, results without this sample are skipped.
    """
    from aigo_bridge.cli.result_arguments import named_results
    from aigo_bridge.errors import UsageError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_report.verbs.samples import LENGTH, SampleFilter, with_sample

    if sample is not None and (failed or worst or stop_reason or where is not None):
        raise UsageError(
            "--sample cannot be combined with --failed, --stop-reason, --where or --worst;"
            " expected one of them",
            code=Code.OPTIONS_APART,
        )
    if score is not None and worst is None:
        raise UsageError("--score: only with --worst N", code=Code.OPTIONS_APART)
    chosen = SampleFilter(
        sample, failed=failed, stop_reason=stop_reason, where=where, worst=worst, score=score
    )
    limit = None if number == 0 or sample is not None else max(number, worst or 0)
    sources = named_results(results)
    if sample is not None and len(sources) > 1:
        sources = with_sample(sources, sample)
    codes = [_show_result(one, chosen, limit, length=None if full else LENGTH) for one in sources]
    if any(codes):
        raise typer.Exit(max(codes, key=(ExitCode.DONE, ExitCode.PARTIAL, ExitCode.WRONG_USE).index))


def _show_result(
    source: ResultSource, chosen: SampleFilter, limit: int | None, *, length: int | None
) -> ExitCode:
    """Print the selected samples of one result.

    Raises:
        UsageError, EvidenceError: as for `SampleFilter.samples`, or the result does not exist.
    """
    from rich.console import Console

    from aigo_bridge.cli.error_handling import show as show_error
    from aigo_bridge.cli.terminal import note
    from aigo_bridge.errors import EvidenceError
    from aigo_bridge.exit_codes import ExitCode
    from aigo_bridge.results.reading import LogReader
    from aigo_report.verbs.samples import show_sample

    assert source.path is not None
    if _show_disclosure(source.path):
        return ExitCode.DONE
    reader = LogReader(source.path, root=source.root)
    screen = Console(highlight=False, markup=False, emoji=False)
    parts = chosen.samples(reader)
    shown, more = 0, False
    try:
        damage, num_scorers = _show_head(screen, reader, source.label)
        for part in islice(parts, limit):
            show_sample(screen, part, num_scorers, length=length)
            shown += 1
        more = limit is not None and next(parts, None) is not None
    except EvidenceError as error:
        damage = error
    if damage is not None:
        show_error(damage)
        return ExitCode.PARTIAL if shown else ExitCode.WRONG_USE
    if more:
        note(f"more samples follow; show more with -n N (now {limit}), or all with -n 0")
    if not shown:
        typer.echo("no sample failed" if chosen.failed else "the result does not contain samples", err=True)
    return ExitCode.DONE


def _show_disclosure(file: Path) -> bool:
    """Print a disclosed sample from `attest --disclose`. Return `False` for any other file."""
    from aigo_bridge.cli.terminal import note, printable
    from aigo_bridge.hooks import load_hook
    from aigo_report import Disclosures

    disclosures = load_hook("disclosures", Disclosures)
    if not disclosures.is_disclosure(file):
        return False
    for label, text in disclosures.facts(file):
        typer.echo(printable(f"{label:<10} {text}"))
    note(f"not checked: aigo-bridge verify {file} --key FILE proves that it belongs to its result")
    return True


def _show_head(screen: Console, reader: LogReader, name: str) -> tuple[EvidenceError | None, int]:
    """Print the summary of a result. Return an error or `None`, and the number of scorers.

    An error is returned, not raised, because samples before the damage are still readable.
    """
    from aigo_bridge.errors import EvidenceError
    from aigo_bridge.results.counts import scorers_of
    from aigo_report.verbs.samples import show_head

    try:
        frame = reader.frame()
        show_head(screen, reader, frame, name)
    except EvidenceError as error:
        return error, 0
    return None, scorers_of(frame)

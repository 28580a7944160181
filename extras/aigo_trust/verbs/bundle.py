"""`aigo-bridge bundle`: a result with all that it is checked against, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import VERB, AllowFileOption, DatasetOption, EnvOption, JsonOption, RootOption
from aigo_bridge.cli.terminal import print_json, printable, short_path

app = typer.Typer(**VERB)


@app.command("bundle")
def bundle(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="Result log (.tasklog.json, also .gz and .zst).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.zip", help="The bundle.")],
    task: Annotated[
        str | None,
        typer.Option(
            "--task", metavar="TASK", help="The task that the result is of, with all files it includes."
        ),
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="LOG", help="The native log that the result is of.")
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="CASSETTE",
            help="The cassette of the run, with what models and judges were asked and said.",
        ),
    ] = None,
    without_data: Annotated[
        bool, typer.Option("--without-data", help="Digests of the data rows instead of the rows.")
    ] = False,
    dataset: DatasetOption = None,
    root: RootOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Put a result, its provenance and attestation, a report, and what else is named into one reproducible
    zip.

    `aigo-bridge verify FILE.zip` checks the bundle alone. Equal contents give equal bytes.
    Exit code: 0 done, 2 wrong use, or a file cannot be read.
    """
    from aigo_bridge.cli.failing import reported
    from aigo_bridge.cli.options import pairs
    from aigo_trust.verification.bundling import Contents, write_bundle
    from aigo_trust.verification.materials import Materials

    with reported():
        members = write_bundle(
            Contents(
                result,
                Materials(
                    task=task,
                    datasets={
                        name: str(Path(file).resolve()) for name, file in pairs("--dataset", dataset).items()
                    },
                    root=None if root is None else str(root.resolve()),
                ),
                log=log,
                cassette=replay,
                with_data=not without_data,
            ),
            out,
        )
    if as_json:
        print_json({"bundle": str(out), "members": members})
        return
    typer.echo(printable(f"bundle  {short_path(out)}"))
    for member in members:
        typer.echo(printable(f"  {member}"))

"""`aigo-bridge bundle`: packs a result with all its evidence into one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    DatasetOption,
    EnvOption,
    JsonOption,
    RootOption,
    verb_command,
)
from aigo_bridge.cli.terminal import print_json, printable, short_path

app = typer.Typer(**VERB)


@app.command(
    "bundle",
    cls=verb_command(
        "aigo-bridge bundle out/capitals.tasklog.json --task task.yaml --out capitals.zip",
        exit_codes={"0": "the bundle was written", "2": "wrong arguments, or a file cannot be read"},
    ),
)
def bundle(
    result: Annotated[
        Path, typer.Argument(metavar="RESULT", help="Result log (.tasklog.json, also .gz and .zst).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.zip", help="Bundle file to write.")],
    task: Annotated[
        str | None,
        typer.Option("--task", metavar="TASK", help="Task of the result. All included files are added."),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option("--log", metavar="LOG", help="Engine log of the result, e.g. logs/run.eval."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="CASSETTE",
            help="Cassette of the run, with all model and judge calls.",
        ),
    ] = None,
    without_data: Annotated[
        bool, typer.Option("--without-data", help="Add checksums of the dataset rows instead of the rows.")
    ] = False,
    dataset: DatasetOption = None,
    root: RootOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Pack a result, its provenance, its signature, a report and other evidence into one zip file.

    `aigo-bridge verify FILE.zip` checks the bundle without other files. The same content always produces
    the same bytes.
    """
    from aigo_bridge.cli.options import pairs
    from aigo_trust.verification.bundling import Contents, write_bundle
    from aigo_trust.verification.materials import Materials

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
